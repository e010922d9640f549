//! Standstills: time of the database that went by while this machine slept, and its clock, which decides, went on.
//!
//! A laptop is closed for the night, a virtual machine is stopped. Nobody worked in that time, and nobody could renew a lease, so
//! it counts neither for the leases of this host, nor for the time of their work, nor for budgets.

use std::time::Duration;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::rows::{micros, time_at};
use crate::server_clock::LastLook;
use crate::store::Store;

/// A shorter one is taken for the inaccuracy of two clocks; leases outlive it.
const LEAST: Duration = Duration::from_secs(5);

pub(crate) const TIME: &str = "select clock_timestamp() as now";
/// Extends leases that ran out meanwhile, and has processes that worked just before work on. Of what another process of the host extended,
/// nothing is changed.
pub(crate) const EXTEND: &str = "with slept as (select $2::bigint * interval '1 microsecond' as span), \
     attended as (update attendance a set at = a.at + span from slept \
       where a.host = $1 and a.at is distinct from a.left_at \
       and a.at between clock_timestamp() - span - interval '15 seconds' and clock_timestamp() - span) \
     update items set lease_until = lease_until + span, hard_deadline = hard_deadline + span from slept \
     where host = $1 and state in ('leased', 'withdrawn') and lease_until < clock_timestamp()";

impl Store {
    /// Extends the leases of a host, which is the caller's, by the time in which it stood still since the last call, and takes
    /// that time off those of its runs on which nobody worked. Returns how long it was, if it was.
    ///
    /// It is to be called before leases are renewed or ended. Calls of one process wait for one another.
    ///
    /// # Errors
    ///
    /// Those of the connection; the next call does the rest.
    pub async fn settle_standstill(&self, host: &str) -> Result<Option<Duration>, StoreError> {
        let mut last = self.last_look().lock().await;
        let asked = LastLook::begin();
        let row = repeated!(self, connection => sqlx::query(TIME).fetch_one(&mut *connection))?;
        let now = time_at(&row, "now")?;
        let stood_still = Some(last.gap(now)).filter(|span| *span >= LEAST);
        if let Some(span) = stood_still {
            for left in self.left_runs(host, None).await? {
                if let Err(error) = self.take_off(&left).await {
                    tracing::warn!(%error, run.id = %left.run, "the time of a standstill counts for a run");
                }
            }
            repeated!(self, connection => sqlx::query(EXTEND)
                .bind(host)
                .bind(micros(span))
                .execute(&mut *connection))?;
        }
        last.end(asked, now);
        Ok(stood_still)
    }
}
