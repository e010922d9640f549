//! Reads the small languages of field values: durations, budgets, policies, exit codes.

use std::fmt;
use std::time::Duration;

use planctl_engine::{AskDeadline, Budget, StoppingAnswer, Subscription};

use crate::diagnostic::{Code, did_you_mean};
use crate::text::limits::RETRIES_MAX;
use crate::text::near::nearest;
use crate::text::{Span, duration_words};

const POLICY: &str = "write `retry(N)`, `escalate`, `abort`, `skip`, `warn`, or `retry(N), then <one of those>`, N from 1 to 20";

const DEADLINE: &str =
    "write a time and an answer that lets nothing go on: `24 h, then reject`, or `24 h, then abort`";

/// The policy for a failed gate; by default nothing is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OnFail {
    /// `retry(N)`, where it is said.
    pub retries: Option<u16>,
    /// The action after the last attempt, where it is said.
    pub then: Option<Then>,
}

/// The action after the last attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// A person is asked.
    Escalate,
    /// The run fails.
    Abort,
    /// The step settles as skipped and the run goes on.
    Skip,
    /// The step settles as warned and the run goes on.
    Warn,
}

impl Then {
    /// Returns the verb as authors write it.
    pub fn verb(self) -> &'static str {
        match self {
            Then::Escalate => "escalate",
            Then::Abort => "abort",
            Then::Skip => "skip",
            Then::Warn => "warn",
        }
    }
}

impl fmt::Display for OnFail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let then = self.then.map(Then::verb);
        match (self.retries, then) {
            (None | Some(0), then) => out.write_str(then.unwrap_or_default()),
            (Some(retries), None) => write!(out, "retry({retries})"),
            (Some(retries), Some(then)) => write!(out, "retry({retries}), then {then}"),
        }
    }
}

/// Where a step works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkspaceMode {
    /// The run's workspace.
    Shared,
    /// A git worktree of its own.
    Worktree,
}

/// The reason that a value can't be read, and the values that are allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// The code of the finding.
    pub code: Code,
    /// The reason.
    pub why: String,
    /// The values that are allowed.
    pub help: String,
    /// The part of the value that it is about; all of it where nothing is said.
    pub part: Option<Span>,
    /// The words that are meant, and whether no others are as near.
    pub meant: Option<(String, bool)>,
}

impl Unread {
    pub(crate) fn new(why: impl Into<String>, help: impl Into<String>) -> Unread {
        Unread { code: Code::P015, why: why.into(), help: help.into(), part: None, meant: None }
    }

    // The part lies in the value.
    fn of(self, part: &str, value: &str) -> Unread {
        let start = part.as_ptr() as usize - value.as_ptr() as usize;
        let span = Span::new(start, start + part.len());
        Unread { part: Some(span).filter(|_| !part.is_empty()), ..self }
    }
}

/// Reads `retry(2), then escalate` (rows 41 to 43).
pub(crate) fn on_fail(text: &str) -> Result<OnFail, Unread> {
    policy(text).map_err(|unread| match meant_on_fail(text) {
        Some(meant) => {
            let help = format!("did you mean `{meant}`? {}", unread.help);
            Unread { help, meant: Some((meant, true)), ..unread }
        }
        None => unread,
    })
}

