//! The runtime that a process of planctl works in.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::node::services::ServiceError;

/// The most threads of the loops and the API; blocking work has threads of its own.
const THREADS_MAX: usize = 2;

/// Builds the runtime of a process: with half the cores, and two at the most, since the others are for contracts, workers and
/// Postgres, and a thread more only takes turns with them.
///
/// # Errors
///
/// Where the system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(cores.div_ceil(2).min(THREADS_MAX)).enable_all().build()
}

/// Runs work that blocks on the file system on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ServiceError::broken(error.to_string()))
}

/// Resolves when it is said.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
