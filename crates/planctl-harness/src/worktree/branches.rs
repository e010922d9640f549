//! Branches of a run that work in git worktrees of their own: forked from the workspace as it is, merged back into it.
//!
//! All that is known of them is in a repository of planctl's own beside the worktrees, which borrows the objects of the workspace's:
//! workers can write that one, and nothing that they write there is believed. The files of a branch are taken as one commit on
//! what it began with, whatever its worker committed or checked out. A reference is written once what it tells of is there. A call
//! that is cut off at any point is made again and comes to the same. The workspace's index, branch and HEAD stay as they are: the changes
//! of branches come into its files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::call::{Git, call, call_checked};
use super::commit::identity;
use super::converted::verify_conversions;
use super::merge::{Conflict, Merged, conflicts, merge};
use super::objects::verify_objects;
use super::records::{add_worktree, records_below, remove_all, remove_file, remove_locks, remove_worktrees};
use super::{Checkout, Intact, NewWorktree, WorktreeError, worktree_intact};
use crate::blocking::blocking_in_place;
use crate::folder_content::{FolderContent, OldFiles};
use crate::git::clean::add_borrowing_repository;
use crate::git::git_head;
use crate::scratch::create_folder;
use crate::spawn::Spawner;

/// How many paths go to git at once.
const PATHS_AT_ONCE: usize = 500;

/// The repository of planctl's own, in the folder of the worktrees.
const REPOSITORY: &str = "join.git";
/// Its references.
const REFERENCES: &str = "refs/planctl";

/// The branches of one try of a fork.
pub struct BranchWorktrees {
    checkout: Checkout,
    folder: PathBuf,
    /// The part of a reference's name that tells them from those of other runs and forks.
    name: String,
}

/// The result of a merge of branches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Joined {
    /// The workspace holds what the branches did.
    Merged {
        /// How many of its files changed.
        files: usize,
    },
    /// Something does not fit together. The workspace is as it was; a person makes it fit in a folder of its own.
    Conflicts {
        /// The branch that does not fit to those before it; none where the workspace was changed meanwhile.
        branch: Option<u16>,
        /// Where a person makes it fit.
        folder: PathBuf,
        /// The conflicts.
        conflicts: Vec<Conflict>,
    },
}

impl BranchWorktrees {
    /// Returns the branches whose worktrees are in a folder of planctl's own, of a workspace in a git checkout.
    ///
    /// # Errors
    ///
    /// Those of [`Checkout::find`].
    pub async fn find(
        spawner: &Spawner,
        workspace: &Path,
        folder: PathBuf,
        name: String,
    ) -> Result<BranchWorktrees, WorktreeError> {
        let checkout = Checkout::find(spawner, workspace).await?;
        Ok(BranchWorktrees { checkout, folder, name })
    }

    /// Returns where in its worktree a branch works.
    pub fn place(folder: &Path, inside: &Path, branch: u16) -> PathBuf {
        folder.join(branch.to_string()).join(inside)
    }

    /// Makes a worktree for each branch, all of which begin with the workspace's files as they are: those that are in no
    /// commit too, and without those that git ignores. Returns the commit.
    ///
    /// # Errors
    ///
    /// Those of [`Checkout::survey`], of git and of the disk.
    pub async fn create_worktrees(&self, count: u16) -> Result<String, WorktreeError> {
        blocking_in_place(|| self.prepare())?;
        let base = match self.read_ref("base").await? {
            Some(base) => base,
            None => {
                let head = self.checkout.survey().await?.commit;
                let base = self.begin(&head).await?;
                self.write_ref("base", &base).await?;
                base
            }
        };
        for branch in 0..count {
            let path = self.folder.join(branch.to_string());
            let new = NewWorktree {
                path: &path,
                branch: &self.branch(branch),
                commit: &base,
                reason: "a branch of a planctl run",
            };
            self.checkout.add(&new).await?;
        }
        Ok(base)
    }

