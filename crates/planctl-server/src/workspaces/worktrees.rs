//! Runs that work in a git worktree of their own: planned when the run is made, made before it begins, looked at when it
//! ends, removed when a person says so.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use planctl_api::Next;
use planctl_engine::{End, RunId, RunStatus, Subscription};
use planctl_glob::is_glob;
use planctl_harness::{
    Checkout, GLOB_FILES_MAX, Intact, Spawner, Survey, WorktreeError, blocking_in_place, commit_all,
    expand_glob, git_branch, git_head, uncommitted, verify_result, worktree_intact,
};
use planctl_lang::{Source, digest, shell_word};
use planctl_store::{RunRow, StoreError, WorktreeResult, WorktreeRow};

use crate::node::ServerNode;
use crate::node::instance::lock_exclusively;
use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;
use crate::workspaces::baselines::baseline_of;
use planctl_api::wire::{CleanView, CleanedView};
use planctl_config::{Commits, WorkspaceMode};

/// How many worktrees are looked at in one sweep.
const SWEPT_MAX: i64 = 10_000;
/// How many paths a message names.
const NAMED_MAX: usize = 5;

/// Where a new run shall work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Planned {
    /// The folder in which its worktree is made.
    pub(crate) folder: String,
    /// Where in the worktree its workspace is.
    pub(crate) inside: String,
    /// The commit that it begins with.
    pub(crate) base: String,
    /// How many changes of the workspace don't come along.
    pub(crate) left_behind: usize,
}

/// A person's choice of worktrees to remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleaning {
    /// Worktrees of failed runs too, which then can't be resumed.
    pub failed: bool,
    /// Also what is committed nowhere.
    pub discards: bool,
    /// Of all workspaces of this host.
    pub everywhere: bool,
    /// Only says what would be removed.
    pub dry_run: bool,
}

impl Services {
    /// Looks where a run of this plan could work in a worktree; `None` where it shall work in the workspace itself.
    pub(crate) async fn planned_worktree(&self, checked: &Checked) -> Result<Option<Planned>, ServiceError> {
        if self.caller.config.workspace.mode == WorkspaceMode::Shared {
            return Ok(None);
        }
        let workspace =
            self.caller.workspace.as_deref().ok_or_else(|| ServiceError::broken("no workspace"))?;
        let checkout = Checkout::find(self.spawner()?, workspace).await.map_err(refused)?;
        let survey = checkout.survey().await.map_err(refused)?;
        let inside = workspace.strip_prefix(checkout.top()).unwrap_or(Path::new(""));
        let folder = self.state_dir().join("worktrees");
        let (Some(inside), Some(folder)) = (inside.to_str(), folder.to_str()) else {
            return Err(ServiceError::Conflict {
                what: "make a worktree: its path is not UTF-8".to_owned(),
                next: Next::StartRunHere { plan: checked.path.clone() },
            });
        };
        if !inside.is_empty() && !checkout.commit_has_path(&survey.commit, inside).await.map_err(refused)? {
            return Err(ServiceError::Conflict {
                what: format!("make a worktree: nothing in {inside} is committed"),
                next: Next::by_hand(format!("git add {inside} && git commit")),
            });
        }
        let planned = Planned {
            folder: folder.to_owned(),
            inside: inside.to_owned(),
            base: survey.commit.clone(),
            left_behind: 0,
        };
        let left_behind = self.refuse_uncommitted(checked, &checkout, &survey, workspace, &planned).await?;
        Ok(Some(Planned { left_behind, ..planned }))
    }

    /// Lets a run that has not begun begin with what is committed by now.
    pub(crate) async fn plan_worktree_anew(
        &self,
        run: &RunRow,
        checked: &Checked,
    ) -> Result<(), ServiceError> {
        if run.worktree.is_some()
            && let Some(planned) = self.planned_worktree(checked).await?
        {
            self.store.set_worktree_base(run.id, &planned.base, planned.left_behind).await?;
        }
        Ok(())
    }

