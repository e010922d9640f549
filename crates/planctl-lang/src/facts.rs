//! What is true where the plan will run, given to the lints as plain data; this crate touches no files itself.

use std::collections::{BTreeMap, BTreeSet};

use planctl_glob::{Glob, is_glob};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::lint::Scripts;
use crate::lint::order::Order;
use crate::lint::plainly::Right;
use crate::shell::{self, Deciding, Use};
use crate::source::Source;
use crate::tree::{PlanTree, StepTree};
use crate::trial::Trial;

/// What the lints ask about a plan's surroundings.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Wants {
    /// Paths relative to the workspace: what is there?
    pub files: BTreeSet<String>,
    /// Globs relative to the workspace: what do they match?
    pub globs: BTreeSet<String>,
    /// Programs: are they on the contracts' PATH?
    pub commands: BTreeSet<String>,
    /// Contracts that our own reader refuses: does `bash -n` accept them?
    pub scripts: BTreeSet<String>,
    /// Files of plans within the plan, relative to the workspace in whatever folder the plan works: are they plans?
    #[serde(default)]
    pub sub_plans: BTreeSet<String>,
}

/// The answers. A question without an answer is never reported: silence is not a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// What is at a path.
    pub files: BTreeMap<String, FileFact>,
    /// Paths that exist, for near names of missing ones; capped by who gathers them.
    pub existing: Vec<String>,
    /// What a glob matches.
    pub globs: BTreeMap<String, Vec<String>>,
    /// Whether a program is on the PATH.
    pub commands: BTreeMap<String, bool>,
    /// The PATH that was searched.
    pub path: String,
    /// What `bash -n` printed about a contract; `None` where it accepts it.
    pub syntax: BTreeMap<String, Option<String>>,
    /// The roles of the registry; `None` where there is no registry.
    pub roles: Option<Vec<String>>,
    /// The types of nodes that roles serve, each with its role (DOT S12).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
    /// Says that one worker serves every role (`--exec`), so that the registry does not matter.
    #[serde(default)]
    pub serves_every_role: bool,
    /// The roles whose agent reports no cost and has no price.
    #[serde(default)]
    pub unpriced_roles: Vec<String>,
    /// Says that the one worker that serves every role reports no cost and has no price.
    #[serde(default)]
    pub unpriced_worker: bool,
    /// What each role may not bring about, where anything is denied to it (`effects.deny`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, BTreeSet<String>>,
    /// The topics that exist; `None` where nobody looked.
    pub topics: Option<Vec<String>>,
    /// Whether the plan's file lies in the workspace.
    pub plan_is_inside: Option<bool>,
    /// What planctl wrote into this file last; marks that differ are somebody else's.
    pub recorded: Option<Recorded>,
    /// What trying contracts before any work showed, by step number; empty where nothing was tried (`--probe`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trials: BTreeMap<u32, Trial>,
    /// What the files of plans within the plan are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sub_plans: BTreeMap<String, SubPlanFact>,
    /// Paths of the workspace that exist, in whatever folder the plan works, for near names of missing plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub existing_around: Vec<String>,
}

/// What the file of a plan within another is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SubPlanFact {
    /// A text that can be read as a plan, be it verified or not.
    Readable,
    /// Nothing.
    Missing,
    /// Something that is no text of a plan.
    Refused {
        /// Why.
        why: String,
    },
}

/// What planctl wrote into a plan's file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// The status.
    pub status: String,
    /// The mark of each step, as it stands in the heading.
    pub marks: BTreeMap<u32, String>,
}

/// What is at a path of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileFact {
    /// Nothing.
    Missing,
    /// A regular file, or a link to one inside the workspace.
    Regular {
        /// Its size in bytes.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link whose target is outside the workspace.
    Outside {
        /// Where it points.
        target: String,
    },
    /// Something that the system does not let us read.
    Unreadable {
        /// What the system says.
        reason: String,
    },
    /// Something that is read without end or not at all.
    Special {
        /// What it is.
        special: SpecialKind,
    },
}

/// Files that are no files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A device.
    Device,
    /// A socket.
    Socket,
}

impl SpecialKind {
    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            SpecialKind::Fifo => "a named pipe",
            SpecialKind::Device => "a device",
            SpecialKind::Socket => "a socket",
        }
    }
}

/// Returns what the lints want to know about a plan.
pub fn wants(source: &Source, tree: &PlanTree) -> Wants {
    let scripts = Scripts::read(tree);
    wants_of(tree, &scripts, &Order::read(source, tree, &scripts))
}

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

