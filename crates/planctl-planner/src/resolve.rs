//! Resolution: which capability serves an intent, found by one strategy after another; each says what it found, and why not (M-18).

use std::collections::HashMap;

use planctl_lang::library::{Entry, Fate, Question, weigh};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intents::{Intent, IntentKind};

mod bind;
mod capability;
mod catalog;
mod collapse;
mod history;
mod mend;
mod parameter;
mod planned;
mod quest;
mod score;
mod verify;
mod words;
mod written;

pub use self::bind::{Argument, ArgumentValue, Binding, bind};
pub use self::capability::{ASK_PERSON, Capability};
pub use self::catalog::Catalog;
pub use self::history::{History, Remembered, Tally, Went, key_of, type_of};
pub use self::mend::{MendNext, Mending};
pub use self::parameter::{Parameter, ParameterKind, coerced};
pub use self::planned::{Action, Call, Decision, Open, Planned, PlannedStep, Remark, planned};
pub use self::quest::{Quest, QuestAsk, QuestAskKind, QuestEvent, QuestNext};
pub use self::verify::{Verified, verified};
pub use self::written::write_plan;

use self::catalog::Near;
use self::score::{Reach, Score, score};
use self::words::Wording;

/// A capability whose name scores less is no answer.
const NAME_MIN: f64 = 0.6;
/// A capability whose whole text scores less is no answer; no text has all the words of an intent.
const TEXT_MIN: f64 = 0.45;
/// A capability that scores less is not even shown where a person says where to look.
const DISCOVERED_MIN: f64 = 0.3;
/// Two that are nearer than this are both possible, and a person chooses.
const APART_MIN: f64 = 0.05;
/// Vectors that are less alike than this say nothing.
const COSINE_MIN: f64 = 0.6;
/// The parameter by which an intent names its tool.
const SUGGESTED: &str = "_suggested_tool";
/// The beginning of a candidate that is a plan of the library.
const PLAN: &str = "plan:";
/// How many candidates are shown.
const SHOWN_MAX: usize = 5;

/// The strategy that finds a capability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The intent names it (M-22).
    Hint,
    /// It served the same intent before (M-14).
    History,
    /// It is local, and has that name (M-15).
    Catalog,
    /// A server has a tool of that name (M-16).
    Mcp,
    /// A plan of the library is called for by its triggers.
    Library,
    /// Its description says so (M-17).
    Semantic,
}

impl Source {
    /// All, in the order in which they are tried.
    pub const ALL: [Source; 6] =
        [Source::Hint, Source::History, Source::Catalog, Source::Mcp, Source::Library, Source::Semantic];

    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Hint => "hint",
            Source::History => "history",
            Source::Catalog => "catalog",
            Source::Mcp => "mcp",
            Source::Library => "library",
            Source::Semantic => "semantic",
        }
    }
}

/// A capability that was considered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Its full name.
    pub capability: String,
    /// How well it serves, from 0 to 1.
    pub score: f64,
    /// The reasons against it; empty where there are none.
    pub why: String,
}

/// A strategy that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// The strategy.
    pub source: Source,
    /// Its outcome, a sentence.
    pub why: String,
    /// The best that it found.
    pub candidates: Vec<Candidate>,
}

/// The answer for an intent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Served {
    /// One capability.
    By(Candidate, Source),
    /// One of several, and nothing says which.
    Unclear(Vec<Candidate>),
    /// None. The nearest are named for a person.
    Missing(Vec<Candidate>),
}

/// The answer for an intent, and how it was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Resolution {
    /// The answer.
    pub served: Served,
    /// The strategies that were tried, in order.
    pub tried: Vec<Tried>,
    /// How many entries of the index were looked at: what it cost, whatever the machine does beside.
    pub looked_at: usize,
}

/// Texts as vectors, by an embeddings endpoint; without them the words are compared.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vectors {
    of: HashMap<String, Vec<f32>>,
}

impl Vectors {
    /// Takes the vector of a text.
    pub fn insert(&mut self, text: &str, vector: Vec<f32>) {
        self.of.insert(text.to_owned(), vector);
    }

    fn cosine(&self, one: &str, other: &str) -> Option<f64> {
        let (one, other) = (self.of.get(one)?, self.of.get(other)?);
        let length =
            |vector: &[f32]| vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        let product: f64 = one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let lengths = length(one) * length(other);
        (one.len() == other.len() && lengths > 0.0).then(|| product / lengths)
    }
}

