//! Runs that carry out a node of another one's plan: which run is around them, who is woken, who is left over.

use planctl_engine::{Budget, ClockEvent, Event, Head, ItemId, NodeId, RunId};
use sqlx::Row;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::notifier::WakeFor;
use crate::proof::Proof;
use crate::rows::{from_json, run_id, stored_run, stored_runs};
use crate::runs::{AroundRow, RunRow, SUB_PLAN_OF, SUB_PLANS_OPEN};
use crate::store::Store;
use crate::withdrawn::is_ending;

/// An item that waits rests for decades; one that is due or may be soon is left alone, and so is one whose run within is
/// over while somebody still works for it. A run within that waits for a person, as [`planctl_engine::Head::is_waiting`] says it, or goes
/// on, is told to the run around it, too.
pub(crate) const WAKE_AROUND: &str = concat!(
    "update items i set available_at = clock_timestamp(), due_at = clock_timestamp() \
     from sub_plans c join runs r on r.id = c.run, nodes n \
     where c.item = i.id and n.run = i.run and n.node = i.node and i.state = 'ready' and i.lane = 'harness' \
     and i.available_at > clock_timestamp() + interval '1 year' \
     and case when r.status = 'ended' then not ",
    is_ending!("c.run"),
    " else (r.status in ('awaiting', 'paused') or r.status = 'active' and r.head ->> 'clock_since' is null) \
       <> (n.record -> 'state' ->> 'waits' is not null) end \
     returning i.run"
);
pub(crate) const WAKE_RAISED: &str = "update items i set available_at = clock_timestamp(), due_at = clock_timestamp() \
     from sub_plans c where c.run = $1 and c.item = i.id and i.state = 'ready' and i.lane = 'harness' \
     and i.available_at > clock_timestamp() + interval '1 year' returning i.run";
pub(crate) const HEAD_AROUND: &str =
    "select i.node, r.head::text as head from items i join runs r on r.id = i.run where i.id = $1";
pub(crate) const SUB_PLANS_LEFT: &str = "select c.run from sub_plans c join runs r on r.id = c.run \
     where r.ended_at is null and not exists (select from items i where i.id = c.item and i.state <> 'withdrawn') \
     and c.run <> all($2::uuid[]) order by c.run limit $1";

impl Store {
    /// Returns what is set aside of the budget of an item's run for the run that the item waits for.
    pub(crate) async fn budget_set_aside_for(&self, item: &ItemId) -> Result<Budget, StoreError> {
        let row = repeated!(self, connection => sqlx::query(HEAD_AROUND).bind(item.as_str()).fetch_optional(&mut *connection))?;
        let Some(row) = row else { return Ok(Budget::default()) };
        let head: Head = from_json(row.try_get("head")?, "a run's head")?;
        Ok(head.budget_set_aside_for(&NodeId::new(row.try_get::<String, _>("node")?)))
    }

    /// Returns the highest budget that the run of a sub-plan may have, by what is left around it at that time.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn budget_max_for(&self, within: &RunRow, around: &ItemId) -> Result<Budget, StoreError> {
        let row = repeated!(self, connection => sqlx::query(HEAD_AROUND).bind(around.as_str()).fetch_optional(&mut *connection))?;
        let Some(row) = row else { return Ok(Budget::default()) };
        let head: Head = from_json(row.try_get("head")?, "a run's head")?;
        let node = NodeId::new(row.try_get::<String, _>("node")?);
        Ok(head.budget_max_for_sub_plan(&node, &within.head, within.read_at))
    }

    /// Sets aside what the run of a sub-plan may use once it is raised, in the budget of the run around it.
    ///
    /// # Errors
    ///
    /// A refusal where less is left there, or where the run around it does not wait for this one; and those of the connection.
    pub async fn set_aside(
        &self,
        within: &RunRow,
        around: &AroundRow,
        budget: Budget,
    ) -> Result<(), StoreError> {
        let item = around.item.as_str();
        let row = repeated!(self, connection => sqlx::query(HEAD_AROUND).bind(item).fetch_optional(&mut *connection))?;
        let Some(row) = row else { return Ok(()) };
        let node = NodeId::new(row.try_get::<String, _>("node")?);
        let event = Event::Clock(ClockEvent::SetAside { node, run: within.id, budget });
        self.apply(around.run, &event, &Proof::Clock, None).await.map(drop)
    }

    /// Lets the item that waits for a run be claimed, so that what the run may use is set aside around it.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn wake_raised(&self, within: RunId) -> Result<(), StoreError> {
        let id = stored_run(within);
        let rows =
            repeated!(self, connection => sqlx::query(WAKE_RAISED).bind(id).fetch_all(&mut *connection))?;
        for row in rows {
            self.notifier().notify(run_id(row.try_get("run")?), WakeFor::UNKNOWN);
        }
        Ok(())
    }

    /// Returns the run for whose end an item waits.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn sub_plan_of(&self, item: &ItemId) -> Result<Option<RunRow>, StoreError> {
        let row = repeated!(self, connection => sqlx::query(SUB_PLAN_OF).bind(item.as_str()).fetch_optional(&mut *connection))?;
        row.as_ref().map(RunRow::from_row).transpose()
    }

    /// Returns the runs within another that are not over.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn open_sub_plans(&self, parent: RunId) -> Result<Vec<RunRow>, StoreError> {
        let id = stored_run(parent);
        let rows =
            repeated!(self, connection => sqlx::query(SUB_PLANS_OPEN).bind(id).fetch_all(&mut *connection))?;
        rows.iter().map(RunRow::from_row).collect()
    }

    /// Lets items be claimed whose runs within are over, begin to wait for a person, or go on.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn wake_parent_runs(&self) -> Result<(), StoreError> {
        let rows = repeated!(self, connection => sqlx::query(WAKE_AROUND).fetch_all(&mut *connection))?;
        for row in rows {
            self.notifier().notify(run_id(row.try_get("run")?), WakeFor::UNKNOWN);
        }
        Ok(())
    }

    /// Returns the runs of sub-plans that are not over although the run around them went on or ended, without
    /// those of `except`.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn orphaned_sub_plans(&self, except: &[RunId], limit: i64) -> Result<Vec<RunId>, StoreError> {
        let except = stored_runs(except);
        let rows = repeated!(self, connection => sqlx::query(SUB_PLANS_LEFT).bind(limit).bind(&except).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok(run_id(row.try_get("run")?))).collect()
    }
}