fn policy(text: &str) -> Result<OnFail, Unread> {
    let lower = text.trim_end().trim_end_matches('.').to_ascii_lowercase();
    let (first, rest) = split_then(lower.trim_start());
    let verb = |word| verb(word).map_err(|unread| unread.of(word, &lower));
    if let Some(inner) = first.strip_prefix("retry").map(str::trim) {
        let retries =
            retries(inner, first).map_err(|(why, part)| Unread::new(why, POLICY).of(part, &lower))?;
        let then = match rest {
            None => None,
            Some(rest) if rest.starts_with("retry") => {
                let unread = Unread::new("a policy has one `retry(N)`, and it stands first", POLICY);
                return Err(unread.of(rest, &lower));
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

// Returns the reason, and the part that it is about.
fn retries<'t>(inner: &'t str, all: &'t str) -> Result<u16, (String, &'t str)> {
    let Some((number, after)) = inner.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return Err(("the number of retries stands in parentheses: `retry(2)`".to_owned(), all));
    };
    let (number, after) = (number.trim(), after.trim());
    if !after.is_empty() {
        return Err((format!("no `, then` stands before `{}`", crate::text::escape(after)), after));
    }
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u16>() {
        Ok(count) if digits && (1..=RETRIES_MAX).contains(&count) => Ok(count),
        _ => Err(("the number of retries is a whole number from 1 to 20".to_owned(), all)),
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
        Some(near) => format!("`{}` is not a policy; did you mean `{near}`?", crate::text::escape(text)),
        None if text.is_empty() => "the policy is empty".to_owned(),
        None => format!("`{}` is not a policy", crate::text::escape(text)),
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
        _ => Err(Unread::new(format!("`{}` is not an exit code", crate::text::escape(number)), help)),
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
fn meant_on_fail(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.contains(['-', '.', '"', '\'']) {
        return None;
    }
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> =
        words.into_iter().filter(|word| !matches!(*word, "then" | "times" | "time" | "and")).collect();
    let only = |word: &str, known: &[&'static str]| {
        nearest(word, known.iter().copied()).filter(|near| near.is_only).map(|near| near.word)
    };
    let verb = |word: &str| only(word, &["escalate", "abort", "skip", "warn"]).map(str::to_owned);
    let retry = |word: &str, number: &str| {
        let is_retry = nearest(word, ["retry", "retries"]).is_some();
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

/// Reads `10 min`, `1h30m`, `90 s`, `2 hours`, `half an hour`.
pub(crate) fn duration(text: &str) -> Result<Duration, Unread> {
    let help = "write a number and a unit: `90 s`, `10 min`, `1h30m`, `2 hours`";
    let shown = crate::text::escape(text.trim());
    let time = match time(&text.trim().to_ascii_lowercase()) {
        Ok(time) => time,
        Err(TimeFault::Empty) => return Err(Unread::new("the duration is empty", help)),
        Err(TimeFault::Amount) => return Err(Unread::new(format!("`{shown}` is not a duration"), help)),
        Err(TimeFault::Unit) => return Err(Unread::new(format!("`{shown}` has no unit of time"), help)),
    };
    if !(1.0..=YEAR_SECONDS).contains(&time.seconds) {
        return Err(Unread::new("a duration lies between one second and a year", help));
    }
    // The range was checked just above, so the cast keeps the value.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(Duration::from_secs(time.seconds.round() as u64))
}

/// Reads a whole number; `2.0` is one.
pub(crate) fn whole_number(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_fraction_of_nothing = |fraction: &str| fraction.chars().all(|digit| digit == '0');
    match text.split_once('.') {
        Some((whole, fraction)) if is_fraction_of_nothing(fraction) => whole.parse().ok(),
        Some(_) | None => text.parse().ok(),
    }
}

/// Reads `true` or `false` (A19: also as text).
pub(crate) fn flag(text: &str) -> Result<bool, Unread> {
    match text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Unread::new("`true` or `false` was expected", "write `true` or `false`")),
    }
}

/// Reads a duration in whole seconds, at least one (D10); a number without a unit counts seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, Unread> {
    const YEAR: u64 = 366 * 86_400;
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "ms" => Some(1),
        "s" | "" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let milliseconds =
        text[..digits].parse::<u64>().ok().zip(unit).and_then(|(amount, unit)| amount.checked_mul(unit));
    let seconds = milliseconds.map(|milliseconds| milliseconds.div_ceil(1_000));
    seconds.filter(|seconds| (1..=YEAR).contains(seconds)).map(Duration::from_secs).ok_or_else(|| {
        let help = "write a number and a unit of time: `250ms`, `900s`, `15m`, `2h`, `1d`";
        Unread::new("a duration was expected", help)
    })
}

/// Reads `24 h, then reject`.
pub(crate) fn ask_deadline(text: &str) -> Result<AskDeadline, Unread> {
    let lower = text.trim().trim_end_matches('.').to_lowercase();
    let Some((time, word)) = lower.rsplit_once("then") else {
        return Err(Unread::new("it does not say what follows when nobody answers", DEADLINE));
    };
    let time = time.trim().trim_end_matches(',').trim_end();
    let after = duration(time).map_err(|unread| Unread { help: DEADLINE.to_owned(), ..unread })?;
    let word = word.trim();
    let Some(answer) = StoppingAnswer::ALL.into_iter().find(|answer| answer.as_str() == word) else {
        let shown = crate::text::escape(word);
        let why = match did_you_mean(word, StoppingAnswer::ALL.map(StoppingAnswer::as_str)) {
            Some(near) => format!("`{shown}` is not an answer; did you mean `{near}`?"),
            None => format!("no ask is answered with `{shown}` because nobody answered it"),
        };
        return Err(Unread::new(why, DEADLINE));
    };
    Ok(AskDeadline { after, answer })
}

/// Writes the deadline of an ask as authors do.
pub fn ask_deadline_words(deadline: AskDeadline) -> String {
    format!("{}, then {}", duration_words(deadline.after), deadline.answer.as_str())
}

/// Reads `file:PATH` or `topic:NAME`.
pub(crate) fn subscription(text: &str) -> Result<Subscription, Unread> {
    let help = "write `file:` and a path relative to the workspace, or `topic:` and a name";
    let unread = |why: String, help: String| {
        let meant = meant_subscription(text).map(|meant| (meant, true));
        Unread { code: Code::P206, meant, ..Unread::new(why, help) }
    };
    let Some((kind, name)) = text.split_once(':') else {
        let shown = crate::text::escape(text);
        let why = if text.is_empty() {
            "the subscription is empty".to_owned()
        } else {
            format!("`{shown}` has no kind")
        };
        let meant = meant_subscription(text);
        let kinded =
            meant.map(|meant| format!("write the kind before it: `{}`", crate::text::escape(&meant)));
        return Err(unread(why, kinded.unwrap_or_else(|| help.to_owned())));
    };
    let name = name.trim();
    match kind.trim().to_lowercase().as_str() {
        "file" if name.is_empty() => Err(unread("`file:` names no path".to_owned(), help.to_owned())),
        "topic" if name.is_empty() => Err(unread("`topic:` names no topic".to_owned(), help.to_owned())),
        "file" => Ok(Subscription::File { path: name.strip_prefix("./").unwrap_or(name).to_owned() }),
        "topic" => Ok(Subscription::Topic { name: name.to_owned() }),
        other => {
            let near = did_you_mean(other, ["file", "topic"]);
            let help = near.map_or(help.to_owned(), |near| format!("did you mean `{near}:`?"));
            Err(unread(format!("`{}:` is not a kind of subscription", crate::text::escape(other)), help))
        }
    }
}

// A path without its kind, or a kind with a slip in it.
fn meant_subscription(text: &str) -> Option<String> {
    let Some((kind, name)) = text.split_once(':') else {
        let is_path = text.contains(['/', '.']) && !text.contains(char::is_whitespace);
        return is_path.then(|| format!("file:{text}"));
    };
    let name = name.trim();
    let near = did_you_mean(kind.trim(), ["file", "topic"]).filter(|_| !name.is_empty())?;
    Some(format!("{near}:{name}"))
}

/// Writes a subscription as authors do.
pub(crate) fn subscription_words(subscription: &Subscription) -> String {
    match subscription {
        Subscription::File { path } => format!("file:{path}"),
        Subscription::Topic { name } => format!("topic:{name}"),
    }
}

/// A time as it was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Time {
    pub seconds: f64,
    /// Its largest unit, in seconds.
    pub most: f64,
    /// Its smallest unit, in seconds.
    pub least: f64,
}

impl Time {
    pub(crate) fn of(seconds: f64, unit: f64) -> Time {
        Time { seconds, most: unit, least: unit }
    }

    pub(crate) fn plus(self, seconds: f64) -> Time {
        Time { seconds: self.seconds + seconds, ..self }
    }
}

/// Why a text is no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeFault {
    Empty,
    Amount,
    Unit,
}

/// Reads amounts with units of time, in lower case: `1h 30m`, `half an hour`, `1 hour and 30 minutes`.
pub(crate) fn time(text: &str) -> Result<Time, TimeFault> {
    let mut rest = text.trim();
    let mut sum: Option<Time> = None;
    while !rest.is_empty() {
        if sum.is_some() {
            rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
        }
        if let (Some(time), "half" | "a half") = (sum, rest) {
            return Ok(time.plus(0.5 * time.least));
        }
        let (amount, after) = amount(rest).ok_or(TimeFault::Amount)?;
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let scale = unit_seconds(&after[..letters]).ok_or(TimeFault::Unit)?;
        rest = after[letters..].trim_start();
        let part = Time::of(amount * scale, scale);
        sum = Some(match sum {
            None => part,
            Some(sum) => Time {
                seconds: sum.seconds + part.seconds,
                most: sum.most.max(scale),
                least: sum.least.min(scale),
            },
        });
    }
    sum.ok_or(TimeFault::Empty)
}

fn amount(text: &str) -> Option<(f64, &str)> {
    let words = [("half an ", 0.5), ("half a ", 0.5), ("an ", 1.0), ("a ", 1.0), ("one ", 1.0)];
    if let Some(found) = words.iter().find_map(|(word, amount)| Some((*amount, text.strip_prefix(word)?))) {
        return Some(found);
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let amount: f64 = text[..digits].parse().ok()?;
    Some((amount, &text[digits..]))
}

/// The longest time that planctl counts, in seconds.
pub(crate) const YEAR_SECONDS: f64 = 366.0 * 86_400.0;

fn unit_seconds(unit: &str) -> Option<f64> {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3600.0),
        "d" | "day" | "days" => Some(86_400.0),
        _ => None,
    }
}