    /// Merges branches in their order, and brings what they did into the workspace; `base` is what they began with.
    ///
    /// # Errors
    ///
    /// Those of git and of the disk; the workspace is unchanged then, or this call made again completes it.
    pub async fn merge(&self, base: &str, branches: &[u16]) -> Result<Joined, WorktreeError> {
        blocking_in_place(|| self.prepare())?;
        if self.read_ref("merged").await?.is_none() {
            if let Some(joined) = self.go_on_after_conflict().await? {
                return Ok(joined);
            }
            let tips = self.branch_tips(base, branches).await?;
            if let Some(joined) = self.merge_tips(base, &tips).await? {
                return Ok(joined);
            }
        }
        let (Some(before), Some(merged)) = (self.read_ref("before").await?, self.read_ref("merged").await?)
        else {
            return Err(self.merge_error("a merge that was begun can't be found"));
        };
        // The worktrees held the files of the branches; those of the merge are in objects alone.
        verify_objects(&self.git(self.top())?, &before, &merged, &merged).await?;
        let files = self.apply_difference(&before, &merged).await?;
        Ok(Joined::Merged { files })
    }

    /// Removes the worktrees of the branches, with all that they hold, and all that is kept of them.
    ///
    /// # Errors
    ///
    /// Those of git and of the disk.
    pub async fn remove(&self) -> Result<(), WorktreeError> {
        blocking_in_place(|| self.remove_locks())?;
        let own = format!("refs/heads/{}", self.branch_prefix());
        let mut git = Git::open(self.spawner(), self.top())?;
        let named = git.call_checked(["for-each-ref", "--format=%(refname:lstrip=2)", &own]).await?;
        for name in String::from_utf8_lossy(&named.printed).lines() {
            git.write_branch(name, None, None).await?;
        }
        blocking_in_place(|| {
            // Git passes over what is no reference, and planctl's sees no logs.
            let common = self.checkout.common_git_dir()?;
            remove_all(&common.join("logs").join(&own))?;
            remove_all(&common.join(&own))
        })?;
        self.checkout.remove_folder(&self.folder)
    }

    /// Makes the repository where it is not there, and clears what a killed git left.
    fn prepare(&self) -> Result<(), WorktreeError> {
        self.remove_locks()?;
        let (there, new) = (self.folder.join(REPOSITORY), self.folder.join("join.new"));
        if there.is_dir() {
            return Ok(());
        }
        remove_all(&new)?;
        let mut content = FolderContent::default();
        add_borrowing_repository(
            &mut content,
            &self.checkout.common_git_dir()?.canonicalize().map_err(|source| self.io("use", source))?,
        );
        create_folder(&new)
            .and_then(|()| content.restore(&new, OsStr::new(""), OldFiles::Keep))
            .and_then(|()| std::fs::rename(&new, &there))
            .map_err(|source| self.io("make", source))
    }

    /// Removes what git left locked where it was killed: of the references and worktrees of these branches, at which
    /// nobody is but the caller.
    fn remove_locks(&self) -> Result<(), WorktreeError> {
        let shared = self.checkout.common_git_dir()?;
        let mut references = shared.join("refs/heads");
        for part in self.branch_prefix().split('/') {
            references.push(part);
            // These folders are planctl's alone, and a link in place of one leads elsewhere.
            if references.is_symlink() {
                remove_file(&references)?;
            }
        }
        let own = self.folder.join(REPOSITORY);
        let mut folders = records_below(&shared, &self.folder);
        folders.extend(records_below(&own, &self.folder));
        folders.extend([references, own.join(REFERENCES), own]);
        remove_locks(&folders)
    }

    /// Returns the files of each branch as a commit on what it began with.
    async fn branch_tips(&self, base: &str, branches: &[u16]) -> Result<Vec<(u16, String)>, WorktreeError> {
        let mut tips = Vec::new();
        for branch in branches {
            let path = self.folder.join(branch.to_string());
            let head = blocking_in_place(|| match worktree_intact(&path) {
                Intact::Yes => git_head(&path),
                Intact::NoFolder | Intact::Detached | Intact::NoBranch => None,
            });
            let broken = || self.merge_error(&format!("the worktree {} is not whole", path.display()));
            let head = head.ok_or_else(broken)?;
            let mut git = self.git(&path)?;
            // Of the files that git ignores the branch has those that its worker committed.
            git.with_index_of(&head).await?;
            let message = format!("branch {} of {}", branch + 1, self.name);
            let tip = self.record(&git, base, &format!("tip-{branch}"), &message).await?;
            verify_conversions(&git, &path, base, &tip).await?;
            tips.push((*branch, tip));
        }
        Ok(tips)
    }

