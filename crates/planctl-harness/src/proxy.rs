//! Carries the requests of a worker to the hosts that its role may reach, and to no others.
//!
//! The worker has a network of its own with loopback alone. The first process of its namespaces makes the proxy's listener
//! in there and hands it out ([`Handoff`]); connections are accepted and names resolved out here. It ends with the command.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdUnixDatagram;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixDatagram};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::reach::{HostPattern, Wanted, WantedHost};
use crate::spawn::{PROXY_PORT, receive};
/// The most connections at once; others wait.
const CONNECTIONS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long nothing may pass: as long as a model may think about an answer.
const IDLE_MAX: Duration = Duration::from_secs(900);
/// Where clouds tell machines their credentials, beside the link-local address that all of them have.
const METADATA: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];
/// Headers that are said to a proxy, or of one connection, and are not passed on.
const OF_ONE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The variables by which programs find the proxy.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, String)> {
    let proxy = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let proxy = proxy.into_iter().map(|name| (name, format!("http://127.0.0.1:{PROXY_PORT}")));
    let none = ["NO_PROXY", "no_proxy"].into_iter().map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
    proxy.chain(none)
}

/// The hosts that the worker of a role may reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// The role, for who reads a refusal.
    pub role: String,
    /// The list.
    pub listed: Vec<HostPattern>,
}

/// Our end of the socket on which the listener is handed out, and theirs.
pub(crate) struct Handoff {
    ours: UnixDatagram,
    theirs: StdUnixDatagram,
    hosts: Arc<Hosts>,
}

impl Handoff {
    pub(crate) fn open(hosts: &Arc<Hosts>) -> io::Result<Handoff> {
        let (ours, theirs) = StdUnixDatagram::pair()?;
        ours.set_nonblocking(true)?;
        Ok(Handoff { ours: UnixDatagram::from_std(ours)?, theirs, hosts: hosts.clone() })
    }

