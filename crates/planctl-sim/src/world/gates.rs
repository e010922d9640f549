//! The harness: it evaluates contracts by a hidden truth of each attempt, and is itself not always there.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    At, Conflict, Contract, Digest, Effect, Ending, Event, Evidence, Excerpt, FileChange, HarnessEvent,
    HarnessResult, Inconclusive, ItemId, Judge, Judgement, Purpose, Resources, Tampering, Timestamp, Usage,
    Verdict, Work,
};

use super::store::{Command, Lease, Proof, Row};
use super::{Hand, World};
use crate::dice::truth;
use crate::faults::Trouble;

const LEASE: Duration = Duration::from_secs(15);

impl World {
    pub(super) fn claim_gate(&mut self) -> Result<(), String> {
        let is_ready = |row: &&Row| {
            matches!(row.item.work, Work::Harness { .. }) && self.store.is_claimable(row, self.now)
        };
        let ready = self.store.open_items().filter(is_ready);
        let ready: Vec<_> = ready.map(|row| (row.item.id.clone(), row.item.at.clone())).collect();
        let Some((item, at)) = self.any_of(ready) else { return Ok(()) };
        self.gate = self.claim(item, at, self.gate_lease(), false)?;
        Ok(())
    }

    fn gate_lease(&self) -> Lease {
        let hard_deadline = Timestamp::from_micros(i64::MAX);
        Lease { until: self.now.after(LEASE), hard_deadline, is_own: true }
    }

    /// Takes the gate along that an event of a worker brought, as planctl's own executors do: in the same transaction.
    pub(super) fn take_gate_along(&mut self, brought: &[Effect]) -> Result<(), String> {
        let gate = brought.iter().find_map(|effect| match effect {
            Effect::Dispatch(item) if matches!(item.work, Work::Harness { .. }) => Some(item),
            Effect::Dispatch(_) | Effect::Withdraw(_) | Effect::Arm { .. } | Effect::Disarm(_) => None,
        });
        let Some(gate) = gate.filter(|gate| gate.available_at <= self.now && self.gate.is_none()) else {
            return Ok(());
        };
        self.gate = self.claim(gate.id.clone(), gate.at.clone(), self.gate_lease(), true)?;
        Ok(())
    }

    pub(super) fn evaluate(&mut self) -> Result<(), String> {
        let Some(hand) = self.gate.take() else { return Ok(()) };
        if self.strikes(Trouble::GateLost) {
            self.ends_work(&hand);
            return Ok(());
        }
        let proof = Proof::Lease { item: hand.item.clone(), generation: hand.generation };
        let nothing = |what: &str| what.to_owned();
        let found = if self.strikes(Trouble::GateInterrupted) {
            HarnessResult::Nothing(Inconclusive::Interrupted)
        } else if self.strikes(Trouble::ToolMissing) {
            HarnessResult::Nothing(Inconclusive::ToolMissing { what: nothing("bash") })
        } else if self.strikes(Trouble::WorkspaceUnstable) {
            HarnessResult::Nothing(Inconclusive::Unstable { what: nothing("src/lib.rs") })
        } else {
            let purpose = self.purpose(&hand.item);
            if let Some(found) = self.done_at(purpose, &hand) {
                return self.found(hand, found, proof);
            }
            let is_rehearsal = purpose == Some(Purpose::Rehearsal);
            let contract = self.store.plan().graph.gated(&hand.at.node).map(|gated| gated.contract.clone());
            let judge = contract.as_ref().and_then(|contract| contract.judge.as_deref());
            if is_rehearsal && contract.as_ref().is_some_and(|contract| contract.rehearsal().is_off()) {
                let name = format!("{}.{}", hand.at.node, hand.at.visit);
                return self.found(hand, HarnessResult::Recorded { name }, proof);
            }
            let mut evidence = self.evidence(&hand.at, is_rehearsal.then_some(&hand.item));
            if self.strikes(Trouble::EvidenceForeign) {
                evidence.contract = Digest::from("sha256:another");
                // The harness keeps its lease and will bring the right one.
                self.gate = Some(hand.clone());
            }
            let verdict = contract.as_ref().and_then(|contract| contract.verdict_of_command(&evidence));
            if let Some(judge) = judge.filter(|_| !is_rehearsal && verdict == Some(Verdict::Passed)) {
                match self.judgement(judge, &hand) {
                    Ok(judgement) => evidence.judgement = Some(Box::new(judgement)),
                    Err(found) => return self.found(hand, found, proof),
                }
            }
            if is_rehearsal {
                HarnessResult::Rehearsed(Box::new(evidence))
            } else {
                HarnessResult::Evidence(Box::new(evidence))
            }
        };
        self.found(hand, found, proof)
    }

    /// Reports the harness's result, and ends unless it keeps its lease; the next item is claimed with it, or left to
    /// others.
    fn found(&mut self, hand: Hand, found: HarnessResult, proof: Proof) -> Result<(), String> {
        if self.gate.is_none() {
            self.ends_work(&hand);
        }
        let takes_gate = self.takes_gate(&hand);
        let command = self.command(Event::Harness(HarnessEvent { at: hand.at, found }), proof);
        self.send(Command { takes_gate, ..command })
    }

    /// Says whether one of planctl's own processes takes the gate along that its news brings: by a sequence of its own.
    pub(super) fn takes_gate(&self, hand: &Hand) -> bool {
        truth(self.options.seed, &["takes", hand.item.as_str()], hand.generation).is_multiple_of(2)
    }

