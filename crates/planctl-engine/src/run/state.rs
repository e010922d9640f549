//! Where a node stands.

use serde::{Deserialize, Serialize};

use crate::ask::AskKind;
use crate::ids::{Attempt, ItemId};
use crate::outcome::Outcome;
use crate::time::Timestamp;

/// Where a node stands. A state with an item has exactly that item out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    /// Not entered, or left without settling.
    #[default]
    Pending,
    /// Entered, and waiting until fewer others are worked on, or until a file is free.
    Ready,
    /// A checkpoint's item is out: the workspace is recorded, or restored.
    Saving {
        /// Says that what was recorded is restored.
        restores: bool,
    },
    /// The harness makes the worktrees of a fork's branches, or merges them at the join.
    Branching,
    /// A sub-plan's run is to begin, or under way.
    Nested {
        /// Which try.
        attempt: Attempt,
        /// Says that nothing of it goes on until a person decides.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// A rehearsal of the contract is out, before any work of this visit.
    Rehearsing,
    /// An agent's item is out, claimed or not.
    Working {
        /// Which try.
        attempt: Attempt,
    },
    /// An agent's item is out and may not be claimed before `until`.
    Resting {
        /// Which try.
        attempt: Attempt,
        /// When it may be claimed.
        until: Timestamp,
    },
    /// The gate is out.
    Checking {
        /// Which try.
        attempt: Attempt,
        /// Says that the worker gave up: a failing gate then exhausts the node.
        gave_up: bool,
    },
    /// A person is asked.
    Held {
        /// Why.
        ask: AskKind,
        /// The ask.
        item: ItemId,
    },
    /// It is over, for this visit.
    Settled {
        /// How.
        outcome: Outcome,
    },
}

impl NodeState {
    /// Says whether an agent's item, a gate or a rehearsal is out.
    pub fn is_out(&self) -> bool {
        match self {
            NodeState::Rehearsing
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Nested { .. }
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Checking { .. } => true,
            NodeState::Pending | NodeState::Ready | NodeState::Held { .. } | NodeState::Settled { .. } => {
                false
            }
        }
    }

    /// Says whether somebody works on the node, or is about to, so that what the attempt is expected to use stays set aside.
    pub(super) fn keeps_reservation(&self) -> bool {
        match self {
            NodeState::Rehearsing
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Nested { .. } => true,
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Checking { .. }
            | NodeState::Held { .. }
            | NodeState::Settled { .. } => false,
        }
    }

    /// Says whether a person is asked in the run of the sub-plan, and nobody works on it.
    pub(super) fn waits_in_sub_plan(&self) -> bool {
        matches!(self, NodeState::Nested { waits: true, .. })
    }

    /// Says whether a person is asked.
    pub fn is_held(&self) -> bool {
        matches!(self, NodeState::Held { .. })
    }

    /// Says whether the node is neither pending nor settled.
    pub fn is_live(&self) -> bool {
        self.is_out() || self.is_held() || *self == NodeState::Ready
    }

    /// Returns how the node settled, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            NodeState::Settled { outcome } => Some(*outcome),
            NodeState::Pending
            | NodeState::Ready
            | NodeState::Saving { .. }
            | NodeState::Branching
            | NodeState::Nested { .. }
            | NodeState::Rehearsing
            | NodeState::Working { .. }
            | NodeState::Resting { .. }
            | NodeState::Checking { .. }
            | NodeState::Held { .. } => None,
        }
    }
}
