//! Where branches meet: each fork finds its join, and branches that may never come to one are refused.
//!
//! A fork and a join belong together where everything between them can be reached from this fork only, and leads to this join
//! or to an end: then a branch may choose its way, and counts once. Else, as where step 5 needs steps 2 and 3 and step 4 needs
//! 2 alone, each node that leads into a join is awaited by itself, so it must be sure to come.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{GraphParts, JoinPolicy, NodeId, NodeKind, On};

use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, escape};
use crate::tree::workflow::{Origin, Workflow, left_waiting, node_flags, reached};

/// The most forks whose joins are looked for, and the most joins that are looked at for each; every one costs a walk.
const FORKS_MAX: usize = 500;
const JOINS_MAX: usize = 8;
/// The most nodes that are walked over while joins are looked for; a fork without one by then awaits each node by itself.
const WALKED_MAX: usize = 1_000_000;
/// The most nodes awaited by joins of which it is asked whether a run may go past them; each costs a walk.
const AWAITED_MAX: usize = 1_000;
/// The most findings.
const FINDINGS_MAX: usize = 20;

/// The nodes by their places, with the ways between them.
pub(super) struct Net {
    ids: Vec<NodeId>,
    successors: Vec<Vec<usize>>,
    back: Vec<Vec<usize>>,
    pub(super) forks: Vec<usize>,
    is_fork: Vec<bool>,
    joins: BTreeSet<usize>,
    /// Joins that go on with the first branch that comes well.
    lenient: BTreeSet<usize>,
    /// Where a run ends, or is held for a person: nothing is awaited from there.
    ends: BTreeSet<usize>,
    goals: BTreeSet<usize>,
    start: usize,
    walked: Cell<usize>,
}

impl Net {
    pub(super) fn of(parts: &GraphParts) -> Net {
        let places: BTreeMap<&NodeId, usize> =
            parts.nodes.iter().enumerate().map(|(at, node)| (&node.id, at)).collect();
        let of_kind = |is_it: &dyn Fn(&NodeKind) -> bool| -> Vec<usize> {
            (0..parts.nodes.len()).filter(|at| is_it(&parts.nodes[*at].kind)).collect()
        };
        let mut net = Net {
            ids: parts.nodes.iter().map(|node| node.id.clone()).collect(),
            successors: vec![Vec::new(); parts.nodes.len()],
            back: vec![Vec::new(); parts.nodes.len()],
            is_fork: vec![false; parts.nodes.len()],
            forks: of_kind(&|kind| matches!(kind, NodeKind::Fork(_))),
            joins: of_kind(&|kind| matches!(kind, NodeKind::Join(_))).into_iter().collect(),
            lenient: of_kind(&|kind| matches!(kind, NodeKind::Join(join) if join.policy == JoinPolicy::Any))
                .into_iter()
                .collect(),
            ends: of_kind(&|kind| {
                matches!(kind, NodeKind::Escalate { .. } | NodeKind::Exit { success: false })
            })
            .into_iter()
            .collect(),
            goals: of_kind(&|kind| matches!(kind, NodeKind::Exit { success: true })).into_iter().collect(),
            start: places.get(&parts.start).copied().unwrap_or(0),
            walked: Cell::new(0),
        };
        for fork in &net.forks {
            net.is_fork[*fork] = true;
        }
        for edge in &parts.edges {
            if let (Some(from), Some(to)) = (places.get(&edge.from), places.get(&edge.to))
                && edge.on != On::Retry
                // A new beginning awaits nothing of the epoch before.
                && edge.restart.is_none()
            {
                net.successors[*from].push(*to);
                net.back[*to].push(*from);
            }
        }
        let restarts = parts.edges.iter().filter(|edge| edge.restart.is_some());
        let left =
            restarts.filter_map(|edge| places.get(&edge.from)).filter(|at| net.successors[**at].is_empty());
        let left: Vec<usize> = left.copied().collect();
        net.ends.extend(left);
        net
    }