    pub(crate) fn worker_end(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    /// Serves the listener that is handed out, until this future is dropped.
    pub(crate) async fn serve(self) -> Infallible {
        match self.listener().await {
            Ok(listener) => serve(&listener, &self.hosts).await,
            Err(error) => {
                tracing::warn!(%error, "a worker's network has no proxy");
                std::future::pending().await
            }
        }
    }

    /// Waits for the listener; for ever where the command can't be confined, which hands out nothing.
    async fn listener(&self) -> io::Result<TcpListener> {
        let take = || {
            let packet = receive(&self.ours, &mut [0; 8], RecvFlags::DONTWAIT)?;
            packet
                .and_then(|mut packet| packet.descriptors.pop())
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        };
        let listener: OwnedFd = self.ours.async_io(Interest::READABLE, take).await?;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }
}

async fn serve(listener: &TcpListener, hosts: &Arc<Hosts>) -> Infallible {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let place = room.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let hosts = hosts.clone();
                connections.spawn(async move {
                    serve_connection(stream, hosts).await;
                    drop(place);
                });
            }
            // Out of descriptors, say; those in use are given back in time.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Work that goes on beside a connection: tunnels, and the connections that its requests are passed on with.
type Beside = Arc<Mutex<JoinSet<()>>>;

fn spawn_beside(beside: &Beside, work: impl Future<Output = ()> + Send + 'static) {
    let mut beside = beside.lock().unwrap_or_else(PoisonError::into_inner);
    while beside.try_join_next().is_some() {}
    beside.spawn(work);
}

/// Serves one connection of the worker's to its end.
async fn serve_connection(stream: TcpStream, hosts: Arc<Hosts>) {
    let beside = Beside::default();
    let service = hyper::service::service_fn(|request| {
        let (hosts, beside) = (hosts.clone(), beside.clone());
        async move { Ok::<_, Infallible>(respond(request, &hosts, &beside).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Idle::new(stream)), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a worker's connection to its proxy ended early");
    }
    let mut beside = std::mem::take(&mut *beside.lock().unwrap_or_else(PoisonError::into_inner));
    while beside.join_next().await.is_some() {}
}

/// Why a request is not passed on.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal { status, text: text.into() }
    }
}

type Body = Either<Full<Bytes>, Incoming>;

async fn respond(request: Request<Incoming>, hosts: &Hosts, beside: &Beside) -> Response<Body> {
    forward(request, hosts, beside).await.unwrap_or_else(|refusal| {
        let mut response = Response::new(Either::Left(Full::from(format!("planctl: {}\n", refusal.text))));
        *response.status_mut() = refusal.status;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response
    })
}

async fn forward(
    mut request: Request<Incoming>,
    hosts: &Hosts,
    beside: &Beside,
) -> Result<Response<Body>, Refusal> {
    let wanted = requested_host(request.method(), request.uri())?;
    let mut stream = Idle::new(hosts.connect(&wanted).await?);
    if request.method() == Method::CONNECT {
        let upgrade = hyper::upgrade::on(&mut request);
        spawn_beside(beside, async move {
            if let Ok(upgraded) = upgrade.await {
                // How a tunnel ends is the business of its two ends.
                copy_bidirectional(&mut TokioIo::new(upgraded), &mut stream).await.ok();
            }
        });
        return Ok(Response::new(Either::Left(Full::default())));
    }
    let failed = |error: hyper::Error| {
        Refusal::new(StatusCode::BAD_GATEWAY, format!("{} did not answer: {error}", wanted.entry()))
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // Its errors are those of the answer.
    spawn_beside(beside, async move { drop(connection.await) });
    make_own(&mut request);
    let mut response = sender.send_request(request).await.map_err(failed)?;
    strip(response.headers_mut());
    Ok(response.map(Either::Right))
}

/// Reads where a request wants to go.
fn requested_host(method: &Method, uri: &Uri) -> Result<Wanted, Refusal> {
    let is_tunnel = method == Method::CONNECT;
    let port = match (is_tunnel, uri.scheme_str(), uri.port_u16()) {
        (true, _, Some(port)) => Some(port),
        (false, Some("http"), port) => port.or(Some(80)),
        (true, _, None) | (false, Some(_) | None, _) => None,
    };
    match (uri.host(), port) {
        (Some(host), Some(port)) => Ok(Wanted::new(host, port)),
        (Some(_) | None, _) => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "this is a proxy: it takes CONNECT host:port, and requests for http:// addresses",
        )),
    }
}

/// Makes of a request to the proxy one to the server. Its `Host` header becomes that of the server.
fn make_own(request: &mut Request<Incoming>) {
    let uri = request.uri();
    let host = match (uri.host(), uri.port_u16()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => String::new(),
    };
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = Version::HTTP_11;
    strip(request.headers_mut());
    if let Ok(host) = HeaderValue::try_from(host) {
        request.headers_mut().insert(header::HOST, host);
    }
}

fn strip(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: HashSet<HeaderName> = named.chain(OF_ONE_CONNECTION).collect();
    for name in named {
        headers.remove(name);
    }
}

