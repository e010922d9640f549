//! Makes nodes of the parts that a plan in markdown implies: where branches begin and meet, and whether a step applies.
//!
//! Authors write that step 4 needs steps 2 and 3; a graph has a fork after step 1 for that, and a join before step 4. A
//! `**when:**` becomes a decision before its step. Graphs of DOT and JSON say all of it themselves.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::On;
use planctl_engine::condition::Condition;

use super::tree::{EdgeTree, Kind, NodeTree, Origin, Workflow};
use crate::text::Spanned;

/// Returns a plan's graph with every fork, join and decision that its steps imply.
pub(super) fn explicit(workflow: &Workflow) -> Workflow {
    let mut made = Made { workflow: workflow.clone(), origin: Origin::When };
    made.applies();
    made.origin = Origin::Needs;
    let concurrent = Concurrent::of(&made.workflow);
    made.joins(&concurrent);
    made.forks();
    made.workflow
}

struct Made {
    workflow: Workflow,
    /// Why the nodes and edges are there that are made at the moment.
    origin: Origin,
}

impl Made {
    fn add(&mut self, name: String, title: String, kind: Kind, beside: &NodeTree) {
        let here = beside.id.span;
        let node = NodeTree::new(Spanned::new(name, here), beside.span, Spanned::new(kind, here));
        let mut node = NodeTree { origin: self.origin, ..node };
        node.attributes.label = Spanned::new(title, here).into();
        self.workflow.nodes.push(node);
    }

    fn connect(&mut self, from: &str, to: &str, on: On, beside: &NodeTree) -> &mut EdgeTree {
        let here = beside.id.span;
        let name = |name: &str| Spanned::new(name.to_owned(), here);
        let edge = EdgeTree::new(name(from), name(to), here, Spanned::new(on, here));
        self.workflow.edges.push(EdgeTree { origin: self.origin, ..edge });
        let last = self.workflow.edges.len() - 1;
        &mut self.workflow.edges[last]
    }

    // A step that may not apply: one decision leads to it or past it, and what follows it follows the decision too.
    fn applies(&mut self) {
        let nodes: Vec<NodeTree> =
            self.workflow.nodes.iter().filter(|node| when(node).is_some()).cloned().collect();
        for node in nodes {
            let Some(condition) = when(&node) else { continue };
            let id = node.id.value.as_str();
            let (ask, past) = (format!("when-{id}"), format!("past-{id}"));
            for edge in self.workflow.edges.iter_mut().filter(|edge| edge.to.value == id) {
                edge.to.value.clone_from(&ask);
            }
            for edge in
                self.workflow.edges.iter_mut().filter(|edge| edge.from.value == id && leads_onward(edge))
            {
                edge.from.value.clone_from(&past);
                edge.on.value = On::Always;
            }
            self.add(ask.clone(), format!("does step {id} apply?"), Kind::Decision, &node);
            self.add(past.clone(), format!("after step {id}"), Kind::Decision, &node);
            // The condition decides on every edge that leads here, also on one for a failure.
            let condition = Some(condition);
            self.connect(&ask, id, On::Success, &node).condition.clone_from(&condition);
            self.connect(&ask, id, On::Fail, &node).condition = condition;
            self.connect(&ask, &past, On::Always, &node);
            self.connect(id, &past, On::Success, &node);
        }
    }

