//! Authentication and authorization: tokens and scopes, the local socket, hosts and origins, keys of mutations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::RequestPartsExt;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{RawPathParams, Request};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request};
use axum::response::{IntoResponse, Response};
use planctl_engine::Actor;
use planctl_harness::{Connection, is_inside_session, is_inside_worker};
use planctl_store::{Begun, RequestKey, Store, TokenRow, TokenScope};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::capacity::{HeldBytes, StrangerSlot};
use super::outage::{refuse_while_away, shortage_met};
use super::problem::{of_store, response_of};
use super::routes::Route;
use super::{ApiState, Call};
use crate::clock;
use crate::mutex::lock;
use crate::node::runtime::blocking;
use crate::traces::CallSpan;
use planctl_api::{Code, Next, Problem};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest body that is taken in before it is known that the item's token which came with it is one.
const STRANGERS_BODY_BYTES_MAX: u64 = 16 << 10;
/// The longest answer that is kept for a repeated request.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Names the key of a mutation.
pub(super) const KEY_HEADER: &str = "idempotency-key";
/// Names the span of the caller that a call belongs to, by W3C Trace Context.
const TRACE_HEADER: &str = "traceparent";
/// Header that names the actor, on the local socket only.
const ACTOR_HEADER: &str = "planctl-actor";
/// The prefix of the token of an item's lease.
pub(super) const LEASE_PREFIX: &str = "planctl_item_";

/// The token of a request that this process makes for its page, as it was found a moment ago. No caller from outside can add it.
#[derive(Clone)]
pub(super) struct FoundToken(pub(super) Arc<TokenRow>);

/// From where a request comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A process of this host, through the socket in the state directory.
    Local {
        /// Its user.
        uid: u32,
        /// Says that a worker or a contract started it, as its parents tell.
        is_inside_worker: bool,
        /// Says that the agent of a held session started it (guided mode).
        is_inside_session: bool,
    },
    /// A port.
    Network(Connection),
}

/// The authority of a call that stays open: the token that came with it, which may be revoked or run out meanwhile.
pub(super) struct Standing {
    store: Store,
    /// The secret that was shown; `None` on the socket, where the kernel identifies the caller.
    secret: Option<String>,
    asked: Instant,
}

impl Standing {
    /// How long the token that was asked for counts as valid.
    const HOLDS: Duration = Duration::from_secs(1);

    /// Begins with the token as it was found a moment ago.
    pub(super) fn of(call: &Call) -> Standing {
        let store = call.server_node().store().clone();
        Standing { store, secret: call.principal.secret.clone(), asked: clock::instant() }
    }

    /// Waits until the token has ceased to hold; for ever where the caller shows none.
    pub(super) async fn revoked(&mut self) -> Problem {
        if self.secret.is_none() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(Standing::HOLDS).await;
            if let Err(problem) = self.refuse_if_revoked().await {
                return problem;
            }
        }
    }

    /// Refuses where the token has ceased to hold.
    pub(super) async fn refuse_if_revoked(&mut self) -> Result<(), Problem> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let now = clock::instant();
        if now.duration_since(self.asked) < Standing::HOLDS {
            return Ok(());
        }
        self.asked = now;
        self.store.token_of(secret).await.map_err(of_store)?.map(drop).ok_or_else(unauthenticated_problem)
    }
}

/// The rights that a principal has, and that a route needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Nobody in particular; a route that anybody may call.
    Nobody,
    /// Anybody who said who they are; a route whose own calls ask for more.
    Known,
    /// Looks.
    Read,
    /// Looks, starts runs and decides.
    Approve,
    /// Claims work.
    Worker,
    /// Holds one item, the one that the path names.
    Item,
    /// Everything.
    Admin,
}

impl Scope {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Nobody => "none",
            Scope::Known => "any",
            Scope::Read => "read",
            Scope::Approve => "approve",
            Scope::Worker => "worker",
            Scope::Item => "item",
            Scope::Admin => "admin",
        }
    }

    /// Says whether the scope reaches a route that needs another.
    pub fn includes(self, needs: Scope) -> bool {
        match needs {
            Scope::Nobody => true,
            Scope::Known => !matches!(self, Scope::Nobody | Scope::Item),
            Scope::Read => matches!(self, Scope::Read | Scope::Approve | Scope::Admin),
            Scope::Approve => matches!(self, Scope::Approve | Scope::Admin),
            Scope::Worker => matches!(self, Scope::Worker | Scope::Admin),
            Scope::Item => matches!(self, Scope::Item),
            Scope::Admin => matches!(self, Scope::Admin),
        }
    }
}

