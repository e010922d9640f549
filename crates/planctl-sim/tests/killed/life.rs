//! One life of a run's driver: its claims, and one transition at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    AgentEvent, AgentSaid, Decision, Ending, Event, Evidence, Excerpt, HarnessEvent, HarnessResult, ItemId,
    Purpose, Report, Resources, Role, RunId, RunStatus, Work,
};
use planctl_sim::with_yes_of_judge;
use planctl_store::{Claim, ClaimLane, Claimed, Holder, Proof, Store, StoreError};

use super::ground::{self, HOST, human};
use super::script::Script;

pub struct Life {
    store: Store,
    run: RunId,
    instance: String,
    /// The items that this life holds.
    held: BTreeMap<ItemId, Claimed>,
}

impl Life {
    pub fn new(store: Store, run: RunId, instance: String) -> Life {
        Life { store, run, instance, held: BTreeMap::new() }
    }

    /// Ends one lease of a life before this one; says whether there was any. A revoked lease goes on nowhere.
    pub async fn reap(&self) -> bool {
        let dead = self.store.holders(HOST).await.unwrap();
        let instances: Vec<String> = dead.iter().map(|(_, instance)| instance.clone()).collect();
        self.store.release_lost(HOST, &instances).await.unwrap();
        for instance in instances {
            let left = self.store.leases_of_dead_instance(HOST, &instance, &[]).await.unwrap();
            if let Some(lease) = left.into_iter().flatten().find(|lease| lease.run == self.run) {
                self.apply(&lease.event(), &lease.proof()).await;
                return true;
            }
        }
        false
    }

