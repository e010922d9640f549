//! Hands on a run of the real store: each works, gates, answers, sweeps, doubles, forgets and comes late, at random.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use planctl_engine::{
    AgentEvent, AgentSaid, Answer, AskKind, At, Budget, Decision, Digest, Ending, Event, Evidence, Excerpt,
    Fault, FaultKind, HarnessEvent, HarnessResult, Hints, Inconclusive, NodeId, Outcome, Overrun, Purpose,
    Report, Resources, Role, RunStatus, Usage, Work,
};
use planctl_sim::{Dice, revise, truth, with_yes_of_judge};
use planctl_store::{
    Claim, ClaimLane, Claimed, Holder, NewRevision, NextClaim, Proof, ServedRole, Store, StoreError,
};

use super::ground::{self, HOST, human};
use super::stage::Scene;

/// Turns in which things go wrong; after them the hands only finish.
const WILD_TURNS: u32 = 120;
/// Turns within which the run must have ended.
const TURNS_MAX: u32 = 3_000;

pub struct Hand {
    scene: Arc<Scene>,
    /// The store of its process: it learns of others' writes when it reads.
    store: Store,
    dice: Dice,
    place: usize,
    is_wild: bool,
    answers: u32,
    /// The newest lease was a short one.
    is_short: bool,
    /// A call made earlier, which comes again.
    again: Option<(Event, Proof)>,
    /// Work that was claimed with a report or a verdict.
    next: Option<Claimed>,
}

impl Hand {
    pub fn new(scene: Arc<Scene>, store: Store, place: usize) -> Hand {
        let dice = Dice::new(scene.seed * 101 + place as u64);
        Hand {
            scene,
            store,
            dice,
            place,
            is_wild: true,
            answers: 0,
            is_short: false,
            again: None,
            next: None,
        }
    }

