//! The second round trip: one call of a function in the database, which writes a whole transition or nothing.

use std::sync::Arc;

use planctl_engine::{
    AgentSaid, Answer, ClockEvent, Decision, Digest, Effect, End, Event, Excerpt, ItemId, NodeId, NodeState,
    Record, RunId, RunStatus, Work,
};
use serde::Serialize;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::read::body_hash;
use super::{ApplyError, Call, Decided, revised_to};
use crate::claimed::Claimed;
use crate::commit_queue::CommitError;
use crate::effects::{self, Armed, Put};
use crate::history::Draft;
use crate::notifier::WakeFor;
use crate::proof::{NewVote, Proof};
use crate::rows::{bytea_literal, micros_of, node_word, status_word, stored_run, time_at, to_json};
use crate::store::Store;

/// Writes transitions by the function of migration 0044, which says what it does step by step.
pub(crate) const COMMIT: &str = "select run, is_late, \"now\", generation, lease_until, hard_deadline, revision, approval, \
     settings, served from planctl_commit_1($1::json)";

/// Keeps the newest hundred of a run, which are those that are shown: stale news comes without end, and from anybody.
pub(crate) const REFUSE: &str = "with old as (delete from refusals r where r.run = $1 \
       and r.id <= (select n.id from refusals n where n.run = $1 order by n.id desc offset 99 limit 1)) \
     insert into refusals (run, item, generation, name, reason, body) values ($1, $2, $3, $4, $5, $6::json)";
/// The most bytes that are kept of news that changes nothing.
const REFUSED_BYTES_MAX: usize = 16 * 1024;

/// A transition as `planctl_commit_1` reads it. Each field is named and explained there; what is absent is not written.
#[derive(Serialize)]
struct Transition<'a> {
    run: RunId,
    seq: i64,
    chain: String,
    at_micros: i64,
    is_estimated: bool,
    item: Option<&'a ItemId>,
    generation: Option<i64>,
    token_hash: Option<String>,
    dead_instance: Option<&'a str>,
    used: Option<&'a str>,
    new_seq: i64,
    new_chain: String,
    head: String,
    status: &'static str,
    is_active: bool,
    new_revision: Option<&'a Digest>,
    new_graph: Option<&'a Digest>,
    turn_micros: i64,
    cause: &'static str,
    command: String,
    history: Vec<HistoryRow<'a>>,
    nodes: Vec<Node<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<Put<'a>>,
    home: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    armed: Vec<Armed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disarmed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    freed: Vec<&'a NodeId>,
    key: Option<&'a str>,
    body_hash: Option<String>,
    plan: Option<PlanMove<'a>>,
    notification: Option<String>,
}

#[derive(Serialize)]
struct HistoryRow<'a> {
    seq: i64,
    kind: &'static str,
    name: &'static str,
    node: Option<&'a str>,
    visit: Option<i32>,
    attempt: Option<i32>,
    body: &'a str,
    hash: String,
}

impl HistoryRow<'_> {
    fn of(draft: &Draft) -> HistoryRow<'_> {
        HistoryRow {
            seq: draft.seq,
            kind: draft.kind,
            name: draft.name,
            node: draft.node.as_deref(),
            visit: draft.visit,
            attempt: draft.attempt,
            body: &draft.body,
            hash: bytea_literal(&draft.hash),
        }
    }
}

#[derive(Serialize)]
struct Node<'a> {
    node: &'a NodeId,
    state: &'static str,
    record: String,
}

impl Node<'_> {
    fn of<'a>(node: &'a NodeId, record: &Record) -> Node<'a> {
        Node { node, state: node_word(&record.state), record: to_json(record) }
    }
}

/// A move of the plan's status that goes with a transition of its run.
#[derive(Serialize)]
struct PlanMove<'a> {
    to: &'static str,
    from: &'static [&'static str],
    by: &'a str,
    why: &'a str,
}

