//! The cost of a step in the database: claim, report and verdict beside three one-row commits of the same run.
//!
//! `cargo bench -p planctl-store`, or with one of `-- plans`, `-- at-once`, `-- sustained`, `-- graphs`; `planctl-server` measures the same with a real worker and a real contract.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where it cannot go on"
)]

#[path = "steps/growth.rs"]
mod growth;
#[path = "steps/shapes.rs"]
mod shapes;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/store/world.rs"]
mod world;

use std::time::{Duration, Instant};

use planctl_engine::{Digest, Graph, RunId, RunStatus};
use planctl_store::testing::TestCluster;
use planctl_store::{NewRevision, NewRun, PlanStatus, Proof, Settings, Store};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

use world::{evaluated, human, linear, next_claim, person, reported};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let cluster = TestCluster::private();
    runtime.block_on(async {
        let database = cluster.empty_database().await;
        let options = database.connect_options();
        let store = Store::connect(options.clone(), Settings::default()).await.unwrap();
        store.migrate().await.unwrap();
        println!("{:<44} {:>9} {:>9} {:>9}", "", "p50 ms", "p95 ms", "per s");
        let mut bench = Bench { store: store.clone(), beside: one_row_table(&options).await };
        let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
        let is_wanted = |part: &str| wanted.as_deref().is_none_or(|wanted| wanted == part);
        if is_wanted("graphs") {
            println!("{:<28} {:>9} {:>9}", "nodes:", 10, "5,000");
            growth::of_the_engine();
            bench.growth().await;
        }
        if is_wanted("plans") {
            for (steps, runs) in [(10, 100), (1000, 1), (5000, 1)] {
                bench.one_at_a_time(steps, runs).await;
            }
        }
        if is_wanted("at-once") {
            bench.at_once("50 runs x 20 steps at once", 50, 20).await;
        }
        if is_wanted("sustained") {
            bench.at_once("50 runs x 400 steps, sustained", 50, 400).await;
        }
        floor_at_once(options, 50, 60).await;
        store.close().await;
    });
}

/// Prints the middle and the 95th percentile of some durations.
fn print(name: &str, mut spans: Vec<Duration>, whole: Option<Duration>) {
    spans.sort();
    let at = |part: usize| spans[(spans.len() * part / 100).min(spans.len() - 1)].as_secs_f64() * 1e3;
    let rate =
        whole.map_or(String::new(), |whole| format!("{:.0}", spans.len() as f64 / whole.as_secs_f64()));
    println!("{name:<44} {:>9.3} {:>9.3} {rate:>9}", at(50), at(95));
}

async fn one_row_table(options: &PgConnectOptions) -> PgConnection {
    let mut connection = PgConnection::connect_with(options).await.unwrap();
    connection
        .execute("create table if not exists floor (id int primary key, n int) with (fillfactor = 50)")
        .await
        .unwrap();
    connection
        .execute("insert into floor select n, 0 from generate_series(1, 50) n on conflict do nothing")
        .await
        .unwrap();
    connection
}

async fn commit_three(connection: &mut PgConnection, id: i32) {
    for _ in 0..3 {
        sqlx::query("update floor set n = n + 1 where id = $1")
            .bind(id)
            .execute(&mut *connection)
            .await
            .unwrap();
    }
}

async fn floor_at_once(options: PgConnectOptions, clients: i32, times: usize) {
    one_row_table(&options).await;
    let mut connections = Vec::new();
    for _ in 0..10 {
        connections.push(PgConnection::connect_with(&options).await.unwrap());
    }
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    let share = times * usize::try_from(clients).unwrap() / connections.len();
    for (at, mut connection) in connections.into_iter().enumerate() {
        tasks.spawn(async move {
            let mut spans = Vec::new();
            for _ in 0..share {
                let began = Instant::now();
                commit_three(&mut connection, i32::try_from(at).unwrap() + 1).await;
                spans.push(began.elapsed());
            }
            spans
        });
    }
    let spans: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    print("floor: the same on 10 connections at once", spans, Some(began.elapsed()));
}

struct Bench {
    store: Store,
    /// Commits the floor between the steps, so that both meet the same noise.
    beside: PgConnection,
}

