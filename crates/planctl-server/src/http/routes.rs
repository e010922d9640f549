//! The table of routes: method, path, scope, what it takes and answers. There is no other list.

mod route;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{MethodFilter, on};
use futures_util::future::BoxFuture;

use super::parameters::{
    AT, ATTEMPT, CURSOR, FAILED, FORM, FROM, KEY, LAST_EVENT_ID, LIMIT, LINES, MESSAGE, NEWEST, OF_WORKSPACE,
    PLAN, Parameter, RUN, SINCE, STATE, STEP, WAIT, WORKSPACE,
};
use super::problem::response_of;
use super::{
    Answer, ApiState, Call, Scope, approvals, claims, drafting, events, guard, items, mcp, messages, metrics,
    page, plans, runs, sessions, system,
};
use planctl_api::wire;
use planctl_api::wire::calls;
use planctl_api::{Code, Next, Problem};
pub use route::{Answers, Body, Route, Verb};

/// How large a body may be where nothing else is said.
const BODY_BYTES_MAX: usize = 1 << 20;
/// A plan of 1 MiB as a JSON string, at its worst.
const PLAN_BODY_BYTES_MAX: usize = 7 << 20;

macro_rules! handler {
    ($handler:path) => {
        |call| Box::pin($handler(call))
    };
}

const fn get(
    path: &'static str,
    needs: Scope,
    summary: &'static str,
    query: &'static [Parameter],
    answers: Answers,
    handler: fn(Call) -> BoxFuture<'static, Answer>,
) -> Route {
    Route {
        verb: Verb::Get,
        path,
        needs,
        summary,
        query,
        headers: &[],
        takes: None,
        answers,
        is_keyed: false,
        is_decision: false,
        is_of_sessions: false,
        body_bytes_max: 0,
        handler,
    }
}

/// A mutation that is safe to repeat under its key.
const fn post(
    path: &'static str,
    needs: Scope,
    summary: &'static str,
    takes: Option<Body>,
    answers: Answers,
    handler: fn(Call) -> BoxFuture<'static, Answer>,
) -> Route {
    Route {
        verb: Verb::Post,
        path,
        needs,
        summary,
        query: &[],
        headers: &[],
        takes,
        answers,
        is_keyed: true,
        is_decision: false,
        is_of_sessions: false,
        body_bytes_max: BODY_BYTES_MAX,
        handler,
    }
}

