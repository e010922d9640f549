//! The second round trip: one statement that writes a whole transition, or nothing.

use std::sync::Arc;

use planctl_engine::{
    AgentSaid, Answer, ClockEvent, Decision, Digest, Effect, End, Event, Excerpt, ItemId, NodeId, NodeState,
    Record, RunStatus, Work,
};
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use uuid::Uuid;

use super::group_commit::{CommitError, Step};
use super::read::body_hash;
use super::{ApplyError, Call, Decided, revised_to};
use crate::connections::Planning;
use crate::effects::{self, Put};
use crate::history::Draft;
use crate::listen::Brings;
use crate::proof::Proof;
use crate::queue::{Claimed, Take};
use crate::rows::{node_word, status_word, stored_run, stored_time, time_at, to_json};
use crate::store::Store;

/// Where the time was assumed, the database says whether it is near enough.
macro_rules! time_holds {
    ($assumed:literal, $at:literal) => {
        concat!(
            "case when ",
            $assumed,
            " then ",
            $at,
            " between clock_timestamp() - interval '2 seconds' and clock_timestamp() + interval '100 milliseconds' else true end"
        )
    };
}

/// The history and the records, behind the fence.
macro_rules! lines_and_records {
    () => {
        "\
), written as (
  insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  select l.run, l.seq, l.at, l.kind, l.name, l.cause, l.node, l.visit, l.attempt, l.item, l.generation, l.command,
    l.body::json, l.hash
  from fence, unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::int[], $9::int[], $10::text[], $11::bigint[], $12::uuid[], $13::text[], $14::bytea[])
    as l (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  where fence.holds
), noted as (
  insert into nodes (run, node, state, record)
  select n.run, n.node, n.state, n.record::json
  from fence, unnest($15::uuid[], $16::text[], $17::text[], $18::text[]) as n (run, node, state, record)
  where fence.holds
  on conflict (run, node) do update set state = excluded.state, record = excluded.record
"
    };
}

/// Writes what nearly every report and verdict of a running run does: the one item that proves it goes, and at most one
/// comes. Several of different runs are written together, all or none: each column has a value for each. The fence raises
/// where one of the runs or of the items is not what was decided on.
///
/// The server prepares each part of a statement anew for every call, so a part that is left out is work that it need not do.
/// No plan of it reads a whole table or index, however small they were at the time: a leased item is one that is not ready,
/// since the other word would bring the indexes by which all leased ones are found, and it is looked up by its key once its
/// run is there. The order is run, item, rest.
pub(crate) const WRITE_STEPS: &str = concat!(
    "\
with moved as (
  update runs r set seq = ($21::bigint[])[array_position($19, r.id)], chain = ($22::bytea[])[array_position($19, r.id)],
    head = ($23::text[])[array_position($19, r.id)]::json
  where r.id = any($19::uuid[]) and r.seq = ($20::bigint[])[array_position($19, r.id)]
    and r.chain = ($48::bytea[])[array_position($19, r.id)] and ",
    time_holds!(
        "($25::boolean[])[array_position($19, r.id)]",
        "($24::timestamptz[])[array_position($19, r.id)]"
    ),
    "
  returning r.id, array_position($19, r.id) as n, r.served, r.revision, r.approval, r.settings
), proven as (
  delete from items i using moved m where i.id = ($26::text[])[m.n] and i.generation = ($27::bigint[])[m.n]
    and i.state <> 'ready' and i.token_hash = ($28::bytea[])[m.n]
    and i.used::text is not distinct from ($47::text[])[m.n]
  returning i.id
), fence as materialized (
  select planctl_fence((select count(*) from moved) = cardinality($19::uuid[]),
    (select count(*) from proven) = cardinality($19::uuid[])) as holds
",
    lines_and_records!(),
    "), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks, home)
  select ($36::text[])[m.n], m.id, ($37::text[])[m.n], ($38::int[])[m.n], ($39::int[])[m.n], ($40::text[])[m.n],
    ($41::text[])[m.n], case when ($29::bytea[])[m.n] is null then 'ready' else 'leased' end, ($42::text[])[m.n]::json,
    ($43::timestamptz[])[m.n], ($44::timestamptz[])[m.n], ($45::bigint[])[m.n],
    case when ($29::bytea[])[m.n] is null then 0 else 1 end, ($29::bytea[])[m.n], ($30::text[])[m.n], ($31::text[])[m.n],
    ($32::text[])[m.n], ($33::boolean[])[m.n], clock_timestamp() + ($34::bigint[])[m.n] * interval '1 microsecond',
    case when ($29::bytea[])[m.n] is not null then clock_timestamp() + ($45::bigint[])[m.n] * interval '1 microsecond' end,
    ($24::timestamptz[])[m.n],
    case when ($40::text[])[m.n] = 'agent' and m.served && array['*', ($41::text[])[m.n]] then ($35::text[])[m.n] end,
    string_to_array(($46::text[])[m.n], ','), ($35::text[])[m.n]
  from fence, moved m where fence.holds and ($36::text[])[m.n] is not null
  returning run, generation, lease_until, hard_deadline, served_on is not null as served
)
select m.id as run, clock_timestamp() as now, nullif(p.generation, 0) as generation, p.lease_until, p.hard_deadline,
  m.revision, m.approval, m.settings::text as settings, coalesce(p.served, false) as served
