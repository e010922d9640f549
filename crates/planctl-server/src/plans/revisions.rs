//! Former texts of a plan: kept revisions by name, and what changed since one of them.

use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_engine::{Digest, RunId, Timestamp};
use planctl_harness::Baseline;
use planctl_lang::{Source, canonical, changes, show};
use planctl_store::{Page, Plan, PlanId, Revision, RevisionRow, StoreError, TextDecision};

use crate::node::runtime::blocking;
use crate::node::services::{ServiceError, Services};
use crate::runs::plan_file::bytes_of;
use crate::verify::check::{self, Checked};
use crate::verify::diff;
use crate::workspaces::baselines::baseline_of;
use planctl_api::wire::calls::RunPlanView;
use planctl_api::wire::{
    KeptDecision, KeptRevision, Paged, PlanDiffView, PlanList, PlanSummary, RevisionList, RevisionPage,
    RevisionView, moment,
};

/// The most revisions that are named where none fits.
const REVISIONS_NAMED_MAX: usize = 5;

/// Fewer digits of a digest than this name no revision.
const DIGEST_DIGITS_MIN: usize = 4;

/// A plan's file as it is.
pub struct KnownFile {
    /// The workspace in which it lies.
    pub workspace: PathBuf,
    /// Its path there.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// One side of a comparison.
struct Side {
    view: RevisionView,
    text: String,
}

impl Services {
    /// Lists plans of this workspace, or of all; those that were met last first.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn plans(&self, is_everywhere: bool, page: &Page<i64>) -> Result<PlanList, ServiceError> {
        let rows = self.store.plans(self.workspace.filter(|_| !is_everywhere), page).await?;
        let next = page.next(&rows, |plan| plan.id.number()).map(PlanList::cursor);
        self.store.cache_graphs(rows.iter().map(|plan| &plan.graph)).await?;
        let mut plans = Vec::with_capacity(rows.len());
        for plan in &rows {
            plans.push(self.plan_summary(plan).await?);
        }
        Ok(PlanList { plans, next })
    }

    /// Shows one plan: by its number, or by its path in this workspace.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`], a conflict where a path is given and no workspace, and those of the store.
    pub async fn plan_named(&self, given: &str) -> Result<PlanSummary, ServiceError> {
        self.plan_summary(&self.plan_row(given).await?).await
    }

