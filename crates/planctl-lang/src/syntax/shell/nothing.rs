//! Finds checks that pass where a command printed nothing, be it because it failed: an empty text is equal to nothing, counts as 0, and
//! has no line that is looked at.

use std::collections::BTreeSet;

use super::led::runs_code;
use super::masked::{Lost, Masked};
use super::status::reads_lines;
use super::walk::each_with_expectation;
use super::{
    Call, Command, CompoundKind, Part, Pipeline, Script, Simple, Test, Trait, Word, each_list, each_simple,
};
use crate::text::Span;

/// Returns the places of such checks; `stops` says that a failure ends the script (`set -e`).
pub(super) fn passing(script: &Script, stops: bool) -> Vec<Masked> {
    let printed = if stops { BTreeSet::new() } else { names_printed(script) };
    let is_output = |word: &Word| match word.parts.as_slice() {
        [Part::Output(_)] => may_fail(word),
        [Part::Variable(name)] => printed.contains(name),
        _ => false,
    };
    let mut found: Vec<Span> = Vec::new();
    each_with_expectation(script, true, &mut |command, is_wanted| match command {
        Command::Simple(simple) => {
            let test = Test::of(simple).filter(|_| is_wanted);
            found.extend(test.iter().filter_map(|test| empty(test, &is_output)));
        }
        Command::Test { test, .. } => {
            found.extend(Some(test).filter(|_| is_wanted).and_then(|test| empty(test, &is_output)));
            found.extend(zero(test, is_wanted, &is_output));
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Arithmetic => {
            let is_zero = |word: &&Word| {
                let parts: Vec<&str> = word.raw.split_whitespace().collect();
                let [name, operator, number] = parts.as_slice() else { return false };
                let number = number.parse().ok();
                printed.contains(*name) && number.and_then(|n| of_zero(operator, n)) == Some(is_wanted)
            };
            found.extend(compound.words.iter().filter(is_zero).map(|word| word.span));
        }
        Command::Compound(compound) if compound.kind == CompoundKind::For => {
            found.extend(compound.words.iter().filter(|word| runs(word)).map(|word| word.span));
        }
        Command::Compound(_) => {}
        Command::Function { .. } => {}
    });
    each_list(script, &mut |list| {
        for pipeline in list.items.iter().flat_map(super::masked::pipelines) {
            if let [Command::Simple(first), .., Command::Compound(last)] = pipeline.commands.as_slice()
                && reads_lines(last)
                && runs_code(first)
            {
                found.push(first.span);
            }
        }
    });
    found.into_iter().map(|span| Masked { span, how: Lost::Nothing }).collect()
}

// `-z "$(gofmt -l .)"`
fn empty(test: &Test, is_output: &impl Fn(&Word) -> bool) -> Option<Span> {
    match test {
        Test::And(a, b) => empty(a, is_output).or_else(|| empty(b, is_output)),
        Test::Unary(operator, word) if operator == "-z" && is_output(word) => Some(word.span),
        Test::Or(..) | Test::Not(_) | Test::Unary(..) | Test::Binary(..) => None,
    }
}

// `[[ $(jq .errors f) -eq 0 ]]`; `[` refuses an empty text.
fn zero(test: &Test, is_wanted: bool, is_output: &impl Fn(&Word) -> bool) -> Option<Span> {
    match test {
        Test::And(a, b) => zero(a, is_wanted, is_output).or_else(|| zero(b, is_wanted, is_output)),
        Test::Binary(left, operator, right) => {
            let number = |word: &Word| word.literal.as_deref().and_then(|text| text.parse::<i64>().ok());
            let (word, answer) = match (number(left), number(right)) {
                (None, Some(number)) => (left, of_zero(operator, number)?),
                (Some(number), None) => (right, of_zero(mirrored(operator)?, number)?),
                _ => return None,
            };
            (answer == is_wanted && is_output(word)).then_some(word.span)
        }
        Test::Or(..) | Test::Not(_) | Test::Unary(..) => None,
    }
}

// Returns what a comparison of 0 with a number answers.
fn of_zero(operator: &str, number: i64) -> Option<bool> {
    match operator {
        "-eq" | "==" => Some(0 == number),
        "-ne" | "!=" => Some(0 != number),
        "-lt" | "<" => Some(0 < number),
        "-le" | "<=" => Some(0 <= number),
        "-gt" | ">" => Some(0 > number),
        "-ge" | ">=" => Some(0 >= number),
        _ => None,
    }
}

fn mirrored(operator: &str) -> Option<&'static str> {
    match operator {
        "-eq" => Some("-eq"),
        "-ne" => Some("-ne"),
        "-lt" => Some("-gt"),
        "-le" => Some("-ge"),
        "-gt" => Some("-lt"),
        "-ge" => Some("-le"),
        _ => None,
    }
}

// The variables that hold the output of a command whose status nothing looks at.
fn names_printed(script: &Script) -> BTreeSet<String> {
    let mut printed = BTreeSet::new();
    each_list(script, &mut |list| {
        for item in list.items.iter().filter(|item| item.rest.is_empty()) {
            let [Command::Simple(simple)] = item.first.commands.as_slice() else { continue };
            let assigned = simple.assignments.iter().filter(|word| simple.words.is_empty() && may_fail(word));
            printed.extend(assigned.filter_map(|word| Some(word.raw.split_once('=')?.0.to_owned())));
        }
    });
    printed
}

// Says whether a word is the output of commands that may fail where something is wrong with the work. Of searches it is known that they
// find nothing where nothing is there, and git looks at what is committed.
fn may_fail(word: &Word) -> bool {
    let last = |pipeline: &Pipeline| pipeline.commands.last().and_then(Command::as_simple).cloned();
    let counts_input = |pipeline: &Pipeline| {
        pipeline.commands.len() > 1
            && last(pipeline).is_some_and(|simple| matches!(simple.name(), Some("wc" | "grep")))
    };
    let [script] = word.nested.as_slice() else { return false };
    let [item] = script.items.as_slice() else { return false };
    let Some(Command::Simple(first)) = item.first.commands.first() else { return false };
    let call = Call::of(&first.words);
    let finds = call.does(Trait::Prints) || call.does(Trait::Filters);
    let is_quiet = finds || call.is_of("rg") || call.is_of("git");
    item.rest.is_empty() && !counts_input(&item.first) && !is_quiet
}

fn runs(word: &Word) -> bool {
    word.nested.iter().any(|script| {
        let mut runs = false;
        each_simple(script, &mut |simple: &Simple| runs |= runs_code(simple));
        runs
    })
}
