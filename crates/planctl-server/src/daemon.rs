//! The daemon: its life from its lock until it leaves, within ten seconds of being asked to, and the loops that it turns.

pub(crate) mod loops;
pub(crate) mod run_loop;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::clock;
use crate::daemon::loops::admit::Runs;
use crate::daemon::loops::agents::Served;
use crate::daemon::loops::gates::Gates;
use crate::daemon::loops::leases::Leases;
use crate::daemon::loops::marks::Marks;
use crate::daemon::loops::messages::Messages;
use crate::daemon::loops::room::watch_room;
use crate::daemon::loops::traces::Tracing;
use crate::daemon::loops::{ExecutorCache, Scope, Shared, Signals, pulse, take_turns};
use crate::http::{self, HttpOptions, Listening, Slots, TakenGate};
use crate::node::doctor::Doctor;
use crate::node::drafter::Drafter;
use crate::node::health::Health;
use crate::node::quarantine::SweepReport;
use crate::node::runtime::stopped;
use crate::node::services::{Caps, ServiceError};
use crate::node::singleton::SingletonLock;
use crate::node::systemd;
use crate::node::{Daemon, ServerNode};
use planctl_api::Next;
use planctl_api::wire::DaemonInfo;
use planctl_config::Agent;

/// The grace period of gates when the daemon is asked to stop. Agents may take hours, so they are ended at once.
const GATES_END_WITHIN: Duration = Duration::from_secs(3);
/// The time after which a process leaves unfinished work behind: the next process finds its leases dead.
pub(crate) const ENDS_WITHIN: Duration = Duration::from_secs(8);
/// When a private Postgres that does not end by itself is killed, so that all of it is over within ten seconds.
const POSTGRES_ENDS_WITHIN: Duration = Duration::from_millis(9500);

/// Options of a daemon that are not stored in the database.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// How many agents work at once.
    pub workers: usize,
    /// How many contracts run at once.
    pub gates: usize,
    /// The agent that serves roles that no run's settings serve.
    pub otherwise: Option<Agent>,
    /// The port to listen on in addition to the socket.
    pub listen: Option<SocketAddr>,
    /// Names by which it may be called on the port, besides loopback's.
    pub hosts: Vec<String>,
    /// From how much on no further run begins.
    pub caps: Caps,
    /// Looks at this machine for the page.
    pub doctor: Option<Doctor>,
    /// Drafts plans for the page.
    pub drafter: Option<Drafter>,
    /// Says what to type for a next step in a workspace: only the command line knows its commands.
    pub command: fn(&Next, &str) -> String,
}

impl Default for DaemonOptions {
    fn default() -> DaemonOptions {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        DaemonOptions {
            workers: 4,
            // Most contracts wait for the disk and for each other more than they compute.
            gates: (cores * 4).max(8),
            otherwise: None,
            listen: None,
            hosts: Vec::new(),
            caps: Caps::default(),
            doctor: None,
            drafter: None,
            command: |_, _| String::new(),
        }
    }
}