fn plan_move<'a>(event: &'a Event, before: RunStatus, after: RunStatus) -> Option<PlanMove<'a>> {
    if before == after {
        return None;
    }
    let (by, decision, note) = match event {
        Event::Human(human) => (human.by.as_str(), Some(&human.decision), human.note.as_deref()),
        Event::Clock(_) => ("orchestrator", None, None),
        Event::Agent(_) | Event::Harness(_) => ("harness", None, None),
    };
    let is_resumed = matches!((decision, before), (Some(Decision::Resume { .. }), RunStatus::Paused));
    let is_rejected = matches!(decision, Some(Decision::Answer { answer: Answer::Reject, .. }));
    let (to, from, why): (&str, &[&str], &str) = match after {
        RunStatus::Queued { resuming: false } => ("approved", &["verified", "done", "failed"], "approved"),
        RunStatus::Active => ("in-progress", &["approved", "failed"], "a run began"),
        RunStatus::Paused if matches!(decision, Some(Decision::Pause)) => return None,
        RunStatus::Paused => ("draft", &["in-progress"], "a revision was asked for"),
        // The approval holds though a revision was asked for.
        RunStatus::Queued { .. } if is_resumed => ("approved", &["draft", "verified"], "the run was resumed"),
        RunStatus::Ended { end: End::Done } => ("done", &["in-progress"], "the run reached its exit"),
        RunStatus::Ended { end: End::Failed } => ("failed", &["in-progress"], "the run failed"),
        RunStatus::Ended { end: End::Aborted } => ("failed", &["in-progress"], "the run was aborted"),
        RunStatus::Ended { end: End::Cancelled } if is_rejected => {
            ("draft", &["verified", "approved"], note.unwrap_or("rejected"))
        }
        RunStatus::Ended { end: End::Cancelled } => ("failed", &["in-progress"], "the run was cancelled"),
        RunStatus::Queued { resuming: true } | RunStatus::New | RunStatus::Awaiting => return None,
    };
    Some(PlanMove { to, from, by, why })
}

impl Decided {
    /// Returns what it writes to the queue and the timers.
    fn queue_rows<'c>(&'c self, call: &'c Call<'_>) -> Result<effects::Rows<'c>, sqlx::Error> {
        let answered = match call.event {
            Event::Human(human) => match &human.decision {
                Decision::Answer { item, .. } => Some(item),
                Decision::Submit
                | Decision::Vote { .. }
                | Decision::Cancel
                | Decision::Pause
                | Decision::Resume { .. }
                | Decision::Revise { .. } => None,
            },
            Event::Agent(_) | Event::Harness(_) | Event::Clock(_) => None,
        };
        let claimed = self.next.as_ref().and_then(|next| Some((&next.item.id, next.claimant(call)?)));
        let (effects, now) = (&self.after.effects, self.before.now);
        let proven = self.item.as_ref().map(|(item, _)| item);
        let mut rows =
            effects::rows_of_effects(effects, &self.graph, &self.meta.host, now, answered, proven, claimed)
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        if let Event::Clock(ClockEvent::Due { timer }) = call.event
            && !rows.armed.iter().any(|armed| armed.timer == timer.stored_name())
        {
            rows.disarmed.push(timer.stored_name().into_owned());
        }
        Ok(rows)
    }

    /// Returns the records that the transition changes.
    fn changed_records(&self) -> impl Iterator<Item = (&NodeId, &Record)> {
        let before = &self.before.records;
        self.after.run.records().iter().filter(move |(id, record)| before.get(*id) != Some(*record))
    }

    /// Returns the nodes that give their locks back: whatever one is in but for its check, nobody works on it now.
    pub(super) fn nodes_freeing_locks(&self) -> impl Iterator<Item = &NodeId> {
        let has_locks = |node| self.graph.task(node).is_some_and(|task| !task.locks.is_empty());
        let at_rest = |record: &Record| !matches!(record.state, NodeState::Checking { .. });
        self.changed_records()
            .filter(move |(node, record)| has_locks(node) && at_rest(record))
            .map(|(node, _)| node)
    }

    /// Returns the waiters to wake: for claimable work other than the item that was leased, and for leases that may be
    /// over. `served` says that a run serves some of the new work itself.
    pub(super) fn wake_for(&self, event: &Event, leased: Option<&Claimed>, served: bool) -> WakeFor {
        let frees = self.nodes_freeing_locks().next().is_some();
        let mut wake_for = WakeFor {
            agents: frees,
            served: frees,
            gates: false,
            revocations: matches!(event, Event::Human(_) | Event::Clock(_)),
        };
        for effect in &self.after.effects {
            match effect {
                Effect::Dispatch(item) if leased.is_some_and(|leased| leased.item.id == item.id) => {}
                Effect::Dispatch(item) => match item.work {
                    Work::Agent { .. } => {
                        wake_for.agents = true;
                        wake_for.served |= served;
                    }
                    Work::Harness { .. } => wake_for.gates = true,
                    Work::Human { .. } => {}
                },
                Effect::Withdraw(_) => wake_for.revocations = true,
                Effect::Arm { .. } | Effect::Disarm(_) => {}
            }
        }
        wake_for
    }
}

/// Returns refused news as it is kept: without the long parts, which are for a worker alone.
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

