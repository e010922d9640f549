//! Collects what a plan asks about its surroundings, which files judge a step, and which files its worker may change.

use std::collections::{BTreeMap, BTreeSet};

use planctl_glob::{Glob, is_glob};
use unicode_normalization::UnicodeNormalization as _;

use crate::analysis::Scripts;
use crate::analysis::looks::file_looks;
use crate::analysis::order::Order;
use crate::analysis::plainly::Right;
use crate::facts::Wants;
use crate::syntax::shell::{self, Deciding, Use};
use crate::text::paths::{clean, leaves_workspace};
use crate::tree::workflow::NodeTree;

/// The file whose scripts npm and its kin run.
pub(crate) const PACKAGE: &str = "package.json";

/// Returns how a path may be written in Unicode otherwise: composed or decomposed.
pub(crate) fn other_forms(path: &str) -> Vec<String> {
    if path.is_ascii() {
        return Vec::new();
    }
    let mut forms: Vec<String> = vec![path.nfc().collect(), path.nfd().collect()];
    forms.dedup();
    forms.retain(|form| form != path);
    forms
}

/// Returns what the lints want to know about the steps of a plan.
pub(crate) fn wants_of(steps: &[&NodeTree], scripts: &Scripts, order: &Order) -> Wants {
    let mut wants = Wants::default();
    for (at, step) in steps.iter().enumerate() {
        for (path, _) in step.subscribed_files() {
            if is_glob(path) {
                wants.globs.insert(path.to_owned())
            } else {
                wants.files.insert(path.to_owned())
            };
        }
        for entry in step.declared_changes() {
            let path = clean(&entry.value);
            if is_glob(&path) {
                wants.globs.insert(path)
            } else {
                wants.files.insert(path)
            };
        }
        wants.globs.extend(step.attributes.protects.entries().iter().map(|glob| glob.value.clone()));
        wants.files.extend(contract_files(scripts, at));
        wants.texts.extend(files_looked_at(scripts, at, step, false));
        wants.compared.extend(files_looked_at(scripts, at, step, true));
        if scripts.read_of(at).is_some_and(shell::asks_package) {
            wants.texts.insert(PACKAGE.to_owned());
        }
        // Bash accepts every script that our parser reads, so it is asked about the others only: a process for each contract
        // of a long plan would cost more than all the rest.
        if let Some(contract) = &step.contract
            && scripts.reading(at).is_some()
            && scripts.read_of(at).is_none()
        {
            wants.scripts.insert(contract.command.clone());
        }
        let started = scripts.read_of(at).map(shell::commands).unwrap_or_default();
        wants
            .commands
            .extend(started.into_iter().map(|started| started.name).filter(|name| !name.contains('/')));
    }
    wants.texts.retain(|path| leaves_workspace(path).is_none());
    wants.compared.retain(|path| leaves_workspace(path).is_none());
    wants.files.retain(|path| leaves_workspace(path).is_none());
    wants.files.extend(order.paths_to_probe().map(str::to_owned));
    let other_forms: Vec<String> = wants.files.iter().flat_map(|path| other_forms(path)).collect();
    wants.files.extend(other_forms);
    wants.globs.retain(|glob| leaves_workspace(glob).is_none());
    wants
}

// The files whose text a contract searches, or those that it compares with their commit.
fn files_looked_at(scripts: &Scripts, at: usize, step: &NodeTree, compares: bool) -> BTreeSet<String> {
    let (Some(script), Some(contract)) = (scripts.read_of(at), &step.contract) else {
        return BTreeSet::new();
    };
    let (looks, _) = file_looks(script, scripts.files(at), contract.expected());
    let looks = looks.iter().filter(|look| look.compares() == compares);
    looks.flat_map(|look| &look.files).map(|file| file.path.clone()).collect()
}

/// Returns the files of the workspace that a step's contract names.
pub(crate) fn contract_files(scripts: &Scripts, at: usize) -> BTreeSet<String> {
    let paths = scripts.files(at).iter().map(|file| file.path.trim_end_matches('/'));
    paths.filter(|path| !is_glob(path) && leaves_workspace(path).is_none()).map(str::to_owned).collect()
}

/// Returns the files by which a contract judges, and patterns of them: those that it names, less its own products, which it
/// writes and never reads, and those that its tools read.
///
/// A product that is there at approval would be the contract's own change at each gate.
pub(crate) fn judging_files(scripts: &Scripts, at: usize) -> BTreeSet<String> {
    let mut named = contract_files(scripts, at);
    let uses = |path: &str, how: Use| {
        let mut files = scripts.files(at).iter().filter(|file| file.path.trim_end_matches('/') == path);
        files.any(|file| file.how == how)
    };
    named.retain(|path| uses(path, Use::Reads) || !uses(path, Use::Writes));
    named.extend(scripts.deciding(at).into_iter().flat_map(Deciding::paths_and_patterns).map(str::to_owned));
    named
}

/// Returns the files and globs that a step's worker may change: those of its `**changes:**`, else those that its task plainly
/// makes or changes; less those that the step protects.
pub(crate) fn may_change(order: &Order, at: usize, step: &NodeTree) -> BTreeSet<String> {
    let mut may_change: BTreeSet<String> = if step.attributes.changes.entries().is_empty() {
        let rights = rights_of_task(order, at);
        rights
            .into_iter()
            .filter(|(_, right)| *right == Right::May)
            .map(|(path, _)| path.to_owned())
            .collect()
    } else {
        step.declared_changes().map(|entry| clean(&entry.value)).collect()
    };
    let protected = Protected::of_step(step);
    may_change.retain(|path| !protected.covers(path));
    may_change
}

/// Returns what a step's task says about changing each file that it names.
pub(crate) fn rights_of_task(order: &Order, at: usize) -> BTreeMap<&str, Right> {
    let mut said: BTreeMap<&str, Vec<Right>> = BTreeMap::new();
    for mention in order.mentions_in_task(at) {
        said.entry(&mention.path).or_default().push(mention.right);
    }
    said.into_iter().filter_map(|(path, said)| Some((path, Right::of_all(said)?))).collect()
}

/// Says whether one of these files and globs is a path, or matches it.
pub(crate) fn matches_any<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>, path: &str) -> bool {
    patterns.into_iter().any(|pattern| {
        let pattern = pattern.as_ref();
        pattern == path || is_glob(pattern) && Glob::parse(pattern).is_ok_and(|glob| glob.matches(path))
    })
}

/// The files that the globs of `**protects:**` match.
pub(crate) struct Protected(Vec<Glob>);

impl Protected {
    pub(crate) fn of_step(step: &NodeTree) -> Protected {
        // One that is no glob is a finding of its own.
        let globs = step.attributes.protects.entries().iter();
        Protected(globs.filter_map(|glob| Glob::parse(&glob.value).ok()).collect())
    }

    pub(crate) fn covers(&self, path: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(path))
    }
}

/// Returns the files that a step's task, subscriptions and `**changes:**` name.
pub(crate) fn named_files<'a>(order: &'a Order, at: usize, step: &'a NodeTree) -> BTreeSet<&'a str> {
    let in_task = order.mentions_in_task(at).iter().map(|mention| mention.path.as_str());
    let declared =
        step.declared_changes().map(|entry| entry.value.strip_prefix("./").unwrap_or(&entry.value));
    in_task.chain(step.subscribed_files().map(|(path, _)| path)).chain(declared).collect()
}
