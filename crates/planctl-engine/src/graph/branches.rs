//! Which branch of a join each edge into it belongs to.
//!
//! Where one fork began all branches of a join, a branch is everything between an edge of the fork and the join, however
//! many edges of it lead into the join. Where steps name what they need, each node that leads into the join is a branch.

use std::collections::{BTreeMap, BTreeSet};

use super::{Edge, Graph, GraphDefect, GraphParts, NodeKind};
use crate::ids::NodeId;

/// The branches of all joins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Branches {
    joins: BTreeMap<NodeId, Arms>,
    /// The innermost branch with a worktree of its own in which a node works.
    worktree_branches: BTreeMap<NodeId, WorktreeBranch>,
    /// The fork, and which of its edges, by which a branch begins with a node.
    begins: BTreeMap<NodeId, (NodeId, u16)>,
}

/// A branch that works in a git worktree of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WorktreeBranch {
    /// The fork that began it.
    pub fork: NodeId,
    /// The join at which it is merged.
    pub join: NodeId,
    /// Which branch of the fork it is, counted from 0.
    pub branch: u16,
}

/// The branches of one join.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Arms {
    fork: Option<NodeId>,
    count: u16,
    of: BTreeMap<NodeId, u16>,
    /// The branch of each node between the fork and the join.
    within: BTreeMap<NodeId, u16>,
}

impl Branches {
    pub(super) fn of(
        parts: &GraphParts,
        outgoing: &BTreeMap<NodeId, Vec<Edge>>,
    ) -> Result<Branches, GraphDefect> {
        let kinds: BTreeMap<&NodeId, &NodeKind> =
            parts.nodes.iter().map(|node| (&node.id, &node.kind)).collect();
        let mut joins: BTreeMap<NodeId, Arms> = BTreeMap::new();
        let mut in_worktrees = Vec::new();
        for node in &parts.nodes {
            let NodeKind::Fork(fork) = &node.kind else { continue };
            if fork.in_worktree {
                let join = fork.join.clone();
                in_worktrees.push(join.ok_or_else(|| GraphDefect::Misjoined(node.id.clone()))?);
            }
            if let Some(join) = &fork.join {
                let is_join = matches!(kinds.get(join), Some(NodeKind::Join(_)));
                if !is_join || joins.contains_key(join) {
                    return Err(GraphDefect::Misjoined(node.id.clone()));
                }
                joins.insert(join.clone(), fork_arms(&node.id, join, &kinds, outgoing)?);
            }
        }
        for edge in parts.edges.iter().filter(stays) {
            if matches!(kinds.get(&edge.to), Some(NodeKind::Join(_))) {
                let arms = joins.entry(edge.to.clone()).or_default();
                if arms.fork.is_none() && !arms.of.contains_key(&edge.from) {
                    arms.of.insert(edge.from.clone(), arms.count);
                    arms.count = arms.count.saturating_add(1);
                } else if !arms.of.contains_key(&edge.from) {
                    return Err(GraphDefect::Misjoined(edge.to.clone()));
                }
            }
        }
        match parts.goals.iter().find(|goal| !kinds.contains_key(&goal.node)) {
            Some(goal) => Err(GraphDefect::Misjoined(goal.node.clone())),
            None => {
                let worktree_branches = worktree_branches(&joins, &in_worktrees);
                Ok(Branches { joins, worktree_branches, begins: branch_beginnings(parts, outgoing) })
            }
        }
    }

    pub(super) fn worktree_branch(&self, node: &NodeId) -> Option<&WorktreeBranch> {
        self.worktree_branches.get(node)
    }

    pub(super) fn branch_beginning_at(&self, node: &NodeId) -> Option<(&NodeId, u16)> {
        self.begins.get(node).map(|(fork, branch)| (fork, *branch))
    }

    pub(super) fn branch_number(&self, join: &NodeId, from: &NodeId) -> Option<u16> {
        self.joins.get(join)?.of.get(from).copied()
    }

    pub(super) fn count(&self, join: &NodeId) -> u16 {
        self.joins.get(join).map_or(0, |arms| arms.count)
    }

