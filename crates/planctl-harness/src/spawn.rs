//! Starts and ends process trees through one small helper process, so that nothing outlives planctl.
//!
//! ```text
//! planctl ── control socket ──▶ helper (`planctl __spawn`, one thread, sub-reaper, holds the lock)
//!    │                             │ forks, ahead of need
//!    └──── line (one each) ─────▶ guardian (sub-reaper) ── starts ──▶ command in a session of its own
//! ```
//!
//! A *guardian* looks after one command at a time: it starts it, waits, then ends everything that is still alive under it,
//! and reports only when `waitpid` says that no child is left. Each death ends the tree: planctl's closes the lines, the
//! helper's signals the guardians, and a dead guardian's orphans fall to the helper. Helper and guardians keep the
//! instance's lock open meanwhile, so a free lock proves that no tree is left (P11).
//!
//! The command is started without copying page tables (`CLONE_VM | CLONE_VFORK`), and guardians are used again, so
//! the way through the helper costs two context switches and no fork of planctl (HOTPATH, point 6).
//!
//! A confined command takes Landlock and seccomp upon itself before exec (tier 1a). From tier 1b there is one more process
//! between guardian and command: the first of its PID namespace, which arranges the mounts and takes all with it.
//! Where systemd delegated a cgroup to planctl it stands in one of the command's own ([`cgroups`]).
//! At tier 2 its user namespace maps to ids of the host that nobody else has ([`users`]).
//!
//! A tree may have a name that no other of the host has at the same time ([`named`]).

mod cgroups;
mod child;
mod filter;
mod guardian;
mod helper;
mod host;
mod init;
mod named;
mod namespaces;
mod restrict;
mod spawner;
mod tree;
mod usage;
mod users;
mod wire;

pub use helper::helper_main;
pub use host::Primitive;
pub use named::TreeName;
pub use spawner::Spawner;
pub use wire::Stage;

pub(crate) use host::primitives;
pub(crate) use spawner::GuardianSocket;
pub(crate) use wire::{Cause, Confinement, Limits, Order, Outcome, PROXY_PORT, Report, Request, receive};
