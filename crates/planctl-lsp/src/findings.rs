//! Findings as editors show them, and the changes that mend them.

use std::collections::HashMap;

use gen_lsp_types as lsp;
use planctl_lang::{
    Code, Diagnostic, Edit, Fix, Reach, Severity, Source, Span, allowing_edit, fixing_edits, printable,
};
use serde_json::json;

use super::document::Document;
use super::text::Places;

/// Returns the findings to mark in the text. That a default applies is no mark: hovers say it.
pub fn diagnostics(document: &Document) -> Vec<lsp::Diagnostic> {
    let places = document.text.places();
    marked_findings(document).map(|found| diagnostic(document, &places, found)).collect()
}

/// Returns the findings that are marked.
pub fn marked_findings(document: &Document) -> impl Iterator<Item = &Diagnostic> {
    let found = document.findings.iter().flat_map(|findings| &findings.diagnostics);
    found.filter(|found| found.code != Code::P020)
}

fn diagnostic(document: &Document, places: &Places<'_>, found: &Diagnostic) -> lsp::Diagnostic {
    let primary = found.spans.first().map(|label| label.span).unwrap_or_default();
    let others = found.spans.iter().skip(1).map(|label| lsp::DiagnosticRelatedInformation {
        location: lsp::Location { uri: document.uri.clone(), range: places.range(label.span) },
        message: if label.text.is_empty() { "here, too".to_owned() } else { printable(&label.text) },
    });
    let others: Vec<_> = others.collect();
    let is_needless = matches!(found.code, Code::P006 | Code::P209);
    lsp::Diagnostic {
        range: places.range(primary),
        severity: Some(match found.level {
            Severity::Error => lsp::DiagnosticSeverity::Error,
            Severity::Warning => lsp::DiagnosticSeverity::Warning,
            Severity::Note => lsp::DiagnosticSeverity::Information,
        }),
        code: Some(lsp::Code::String(found.code.as_str().to_owned())),
        code_description: None,
        source: Some("planctl".to_owned()),
        message: describe(found).into(),
        tags: is_needless.then(|| vec![lsp::DiagnosticTag::Unnecessary]),
        related_information: (!others.is_empty()).then_some(others),
        data: None,
    }
}

/// Says a finding in words: what is wrong, what stands there, what else there is to know, what to do.
pub fn describe(found: &Diagnostic) -> String {
    let mut text = found.message.clone();
    let label = found.spans.first().map(|label| label.text.as_str()).filter(|label| !label.is_empty());
    text.extend(label.map(|label| format!(": {label}")));
    text.extend(found.notes.iter().map(|note| format!("\nnote: {note}")));
    text.extend(found.help.iter().map(|help| format!("\nhelp: {help}")));
    printable(&text)
}

/// Returns the changes that mend what is found in a range, and the one that mends all that is safe to mend.
pub fn actions(document: &Document, params: &lsp::CodeActionParams) -> Vec<lsp::CodeAction> {
    let places = document.text.places();
    let start = document.text.offset(params.range.start);
    let end = document.text.offset(params.range.end);
    let touches = |found: &Diagnostic| {
        let span = found.spans.first().map(|label| label.span).unwrap_or_default();
        span.start <= end && start <= span.end
    };
    let mut actions = Vec::new();
    if is_wanted(params, "quickfix") {
        let found = marked_findings(document).filter(|found| touches(found));
        for found in found {
            actions.extend(quick_fix(document, &places, found));
            actions.extend(allow(document, &places, found));
        }
    }
    if is_wanted(params, "source.fixAll") {
        actions.extend(fix_all(document, &places));
    }
    actions
}

// A wish for `source` takes in `source.fixAll`, and one for `source.fixAll.planctl` is a wish for ours.
fn is_wanted(params: &lsp::CodeActionParams, kind: &str) -> bool {
    let Some(only) = &params.context.only else { return true };
    only.iter().any(|wanted| {
        let wanted = wanted.to_string();
        let is_within = |outer: &str, inner: &str| {
            outer.is_empty()
                || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        is_within(&wanted, kind) || wanted == format!("{kind}.planctl")
    })
}

fn quick_fix(document: &Document, places: &Places<'_>, found: &Diagnostic) -> Option<lsp::CodeAction> {
    let fix = found.fix.as_ref()?;
    let edits = fixing_edits(&document.reading().source, [found], Reach::Unsafe);
    let help = found.help.as_deref().map_or_else(|| fix_words(&fix.edits), ToOwned::to_owned);
    Some(lsp::CodeAction {
        title: format!("{}: {}", found.code, printable(&help)),
        kind: Some(lsp::CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(document, places, found)]),
        is_preferred: fix.safe.then_some(true),
        edit: Some(change(document, places, &edits)),
        ..lsp::CodeAction::default()
    })
}

// The comment lacks its reason, which is a finding until the author writes it.
fn allow(document: &Document, places: &Places<'_>, found: &Diagnostic) -> Option<lsp::CodeAction> {
    let source = &document.reading().source;
    let tree = &document.findings.as_ref()?.tree;
    let fix = Fix { edits: vec![allowing_edit(source, tree, found)?], safe: false };
    let allowing = Diagnostic { fix: Some(fix), ..found.clone() };
    Some(lsp::CodeAction {
        title: format!("{}: allow it here, and say why", found.code),
        kind: Some(lsp::CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(document, places, found)]),
        edit: Some(change(document, places, &fixing_edits(source, [&allowing], Reach::Unsafe))),
        ..lsp::CodeAction::default()
    })
}

fn fix_words(edits: &[Edit]) -> String {
    match edits {
        [Edit { replacement, .. }] if replacement.is_empty() => "delete it".to_owned(),
        [Edit { replacement, .. }] => format!("write `{}`", planctl_lang::escape(replacement)),
        _ => "mend it".to_owned(),
    }
}

fn fix_all(document: &Document, places: &Places<'_>) -> Option<lsp::CodeAction> {
    let edits = fixing_edits(&document.reading().source, marked_findings(document), Reach::Safe);
    (!edits.is_empty()).then(|| lsp::CodeAction {
        title: "planctl: apply all safe fixes".to_owned(),
        kind: Some(lsp::CodeActionKind::SourceFixAll),
        edit: Some(change(document, places, &edits)),
        ..lsp::CodeAction::default()
    })
}

fn change(document: &Document, places: &Places<'_>, edits: &[Edit]) -> lsp::WorkspaceEdit {
    let edits = edits
        .iter()
        .map(|edit| lsp::TextEdit { range: places.range(edit.span), new_text: edit.replacement.clone() })
        .collect();
    lsp::WorkspaceEdit { changes: Some(HashMap::from([(document.uri.clone(), edits)])), ..Default::default() }
}

/// Returns the edit that gives the text planctl's own form; none where it has it.
pub fn format(document: &Document) -> Vec<lsp::TextEdit> {
    let text = document.text.as_str();
    let new_text = planctl_lang::format(&Source::new(document.path.to_string_lossy(), text));
    if new_text == text {
        return Vec::new();
    }
    vec![lsp::TextEdit { range: document.text.places().range(Span::new(0, text.len())), new_text }]
}

/// Returns what to publish for a file.
pub fn published(document: &Document, marks: &[lsp::Diagnostic]) -> serde_json::Value {
    json!({ "uri": document.uri, "version": document.version, "diagnostics": marks })
}
