//! The protected files of a plan over its approvals: taken, compared with what held before, carried on.
//!
//! A worker may have changed the workspace by the time a person approves. So no approval takes the files as they lie there:
//! a file protected before keeps its approved state, unless the person names it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_engine::{Digest, Failure, FileChange, Graph, Node};
use planctl_harness::{Baseline, EntryKind, FileState, Spawner, blocking_in_place};
use planctl_store::{Approval, AskRow, PlanId, RunRow, Store};

use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::runs::plan_file::plan_file;
use crate::runs::settings::RunSettings;
use crate::verify::protection::{baseline_of_plan, is_mover, may_move, with_moved};
use crate::workspaces::by_products;
use planctl_api::wire::{DriftView, TamperView};

/// The most files that a refusal names.
const NAMED_MAX: usize = 10;

/// Decides the fate of protected files that differ from what was approved last and that the person did not name.
#[derive(Clone, Debug)]
pub(crate) enum Unnamed {
    /// They keep the state that was approved, so that the next gate tells.
    Keep,
    /// The approval is refused; this decision accepts them where it names them.
    Refuse(Next),
}

/// A protected file that differs from what was approved last.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Drift {
    path: String,
    change: FileChange,
    before: Option<FileState>,
    now: Option<FileState>,
}

impl Services {
    /// Takes what the plan in a file protects, as it lies in a place now.
    pub(crate) async fn baseline_now(
        &self,
        graph: &Graph,
        place: &Path,
        plan_file: PathBuf,
    ) -> Result<Baseline, ServiceError> {
        baseline_in(self.spawner()?, graph, place, plan_file, self.state_dir()).await
    }

    /// Takes what the plan of a run protects, as it lies now where its contracts look.
    pub(crate) async fn baseline_of_run_now(
        &self,
        run: &RunRow,
        graph: &Graph,
    ) -> Result<Baseline, ServiceError> {
        self.baseline_now(graph, Path::new(run.present_folder()), plan_file(run)).await
    }

    /// Lists the protected files that are not as the newest commit has them, for people who are about to approve them; none
    /// where there is no commit, or git can't be asked.
    pub(crate) async fn differing_from_head(&self, place: &Path, protected: &Baseline) -> Vec<String> {
        let files = protected.files.iter().filter(|(_, state)| state.kind == EntryKind::File);
        let files = files.map(|(path, _)| path.as_str());
        let Ok(spawner) = self.spawner() else { return Vec::new() };
        match planctl_harness::differing_from_head(spawner, place, files).await {
            Ok(differing) => differing,
            Err(error) => {
                tracing::warn!(%error, "protected files were not compared with HEAD");
                Vec::new()
            }
        }
    }

    /// Returns what was protected before: as the run's approval has it, else the plan's last one, with what steps of its
    /// run were meant to change and passed with.
    async fn baseline_before(
        &self,
        plan: PlanId,
        run: Option<&RunRow>,
    ) -> Result<Option<Baseline>, ServiceError> {
        let approval = match run.and_then(|run| run.approval) {
            Some(approval) => Some(self.store.approval(approval).await?),
            // One plan in two folders has files of its own in each (DOT A6).
            None => {
                let folder = run.map(RunSettings::of).transpose()?.map_or(String::new(), |own| own.folder);
                self.store.last_approval_in(plan, &folder).await?
            }
        };
        let Some(approval) = approval else { return Ok(None) };
        let baseline = baseline_of(&approval)?;
        let newest = match run {
            Some(run) => Some(run.clone()),
            None => self.store.newest_run_of(plan).await?,
        };
        // A run that worked elsewhere changed nothing here.
        let worked_here = |row: &RunRow| {
            row.approval == Some(approval.id)
                && (row.worktree.is_none() || run.is_some_and(|run| run.id == row.id))
        };
        let Some(newest) = newest.filter(worked_here) else { return Ok(Some(baseline)) };
        let moved = self.moved_in(&newest, &baseline).await?;
        let place = PathBuf::from(newest.present_folder());
        Ok(Some(blocking(move || with_moved(baseline, &moved, &place)).await??))
    }

