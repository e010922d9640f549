//! Drives one run in this process: admits it, works its items, minds its leases and timers, draws its marks.
//!
//! A few loops, each *look, do, apply*; everything that waits is a row in the database, so a process that is killed and
//! one that goes on are the same thing to it.

use std::collections::BTreeSet;
use std::future::Future;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use planctl_engine::{Graph, Node, NodeKind, Role, RunId, RunStatus, Tier};
use planctl_harness::{Baseline, git_top_level};
use planctl_store::{Claimed, Listener, RunRow, StoreError};
use tokio::sync::watch;

use crate::hands::Hands;
use crate::live::Live;
use crate::neighbours::{NEIGHBOURS_MAX, neighbours};
use crate::protection::is_mover;
use crate::revisions::baseline_of;
use crate::room::Room;
use crate::runs::run_state;
use crate::services::ServiceError;
use crate::settings::RunSettings;
use crate::station::Station;
use crate::wire::RunState;
use crate::worktrees;

/// How long a loop waits without a ring before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How to drive a run.
#[derive(Clone, Debug, Default)]
pub struct Drive {
    /// Says that nobody waits for a person's answer: return instead.
    pub returns_when_waiting: bool,
    /// Where to show what is under way.
    pub live: Live,
}

/// What driving the runs within a run came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// One of them moved, so the run around them may.
    Moved,
    /// Nothing moved.
    Still,
}

/// Why driving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driven {
    /// The run is over, in this state.
    Ended(RunState),
    /// The run waits for a person, the workspace or a revision.
    Waiting(RunState),
    /// The caller asked to stop; what was under way went back to its lane.
    Stopped,
}

impl Station {
    /// Drives a run until it is over, until it waits and nobody waits for it, or until `stop` resolves.
    ///
    /// # Errors
    ///
    /// Those of the store once its deadline has passed, and those of the helper for child processes.
    pub async fn drive(
        &self,
        run: RunId,
        drive: &Drive,
        stop: impl Future<Output = ()>,
    ) -> Result<Driven, ServiceError> {
        // What tends and marks beside the work is dropped with it: it may hold the lock on worktrees that marking needs.
        let driven = self.driven(run, drive, stop).await?;
        self.mark_now(run).await?;
        // Folders of an earlier process whose trees were still dying when this one began can go by now.
        self.scratch()?;
        Ok(driven)
    }

    async fn driven(
        &self,
        run: RunId,
        drive: &Drive,
        stop: impl Future<Output = ()>,
    ) -> Result<Driven, ServiceError> {
        let (stopping, stopped) = watch::channel(false);
        let working = self.work(run, drive, &stopped);
        let tending = self.tend();
        let marking = self.mark(run, self.store.listen_to(run));
        tokio::pin!(working, tending, marking, stop);
        let mut is_stopping = false;
        loop {
            tokio::select! {
                driven = &mut working => return driven,
                error = &mut tending => return Err(error),
                error = &mut marking => return Err(error),
                () = &mut stop, if !is_stopping => {
                    is_stopping = true;
                    stopping.send_replace(true);
                }
            }
        }
    }