    async fn plan_summary(&self, plan: &Plan) -> Result<PlanSummary, ServiceError> {
        let title = match self.store.graph(&plan.graph).await {
            Ok(graph) => graph.title().to_owned(),
            // An error in one plan keeps nobody from seeing the others.
            Err(StoreError::Corrupt { .. }) => String::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(PlanSummary {
            id: plan.id.number().unsigned_abs(),
            plan: plan.path.clone(),
            title,
            workspace: plan.workspace_path.clone(),
            host: plan.host.clone(),
            status: plan.status.as_str().to_owned(),
            digest: plan.digest.as_str().to_owned(),
            created_at: moment(plan.created_at),
            updated_at: moment(plan.updated_at),
        })
    }

    /// Lists the kept revisions of a plan, newest first.
    ///
    /// # Errors
    ///
    /// Those of [`Services::plan_named`].
    pub async fn revisions(&self, plan: &str, page: &Page<Digest>) -> Result<RevisionList, ServiceError> {
        let rows = self.store.revisions(self.plan_row(plan).await?.id, page).await?;
        let next = page.next(&rows, |row| row.digest.clone()).map(RevisionList::cursor);
        let decided = |decision: &TextDecision| KeptDecision {
            by: decision.by.clone(),
            at: moment(decision.at),
            note: decision.note.clone(),
        };
        let revisions = rows.iter().map(|row| KeptRevision {
            digest: row.digest.as_str().to_owned(),
            at: moment(row.created_at),
            approved: row.approved.as_ref().map(decided),
            rejected: row.rejected.as_ref().map(decided),
        });
        Ok(RevisionList { revisions: revisions.collect(), next })
    }

    /// Shows a kept revision of a plan, by its digest or the beginning of it.
    ///
    /// # Errors
    ///
    /// Those of [`Services::plan_named`], and a conflict where several revisions begin so.
    pub async fn revision(&self, plan: &str, digest: &str) -> Result<RevisionPage, ServiceError> {
        let plan = self.plan_row(plan).await?;
        let digest = self.digest_of(&plan, digest).await?;
        let kept = self.kept_text(plan.id, &plan.path, &digest).await?;
        let (digest, at) = (digest.as_str().to_owned(), moment(kept.created_at));
        Ok(RevisionPage { plan: plan.path, digest, at, source: kept.source })
    }

    /// Returns the workspace of a plan on this host.
    ///
    /// # Errors
    ///
    /// Those of [`Services::plan_named`], and a conflict where it is on another host.
    pub async fn folder_of_plan(&self, given: &str) -> Result<PathBuf, ServiceError> {
        self.folder_here(&self.plan_row(given).await?)
    }

    fn folder_here(&self, plan: &Plan) -> Result<PathBuf, ServiceError> {
        if plan.host != self.server_node.host() {
            return Err(unreadable(plan, "its workspace is on another host"));
        }
        Ok(PathBuf::from(&plan.workspace_path))
    }

    /// Reads the file of a plan on this host.
    ///
    /// # Errors
    ///
    /// Those of [`Services::plan_named`], and a conflict where the file is on another host or can't be read.
    pub async fn file_of_plan(&self, given: &str) -> Result<KnownFile, ServiceError> {
        let plan = self.plan_row(given).await?;
        let refused = |why: &str| unreadable(&plan, why);
        let workspace = self.folder_here(&plan)?;
        let file = workspace.join(&plan.path);
        let bytes = blocking(move || bytes_of(&file)).await?.map_err(|why| refused(&why))?;
        let bytes = bytes.ok_or_else(|| refused("there is no such file"))?;
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text"))?;
        Ok(KnownFile { workspace, path: plan.path, text })
    }

    async fn plan_row(&self, given: &str) -> Result<Plan, ServiceError> {
        if let Ok(number) = given.parse() {
            return Ok(self.store.plan(PlanId::of(number)).await?);
        }
        let plan = self.store.plan_at(self.own_workspace()?, given).await?;
        plan.ok_or_else(|| ServiceError::NotFound {
            what: format!("{given}: it was never approved or run here"),
        })
    }

    /// Compares two texts of a plan by what they mean (P-76): `since` is `approved`, `run`, a run, or the beginning of a
    /// revision's digest; `until` a run or a digest, else the file as it was checked.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] where nothing was approved, nothing ran, or no revision has that digest; a conflict
    /// where several have; and those of the store.
    pub async fn plan_diff(
        &self,
        checked: &Checked,
        since: &str,
        until: Option<&str>,
    ) -> Result<PlanDiffView, ServiceError> {
        let name = checked.file.display();
        let Some(plan) = self.store.plan_at(self.own_workspace()?, &checked.path).await? else {
            return Err(ServiceError::NotFound {
                what: format!("{name}: it was never approved or run here"),
            });
        };
        let old = self.diff_side(&plan, since, checked).await?;
        let new = match until {
            Some(until) => self.diff_side(&plan, until, checked).await?,
            None => Side {
                view: RevisionView {
                    digest: checked.verification.digest.as_str().to_owned(),
                    at: None,
                    what: "the file".to_owned(),
                },
                text: canonical(&checked.source),
            },
        };
        let shown = |text: &str| show(&Source::new(&checked.path, text));
        Ok(PlanDiffView {
            plan: checked.path.clone(),
            changed: old.view.digest != new.view.digest,
            changes: changes(&shown(&old.text), &shown(&new.text)),
            diff: diff::unified(&old.text, &new.text),
            since: old.view,
            until: new.view,
        })
    }

    /// Returns the plan as a run executes it: the stored revision, not the file.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn plan_of_run(&self, run: RunId) -> Result<Checked, ServiceError> {
        let run = self.store.run(run).await?;
        let kept = self.kept_text(run.plan, &run.plan_path, &run.revision).await?;
        let baseline = match run.approval {
            Some(approval) => baseline_of(&self.store.approval(approval).await?)?,
            None => Baseline::default(),
        };
        Ok(check::restore_checked(RunPlanView {
            file: Path::new(&run.workspace_path).join(&run.plan_path),
            source: kept.source,
            graph: (*self.store.graph_of(&run).await?).clone(),
            path: run.plan_path,
            digest: run.revision,
            baseline,
        }))
    }