    /// Returns the protected files that steps of a run were meant to change, as their passing gates found them.
    async fn moved_in(
        &self,
        run: &RunRow,
        approved: &Baseline,
    ) -> Result<BTreeMap<String, Option<Digest>>, ServiceError> {
        let graph = self.store.graph_of(run).await?;
        let movers: Vec<_> = graph
            .nodes()
            .iter()
            .filter(|node| node.gated().is_some_and(|gated| is_mover(approved, &gated)))
            .map(|node| node.id.clone())
            .collect();
        let mut moved = BTreeMap::new();
        if movers.is_empty() {
            return Ok(moved);
        }
        for (node, files) in self.store.protected_files_found(run.id, &movers).await? {
            let Some(gated) = graph.gated(&node) else { continue };
            moved.extend(files.into_iter().filter(|(path, _)| may_move(approved, &gated, path)));
        }
        Ok(moved)
    }

    /// Lists the protected files that differ from what was approved last.
    pub(crate) async fn drift(
        &self,
        plan: PlanId,
        run: Option<&RunRow>,
        graph: &Graph,
        now: &Baseline,
    ) -> Result<Vec<DriftView>, ServiceError> {
        let before = self.baseline_before(plan, run).await?.unwrap_or_default();
        Ok(drifts(&before, now, graph).iter().map(drift_view).collect())
    }

    /// Returns the baseline that an approval binds: the approved one stays, but for the files that `accepted` names, each as
    /// `FILE` or `FILE@DIGEST`.
    ///
    /// # Errors
    ///
    /// A conflict that lists what differs, where the rule is to refuse, and where a digest is not the one that is there.
    pub(crate) async fn baseline_to_bind(
        &self,
        (plan, run): (PlanId, Option<&RunRow>),
        graph: &Graph,
        now: &Baseline,
        accepted: &[String],
        unnamed: &Unnamed,
    ) -> Result<Baseline, ServiceError> {
        let Some(before) = self.baseline_before(plan, run).await? else { return Ok(now.clone()) };
        let (mut bound, mut refused) = (now.clone(), Vec::new());
        for drift in drifts(&before, now, graph) {
            if is_accepted(&drift, accepted)? {
                continue;
            }
            if let Unnamed::Refuse(_) = unnamed {
                refused.push(drift);
            } else if let Some(before) = drift.before {
                bound.files.insert(drift.path, before);
            } else {
                bound.files.remove(&drift.path);
            }
        }
        match unnamed {
            Unnamed::Refuse(with) if !refused.is_empty() => Err(drift_conflict(&refused, with)),
            Unnamed::Refuse(_) | Unnamed::Keep => Ok(bound),
        }
    }

    /// Refuses an answer to an ask whose protected files are not those that it shows.
    pub(crate) fn refuse_unless_as_shown(
        &self,
        run: &RunRow,
        shown: Option<&Baseline>,
        now: &Baseline,
    ) -> Result<(), ServiceError> {
        let Some(shown) = shown else { return Ok(()) };
        let paths = shown.files.keys().chain(now.files.keys());
        let mut moved: Vec<&String> = paths
            .filter(|path| shown.files.get(*path) != now.files.get(*path) && !now.marked.contains(*path))
            .collect();
        moved.sort_unstable();
        moved.dedup();
        if moved.is_empty() {
            return Ok(());
        }
        let named: Vec<&str> = moved.iter().take(NAMED_MAX).map(|path| path.as_str()).collect();
        Err(ServiceError::Conflict {
            what: format!(
                "approve {}: protected files changed since its ask was opened: {}",
                run.name,
                named.join(", ")
            ),
            next: Next::start(&run.plan_path),
        })
    }

    /// Returns what holds for the gates of a run: the baseline of its approval, and the scripts of its agents.
    async fn approved_files(&self, run: &RunRow) -> Result<Option<Baseline>, ServiceError> {
        let Some(mut baseline) = self.baseline_before(run.plan, Some(run)).await? else { return Ok(None) };
        RunSettings::of(run)?.protect_scripts(&mut baseline);
        Ok(Some(baseline))
    }

