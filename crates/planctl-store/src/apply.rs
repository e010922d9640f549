//! The only writer of runs: feeds one event to one run, all or nothing.
//!
//! Two round trips carry a transition. The first reads the run's row, the records the event touches, the item that
//! proves it, and the database's time. The second calls a function of the database (migration 0044) that writes everything
//! that follows and commits by itself. Where this process wrote the run last, the first one is left out (see [`snapshot`]).
//!
//! No row is locked between the two. The run's row keeps two writers apart: the function updates it
//! `where seq = … and chain = …`, as they were read, so of two writers that read the same state one commits and the other is
//! late; it reads again and decides again (see also [`lineage`]). The item is fenced in the same way by its generation and token:
//! where the lease is another one, the function raises an error, which undoes the whole commit. So a transition is decided on
//! exactly the state that it changes (P1, P8), a stale holder changes nothing (P4, P5), and no lock is held while the daemon
//! thinks, nor for ever where it dies between the two.
//!
//! A connection that breaks during the second statement leaves its outcome unknown. Each call draws a command id that
//! is stored with its input, so the retry looks whether its event is in the history already and never applies it twice
//! (P2).

mod group_commit;
mod lineage;
mod next;
mod read;
mod snapshot;
mod write;

use std::sync::Arc;
use std::time::Duration;

use planctl_engine::{
    Advance, ClockEvent, Decision, Effect, Event, Fact, Graph, HarnessResult, Head, HumanEvent, ItemId,
    Refusal, Run, RunId, RunStatus, Scope, advance, initial_scope,
};
use sqlx::Row;
use uuid::Uuid;

use crate::attendance::LeftRun;
use crate::cache::{Committed, RunMeta, RunSnapshot};
use crate::claimed::Claimed;
use crate::commit_queue::CommitError;
use crate::connections::RetryPolicy;
use crate::error::{Failure, StoreError, classify, has_code, violates_constraint};
use crate::history::{self, Input, Shared};
use crate::holder::NextClaim;
use crate::proof::Proof;
use crate::store::Store;
use crate::token::Token;

use next::{Lease, Next, claimed_item};
pub(crate) use read::{READ, READ_CLAIMED_NEXT, READ_COMMAND, READ_DUPLICATE, READ_OWN_COMMAND};
pub(crate) use write::{COMMIT, REFUSE};

/// The durable result of one event.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The number of the newest line of history that it wrote.
    pub seq: i64,
    /// The run's head after it; of a duplicate, the head as it is.
    pub head: Head,
    /// The facts that followed.
    pub facts: Vec<Fact>,
    /// The item that the caller claimed with its report.
    pub claimed_next: Option<Claimed>,
    /// Says that the event had been applied before and that this call changed nothing.
    pub duplicate: bool,
}

/// How often a lost race is run again.
const RACES_MAX: u32 = 100;
/// How often more records are loaded before all are.
const LOADS_MAX: u32 = 4;

/// One call of `apply`, over all its tries.
struct Call<'a> {
    run: RunId,
    event: &'a Event,
    proof: &'a Proof,
    next_claim: Option<&'a NextClaim>,
    command: Uuid,
    token: Token,
    scope: Scope,
    /// Says that the run need not be read where this process wrote it last.
    trusts_snapshot: bool,
    /// Says that no time has to be taken off in which nobody worked on the run.
    is_attended: bool,
    /// Says that it is written alone: its outcome, written with others, is unknown.
    is_written_alone: bool,
    /// Says that work may be leased to one who waits for it.
    serves_waiting: bool,
    snapshot: Option<Box<RunSnapshot>>,
}

