//! The HTTP API: one table of routes behind a Unix socket and, on request, a loopback port.
//!
//! Every request goes the same way: limits, host and origin, the caller's token, whether its scope reaches the route, the key
//! that makes a mutation safe to repeat, the handler. The table in [`routes`] is the only list of routes; the router,
//! the OpenAPI document and the tests of the scopes are made from it.

mod approvals;
mod body;
mod capacity;
mod claims;
mod drafting;
mod events;
mod guard;
mod in_process;
mod items;
mod mcp;
mod messages;
mod metrics;
mod openapi;
mod outage;
mod page;
mod parameters;
mod plans;
mod printed;
mod problem;
mod routes;
mod runs;
mod serve;
mod sessions;
mod slots;
mod system;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use planctl_api::{Code, Problem};
use planctl_engine::{Actor, RunId};
use planctl_harness::blocking_in_place;
use planctl_mcp::planning::Sessions;
use planctl_store::{Listener, Page, RequestId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::capacity::Bodies;
use crate::node::ServerNode;
use crate::node::runtime::stopped;
use crate::node::services::{Caller, Services};
use parameters::{CURSOR, ENTRIES_USUAL, LIMIT, WORKSPACE};
use planctl_api::wire::Paged;
use planctl_api::wire::calls::{PlaceCall, PlanCall};
use planctl_config::Config;

pub use guard::{Peer, Principal, Scope};
pub use in_process::InProcess;
pub use openapi::document as openapi;
pub use parameters::{Kind, Parameter};
pub use routes::{Answers, Body, ROUTES, Route, Verb};
pub use serve::{HttpOptions, Listening, serve, socket_of};
pub use slots::{Slots, TakenGate};

/// Takes the port of the page once it is opened.
type PagePorts = mpsc::UnboundedSender<TcpListener>;

/// The state that all routes share.
#[derive(Clone)]
pub struct ApiState {
    inner: Arc<Shared>,
}

struct Shared {
    server_node: ServerNode,
    options: HttpOptions,
    claims: claims::ClaimsCache,
    requests: metrics::Requests,
    bodies: Bodies,
    /// The scratch lists of agents; they end with this process.
    scratch_sessions: Arc<Sessions>,
    page: page::Page,
    users: guard::Users,
    /// The tasks under way: connections, and work that outlives its connection.
    tasks: TaskTracker,
}

impl ApiState {
    fn new(server_node: ServerNode, options: HttpOptions, page_ports: Option<PagePorts>) -> ApiState {
        let page = page::Page::new(server_node.state_dir(), page_ports);
        let claims = claims::ClaimsCache::new(&server_node);
        let inner = Shared {
            server_node,
            options,
            claims,
            requests: metrics::Requests::default(),
            bodies: Bodies::default(),
            scratch_sessions: Arc::default(),
            page,
            users: guard::Users::default(),
            tasks: TaskTracker::new(),
        };
        ApiState { inner: Arc::new(inner) }
    }

    pub(crate) fn server_node(&self) -> &ServerNode {
        &self.inner.server_node
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.inner.options
    }

    fn claims(&self) -> &claims::ClaimsCache {
        &self.inner.claims
    }

    fn bodies(&self) -> &Bodies {
        &self.inner.bodies
    }

    fn scratch_sessions(&self) -> Arc<Sessions> {
        self.inner.scratch_sessions.clone()
    }

    fn page(&self) -> &page::Page {
        &self.inner.page
    }

    fn users(&self) -> &guard::Users {
        &self.inner.users
    }

    fn requests(&self) -> &metrics::Requests {
        &self.inner.requests
    }

    /// Says that the daemon is about to stop.
    fn is_stopping(&self) -> bool {
        *self.options().stop.borrow()
    }

    /// Waits for news, for at most this long; no longer where the daemon stops. Says whether there was some.
    async fn wait_for_news(&self, listener: &Listener, most: Duration) -> bool {
        let mut stop = self.options().stop.clone();
        tokio::select! {
            () = listener.notified() => true,
            () = tokio::time::sleep(most) => false,
            () = stopped(&mut stop) => false,
        }
    }

    fn tasks(&self) -> &TaskTracker {
        &self.inner.tasks
    }

    /// Runs a future to its end, even if the caller disconnects.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.tasks().spawn(work).await;
        done.unwrap_or_else(|error| Err(Problem::new(Code::Defect, format!("it came to no end: {error}"))))
    }
}

/// One authorized request: the caller, the route and its input.
pub struct Call {
    pub(crate) api: ApiState,
    pub(crate) principal: Principal,
    pub(crate) route: &'static Route,
    parameters: BTreeMap<String, String>,
    query: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    /// Under which it is done once, of a mutation that has a key.
    request: Option<RequestId>,
}

/// The result of a handler.
pub(crate) type Answer = Result<Response, Problem>;

impl Call {
    fn server_node(&self) -> &ServerNode {
        self.api.server_node()
    }

