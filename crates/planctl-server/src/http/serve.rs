//! Listens: on a Unix socket in the state directory always, on a port on request.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use planctl_api::Next;
use planctl_harness::{Connection, blocking_in_place, is_inside_session, is_inside_worker};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tower::ServiceExt;

use super::capacity::{StrangerSlot, Strangers};
use super::guard::Peer;
use super::problem::response_of;
use super::slots::Slots;
use super::{ApiState, page, routes};
use crate::node::ServerNode;
use crate::node::doctor::Doctor;
use crate::node::drafter::Drafter;
use crate::node::health::Health;
use crate::node::services::{Caps, ServiceError};
use planctl_api::wire::daemon::DaemonInfo;
use planctl_api::wire::moment;
use planctl_api::{Code, Problem};

/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How large the head of a request may be.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How many headers it may have.
const HEADERS_MAX: usize = 64;
/// How long an address may be.
const URI_BYTES_MAX: usize = 8 << 10;
/// How many connections are open at once on the socket, and on the port; further ones wait.
const CONNECTIONS_MAX: usize = 2048;
/// Each acceptor has this part of the files that may be open at most, so that workers and contracts have the others.
const PART_OF_FILES: u64 = 4;
/// How long requests that are under way may take at a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait where no connection can be accepted, as without file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Options of the listeners.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The socket's path.
    pub socket: PathBuf,
    /// The port to listen on besides.
    pub listen: Option<SocketAddr>,
    /// Names by which the daemon may be called on the port, besides loopback's.
    pub hosts: Vec<String>,
    /// From how much on no further run begins.
    pub caps: Caps,
    /// How the daemon is.
    pub health: Health,
    /// Gate slots of this process; without them gates stay in their lane.
    pub slots: Option<Slots>,
    /// Looks at this machine; without it nobody does.
    pub doctor: Option<Doctor>,
    /// Drafts plans; without it nobody does.
    pub drafter: Option<Drafter>,
    /// Becomes true when the daemon stops.
    pub stop: watch::Receiver<bool>,
}

impl HttpOptions {
    /// Returns the options of a server that listens on a socket alone, and has nothing beside it.
    pub fn new(socket: PathBuf, stop: watch::Receiver<bool>) -> HttpOptions {
        HttpOptions {
            socket,
            listen: None,
            hosts: Vec::new(),
            caps: Caps::default(),
            health: Health::default(),
            slots: None,
            doctor: None,
            drafter: None,
            stop,
        }
    }

    /// Says whether a Host header means this daemon (A37).
    pub(super) fn accepts_host(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        let own = self.socket.parent().map(|state_dir| page::own_address(state_dir).ip().to_string());
        let loopback = ["127.0.0.1", "localhost", "::1"].into_iter().chain(own.as_deref());
        loopback.chain(self.hosts.iter().map(String::as_str)).any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns where it listens.
    pub(super) fn info(&self) -> DaemonInfo {
        DaemonInfo {
            pid: std::process::id(),
            socket: self.socket.to_string_lossy().into_owned(),
            tcp: self.listen.map(|address| address.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: moment(self.health.started_at()),
        }
    }
}

/// Returns the name of a Host header, which a port may follow; `None` where it is anything else.
fn name_of(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    (rest.is_empty() || is_port(rest)).then_some(name)
}

/// Returns the path of the socket that the daemon of a state directory listens on.
pub fn socket_of(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.sock")
}

/// Listeners that are open and not yet served.
pub struct Listening {
    socket: UnixListener,
    port: Option<TcpListener>,
    /// Brings the page's own port, once it is opened.
    page: mpsc::UnboundedReceiver<TcpListener>,
    api: ApiState,
}

impl Listening {
    /// Opens the socket, readable for this user only, the port, and the page's own port where an earlier daemon had it.
    ///
    /// # Errors
    ///
    /// The error of the system: the port is in use, the folder can't be written.
    pub async fn open(server_node: ServerNode, mut options: HttpOptions) -> Result<Listening, ServiceError> {
        let wrong = ServiceError::io(format!("listen on {}", options.socket.display()));
        let socket = blocking_in_place(|| bind(&options.socket)).map_err(wrong)?;
        let port = match options.listen {
            Some(address) => {
                let wrong = ServiceError::io(format!("listen on {address}"));
                let port = match TcpListener::bind(address).await {
                    // Only the system knows which process has the port.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                        return Err(ServiceError::Conflict {
                            what: format!("listen on {address}: another process has that port"),
                            next: Next::by_hand(format!(
                                "ss -ltnp 'sport = :{}'     # says which; or take another port",
                                address.port()
                            )),
                        });
                    }
                    bound => bound.map_err(wrong)?,
                };
                // Port 0 means any free port; the daemon announces which.
                options.listen = port.local_addr().ok().or(options.listen);
                Some(port)
            }
            None => None,
        };
        let (page_ports, page) = mpsc::unbounded_channel();
        let state_dir = server_node.state_dir().to_owned();
        let api = ApiState::new(server_node, options, Some(page_ports));
        api.page().reopen_port(&state_dir).await;
        Ok(Listening { socket, port, page, api })
    }

    /// Returns the addresses of the listeners.
    pub fn info(&self) -> DaemonInfo {
        self.api.options().info()
    }
}

