//! What every plan compiles to: nodes, edges, one start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::contract::Contract;
use crate::ids::{NodeId, Role};
use crate::pace::{self, Level, Rung};
use crate::run::Outcome;

/// A compiled plan: immutable, checked, and shared by every run of its revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "GraphParts", into = "GraphParts")]
pub struct Graph {
    parts: GraphParts,
    outgoing: BTreeMap<NodeId, Vec<Edge>>,
    tasks: u32,
}

/// The parts a graph is made of, as they are stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphParts {
    /// The plan's title.
    pub title: String,
    /// Where a run begins; a [`NodeKind::Start`].
    pub start: NodeId,
    /// All nodes, in any order.
    pub nodes: Vec<Node>,
    /// All edges; the order decides between edges of one condition.
    pub edges: Vec<Edge>,
    /// What a run may use.
    pub budget: Budget,
    /// What bounds a run.
    pub limits: Limits,
    /// How soon its items are served.
    pub priority: Priority,
}

/// One place in the graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Its name, unique in the graph.
    pub id: NodeId,
    /// Its heading, for people.
    pub title: String,
    /// What it does.
    pub kind: NodeKind,
    /// How often it may be entered; the next entry counts as exhausted.
    pub max_visits: u16,
}

/// What a node does when it is entered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeKind {
    /// Where a run begins; holds it until the plan is approved.
    Start,
    /// Work for an agent, then a gate.
    Task(Box<Task>),
    /// Escalates the node that led here to the next PACE level's responder; reached over failing edges only.
    Escalate {
        /// What the person is told beside the failure itself.
        reason: Option<String>,
        /// The PACE level to which it raises the step at least (G-06); `None` is the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pace_level: Option<Level>,
    },
    /// Ends the run.
    Exit {
        /// Says whether the run is done or failed.
        success: bool,
    },
}

/// A step as its author wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The step's number in the plan, from 1.
    pub step: u32,
    /// Who does it.
    pub role: Role,
    /// Who takes over when that role can't go on, level by level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<Rung>,
    /// What kind of work it is; sent along with the item (P-31).
    pub work: WorkKind,
    /// What the worker is told: the text of `**task:**`.
    pub prompt: String,
    /// What the worker is given to read.
    pub subscriptions: Vec<Subscription>,
    /// What decides the step.
    pub contract: Contract,
    /// Attempts beyond the first that a failing gate may take (`retry(N)`, X-28).
    pub max_retries: u16,
    /// How the node settles when its attempts are exhausted: failed, skipped or warned.
    pub lapse: Outcome,
    /// How long one attempt's work may take.
    pub work_timeout: Duration,
    /// Globs whose files no worker of this step may change (`**protects:**`).
    pub protects: Vec<String>,
    /// What no two steps use at once, whatever run they are of (`**locks:**`): held from the start of an attempt to its
    /// verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// Files that the contract names, the candidates for protection (DESIGN 8).
    pub contract_files: BTreeSet<String>,
    /// Files that the task or the subscriptions name: what this step may change.
    pub own_files: BTreeSet<String>,
}

/// What kind of work an agent item is (P-31).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkKind {
    /// Making something.
    Code,
    /// Judging something; its judgement is text, never a verdict.
    Review,
}

/// Something a worker is given to read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subscription {
    /// A file or glob relative to the workspace.
    File {
        /// The path or glob.
        path: String,
    },
    /// A named stream of notes.
    Topic {
        /// The topic's name.
        name: String,
    },
}

/// A way from one node to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// Where it leaves.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// When it is taken.
    pub on: On,
}

/// The condition of an edge (row G-09; the table of choice is [`Signal`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The gate passed, or a person let it count as met.
    Success,
    /// All attempts failed, and nothing is said about exhaustion.
    Fail,
    /// An attempt failed and the allowance lasts.
    Retry,
    /// All attempts failed.
    Exhaust,
    /// Nothing else fits.
    Always,
}

/// What a node's attempt came to, as far as edges are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The node settled as met.
    Success,
    /// An attempt failed and the allowance lasts.
    Retry,
    /// An attempt failed and the allowance is used up.
    Exhausted,
}

