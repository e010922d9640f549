//! Merges one branch into the worktree of another, and shows what does not fit together.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::call::{call, call_checked};
use super::commit::identity;
use crate::spawn::Spawner;

/// The most bytes of hunks that are kept of one file.
const HUNKS_BYTES_MAX: usize = 16 * 1024;
/// The most files whose hunks are kept.
const FILES_MAX: usize = 50;

/// The result of a merge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Merged {
    /// The worktree held all of it already.
    UpToDate,
    /// It is committed.
    Done {
        /// The commit.
        commit: String,
    },
    /// The two don't fit together.
    Conflicts(Vec<Conflict>),
}

/// A file that both sides changed in ways that don't fit together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The file, relative to the worktree's top.
    pub path: PathBuf,
    /// The hunks that conflict, as a combined difference; empty for files that are no text, or that one side removed.
    pub hunks: String,
    /// Git's words for it where that is more than two changes at one place, as `deleted by us`.
    pub what: Option<String>,
}

/// Merges a branch or commit into what a worktree has checked out. Everything there must be committed before.
///
/// Always makes a commit of its own, so that the branches can be told apart. A conflict is left in the worktree as git
/// leaves it, for a person.
///
/// # Errors
///
/// Those of git.
pub async fn merge(
    spawner: &Spawner,
    worktree: &Path,
    other: &str,
    message: &str,
) -> Result<Merged, WorktreeError> {
    if call(spawner, worktree, ["merge-base", "--is-ancestor", other, "HEAD"]).await?.status == 0 {
        return Ok(Merged::UpToDate);
    }
    let mut arguments = identity(spawner, worktree).await?;
    let words = ["merge", "--no-ff", "--no-verify", "--no-edit", "--quiet", "--message", message, other];
    arguments.extend(words.map(str::to_owned));
    let merged = call(spawner, worktree, arguments).await?;
    if merged.status == 0 {
        let commit = call_checked(spawner, worktree, ["rev-parse", "HEAD"]).await?.text();
        return Ok(Merged::Done { commit });
    }
    let conflicts = conflicts(spawner, worktree).await?;
    if conflicts.is_empty() {
        let said = if merged.said.is_empty() { merged.text() } else { merged.said };
        return Err(WorktreeError::Git { what: "git merge".to_owned(), said });
    }
    Ok(Merged::Conflicts(conflicts))
}

/// Reads the files that a merge left unmerged.
pub(super) async fn conflicts(spawner: &Spawner, worktree: &Path) -> Result<Vec<Conflict>, WorktreeError> {
    let status = call_checked(spawner, worktree, ["status", "--porcelain", "-z", "--no-renames"]).await?;
    let mut conflicts = Vec::new();
    for entry in status.records() {
        let Some((state, path)) = entry.split_at_checked(3) else { continue };
        let what = match state {
            b"DD " => Some("both deleted it"),
            b"AU " => Some("added by us, and something else by them"),
            b"UD " => Some("changed by us, deleted by them"),
            b"UA " => Some("added by them, and something else by us"),
            b"DU " => Some("deleted by us, changed by them"),
            b"AA " => Some("added by both"),
            b"UU " => None,
            _ => continue,
        };
        conflicts.push(Conflict {
            path: PathBuf::from(OsStr::from_bytes(path)),
            hunks: String::new(),
            what: what.map(str::to_owned),
        });
    }
    for conflict in conflicts.iter_mut().take(FILES_MAX) {
        let words = ["--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--"];
        let arguments = words.iter().map(OsStr::new).chain([conflict.path.as_os_str()]);
        let drawn = call_checked(spawner, worktree, arguments).await?;
        conflict.hunks = hunks_of(&String::from_utf8_lossy(&drawn.printed));
    }
    Ok(conflicts)
}

/// Returns a difference from its first hunk on, cut at a line where it is too long.
fn hunks_of(drawn: &str) -> String {
    let Some(begin) = drawn.find("\n@@").map(|newline| newline + 1) else { return String::new() };
    let hunks = &drawn[begin..];
    if hunks.len() <= HUNKS_BYTES_MAX {
        return hunks.to_owned();
    }
    let kept = &hunks[..hunks.floor_char_boundary(HUNKS_BYTES_MAX)];
    let kept = kept.rfind('\n').map_or(kept, |newline| &kept[..=newline]);
    format!("{kept}[… {} bytes not shown …]\n", hunks.len() - kept.len())
}
