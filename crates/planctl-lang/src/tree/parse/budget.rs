//! Reads `**Budget:**` as people write it, and names each part that is no limit.

use std::time::Duration;

use planctl_engine::Budget;

use crate::syntax::values::{self, Time, TimeFault, YEAR_SECONDS};
use crate::text::escape;
use crate::text::near::nearest;

const FORM: &str =
    "write tokens, money in US dollars and time, with commas between: `max 200k tokens, $1.50, 20 minutes`";
/// The most of each kind; all fit into the store's whole numbers.
const TOKENS_MAX: f64 = 1e12;
const USD_MAX: f64 = 1e9;

/// One part of a budget that can't be read, with its place in the text.
pub(super) struct Fault {
    /// The bytes of the part.
    pub at: (usize, usize),
    /// The problem with it, to follow its name.
    pub why: String,
    pub help: String,
    /// The part that limits the same thing already.
    pub first: Option<(usize, usize)>,
    /// Bytes, what to write there, and whether that is beyond doubt.
    pub fix: Option<((usize, usize), String, bool)>,
}

/// The problem with a part, before its place is known.
struct Wrong {
    why: String,
    help: String,
    fix: Option<((usize, usize), String, bool)>,
}

impl Wrong {
    fn new(why: impl Into<String>) -> Wrong {
        Wrong { why: why.into(), help: FORM.to_owned(), fix: None }
    }

    fn help(mut self, help: impl Into<String>) -> Wrong {
        self.help = help.into();
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tokens,
    Money,
    Time,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Tokens => "tokens",
            Kind::Money => "money",
            Kind::Time => "time",
        }
    }
}

#[derive(Clone, Copy)]
enum Limit {
    Tokens(u64),
    MicroUsd(u64),
    Time(Time),
}

impl Limit {
    fn kind(self) -> Kind {
        match self {
            Limit::Tokens(_) => Kind::Tokens,
            Limit::MicroUsd(_) => Kind::Money,
            Limit::Time(_) => Kind::Time,
        }
    }
}

/// Reads a budget that stands in one text; nothing where a part of it can't be read, or it names no limit.
pub fn of_text(text: &str) -> Option<Budget> {
    let (budget, faults) = read(&[(0, text)]);
    (faults.is_empty() && budget != Budget::default()).then_some(budget)
}

/// Reads the lines of a budget, each given with where it begins in the plan; places are places in the plan.
pub(super) fn read(lines: &[(usize, &str)]) -> (Budget, Vec<Fault>) {
    let mut reading = Reading::default();
    for (start, line) in lines {
        reading.after_time = None;
        for (from, to) in parts(line) {
            let at = (start + from, start + to);
            let part = &line[from..to];
            let half =
                reading.after_time.filter(|_| matches!(&*part.to_ascii_lowercase(), "half" | "a half"));
            let limit = match half {
                Some(time) => Ok(Limit::Time(Time::of(0.5 * time.least, 0.5 * time.least))),
                None => limit(part),
            };
            match limit {
                Ok(limit) => reading.take(limit, at),
                Err(wrong) => reading.refuse(wrong, at),
            }
        }
    }
    (reading.budget, reading.faults)
}

#[derive(Default)]
struct Reading {
    budget: Budget,
    faults: Vec<Fault>,
    seen: Vec<(Kind, (usize, usize))>,
    /// The time of the part just before, which a smaller unit adds to: `1 hour and 30 minutes`.
    after_time: Option<Time>,
}

impl Reading {
    fn refuse(&mut self, wrong: Wrong, at: (usize, usize)) {
        let fix = wrong.fix.map(|((from, to), text, safe)| ((at.0 + from, at.0 + to), text, safe));
        self.faults.push(Fault { at, why: wrong.why, help: wrong.help, first: None, fix });
        self.after_time = None;
    }

    fn take(&mut self, limit: Limit, at: (usize, usize)) {
        let kind = limit.kind();
        let before = self.after_time.take();
        let limit = match (limit, before) {
            (Limit::Time(time), Some(before)) if time.most < before.least => {
                self.seen.retain(|(seen, _)| *seen != Kind::Time);
                Limit::Time(Time { most: before.most, ..time.plus(before.seconds) })
            }
            _ => limit,
        };
        if let Some((_, first)) = self.seen.iter().find(|(seen, _)| *seen == kind) {
            let why = format!("limits {} a second time", kind.as_str());
            let help = "keep one of the two: which one was meant?".to_owned();
            self.faults.push(Fault { at, why, help, first: Some(*first), fix: None });
            return;
        }
        self.seen.push((kind, at));
        match limit {
            Limit::Tokens(tokens) => self.budget.tokens = Some(tokens),
            Limit::MicroUsd(micro_usd) => self.budget.micro_usd = Some(micro_usd),
            Limit::Time(time) => {
                self.budget.time = Some(Duration::from_secs(rounded(time.seconds.min(YEAR_SECONDS))));
                self.after_time = Some(time);
            }
        }
    }
}