    /// Shows how protected files differ from their approved copies.
    pub(crate) async fn compare_tampered(
        &self,
        run: &RunRow,
        files: &mut [TamperView],
    ) -> Result<(), ServiceError> {
        if files.is_empty() {
            return Ok(());
        }
        let Some(approved) = self.approved_files(run).await? else { return Ok(()) };
        let place = PathBuf::from(run.present_folder());
        for file in files.iter_mut().take(NAMED_MAX) {
            let before = match approved.files.get(&file.path) {
                Some(state) => copy_of(&self.store, state).await?,
                None => Some(Vec::new()),
            };
            let now =
                blocking_in_place(|| planctl_harness::read_entry(&place, &file.path)).unwrap_or_default();
            let texts =
                before.and_then(|before| String::from_utf8(before).ok()).zip(String::from_utf8(now).ok());
            file.diff = texts.map(|(before, now)| crate::verify::diff::unified(&before, &now));
        }
        Ok(())
    }

    /// Puts the approved copies back of the files that an ask names, and removes those that were not there.
    pub(crate) async fn restore_approved(&self, row: &AskRow) -> Result<(), ServiceError> {
        let run = self.store.run(row.run).await?;
        let approved = self.approved_files(&run).await?.unwrap_or_default();
        let place = PathBuf::from(run.present_folder());
        for file in row.ask.failure.as_deref().map(Failure::tampered).unwrap_or_default() {
            let refused = |why: String| ServiceError::Conflict {
                what: format!("restore {}: {why}", file.path),
                next: Next::RestoreAndRetry { ask: row.number.unsigned_abs() },
            };
            let copy = match approved.files.get(&file.path) {
                None => None,
                Some(state) => match copy_of(&self.store, state).await? {
                    Some(bytes) => Some((bytes, state.executable)),
                    None => {
                        let why = "no copy of it is kept (it has more than 1 MiB, or is not a regular file)";
                        return Err(refused(why.to_owned()));
                    }
                },
            };
            let (place, path) = (place.clone(), file.path.clone());
            let put = move || {
                let copy = copy.as_ref().map(|(bytes, is_executable)| (bytes.as_slice(), *is_executable));
                planctl_harness::put_entry(&place, &path, copy)
            };
            blocking(put).await?.map_err(|error| refused(error.to_string()))?;
        }
        Ok(())
    }

    /// Keeps copies of protected files, so that a person can compare with them and bring them back.
    pub(crate) async fn keep_copies(&self, place: &Path, baseline: &Baseline) -> Result<(), ServiceError> {
        let (place, baseline) = (place.to_owned(), baseline.clone());
        for copy in blocking(move || baseline.copies(&place)).await? {
            self.store.put_output(&copy.digest, &copy.bytes).await?;
        }
        Ok(())
    }
}

/// Returns the protected files that were approved.
pub(crate) fn baseline_of(approval: &Approval) -> Result<Baseline, ServiceError> {
    serde_json::from_str(&approval.protected)
        .map_err(|error| ServiceError::broken(format!("an approval does not read: {error}")))
}

/// Takes what the plan in a file protects as it lies in a place now, without what contracts made there.
pub(crate) async fn baseline_in(
    spawner: &Spawner,
    graph: &Graph,
    place: &Path,
    plan_file: PathBuf,
    state_dir: &Path,
) -> Result<Baseline, ServiceError> {
    let (own, within, file) = (graph.clone(), place.to_owned(), plan_file.clone());
    let mut baseline = blocking(move || baseline_of_plan(&own, &within, &file)).await??;
    by_products::leave_out(spawner, state_dir, place, (&plan_file, Some(graph)), &mut baseline).await;
    Ok(baseline)
}

