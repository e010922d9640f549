//! Reads the block between the `---` lines: keys whose values are texts, numbers or lists of texts; unknown ones are kept.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Parser};

use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::syntax::alike;
use crate::syntax::source::Source;
use crate::text::near::nearest;
use crate::text::{Span, Spanned, escape, yaml_text};
use crate::tree::workflow::Library;
use crate::tree::{Field, Frontmatter};

/// The statuses of a plan, in the order of its life.
pub const STATUSES: [&str; 6] = ["draft", "verified", "approved", "in-progress", "done", "failed"];

const KEYS: [&str; 9] = [
    "type",
    "status",
    "owner",
    "library",
    "domains",
    "triggers",
    "trigger_threshold",
    "stale_after_turns",
    "then",
];
/// The most entries of a list.
const LIST_MAX: usize = 100;
const LINES_MAX: usize = 50;
const SAMPLE: &str = "begin the file with\n---\ntype: plan\nstatus: draft\nowner: orchestrator\n---";

/// Returns the frontmatter of a new plan.
pub fn draft_frontmatter(owner: &str) -> String {
    format!("---\ntype: plan\nstatus: draft\nowner: {}\n---\n", yaml_text(owner))
}

/// Reads the frontmatter and returns it with the line where the body begins, from 0.
pub(super) fn read(source: &Source, found: &mut Vec<Diagnostic>) -> (Frontmatter, usize) {
    let lines = source.line_count();
    let first = source.line_span(0);
    let opening = Span::new(first.start + source.bom_bytes(), first.end);
    if source.slice(opening).trim_end() != "---" {
        let missing = Diagnostic::new(Code::P001, "the plan has no frontmatter: line 1 must be `---`");
        found.push(missing.at(opening, "`---` was expected here").help(SAMPLE));
        return (Frontmatter::default(), 0);
    }
    let closing = (1..lines.min(LINES_MAX)).find(|&line| {
        let text = source.slice(source.line_span(line)).trim_end();
        text == "---" || text == "..."
    });
    let Some(closing) = closing else {
        let message = "the frontmatter is not closed: it starts at line 1, and no closing `---` is in the first 50 lines";
        let open = Diagnostic::new(Code::P001, message).at(opening, "starts here").help(SAMPLE);
        let body = (1..lines).find(|&line| !is_key_line(source.slice(source.line_span(line))));
        found.push(match body.filter(|line| *line > 1) {
            Some(line) => open.fix(Span::at(source.line_span(line).start), "---\n", true),
            None => open,
        });
        return (Frontmatter::default(), body.unwrap_or(lines));
    };
    let span = Span::new(opening.start, source.line_span(closing).end);
    let frontmatter = Frontmatter { span: Some(span), ..Frontmatter::default() };
    let mut reader = Reader { source, found, frontmatter, near: Vec::new(), given: BTreeMap::new() };
    reader.read_lines(1, closing);
    reader.keep_fixes_that_fit();
    reader.check_values(opening);
    (reader.frontmatter, closing + 1)
}

fn is_list(key: &str) -> bool {
    matches!(key, "domains" | "triggers")
}

fn is_sequence(event: &Event<'_>) -> bool {
    matches!(event, Event::SequenceStart(..))
}

