//! The tokens, money and time that a draft's run may take, and the basis of that figure.

use serde::{Deserialize, Serialize};

/// The default of a step where no run has shown more: what a small change took agents as a rule.
const STEP_TOKENS: u64 = 30_000;
const STEP_SECONDS: u64 = 240;

/// The amounts that steps of ended runs took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PastRuns {
    /// How many runs.
    pub runs: u64,
    /// How many steps they settled.
    pub steps: u64,
    /// Their tokens; 0 where nothing was metered.
    pub tokens: u64,
    /// Their money, in millionths of a US dollar; `None` where no run told any.
    pub micro_usd: Option<u64>,
    /// Their time.
    pub seconds: u64,
}

/// The basis of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs of this workspace.
    Runs {
        /// How many.
        runs: u64,
        /// How many steps they had.
        steps: u64,
    },
    /// A stated default, since there are too few runs.
    Default,
}

/// The amounts that a plan's run may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Tokens.
    pub tokens: u64,
    /// Money, in millionths of a US dollar; `None` where nothing says what tokens cost.
    pub micro_usd: Option<u64>,
    /// Says that the money was worked out from the tokens and a price.
    pub is_by_price: bool,
    /// Time.
    pub seconds: u64,
    /// Where this comes from.
    pub basis: Basis,
}

/// Fewer steps than this say too little.
const STEPS_MIN: u64 = 3;

/// Estimates what so many steps take: the mean of past steps, else a default. Where past steps told no money, it is the price of a
/// million tokens that counts, if one is known.
pub fn estimate(steps: u64, past: Option<PastRuns>, price_per_million: Option<u64>) -> Estimate {
    let cost = |tokens: u64| price_per_million.map(|price| tokens.saturating_mul(price) / 1_000_000);
    if let Some(past) = past.filter(|past| past.steps >= STEPS_MIN) {
        let mean = |sum: u64| sum.saturating_mul(steps).div_ceil(past.steps);
        let tokens = if past.tokens == 0 { STEP_TOKENS.saturating_mul(steps) } else { mean(past.tokens) };
        return Estimate {
            tokens,
            micro_usd: past.micro_usd.map(mean).or(cost(tokens)),
            is_by_price: past.micro_usd.is_none() && price_per_million.is_some(),
            seconds: mean(past.seconds),
            basis: Basis::Runs { runs: past.runs, steps: past.steps },
        };
    }
    let tokens = STEP_TOKENS.saturating_mul(steps);
    Estimate {
        tokens,
        micro_usd: cost(tokens),
        is_by_price: price_per_million.is_some(),
        seconds: STEP_SECONDS.saturating_mul(steps),
        basis: Basis::Default,
    }
}
