//! Git worktrees of planctl's own: made beside a user's checkout, committed, merged and removed, and the checkout itself
//! is never touched.

mod branches;
pub(crate) mod call;
mod changes;
mod commit;
mod converted;
mod merge;
mod noted;
mod objects;
mod records;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use self::call::{Called, Git, call, call_checked, call_with_own_configuration, path_of};
use self::commit::refuse_nested;
use self::noted::{keep, own_folder};
use self::records::{add_worktree, remove_worktrees};
pub(crate) use self::records::{remove_file, remove_locks};
use crate::blocking::blocking_in_place;
use crate::git::{git_common, git_folder, git_head, git_top_level};
use crate::spawn::Spawner;

pub use branches::{BranchWorktrees, Joined};
pub use changes::{Change, ChangeKind, Changes, changes_since_head, tracked_of};
pub(crate) use changes::{changes_between, enter_repositories};
pub use commit::{commit_all, uncommitted, verify_result};
pub use merge::{Conflict, Merged, merge};
pub(crate) use objects::{verify_newer, verify_trees};

/// The files that git keeps in its folder during an unfinished operation, each with the operation.
const UNFINISHED: [(&str, &str, &str); 5] = [
    ("MERGE_HEAD", "merge", "git merge --abort"),
    ("rebase-merge", "rebase", "git rebase --abort"),
    ("rebase-apply", "rebase", "git rebase --abort"),
    ("CHERRY_PICK_HEAD", "cherry-pick", "git cherry-pick --abort"),
    ("REVERT_HEAD", "revert", "git revert --abort"),
];
/// How many paths go to git at once.
const PATHS_AT_ONCE: usize = 500;

