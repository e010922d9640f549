//! The invariant of a run that is done (DESIGN 6): each node on its way passed by a verdict, was decided by a named person, or
//! failed and was left by an edge that names the failure.
//!
//! It reads history alone, fact by fact, and shares nothing with the decisions of [`advance`](crate::advance()). The simulator asks
//! it after each event, `planctl audit` asks it of stored histories.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::Verdict;
use crate::fact::Fact;
use crate::graph::{Edge, Graph, JoinPolicy, Node, NodeKind, On, Signal};
use crate::ids::NodeId;
use crate::outcome::{End, Outcome};

/// Follows the history of one run and knows how far each node has come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Earned {
    nodes: BTreeMap<NodeId, NodeProgress>,
    /// How many facts were read.
    read: u64,
    /// When the branches of a join came together last.
    joined: BTreeMap<NodeId, u64>,
    /// How each decision at which nobody works was entered.
    carried: BTreeMap<NodeId, Carried>,
    /// The node which last worked on the way to each routing node, and of the branches that came into a join, the one that failed. It is
    /// noted on entry, as a way that goes in circles leads back to nobody.
    sources: BTreeMap<NodeId, NodeId>,
    /// Joins, forks and checkpoints into which a way came from a node that was let pass.
    let_pass: BTreeSet<NodeId>,
}

/// Records how a decision at which nobody works was entered.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Carried {
    signal: Signal,
    /// Says that the node which last worked on the way was let pass, or a person decided about it.
    is_let_pass: bool,
}

/// How far a node has come since it was entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeProgress {
    /// Nothing is decided; since when.
    Entered(u64),
    /// A verdict of its attempt passed it, or its own run is done.
    Passed,
    /// A command gave its answer.
    Answered,
    /// A person decided.
    Decided,
    /// It failed, and nothing leads on from that yet.
    Failed(u64),
    /// It failed, and an edge that names the failure was followed.
    Left,
    /// It failed, and its policy lets the run go on: as skipped or warned.
    LetPass,
}

