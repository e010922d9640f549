//! All that two engines must agree on: the model's own account of a run, and the engine's run in the same words.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    Arrivals, Attempt, Budget, Digest, Graph, Level, NodeId, NodeKind, NodeState, Note, Outcome, Rehearsal,
    Role, Run, RunId,
};

use super::branches::Come;
use super::{Before, Context, Knowledge, Model, NodePosition, Status};

/// All that two engines must agree on about one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeView {
    place: NodePosition,
    visits: usize,
    attempt: usize,
    failed: usize,
    granted: usize,
    deliveries: usize,
    interruptions: usize,
    repeats: usize,
    role: Option<Role>,
    level: Level,
    note: Option<String>,
    failure_of: Option<usize>,
    rehearsals: usize,
    before: Before,
    known: Option<Knowledge>,
    context: Context,
    come: Come,
    saved: Option<String>,
    recurred: usize,
    merging: Option<Outcome>,
    child: Option<RunId>,
    proposed: Option<bool>,
    prompt: Option<(Digest, bool)>,
}

/// All that two engines must agree on about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    status: Status,
    nodes: BTreeMap<NodeId, NodeView>,
    out: usize,
    held: usize,
    line: Vec<NodeId>,
    stopped_at: Vec<NodeId>,
    attempts: usize,
    asks: usize,
    transitions: usize,
    restarts: usize,
    tokens: u64,
    micro_usd: u64,
    promised: (u64, u64),
    time: Duration,
    metered: usize,
    unmetered: usize,
    budget: Budget,
}

impl Model {
    /// Returns what two engines must agree on.
    pub fn view(&self) -> View {
        let nodes: BTreeMap<NodeId, NodeView> =
            self.journal.nodes().map(|id| (id.clone(), self.node_view(id))).collect();
        let is_out = |view: &&NodeView| match view.place {
            NodePosition::Rehearsed
            | NodePosition::Saved { .. }
            | NodePosition::Forking { .. }
            | NodePosition::Within
            | NodePosition::WithAgent
            | NodePosition::Resting
            | NodePosition::WithHarness { .. } => true,
            NodePosition::Nowhere
            | NodePosition::InLine
            | NodePosition::WithPerson(..)
            | NodePosition::Over(_) => false,
        };
        let is_held = |view: &&NodeView| matches!(view.place, NodePosition::WithPerson(..));
        View {
            status: self.status,
            out: nodes.values().filter(is_out).count(),
            held: nodes.values().filter(is_held).count(),
            line: self.line(),
            stopped_at: self.stopped_at.clone(),
            attempts: self.attempts_of_run(),
            asks: self.asks(),
            transitions: self.transitions(),
            restarts: self.restarts(),
            tokens: self.tokens(None),
            micro_usd: self.micro_usd(None),
            promised: self.promised(None),
            time: self.time_of_run(),
            metered: self.charges(None, true),
            unmetered: self.charges(None, false),
            budget: self.budget,
            nodes: nodes.into_iter().filter(|(_, view)| *view != never_entered()).collect(),
        }
    }

    fn node_view(&self, id: &NodeId) -> NodeView {
        NodeView {
            place: self.place(id),
            visits: self.visits(id),
            attempt: self.attempt(id),
            failed: self.failed(id),
            granted: self.granted(id),
            deliveries: self.deliveries(id),
            interruptions: self.interruptions(id),
            repeats: self.repeats(id),
            role: self.role(id),
            level: self.level(id),
            note: self.note(id),
            failure_of: self.failure_of(id),
            rehearsals: self.rehearsals(id),
            before: self.before(id),
            known: self.known(id),
            context: self.context(id),
            come: self.come(id),
            saved: self.saved(id),
            recurred: self.recurred(id).map_or(0, |(_, times)| times),
            merging: self.merging(id),
            child: self.child(id),
            proposed: self.proposed(id),
            prompt: self.prompt(id),
        }
    }
}

fn never_entered() -> NodeView {
    NodeView {
        place: NodePosition::Nowhere,
        visits: 0,
        attempt: 0,
        failed: 0,
        granted: 0,
        deliveries: 0,
        interruptions: 0,
        repeats: 0,
        role: None,
        level: Level::Primary,
        note: None,
        failure_of: None,
        rehearsals: 0,
        before: Before::Unasked,
        known: None,
        context: Context::new(),
        come: Come::default(),
        saved: None,
        recurred: 0,
        merging: None,
        child: None,
        proposed: None,
        prompt: None,
    }
}