fn is_key_line(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

struct Reader<'a> {
    source: &'a Source,
    found: &'a mut Vec<Diagnostic>,
    frontmatter: Frontmatter,
    /// Findings about unknown keys, and the key that each was taken for.
    near: Vec<(usize, &'static str)>,
    /// The known keys that have a value, each with the place of the first.
    given: BTreeMap<String, Span>,
}

impl Reader<'_> {
    fn read_lines(&mut self, first: usize, closing: usize) {
        let start = self.source.line_span(first).start;
        let end = self.source.line_span(closing).start;
        let tabs: Vec<usize> = (first..closing).filter_map(|line| self.leading_tab(line)).collect();
        for at in &tabs {
            let column = self.source.position(*at).column;
            let message = format!("a tab indents the frontmatter (column {column}); YAML takes spaces only");
            let tab = Diagnostic::new(Code::P001, message).at(Span::new(*at, at + 1), "this is a tab");
            let line = self.source.line_span(self.source.line_of(*at));
            let text = self.source.slice(line);
            let indent = text.len() - text.trim_start().len();
            let is_key = KEYS.iter().any(|key| text.trim_start().starts_with(&format!("{key}:")));
            let tab = tab.help("keys begin at the start of their line");
            self.found.push(tab.fix(Span::new(line.start, line.start + indent), "", is_key));
        }
        if !tabs.is_empty() {
            return self.read_plainly(first, closing);
        }
        let before = self.found.len();
        if let Err((offset, why)) = self.read_events(start, end) {
            // Findings about the part before come again when the lines are read one by one.
            self.found.truncate(before);
            self.near.clear();
            self.given.clear();
            let message = format!("the frontmatter is not valid YAML: {}", escape(&why));
            let invalid = Diagnostic::new(Code::P001, message).at(Span::at(offset), "here");
            self.found.push(invalid.help("write one `key: value` per line"));
            self.frontmatter = Frontmatter { span: self.frontmatter.span, ..Frontmatter::default() };
            self.read_plainly(first, closing);
        }
    }

    fn leading_tab(&self, line: usize) -> Option<usize> {
        let span = self.source.line_span(line);
        let text = self.source.slice(span);
        let blank = text.len() - text.trim_start().len();
        text[..blank].find('\t').filter(|_| !text.trim().is_empty()).map(|at| span.start + at)
    }

    // Walks the top level only; a nested value is skipped whole.
    fn read_events(&mut self, start: usize, end: usize) -> Result<(), (usize, String)> {
        let text = self.source.slice(Span::new(start, end));
        let mut key: Option<Spanned<String>> = None;
        let mut list: Option<(Spanned<String>, Vec<Spanned<String>>)> = None;
        let mut depth = 0_usize;
        for event in Parser::new_from_str(text) {
            let (event, place) = event
                .map_err(|error| (start + byte_of(text, error.marker().index()), error.info().to_owned()))?;
            let range = place.byte_range().unwrap_or(0..0);
            let span = Span::new(start + range.start, start + range.end);
            if event.tag().is_some() || event.anchor_id().is_some() || event.is_alias() {
                return Err((span.start, "tags, anchors and aliases are refused".into()));
            }
            let opens = matches!(event, Event::MappingStart(..) | Event::SequenceStart(..));
            let closes = matches!(event, Event::MappingEnd | Event::SequenceEnd);
            if opens {
                depth += 1;
                match key.take() {
                    Some(name) if depth == 2 && is_list(&name.value) && is_sequence(&event) => {
                        list = Some((name, Vec::new()));
                    }
                    Some(name) if depth == 2 => self.take(name, None),
                    Some(name) => key = Some(name),
                    None if depth == 1 && is_sequence(&event) => {
                        return Err((span.start, "a list stands where `key: value` lines belong".into()));
                    }
                    None => {}
                }
            } else if closes {
                depth = depth.saturating_sub(1);
                if let Some((name, entries)) = list.take_if(|_| depth == 1) {
                    self.take_list(&name, entries);
                }
            } else if let Some((value, _)) = event.scalar() {
                // YAML's null is written as nothing; here it is an empty text.
                let value = if range.is_empty() { "" } else { value };
                match (depth, key.take()) {
                    (0, _) => return Err((span.start, "`key: value` was expected".into())),
                    (1, None) => key = Some(Spanned::new(value.to_owned(), span)),
                    (1, Some(name)) => self.take(name, Some(Spanned::new(value.to_owned(), span))),
                    (2, _) => {
                        if let Some((_, entries)) = &mut list {
                            entries.push(Spanned::new(value.to_owned(), span));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    // Reads `key: value` lines where YAML refused the block, so that the rest of the findings still appear.
    fn read_plainly(&mut self, first: usize, closing: usize) {
        for line in first..closing {
            let span = self.source.line_span(line);
            let text = self.source.slice(span);
            let Some((key, value)) = text.split_once(':') else { continue };
            let name = key.trim();
            let at = span.start + key.len() - key.trim_start().len();
            let value_at = span.start + key.len() + 1 + value.len() - value.trim_start().len();
            let value = value.trim();
            let spanned = Spanned::new(value.to_owned(), Span::new(value_at, value_at + value.len()));
            self.take(Spanned::new(name.to_owned(), Span::new(at, at + name.len())), Some(spanned));
        }
    }

    fn take(&mut self, key: Spanned<String>, value: Option<Spanned<String>>) {
        match (key.value.as_str(), value) {
            ("trigger_threshold" | "stale_after_turns", value) => self.take_number(&key, value),
            // One entry needs no list.
            (name, Some(value)) if is_list(name) => self.take_list(&key, vec![value]),
            (name, None) if is_list(name) => self.wrong_type(&key, "a list of texts", "this is a mapping"),
            (name, None) if KEYS.contains(&name) => {
                self.wrong_type(&key, "text", "this is a list or a mapping");
            }
            (name, Some(value)) if KEYS.contains(&name) => {
                if !self.is_first(&key, value.span) {
                    return;
                }
                let Frontmatter { kind, status, owner, library, .. } = &mut self.frontmatter;
                let slot = match name {
                    "type" => kind,
                    "status" => status,
                    "library" => &mut library.id,
                    "then" => &mut library.then,
                    _ => owner,
                };
                *slot = Some(value);
            }
            (_, _) => self.take_unknown(key),
        }
    }

    fn take_number(&mut self, key: &Spanned<String>, value: Option<Spanned<String>>) {
        let least = u32::from(key.value == "stale_after_turns");
        let number = value.as_ref().and_then(|value| value.value.trim().parse::<u32>().ok());
        let Some((number, value)) = number.filter(|number| *number >= least).zip(value.as_ref()) else {
            let place = value.map_or(key.span, |value| value.span);
            let message = format!("`{}` must be a whole number from {least}", key.value);
            return self
                .found
                .push(Diagnostic::new(Code::P001, message).at(place, "this is not such a number"));
        };
        if self.is_first(key, value.span) {
            let Library { trigger_threshold, stale_after_turns, .. } = &mut self.frontmatter.library;
            let slot = if key.value == "trigger_threshold" { trigger_threshold } else { stale_after_turns };
            *slot = Some(Spanned::new(number, value.span));
        }
    }

    fn take_list(&mut self, key: &Spanned<String>, entries: Vec<Spanned<String>>) {
        if let Some(empty) = entries.iter().find(|entry| entry.value.trim().is_empty()) {
            let message = format!("`{}` has an empty entry", key.value);
            let place = if empty.span.is_empty() { key.span } else { empty.span };
            self.found.push(Diagnostic::new(Code::P001, message).at(place, "nothing stands here"));
            return;
        }
        if entries.len() > LIST_MAX {
            let message =
                format!("`{}` has {} entries, and {LIST_MAX} is the most", key.value, entries.len());
            let first = entries.get(LIST_MAX).map_or(key.span, |entry| entry.span);
            self.found.push(Diagnostic::new(Code::P008, message).at(first, "the first that is too many"));
            return;
        }
        if entries.first().is_some_and(|first| self.is_first(key, first.span)) {
            let Library { domains, triggers, .. } = &mut self.frontmatter.library;
            let slot = if key.value == "domains" { domains } else { triggers };
            *slot = entries;
        }
    }

    fn wrong_type(&mut self, key: &Spanned<String>, expected: &str, label: &str) {
        let message = format!("`{}` must be {expected}", key.value);
        self.found.push(Diagnostic::new(Code::P001, message).at(key.span, label));
    }

    /// Notes that a key has a value, and says whether it had none before.
    fn is_first(&mut self, key: &Spanned<String>, value: Span) -> bool {
        let Some(first) = self.given.get(&key.value) else {
            self.given.insert(key.value.clone(), value);
            return true;
        };
        let line = self.source.position(first.start).line;
        let twice = Diagnostic::new(Code::P001, format!("`{}` is given twice", key.value));
        let twice = twice.at(key.span, "again here").at(*first, format!("first on line {line}"));
        self.found.push(twice.help("keep one of the two lines"));
        false
    }

    fn take_unknown(&mut self, key: Spanned<String>) {
        let name = escape(&key.value);
        if let Some(first) = self.frontmatter.unknown.iter().find(|known| known.value == key.value) {
            let twice = Diagnostic::new(Code::P001, format!("`{name}` is given twice"));
            self.found.push(twice.at(key.span, "again here").at(first.span, "first here"));
            return;
        }
        if let Some(meant) = alike::in_ascii(&key.value)
            && let Some(known) = KEYS.iter().find(|known| **known == meant)
        {
            self.near.push((self.found.len(), known));
            self.found.push(alike::report(&key.value, known, key.span));
            return self.frontmatter.unknown.push(key);
        }
        let mut unknown =
            Diagnostic::new(Code::P002, format!("unknown frontmatter key `{name}`; it is kept"));
        unknown = unknown.at(key.span, "planctl does nothing with it");
        let near = nearest(&key.value, KEYS);
        let help = match near.map(|near| near.word) {
            Some(known) => {
                self.near.push((self.found.len(), known));
                unknown = unknown.fix(key.span, known, near.is_some_and(|near| near.is_only));
                format!("did you mean `{known}`?")
            }
            None if did_you_mean(&key.value, Field::OF_PLANS.map(Field::as_str)).is_some() => {
                "the fields of the plan stand in the body: `**Budget:** max 200k tokens`".to_owned()
            }
            None => format!("the keys are {}", KEYS.map(|key| format!("`{key}`")).join(", ")),
        };
        self.found.push(unknown.help(help));
        self.frontmatter.unknown.push(key);
    }

    // A key that is there already, or that two others were taken for, can't be what was meant.
    fn keep_fixes_that_fit(&mut self) {
        let mut taken: Vec<&str> = Vec::new();
        for (at, key) in &self.near {
            if self.given.contains_key(*key) || taken.contains(key) {
                self.found[*at].fix = None;
            }
            taken.push(key);
        }
    }

    fn check_values(&mut self, opening: Span) {
        match &self.frontmatter.kind {
            None => {
                let missing = Diagnostic::new(Code::P001, "the frontmatter has no `type`");
                let missing = missing.at(opening, "within this block").help("add the line `type: plan`");
                let is_near = self.near.iter().any(|(_, key)| *key == "type");
                let next = self.source.line_span(1).start;
                self.found.push(match is_near {
                    true => missing,
                    false => missing.fix(Span::at(next), "type: plan\n", true),
                });
            }
            Some(kind) if alike::in_ascii(&kind.value).is_some_and(|meant| meant == "plan") => {
                self.found.push(alike::report(&kind.value, "plan", kind.span));
            }
            Some(kind) if kind.value != "plan" => {
                let message = format!("`type` must be `plan`, and is `{}`", escape(&kind.value));
                let wrong = Diagnostic::new(Code::P001, message).at(kind.span, "expected `plan`");
                let is_near = did_you_mean(&kind.value, ["plan"]).is_some();
                self.found.push(wrong.help("write `type: plan`").fix(kind.span, "plan", is_near));
            }
            Some(_) => {}
        }
        match &self.frontmatter.owner {
            None => {
                let note = Diagnostic::new(Code::P020, "`owner` is missing; `orchestrator` is taken");
                self.found.push(note.at(opening, "within this block"));
            }
            Some(owner) if owner.value.trim().is_empty() => {
                let empty =
                    Diagnostic::new(Code::P001, "`owner` is empty").at(owner.span, "nothing stands here");
                let empty = empty.help("write the role that owns the run, such as `owner: orchestrator`");
                let at = self.source.line_span(self.source.line_of(owner.span.start));
                let is_line = self.source.slice(at).trim_start().starts_with("owner:");
                self.found.push(match is_line {
                    true => empty.fix(at, "owner: orchestrator", false),
                    false => empty,
                });
            }
            Some(_) => {}
        }
        let Some(status) = &self.frontmatter.status else { return };
        if STATUSES.contains(&status.value.as_str()) {
            return;
        }
        if let Some(meant) = alike::in_ascii(&status.value)
            && STATUSES.contains(&meant.as_str())
        {
            self.found.push(alike::report(&status.value, &meant, status.span));
            return;
        }
        let message = format!("unknown status `{}`; it is ignored", escape(&status.value));
        let list = STATUSES.join(", ");
        let mut unknown = Diagnostic::new(Code::P002, message).level(Severity::Warning);
        unknown = unknown.at(status.span, "").note(format!("the statuses are {list}; planctl sets them"));
        let near = did_you_mean(&status.value, STATUSES);
        let help = near.map_or("write `draft`, or leave the line out".to_owned(), |near| {
            format!("did you mean `{near}`? planctl sets it; `draft` is right here")
        });
        unknown = unknown.help(help);
        self.found.push(match status.span.is_empty() {
            true => unknown,
            false => unknown.fix(status.span, "draft", true),
        });
    }
}

fn byte_of(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}
