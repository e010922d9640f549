//! Branches of runs that work in git worktrees of their own: where they are, made at their fork, merged at their join.

use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_engine::{
    Attempt, Conflict, End, Graph, HarnessResult, Inconclusive, NodeId, NodeKind, Purpose, Record, RunId,
    RunStatus, WorktreeBranch,
};
use planctl_harness::{
    Baseline, BranchWorktrees, Checkout, Intact, Joined, Output, Spawner, WorktreeError, blocking_in_place,
    excerpt_of, git_top_level, worktree_intact,
};
use planctl_store::{Claimed, RunRow, Store, StoreError};

use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::verify::protection::changes_by_step;
use crate::workspaces::worktrees::lock_worktrees;

/// The worktrees of all branches of this state directory.
#[derive(Clone)]
pub(crate) struct Branches {
    store: Store,
    spawner: Spawner,
    state_dir: PathBuf,
}

impl Branches {
    pub(crate) fn new(store: &Store, spawner: &Spawner, state_dir: &Path) -> Branches {
        Branches { store: store.clone(), spawner: spawner.clone(), state_dir: state_dir.to_owned() }
    }

    /// Waits for the lock on worktrees. The result holds it, and so do the processes that it starts.
    async fn locked(&self) -> Result<Branches, ServiceError> {
        let one = lock_worktrees(&self.state_dir).await?;
        Ok(Branches { spawner: self.spawner.with_locks([one]), ..self.clone() })
    }

    /// Returns the folder of one attempt of a fork.
    fn folder(&self, run: RunId, fork: &NodeId, attempt: Attempt) -> PathBuf {
        folder_of_try(&self.of_run(run), fork, attempt)
    }

    fn of_run(&self, run: RunId) -> PathBuf {
        folder_of(&self.state_dir).join(run.to_string())
    }

    /// Makes the worktrees of a fork or merges those of a join. Returns the finding, and the outputs to store with it.
    pub(crate) async fn run_item(
        &self,
        claimed: &Claimed,
        purpose: Purpose,
        approved: &Baseline,
    ) -> Result<(HarnessResult, Vec<Output>), ServiceError> {
        let alone = self.locked().await?;
        let done = match purpose {
            Purpose::Fork => {
                alone.fork(claimed).await?.map(|base| (HarnessResult::Forked { base }, Vec::new()))
            }
            Purpose::Merge
            | Purpose::Verdict
            | Purpose::Rehearsal
            | Purpose::Record
            | Purpose::Restoration
            | Purpose::SubPlan => alone.merge(claimed, approved).await?,
        };
        Ok(done.unwrap_or_else(|error| {
            let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
            let what = format!("could not {error}{help}");
            (HarnessResult::Nothing(Inconclusive::ToolMissing { what }), Vec::new())
        }))
    }

    async fn fork(&self, claimed: &Claimed) -> Result<Result<String, WorktreeError>, ServiceError> {
        let at = &claimed.item.at;
        let count = u16::try_from(claimed.graph.edges_from(&at.node).len()).unwrap_or(u16::MAX);
        let found = self.find(claimed, &at.node, at.attempt).await;
        Ok(match found {
            Ok(branches) => branches.create_worktrees(count).await,
            Err(error) => Err(error),
        })
    }