// Splits at `,` `;` `/` `|` and between words at `and`; a comma within a number belongs to it.
fn parts(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(byte, b';' | b'/' | b'|') || (*byte == b',' && !is_in_number(text, at)) {
            cuts.push((at, at + 1));
        }
    }
    let lower = text.to_ascii_lowercase();
    for word in [" and ", " plus ", " & ", " + "] {
        cuts.extend(lower.match_indices(word).map(|(at, found)| (at, at + found.len())));
    }
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut start = 0;
    for (from, to) in cuts.into_iter().chain([(text.len(), text.len())]) {
        let part = text.get(start..from).unwrap_or_default();
        let lead = part.len() - part.trim_start().len();
        let body = part.trim().trim_end_matches(['.', '!']).len();
        if body > 0 && !matches!(&*part.trim().to_ascii_lowercase(), "and" | "plus") {
            parts.push((start + lead, start + lead + body));
        }
        start = to;
    }
    parts
}

// `200,000`, and `1,50` where nothing or money follows, so that the wrong comma can be named.
fn is_in_number(text: &str, comma: usize) -> bool {
    let (before, after) = (&text[..comma], &text[comma + 1..]);
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let number = before.trim_end_matches(|c: char| c.is_ascii_digit());
    if digits == 0 || number.len() == before.len() {
        return false;
    }
    let follows = after[digits..].trim_start();
    let follows: String = follows.chars().take(8).collect::<String>().to_ascii_lowercase();
    let is_money = ["$", "€", "£", "us", "dollar", "eur"].iter().any(|sign| follows.starts_with(sign));
    let is_end =
        follows.is_empty() || follows.starts_with([',', ';', '/', '|']) || follows.starts_with("and ");
    digits == 3 || (digits < 3 && !number.ends_with('.') && (is_money || is_end))
}

const LEADS: &[&str] = &[
    "maximum",
    "max.",
    "max",
    "up to",
    "at most",
    "no more than",
    "not more than",
    "less than",
    "under",
    "below",
    "within",
    "approximately",
    "approx.",
    "about",
    "around",
    "roughly",
    "ca.",
    "limit:",
    "limit",
    "of",
    "<=",
    "<",
    "≤",
    "~",
    "≈",
    ":",
];
const TAILS: &[&str] = &[
    "wall clock time",
    "wall-clock time",
    "wall clock",
    "wall-clock",
    "wall time",
    "walltime",
    "in total",
    "per run",
    "per plan",
    "total",
    "overall",
    "altogether",
    "at most",
    "maximum",
    "max.",
    "max",
    "of",
];
const LABELS: &[(&str, Kind)] = &[
    ("tokens", Kind::Tokens),
    ("token", Kind::Tokens),
    ("token limit", Kind::Tokens),
    ("cost limit", Kind::Money),
    ("time limit", Kind::Time),
    ("money", Kind::Money),
    ("cost", Kind::Money),
    ("costs", Kind::Money),
    ("price", Kind::Money),
    ("usd", Kind::Money),
    ("dollars", Kind::Money),
    ("time", Kind::Time),
    ("wall clock", Kind::Time),
    ("wall-clock", Kind::Time),
    ("wall time", Kind::Time),
    ("duration", Kind::Time),
];

// Reads the amount out of a part; returns the amount, where it begins, and the kind that a label names.
fn core(lower: &str) -> (&str, usize, Option<Kind>) {
    let mut rest = lower;
    let mut label = None;
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches([' ', '\t', '*']);
        for lead in LEADS {
            if let Some(after) = rest.strip_prefix(lead)
                && !(lead.ends_with(char::is_alphabetic) && after.starts_with(char::is_alphabetic))
            {
                rest = after.trim_start();
            }
        }
        for (word, kind) in LABELS {
            if let Some(after) = rest.strip_prefix(word).map(|after| after.trim_start_matches([' ', '*']))
                && let Some(value) = after.strip_prefix([':', '='])
            {
                label = Some(*kind);
                rest = value;
            }
        }
        if rest.len() == before {
            break;
        }
    }
    let at = lower.len() - rest.len();
    loop {
        let before = rest.len();
        rest = rest.trim_end();
        for tail in TAILS {
            if let Some(head) = rest.strip_suffix(tail).filter(|head| head.ends_with(' ')) {
                rest = head.trim_end();
            }
        }
        if rest.len() == before {
            return (rest, at, label);
        }
    }
}

