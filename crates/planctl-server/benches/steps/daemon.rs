//! The cost that a daemon adds: items over its socket to workers that wait for them, many runs at once, and a daemon's
//! death.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use planctl_config::{DatabaseUrl, Postgres};
use planctl_engine::{AgentEvent, AgentSaid, Event, Role, RunId, RunStatus};
use planctl_server::daemon::{DaemonOptions, serve};
use planctl_server::http::socket_of;
use planctl_server::singleton::SingletonLock;
use planctl_server::{Health, ServerNode, ServerNodeOptions, StoreSettings};
use planctl_store::testing::Floor;
use planctl_store::{Claim, ClaimLane, Claimed, Holder};
use serde_json::Value;

use super::{Bench, floor_once, print};

/// How often something is read without a notification.
const LOOK: Duration = Duration::from_millis(1);
/// How many workers there are where many runs go on at once.
const WORKERS: usize = 8;
/// How many items the idle queue brings.
const IDLE_ITEMS: usize = 200;
/// How many steps the only worker does.
const ONE_WORKER_STEPS: u32 = 300;
/// How many daemons die.
const DEATHS: usize = 10;

/// Is a daemon of this state directory on this database until it is killed.
pub(super) fn be_one(state: &Path, url: &str) {
    planctl_server::runtime().unwrap().block_on(async {
        let options = ServerNodeOptions {
            state_dir: state.to_owned(),
            database_url: Some(DatabaseUrl::parse(url).unwrap()),
            postgres: Postgres::default(),
            announce: None,
            say: None,
            stop_after: Duration::ZERO,
            program: std::env::current_exe().unwrap(),
            migrates: true,
            traces: planctl_config::TraceConfig::default(),
            store: StoreSettings::default(),
        };
        let singleton = SingletonLock::acquire(state).unwrap();
        let server_node = ServerNode::open(options).await.unwrap();
        let options = DaemonOptions::default();
        serve(server_node, &singleton, &options, &Health::default(), |_| {}, std::future::pending())
            .await
            .unwrap();
    });
}

/// A daemon in a process of its own; killed when it is dropped.
struct Daemon {
    process: Child,
    state: PathBuf,
    url: String,
}

impl Daemon {
    fn start(state: &Path, url: &str) -> Daemon {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("__daemon").arg(state).arg(url).stdin(Stdio::null());
        Daemon { process: command.spawn().unwrap(), state: state.to_owned(), url: url.to_owned() }
    }

    fn socket(&self) -> PathBuf {
        socket_of(&self.state)
    }

    fn await_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Client::new(&self.socket())
            .call("GET", "/readyz", None, "")
            .is_none_or(|(status, _)| status != 200)
        {
            assert!(Instant::now() < deadline, "the daemon does not get ready");
            std::thread::sleep(LOOK);
        }
    }

    /// Kills it and starts another in its place, as a service manager does.
    fn kill_and_start(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let next = Daemon::start(&self.state, &self.url);
        drop(std::mem::replace(self, next));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }
}

/// A worker's connection: HTTP/1.1 that is kept open, as every client library does it.
struct Client {
    socket: PathBuf,
    stream: Option<BufReader<UnixStream>>,
    /// Names the call whose answer is awaited: sent again under its name, it is answered as the first time.
    key: String,
}

impl Client {
    fn new(socket: &Path) -> Client {
        Client { socket: socket.to_owned(), stream: None, key: new_key() }
    }

    /// Sends a call; nothing where the daemon is gone, or not there yet.
    fn call(&mut self, method: &str, path: &str, token: Option<&str>, body: &str) -> Option<(u16, Value)> {
        let answer = self.try_call(method, path, token, body).filter(|(status, _)| *status < 500);
        match &answer {
            Some(_) => self.key = new_key(),
            None => self.stream = None,
        }
        answer
    }

    fn try_call(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> Option<(u16, Value)> {
        if self.stream.is_none() {
            self.stream = Some(BufReader::new(UnixStream::connect(&self.socket).ok()?));
        }
        let stream = self.stream.as_mut()?;
        let bearer = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{bearer}idempotency-key: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut length = 0;
        loop {
            line.clear();
            stream.read_line(&mut line).ok()?;
            let (name, value) = match line.trim() {
                "" => break,
                header => header.split_once(':')?,
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).ok()?;
        Some((status, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).ok()? }))
    }

    fn claim(&mut self) -> Option<Value> {
        match self.call("POST", "/v1/items/claim?wait=2", None, r#"{"roles":["coder"]}"#)? {
            (200, claimed) => Some(claimed),
            _ => None,
        }
    }

