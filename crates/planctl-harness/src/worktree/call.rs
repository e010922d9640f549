//! Starts git: with nothing of planctl's own environment, no hook, no prompt, and no program that a repository names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::WorktreeError;
use super::noted::kept_of;
use crate::blocking::blocking_in_place;
use crate::environment::{PATH_DEFAULT, agent_environment, safe_path, set};
use crate::folder_content::{FolderContent, OldFiles};
use crate::git::clean::{GitFolders, RepositorySettings, add_clean_repository, add_user_settings};
use crate::process::{Command, End, Input, Stream};
use crate::scratch::{GIT_PREFIX, ScratchFolder};
use crate::spawn::Spawner;

/// How long one call may take; making the files of a large repository is the longest.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// How long git may go on where planctl is gone: killed, it leaves its locks in the user's repository, and asked to end
/// once in a while, too.
const GRACE_IF_ABANDONED: Duration = Duration::from_secs(2);
/// The most bytes of git's output that are read.
const PRINTED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most bytes of git's complaint that are told.
const SAID_BYTES_MAX: usize = 2048;

/// Git's folder of a checkout that has no branch of the repository checked out, among the private files.
const DETACHED: &str = "detached";

/// Settings that hold for every call and override the repository's own.
const SETTINGS: [(&str, &str); 15] = [
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("rerere.enabled", "false"),
    ("protocol.ext.allow", "never"),
    ("core.sshCommand", "ssh"),
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
    /// Its output.
    pub(crate) printed: Vec<u8>,
    /// Its complaint: the end of it, without line ends around.
    pub(crate) said: String,
}

impl Called {
    /// Returns what it printed as one line.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).trim().to_owned()
    }

    /// Returns what it printed between NUL bytes. File names in it are bytes, as everywhere in git and Unix.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.printed.split(|byte| *byte == 0).filter(|record| !record.is_empty())
    }
}

/// Git at work in one folder, with a configuration of planctl's own (A10): no hook, filter, driver, watcher or other program
/// that the repository names, before the first call or between two.
pub(crate) struct Git<'a> {
    spawner: &'a Spawner,
    folder: &'a Path,
    environment: Vec<(OsString, OsString)>,
    /// Holds the configuration until the last call is over; git that outlives planctl keeps it locked.
    private: ScratchFolder,
}

