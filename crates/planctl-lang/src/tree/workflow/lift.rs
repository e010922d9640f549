//! The graph that the engine runs → a tree, so that what runs can be drawn and written like what is read.

use planctl_engine::{
    Backoff, Budget, ChildApproval, Contract, Edge, Fidelity, Graph, JoinPolicy, Limits, Node, NodeId,
    NodeKind, Outcome, Priority, Profile, Question, RedFirst, SubPlan, Task, WorkKind,
};

use super::tree::{EdgeTree, Kind, NamedContract, NodeTree, Workflow};
use crate::syntax::condition::Reading;
use crate::syntax::dot::{EdgeAttributes, GraphAttributes, NodeAttributes};
use crate::syntax::values::budget_words;
use crate::syntax::written::{ExitResult, FieldWords, RetryPolicy, Text, VerifyType, Written};
use crate::text::limits::{CONTRACT_TIMEOUT, MAX_VISITS, WORK_TIMEOUT};
use crate::text::{Span, Spanned};
use crate::tree::{OnFail, Then, WorkspaceMode};

/// Makes the tree of a graph: the start first, then the steps as they are numbered, then what else is there.
pub fn of_graph(graph: &Graph) -> Workflow {
    of_part(graph, |_| true)
}

/// Makes the tree of a part of a graph: those nodes that are wanted, and the edges between them.
pub fn of_part(graph: &Graph, is_wanted: impl Fn(&NodeId) -> bool) -> Workflow {
    let mut nodes: Vec<&Node> = graph.nodes().iter().filter(|node| is_wanted(&node.id)).collect();
    let edges = graph.edges().iter().filter(|edge| is_wanted(&edge.from) && is_wanted(&edge.to));
    nodes.sort_by_key(|node| (node.id != *graph.start(), node.step().unwrap_or(u32::MAX)));
    let mut nodes: Vec<NodeTree> = nodes.into_iter().map(node_tree).collect();
    for goal in graph.goals() {
        if let Some(node) = nodes.iter_mut().find(|node| node.id.value == goal.node.as_str()) {
            node.attributes.goal_gate = value(true);
            node.attributes.retry_target = text(goal.retry.as_ref().map_or("", NodeId::as_str));
        }
    }
    Workflow {
        attributes: graph_attributes(graph),
        title: Some(name(graph.title())),
        start: Some(name(graph.start().as_str())),
        nodes,
        edges: edges.map(edge_tree).collect(),
        ..Workflow::default()
    }
}

fn graph_attributes(graph: &Graph) -> GraphAttributes {
    let limits = graph.limits();
    let usual = Limits::default();
    let has_forks = graph.nodes().iter().any(|node| matches!(node.kind, NodeKind::Fork(_)));
    let parallel = has_forks || limits.parallel != usual.parallel;
    let budget = Some(graph.budget()).filter(|budget| *budget != Budget::default());
    GraphAttributes {
        max_parallel: value(parallel.then_some(limits.parallel)),
        stale_after: value(limits.stale_after),
        ask_deadline: value(limits.ask_deadline),
        max_restarts: value(Some(limits.restarts).filter(|most| *most != usual.restarts)),
        budget: budget.map(|budget| name(&budget_words(budget))).into(),
        priority: value(Some(graph.priority()).filter(|priority| *priority != Priority::default())),
        ..GraphAttributes::default()
    }
}

/// Wraps what has no place in a text.
fn plain<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Span::at(0))
}

fn name(name: &str) -> Spanned<String> {
    plain(name.to_owned())
}

/// Says a text, unless it is empty.
fn text(text: &str) -> Written<Text> {
    Some(name(text)).filter(|text| !text.value.is_empty()).into()
}

fn text_of(said: &Option<String>) -> Written<Text> {
    text(said.as_deref().unwrap_or_default())
}

fn value<T: FieldWords>(value: impl Into<Option<T>>) -> Written<T> {
    value.into().map(plain).into()
}

