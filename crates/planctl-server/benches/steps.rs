//! The cost of a gated step, beside the floor of the same run: three one-row commits and one bash with pipes.
//!
//! `just bench`, or some of its parts: `just bench lone many`. On a fresh private database with the product's settings, in
//! one process: workers that claim, do nothing (or spawn `true`) and report, and the gates that follow; and workers that
//! speak HTTP with a daemon. Compare a step with the floor and a rate with the limit of the same minutes, not with other
//! machines. The limit is the floor by as many tasks at once as give the most per second.

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
    Actor, AgentSaid, Answer, ClockEvent, Decision, Event, HumanEvent, Report, Role, RunId, RunStatus, Tier,
};
use planctl_lang::{Facts, Source, verify};
use planctl_server::{Executor, RunSettings, ServerNode, ServerNodeOptions};
use planctl_store::testing::Floor;
use planctl_store::{NewApproval, NewRevision, NewRun, Proof, Settings};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at};

#[path = "steps/daemon.rs"]
mod daemon;
#[path = "steps/pages.rs"]
mod pages;

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
    let named: Vec<Part> = Part::ALL
        .into_iter()
        .chain([Part::Pages])
        .filter(|part| arguments.iter().any(|argument| argument == part.name()))
        .collect();
    let parts = if named.is_empty() { Part::ALL.to_vec() } else { named };
    let place = std::env::temp_dir().join(format!("planctl-bench-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // In a task, as planctl's own loops are: the thread that waits for all of them is woken by way of another one.
    let measuring = measure(place.clone(), parts);
    runtime.block_on(async { tokio::spawn(measuring).await.unwrap() });
    std::fs::remove_dir_all(&place).unwrap();
}

/// A part of the measurement, by the name that selects it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A daemon and its workers over HTTP.
    Daemon,
    /// One step at a time.
    Lone,
    /// One step at a time in checkouts of git.
    Checkouts,
    /// Many runs at once.
    Many,
    /// Many steps by many runs.
    Sustained,
    /// Steps beside an old and large history.
    Aged,
    Tiers,
    Flood,
    /// Pages, and many readers beside the work; only where it is named.
    Pages,
}

impl Part {
    const ALL: [Part; 8] = [
        Part::Daemon,
        Part::Lone,
        Part::Checkouts,
        Part::Many,
        Part::Sustained,
        Part::Tiers,
        Part::Flood,
        Part::Aged,
    ];

    fn name(self) -> &'static str {
        match self {
            Part::Daemon => "daemon",
            Part::Lone => "lone",
            Part::Checkouts => "checkouts",
            Part::Many => "many",
            Part::Sustained => "sustained",
            Part::Aged => "aged",
            Part::Tiers => "tiers",
            Part::Flood => "flood",
            Part::Pages => "pages",
        }
    }
}

/// The work of the measurement's worker between its claim and its report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    SpawnTrue,
    /// Reports at even distances, as workers do that have something to do.
    Paced {
        first: Duration,
        every: Duration,
    },
}

async fn measure(place: PathBuf, parts: Vec<Part>) {
    let workspace = place.join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let options = ServerNodeOptions {
        state_dir: place.join("state"),
        database_url: None,
        postgres: Postgres::default(),
        announce: None,
        say: None,
        stop_after: Duration::ZERO,
        program: std::env::current_exe().unwrap(),
        migrates: true,
        traces: planctl_config::TraceConfig::default(),
        store: Settings::default(),
    };
    planctl_store::cluster::ensure_state_dir(&options.state_dir).unwrap();
    let server_node = ServerNode::open(options).await.unwrap();
    println!("{}", server_node.database_line());
    println!("{:<52} {:>8} {:>8} {:>8} {:>8} {:>10}", "", "p50 ms", "p95 ms", "per s", "floor", "over floor");
    let bench = Bench { server_node, place, tier: Tier::SameUser, is_checkout: false };
    bench.measure_floor().await;
    for part in parts {
        match part {
            Part::Daemon => daemon::measure(&bench).await,
            Part::Lone => {
                for (steps, runs) in [(10, 60), (1000, 1), (5000, 1)] {
                    bench.one_at_a_time("", steps, runs, Work::Nothing).await;
                }
                bench.one_at_a_time("", 10, 30, Work::SpawnTrue).await;
            }
            Part::Checkouts => {
                let checkouts = Bench { is_checkout: true, ..bench.clone() };
                for (steps, runs) in [(10, 60), (1000, 1)] {
                    checkouts.one_at_a_time(", checkout of 200 files", steps, runs, Work::Nothing).await;
                }
            }
            Part::Many => {
                // The first use of a statement on each connection is planned; a process that has run for a while is past that.
                let unused = "(all connections are used for the first time)";
                bench.at_once(unused, 50, 4, Work::Nothing).await;
                bench.at_once("50 runs x 20 steps at once", 50, 20, Work::Nothing).await;
                bench
                    .at_once("50 runs x 20 steps at once, worker spawns true", 50, 20, Work::SpawnTrue)
                    .await;
            }
            Part::Sustained => {
                bench.at_once("50 runs x 400 steps, sustained", 50, 400, Work::Nothing).await;
            }
            Part::Aged => bench.measure_aged().await,
            Part::Tiers => bench.measure_tiers().await,
            Part::Flood => bench.flood().await,
            Part::Pages => pages::measure(&bench).await,
        }
    }
    println!("memory of this process at its largest: {} MB", memory_high_water_kib() / 1024);
}