impl Store {
    /// Writes a decided transition; returns what the database says of it.
    ///
    /// Reports of workers and gates under their leases are written together with those that come at the same time. The
    /// rest is rare and may be refused for a reason of its own, so it is written alone.
    pub(super) async fn write(&self, call: &Call<'_>, decided: &Arc<Decided>) -> Result<PgRow, CommitError> {
        let transition = self.transition_json(call, decided)?;
        if matches!(call.proof, Proof::Lease { .. }) && !call.is_written_alone {
            return self.commit_with_others(decided.after.run.id, transition).await;
        }
        let rows = match call.proof {
            Proof::Vote { vote, .. } => self.commit_with_vote(vote, &transition).await?,
            Proof::Lease { .. }
            | Proof::Person { .. }
            | Proof::Clock
            | Proof::Expired { .. }
            | Proof::Submit => self.commit(&[&transition]).await?,
        };
        match rows.into_iter().next() {
            Some(row) if !row.try_get::<bool, _>("is_late")? => Ok(row),
            Some(_) | None => Err(CommitError::Conflict),
        }
    }

    /// Writes a vote and the transition that it causes in one transaction.
    async fn commit_with_vote(&self, vote: &NewVote, transition: &str) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut connection = self.connections().acquire().await?;
        let result = vote.query(format!("[{transition}]")).fetch_all(&mut *connection).await;
        connection.recycle(result)
    }

    /// Writes transitions, each as [`Store::transition_json`] made it, in one transaction.
    pub(super) async fn commit(&self, transitions: &[&str]) -> Result<Vec<PgRow>, sqlx::Error> {
        let all = format!("[{}]", transitions.join(","));
        let mut connection = self.connections().acquire().await?;
        let result = sqlx::query(COMMIT).bind(all).fetch_all(&mut *connection).await;
        let rows = connection.recycle(result)?;
        if let Some(row) = rows.first() {
            self.server_clock().observe(time_at(row, "now")?);
        }
        Ok(rows)
    }

    /// Returns a decided transition as the function reads it.
    fn transition_json(&self, call: &Call<'_>, decided: &Decided) -> Result<String, sqlx::Error> {
        let rows = decided.queue_rows(call)?;
        let (before, after) = (&decided.before, &decided.after.run);
        let (token_hash, dead_instance) = match call.proof {
            Proof::Lease { token, .. } => (Some(bytea_literal(&token.hash())), None),
            Proof::Expired { dead_instance, .. } => (None, dead_instance.as_deref()),
            Proof::Person { .. } | Proof::Vote { .. } | Proof::Clock | Proof::Submit => (None, None),
        };
        // A person's decision must reach the processes that wait for it even if this one ends at once.
        let is_announced = self.settings().notifies && matches!(call.event, Event::Human(_));
        let revision = revised_to(call.event);
        let item = decided.item.as_ref();
        Ok(to_json(&Transition {
            run: call.run,
            seq: before.seq,
            chain: bytea_literal(&before.chain),
            at_micros: micros_of(before.now),
            is_estimated: before.is_cached,
            item: item.map(|(item, _)| item),
            generation: item.map(|(_, generation)| *generation),
            token_hash,
            dead_instance,
            used: before.noted_usage(),
            new_seq: decided.seq(),
            new_chain: bytea_literal(&decided.hash()),
            head: to_json(&after.head),
            status: status_word(after.head.status),
            is_active: after.head.status == RunStatus::Active,
            new_revision: revision,
            new_graph: revision.and(decided.input.graph.as_ref()),
            turn_micros: micros_of(before.now.after(decided.graph.priority().delay())),
            cause: call.event.kind(),
            command: decided.command.to_string(),
            history: decided.lines.iter().map(HistoryRow::of).collect(),
            nodes: decided.changed_records().map(|(id, record)| Node::of(id, record)).collect(),
            removed: rows.removed,
            items: rows.puts,
            home: &decided.meta.host,
            armed: rows.armed,
            disarmed: rows.disarmed,
            freed: decided.nodes_freeing_locks().collect(),
            key: call.proof.key(),
            body_hash: call.proof.key().map(|_| bytea_literal(&body_hash(call.event))),
            plan: plan_move(call.event, before.head.status, after.head.status),
            notification: is_announced.then(|| self.payload(call.run, WakeFor::UNKNOWN)),
        }))
    }

    /// Keeps news that did not fit, for people to read.
    pub(super) async fn record_refusal(&self, call: &Call<'_>, reason: &str) -> Result<(), ApplyError> {
        let item = call.proof.item();
        let mut connection = self.connections().acquire().await?;
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
