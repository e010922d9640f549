//! One request over HTTP, of a caller whom the daemon knows already. No request needs another before it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::gateway::ApiGateway;
use crate::scratch::Scratch;
use crate::server::Server;

/// Answers a request. The daemon has looked at its host, its origin and its token, and has taken in its body.
pub async fn answer(request: Request, gateway: impl ApiGateway, scratch: Scratch) -> Response {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let server = Arc::new(Server::new(gateway, scratch));
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    service.handle(request).await.map(Body::new)
}