/// The authenticated caller.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The name of the caller in the history.
    pub actor: Actor,
    /// The person as planctl knows them by itself, however they sign.
    pub person: String,
    /// The scope of the caller.
    pub scope: Scope,
    /// The roles of a worker; empty are all.
    pub roles: Vec<String>,
    /// Identifies the caller, for the idempotency keys of its requests.
    pub(super) id: String,
    /// The secret that the caller showed.
    pub(super) secret: Option<String>,
    pub(super) peer: Peer,
}

/// Does one request on one route.
pub(super) async fn guarded(api: ApiState, route: &'static Route, request: Request) -> Response {
    let traced = api.server_node().traces().and_then(|traces| {
        let parent = request.headers().get(TRACE_HEADER)?.to_str().ok()?;
        Some((traces.clone(), CallSpan::begin(parent)?, request.method().clone()))
    });
    let response = match handle_request(&api, route, request).await {
        Ok(response) => response,
        Err(problem) => {
            api.requests().count_refusal(&problem);
            response_of(&problem)
        }
    };
    if let Some((traces, call, method)) = traced {
        traces.calls().end(call, method.as_str(), route.path, response.status().as_u16());
    }
    response
}

async fn handle_request(
    api: &ApiState,
    route: &'static Route,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::new(Code::Defect, "a request without a peer"))?;
    refuse_strangers(api, &peer, &parts)?;
    refuse_while_away(api, route)?;
    let found = parts.extensions.get::<FoundToken>().cloned();
    let principal = authenticate(api, peer, route, &parts.headers, found).await?;
    if principal.scope != Scope::Nobody
        && principal.scope != Scope::Item
        && let Some(place) = parts.extensions.get::<StrangerSlot>()
    {
        place.note_token();
    }
    if route.is_decision {
        refuse_workers(api, principal.peer, route).await?;
    }
    if !principal.scope.includes(route.needs) {
        return Err(out_of_scope(&principal, route));
    }
    let parameters = parts.extract::<RawPathParams>().await;
    let parameters =
        parameters_of(parameters.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?)?;
    let query = query_of(parts.uri.query().unwrap_or_default(), route)?;
    let mut call = Call {
        request: None,
        api: api.clone(),
        principal,
        route,
        parameters,
        query,
        headers: parts.headers,
        body: Bytes::new(),
    };
    if route.needs == Scope::Item {
        let is_long = body.size_hint().upper().is_none_or(|bytes| bytes > STRANGERS_BODY_BYTES_MAX);
        super::items::refuse_without_item_token(&call, is_long).await?;
    }
    let has_body = parts.method != Method::GET;
    let (body, held) = read_body(api, peer, body, route.body_bytes_max).await?;
    if has_body && !body.is_empty() {
        refuse_other_media(&call.headers)?;
    }
    call.body = body.clone();
    if !route.runs_to_completion() {
        return call.answered().await;
    }
    let decided_by = api.clone();
    let work = async move {
        let _held = held;
        if route.is_keyed {
            let answered = run_idempotently(call, &parts.uri.to_string(), &body).await;
            decided_by.page().note_decision();
            answered
        } else {
            call.answered().await
        }
    };
    // A request that has begun goes on; a repetition under its key finds what came of it.
    tokio::select! {
        answered = api.to_its_end(work) => answered,
        short = shortage_met(api) => Err(short),
    }
}

