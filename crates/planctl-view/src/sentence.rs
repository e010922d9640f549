//! One sentence for each fact of a run.

use planctl_engine::{
    Actor, AskKind, Choosing, Decider, End, Fact, Graph, Level, Node, NodeId, NodeKind, Outcome, Purpose,
    RehearsalResult, Responder, Signal, Verdict,
};

use crate::words::{VACUOUS, first_line, node_name, outcomes_line, reason_words, shortfall_line};

/// Says in one sentence what a fact means, without a full stop.
pub fn sentence(graph: &Graph, fact: &Fact) -> String {
    let name = |id: &NodeId| node_name(graph, id);
    match fact {
        Fact::PlanActivated { resumed: false } => {
            let count = graph.task_count();
            format!("the run began: {} ({count} step{})", graph.title(), if count == 1 { "" } else { "s" })
        }
        Fact::PlanActivated { resumed: true } => "the run went on".to_owned(),
        Fact::NodeEntered { node, rehearses: true, .. } => {
            format!("{} began with its contract, before any work", name(node))
        }
        Fact::NodeEntered { node, .. } if graph.gated(node).is_none() => {
            format!("the run came to {}", name(node))
        }
        Fact::NodeEntered { node, attempt, .. } => format!("{} began with attempt {attempt}", name(node)),
        Fact::EpochBegan { epoch, after, node, kept } => {
            let kept = if kept.is_empty() { String::new() } else { format!("; kept: {}", kept.join(", ")) };
            format!(
                "the run started over at {} after {}, for the {} time{kept}",
                name(node),
                name(after),
                nth(*epoch)
            )
        }
        Fact::FidelityReduced { node, asked, given } => {
            format!(
                "{} is told {} of the run in place of {}: workers keep their own sessions",
                name(node),
                given.as_str(),
                asked.as_str()
            )
        }
        Fact::ContextRefused { node, names, .. } => format!(
            "the worker of {} noted names that only planctl writes, and they were left out: {}",
            name(node),
            names.join(", ")
        ),
        Fact::NodeQueued { node } => format!("{} waits until there is room for it", name(node)),
        Fact::NodeDecided { node, met, ending } => {
            let way = if *met { "yes" } else { "no" };
            format!("{} decided {way} ({})", name(node), ending.describe(&[]))
        }
        Fact::CheckpointSaved { node, .. } => format!("the workspace was recorded at {}", name(node)),
        Fact::CheckpointRestored { node } => format!("the workspace is as it was at {}", name(node)),
        Fact::BranchesForked { node, .. } => {
            format!("the branches of {} have worktrees of their own", name(node))
        }
        Fact::BranchesMerged { node, files } => {
            let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
            format!("the branches were merged at {}: {files} changed in the workspace", name(node))
        }
        Fact::MergeConflicted { node, files } => {
            format!("the changes of the branches conflict at {}: {}", name(node), files.join(", "))
        }
        Fact::SubPlanBegan { node, run } => sub_plan_began(graph, node, &run.to_string()),
        Fact::SubPlanEnded { node, name: run, end, .. } => {
            format!("{run}, the run of {}, {}", name(node), end.describe())
        }
        Fact::BranchesJoined { node, met, failed } => {
            format!("{met} branches succeeded at {}, and {failed} failed", name(node))
        }
        Fact::GoalUnmet { node, retry: Some(retry) } => {
            format!("{} has not passed, so the run goes on at {}", name(node), name(retry))
        }
        Fact::GoalUnmet { node, retry: None } => format!("{} has not passed, so the run fails", name(node)),
        Fact::NodeVerified { node, attempt, verdict, vacuous } => {
            let but = if *vacuous { format!(", but {VACUOUS}") } else { String::new() };
            format!("the contract of {} {} at attempt {attempt}{but}", name(node), verdict_verb(*verdict))
        }
        Fact::NodeObserved { node, attempt, check, command, refuted } => {
            let of =
                command.as_ref().map(|command| format!(" of `{}`", first_line(command))).unwrap_or_default();
            match refuted {
                None => format!(
                    "attempt {attempt} of {} passed as observed, not proved: the agent's program reported the output{of}, and {}",
                    name(node),
                    check.describe()
                ),
                Some(why) => {
                    format!(
                        "attempt {attempt} of {} did not pass by the output{of} that was observed: {why}",
                        name(node)
                    )
                }
            }
        }
        Fact::NodeRehearsed { node, showed, ending, tampered } => {
            let line = ending.describe(tampered);
            format!("before the work of {}: {line}; {}", name(node), rehearsal_words(*showed))
        }
        Fact::RetryTriggered { node, attempt, left: 0 } => {
            format!("{} is tried again: attempt {attempt}, the last one", name(node))
        }
        Fact::RetryTriggered { node, attempt, left } => {
            format!("{} is tried again: attempt {attempt}, {left} left after it", name(node))
        }
        Fact::EdgeFollowed { from, to, signal, choosing, .. } => {
            edge_followed(graph, from, to, *signal, choosing.as_deref())
        }
        Fact::NodeSettled { node, outcome: Outcome::Passed, .. } if is_start(graph, node) => {
            "the plan is approved".to_owned()
        }
        Fact::NodeSettled { node, outcome, by, note } => {
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("{} {}{by}{}", name(node), outcome.as_str(), quoted(note.as_deref()))
        }
        Fact::NodeResting { node, attempt, deliveries, message, .. } => {
            format!(
                "attempt {attempt} of {} could not be worked on ({message}); delivery {deliveries} was lost",
                name(node)
            )
        }
        Fact::NodeInterrupted { node, attempt, .. } => {
            format!("attempt {attempt} of {} was interrupted, and was handed out again", name(node))
        }
        Fact::GateRepeated { node, purpose: Purpose::Rehearsal, why, .. } => {
            format!("the contract of {} was inconclusive before the work ({why}) and ran again", name(node))
        }
        Fact::GateRepeated { node, attempt, why, .. } => {
            format!("the gate of {} was inconclusive at attempt {attempt} ({why}) and ran again", name(node))
        }
        Fact::AskOpened { kind: AskKind::Plan, shortfall: None, .. } => {
            "the plan waits for approval".to_owned()
        }
        Fact::AskOpened { node, kind: AskKind::Escalation, reason, shortfall: None, .. } => {
            format!("{} waits for a person: {}", name(node), reason_words(*reason))
        }
        Fact::AskOpened { node, kind, reason, shortfall, .. } => {
            let short =
                shortfall.as_ref().map(|short| format!(": {}", shortfall_line(short))).unwrap_or_default();
            format!("{} waits for a person: {} ({}){short}", name(node), kind.as_str(), reason_words(*reason))
        }
        Fact::AskAnswered { node, by, note, kind: AskKind::Choice, option: Some(option), .. } => {
            format!("{by} chose \"{option}\" at {}{}", name(node), quoted(note.as_deref()))
        }
        Fact::AskAnswered { answer, by, note, kind: AskKind::Plan, .. }
            if matches!(answer.as_str(), "approve" | "reject") =>
        {
            let verb = if answer == "approve" { "approved" } else { "rejected" };
            format!("{by} {verb} the plan{}", quoted(note.as_deref()))
        }
        Fact::AskAnswered { node, answer, by, note, kind, .. } => {
            let note = quoted(note.as_deref());
            format!("{by} answered the {} about {} with {answer}{note}", kind.as_str(), name(node))
        }
        Fact::PlanEscalated { node, reason, message } => {
            format!("{} was escalated: {}{}", name(node), reason_words(*reason), quoted(message.as_deref()))
        }
        Fact::PaceChanged { node, to: Level::Primary, responder, .. } => {
            format!("{} is the {responder}'s again", name(node))
        }
        Fact::PaceChanged { node, to, responder: Responder::Human, reason, .. } => {
            format!("{} went to a person, at PACE level {to}: {}", name(node), reason_words(*reason))
        }
        Fact::PaceChanged { node, to, responder: Responder::Role(role), reason, .. } => {
            format!("{} went to the {role}, at PACE level {to}: {}", name(node), reason_words(*reason))
        }
        Fact::BudgetNoticed { percent } => format!("{percent} % of the budget is used"),
        Fact::PlanExpired { turns: Some(turns), .. } => format!("nothing made progress for {turns} turns"),
        Fact::PlanExpired { seconds, turns: None } => format!("nothing moved for {seconds} s"),
        Fact::NodeReopened { node, by, note } => {
            format!("{by} has {} done again{}", name(node), quoted(note.as_deref()))
        }
        Fact::PlanPaused { node: Some(node), .. } => {
            format!("the run waits for another revision, asked for at {}", name(node))
        }
        Fact::PlanPaused { node: None, by, note } => {
            let by = by.as_ref().map_or("a person", Actor::as_str);
            format!("{by} paused the run{}", quoted(note.as_deref()))
        }
        Fact::PlanCompleted { settled } => format!("the run is done: {}", outcomes_line(*settled)),
        Fact::PlanFailed { node, end: End::Aborted } => format!("a person ended the run at {}", name(node)),
        Fact::PlanFailed { node, .. } => format!("the run failed at {}", name(node)),
        Fact::PlanCancelled { by, note } => format!("{by} cancelled the run{}", quoted(note.as_deref())),
    }
}

