//! Checkpoints: the files of a workspace, kept and restored (G-08).
//!
//! The files are kept in a bare repository of planctl's own, one for each run, whose work tree is the workspace. The user's
//! repository, where there is one, is only read: its index, its branches and its HEAD stay as they are, and so do files that
//! `.gitignore` names. The files of a repository within the workspace are kept as all others are. Objects that it holds already are not kept twice.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::blocking::blocking_in_place;
use crate::git::{git_common, git_folder};
use crate::spawn::Spawner;
use crate::workspace::NO_DRAFTS;
use crate::worktree::call::{Called, Git};
use crate::worktree::{
    Changes, WorktreeError, changes_between, enter_repositories, remove_file, remove_locks, verify_trees,
};

/// Where the references are that keep what was recorded.
const CHECKPOINTS: &str = "refs/checkpoints";
/// Where the references are of what was recorded under a name of the caller's.
const NAMED: &str = "refs/named";

/// The checkpoints of one run.
#[derive(Clone)]
pub struct Checkpoints {
    spawner: Spawner,
    kept: PathBuf,
}

impl Checkpoints {
    /// Keeps checkpoints in this folder, which is made at the first one.
    pub fn new(spawner: Spawner, kept: PathBuf) -> Checkpoints {
        Checkpoints { spawner, kept }
    }

    /// Records the files of a workspace and returns the name under which they are found again.
    ///
    /// # Errors
    ///
    /// Those of git, and of the disk.
    pub async fn record(&self, workspace: &Path) -> Result<String, WorktreeError> {
        self.prepare(workspace).await?;
        let tree = self.tree_of(workspace).await?;
        // A reference keeps it from being cleared away.
        self.call(workspace, ["update-ref", &format!("{CHECKPOINTS}/{tree}"), &tree]).await?;
        Ok(tree)
    }

    /// Records the files of a workspace under a name of the caller's, in place of what had it before. The name is of letters,
    /// digits, `-` and `_`.
    ///
    /// # Errors
    ///
    /// Those of git, and of the disk.
    pub async fn record_as(&self, workspace: &Path, name: &str) -> Result<(), WorktreeError> {
        self.prepare(workspace).await?;
        let tree = self.tree_of(workspace).await?;
        self.call(workspace, ["update-ref", &format!("{NAMED}/{name}"), &tree]).await.map(drop)
    }

    /// Compares the files of a workspace with those that were recorded under a name, but for one file; nothing where nothing
    /// was. At most `bytes` of the diff are given.
    ///
    /// # Errors
    ///
    /// Those of git, and of the disk.
    pub async fn changes_since(
        &self,
        workspace: &Path,
        name: &str,
        but: &str,
        bytes: usize,
    ) -> Result<Option<Changes>, WorktreeError> {
        self.prepare(workspace).await?;
        let name = format!("{NAMED}/{name}");
        let found = self.call(workspace, ["for-each-ref", "--format=%(objectname)", &name]).await?.text();
        if found.is_empty() {
            return Ok(None);
        }
        let tree = self.tree_of(workspace).await?;
        self.verify(workspace, &found, &tree).await?;
        let git = Git::of_repository(&self.spawner, workspace, &self.kept)?;
        changes_between(&git, &found, &tree, but, bytes).await.map(Some)
    }

    /// Makes the files of a workspace what they were, and removes those that came since; ignored ones stay.
    ///
    /// # Errors
    ///
    /// Those of git, for a name that was never recorded too, and of the disk.
    pub async fn restore(&self, workspace: &Path, name: &str) -> Result<(), WorktreeError> {
        self.prepare(workspace).await?;
        self.call(workspace, ["rev-parse", "--verify", "--quiet", &format!("{name}^{{tree}}")]).await?;
        let tree = self.tree_of(workspace).await?;
        if tree == name {
            return Ok(());
        }
        self.verify(workspace, &tree, name).await?;
        self.call(workspace, ["read-tree", "--reset", "-u", name]).await?;
        Ok(())
    }

    /// Returns the tree of the workspace as it is, without the files that planctl writes plans to.
    async fn tree_of(&self, workspace: &Path) -> Result<String, WorktreeError> {
        let git = Git::of_repository(&self.spawner, workspace, &self.kept)?;
        enter_repositories(&git, &[".", NO_DRAFTS].map(OsString::from)).await?;
        git.call_checked(["add", "--all", "--", ".", NO_DRAFTS]).await?;
        Ok(git.call_checked(["write-tree"]).await?.text())
    }

    /// Says that what is read of two trees is what was recorded: the workspace's repository, whose objects are not kept twice, may have
    /// others in their place.
    async fn verify(&self, workspace: &Path, one: &str, other: &str) -> Result<(), WorktreeError> {
        let verified =
            verify_trees(&Git::of_repository(&self.spawner, workspace, &self.kept)?, one, other).await;
        if verified.is_err() {
            // So that the next try reads the files, and doesn't miss an object that was removed since.
            blocking_in_place(|| remove_file(&self.kept.join("index")))?;
        }
        verified
    }

    /// Completes the repository where an interrupted call left it unfinished. The caller holds the workspace, so no other
    /// process is at work here.
    async fn prepare(&self, workspace: &Path) -> Result<(), WorktreeError> {
        let is_made = blocking_in_place(|| {
            remove_locks(&[self.kept.clone(), self.kept.join(CHECKPOINTS)])?;
            let io = |source| WorktreeError::Io { what: format!("make {}", self.kept.display()), source };
            std::fs::create_dir_all(&self.kept).map_err(io)?;
            // Git makes this folder last.
            Ok::<_, WorktreeError>(self.kept.join("objects/info").is_dir())
        })?;
        if !is_made {
            let folder = self.kept.as_os_str().to_owned();
            // Nobody reads the samples of hooks that the usual template has.
            let init = ["init", "--quiet", "--bare", "--template="].map(OsString::from);
            let init = init.into_iter().chain([folder]);
            Git::without_repository(&self.spawner, workspace)?.call_checked(init).await?;
        }
        blocking_in_place(|| self.borrow_objects(workspace))
    }

    /// Lets the repository find the objects of the workspace's own.
    fn borrow_objects(&self, workspace: &Path) -> Result<(), WorktreeError> {
        let own = git_folder(workspace).map(|folder| git_common(&folder).join("objects"));
        let Some(own) = own.filter(|objects| objects.is_dir()) else { return Ok(()) };
        let alternates = self.kept.join("objects/info/alternates");
        let io = |source| WorktreeError::Io { what: format!("write {}", alternates.display()), source };
        std::fs::write(&alternates, format!("{}\n", own.display())).map_err(io)
    }

    async fn call<const N: usize>(
        &self,
        workspace: &Path,
        words: [&str; N],
    ) -> Result<Called, WorktreeError> {
        Git::of_repository(&self.spawner, workspace, &self.kept)?.call_checked(words).await
    }
}
