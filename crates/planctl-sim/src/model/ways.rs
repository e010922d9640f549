//! The model's ways: which edge a run takes from a node, read off the table, the conditions, the labels and the weights.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use planctl_engine::{Decider, Edge, NodeId, NodeKind, On, Outcome, Signal};

use super::journal::Entry;
use super::{Knowledge, Model};

/// A way that was chosen, and what decided where more than the outcome had a say.
#[derive(Clone, Debug)]
pub(super) struct ChosenEdge {
    pub(super) edge: Edge,
    pub(super) why: Signal,
    pub(super) by: Option<Decider>,
}

/// The values of conditions for a node that is left.
struct Scene<'m> {
    model: &'m Model,
    /// The node that last did something.
    subject: NodeId,
    node: &'m NodeId,
    why: Signal,
    outcome: &'static str,
}

impl Model {
    /// The way on from a node that came to this, if there is one.
    pub(super) fn way(&self, node: &NodeId, why: Signal) -> Option<ChosenEdge> {
        self.way_of(node, why, None)
    }

    /// The same of a node that is about to settle: conditions see how.
    pub(super) fn way_of(&self, node: &NodeId, why: Signal, settling: Option<Outcome>) -> Option<ChosenEdge> {
        let table: &[On] = match why {
            Signal::Success => &[On::Success, On::Always],
            Signal::Retry => &[On::Retry],
            Signal::Exhausted => &[On::Exhaust, On::Fail, On::Always],
        };
        let all: Vec<&Edge> = self.graph.edges().iter().filter(|edge| edge.from == *node).collect();
        let kinds: BTreeSet<On> = all.iter().map(|edge| edge.on).collect();
        let is_bare = |edge: &&Edge| edge.when.is_none() && edge.label.is_none() && edge.weight == 0;
        if kinds.len() == all.len() && all.iter().all(is_bare) {
            let first = table.iter().find_map(|on| all.iter().find(|edge| edge.on == *on))?;
            return Some(ChosenEdge { edge: (*first).clone(), why, by: None });
        }
        self.way_among(&all, table, &self.scene(node, why, settling))
    }

    /// The way out of the loop of a node that was entered too often: none that comes back to it.
    pub(super) fn way_out(&self, node: &NodeId, settling: Outcome) -> Option<ChosenEdge> {
        let leaves = |edge: &&Edge| edge.from == *node && !self.comes_back(edge);
        let out: Vec<&Edge> = self.graph.edges().iter().filter(leaves).collect();
        let scene = self.scene(node, Signal::Exhausted, Some(settling));
        self.way_among(&out, &[On::Exhaust, On::Fail, On::Always], &scene)
    }

    /// Says whether one may come from the end of a way to its beginning without a person, or a new beginning, between.
    fn comes_back(&self, way: &Edge) -> bool {
        let mut reached: BTreeSet<NodeId> = BTreeSet::new();
        let mut last = vec![way];
        while !last.is_empty() {
            last.retain(|edge| {
                let is_person = matches!(self.kind(&edge.to), NodeKind::Human(_) | NodeKind::Escalate { .. });
                edge.restart.is_none() && !is_person && reached.insert(edge.to.clone())
            });
            let ends: Vec<&NodeId> = last.iter().map(|edge| &edge.to).collect();
            last = self.graph.edges().iter().filter(|edge| ends.contains(&&edge.from)).collect();
        }
        reached.contains(&way.from)
    }