    /// Gives each fork its join, and each join the policy of its fork where it says none itself (B5).
    ///
    /// Returns where the two say different things, and where a fork speaks of a join that it does not have.
    ///
    /// # Errors
    ///
    /// Names what a join awaits and a run may go past, and ways back out of branches.
    pub(super) fn assign_joins(
        &mut self,
        parts: &mut GraphParts,
        workflow: &Workflow,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.forks.is_empty() && self.joins.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = BTreeMap::new();
        for fork in &self.forks {
            self.join_of(*fork, &mut found);
        }
        let mut idle = self.policies(&found, parts, workflow);
        let alone = found.iter().filter(|(_, join)| join.is_none()).map(|(fork, _)| *fork);
        idle.extend(alone.flat_map(|fork| self.words_without_join(fork, workflow)));
        let findings = self.uncertain_joins(&found, workflow);
        if !findings.is_empty() {
            return Err(findings);
        }
        for (fork, join) in found {
            if let NodeKind::Fork(fork) = &mut parts.nodes[fork].kind {
                fork.join = join.map(|join| self.ids[join].clone());
            }
        }
        Ok(idle)
    }

    // B5: the dialect says on the fork how many branches its join waits for.
    fn policies(
        &mut self,
        found: &BTreeMap<usize, Option<usize>>,
        parts: &mut GraphParts,
        workflow: &Workflow,
    ) -> Vec<Diagnostic> {
        let said = |at: usize| {
            let node = workflow.nodes.iter().find(|node| node.id.value == self.ids[at].as_str())?;
            node.attributes.join_policy.spanned()
        };
        let mut clashes = Vec::new();
        let mut lenient = Vec::new();
        for (fork, join) in found.iter().filter_map(|(fork, join)| Some((*fork, (*join)?))) {
            let Some(policy) = said(fork) else { continue };
            let of_fork = policy.value;
            match said(join) {
                Some(own) if own.value != of_fork => {
                    let message = format!(
                        "`{}` and its join `{}` say different things about how many branches are waited for",
                        escape(self.ids[fork].as_str()),
                        escape(self.ids[join].as_str())
                    );
                    let clash = Diagnostic::new(Code::P318, message).at(policy.span, "this has no effect");
                    clashes.push(clash.at(own.span, "this counts").help("keep one of them"));
                }
                Some(_) => {}
                None => {
                    if let NodeKind::Join(join) = &mut parts.nodes[join].kind {
                        join.policy = of_fork;
                    }
                    if of_fork == JoinPolicy::Any {
                        lenient.push(join);
                    }
                }
            }
        }
        self.lenient.extend(lenient);
        clashes
    }

    // The branches of a fork are counted at its join.
    fn words_without_join(&self, fork: usize, workflow: &Workflow) -> Vec<Diagnostic> {
        let id = self.ids[fork].as_str();
        let Some(node) = workflow.nodes.iter().find(|node| node.id.value == id) else { return Vec::new() };
        let said = [
            ("max_parallel", node.attributes.max_parallel.raw().map(|said| said.span)),
            ("join_policy", node.attributes.join_policy.raw().map(|said| said.span)),
        ];
        let said = said.into_iter().filter_map(|(name, span)| Some((name, span?)));
        let finding = |(name, span)| {
            let fork = escape(id);
            let message = format!(
                "the branches of `{fork}` meet in no join of their own, so its `{name}` has no effect"
            );
            let idle = Diagnostic::new(Code::P319, message).at(span, "");
            idle.help(format!(
                "delete `{name}`, or lead all branches of `{fork}` to one join, past which no way leads"
            ))
        };
        said.map(finding).collect()
    }

    /// Finds the join of a fork, after those of the forks between the two.
    fn join_of(&self, fork: usize, found: &mut BTreeMap<usize, Option<usize>>) -> Option<usize> {
        if let Some(known) = found.get(&fork) {
            return *known;
        }
        // A fork that is come to again while its join is looked for has none.
        found.insert(fork, None);
        if found.len() > FORKS_MAX {
            return None;
        }
        let join = self.joins_from(fork).into_iter().find(|join| self.is_closed(fork, *join, found));
        found.insert(fork, join);
        join
    }

    // Joins in the order in which a walk along all ways comes to them.
    fn joins_from(&self, fork: usize) -> Vec<usize> {
        let mut seen = BTreeSet::from([fork]);
        let mut open = std::collections::VecDeque::from([fork]);
        let mut joins = Vec::new();
        while let Some(at) = open.pop_front() {
            for to in &self.successors[at] {
                if seen.insert(*to) {
                    open.push_back(*to);
                    if self.joins.contains(to) {
                        joins.push(*to);
                    }
                }
            }
            if joins.len() >= JOINS_MAX {
                break;
            }
        }
        joins
    }

