//! A run's whole evidence as lines of JSON, which can be audited without the database that they come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const BUNDLE_VERSION: u32 = 1;

/// A part of a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BundlePage {
    /// Its lines, in the order in which a bundle has them.
    pub lines: Vec<BundleLine>,
    /// The number of the last event of this part, after which the next begins; absent where none is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One line of a bundle. The run comes first; a graph and an output come before the first event that names them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum BundleLine {
    /// The run, and where its history ends.
    Run(BundledRun),
    /// The text of the plan that it runs.
    Plan {
        /// The digest of its canonical text.
        digest: String,
        /// The text.
        text: String,
    },
    /// A graph that decides, as it is stored.
    Graph {
        /// Its digest: SHA-256 over the text.
        digest: String,
        /// The text.
        text: String,
    },
    /// A text that a worker or a contract printed.
    Output {
        /// Its digest: SHA-256 over the bytes.
        digest: String,
        /// The bytes, where they are UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes in hexadecimal, where they are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hex: Option<String>,
    },
    /// One line of the history.
    Event(BundledEvent),
}

/// The run of a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BundledRun {
    /// The version of the format.
    pub version: u32,
    /// Its name.
    pub run: String,
    /// Its id.
    pub run_id: String,
    /// The plan's path in its workspace.
    pub plan: String,
    /// The digest of the plan's text.
    pub revision: String,
    /// The person or the policy that approved it.
    pub approved_by: Option<String>,
    /// The note of that approval.
    pub approval_note: Option<String>,
    /// When it was made, in microseconds since 1970.
    pub created_at_micros: i64,
    /// The budget that the run around it left for it, as the engine writes it.
    pub around: serde_json::Value,
    /// Where it stood: `active`, `done`, `failed` …
    pub status: String,
    /// How many events its history had.
    pub events: u64,
    /// The hash of the last one.
    pub head: String,
}

/// One event of a bundle: everything that its hash covers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BundledEvent {
    /// Its number, from 1.
    pub seq: u64,
    /// When it was accepted, in microseconds since 1970.
    pub at_micros: i64,
    /// `input`: something arrived; `fact`: something followed.
    #[schemars(extend("enum" = ["input", "fact"]))]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The input that it follows from.
    pub cause: String,
    /// The node that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Which entering of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<u16>,
    /// Which try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// The item under whose lease it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The generation of that lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The call that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The data, as stored.
    pub body: String,
    /// The hash over this line and the one before, in hexadecimal.
    pub hash: String,
}
