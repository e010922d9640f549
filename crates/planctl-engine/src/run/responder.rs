//! The responder of a step: the one that answers for it at the PACE level that handles it.

use std::time::Duration;

use super::Record;
use crate::graph::Task;
use crate::ids::Role;
use crate::pace::{Handover, Level, Responder};

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