    // Says whether the branches of a fork lie apart up to a join, lead to it, and nothing else does.
    fn is_closed(&self, fork: usize, join: usize, found: &mut BTreeMap<usize, Option<usize>>) -> bool {
        let mut branch_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (branch, head) in self.successors[fork].iter().enumerate() {
            let mut open = vec![*head];
            while let Some(at) = open.pop() {
                self.walked.set(self.walked.get() + 1);
                if self.walked.get() > WALKED_MAX {
                    return false;
                }
                if at == join || self.ends.contains(&at) {
                    continue;
                }
                if at == fork || self.goals.contains(&at) {
                    return false;
                }
                match branch_of.insert(at, branch) {
                    Some(known) if known != branch => return false,
                    Some(_) => {}
                    None => open.extend(&self.successors[at]),
                }
            }
        }
        let is_within = |at: &usize| branch_of.contains_key(at);
        let enters_apart =
            branch_of.keys().any(|at| self.back[*at].iter().any(|from| *from != fork && !is_within(from)));
        let inner: Vec<usize> = self.forks.iter().copied().filter(|inner| is_within(inner)).collect();
        !enters_apart
            && self.back[join].iter().all(|from| is_within(from) || *from == fork)
            && inner
                .into_iter()
                .all(|inner| self.join_of(inner, found).is_some_and(|join| branch_of.contains_key(&join)))
    }

    /// Returns a finding for each node that a join awaits and that a run may go past.
    fn uncertain_joins(
        &self,
        found: &BTreeMap<usize, Option<usize>>,
        workflow: &Workflow,
    ) -> Vec<Diagnostic> {
        let closed: BTreeSet<usize> = found.values().copied().flatten().collect();
        let open = self.joins.iter().filter(|join| !closed.contains(join) && !self.lenient.contains(join));
        let awaited = open.flat_map(|join| {
            let from: BTreeSet<usize> = self.back[*join].iter().copied().collect();
            from.into_iter().map(|from| (*join, from))
        });
        let mut findings = Vec::new();
        for (join, from) in awaited.take(if self.has_choices() { AWAITED_MAX } else { 0 }) {
            if findings.len() < FINDINGS_MAX
                && let Some(past) = self.edge_past(from, join)
            {
                findings.push(self.finding(join, from, past, workflow));
            }
        }
        let rings = left_waiting(&self.successors);
        let roofless = self.forks.iter().filter(|fork| found.get(fork).is_none_or(Option::is_none));
        let roofless = roofless.filter(|fork| rings[**fork]).take(FORKS_MAX);
        for fork in roofless {
            if findings.len() < FINDINGS_MAX
                && let Some((from, to)) = self.edge_back(*fork)
            {
                let name = |at: usize| escape(self.ids[at].as_str());
                let back = match to == *fork {
                    true => "to".to_owned(),
                    false => format!("to `{}`, before", name(to)),
                };
                let message = format!(
                    "a path leads from `{}` back {back} where branches begin (`{}`), while the others are under way",
                    name(from),
                    name(*fork)
                );
                let target = target_of(workflow, &self.ids[from], &self.ids[to]);
                let span = target.unwrap_or_else(|| span_of(workflow, &self.ids[from]));
                let finding = Diagnostic::new(Code::P315, message).at(span, "a path back from here");
                findings.push(finding.help(
                    "let the branches meet before a path leads back, or keep the path back within one branch",
                ));
            }
        }
        findings
    }

    // Where a run may leave for good every way from a node into a join, if it may. All ways are taken from a fork and one from any
    // other node; loops are bounded, so a run leaves them.
    fn edge_past(&self, node: usize, join: usize) -> Option<usize> {
        let mut sure = vec![true; self.successors.len()];
        let mut open: Vec<usize> = self.goals.iter().copied().collect();
        // Where some ways lead there and others past it.
        let mut forked_at = None;
        for goal in &open {
            sure[*goal] = false;
        }
        while let Some(at) = open.pop() {
            for from in &self.back[at] {
                if !sure[*from] || (*from == node && at == join) {
                    continue;
                }
                let is_fork = self.is_fork[*from];
                let is_lost = |to: &usize| !(sure[*to] || (*from == node && *to == join));
                if !is_fork || self.successors[*from].iter().all(is_lost) {
                    sure[*from] = false;
                    let leads_there =
                        |to: &usize| sure[*to] && !self.ends.contains(to) || (*from == node && *to == join);
                    if self.successors[*from].iter().any(leads_there) {
                        forked_at = Some(*from);
                    }
                    open.push(*from);
                }
            }
        }
        (!sure[self.start]).then(|| forked_at.unwrap_or(self.start))
    }