from fence, moved m left join put p on p.run = m.id where fence.holds"
);

/// Writes everything that any event can do: several items, asks, timers, a person's key, a move of the plan, a ring of the
/// bell too. The order is run, item, rest.
///
/// Of what is taken back, an item that somebody holds stays as a withdrawn one, which is seen under its lock: it may have
/// been claimed just now. So a run that ends keeps the workspace where anything is out that could be, and a node keeps its
/// locks as long as such an item of it is left, from this transition or an earlier one.
///
/// The plan's row is not locked when `moving` reads it. So the update checks status and digest again, under the row's lock:
/// where somebody saved another text meanwhile, the plan stays as that left it.
pub(crate) const WRITE_ALL: &str = concat!(
    "\
with moved as (
  update runs set seq = $21::bigint, chain = $22::bytea, head = $23::json, status = $48::text,
    active = $49::boolean or active and exists (select from items o
      where o.run = $19::uuid and o.lane <> 'human' and o.id is distinct from $26::text),
    revision = coalesce($50::text, revision), graph = coalesce($51::text, graph),
    started_at = case when $49::boolean then coalesce(started_at, $24::timestamptz) else started_at end,
    turn_at = case when $48::text = 'queued' then case when status = 'queued' then turn_at else $53::timestamptz end end,
    ended_at = case when $48::text <> 'ended' then null when status = 'ended' then ended_at else $24::timestamptz end
  where id = $19::uuid and seq = $20::bigint and chain = $67::bytea and ",
    time_holds!("$25::boolean", "$24::timestamptz"),
    "
  returning id, served, revision, approval, settings
), proven as (
  select i.id from items i
  where i.id = $26::text and i.generation = $27::bigint and i.state = 'leased'
    and i.used::text is not distinct from $66::text
    and case when $28::bytea is not null then i.token_hash = $28
        else i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.instance = $52::text end
    and exists (select from moved)
  for update
), fence as materialized (
  select planctl_fence(exists (select from moved), $26::text is null or exists (select from proven)) as holds
",
    lines_and_records!(),
    "), taken_back as (
  select i.id, i.node, i.state = 'leased' and i.id is distinct from $26::text as is_held from items i, fence
  where fence.holds and i.id = any($54::text[])
  for update of i
), removed as (
  delete from items i using taken_back b where i.id = b.id and not b.is_held
), withdrawn as (
  update items i set state = 'withdrawn' from taken_back b where i.id = b.id and b.is_held
), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks, home)
  select p.id, $19::uuid, p.node, p.visit, p.attempt, p.lane, p.target,
    case when t.taken then 'leased' else 'ready' end, p.work::json, p.available_at, p.due_at, p.span,
    case when t.taken then 1 else 0 end, case when t.taken then $29::bytea end,
    case when t.taken then $30::text end, case when t.taken then $31::text end,
    case when t.taken then $32::text end, case when t.taken then $33::boolean end,
    case when t.taken then clock_timestamp() + $34::bigint * interval '1 microsecond' end,
    case when t.taken then clock_timestamp() + p.span * interval '1 microsecond' end, $24::timestamptz,
    case when p.lane = 'agent' and (select served from moved) && array['*', p.target] then $35::text end,
    string_to_array(p.locks, ','), $35::text
  from fence, unnest($36::text[], $37::text[], $38::int[], $39::int[], $40::text[], $41::text[], $42::text[],
    $43::timestamptz[], $44::timestamptz[], $45::bigint[], $47::boolean[], $46::text[])
    as p (id, node, visit, attempt, lane, target, work, available_at, due_at, span, wanted, locks),
    lateral (select p.wanted and not exists (select from taken_back b where b.is_held) as taken) t
  where fence.holds
  on conflict (id) do update set state = excluded.state, work = excluded.work, target = excluded.target,
    available_at = excluded.available_at, due_at = excluded.due_at, span_micros = excluded.span_micros,
    generation = items.generation + 1, token_hash = excluded.token_hash, host = excluded.host, boot = excluded.boot,
    instance = excluded.instance, own = excluded.own, lease_until = excluded.lease_until,
    hard_deadline = excluded.hard_deadline, served_on = excluded.served_on, locks = excluded.locks, used = null
  returning id, node, visit, attempt, lane, work, state, generation, lease_until, hard_deadline, served_on
), taken as (
  select p.generation, p.lease_until, p.hard_deadline, m.revision, m.approval, m.settings::text as settings
  from put p, moved m where p.state = 'leased'
), asked as (
  insert into asks (item, run, node, visit, attempt, work, created_at)
  select id, $19::uuid, node, visit, attempt, work, $24::timestamptz from put where lane = 'human'
  on conflict (item) do update set work = excluded.work, closed_at = null
), closed as (
  update asks a set closed_at = $24::timestamptz from fence where fence.holds and a.item = any($54::text[])
), armed as (
  insert into timers (run, timer, at)
  select $19::uuid, t.timer, t.at from fence, unnest($55::text[], $56::timestamptz[]) as t (timer, at)
  where fence.holds
  on conflict (run, timer) do update set at = excluded.at
), disarmed as (
  delete from timers t using fence where fence.holds and t.run = $19::uuid and t.timer = any($57::text[])
), freed as (
  delete from locks l using fence where fence.holds and l.run = $19::uuid and l.node = any($65::text[])
    and not exists (select from taken_back b where b.is_held and b.node = l.node)
    and not exists (select from items w where w.run = l.run and w.node = l.node and w.state = 'withdrawn')
), answered as (
  insert into commands (key, run, body_hash, seq, at)
  select $58::text, $19::uuid, $59::bytea, $20::bigint + 1, $24::timestamptz
  from fence where fence.holds and $58::text is not null
), moving as (
  select p.id, p.status, p.digest from plans p, runs r, fence
  where fence.holds and $60::text is not null and r.id = $19::uuid and p.id = r.plan
    and p.digest = coalesce($50::text, r.revision) and p.status = any($61::text[])
), moved_plan as (
  update plans p set status = $60::text, updated_at = $24::timestamptz from moving
  where p.id = moving.id and p.status = moving.status and p.digest = moving.digest
  returning p.id, moving.status as was, p.digest
), recorded as (
  insert into plan_transitions (plan, from_status, to_status, by, why, digest, at)
  select id, was, $60::text, $62::text, $63::text, digest, $24::timestamptz from moved_plan
), rung as (
  select pg_notify('planctl', $64::text) from fence where fence.holds and $64::text is not null
)
select fence.holds, clock_timestamp() as now, t.generation, t.lease_until, t.hard_deadline, t.revision, t.approval, t.settings,
  (select count(*) from rung) as rings, exists (select from put where served_on is not null) as served
