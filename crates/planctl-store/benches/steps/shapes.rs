//! Graphs of any size in a few shapes, to measure whether a step of a large one costs more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::condition::{Clause, Condition, Key, Test};
use planctl_engine::{
    Call, Choice, Edge, Fork, Graph, GraphParts, Join, JoinPolicy, Limits, Node, NodeId, NodeKind, On,
    Outcome, Priority,
};

use crate::world::{contract, task};

/// How many nodes of a wide fork are under way at once.
const PARALLEL: u16 = 4;

/// How the nodes of a graph hang together.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// One step after another.
    Chain,
    /// Groups of nine, one after another: a step, a decision with two ways, a fork of two branches, their join, and a
    /// check that leads back to the step where it fails.
    Groups,
    /// One fork with a branch for each step, four of them at once, and their join.
    Wide,
}

impl Shape {
    pub const ALL: [Shape; 3] = [Shape::Chain, Shape::Groups, Shape::Wide];

    /// Builds a graph of about so many nodes.
    pub fn graph(self, nodes: usize) -> Graph {
        let mut drawn = Drawn::default();
        match self {
            Shape::Chain => drawn.chain(nodes),
            Shape::Groups => drawn.groups(nodes.div_ceil(9)),
            Shape::Wide => drawn.wide(nodes),
        }
        drawn.finished(self)
    }
}

#[derive(Default)]
struct Drawn {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    steps: u32,
}

impl Drawn {
    fn chain(&mut self, nodes: usize) {
        let mut last = NodeId::from("start");
        for number in 0..nodes {
            let step = self.task(&format!("step{number}"));
            self.lead(&last, &step, On::Success);
            last = step;
        }
        self.lead(&last, &NodeId::from("done"), On::Success);
    }

    fn groups(&mut self, groups: usize) {
        let mut last = NodeId::from("start");
        for number in 0..groups {
            let named = |kind: &str| format!("{kind}{number}");
            let fix = self.task(&named("fix"));
            let which =
                self.node(&named("which"), NodeKind::Decision(Choice { description: None, command: None }));
            let (short, long) = (self.task(&named("short")), self.task(&named("long")));
            let fork = Fork { join: Some(named("join").as_str().into()), max: None, in_worktree: false };
            let fork = self.node(&named("fork"), NodeKind::Fork(fork));
            let (left, right) = (self.task(&named("left")), self.task(&named("right")));
            let join = Join { policy: JoinPolicy::All, partial: false };
            let join = self.node(&named("join"), NodeKind::Join(join));
            let check = Call {
                contract: contract(),
                max_retries: 0,
                on_exhausted: Outcome::Failed,
                contract_files: BTreeSet::new(),
                may_change: BTreeSet::new(),
                role: None,
                approval: None,
            };
            let check = self.node(&named("check"), NodeKind::Call(Box::new(check)));
            self.lead(&last, &fix, On::Success);
            self.lead(&fix, &which, On::Success);
            let tries = Clause {
                key: Key::Variable(format!("internal.retry_count.{fix}")),
                test: Test::Is("0".to_owned()),
            };
            let edge = Edge::new(which.clone(), short.clone(), On::Always);
            self.edges.push(Edge { when: Some(Condition { clauses: vec![tries] }), ..edge });
            self.lead(&which, &long, On::Always);
            self.lead(&short, &fork, On::Success);
            self.lead(&long, &fork, On::Success);
            for branch in [&left, &right] {
                self.lead(&fork, branch, On::Always);
                self.lead(branch, &join, On::Success);
            }
            self.lead(&join, &check, On::Success);
            self.lead(&check, &fix, On::Fail);
            last = check;
        }
        self.lead(&last, &NodeId::from("done"), On::Success);
    }

    fn wide(&mut self, nodes: usize) {
        let (fork, join) = (NodeId::from("fork"), NodeId::from("join"));
        self.node("fork", NodeKind::Fork(Fork { join: Some(join.clone()), max: None, in_worktree: false }));
        self.lead(&NodeId::from("start"), &fork, On::Success);
        for number in 0..nodes {
            let step = self.task(&format!("step{number}"));
            self.lead(&fork, &step, On::Always);
            self.lead(&step, &join, On::Success);
        }
        self.node("join", NodeKind::Join(Join { policy: JoinPolicy::All, partial: false }));
        self.lead(&join, &NodeId::from("done"), On::Success);
    }

    fn finished(mut self, shape: Shape) -> Graph {
        self.node("start", NodeKind::Start);
        self.node("done", NodeKind::Exit { success: true });
        Graph::new(GraphParts {
            title: format!("{shape:?}"),
            start: "start".into(),
            nodes: self.nodes,
            edges: self.edges,
            budget: planctl_engine::Budget::default(),
            limits: Limits {
                parallel: PARALLEL,
                attempts: u32::MAX,
                stale_after: Some(Duration::from_secs(3_600)),
                ..Limits::default()
            },
            priority: Priority::Urgent,
            goals: Vec::new(),
            context: BTreeMap::new(),
        })
        .unwrap()
    }

    fn task(&mut self, name: &str) -> NodeId {
        self.steps += 1;
        let task = task(self.steps, planctl_engine::RedFirst::Off);
        self.node(name, NodeKind::Task(Box::new(task)))
    }

    fn node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        self.nodes.push(Node::new(name, name, kind));
        name.into()
    }

    fn lead(&mut self, from: &NodeId, to: &NodeId, on: On) {
        self.edges.push(Edge::new(from.clone(), to.clone(), on));
    }
}
