//! Finds checks that pass where a command failed: what it prints then is no text, which is equal to no other such text, counts as 0, has
//! no word that is looked for, and no line that is looked at.

use std::collections::BTreeMap;

use super::led::runs_code;
use super::masked::{Lost, Masked};
use super::revisions::names_revision;
use super::status::reads_lines;
use super::walk::{each_with_expectation, last_of};
use super::{
    Call, Command, CompoundKind, Item, Join, Part, Script, Simple, Test, Trait, Word, each_list, each_simple,
};
use crate::text::Span;

/// Programs that print as much of no input as of any.
const DIGESTS: [&str; 4] = ["sha256sum", "sha1sum", "md5sum", "cksum"];

/// Returns the places of such checks; `stops` says that a failure ends the script (`set -e`).
pub(super) fn passing(script: &Script, stops: bool) -> Vec<Masked> {
    let look = Look { kept: if stops { BTreeMap::new() } else { outputs_kept(script) }, script };
    let mut found: Vec<Masked> = Vec::new();
    let mut add = |span: Option<Span>| found.extend(span.map(|span| Masked { span, how: Lost::Nothing }));
    let mut alike: Vec<Masked> = Vec::new();
    each_with_expectation(script, true, &mut |command, is_wanted| match command {
        Command::Simple(simple) => {
            let asked = Asked { goes_well: is_wanted, is_wanted, is_old: true };
            if let Some(test) = Test::of(simple) {
                add(look.passes(&test, asked));
                alike.extend(look.alike(&test, asked, simple.span));
            }
            alike.extend(look.compared(simple).filter(|_| is_wanted));
        }
        Command::Test { test, span, .. } => {
            let asked = Asked { goes_well: is_wanted, is_wanted, is_old: false };
            add(look.passes(test, asked));
            alike.extend(look.alike(test, asked, *span));
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Arithmetic => {
            let is_zero = |word: &&Word| {
                let parts: Vec<&str> = word.raw.split_whitespace().collect();
                let [name, operator, number] = parts.as_slice() else { return false };
                let number = number.parse().ok();
                look.kept.get(*name).is_some_and(|word| output(word).is_some())
                    && number.and_then(|n| of_zero(operator, n)) == Some(is_wanted)
            };
            add(compound.words.iter().find(is_zero).map(|word| word.span));
        }
        Command::Compound(compound) if compound.kind == CompoundKind::For => {
            compound.words.iter().filter(|word| runs(word)).for_each(|word| add(Some(word.span)));
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
                add(Some(first.span));
            }
        }
    });
    found.extend(alike);
    found
}

/// The output of commands of which one may fail where something is wrong with the work.
#[derive(Clone, Copy)]
struct Output {
    /// The text in that case.
    text: &'static str,
    /// Says that a command looks at the work or runs it; of others, such as `id`, nobody knows why they should fail.
    is_of_work: bool,
}

/// The answer that is wanted of a condition.
#[derive(Clone, Copy)]
struct Asked {
    /// Of the whole, which answers no where it can't be read.
    goes_well: bool,
    /// Of the part that is looked at.
    is_wanted: bool,
    /// Says that it is asked by `[`, which refuses an empty text as a number, and drops one outside of quotes.
    is_old: bool,
}

struct Look<'a> {
    /// The variables that hold the output of a command whose status nothing looks at.
    kept: BTreeMap<String, &'a Word>,
    script: &'a Script,
}

impl<'a> Look<'a> {
    fn origin<'w>(&'w self, word: &'w Word) -> Option<&'w Word> {
        match word.parts.as_slice() {
            [Part::Output(_)] => Some(word),
            [Part::Variable(name)] => self.kept.get(name).copied(),
            _ => None,
        }
    }

    fn output(&self, word: &Word) -> Option<Output> {
        self.origin(word).and_then(output)
    }

    /// Returns the output whose failure has a condition answer as it is wanted.
    fn passes(&self, test: &Test, asked: Asked) -> Option<Span> {
        match test {
            Test::And(a, b) if asked.is_wanted => self.passes(a, asked).or_else(|| self.passes(b, asked)),
            Test::Or(a, b) if !asked.is_wanted => self.passes(a, asked).or_else(|| self.passes(b, asked)),
            Test::And(..) | Test::Or(..) => None,
            Test::Not(inner) => self.passes(inner, Asked { is_wanted: !asked.is_wanted, ..asked }),
            Test::Unary(operator, word) => {
                let answer = match operator.as_str() {
                    "-z" => true,
                    "-n" => false,
                    _ => return None,
                };
                let is_empty = self.output(word).is_some_and(|output| output.text.is_empty());
                (is_empty && answer == asked.is_wanted).then_some(word.span)
            }
            Test::Binary(left, operator, right) => {
                let is_it = |word, operator: &str, other| {
                    self.output(word).is_some_and(|output| passes_with(output, word, operator, other, asked))
                };
                if is_it(left, operator, right) {
                    return Some(left.span);
                }
                is_it(right, mirrored(operator)?, left).then_some(right.span)
            }
        }
    }

