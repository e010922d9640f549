//! One client over standard input and output, which is the session.

use rmcp::service::serve_server;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;

use crate::gateway::ApiGateway;
use crate::scratch::Scratch;
use crate::server::Server;

/// The longest message: a plan of 1 MiB as a JSON string at its worst, and what is around it.
const MESSAGE_BYTES_MAX: usize = 7 << 20;

/// Serves a client until it hangs up.
///
/// # Errors
///
/// Says why the conversation did not begin, or how it broke off.
pub async fn serve_stdio(gateway: impl ApiGateway, scratch: Scratch) -> Result<(), String> {
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
    let begun = serve_server(Server::new(gateway, scratch), transport).await;
    let service = begun.map_err(|error| error.to_string())?;
    service.waiting().await.map(drop).map_err(|error| error.to_string())
}
