//! The pages of a server node on a port of their own, and a browser that is signed in.

use planctl_server::ServerNode;
use planctl_server::http::{HttpOptions, Listening, serve, socket_of};
use planctl_store::{NewToken, NewlyMade, Store, TokenScope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Makes the token of a session that may do everything.
pub async fn session(store: &Store) -> String {
    let new = NewToken {
        name: "ann",
        scope: TokenScope::Admin,
        roles: &[],
        lasts: None,
        request: None,
        person: None,
    };
    let NewlyMade::Token(_, secret) = store.create_token(&new).await.unwrap() else { panic!() };
    secret
}

/// Opens the ports of a node that ends by what it sends.
pub async fn listen(node: &ServerNode) -> (watch::Sender<bool>, Listening) {
    let (stop, stopped) = watch::channel(false);
    let options = HttpOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        ..HttpOptions::new(socket_of(node.state_dir()), stopped)
    };
    (stop, Listening::open(node.clone(), options).await.unwrap())
}

/// The pages of a node.
pub struct Door {
    port: String,
    secret: String,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Door {
    /// Opens a port for a session.
    pub async fn open(node: &ServerNode, secret: &str) -> Door {
        let (stop, listening) = listen(node).await;
        let port = listening.info().tcp.unwrap();
        let serving = tokio::spawn(serve(listening));
        Door { port, secret: secret.to_owned(), stop, serving }
    }

    /// Asks for a page; the answer is still to be read.
    pub async fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.port).await.unwrap();
        let (port, secret) = (&self.port, &self.secret);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {port}\r\nconnection: close\r\ncookie: planctl_session={secret}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Returns a page, its head included.
    pub async fn load(&self, path: &str) -> String {
        let mut reply = String::new();
        self.ask(path).await.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("</html>"), "{path}: {reply}");
        reply
    }

    /// Closes the port; returns once nobody is served any more.
    pub async fn close(self) {
        self.stop.send(true).unwrap();
        self.serving.await.unwrap();
    }
}
