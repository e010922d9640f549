//! Reads the small languages of field values: durations, budgets, policies, exit codes.

use std::time::Duration;

use planctl_engine::Budget;

use crate::diagnostic::did_you_mean;
use crate::tree::{OnFail, Then};

/// The most retries a policy may grant (DESIGN 3).
pub const RETRIES_MAX: u16 = 20;
const POLICY: &str = "write `retry(N)`, `escalate`, `abort`, `skip`, `warn`, or `retry(N), then <one of those>`, N from 1 to 20";

/// Why a value can't be read: what is wrong, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unread {
    pub why: String,
    pub help: String,
}

impl Unread {
    pub(crate) fn new(why: impl Into<String>, help: impl Into<String>) -> Unread {
        Unread { why: why.into(), help: help.into() }
    }
}

/// Reads `retry(2), then escalate` (rows 41 to 43).
pub(crate) fn on_fail(text: &str) -> Result<OnFail, Unread> {
    let lower = text.trim().trim_end_matches('.').to_lowercase();
    let (first, rest) = split_then(&lower);
    if let Some(inner) = first.strip_prefix("retry").map(str::trim) {
        let retries = retries(inner)?;
        let then = match rest {
            None => None,
            Some(rest) if rest.starts_with("retry") => {
                return Err(Unread::new("a policy has one `retry(N)`, and it stands first", POLICY));
            }
            Some(rest) => Some(verb(rest)?),
        };
        return Ok(OnFail { retries: Some(retries), then });
    }
    let then = verb(first)?;
    match rest {
        None => Ok(OnFail { retries: None, then: Some(then) }),
        Some(_) => Err(Unread::new(format!("nothing follows `{}`", then.verb()), POLICY)),
    }
}

fn split_then(text: &str) -> (&str, Option<&str>) {
    if let Some((first, rest)) = text.split_once(',') {
        let rest = rest.trim();
        let rest = rest.strip_prefix("then").map_or(rest, str::trim);
        return (first.trim(), Some(rest));
    }
    match text.split_once(" then ") {
        Some((first, rest)) => (first.trim(), Some(rest.trim())),
        None => (text, None),
    }
}

fn retries(inner: &str) -> Result<u16, Unread> {
    let Some(number) = inner.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).map(str::trim) else {
        return Err(Unread::new("the number of retries stands in parentheses: `retry(2)`", POLICY));
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u16>() {
        Ok(count) if digits && (1..=RETRIES_MAX).contains(&count) => Ok(count),
        _ => Err(Unread::new("the number of retries is a whole number from 1 to 20", POLICY)),
    }
}

fn verb(text: &str) -> Result<Then, Unread> {
    for then in [Then::Escalate, Then::Abort, Then::Skip, Then::Warn] {
        if text == then.verb() {
            return Ok(then);
        }
    }
    let known = ["retry", "escalate", "abort", "skip", "warn"];
    let near = did_you_mean(text, known);
    let why = match near {
        Some(near) => format!("`{}` is no policy; did you mean `{near}`?", crate::source::escape(text)),
        None if text.is_empty() => "the policy is empty".to_owned(),
        None => format!("`{}` is no policy", crate::source::escape(text)),
    };
    Err(Unread::new(why, POLICY))
}