#[derive(Clone)]
struct Bench {
    server_node: ServerNode,
    place: PathBuf,
    /// The isolation of the contracts.
    tier: Tier,
    /// Says that workspaces are checkouts of git.
    is_checkout: bool,
}

/// The times of the steps of some runs, and of the floor between them.
#[derive(Default)]
struct Spans {
    steps: Vec<Duration>,
    floors: Vec<Duration>,
}

impl Bench {
    fn at(&self, tier: Tier) -> Bench {
        Bench { tier, ..self.clone() }
    }

    /// Measures each tier that the host offers; they take turns, so that all see the same machine.
    async fn measure_tiers(&self) {
        let spawner = self.server_node.spawner().unwrap();
        let offered = planctl_harness::probe_isolation(spawner).await.unwrap().tier;
        for tier in Tier::ALL.into_iter().filter(|tier| *tier <= offered) {
            self.at(tier).one_at_a_time("", 10, 60, Work::Nothing).await;
        }
        for tier in Tier::ALL.into_iter().filter(|tier| *tier <= offered) {
            self.at(tier)
                .at_once(&format!("50 runs x 20 steps at once, tier {tier}"), 50, 20, Work::Nothing)
                .await;
        }
    }

    /// Measures one run and many in a database with 100,000 ended runs and a million lines of history.
    async fn measure_aged(&self) {
        let begun = Instant::now();
        planctl_store::testing::fill_with_past(self.server_node.store()).await;
        println!(
            "(100,000 runs and a million lines of history were written in {:.0} s)",
            begun.elapsed().as_secs_f64()
        );
        self.one_at_a_time(" of 100,001 runs", 1000, 1, Work::Nothing).await;
        self.at_once("50 runs x 20 steps at once, of 100,000 runs", 50, 20, Work::Nothing).await;
    }

    /// Returns how many floors there are per second, by as many tasks at once as give the most.
    async fn limit(&self) -> f64 {
        let mut best = 0.0_f64;
        for tasks in [2, 4, 8] {
            const SPAN: Duration = Duration::from_millis(700);
            let begun = Instant::now();
            let mut loops = Vec::new();
            for _ in 0..tasks {
                let mut floor = Floor::connect(self.server_node.store()).await;
                loops.push(tokio::spawn(async move {
                    let mut count = 0_u32;
                    while begun.elapsed() < SPAN {
                        floor_once(&mut floor).await;
                        count += 1;
                    }
                    count
                }));
            }
            let mut count = 0;
            for each in loops {
                count += each.await.unwrap();
            }
            best = best.max(f64::from(count) / begun.elapsed().as_secs_f64());
        }
        best
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
        print("one one-row commit", &mut commits, None);
        print("bash --noprofile --norc -p -c true, with pipes", &mut shells, None);
        print("floor: three one-row commits and one bash", &mut whole, None);
    }