/// Refuses requests of other sites' pages and of names that were rebound to this address (A37–A39).
pub(super) fn refuse_strangers(api: &ApiState, peer: &Peer, parts: &request::Parts) -> Result<(), Problem> {
    let Peer::Network(_) = peer else { return Ok(()) };
    let (headers, method) = (&parts.headers, &parts.method);
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or_default();
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(Problem::new(Code::BadRequest, "a request has one Host"));
    }
    if !api.options().accepts_host(host) {
        return Err(Problem::new(Code::Origin, format!("the host {host:?} is not this daemon")));
    }
    // An address in its absolute form names a host of its own, which goes before the header (RFC 9112, 3.2.2).
    let named = parts.uri.authority().map(|authority| authority.as_str());
    if named.is_some_and(|named| !api.options().accepts_host(named)) {
        return Err(Problem::new(Code::Origin, format!("the host {named:?} is not this daemon")));
    }
    // A browser names the page that asks; planctl's own page asks from the host that it was served from.
    if let Some(origin) = text(header::ORIGIN) {
        let same = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !same.is_some_and(|same| same.eq_ignore_ascii_case(host)) {
            return Err(Problem::new(Code::Origin, format!("the origin {origin:?} is not let in")));
        }
    }
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    if site == Some("cross-site") && method != Method::GET {
        return Err(Problem::new(Code::Origin, "requests from other sites are not let in"));
    }
    Ok(())
}

async fn authenticate(
    api: &ApiState,
    peer: Peer,
    route: &'static Route,
    headers: &HeaderMap,
    found: Option<FoundToken>,
) -> Result<Principal, Problem> {
    let bearer = match headers.get(header::AUTHORIZATION) {
        None => None,
        Some(value) => Some(bearer_of(value).ok_or_else(unauthenticated_problem)?),
    };
    let nobody = Principal {
        actor: Actor::new("nobody"),
        person: "nobody".to_owned(),
        scope: Scope::Nobody,
        roles: Vec::new(),
        id: String::new(),
        secret: None,
        peer,
    };
    let Some(secret) = bearer else {
        return match peer {
            Peer::Local { uid, is_inside_worker, .. } => Ok(Principal {
                actor: local_actor(headers, uid)?,
                person: api.users().name_of(uid).await,
                // A worker that shows nothing may look, and do nothing in its person's name.
                scope: if is_inside_worker { Scope::Read } else { Scope::Admin },
                id: format!("uid {uid}"),
                ..nobody
            }),
            Peer::Network(_) if route.needs == Scope::Nobody => Ok(nobody),
            Peer::Network(_) => Err(unauthenticated_problem()),
        };
    };
    if secret.starts_with(LEASE_PREFIX) {
        // Whether it holds the item is for the item's own route to say: another item's is simply not there (row 69).
        let id = hash_of(&[secret.as_bytes()]);
        return Ok(Principal { scope: Scope::Item, id, secret: Some(secret), ..nobody });
    }
    let token = match found {
        Some(FoundToken(token)) => token,
        None => {
            let token = api.server_node().store().token_of(&secret).await.map_err(of_store)?;
            Arc::new(token.ok_or_else(unauthenticated_problem)?)
        }
    };
    Ok(Principal {
        actor: actor_of_person(&token.name)?,
        person: token.person.clone(),
        scope: match token.scope {
            TokenScope::Read => Scope::Read,
            TokenScope::Approve => Scope::Approve,
            TokenScope::Worker => Scope::Worker,
            TokenScope::Admin => Scope::Admin,
        },
        roles: token.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        id: format!("token {}", token.id),
        secret: Some(secret),
        peer,
    })
}

fn bearer_of(value: &HeaderValue) -> Option<String> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().to_owned())
}

/// Takes the name that a local client goes by; without one, its user.
fn local_actor(headers: &HeaderMap, uid: u32) -> Result<Actor, Problem> {
    let named = headers.get(ACTOR_HEADER).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    match named.map(str::trim).filter(|name| !name.is_empty() && name.chars().count() <= 200) {
        Some(name) => actor_of_person(name),
        None => Ok(Actor::new(format!("uid {uid}"))),
    }
}

/// The users of this machine who called a moment ago.
#[derive(Default)]
pub(super) struct Users {
    names: Mutex<BTreeMap<u32, (Instant, String)>>,
}

impl Users {
    /// How long a name counts as that of its user.
    const HOLDS: Duration = Duration::from_secs(60);

