//! A claimed item, as its worker reads it.

use std::path::PathBuf;
use std::time::Duration;

use planctl_engine::{Role, Subscription, Task, Work, WorkKind};
use planctl_harness::{Assignment, digest_of};
use planctl_store::Claimed;

use super::lease::{HEARTBEATS, shown_lease};
use crate::executor::prompt_input::PromptInput;
use crate::http::Call;
use crate::runs::settings::RunSettings;
use planctl_api::wire::calls::{
    ClaimedView, LeftView, ProfileView, SubscriptionView, WorkInput, WorkItem, WorkPayload,
};
use planctl_api::wire::moment;
use planctl_api::{Code, Problem};

/// Shows a claimed item whose lease lasts for so long yet: the database's time, at which it ends, is never compared with
/// this machine's (P13).
/// How long was asked for stands in what the holder shows, so that whichever daemon renews the lease gives as much again.
pub(in crate::http) async fn view(
    call: &Call,
    claimed: &Claimed,
    lease: Duration,
    asked_seconds: Option<u64>,
) -> Result<ClaimedView, Problem> {
    let Work::Agent { role, timeout, brief, .. } = &claimed.item.work else {
        return Err(Problem::new(Code::Defect, "an item for agents is for somebody else"));
    };
    let task = claimed.graph.task(&claimed.item.at.node);
    let task = task.ok_or_else(|| Problem::new(Code::Defect, "an item is of no step"))?;
    let server_node = call.server_node();
    let settings = &claimed.run_config.settings;
    server_node.refuse_changed_settings(claimed.item.run, &claimed.run_name, settings).await?;
    let settings = RunSettings::parse(settings)?;
    let masks = settings.masks(&server_node.secrets());
    let input = PromptInput {
        store: &server_node.store,
        plan: &claimed.plan,
        settings: &settings,
        masks: &masks,
        traces: server_node.traces(),
    };
    let assignment = input.assignment(claimed, task, role, *timeout, brief).await?;
    let context = assignment.context.iter().map(|entry| SubscriptionView {
        reference: entry.source.clone(),
        path: entry.path().map(str::to_owned),
        sha256: entry.bytes.as_deref().map(|bytes| digest_of(bytes).as_str().to_owned()),
    });
    Ok(ClaimedView {
        item: claimed.item.id.as_str().to_owned(),
        generation: claimed.generation,
        token: shown_lease(claimed, asked_seconds),
        lease_until: moment(claimed.lease_until),
        heartbeat_seconds: (lease / HEARTBEATS).as_secs().max(1),
        work: work_item(&assignment, task, role),
        run: assignment.run,
        step: task.step,
        step_title: assignment.step_title,
        node: assignment.node,
        attempt: assignment.attempt,
        attempts_max: assignment.attempts_max,
        role: assignment.role,
        context: context.collect(),
        prompt: assignment.prompt,
        denied: settings.denied(role),
        workspace: PathBuf::from(&claimed.workspace),
        host: claimed.host.clone(),
        deadline: assignment.deadline_at.unwrap_or_else(|| moment(claimed.hard_deadline)),
        traceparent: assignment.traceparent,
        deadline_seconds: assignment.deadline.as_secs_f64(),
        budget: LeftView {
            tokens: assignment.budget_tokens,
            usd: assignment.budget_micro_usd.map(|micro| micro as f64 / 1e6),
        },
    })
}

fn work_item(assignment: &Assignment, task: &Task, role: &Role) -> WorkItem {
    let subscriptions = task.subscriptions.iter().map(|subscription| match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    });
    WorkItem {
        agent_id: role.as_str().to_owned(),
        kind: match task.work {
            WorkKind::Code => "CODE".to_owned(),
            WorkKind::Review => "REVIEW".to_owned(),
        },
        payload: WorkPayload {
            plan_id: assignment.plan.clone(),
            step: task.step,
            subscriptions: subscriptions.collect(),
            profile: ProfileView::of(assignment.profile.as_ref(), assignment.thread.as_deref()),
        },
        input: WorkInput { prompt: assignment.prompt.clone() },
    }
}