impl Earned {
    /// Reads the next fact, under the graph that held when it followed. Returns what breaks the invariant.
    pub fn check_fact(&mut self, graph: &Graph, fact: &Fact) -> Option<String> {
        self.read += 1;
        match fact {
            Fact::NodeEntered { node, .. } if is_work_node(graph, node) => {
                self.nodes.insert(node.clone(), NodeProgress::Entered(self.read));
            }
            Fact::NodeEntered { node, .. } => self.reset_branches(graph, node),
            Fact::NodeVerified { node, verdict, .. } => {
                let progress = match verdict {
                    Verdict::Passed => NodeProgress::Passed,
                    Verdict::Failed | Verdict::TimedOut | Verdict::Tampered => {
                        NodeProgress::Failed(self.read)
                    }
                };
                self.nodes.insert(node.clone(), progress);
            }
            Fact::NodeObserved { node, attempt, check, refuted, .. } => {
                let progress =
                    if refuted.is_none() { NodeProgress::Passed } else { NodeProgress::Failed(self.read) };
                self.nodes.insert(node.clone(), progress);
                let asks = graph.node(node).filter(|node| is_without_contract(node));
                let allowed = asks.and_then(|node| node.confirmation.as_deref()?.check.as_ref());
                return (allowed != Some(check)).then(|| {
                    format!("attempt {attempt} of `{node}` was judged by an observation that its plan does not ask for")
                });
            }
            Fact::SubPlanEnded { node, end, .. } => {
                let progress =
                    if *end == End::Done { NodeProgress::Passed } else { NodeProgress::Failed(self.read) };
                self.nodes.insert(node.clone(), progress);
            }
            Fact::NodeDecided { node, .. } => {
                self.nodes.insert(node.clone(), NodeProgress::Answered);
            }
            Fact::BranchesJoined { node, .. } => {
                self.joined.insert(node.clone(), self.read);
            }
            Fact::NodeSettled { node, outcome, by, .. } if is_work_node(graph, node) => {
                return self.check_settled(node, *outcome, by.is_some());
            }
            // A person also decides about a routing node, if the path back from it went in circles.
            Fact::NodeSettled { node, by: Some(_), outcome, .. } if *outcome != Outcome::Failed => {
                self.carried.remove(node);
                self.sources.remove(node);
                self.nodes.insert(node.clone(), NodeProgress::Decided);
            }
            Fact::EdgeFollowed { .. } => return self.check_followed_edge(graph, fact),
            Fact::EpochBegan { .. } => {
                self.nodes.clear();
                self.joined.clear();
                self.carried.clear();
                self.sources.clear();
                self.let_pass.clear();
            }
            // The person leaves behind what failed or was under way where the run stopped: it goes another way from here.
            Fact::NodeReopened { .. } => {
                self.nodes.retain(|_, progress| {
                    !matches!(progress, NodeProgress::Entered(_) | NodeProgress::Failed(_))
                });
            }
            Fact::PlanCompleted { .. } => return self.check_completed(graph),
            Fact::NodeSettled { node, .. } => {
                self.nodes.remove(node);
            }
            Fact::PlanActivated { .. }
            | Fact::NodeRehearsed { .. }
            | Fact::RetryTriggered { .. }
            | Fact::FidelityReduced { .. }
            | Fact::ContextRefused { .. }
            | Fact::NodeQueued { .. }
            | Fact::CheckpointSaved { .. }
            | Fact::CheckpointRestored { .. }
            | Fact::BranchesForked { .. }
            | Fact::BranchesMerged { .. }
            | Fact::MergeConflicted { .. }
            | Fact::SubPlanBegan { .. }
            | Fact::GoalUnmet { .. }
            | Fact::NodeResting { .. }
            | Fact::NodeInterrupted { .. }
            | Fact::GateRepeated { .. }
            | Fact::AskOpened { .. }
            | Fact::AskAnswered { .. }
            | Fact::PlanEscalated { .. }
            | Fact::PaceChanged { .. }
            | Fact::BudgetNoticed { .. }
            | Fact::PlanExpired { .. }
            | Fact::PlanPaused { .. }
            | Fact::PlanFailed { .. }
            | Fact::PlanCancelled { .. } => {}
        }
        None
    }

    /// Forgets what the branches of a fork had begun that is entered again: they begin anew.
    fn reset_branches(&mut self, graph: &Graph, node: &NodeId) {
        if let Some(NodeKind::Fork(fork)) = graph.node(node).map(|node| &node.kind)
            && let Some(join) = &fork.join
        {
            self.let_pass.remove(join);
            self.sources.remove(join);
            let members = graph.members_of(join);
            self.nodes.retain(|id, progress| {
                !matches!(progress, NodeProgress::Entered(_) | NodeProgress::Failed(_))
                    || !members.contains(id)
            });
        }
    }

    fn check_settled(&mut self, node: &NodeId, outcome: Outcome, by_person: bool) -> Option<String> {
        let before = self.nodes.get(node).copied();
        let (progress, is_founded) = match outcome {
            Outcome::Passed | Outcome::Waived if by_person => (NodeProgress::Decided, true),
            Outcome::Passed => (NodeProgress::Passed, before == Some(NodeProgress::Passed)),
            Outcome::Waived => (NodeProgress::Decided, false),
            Outcome::Skipped | Outcome::Warned if by_person => (NodeProgress::Decided, true),
            Outcome::Skipped | Outcome::Warned => (NodeProgress::LetPass, true),
            Outcome::Failed => (NodeProgress::Failed(self.read), true),
        };
        self.nodes.insert(node.clone(), progress);
        (!is_founded).then(|| format!("`{node}` is {} without a verdict or a person", outcome.as_str()))
    }

