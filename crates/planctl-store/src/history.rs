//! The history of a run: its inputs and their facts, numbered without gaps, each line chained to the one before.

mod visits;

use std::collections::BTreeMap;

use planctl_engine::{
    AgentSaid, Digest, Event, Excerpt, Fact, HarnessResult, ItemId, NodeId, Record, Run, RunId, Tally,
    Timestamp, Usage,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;
use visits::Visits;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{from_json, run_id, stored_run, time_at, to_json};
use crate::store::Store;

pub(crate) const HISTORY_AFTER: &str = "select run, seq, at, kind, name, cause, node, visit, attempt, item, generation, \
     command, body::text as body, hash from history where run = $1 and seq > $2 order by seq limit $3";

/// Reads through the run's history: facts have no index by node, which every transition would have to write.
pub(crate) const HISTORY_OF_NODE: &str = "select run, seq, at, kind, name, cause, node, visit, attempt, item, generation, \
     command, body::text as body, hash from history where run = $1 and seq > $2 and (node = $3 or name = 'edge_followed' \
     and body ->> 'to' = $3) order by seq limit $4";

/// Approvals that a policy gave of a run's plan while the run was under way: each is of another text with which the run went on.
pub(crate) const REVISED_BY_POLICY: &str = "select count(*) as revised from approvals a join runs r on r.plan = a.plan \
     where r.id = $1 and a.at > coalesce(r.started_at, r.created_at) and starts_with(a.by, 'policy:')";

pub(crate) const ANSWER: &str = "select run, seq, at, kind, name, cause, node, visit, attempt, item, generation, \
     command, body::text as body, hash from history where run = $1 and name = 'ask_answered' and body ->> 'item' = $2 \
     order by seq limit 1";

pub(crate) const NEWEST_LINES: &str = "select run, seq, at, kind, name, cause, node, visit, attempt, item, generation, \
     command, body::text as body, hash from history where run = $1 order by seq desc limit $2";

/// Goes through an index of its own, so that its conditions are those of that index (migration 0035).
pub(crate) const DECISIONS: &str = "select h.run, h.seq, h.at, h.kind, h.name, h.cause, h.node, h.visit, h.attempt, h.item, \
     h.generation, h.command, h.body::text as body, h.hash, r.name as run_name from history h join runs r on r.id = h.run \
     where h.kind = 'input' and h.name like 'human.%' order by h.at desc, h.seq desc limit $1";

pub(crate) const NEWEST_INPUTS_AT: &str = "select run, seq, at, kind, name, cause, node, visit, attempt, item, generation, \
     command, body::text as body, hash from history where run = $1 and kind = 'input' and node = $2 order by seq desc limit $3";

pub(crate) const NEWEST_FACTS: &str = "select seq, body::text as body from history where run = $1 and kind = 'fact' \
     order by seq desc limit $2";

pub(crate) const NEWEST_RESTS: &str = "select n.run, n.node, h.seq, h.body from unnest($1::uuid[], $2::text[]) n (run, node) \
     cross join lateral (select seq, body::text as body from history where run = n.run and kind = 'fact' \
     and name = 'node_resting' and node = n.node order by seq desc limit 1) h";

pub(crate) const USAGE_SUMS: &str =
    "select node, cached_tokens, estimated_tokens, estimated_micro_usd from usage_sums where run = $1";

/// Parts of the usage of attempts that decide nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UsageSums {
    /// Tokens that came from a cache.
    pub cached_tokens: u64,
    /// Tokens whose number nobody told: by the length of what was said, or the most of a call whose answer was lost.
    pub estimated_tokens: u64,
    /// Money that was worked out from a price, in millionths of a US dollar.
    pub estimated_micro_usd: u64,
}

/// One line of a run's history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistoryLine {
    /// The run.
    pub run: RunId,
    /// Its number in the run, from 1.
    pub seq: i64,
    /// When it was accepted, by the database's clock; the same for an input and what followed from it.
    pub at: Timestamp,
    /// The name of the event: a fact's, or the speaker and kind of an input.
    pub name: String,
    /// The speaker and kind of the input it follows from; an input follows from itself.
    pub cause: String,
    /// The node it is about.
    pub node: Option<NodeId>,
    /// Which entering of the node.
    pub visit: Option<u16>,
    /// Which try at the node.
    pub attempt: Option<u16>,
    /// The item whose lease an input came under.
    pub item: Option<ItemId>,
    /// The generation of that lease.
    pub generation: Option<i64>,
    /// The call that brought an input.
    pub command: Option<Uuid>,
    /// The data, as stored.
    pub body: String,
    /// The hash over this line and the one before.
    pub hash: Vec<u8>,
    /// Its content.
    pub said: Said,
}

