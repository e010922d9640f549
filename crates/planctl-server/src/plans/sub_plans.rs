//! Sub-plans: stored when the parent run is made, begun when their node is entered, worked on beside the parent, and
//! cancelled when the parent goes on without them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use planctl_api::Next;
use planctl_engine::{
    Actor, Answer, AskKind, ChildApproval, ChildEnd, Decision, Digest, Event, Graph, HarnessResult,
    HumanEvent, Inconclusive, RunId, RunStatus, SubPlan,
};
use planctl_harness::{Spawner, Unreadable, blocking_in_place, folder_in};
use planctl_lang::Levels;
use planctl_store::{Approval, Claimed, NewAround, NewRun, Proof, RunRow, Store, StoreError, WorkspaceId};
use serde_json::Value;

use crate::node::ServerNode;
use crate::node::quarantine::SweepReport;
use crate::node::services::{ServiceError, Services};
use crate::plans::Approved;
use crate::plans::start::{settings_json, stem_of};
use crate::runs::settings::RunSettings;
use crate::verify::check::{self, Checked, Checking};
use crate::verify::protection;
use crate::workspaces::baselines::{Unnamed, baseline_in};
use planctl_api::wire::calls::Approving;
use planctl_config::{Agent, approved_folder, digest_of_approved, in_folder};

/// How many runs for which nobody waits are ended at once.
const LEFT_AT_ONCE: i64 = 100;

/// How deep plans may lie within one another.
const DEPTH_MAX: i32 = 5;
/// How many plans may lie within one, each counted once per folder.
const WITHIN_MAX: usize = 5_000;

/// A plan that another one carries out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Inner {
    /// Its file, as it is named.
    path: String,
    /// The folder of the workspace in which it works; empty where that is the workspace.
    folder: String,
}

impl Inner {
    /// Returns the plans that one which works in a folder of the workspace carries out.
    fn all(graph: &Graph, folder: &str) -> impl Iterator<Item = Inner> {
        graph
            .sub_plans()
            .map(move |(_, plan)| Inner { path: plan.path.clone(), folder: folder_of(folder, plan) })
    }

    /// Returns those of them that are approved with it.
    fn inherited(graph: &Graph, folder: &str) -> impl Iterator<Item = Inner> {
        let plans = graph.sub_plans().filter(|(_, plan)| plan.approval == ChildApproval::Inherit);
        plans.map(move |(_, plan)| Inner { path: plan.path.clone(), folder: folder_of(folder, plan) })
    }

    /// Returns where it works.
    fn place(&self, workspace: &Path) -> Result<PathBuf, Unreadable> {
        if self.folder.is_empty() { Ok(workspace.to_owned()) } else { folder_in(workspace, &self.folder) }
    }
}

/// Returns the folder of the workspace in which a plan works that one in another folder carries out.
pub(crate) fn folder_of(around: &str, plan: &SubPlan) -> String {
    match (around, &plan.folder) {
        (around, None) => around.to_owned(),
        ("", Some(folder)) => folder.clone(),
        (around, Some(folder)) => format!("{around}/{folder}"),
    }
}

/// Returns the workspace or worktree around a place, in whose folder a run works there; `None` where it has none.
pub(crate) fn around_folder<'p>(folder: &str, place: &'p str) -> Option<&'p Path> {
    let folder = Some(folder).filter(|folder| !folder.is_empty())?;
    place.strip_suffix(folder)?.strip_suffix('/').map(Path::new)
}

/// Says why a run can't work in its folder any more; `None` where it can, or has none.
pub(crate) fn folder_problem(folder: &str, place: &str) -> Option<String> {
    let around = around_folder(folder, place)?;
    let why = folder_in(around, folder).err()?;
    Some(format!("the folder {folder} of {}: {why}", around.display()))
}

impl Services {
    /// Returns the workspace of the caller.
    pub(crate) fn home(&self) -> Result<Home, ServiceError> {
        Ok(Home { workspace: self.own_workspace()?, path: self.own_folder()?.to_owned() })
    }

