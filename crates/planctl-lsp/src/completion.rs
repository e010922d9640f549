//! Completion at a place: fields, their values, roles, files.

use std::collections::BTreeSet;

use gen_lsp_types as lsp;
use planctl_harness::existing_files;
use planctl_lang::Span;
use planctl_lang::fields::{self, FieldHelp};

use super::document::{Document, Reading};
use super::hover::field_words;
use super::text::Places;

/// The most entries that are offered at once.
const ENTRIES_MAX: usize = 200;

/// Returns what can be written at a place; `roles` are those of the configuration.
pub fn complete(
    document: &Document,
    position: lsp::Position,
    roles: &BTreeSet<String>,
) -> lsp::CompletionList {
    let offset = document.text.offset(position);
    let reading = document.reading();
    let line = document.text.line(document.text.line_of(offset)).unwrap_or_default();
    let before = &document.text.as_str()[line.start..offset.max(line.start)];
    let places = document.text.places();
    let cursor = Cursor { document, places, reading: &reading, offset, before };
    let mut items = cursor.items(roles);
    let is_incomplete = items.len() > ENTRIES_MAX;
    items.truncate(ENTRIES_MAX);
    lsp::CompletionList { is_incomplete, items, ..lsp::CompletionList::default() }
}

struct Cursor<'a> {
    document: &'a Document,
    places: Places<'a>,
    reading: &'a Reading,
    offset: usize,
    /// The line up to the cursor.
    before: &'a str,
}