    // The last node of a way from a fork back to it that no join of all its branches cuts.
    // The step of a way back to a fork that leaves its branches, and what is before the fork is entered by it (DOT B12).
    fn edge_back(&self, fork: usize) -> Option<(usize, usize)> {
        let within = self.reachable_from(fork, self.last_join(fork));
        let last = self.back[fork].iter().copied().find(|from| within[*from])?;
        let mut before = self.reachable_from(self.start, Some(fork));
        before[self.start] = true;
        let leads_back = |to: usize| to == fork || before[to] && self.reachable_from(to, None)[fork];
        let of_branch = (0..within.len()).filter(|at| within[*at] && !before[*at] && *at != fork);
        let mut steps = of_branch.flat_map(|from| self.successors[from].iter().map(move |to| (from, *to)));
        steps.find(|(_, to)| leads_back(*to)).or(Some((last, fork)))
    }

    // The first join through which every way from a fork to a good end leads.
    fn last_join(&self, fork: usize) -> Option<usize> {
        self.joins_from(fork).into_iter().find(|join| {
            let past = self.reachable_from(fork, Some(*join));
            !self.goals.iter().any(|goal| past[*goal])
        })
    }

    /// Returns the nodes between a fork and where its branches meet that lie on one branch only, each with that branch.
    pub(super) fn branches(&self, fork: usize) -> BTreeMap<usize, usize> {
        let cut = self.last_join(fork);
        let mut of: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for (branch, head) in self.successors[fork].iter().enumerate() {
            let mut own = self.reachable_from(*head, cut);
            own[*head] = true;
            let own = (0..own.len()).filter(|node| own[*node] && Some(*node) != cut && *node != fork);
            for node in own {
                of.entry(node).and_modify(|known| *known = None).or_insert(Some(branch));
            }
        }
        of.into_iter().filter_map(|(node, branch)| Some((node, branch?))).collect()
    }

    fn reachable_from(&self, from: usize, but: Option<usize>) -> Vec<bool> {
        let next = |at: usize| self.successors[at].iter().copied().filter(move |to| Some(*to) != but);
        let count = self.successors.len();
        node_flags(count, reached(count, [from], next))
    }

    // Says whether a run may choose its way anywhere, beside to its end.
    fn has_choices(&self) -> bool {
        (0..self.successors.len()).any(|at| {
            let targets: BTreeSet<usize> =
                self.successors[at].iter().copied().filter(|to| !self.ends.contains(to)).collect();
            targets.len() > 1 && !self.is_fork[at]
        })
    }

    fn finding(&self, join: usize, from: usize, past: usize, workflow: &Workflow) -> Diagnostic {
        let name = |at: usize| escape(self.ids[at].as_str());
        // A join that nobody wrote: that the branches meet without one is what is wrong.
        let onward = workflow.edges.iter().find(|edge| edge.from.value == self.ids[join].as_str());
        if let Some(edge) = onward.filter(|edge| edge.origin == Origin::Meeting) {
            let target = edge.to.value.as_str();
            let message = format!(
                "branches meet at `{}`, which is not a join, and a run may go past it at `{}`",
                escape(target),
                name(past)
            );
            let finding = Diagnostic::new(Code::P315, message)
                .at(span_of(workflow, &NodeId::new(target)), "branches meet here")
                .at(span_of(workflow, &self.ids[past]), "a path leads past it from here");
            return finding.help(
                "lead the branches into a join (`shape=tripleoctagon`, `\"type\": \"join\"`) before it, and \
                 every path of a branch to that join or to an end",
            );
        }
        let message = format!(
            "`{}` waits for `{}`, which a run may go past at `{}`",
            name(join),
            name(from),
            name(past)
        );
        let finding = Diagnostic::new(Code::P315, message)
            .at(span_of(workflow, &self.ids[past]), "a path leads past it from here")
            .at(span_of(workflow, &self.ids[from]), "this is awaited");
        finding.help("lead every path through it, or need a step that every path leads through")
    }
}

// Where a node names another as that to go back to.
fn target_of(workflow: &Workflow, from: &NodeId, to: &NodeId) -> Option<Span> {
    let node = workflow.nodes.iter().find(|node| node.id.value == from.as_str())?;
    let mut targets = node.attributes.retry_targets();
    targets.find(|target| target.value == to.as_str()).map(|target| target.span)
}

fn span_of(workflow: &Workflow, id: &NodeId) -> Span {
    let node = workflow.nodes.iter().find(|node| node.id.value == id.as_str());
    node.map_or(Span::at(0), |node| node.id.span)
}