impl<'a> Call<'a> {
    fn new(run: RunId, event: &'a Event, proof: &'a Proof, next_claim: Option<&'a NextClaim>) -> Call<'a> {
        Call {
            run,
            event,
            proof,
            next_claim,
            command: crate::random::uuid(),
            token: Token::generate(),
            scope: Scope::Nodes(std::collections::BTreeSet::new()),
            trusts_snapshot: matches!(proof, Proof::Lease { .. }),
            is_attended: matches!(event, Event::Clock(ClockEvent::Unattended { .. })),
            is_written_alone: false,
            serves_waiting: true,
            snapshot: None,
        }
    }
}

/// A transition that is decided and about to be written.
struct Decided {
    before: read::Loaded,
    after: Advance,
    input: Input,
    /// The item that proves the input, and the generation of its lease.
    item: Option<(ItemId, i64)>,
    /// The call that brings the input.
    command: Uuid,
    meta: Arc<RunMeta>,
    graph: Arc<Graph>,
    lines: Vec<history::Draft>,
    next: Option<Next>,
}

/// How one try ended short of success.
enum ApplyError {
    /// Another writer came first.
    Race,
    /// The database was away; a decided transition may have been written.
    Outage(sqlx::Error, Option<Arc<Decided>>),
    /// A transition was to be written with others and may have been.
    Unsure(Arc<Decided>),
    /// Nobody worked on the run for a while, and that has to be said first.
    Unattended(LeftRun),
    /// The same news was applied before; this is what it was answered.
    Answered(Box<Applied>),
    /// No further try.
    Final(StoreError),
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> ApplyError {
        ApplyError::Final(error)
    }
}

impl From<sqlx::Error> for ApplyError {
    fn from(error: sqlx::Error) -> ApplyError {
        match classify(&error) {
            Failure::Outage | Failure::Retryable => ApplyError::Outage(error, None),
            Failure::Denied | Failure::Defect => ApplyError::Final(error.into()),
        }
    }
}

impl Store {
    /// Feeds one event to one run. No other function writes a run.
    ///
    /// With `next_claim`, the caller leases an item that the event dispatches in the same transaction, if its host has the
    /// workspace and the item is due and needs no locks. Otherwise work for agents is leased so to one who waits for it (see
    /// [`Store::serve_waiting`]). A repeated call answers as the first did, with [`Applied::duplicate`] set.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] and [`StoreError::StaleLease`] where the news does not fit; [`StoreError::WorkspaceBusy`]
    /// where the run would begin and another has its workspace; [`StoreError::KeyReused`]; and those of the connection
    /// once the deadline of the settings has passed.
    pub async fn apply(
        &self,
        run: RunId,
        event: &Event,
        proof: &Proof,
        next_claim: Option<&NextClaim>,
    ) -> Result<Applied, StoreError> {
        proof.check(event)?;
        let mut call = Call::new(run, event, proof, next_claim);
        let mut retries = RetryPolicy::new(self.settings());
        let mut races = 0;
        let mut turn = None;
        let mut unknown: Option<Arc<Decided>> = None;
        loop {
            let failed = match self.try_apply(&mut call, unknown.as_deref()).await {
                Ok(applied) => return Ok(applied),
                Err(failed) => failed,
            };
            call.distrust_snapshot();
            match failed {
                ApplyError::Race if races == RACES_MAX => return Err(StoreError::Contended { run }),
                ApplyError::Race => {
                    races += 1;
                    if turn.is_none() {
                        turn = Some(self.races().wait_turn(run).await);
                    } else {
                        // Another process was quicker, or a caller here that has lost no race yet.
                        wait_after_race(races).await;
                    }
                }
                ApplyError::Outage(error, decided) => {
                    turn = None;
                    unknown = decided.or(unknown);
                    retries.wait_or_fail(error).await?;
                }
                ApplyError::Unsure(decided) => unknown = Some(decided),
                ApplyError::Unattended(left) => {
                    // It takes a turn of its own.
                    turn = None;
                    Box::pin(self.take_off(&left)).await?;
                }
                ApplyError::Answered(applied) => return Ok(*applied),
                ApplyError::Final(error) => return Err(error.in_run(run)),
            }
        }
    }

    /// Returns the refusal that a person's decision about a run would meet now, and writes nothing. The decision itself may still be
    /// refused or allowed by events before it.
    ///
    /// # Errors
    ///
    /// Those of reading the run.
    pub async fn refusal_of(&self, run: RunId, event: &Event) -> Result<Option<Refusal>, StoreError> {
        let proof = Proof::Person { key: None };
        let mut call = Call { is_attended: true, ..Call::new(run, event, &proof, None) };
        match self.decide(&mut call).await {
            Err(ApplyError::Final(StoreError::Refused(refusal))) => Ok(Some(refusal)),
            Err(ApplyError::Final(error)) => Err(error.in_run(run)),
            Err(ApplyError::Outage(error, _)) => Err(error.into()),
            Ok(_)
            | Err(
                ApplyError::Race
                | ApplyError::Unsure(_)
                | ApplyError::Unattended(_)
                | ApplyError::Answered(_),
            ) => Ok(None),
        }
    }