/// Returns a budget as authors write it.
pub fn budget_words(budget: Budget) -> String {
    let mut parts = Vec::new();
    parts.extend(budget.tokens.map(|tokens| match (tokens % 1_000_000, tokens % 1_000) {
        (0, _) if tokens > 0 => format!("{}M tokens", tokens / 1_000_000),
        (_, 0) if tokens > 0 => format!("{}k tokens", tokens / 1_000),
        _ => format!("{tokens} tokens"),
    }));
    parts.extend(budget.micro_usd.map(|micro| {
        let (dollars, cents) = (micro / 1_000_000, micro % 1_000_000);
        if cents % 10_000 == 0 {
            format!("${dollars}.{:02}", cents / 10_000)
        } else {
            format!("${dollars}.{cents:06}")
        }
    }));
    parts.extend(budget.time.map(duration_words));
    if parts.is_empty() { "no limit".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("10 min"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("1.5 hours"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("Half an hour"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("1 hour and 30 minutes"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("2 hours and a half"), Ok(Duration::from_secs(9000)));
        for wrong in ["10", "", "soon", "0 s", "-1 s", "1e9 days", "10 parsecs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn x_35_a_deadline_names_an_answer_that_lets_nothing_go_on() {
        let read = |text: &str| ask_deadline(text).map(ask_deadline_words).map_err(|unread| unread.why);
        assert_eq!(read("1 day, then reject"), Ok("24 h, then reject".to_owned()));
        assert_eq!(read("1 hour and 30 minutes then ABORT."), Ok("1 h 30 min, then abort".to_owned()));
        assert_eq!(read("24 h, then reject").and_then(|words| read(&words)), read("24 h, then reject"));
        for (wrong, why) in [
            ("24 h", "it does not say what follows when nobody answers"),
            ("24 h, then approve", "no ask is answered with `approve` because nobody answered it"),
            ("24 h, then rejct", "`rejct` is not an answer; did you mean `reject`?"),
            ("24, then reject", "`24` has no unit of time"),
            ("then reject", "the duration is empty"),
        ] {
            assert_eq!(read(wrong), Err(why.to_owned()), "{wrong}");
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
