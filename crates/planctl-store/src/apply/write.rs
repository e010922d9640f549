//! The second round trip: one statement that writes a whole transition, or nothing.

use planctl_engine::{Answer, Decision, Effect, End, Event, NodeId, NodeState, Record, RunStatus, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::read::body_hash;
use super::{Call, Decided, Setback, revised_to};
use crate::effects;
use crate::listen::Brings;
use crate::proof::Proof;
use crate::queue::Claimed;
use crate::rows::{node_word, status_word, stored_run, stored_time, time_at, to_json};
use crate::store::Store;

/// Where the time was assumed, the database says whether it is near enough.
macro_rules! time_holds {
    () => {
        "case when $7::boolean then $6::timestamptz between
    clock_timestamp() - interval '2 seconds' and clock_timestamp() + interval '100 milliseconds' else true end"
    };
}

/// The history and the records, behind the fence.
macro_rules! lines_and_records {
    () => {
        "\
), written as (
  insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  select $1::uuid, l.seq, $6::timestamptz, l.kind, l.name, $11::text, l.node, l.visit, l.attempt,
    case when l.kind = 'input' then $8::text end, case when l.kind = 'input' then $9::bigint end,
    case when l.kind = 'input' then $12::uuid end, l.body::json, l.hash
  from fence, unnest($13::bigint[], $14::text[], $15::text[], $16::text[], $17::int[], $18::int[], $19::text[],
    $20::bytea[]) as l (seq, kind, name, node, visit, attempt, body, hash)
  where fence.holds
), noted as (
  insert into nodes (run, node, state, record)
  select $1::uuid, n.node, n.state, n.record::json
  from fence, unnest($21::text[], $22::text[], $23::text[]) as n (node, state, record)
  where fence.holds
  on conflict (run, node) do update set state = excluded.state, record = excluded.record
"
    };
}

/// Writes what nearly every report and verdict of a running run does: the one item that proves it goes, and at most one
/// comes. The fence raises where the run or the item is not what was decided on.
///
/// The server prepares each part of a statement anew for every call, so a part that is left out is work that it need not do.
pub(crate) const WRITE_STEP: &str = concat!(
    "\
with moved as (
  update runs set seq = $3::bigint, chain = $4::bytea, head = $5::json
  where id = $1::uuid and seq = $2::bigint and ",
    time_holds!(),
    "
  returning served, revision, approval, settings
), proven as (
  delete from items i where i.id = $8::text and i.generation = $9::bigint and i.state = 'leased' and i.token_hash = $10::bytea
    and exists (select from moved)
  returning i.id
), fence as materialized (
  select planctl_fence(exists (select from moved), exists (select from proven)) as holds
",
    lines_and_records!(),
    "), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks)
  select $31::text, $1::uuid, $32::text, $33::int, $34::int, $35::text, $36::text,
    case when $24::bytea is null then 'ready' else 'leased' end, $37::json, $38::timestamptz, $39::timestamptz, $40::bigint,
    case when $24::bytea is null then 0 else 1 end, $24::bytea, $25::text, $26::text, $27::text, $28::boolean,
    clock_timestamp() + $29::bigint * interval '1 microsecond',
    case when $24::bytea is not null then clock_timestamp() + $40::bigint * interval '1 microsecond' end,
    $6::timestamptz, case when $35::text = 'agent' and m.served && array['*', $36::text] then $30::text end,
    string_to_array($41::text, ',')
  from fence, moved m where fence.holds and $31::text is not null
  returning generation, lease_until, hard_deadline
)
select clock_timestamp() as now, nullif(p.generation, 0) as generation, p.lease_until, p.hard_deadline,
  m.revision, m.approval, m.settings::text as settings
from moved m, fence left join put p on true where fence.holds"
);

