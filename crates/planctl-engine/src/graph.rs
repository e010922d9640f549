//! Graphs, which every plan compiles to: nodes, edges, one start.

mod ask_deadline;
mod branches;
mod difference;
mod edge;
mod node;
mod profile;
mod roles;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use ask_deadline::{AskDeadline, StoppingAnswer};
pub use branches::WorktreeBranch;
pub use difference::changed_nodes;
pub use edge::{Edge, On, Restart, Signal};
pub use node::{
    Call, ChildApproval, Choice, Confirmation, DefaultAnswer, Fork, Gated, Join, JoinPolicy, Node, NodeKind,
    Question, SubPlan, Subscription, Task, WorkKind,
};
pub(crate) use profile::jittered;
pub use profile::{Backoff, Carry, Fidelity, Profile};

use crate::budget::Budget;
use crate::condition::{Key, StepField};
use crate::ids::NodeId;
use branches::Branches;

/// A compiled plan: immutable, checked, and shared by every run of its revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "GraphParts", into = "GraphParts")]
pub struct Graph {
    parts: GraphParts,
    outgoing: BTreeMap<NodeId, Vec<Edge>>,
    branches: Branches,
    /// Nodes of whose last gate a condition wants to know more than the outcome.
    watched: BTreeSet<NodeId>,
    /// Names of the context that conditions look at.
    asked: BTreeSet<String>,
    steps: u32,
}

/// The parts a graph is made of, as they are stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphParts {
    /// The plan's title.
    pub title: String,
    /// Where a run begins; a [`NodeKind::Start`].
    pub start: NodeId,
    /// All nodes, in any order.
    pub nodes: Vec<Node>,
    /// All edges, in the author's order.
    pub edges: Vec<Edge>,
    /// The budget of a run.
    pub budget: Budget,
    /// The limits of a run.
    pub limits: Limits,
    /// How soon its items are served.
    pub priority: Priority,
    /// The nodes that must have passed before a successful exit counts (DOT G1), in the order in which they are looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// The values that conditions can look at from the start, by name (DOT A1).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}

/// A node without whose pass no run of the graph succeeds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The node. One that was never visited is unmet (DOT G4).
    pub node: NodeId,
    /// Where the run goes while it is unmet; without it, the run fails (DOT G2, G3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<NodeId>,
}

/// The limits of every run of a graph, so that each ends or is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Attempts of all nodes together (A49).
    pub attempts: u32,
    /// Deliveries lost to infrastructure trouble per attempt before a person is asked.
    pub deliveries: u16,
    /// Interruptions by our own stops per item before a person is asked.
    pub interruptions: u16,
    /// How many gates of one attempt may be inconclusive before a person is asked.
    pub repeats: u16,
    /// How long a run may stand still before a person is asked.
    pub stale_after: Option<Duration>,
    /// How many turns, reports of workers and gates, may pass without one more node that is met before a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_after_turns: Option<u32>,
    /// Nodes that are worked on at once (DESIGN 6).
    #[serde(default = "default_parallel", skip_serializing_if = "is_default_parallel")]
    pub parallel: u16,
    /// How often a node may fail for good in the same way, over all its visits, before a person is asked (DOT E14).
    #[serde(default = "default_same_failures", skip_serializing_if = "is_default_same_failures")]
    pub same_failures: u16,
    /// How often a run may begin anew, over an edge that says so (DOT E12).
    #[serde(default = "default_restarts", skip_serializing_if = "is_default_restarts")]
    pub restarts: u16,
    /// How long an ask of a run waits, where its node says nothing else, and the answer then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_deadline: Option<AskDeadline>,
}

const fn default_restarts() -> u16 {
    10
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_default_restarts(count: &u16) -> bool {
    *count == default_restarts()
}

const fn default_parallel() -> u16 {
    1
}

const fn default_same_failures() -> u16 {
    3
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_default_parallel(count: &u16) -> bool {
    *count == default_parallel()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_default_same_failures(count: &u16) -> bool {
    *count == default_same_failures()
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            attempts: 10_000,
            deliveries: 5,
            interruptions: 20,
            repeats: 5,
            stale_after: None,
            stale_after_turns: None,
            parallel: default_parallel(),
            same_failures: default_same_failures(),
            restarts: default_restarts(),
            ask_deadline: None,
        }
    }
}

/// How soon items are served; each class is a delay added to an item's age, so that nothing starves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Ten minutes after its turn.
    Low,
    /// A minute after its turn.
    #[default]
    Normal,
    /// Ten seconds after its turn.
    High,
    /// At its turn.
    Urgent,
}

