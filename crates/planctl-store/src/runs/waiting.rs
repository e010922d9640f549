//! The open asks by place, the runs that wait for their answers, and those around and behind.
//!
//! Three statements read it all, however many asks are open; graphs that find no room in the cache are read one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planctl_engine::{Graph, NodeId, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::asks::{AskRow, ask_row};
use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::plans::digest_at;
use crate::rows::{run_id, stored_run};
use crate::store::Store;

pub(crate) const ASKS_WAITING: &str = "select a.number, a.run, a.node from asks a join runs r on r.id = a.run \
     where a.closed_at is null and ($1::uuid is null or a.run = $1) and ($2::bigint is null or r.workspace = $2) \
     order by a.number";

/// The runs of some open asks and those around them. Behind a run that has its workspace wait those that are queued for it.
pub(crate) const RUNS_WAITING: &str = "with recursive waiting as (select run from unnest($1::uuid[]) as w (run) \
       union select c.parent from waiting w join sub_plans c on c.run = w.run) \
     select r.id, r.graph, c.parent, i.node, \
       array(select n.node from nodes n where n.run = r.id and n.state in ('passed', 'failed', 'skipped', 'waived', 'warned')) \
         as settled, \
       case when r.active and not r.apart \
         then (select count(*) from runs q where q.workspace = r.workspace and q.status = 'queued' and not q.apart) \
         else 0 end as behind \
     from waiting w join runs r on r.id = w.run left join sub_plans c on c.run = r.id left join items i on i.id = c.item";

/// An open ask by its number and place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingAsk {
    /// The number people say.
    pub number: i64,
    /// The run that asks.
    pub run: RunId,
    /// The node that the ask holds.
    pub node: NodeId,
}

/// A run that waits for a person, or for a run within it that does.
#[derive(Clone, PartialEq, Debug)]
pub struct WaitingRun {
    /// Its graph.
    pub graph: Arc<Graph>,
    /// The nodes that have settled.
    pub settled: BTreeSet<NodeId>,
    /// The run around it, and the node of that one which waits for its end.
    pub around: Option<(RunId, NodeId)>,
    /// How many other runs wait until it leaves the workspace.
    pub behind: u64,
}

impl Store {
    /// Returns the open asks of a run, of a workspace, or all, by number, without what they ask.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks_waiting(
        &self,
        run: Option<RunId>,
        workspace: Option<WorkspaceId>,
    ) -> Result<Vec<WaitingAsk>, StoreError> {
        let (run, workspace) = (run.map(stored_run), workspace.map(|workspace| workspace.0));
        let rows = repeated!(self, connection => sqlx::query(ASKS_WAITING)
            .bind(run)
            .bind(workspace)
            .fetch_all(&mut *connection))?;
        let read = |row: &PgRow| {
            Ok(WaitingAsk {
                number: row.try_get("number")?,
                run: run_id(row.try_get("run")?),
                node: NodeId::new(row.try_get::<String, _>("node")?),
            })
        };
        rows.iter().map(read).collect()
    }

    /// Returns these runs and those around them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_waiting(
        &self,
        runs: &BTreeSet<RunId>,
    ) -> Result<BTreeMap<RunId, WaitingRun>, StoreError> {
        let ids: Vec<_> = runs.iter().copied().map(stored_run).collect();
        let rows =
            repeated!(self, connection => sqlx::query(RUNS_WAITING).bind(&ids).fetch_all(&mut *connection))?;
        let digests = rows.iter().map(|row| digest_at(row, "graph")).collect::<Result<BTreeSet<_>, _>>()?;
        self.cache_graphs(digests.iter()).await?;
        let mut waiting = BTreeMap::new();
        for row in &rows {
            let settled: Vec<String> = row.try_get("settled")?;
            let parent = row.try_get::<Option<_>, _>("parent")?.map(run_id);
            let node = row.try_get::<Option<String>, _>("node")?.map(NodeId::new);
            let run = WaitingRun {
                graph: self.graph(&digest_at(row, "graph")?).await?,
                settled: settled.into_iter().map(NodeId::new).collect(),
                around: parent.zip(node),
                behind: u64::try_from(row.try_get::<i64, _>("behind")?).unwrap_or(0),
            };
            waiting.insert(run_id(row.try_get("id")?), run);
        }
        Ok(waiting)
    }

    /// Returns the asks of these numbers, in this order; one that is not there any more is left out.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn asks_numbered(&self, numbers: &[i64]) -> Result<Vec<AskRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(super::ASKS_NUMBERED)
            .bind(numbers)
            .fetch_all(&mut *connection))?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let ask = ask_row(row)?;
            found.insert(ask.number, ask);
        }
        Ok(numbers.iter().filter_map(|number| found.remove(number)).collect())
    }
}
