//! The contracts of all steps, each read as bash reads it.

use crate::syntax::shell::{self, Deciding, FileUse, Reading, Script};
use crate::tools::ToolUse;
use crate::tree::workflow::NodeTree;

/// Each step's contract as bash reads it; read once and shared by all lints.
pub(crate) struct Scripts(Vec<Option<Contract>>);

struct Contract {
    reading: Reading,
    files: Vec<FileUse>,
    deciding: Deciding,
}

impl Scripts {
    pub(crate) fn read(steps: &[&NodeTree]) -> Scripts {
        let read = |step: &&NodeTree| {
            let command = &step.contract.as_ref()?.command;
            // The harness carries a call of a tool out itself.
            if ToolUse::read(command).is_some() {
                return None;
            }
            let reading = shell::read(command);
            let (files, deciding) = match &reading {
                Reading::Read(script) => shell::files_and_deciding(script),
                Reading::Refused { .. } | Reading::TooDeep => (Vec::new(), Deciding::default()),
            };
            Some(Contract { reading, files, deciding })
        };
        Scripts(steps.iter().map(read).collect())
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