/// All routes.
pub static ROUTES: &[Route] = &[
    // The daemon itself.
    get(
        "/healthz",
        Scope::Nobody,
        "Is it alive: its loops turn",
        &[],
        Answers::health::<wire::daemon::DaemonHealthView>(),
        handler!(system::live),
    ),
    get(
        "/readyz",
        Scope::Nobody,
        "Is it ready: the database answers",
        &[],
        Answers::health::<wire::daemon::DaemonHealthView>(),
        handler!(system::ready),
    ),
    get(
        "/metrics",
        Scope::Read,
        "Figures in the OpenMetrics format",
        &[],
        Answers::Text("application/openmetrics-text"),
        handler!(metrics::metrics),
    ),
    get(
        "/v1/openapi.json",
        Scope::Nobody,
        "This document",
        &[],
        Answers::json::<serde_json::Map<String, serde_json::Value>>(),
        handler!(system::openapi),
    ),
    get(
        "/v1/problems",
        Scope::Nobody,
        "The codes of problems, and what they mean",
        &[],
        Answers::json::<Vec<calls::ProblemView>>(),
        handler!(system::problems),
    ),
    get(
        "/v1/daemon",
        Scope::Read,
        "The daemon, and its activity",
        &[],
        Answers::json::<wire::work::ServiceView>(),
        handler!(system::daemon),
    ),
    get(
        "/v1/database",
        Scope::Read,
        "How the database is",
        &[],
        Answers::json::<wire::DatabaseView>(),
        handler!(system::database),
    ),
    get(
        "/v1/doctor",
        Scope::Admin,
        "Looks at the daemon's machine for everything that planctl needs, once in ten seconds",
        &[],
        Answers::json::<wire::DoctorView>(),
        handler!(system::doctor),
    ),
    // Agents.
    post(
        "/mcp",
        Scope::Known,
        "A request of the Model Context Protocol; each tool needs the scope of the routes that it calls",
        Some(Body::of::<serde_json::Map<String, serde_json::Value>>()),
        Answers::json_or_nothing::<serde_json::Map<String, serde_json::Value>>(),
        handler!(mcp::serve),
    )
    .of_a_plan()
    .unkeyed(),
    post(
        "/v1/page/link",
        Scope::Admin,
        "Makes a link that signs the caller in to the page, once; opens the page's port",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<wire::PageLink>(),
        handler!(page::link),
    )
    .unkeyed()
    .decision(),
    // Plans.
    get(
        "/v1/plans",
        Scope::Read,
        "Lists plans that were approved or run, the newest first",
        &[WORKSPACE, LIMIT, CURSOR],
        Answers::json::<wire::PlanList>(),
        handler!(plans::list),
    ),
    get(
        "/v1/plans/{plan}",
        Scope::Read,
        "Where a plan stands",
        &[WORKSPACE],
        Answers::json::<wire::PlanSummary>(),
        handler!(plans::show),
    ),
    get(
        "/v1/plans/{plan}/revisions",
        Scope::Read,
        "The kept texts of a plan, newest first",
        &[WORKSPACE, LIMIT, CURSOR],
        Answers::json::<wire::RevisionList>(),
        handler!(plans::revisions),
    ),
    get(
        "/v1/plans/{plan}/revisions/{digest}",
        Scope::Read,
        "One kept text of a plan",
        &[WORKSPACE],
        Answers::json::<wire::RevisionPage>(),
        handler!(plans::revision),
    ),
    get(
        "/v1/plans/{plan}/revisions/{digest}/findings",
        Scope::Read,
        "Verifies a kept text where its plan lies; writes nothing",
        &[WORKSPACE],
        Answers::json::<wire::PlanFindings>(),
        handler!(plans::findings),
    ),
    post(
        "/v1/plans/verify",
        Scope::Approve,
        "Verifies a plan; writes nothing",
        Some(Body::of::<calls::PlanCall>()),
        Answers::json::<planctl_lang::Report>(),
        handler!(plans::verify),
    )
    .of_a_plan()
    .unkeyed(),
    post(
        "/v1/plans/standing",
        Scope::Approve,
        "Says where a plan stands; writes nothing",
        Some(Body::of::<calls::StandingCall>()),
        Answers::json::<calls::StandingView>(),
        handler!(plans::standing),
    )
    .of_a_plan()
    .unkeyed(),
    post(
        "/v1/plans/diff",
        Scope::Approve,
        "Compares two texts of a plan by what they mean; writes nothing",
        Some(Body::of::<calls::DiffCall>()),
        Answers::json::<wire::PlanDiffView>(),
        handler!(plans::diff),
    )
    .of_a_plan()
    .unkeyed(),
    post(
        "/v1/plans/approve",
        Scope::Approve,
        "Approves a verified plan",
        Some(Body::of::<calls::DecideCall>()),
        Answers::json::<wire::Decided>(),
        handler!(plans::approve),
    )
    .of_a_plan()
    .decision(),
    post(
        "/v1/plans/reject",
        Scope::Approve,
        "Rejects a plan: it is a draft again",
        Some(Body::of::<calls::DecideCall>()),
        Answers::json::<wire::Decided>(),
        handler!(plans::reject),
    )
    .of_a_plan()
    .decision(),
    post(
        "/v1/plans/{plan}/run",
        Scope::Approve,
        "Runs a known plan as its file has it, under the configuration that it has there",
        Some(Body::of::<calls::RunKnownCall>()),
        Answers::json::<calls::StartedView>(),
        handler!(plans::run),
    )
    .with_query(&[WORKSPACE])
    .decision(),
    // Runs.
    post(
        "/v1/runs",
        Scope::Approve,
        "Starts a run of a plan, or takes up the one that is not finished",
        Some(Body::of::<calls::StartCall>()),
        Answers::json::<calls::StartedView>(),
        handler!(runs::start),
    )
    .of_a_plan()
    .decision()
    .of_sessions(),
    get(
        "/v1/runs",
        Scope::Read,
        "Lists runs, newest first",
        &[WORKSPACE, PLAN, STATE, LIMIT, CURSOR],
        Answers::json::<wire::RunList>(),
        handler!(runs::list),
    ),
    get(
        "/v1/spent-today",
        Scope::Read,
        "What runs used today, those of a workspace or all; the day is the daemon's",
        &[WORKSPACE],
        Answers::json::<wire::SpentToday>(),
        handler!(runs::spent_today),
    ),
    get(
        "/v1/decisions",
        Scope::Read,
        "Lists the decisions of people and rules, of all runs, newest first",
        &[LIMIT],
        Answers::json::<wire::DecisionLog>(),
        handler!(runs::decisions),
    ),
    get(
        "/v1/runs/{run}",
        Scope::Read,
        "Where a run stands",
        &[WORKSPACE],
        Answers::json::<wire::RunView>(),
        handler!(runs::status),
    ),
    get(
        "/v1/runs/{run}/page",
        Scope::Read,
        "Where a run stands, with a hundred of its steps",
        &[WORKSPACE, FROM],
        Answers::json::<wire::RunPage>(),
        handler!(runs::page),
    ),
    get(
        "/v1/runs/{run}/picture",
        Scope::Read,
        "The graph of a run as SVG that says where each node stands; of a large one a part",
        &[WORKSPACE, AT],
        Answers::json::<wire::PictureView>(),
        handler!(runs::picture),
    ),
    get(
        "/v1/runs/{run}/timeline",
        Scope::Read,
        "The newest part of a run over time: attempts, gates and waits",
        &[WORKSPACE],
        Answers::json::<wire::TimelineView>(),
        handler!(runs::timeline),
    ),
    get(
        "/v1/runs/{run}/name",
        Scope::Read,
        "The id and name of the run that is meant",
        &[WORKSPACE],
        Answers::json::<calls::RunName>(),
        handler!(runs::name),
    ),
    get(
        "/v1/runs/{run}/plan",
        Scope::Read,
        "The plan as the run executes it",
        &[WORKSPACE],
        Answers::json::<calls::RunPlanView>(),
        handler!(runs::plan),
    ),
    get(
        "/v1/runs/{run}/history",
        Scope::Read,
        "Lines of a run's history after a place, or its newest; waits for some where there are none",
        &[WORKSPACE, SINCE, LINES, NEWEST, WAIT],
        Answers::json::<Vec<wire::EventLine>>(),
        handler!(runs::history),
    ),
    get(
        "/v1/runs/{run}/logs",
        Scope::Read,
        "The attempts of a run's steps",
        &[WORKSPACE, STEP, ATTEMPT, LIMIT, CURSOR],
        Answers::json::<wire::LogView>(),
        handler!(runs::logs),
    ),
    get(
        "/v1/runs/{run}/output",
        Scope::Read,
        "What workers and contracts of a run printed after a place, while they work, too",
        &[WORKSPACE, SINCE],
        Answers::json::<wire::OutputView>(),
        handler!(runs::output),
    ),
    get(
        "/v1/runs/{run}/prompts",
        Scope::Read,
        "The prompts that the daemon's machine delivered to agents of a run",
        &[WORKSPACE, STEP, ATTEMPT],
        Answers::json::<wire::PromptList>(),
        handler!(runs::prompts),
    ),
    get(
        "/v1/runs/{run}/salute",
        Scope::Read,
        "The SALUTE report of a run: size, activity, location, unit, time, equipment",
        &[WORKSPACE],
        Answers::json::<wire::SaluteView>(),
        handler!(runs::salute),
    ),
    get(
        "/v1/runs/{run}/traversal",
        Scope::Read,
        "Where a run is on its way through its graph, with its newest events",
        &[WORKSPACE],
        Answers::json::<wire::TraversalView>(),
        handler!(runs::traversal),
    ),
    get(
        "/v1/runs/{run}/checkpoint",
        Scope::Read,
        "The checkpoint that a run is resumed from: nodes, outcomes, visits, context",
        &[WORKSPACE],
        Answers::json::<wire::CheckpointView>(),
        handler!(runs::checkpoint),
    ),
    get(
        "/v1/runs/{run}/follow-up",
        Scope::Read,
        "The run that follows a run that is done (`then`), or why none does",
        &[WORKSPACE],
        Answers::json::<wire::FollowUpView>(),
        handler!(runs::follow_up),
    ),
    get(
        "/v1/runs/{run}/why/{step}",
        Scope::Read,
        "Why a step is where it is: its number, or the name of any node",
        &[WORKSPACE],
        Answers::json::<wire::WhyView>(),
        handler!(runs::why),
    ),
    get(
        "/v1/runs/{run}/context",
        Scope::Read,
        "The context of an agent that drives itself: `form` is long, compact or workflow",
        &[WORKSPACE, FORM],
        Answers::json::<wire::ContextView>(),
        handler!(runs::context),
    ),
    get(
        "/v1/runs/{run}/session",
        Scope::Read,
        "What an interactive agent is to do now; waits until there is something, or a person is asked, or the run is over",
        &[WORKSPACE, WAIT],
        Answers::json::<wire::SessionView>(),
        handler!(sessions::show),
    ),
    post(
        "/v1/runs/{run}/session/turn",
        Scope::Approve,
        "Says that an interactive agent ended its turn; the contract decides",
        Some(Body::of::<calls::TurnCall>()),
        Answers::json::<calls::AcceptedView>(),
        handler!(sessions::end_turn),
    )
    .with_query(&[WORKSPACE])
    .unkeyed(),
    get(
        "/v1/runs/{run}/audit",
        Scope::Read,
        "Checks the history of a run",
        &[WORKSPACE],
        Answers::json::<wire::AuditView>(),
        handler!(runs::audit_one),
    ),
    get(
        "/v1/runs/{run}/bundle",
        Scope::Read,
        "A part of a run's whole evidence, for an audit elsewhere",
        &[WORKSPACE, SINCE],
        Answers::json::<wire::BundlePage>(),
        handler!(runs::bundle),
    ),
    post(
        "/v1/runs/{run}/resume",
        Scope::Approve,
        "Takes a failed or paused run up",
        Some(Body::of::<calls::ResumeCall>()),
        Answers::json::<wire::Decided>(),
        handler!(runs::resume),
    )
    .decision(),
    post(
        "/v1/runs/{run}/pause",
        Scope::Approve,
        "Pauses a run until it is resumed, or another revision of its plan is approved",
        Some(Body::of::<calls::PauseCall>()),
        Answers::json::<wire::Decided>(),
        handler!(runs::pause),
    )
    .with_query(&[WORKSPACE])
    .decision(),
    post(
        "/v1/runs/{run}/cancel",
        Scope::Approve,
        "Cancels a run for good",
        Some(Body::of::<calls::CancelCall>()),
        Answers::json::<wire::Decided>(),
        handler!(runs::cancel),
    )
    .with_query(&[WORKSPACE])
    .decision(),
    post(
        "/v1/runs/{run}/acknowledge",
        Scope::Approve,
        "Acknowledges that a run failed: it needs nobody any more, and stays as it is",
        Some(Body::of::<calls::AcknowledgeCall>()),
        Answers::json::<wire::Decided>(),
        handler!(runs::acknowledge),
    )
    .with_query(&[WORKSPACE])
    .decision(),
    get(
        "/v1/audit",
        Scope::Read,
        "Checks every history, those of the newest runs first",
        &[LIMIT, CURSOR],
        Answers::json::<wire::AuditView>(),
        handler!(runs::audit),
    ),
    get(
        "/v1/events",
        Scope::Read,
        "A run's history as server-sent events; goes on from Last-Event-ID",
        &[RUN, WORKSPACE, SINCE],
        Answers::TextOrNothing("text/event-stream"),
        handler!(events::stream),
    )
    .with_headers(&[LAST_EVENT_ID]),
    // Approvals.
    get(
        "/v1/approvals",
        Scope::Read,
        "The asks that wait for a person",
        &[RUN, WORKSPACE, LIMIT, CURSOR],
        Answers::json::<wire::AskList>(),
        handler!(approvals::list),
    ),
    get(
        "/v1/approvals/{ask}",
        Scope::Read,
        "One ask, with what a person needs to decide it",
        &[],
        Answers::json::<wire::AskPage>(),
        handler!(approvals::show),
    ),
    post(
        "/v1/approvals/{ask}/answer",
        Scope::Approve,
        "Answers an ask",
        Some(Body::of::<calls::AnswerCall>()),
        Answers::json::<wire::Decided>(),
        handler!(approvals::answer),
    )
    .decision(),
    post(
        "/v1/drafts/asks",
        Scope::Approve,
        "Opens the asks that a draft waits for, and says where they stand",
        Some(Body::of::<wire::draft_asks::DraftAsksCall>()),
        Answers::json::<wire::draft_asks::DraftAsksView>(),
        handler!(approvals::open_draft_asks),
    )
    .of_a_plan(),
    get(
        "/v1/drafts/{draft}",
        Scope::Approve,
        "A draft as it was kept last, for the command that goes on with it",
        &[WORKSPACE],
        Answers::json::<wire::draft_records::DraftRecordView>(),
        handler!(approvals::draft_record),
    ),
    post(
        "/v1/drafts/{draft}",
        Scope::Approve,
        "Keeps a draft over the version that the caller knows",
        Some(Body::of::<wire::draft_records::DraftRecordCall>()),
        Answers::json::<wire::draft_records::DraftVersionView>(),
        handler!(approvals::keep_draft),
    )
    .of_a_plan(),
    post(
        "/v1/drafts/{draft}/take",
        Scope::Approve,
        "Makes a draft of the same workspace on another machine one of this machine, with its asks",
        Some(Body::of::<wire::draft_records::DraftTakeCall>()),
        Answers::json::<wire::draft_records::DraftVersionView>(),
        handler!(approvals::take_draft),
    ),
    get(
        "/v1/drafting",
        Scope::Approve,
        "The drafts that the daemon writes, and who may write others in a workspace",
        &[WORKSPACE],
        Answers::json::<wire::drafting::DraftingList>(),
        handler!(drafting::list),
    ),
    post(
        "/v1/drafting",
        Scope::Approve,
        "Drafts a plan, or goes on with a draft; approves and runs nothing",
        Some(Body::of::<wire::drafting::DraftingCall>()),
        Answers::json::<wire::drafting::DraftingView>(),
        handler!(drafting::begin),
    )
    .decision(),
    get(
        "/v1/drafting/{drafting}",
        Scope::Approve,
        "Where a draft stands that the daemon writes, or wrote since it began",
        &[],
        Answers::json::<wire::drafting::DraftingView>(),
        handler!(drafting::show),
    ),
    post(
        "/v1/drafting/{drafting}/stop",
        Scope::Approve,
        "Asks the writer of a draft to stop; what was answered is kept",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<wire::drafting::DraftingView>(),
        handler!(drafting::stop),
    )
    .decision(),
    get(
        "/v1/approvals/{ask}/edit",
        Scope::Approve,
        "The plan that an ask lets a person edit, with the step that a worker proposes",
        &[],
        Answers::json::<wire::PlanEditView>(),
        handler!(approvals::edit),
    ),
    post(
        "/v1/approvals/{ask}/edit/check",
        Scope::Approve,
        "Verifies an edited text and compares it with the one that runs; writes nothing",
        Some(Body::of::<calls::EditCheckCall>()),
        Answers::json::<wire::PlanEditCheck>(),
        handler!(approvals::check_edit),
    )
    .of_a_plan()
    .unkeyed(),
    post(
        "/v1/approvals/{ask}/edit",
        Scope::Approve,
        "Writes an edited text into the plan's file, and lets the run go on with it",
        Some(Body::of::<calls::EditCall>()),
        Answers::json::<wire::Decided>(),
        handler!(approvals::approve_edit),
    )
    .of_a_plan()
    .decision(),
    // Work.
    post(
        "/v1/items/claim",
        Scope::Worker,
        "Claims an item; waits for one for so many seconds",
        Some(Body::of::<calls::ClaimCall>()),
        Answers::json_or_nothing::<calls::ClaimedView>(),
        handler!(claims::claim),
    )
    .with_query(&[WAIT])
    .with_headers(&[KEY])
    .unkeyed(),
    get(
        "/v1/items/{item}",
        Scope::Item,
        "The item that is held",
        &[],
        Answers::json::<calls::ClaimedView>(),
        handler!(items::show),
    ),
    post(
        "/v1/items/{item}/heartbeat",
        Scope::Item,
        "Renews the lease, and tells of a cancellation; waits for one for so many seconds",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<calls::HeartbeatView>(),
        handler!(items::heartbeat),
    )
    .with_query(&[WAIT])
    .unkeyed(),
    post(
        "/v1/items/{item}/complete",
        Scope::Item,
        "Reports that the work ended; the contract decides",
        Some(Body::of::<calls::CompleteCall>()),
        Answers::json::<calls::AcceptedView>(),
        handler!(items::complete),
    )
    .unkeyed(),
    post(
        "/v1/items/{item}/fail",
        Scope::Item,
        "Says why the work could not be done",
        Some(Body::of::<calls::FailCall>()),
        Answers::json::<calls::AcceptedView>(),
        handler!(items::fail),
    )
    .unkeyed(),
    post(
        "/v1/items/{item}/ask",
        Scope::Item,
        "Asks a person something; the worker is free",
        Some(Body::of::<calls::AskCall>()),
        Answers::json::<calls::AcceptedView>(),
        handler!(items::ask),
    )
    .unkeyed(),
    post(
        "/v1/items/{item}/release",
        Scope::Item,
        "Gives the item back untouched",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<calls::AcceptedView>(),
        handler!(items::release),
    )
    .unkeyed(),
    post(
        "/v1/items/{item}/log",
        Scope::Item,
        "Adds to what people who watch see",
        Some(Body::of::<calls::LogCall>()),
        Answers::Nothing,
        handler!(items::log),
    )
    .unkeyed(),
    post(
        "/v1/items/{item}/usage",
        Scope::Item,
        "Says what was used so far",
        Some(Body::of::<calls::UsageCall>()),
        Answers::Nothing,
        handler!(items::usage),
    )
    .unkeyed(),
    // The library.
    get(
        "/v1/library",
        Scope::Read,
        "The library of a workspace: its entries, how often their plans succeed, and what a message finds",
        &[OF_WORKSPACE, MESSAGE],
        Answers::json::<wire::LibraryPage>(),
        handler!(plans::library),
    ),
    get(
        "/v1/library/runs",
        Scope::Read,
        "How the newest runs of plans that were made of the library's entries ended",
        &[OF_WORKSPACE],
        Answers::json::<wire::LibraryRuns>(),
        handler!(plans::library_runs),
    ),
    // Topics.
    get(
        "/v1/topics",
        Scope::Read,
        "The topics, by name",
        &[LIMIT, CURSOR],
        Answers::json::<wire::TopicList>(),
        handler!(system::topics),
    ),
    get(
        "/v1/topics/{topic}",
        Scope::Read,
        "Notes of a topic after a number",
        &[SINCE, LINES],
        Answers::json::<wire::TopicView>(),
        handler!(system::topic),
    ),
    post(
        "/v1/topics/{topic}",
        Scope::Approve,
        "Leaves a note in a topic",
        Some(Body::of::<calls::NoteCall>()),
        Answers::json::<wire::TopicView>(),
        handler!(system::post_note),
    ),
    post(
        "/v1/worktrees/clean",
        Scope::Admin,
        "Removes worktrees of runs that are over",
        Some(Body::of::<wire::CleanCall>()),
        Answers::json::<wire::CleanView>(),
        handler!(system::clean),
    )
    .decision(),
    // Messages to people.
    get(
        "/v1/channels",
        Scope::Read,
        "The channels of a workspace, without their secrets",
        &[OF_WORKSPACE],
        Answers::json::<wire::messages::ChannelList>(),
        handler!(messages::channels),
    ),
    post(
        "/v1/channels/test",
        Scope::Approve,
        "Sends a test message on the channels of a workspace",
        Some(Body::of::<wire::messages::ChannelTestCall>()),
        Answers::json::<wire::messages::ChannelTests>(),
        handler!(messages::test_channels),
    )
    .decision()
    .unkeyed(),
    get(
        "/v1/deliveries",
        Scope::Read,
        "What became of messages on their channels, the newest first",
        &[WORKSPACE, FAILED, LIMIT, CURSOR],
        Answers::json::<wire::messages::DeliveryList>(),
        handler!(messages::deliveries),
    ),
    post(
        "/v1/deliveries/{delivery}/replay",
        Scope::Approve,
        "Has a message delivered once more",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<wire::messages::DeliveryView>(),
        handler!(messages::replay),
    )
    .decision(),
    // Workers and tokens.
    get(
        "/v1/roles",
        Scope::Read,
        "Roles that have work out or workers: what waits, and who does it",
        &[LIMIT, CURSOR],
        Answers::json::<wire::RoleWorkList>(),
        handler!(system::roles),
    ),
    get(
        "/v1/workers",
        Scope::Read,
        "The workers that were seen",
        &[LIMIT, CURSOR],
        Answers::json::<wire::work::WorkerList>(),
        handler!(system::workers),
    ),
    post(
        "/v1/workers/{worker}/pause",
        Scope::Admin,
        "Lets a worker claim nothing",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<wire::work::WorkerView>(),
        handler!(system::pause_worker),
    )
    .decision(),
    post(
        "/v1/workers/{worker}/resume",
        Scope::Admin,
        "Lets a paused worker claim again",
        Some(Body::of::<calls::Nothing>()),
        Answers::json::<wire::work::WorkerView>(),
        handler!(system::resume_worker),
    )
    .decision(),
    get(
        "/v1/tokens",
        Scope::Admin,
        "The tokens, without their secrets",
        &[LIMIT, CURSOR],
        Answers::json::<wire::work::TokenList>(),
        handler!(system::tokens),
    ),
    post(
        "/v1/tokens",
        Scope::Admin,
        "Makes a token; its secret is shown this once",
        Some(Body::of::<wire::work::TokenCall>()),
        Answers::json::<wire::work::TokenMade>(),
        handler!(system::create_token),
    )
    .decision(),
    post(
        "/v1/tokens/{token}",
        Scope::Admin,
        "Revokes a token",
        None,
        Answers::json::<wire::work::TokenView>(),
        handler!(system::revoke_token),
    )
    .delete()
    .decision(),
];

/// Makes the router from the table.
pub(super) fn router(api: &ApiState) -> Router {
    let mut router: Router<ApiState> = Router::new();
    for route in ROUTES {
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        };
        let handler =
            move |State(api): State<ApiState>, request: Request| guard::guarded(api, route, request);
        router = router.route(route.path, on(filter, handler));
    }
    router
        .fallback(|| async {
            response_of(&Problem::new(Code::NotFound, "there is no such route").next(Next::ReadApi))
        })
        .method_not_allowed_fallback(|| async {
            response_of(&Problem::new(
                Code::MethodNotAllowed,
                "this route has no such method; the header Allow names those it has",
            ))
        })
        .with_state(api.clone())
}
