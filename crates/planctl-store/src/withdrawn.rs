//! Leases that were revoked while their holders worked. A holder may still write in the workspace after the revocation.
//! So the workspace of the run, the locks of the node and the next work of the run are released only when the holder
//! acknowledges the revocation, is known to be dead, or the time of the lease is over.
//!
//! The item's row stays, in a state of its own, and is renewed by nobody. A run that ended keeps `active`, and with it its
//! place in the index that lets one run at a time have a workspace, as long as such rows are left; then
//! [`Store::admit_run`] gives the workspace to the next run.

use std::collections::BTreeSet;

use planctl_engine::{ItemId, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::claimed::Claimed;
use crate::connections::repeated;
use crate::error::StoreError;
use crate::notifier::WakeFor;
use crate::rows::{run_id, stored_run, stored_runs};
use crate::store::Store;
use crate::token::Token;

/// Says that a run, or one within it, still has leases that were taken back, or that one within it is not over.
macro_rules! is_ending {
    ($run:literal) => {
        concat!(
            "exists (with recursive within as (select ",
            $run,
            " as id union select c.run from within w join sub_plans c on c.parent = w.id) select from within w ",
            "where exists (select from items i where i.run = w.id and i.state = 'withdrawn') ",
            "or w.id <> ",
            $run,
            " and exists (select from runs n where n.id = w.id and n.ended_at is null))"
        )
    };
}

pub(crate) use is_ending;

macro_rules! released_where {
    ($which:literal) => {
        concat!(
            "with released as (delete from items i where i.state = 'withdrawn' and ",
            $which,
            " returning i.run, i.node), ",
            "freed as (delete from locks l using released r where l.run = r.run and l.node = r.node) ",
            "select distinct run from released"
        )
    };
}

pub(crate) const ACKNOWLEDGE: &str = released_where!("i.id = $1 and i.generation = $2 and i.token_hash = $3");
pub(crate) const RELEASE_LOST: &str = released_where!(
    "(i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() \
     or i.own and i.host = $1 and i.instance = any($2::text[]))"
);
pub(crate) const HELD_BACK: &str =
    "select distinct run from items where run = any($1) and state = 'withdrawn'";
/// Takes the workspace of a run, or its own place, from a run that ended and whose holders have ended too. Its status is
/// read again, since it may have been resumed and have ended anew meanwhile.
pub(crate) const LEAVE_WORKSPACE: &str = concat!(
    "with left_over as (select o.id, o.seq from runs r join runs o on o.workspace = r.workspace and o.active and not o.apart \
       where r.id = $1 and not r.apart \
       union select r.id, r.seq from runs r where r.id = $1 and r.active) \
     update runs o set active = false from left_over l where o.id = l.id and o.seq = l.seq and o.status <> 'active' and not ",
    is_ending!("o.id")
);

impl Store {
    /// Acknowledges the revocation of a lease: its holder has ended what it did. Of any other lease, nothing.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn acknowledge(&self, claimed: &Claimed) -> Result<(), StoreError> {
        self.acknowledge_with_token(&claimed.item.id, claimed.generation, &claimed.token).await
    }

    /// Acknowledges the revocation of a lease, if the caller shows its generation and secret.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn acknowledge_with_token(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
    ) -> Result<(), StoreError> {
        let hash = token.hash();
        let rows = repeated!(self, connection => sqlx::query(ACKNOWLEDGE)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .fetch_all(&mut *connection))?;
        self.notify_waiters(&rows)
    }

    /// Releases leases that were revoked and whose time is over, or whose holders on this host are known to be dead.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn release_lost(&self, host: &str, dead: &[String]) -> Result<(), StoreError> {
        let rows = repeated!(self, connection => sqlx::query(RELEASE_LOST)
            .bind(host)
            .bind(dead)
            .fetch_all(&mut *connection))?;
        self.notify_waiters(&rows)
    }

    /// Returns those of some runs whose work waits for the end of somebody whose lease of it was taken back.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn runs_held_back(&self, runs: &[RunId]) -> Result<BTreeSet<RunId>, StoreError> {
        let ids = stored_runs(runs);
        let rows =
            repeated!(self, connection => sqlx::query(HELD_BACK).bind(&ids).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok(run_id(row.try_get("run")?))).collect()
    }

    /// Takes the workspace of a queued run from one that ended and left it.
    pub(crate) async fn reclaim_workspace(&self, wanted_by: RunId) -> Result<(), StoreError> {
        let id = stored_run(wanted_by);
        repeated!(self, connection => sqlx::query(LEAVE_WORKSPACE).bind(id).execute(&mut *connection))?;
        Ok(())
    }

    fn notify_waiters(&self, rows: &[PgRow]) -> Result<(), StoreError> {
        for row in rows {
            self.notifier().notify(run_id(row.try_get("run")?), WakeFor::UNKNOWN);
        }
        Ok(())
    }
}
