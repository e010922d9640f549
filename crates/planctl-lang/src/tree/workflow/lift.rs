//! The graph that the engine runs → a tree, so that what runs can be drawn and written like what is read.

use planctl_engine::{
    Backoff, ChildApproval, Contract, Edge, Fidelity, Graph, JoinPolicy, Node, NodeId, NodeKind, Profile,
    Question, SubPlan, Subscription, Task, WorkKind,
};

use super::tree::{EdgeTree, Kind, NamedContract, NodeTree, Said, Workflow};
use crate::syntax::values::ask_deadline_words;
use crate::text::{Span, Spanned};

/// Makes the tree of a graph: the start first, then the steps as they are numbered, then what else is there.
pub fn of_graph(graph: &Graph) -> Workflow {
    of_part(graph, |_| true)
}

/// Makes the tree of a part of a graph: those nodes that are wanted, and the edges between them.
pub fn of_part(graph: &Graph, is_wanted: impl Fn(&NodeId) -> bool) -> Workflow {
    let mut nodes: Vec<&Node> = graph.nodes().iter().filter(|node| is_wanted(&node.id)).collect();
    let edges = graph.edges().iter().filter(|edge| is_wanted(&edge.from) && is_wanted(&edge.to));
    nodes.sort_by_key(|node| (node.id != *graph.start(), node.step().unwrap_or(u32::MAX)));
    Workflow {
        title: Some(plain(graph.title())),
        start: Some(plain(graph.start().as_str())),
        nodes: nodes.into_iter().map(node_tree).collect(),
        edges: edges.map(edge_tree).collect(),
        ..Workflow::default()
    }
}

/// Wraps what has no place in a text.
fn plain<T: Into<String>>(text: T) -> Spanned<String> {
    Spanned::new(text.into(), Span::at(0))
}