    /// Names a user. The system asks directories such as LDAP as well, which may take a while.
    async fn name_of(&self, uid: u32) -> String {
        let now = clock::instant();
        let is_new = |(said, _): &&(Instant, String)| now.duration_since(*said) < Users::HOLDS;
        let known = || lock(&self.names);
        if let Some((_, name)) = known().get(&uid).filter(is_new) {
            return name.clone();
        }
        let found = blocking(move || nix::unistd::User::from_uid(uid.into())).await;
        // A directory that can't be reached now may be in a moment.
        let Some(user) = found.ok().and_then(Result::ok).flatten() else { return format!("uid {uid}") };
        known().insert(uid, (now, user.name.clone()));
        user.name
    }
}

/// Takes a person's name; refuses one by which an approval policy is on record (P-78).
pub(super) fn actor_of_person(name: &str) -> Result<Actor, Problem> {
    let actor = Actor::new(name);
    match actor.policy_name() {
        None => Ok(actor),
        Some(_) => {
            Err(Problem::new(Code::BadRequest, "a name that begins with `policy:` is an approval policy's"))
        }
    }
}

// One answer for a missing, wrong, expired and revoked token: no oracle (row 67).
pub(super) fn unauthenticated_problem() -> Problem {
    Problem::new(Code::Unauthenticated, "a valid token is needed: Authorization: Bearer …")
        .next(Next::CreateToken)
}

fn out_of_scope(principal: &Principal, route: &Route) -> Problem {
    if principal.scope == Scope::Item {
        return Problem::new(Code::NotFound, "there is no such thing for the holder of an item");
    }
    if principal.scope == Scope::Nobody {
        return unauthenticated_problem();
    }
    let needs = route.needs.as_str();
    Problem::new(Code::Scope, format!("this needs a token of the scope `{needs}`"))
}

/// Refuses decisions by a process that a worker started, whichever token it shows (P-28, A34), or that the agent of a held
/// session started. The hooks of a session begin runs of guards, which were approved before.
async fn refuse_workers(api: &ApiState, peer: Peer, route: &Route) -> Result<(), Problem> {
    refuse_agents(api, peer, route.is_of_sessions).await
}

/// Does the same for a request that is on no route of the API; says whether sessions are let in.
pub(super) async fn refuse_agents(api: &ApiState, peer: Peer, is_of_sessions: bool) -> Result<(), Problem> {
    let is_inside = match peer {
        Peer::Local { is_inside_worker, is_inside_session, .. } => {
            is_inside_worker || is_inside_session && !is_of_sessions
        }
        // Files of every process are read, so elsewhere than among the requests of others.
        Peer::Network(connection) => {
            let state_dir = api.server_node().state_dir().to_owned();
            let asked = tokio::task::spawn_blocking(move || {
                connection.is_of(|process| {
                    is_inside_worker(process) || !is_of_sessions && is_inside_session(process, &state_dir)
                })
            });
            asked.await.map_err(|error| Problem::new(Code::Defect, error.to_string()))?
        }
    };
    if is_inside { Err(inside_worker_problem()) } else { Ok(()) }
}

/// Refuses a decision to an agent's process.
pub(super) fn inside_worker_problem() -> Problem {
    Problem::new(Code::InsideWorker, "a person decides, and this comes from an agent's process")
        .help("decide in a terminal of your own")
}

