//! Keeps what this process knows from workers of the same user: it is not dumpable, and its environment shows nothing.
//!
//! A worker reads `/proc/PID/environ` and the memory of every process of its user that is dumpable. Not
//! dumpable, neither opens; the environment is wiped as well, for those whom the kernel lets through, such as root.

use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use nix::unistd::{User, geteuid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::show::{self, CARE, styled};

/// Variables that no child process is to inherit, kept from the start of this one.
static KEPT: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// The names of those variables.
const SECRETS: [&str; 2] = ["PLANCTL_TOKEN", "PLANCTL_DATABASE_URL"];

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// Makes the memory and the files of this process closed to other processes of its user.
pub fn hide_process() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        // Nothing that is typed helps, and the work does not depend on it.
        tracing::debug!(%error, "this process stays dumpable");
    }
}

/// Lets a daemon on a port find this process: it looks who has the connection among the open files of its own user's
/// processes, which it can't where one is not dumpable, and would take a person for a worker.
pub fn make_dumpable() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::Dumpable) {
        tracing::debug!(%error, "this process stays hidden");
    }
}

/// Commands that start workers and contracts.
const STARTS_WORK: [&str; 6] = ["plan run", "plan resume", "worker run", "daemon run", "daemon start", "dev"];

/// Says once, where work is started as root, what that means.
pub fn warn_of_root(command: &str, is_json: bool) {
    if rustix::process::geteuid().is_root() && STARTS_WORK.contains(&command) {
        let what = "planctl runs as root, and so do workers and contracts that nothing confines: use a user of its own";
        if is_json {
            tracing::warn!("{what}");
        } else {
            show::tell(&styled(CARE, &format!("warning: {what}")));
        }
    }
}

/// Wipes the environment as the kernel shows it; call it first of all, while there is one thread.
///
/// Children keep the variables, without planctl's token and database.
pub fn wipe_environment() {
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    // SAFETY: there is one thread. Each entry is a writable string that the kernel laid out, and only its bytes before the
    // NUL are written. Code that reads the environment afterwards finds the copies that are set below.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let length = CStr::from_ptr(*entry).count_bytes();
            std::ptr::write_bytes(*entry, 0, length);
            entry = entry.add(1);
        }
    }
    let mut kept = Vec::new();
    for (name, value) in variables {
        let is_secret = SECRETS.iter().any(|secret| name == *secret);
        if is_secret {
            kept.push((name, value));
        } else if !name.is_empty() && !name.as_bytes().contains(&b'=') {
            // SAFETY: there is one thread.
            unsafe { std::env::set_var(name, value) };
        }
    }
    KEPT.get_or_init(|| kept);
}

/// Sets `HOME` by the system's list of users where it is not set, as by systemd for a service of root; call it while there is one
/// thread. By it planctl knows which credentials to hide.
pub fn set_missing_home() {
    if std::env::var_os("HOME").is_some_and(|home| Path::new(&home).is_absolute()) {
        return;
    }
    if let Ok(Some(user)) = User::from_uid(geteuid()) {
        // SAFETY: there is one thread.
        unsafe { std::env::set_var("HOME", user.dir) };
    }
}

/// Returns a variable of the environment that this process was started with.
pub fn variable(name: &str) -> Option<OsString> {
    let kept = KEPT.get().and_then(|kept| kept.iter().find(|(known, _)| known == name));
    kept.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}