impl Priority {
    /// Returns the delay added to an item's age.
    pub fn delay(self) -> Duration {
        match self {
            Priority::Low => Duration::from_secs(600),
            Priority::Normal => Duration::from_secs(60),
            Priority::High => Duration::from_secs(10),
            Priority::Urgent => Duration::ZERO,
        }
    }
}

/// Why parts do not make a graph (G-12).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphDefect {
    /// Two nodes have one name.
    #[error("two nodes are named `{0}`")]
    DuplicateNode(NodeId),
    /// The start is missing or not a start node, or there is a second one.
    #[error("a graph has exactly one start node, and `{0}` is not it")]
    Start(NodeId),
    /// An edge names a node that is not there.
    #[error("an edge from `{from}` leads to `{to}`, but there is no such node")]
    Dangling {
        /// Where the edge leaves.
        from: NodeId,
        /// Where it leads.
        to: NodeId,
    },
    /// Two branches of a fork begin with one node.
    #[error("two branches of fork `{0}` begin with one node")]
    DuplicateEdge(NodeId),
    /// A node that ends the run has edges out of it.
    #[error("node `{0}` has an edge that its kind does not allow")]
    MisplacedEdge(NodeId),
    /// Nothing leads to a node.
    #[error("nothing leads to node `{0}`")]
    Unreachable(NodeId),
    /// No path leads from a node to an end, or from the start to the end of a run that succeeds.
    #[error("no path leads from node `{0}` to an exit")]
    NoExit(NodeId),
    /// A limit that must be at least one is zero, `on_exhausted` is not failed, skipped or warned, or PACE levels do not rise.
    #[error("node `{0}` has a limit or an outcome that can never be met")]
    Impossible(NodeId),
    /// A node lies on two branches of one fork, so that nobody can say by which one it is reached.
    #[error("node `{node}` lies on two branches of fork `{fork}`")]
    CrossingBranches {
        /// The fork.
        fork: NodeId,
        /// The node.
        node: NodeId,
    },
    /// A join that no branch can reach, or a fork or a goal that names a node of another kind.
    #[error("node `{0}` names or awaits a node that does not fit")]
    Misjoined(NodeId),
    /// An edge begins the run anew on a branch whose worktree only its fork makes.
    #[error("an edge begins the run anew at `{0}`, on a branch that has a worktree of its own")]
    RestartInWorktree(NodeId),
}

impl Graph {
    /// Checks the parts and makes the graph.
    ///
    /// # Errors
    ///
    /// Returns the first [`GraphDefect`] found.
    pub fn new(mut parts: GraphParts) -> Result<Graph, GraphDefect> {
        shape::refuse_misfits(&parts)?;
        let outgoing = shape::edges_by_source(&parts)?;
        parts.nodes.sort_by(|a, b| a.id.cmp(&b.id));
        shape::refuse_unreachable(&parts, &outgoing)?;
        shape::refuse_dead_ends(&parts)?;
        let branches = Branches::of(&parts, &outgoing)?;
        let restarts = parts.edges.iter().filter(|edge| edge.restart.is_some());
        if let Some(edge) = restarts.into_iter().find(|edge| branches.worktree_branch(&edge.to).is_some()) {
            return Err(GraphDefect::RestartInWorktree(edge.to.clone()));
        }
        let steps = parts.nodes.iter().filter(|node| node.step().is_some()).count();
        let (watched, asked) = watched_by_conditions(&parts);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        Ok(Graph { outgoing, branches, watched, asked, steps, parts })
    }

    /// Returns the plan's title.
    pub fn title(&self) -> &str {
        &self.parts.title
    }

    /// Returns the node where a run begins.
    pub fn start(&self) -> &NodeId {
        &self.parts.start
    }

