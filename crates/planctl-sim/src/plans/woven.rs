//! Random graphs of every kind of node: loops, decisions, questions, calls, checkpoints, branches and goals.
//!
//! A graph is woven from chains. A chain is a row of blocks, each of one node or of a fork with its branches, which are
//! chains again; loose ends of one block are tied to the next. Ways back stay within their chain, as the engine demands.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    Call, Choice, DefaultAnswer, Edge, Fork, Goal, Graph, GraphParts, Join, JoinPolicy, Level, Limits, Node,
    NodeId, NodeKind, On, Outcome, Priority, Question,
};

use super::conditions;
use crate::dice::Dice;

/// The deepest nesting of forks.
const DEPTH_MAX: u64 = 2;

/// An edge whose end is the node that comes next.
type Loose = Edge;

struct Weaver<'d> {
    dice: &'d mut Dice,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    steps: u64,
    others: u64,
}

/// Weaves a graph; one that the engine refuses is woven anew.
pub(super) fn weave(dice: &mut Dice) -> Option<Graph> {
    for _ in 0..30 {
        let mut weaver = Weaver { dice, nodes: Vec::new(), edges: Vec::new(), steps: 0, others: 0 };
        let parts = weaver.whole();
        if let Ok(graph) = Graph::new(parts) {
            return Some(graph);
        }
    }
    None
}

