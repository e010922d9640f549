//! Plans within plans: kept when the run around them is made, begun when their turn comes, driven beside it, left when it
//! goes on without them.

use std::collections::BTreeMap;
use std::path::Path;

use planctl_engine::{
    Actor, Answer, AskKind, ChildApproval, ChildEnd, Decision, Digest, Event, Found, Graph, HumanEvent,
    Inconclusive, RunId, RunStatus, SubPlan,
};
use planctl_lang::Levels;
use planctl_store::{Claimed, NewAround, NewRun, Proof, RunRow, Store, StoreError};

use crate::check::{self, Checked, Checking};
use crate::config::Agent;
use crate::hands::blocking;
use crate::plans::{settings_json, stem_of};
use crate::protection;
use crate::services::{ServiceError, Services};
use crate::settings::RunSettings;
use crate::station::Station;

/// How deep plans may lie within one another.
const DEPTH_MAX: i32 = 5;
/// How many runs that nobody waits for are ended at once.
const AT_ONCE: i64 = 100;

impl Services {
    /// Verifies and keeps the plans that a plan carries out, and those within them; returns the text of each.
    ///
    /// # Errors
    ///
    /// A conflict where a plan contains itself or lies too deep, or can't be verified; and those of the store.
    pub(crate) async fn keep_sub_plans(
        &self,
        checked: &Checked,
        worker: Option<&Agent>,
    ) -> Result<BTreeMap<String, Digest>, ServiceError> {
        let mut kept = BTreeMap::new();
        let Some(graph) = &checked.verification.graph else { return Ok(kept) };
        let paths =
            |graph: &Graph| -> Vec<String> { graph.sub_plans().map(|(_, plan)| plan.path.clone()).collect() };
        let mut open: Vec<(Vec<String>, String)> =
            paths(graph).into_iter().map(|path| (vec![checked.path.clone()], path)).collect();
        while let Some((around, named)) = open.pop() {
            let child = self.checked_sub_plan(&around, &named, worker).await?;
            if around.contains(&child.path) {
                let way = around.iter().chain([&child.path]).map(String::as_str).collect::<Vec<_>>();
                return Err(self.unfit(checked, &format!("a plan contains itself: {}", way.join(" → "))));
            }
            if around.len() > usize::try_from(DEPTH_MAX).unwrap_or(usize::MAX) {
                let what = format!("plans lie within plans at most {DEPTH_MAX} deep: {}", around.join(" → "));
                return Err(self.unfit(checked, &what));
            }
            let digest = child.verification.digest.clone();
            let is_known = kept.insert(named, digest).is_some();
            if is_known {
                continue;
            }
            self.keep(&child).await?;
            let within = child.verification.graph.as_ref().map(paths).unwrap_or_default();
            let around: Vec<String> = around.into_iter().chain([child.path]).collect();
            open.extend(within.into_iter().map(|path| (around.clone(), path)));
        }
        Ok(kept)
    }

    async fn checked_sub_plan(
        &self,
        around: &[String],
        named: &str,
        worker: Option<&Agent>,
    ) -> Result<Checked, ServiceError> {
        let workspace = self.door.workspace.as_deref().ok_or_else(|| ServiceError::broken("no workspace"))?;
        let levels = self.door.config.verify.clone().then(&Levels::default());
        let checking =
            Checking { workspace, config: &self.door.config, worker, levels: &levels, probe: None };
        let child = check::check(&workspace.join(named), checking, self.spawner()?).await?;
        if child.verification.is_verified() {
            return Ok(child);
        }
        Err(ServiceError::Conflict {
            what: format!(
                "use {named}, which {} carries out: it is not verified",
                around.last().map_or("the plan", String::as_str)
            ),
            help: format!("planctl plan verify {named}"),
        })
    }

    fn unfit(&self, checked: &Checked, what: &str) -> ServiceError {
        ServiceError::Conflict {
            what: format!("use {}: {what}", checked.path),
            help: format!("planctl graph check {}", checked.path),
        }
    }

