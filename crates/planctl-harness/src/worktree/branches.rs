//! Branches of a run that work in git worktrees of their own: parted from the workspace as it is, merged back into it.
//!
//! All that is known of them is references of the repository, each written once what it tells of is there. A call that is
//! cut off at any point is made again and comes to the same. The workspace's index, branch and HEAD stay as they are: the
//! changes of branches come into its files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::call::{Git, call, call_checked, call_checked_on};
use super::commit::{commit_all, identity};
use super::ignored::kept_of;
use super::merge::{Conflict, Merged, conflicts, merge_open};
use super::objects::verify_objects;
use super::{Checkout, Intact, NewWorktree, WorktreeError, remove_locks, resolve_links, worktree_intact};
use crate::blocking::blocking_in_place;
use crate::git::git_folder;
use crate::spawn::Spawner;

/// How many paths go to git at once.
const PATHS_AT_ONCE: usize = 500;

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
        blocking_in_place(|| self.remove_locks())?;
        let base = match self.read_ref("base").await? {
            Some(base) => base,
            None => {
                let head = self.checkout.survey().await?.commit;
                let base = self.snapshot(&head).await?.unwrap_or(head);
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
        blocking_in_place(|| self.remove_locks())?;
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
        verify_objects(&Git::open(self.spawner(), self.top())?, &before, &merged, &merged).await?;
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
        self.checkout.remove_folder(&self.folder).await?;
        let branches = format!("refs/heads/{}", self.branch_prefix());
        for pattern in [format!("refs/planctl/{}", self.name), branches] {
            let format = "--format=%(refname)";
            let named = call_checked(self.spawner(), self.top(), ["for-each-ref", format, &pattern]).await?;
            let names = String::from_utf8_lossy(&named.printed).into_owned();
            for name in names.lines() {
                call_checked(self.spawner(), self.top(), ["update-ref", "-d", name]).await?;
            }
        }
        Ok(())
    }

    /// Removes what git left locked where it was killed: of the references and worktrees of these branches, at which
    /// nobody is but the caller.
    fn remove_locks(&self) -> Result<(), WorktreeError> {
        let shared = self.checkout.common_git_dir()?;
        let references =
            [format!("refs/planctl/{}", self.name), format!("refs/heads/{}", self.branch_prefix())];
        let records = std::fs::read_dir(shared.join("worktrees")).into_iter().flatten();
        let folder = resolve_links(&self.folder);
        let is_own = |record: &PathBuf| {
            let place = std::fs::read_to_string(record.join("gitdir"));
            place.is_ok_and(|place| Path::new(place.trim_end()).starts_with(&folder))
        };
        let records = records.filter_map(Result::ok).map(|entry| entry.path()).filter(is_own);
        let folders: Vec<PathBuf> = references.iter().map(|name| shared.join(name)).chain(records).collect();
        remove_locks(&folders)
    }

    /// Returns the newest commit of each branch, after uncommitted changes are committed.
    async fn branch_tips(&self, base: &str, branches: &[u16]) -> Result<Vec<(u16, String)>, WorktreeError> {
        let mut tips = Vec::new();
        for branch in branches {
            let path = self.folder.join(branch.to_string());
            match blocking_in_place(|| worktree_intact(&path)) {
                Intact::Yes => {
                    let message = format!("branch {} of {}", branch + 1, self.name);
                    commit_all(self.spawner(), &path, &message).await?;
                    let tip = call_checked(self.spawner(), &path, ["rev-parse", "HEAD"]).await?.text();
                    verify_objects(&Git::open(self.spawner(), &path)?, base, &tip, &tip).await?;
                    tips.push((*branch, tip));
                }
                Intact::NoFolder | Intact::Detached | Intact::NoBranch => {
                    return Err(self.merge_error(&format!("the worktree {} is not whole", path.display())));
                }
            }
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
        let now = match self.snapshot(&seen).await? {
            Some(now) => {
                self.write_ref("seen", &now).await?;
                now
            }
            None => seen,
        };
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
            self.checkout.remove_folder(&path).await?;
            let words = ["--detach", "--lock"].map(OsString::from);
            let arguments = words.into_iter().chain([path.as_os_str().to_owned(), so_far.as_str().into()]);
            self.checkout.add_worktree(&path, arguments).await?;
            match blocking_in_place(|| std::fs::copy(kept_of(&self.first()), kept_of(&path))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.io("use", error)),
                Ok(_) | Err(_) => {}
            }
            *is_there = true;
        }
        let message = match branch {
            Some(branch) => format!("branch {} of {}", branch + 1, self.name),
            None => format!("the workspace of {}", self.name),
        };
        match merge_open(self.spawner(), &path, tip, &message).await? {
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
                let git = Git::open(self.spawner(), &path)?;
                blocking_in_place(|| git.with_ignored_of(&path))?;
                git.add_all().await?;
                let mut arguments = identity(self.spawner(), &path).await?;
                arguments.extend(["commit", "--quiet", "--no-verify", "--no-edit"].map(str::to_owned));
                call_checked(self.spawner(), &path, arguments).await?;
            }
            let head = call_checked(self.spawner(), &path, ["rev-parse", "HEAD"]).await?.text();
            if self.contains_commit(&head, &tip).await? {
                commit_all(self.spawner(), &path, "made to fit").await?;
                let head = call_checked(self.spawner(), &path, ["rev-parse", "HEAD"]).await?.text();
                self.write_ref("so-far", &head).await?;
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
        let pattern = format!("refs/planctl/{}", self.name);
        let arguments = ["for-each-ref", "--format=%(refname) %(objectname)", &pattern];
        let named = call_checked(self.spawner(), self.top(), arguments).await?;
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
        let called = call_checked(self.spawner(), self.top(), arguments).await?;
        let records: Vec<&[u8]> = called.records().collect();
        let changed = records.chunks_exact(2).map(|pair| (pair[0] == b"D", OsStr::from_bytes(pair[1])));
        let (gone, there): (Vec<_>, Vec<_>) = changed.partition(|(is_gone, _)| *is_gone);
        blocking_in_place(|| gone.iter().try_for_each(|(_, path)| self.take_away(path)))?;
        let index = blocking_in_place(|| self.index())?;
        call_checked_on(self.spawner(), self.top(), &index, ["read-tree", merged]).await?;
        for some in there.chunks(PATHS_AT_ONCE) {
            let words = ["checkout-index", "--force", "--quiet", "--"].map(OsStr::new);
            let arguments = words.into_iter().chain(some.iter().map(|(_, path)| *path));
            call_checked_on(self.spawner(), self.top(), &index, arguments).await?;
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

    /// Returns a commit of the workspace's files as they are, with a parent; `None` where they are the parent's.
    async fn snapshot(&self, parent: &str) -> Result<Option<String>, WorktreeError> {
        let index = blocking_in_place(|| self.index())?;
        let mut git = Git::open(self.spawner(), self.top())?;
        git.with_index(&index);
        // A worker of a branch may have hidden files of the workspace from git since; they are not gone.
        blocking_in_place(|| git.with_ignored_of(&self.first()))?;
        git.add_all().await?;
        let tree = git.call_checked(["write-tree"]).await?.text();
        let of_parent = git.call_checked(["rev-parse", &format!("{parent}^{{tree}}")]).await?.text();
        if tree == of_parent {
            return Ok(None);
        }
        let mut arguments = identity(self.spawner(), self.top()).await?;
        let message = format!("the workspace of {}", self.name);
        arguments.extend(["commit-tree", &tree, "-p", parent, "-m", &message].map(str::to_owned));
        let commit = git.call_checked(arguments).await?.text();
        verify_objects(&git, parent, &commit, &commit).await?;
        Ok(Some(commit))
    }

    /// Returns an index of planctl's own, which begins as the workspace's: so git looks into few files. It is as old as
    /// that one, for git looks into files that are as new as its index, though their size and time be as they were.
    fn index(&self) -> Result<PathBuf, WorktreeError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| self.io("make", source))?;
        let index = self.folder.join("index");
        for leftover in [index.clone(), self.folder.join("index.lock")] {
            match std::fs::remove_file(&leftover) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.io("use", error)),
                Ok(()) | Err(_) => {}
            }
        }
        let own = git_folder(self.top()).map(|folder| folder.join("index")).filter(|own| own.is_file());
        if let Some(own) = own {
            let copied = || {
                let mut own = std::fs::File::open(&own)?;
                let mut copy = std::fs::File::create(&index)?;
                io::copy(&mut own, &mut copy)?;
                copy.set_modified(own.metadata()?.modified()?)
            };
            copied().map_err(|source| self.io("use", source))?;
        }
        Ok(index)
    }

    /// Says whether a commit has all of another.
    async fn contains_commit(&self, commit: &str, other: &str) -> Result<bool, WorktreeError> {
        let arguments = ["merge-base", "--is-ancestor", other, commit];
        Ok(call(self.spawner(), self.top(), arguments).await?.status == 0)
    }

    async fn read_ref(&self, of: &str) -> Result<Option<String>, WorktreeError> {
        let name = self.ref_name(of);
        let found = call(self.spawner(), self.top(), ["rev-parse", "--verify", "--quiet", &name]).await?;
        Ok((found.status == 0).then(|| found.text()))
    }

    async fn write_ref(&self, of: &str, commit: &str) -> Result<(), WorktreeError> {
        let name = self.ref_name(of);
        call_checked(self.spawner(), self.top(), ["update-ref", &name, commit]).await.map(drop)
    }

    async fn delete_ref(&self, of: &str) -> Result<(), WorktreeError> {
        let name = self.ref_name(of);
        call_checked(self.spawner(), self.top(), ["update-ref", "-d", &name]).await.map(drop)
    }

    fn ref_name(&self, of: &str) -> String {
        format!("refs/planctl/{}/{of}", self.name)
    }

    fn branch_prefix(&self) -> String {
        format!("planctl-branch/{}", self.name)
    }

    fn branch(&self, branch: u16) -> String {
        format!("{}/{}", self.branch_prefix(), branch + 1)
    }

    /// The worktree of the first branch; what git ignored when they were parted is noted with it.
    fn first(&self) -> PathBuf {
        self.folder.join("0")
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
