//! An item with a contract: the gate runs, and its verdict is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use planctl_engine::{
    Digest, Event, Gated, HarnessEvent, HarnessResult, Inconclusive, Node, Purpose, Subscription, Work,
};
use planctl_harness::{
    Baseline, ContractRunner, Output, PlanFileLock, Stability, Stream, Written, brief_file_work,
};
use planctl_store::Claimed;

use super::{Cancel, Executor};
use crate::executor::slots::Slot;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;
use crate::runs::plan_file::within_folder;
use crate::verify::protection;
use crate::workspaces::branch_worktrees;
use crate::workspaces::by_products;
use crate::workspaces::contract_writes;

impl Executor {
    /// Evaluates a contract and says what was found; returns what was claimed with the verdict.
    pub(super) async fn evaluate(
        &self,
        claimed: &Claimed,
        slot: &Slot,
    ) -> Result<Option<Claimed>, ServiceError> {
        let _held = self.in_flight.hold(&claimed.item.id);
        let claimed = &self.in_its_place(claimed).await?;
        if self.wait_for_slot(claimed, slot).await.is_none() {
            return Ok(None);
        }
        match claimed.item.work {
            Work::Harness { purpose: purpose @ (Purpose::Record | Purpose::Restoration) } => {
                return self.checkpoint(claimed, purpose, slot).await;
            }
            Work::Harness { purpose: purpose @ (Purpose::Fork | Purpose::Merge) } => {
                return self.branch(claimed, purpose, slot).await;
            }
            Work::Harness { purpose: Purpose::SubPlan } => return self.sub_plan(claimed, slot).await,
            Work::Harness { purpose: Purpose::Verdict | Purpose::Rehearsal }
            | Work::Agent { .. }
            | Work::Human { .. } => {}
        }
        self.begin_activity(claimed, true);
        let runner = match self.lost_place_reason(claimed) {
            Some(what) => Err(what),
            None => self.runner(Path::new(&claimed.workspace)),
        };
        let (found, outputs) = match runner {
            Err(what) => (HarnessResult::Nothing(Inconclusive::ToolMissing { what }), Vec::new()),
            Ok(runner) => {
                let mut watch = self.output_sink(claimed, "contract");
                let work = async |cancel| self.gate(claimed, slot, runner, &mut watch, cancel).await;
                match self.while_renewing(claimed, &slot.cut, slot, work).await {
                    Some(gate) => gate?,
                    None => return Ok(None),
                }
            }
        };
        slot.release_while_storing();
        self.store_outputs(&outputs).await?;
        let found = if is_rehearsal(claimed)
            && let HarnessResult::Evidence(evidence) = found
        {
            HarnessResult::Rehearsed(evidence)
        } else {
            found
        };
        // A gate that is repeated may have to wait; the items that follow a verdict are due at once.
        let is_verdict = matches!(found, HarnessResult::Evidence(_));
        let next_claim = self.next_claim(slot).filter(|_| is_verdict);
        let event = Event::Harness(HarnessEvent { at: claimed.item.at.clone(), found });
        self.apply_event(claimed, &event, next_claim.as_ref()).await
    }

    /// Waits for a slot where a gate follows the verdict of another whose slot is others' by now; `None` where its lease is lost
    /// meanwhile.
    async fn wait_for_slot(&self, claimed: &Claimed, slot: &Slot) -> Option<()> {
        let Some(waiting) = slot.wait_again() else { return Some(()) };
        let work = async |cancel: Cancel| {
            tokio::select! {
                () = waiting.reacquire() => {}
                () = cancel => {}
            }
        };
        self.while_renewing(claimed, &slot.cut, slot, work).await
    }