/// Says that the facts beside it tell people the same: what they read leaves this one out.
pub fn is_echo(graph: &Graph, fact: &Fact) -> bool {
    // The sentence before it names the person who approved, and the one after it the first step.
    if let Fact::NodeSettled { node, outcome: Outcome::Passed, .. } = fact {
        return is_start(graph, node);
    }
    let Fact::EdgeFollowed { to, signal, choosing, .. } = fact else {
        // The ask that follows says why a person is asked, as does the level of PACE where a role goes on.
        return matches!(fact, Fact::PlanEscalated { message: None, .. });
    };
    let is_told_next = |target: &Node| match &target.kind {
        NodeKind::Escalate { reason, .. } => reason.is_none() && *signal == Signal::Exhausted,
        NodeKind::Exit { .. } => true,
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Call(_)
        | NodeKind::Decision(_)
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Join(_) => false,
    };
    let had_others = |choosing: &Choosing| choosing.by != Decider::Outcome || choosing.tried.len() > 2;
    graph.node(to).is_some_and(is_told_next) && !choosing.as_deref().is_some_and(had_others)
}

/// Says that the plan of a node runs, and as which run.
pub fn sub_plan_began(graph: &Graph, node: &NodeId, run: &str) -> String {
    format!("the plan of {} runs as {run}", node_name(graph, node))
}