    pub async fn play(mut self) {
        for turn in 0..TURNS_MAX {
            self.is_wild = turn < WILD_TURNS;
            let row = self.store.run(self.scene.run).await.unwrap();
            let did = match row.head.status {
                RunStatus::Ended { .. } => return,
                RunStatus::New => false,
                RunStatus::Awaiting => self.answer().await,
                RunStatus::Queued { .. } => self.admit().await,
                RunStatus::Paused => self.revise().await,
                RunStatus::Active => match self.dice.below(8) {
                    0..3 => self.work().await,
                    3..5 => self.gate(None).await,
                    5 => self.answer().await,
                    6 => self.sweep().await,
                    _ => self.come_again().await,
                },
            };
            if !did {
                // Time passes until something becomes due, or somebody else moves the run.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
        let view = self.store.run_view(self.scene.run).await.unwrap();
        panic!("seed {}: the run does not end: {:#?}\n{:#?}", self.scene.seed, view.run.head, view.items);
    }

    fn goes_wrong(&mut self, per_mille: u64) -> bool {
        self.is_wild && self.dice.happens(per_mille)
    }

    fn holder(&self) -> Holder {
        let instance = format!("hand-{}-{}", self.scene.seed, self.place);
        Holder { host: HOST.to_owned(), boot: "boot".to_owned(), instance, own: self.place != 2 }
    }

    fn lease(&mut self) -> Duration {
        self.is_short = self.goes_wrong(300);
        self.span()
    }

    fn span(&self) -> Duration {
        Duration::from_millis(if self.is_short { 30 } else { 5_000 })
    }

    async fn claim(&mut self, lane: ClaimLane) -> Option<Claimed> {
        let lease = self.lease();
        let claim =
            Claim { lane, run: Some(self.scene.run), except: Vec::new(), holder: self.holder(), lease };
        self.store.claim(&claim).await.unwrap()
    }

    async fn work(&mut self) -> bool {
        // Those that drawn plans name, the responders of PACE levels among them.
        let roles = ["coder", "reviewer", "senior", "strong", "chief", "last"].map(Role::from).to_vec();
        let asked_at = Instant::now();
        if let Some(claimed) = self.next.take() {
            self.is_short = false;
            return self.work_on(&claimed).await;
        }
        let Some(claimed) = self.claim(ClaimLane::Agent(roles)).await else { return false };
        let locks = claimed.graph.task(&claimed.item.at.node).map_or(&[][..], |task| &task.locks);
        let until = asked_at + self.span();
        self.scene.locks.lock().unwrap().begin(&claimed.item.id, locks, until);
        if !locks.is_empty() && !self.is_short {
            // Work takes a while, in which others look for some.
            self.store.renew(&claimed, self.span()).await.unwrap();
        }
        self.scene.locks.lock().unwrap().end(&claimed.item.id);
        self.work_on(&claimed).await
    }

    async fn work_on(&mut self, claimed: &Claimed) -> bool {
        if self.goes_wrong(80) {
            if !self.is_short {
                self.say(released(&claimed.item.at), claimed.proof()).await;
            } else if self.dice.happens(500) {
                self.come_late(claimed).await;
            }
            // Else the worker just vanishes, and the sweep finds out.
            return true;
        }
        let said = self.last_words(&claimed.item.at);
        let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), said));
        let next_claim = self.next_claim();
        if self.goes_wrong(100) {
            self.again = Some((event, claimed.proof()));
            return true;
        }
        let applied = self.store.apply(self.scene.run, &event, &claimed.proof(), next_claim.as_ref()).await;
        if self.goes_wrong(150) {
            self.again = Some((event, claimed.proof()));
        }
        match applied {
            Ok(applied) => {
                let is_news = self.is_news(Ok(applied.duplicate));
                match applied.claimed_next {
                    Some(gate) if !is_agents(&gate) => self.gate(Some(gate)).await,
                    work => {
                        self.next = work;
                        is_news
                    }
                }
            }
            Err(error) => self.is_news(Err(error)),
        }
    }

    /// Sleeps until the lease is over and somebody has noticed, and reports then.
    async fn come_late(&mut self, claimed: &Claimed) {
        for _ in 0..100 {
            let expired = self.store.expired(&[], 100).await.unwrap();
            if let Some(own) = expired.into_iter().flatten().find(|expired| expired.item == claimed.item.id) {
                self.say(own.event(), own.proof()).await;
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let said = self.last_words(&claimed.item.at);
        let event = Event::Agent(AgentEvent::new(claimed.item.at.clone(), said));
        self.say(event, claimed.proof()).await;
    }

    fn last_words(&mut self, at: &At) -> AgentSaid {
        let usage = self.dice.happens(700).then(|| Usage {
            input_tokens: self.dice.below(2_000),
            micro_usd: Some(self.dice.below(30_000)),
            ..Usage::default()
        });
        if self.goes_wrong(60) {
            AgentSaid::Asked { question: "which?".to_owned(), usage }
        } else if self.goes_wrong(60) {
            AgentSaid::Overran { past: Overrun::Silence, duration: Duration::from_secs(1), usage }
        } else if self.goes_wrong(30) {
            let kind = if self.dice.happens(700) { FaultKind::Transient } else { FaultKind::Permission };
            AgentSaid::Faulted(Fault::new(kind, "not now".to_owned()))
        } else {
            let gave_up = self.goes_wrong(80);
            let text = Excerpt { bytes: 4, tail: format!("{}…", at.node), stored: None };
            AgentSaid::Reported(Report {
                text,
                gave_up,
                ending: None,
                duration: Duration::from_millis(5),
                usage,
                hints: self.goes_wrong(50).then(|| {
                    Box::new(Hints { insert_step: Some("### 2. One more".to_owned()), ..Hints::default() })
                }),
                circumstances: None,
                observation: None,
            })
        }
    }

    async fn gate(&mut self, taken: Option<Claimed>) -> bool {
        let claimed = match taken {
            Some(claimed) => claimed,
            None => match self.claim(ClaimLane::Gate).await {
                Some(claimed) => claimed,
                None => return false,
            },
        };
        let at = claimed.item.at.clone();
        let found = if self.goes_wrong(80) {
            HarnessResult::Nothing(Inconclusive::Interrupted)
        } else {
            let seed = self.scene.seed;
            let view = self.store.run_view(self.scene.run).await;
            let record = view.ok().and_then(|mut view| view.records.remove(&at.node));
            let found = |evidence: &Evidence| match claimed.item.work {
                Work::Harness { purpose: Purpose::Rehearsal } => {
                    HarnessResult::Rehearsed(Box::new(evidence.clone()))
                }
                Work::Harness { purpose: Purpose::Record } => {
                    HarnessResult::Recorded { name: "state".to_owned() }
                }
                Work::Harness { purpose: Purpose::Restoration } => HarnessResult::Restored,
                Work::Harness { purpose: Purpose::SubPlan } => ground::run_within(seed, &claimed.item.id),
                Work::Harness { purpose: Purpose::Fork } => HarnessResult::Forked { base: "base".to_owned() },
                Work::Harness { purpose: Purpose::Merge } => {
                    HarnessResult::Merged { files: 0, protected: BTreeMap::new() }
                }
                Work::Harness { purpose: Purpose::Verdict } | Work::Agent { .. } | Work::Human { .. } => {
                    match claimed.graph.gated(&at.node) {
                        Some(gated) => with_yes_of_judge(evidence.clone(), gated.contract, record.as_ref()),
                        None => HarnessResult::Evidence(Box::new(evidence.clone())),
                    }
                }
            };
            let mut evidence = self.evidence(&claimed);
            let is_evaluated = claimed.graph.gated(&at.node).is_some();
            if is_evaluated && self.goes_wrong(60) {
                evidence.contract = Digest::from("sha256:foreign");
                let event = Event::Harness(HarnessEvent { at: at.clone(), found: found(&evidence) });
                self.say(event, claimed.proof()).await;
                evidence = self.evidence(&claimed);
            }
            found(&evidence)
        };
        let event = Event::Harness(HarnessEvent { at, found });
        if self.goes_wrong(150) {
            self.again = Some((event.clone(), claimed.proof()));
        }
        let next_claim = self.next_claim();
        let applied = self.store.apply(self.scene.run, &event, &claimed.proof(), next_claim.as_ref()).await;
        match applied {
            Ok(applied) => {
                let is_news = self.is_news(Ok(applied.duplicate));
                match applied.claimed_next {
                    Some(gate) if !is_agents(&gate) => Box::pin(self.gate(Some(gate))).await,
                    work => {
                        self.next = work.or(self.next.take());
                        is_news
                    }
                }
            }
            Err(error) => self.is_news(Err(error)),
        }
    }

    /// Claims what follows, now and then: gates, and the work of one role or of all.
    fn next_claim(&mut self) -> Option<NextClaim> {
        let served = match self.dice.below(4) {
            0 | 1 => return None,
            // A hand that has work claims no more of it.
            _ if self.next.is_some() => Vec::new(),
            2 => vec![ServedRole::One(Role::from("coder"))],
            _ => vec![ServedRole::Any],
        };
        Some(NextClaim { served, holder: self.holder(), lease: Duration::from_secs(5) })
    }

    fn evidence(&self, claimed: &Claimed) -> Evidence {
        let at = &claimed.item.at;
        let gated = claimed.graph.gated(&at.node);
        let (digest, expect) = match gated {
            Some(gated) => (gated.contract.digest.clone(), i32::from(gated.contract.expect)),
            // Of a checkpoint, nobody looks at it.
            None => (Digest::from("sha256:none"), 0),
        };
        let is_rehearsal = claimed.item.id.is_rehearsal(self.scene.run, at);
        let words: Vec<&str> =
            [at.node.as_str()].into_iter().chain(is_rehearsal.then(|| claimed.item.id.as_str())).collect();
        let hidden = truth(self.scene.seed, &words, at.attempt.number().into());
        let code = if hidden % 10 < 6 { expect } else { expect + 1 };
        Evidence {
            contract: digest,
            ending: Ending::Exited { code },
            duration: Duration::from_millis(1),
            resources: Resources::default(),
            stdout: Excerpt::default(),
            stderr: Excerpt::default(),
            isolation: planctl_engine::Tier::SameUser,
            git_head: None,
            protected: BTreeMap::new(),
            tampered: Vec::new(),
            stragglers: 0,
            tests: None,
            judgement: None,
        }
    }

    async fn answer(&mut self) -> bool {
        let asks = self.store.asks(Some(self.scene.run), None).await.unwrap();
        let Some(open) = asks.into_iter().find(|ask| ask.is_open) else { return false };
        self.answers += 1;
        let is_patient = self.answers < 20;
        let raise = || {
            let time = Some(Duration::from_secs(100_000));
            Answer::Raise { by: Budget { tokens: Some(500_000), micro_usd: Some(90_000_000), time } }
        };
        let answer = match open.ask.kind {
            AskKind::Plan | AskKind::Effect | AskKind::Prompt | AskKind::Synthesis => Answer::Approve,
            AskKind::Choice if is_patient => Answer::Choose {
                option: open.ask.options.first().cloned().unwrap_or_else(|| "blue".to_owned()),
            },
            AskKind::Insertion if is_patient => Answer::Reject,
            AskKind::Choice | AskKind::Insertion => Answer::Abort,
            AskKind::Budget | AskKind::Day if is_patient => raise(),
            AskKind::Escalation | AskKind::Question | AskKind::Budget | AskKind::Day if !is_patient => {
                Answer::Abort
            }
            AskKind::Question if self.dice.happens(600) => Answer::Reply,
            AskKind::Escalation if self.dice.happens(400) => Answer::Retry,
            AskKind::Escalation | AskKind::Question | AskKind::Budget | AskKind::Day => {
                match self.dice.below(5) {
                    0 | 1 => Answer::Skip,
                    2 => Answer::Waive,
                    3 => Answer::Reassign { role: Role::from("senior") },
                    _ => Answer::Revise,
                }
            }
        };
        let key = format!("{}-{}-{}", self.scene.seed, self.place, self.answers);
        let event = human(Decision::Answer { item: open.item, answer });
        let proof = Proof::Person { key: Some(key) };
        if self.goes_wrong(200) {
            self.again = Some((event.clone(), proof.clone()));
        }
        self.say(event, proof).await
    }

    /// Saves another revision and lets the run go on with it.
    async fn revise(&mut self) -> bool {
        let view = self.store.run_view(self.scene.run).await.unwrap();
        let is_met = |id: &NodeId| {
            let outcome = view.records.get(id).and_then(|record| record.state.outcome());
            matches!(outcome, Some(Outcome::Passed | Outcome::Skipped | Outcome::Waived | Outcome::Warned))
        };
        let old = self.scene.revisions.lock().unwrap().1.clone();
        let fixed: BTreeSet<NodeId> =
            old.graph.nodes().iter().map(|node| node.id.clone()).filter(is_met).collect();
        let new = revise(&mut self.dice, &old, &fixed);
        let digest = Digest::new(format!("sha256:{}.{}.{}", self.scene.seed, self.place, self.dice.draw()));
        let revision = NewRevision {
            workspace: self.scene.workspace,
            path: &self.scene.path,
            digest: &digest,
            source: "# Another",
            graph: &new.graph,
            by: "the author",
        };
        self.store.save_revision(&revision).await.unwrap();
        self.scene.revisions.lock().unwrap().0.insert(digest.clone(), new.graph.clone());
        let event = human(Decision::revise(digest, &old.graph, &new.graph, None));
        let applied = self.store.apply(self.scene.run, &event, &Proof::Person { key: None }, None).await;
        let is_news = self.is_news(applied.map(|applied| applied.duplicate));
        if is_news {
            self.scene.revisions.lock().unwrap().1 = new;
        }
        is_news
    }

    /// Begins the run, or goes on with it, once nobody is at work any more whose lease was taken back.
    async fn admit(&mut self) -> bool {
        self.store.release_lost(HOST, &[]).await.unwrap();
        // A plain apply would find the workspace busy for ever where a lease was taken back while the run paused.
        let admitted = self.store.admit_run(self.scene.run).await;
        self.is_news(admitted.map(|()| false))
    }

    async fn sweep(&mut self) -> bool {
        let mut did = false;
        self.store.release_lost(HOST, &[]).await.unwrap();
        for expired in self.store.expired(&[], 20).await.unwrap().into_iter().flatten() {
            if expired.run == self.scene.run {
                did |= self.say(expired.event(), expired.proof()).await;
            }
        }
        for timer in self.store.due_timers(&[], 20).await.unwrap().into_iter().flatten() {
            if timer.run == self.scene.run {
                did |= self.say(timer.event(), Proof::Clock).await;
            }
        }
        did
    }

    /// Says once more, or too late, what was said before.
    async fn come_again(&mut self) -> bool {
        match self.again.take() {
            Some((event, proof)) => self.say(event, proof).await,
            None => false,
        }
    }

    async fn say(&mut self, event: Event, proof: Proof) -> bool {
        let applied = self.store.apply(self.scene.run, &event, &proof, None).await;
        self.is_news(applied.map(|applied| applied.duplicate))
    }

    /// Says whether a call moved the run. Late and misplaced news is normal where several hands move one run; any other
    /// error is not.
    fn is_news(&self, applied: Result<bool, StoreError>) -> bool {
        let (is_news, met) = match applied {
            Ok(false) => (true, "applied"),
            Ok(true) => (false, "duplicate"),
            Err(StoreError::Refused(_)) => (false, "refused"),
            Err(StoreError::StaleLease) => (false, "stale lease"),
            Err(StoreError::WorkspaceBusy { .. }) => (false, "busy"),
            Err(error) => panic!("seed {}: {error}: {error:?}", self.scene.seed),
        };
        self.scene.met.lock().unwrap().insert(met);
        if is_news {
            self.scene.movers.lock().unwrap().push(self.place);
        }
        is_news
    }
}

fn is_agents(claimed: &Claimed) -> bool {
    matches!(claimed.item.work, Work::Agent { .. })
}

fn released(at: &At) -> Event {
    Event::Agent(AgentEvent::new(at.clone(), AgentSaid::Released))
}