/// The content of a line of history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// Something arrived.
    Input(Box<Input>),
    /// Something followed.
    Fact(Box<Fact>),
}

impl Said {
    /// Reads the body of a line of this kind: `input` or `fact`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where it does not read.
    pub fn read(kind: &str, body: &str) -> Result<Said, StoreError> {
        match kind {
            "input" => Ok(Said::Input(Box::new(from_json(body, "an input")?))),
            "fact" => Ok(Said::Fact(Box::new(from_json(body, "a fact")?))),
            other => Err(StoreError::corrupt(format!("a line of history is of kind `{other}`"))),
        }
    }

    /// Returns the kind, as [`Said::read`] takes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Said::Input(_) => "input",
            Said::Fact(_) => "fact",
        }
    }

    /// Returns the digest of the graph that decides from here on, where this brings one.
    pub fn graph(&self) -> Option<&Digest> {
        match self {
            Said::Input(input) => input.graph.as_ref(),
            Said::Fact(_) => None,
        }
    }

    /// Returns the texts of which no more than the end stands here, with the rest kept apart.
    pub fn outputs(&self) -> Vec<&Digest> {
        let texts = match self {
            Said::Input(input) => excerpts_of(&input.event),
            Said::Fact(_) => Vec::new(),
        };
        texts.into_iter().filter_map(|excerpt| excerpt.stored.as_ref()).collect()
    }
}

/// Returns what workers and contracts printed, as far as an event holds it.
pub(crate) fn excerpts_of(event: &Event) -> Vec<&Excerpt> {
    match event {
        Event::Agent(agent) => match &agent.said {
            AgentSaid::Reported(report) => vec![&report.text],
            AgentSaid::Asked { .. }
            | AgentSaid::Overran { .. }
            | AgentSaid::Faulted(_)
            | AgentSaid::Released => Vec::new(),
        },
        Event::Harness(harness) => match &harness.found {
            HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence) => {
                vec![&evidence.stdout, &evidence.stderr]
            }
            HarnessResult::Conflicted(conflict) => vec![&conflict.hunks],
            HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_)
            | HarnessResult::Nothing(_) => Vec::new(),
        },
        Event::Human(_) | Event::Clock(_) => Vec::new(),
    }
}

/// An input as history keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The event that arrived.
    pub event: Event,
    /// The graph that decides from here on, where the input brought one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Digest>,
    /// Usage that was charged with items that it took back, as their holders had reported it by then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub noted: BTreeMap<NodeId, Usage>,
}

/// A line about to be written.
pub(crate) struct Draft {
    pub(crate) seq: i64,
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) node: Option<String>,
    pub(crate) visit: Option<i32>,
    pub(crate) attempt: Option<i32>,
    pub(crate) body: String,
    pub(crate) hash: [u8; 32],
}

/// The values that the lines of one transition share.
pub(crate) struct Shared<'a> {
    pub(crate) at: Timestamp,
    pub(crate) cause: &'static str,
    pub(crate) item: Option<(&'a ItemId, i64)>,
    pub(crate) command: Uuid,
}

/// Returns what the first line of a run is chained to.
pub(crate) fn genesis(run: RunId) -> [u8; 32] {
    Sha256::new().chain_update(b"planctl run ").chain_update(run.as_u128().to_be_bytes()).finalize().into()
}

