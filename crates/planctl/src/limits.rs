//! planctl's needs of the system's limits, reported before something fails for want of it (row 113).

use rustix::process::{Resource, getrlimit};

use crate::failure::{Exit, Failure};

/// How many files must be open at once: a database, a helper with its pipes, a worker's streams.
const FILES: u64 = 64;

/// Takes as many open files as the system grants; planctl's children have as many as planctl was given.
///
/// # Errors
///
/// Says which limit is too low, and how to raise it.
pub fn raise_limits() -> Result<(), Failure> {
    // Where more is not to be had, what there is may do.
    let has = planctl_harness::raise_open_files()
        .unwrap_or_else(|_| getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
    if has >= FILES {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Unavailable,
        format!("could not start: this process may have {has} files open at once, and planctl needs {FILES}"),
    )
    .help(format!("raise the limit: ulimit -n {}, or LimitNOFILE= of the service", FILES * 16)))
}