fn limit(text: &str) -> Result<Limit, Wrong> {
    let lower = text.to_ascii_lowercase();
    let (rest, at, label) = core(&lower);
    if rest.is_empty() {
        return Err(Wrong::new("names no amount"));
    }
    refuse_what_is_no_limit(rest)?;
    if let Some(money) = dollars(rest) {
        return of_money(money, 1.0);
    }
    if let Some(cents) = ["cents", "cent", "¢"].iter().find_map(|unit| rest.strip_suffix(unit)) {
        return of_money(cents, 0.01);
    }
    if let Some(tokens) = ["tokens", "token"].iter().find_map(|unit| rest.strip_suffix(unit)) {
        return of_tokens(tokens);
    }
    match label {
        Some(Kind::Tokens) => return of_tokens(rest),
        Some(Kind::Money) => return of_money(rest, 1.0),
        Some(Kind::Time) | None => {}
    }
    let is_million = text.ends_with('M') && number(rest).is_ok();
    let is_bare = is_million || (number(rest).is_ok() && !rest.ends_with('m'));
    if is_bare {
        return Err(amount_without_unit(rest, at, &text[at..]));
    }
    of_time(rest, at)
}

fn refuse_what_is_no_limit(rest: &str) -> Result<(), Wrong> {
    if rest.starts_with('-') || rest.starts_with("$-") || rest.starts_with("−") || rest.starts_with("$ -") {
        return Err(Wrong::new("is negative").help("write an amount above zero, or leave this limit out"));
    }
    if matches!(rest, "unlimited" | "no limit" | "none" | "any" | "infinite" | "infinity" | "∞") {
        return Err(
            Wrong::new("sets no limit").help("delete it: what the budget does not name is not limited")
        );
    }
    for each in [" per step", " each", " a step", " per agent", " per attempt"] {
        if rest.ends_with(each) {
            let why = format!("is a limit{each}, and a budget is for the whole run");
            return Err(Wrong::new(why).help("write what the whole plan may take"));
        }
    }
    let is_foreign = |sign: &&str| rest.starts_with(*sign) || rest.ends_with(*sign);
    if ["€", "£", "¥", "eur", "euro", "euros", "gbp", "pounds", "chf", "yen"].iter().any(is_foreign) {
        let why = "is not in US dollars, the only money that planctl counts";
        return Err(Wrong::new(why).help("write the amount in US dollars: `$1.50`"));
    }
    Ok(())
}

fn amount_without_unit(rest: &str, at: usize, written: &str) -> Wrong {
    let amount = &written[..rest.len()];
    if number(rest).is_ok_and(|value| value == 0.0) {
        return amount_of_zero();
    }
    let mut wrong = Wrong::new("does not say what it limits: tokens, money or time");
    if rest.ends_with(['k', 'm', 'n', 'd']) {
        wrong.fix = Some(((at, at + rest.len()), format!("{amount} tokens"), false));
        return wrong.help(format!("write `{amount} tokens`, if tokens are meant"));
    }
    wrong.help(format!("write `{amount} tokens`, `${amount}` or `{amount} minutes`"))
}

fn amount_of_zero() -> Wrong {
    Wrong::new("is zero, so nothing could run").help("write an amount above zero, or leave this limit out")
}

fn too_large(most: &str) -> Wrong {
    Wrong::new(format!("is more than planctl can count: at most {most}"))
        .help("write a smaller amount, or leave this limit out")
}

fn of_money(amount: &str, unit: f64) -> Result<Limit, Wrong> {
    let usd = number(amount).map_err(|unread| unread.wrong("an amount of money", amount))? * unit;
    if usd > USD_MAX {
        return Err(too_large("$1,000,000,000"));
    }
    match rounded(usd * 1e6) {
        0 => Err(amount_of_zero()),
        micro_usd => Ok(Limit::MicroUsd(micro_usd)),
    }
}

fn of_tokens(amount: &str) -> Result<Limit, Wrong> {
    let tokens = number(amount).map_err(|unread| unread.wrong("a number of tokens", amount))?;
    if let Some((_, fraction)) =
        amount.trim().split_once('.').filter(|(_, last)| !last.ends_with(char::is_alphabetic))
    {
        let help = match fraction.len() {
            3 => format!(
                "write `{} tokens`, if the point separates thousands",
                amount.trim().replace('.', ",")
            ),
            _ => "write a whole number: `200,000 tokens` or `200k tokens`".to_owned(),
        };
        return Err(Wrong::new("has a decimal point, and tokens are whole").help(help));
    }
    if tokens > TOKENS_MAX {
        return Err(too_large("1,000,000,000,000 tokens"));
    }
    match rounded(tokens) {
        0 => Err(amount_of_zero()),
        tokens => Ok(Limit::Tokens(tokens)),
    }
}