/// Writes the lines of one transition: the input, then its facts in order.
pub(crate) fn draft_lines(
    after: (i64, [u8; 32]),
    shared: &Shared<'_>,
    input: &Input,
    facts: &[Fact],
    (before, run): (&BTreeMap<NodeId, Record>, &Run),
) -> Vec<Draft> {
    let (mut seq, mut hash) = after;
    let mut lines = Vec::with_capacity(facts.len() + 1);
    let mut push = |kind, name, subject: LineSubject, body: String| {
        seq += 1;
        let draft = Draft {
            seq,
            kind,
            name,
            node: subject.node,
            visit: subject.visit,
            attempt: subject.attempt,
            body,
            hash,
        };
        let draft = Draft { hash: line_hash(&hash, shared, &draft), ..draft };
        hash = draft.hash;
        lines.push(draft);
    };
    push("input", shared.cause, LineSubject::of_event(&input.event), to_json(input));
    let visits = Visits::new(facts, before, run.records());
    for (at, fact) in facts.iter().enumerate() {
        push("fact", fact.name(), LineSubject::of_fact(fact, visits.tally_at(at, fact)), to_json(fact));
    }
    lines
}

#[derive(Default)]
struct LineSubject {
    node: Option<String>,
    visit: Option<i32>,
    attempt: Option<i32>,
}

impl LineSubject {
    fn of_event(event: &Event) -> LineSubject {
        event.at().map_or_else(LineSubject::default, |at| LineSubject {
            node: Some(at.node.as_str().to_owned()),
            visit: Some(i32::from(at.visit)),
            attempt: Some(i32::from(at.attempt.number())),
        })
    }

    fn of_fact(fact: &Fact, tally: Tally) -> LineSubject {
        let Some(node) = fact.node() else { return LineSubject::default() };
        let attempt = match fact {
            Fact::NodeEntered { attempt, .. }
            | Fact::NodeVerified { attempt, .. }
            | Fact::NodeObserved { attempt, .. }
            | Fact::RetryTriggered { attempt, .. }
            | Fact::NodeResting { attempt, .. }
            | Fact::NodeInterrupted { attempt, .. }
            | Fact::ContextRefused { attempt, .. }
            | Fact::GateRepeated { attempt, .. } => *attempt,
            // It is of the visit, and of no try.
            Fact::NodeRehearsed { .. } => planctl_engine::Attempt::NONE,
            Fact::PlanActivated { .. }
            | Fact::EdgeFollowed { .. }
            | Fact::EpochBegan { .. }
            | Fact::FidelityReduced { .. }
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
            | Fact::NodeSettled { .. }
            | Fact::AskOpened { .. }
            | Fact::AskAnswered { .. }
            | Fact::PlanEscalated { .. }
            | Fact::PaceChanged { .. }
            | Fact::BudgetNoticed { .. }
            | Fact::PlanExpired { .. }
            | Fact::NodeReopened { .. }
            | Fact::PlanPaused { .. }
            | Fact::PlanCompleted { .. }
            | Fact::PlanFailed { .. }
            | Fact::PlanCancelled { .. } => tally.attempt,
        };
        LineSubject {
            node: Some(node.as_str().to_owned()),
            visit: (tally.visits > 0).then_some(i32::from(tally.visits)),
            attempt: (attempt.number() > 0).then_some(i32::from(attempt.number())),
        }
    }
}

/// Computes the hash of a line over everything it says and the hash before.
fn line_hash(before: &[u8], shared: &Shared<'_>, draft: &Draft) -> [u8; 32] {
    let is_input = draft.kind == "input";
    hash_chained(
        before,
        &Chained {
            seq: draft.seq,
            at: shared.at,
            kind: draft.kind,
            name: draft.name,
            cause: shared.cause,
            node: draft.node.as_deref(),
            visit: draft.visit,
            attempt: draft.attempt,
            item: shared.item.filter(|_| is_input).map(|(item, _)| item.as_str()),
            generation: shared.item.filter(|_| is_input).map(|(_, generation)| generation),
            command: is_input.then_some(shared.command),
            body: &draft.body,
        },
    )
}

/// Everything the chain covers of one line.
struct Chained<'a> {
    seq: i64,
    at: Timestamp,
    kind: &'a str,
    name: &'a str,
    cause: &'a str,
    node: Option<&'a str>,
    visit: Option<i32>,
    attempt: Option<i32>,
    item: Option<&'a str>,
    generation: Option<i64>,
    command: Option<Uuid>,
    body: &'a str,
}