    /// Merges commits onto what was merged so far, and the workspace where it was changed meanwhile. Once all fit
    /// together, that is noted.
    async fn merge_tips(&self, base: &str, tips: &[(u16, String)]) -> Result<Option<Joined>, WorktreeError> {
        let mut so_far = self.read_ref("so-far").await?.unwrap_or_else(|| base.to_owned());
        let mut is_there = false;
        for (branch, tip) in tips {
            match self.merge_one(&mut so_far, &mut is_there, tip, Some(*branch)).await? {
                None => {}
                conflict => return Ok(conflict),
            }
        }
        let seen = self.read_ref("seen").await?.unwrap_or_else(|| base.to_owned());
        let mut git = self.git(self.top())?;
        git.with_index_of(&seen).await?;
        let now = self.record(&git, &seen, "seen", &format!("the workspace of {}", self.name)).await?;
        if let conflict @ Some(_) = self.merge_one(&mut so_far, &mut is_there, &now, None).await? {
            return Ok(conflict);
        }
        self.write_ref("before", &now).await?;
        self.write_ref("merged", &so_far).await?;
        Ok(None)
    }

    async fn merge_one(
        &self,
        so_far: &mut String,
        is_there: &mut bool,
        tip: &str,
        branch: Option<u16>,
    ) -> Result<Option<Joined>, WorktreeError> {
        if self.contains_commit(so_far, tip).await? {
            return Ok(None);
        }
        let path = self.merge_folder();
        if !*is_there {
            let own = self.folder.join(REPOSITORY);
            blocking_in_place(|| remove_worktrees(&own, &path))?;
            let words = ["--detach", "--lock"].map(OsString::from);
            let arguments = words.into_iter().chain([path.as_os_str().to_owned(), so_far.as_str().into()]);
            add_worktree(&self.git(&self.folder)?, &own, &path, arguments).await?;
            *is_there = true;
        }
        let message = match branch {
            Some(branch) => format!("branch {} of {}", branch + 1, self.name),
            None => format!("the workspace of {}", self.name),
        };
        match merge(self.spawner(), &path, tip, &message).await? {
            Merged::UpToDate => {}
            Merged::Done { commit } => {
                self.write_ref("so-far", &commit).await?;
                *so_far = commit;
            }
            Merged::Conflicts(conflicts) => {
                // A person was shown the conflicts of the tip noted here, and may have worked on them since.
                let of =
                    branch.map_or_else(|| "open-workspace".to_owned(), |branch| format!("open-{branch}"));
                self.write_ref(&of, tip).await?;
                return Ok(Some(Joined::Conflicts { branch, folder: path, conflicts }));
            }
        }
        Ok(None)
    }

    /// Looks whether a person made fit what did not; returns what still does not.
    async fn go_on_after_conflict(&self) -> Result<Option<Joined>, WorktreeError> {
        let Some((of, branch, tip)) = self.open_conflict().await? else { return Ok(None) };
        let path = self.merge_folder();
        if blocking_in_place(|| worktree_intact(&path)) == Intact::Yes {
            if self.is_merging(&path).await? {
                let conflicts = self.unresolved(&path).await?;
                if !conflicts.is_empty() {
                    return Ok(Some(Joined::Conflicts { branch, folder: path, conflicts }));
                }
                Git::open(self.spawner(), &path)?.add_all().await?;
                let mut arguments = identity(self.spawner(), &path).await?;
                arguments.extend(["commit", "--quiet", "--no-verify", "--no-edit"].map(str::to_owned));
                call_checked(self.spawner(), &path, arguments).await?;
            }
            let head = call_checked(self.spawner(), &path, ["rev-parse", "HEAD"]).await?.text();
            if self.contains_commit(&head, &tip).await? {
                let mut git = self.git(&path)?;
                git.with_index_of(&head).await?;
                let fitted = self.record(&git, &head, "fitted", "made to fit").await?;
                self.write_ref("so-far", &fitted).await?;
            }
        }
        // Where the merge was given up, or its folder is gone, it is made anew.
        self.delete_ref(&of).await?;
        Ok(None)
    }

