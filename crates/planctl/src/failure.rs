//! How a command ends: the exit codes of the whole tool, and failures that say what to type next (INTERFACE 2.4).

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// The answer of a command to the script that called it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Verified, done, recorded.
    Yes = 0,
    /// Findings at error level, a failed run.
    No = 1,
    /// The command itself is wrong.
    Usage = 2,
    /// A person has to answer.
    Waiting = 3,
    /// There is no such plan, run, step or ask.
    NotFound = 4,
    /// The plan changed since its approval, or someone has decided already.
    Conflict = 5,
    /// The budget does not suffice.
    Budget = 6,
    /// A person cancelled or aborted it.
    Cancelled = 7,
    /// It goes on.
    InProgress = 8,
    /// There is nothing to do: no work to claim, no channel to test.
    Nothing = 10,
    /// The arguments of a tool don't fit.
    Data = 65,
    /// The database, or a server, can't be reached.
    Unavailable = 69,
    /// It may work later.
    Temporary = 75,
    /// A server of tools breaks its protocol.
    Protocol = 76,
    /// This may not be done from here.
    Denied = 77,
    /// The configuration is wrong.
    Configuration = 78,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// All codes, in order.
    pub const ALL: [Exit; 18] = [
        Exit::Yes,
        Exit::No,
        Exit::Usage,
        Exit::Waiting,
        Exit::NotFound,
        Exit::Conflict,
        Exit::Budget,
        Exit::Cancelled,
        Exit::InProgress,
        Exit::Nothing,
        Exit::Data,
        Exit::Unavailable,
        Exit::Temporary,
        Exit::Protocol,
        Exit::Denied,
        Exit::Configuration,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// Returns the number the process exits with.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns what it means, and what a script does about it.
    pub fn meaning(self) -> (&'static str, &'static str) {
        match self {
            Exit::Yes => ("yes: verified, run done, decision recorded", "go on"),
            Exit::No => {
                ("no: findings at error level, run failed, result not to be merged", "read the report")
            }
            Exit::Usage => ("usage error, or a name that no file can have", "fix the command"),
            Exit::Waiting => ("waiting for a human", "planctl approvals"),
            Exit::NotFound => ("not found: plan, run, step, ask, file, folder", "planctl ls"),
            Exit::Conflict => (
                "conflict: plan changed since approval, already decided, or the lease was lost",
                "read again, decide again",
            ),
            Exit::Budget => ("stopped by budget", "planctl approvals raise"),
            Exit::Cancelled => ("cancelled or aborted by a human", "-"),
            Exit::InProgress => ("still in progress (status RUN --exit-code)", "poll"),
            Exit::Nothing => (
                "nothing to do: no work to claim (item claim), no channel to test (notify test)",
                "ask again later, or set a channel up",
            ),
            Exit::Data => ("the arguments of a tool don't fit (tool call)", "mend the arguments"),
            Exit::Unavailable => ("database or server unavailable", "planctl db status"),
            Exit::Temporary => ("temporary trouble, such as a full disk", "try again"),
            Exit::Protocol => ("a server breaks its protocol (tool call)", "mend the server"),
            Exit::Denied => ("not permitted: a decision, or a file or folder", "ask the owner"),
            Exit::Configuration => {
                ("bad configuration, or a database that this planctl can't use", "fix what is named")
            }
            Exit::Interrupted => ("interrupted; a run that was worked on is stopped", "planctl resume RUN"),
            Exit::Terminated => ("terminated; a run that was worked on is stopped", "planctl resume RUN"),
        }
    }
}

/// The failure of a command: the event and its place, and the next command to type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// The event, and its place.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// How to mend it for a person at the page, where that differs: a browser has no flags.
    pub page_help: Option<String>,
    /// The command to type next.
    pub next: Option<String>,
    /// The file that has to be mended, where it is a configuration.
    pub file: Option<Box<PathBuf>>,
}

impl Failure {
    /// Makes a failure from what happened.
    pub fn new(exit: Exit, message: impl Display) -> Failure {
        Failure { exit, message: message.to_string(), help: None, page_help: None, next: None, file: None }
    }

    /// Makes a failure of something that was named and is not there.
    pub fn not_found(message: impl Display) -> Failure {
        Failure::new(Exit::NotFound, message)
    }

    /// Makes a failure of a command that is wrong in itself.
    pub fn usage(message: impl Display) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Makes a failure of a name, safe to be shown, that is not text; the records of plans and workspaces are text.
    pub fn not_text(name: &str) -> Failure {
        Failure::usage(format!("could not use {name}: its name is not UTF-8, so planctl can't record it"))
            .help("rename it")
    }

    /// Makes a failure of what the file system refused, such as `write plans/fix.md`.
    pub fn of_io(what: impl Display, error: &io::Error) -> Failure {
        let said = error.to_string();
        // A draft has a name that nobody knows.
        let said = said.split_once(" at path \"").map_or(said.as_str(), |(said, _)| said);
        Failure::new(exit_of_io(error.kind()), format!("could not {what}: {said}"))
    }

    /// Does the same of a file in the state directory.
    pub fn of_state(what: impl Display, error: &io::Error) -> Failure {
        let failure = Failure::of_io(what, error);
        if failure.exit == Exit::Denied { failure.help(STATE_HELP) } else { failure }
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Display) -> Failure {
        self.help = Some(help.to_string());
        self
    }

    /// Says how a person at the page mends it.
    #[must_use]
    pub fn page_help(mut self, help: impl Display) -> Failure {
        self.page_help = Some(help.to_string());
        self
    }

    /// Says which command lists what is there, where something is not found and nothing says more.
    #[must_use]
    pub fn or_list(self, command: impl Display) -> Failure {
        let is_bare = self.exit == Exit::NotFound && self.help.is_none() && self.next.is_none();
        if is_bare { self.next(command) } else { self }
    }

    /// Says which command to type next.
    #[must_use]
    pub fn next(mut self, command: impl Display) -> Failure {
        self.next = Some(command.to_string());
        self
    }
}

/// Returns the exit code of a command for which a file could not be read or written.
pub fn exit_of_io(kind: ErrorKind) -> Exit {
    const DENIED: [ErrorKind; 2] = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
    const MISNAMED: [ErrorKind; 4] = [
        ErrorKind::NotADirectory,
        ErrorKind::IsADirectory,
        ErrorKind::AlreadyExists,
        ErrorKind::InvalidFilename,
    ];
    if DENIED.contains(&kind) {
        Exit::Denied
    } else if kind == ErrorKind::NotFound {
        Exit::NotFound
    } else if MISNAMED.contains(&kind) {
        Exit::Usage
    } else {
        Exit::Temporary
    }
}

/// The way on where the state directory may not be used.
const STATE_HELP: &str =
    "it may be another user's, or read-only; set PLANCTL_STATE_DIR to a directory of your own";

/// The result of every command.
pub type Answer = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_table_and_never_those_of_others() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 65, 69, 75, 76, 77, 78, 130, 143]);
        assert!(!codes.contains(&101), "a panic has its own code");
    }
}