    async fn merge(
        &self,
        claimed: &Claimed,
        approved: &Baseline,
    ) -> Result<Result<(HarnessResult, Vec<Output>), WorktreeError>, ServiceError> {
        let join = &claimed.item.at.node;
        let fork = claimed.graph.fork_of(join).ok_or_else(|| ServiceError::broken("a join has no fork"))?;
        let records = self.store.records_of(claimed.item.run, &[fork.clone(), join.clone()]).await?;
        let begun = records.get(fork).and_then(|record| Some((record.tally.attempt, record.saved.clone()?)));
        let (attempt, base) = begun.ok_or_else(|| ServiceError::broken("branches were never forked"))?;
        let came = records.get(join).and_then(|record| record.arrivals.as_deref());
        let well: Vec<u16> = came.map(|arrivals| arrivals.succeeded().collect()).unwrap_or_default();
        let joined = match self.find(claimed, fork, attempt).await {
            Ok(branches) => branches.merge(&base, &well).await,
            Err(error) => Err(error),
        };
        Ok(match joined {
            Ok(Joined::Merged { files }) => {
                let files = u32::try_from(files).unwrap_or(u32::MAX);
                let (graph, fork, approved) = (claimed.graph.clone(), fork.clone(), approved.clone());
                let workspace = PathBuf::from(&claimed.workspace);
                let protected = blocking(move || protected_now(&graph, &fork, &approved, &workspace));
                let protected = protected.await??;
                Ok((HarnessResult::Merged { files, protected }, Vec::new()))
            }
            Ok(Joined::Conflicts { branch, folder, conflicts }) => {
                let (hunks, outputs) = excerpt_of(&hunks_of(&conflicts));
                let files =
                    conflicts.iter().map(|conflict| conflict.path.to_string_lossy().into_owned()).collect();
                let folder = folder.to_string_lossy().into_owned();
                Ok((HarnessResult::Conflicted(Box::new(Conflict { branch, files, folder, hunks })), outputs))
            }
            Err(error) => Err(error),
        })
    }

    /// Returns the try of the fork whose branches a join merges. Once the run goes on, the fork may be tried again.
    pub(crate) async fn merged_at(&self, claimed: &Claimed) -> Result<Option<Attempt>, ServiceError> {
        let Some(fork) = claimed.graph.fork_of(&claimed.item.at.node) else { return Ok(None) };
        let records = self.store.records_of(claimed.item.run, std::slice::from_ref(fork)).await?;
        Ok(records.get(fork).map(|record| record.tally.attempt))
    }

    /// Removes the worktrees that a join merged; one that can't be removed waits until the run is over.
    pub(crate) async fn clear_merged(&self, claimed: &Claimed, attempt: Attempt) -> Result<(), ServiceError> {
        let Some(fork) = claimed.graph.fork_of(&claimed.item.at.node) else { return Ok(()) };
        let removed = match self.locked().await?.find(claimed, fork, attempt).await {
            Ok(branches) => branches.remove().await,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, run.name = %claimed.run_name, "worktrees of branches were not removed");
        }
        Ok(())
    }

    async fn find(
        &self,
        claimed: &Claimed,
        fork: &NodeId,
        attempt: Attempt,
    ) -> Result<BranchWorktrees, WorktreeError> {
        let folder = self.folder(claimed.item.run, fork, attempt);
        let name = name_of(&claimed.run_name, claimed.item.run, &folder);
        BranchWorktrees::find(&self.spawner, Path::new(&claimed.workspace), folder, name).await
    }

    /// Removes all worktrees of a run's branches.
    async fn remove_all(&self, run: &RunRow) -> Result<(), WorktreeError> {
        let own = self.of_run(run.id);
        let read =
            || std::fs::read_dir(&own).map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>());
        let Ok(entries) = blocking_in_place(read) else { return Ok(()) };
        for folder in entries.iter().map(std::fs::DirEntry::path) {
            let name = name_of(&run.name, run.id, &folder);
            // The folder of a plan within another may be of a repository of its own.
            let own = Path::new(run.present_folder());
            let workspace =
                if blocking_in_place(|| own.is_dir()) { own } else { Path::new(&run.workspace_path) };
            BranchWorktrees::find(&self.spawner, workspace, folder, name).await?.remove().await?;
        }
        blocking_in_place(|| std::fs::remove_dir(&own))
            .map_err(|source| WorktreeError::Io { what: format!("remove {}", own.display()), source })
    }
}