/// Takes the socket's place: a file there belongs to a daemon that is gone, since one daemon at a time has the directory.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Nobody can connect between the two: the folder is for its owner only where the state directory is.
    let socket = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

/// Serves requests until the daemon stops; those that are under way then are finished, within limits.
pub async fn serve(listening: Listening) {
    let Listening { socket, port, page, api } = listening;
    let mut stop = api.options().stop.clone();
    let path = api.options().socket.clone();
    let connections_max = connections_max();
    let strangers = Strangers::of(connections_max);
    let router = routes::router(&api);
    let pages = page::router(&api, router.clone());
    let acceptor = Acceptor { router, pages, api, strangers, connections_max };
    let local = acceptor.clone().local(socket);
    let network = acceptor.clone().network(port, LetsIn::Everybody);
    let page = acceptor.clone().page(page);
    tokio::select! {
        never = local => match never {},
        never = network => match never {},
        never = page => match never {},
        // A sender that is gone means stop as well.
        () = wait_until_stopped(&mut stop) => {}
    }
    let tasks = acceptor.api.tasks();
    tasks.close();
    if tokio::time::timeout(STOP_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::debug!(open = tasks.len(), "connections are cut");
    }
    if let Err(error) = blocking_in_place(|| std::fs::remove_file(&path)) {
        tracing::debug!(%error, "the socket's file stays behind");
    }
}

/// Returns how many connections an acceptor has at most.
fn connections_max() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let part = usize::try_from(files.unwrap_or(u64::MAX) / PART_OF_FILES).unwrap_or(usize::MAX);
    part.clamp(1, CONNECTIONS_MAX)
}

enum Never {}

/// Whom a port lets in before they have shown anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetsIn {
    /// Everybody who reaches it.
    Everybody,
    /// Processes of this user and of root, which the kernel tells.
    OwnUser,
}

#[derive(Clone)]
struct Acceptor {
    router: Router,
    /// The same routes and the pages.
    pages: Router,
    api: ApiState,
    strangers: Strangers,
    connections_max: usize,
}

impl Acceptor {
    async fn local(self, socket: UnixListener) -> Never {
        let permits = Arc::new(Semaphore::new(self.connections_max));
        loop {
            match socket.accept().await {
                Ok((stream, _)) => {
                    let Ok(who) = stream.peer_cred() else { continue };
                    // The socket's file lets in its owner and root only; the kernel says who it is.
                    let own = rustix::process::geteuid().as_raw();
                    if who.uid() == own || who.uid() == 0 {
                        let state_dir = self.api.server_node().state_dir().to_owned();
                        // Its parents' files are read, which is nothing for a thread that many wait for.
                        let peer = async move {
                            // Of a process that the kernel does not name, as one in a container, nothing is known.
                            let asked = who.pid().map(|pid| {
                                tokio::task::spawn_blocking(move || {
                                    (is_inside_worker(pid), is_inside_session(pid, &state_dir))
                                })
                            });
                            let (is_inside_worker, is_inside_session) = match asked {
                                Some(asked) => asked.await.unwrap_or((true, true)),
                                None => (true, true),
                            };
                            Some(Peer::Local { uid: who.uid(), is_inside_worker, is_inside_session })
                        };
                        self.serve_connection(stream, self.router.clone(), peer, None, &permits).await;
                    }
                }
                Err(error) => cannot_accept(&error).await,
            }
        }
    }

