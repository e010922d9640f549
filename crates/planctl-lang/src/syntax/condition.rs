//! Reads conditions: one language for DOT's `condition=`, JSON's `condition` and markdown's `**when:**` and `## Flow` (C1–C8).

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use winnow::combinator::{alt, delimited, repeat};
use winnow::prelude::*;
use winnow::token::{any, take_while};

use crate::diagnostic::{Code, Diagnostic};
use crate::text::near::{ask_or_say, nearest};
use crate::text::{Span, escape};

/// The most bytes of a condition.
pub const CONDITION_BYTES_MAX: usize = 1024;

/// A condition as read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// The condition.
    pub condition: Condition,
    /// Where `==` stands in the text, which is taken for `=`.
    pub double_signs: Vec<Span>,
    /// Where each clause stands in the text.
    pub clauses: Vec<Span>,
}

/// A text that was read as a condition.
pub type Read = Result<Reading, Refused>;

/// Why a text is no condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The part of the text that can't be read.
    pub span: Span,
    /// The problem.
    pub message: String,
    /// The text to write instead.
    pub help: String,
    /// The part's meaning, where it is beyond doubt.
    pub meant: Option<String>,
}

const HELP: &str = "a condition is `KEY=VALUE` or `KEY!=VALUE`, several joined by `&&`; keys are `outcome`, \
                    `preferred_label`, `context.NAME` and `steps.NODE.exit_code`";

/// Signs and words that the language reserves and does not have (C7).
const RESERVED: [(&str, &str); 12] = [
    ("||", "write one edge for each of the alternatives"),
    ("<=", "compare with `=` or `!=`, or let a command decide"),
    (">=", "compare with `=` or `!=`, or let a command decide"),
    ("<", "compare with `=` or `!=`, or let a command decide"),
    (">", "compare with `=` or `!=`, or let a command decide"),
    ("(", "clauses are joined by `&&` only, so they need no parentheses"),
    (")", "clauses are joined by `&&` only, so they need no parentheses"),
    ("contains", "compare with `=`, or let a command decide"),
    ("matches", "compare with `=`, or let a command decide"),
    ("or", "write one edge for each of the alternatives"),
    ("and", "write `&&`"),
    ("not", "write `KEY!=VALUE`"),
];

/// Names that other readers of the dialect give to values of the context, and planctl's names for them: a closed list (DOT
/// B4).
pub const ALIASES: [(&str, &str); 8] = [
    ("tool_stdout", "tool.output"),
    ("tool_output", "tool.output"),
    ("tool.stdout", "tool.output"),
    ("tool_exit_code", "tool.exit_code"),
    ("tool_last_line", "tool.last_line"),
    ("last_line", "tool.last_line"),
    ("human_response", "human.gate.selected"),
    ("human.gate.text", "human.gate.selected"),
];

/// Returns planctl's name of a value of the context.
fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

/// Reads a condition; an empty text always holds.
///
/// # Errors
///
/// Returns the first part that can't be read (C6).
pub fn read(text: &str) -> Read {
    if text.len() > CONDITION_BYTES_MAX {
        return Err(Refused {
            span: Span::new(0, text.len()),
            message: format!(
                "the condition has {} bytes, and the limit is {CONDITION_BYTES_MAX}",
                text.len()
            ),
            help: "let a command decide: a node with `command` may ask whatever it likes".to_owned(),
            meant: None,
        });
    }
    let mut reader = Reader { text, at: 0, reading: Reading::default() };
    reader.skip();
    if reader.rest().is_empty() {
        return Ok(reader.reading);
    }
    loop {
        reader.clause()?;
        reader.skip();
        if reader.rest().is_empty() {
            return Ok(reader.reading);
        }
        if !reader.take("&&") {
            return Err(reader.expected("`&&` or the end of the condition"));
        }
        reader.skip();
    }
}

impl Refused {
    /// Makes the finding; `place` is the condition's text in the file, byte for byte, or all that can be pointed to.
    pub fn finding(self, place: Span, is_exact: bool) -> Diagnostic {
        let inner = Span::new(place.start + self.span.start, (place.start + self.span.end).min(place.end));
        let span = if is_exact { inner } else { place };
        let finding = Diagnostic::new(Code::P303, self.message).at(span, "").help(self.help);
        match self.meant {
            Some(meant) if is_exact => finding.fix(span, meant, false),
            Some(_) | None => finding,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    reading: Reading,
}

type Lexed<O> = winnow::Result<O, ()>;

fn key_text<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')).parse_next(input)
}

fn bare_word<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(1.., |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '-' | '/'))
        .parse_next(input)
}

/// Takes a text in double quotes, its escapes resolved; a backslash before any other letter than `"`, `n`, `t` and `\` is
/// kept, as Graphviz does (D7, C4).
pub(crate) fn string(input: &mut &str) -> Lexed<String> {
    fn piece<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        alt((
            take_while(1.., |c: char| c != '"' && c != '\\'),
            ('\\', '"').value("\""),
            ('\\', 'n').value("\n"),
            ('\\', 't').value("\t"),
            ('\\', '\\').value("\\"),
            ('\\', any).take(),
        ))
        .parse_next(input)
    }
    let pieces = repeat(0.., piece).fold(String::new, |text, piece| text + piece);
    delimited('"', pieces, '"').parse_next(input)
}

fn quoted(input: &mut &str) -> Lexed<String> {
    let single = take_while(0.., |c: char| c != '\'').map(str::to_owned);
    alt((string, delimited('\'', single, '\''))).parse_next(input)
}

