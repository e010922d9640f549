//! The screens: what each reads from the API, and how it is drawn.

use axum::http::StatusCode;
use axum::response::Response;
use planctl_api::wire::calls::RunName;
use planctl_api::wire::messages::DeliveryList;
use planctl_api::wire::work::{ServiceView, TokenList, WorkerList};
use planctl_api::wire::{
    AskList, AskPage, AttemptView, DatabaseView, DecisionLog, DoctorView, EventLine, LogView, Paged as _,
    PictureView, PlanFindings, PlanList, PlanSummary, RevisionList, RevisionPage, RoleWorkList, RunList,
    RunPage, SpentToday, TimelineView, WhyView, moment,
};
use planctl_api::{Code, Problem};
use planctl_web::{
    AskScreen, AttemptWindow, DoctorScreen, Draft, Filters, Frame, GraphScreen, HistoryScreen, HomeScreen,
    PlanScreen, PlansScreen, ProblemScreen, Recorded, RunFilters, RunScreen, RunsScreen, Screen as _,
    SignInScreen, StepScreen, SystemScreen, Tab, TimelineScreen, encoded,
};

use super::visit::Visit;
use super::{Address, drafts, edit, html, library, output};
use crate::clock;

/// How many of the newest runs the home page looks at, and a page of runs lists.
const RUNS: usize = 40;
/// Among how many of the newest runs of its workspace a plan's are looked for.
const RUNS_OF_PLAN: usize = 100;
/// How many asks the home page lists.
const ASKS: usize = 50;
/// How many asks are looked at where some are wanted.
const FILTERED_ASKS: usize = 500;
/// How many of the newest events a run's page reads; those without words are left out.
const EVENTS: usize = 60;
/// How many messages the system page lists.
const DELIVERIES: usize = 10;
/// How many decisions it lists.
const DECISIONS: usize = 20;
/// How many lines a page of a run's history has.
const HISTORY_LINES: u64 = 100;

/// Draws the page at an address.
pub(super) async fn draw(visit: &Visit, address: &Address) -> Result<String, Problem> {
    visit.session()?;
    match address.segments().as_slice() {
        [] => home(visit, address).await,
        ["runs"] => runs(visit, address).await,
        ["runs", run] => one_run(visit, address, run).await,
        ["runs", run, "graph"] => graph(visit, address, run).await,
        ["runs", run, "timeline"] => timeline(visit, address, run).await,
        ["runs", run, "history"] => history(visit, address, run).await,
        ["runs", run, "steps", step] => one_step(visit, address, run, step).await,
        ["runs", run, "steps", step, "attempts", attempt, output] => {
            output::show_part(visit, address, (run, step, attempt), output).await
        }
        ["asks", ask] => {
            let page: AskPage = visit.get(&format!("/v1/approvals/{}", encoded(ask))).await?;
            one_ask(visit, address, &page, &Draft::default(), None)
        }
        ["asks", ask, "edit"] => edit::show_draft(visit, address, ask).await,
        ["plans"] => plans(visit, address).await,
        ["plans", plan] => one_plan(visit, address, plan).await,
        ["drafts"] => drafts::list(visit, address).await,
        ["drafts", draft] => drafts::show(visit, address, draft).await,
        ["library"] => library::list(visit, address).await,
        ["system"] => system(visit, address).await,
        ["system", "doctor"] => doctor(visit, address).await,
        _ => Err(Problem::new(Code::NotFound, "there is no page at this address")),
    }
}

/// Shows what went wrong; whoever is not signed in is shown the way in.
pub(super) fn problem(visit: Option<&Visit>, address: &Address, problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if problem.code() == Some(Code::Unauthenticated) {
        return html(status, sign_in(address, None));
    }
    let texts = Texts::of(address);
    let mut frame = texts.frame(Tab::Elsewhere);
    frame.reader = visit.and_then(|visit| visit.session.as_ref()).map(|session| session.reader());
    html(status, ProblemScreen::new(frame, problem).html())
}

/// Draws the way in.
pub(super) fn sign_in(address: &Address, refused: Option<&str>) -> String {
    let texts = Texts::of(address);
    SignInScreen { frame: texts.frame(Tab::Elsewhere), refused }.html()
}

