//! Wire types of the worktrees of runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The git worktree of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorktreeView {
    /// The folder where its steps and contracts work.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it begins with.
    pub base: String,
    /// Says that its files are there; they are made before the run's first step.
    pub is_made: bool,
    /// Says that `planctl clean` removed it.
    pub is_removed: bool,
    /// How many changes of the workspace were committed nowhere when the run was made, and are not in it.
    pub left_behind: u32,
    /// How many changes it held when the run ended that are in no commit; `null` before.
    pub uncommitted: Option<u32>,
    /// The commit of its branch when the run ended; `null` before.
    pub commit: Option<String>,
    /// Why it should not be merged once its run is done: a merge would bring other files than those that were judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The answer of `planctl clean --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CleanView {
    /// Says that nothing was removed, and what would be is told.
    pub dry_run: bool,
    /// The worktrees of runs, oldest first.
    pub worktrees: Vec<CleanedView>,
}

/// One worktree, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CleanedView {
    /// The run.
    pub run: String,
    /// The worktree's top.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// Says that it is gone, or would be.
    pub removed: bool,
    /// Says that its branch is gone too, since all of it is in the workspace's own.
    pub branch_removed: bool,
    /// Why it stays.
    pub why: Option<String>,
}

/// Asks for the worktrees of runs that are over to be removed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanCall {
    /// The workspace on the daemon's host; without one, all of that host.
    #[serde(default)]
    pub workspace: Option<std::path::PathBuf>,
    /// Says that those of failed runs go too, which then can't be resumed.
    #[serde(default)]
    pub failed: bool,
    /// Says that what is committed nowhere goes too.
    #[serde(default)]
    pub discards: bool,
    /// Says that nothing is removed, only told.
    #[serde(default)]
    pub dry_run: bool,
}
