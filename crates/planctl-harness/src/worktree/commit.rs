//! Commits what a worktree holds, and tells what it holds that is in no commit: the files that were judged, also those of
//! repositories within it.

use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::call::{Git, call_with_own_configuration};
use super::converted::verify_conversions;
use super::noted::{Made, made_of, own_folder};
use super::objects::verify_objects;
use super::records::remove_file;
use crate::blocking::blocking_in_place;
use crate::git::{git_branch, git_head};
use crate::process::Input;
use crate::scratch::write_private;
use crate::spawn::Spawner;

/// The mode of an index's entry that names a commit of another repository.
const LINK: &[u8] = b"160000 ";
/// The name under which a file of a repository within stands in the index until its own files do.
const PLACEHOLDER: &str = ".planctl-placeholder";

/// Returns what is committed nowhere in a checkout or a worktree, relative to its top; ignored files don't count, and in a
/// worktree that planctl made those are ignored that were when it was made. Every file is read, and the index is not believed.
///
/// # Errors
///
/// Those of git.
pub async fn uncommitted(spawner: &Spawner, folder: &Path) -> Result<Vec<String>, WorktreeError> {
    let mut git = Git::open(spawner, folder)?;
    blocking_in_place(|| git.with_ignored_of(folder))?;
    git.with_index_of("HEAD").await?;
    let arguments = ["status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames"];
    let called = git.call_checked(arguments).await?;
    let paths = called.records().filter_map(|entry| entry.get(3..));
    Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// Commits everything that a worktree holds on the branch that planctl checked out there, as the user that git knows; returns
/// the commit, or `None` where nothing was to be committed. No hook runs, every file is read, and the index is not believed: the
/// commit has the files that were judged, those of repositories within the worktree too, and in place of a name of one of their
/// commits. Ignored are the files that were when planctl made the worktree. Nothing but objects, the branch and the worktree's own
/// index is written, and those not by way of a link.
///
/// # Errors
///
/// [`WorktreeError::Git`] where the worktree has something else checked out, or names another repository; and those of git.
pub async fn commit_all(
    spawner: &Spawner,
    worktree: &Path,
    message: &str,
) -> Result<Option<String>, WorktreeError> {
    let identity = identity(spawner, worktree).await?;
    let (own, made, head) = blocking_in_place(|| checked_out(worktree))?;
    let mut git = Git::open(spawner, worktree)?;
    git.refuse_other_history(worktree, &made, &head).await?;
    blocking_in_place(|| git.with_ignored_of(worktree))?;
    let index = git.with_index_of(&head).await?;
    git.add_all().await?;
    let tree = git.call_checked(["write-tree"]).await?.text();
    if git.call_checked(["rev-parse", &format!("{head}^{{tree}}")]).await?.text() == tree {
        return Ok(None);
    }
    let words = ["commit-tree", &tree, "-p", &head, "-m", message].map(str::to_owned);
    let commit = git.call_checked(identity.into_iter().chain(words)).await?.text();
    git.write_branch(&made.branch, Some(&head), Some(&commit)).await?;
    // The worktree's own index would say otherwise that everything was changed back.
    blocking_in_place(|| {
        let (copy, own) = (own.join("index.planctl"), own.join("index"));
        let io = |source| WorktreeError::Io { what: format!("write {}", own.display()), source };
        remove_file(&copy)?;
        let bytes = std::fs::read(&index).map_err(io)?;
        write_private(&copy, &bytes).and_then(|()| std::fs::rename(&copy, &own)).map_err(io)?;
        Ok(Some(commit))
    })
}

/// Returns git's own folder of a worktree, what was noted of it, and the newest commit of the branch that it has checked out, which
/// is its own; one that planctl did not make has any.
fn checked_out(worktree: &Path) -> Result<(PathBuf, Made, String), WorktreeError> {
    let refused = |said: &str| WorktreeError::Git {
        what: format!("commit {}", worktree.display()),
        said: said.to_owned(),
    };
    let own = own_folder(worktree).ok_or_else(|| refused("it does not belong to its repository any more"))?;
    let (found, head) = (git_branch(worktree), git_head(worktree));
    let Some(made) = made_of(worktree) else {
        let (Some(branch), Some(base)) = (found, head) else {
            return Err(refused("it has no branch checked out"));
        };
        return Ok((own, Made { common: PathBuf::new(), branch, base: base.clone() }, base));
    };
    let branch = &made.branch;
    let found = match (found, head) {
        (Some(found), Some(head)) if found == *branch => return Ok((own, made, head)),
        (Some(found), _) if found == *branch => format!("its branch {branch} is gone"),
        (Some(found), _) => format!("it has {found} checked out and not its branch {branch}"),
        (None, _) => format!("it has a commit checked out and not its branch {branch}"),
    };
    Err(led_elsewhere(worktree, &made, found))
}

fn led_elsewhere(worktree: &Path, made: &Made, found: String) -> WorktreeError {
    let (branch, base) = (made.branch.clone(), made.base.clone());
    WorktreeError::LedElsewhere { folder: worktree.to_owned(), found, branch, base }
}

/// Refuses a worktree whose newest commit names a commit of a repository within it: nothing else has that one's files.
///
/// # Errors
///
/// [`WorktreeError::Nested`], and those of git.
pub(super) async fn refuse_nested(spawner: &Spawner, worktree: &Path) -> Result<(), WorktreeError> {
    let mut git = Git::open(spawner, worktree)?;
    git.with_index_of("HEAD").await?;
    match git.nested().await?.links.first() {
        Some(path) => Err(nested_error(worktree, path)),
        None => Ok(()),
    }
}

/// Refuses to let a person merge what a worktree holds, where that would not be the files that were judged: something else than its
/// branch is checked out, or that one does not go on from `base`; a commit has none of the files of a repository within, or git
/// gives other content for an object that came since `base`.
///
/// # Errors
///
/// [`WorktreeError::LedElsewhere`], [`WorktreeError::Nested`], [`WorktreeError::Forged`], and those of git.
pub async fn verify_result(spawner: &Spawner, worktree: &Path, base: &str) -> Result<(), WorktreeError> {
    let (_, made, head) = blocking_in_place(|| checked_out(worktree))?;
    let mut git = Git::open(spawner, worktree)?;
    git.refuse_other_history(worktree, &made, &head).await?;
    blocking_in_place(|| git.with_ignored_of(worktree))?;
    git.with_index_of("HEAD").await?;
    let nested = git.nested().await?;
    if let Some(path) = nested.links.first().or_else(|| nested.folders.first()) {
        return Err(nested_error(worktree, path));
    }
    git.add_all().await?;
    let tree = git.call_checked(["write-tree"]).await?.text();
    verify_objects(&git, base, "HEAD", &tree).await?;
    verify_conversions(&git, worktree, base, &tree).await
}

fn nested_error(worktree: &Path, path: &[u8]) -> WorktreeError {
    let path = String::from_utf8_lossy(path).trim_end_matches('/').to_owned();
    WorktreeError::Nested { folder: worktree.to_owned(), path }
}

/// The repositories within a work tree, by path relative to its top.
struct Nested {
    /// Those of which the index names a commit.
    links: Vec<Vec<u8>>,
    /// Those of which it has nothing; each ends with a slash.
    folders: Vec<Vec<u8>>,
}

impl Git<'_> {
    /// Takes all files of the work tree, at whose top this git is, into the index; those of repositories within it as any others.
    ///
    /// # Errors
    ///
    /// Those of git.
    pub(super) async fn add_all(&self) -> Result<(), WorktreeError> {
        // Each pass finds the repositories that lie in those of the last one.
        loop {
            let Nested { links, folders } = self.nested().await?;
            if links.is_empty() && folders.is_empty() {
                break;
            }
            let empty = self.call_checked(["hash-object", "-w", "--stdin"]).await?.text();
            let mut entries = Vec::new();
            for link in links {
                entries.extend([format!("0 {empty}\t").as_bytes(), &link, b"\0"].concat());
            }
            // A folder of which the index has a file is to git a folder as any other, whatever lies in it.
            for folder in folders {
                entries.extend(
                    [format!("100644 {empty}\t").as_bytes(), &folder, PLACEHOLDER.as_bytes(), b"\0"].concat(),
                );
            }
            self.call_checked_with(["update-index", "-z", "--index-info"], Input::Bytes(entries)).await?;
        }
        self.call_checked(["add", "--all"]).await.map(drop)
    }

    /// Refuses a branch that does not go on from the commit that it began with: where both sides take a file as an older commit has
    /// it, a merge brings nothing of what was judged there.
    async fn refuse_other_history(
        &self,
        worktree: &Path,
        made: &Made,
        head: &str,
    ) -> Result<(), WorktreeError> {
        if self.call(["merge-base", "--is-ancestor", &made.base, head]).await?.status == 0 {
            return Ok(());
        }
        let found = format!("its branch {} does not go on from the commit that it began with", made.branch);
        Err(led_elsewhere(worktree, made, found))
    }

    async fn nested(&self) -> Result<Nested, WorktreeError> {
        let words = ["ls-files", "-z", "--stage", "--others", "--exclude-standard"];
        let listed = self.call_checked(words).await?;
        let mut nested = Nested { links: Vec::new(), folders: Vec::new() };
        for record in listed.records() {
            match record.strip_prefix(LINK) {
                Some(entry) => {
                    nested.links.extend(entry.splitn(2, |byte| *byte == b'\t').nth(1).map(<[u8]>::to_vec))
                }
                None if record.ends_with(b"/") => nested.folders.push(record.to_vec()),
                None => {}
            }
        }
        Ok(nested)
    }
}

/// Returns the options that say who commits: the user that git knows in this folder, else planctl.
pub(super) async fn identity(spawner: &Spawner, folder: &Path) -> Result<Vec<String>, WorktreeError> {
    let mut options = Vec::new();
    for (key, otherwise) in [("user.name", "planctl"), ("user.email", "planctl@localhost")] {
        // Nothing is started by reading, and the user's own configuration may name them by way of other files.
        let found = call_with_own_configuration(spawner, folder, ["config", "--get", key]).await?;
        let value = if found.status == 0 { found.text() } else { otherwise.to_owned() };
        options.extend(["-c".to_owned(), format!("{key}={value}")]);
    }
    Ok(options)
}
