//! Whether a person gives a command, or a process that a worker started.

use crate::failure::{Exit, Failure};

/// Refuses to decide inside a worker: no agent approves its own plan or escalation (P-28, A34).
///
/// # Errors
///
/// Exit 77.
pub fn must_be_human(what: &str) -> Result<(), Failure> {
    if !is_in_worker() {
        return Ok(());
    }
    let whose =
        if is_in_planctls_worker() { "a worker's process" } else { "inside a session that planctl holds" };
    Err(Failure::new(Exit::Denied, format!("could not {what}: this is {whose}"))
        .help("a person decides, in a terminal of their own"))
}

/// Says whether a worker, a contract or a held session's agent started this process.
pub fn is_in_worker() -> bool {
    is_in_planctls_worker()
        || planctl_server::database::state_dir()
            .is_ok_and(|dir| planctl_harness::is_inside_session(own_pid(), &dir))
}

/// Says whether a worker or a contract started this process: its parents tell, also where the variable was unset.
fn is_in_planctls_worker() -> bool {
    std::env::var_os("PLANCTL_ITEM_ID").is_some() || planctl_harness::is_inside_worker(own_pid())
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