    /// The way among some edges of a node. After a failure only those count that speak of it.
    fn way_among(&self, all: &[&Edge], table: &[On], scene: &Scene<'_>) -> Option<ChosenEdge> {
        let why = scene.why;
        let taken = |edge: &Edge, by| Some(ChosenEdge { edge: edge.clone(), why, by });
        let all: Vec<&Edge> = all
            .iter()
            .copied()
            .filter(|edge| {
                let says_it = edge.on != On::Always || edge.when.is_none();
                why == Signal::Success
                    || says_it
                    || edge.when.as_ref().is_some_and(|when| scene.speaks_of_failure(when))
            })
            .collect();
        let mut best: Option<(usize, &Edge)> = None;
        for (row, edge) in rows(table, &all) {
            if !edge.when.as_ref().is_some_and(|when| scene.holds(when)) {
                continue;
            }
            let is_better = best.is_none_or(|(best_row, best)| {
                edge.weight > best.weight
                    || edge.weight == best.weight && (row, &edge.to) < (best_row, &best.to)
            });
            if is_better {
                best = Some((row, edge));
            }
        }
        if let Some((_, edge)) = best {
            return taken(edge, Some(Decider::Condition));
        }
        for on in table {
            let row: Vec<&Edge> =
                all.iter().copied().filter(|edge| edge.when.is_none() && edge.on == *on).collect();
            if let [only] = row[..] {
                return taken(only, Some(Decider::Outcome));
            }
            if !row.is_empty() {
                // Nobody who worked in vain has a say.
                let known = if why == Signal::Success { self.known(&scene.subject) } else { None };
                let (edge, by) = preferred(&row, &known.unwrap_or_default());
                return taken(edge, Some(by));
            }
        }
        None
    }

    fn scene<'m>(&'m self, node: &'m NodeId, why: Signal, settling: Option<Outcome>) -> Scene<'m> {
        let subject = self.subject(node);
        let is_join = matches!(self.kind(node), NodeKind::Join(_));
        let looked_at = if is_join { node } else { &subject };
        let outcome = match (settling.or(self.settled(looked_at)), why) {
            (Some(Outcome::Warned), _) => "partial_success",
            (Some(Outcome::Skipped), _) => "skipped",
            (_, Signal::Success) => "success",
            (_, Signal::Retry) => "retry",
            (_, Signal::Exhausted) => "fail",
        };
        Scene { model: self, subject, node, why, outcome }
    }

    /// Says whether a condition holds at a node whose work is done.
    pub(super) fn is_true_at(&self, node: &NodeId, condition: &Condition) -> bool {
        self.scene(node, Signal::Success, None).holds(condition)
    }

    /// Returns the run's context at a node.
    pub(super) fn context(&self, node: &NodeId) -> BTreeMap<String, String> {
        let newest = self.newest(node, |entry| {
            if let Entry::Context { context, .. } = entry { Some(context.clone()) } else { None }
        });
        newest.unwrap_or_default()
    }

    pub(super) fn set_context(&mut self, node: &NodeId, context: BTreeMap<String, String>) {
        if self.context(node) != context {
            self.journal.push(Entry::Context { node: node.clone(), context });
        }
    }
}

/// Chooses among edges that the outcome alone does not decide between: the one that the worker prefers, else the heaviest.
fn preferred<'e>(row: &[&'e Edge], known: &Knowledge) -> (&'e Edge, Decider) {
    let label = bare(known.label.as_deref().unwrap_or_default());
    for edge in row {
        if !label.is_empty() && edge.label.as_ref().is_some_and(|own| bare(own) == label) {
            return (edge, Decider::Label);
        }
    }
    for wanted in &known.suggested {
        if let Some(edge) = row.iter().find(|edge| edge.to == *wanted) {
            return (edge, Decider::Suggestion);
        }
    }
    let heaviest = row.iter().map(|edge| edge.weight).max();
    let among = row.iter().filter(|edge| Some(edge.weight) == heaviest);
    (among.min_by_key(|edge| &edge.to).expect("the row has edges"), Decider::Weight)
}

fn rows<'e>(table: &[On], all: &[&'e Edge]) -> Vec<(usize, &'e Edge)> {
    let row = |edge: &Edge| table.iter().position(|on| *on == edge.on);
    all.iter().filter_map(|edge| Some((row(edge)?, *edge))).collect()
}