    /// Returns files of an unfinished merge in which nobody has made a choice yet.
    async fn unresolved(&self, path: &Path) -> Result<Vec<Conflict>, WorktreeError> {
        let mut open = conflicts(self.spawner(), path).await?;
        blocking_in_place(|| {
            open.retain(|conflict| {
                // For a binary file, or one gone on one side, only `git add` or `git rm` tells that it was looked at.
                let text = std::fs::read_to_string(path.join(&conflict.path));
                let is_marked = |text: &str| text.lines().any(|line| line.starts_with("<<<<<<< "));
                conflict.hunks.is_empty() || text.map_or(true, |text| is_marked(&text))
            });
        });
        Ok(open)
    }

    async fn is_merging(&self, path: &Path) -> Result<bool, WorktreeError> {
        let arguments = ["rev-parse", "--verify", "--quiet", "MERGE_HEAD"];
        Ok(call(self.spawner(), path, arguments).await?.status == 0)
    }

    /// Returns the conflict that a person was shown: its reference, its branch and the commit that did not fit.
    async fn open_conflict(&self) -> Result<Option<(String, Option<u16>, String)>, WorktreeError> {
        let arguments = ["for-each-ref", "--format=%(refname) %(objectname)", REFERENCES];
        let named = self.git(self.top())?.call_checked(arguments).await?;
        let names = String::from_utf8_lossy(&named.printed).into_owned();
        Ok(names.lines().find_map(|line| {
            let (name, commit) = line.split_once(' ')?;
            let of = name.rsplit('/').next()?;
            let branch = of.strip_prefix("open-")?.parse().ok();
            Some((of.to_owned(), branch, commit.to_owned()))
        }))
    }

    /// Makes the files of the workspace that differ between two commits what the second has; returns how many.
    async fn apply_difference(&self, before: &str, merged: &str) -> Result<usize, WorktreeError> {
        let arguments = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", before, merged];
        let mut git = self.git(self.top())?;
        let called = git.call_checked(arguments).await?;
        let records: Vec<&[u8]> = called.records().collect();
        let changed = records.chunks_exact(2).map(|pair| (pair[0] == b"D", OsStr::from_bytes(pair[1])));
        let (gone, there): (Vec<_>, Vec<_>) = changed.partition(|(is_gone, _)| *is_gone);
        blocking_in_place(|| gone.iter().try_for_each(|(_, path)| self.take_away(path)))?;
        git.with_index_of(merged).await?;
        for some in there.chunks(PATHS_AT_ONCE) {
            let words = ["checkout-index", "--force", "--quiet", "--"].map(OsStr::new);
            let arguments = words.into_iter().chain(some.iter().map(|(_, path)| *path));
            git.call_checked(arguments).await?;
        }
        Ok(gone.len() + there.len())
    }

