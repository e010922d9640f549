//! Which edge each outcome takes, over all sets of edges that a step may have (G-18, X-07).

use std::collections::BTreeMap;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, At, Attempt, Budget, ClockEvent, Decision, Edge, Effect, Event,
    Fact, Graph, GraphParts, HarnessEvent, HarnessResult, HumanEvent, Limits, NodeKind, On, Priority, Run,
    RunId, Timestamp, advance,
};

use super::plan::{digest, plain, task};
use super::speech::{evidence, report};

const ALL: [On; 5] = [On::Success, On::Fail, On::Retry, On::Exhaust, On::Always];

#[test]
fn g18_each_outcome_takes_the_first_edge_of_its_list_over_all_sets_of_edges() {
    let mut tried = 0;
    for bits in 1..32_u32 {
        let set: Vec<On> = (0..5).filter(|bit| bits & (1 << bit) != 0).map(|bit| ALL[bit as usize]).collect();
        // A success leaves by `success`, else `always`, else a person is asked.
        let on_success = first(&set, &[On::Success, On::Always]);
        assert_eq!(taken(&set, 0, 0), on_success, "a success with {set:?}");
        // With retries left only `retry` leads away; else the step is tried again.
        assert_eq!(taken(&set, 1, 1), first(&set, &[On::Retry]), "a failure with a retry left and {set:?}");
        // Afterwards `exhaust`, else `fail`, else `always`, else a person is asked.
        let on_exhaustion = first(&set, &[On::Exhaust, On::Fail, On::Always]);
        assert_eq!(taken(&set, 0, 1), on_exhaustion, "the last failure with {set:?}");
        tried += 1;
    }
    assert_eq!(
        tried, 31,
        "a step without any edge is refused by the graph: no path leads from it to an exit"
    );
}

fn first(set: &[On], list: &[On]) -> Option<On> {
    list.iter().copied().find(|on| set.contains(on))
}

/// Lets the step `a` come to one verdict and returns the edge that was taken from it.
fn taken(set: &[On], max_retries: u16, code: i32) -> Option<On> {
    let graph = graph(set, max_retries);
    let mut run = Run::new(RunId::from_u128(3), &graph, Timestamp::from_micros(0));
    let mut ask = None;
    let mut hear = |event: Event| {
        let done = advance(&graph, &run, &event, Timestamp::from_micros(0)).unwrap();
        run = done.run;
        (done.facts, done.effects)
    };
    let human = |decision| Event::Human(HumanEvent { by: Actor::from("the owner"), note: None, decision });
    for effect in hear(human(Decision::Submit)).1 {
        if let Effect::Dispatch(item) = effect {
            ask = Some(item.id);
        }
    }
    hear(human(Decision::Answer { item: ask.unwrap(), answer: Answer::Approve }));
    hear(Event::Clock(ClockEvent::Admitted));
    let at = At { node: "a".into(), visit: 1, attempt: Attempt::FIRST };
    hear(Event::Agent(AgentEvent::new(at.clone(), AgentSaid::Reported(report()))));
    let found = HarnessResult::Evidence(Box::new(evidence(digest("a", 1), code)));
    let (facts, _) = hear(Event::Harness(HarnessEvent { at, found }));
    let followed: Vec<On> = facts
        .iter()
        .filter_map(|fact| if let Fact::EdgeFollowed { on, .. } = fact { Some(*on) } else { None })
        .collect();
    let escalated = facts.iter().any(|fact| matches!(fact, Fact::PlanEscalated { .. }));
    let retried = facts.iter().any(|fact| matches!(fact, Fact::RetryTriggered { .. }));
    assert_eq!(
        followed.is_empty(),
        escalated || retried,
        "without an edge the step asks or is tried again: {facts:?}"
    );
    followed.first().copied()
}

/// A step whose edges each lead to a step of their own.
fn graph(set: &[On], max_retries: u16) -> Graph {
    let edge = |from: &str, to: &str, on| Edge::new(from, to, on);
    let step = |id: &str, max_retries| plain(id, NodeKind::Task(Box::new(task(id, 1, max_retries))));
    let mut nodes = vec![
        plain("start", NodeKind::Start),
        step("a", max_retries),
        plain("done", NodeKind::Exit { success: true }),
    ];
    let mut edges = vec![edge("start", "a", On::Success)];
    for on in set {
        let to = format!("{on:?}");
        nodes.push(step(&to, 0));
        edges.push(edge("a", &to, *on));
        edges.push(edge(&to, "done", On::Success));
    }
    let (budget, limits) = (Budget::default(), Limits::default());
    let parts = GraphParts {
        title: "edges".to_owned(),
        start: "start".into(),
        nodes,
        edges,
        budget,
        limits,
        priority: Priority::Normal,
        goals: Vec::new(),
        context: BTreeMap::new(),
    };
    Graph::new(parts).unwrap()
}