/// Returns where the item of a node is worked on: in the worktree of its branch where it has one, else where the run works.
pub(crate) async fn place_of(
    store: &Store,
    state_dir: &Path,
    run: RunId,
    graph: &Graph,
    node: &NodeId,
    workspace: &str,
) -> Result<String, ServiceError> {
    let Some(WorktreeBranch { fork, branch, .. }) = graph.worktree_branch(node) else {
        return Ok(workspace.to_owned());
    };
    let records = store.records_of(run, std::slice::from_ref(fork)).await?;
    let attempt = records.get(fork).map_or(Attempt::NONE, |record: &Record| record.tally.attempt);
    let inside = blocking_in_place(|| git_top_level(Path::new(workspace)))
        .and_then(|top| Path::new(workspace).strip_prefix(top).ok())
        .unwrap_or(Path::new(""));
    let folder = folder_of_try(&folder_of(state_dir).join(run.to_string()), fork, attempt);
    Ok(BranchWorktrees::place(&folder, inside, *branch).to_string_lossy().into_owned())
}

/// Says what a person can do about the worktree of a branch in which no step can work any more; `None` where it is whole.
pub(crate) fn lost_worktree_help(graph: &Graph, node: &NodeId, place: &str) -> Option<String> {
    let worktree = graph.worktree_branch(node)?;
    let top = git_top_level(Path::new(place)).unwrap_or(Path::new(place));
    match worktree_intact(top) {
        Intact::Yes if Path::new(place).is_dir() => None,
        Intact::Yes | Intact::NoFolder | Intact::Detached | Intact::NoBranch => Some(format!(
            "the worktree of branch {} is not whole any more: {place}; bring it back and answer retry, or cancel the run",
            worktree.branch + 1
        )),
    }
}

/// Says whether what a node found or changed is there for another: they work in one place, or the first in a place of
/// which the other's began.
pub(crate) fn is_seen_by(graph: &Graph, node: &NodeId, other: &NodeId) -> bool {
    let Some(own) = graph.worktree_branch(node) else { return true };
    let mut enclosing = graph.worktree_branch(other);
    while let Some(worktree) = enclosing {
        if worktree == own {
            return true;
        }
        enclosing = graph.worktree_branch(&worktree.fork);
    }
    false
}

/// Returns the protected files that steps between a fork and its join may change, as the merge left them.
fn protected_now(
    graph: &Graph,
    fork: &NodeId,
    approved: &Baseline,
    workspace: &Path,
) -> Result<std::collections::BTreeMap<String, Option<planctl_engine::Digest>>, ServiceError> {
    let is_within = |node: &NodeId| {
        let mut enclosing = graph.worktree_branch(node);
        while let Some(worktree) = enclosing {
            if worktree.fork == *fork {
                return true;
            }
            enclosing = graph.worktree_branch(&worktree.fork);
        }
        false
    };
    let steps = graph.nodes().iter().filter(|node| is_within(&node.id)).filter_map(|node| node.gated());
    let mut found = std::collections::BTreeMap::new();
    for gated in steps {
        found.extend(changes_by_step(approved, &gated, &std::collections::BTreeMap::new(), workspace)?);
    }
    Ok(found)
}

/// Says whether a run is over and can't be taken up; `failed` counts those that can.
pub(crate) fn is_over(run: &RunRow, failed: bool) -> bool {
    match run.head.status {
        RunStatus::Ended { end: End::Done | End::Cancelled } => true,
        RunStatus::Ended { end: End::Failed | End::Aborted } => failed,
        RunStatus::New
        | RunStatus::Awaiting
        | RunStatus::Queued { .. }
        | RunStatus::Active
        | RunStatus::Paused => false,
    }
}

