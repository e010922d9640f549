//! The catalog: capabilities behind an inverted index, which is built once and looks only at what shares a word with an intent.

use std::collections::{BTreeSet, HashMap};

use super::capability::Capability;
use super::words::{Deed, Wording};
use crate::intents::{singular, words_of};

/// The most capabilities that are compared closely.
const CLOSE_MAX: usize = 64;
/// The most known words that one unknown word may stand for.
const SIMILAR_MAX: usize = 6;
/// How alike two words are at least that count as forms of one.
const SIMILAR_MIN: f64 = 0.5;

/// Capabilities, with the index by which they are found.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: Vec<Entry>,
    words: HashMap<String, usize>,
    postings: Vec<Posting>,
    /// The known words in which three letters stand; the ends of a word count as letters.
    trigrams: HashMap<[char; 3], Vec<usize>>,
}

/// A capability and its words.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) capability: Capability,
    pub(super) name: Wording,
    pub(super) server: BTreeSet<String>,
    pub(super) text: BTreeSet<String>,
}

/// A known word, and where it stands.
#[derive(Debug, Default)]
struct Posting {
    word: String,
    in_names: Vec<usize>,
    in_texts: Vec<usize>,
}

/// A word of an intent, the known words that it stands for, and how alike each is.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    pub(super) word: String,
    pub(super) weight: f64,
    pub(super) forms: Vec<(String, f64)>,
}

/// The capabilities that share words with an intent.
#[derive(Debug, Default)]
pub(super) struct Near {
    pub(super) sought: Vec<Sought>,
    /// The places of capabilities, those that share most first.
    pub(super) places: Vec<usize>,
    /// How many entries of the index were looked at.
    pub(super) looked_at: usize,
}

impl Catalog {
    /// Indexes capabilities.
    pub fn new(capabilities: Vec<Capability>) -> Catalog {
        let mut catalog = Catalog::default();
        for capability in capabilities {
            let place = catalog.entries.len();
            let name = Wording::of(&capability.name);
            let server = plain_words(capability.server.as_deref().unwrap_or_default());
            let mut text = plain_words(&capability.description);
            for parameter in &capability.parameters {
                text.extend(plain_words(&parameter.name));
            }
            for word in name.nouns.iter().chain(&name.verb).chain(&server) {
                let at = catalog.index_word(word);
                catalog.postings[at].in_names.push(place);
            }
            for word in &text {
                let at = catalog.index_word(word);
                catalog.postings[at].in_texts.push(place);
            }
            catalog.entries.push(Entry { capability, name, server, text });
        }
        catalog
    }

    /// Returns its capabilities.
    pub fn capabilities(&self) -> impl Iterator<Item = &Capability> {
        self.entries.iter().map(|entry| &entry.capability)
    }

    /// Finds a capability by its full name, or by its name alone where one server has it.
    pub fn named(&self, name: &str) -> Option<&Capability> {
        let mut whole = self.capabilities().filter(|capability| capability.id() == name);
        let mut plain = self.capabilities().filter(|capability| capability.name == name);
        whole.next().or_else(|| plain.next().filter(|_| plain.next().is_none()))
    }

    pub(super) fn entry(&self, place: usize) -> &Entry {
        &self.entries[place]
    }

    /// Finds what shares words with an intent.
    pub(super) fn near(&self, intent: &Wording) -> Near {
        let mut near = Near::default();
        let mut shares: HashMap<usize, f64> = HashMap::new();
        for noun in &intent.nouns {
            let sought = self.look_up_word(noun, &mut near.looked_at);
            self.add_shares(&sought, &mut shares, &mut near.looked_at);
            near.sought.push(sought);
        }
        if let Some(deed) = intent.deed {
            // A verb alone finds too much to look at, so it weighs little; other verbs of its kind find the same.
            for verb in deed.verbs() {
                let sought =
                    Sought { word: (*verb).to_owned(), weight: 0.1, forms: vec![((*verb).to_owned(), 1.0)] };
                self.add_shares(&sought, &mut shares, &mut near.looked_at);
            }
        }
        let mut ranked: Vec<(usize, f64)> = shares.into_iter().collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        near.places = ranked.into_iter().take(CLOSE_MAX).map(|(place, _)| place).collect();
        near
    }

    fn index_word(&mut self, word: &str) -> usize {
        if let Some(at) = self.words.get(word) {
            return *at;
        }
        let at = self.postings.len();
        self.words.insert(word.to_owned(), at);
        self.postings.push(Posting { word: word.to_owned(), ..Posting::default() });
        for letters in trigrams(word) {
            self.trigrams.entry(letters).or_default().push(at);
        }
        at
    }

    /// Returns how much a word tells: one that stands everywhere tells little, and one that stands nowhere most.
    pub(super) fn weight(&self, word: &str) -> f64 {
        let has_it = self.words.get(word).map_or(0, |at| {
            let posting = &self.postings[*at];
            posting.in_names.len().max(posting.in_texts.len())
        });
        let all = self.entries.len() as f64;
        1.0 + ((all + 1.0) / (has_it as f64 + 1.0)).ln()
    }

    /// Finds the known words that a word stands for: itself, or where nobody has it, those with most letters in common.
    fn look_up_word(&self, word: &str, looked_at: &mut usize) -> Sought {
        let weight = self.weight(word);
        if self.words.contains_key(word) {
            return Sought { word: word.to_owned(), weight, forms: vec![(word.to_owned(), 1.0)] };
        }
        let own = trigrams(word);
        let mut common: HashMap<usize, usize> = HashMap::new();
        for letters in &own {
            let found = self.trigrams.get(letters).map(Vec::as_slice).unwrap_or_default();
            *looked_at += found.len();
            for at in found {
                *common.entry(*at).or_default() += 1;
            }
        }
        let mut forms: Vec<(String, f64)> = common
            .into_iter()
            .map(|(at, both)| {
                let known = &self.postings[at].word;
                let likeness = 2.0 * both as f64 / (own.len() + trigrams(known).len()) as f64;
                (known.clone(), likeness)
            })
            .filter(|(_, likeness)| *likeness >= SIMILAR_MIN)
            .collect();
        forms.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        forms.truncate(SIMILAR_MAX);
        Sought { word: word.to_owned(), weight, forms }
    }

    fn add_shares(&self, sought: &Sought, shares: &mut HashMap<usize, f64>, looked_at: &mut usize) {
        for (form, likeness) in &sought.forms {
            let Some(posting) = self.words.get(form).map(|at| &self.postings[*at]) else { continue };
            *looked_at += posting.in_names.len() + posting.in_texts.len();
            for place in &posting.in_names {
                *shares.entry(*place).or_default() += sought.weight * likeness;
            }
            for place in &posting.in_texts {
                *shares.entry(*place).or_default() += 0.4 * sought.weight * likeness;
            }
        }
    }
}

/// Returns the words of a text as one of several each; verbs are words like others.
fn plain_words(text: &str) -> BTreeSet<String> {
    let words = Wording::of(text);
    let verbs = words_of(text).into_iter().filter(|word| Deed::of(word).is_some());
    words.nouns.into_iter().chain(verbs.map(|verb| singular(&verb))).collect()
}

/// Returns the groups of three letters of a word, each once.
fn trigrams(word: &str) -> BTreeSet<[char; 3]> {
    let letters: Vec<char> = std::iter::once(' ').chain(word.chars()).chain([' ']).collect();
    letters.windows(3).map(|three| [three[0], three[1], three[2]]).collect()
}
