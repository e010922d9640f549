//! Servers at an address: a real one, which keeps sessions, and those that refuse, send elsewhere, flood or break off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use planctl_lang::tools::Outputs;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolResponse, Implementation, ListToolsResult, ServerCapabilities, ServerConfig, Tool as Listed,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::call;
use crate::request::Calls;

const TOKEN: &str = "tok-1f0a";

/// The real server's only tool.
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("echo", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, rmcp::ErrorData> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Listed::new("echo", "Says it again", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        Ok(CallToolResult::structured(json!({"given": request.arguments})).into())
    }
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    method: String,
    path: String,
    asked: String,
    session: Option<String>,
    authorization: Option<String>,
}

/// A server at an address of this host.
struct Web {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    sessions: Arc<LocalSessionManager>,
}

/// An answer that is always the same.
type Answer = Arc<dyn Fn() -> Response + Send + Sync>;
/// An answer in place of the real server's, or none.
type Hostile = dyn Fn(&Seen) -> Option<Response> + Send + Sync;

impl Web {
    async fn serve(hostile: Box<Hostile>) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let sessions: Arc<LocalSessionManager> = Arc::default();
        let config = StreamableHttpServerConfig::default();
        let service = StreamableHttpService::new(|| Ok(Echo), sessions.clone(), config);
        let (hostile, noted) = (Arc::new(hostile), seen.clone());
        let answer = move |request: Request| {
            let (service, hostile, noted) = (service.clone(), hostile.clone(), noted.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.unwrap();
                let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
                let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                let one = Seen {
                    method: parts.method.to_string(),
                    path: parts.uri.path().to_owned(),
                    asked: message["method"].as_str().unwrap_or_default().to_owned(),
                    session: header("mcp-session-id"),
                    authorization: header("authorization"),
                };
                noted.lock().unwrap().push(one.clone());
                match hostile(&one) {
                    Some(response) => response,
                    None => service.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new),
                }
            }
        };
        let app = axum::Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Web { address, seen, sessions }
    }

    /// Serves as a real server does, but for one method, which it answers otherwise.
    async fn but_at(at: &'static str, answer: impl Fn() -> Response + Send + Sync + 'static) -> Web {
        Web::serve(Box::new(move |seen| (seen.asked == at).then(&answer))).await
    }

    fn server(&self) -> Server {
        Server::Url { url: format!("http://{}/mcp", self.address), token: Some(TOKEN.to_owned()) }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn asked(&self, method: &str) -> usize {
        self.seen().iter().filter(|one| one.asked == method).count()
    }

    /// Uses its tool once.
    async fn call(&self) -> Result<Value, Fault> {
        let connection = Connection::open(&self.server()).await?;
        used_once(connection, "echo", json!({"text": "hello"})).await
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let builder = Response::builder().status(status);
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    builder.body(body.into()).unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

#[tokio::test]
async fn m_16_a_session_is_begun_kept_and_ended_and_each_request_has_the_token() {
    let web = Web::serve(Box::new(|_| None)).await;
    assert_eq!(web.call().await.unwrap(), json!({"given": {"text": "hello"}}));
    let seen = web.seen();
    let bearer = format!("Bearer {TOKEN}");
    assert!(seen.iter().all(|one| one.authorization.as_ref() == Some(&bearer)), "{seen:?}");
    assert_eq!((seen[0].asked.as_str(), &seen[0].session), ("initialize", &None), "{seen:?}");
    let session = seen.iter().find_map(|one| one.session.clone());
    assert!(session.is_some() && seen[1..].iter().all(|one| one.session == session), "{seen:?}");
    assert_eq!((web.asked("tools/list"), web.asked("tools/call")), (1, 1), "{seen:?}");
    assert_eq!(seen.last().map(|one| one.method.as_str()), Some("DELETE"), "{seen:?}");
    assert!(web.sessions.sessions.read().await.is_empty(), "the session was left behind");
}

#[tokio::test]
async fn m_46_a_tool_that_is_known_is_called_without_asking_for_the_list() {
    let web = Web::serve(Box::new(|_| None)).await;
    let connection = Connection::open(&web.server()).await.unwrap();
    let list = connection.list().await.unwrap();
    assert_eq!((list.server.as_str(), list.version.as_str()), ("echo", "1.0.0"));
    let calls = Calls {
        known: None,
        tool: "echo".to_owned(),
        arguments: json!({"text": 7}),
        for_each: None,
        at_once: 1,
        outputs: Outputs::new(),
    };
    let calls = calls.with_known(Some(&list));
    let result = call::call_each(&connection, &calls, vec![calls.arguments.clone()]).await.unwrap();
    assert_eq!(result, json!({"given": {"text": "7"}}), "it fits the schema that is known");
    assert_eq!(web.asked("tools/list"), 1, "{:?}", web.seen());
    connection.close().await;
}

/// Says what a server is told that answers one method so: at the beginning, and in the middle.
async fn told(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> [Fault; 2] {
    let mut faults = Vec::new();
    for at in ["initialize", "tools/call"] {
        let web = Web::but_at(at, answer.clone()).await;
        let within = Duration::from_secs(30);
        let result = tokio::time::timeout(within, web.call()).await.expect("it ends");
        faults.push(result.expect_err(at));
    }
    faults.try_into().unwrap()
}

#[tokio::test]
async fn m_41_a_server_that_wants_a_credential_is_told_apart_from_one_that_wants_time() {
    for challenge in [&[("www-authenticate", "Bearer")][..], &[], &[JSON]] {
        for status in [401, 403] {
            let headers = challenge.to_vec();
            for fault in told(move || answer(status, &headers, "{}")).await {
                assert_eq!(fault.kind, FaultKind::Auth, "{status} {challenge:?}: {fault}");
                assert!(!fault.to_string().contains(TOKEN), "{fault}");
            }
        }
    }
    for fault in told(|| answer(429, &[("retry-after", "70")], "slow down")).await {
        assert_eq!(
            (fault.kind, fault.wait),
            (FaultKind::RateLimit, Some(Duration::from_secs(70))),
            "{fault}"
        );
    }
    for fault in told(|| answer(429, &[("retry-after", "Wed, 21 Oct 2037 07:28:00 GMT")], "")).await {
        assert_eq!((fault.kind, fault.wait), (FaultKind::RateLimit, None), "{fault}");
    }
}

#[tokio::test]
async fn m_41_a_short_rate_limit_is_waited_for_and_the_call_goes_through() {
    let refusals = Arc::new(Mutex::new(2));
    let web = Web::but_at_times("tools/call", refusals, || answer(429, &[("retry-after", "0")], "")).await;
    assert_eq!(web.call().await.unwrap(), json!({"given": {"text": "hello"}}));
    assert_eq!(web.asked("tools/call"), 3, "{:?}", web.seen());
}

impl Web {
    /// Answers one method otherwise as often as is said.
    async fn but_at_times(
        at: &'static str,
        times: Arc<Mutex<u32>>,
        answer: impl Fn() -> Response + Send + Sync + 'static,
    ) -> Web {
        let hostile = move |seen: &Seen| {
            let mut left = times.lock().unwrap();
            let is_hostile = seen.asked == at && *left > 0;
            *left -= u32::from(is_hostile);
            is_hostile.then(&answer)
        };
        Web::serve(Box::new(hostile)).await
    }
}

#[tokio::test]
async fn m_41_a_server_that_is_not_there_or_breaks_off_is_a_network_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let refused = Connection::open(&Server::Url { url, token: None }).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.kind, FaultKind::Network, "{refused}");
    for status in [500, 502, 503] {
        for fault in told(move || answer(status, &[], "busy")).await {
            assert_eq!(fault.kind, FaultKind::Network, "{status}: {fault}");
            assert!(fault.message.contains(&status.to_string()), "{fault}");
        }
    }
    let broken_off = || {
        let parts = [Ok(Bytes::from("{\"jsonrpc\":")), Err(std::io::Error::other("gone"))];
        answer(200, &[JSON], Body::from_stream(futures_util::stream::iter(parts)))
    };
    for fault in told(broken_off).await {
        assert_eq!(fault.kind, FaultKind::Network, "{fault}");
    }
}

#[tokio::test]
async fn m_41_what_is_no_answer_of_the_protocol_is_a_protocol_fault() {
    let large = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    let cases: Vec<(&str, Answer)> = vec![
        ("a page", Arc::new(|| answer(200, &[("content-type", "text/html")], "<h1>Hello</h1>"))),
        ("no type", Arc::new(|| answer(200, &[], "hello"))),
        ("no JSON", Arc::new(|| answer(200, &[JSON], "{\"jsonrpc\""))),
        ("other JSON", Arc::new(|| answer(200, &[JSON], "[1, 2]"))),
        ("too large", Arc::new(move || answer(200, &[JSON], large.clone()))),
        ("a refusal", Arc::new(|| answer(400, &[JSON], "{\"error\": 7}"))),
    ];
    for (name, case) in cases {
        for fault in told(move || case()).await {
            assert_eq!(fault.kind, FaultKind::Protocol, "{name}: {fault}");
            assert!(fault.message.len() < 3_000, "{name}: {} bytes", fault.message.len());
        }
    }
}

#[tokio::test]
async fn m_41_a_server_whose_event_does_not_end_counts_as_gone() {
    let large = format!("data: {}\n\n", "x".repeat(MESSAGE_BYTES_MAX));
    let web = Web::but_at("initialize", move || answer(200, &[EVENTS], large.clone())).await;
    let fault = web.call().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Network, "{fault}");
}

#[tokio::test]
async fn a_server_that_sends_elsewhere_is_not_followed_with_the_token() {
    let elsewhere = Web::serve(Box::new(|_| None)).await;
    for status in [301, 302, 303, 307, 308] {
        for to in ["/other".to_owned(), format!("http://{}/mcp", elsewhere.address)] {
            let web = Web::but_at("initialize", move || answer(status, &[("location", &to)], "")).await;
            let fault = web.call().await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Protocol, "{status}: {fault}");
            assert!(fault.message.contains(&status.to_string()), "{fault}");
            assert!(web.seen().iter().all(|one| one.path == "/mcp"), "{:?}", web.seen());
        }
    }
    assert_eq!(elsewhere.seen(), []);
}
