//! Runs: started, looked at, paused, taken up, cancelled.

use std::time::Duration;

use planctl_engine::RunId;
use planctl_store::WantedRuns;
use planctl_view::Form;

use super::guard::{Peer, Standing, inside_worker_problem};
use super::parameters::{
    AT, ATTEMPT, ENTRIES_USUAL, FORM, FROM, LIMIT, LINES, LINES_MAX, NEWEST, PLAN, SINCE, STATE, STEP, WAIT,
    WORKSPACE,
};
use super::problem::of_store;
use super::{Answer, Call, json, number, plans};
use crate::clock;
use crate::node::services::Services;
use crate::picture::Addresses;
use crate::plans::start::Started;
use planctl_api::wire::calls::{
    AcknowledgeCall, CancelCall, PauseCall, ResumeCall, RunName, RunPlanView, StartCall, StartedView,
};
use planctl_api::wire::{AuditView, LogView, RunList};
use planctl_api::{Code, Problem};

/// How long to wait for news of a run before looking again without any.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn start(call: Call) -> Answer {
    let wanted: StartCall = call.body()?;
    let is_inside_session = matches!(call.principal.peer, Peer::Local { is_inside_session: true, .. });
    if is_inside_session && wanted.start.approve.is_some() {
        return Err(inside_worker_problem());
    }
    let checked = plans::checked(&call, &wanted.plan).await?;
    let services = call.services_of_plan(&wanted.plan).await?;
    json(&StartedView::from(services.start(&checked, &wanted.start).await?))
}

impl From<Started> for StartedView {
    fn from(started: Started) -> StartedView {
        match started {
            Started::Ready { run, name, is_taken_up } => {
                StartedView::Ready { id: run.to_string(), run: name, is_taken_up }
            }
            Started::AlreadyDone { name } => StartedView::AlreadyDone { run: name },
            Started::NeedsApproval { run, name, ask, no_policy } => StartedView::NeedsApproval {
                no_policy,
                id: run.to_string(),
                run: name,
                ask: u64::try_from(ask).unwrap_or(0),
            },
            Started::ChangedSinceApproval { approved_text, run } => {
                StartedView::ChangedSinceApproval { approved_text, run }
            }
        }
    }
}

pub(super) async fn list(call: Call) -> Answer {
    let services = call.services().await?;
    let is_everywhere = call.query(&WORKSPACE).is_none();
    let wanted = WantedRuns { workspace: None, plan: call.query(&PLAN), state: call.query(&STATE) };
    json(&services.list(is_everywhere, wanted, &call.page::<RunList, _>(RunId::parse)?).await?)
}

pub(super) async fn decisions(call: Call) -> Answer {
    json(&call.services().await?.decisions(call.number(&LIMIT)?.unwrap_or(ENTRIES_USUAL)).await?)
}

pub(super) async fn spent_today(call: Call) -> Answer {
    let services = call.services().await?;
    json(&services.spent_today(call.query(&WORKSPACE).is_none()).await?)
}

pub(super) async fn find_run(call: &Call) -> Result<(Services, RunId), Problem> {
    let services = call.services().await?;
    let run = services.find(call.parameter("run")).await?;
    Ok((services, run))
}

pub(super) async fn status(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.status(run).await?)
}

pub(super) async fn page(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.run_page(run, call.number(&FROM)?).await?)
}

pub(super) async fn picture(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    let query = call.query(&WORKSPACE).map(|path| format!("?workspace={}", planctl_web::encoded(path)));
    let addresses = Addresses { query: query.unwrap_or_default() };
    let layouts = call.api.page().layouts().clone();
    json(&services.run_picture(run, call.query(&AT), addresses, layouts).await?)
}

pub(super) async fn timeline(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.timeline(run).await?)
}

pub(super) async fn name(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&RunName { id: run.to_string(), run: services.store().name_of(run).await.map_err(of_store)? })
}