    pub(super) fn fork(&self, join: &NodeId) -> Option<&NodeId> {
        self.joins.get(join)?.fork.as_ref()
    }

    pub(super) fn around(&self, node: &NodeId) -> Vec<(NodeId, u16)> {
        let mut around: Vec<(&NodeId, &Arms, u16)> = self
            .joins
            .iter()
            .filter_map(|(join, arms)| Some((join, arms, *arms.within.get(node)?)))
            .collect();
        around.sort_by_key(|(_, arms, _)| arms.within.len());
        around.into_iter().map(|(join, _, branch)| (join.clone(), branch)).collect()
    }

    pub(super) fn members_of(&self, graph: &Graph, join: &NodeId) -> BTreeSet<NodeId> {
        let Some(fork) = self.fork(join) else { return BTreeSet::new() };
        let mut members = BTreeSet::new();
        let mut open: Vec<&NodeId> = graph.edges_from(fork).iter().map(|edge| &edge.to).collect();
        while let Some(id) = open.pop() {
            // Ways out, which many share, lead on to what is no part of a branch.
            let leads_on = graph.node(id).is_some_and(|node| !matches!(node.kind, NodeKind::Escalate { .. }));
            if id != join && members.insert(id.clone()) && leads_on {
                open.extend(graph.edges_from(id).iter().filter(stays).map(|edge| &edge.to));
            }
        }
        members
    }
}

/// Says whether an edge leads on within a run's epoch; an edge that begins an epoch belongs to no branch.
fn stays(edge: &&Edge) -> bool {
    edge.restart.is_none()
}

impl Graph {
    /// Returns the joins without a fork of their own that lie ahead of a fork, each with those of its branches that begin
    /// anew where the fork is entered again. Nodes on every path to the fork lie behind it and are not searched.
    pub fn awaited_behind(&self, fork: &NodeId) -> Vec<(NodeId, Vec<u16>)> {
        let before = self.dominators_of(fork);
        let mut seen = BTreeSet::new();
        let mut open: Vec<&NodeId> = self.edges_from(fork).iter().map(|edge| &edge.to).collect();
        let mut awaited: BTreeMap<&NodeId, Vec<u16>> = BTreeMap::new();
        while let Some(id) = open.pop() {
            if before.contains(id) || !seen.insert(id) {
                continue;
            }
            for edge in self.edges_from(id).iter().filter(stays) {
                if let Some(branch) = self.branch_number(&edge.to, id)
                    && self.fork_of(&edge.to).is_none()
                    && !before.contains(&edge.to)
                {
                    awaited.entry(&edge.to).or_default().push(branch);
                }
                open.push(&edge.to);
            }
        }
        awaited.into_iter().map(|(join, branches)| (join.clone(), branches)).collect()
    }

    /// Returns the nodes from which every way to a good end leads through a join, which ways out of the epoch do not.
    pub(crate) fn leading_only_to(&self, join: &NodeId) -> BTreeSet<NodeId> {
        let mut sources: BTreeMap<&NodeId, Vec<&NodeId>> = BTreeMap::new();
        let mut past: Vec<&NodeId> = Vec::new();
        for edge in self.edges().iter().filter(|edge| edge.from != *join) {
            if edge.restart.is_some() {
                past.push(&edge.from);
            } else {
                sources.entry(&edge.to).or_default().push(&edge.from);
            }
        }
        let exits = self.nodes().iter().filter(|node| matches!(node.kind, NodeKind::Exit { success: true }));
        past.extend(exits.map(|node| &node.id));
        let walk_back = |from: Vec<&NodeId>, but: Option<&NodeId>| {
            let (mut seen, mut open) = (BTreeSet::new(), from);
            while let Some(id) = open.pop() {
                if Some(id) != but && seen.insert(id.clone()) {
                    open.extend(sources.get(id).into_iter().flatten());
                }
            }
            seen
        };
        let past = walk_back(past, Some(join));
        let mut leading = walk_back(vec![join], None);
        leading.retain(|id| id != join && !past.contains(id));
        leading
    }