    /// Returns a kept revision whose source text is shown to people; one that was changed in the database reads as corrupt.
    pub(crate) async fn kept_text(
        &self,
        plan: PlanId,
        path: &str,
        digest: &Digest,
    ) -> Result<Revision, ServiceError> {
        let kept = self.store.revision(plan, digest).await?;
        if planctl_lang::digest(&Source::new(path, kept.source.as_str())) == *digest {
            return Ok(kept);
        }
        let what = format!("the source text of revision {digest} is not what was stored");
        Err(StoreError::Corrupt { run: None, what }.into())
    }

    async fn diff_side(&self, plan: &Plan, which: &str, checked: &Checked) -> Result<Side, ServiceError> {
        let name = checked.file.display();
        let not_found = |what: String| ServiceError::NotFound { what };
        let (digest, what) = match which {
            "approved" => {
                let last = self.store.last_approval(plan.id).await?;
                let last = last.ok_or_else(|| not_found(format!("{name}: it was never approved here")))?;
                let what = format!("the text approved by {}, {}", last.by, minute(last.at));
                (last.digest, what)
            }
            "run" => {
                let run = self.store.newest_run_of(plan.id).await?;
                let run = run.ok_or_else(|| not_found(format!("{name}: it never ran here")))?;
                (run.revision, format!("run {}", run.name))
            }
            digits if is_digest(digits) => {
                let digest = self.digest_of(plan, digits).await?;
                let what = "a revision".to_owned();
                (digest, what)
            }
            run => {
                let run = match self.find_row(run).await {
                    Err(ServiceError::Store(StoreError::NotFound { .. })) => {
                        let kept = self.store.revisions(plan.id, &Page::ALL).await?;
                        return Err(no_revision(&format!("a run or a revision `{run}`"), &kept));
                    }
                    found => found?,
                };
                if run.plan != plan.id {
                    return Err(ServiceError::Conflict {
                        what: format!("run {} is one of {}, not of {name}", run.name, run.plan_path),
                        next: Next::DiffPlan { plan: run.plan_path },
                    });
                }
                (run.revision, format!("run {}", run.name))
            }
        };
        let kept = self.kept_text(plan.id, &plan.path, &digest).await?;
        let view =
            RevisionView { digest: digest.as_str().to_owned(), at: Some(moment(kept.created_at)), what };
        Ok(Side { view, text: canonical(&Source::new(&checked.path, kept.source)) })
    }

    async fn digest_of(&self, plan: &Plan, given: &str) -> Result<Digest, ServiceError> {
        let digits = given.strip_prefix("sha256:").unwrap_or(given).to_lowercase();
        let kept = self.store.revisions(plan.id, &Page::ALL).await?;
        let fitting: Vec<&Digest> =
            kept.iter().map(|row| &row.digest).filter(|digest| hex(digest).starts_with(&*digits)).collect();
        match fitting.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(no_revision(&format!("a revision {digits}"), &kept)),
            several => Err(ServiceError::Conflict {
                what: format!("{} revisions begin with {digits}", several.len()),
                next: Next::by_hand("give more of its digits"),
            }),
        }
    }
}

/// Names the revisions that there are.
fn no_revision(what: &str, kept: &[RevisionRow]) -> ServiceError {
    let short = |row: &RevisionRow| {
        format!("{} ({})", hex(&row.digest).get(..12).unwrap_or("?"), minute(row.created_at))
    };
    let kept: Vec<String> = kept.iter().take(REVISIONS_NAMED_MAX).map(short).collect();
    ServiceError::NotFound { what: format!("{what}; kept are {}", kept.join(", ")) }
}

/// Writes a time for people, to the minute: `2026-11-28 19:48 UTC`.
fn minute(at: Timestamp) -> String {
    let at = moment(at);
    let (date, time) = at.split_once('T').unwrap_or((&at, ""));
    format!("{date} {} UTC", time.get(..5).unwrap_or(time))
}

fn hex(digest: &Digest) -> &str {
    digest.as_str().trim_start_matches("sha256:")
}

fn unreadable(plan: &Plan, why: &str) -> ServiceError {
    ServiceError::Conflict { what: format!("read {}: {why}", plan.path), next: Next::by_hand("ls -l") }
}

// Run names end with a number after a dash, so a word of hexadecimal digits alone is a revision.
fn is_digest(given: &str) -> bool {
    let digits = given.strip_prefix("sha256:").unwrap_or(given);
    digits.len() >= DIGEST_DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
