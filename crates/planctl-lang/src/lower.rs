//! Turns the steps of a plan into the graph that the engine runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{
    Budget, Contract, Edge, Graph, GraphDefect, GraphParts, Limits, Node, NodeId, NodeKind, On, Outcome,
    Priority, RedFirst, Role, Task, WorkKind,
};

use crate::digest::digest_of_text;
use crate::facts::{contract_files, own_files};
use crate::lint::Scripts;
use crate::lint::order::Order;
use crate::source::Spanned;
use crate::tree::{PlanTree, StepKind, StepTree, Then};

/// How long one attempt's work may take, where the plan says nothing (DESIGN 3).
pub const WORK_TIMEOUT: Duration = Duration::from_secs(600);
/// How long one evaluation of a contract may take, where the plan says nothing (DESIGN 3).
pub const CONTRACT_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a node may be entered, where the plan says nothing (DESIGN 6).
pub const MAX_VISITS: u16 = 10;
/// Retries where the plan says nothing (DESIGN 3).
pub const RETRIES: u16 = 2;

const START: &str = "start";
const DONE: &str = "done";
const FAILED: &str = "failed";
const ASK: &str = "ask";

/// A step's policy with its defaults filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Policy {
    pub retries: u16,
    pub then: Then,
}

pub(crate) fn policy(step: &StepTree) -> Policy {
    let said = step.on_fail.as_ref().map(|policy| policy.value);
    let max = step.max_retries.as_ref().map(|most| most.value);
    let retries = said.and_then(|policy| policy.retries).or(max);
    let fallback = if said.is_some() { 0 } else { RETRIES };
    let then = said.and_then(|policy| policy.then);
    Policy { retries: retries.unwrap_or(fallback), then: then.unwrap_or(Then::Escalate) }
}

/// Makes the graph of a plan whose findings have no error.
///
/// # Errors
///
/// Returns the defect where the steps make no graph; a plan without errors has none.
pub(crate) fn lower(tree: &PlanTree, scripts: &Scripts, order: &Order) -> Result<Graph, GraphDefect> {
    let steps: Vec<(usize, &StepTree)> =
        tree.steps.iter().enumerate().filter(|(_, step)| step.fixed_number().is_some()).collect();
    let id = |at: usize| steps.get(at).map_or(NodeId::new(DONE), |(_, step)| NodeId::new(step.number_text()));
    let mut nodes = vec![plain_node(START, "start", NodeKind::Start)];
    let mut edges = vec![Edge::new(START, id(0), On::Always)];
    let (mut asks, mut aborts) = (false, false);
    for (at, (place, step)) in steps.iter().enumerate() {
        let policy = policy(step);
        let (target, lapse) = match policy.then {
            Then::Escalate => (NodeId::new(ASK), Outcome::Failed),
            Then::Abort => (NodeId::new(FAILED), Outcome::Failed),
            Then::Skip => (id(at + 1), Outcome::Skipped),
            Then::Warn => (id(at + 1), Outcome::Warned),
        };
        asks |= policy.then == Then::Escalate;
        aborts |= policy.then == Then::Abort;
        edges.push(Edge::new(id(at), id(at + 1), On::Success));
        edges.push(Edge::new(id(at), target, On::Exhaust));
        let task = Task {
            contract_files: contract_files(scripts, *place),
            own_files: own_files(order, *place, step).into_iter().map(str::to_owned).collect(),
            ..task(tree, step, policy, lapse)
        };
        nodes.push(node(tree, step, task));
    }
    nodes.push(plain_node(DONE, "done", NodeKind::Exit { success: true }));
    if asks {
        nodes.push(plain_node(ASK, "ask a person", NodeKind::Escalate { reason: None, pace_level: None }));
    }
    if aborts {
        nodes.push(plain_node(FAILED, "failed", NodeKind::Exit { success: false }));
    }
    let limits = Limits {
        stale_after: tree.stale_after.as_ref().map(|seconds| Duration::from_secs(seconds.value)),
        ..Limits::default()
    };
    Graph::new(GraphParts {
        title: tree.title.as_ref().map_or(String::new(), |title| title.value.clone()),
        start: NodeId::new(START),
        nodes,
        edges,
        budget: tree.budget.as_ref().map_or(Budget::default(), |budget| budget.value),
        limits,
        priority: tree.priority.as_ref().map_or(Priority::default(), |priority| priority.value),
        goals: Vec::new(),
        context: BTreeMap::new(),
    })
}