    /// Has the route's handler answer. A problem at a run or an ask names the workspace that its next step counts in.
    async fn answered(self) -> Answer {
        let api = self.api.clone();
        let (run, ask) = (RunId::parse(self.parameter("run")), self.parameter("ask").parse().ok());
        let mut answered = (self.route.handler)(self).await;
        if let Err(problem) = &mut answered
            && problem.next.is_some()
        {
            let store = api.server_node().store();
            let workspace = match (run, ask) {
                (Some(run), _) => store.run(run).await.ok().map(|run| run.workspace_path),
                (None, Some(ask)) => store.ask(ask).await.ok().map(|ask| ask.workspace_path),
                (None, None) => None,
            };
            problem.workspace = workspace.map(Into::into);
        }
        answered
    }

    /// Returns a part of the path.
    fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns a part of the path as a value.
    fn parameter_as<T: FromStr>(&self, name: &str, expected: &str) -> Result<T, Problem> {
        let given = self.parameter(name);
        given.parse().map_err(|_| {
            Problem::new(Code::BadRequest, format!("{name} in the path must be {expected}, found {given:?}"))
        })
    }

    /// Returns a parameter of the query.
    fn query(&self, parameter: &Parameter) -> Option<&str> {
        self.query.get(parameter.name).map(String::as_str)
    }

    /// Returns a number of the query, within its bounds.
    fn number<T: TryFrom<u64>>(&self, parameter: &Parameter) -> Result<Option<T>, Problem> {
        self.query(parameter).map(|given| parameter.number(given)).transpose()
    }

    /// Returns a number of the head, within its bounds.
    fn number_in_head<T: TryFrom<u64>>(&self, parameter: &Parameter) -> Result<Option<T>, Problem> {
        let given = self.headers.get(parameter.name);
        given.map(|given| parameter.number(given.to_str().unwrap_or("?"))).transpose()
    }

    /// Returns which page of a list is wanted; `read` reads the key of an entry.
    fn page<L: Paged, K>(&self, read: impl FnOnce(&str) -> Option<K>) -> Result<Page<K>, Problem> {
        let limit = self.number(&LIMIT)?.unwrap_or(ENTRIES_USUAL);
        let Some(cursor) = self.query(&CURSOR) else { return Ok(Page { after: None, limit }) };
        match L::key(cursor).and_then(|key| read(&key)) {
            Some(after) => Ok(Page { after: Some(after), limit }),
            None => {
                let detail = format!("`{}` is not one of this list: {cursor:?}", CURSOR.name);
                Err(Problem::new(Code::BadRequest, detail).help("take `next` of the page before"))
            }
        }
    }

    /// Reads the body.
    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::read(&self.body)
    }

    /// Opens the services of a workspace on behalf of the caller.
    async fn services_at(
        &self,
        workspace: Option<PathBuf>,
        config: Option<Config>,
        is_looking: bool,
    ) -> Result<Services, Problem> {
        let is_far = matches!(self.principal.peer, Peer::Network(_));
        let workspace = match workspace {
            // A reader on the port must not learn which paths exist: a missing one has no plans and no runs.
            Some(workspace) if is_looking && is_far && workspace.is_absolute() => {
                Some(canonical(workspace.clone()).await.unwrap_or(workspace))
            }
            Some(workspace) => Some(canonical(workspace).await?),
            None => None,
        };
        let caller = Caller {
            workspace,
            config: config.unwrap_or_default(),
            actor: self.principal.actor.clone(),
            person: self.principal.person.clone(),
            caps: self.api.options().caps,
            is_looking,
            request: self.request,
        };
        Ok(self.server_node().services(caller).await?)
    }

    async fn services_of(&self, place: PlaceCall) -> Result<Services, Problem> {
        self.services_at(place.workspace, place.config, false).await
    }

    /// Opens the services of the workspace that the query names, to look at what is there.
    async fn services(&self) -> Result<Services, Problem> {
        self.services_at(self.query(&WORKSPACE).map(PathBuf::from), None, true).await
    }

    async fn services_of_plan(&self, plan: &PlanCall) -> Result<Services, Problem> {
        self.services_at(Some(plan.workspace.clone()), plan.config.clone(), false).await
    }

    fn actor(&self) -> &Actor {
        &self.principal.actor
    }
}

async fn canonical(workspace: PathBuf) -> Result<PathBuf, Problem> {
    let shown = workspace.display().to_string();
    let problem = |what: String| Problem::new(Code::BadRequest, format!("the workspace {shown} {what}"));
    if !workspace.is_absolute() {
        return Err(problem("must be an absolute path".to_owned()));
    }
    let found = blocking_in_place(|| workspace.canonicalize().map(|path| (path.is_dir(), path)));
    match found {
        Ok((true, path)) => Ok(path),
        Ok((false, _)) => Err(problem("is not a directory on this host".to_owned())),
        Err(error) => Err(problem(format!("can't be used on this host: {error}"))),
    }
}

fn json<T: Serialize>(value: &T) -> Answer {
    Ok(json_with(StatusCode::OK, value))
}

/// Answers with a line of JSON whose invisible and direction-changing characters are escapes.
pub(crate) fn json_with<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            // The prompt of a shell in which a person types curl begins in a line of its own.
            (status, kind, planctl_lang::json_escaped(text) + "\n").into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer can't be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Reads the key of an entry that is numbered.
fn number<N: FromStr>(key: &str) -> Option<N> {
    key.parse().ok()
}

/// Reads the key of an entry that has a name.
fn name(key: &str) -> Option<String> {
    Some(key.to_owned())
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