impl Cursor<'_> {
    fn items(&self, roles: &BTreeSet<String>) -> Vec<lsp::CompletionItem> {
        let tree = &self.reading.tree;
        if tree.frontmatter.span.is_some_and(|span| span.start < self.offset && self.offset < span.end) {
            return self.complete_frontmatter();
        }
        if self.is_in_fence() {
            return Vec::new();
        }
        if let Some(typed) = self.before.trim_start().strip_prefix("- ").map(str::trim_start) {
            return self.complete_list(typed);
        }
        if let Some((name, typed)) = self.field_before() {
            return self.values(&name, typed, roles);
        }
        let typed = self.before.trim_start();
        let is_begin =
            typed.chars().all(|c| c == '*' || c == '_' || c.is_alphanumeric()) && typed.len() <= 40;
        if is_begin { self.fields(typed) } else { Vec::new() }
    }

    // Text in a fence is a script, even while its end is not written yet.
    fn is_in_fence(&self) -> bool {
        let from = self.reading.step_at(self.offset).map_or(0, |(_, step)| step.heading.end);
        // On the heading's own line nothing is above.
        let above =
            self.document.text.as_str().get(from..self.offset - self.before.len()).unwrap_or_default();
        let is_fence =
            |line: &&str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        above.lines().filter(is_fence).count() % 2 == 1
    }

    fn complete_frontmatter(&self) -> Vec<lsp::CompletionItem> {
        let Some((key, typed)) = self.before.split_once(':') else {
            let items = fields::FRONTMATTER.iter().map(|help| {
                self.item(help.label, &format!("{}: ", help.label), self.before.trim_start(), Some(help))
            });
            return items.collect();
        };
        let help = fields::FRONTMATTER.iter().find(|help| help.name == key.trim());
        let values = help.map_or(&[][..], |help| help.values);
        values.iter().map(|value| self.item(value, value, typed.trim_start(), None)).collect()
    }

    fn complete_list(&self, typed: &str) -> Vec<lsp::CompletionItem> {
        let Some((kind, typed_path)) = typed.split_once(':') else {
            return ["file:", "topic:"].iter().map(|kind| self.item(kind, kind, typed, None)).collect();
        };
        if kind != "file" {
            return Vec::new();
        }
        let typed_path = typed_path.trim_start();
        let files = self.files(typed_path, |_| true);
        files.iter().map(|file| self.item(file, file, typed_path, None)).collect()
    }

    /// Returns files of the workspace that fit what was typed; those that begin with it come first.
    fn files(&self, typed: &str, is_wanted: fn(&str) -> bool) -> Vec<String> {
        let typed = typed.to_lowercase();
        let mut files: Vec<String> = existing_files(&self.document.workspace);
        files.retain(|file| is_wanted(file) && file.to_lowercase().contains(&typed));
        files.sort_by_key(|file| (!file.to_lowercase().starts_with(&typed), file.clone()));
        files.truncate(ENTRIES_MAX + 1);
        files
    }

    /// Returns the field whose value the cursor stands in, and what stands there of it.
    fn field_before(&self) -> Option<(String, &str)> {
        let bold = self.before.trim_start().strip_prefix("**")?;
        let (name, typed) = bold.split_once("**").filter(|(name, _)| name.ends_with(':'))?;
        let name = name.trim_end_matches(':').trim().to_lowercase().replace([' ', '-'], "_");
        Some((name, typed.trim_start()))
    }

    fn values(&self, name: &str, typed: &str, roles: &BTreeSet<String>) -> Vec<lsp::CompletionItem> {
        let is_in_step = self.reading.step_at(self.offset).is_some();
        if is_in_step && name == "target" {
            let steps = self.reading.tree.steps.iter();
            let used = steps.filter_map(|step| Some(step.node.role.as_ref()?.value.clone()));
            let mut roles: BTreeSet<String> = roles.iter().cloned().chain(used).collect();
            roles.remove(typed);
            return roles.iter().map(|role| self.value(role, typed)).collect();
        }
        if is_in_step && name == "plan" {
            let files =
                self.files(typed, |file| [".md", ".json", ".dot"].iter().any(|end| file.ends_with(end)));
            return files.iter().map(|file| self.value(file, typed)).collect();
        }
        let known = if is_in_step { fields::OF_STEP } else { fields::OF_PLAN };
        let values = known.iter().find(|help| help.name == name).map_or(&[][..], |help| help.values);
        values.iter().map(|value| self.value(value, typed)).collect()
    }

    // A blank stands between the field and its value.
    fn value(&self, value: &str, typed: &str) -> lsp::CompletionItem {
        let blank = if self.before.ends_with("**") { " " } else { "" };
        self.item(value, &format!("{blank}{value}"), typed, None)
    }

    fn fields(&self, typed: &str) -> Vec<lsp::CompletionItem> {
        let step = self.reading.step_at(self.offset);
        let (known, from, to) = match step {
            Some((at, step)) => (fields::OF_STEP, step.heading.end, self.reading.end_of(at)),
            None => {
                let steps =
                    self.reading.tree.steps_heading.map_or(self.document.text.as_str().len(), |at| at.start);
                (fields::OF_PLAN, self.reading.tree.frontmatter.span.map_or(0, |span| span.end), steps)
            }
        };
        let body = self.reading.source.slice(Span::new(from, to)).to_lowercase();
        let is_given = |help: &&FieldHelp| body.contains(&format!("**{}:**", help.name));
        let missing = known.iter().filter(|help| !is_given(help));
        missing
            .map(|help| {
                let text = match help.name {
                    "exit_code" => help.example.to_owned(),
                    _ if help.example.starts_with('\n') => format!("**{}:**{}", help.label, help.example),
                    "task" | "contract" => format!("**{}:**\n", help.label),
                    _ => format!("**{}:** ", help.label),
                };
                self.item(help.label, &text, typed, Some(help))
            })
            .collect()
    }

    /// Makes an entry that replaces what was typed.
    fn item(&self, label: &str, text: &str, typed: &str, help: Option<&FieldHelp>) -> lsp::CompletionItem {
        let span = Span::new(self.offset - typed.len(), self.offset);
        let range = self.places.range(span);
        let documentation = help.map(|help| {
            lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: field_words(help) }.into()
        });
        lsp::CompletionItem {
            label: label.to_owned(),
            kind: Some(match help {
                Some(_) => lsp::CompletionItemKind::Field,
                None => lsp::CompletionItemKind::Value,
            }),
            detail: help.map(|help| match help.default {
                "required" => "required".to_owned(),
                default => format!("default: {default}"),
            }),
            documentation,
            filter_text: Some(text.lines().next().unwrap_or(text).to_owned()),
            text_edit: Some(lsp::TextEdit { range, new_text: text.to_owned() }.into()),
            ..lsp::CompletionItem::default()
        }
    }
}
