//! Where an item is worked on: its folder, what tells that this is lost or replaced, and its lock.

use std::path::Path;
use std::time::Duration;

use planctl_harness::{Baseline, Isolation, PlanFileLock, WorkspaceLock, blocking_in_place, brief_file_work};
use planctl_lang::{Source, is_same_but_for_marks, shell_word};
use planctl_store::{Claimed, News};

use super::{Cancel, Executor};
use crate::executor::slots::Slot;
use crate::node::services::ServiceError;
use crate::plans::sub_plans::{around_folder, folder_problem};
use crate::runs::plan_file::within_folder;
use crate::workspaces::branch_worktrees;

/// How long a gate waits before it tries the workspace's lock again.
const LOCKED_AGAIN: Duration = Duration::from_millis(10);

impl Executor {
    /// Says why nothing can be done where the run works: somebody broke its worktree, or its folder is another by now.
    pub(super) fn lost_place_reason(&self, claimed: &Claimed) -> Option<String> {
        brief_file_work(|| self.look_for_place(claimed))
    }

    fn look_for_place(&self, claimed: &Claimed) -> Option<String> {
        let own = self.worktree.as_ref();
        let lost = self.replaced_workspace_reason(&claimed.run_name);
        let lost = lost.or_else(|| {
            own.and_then(|own| crate::workspaces::worktrees::lost_worktree_help(own, &self.home))
        });
        let lost = lost.or_else(|| {
            branch_worktrees::lost_worktree_help(&claimed.graph, &claimed.item.at.node, &claimed.workspace)
        });
        lost.or_else(|| folder_problem(&self.settings.folder, &claimed.workspace))
    }

    /// Says that another folder, or another repository, stands in place of the workspace, which nobody approved anything in.
    fn replaced_workspace_reason(&self, run: &str) -> Option<String> {
        let path = Path::new(&self.home);
        let (home, plan) = (shell_word(&self.home), shell_word(&self.plan));
        let then =
            format!("put it back, or, where you mean this one, approve {plan} there; then answer retry");
        let other = self.settings.home.as_ref().and_then(|known| known.replaced_at(path));
        if let Some(what) = other {
            return Some(format!(
                "the workspace {home} in which {run} was approved: {what} stands there now; {then}"
            ));
        }
        // One that is away is found to be missing where work begins in it.
        let repository = self.settings.repository.as_ref().filter(|_| path.exists());
        let what = repository.and_then(|known| known.replaced_at(path))?;
        Some(format!("the workspace {home} {what}, which was not so when {run} was approved; {then}"))
    }

    /// Takes planctl's own marks in protected plans for approved, where nothing else of their text changed, and has them stay as
    /// they are for as long as what it returns lives.
    pub(super) async fn hold_marks(
        &self,
        claimed: &Claimed,
        baseline: &mut Baseline,
    ) -> Result<Vec<PlanFileLock>, ServiceError> {
        let mut held = Vec::new();
        if baseline.marked.is_empty() {
            return Ok(held);
        }
        let place = Path::new(&claimed.workspace);
        for (plan, text) in self.protected_plans(baseline).await? {
            let approved = Source::new(plan.as_str(), text);
            let is_approved = |bytes| {
                Source::from_bytes(plan.clone(), bytes)
                    .is_ok_and(|found| is_same_but_for_marks(&found, &approved))
            };
            let lock = blocking_in_place(|| {
                let lock = PlanFileLock::share(&self.locks, &place.join(&plan));
                baseline.take_marks(place, &plan, is_approved).map(|()| lock)
            });
            held.push(lock?.map_err(ServiceError::io("lock a plan's file"))?);
        }
        Ok(held)
    }