    /// Makes one transition; says whether there was one to make.
    pub async fn turn(&mut self, script: &Script) -> bool {
        let status = self.store.run(self.run).await.unwrap().head.status;
        match status {
            RunStatus::Ended { .. } => {
                // The items that it holds were withdrawn, and end.
                while let Some((_, claimed)) = self.held.pop_first() {
                    self.store.acknowledge(&claimed).await.unwrap();
                }
                return self.resume(script, status).await;
            }
            RunStatus::Queued { .. } => self.store.admit_run(self.run).await.unwrap(),
            RunStatus::Awaiting => self.answer(script).await,
            RunStatus::New | RunStatus::Paused => panic!("a script has no place for {status:?}"),
            RunStatus::Active => {
                // An item that rests before another try becomes claimable in time.
                for _ in 0..30_000 {
                    self.claim_all().await;
                    while let Some((_, claimed)) = self.held.pop_first() {
                        if self.work(&claimed, script).await {
                            return true;
                        }
                    }
                    if self.is_moved_by_others(script).await {
                        return true;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                panic!("nothing moves the run");
            }
        }
        true
    }

    async fn claim_all(&mut self) {
        let roles = ["coder", "reviewer", "senior", "strong", "chief", "last"].map(Role::from).to_vec();
        for lane in [ClaimLane::Agent(roles), ClaimLane::Gate] {
            let holder = Holder {
                host: HOST.to_owned(),
                boot: "boot".to_owned(),
                instance: self.instance.clone(),
                own: true,
            };
            let lease = Duration::from_secs(600);
            let claim = Claim { lane, run: Some(self.run), except: Vec::new(), holder, lease };
            while let Some(claimed) = self.store.claim(&claim).await.unwrap() {
                self.held.insert(claimed.item.id.clone(), claimed);
            }
        }
    }

    /// Does what was claimed; says whether it was still wanted.
    async fn work(&self, claimed: &Claimed, script: &Script) -> bool {
        let at = claimed.item.at.clone();
        let event = match &claimed.item.work {
            Work::Agent { .. } => Event::Agent(AgentEvent {
                noted: None,
                said: AgentSaid::Reported(Report {
                    text: Excerpt::default(),
                    gave_up: false,
                    ending: None,
                    duration: Duration::ZERO,
                    usage: None,
                    hints: script.hints(&at),
                    circumstances: None,
                    observation: None,
                }),
                at,
            }),
            Work::Harness { purpose } => {
                let found = match purpose {
                    Purpose::Record => HarnessResult::Recorded { name: format!("{}.{}", at.node, at.visit) },
                    Purpose::Restoration => HarnessResult::Restored,
                    Purpose::Fork => HarnessResult::Forked { base: format!("{}.{}", at.node, at.visit) },
                    Purpose::Merge => script.merged(&at),
                    Purpose::SubPlan => script.run_within(&at),
                    Purpose::Verdict => self.verdict(claimed, script).await,
                    Purpose::Rehearsal => HarnessResult::Rehearsed(Box::new(evidence(claimed, script))),
                };
                Event::Harness(HarnessEvent { at, found })
            }
            Work::Human { .. } => panic!("nobody claims a question"),
        };
        match self.store.apply(self.run, &event, &claimed.proof(), None).await {
            Ok(applied) => !applied.duplicate,
            Err(StoreError::StaleLease) => false,
            Err(error) => panic!("{}: {error}: {event:?}", self.instance),
        }
    }

    async fn verdict(&self, claimed: &Claimed, script: &Script) -> HarnessResult {
        let node = &claimed.item.at.node;
        let contract = claimed.graph.gated(node).expect("a gate is of a contract").contract;
        let mut view = self.store.run_view(self.run).await.unwrap();
        with_yes_of_judge(evidence(claimed, script), contract, view.records.remove(node).as_ref())
    }

    /// Answers what is asked, or lets a timer that is due count; says whether there was either.
    async fn is_moved_by_others(&self, script: &Script) -> bool {
        let asks = self.store.asks(Some(self.run), None).await.unwrap();
        if asks.iter().any(|ask| ask.is_open && !script.leaves_to_time(&ask.ask)) {
            self.answer(script).await;
            return true;
        }
        let due = self.store.due_timers(&[], 100).await.unwrap();
        let own = due.into_iter().flatten().find(|timer| timer.run == self.run);
        if let Some(timer) = &own {
            self.apply(&timer.event(), &Proof::Clock).await;
        }
        own.is_some()
    }

    async fn answer(&self, script: &Script) {
        let asks = self.store.asks(Some(self.run), None).await.unwrap();
        let mut open: Vec<_> = asks.iter().filter(|ask| ask.is_open).collect();
        open.retain(|ask| !script.leaves_to_time(&ask.ask));
        let first = open.into_iter().min_by_key(|ask| ask.number).expect("something is asked");
        let answered = self.heard("human.answered").await;
        let decision =
            Decision::Answer { item: first.item.clone(), answer: script.answer(&first.ask, answered) };
        self.apply(&human(decision), &Proof::Person { key: None }).await;
    }

    /// Takes a failed run up again, as often as the script wants.
    async fn resume(&self, script: &Script, status: RunStatus) -> bool {
        let goes_on = self.heard("human.resumed").await < script.resumes && script.may_resume(status);
        if goes_on {
            self.apply(&human(Decision::Resume { from: None }), &Proof::Person { key: None }).await;
        }
        goes_on
    }

    /// Counts inputs of a kind, as history tells: a life remembers nothing of those before it.
    async fn heard(&self, kind: &str) -> usize {
        let history = ground::history(&self.store, self.run).await;
        history.iter().filter(|(_, event, _)| event.kind() == kind).count()
    }

    async fn apply(&self, event: &Event, proof: &Proof) {
        let applied = self.store.apply(self.run, event, proof, None).await;
        let applied = applied.unwrap_or_else(|error| panic!("{}: {error}: {event:?}", self.instance));
        assert!(!applied.duplicate, "each piece of news is told once: {event:?}");
    }
}

fn evidence(claimed: &Claimed, script: &Script) -> Evidence {
    let at = &claimed.item.at;
    let contract = claimed.graph.gated(&at.node).expect("a gate is of a contract").contract;
    let fails = i32::from(script.fails(at));
    Evidence {
        contract: contract.digest.clone(),
        ending: Ending::Exited { code: i32::from(contract.expect) + fails },
        duration: Duration::ZERO,
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