/// The texts that every page needs.
pub(super) struct Texts {
    path: String,
    now: String,
    live: String,
}

impl Texts {
    pub(super) fn of(address: &Address) -> Texts {
        let path = address.whole();
        Texts { live: format!("/live?page={}", encoded(&path)), path, now: moment(clock::now()) }
    }

    fn frame(&self, tab: Tab) -> Frame<'_> {
        Frame::at(&self.now, &self.path, tab)
    }

    pub(super) fn frame_of<'a>(&'a self, visit: &'a Visit, tab: Tab) -> Result<Frame<'a>, Problem> {
        Ok(Frame { reader: Some(visit.session()?.reader()), ..self.frame(tab) })
    }

    /// Begins a page that changes while somebody looks.
    pub(super) fn live_frame<'a>(&'a self, visit: &'a Visit, tab: Tab) -> Result<Frame<'a>, Problem> {
        Ok(Frame { live: Some(&self.live), ..self.frame_of(visit, tab)? })
    }
}

/// Returns the decision that was just recorded.
fn recorded_message(address: &Address) -> Option<Recorded<'_>> {
    let word = address.query("recorded")?;
    let is_plain =
        |name: &&str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    Some(Recorded { sentence: sentence_of(word)?, word, about: address.query("about").filter(is_plain) })
}

/// Says what was recorded, in words of a closed list.
fn sentence_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "approve" => "Recorded: approve. The run goes on.",
        "reject" => "Recorded: reject.",
        "retry" => "Recorded: retry. Another attempt begins, with your note in its prompt.",
        "skip" => "Recorded: skip. The step is left out.",
        "waive" => "Recorded: waive. The step counts as met, on record as yours.",
        "abort" | "cancel" => "Recorded: the run is ended for good.",
        "revise" => "Recorded: revise. The run is paused until a changed plan is approved.",
        "reassign" => "Recorded: reassign. Another role tries.",
        "raise" => "Recorded: raise. The budget is larger now.",
        "answer" => "Recorded: your answer. Its worker goes on.",
        "allow" => "Recorded: allow. The contract judges what was done.",
        "restore" => "Recorded: restore. The approved copies are put back.",
        "choose" => "Recorded: your choice.",
        "edit" => "Recorded: the changed plan is approved, and the run goes on with it.",
        "vote" => "Recorded: your vote. More are needed.",
        "hand-in" => "The plan is handed in. It runs once it is approved.",
        "run" => "Recorded: the plan runs.",
        "pause" => "Recorded: the run is paused.",
        "resume" => "Recorded: the run is taken up.",
        "acknowledge" => "Recorded: the failure is acknowledged.",
        "worker" => "Recorded.",
        "delivery" => "Recorded: the message is sent again.",
        "revoke" => "Recorded: the token is revoked.",
        _ => return None,
    })
}

async fn home(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let chosen = |name: &str| address.query(name).filter(|value| !value.is_empty());
    let filters = Filters { kind: chosen("kind"), project: chosen("project"), role: chosen("role") };
    let most = if filters.are_none() { ASKS } else { FILTERED_ASKS };
    let asks: AskList = visit.look(&format!("/v1/approvals?limit={most}")).await?;
    let project = filters.project.map(|path| format!("&workspace={}", encoded(path))).unwrap_or_default();
    let list: RunList = visit.look(&format!("/v1/runs?limit={RUNS}{project}")).await?;
    let today: SpentToday = visit.look(&format!("/v1/spent-today{}", project.replacen('&', "?", 1))).await?;
    let (texts, key) = (Texts::of(address), visit.new_key());
    let form = visit.session()?.form(&key);
    let frame = Frame { recorded: recorded_message(address), ..texts.live_frame(visit, Tab::Home)? };
    Ok(HomeScreen::new(frame, (&asks, &list), &today, filters, form).html())
}

async fn runs(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let chosen = |name: &str| address.query(name).filter(|value| !value.is_empty());
    let filters = RunFilters { state: chosen("state"), plan: chosen("plan"), project: chosen("project") };
    let cursor = chosen("cursor");
    let wanted = [
        ("state", filters.state),
        ("plan", filters.plan),
        ("workspace", filters.project),
        ("cursor", cursor),
    ];
    let wanted = wanted.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", encoded(value?))));
    let list: RunList = visit.look(&format!("/v1/runs?limit={RUNS}{}", wanted.collect::<String>())).await?;
    let texts = Texts::of(address);
    Ok(RunsScreen::new(texts.frame_of(visit, Tab::Runs)?, &list, cursor.is_none(), filters).html())
}

