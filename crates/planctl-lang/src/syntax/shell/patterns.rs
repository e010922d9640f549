//! Checks that say less than they seem to: patterns that every line matches, or either verdict, or the plan itself, and
//! questions about variables that nothing sets.

use std::collections::BTreeSet;

use super::programs::is_python;
use super::walk::each_with_expectation;
use super::{
    Arguments, Command, CompoundKind, Item, Join, Part, Script, Simple, Test, Trait, Word, all_commands,
    arguments, brings, each, each_list, wrapped_commands,
};
use crate::text::Span;

/// A check that proves little.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Its pattern matches every line.
    AnyLine(Span),
    /// Its pattern matches one verdict as well as the opposite.
    EitherVerdict {
        /// The pattern.
        span: Span,
        /// A word of one side.
        good: String,
        /// A word of the other.
        bad: String,
    },
    /// It asks whether a variable is empty that nothing sets.
    Unset(Span, String),
    /// Its pattern is none, so that nothing is searched.
    Refused {
        /// The pattern.
        span: Span,
        /// Says that the script goes well where something is found.
        is_wanted: bool,
    },
    /// It asserts, in a python that leaves each `assert` out; with the option or the variable that says so.
    Unasserted(Span),
    /// It goes through all files of the workspace, and the plan is one that has its pattern.
    ThisPlan {
        /// The pattern.
        span: Span,
        /// Says that the script goes well where something is found.
        is_wanted: bool,
    },
}

/// Returns the checks of a script that prove little.
pub(crate) fn doubtful_checks(script: &Script) -> Vec<Doubt> {
    let mut found = Vec::new();
    let mut patterns: Vec<(String, Span)> = Vec::new();
    let set = names_set(script);
    let goes_elsewhere = goes_elsewhere(script);
    each_with_expectation(script, true, &mut |command, is_wanted| match command {
        Command::Simple(simple) => {
            for words in all_commands(&simple.words) {
                let Some(search) = Search::of(words) else { continue };
                patterns.extend(search.patterns.iter().map(|word| (word.text().to_owned(), word.span)));
                found.extend(search.doubt().filter(|_| is_wanted));
                found.extend(search.refused().map(|span| Doubt::Refused { span, is_wanted }));
                let span = search.everywhere().filter(|_| !goes_elsewhere);
                found.extend(span.map(|span| Doubt::ThisPlan { span, is_wanted }));
            }
            found.extend(unasserted(simple));
            if let (Some(test), Some(set), true) = (Test::of(simple), &set, is_wanted) {
                found.extend(of_unset(&test, set));
            }
        }
        Command::Test { test, .. } if is_wanted => {
            found.extend(of_match(test));
            found.extend(set.iter().find_map(|set| of_unset(test, set)));
        }
        Command::Test { .. } => {}
        Command::Compound(_) | Command::Function { .. } => {}
    });
    each_list(script, &mut |list| found.extend(list.items.iter().filter_map(doubtful_alternatives)));
    // Where another search decides between the two, the first only looks at the form.
    found.retain(|doubt| match doubt {
        Doubt::AnyLine(_)
        | Doubt::Unset(..)
        | Doubt::Refused { .. }
        | Doubt::Unasserted(_)
        | Doubt::ThisPlan { .. } => true,
        Doubt::EitherVerdict { span, .. } => !patterns.iter().any(|(pattern, other)| {
            !span.contains(*other) && matches!(side(pattern), Some((Side::Good | Side::Bad, _)))
        }),
    });
    found
}

/// Says whether a script goes to another folder.
pub(crate) fn goes_elsewhere(script: &Script) -> bool {
    calls_any(script, &["cd", "pushd"])
}

// `python3 -O -c 'assert …'`, with the code in a word or in a heredoc. A file's code nobody sees here.
fn unasserted(simple: &Simple) -> Option<Doubt> {
    let words = all_commands(&simple.words).into_iter().find(|words| is_python(words[0].text()))?;
    let count = words[1..].iter().take_while(|word| word.raw.starts_with('-')).count();
    let (options, behind) = words[1..].split_at(count);
    let optimizes = |word: &&Word| !word.raw.starts_with("--") && word.raw.contains('O');
    let is_set = |word: &&Word| {
        let value = word.raw.strip_prefix("PYTHONOPTIMIZE=");
        value.is_some_and(|value| !matches!(value, "" | "0" | "''" | "\"\""))
    };
    let mut assigned = simple.assignments.iter().chain(&simple.words);
    let by = options.iter().find(optimizes).or_else(|| assigned.find(is_set))?;
    let takes_code =
        options.last().is_some_and(|last| !last.raw.starts_with("--") && last.raw.ends_with('c'));
    let code = match behind {
        [] => simple.redirects.iter().find(|redirect| redirect.is_document)?.target.raw.as_str(),
        [code, ..] if takes_code => code.text(),
        _ => return None,
    };
    let asserts = |line: &str| {
        let mut parts = line.split(';').map(str::trim_start);
        parts.any(|part| part.strip_prefix("assert").is_some_and(|rest| rest.starts_with([' ', '('])))
    };
    code.lines().any(asserts).then_some(Doubt::Unasserted(by.span))
}