    /// Approves the plans that are approved with the one around them, as they were kept.
    pub(crate) async fn approve_inherited(
        &self,
        graph: &Graph,
        kept: &BTreeMap<String, Digest>,
        note: Option<&str>,
    ) -> Result<(), ServiceError> {
        let inherited = |graph: &Graph| -> Vec<String> {
            let plans = graph.sub_plans().filter(|(_, plan)| plan.approval == ChildApproval::Inherit);
            plans.map(|(_, plan)| plan.path.clone()).collect()
        };
        let mut open = inherited(graph);
        let mut seen = std::collections::BTreeSet::new();
        let workspace = self.door.workspace.clone().unwrap_or_default();
        while let Some(path) = open.pop() {
            let Some(digest) = kept.get(&path).filter(|_| seen.insert(path.clone())) else { continue };
            let plan = self.plan_within(&path).await?;
            let child = self.store.revision(plan.id, digest).await?.graph;
            let (own, place) = (child.clone(), workspace.clone());
            let baseline = blocking(move || protection::baseline_of_plan(&own, &place)).await??;
            self.record_approval(&plan, digest, &baseline, note).await?;
            open.extend(inherited(&child));
        }
        Ok(())
    }

    async fn plan_within(&self, path: &str) -> Result<planctl_store::Plan, ServiceError> {
        let workspace = self.door.workspace.clone().unwrap_or_default();
        let path = check::plan_path(&workspace.join(path), &workspace);
        let plan = self.store.plan_at(self.own_workspace()?, &path).await?;
        plan.ok_or_else(|| ServiceError::NotFound { what: format!("the plan {path}") })
    }
}

/// The hands of one run on the plans within it.
pub(crate) struct Within<'a> {
    pub(crate) store: &'a Store,
    pub(crate) settings: &'a RunSettings,
}

impl Within<'_> {
    /// Begins the run that an item waits for, or says how it ended.
    pub(crate) async fn look(&self, claimed: &Claimed, plan: &SubPlan) -> Result<Found, ServiceError> {
        let made = match self.store.sub_plan_of(&claimed.item.id).await? {
            Some(made) => Ok(made),
            None => self.make(claimed, plan).await?,
        };
        let child = match made {
            Ok(child) => child,
            Err(what) => return Ok(Found::Nothing(Inconclusive::ToolMissing { what })),
        };
        let child = self.begun(claimed, plan, child).await?;
        Ok(match child.head.status {
            RunStatus::Ended { end } => Found::Ended(Box::new(ChildEnd {
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
            | RunStatus::Paused => Found::Begun { run: child.id },
        })
    }

    async fn make(&self, claimed: &Claimed, plan: &SubPlan) -> Result<Result<RunRow, String>, ServiceError> {
        let parent = self.store.run(claimed.item.run).await?;
        let depth = parent.around.as_ref().map_or(0, |around| around.depth) + 1;
        if depth > DEPTH_MAX {
            return Ok(Err(format!("fewer plans around {}: {DEPTH_MAX} are the most", plan.path)));
        }
        let home = Path::new(&parent.workspace_path);
        let path = check::plan_path(&home.join(&plan.path), home);
        let kept = match self.settings.sub_plans.get(&plan.path) {
            Some(digest) => self.store.plan_at(parent.workspace, &path).await?.map(|plan| (plan, digest)),
            None => None,
        };
        let Some((kept, digest)) = kept else {
            return Ok(Err(format!("the plan {path}, which was not kept when {} was started", parent.name)));
        };
        let new = NewRun {
            plan: kept.id,
            revision: digest,
            stem: &stem_of(Path::new(&path)),
            approval: None,
            settings: &settings_json(self.settings),
            served: &self.settings.served(),
        };
        let around =
            NewAround { parent: parent.id, item: &claimed.item.id, place: &claimed.workspace, depth };
        Ok(Ok(self.store.create_sub_plan(&new, &around).await?))
    }

    /// Hands the plan in, and answers its ask where it is approved with the one around it.
    async fn begun(&self, claimed: &Claimed, plan: &SubPlan, child: RunRow) -> Result<RunRow, ServiceError> {
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
        let approval = self.store.approval_for(child.plan, &child.revision, &around.config_digest).await?;
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

impl Station {
    /// Wakes items whose runs within are over, and ends runs for which nobody waits any more.
    pub(crate) async fn tend_sub_plans(&self) -> Result<(), ServiceError> {
        self.store.wake_around().await?;
        for run in self.store.sub_plans_left(AT_ONCE).await? {
            let event = Event::Human(HumanEvent {
                by: Actor::from("planctl"),
                note: Some("the run around it goes on without it, or is over".to_owned()),
                decision: Decision::Cancel,
            });
            match self.store.apply(run, &event, &Proof::Person { key: None }, None).await {
                Ok(_) | Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