/// Finds capabilities for intents.
#[derive(Debug)]
pub struct Resolver<'a> {
    /// The capabilities that there are.
    pub catalog: &'a Catalog,
    /// The intents that were resolved before.
    pub history: &'a History,
    /// The strategies, in order.
    pub sources: &'a [Source],
    /// Texts as vectors, where an endpoint gave them.
    pub vectors: Option<&'a Vectors>,
    /// The plans of the library.
    pub entries: &'a [Entry],
}

impl Resolver<'_> {
    /// Finds what serves an intent: the first strategy with an acceptable answer decides.
    pub fn find(&self, intent: &Intent) -> Resolution {
        let wording = Wording::read_intent(&intent.text);
        let near = self.catalog.near(&wording);
        let looked_at = near.looked_at;
        let mut tried = Vec::new();
        for source in self.history.ordered(&type_of(intent), self.sources) {
            let (served, own) = self.resolve_by(source, intent, &wording, &near);
            tried.push(own);
            if let Some(served) = served {
                return Resolution { served, tried, looked_at };
            }
        }
        let mut nearest: Vec<Candidate> = Vec::new();
        for candidate in tried.iter().flat_map(|tried| &tried.candidates) {
            match nearest.iter_mut().find(|known| known.capability == candidate.capability) {
                Some(known) if known.score < candidate.score => *known = candidate.clone(),
                Some(_) => {}
                None => nearest.push(candidate.clone()),
            }
        }
        rank(&mut nearest);
        Resolution { served: Served::Missing(nearest), tried, looked_at }
    }

    /// Looks for capabilities that may serve an intent: among all, by the bar of the strategies, or where names match a word of a
    /// person's, by a lower one (M-38, M-39d).
    pub fn discover(&self, intent: &Intent, patterns: &[String]) -> Vec<Candidate> {
        let wording = Wording::read_intent(&intent.text);
        let near = self.catalog.near(&wording);
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.to_lowercase()).collect();
        let least = if patterns.is_empty() { NAME_MIN } else { DISCOVERED_MIN };
        let mut found: Vec<Candidate> = self
            .ranked(&wording, &near, Reach::Text, |_| true)
            .into_iter()
            .filter(|candidate| candidate.score >= least)
            .collect();
        found.retain(|candidate| {
            let name = candidate.capability.to_lowercase();
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, &name))
        });
        found
    }

    fn resolve_by(
        &self,
        source: Source,
        intent: &Intent,
        wording: &Wording,
        near: &Near,
    ) -> (Option<Served>, Tried) {
        match source {
            Source::Hint => self.by_hint(intent),
            Source::History => self.by_history(intent),
            Source::Catalog | Source::Mcp => {
                let is_asked = |server: Option<&str>| server.is_none() == (source == Source::Catalog);
                let ranked = self.ranked(wording, near, Reach::Name, is_asked);
                accept_best(source, ranked, NAME_MIN)
            }
            Source::Library => self.by_library(intent),
            Source::Semantic => match self.by_vectors(intent) {
                Some(ranked) => accept_best(source, ranked, COSINE_MIN),
                None => accept_best(source, self.ranked(wording, near, Reach::Text, |_| true), TEXT_MIN),
            },
        }
    }

    fn by_hint(&self, intent: &Intent) -> (Option<Served>, Tried) {
        let suggested = intent.parameters.get(SUGGESTED).and_then(Value::as_str);
        let Some(name) = intent.tool.as_deref().or(suggested) else {
            return (None, nothing_found(Source::Hint, "the intent names no tool".to_owned()));
        };
        match self.catalog.named(name) {
            Some(capability) => accept(Source::Hint, &capability.id(), "the intent names it".to_owned()),
            None => (
                None,
                nothing_found(Source::Hint, format!("there is no tool `{name}`, which the intent names")),
            ),
        }
    }

    fn by_history(&self, intent: &Intent) -> (Option<Served>, Tried) {
        let Some((name, tally)) = self.history.served(&key_of(intent)) else {
            return (None, nothing_found(Source::History, "no such intent has passed before".to_owned()));
        };
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        match self.catalog.named(name) {
            Some(capability) => {
                let why = format!("it served the same intent, and passed {}", times(tally.passed));
                accept(Source::History, &capability.id(), why)
            }
            None => {
                (None, nothing_found(Source::History, format!("`{name}` served it before, and is not there")))
            }
        }
    }

    /// Finds the plan of the library that the words of an intent call for, as those of a message do.
    fn by_library(&self, intent: &Intent) -> (Option<Served>, Tried) {
        let question = Question { message: &intent.text, ..Question::default() };
        let weighed = weigh(self.entries, &question);
        let mut taken = None;
        let mut candidates = Vec::new();
        for one in weighed.iter().filter(|one| !one.hits.is_empty()) {
            let hits: Vec<&str> = one.hits.iter().map(|hit| hit.trigger).collect();
            let why = format!(
                "{} of its triggers, and it asks for {}: {}",
                hits.len(),
                one.entry.threshold(),
                hits.join(", ")
            );
            // No number of triggers makes a plan a certain answer.
            let score = one.score() as f64 / (one.score() + 1) as f64;
            let candidate = Candidate { capability: plan_id(&one.entry.id), score, why };
            if one.fate == Fate::Taken {
                taken = Some(candidate.clone());
            }
            candidates.push(candidate);
        }
        rank(&mut candidates);
        let source = Source::Library;
        match taken {
            Some(best) => {
                let why = format!("{} with {:.2}", best.capability, best.score);
                (Some(Served::By(best, source)), Tried { source, why, candidates })
            }
            None => (
                None,
                Tried {
                    source,
                    why: "no plan of the library has enough of its triggers in it".to_owned(),
                    candidates,
                },
            ),
        }
    }

    fn ranked(
        &self,
        wording: &Wording,
        near: &Near,
        reach: Reach,
        is_asked: impl Fn(Option<&str>) -> bool,
    ) -> Vec<Candidate> {
        let entries = near.places.iter().map(|place| self.catalog.entry(*place));
        let asked = entries.filter(|entry| is_asked(entry.capability.server.as_deref()));
        let mut ranked: Vec<Candidate> = asked
            .map(|entry| {
                let Score { value, why } = score(self.catalog, near, wording, entry, reach);
                Candidate { capability: entry.capability.id(), score: value, why }
            })
            .collect();
        rank(&mut ranked);
        ranked
    }

    fn by_vectors(&self, intent: &Intent) -> Option<Vec<Candidate>> {
        let vectors = self.vectors?;
        let mut ranked: Vec<Candidate> = self
            .catalog
            .capabilities()
            .filter_map(|capability| {
                let score = vectors.cosine(&intent.text, &text_to_embed(capability))?;
                Some(Candidate { capability: capability.id(), score, why: String::new() })
            })
            .collect();
        rank(&mut ranked);
        Some(ranked)
    }
}

