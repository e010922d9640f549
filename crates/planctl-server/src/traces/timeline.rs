//! The spans of a run as bars for people.

use std::collections::BTreeMap;

use planctl_api::wire::{BarKind, TimelineBar, TimelineLane};
use planctl_engine::{Graph, Node, NodeId, Timestamp};
use planctl_store::{HistoryLine, RunRow};

use super::span::{Span, Value};
use super::spans::RunSpans;

/// Steps over time, and when the first of their bars begins.
pub(crate) struct Timeline {
    pub(crate) from: Timestamp,
    pub(crate) lanes: Vec<TimelineLane>,
}

impl Timeline {
    /// Makes the timeline of lines of a run's history. A bar that is not over by their end is drawn until `until`.
    pub(crate) fn of(run: &RunRow, graph: &Graph, lines: &[HistoryLine], until: Timestamp) -> Timeline {
        let (mut spans, mut over) = (RunSpans::of(run), Vec::new());
        for line in lines {
            spans.add_line(graph, line, &mut over);
        }
        let closed = over.len();
        spans.close_all(graph, until, &mut over);
        let open = over.split_off(closed);
        let bars = over.iter().map(|span| (span, false)).chain(open.iter().map(|span| (span, true)));
        let bars: Vec<_> = bars
            .filter_map(|(span, is_open)| Some((span, kind_of(span)?, node_of(span)?, is_open)))
            .filter(|(_, kind, _, is_open)| *kind != BarKind::Attempt || *is_open)
            .collect();
        let from = bars.iter().map(|(span, ..)| span.began).min().unwrap_or(run.created_at);
        let mut lanes: BTreeMap<NodeId, Vec<TimelineBar>> = BTreeMap::new();
        for (span, kind, node, is_open) in bars {
            lanes.entry(node).or_default().push(bar(span, kind, from, is_open));
        }
        let mut lanes: Vec<_> = lanes.into_iter().map(|(node, bars)| lane(graph, &node, bars)).collect();
        let began = |lane: &TimelineLane| lane.bars.first().map_or(0.0, |bar| bar.from_seconds);
        lanes.sort_by(|a, b| began(a).total_cmp(&began(b)));
        Timeline { from, lanes }
    }
}

/// Arranges the bars of a node. The attempt that is under way is the only one among them; the others are as long as their parts.
fn lane(graph: &Graph, node: &NodeId, bars: Vec<TimelineBar>) -> TimelineLane {
    let (under_way, mut parts): (Vec<_>, Vec<_>) =
        bars.into_iter().partition(|bar| bar.kind == BarKind::Attempt);
    begin_after_answers(&mut parts);
    let mut bars = attempts(&parts);
    // One that has its verdict waits for a person.
    bars.extend(under_way.into_iter().filter(|attempt| attempt.outcome.is_none()));
    bars.extend(parts);
    // A whole attempt stands before its parts, which are drawn over it.
    let is_part = |bar: &TimelineBar| bar.kind != BarKind::Attempt;
    bars.sort_by(|a, b| a.from_seconds.total_cmp(&b.from_seconds).then(is_part(a).cmp(&is_part(b))));
    TimelineLane {
        node: node.as_str().to_owned(),
        number: graph.node(node).and_then(Node::step),
        title: match graph.node(node) {
            Some(_) if node == graph.start() => "The plan's approval".to_owned(),
            Some(node) => node.title.clone(),
            None => planctl_view::node_name(graph, node),
        },
        bars,
    }
}

/// Has no wait for a worker begin before a person's answer that it followed.
fn begin_after_answers(parts: &mut [TimelineBar]) {
    let asks = parts.iter().filter(|part| part.kind == BarKind::Ask);
    let answered: Vec<f64> = asks.map(end_of).collect();
    for wait in parts.iter_mut().filter(|part| part.kind == BarKind::Queued) {
        let end = end_of(wait);
        let within = answered.iter().copied().filter(|at| (wait.from_seconds..end).contains(at));
        if let Some(at) = within.reduce(f64::max) {
            (wait.from_seconds, wait.seconds) = (at, end - at);
        }
    }
}

/// Returns the attempts that parts belong to, each from its first part to its last.
fn attempts(parts: &[TimelineBar]) -> Vec<TimelineBar> {
    let mut attempts: BTreeMap<u32, TimelineBar> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.kind != BarKind::Ask) {
        let Some(number) = part.attempt else { continue };
        let attempt = attempts.entry(number).or_insert_with(|| TimelineBar {
            kind: BarKind::Attempt,
            outcome: None,
            failed: false,
            is_open: false,
            ..part.clone()
        });
        let end = end_of(attempt).max(end_of(part));
        attempt.from_seconds = attempt.from_seconds.min(part.from_seconds);
        attempt.seconds = end - attempt.from_seconds;
        attempt.failed |= part.failed;
    }
    attempts.into_values().collect()
}

fn end_of(bar: &TimelineBar) -> f64 {
    bar.from_seconds + bar.seconds
}

fn bar(span: &Span, kind: BarKind, from: Timestamp, is_open: bool) -> TimelineBar {
    let outcome = match kind {
        BarKind::Attempt => text_of(span, "verdict"),
        BarKind::Work => text_of(span, "outcome"),
        BarKind::Ask => text_of(span, "answer").filter(|_| !is_open),
        BarKind::Gate | BarKind::Rehearsal => span.failed.clone(),
        BarKind::Queued => None,
    };
    TimelineBar {
        kind,
        attempt: number_of(span, "attempt").and_then(|number| u32::try_from(number).ok()),
        from_seconds: span.began.since(from).as_secs_f64(),
        seconds: span.ended.since(span.began).as_secs_f64(),
        outcome,
        failed: span.failed.is_some() && !is_open,
        is_open,
    }
}

/// Returns the kind of bar that a span is. Those of whole runs and of nodes are none: their lanes show them.
fn kind_of(span: &Span) -> Option<BarKind> {
    match span.name.as_str() {
        "attempt" => Some(BarKind::Attempt),
        "claim" => Some(BarKind::Queued),
        "work" => Some(BarKind::Work),
        "contract" | "call" => Some(BarKind::Gate),
        "rehearsal" => Some(BarKind::Rehearsal),
        "ask" => Some(BarKind::Ask),
        _ => None,
    }
}

fn node_of(span: &Span) -> Option<NodeId> {
    text_of(span, "node.id").map(|node| NodeId::new(node.as_str()))
}

fn text_of(span: &Span, name: &str) -> Option<String> {
    span.attributes.iter().find_map(|(known, value)| match value {
        Value::Text(text) if *known == name => Some(text.clone()),
        Value::Text(_) | Value::Number(_) | Value::Amount(_) | Value::Truth(_) => None,
    })
}

fn number_of(span: &Span, name: &str) -> Option<i64> {
    span.attributes.iter().find_map(|(known, value)| match value {
        Value::Number(number) if *known == name => Some(*number),
        Value::Text(_) | Value::Number(_) | Value::Amount(_) | Value::Truth(_) => None,
    })
}
