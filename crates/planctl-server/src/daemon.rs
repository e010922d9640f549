//! The daemon's life: it takes its seat, turns the loops, and leaves within ten seconds when it is asked to.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Semaphore, watch};

use crate::clock;
use crate::config::Agent;
use crate::health::Health;
use crate::loops::gates::Gates;
use crate::loops::leases::Leases;
use crate::loops::marks::Marks;
use crate::loops::runs::Runs;
use crate::loops::served::Served;
use crate::loops::{Crew, Shared, pulse, take_turns};
use crate::seat::Seat;
use crate::services::ServiceError;
use crate::station::Station;
use crate::supervision;
use crate::wire::{DaemonInfo, moment};

/// How long gates may go on when the daemon is asked to stop; agents, who may take hours, are ended at once.
const GATES_END_WITHIN: Duration = Duration::from_secs(3);
/// When the daemon leaves whatever is still under way: the next process finds its leases dead.
const ENDS_WITHIN: Duration = Duration::from_secs(9);

/// What a daemon does beside what the database says.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// How many agents work at once.
    pub workers: usize,
    /// How many contracts run at once.
    pub gates: usize,
    /// What serves roles that no run's settings serve.
    pub otherwise: Option<Agent>,
}

impl Default for DaemonOptions {
    fn default() -> DaemonOptions {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        DaemonOptions { workers: 4, gates: cores.max(4), otherwise: None }
    }
}

/// Returns the path of the socket that the daemon of a state directory listens on.
pub fn socket_of(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.sock")
}

/// Serves as a daemon until `stop` resolves, then gives back what it holds (P22).
///
/// `ready` is called once the daemon takes on work.
///
/// # Errors
///
/// Those that no later try can mend: a schema that another planctl has changed, and a helper for child processes that
/// can't be started. While the database is away it waits, however long that takes (P12).
pub async fn serve(
    station: &Station,
    seat: &Seat,
    options: &DaemonOptions,
    health: &Health,
    ready: impl FnOnce(&DaemonInfo),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    // Whoever can't start child processes is of no use to any run.
    station.spawner()?;
    let (stopping, stop_seen) = watch::channel(false);
    let (cutting, cut_seen) = watch::channel(false);
    let shared = Arc::new(Shared {
        station: station.clone(),
        health: health.clone(),
        crew: Crew::new(options.otherwise.clone()),
        stop: stop_seen,
        cut: cut_seen,
        gates: Arc::new(Semaphore::new(options.gates.max(1))),
        workers: Arc::new(Semaphore::new(options.workers.max(1))),
    });
    // The HTTP layer is joined here: it listens before the daemon says where, and ends with `shared.stop`.
    let info = DaemonInfo {
        pid: std::process::id(),
        socket: socket_of(station.state_dir()).to_string_lossy().into_owned(),
        tcp: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: moment(health.started_at()),
    };
    seat.announce(&info).map_err(ServiceError::io("say where the daemon listens"))?;
    health.begins();
    supervision::is_ready();
    ready(&info);

    let loops = async {
        tokio::join!(
            take_turns(&shared, Runs::default),
            take_turns(&shared, Gates::default),
            take_turns(&shared, Served::default),
            take_turns(&shared, Leases::default),
            take_turns(&shared, Marks::default),
        )
    };
    let asked = async {
        let final_word = tokio::select! {
            () = stop => None,
            error = pulse::feel(&shared) => error,
        };
        health.stops();
        supervision::stops();
        tracing::info!("stopping");
        stopping.send_replace(true);
        final_word
    };
    let loops = loops.fuse();
    tokio::pin!(loops);
    let final_word = tokio::select! {
        final_word = asked => final_word,
        _ = &mut loops => None,
    };
    let leaving = clock::instant();
    let ended = tokio::time::timeout(ENDS_WITHIN, async {
        loops.await;
        end_work(&shared, options, &cutting).await;
    });
    if ended.await.is_err() {
        tracing::warn!("what is still under way is left to the next process");
    }
    tracing::info!("stopped within {:.1} s", leaving.elapsed().as_secs_f64());
    match final_word {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Waits for what is under way: agents have heard the stop, gates get a little time first.
async fn end_work(shared: &Shared, options: &DaemonOptions, cutting: &watch::Sender<bool>) {
    let all = |count: usize| u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    // Neither semaphore is ever closed, so waiting for them can only end well. A gate may follow an agent's work under
    // the agent's permit.
    let over = async || {
        drop(shared.gates.acquire_many(all(options.gates)).await);
        drop(shared.workers.acquire_many(all(options.workers)).await);
    };
    if tokio::time::timeout(GATES_END_WITHIN, over()).await.is_err() {
        cutting.send_replace(true);
        over().await;
    }
}
