//! Random plans: linear ones as markdown lowers to, steps with any edges, and graphs of every kind of node.

mod conditions;
mod reshaped;
mod woven;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use planctl_engine::{
    Budget, ChildApproval, Confirmation, Contract, Digest, Edge, Graph, GraphParts, Judge, Level, Limits,
    Node, NodeId, NodeKind, On, Outcome, OutputCheck, PaceLevel, Priority, Question, RedFirst, Responder,
    Restart, Role, SubPlan, Task, WorkKind,
};

use crate::dice::Dice;

/// A plan as it was drawn.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graph for the engine.
    pub graph: Graph,
    /// Says that steps run one after another and only a failure leaves that way.
    pub is_linear: bool,
    /// Says that nodes of all kinds are in it, and not steps alone.
    pub is_woven: bool,
}

/// Draws a plan.
pub fn draw(dice: &mut Dice) -> Plan {
    // From a sequence of its own, so that a seed's plan is otherwise what it would be without.
    let mut apart = dice.clone().fork(7);
    let mut plan = draw_steps(dice);
    if apart.happens(500) {
        plan.graph = with_red_first(&mut apart, &plan.graph, &BTreeSet::new());
    }
    let mut apart = dice.clone().fork(10);
    if plan.is_woven && apart.happens(500) {
        plan.graph = with_runs_and_branches_of_their_own(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(14);
    if plan.is_woven && apart.happens(300) {
        plan.graph = with_locks(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(16);
    if plan.is_woven && apart.happens(250) {
        plan.graph = with_new_beginnings(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(21);
    if plan.is_woven && apart.happens(300) {
        plan.graph = with_observed_steps(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(25);
    if apart.happens(300) {
        plan.graph = with_judges(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(36);
    if apart.happens(300) {
        plan.graph = with_counted_tests(&mut apart, &plan.graph);
    }
    let mut apart = dice.clone().fork(8);
    if apart.happens(500) {
        plan.graph = with_pace(&mut apart, &plan.graph);
        if !plan.is_linear && !plan.is_woven && apart.happens(400) {
            plan.graph = with_way_back(&mut apart, &plan.graph);
        }
    }
    plan
}

/// Has some steps name locks, which no two steps hold at once, across runs.
pub(crate) fn with_locks(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind {
            task.locks = ["db", "gpu"].into_iter().filter(|_| dice.happens(500)).map(str::to_owned).collect();
        }
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// Has some steps pass by the output that their worker's program reports, or by a person's word, and not by a contract.
fn with_observed_steps(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        let is_task = matches!(node.kind, NodeKind::Task(_));
        if !is_task || !dice.happens(500) {
            continue;
        }
        if let NodeKind::Task(task) = &mut node.kind {
            task.contract.command.clear();
            task.contract.red_first = RedFirst::Off;
        }
        let options = vec!["done".to_owned(), "not done".to_owned()];
        let question = Question { text: "Is it done?".to_owned(), options, default: None, usual: None };
        let check = Some(OutputCheck::OutputContains(SEEN.to_owned()));
        node.confirmation = Some(Box::new(Confirmation { question, refusal: "not done".to_owned(), check }));
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// Has a judge asked about some steps beside their contract, or alone; before some of them a person is asked.
fn with_judges(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut asks = dice.clone().fork(35);
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        let (is_judged, is_alone) = (dice.happens(500), dice.happens(200));
        let approval = asks.happens(350);
        if let NodeKind::Task(task) = &mut node.kind
            && is_judged
            && node.confirmation.is_none()
        {
            if is_alone {
                task.contract.command.clear();
                (task.contract.expect, task.contract.red_first) = (0, RedFirst::Off);
            }
            task.contract.judge = Some(Box::new(Judge {
                question: "Is it good?".to_owned(),
                digest: Digest::new("sha256:good"),
                by: "strict".to_owned(),
                approval,
            }));
        }
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// Has some contracts pass only where enough tests do.
fn with_counted_tests(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        let least = dice.between(1, 3) as u32;
        if let NodeKind::Task(task) = &mut node.kind
            && dice.happens(500)
            && !task.contract.command.is_empty()
        {
            task.contract.min_tests = Some(least);
        }
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// The text that an output must have in it, where a step passes by one.
pub(crate) const SEEN: &str = "all is fine";

/// Has the run begin anew over some edges, as another epoch.
fn with_new_beginnings(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    parts.limits.restarts = dice.between(1, 3) as u16;
    for edge in &mut parts.edges {
        let keeps: Vec<String> =
            ["x", "z"].into_iter().filter(|_| dice.happens(500)).map(str::to_owned).collect();
        let leads_to_work = graph.node(&edge.to).is_some_and(|node| {
            !matches!(node.kind, NodeKind::Join(_) | NodeKind::Exit { .. } | NodeKind::Escalate { .. })
        });
        let leaves_work = graph.node(&edge.from).is_some_and(|node| node.gated().is_some());
        // A branch with a worktree of its own begins at its fork, which makes the worktree.
        let leads_into_worktree = graph.worktree_branch(&edge.to).is_some();
        if dice.happens(150) && leads_to_work && leaves_work && !leads_into_worktree {
            edge.restart = Some(Box::new(Restart { keeps }));
        }
    }
    Graph::new(parts).unwrap_or_else(|_| graph.clone())
}

/// Asks for the contracts of some steps to be red before the work; those in `fixed` stay as they are.
fn with_red_first(dice: &mut Dice, graph: &Graph, fixed: &BTreeSet<NodeId>) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        let red_first = *dice.pick(&[RedFirst::Off, RedFirst::Warn, RedFirst::Warn, RedFirst::Deny]);
        let guard = dice.happens(150);
        if let NodeKind::Task(task) = &mut node.kind
            && !fixed.contains(&node.id)
            && node.confirmation.is_none()
        {
            (task.contract.red_first, task.contract.guard) = (red_first, guard);
        }
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// Gives some steps levels above their own role, and names a level where the plan escalates.
fn with_pace(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        match &mut node.kind {
            NodeKind::Task(task) => task.pace = pace(dice),
            NodeKind::Escalate { pace_level, .. } => {
                *pace_level = dice.happens(300).then(|| *dice.pick(&Level::ALL));
            }
            NodeKind::Start
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::Join(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Exit { .. } => {}
        }
    }
    Graph::new(parts).expect("the edges are as they were")
}

/// Makes plans within the plan of some calls and steps, and has the branches of some forks work in worktrees of their own.
fn with_runs_and_branches_of_their_own(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    // From a sequence of its own, as above.
    let mut loops = dice.clone().fork(11);
    let nodes: Vec<NodeId> = parts.nodes.iter().map(|node| node.id.clone()).collect();
    for node in &mut parts.nodes {
        let (nests, parts_branches, inherits) = (dice.happens(300), dice.happens(600), dice.happens(500));
        let on_exhausted = match &mut node.kind {
            NodeKind::Fork(fork) => {
                fork.in_worktree = parts_branches && fork.join.is_some();
                continue;
            }
            NodeKind::Task(task) => task.on_exhausted,
            NodeKind::Call(call) => call.on_exhausted,
            NodeKind::Start
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Join(_)
            | NodeKind::Escalate { .. }
            | NodeKind::SubPlan(_)
            | NodeKind::Exit { .. } => continue,
        };
        if nests {
            let approval = if inherits { ChildApproval::Inherit } else { ChildApproval::Ask };
            let path = "inner.md".to_owned();
            let until = loops.happens(500).then(|| until(&mut loops, &node.id, &nodes));
            let cycles = if until.is_some() { loops.between(1, 4) as u16 } else { 1 };
            let plan = SubPlan { path, folder: None, approval, on_exhausted, until, cycles };
            node.kind = NodeKind::SubPlan(Box::new(plan));
        }
    }
    Graph::new(parts).unwrap_or_else(|_| graph.clone())
}

/// Draws what the runs of a plan within the plan are to bring about: anything, or that there were so many.
fn until(dice: &mut Dice, node: &NodeId, nodes: &[NodeId]) -> Condition {
    if dice.happens(500) {
        return conditions::draw(dice, nodes);
    }
    let key = Key::Step { node: node.to_string(), field: StepField::Attempts };
    Condition { clauses: vec![Clause { key, test: Test::Is(dice.between(1, 3).to_string()) }] }
}

/// Leads the last step's success to a step before, so that steps are entered anew after they passed, and its failure to
/// the end.
fn with_way_back(dice: &mut Dice, graph: &Graph) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    let (last, done) = (step_id(u64::from(graph.task_count())), NodeId::from("done"));
    parts.edges.retain(|edge| edge.from != last || edge.on == On::Retry);
    parts.edges.push(edge(&last, &step_id(dice.between(1, u64::from(graph.task_count()))), On::Success));
    parts.edges.push(edge(&last, &done, On::Exhaust));
    Graph::new(parts).unwrap_or_else(|_| graph.clone())
}

fn pace(dice: &mut Dice) -> Vec<PaceLevel> {
    let mut pace_levels = Vec::new();
    for (level, role) in Level::ALL.into_iter().zip(["", "strong", "chief", "last"]).skip(1) {
        if dice.happens(500) {
            let responder =
                if dice.happens(250) { Responder::Human } else { Responder::Role(Role::from(role)) };
            let timeout = dice.happens(300).then(|| Duration::from_secs(dice.between(20, 900)));
            pace_levels.push(PaceLevel { level, responder, timeout });
        }
    }
    pace_levels
}

fn draw_steps(dice: &mut Dice) -> Plan {
    let mut apart = dice.clone().fork(9);
    if apart.happens(500)
        && let Some(graph) = woven::weave(&mut apart)
    {
        return Plan { graph, is_linear: false, is_woven: true };
    }
    let most = if dice.happens(200) { 12 } else { 5 };
    let steps = dice.between(1, most);
    if dice.happens(450) {
        for _ in 0..30 {
            if let Ok(graph) = Graph::new(tangled(dice, steps)) {
                return Plan { graph, is_linear: false, is_woven: false };
            }
        }
    }
    let graph = Graph::new(linear(dice, steps)).expect("a lowered linear plan is a graph");
    Plan { graph, is_linear: true, is_woven: false }
}

/// Draws another revision of a plan: steps in `fixed` stay as they are, others may change; a linear plan may also
/// lose or gain a step at its end, and a woven one branches.
pub fn revise(dice: &mut Dice, plan: &Plan, fixed: &BTreeSet<NodeId>) -> Plan {
    let mut apart = dice.clone().fork(7);
    let before =
        if apart.happens(300) { with_red_first(&mut apart, &plan.graph, fixed) } else { plan.graph.clone() };
    let mut parts = GraphParts::from(before);
    for node in &mut parts.nodes {
        if fixed.contains(&node.id) {
            continue;
        }
        if let NodeKind::Task(task) = &mut node.kind
            && dice.happens(600)
        {
            task.max_retries = retries(dice);
            let name = format!("{}.{}", node.id, dice.below(1000));
            let Contract { guard, red_first, .. } = task.contract;
            task.contract = Contract { guard, red_first, ..contract(dice, &name) };
            if node.confirmation.is_some() {
                task.contract.command.clear();
            }
        }
        if let NodeKind::Call(call) = &mut node.kind
            && dice.happens(400)
        {
            let name = format!("{}.{}", node.id, dice.below(1000));
            call.contract = contract(dice, &name);
        }
    }
    parts.budget = parts.budget.raised(Budget {
        tokens: Some(dice.below(5_000)),
        micro_usd: Some(dice.below(500_000)),
        time: Some(Duration::from_secs(dice.below(600))),
    });
    if plan.is_linear && dice.happens(300) {
        drop_or_add_last(dice, &mut parts, fixed);
    }
    let mut apart = dice.clone().fork(41);
    let reshapes = plan.is_woven && apart.happens(500);
    let reshaped = |graph: Graph| if reshapes { reshaped::reshape(&mut apart, &graph, fixed) } else { graph };
    match Graph::new(parts).map(reshaped) {
        Ok(graph) => Plan { graph, is_linear: plan.is_linear, is_woven: plan.is_woven },
        Err(_) => plan.clone(),
    }
}

fn drop_or_add_last(dice: &mut Dice, parts: &mut GraphParts, fixed: &BTreeSet<NodeId>) {
    let count = parts.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Task(_))).count() as u64;
    let last = step_id(count);
    if dice.happens(500) && count > 1 && !fixed.contains(&last) {
        parts.nodes.retain(|node| node.id != last);
        parts.edges.retain(|edge| edge.from != last);
        for edge in &mut parts.edges {
            if edge.to == last {
                edge.to = NodeId::from("done");
            }
        }
    } else if !fixed.contains(&last) {
        let added = step_id(count + 1);
        for edge in &mut parts.edges {
            if edge.from == last && edge.to == NodeId::from("done") {
                edge.to = added.clone();
            }
        }
        parts.nodes.push(step(dice, count + 1, Outcome::Skipped));
        parts.edges.push(edge(&added, &NodeId::from("done"), On::Success));
        parts.edges.push(edge(&added, &NodeId::from("done"), On::Exhaust));
    }
}

fn linear(dice: &mut Dice, steps: u64) -> GraphParts {
    let (start, done) = (NodeId::from("start"), NodeId::from("done"));
    let (ask, failed) = (NodeId::from("ask"), NodeId::from("failed"));
    let mut nodes =
        vec![plain_node("start", NodeKind::Start), plain_node("done", NodeKind::Exit { success: true })];
    let mut edges = vec![edge(&start, &step_id(1), On::Success)];
    for number in 1..=steps {
        let id = step_id(number);
        let next = if number == steps { done.clone() } else { step_id(number + 1) };
        let (on_exhausted, target) = match dice.below(4) {
            0 => (Outcome::Failed, failed.clone()),
            1 => (Outcome::Skipped, next.clone()),
            2 => (Outcome::Warned, next.clone()),
            _ => (Outcome::Failed, ask.clone()),
        };
        nodes.push(step(dice, number, on_exhausted));
        edges.push(edge(&id, &next, On::Success));
        edges.push(edge(&id, &target, On::Exhaust));
    }
    finish(dice, nodes, edges)
}

/// Draws a graph with any edges; [`Graph::new`] says whether it is one.
fn tangled(dice: &mut Dice, steps: u64) -> GraphParts {
    let (start, done) = (NodeId::from("start"), NodeId::from("done"));
    let mut nodes =
        vec![plain_node("start", NodeKind::Start), plain_node("done", NodeKind::Exit { success: true })];
    let first = if dice.happens(800) { On::Success } else { On::Always };
    let mut edges = vec![edge(&start, &step_id(1), first)];
    for number in 1..=steps {
        let id = step_id(number);
        let on_exhausted = *dice.pick(&[Outcome::Failed, Outcome::Skipped, Outcome::Warned]);
        nodes.push(step(dice, number, on_exhausted));
        let next = if number == steps { done.clone() } else { step_id(number + 1) };
        if dice.happens(930) {
            edges.push(edge(&id, &next, if dice.happens(850) { On::Success } else { On::Always }));
        }
        for (on, per_mille) in [(On::Retry, 250), (On::Exhaust, 400), (On::Fail, 500), (On::Always, 150)] {
            if dice.happens(per_mille) && !edges.iter().any(|edge| edge.from == id && edge.on == on) {
                edges.push(edge(&id, &draw_target(dice, steps, on), on));
            }
        }
    }
    finish(dice, nodes, edges)
}

fn draw_target(dice: &mut Dice, steps: u64, on: On) -> NodeId {
    match dice.below(10) {
        0 => NodeId::from("done"),
        1 => NodeId::from("failed"),
        2 | 3 if on != On::Always => NodeId::from("ask"),
        _ => step_id(dice.between(1, steps)),
    }
}

fn finish(dice: &mut Dice, mut nodes: Vec<Node>, edges: Vec<Edge>) -> GraphParts {
    if edges.iter().any(|edge| edge.to == NodeId::from("ask")) {
        nodes.push(plain_node(
            "ask",
            NodeKind::Escalate { reason: Some("the plan says so".to_owned()), pace_level: None },
        ));
    }
    if edges.iter().any(|edge| edge.to == NodeId::from("failed")) {
        nodes.push(plain_node("failed", NodeKind::Exit { success: false }));
    }
    GraphParts {
        title: "a drawn plan".to_owned(),
        start: NodeId::from("start"),
        nodes,
        edges,
        budget: budget(dice),
        limits: limits(dice),
        priority: Priority::Normal,
        goals: Vec::new(),
        context: BTreeMap::new(),
    }
}

fn budget(dice: &mut Dice) -> Budget {
    let mut part = |low: u64, high: u64| dice.happens(300).then(|| dice.between(low, high));
    Budget {
        tokens: part(500, 40_000),
        micro_usd: part(1_000, 2_000_000),
        time: part(30, 4_000).map(Duration::from_secs),
    }
}

fn limits(dice: &mut Dice) -> Limits {
    let normal = Limits::default();
    let is_tight = dice.happens(600);
    Limits {
        attempts: if dice.happens(120) { dice.between(2, 12) as u32 } else { 300 },
        deliveries: if is_tight { dice.between(1, 3) as u16 } else { normal.deliveries },
        interruptions: if is_tight { dice.between(1, 4) as u16 } else { normal.interruptions },
        repeats: if is_tight { dice.between(1, 3) as u16 } else { normal.repeats },
        stale_after: dice.happens(450).then(|| Duration::from_secs(dice.between(20, 2_000))),
        same_failures: u16::MAX,
        ..normal
    }
}

fn step(dice: &mut Dice, number: u64, on_exhausted: Outcome) -> Node {
    let task = Task {
        step: number as u32,
        role: Role::from(*dice.pick(&["coder", "reviewer"])),
        pace: Vec::new(),
        work: *dice.pick(&[WorkKind::Code, WorkKind::Review]),
        prompt: format!("do step {number}"),
        subscriptions: Vec::new(),
        contract: contract(dice, &number.to_string()),
        max_retries: retries(dice),
        on_exhausted,
        work_timeout: Duration::from_secs(dice.between(20, 900)),
        protects: Vec::new(),
        locks: Vec::new(),
        excludes: Vec::new(),
        contract_files: BTreeSet::new(),
        may_change: BTreeSet::new(),
    };
    let max_visits = if dice.happens(500) { dice.between(1, 3) as u16 } else { 10 };
    let kind = NodeKind::Task(Box::new(task));
    Node { max_visits, ..Node::new(step_id(number), format!("step {number}"), kind) }
}

fn retries(dice: &mut Dice) -> u16 {
    *dice.pick(&[0, 0, 1, 1, 2, 3, 20])
}

fn contract(dice: &mut Dice, name: &str) -> Contract {
    Contract {
        command: format!("./check {name}"),
        digest: Digest::new(format!("sha256:{name}")),
        expect: *dice.pick(&[0, 0, 0, 1, 42]),
        timeout: Duration::from_secs(60),
        guard: false,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
    }
}

fn step_id(number: u64) -> NodeId {
    NodeId::new(number.to_string())
}

fn plain_node(id: &str, kind: NodeKind) -> Node {
    Node::new(id, id, kind)
}

fn edge(from: &NodeId, to: &NodeId, on: On) -> Edge {
    Edge::new(from.clone(), to.clone(), on)
}
