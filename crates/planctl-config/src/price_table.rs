//! The prices that planctl knows by itself, for agents that report tokens and no money. A price of the configuration goes before.

use std::collections::BTreeMap;

use crate::role::Price;

/// When these prices were looked up.
const PRICES_AS_OF: &str = "2026-07-24";
/// Where these prices were looked up.
const PRICES_SOURCE: &str = "github.com/Wei-Shaw/model-price-repo";

/// Says of which day these prices are, and where they were looked up.
pub fn prices_known() -> String {
    format!("as of {PRICES_AS_OF}, from {PRICES_SOURCE}")
}

/// By model: input, input from a cache, output; in thousandths of a US dollar per million tokens.
const KNOWN: [(&str, [u64; 3]); 17] = [
    ("gpt-5", [1_250, 125, 10_000]),
    ("gpt-5-mini", [250, 25, 2_000]),
    ("gpt-5-nano", [50, 5, 400]),
    ("gpt-5-codex", [1_250, 125, 10_000]),
    ("gpt-5.1", [1_250, 125, 10_000]),
    ("gpt-5.1-codex", [1_250, 125, 10_000]),
    ("gpt-5.2", [1_750, 175, 14_000]),
    ("gpt-5.2-codex", [1_750, 175, 14_000]),
    ("gpt-5.3-codex", [1_750, 175, 14_000]),
    ("gpt-4.1", [2_000, 500, 8_000]),
    ("gpt-4.1-mini", [400, 100, 1_600]),
    ("o3", [2_000, 500, 8_000]),
    ("o4-mini", [1_100, 275, 4_400]),
    ("gemini-2.5-flash", [300, 30, 2_500]),
    ("claude-opus-4-6", [5_000, 500, 25_000]),
    ("claude-sonnet-4-6", [3_000, 300, 15_000]),
    ("claude-haiku-4-5", [1_000, 100, 5_000]),
];

impl Price {
    /// Returns the price of a model: the one that is set, else the one that planctl knows. A release of a model that is named by
    /// its date costs what the model does.
    pub fn of(prices: &BTreeMap<String, Price>, model: &str) -> Option<Price> {
        prices.get(model).copied().or_else(|| Price::price_of(model))
    }

    /// Returns the price of a model that planctl knows by itself.
    pub fn price_of(model: &str) -> Option<Price> {
        let (_, thousandths) = KNOWN.iter().find(|(name, _)| *name == without_date(model))?;
        let [input, cached, output] = thousandths.map(|thousandth| thousandth * 1_000);
        Some(Price { input, cached, output })
    }
}

/// Cuts off the date of a release: `-2026-01-31` or `-20260131`.
fn without_date(model: &str) -> &str {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    for (length, hyphens) in [(11, [0, 5, 8].as_slice()), (9, [0].as_slice())] {
        let Some((name, date)) = model.len().checked_sub(length).and_then(|at| model.split_at_checked(at))
        else {
            continue;
        };
        let is_date = date.char_indices().all(|(at, char)| (char == '-') == hyphens.contains(&at));
        if !name.is_empty() && is_date && digits(&date.replace('-', "")) {
            return name;
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p73_a_price_that_is_set_goes_before_the_one_that_is_known_and_a_release_costs_what_its_model_does() {
        let known = Price::price_of("gpt-5").unwrap();
        assert_eq!((known.input, known.cached, known.output), (1_250_000, 125_000, 10_000_000));
        let own = Price { input: 1, cached: 1, output: 1 };
        let prices = BTreeMap::from([("gpt-5".to_owned(), own)]);
        assert_eq!(Price::of(&prices, "gpt-5"), Some(own));
        for release in ["gpt-5-2025-08-07", "claude-haiku-4-5-20251001"] {
            assert!(Price::of(&BTreeMap::new(), release).is_some(), "{release}");
        }
        for other in
            ["gpt-5-pro", "gpt-5-", "-2025-08-07", "gpt-5-2025-08", "gpt-5-20250x07", "é-20250107", ""]
        {
            assert_eq!(Price::price_of(other), None, "{other}");
        }
        let mut usage = planctl_engine::Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            output_tokens: 100_000,
            model: Some("gpt-5".to_owned()),
            ..planctl_engine::Usage::default()
        };
        Price::estimate(&BTreeMap::new(), &mut usage);
        assert_eq!((usage.micro_usd, usage.estimated), (Some(1_800_000), true));
    }
}