/// Why a worktree can't be made, used or removed; each text fits after "could not".
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// There is no git.
    #[error("find the program git")]
    NoGit,
    /// The folder is in no git checkout.
    #[error("make a worktree of {}: it is not a git repository", folder.display())]
    NotARepository {
        /// The folder.
        folder: PathBuf,
    },
    /// The repository has no checkout.
    #[error("make a worktree of {}: it is a bare repository", folder.display())]
    Bare {
        /// The repository.
        folder: PathBuf,
    },
    /// Nothing was ever committed.
    #[error("make a worktree of {}: it has no commit yet", folder.display())]
    NoCommit {
        /// The checkout.
        folder: PathBuf,
    },
    /// A merge, a rebase or the like is not finished.
    #[error("make a worktree of {}: it is in the middle of a {of}", folder.display())]
    Unfinished {
        /// The checkout.
        folder: PathBuf,
        /// The unfinished operation.
        of: &'static str,
        /// The command that gives it up.
        abort: &'static str,
    },
    /// A part of the checkout that a worktree can't hold.
    #[error("make a worktree of {}: {what}", folder.display())]
    Unsupported {
        /// The checkout.
        folder: PathBuf,
        /// The part.
        what: String,
        /// The remedy.
        help: String,
    },
    /// The branch has moved although nothing has worked on it.
    #[error("make the worktree: the branch {branch} is there already and holds other work")]
    BranchTaken {
        /// The branch.
        branch: String,
    },
    /// The worktree holds what is committed nowhere.
    #[error(
        "remove {}: {uncommitted} {} committed nowhere", folder.display(),
        if *uncommitted == 1 { "change is" } else { "changes are" }
    )]
    Uncommitted {
        /// The worktree.
        folder: PathBuf,
        /// How many changes.
        uncommitted: usize,
    },
    /// A repository within the worktree, of whose files a commit has none.
    #[error(
        "take {path} of {} into a commit: it is a git repository of its own, and none of its files is in the commit",
        folder.display()
    )]
    Nested {
        /// The worktree.
        folder: PathBuf,
        /// The repository within, relative to the worktree.
        path: String,
    },
    /// An object of the repository that is not the one that its name says.
    #[error("rely on {of}: git would give other content for it, which nobody judged ({how})")]
    Forged {
        /// The file or folder, or the commit.
        of: String,
        /// The way in which it is led elsewhere.
        how: String,
        /// The remedy.
        help: String,
    },
    /// Something else than the worktree's own branch, or another history, is checked out.
    #[error("commit what was judged in {}: {found}", folder.display())]
    LedElsewhere {
        /// The worktree.
        folder: PathBuf,
        /// How it stands.
        found: String,
        /// Its own branch.
        branch: String,
        /// The commit that it began with.
        base: String,
    },
    /// Git refused.
    #[error("{what}: {said}")]
    Git {
        /// The command's beginning.
        what: String,
        /// The output of git.
        said: String,
    },
    /// The system refused.
    #[error("{what}: {source}")]
    Io {
        /// The action.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl WorktreeError {
    /// Returns what a person can do about it, where there is something.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            WorktreeError::NoGit => "install git, or run in the workspace itself: --workspace .".to_owned(),
            WorktreeError::NotARepository { folder } => {
                format!("git -C {0} init && git -C {0} add -A && git -C {0} commit", quoted(folder))
            }
            WorktreeError::Bare { .. } => "run it from a checkout of the repository: git clone".to_owned(),
            WorktreeError::NoCommit { folder } => {
                format!("git -C {0} add -A && git -C {0} commit", quoted(folder))
            }
            WorktreeError::Unfinished { of, abort, .. } => format!("finish the {of}, or give it up: {abort}"),
            WorktreeError::Unsupported { help, .. } => help.clone(),
            WorktreeError::BranchTaken { branch } => {
                format!("look at it: git log {branch}; then rename it: git branch -m {branch} NAME")
            }
            WorktreeError::Uncommitted { folder, .. } => {
                format!("git -C {} status", quoted(folder))
            }
            WorktreeError::Nested { folder, path } => {
                let (folder, path) = (quoted(folder), quoted(Path::new(path)));
                format!(
                    "move {path}/.git away, then git -C {folder} rm -r --cached --ignore-unmatch {path} && git -C {folder} \
                     add -A && git -C {folder} commit"
                )
            }
            WorktreeError::Forged { help, .. } => help.clone(),
            WorktreeError::LedElsewhere { folder, branch, base, .. } => {
                let git = format!("git -C {}", quoted(folder));
                format!(
                    "take what was judged as one commit on its branch: {git} symbolic-ref HEAD refs/heads/{branch} && {git} \
                     reset --soft {base} && {git} add -A && {git} commit; then merge refs/heads/{branch}"
                )
            }
            WorktreeError::Git { .. } | WorktreeError::Io { .. } => return None,
        })
    }
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map(std::borrow::Cow::into_owned).unwrap_or_else(|_| text.into_owned())
}

/// The checkout that worktrees are made of.
#[derive(Clone)]
pub struct Checkout {
    spawner: Spawner,
    top: PathBuf,
}

/// How a checkout stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// The commit that is checked out.
    pub commit: String,
    /// Files that differ from it or are in no commit, relative to the top; a folder that is wholly new counts once and
    /// ends with a slash.
    pub uncommitted: Vec<String>,
}

/// A worktree to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewWorktree<'a> {
    /// The folder, which nobody else uses.
    pub path: &'a Path,
    /// The branch, of which nobody else's has the name.
    pub branch: &'a str,
    /// The commit that it begins with.
    pub commit: &'a str,
    /// Why it may not be pruned, for people.
    pub reason: &'a str,
}

/// Whether a worktree that was made can still be worked in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intact {
    /// It can.
    Yes,
    /// Its folder is gone.
    NoFolder,
    /// Its folder no longer belongs to the repository.
    Detached,
    /// The branch that it has checked out was deleted.
    NoBranch,
}