    /// Evaluates a contract while nobody else has the workspace, and has its judge asked where it has one. Returns what was found,
    /// and the texts to keep.
    async fn gate(
        &self,
        claimed: &Claimed,
        slot: &Slot,
        runner: ContractRunner,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
        mut cancel: Cancel,
    ) -> Result<(HarnessResult, Vec<Output>), ServiceError> {
        let nothing = |why| Ok((HarnessResult::Nothing(why), Vec::new()));
        let gated = gated_of(claimed)?;
        let is_rehearsal = is_rehearsal(claimed);
        let lock = if self.runs_beside_others(claimed, gated.contract) {
            self.has_come(slot);
            None
        } else {
            match self.workspace_lock(claimed, slot, &mut cancel).await? {
                Some(lock) => Some(lock),
                None => return nothing(Inconclusive::Interrupted),
            }
        };
        let mut cancel = cancel.fuse();
        if let Some(lock) = lock.as_ref().filter(|_| is_rehearsal && gated.contract.judge.is_some()) {
            if let Err(why) = self.record_for_judge(claimed, lock).await {
                return nothing(why);
            }
            if gated.contract.rehearsal_mode().is_off() {
                let name = claimed.item.at.node.as_str().to_owned();
                return Ok((HarnessResult::Recorded { name }, Vec::new()));
            }
        }
        let runner = self.traced_runner(runner, claimed);
        let judge_runner = runner.clone();
        let runner = match &lock {
            Some(lock) => runner.with_locks(lock.descriptors()),
            None => runner,
        };
        // A call is nothing but its command, which may want to know where it stands; a contract judges work alone.
        let is_call = claimed.graph.task(&claimed.item.at.node).is_none();
        let runner = match is_call {
            true => self.call_runner(runner, claimed, gated.contract).await?,
            false => Ok(runner),
        };
        let runner = match runner {
            Ok(runner) => runner,
            Err(gate) => return Ok((gate.found, gate.outputs)),
        };
        let runner = if is_rehearsal { runner } else { runner.with_stability(self.stability(claimed)) };
        let (baseline, _held) = self.baseline(claimed).await?;
        let gate = runner.evaluate(gated.contract, &Arc::new(baseline), watch, &mut cancel).await;
        // One that was replaced, or led to another branch, meanwhile was judged in part, or not at all.
        if let Some(what) = self.lost_place_reason(claimed) {
            return nothing(Inconclusive::Unstable { what });
        }
        self.note_by_products(claimed, gate.made);
        self.note_written(claimed, &gated.contract.digest, gate.written);
        let found = self.with_moved_files(claimed, gate.found, &gated).await?;
        if is_rehearsal {
            return Ok((found, gate.outputs));
        }
        let question = match &lock {
            Some(lock) => self.question_to_judge(claimed, lock, gated.contract, &found).await,
            None => None,
        };
        // The workspace is free while the judge thinks.
        drop((runner, lock));
        let Some(question) = question else { return Ok((found, gate.outputs)) };
        let prompt = match question {
            Err(what) => return nothing(Inconclusive::Unjudged { what, usage: None }),
            Ok(prompt) => self.clear_prompt(claimed, gated.contract, prompt).await?,
        };
        match prompt {
            Err(held) => Ok((HarnessResult::Nothing(held.why), held.kept.into_iter().collect())),
            Ok(prompt) => {
                let found = self.judged(judge_runner, claimed, gated.contract, prompt, found, cancel).await?;
                Ok((found, gate.outputs))
            }
        }
    }

    /// Has the spans of a contract stand in the trace of its run, where there is one.
    fn traced_runner(&self, runner: ContractRunner, claimed: &Claimed) -> ContractRunner {
        match &self.traces {
            Some(traces) => runner.in_trace(traces.parent_of(self.run, &claimed.item.at)),
            None => runner,
        }
    }

