//! Which entry a message calls for, and why the others were not taken (rows H-03 to H-09, X-10, X-11).

use std::collections::BTreeMap;

use super::Entry;

/// How many other words may stand between two words of a trigger.
const GAP_WORDS: usize = 2;

/// How a trigger is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Matcher {
    /// Its words, in order, with up to two others between each.
    #[default]
    Words,
    /// Its characters, anywhere.
    Substring,
}

/// A message, and what is known about who sent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The message.
    pub message: &'a str,
    /// Its domain, where somebody said one: an empty one fits entries without domains only (H-05).
    pub domain: Option<&'a str>,
    /// The ids that the role in question may begin; without a list all (G-39).
    pub allowed: Option<&'a [String]>,
    /// How triggers are looked for.
    pub matcher: Matcher,
}

/// A trigger that the message has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hit<'e> {
    /// The trigger, as the entry has it.
    pub trigger: &'e str,
    /// The words of the message that it was found in.
    pub found: String,
}

/// An entry's weight for a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weighed<'e> {
    /// The entry.
    pub entry: &'e Entry,
    /// Its triggers that the message has.
    pub hits: Vec<Hit<'e>>,
    /// Says that the message's domain is one of its own, which counts like a hit (H-06).
    pub is_of_domain: bool,
    /// Why it was taken, or was not.
    pub fate: Fate<'e>,
}

impl Weighed<'_> {
    /// Returns the score: one for each hit, and one for the domain (H-06).
    pub fn score(&self) -> usize {
        self.hits.len() + usize::from(self.is_of_domain)
    }
}

/// Why an entry was taken, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate<'e> {
    /// It is the one.
    Taken,
    /// The message is empty (H-09).
    NoMessage,
    /// The role's list does not name it (G-39).
    NotOfRole,
    /// The message is of another domain (H-05).
    OtherDomain,
    /// The message has fewer of its triggers than its threshold (H-03).
    TooFewHits,
    /// Nothing speaks for it: its threshold is 0, and so is its score.
    NoScore,
    /// Another has a higher score.
    Outscored {
        /// The one that was taken.
        by: &'e str,
    },
    /// Another has the same score and stands before it (H-07).
    Later {
        /// The one that was taken.
        than: &'e str,
    },
}

/// Returns the entry that a message calls for, if one does.
pub fn best<'e>(entries: &'e [Entry], question: &Question<'_>) -> Option<Weighed<'e>> {
    weigh(entries, question).into_iter().find(|weighed| weighed.fate == Fate::Taken)
}

/// Weighs every entry for a message, in the order of the library; at most one is taken.
pub fn weigh<'e>(entries: &'e [Entry], question: &Question<'_>) -> Vec<Weighed<'e>> {
    let message = Message::read(question.message);
    let mut all: Vec<Weighed<'_>> =
        entries.iter().map(|entry| weigh_alone(entry, &message, question)).collect();
    let mut taken: Option<usize> = None;
    for (at, weighed) in all.iter().enumerate().filter(|(_, weighed)| weighed.fate == Fate::Taken) {
        if taken.is_none_or(|best| weighed.score() > all[best].score()) {
            taken = Some(at);
        }
    }
    let Some(taken) = taken else { return all };
    let (id, score) = (all[taken].entry.id.as_str(), all[taken].score());
    for (at, weighed) in all.iter_mut().enumerate() {
        if at != taken && weighed.fate == Fate::Taken {
            weighed.fate = match weighed.score() == score {
                true => Fate::Later { than: id },
                false => Fate::Outscored { by: id },
            };
        }
    }
    all
}

/// Weighs an entry as if there were no other.
fn weigh_alone<'e>(entry: &'e Entry, message: &Message, question: &Question<'_>) -> Weighed<'e> {
    let hits: Vec<Hit<'_>> = entry
        .triggers
        .iter()
        .filter_map(|trigger| Some(Hit { trigger, found: message.hit(trigger, question.matcher)? }))
        .collect();
    let is_of_domain = question.domain.is_some_and(|domain| entry.domains.iter().any(|own| own == domain));
    let fate = if message.text.is_empty() {
        Fate::NoMessage
    } else if question.allowed.is_some_and(|ids| !ids.contains(&entry.id)) {
        Fate::NotOfRole
    } else if question.domain.is_some() && !entry.domains.is_empty() && !is_of_domain {
        Fate::OtherDomain
    } else if hits.len() < entry.threshold() as usize {
        Fate::TooFewHits
    } else if hits.is_empty() && !is_of_domain {
        Fate::NoScore
    } else {
        Fate::Taken
    };
    Weighed { entry, hits, is_of_domain, fate }
}

/// A message in lower case, with its words and where each of them stands.
struct Message {
    text: String,
    words: Vec<String>,
    places: BTreeMap<String, Vec<usize>>,
}

impl Message {
    fn read(message: &str) -> Message {
        let text = message.trim().to_lowercase();
        let words = words(&text);
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, word) in words.iter().enumerate() {
            places.entry(word.clone()).or_default().push(at);
        }
        Message { text, words, places }
    }

    fn hit(&self, trigger: &str, matcher: Matcher) -> Option<String> {
        let trigger = trigger.to_lowercase();
        match matcher {
            Matcher::Words => self.words_of(&words(&trigger)),
            Matcher::Substring => self.text.contains(&trigger).then_some(trigger),
        }
    }

    /// Finds a trigger's words, and returns the first part of the message that has them.
    fn words_of(&self, trigger: &[String]) -> Option<String> {
        let (first, rest) = trigger.split_first()?;
        // Of each place that the words so far may end at: the latest place where they begin, which leaves the least between.
        let mut ends: BTreeMap<usize, usize> =
            self.places.get(first)?.iter().map(|place| (*place, *place)).collect();
        for word in rest {
            let mut next: BTreeMap<usize, usize> = BTreeMap::new();
            for (end, begin) in ends {
                for place in end + 1..=end + 1 + GAP_WORDS {
                    if self.words.get(place) == Some(word) {
                        let latest = next.entry(place).or_insert(begin);
                        *latest = begin.max(*latest);
                    }
                }
            }
            ends = next;
        }
        let (end, begin) = ends.first_key_value()?;
        Some(self.words[*begin..=*end].join(" "))
    }
}

/// Splits a text at its word boundaries; an apostrophe within a word is part of it.
fn words(text: &str) -> Vec<String> {
    let is_apostrophe = |c: char| matches!(c, '\'' | '\u{2019}');
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || is_apostrophe(c)))
        .map(|word| word.trim_matches(is_apostrophe))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
