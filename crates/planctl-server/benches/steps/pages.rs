//! Pages: the CPU time and the calls of the database that each costs, and what many readers cost those who work.
//!
//! Readers go on beside the work: 50 tabs that stay open, and 200 pages a second. A step must not take a tenth longer for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use planctl_server::http::{HttpOptions, Listening, serve, socket_of};
use planctl_server::{Caps, Health, ServerNode};
use planctl_store::{NewToken, NewlyMade, TokenScope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Bench, Work, percentile};

/// How many tabs stay open.
const TABS: usize = 50;
/// How many pages are looked at in a second.
const LOADS_PER_SECOND: u64 = 200;
/// How often a page is looked at for its cost.
const LOOKS: u32 = 20;
/// How much longer a step may take beside readers, in percent.
const GROWTH_PERCENT_MAX: f64 = 10.0;

/// The pages of a bench's node, on a port of their own.
struct Pages {
    node: ServerNode,
    port: String,
    secret: String,
    _stop: watch::Sender<bool>,
}

impl Pages {
    async fn open(bench: &Bench) -> Pages {
        let node = bench.server_node.clone();
        let (stop, stopped) = watch::channel(false);
        let options = HttpOptions {
            socket: socket_of(node.state_dir()),
            listen: Some(([127, 0, 0, 1], 0).into()),
            hosts: Vec::new(),
            caps: Caps::default(),
            health: Health::default(),
            slots: None,
            stop: stopped,
        };
        let listening = Listening::open(options).await.unwrap();
        let port = listening.info().tcp.unwrap();
        tokio::spawn(serve(node.clone(), listening));
        let new = NewToken {
            name: "bench",
            scope: TokenScope::Admin,
            roles: &[],
            lasts: None,
            request: None,
            person: None,
        };
        let NewlyMade::Token(_, secret) = node.store().create_token(&new).await.unwrap() else { panic!() };
        Pages { node, port, secret, _stop: stop }
    }

    async fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.port).await.unwrap();
        let (port, secret) = (&self.port, &self.secret);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {port}\r\nconnection: close\r\ncookie: planctl_session={secret}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Returns the bytes of a page.
    async fn load(&self, path: &str) -> usize {
        let mut reply = Vec::new();
        self.ask(path).await.read_to_end(&mut reply).await.unwrap();
        assert!(reply.starts_with(b"HTTP/1.1 200"), "{path}: {}", String::from_utf8_lossy(&reply));
        reply.len()
    }

    /// Prints what a page costs once it was drawn before.
    async fn print_cost(&self, name: &str, path: &str) {
        let first = Instant::now();
        self.load(path).await;
        let first = first.elapsed();
        let (cpu, calls) = (cpu_time(), self.node.store().calls());
        let mut bytes = 0;
        for _ in 0..LOOKS {
            bytes = self.load(path).await;
        }
        let cpu = (cpu_time() - cpu) / LOOKS;
        let calls = (self.node.store().calls() - calls) / u64::from(LOOKS);
        println!(
            "{name:<52} {:>8.1} ms first {:>8.2} ms CPU {calls:>4} calls {:>6} KB",
            first.as_secs_f64() * 1e3,
            cpu.as_secs_f64() * 1e3,
            bytes / 1024
        );
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
    let picture = bench.begun("picture", 990).await;
    let huge = bench.begun("huge", 5000).await;
    for (name, path) in [
        ("home, beside 100,000 runs that ended", "/".to_owned()),
        ("runs", "/runs".to_owned()),
        ("a run of 5,000 steps", format!("/runs/{huge}")),
        ("its middle", format!("/runs/{huge}?from=2500")),
        ("one of its steps", format!("/runs/{huge}/steps/2500")),
        ("its graph, which is too large", format!("/runs/{huge}/graph")),
        ("a graph of 990 steps", format!("/runs/{picture}/graph")),
        ("system", "/system".to_owned()),
    ] {
        pages.print_cost(name, &path).await;
    }
    let mut alone = bench.spans_at_once("alone", 50, 40).await;
    let readers = Readers::start(&pages, format!("/runs/{huge}"));
    let mut beside = bench.spans_at_once("beside", 50, 40).await;
    let (loads, parts) = readers.stop().await;
    let (alone, beside) = (percentile(&mut alone, 50), percentile(&mut beside, 50));
    let growth = 100.0 * (beside.as_secs_f64() / alone.as_secs_f64() - 1.0);
    println!(
        "a gated step of 50 runs at once: {:.2} ms alone, {:.2} ms beside {TABS} tabs and {loads} loads ({parts} KB of updates): {growth:+.0} %",
        alone.as_secs_f64() * 1e3,
        beside.as_secs_f64() * 1e3,
    );
    if growth > GROWTH_PERCENT_MAX {
        println!(
            "MISSED: readers may cost {GROWTH_PERCENT_MAX} % at most; on a machine that does other things, say so"
        );
    }
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
    fn start(pages: &Arc<Pages>, run: String) -> Readers {
        let (over, _) = watch::channel(false);
        let (loads, updates) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for tab in 0..TABS {
            let (pages, updates, mut over) = (pages.clone(), updates.clone(), over.subscribe());
            let page = if tab % 2 == 0 { "/live?page=%2F" } else { "/live?page=%2Fruns" };
            tasks.push(tokio::spawn(async move {
                let mut stream = pages.ask(page).await;
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
            let paths = ["/".to_owned(), "/runs".to_owned(), run, "/plans".to_owned()];
            for at in 0.. {
                tick.tick().await;
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (pages, counted, path) =
                    (pages.clone(), counted.clone(), paths[at % paths.len()].clone());
                tokio::spawn(async move {
                    pages.load(&path).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                });
            }
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
    /// Works runs to their ends at once; returns how long each step took.
    async fn spans_at_once(&self, name: &str, runs: u32, steps: u32) -> Vec<Duration> {
        let mut all = Vec::new();
        for number in 0..runs {
            let run = self.begun(&format!("pages-{name}-{number}"), steps).await;
            all.push((run, self.server_node.executor(run).await.unwrap()));
        }
        let walking: Vec<_> = all
            .into_iter()
            .map(|(run, executor)| {
                let bench = self.at(self.tier);
                tokio::spawn(async move { bench.walk(run, &executor, Work::Nothing, None).await })
            })
            .collect();
        let mut spans = Vec::new();
        for walk in walking {
            spans.extend(walk.await.unwrap().steps);
        }
        spans
    }
}
