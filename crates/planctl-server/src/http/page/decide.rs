//! Forms: each becomes the call of one route of the API, which decides, or refuses and says why.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use planctl_api::wire::calls::{
    AcknowledgeCall, AnswerCall, AnswerWord, CancelCall, Nothing, PauseCall, PlaceCall, RaiseCall,
    ResumeCall, RunKnownCall, StartedView,
};
use planctl_api::wire::messages::DeliveryView;
use planctl_api::wire::work::{TokenView, WorkerView};
use planctl_api::wire::{AskPage, AskView, Decided};
use planctl_api::words::answer_needs_note;
use planctl_api::{Code, Problem};
use planctl_web::{Draft, encoded, joined_key};

use super::address::pairs;
use super::visit::Visit;
use super::{Address, drafts, edit, guard, html, screens, see_other, session};

/// The longest form.
const FORM_BYTES_MAX: usize = 128 << 10;
/// The longest form with a plan's text, each of whose bytes may be written as three.
const PLAN_FORM_BYTES_MAX: usize = 4 << 20;

/// The fields of a form.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns a field; one that is missing is empty.
    pub(super) fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns what somebody wrote, as lines end here; nothing where they wrote nothing.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name).replace("\r\n", "\n");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// Does what a form asks for.
pub(super) async fn post_form(visit: &Visit, address: &Address, body: Body) -> Result<Response, Problem> {
    let segments = address.segments();
    let bytes_max = match segments.as_slice() {
        ["asks", _, "edit"] => PLAN_FORM_BYTES_MAX,
        _ => FORM_BYTES_MAX,
    };
    let (bytes, _held) = guard::read_body(&visit.state.api, visit.peer, body, bytes_max).await?;
    let fields = Fields(pairs(&bytes));
    if segments == ["sign-in"] {
        return session::sign_in(visit, address, fields.get("token")).await;
    }
    visit.session()?.refuse_foreign(fields.get("form"))?;
    match segments.as_slice() {
        ["sign-out"] => session::sign_out(visit).await,
        ["asks", ask] => answer(visit, address, ask, &fields).await,
        ["asks", ask, "edit"] => edit::post_form(visit, address, ask, &fields).await,
        ["plans", plan, "run"] => run_plan(visit, plan, &fields).await,
        ["drafts"] => drafts::begin(visit, address, &fields).await,
        ["drafts", draft] => drafts::go_on(visit, draft, &fields).await,
        ["runs", run, "steer"] => control_run(visit, address, run, &fields).await,
        ["runs", run, "resume"] => {
            let call = ResumeCall { from: parse_step(&fields)?, ..ResumeCall::default() };
            decide_on_run(visit, address, run, "resume", &fields, &call).await
        }
        ["runs", run, "acknowledge"] => acknowledge(visit, address, run, &fields).await,
        ["system", "workers", worker] => {
            let verb = if fields.get("do") == "pause" { "pause" } else { "resume" };
            let route = format!("/v1/workers/{}/{verb}", encoded(worker));
            let _: WorkerView = visit.post(&route, fields.get("key"), &Nothing {}).await?;
            Ok(see_other("/system?recorded=worker"))
        }
        ["system", "deliveries", delivery] => {
            let route = format!("/v1/deliveries/{}/replay", encoded(delivery));
            let _: DeliveryView = visit.post(&route, fields.get("key"), &Nothing {}).await?;
            Ok(see_other("/system?recorded=delivery"))
        }
        ["system", "tokens", token] => {
            let _: TokenView =
                visit.delete(&format!("/v1/tokens/{}", encoded(token)), fields.get("key")).await?;
            Ok(see_other("/system?recorded=revoke"))
        }
        _ => Err(Problem::new(Code::NotFound, "no page decides at this address")),
    }
}