    /// Returns the node of this name.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.parts.nodes.binary_search_by(|node| node.id.cmp(id)).ok().map(|at| &self.parts.nodes[at])
    }

    /// Returns how long an ask at a node waits, and the answer of the plan's text then.
    pub fn ask_deadline(&self, id: &NodeId) -> Option<AskDeadline> {
        self.node(id).and_then(|node| node.ask_deadline).or(self.parts.limits.ask_deadline)
    }

    /// Says whether a node begins branches.
    pub fn is_fork(&self, id: &NodeId) -> bool {
        matches!(self.node(id).map(|node| &node.kind), Some(NodeKind::Fork(_)))
    }

    /// Returns the task of this name, where it is one.
    pub fn task(&self, id: &NodeId) -> Option<&Task> {
        self.node(id)?.task()
    }

    /// Returns the plan that a node carries out, where it carries out one.
    pub fn sub_plan(&self, id: &NodeId) -> Option<&SubPlan> {
        self.node(id)?.sub_plan()
    }

    /// Returns the nodes that carry out plans of their own.
    pub fn sub_plans(&self) -> impl Iterator<Item = (&Node, &SubPlan)> {
        self.nodes().iter().filter_map(|node| Some((node, node.sub_plan()?)))
    }

    /// Returns what the harness evaluates at a node, where it evaluates something.
    pub fn gated(&self, id: &NodeId) -> Option<Gated<'_>> {
        self.node(id)?.gated()
    }

    /// Returns all nodes, by name.
    pub fn nodes(&self) -> &[Node] {
        &self.parts.nodes
    }

    /// Returns all edges, in the author's order.
    pub fn edges(&self) -> &[Edge] {
        &self.parts.edges
    }

    /// Returns the tasks with their nodes, in the author's order.
    pub fn steps(&self) -> Vec<(&Node, &Task)> {
        let mut steps: Vec<(&Node, &Task)> =
            self.nodes().iter().filter_map(|node| Some((node, node.task()?))).collect();
        steps.sort_by_key(|(_, task)| task.step);
        steps
    }

    /// Returns the nodes that are steps of the plan, in the author's order.
    pub fn numbered_steps(&self) -> Vec<(u32, &Node)> {
        let mut steps: Vec<(u32, &Node)> =
            self.nodes().iter().filter_map(|node| Some((node.step()?, node))).collect();
        steps.sort_by_key(|(step, _)| *step);
        steps
    }

    /// Returns how many steps there are.
    pub fn task_count(&self) -> u32 {
        self.steps
    }

    /// Returns the edges that leave a node.
    pub fn edges_from(&self, id: &NodeId) -> &[Edge] {
        self.outgoing.get(id).map_or(&[], Vec::as_slice)
    }

    /// Says whether the outcome alone decides which edge of a node is taken: no condition, label or weight, and no two edges
    /// for one outcome.
    pub fn outcome_decides(&self, id: &NodeId) -> bool {
        let edges = self.edges_from(id);
        let is_plain = |edge: &Edge| edge.when.is_none() && edge.label.is_none() && edge.weight == 0;
        let is_single = |(at, edge): (usize, &Edge)| edges[..at].iter().all(|other| other.on != edge.on);
        edges.iter().all(is_plain) && edges.iter().enumerate().all(is_single)
    }

    /// Returns the edge that a signal takes where no condition, label or weight has a say: the first of its preference.
    pub fn edge_for(&self, id: &NodeId, signal: Signal) -> Option<&Edge> {
        let edges = self.edges_from(id);
        let plain = |on: &On| edges.iter().find(|edge| edge.on == *on && edge.when.is_none());
        signal.conditions_in_order().iter().find_map(plain)
    }

    /// Says whether a run that follows an edge may come back to where it leaves without asking a person or beginning anew.
    pub fn can_loop_back(&self, edge: &Edge) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![edge];
        while let Some(edge) = open.pop() {
            let asks = matches!(
                self.node(&edge.to).map(|node| &node.kind),
                Some(NodeKind::Human(_) | NodeKind::Escalate { .. })
            );
            if edge.restart.is_some() || asks || !seen.insert(&edge.to) {
                continue;
            }
            open.extend(self.edges_from(&edge.to));
        }
        seen.contains(&edge.from)
    }

    /// Returns the branch by which an edge from this node comes into a join, counted from 0.
    pub fn branch_number(&self, join: &NodeId, from: &NodeId) -> Option<u16> {
        self.branches.branch_number(join, from)
    }

    /// Returns how many branches come into a join.
    pub fn branches_into(&self, join: &NodeId) -> u16 {
        self.branches.count(join)
    }

    /// Returns the fork whose branches a join joins, where one fork began them all.
    pub fn fork_of(&self, join: &NodeId) -> Option<&NodeId> {
        self.branches.fork(join)
    }

    /// Returns the nodes between a join and the forks where its branches begin.
    pub fn members_of(&self, join: &NodeId) -> BTreeSet<NodeId> {
        self.branches.members_of(self, join)
    }

    /// Returns the joins that have a fork of their own and on whose branches a node is, the innermost first, each with the branch.
    pub(crate) fn branches_around(&self, node: &NodeId) -> Vec<(NodeId, u16)> {
        self.branches.around(node)
    }

    /// Says whether a node is reached from a fork before the join of that fork, so that others may go on beside it.
    pub fn is_on_a_branch(&self, node: &NodeId) -> bool {
        let forks = self.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Fork(_)));
        let mut begins =
            forks.flat_map(|fork| self.edges_from(&fork.id).iter().map(|edge| (&fork.id, &edge.to)));
        begins.any(|(fork, to)| self.branch_from(to, |id| self.fork_of(id) == Some(fork)).contains(node))
    }

    /// Returns the branch with a git worktree of its own in which a node works, the innermost where they are nested; a
    /// fork and a join work where the fork was entered.
    pub fn worktree_branch(&self, id: &NodeId) -> Option<&WorktreeBranch> {
        self.branches.worktree_branch(id)
    }

    /// Returns the fork of which a branch begins with a node, and which of its edges leads there, counted from 0.
    pub fn branch_beginning_at(&self, id: &NodeId) -> Option<(&NodeId, u16)> {
        self.branches.branch_beginning_at(id)
    }

    /// Says whether a node makes worktrees for branches, or merges them: a fork whose branches have worktrees, or its join.
    pub fn forks_or_merges_worktrees(&self, id: &NodeId) -> bool {
        let is_in_worktree = |id: &NodeId| {
            matches!(
                self.node(id).map(|node| &node.kind),
                Some(NodeKind::Fork(Fork { in_worktree: true, .. }))
            )
        };
        is_in_worktree(id) || self.fork_of(id).is_some_and(is_in_worktree)
    }

    /// Says whether a condition wants to know more of a node than its outcome.
    pub fn is_watched(&self, id: &NodeId) -> bool {
        self.watched.contains(id) || self.conditions_ask_for("exit_code")
    }

    /// Says whether a condition looks at a value of the context, or at one whose name begins so (`parallel.results.`).
    pub fn conditions_ask_for(&self, name: &str) -> bool {
        let from = self.asked.range::<str, _>((std::ops::Bound::Included(name), std::ops::Bound::Unbounded));
        from.take(1).any(|asked| asked == name || name.ends_with('.') && asked.starts_with(name))
    }

    /// Returns what conditions can look at from the start.
    pub fn context(&self) -> &BTreeMap<String, String> {
        &self.parts.context
    }

    /// Returns what must have passed before a successful exit counts.
    pub fn goals(&self) -> &[Goal] {
        &self.parts.goals
    }

    /// Returns what a run may use.
    pub fn budget(&self) -> Budget {
        self.parts.budget
    }

    /// Returns what bounds a run.
    pub fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// Returns how soon its items are served.
    pub fn priority(&self) -> Priority {
        self.parts.priority
    }
}