impl Signal {
    /// Returns the edge conditions to look for, first to last (DESIGN 6, X-07).
    pub fn preference(self) -> &'static [On] {
        match self {
            Signal::Success => &[On::Success, On::Always],
            Signal::Retry => &[On::Retry],
            Signal::Exhausted => &[On::Exhaust, On::Fail, On::Always],
        }
    }
}

/// What bounds every run of a graph, so that each ends or is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Attempts of all nodes together (A49).
    pub attempts: u32,
    /// Deliveries lost to infrastructure trouble per attempt before a person is asked.
    pub deliveries: u16,
    /// Interruptions by our own stops per item before a person is asked.
    pub interruptions: u16,
    /// Gates that told nothing per attempt before a person is asked.
    pub repeats: u16,
    /// How long a run may stand still before a person is asked.
    pub stale_after: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { attempts: 10_000, deliveries: 5, interruptions: 20, repeats: 5, stale_after: None }
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
    #[error("an edge from `{from}` leads to `{to}`, which is no node")]
    Dangling {
        /// Where the edge leaves.
        from: NodeId,
        /// Where it leads.
        to: NodeId,
    },
    /// Two edges of one node have one condition.
    #[error("node `{0}` has two edges for one outcome")]
    DuplicateEdge(NodeId),
    /// A node that ends the run has edges out of it, or one that asks is reached on success.
    #[error("node `{0}` has an edge that its kind does not allow")]
    MisplacedEdge(NodeId),
    /// Nothing leads to a node.
    #[error("nothing leads to node `{0}`")]
    Unreachable(NodeId),
    /// No way leads from a node to a successful end.
    #[error("no way leads from node `{0}` to an exit")]
    NoExit(NodeId),
    /// A limit that must be at least one is zero, a lapse is not failed, skipped or warned, or PACE levels do not rise.
    #[error("node `{0}` has a limit or an outcome that can never be met")]
    Impossible(NodeId),
}

