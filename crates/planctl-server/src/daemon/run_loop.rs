//! Works on one run in this process until it is over: the loops of a daemon, for that run and the runs within it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use planctl_engine::{RunId, RunStatus};
use planctl_store::{Records, RunRow};
use tokio::sync::mpsc;

use crate::daemon::loops::agents::Served;
use crate::daemon::loops::gates::Gates;
use crate::daemon::loops::leases::Leases;
use crate::daemon::loops::marks::Marks;
use crate::daemon::loops::room::watch_room;
use crate::daemon::loops::traces::{Tracing, send_rest};
use crate::daemon::loops::{ExecutorCache, Scope, Shared, Signals, TurnResult, Turns, take_turns};
use crate::daemon::{DaemonOptions, ENDS_WITHIN};
use crate::executor::progress::LiveActivity;
use crate::mutex::lock;
use crate::node::ServerNode;
use crate::node::health::Health;
use crate::node::instance::runs_worked_on;
use crate::node::quarantine::SweepReport;
use crate::node::scratch_in;
use crate::node::services::ServiceError;
use crate::plans::start::STARTS_WAIT_MAX;
use crate::runs::settings::RunSettings;
use crate::runs::shown::{run_state, worktree_trouble};
use crate::runs::worked_on::Presence;
use planctl_api::wire::RunState;

/// How many agents work at once: as many as a plan may want (`parallel`).
const WORKERS: usize = 64;

/// How to work on a run.
#[derive(Clone, Debug, Default)]
pub struct RunLoopOptions {
    /// Returns when the run waits for a person, instead of waiting for the answer.
    pub returns_when_waiting: bool,
    /// The activity to update for the live view.
    pub activity: LiveActivity,
}

/// Why the run loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunLoopEnd {
    /// The run is over, in this state.
    Ended(RunState),
    /// The run waits for a person, the workspace or a revision.
    Waiting(RunState),
    /// The caller asked to stop; items under way went back to their lanes.
    Stopped,
}

impl ServerNode {
    /// Works on a run until it is over, until it waits and `returns_when_waiting` is set, or until `stop` resolves. After an
    /// error, the work that is under way ends in its own way first.
    ///
    /// # Errors
    ///
    /// Those of the store once its deadline has passed, those of the helper for child processes, and
    /// [`ServiceError::StateDirGone`].
    pub async fn run_loop(
        &self,
        run: RunId,
        options: &RunLoopOptions,
        stop: impl Future<Output = ()>,
    ) -> Result<RunLoopEnd, ServiceError> {
        self.mark_worked_on(run)?;
        // An earlier process may have been killed between the end of a run and the beginning of the one that follows.
        self.follow(Some(self.store().run(run).await?.workspace), STARTS_WAIT_MAX).await?;
        let (ends, mut ended) = mpsc::unbounded_channel();
        let family = Family::new(run, options.returns_when_waiting, ends);
        let (signals, seen) = Signals::new();
        let shared = Arc::new(Shared::new(
            self.clone(),
            Health::default(),
            ExecutorCache::of_command(options.activity.clone()),
            Scope::Run(family.clone()),
            seen,
            (WORKERS, DaemonOptions::default().gates),
        ));
        shared.attend().await?;
        // Before it is looked whether the run waits: another day may have begun.
        self.tell_of_days(&mut SweepReport::default()).await?;
        let loops = async {
            tokio::join!(
                take_turns(&shared, || OwnRun(family.clone())),
                take_turns(&shared, Gates::default),
                take_turns(&shared, Served::default),
                take_turns(&shared, Leases::default),
                take_turns(&shared, Marks::default),
                take_turns(&shared, Tracing::default),
                watch_room(&shared),
            )
        };
        let (mut loops, stop) = (Box::pin(loops.fuse()), stop.fuse());
        tokio::pin!(stop);
        let end = tokio::select! {
            Some(end) = ended.recv() => end,
            _ = &mut loops => Ok(RunLoopEnd::Stopped),
            () = &mut stop => Ok(RunLoopEnd::Stopped),
        };
        signals.stop_claiming();
        let mut over = Box::pin(async {
            loops.await;
            shared.wait_until_idle().await;
        });
        let ends_at_once = matches!(end, Ok(RunLoopEnd::Stopped) | Err(ServiceError::StateDirGone { .. }));
        let is_over = !ends_at_once
            && tokio::select! {
                () = &mut over => true,
                () = &mut stop => false,
            };
        if !is_over {
            signals.stop_agents();
            signals.stop_gates();
            if tokio::time::timeout(ENDS_WITHIN, &mut over).await.is_err() {
                tracing::warn!("what is still under way is left to the next process");
            }
        }
        // A loop that has not ended may hold a run's turn or a connection, for which the calls below would wait.
        drop(over);
        self.clear_worked_on()?;
        let end = end?;
        if !ends_at_once {
            // A run within it that is not needed any more may have begun at its last step.
            self.sweep_sub_plans(&mut SweepReport::default()).await?;
        }
        for run in family.all() {
            self.mark_now(run).await?;
        }
        send_rest(self).await;
        if matches!(end, RunLoopEnd::Ended(_)) {
            self.follow(Some(self.store().run(run).await?.workspace), STARTS_WAIT_MAX).await?;
        } else {
            self.leave_family(&family).await?;
        }
        // Folders of an earlier process whose trees were still dying when this one began can go by now.
        scratch_in(self.state_dir())?;
        Ok(end)
    }

