//! Where a run is on its way, put together from its records and the newest lines of its history.

use planctl_engine::{Fact, Graph, Run, Verdict};
use planctl_store::{HistoryLine, RunRow, Said};
use planctl_view::PATH_MAX;

use planctl_api::wire::{CheckpointView, SpentView, TraversalEvent, TraversalView, VisitedView, moment, usd};

/// The most events that are listed (G-36).
const EVENTS_MAX: usize = 50;

/// Stands for the outcome of a node that was entered and is not over (G-30).
const PENDING: &str = "pending";

/// Shows the way of a run, which is wholly loaded; of its history, the first lines and the newest.
pub(crate) fn view(
    row: &RunRow,
    graph: &Graph,
    run: &Run,
    history: (&[HistoryLine], &[HistoryLine]),
) -> TraversalView {
    let (first, newest) = history;
    let way = planctl_view::traversal(graph, run, &facts(newest));
    let turn = run.head.transitions;
    let mut events = events(row, graph, newest, turn);
    let is_move = |event: &&TraversalEvent| matches!(event.kind.as_str(), "node_entered" | "edge_followed");
    let moved = events.iter().rev().find(is_move).map_or(0, |event| event.turn);
    let since = turn.saturating_sub(moved);
    events.drain(..events.len().saturating_sub(EVENTS_MAX));
    let step = way.current.as_ref().and_then(|id| graph.node(id)?.step());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let visited = way.visited.iter().map(|(id, node)| {
        let outcome = Some(node.outcome.unwrap_or(PENDING).to_owned());
        let visited = VisitedView { outcome, attempts: node.attempts, visits: node.visits };
        (id.as_str().to_owned(), visited)
    });
    TraversalView {
        run: row.name.clone(),
        plan_id: row.plan_path.clone(),
        plan_name: graph.title().to_owned(),
        mode: if way.is_graph { "graph" } else { "linear" }.to_owned(),
        current_node: way.current.as_ref().map(|id| id.as_str().to_owned()),
        visited: visited.collect(),
        path: way.path.iter().map(|id| id.as_str().to_owned()).collect(),
        total_nodes: count(way.total),
        // Nothing is done at the start.
        completed_nodes: count(way.completed.iter().filter(|id| *id != graph.start()).count()),
        started_turn: started(first),
        turn,
        turns_since_transition: since,
        stale_after_turns: graph.limits().stale_after_turns,
        stale_after_seconds: graph.limits().stale_after.map(|limit| limit.as_secs()),
        turns_since_progress: graph.limits().stale_after_turns.map_or(since, |_| run.head.turns),
        current_step: step.map(|step| step.saturating_sub(1)),
        total_steps: graph.task_count(),
        events,
    }
}

/// Shows what a run is resumed from.
pub(crate) fn checkpoint(row: &RunRow, graph: &Graph, run: &Run, newest: &[HistoryLine]) -> CheckpointView {
    let facts = facts(newest);
    let way = planctl_view::traversal(graph, run, &facts);
    let names = |ids: &[planctl_engine::NodeId]| ids.iter().map(|id| id.as_str().to_owned()).collect();
    let sentences = facts.iter().map(|fact| planctl_view::sentence(graph, fact));
    let mut logs: Vec<String> = sentences.collect();
    logs.drain(..logs.len().saturating_sub(PATH_MAX));
    let of_nodes = way.visited.iter().map(|(id, node)| (id.as_str().to_owned(), node));
    let spent = run.head.spent;
    CheckpointView {
        run: row.name.clone(),
        timestamp: moment(row.read_at),
        graph: row.revision.as_str().to_owned(),
        current_node: way.last.as_ref().map(|id| id.as_str().to_owned()),
        completed_nodes: names(&way.completed),
        node_outcomes: of_nodes
            .clone()
            .filter_map(|(id, node)| Some((id, node.outcome?.to_owned())))
            .collect(),
        node_retries: of_nodes.clone().map(|(id, node)| (id, node.failed)).collect(),
        node_visits: of_nodes.map(|(id, node)| (id, node.visits)).collect(),
        restarts: run.head.restarts,
        spent: SpentView {
            tokens: spent.tokens,
            cached_tokens: None,
            estimated_tokens: None,
            usd: usd(spent.micro_usd),
            estimated_usd: None,
            seconds: row.time_spent().as_secs_f64(),
            unmetered: spent.unmetered,
        },
        context: way.context,
        logs,
    }
}

fn facts(lines: &[HistoryLine]) -> Vec<Fact> {
    let fact = |line: &HistoryLine| match &line.said {
        Said::Fact(fact) => Some((**fact).clone()),
        Said::Input(_) => None,
    };
    lines.iter().filter_map(fact).collect()
}

/// Returns the turn at which the run began, where it has.
fn started(first: &[HistoryLine]) -> Option<u32> {
    let mut turn = 0;
    for line in first {
        match &line.said {
            Said::Input(_) => turn += 1,
            Said::Fact(fact) if matches!(**fact, Fact::PlanActivated { .. }) => return Some(turn),
            Said::Fact(_) => {}
        }
    }
    None
}

/// Numbers the newest facts by their turns, from the last one backwards.
fn events(row: &RunRow, graph: &Graph, newest: &[HistoryLine], last: u32) -> Vec<TraversalEvent> {
    let mut turn = last;
    let mut events: Vec<TraversalEvent> = Vec::new();
    for line in newest.iter().rev() {
        match &line.said {
            Said::Input(_) => turn = turn.saturating_sub(1),
            Said::Fact(fact) => events.push(event(row, graph, fact, turn)),
        }
    }
    events.reverse();
    events
}

fn event(row: &RunRow, graph: &Graph, fact: &Fact, turn: u32) -> TraversalEvent {
    let mut event = TraversalEvent {
        kind: fact.name().to_owned(),
        turn,
        node: fact.node().map(|node| node.as_str().to_owned()),
        plan: None,
        from: None,
        to: None,
        condition: None,
        outcome: None,
    };
    if let Fact::EdgeFollowed { from, to, on, .. } = fact {
        let word = on.as_str();
        let condition = if word == "always" { word.to_owned() } else { format!("on_{word}") };
        event.node = None;
        event.from = Some(from.as_str().to_owned());
        event.to = Some(to.as_str().to_owned());
        event.condition = Some(condition);
    } else if let Fact::NodeVerified { verdict, .. } = fact {
        event.outcome = Some(if *verdict == Verdict::Passed { "success" } else { "fail" }.to_owned());
    } else if let Fact::NodeObserved { refuted, .. } = fact {
        event.outcome = Some(if refuted.is_none() { "success" } else { "fail" }.to_owned());
    } else if let Fact::NodeSettled { outcome, .. } = fact {
        event.outcome = Some(outcome.status_word().to_owned());
    } else if let Fact::PlanActivated { .. } = fact {
        event.node = Some(graph.start().as_str().to_owned());
        event.plan = Some(row.plan_path.clone());
    }
    event
}
