//! How well a capability serves an intent: by its name, or by all that it says of itself; each score says why (M-17, M-21).

use super::catalog::{Catalog, Entry, Near, Sought};
use super::words::Wording;

/// How well a capability serves an intent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Score {
    /// From 0 to 1.
    pub(super) value: f64,
    /// The reasons against it, in words.
    pub(super) why: String,
}

/// The parts of a capability in which a word is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// Its name, and its server's; what it says beside counts a little.
    Name,
    /// All its words, and words that are alike by their letters.
    Text,
}

/// Scores a capability.
pub(super) fn score(catalog: &Catalog, near: &Near, intent: &Wording, entry: &Entry, reach: Reach) -> Score {
    let (verb, verb_words) = verb(intent, entry);
    let (named, unwanted) = named(catalog, near, entry, reach);
    let (covered, missed) = covered(near, entry, reach);
    let value = match reach {
        Reach::Name => verb * (0.55 * named + 0.45 * covered),
        Reach::Text => verb * (0.25 * named + 0.75 * covered),
    };
    let mut why = vec![verb_words];
    if !unwanted.is_empty() {
        why.push(format!("it is also about {}", unwanted.join(", ")));
    }
    if !missed.is_empty() {
        why.push(format!("it says nothing of {}", missed.join(", ")));
    }
    let why = why.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    Score { value: if intent.nouns.is_empty() { 0.0 } else { value }, why }
}

fn verb(intent: &Wording, entry: &Entry) -> (f64, String) {
    match (intent.deed, entry.name.deed) {
        (Some(wanted), Some(own)) => {
            let serves = own.serves(wanted);
            let is_other = serves < 0.5;
            let verb = entry.name.verb.as_deref().unwrap_or_default();
            (serves, if is_other { format!("its verb is \"{verb}\"") } else { String::new() })
        }
        (Some(_), None) | (None, Some(_)) => (0.8, String::new()),
        (None, None) => (1.0, String::new()),
    }
}

/// Returns how much of the capability's own name the intent has: what it has not is specificity that nobody wants (M-21).
fn named(catalog: &Catalog, near: &Near, entry: &Entry, reach: Reach) -> (f64, Vec<String>) {
    let (mut all, mut wanted, mut unwanted) = (0.0, 0.0, Vec::new());
    for noun in &entry.name.nouns {
        let weight = catalog.weight(noun);
        let likeness = near.sought.iter().map(|sought| likeness(sought, noun, reach)).fold(0.0, f64::max);
        all += weight;
        wanted += weight * likeness;
        if likeness == 0.0 {
            unwanted.push(noun.clone());
        }
    }
    // A name that is a verb alone says too little to be wanted whole.
    (if all == 0.0 { 0.3 } else { wanted / all }, unwanted)
}

/// Returns how much of the intent the capability has.
fn covered(near: &Near, entry: &Entry, reach: Reach) -> (f64, Vec<String>) {
    let (mut all, mut has, mut missed) = (0.0, 0.0, Vec::new());
    let beside = match reach {
        Reach::Name => 0.5,
        Reach::Text => 0.9,
    };
    for sought in &near.sought {
        let in_name = entry.name.nouns.iter().chain(&entry.server);
        let in_name = in_name.map(|noun| likeness(sought, noun, reach)).fold(0.0, f64::max);
        let in_text = entry.text.iter().map(|word| likeness(sought, word, reach)).fold(0.0, f64::max);
        let share = in_name.max(beside * in_text);
        all += sought.weight;
        has += sought.weight * share;
        if share == 0.0 {
            missed.push(sought.word.clone());
        }
    }
    (if all == 0.0 { 0.0 } else { has / all }, missed)
}

fn likeness(sought: &Sought, word: &str, reach: Reach) -> f64 {
    if sought.word == word {
        return 1.0;
    }
    match reach {
        Reach::Name => 0.0,
        Reach::Text => {
            let form = sought.forms.iter().find(|(form, _)| form == word);
            form.map_or(0.0, |(_, likeness)| *likeness)
        }
    }
}
