//! Drafts that a daemon writes for a person at the page: what they ask for, what it says meanwhile, and what comes of it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draft::DraftView;

/// A plan that is to be drafted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftingCall {
    /// The workspace on the daemon's host. The configuration that it has there holds.
    pub workspace: PathBuf,
    /// The goal, in a person's words.
    pub goal: String,
    /// A text that says more, such as an issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The writer: one of those that the list names. Without one the form of the goal suffices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The most that the draft may use, in tokens and money: `200k tokens, $1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The budget that the plan gets, in tokens, money and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_budget: Option<String>,
    /// A comment on the draft that there is, which is then written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Says that it starts from scratch, and drops earlier answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// Where such a draft stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DraftingState {
    /// It is being written.
    Working,
    /// It is written, and nothing is open.
    Done,
    /// A person has something to answer in the inbox; the same call then goes on with it.
    Waiting,
    /// The last answer of the writer has errors.
    GivenUp,
    /// It could not be written. The same call goes on where it was.
    Failed,
    /// The daemon stopped while it was written. The same call goes on where it was.
    Interrupted,
}

/// A draft that a daemon writes, or one that it or an earlier daemon of its state directory wrote.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftingView {
    /// Its id.
    pub id: String,
    /// The call that began it.
    pub call: DraftingCall,
    /// The person who asked for it.
    pub by: String,
    /// When it began, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub begun_at: String,
    /// When it ended, RFC 3339; null while it is being written, and where it was interrupted.
    #[schemars(extend("format" = "date-time"))]
    pub ended_at: Option<String>,
    /// Where it stands.
    pub state: DraftingState,
    /// The last lines that were said while it was written.
    pub said: Vec<String>,
    /// The draft; of one that was given up the last answer. Null where there is none.
    pub draft: Option<DraftView>,
    /// The number of its plan, once it is written and verified.
    pub plan: Option<u64>,
    /// Why there is no draft, or why it waits.
    pub trouble: Option<String>,
    /// How to mend that.
    pub help: Option<String>,
}

/// The drafts of a daemon, newest first, and who may write others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftingList {
    /// The writers of the workspace that was asked for: `model NAME`, `agent NAME`.
    pub writers: Vec<String>,
    /// The drafts: of that workspace, or of all where none was named.
    pub drafts: Vec<DraftingView>,
}
