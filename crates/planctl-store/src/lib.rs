//! Makes the engine's decisions durable in Postgres.

pub mod cluster;
#[doc(hidden)]
pub mod testing;

mod acknowledgements;
mod apply;
mod attendance;
mod audit;
mod cache;
mod claimed;
mod claims;
mod commit_queue;
mod connections;
mod days;
mod draft_asks;
mod draft_records;
mod effects;
mod error;
mod history;
mod holder;
mod ids;
mod leases;
mod library;
mod listen;
mod locks;
mod lookups;
mod messages;
mod migrate;
mod mutex;
mod notifier;
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
mod settings;
mod standstill;
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
mod waiting;
mod withdrawn;
mod workers;
mod worktrees;

pub use apply::Applied;
pub use attendance::LeftRun;
pub use audit::{BundleAudit, Bundled, Finding};
pub use claimed::{Claimed, RunConfig};
pub use days::{DayNews, DayRaise, DayRow};
pub use draft_asks::{DraftAnswer, DraftAsk, DraftAskRow, NewDraftAnswer, NewDraftAsk, NewDraftAsks};
pub use draft_records::{DraftRecord, NewDraftRecord};
pub use effects::WORK_GRACE;
pub use error::{Resource, StoreError, Unread};
pub use history::{HistoryLine, Input, Said, UsageSums};
pub use holder::{ClaimRequest, Holder, NextClaim, ServedRole};
pub use ids::{ApprovalId, PlanId, WorkspaceId};
pub use leases::{Leased, Renewal};
pub use library::{EndedRuns, FollowUp, ToFollow};
pub use locks::AwaitedLock;
pub use lookups::{Outstanding, Unproved};
pub use messages::{
    DeliveryRow, DeliveryState, DueDelivery, Follows, NewMessage, QuietHours, ToChannel, Untold,
};
pub use notifier::{Listener, News};
pub use page::Page;
pub use plans::{
    Approval, NewApproval, NewRevision, Plan, PlanMoved, PlanStatus, Revision, RevisionRow, TEXT_CHANGED,
    TextDecision,
};
pub use proof::{NewVote, Proof};
pub use queue::{AskWaits, Claim, ClaimLane, Expired, ItemCounts, ItemGroup, RoleRow, Standing, WorkOf};
pub use random::secret;
pub use requests::{Begun, Request, RequestId, RequestKey, RequestTurn};
pub use runs::{
    AroundRow, AskDeadline, AskRow, LapsedAsk, NewAround, NewRun, NewWorktree, OpenItem, Records, RefusalRow,
    RunRow, RunView, WaitingAsk, WaitingRun, WantedRuns, WorktreeRow,
};
pub use server::ServerFacts;
pub use settings::Settings;
pub use sqlx::postgres::PgConnectOptions;
pub use statements::STATEMENTS;
pub use store::Store;
pub use timers::DueTimer;
pub use token::Token;
pub use tokens::{NewToken, NewlyMade, TokenRow, TokenScope};
pub use topics::{NOTE_BYTES_MAX, TopicName, TopicNote, TopicRow};
pub use traces::UntracedRun;
pub use turns::Ahead;
pub use votes::VoteRow;
pub use waiting::{WaitingWorker, WaitingWorkers};
pub use workers::{HeldItem, SeenWorker, WorkerRow};
pub use worktrees::WorktreeResult;
