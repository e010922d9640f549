//! Locks, which no two steps hold at once, across runs. Claims take them and verdicts give them back.

use planctl_engine::{ItemId, NodeId, RunId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::stored_run;
use crate::store::Store;

pub(crate) const LOCKS_AWAITED: &str = "select i.id, l.name, r.name as run, l.node from items i \
     join locks l on l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node) join runs r on r.id = l.run \
     where i.run = $1 and i.state = 'ready' order by i.id, l.name";

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
    /// Returns the locks that a run's items wait for, and who has them.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn awaited_locks(&self, run: RunId) -> Result<Vec<AwaitedLock>, StoreError> {
        let id = stored_run(run);
        let rows =
            repeated!(self, connection => sqlx::query(LOCKS_AWAITED).bind(id).fetch_all(&mut *connection))?;
        rows.iter()
            .map(|row| {
                Ok(AwaitedLock {
                    item: ItemId::new(row.try_get::<String, _>("id")?),
                    lock: row.try_get("name")?,
                    run: row.try_get("run")?,
                    node: NodeId::new(row.try_get::<String, _>("node")?),
                })
            })
            .collect()
    }
}
