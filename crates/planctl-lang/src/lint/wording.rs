//! Findings about a graph of DOT or JSON in the words of its file: lints name fields as markdown writes them.

use crate::diagnostic::Diagnostic;
use crate::syntax::Language;
use crate::syntax::dot::{Of, find_attribute};

/// Makes attributes of the fields that a finding names. A note about a field that graphs don't have is left out.
pub(super) fn put_in_words_of(language: Language, finding: &mut Diagnostic) {
    let is_known = |code: &str| field(code).is_none_or(|(name, _)| find_attribute(Of::Node, name).is_some());
    finding.notes.retain(|note| note.split('`').skip(1).step_by(2).all(is_known));
    let own = [&mut finding.message].into_iter().chain(&mut finding.help).chain(&mut finding.notes);
    for text in own.chain(finding.spans.iter_mut().map(|label| &mut label.text)) {
        if text.contains("`**") || text.contains("`exit_code") {
            *text = in_words_of(language, text);
        }
    }
}

// Every second part between two backticks is code.
fn in_words_of(language: Language, text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match field(part).filter(|_| at % 2 == 1) {
        Some((name, "")) => name.to_owned(),
        Some((name, value)) => language.attribute(name, value).trim_matches('`').to_owned(),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the name and the value of a field as markdown writes it: `**changes:** a.txt`.
fn field(code: &str) -> Option<(&str, &str)> {
    if code == "exit_code ==" {
        return Some(("expect_exit", ""));
    }
    let (name, value) = code.strip_prefix("**")?.split_once(":**")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some((name, value.trim()))
}
