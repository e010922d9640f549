//! Pure pictures of a run for people: one sentence for each fact, one line for each failure.

mod branches;
mod choice;
mod context;
mod parallel;
mod printed;
mod salute;
mod so_far;
mod traversal;
mod waiting;

pub use branches::{Branch, Joining, Stands, open_joins};
pub use choice::{Choice, EdgeResult, Looked, choice, decider_word};
pub use context::{Form, Manual, Scene, Verify, context};
pub use parallel::{SideBySide, parallel_branches};
pub use printed::{strip_terminal_sequences, telling_line};
pub use salute::{Activity, Duty, Equipment, LiveStep, Location, Past, Salute, Size, Times, Who, salute};
pub use so_far::{so_far, so_far_facts};
pub use traversal::{PATH_MAX, Traversal, Visited, traversal};
pub use waiting::steps_waiting;

use crate::ask::{AskKind, Reason};
use crate::budget::{BudgetPart, DayScope, Shortfall};
use crate::choosing::{Choosing, Decider};
use crate::contract::{Contract, Ending, RehearsalResult, Tampering, TestCount, Verdict};
use crate::effect::Purpose;
use crate::event::Overrun;
use crate::fact::Fact;
use crate::failure::{Failing, Failure};
use crate::graph::{Graph, Node, NodeKind, Signal};
use crate::ids::{Actor, NodeId};
use crate::outcome::{End, Outcome, Outcomes};
use crate::pace::{Level, Responder};

/// Names a node as people do: `step 2 "Write the fix"`.
pub fn node_name(graph: &Graph, id: &NodeId) -> String {
    match graph.node(id) {
        None => format!("node {id}"),
        Some(node) => match &node.kind {
            NodeKind::Start => "the plan".to_owned(),
            NodeKind::Escalate { .. } => "a person".to_owned(),
            NodeKind::Exit { success: true } => "done".to_owned(),
            NodeKind::Exit { success: false } => "failed".to_owned(),
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Join(_) => match node.step() {
                Some(step) => format!("step {step} \"{}\"", node.title),
                None => format!("{} \"{}\"", kind_word(&node.kind), node.title),
            },
        },
    }
}

/// Returns the word for what a node does.
pub fn kind_word(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Start => "start",
        NodeKind::Task(_) => "task",
        NodeKind::Call(_) => "call",
        NodeKind::Decision(_) => "decision",
        NodeKind::Human(_) => "human",
        NodeKind::Checkpoint => "checkpoint",
        NodeKind::Fork(_) => "fork",
        NodeKind::Join(_) => "join",
        NodeKind::SubPlan(_) => "sub-plan",
        NodeKind::Escalate { .. } => "escalate",
        NodeKind::Exit { .. } => "exit",
    }
}

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
                given.word(),
                asked.word()
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
            format!("{} decided {way} ({})", name(node), contract_line(*ending, &[]))
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
        Fact::SubPlanBegan { node, run } => format!("the plan of {} runs as {run}", name(node)),
        Fact::SubPlanEnded { node, name: run, end, .. } => {
            format!("{run}, the run of {}, {}", name(node), end_words(*end))
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
                    check.words()
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
            let line = contract_line(*ending, tampered);
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
            format!("{} {}{by}{}", name(node), outcome.word(), quoted(note.as_deref()))
        }
        Fact::NodeResting { node, attempt, deliveries, message, .. } => {
            format!(
                "attempt {attempt} of {} could not be worked on ({message}); delivery {deliveries} was lost",
                name(node)
            )
        }
        Fact::NodeInterrupted { node, attempt, .. } => {
            format!(
                "attempt {attempt} of {} was interrupted because planctl stopped, and was handed out again",
                name(node)
            )
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
            format!("{} waits for a person: {} ({}){short}", name(node), kind.word(), reason_words(*reason))
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
            format!("{by} answered the {} about {} with {answer}{note}", kind.word(), name(node))
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
    let signal = if is_start(graph, from) { "is approved" } else { signal_words(signal) };
    format!(
        "{}{decides} {signal}, so the run went to {}{}{}",
        node_name(graph, from),
        node_name(graph, to),
        quoted(reason),
        choosing.map(choosing_words).unwrap_or_default()
    )
}

/// Says in one line what a contract asks for.
pub fn contract_words(contract: &Contract) -> String {
    let command = (!contract.command.is_empty())
        .then(|| format!("`{}` exits with {}", first_line(&contract.command), contract.expect));
    let tests = contract.min_tests.map(|least| format!("{least} tests pass by its reports"));
    let judge = contract.judge.as_deref().map(|judge| format!("the judge {} says yes", judge.by));
    command.into_iter().chain(tests).chain(judge).collect::<Vec<_>>().join(", and ")
}

/// Returns the first line of a command, with a mark where there are more.
fn first_line(command: &str) -> String {
    let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{first}{more}")
}

/// The remark on a pass whose contract passed before the work, too; fits after "passed, but".
pub const VACUOUS: &str = "its contract passed before the work too, so this proves nothing";

/// Says in one line how an attempt failed: `contract exit 1 (denied: Bash(make))`.
pub fn failed_line(failure: &Failure) -> String {
    let line = failing_line(&failure.what);
    match failure.denied.as_slice() {
        [] => line,
        denied => format!("{line} (denied: {})", denied.join(", ")),
    }
}

