//! Runs the loops; the only room where all doors meet.

mod asks;
mod branches;
pub mod check;
mod checkpoints;
mod clock;
pub mod config;
mod context;
pub mod daemon;
pub mod database;
pub mod diff;
mod drive;
mod hands;
mod health;
mod held;
pub mod http;
mod instance;
mod live;
mod loops;
mod marks;
pub mod mend;
mod parting;
pub mod picture;
mod plans;
pub mod probe;
mod protection;
mod revisions;
mod runs;
pub mod schema;
pub mod seat;
mod services;
mod settings;
mod station;
mod sub_plans;
mod supervision;
mod tend;
mod told;
mod topics;
mod traversal;
pub mod tryout;
pub mod wire;
mod worktrees;

pub use clock::{instant, now};
pub use drive::{Drive, Driven, scratch_in};
pub use hands::Hands;
pub use health::{Database, Health};
pub use live::{Doing, Live};
pub use planctl_store::{NOTE_BYTES_MAX, Settings as StoreSettings, StoreError};
pub use plans::{Approving, Standing, Start, Started};
pub use services::{Caps, Door, Open, ServiceError, Services};
pub use settings::{RoleSettings, RunSettings};
pub use station::{Station, StationOptions};
pub use worktrees::Cleaning;

#[doc(hidden)]
pub use planctl_store::testing;