/// Returns the name by which a plan of the library is a candidate; no capability has one like it.
fn plan_id(entry: &str) -> String {
    format!("{PLAN}{entry}")
}

/// Returns the entry of the library that a candidate is, where it is one.
fn entry_of(candidate: &str) -> Option<&str> {
    candidate.strip_prefix(PLAN)
}

/// Returns the text by which a capability is embedded.
pub fn text_to_embed(capability: &Capability) -> String {
    format!("{}: {}", capability.id(), capability.description)
}

/// Says whether a name matches a word of a person's: it stands in it, or fits it with `*` for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn rank(candidates: &mut Vec<Candidate>) {
    candidates.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.capability.cmp(&other.capability))
    });
    candidates.truncate(SHOWN_MAX);
}

fn nothing_found(source: Source, why: String) -> Tried {
    Tried { source, why, candidates: Vec::new() }
}

fn accept(source: Source, capability: &str, why: String) -> (Option<Served>, Tried) {
    let candidate = Candidate { capability: capability.to_owned(), score: 1.0, why: why.clone() };
    let tried = Tried { source, why, candidates: vec![candidate.clone()] };
    (Some(Served::By(candidate, source)), tried)
}

/// Takes the best of a ranking, where it is good enough and stands alone.
fn accept_best(source: Source, ranked: Vec<Candidate>, least: f64) -> (Option<Served>, Tried) {
    let Some(best) = ranked.first().filter(|best| best.score >= least).cloned() else {
        let why = match ranked.first() {
            Some(best) => {
                format!("the best is {} with {:.2}, and {least:.2} is asked for", best.capability, best.score)
            }
            None => "nothing shares a word with the intent".to_owned(),
        };
        return (None, Tried { source, why, candidates: ranked });
    };
    let rivals: Vec<Candidate> =
        ranked.iter().filter(|other| best.score - other.score < APART_MIN).cloned().collect();
    let why = match rivals.len() {
        1 => format!("{} with {:.2}", best.capability, best.score),
        several => format!("{several} serve it equally well"),
    };
    let served = if rivals.len() == 1 { Served::By(best, source) } else { Served::Unclear(rivals) };
    (Some(served), Tried { source, why, candidates: ranked })
}

/// Says whether an intent needs a capability: one that asks a person needs none.
pub(crate) fn needs_capability(intent: &Intent) -> bool {
    match intent.kind {
        IntentKind::Ask => false,
        IntentKind::Act | IntentKind::Transform => true,
    }
}
