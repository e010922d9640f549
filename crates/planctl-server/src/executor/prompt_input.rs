//! Input of an item's prompt: task, context, what failed before, and what is left of budget and time.

use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{Brief, Budget, Failure, Role, Task, Timestamp};
use planctl_harness::{Assignment, Masks, PromptParts, assemble, brief_file_work};
use planctl_store::{Claimed, Store, WORK_GRACE};
use planctl_view::{so_far, so_far_facts};

use crate::executor::context::context_of;
use crate::node::services::ServiceError;
use crate::plans::sub_plans::folder_problem;
use crate::runs::settings::RunSettings;
use crate::traces::Traces;
use crate::workspaces::baselines::baseline_of;
use crate::workspaces::baselines::copy_of;
use planctl_api::wire::moment;

/// The most bytes of approved files in one prompt.
const APPROVED_BYTES_MAX: usize = 32 * 1024;

/// Tells the agents of one plan.
#[derive(Clone, Copy)]
pub(crate) struct PromptInput<'a> {
    pub(crate) store: &'a Store,
    /// The plan's path.
    pub(crate) plan: &'a str,
    /// The settings of the run.
    pub(crate) settings: &'a RunSettings,
    /// The values that no prompt shows, in no file and no note.
    pub(crate) masks: &'a Masks,
    /// Where the run's trace is sent, which the agent may join.
    pub(crate) traces: Option<&'a Traces>,
}

impl PromptInput<'_> {
    /// Returns what the agent of a claimed item is given.
    ///
    /// # Errors
    ///
    /// Those of the store and of the workspace's file system.
    pub(crate) async fn assignment(
        &self,
        claimed: &Claimed,
        task: &Task,
        role: &Role,
        timeout: Duration,
        brief: &Brief,
    ) -> Result<Assignment, ServiceError> {
        let workspace = PathBuf::from(&claimed.workspace);
        // Workers of their own machines begin before anybody here has looked at the folder.
        let lost = brief_file_work(|| folder_problem(&self.settings.folder, &claimed.workspace));
        let mut context = context_of(self.store, &workspace, lost, task).await?;
        for entry in &mut context {
            entry.text = self.masks.text(&entry.text).into_owned();
        }
        let denied = self.settings.denied(role);
        let so_far = self.so_far(claimed, brief).await?;
        let approved = self.approved_copies(claimed, brief).await?;
        let prompt = assemble(PromptParts {
            task: &task.prompt,
            denied: &denied,
            so_far: &so_far,
            context: &context,
            brief,
            command: &task.contract.command,
            question: task.contract.judge.as_deref().map_or("", |judge| judge.question.as_str()),
            approved: &approved,
        });
        let prompt = self.masks.text(&prompt).into_owned();
        let title = claimed.graph.node(&claimed.item.at.node).map_or("", |node| node.title.as_str());
        let left = self.budget_left(claimed).await?;
        let allowed = 1 + task.max_retries;
        let grace = i64::try_from(WORK_GRACE.as_micros()).unwrap_or(0);
        let deadline = Timestamp::from_micros(claimed.hard_deadline.as_micros().saturating_sub(grace));
        Ok(Assignment {
            item: claimed.item.id.as_str().to_owned(),
            run: claimed.run_name.clone(),
            plan: self.plan.to_owned(),
            step: task.step.to_string(),
            step_title: title.to_owned(),
            node: claimed.item.at.node.as_str().to_owned(),
            role: role.as_str().to_owned(),
            profile: claimed
                .graph
                .node(&claimed.item.at.node)
                .and_then(|node| node.profile.as_deref())
                .cloned(),
            thread: brief.so_far.as_ref().map(|so_far| so_far.thread.clone()),
            attempt: claimed.item.at.attempt.number(),
            attempts_max: allowed.max(claimed.item.at.attempt.number()),
            workspace,
            prompt,
            context,
            deadline: timeout,
            deadline_at: Some(moment(deadline)),
            budget_tokens: left.tokens,
            budget_micro_usd: left.micro_usd,
            traceparent: self.traces.map(|traces| traces.parent_of(claimed.item.run, &claimed.item.at)),
            locks: Vec::new(),
        })
    }

    /// Returns the approved texts of the protected files that the attempt before had changed, as far as they fit.
    async fn approved_copies(
        &self,
        claimed: &Claimed,
        brief: &Brief,
    ) -> Result<Vec<(String, String)>, ServiceError> {
        let tampered = brief.failure.as_deref().map(Failure::tampered).unwrap_or_default();
        let approval =
            if tampered.is_empty() { None } else { self.store.run(claimed.item.run).await?.approval };
        let Some(approval) = approval else { return Ok(Vec::new()) };
        let baseline = baseline_of(&self.store.approval(approval).await?)?;
        let (mut copies, mut left) = (Vec::new(), APPROVED_BYTES_MAX);
        for file in tampered {
            let Some(state) = baseline.files.get(&file.path) else { continue };
            let text = copy_of(self.store, state).await?.and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(text) = text.filter(|text| text.len() <= left) {
                left -= text.len();
                copies.push((file.path.clone(), text));
            }
        }
        Ok(copies)
    }

    /// Returns the summary of the run so far, where the plan asks for one. It needs only the newest facts.
    async fn so_far(&self, claimed: &Claimed, brief: &Brief) -> Result<String, ServiceError> {
        let Some(wanted) = &brief.so_far else { return Ok(String::new()) };
        let newest = match so_far_facts(wanted.fidelity) {
            0 => Vec::new(),
            facts => self.store.newest_facts(claimed.item.run, i64::from(facts)).await?,
        };
        Ok(so_far(&claimed.graph, &claimed.run_name, wanted, &newest))
    }

    /// Returns what is left of the run's budget beside what others under way are expected to use; a plan without one costs no
    /// look.
    async fn budget_left(&self, claimed: &Claimed) -> Result<Budget, ServiceError> {
        if claimed.graph.budget() == Budget::default() {
            return Ok(Budget::default());
        }
        let left = self.store.run(claimed.item.run).await?.head.budget_left_for(&claimed.item.at.node);
        Ok(Budget { time: None, ..left })
    }
}
