//! Plans: verified, compared, approved, rejected.

use planctl_engine::Digest;
use planctl_lang::{Levels, Requirement, Source, escape, has_hidden, requirements};

use super::parameters::{MESSAGE, WORKSPACE};
use super::{Answer, Call, json, number};
use planctl_api::{Code, Next, Problem};

use crate::inbox::edit::findings as findings_of;
use crate::plans::KnownFile;
use crate::verify::check::{self, Checked, Checking};
use planctl_api::wire::calls::{
    Approving, DecideCall, DiffCall, PlanCall, RunKnownCall, StandingCall, Start, StartedView,
};
use planctl_api::wire::draft::RequirementView;
use planctl_api::wire::{PlanFindings, PlanList, RevisionList};

pub(super) async fn list(call: Call) -> Answer {
    let is_everywhere = call.query(&WORKSPACE).is_none();
    json(&call.services().await?.plans(is_everywhere, &call.page::<PlanList, _>(number)?).await?)
}

pub(super) async fn library(call: Call) -> Answer {
    json(&call.services().await?.library(call.query(&MESSAGE)).await?)
}

pub(super) async fn library_runs(call: Call) -> Answer {
    json(&call.services().await?.library_runs().await?)
}

pub(super) async fn show(call: Call) -> Answer {
    json(&call.services().await?.plan_named(call.parameter("plan")).await?)
}

pub(super) async fn revisions(call: Call) -> Answer {
    let page = call.page::<RevisionList, _>(|digest| Some(Digest::new(digest)))?;
    json(&call.services().await?.revisions(call.parameter("plan"), &page).await?)
}

pub(super) async fn revision(call: Call) -> Answer {
    let services = call.services().await?;
    json(&services.revision(call.parameter("plan"), call.parameter("digest")).await?)
}

/// Verifies a kept text where its plan lies, with the configuration that it has there.
pub(super) async fn findings(call: Call) -> Answer {
    let services = call.services().await?;
    let revision = services.revision(call.parameter("plan"), call.parameter("digest")).await?;
    let workspace = services.folder_of_plan(call.parameter("plan")).await?;
    let config = call.server_node().config_there(workspace.clone()).await?;
    let (path, text) = (revision.plan, revision.source);
    let plan = PlanCall { workspace, path, text, folder: None, config: Some(config), worker: None };
    let checked = checked(&call, &plan).await?;
    json(&PlanFindings { findings: findings_of(&checked), requirements: requirements_of(&checked) })
}

/// Returns the requirements for which a plan was drafted, each with the contracts that prove it.
fn requirements_of(checked: &Checked) -> Vec<RequirementView> {
    let contract = |number: &u32| {
        let graph = checked.verification.graph.as_ref()?;
        let node = graph.nodes().iter().find(|node| node.step() == Some(*number))?;
        Some(graph.gated(&node.id)?.contract.command.clone())
    };
    let proved = |requirement: Requirement| RequirementView {
        contracts: requirement.steps.iter().filter_map(contract).collect(),
        id: requirement.id,
        text: requirement.text,
        steps: requirement.steps,
    };
    requirements(checked.source.text()).into_iter().map(proved).collect()
}

pub(super) async fn verify(call: Call) -> Answer {
    let plan: PlanCall = call.body()?;
    let checked = checked(&call, &plan).await?;
    json(&checked.verification.report(&checked.source))
}

pub(super) async fn standing(call: Call) -> Answer {
    let wanted: StandingCall = call.body()?;
    let checked = checked(&call, &wanted.plan).await?;
    let services = call.services_of_plan(&wanted.plan).await?;
    let worker = wanted.plan.worker.as_ref();
    json(&services.standing_view(&checked, worker, wanted.again).await?)
}

pub(super) async fn diff(call: Call) -> Answer {
    let wanted: DiffCall = call.body()?;
    let checked = checked(&call, &wanted.plan).await?;
    let services = call.services_of_plan(&wanted.plan).await?;
    json(&services.plan_diff(&checked, &wanted.since, wanted.until.as_deref()).await?)
}

pub(super) async fn approve(call: Call) -> Answer {
    let wanted: DecideCall = call.body()?;
    let checked = checked(&call, &wanted.plan).await?;
    let services = call.services_of_plan(&wanted.plan).await?;
    if let Some(run) = &wanted.repairs {
        return json(&services.approve_repair(&checked, services.find(run).await?).await?);
    }
    let worker = wanted.plan.worker.clone();
    let given = Approving { note: wanted.note, accept_changed: wanted.accept_changed, worker };
    json(&services.approve(&checked, &given).await?)
}

pub(super) async fn reject(call: Call) -> Answer {
    let wanted: DecideCall = call.body()?;
    let checked = checked(&call, &wanted.plan).await?;
    let services = call.services_of_plan(&wanted.plan).await?;
    json(&services.reject(&checked, wanted.note.as_deref().unwrap_or("rejected")).await?)
}

/// Refuses a name with characters that nobody sees: a plan approved under it might be taken for another (DESIGN 3).
fn refuse_unseen(field: &str, path: &str) -> Result<(), Problem> {
    if has_hidden(path) || path.contains(char::is_control) {
        let detail = format!("the plan's `{field}` holds characters that nobody sees: {}", escape(path));
        return Err(Problem::new(Code::BadRequest, detail));
    }
    Ok(())
}

/// Runs a known plan as a command would where it lies: its file as it is, under the configuration that it has there.
pub(super) async fn run(call: Call) -> Answer {
    let wanted: RunKnownCall = call.body()?;
    let KnownFile { workspace, path, text } =
        call.services().await?.file_of_plan(call.parameter("plan")).await?;
    let config = call.server_node().config_there(workspace.clone()).await?;
    let plan = PlanCall { workspace, path, text, folder: None, config: Some(config), worker: None };
    let checked = checked(&call, &plan).await?;
    if checked.verification.digest.as_str() != wanted.digest {
        let detail =
            format!("could not run {}: its file has another text than the one that you saw", plan.path);
        return Err(Problem::new(Code::Conflict, detail).next(Next::start(&plan.path)));
    }
    let services = call.services_of_plan(&plan).await?;
    let start = Start { again: wanted.again, waits_for_workers: true, ..Start::default() };
    json(&StartedView::from(services.start(&checked, &start).await?))
}

/// Verifies a plan as it was handed in, without regard to the client's own findings.
pub(super) async fn checked(call: &Call, plan: &PlanCall) -> Result<Checked, Problem> {
    if plan.path.is_empty() {
        return Err(Problem::new(Code::BadRequest, "the plan's `path` is empty"));
    }
    refuse_unseen("path", &plan.path)?;
    refuse_unseen("folder", plan.folder.as_deref().unwrap_or_default())?;
    let workspace = super::canonical(plan.workspace.clone()).await?;
    let config = plan.config.clone().unwrap_or_default();
    let levels = Levels::default();
    let levels = &config.verify.clone().then(&levels);
    let checking = Checking {
        workspace: &workspace,
        folder: plan.folder.as_deref().unwrap_or_default(),
        config: &config,
        state_dir: Some(call.server_node().state_dir()),
        worker: plan.worker.as_ref(),
        levels,
        probe: None,
    };
    let source = Source::new(&plan.path, &plan.text);
    let spawner = call.server_node().spawner()?;
    let file = std::path::Path::new(&plan.path);
    let checked = check::check_text(file, plan.path.clone(), source, checking, spawner).await;
    checked.map_err(|error| Problem::from(crate::node::services::ServiceError::from(error)))
}
