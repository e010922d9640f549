//! Wire types of a daemon's work: workers, tokens, items that are out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::daemon::{DaemonHealthView, DaemonInfo};

/// The daemon, and its activity.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServiceView {
    /// Where it listens.
    pub daemon: DaemonInfo,
    /// How it is.
    pub health: DaemonHealthView,
    /// The id of its host.
    pub host: String,
    /// The database, without any password.
    pub database: String,
    /// Workers seen within a minute.
    pub workers: u32,
    /// Items by what they wait for.
    pub items: ItemCounts,
}

/// Items that are out, by what they wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ItemCounts {
    /// Work that nobody has claimed.
    pub queued: u64,
    /// Work that somebody does.
    pub working: u64,
    /// Contracts that are or will be evaluated.
    pub gates: u64,
    /// Asks that wait for a person.
    pub asks: u64,
    /// How old the oldest unclaimed work is, in seconds.
    pub oldest_queued_seconds: Option<u64>,
}

/// The workers that were seen.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkerList {
    /// The workers, by name.
    pub workers: Vec<WorkerView>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkerView {
    /// Its name.
    pub id: String,
    /// The roles that it serves.
    pub roles: Vec<String>,
    /// The agent that works there.
    pub agent: String,
    /// Where it runs.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// How many items it works on at once.
    pub capacity: i32,
    /// Says that it gets no more work.
    pub paused: bool,
    /// The items that it works on.
    pub items: Vec<WorkerItem>,
    /// When it was last seen, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_seen_at: String,
}

/// An item that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WorkerItem {
    /// The item.
    pub item: String,
    /// The run.
    pub run: String,
    /// The end of its output.
    pub log: Option<String>,
}

/// Tokens, without their secrets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TokenList {
    /// The tokens, oldest first.
    pub tokens: Vec<TokenView>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TokenView {
    /// Under which id it is revoked.
    pub id: String,
    /// The holder: actions with the token are on record under this name.
    pub name: String,
    /// The scope that it grants.
    #[schemars(extend("enum" = ["worker", "approve", "read", "admin"]))]
    pub scope: String,
    /// The roles of a worker's; empty are all.
    pub roles: Vec<String>,
    /// When it was made, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When it ceases to hold, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// When it was revoked, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_used_at: Option<String>,
    /// Says that it holds.
    pub live: bool,
}

/// Makes a token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCall {
    /// The holder.
    pub name: String,
    /// The scope that it grants: `worker`, `approve`, `read`, `admin`.
    pub scope: String,
    /// The roles of a worker's; empty are all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// How long it holds, in seconds; for ever where it is left out.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TokenMade {
    /// The token.
    pub token: TokenView,
    /// Its secret, shown this once.
    pub secret: String,
}