    /// Refuses a plan that needs files which a worktree would not hold as they are here; returns how many other changes
    /// stay behind.
    async fn refuse_uncommitted(
        &self,
        checked: &Checked,
        checkout: &Checkout,
        survey: &Survey,
        workspace: &Path,
        planned: &Planned,
    ) -> Result<usize, ServiceError> {
        let from_top = |path: &str| match planned.inside.as_str() {
            "" => path.to_owned(),
            inside => format!("{inside}/{path}"),
        };
        let (needed, of) = (needed_files(checked), workspace.to_owned());
        let needed = blocking(move || expanded(needed, &of)).await?;
        let needed: Vec<String> = needed.iter().map(|path| from_top(path)).collect();
        let named = needed.iter().map(String::as_str);
        let mut missing = checkout.uncommitted_among(survey, named).await.map_err(refused)?;
        let plan = from_top(&checked.path);
        let is_inside = !Path::new(&checked.path).is_absolute();
        let mut left_behind = survey.uncommitted.len();
        if is_inside {
            // The marks that planctl itself draws into the file are no change.
            let committed = checkout.committed(&survey.commit, &plan).await.map_err(refused)?;
            let source = committed.and_then(|bytes| Source::from_bytes(&checked.path, bytes).ok());
            match source.is_some_and(|source| digest(&source) == checked.verification.digest) {
                true => left_behind -= usize::from(survey.uncommitted.contains(&plan)),
                false => missing.insert(0, plan),
            }
        }
        if missing.is_empty() {
            return Ok(left_behind);
        }
        let all = missing.iter().map(|path| shell_word(path)).collect::<Vec<_>>();
        let mut shown = missing.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        if missing.len() > NAMED_MAX {
            shown.push_str(&format!(" and {} more", missing.len() - NAMED_MAX));
        }
        let top = shell_word(&checkout.top().to_string_lossy());
        // git adds ignored files only with `--force`.
        let force = if checkout.ignores_any(&missing).await.map_err(refused)? { "--force " } else { "" };
        Err(ServiceError::Conflict {
            what: format!(
                "run {} in a worktree, which holds only what is committed; this plan needs {shown} as {} here",
                checked.path,
                if missing.len() == 1 { "it is" } else { "they are" }
            ),
            next: Next::by_hand(format!(
                "git -C {top} add {force}-- {} && git -C {top} commit",
                all.join(" ")
            )),
        })
    }

    /// Refuses to go on with a run that works elsewhere than was asked for.
    pub(crate) fn refuse_other_place(&self, run: &RunRow) -> Result<(), ServiceError> {
        if self.caller.config.workspace.mode == WorkspaceMode::Worktree && run.worktree.is_none() {
            return Err(ServiceError::Conflict {
                what: format!(
                    "run {} in a worktree: {} is not done, and works in the workspace itself",
                    run.plan_path, run.name
                ),
                next: Next::cancel(&run.name),
            });
        }
        Ok(())
    }

    /// Removes worktrees of runs that are over; the branches stay unless all of them is in the workspace's own.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn clean(&self, cleaning: Cleaning) -> Result<CleanView, ServiceError> {
        let workspace = self.workspace.filter(|_| !cleaning.everywhere);
        let host = self.server_node.host();
        let rows = self.store.runs_with_worktrees(host, workspace, SWEPT_MAX).await?;
        let mut worktrees = Vec::new();
        for row in rows {
            if let Some(worktree) = &row.worktree {
                worktrees.push(self.clean_one(&row, worktree, cleaning).await?);
            }
        }
        if !cleaning.dry_run {
            self.server_node.clear_all_branches(cleaning.failed).await?;
            self.server_node.clear_all_checkpoints(cleaning.failed).await?;
        }
        Ok(CleanView { dry_run: cleaning.dry_run, worktrees })
    }

    async fn clean_one(
        &self,
        row: &RunRow,
        worktree: &WorktreeRow,
        cleaning: Cleaning,
    ) -> Result<CleanedView, ServiceError> {
        let mut view = CleanedView {
            run: row.name.clone(),
            path: worktree.root.clone(),
            branch: worktree.branch.clone(),
            removed: false,
            branch_removed: false,
            why: None,
        };
        let keeps = match row.head.status {
            RunStatus::Ended { end: End::Done | End::Cancelled } => None,
            RunStatus::Ended { end: End::Failed | End::Aborted } if cleaning.failed => None,
            RunStatus::Ended { end: End::Failed | End::Aborted } => {
                Some("its run failed and can be resumed in it; --failed removes it".to_owned())
            }
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Paused => Some("its run is not over".to_owned()),
        };
        if keeps.is_some() {
            return Ok(CleanedView { why: keeps, ..view });
        }
        let root = Path::new(&worktree.root);
        // Of one that somebody broke, git can't tell what would be lost.
        let is_whole = blocking_in_place(|| {
            !root.exists() || worktree.made_at.is_none() || worktree_intact(root) == Intact::Yes
        });
        if !is_whole && !cleaning.discards {
            view.why = Some("it no longer belongs to the repository; --discard removes it".to_owned());
            return Ok(view);
        }
        let alone = self.server_node.alone_at_worktrees().await?;
        let checkout = match Checkout::find(&alone, Path::new(&row.workspace_path)).await {
            Ok(checkout) => checkout,
            Err(error) => return Ok(CleanedView { why: Some(format!("could not {error}")), ..view }),
        };
        let discards = cleaning.discards || worktree.made_at.is_none();
        if cleaning.dry_run {
            if !discards {
                view.why = checkout.refuse_loss(root).await.err().as_ref().map(kept_words);
            }
            view.removed = view.why.is_none();
            return Ok(view);
        }
        match checkout.remove(root, &worktree.branch, discards).await {
            Ok(branch_removed) => {
                self.store.mark_worktree_removed(row.id).await?;
                Ok(CleanedView { removed: true, branch_removed, ..view })
            }
            Err(error) => Ok(CleanedView { why: Some(kept_words(&error)), ..view }),
        }
    }
}

