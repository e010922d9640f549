//! Questions for people, as the inbox reads them.

use planctl_engine::{Ask, At, Digest, ItemId, RunId, Timestamp, Work};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::page::Page;
use crate::plans::WorkspaceId;
use crate::queue::at_of;
use crate::rows::{from_json, run_id, stored_run, time_at};
use crate::store::Store;

macro_rules! asks_where {
    ($which:literal) => {
        concat!(
            "select a.number, a.item, a.run, a.node, a.visit, a.attempt, a.work::text as work, a.created_at, ",
            "a.closed_at is null as is_open, r.name as run_name, r.graph, p.path as plan_path, r.workspace, ",
            "w.path as workspace_path from asks a join runs r on r.id = a.run join plans p on p.id = r.plan ",
            "join workspaces w on w.id = r.workspace where ",
            $which
        )
    };
}

pub(crate) const ASKS: &str = asks_where!(
    "a.closed_at is null and ($1::uuid is null or a.run = $1) and ($2::bigint is null or r.workspace = $2) \
     and ($3::bigint is null or a.number > $3) order by a.number limit $4"
);

pub(crate) const ASK: &str = asks_where!("a.number = $1");

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
        self.asks_page(run, workspace, &Page::ALL).await
    }

    /// Returns a page of the open asks of a run, of a workspace, or all, by number.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks_page(
        &self,
        run: Option<RunId>,
        workspace: Option<WorkspaceId>,
        page: &Page<i64>,
    ) -> Result<Vec<AskRow>, StoreError> {
        let (run, workspace) = (run.map(stored_run), workspace.map(|workspace| workspace.0));
        let rows = repeated!(self, connection => sqlx::query(ASKS)
            .bind(run)
            .bind(workspace)
            .bind(page.after)
            .bind(page.limit)
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
}

fn ask_row(row: &PgRow) -> Result<AskRow, StoreError> {
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
    })
}