fn is_start(graph: &Graph, node: &NodeId) -> bool {
    graph.node(node).is_some_and(|node| node.kind == NodeKind::Start)
}

fn edge_followed(
    graph: &Graph,
    from: &NodeId,
    to: &NodeId,
    signal: Signal,
    choosing: Option<&Choosing>,
) -> String {
    let target = graph.node(to).map(|node| &node.kind);
    let reason = if let Some(NodeKind::Escalate { reason, .. }) = target { reason.as_deref() } else { None };
    let decides = graph.node(from).filter(|node| node.decision_description() != Some(node.title.as_str()));
    let decides =
        decides.and_then(Node::decision_description).map(|what| format!(" ({what})")).unwrap_or_default();
    if graph.node(from).is_some_and(|node| matches!(node.kind, NodeKind::Fork(_))) {
        return format!(
            "the run branched at {} and went to {}",
            node_name(graph, from),
            node_name(graph, to)
        );
    }
    // The way back of an unmet goal is an edge that the graph lacks; the node it leaves is the last one before the exit.
    let is_of_goal = graph.goals().iter().any(|goal| goal.retry.as_ref() == Some(to));
    if is_of_goal && !graph.edges_from(from).iter().any(|edge| edge.to == *to) {
        return format!("a goal of the run was not met, so the run went to {}", node_name(graph, to));
    }
    let signal = if is_start(graph, from) { "is approved" } else { signal_words(signal) };
    format!(
        "{}{decides} {signal}, so the run went to {}{}{}",
        node_name(graph, from),
        node_name(graph, to),
        quoted(reason),
        choosing.map(choosing_words).unwrap_or_default()
    )
}

fn nth(number: u16) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

fn verdict_verb(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::TimedOut => "timed out",
        Verdict::Tampered => "found protected files touched",
    }
}

fn rehearsal_words(showed: RehearsalResult) -> &'static str {
    match showed {
        RehearsalResult::Red => "it can fail, as it should",
        RehearsalResult::Green => "its pass will prove nothing",
        RehearsalResult::Tampered => "whether it can fail is unknown",
    }
}

fn choosing_words(choosing: &Choosing) -> String {
    let decided = match choosing.by {
        Decider::Condition => "its condition held",
        Decider::Outcome => return String::new(),
        Decider::Label => "its label was preferred",
        Decider::Suggestion => "the worker suggested it",
        Decider::Weight => "only weight and name decided",
    };
    format!(" ({decided})")
}

fn signal_words(signal: Signal) -> &'static str {
    match signal {
        Signal::Success => "counts as met",
        Signal::Retry => "failed with attempts left",
        Signal::Exhausted => "has no attempt left",
    }
}

fn quoted(note: Option<&str>) -> String {
    note.filter(|note| !note.is_empty()).map(|note| format!(": \"{note}\"")).unwrap_or_default()
}
