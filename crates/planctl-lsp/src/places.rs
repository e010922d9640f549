//! Where what a plan names is to be found: files of subscriptions, and paths in contracts and tasks.

use gen_lsp_types as lsp;
use planctl_glob::is_glob;
use planctl_harness::{PathKind, expand_glob, probe_paths};
use planctl_lang::Span;

use super::document::{Document, uri_of};

/// The most files that a glob leads to.
const FILES_MAX: usize = 100;

/// Returns where the file is that a place names; a glob may name many.
pub fn definition(document: &Document, position: lsp::Position) -> Vec<lsp::Location> {
    let offset = document.text.offset(position);
    let reading = document.reading();
    let subscribed = reading.step_at(offset).and_then(|(_, step)| {
        let at = |span: Span| span.start <= offset && offset <= span.end;
        step.node.subscribed_files().find(|(_, span)| at(*span)).map(|(path, _)| path.to_owned())
    });
    let paths = match subscribed {
        Some(glob) if is_glob(&glob) => {
            expand_glob(&document.workspace, &glob, FILES_MAX).map(|found| found.files).unwrap_or_default()
        }
        Some(path) => vec![path],
        None => vec![path_at(document.text.as_str(), offset).to_owned()],
    };
    paths.iter().filter_map(|path| location(document, path)).collect()
}

fn location(document: &Document, path: &str) -> Option<lsp::Location> {
    let path = path.trim_start_matches("./");
    let kinds = probe_paths(&document.workspace, [path]).ok()?;
    let is_file = !path.is_empty() && matches!(kinds.get(path), Some(PathKind::Regular { .. }));
    let uri = is_file.then(|| uri_of(&document.workspace.join(path))).flatten()?;
    Some(lsp::Location { uri, range: lsp::Range::default() })
}

/// Returns the word around an offset that could be a path.
fn path_at(text: &str, offset: usize) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '+' | '@');
    let before = text[..offset]
        .rfind(|c| !is_part(c))
        .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let after = text[offset..].find(|c| !is_part(c)).map_or(text.len(), |at| offset + at);
    // A sentence may end right after it.
    text[before..after].trim_end_matches('.')
}

/// Returns the subscribed files that are there, as links.
pub fn links(document: &Document) -> Vec<lsp::DocumentLink> {
    let reading = document.reading();
    let files = reading.tree.steps.iter().flat_map(|step| step.node.subscribed_files());
    let files: Vec<(&str, Span)> = files.filter(|(path, _)| !is_glob(path)).collect();
    let kinds = probe_paths(&document.workspace, files.iter().map(|(path, _)| *path)).unwrap_or_default();
    let places = document.text.places();
    let there = files.iter().filter(|(path, _)| matches!(kinds.get(*path), Some(PathKind::Regular { .. })));
    let links = there.filter_map(|(path, span)| {
        let target = uri_of(&document.workspace.join(path))?;
        Some(lsp::DocumentLink { range: places.range(*span), target: Some(target), ..Default::default() })
    });
    links.collect()
}