fn hash_chained(before: &[u8], line: &Chained<'_>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(before);
    hasher.update(line.seq.to_be_bytes());
    hasher.update(line.at.as_micros().to_be_bytes());
    // Each text carries its length, so that no two lines have the same bytes.
    for text in [Some(line.kind), Some(line.name), Some(line.cause), line.node, line.item, Some(line.body)] {
        let length = text.map_or(-1, |text| i64::try_from(text.len()).unwrap_or(i64::MAX));
        hasher.update(length.to_be_bytes());
        hasher.update(text.unwrap_or_default());
    }
    for number in [line.visit.map(i64::from), line.attempt.map(i64::from), line.generation] {
        hasher.update([u8::from(number.is_some())]);
        hasher.update(number.unwrap_or_default().to_be_bytes());
    }
    hasher.update(line.command.map_or([0; 16], |command| *command.as_bytes()));
    hasher.finalize().into()
}

impl HistoryLine {
    /// Computes what the line's hash must be, given that of the line before.
    pub(crate) fn expected_hash(&self, before: &[u8]) -> [u8; 32] {
        let kind = self.said.kind();
        hash_chained(
            before,
            &Chained {
                seq: self.seq,
                at: self.at,
                kind,
                name: &self.name,
                cause: &self.cause,
                node: self.node.as_ref().map(NodeId::as_str),
                visit: self.visit.map(i32::from),
                attempt: self.attempt.map(i32::from),
                item: self.item.as_ref().map(ItemId::as_str),
                generation: self.generation,
                command: self.command,
                body: &self.body,
            },
        )
    }

    pub(crate) fn from_row(row: &PgRow) -> Result<HistoryLine, StoreError> {
        let body: String = row.try_get("body")?;
        let said = Said::read(row.try_get("kind")?, &body)?;
        let small = |column| -> Result<Option<u16>, StoreError> {
            let number: Option<i32> = row.try_get(column)?;
            Ok(number.and_then(|number| u16::try_from(number).ok()))
        };
        Ok(HistoryLine {
            run: run_id(row.try_get("run")?),
            seq: row.try_get("seq")?,
            at: time_at(row, "at")?,
            name: row.try_get("name")?,
            cause: row.try_get("cause")?,
            node: row.try_get::<Option<String>, _>("node")?.map(NodeId::new),
            visit: small("visit")?,
            attempt: small("attempt")?,
            item: row.try_get::<Option<String>, _>("item")?.map(ItemId::new),
            generation: row.try_get("generation")?,
            command: row.try_get("command")?,
            body,
            hash: row.try_get("hash")?,
            said,
        })
    }
}

