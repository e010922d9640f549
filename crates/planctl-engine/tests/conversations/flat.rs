//! A step of a 5,000-step plan touches as many records as a step of a 10-step plan (HOTPATH, DESIGN 12).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, At, Attempt, ClockEvent, Decision, Effect, End, Event, Graph,
    HarnessEvent, HarnessResult, Head, HumanEvent, ItemId, NodeId, Record, Run, RunId, RunStatus, Scope,
    Timestamp, advance, initial_scope,
};

use super::plan;
use super::speech::{evidence, report};

#[test]
fn a_step_of_a_long_plan_touches_no_more_than_a_step_of_a_short_one() {
    let short = Play::new(10).played();
    let long = Play::new(5_000).played();
    assert_eq!(long.head.settled.passed, 5_000);
    assert_eq!(long.most_read, short.most_read, "records read by one event");
    assert_eq!(long.most_written, short.most_written, "records written by one event");
    assert_eq!(long.most_dispatched, 1, "items dispatched by one event");
    assert!(long.most_read <= 2, "an event reads its step and the next, not {}", long.most_read);
}

/// A run of which only the touched records are ever loaded, as the store does it.
struct Play {
    graph: Graph,
    id: RunId,
    head: Head,
    nodes: BTreeMap<NodeId, Record>,
    most_read: usize,
    most_written: usize,
    most_dispatched: usize,
}

impl Play {
    fn new(steps: u32) -> Play {
        let (graph, id) = (linear(steps), RunId::from_u128(9));
        let head = Run::new(id, &graph, Timestamp::from_micros(0)).head;
        Play { graph, id, head, nodes: BTreeMap::new(), most_read: 0, most_written: 0, most_dispatched: 0 }
    }

    fn played(mut self) -> Play {
        let human =
            |decision| Event::Human(HumanEvent { by: Actor::from("the owner"), note: None, decision });
        self.hear(human(Decision::Submit));
        let start = At { node: "start".into(), visit: 0, attempt: Attempt::NONE };
        let item = ItemId::ask(self.id, &start, "plan", 1);
        self.hear(human(Decision::Answer { item, answer: Answer::Approve }));
        self.hear(Event::Clock(ClockEvent::Admitted));
        for step in 1..=self.graph.task_count() {
            let at = At { node: step.to_string().as_str().into(), visit: 1, attempt: Attempt::FIRST };
            let said = AgentSaid::Reported(report());
            self.hear(Event::Agent(AgentEvent::new(at.clone(), said)));
            let found = HarnessResult::Evidence(Box::new(evidence(plan::digest(&step.to_string(), 1), 0)));
            self.hear(Event::Harness(HarnessEvent { at, found }));
        }
        assert_eq!(self.head.status, RunStatus::Ended { end: End::Done });
        self
    }

    fn hear(&mut self, event: Event) {
        let scope = initial_scope(&self.graph, &event);
        let nodes: BTreeMap<NodeId, Record> = match &scope {
            Scope::Nodes(ids) => {
                ids.iter().filter_map(|id| Some((id.clone(), self.nodes.get(id)?.clone()))).collect()
            }
            Scope::Live(_) | Scope::All => {
                let live = self.nodes.iter().filter(|(_, record)| record.state.is_live());
                live.map(|(id, record)| (id.clone(), record.clone())).collect()
            }
        };
        let read: BTreeSet<NodeId> = nodes.keys().cloned().collect();
        let run = Run::from_parts(self.id, self.head.clone(), scope, nodes);
        let done = advance(&self.graph, &run, &event, Timestamp::from_micros(0)).unwrap();
        let changed =
            done.run.records().iter().filter(|(id, record)| self.nodes.get(*id) != Some(record)).count();
        let dispatched = done.effects.iter().filter(|effect| matches!(effect, Effect::Dispatch(_))).count();
        self.most_read = self.most_read.max(read.len());
        self.most_written = self.most_written.max(changed);
        self.most_dispatched = self.most_dispatched.max(dispatched);
        self.head = done.run.head.clone();
        self.nodes.extend(done.run.records().clone());
    }
}

fn linear(steps: u32) -> Graph {
    let parts: Vec<String> = (1..=steps).map(|step| format!("{step}: task retry 2")).collect();
    plan::read(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}