/// Says why a worktree was not removed.
fn kept_words(error: &WorktreeError) -> String {
    let discards = "--discard removes them too";
    if let WorktreeError::Uncommitted { uncommitted, .. } = error {
        let are = if *uncommitted == 1 { "change is" } else { "changes are" };
        return format!("{uncommitted} {are} committed nowhere; {discards}");
    }
    let also = matches!(error, WorktreeError::Nested { .. }).then(|| format!("; {discards}"));
    format!("{}{}", could_not(error), also.unwrap_or_default())
}

fn could_not(error: &WorktreeError) -> String {
    let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
    format!("could not {error}{help}")
}

impl ServerNode {
    /// Makes the worktree of a run that has not begun, where it has none yet. One that was made is never made again.
    ///
    /// # Errors
    ///
    /// Says what git or the workspace refused; it is noted with the run too, which is held until it is resumed.
    pub(crate) async fn make_worktree(&self, run: &RunRow) -> Result<(), ServiceError> {
        let Some(worktree) = run.worktree.as_ref().filter(|worktree| worktree.made_at.is_none()) else {
            return Ok(());
        };
        if run.host != self.host() {
            return Err(ServiceError::Conflict {
                what: format!("make the worktree of {}: its workspace is on another host", run.name),
                next: Next::by_hand("start planctl there"),
            });
        }
        let alone = self.alone_at_worktrees().await?;
        if self.store.run(run.id).await?.worktree.is_some_and(|worktree| worktree.made_at.is_some()) {
            return Ok(());
        }
        match self.make(&alone, run, worktree).await {
            Ok(()) => Ok(self.store.mark_worktree_made(run.id).await?),
            Err(error @ (ServiceError::Store(_) | ServiceError::Cluster(_))) => Err(error),
            Err(error) => {
                self.store.record_worktree_trouble(run.id, &format!("could not {error}")).await?;
                Err(error)
            }
        }
    }

    async fn make(&self, alone: &Spawner, run: &RunRow, worktree: &WorktreeRow) -> Result<(), ServiceError> {
        let checkout = Checkout::find(alone, Path::new(&run.workspace_path)).await.map_err(refused)?;
        let new = planctl_harness::NewWorktree {
            path: Path::new(&worktree.root),
            branch: &worktree.branch,
            commit: &worktree.base,
            reason: &format!("a run of planctl: {}", run.name),
        };
        checkout.add(&new).await.map_err(refused)?;
        let place = PathBuf::from(&worktree.path);
        let Some(approval) = run.approval else { return Ok(()) };
        let baseline = baseline_of(&self.store.approval(approval).await?)?;
        let plans = baseline.marked.clone();
        let compared = blocking(move || baseline.compare(&place)).await??;
        // The text of plans was compared before, less the marks.
        match compared.tampered.iter().find(|file| !plans.contains(&file.path)) {
            None => Ok(()),
            Some(file) => Err(ServiceError::Conflict {
                what: format!(
                    "use the worktree of {}: the file {} was approved otherwise than commit {} has it",
                    run.name,
                    file.path,
                    worktree.base.get(..12).unwrap_or(&worktree.base)
                ),
                next: Next::CommitAndStartOver { run: run.name.clone(), plan: run.plan_path.clone() },
            }),
        }
    }

