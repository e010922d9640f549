//! Random conditions of edges, over all that a condition can look at.

use planctl_engine::NodeId;
use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};

use crate::dice::Dice;

/// Draws a condition of one or two clauses.
pub(super) fn draw(dice: &mut Dice, nodes: &[NodeId]) -> Condition {
    let clauses = if dice.happens(250) { 2 } else { 1 };
    Condition { clauses: (0..clauses).map(|_| clause(dice, nodes)).collect() }
}

fn clause(dice: &mut Dice, nodes: &[NodeId]) -> Clause {
    let node = dice.pick(nodes).to_string();
    let (key, words): (Key, &[&str]) = match dice.below(10) {
        0 | 1 => (Key::Outcome, &["success", "fail", "partial_success", "skipped", "red"]),
        2 => (Key::PreferredLabel, &["red", "blue", "yes"]),
        3 => (Key::Context("x".to_owned()), &["1", "2"]),
        4 => (Key::Variable("x".to_owned()), &["1", "2"]),
        5 => (Key::Variable("y".to_owned()), &["1", "2"]),
        6 => (Key::Context("human.gate.selected".to_owned()), &["no", "[Y] Yes"]),
        7 => (Key::Variable(format!("internal.retry_count.{node}")), &["0", "1"]),
        8 => match dice.below(4) {
            0 => (Key::Context("outcome".to_owned()), &["success", "fail"]),
            1 => (Key::Variable("tool.exit_code".to_owned()), &["0", "1"]),
            _ => (Key::Context("parallel.results".to_owned()), &["success,success", "success,fail", ""]),
        },
        _ => {
            let field = *dice.pick(&StepField::ALL);
            let words: &[&str] = match field {
                StepField::Outcome => &["success", "fail", "partial_success"],
                StepField::ExitCode => &["0", "1"],
                StepField::Output => &["one in 3 s", "two"],
                StepField::Label => &["red", "blue"],
                StepField::Attempts => &["1", "2"],
            };
            (Key::Step { node, field }, words)
        }
    };
    let word = (*dice.pick(words)).to_owned();
    let test = match dice.below(5) {
        0 => Test::Truthy,
        1 | 2 => Test::IsNot(word),
        _ => Test::Is(word),
    };
    Clause { key, test }
}
