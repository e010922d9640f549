//! The page's own port, and links that sign somebody in who sits at this machine, once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use planctl_api::wire::PageLink;
use planctl_api::{Code, Problem};
use planctl_engine::Actor;
use planctl_harness::blocking_in_place;
use planctl_store::secret;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::Instant;

use super::Call;
use crate::clock;
use crate::http::guard::Peer;
use crate::http::{Answer, json};
use crate::mutex::lock;
use crate::picture::Layouts;

/// How long a link waits for its use.
const LINK_HOLDS: Duration = Duration::from_secs(120);
/// The most links that wait.
const LINKS_MAX: usize = 32;
/// The port, where nobody else has it.
const PORT: u16 = 7420;
/// The file that says that the port is to be opened whenever the daemon starts.
const OPENED: &str = "page.open";

/// The page of a daemon: its port, and the links that wait.
pub(in crate::http) struct Page {
    own: SocketAddr,
    /// Takes the port that was opened; without it nobody serves pages.
    ports: Option<mpsc::UnboundedSender<TcpListener>>,
    opened: OnceCell<SocketAddr>,
    links: Mutex<HashMap<String, (Visitor, Instant)>>,
    layouts: Arc<Layouts>,
    /// When something was decided by a call of this daemon.
    decided_at: Mutex<Instant>,
}

/// The person for whom a link is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Visitor {
    /// The name with which they sign.
    pub(super) actor: Actor,
    /// The person as planctl knows them by itself.
    pub(super) person: String,
}

/// Returns the address of a state directory's page.
///
/// Cookies don't know ports: a browser sends those of 127.0.0.1 to every server there, also to one that an agent started.
/// So each state directory has a loopback address of its own.
pub(in crate::http) fn own_address(state_dir: &Path) -> SocketAddr {
    let digest = Sha256::digest(state_dir.as_os_str().as_encoded_bytes());
    let [a, b, c] = [digest[0], digest[1], digest[2]].map(|byte| byte % 254 + 1);
    SocketAddr::from((Ipv4Addr::new(127, a, b, c), PORT))
}

impl Page {
    pub(in crate::http) fn new(state_dir: &Path, ports: Option<mpsc::UnboundedSender<TcpListener>>) -> Page {
        let own = own_address(state_dir);
        Page {
            own,
            ports,
            opened: OnceCell::new(),
            links: Mutex::default(),
            layouts: Arc::default(),
            decided_at: Mutex::new(clock::instant()),
        }
    }

    /// Opens the port again that an earlier daemon of this state directory had opened.
    pub(in crate::http) async fn reopen_port(&self, state_dir: &Path) {
        if blocking_in_place(|| state_dir.join(OPENED).exists())
            && let Err(problem) = self.address(state_dir).await
        {
            tracing::warn!(problem = %problem.detail, "the page's port stays closed");
        }
    }

    /// Notes that something was decided: what pages read before is too old for all who look at them.
    pub(in crate::http) fn note_decision(&self) {
        *lock(&self.decided_at) = clock::instant();
    }

    /// Returns when something was decided last.
    pub(super) fn decided_at(&self) -> Instant {
        *lock(&self.decided_at)
    }

    /// Returns the layouts of pictures that were drawn.
    pub(in crate::http) fn layouts(&self) -> &Arc<Layouts> {
        &self.layouts
    }

    /// Returns where the page is; opens the port where it is closed.
    async fn address(&self, state_dir: &Path) -> Result<SocketAddr, Problem> {
        let opened = self.opened.get_or_try_init(|| async {
            let Some(ports) = &self.ports else { return Err(no_daemon()) };
            let wrong = |error: io::Error| {
                Problem::new(Code::Temporary, format!("could not open {}: {error}", self.own))
            };
            let port = match TcpListener::bind(self.own).await {
                // Another program has the number; any other does.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    TcpListener::bind((self.own.ip(), 0)).await.map_err(wrong)?
                }
                bound => bound.map_err(wrong)?,
            };
            let address = port.local_addr().map_err(wrong)?;
            blocking_in_place(|| fs::write(state_dir.join(OPENED), "")).map_err(wrong)?;
            ports.send(port).map_err(|_| Problem::new(Code::Stopping, "the daemon is about to stop"))?;
            Ok(address)
        });
        opened.await.copied()
    }

    /// Makes a link for somebody.
    fn create_link(&self, visitor: Visitor, now: Instant) -> String {
        let code = secret();
        let mut links = lock(&self.links);
        links.retain(|_, (_, until)| *until > now);
        if links.len() >= LINKS_MAX {
            links.clear();
        }
        links.insert(hash_code(&code), (visitor, now + LINK_HOLDS));
        code
    }

    /// Uses a link up; returns whose it is.
    pub(super) fn redeem_link(&self, code: &str, now: Instant) -> Option<Visitor> {
        let mut links = lock(&self.links);
        let (visitor, until) = links.remove(&hash_code(code))?;
        (until > now).then_some(visitor)
    }
}

/// Returns the form in which a code is kept, so that comparing it tells nothing of it.
fn hash_code(code: &str) -> String {
    crate::http::guard::hash_of(&[code.as_bytes()])
}

fn no_daemon() -> Problem {
    Problem::new(Code::Conflict, "could not open the page: no daemon runs that serves it")
        .help("start a daemon")
}

/// Makes a link that signs the caller in, once; opens the page's port where it is closed.
pub(in crate::http) async fn link(call: Call) -> Answer {
    let Peer::Local { .. } = call.principal.peer else {
        return Err(Problem::new(
            Code::Conflict,
            "a link is made for a user of this machine, who calls by the socket",
        )
        .help("elsewhere, sign in with a token"));
    };
    let page = call.api.page();
    let address = page.address(call.server_node().state_dir()).await?;
    let code = page.create_link(
        Visitor { actor: call.actor().clone(), person: call.principal.person.clone() },
        clock::instant(),
    );
    json(&PageLink { url: format!("http://{address}/open/{code}"), seconds: LINK_HOLDS.as_secs() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a34_a_link_is_used_once_and_not_late() {
        let page = Page::new(Path::new("/state"), None);
        let now = clock::instant();
        let visitor = |name: &str| Visitor { actor: Actor::new(name), person: "user".to_owned() };
        let (ann, bob) = (page.create_link(visitor("ann"), now), page.create_link(visitor("bob"), now));
        assert_eq!(page.redeem_link(&ann, now), Some(visitor("ann")));
        assert_eq!(page.redeem_link(&ann, now), None, "it is used up");
        assert_eq!(page.redeem_link("nothing", now), None);
        assert_eq!(page.redeem_link(&bob, now + LINK_HOLDS), None, "its time is over");
    }

    #[test]
    fn each_state_directory_has_a_loopback_address_of_its_own() {
        let (one, other) = (own_address(Path::new("/a")), own_address(Path::new("/b")));
        assert!(one.ip().is_loopback() && one != other && one == own_address(Path::new("/a")));
        assert_ne!(one.ip(), Ipv4Addr::LOCALHOST);
    }
}