impl Weaver<'_> {
    fn whole(&mut self) -> GraphParts {
        self.nodes.push(super::plain_node("start", NodeKind::Start));
        let first = vec![Edge::new("start", "", On::Always)];
        let length = self.dice.between(2, 6);
        let (ends, chain) = self.chain(first, length, 0);
        self.nodes.push(super::plain_node("done", NodeKind::Exit { success: true }));
        self.tie(ends, &NodeId::from("done"));
        let goals = self.goals(&chain);
        let parallel = self.dice.between(1, 4) as u16;
        let same = if self.dice.happens(500) { self.dice.between(1, 3) as u16 } else { u16::MAX };
        let limits = Limits { parallel, same_failures: same, ..super::limits(self.dice) };
        let leads_to = |name: &str| self.edges.iter().any(|edge| edge.to == NodeId::from(name));
        if leads_to("ask") {
            let reason = Some("the plan says so".to_owned());
            let pace_level = self.dice.happens(200).then(|| *self.dice.pick(&Level::ALL));
            self.nodes.push(super::plain_node("ask", NodeKind::Escalate { reason, pace_level }));
        }
        if self.edges.iter().any(|edge| edge.to == NodeId::from("failed")) {
            self.nodes.push(super::plain_node("failed", NodeKind::Exit { success: false }));
        }
        GraphParts {
            title: "a woven plan".to_owned(),
            start: NodeId::from("start"),
            nodes: std::mem::take(&mut self.nodes),
            edges: std::mem::take(&mut self.edges),
            budget: super::budget(self.dice),
            limits,
            priority: Priority::Normal,
            goals,
            context: BTreeMap::from([("y".to_owned(), "1".to_owned())]),
        }
    }

    fn goals(&mut self, chain: &[NodeId]) -> Vec<Goal> {
        let gated: Vec<NodeId> =
            self.nodes.iter().filter(|node| node.gated().is_some()).map(|node| node.id.clone()).collect();
        let mut goals = Vec::new();
        while self.dice.happens(350) && !gated.is_empty() && goals.len() < 2 {
            let node = self.dice.pick(&gated).clone();
            let retry = self.dice.happens(650).then(|| self.dice.pick(chain).clone());
            goals.push(Goal { node, retry });
        }
        goals
    }

    /// Weaves a row of blocks; returns its loose ends and the nodes that a way back may lead to.
    fn chain(&mut self, mut ends: Vec<Loose>, length: u64, depth: u64) -> (Vec<Loose>, Vec<NodeId>) {
        let mut chain = Vec::new();
        for _ in 0..length.max(1) {
            let forks = u64::from(depth < DEPTH_MAX);
            ends = match self.dice.weighted(&[8, 3, 3, 2, 2, 2, 4 * forks, 1]) {
                0 => self.task(ends, &mut chain),
                1 => self.call(ends, &mut chain),
                2 => self.decision(ends, &mut chain, depth),
                3 => self.command(ends, &mut chain),
                4 => self.question(ends, &mut chain, depth),
                5 => self.checkpoint(ends, &mut chain),
                6 => self.fork(ends, &mut chain, depth),
                _ => self.escalation(ends, &mut chain),
            };
        }
        (ends, chain)
    }

    fn task(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>) -> Vec<Loose> {
        self.steps += 1;
        let on_exhausted =
            *self.dice.pick(&[Outcome::Failed, Outcome::Failed, Outcome::Skipped, Outcome::Warned]);
        let mut node = super::step(self.dice, self.steps, on_exhausted);
        if let NodeKind::Task(task) = &mut node.kind {
            task.max_retries = *self.dice.pick(&[0, 0, 1, 2]);
            if self.dice.happens(300) {
                task.excludes = vec![(*self.dice.pick(&["a.rs", "b.rs"])).to_owned()];
            }
        }
        self.place(node, ends, chain, true)
    }

    fn call(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>) -> Vec<Loose> {
        let id = self.name("call");
        let kind = NodeKind::Call(Box::new(Call {
            contract: super::contract(self.dice, id.as_str()),
            max_retries: *self.dice.pick(&[0, 0, 1, 2]),
            on_exhausted: *self.dice.pick(&[Outcome::Failed, Outcome::Failed, Outcome::Warned]),
            contract_files: Default::default(),
            may_change: Default::default(),
            role: None,
            approval: self.effect(),
        }));
        let node = self.node(&id, kind);
        self.place(node, ends, chain, true)
    }

    /// Says why a person has to allow a call, where one has to.
    fn effect(&mut self) -> Option<String> {
        self.dice.happens(250).then(|| "it may write".to_owned())
    }

    fn command(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>) -> Vec<Loose> {
        let id = self.name("test");
        let command = Some(Box::new(super::contract(self.dice, id.as_str())));
        let node = self.node(&id, NodeKind::Decision(Choice { description: None, command }));
        let mut ends = self.place(node, ends, chain, false);
        let on = *self.dice.pick(&[On::Fail, On::Exhaust]);
        self.fork_off(&id, on, chain, &mut ends);
        ends
    }

    fn checkpoint(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>) -> Vec<Loose> {
        let id = self.name("save");
        let node = self.node(&id, NodeKind::Checkpoint);
        let ends = self.place(node, ends, chain, false);
        // The next edge may lead back, which restores.
        let id = self.name("call");
        let contract = super::contract(self.dice, id.as_str());
        let kind = NodeKind::Call(Box::new(Call {
            contract,
            max_retries: 0,
            on_exhausted: Outcome::Failed,
            contract_files: Default::default(),
            may_change: Default::default(),
            role: None,
            approval: self.effect(),
        }));
        let node = self.node(&id, kind);
        let save = chain.last().cloned();
        let ends = self.place(node, ends, chain, false);
        if let Some(save) = save {
            self.edge(Edge::new(id, save, On::Exhaust));
        }
        ends
    }

    fn escalation(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>) -> Vec<Loose> {
        let id = self.name("look");
        let reason = Some("have a look".to_owned());
        let node = self.node(&id, NodeKind::Escalate { reason, pace_level: None });
        let starts_here = ends.iter().all(|end| end.from == NodeId::from("start"));
        if starts_here {
            return ends;
        }
        self.place(node, ends, chain, false)
    }

    /// A decision by conditions, with one or two ways that may come together again.
    fn decision(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>, depth: u64) -> Vec<Loose> {
        let id = self.name("if");
        let node = self.node(&id, NodeKind::Decision(Choice { description: None, command: None }));
        let mut ends = self.place(node, ends, chain, false);
        for _ in 0..self.dice.between(1, 2) {
            let end = Edge { when: Some(self.condition()), ..Edge::new(id.clone(), "", On::Always) };
            let end = Edge { weight: self.weight(), ..end };
            ends.extend(self.way(end, chain, depth));
        }
        if self.dice.happens(400) {
            self.fork_off(&id, On::Fail, chain, &mut ends);
        }
        ends
    }

    fn question(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>, depth: u64) -> Vec<Loose> {
        let id = self.name("ask-which");
        let is_free = self.dice.happens(250);
        let options = if is_free { Vec::new() } else { vec!["[Y] Yes".to_owned(), "no".to_owned()] };
        let answer = if is_free { "blue".to_owned() } else { "no".to_owned() };
        let default = self
            .dice
            .happens(400)
            .then(|| DefaultAnswer { after: Duration::from_secs(self.dice.between(10, 900)), answer });
        let text = "which?".to_owned();
        let node =
            self.node(&id, NodeKind::Human(Box::new(Question { text, options, default, usual: None })));
        let mut ends = self.place(node, ends, chain, false);
        if !is_free {
            for label in ["Yes", "No"] {
                let end = Edge { label: Some(label.to_owned()), ..Edge::new(id.clone(), "", On::Success) };
                ends.extend(self.way(end, chain, depth));
            }
        }
        ends
    }

    /// Leads an end onwards by itself, back, or along a chain of its own.
    fn way(&mut self, end: Loose, chain: &mut Vec<NodeId>, depth: u64) -> Vec<Loose> {
        match self.dice.below(4) {
            0 => vec![end],
            1 => {
                let back = self.dice.pick(chain).clone();
                self.edge(Edge { to: back, ..end });
                Vec::new()
            }
            _ => {
                let length = self.dice.between(1, 2);
                let (ends, own) = self.chain(vec![end], length, depth + 1);
                chain.extend(own);
                ends
            }
        }
    }

    fn fork(&mut self, ends: Vec<Loose>, chain: &mut Vec<NodeId>, depth: u64) -> Vec<Loose> {
        let (id, join) = (self.name("fork"), self.name("join"));
        let is_named = self.dice.happens(880);
        let max = (is_named && self.dice.happens(300)).then(|| self.dice.between(1, 2) as u16);
        let fork = Fork { join: is_named.then(|| join.clone()), max, in_worktree: false };
        let node = self.node(&id, NodeKind::Fork(fork));
        self.nodes.push(node);
        self.tie(ends, &id);
        let mut met = Vec::new();
        for _ in 0..self.dice.between(2, 3) {
            let length = self.dice.between(1, 2);
            let (ends, own) = self.chain(vec![Edge::new(id.clone(), "", On::Always)], length, depth + 1);
            // A branch that fails comes to the join, too, more often than not.
            if let Some(last) = own.last()
                && self.dice.happens(600)
                && self.is_gated(last)
            {
                self.edge(Edge::new(last.clone(), join.clone(), On::Exhaust));
            }
            met.extend(ends);
        }
        let policy = if self.dice.happens(600) { JoinPolicy::All } else { JoinPolicy::Any };
        let kind = NodeKind::Join(Join { policy, partial: self.dice.happens(250) });
        self.nodes.push(super::plain_node(join.as_str(), kind));
        self.tie(met, &join);
        chain.push(id);
        let mut ends = vec![Edge::new(join.clone(), "", On::Success)];
        if self.dice.happens(600) {
            self.fork_off(&join, On::Fail, chain, &mut ends);
        }
        ends
    }

    /// Puts a node at the end of a chain, with its way on; a node whose work may fail gets ways for that, too.
    fn place(&mut self, node: Node, ends: Vec<Loose>, chain: &mut Vec<NodeId>, may_fail: bool) -> Vec<Loose> {
        let id = node.id.clone();
        self.nodes.push(node);
        self.tie(ends, &id);
        chain.push(id.clone());
        let mut ends = Vec::new();
        if self.dice.happens(960) {
            let on = if self.dice.happens(900) { On::Success } else { On::Always };
            ends.push(Edge { weight: self.weight(), ..Edge::new(id.clone(), "", on) });
        } else {
            let when = Some(self.condition());
            ends.push(Edge { when, ..Edge::new(id.clone(), "", On::Success) });
        }
        if may_fail {
            for (on, per_mille) in [(On::Exhaust, 450), (On::Fail, 250), (On::Retry, 100)] {
                if self.dice.happens(per_mille) {
                    self.fork_off(&id, on, chain, &mut ends);
                }
            }
            for label in ["red", "blue"] {
                if self.dice.happens(120) {
                    let end =
                        Edge { label: Some(label.to_owned()), ..Edge::new(id.clone(), "", On::Success) };
                    let to = self.dice.pick(chain).clone();
                    let weight = self.weight();
                    self.edge(Edge { to, weight, ..end });
                }
            }
            if self.dice.happens(150) {
                let end = Edge { when: Some(self.condition()), ..Edge::new(id.clone(), "", On::Always) };
                let to = self.dice.pick(chain).clone();
                let weight = self.weight();
                self.edge(Edge { to, weight, ..end });
            }
        }
        ends
    }

    /// Leads one outcome of a node somewhere: back, onwards, to a person, to a failed end.
    fn fork_off(&mut self, id: &NodeId, on: On, chain: &[NodeId], ends: &mut Vec<Loose>) {
        let end = Edge::new(id.clone(), "", on);
        let to = match self.dice.below(7) {
            0 => NodeId::from("ask"),
            1 => NodeId::from("failed"),
            2 if self.dice.happens(300) => NodeId::from("done"),
            2 | 3 => return ends.push(end),
            _ if chain.is_empty() => return ends.push(end),
            _ => self.dice.pick(chain).clone(),
        };
        self.edge(Edge { to, ..end });
    }

    fn tie(&mut self, ends: Vec<Loose>, to: &NodeId) {
        for end in ends {
            self.edge(Edge { to: to.clone(), ..end });
        }
    }

    /// Adds an edge, unless it is one that is there.
    fn edge(&mut self, edge: Edge) {
        let occasion =
            |edge: &Edge| (edge.from.clone(), edge.to.clone(), edge.on, edge.weight, edge.label.clone());
        let is_rival =
            |other: &Edge| occasion(other) == occasion(&edge) && other.when.is_none() && edge.when.is_none();
        let is_forked = matches!(self.kind(&edge.from), Some(NodeKind::Fork(_)));
        if is_forked || !self.edges.iter().any(is_rival) {
            self.edges.push(edge);
        }
    }

    fn kind(&self, id: &NodeId) -> Option<&NodeKind> {
        self.nodes.iter().find(|node| node.id == *id).map(|node| &node.kind)
    }

    fn is_gated(&self, id: &NodeId) -> bool {
        self.nodes.iter().any(|node| node.id == *id && node.gated().is_some())
    }

    fn condition(&mut self) -> planctl_engine::condition::Condition {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id.clone()).collect();
        conditions::draw(self.dice, &nodes)
    }

    fn weight(&mut self) -> i32 {
        *self.dice.pick(&[0, 0, 0, 0, 1, 2, -1])
    }

    fn name(&mut self, kind: &str) -> NodeId {
        self.others += 1;
        NodeId::new(format!("{kind}{}", self.others))
    }

    fn node(&mut self, id: &NodeId, kind: NodeKind) -> Node {
        let max_visits = if self.dice.happens(500) { self.dice.between(1, 4) as u16 } else { 10 };
        let counts = !matches!(kind, NodeKind::Fork(_)) && self.dice.happens(500);
        let step = counts.then(|| {
            self.steps += 1;
            self.steps as u32
        });
        Node { max_visits, step, ..Node::new(id.clone(), id.as_str(), kind) }
    }
}