    /// Takes off the time in which nobody worked on a run, unless another process did so first.
    ///
    /// # Errors
    ///
    /// As [`Store::apply`].
    pub(crate) async fn take_off(&self, left: &LeftRun) -> Result<(), StoreError> {
        match self.apply(left.run, &left.event(), &Proof::Clock, None).await {
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn try_apply(&self, call: &mut Call<'_>, unknown: Option<&Decided>) -> Result<Applied, ApplyError> {
        if let Some(applied) = self.read_applied(call, unknown).await? {
            return Ok(applied);
        }
        let decided = match self.decide(call).await {
            Ok(decided) => decided,
            Err(failed) => return self.answer_if_applied(call, unknown, failed).await,
        };
        match self.write(call, &decided).await {
            Ok(row) => {
                let lease = row
                    .try_get::<Option<i64>, _>("generation")?
                    .map(|_| Lease::from_row(&row))
                    .transpose()?;
                let leased = lease.map(|lease| claimed_item(call, &decided, lease)).transpose()?;
                Ok(finish_apply(self, call, &decided, leased, row.try_get("served")?))
            }
            Err(CommitError::Failed(error)) => Err(self.classify_commit_error(call, decided, error).await),
            Err(CommitError::Conflict) => Err(ApplyError::Race),
            Err(CommitError::Unknown) => {
                call.is_written_alone = true;
                Err(ApplyError::Unsure(decided))
            }
        }
    }

    /// Returns what the news did where it has been applied already: by an earlier try of this call that was still on its way, or
    /// under the same key by another.
    async fn read_applied(
        &self,
        call: &mut Call<'_>,
        unknown: Option<&Decided>,
    ) -> Result<Option<Applied>, ApplyError> {
        if let Some(decided) = unknown
            && self.read_own_command(call, decided).await?
        {
            let leased = self.read_leased(call, decided).await?;
            return Ok(Some(finish_apply(self, call, decided, leased, true)));
        }
        self.read_command(call).await
    }

    /// Answers in place of a refusal where the news was refused because it has been applied in the meantime.
    async fn answer_if_applied(
        &self,
        call: &mut Call<'_>,
        unknown: Option<&Decided>,
        failed: ApplyError,
    ) -> Result<Applied, ApplyError> {
        if matches!(
            failed,
            ApplyError::Race | ApplyError::Outage(..) | ApplyError::Unsure(_) | ApplyError::Unattended(_)
        ) {
            return Err(failed);
        }
        if let Some(applied) = self.read_applied(call, unknown).await? {
            return Ok(applied);
        }
        if let ApplyError::Final(StoreError::Refused(refusal)) = &failed {
            self.record_refusal(call, &refusal.to_string()).await?;
        } else if matches!(failed, ApplyError::Final(StoreError::StaleLease)) {
            self.record_refusal(call, "the lease is over").await?;
            // Any report of the holder of a revoked lease acknowledges the revocation.
            if let Proof::Lease { item, generation, token } = call.proof {
                self.acknowledge_with_token(item, *generation, token).await?;
            }
        }
        Err(failed)
    }

    /// Reads and decides; loads more where the engine asks for it.
    async fn decide(&self, call: &mut Call<'_>) -> Result<Arc<Decided>, ApplyError> {
        let mut loads = 0;
        loop {
            let meta = self.run_meta(call.run).await?;
            let digest = match revised_to(call.event) {
                Some(revision) => self.graph_of_revision(meta.plan, revision).await?,
                None => meta.graph.clone(),
            };
            let graph = self.graph(&digest).await?;
            call.scope =
                initial_scope(&graph, call.event).union(std::mem::replace(&mut call.scope, Scope::All));
            let before = match self.cached_snapshot(call, &digest, &graph) {
                Some(before) => before,
                None => self.read(call).await?,
            };
            if revised_to(call.event).is_none() && before.graph != digest {
                // Another process revised the run since its graph was looked up.
                let meta = RunMeta { graph: before.graph.clone(), ..(*meta).clone() };
                self.cache().keep_run(call.run, Arc::new(meta));
                continue;
            }
            self.check_attendance(call, &before).await?;
            self.check_proof(call, &before).await?;
            self.check_change(call.event, &before, &graph).await?;
            let run =
                Run::from_parts(call.run, before.head.clone(), call.scope.clone(), before.records.clone())
                    .with_noted(before.noted.clone());
            let event = before.with_noted_usage(call.event)?;
            match advance(&graph, &run, &event, before.now) {
                // The holders of revoked items may have reported usage, which the snapshot does not hold.
                Ok(after) if before.is_cached && withdraws_items(&after.effects) => call.distrust_snapshot(),
                Ok(after) => {
                    let event = event.into_owned();
                    let mut decided = assemble_decided(call, event, before, after, digest, meta, graph);
                    decided.next = self.next_item(call, &decided);
                    return Ok(Arc::new(decided));
                }
                Err(Refusal::NotLoaded(more)) => {
                    loads += 1;
                    let more = if loads > LOADS_MAX { Scope::All } else { more };
                    call.scope = more.union(std::mem::replace(&mut call.scope, Scope::All));
                }
                Err(_) if before.is_cached => call.distrust_snapshot(),
                Err(refusal) => return Err(ApplyError::Final(StoreError::Refused(refusal))),
            }
        }
    }

    /// Has the time in which no process worked on the run taken off first, so that this event doesn't count it.
    async fn check_attendance(&self, call: &mut Call<'_>, before: &read::Loaded) -> Result<(), ApplyError> {
        if call.is_attended || before.is_cached || before.head.clock_since.is_none() {
            return Ok(());
        }
        call.is_attended = true;
        match self.left_at(call.run).await? {
            Some(since) => Err(ApplyError::Unattended(LeftRun { run: call.run, since })),
            None => Ok(()),
        }
    }

    /// Refuses a revision whose change was made against another one than the run has: a step that settled in between
    /// would not be looked at.
    async fn check_change(
        &self,
        event: &Event,
        before: &read::Loaded,
        new: &Graph,
    ) -> Result<(), ApplyError> {
        let Event::Human(HumanEvent { decision, .. }) = event else { return Ok(()) };
        let Decision::Revise { revision, budget_max, .. } = decision else { return Ok(()) };
        let old = self.graph(&before.graph).await?;
        let is_as_made = *decision == Decision::revise(revision.clone(), &old, new, *budget_max);
        if before.head.status == RunStatus::Paused && !is_as_made {
            return Err(ApplyError::Final(StoreError::Refused(Refusal::RevisedMeanwhile)));
        }
        Ok(())
    }

    /// Says what an error of the writing statement means for the call.
    async fn classify_commit_error(
        &self,
        call: &mut Call<'_>,
        decided: Arc<Decided>,
        error: sqlx::Error,
    ) -> ApplyError {
        if violates_constraint(&error, "commands_pkey") {
            return ApplyError::Race;
        }
        if violates_constraint(&error, "items_token") {
            // The one who waits was leased something by a transition whose answer was lost, and finds it when it looks.
            call.serves_waiting = false;
            return ApplyError::Race;
        }
        if has_code(&error, "PL002") {
            // The item was renewed, lost or revoked since it was read; the next read shows which.
            return ApplyError::Race;
        }
        if violates_constraint(&error, "one_active_run_per_workspace") {
            return match self.run_that_has_the_workspace_of(call.run).await {
                Ok(Some(run)) => ApplyError::Final(StoreError::WorkspaceBusy { run }),
                Ok(None) => ApplyError::Race,
                Err(error) => ApplyError::Final(error),
            };
        }
        match classify(&error) {
            Failure::Outage => ApplyError::Outage(error, Some(decided)),
            Failure::Retryable => ApplyError::Outage(error, None),
            Failure::Denied | Failure::Defect => ApplyError::Final(error.into()),
        }
    }
}

/// Waits before a lost race is run again: not at all at first, since races are rare, and longer the more were lost.
async fn wait_after_race(races: u32) {
    const AT_ONCE: u32 = 3;
    if let Some(more) = races.checked_sub(AT_ONCE).filter(|more| *more > 0) {
        tokio::time::sleep(Duration::from_millis(u64::from(more.min(20)))).await;
    }
}

fn assemble_decided(
    call: &Call<'_>,
    event: Event,
    before: read::Loaded,
    after: Advance,
    digest: planctl_engine::Digest,
    meta: Arc<RunMeta>,
    graph: Arc<Graph>,
) -> Decided {
    let brings_graph = before.seq == 0 || revised_to(call.event).is_some();
    let input = Input { event, graph: brings_graph.then_some(digest), noted: after.noted.clone() };
    let shared =
        Shared { at: before.now, cause: call.event.kind(), item: call.proof.item(), command: call.command };
    let of = (&before.records, &after.run);
    let lines = history::draft_lines((before.seq, before.chain), &shared, &input, &after.facts, of);
    let item = call.proof.item().map(|(item, generation)| (item.clone(), generation));
    Decided { before, after, input, item, command: call.command, meta, graph, lines, next: None }
}

fn revised_to(event: &Event) -> Option<&planctl_engine::Digest> {
    match event {
        Event::Human(human) => match &human.decision {
            Decision::Revise { revision, .. } => Some(revision),
            Decision::Submit
            | Decision::Answer { .. }
            | Decision::Vote { .. }
            | Decision::Cancel
            | Decision::Pause
            | Decision::Resume { .. } => None,
        },
        Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => None,
    }
}

fn withdraws_items(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Withdraw(_)))
}

impl Decided {
    fn seq(&self) -> i64 {
        self.lines.last().map_or(self.before.seq, |line| line.seq)
    }