impl Graph {
    /// Checks the parts and makes the graph.
    ///
    /// # Errors
    ///
    /// Returns the first [`GraphDefect`] found.
    pub fn new(parts: GraphParts) -> Result<Graph, GraphDefect> {
        let by_id = index_of(&parts)?;
        let mut outgoing: BTreeMap<NodeId, Vec<Edge>> = BTreeMap::new();
        for edge in &parts.edges {
            let target = by_id.get(&edge.to).map(|&at| &parts.nodes[at].kind);
            let source = by_id.get(&edge.from).map(|&at| &parts.nodes[at].kind);
            let (Some(source), Some(target)) = (source, target) else {
                return Err(GraphDefect::Dangling { from: edge.from.clone(), to: edge.to.clone() });
            };
            if !edge_is_allowed(source, target, edge.on) {
                return Err(GraphDefect::MisplacedEdge(edge.from.clone()));
            }
            let siblings = outgoing.entry(edge.from.clone()).or_default();
            if siblings.iter().any(|sibling| sibling.on == edge.on) {
                return Err(GraphDefect::DuplicateEdge(edge.from.clone()));
            }
            siblings.push(edge.clone());
        }
        let tasks = parts.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Task(_))).count();
        let graph = Graph { outgoing, tasks: u32::try_from(tasks).unwrap_or(u32::MAX), parts };
        graph.refuse_unreachable()?;
        graph.refuse_dead_ends()?;
        Ok(graph.sorted())
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

    /// Returns the step of this name, where it is one.
    pub fn task(&self, id: &NodeId) -> Option<&Task> {
        match &self.node(id)?.kind {
            NodeKind::Task(task) => Some(task),
            NodeKind::Start | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => None,
        }
    }

    /// Returns all nodes, by name.
    pub fn nodes(&self) -> &[Node] {
        &self.parts.nodes
    }

    /// Returns the steps with their nodes, in the author's order.
    pub fn steps(&self) -> Vec<(&Node, &Task)> {
        let mut steps: Vec<(&Node, &Task)> =
            self.nodes().iter().filter_map(|node| Some((node, self.task(&node.id)?))).collect();
        steps.sort_by_key(|(_, task)| task.step);
        steps
    }

    /// Returns how many steps there are.
    pub fn task_count(&self) -> u32 {
        self.tasks
    }

    /// Returns the edges that leave a node.
    pub fn edges_from(&self, id: &NodeId) -> &[Edge] {
        self.outgoing.get(id).map_or(&[], Vec::as_slice)
    }

    /// Returns the edge that a signal takes, the first of its preference.
    pub fn edge_for(&self, id: &NodeId, signal: Signal) -> Option<&Edge> {
        let edges = self.edges_from(id);
        signal.preference().iter().find_map(|on| edges.iter().find(|edge| edge.on == *on))
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

    fn sorted(mut self) -> Graph {
        self.parts.nodes.sort_by(|a, b| a.id.cmp(&b.id));
        self
    }

    fn refuse_unreachable(&self) -> Result<(), GraphDefect> {
        let mut seen = BTreeSet::from([self.parts.start.clone()]);
        let mut open = vec![self.parts.start.clone()];
        while let Some(id) = open.pop() {
            for edge in self.edges_from(&id) {
                if seen.insert(edge.to.clone()) {
                    open.push(edge.to.clone());
                }
            }
        }
        match self.parts.nodes.iter().find(|node| !seen.contains(&node.id)) {
            Some(node) => Err(GraphDefect::Unreachable(node.id.clone())),
            None => Ok(()),
        }
    }

    fn refuse_dead_ends(&self) -> Result<(), GraphDefect> {
        let mut incoming: BTreeMap<&NodeId, Vec<&NodeId>> = BTreeMap::new();
        for edge in &self.parts.edges {
            incoming.entry(&edge.to).or_default().push(&edge.from);
        }
        let mut open: Vec<&NodeId> = Vec::new();
        for node in &self.parts.nodes {
            match node.kind {
                NodeKind::Exit { success: true } => open.push(&node.id),
                NodeKind::Start | NodeKind::Task(_) | NodeKind::Escalate { .. } | NodeKind::Exit { .. } => {}
            }
        }
        let mut saved: BTreeSet<&NodeId> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            for from in incoming.get(id).into_iter().flatten() {
                if saved.insert(from) {
                    open.push(from);
                }
            }
        }
        for node in &self.parts.nodes {
            let must_lead_on = matches!(node.kind, NodeKind::Start | NodeKind::Task(_));
            if must_lead_on && !saved.contains(&node.id) {
                return Err(GraphDefect::NoExit(node.id.clone()));
            }
        }
        Ok(())
    }
}

fn index_of(parts: &GraphParts) -> Result<BTreeMap<NodeId, usize>, GraphDefect> {
    let mut by_id = BTreeMap::new();
    for (at, node) in parts.nodes.iter().enumerate() {
        if by_id.insert(node.id.clone(), at).is_some() {
            return Err(GraphDefect::DuplicateNode(node.id.clone()));
        }
        let is_start = matches!(node.kind, NodeKind::Start);
        if is_start != (node.id == parts.start) {
            return Err(GraphDefect::Start(node.id.clone()));
        }
        if let NodeKind::Task(task) = &node.kind {
            let lapse_fits = matches!(task.lapse, Outcome::Failed | Outcome::Skipped | Outcome::Warned);
            if node.max_visits == 0 || !lapse_fits || !pace::rises(&task.pace) {
                return Err(GraphDefect::Impossible(node.id.clone()));
            }
        }
    }
    if !by_id.contains_key(&parts.start) {
        return Err(GraphDefect::Start(parts.start.clone()));
    }
    Ok(by_id)
}

fn edge_is_allowed(source: &NodeKind, target: &NodeKind, on: On) -> bool {
    let failing = matches!(on, On::Fail | On::Retry | On::Exhaust);
    match (source, target) {
        (NodeKind::Exit { .. } | NodeKind::Escalate { .. }, _) | (_, NodeKind::Start) => false,
        (NodeKind::Start, NodeKind::Escalate { .. }) => false,
        (NodeKind::Start, _) => !failing,
        (NodeKind::Task(_), NodeKind::Escalate { .. }) => failing,
        (NodeKind::Task(_), _) => true,
    }
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