/// Writes everything that any event can do: several items, asks, timers, a person's key, a move of the plan, a ring of the
/// bell too. The order is run, item, rest.
pub(crate) const WRITE_ALL: &str = concat!(
    "\
with moved as (
  update runs set seq = $3::bigint, chain = $4::bytea, head = $5::json, status = $43::text, active = $44::boolean,
    revision = coalesce($45::text, revision), graph = coalesce($46::text, graph),
    started_at = case when $44::boolean then coalesce(started_at, $6::timestamptz) else started_at end,
    turn_at = case when $43::text = 'queued' then case when status = 'queued' then turn_at else $48::timestamptz end end,
    ended_at = case when $43::text <> 'ended' then null when status = 'ended' then ended_at else $6::timestamptz end
  where id = $1::uuid and seq = $2::bigint and ",
    time_holds!(),
    "
  returning id, served, revision, approval, settings
), proven as (
  select i.id from items i
  where i.id = $8::text and i.generation = $9::bigint and i.state = 'leased'
    and case when $10::bytea is not null then i.token_hash = $10
        else i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.instance = $47::text end
    and exists (select from moved)
  for update
), fence as materialized (
  select planctl_fence(exists (select from moved), $8::text is null or exists (select from proven)) as holds
",
    lines_and_records!(),
    "), removed as (
  delete from items i using fence where fence.holds and i.id = any($49::text[])
), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks)
  select p.id, $1::uuid, p.node, p.visit, p.attempt, p.lane, p.target,
    case when p.taken then 'leased' else 'ready' end, p.work::json, p.available_at, p.due_at, p.span,
    case when p.taken then 1 else 0 end, case when p.taken then $24::bytea end,
    case when p.taken then $25::text end, case when p.taken then $26::text end,
    case when p.taken then $27::text end, case when p.taken then $28::boolean end,
    case when p.taken then clock_timestamp() + $29::bigint * interval '1 microsecond' end,
    case when p.taken then clock_timestamp() + p.span * interval '1 microsecond' end, $6::timestamptz,
    case when p.lane = 'agent' and (select served from moved) && array['*', p.target] then $30::text end,
    string_to_array(p.locks, ',')
  from fence, unnest($31::text[], $32::text[], $33::int[], $34::int[], $35::text[], $36::text[], $37::text[],
    $38::timestamptz[], $39::timestamptz[], $40::bigint[], $42::boolean[], $41::text[])
    as p (id, node, visit, attempt, lane, target, work, available_at, due_at, span, taken, locks)
  where fence.holds
  on conflict (id) do update set state = excluded.state, work = excluded.work, target = excluded.target,
    available_at = excluded.available_at, due_at = excluded.due_at, span_micros = excluded.span_micros,
    generation = items.generation + 1, token_hash = excluded.token_hash, host = excluded.host, boot = excluded.boot,
    instance = excluded.instance, own = excluded.own, lease_until = excluded.lease_until,
    hard_deadline = excluded.hard_deadline, served_on = excluded.served_on, locks = excluded.locks
  returning id, node, visit, attempt, lane, work, state, generation, lease_until, hard_deadline
), taken as (
  select p.generation, p.lease_until, p.hard_deadline, m.revision, m.approval, m.settings::text as settings
  from put p, moved m where p.state = 'leased'
), asked as (
  insert into asks (item, run, node, visit, attempt, work, created_at)
  select id, $1::uuid, node, visit, attempt, work, $6::timestamptz from put where lane = 'human'
  on conflict (item) do update set work = excluded.work, closed_at = null
), closed as (
  update asks a set closed_at = $6::timestamptz from fence where fence.holds and a.item = any($49::text[])
), armed as (
  insert into timers (run, timer, at)
  select $1::uuid, t.timer, t.at from fence, unnest($50::text[], $51::timestamptz[]) as t (timer, at)
  where fence.holds
  on conflict (run, timer) do update set at = excluded.at
), disarmed as (
  delete from timers t using fence where fence.holds and t.run = $1::uuid and t.timer = any($52::text[])
), freed as (
  delete from locks l using fence where fence.holds and l.run = $1::uuid and l.node = any($60::text[])
), answered as (
  insert into commands (key, run, body_hash, seq, at)
  select $53::text, $1::uuid, $54::bytea, $2::bigint + 1, $6::timestamptz
  from fence where fence.holds and $53::text is not null
), moving as (
  select p.id, p.status, p.digest from plans p, runs r, fence
  where fence.holds and $55::text is not null and r.id = $1::uuid and p.id = r.plan
    and p.digest = coalesce($45::text, r.revision) and p.status = any($56::text[])
), moved_plan as (
  update plans p set status = $55::text, updated_at = $6::timestamptz from moving where p.id = moving.id
), recorded as (
  insert into plan_transitions (plan, from_status, to_status, by, why, digest, at)
  select id, status, $55::text, $57::text, $58::text, digest, $6::timestamptz from moving
), rung as (
  select pg_notify('planctl', $59::text) from fence where fence.holds and $59::text is not null
)
select fence.holds, clock_timestamp() as now, t.generation, t.lease_until, t.hard_deadline, t.revision, t.approval, t.settings,
  (select count(*) from rung) as rings
from fence left join taken t on true"
);

pub(crate) const REFUSE: &str = "insert into refusals (run, item, generation, name, reason, body) \
     values ($1, $2, $3, $4, $5, $6::json)";

/// A move of the plan's status that goes with a transition of its run.
struct PlanMove<'a> {
    to: &'static str,
    from: &'static [&'static str],
    by: &'a str,
    why: &'static str,
}