impl<'a> Git<'a> {
    /// Prepares calls in a folder, on the repository of the checkout that it lies in.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(crate) fn open(spawner: &'a Spawner, folder: &'a Path) -> Result<Git<'a>, WorktreeError> {
        blocking_in_place(|| {
            let found = GitFolders::find(folder);
            let trusted: Vec<&Path> = found.iter().map(|(_, top)| top.as_path()).collect();
            Git::prepare(spawner, folder, found.as_ref().map(|(folders, _)| folders), &trusted)
        })
    }

    /// Prepares calls that concern no repository of the folder: one that makes a repository, or reads configuration.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(crate) fn without_repository(
        spawner: &'a Spawner,
        folder: &'a Path,
    ) -> Result<Git<'a>, WorktreeError> {
        blocking_in_place(|| Git::prepare(spawner, folder, None, &[]))
    }

    /// Prepares calls on a repository of planctl's own, whose work tree is a folder.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(crate) fn on_repository(
        spawner: &'a Spawner,
        folder: &'a Path,
        git_dir: &Path,
    ) -> Result<Git<'a>, WorktreeError> {
        let mut git = blocking_in_place(|| {
            let folders = GitFolders::of(git_dir.to_owned());
            Git::prepare(spawner, folder, folders.as_ref(), &[])
        })?;
        set(&mut git.environment, "GIT_DIR".into(), git_dir.into());
        set(&mut git.environment, "GIT_WORK_TREE".into(), ".".into());
        Ok(git)
    }

    /// Prepares calls as [`Git::on_repository`] does, on one that keeps the very bytes of a file: no attribute of the folder
    /// converts them, or says that they are no text.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(crate) fn of_repository(
        spawner: &'a Spawner,
        folder: &'a Path,
        git_dir: &Path,
    ) -> Result<Git<'a>, WorktreeError> {
        let git = Git::on_repository(spawner, folder, git_dir)?;
        let attributes = git.private.path().join("git/info/attributes");
        let kept = "* -text -filter -ident -working-tree-encoding !diff\n";
        blocking_in_place(|| std::fs::write(&attributes, kept))
            .map_err(|source| WorktreeError::Io { what: "prepare git".to_owned(), source })?;
        Ok(git)
    }

    fn prepare(
        spawner: &'a Spawner,
        folder: &'a Path,
        folders: Option<&GitFolders>,
        trusted: &[&Path],
    ) -> Result<Git<'a>, WorktreeError> {
        let make = || {
            let private = spawner.private_folder(GIT_PREFIX)?;
            let mut environment = environment(folder);
            let mut put = |name: OsString, value: OsString| set(&mut environment, name, value);
            let mut content = FolderContent::default();
            let user = spawner.user_settings();
            for (name, value) in add_user_settings(&mut content, private.path(), user, trusted) {
                put(name, value);
            }
            if let Some(folders) = folders {
                let settings = RepositorySettings::read(&folders.common);
                let clean = content.folder("git");
                add_clean_repository(clean, &folders.common, &settings);
                // Text is shown as text, whatever somebody says of it.
                clean.file("info/attributes", "* !diff\n");
                let detached = content.folder(DETACHED);
                detached.file("HEAD", "ref: refs/heads/none\n");
                detached.file("commondir", "../git\n");
                // Of the repository's own folder everything but its logs is there.
                content.folder("git/logs");
                put("GIT_COMMON_DIR".into(), private.path().join("git").into());
                put("GIT_NO_REPLACE_OBJECTS".into(), "1".into());
            }
            private.restore(&content, OldFiles::Keep)?;
            Ok((private, environment))
        };
        let io = |source| WorktreeError::Io { what: "prepare git".to_owned(), source };
        let (private, environment) = make().map_err(io)?;
        Ok(Git { spawner, folder, environment, private })
    }

    /// Lets the following calls use an index that holds what a commit holds and has looked at no file, in place of the
    /// folder's own: that one may say of a file that it need not be looked at. Returns where it is.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub(crate) async fn with_index_of(&mut self, commit: &str) -> Result<PathBuf, WorktreeError> {
        let index = self.private.path().join("index");
        self.with_index(&index);
        self.call_checked(["read-tree", commit]).await?;
        Ok(index)
    }

    /// Lets the following calls use an index of planctl's own with these entries, as `git ls-files --stage -z` prints them, and that has
    /// looked at no file.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub(super) async fn with_entries(&mut self, entries: Vec<u8>) -> Result<(), WorktreeError> {
        self.with_index(&self.private.path().join("index"));
        self.call_checked(["read-tree", "--empty"]).await?;
        self.call_checked_with(["update-index", "-z", "--index-info"], Input::Bytes(entries)).await.map(drop)
    }

    /// Writes a branch, or removes it, and nothing else: no branch to which a reference of this name leads, and no log, which git
    /// would write by way of a link in its place. `to` is the commit, `from` the one before; none where there is no such branch.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub(super) async fn write_branch(
        &mut self,
        branch: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(), WorktreeError> {
        let before = self.environment.clone();
        // Where HEAD names the branch, git writes HEAD's log, too.
        set(&mut self.environment, "GIT_DIR".into(), self.private.path().join(DETACHED).into());
        let mut words = vec!["update-ref", "--no-deref"];
        let reference = format!("refs/heads/{branch}");
        match to {
            Some(to) => words.extend([&reference, to, from.unwrap_or("")]),
            None => words.extend(["-d", &reference]),
        }
        let written = self.call_checked(words).await;
        self.environment = before;
        written.map(drop)
    }

    /// Lets the following calls use another index.
    pub(crate) fn with_index(&mut self, index: &Path) {
        set(&mut self.environment, "GIT_INDEX_FILE".into(), index.into());
    }

    /// Lets the following calls ignore what was ignored when planctl made a worktree, where it made that one.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub(super) fn with_ignored_of(&self, worktree: &Path) -> Result<(), WorktreeError> {
        let kept = match std::fs::read(kept_of(worktree)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            kept => kept,
        };
        kept.and_then(|kept| std::fs::write(self.private.path().join("git/info/exclude"), kept))
            .map_err(|source| WorktreeError::Io { what: "prepare git".to_owned(), source })
    }

    /// Returns the folder of planctl's own that goes with the last call.
    pub(super) fn private_path(&self) -> &Path {
        self.private.path()
    }

    /// Calls git and returns how it ended, with any status.
    ///
    /// # Errors
    ///
    /// [`WorktreeError::NoGit`], and [`WorktreeError::Git`] where the call did not come to an end of its own.
    pub(crate) async fn call<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Called, WorktreeError> {
        self.call_with(arguments, Input::Null).await
    }

    /// Calls git with an input and returns how it ended, with any status.
    ///
    /// # Errors
    ///
    /// Those of [`Git::call`].
    pub(super) async fn call_with<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: Input,
    ) -> Result<Called, WorktreeError> {
        self.call_in(self.environment.clone(), arguments, input).await
    }

    /// Calls git with an input, and has it write objects and packs into a folder of planctl's own, from which it reads the
    /// repository's, too. Git writes a pack among the objects and moves it to its place then, which it can't do from one file
    /// system to another.
    ///
    /// # Errors
    ///
    /// Those of [`Git::call`], and of the disk.
    pub(super) async fn call_with_own_objects<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: Input,
    ) -> Result<Called, WorktreeError> {
        let objects = self.private.path().join("objects");
        let repositorys = self.private.path().join("git/objects").into_os_string().into_vec();
        blocking_in_place(|| {
            std::fs::create_dir_all(objects.join("info"))?;
            std::fs::write(objects.join("info/alternates"), [&repositorys[..], b"\n"].concat())
        })
        .map_err(|source| WorktreeError::Io { what: "prepare git".to_owned(), source })?;
        let mut environment = self.environment.clone();
        set(&mut environment, "GIT_OBJECT_DIRECTORY".into(), objects.into());
        self.call_in(environment, arguments, input).await
    }

    async fn call_in<A: Into<OsString>>(
        &self,
        environment: Vec<(OsString, OsString)>,
        arguments: impl IntoIterator<Item = A>,
        input: Input,
    ) -> Result<Called, WorktreeError> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let what = format!("git {}", subcommand(&arguments, 1));
        let mut command = Command::new([OsString::from("git")].into_iter().chain(arguments), self.folder);
        command.environment = environment;
        command.input = input;
        command.deadline = Some(DEADLINE);
        command.grace_if_abandoned = GRACE_IF_ABANDONED;
        command.locks = vec![self.private.lock()];
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
        let finished = self.spawner.run(&command, &mut watch, std::future::pending()).await;
        let finished = finished.map_err(|source| WorktreeError::Io { what: what.clone(), source })?;
        let said = String::from_utf8_lossy(&finished.stderr.last(SAID_BYTES_MAX)).trim().to_owned();
        match finished.end {
            _ if is_cut => Err(WorktreeError::Git { what, said: "it printed more than 64 MiB".to_owned() }),
            End::Exited(status) => Ok(Called { status, printed, said }),
            End::NotStarted { errno, .. } if errno == nix::libc::ENOENT => Err(WorktreeError::NoGit),
            End::NotStarted { errno, .. } => {
                Err(WorktreeError::Git { what, said: std::io::Error::from_raw_os_error(errno).to_string() })
            }
            End::TimedOut => {
                Err(WorktreeError::Git { what, said: "it took more than 15 minutes".to_owned() })
            }
            End::Signalled(_)
            | End::IdleTimedOut
            | End::Flooded
            | End::OverLimit(_)
            | End::Cancelled
            | End::HelperLost => {
                Err(WorktreeError::Git { what, said: "it was ended before it was done".to_owned() })
            }
        }
    }

    /// Calls git, where any status but 0 is an error.
    ///
    /// # Errors
    ///
    /// Those of [`Git::call`], and [`WorktreeError::Git`] with git's own complaint.
    pub(crate) async fn call_checked<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Called, WorktreeError> {
        self.call_checked_with(arguments, Input::Null).await
    }

    /// Calls git with an input, where any status but 0 is an error.
    ///
    /// # Errors
    ///
    /// Those of [`Git::call_checked`].
    pub(super) async fn call_checked_with<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: Input,
    ) -> Result<Called, WorktreeError> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let what = format!("git {}", subcommand(&arguments, 2));
        let called = self.call_with(arguments, input).await?;
        if called.status == 0 {
            return Ok(called);
        }
        let said = match called.said.is_empty() {
            false => called.said,
            true => format!("it exited with {}", called.status),
        };
        Err(WorktreeError::Git { what, said })
    }
}

