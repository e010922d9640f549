//! The daemon itself: health, workers, tokens.

use std::sync::LazyLock;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use planctl_engine::Role;
use planctl_store::{NewToken, NewlyMade, Page, RoleRow, StoreError, TokenRow, TokenScope, WorkerRow};
use serde_json::Value;

use super::claims::refuse_roles;
use super::guard::{Repeated, Scope, actor_of_person};
use super::parameters::{LINES, LINES_MAX, SINCE};
use super::problem::{of_listed, of_store};
use super::{Answer, Call, json, name};
use crate::runs::worked_on::ONLINE;
use crate::workspaces::worktrees::Cleaning;
use planctl_api::wire::calls::{NoteCall, Nothing, ProblemView};
use planctl_api::wire::daemon::{DaemonHealthView, DaemonState};
use planctl_api::wire::work::{
    ItemCounts, ServiceView, TokenCall, TokenList, TokenMade, TokenView, WorkerItem, WorkerList, WorkerView,
};
use planctl_api::wire::{CleanCall, Paged, RoleWork, RoleWorkList, TopicList, moment};
use planctl_api::{Code, Next, Problem};

/// The longest that a token may hold where an end is given.
const TOKEN_SECONDS_MAX: u64 = 10 * 365 * 86_400;

pub(super) async fn live(call: Call) -> Answer {
    let view = health_of(&call);
    // Alive means that the loops turn; a database that is away is no reason to be restarted.
    Ok(health(view.is_alive, view))
}

pub(super) async fn ready(call: Call) -> Answer {
    let view = health_of(&call);
    Ok(health(view.state == DaemonState::Running, view))
}

/// Returns how the daemon is. The last error may name paths and plans, which a caller without a token must not see.
fn health_of(call: &Call) -> DaemonHealthView {
    let mut view = call.api.options().health.view();
    if call.principal.scope == Scope::Nobody {
        view.last_error = None;
    }
    view
}

fn health(is_well: bool, view: DaemonHealthView) -> Response {
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    super::json_with(status, &view)
}

pub(super) async fn openapi(_: Call) -> Answer {
    // Anybody may ask, and it is always the same.
    static DOCUMENT: LazyLock<Value> = LazyLock::new(super::openapi);
    json(&*DOCUMENT)
}

pub(super) async fn problems(_: Call) -> Answer {
    let codes = Code::ALL.map(|code| {
        let (word, status, title) = code.meaning();
        ProblemView { kind: format!("/problems/{word}"), status, title: title.to_owned() }
    });
    json(&codes)
}

pub(super) async fn database(call: Call) -> Answer {
    json(&call.services().await?.database().await?)
}

pub(super) async fn doctor(call: Call) -> Answer {
    match &call.api.options().doctor {
        Some(doctor) => json(&doctor.examine().await?),
        None => Err(Problem::new(Code::Conflict, "only a daemon looks at its machine for others")),
    }
}

pub(super) async fn daemon(call: Call) -> Answer {
    let server_node = call.server_node();
    let options = call.api.options();
    json(&ServiceView {
        daemon: options.info(),
        health: options.health.view(),
        host: server_node.host().to_owned(),
        database: server_node.database_line().to_owned(),
        workers: u32::try_from(server_node.store.count_workers_seen(ONLINE).await.map_err(of_store)?)
            .unwrap_or(u32::MAX),
        items: counts(&call).await?,
    })
}

async fn counts(call: &Call) -> Result<ItemCounts, Problem> {
    let counts = call.server_node().store.item_counts().await.map_err(of_store)?;
    Ok(ItemCounts {
        queued: counts.queued,
        working: counts.working,
        gates: counts.gates,
        asks: counts.asks,
        oldest_queued_seconds: counts.oldest_queued.map(|age| age.as_secs()),
    })
}

pub(super) async fn topics(call: Call) -> Answer {
    json(&call.services().await?.topics(&call.page::<TopicList, _>(name)?).await?)
}

pub(super) async fn topic(call: Call) -> Answer {
    let since = call.number(&SINCE)?.unwrap_or(0);
    let limit = call.number(&LINES)?.unwrap_or(LINES_MAX);
    json(&call.services().await?.topic(call.parameter("topic"), since, limit).await?)
}

pub(super) async fn post_note(call: Call) -> Answer {
    let wanted: NoteCall = call.body()?;
    json(&call.services().await?.post_note(call.parameter("topic"), &wanted.text).await?)
}

pub(super) async fn clean(call: Call) -> Answer {
    let CleanCall { workspace, failed, discards, dry_run } = call.body()?;
    let everywhere = workspace.is_none();
    let services = call.services_at(workspace, None, true).await?;
    json(&services.clean(Cleaning { failed, discards, everywhere, dry_run }).await?)
}

pub(super) async fn workers(call: Call) -> Answer {
    let page = call.page::<WorkerList, _>(name)?;
    let workers = call.server_node().store.workers(&page).await.map_err(of_store)?;
    let next = page.next(&workers, |worker| worker.id.clone()).map(WorkerList::cursor);
    json(&WorkerList { workers: workers.iter().map(|worker| worker_view(&call, worker)).collect(), next })
}

