//! Tree → the graph that the engine runs, for graphs of DOT and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{
    Budget, Call, Choice, Contract, DefaultAnswer, Edge, Fork, Goal, Graph, GraphParts, Join, JoinPolicy,
    Level, Limits, Node, NodeId, NodeKind, On, Outcome, Priority, Question, RedFirst, Role, Subscription,
    Task, WorkKind,
};

use super::tree::{EdgeTree, Kind, NodeTree, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::digest::digest_of_text;
use crate::lower::{CONTRACT_TIMEOUT, MAX_VISITS, WORK_TIMEOUT};
use crate::parse::on_fail_of;
use crate::source::Span;
use crate::tree::{OnFail, Then};

/// Branches of a fork that are under way at once, where the graph says nothing (DOT P2).
const PARALLEL: u16 = 4;
/// Who does the work, where a node says nothing.
const ROLE: &str = "coder";

/// Makes the graph of a tree whose findings have no error.
///
/// # Errors
///
/// Returns what the engine does not run yet, or why the nodes make no graph.
pub fn to_graph(workflow: &Workflow) -> Result<Graph, Vec<Diagnostic>> {
    let mut later = Vec::new();
    unsupported(workflow, &mut later);
    if !later.is_empty() {
        return Err(later);
    }
    let mut lowering = Lowering { workflow, ways: workflow.ways(), nodes: Vec::new(), edges: Vec::new() };
    lowering.nodes();
    let graph = Graph::new(lowering.parts());
    graph.map_err(|defect| vec![Diagnostic::new(Code::P301, defect.to_string()).at(Span::at(0), "")])
}

fn unsupported(workflow: &Workflow, later: &mut Vec<Diagnostic>) {
    let mut tell = |what: &str, span: Span, help: &str| {
        let message = format!("{what} is not supported yet");
        later.push(Diagnostic::new(Code::P017, message).at(span, "").help(help));
    };
    for node in &workflow.nodes {
        let name = &node.id.value;
        let is_unproved = node.contracts.iter().all(|contract| contract.command.value.trim() == "none");
        if node.kind.value == Kind::SubPlan {
            tell(
                &format!("a run of another plan (`{name}`)"),
                node.kind.span,
                "take its nodes into this graph",
            );
        }
        if node.kind.value == Kind::Task && is_unproved {
            let help = "write a `contract`, or make the node a human's (`shape=hexagon`)";
            tell(&format!("work that no contract decides (`{name}`)"), node.id.span, help);
        }
        for key in ["needs", "when"] {
            if let Some(said) = node.said.text(key) {
                tell(&format!("`{key}` of a node"), said.span, "say it by edges");
            }
        }
        if let Some(mode) = node.said.text("workspace").filter(|mode| mode.value == "worktree") {
            tell("a worktree of a node's own", mode.span, "write `shared`, or delete it");
        }
    }
    if let Some(edge) = workflow.edges.iter().find(|edge| edge.loop_restart) {
        tell("`loop_restart`", edge.span, "delete it: the edge is followed within the same run");
    }
    if let Some(budget) = workflow.said.text("budget") {
        tell("the budget of a graph", budget.span, "delete it");
    }
}

struct Lowering<'w> {
    workflow: &'w Workflow,
    ways: Vec<Vec<(usize, &'w EdgeTree)>>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl<'w> Lowering<'w> {
    fn nodes(&mut self) {
        let workflow = self.workflow;
        let mut step = 0;
        let mut helpers = BTreeMap::new();
        for (at, node) in workflow.nodes.iter().enumerate() {
            let is_step = !matches!(node.kind.value, Kind::Start | Kind::Exit | Kind::Fork | Kind::Join);
            step += u32::from(is_step);
            let most = node.said.number("max_visits").or(workflow.said.number("max_visits"));
            let mut lowered = Node {
                max_visits: most.map_or(MAX_VISITS, |most| most.value),
                ..Node::new(node.id.value.as_str(), node.title(), self.kind(at, node, step))
            };
            if is_step && !matches!(lowered.kind, NodeKind::Task(_)) {
                lowered.step = Some(step);
            }
            self.nodes.push(lowered);
            self.edges_of(at, node, &mut helpers);
        }
        self.nodes.extend(helpers.into_values());
    }

    fn kind(&self, at: usize, node: &NodeTree, step: u32) -> NodeKind {
        let text = |key: &str| node.said.text(key).map(|text| text.value.clone());
        match node.kind.value {
            Kind::Start => NodeKind::Start,
            Kind::Task => NodeKind::Task(Box::new(self.task(node, step))),
            Kind::Call => NodeKind::Call(Box::new(Call {
                contract: contract(node, &text("tool_command").unwrap_or_default(), "timeout"),
                max_retries: self.retries(node),
                lapse: lapse(node),
                contract_files: BTreeSet::new(),
                own_files: BTreeSet::new(),
            })),
            Kind::Decision => NodeKind::Decision(Choice {
                description: text("description").or_else(|| text("prompt")).or_else(|| text("label")),
                command: text("command").map(|command| Box::new(contract(node, &command, "timeout"))),
            }),
            Kind::Human => NodeKind::Human(Box::new(self.question(at, node))),
            Kind::Checkpoint => NodeKind::Checkpoint,
            Kind::Fork => NodeKind::Fork(Fork {
                join: self.join_of(at).map(|join| NodeId::new(self.workflow.nodes[join].id.value.as_str())),
                max: node.said.number("max_parallel").map(|most| most.value),
            }),
            Kind::Join => {
                let is_any = text("join_policy")
                    .is_some_and(|policy| matches!(policy.as_str(), "first_success" | "any"));
                NodeKind::Join(Join {
                    policy: if is_any { JoinPolicy::Any } else { JoinPolicy::All },
                    partial: node.said.flag("allow_partial").is_some_and(|flag| flag.value),
                })
            }
            Kind::Escalate => NodeKind::Escalate {
                reason: text("escalate"),
                pace_level: text("pace_level").and_then(|level| level_named(&level)),
            },
            // Refused above; a run of it would stand still, which is what an exit that failed says.
            Kind::SubPlan => NodeKind::Exit { success: false },
            Kind::Exit => NodeKind::Exit { success: !node.is_failed_exit() },
        }
    }

    fn task(&self, node: &NodeTree, step: u32) -> Task {
        let list =
            |key: &str| node.said.list(key).into_iter().map(|entry| entry.value).collect::<Vec<String>>();
        let commands: Vec<&str> =
            node.contracts.iter().map(|contract| contract.command.value.trim()).collect();
        let role = node.said.text("target").map_or(ROLE, |target| target.value.as_str());
        let is_review =
            node.said.text("work").is_some_and(|work| work.value == "review") || role.starts_with("review");
        let subscriptions = list("subscriptions").into_iter().filter_map(|entry| {
            let (kind, name) = entry.split_once(':')?;
            let name = name.trim().to_owned();
            Some(if kind == "topic" {
                Subscription::Topic { name }
            } else {
                Subscription::File { path: name }
            })
        });
        let locks: BTreeSet<String> = list("locks").into_iter().collect();
        Task {
            step,
            role: Role::new(role),
            pace: Vec::new(),
            work: if is_review { WorkKind::Review } else { WorkKind::Code },
            prompt: self.prompt(node),
            subscriptions: subscriptions.collect(),
            contract: contract(node, &commands.join(" &&\n"), "contract_timeout"),
            max_retries: self.retries(node),
            lapse: lapse(node),
            work_timeout: node
                .said
                .seconds("timeout")
                .map_or(WORK_TIMEOUT, |limit| Duration::from_secs(limit.value)),
            protects: list("protects"),
            locks: locks.into_iter().collect(),
            apart: Vec::new(),
            contract_files: BTreeSet::new(),
            own_files: BTreeSet::new(),
        }
    }

    // S3, T1: the goal stands where the prompt names it.
    fn prompt(&self, node: &NodeTree) -> String {
        let goal = self.workflow.said.text("goal").map_or("", |goal| goal.value.as_str());
        let mut prompt = node.prompt().replace("$goal", goal);
        for (key, word) in [("tool", "Tool"), ("tool_hint", "Hint")] {
            if let Some(said) = node.said.text(key) {
                prompt.push_str(&format!("\n\n{word}: {}", said.value));
            }
        }
        prompt
    }

    // R1: the node's own, else the graph's, else none.
    fn retries(&self, node: &NodeTree) -> u16 {
        let own = policy(node)
            .and_then(|policy| policy.retries)
            .or(node.said.number("max_retries").map(|most| most.value));
        own.or(self.workflow.said.number("default_max_retries").map(|most| most.value)).unwrap_or(0)
    }

    // H1: what its edges are called is what may be chosen.
    fn question(&self, at: usize, node: &NodeTree) -> Question {
        let is_free = node.said.flag("human.free_text").is_some_and(|flag| flag.value);
        let options: Vec<String> = self.ways[at].iter().map(|(_, edge)| option(edge)).collect();
        let meant = |choice: &str| {
            let is_it = |(_, edge): &&(usize, &EdgeTree)| option(edge) == choice || edge.to.value == choice;
            self.ways[at].iter().find(is_it).map(|(_, edge)| option(edge))
        };
        let default = node.said.text("human.default_choice").zip(node.said.seconds("timeout"));
        let default = default.and_then(|(choice, limit)| {
            let answer = if is_free { Some(choice.value.clone()) } else { meant(&choice.value) };
            Some(DefaultAnswer { after: Duration::from_secs(limit.value), answer: answer? })
        });
        Question {
            text: node.prompt().to_owned(),
            options: if is_free { Vec::new() } else { options },
            default,
        }
    }

    // The first join that all branches of a fork come to, where it is one.
    fn join_of(&self, fork: usize) -> Option<usize> {
        let mut joins = BTreeSet::new();
        let mut seen = BTreeSet::from([fork]);
        let mut open: Vec<usize> = self.ways[fork].iter().map(|(to, _)| *to).collect();
        while let Some(at) = open.pop() {
            if self.workflow.nodes[at].kind.value == Kind::Join {
                joins.insert(at);
            } else if seen.insert(at) {
                open.extend(self.ways[at].iter().map(|(to, _)| *to));
            }
        }
        joins.pop_first().filter(|_| joins.is_empty())
    }

    fn edges_of(&mut self, at: usize, node: &NodeTree, helpers: &mut BTreeMap<&'static str, Node>) {
        let from = node.id.value.as_str();
        for (_, edge) in &self.ways[at] {
            let is_choice = node.kind.value == Kind::Human;
            self.edges.push(Edge {
                when: edge
                    .condition
                    .as_ref()
                    .filter(|_| !edge.is_plain())
                    .map(|condition| condition.value.clone()),
                label: if is_choice {
                    Some(option(edge))
                } else {
                    edge.label.as_ref().map(|label| label.value.clone())
                },
                weight: i32::try_from(edge.weight).unwrap_or(0),
                ..Edge::new(from, edge.to.value.as_str(), edge.on.value)
            });
        }
        let fails = |edge: &EdgeTree| !matches!(edge.on.value, On::Success | On::Retry) && edge.is_plain();
        if !matches!(node.kind.value, Kind::Task | Kind::Call)
            || self.ways[at].iter().any(|(_, edge)| fails(edge))
        {
            return;
        }
        // E9: what follows the last attempt, where no edge says it.
        let said = |key: &str| node.said.text(key).map(|target| target.value.clone());
        let then = policy(node).and_then(|policy| policy.then);
        let target = match then {
            Some(Then::Escalate) => {
                Some(helper(helpers, "ask", NodeKind::Escalate { reason: None, pace_level: None }))
            }
            Some(Then::Abort) => Some(helper(helpers, "abort", NodeKind::Exit { success: false })),
            Some(Then::Skip | Then::Warn) => self.way_on(at),
            None if lapse(node) == Outcome::Warned => self.way_on(at),
            None => said("retry_target").or_else(|| said("fallback_retry_target")),
        };
        if let Some(target) = target {
            self.edges.push(Edge::new(from, target.as_str(), On::Exhaust));
        }
    }

    fn way_on(&self, at: usize) -> Option<String> {
        let plain = self.ways[at].iter().find(|(_, edge)| edge.on.value == On::Success && edge.is_plain());
        plain.or(self.ways[at].first()).map(|(_, edge)| edge.to.value.clone())
    }

    fn parts(mut self) -> GraphParts {
        let workflow = self.workflow;
        let own = workflow
            .nodes
            .iter()
            .find(|node| node.kind.value == Kind::Start)
            .map(|node| node.id.value.clone());
        let start = own.unwrap_or_else(|| {
            // G-03: a graph may name a task as its start.
            let names: BTreeSet<&str> = workflow.nodes.iter().map(|node| node.id.value.as_str()).collect();
            let mut name = "start".to_owned();
            while names.contains(name.as_str()) {
                name.insert(0, '_');
            }
            self.nodes.push(Node::new(name.as_str(), "start", NodeKind::Start));
            if let Some(entry) = &workflow.start {
                self.edges.push(Edge::new(name.as_str(), entry.value.as_str(), On::Always));
            }
            name
        });
        let has_forks = workflow.nodes.iter().any(|node| node.kind.value == Kind::Fork);
        let goal = workflow.said.text("goal").map(|goal| ("graph.goal".to_owned(), goal.value.clone()));
        GraphParts {
            title: workflow.title().to_owned(),
            start: NodeId::new(start.as_str()),
            nodes: self.nodes,
            edges: self.edges,
            goals: goals(workflow),
            context: goal.into_iter().collect(),
            budget: Budget::default(),
            limits: Limits {
                stale_after: workflow
                    .said
                    .seconds("stale_after")
                    .map(|limit| Duration::from_secs(limit.value)),
                parallel: workflow
                    .said
                    .number("max_parallel")
                    .map_or(if has_forks { PARALLEL } else { 1 }, |most| most.value),
                ..Limits::default()
            },
            priority: match workflow.said.text("priority").map(|priority| priority.value.as_str()) {
                Some("low") => Priority::Low,
                Some("high") => Priority::High,
                Some("urgent") => Priority::Urgent,
                Some(_) | None => Priority::default(),
            },
        }
    }
}

// G1, G2: where a run goes while a gate is unmet: what the gate says, else what the graph says.
fn goals(workflow: &Workflow) -> Vec<Goal> {
    let is_gate = |node: &&NodeTree| node.said.flag("goal_gate").is_some_and(|gate| gate.value);
    let gates = workflow.nodes.iter().filter(is_gate);
    gates
        .map(|node| {
            let keys = ["retry_target", "fallback_retry_target"];
            let said =
                [&node.said, &workflow.said].into_iter().flat_map(|said| keys.map(|key| said.text(key)));
            let retry = said.flatten().next().map(|target| NodeId::new(target.value.as_str()));
            Goal { node: NodeId::new(node.id.value.as_str()), retry }
        })
        .collect()
}

fn helper(helpers: &mut BTreeMap<&'static str, Node>, name: &'static str, kind: NodeKind) -> String {
    // No name of DOT begins like this, so none is taken.
    let id = format!("-{name}");
    helpers.entry(name).or_insert_with(|| Node::new(id.as_str(), name, kind));
    id
}

fn option(edge: &EdgeTree) -> String {
    edge.label.as_ref().map_or_else(|| edge.to.value.clone(), |label| label.value.clone())
}

fn policy(node: &NodeTree) -> Option<OnFail> {
    on_fail_of(&node.said.text("on_fail")?.value)
}

// R6: a partial success settles as warned.
fn lapse(node: &NodeTree) -> Outcome {
    match policy(node).and_then(|policy| policy.then) {
        Some(Then::Skip) => Outcome::Skipped,
        Some(Then::Warn) => Outcome::Warned,
        Some(Then::Escalate | Then::Abort) => Outcome::Failed,
        None if node.said.flag("allow_partial").is_some_and(|flag| flag.value) => Outcome::Warned,
        None => Outcome::Failed,
    }
}

fn contract(node: &NodeTree, command: &str, timeout: &str) -> Contract {
    Contract {
        digest: digest_of_text(command),
        command: command.to_owned(),
        expect: node.said.number("expect_exit").map_or(0, |code| code.value),
        timeout: node
            .said
            .seconds(timeout)
            .map_or(CONTRACT_TIMEOUT, |limit| Duration::from_secs(limit.value)),
        guard: false,
        red_first: RedFirst::Off,
    }
}

fn level_named(word: &str) -> Option<Level> {
    match word {
        "primary" => Some(Level::Primary),
        "alternate" => Some(Level::Alternate),
        "contingent" => Some(Level::Contingent),
        "emergency" => Some(Level::Emergency),
        _ => None,
    }
}