from fence left join taken t on true"
);

type Bound<'q> = Query<'q, Postgres, PgArguments>;

/// Keeps the newest hundred of a run, which are those that are shown: stale news comes without end, and from anybody.
pub(crate) const REFUSE: &str = "with old as (delete from refusals r where r.run = $1 \
       and r.id <= (select n.id from refusals n where n.run = $1 order by n.id desc offset 99 limit 1)) \
     insert into refusals (run, item, generation, name, reason, body) values ($1, $2, $3, $4, $5, $6::json)";
/// The most bytes that are kept of news that changes nothing.
const REFUSED_BYTES_MAX: usize = 16 * 1024;

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
    /// Returns what it writes to the queue and the timers.
    fn rows(&self, call: &Call<'_>, gate: Option<&ItemId>) -> Result<effects::Rows, sqlx::Error> {
        let answered = match call.event {
            Event::Human(human) => match &human.decision {
                Decision::Answer { item, .. } => Some(item),
                Decision::Submit | Decision::Cancel | Decision::Resume | Decision::Revise { .. } => None,
            },
            Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => call.proof.item().map(|(item, _)| item),
        };
        let (effects, now) = (&self.after.effects, self.before.now);
        let mut rows = effects::rows(effects, &self.graph, &self.meta.host, now, answered, gate)
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        if let Event::Clock(ClockEvent::Due { timer }) = call.event
            && !rows.armed.iter().any(|armed| *armed == timer.word())
        {
            rows.disarmed.push(timer.word().into_owned());
        }
        Ok(rows)
    }

    /// Says that a statement for plain steps can write it: of a run that goes on, with one item that goes, at most one
    /// that comes, and nothing else.
    fn is_step(&self, rows: &effects::Rows) -> bool {
        rows.is_step(self.item.as_ref().map(|(item, _)| item))
            && self.before.head.status == RunStatus::Active
            && self.after.run.head.status == RunStatus::Active
            && self.freed().next().is_none()
    }

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

    /// Returns whose work can be claimed now, but for what is taken along, and whether leases may be over; `served` says that
    /// some of what comes is served by its run.
    pub(super) fn brings(&self, event: &Event, taken: Option<&Claimed>, served: bool) -> Brings {
        let frees = self.freed().next().is_some();
        let mut brings = Brings {
            agents: frees,
            served: frees || served,
            gates: false,
            revocations: matches!(event, Event::Human(_) | Event::Clock(_)),
        };
        for effect in &self.after.effects {
            match effect {
                Effect::Dispatch(item) => match item.work {
                    Work::Agent { .. } => brings.agents = true,
                    Work::Harness { .. } => {
                        brings.gates |= taken.is_none_or(|taken| taken.item.id != item.id);
                    }
                    Work::Human { .. } => {}
                },
                Effect::Withdraw(_) => brings.revocations = true,
                Effect::Arm { .. } | Effect::Disarm(_) => {}
            }
        }
        brings
    }
}