    /// Returns the hash that the run's history ends in.
    fn hash(&self) -> [u8; 32] {
        self.lines.last().map_or(self.before.chain, |line| line.hash)
    }
}

impl Call<'_> {
    /// Has the run read from here on.
    fn distrust_snapshot(&mut self) {
        self.trusts_snapshot = false;
        self.snapshot = None;
    }
}

fn finish_apply(
    store: &Store,
    call: &mut Call<'_>,
    decided: &Decided,
    leased: Option<Claimed>,
    served: bool,
) -> Applied {
    store.cache_snapshot(call, decided);
    let committed = Committed { seq: decided.seq(), hash: decided.hash() };
    store.cache().keep_committed(decided.after.run.id, committed);
    if let Some(graph) = decided.input.graph.clone() {
        store.cache().keep_run(decided.after.run.id, Arc::new(RunMeta { graph, ..(*decided.meta).clone() }));
    }
    store.notifier().notify(decided.after.run.id, decided.wake_for(call.event, leased.as_ref(), served));
    let claimed_next = match decided.next.as_ref().and_then(|next| next.waiting.as_deref()) {
        Some(waiting) => {
            leased.into_iter().for_each(|leased| waiting.serve(leased));
            None
        }
        None => leased,
    };
    Applied {
        seq: decided.seq(),
        head: decided.after.run.head.clone(),
        facts: decided.after.facts.clone(),
        claimed_next,
        duplicate: false,
    }
}

