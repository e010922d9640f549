//! The values of a script's words where they are read: names of files, or patterns of them, from the folder of then.

use std::collections::BTreeMap;

use planctl_glob::is_glob;

use super::{Part, Reading, Word, read};
use crate::text::Span;

/// The most values of one word that are followed.
pub(super) const VALUES_MAX: usize = 16;
/// Begins a path from the top of the workspace (`$PWD`); no word of a script can hold it.
pub(super) const TOP: &str = "/\0";

/// One thing that a word may stand for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Value {
    /// A name, or a pattern in which the characters of a name are escaped.
    pub(super) text: String,
    pub(super) is_pattern: bool,
    pub(super) span: Span,
}

impl Value {
    pub(super) fn plain(text: impl Into<String>, span: Span) -> Value {
        Value { text: text.into(), is_pattern: false, span }
    }

    pub(super) fn pattern(text: impl Into<String>, span: Span) -> Value {
        Value { text: text.into(), is_pattern: true, span }
    }

    /// Returns a word that stands for just this.
    pub(super) fn to_word(&self) -> Word {
        let literal = (!self.is_pattern).then(|| self.text.clone());
        let part = if self.is_pattern { Part::Pattern } else { Part::Text };
        let parts = vec![part(self.text.clone())];
        Word { raw: self.text.clone(), literal, parts, nested: Vec::new(), span: self.span }
    }

    fn push(&mut self, other: &Value) {
        if other.is_pattern && !self.is_pattern {
            *self = Value::pattern(escape_glob(&self.text), self.span);
        }
        match self.is_pattern && !other.is_pattern {
            true => self.text.push_str(&escape_glob(&other.text)),
            false => self.text.push_str(&other.text),
        }
    }
}

/// The standard input of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Input {
    /// Nobody can tell.
    #[default]
    Unknown,
    /// These, as words or lines.
    Values(Vec<Value>),
}

/// The state of a shell at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shell {
    /// The folder, relative to the workspace, or absolute; `None` where nobody can tell.
    pub(super) folder: Option<String>,
    /// The folders of `pushd`, and the one before (`cd -`).
    pub(super) before: Vec<Option<String>>,
    pub(super) variables: BTreeMap<String, Vec<Value>>,
    pub(super) arguments: Option<Vec<Value>>,
    pub(super) input: Input,
}

impl Shell {
    /// Begins at the top of the workspace.
    pub(super) fn new() -> Shell {
        Shell {
            folder: Some(String::new()),
            before: Vec::new(),
            variables: BTreeMap::new(),
            arguments: None,
            input: Input::Unknown,
        }
    }

    /// Returns the path that a name means in the folder of now: relative to the workspace, or absolute.
    pub(super) fn located(&self, text: &str) -> Option<String> {
        if let Some(rest) = text.strip_prefix(TOP) {
            return Some(normalise(rest));
        }
        if text.starts_with(['/', '~']) {
            return Some(text.to_owned());
        }
        let folder = self.folder.as_deref()?;
        let path = normalise(&joined(folder, text));
        Some(if folder.starts_with('/') { format!("/{path}") } else { path })
    }

    /// Keeps the values that both of two ways through a script leave: a value that differs is unknown, or both.
    pub(super) fn merge(&mut self, other: Shell) {
        if self.folder != other.folder {
            self.folder = None;
        }
        if self.arguments != other.arguments {
            self.arguments = None;
        }
        for (name, values) in other.variables {
            let known = self.variables.entry(name).or_default();
            for value in values {
                if known.len() < VALUES_MAX && !known.contains(&value) {
                    known.push(value);
                }
            }
        }
    }

    /// Returns everything that a word may stand for; nothing where nobody can tell.
    pub(super) fn resolved(&self, word: &Word) -> Option<Vec<Value>> {
        if let Some(text) = &word.literal {
            return Some(vec![Value::plain(text.clone(), word.span)]);
        }
        self.of_parts(&word.parts, word.span)
    }

    pub(super) fn of_parts(&self, parts: &[Part], span: Span) -> Option<Vec<Value>> {
        if let [Part::Variable(_) | Part::Output(_)] = parts {
            return self.of_part(&parts[0], span);
        }
        let mut made = vec![Value::plain("", span)];
        for part in parts {
            let ends = self.of_part(part, span)?;
            let mut longer = Vec::new();
            for (so_far, end) in made.iter().flat_map(|so_far| ends.iter().map(move |end| (so_far, end))) {
                if longer.len() < VALUES_MAX {
                    let mut value = so_far.clone();
                    value.push(end);
                    longer.push(value);
                }
            }
            made = longer;
        }
        Some(made)
    }