/// A `grep` or the like.
struct Search<'a> {
    patterns: Vec<&'a Word>,
    is_fixed: bool,
    /// Says that `|` divides alternatives, where `\|` does not.
    is_extended: bool,
    /// Says that it is read as Perl does.
    is_perl: bool,
    is_inverted: bool,
    /// Says that it prints how many lines it found, for something else to look at.
    is_count: bool,
    names_file: bool,
    /// Says that it goes through all files, whatever they are called.
    is_everywhere: bool,
}

impl<'a> Search<'a> {
    fn of(words: &'a [Word]) -> Option<Search<'a>> {
        let name = words.first()?.literal.as_deref()?;
        if !matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "ag") {
            return None;
        }
        let read = arguments(words);
        let mut patterns: Vec<&Word> = read.values("e", "regexp").collect();
        let mut positional = read.positional.iter().copied();
        if patterns.is_empty() && read.values("f", "file").next().is_none() {
            patterns.extend(positional.next());
        }
        let has = |letter, name: &str| read.has(letter, name);
        Some(Search {
            patterns,
            is_fixed: name == "fgrep" || has('F', "fixed-strings"),
            is_extended: !name.starts_with("grep") || has('E', "extended-regexp") || has('P', "perl-regexp"),
            is_perl: has('P', "perl-regexp") || has('P', "pcre2"),
            is_inverted: has('v', "invert-match") || has('L', "files-without-match"),
            is_count: has('c', "count"),
            is_everywhere: is_everywhere(name, &read, positional.clone()),
            names_file: positional.next().is_some(),
        })
    }

    /// Returns the pattern where every file is looked into, and the pattern is a text that the plan has as well.
    fn everywhere(&self) -> Option<Span> {
        let [pattern] = self.patterns.as_slice() else { return None };
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | ':' | ',' | '=');
        let text = pattern.literal.as_deref().filter(|text| !text.is_empty() && text.chars().all(is_plain));
        text.filter(|_| self.is_everywhere && !self.is_inverted).map(|_| pattern.span)
    }

    /// Returns a pattern of which grep says that a bracket is missing.
    fn refused(&self) -> Option<Span> {
        let is_open =
            |word: &&&Word| word.literal.as_deref().is_some_and(|text| is_unclosed(text, self.is_extended));
        let is_read = !self.is_fixed && !self.is_perl;
        self.patterns.iter().find(is_open).filter(|_| is_read).map(|word| word.span)
    }

    fn doubt(&self) -> Option<Doubt> {
        if self.is_inverted {
            return None;
        }
        let literal = |word: &&&Word| word.literal.as_deref().map(matches_all).unwrap_or(false);
        if let Some(word) = self.patterns.iter().find(literal) {
            return (!self.is_count && (self.names_file && !self.is_fixed || word.text().is_empty()))
                .then_some(Doubt::AnyLine(word.span));
        }
        if self.is_fixed && self.patterns.len() < 2 {
            return None;
        }
        let bar = if self.is_extended { "|" } else { "\\|" };
        let alternatives = self.patterns.iter().flat_map(|word| word.text().split(bar)).collect::<Vec<_>>();
        let span = self.patterns.iter().map(|word| word.span).reduce(Span::to)?;
        doubt_of_either(&alternatives, span)
    }
}

// `grep -r x`, `rg x .`
fn is_everywhere<'w>(name: &str, read: &Arguments<'_>, mut places: impl Iterator<Item = &'w Word>) -> bool {
    let is_rg = matches!(name, "rg" | "ag");
    let goes_down = is_rg || read.has('r', "recursive") || read.has('R', "dereference-recursive");
    let narrows = |option: &str| {
        matches!(
            option,
            "include" | "exclude" | "exclude-dir" | "exclude-from" | "glob" | "type" | "g" | "t" | "T"
        )
    };
    let here = |word: &Word| matches!(word.text(), "." | "./");
    // Where rg is given no place, it may search its standard input.
    let is_here = match places.next() {
        Some(first) => here(first) && places.all(here),
        None => !is_rg,
    };
    goes_down && is_here && !read.valued.iter().any(|(option, _)| narrows(option))
}

