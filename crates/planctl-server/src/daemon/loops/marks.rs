//! Draws marks into the plan files of this host's runs that moved, each at most once a second, and has cleared away what
//! runs that are over leave. A plan that follows one that is done begins here, too.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::RunId;
use planctl_harness::blocking_in_place;

use super::wake::IDLE;
use super::{Scope, Shared, TurnResult, Turns};
use crate::node::quarantine::words_of;
use crate::node::services::ServiceError;
use crate::runs::plan_file::PlanFile;
use crate::workspaces::marks::Drawn;

/// How many runs are looked at.
const AT_ONCE: i64 = 1000;
/// Of how many plans whose newest run is over the marks are looked at once, when the loop begins.
const ENDED_AT_ONCE: i64 = 200;
/// How many worktrees of runs that ended are looked at in one turn.
const LEFT_AT_ONCE: i64 = 20;
/// How long a plan that follows waits for another start there; the next turn tries again.
const STARTS_WAIT_IN_TURN: Duration = Duration::from_millis(500);

/// Draws marks.
#[derive(Default)]
pub(crate) struct Marks {
    /// Says that it has seen what ended, and what was left, before it began.
    has_looked_back: bool,
    /// How far each run that was open had come when its marks were drawn, or is not known where they were not.
    drawn: BTreeMap<RunId, Option<i64>>,
    /// Runs whose plan file is another text than the one that they execute, or can't be read, which the log says once.
    troubled: BTreeSet<RunId>,
    /// Runs that are over and of which something may be left to clear away.
    left: BTreeSet<RunId>,
    /// Says that worktrees of runs that ended were found, of which there may be more.
    has_found_worktrees: bool,
}

impl Turns for Marks {
    const NAME: &'static str = "marks";
    const PACE: Duration = Duration::from_secs(1);

    async fn due(&self, _: &Shared) -> Result<Option<Duration>, ServiceError> {
        Ok(self.has_found_worktrees.then_some(IDLE))
    }

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let is_first = matches!(shared.scope, Scope::Host) && !self.has_looked_back;
        let now = match &shared.scope {
            Scope::Host => self.of_host(shared).await?,
            Scope::Run(family) => of_runs(shared, &family.open_runs()).await?,
        };
        // One that began and ended between two turns was open at neither.
        for run in shared.executors.keep_only(|run| now.contains_key(&run)) {
            self.drawn.entry(run).or_insert(None);
        }
        let over: Vec<RunId> = self.drawn.keys().filter(|run| !now.contains_key(run)).copied().collect();
        // Those that ended first, so that the run after them in the same file has the last word.
        for run in over {
            let drawn = draw_contained(shared, run).await?;
            if drawn.as_ref().is_some_and(|drawn| drawn.file == PlanFile::Held) {
                continue;
            }
            // Trouble with a run that was over before this process began was said by the one that saw its end.
            let seen_open = self.drawn.remove(&run).flatten().is_some();
            if let Some(drawn) = drawn.filter(|_| seen_open) {
                self.say_trouble(run, &drawn);
            }
            self.troubled.remove(&run);
            shared.server_node.unmarked().remove(&run);
            self.left.insert(run);
        }
        for (run, seq) in now {
            if self.drawn.get(&run) != Some(&seq) {
                let drawn = draw_contained(shared, run).await?;
                match &drawn {
                    // So it was when an earlier process worked on the run, which said so.
                    Some(drawn) if is_first && drawn.is_troubled() => drop(self.troubled.insert(run)),
                    Some(drawn) => self.say_trouble(run, drawn),
                    None => {}
                }
                shared.server_node.unmarked().insert(run);
                let is_held = drawn.is_some_and(|drawn| drawn.file == PlanFile::Held);
                self.drawn.insert(run, seq.filter(|_| !is_held));
            }
        }
        if matches!(shared.scope, Scope::Host) {
            shared.server_node.follow(None, STARTS_WAIT_IN_TURN).await?;
        }
        // Git and large folders take their time.
        self.left.retain(|run| {
            let (server_node, run) = (shared.server_node.clone(), *run);
            let clearing = async move { server_node.clear_up(run).await };
            !shared.clearings.try_spawn(&shared.health, run, clearing)
        });
        // A file that somebody else has open for a moment comes next time; whatever moves is news.
        let is_still = self.drawn.values().all(Option::is_some) && self.left.is_empty();
        Ok(if is_still { TurnResult::Nothing } else { TurnResult::Something })
    }
}

impl Marks {
    /// Says in the log, once, that a plan's file has changed while its run goes on, or can't be read.
    fn say_trouble(&mut self, run: RunId, drawn: &Drawn) {
        if !drawn.is_troubled() {
            if drawn.file == PlanFile::Runs {
                self.troubled.remove(&run);
            }
        } else if self.troubled.insert(run) {
            drawn.warn_of_trouble();
        }
    }

    /// Returns how far each open run of this host has come, and finds what others left to do.
    async fn of_host(&mut self, shared: &Shared) -> Result<BTreeMap<RunId, Option<i64>>, ServiceError> {
        let (store, host) = (shared.server_node.store(), shared.server_node.host());
        if !self.has_looked_back {
            // An earlier process may have been killed between the end of a run and its last marks.
            let ended = store.runs_ended_last(host, ENDED_AT_ONCE).await?;
            let ended = shared.health.readable(Marks::NAME, ended);
            self.drawn.extend(ended.iter().map(|run| (run.id, None)));
            self.left.extend(blocking_in_place(|| shared.server_node.runs_with_leavings()));
            self.has_looked_back = true;
        }
        let left = store.runs_left_in_worktrees(host, LEFT_AT_ONCE).await?;
        self.has_found_worktrees = !left.is_empty();
        self.left.extend(shared.health.readable(Marks::NAME, left).iter().map(|run| run.id));
        let open = shared.health.readable(Marks::NAME, store.open_runs(host, AT_ONCE).await?);
        Ok(open.iter().map(|row| (row.id, Some(row.seq))).collect())
    }
}

/// Returns how far each of these runs has come.
async fn of_runs(shared: &Shared, runs: &[RunId]) -> Result<BTreeMap<RunId, Option<i64>>, ServiceError> {
    let mut now = BTreeMap::new();
    for run in runs {
        now.insert(*run, Some(shared.server_node.store().run(*run).await?.seq));
    }
    Ok(now)
}

/// Draws a run's marks; trouble with one file or one run, a panic too, is no other's.
async fn draw_contained(shared: &Shared, run: RunId) -> Result<Option<Drawn>, ServiceError> {
    match AssertUnwindSafe(shared.server_node.draw_marks(run)).catch_unwind().await {
        Ok(Err(ServiceError::Store(error))) if error.is_retryable() => return Err(error.into()),
        Ok(Err(error)) => shared.note_error(Marks::NAME, error),
        Ok(Ok(drawn)) => return Ok(Some(drawn)),
        Err(panic) => {
            let words = words_of(&*panic);
            tracing::error!(run.id = %run, "a defect of planctl at marks: {words}");
            shared.health.set_last_error(format!("{}: a defect of planctl: {words}", Marks::NAME));
        }
    }
    Ok(None)
}
