//! The runtime that a process of planctl works in.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// The most threads that loops and doors share; what blocks has threads of its own.
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