fn list<T: FieldWords + Clone>(entries: &[T]) -> Written<Vec<Spanned<T>>> {
    Written::list(&entries.iter().cloned().map(plain).collect::<Vec<_>>())
}

fn node_tree(node: &Node) -> NodeTree {
    let mut tree = NodeTree::new(name(node.id.as_str()), Span::at(0), plain(kind_of(&node.kind)));
    if node.title != node.id.as_str() {
        tree.attributes.label = name(&node.title).into();
    }
    let said = &mut tree.attributes;
    if let Some(profile) = &node.profile {
        say_profile(profile, said);
    }
    let waits = ["standard", "aggressive", "linear", "patient"].into_iter().find_map(|word| {
        let (backoff, retries) = Backoff::from_word(word).filter(|(own, _)| own == &node.backoff)?;
        Some(Written::with_words(name(word), Some(RetryPolicy { backoff, retries })))
    });
    said.ask_deadline = value(node.ask_deadline);
    said.max_visits = value(Some(node.max_visits).filter(|most| *most != MAX_VISITS));
    said.retry_policy = waits.filter(|_| node.backoff.is_some()).unwrap_or_default();
    match &node.kind {
        NodeKind::Task(task) => {
            say_task(task, said);
            let command = Some(task.contract.command.as_str()).filter(|command| !command.is_empty());
            if node.confirmation.is_some() && command.is_some() {
                said.verify_type = value(VerifyType::Manual);
            }
            if let Some(judge) = &task.contract.judge {
                (said.judge, said.judge_by) = (text(&judge.question), text(&judge.by));
            }
            if command.is_some() || node.confirmation.is_some() {
                let command = name(command.unwrap_or("none"));
                tree.contracts.push(NamedContract { name: None, command });
            }
        }
        NodeKind::Call(call) => {
            said.target = call.role.as_ref().map(|role| text(role.as_str())).unwrap_or_default();
            said.tool_command = text(&call.contract.command);
            said.max_retries = more_than_none(call.max_retries);
            said.expect_exit = expect_exit(&call.contract);
            said.on_fail = let_pass(call.on_exhausted);
            said.timeout = value(Some(call.contract.timeout).filter(|limit| *limit != CONTRACT_TIMEOUT));
            said.changes = list(&call.may_change.iter().cloned().collect::<Vec<_>>());
        }
        NodeKind::Decision(choice) => {
            said.description = text_of(&choice.description);
            if let Some(command) = &choice.command {
                said.command = text(&command.command);
                said.expect_exit = expect_exit(command);
                said.timeout = value(Some(command.timeout).filter(|limit| *limit != CONTRACT_TIMEOUT));
            }
        }
        NodeKind::Human(question) => say_question(question, said),
        NodeKind::Fork(fork) => {
            said.max_parallel = value(fork.max);
            said.workspace = value(fork.in_worktree.then_some(WorkspaceMode::Worktree));
        }
        NodeKind::SubPlan(plan) => say_sub_plan(plan, said),
        NodeKind::Join(join) => {
            said.join_policy = value(Some(join.policy).filter(|policy| *policy == JoinPolicy::Any));
            said.allow_partial = value(join.partial.then_some(true));
        }
        NodeKind::Escalate { reason, pace_level } => {
            said.escalate = text(reason.as_ref().unwrap_or(&node.title));
            said.pace_level = value(*pace_level);
        }
        NodeKind::Exit { success: false } => said.result = value(ExitResult::Failed),
        NodeKind::Start | NodeKind::Checkpoint | NodeKind::Exit { success: true } => {}
    }
    tree
}

fn kind_of(kind: &NodeKind) -> Kind {
    match kind {
        NodeKind::Start => Kind::Start,
        NodeKind::Task(_) => Kind::Task,
        NodeKind::Call(_) => Kind::Call,
        NodeKind::Decision(_) => Kind::Decision,
        NodeKind::Human(_) => Kind::Human,
        NodeKind::Checkpoint => Kind::Checkpoint,
        NodeKind::Fork(_) => Kind::Fork,
        NodeKind::Join(_) => Kind::Join,
        NodeKind::SubPlan(_) => Kind::SubPlan,
        NodeKind::Escalate { .. } => Kind::Escalate,
        NodeKind::Exit { .. } => Kind::Exit,
    }
}

