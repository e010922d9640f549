//! Drafts as they are kept, so that another machine can go on with them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::PlaceCall;

/// A draft that is to be kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftRecordCall {
    /// The workspace of the draft, and the configuration whose rules hold for its asks.
    #[serde(default)]
    pub place: PlaceCall,
    /// Its goal, in a person's words.
    pub goal: String,
    /// The draft, as the command that works on it wrote it.
    pub record: String,
    /// How often it was kept, this time included.
    pub version: u64,
    /// The version that the caller knows; it is written over, and no other is. 0 where none was kept.
    pub known: u64,
}

/// A draft as it was kept last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftRecordView {
    /// How often it was kept; 0 where it was not.
    pub version: u64,
    /// The draft, as the command that works on it wrote it; null where none was kept.
    pub record: Option<String>,
}

/// A draft that a machine goes on with.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftTakeCall {
    /// The workspace of the draft.
    #[serde(default)]
    pub place: PlaceCall,
}

/// How often a draft was kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftVersionView {
    /// How often it was kept; 0 where it was not.
    pub version: u64,
}
