//! Approval policies: whether one approves a plan in a person's place, and why none does (P-78).
//!
//! A policy judges a plan that a person starts, at that moment. It never approves what a person has to look at: a text that
//! was approved or rejected otherwise, protected files that moved, warnings, and a worker that no trusted file names.

use planctl_config::Agent;
use planctl_engine::{Digest, Graph, RunStatus};
use planctl_lang::Severity;
use planctl_store::{Approval, Plan, PlanStatus, RunRow, TEXT_CHANGED};

use crate::node::services::{ServiceError, Services};
use crate::plans::rules::votes_wanted;
use crate::runs::settings::RunSettings;
use crate::verify::check::Checked;

/// A policy that approves a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Approving {
    /// Its name.
    pub(super) name: String,
    /// Its limits, in one line.
    pub(super) words: String,
}

impl Services {
    /// Finds the policy that approves a plan which a run is started of; else says of each why it does not. `run` is the run
    /// that waits for the approval, where there is one.
    pub(super) async fn policy_for(
        &self,
        checked: &Checked,
        worker: Option<&Agent>,
        run: Option<&RunRow>,
    ) -> Result<Result<Approving, Vec<String>>, ServiceError> {
        let policies = &self.caller.config.approval;
        let Some(graph) = checked.verification.graph.as_ref().filter(|_| !policies.is_empty()) else {
            return Ok(Err(Vec::new()));
        };
        let mut refused = Vec::new();
        let mut fitting = None;
        for (name, policy) in policies {
            let refusals = policy.refusals(&checked.path, graph);
            if refusals.is_empty() {
                fitting.get_or_insert_with(|| Approving { name: name.clone(), words: policy.describe() });
            } else {
                refused.push(format!("the policy {name} does not approve it: {}", refusals.join("; ")));
            }
        }
        let Some(fitting) = fitting else { return Ok(Err(refused)) };
        let for_people = self.reasons_for_person(checked, graph, worker, (run, false)).await?;
        if for_people.is_empty() {
            return Ok(Ok(fitting));
        }
        let name = &fitting.name;
        Ok(Err(vec![format!("the policy {name} leaves it to a person: {}", for_people.join("; "))]))
    }

    /// Says why a person has to look at a plan, whatever the policies allow. Of a run that is
    /// repaired with it, the text that it runs is approved, and its steps have changed files.
    pub(super) async fn reasons_for_person(
        &self,
        checked: &Checked,
        graph: &Graph,
        worker: Option<&Agent>,
        (run, is_repaired): (Option<&RunRow>, bool),
    ) -> Result<Vec<String>, ServiceError> {
        let mut why = Vec::new();
        let sub_plans = graph.sub_plans().map(|(_, plan)| (plan.path.clone(), Digest::new("")));
        why.extend(votes_wanted(&self.rules_for(checked, &sub_plans.collect()).await?));
        let is_warning = |found: &&planctl_lang::Diagnostic| found.level == Severity::Warning;
        match checked.verification.diagnostics.iter().filter(is_warning).count() {
            0 => {}
            1 => why.push("verification has 1 warning".to_owned()),
            count => why.push(format!("verification has {count} warnings")),
        }
        match checked.verification.allowed.len() {
            0 => {}
            1 => why.push("the plan allows 1 finding".to_owned()),
            count => why.push(format!("the plan allows {count} findings")),
        }
        let repaired = run.filter(|_| is_repaired);
        let waits =
            |run: &&RunRow| is_repaired || matches!(run.head.status, RunStatus::New | RunStatus::Awaiting);
        let waiting = run.filter(waits);
        if waiting.is_some_and(|run| run.around.is_some()) {
            why.push("it is a part of another run".to_owned());
        }
        if worker.is_some() || waiting.map(names_worker).transpose()?.unwrap_or(false) {
            why.push("a worker was named with the run".to_owned());
        }
        let (_, now) = self.where_approved(repaired, checked).await?;
        let uncommitted = match repaired {
            Some(_) => Vec::new(),
            None => self.differing_from_head(&self.place_of(None)?, &now).await,
        };
        if !uncommitted.is_empty() {
            why.push(format!("protected files are not as they were committed: {}", uncommitted.join(", ")));
        }
        let Some(plan) = self.store.plan_at(self.own_workspace()?, &checked.path).await? else {
            return Ok(why);
        };
        let last = self.store.last_approval(plan.id).await?;
        let is_of_repaired = |last: &Approval| repaired.is_some_and(|run| run.approval == Some(last.id));
        let is_other = |last: &Approval| last.digest != checked.verification.digest;
        if last.is_some_and(|last| is_other(&last) && !is_of_repaired(&last)) {
            why.push("another text of it was approved".to_owned());
        }
        if let Some(by) = self.rejected_by(&plan, checked).await? {
            why.push(format!("{by} made this text a draft again"));
        }
        let drift = self.drift(plan.id, repaired, graph, &now).await?;
        if !drift.is_empty() {
            let files: Vec<&str> = drift.iter().map(|file| file.path.as_str()).collect();
            why.push(format!("protected files differ from what was approved last: {}", files.join(", ")));
        }
        Ok(why)
    }

    /// Names the person who rejected this text of a plan, or asked for another one.
    async fn rejected_by(&self, plan: &Plan, checked: &Checked) -> Result<Option<String>, ServiceError> {
        let moves = self.store.plan_moves(plan.id).await?;
        let digest = &checked.verification.digest;
        let mut back = moves.into_iter().rev().filter(|moved| moved.to == PlanStatus::Draft);
        let by = back.find(|moved| moved.digest == *digest && moved.why != TEXT_CHANGED);
        Ok(by.map(|moved| moved.by))
    }
}

/// Says that the person who handed a run in named its worker.
fn names_worker(run: &RunRow) -> Result<bool, ServiceError> {
    Ok(RunSettings::of(run)?.worker.is_some())
}
