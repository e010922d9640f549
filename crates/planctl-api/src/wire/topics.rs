//! Topics and their notes as JSON says them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `topic ls --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopicList {
    /// The topics, by name.
    pub topics: Vec<TopicSummary>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A topic in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopicSummary {
    /// Its name.
    pub topic: String,
    /// How many notes it has.
    pub notes: u64,
    /// When the newest was posted.
    pub posted_at: String,
}

/// Notes of one topic: the answer of `topic show --json`, and of `topic post --json` with the new one alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopicView {
    /// Its name.
    pub topic: String,
    /// How many notes it has.
    pub total: u64,
    /// The notes that were asked for, oldest first.
    pub notes: Vec<NoteView>,
}

/// One note of a topic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NoteView {
    /// Its number in the topic, from 1.
    pub number: u64,
    /// When it was posted.
    pub at: String,
    /// The author.
    pub by: String,
    /// The text of the note.
    pub text: String,
}