/// Returns the nodes of whose last gate conditions want to know more than the outcome, and the names of the context that they
/// look at.
fn watched_by_conditions(parts: &GraphParts) -> (BTreeSet<NodeId>, BTreeSet<String>) {
    let (mut watched, mut asked) = (BTreeSet::new(), BTreeSet::new());
    let of_edges = parts.edges.iter().filter_map(|edge| edge.when.as_ref());
    let of_plans = parts.nodes.iter().filter_map(|node| node.sub_plan()?.until.as_ref());
    for clause in of_edges.chain(of_plans).flat_map(|when| &when.clauses) {
        match &clause.key {
            Key::Step { node, field: StepField::ExitCode | StepField::Output } => {
                watched.insert(NodeId::new(node.as_str()));
            }
            Key::Context(name) | Key::Variable(name) => {
                asked.insert(name.clone());
            }
            Key::Outcome | Key::PreferredLabel | Key::Step { .. } => {}
        }
    }
    (watched, asked)
}

impl TryFrom<GraphParts> for Graph {
    type Error = GraphDefect;

    fn try_from(parts: GraphParts) -> Result<Graph, GraphDefect> {
        Graph::new(parts)
    }
}

impl From<Graph> for GraphParts {
    fn from(graph: Graph) -> GraphParts {
        graph.parts
    }
}