/// Shows conflicts one after another, each with the name of its file.
fn hunks_of(conflicts: &[planctl_harness::Conflict]) -> String {
    let mut shown = String::new();
    for conflict in conflicts {
        let what = conflict.what.as_ref().map(|what| format!(" ({what})")).unwrap_or_default();
        shown.push_str(&format!("{}{what}\n{}", conflict.path.display(), conflict.hunks));
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

fn folder_of(state_dir: &Path) -> PathBuf {
    state_dir.join("branches")
}

/// Returns the folder of one attempt of a fork. Tries are counted over the whole run, and visits begin anew with an epoch: a
/// try never finds the worktrees of another.
fn folder_of_try(of_run: &Path, fork: &NodeId, attempt: Attempt) -> PathBuf {
    of_run.join(format!("{}-{attempt}", plain(fork.as_str())))
}

/// Names the references of a fork's branches; run and fork can be read in it.
fn name_of(run_name: &str, run: RunId, folder: &Path) -> String {
    let of = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = run.to_string();
    format!("{}-{}-{of}", plain(run_name), &id[id.len() - 12..])
}

/// Returns a text as a part of a file's and of a reference's name; texts that differ stay different.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let kept: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).take(40).collect();
    if kept == text {
        return kept;
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{kept}-{hash:016x}")
}

impl Services {
    /// Refuses a plan whose branches work in git worktrees, where the workspace is no repository of which any can be made.
    pub(crate) async fn refuse_unless_branches_can_fork(&self, graph: &Graph) -> Result<(), ServiceError> {
        let Some(fork) =
            graph.nodes().iter().find(|node| matches!(&node.kind, NodeKind::Fork(fork) if fork.in_worktree))
        else {
            return Ok(());
        };
        let workspace =
            self.caller.workspace.as_deref().ok_or_else(|| ServiceError::broken("no workspace"))?;
        let looked = match Checkout::find(self.spawner()?, workspace).await {
            Ok(checkout) => checkout.survey().await.map(drop),
            Err(error) => Err(error),
        };
        looked.map_err(|error| ServiceError::Conflict {
            what: format!("run the branches of \"{}\" in worktrees of their own: {error}", fork.title),
            next: Next::by_hand(error.help().unwrap_or_else(|| "git status".to_owned())),
        })
    }
}

impl ServerNode {
    pub(crate) fn branches(&self) -> Result<Branches, ServiceError> {
        Ok(Branches::new(&self.store, self.spawner()?, self.state_dir()))
    }

    /// Puts a claimed item into the place where it is worked on.
    pub(crate) async fn placed(&self, mut claimed: Claimed) -> Result<Claimed, ServiceError> {
        let (run, node) = (claimed.item.run, &claimed.item.at.node);
        let graph = claimed.graph.clone();
        claimed.workspace =
            place_of(&self.store, self.state_dir(), run, &graph, node, &claimed.workspace).await?;
        Ok(claimed)
    }

    /// Removes the worktrees of branches of a run that is over and can't be taken up; `failed` asks for those that can.
    pub(crate) async fn clear_branches(&self, run: &RunRow, failed: bool) -> Result<(), ServiceError> {
        let branches = folder_of(self.state_dir()).join(run.id.to_string());
        let is_due = is_over(run, failed) && run.host == self.host();
        if !is_due || !blocking_in_place(|| branches.exists()) {
            return Ok(());
        }
        if let Err(error) = self.branches()?.locked().await?.remove_all(run).await {
            tracing::warn!(%error, run.name = %run.name, "worktrees of branches were not removed");
        }
        Ok(())
    }

    /// Returns the runs of which worktrees of branches are there.
    pub(crate) fn runs_with_branches(&self) -> impl Iterator<Item = RunId> {
        let entries = std::fs::read_dir(folder_of(self.state_dir())).into_iter().flatten();
        let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| RunId::parse(&name))
    }

    /// Removes what is left of branches of runs that are over, of all workspaces.
    pub(crate) async fn clear_all_branches(&self, failed: bool) -> Result<(), ServiceError> {
        for run in blocking_in_place(|| self.runs_with_branches().collect::<Vec<_>>()) {
            if let Some(run) = self.known(run).await? {
                self.clear_branches(&run, failed).await?;
            }
        }
        Ok(())
    }

    /// Returns a run of which something is left, unless another database has it.
    pub(crate) async fn known(&self, run: RunId) -> Result<Option<RunRow>, ServiceError> {
        match self.store.run(run).await {
            Ok(run) => Ok(Some(run)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
