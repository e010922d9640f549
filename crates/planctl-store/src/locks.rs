//! Locks, which no two steps hold at once, across runs. Claims take them and verdicts give them back.

use std::collections::BTreeMap;

use planctl_engine::{ItemId, NodeId, RunId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{run_id, stored_runs};
use crate::store::Store;

pub(crate) const LOCKS_AWAITED: &str = "select i.id, i.run as waits, l.name, r.name as run, l.node from items i \
     join locks l on l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node) join runs r on r.id = l.run \
     where i.run = any($1) and i.state = 'ready' order by i.id, l.name";

/// A lock that an item waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedLock {
    /// The item.
    pub item: ItemId,
    /// The lock's name.
    pub lock: String,
    /// The name of the run that has it.
    pub run: String,
    /// The node of that run that has it.
    pub node: NodeId,
}

impl Store {
    /// Returns the locks that the items of runs wait for, by these runs, and who has them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn awaited_locks(
        &self,
        runs: &[RunId],
    ) -> Result<BTreeMap<RunId, Vec<AwaitedLock>>, StoreError> {
        let ids = stored_runs(runs);
        let rows =
            repeated!(self, connection => sqlx::query(LOCKS_AWAITED).bind(&ids).fetch_all(&mut *connection))?;
        let mut awaited: BTreeMap<RunId, Vec<AwaitedLock>> = BTreeMap::new();
        for row in rows {
            awaited.entry(run_id(row.try_get("waits")?)).or_default().push(AwaitedLock {
                item: ItemId::new(row.try_get::<String, _>("id")?),
                lock: row.try_get("name")?,
                run: row.try_get("run")?,
                node: NodeId::new(row.try_get::<String, _>("node")?),
            });
        }
        Ok(awaited)
    }
}
