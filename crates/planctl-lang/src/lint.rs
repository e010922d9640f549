//! Compares a plan with itself and with the facts; one file per family of findings.

mod budget;
mod contract;
mod denied;
mod effects;
mod foreign;
mod judges;
mod lookalikes;
pub(crate) mod mentions;
mod numbers;
pub(crate) mod order;
pub(crate) mod plainly;
mod proof;
mod rights;
mod roles;
mod safety;
mod shape;
mod subscriptions;
mod trial;
mod untold;

pub use subscriptions::{SUBSCRIPTION_BYTES_MAX, unknown_topics};

use crate::diagnostic::Diagnostic;
use crate::facts::Facts;
use crate::parse::sort;
use crate::shell::{self, Deciding, FileUse, Reading, Script};
use crate::source::Source;
use crate::tree::{PlanTree, StepTree};
use order::Order;

/// Each step's contract as bash reads it; read once and shared by all lints.
pub(crate) struct Scripts(Vec<Option<Contract>>);

struct Contract {
    reading: Reading,
    files: Vec<FileUse>,
    deciding: Deciding,
}

impl Scripts {
    pub(crate) fn read(tree: &PlanTree) -> Scripts {
        let read = |step: &StepTree| {
            let reading = shell::read(&step.contract.as_ref()?.command);
            let (files, deciding) = match &reading {
                Reading::Read(script) => shell::files_and_deciding(script),
                Reading::Refused { .. } | Reading::TooDeep => (Vec::new(), Deciding::default()),
            };
            Some(Contract { reading, files, deciding })
        };
        Scripts(tree.steps.iter().map(read).collect())
    }

    /// Returns the reading of the contract of the step at this place.
    pub(crate) fn reading(&self, at: usize) -> Option<&Reading> {
        self.0.get(at)?.as_ref().map(|contract| &contract.reading)
    }

    /// Returns the files that the contract of the step at this place names, in order.
    pub(crate) fn files(&self, at: usize) -> &[FileUse] {
        self.0.get(at).and_then(Option::as_ref).map_or(&[], |contract| &contract.files)
    }

    /// Returns what decides the contract of the step at this place, as far as its text tells.
    pub(crate) fn deciding(&self, at: usize) -> Option<&Deciding> {
        self.0.get(at)?.as_ref().map(|contract| &contract.deciding)
    }

    /// Returns the script, where it could be read.
    pub(crate) fn read_of(&self, at: usize) -> Option<&Script> {
        match self.reading(at)? {
            Reading::Read(script) => Some(script),
            Reading::Refused { .. } | Reading::TooDeep => None,
        }
    }
}

/// What all lints look at.
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
    roles::lint(lint, &mut found);
    denied::lint(lint, &mut found);
    budget::lint(lint, &mut found);
    safety::lint(lint, &mut found);
    trial::lint(lint, &mut found);
    sort(&mut found);
    found
}