/// Binds the history and the records of some transitions.
pub(super) fn bind_lines<'q>(query: Bound<'q>, all: &[&'q Decided]) -> Bound<'q> {
    let lines: Vec<(&Decided, &Draft)> =
        all.iter().flat_map(|decided| decided.lines.iter().map(|line| (*decided, line))).collect();
    // What came is told by the first line; the others follow from it.
    let input = |(decided, line): &(&'q Decided, &Draft)| (line.kind == "input").then_some(*decided);
    let item = |line| input(line).and_then(|decided| decided.item.as_ref());
    let records: Vec<(Uuid, &NodeId, &Record)> = all
        .iter()
        .flat_map(|decided| {
            decided.changed().map(|(id, record)| (stored_run(decided.after.run.id), id, record))
        })
        .collect();
    query
        .bind(lines.iter().map(|(decided, _)| stored_run(decided.after.run.id)).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.seq).collect::<Vec<_>>())
        .bind(lines.iter().map(|(decided, _)| stored_time(decided.before.now)).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.kind).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.name).collect::<Vec<_>>())
        .bind(lines.iter().map(|(decided, _)| decided.input.event.kind()).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.node.as_deref()).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.visit).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.attempt).collect::<Vec<_>>())
        .bind(lines.iter().map(|line| item(line).map(|(item, _)| item.as_str())).collect::<Vec<_>>())
        .bind(lines.iter().map(|line| item(line).map(|(_, generation)| *generation)).collect::<Vec<_>>())
        .bind(lines.iter().map(|line| input(line).map(|decided| decided.command)).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| line.body.as_str()).collect::<Vec<_>>())
        .bind(lines.iter().map(|(_, line)| &line.hash[..]).collect::<Vec<_>>())
        .bind(records.iter().map(|(run, ..)| *run).collect::<Vec<_>>())
        .bind(records.iter().map(|(_, id, _)| id.as_str()).collect::<Vec<_>>())
        .bind(records.iter().map(|(.., record)| node_word(&record.state)).collect::<Vec<_>>())
        .bind(records.iter().map(|(.., record)| to_json(record)).collect::<Vec<_>>())
}

/// Binds the items that some transitions put.
pub(super) fn bind_puts<'q>(query: Bound<'q>, puts: &[Option<&'q Put>]) -> Bound<'q> {
    query
        .bind(of_each(puts, |put| put.id.as_str()))
        .bind(of_each(puts, |put| put.node.as_str()))
        .bind(of_each(puts, |put| put.visit))
        .bind(of_each(puts, |put| put.attempt))
        .bind(of_each(puts, |put| put.lane))
        .bind(of_each(puts, |put| put.target.as_str()))
        .bind(of_each(puts, |put| put.work.as_str()))
        .bind(of_each(puts, |put| put.available))
        .bind(of_each(puts, |put| put.due))
        .bind(of_each(puts, |put| put.span))
        .bind(of_each(puts, |put| put.locks.as_deref()).into_iter().map(Option::flatten).collect::<Vec<_>>())
}

/// Returns refused news as it is kept: without the long parts that only a worker brings.
fn as_refused(event: &Event) -> String {
    let whole = to_json(event);
    let Event::Agent(event) = event else { return whole };
    if whole.len() <= REFUSED_BYTES_MAX {
        return whole;
    }
    let mut event = event.clone();
    let shorten = |text: &mut String| *text = text.chars().take(Excerpt::TAIL_BYTES_MAX / 4).collect();
    match &mut event.said {
        AgentSaid::Reported(report) => report.hints = None,
        AgentSaid::Asked { question, .. } => shorten(question),
        AgentSaid::Faulted(fault) => shorten(&mut fault.message),
        AgentSaid::Overran { .. } | AgentSaid::Released => {}
    }
    to_json(&Event::Agent(event))
}

fn of_each<'q, T>(puts: &[Option<&'q Put>], value: impl Fn(&'q Put) -> T) -> Vec<Option<T>> {
    puts.iter().map(|put| put.map(&value)).collect()
}

