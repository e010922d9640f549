//! The server of planctl: executor, loops and HTTP API.

mod clock;
pub mod daemon;
mod executor;
pub mod http;
mod inbox;
pub mod library;
mod messages;
mod mutex;
mod node;
pub mod picture;
mod plans;
mod runs;
mod state_folders;
mod traces;
mod verify;
mod workspaces;

pub use clock::{instant, now};
pub use daemon::loops::room::{is_full, room_in};
pub use daemon::run_loop::{RunLoopEnd, RunLoopOptions};
pub use executor::Executor;
pub use executor::progress::{Activity, LiveActivity};
pub use node::doctor::Doctor;
pub use node::drafter::{DraftOrder, Drafter, Drafts, Undrafted};
pub use node::health::{Database, Health, is_final};
pub use node::instance::is_at;
pub use node::runtime::runtime;
pub use node::services::{Caps, ServiceError};
pub use node::{ServerNode, ServerNodeOptions, database, scratch_in, singleton};
pub use planctl_store::{NOTE_BYTES_MAX, Settings as StoreSettings, StoreError};
pub use runs::bundle::BundleReader;
pub use runs::settings::{RoleSettings, RunSettings};
pub use state_folders::private_folder;
pub use verify::protection::{judges_of, named_files};
pub use verify::{agent_answer, agent_check, autofix, check, diff, judge, probe, tools};
pub use workspaces::worktrees::Cleaning;

#[doc(hidden)]
pub use planctl_store::testing;