    async fn work(
        &self,
        run: RunId,
        drive: &Drive,
        stop: &watch::Receiver<bool>,
    ) -> Result<Driven, ServiceError> {
        let bell = self.store.listen_to(run);
        let mut hands: Option<Arc<Hands>> = None;
        let mut roles: Vec<Role> = Vec::new();
        let mut under_way = FuturesUnordered::new();
        let mut wrong: Option<ServiceError> = None;
        loop {
            // What is under way ends in its own way, whatever went wrong beside it.
            let is_over = *stop.borrow() || wrong.is_some();
            let has_room = |ready: &&Arc<Hands>| !is_over && under_way.len() < ready.at_once;
            if let Some(ready) = hands.as_ref().filter(has_room) {
                match self.claim(ready, &roles, drive).await {
                    Ok(Some((ready, claimed))) => {
                        hands = Some(ready.clone());
                        under_way.push(async move { ready.see_through(&claimed, &Room::alone(stop)).await });
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        wrong = Some(error);
                        continue;
                    }
                }
            }
            if !under_way.is_empty() {
                tokio::select! {
                    done = under_way.next() => wrong = wrong.or(done.and_then(Result::err)),
                    () = bell.rung(), if !is_over => {}
                    () = tokio::time::sleep(LOOK_AGAIN), if !is_over => {}
                }
                continue;
            }
            if let Some(error) = wrong {
                return Err(error);
            }
            if is_over {
                return Ok(Driven::Stopped);
            }
            let row = self.store.run(run).await?;
            match row.head.status {
                RunStatus::Ended { .. } => return Ok(Driven::Ended(run_state(&row))),
                RunStatus::Queued { .. }
                    if worktrees::trouble_of(&row).is_some() && drive.returns_when_waiting =>
                {
                    return Ok(Driven::Waiting(run_state(&row)));
                }
                RunStatus::Queued { .. } if worktrees::trouble_of(&row).is_some() => {}
                RunStatus::Queued { .. } => match self.admit(&row).await? {
                    Some(holder) => {
                        if drive.returns_when_waiting && self.is_held(&holder).await? {
                            return Ok(Driven::Waiting(run_state(&row)));
                        }
                    }
                    None => continue,
                },
                RunStatus::Active => match &hands {
                    Some(ready) if ready.made_for == row.terms() => {
                        let served = self.served_roles(&row, &ready.settings).await?;
                        if served != roles {
                            roles = served;
                            continue;
                        }
                        if self.drive_within(&row, drive, stop).await? == Within::Moved {
                            continue;
                        }
                        if drive.returns_when_waiting && self.waits(&row, &roles).await? {
                            return Ok(Driven::Waiting(run_state(&row)));
                        }
                    }
                    Some(_) | None => {
                        let ready = self.hands_of(&row, drive.live.clone()).await?;
                        roles = self.served_roles(&row, &ready.settings).await?;
                        hands = Some(Arc::new(ready));
                        continue;
                    }
                },
                RunStatus::New | RunStatus::Awaiting | RunStatus::Paused => {
                    if drive.returns_when_waiting {
                        return Ok(Driven::Waiting(run_state(&row)));
                    }
                }
            }
            self.rest(&row, &bell, stop).await?;
        }
    }

    /// Claims an item of a run, and returns it with the hands for its revision.
    async fn claim(
        &self,
        ready: &Arc<Hands>,
        roles: &[Role],
        drive: &Drive,
    ) -> Result<Option<(Arc<Hands>, Claimed)>, ServiceError> {
        let Some(claimed) = ready.claim_any(roles).await? else { return Ok(None) };
        if claimed.terms.revision == ready.made_for.revision {
            return Ok(Some((ready.clone(), claimed)));
        }
        let row = self.store.run(claimed.item.run).await?;
        Ok(Some((Arc::new(self.hands_of(&row, drive.live.clone()).await?), claimed)))
    }

