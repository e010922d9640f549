//! Asks of drafts: what a draft hands in, and where its asks stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AskView;
use super::calls::PlaceCall;

/// The asks that a draft waits for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftAsksCall {
    /// The workspace of the draft, and the configuration whose rules hold for its asks.
    #[serde(default)]
    pub place: PlaceCall,
    /// The draft's own key, which tells it from others of its workspace.
    pub key: String,
    /// Names its beginning. A draft that begins anew asks anew, also where it asks the same.
    pub begun: String,
    /// Its goal, in a person's words.
    pub goal: String,
    /// The asks. One that is as it was keeps its number and its answer; another one takes the place of what was asked in its slot.
    pub asks: Vec<DraftAskCall>,
}

/// One ask of a draft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftAskCall {
    /// Its slot, a word: one ask is open in each.
    pub slot: String,
    /// The question. Without one, what was asked in the slot is taken back.
    #[serde(default)]
    pub question: Option<DraftQuestion>,
}

/// A question of a draft to a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DraftQuestion {
    /// May this prompt be sent to a model?
    Prompt {
        /// The digest of the prompt as it would be sent; the approval is for it alone.
        digest: String,
        /// The model's name in the configuration.
        name: String,
        /// The model's name at its service.
        model: String,
        /// The address to which it would be sent.
        url: String,
        /// The most tokens that the prompt and one answer are expected to use.
        tokens: u64,
        /// The whole text.
        text: String,
    },
    /// May an agent write this, as a step of the plan?
    Synthesis {
        /// The task of the agent.
        text: String,
    },
    /// One of these is meant.
    Choice {
        /// The question.
        text: String,
        /// The options; where there are none, any text answers.
        options: Vec<String>,
    },
    /// A question that is answered in words.
    Question {
        /// The question.
        text: String,
    },
}

/// The asks of a draft, in the order in which their questions were handed in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DraftAsksView {
    /// The asks, with the answers that were given.
    pub asks: Vec<AskView>,
}