pub(super) async fn roles(call: Call) -> Answer {
    let page = call.page::<RoleWorkList, _>(name)?;
    let roles = call.server_node().store.roles(&page, ONLINE).await.map_err(of_store)?;
    let next = page.next(&roles, |role| role.role.as_str().to_owned()).map(RoleWorkList::cursor);
    json(&RoleWorkList { roles: roles.into_iter().map(role_work).collect(), next })
}

fn role_work(role: RoleRow) -> RoleWork {
    RoleWork {
        role: role.role.as_str().to_owned(),
        queued: role.queued,
        served: role.served,
        working: role.working,
        oldest_queued_seconds: role.oldest_queued.map(|age| age.as_secs()),
        workers: role.workers,
    }
}

fn worker_view(call: &Call, worker: &WorkerRow) -> WorkerView {
    let items = worker.holds.iter().map(|held| WorkerItem {
        item: held.item.as_str().to_owned(),
        run: held.run.clone(),
        log: call.api.claims().log(&held.item),
    });
    WorkerView {
        id: worker.id.clone(),
        roles: worker.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        agent: worker.agent.clone(),
        host: worker.host.clone(),
        version: worker.version.clone(),
        capacity: worker.capacity,
        paused: worker.is_paused,
        items: items.collect(),
        last_seen_at: moment(worker.last_seen_at),
    }
}

pub(super) async fn pause_worker(call: Call) -> Answer {
    set_paused(call, true).await
}

pub(super) async fn resume_worker(call: Call) -> Answer {
    set_paused(call, false).await
}

async fn set_paused(call: Call, is_paused: bool) -> Answer {
    let _: Nothing = call.body()?;
    let name = call.parameter("worker").to_owned();
    let missing =
        || Problem::new(Code::NotFound, format!("there is no worker {name:?}")).next(Next::ListWorkers);
    match call.server_node().store.pause_worker(&name, is_paused).await {
        Err(StoreError::NotFound { .. }) => return Err(missing()),
        done => done.map_err(of_store)?,
    }
    let workers = call.server_node().store.workers(&Page::ALL).await.map_err(of_store)?;
    match workers.iter().find(|worker| worker.id == name) {
        Some(worker) => json(&worker_view(&call, worker)),
        None => Err(missing()),
    }
}

pub(super) async fn tokens(call: Call) -> Answer {
    let page = call.page::<TokenList, _>(name)?;
    let tokens = call.server_node().store.tokens(&page).await.map_err(of_store)?;
    let next = page.next(&tokens, |token| token.id.clone()).map(TokenList::cursor);
    json(&TokenList { tokens: tokens.into_iter().map(token_view).collect(), next })
}

pub(super) async fn create_token(call: Call) -> Answer {
    let wanted: TokenCall = call.body()?;
    let bad = |detail: String| Problem::new(Code::BadRequest, detail);
    let scope = TokenScope::from_word(&wanted.scope)
        .ok_or_else(|| bad(format!("`scope` is worker, approve, read or admin, found {:?}", wanted.scope)))?;
    let name = wanted.name.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err(bad("`name` is 1 to 100 characters on one line".to_owned()));
    }
    actor_of_person(name)?;
    if scope != TokenScope::Worker && !wanted.roles.is_empty() {
        return Err(bad("`roles` (--role) are for the scope `worker`".to_owned()));
    }
    if wanted.seconds.is_some_and(|seconds| seconds == 0 || seconds > TOKEN_SECONDS_MAX) {
        return Err(bad(format!(
            "a token is valid for at most {} days: `seconds` is 1 to {TOKEN_SECONDS_MAX}",
            TOKEN_SECONDS_MAX / 86_400
        )));
    }
    refuse_roles(&wanted.roles)?;
    let roles: Vec<Role> = wanted.roles.iter().map(|role| Role::new(role.as_str())).collect();
    let lasts = wanted.seconds.map(Duration::from_secs);
    let new = NewToken { name, person: None, scope, roles: &roles, lasts, request: call.request };
    match call.server_node().store.create_token(&new).await.map_err(of_store)? {
        NewlyMade::Token(token, secret) => {
            let repeated = token_made_before(&token);
            let mut shown = json(&TokenMade { token: token_view(token), secret })?;
            shown.extensions_mut().insert(Repeated(repeated));
            Ok(shown)
        }
        NewlyMade::Before(token) => Err(token_made_before(&token)),
    }
}

/// The secret is not stored, so the answer can't be repeated.
fn token_made_before(token: &TokenRow) -> Problem {
    let detail = format!("this request made the token {} before; its secret was shown once", token.id);
    Problem::new(Code::Conflict, detail)
        .help("where it was not read, revoke that token, and make another under another key")
        .next(Next::RevokeToken { token: token.id.clone() })
}

pub(super) async fn revoke_token(call: Call) -> Answer {
    let _: Nothing = call.body()?;
    let revoked = call.server_node().store.revoke_token(call.parameter("token")).await;
    json(&token_view(revoked.map_err(|error| of_listed(error, Next::ListTokens))?))
}

fn token_view(token: TokenRow) -> TokenView {
    TokenView {
        id: token.id,
        name: token.name,
        scope: token.scope.as_str().to_owned(),
        roles: token.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        created_at: moment(token.created_at),
        expires_at: token.expires_at.map(moment),
        revoked_at: token.revoked_at.map(moment),
        last_used_at: token.last_used_at.map(moment),
        live: token.is_live,
    }
}