fn of_time(rest: &str, at: usize) -> Result<Limit, Wrong> {
    match values::time(rest) {
        Ok(time) if time.seconds == 0.0 => Err(amount_of_zero()),
        Ok(time) if time.seconds < 1.0 => {
            Err(Wrong::new("is shorter than a second").help("write one second or more: `20 minutes`"))
        }
        Ok(time) if time.seconds > YEAR_SECONDS => Err(too_large("a year (366 days)")),
        Ok(time) => Ok(Limit::Time(time)),
        Err(fault) => Err(unknown(rest, at, &fault)),
    }
}

const UNITS: [&str; 9] =
    ["tokens", "dollars", "cents", "seconds", "minutes", "hours", "days", "thousand", "million"];

// Where the last word is near a unit, that unit was meant.
fn unknown(rest: &str, at: usize, fault: &TimeFault) -> Wrong {
    let word_at = rest.trim_end_matches(char::is_alphabetic).len();
    let (before, word) = rest.split_at(word_at);
    let has_amount = before.split_whitespace().next_back().is_some_and(|amount| number(amount).is_ok());
    let wrong = Wrong::new(match fault {
        TimeFault::Unit if has_amount && !word.is_empty() => {
            format!("has the unit `{}`, which planctl does not know", escape(word))
        }
        TimeFault::Empty | TimeFault::Amount | TimeFault::Unit => {
            "is not a limit that planctl knows".to_owned()
        }
    });
    match nearest(word, UNITS).filter(|_| has_amount) {
        Some(near) => {
            let fix = ((at + word_at, at + rest.len()), near.word.to_owned(), near.is_only);
            let help = format!("did you mean `{}{}`?", escape(&rest[..word_at]), near.word);
            Wrong { fix: Some(fix), ..wrong.help(help) }
        }
        None => wrong,
    }
}

fn dollars(text: &str) -> Option<&str> {
    let before = ["usd", "us$", "us-$", "$"].iter().find_map(|sign| text.strip_prefix(sign));
    let after = |text| -> Option<&str> {
        let units = ["us dollars", "us dollar", "us$", "usd", "dollars", "dollar", "bucks", "$"];
        units.iter().find_map(|unit| str::strip_suffix(text, unit))
    };
    match before {
        Some(rest) => Some(after(rest).unwrap_or(rest)),
        None => after(text),
    }
}

/// Why an amount is no number.
enum NoNumber {
    /// A comma stands where the point of a decimal is meant.
    DecimalComma,
    Other,
}

impl NoNumber {
    fn wrong(&self, what: &str, amount: &str) -> Wrong {
        match self {
            NoNumber::DecimalComma => {
                let meant = amount.trim().replace(',', ".");
                let help = format!(
                    "write a decimal with a point, `{}`, and thousands in threes: `200,000`",
                    escape(&meant)
                );
                Wrong::new("has a comma that does not separate thousands").help(help)
            }
            NoNumber::Other => Wrong::new(format!("is not {what}")),
        }
    }
}

fn number(text: &str) -> Result<f64, NoNumber> {
    let text = text.trim();
    let scales =
        [("thousand", 1e3), ("million", 1e6), ("billion", 1e9), ("mio", 1e6), ("k", 1e3), ("m", 1e6)];
    let scaled = scales.iter().find_map(|(word, scale)| Some((text.strip_suffix(word)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((text, 1.0));
    let digits = digits.trim();
    let value = match digits {
        "a" | "one" if scale > 1.0 => 1.0,
        "half a" if scale > 1.0 => 0.5,
        digits => plain_number(digits)?,
    };
    Ok(value * scale)
}

fn plain_number(digits: &str) -> Result<f64, NoNumber> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split([',', '_', '\'', ' ']);
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    if !is_digits(first) || !rest.iter().all(|group| is_digits(group)) || !is_digits(fraction) {
        return Err(NoNumber::Other);
    }
    if first.len() + fraction.len() == 0 {
        return Err(NoNumber::Other);
    }
    let in_threes =
        rest.is_empty() || ((1..=3).contains(&first.len()) && rest.iter().all(|group| group.len() == 3));
    if !in_threes && !whole.contains('_') {
        return Err(if whole.contains(',') { NoNumber::DecimalComma } else { NoNumber::Other });
    }
    let plain = format!("{first}{}.{fraction}0", rest.concat());
    plain.parse().map_err(|_| NoNumber::Other)
}

// Amounts are bounded before, and a cast that does not fit keeps the largest number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