    /// Returns a comparison of two outputs that are alike where both commands fail.
    fn alike(&self, test: &Test, asked: Asked, span: Span) -> Option<Masked> {
        match test {
            Test::And(a, b) if asked.is_wanted => {
                self.alike(a, asked, span).or_else(|| self.alike(b, asked, span))
            }
            Test::Not(inner) => self.alike(inner, Asked { is_wanted: !asked.is_wanted, ..asked }, span),
            Test::Binary(left, operator, right) => {
                let answer = match operator.as_str() {
                    "=" | "==" => true,
                    "-eq" if !asked.is_old => true,
                    "!=" => false,
                    _ => return None,
                };
                let sides = [self.origin(left)?, self.origin(right)?];
                self.sides(sides, span).filter(|_| answer == asked.is_wanted)
            }
            Test::And(..) | Test::Or(..) | Test::Unary(..) => None,
        }
    }

    // `diff <(./a) <(./b)`
    fn compared(&self, simple: &Simple) -> Option<Masked> {
        let is_output = |word: &&Word| word.raw.starts_with('(') && word.nested.len() == 1;
        let outputs: Vec<&Word> = simple.words.iter().filter(is_output).collect();
        let [left, right] = outputs.as_slice() else { return None };
        matches!(simple.name(), Some("diff" | "cmp")).then(|| self.sides([left, right], simple.span))?
    }

    fn sides(&self, words: [&Word; 2], span: Span) -> Option<Masked> {
        let [left, right] = [self.side(words[0])?, self.side(words[1])?];
        let only_read = [(&left, words[0]), (&right, words[1])];
        let only_read = only_read.iter().filter(|(side, _)| side.only_reads).map(|(_, word)| word.span);
        let how = Lost::Alike(only_read.collect());
        (left.text == right.text).then_some(Masked { span, how })
    }

    fn side(&self, word: &Word) -> Option<Side> {
        let item = only_item(word)?;
        let is_and = item.rest.iter().all(|(how, _)| *how == Join::And);
        let commands: Vec<&Simple> = last_of(item).commands.iter().filter_map(Command::as_simple).collect();
        let (first, last) = (commands.first()?, commands.last()?);
        let call = Call::of(&first.words);
        let runs = commands.iter().find(|simple| runs_code(simple));
        let only_reads = runs.is_none()
            && (call.does(Trait::OnlyReads) || call.does(Trait::Examines))
            && !call.is_of("git");
        let fails = match runs {
            Some(runs) => !self.is_run_elsewhere(runs, word.span),
            None if call.does(Trait::Says) || matches!(first.name(), Some("date" | "seq")) => false,
            None if call.is_of("git") => names_revision(&call),
            None => only_reads || is_of_work(first),
        };
        let text = match last.name() {
            Some(name) if commands.len() > 1 => DIGESTS.into_iter().find(|digest| *digest == name),
            Some(_) | None => None,
        };
        let text = text.or_else(|| counts(&commands).then_some("0")).unwrap_or_default();
        (is_and && fails).then_some(Side { text, only_reads })
    }

    // Where the same command runs for its status as well, its failure counts.
    fn is_run_elsewhere(&self, command: &Simple, place: Span) -> bool {
        let mut is_found = false;
        each_simple(self.script, &mut |simple| {
            let is_same = simple.texts() == command.texts();
            let is_here = place.contains(simple.span);
            is_found |= is_same && !is_here && !self.is_in_output(simple.span);
        });
        is_found
    }

    fn is_in_output(&self, span: Span) -> bool {
        let mut is_inner = false;
        super::each(self.script, &mut |command| {
            let words: Vec<&Word> = match command {
                Command::Simple(simple) => simple.assignments.iter().chain(&simple.words).collect(),
                Command::Test { test, .. } => test.words(),
                Command::Compound(_) | Command::Function { .. } => Vec::new(),
            };
            is_inner |= words.into_iter().any(|word| !word.nested.is_empty() && word.span.contains(span));
        });
        is_inner
    }
}