impl Bench {
    /// Makes a run of so many steps in a workspace of its own; its first step is ready.
    async fn begun(&self, steps: u32, number: usize) -> RunId {
        let digest = Digest::new(format!("sha256:{steps}"));
        self.begun_as(&linear(steps), &format!("{steps}/{number}"), &digest).await
    }

    /// Makes a run of a graph in a workspace of its own; its first step is ready.
    async fn begun_with(&self, graph: &Graph, name: &str) -> RunId {
        let digest = Digest::new(format!("sha256:{name}"));
        self.begun_as(graph, name, &digest).await
    }

    async fn begun_as(&self, graph: &Graph, name: &str, digest: &Digest) -> RunId {
        let store = &self.store;
        let workspace = store.workspace(world::HOST, &format!("/bench/{name}")).await.unwrap();
        let revision = NewRevision { workspace, path: "bench.md", digest, source: "", graph, by: "bench" };
        let plan = store.save_revision(&revision).await.unwrap();
        store.move_plan(plan.id, PlanStatus::Verified, "bench", "bench").await.unwrap();
        let new = NewRun {
            plan: plan.id,
            revision: digest,
            stem: "bench",
            approval: None,
            settings: "{}",
            served: &[],
            request: None,
        };
        let run = store.create_run(&new).await.unwrap().id;
        store.apply(run, &human(planctl_engine::Decision::Submit), &Proof::Submit, None).await.unwrap();
        let ask = store.asks(Some(run), None).await.unwrap().remove(0).item;
        let approve =
            human(planctl_engine::Decision::Answer { item: ask, answer: planctl_engine::Answer::Approve });
        store.apply(run, &approve, &person(None), None).await.unwrap();
        let admitted = planctl_engine::Event::Clock(planctl_engine::ClockEvent::Admitted);
        store.apply(run, &admitted, &Proof::Clock, None).await.unwrap();
        run
    }

    async fn one_at_a_time(&mut self, steps: u32, runs: usize) {
        let mut whole = Vec::new();
        let mut floor = Vec::new();
        let (mut claims, mut reports, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..runs {
            let run = self.begun(steps, number).await;
            for _ in 0..steps {
                let [claim, report, verdict] = step(&self.store, run).await;
                whole.push(claim + report + verdict);
                claims.push(claim);
                reports.push(report);
                verdicts.push(verdict);
                let began = Instant::now();
                commit_three(&mut self.beside, 1).await;
                floor.push(began.elapsed());
            }
            assert!(is_ended(&self.store, run).await);
        }
        print("floor: three one-row commits", floor, None);
        print(&format!("step of a {steps}-step plan"), whole, None);
        print("  claim", claims, None);
        print("  report, with the gate claimed with the report", reports, None);
        print("  verdict", verdicts, None);
    }

    async fn at_once(&self, name: &str, runs: usize, steps: u32) {
        let mut ready = Vec::new();
        for number in 0..runs {
            ready.push(self.begun(steps, number + 1000).await);
        }
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for run in ready {
            let store = self.store.clone();
            tasks.spawn(async move {
                let mut spans = Vec::new();
                for _ in 0..steps {
                    spans.push(step(&store, run).await.into_iter().sum());
                }
                spans
            });
        }
        let spans: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
        print(name, spans, Some(began.elapsed()));
    }
}

/// Does one step and returns what claim, report and verdict took.
async fn step(store: &Store, run: RunId) -> [Duration; 3] {
    let claim = planctl_store::Claim {
        lane: planctl_store::ClaimLane::Agent(vec![planctl_engine::Role::new("coder")]),
        run: Some(run),
        except: Vec::new(),
        holder: world::holder("bench"),
        lease: Duration::from_secs(15),
    };
    let began = Instant::now();
    let work = store.claim(&claim).await.unwrap().expect("a step is ready");
    let claimed = began.elapsed();
    let began = Instant::now();
    let applied =
        store.apply(run, &reported(&work.item.at), &work.proof(), Some(&next_claim())).await.unwrap();
    let reported = began.elapsed();
    let gate = applied.claimed_next.unwrap();
    let event = evaluated(&gate.item.at, 0);
    let began = Instant::now();
    store.apply(run, &event, &gate.proof(), None).await.unwrap();
    [claimed, reported, began.elapsed()]
}

async fn is_ended(store: &Store, run: RunId) -> bool {
    matches!(store.run(run).await.unwrap().head.status, RunStatus::Ended { .. })
}
