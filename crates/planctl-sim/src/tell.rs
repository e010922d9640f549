//! The conversation in lines that a person can read.

use planctl_engine::{
    AgentSaid, Answer, ClockEvent, Decider, Decision, Edge, Ending, Event, Fact, FaultKind, Graph,
    HarnessResult, NodeKind, On, Outcome, Purpose, Signal, Task,
};

/// Returns what an event says.
pub fn event(event: &Event) -> String {
    let at =
        event.at().map_or_else(String::new, |at| format!(" {}#{} (visit {})", at.node, at.attempt, at.visit));
    match event {
        Event::Agent(event) => match &event.said {
            AgentSaid::Reported(report) => {
                let gave_up = if report.gave_up { ", gave up" } else { "" };
                let tokens = report.usage.as_ref().map_or(0, planctl_engine::Usage::tokens);
                format!("agent reported{at}{gave_up}, {tokens} tokens")
            }
            AgentSaid::Asked { question, .. } => format!("agent asked{at}: {question}"),
            AgentSaid::Overran { .. } => format!("agent overran{at}"),
            AgentSaid::Faulted(fault) => match fault.kind {
                FaultKind::Transient => format!("agent faulted{at}"),
                FaultKind::Permission => format!("agent lacks a permission{at}"),
                FaultKind::Permanent => format!("agent can't start{at}"),
            },
            AgentSaid::Released => format!("agent released{at}"),
        },
        Event::Harness(event) => match &event.found {
            HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence) => {
                let verb = if matches!(event.found, HarnessResult::Rehearsed(_)) {
                    "rehearsed"
                } else {
                    "evaluated"
                };
                let ending = match evidence.ending {
                    Ending::Exited { code } => format!("exit {code}"),
                    Ending::Signalled { signal } => format!("signal {signal}"),
                    Ending::TimedOut => "timed out".to_owned(),
                    Ending::OverLimit { resource, max } => format!("over {} {max}", resource.key()),
                    Ending::NotRun => "not run".to_owned(),
                };
                let tampered = if evidence.tampered.is_empty() { "" } else { ", tampered" };
                format!("harness {verb}{at} {ending}{tampered} of {}", evidence.contract)
            }
            HarnessResult::Recorded { name } => format!("harness recorded{at} {name}"),
            HarnessResult::Restored => format!("harness restored{at}"),
            HarnessResult::Forked { base } => format!("harness forked{at} {base}"),
            HarnessResult::Merged { files, .. } => format!("harness merged{at} {files}"),
            HarnessResult::Conflicted(conflict) => {
                format!("harness conflicted{at} {}", conflict.files.join(" "))
            }
            HarnessResult::Begun { run, .. } => format!("harness begun{at} {run}"),
            HarnessResult::Ended(child) => format!("harness ended{at} {:?}", child.end),
            HarnessResult::Nothing(why) => format!("harness inconclusive{at}: {why:?}"),
        },
        Event::Human(event) => {
            let note = event.note.as_ref().map_or_else(String::new, |note| format!(" “{note}”"));
            match &event.decision {
                Decision::Answer { item, answer: Answer::Choose { option } } => {
                    format!("human chose {option} to {item}")
                }
                Decision::Answer { item, answer } => format!("human {}{note} to {item}", answer.as_str()),
                Decision::Vote { item, answer, .. } => format!("human voted {} on {item}", answer.as_str()),
                Decision::Submit => "human submitted".to_owned(),
                Decision::Cancel => "human cancelled".to_owned(),
                Decision::Pause => "human paused".to_owned(),
                Decision::Resume { from: None } => "human resumed".to_owned(),
                Decision::Resume { from: Some(node) } => format!("human resumed from {node}"),
                Decision::Revise { changed, .. } => format!("human revised {changed:?}"),
            }
        }
        Event::Clock(event) => match event {
            ClockEvent::Admitted => "clock admitted".to_owned(),
            ClockEvent::Due { timer } => format!("clock {} due", timer.stored_name()),
            ClockEvent::LeaseLost { interrupted: true, .. } => format!("clock lease interrupted{at}"),
            ClockEvent::LeaseLost { .. } => format!("clock lease lost{at}"),
            ClockEvent::Overran { .. } => format!("clock overran{at}"),
            ClockEvent::Metered => "clock metered".to_owned(),
            ClockEvent::DaySpent { .. } => format!("clock day spent{at}"),
            ClockEvent::DayAllows { node } => format!("clock day allows {node}"),
            ClockEvent::SetAside { node, .. } => format!("clock sets aside for {node}"),
            ClockEvent::Unattended { .. } => "clock unattended".to_owned(),
        },
    }
}

