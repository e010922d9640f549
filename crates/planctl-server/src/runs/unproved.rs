//! The sentence about how a run ended. Of one that is done it says what is not proved, which is counted where records are stored, so
//! that a run of many steps is told of as cheaply as one of a few. Of one that a person ended or paused it says who did so, and why.

use planctl_api::words;
use planctl_engine::{
    Answer, Contract, Decision, End, Event, Graph, HumanEvent, Node, NodeId, Outcomes, RunStatus,
};
use planctl_store::{RunRow, Said, StoreError, Unproved};

use crate::node::services::Services;
use crate::runs::shown::{Shown, merges_worktrees};

/// Among how many of the last lines of its history stands what ended a run; facts that followed from it come after.
const LAST_LINES: i64 = 50;

impl Services {
    /// Says what a run that is done rests on; of any other run, why it ended or stands still.
    pub(super) async fn reason_of(&self, shown: &Shown) -> Result<Option<String>, StoreError> {
        let row = &shown.view.run;
        if row.head.status != (RunStatus::Ended { end: End::Done }) {
            return Ok(shown.reason(self.ended_by(row).await?));
        }
        let (observable, judged) = (observable(&shown.graph), judged_alone(&shown.graph));
        let joins = names(shown.graph.nodes().iter().filter(|node| merges_worktrees(&shown.graph, node)));
        let unproved = self.store.count_unproved(row.id, &observable, &judged, &joins).await?;
        Ok(Some(done_line(row.head.settled, unproved)))
    }
}

impl Services {
    /// Says who ended or paused a run, where a person or a rule did.
    async fn ended_by(&self, run: &RunRow) -> Result<Option<String>, StoreError> {
        match run.head.status {
            RunStatus::Ended { end: End::Aborted | End::Cancelled } | RunStatus::Paused => {
                let lines = self.store.newest_lines(run.id, LAST_LINES).await?;
                Ok(lines.iter().rev().find_map(|line| match &line.said {
                    Said::Input(input) => match &input.event {
                        Event::Human(human) => ending_line(human),
                        Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => None,
                    },
                    Said::Fact(_) => None,
                }))
            }
            RunStatus::Ended { end: End::Done | End::Failed }
            | RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active => Ok(None),
        }
    }
}

/// Says who ended or paused a run by which answer, and why.
fn ending_line(human: &HumanEvent) -> Option<String> {
    let verb = match &human.decision {
        Decision::Answer { answer: Answer::Reject, .. } => "rejected",
        Decision::Answer { answer: Answer::Abort, .. } => "aborted",
        Decision::Cancel => "cancelled",
        Decision::Pause | Decision::Answer { answer: Answer::Revise, .. } => "paused",
        Decision::Answer { .. }
        | Decision::Submit
        | Decision::Vote { .. }
        | Decision::Resume { .. }
        | Decision::Revise { .. } => return None,
    };
    let by = words::policy(human.by.as_str()).unwrap_or_else(|| human.by.to_string());
    let note = human.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    Some(format!("{verb} by {by}{note}"))
}

/// Returns the nodes that can pass by what their agent's program reports: tasks without a contract.
fn observable(graph: &Graph) -> Vec<NodeId> {
    let is_bare =
        |node: &&Node| node.task().is_some() && node.gated().is_none_or(|gated| gated.contract.is_none());
    names(graph.nodes().iter().filter(is_bare))
}

/// Returns the nodes that pass by a judge's word, and by nobody's beside it.
fn judged_alone(graph: &Graph) -> Vec<NodeId> {
    let contract = |node: &Node| node.gated().is_some_and(|gated| Contract::is_judged_alone(gated.contract));
    names(graph.nodes().iter().filter(|node| contract(node) && node.confirmation.is_none()))
}

fn names<'g>(nodes: impl Iterator<Item = &'g Node>) -> Vec<NodeId> {
    nodes.map(|node| node.id.clone()).collect()
}

fn done_line(settled: Outcomes, unproved: Unproved) -> String {
    let parts = [
        (unproved.observed, "by what was observed, not proved"),
        (unproved.judged, "by a judge alone, not proved"),
        (unproved.vacuous, "proves nothing (green before the work)"),
    ];
    let said = parts.into_iter().filter(|(count, _)| *count > 0);
    let said: String = said.map(|(count, how)| format!(", of which {count} {how}")).collect();
    let left_out = match unproved.unmerged {
        0 => "",
        1 => "; without what the branches of a join did",
        _ => "; without what the branches of several joins did",
    };
    planctl_view::outcomes_line(settled) + &said + left_out
}
