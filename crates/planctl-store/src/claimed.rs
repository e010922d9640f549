//! A leased item, with what its holder needs.

use std::sync::Arc;

use planctl_engine::{Digest, Graph, Item, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::StoreError;
use crate::ids::ApprovalId;
use crate::proof::Proof;
use crate::token::Token;

/// The revision, approval and settings of a run. It changes with a revision and with a change of workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunConfig {
    /// The revision that runs.
    pub revision: Digest,
    /// The approval under which it runs.
    pub approval: Option<ApprovalId>,
    /// The worker and its way of working, as JSON.
    pub settings: String,
}

impl RunConfig {
    pub(crate) fn from_row(row: &PgRow) -> Result<RunConfig, StoreError> {
        Ok(RunConfig {
            revision: Digest::new(row.try_get::<String, _>("revision")?),
            approval: row.try_get::<Option<i64>, _>("approval")?.map(ApprovalId),
            settings: row.try_get("settings")?,
        })
    }
}

/// A leased item, with what its holder needs.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The item: its id, run, try and work.
    pub item: Item,
    /// The generation of the lease.
    pub generation: i64,
    /// The secret that proves the lease.
    pub token: Token,
    /// The run's name.
    pub run_name: String,
    /// The run's compiled graph.
    pub graph: Arc<Graph>,
    /// The plan's path in its workspace.
    pub plan: String,
    /// The run's configuration when the item was claimed.
    pub run_config: RunConfig,
    /// The host that has the workspace.
    pub host: String,
    /// The workspace's path on that host.
    pub workspace: String,
    /// When the lease ends unless it is renewed.
    pub lease_until: Timestamp,
    /// Beyond when it is never renewed.
    pub hard_deadline: Timestamp,
}

impl Claimed {
    /// Returns the proof for what the holder has to say.
    pub fn proof(&self) -> Proof {
        Proof::Lease { item: self.item.id.clone(), generation: self.generation, token: self.token.clone() }
    }
}