/// Reads the rest of an `exit_code …` line (row 39).
pub(crate) fn exit_code(text: &str) -> Result<u8, Unread> {
    let help = "write `exit_code == N`, N a whole number from 0 to 255";
    let text = text.trim().trim_matches('`');
    let rest = text.strip_prefix("exit_code").unwrap_or(text).trim_start();
    let Some(number) = rest.strip_prefix("==").map(str::trim) else {
        return Err(Unread::new("the exit code is compared with `==`", help));
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u8>() {
        Ok(code) if digits => Ok(code),
        _ => Err(Unread::new(format!("`{}` is no exit code", crate::source::escape(number)), help)),
    }
}

/// Returns the exit code that was meant beyond doubt: `exit_code = 0`, `exit code: 0`, `exit_code is 0`.
pub(crate) fn meant_exit_code(text: &str) -> Option<u8> {
    let lower = text.trim().trim_matches('`').trim_end_matches('.').to_lowercase();
    let rest = ["exit_code", "exit code", "exitcode"].iter().find_map(|name| lower.strip_prefix(name))?;
    let rest = rest.trim_matches(['*', ' ', '\t']);
    let number = ["===", "==", "=", ":", "is ", "equals ", ""]
        .iter()
        .find_map(|sign| rest.strip_prefix(sign))?
        .trim_matches(['*', ' ', '\t']);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// Returns the policy that was meant beyond doubt: `retry 2 then esclate`.
pub(crate) fn meant_on_fail(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.contains(['-', '.', '"', '\'']) {
        return None;
    }
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> =
        words.into_iter().filter(|word| !matches!(*word, "then" | "times" | "time" | "and")).collect();
    let verb = |word: &str| did_you_mean(word, ["escalate", "abort", "skip", "warn"]).map(str::to_owned);
    let retry = |word: &str, number: &str| {
        let is_retry = did_you_mean(word, ["retry", "retries"]).is_some();
        let count: u16 = number.parse().ok().filter(|_| is_retry)?;
        (1..=RETRIES_MAX).contains(&count).then(|| format!("retry({count})"))
    };
    match words.as_slice() {
        [one] => verb(one),
        [first, number] => retry(first, number),
        [first, number, then] => Some(format!("{}, then {}", retry(first, number)?, verb(then)?)),
        _ => None,
    }
}

/// Reads `10 min`, `1h30m`, `90 s`, `2 hours`.
pub(crate) fn duration(text: &str) -> Result<u64, Unread> {
    let help = "write a number and a unit: `90 s`, `10 min`, `1h30m`, `2 hours`";
    let mut rest = text.trim();
    let mut seconds: f64 = 0.0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let amount: f64 = rest[..digits].parse().map_err(|_| {
            Unread::new(format!("`{}` is no duration", crate::source::escape(text.trim())), help)
        })?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let scale = unit_seconds(&rest[..letters].to_lowercase()).ok_or_else(|| {
            Unread::new(format!("`{}` has no unit of time", crate::source::escape(text.trim())), help)
        })?;
        rest = rest[letters..].trim_start_matches([' ', '\t']);
        seconds += amount * scale;
        parts += 1;
    }
    if parts == 0 {
        return Err(Unread::new("the duration is empty", help));
    }
    if !(1.0..=YEAR_SECONDS).contains(&seconds) {
        return Err(Unread::new("a duration lies between one second and a year", help));
    }
    // The range was checked just above, so the cast keeps the value.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(seconds.round() as u64)
}

const YEAR_SECONDS: f64 = 366.0 * 86_400.0;

fn unit_seconds(unit: &str) -> Option<f64> {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3600.0),
        "d" | "day" | "days" => Some(86_400.0),
        _ => None,
    }
}

/// One part of a budget that can't be read, with its place in the text.
pub(crate) struct BudgetFault {
    pub start: usize,
    pub end: usize,
    pub unread: Unread,
}

/// Reads `max 200k tokens, $1.50, 20 minutes wall clock` and names each part that is no limit.
pub(crate) fn budget(text: &str) -> (Budget, Vec<BudgetFault>) {
    let mut budget = Budget::default();
    let mut faults = Vec::new();
    for (start, end) in budget_parts(text) {
        if let Err(unread) = budget_part(&text[start..end], &mut budget) {
            faults.push(BudgetFault { start, end, unread });
        }
    }
    if budget == Budget::default() && faults.is_empty() {
        let unread = Unread::new("the budget names no limit", BUDGET_HELP);
        faults.push(BudgetFault { start: 0, end: text.len(), unread });
    }
    (budget, faults)
}

const BUDGET_HELP: &str =
    "write tokens, money in USD and time, with commas between: `max 200k tokens, $1.50, 20 minutes`";

// Splits at commas, semicolons and `and`; a comma between digits in groups of three belongs to the number.
fn budget_parts(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut cuts = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        let groups =
            at > 0 && is_digit(at - 1) && (1..=3).all(|step| is_digit(at + step)) && !is_digit(at + 4);
        if *byte == b';' || (*byte == b',' && !groups) {
            cuts.push((at, at + 1));
        }
    }
    cuts.extend(text.match_indices(" and ").map(|(at, found)| (at, at + found.len())));
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut start = 0;
    for (from, to) in cuts.into_iter().chain([(text.len(), text.len())]) {
        let part = &text[start..from];
        let lead = part.len() - part.trim_start().len();
        let body = part.trim().trim_end_matches('.').len();
        if body > 0 {
            parts.push((start + lead, start + lead + body));
        }
        start = to;
    }
    parts
}

fn budget_part(text: &str, budget: &mut Budget) -> Result<(), Unread> {
    let lower = text.to_lowercase();
    let mut rest = lower.trim();
    for lead in ["maximum", "max.", "max", "up to", "at most", "about", "<=", "≤", "~"] {
        rest = rest.strip_prefix(lead).map_or(rest, str::trim_start);
    }
    let fault = |why: &str| Unread::new(format!("`{}` {why}", crate::source::escape(text)), BUDGET_HELP);
    if rest.starts_with('-') || rest.starts_with("$-") || rest.starts_with("−") {
        return Err(fault("is negative"));
    }
    let (value, is_new) = if let Some(money) = dollars(rest) {
        let amount = number(money).ok_or_else(|| fault("is no amount of money"))?;
        (amount, budget.micro_usd.replace(whole(amount * 1e6)).is_none())
    } else if let Some(tokens) = rest.strip_suffix("tokens").or_else(|| rest.strip_suffix("token")) {
        let tokens = tokens.trim();
        let amount = number(tokens).ok_or_else(|| fault("is no number of tokens"))?;
        (amount, budget.tokens.replace(whole(amount)).is_none())
    } else {
        let time = rest.trim_end_matches("wall clock").trim_end_matches("wall-clock").trim_end();
        let time = time.trim_end_matches("of wall time").trim_end_matches("of").trim_end();
        // `1M` alone must not be taken for one minute.
        let is_bare = number(time).is_some() && !text.trim_end().ends_with('m');
        if is_bare && number(time) != Some(0.0) {
            return Err(fault("does not say what it limits: tokens, money or time"));
        }
        if number(time) == Some(0.0) || time.starts_with("0 ") {
            return Err(fault("is zero"));
        }
        let seconds = duration(time).map_err(|_| fault("is no limit that planctl knows"))?;
        (1.0, budget.time.replace(Duration::from_secs(seconds)).is_none())
    };
    if value <= 0.0 {
        return Err(fault("is zero"));
    }
    if !is_new {
        return Err(fault("limits the same thing a second time"));
    }
    Ok(())
}