/// Returns a fact in the words that the reference model uses.
pub fn fact(fact: &Fact) -> String {
    match fact {
        Fact::PlanActivated { resumed } => format!("activated {}", if *resumed { "again" } else { "first" }),
        Fact::NodeEntered { node, visit, .. } => format!("entered {node} visit {visit}"),
        Fact::NodeVerified { node, attempt, verdict, vacuous } => {
            let vacuous = if *vacuous { " vacuous" } else { "" };
            format!("verified {node}#{attempt} {}{vacuous}", verdict.as_str())
        }
        Fact::NodeObserved { node, attempt, refuted, .. } => {
            format!("observed {node}#{attempt} {}", if refuted.is_none() { "passed" } else { "failed" })
        }
        Fact::NodeRehearsed { node, showed, .. } => format!("rehearsed {node} {}", showed.as_str()),
        Fact::RetryTriggered { node, attempt, .. } => format!("retry {node}#{attempt}"),
        Fact::EdgeFollowed { from, to, signal, choosing, .. } => {
            let why = match signal {
                Signal::Success => "success",
                Signal::Retry => "retry",
                Signal::Exhausted => "exhausted",
            };
            let by = match choosing.as_ref().map(|choosing| choosing.by) {
                None => "",
                Some(Decider::Condition) => " by condition",
                Some(Decider::Outcome) => " by outcome",
                Some(Decider::Label) => " by label",
                Some(Decider::Suggestion) => " by suggestion",
                Some(Decider::Weight) => " by weight",
            };
            format!("{from} -{why}-> {to}{by}")
        }
        Fact::EpochBegan { epoch, node, .. } => format!("epoch {epoch} at {node}"),
        Fact::FidelityReduced { node, .. } => format!("told less {node}"),
        Fact::ContextRefused { node, names, .. } => format!("not noted {node} {}", names.join(" ")),
        Fact::NodeQueued { node } => format!("queued {node}"),
        Fact::NodeDecided { node, met, .. } => format!("decided {node} {met}"),
        Fact::CheckpointSaved { node, .. } => format!("saved {node}"),
        Fact::CheckpointRestored { node } => format!("restored {node}"),
        Fact::BranchesJoined { node, met, failed } => format!("joined {node} {met} {failed}"),
        Fact::BranchesForked { node, .. } => format!("forked {node}"),
        Fact::BranchesMerged { node, files } => format!("merged {node} {files}"),
        Fact::MergeConflicted { node, .. } => format!("conflicted {node}"),
        Fact::SubPlanBegan { node, .. } => format!("began {node}"),
        Fact::SubPlanEnded { node, end, .. } => format!("ended {node} {end:?}"),
        Fact::GoalUnmet { node, .. } => format!("unmet {node}"),
        Fact::NodeSettled { node, outcome, .. } => format!("settled {node} {}", outcome.as_str()),
        Fact::NodeResting { node, attempt, .. } => format!("resting {node}#{attempt}"),
        Fact::NodeInterrupted { node, attempt, .. } => format!("interrupted {node}#{attempt}"),
        Fact::GateRepeated { node, attempt, purpose, .. } => {
            let what = match purpose {
                Purpose::Verdict => "gate",
                Purpose::Rehearsal => "rehearsal",
                Purpose::Record => "record",
                Purpose::Restoration => "restoration",
                Purpose::Fork => "parting",
                Purpose::Merge => "merge",
                Purpose::SubPlan => "sub-plan",
            };
            format!("{what} repeated {node}#{attempt}")
        }
        Fact::AskOpened { node, kind, reason, .. } => {
            format!("ask {node} {} {}", kind.as_str(), reason.as_str())
        }
        Fact::AskAnswered { node, answer, .. } => format!("answered {node} {answer}"),
        Fact::PlanEscalated { node, reason, .. } => format!("escalated {node} {}", reason.as_str()),
        Fact::PaceChanged { node, from, to, responder, reason } => {
            format!("pace {node} {from} -> {to} {responder} {}", reason.as_str())
        }
        Fact::BudgetNoticed { .. } => "budget noticed".to_owned(),
        Fact::PlanExpired { .. } => "expired".to_owned(),
        Fact::NodeReopened { node, .. } => format!("reopened {node}"),
        Fact::PlanPaused { node: Some(node), .. } => format!("paused at {node}"),
        Fact::PlanPaused { node: None, .. } => "paused".to_owned(),
        Fact::PlanCompleted { .. } => "completed".to_owned(),
        Fact::PlanFailed { node, .. } => format!("failed at {node}"),
        Fact::PlanCancelled { .. } => "cancelled".to_owned(),
    }
}

