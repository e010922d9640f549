//! A naive reference engine: it keeps a journal of events and answers every question by reading it through.
//!
//! Written from the prose of the design alone. It shares the engine's words (events, graphs) and none of its code, so
//! that the two can disagree.

mod branches;
mod journal;
mod money;
mod pace;
mod people;
mod rules;
mod taken_up;
mod verbs;
mod view;
mod walk;
mod ways;

use std::collections::BTreeMap;
use std::sync::Arc;

use planctl_engine::{
    AskKind, Budget, Digest, Graph, ItemId, Level, NodeId, NodeKind, Outcome, RehearsalResult, Role, RunId,
    TimerId, Timestamp, Usage,
};

use journal::Journal;
pub use view::{View, view_of};
use ways::ChosenEdge;

/// The values that conditions can look at, by name.
type Context = BTreeMap<String, String>;

/// The reference engine's idea of one run.
#[derive(Clone, Debug)]
pub struct Model {
    id: RunId,
    graph: Arc<Graph>,
    journal: Journal,
    status: Status,
    budget: Budget,
    stopped_at: Vec<NodeId>,
    stale_timer: Option<Timestamp>,
    budget_timer: Option<Timestamp>,
    /// Usage that workers have told so far, but for the one that the next event comes from.
    so_far: BTreeMap<NodeId, Usage>,
    /// The facts that followed from the current event.
    tellings: Vec<String>,
    /// Nodes found beyond their visits while one event is heard.
    beyond: Vec<NodeId>,
    /// Ways taken at whose end nobody has arrived yet; the last comes first.
    open: Vec<ChosenEdge>,
    /// Nodes walked through while a run is taken up from its start.
    replayed: Option<Vec<NodeId>>,
    /// Where the run came last and may wait for what never comes.
    dead_end: Option<NodeId>,
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
    /// Waits until it is resumed, or for a revision.
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
pub enum NodePosition {
    /// Not begun, or left.
    Nowhere,
    /// Waits until there is room for it.
    InLine,
    /// The workspace is recorded, or restored.
    Saved {
        /// It is restored.
        restores: bool,
    },
    /// An agent's item is out.
    WithAgent,
    /// An agent's item is out, for later.
    Resting,
    /// The contract is rehearsed, before the work.
    Rehearsed,
    /// The worktrees of branches are made, or merged.
    Forking {
        /// They are merged.
        merges: bool,
    },
    /// Another plan is carried out.
    Within,
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

/// The context of an agent's item of a node, as [`Model::brief`] says.
pub type BriefParts = (Role, Option<String>, Option<usize>, Option<(Level, Role)>);

/// The details of a node's newest attempt, in the model's words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Knowledge {
    label: Option<String>,
    suggested: Vec<NodeId>,
    exit_code: Option<i32>,
    output: Option<String>,
}

/// The state of a contract before the work, in the model's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Before {
    /// Nothing, and nobody asks.
    Unasked,
    /// It must be rehearsed.
    Due,
    /// This contract showed this.
    Showed(Digest, RehearsalResult),
    /// The files are kept that the judge of this contract is shown.
    Kept(Digest),
}

impl Model {
    /// Begins a run of which nothing was said.
    pub fn new(id: RunId, graph: Graph, now: Timestamp) -> Model {
        let budget = graph.budget();
        Model {
            id,
            graph: Arc::new(graph),
            journal: Journal::default(),
            status: Status::New,
            budget,
            stopped_at: Vec::new(),
            stale_timer: None,
            budget_timer: None,
            so_far: BTreeMap::new(),
            tellings: Vec::new(),
            beyond: Vec::new(),
            open: Vec::new(),
            replayed: None,
            dead_end: None,
            now,
        }
    }

    /// Is told what workers said so far that they use, before the next event is heard.
    pub fn hear_so_far(&mut self, so_far: BTreeMap<NodeId, Usage>) {
        self.so_far = so_far;
    }

    /// Returns when the run must be woken by each timer.
    pub fn timers(&self) -> BTreeMap<TimerId, Timestamp> {
        let stale = self.stale_timer.map(|at| (TimerId::Stale, at));
        let budget = self.budget_timer.map(|at| (TimerId::Budget, at));
        let mut timers: BTreeMap<TimerId, Timestamp> = stale.into_iter().chain(budget).collect();
        for node in self.graph.nodes() {
            if let NodeKind::Human(question) = &node.kind
                && let Some(default) = &question.default
                && let NodePosition::WithPerson(AskKind::Choice, _) = self.place(&node.id)
                && let Some(asked) = self.asked_at(&node.id)
            {
                timers.insert(TimerId::Answer(node.id.clone()), rules::time_after(asked, default.after));
            }
        }
        timers
    }

    /// Returns the role of an agent's item of a node, and its context: role, note, attempt that failed before, and the level
    /// at which it took over with whom it took over from.
    pub fn brief(&self, id: &NodeId) -> BriefParts {
        (self.worker(id), self.note(id), self.failure_of(id), self.taken_over(id))
    }
}
