//! Compares a plan with itself and with the facts: one file per family of findings, and the list of all of them.

pub(crate) mod allowed;
mod before_work;
mod budget;
pub(crate) mod candidates;
mod changes;
mod contract;
mod denied;
mod effects;
pub(crate) mod foreign;
mod judges;
mod lookalikes;
mod nodes;
mod numbers;
mod order;
mod proof;
mod questions;
mod rights;
mod roles;
mod safety;
mod shape;
mod subscriptions;
mod untold;
mod wording;

pub use subscriptions::{SUBSCRIPTION_BYTES_MAX, unknown_topics};

use std::collections::BTreeSet;

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::diagnostic::levels::Levels;
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::{Facts, Trial};
use crate::syntax::Language;
use crate::syntax::shell::Script;
use crate::syntax::source::Source;
use crate::tree::parse::sort;
use crate::tree::workflow::{NodeTree, Workflow, of_tree};
use crate::tree::{ContractTree, PlanTree};

/// One look at a plan: a row of [`LINTS`].
pub(crate) struct Lint {
    /// The codes of its findings; it may find one of [`READING`] as well, where it takes more than the text to see it.
    pub codes: &'static [Code],
    pub needs: Needs,
    pub check: fn(&Context<'_>, &mut Vec<Diagnostic>),
}

/// The most that a lint looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// The plan itself.
    Text,
    /// The workspace, the machine and the configuration, too: its findings come and go while the text stays.
    Surroundings,
    /// Contracts that were tried, too.
    Trials,
}

/// All lints, in the order in which they look.
pub(crate) const LINTS: &[Lint] = &[
    shape::LINT,
    shape::PLACE,
    lookalikes::LINT,
    contract::LINT,
    proof::LINT,
    proof::MASKED,
    changes::LINT,
    effects::LINT,
    subscriptions::LINT,
    judges::LINT,
    untold::LINT,
    rights::LINT,
    questions::LINT,
    roles::LINT,
    denied::LINT,
    budget::LINT,
    safety::LINT,
    before_work::LINT,
    nodes::FOLDERS,
    nodes::SUB_PLANS,
    nodes::NEXT,
    nodes::TOOL_CALLS,
    nodes::JUDGES,
];

/// The codes of what is found while a text is read and made a graph, and of what can't be left out.
const READING: &[Code] = {
    use Code::*;
    &[
        P001, P002, P003, P004, P005, P008, P011, P015, P018, P205, P301, P302, P303, P304, P305, P306, P307,
        P308, P309, P310, P311, P312, P313, P314, P315, P316, P317, P318, P319, P320, P321, P503,
    ]
};

/// The inputs of all lints.
pub(crate) struct Context<'a> {
    pub source: &'a Source,
    /// The text of a plan in markdown; empty in another language.
    pub tree: &'a PlanTree,
    pub workflow: &'a Workflow,
    /// The nodes that are steps, in their order.
    pub steps: &'a [&'a NodeTree],
    pub scripts: &'a Scripts,
    pub order: &'a Order,
    pub facts: &'a Facts,
}

/// A step's contract that could be read as bash.
pub(crate) struct ReadContract<'a> {
    /// The place of its step.
    pub at: usize,
    pub step: &'a NodeTree,
    pub contract: &'a ContractTree,
    pub script: &'a Script,
}

impl<'a> Context<'a> {
    /// Looks at each contract that could be read; what is found is named after its step.
    fn each_script(
        &self,
        found: &mut Vec<Diagnostic>,
        mut look: impl FnMut(ReadContract<'a>, &mut Vec<Diagnostic>),
    ) {
        for (at, step) in self.each_step() {
            let (Some(contract), Some(script)) = (&step.contract, self.scripts.read_of(at)) else { continue };
            let before = found.len();
            look(ReadContract { at, step, contract, script }, found);
            found[before..].iter_mut().for_each(|finding| finding.step = Some(step.step_name()));
        }
    }

    /// Returns the steps with their places.
    fn each_step(&self) -> impl Iterator<Item = (usize, &'a NodeTree)> + use<'a> {
        self.steps.iter().copied().enumerate()
    }

    /// Returns the trial of a step's contract, where there was one.
    fn trial_of(&self, step: &NodeTree) -> Option<&'a Trial> {
        self.facts.trials.get(&step.number?)
    }

    /// Returns the steps of which a trial is known, by their places: of those with one number, the first was tried.
    fn trials(&self) -> impl Iterator<Item = (usize, &'a NodeTree, &'a ContractTree, &'a Trial)> {
        let trials = &self.facts.trials;
        let mut seen = BTreeSet::new();
        self.each_step().filter_map(move |(at, step)| {
            let number = step.number.filter(|number| seen.insert(*number))?;
            Some((at, step, step.contract.as_ref()?, trials.get(&number)?))
        })
    }
}

/// Returns every finding about a plan in markdown that was read, in the order of the text.
pub fn lint(source: &Source, tree: &PlanTree, facts: &Facts) -> Vec<Diagnostic> {
    let workflow = &of_tree(source, tree, &mut Vec::new());
    let steps = &workflow.steps();
    let scripts = &Scripts::read(steps);
    let order = &Order::read(source, steps, scripts);
    run(&Context { source, tree, workflow, steps, scripts, order, facts }, &Levels::default())
}

/// Runs every lint of which some finding would be told.
pub(crate) fn run(context: &Context<'_>, levels: &Levels) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let is_told = |lint: &&Lint| lint.codes.is_empty() || !lint.codes.iter().all(|code| levels.hides(*code));
    for lint in LINTS.iter().filter(is_told) {
        let before = found.len();
        (lint.check)(context, &mut found);
        let is_own = |found: &Diagnostic| lint.codes.contains(&found.code) || READING.contains(&found.code);
        debug_assert!(found[before..].iter().all(is_own), "a lint finds only what its row says");
    }
    if let Some(language) = Language::of(context.source.path()) {
        found.iter_mut().for_each(|finding| wording::put_in_words_of(language, finding));
    }
    sort(&mut found);
    found
}

/// Returns what the findings of a code depend on.
pub(crate) fn needs(code: Code) -> Needs {
    LINTS.iter().find(|lint| lint.codes.contains(&code)).map_or(Needs::Text, |lint| lint.needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_found_by_one_lint_or_by_the_reader() {
        for code in Code::ALL {
            let lints = LINTS.iter().filter(|lint| lint.codes.contains(code)).count();
            assert_eq!(lints + usize::from(READING.contains(code)), 1, "{code}");
        }
    }

    #[test]
    fn each_code_of_the_surroundings_has_a_lint_that_looks_at_them() {
        let of_them = Code::ALL.iter().filter(|code| code.is_of_the_surroundings());
        let unsure: Vec<&Code> = of_them.filter(|code| needs(**code) == Needs::Text).collect();
        assert!(unsure.is_empty(), "{unsure:?}");
    }
}
