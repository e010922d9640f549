//! Workers: they claim items, work, and say something at the end, or nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, At, Attempt, ClockEvent, Event, Excerpt, Fault, FaultKind, Hints, NodeId,
    Observation, Overrun, Report, Usage, Work,
};

use super::{Hand, World};
use crate::dice::truth;
use crate::faults::Trouble;
use crate::plans::SEEN;
use crate::store::{Command, Lease, Proof, Renewal};

const OWN_LEASE: Duration = Duration::from_secs(15);
const REMOTE_LEASE: Duration = Duration::from_secs(60);

impl World {
    pub(super) fn claim_work(&mut self) -> Result<(), String> {
        let Some(place) = self.workers.iter().position(Option::is_none) else { return Ok(()) };
        let is_own = place.is_multiple_of(2);
        let ready = self.store.open_items().filter_map(|row| match &row.item.work {
            Work::Agent { timeout, .. } if self.store.is_claimable(row, self.now) => {
                Some((row.item.id.clone(), row.item.at.clone(), *timeout))
            }
            Work::Agent { .. } | Work::Harness { .. } | Work::Human { .. } => None,
        });
        let ready: Vec<_> = ready.collect();
        let Some((item, at, timeout)) = self.any_of(ready) else { return Ok(()) };
        let until = self.now.after(if is_own { OWN_LEASE } else { REMOTE_LEASE });
        let lease = Lease { until, hard_deadline: self.now.after(timeout), is_own };
        self.workers[place] = self.claim(item, at, lease, false)?;
        Ok(())
    }

    pub(super) fn work(&mut self) -> Result<(), String> {
        let busy: Vec<usize> =
            (0..self.workers.len()).filter(|place| self.workers[*place].is_some()).collect();
        let place = *self.dice.pick(&busy);
        let Some(hand) = self.workers[place].clone() else { return Ok(()) };
        if self.strikes(Trouble::WorkerLost) {
            self.workers[place] = None;
            self.ends_work(&hand);
            return Ok(());
        }
        let is_revoked = self.at_work.borrow().is_revoked(&hand.item, hand.generation);
        if is_revoked && self.strikes(Trouble::RevocationIgnored) {
            return Ok(());
        }
        if self.dice.happens(if self.is_calm { 50 } else { 250 }) {
            return self.renew(place, &hand);
        }
        let proof = Proof::Lease { item: hand.item.clone(), generation: hand.generation };
        if self.strikes(Trouble::AttemptGarbled) {
            let at = self.garbled(&hand.at);
            let said = AgentSaid::Reported(self.report(&at, false));
            return self.say(Event::Agent(AgentEvent::new(at, said)), proof);
        }
        let mut said = self.last_words(&hand.at);
        if let AgentSaid::Faulted(fault) = &mut said {
            fault.usage = self.told_before("fault", &hand.at);
        }
        let noted = self.told_before("noted", &hand.at);
        self.workers[place] = None;
        self.ends_work(&hand);
        let takes_gate = place.is_multiple_of(2) && self.takes_gate(&hand);
        let event = Event::Agent(AgentEvent { noted, ..AgentEvent::new(hand.at, said) });
        let command = self.command(event, proof);
        self.send(Command { takes_gate, ..command })
    }

    /// Extends the lease of a worker, which says what it has used so far; where the lease was revoked, the worker ends.
    fn renew(&mut self, place: usize, hand: &Hand) -> Result<(), String> {
        let span = if place.is_multiple_of(2) { OWN_LEASE } else { REMOTE_LEASE };
        let until = self.now.after(span);
        match self.store.renew(&hand.item, hand.generation, until) {
            Renewal::Extended => self.at_work.borrow_mut().extend(&hand.item, hand.generation, until),
            Renewal::Revoked => {
                self.met("revoked", "acknowledged");
                self.lines.push(format!("         the holder of {} ends: its lease was revoked", hand.item));
                self.workers[place] = None;
                self.ends_work(hand);
                self.store.acknowledge(&hand.item, hand.generation);
                return Ok(());
            }
            Renewal::Lost => {}
        }
        let Some(usage) = self.told_before("so far", &hand.at) else { return Ok(()) };
        self.store.note(&hand.item, hand.generation, usage);
        self.say(Event::Clock(ClockEvent::Metered), Proof::Anyone)
    }

    /// Draws what a worker told of its usage in another way than with its report, by a sequence of its own, so that a
    /// seed's story is otherwise what it would be without.
    fn told_before(&self, how: &str, at: &At) -> Option<Usage> {
        let told = truth(self.options.seed, &["told", how, at.node.as_str()], at.attempt.number().into());
        // Now and then it is more than most budgets allow, also of one of two workers at once.
        let tells_much = self.options.has_pauses && how == "so far";
        let times = if tells_much && told.is_multiple_of(4) { 20 } else { 1 };
        (told.is_multiple_of(3) || tells_much).then(|| Usage {
            output_tokens: told / 3 % 2_500 * times,
            micro_usd: Some(told / 7 % 40_000 * times),
            ..Usage::default()
        })
    }