/// Calls git once in a folder and returns how it ended, with any status.
///
/// # Errors
///
/// Those of [`Git::call`].
pub(super) async fn call<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    Git::open(spawner, folder)?.call(arguments).await
}

/// Calls git once in a folder, where any status but 0 is an error.
///
/// # Errors
///
/// Those of [`Git::call_checked`].
pub(crate) async fn call_checked<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    Git::open(spawner, folder)?.call_checked(arguments).await
}

/// Reads the configuration of a folder's repository and of the user as git reads them: only for `git config --get`, which
/// starts nothing.
///
/// # Errors
///
/// Those of [`Git::call`].
pub(super) async fn call_with_own_configuration<A: Into<OsString>>(
    spawner: &Spawner,
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Called, WorktreeError> {
    let mut git = Git::without_repository(spawner, folder)?;
    git.environment.retain(|(name, _)| name != "GIT_CONFIG_GLOBAL" && name != "GIT_CONFIG_NOSYSTEM");
    git.call(arguments).await
}

/// Returns the first words of a call, without the options before its verb.
fn subcommand(arguments: &[OsString], count: usize) -> String {
    let words = arguments.iter().map(|word| word.to_string_lossy());
    words.skip_while(|word| word.starts_with("--")).take(count).collect::<Vec<_>>().join(" ")
}

/// Returns git's whole environment. Of the user's own variables it gets those that say who they are and where their
/// configuration is; none that starts with `GIT_`, which could lead it to another repository.
fn environment(folder: &Path) -> Vec<(OsString, OsString)> {
    let mut environment = agent_environment(["XDG_CONFIG_HOME"]);
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
pub(super) fn path_of(called: &Called) -> PathBuf {
    let mut bytes = called.printed.clone();
    while bytes.last().is_some_and(|byte| *byte == b'\n') {
        bytes.pop();
    }
    OsString::from_vec(bytes).into()
}