    pub(crate) fn runner(&self, workspace: &Path) -> Result<ContractRunner, String> {
        let is_own = workspace == self.workspace;
        let known = self.runner.get();
        if let Some(runner) = known.filter(|_| is_own) {
            return Ok(runner.clone());
        }
        let path = crate::verify::check::joined_path(&self.settings.contract_path);
        let env = self.secrets.open(&self.settings.contract_env)?;
        let made = brief_file_work(|| ContractRunner::new(self.spawner.clone(), workspace, Some(&path), env));
        let runner = made
            .map_err(|refused| refused.to_string())?
            .with_isolation(self.isolation(&workspace.to_string_lossy()))
            .with_limits(self.settings.contract_limits);
        let runner = match known {
            // A branch's own folder is made after the work began, and its worker can write the repository's settings.
            Some(known) => runner.with_repositories_of(known),
            None => {
                let file = &self.repositories_noted;
                let noted = brief_file_work(|| runner.with_repositories_noted(file));
                noted
                    .map_err(|error| format!("the notes of its repositories, {}: {error}", file.display()))?
            }
        };
        Ok(if is_own { self.runner.get_or_init(|| runner).clone() } else { runner })
    }

    /// Returns what the gate of a step compares. The marks in protected plans stay as they are for as long as the locks live.
    async fn baseline(&self, claimed: &Claimed) -> Result<(Baseline, Vec<PlanFileLock>), ServiceError> {
        if self.approved.is_empty() {
            return Ok((Baseline::default(), Vec::new()));
        }
        let moved = self.changed_protected_files(claimed).await?;
        let (approved, graph, node) =
            (self.approved.clone(), claimed.graph.clone(), claimed.item.at.node.clone());
        let workspace = PathBuf::from(&claimed.workspace);
        let taken = blocking(move || match graph.gated(&node) {
            Some(gated) => protection::baseline_of_step(&approved, &gated, &moved, &workspace),
            None => Ok(Baseline::default()),
        });
        let mut baseline = taken.await??;
        let held = self.hold_marks(claimed, &mut baseline).await?;
        // The rights that a person allowed are those that an earlier attempt asked for.
        if claimed.item.at.attempt.number() > 1 {
            let mut view = self.store.run_view(self.run).await?;
            let allowed = view.records.remove(&claimed.item.at.node).map(|record| record.allowed);
            let (allowed, workspace) = (allowed.unwrap_or_default(), PathBuf::from(&claimed.workspace));
            let with_allowed = blocking(move || baseline.allow(&workspace, &allowed).map(|()| baseline));
            baseline = with_allowed.await??;
        }
        if !baseline.globs.is_empty() || !baseline.deciding.is_empty() {
            baseline.by_products =
                by_products::read(&self.spawner, &self.state_dir, Path::new(&claimed.workspace)).await;
        }
        Ok((baseline, held))
    }

    /// Remembers what a contract made below protected patterns, but for what a step of the plan is meant to make. Where
    /// steps work side by side, it may as well be the work of another one.
    fn note_by_products(&self, claimed: &Claimed, made: BTreeMap<String, Digest>) {
        let is_somebodys = |path: &String| {
            let mut steps = claimed.graph.nodes().iter().filter_map(Node::gated);
            steps.any(|gated| protection::change_rights(&gated).may_change(path))
        };
        let made: BTreeMap<String, Digest> =
            made.into_iter().filter(|(path, _)| !is_somebodys(path)).collect();
        if made.is_empty() || self.at_once > 1 {
            return;
        }
        let (workspace, plan_file) = (Path::new(&claimed.workspace), Path::new(&self.home).join(&self.plan));
        if let Err(error) = brief_file_work(|| by_products::add(&self.state_dir, workspace, &plan_file, made))
        {
            tracing::warn!(%error, run.id = %self.run, "what a contract made will be taken for its worker's");
        }
    }