/// One of two outputs that are compared.
struct Side {
    /// Its text where its command fails.
    text: &'static str,
    /// Says that it depends on nothing but the files that it names.
    only_reads: bool,
}

fn only_item(word: &Word) -> Option<&Item> {
    let [script] = word.nested.as_slice() else { return None };
    let [item] = script.items.as_slice() else { return None };
    Some(item)
}

// Of searches it is known that they find nothing where nothing is there, and git looks at what is committed.
fn output(word: &Word) -> Option<Output> {
    let item = only_item(word).filter(|item| item.rest.is_empty())?;
    let commands: Vec<&Simple> = item.first.commands.iter().filter_map(Command::as_simple).collect();
    let first = item.first.commands.first()?.as_simple()?;
    let call = Call::of(&first.words);
    let finds =
        call.does(Trait::Prints) || call.does(Trait::Filters) || call.is_of("rg") || call.is_of("git");
    let is_of_work = is_of_work(first);
    let text = if counts(&commands) { "0" } else { "" };
    (!finds || names_revision(&call)).then_some(Output { text, is_of_work })
}

// `… | wc -l`, `… | grep -c x`
fn counts(commands: &[&Simple]) -> bool {
    commands.len() > 1 && commands.last().is_some_and(|last| super::condition::prints_count(last))
}

fn is_of_work(simple: &Simple) -> bool {
    let call = Call::of(&simple.words);
    let looks =
        [Trait::OnlyReads, Trait::Examines, Trait::Checks, Trait::Tests, Trait::Builds, Trait::RunsWorkspace];
    runs_code(simple) || looks.into_iter().any(|what| call.does(what))
}

/// Says whether a comparison of an output with something else goes well where its command failed.
fn passes_with(output: Output, word: &Word, operator: &str, other: &Word, asked: Asked) -> bool {
    let number = other.literal.as_deref().and_then(|text| text.parse::<i64>().ok());
    let is_refused = asked.is_old && output.text.is_empty();
    if is_refused && (is_of_numbers(operator) || !word.raw.starts_with('"')) {
        return !asked.goes_well && output.is_of_work && number.is_some();
    }
    let answer = match operator {
        "=" | "==" => equals(output.text, other),
        "!=" => equals(output.text, other).map(|answer| !answer),
        "=~" => is_plain_pattern(other).then_some(false),
        _ => number.and_then(|number| of_zero(operator, number)),
    };
    let is_sure = output.is_of_work
        || output.text.is_empty() && (is_of_numbers(operator) || other.literal.as_deref() == Some(""));
    is_sure && answer == Some(asked.is_wanted)
}

fn is_of_numbers(operator: &str) -> bool {
    matches!(operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}

fn equals(text: &str, other: &Word) -> Option<bool> {
    if let Some(literal) = &other.literal {
        return Some(literal == text);
    }
    let has_text = |part: &Part| match part {
        Part::Text(text) => !text.is_empty(),
        Part::Pattern(pattern) => {
            pattern.contains(|c: char| c.is_alphanumeric()) && !pattern.contains(['[', '{'])
        }
        Part::Variable(_) | Part::Default { .. } | Part::Output(_) | Part::Unknown => false,
    };
    (text.is_empty() && other.parts.iter().any(has_text)).then_some(false)
}

// `FAIL`, `^error: 3`
fn is_plain_pattern(word: &Word) -> bool {
    let text = word.raw.trim_matches(['"', '\'', '^', '$']);
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | ':' | ','))
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
        "=" | "==" => Some("="),
        "!=" => Some("!="),
        _ => None,
    }
}

fn outputs_kept(script: &Script) -> BTreeMap<String, &Word> {
    let mut kept = BTreeMap::new();
    each_list(script, &mut |list| {
        for item in list.items.iter().filter(|item| item.rest.is_empty()) {
            let [Command::Simple(simple)] = item.first.commands.as_slice() else { continue };
            let assigned = simple.assignments.iter().filter(|_| simple.words.is_empty());
            let assigned = assigned.filter_map(|word| Some((word.raw.split_once('=')?.0.to_owned(), word)));
            kept.extend(assigned.filter(|(_, word)| !word.nested.is_empty()));
        }
    });
    kept
}

fn runs(word: &Word) -> bool {
    word.nested.iter().any(|script| {
        let mut runs = false;
        each_simple(script, &mut |simple: &Simple| runs |= runs_code(simple));
        runs
    })
}