// `[ -z "$errors" ]`, where nothing sets `errors`: a name in small letters is none of the environment.
fn of_unset(test: &Test, set: &BTreeSet<String>) -> Option<Doubt> {
    match test {
        Test::And(a, b) => of_unset(a, set).or_else(|| of_unset(b, set)),
        Test::Unary(operator, word) if operator == "-z" => {
            let [Part::Variable(name)] = word.parts.as_slice() else { return None };
            let is_own = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && !name.contains(|c: char| c.is_ascii_uppercase());
            (is_own && !set.contains(name)).then(|| Doubt::Unset(word.span, name.clone()))
        }
        Test::Or(..) | Test::Not(_) | Test::Unary(..) | Test::Binary(..) => None,
    }
}

// The names that a script may set; nothing where it reads other scripts, which may set any.
fn names_set(script: &Script) -> Option<BTreeSet<String>> {
    if calls_any(script, &["source", ".", "eval"]) {
        return None;
    }
    let mut set = BTreeSet::new();
    let names_in = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        parts.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    each(script, &mut |command| match command {
        Command::Simple(simple) => {
            let assigned =
                simple.assignments.iter().filter_map(|word| word.raw.split(['=', '+', '[']).next());
            set.extend(assigned.map(str::to_owned));
            set.extend(simple.arrays.iter().map(|(name, _)| name.clone()));
            if brings(simple.name().unwrap_or_default(), Trait::Prepares)
                || matches!(simple.name(), Some("printf" | "let" | "read"))
            {
                set.extend(simple.words.iter().skip(1).flat_map(|word| names_in(&word.raw)));
            }
            let defaults = simple.words.iter().filter(|word| word.raw.contains(":="));
            set.extend(defaults.flat_map(|word| names_in(&word.raw)));
        }
        Command::Compound(compound) => {
            set.extend(compound.variable.clone());
            if compound.kind == CompoundKind::Arithmetic {
                set.extend(compound.words.iter().flat_map(|word| names_in(&word.raw)));
            }
        }
        Command::Function { .. } | Command::Test { .. } => {}
    });
    Some(set)
}

fn calls_any(script: &Script, names: &[&str]) -> bool {
    let mut calls = false;
    super::each_simple(script, &mut |simple| {
        calls |= simple.name().is_some_and(|name| names.contains(&name))
    });
    calls
}

/// Says whether a search is for words that say of tests that they passed.
pub(super) fn asks_for_verdict(simple: &Simple) -> bool {
    let words = wrapped_commands(&simple.words);
    let Some(search) = words.last().and_then(|words| Search::of(words)) else { return false };
    let is_of_verdict = |word: &str| {
        let word = word.to_lowercase();
        let word = word.as_str();
        GOOD.contains(&word) || BAD.contains(&word) || matches!(word, "test" | "tests" | "result")
    };
    let is_verdict = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
        matches!(side(text), Some((Side::Good, _))) && words.all(is_of_verdict)
    };
    !search.is_inverted && search.patterns.iter().any(|word| is_verdict(word.text()))
}

// Says whether a set or a group of a regular expression has no end.
fn is_unclosed(pattern: &str, is_extended: bool) -> bool {
    let (mut open, mut rest) = (0_usize, pattern.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('(') if !is_extended => open += 1,
                Some(')') if !is_extended => open = open.saturating_sub(1),
                Some(_) => {}
                None => return true,
            },
            '(' if is_extended => open += 1,
            ')' if is_extended => open = open.saturating_sub(1),
            '[' => {
                rest.next_if_eq(&'^');
                let mut last = rest.next();
                // `[:digit:]` is a part of it.
                let mut is_class = last == Some('[') && matches!(rest.peek(), Some(':' | '.' | '='));
                loop {
                    let Some(next) = rest.next() else { return true };
                    match next {
                        ']' if is_class => is_class = !matches!(last, Some(':' | '.' | '=')),
                        ']' => break,
                        ':' | '.' | '=' if last == Some('[') => is_class = true,
                        _ => {}
                    }
                    last = Some(next);
                }
            }
            _ => {}
        }
    }
    open > 0
}

fn matches_all(pattern: &str) -> bool {
    matches!(pattern, "" | ".*" | "^" | "$" | "^.*$" | ".*$" | "^.*" | ".") || is_repeated(pattern)
}

