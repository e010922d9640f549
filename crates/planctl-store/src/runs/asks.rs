//! Questions for people, as the inbox reads them.

use planctl_engine::{Ask, At, Digest, ItemId, RunId, StoppingAnswer, Timestamp, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::rows::{at_of, from_json, optional_time_at, run_id, stored_run, stored_runs, time_at};
use crate::store::Store;

macro_rules! asks_where {
    ($which:literal) => {
        concat!(
            "select a.number, a.item, a.run, a.node, a.visit, a.attempt, a.work::text as work, a.created_at, ",
            "a.closed_at is null as is_open, a.deadline_at, a.deadline_answer, a.deadline_rule, r.name as run_name, r.graph, ",
            "p.path as plan_path, r.workspace, ",
            "w.path as workspace_path from asks a join runs r on r.id = a.run join plans p on p.id = r.plan ",
            "join workspaces w on w.id = r.workspace where ",
            $which
        )
    };
}

pub(crate) const ASKS: &str = asks_where!(
    "a.closed_at is null and ($1::uuid is null or a.run = $1) and ($2::bigint is null or r.workspace = $2) \
     order by a.number"
);

pub(crate) const ASK: &str = asks_where!("a.number = $1");
pub(crate) const ASKS_NUMBERED: &str = asks_where!("a.number = any($1)");

pub(crate) const ASKS_LAPSED: &str = "select a.number, a.run, a.item, a.created_at, a.deadline_at, a.deadline_answer, \
     a.deadline_rule from asks a where a.closed_at is null and a.deadline_at <= clock_timestamp() \
     and (a.run is null or a.run <> all($1::uuid[])) order by a.deadline_at limit $2";

/// A question for a person.
#[derive(Clone, PartialEq, Debug)]
pub struct AskRow {
    /// The number people say.
    pub number: i64,
    /// Its item.
    pub item: ItemId,
    /// The run that asks.
    pub run: RunId,
    /// The run's name.
    pub run_name: String,
    /// The digest of the graph that the run executes.
    pub graph: Digest,
    /// The plan's path in the workspace.
    pub plan_path: String,
    /// The run's workspace.
    pub workspace: WorkspaceId,
    /// The canonical path of the run's workspace.
    pub workspace_path: String,
    /// Where it came up.
    pub at: At,
    /// The question.
    pub ask: Ask,
    /// Says that nobody has answered yet.
    pub is_open: bool,
    /// When it was asked.
    pub created_at: Timestamp,
    /// The answer of a rule, where nobody gives one in time.
    pub deadline: Option<AskDeadline>,
}

/// When a rule, or the plan's own text, answers an ask that nobody has answered, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskDeadline {
    /// When.
    pub at: Timestamp,
    /// The answer.
    pub answer: StoppingAnswer,
    /// The rule's name; `the plan` where its own text says so.
    pub rule: String,
}

/// An open ask that nobody has answered in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LapsedAsk {
    /// The number people say.
    pub number: i64,
    /// The run that asks; none where a draft does.
    pub run: Option<RunId>,
    /// Its item.
    pub item: ItemId,
    /// When it was asked.
    pub created_at: Timestamp,
    /// The answer of the rule.
    pub deadline: AskDeadline,
}

impl Store {
    /// Returns the open asks of a run, of a workspace, or all, by number.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks(
        &self,
        run: Option<RunId>,
        workspace: Option<WorkspaceId>,
    ) -> Result<Vec<AskRow>, StoreError> {
        let (run, workspace) = (run.map(stored_run), workspace.map(|workspace| workspace.0));
        let rows = repeated!(self, connection => sqlx::query(ASKS)
            .bind(run)
            .bind(workspace)
            .fetch_all(&mut *connection))?;
        rows.iter().map(ask_row).collect()
    }

    /// Returns the ask of this number, open or answered.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoAsk`] and those of the connection.
    pub async fn ask(&self, number: i64) -> Result<AskRow, StoreError> {
        let row =
            repeated!(self, connection => sqlx::query(ASK).bind(number).fetch_optional(&mut *connection))?;
        ask_row(&row.ok_or_else(|| StoreError::NoAsk { number })?)
    }

    /// Returns open asks whose deadline has passed, but none of these runs.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn expired_asks(&self, except: &[RunId], limit: i64) -> Result<Vec<LapsedAsk>, StoreError> {
        let except = stored_runs(except);
        let rows = repeated!(self, connection => sqlx::query(ASKS_LAPSED).bind(&except).bind(limit).fetch_all(&mut *connection))?;
        let mut lapsed = Vec::new();
        for row in &rows {
            let Some(deadline) = ask_deadline(row)? else { continue };
            lapsed.push(LapsedAsk {
                number: row.try_get("number")?,
                run: row.try_get::<Option<Uuid>, _>("run")?.map(run_id),
                item: ItemId::new(row.try_get::<String, _>("item")?),
                created_at: time_at(row, "created_at")?,
                deadline,
            });
        }
        Ok(lapsed)
    }
}

pub(super) fn ask_row(row: &PgRow) -> Result<AskRow, StoreError> {
    let work: Work = from_json(row.try_get("work")?, "an item's work")?;
    let ask = match work {
        Work::Human { ask } => *ask,
        Work::Agent { .. } | Work::Harness { .. } => {
            return Err(StoreError::corrupt("an ask is not for a person"));
        }
    };
    Ok(AskRow {
        number: row.try_get("number")?,
        item: ItemId::new(row.try_get::<String, _>("item")?),
        run: run_id(row.try_get("run")?),
        run_name: row.try_get("run_name")?,
        graph: Digest::new(row.try_get::<String, _>("graph")?),
        plan_path: row.try_get("plan_path")?,
        workspace: WorkspaceId(row.try_get("workspace")?),
        workspace_path: row.try_get("workspace_path")?,
        at: at_of(row)?,
        ask,
        is_open: row.try_get("is_open")?,
        created_at: time_at(row, "created_at")?,
        deadline: ask_deadline(row)?,
    })
}

pub(crate) fn ask_deadline(row: &PgRow) -> Result<Option<AskDeadline>, StoreError> {
    let Some(at) = optional_time_at(row, "deadline_at")? else { return Ok(None) };
    let (word, rule): (String, String) = (row.try_get("deadline_answer")?, row.try_get("deadline_rule")?);
    let answer = StoppingAnswer::ALL.into_iter().find(|answer| answer.as_str() == word);
    let answer = answer.ok_or_else(|| StoreError::corrupt("a rule answers an ask with another word"))?;
    Ok(Some(AskDeadline { at, answer, rule }))
}