fn node_tree(node: &Node) -> NodeTree {
    let mut tree =
        NodeTree::new(plain(node.id.as_str()), Span::at(0), Spanned::new(kind_of(&node.kind), Span::at(0)));
    if node.title != node.id.as_str() {
        tree.said.insert("label", plain(node.title.as_str()));
    }
    let mut say = |key: &'static str, value: String| {
        if !value.is_empty() {
            tree.said.insert(key, plain(value));
        }
    };
    if let Some(profile) = &node.profile {
        profile_said(profile, &mut say);
    }
    let waits = ["standard", "aggressive", "linear", "patient"].into_iter().find(|word| {
        node.backoff.is_some() && Backoff::from_word(word).is_some_and(|(own, _)| own == node.backoff)
    });
    say("retry_policy", waits.unwrap_or_default().to_owned());
    say("ask_deadline", node.ask_deadline.map(ask_deadline_words).unwrap_or_default());
    match &node.kind {
        NodeKind::Task(task) => {
            task_said(task, &mut say);
            contract_said(&task.contract, &mut say);
            let command = Some(task.contract.command.as_str()).filter(|command| !command.is_empty());
            if node.confirmation.is_some() && command.is_some() {
                say("verify.type", "manual".to_owned());
            }
            if let Some(judge) = &task.contract.judge {
                say("judge", judge.question.clone());
                say("judge_by", judge.by.clone());
            }
            if command.is_some() || node.confirmation.is_some() {
                let command = plain(command.unwrap_or("none"));
                tree.contracts.push(NamedContract { name: None, command });
            }
        }
        NodeKind::Call(call) => {
            say("target", call.role.as_ref().map(|role| role.as_str().to_owned()).unwrap_or_default());
            say("tool_command", call.contract.command.clone());
            say("max_retries", more_than(0, call.max_retries));
            contract_said(&call.contract, &mut say);
        }
        NodeKind::Decision(choice) => {
            say("description", choice.description.clone().unwrap_or_default());
            if let Some(command) = &choice.command {
                say("command", command.command.clone());
                contract_said(command, &mut say);
            }
        }
        NodeKind::Human(question) => question_said(question, &mut say),
        NodeKind::Fork(fork) => {
            say("max_parallel", fork.max.map(|most| most.to_string()).unwrap_or_default());
            say("workspace", if fork.in_worktree { "worktree".to_owned() } else { String::new() });
        }
        NodeKind::SubPlan(plan) => sub_plan_said(plan, &mut say),
        NodeKind::Join(join) => {
            if join.policy == JoinPolicy::Any {
                say("join_policy", "first_success".to_owned());
            }
            if join.partial {
                say("allow_partial", "true".to_owned());
            }
        }
        NodeKind::Escalate { reason, pace_level } => {
            say("escalate", reason.clone().unwrap_or_else(|| node.title.clone()));
            say("pace_level", pace_level.map(|level| level.word().to_owned()).unwrap_or_default());
        }
        NodeKind::Exit { success: false } => say("result", "failed".to_owned()),
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

fn question_said(question: &Question, say: &mut impl FnMut(&'static str, String)) {
    say("prompt", question.text.clone());
    if let Some(usual) = &question.usual {
        say("human.default_choice", usual.clone());
    }
    if let Some(default) = &question.default {
        say("human.default_choice", default.answer.clone());
        say("timeout", format!("{}s", default.after.as_secs()));
    }
}

fn sub_plan_said(plan: &SubPlan, say: &mut impl FnMut(&'static str, String)) {
    say("stack.child_dotfile", plan.path.clone());
    say("stack.child_workdir", plan.folder.clone().unwrap_or_default());
    if plan.approval == ChildApproval::Inherit {
        say("stack.child_approval", "inherit".to_owned());
    }
    if let Some(until) = &plan.until {
        say("manager.stop_condition", until.to_string());
        say("manager.max_cycles", plan.cycles.to_string());
    }
}

fn profile_said(profile: &Profile, say: &mut impl FnMut(&'static str, String)) {
    let text = |said: &Option<String>| said.clone().unwrap_or_default();
    say("profile", text(&profile.name));
    say("llm_model", text(&profile.model));
    say("llm_provider", text(&profile.provider));
    say("reasoning_effort", text(&profile.effort));
    say("thread_id", text(&profile.thread));
    let fidelity = profile.fidelity.filter(|fidelity| *fidelity != Fidelity::Compact);
    say("fidelity", fidelity.map(|fidelity| fidelity.word().to_owned()).unwrap_or_default());
}

fn task_said(task: &Task, say: &mut impl FnMut(&'static str, String)) {
    say("prompt", task.prompt.clone());
    say("target", task.role.as_str().to_owned());
    say("max_retries", more_than(0, task.max_retries));
    let subscriptions = task.subscriptions.iter().map(|subscription| match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    });
    say("subscriptions", subscriptions.collect::<Vec<_>>().join("\n"));
    say("protects", task.protects.join("\n"));
    say("locks", task.locks.join("\n"));
    if task.work == WorkKind::Review {
        say("work", "review".to_owned());
    }
}

fn contract_said(contract: &Contract, say: &mut impl FnMut(&'static str, String)) {
    if contract.expect != 0 {
        say("expect_exit", contract.expect.to_string());
    }
}

/// Writes a number where it is another than what counts in any case.
fn more_than(default: u16, count: u16) -> String {
    if count == default { String::new() } else { count.to_string() }
}

fn edge_tree(edge: &Edge) -> EdgeTree {
    let on = Spanned::new(edge.on, Span::at(0));
    let mut said = Said::default();
    let carry = edge.carry.as_deref().cloned().unwrap_or_default();
    if let Some(fidelity) = carry.fidelity {
        said.insert("fidelity", plain(fidelity.word()));
    }
    if let Some(thread) = carry.thread {
        said.insert("thread_id", plain(thread));
    }
    EdgeTree {
        said,
        condition: edge.when.clone().map(|when| Spanned::new(when, Span::at(0))),
        label: edge.label.as_deref().map(plain),
        weight: i64::from(edge.weight),
        loop_restart: edge.restart.is_some(),
        ..EdgeTree::new(plain(edge.from.as_str()), plain(edge.to.as_str()), Span::at(0), on)
    }
}