    /// Says that this process works on these runs no longer, but where another does.
    async fn leave_family(&self, family: &Family) -> Result<(), ServiceError> {
        let others =
            runs_worked_on(self.state_dir()).map_err(ServiceError::io("read which runs are worked on"))?;
        let left: Vec<RunId> = family.all().difference(&others).copied().collect();
        self.leave(Some(&left), &mut SweepReport::default()).await
    }
}

/// The run that a process works on, and the runs within it. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct Family {
    run: RunId,
    returns_when_waiting: bool,
    known: Arc<Mutex<FamilyRuns>>,
    ends: mpsc::UnboundedSender<Result<RunLoopEnd, ServiceError>>,
}

#[derive(Default)]
struct FamilyRuns {
    /// Those that are not over, each after the one that it is within.
    open: Vec<RunId>,
    all: BTreeSet<RunId>,
}

impl Family {
    fn new(
        run: RunId,
        returns_when_waiting: bool,
        ends: mpsc::UnboundedSender<Result<RunLoopEnd, ServiceError>>,
    ) -> Family {
        let known = FamilyRuns { open: vec![run], all: BTreeSet::from([run]) };
        Family { run, returns_when_waiting, known: Arc::new(Mutex::new(known)), ends }
    }

    /// Returns those that are not over.
    pub(crate) fn open_runs(&self) -> Vec<RunId> {
        lock(&self.known).open.clone()
    }

    /// Returns all that there were.
    pub(crate) fn all(&self) -> BTreeSet<RunId> {
        lock(&self.known).all.clone()
    }

    /// Ends the work on the run, as soon as the work that is under way is over.
    pub(crate) fn end_with(&self, end: Result<RunLoopEnd, ServiceError>) {
        // The receiver is gone only after the loop has ended.
        self.ends.send(end).ok();
    }

    /// Takes over which of its runs are not over; says whether one ended.
    fn update_open(&self, open: Vec<RunId>) -> bool {
        let mut known = lock(&self.known);
        let has_ended = known.open.iter().any(|run| !open.contains(run));
        known.all.extend(&open);
        known.open = open;
        has_ended
    }
}

/// Looks whether the run is over, or waits, and lets those within it begin whose turn it is.
struct OwnRun(Family);

