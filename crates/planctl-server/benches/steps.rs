//! The cost of a gated step, beside the floor of the same run: three one-row commits and one bash with pipes.
//!
//! `just bench`. On a fresh private database with the product's settings, in one process: workers that claim, do
//! nothing (or spawn `true`) and report, and the gates that follow; and workers that speak HTTP with a daemon.
//! Compare with the floor, not with other machines. `just bench daemon` measures the daemon alone.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where it cannot go on"
)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use planctl_config::{Config, Postgres};
use planctl_engine::{
    Actor, AgentSaid, Answer, ClockEvent, Decision, Event, Excerpt, HumanEvent, Report, Role, RunId,
    RunStatus, Tier,
};
use planctl_lang::{Facts, Source, verify};
use planctl_server::{Executor, RunSettings, ServerNode, ServerNodeOptions};
use planctl_store::testing::Floor;
use planctl_store::{NewApproval, NewRevision, NewRun, Proof, Settings};
use tokio::sync::watch;

#[path = "steps/daemon.rs"]
mod daemon;

/// The allocator of the program that is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|argument| argument == "__spawn") {
        std::process::exit(planctl_harness::helper_main());
    }
    if arguments.get(1).is_some_and(|argument| argument == "__daemon") {
        return daemon::be_one(Path::new(&arguments[2]), &arguments[3].to_string_lossy());
    }
    let is_daemon_only = arguments.iter().any(|argument| argument == "daemon");
    let place = std::env::temp_dir().join(format!("planctl-bench-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(&place, is_daemon_only));
    std::fs::remove_dir_all(&place).unwrap();
}

/// The work of the measurement's worker between its claim and its report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    SpawnTrue,
}

async fn measure(place: &Path, is_daemon_only: bool) {
    let workspace = place.join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let options = ServerNodeOptions {
        state_dir: place.join("state"),
        database_url: None,
        postgres: Postgres::default(),
        program: std::env::current_exe().unwrap(),
        migrates: true,
        store: Settings::default(),
    };
    planctl_store::cluster::ensure_state_dir(&options.state_dir).unwrap();
    let server_node = ServerNode::open(options).await.unwrap();
    println!("{}", server_node.database_line());
    println!("{:<52} {:>8} {:>8} {:>8} {:>8} {:>10}", "", "p50 ms", "p95 ms", "per s", "floor", "over floor");
    let bench = Bench { server_node, place: place.to_owned(), tier: Tier::SameUser };
    bench.measure_floor().await;
    daemon::measure(&bench).await;
    if is_daemon_only {
        return;
    }
    if std::env::args().any(|argument| argument == "tiers") {
        return bench.measure_tiers().await;
    }
    for (steps, runs) in [(10, 60), (1000, 1), (5000, 1)] {
        bench.one_at_a_time(steps, runs, Work::Nothing).await;
    }
    bench.one_at_a_time(10, 30, Work::SpawnTrue).await;
    // The first use of a statement on each connection is planned; a process that has run for a while is past that.
    bench.at_once("(all connections are used for the first time)", 50, 4, Work::Nothing).await;
    bench.at_once("50 runs x 20 steps at once", 50, 20, Work::Nothing).await;
    bench.at_once("50 runs x 20 steps at once, worker spawns true", 50, 20, Work::SpawnTrue).await;
    bench.at_once("50 runs x 400 steps, sustained", 50, 400, Work::Nothing).await;
    bench.measure_tiers().await;
    bench.flood().await;
    println!("memory of this process at its largest: {} MB", memory_high_water_kib() / 1024);
}

struct Bench {
    server_node: ServerNode,
    place: PathBuf,
    /// The isolation of the contracts.
    tier: Tier,
}

/// The times of the steps of some runs, and of the floor between them.
#[derive(Default)]
struct Spans {
    steps: Vec<Duration>,
    floors: Vec<Duration>,
}

impl Bench {
    fn at(&self, tier: Tier) -> Bench {
        Bench { server_node: self.server_node.clone(), place: self.place.clone(), tier }
    }

    /// Measures each tier that the host offers; they take turns, so that all see the same machine.
    async fn measure_tiers(&self) {
        let spawner = self.server_node.spawner().unwrap();
        let offered = planctl_harness::probe_isolation(spawner).await.unwrap().tier;
        for tier in Tier::ALL.into_iter().filter(|tier| *tier <= offered) {
            self.at(tier).one_at_a_time(10, 60, Work::Nothing).await;
        }
        for tier in Tier::ALL.into_iter().filter(|tier| *tier <= offered) {
            self.at(tier)
                .at_once(&format!("50 runs x 20 steps at once, tier {tier}"), 50, 20, Work::Nothing)
                .await;
        }
    }

