//! Hover texts for the place under the pointer: findings, fields, steps, subscriptions.

use std::path::Path;

use gen_lsp_types as lsp;
use planctl_engine::Subscription;
use planctl_glob::is_glob;
use planctl_harness::{PathKind, expand_glob, probe_paths};
use planctl_lang::fields::{self, FieldHelp};
use planctl_lang::{Diagnostic, Span, escape, show};

use super::document::{Document, Reading};
use super::findings;

/// The most files of a glob that are named.
const FILES_MAX: usize = 20;

/// Returns what there is to say about a place.
pub fn hover(document: &Document, position: lsp::Position) -> Option<lsp::Hover> {
    let offset = document.text.offset(position);
    let reading = document.reading();
    let mut parts: Vec<(Span, String)> = Vec::new();
    parts.extend(findings::marked_findings(document).filter_map(|found| finding(found, offset)));
    // The nearest comes first.
    parts.sort_by_key(|(span, _)| span.end - span.start);
    parts.extend(field_at(document, &reading, offset).map(|(span, help)| (span, field_words(help))));
    parts.extend(step(&reading, offset));
    parts.extend(subscription(document, &reading, offset));
    let range = parts.iter().map(|(span, _)| *span).min_by_key(|span| span.end - span.start)?;
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: texts.join("\n\n---\n\n") };
    Some(lsp::Hover { contents: contents.into(), range: Some(document.text.places().range(range)) })
}

fn finding(found: &Diagnostic, offset: usize) -> Option<(Span, String)> {
    let span = found.spans.first()?.span;
    let is_there = span.start <= offset && offset < span.end.max(span.start + 1);
    is_there.then(|| {
        (span, format!("**{}** {}\n\n{}", found.code, found.code.title(), found.code.explain().text))
    })
}

/// Returns the field whose name stands at an offset, with the name's place.
fn field_at(document: &Document, reading: &Reading, offset: usize) -> Option<(Span, &'static FieldHelp)> {
    let line = document.text.line(document.text.line_of(offset))?;
    let text = &document.text.as_str()[line.start..line.end];
    let frontmatter =
        reading.tree.frontmatter.span.is_some_and(|span| span.start < offset && offset < span.end);
    let (name, known) = if frontmatter {
        (text.split_once(':')?.0, fields::FRONTMATTER)
    } else if text.trim_start().starts_with("exit_code") {
        ("exit_code", fields::OF_STEP)
    } else {
        let bold = text.trim_start().strip_prefix("**")?;
        let name = bold.split(['*', ':']).next()?;
        let is_in_step = reading.step_at(offset).is_some();
        (name, if is_in_step { fields::OF_STEP } else { fields::OF_PLAN })
    };
    let start = line.start + text.find(name)?;
    let span = Span::new(start, start + name.len());
    if offset < span.start || offset > span.end {
        return None;
    }
    let name = name.trim().to_lowercase().replace([' ', '-'], "_");
    Some((span, known.iter().find(|help| help.name == name)?))
}

/// Says what a field means.
pub fn field_words(help: &FieldHelp) -> String {
    let default = match help.default {
        "required" => "required".to_owned(),
        default => format!("default: {default}"),
    };
    let example = match help.name {
        _ if fields::FRONTMATTER.contains(help) => {
            format!("{}: {}", help.label, help.example)
        }
        "exit_code" => help.example.to_owned(),
        _ if help.example.starts_with('\n') => format!("**{}:**{}", help.label, help.example),
        _ => format!("**{}:** {}", help.label, help.example),
    };
    format!("**{}** ({default})\n\n{}\n\n````markdown\n{example}\n````", help.label, help.meaning)
}

fn step(reading: &Reading, offset: usize) -> Option<(Span, String)> {
    let (at, step) = reading.step_at(offset)?;
    if offset > step.heading.end {
        return None;
    }
    let shown = show(&reading.source);
    let shown = shown.steps.get(at)?;
    let mut text = format!("**step {}** as it will run\n", shown.number);
    // The text's own task and contract stand right below the heading.
    for setting in shown.settings.iter().filter(|setting| !matches!(setting.name, "task" | "contract")) {
        let mark = if setting.is_default { " _(default)_" } else { "" };
        text.push_str(&format!("\n- {}: `{}`{mark}", setting.name, escape(&setting.value).replace('`', "'")));
    }
    Some((step.heading, text))
}

fn subscription(document: &Document, reading: &Reading, offset: usize) -> Option<(Span, String)> {
    let (_, step) = reading.step_at(offset)?;
    let mut subscriptions = step.node.attributes.subscriptions.entries().iter();
    let found = subscriptions.find(|found| found.span.start <= offset && offset <= found.span.end)?;
    let text = match &found.value {
        Subscription::Topic { name } => {
            format!("Notes of the topic `{}`: those before the step begins go into its prompt.", escape(name))
        }
        Subscription::File { path } if is_glob(path) => glob_words(&document.workspace, path),
        Subscription::File { path } => file_words(&document.workspace, path),
    };
    Some((found.span, text))
}

fn file_words(workspace: &Path, path: &str) -> String {
    let kinds = probe_paths(workspace, [path]).unwrap_or_default();
    let what = match kinds.get(path) {
        Some(PathKind::Regular { bytes, .. }) => format!("{bytes} bytes, goes into the prompt"),
        Some(PathKind::Missing) => "is not there yet".to_owned(),
        Some(PathKind::Directory) => "is a directory".to_owned(),
        Some(PathKind::Outside { .. }) => "leads out of the workspace".to_owned(),
        Some(PathKind::Special(word)) => format!("is a {word}"),
        Some(PathKind::Unreadable { reason }) => format!("can't be read: {}", escape(reason)),
        None => "can't be looked at".to_owned(),
    };
    format!("`{}` in `{}`: {what}", escape(path), escape(&workspace.to_string_lossy()))
}

fn glob_words(workspace: &Path, glob: &str) -> String {
    let Ok(found) = expand_glob(workspace, glob, FILES_MAX + 1) else {
        return format!("`{}` is not a valid glob", escape(glob));
    };
    let mut text = match found.files.len() {
        0 => "matches nothing".to_owned(),
        1 => "matches one file:".to_owned(),
        count if count > FILES_MAX => format!("matches more than {FILES_MAX} files, such as:"),
        count => format!("matches {count} files:"),
    };
    for file in found.files.iter().take(FILES_MAX) {
        text.push_str(&format!("\n- `{}`", escape(file)));
    }
    format!("`{}` {text}", escape(glob))
}