    /// Returns the plans into whose files marks are drawn and that a baseline may protect, as the run names them, with the
    /// texts that run: its own, those around it, and those that it carries out.
    async fn protected_plans(&self, baseline: &Baseline) -> Result<Vec<(String, String)>, ServiceError> {
        let folder = &self.settings.folder;
        let is_protected = |path: &&str| {
            let mut marked = baseline.marked.iter().filter_map(|name| baseline.files.get_key_value(name));
            marked.any(|(name, state)| name == path || state.at.as_deref() == Some(*path))
        };
        let mut plans = Vec::new();
        for (plan, run) in &self.marked_plans {
            if let Some(path) = within_folder(folder, plan).filter(is_protected) {
                let row = self.store.run(*run).await?;
                plans.push((path.to_owned(), self.store.revision(row.plan, &row.revision).await?.source));
            }
        }
        for (plan, digest) in &self.settings.sub_plans {
            if let Some(path) = within_folder(folder, plan).filter(is_protected) {
                let workspace = self.store.run(self.run).await?.workspace;
                if let Some(row) = self.store.plan_at(workspace, plan).await? {
                    plans.push((path.to_owned(), self.store.revision(row.id, digest).await?.source));
                }
            }
        }
        Ok(plans)
    }

    /// Puts an item into the place where it is worked on.
    pub(super) async fn in_its_place(&self, claimed: &Claimed) -> Result<Claimed, ServiceError> {
        let mut placed = claimed.clone();
        let workspace = self.workspace.to_string_lossy();
        let node = &claimed.item.at.node;
        placed.workspace = branch_worktrees::place_of(
            &self.store,
            &self.state_dir,
            self.run,
            &claimed.graph,
            node,
            &workspace,
        )
        .await?;
        Ok(placed)
    }

    /// Says how the run's contracts and workers are isolated where they work.
    pub(super) fn isolation(&self, place: &str) -> Isolation {
        let state_dir = brief_file_work(|| self.state_dir.canonicalize());
        Isolation {
            tier: self.settings.isolation,
            hidden: state_dir.into_iter().chain(self.neighbours.iter().cloned()).collect(),
            // Steps of a run that works in a folder may change the workspace around it, too.
            writable: around_folder(&self.settings.folder, place).map(Path::to_owned).into_iter().collect(),
        }
    }

    /// Lets others of the run be claimed behind a gate that has come to the workspace.
    pub(super) fn has_come(&self, slot: &Slot) {
        if slot.has_come(self.run) {
            self.store.wake_listeners(News::Gates);
        }
    }

    /// Takes the workspace for one gate: no two run in it at once on this host, and none beside what is left of an earlier
    /// one, since the trees hold the lock until they are dead (P9, P11). Returns `None` where the gate shall end.
    ///
    /// While it waits it takes no slot; then it has the workspace first, and a slot soon after.
    pub(super) async fn workspace_lock(
        &self,
        claimed: &Claimed,
        slot: &Slot,
        cancel: &mut Cancel,
    ) -> Result<Option<WorkspaceLock>, ServiceError> {
        // Contracts in a folder and in the workspace around it see the same files.
        let around = around_folder(&self.settings.folder, &claimed.workspace);
        let workspace = around.unwrap_or(Path::new(&claimed.workspace));
        let take = || {
            let taken = brief_file_work(|| WorkspaceLock::try_take(&self.locks, workspace));
            taken.map_err(ServiceError::io("lock the workspace"))
        };
        let taken = take()?;
        let waiting =
            taken.is_none().then(|| slot.release_while_waiting(self.is_in_one_place.then_some(self.run)));
        self.has_come(slot);
        let Some(waiting) = waiting else { return Ok(taken) };
        let waiting = async {
            loop {
                tokio::time::sleep(LOCKED_AGAIN).await;
                if let Some(lock) = take()? {
                    waiting.reacquire().await;
                    return Ok(Some(lock));
                }
            }
        };
        let lock = tokio::select! {
            lock = waiting => lock,
            () = cancel => Ok(None),
            () = slot.wait_closed() => Ok(None),
        };
        // Gates of the run that nobody claimed behind this one can be claimed by now.
        self.store.wake_listeners(News::Gates);
        lock
    }
}