/// Reads the engine's run in the model's words.
pub fn view_of(graph: &Graph, run: &Run) -> View {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let head = &run.head;
    let nodes = run.records().iter().map(|(id, record)| {
        let tally = record.tally;
        let place = match &record.state {
            NodeState::Pending => NodePosition::Nowhere,
            NodeState::Branching => {
                let is_join = graph.node(id).is_some_and(|node| matches!(node.kind, NodeKind::Join(_)));
                NodePosition::Forking { merges: is_join }
            }
            NodeState::Nested { .. } => NodePosition::Within,
            NodeState::Ready => NodePosition::InLine,
            NodeState::Saving { restores } => NodePosition::Saved { restores: *restores },
            NodeState::Rehearsing => NodePosition::Rehearsed,
            NodeState::Working { .. } => NodePosition::WithAgent,
            NodeState::Resting { .. } => NodePosition::Resting,
            NodeState::Checking { gave_up, .. } => NodePosition::WithHarness { gave_up: *gave_up },
            NodeState::Held { ask, item } => NodePosition::WithPerson(*ask, item.clone()),
            NodeState::Settled { outcome } => NodePosition::Over(*outcome),
        };
        let number = |attempt: Attempt| usize::from(attempt.number());
        let view = NodeView {
            place,
            visits: tally.visits.into(),
            attempt: number(tally.attempt),
            failed: tally.failed.into(),
            granted: tally.granted.into(),
            deliveries: tally.deliveries.into(),
            interruptions: tally.interruptions.into(),
            repeats: tally.repeats.into(),
            role: record.role.clone(),
            level: record.level(),
            note: record.note.as_ref().map(|note: &Note| note.text.clone()),
            failure_of: record.failure.as_ref().map(|failure| number(failure.attempt)),
            rehearsals: tally.rehearsals.into(),
            before: match &record.rehearsal {
                None => Before::Unasked,
                Some(Rehearsal::Due) => Before::Due,
                Some(Rehearsal::Done { contract, showed, .. }) => Before::Showed(contract.clone(), *showed),
                Some(Rehearsal::Recorded { contract }) => Before::Kept(contract.clone()),
            },
            known: record.attempt_details.as_ref().map(|known| Knowledge {
                label: known.label.clone(),
                suggested: known.suggested.clone(),
                exit_code: known.exit_code,
                output: known.output.clone(),
            }),
            context: record.context.clone(),
            come: record.arrivals.as_deref().map(come_into).unwrap_or_default(),
            saved: record.saved.clone(),
            recurred: record.recurrence.as_ref().map_or(0, |recurrence| recurrence.count.into()),
            merging: record.arrivals.as_deref().and_then(|arrivals| arrivals.merging),
            child: record.child,
            proposed: record.unchecked.map(|unchecked| unchecked.gave_up),
            prompt: record.prompt.as_ref().map(|word| (word.digest.clone(), word.is_approved)),
        };
        (id.clone(), view)
    });
    View {
        status: status_of(run),
        nodes: nodes.filter(|(_, view)| *view != never_entered()).collect(),
        out: count(head.out),
        held: count(head.held),
        line: head.ready.nodes(graph).cloned().collect(),
        stopped_at: head.stopped_at.clone(),
        attempts: count(head.attempts),
        asks: count(head.asks),
        transitions: count(head.transitions),
        restarts: head.restarts.into(),
        tokens: head.spent.tokens,
        micro_usd: head.spent.micro_usd,
        promised: head.reserved.values().fold((0, 0), |sum, one| (sum.0 + one.tokens, sum.1 + one.micro_usd)),
        time: head.spent.time,
        metered: count(head.spent.metered),
        unmetered: count(head.spent.unmetered),
        budget: head.budget,
    }
}

fn status_of(run: &Run) -> Status {
    use planctl_engine::{End, RunStatus};
    match run.head.status {
        RunStatus::New => Status::New,
        RunStatus::Awaiting => Status::Awaiting,
        RunStatus::Queued { resuming: false } => Status::Queued,
        RunStatus::Queued { resuming: true } => Status::Requeued,
        RunStatus::Active => Status::Active,
        RunStatus::Paused => Status::Paused,
        RunStatus::Ended { end: End::Done } => Status::Done,
        RunStatus::Ended { end: End::Failed } => Status::Failed,
        RunStatus::Ended { end: End::Aborted } => Status::Aborted,
        RunStatus::Ended { end: End::Cancelled } => Status::Cancelled,
    }
}

fn come_into(arrivals: &Arrivals) -> Come {
    let met = arrivals.met.iter().flat_map(|(first, last)| *first..=*last).map(usize::from).collect();
    let failed = arrivals.failed.iter().map(|(branch, from)| (usize::from(*branch), from.clone())).collect();
    let waiting = arrivals.waiting.iter().map(|(branch, places)| (usize::from(*branch), places.clone()));
    Come { met, failed, begun: arrivals.begun.map(usize::from), waiting: waiting.collect() }
}
