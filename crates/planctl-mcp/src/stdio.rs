//! One client over standard input and output, which is the session.

use std::borrow::Cow;
use std::io;

use rmcp::service::serve_server;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
    DuplexStream,
};
use tokio::sync::mpsc;

use crate::gateway::ApiGateway;
use crate::scratch::Scratch;
use crate::server::Server;

/// The longest message: a plan of 1 MiB as a JSON string at its worst, and what is around it.
const MESSAGE_BYTES_MAX: usize = 7 << 20;
/// The most bytes that wait on their way.
const PIPE_BYTES: usize = 64 << 10;
/// The answer to a line that is not JSON.
const UNREAD: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"the message is not JSON\"}}\n";

/// Returns a JSON text as every reader takes it; nothing where it is not JSON.
pub type Mend = fn(&[u8]) -> Option<Cow<'_, [u8]>>;

/// Serves a client until it hangs up.
///
/// # Errors
///
/// Says why the conversation did not begin, or how it broke off.
pub async fn serve_stdio(gateway: impl ApiGateway, scratch: Scratch, mend: Mend) -> Result<(), String> {
    let (input, output) = stdio_pipes();
    let (passed, requests) = tokio::io::duplex(PIPE_BYTES);
    let (answers, sent) = tokio::io::duplex(PIPE_BYTES);
    let (unread, refused) = mpsc::channel(1);
    tokio::spawn(pass_requests(input, passed, unread, mend));
    let writing = tokio::spawn(write_answers(sent, refused, output));
    let transport = AsyncRwTransport::new_server(requests, answers).with_max_line_length(MESSAGE_BYTES_MAX);
    let served = match serve_server(Server::new(gateway, scratch), transport).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    // All answers are written; where nobody reads them, they are lost.
    writing.await.ok();
    served
}

/// Passes messages on; one that is not JSON is refused.
async fn pass_requests(
    input: impl AsyncRead + Unpin,
    mut passed: DuplexStream,
    unread: mpsc::Sender<()>,
    mend: Mend,
) -> io::Result<()> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    while (&mut input).take(MESSAGE_BYTES_MAX as u64).read_until(b'\n', &mut line).await? > 0 {
        match mend(&line) {
            Some(message) => passed.write_all(&message).await?,
            None if line.trim_ascii().is_empty() => {}
            None => unread.send(()).await.map_err(io::Error::other)?,
        }
        line.clear();
    }
    Ok(())
}

/// Writes answers line by line, and refusals between them.
async fn write_answers(
    sent: DuplexStream,
    mut refused: mpsc::Receiver<()>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut sent, mut line) = (BufReader::new(sent), Vec::new());
    loop {
        tokio::select! {
            read = sent.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    return Ok(());
                }
                output.write_all(&line).await?;
                line.clear();
            }
            Some(()) = refused.recv() => output.write_all(UNREAD).await?,
        }
        output.flush().await?;
    }
}