/// Finds the id of a run by what an address names.
pub(super) async fn id_of(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    let named = format!("/v1/runs/{}/name{}", encoded(run), address.query_of(&["workspace"]));
    let name: RunName = visit.look(&named).await?;
    Ok(name.id)
}

/// Finds a run by what an address names; returns its route.
pub(super) async fn route_of(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    Ok(format!("/v1/runs/{}", id_of(visit, address, run).await?))
}

async fn one_run(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    let route = route_of(visit, address, run).await?;
    let from = address.number::<u32>("from").filter(|from| *from > 0);
    let from = from.map(|from| format!("?from={from}")).unwrap_or_default();
    let page: RunPage = visit.look(&format!("{route}/page{from}")).await?;
    let events: Vec<EventLine> = visit.look(&format!("{route}/history?newest={EVENTS}")).await?;
    let texts = Texts::of(address);
    let frame = Frame { recorded: recorded_message(address), ..texts.live_frame(visit, Tab::Runs)? };
    let (path, query, key) = (address.path_of(2), address.query_of(&["workspace"]), visit.new_key());
    let form = visit.session()?.form(&key);
    Ok(RunScreen::new(frame, &page, &events, (&path, &query), form).html())
}

async fn graph(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    let route = route_of(visit, address, run).await?;
    let (path, query) = (address.path_of(2), address.query_of(&["workspace"]));
    let picture = format!("{route}/picture{}", address.query_of(&["workspace", "at"]));
    let view: PictureView = visit.look(&picture).await?;
    let texts = Texts::of(address);
    let (frame, is_chosen) = (texts.live_frame(visit, Tab::Runs)?, address.query("at").is_some());
    Ok(GraphScreen { frame, view: &view, is_chosen, path: &path, query: &query }.html())
}

async fn timeline(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    let route = route_of(visit, address, run).await?;
    let (path, query) = (address.path_of(2), address.query_of(&["workspace"]));
    let view: TimelineView = visit.look(&format!("{route}/timeline")).await?;
    let texts = Texts::of(address);
    let frame = texts.live_frame(visit, Tab::Runs)?;
    Ok(TimelineScreen::new(frame, &view, (&path, &query)).html())
}

async fn one_step(visit: &Visit, address: &Address, run: &str, step: &str) -> Result<String, Problem> {
    let route = route_of(visit, address, run).await?;
    let why: WhyView = visit.look(&format!("{route}/why/{}", encoded(step))).await?;
    let before = address.number("before");
    let window = AttemptWindow::of(why.attempts.len(), before);
    let attempts = attempts(visit, &route, why.step.number, window).await?;
    let texts = Texts::of(address);
    let (path, query) = (address.path_of(2), address.query_of(&["workspace"]));
    let frame = texts.live_frame(visit, Tab::Runs)?;
    Ok(StepScreen::new(frame, &why, (&attempts, window), (&path, &query)).html())
}

/// Reads attempts of a step; a node that is none has no attempts.
async fn attempts(
    visit: &Visit,
    route: &str,
    step: u32,
    window: AttemptWindow,
) -> Result<Vec<AttemptView>, Problem> {
    if step == 0 {
        return Ok(Vec::new());
    }
    let from = match window.first {
        0 => String::new(),
        first => format!("&cursor={}", encoded(&LogView::cursor(first))),
    };
    let logs: LogView = visit.look(&format!("{route}/logs?step={step}&limit={}{from}", window.read)).await?;
    Ok(logs.attempts)
}

