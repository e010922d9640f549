//! Plays a compiled graph to its end, with workers and contracts that a test invents: which nodes a run comes to.

use std::collections::BTreeMap;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, AskKind, At, ChildEnd, ClockEvent, Decision, Effect, End, Ending,
    Event, Evidence, Excerpt, Fact, Graph, HarnessEvent, HarnessResult, Hints, HumanEvent, Item, NodeId,
    Outcomes, Purpose, Report, Resources, Run, RunId, RunStatus, Spent, Timestamp, Work, advance,
};

/// Describes how a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// The nodes that were entered, in order.
    pub path: Vec<String>,
    /// `done`, `failed`, or `asks NODE: REASON`.
    pub end: String,
}

/// Plays a run: `exit` says how the contract of an attempt ends, `hints` what its worker says of the way on.
pub fn walk(
    graph: &Graph,
    exit: &dyn Fn(&NodeId, u16) -> i32,
    hints: &dyn Fn(&NodeId, u16) -> Option<Hints>,
) -> Walk {
    let now = Timestamp::from_micros(0);
    let mut run = Run::new(RunId::from_u128(1), graph, now);
    let (mut open, mut path): (Vec<Item>, Vec<String>) = (Vec::new(), Vec::new());
    let mut next = vec![human(Decision::Submit)];
    for _ in 0..5_000 {
        let Some(event) = next.pop() else { break };
        let done = advance(graph, &run, &event, now).expect("the event fits the run");
        run = done.run;
        for fact in &done.facts {
            if let Fact::NodeEntered { node, .. } = fact {
                path.push(node.as_str().to_owned());
            }
        }
        for effect in done.effects {
            match effect {
                Effect::Dispatch(item) => open.push(*item),
                Effect::Withdraw(id) => open.retain(|item| item.id != id),
                Effect::Arm { .. } | Effect::Disarm(_) => {}
            }
        }
        match run.head.status {
            RunStatus::Queued { .. } => next.push(Event::Clock(ClockEvent::Admitted)),
            RunStatus::Ended { end } => {
                let end = if end == End::Done { "done" } else { "failed" };
                return Walk { path, end: end.to_owned() };
            }
            RunStatus::New | RunStatus::Awaiting | RunStatus::Active | RunStatus::Paused => {}
        }
        if next.is_empty() && !open.is_empty() {
            let item = open.remove(0);
            match said(graph, &item, exit, hints) {
                Ok(event) => next.push(event),
                Err(asks) => return Walk { path, end: asks },
            }
        }
    }
    panic!("a run comes to an end: {path:?}");
}

fn human(decision: Decision) -> Event {
    Event::Human(HumanEvent { by: Actor::from("ada"), note: None, decision })
}

fn said(
    graph: &Graph,
    item: &Item,
    exit: &dyn Fn(&NodeId, u16) -> i32,
    hints: &dyn Fn(&NodeId, u16) -> Option<Hints>,
) -> Result<Event, String> {
    let at: At = item.at.clone();
    let attempt = at.attempt.number();
    match &item.work {
        Work::Agent { .. } => {
            let report = Report {
                text: Excerpt::default(),
                gave_up: false,
                ending: None,
                duration: std::time::Duration::ZERO,
                usage: None,
                hints: hints(&at.node, attempt).map(Box::new),
                circumstances: None,
                observation: None,
            };
            Ok(Event::Agent(AgentEvent::new(at, AgentSaid::Reported(report))))
        }
        Work::Harness { purpose: Purpose::SubPlan } => {
            let is_done = exit(&at.node, attempt) == 0;
            let found = HarnessResult::Ended(Box::new(ChildEnd {
                run: RunId::from_u128(2),
                name: "child-1".to_owned(),
                end: if is_done { End::Done } else { End::Failed },
                settled: Outcomes::default(),
                spent: Spent::default(),
            }));
            Ok(Event::Harness(HarnessEvent { at, found }))
        }
        Work::Harness { .. } => {
            let contract = graph.gated(&at.node).expect("a gate has a contract").contract;
            let evidence = Evidence {
                contract: contract.digest.clone(),
                ending: Ending::Exited { code: exit(&at.node, attempt) },
                duration: std::time::Duration::ZERO,
                resources: Resources::default(),
                stdout: Excerpt::default(),
                stderr: Excerpt::default(),
                isolation: Default::default(),
                git_head: None,
                protected: BTreeMap::new(),
                tampered: Vec::new(),
                stragglers: 0,
                tests: None,
                judgement: None,
            };
            Ok(Event::Harness(HarnessEvent { at, found: HarnessResult::Evidence(Box::new(evidence)) }))
        }
        Work::Human { ask } if ask.kind == AskKind::Plan => {
            Ok(human(Decision::Answer { item: item.id.clone(), answer: Answer::Approve }))
        }
        Work::Human { ask } => Err(format!("asks {}: {}", at.node, ask.reason.as_str())),
    }
}