    fn last_words(&mut self, at: &At) -> AgentSaid {
        let fault = |kind, message: &str| AgentSaid::Faulted(Fault::new(kind, message.to_owned()));
        if self.strikes(Trouble::WorkReleased) {
            AgentSaid::Released
        } else if self.strikes(Trouble::WorkerFaulted) {
            fault(FaultKind::Transient, "rate limited")
        } else if self.strikes(Trouble::PermissionMissing) {
            fault(FaultKind::Permission, "log in first")
        } else if self.strikes(Trouble::WorkOverran) {
            AgentSaid::Overran {
                past: Overrun::default(),
                duration: Duration::from_secs(self.dice.below(900)),
                usage: self.usage(),
            }
        } else if self.strikes(Trouble::WorkerAsked) {
            AgentSaid::Asked { question: "which one?".to_owned(), usage: self.usage() }
        } else {
            let gave_up = self.strikes(Trouble::WorkerGaveUp);
            AgentSaid::Reported(self.report(at, gave_up))
        }
    }

    pub(super) fn report(&mut self, at: &At, gave_up: bool) -> Report {
        let tail = format!("all tests pass in {}", at.node);
        Report {
            text: Excerpt { bytes: tail.len() as u64, tail, stored: None },
            gave_up,
            ending: None,
            duration: Duration::from_secs(self.dice.below(200)),
            usage: self.usage(),
            hints: self.hints(at),
            circumstances: None,
            observation: self.observation(at),
        }
    }

    /// Sees something, of all sorts, at a step that passes by what is seen; now and then nothing.
    fn observation(&self, at: &At) -> Option<Box<Observation>> {
        let node = self.store.plan().graph.node(&at.node)?;
        node.confirmation.as_deref()?.check.as_ref()?;
        let (output, code) =
            match truth(self.options.seed, &["seen", at.node.as_str()], at.attempt.number().into()) % 8 {
                0 => return None,
                1 => (SEEN, Some(1)),
                2 => ("nothing is", Some(0)),
                3 => ("nothing is", None),
                4 => (SEEN, None),
                _ => ("ALL IS FINE", Some(0)),
            };
        Some(Box::new(Observation::new(Some("look".to_owned()), code, output)))
    }

    /// Says something of the way on, of all sorts; of woven plans alone, in which it can matter.
    fn hints(&mut self, at: &At) -> Option<Box<Hints>> {
        if !self.store.plan().is_woven || !self.dice.happens(600) {
            return None;
        }
        let ways: Vec<NodeId> =
            self.store.plan().graph.edges_from(&at.node).iter().map(|edge| edge.to.clone()).collect();
        let suggests = self.dice.happens(300) && !ways.is_empty();
        let label =
            self.dice.happens(500).then(|| (*self.dice.pick(&["Red", "b) blue", "green"])).to_owned());
        let suggested = if suggests { vec![self.dice.pick(&ways).clone()] } else { Vec::new() };
        let mut context = BTreeMap::new();
        for name in ["x", "z", "internal.x", "human.gate.selected"] {
            if self.dice.happens(300) {
                context.insert(name.to_owned(), self.dice.between(1, 2).to_string());
            }
        }
        // By a sequence of its own, so that a seed's story is otherwise what it would be without.
        let mut lies = self.dice.clone().fork(12);
        for (name, value) in [
            ("tool.exit_code", "0"),
            ("tool.output", "all pass"),
            ("exit_code", "0"),
            ("outcome", "success"),
            ("context.outcome", "success"),
            ("failure_class", "none"),
            ("retry.remaining", "9"),
            ("preferred_label", "red"),
            ("parallel.results", "success,success"),
            ("internal.retry_count.step1", "0"),
        ] {
            if lies.happens(150) {
                context.insert(name.to_owned(), value.to_owned());
            }
        }
        // By a sequence of its own, so that a seed's story is otherwise what it would be without.
        let proposes = truth(self.options.seed, &["proposes", at.node.as_str()], at.attempt.number().into());
        let insert_step = match proposes % 100 {
            0..8 => Some("### 2. One more".to_owned()),
            8 => Some("  ".to_owned()),
            _ => None,
        };
        Some(Box::new(Hints { label, suggested, context, insert_step }))
    }

    fn usage(&mut self) -> Option<Usage> {
        self.dice.happens(800).then(|| Usage {
            input_tokens: self.dice.below(4_000),
            cached_input_tokens: 0,
            output_tokens: self.dice.below(500),
            micro_usd: self.dice.happens(700).then(|| self.dice.below(60_000)),
            ..Usage::default()
        })
    }

    /// Returns a try that is not this one, though it looks like it.
    pub(super) fn garbled(&mut self, at: &At) -> At {
        let mut at = at.clone();
        match self.dice.below(4) {
            0 => at.attempt = at.attempt.next(),
            1 => at.attempt = Attempt::from_number(at.attempt.number().saturating_sub(1)),
            2 => at.visit = at.visit.wrapping_add(1),
            _ => at.visit = at.visit.wrapping_sub(1),
        }
        at
    }
}
