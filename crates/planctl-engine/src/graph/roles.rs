//! Which roles may come to work on a step.

use super::Task;
use crate::ids::Role;
use crate::pace::{Level, PaceLevel, Responder};

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
    pub(crate) fn level_at(&self, level: Level) -> Option<(&Role, &PaceLevel)> {
        let up_to = self.pace.iter().rev().filter(|pace_level| pace_level.level <= level);
        up_to.into_iter().find_map(|pace_level| match &pace_level.responder {
            Responder::Role(role) => Some((role, pace_level)),
            Responder::Human => None,
        })
    }
}
