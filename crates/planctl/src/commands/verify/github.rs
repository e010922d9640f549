//! Findings as workflow commands, which a code host draws beside the changed lines.

use std::path::Path;

use planctl_lang::{Code, Diagnostic, Range, Severity};

use super::place::{from_root, root};
use super::{Looked, unreadable};
use crate::show;

/// Returns one command a line.
pub fn commands(workspace: &Path, looked: &[Looked]) -> String {
    let root = root(workspace);
    let mut text = String::new();
    for one in looked {
        let file = from_root(&root, &one.file).to_string_lossy().into_owned();
        match &one.found {
            Err(failure) => text.push_str(&command(&file, &unreadable(failure), None)),
            Ok(checked) => {
                for found in checked.verification.diagnostics.iter().filter(|found| found.code != Code::P020)
                {
                    let place = found.spans.first().map(|label| Range::of(&checked.source, label.span));
                    text.push_str(&command(&file, found, place));
                }
            }
        }
    }
    text
}

fn command(file: &str, found: &Diagnostic, place: Option<Range>) -> String {
    let word = match found.level {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = format!("file={}", property(file));
    if let Some(place) = place {
        properties.push_str(&format!(",line={},endLine={}", place.line, place.end_line));
        // Columns are refused where the lines differ.
        if place.line == place.end_line {
            properties.push_str(&format!(",col={},endColumn={}", place.column, place.end_column));
        }
    }
    let title = property(&format!("{} {}", found.code, found.code.title()));
    let mut message = found.message.clone();
    if let Some(step) = &found.step {
        message.push_str(&format!("\nstep {} \"{}\"", step.number, step.title));
    }
    for note in &found.notes {
        message.push_str(&format!("\nnote: {note}"));
    }
    if let Some(help) = &found.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    format!("::{word} {properties},title={title}::{}\n", data(&show::safe_block(&message)))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_wrote_ends_neither_a_property_nor_the_command() {
        let found = Diagnostic::new(Code::P104, "100 %\n::error::not one").help("a, b: c");
        assert_eq!(
            command("a,b:c\n.md", &found, None),
            "::warning file=a%2Cb%3Ac%0A.md,title=P104 the contract can't fail\
             ::100 %25%0A::error::not one%0Ahelp: a, b: c\n"
        );
    }
}
