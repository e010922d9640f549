//! A proxy before the server that writes one statement anew, and passes all else on as it is: a check that stands in a statement of
//! the store is taken out of what the store sends.

use std::io;

use planctl_store::PgConnectOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{TcpListener, UnixStream};

/// Listens before the server of these options until the test's runtime ends; returns the port on the loopback.
pub async fn listen(options: &PgConnectOptions, statement: &'static str, anew: String) -> u16 {
    let socket = options.get_socket().expect("the test cluster listens on a socket");
    let socket = socket.join(format!(".s.PGSQL.{}", options.get_port()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = UnixStream::connect(&socket).await else { continue };
            let (from_client, mut to_client) = client.into_split();
            let (mut from_server, to_server) = server.into_split();
            let anew = anew.clone();
            tokio::spawn(async move { pass_on(from_client, to_server, statement, &anew).await.ok() });
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await.ok() });
        }
    });
    port
}

/// Passes on what a client sends: the first message has no kind; each further one is its kind, its length and its content.
async fn pass_on(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    statement: &str,
    anew: &str,
) -> io::Result<()> {
    const PARSE: u8 = b'P';
    let first = content(&mut client).await?;
    send(&mut server, &[], &first).await?;
    loop {
        let kind = client.read_u8().await?;
        let mut content = content(&mut client).await?;
        if kind == PARSE {
            content = rewritten(&content, statement, anew);
        }
        send(&mut server, &[kind], &content).await?;
    }
}

/// Reads a length, which counts itself, and as much.
async fn content(client: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut content = vec![0; length as usize - 4];
    client.read_exact(&mut content).await?;
    Ok(content)
}

async fn send(server: &mut OwnedWriteHalf, kind: &[u8], content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len() + 4).expect("a message is short");
    server.write_all(&[kind, &length.to_be_bytes(), content].concat()).await
}

/// Puts the text anew in place of the statement, in a message that has a name, a text, each with a zero byte, and types.
fn rewritten(content: &[u8], statement: &str, anew: &str) -> Vec<u8> {
    let parts: Vec<&[u8]> = content.splitn(3, |byte| *byte == 0).collect();
    match parts[..] {
        [name, text, types] if text == statement.as_bytes() => [name, anew.as_bytes(), types].join(&0),
        _ => content.to_vec(),
    }
}