/// Returns a plan in a few lines.
pub fn plan(graph: &Graph) -> Vec<String> {
    let mut lines = vec![format!("plan {:?} {:?}", graph.budget(), graph.limits())];
    for node in graph.nodes() {
        let edges: Vec<String> = graph.edges_from(&node.id).iter().map(edge).collect();
        let what = match &node.kind {
            NodeKind::Start => "start".to_owned(),
            NodeKind::Escalate { pace_level: Some(level), .. } => format!("escalate to {level}"),
            NodeKind::Escalate { .. } => "escalate".to_owned(),
            NodeKind::Fork(fork) => format!("{fork:?}"),
            NodeKind::SubPlan(plan) => format!("{plan:?}"),
            NodeKind::Join(join) => format!("{join:?}"),
            NodeKind::Call(call) => format!("call retry {} {}", call.max_retries, call.on_exhausted.as_str()),
            NodeKind::Decision(_) | NodeKind::Human(_) | NodeKind::Checkpoint => {
                node.kind.as_str().to_owned()
            }
            NodeKind::Exit { success } => format!("exit {}", if *success { "done" } else { "failed" }),
            NodeKind::Task(task) => {
                let on_exhausted =
                    if task.on_exhausted == Outcome::Failed { "" } else { task.on_exhausted.as_str() };
                format!(
                    "task retry {} visits {} {on_exhausted} expects {} tests {} red first {}{}",
                    task.max_retries,
                    node.max_visits,
                    task.contract.expect,
                    task.contract.min_tests.unwrap_or(0),
                    task.contract.rehearsal_mode().as_str(),
                    pace(task)
                )
            }
        };
        lines.push(format!("  {}: {what} at most {}   {}", node.id, node.max_visits, edges.join("  ")));
    }
    for goal in graph.goals() {
        lines.push(format!("  goal {} else {:?}", goal.node, goal.retry));
    }
    lines
}

fn pace(task: &Task) -> String {
    task.pace.iter().map(|pace_level| format!(" {} {}", pace_level.level, pace_level.responder)).collect()
}

fn edge(edge: &Edge) -> String {
    let on = match edge.on {
        On::Success => "success",
        On::Fail => "fail",
        On::Retry => "retry",
        On::Exhaust => "exhaust",
        On::Always => "always",
    };
    let when = edge.when.as_ref().map_or_else(String::new, |when| format!(" if {when}"));
    let label = edge.label.as_ref().map_or_else(String::new, |label| format!(" @{label}"));
    let weight = if edge.weight == 0 { String::new() } else { format!(" *{}", edge.weight) };
    let anew =
        edge.restart.as_ref().map_or_else(String::new, |restart| format!(" anew with {:?}", restart.keeps));
    format!("-{on}{label}{weight}{when}{anew}-> {}", edge.to)
}