/// Returns the approved copy of a protected file, where one is kept.
pub(crate) async fn copy_of(store: &Store, state: &FileState) -> Result<Option<Vec<u8>>, ServiceError> {
    if state.kind != EntryKind::File || state.link.is_some() {
        return Ok(None);
    }
    // An empty text is not stored.
    if state.digest == planctl_harness::digest_of(b"") {
        return Ok(Some(Vec::new()));
    }
    Ok(store.output(&state.digest).await?)
}

fn drifts(before: &Baseline, now: &Baseline, graph: &Graph) -> Vec<Drift> {
    let is_named = |path: &str| {
        let mut steps = graph.nodes().iter().filter_map(Node::gated);
        now.covers(path) || steps.any(|gated| gated.contract_files.contains(path))
    };
    // An approval binds their text itself.
    let is_plan = |path: &str| now.marked.contains(path);
    let known = before.files.iter().filter(|(path, _)| !is_plan(path)).filter_map(|(path, old)| {
        let new = now.files.get(path);
        let change = match new {
            Some(new) => old.change_to(new)?,
            None if is_named(path) && old.kind != EntryKind::Absent => FileChange::Deleted,
            None => return None,
        };
        Some(Drift { path: path.clone(), change, before: Some(old.clone()), now: new.cloned() })
    });
    let is_new = |path: &&String| !is_plan(path) && !before.files.contains_key(*path) && before.covers(path);
    let created = now.files.iter().filter(|(path, _)| is_new(path)).map(|(path, new)| Drift {
        path: path.clone(),
        change: FileChange::Created,
        before: None,
        now: Some(new.clone()),
    });
    known.chain(created).collect()
}

fn is_accepted(drift: &Drift, accepted: &[String]) -> Result<bool, ServiceError> {
    for word in accepted {
        let (path, digest) = match word.rsplit_once('@') {
            Some((path, digest)) if path == drift.path => (path, Some(digest)),
            Some(_) | None => (word.strip_prefix("./").unwrap_or(word), None),
        };
        if path != drift.path {
            continue;
        }
        let now = short_digest_of(drift.now.as_ref());
        let given = digest.map(|digest| digest.trim_start_matches("sha256:"));
        if given.is_some_and(|given| given.is_empty() || !digest_of(drift.now.as_ref()).starts_with(given)) {
            return Err(ServiceError::Conflict {
                what: format!("approve: {path} is {now} by now, not {}", digest.unwrap_or_default()),
                next: Next::by_hand("look at it again, and name the digest that it has"),
            });
        }
        return Ok(true);
    }
    Ok(false)
}

fn drift_conflict(drifts: &[Drift], with: &Next) -> ServiceError {
    let named: Vec<String> = drifts
        .iter()
        .take(NAMED_MAX)
        .map(|drift| {
            let (before, now) = (short_digest_of(drift.before.as_ref()), short_digest_of(drift.now.as_ref()));
            format!("{} {} ({before} → {now})", drift.path, drift.change.as_str())
        })
        .collect();
    let more = drifts.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let files = drifts
        .iter()
        .map(|drift| format!("{}@{}", drift.path, short_digest_of(drift.now.as_ref())))
        .collect();
    ServiceError::Conflict {
        what: format!(
            "approve: protected files differ from what was approved last: {}{more}",
            named.join(", ")
        ),
        next: Next::AcceptFiles { files, with: Box::new(with.clone()) },
    }
}

fn digest_of(state: Option<&FileState>) -> &str {
    match state {
        Some(state) if state.kind != EntryKind::Absent => state.digest.as_str().trim_start_matches("sha256:"),
        Some(_) | None => "absent",
    }
}

fn short_digest_of(state: Option<&FileState>) -> &str {
    let whole = digest_of(state);
    whole.get(..12).unwrap_or(whole)
}

fn drift_view(drift: &Drift) -> DriftView {
    let digest = |state: &Option<FileState>| state.as_ref().map(|state| state.digest.as_str().to_owned());
    DriftView {
        path: drift.path.clone(),
        change: drift.change.as_str().to_owned(),
        before: digest(&drift.before),
        now: digest(&drift.now),
    }
}
