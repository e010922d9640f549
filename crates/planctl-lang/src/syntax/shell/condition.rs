//! The expressions of `test`, `[` and `[[`, and their parts that are decided before they run.

use super::walk::last_simple;
use super::{Part, Simple, Word};

/// The most words of a `test` that are read; each joiner takes a call of its own.
const WORDS_MAX: usize = 100;

/// A condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test {
    /// Both.
    And(Box<Test>, Box<Test>),
    /// One of them.
    Or(Box<Test>, Box<Test>),
    /// Not this.
    Not(Box<Test>),
    /// An operator with a word, such as `-f x`.
    Unary(String, Word),
    /// An operator between words, such as `a = b`.
    Binary(Word, String, Word),
}

impl Test {
    /// Returns what `test` or `[` asks; `None` where it is another command, or more than we read.
    pub(crate) fn of(simple: &Simple) -> Option<Test> {
        let words = match (simple.name()?, simple.words.as_slice()) {
            ("test", [_, words @ ..]) => words,
            ("[", [_, words @ .., last]) if last.raw == "]" => words,
            _ => return None,
        };
        parse(words)
    }

    /// Returns all words in it.
    pub(super) fn words(&self) -> Vec<&Word> {
        match self {
            Test::And(a, b) | Test::Or(a, b) => a.words().into_iter().chain(b.words()).collect(),
            Test::Not(inner) => inner.words(),
            Test::Unary(_, word) => vec![word],
            Test::Binary(left, _, right) => vec![left, right],
        }
    }

    /// Returns what it answers, where its text alone decides that.
    pub(crate) fn constant(&self) -> Option<bool> {
        match self {
            Test::And(a, b) => match (a.constant(), b.constant()) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Test::Or(a, b) => match (a.constant(), b.constant()) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Test::Not(inner) => inner.constant().map(|answer| !answer),
            Test::Unary(operator, word) if always_prints(word) => match operator.as_str() {
                "-n" => Some(true),
                "-z" => Some(false),
                _ => None,
            },
            Test::Unary(operator, word) => {
                let text = word.literal.as_deref()?;
                match operator.as_str() {
                    "-n" => Some(!text.is_empty()),
                    "-z" => Some(text.is_empty()),
                    _ => None,
                }
            }
            Test::Binary(left, operator, right) => {
                compare(left.literal.as_deref()?, operator, right.literal.as_deref()?)
            }
        }
    }
}

// `$(grep -c x f)`: a count is text, be it 0.
fn always_prints(word: &Word) -> bool {
    let ([Part::Output(_)], [script]) = (word.parts.as_slice(), word.nested.as_slice()) else { return false };
    last_simple(script).is_some_and(prints_count)
}

/// Says whether a command prints a number, be it 0.
pub(super) fn prints_count(simple: &Simple) -> bool {
    match simple.name() {
        Some("wc") => true,
        Some("grep") => super::arguments(&simple.words).has('c', "count"),
        Some(_) | None => false,
    }
}

fn compare(left: &str, operator: &str, right: &str) -> Option<bool> {
    let numbers = || Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
    match operator {
        "=" | "==" => Some(left == right),
        "!=" => Some(left != right),
        "-eq" => numbers().map(|(a, b)| a == b),
        "-ne" => numbers().map(|(a, b)| a != b),
        "-lt" => numbers().map(|(a, b)| a < b),
        "-le" => numbers().map(|(a, b)| a <= b),
        "-gt" => numbers().map(|(a, b)| a > b),
        "-ge" => numbers().map(|(a, b)| a >= b),
        _ => None,
    }
}

fn parse(words: &[Word]) -> Option<Test> {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.raw == text);
    match words {
        [] => Some(Test::Unary("-n".into(), Word { literal: Some(String::new()), ..Word::default() })),
        [word] => Some(Test::Unary("-n".into(), word.clone())),
        [left, operator, right] if is_binary(&operator.raw) => {
            Some(Test::Binary(left.clone(), operator.raw.clone(), right.clone()))
        }
        [operator, word] if operator.raw.starts_with('-') => {
            Some(Test::Unary(operator.raw.clone(), word.clone()))
        }
        _ if words.len() > WORDS_MAX => None,
        _ => {
            // `-o` binds less than `-a`, and the last one is the outermost.
            for (joiner, is_or) in [("-o", true), ("-a", false)] {
                if let Some(at) = (1..words.len().saturating_sub(1)).rev().find(|at| is(*at, joiner)) {
                    let (a, b) = (Box::new(parse(&words[..at])?), Box::new(parse(&words[at + 1..])?));
                    return Some(if is_or { Test::Or(a, b) } else { Test::And(a, b) });
                }
            }
            match words {
                [not, rest @ ..] if not.raw == "!" => Some(Test::Not(Box::new(parse(rest)?))),
                _ => None,
            }
        }
    }
}

fn is_binary(operator: &str) -> bool {
    matches!(
        operator,
        "=" | "=="
            | "!="
            | "<"
            | ">"
            | "-eq"
            | "-ne"
            | "-lt"
            | "-le"
            | "-gt"
            | "-ge"
            | "-nt"
            | "-ot"
            | "-ef"
            | "\\<"
            | "\\>"
    )
}
