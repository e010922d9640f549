//! The model's ways: which edge a run takes from a node, read off the table, the conditions, the labels and the weights.

use std::collections::BTreeMap;

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use planctl_engine::{Decider, Edge, NodeId, NodeKind, On, Outcome, Signal};

use super::Model;
use super::journal::Entry;

/// A way that was chosen, and what decided where more than the outcome had a say.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) edge: Edge,
    pub(super) why: Signal,
    pub(super) by: Option<Decider>,
}

/// What the words of conditions are for a node that is left.
struct Scene<'m> {
    model: &'m Model,
    /// The node that last did something.
    subject: NodeId,
    node: &'m NodeId,
    outcome: &'static str,
}

impl Model {
    /// The way on from a node that came to this, if there is one.
    pub(super) fn way(&self, node: &NodeId, why: Signal) -> Option<Way> {
        self.way_of(node, why, None)
    }

    /// The same of a node that is about to settle: conditions see how.
    pub(super) fn way_of(&self, node: &NodeId, why: Signal, settling: Option<Outcome>) -> Option<Way> {
        let table: &[On] = match why {
            Signal::Success => &[On::Success, On::Always],
            Signal::Retry => &[On::Retry],
            Signal::Exhausted => &[On::Exhaust, On::Fail, On::Always],
        };
        let all: Vec<&Edge> = self.graph.edges().iter().filter(|edge| edge.from == *node).collect();
        let taken = |edge: &Edge, by| Some(Way { edge: edge.clone(), why, by });
        if all.iter().all(|edge| edge.when.is_none() && edge.label.is_none() && edge.weight == 0) {
            let first = table.iter().find_map(|on| all.iter().find(|edge| edge.on == *on))?;
            return taken(first, None);
        }
        let scene = self.scene(node, why, settling);
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
                let (edge, by) = self.preferred(&row, &scene.subject);
                return taken(edge, Some(by));
            }
        }
        None
    }

    /// Among edges that the outcome alone does not decide between: what the worker wants, else the heaviest.
    fn preferred<'e>(&self, row: &[&'e Edge], subject: &NodeId) -> (&'e Edge, Decider) {
        let known = self.known(subject).unwrap_or_default();
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
        Scene { model: self, subject, node, outcome }
    }

    /// Says whether a condition holds at a node whose work is done.
    pub(super) fn is_true_at(&self, node: &NodeId, condition: &Condition) -> bool {
        self.scene(node, Signal::Success, None).holds(condition)
    }

    /// What the run's context says at a node.
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

fn rows<'e>(table: &[On], all: &[&'e Edge]) -> Vec<(usize, &'e Edge)> {
    let row = |edge: &Edge| table.iter().position(|on| *on == edge.on);
    all.iter().filter_map(|edge| Some((row(edge)?, *edge))).collect()
}

impl Scene<'_> {
    fn holds(&self, condition: &Condition) -> bool {
        condition.clauses.iter().all(|clause| self.is_true(clause))
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
