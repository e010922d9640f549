//! The edit of a plan whose run an ask holds: checked and compared as often as its reader likes, then approved.

use axum::http::StatusCode;
use axum::response::Response;
use planctl_api::wire::calls::{EditCall, EditCheckCall};
use planctl_api::wire::{AskPage, AskView, Decided, PlanEditCheck, PlanEditView};
use planctl_api::{Code, Problem};
use planctl_store::secret;
use planctl_web::{EditDraft, EditNews, EditScreen, Screen as _, Tab, encoded};

use super::decide::{Fields, page_after};
use super::screens::Texts;
use super::visit::Visit;
use super::{Address, html, see_other};

/// Shows the text to begin with.
pub(super) async fn show_draft(visit: &Visit, address: &Address, ask: &str) -> Result<String, Problem> {
    let view: PlanEditView = visit.get(&route(ask)).await?;
    let draft = EditDraft { text: view.text, file: view.file, note: String::new() };
    let news = EditNews {
        is_file_changed: view.is_file_changed,
        unfit: view.unfit.as_deref(),
        ..EditNews::default()
    };
    draw_editor(visit, address, &view.ask, &draft, news)
}

/// Does what the form asks for: checks the text, or approves the one that was checked. The text that its reader wrote stays.
pub(super) async fn post_form(
    visit: &Visit,
    address: &Address,
    ask: &str,
    fields: &Fields,
) -> Result<Response, Problem> {
    let draft = EditDraft {
        text: fields.get("text").replace("\r\n", "\n"),
        file: fields.get("file").to_owned(),
        note: fields.text("note").unwrap_or_default(),
    };
    let page: AskPage = visit.get(&format!("/v1/approvals/{}", encoded(ask))).await?;
    let call = EditCheckCall { text: draft.text.clone() };
    let check: Result<PlanEditCheck, Problem> =
        visit.post(&format!("{}/check", route(ask)), fields.get("key"), &call).await;
    let refused = match (&check, fields.get("do")) {
        (Err(problem), _) => Some(problem.clone()),
        (Ok(check), "approve") => match approve_draft(visit, ask, fields, &draft, check).await {
            Ok(decided) => return Ok(see_other(&page_after(&decided, "edit"))),
            Err(problem) => Some(problem),
        },
        (Ok(_), _) => None,
    };
    let status = refused.as_ref().and_then(|problem| StatusCode::from_u16(problem.status).ok());
    let news = EditNews { check: check.as_ref().ok(), refused: refused.as_ref(), ..EditNews::default() };
    Ok(html(status.unwrap_or(StatusCode::OK), draw_editor(visit, address, &page.ask, &draft, news)?))
}

/// Puts the step into the plan that a worker proposes, as its ask shows it.
pub(super) async fn insert_step(
    visit: &Visit,
    ask: &str,
    key: &str,
    note: Option<String>,
) -> Result<Decided, Problem> {
    let PlanEditView { text, file, is_file_changed, unfit, .. } = visit.get(&route(ask)).await?;
    let by_hand = |why: String| Problem::new(Code::Conflict, why).help("edit the plan, and put it in there");
    if let Some(why) = unfit {
        return Err(by_hand(format!("the step can't be put in as it is: {why}")));
    }
    if is_file_changed {
        return Err(by_hand("the plan's file was changed since it was approved".to_owned()));
    }
    visit.post(&route(ask), key, &EditCall { text, file, note }).await
}

/// Approves a text that its reader saw compared.
async fn approve_draft(
    visit: &Visit,
    ask: &str,
    fields: &Fields,
    draft: &EditDraft,
    check: &PlanEditCheck,
) -> Result<Decided, Problem> {
    if fields.get("checked") != check.digest {
        return Err(Problem::new(Code::BadRequest, "the text was changed after it was compared")
            .help("read what is changed below, and approve that"));
    }
    let note = Some(draft.note.clone()).filter(|note| !note.is_empty());
    let call = EditCall { text: draft.text.clone(), file: draft.file.clone(), note };
    visit.post(&route(ask), fields.get("key"), &call).await
}

fn route(ask: &str) -> String {
    format!("/v1/approvals/{}/edit", encoded(ask))
}

fn draw_editor(
    visit: &Visit,
    address: &Address,
    ask: &AskView,
    draft: &EditDraft,
    news: EditNews<'_>,
) -> Result<String, Problem> {
    let (texts, key) = (Texts::of(address), secret());
    let form = visit.session()?.form(&key);
    let frame = texts.frame_of(visit, Tab::Home)?;
    Ok(EditScreen::new(frame, ask, draft, news, form).html())
}
