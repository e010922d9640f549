//! Which records of a run are loaded.

use std::collections::BTreeSet;

use crate::ids::NodeId;

/// Which records an event may read or change, beyond the head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// These.
    Nodes(BTreeSet<NodeId>),
    /// These, and all that are live.
    Live(BTreeSet<NodeId>),
    /// All.
    All,
}

impl Scope {
    /// Returns what covers both scopes.
    pub fn union(self, other: Scope) -> Scope {
        match (self, other) {
            (Scope::All, _) | (_, Scope::All) => Scope::All,
            (Scope::Nodes(mut these), Scope::Nodes(those)) => {
                these.extend(those);
                Scope::Nodes(these)
            }
            (Scope::Live(mut these), Scope::Nodes(those) | Scope::Live(those))
            | (Scope::Nodes(mut these), Scope::Live(those)) => {
                these.extend(those);
                Scope::Live(these)
            }
        }
    }

    /// Says whether this scope includes every record of another.
    pub fn includes(&self, other: &Scope) -> bool {
        match (self, other) {
            (Scope::All, _) => true,
            (Scope::Nodes(these), Scope::Nodes(those))
            | (Scope::Live(these), Scope::Nodes(those) | Scope::Live(those)) => those.is_subset(these),
            (Scope::Nodes(_), Scope::Live(_) | Scope::All) | (Scope::Live(_), Scope::All) => false,
        }
    }

    pub(crate) fn covers(&self, id: &NodeId, is_present: bool) -> bool {
        match self {
            Scope::Nodes(ids) => ids.contains(id),
            Scope::Live(ids) => ids.contains(id) || is_present,
            Scope::All => true,
        }
    }
}
