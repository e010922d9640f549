//! The differences in meaning between two revisions of a plan: by step and field, not by line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::render::{Setting, Shown, ShownStep};

/// One difference of meaning between two revisions (P-76).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum Change {
    /// A step is new.
    Added {
        /// The step's number.
        step: String,
        /// The step's title.
        title: String,
    },
    /// A step is gone.
    Removed {
        /// The number it had.
        step: String,
        /// The title it had.
        title: String,
    },
    /// A step has another place; its other differences are changes of their own.
    Moved {
        /// The number it had.
        from: String,
        /// The number it has.
        step: String,
        /// The title it has.
        title: String,
    },
    /// A value differs.
    Changed {
        /// The step's number as it is now; absent for a value of the whole plan.
        step: Option<String>,
        /// The field's name.
        field: String,
        /// The value before.
        old: String,
        /// The value after.
        new: String,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Added { step, title } => write!(out, "step {step} added: {title}"),
            Change::Removed { step, title } => write!(out, "step {step} removed: {title}"),
            Change::Moved { from, step, title } => write!(out, "step {from} is now step {step}: {title}"),
            Change::Changed { step, field, old, new } => {
                let place = step.as_ref().map_or("plan".to_owned(), |step| format!("step {step}"));
                if old.contains('\n') || new.contains('\n') {
                    write!(out, "{place}: {field} changed")
                } else {
                    write!(out, "{place}: {field} `{old}` → `{new}`")
                }
            }
        }
    }
}

/// Returns what differs in meaning between two plans: values that apply, so that writing a default out is no change.
///
/// A step is known again by its title, then by what it says, then by its number; so a step put between others is one
/// change and the others have moved. The order is that of the new plan, what was removed first.
pub fn changes(old: &Shown, new: &Shown) -> Vec<Change> {
    let mut found = Vec::new();
    if old.title != new.title {
        found.push(changed(None, "title", &old.title, &new.title));
    }
    compare(None, &old.settings, &new.settings, &mut found);
    let pairs = pairs(&old.steps, &new.steps);
    let kept: BTreeSet<usize> = pairs.values().copied().collect();
    let removed = old.steps.iter().enumerate().filter(|(at, _)| !kept.contains(at));
    found.extend(
        removed.map(|(_, step)| Change::Removed { step: step.number.clone(), title: step.title.clone() }),
    );
    for (at, step) in new.steps.iter().enumerate() {
        let number = step.number.clone();
        let Some(before) = pairs.get(&at).and_then(|at| old.steps.get(*at)) else {
            found.push(Change::Added { step: number, title: step.title.clone() });
            continue;
        };
        if before.number != step.number {
            found.push(Change::Moved {
                from: before.number.clone(),
                step: number,
                title: step.title.clone(),
            });
        }
        if before.title != step.title {
            found.push(changed(Some(&step.number), "title", &before.title, &step.title));
        }
        compare(Some(&step.number), &before.settings, &step.settings, &mut found);
    }
    found
}

/// Which old step each new one was, by their places in the plans.
fn pairs(old: &[ShownStep], new: &[ShownStep]) -> BTreeMap<usize, usize> {
    let mut pairs = BTreeMap::new();
    let mut taken = BTreeSet::new();
    pair_by(old, new, &mut pairs, &mut taken, |step| step.title.clone());
    pair_by(old, new, &mut pairs, &mut taken, |step| {
        let values = step.settings.iter().map(|setting| setting.value.as_str());
        values.collect::<Vec<_>>().join("\0")
    });
    pair_by(old, new, &mut pairs, &mut taken, |step| step.number.clone());
    pairs
}

// Steps with equal keys are paired in their order, so that a plan with three steps of one title has no surprise.
fn pair_by(
    old: &[ShownStep],
    new: &[ShownStep],
    pairs: &mut BTreeMap<usize, usize>,
    taken: &mut BTreeSet<usize>,
    key: impl Fn(&ShownStep) -> String,
) {
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, step) in old.iter().enumerate().rev().filter(|(at, _)| !taken.contains(at)) {
        known.entry(key(step)).or_default().push(at);
    }
    for (at, step) in new.iter().enumerate() {
        if pairs.contains_key(&at) {
            continue;
        }
        if let Some(before) = known.get_mut(&key(step)).and_then(Vec::pop) {
            pairs.insert(at, before);
            taken.insert(before);
        }
    }
}

fn changed(step: Option<&String>, field: &str, old: &str, new: &str) -> Change {
    Change::Changed { step: step.cloned(), field: field.to_owned(), old: old.to_owned(), new: new.to_owned() }
}

fn compare(step: Option<&String>, old: &[Setting], new: &[Setting], found: &mut Vec<Change>) {
    let value = |settings: &[Setting], name: &str| {
        settings
            .iter()
            .find(|setting| setting.name == name)
            .map_or(String::new(), |setting| setting.value.clone())
    };
    let only_old = old.iter().filter(|setting| !new.iter().any(|known| known.name == setting.name));
    for setting in new.iter().chain(only_old) {
        let (before, after) = (value(old, setting.name), value(new, setting.name));
        if before != after {
            found.push(changed(step, setting.name, &before, &after));
        }
    }
}
