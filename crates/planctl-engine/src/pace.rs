//! PACE: a step that cannot go on passes from its own role to the responders of the levels above it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effect::Reason;
use crate::graph::Task;
use crate::ids::{Attempt, Role};
use crate::run::Record;

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
    #[serde(alias = "contingency")]
    Contingent,
    /// Answers last.
    Emergency,
}

impl Level {
    /// All levels, the first to handle a step first.
    pub const ALL: [Level; 4] = [Level::Primary, Level::Alternate, Level::Contingent, Level::Emergency];

    /// Returns the word that plans, history and people use.
    pub fn word(self) -> &'static str {
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
        f.write_str(self.word())
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

impl Task {
    /// Returns all roles that may come to work on the step: its own, and those that take over from it.
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        let others = self.pace.iter().filter_map(|pace_level| match &pace_level.responder {
            Responder::Role(role) => Some(role),
            Responder::Human => None,
        });
        std::iter::once(&self.role).chain(others)
    }

    /// Returns the newest level, up to this one, at which an agent answers; `None` is the step's own role.
    fn level_at(&self, level: Level) -> Option<(&Role, &PaceLevel)> {
        let up_to = self.pace.iter().rev().filter(|pace_level| pace_level.level <= level);
        up_to.into_iter().find_map(|pace_level| match &pace_level.responder {
            Responder::Role(role) => Some((role, pace_level)),
            Responder::Human => None,
        })
    }
}

impl Record {
    /// Returns the PACE level that handles the step.
    pub fn level(&self) -> Level {
        self.pace.as_ref().map_or(Level::Primary, |handover| handover.level)
    }

    /// Returns the role whose worker makes the attempts: the one a person chose, else that of the level; where a person
    /// answers at the level, that of the level before.
    pub fn worker_role<'a>(&'a self, task: &'a Task) -> &'a Role {
        let at_level = || task.level_at(self.level()).map_or(&task.role, |(role, _)| role);
        self.role.as_ref().unwrap_or_else(at_level)
    }

    /// Returns who answers for the step now: the role a person chose, else the level's responder.
    pub fn responder(&self, task: &Task) -> Responder {
        let level = self.level();
        let pace_level = || {
            task.pace
                .iter()
                .find(|pace_level| pace_level.level == level)
                .map(|pace_level| pace_level.responder.clone())
        };
        match &self.role {
            Some(role) => Responder::Role(role.clone()),
            None if level.is_primary() => Responder::Role(task.role.clone()),
            None => pace_level().unwrap_or(Responder::Human),
        }
    }

    /// Returns how long one attempt's work may take.
    pub fn work_timeout(&self, task: &Task) -> Duration {
        let own = match self.role {
            Some(_) => None,
            None => task.level_at(self.level()).and_then(|(_, pace_level)| pace_level.timeout),
        };
        own.unwrap_or(task.work_timeout)
    }

    /// Returns how the step came to the agent that has it, where it is not the first.
    pub(crate) fn handover(&self, task: &Task) -> Option<&Handover> {
        let handover = self.pace.as_deref()?;
        let is_with_level = self.role.is_none() && handover.from != *self.worker_role(task);
        is_with_level.then_some(handover)
    }
}