    /// Removes a file of the workspace, and folders that hold nothing without it.
    fn take_away(&self, path: &OsStr) -> Result<(), WorktreeError> {
        let file = self.top().join(path);
        let is_link = |folder: &Path| folder.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let folders = file.ancestors().skip(1).take_while(|folder| *folder != self.top());
        if folders.into_iter().any(is_link) {
            return Ok(());
        }
        // A folder in its place is another file's, which is written afterwards.
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(WorktreeError::Io { what: format!("remove {}", file.display()), source: error });
            }
            Ok(()) | Err(_) => {}
        }
        let mut folder = file.parent();
        while let Some(empty) =
            folder.filter(|folder| *folder != self.top() && folder.starts_with(self.top()))
        {
            if std::fs::remove_dir(empty).is_err() {
                break;
            }
            folder = empty.parent();
        }
        Ok(())
    }

    /// Returns a commit of the workspace's files as they are, on HEAD, or HEAD where they are its: it is an object of the
    /// workspace's repository, of which the worktrees are.
    async fn begin(&self, head: &str) -> Result<String, WorktreeError> {
        let mut git = Git::open(self.spawner(), self.top())?;
        // Of the files that git ignores the branches have those that it tracks. Nothing else of the index is believed.
        let entries = git.call_checked(["ls-files", "--stage", "-z"]).await?.printed;
        git.with_entries(entries).await?;
        self.record(&git, head, "begun", &format!("the workspace of {}", self.name)).await
    }

    /// Returns a commit, with a parent, of the files in the folder of a git, whose index holds what it begins with; the parent
    /// where they are the parent's. It is noted under a name, and the same files are the same commit.
    async fn record(
        &self,
        git: &Git<'_>,
        parent: &str,
        name: &str,
        message: &str,
    ) -> Result<String, WorktreeError> {
        git.add_all().await?;
        let tree = git.call_checked(["write-tree"]).await?.text();
        let tree_of = async |commit: &str| {
            let called = git.call_checked(["rev-parse", &format!("{commit}^{{tree}}")]).await;
            called.map(|called| called.text())
        };
        let noted = self.read_ref(name).await?;
        let commit = match noted {
            _ if tree_of(parent).await? == tree => parent.to_owned(),
            Some(noted) if tree_of(&noted).await? == tree => noted,
            Some(_) | None => {
                let mut arguments = identity(self.spawner(), self.top()).await?;
                arguments.extend(["commit-tree", &tree, "-p", parent, "-m", message].map(str::to_owned));
                git.call_checked(arguments).await?.text()
            }
        };
        verify_objects(git, parent, &commit, &commit).await?;
        self.write_ref(name, &commit).await?;
        Ok(commit)
    }

    /// Says whether a commit has all of another.
    async fn contains_commit(&self, commit: &str, other: &str) -> Result<bool, WorktreeError> {
        let arguments = ["merge-base", "--is-ancestor", other, commit];
        Ok(self.git(self.top())?.call(arguments).await?.status == 0)
    }

    async fn read_ref(&self, of: &str) -> Result<Option<String>, WorktreeError> {
        let name = format!("{REFERENCES}/{of}");
        let found = self.git(self.top())?.call(["rev-parse", "--verify", "--quiet", &name]).await?;
        Ok((found.status == 0).then(|| found.text()))
    }

    async fn write_ref(&self, of: &str, commit: &str) -> Result<(), WorktreeError> {
        let name = format!("{REFERENCES}/{of}");
        self.git(self.top())?.call_checked(["update-ref", &name, commit]).await.map(drop)
    }

    async fn delete_ref(&self, of: &str) -> Result<(), WorktreeError> {
        let name = format!("{REFERENCES}/{of}");
        self.git(self.top())?.call_checked(["update-ref", "-d", &name]).await.map(drop)
    }

    /// Prepares calls on the repository of planctl's own, whose work tree is a folder.
    fn git<'a>(&'a self, folder: &'a Path) -> Result<Git<'a>, WorktreeError> {
        Git::on_repository(self.spawner(), folder, &self.folder.join(REPOSITORY))
    }

    fn branch_prefix(&self) -> String {
        format!("planctl-branch/{}", self.name)
    }

    fn branch(&self, branch: u16) -> String {
        format!("{}/{}", self.branch_prefix(), branch + 1)
    }

    fn merge_folder(&self) -> PathBuf {
        self.folder.join("merge")
    }

    fn spawner(&self) -> &Spawner {
        &self.checkout.spawner
    }

    fn top(&self) -> &Path {
        &self.checkout.top
    }

    fn io(&self, verb: &str, source: io::Error) -> WorktreeError {
        WorktreeError::Io { what: format!("{verb} {}", self.folder.display()), source }
    }

    fn merge_error(&self, what: &str) -> WorktreeError {
        WorktreeError::Git { what: "merge branches".to_owned(), said: what.to_owned() }
    }
}
