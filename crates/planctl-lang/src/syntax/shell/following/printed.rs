//! The output of commands, as far as their text tells.

use super::super::values::{Input, Shell, TOP, VALUES_MAX, Value, joined, normalise, parent};
use super::super::{Command, Join, Pipeline, Script, Word};

/// The most lines of a list that are followed.
pub(super) const LISTED_MAX: usize = 1_000;

impl Shell {
    /// Returns what a script prints, as names of files.
    pub(in super::super) fn printed_by(&self, script: &Script) -> Input {
        let [item] = script.items.as_slice() else { return Input::Unknown };
        let mut shell = Shell { input: Input::Unknown, ..self.clone() };
        let printing = match item.rest.as_slice() {
            [] => &item.first,
            // `cd "$(dirname "$0")" && pwd`
            [(Join::And, next)] if shell.enters(&item.first) => next,
            _ => return Input::Unknown,
        };
        for command in &printing.commands {
            shell.input = shell.printed(command);
        }
        shell.input
    }

    // Goes where `cd` goes; says whether that is all that is done.
    fn enters(&mut self, pipeline: &Pipeline) -> bool {
        let [Command::Simple(simple)] = pipeline.commands.as_slice() else { return false };
        let folder = simple.words.iter().skip(1).find(|word| !word.raw.starts_with('-'));
        let values = folder.and_then(|folder| self.resolved(folder)).unwrap_or_default();
        let [value] = values.as_slice() else { return false };
        self.folder = self.located(&value.text);
        simple.name() == Some("cd") && !value.is_pattern
    }

    /// Returns what a command prints, given its own standard input.
    pub(super) fn printed(&self, command: &Command) -> Input {
        let Command::Simple(simple) = command else { return Input::Unknown };
        let Some(name) = simple.name() else { return Input::Unknown };
        let rest = &simple.words[1..];
        let operands = || rest.iter().filter(|word| !word.raw.starts_with('-'));
        let values = || -> Option<Vec<Value>> {
            let all = operands().map(|word| self.resolved(word)).collect::<Option<Vec<_>>>()?;
            Some(all.into_iter().flatten().collect())
        };
        let one = |text: String| Some(vec![Value::plain(text, simple.span)]);
        let printed = match name {
            "pwd" => self.current_folder().and_then(one),
            "git" => match rest.iter().map(Word::text).collect::<Vec<_>>().as_slice() {
                ["rev-parse", "--show-toplevel"] => one(format!("{TOP}/")),
                ["ls-files", ..] => values().map(|all| all[1..].iter().map(pattern_below).collect()),
                _ => None,
            },
            "mktemp" => one("/tmp/mktemp".to_owned()),
            "echo" => values().map(words_of),
            "printf" => values().map(|all| match all.split_first() {
                Some((format, rest)) if format.text.contains('%') => rest.to_vec(),
                _ => words_of(all),
            }),
            "ls" => values().map(|all| match all.is_empty() {
                true => vec![Value::pattern("*", simple.span)],
                false => all,
            }),
            "find" => self.found_by(&simple.words),
            "realpath" | "readlink" => values(),
            "dirname" => values().map(|all| {
                let folder = |value: Value| Value { text: parent(&value.text).to_owned(), ..value };
                all.into_iter().filter(|value| value.text.contains('/')).map(folder).collect()
            }),
            "sort" | "uniq" | "head" | "tail" | "tac" | "shuf" | "tr" | "grep" | "egrep" => match &self.input
            {
                Input::Values(values) => Some(values.clone()),
                Input::Unknown => None,
            },
            _ => None,
        };
        printed.map_or(Input::Unknown, Input::Values)
    }

    /// Returns a pattern of the files that `find` finds.
    pub(super) fn found_by(&self, words: &[Word]) -> Option<Vec<Value>> {
        let rest = &words[1..];
        let is_place = |word: &&Word| !word.raw.starts_with(['-', '(', '!', '\\']);
        let places: Vec<&Word> = rest.iter().take_while(is_place).collect();
        let span = words[0].span;
        let mut folders = Vec::new();
        for place in &places {
            folders.extend(self.resolved(place)?);
        }
        if places.is_empty() {
            folders.push(Value::plain(".", span));
        }
        let after = |names: &[&str]| -> Vec<&str> {
            let pairs = rest.iter().zip(rest.iter().skip(1));
            pairs
                .filter(|(word, _)| names.contains(&word.raw.as_str()))
                .map(|(_, next)| next.text())
                .collect()
        };
        let names = after(&["-name", "-iname"]);
        let is_flat = after(&["-maxdepth"]) == ["1"];
        let by_path = !after(&["-path", "-wholename", "-regex"]).is_empty();
        let mut found = Vec::new();
        for folder in folders {
            let text = if folder.is_pattern {
                folder.text.clone()
            } else {
                super::super::values::escape_glob(&folder.text)
            };
            let text = match text.strip_prefix("./").unwrap_or(&text) {
                "." => "",
                text => text.trim_end_matches('/'),
            };
            let deep = if is_flat { "" } else { "**/" };
            let last: Vec<&str> = if names.is_empty() || by_path { vec!["*"] } else { names.clone() };
            // `find FILE` finds just that.
            if rest.len() == places.len() && !folder.is_pattern {
                found.push(folder.clone());
            }
            found
                .extend(last.iter().map(|name| Value::pattern(joined(text, &format!("{deep}{name}")), span)));
        }
        Some(found)
    }
}

fn words_of(values: Vec<Value>) -> Vec<Value> {
    let pieces = values.iter().flat_map(|value| {
        let pieces =
            value.text.split_whitespace().flat_map(|text| text.split("\\n")).filter(|text| !text.is_empty());
        pieces.map(|text| Value { text: text.to_owned(), is_pattern: value.is_pattern, span: value.span })
    });
    pieces.take(VALUES_MAX).collect()
}

// In paths for git, a star goes through folders.
fn pattern_below(value: &Value) -> Value {
    let folder: Vec<&str> =
        value.text.split('/').take_while(|part| !part.contains(['*', '?', '['])).collect();
    let folder = normalise(&folder.join("/"));
    let name = value.text.rsplit('/').next().unwrap_or("*");
    let is_pattern = name.contains(['*', '?', '[']) || value.text.contains(['*', '?', '[']);
    match is_pattern {
        true => Value::pattern(joined(&folder, &format!("**/{name}")), value.span),
        false => value.clone(),
    }
}
