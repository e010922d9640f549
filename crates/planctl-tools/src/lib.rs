//! Uses tools of MCP servers.
//!
//! A process of its own (`planctl __tool`, [`main`]) speaks to a server: it reads one [`Request`], lists the tools or makes
//! the calls, prints the result and ends with the exit code of its [`Fault`]. It runs under the harness as contracts do, so
//! deadline, isolation, limits of output and memory, masks and the end of the whole process tree are the harness's. No byte of
//! a server's answer is read by planctl before it went through there.

mod answer;
mod call;
mod connection;
mod fault;
mod kept;
mod request;

pub use call::main;
pub use fault::{Fault, FaultKind};
pub use kept::{KeptLists, KeptListsError};
pub use request::{Calls, Order, Request, Server};
