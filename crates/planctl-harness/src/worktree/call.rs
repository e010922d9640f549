//! Starts git: with nothing of planctl's own environment, no hook, no prompt, and no program that a repository names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use super::WorktreeError;
use crate::environment::{Inherited, PATH_DEFAULT, agent_environment, safe_path, set};
use crate::process::{Command, End, Stream};
use crate::spawn::Spawner;

/// How long one call may take; making the files of a large repository is the longest.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// How long git may go on where planctl is gone: killed, it leaves its locks in the user's repository, and asked to end
/// once in a while, too.
const FAREWELL: Duration = Duration::from_secs(2);
/// The most that is read of what git prints.
const PRINTED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most that is told of what git complained about.
const SAID_BYTES_MAX: usize = 2048;

/// Settings that hold for every call, whatever the repository's own say.
const SETTINGS: [(&str, &str); 11] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("merge.conflictStyle", "merge"),
    ("submodule.recurse", "false"),
    ("advice.detachedHead", "false"),
    ("worktree.guessRemote", "false"),
];

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// Its exit status.
    pub(crate) status: i32,
    /// What it printed.
    pub(crate) printed: Vec<u8>,
    /// What it complained about: the end of it, without line ends around.
    pub(crate) said: String,
}

impl Called {
    /// Returns what it printed as one line.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.printed).trim().to_owned()
    }

    /// Returns what it printed between NUL bytes. File names in it are bytes, as everywhere in git and Unix.
    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.printed.split(|byte| *byte == 0).filter(|record| !record.is_empty())
    }
}

/// Calls git in a folder and returns how it ended, whatever its status.
///
/// # Errors
///
/// [`WorktreeError::NoGit`], and [`WorktreeError::Git`] where the call did not come to an end of its own.
pub(super) async fn call<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    call_on(spawner, folder, None, arguments).await
}

/// Calls git in a folder, on another index than the folder's own where one is named.
///
/// # Errors
///
/// Those of [`call`].
pub(super) async fn call_on<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    index: Option<&Path>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let what = format!("git {}", verbs(&arguments, 1));
    let mut command = Command::new([OsString::from("git")].into_iter().chain(arguments), folder);
    command.environment = environment(folder);
    if let Some(index) = index {
        set(&mut command.environment, "GIT_INDEX_FILE".into(), index.into());
    }
    command.deadline = Some(DEADLINE);
    command.farewell = FAREWELL;
    let mut printed = Vec::new();
    let mut is_cut = false;
    let mut watch = |stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            is_cut |= printed.len() + bytes.len() > PRINTED_BYTES_MAX;
            if !is_cut {
                printed.extend_from_slice(bytes);
            }
        }
    };
    let finished = spawner.run(&command, &mut watch, std::future::pending()).await;
    let finished = finished.map_err(|source| WorktreeError::Io { what: what.clone(), source })?;
    let said = String::from_utf8_lossy(&finished.stderr.last(SAID_BYTES_MAX)).trim().to_owned();
    match finished.end {
        _ if is_cut => Err(WorktreeError::Git { what, said: "it printed more than 64 MiB".to_owned() }),
        End::Exited(status) => Ok(Called { status, printed, said }),
        End::NotStarted { errno, .. } if errno == nix::libc::ENOENT => Err(WorktreeError::NoGit),
        End::NotStarted { errno, .. } => {
            Err(WorktreeError::Git { what, said: std::io::Error::from_raw_os_error(errno).to_string() })
        }
        End::TimedOut => Err(WorktreeError::Git { what, said: "it took more than 15 minutes".to_owned() }),
        End::Signalled(_) | End::IdleTimedOut | End::Flooded | End::Cancelled | End::HelperLost => {
            Err(WorktreeError::Git { what, said: "it was ended before it was done".to_owned() })
        }
    }
}

/// Calls git in a folder, where any status but 0 is an error.
///
/// # Errors
///
/// Those of [`call`], and [`WorktreeError::Git`] with git's own complaint.
pub(crate) async fn call_well<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    call_well_on(spawner, folder, None, arguments).await
}

/// Calls git as [`call_on`] does, where any status but 0 is an error.
///
/// # Errors
///
/// Those of [`call_well`].
pub(super) async fn call_well_on<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    index: Option<&Path>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let what = format!("git {}", verbs(&arguments, 2));
    let called = call_on(spawner, folder, index, arguments).await?;
    if called.status == 0 {
        return Ok(called);
    }
    let said = match called.said.is_empty() {
        false => called.said,
        true => format!("it exited with {}", called.status),
    };
    Err(WorktreeError::Git { what, said })
}

/// Returns the first words of a call, without the options before its verb.
fn verbs(arguments: &[OsString], count: usize) -> String {
    let words = arguments.iter().map(|word| word.to_string_lossy());
    words.skip_while(|word| word.starts_with("--")).take(count).collect::<Vec<_>>().join(" ")
}

/// Returns git's whole environment. Of the user's own variables it gets those that say who they are and where their
/// configuration is; none that starts with `GIT_`, which could lead it to another repository.
fn environment(folder: &Path) -> Vec<(OsString, OsString)> {
    let listed = ["XDG_CONFIG_HOME"].map(str::to_owned).to_vec();
    let mut environment = agent_environment(&Inherited::Listed(listed));
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(PATH_DEFAULT));
    let mut put = |name: &str, value: &OsStr| set(&mut environment, name.into(), value.to_owned());
    put("PATH", &safe_path(&path, folder));
    put("LC_ALL", OsStr::new("C.UTF-8"));
    put("LANGUAGE", OsStr::new("C"));
    put("TERM", OsStr::new("dumb"));
    put("GIT_TERMINAL_PROMPT", OsStr::new("0"));
    // A look at the user's checkout must not write its index.
    put("GIT_OPTIONAL_LOCKS", OsStr::new("0"));
    put("GIT_EDITOR", OsStr::new("true"));
    put("GIT_MERGE_AUTOEDIT", OsStr::new("no"));
    put("GIT_LITERAL_PATHSPECS", OsStr::new("0"));
    put("GIT_CONFIG_COUNT", OsStr::new(&SETTINGS.len().to_string()));
    for (number, (key, value)) in SETTINGS.iter().enumerate() {
        put(&format!("GIT_CONFIG_KEY_{number}"), OsStr::new(key));
        put(&format!("GIT_CONFIG_VALUE_{number}"), OsStr::new(value));
    }
    environment
}

/// Returns a path as git prints it.
pub(super) fn path_of(called: &Called) -> std::path::PathBuf {
    let mut bytes = called.printed.clone();
    while bytes.last().is_some_and(|byte| *byte == b'\n') {
        bytes.pop();
    }
    OsString::from_vec(bytes).into()
}