fn parameters_of(parameters: RawPathParams) -> Result<BTreeMap<String, String>, Problem> {
    let read = parameters.iter().map(|(name, value)| {
        refuse_nul(name, value)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    read.collect()
}

/// Refuses the one character that no text in the database holds (row 78).
fn refuse_nul(name: &str, value: &str) -> Result<(), Problem> {
    if value.contains('\0') {
        return Err(Problem::new(Code::NulCharacter, format!("`{name}` holds U+0000")));
    }
    Ok(())
}

fn query_of(query: &str, route: &Route) -> Result<BTreeMap<String, String>, Problem> {
    let mut read = BTreeMap::new();
    for (name, value) in parse_form(query) {
        let Some(parameter) = route.query.iter().find(|parameter| parameter.name == name) else {
            let known: Vec<&str> = route.query.iter().map(|parameter| parameter.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let detail = format!("this route has no parameter {name:?}; it knows {known}");
            return Err(Problem::new(Code::BadRequest, detail));
        };
        refuse_nul(&name, &value)?;
        parameter.refuse_other_word(&value)?;
        if read.insert(name.clone(), value).is_some() {
            return Err(Problem::new(Code::BadRequest, format!("`{name}` is given twice")));
        }
    }
    if let Some(missing) = route.query.iter().find(|one| one.is_required && !read.contains_key(one.name)) {
        let (name, expected) = (missing.name, missing.expected());
        return Err(Problem::new(Code::BadRequest, format!("`{name}` is missing: {expected}")));
    }
    Ok(read)
}

fn parse_form(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

pub(super) async fn read_body(
    api: &ApiState,
    peer: Peer,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, HeldBytes), Problem> {
    let read = tokio::time::timeout(BODY_TIMEOUT, api.bodies().read(peer, body, bytes_max)).await;
    read.unwrap_or_else(|_| Err(Problem::new(Code::BadRequest, "the body took too long to arrive")))
}

fn refuse_other_media(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("none");
    let media = given.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(Code::MediaType, format!("the body must be application/json, found {given:?}")))
}

/// The stored answer for repeats of a request, in place of one with a secret that is shown once.
#[derive(Clone, Debug)]
pub(super) struct Repeated(pub(super) Problem);

/// Does a mutation once for its key: a repeated request gets the stored answer (P14).
async fn run_idempotently(mut call: Call, route: &str, body: &Bytes) -> Result<Response, Problem> {
    let api = call.api.clone();
    let store = api.server_node().store();
    let key = key_of(&call.headers)?;
    let route = format!("{} {route}", call.route.verb.as_str());
    let request = planctl_store::Request::new(&call.principal.id, key, &route, body);
    // A request that has not begun is not begun later, when its caller has been refused.
    let begun = tokio::select! {
        begun = store.begin_request(&request) => begun.map_err(of_store)?,
        short = shortage_met(&api) => return Err(short),
    };
    let turn = match begun {
        Begun::Fresh(turn) => turn,
        Begun::Answered { status, answer } => return Ok(stored_response(status, answer)),
        Begun::UnderWay => {
            return Err(Problem::new(Code::UnderWay, "the same request is under way; ask again"));
        }
        Begun::Mismatch => {
            let detail = "this Idempotency-Key was used for another request";
            return Err(Problem::new(Code::IdempotencyMismatch, detail));
        }
    };
    call.request = Some(turn.id);
    let mut response = match call.answered().await {
        Ok(response) => response,
        Err(problem) => {
            api.requests().count_refusal(&problem);
            response_of(&problem)
        }
    };
    let status = response.status();
    // A request refused for now only is carried out anew when it is repeated.
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        store.abandon_request(&request, &turn).await.map_err(of_store)?;
        return Ok(response);
    }
    if let Some(Repeated(problem)) = response.extensions_mut().remove() {
        let kept = response_of(&problem);
        let (status, (_, bytes)) = (kept.status(), collect_body(kept).await?);
        store.answer_request(&request, status.as_u16(), &bytes).await.map_err(of_store)?;
        return Ok(response);
    }
    let (parts, bytes) = collect_body(response).await?;
    store.answer_request(&request, status.as_u16(), &bytes).await.map_err(of_store)?;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Splits an answer into its head and the whole of its body.
async fn collect_body(response: Response) -> Result<(Parts, Bytes), Problem> {
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, ANSWER_BYTES_MAX).await;
    Ok((parts, bytes.map_err(|error| Problem::new(Code::Defect, error.to_string()))?))
}

fn stored_response(status: u16, answer: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let media = if status.is_success() { "application/json" } else { planctl_api::PROBLEM_MEDIA_TYPE };
    (status, [(header::CONTENT_TYPE, media)], answer).into_response()
}

fn key_of(headers: &HeaderMap) -> Result<RequestKey, Problem> {
    let Some(value) = headers.get(KEY_HEADER) else {
        let detail = "a mutation needs the header Idempotency-Key, with a value of your own for each intent";
        return Err(Problem::new(Code::IdempotencyKeyMissing, detail));
    };
    let wrong = || Problem::new(Code::BadRequest, "an Idempotency-Key is 1 to 200 visible ASCII characters");
    value.to_str().ok().and_then(RequestKey::parse).ok_or_else(wrong)
}

/// Returns the digest of some parts, as hexadecimal digits.
pub(super) fn hash_of(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    planctl_engine::hex(&hasher.finalize())
}
