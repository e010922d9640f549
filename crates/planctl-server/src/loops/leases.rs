//! Ends what ran out: leases of the dead, leases past their time, timers.

use std::sync::Arc;
use std::time::Duration;

use super::{Found, Shared, Turns};
use crate::services::ServiceError;
use crate::tend::EVERY;

/// Minds leases and timers.
#[derive(Default)]
pub(crate) struct Leases;

impl Turns for Leases {
    const NAME: &'static str = "leases";
    const PACE: Duration = EVERY;

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<Found, ServiceError> {
        let tended = shared.station.tend_once().await?;
        if tended.expired > 0 {
            tracing::info!(leases = tended.expired, runs = tended.recovered, "leases were over");
        }
        shared.health.tended(tended.expired, tended.recovered);
        Ok(Found::More)
    }
}