impl Scene<'_> {
    fn holds(&self, condition: &Condition) -> bool {
        condition.clauses.iter().all(|clause| self.is_true(clause))
    }

    /// Says whether one of the clauses is wrong of every pass: it names another status, or an exit code that is no pass.
    fn speaks_of_failure(&self, condition: &Condition) -> bool {
        let failing = ["fail", "partial_success", "retry", "skipped"];
        let bad_status = |test: &Test| match test {
            Test::Is(word) => failing.contains(&word.as_str()),
            Test::IsNot(word) => word == "success",
            Test::Truthy => false,
        };
        let is_left = |node: &str| node == self.node.as_str() || node == self.subject.as_str();
        condition.clauses.iter().any(|Clause { key, test }| match key {
            Key::Outcome => bad_status(test),
            Key::Context(name) | Key::Variable(name) => name == "outcome" && bad_status(test),
            Key::Step { node, field: StepField::Outcome } => is_left(node) && bad_status(test),
            Key::Step { node, field: StepField::ExitCode } if is_left(node) => {
                let Some(contract) = self.model.contract(&NodeId::new(node.as_str())) else { return false };
                let good = contract.expect.to_string();
                match test {
                    Test::Is(code) => *code != good,
                    Test::IsNot(code) => *code == good,
                    Test::Truthy => good == "0",
                }
            }
            Key::PreferredLabel | Key::Step { .. } => false,
        })
    }

    fn is_true(&self, Clause { key, test }: &Clause) -> bool {
        let statuses = ["success", "fail", "partial_success", "retry", "skipped"];
        let found = match (key, test) {
            (Key::Outcome, Test::Is(word) | Test::IsNot(word)) if !statuses.contains(&word.as_str()) => {
                self.label()
            }
            (Key::Outcome, _) => self.outcome.to_owned(),
            (Key::PreferredLabel, _) => self.label(),
            (Key::Context(name), _) => {
                let long = self.variable(&format!("context.{name}"));
                long.or_else(|| self.variable(name)).unwrap_or_default()
            }
            (Key::Variable(name), _) => self.variable(name).unwrap_or_default(),
            (Key::Step { node, field }, _) => {
                self.of_step(&NodeId::new(node.as_str()), *field).unwrap_or_default()
            }
        };
        match test {
            Test::Is(word) => found == *word,
            Test::IsNot(word) => found != *word,
            Test::Truthy => !["", "0", "false"].contains(&found.as_str()),
        }
    }

    fn label(&self) -> String {
        self.model.known(&self.subject).and_then(|known| known.label).unwrap_or_default()
    }

    fn variable(&self, name: &str) -> Option<String> {
        if let Some(node) = name.strip_prefix("internal.retry_count.") {
            return Some(self.model.failed(&NodeId::new(node)).to_string());
        }
        match name {
            "outcome" => Some(self.outcome.to_owned()),
            "preferred_label" => Some(self.label()),
            _ => {
                let own = self.model.context(self.node).get(name).cloned();
                own.or_else(|| self.model.graph.context().get(name).cloned())
            }
        }
    }

    fn of_step(&self, node: &NodeId, field: StepField) -> Option<String> {
        if self.model.visits(node) == 0 {
            return None;
        }
        let known = self.model.known(node);
        match field {
            StepField::Outcome => match self.model.settled(node) {
                Some(Outcome::Passed | Outcome::Waived) => Some("success".to_owned()),
                Some(Outcome::Warned) => Some("partial_success".to_owned()),
                Some(Outcome::Skipped) => Some("skipped".to_owned()),
                Some(Outcome::Failed) => Some("fail".to_owned()),
                None => self.model.failure_of(node).map(|_| "fail".to_owned()),
            },
            StepField::ExitCode => known?.exit_code.map(|code| code.to_string()),
            StepField::Output => known?.output,
            StepField::Label => known?.label,
            StepField::Attempts => Some(self.model.attempt(node).to_string()),
        }
    }
}

/// A label in small letters, without the key that may stand before it: `[Y] Yes`, `Y) Yes`, `Y - Yes`.
pub(super) fn bare(label: &str) -> String {
    let label = label.trim();
    let letters: Vec<char> = label.chars().collect();
    let keys = [("[", "] "), ("", ") "), ("", " - ")];
    for (before, after) in keys {
        let rest = label.strip_prefix(before).filter(|_| letters.len() > 2);
        let Some(rest) = rest else { continue };
        let key = rest.chars().next().map_or(0, char::len_utf8);
        if let Some(word) = rest[key..].strip_prefix(after) {
            return word.trim().to_lowercase();
        }
    }
    label.to_lowercase()
}
