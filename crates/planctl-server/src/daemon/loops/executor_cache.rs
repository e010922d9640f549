//! The hands of the runs that this process works on, kept as long as what they were made for holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planctl_engine::RunId;
use planctl_store::{Claimed, RunRow, Terms};

use crate::config::Agent;
use crate::executor::Hands;
use crate::executor::progress::Live;
use crate::node::Station;
use crate::node::services::ServiceError;

/// The most runs whose hands are kept; making them again costs a few reads.
const KEPT_MAX: usize = 256;

/// The hands of several runs.
#[derive(Default)]
pub(crate) struct Crew {
    kept: Mutex<HashMap<RunId, Arc<Hands>>>,
    /// What serves roles that nothing else serves.
    otherwise: Option<Agent>,
    /// Where to show what is under way.
    live: Live,
    /// Says that what came of work waits for as long as the database is away.
    outlasts_outages: bool,
}

impl Crew {
    /// Makes that of a daemon.
    pub(crate) fn of_daemon(otherwise: Option<Agent>) -> Crew {
        Crew { otherwise, outlasts_outages: true, ..Crew::default() }
    }

    /// Makes that of a command that works on one run.
    pub(crate) fn of_command(live: Live) -> Crew {
        Crew { live, ..Crew::default() }
    }

    /// Says that work of every role is taken on.
    pub(crate) fn serves_all(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Returns the hands of the run of a claimed item, as it stood at the claim or later.
    pub(crate) async fn hands(
        &self,
        station: &Station,
        claimed: &Claimed,
    ) -> Result<Arc<Hands>, ServiceError> {
        match self.made(claimed.item.run, &claimed.terms) {
            Some(hands) => Ok(hands),
            None => self.hands_of(station, &station.store().run(claimed.item.run).await?).await,
        }
    }

    /// Returns the hands of a run that was just read.
    pub(crate) async fn hands_of(&self, station: &Station, row: &RunRow) -> Result<Arc<Hands>, ServiceError> {
        if let Some(hands) = self.made(row.id, &row.terms()) {
            return Ok(hands);
        }
        let mut hands = station.hands_of(row, self.live.clone()).await?;
        hands.settings.otherwise.clone_from(&self.otherwise);
        hands.outlasts_outages = self.outlasts_outages;
        let hands = Arc::new(hands);
        let mut kept = self.lock();
        if kept.len() >= KEPT_MAX {
            // Those at work keep theirs.
            kept.retain(|_, hands| Arc::strong_count(hands) > 1);
        }
        kept.insert(row.id, hands.clone());
        Ok(hands)
    }

    fn made(&self, run: RunId, terms: &Terms) -> Option<Arc<Hands>> {
        self.lock().get(&run).filter(|hands| hands.made_for == *terms).cloned()
    }

    /// Forgets runs that are over, and returns them.
    pub(crate) fn keep_only(&self, is_open: impl Fn(RunId) -> bool) -> Vec<RunId> {
        self.lock().extract_if(|run, _| !is_open(*run)).map(|(run, _)| run).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Hands>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
