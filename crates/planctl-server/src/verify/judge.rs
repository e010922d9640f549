//! The order to a judge that is a model: what the process that asks it reads from its standard input.

use std::fmt;

use planctl_config::{ModelConfig, Price};
use planctl_engine::Budget;
use planctl_harness::JudgePrompt;
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
    /// The question.
    pub prompt: JudgePrompt,
    /// The rest of the run's budget, within which it is asked.
    pub left: Budget,
}

/// Shows whom it is for without what it is trusted with.
impl fmt::Debug for JudgeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeOrder").field("name", &self.name).finish_non_exhaustive()
    }
}
