//! The branches that have come into a join.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;
use crate::outcome::Outcome;

/// The branches that have come into a join since its fork was entered.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Branches that ended well: runs of neighbours, first and last of each, so that thousands take no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<(u16, u16)>,
    /// Branches that failed, with the node at which they did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<u16, NodeId>,
    /// Branches begun, where the fork begins them one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<u16>,
    /// Branches that go on where they stood once it is their turn, each with the nodes at which: they failed, or were taken back.
    /// The fork stands for the beginning of the branch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<u16, BTreeSet<NodeId>>,
    /// The outcome with which the join settles once the worktrees of its branches are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Outcome>,
    /// The results of the branches, where a condition asks for them (DOT P6).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<u16, BranchResult>,
}

impl Arrivals {
    /// Says whether a branch has come.
    pub fn has(&self, branch: u16) -> bool {
        let is_met = self.met.iter().any(|(first, last)| (*first..=*last).contains(&branch));
        is_met || self.failed.contains_key(&branch)
    }

    /// Says whether the turn of a branch has yet to come, where a fork begins them one after another.
    pub(crate) fn is_yet_to_begin(&self, branch: u16) -> bool {
        self.begun.is_some_and(|begun| branch >= begun)
    }

    /// Returns the branches that ended well.
    pub fn succeeded(&self) -> impl Iterator<Item = u16> {
        self.met.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Returns how many branches have come.
    pub fn count(&self) -> u16 {
        let met: u16 = self.met.iter().map(|(first, last)| last - first + 1).sum();
        met.saturating_add(u16::try_from(self.failed.len()).unwrap_or(u16::MAX))
    }

    /// Forgets a branch, however it came.
    pub(crate) fn forget_branch(&mut self, branch: u16) {
        self.waiting.remove(&branch);
        self.failed.remove(&branch);
        self.results.remove(&branch);
        let Some(at) = self.met.iter().position(|(first, last)| (*first..=*last).contains(&branch)) else {
            return;
        };
        let (first, last) = self.met.remove(at);
        if branch < last {
            self.met.insert(at, (branch + 1, last));
        }
        if first < branch {
            self.met.insert(at, (first, branch - 1));
        }
    }

    /// Numbers the branches as another revision does, which says of each the number that it had. Those that it adds, and those that
    /// were not begun, wait for their turn at `fork`.
    pub(crate) fn renumber(&mut self, numbers: &[Option<u16>], fork: Option<&NodeId>) {
        let mut before = std::mem::take(self);
        let all_begun = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
        (self.begun, self.merging) = (before.begun.map(|_| all_begun), before.merging);
        for (branch, number) in (0..).zip(numbers) {
            let is_begun = number.is_some_and(|number| !before.is_yet_to_begin(number));
            let has_come = number.is_some_and(|number| before.has(number));
            if let (false, false, Some(fork)) = (is_begun, has_come, fork) {
                self.waiting.insert(branch, BTreeSet::from([fork.clone()]));
            }
            let Some(number) = number else { continue };
            match before.failed.remove(number) {
                Some(node) => drop(self.failed.insert(branch, node)),
                None if has_come => self.record_success(branch),
                None => {}
            }
            self.waiting.extend(before.waiting.remove(number).map(|nodes| (branch, nodes)));
            self.results.extend(before.results.remove(number).map(|result| (branch, result)));
        }
    }

    /// Notes a branch that ended well.
    pub(crate) fn record_success(&mut self, branch: u16) {
        let at = self.met.partition_point(|(first, _)| *first <= branch);
        self.met.insert(at, (branch, branch));
        self.met.dedup_by(|later, earlier| {
            let is_neighbour = later.0 <= earlier.1.saturating_add(1);
            if is_neighbour {
                earlier.1 = earlier.1.max(later.1);
            }
            is_neighbour
        });
    }
}

/// The result of one branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BranchResult {
    /// The node by which it came into the join.
    pub node: NodeId,
    /// The end of the output of that node's last gate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}
