//! One step from submission to done, so that the first path through the engine is seen to hold.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, Budget, ClockEvent, Contract, Decision, Digest, Edge, Effect, End,
    Ending, Event, Evidence, Excerpt, Found, Graph, GraphParts, HarnessEvent, HumanEvent, Limits, Node,
    NodeKind, On, Outcome, Priority, Report, Resources, Role, Run, RunId, RunStatus, Task, Timestamp, Work,
    WorkKind, advance,
};

fn graph() -> Graph {
    let task = Task {
        step: 1,
        role: Role::new("coder"),
        work: WorkKind::Code,
        prompt: "do it".to_owned(),
        subscriptions: Vec::new(),
        contract: Contract {
            command: "true".to_owned(),
            digest: Digest::new("sha256:a"),
            expect: 0,
            timeout: Duration::from_secs(60),
            guard: false,
        },
        max_retries: 1,
        lapse: Outcome::Failed,
        work_timeout: Duration::from_secs(600),
        protects: Vec::new(),
        contract_files: BTreeSet::new(),
        own_files: BTreeSet::new(),
    };
    let node = |id: &str, kind| Node { id: id.into(), title: id.to_owned(), kind, max_visits: 10 };
    let edge = |from: &str, to: &str, on| Edge { from: from.into(), to: to.into(), on };
    Graph::new(GraphParts {
        title: "one".to_owned(),
        start: "start".into(),
        nodes: vec![
            node("start", NodeKind::Start),
            node("1", NodeKind::Task(Box::new(task))),
            node("done", NodeKind::Exit { success: true }),
        ],
        edges: vec![edge("start", "1", On::Success), edge("1", "done", On::Success)],
        budget: Budget::default(),
        limits: Limits::default(),
        priority: Priority::Normal,
    })
    .unwrap()
}

fn evidence(code: i32) -> Evidence {
    Evidence {
        contract: Digest::new("sha256:a"),
        ending: Ending::Exited { code },
        duration: Duration::from_millis(1),
        resources: Resources::default(),
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        isolation: 0,
        git_head: None,
        protected: BTreeMap::new(),
        tampered: Vec::new(),
        stragglers: 0,
    }
}

#[test]
fn one_step_goes_from_submission_to_done_by_its_gate_alone() {
    let graph = graph();
    let now = Timestamp::from_micros(0);
    let mut run = Run::new(RunId::from_u128(7), &graph, now);
    let mut item = None;
    let human = |decision| Event::Human(HumanEvent { by: Actor::new("the owner"), note: None, decision });
    let mut tell = |event: Event| {
        let done = advance(&graph, &run, &event, now).unwrap();
        for effect in &done.effects {
            if let Effect::Dispatch(sent) = effect {
                item = Some(sent.clone());
            }
        }
        run = done.run;
        (run.clone(), item.clone())
    };
    let (_, ask) = tell(human(Decision::Submit));
    tell(human(Decision::Answer { item: ask.unwrap().id, answer: Answer::Approve }));
    let (_, work) = tell(Event::Clock(ClockEvent::Admitted));
    let work = work.unwrap();
    assert!(matches!(work.work, Work::Agent { .. }));
    let report = Report {
        text: Excerpt::default(),
        gave_up: false,
        ending: None,
        duration: Duration::ZERO,
        usage: None,
    };
    let said = |at| Event::Agent(AgentEvent { at, said: AgentSaid::Reported(report.clone()) });
    let found =
        |at, code| Event::Harness(HarnessEvent { at, found: Found::Evidence(Box::new(evidence(code))) });
    tell(said(work.at.clone()));
    let (_, again) = tell(found(work.at.clone(), 1));
    let again = again.unwrap();
    assert_eq!(again.at.attempt.number(), 2);
    tell(said(again.at.clone()));
    let (run, _) = tell(found(again.at.clone(), 0));
    assert_eq!(run.head.status, RunStatus::Ended { end: End::Done });
    assert_eq!(run.head.settled.passed, 1);
}