    fn check_followed_edge(&mut self, graph: &Graph, fact: &Fact) -> Option<String> {
        let Fact::EdgeFollowed { from, to, signal, on, label, .. } = fact else { return None };
        let is_let_pass = self.is_let_pass(from);
        self.note_source(graph, from, to, *signal != Signal::Success && !is_let_pass);
        match graph.node(to).map(|node| &node.kind) {
            Some(NodeKind::Decision(choice)) if choice.command.is_none() => {
                self.carried.insert(to.clone(), Carried { signal: *signal, is_let_pass });
            }
            Some(NodeKind::Join(_) | NodeKind::Checkpoint | NodeKind::Fork(_)) if is_let_pass => {
                self.let_pass.insert(to.clone());
            }
            Some(NodeKind::Checkpoint | NodeKind::Fork(_)) => {
                self.let_pass.remove(to);
            }
            Some(_) | None => {}
        }
        // A fork spreads, and a checkpoint goes on from what it restored: both were entered by an edge that was judged.
        let is_judged = !matches!(
            graph.node(from).map(|node| &node.kind),
            None | Some(
                NodeKind::Start | NodeKind::Fork(_) | NodeKind::Checkpoint | NodeKind::Escalate { .. }
            )
        );
        if !is_judged {
            return None;
        }
        if *signal == Signal::Success {
            let is_earned = match self.nodes.get(from) {
                _ if !is_work_node(graph, from) => self.is_entered_from_pass(from),
                Some(
                    NodeProgress::Passed
                    | NodeProgress::Answered
                    | NodeProgress::Decided
                    | NodeProgress::LetPass,
                ) => true,
                Some(NodeProgress::Entered(_) | NodeProgress::Failed(_) | NodeProgress::Left) | None => false,
            };
            return (!is_earned).then(|| format!("the run went on from `{from}` to `{to}` as from a pass"));
        }
        let is_same = |edge: &&Edge| edge.to == *to && edge.on == *on && edge.label == *label;
        let mut edges = graph.edges_from(from).iter().filter(is_same).peekable();
        let is_named = match on {
            On::Fail | On::Exhaust | On::Retry => true,
            On::Success => false,
            On::Always => edges.peek().is_none() || edges.any(|edge| self.names_failure(graph, edge)),
        };
        if let Some(progress @ (NodeProgress::Failed(_) | NodeProgress::Entered(_))) =
            self.nodes.get_mut(from)
        {
            *progress = NodeProgress::Left;
        }
        (!is_named)
            .then(|| format!("the edge from `{from}` to `{to}` names no failure, and was followed after one"))
    }

    /// Says whether the node that last worked before this one, itself included, was let pass, or a person decided about it.
    fn is_let_pass(&self, node: &NodeId) -> bool {
        match self.carried.get(node) {
            Some(carried) => carried.is_let_pass,
            None => {
                self.let_pass.contains(node)
                    || matches!(self.nodes.get(node), Some(NodeProgress::LetPass | NodeProgress::Decided))
            }
        }
    }

    fn names_failure(&self, graph: &Graph, edge: &Edge) -> bool {
        let Some(when) = &edge.when else { return true };
        let subject = self.status_source(&edge.from);
        let code = |node: &NodeId| graph.gated(node).map(|gated| gated.contract.expect);
        let expected = |named: Option<&str>| match named {
            None => Some(code(subject)),
            Some(name) if name == subject.as_str() || name == edge.from.as_str() => {
                Some(code(&NodeId::new(name)))
            }
            Some(_) => None,
        };
        when.names_failure(&expected)
    }

    fn note_source(&mut self, graph: &Graph, from: &NodeId, to: &NodeId, has_failed: bool) {
        let Some(target) = graph.node(to).filter(|node| node.is_routing()) else { return };
        let is_join = matches!(target.kind, NodeKind::Join(_));
        if !is_join || has_failed || !self.sources.contains_key(to) {
            let source = self.status_source(from).clone();
            self.sources.insert(to.clone(), source);
        }
    }

