//! A planctl that goes on by itself when the one that started it ends: the daemon, started from a terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process with a log file in place of its streams. It lives on when this is dropped.
#[derive(Debug)]
pub struct Detached {
    child: Child,
}

impl Detached {
    /// Starts a program with these arguments and further variables; its output goes to the end of `log`.
    ///
    /// The program itself has to leave the terminal's session, see [`detach_from_terminal`].
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start(
        program: &Path,
        words: &[OsString],
        variables: &[(&str, OsString)],
        log: File,
    ) -> io::Result<Detached> {
        let mut command = Command::new(program);
        command
            .arg0("planctl")
            .args(words)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(Detached { child: command.spawn()? })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says how it ended, if it has.
    ///
    /// # Errors
    ///
    /// When the system doesn't tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

/// Leaves the session of the terminal that this process was started from, so that its signals and its end are none of
/// this process's business.
///
/// # Errors
///
/// Where this process leads a group already.
pub fn detach_from_terminal() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}
