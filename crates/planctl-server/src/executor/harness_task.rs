//! An item of the harness without a contract: a checkpoint, the branches of a fork, a sub-plan.

use std::path::Path;

use planctl_engine::{Event, HarnessEvent, HarnessResult, Inconclusive, Purpose};
use planctl_harness::{Checkpoints, Spawner};
use planctl_store::Claimed;

use super::{Cancel, Executor};
use crate::executor::slots::Slot;
use crate::node::services::ServiceError;
use crate::plans::sub_plans::Within;
use crate::workspaces::branch_worktrees::Branches;
use crate::workspaces::checkpoints::kept_in;

impl Executor {
    /// Records the workspace, or makes it again what a checkpoint recorded; returns what was claimed with that.
    pub(super) async fn checkpoint(
        &self,
        claimed: &Claimed,
        purpose: Purpose,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        self.begin_activity(claimed, true);
        let node = &claimed.item.at.node;
        let saved = match purpose {
            Purpose::Restoration => {
                let view = self.store.run_view(self.run).await?;
                view.records.get(node).and_then(|record| record.saved.clone())
            }
            Purpose::Record
            | Purpose::Verdict
            | Purpose::Rehearsal
            | Purpose::Fork
            | Purpose::Merge
            | Purpose::SubPlan => None,
        };
        let kept = kept_in(&self.state_dir, self.run, &claimed.graph, node);
        let workspace = Path::new(&claimed.workspace);
        let work = async |mut cancel: Cancel| {
            let Some(lock) = self.workspace_lock(claimed, slot, &mut cancel).await? else {
                return Ok(HarnessResult::Nothing(Inconclusive::Interrupted));
            };
            let checkpoints = Checkpoints::new(self.spawner.with_locks(lock.descriptors()), kept.clone());
            let found = match (self.lost_place_reason(claimed), &saved) {
                (Some(what), _) => Err(what),
                (None, Some(name)) => {
                    let restored = checkpoints.restore(workspace, name).await;
                    restored.map(|()| HarnessResult::Restored).map_err(|error| error.to_string())
                }
                (None, None) => {
                    let recorded = checkpoints.record(workspace).await;
                    recorded.map(|name| HarnessResult::Recorded { name }).map_err(|error| error.to_string())
                }
            };
            drop(lock);
            let nothing = |what| HarnessResult::Nothing(Inconclusive::ToolMissing { what });
            Ok::<_, ServiceError>(found.unwrap_or_else(nothing))
        };
        let Some(found) = self.while_renewing(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let found = found?;
        // An inconclusive gate is repeated after a wait; the successor of a record is due at once.
        let is_done = !matches!(found, HarnessResult::Nothing(_));
        let next_claim = self.next_claim(slot).filter(|_| is_done);
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        self.apply_event(claimed, &event, next_claim.as_ref()).await
    }

    /// Begins the run of a sub-plan, or says how it ended; returns what was claimed with that.
    pub(super) async fn sub_plan(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let plan = claimed.graph.sub_plan(&claimed.item.at.node);
        let plan =
            plan.ok_or_else(|| ServiceError::broken(format!("item {} is of no sub-plan", claimed.item.id)))?;
        self.begin_activity(claimed, true);
        let (store, settings) = (&self.store, &self.settings);
        let within = Within { store, settings, spawner: &self.spawner, state_dir: &self.state_dir };
        let work = async |_: Cancel| within.start_or_collect(claimed, plan).await;
        let Some(found) = self.while_renewing(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let found = found?;
        let goes_on = matches!(found, HarnessResult::Ended(_));
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        let next_claim = self.next_claim(slot).filter(|_| goes_on);
        self.apply_event(claimed, &event, next_claim.as_ref()).await
    }

    /// Makes worktrees for branches, or merges them; returns what was claimed with that.
    pub(super) async fn branch(
        &self,
        claimed: &Claimed,
        purpose: Purpose,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        self.begin_activity(claimed, true);
        let branches = |spawner: &Spawner| Branches::new(&self.store, spawner, &self.state_dir);
        let work = async |mut cancel: Cancel| {
            let Some(lock) = self.workspace_lock(claimed, slot, &mut cancel).await? else {
                return Ok((HarnessResult::Nothing(Inconclusive::Interrupted), Vec::new()));
            };
            let done = match self.lost_place_reason(claimed) {
                Some(what) => Ok((HarnessResult::Nothing(Inconclusive::ToolMissing { what }), Vec::new())),
                None => {
                    let branches = branches(&self.spawner.with_locks(lock.descriptors()));
                    branches.run_item(claimed, purpose, &self.approved).await
                }
            };
            drop(lock);
            done
        };
        let Some(done) = self.while_renewing(claimed, &slot.cut, slot, work).await else { return Ok(None) };
        let (found, outputs) = done?;
        self.store_outputs(&outputs).await?;
        let merged = if matches!(found, HarnessResult::Merged { .. }) {
            branches(&self.spawner).merged_at(claimed).await?
        } else {
            None
        };
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        let next = self.apply_event(claimed, &event, self.next_claim(slot).as_ref()).await?;
        if let Some(attempt) = merged {
            branches(&self.spawner).clear_merged(claimed, attempt).await?;
        }
        Ok(next)
    }
}