/// Shows the history of a run: the newest lines, else those before a line, or after one.
async fn history(visit: &Visit, address: &Address, run: &str) -> Result<String, Problem> {
    let route = route_of(visit, address, run).await?;
    let name: RunName = visit.look(&format!("{route}/name")).await?;
    let before = address.number::<u64>("before").filter(|before| *before > 1);
    let since = address.number::<u64>("since");
    let wanted = match (before, since) {
        (Some(before), _) => {
            let since = before.saturating_sub(HISTORY_LINES + 1);
            format!("since={since}&limit={}", before - 1 - since)
        }
        (None, Some(since)) => format!("since={since}&limit={HISTORY_LINES}"),
        (None, None) => format!("newest={HISTORY_LINES}"),
    };
    let is_newest = before.is_none() && since.is_none();
    let events: Vec<EventLine> = visit.look(&format!("{route}/history?{wanted}")).await?;
    let texts = Texts::of(address);
    let (path, query) = (address.path_of(2), address.query_of(&["workspace"]));
    let frame = texts.frame_of(visit, Tab::Runs)?;
    Ok(HistoryScreen::new(frame, (&name.run, &events), is_newest, (&path, &query)).html())
}

/// Draws an ask, with what its reader filled in and why that was refused.
pub(super) fn one_ask(
    visit: &Visit,
    address: &Address,
    page: &AskPage,
    draft: &Draft,
    refused: Option<&Problem>,
) -> Result<String, Problem> {
    let texts = Texts::of(address);
    let key = visit.new_key();
    let form = visit.session()?.form(&key);
    let frame = Frame { recorded: recorded_message(address), ..texts.frame_of(visit, Tab::Home)? };
    Ok(AskScreen::new(frame, page, form, (draft, refused)).html())
}

async fn plans(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let cursor = address.query("cursor");
    let after = cursor.map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
    let list: PlanList = visit.look(&format!("/v1/plans?limit=100{after}")).await?;
    let texts = Texts::of(address);
    Ok(PlansScreen { frame: texts.frame_of(visit, Tab::Plans)?, list: &list }.html())
}

async fn one_plan(visit: &Visit, address: &Address, plan: &str) -> Result<String, Problem> {
    let route = format!("/v1/plans/{}", encoded(plan));
    let summary: PlanSummary = visit.look(&route).await?;
    let digest = address.query("digest").unwrap_or(&summary.digest);
    let revision: RevisionPage = visit.look(&format!("{route}/revisions/{}", encoded(digest))).await?;
    let findings = format!("{route}/revisions/{}/findings", encoded(digest));
    let findings = visit.look::<PlanFindings>(&findings).await;
    let revisions: RevisionList = visit.look(&format!("{route}/revisions?limit=20")).await?;
    let workspace = encoded(&summary.workspace);
    let runs: RunList = visit.look(&format!("/v1/runs?limit={RUNS_OF_PLAN}&workspace={workspace}")).await?;
    let texts = Texts::of(address);
    let frame = texts.frame_of(visit, Tab::Plans)?;
    let key = visit.new_key();
    let form = visit.session()?.form(&key);
    let part = address.number("part");
    let shown = (&revision, part, &revisions);
    Ok(PlanScreen::new(frame, &summary, shown, findings.as_ref(), &runs, form).html())
}

async fn system(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let service: ServiceView = visit.look("/v1/daemon").await?;
    let database: DatabaseView = visit.look("/v1/database").await?;
    let roles: RoleWorkList = visit.look("/v1/roles?limit=100").await?;
    let workers: WorkerList = visit.look("/v1/workers?limit=100").await?;
    let deliveries: DeliveryList = visit.look(&format!("/v1/deliveries?limit={DELIVERIES}")).await?;
    let decisions: DecisionLog = visit.look(&format!("/v1/decisions?limit={DECISIONS}")).await?;
    let session = visit.session()?;
    let tokens: Option<TokenList> = match session.is_admin() {
        true => Some(visit.look("/v1/tokens?limit=500").await?),
        false => None,
    };
    let texts = Texts::of(address);
    let key = visit.new_key();
    let form = session.form(&key).filter(|_| session.is_admin());
    let frame = Frame { recorded: recorded_message(address), ..texts.live_frame(visit, Tab::System)? };
    Ok(SystemScreen::new(
        frame,
        (&service, &database),
        (&roles, &workers),
        (&deliveries, &decisions),
        tokens.as_ref(),
        form,
    )
    .html())
}

async fn doctor(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let found: DoctorView = visit.get("/v1/doctor").await?;
    let texts = Texts::of(address);
    Ok(DoctorScreen { frame: texts.frame_of(visit, Tab::System)?, found: &found }.html())
}