/// Says whether an item is one that an event's try has in the lane of its speaker.
pub(crate) fn is_of_speaker(item: &ItemId, run: RunId, event: &Event) -> bool {
    let Some(at) = event.at() else { return false };
    let is_gate = || item.is_gate(run, at);
    let is_rehearsal = || item.is_rehearsal(run, at);
    let is_checkpoint = || item.is_checkpoint(run, at);
    let is_sub_plan = || *item == ItemId::sub_plan(run, at);
    let is_branches = || *item == ItemId::branches(run, at);
    match event {
        Event::Agent(_) => *item == ItemId::agent(run, at),
        Event::Harness(event) => match event.found {
            HarnessResult::Evidence(_) => is_gate(),
            HarnessResult::Rehearsed(_) => is_rehearsal(),
            // Files are recorded at a checkpoint, and before the work of a step that a judge is asked about.
            HarnessResult::Recorded { .. } => is_checkpoint() || is_rehearsal(),
            HarnessResult::Restored => is_checkpoint(),
            HarnessResult::Forked { .. } | HarnessResult::Merged { .. } | HarnessResult::Conflicted(_) => {
                is_branches()
            }
            HarnessResult::Begun { .. } | HarnessResult::Ended(_) => is_sub_plan(),
            HarnessResult::Nothing(_) => {
                is_gate() || is_rehearsal() || is_checkpoint() || is_branches() || is_sub_plan()
            }
        },
        Event::Human(_) | Event::Clock(_) => {
            *item == ItemId::agent(run, at)
                || is_gate()
                || is_rehearsal()
                || is_checkpoint()
                || is_branches()
                || is_sub_plan()
        }
    }
}
