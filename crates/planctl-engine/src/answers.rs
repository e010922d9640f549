//! The answers that an ask takes: those of its kind, less those that would mean nothing where it came up. The engine refuses all
//! others, and every door offers these.

use crate::ask::AskKind;
use crate::contract::RehearsalResult;
use crate::effect::Ask;
use crate::failure::{Failing, Failure};
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::run::{Record, Rehearsal};

impl Ask {
    /// Returns the answers that it takes at its node, in the words of the command line.
    pub fn answers(&self, graph: &Graph, node: &NodeId) -> Vec<&'static str> {
        answers_at(graph, node, self.kind, ChangedFiles::of_failure(self.failure.as_deref()))
    }
}

/// Returns the answers that the ask takes which holds a node.
pub(crate) fn answers_while_held(
    graph: &Graph,
    node: &NodeId,
    kind: AskKind,
    record: &Record,
) -> Vec<&'static str> {
    answers_at(graph, node, kind, ChangedFiles::of_record(graph, node, record))
}

fn answers_at(graph: &Graph, node: &NodeId, kind: AskKind, changed: ChangedFiles) -> Vec<&'static str> {
    let means_something = |answer: &&str| match *answer {
        // A gate judges the work beside the files that are allowed; before the work there is none.
        "allow" => changed == ChangedFiles::ByTheWork,
        "restore" => changed != ChangedFiles::None,
        // Where nothing was merged, nothing can count as met: what the branches did is not there.
        "waive" => !graph.forks_or_merges_worktrees(node),
        "reassign" => graph.task(node).is_some(),
        _ => true,
    };
    kind.answers().iter().copied().filter(means_something).collect()
}

/// When protected files changed that an ask is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangedFiles {
    None,
    BeforeTheWork,
    ByTheWork,
}

impl ChangedFiles {
    fn of_failure(failure: Option<&Failure>) -> ChangedFiles {
        let Some(failure) = failure.filter(|failure| !failure.tampered().is_empty()) else {
            return ChangedFiles::None;
        };
        match matches!(failure.what, Failing::NotRed { .. }) {
            true => ChangedFiles::BeforeTheWork,
            false => ChangedFiles::ByTheWork,
        }
    }

    /// A rehearsal is of no attempt, so the record has no failure of it.
    fn of_record(graph: &Graph, node: &NodeId, record: &Record) -> ChangedFiles {
        let found = RehearsalResult::Tampered;
        let is_found = matches!(&record.rehearsal, Some(Rehearsal::Done { showed, .. }) if *showed == found);
        match is_found && graph.task(node).is_some_and(|task| record.awaits_rehearsal(&task.contract)) {
            true => ChangedFiles::BeforeTheWork,
            false => ChangedFiles::of_failure(record.failure.as_deref()),
        }
    }
}
