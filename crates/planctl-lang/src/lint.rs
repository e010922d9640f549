//! Compares a plan with itself and with the facts; one file per family of findings.

mod budget;
pub(crate) mod candidates;
mod contract;
mod denied;
mod effects;
pub(crate) mod foreign;
mod judges;
mod lookalikes;
mod numbers;
mod order;
mod proof;
mod questions;
mod rights;
mod roles;
mod safety;
mod shape;
mod subscriptions;
mod trial;
mod untold;

pub use subscriptions::{SUBSCRIPTION_BYTES_MAX, unknown_topics};

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::diagnostic::Diagnostic;
use crate::facts::Facts;
use crate::syntax::source::Source;
use crate::tree::PlanTree;
use crate::tree::parse::sort;

/// The inputs of all lints.
pub(crate) struct Lint<'a> {
    pub source: &'a Source,
    pub tree: &'a PlanTree,
    pub scripts: &'a Scripts,
    pub order: &'a Order,
    pub facts: &'a Facts,
}

/// Returns every finding about a plan that was read, in the order of the text.
pub fn lint(source: &Source, tree: &PlanTree, facts: &Facts) -> Vec<Diagnostic> {
    let scripts = Scripts::read(tree);
    let order = Order::read(source, tree, &scripts);
    lint_with(&Lint { source, tree, scripts: &scripts, order: &order, facts })
}

pub(crate) fn lint_with(lint: &Lint<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    shape::lint(lint, &mut found);
    lookalikes::lint(lint, &mut found);
    contract::lint(lint, &mut found);
    subscriptions::lint(lint, &mut found);
    judges::lint(lint, &mut found);
    untold::lint(lint, &mut found);
    rights::lint(lint, &mut found);
    questions::lint(lint, &mut found);
    roles::lint(lint, &mut found);
    denied::lint(lint, &mut found);
    budget::lint(lint, &mut found);
    safety::lint(lint, &mut found);
    trial::lint(lint, &mut found);
    sort(&mut found);
    found
}