pub(crate) fn wants_of(tree: &PlanTree, scripts: &Scripts, order: &Order) -> Wants {
    let mut wants = Wants::default();
    for (at, step) in tree.steps.iter().enumerate() {
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
        wants.globs.extend(step.protects.iter().map(|glob| glob.value.clone()));
        wants.files.extend(contract_files(scripts, at));
        // What we read, bash reads; a process for each contract of a long plan would cost more than all the rest.
        if let Some(contract) = &step.contract
            && scripts.read_of(at).is_none()
        {
            wants.scripts.insert(contract.command.clone());
        }
        let started = scripts.read_of(at).map(shell::commands).unwrap_or_default();
        wants
            .commands
            .extend(started.into_iter().map(|started| started.name).filter(|name| !name.contains('/')));
    }
    wants.files.retain(|path| leaves_workspace(path).is_none());
    wants.files.extend(order.asked().map(str::to_owned));
    let other_forms: Vec<String> = wants.files.iter().flat_map(|path| other_forms(path)).collect();
    wants.files.extend(other_forms);
    wants.globs.retain(|glob| leaves_workspace(glob).is_none());
    wants
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
    named.extend(scripts.deciding(at).into_iter().flat_map(Deciding::all).map(str::to_owned));
    named
}

/// Returns the files and globs that a step's worker may change: those of its `**changes:**`, else those that its task plainly
/// makes or changes; less those that the step protects.
pub(crate) fn may_change(order: &Order, at: usize, step: &StepTree) -> BTreeSet<String> {
    let mut may_change: BTreeSet<String> = if step.changes.is_empty() {
        let rights = rights_of_task(order, at);
        rights
            .into_iter()
            .filter(|(_, right)| *right == Right::May)
            .map(|(path, _)| path.to_owned())
            .collect()
    } else {
        step.declared_changes().map(|entry| clean(&entry.value)).collect()
    };
    let protected = Protected::by(step);
    may_change.retain(|path| !protected.holds(path));
    may_change
}

/// Returns what a step's task says about changing each file that it names.
pub(crate) fn rights_of_task(order: &Order, at: usize) -> BTreeMap<&str, Right> {
    let mut said: BTreeMap<&str, Vec<Right>> = BTreeMap::new();
    for mention in order.of_task(at) {
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

/// Returns a path or glob as it is compared: without a leading `./`.
pub(crate) fn clean(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// What the globs of `**protects:**` match.
pub(crate) struct Protected(Vec<Glob>);

impl Protected {
    pub(crate) fn by(step: &StepTree) -> Protected {
        // One that is no glob is a finding of its own.
        Protected(step.protects.iter().filter_map(|glob| Glob::parse(&glob.value).ok()).collect())
    }

    pub(crate) fn holds(&self, path: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(path))
    }
}

/// Returns the files that a step's task, subscriptions and `**changes:**` name.
pub(crate) fn named_files<'a>(order: &'a Order, at: usize, step: &'a StepTree) -> BTreeSet<&'a str> {
    let in_task = order.of_task(at).iter().map(|mention| mention.path.as_str());
    let declared =
        step.declared_changes().map(|entry| entry.value.strip_prefix("./").unwrap_or(&entry.value));
    in_task.chain(step.subscribed_files().map(|(path, _)| path)).chain(declared).collect()
}

/// Says why a path is not one of the workspace: absolute, a home directory, or upwards.
pub(crate) fn leaves_workspace(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.starts_with('~') {
        return Some("is in a home directory");
    }
    let mut depth = 0_i64;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return Some("leaves the workspace");
        }
    }
    path.split('/').any(|part| part == "..").then_some("has `..` in it")
}

/// Returns, by step number, the files that its contract names and that its worker may not change: the candidates for
/// protection (DESIGN 8).
pub fn protected_candidates(source: &Source, tree: &PlanTree) -> BTreeMap<u32, BTreeSet<String>> {
    let scripts = Scripts::read(tree);
    let order = Order::read(source, tree, &scripts);
    let mut candidates = BTreeMap::new();
    for (at, step) in tree.steps.iter().enumerate() {
        let Some(number) = step.fixed_number() else { continue };
        let own = may_change(&order, at, step);
        let named = contract_files(&scripts, at);
        candidates.insert(number, named.into_iter().filter(|path| !matches_any(&own, path)).collect());
    }
    candidates
}