    /// Returns the ways on by one of their ends, as places among the edges.
    fn onward_edges_by(&self, end: impl Fn(&EdgeTree) -> &String) -> BTreeMap<String, Vec<usize>> {
        let mut grouped: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, edge) in self.workflow.edges.iter().enumerate().filter(|(_, edge)| leads_onward(edge)) {
            grouped.entry(end(edge).clone()).or_default().push(at);
        }
        grouped
    }

    // A node that several branches lead to waits for all of them, and so does one that needs several steps.
    fn joins(&mut self, concurrent: &Concurrent) {
        let places: BTreeMap<String, usize> =
            self.workflow.places().into_iter().map(|(name, at)| (name.to_owned(), at)).collect();
        for (to, edges) in self.onward_edges_by(|edge| &edge.to.value) {
            let Some(place) = places.get(&to) else { continue };
            let node = self.workflow.nodes[*place].clone();
            let from: BTreeSet<usize> = edges
                .iter()
                .filter_map(|edge| places.get(&self.workflow.edges[*edge].from.value).copied())
                .collect();
            let from: Vec<usize> = from.into_iter().collect();
            let needs = node.attributes.needs.value().is_some_and(|needs| needs.len() > 1);
            let is_awaited = from.len() > 1 && (needs || concurrent.has_pair(&from, *place));
            if node.kind.value == Kind::Join || !is_awaited {
                continue;
            }
            let join = format!("join-{to}");
            for edge in edges {
                self.workflow.edges[edge].to.value.clone_from(&join);
            }
            let is_end = node.kind.value == Kind::Exit;
            let title = if is_end { "all steps".to_owned() } else { format!("all that step {to} needs") };
            self.add(join.clone(), title, Kind::Join, &node);
            self.connect(&join, &to, On::Success, &node);
        }
    }

    // A node with edges to several nodes leads to all of them.
    fn forks(&mut self) {
        let places: BTreeMap<String, usize> =
            self.workflow.places().into_iter().map(|(name, at)| (name.to_owned(), at)).collect();
        let mut twice = BTreeSet::new();
        for (from, edges) in self.onward_edges_by(|edge| &edge.from.value) {
            let Some(node) = places.get(&from).map(|at| self.workflow.nodes[*at].clone()) else { continue };
            let mut targets = BTreeSet::new();
            let (once, again): (Vec<usize>, Vec<usize>) = edges
                .into_iter()
                .partition(|edge| targets.insert(self.workflow.edges[*edge].to.value.clone()));
            twice.extend(again);
            if once.len() < 2 || matches!(node.kind.value, Kind::Human | Kind::Fork) {
                continue;
            }
            let fork = format!("fork-{from}");
            let on = if node.kind.value == Kind::Decision { On::Always } else { On::Success };
            for edge in once {
                self.workflow.edges[edge].from.value.clone_from(&fork);
                self.workflow.edges[edge].on.value = On::Success;
            }
            let title = if node.kind.value == Kind::Start {
                "at once".to_owned()
            } else {
                format!("after step {from}")
            };
            self.add(fork.clone(), title, Kind::Fork, &node);
            self.connect(&from, &fork, on, &node);
        }
        let mut at = 0;
        self.workflow.edges.retain(|_| {
            at += 1;
            !twice.contains(&(at - 1))
        });
    }
}

/// Returns the condition under which a step applies; one that can't be read was reported.
fn when(node: &NodeTree) -> Option<Spanned<Condition>> {
    let when = node.attributes.when.condition()?;
    Some(Spanned::new(when.value.condition, when.span)).filter(|when| !when.value.is_always())
}

/// Says whether an edge leads on from every success.
pub(super) fn leads_onward(edge: &EdgeTree) -> bool {
    matches!(edge.on.value, On::Success | On::Always) && edge.is_plain()
}

/// The branches that reach each node, for each place where branches begin, as far as edges on success tell.
struct Concurrent {
    forks: Vec<Branching>,
}

struct Branching {
    fork: usize,
    heads: Vec<usize>,
    reached: Vec<Reached>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    Never,
    By(usize),
    BySeveral,
}

impl Concurrent {
    fn of(workflow: &Workflow) -> Concurrent {
        let targets = |(at, out_edges): (usize, Vec<(usize, &EdgeTree)>)| {
            let is_choice = workflow.nodes[at].kind.value == Kind::Human;
            let on = out_edges.into_iter().filter(|(_, edge)| leads_onward(edge) && !is_choice);
            on.map(|(to, _)| to).collect::<BTreeSet<usize>>().into_iter().collect::<Vec<usize>>()
        };
        let out_edges: Vec<Vec<usize>> = workflow.out_edges().into_iter().enumerate().map(targets).collect();
        let forks = (0..out_edges.len()).filter(|at| out_edges[*at].len() > 1).take(FORKS_MAX);
        Concurrent { forks: forks.map(|fork| Branching::of(fork, &out_edges)).collect() }
    }

    /// Says whether two of the nodes that lead to one may both come.
    fn has_pair(&self, from: &[usize], to: usize) -> bool {
        self.forks.iter().any(|branching| {
            let mut first = Reached::Never;
            from.iter().any(|node| match (first, branching.reached_over_edge(*node, to)) {
                (_, Reached::Never) => false,
                (Reached::Never, reached) => {
                    first = reached;
                    false
                }
                (Reached::By(one), Reached::By(other)) => one != other,
                (Reached::By(_) | Reached::BySeveral, _) => true,
            })
        })
    }
}

impl Branching {
    fn of(fork: usize, out_edges: &[Vec<usize>]) -> Branching {
        let heads = out_edges[fork].clone();
        let mut reached = vec![Reached::Never; out_edges.len()];
        for (branch, head) in heads.iter().enumerate() {
            let mut open = vec![*head];
            while let Some(at) = open.pop() {
                match reached[at] {
                    Reached::BySeveral => continue,
                    Reached::By(known) if known == branch => continue,
                    Reached::By(_) => reached[at] = Reached::BySeveral,
                    Reached::Never => reached[at] = Reached::By(branch),
                }
                open.extend(&out_edges[at]);
            }
        }
        Branching { fork, heads, reached }
    }

    fn reached_over_edge(&self, from: usize, to: usize) -> Reached {
        match self.heads.iter().position(|head| *head == to) {
            Some(branch) if from == self.fork => Reached::By(branch),
            Some(_) | None => self.reached[from],
        }
    }
}

/// The most places where branches begin that are looked at; each costs a walk over the plan.
const FORKS_MAX: usize = 200;
