//! Amounts: what was used, what may be, and what is short.

use planctl_engine::{Budget, Spent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Amounts used.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpentView {
    /// Tokens, input and output together, those from a cache included.
    pub tokens: u64,
    /// Those of them that came from a cache, as far as workers tell; `null` in lists. Those of a run within this one are
    /// shown with that run.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    /// Those of them whose number was worked out from the length of what was said, or that are the most of a call whose answer was
    /// lost; `null` in lists.
    #[serde(default)]
    pub estimated_tokens: Option<u64>,
    /// US dollars.
    pub usd: f64,
    /// How much of that is an estimate, from tokens and a price, where the agent reported no money; `null` in lists. That of a run
    /// within this one is shown with that run.
    #[serde(default)]
    pub estimated_usd: Option<f64>,
    /// Seconds during which the run was not held.
    pub seconds: f64,
    /// Attempts whose worker reported no usage: shown, not charged.
    pub unmetered: u32,
}

impl From<Spent> for SpentView {
    fn from(spent: Spent) -> SpentView {
        SpentView {
            tokens: spent.tokens,
            cached_tokens: None,
            estimated_tokens: None,
            usd: usd(spent.micro_usd),
            estimated_usd: None,
            seconds: spent.time.as_secs_f64(),
            unmetered: spent.unmetered,
        }
    }
}

/// Limits.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BudgetView {
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

impl From<Budget> for BudgetView {
    fn from(budget: Budget) -> BudgetView {
        BudgetView {
            tokens: budget.tokens,
            usd: budget.micro_usd.map(usd),
            seconds: budget.time.map(|time| time.as_secs_f64()),
        }
    }
}

/// The amounts that runs used today: the answer of `GET /v1/spent-today`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpentToday {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
}

/// The use of a day's budget that runs share, and when the next day begins.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DayBudgetView {
    /// The runs that share it: those of a workspace (`project`), or those of its machine (`host`).
    #[schemars(extend("enum" = ["project", "host"]))]
    pub of: String,
    /// The canonical path of the workspace; of a machine's budget that of a workspace which sets it.
    pub workspace: String,
    /// Tokens that were used today.
    pub tokens: u64,
    /// US dollars that were used today.
    pub usd: f64,
    /// The limits, with what people added for today; `null` parts have no limit.
    pub limit: BudgetView,
    /// When the next day begins and nothing of it is used, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub renews_at: String,
}

/// The part of a budget that is short.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ShortfallView {
    /// `tokens`, `usd`, `seconds`.
    #[schemars(extend("enum" = ["tokens", "usd", "seconds"]))]
    pub part: String,
    /// The limit.
    pub limit: f64,
    /// The amount used.
    pub spent: f64,
    /// The amount needed beyond the limit for the next step.
    pub needed: f64,
    /// Steps that have not settled.
    pub steps_remaining: u32,
    /// Of the budget of a day, when the next day begins and it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Returns millionths of a dollar as dollars.
pub fn usd(micro_usd: u64) -> f64 {
    // A double is exact up to nine billion dollars in millionths.
    micro_usd as f64 / 1_000_000.0
}