    /// Serves the page's own port, once it is opened.
    async fn page(self, mut opened: mpsc::UnboundedReceiver<TcpListener>) -> Never {
        let port = opened.recv().await;
        self.network(port, LetsIn::OwnUser).await
    }

    async fn network(self, port: Option<TcpListener>, lets_in: LetsIn) -> Never {
        let Some(port) = port else { return std::future::pending().await };
        let permits = Arc::new(Semaphore::new(self.connections_max));
        loop {
            match port.accept().await {
                Ok((stream, from)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection keeps Nagle's delay");
                    }
                    // A connection that has ended has nobody to answer.
                    let Ok(to) = stream.local_addr() else { continue };
                    let connection = Connection { from, to };
                    let peer = async move {
                        // The kernel's tables are read, which others must not wait for.
                        let is_own = move || connection.is_of_own_user();
                        let is_let_in = lets_in == LetsIn::Everybody
                            || tokio::task::spawn_blocking(is_own).await.unwrap_or(false);
                        is_let_in.then_some(Peer::Network(connection))
                    };
                    let stranger = Some(self.strangers.admit());
                    self.serve_connection(stream, self.pages.clone(), peer, stranger, &permits).await;
                }
                Err(error) => cannot_accept(&error).await,
            }
        }
    }

    /// Serves one connection in a task of its own.
    async fn serve_connection(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        router: Router,
        peer: impl Future<Output = Option<Peer>> + Send + 'static,
        stranger: Option<(StrangerSlot, oneshot::Receiver<()>)>,
        permits: &Arc<Semaphore>,
    ) {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let api = self.api.clone();
        let mut stop = self.api.options().stop.clone();
        let (place, must_go) = stranger.unzip();
        self.api.tasks().spawn(async move {
            let Some(peer) = peer.await else { return };
            let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
                api.requests().count_request();
                request.extensions_mut().insert(peer);
                if let Some(place) = &place {
                    request.extensions_mut().insert(place.clone());
                }
                let router = router.clone();
                async move {
                    let request = request.map(axum::body::Body::new);
                    Ok::<_, std::convert::Infallible>(route_request(router, request).await)
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(HEAD_BYTES_MAX)
                .max_headers(HEADERS_MAX)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let served = tokio::select! {
                served = &mut connection => served,
                () = wait_to_make_way(must_go) => Ok(()),
                () = wait_until_stopped(&mut stop) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
}

/// Resolves when a connection must end for others; never for one that has shown a token.
async fn wait_to_make_way(must_go: Option<oneshot::Receiver<()>>) {
    let is_asked = match must_go {
        Some(must_go) => must_go.await.is_ok(),
        None => false,
    };
    if !is_asked {
        std::future::pending::<()>().await;
    }
}

/// Resolves when the daemon stops, or nobody can say so any more.
async fn wait_until_stopped(stop: &mut watch::Receiver<bool>) {
    if let Err(error) = stop.wait_for(|stop| *stop).await {
        tracing::debug!(%error, "nobody says stop any more");
    }
}

async fn cannot_accept(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

/// Routes one request, and marks its answer.
pub(super) async fn route_request(router: Router, request: Request) -> Response {
    if request.uri().to_string().len() > URI_BYTES_MAX {
        let detail = format!("an address has at most {URI_BYTES_MAX} bytes");
        return with_response_headers(response_of(&Problem::new(Code::UriTooLong, detail)));
    }
    match router.oneshot(request).await {
        Ok(response) => with_response_headers(response),
        Err(never) => match never {},
    }
}

/// Adds what every answer carries: nobody guesses its type, nobody keeps it.
fn with_response_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mark = |name| HeaderName::from_static(name);
    headers.insert(mark("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.entry(mark("referrer-policy")).or_insert(HeaderValue::from_static("no-referrer"));
    headers.entry(mark("cache-control")).or_insert(HeaderValue::from_static("no-store"));
    response
}
