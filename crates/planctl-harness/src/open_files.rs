//! How many files may be open at once: many in planctl, and in what it starts as many as planctl was given.
//!
//! A daemon has a connection for each client. A program that it starts may rely on few numbers of files (`select` takes
//! 1024), or look at each number up to the limit, so it has the limit that planctl was started with.

use std::ffi::OsString;
use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most that planctl takes, where the system grants any number.
const FILES_MAX: u64 = 65_536;

/// The limit of planctl's child processes, where planctl's own is another.
static OF_CHILDREN: OnceLock<u64> = OnceLock::new();

/// Takes as many open files as the system grants, for this process alone; returns how many that are.
///
/// # Errors
///
/// Those of `setrlimit`; the limit then stays as it was.
pub fn raise_open_files() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (given, wanted) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX).min(FILES_MAX));
    if given >= wanted {
        return Ok(given);
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })?;
    OF_CHILDREN.get_or_init(|| given);
    Ok(wanted)
}

/// Returns what tells the helper of the limit that it shall have.
pub(crate) fn helper_argument() -> Option<OsString> {
    OF_CHILDREN.get().map(|files| files.to_string().into())
}

/// Takes, in the helper, the limit that was passed on to it, for itself and all that it starts.
pub(crate) fn take_from(argument: Option<OsString>) {
    let files = argument.and_then(|argument| argument.to_str()?.parse().ok());
    if let Some(files) = files {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // A limit can always be lowered.
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum }).ok();
    }
}

/// Returns true if a call failed since the machine, or this process, has no more of something that others give back.
pub(crate) fn is_shortage(errno: Option<i32>) -> bool {
    use nix::libc::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    errno.is_some_and(|errno| [EMFILE, ENFILE, EAGAIN, ENOMEM].contains(&errno))
}