    fn of_part(&self, part: &Part, span: Span) -> Option<Vec<Value>> {
        match part {
            Part::Text(text) => Some(vec![Value::plain(text.clone(), span)]),
            Part::Pattern(text) => {
                Some(expand_braces(text).into_iter().map(|text| of_text(text, span)).collect())
            }
            Part::Variable(name) => self.variable(name, span),
            Part::Default { name, default } => {
                let mut values = self.of_parts(default, span)?;
                values.extend(self.variable(name, span).unwrap_or_default());
                Some(values)
            }
            Part::Output(script) => match read(script) {
                Reading::Read(script) => match self.printed_by(&script) {
                    Input::Values(values) => {
                        Some(values.into_iter().map(|value| Value { span, ..value }).collect())
                    }
                    Input::Unknown => None,
                },
                Reading::Refused { .. } | Reading::TooDeep => None,
            },
            Part::Unknown => None,
        }
    }

    fn variable(&self, name: &str, span: Span) -> Option<Vec<Value>> {
        match name {
            "PWD" => Some(vec![Value::plain(self.current_folder()?, span)]),
            "HOME" => Some(vec![Value::plain("~", span)]),
            "TMPDIR" => Some(vec![Value::plain("/tmp", span)]),
            "@" => self.arguments.clone(),
            "0" => self.variables.get(name).cloned(),
            _ => match name.parse::<usize>() {
                Ok(number) => {
                    let arguments = self.arguments.as_ref()?;
                    // A pattern or an unsplit list may stand for several: then any of them is meant.
                    let several = arguments.iter().any(|value| value.is_pattern);
                    match several {
                        true => Some(arguments.clone()),
                        false => arguments.get(number.checked_sub(1)?).map(|value| vec![value.clone()]),
                    }
                }
                Err(_) => Some(split(self.variables.get(name)?)),
            },
        }
    }

    /// Returns the path of the folder of now as `pwd` prints it.
    pub(super) fn current_folder(&self) -> Option<String> {
        let folder = self.folder.as_deref()?;
        Some(if folder.starts_with(['/', '~']) { folder.to_owned() } else { format!("{TOP}/{folder}") })
    }
}

// `FILES="a.sh b.sh"`: a list where each part looks like a path, else one name with blanks.
fn split(values: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    for value in values {
        let words: Vec<&str> = value.text.split_whitespace().collect();
        if words.len() > 1 && words.iter().all(|word| word.contains(['/', '.'])) {
            found.extend(words.into_iter().take(VALUES_MAX).map(|text| of_text(text.to_owned(), value.span)));
        } else {
            found.push(value.clone());
        }
    }
    found
}

/// Returns a name, or a pattern where the text is one.
pub(super) fn of_text(text: String, span: Span) -> Value {
    // Of extended patterns (`@(a|b)`), and what else `**` may mean, only that some text stands there is kept.
    let is_pattern = text.contains(['*', '?', '[']);
    if is_pattern && text.contains(['(', '|']) {
        let end = text.find(['(', '@', '+', '!', '*', '?']).unwrap_or(0);
        return Value::pattern(format!("{}*", escape_glob(&text[..end])), span);
    }
    Value { text, is_pattern, span }
}

/// Writes a name as a pattern that only it matches.
pub(super) fn escape_glob(text: &str) -> String {
    if !is_glob(text) {
        return text.to_owned();
    }
    let escape = |c: char| match c {
        '*' | '?' | '[' | '{' | '}' => format!("[{c}]"),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Expands `{a,b}` as bash does; a sequence (`{1..9}`) becomes `*`.
pub(super) fn expand_braces(text: &str) -> Vec<String> {
    let Some((start, end)) = pair(text) else { return vec![text.to_owned()] };
    let (before, inside, after) = (&text[..start], &text[start + 1..end], &text[end + 1..]);
    let mut choices: Vec<&str> = Vec::new();
    let (mut depth, mut from) = (0_usize, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                choices.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    choices.push(&inside[from..]);
    if choices.len() == 1 {
        choices = vec!["*"];
    }
    let made = choices.iter().flat_map(|choice| expand_braces(&format!("{before}{choice}{after}")));
    made.take(VALUES_MAX).collect()
}

fn pair(text: &str) -> Option<(usize, usize)> {
    let start = text.find('{')?;
    let mut depth = 0_usize;
    for (at, c) in text[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let inside = &text[start + 1..start + at];
            return (inside.contains(',') || inside.contains("..")).then_some((start, start + at));
        }
    }
    None
}

/// Joins a folder and a name below it.
pub(super) fn joined(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("" | ".", name) => name.to_owned(),
        (folder, "" | ".") => folder.to_owned(),
        (folder, name) => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// Takes `.`, `..` and double slashes out of a relative path; a path out of the workspace keeps its `..` at the start.
pub(super) fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the folder of a path: the text before its last slash.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