    /// Verifies and keeps the plans that a plan carries out, and those within them, each in the folder in which it works;
    /// returns the text of each. `folder` is where the plan itself works.
    ///
    /// # Errors
    ///
    /// A conflict where a plan contains itself or lies too deep, or can't be verified; and those of the store.
    pub(crate) async fn keep_sub_plans(
        &self,
        checked: &Checked,
        folder: &str,
        worker: Option<&Agent>,
    ) -> Result<BTreeMap<String, Digest>, ServiceError> {
        let mut kept = BTreeMap::new();
        let Some(graph) = &checked.verification.graph else { return Ok(kept) };
        let mut open: Vec<(Vec<String>, Inner)> =
            Inner::all(graph, folder).map(|inner| (vec![checked.path.clone()], inner)).collect();
        let mut seen = BTreeSet::new();
        while let Some((around, inner)) = open.pop() {
            let child = self.checked_sub_plan(&around, &inner, worker).await?;
            if around.contains(&child.path) {
                let way = around.iter().chain([&child.path]).map(String::as_str).collect::<Vec<_>>();
                return Err(
                    self.unfit_sub_plan(checked, &format!("a plan contains itself: {}", way.join(" → ")))
                );
            }
            if around.len() > usize::try_from(DEPTH_MAX).unwrap_or(usize::MAX) {
                let what = format!("plans lie within plans at most {DEPTH_MAX} deep: {}", around.join(" → "));
                return Err(self.unfit_sub_plan(checked, &what));
            }
            if !seen.insert(inner.clone()) {
                continue;
            }
            if seen.len() > WITHIN_MAX {
                let what =
                    format!("it carries out more than {WITHIN_MAX} plans, each counted once per folder");
                return Err(self.unfit_sub_plan(checked, &what));
            }
            kept.insert(inner.path, child.verification.digest.clone());
            self.store_revision(&child).await?;
            let around: Vec<String> = around.into_iter().chain([child.path]).collect();
            let within = child.verification.graph.iter().flat_map(|graph| Inner::all(graph, &inner.folder));
            open.extend(within.map(|inner| (around.clone(), inner)));
        }
        Ok(kept)
    }

    async fn checked_sub_plan(
        &self,
        around: &[String],
        inner: &Inner,
        worker: Option<&Agent>,
    ) -> Result<Checked, ServiceError> {
        let workspace = self.own_folder()?;
        let (named, by) = (&inner.path, around.last().map_or("the plan", String::as_str));
        let levels = self.caller.config.verify.clone().then(&Levels::default());
        let (config, folder) = (&self.caller.config, inner.folder.as_str());
        let (levels, state_dir) = (&levels, Some(self.state_dir()));
        let checking = Checking { workspace, folder, config, state_dir, worker, levels, probe: None };
        let child = check::check(&workspace.join(named), checking, self.spawner()?).await?;
        if child.verification.is_verified() {
            return Ok(child);
        }
        Err(match inner.folder.as_str() {
            "" => ServiceError::Conflict {
                what: format!("use {named}, which {by} carries out: it is not verified"),
                next: Next::VerifyPlan { plan: named.clone(), folder: None },
            },
            folder => ServiceError::Conflict {
                what: format!(
                    "use {named}, which {by} carries out in the folder {folder}: it is not verified there"
                ),
                next: Next::VerifyPlan { plan: named.clone(), folder: Some(folder.to_owned()) },
            },
        })
    }

    fn unfit_sub_plan(&self, checked: &Checked, what: &str) -> ServiceError {
        ServiceError::Conflict {
            what: format!("use {}: {what}", checked.path),
            next: Next::CheckGraph { plan: checked.path.clone() },
        }
    }

    /// Approves the plans that are approved with the one around them, as they were kept, each for the folder in which it
    /// works; the configuration is that with which the plan around them is approved.
    pub(crate) async fn approve_inherited(
        &self,
        home: &Home,
        graph: &Graph,
        config: &Value,
        kept: &BTreeMap<String, Digest>,
        given: &Approving,
    ) -> Result<(), ServiceError> {
        let mut open: Vec<Inner> = Inner::inherited(graph, approved_folder(config)).collect();
        let mut seen = BTreeSet::new();
        while let Some(inner) = open.pop() {
            let Some(digest) = kept.get(&inner.path).filter(|_| seen.insert(inner.clone())) else { continue };
            let plan = self.plan_within(home, &inner.path).await?;
            let child = self.store.revision(plan.id, digest).await?.graph;
            let baseline = match inner.place(&home.path) {
                Ok(place) => {
                    let now = self.baseline_now(&child, &place, home.path.join(&inner.path)).await?;
                    let accepted = &given.accept_changed;
                    let of = (plan.id, None);
                    let bound = self.baseline_to_bind(of, &child, &now, accepted, &Unnamed::Keep).await?;
                    self.keep_copies(&place, &bound).await?;
                    bound
                }
                Err(Unreadable::Missing) => protection::baseline_of_nothing(&child),
                Err(why) => {
                    let what = format!("approve {} in the folder {}: {why}", inner.path, inner.folder);
                    return Err(ServiceError::Conflict { what, next: Next::by_hand("ls -l") });
                }
            };
            let config = in_folder(config.clone(), &inner.folder);
            let approving = Approved { digest, config: &config, baseline: &baseline, worker: None };
            self.record_approval(&plan, &approving, given.note.as_deref()).await?;
            open.extend(Inner::inherited(&child, &inner.folder));
        }
        Ok(())
    }

