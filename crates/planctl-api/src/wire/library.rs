//! The library of plans, and what a message finds in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where an entry comes from; the nearest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryOrigin {
    /// The folder `plans` of the workspace.
    Project,
    /// The folder `plans` of the user's configuration.
    User,
    /// The binary.
    BuiltIn,
}

/// The library: the answer of `library ls --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryList {
    /// The entries, the nearest first.
    pub entries: Vec<LibraryEntryView>,
    /// The parts that can't be read.
    pub troubles: Vec<LibraryTrouble>,
}

/// The library of a workspace, with what its runs taught and what a message finds there: the answer of `GET /v1/library`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryPage {
    /// The entries, the nearest first, without their texts.
    pub entries: Vec<LibraryEntryView>,
    /// The parts that can't be read.
    pub troubles: Vec<LibraryTrouble>,
    /// How often the plans of each entry succeed.
    pub stats: LibraryStats,
    /// The entry that the message finds; null where none was given.
    pub matched: Option<LibraryMatch>,
}

/// An entry of the library: the answer of `library show --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryEntryView {
    /// Its name in the library.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it comes from.
    pub origin: EntryOrigin,
    /// Its file; null for one of planctl's own.
    pub file: Option<String>,
    /// Entries of the same name that are farther away, and so are not taken.
    pub hides: Vec<EntryOrigin>,
    /// The domains it is for; with none it is for all.
    pub domains: Vec<String>,
    /// The words that a message may contain.
    pub triggers: Vec<String>,
    /// How many of them it must contain.
    pub trigger_threshold: u32,
    /// After how many turns without progress it expires, where it says so.
    pub stale_after_turns: Option<u32>,
    /// The plan that gets a run when one of this is done.
    pub then: Option<String>,
    /// How many steps it has.
    pub steps: u32,
    /// The entry with every key, where its file is JSON.
    pub plan: Option<Map<String, Value>>,
    /// Its text, where its file is markdown and it is shown alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A part of the library that can't be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryTrouble {
    /// The file or folder.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// The problem.
    pub message: String,
}

/// The entry that a message finds in the library: the answer of `library match --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryMatch {
    /// The entry that it calls for; null where it calls for none.
    pub taken: Option<String>,
    /// Every entry with its weight, in the order of the library.
    pub entries: Vec<WeighedEntry>,
}

/// An entry's weight for a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WeighedEntry {
    /// Its name in the library.
    pub id: String,
    /// Its triggers that the message has.
    pub hits: Vec<TriggerHit>,
    /// Says that the message's domain is one of its own, which counts like a hit.
    pub is_of_domain: bool,
    /// Its hits, and its domain.
    pub score: usize,
    /// How many triggers a message must have, as written.
    pub written_threshold: u32,
    /// How many it must have, with what was learned.
    pub threshold: u32,
    /// Why it was taken, or was not.
    pub fate: EntryFate,
    /// The entry that was taken in its place.
    pub behind: Option<String>,
}

/// A trigger that a message has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TriggerHit {
    /// The trigger.
    pub trigger: String,
    /// The words of the message that it was found in.
    pub found: String,
}

/// Why an entry was taken, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryFate {
    /// It is the one.
    Taken,
    /// The message is empty.
    NoMessage,
    /// The role may not begin it.
    NotOfRole,
    /// The message is of another domain.
    OtherDomain,
    /// The message has fewer of its triggers than its threshold.
    TooFewHits,
    /// Nothing speaks for it.
    NoScore,
    /// Another has a higher score.
    Outscored,
    /// Another has the same score and stands before it.
    Later,
}

/// How the newest runs of plans that were made of entries ended, in one workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryRuns {
    /// The entries that had a run.
    pub entries: Vec<EntryRuns>,
}

/// How the newest runs of one entry ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EntryRuns {
    /// Its name in the library.
    pub id: String,
    /// How many of its newest runs ended, at most 20; cancelled ones are left out.
    pub ended: u32,
    /// How many of these were done.
    pub done: u32,
}

/// The run that follows a run that is done (`then`), or the reason that none does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FollowUpView {
    /// The run that follows, which waits for its own approval; null where none was made, or none yet.
    pub run: Option<String>,
    /// Why none was made.
    pub trouble: Option<String>,
}

/// How often the library's plans succeed: the answer of `library stats --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LibraryStats {
    /// Says whether thresholds follow.
    pub learns: bool,
    /// The entries, in the order of the library.
    pub entries: Vec<EntryStats>,
}

/// How often one entry's plans succeed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EntryStats {
    /// Its name in the library.
    pub id: String,
    /// How many of its newest runs ended, at most 20; cancelled ones are left out.
    pub ended: u32,
    /// How many of these were done.
    pub done: u32,
    /// How many triggers a message must have, as written.
    pub written_threshold: u32,
    /// How many it must have, with what was learned.
    pub threshold: u32,
}