// One character or one set of them, any number of times: `z*`, `[a-z]*`.
fn is_repeated(pattern: &str) -> bool {
    let Some(atom) = pattern.strip_prefix('^').unwrap_or(pattern).strip_suffix('*') else { return false };
    let is_set = atom.starts_with('[') && atom.find(']').is_some_and(|end| end + 1 == atom.len());
    is_set || (atom.chars().count() == 1 && !atom.starts_with(['\\', '*']))
}

// `[[ $verdict =~ approved|rejected ]]`
fn of_match(test: &Test) -> Option<Doubt> {
    let Test::Binary(_, operator, right) = test else { return None };
    let alternatives: Vec<&str> = right.raw.split('|').collect();
    if operator == "=~" { doubt_of_either(&alternatives, right.span) } else { None }
}

// `grep -q APPROVED f || grep -q REJECTED f`
fn doubtful_alternatives(item: &Item) -> Option<Doubt> {
    if item.rest.is_empty() || item.rest.iter().any(|(how, _)| *how == Join::And) {
        return None;
    }
    let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
    let mut alternatives = Vec::new();
    for pipeline in pipelines {
        let [Command::Simple(simple)] = pipeline.commands.as_slice() else { return None };
        if pipeline.is_negated {
            return None;
        }
        alternatives.push(searched(simple)?);
    }
    doubt_of_either(&alternatives, item.span)
}

fn searched(simple: &Simple) -> Option<&str> {
    let search = Search::of(wrapped_commands(&simple.words).last()?).filter(|search| !search.is_inverted)?;
    match search.patterns.as_slice() {
        [pattern] => Some(pattern.text()),
        _ => None,
    }
}

fn doubt_of_either(alternatives: &[&str], span: Span) -> Option<Doubt> {
    if alternatives.len() < 2 {
        return None;
    }
    let sides: Vec<(Side, String)> = alternatives.iter().filter_map(|text| side(text)).collect();
    let of = |wanted: Side| sides.iter().find(|(side, _)| *side == wanted).map(|(_, word)| word.clone());
    Some(Doubt::EitherVerdict { span, good: of(Side::Good)?, bad: of(Side::Bad)? })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Good,
    Bad,
    Mixed,
}

const GOOD: &[&str] = &[
    "approved",
    "approve",
    "accepted",
    "accept",
    "pass",
    "passed",
    "passes",
    "passing",
    "ok",
    "okay",
    "success",
    "succeeded",
    "successful",
    "yes",
    "true",
    "done",
    "complete",
    "completed",
    "finished",
    "lgtm",
    "green",
    "valid",
    "granted",
    "allowed",
];
const BAD: &[&str] = &[
    "rejected",
    "reject",
    "denied",
    "declined",
    "fail",
    "failed",
    "fails",
    "failing",
    "failure",
    "failures",
    "error",
    "errors",
    "false",
    "incomplete",
    "unfinished",
    "pending",
    "blocked",
    "red",
    "invalid",
    "requested",
    "needs",
    "todo",
    "refused",
    "unapproved",
    "disapproved",
    "forbidden",
];

// Which verdict a text names, and the text without what only frames it.
fn side(text: &str) -> Option<(Side, String)> {
    let is_part = |c: char| c.is_alphanumeric();
    let words: Vec<&str> = text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let known = |list: &[&str]| lower.iter().position(|word| list.contains(&word.as_str()));
    let denies = lower.iter().any(|word| matches!(word.as_str(), "not" | "never" | "un"));
    let is_none = lower.iter().any(|word| matches!(word.as_str(), "0" | "zero" | "without"));
    // A group that its alternatives share has its beginning in the first and its end in the last.
    let alone = text.rsplit_once('(').map_or(text, |(_, inner)| inner);
    let alone = alone.split_once(')').map_or(alone, |(inner, _)| inner);
    let shown = alone.trim_matches(|c: char| !is_part(c)).to_owned();
    match (known(GOOD), known(BAD)) {
        (Some(_), Some(_)) => Some((Side::Mixed, shown)),
        (Some(_), None) => Some((if denies { Side::Bad } else { Side::Good }, shown)),
        (None, Some(_)) if is_none || denies || lower.iter().any(|word| word == "no") => {
            Some((Side::Good, shown))
        }
        (None, Some(_)) => Some((Side::Bad, shown)),
        (None, None) if lower.as_slice() == ["no"] => Some((Side::Bad, shown)),
        (None, None) => None,
    }
}