    fn purpose(&self, item: &ItemId) -> Option<Purpose> {
        match self.store.items.get(item).map(|row| &row.item.work) {
            Some(Work::Harness { purpose }) => Some(*purpose),
            Some(Work::Agent { .. } | Work::Human { .. }) | None => None,
        }
    }

    /// Does what is no evaluation: records the workspace or brings it back, parts branches and merges them, looks after the
    /// run of a plan within the plan.
    fn done_at(&mut self, purpose: Option<Purpose>, hand: &Hand) -> Option<HarnessResult> {
        let at = &hand.at;
        match purpose? {
            Purpose::Record => Some(HarnessResult::Recorded { name: format!("{}.{}", at.node, at.visit) }),
            Purpose::Restoration => Some(HarnessResult::Restored),
            Purpose::Fork => Some(HarnessResult::Forked { base: format!("base {}.{}", at.node, at.attempt) }),
            Purpose::Merge => Some(self.merged(at)),
            Purpose::SubPlan => Some(self.child_of(&hand.item).look()),
            Purpose::Verdict | Purpose::Rehearsal => None,
        }
    }

    /// Returns what a judge answers, the same each time it is asked about an attempt; now and then it gives no answer, and
    /// has used something all the same. Both are drawn by sequences of their own.
    fn judgement(&self, judge: &Judge, hand: &Hand) -> Result<Judgement, HarnessResult> {
        let said =
            truth(self.options.seed, &["judge", hand.at.node.as_str()], hand.at.attempt.number().into());
        let usage = (!said.is_multiple_of(4)).then(|| Usage {
            input_tokens: said / 5 % 700,
            micro_usd: Some(said / 11 % 9_000),
            ..Usage::default()
        });
        let is_silent = truth(self.options.seed, &["silent", hand.item.as_str()], hand.generation);
        if is_silent.is_multiple_of(5) {
            let what = "no answer of the form".to_owned();
            return Err(HarnessResult::Nothing(Inconclusive::Unjudged { what, usage }));
        }
        Ok(Judgement {
            question: judge.digest.clone(),
            by: judge.by.clone(),
            passes: !said.is_multiple_of(3),
            reason: "it reads well".to_owned(),
            quotes: Vec::new(),
            usage,
        })
    }

    /// Merges what branches did, which does not always fit; a person has mended it by the next time, or not.
    fn merged(&self, at: &At) -> HarnessResult {
        let hidden = truth(self.options.seed, &["merge", at.node.as_str()], at.attempt.number().into());
        if hidden.is_multiple_of(3) {
            return HarnessResult::Conflicted(Box::new(Conflict {
                branch: Some(1),
                files: vec!["src/lib.rs".to_owned()],
                folder: "branches/1".to_owned(),
                hunks: Excerpt::default(),
            }));
        }
        HarnessResult::Merged { files: (hidden / 3 % 4) as u32, protected: BTreeMap::new() }
    }

    /// Returns the output of a woven plan's command: words that come again, with numbers that do not.
    fn printed(&self, hidden: u64) -> Excerpt {
        if !self.store.plan().is_woven {
            return Excerpt::default();
        }
        let tail = match hidden / 7000 % 3 {
            0 => format!("one in {} s", hidden / 21_000 % 5),
            1 => "two".to_owned(),
            _ => String::new(),
        };
        Excerpt { bytes: tail.len() as u64, tail, stored: None }
    }

    /// Returns what the contract shows of an attempt, or before the work: the same each time, unless it flaps.
    pub(super) fn evidence(&mut self, at: &At, rehearsal: Option<&ItemId>) -> Evidence {
        let contract = self.store.plan().graph.gated(&at.node).map(|gated| gated.contract.clone());
        let expect = contract.as_ref().map_or(0, |contract| i32::from(contract.expect));
        let flap = if self.strikes(Trouble::ContractFlapped) { self.dice.draw() } else { 0 };
        let words: Vec<&str> = [at.node.as_str()].into_iter().chain(rehearsal.map(ItemId::as_str)).collect();
        let hidden = truth(self.options.seed ^ flap, &words, at.attempt.number().into());
        let ending = match (hidden % 1000 < self.options.passes, hidden / 1000 % 6) {
            (true, _) => Ending::Exited { code: expect },
            (false, 0) => Ending::TimedOut,
            (false, 1) => Ending::Signalled { signal: expect.max(9) },
            (false, _) => Ending::Exited { code: expect + 1 },
        };
        let tampering =
            Tampering { path: "tests/it.rs".to_owned(), change: FileChange::Changed, digest: None };
        let tampered = if self.strikes(Trouble::FileTampered) { vec![tampering] } else { Vec::new() };
        Evidence {
            contract: contract.map_or_else(|| Digest::from("sha256:none"), |contract| contract.digest),
            ending,
            duration: Duration::from_millis(hidden % 700),
            resources: Resources::default(),
            stdout: self.printed(hidden),
            stderr: Excerpt::default(),
            isolation: planctl_engine::Tier::SameUser,
            git_head: None,
            protected: BTreeMap::new(),
            tampered,
            stragglers: 0,
            judgement: None,
        }
    }
}

/// Returns the yes of the judge whom a contract asks, where it asks one.
pub fn yes_of_judge(contract: &Contract) -> Option<Box<Judgement>> {
    let yes = |judge: &Judge| Judgement {
        question: judge.digest.clone(),
        by: judge.by.clone(),
        passes: true,
        reason: "it reads well".to_owned(),
        quotes: Vec::new(),
        usage: None,
    };
    contract.judge.as_deref().map(yes).map(Box::new)
}
