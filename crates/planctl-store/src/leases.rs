//! Leases by what their holders show, an item's id, a generation and a secret: for API servers that keep no state of a claim.

use std::time::Duration;

use planctl_engine::{ClockEvent, Event, Head, ItemId, RunId, Timestamp, Usage};
use sqlx::Row;

use crate::claimed::Claimed;
use crate::connections::repeated;
use crate::error::StoreError;
use crate::proof::Proof;
use crate::queue::ITEM;
use crate::rows::{from_json, micros, stored_run, time_at, to_json};
use crate::store::Store;
use crate::token::Token;

pub(crate) const RENEW: &str = "update items set lease_until = least(hard_deadline, clock_timestamp() + $4::bigint * interval '1 microsecond') \
     where id = $1 and generation = $2 and token_hash = $3 and state = 'leased' \
     returning lease_until, hard_deadline, hard_deadline <= clock_timestamp() as is_over";
/// Restarts the time until the hard deadline: an item that only waits uses none of it up.
pub(crate) const RENEW_WAITING: &str = "update items set hard_deadline = clock_timestamp() + span_micros * interval '1 microsecond', \
     lease_until = clock_timestamp() + least($4::bigint, span_micros) * interval '1 microsecond' \
     where id = $1 and generation = $2 and token_hash = $3 and state = 'leased' \
     returning lease_until, hard_deadline, false as is_over";
/// Returns the state of the run besides, and what the holders of its other items noted.
pub(crate) const NOTE_USAGE: &str = "with noted as (update items set used = $4::json \
       where id = $1 and generation = $2 and token_hash = $3 and state = 'leased' returning run) \
     select r.head::text as head, array(select i.used::text from items i \
       where i.run = r.id and i.id <> $1 and i.lane = 'agent' and i.state = 'leased' and i.used is not null) as others \
     from noted n join runs r on r.id = n.run";
/// The item is as it was before its claim, but for the generation: what the former holder says counts no longer.
pub(crate) const HAND_BACK: &str = "update items set state = 'ready', token_hash = null, host = null, boot = null, instance = null, \
     own = null, lease_until = null, hard_deadline = null \
     where id = $1 and generation = $2 and token_hash = $3 and state = 'leased'";
pub(crate) const IS_HELD: &str = "select exists (select from items where id = $1 and generation = $2 and token_hash = $3 \
     and state = 'leased' and hard_deadline > clock_timestamp()) as is_held";
pub(crate) const HELD_FOR: &str = "select (extract(epoch from clock_timestamp() - hard_deadline) * 1000000)::bigint + span_micros \
     as micros from items where id = $1 and generation = $2 and token_hash = $3 and state = 'leased'";
/// Says whether the run is over or paused, or has taken this work back.
pub(crate) const IS_CANCELLED: &str = "select r.status <> 'active' or exists (select from items i where i.id = $2 \
     and i.generation = $3 and i.token_hash = $4 and i.state = 'withdrawn') as is_cancelled from runs r where r.id = $1";
pub(crate) const RUN_STATUS_OF: &str = "select status from runs where id = $1";
/// The result of a renewal of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renewal {
    /// The holder still holds the item, until this time.
    Held {
        /// When the lease ends unless it is renewed again.
        lease_until: Timestamp,
        /// Says that the hard deadline has passed: end the work and say so.
        is_over: bool,
    },
    /// The run has ended or was paused, or the work was taken back: stop at once, nobody waits for a report.
    Cancelled,
    /// Somebody else has the item, or nobody: stop at once.
    Lost,
}

/// An item as seen by a caller that shows a generation and a secret.
#[derive(Clone, Debug)]
pub enum Leased {
    /// They hold it.
    Held(Box<Claimed>),
    /// The generation they show is over, or the item is done or taken back.
    Lost,
    /// There is no such item, or none that this secret was given with.
    Unknown,
}

