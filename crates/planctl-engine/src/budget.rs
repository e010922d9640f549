//! Budgets: the tokens, money and time that a run may use and has used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The limits of a run; a part that is absent has no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, input and output together.
    pub tokens: Option<u64>,
    /// Money in millionths of a US dollar.
    pub micro_usd: Option<u64>,
    /// Time during which the run was not held.
    pub time: Option<Duration>,
}

impl Budget {
    /// Says whether no part has a limit.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Budget::default()
    }

    /// Adds what a person granted; a part without limit stays so.
    pub fn raised(self, by: Budget) -> Budget {
        Budget {
            tokens: self.tokens.map(|have| have.saturating_add(by.tokens.unwrap_or(0))),
            micro_usd: self.micro_usd.map(|have| have.saturating_add(by.micro_usd.unwrap_or(0))),
            time: self.time.map(|have| have.saturating_add(by.time.unwrap_or_default())),
        }
    }

    /// Returns what may be used within another budget: of each part the lower limit.
    pub fn within(self, around: Budget) -> Budget {
        fn lower<T: Ord>(own: Option<T>, around: Option<T>) -> Option<T> {
            match (own, around) {
                (Some(own), Some(around)) => Some(own.min(around)),
                (own, around) => own.or(around),
            }
        }
        Budget {
            tokens: lower(self.tokens, around.tokens),
            micro_usd: lower(self.micro_usd, around.micro_usd),
            time: lower(self.time, around.time),
        }
    }
}

/// The amounts that a run, or the attempts at one node, have used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money in millionths of a US dollar.
    pub micro_usd: u64,
    /// Time: of the run while not held, or of the node's attempts.
    pub time: Duration,
    /// Times that a worker reported its usage: of attempts, and of deliveries that came to nothing.
    pub metered: u32,
    /// Attempts whose worker reported none: shown, not charged.
    pub unmetered: u32,
}

/// The use that is expected of an attempt under way: set aside when it is sent out, so that no other attempt counts on it,
/// and given back when what it used is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reserved {
    /// Tokens, input and output together; zero where the run has no limit of them.
    pub tokens: u64,
    /// Money in millionths of a US dollar; zero where the run has no limit of it.
    pub micro_usd: u64,
}

/// The usage that a worker reports; input includes tokens read from a cache.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input_tokens: u64,
    /// Input tokens that came from a cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Money in millionths of a US dollar, where the worker knows it.
    pub micro_usd: Option<u64>,
    /// The model, where the worker names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Says that the money was worked out from the tokens and a configured price, not reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Says that the tokens were worked out from the length of what was said, or are the most of a call whose answer was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
}

impl Usage {
    /// Returns the tokens that count against a budget.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of both; money is told where one tells some, and what one estimates is estimated.
    pub fn and(&self, more: &Usage) -> Usage {
        let micro_usd = [self.micro_usd, more.micro_usd].into_iter().flatten().reduce(u64::saturating_add);
        Usage {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(more.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            micro_usd,
            model: self.model.clone().or_else(|| more.model.clone()),
            estimated: self.estimated || more.estimated,
            tokens_estimated: self.tokens_estimated || more.tokens_estimated,
        }
    }
}

/// Estimates the tokens of a text of so many bytes, where nobody counts them: a token is about four bytes, and too many is better
/// than too few.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / 3).unwrap_or(u64::MAX)
}

/// Which part of a budget does not suffice, and by how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shortfall {
    /// The part that is short.
    pub part: BudgetPart,
    /// The limit, in the part's unit.
    pub limit: u64,
    /// The amount used, in the part's unit.
    pub spent: u64,
    /// The amount that the next dispatch is expected to use, in the part's unit.
    pub estimate: u64,
    /// Steps that have not settled.
    pub steps_remaining: u32,
    /// The day whose budget it is; none where it is the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
}

/// A day with a budget of its own, which many runs share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Day {
    /// The runs that share its budget.
    pub of: DayScope,
    /// When it ends.
    pub until: Timestamp,
}

/// The runs that share the budget of a day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DayScope {
    /// Those of a workspace.
    Project,
    /// Those of a machine.
    Host,
}

impl Shortfall {
    /// Returns how much more the next dispatch needs, in the part's unit; at least one, and of time a tenth of a second.
    pub fn needed(&self) -> u64 {
        let least = if self.part == BudgetPart::MicroSeconds { 100_000 } else { 1 };
        self.spent.saturating_add(self.estimate).saturating_sub(self.limit).max(least)
    }
}

/// One of the three things a budget limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPart {
    /// Tokens.
    Tokens,
    /// Millionths of a US dollar.
    MicroUsd,
    /// Time, in millionths of a second.
    MicroSeconds,
}