fn plain_node(id: &str, title: &str, kind: NodeKind) -> Node {
    Node { max_visits: MAX_VISITS, ..Node::new(id, title, kind) }
}

// The step's task, without what is known of files.
fn task(tree: &PlanTree, step: &StepTree, policy: Policy, lapse: Outcome) -> Task {
    let red_first = red_first(tree, step).unwrap_or_default();
    Task {
        step: step.fixed_number().unwrap_or(0),
        role: Role::new(step.target.as_ref().map_or("", |target| target.value.as_str())),
        pace: Vec::new(),
        work: work(step),
        prompt: step.task.as_ref().map_or(String::new(), |task| task.value.clone()),
        subscriptions: step.subscriptions.iter().map(|subscription| subscription.value.clone()).collect(),
        contract: Contract { red_first, ..contract_of(step) },
        max_retries: policy.retries,
        lapse,
        work_timeout: seconds(step.timeout.as_ref(), WORK_TIMEOUT),
        protects: step.protects.iter().map(|glob| glob.value.clone()).collect(),
        locks: step
            .locks
            .iter()
            .map(|lock| lock.value.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        apart: Vec::new(),
        contract_files: BTreeSet::new(),
        own_files: BTreeSet::new(),
    }
}

fn node(tree: &PlanTree, step: &StepTree, task: Task) -> Node {
    let max_visits =
        step.max_visits.as_ref().or(tree.max_visits.as_ref()).map_or(MAX_VISITS, |visits| visits.value);
    let kind = NodeKind::Task(Box::new(task));
    Node { max_visits, ..Node::new(step.number_text().as_str(), step.title.value.as_str(), kind) }
}

/// Makes the contract of a step by itself; an empty one where the step has none.
pub(crate) fn contract_of(step: &StepTree) -> Contract {
    let command = step.contract.as_ref().map_or(String::new(), |contract| contract.command.clone());
    let exit_code = step.contract.as_ref().and_then(|contract| contract.exit_code.as_ref());
    Contract {
        digest: digest_of_text(&command),
        command,
        expect: exit_code.map_or(0, |code| code.value),
        timeout: seconds(step.contract_timeout.as_ref(), CONTRACT_TIMEOUT),
        guard: step.guard.as_ref().is_some_and(|guard| guard.value),
        red_first: RedFirst::Off,
    }
}

fn seconds(field: Option<&Spanned<u64>>, default: Duration) -> Duration {
    field.map_or(default, |seconds| Duration::from_secs(seconds.value))
}

/// Returns what a step, or else its plan, asks of the contract before the work; the configuration asks where neither does.
pub fn red_first(tree: &PlanTree, step: &StepTree) -> Option<RedFirst> {
    step.red_first.as_ref().or(tree.red_first.as_ref()).map(|policy| policy.value)
}

// A reviewer's step is a review unless the plan says otherwise (P-31).
pub(crate) fn work(step: &StepTree) -> WorkKind {
    match step.kind.as_ref().map(|kind| kind.value) {
        Some(StepKind::Work(work)) => work,
        Some(
            StepKind::Decision
            | StepKind::Human
            | StepKind::Call
            | StepKind::Checkpoint
            | StepKind::Join
            | StepKind::Escalate,
        )
        | None => {
            let is_reviewer = step.target.as_ref().is_some_and(|target| target.value.starts_with("review"));
            if is_reviewer { WorkKind::Review } else { WorkKind::Code }
        }
    }
}
