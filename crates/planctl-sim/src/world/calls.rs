//! Calls to the store: over a network that loses, delays and doubles; each is compared with the model and checked.

use planctl_engine::{ClockEvent, Effect, Event, Fact, Work};

use super::{Hand, World};
use crate::faults::{Flaw, Trouble};
use crate::model;
use crate::plans::Plan;
use crate::store::{Answered, Command, Proof};
use crate::{check, clock, tell};

impl World {
    pub(super) fn say(&mut self, event: Event, proof: Proof) -> Result<(), String> {
        self.say_with(event, proof, None)
    }

    /// Calls the store over a network that loses, delays and doubles.
    pub(super) fn say_with(
        &mut self,
        event: Event,
        proof: Proof,
        revision: Option<Plan>,
    ) -> Result<(), String> {
        let command = self.command(event, proof);
        self.send(Command { revision, ..command })
    }

    /// Puts a call under an id of its own.
    pub(super) fn command(&mut self, event: Event, proof: Proof) -> Command {
        self.keys += 1;
        let key = format!("command {}", self.keys);
        Command { key, event, proof, revision: None, takes_gate: false }
    }

    pub(super) fn send(&mut self, command: Command) -> Result<(), String> {
        if self.strikes(Trouble::MessageLate) || self.strikes(Trouble::CommitLost) {
            self.outbox.push(command);
            return Ok(());
        }
        self.commit(&command)?;
        if self.strikes(Trouble::AnswerLost) || self.strikes(Trouble::MessageDoubled) {
            self.outbox.push(command.clone());
        }
        if self.strikes(Trouble::MessageRepeated) {
            self.keys += 1;
            self.outbox.push(Command { key: format!("command {}", self.keys), ..command });
        }
        Ok(())
    }

    /// Applies one call as the store does: id, proof, decision, rows; then compares and checks.
    pub(super) fn commit(&mut self, command: &Command) -> Result<Answered, String> {
        let generation = self.generation_of(&command.proof);
        let answered = self.transact(command)?;
        self.clients_agree(command, &answered, generation)?;
        let word = match &answered {
            Answered::Accepted => "Accepted".to_owned(),
            Answered::Duplicate => "Duplicate".to_owned(),
            Answered::NoLease => {
                self.stop_without_lease(&command.proof);
                "NoLease".to_owned()
            }
            Answered::Busy => "Busy".to_owned(),
            Answered::Refused(refusal) => {
                let name = format!("{refusal:?}");
                let name = name.split(['(', ' ']).next().unwrap_or_default();
                self.met("refusal", name);
                format!("refused: {refusal}")
            }
        };
        self.met("answered", &word);
        if answered != Answered::Accepted {
            let line = format!("{} -> {:<58} {word}", clock::moment(self.now), tell::event(&command.event));
            self.lines.push(line);
        }
        Ok(answered)
    }

    /// Stops the process that shows a lease that is over; of a revoked lease, its call is an acknowledgement.
    fn stop_without_lease(&mut self, proof: &Proof) {
        let Proof::Lease { item, generation } = proof else { return };
        let is_it = |hand: &Hand| hand.item == *item && hand.generation == *generation;
        for hand in self.workers.iter_mut().chain([&mut self.gate]) {
            if hand.as_ref().is_some_and(is_it) {
                *hand = None;
            }
        }
        self.at_work.borrow_mut().end(item, *generation);
        if self.store.acknowledge(item, *generation) {
            self.met("revoked", "reported");
        }
    }

    fn generation_of(&self, proof: &Proof) -> Option<u64> {
        match proof {
            Proof::Lease { item, .. } | Proof::Sweep { item, .. } => {
                self.store.items.get(item).map(|row| row.generation)
            }
            Proof::Timer { .. } | Proof::Anyone => None,
        }
    }