    /// Gives a run the workspace, if nobody has it and nobody was first; returns the name of the run it waits for.
    /// One that works apart gets its worktree before anybody can claim its work.
    pub(crate) async fn admit(&self, row: &RunRow) -> Result<Option<String>, ServiceError> {
        let run = row.id;
        self.make_worktree(row).await?;
        match self.store.admit(run).await {
            Ok(()) => Ok(None),
            Err(StoreError::WorkspaceBusy { run }) => Ok(Some(run)),
            // Another process was quicker, or the run was cancelled meanwhile.
            Err(StoreError::Refused(refusal)) => match self.store.run(run).await?.head.status {
                RunStatus::Queued { .. } => {
                    Err(ServiceError::broken(format!("a run can't begin: {refusal}")))
                }
                RunStatus::New
                | RunStatus::Awaiting
                | RunStatus::Active
                | RunStatus::Paused
                | RunStatus::Ended { .. } => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Says whether a run that has the workspace waits for a person, so that those behind it do too.
    async fn is_held(&self, holder: &str) -> Result<bool, ServiceError> {
        let row = self.store.find_run(holder, None).await?;
        Ok(row.head.status == RunStatus::Active && row.head.out == 0)
    }

    /// Drives the runs within a run until each of them waits; those that wait are looked at again later.
    async fn drive_within(
        &self,
        row: &RunRow,
        drive: &Drive,
        stop: &watch::Receiver<bool>,
    ) -> Result<Within, ServiceError> {
        let mut within = Within::Still;
        for child in self.store.sub_plans_open(row.id).await? {
            let drive = Drive { returns_when_waiting: true, live: drive.live.clone() };
            match Box::pin(self.work(child.id, &drive, stop)).await? {
                Driven::Ended(_) => {
                    // The bell that wakes the run around it may be another process's.
                    self.store.wake_around().await?;
                    let child = self.store.run(child.id).await?;
                    self.clear_branches(&child, false).await?;
                    self.clear_checkpoints(&child, false).await?;
                    within = Within::Moved;
                }
                Driven::Waiting(_) if self.store.run(child.id).await?.seq != child.seq => {
                    within = Within::Moved;
                }
                Driven::Waiting(_) | Driven::Stopped => {}
            }
        }
        Ok(within)
    }

    /// Says whether only others can move the run: a person, or a worker of a role that nobody here serves.
    async fn waits(&self, row: &RunRow, served: &[Role]) -> Result<bool, ServiceError> {
        if row.head.out == 0 {
            return Ok(true);
        }
        // Those within it were driven just now, and wait; one whose item is in hand, be it of somebody who is dead, may not
        // even have been handed in.
        if self.store.sub_plans_awaited(row.id).await? >= row.head.out {
            return Ok(true);
        }
        let wanted = self.store.roles_wanted(row.id).await?;
        Ok(!wanted.is_empty() && wanted.iter().all(|role| !served.contains(role)))
    }

    /// Waits until something of the run may have become due.
    async fn rest(
        &self,
        row: &RunRow,
        bell: &Listener,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), ServiceError> {
        let due = self.store.next_wake(row.id).await?.unwrap_or(LOOK_AGAIN);
        // What is due already was not to be claimed just now, so it is somebody else's to do.
        let wait = due.clamp(Duration::from_millis(20), LOOK_AGAIN);
        let mut stop = stop.clone();
        tokio::select! {
            () = bell.rung() => {}
            () = tokio::time::sleep(wait) => {}
            stopped = stop.changed() => {
                if stopped.is_err() {
                    tokio::time::sleep(wait).await;
                }
            }
        }
        Ok(())
    }

    /// Returns the hands that work one active run in this process.
    ///
    /// # Errors
    ///
    /// Those of the store, and those of the helper for child processes.
    pub async fn hands(&self, run: RunId) -> Result<Hands, ServiceError> {
        self.hands_of(&self.store.run(run).await?, Live::default()).await
    }

    pub(crate) async fn hands_of(&self, row: &RunRow, live: Live) -> Result<Hands, ServiceError> {
        let mut approved: Baseline = match row.approval {
            Some(approval) => baseline_of(&self.store.approval(approval).await?)?,
            None => return Err(ServiceError::broken(format!("{} is active without an approval", row.name))),
        };
        self.refuse_changed_settings(row.id, &row.name, &row.settings).await?;
        let settings = RunSettings::of(row)?;
        settings.protect_scripts(&mut approved);
        let graph = self.store.graph_of(row).await?;
        let moves = |node: &Node| {
            let own = node.gated().is_some_and(|gated| is_mover(&approved, &gated));
            own || matches!(node.kind, NodeKind::Join(_)) && graph.parts_or_merges(&node.id)
        };
        let movers = graph.nodes().iter().filter(|node| moves(node)).map(|node| node.id.clone()).collect();
        let neighbours = self.neighbours(row, &settings, &graph).await?;
        let hands = Hands {
            store: self.store.clone(),
            spawner: self.spawner()?.clone(),
            holder: self.holder()?,
            scratch: self.scratch()?,
            locks: self.state_dir().join("workspaces"),
            state_dir: self.state_dir().to_owned(),
            run: row.id,
            plan: row.plan_path.clone(),
            marked_plans: self.marked_plans(row).await?,
            workspace: row.place().into(),
            home: row.workspace_path.clone(),
            worktree: row.worktree.clone(),
            neighbours,
            settings,
            approved,
            movers,
            is_in_one_place: graph.nodes().iter().all(|node| graph.apart(&node.id).is_none()),
            at_once: usize::from(graph.limits().parallel),
            made_for: row.terms(),
            live,
            in_hand: self.in_hand().clone(),
            outlasts_outages: false,
            secrets: self.secrets(),
            masks: std::sync::OnceLock::new(),
            bench: std::sync::OnceLock::new(),
        };
        // What the workspace's repositories say is noted before anybody works; a variable that is refused is told by the gate.
        hands.bench(&hands.workspace).ok();
        Ok(hands)
    }

    /// Returns the workspaces that are hidden from the commands of a run, where it is confined.
    async fn neighbours(
        &self,
        row: &RunRow,
        settings: &RunSettings,
        graph: &Graph,
    ) -> Result<Vec<PathBuf>, ServiceError> {
        if settings.isolation == Tier::SameUser {
            return Ok(Vec::new());
        }
        let known = self.store.other_workspaces(self.host(), &row.workspace_path, NEIGHBOURS_MAX).await?;
        let contracts = graph.nodes().iter().filter_map(Node::gated);
        let contracts = contracts.map(|gated| gated.contract.command.clone());
        // Commands and PATH of the configuration, and those of the plan.
        let commands: Vec<String> = std::iter::once(row.settings.clone()).chain(contracts).collect();
        let home = Path::new(&row.workspace_path);
        let own = [Path::new(row.place()), home, git_top_level(home).unwrap_or(home)];
        Ok(neighbours(known, &own, &commands.join("\n")))
    }

    /// Returns the plans in whose files the state of a run is marked.
    async fn marked_plans(&self, row: &RunRow) -> Result<BTreeSet<String>, ServiceError> {
        let mut plans = BTreeSet::from([row.plan_path.clone()]);
        let mut around = row.around.as_ref().map(|around| around.run);
        while let Some(run) = around {
            let row = self.store.run(run).await?;
            around = row.around.as_ref().map(|around| around.run);
            plans.insert(row.plan_path);
        }
        Ok(plans)
    }

    /// Returns the roles of the run that this process can serve, those that people reassigned steps to included.
    async fn served_roles(&self, row: &RunRow, settings: &RunSettings) -> Result<Vec<Role>, ServiceError> {
        let graph = self.store.graph_of(row).await?;
        let tasks = graph.nodes().iter().filter_map(|node| graph.task(&node.id));
        let mut roles: Vec<Role> = tasks.flat_map(|task| task.roles().cloned()).collect();
        roles.extend(self.store.roles_wanted(row.id).await?);
        roles.retain(|role| settings.worker_for(role).is_some() && settings.may_take(role, &row.plan_path));
        roles.sort();
        roles.dedup();
        Ok(roles)
    }
}

impl Station {
    /// Returns the folder for the private folders of attempts; what crashed attempts left there is cleared away.
    fn scratch(&self) -> Result<PathBuf, ServiceError> {
        scratch_in(self.state_dir())
    }
}

/// Returns the folder of a state directory for the private folders of attempts; what crashed attempts left there is
/// cleared away.
///
/// # Errors
///
/// When the folder can't be made or looked at.
pub fn scratch_in(state_dir: &Path) -> Result<PathBuf, ServiceError> {
    private_in(state_dir, "work")
        .map_err(ServiceError::io(format!("use {}", state_dir.join("work").display())))
}

/// Makes a folder of the state directory that only its owner can enter, and clears away what crashes left in it. The state
/// directory itself can be passed through by the user as whom root runs Postgres.
pub(crate) fn private_in(state_dir: &Path, name: &str) -> std::io::Result<PathBuf> {
    let scratch = private_folder(state_dir, name)?;
    planctl_harness::sweep_scratch(&scratch)?;
    Ok(scratch)
}

/// Makes a folder of the state directory that only its owner can enter.
pub(crate) fn private_folder(state_dir: &Path, name: &str) -> std::io::Result<PathBuf> {
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    let make = |path: &Path, mode| std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    make(state_dir, mode)?;
    let folder = state_dir.join(name);
    make(&folder, 0o700)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sec_20_a_private_folder_leaves_the_state_directory_open_for_roots_postgres() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/state");
        let scratch = private_in(&state, "trials").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&scratch), 0o700);
        let open = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
        assert_eq!((mode(&state), mode(&folder.path().join("a"))), (open, open));
    }
}