    /// Looks at the worktree of a run that has ended: commits what it holds where that was asked for, and notes what there
    /// is. Once per end; errors go to the log and to the run's status.
    pub(crate) async fn record_worktree_end(&self, run: &RunRow) -> Result<(), ServiceError> {
        let RunStatus::Ended { end } = run.head.status else { return Ok(()) };
        if run.host != self.host() || !is_worktree_end_due(run) {
            return Ok(());
        }
        let alone = self.alone_at_worktrees().await?;
        let run = self.store.run(run.id).await?;
        let Some(worktree) = run.worktree.as_ref().filter(|_| is_worktree_end_due(&run)) else {
            return Ok(());
        };
        let result = self.inspect_worktree(&alone, &run, end, worktree).await?;
        Ok(self.store.record_worktree_result(&run, &result).await?)
    }

    /// Commits what a worktree holds where that was asked for; returns what there is then, and why a person should not merge
    /// it.
    async fn inspect_worktree(
        &self,
        alone: &Spawner,
        run: &RunRow,
        end: End,
        worktree: &WorktreeRow,
    ) -> Result<WorktreeResult, ServiceError> {
        let root = Path::new(&worktree.root);
        let mut result = WorktreeResult::default();
        let is_done = end == End::Done;
        if let Some(what) = blocking_in_place(|| lost_words(worktree)) {
            result.trouble = Some(what).filter(|_| is_done);
            return Ok(result);
        }
        let mut refused = None;
        if is_done && RunSettings::of(run)?.commits == Commits::Commit {
            let message = format!("{}: {}", run.name, run.plan_path);
            refused = commit_all(alone, root, &message).await.err();
        }
        match uncommitted(alone, root).await {
            Ok(changes) => {
                result.commit = blocking_in_place(|| git_head(root));
                result.uncommitted = Some(changes.len());
            }
            Err(error) => refused = refused.or(Some(error)),
        }
        if is_done && let Err(error) = verify_result(alone, root, &worktree.base).await {
            refused = Some(error);
        }
        if let Some(error) = refused {
            tracing::warn!(%error, run.name = %run.name, "the result should not be merged");
            result.trouble = Some(could_not(&error)).filter(|_| is_done);
        }
        Ok(result)
    }

    /// Looks after what a run leaves that is over: its worktree, those of its branches, its checkpoints.
    ///
    /// # Errors
    ///
    /// Those of the store; errors of files go to the log.
    pub(crate) async fn clear_up(&self, run: RunId) -> Result<(), ServiceError> {
        let Some(run) = self.known(run).await? else { return Ok(()) };
        self.record_worktree_end(&run).await?;
        self.clear_branches(&run, false).await?;
        self.clear_checkpoints(&run, false).await
    }

    /// Returns the runs of which branches or checkpoints are kept.
    pub(crate) fn runs_with_leavings(&self) -> BTreeSet<RunId> {
        self.runs_with_branches().chain(self.runs_with_checkpoints()).collect()
    }

    /// Waits until no other process is at worktrees; the answer keeps others out, and so does what it started.
    async fn alone_at_worktrees(&self) -> Result<Spawner, ServiceError> {
        let one = lock_worktrees(self.state_dir()).await?;
        Ok(self.spawner()?.with_locks([one]))
    }

    /// Lets a run be admitted again whose worktree could not be made.
    pub(crate) async fn try_worktree_again(&self, run: &RunRow) -> Result<(), StoreError> {
        match &run.worktree {
            Some(worktree) if worktree.trouble.is_some() => self.store.retry_worktree(run.id).await,
            Some(_) | None => Ok(()),
        }
    }
}

/// Says that the worktree of a run that has ended has not been looked at since.
pub(crate) fn is_worktree_end_due(run: &RunRow) -> bool {
    run.worktree.as_ref().is_some_and(|worktree| {
        worktree.made_at.is_some() && worktree.removed_at.is_none() && worktree.seen_seq != Some(run.seq)
    })
}

