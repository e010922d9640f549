//! The history of resolution: successes are used again, and strategies that fail often come later (M-14, M-47).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::Wording;
use super::{Intent, Source};
use crate::intents::IntentKind;

/// The most entries that are kept; the oldest are forgotten.
const ENTRIES_MAX: usize = 5_000;
/// A strategy is judged only by so many ends, since few say nothing.
const ENDS_MIN: u32 = 4;

/// How the step of an intent went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Went {
    /// Nobody knows yet.
    Unknown,
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

/// An intent that was resolved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Remembered {
    /// The words of the intent, without values, as they are compared.
    pub key: String,
    /// The type of the intent: what its verb does.
    pub intent_type: String,
    /// The strategy that found the capability.
    pub source: Source,
    /// The capability.
    pub capability: String,
    /// How it went.
    pub went: Went,
    /// The digest of the plan and the step that calls it, where one was written.
    pub step: Option<(String, u32)>,
}

/// Everything that is remembered, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct History {
    /// The entries.
    pub entries: Vec<Remembered>,
}

/// How often something served, and how that went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// How often it found a capability.
    pub resolved: u32,
    /// How many of these passed.
    pub passed: u32,
    /// How many of these failed.
    pub failed: u32,
}

impl Tally {
    /// Returns how many of those whose end is known passed, from 0 to 1.
    pub fn rate(&self) -> Option<f64> {
        let ended = self.passed + self.failed;
        (ended > 0).then(|| f64::from(self.passed) / f64::from(ended))
    }
}

impl History {
    /// Remembers what resolved an intent. A step of a plan is remembered once, however often that plan is written.
    pub fn remember(&mut self, new: Remembered) {
        if new.step.is_some() && self.entries.iter().any(|old| old.step == new.step) {
            return;
        }
        self.entries.push(new);
        let surplus = self.entries.len().saturating_sub(ENTRIES_MAX);
        self.entries.drain(..surplus);
    }

    /// Says whether nobody knows yet how a step of this plan went.
    pub fn waits_for(&self, plan: &str) -> bool {
        let of_plan = |entry: &&Remembered| entry.step.as_ref().is_some_and(|(own, _)| own == plan);
        self.entries.iter().filter(of_plan).any(|entry| entry.went == Went::Unknown)
    }

    /// Hears how a step of a plan went.
    pub fn ended(&mut self, plan: &str, step: u32, went: Went) {
        for entry in &mut self.entries {
            if entry.step.as_ref().is_some_and(|(own, number)| own == plan && *number == step) {
                entry.went = went;
            }
        }
    }

    /// Returns the capability that served the same intent best: it passed at least once, and more often than it failed.
    pub(super) fn served(&self, key: &str) -> Option<(&str, Tally)> {
        let mut by_capability: BTreeMap<&str, Tally> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.key == key) {
            by_capability.entry(&entry.capability).or_default().count(entry.went);
        }
        let good = by_capability.into_iter().filter(|(_, tally)| tally.passed > tally.failed);
        good.max_by_key(|(_, tally)| tally.passed - tally.failed)
    }

    /// Sums up by strategy.
    pub fn by_source(&self) -> BTreeMap<Source, Tally> {
        self.tallied(|entry| entry.source)
    }

    /// Sums up by the type of intent.
    pub fn by_type(&self) -> BTreeMap<String, Tally> {
        self.tallied(|entry| entry.intent_type.clone())
    }

    /// Orders strategies: one that failed more often than it passed, for this type of intent, comes after the others.
    pub(super) fn ordered(&self, intent_type: &str, sources: &[Source]) -> Vec<Source> {
        let own = self.entries.iter().filter(|entry| entry.intent_type == intent_type);
        let mut tallies: BTreeMap<Source, Tally> = BTreeMap::new();
        for entry in own {
            tallies.entry(entry.source).or_default().count(entry.went);
        }
        let fails = |source: &Source| {
            let tally = tallies.get(source).copied().unwrap_or_default();
            tally.passed + tally.failed >= ENDS_MIN && tally.failed > tally.passed
        };
        let mut ordered = sources.to_vec();
        ordered.sort_by_key(fails);
        ordered
    }

    fn tallied<K: Ord>(&self, of: impl Fn(&Remembered) -> K) -> BTreeMap<K, Tally> {
        let mut tallies: BTreeMap<K, Tally> = BTreeMap::new();
        for entry in &self.entries {
            tallies.entry(of(entry)).or_default().count(entry.went);
        }
        tallies
    }
}

impl Tally {
    fn count(&mut self, went: Went) {
        self.resolved += 1;
        match went {
            Went::Unknown => {}
            Went::Passed => self.passed += 1,
            Went::Failed => self.failed += 1,
        }
    }
}

/// Returns the words by which an intent is known again: what it does to what, and no values.
pub fn key_of(intent: &Intent) -> String {
    let wording = Wording::read_intent(&intent.text);
    let deed = wording.deed.map(|deed| deed.as_str().to_owned());
    deed.into_iter().chain(wording.nouns).collect::<Vec<_>>().join(" ")
}

/// Returns the type of an intent, by which it is counted.
pub fn type_of(intent: &Intent) -> String {
    match intent.kind {
        IntentKind::Ask => "ask".to_owned(),
        IntentKind::Transform => "transform".to_owned(),
        IntentKind::Act => {
            Wording::read_intent(&intent.text).deed.map_or("other", |deed| deed.as_str()).to_owned()
        }
    }
}
