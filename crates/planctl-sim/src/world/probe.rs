//! News that does not fit, tried on the engine and the model alike without being written.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, At, Attempt, Budget, ChildEnd, ClockEvent, Decision, Digest, End, Event,
    Fault, FaultKind, HarnessEvent, HarnessResult, HumanEvent, Inconclusive, ItemId, NodeId, Outcomes,
    Overrun, RunId, Spent, advance,
};

use super::World;
use crate::model;
use crate::tell;

impl World {
    /// Asks the engine and the model about an event that nobody sent: old news, garbage, news out of place.
    pub(super) fn probe(&mut self) -> Result<(), String> {
        let event = self.odd_event();
        let graph = &self.store.plan().graph;
        let decided = advance(graph, &self.store.whole, &event, self.now);
        let mut model = self.model.clone();
        let heard = model.hear(&event, None, self.now);
        if decided.is_err() != heard.is_none() {
            let engine = decided.map(|advance| advance.facts);
            let event = tell::event(&event);
            return Err(format!("asked about “{event}”, the engine says {engine:?}, the model {heard:?}"));
        }
        match decided {
            Ok(advance) => {
                let (seen, expected) = (model::view_of(graph, &advance.run), model.view());
                if seen == expected {
                    return Ok(());
                }
                let event = tell::event(&event);
                Err(format!("after “{event}” the run were\n{seen:#?}\nthe model says\n{expected:#?}"))
            }
            Err(refusal) => {
                let name = format!("{refusal:?}");
                self.met("refusal", name.split(['(', ' ']).next().unwrap_or_default());
                Ok(())
            }
        }
    }

    fn odd_event(&mut self) -> Event {
        if self.dice.happens(350) && !self.store.history.is_empty() {
            let at = self.dice.below(self.store.history.len() as u64);
            return self.store.history[usize::try_from(at).expect("an index fits")].event.clone();
        }
        let at = self.any_try();
        match self.dice.below(15) {
            0 => {
                let gave_up = self.dice.happens(300);
                let said = AgentSaid::Reported(self.report(&at, gave_up));
                Event::Agent(AgentEvent::new(at, said))
            }
            1 => Event::Agent(AgentEvent::new(at, AgentSaid::Released)),
            2 => {
                let kind = *self.dice.pick(&[FaultKind::Transient, FaultKind::Permission]);
                let said = AgentSaid::Faulted(Fault::new(kind, "odd".to_owned()));
                Event::Agent(AgentEvent::new(at, said))
            }
            3 => {
                let said = AgentSaid::Overran {
                    past: Overrun::Silence,
                    duration: Duration::from_secs(1),
                    usage: None,
                };
                Event::Agent(AgentEvent::new(at, said))
            }
            4 | 5 => {
                let mut evidence = self.evidence(&at, None);
                if self.dice.happens(500) {
                    evidence.contract = Digest::from("sha256:foreign");
                }
                let evidence = Box::new(evidence);
                let is_rehearsal = self.dice.happens(400);
                let found = if is_rehearsal {
                    HarnessResult::Rehearsed(evidence)
                } else {
                    HarnessResult::Evidence(evidence)
                };
                Event::Harness(HarnessEvent { at, found })
            }
            6 => {
                Event::Harness(HarnessEvent { at, found: HarnessResult::Nothing(Inconclusive::Interrupted) })
            }
            7 => Event::Clock(ClockEvent::LeaseLost { at, interrupted: self.dice.happens(500), noted: None }),
            8 => Event::Clock(ClockEvent::Overran { at, noted: None }),
            9 => Event::Clock(ClockEvent::Due { timer: self.any_timer() }),
            13 => {
                let name = "odd".to_owned();
                let run = RunId::from_u128(7);
                let found = match self.dice.below(8) {
                    0 | 1 => HarnessResult::Restored,
                    2 | 3 => HarnessResult::Recorded { name },
                    4 => HarnessResult::Forked { base: name },
                    5 => HarnessResult::Merged { files: 1, protected: BTreeMap::new() },
                    6 => HarnessResult::Begun { run, budget: Budget::default(), waits: false },
                    _ => HarnessResult::Ended(Box::new(ChildEnd {
                        run,
                        name,
                        end: End::Done,
                        settled: Outcomes::default(),
                        spent: Spent::default(),
                    })),
                };
                Event::Harness(HarnessEvent { at, found })
            }
            10 => Event::Clock(ClockEvent::Admitted),
            11 => self.human(Decision::Cancel),
            12 => {
                let decision = match self.dice.below(4) {
                    0 if self.options.has_pauses => Decision::Pause,
                    0 => Decision::Submit,
                    1 => Decision::Resume { from: self.dice.happens(300).then_some(at.node) },
                    _ => Decision::Revise {
                        revision: Digest::from("sha256:odd"),
                        changed: vec![at.node],
                        added: Vec::new(),
                        branches: BTreeMap::new(),
                        budget_max: None,
                    },
                };
                self.human(decision)
            }
            _ => {
                let open = self.store.open_ask().map(|item| item.id.clone());
                let closed = self.closed_ask();
                let item = if self.dice.happens(700) { open.or(closed) } else { closed };
                let answer = self.any_answer();
                self.human(Decision::Answer { item: item.unwrap_or(ItemId::from("none")), answer })
            }
        }
    }

    fn human(&mut self, decision: Decision) -> Event {
        let note = self.dice.happens(600).then(|| "odd".to_owned());
        Event::Human(HumanEvent { by: Actor::from("someone"), note, decision })
    }

    /// Returns a try: often of the node that is out, sometimes of one that never was.
    fn any_try(&mut self) -> At {
        let live: Vec<At> = self.store.open_items().map(|row| row.item.at.clone()).collect();
        match self.any_of(live) {
            Some(at) if self.dice.happens(350) => at,
            Some(at) if self.dice.happens(500) => self.garbled(&at),
            Some(_) | None => {
                let nodes = self.store.plan().graph.nodes();
                let mut ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
                ids.push(NodeId::from("nowhere"));
                let node = self.dice.pick(&ids).clone();
                let visit = self.dice.below(3) as u16;
                At { node, visit, attempt: Attempt::from_number(self.dice.below(4) as u16) }
            }
        }
    }
}