    /// Times the steps of some runs, one after the other, each beside a floor of the same moment.
    async fn one_at_a_time(&self, name: &str, steps: u32, runs: u32, work: Work) {
        let mut floor = Floor::connect(self.server_node.store()).await;
        let mut all = Spans::default();
        let what = if work == Work::SpawnTrue { "-true" } else { "" };
        let tier = self.tier;
        for number in 0..runs {
            let run = self.begun(&format!("single-{steps}{what}{}-{tier}-{number}", name.len()), steps).await;
            let executor = self.server_node.executor(run).await.unwrap();
            let spans = self.walk(run, &executor, work, Some(&mut floor)).await;
            all.steps.extend(spans.steps);
            all.floors.extend(spans.floors);
        }
        let what = if work == Work::SpawnTrue { ", worker spawns true" } else { "" };
        let tier = if tier == Tier::SameUser { String::new() } else { format!(", tier {tier}") };
        let name = format!("gated no-op step, plan of {steps}{what}{tier}{name}");
        print(&name, &mut all.steps, Some(&mut all.floors));
    }

    async fn at_once(&self, name: &str, runs: u32, steps: u32, work: Work) {
        let mut all = Vec::new();
        for number in 0..runs {
            let run = self.begun(&format!("{}-{number}", name.replace([' ', ','], "-")), steps).await;
            all.push((run, self.server_node.executor(run).await.unwrap()));
        }
        let limit_before = self.limit().await;
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
        let whole = begun.elapsed();
        let limit = f64::midpoint(limit_before, self.limit().await);
        print_rate(name, &mut spans, whole, limit);
    }

    /// Works a run to its end and returns how long each step took, from the claim of its work to that of the next step's.
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
        let mut next = executor.claim_work(&roles).await.unwrap();
        let mut pace = None;
        if let Work::Paced { first, every } = work {
            let mut ticks = interval_at(tokio::time::Instant::now() + first, every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            pace = Some(ticks);
        }
        while let Some(claimed) = next {
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            let begun = Instant::now();
            if work == Work::SpawnTrue {
                tokio::process::Command::new("true").status().await.unwrap();
            }
            let report = Report { duration: begun.elapsed(), ..Report::default() };
            next = executor.report(&claimed, AgentSaid::Reported(report), &stopped).await.unwrap();
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

    /// Makes a run that serves its role itself; who measures does the work in place of its program.
    async fn begun(&self, name: &str, steps: u32) -> RunId {
        self.begun_with(name, steps, Some("true".to_owned())).await
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
        if self.is_checkout {
            make_checkout(&folder);
        }
        let host = planctl_harness::host_id();
        let workspace = store.workspace(host, &folder.to_string_lossy()).await.unwrap();
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
        let approval = NewApproval {
            plan: plan.id,
            digest: &verified.digest,
            config_digest: &config.digest(),
            config: "{}",
            protected: r#"{"files":{}}"#,
            by: "bench",
            note: None,
        };
        let (approval, _) = store.approve(&approval, |_| false).await.unwrap();
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

fn print(name: &str, spans: &mut [Duration], floors: Option<&mut Vec<Duration>>) {
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let (p50, p95) = (ms(percentile(spans, 50)), ms(percentile(spans, 95)));
    let compared = floors.map_or(String::new(), |floors| {
        let floor = ms(percentile(floors, 50));
        format!("{floor:>8.2} {:>+7.2} ms", p50 - floor)
    });
    println!("{name:<52} {p50:>8.2} {p95:>8.2} {:>8} {compared}", "");
}

/// Prints how many steps there were per second, and which part that is of the limit.
fn print_rate(name: &str, spans: &mut [Duration], whole: Duration, limit: f64) {
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let (p50, p95) = (ms(percentile(spans, 50)), ms(percentile(spans, 95)));
    let rate = spans.len() as f64 / whole.as_secs_f64();
    println!("{name:<52} {p50:>8.2} {p95:>8.2} {rate:>8.0}    {:.0} % of {limit:.0}", 100.0 * rate / limit);
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

/// Makes a folder a checkout with 200 committed files in ten folders.
fn make_checkout(folder: &Path) {
    let script = "for number in {1..200}; do mkdir -p src/$((number % 10)); echo $number > src/$((number % 10))/$number.rs; done
        git init -q . && git add -A && git -c user.name=bench -c user.email=bench@example.org commit -qm all";
    let made = std::process::Command::new("bash").args(["-c", script]).current_dir(folder).status().unwrap();
    assert!(made.success());
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