    /// Checks an answer against what the clients have seen before: none of this asks the store (I3, I9, I22).
    fn clients_agree(
        &mut self,
        command: &Command,
        answered: &Answered,
        live: Option<u64>,
    ) -> Result<(), String> {
        let was_accepted = self.accepted.contains(&command.key);
        if was_accepted != (*answered == Answered::Duplicate) {
            return Err(format!(
                "I3 {} was accepted before: {was_accepted}; answered {answered:?}",
                command.key
            ));
        }
        if *answered != Answered::Accepted {
            return Ok(());
        }
        self.accepted.insert(command.key.clone());
        if let Proof::Lease { item, generation } | Proof::Sweep { item, generation } = &command.proof
            && live != Some(*generation)
        {
            return Err(format!(
                "I9 news of generation {generation} of {item} was accepted, live is {live:?}"
            ));
        }
        Ok(())
    }

    fn transact(&mut self, command: &Command) -> Result<Answered, String> {
        if self.store.knows(&command.key) {
            return Ok(Answered::Duplicate);
        }
        if !self.store.holds(&command.proof, self.now) {
            return Ok(Answered::NoLease);
        }
        let graph = command.revision.as_ref().unwrap_or(self.store.plan()).graph.clone();
        let decided = self.store.decide(&graph, &command.event, self.now)?;
        let is_admitted = matches!(command.event, Event::Clock(ClockEvent::Admitted));
        let is_metered = matches!(command.event, Event::Clock(ClockEvent::Metered));
        let may_begin = self.store.is_admissible() || self.store.has(Flaw::WorkspaceShared);
        if is_admitted && decided.is_ok() && !may_begin {
            return Ok(Answered::Busy);
        }
        self.model.hear_so_far(self.store.noted_beside(&command.event));
        let heard = self.model.hear(&command.event, Some(&graph), self.now);
        let (part, whole) = match (decided, &heard) {
            (Ok(decided), Some(_)) => decided,
            (Err(refusal), None) => {
                if is_metered {
                    self.ledger.is_held(self.store.open_items())?;
                }
                return Ok(Answered::Refused(refusal));
            }
            (Ok((_, whole)), None) => {
                let event = tell::event(&command.event);
                return Err(format!("the engine accepts what the model refuses: {event}: {:?}", whole.facts));
            }
            (Err(refusal), Some(told)) => {
                let event = tell::event(&command.event);
                return Err(format!(
                    "the engine refuses ({refusal}) what the model accepts: {event}: {told:?}"
                ));
            }
        };
        self.note_accepted(&command.event, &part.facts, &part.effects);
        same_tellings(&part.facts, heard.unwrap_or_default())?;
        check::effects_are_sound(&graph, &part.effects)?;
        self.ledger.book(&graph, &command.event, &part)?;
        for word in self.ledger.way_to_the_limit(&command.event, &part) {
            self.met("at the limit after", word);
        }
        self.briefs_agree(&part.effects)?;
        for effect in &part.effects {
            if let Effect::Withdraw(id) = effect {
                self.at_work.borrow_mut().revoke(id);
            }
        }
        let brought = if command.takes_gate { part.effects.clone() } else { Vec::new() };
        self.store.write(command, part, whole, self.now)?;
        if is_metered {
            self.ledger.is_held(self.store.open_items())?;
        }
        let (seen, expected) = (model::view_of(&graph, &self.store.whole), self.model.view());
        if seen != expected {
            return Err(format!("the run is\n{seen:#?}\nthe model says\n{expected:#?}"));
        }
        if self.store.timers != self.model.timers() {
            let (seen, expected) = (&self.store.timers, self.model.timers());
            return Err(format!("timers are {seen:?}, the model says {expected:?}"));
        }
        check::after_event(&self.store)?;
        self.take_gate_along(&brought)?;
        Ok(Answered::Accepted)
    }

    /// Compares what the next worker is told.
    fn briefs_agree(&self, effects: &[Effect]) -> Result<(), String> {
        for effect in effects {
            if let Effect::Dispatch(item) = effect
                && let Work::Agent { role, brief, .. } = &item.work
            {
                let failed = brief.failure.as_ref().map(|failure| usize::from(failure.attempt.number()));
                let note = brief.note.as_ref().map(|note| note.text.clone());
                let taken_over = brief.handover.as_ref().map(|over| (over.level, over.from.clone()));
                let seen = (role.clone(), note, failed, taken_over);
                let expected = self.model.brief(&item.at.node);
                if seen != expected {
                    return Err(format!("the worker is told {seen:?}, the model says {expected:?}"));
                }
            }
        }
        Ok(())
    }

