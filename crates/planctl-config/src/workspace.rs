//! Where runs work, and whether what they leave is committed.

use serde::{Deserialize, Serialize};

/// Where runs work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workspaces {
    /// In which kind of place.
    pub mode: WorkspaceMode,
    /// The handling of the result of a run in a worktree.
    pub git: Commits,
}

impl Workspaces {
    /// Says that nothing was asked for.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Workspaces::default()
    }
}

/// The kind of place where a run works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    /// The workspace itself, one run after the other.
    #[default]
    Shared,
    /// A git worktree of the run's own, on its own branch.
    Worktree,
}

impl WorkspaceMode {
    /// All of them.
    pub const ALL: [WorkspaceMode; 2] = [WorkspaceMode::Shared, WorkspaceMode::Worktree];

    /// Returns the word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkspaceMode::Shared => "shared",
            WorkspaceMode::Worktree => "worktree",
        }
    }

    /// Reads the word that people write.
    pub fn from_word(word: &str) -> Option<WorkspaceMode> {
        WorkspaceMode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// Whether planctl commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commits {
    /// Never.
    #[default]
    None,
    /// A run's changes in its worktree are committed on its branch when it is done.
    Commit,
}

impl Commits {
    /// All of them.
    pub const ALL: [Commits; 2] = [Commits::None, Commits::Commit];

    /// Says that nothing is committed.
    pub fn is_none(&self) -> bool {
        *self == Commits::None
    }

    /// Returns the word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            Commits::None => "none",
            Commits::Commit => "commit",
        }
    }
}
