//! The harness: it evaluates contracts by a hidden truth of each attempt, and is itself not always there.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    At, Conflict, Contract, Digest, Effect, Ending, Event, Evidence, Excerpt, FileChange, HarnessEvent,
    HarnessResult, Inconclusive, ItemId, Judge, Judgement, PromptToJudge, Purpose, Record, Reserved,
    Resources, Tampering, TestCount, Timestamp, Usage, Verdict, Work,
};

use super::{Hand, World};
use crate::dice::truth;
use crate::faults::Trouble;
use crate::store::{Command, Lease, Proof, Row};

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
        let noted = self.note_most_of_judge(&hand);
        if self.strikes(Trouble::GateLost) {
            self.ends_work(&hand);
            return Ok(());
        }
        let proof = Proof::Lease { item: hand.item.clone(), generation: hand.generation };
        let nothing = |what: &str| what.to_owned();
        let found = if self.strikes(Trouble::GateInterrupted) {
            HarnessResult::Nothing(
                noted.map_or(Inconclusive::Interrupted, |usage| Inconclusive::Unheard { usage }),
            )
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
            if is_rehearsal && contract.as_ref().is_some_and(|contract| contract.rehearsal_mode().is_off()) {
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
                    Ok(judgement) => {
                        // The harness keeps its lease and will ask a person.
                        if judge.approval && judgement.prompt.is_none() {
                            self.gate = Some(hand.clone());
                        }
                        evidence.judgement = Some(Box::new(judgement));
                    }
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

    /// Notes the most that the judge of a gate may use, before it is asked: the gate may be lost, interrupted or taken back.
    fn note_most_of_judge(&mut self, hand: &Hand) -> Option<Usage> {
        let contract = self.store.plan().graph.gated(&hand.at.node)?.contract;
        if contract.judge.is_none() || self.purpose(&hand.item) != Some(Purpose::Verdict) {
            return None;
        }
        let most = truth(self.options.seed, &["most", hand.item.as_str()], hand.generation);
        let usage = (!most.is_multiple_of(3)).then(|| Usage {
            output_tokens: most / 3 % 2_000,
            micro_usd: Some(most / 7 % 20_000),
            ..Usage::default()
        })?;
        self.store.note(&hand.item, hand.generation, usage.clone());
        Some(usage)
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
        let prompt = match judge.approval {
            true => self.approved_prompt(hand, usage.as_ref())?,
            false => None,
        };
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
            prompt,
            usage,
        })
    }

    /// Returns the prompt to a judge where a person approved it, and why the judge is not asked where they did not, or where too
    /// little of the budget is left. Now and then a judge is asked all the same, and the work has changed since the approval.
    fn approved_prompt(&self, hand: &Hand, usage: Option<&Usage>) -> Result<Option<Digest>, HarnessResult> {
        let (node, seed) = (hand.at.node.as_str(), self.options.seed);
        let attempt = hand.at.attempt.number().into();
        let has_changed = truth(seed, &["prompt", hand.item.as_str()], hand.generation).is_multiple_of(5);
        let text =
            truth(seed, &["text", node], attempt).wrapping_add(u64::from(has_changed) * hand.generation);
        let digest = Digest::new(format!("sha256:{text:016x}"));
        let word = self.store.nodes.get(&hand.at.node).and_then(|record| record.prompt.as_ref());
        let is_approved = word.is_some_and(|word| word.is_approved && word.digest == digest);
        let is_hasty = truth(seed, &["hasty", hand.item.as_str()], self.keys).is_multiple_of(6);
        if !is_approved && is_hasty {
            return Ok(None);
        }
        if !is_approved {
            let prompt = Box::new(prompt_to_judge(digest, text % 9_000));
            return Err(HarnessResult::Nothing(Inconclusive::Unapproved { prompt }));
        }
        let estimate = usage
            .map(|usage| Reserved { tokens: usage.input_tokens, micro_usd: usage.micro_usd.unwrap_or(0) });
        let is_stale = truth(seed, &["stale", hand.item.as_str()], hand.generation).is_multiple_of(9);
        let short = |estimate: &Reserved| is_stale || self.store.head.short_of(*estimate, 0).is_some();
        match estimate.filter(short) {
            Some(estimate) => Err(HarnessResult::Nothing(Inconclusive::Unfunded { estimate })),
            None => Ok(Some(digest)),
        }
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
        let least = contract.as_ref().and_then(|contract| contract.min_tests);
        let has_exited = ending == Ending::Exited { code: expect };
        // A third of them show too few.
        let passed = |least: u32| (hidden / 7000 % u64::from(3 * least)) as u32;
        let tests = least.filter(|_| has_exited).map(|least| TestCount { passed: passed(least), least });
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
            tests,
            judgement: None,
        }
    }
}

/// Returns what a gate found, with the yes of the judge whom its contract asks; where a person has to approve the prompt first and
/// has not, it asks for that.
pub fn with_yes_of_judge(evidence: Evidence, contract: &Contract, record: Option<&Record>) -> HarnessResult {
    let has_passed = contract.verdict_of_command(&evidence) == Some(Verdict::Passed);
    let Some(judge) = contract.judge.as_deref().filter(|_| has_passed) else {
        return HarnessResult::Evidence(Box::new(evidence));
    };
    let digest = Digest::new("sha256:prompt");
    if judge.approval
        && !record.and_then(|record| record.prompt.as_ref()).is_some_and(|word| word.is_approved)
    {
        return HarnessResult::Nothing(Inconclusive::Unapproved {
            prompt: Box::new(prompt_to_judge(digest, 900)),
        });
    }
    let judgement = Judgement {
        question: judge.digest.clone(),
        by: judge.by.clone(),
        passes: true,
        reason: "it reads well".to_owned(),
        quotes: Vec::new(),
        prompt: judge.approval.then_some(digest),
        usage: None,
    };
    HarnessResult::Evidence(Box::new(Evidence { judgement: Some(Box::new(judgement)), ..evidence }))
}

fn prompt_to_judge(digest: Digest, tokens: u64) -> PromptToJudge {
    PromptToJudge {
        digest,
        by: "strict".to_owned(),
        model: "m-large".to_owned(),
        url: "https://models.example/v1/messages".to_owned(),
        tokens,
    }
}
