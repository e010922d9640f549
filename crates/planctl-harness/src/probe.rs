//! Finds out what is true of a workspace, for verification to compare the plan with; runs nothing of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::beneath::{LastLink, Root, Unreadable, kind_word};
use crate::process::{Command, End, Input, find_program};
use crate::spawn::Spawner;
use crate::walk::list_files;

/// How many scripts are checked at once.
const CHECKS_AT_ONCE: usize = 4;
/// How long one check of a script may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The kind of entry that a path in the workspace names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A regular file.
    Regular {
        /// Its size in bytes.
        bytes: u64,
        /// How many names it has.
        links: u64,
    },
    /// A folder.
    Directory,
    /// Something that leads out of the workspace.
    Outside {
        /// Where the symlink points, if it is one.
        target: Option<PathBuf>,
    },
    /// Neither file nor folder: `named pipe`, `device`, `socket`.
    Special(&'static str),
    /// It cannot be looked at.
    Unreadable {
        /// Why.
        reason: String,
    },
}

/// Tells what each path is; paths are relative to the workspace, and nothing outside is looked at.
///
/// # Errors
///
/// When the workspace cannot be opened.
pub fn probe_paths<'a>(
    workspace: &Path,
    paths: impl IntoIterator<Item = &'a str>,
) -> io::Result<BTreeMap<String, PathKind>> {
    let root = Root::open(workspace)?;
    Ok(paths.into_iter().map(|path| (path.to_owned(), kind(workspace, &root, path))).collect())
}

fn kind(workspace: &Path, root: &Root, path: &str) -> PathKind {
    match root.open_file(Path::new(path), LastLink::Follow) {
        Ok(file) => match file.metadata() {
            Ok(found) => {
                PathKind::Regular { bytes: found.len(), links: std::os::unix::fs::MetadataExt::nlink(&found) }
            }
            Err(error) => PathKind::Unreadable { reason: error.to_string() },
        },
        Err(Unreadable::Missing) => PathKind::Missing,
        Err(Unreadable::Outside | Unreadable::Symlink) => {
            PathKind::Outside { target: std::fs::read_link(workspace.join(path)).ok() }
        }
        Err(Unreadable::NotRegular("directory")) => PathKind::Directory,
        Err(Unreadable::NotRegular(word)) => PathKind::Special(word),
        Err(error @ (Unreadable::ForeignHardLink | Unreadable::TooLarge { .. })) => {
            PathKind::Unreadable { reason: error.to_string() }
        }
        Err(Unreadable::Refused(error)) => {
            // Opening failed; its kind can be told all the same.
            match std::fs::symlink_metadata(workspace.join(path)) {
                Ok(found) if !found.is_file() && !found.is_dir() && !found.is_symlink() => {
                    PathKind::Special(kind_word(found.file_type()))
                }
                Ok(_) | Err(_) => PathKind::Unreadable { reason: error.to_string() },
            }
        }
    }
}

/// Reads the texts of files in the workspace; left out are those that are larger than this, no UTF-8, or can't be read.
///
/// # Errors
///
/// When the workspace cannot be opened.
pub fn probe_texts<'a>(
    workspace: &Path,
    paths: impl IntoIterator<Item = &'a str>,
    bytes_max: u64,
) -> io::Result<BTreeMap<String, String>> {
    let root = Root::open(workspace)?;
    let text = |path: &'a str| {
        let file = root.open_file(Path::new(path), LastLink::Follow).ok()?;
        let is_small = file.metadata().ok()?.len() <= bytes_max;
        let mut text = String::new();
        is_small.then(|| file.take(bytes_max).read_to_string(&mut text).ok()).flatten()?;
        Some((path.to_owned(), text))
    };
    Ok(paths.into_iter().filter_map(text).collect())
}

/// Lists existing files, without those of builds and dependencies.
pub fn existing_files(workspace: &Path) -> Vec<String> {
    list_files(workspace, 20_000).files
}

/// Tells which of the commands exist in the folders of `path`; a command with a slash is looked for in the workspace.
pub fn probe_commands<'a>(
    workspace: &Path,
    path: &OsStr,
    commands: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, bool> {
    let exists = |command: &str| {
        if command.contains('/') {
            crate::process::is_executable(&workspace.join(command))
        } else {
            find_program(OsStr::new(command), path).is_some()
        }
    };
    commands.into_iter().map(|command| (command.to_owned(), exists(command))).collect()
}

/// The answer of bash about a script that it does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// It reads it.
    Accepted,
    /// It refuses it.
    Refused {
        /// Its message, without its own name.
        message: String,
        /// The line of the script, from 1, where it says so.
        line: Option<u32>,
    },
    /// It could not be asked.
    Unchecked {
        /// Why.
        reason: String,
    },
}