    async fn measure_floor(&self) {
        let mut floor = Floor::connect(self.server_node.store()).await;
        let (mut commits, mut shells, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..300 {
            let begun = Instant::now();
            floor.commit().await;
            commits.push(begun.elapsed());
            let begun = Instant::now();
            bash().await;
            shells.push(begun.elapsed());
            whole.push(floor_once(&mut floor).await);
        }
        print("one one-row commit", &mut commits, None, None);
        print("bash --noprofile --norc -p -c true, with pipes", &mut shells, None, None);
        print("floor: three one-row commits and one bash", &mut whole, None, None);
    }

    /// Times the steps of some runs, one after the other, each beside a floor of the same moment.
    async fn one_at_a_time(&self, steps: u32, runs: u32, work: Work) {
        let mut floor = Floor::connect(self.server_node.store()).await;
        let mut all = Spans::default();
        let what = if work == Work::SpawnTrue { "-true" } else { "" };
        let tier = self.tier;
        for number in 0..runs {
            let run = self.begun(&format!("single-{steps}{what}-{tier}-{number}"), steps).await;
            let executor = self.server_node.executor(run).await.unwrap();
            let spans = self.walk(run, &executor, work, Some(&mut floor)).await;
            all.steps.extend(spans.steps);
            all.floors.extend(spans.floors);
        }
        let what = if work == Work::SpawnTrue { ", worker spawns true" } else { "" };
        let tier = if tier == Tier::SameUser { String::new() } else { format!(", tier {tier}") };
        let name = format!("gated no-op step, plan of {steps}{what}{tier}");
        print(&name, &mut all.steps, Some(&mut all.floors), None);
    }

    async fn at_once(&self, name: &str, runs: u32, steps: u32, work: Work) {
        let mut all = Vec::new();
        for number in 0..runs {
            let run = self.begun(&format!("{}-{number}", name.replace([' ', ','], "-")), steps).await;
            all.push((run, self.server_node.executor(run).await.unwrap()));
        }
        let begun = Instant::now();
        let walking: Vec<_> = all
            .into_iter()
            .map(|(run, executor)| {
                let bench = self.at(self.tier);
                tokio::spawn(async move { bench.walk(run, &executor, work, None).await })
            })
            .collect();
        let mut spans = Vec::new();
        for walk in walking {
            spans.extend(walk.await.unwrap().steps);
        }
        print(name, &mut spans, None, Some(begun.elapsed()));
    }

    /// Works a run to its end and returns how long each step took, from its claim to its verdict.
    async fn walk(
        &self,
        run: RunId,
        executor: &Executor,
        work: Work,
        mut floor: Option<&mut Floor>,
    ) -> Spans {
        let roles = [Role::new("coder")];
        let (_stop, stopped) = watch::channel(false);
        let mut spans = Spans::default();
        loop {
            let begun = Instant::now();
            let Some(claimed) = executor.claim_work(&roles).await.unwrap() else { break };
            if work == Work::SpawnTrue {
                tokio::process::Command::new("true").status().await.unwrap();
            }
            let report = Report {
                text: Excerpt::default(),
                gave_up: false,
                ending: None,
                duration: begun.elapsed(),
                usage: None,
                hints: None,
            };
            executor.report(&claimed, AgentSaid::Reported(report), &stopped).await.unwrap();
            spans.steps.push(begun.elapsed());
            if let Some(floor) = floor.as_deref_mut().filter(|_| spans.steps.len() % FLOOR_EVERY == 0) {
                spans.floors.push(floor_once(floor).await);
            }
        }
        let row = self.server_node.store().run(run).await.unwrap();
        assert!(matches!(row.head.status, RunStatus::Ended { .. }), "the run came to its end");
        spans
    }

    /// A worker that prints 5 GB: measures how much of it stays in memory.
    async fn flood(&self) {
        let run = self
            .begun_with("flood", 1, Some("cat >/dev/null; head -c 5000000000 /dev/zero".to_owned()))
            .await;
        let begun = Instant::now();
        let options = planctl_server::RunLoopOptions::default();
        self.server_node.run_loop(run, &options, std::future::pending()).await.unwrap();
        println!("{:<52} {:>8.1} s", "a worker that prints 5 GB", begun.elapsed().as_secs_f64());
    }

    async fn begun(&self, name: &str, steps: u32) -> RunId {
        self.begun_with(name, steps, None).await
    }

    /// Makes a run of no-op steps in a workspace of its own and lets it begin.
    async fn begun_with(&self, name: &str, steps: u32, exec: Option<String>) -> RunId {
        let run = self.queued(name, steps, exec).await;
        let admitted = Event::Clock(ClockEvent::Admitted);
        self.server_node.store().apply(run, &admitted, &Proof::Clock, None).await.unwrap();
        run
    }

    /// Makes a run of no-op steps in a workspace of its own that waits for its turn.
    async fn queued(&self, name: &str, steps: u32, exec: Option<String>) -> RunId {
        let store = self.server_node.store();
        let folder = self.place.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let host = planctl_harness::host_id();
        let workspace = store.workspace(&host, &folder.to_string_lossy()).await.unwrap();
        let source = Source::new("plan.md", plan(steps));
        let verified = verify(&source, &Facts::default(), &planctl_lang::Levels::default());
        let graph = verified.graph.as_ref().unwrap_or_else(|| panic!("{:?}", verified.diagnostics));
        let plan = store
            .save_revision(&NewRevision {
                workspace,
                path: "plan.md",
                digest: &verified.digest,
                source: source.text(),
                graph,
                by: "bench",
            })
            .await
            .unwrap();
        let config = Config::default();
        let approval = store
            .approve(&NewApproval {
                plan: plan.id,
                digest: &verified.digest,
                config_digest: &config.digest(),
                config: "{}",
                protected: r#"{"files":{}}"#,
                by: "bench",
                note: None,
            })
            .await
            .unwrap();
        let settings = RunSettings::new(&config, exec.map(planctl_config::Agent::Exec), self.tier);
        let run = store
            .create_run(&NewRun {
                plan: plan.id,
                revision: &verified.digest,
                stem: name,
                approval: Some(approval.id),
                settings: &serde_json::to_string(&settings).unwrap(),
                served: &settings.served(),
                request: None,
            })
            .await
            .unwrap()
            .id;
        let human = |decision| Event::Human(HumanEvent { by: Actor::new("bench"), note: None, decision });
        store.apply(run, &human(Decision::Submit), &Proof::Submit, None).await.unwrap();
        let item = store.asks(Some(run), None).await.unwrap().remove(0).item;
        let approve = human(Decision::Answer { item, answer: Answer::Approve });
        store.apply(run, &approve, &Proof::Person { key: None }, None).await.unwrap();
        run
    }
}

/// Between how many steps the floor is taken once.
const FLOOR_EVERY: usize = 3;

async fn floor_once(floor: &mut Floor) -> Duration {
    let begun = Instant::now();
    for _ in 0..3 {
        floor.commit().await;
    }
    bash().await;
    begun.elapsed()
}

fn print(name: &str, spans: &mut [Duration], floors: Option<&mut Vec<Duration>>, whole: Option<Duration>) {
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let (p50, p95) = (ms(percentile(spans, 50)), ms(percentile(spans, 95)));
    let rate =
        whole.map_or(String::new(), |whole| format!("{:.0}", spans.len() as f64 / whole.as_secs_f64()));
    let compared = floors.map_or(String::new(), |floors| {
        let floor = ms(percentile(floors, 50));
        format!("{floor:>8.2} {:>+7.2} ms", p50 - floor)
    });
    println!("{name:<52} {p50:>8.2} {p95:>8.2} {rate:>8} {compared}");
}

fn percentile(spans: &mut [Duration], part: usize) -> Duration {
    spans.sort();
    spans[(spans.len() * part / 100).min(spans.len() - 1)]
}

async fn bash() {
    let output = tokio::process::Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-p", "-c", "true"])
        .process_group(0)
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
}

fn plan(steps: u32) -> String {
    let mut text =
        String::from("---\ntype: plan\nstatus: draft\nowner: bench\n---\n\n# Nothing much\n\n## Steps\n");
    for number in 1..=steps {
        write!(
            text,
            "\n### {number}. Nothing\n\n**target:** coder\n\n**task:**\nNothing.\n\n**contract:**\n```bash\ntrue\n```\nexit_code == 0\n"
        )
        .unwrap();
    }
    text
}

fn memory_high_water_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
