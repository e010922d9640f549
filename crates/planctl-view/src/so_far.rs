//! The run so far, as an agent is told it: a pure function of the graph and the newest facts (DOT F1, F2).

use std::collections::{BTreeMap, VecDeque};

use planctl_engine::{Fact, Fidelity, Graph, Node, NodeId, Outcome, SoFar};

use crate::words::node_name;

/// Returns how many of the newest facts are enough to tell what a fidelity tells; a node takes about four.
pub fn so_far_facts(fidelity: Fidelity) -> u16 {
    detail_of(fidelity).map_or(0, |measure| u16::try_from(measure.nodes * 5).unwrap_or(u16::MAX))
}

/// The most characters of a value, a label or a note.
const VALUE_CHARS_MAX: usize = 200;

/// How much one fidelity tells.
struct Measure {
    nodes: usize,
    has_titles: bool,
    has_attempts: bool,
    has_ways: bool,
    /// The most characters of the summary; a token has about four.
    chars: usize,
}

/// Returns how much is told; nothing of nodes where only the goal is.
fn detail_of(fidelity: Fidelity) -> Option<Measure> {
    let of = |nodes, has_titles, has_attempts, has_ways, chars| {
        Some(Measure { nodes, has_titles, has_attempts, has_ways, chars })
    };
    match fidelity {
        Fidelity::Truncate => None,
        Fidelity::Compact => of(20, false, false, false, 6_000),
        Fidelity::SummaryLow => of(5, true, false, false, 2_400),
        Fidelity::SummaryMedium => of(20, true, true, false, 6_000),
        Fidelity::SummaryHigh | Fidelity::Full => of(60, true, true, true, 12_000),
    }
}

/// A node that is over.
struct Stage<'f> {
    node: &'f NodeId,
    outcome: Outcome,
    attempts: u16,
    note: Option<&'f str>,
    way: Option<&'f str>,
    /// The decision, where the node is one that shows it, and the node to which the run went from it (G-26).
    decided: Option<(&'f str, &'f NodeId)>,
}

/// Writes what an agent is told: goal, what is over, and what conditions can look at. `newest` are the newest facts of the run,
/// as many as [`so_far_facts`] says, in their order.
pub fn so_far(graph: &Graph, run: &str, so_far: &SoFar, newest: &[Fact]) -> String {
    let mut text = String::new();
    if let Some(goal) = graph.context().get("graph.goal") {
        text.push_str(&format!("Goal: {}\n", one_line(goal)));
    }
    let Some(measure) = detail_of(so_far.fidelity) else {
        text.push_str(&format!("Run: {run}\n"));
        return text;
    };
    let mut stages = settled_stages(graph, newest);
    let is_cut = stages.len() > measure.nodes || newest.len() >= usize::from(so_far_facts(so_far.fidelity));
    while stages.len() > measure.nodes {
        stages.pop_front();
    }
    let mut lines: VecDeque<String> = stages.iter().map(|stage| stage_line(graph, stage, &measure)).collect();
    let known = context_lines(&so_far.context);
    let mut left = measure.chars.saturating_sub(text.chars().count() + known.chars().count());
    let mut kept = VecDeque::new();
    while let Some(line) = lines.pop_back() {
        let length = line.chars().count() + 1;
        if length > left {
            break;
        }
        left -= length;
        kept.push_front(line);
    }
    let is_cut = is_cut || kept.len() < stages.len();
    if !kept.is_empty() {
        text.push_str(if is_cut {
            "Over so far, the newest last, older ones left out:\n"
        } else {
            "Over so far:\n"
        });
        for line in kept {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text.push_str(&known);
    text
}

fn context_lines(context: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in context {
        if text.is_empty() {
            text.push_str("Known:\n");
        }
        text.push_str(&format!("- {}: {}\n", one_line(name), one_line(value)));
    }
    text
}

/// Returns the nodes that are over, each once, the one that settled last at the end.
fn settled_stages<'f>(graph: &'f Graph, newest: &'f [Fact]) -> VecDeque<Stage<'f>> {
    let mut stages: Vec<Stage<'f>> = Vec::new();
    let mut attempts: BTreeMap<&NodeId, u16> = BTreeMap::new();
    for fact in newest {
        if let Fact::NodeEntered { node, attempt, .. } | Fact::RetryTriggered { node, attempt, .. } = fact {
            attempts.insert(node, attempt.number());
        } else if let Fact::NodeSettled { node, outcome, note, .. } = fact {
            if graph.node(node).is_some_and(|node| !Node::is_routing(node)) {
                stages.retain(|stage| stage.node != node);
                let attempts = attempts.get(node).copied().unwrap_or(1);
                let note = note.as_deref();
                stages.push(Stage { node, outcome: *outcome, attempts, note, way: None, decided: None });
            }
        } else if let Fact::EdgeFollowed { from, to, .. } = fact
            && let Some(what) = graph.node(from).and_then(Node::decision_description)
        {
            stages.retain(|stage| stage.node != from);
            let decided = Some((what, to));
            stages.push(Stage {
                node: from,
                outcome: Outcome::Passed,
                attempts: 1,
                note: None,
                way: None,
                decided,
            });
        } else if let Fact::EdgeFollowed { from, label: Some(label), .. } = fact {
            if let Some(stage) = stages.iter_mut().rev().find(|stage| stage.node == from) {
                stage.way = Some(label);
            }
        } else if let Fact::EpochBegan { .. } = fact {
            // Results of an earlier epoch ended with it.
            stages.clear();
        }
    }
    stages.into()
}

fn stage_line(graph: &Graph, stage: &Stage<'_>, measure: &Measure) -> String {
    let name = match measure.has_titles {
        true => node_name(graph, stage.node),
        false => stage.node.to_string(),
    };
    if let Some((what, to)) = stage.decided {
        return format!("- {}: {}: went on to {}", one_line(&name), one_line(what), one_line(to.as_str()));
    }
    let mut line = format!("- {}: {}", one_line(&name), stage.outcome.as_str());
    if measure.has_attempts && stage.attempts > 1 {
        line.push_str(&format!(", {} attempts", stage.attempts));
    }
    if measure.has_ways {
        if let Some(way) = stage.way {
            line.push_str(&format!(", went on by \"{}\"", one_line(way)));
        }
        if let Some(note) = stage.note {
            line.push_str(&format!(": {}", one_line(note)));
        }
    }
    line
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