/// Says what a person can do about a worktree in which no step can work any more; `None` where it is whole.
pub(crate) fn lost_worktree_help(worktree: &WorktreeRow, workspace: &str) -> Option<String> {
    let (root, branch) = (shell_word(&worktree.root), &worktree.branch);
    let found = worktree_intact(Path::new(&worktree.root));
    let help = match found {
        Intact::Yes => return other_branch(worktree),
        Intact::NoFolder | Intact::Detached => format!(
            "what was committed on its branch can be had again: git -C {} worktree add --force {root} {branch}",
            shell_word(workspace)
        ),
        Intact::NoBranch => format!("bring it back: git -C {root} update-ref refs/heads/{branch} COMMIT"),
    };
    Some(format!("{}; {help}, then answer retry; or cancel the run", lost_words(worktree)?))
}

/// Says in which way a worktree is not whole.
fn lost_words(worktree: &WorktreeRow) -> Option<String> {
    let what = match worktree_intact(Path::new(&worktree.root)) {
        Intact::Yes => return None,
        Intact::NoFolder => "is not there any more".to_owned(),
        Intact::Detached => "no longer belongs to its repository".to_owned(),
        Intact::NoBranch => format!("has lost its branch {}", worktree.branch),
    };
    Some(format!("the worktree {} {what}", shell_word(&worktree.root)))
}

/// Returns a message if a worktree has something else checked out than its branch: the judged files would not be the files
/// that a person merges.
fn other_branch(worktree: &WorktreeRow) -> Option<String> {
    let root = Path::new(&worktree.root);
    let found = match git_branch(root) {
        Some(branch) if branch == worktree.branch => return None,
        Some(branch) => format!("the branch {branch}"),
        None => format!("the commit {}", git_head(root)?),
    };
    let (root, branch) = (shell_word(&worktree.root), &worktree.branch);
    Some(format!(
        "the worktree {root} has {found} checked out and not its branch {branch}, so what is judged would not be what is \
         merged; let the branch begin where it is now: git -C {root} checkout -B {branch}, then answer retry; or cancel \
         the run"
    ))
}

/// Returns the files that the plan's steps read and the files that judge them.
fn needed_files(checked: &Checked) -> Vec<String> {
    let mut needed: Vec<String> = checked.baseline.files.keys().cloned().collect();
    let steps = checked.verification.workflow.steps();
    for subscription in steps.iter().flat_map(|step| step.attributes.subscriptions.entries()) {
        if let Subscription::File { path } = &subscription.value {
            needed.push(path.strip_prefix("./").unwrap_or(path).to_owned());
        }
    }
    needed
}

/// Puts the files that globs match in their place.
fn expanded(paths: Vec<String>, workspace: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for path in paths {
        match is_glob(&path) {
            true => {
                files.extend(
                    expand_glob(workspace, &path, GLOB_FILES_MAX)
                        .map(|found| found.files)
                        .unwrap_or_default(),
                );
            }
            false => {
                files.insert(path);
            }
        }
    }
    files
}

/// Says what git or the repository refused, and what can be done about it.
fn refused(error: WorktreeError) -> ServiceError {
    refused_then(error, "git status".to_owned())
}

/// Says what git or the repository refused; `next` is what to type where the refusal itself knows nothing.
fn refused_then(error: WorktreeError, next: String) -> ServiceError {
    match error.help() {
        Some(help) => ServiceError::Conflict { what: error.to_string(), next: Next::by_hand(help) },
        None => {
            ServiceError::Conflict { what: format!("make the worktree: {error}"), next: Next::by_hand(next) }
        }
    }
}

impl Services {
    /// Refuses to take a run up whose worktree was removed.
    pub(crate) fn refuse_without_worktree(&self, run: &RunRow) -> Result<(), ServiceError> {
        match &run.worktree {
            Some(worktree) if worktree.removed_at.is_some() => Err(ServiceError::Conflict {
                what: format!("resume {}: its worktree was removed", run.name),
                next: Next::start_again(&run.plan_path),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Waits until no other process is at worktrees, and keeps others out until the answer is dropped.
pub(super) async fn lock_worktrees(state_dir: &Path) -> Result<Arc<OwnedFd>, ServiceError> {
    let hears = |holder: &str| tracing::info!("waits for others at worktrees: {holder}");
    lock_exclusively(state_dir, "worktrees", hears).await
}
