//! Agents over HTTP: a request of theirs is answered by calls of these routes, with the caller's own token and nothing more.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use planctl_api::{Code, Problem};
use planctl_mcp::planning::Owner;
use planctl_mcp::{ApiCall, ApiGateway, PlanText, Refused, Scratch, Screens};
use serde_json::{Value, json};

use super::guard::{KEY_HEADER, Scope};
use super::{Answer, Call, InProcess};
use crate::clock;

/// Answers one request of a client.
pub(super) async fn serve(call: Call) -> Answer {
    let scratch = Scratch::Shared {
        sessions: call.api.scratch_sessions(),
        owner: Owner::new(call.principal.id.as_str()),
        now: || clock::instant().into_std(),
    };
    let routes = InProcess::for_peer(&call.api, call.principal.peer);
    let may_decide = call.principal.scope.includes(Scope::Approve);
    let gateway = CallerGateway { routes, headers: call.headers.clone(), may_decide };
    let mut request = Request::new(Body::from(call.body));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = call.headers;
    let answer = planctl_mcp::answer(request, gateway, scratch).await;
    if !answer.status().is_client_error() || answer.headers().contains_key(header::CONTENT_TYPE) {
        return Ok(answer);
    }
    // An error of the protocol is JSON and goes on as it is; an error of HTTP is told as everywhere here.
    let body = axum::body::to_bytes(answer.into_body(), ERROR_BYTES_MAX).await.unwrap_or_default();
    Err(Problem::new(Code::BadRequest, String::from_utf8_lossy(&body)))
}

/// The longest text of an error of HTTP.
const ERROR_BYTES_MAX: usize = 4096;

/// The way to the routes of a caller whom the guard has let in. Each of its calls meets the guard again.
struct CallerGateway {
    routes: InProcess,
    /// The headers that came with the request: its token and its host among them.
    headers: HeaderMap,
    /// Says that the caller may decide in a person's name, so that the client is a person's.
    may_decide: bool,
}

impl ApiGateway for CallerGateway {
    /// A plan is handed in with its workspace's configuration, which a command in that workspace reads.
    fn takes_plans(&self) -> bool {
        false
    }

    fn screens(&self) -> Screens {
        if self.may_decide { Screens::OfRequests } else { Screens::Nobodys }
    }

    fn workspace(&self) -> Option<String> {
        None
    }

    async fn call(&self, call: ApiCall) -> Result<Option<Value>, Refused> {
        let mut headers = self.headers.clone();
        let wrong = |what: &str| Refused::bad_request(format!("could not use the {what}"));
        if let Some(token) = &call.lease_token {
            let token = HeaderValue::from_str(&format!("Bearer {token}"));
            headers.insert(header::AUTHORIZATION, token.map_err(|_| wrong("token"))?);
        }
        let key = HeaderValue::from_str(&uuid::Uuid::now_v7().to_string());
        headers.insert(KEY_HEADER, key.map_err(|_| wrong("key"))?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (method, body) = match &call.body {
            Some(body) => (Method::POST, body.to_string().into_bytes()),
            None => (Method::GET, Vec::new()),
        };
        let called = self.routes.call(method, &address_of(&call), headers, body).await;
        let (status, bytes) = called.map_err(|error| Refused::bad_request(error.to_string()))?;
        read(status, &bytes)
    }

    async fn verify(&self, plan: PlanText) -> Result<Value, Refused> {
        let (Some(workspace), Some(text)) = (plan.workspace, plan.text) else {
            let needs = Refused::bad_request("over HTTP, `workspace` and `text` are needed");
            return Err(needs.help("the workspace is an absolute path on the daemon's machine"));
        };
        let body = json!({ "workspace": workspace, "path": plan.path, "text": text });
        Ok(self.call(ApiCall::post("/v1/plans/verify", body)).await?.unwrap_or_default())
    }

    async fn draft(&self, _: String, _: String) -> Result<Value, Refused> {
        Err(not_here())
    }

    async fn submit(&self, _: String) -> Result<Value, Refused> {
        Err(not_here())
    }
}

fn address_of(call: &ApiCall) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(&call.query);
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{query}", call.path)
}

fn not_here() -> Refused {
    Refused::new("scope", "plans are handed in from within their workspace, not over HTTP")
}

fn read(status: StatusCode, bytes: &[u8]) -> Result<Option<Value>, Refused> {
    if status == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    let unread =
        |error: serde_json::Error| Refused::new("defect", format!("could not read the answer: {error}"));
    if status.is_success() {
        return serde_json::from_slice(bytes).map(Some).map_err(unread);
    }
    Err(serde_json::from_slice::<Problem>(bytes).map_or_else(unread, Refused::from))
}
