//! The daemon: where it listens, and how it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::work::ServiceView;

/// Where a daemon listens: `daemon.json` in its state directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DaemonInfo {
    /// Its process.
    pub pid: u32,
    /// The path of its socket.
    pub socket: String,
    /// The address it listens on beside the socket.
    pub tcp: Option<String>,
    /// Its version.
    pub version: String,
    /// When it began, by its host's clock.
    pub started_at: String,
}

/// A link that signs a person in to the page, once: the answer of `open --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PageLink {
    /// The link.
    pub url: String,
    /// How long it waits for its use, in seconds.
    pub seconds: u64,
}

/// The answer of `daemon status --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DaemonView {
    /// Says that a daemon of this state directory is there.
    pub is_running: bool,
    /// The state directory.
    pub state_dir: String,
    /// Its process, also while it starts or stops.
    pub pid: Option<u32>,
    /// Where it listens, once it does.
    pub daemon: Option<DaemonInfo>,
    /// How it is, where it answers.
    pub health: Option<DaemonHealthView>,
    /// The service that it offers; not while its database is away.
    pub service: Option<ServiceView>,
}

/// A resource that the database has run out of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ShortageView {
    /// The resource.
    pub of: ScarceResource,
    /// Since when.
    pub since: String,
}

/// A resource of the database server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScarceResource {
    /// Room on its disk.
    Disk,
    /// Memory.
    Memory,
    /// Something that a setting of the server limits.
    Limit,
}

impl ScarceResource {
    /// Returns the sentence that people read.
    pub fn sentence(self) -> &'static str {
        match self {
            ScarceResource::Disk => "the disk of the database is full",
            ScarceResource::Memory => "the database is out of memory",
            ScarceResource::Limit => "the database has reached a limit of its settings",
        }
    }
}

/// How a daemon is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DaemonHealthView {
    /// In one word.
    pub state: DaemonState,
    /// Says that its loops turn.
    pub is_alive: bool,
    /// When it began, by its host's clock.
    pub started_at: String,
    /// Since when the database is away, where it is.
    pub database_away_since: Option<String>,
    /// The resource that the database lacks, where it lacks one: it answers what it has, and records nothing.
    pub database_shortage: Option<ShortageView>,
    /// Agents that it minds.
    pub agents_at_work: u32,
    /// Contracts that it runs.
    pub gates_at_work: u32,
    /// Runs whose worktrees it makes, or looks at and clears away.
    pub worktrees_at_work: u32,
    /// Runs that it took up from processes that were dead.
    pub runs_recovered: u64,
    /// Leases that were over and that it ended.
    pub leases_expired: u64,
    /// The last error.
    pub last_error: Option<TroubleView>,
    /// Its loops.
    pub loops: Vec<LoopView>,
}

/// The state of a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DaemonState {
    /// It does not take on work yet.
    Starting,
    /// It works.
    Running,
    /// It waits for the database, and goes on by itself.
    Degraded,
    /// It gives back what it holds.
    Stopping,
}

/// Something that went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TroubleView {
    /// When, by the host's clock.
    pub at: String,
    /// The error.
    pub what: String,
}

/// A loop of a daemon.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LoopView {
    /// The name of its subject.
    pub name: String,
    /// How long ago it looked last.
    pub seconds_since_turn: f64,
}