    /// Says whether a node that leads into a join without a fork of its own can be come to from that join, and is not one of its
    /// branches that begin anew with their fork. Where it can, the run comes round; else the branch began before the join went on.
    pub fn comes_round(&self, join: &NodeId, from: &NodeId) -> bool {
        let branch = self.branch_number(join, from);
        let awaits_anew = |id: &NodeId| {
            let is_unnamed = matches!(
                self.node(id).map(|node| &node.kind),
                Some(NodeKind::Fork(fork)) if fork.join.is_none()
            );
            let awaited = if is_unnamed { self.awaited_behind(id) } else { Vec::new() };
            let mut branches = awaited.iter().filter(|(id, _)| id == join).flat_map(|(_, branches)| branches);
            branches.any(|known| Some(*known) == branch)
        };
        let (mut seen, mut open) = (BTreeSet::new(), vec![join]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) || awaits_anew(id) {
                continue;
            }
            open.extend(self.edges_from(id).iter().filter(stays).map(|edge| &edge.to));
            if matches!(self.node(id).map(|node| &node.kind), Some(NodeKind::Exit { success: true })) {
                open.extend(self.goals().iter().filter_map(|goal| goal.retry.as_ref()));
            }
        }
        seen.contains(from)
    }

    /// Returns the nodes that every way from the start to a node leads through, that node among them.
    fn dominators_of(&self, node: &NodeId) -> BTreeSet<NodeId> {
        let way = self.path_to(node);
        let places: BTreeMap<&NodeId, usize> = way.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let (mut passed, mut seen) = (BTreeSet::new(), BTreeSet::new());
        // How far along the way one comes past it.
        let mut farthest = 0;
        for (at, id) in way.iter().copied().enumerate() {
            if farthest <= at {
                passed.insert(id.clone());
            }
            let mut open = vec![id];
            while let Some(id) = open.pop() {
                for edge in self.edges_from(id) {
                    match places.get(&edge.to) {
                        Some(place) => farthest = farthest.max(*place),
                        None if seen.insert(&edge.to) => open.push(&edge.to),
                        None => {}
                    }
                }
            }
        }
        passed
    }

    /// Returns one of the ways from the start to a node, both among them.
    fn path_to(&self, node: &NodeId) -> Vec<&NodeId> {
        let mut reached_from: BTreeMap<&NodeId, &NodeId> = BTreeMap::new();
        let mut open = std::collections::VecDeque::from([self.start()]);
        while let Some(id) = open.pop_front() {
            for edge in self.edges_from(id) {
                if edge.to != *self.start() && !reached_from.contains_key(&edge.to) {
                    reached_from.insert(&edge.to, id);
                    open.push_back(&edge.to);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = reached_from.get_key_value(node).map(|(id, _)| *id);
        while let Some(id) = at {
            way.push(id);
            at = reached_from.get(id).copied();
        }
        way.reverse();
        way
    }

    /// Returns the nodes of each branch that comes into a join, in the author's order; of steps that only name what they
    /// need, a branch is the step that leads into the join.
    pub fn branch_members(&self, join: &NodeId) -> Vec<BTreeSet<NodeId>> {
        let Some(fork) = self.fork_of(join) else {
            let mut members = vec![BTreeSet::new(); usize::from(self.branches_into(join))];
            for edge in self.edges().iter().filter(|edge| edge.to == *join) {
                let own =
                    self.branch_number(join, &edge.from).and_then(|at| members.get_mut(usize::from(at)));
                if let Some(own) = own {
                    own.insert(edge.from.clone());
                }
            }
            return members;
        };
        let branch = |edge: &Edge| self.branch_from(&edge.to, |id| id == join).into_iter().cloned().collect();
        self.edges_from(fork).iter().map(branch).collect()
    }

    /// Returns the nodes that ways lead to from the beginning of a branch, up to where it ends; ways out of it are not part
    /// of it.
    pub fn branch_from<'g>(
        &'g self,
        first: &'g NodeId,
        ends_at: impl Fn(&NodeId) -> bool,
    ) -> BTreeSet<&'g NodeId> {
        let (mut members, mut open) = (BTreeSet::new(), vec![first]);
        while let Some(id) = open.pop() {
            let kind = self.node(id).map(|node| &node.kind);
            let leads_out = matches!(kind, None | Some(NodeKind::Exit { .. } | NodeKind::Escalate { .. }));
            if !leads_out && !ends_at(id) && members.insert(id) {
                open.extend(self.edges_from(id).iter().filter(stays).map(|edge| &edge.to));
            }
        }
        members
    }
}

