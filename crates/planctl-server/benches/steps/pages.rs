//! Pages: the CPU time and the calls of the database that each costs, and what many readers cost those who work.
//!
//! Readers go on beside the work: 50 tabs that stay open, and 200 pages a second. A step must not take a tenth longer for them.

#[path = "../../tests/support/door.rs"]
mod door;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use door::Door;
use planctl_engine::{AgentSaid, Report, Role};
use planctl_server::ServerNode;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Bench, Work, percentile};

/// Divides the sizes of what is measured, so that the bench can be tried where its figures count for nothing: an unoptimized
/// build, a busy machine.
const PART: &str = "BENCH_PAGES_PART";
/// How many tabs stay open.
const TABS: usize = 50;
/// How many pages are looked at in a second.
const LOADS_PER_SECOND: u64 = 200;
/// How many steps all runs together do in a second, where the machine can do more.
const STEPS_PER_SECOND: u32 = 400;
/// How often a page is looked at for its cost.
const LOOKS: u32 = 20;
/// How large a page may be.
const PAGE_BYTES_MAX: usize = 60 << 10;
/// How many steps are watched for how far an open page is behind.
const WATCHED_STEPS: u32 = 60;
/// How far behind an open page may be.
const BEHIND_MAX: Duration = Duration::from_millis(100);
/// How much longer a step may take beside readers, in percent.
const GROWTH_PERCENT_MAX: f64 = 10.0;

/// The pages of a bench's node, on a port of their own.
struct Pages {
    node: ServerNode,
    door: Door,
}

impl Pages {
    async fn open(bench: &Bench) -> Pages {
        let node = bench.server_node.clone();
        let secret = door::session(node.store()).await;
        Pages { door: Door::open(&node, &secret).await, node }
    }

    /// Prints what a page costs once it was drawn before.
    async fn print_cost(&self, name: &str, path: &str) {
        let first = Instant::now();
        self.door.load(path).await;
        let first = first.elapsed();
        let (cpu, calls) = (cpu_time(), self.node.store().database_calls());
        let mut bytes = 0;
        for _ in 0..LOOKS {
            bytes = self.door.load(path).await.len();
        }
        let cpu = (cpu_time() - cpu) / LOOKS;
        let calls = (self.node.store().database_calls() - calls) / u64::from(LOOKS);
        println!(
            "{name:<52} {:>8.1} ms first {:>8.2} ms CPU {calls:>4} calls {:>6} KB",
            first.as_secs_f64() * 1e3,
            cpu.as_secs_f64() * 1e3,
            bytes / 1024
        );
        if bytes > PAGE_BYTES_MAX {
            println!("MISSED: a page has {PAGE_BYTES_MAX} bytes at most");
        }
    }
}

impl Pages {
    /// Prints how long after each step of a run its open page shows that it passed.
    async fn print_behind(&self, bench: &Bench) {
        let run = bench.begun("watched", WATCHED_STEPS).await;
        let executor = self.node.executor(run).await.unwrap();
        let (_stop, stopped) = watch::channel(false);
        let mut tab = self.door.ask(&format!("/live?page=%2Fruns%2F{run}")).await;
        let (mut seen, mut buffer) = (String::new(), vec![0; 64 << 10]);
        let mut behind = Vec::new();
        let mut next = executor.claim_work(&[Role::new("coder")]).await.unwrap();
        while let Some(claimed) = next {
            next = executor.report(&claimed, AgentSaid::Reported(Report::default()), &stopped).await.unwrap();
            let passed = Instant::now();
            let count = format!("{}/{WATCHED_STEPS}", behind.len() + 1);
            while !seen.contains(&count) {
                let bytes = tab.read(&mut buffer).await.unwrap();
                assert!(bytes > 0, "the tab of a run shows {count}");
                seen.push_str(&String::from_utf8_lossy(&buffer[..bytes]));
            }
            seen.clear();
            behind.push(passed.elapsed());
        }
        let (half, most) = (percentile(&mut behind, 50), percentile(&mut behind, 99));
        println!(
            "{:<52} {:>8.1} ms p50 {:>8.1} ms p99",
            "an open page is behind by",
            half.as_secs_f64() * 1e3,
            most.as_secs_f64() * 1e3
        );
        if most > BEHIND_MAX {
            println!("MISSED: it may be behind by {} ms", BEHIND_MAX.as_millis());
        }
    }
}

/// Returns the CPU time that this process has used; Postgres's is not in it.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap())
}

