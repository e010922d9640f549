//! The lines of a run's history as sentences for people.

use planctl_engine::{AgentSaid, Event, Evidence, Excerpt, Graph, HarnessResult, NodeId, Overrun, Verdict};
use planctl_store::{HistoryLine, Said};

use crate::runs::words::{ending_words, evidence_words, quoted};

/// Says what a line of history means; nothing where only planctl needs it, since a fact after it says the same.
pub(super) fn sentence(graph: &Graph, line: &HistoryLine) -> Option<String> {
    match &line.said {
        Said::Fact(fact) if planctl_view::is_echo(graph, fact) => None,
        Said::Fact(fact) => Some(planctl_view::sentence(graph, fact)),
        Said::Input(input) => input_sentence(graph, &input.event),
    }
}

fn input_sentence(graph: &Graph, event: &Event) -> Option<String> {
    let name = |node: &NodeId| planctl_view::node_name(graph, node);
    match event {
        Event::Agent(event) => {
            let who = format!("the worker of {}", name(&event.at.node));
            Some(match &event.said {
                AgentSaid::Reported(report) => {
                    let ending = report.ending.map(|ending| format!(" ({})", ending_words(ending)));
                    let ending = ending.unwrap_or_default();
                    match last_line(&report.text) {
                        Some(said) => format!("{who} said{ending}: {}", quoted(&said)),
                        None => format!("{who} said nothing{ending}"),
                    }
                }
                AgentSaid::Asked { question, .. } => {
                    format!("{who} asks: {}", quoted(question.lines().next().unwrap_or_default()))
                }
                AgentSaid::Overran { past: Overrun::Deadline, .. } => format!("{who} ran past its deadline"),
                AgentSaid::Overran { past: Overrun::Silence, .. } => format!("{who} was silent for too long"),
                AgentSaid::Faulted(fault) => format!("{who} could not work: {}", quoted(&fault.message)),
                AgentSaid::Released => format!("{who} gave its work back"),
            })
        }
        Event::Harness(event) => match &event.found {
            HarnessResult::Evidence(evidence) => {
                let ending = evidence_words(evidence);
                let contract = graph.gated(&event.at.node).map(|gated| gated.contract);
                if let Some(judgement) = evidence.judgement.as_deref() {
                    let said = if judgement.passes { "yes" } else { "no" };
                    let (by, reason) = (&judgement.by, quoted(&judgement.reason));
                    let at = name(&event.at.node);
                    return Some(format!(
                        "the contract of {at} ended: {ending}; the judge {by} says {said}: {reason}"
                    ));
                }
                let has_passed = contract.and_then(|own| own.judge(evidence)) == Some(Verdict::Passed);
                let reason = if has_passed { None } else { telling_line(evidence) };
                let reason = reason.map(|line| format!(" {}", quoted(&line))).unwrap_or_default();
                Some(format!("the contract of {} ended: {ending}{reason}", name(&event.at.node)))
            }
            HarnessResult::Rehearsed(_)
            | HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_)
            | HarnessResult::Nothing(_) => None,
        },
        Event::Human(_) | Event::Clock(_) => None,
    }
}

/// Returns the line of a contract's output that says why it failed.
fn telling_line(evidence: &Evidence) -> Option<String> {
    planctl_view::telling_line(&evidence.stderr.tail, &evidence.stdout.tail)
}

/// Returns the last line that somebody said.
pub(super) fn last_line(text: &Excerpt) -> Option<String> {
    let plain = planctl_view::strip_terminal_sequences(&text.tail);
    plain.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
