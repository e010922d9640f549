//! Makes the engine's decisions durable in Postgres.

pub mod cluster;
#[doc(hidden)]
pub mod testing;

mod acknowledgements;
mod apply;
mod attendance;
mod audit;
mod cache;
mod claims;
mod connections;
mod days;
mod draft_asks;
mod effects;
mod error;
mod history;
mod leases;
mod library;
mod listen;
mod locks;
mod lookups;
mod messages;
mod migrate;
mod outputs;
mod page;
mod plans;
mod proof;
mod prune;
mod queue;
mod races;
mod random;
mod requests;
mod rows;
mod runs;
mod sealed;
mod server;
mod server_clock;
mod statements;
mod store;
mod sub_plans;
mod timers;
mod token;
mod tokens;
mod topics;
mod traces;
mod turns;
mod votes;
mod withdrawn;
mod workers;
mod worktrees;

pub use apply::Applied;
pub use attendance::LeftRun;
pub use audit::{BundleAudit, Bundled, Finding};
pub use claims::ClaimRequest;
pub use days::{DayNews, DayRaise, DayRow};
pub use draft_asks::{DraftAnswer, DraftAsk, DraftAskRow, NewDraftAnswer, NewDraftAsk, NewDraftAsks};
pub use effects::WORK_GRACE;
pub use error::{StoreError, Unread};
pub use history::{HistoryLine, Input, Said, UsageSums};
pub use leases::{Leased, Renewal};
pub use library::{EndedRuns, FollowUp, ToFollow};
pub use listen::{Listener, News};
pub use locks::AwaitedLock;
pub use lookups::{Outstanding, Unproved};
pub use messages::{
    DeliveryRow, DeliveryState, DueDelivery, Follows, NewMessage, QuietHours, ToChannel, Untold,
};
pub use page::Page;
pub use plans::{
    Approval, ApprovalId, NewApproval, NewRevision, Plan, PlanId, PlanMoved, PlanStatus, Revision,
    RevisionRow, TEXT_CHANGED, TextDecision, WorkspaceId,
};
pub use proof::Proof;
pub use queue::{
    AskWaits, Claim, ClaimLane, Claimed, Expired, Holder, ItemCounts, ItemGroup, NextClaim, RoleRow,
    RunConfig, WorkOf,
};
pub use random::secret;
pub use requests::{Begun, Request, RequestId, RequestKey, RequestTurn};
pub use runs::{AskDeadline, LapsedAsk};
pub use runs::{
    AskRow, NewRun, OpenItem, Records, RefusalRow, RunRow, RunView, ServedRole, WaitingAsk, WaitingRun,
    WantedRuns,
};
pub use server::ServerFacts;
pub use sqlx::postgres::PgConnectOptions;
pub use statements::STATEMENTS;
pub use store::{Settings, Store};
pub use sub_plans::{AroundRow, NewAround};
pub use timers::DueTimer;
pub use token::Token;
pub use tokens::{NewToken, NewlyMade, TokenRow, TokenScope};
pub use topics::{NOTE_BYTES_MAX, TopicName, TopicNote, TopicRow};
pub use traces::UntracedRun;
pub use turns::Ahead;
pub use votes::{NewVote, VoteRow};
pub use workers::{HeldItem, SeenWorker, WorkerRow};
pub use worktrees::{NewWorktree, WorktreeRow};