/// Says in one line what failed: `contract exit 1`.
pub fn failing_line(failing: &Failing) -> String {
    match failing {
        Failing::Contract { ending, tampered, .. } => contract_line(*ending, tampered),
        Failing::NotRed { ending, tampered, .. } => {
            format!("before the work: {}", contract_line(*ending, tampered))
        }
        Failing::Unconfirmed { by, note } => {
            format!("{by} says that it is not done{}", quoted(note.as_deref()))
        }
        Failing::Unobserved { message } => format!("what was observed does not suffice: {message}"),
        Failing::TooFewTests { tests: TestCount { passed: 0, least } } => {
            format!("its reports show no test that passed, and {least} have to")
        }
        Failing::TooFewTests { tests: TestCount { passed, least } } => {
            format!("its reports show {passed} tests that passed, and {least} have to")
        }
        Failing::Judged { judgement } => format!("the judge {} says no: {}", judgement.by, judgement.reason),
        Failing::Overran { past: Overrun::Deadline } => "the work ran past its deadline".to_owned(),
        Failing::Overran { past: Overrun::Silence } => "the work was silent for too long".to_owned(),
        Failing::Undelivered { message } => format!("no worker could run it: {message}"),
        Failing::Permission { message } => format!("the worker lacks a permission: {message}"),
        Failing::Inconclusive { message } => format!("the gate was inconclusive: {message}"),
        Failing::SubPlan { name, end: End::Done } => {
            format!("its run {name} is done, but its expected effect does not hold")
        }
        Failing::SubPlan { name, end } => format!("its run {name} {}", end_words(*end)),
        Failing::Conflict { branch, files, .. } => {
            let what = match branch {
                Some(branch) => format!("branch {} conflicts with those before it", branch + 1),
                None => "the workspace was changed meanwhile and conflicts with the branches".to_owned(),
            };
            format!("{what}: {}", files.join(", "))
        }
    }
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

fn end_words(end: End) -> &'static str {
    match end {
        End::Done => "is done",
        End::Failed => "failed",
        End::Aborted => "was aborted",
        End::Cancelled => "was cancelled",
    }
}

/// Says in one line how an evaluation of a contract ended: `contract exit 1`.
fn contract_line(ending: Ending, tampered: &[Tampering]) -> String {
    if !tampered.is_empty() {
        let files: Vec<String> =
            tampered.iter().map(|file| format!("{} {}", file.path, file.change.word())).collect();
        return format!("protected files were touched: {}", files.join(", "));
    }
    match ending {
        Ending::Exited { code } => format!("contract exit {code}"),
        Ending::Signalled { signal } => format!("contract ended by signal {signal}"),
        Ending::TimedOut => "contract timed out".to_owned(),
        Ending::OverLimit { resource, max } => {
            format!("contract ended by planctl: {}", resource.exceeded(max))
        }
        Ending::NotRun => "contract not run".to_owned(),
    }
}

/// Says in one line what a budget lacks (P-54).
pub fn shortfall_line(short: &Shortfall) -> String {
    let amount = |value: u64| match short.part {
        BudgetPart::Tokens => format!("{value} tokens"),
        BudgetPart::MicroUsd => {
            format!("${}.{:02}", value / 1_000_000, (value % 1_000_000).div_ceil(10_000).min(99))
        }
        BudgetPart::Seconds => format!("{value} s"),
    };
    let steps = match short.steps_remaining {
        1 => "1 step".to_owned(),
        several => format!("{several} steps"),
    };
    if let Some(day) = short.day {
        let whose = match day.of {
            DayScope::Project => "this project",
            DayScope::Host => "this machine",
        };
        return format!(
            "today's budget of {whose} is used up ({} of {}); the rest of the plan, {steps}, needs about {}",
            amount(short.spent),
            amount(short.limit),
            amount(short.estimate)
        );
    }
    format!(
        "budget exceeded, {steps} remaining, need {} more ({} of {} used)",
        amount(short.needed()),
        amount(short.spent),
        amount(short.limit)
    )
}

/// Counts outcomes in one line: `4 passed, 1 waived`.
pub fn outcomes_line(settled: Outcomes) -> String {
    let parts = [
        (settled.passed, "passed"),
        (settled.skipped, "skipped"),
        (settled.waived, "waived"),
        (settled.warned, "warned"),
        (settled.failed, "failed"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if said.is_empty() { "no step".to_owned() } else { said.join(", ") }
}

/// Says why an ask came up, in words for people.
pub fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Submitted => "may this plan run?",
        Reason::Exhausted => "its attempts are used up",
        Reason::NoEdge => "no edge fits the outcome",
        Reason::Undelivered => "no worker could run it, in several deliveries",
        Reason::Permission => "the worker lacks a permission",
        Reason::Interrupted => "it was interrupted repeatedly, because planctl stopped",
        Reason::Inconclusive => "the gate was inconclusive repeatedly",
        Reason::NotRed => "its contract was not red before the work",
        Reason::Stale => "the run stood still for too long",
        Reason::AttemptsLimit => "the run has reached its limit of attempts",
        Reason::VisitsLimit => "its visits are used up",
        Reason::Budget => "the budget does not suffice",
        Reason::Asked => "the worker has a question",
        Reason::Reentered => "it is entered again",
        Reason::Planned => "the plan asks a person here",
        Reason::SameFailure => "it failed repeatedly in the same way",
        Reason::Proposed => "the worker proposes a further step",
        Reason::Conflict => "the changes of its branches conflict",
        Reason::Effect => "a person has to allow it",
        Reason::Prompt => "a person has to approve the prompt to its judge",
        Reason::Day => "the budget of the day is used up",
    }
}

/// Names an ask's kind with its article: `an escalation`.
pub fn ask_name(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Plan => "a plan approval",
        AskKind::Escalation => "an escalation",
        AskKind::Budget => "a budget ask",
        AskKind::Question => "a question",
        AskKind::Choice => "a choice",
        AskKind::Insertion => "a proposed step",
        AskKind::Effect => "an effect approval",
        AskKind::Prompt => "a prompt approval",
        AskKind::Synthesis => "a synthesis approval",
        AskKind::Day => "an ask about the day's budget",
    }
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