impl Store {
    /// Writes a decided transition; returns what the database says of it.
    pub(super) async fn write(&self, call: &Call<'_>, decided: &Arc<Decided>) -> Result<PgRow, CommitError> {
        let gate = decided.gate(call).map(|item| &item.id);
        let take = call.take.filter(|_| gate.is_some());
        let mut rows = decided.rows(call, gate)?;
        if let Proof::Lease { token, .. } = call.proof
            && !call.is_apart
            && decided.is_step(&rows)
        {
            let step = Step {
                decided: decided.clone(),
                token_hash: token.hash(),
                put: rows.puts.pop(),
                taken: take.map(|take| (take.clone(), call.token.hash())),
            };
            return self.write_step(step).await;
        }
        self.write_all(call, decided, rows, take).await
    }

    async fn write_all(
        &self,
        call: &Call<'_>,
        decided: &Decided,
        rows: effects::Rows,
        take: Option<&Take>,
    ) -> Result<PgRow, CommitError> {
        let before = &decided.before;
        let after = &decided.after.run;
        let (token_hash, dead_instance) = match call.proof {
            Proof::Lease { token, .. } => (Some(token.hash()), None),
            Proof::Expired { dead_instance, .. } => (None, dead_instance.as_deref()),
            Proof::Person { .. } | Proof::Clock | Proof::Submit => (None, None),
        };
        let plan = plan_move(call.event, before.head.status, after.head.status);
        // What a person decides must reach the processes that wait for it even if this one ends at once.
        let is_announced = self.settings().notifies && matches!(call.event, Event::Human(_));
        let payload = is_announced.then(|| self.payload(call.run, Brings::UNKNOWN));
        let freed: Vec<&str> = decided.freed().map(NodeId::as_str).collect();
        let revision = revised_to(call.event);
        let item = decided.item.as_ref();
        let query = bind_lines(sqlx::query(WRITE_ALL), &[decided])
            .bind(stored_run(call.run))
            .bind(before.seq)
            .bind(decided.seq())
            .bind(decided.hash().to_vec())
            .bind(to_json(&after.head))
            .bind(stored_time(before.now))
            .bind(before.is_remembered)
            .bind(item.map(|(item, _)| item.as_str()))
            .bind(item.map(|(_, generation)| *generation))
            .bind(token_hash)
            .bind(take.map(|_| call.token.hash()))
            .bind(take.map(|take| take.holder.host.as_str()))
            .bind(take.map(|take| take.holder.boot.as_str()))
            .bind(take.map(|take| take.holder.instance.as_str()))
            .bind(take.map(|take| take.holder.own))
            .bind(take.map(|take| effects::micros(take.lease)))
            .bind(&decided.meta.host);
        let query = bind_puts(query, &rows.puts.iter().map(Some).collect::<Vec<_>>())
            .bind(rows.puts.iter().map(|put| put.is_taken).collect::<Vec<_>>())
            .bind(status_word(after.head.status))
            .bind(after.head.status == RunStatus::Active)
            .bind(revision.map(Digest::as_str))
            .bind(revision.and(decided.input.graph.as_ref()).map(Digest::as_str))
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
            .bind(before.used())
            .bind(&before.chain[..]);
        let mut connection = self.connections().acquire(Planning::ByIndex).await?;
        let result = query.fetch_one(&mut *connection).await;
        let row = connection.recycle(result)?;
        self.server_clock().observe(time_at(&row, "now")?);
        Ok(row)
    }

    /// Keeps news that did not fit, for people to read.
    pub(super) async fn refuse(&self, call: &Call<'_>, reason: &str) -> Result<(), ApplyError> {
        let item = call.proof.item();
        let mut connection = self.connections().acquire(Planning::ByIndex).await?;
        let query = sqlx::query(REFUSE)
            .bind(stored_run(call.run))
            .bind(item.map(|(item, _)| item.as_str()))
            .bind(item.map(|(_, generation)| generation))
            .bind(call.event.kind())
            .bind(reason)
            .bind(as_refused(call.event));
        let result = query.execute(&mut *connection).await;
        connection.recycle(result)?;
        Ok(())
    }
}