pub(super) async fn plan(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    let checked = services.plan_of_run(run).await?;
    let graph =
        checked.verification.graph.ok_or_else(|| Problem::new(Code::Defect, "a run without a graph"))?;
    json(&RunPlanView {
        file: checked.file,
        path: checked.path,
        source: checked.source.text().to_owned(),
        digest: checked.verification.digest,
        graph,
        baseline: checked.baseline,
    })
}

pub(super) async fn history(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    let since = call.number(&SINCE)?.unwrap_or(0);
    let limit = call.number(&LINES)?.unwrap_or(LINES_MAX);
    let wait = call.number(&WAIT)?.map(Duration::from_secs);
    if let Some(count) = call.number::<usize>(&NEWEST)? {
        if since > 0 || wait.is_some() {
            return Err(Problem::new(
                Code::BadRequest,
                "`newest` is not from a place on: `since` and `wait` are",
            )
            .help("give `newest` alone"));
        }
        return json(&services.newest_events(run, count).await?);
    }
    let until = clock::instant() + wait.unwrap_or_default();
    // Registered before the first look, so that no line falls between the two.
    let listener = services.listen(run);
    let mut standing = Standing::of(&call);
    loop {
        standing.refuse_if_revoked().await?;
        let lines = services.events(run, since, limit).await?;
        let left = until.saturating_duration_since(clock::instant());
        if !lines.is_empty() || left.is_zero() || call.api.is_stopping() {
            return json(&lines);
        }
        call.api.wait_for_news(&listener, left.min(LOOK_AGAIN)).await;
    }
}

pub(super) async fn logs(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(
        &services
            .logs(run, call.number(&STEP)?, call.number(&ATTEMPT)?, &call.page::<LogView, _>(number)?)
            .await?,
    )
}

pub(super) async fn output(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.output(run, call.number(&SINCE)?.unwrap_or(0))?)
}

pub(super) async fn prompts(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.prompts(run, call.number(&STEP)?, call.number(&ATTEMPT)?).await?)
}

pub(super) async fn salute(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.salute(run).await?)
}

pub(super) async fn traversal(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.traversal(run).await?)
}

pub(super) async fn checkpoint(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.checkpoint(run).await?)
}

pub(super) async fn follow_up(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.follow_up(run).await?)
}

pub(super) async fn why(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.why(run, call.parameter("step")).await?)
}

pub(super) async fn context(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    let form = match call.query(&FORM) {
        None => Form::Long,
        Some(word) => Form::ALL.into_iter().find(|form| form.as_str() == word).ok_or_else(|| {
            Problem::new(Code::BadRequest, format!("`form` must be {}, found {word:?}", FORM.expected()))
        })?,
    };
    json(&services.context(run, form).await?)
}

pub(super) async fn audit_one(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&AuditView { runs: vec![services.audit(run).await?], next: None })
}

pub(super) async fn bundle(call: Call) -> Answer {
    let (services, run) = find_run(&call).await?;
    json(&services.bundle(run, call.number(&SINCE)?.unwrap_or(0)).await?)
}

pub(super) async fn audit(call: Call) -> Answer {
    json(&call.services().await?.audit_runs(&call.page::<AuditView, _>(RunId::parse)?).await?)
}

pub(super) async fn resume(call: Call) -> Answer {
    let wanted: ResumeCall = call.body()?;
    let services = call.services_of(wanted.place.clone()).await?;
    let run = services.find(call.parameter("run")).await?;
    json(&services.resume(run, &wanted).await?)
}

pub(super) async fn pause(call: Call) -> Answer {
    let wanted: PauseCall = call.body()?;
    let (services, run) = find_run(&call).await?;
    json(&services.pause(run, wanted.note.as_deref()).await?)
}

pub(super) async fn cancel(call: Call) -> Answer {
    let wanted: CancelCall = call.body()?;
    let (services, run) = find_run(&call).await?;
    json(&services.cancel(run, wanted.note.as_deref()).await?)
}

pub(super) async fn acknowledge(call: Call) -> Answer {
    let wanted: AcknowledgeCall = call.body()?;
    let (services, run) = find_run(&call).await?;
    json(&services.acknowledge(run, wanted.note.as_deref()).await?)
}