impl Turns for OwnRun {
    const NAME: &'static str = "run";
    const PACE: Duration = Duration::from_millis(20);

    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<TurnResult, ServiceError> {
        let OwnRun(family) = self;
        let server_node = &shared.server_node;
        if let Err(gone) = server_node.check_state_dir() {
            family.end_with(Err(gone));
            return Ok(TurnResult::Nothing);
        }
        let own = server_node.store().run(family.run).await?;
        let is_over = matches!(own.head.status, RunStatus::Ended { .. });
        let state = run_state(&own);
        let rows = if is_over { Vec::new() } else { server_node.with_those_within(own).await? };
        let known = family.all();
        for row in rows.iter().filter(|row| !known.contains(&row.id)) {
            server_node.mark_worked_on(row.id)?;
            server_node.store().attend(server_node.host(), Some(&[row.id])).await?;
        }
        if family.update_open(rows.iter().map(|row| row.id).collect()) || rows.len() > 1 {
            // The notification that wakes the parent of a run that ended may go to another process. And a run is told that one
            // within it waits for a person before this process may leave it.
            server_node.store().wake_parent_runs().await?;
        }
        if is_over {
            family.end_with(Ok(RunLoopEnd::Ended(state)));
            return Ok(TurnResult::Nothing);
        }
        let mut all_wait = true;
        // A run whose sub-plans wait goes on only with them, so they are looked at first.
        for row in rows.iter().rev() {
            let waits = match row.head.status {
                RunStatus::Queued { .. } => server_node.admit_or_wait(row).await?,
                RunStatus::New | RunStatus::Awaiting | RunStatus::Paused => true,
                RunStatus::Active => family.returns_when_waiting && server_node.waits_for_others(row).await?,
                RunStatus::Ended { .. } => false,
            };
            all_wait &= waits;
        }
        if all_wait && family.returns_when_waiting {
            // A run within may have begun between the look at the runs and the look at what each waits for.
            let own = server_node.store().run(family.run).await?;
            let is_same = |(one, other): (&RunRow, &RunRow)| one.id == other.id && one.seq == other.seq;
            let again = server_node.with_those_within(own).await?;
            if rows.len() == again.len() && rows.iter().zip(&again).all(is_same) {
                family.end_with(Ok(RunLoopEnd::Waiting(state)));
            }
        }
        Ok(TurnResult::Something)
    }
}

impl ServerNode {
    /// Adds to a run those within it that are not over, each after the one that it is within.
    async fn with_those_within(&self, own: RunRow) -> Result<Vec<RunRow>, ServiceError> {
        let mut rows = vec![own];
        let mut looked_at = 0;
        while let Some(around) = rows.get(looked_at).map(|row| row.id) {
            rows.extend(self.store().open_sub_plans(around).await?);
            looked_at += 1;
        }
        Ok(rows)
    }

    /// Lets a run begin if it is its turn; says whether it waits for others than this process.
    async fn admit_or_wait(&self, row: &RunRow) -> Result<bool, ServiceError> {
        if worktree_trouble(row).is_some() {
            return Ok(true);
        }
        match self.admit(row).await? {
            None => Ok(false),
            Some(_) => self.is_held(row).await,
        }
    }

    /// Says whether the run that has the workspace waits for others than the process that works on it, or nobody works on it, so that
    /// those behind it wait too.
    async fn is_held(&self, behind: &RunRow) -> Result<bool, ServiceError> {
        let Some(holder) = self.holder_before(behind).await? else { return Ok(false) };
        let settings = RunSettings::of(&holder)?;
        let rows = self.with_those_within(holder.clone()).await?;
        let Some(Ok(view)) = self.store.run_views(vec![holder], Records::Open).await?.pop() else {
            return Ok(false);
        };
        if Presence::of(self)?.worker_on(&view, &settings).await?.is_none() {
            return Ok(true);
        }
        for row in &rows {
            if row.head.status == RunStatus::Active && !self.waits_for_others(row).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says whether only others can move an active run on: a person, or a worker of a role that nobody here serves.
    async fn waits_for_others(&self, row: &RunRow) -> Result<bool, ServiceError> {
        let out = self.store().outstanding(row.id).await?;
        let settings = RunSettings::of(row)?;
        Ok(!out.is_moving && !out.wanted.iter().any(|role| settings.serves(role, &row.plan_path)))
    }
}
