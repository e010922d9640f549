//! PACE: a step that cannot go on passes from its own role to the responders of the levels above it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ask::Reason;
use crate::ids::{Attempt, Role};

/// Which responder handles a step now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The step's own role.
    #[default]
    Primary,
    /// Answers first.
    Alternate,
    /// Answers where the alternate could not.
    Contingent,
    /// Answers last.
    Emergency,
}

impl Level {
    /// All levels, the first to handle a step first.
    pub const ALL: [Level; 4] = [Level::Primary, Level::Alternate, Level::Contingent, Level::Emergency];

    /// Returns the word that plans, history and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Primary => "primary",
            Level::Alternate => "alternate",
            Level::Contingent => "contingent",
            Level::Emergency => "emergency",
        }
    }

    /// Says whether it is the step's own role's.
    pub fn is_primary(&self) -> bool {
        *self == Level::Primary
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The responder of a level.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Responder {
    /// A person, by an ask.
    Human,
    /// Any worker that serves this role: it gets the step, and the contract decides.
    Role(Role),
}

impl From<String> for Responder {
    fn from(word: String) -> Responder {
        if word == "human" { Responder::Human } else { Responder::Role(Role::new(word.as_str())) }
    }
}

impl From<Responder> for String {
    fn from(responder: Responder) -> String {
        responder.to_string()
    }
}

impl fmt::Display for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Responder::Human => f.write_str("human"),
            Responder::Role(role) => f.write_str(role.as_str()),
        }
    }
}

/// One PACE level above the primary, with its responder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaceLevel {
    /// The level; never the primary, which is the step's own role.
    pub level: Level,
    /// The responder of the level.
    pub responder: Responder,
    /// How long one attempt's work may take there; `None` is as long as the step says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// How a step came to the level it is at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The level that has it.
    pub level: Level,
    /// The role that had it before.
    pub from: Role,
    /// Why it could not go on there.
    pub reason: Reason,
    /// The message of the plan or the worker about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The newest try at that time: so many were made before.
    pub after: Attempt,
}

/// Says whether levels rise from one to the next and leave the primary to the step's own role.
pub(crate) fn levels_rise(pace_levels: &[PaceLevel]) -> bool {
    let levels = std::iter::once(Level::Primary).chain(pace_levels.iter().map(|pace_level| pace_level.level));
    levels.is_sorted_by(|one, next| one < next)
}