/// Asks `bash -n` about each script; a few at a time, in a process each, with the script on standard input.
pub async fn probe_scripts(spawner: &Spawner, scripts: BTreeSet<String>) -> BTreeMap<String, Syntax> {
    let mut waiting: Vec<String> = scripts.into_iter().collect();
    let mut running = JoinSet::new();
    let mut found = BTreeMap::new();
    loop {
        while running.len() < CHECKS_AT_ONCE
            && let Some(script) = waiting.pop()
        {
            let spawner = spawner.clone();
            running.spawn(async move {
                let syntax = check_syntax(&spawner, &script).await;
                (script, syntax)
            });
        }
        match running.join_next().await {
            None => return found,
            Some(Ok((script, syntax))) => {
                found.insert(script, syntax);
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

async fn check_syntax(spawner: &Spawner, script: &str) -> Syntax {
    let mut command = Command::new(["/bin/bash", "--noprofile", "--norc", "-p", "-n"], "/");
    command.environment = vec![("LANG".into(), "C.UTF-8".into()), ("LC_MESSAGES".into(), "C".into())];
    command.input = Input::Bytes(script.as_bytes().to_vec());
    command.deadline = Some(CHECK_TIMEOUT);
    command.grace = Duration::ZERO;
    let finished = match spawner.run(&command, &mut |_, _| (), std::future::pending()).await {
        Ok(finished) => finished,
        Err(error) => return Syntax::Unchecked { reason: error.to_string() },
    };
    let said = String::from_utf8_lossy(&finished.stderr.joined()).into_owned();
    match finished.end {
        End::Exited(0) if said.is_empty() => Syntax::Accepted,
        End::Exited(_) => parse_syntax_error(&said),
        End::Signalled(_)
        | End::TimedOut
        | End::IdleTimedOut
        | End::Flooded
        | End::OverLimit(_)
        | End::Cancelled
        | End::NotStarted { .. }
        | End::HelperLost => Syntax::Unchecked { reason: format!("bash -n ended as {:?}", finished.end) },
    }
}

/// Reads `/bin/bash: line 3: syntax error near unexpected token …`.
fn parse_syntax_error(said: &str) -> Syntax {
    let first = said.lines().next().unwrap_or_default();
    let after_name = first.strip_prefix("/bin/bash: ").unwrap_or(first);
    let located = after_name.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match located.and_then(|(line, message)| Some((line.parse().ok()?, message))) {
        Some((line, message)) => Syntax::Refused { message: message.to_owned(), line: Some(line) },
        None => Syntax::Refused { message: after_name.to_owned(), line: None },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn rows_47_49_50_51_each_kind_of_path_is_told_apart() {
        let outer = tempfile::tempdir().unwrap();
        let workspace = outer.path().join("workspace");
        std::fs::create_dir_all(workspace.join("folder")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        std::fs::write(workspace.join("plain"), "plain").unwrap();
        std::fs::hard_link(workspace.join("plain"), workspace.join("again")).unwrap();
        symlink("../secret", workspace.join("out")).unwrap();
        symlink("plain", workspace.join("inner")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("fifo"), rustix::fs::Mode::RUSR).unwrap();
        std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
        std::fs::File::create(workspace.join("large")).unwrap().set_len(1 << 30).unwrap();
        let paths = [
            "plain",
            "inner",
            "folder",
            "out",
            "../secret",
            "/etc/passwd",
            "fifo",
            "socket",
            "none",
            "large",
        ];
        let kinds = probe_paths(&workspace, paths).unwrap();
        let regular = PathKind::Regular { bytes: 5, links: 2 };
        assert_eq!((&kinds["plain"], &kinds["inner"]), (&regular, &regular));
        assert_eq!(kinds["folder"], PathKind::Directory);
        assert_eq!(kinds["out"], PathKind::Outside { target: Some("../secret".into()) });
        assert_eq!(kinds["../secret"], PathKind::Outside { target: None });
        assert_eq!(kinds["/etc/passwd"], PathKind::Outside { target: None });
        assert_eq!(kinds["fifo"], PathKind::Special("named pipe"));
        assert_eq!(kinds["socket"], PathKind::Special("socket"));
        assert_eq!(kinds["none"], PathKind::Missing);
        assert_eq!(kinds["large"], PathKind::Regular { bytes: 1 << 30, links: 1 });
    }

    #[test]
    fn commands_are_looked_for_on_the_contracts_path_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("check.sh"), "").unwrap();
        std::fs::write(folder.path().join("run.sh"), "").unwrap();
        std::fs::set_permissions(
            folder.path().join("run.sh"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let commands = ["grep", "no-such-tool", "./run.sh", "./check.sh", "/bin/bash", "run.sh"];
        let found = probe_commands(folder.path(), OsStr::new("/usr/bin:/bin:."), commands);
        let exist: Vec<_> =
            found.iter().filter(|(_, exists)| **exists).map(|(name, _)| name.as_str()).collect();
        assert_eq!(exist, ["./run.sh", "/bin/bash", "grep"]);
    }

    #[test]
    fn bashs_message_is_read_with_its_line() {
        assert_eq!(
            parse_syntax_error(
                "/bin/bash: line 3: syntax error near unexpected token `fi'\n/bin/bash: line 3: `fi'\n"
            ),
            Syntax::Refused { message: "syntax error near unexpected token `fi'".into(), line: Some(3) }
        );
        assert_eq!(parse_syntax_error("odd\n"), Syntax::Refused { message: "odd".into(), line: None });
    }
}