    /// Returns the files that must stay as they are while the contract of a step runs (A5). A call has no judge: it may
    /// change any file.
    fn stability(&self, claimed: &Claimed) -> Stability {
        let node = &claimed.item.at.node;
        let Some(task) = claimed.graph.task(node) else { return Stability::default() };
        let subscribed = task.subscriptions.iter().filter_map(|subscription| match subscription {
            Subscription::File { path } => Some(path.clone()),
            Subscription::Topic { .. } => None,
        });
        let plans = self.marked_plans.keys().chain(self.settings.sub_plans.keys());
        let below = plans.filter_map(|plan| within_folder(&self.settings.folder, plan));
        let mut except: BTreeSet<String> = below.map(str::to_owned).collect();
        // Where steps work side by side in one place, most changes are rightful work of the others.
        let is_shared = self.at_once > 1 && Path::new(&claimed.workspace) == self.workspace;
        if is_shared {
            let others = claimed.graph.nodes().iter().filter(|other| other.id != *node);
            except.extend(others.filter_map(Node::gated).flat_map(|gated| gated.may_change.iter().cloned()));
        }
        let (state_dir, workspace) = (&self.state_dir, Path::new(&claimed.workspace));
        Stability {
            tracked: !is_shared,
            subscribed: subscribed.collect(),
            except,
            written: brief_file_work(|| contract_writes::read(state_dir, workspace, &task.contract.digest)),
        }
    }

    fn note_written(&self, claimed: &Claimed, contract: &Digest, written: Written) {
        if written.is_empty() {
            return;
        }
        let workspace = Path::new(&claimed.workspace);
        let note = || contract_writes::note(&self.state_dir, workspace, contract, written);
        if let Err(error) = brief_file_work(note) {
            tracing::warn!(%error, run.id = %self.run, "what a contract wrote will be taken for somebody else's");
        }
    }

    /// Returns protected files that earlier steps rightfully changed, as their passing gates found them.
    async fn changed_protected_files(
        &self,
        claimed: &Claimed,
    ) -> Result<BTreeMap<String, Option<Digest>>, ServiceError> {
        let mut moved = BTreeMap::new();
        let (graph, own) = (&claimed.graph, &claimed.item.at.node);
        let others = self.movers.iter().filter(|node| *node != own);
        let nodes: Vec<_> =
            others.filter(|node| branch_worktrees::is_seen_by(graph, node, own)).cloned().collect();
        if nodes.is_empty() {
            return Ok(moved);
        }
        for (node, files) in self.store.protected_files_found(self.run, &nodes).await? {
            let Some(other) = graph.gated(&node) else {
                moved.extend(files);
                continue;
            };
            moved.extend(
                files.into_iter().filter(|(path, _)| protection::may_move(&self.approved, &other, path)),
            );
        }
        Ok(moved)
    }

    /// Records the state of protected files that the step itself may change, for the gates after it.
    async fn with_moved_files(
        &self,
        claimed: &Claimed,
        mut found: HarnessResult,
        gated: &Gated<'_>,
    ) -> Result<HarnessResult, ServiceError> {
        if let HarnessResult::Evidence(evidence) = &mut found
            && protection::is_mover(&self.approved, gated)
        {
            let known = self.changed_protected_files(claimed).await?;
            let (approved, graph) = (self.approved.clone(), claimed.graph.clone());
            let (node, workspace) = (claimed.item.at.node.clone(), PathBuf::from(&claimed.workspace));
            let moved = blocking(move || match graph.gated(&node) {
                Some(gated) => protection::changes_by_step(&approved, &gated, &known, &workspace),
                None => Ok(BTreeMap::new()),
            });
            evidence.protected.extend(moved.await??);
        }
        Ok(found)
    }
}

fn is_rehearsal(claimed: &Claimed) -> bool {
    claimed.item.work == Work::Harness { purpose: Purpose::Rehearsal }
}

fn gated_of(claimed: &Claimed) -> Result<Gated<'_>, ServiceError> {
    let gated = claimed.graph.gated(&claimed.item.at.node);
    gated.ok_or_else(|| ServiceError::broken(format!("item {} is of no step", claimed.item.id)))
}