impl Checkout {
    /// Finds the checkout of a folder.
    ///
    /// # Errors
    ///
    /// [`WorktreeError::NotARepository`], [`WorktreeError::Bare`] and those of starting git.
    pub async fn find(spawner: &Spawner, folder: &Path) -> Result<Checkout, WorktreeError> {
        let bare = async || {
            let called = call(spawner, folder, ["rev-parse", "--is-bare-repository"]).await?;
            Ok::<_, WorktreeError>(called.status == 0 && called.text() == "true")
        };
        let Some(top) = blocking_in_place(|| git_top_level(folder)) else {
            return Err(match bare().await? {
                true => WorktreeError::Bare { folder: folder.to_owned() },
                false => WorktreeError::NotARepository { folder: folder.to_owned() },
            });
        };
        let called = call(spawner, top, ["rev-parse", "--show-toplevel"]).await?;
        if called.status != 0 {
            return Err(match bare().await? {
                true => WorktreeError::Bare { folder: top.to_owned() },
                false => WorktreeError::Git { what: "git rev-parse".to_owned(), said: called.said },
            });
        }
        Ok(Checkout { spawner: spawner.clone(), top: path_of(&called) })
    }

    /// Returns its top folder.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Looks at how the checkout stands; nothing of it is changed, its index neither.
    ///
    /// # Errors
    ///
    /// One of its own for each kind of repository of which no worktree can be made, and those of git.
    pub async fn survey(&self) -> Result<Survey, WorktreeError> {
        let folder = || self.top.clone();
        let unfinished = blocking_in_place(|| {
            let own = git_folder(&self.top)?;
            Some(UNFINISHED.iter().find(|(file, _, _)| own.join(file).exists()))
        });
        let unfinished = unfinished.ok_or_else(|| WorktreeError::NotARepository { folder: folder() })?;
        if let Some((_, of, abort)) = unfinished {
            return Err(WorktreeError::Unfinished { folder: folder(), of, abort });
        }
        let head = self.call(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
        if head.status != 0 {
            return Err(WorktreeError::NoCommit { folder: folder() });
        }
        self.refuse_unsupported().await?;
        Ok(Survey { commit: head.text(), uncommitted: uncommitted(&self.spawner, &self.top).await? })
    }

    /// Refuses what a worktree would hold in another way than the checkout does.
    async fn refuse_unsupported(&self) -> Result<(), WorktreeError> {
        let unsupported = |what: String, help: &str| {
            Err(WorktreeError::Unsupported { folder: self.top.clone(), what, help: help.to_owned() })
        };
        let reads = async |arguments: [&str; 4]| {
            call_with_own_configuration(&self.spawner, &self.top, arguments).await
        };
        if reads(["config", "--type=bool", "--get", "core.sparseCheckout"]).await?.text() == "true" {
            return unsupported(
                "it is a sparse checkout, of which a worktree may hold other files".to_owned(),
                "git sparse-checkout disable, or run in the workspace itself",
            );
        }
        let entries = call_checked(&self.spawner, &self.top, ["ls-files", "-z", "--stage"]).await?;
        let submodule = entries.records().find(|entry| entry.starts_with(b"160000 "));
        if let Some((_, path)) =
            submodule.map(String::from_utf8_lossy).as_deref().and_then(|entry| entry.split_once('\t'))
        {
            return unsupported(
                format!("it has a submodule, {path}, which a worktree would lack"),
                "run in the workspace itself, without --workspace worktree",
            );
        }
        let large = call_checked(&self.spawner, &self.top, ["ls-files", "-z", ":(attr:filter=lfs)"]).await?;
        let Some(path) = large.records().next().map(String::from_utf8_lossy) else { return Ok(()) };
        for key in ["filter.lfs.process", "filter.lfs.smudge"] {
            if self.call(["config", "--get", key]).await?.status == 0 {
                return Ok(());
            }
        }
        unsupported(format!("Git LFS keeps {path}, and is not set up here"), "git lfs install")
    }

    /// Returns which of these files, relative to the top, are not as HEAD has them; folders and those that exist
    /// nowhere are left out.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub async fn uncommitted_among<'a>(
        &self,
        survey: &Survey,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<String>, WorktreeError> {
        let paths: BTreeSet<&str> = blocking_in_place(|| {
            let found = |path: &str| self.top.join(path).symlink_metadata();
            paths.into_iter().filter(|path| found(path).is_ok_and(|found| !found.is_dir())).collect()
        });
        let paths: Vec<&str> = paths.into_iter().collect();
        let mut committed = BTreeSet::new();
        for some in paths.chunks(PATHS_AT_ONCE) {
            let arguments = ["ls-tree", "-z", "--name-only", "--full-tree", survey.commit.as_str(), "--"];
            let named = arguments.into_iter().chain(some.iter().copied());
            let called = call_checked(&self.spawner, &self.top, named).await?;
            committed.extend(called.records().map(<[u8]>::to_vec));
        }
        let is_changed = |path: &str| {
            survey
                .uncommitted
                .iter()
                .any(|other| other == path || (other.ends_with('/') && path.starts_with(other.as_str())))
        };
        let not = paths.into_iter().filter(|path| !committed.contains(path.as_bytes()) || is_changed(path));
        Ok(not.map(str::to_owned).collect())
    }

    /// Says whether git leaves out one of these files, relative to the top, unless it is forced to take it.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub async fn ignores_any(&self, paths: &[String]) -> Result<bool, WorktreeError> {
        for some in paths.chunks(PATHS_AT_ONCE) {
            let named = ["check-ignore", "--"].into_iter().chain(some.iter().map(String::as_str));
            if call(&self.spawner, &self.top, named).await?.status == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a file as a commit has it, where it has it.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub async fn committed(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, WorktreeError> {
        let called = self.call(["cat-file", "blob", &format!("{commit}:{path}")]).await?;
        Ok((called.status == 0).then_some(called.printed))
    }

    /// Says whether a commit has something at a path.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub async fn commit_has_path(&self, commit: &str, path: &str) -> Result<bool, WorktreeError> {
        Ok(self.call(["cat-file", "-e", &format!("{commit}:{path}")]).await?.status == 0)
    }

    /// Makes a worktree with its branch; where an earlier call was cut off, its leavings are made anew.
    ///
    /// The checkout's files, index and HEAD stay as they are, and no hook runs. The worktree is locked, so that
    /// `git worktree prune` leaves it alone.
    ///
    /// # Errors
    ///
    /// [`WorktreeError::BranchTaken`] where the branch holds more than the commit, and those of git.
    pub async fn add(&self, new: &NewWorktree<'_>) -> Result<(), WorktreeError> {
        let reference = format!("refs/heads/{}", new.branch);
        let tip = self.call(["rev-parse", "--verify", "--quiet", &reference]).await?;
        if tip.status == 0 && tip.text() != new.commit {
            return Err(WorktreeError::BranchTaken { branch: new.branch.to_owned() });
        }
        // The name is this worktree's alone; a lock on it was left by a killed call.
        blocking_in_place(|| remove_file(&self.common_git_dir()?.join(format!("{reference}.lock"))))?;
        self.remove_folder(new.path)?;
        if let Some(parent) = new.path.parent() {
            use std::os::unix::fs::DirBuilderExt;
            let make = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
            blocking_in_place(make)
                .map_err(|source| WorktreeError::Io { what: format!("make {}", parent.display()), source })?;
        }
        let mut arguments = ["--lock", "--reason", new.reason].map(OsString::from).to_vec();
        arguments.extend([new.path.into(), new.branch.into()]);
        let common = blocking_in_place(|| self.common_git_dir())?;
        let records = common.join("worktrees");
        // The repository of planctl's git links to it, and git can't make a folder where a link to nothing is.
        blocking_in_place(|| std::fs::create_dir_all(&records))
            .map_err(|source| WorktreeError::Io { what: format!("make {}", records.display()), source })?;
        let mut git = Git::open(&self.spawner, &self.top)?;
        // Also where it is there: it may lead to another branch.
        let from = (tip.status == 0).then_some(new.commit);
        git.write_branch(new.branch, from, Some(new.commit)).await?;
        add_worktree(&git, &common, new.path, arguments).await?;
        blocking_in_place(|| keep(&common, new))
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorktreeError> {
        blocking_in_place(|| remove_worktrees(&self.common_git_dir()?, path))
    }

    /// Returns where the repository's references are, and its records of worktrees.
    fn common_git_dir(&self) -> Result<PathBuf, WorktreeError> {
        let own = git_folder(&self.top);
        let own = own.ok_or_else(|| WorktreeError::NotARepository { folder: self.top.clone() })?;
        Ok(git_common(&own))
    }

    /// Refuses where the removal of a worktree would lose what no commit has.
    ///
    /// # Errors
    ///
    /// [`WorktreeError::Uncommitted`], [`WorktreeError::Nested`], and those of git.
    pub async fn refuse_loss(&self, path: &Path) -> Result<(), WorktreeError> {
        if !blocking_in_place(|| path.exists()) {
            return Ok(());
        }
        let uncommitted = uncommitted(&self.spawner, path).await?.len();
        if uncommitted > 0 {
            return Err(WorktreeError::Uncommitted { folder: path.to_owned(), uncommitted });
        }
        refuse_nested(&self.spawner, path).await
    }

    /// Removes a worktree, and its branch where all that it holds is in the checkout's HEAD too; says whether the branch
    /// is gone. Where somebody removed the folder already, git's record of it is removed.
    ///
    /// # Errors
    ///
    /// Those of [`Checkout::refuse_loss`] unless `discards`, and those of git.
    pub async fn remove(&self, path: &Path, branch: &str, discards: bool) -> Result<bool, WorktreeError> {
        if !discards {
            self.refuse_loss(path).await?;
        }
        self.remove_folder(path)?;
        let reference = format!("refs/heads/{branch}");
        if self.call(["rev-parse", "--verify", "--quiet", &reference]).await?.status != 0 {
            return Ok(true);
        }
        if self.call(["merge-base", "--is-ancestor", &reference, "HEAD"]).await?.status != 0 {
            return Ok(false);
        }
        // Somebody may have it checked out elsewhere by now: then git refuses, and it stays.
        let is_gone = self.call(["branch", "--delete", "--force", "--", branch]).await?.status == 0;
        // Git of planctl's own sees no logs.
        if is_gone {
            blocking_in_place(|| remove_file(&self.common_git_dir()?.join("logs").join(&reference)))?;
        }
        Ok(is_gone)
    }

    async fn call<const N: usize>(&self, arguments: [&str; N]) -> Result<Called, WorktreeError> {
        call(&self.spawner, &self.top, arguments).await
    }
}

/// Says whether a worktree that was made can still be worked in, without starting git.
pub fn worktree_intact(path: &Path) -> Intact {
    if !path.is_dir() {
        return Intact::NoFolder;
    }
    match own_folder(path) {
        Some(own) if own.join("HEAD").is_file() => {}
        Some(_) | None => return Intact::Detached,
    }
    if git_head(path).is_some() { Intact::Yes } else { Intact::NoBranch }
}

/// Lists which of these files of a folder are not as the newest commit has them, also those that git ignores or that the
/// index hides; none where there is no commit.
///
/// # Errors
///
/// Those of git.
pub async fn differing_from_head<'a>(
    spawner: &Spawner,
    folder: &Path,
    paths: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, WorktreeError> {
    let paths: BTreeSet<&str> = paths.into_iter().collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let found = blocking_in_place(|| (git_top_level(folder), git_head(folder)));
    let (Some(top), Some(_)) = found else { return Ok(Vec::new()) };
    let within = folder.strip_prefix(top).unwrap_or(Path::new(""));
    let mut git = Git::open(spawner, folder)?;
    git.with_index_of("HEAD").await?;
    let mut differing = Vec::new();
    for some in paths.iter().copied().collect::<Vec<_>>().chunks(PATHS_AT_ONCE) {
        let words = ["--literal-pathspecs", "status", "--porcelain", "-z", "--no-renames", "--ignored"];
        let words = words.into_iter().chain(["--untracked-files=all", "--"]);
        let called = git.call_checked(words.chain(some.iter().copied())).await?;
        let entries = called.records().filter_map(|entry| entry.get(3..)).map(OsStr::from_bytes);
        let own = entries.filter_map(|path| Path::new(path).strip_prefix(within).ok());
        differing.extend(own.map(|path| path.to_string_lossy().into_owned()));
    }
    Ok(differing)
}