impl<'t> Reader<'t> {
    fn clause(&mut self) -> Result<(), Refused> {
        let start = self.at;
        if self.rest().starts_with('!') {
            return Err(self.reserved("!", "write `KEY!=VALUE`"));
        }
        let key = self.key()?;
        let end = self.at;
        self.skip();
        let sign = self.at;
        // No outcome is empty.
        let may_be_empty = key != Key::Outcome;
        let test = if self.take("!=") {
            self.skip();
            Test::IsNot(self.value(may_be_empty)?)
        } else if self.take("==") {
            self.reading.double_signs.push(Span::new(sign, self.at));
            self.skip();
            Test::Is(self.value(may_be_empty)?)
        } else if self.take("=") {
            self.skip();
            Test::Is(self.value(may_be_empty)?)
        } else {
            self.at = end;
            Test::Truthy
        };
        self.reading.clauses.push(Span::new(start, self.at));
        self.reading.condition.clauses.push(Clause { key, test });
        Ok(())
    }

    fn key(&mut self) -> Result<Key, Refused> {
        if let Some(refused) = self.reserved_here() {
            return Err(refused);
        }
        let mut rest = self.rest();
        let Ok(key) = key_text(&mut rest) else { return Err(self.expected("a key")) };
        let span = Span::new(self.at, self.at + key.len());
        let is_sound = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.split('.').all(|part| !part.is_empty());
        if !is_sound {
            return Err(self.refused(span, format!("`{key}` is not a key"), HELP.to_owned()));
        }
        self.at = span.end;
        match key.split_once('.') {
            None if key == "outcome" => Ok(Key::Outcome),
            None if key == "preferred_label" => Ok(Key::PreferredLabel),
            Some(("context", name)) => Ok(Key::Context(own_name(name).to_owned())),
            Some(("steps", name)) => self.step(name, span),
            Some(_) | None => Ok(Key::Variable(own_name(key).to_owned())),
        }
    }

    fn step(&self, name: &str, span: Span) -> Result<Key, Refused> {
        let Some((node, word)) = name.rsplit_once('.') else {
            let help = format!("write what of it: `steps.{name}.exit_code`, `steps.{name}.outcome`");
            return Err(self.refused(span, format!("`steps.{name}` does not say what of the step"), help));
        };
        match StepField::ALL.into_iter().find(|field| field.as_str() == word) {
            Some(field) => Ok(Key::Step { node: node.to_owned(), field }),
            None => {
                let words = StepField::ALL.map(StepField::as_str);
                let near = nearest(word, words);
                let otherwise = format!("of a step there are `{}`", words.join("`, `"));
                let help = ask_or_say(near.map(|near| near.word), otherwise);
                let place = Span::new(span.end - word.len(), span.end);
                let mut refused = self.refused(place, format!("a step has no `{word}`"), help);
                refused.meant = near.map(|near| near.word.to_owned());
                Err(refused)
            }
        }
    }

    fn value(&mut self, may_be_empty: bool) -> Result<String, Refused> {
        let mut rest = self.rest();
        let start = self.at;
        if rest.starts_with(['"', '\'']) {
            let Ok(value) = quoted(&mut rest) else {
                let span = Span::new(start, start + 1);
                let help = "close the text with the same quote".to_owned();
                return Err(self.refused(span, "the text is not closed".to_owned(), help));
            };
            self.at = self.text.len() - rest.len();
            return Ok(value);
        }
        // C3: nothing after the sign is the empty text, which a key that nothing wrote has.
        if may_be_empty && (rest.is_empty() || rest.starts_with("&&")) {
            return Ok(String::new());
        }
        let Ok(value) = bare_word(&mut rest) else { return Err(self.expected("a value")) };
        self.at += value.len();
        self.refuse_more_words(start)?;
        Ok(value.to_owned())
    }

    // `preferred_label=Fix it`: taken whole by some readers, so what it means is asked.
    fn refuse_more_words(&self, start: usize) -> Result<(), Refused> {
        let all = self.text[start..].split("&&").next().unwrap_or_default().trim_end();
        let is_words =
            all.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ',' | '\''));
        let is_reserved = all.split(' ').any(|word| RESERVED.iter().any(|(reserved, _)| *reserved == word));
        if start + all.len() <= self.at || !is_words || is_reserved {
            return Ok(());
        }
        let span = Span::new(start, start + all.len());
        let mut refused = self.refused(
            span,
            "a value of several words stands in quotes".to_owned(),
            format!("write `\"{all}\"`"),
        );
        refused.meant = Some(format!("\"{all}\""));
        Err(refused)
    }

    fn reserved_here(&self) -> Option<Refused> {
        let rest = self.rest();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let word = rest.split(|c: char| !is_of_name(c)).next().unwrap_or_default();
        let is_here = |text: &str| {
            if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                word == text
            } else {
                rest.starts_with(text)
            }
        };
        let (text, help) = RESERVED.iter().find(|(text, _)| is_here(text))?;
        // A context may have a value of such a name.
        let is_key = rest[text.len()..].trim_start().starts_with(['=', '!', '.']);
        (!is_key).then(|| self.reserved(text, help))
    }

    fn reserved(&self, text: &str, help: &str) -> Refused {
        let message = format!("`{text}` is not in the language of conditions");
        self.refused(Span::new(self.at, self.at + text.len()), message, help.to_owned())
    }

    fn expected(&self, what: &str) -> Refused {
        if let Some(reserved) = self.reserved_here() {
            return reserved;
        }
        let rest = self.rest();
        let next = rest.chars().next();
        let found =
            next.map_or("the end of the condition".to_owned(), |c| format!("`{}`", escape(&c.to_string())));
        let span = Span::new(self.at, self.at + next.map_or(0, char::len_utf8));
        self.refused(span, format!("expected {what}, found {found}"), HELP.to_owned())
    }

    fn refused(&self, span: Span, message: String, help: String) -> Refused {
        Refused { span, message, help, meant: None }
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
}