fn say_question(question: &Question, said: &mut NodeAttributes) {
    said.prompt = text(&question.text);
    said.default_choice = text_of(&question.usual);
    if let Some(default) = &question.default {
        said.default_choice = text(&default.answer);
        said.timeout = value(default.after);
    }
}

fn say_sub_plan(plan: &SubPlan, said: &mut NodeAttributes) {
    said.child_dotfile = text(&plan.path);
    said.child_workdir = text_of(&plan.folder);
    said.on_fail = let_pass(plan.on_exhausted);
    said.child_approval = value(Some(plan.approval).filter(|approval| *approval == ChildApproval::Inherit));
    if let Some(until) = &plan.until {
        let reading = Reading { condition: until.clone(), ..Reading::default() };
        said.stop_condition = Written::with_words(name(&until.to_string()), Some(Ok(reading)));
        said.max_cycles = value(plan.cycles);
    }
}

fn say_profile(profile: &Profile, said: &mut NodeAttributes) {
    said.profile = text_of(&profile.name);
    said.llm_model = text_of(&profile.model);
    said.llm_provider = text_of(&profile.provider);
    said.reasoning_effort = text_of(&profile.effort);
    said.thread_id = text_of(&profile.thread);
    said.fidelity = value(profile.fidelity.filter(|fidelity| *fidelity != Fidelity::Compact));
}

fn say_task(task: &Task, said: &mut NodeAttributes) {
    said.prompt = text(&task.prompt);
    said.target = text(task.role.as_str());
    said.max_retries = more_than_none(task.max_retries);
    said.subscriptions = list(&task.subscriptions);
    said.protects = list(&task.protects);
    said.locks = list(&task.locks);
    said.work = value(Some(task.work).filter(|work| *work == WorkKind::Review));
    said.expect_exit = expect_exit(&task.contract);
    said.min_tests = value(task.contract.min_tests);
    said.on_fail = let_pass(task.on_exhausted);
    said.timeout = value(Some(task.work_timeout).filter(|limit| *limit != WORK_TIMEOUT));
    said.contract_timeout = value(Some(task.contract.timeout).filter(|limit| *limit != CONTRACT_TIMEOUT));
    said.guard = value(task.contract.guard.then_some(true));
    said.red_first = value(Some(task.contract.red_first).filter(|policy| *policy != RedFirst::Off));
    said.changes = list(&task.may_change.iter().cloned().collect::<Vec<_>>());
}

/// Says what lets a failed node pass; where a run stops or asks, an edge says so.
fn let_pass(on_exhausted: Outcome) -> Written<OnFail> {
    let then = match on_exhausted {
        Outcome::Skipped => Some(Then::Skip),
        Outcome::Warned => Some(Then::Warn),
        Outcome::Passed | Outcome::Failed | Outcome::Waived => None,
    };
    value(then.map(|then| OnFail { retries: None, then: Some(then) }))
}

fn expect_exit(contract: &Contract) -> Written<u8> {
    value(Some(contract.expect).filter(|code| *code != 0))
}

fn more_than_none(count: u16) -> Written<u16> {
    value(Some(count).filter(|count| *count > 0))
}

fn edge_tree(edge: &Edge) -> EdgeTree {
    let carry = edge.carry.as_deref().cloned().unwrap_or_default();
    EdgeTree {
        attributes: EdgeAttributes {
            fidelity: value(carry.fidelity),
            thread_id: text_of(&carry.thread),
            ..EdgeAttributes::default()
        },
        condition: edge.when.clone().map(plain),
        label: edge.label.as_deref().map(name),
        weight: i64::from(edge.weight),
        loop_restart: edge.restart.is_some(),
        ..EdgeTree::new(name(edge.from.as_str()), name(edge.to.as_str()), Span::at(0), plain(edge.on))
    }
}