impl Store {
    /// Returns the leased item with the rows that its work needs, for any claimant on any host.
    ///
    /// A lease whose time is over counts as held until a sweep takes it back, as everywhere.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn find_lease(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
    ) -> Result<Leased, StoreError> {
        let row = repeated!(self, connection => sqlx::query(ITEM).bind(item.as_str()).fetch_optional(&mut *connection))?;
        let Some(row) = row else {
            let run = item.agent_try().map(|(run, _)| run);
            let is_of_a_run = match run {
                Some(run) => self.status_of(run).await?.is_some(),
                None => false,
            };
            return Ok(if is_of_a_run { Leased::Lost } else { Leased::Unknown });
        };
        let newest: i64 = row.try_get("generation")?;
        let is_leased = row.try_get::<&str, _>("state")? == "leased";
        let hash: Option<Vec<u8>> = row.try_get("token_hash")?;
        if is_leased && newest == generation && hash.as_ref() == Some(&token.hash()) {
            return Ok(Leased::Held(Box::new(self.claimed_from_row(&row, token.clone()).await?)));
        }
        let is_past = newest > generation || (newest == generation && !is_leased);
        Ok(if is_past { Leased::Lost } else { Leased::Unknown })
    }

    /// Returns how long ago an item was claimed, if the caller holds it.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn lease_age(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
    ) -> Result<Option<Duration>, StoreError> {
        let hash = token.hash();
        let row = repeated!(self, connection => sqlx::query(HELD_FOR)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .fetch_optional(&mut *connection))?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Duration::from_micros(u64::try_from(row.try_get::<i64, _>("micros")?).unwrap_or(0))))
    }

    /// Extends a lease, never beyond its hard deadline.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn renew(&self, claimed: &Claimed, lease: Duration) -> Result<Renewal, StoreError> {
        self.renew_by(&claimed.item.id, claimed.generation, &claimed.token, lease).await
    }

    /// Extends a lease, never beyond its hard deadline, if the caller shows its generation and secret.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn renew_by(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
        lease: Duration,
    ) -> Result<Renewal, StoreError> {
        self.renew_with(RENEW, item, generation, token, lease).await
    }

    /// Gives an item back under whose lease nothing has begun, so that the next one can claim it at once; says whether it was
    /// held. No word of it reaches the run: nothing was interrupted.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn hand_back(&self, claimed: &Claimed) -> Result<bool, StoreError> {
        let (id, hash) = (claimed.item.id.as_str(), claimed.token.hash());
        let done = repeated!(self, connection => sqlx::query(HAND_BACK)
            .bind(id)
            .bind(claimed.generation)
            .bind(&hash)
            .execute(&mut *connection))?;
        Ok(done.rows_affected() > 0)
    }

    /// Extends a lease under which nothing has begun: its hard deadline is as far away again as when it was claimed.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn renew_waiting(&self, claimed: &Claimed, lease: Duration) -> Result<Renewal, StoreError> {
        let Claimed { item, generation, token, .. } = claimed;
        self.renew_with(RENEW_WAITING, &item.id, *generation, token, lease).await
    }

    async fn renew_with(
        &self,
        statement: &'static str,
        item: &ItemId,
        generation: i64,
        token: &Token,
        lease: Duration,
    ) -> Result<Renewal, StoreError> {
        let hash = token.hash();
        let row = repeated!(self, connection => sqlx::query(statement)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .bind(micros(lease))
            .fetch_optional(&mut *connection))?;
        if let Some(row) = row {
            return Ok(Renewal::Held {
                lease_until: time_at(&row, "lease_until")?,
                is_over: row.try_get("is_over")?,
            });
        }
        let Some(run) = item.run().map(stored_run) else { return Ok(Renewal::Lost) };
        let row = repeated!(self, connection => sqlx::query(IS_CANCELLED)
            .bind(run)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .fetch_optional(&mut *connection))?;
        let is_cancelled = row.map(|row| row.try_get::<bool, _>("is_cancelled")).transpose()?;
        Ok(if is_cancelled == Some(true) { Renewal::Cancelled } else { Renewal::Lost })
    }

    /// Keeps the usage that the holder has reported so far with its lease, for the next event of the item, and ends the lease if
    /// the budget does not allow it; says whether it was held.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn note_usage(
        &self,
        item: &ItemId,
        generation: i64,
        token: &Token,
        usage: &Usage,
    ) -> Result<bool, StoreError> {
        let hash = token.hash();
        let row = repeated!(self, connection => sqlx::query(NOTE_USAGE)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .bind(to_json(usage))
            .fetch_optional(&mut *connection))?;
        if let Some(run) = item.run() {
            // The next event is decided on the stored usage, so that it need not be decided twice.
            self.cache().invalidate_snapshot(run);
        }
        let (Some(row), Some(run)) = (row, item.run()) else { return Ok(false) };
        let head: Head = from_json(row.try_get("head")?, "a run's head")?;
        let others: Vec<String> = row.try_get("others")?;
        let others = others.iter().map(|used| from_json(used, "what was used"));
        let others = others.collect::<Result<Vec<Usage>, StoreError>>()?;
        if head.is_overspent(others.iter().chain([usage])) {
            match self.apply(run, &Event::Clock(ClockEvent::Metered), &Proof::Clock, None).await {
                // Another report has stopped the run meanwhile, or it is over.
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Says whether a lease is held and its hard deadline has not passed, if the caller shows its generation and secret.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn is_held(&self, item: &ItemId, generation: i64, token: &Token) -> Result<bool, StoreError> {
        let hash = token.hash();
        let row = repeated!(self, connection => sqlx::query(IS_HELD)
            .bind(item.as_str())
            .bind(generation)
            .bind(&hash)
            .fetch_one(&mut *connection))?;
        Ok(row.try_get("is_held")?)
    }

    async fn status_of(&self, run: RunId) -> Result<Option<String>, StoreError> {
        let id = stored_run(run);
        let row = repeated!(self, connection => sqlx::query(RUN_STATUS_OF).bind(id).fetch_optional(&mut *connection))?;
        Ok(row.map(|row| row.try_get("status")).transpose()?)
    }
}
