//! The order to a judge that is a model, and the reply of the process that asks it, once.

use std::fmt;

use planctl_config::{ModelConfig, Price};
use planctl_engine::Usage;
use serde::{Deserialize, Serialize};

/// The word by which this program asks a judge.
pub const ASK_JUDGE: &str = "__judge";

/// An order to ask a model.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeOrder {
    /// The model's name in the configuration.
    pub name: String,
    /// The model.
    pub model: ModelConfig,
    /// The price of its tokens.
    pub price: Option<Price>,
    /// Its key.
    pub key: Option<String>,
    /// The rules.
    pub system: String,
    /// The question.
    pub text: String,
}

/// Shows whom it is for without what it is trusted with.
impl fmt::Debug for JudgeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeOrder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The result of one call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum JudgeReply {
    /// The model answered.
    Answered {
        /// Its answer.
        text: String,
        /// The usage of the call.
        usage: Usage,
    },
    /// The answer is lost, and the call may have been paid for.
    Lost {
        /// Why.
        why: String,
        /// Says that the trouble may have passed.
        may_pass: bool,
    },
    /// The model was not asked, or did not take the call: nothing was used.
    Refused {
        /// Why.
        why: String,
    },
}