/// Runs a plan, as far as nobody has to approve it before; else leads to its ask.
async fn run_plan(visit: &Visit, plan: &str, fields: &Fields) -> Result<Response, Problem> {
    let route = format!("/v1/plans/{}/run", encoded(plan));
    let call =
        RunKnownCall { digest: fields.get("digest").to_owned(), again: !fields.get("again").is_empty() };
    let refused = |why: String, help: &str| Problem::new(Code::Conflict, why).help(help);
    match visit.post::<StartedView>(&route, fields.get("key"), &call).await? {
        StartedView::Ready { id, .. } => Ok(see_other(&format!("/runs/{id}?recorded=run"))),
        StartedView::NeedsApproval { ask, .. } => Ok(see_other(&format!("/asks/{ask}?recorded=hand-in"))),
        StartedView::AlreadyDone { run } => Err(refused(
            format!("could not run it: {run} is done"),
            "go back, choose that it runs once more, and run it",
        )),
        StartedView::ChangedSinceApproval { .. } => Err(refused(
            "could not run it: another text of it was approved".to_owned(),
            "a terminal shows what differs, and asks you whether you approve this text",
        )),
    }
}

async fn control_run(
    visit: &Visit,
    address: &Address,
    run: &str,
    fields: &Fields,
) -> Result<Response, Problem> {
    let note = fields.text("note");
    match fields.get("do") {
        "cancel" => decide_on_run(visit, address, run, "cancel", fields, &CancelCall { note }).await,
        "pause" => decide_on_run(visit, address, run, "pause", fields, &PauseCall { note }).await,
        _ => Err(Problem::new(Code::BadRequest, "choose what to do with the run")),
    }
}

/// Acknowledges that a run failed. A form of the home page is for one of several runs, each of which has a key of its own.
async fn acknowledge(
    visit: &Visit,
    address: &Address,
    run: &str,
    fields: &Fields,
) -> Result<Response, Problem> {
    let route = format!("/v1/runs/{}/acknowledge{}", encoded(run), address.query_of(&["workspace"]));
    let key = joined_key(fields.get("key"), run);
    let call = AcknowledgeCall { note: fields.text("note") };
    let decided: Decided = visit.post(&route, &key, &call).await?;
    if fields.get("run").is_empty() {
        return Ok(see_other(&page_after(&decided, "acknowledge")));
    }
    let about = decided.run.map(|run| format!("&about={}", encoded(&run))).unwrap_or_default();
    Ok(see_other(&format!("/?recorded=acknowledge{about}")))
}

async fn decide_on_run(
    visit: &Visit,
    address: &Address,
    run: &str,
    verb: &str,
    fields: &Fields,
    call: &impl serde::Serialize,
) -> Result<Response, Problem> {
    // A run that is taken up is named by its id alone.
    let query = if verb == "resume" { String::new() } else { address.query_of(&["workspace"]) };
    let run = if verb == "resume" { screens::id_of(visit, address, run).await? } else { run.to_owned() };
    let route = format!("/v1/runs/{}/{verb}{query}", encoded(&run));
    let decided: Decided = visit.post(&route, fields.get("key"), call).await?;
    Ok(see_other(&page_after(&decided, verb)))
}

/// Returns the page that shows what a decision led to.
pub(super) fn page_after(decided: &Decided, word: &str) -> String {
    let about = decided.ask.map(|ask| ask.to_string()).or_else(|| decided.run.clone());
    let about = about.map(|about| format!("&about={}", encoded(&about))).unwrap_or_default();
    match &decided.run_id {
        Some(run) => format!("/runs/{run}?recorded={word}{about}"),
        None => format!("/?recorded={word}{about}"),
    }
}

/// Answers an ask. A refused answer is shown on the ask as it is by then, with what its reader had filled in.
async fn answer(visit: &Visit, address: &Address, ask: &str, fields: &Fields) -> Result<Response, Problem> {
    let route = format!("/v1/approvals/{}", encoded(ask));
    let page: AskPage = visit.get(&route).await?;
    let draft = draft(fields);
    let answered = match call(&page.ask, &draft, fields) {
        Ok(AnswerCall { answer: AnswerWord::Approve {}, note, .. }) if page.ask.kind == "insertion" => {
            edit::insert_step(visit, ask, fields.get("key"), note).await
        }
        Ok(call) => visit.post::<Decided>(&format!("{route}/answer"), fields.get("key"), &call).await,
        Err(problem) => Err(problem),
    };
    match answered {
        // A vote that decides nothing yet is seen on the ask.
        Ok(Decided { voted: Some(_), .. }) => Ok(see_other(&format!("/asks/{}?recorded=vote", encoded(ask)))),
        Ok(decided) => Ok(see_other(&page_after(&decided, &draft.answer))),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let page: AskPage = visit.get(&route).await?;
            Ok(html(status, screens::one_ask(visit, address, &page, &draft, Some(&problem))?))
        }
    }
}