    /// Claims until there is an item.
    fn claimed(&mut self) -> Value {
        std::iter::repeat_with(|| self.claim()).flatten().next().unwrap()
    }

    fn release(&mut self, claimed: &Value) {
        let path = format!("/v1/items/{}/release", claimed["item"].as_str().unwrap());
        let answer = self.call("POST", &path, claimed["token"].as_str(), "{}");
        assert_eq!(answer.unwrap().0, 200);
    }

    fn complete(&mut self, claimed: &Value) -> bool {
        let path = format!("/v1/items/{}/complete", claimed["item"].as_str().unwrap());
        // A report whose answer was lost is sent again, as every worker does.
        let answer = loop {
            match self.call("POST", &path, claimed["token"].as_str(), r#"{"text":"done","seconds":0.001}"#) {
                Some(answer) => break answer,
                None => std::thread::sleep(LOOK),
            }
        };
        answer.0 == 200
    }
}

fn new_key() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    format!("bench-{:010}-{:020}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Workers that claim and report until they are dropped.
struct Workers {
    over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    reports: Arc<AtomicUsize>,
}

impl Workers {
    /// Starts workers; each says when it got an item.
    fn start(count: usize, socket: &Path, sender: &mpsc::Sender<Instant>) -> Workers {
        let (over, reports) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let work = |_| {
            let (over, reports, sender) = (over.clone(), reports.clone(), sender.clone());
            let mut client = Client::new(socket);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let Some(claimed) = client.claim() else {
                        if client.stream.is_none() {
                            std::thread::sleep(LOOK);
                        }
                        continue;
                    };
                    sender.send(Instant::now()).unwrap();
                    if client.complete(&claimed) {
                        reports.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let threads = (0..count).map(work).collect();
        Workers { over, threads, reports }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Measures a daemon, beside the floor of the same moments.
pub(super) async fn measure(bench: &Bench) {
    let state = bench.place.join("state");
    let url = planctl_server::database::status(&state, &Postgres::default()).unwrap().url;
    let mut daemon = Daemon::start(&bench.place.join("daemon"), &url);
    daemon.await_ready();
    idle_queue(bench, &daemon, true).await;
    idle_queue(bench, &daemon, false).await;
    one_worker(bench, &daemon).await;
    many_runs(bench, &daemon, "(a daemon's connections are used for the first time)", 8, 20).await;
    many_runs(bench, &daemon, "50 runs x 20 steps, 8 workers over HTTP", 50, 20).await;
    many_runs(bench, &daemon, "50 runs x 100 steps, 8 workers over HTTP, sustained", 50, 100).await;
    deaths(bench, &mut daemon).await;
}

/// Makes one item ready after another for one worker that waits: its holder gives it back, by a call to the daemon or in another
/// process.
async fn idle_queue(bench: &Bench, daemon: &Daemon, elsewhere: bool) {
    let mut floor = Floor::connect(bench.server_node.store()).await;
    let (mut waits, mut floors) = (Vec::new(), Vec::new());
    for number in 0..IDLE_ITEMS {
        let run = bench.active(&format!("idle-{elsewhere}-{number}"), 1).await;
        let holder = if elsewhere {
            IdleHolder::Elsewhere(Box::new(bench.claimed(run).await))
        } else {
            let mut client = Client::new(&daemon.socket());
            let claimed = client.claimed();
            IdleHolder::Client(client, claimed)
        };
        let socket = daemon.socket();
        let worker = std::thread::spawn(move || {
            let mut client = Client::new(&socket);
            let claimed = client.claimed();
            let started = Instant::now();
            assert!(client.complete(&claimed));
            started
        });
        // Long enough for the worker to wait at the daemon.
        tokio::time::sleep(Duration::from_millis(30)).await;
        match holder {
            IdleHolder::Elsewhere(held) => {
                let released = AgentEvent::new(held.item.at.clone(), AgentSaid::Released);
                let store = bench.server_node.store();
                store.apply(run, &Event::Agent(released), &held.proof(), None).await.unwrap();
            }
            IdleHolder::Client(mut client, claimed) => client.release(&claimed),
        }
        let ready = Instant::now();
        await_end(bench, run).await;
        waits.push(worker.join().unwrap().saturating_duration_since(ready));
        if number % 5 == 0 {
            floors.push(floor_once(&mut floor).await);
        }
    }
    let name = if elsewhere {
        "item ready by another process -> worker started"
    } else {
        "item ready -> worker started, idle queue, over HTTP"
    };
    print(name, &mut waits, Some(&mut floors));
}

/// The holder of the item for which a worker waits.
enum IdleHolder {
    Elsewhere(Box<Claimed>),
    Client(Client, Value),
}

/// Has one worker do the steps of one run, and measures each from its item to the next one.
async fn one_worker(bench: &Bench, daemon: &Daemon) {
    let mut floor = Floor::connect(bench.server_node.store()).await;
    let run = bench.active("one-worker", ONE_WORKER_STEPS).await;
    let mut client = Client::new(&daemon.socket());
    let (mut steps, mut floors) = (Vec::new(), Vec::new());
    let mut claimed = client.claimed();
    for number in 1..ONE_WORKER_STEPS {
        let started = Instant::now();
        assert!(client.complete(&claimed));
        claimed = client.claimed();
        steps.push(started.elapsed());
        if number % 5 == 0 {
            floors.push(floor_once(&mut floor).await);
        }
    }
    assert!(client.complete(&claimed));
    await_end(bench, run).await;
    print("a step of the only worker over HTTP", &mut steps, Some(&mut floors));
}

/// Lets many runs go on at once.
async fn many_runs(bench: &Bench, daemon: &Daemon, name: &str, runs: usize, steps: u32) {
    let mut active = Vec::new();
    for number in 0..runs {
        active.push(bench.active(&format!("{}-{number}", name.replace([' ', ','], "-")), steps).await);
    }
    let limit_before = bench.limit().await;
    let (sender, receiver) = mpsc::channel();
    let workers = Workers::start(WORKERS, &daemon.socket(), &sender);
    // Often enough to be right to a hundredth at 200 steps per second, and seldom enough to leave the machine to what is measured.
    let look = Duration::from_millis(runs as u64 * u64::from(steps) / 20);
    let begun = Instant::now();
    for run in &active {
        while !has_ended(bench, *run).await {
            tokio::time::sleep(look).await;
        }
    }
    let whole = begun.elapsed();
    let reports = workers.reports.load(Ordering::Relaxed);
    drop((workers, receiver));
    let limit = f64::midpoint(limit_before, bench.limit().await);
    let rate = reports as f64 / whole.as_secs_f64();
    println!("{name:<52} {:>8} {:>8} {rate:>8.0}    {:.0} % of {limit:.0}", "", "", 100.0 * rate / limit);
}

/// Kills the daemon in the middle of a run, which is started again, and looks when the next step passes.
async fn deaths(bench: &Bench, daemon: &mut Daemon) {
    let (sender, receiver) = mpsc::channel();
    let workers = Workers::start(2, &daemon.socket(), &sender);
    let mut spans = Vec::new();
    for number in 0..DEATHS {
        let run = bench.active(&format!("death-{number}"), 200).await;
        // At another moment of a step each time.
        await_seq(bench, run, 60 + 7 * number as i64).await;
        let died = Instant::now();
        daemon.kill_and_start();
        let seq = bench.server_node.store().run(run).await.unwrap().seq;
        // A report, its gate and the next item: something has passed since.
        await_seq(bench, run, seq + 8).await;
        spans.push(died.elapsed());
        await_end(bench, run).await;
    }
    drop((workers, receiver));
    print("kill -9 of the daemon -> its run goes on", &mut spans, None);
}

async fn await_seq(bench: &Bench, run: RunId, seq: i64) {
    while bench.server_node.store().run(run).await.unwrap().seq < seq {
        tokio::time::sleep(LOOK).await;
    }
}

async fn await_end(bench: &Bench, run: RunId) {
    let listener = bench.server_node.listen(run);
    while !has_ended(bench, run).await {
        tokio::select! {
            () = listener.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

async fn has_ended(bench: &Bench, run: RunId) -> bool {
    matches!(bench.server_node.store().run(run).await.unwrap().head.status, RunStatus::Ended { .. })
}

impl Bench {
    /// Claims the work of a run in this process.
    async fn claimed(&self, run: RunId) -> Claimed {
        let claim = Claim {
            lane: ClaimLane::Agent(vec![Role::new("coder")]),
            run: Some(run),
            except: Vec::new(),
            holder: Holder {
                host: self.server_node.host().to_owned(),
                boot: String::new(),
                instance: "bench".to_owned(),
                own: false,
            },
            lease: Duration::from_secs(60),
        };
        self.server_node.store().claim(&claim).await.unwrap().unwrap()
    }

    /// Makes a run and waits until a daemon has given it its turn.
    async fn active(&self, name: &str, steps: u32) -> RunId {
        let run = self.queued(name, steps, None).await;
        while self.server_node.store().run(run).await.unwrap().head.status != RunStatus::Active {
            tokio::time::sleep(LOOK).await;
        }
        run
    }
}
