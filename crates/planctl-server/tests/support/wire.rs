//! A connection to the database that counts what the database answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use planctl_store::testing::TestDatabase;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

/// Stands before a database's socket.
pub struct Wire {
    url: String,
    bytes: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Wire {
    pub async fn before(database: &TestDatabase) -> Wire {
        let options = database.connect_options();
        let socket = options.get_socket().expect("the test cluster listens on a socket");
        let socket = socket.join(format!(".s.PGSQL.{}", options.get_port()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let user = options.get_username();
        let url = format!("postgres://{user}@127.0.0.1:{port}/{}?sslmode=disable", database.name());
        let bytes = Arc::new(AtomicU64::new(0));
        let serving = tokio::spawn(serve(listener, socket, bytes.clone()));
        Wire { url, bytes, serving }
    }

    /// Returns the address to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns how many bytes the database has answered.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, socket: PathBuf, bytes: Arc<AtomicU64>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(&socket).await.unwrap();
        tokio::spawn(carry(client, server, bytes.clone()));
    }
}

async fn carry(client: TcpStream, server: UnixStream, bytes: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let upward = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
        bytes.fetch_add(count as u64, Ordering::SeqCst);
        if to_client.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    upward.abort();
}
