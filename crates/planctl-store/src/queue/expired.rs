//! Items whose lease ran out or whose holder is dead, and when to look again.

use std::time::Duration;

use planctl_engine::{At, ClockEvent, Event, ItemId, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::{StoreError, Unread};
use crate::proof::Proof;
use crate::rows::{at_of, run_id, stored_runs};
use crate::store::Store;

macro_rules! leased_where {
    ($which:literal) => {
        concat!(
            "select i.id, i.run, i.node, i.visit, i.attempt, i.lane, i.generation, i.own, i.instance, ",
            "i.hard_deadline < clock_timestamp() as is_overrun from items i where i.state = 'leased' and ",
            $which,
            " and i.run <> all($2::uuid[]) order by i.lease_until limit $1"
        )
    };
}

pub(crate) const EXPIRED: &str =
    leased_where!("(i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp())");

pub(crate) const HELD_BY: &str = leased_where!("i.host = $3 and i.instance = $4");

pub(crate) const HOLDERS: &str = "select distinct boot, instance from items where state in ('leased', 'withdrawn') and own and host = $1 order by 1, 2";

/// When a sweep has something to do, and the standing of all open runs and asks, which every transition changes.
pub(crate) const STANDING: &str = "select \
     exists (select from items where state in ('leased', 'withdrawn')) \
       or exists (select from items where held_until is not null and state = 'ready') \
       or exists (select from asks where closed_at is null and work -> 'ask' ->> 'kind' = 'day_budget') as has_work_out, \
     (extract(epoch from least((select min(at) from timers), \
       (select min(deadline_at) from asks where closed_at is null and deadline_at is not null)) \
       - clock_timestamp()) * 1000000)::bigint as due_micros, \
     (extract(epoch from least( \
       (select min(available_at) from items where state = 'ready' and served_on is null and lane <> 'human'), \
       (select min(available_at) from items where state = 'ready' and served_on is not null and lane <> 'human')) \
       - clock_timestamp()) * 1000000)::bigint as claimable_micros, \
     (select count(*) || '/' || coalesce(sum(seq), 0) from runs where ended_at is null) \
       || '/' || (select count(*) from asks where closed_at is null) as open";

/// Where everything stands, for a sweep that looks whether it has something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Says that somebody holds a lease, or that a budget of a day holds something back: only a sweep tells what follows.
    pub has_work_out: bool,
    /// How long from now a timer fires or an ask runs out; zero where it is due.
    pub due_in: Option<Duration>,
    /// How long from now work can be claimed; zero where it can.
    pub claimable_in: Option<Duration>,
    /// The standing of all open runs and asks: another one after any transition.
    pub open: String,
}

/// A lease that has run out, or whose holder is dead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expired {
    /// The item.
    pub item: ItemId,
    /// The run.
    pub run: RunId,
    /// The try.
    pub at: At,
    /// The generation that is over.
    pub generation: i64,
    /// Says that it was an agent's work whose hard deadline has passed.
    pub is_overrun: bool,
    /// Says that the holder was one of our own processes.
    pub own: bool,
    /// The instance that holds it, dead or not.
    pub holder: Option<String>,
    /// The instance that held it, where it is known to be dead.
    pub dead_instance: Option<String>,
}

impl Expired {
    /// Returns the news for the engine.
    pub fn event(&self) -> Event {
        Event::Clock(if self.is_overrun {
            ClockEvent::Overran { at: self.at.clone(), noted: None }
        } else {
            ClockEvent::LeaseLost { at: self.at.clone(), interrupted: self.own, noted: None }
        })
    }

    /// Returns the proof, which is checked again when the news is applied.
    pub fn proof(&self) -> Proof {
        Proof::Expired {
            item: self.item.clone(),
            generation: self.generation,
            dead_instance: self.dead_instance.clone(),
        }
    }

    fn read_each(
        rows: &[PgRow],
        dead_instance: Option<&str>,
    ) -> Result<Vec<Result<Expired, Unread>>, StoreError> {
        rows.iter()
            .map(|row| {
                let run = run_id(row.try_get("run")?);
                Ok(Expired::from_row(row, dead_instance).map_err(|error| Unread::new(run, error)))
            })
            .collect()
    }

    pub(super) fn from_row(row: &PgRow, dead_instance: Option<&str>) -> Result<Expired, StoreError> {
        let lane: &str = row.try_get("lane")?;
        let is_past: bool = row.try_get("is_overrun")?;
        Ok(Expired {
            item: ItemId::new(row.try_get::<String, _>("id")?),
            run: run_id(row.try_get("run")?),
            at: at_of(row)?,
            generation: row.try_get("generation")?,
            // Of a holder that is dead nobody minded it, whatever its deadline was: an interruption, not an overrun.
            is_overrun: lane == "agent" && is_past && dead_instance.is_none(),
            own: row.try_get::<Option<bool>, _>("own")?.unwrap_or(false),
            holder: row.try_get("instance")?,
            dead_instance: dead_instance.map(str::to_owned),
        })
    }
}

impl Store {
    /// Returns leases that have run out, but none of these runs, for a sweep to apply with [`Expired::event`] and
    /// [`Expired::proof`].
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn expired(
        &self,
        except: &[RunId],
        limit: i64,
    ) -> Result<Vec<Result<Expired, Unread>>, StoreError> {
        let except = stored_runs(except);
        let rows = repeated!(self, connection => sqlx::query(EXPIRED).bind(limit).bind(&except).fetch_all(&mut *connection))?;
        Expired::read_each(&rows, None)
    }

    /// Returns where everything stands.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let row = repeated!(self, connection => sqlx::query(STANDING).fetch_one(&mut *connection))?;
        let wait = |column: &str| {
            let micros: Option<i64> = row.try_get(column)?;
            Ok::<_, StoreError>(
                micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
            )
        };
        Ok(Standing {
            has_work_out: row.try_get("has_work_out")?,
            due_in: wait("due_micros")?,
            claimable_in: wait("claimable_micros")?,
            open: row.try_get("open")?,
        })
    }

    /// Returns the leases of an instance on this host that the caller knows to be dead, but none of these runs, for a
    /// sweep.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn leases_of_dead_instance(
        &self,
        host: &str,
        instance: &str,
        except: &[RunId],
    ) -> Result<Vec<Result<Expired, Unread>>, StoreError> {
        let except = stored_runs(except);
        let rows = repeated!(self, connection => sqlx::query(HELD_BY)
            .bind(1000_i64)
            .bind(&except)
            .bind(host)
            .bind(instance)
            .fetch_all(&mut *connection))?;
        Expired::read_each(&rows, Some(instance))
    }

    /// Returns boot and instance of planctl's own processes on this host that hold leases, or held some that were taken back.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn holders(&self, host: &str) -> Result<Vec<(String, String)>, StoreError> {
        let rows =
            repeated!(self, connection => sqlx::query(HOLDERS).bind(host).fetch_all(&mut *connection))?;
        rows.iter().map(|row| Ok((row.try_get("boot")?, row.try_get("instance")?))).collect()
    }
}
