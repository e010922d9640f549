//! The status of a plan, and which may follow which.

/// Where a plan stands (DESIGN 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PlanStatus {
    /// Written, and not verified as it stands.
    Draft,
    /// Every static check passed.
    Verified,
    /// A person, or a policy of theirs, let it run.
    Approved,
    /// A run is under way.
    InProgress,
    /// A run reached its exit.
    Done,
    /// A run failed, or was cancelled.
    Failed,
}

impl PlanStatus {
    /// All statuses, in the order of a plan's life.
    pub const ALL: [PlanStatus; 6] = [
        PlanStatus::Draft,
        PlanStatus::Verified,
        PlanStatus::Approved,
        PlanStatus::InProgress,
        PlanStatus::Done,
        PlanStatus::Failed,
    ];

    /// Returns the word that files and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanStatus::Draft => "draft",
            PlanStatus::Verified => "verified",
            PlanStatus::Approved => "approved",
            PlanStatus::InProgress => "in-progress",
            PlanStatus::Done => "done",
            PlanStatus::Failed => "failed",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<PlanStatus> {
        PlanStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Says whether a plan may go from one status to another (P-18 to P-26).
    pub fn may_become(self, to: PlanStatus) -> bool {
        use PlanStatus::{Approved, Done, Draft, Failed, InProgress, Verified};
        match (self, to) {
            (Verified | Approved | InProgress | Done | Failed, Draft)
            | (Draft, Verified)
            | (Verified | Done | Failed, Approved)
            | (Approved | Failed, InProgress)
            | (InProgress, Done | Failed) => true,
            (Draft | Verified | Approved | InProgress | Done | Failed, _) => false,
        }
    }
}