fn plan_move<'a>(event: &'a Event, before: RunStatus, after: RunStatus) -> Option<PlanMove<'a>> {
    if before == after {
        return None;
    }
    let (by, decision) = match event {
        Event::Human(human) => (human.by.as_str(), Some(&human.decision)),
        Event::Clock(_) => ("orchestrator", None),
        Event::Agent(_) | Event::Harness(_) => ("harness", None),
    };
    let is_rejected = matches!(decision, Some(Decision::Answer { answer: Answer::Reject, .. }));
    let (to, from, why): (&str, &[&str], &str) = match after {
        RunStatus::Queued { resuming: false } => ("approved", &["verified", "done", "failed"], "approved"),
        RunStatus::Active => ("in-progress", &["approved", "failed"], "a run began"),
        RunStatus::Paused => ("draft", &["in-progress"], "a revision was asked for"),
        RunStatus::Ended { end: End::Done } => ("done", &["in-progress"], "the run reached its exit"),
        RunStatus::Ended { end: End::Failed } => ("failed", &["in-progress"], "the run failed"),
        RunStatus::Ended { end: End::Aborted } => ("failed", &["in-progress"], "the run was aborted"),
        RunStatus::Ended { end: End::Cancelled } if is_rejected => {
            ("draft", &["verified", "approved"], "rejected")
        }
        RunStatus::Ended { end: End::Cancelled } => ("failed", &["in-progress"], "the run was cancelled"),
        RunStatus::Queued { resuming: true } | RunStatus::New | RunStatus::Awaiting => return None,
    };
    Some(PlanMove { to, from, by, why })
}

impl Decided {
    /// Returns the records that the transition changes.
    fn changed(&self) -> impl Iterator<Item = (&NodeId, &Record)> {
        let before = &self.before.records;
        self.after.run.records().iter().filter(move |(id, record)| before.get(*id) != Some(*record))
    }

    /// Returns the nodes that give their locks back: whatever one is in but for its check, nobody works on it now.
    fn freed(&self) -> impl Iterator<Item = &NodeId> {
        let has_locks = |node| self.graph.task(node).is_some_and(|task| !task.locks.is_empty());
        let at_rest = |record: &Record| !matches!(record.state, NodeState::Checking { .. });
        self.changed().filter(move |(node, record)| has_locks(node) && at_rest(record)).map(|(node, _)| node)
    }

    /// Returns whose work can be claimed now, but for what is taken along.
    pub(super) fn brings(&self, taken: Option<&Claimed>) -> Brings {
        let mut brings = Brings { agents: self.freed().next().is_some(), gates: false };
        for effect in &self.after.effects {
            let Effect::Dispatch(item) = effect else { continue };
            match item.work {
                Work::Agent { .. } => brings.agents = true,
                Work::Harness { .. } => brings.gates |= taken.is_none_or(|taken| taken.item.id != item.id),
                Work::Human { .. } => {}
            }
        }
        brings
    }
}

