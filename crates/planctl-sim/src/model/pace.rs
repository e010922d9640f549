//! The model's PACE: the responder of a step that cannot go on, read from the journal.

use std::time::Duration;

use planctl_engine::{AskKind, Level, NodeId, Responder, Role};

use super::Model;
use super::journal::Entry;

impl Model {
    /// Escalates a step: its role's next level gets it, at least the one the plan names; else a person is asked.
    pub(super) fn escalate(&mut self, node: &NodeId, why: &str, named: Level) {
        if self.graph.task(node).is_none() {
            return self.ask(node, AskKind::Escalation, why);
        }
        let now = self.level(node);
        let mut answers = None;
        for level in Level::ALL {
            if answers.is_none() && level > now && level >= named {
                answers = self.responder(node, level).map(|responder| (level, responder));
            }
        }
        let (level, responder) = match answers {
            Some(found) => found,
            None => (self.last_level(node, now, named), Responder::Human),
        };
        if level != now {
            self.raise_level(node, level, &responder, why);
        }
        if responder == Responder::Human {
            return self.ask(node, AskKind::Escalation, why);
        }
        self.tell(format!("escalated {node} {why}"));
        self.begin(node);
    }

    /// The level at which a person is asked where nobody else is left: the named one, or the last where there is any.
    fn last_level(&self, node: &NodeId, now: Level, named: Level) -> Level {
        let has_any = Level::ALL.into_iter().any(|level| self.responder(node, level).is_some());
        match (named > now, has_any) {
            (true, _) => named,
            (false, true) => Level::Emergency,
            (false, false) => now,
        }
    }

    fn raise_level(&mut self, node: &NodeId, level: Level, responder: &Responder, why: &str) {
        self.tell(format!("pace {node} {} -> {level} {responder} {why}", self.level(node)));
        let none_left = self.is_used_up(node);
        let by_agent = *responder != Responder::Human;
        let from = self.worker(node);
        self.journal.push(Entry::Level { node: node.clone(), level, from, by_agent });
        if by_agent && none_left {
            self.journal.push(Entry::Granted { node: node.clone() });
        }
    }

    /// A step that is entered over a success path, and not once too often, is its own role's again.
    pub(super) fn lower_level(&mut self, node: &NodeId) {
        if self.level(node) == Level::Primary || self.visits(node) >= self.most_visits(node) {
            return;
        }
        let own = self.graph.task(node).map_or_else(|| Role::from(""), |task| task.role.clone());
        self.tell(format!("pace {node} {} -> primary {own} reentered", self.level(node)));
        self.journal.push(Entry::Level {
            node: node.clone(),
            level: Level::Primary,
            from: own,
            by_agent: false,
        });
    }

    fn responder(&self, node: &NodeId, level: Level) -> Option<Responder> {
        let pace_levels = &self.graph.task(node)?.pace;
        pace_levels
            .iter()
            .find(|pace_level| pace_level.level == level)
            .map(|pace_level| pace_level.responder.clone())
    }

    /// Returns the role that makes the attempts: the chosen one, else the last agent among the levels up to this one.
    pub(super) fn worker(&self, node: &NodeId) -> Role {
        if let Some(chosen) = self.role(node) {
            return chosen;
        }
        let mut worker = self.graph.task(node).map_or_else(|| Role::from(""), |task| task.role.clone());
        for level in Level::ALL.into_iter().filter(|level| *level <= self.level(node)) {
            if let Some(Responder::Role(role)) = self.responder(node, level) {
                worker = role;
            }
        }
        worker
    }

    /// How long one attempt's work may take: as the level says whose agent has it, else as the step says.
    pub(super) fn deadline(&self, node: &NodeId) -> Option<Duration> {
        let task = self.graph.task(node)?;
        let mut deadline = task.work_timeout;
        let chosen = self.role(node).is_some();
        for pace_level in
            task.pace.iter().filter(|pace_level| !chosen && pace_level.level <= self.level(node))
        {
            if pace_level.responder != Responder::Human {
                deadline = pace_level.timeout.unwrap_or(task.work_timeout);
            }
        }
        Some(deadline)
    }

    /// The level at which the worker took over, and from whom; none where it had the step before, or a person chose it.
    pub(super) fn taken_over(&self, node: &NodeId) -> Option<(Level, Role)> {
        let from = self.had_it_before(node)?;
        let is_news = self.role(node).is_none() && from != self.worker(node);
        is_news.then(|| (self.level(node), from))
    }
}