    async fn plan_within(&self, home: &Home, path: &str) -> Result<planctl_store::Plan, ServiceError> {
        let path = check::plan_path(&home.path.join(path), &home.path);
        let plan = self.store.plan_at(home.workspace, &path).await?;
        plan.ok_or_else(|| ServiceError::NotFound { what: format!("the plan {path}") })
    }
}

/// The workspace in which the plans are kept that one plan carries out.
pub(crate) struct Home {
    workspace: WorkspaceId,
    path: PathBuf,
}

impl Home {
    pub(crate) fn of(run: &RunRow) -> Home {
        Home { workspace: run.workspace, path: PathBuf::from(&run.workspace_path) }
    }
}

/// The executor of one run on the plans within it.
pub(crate) struct Within<'a> {
    pub(crate) store: &'a Store,
    pub(crate) settings: &'a RunSettings,
    pub(crate) spawner: &'a Spawner,
    pub(crate) state_dir: &'a Path,
}

impl Within<'_> {
    /// Begins the run that an item waits for, or says how it ended.
    pub(crate) async fn start_or_collect(
        &self,
        claimed: &Claimed,
        plan: &SubPlan,
    ) -> Result<HarnessResult, ServiceError> {
        let made = match self.store.sub_plan_of(&claimed.item.id).await? {
            Some(made) => Ok(made),
            None => self.create_run(claimed, plan).await?,
        };
        let child = match made {
            Ok(child) => child,
            Err(what) => return Ok(HarnessResult::Nothing(Inconclusive::ToolMissing { what })),
        };
        let child = self.submit_child(claimed, plan, child).await?;
        Ok(match child.head.status {
            RunStatus::Ended { end } => HarnessResult::Ended(Box::new(ChildEnd {
                run: child.id,
                name: child.name,
                end,
                settled: child.head.settled,
                spent: child.head.spent,
            })),
            RunStatus::New
            | RunStatus::Awaiting
            | RunStatus::Queued { .. }
            | RunStatus::Active
            | RunStatus::Paused => HarnessResult::Begun {
                run: child.id,
                budget: child.head.budget,
                waits: child.head.is_waiting(),
            },
        })
    }

    async fn create_run(
        &self,
        claimed: &Claimed,
        plan: &SubPlan,
    ) -> Result<Result<RunRow, String>, ServiceError> {
        let parent = self.store.run(claimed.item.run).await?;
        let depth = parent.around.as_ref().map_or(0, |around| around.depth) + 1;
        if depth > DEPTH_MAX {
            return Ok(Err(format!(
                "a level for the plan {} (plans lie within plans at most {DEPTH_MAX} deep)",
                plan.path
            )));
        }
        let home = Path::new(&parent.workspace_path);
        let path = check::plan_path(&home.join(&plan.path), home);
        let place = match &plan.folder {
            None => PathBuf::from(&claimed.workspace),
            Some(folder) => match blocking_in_place(|| folder_in(Path::new(&claimed.workspace), folder)) {
                Ok(place) => place,
                Err(why) => {
                    let around = &claimed.workspace;
                    return Ok(Err(format!("the folder {folder} of {around}, in which {path} works: {why}")));
                }
            },
        };
        let kept = match self.settings.sub_plans.get(&plan.path) {
            Some(digest) => self.store.plan_at(parent.workspace, &path).await?.map(|plan| (plan, digest)),
            None => None,
        };
        let Some((kept, digest)) = kept else {
            return Ok(Err(format!("the plan {path}, which was not kept when {} was started", parent.name)));
        };
        let folder = folder_of(&self.settings.folder, plan);
        let mut settings = RunSettings { folder, ..self.settings.clone() };
        settings.shown = match plan.approval {
            ChildApproval::Inherit => None,
            // Its ask binds what it shows, as any other.
            ChildApproval::Ask => {
                let graph = self.store.revision(kept.id, digest).await?.graph;
                let file = Path::new(&parent.workspace_path).join(&path);
                Some(baseline_in(self.spawner, &graph, &place, file, self.state_dir).await?)
            }
        };
        if settings.folder != self.settings.folder {
            // The same command names other files there, and nobody approved those.
            settings.scripts = None;
        }
        let new = NewRun {
            plan: kept.id,
            revision: digest,
            stem: &stem_of(Path::new(&path)),
            approval: None,
            settings: &settings_json(&settings),
            served: &settings.served(),
            request: None,
        };
        let place = place.to_string_lossy();
        let around = NewAround { parent: parent.id, item: &claimed.item.id, place: &place, depth };
        Ok(Ok(self.store.create_sub_plan(&new, &around).await?))
    }

    /// Submits the plan, and answers its ask where it is approved with the one around it.
    async fn submit_child(
        &self,
        claimed: &Claimed,
        plan: &SubPlan,
        child: RunRow,
    ) -> Result<RunRow, ServiceError> {
        let by = Actor::from("planctl");
        if child.head.status == RunStatus::New {
            let note = Some(format!("a part of {}", claimed.run_name));
            self.decide(child.id, &by, Decision::Submit, note, &Proof::Submit).await?;
        }
        let child = self.store.run(child.id).await?;
        if child.head.status != RunStatus::Awaiting || plan.approval != ChildApproval::Inherit {
            return Ok(child);
        }
        let parent = self.store.run(claimed.item.run).await?;
        let Some(around) = parent.approval else { return Ok(child) };
        let around = self.store.approval(around).await?;
        let config = self.config_of(&child, &around)?;
        let approval = self.store.approval_for(child.plan, &child.revision, &config).await?;
        let Some(approval) = approval else { return Ok(child) };
        self.store.attach_approval(child.id, approval.id).await?;
        let asks = self.store.asks(Some(child.id), None).await?;
        if let Some(ask) = asks.into_iter().find(|ask| ask.ask.kind == AskKind::Plan) {
            let decision = Decision::Answer { item: ask.item, answer: Answer::Approve };
            let note = Some(format!("approved with {}", claimed.run_name));
            let by = Actor::from(approval.by.as_str());
            self.decide(child.id, &by, decision, note, &Proof::Person { key: None }).await?;
        }
        Ok(self.store.run(child.id).await?)
    }

    /// Returns what an approval given together with that of the run around it covers, but for the text: the same
    /// configuration, in the folder of the run within.
    fn config_of(&self, child: &RunRow, around: &Approval) -> Result<Digest, ServiceError> {
        let folder = RunSettings::of(child)?.folder;
        if folder == self.settings.folder {
            return Ok(around.config_digest.clone());
        }
        let approved = serde_json::from_str(&around.config)
            .map_err(|error| ServiceError::broken(format!("an approval does not read: {error}")))?;
        Ok(digest_of_approved(&in_folder(approved, &folder)))
    }

    async fn decide(
        &self,
        run: RunId,
        by: &Actor,
        decision: Decision,
        note: Option<String>,
        proof: &Proof,
    ) -> Result<(), ServiceError> {
        let event = Event::Human(HumanEvent { by: by.clone(), note, decision });
        match self.store.apply(run, &event, proof, None).await {
            // Somebody else did so at the same moment.
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl ServerNode {
    /// Wakes items whose runs within are over, and ends runs for which nobody waits any more.
    ///
    /// # Errors
    ///
    /// As [`sweep_once`](ServerNode::sweep_once).
    pub(crate) async fn sweep_sub_plans(&self, report: &mut SweepReport) -> Result<(), ServiceError> {
        self.store.wake_parent_runs().await?;
        loop {
            let mut has_ended = false;
            for run in self.store.orphaned_sub_plans(&self.quarantine().runs(), LEFT_AT_ONCE).await? {
                has_ended |= self.run_contained(run, self.end_left(run), report).await?;
            }
            // Runs within one that ended are left by it in turn.
            if !has_ended {
                return Ok(());
            }
        }
    }

    /// Ends a run for which nobody waits any more.
    pub(crate) async fn end_left(&self, run: RunId) -> Result<bool, ServiceError> {
        let event = Event::Human(HumanEvent {
            by: Actor::from("planctl"),
            note: Some("the run around it goes on without it, or is over".to_owned()),
            decision: Decision::Cancel,
        });
        match self.store.apply(run, &event, &Proof::Person { key: None }, None).await {
            Ok(_) => {
                self.draw_marks_if_possible(run).await;
                Ok(true)
            }
            Err(StoreError::Refused(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
