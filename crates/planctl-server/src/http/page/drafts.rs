//! Drafts of plans: begun by a form, looked at while they are written, and gone on with.

use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::Response;
use planctl_api::wire::AskList;
use planctl_api::wire::calls::Nothing;
use planctl_api::wire::drafting::{DraftingCall, DraftingList, DraftingState, DraftingView};
use planctl_api::{Code, Problem};
use planctl_web::{DraftScreen, DraftsScreen, Screen as _, Tab, encoded};

use super::decide::Fields;
use super::library::known_plans;
use super::screens::Texts;
use super::visit::Visit;
use super::{Address, html, see_other};

/// How many open asks are looked through for those of a draft.
const ASKS: usize = 500;

/// Shows the form, and the drafts of the project that the address names, else of the newest one.
pub(super) async fn list(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let named = address.query("project").filter(|project| !project.is_empty());
    let call = DraftingCall { workspace: named.map(PathBuf::from).unwrap_or_default(), ..Default::default() };
    draw_form(visit, address, call, None).await
}

/// Draws the form with what its reader filled in, and why that was refused.
async fn draw_form(
    visit: &Visit,
    address: &Address,
    mut call: DraftingCall,
    refused: Option<&Problem>,
) -> Result<String, Problem> {
    let plans = known_plans(visit).await?;
    let mut projects: Vec<&str> = plans.plans.iter().map(|plan| plan.workspace.as_str()).collect();
    if call.workspace.as_os_str().is_empty() {
        call.workspace = projects.first().map(PathBuf::from).unwrap_or_default();
    }
    projects.sort_unstable();
    projects.dedup();
    let key = visit.new_key();
    let form = visit.session()?.form(&key);
    let wanted = match call.workspace.to_string_lossy() {
        project if project.is_empty() => "/v1/drafting".to_owned(),
        project => format!("/v1/drafting?workspace={}", encoded(&project)),
    };
    let list = match form {
        Some(_) => visit.get::<DraftingList>(&wanted).await,
        // A reader is told so in place of a list.
        None => Ok(DraftingList { writers: Vec::new(), drafts: Vec::new() }),
    };
    let texts = Texts::of(address);
    let frame = texts.frame_of(visit, Tab::Plans)?;
    let list = list.as_ref();
    Ok(DraftsScreen { frame, projects: &projects, call: &call, list, refused, form }.html())
}

/// Shows one draft.
pub(super) async fn show(visit: &Visit, address: &Address, draft: &str) -> Result<String, Problem> {
    let view: DraftingView = visit.look(&route(draft)).await?;
    let mut asks = Vec::new();
    if view.state == DraftingState::Waiting {
        let workspace = view.call.workspace.to_string_lossy().into_owned();
        let list = format!("/v1/approvals?limit={ASKS}&workspace={}", encoded(&workspace));
        let list: AskList = visit.look(&list).await?;
        let is_of_draft =
            |ask: &planctl_api::wire::AskView| ask.draft.is_some() && ask.title == view.call.goal;
        asks = list.asks.into_iter().filter(is_of_draft).collect();
    }
    let texts = Texts::of(address);
    // A page that loads itself would take away what its reader types.
    let frame = match view.state {
        DraftingState::Working => texts.live_frame(visit, Tab::Plans)?,
        DraftingState::Done
        | DraftingState::Waiting
        | DraftingState::GivenUp
        | DraftingState::Failed
        | DraftingState::Interrupted => texts.frame_of(visit, Tab::Plans)?,
    };
    let key = visit.new_key();
    let form = visit.session()?.form(&key);
    Ok(DraftScreen { frame, view: &view, asks: &asks, form }.html())
}

/// Begins a draft. A refused one is shown with what its reader had filled in.
pub(super) async fn begin(visit: &Visit, address: &Address, fields: &Fields) -> Result<Response, Problem> {
    let call = DraftingCall {
        workspace: PathBuf::from(fields.get("project")),
        goal: fields.text("goal").unwrap_or_default(),
        source: fields.text("source"),
        writer: fields.text("writer"),
        budget: fields.text("budget"),
        plan_budget: fields.text("plan_budget"),
        hint: None,
        again: false,
    };
    match visit.post::<DraftingView>("/v1/drafting", fields.get("key"), &call).await {
        Ok(view) => Ok(see_other(&format!("/drafts/{}", view.id))),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Ok(html(status, draw_form(visit, address, call, Some(&problem)).await?))
        }
    }
}

/// Stops a draft, or goes on with it by the call that began it.
pub(super) async fn go_on(visit: &Visit, draft: &str, fields: &Fields) -> Result<Response, Problem> {
    let key = fields.get("key");
    if fields.get("do") == "stop" {
        let _: DraftingView = visit.post(&format!("{}/stop", route(draft)), key, &Nothing {}).await?;
        return Ok(see_other(&format!("/drafts/{}", encoded(draft))));
    }
    let DraftingView { call, state, .. } = visit.get(&route(draft)).await?;
    if state == DraftingState::Working {
        return Err(Problem::new(Code::Conflict, "could not go on with the draft: it is being written")
            .help("wait until it is written, or stop it"));
    }
    let budget = fields.text("budget").or(call.budget);
    let call = DraftingCall { hint: None, again: false, budget, ..call };
    let call = match fields.get("do") {
        "go-on" => call,
        "again" => DraftingCall { again: true, ..call },
        "hint" => match fields.text("hint") {
            Some(hint) => DraftingCall { hint: Some(hint), ..call },
            None => return Err(Problem::new(Code::BadRequest, "say what should be different")),
        },
        _ => return Err(Problem::new(Code::BadRequest, "choose what to do with the draft")),
    };
    let view: DraftingView = visit.post("/v1/drafting", key, &call).await?;
    Ok(see_other(&format!("/drafts/{}", view.id)))
}

fn route(draft: &str) -> String {
    format!("/v1/drafting/{}", encoded(draft))
}