fn dollars(text: &str) -> Option<&str> {
    let before =
        text.strip_prefix("usd").or_else(|| text.strip_prefix("us$")).or_else(|| text.strip_prefix('$'));
    before
        .map(|rest| rest.trim().trim_end_matches("usd").trim())
        .or_else(|| text.strip_suffix("usd").map(str::trim))
        .or_else(|| text.strip_suffix("dollars").or_else(|| text.strip_suffix("dollar")).map(str::trim))
        .or_else(|| text.strip_suffix('$').map(str::trim))
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, scale) = match text.chars().last()? {
        'k' => (&text[..text.len() - 1], 1e3),
        'm' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let digits = digits.trim().replace([',', '_'], "");
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits
        .parse::<f64>()
        .ok()
        .filter(|value| plain && value.is_finite() && *value < 1e15)
        .map(|value| value * scale)
}

// Amounts were read from at most fifteen digits, so they fit.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_of_the_seeds_are_read() {
        let (budget, faults) = budget("max 200k tokens, $1.50, 20 minutes wall clock");
        assert!(faults.is_empty());
        assert_eq!(budget.tokens, Some(200_000));
        assert_eq!(budget.micro_usd, Some(1_500_000));
        assert_eq!(budget.time, Some(Duration::from_secs(1200)));
    }

    #[test]
    fn a_budget_names_each_part_it_can_not_read() {
        let text = "max 200,000 tokens, €3, $0, -5 minutes and 1h30m";
        let (budget, faults) = budget(text);
        let parts: Vec<_> = faults.iter().map(|fault| &text[fault.start..fault.end]).collect();
        assert_eq!(parts, ["€3", "$0", "-5 minutes"]);
        assert_eq!((budget.tokens, budget.time), (Some(200_000), Some(Duration::from_secs(5400))));
    }

    #[test]
    fn a_number_without_a_unit_limits_nothing() {
        for text in ["1M", "max 200k", "20", "200K"] {
            let (found, faults) = budget(text);
            assert_eq!((found, faults.len()), (Budget::default(), 1), "{text}");
            assert!(faults[0].unread.why.contains("does not say what it limits"), "{}", faults[0].unread.why);
        }
        assert_eq!(budget("20m").0.time, Some(Duration::from_secs(1200)));
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("10 min"), Ok(600));
        assert_eq!(duration("1h 30m"), Ok(5400));
        assert_eq!(duration("1.5 hours"), Ok(5400));
        for wrong in ["10", "", "soon", "0 s", "-1 s", "1e9 days", "10 parsecs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn row_39_exit_codes_are_whole_numbers_after_two_equal_signs() {
        assert_eq!(exit_code("exit_code == 0"), Ok(0));
        assert_eq!(exit_code("exit_code==255"), Ok(255));
        for wrong in ["== 256", "== -1", "== 0x0", "== zero", "= 0", "!= 0", "==", "== +1"] {
            assert!(exit_code(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_41_to_43_policies_have_one_grammar() {
        assert_eq!(
            on_fail("retry(2), then escalate"),
            Ok(OnFail { retries: Some(2), then: Some(Then::Escalate) })
        );
        assert_eq!(
            on_fail("Retry( 20 ) then ABORT"),
            Ok(OnFail { retries: Some(20), then: Some(Then::Abort) })
        );
        assert_eq!(on_fail("skip"), Ok(OnFail { retries: None, then: Some(Then::Skip) }));
        assert_eq!(on_fail("retry(1)"), Ok(OnFail { retries: Some(1), then: None }));
        let wrong = [
            "retry(-1)",
            "retry(0)",
            "retry(1e3)",
            "retry()",
            "retry(9999)",
            "retry(two)",
            "retry 2 then escalate",
            "escalate, then retry(1)",
            "retry(1), then retry(2)",
            "ignore",
            "",
            "retry(1),",
            "escalate now",
        ];
        for wrong in wrong {
            assert!(on_fail(wrong).is_err(), "{wrong}");
        }
    }
}
