//! The visit and the attempt that each fact of a transition is of: a node may come back to itself within one.

use std::collections::BTreeMap;

use planctl_engine::{Attempt, Fact, NodeId, Record, Tally};

/// Where the facts of one transition enter nodes, beside the records before and after it.
pub(super) struct Visits<'t> {
    before: &'t BTreeMap<NodeId, Record>,
    after: &'t BTreeMap<NodeId, Record>,
    /// The places of the facts by which a node is entered, and with which visit and attempt.
    entered: BTreeMap<&'t NodeId, Vec<(usize, u16, Attempt)>>,
    /// The place of the fact by which all nodes begin anew.
    epoch: Option<usize>,
}

impl<'t> Visits<'t> {
    pub(super) fn new(
        facts: &'t [Fact],
        before: &'t BTreeMap<NodeId, Record>,
        after: &'t BTreeMap<NodeId, Record>,
    ) -> Visits<'t> {
        let mut entered: BTreeMap<&NodeId, Vec<(usize, u16, Attempt)>> = BTreeMap::new();
        for (at, fact) in facts.iter().enumerate() {
            if let Fact::NodeEntered { node, visit, attempt, .. } = fact {
                entered.entry(node).or_default().push((at, *visit, *attempt));
            }
        }
        let epoch = facts.iter().position(|fact| matches!(fact, Fact::EpochBegan { .. }));
        Visits { before, after, entered, epoch }
    }

    /// Returns the counters of a fact's node as they were when it followed.
    pub(super) fn tally_at(&self, at: usize, fact: &Fact) -> Tally {
        let Some(node) = fact.node() else { return Tally::default() };
        let of = |records: &BTreeMap<NodeId, Record>| records.get(node).map(|record| record.tally);
        let entered = self.entered.get(node).map(Vec::as_slice).unwrap_or_default();
        let (until, later) =
            entered.split_at(entered.partition_point(|(entered_at, _, _)| *entered_at <= at));
        let begins_anew = self.epoch.is_some_and(|epoch| epoch > at);
        match (later.is_empty() && !begins_anew, until.last()) {
            (true, _) => of(self.after).unwrap_or_default(),
            (false, Some((_, visit, attempt))) => {
                Tally { visits: *visit, attempt: *attempt, ..Tally::default() }
            }
            (false, None) => of(self.before).unwrap_or_default(),
        }
    }
}
