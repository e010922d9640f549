//! Amounts as people type them: tokens, dollars, time.

use std::time::Duration;

use planctl_api::wire::calls::TOKENS_MAX;
use planctl_config::parse_duration;
use planctl_lang::{budget_of, budget_words};

/// Reads a number of tokens as people write it: `100k`, `1.5M`, `+2000`.
pub fn parse_tokens(text: &str) -> Result<u64, String> {
    let text = text.trim_start_matches('+');
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |number| (number, 1_000_000)),
    };
    let tokens = parse_decimal(number, unit).ok_or("expected a number such as 2000, 100k or 1.5M")?;
    match tokens {
        0 => Err("must be more than zero".to_owned()),
        1..=TOKENS_MAX => Ok(tokens),
        _ => Err(format!("must be at most {TOKENS_MAX}")),
    }
}

/// Reads a number of bytes: `1000`, `500M`, `8G`; units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size such as 500M or 8G".to_owned())
}

/// Reads dollars as millionths: `2.00`, `+0.5`, `$3`.
pub fn parse_cost(text: &str) -> Result<u64, String> {
    let text = text.trim_start_matches('+').trim_start_matches('$');
    let cost = parse_decimal(text, 1_000_000).ok_or("expected dollars such as 2.00")?;
    if cost == 0 { Err("must be more than zero".to_owned()) } else { Ok(cost) }
}

/// Reads a span of time: `10m`, `+1h30m`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text.trim_start_matches('+'))
}

/// Reads the budget of a plan, as plans write it.
pub fn plan_budget(text: &str) -> Result<String, String> {
    let budget = budget_of(text).ok_or("expected a budget such as '200k tokens, $1.50, 20 minutes'")?;
    Ok(format!("max {}", budget_words(budget)))
}

/// Reads a decimal number exactly, in parts of a power of ten.
fn parse_decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !is_number(whole) || !is_number(part) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in part.bytes() {
        place /= 10;
        if place == 0 && digit != b'0' {
            return None;
        }
        total = total.checked_add(place.checked_mul(u64::from(digit - b'0'))?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(parse_tokens("+100k"), Ok(100_000));
        assert_eq!(parse_tokens("1.5M"), Ok(1_500_000));
        assert_eq!(parse_cost("+$2.25"), Ok(2_250_000));
        assert_eq!(parse_cost("$0.000001"), Ok(1));
        for wrong in ["", "x", "1e3", "-1", "1.2.3", "0", "99999999999999999999"] {
            assert!(parse_tokens(wrong).is_err() && parse_cost(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_tokens("1000000000M"), Ok(TOKENS_MAX));
        assert!(parse_tokens("1000000001M").is_err() && parse_tokens("18446744073709551615").is_err());
        assert!(parse_cost("0.0000001").is_err());
        assert_eq!(parse_size("500M"), Ok(500 << 20));
        assert_eq!(parse_size("8GiB"), Ok(8 << 30));
        assert_eq!(parse_size("17"), Ok(17));
        for wrong in ["", "G", "0", "-1", "1.5G", "4X", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
