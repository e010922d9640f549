//! The table of programs, a part for each field, and the words that its rows share.

use super::{Files, Program, Wraps, building, machines, shells};

/// All parts of the table.
pub(super) const PROGRAMS: [&[Program]; 3] = [shells::PROGRAMS, building::PROGRAMS, machines::PROGRAMS];

pub(super) const PLAIN: Program =
    Program { names: &[], short: "", long: &[], files: Files::ByLook, wraps: None, reads: &[], does: &[] };

pub(super) const WRAPS: Wraps = Wraps {
    verbs: &[],
    behind: "",
    positionals: 0,
    takes_assignments: false,
    has_own_path: false,
    takes_names: false,
};

/// Starts a program from places of its own.
pub(super) const RUNS: Wraps = Wraps { has_own_path: true, ..WRAPS };

pub(super) const INDEX: &str = "changes the index";
pub(super) const TREE: &str = "changes the files";
pub(super) const REPOSITORY: &str = "changes the repository";
pub(super) const FILES: &str = "rewrites files";

/// Options that keep package managers from the network.
pub(super) const OFFLINE: &[&str] = &["--offline", "--no-index", "--prefer-offline"];
pub(super) const ASKS_FOR_ITSELF: &[&str] = &["--version", "--help"];
/// Options of jest and vitest that choose tests by their name, or by what changed, or let a run of none pass.
pub(super) const BY_NAME: &[&str] =
    &["-t", "--testNamePattern", "--passWithNoTests", "--onlyChanged", "--changedSince", "--changed"];
/// Those of them that mean nothing else to another runner: `-t` is a time to mocha.
pub(super) const ONLY_BY_NAME: &[&str] =
    &["--testNamePattern", "--passWithNoTests", "--onlyChanged", "--changedSince"];
