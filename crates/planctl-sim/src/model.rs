//! A naive reference engine: it keeps a journal of what happened and answers every question by reading it through.
//!
//! Written from the prose of the design alone. It shares the engine's words (events, graphs) and none of its code, so
//! that the two can disagree.

mod journal;
mod money;
mod pace;
mod rules;
mod verbs;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{
    AskKind, Attempt, Budget, Digest, Graph, ItemId, Level, NodeId, NodeState, Note, Outcome, Rehearsal,
    Role, Run, RunId, Showing, TimerId, Timestamp,
};

use journal::Entry;

/// The reference engine's idea of one run.
#[derive(Clone, Debug)]
pub struct Model {
    id: RunId,
    graph: Arc<Graph>,
    journal: Vec<Entry>,
    status: Status,
    budget: Budget,
    stopped_at: Option<NodeId>,
    stale_timer: Option<Timestamp>,
    /// What followed from the event that is being heard.
    tellings: Vec<String>,
    /// Nodes found beyond their visits while one event is heard.
    beyond: Vec<NodeId>,
    now: Timestamp,
}

/// Whether the run goes on, in the model's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Nothing was said yet.
    New,
    /// The plan ask is open.
    Awaiting,
    /// Waits for the workspace.
    Queued,
    /// Waits for the workspace, to go on where it stopped.
    Requeued,
    /// Goes on.
    Active,
    /// Waits for a revision.
    Paused,
    /// Reached a successful exit.
    Done,
    /// Reached a failed exit.
    Failed,
    /// Ended by an answer.
    Aborted,
    /// Cancelled, or its plan rejected.
    Cancelled,
}

/// Where a node is, in the model's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Not begun, or left.
    Nowhere,
    /// An agent's item is out.
    WithAgent,
    /// An agent's item is out, for later.
    Resting,
    /// The contract is rehearsed, before the work.
    Rehearsed,
    /// The gate is out.
    WithHarness {
        /// The worker gave up before.
        gave_up: bool,
    },
    /// A person is asked.
    WithPerson(AskKind, ItemId),
    /// Settled.
    Over(Outcome),
}

/// What goes with an agent's item of a node, as [`Model::brief`] says.
pub type Told = (Role, Option<String>, Option<usize>, Option<(Level, Role)>);

/// All that two engines must agree on about one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeView {
    place: Place,
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
}

/// What is known of a contract before the work, in the model's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Before {
    /// Nothing, and nobody asks.
    Unasked,
    /// It must be rehearsed.
    Due,
    /// This contract showed this.
    Showed(Digest, Showing),
}

/// All that two engines must agree on about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    status: Status,
    nodes: BTreeMap<NodeId, NodeView>,
    out: usize,
    held: usize,
    attempts: usize,
    asks: usize,
    transitions: usize,
    tokens: u64,
    micro_usd: u64,
    time: Duration,
    metered: usize,
    unmetered: usize,
    budget: Budget,
}

impl Model {
    /// Begins a run of which nothing was said.
    pub fn new(id: RunId, graph: Graph, now: Timestamp) -> Model {
        let budget = graph.budget();
        Model {
            id,
            graph: Arc::new(graph),
            journal: Vec::new(),
            status: Status::New,
            budget,
            stopped_at: None,
            stale_timer: None,
            tellings: Vec::new(),
            beyond: Vec::new(),
            now,
        }
    }

    /// Returns when the run must be woken by each timer.
    pub fn timers(&self) -> BTreeMap<TimerId, Timestamp> {
        self.stale_timer.map(|at| (TimerId::Stale, at)).into_iter().collect()
    }

    /// Returns what two engines must agree on.
    pub fn view(&self) -> View {
        let mentioned: Vec<NodeId> = self.journal.iter().filter_map(|entry| entry.node().cloned()).collect();
        let nodes: BTreeMap<NodeId, NodeView> =
            mentioned.into_iter().map(|id| (id.clone(), self.node_view(&id))).collect();
        let is_out = |view: &&NodeView| match view.place {
            Place::Rehearsed | Place::WithAgent | Place::Resting | Place::WithHarness { .. } => true,
            Place::Nowhere | Place::WithPerson(..) | Place::Over(_) => false,
        };
        let is_held = |view: &&NodeView| matches!(view.place, Place::WithPerson(..));
        View {
            status: self.status,
            out: nodes.values().filter(is_out).count(),
            held: nodes.values().filter(is_held).count(),
            attempts: self.attempts_of_run(),
            asks: self.asks(),
            transitions: self.transitions(),
            tokens: self.tokens(None),
            micro_usd: self.micro_usd(None),
            time: self.time_of_run(),
            metered: self.charges(None, true),
            unmetered: self.charges(None, false),
            budget: self.budget,
            nodes: nodes.into_iter().filter(|(_, view)| *view != never_entered()).collect(),
        }
    }

    /// Returns who an agent's item of a node is for, and what it is told: role, note, attempt that failed before, and the
    /// level at which it took over with whom it took over from.
    pub fn brief(&self, id: &NodeId) -> Told {
        (self.worker(id), self.note(id), self.failure_of(id), self.taken_over(id))
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
        }
    }
}

fn never_entered() -> NodeView {
    NodeView {
        place: Place::Nowhere,
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
    }
}

/// Reads the engine's run in the model's words.
pub fn view_of(run: &Run) -> View {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let head = &run.head;
    let nodes = run.records().iter().map(|(id, record)| {
        let tally = record.tally;
        let place = match &record.state {
            NodeState::Pending | NodeState::Ready | NodeState::Saving { .. } => Place::Nowhere,
            NodeState::Rehearsing => Place::Rehearsed,
            NodeState::Working { .. } => Place::WithAgent,
            NodeState::Resting { .. } => Place::Resting,
            NodeState::Checking { gave_up, .. } => Place::WithHarness { gave_up: *gave_up },
            NodeState::Held { ask, item } => Place::WithPerson(*ask, item.clone()),
            NodeState::Settled { outcome } => Place::Over(*outcome),
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
            },
        };
        (id.clone(), view)
    });
    View {
        status: status_of(run),
        nodes: nodes.filter(|(_, view)| *view != never_entered()).collect(),
        out: count(head.out),
        held: count(head.held),
        attempts: count(head.attempts),
        asks: count(head.asks),
        transitions: count(head.transitions),
        tokens: head.spent.tokens,
        micro_usd: head.spent.micro_usd,
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