impl Store {
    /// Writes a decided transition; returns the row of the gate that was taken along.
    pub(super) async fn write(
        &self,
        call: &Call<'_>,
        decided: &Decided,
    ) -> Result<Option<PgRow>, sqlx::Error> {
        let before = &decided.before;
        let after = &decided.after.run;
        let answered = match call.event {
            Event::Human(human) => match &human.decision {
                Decision::Answer { item, .. } => Some(item),
                Decision::Submit | Decision::Cancel | Decision::Resume | Decision::Revise { .. } => None,
            },
            Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => call.proof.item().map(|(item, _)| item),
        };
        let gate = decided.gate(call).map(|item| &item.id);
        let effects = &decided.after.effects;
        let mut rows =
            effects::rows(effects, &decided.graph, &decided.fixed.host, before.now, answered, gate)
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        if let Event::Clock(planctl_engine::ClockEvent::Due { timer }) = call.event
            && !rows.armed.iter().any(|armed| *armed == timer.word())
        {
            rows.disarmed.push(timer.word().into_owned());
        }
        let changed: Vec<_> = decided.changed().collect();
        let (token_hash, dead_instance) = match call.proof {
            Proof::Lease { token, .. } => (Some(token.hash()), None),
            Proof::Expired { dead_instance, .. } => (None, dead_instance.as_deref()),
            Proof::Person { .. } | Proof::Clock | Proof::Submit => (None, None),
        };
        let take = call.take.filter(|_| gate.is_some());
        let plan = plan_move(call.event, before.head.status, after.head.status);
        // What a person decides must reach the processes that wait for it even if this one ends at once.
        let is_announced = self.settings().notifies && matches!(call.event, Event::Human(_));
        let payload = is_announced.then(|| self.payload(call.run, Brings::UNKNOWN));
        let lines = &decided.lines;
        let chain = lines.last().map_or(before.chain, |line| line.hash);
        let proof = call.proof.item();
        let freed: Vec<&str> = decided.freed().map(NodeId::as_str).collect();
        let is_step = !call.writes_all
            && freed.is_empty()
            && rows.is_step(proof.filter(|_| token_hash.is_some()).map(|(item, _)| item))
            && before.head.status == RunStatus::Active
            && after.head.status == RunStatus::Active;
        let puts = &rows.puts;
        // What both statements are given has the same numbers in both.
        let query = sqlx::query(if is_step { WRITE_STEP } else { WRITE_ALL })
            .bind(stored_run(call.run))
            .bind(before.seq)
            .bind(decided.seq())
            .bind(&chain[..])
            .bind(to_json(&after.head))
            .bind(stored_time(before.now))
            .bind(before.is_remembered)
            .bind(proof.map(|(item, _)| item.as_str()))
            .bind(proof.map(|(_, generation)| generation))
            .bind(token_hash)
            .bind(call.event.kind())
            .bind(call.command)
            .bind(lines.iter().map(|line| line.seq).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.kind).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.name).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.node.as_deref()).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.visit).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.attempt).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| line.body.as_str()).collect::<Vec<_>>())
            .bind(lines.iter().map(|line| &line.hash[..]).collect::<Vec<_>>())
            .bind(changed.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
            .bind(changed.iter().map(|(_, record)| node_word(&record.state)).collect::<Vec<_>>())
            .bind(changed.iter().map(|(_, record)| to_json(record)).collect::<Vec<_>>())
            .bind(take.map(|_| call.token.hash()))
            .bind(take.map(|take| take.holder.host.as_str()))
            .bind(take.map(|take| take.holder.boot.as_str()))
            .bind(take.map(|take| take.holder.instance.as_str()))
            .bind(take.map(|take| take.holder.own))
            .bind(take.map(|take| effects::micros(take.lease)))
            .bind(&decided.fixed.host);
        let query = if is_step {
            let put = puts.first();
            query
                .bind(put.map(|put| put.id.as_str()))
                .bind(put.map(|put| put.node.as_str()))
                .bind(put.map(|put| put.visit))
                .bind(put.map(|put| put.attempt))
                .bind(put.map(|put| put.lane))
                .bind(put.map(|put| put.target.as_str()))
                .bind(put.map(|put| put.work.as_str()))
                .bind(put.map(|put| put.available))
                .bind(put.map(|put| put.due))
                .bind(put.map(|put| put.span))
                .bind(put.and_then(|put| put.locks.as_deref()))
        } else {
            let revision = revised_to(call.event);
            query
                .bind(puts.iter().map(|put| put.id.as_str()).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.node.as_str()).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.visit).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.attempt).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.lane).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.target.as_str()).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.work.as_str()).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.available).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.due).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.span).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.locks.as_deref()).collect::<Vec<_>>())
                .bind(puts.iter().map(|put| put.is_taken).collect::<Vec<_>>())
                .bind(status_word(after.head.status))
                .bind(after.head.status == RunStatus::Active)
                .bind(revision.map(planctl_engine::Digest::as_str))
                .bind(revision.and(decided.input.graph.as_ref()).map(planctl_engine::Digest::as_str))
                .bind(dead_instance)
                .bind(stored_time(before.now.after(decided.graph.priority().delay())))
                .bind(rows.removed)
                .bind(rows.armed)
                .bind(rows.armed_at)
                .bind(rows.disarmed)
                .bind(call.proof.key())
                .bind(call.proof.key().map(|_| body_hash(call.event)))
                .bind(plan.as_ref().map(|plan| plan.to))
                .bind(plan.as_ref().map(|plan| plan.from.to_vec()))
                .bind(plan.as_ref().map(|plan| plan.by))
                .bind(plan.as_ref().map(|plan| plan.why))
                .bind(payload)
                .bind(freed)
        };
        let mut lent = self.connections().lend().await?;
        let result = query.fetch_one(&mut *lent).await;
        let row = lent.settle(result)?;
        self.told_time().tell(time_at(&row, "now")?);
        let is_taken = row.try_get::<Option<i64>, _>("generation")?.is_some();
        Ok(is_taken.then_some(row))
    }

    /// Keeps news that did not fit, for people to read.
    pub(super) async fn refuse(&self, call: &Call<'_>, reason: &str) -> Result<(), Setback> {
        let item = call.proof.item();
        let mut lent = self.connections().lend().await?;
        let query = sqlx::query(REFUSE)
            .bind(stored_run(call.run))
            .bind(item.map(|(item, _)| item.as_str()))
            .bind(item.map(|(_, generation)| generation))
            .bind(call.event.kind())
            .bind(reason)
            .bind(to_json(call.event));
        let result = query.execute(&mut *lent).await;
        lent.settle(result)?;
        Ok(())
    }
}
