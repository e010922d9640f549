//! Makes the engine's decisions durable in Postgres.

pub mod cluster;
#[doc(hidden)]
pub mod testing;

mod apply;
mod audit;
mod cache;
mod connections;
mod effects;
mod error;
mod history;
mod listen;
mod lookups;
mod migrate;
mod outputs;
mod plans;
mod proof;
mod queue;
mod random;
mod rows;
mod runs;
mod server;
mod statements;
mod store;
mod timers;
mod token;

pub use apply::Applied;
pub use audit::Finding;
pub use effects::WORK_GRACE;
pub use error::StoreError;
pub use history::{Input, Line, Said};
pub use listen::Listener;
pub use plans::{
    Approval, ApprovalId, NewApproval, NewRevision, Plan, PlanId, PlanMoved, PlanStatus, Revision,
    WorkspaceId,
};
pub use proof::Proof;
pub use queue::{Claim, ClaimLane, Claimed, Expired, Holder, Renewal, Take};
pub use runs::{AskRow, NewRun, OpenItem, RefusalRow, RunRow, RunView};
pub use server::ServerFacts;
pub use sqlx::postgres::PgConnectOptions;
pub use statements::STATEMENTS;
pub use store::{Settings, Store};
pub use timers::DueTimer;
pub use token::Token;