/// Serves as a daemon until `stop` resolves, then gives back what it holds (P22) and leaves the database.
///
/// `ready` is called once the daemon takes on work.
///
/// # Errors
///
/// Those that no later try can mend: a schema that another planctl has changed, a state directory that is not in its place any more,
/// and a helper for child processes that can't be started. While the database is away it waits, however long that takes (P12).
pub async fn serve(
    server_node: ServerNode,
    singleton: &SingletonLock,
    options: &DaemonOptions,
    health: &Health,
    ready: impl FnOnce(&DaemonInfo),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let served = serve_at(&server_node, singleton, options, health, ready, stop).await;
    let leaving = served.as_ref().map_or_else(|_| clock::instant(), |(_, leaving)| *leaving);
    server_node.close_within(POSTGRES_ENDS_WITHIN.saturating_sub(leaving.elapsed())).await;
    let (final_word, leaving) = served?;
    tracing::info!("stopped within {:.1} s", leaving.elapsed().as_secs_f64());
    match final_word {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Serves and gives back; returns why it ends where nobody asked it to, and when it began to leave.
async fn serve_at(
    server_node: &ServerNode,
    singleton: &SingletonLock,
    options: &DaemonOptions,
    health: &Health,
    ready: impl FnOnce(&DaemonInfo),
    stop: impl Future<Output = ()>,
) -> Result<(Option<ServiceError>, Instant), ServiceError> {
    // A daemon that can't start child processes can't work on any run.
    server_node.spawner()?;
    server_node.begin_as_daemon(Daemon { serves_all: options.otherwise.is_some() });
    let (signals, seen) = Signals::new();
    let shared = Arc::new(Shared::new(
        server_node.clone(),
        health.clone(),
        ExecutorCache::of_daemon(options.otherwise.clone()),
        Scope::Host,
        seen,
        (options.workers, options.gates),
    ));
    let (slots, taken) = Slots::new(shared.gates.clone());
    let http_options = HttpOptions {
        socket: http::socket_of(server_node.state_dir()),
        listen: options.listen,
        hosts: options.hosts.clone(),
        caps: options.caps,
        health: health.clone(),
        slots: Some(slots),
        doctor: options.doctor.clone(),
        drafter: options.drafter.clone(),
        stop: shared.stop.clone(),
    };
    shared.attend_first().await;
    let listening = Listening::open(server_node.clone(), http_options).await?;
    let info = listening.info();
    singleton.write_info(&info).map_err(ServiceError::io("say where the daemon listens"))?;
    health.set_running();
    systemd::is_ready();
    ready(&info);

    let loops = async {
        tokio::join!(
            http::serve(listening),
            run_taken(&shared, taken),
            take_turns(&shared, Runs::default),
            take_turns(&shared, Gates::default),
            take_turns(&shared, Served::default),
            take_turns(&shared, Leases::default),
            take_turns(&shared, Marks::default),
            take_turns(&shared, || Messages::new(options.command)),
            take_turns(&shared, Tracing::default),
            watch_room(&shared),
        )
    }
    .fuse();
    let asked = async {
        let final_word = tokio::select! {
            () = stop => None,
            error = pulse::watch_health(&shared, singleton) => error,
        };
        health.set_stopping();
        systemd::notify_stopping();
        tracing::info!("stopping");
        signals.stop_claiming();
        signals.stop_agents();
        final_word
    };
    tokio::pin!(loops);
    let final_word = tokio::select! {
        final_word = asked => final_word,
        _ = &mut loops => None,
    };
    let leaving = clock::instant();
    let ended = tokio::time::timeout(ENDS_WITHIN, end_work(loops, &shared, &signals));
    if ended.await.is_err() {
        tracing::warn!("what is still under way is left to the next process");
    }
    Ok((final_word, leaving))
}

/// Runs the gates that the API claimed together with reports.
async fn run_taken(shared: &Arc<Shared>, mut taken: UnboundedReceiver<TakenGate>) {
    let mut stop = shared.stop.clone();
    loop {
        tokio::select! {
            gate = taken.recv() => match gate {
                Some(gate) => shared.spawn_item(gate.claimed, "gates", gate.slot),
                None => return,
            },
            () = stopped(&mut stop) => return,
        }
    }
}

/// Waits for what is under way: agents have received the stop, gates get a grace period. Then runs are told that nobody works on them.
async fn end_work<T>(loops: impl Future<Output = T>, shared: &Shared, signals: &Signals) {
    loops.await;
    if tokio::time::timeout(GATES_END_WITHIN, shared.wait_until_idle()).await.is_err() {
        signals.stop_gates();
        shared.wait_until_idle().await;
    }
    if let Err(error) = shared.server_node.leave(None, &mut SweepReport::default()).await {
        tracing::warn!("runs are not told that this daemon leaves: {error}");
    }
}