    fn note_accepted(&mut self, event: &Event, facts: &[Fact], effects: &[Effect]) {
        self.met("event", event.kind());
        for fact in facts {
            self.met("fact", fact.name());
            let (kind, word) = particulars(fact);
            if !kind.is_empty() {
                self.met(kind, &word);
            }
        }
        let mut followed: Vec<String> = facts.iter().map(tell::fact).collect();
        followed.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch(item) => {
                Some(format!("+{}", item.id.as_str().split_once('.').map_or("", |x| x.1)))
            }
            Effect::Withdraw(id) => Some(format!("-{}", id.as_str().split_once('.').map_or("", |x| x.1))),
            Effect::Arm { .. } | Effect::Disarm(_) => None,
        }));
        let line =
            format!("{} -> {:<58} {}", clock::moment(self.now), tell::event(event), followed.join("; "));
        self.lines.push(line);
    }
}

/// Compares what followed, in any order: the model tells it in its own.
fn same_tellings(facts: &[Fact], mut expected: Vec<String>) -> Result<(), String> {
    let mut seen: Vec<String> = facts.iter().map(tell::fact).collect();
    seen.sort();
    expected.sort();
    if seen == expected { Ok(()) } else { Err(format!("facts are {seen:?}, the model says {expected:?}")) }
}

/// Names what a fact says beyond its kind, as far as a batch must meet it.
fn particulars(fact: &Fact) -> (&'static str, String) {
    match fact {
        Fact::NodeVerified { verdict, .. } => ("verdict", verdict.as_str().replace(' ', "_")),
        Fact::NodeObserved { refuted, .. } => {
            ("observed", if refuted.is_none() { "passed" } else { "failed" }.to_owned())
        }
        Fact::NodeRehearsed { showed, .. } => ("showing", showed.as_str().to_owned()),
        Fact::NodeSettled { outcome, .. } => ("outcome", outcome.as_str().to_owned()),
        Fact::AskOpened { reason, .. } => ("reason", reason.as_str().to_owned()),
        Fact::AskAnswered { answer, .. } => ("answer", answer.clone()),
        Fact::PlanCompleted { .. } => ("end", "Done".to_owned()),
        Fact::PlanFailed { end, .. } => ("end", format!("{end:?}")),
        Fact::PlanCancelled { .. } => ("end", "Cancelled".to_owned()),
        Fact::PaceChanged { to, .. } => ("level", to.as_str().to_owned()),
        Fact::EdgeFollowed { choosing: Some(choosing), .. } => {
            ("decider", format!("{:?}", choosing.by).to_lowercase())
        }
        Fact::PlanActivated { .. }
        | Fact::NodeEntered { .. }
        | Fact::RetryTriggered { .. }
        | Fact::EdgeFollowed { .. }
        | Fact::EpochBegan { .. }
        | Fact::FidelityReduced { .. }
        | Fact::ContextRefused { .. }
        | Fact::NodeQueued { .. }
        | Fact::NodeDecided { .. }
        | Fact::CheckpointSaved { .. }
        | Fact::CheckpointRestored { .. }
        | Fact::BranchesForked { .. }
        | Fact::BranchesMerged { .. }
        | Fact::MergeConflicted { .. }
        | Fact::SubPlanBegan { .. }
        | Fact::SubPlanEnded { .. }
        | Fact::BranchesJoined { .. }
        | Fact::GoalUnmet { .. }
        | Fact::NodeResting { .. }
        | Fact::NodeInterrupted { .. }
        | Fact::GateRepeated { .. }
        | Fact::PlanEscalated { .. }
        | Fact::BudgetNoticed { .. }
        | Fact::PlanExpired { .. }
        | Fact::NodeReopened { .. }
        | Fact::PlanPaused { .. } => ("", String::new()),
    }
}