/// Finds for each node the innermost branch with a worktree of its own: that of which the fewest nodes are.
fn worktree_branches(
    joins: &BTreeMap<NodeId, Arms>,
    in_worktrees: &[NodeId],
) -> BTreeMap<NodeId, WorktreeBranch> {
    let mut all: Vec<(&NodeId, &Arms)> =
        in_worktrees.iter().filter_map(|join| joins.get_key_value(join)).collect();
    all.sort_by_key(|(_, arms)| std::cmp::Reverse(arms.within.len()));
    let mut worktree_branches = BTreeMap::new();
    for (join, arms) in all {
        let Some(fork) = &arms.fork else { continue };
        for (node, branch) in &arms.within {
            let of = WorktreeBranch { fork: fork.clone(), join: join.clone(), branch: *branch };
            worktree_branches.insert(node.clone(), of);
        }
    }
    worktree_branches
}

/// Finds for each node with which a branch begins its fork, and which of the fork's edges it is.
fn branch_beginnings(
    parts: &GraphParts,
    outgoing: &BTreeMap<NodeId, Vec<Edge>>,
) -> BTreeMap<NodeId, (NodeId, u16)> {
    let mut begins = BTreeMap::new();
    for node in parts.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Fork(_))) {
        let edges = outgoing.get(&node.id).map_or(&[][..], Vec::as_slice);
        for (edge, branch) in edges.iter().zip(0_u16..) {
            begins.entry(edge.to.clone()).or_insert_with(|| (node.id.clone(), branch));
        }
    }
    begins
}

/// Walks each branch of a fork up to its join.
fn fork_arms(
    fork: &NodeId,
    join: &NodeId,
    kinds: &BTreeMap<&NodeId, &NodeKind>,
    outgoing: &BTreeMap<NodeId, Vec<Edge>>,
) -> Result<Arms, GraphDefect> {
    let edges = |id: &NodeId| outgoing.get(id).map_or(&[][..], Vec::as_slice);
    let mut arms = Arms { fork: Some(fork.clone()), ..Arms::default() };
    // By which branch each node was reached; ways out that several share belong to none.
    let mut reached: BTreeMap<&NodeId, u16> = BTreeMap::new();
    let mut asks: BTreeMap<&NodeId, BTreeSet<u16>> = BTreeMap::new();
    for (edge, branch) in edges(fork).iter().zip(0_u16..) {
        arms.count = branch + 1;
        let mut open = vec![(fork, &edge.to)];
        while let Some((from, id)) = open.pop() {
            if id == join {
                arms.of.insert(from.clone(), branch);
                continue;
            }
            match kinds.get(id) {
                Some(NodeKind::Exit { .. }) => continue,
                Some(NodeKind::Escalate { .. }) => {
                    asks.entry(id).or_default().insert(branch);
                    continue;
                }
                Some(_) | None => {}
            }
            if id == fork {
                return Err(GraphDefect::CrossingBranches { fork: fork.clone(), node: from.clone() });
            }
            match reached.insert(id, branch) {
                Some(before) if before != branch => {
                    return Err(GraphDefect::CrossingBranches { fork: fork.clone(), node: id.clone() });
                }
                Some(_) => {}
                None => open.extend(edges(id).iter().filter(stays).map(|edge| (id, &edge.to))),
            }
        }
    }
    let own = asks.into_iter().filter(|(_, branches)| branches.len() == 1);
    reached.extend(own.filter_map(|(id, branches)| Some((id, branches.first().copied()?))));
    arms.within = reached.into_iter().map(|(node, branch)| (node.clone(), branch)).collect();
    Ok(arms)
}