pub(super) async fn measure(bench: &Bench) {
    let pages = Arc::new(Pages::open(bench).await);
    planctl_store::testing::fill_with_past(bench.server_node.store()).await;
    for number in 0..40 {
        bench.begun(&format!("listed-{number}"), 10).await;
    }
    let part = std::env::var(PART).map_or(1, |part| part.parse().unwrap());
    let (small, large, runs) = (990 / part, 5000 / part, (50 / part).max(5));
    let picture = bench.begun("picture", small).await;
    let huge = bench.begun("huge", large).await;
    let middle = large / 2;
    for (name, path) in [
        ("home, beside 100,000 runs that ended".to_owned(), "/".to_owned()),
        ("runs".to_owned(), "/runs".to_owned()),
        (format!("a run of {large} steps"), format!("/runs/{huge}")),
        ("its middle".to_owned(), format!("/runs/{huge}?from={middle}")),
        ("one of its steps".to_owned(), format!("/runs/{huge}/steps/{middle}")),
        ("its graph".to_owned(), format!("/runs/{huge}/graph")),
        (format!("a graph of {small} steps"), format!("/runs/{picture}/graph")),
        ("system".to_owned(), "/system".to_owned()),
    ] {
        pages.print_cost(&name, &path).await;
    }
    pages.print_behind(bench).await;
    // The first of all use connections and caches for the first time.
    bench.spans_at_once("first", runs, 10).await;
    let mut alone = bench.spans_at_once("alone", runs, 80).await;
    let readers = Readers::start(&pages, format!("/runs/{huge}"), middle);
    let mut beside = bench.spans_at_once("beside", runs, 80).await;
    let (loads, parts) = readers.stop().await;
    let (alone, beside) = (percentile(&mut alone, 50), percentile(&mut beside, 50));
    let growth = 100.0 * (beside.as_secs_f64() / alone.as_secs_f64() - 1.0);
    println!(
        "a gated step of {runs} runs, {STEPS_PER_SECOND} steps a second: {:.2} ms alone, {:.2} ms beside {TABS} tabs and {loads} loads ({parts} KB of updates): {growth:+.0} %",
        alone.as_secs_f64() * 1e3,
        beside.as_secs_f64() * 1e3,
    );
    if growth > GROWTH_PERCENT_MAX {
        println!(
            "MISSED: readers may cost {GROWTH_PERCENT_MAX} % at most; on a machine that does other things, say so"
        );
    }
    let pages = Arc::into_inner(pages).expect("readers have gone");
    pages.door.close().await;
}

/// Tabs and loads, until they are stopped.
struct Readers {
    over: watch::Sender<bool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    loads: Arc<AtomicU64>,
    updates: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Readers {
    fn start(pages: &Arc<Pages>, run: String, step: u32) -> Readers {
        let (over, _) = watch::channel(false);
        let (loads, updates) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for tab in 0..TABS {
            let (pages, updates, mut over) = (pages.clone(), updates.clone(), over.subscribe());
            // Half of them show what changes with every step, half one run and its graph.
            let page = match tab % 4 {
                0 | 1 => "/live?page=%2F".to_owned(),
                2 => format!("/live?page={}", run.replace('/', "%2F")),
                _ => format!("/live?page={}%2Fgraph", run.replace('/', "%2F")),
            };
            tasks.push(tokio::spawn(async move {
                let mut stream = pages.door.ask(&page).await;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    tokio::select! {
                        read = stream.read(&mut buffer) => match read {
                            Ok(0) | Err(_) => return,
                            Ok(bytes) => drop(updates.fetch_add(bytes as u64, Ordering::Relaxed)),
                        },
                        _ = over.changed() => return,
                    }
                }
            }));
        }
        let (pages, counted, ends) = (pages.clone(), loads.clone(), is_over.clone());
        tasks.push(tokio::spawn(async move {
            let mut tick = interval(Duration::from_secs(1) / u32::try_from(LOADS_PER_SECOND).unwrap());
            tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let (graph, step) = (format!("{run}/graph"), format!("{run}/steps/{step}"));
            let paths = ["/".to_owned(), "/runs".to_owned(), run, graph, step, "/plans".to_owned()];
            let mut loading = JoinSet::new();
            for at in 0.. {
                tick.tick().await;
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                while loading.try_join_next().is_some() {}
                let (pages, counted, path) =
                    (pages.clone(), counted.clone(), paths[at % paths.len()].clone());
                loading.spawn(async move {
                    pages.door.load(&path).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                });
            }
            while loading.join_next().await.is_some() {}
        }));
        Readers { over, tasks, loads, updates, is_over }
    }

    /// Returns how many pages were looked at, and how many KB of updates came.
    async fn stop(self) -> (u64, u64) {
        self.is_over.store(true, Ordering::Relaxed);
        self.over.send_replace(true);
        for task in self.tasks {
            task.await.unwrap();
        }
        (self.loads.load(Ordering::Relaxed), self.updates.load(Ordering::Relaxed) / 1024)
    }
}

impl Bench {
    /// Works runs to their ends at once, evenly; returns how long each step took.
    async fn spans_at_once(&self, name: &str, runs: u32, steps: u32) -> Vec<Duration> {
        let mut all = Vec::new();
        for number in 0..runs {
            let run = self.begun(&format!("pages-{name}-{number}"), steps).await;
            all.push((run, self.server_node.executor(run).await.unwrap()));
        }
        let between = Duration::from_secs(1) / STEPS_PER_SECOND;
        let walking: Vec<_> = (0..)
            .zip(all)
            .map(|(number, (run, executor))| {
                let bench = self.at(self.tier);
                let work = Work::Paced { first: between * number, every: between * runs };
                tokio::spawn(async move { bench.walk(run, &executor, work, None).await })
            })
            .collect();
        let mut spans = Vec::new();
        for walk in walking {
            spans.extend(walk.await.unwrap().steps);
        }
        spans
    }
}
