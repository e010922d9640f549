//! The PACE levels of a step, as JSON shows them.

use planctl_engine::{Level, Record, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The PACE level above the step's own role that handles it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LevelView {
    /// `alternate`, `contingent`, or `emergency`.
    #[schemars(extend("enum" = ["alternate", "contingent", "emergency"]))]
    pub level: String,
    /// The responder of the level: a role, or `human`.
    pub responder: String,
    /// The role that had the step before.
    pub from: String,
    /// Why it could not go on there: `exhausted`, `no_edge`, `undelivered`, `permission`, `stale`.
    pub reason: String,
    /// Attempts that were made before.
    pub after_attempts: u16,
}

/// One level above a step's own role, as approved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RungView {
    /// `alternate`, `contingent`, or `emergency`.
    #[schemars(extend("enum" = ["alternate", "contingent", "emergency"]))]
    pub level: String,
    /// The responder of the level: a role, or `human`.
    pub responder: String,
}

impl LevelView {
    /// Shows the level of a step; `None` where its own role has it.
    pub fn of(task: &Task, record: &Record) -> Option<LevelView> {
        let handover = record.pace.as_deref()?;
        Some(LevelView {
            level: handover.level.as_str().to_owned(),
            responder: record.responder(task).to_string(),
            from: handover.from.as_str().to_owned(),
            reason: handover.reason.as_str().to_owned(),
            after_attempts: handover.after.number(),
        })
    }
}

impl RungView {
    /// Shows the levels of a step, the first to be asked first.
    pub fn levels_of(task: &Task) -> Vec<RungView> {
        let view = |pace_level: &planctl_engine::PaceLevel| RungView {
            level: pace_level.level.as_str().to_owned(),
            responder: pace_level.responder.to_string(),
        };
        task.pace.iter().map(view).collect()
    }
}

/// The word of the primary level, for what was stored or sent before there were levels.
pub fn primary() -> String {
    Level::Primary.as_str().to_owned()
}