impl Hosts {
    async fn connect(&self, wanted: &Wanted) -> Result<TcpStream, Refusal> {
        let entry = wanted.entry();
        if !wanted.is_listed(&self.listed) {
            return Err(self.refused(
                wanted,
                &entry,
                format!("the role `{}` may not reach {entry}", self.role),
            ));
        }
        let bad = |status, what: String| Refusal::new(status, format!("could not reach {entry}: {what}"));
        let places: Vec<SocketAddr> = match &wanted.host {
            WantedHost::Address(address) => vec![SocketAddr::new(*address, wanted.port)],
            WantedHost::Name(name) => {
                let found =
                    timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name.as_str(), wanted.port))).await;
                let found = found
                    .map_err(|_| {
                        bad(StatusCode::GATEWAY_TIMEOUT, "its name was not resolved in time".into())
                    })?
                    .map_err(|error| bad(StatusCode::BAD_GATEWAY, error.to_string()))?;
                let (kept, left): (Vec<_>, Vec<_>) = found.partition(|place| self.may_lead_to(*place));
                if let (true, Some(place)) = (kept.is_empty(), left.first()) {
                    let own =
                        Wanted { host: WantedHost::Address(place.ip().to_canonical()), port: wanted.port };
                    let what = format!(
                        "{entry} leads to {}, an address of this machine or link, or of a cloud's metadata, which no \
                         name may lead to",
                        place.ip()
                    );
                    return Err(self.refused(wanted, &own.entry(), what));
                }
                kept
            }
        };
        let mut error = "its name has no address".to_owned();
        for place in places {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(place)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(refused)) => error = refused.to_string(),
                Err(_) => error = "it did not answer in time".to_owned(),
            }
        }
        Err(bad(StatusCode::BAD_GATEWAY, error))
    }

    /// Says whether a listed name may lead to this address, so that a name server can't lead to a service of this host.
    fn may_lead_to(&self, place: SocketAddr) -> bool {
        let address = place.ip().to_canonical();
        !is_close(address)
            || Wanted { host: WantedHost::Address(address), port: place.port() }.is_listed(&self.listed)
    }

    fn refused(&self, wanted: &Wanted, entry: &str, what: String) -> Refusal {
        tracing::info!(role = self.role, host = %wanted.entry(), "a worker's request was refused: {what}");
        let role = &self.role;
        let help = format!("to allow it, add \"{entry}\" to `network` of [roles.{role}] in planctl.toml");
        Refusal::new(StatusCode::FORBIDDEN, format!("{what}; {help}"))
    }
}

/// Says that an address is one of this machine, of its links, or of the metadata of a cloud.
fn is_close(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.octets()[0] == 0
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local()
        }
    };
    // Only an address of one's own can be bound.
    is_special
        || address.is_multicast()
        || METADATA.contains(&address)
        || UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// A connection that fails when nothing has passed for too long.
struct Idle {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
}

impl Idle {
    fn new(stream: TcpStream) -> Idle {
        Idle { stream, end: Box::pin(sleep(IDLE_MAX)) }
    }

    fn poll_or_time_out<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.end.as_mut().reset(Instant::now() + IDLE_MAX);
            return polled;
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Idle {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.poll_or_time_out(polled, cx)
    }
}

impl AsyncWrite for Idle {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.poll_or_time_out(polled, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_where_it_goes_or_is_none_for_a_proxy() {
        let read = |method: &str, uri: &str| {
            let wanted = requested_host(&method.parse().unwrap(), &uri.parse().unwrap());
            wanted.map(|wanted| wanted.entry()).map_err(|refusal| refusal.status.as_u16())
        };
        for (method, uri, expected) in [
            ("CONNECT", "example.com:443", Ok("example.com")),
            ("CONNECT", "EXAMPLE.com:8443", Ok("example.com:8443")),
            ("CONNECT", "[::1]:8443", Ok("[::1]:8443")),
            ("CONNECT", "example.com", Err(400)),
            ("GET", "http://example.com/x?y", Ok("example.com")),
            ("POST", "http://example.com:8080", Ok("example.com:8080")),
            ("GET", "http://allowed@evil.example/", Ok("evil.example")),
            ("GET", "http://example.com:80@evil.example:81/", Ok("evil.example:81")),
            ("GET", "https://example.com/", Err(400)),
            ("GET", "/x", Err(400)),
            ("OPTIONS", "*", Err(400)),
        ] {
            assert_eq!(read(method, uri), expected.map(str::to_owned), "{method} {uri}");
        }
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("accept", "*/*"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        strip(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn addresses_of_this_machine_its_links_and_of_metadata_are_close() {
        for (address, is_so) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("::1", true),
            ("::", true),
            ("169.254.169.254", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("100.100.100.200", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_close(address.parse().unwrap()), is_so, "{address}");
        }
    }
}