    /// Returns the node that last worked before this one, itself included.
    fn status_source<'a>(&'a self, node: &'a NodeId) -> &'a NodeId {
        self.sources.get(node).unwrap_or(node)
    }

    /// Says whether a decision at which nobody works was entered from a pass, or from what is let pass.
    fn is_entered_from_pass(&self, node: &NodeId) -> bool {
        let Some(carried) = self.carried.get(node) else { return true };
        carried.signal == Signal::Success || carried.is_let_pass
    }

    fn check_completed(&self, graph: &Graph) -> Option<String> {
        // The first branch that comes well suffices for some joins, and the others are taken back. So is what a branch still has
        // under way side by side once it has come to its join.
        let is_taken_back = |node: &NodeId, since: u64| {
            self.joined.iter().filter(|(_, at)| **at > since).any(|(join, _)| {
                let rule = graph.node(join).map(|node| &node.kind);
                let suffices = matches!(rule, Some(NodeKind::Join(rule)) if rule.policy == JoinPolicy::Any);
                suffices && is_of_branch(graph, join, node) || is_forked_within(graph, join, node)
            })
        };
        let open = self.nodes.iter().find_map(|(node, progress)| match progress {
            NodeProgress::Entered(since) | NodeProgress::Failed(since)
                if graph.node(node).is_some() && !is_taken_back(node, *since) =>
            {
                Some((node, progress))
            }
            NodeProgress::Entered(_)
            | NodeProgress::Failed(_)
            | NodeProgress::Passed
            | NodeProgress::Answered
            | NodeProgress::Decided
            | NodeProgress::Left
            | NodeProgress::LetPass => None,
        });
        open.map(|(node, progress)| {
            let what =
                if matches!(progress, NodeProgress::Failed(_)) { "failed" } else { "was never judged" };
            format!("the run is done, and `{node}` {what}")
        })
    }
}

/// Says whether a node is of a branch that comes into a join, also where the fork that begins it names no join.
fn is_of_branch(graph: &Graph, join: &NodeId, node: &NodeId) -> bool {
    if graph.fork_of(join).is_some() {
        return graph.members_of(join).contains(node);
    }
    if graph.leading_only_to(join).contains(node) {
        return true;
    }
    let is_unnamed = |node: &Node| matches!(&node.kind, NodeKind::Fork(fork) if fork.join.is_none());
    graph.nodes().iter().filter(|node| is_unnamed(node)).any(|fork| {
        let begins = graph.edges_from(&fork.id).iter();
        let members: BTreeSet<&NodeId> =
            begins.flat_map(|edge| graph.branch_from(&edge.to, |id| id == join)).collect();
        members.contains(node) && members.iter().any(|id| graph.branch_number(join, id).is_some())
    })
}

/// Says whether a node is of a branch of a fork that itself lies on a branch of a join.
fn is_forked_within(graph: &Graph, join: &NodeId, node: &NodeId) -> bool {
    let members = graph.members_of(join);
    let forks = members.iter().filter(|id| graph.is_fork(id));
    members.contains(node)
        && forks.flat_map(|fork| graph.edges_from(fork)).any(|edge| {
            let branch = graph.branch_from(&edge.to, |id| id == join);
            branch.contains(node)
        })
}

/// Says whether the harness has nothing to run at a node.
fn is_without_contract(node: &Node) -> bool {
    node.gated().is_none_or(|gated| gated.contract.is_none())
}

/// Says whether somebody works, answers or decides at a node.
fn is_work_node(graph: &Graph, id: &NodeId) -> bool {
    let is_work = |kind: &NodeKind| matches!(kind, NodeKind::Human(_) | NodeKind::SubPlan(_));
    graph.node(id).is_some_and(|node| node.gated().is_some() || is_work(&node.kind))
}
