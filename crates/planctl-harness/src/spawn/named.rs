//! Names that one tree of this host has at a time: sockets that guardians hold, by which others have them end their trees.
//!
//! The kernel frees a name once the guardian is gone, and so the tree. All planctls of a host see it, whatever their state
//! directories, as far as they share its network.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use planctl_engine::{NodeId, RunId};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::ancestry::{describe_process, is_inside_worker};
use crate::blocking::brief_file_work;
use crate::digest::digest_of;

/// How many may wait for the end of one tree.
const WAITERS_MAX: i32 = 128;
/// After which time it is said what the end of a tree waits for.
const NAMED_AFTER: Duration = Duration::from_secs(1);
/// The pause before a tree is asked again whose guardian refused.
const ASKED_AGAIN: Duration = Duration::from_millis(100);

/// A name that one tree of this host has at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TreeName(String);

impl TreeName {
    /// Returns the name of the agent that works on a step of a run.
    pub fn of_agent(run: RunId, node: &NodeId) -> TreeName {
        let words = format!("{run}\0{}", node.as_str());
        TreeName(format!("planctl-{}", digest_of(words.as_bytes()).as_str()))
    }

    /// Takes the name for as long as the descriptor is open.
    ///
    /// # Errors
    ///
    /// `ADDRINUSE` where another tree has it.
    pub(super) fn take(&self) -> Result<OwnedFd, Errno> {
        let own = self.socket()?;
        bind(&own, &self.address()?)?;
        listen(&own, WAITERS_MAX)?;
        Ok(own)
    }

    /// Ends the agent that has the name, be it started by a planctl that stands still, and waits until it is dead: its lease is
    /// over, so nobody may use its work. `hears` gets what is waited for, where that takes longer than a second.
    pub async fn end_earlier_agent(&self, mut hears: impl FnMut(&str)) {
        let mut next = self.end_tree();
        while let Some(tree) = next {
            let guardian = tree.guardian;
            let mut ended = std::pin::pin!(tree.ended());
            if tokio::time::timeout(NAMED_AFTER, &mut ended).await.is_err() {
                let process = brief_file_work(|| describe_process(guardian));
                let words = format!("waits for the end of an earlier agent: {process} ends it");
                tracing::warn!("{words}");
                hears(&words);
                ended.await;
            }
            next = self.end_tree();
            if next.is_some() {
                tokio::time::sleep(ASKED_AGAIN).await;
            }
        }
    }

    /// Asks for the end of the tree that has the name; `None` where there is none, or none that could be asked.
    fn end_tree(&self) -> Option<EndingTree> {
        let line = self.socket().ok()?;
        connect(&line, &self.address().ok()?).ok()?;
        let guardian = getsockopt(&line, PeerCredentials).ok()?.pid();
        Some(EndingTree { guardian, line: line.into() })
    }

    fn socket(&self) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    }

    fn address(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(self.0.as_bytes())
    }
}

/// Returns the line of somebody who asks for the end of the tree and may, as a process of this user that no worker and no contract
/// started: it stays open until the tree is dead.
pub(super) fn accept_asker(name: &OwnedFd) -> Option<OwnedFd> {
    let line = accept_with(name, SocketFlags::CLOEXEC).ok()?;
    let asker = getsockopt(&line, PeerCredentials).ok()?;
    (asker.uid() == geteuid().as_raw() && !is_inside_worker(asker.pid())).then_some(line)
}

/// A tree that was asked to end.
struct EndingTree {
    /// The process that ends it; 0 where that is of another PID namespace.
    guardian: i32,
    line: UnixStream,
}

impl EndingTree {
    /// Waits until the tree has ended, or its guardian has refused to end it for this user.
    async fn ended(self) {
        // Nothing is ever said on the line, so what can be read is its end; where it can't be watched, the caller asks again.
        if let Ok(line) = tokio::net::UnixStream::from_std(self.line) {
            line.readable().await.ok();
        }
    }
}
