//! Makes planctl.toml, the user's file, `PLANCTL_*` and flags one effective value, and says where each part comes from.

mod ask_rule;
mod channel;
mod config;
mod day;
mod find;
mod finding;
mod judge;
mod layer;
mod model;
mod origin;
mod policy;
mod price_table;
mod read;
mod role;
mod schema;
mod server;
mod terminal;
#[cfg(test)]
mod tests;
mod trace;
mod trust;
mod workspace;
mod written;

pub use ask_rule::{AskRule, OnDeadline};
pub use channel::{
    CHANNEL_TIMEOUT, ChannelConfig, ChannelTarget, MailConfig, MailTls, MessageEvent, Quiet, TimeOfDay,
    WebAddress, WebShape, wrong_web_address,
};
pub use config::{
    Config, ConfigError, Contracts, DatabaseUrl, Isolation, LibrarySettings, Postgres, WORKER,
    approved_folder, approved_policy, digest_of_approved, in_folder, keys_that_differ, with_worker,
};
pub use day::DayBudgets;
pub use find::{CandidateFile, Distrusted, FileOwner, Loaded, Sources, load, places, user_folder};
pub use finding::Finding;
pub use judge::{JudgeConfig, Judges, NamedJudge};
pub use model::{MODEL_TIMEOUT, MODEL_TOKENS, ModelApi, ModelConfig, wrong_url};
pub use origin::{FILE_NAME, Ignored, Key, Origin, Origins};
pub use policy::ApprovalPolicy;
pub use price_table::prices_known;
pub use read::parse_duration;
pub use role::{Agent, Effects, NoSuchAgent, Pace, Price, RoleConfig, RoleEnv, permission_words, takes_plan};
pub use schema::schema;
pub use server::{ServerConfig, ServerReach};
pub use terminal::TerminalCall;
pub use trace::{TraceConfig, TraceProtocol};
pub use trust::{Standing, TRUST_FILE, Trust, TrustEntry, trust};
pub use workspace::{Commits, WorkspaceMode, Workspaces};
pub use written::Entry;
