//! One conversation with a server, bounded in what it may answer.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use planctl_harness::{ToolServer, mended_json};
use planctl_lang::tools::{Tool, ToolList};
use reqwest::redirect::Policy;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, PaginatedRequestParams};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
    DuplexStream,
};

use crate::fault::{Fault, FaultKind};
use crate::request::Server;

/// The most bytes that a server may send in one conversation; behind them it counts as gone.
const RECEIVED_BYTES_MAX: u64 = 64 << 20;
/// How long an address may take to be reached.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// The most bytes of one message.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// The most bytes that wait to be read.
const PIPE_BYTES: usize = 64 << 10;
/// The most tools of one server.
const TOOLS_MAX: usize = 2_000;
/// The most pages of a list of tools: a server may answer each page with another one.
const PAGES_MAX: usize = 100;
/// The longest description of a tool that is kept, in characters.
const DESCRIPTION_CHARS_MAX: usize = 4_000;

/// A conversation that has begun.
pub(crate) struct Connection {
    service: RunningService<RoleClient, ()>,
    program: Option<ToolServer>,
}

/// Passes messages on as every reader takes them, with U+FFFD for halves of surrogate pairs; all else as it is.
fn mended(output: impl AsyncRead + Send + Unpin + 'static) -> DuplexStream {
    let (mut passed, read) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(async move {
        let (mut output, mut line) = (BufReader::new(output), Vec::new());
        while (&mut output).take(MESSAGE_BYTES_MAX as u64).read_until(b'\n', &mut line).await? > 0 {
            passed.write_all(&mended_json(&line).unwrap_or(Cow::Borrowed(&line))).await?;
            line.clear();
        }
        io::Result::Ok(())
    });
    read
}

impl Connection {
    /// Starts the server, or goes to its address, and says hello.
    pub(crate) async fn open(server: &Server) -> Result<Connection, Fault> {
        match server {
            Server::Command { command, environment } => {
                let (program, output, input) = ToolServer::start(command, environment).map_err(|error| {
                    let name = command.first().map_or("", String::as_str);
                    Fault::new(FaultKind::Network, format!("could not start {name}: {error}"))
                })?;
                let connection = Connection::connect_over(output, input).await?;
                Ok(Connection { program: Some(program), ..connection })
            }
            Server::Url { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .max_sse_event_size(MESSAGE_BYTES_MAX)
                    .max_json_response_size(MESSAGE_BYTES_MAX)
                    .max_error_response_size(4 << 10);
                if let Some(token) = token {
                    config = config.auth_header(token.clone());
                }
                let transport = StreamableHttpClientTransport::with_client(client()?, config);
                let service = ().serve(transport).await.map_err(|error| Fault::from_start(&error))?;
                Ok(Connection { service, program: None })
            }
        }
    }

    /// Says hello over two streams.
    async fn connect_over(
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Connection, Fault> {
        let transport = AsyncRwTransport::new_client(mended(output.take(RECEIVED_BYTES_MAX)), input)
            .with_max_line_length(MESSAGE_BYTES_MAX);
        let service = ().serve(transport).await.map_err(|error| Fault::from_start(&error))?;
        Ok(Connection { service, program: None })
    }

    /// Returns the name and the version by which the server knows itself.
    pub(crate) fn server(&self) -> (String, String) {
        let known = self.service.peer_info();
        let of = known.as_ref().and_then(|known| known.server_info.as_ref());
        of.map_or_else(Default::default, |of| (shorten(&of.name), shorten(&of.version)))
    }

    /// Asks for the tools.
    pub(crate) async fn list(&self) -> Result<ToolList, Fault> {
        let (server, version) = self.server();
        let mut tools: Vec<Tool> = Vec::new();
        let mut page: Option<PaginatedRequestParams> = None;
        for _ in 0..PAGES_MAX {
            let listed = self.service.list_tools(page).await.map_err(|error| Fault::from_service(&error))?;
            tools.extend(listed.tools.into_iter().map(to_tool));
            if tools.len() > TOOLS_MAX {
                let message = format!("the server lists more than {TOOLS_MAX} tools");
                return Err(Fault::new(FaultKind::Protocol, message));
            }
            let Some(cursor) = listed.next_cursor else {
                tools.sort_by(|one, other| one.name.cmp(&other.name));
                tools.dedup_by(|one, other| one.name == other.name);
                return Ok(ToolList { server, version, tools });
            };
            page = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
        }
        Err(Fault::new(FaultKind::Protocol, "the list of tools does not end"))
    }

    /// Uses a tool once.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, Fault> {
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.service.call_tool(call).await.map_err(|error| Fault::from_service(&error))
    }

    /// Ends the conversation, and the server with it.
    pub(crate) async fn close(self) {
        // It ends in any case; how does not matter to a result that is there.
        self.service.cancel().await.ok();
        if let Some(program) = self.program {
            program.shut_down().await;
        }
    }
}

/// Returns the client of a server at an address. It goes nowhere else: a token is for the address that a person trusted.
fn client() -> Result<reqwest::Client, Fault> {
    // Twice is once.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_WITHIN);
    // A connection whose answer was not read to its end is not used again, since that may stall.
    let client = builder.pool_max_idle_per_host(0).build();
    client.map_err(|error| Fault::new(FaultKind::Network, format!("could not make a client: {error}")))
}

/// Takes of a tool what planctl uses.
fn to_tool(tool: rmcp::model::Tool) -> Tool {
    let hints = tool.annotations.as_ref().map_or_else(Vec::new, |hints| {
        let named = [
            ("read only", hints.read_only_hint == Some(true)),
            ("destructive", hints.destructive_hint == Some(true)),
            ("idempotent", hints.idempotent_hint == Some(true)),
        ];
        named.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word.to_owned()).collect()
    });
    let description = tool.description.unwrap_or_default();
    Tool {
        name: tool.name.into_owned(),
        description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
        input: Value::Object((*tool.input_schema).clone()),
        hints,
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
