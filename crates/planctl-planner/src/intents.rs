//! Intents: the pieces of a goal before anybody knows who does them, and the graph that traces each to the goal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of a goal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// `I1`, `I2` …; parts of one are `I2.1`, `I2.2` …
    pub id: String,
    /// The piece, in words.
    pub text: String,
    /// Its kind.
    pub kind: IntentKind,
    /// The subject of a question to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The intents whose results it needs.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The intent that it is a part of; a part of the goal itself where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The tool that its writer had in mind, which is known by this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments that its writer gave, by names of the writer's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
}

/// The kind of an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentKind {
    /// A person is asked.
    Ask,
    /// Something is done.
    #[default]
    Act,
    /// Results are filtered, sorted or shown.
    Transform,
}

/// The graph of a goal: every intent leads back to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntentGraph {
    /// The goal.
    pub root: String,
    /// Its intents, those that became several included.
    pub intents: Vec<Intent>,
    /// Their relations.
    pub edges: Vec<IntentEdge>,
}

/// The id of a goal in its graph.
pub const ROOT: &str = "G";

/// A relation of two intents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntentEdge {
    /// The intent.
    pub from: String,
    /// The other, or [`ROOT`].
    pub to: String,
    /// How they are related.
    pub kind: Relation,
}

/// How two intents are related (M-11).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The first is a part of the second.
    IsSubgoalOf,
    /// The first needs the result of the second.
    DependsOn,
}

impl IntentGraph {
    /// Makes the graph of a goal's intents.
    pub fn of(goal: &str, intents: &[Intent]) -> IntentGraph {
        let parts = intents.iter().map(|intent| IntentEdge {
            from: intent.id.clone(),
            to: intent.part_of.clone().unwrap_or_else(|| ROOT.to_owned()),
            kind: Relation::IsSubgoalOf,
        });
        let needs = intents.iter().flat_map(|intent| {
            intent.needs.iter().map(|need| IntentEdge {
                from: intent.id.clone(),
                to: need.clone(),
                kind: Relation::DependsOn,
            })
        });
        IntentGraph { root: goal.to_owned(), intents: intents.to_vec(), edges: parts.chain(needs).collect() }
    }

    /// Returns the intents from one up to the goal, itself first: why it is there.
    pub fn trace(&self, id: &str) -> Vec<&Intent> {
        let mut trace = Vec::new();
        let mut at = self.intents.iter().find(|intent| intent.id == id);
        while let Some(intent) = at {
            trace.push(intent);
            let above = intent.part_of.as_ref();
            at = above.and_then(|above| self.intents.iter().find(|intent| intent.id == *above));
            if trace.len() > self.intents.len() {
                break;
            }
        }
        trace
    }
}

const FILLERS: [&str; 5] = ["first", "please", "the", "a", "an"];

/// Leaves out words that say nothing of a topic (M-32).
pub fn topic(words: &str) -> String {
    let plain = words.trim().trim_end_matches(['.', '?', '!']);
    plain
        .split_whitespace()
        .filter(|word| !FILLERS.contains(&word.to_lowercase().as_str()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The questions for parameters whose names say too little (M-31).
const QUESTIONS: [(&str, &str); 4] = [
    ("perPage", "How many items per page? (e.g., 10, 25, 50)"),
    ("state", "Issue state: open, closed, or all?"),
    ("labels", "Labels to filter by (comma-separated, e.g., bug, enhancement)"),
    ("assignee", "Assignee username (or 'none' for unassigned)"),
];

/// Returns the question of a parameter that has one of its own.
pub(crate) fn own_question(parameter: &str) -> Option<&'static str> {
    QUESTIONS.iter().find(|(name, _)| *name == parameter).map(|(_, question)| *question)
}

/// Returns the question that a person is asked for a parameter.
pub fn question_of(parameter: &str) -> String {
    if let Some(question) = own_question(parameter) {
        return question.to_owned();
    }
    let words = words_of(&topic(parameter)).join(" ");
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}?", first.unwrap_or_default(), characters.as_str())
}

/// Splits a name or a text into words, in small letters and as one of several: `listIssues` is `list`, `issue`.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for character in text.chars() {
        let begins = !character.is_alphanumeric() || character.is_uppercase() && before.is_lowercase();
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns a word without the ending of several things.
pub(crate) fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us");
    if is_plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}