fn draft(fields: &Fields) -> Draft {
    let field = |name| fields.get(name).trim().to_owned();
    Draft {
        answer: field("answer"),
        option: fields.all("option").find(|option| !option.trim().is_empty()).unwrap_or_default().to_owned(),
        role: field("role"),
        usd: field("usd"),
        tokens: field("tokens"),
        minutes: field("minutes"),
        note: fields.text("note").unwrap_or_default(),
    }
}

/// Reads the answer that a form gives.
fn call(ask: &AskView, draft: &Draft, fields: &Fields) -> Result<AnswerCall, Problem> {
    let bad = |detail: String| Problem::new(Code::BadRequest, detail);
    if answer_needs_note(ask, &draft.answer) && draft.note.is_empty() {
        return Err(bad(format!("{} needs a note", draft.answer)).help("write it below, and decide again"));
    }
    let answer = match draft.answer.as_str() {
        "approve" => AnswerWord::Approve {},
        "reject" => AnswerWord::Reject {},
        "retry" => AnswerWord::Retry {},
        "skip" => AnswerWord::Skip {},
        "waive" => AnswerWord::Waive {},
        "abort" => AnswerWord::Abort {},
        "revise" => AnswerWord::Revise {},
        "answer" => AnswerWord::Reply {},
        "restore" => AnswerWord::Restore {},
        "allow" => AnswerWord::Allow { files: Vec::new() },
        "reassign" if draft.role.is_empty() => return Err(bad("reassign needs a role".to_owned())),
        "reassign" => AnswerWord::Reassign { role: draft.role.clone() },
        "choose" if draft.option.is_empty() => return Err(bad("choose one of the options".to_owned())),
        "choose" => AnswerWord::Choose { option: draft.option.clone() },
        "raise" => AnswerWord::Raise { by: parse_raise(draft)? },
        "" => return Err(bad("choose an answer".to_owned())),
        other => return Err(bad(format!("{other:?} is not an answer"))),
    };
    let note = Some(draft.note.clone()).filter(|note| !note.is_empty());
    let accept_changed = fields.all("accept").map(str::to_owned).collect();
    Ok(AnswerCall { place: PlaceCall::default(), answer, note, accept_changed })
}

/// Reads the number of the step that is done anew; nothing where the run goes on where it stands.
fn parse_step(fields: &Fields) -> Result<Option<u32>, Problem> {
    let Some(given) = fields.text("from") else { return Ok(None) };
    let wrong = |_| Problem::new(Code::BadRequest, format!("a step has a number, found {given:?}"));
    given.parse().map(Some).map_err(wrong)
}

/// Reads the amounts by which a budget is raised; one of them at least.
fn parse_raise(draft: &Draft) -> Result<RaiseCall, Problem> {
    fn number<N: std::str::FromStr>(name: &str, given: &str) -> Result<Option<N>, Problem> {
        if given.is_empty() {
            return Ok(None);
        }
        let wrong = |_| Problem::new(Code::BadRequest, format!("{name} must be a number, found {given:?}"));
        given.parse().map(Some).map_err(wrong)
    }
    let minutes: Option<f64> = number("minutes", &draft.minutes)?;
    let by = RaiseCall {
        tokens: number("tokens", &draft.tokens)?,
        usd: number("US dollars", &draft.usd)?,
        seconds: minutes.map(|minutes| minutes * 60.0),
    };
    if by == RaiseCall::default() {
        return Err(Problem::new(Code::BadRequest, "raise needs an amount: US dollars, tokens or minutes"));
    }
    Ok(by)
}