impl Store {
    /// Returns the newest lines of a run's history, at most `limit`, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where one does not read, and those of the connection.
    pub async fn newest_lines(&self, run: RunId, limit: i64) -> Result<Vec<HistoryLine>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(NEWEST_LINES).bind(id).bind(limit).fetch_all(&mut *connection))?;
        rows.iter()
            .rev()
            .map(HistoryLine::from_row)
            .collect::<Result<_, _>>()
            .map_err(|error| error.in_run(run))
    }

    /// Returns what people and rules decided of all runs, newest first, each line with its run's name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a line does not read, and those of the connection.
    pub async fn decisions(&self, limit: i64) -> Result<Vec<(String, HistoryLine)>, StoreError> {
        let rows =
            repeated!(self, connection => sqlx::query(DECISIONS).bind(limit).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok((row.try_get("run_name")?, HistoryLine::from_row(row)?))).collect()
    }

    /// Returns the newest reports and findings about a node of a run, at most `limit`, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where one does not read, and those of the connection.
    pub async fn newest_inputs_at(
        &self,
        run: RunId,
        node: &NodeId,
        limit: i64,
    ) -> Result<Vec<HistoryLine>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(NEWEST_INPUTS_AT).bind(id).bind(node.as_str()).bind(limit).fetch_all(&mut *connection))?;
        rows.iter()
            .rev()
            .map(HistoryLine::from_row)
            .collect::<Result<_, _>>()
            .map_err(|error| error.in_run(run))
    }

    /// Returns the newest facts of a run, at most `limit`, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where one does not read, and those of the connection.
    pub async fn newest_facts(&self, run: RunId, limit: i64) -> Result<Vec<Fact>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(NEWEST_FACTS).bind(id).bind(limit).fetch_all(&mut *connection))?;
        rows.iter().rev().map(|row| fact_of(run, row)).collect()
    }

    /// Returns of each of these nodes the newest fact that says why it rests; [`StoreError::Corrupt`] in place of one that
    /// does not read.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn newest_resting_facts(
        &self,
        nodes: &[(RunId, &NodeId)],
    ) -> Result<BTreeMap<(RunId, NodeId), Result<Fact, StoreError>>, StoreError> {
        let runs: Vec<_> = nodes.iter().map(|(run, _)| stored_run(*run)).collect();
        let names: Vec<&str> = nodes.iter().map(|(_, node)| node.as_str()).collect();
        let rows = repeated!(self, connection => sqlx::query(NEWEST_RESTS).bind(&runs).bind(&names).fetch_all(&mut *connection))?;
        let rest = |row: &PgRow| {
            let run = run_id(row.try_get("run")?);
            let fact = fact_of(run, row).map_err(|error| error.in_run(run));
            Ok(((run, NodeId::new(row.try_get::<String, _>("node")?)), fact))
        };
        rows.iter().map(rest).collect()
    }

    /// Returns what the usage of each node's attempts had in it that nothing is decided by (migrations 0027, 0037).
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn usage_sums(&self, run: RunId) -> Result<BTreeMap<NodeId, UsageSums>, StoreError> {
        let id = stored_run(run);
        let rows =
            repeated!(self, connection => sqlx::query(USAGE_SUMS).bind(id).fetch_all(&mut *connection))?;
        let unsigned = |row: &PgRow, column: &str| {
            Ok::<_, StoreError>(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default())
        };
        let sums = |row: &PgRow| {
            let sums = UsageSums {
                cached_tokens: unsigned(row, "cached_tokens")?,
                estimated_tokens: unsigned(row, "estimated_tokens")?,
                estimated_micro_usd: unsigned(row, "estimated_micro_usd")?,
            };
            Ok((NodeId::new(row.try_get::<String, _>("node")?), sums))
        };
        rows.iter().map(sums).collect()
    }

    /// Returns at most `limit` lines of a run's history after line `after`, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a line does not read, and those of the connection.
    pub async fn history(&self, run: RunId, after: i64, limit: i64) -> Result<Vec<HistoryLine>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(HISTORY_AFTER).bind(id).bind(after).bind(limit).fetch_all(&mut *connection))?;
        rows.iter().map(HistoryLine::from_row).collect::<Result<_, _>>().map_err(|error| error.in_run(run))
    }

    /// Returns at most `limit` lines after line `after` that are about a node, and those of edges that led to it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where a line does not read, and those of the connection.
    pub async fn history_of_node(
        &self,
        run: RunId,
        node: &NodeId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<HistoryLine>, StoreError> {
        let id = stored_run(run);
        let rows = repeated!(self, connection => sqlx::query(HISTORY_OF_NODE)
            .bind(id)
            .bind(after)
            .bind(node.as_str())
            .bind(limit)
            .fetch_all(&mut *connection))?;
        rows.iter().map(HistoryLine::from_row).collect::<Result<_, _>>().map_err(|error| error.in_run(run))
    }

    /// Says how often a run went on with another text by the word of a policy.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn revisions_by_policy(&self, run: RunId) -> Result<u64, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, connection => sqlx::query(REVISED_BY_POLICY).bind(id).fetch_one(&mut *connection))?;
        Ok(row.try_get::<i64, _>("revised")?.unsigned_abs())
    }

    /// Returns the line that says how an ask was answered; none where it is open, or was taken back.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] where it does not read, and those of the connection.
    pub async fn answer_line(&self, run: RunId, ask: &ItemId) -> Result<Option<HistoryLine>, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, connection => sqlx::query(ANSWER).bind(id).bind(ask.as_str()).fetch_optional(&mut *connection))?;
        row.as_ref().map(HistoryLine::from_row).transpose().map_err(|error| error.in_run(run))
    }
}

fn fact_of(run: RunId, row: &PgRow) -> Result<Fact, StoreError> {
    let seq: i64 = row.try_get("seq")?;
    from_json(&row.try_get::<String, _>("body")?, &format!("line {seq} of run {run}"))
}
