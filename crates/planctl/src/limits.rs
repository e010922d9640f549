//! What planctl needs of the system's limits, said before something fails for want of it (row 113).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::{Exit, Failure};

/// How many files must be open at once: a database, a helper with its pipes, a worker's streams.
const FILES: u64 = 64;

/// Takes as many open files as the system grants.
///
/// # Errors
///
/// Says which limit is too low, and how to raise it.
pub fn enough() -> Result<(), Failure> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|files| files >= FILES) {
        return Ok(());
    }
    if maximum.is_none_or(|files| files >= FILES) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum });
        if raised.is_ok() {
            return Ok(());
        }
    }
    let has = current.unwrap_or_default();
    Err(Failure::new(
        Exit::Unavailable,
        format!("could not start: this process may have {has} files open at once, and planctl needs {FILES}"),
    )
    .help(format!("raise the limit: ulimit -n {}, or LimitNOFILE= of the service", FILES * 16)))
}
