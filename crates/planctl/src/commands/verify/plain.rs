//! Findings one a line, for editors and for `grep`.

use planctl_lang::{Code, Diagnostic, Range, Severity, groups};

use planctl_server::check::Checked;

use super::{Looked, counted, unreadable};
use crate::failure::Failure;
use crate::show;

/// Prints one line for each finding, and one for each file.
pub fn report(looked: &[Looked]) -> Result<(), Failure> {
    for one in looked {
        let name = show::safe(&one.file.display().to_string());
        let mut text = String::new();
        match &one.found {
            Err(failure) => text.push_str(&line(&name, &unreadable(failure), None)),
            Ok(checked) => {
                let verification = &checked.verification;
                for found in verification.diagnostics.iter().filter(|found| found.code != Code::P020) {
                    let place = found.spans.first().map(|label| Range::of(&checked.source, label.span));
                    text.push_str(&line(&name, found, place));
                }
                let verdict = if verification.is_verified() { "verified" } else { "not verified" };
                text.push_str(&format!("{name}: {verdict}, {}\n", counted(verification)));
            }
        }
        show::print(&text)?;
    }
    Ok(())
}

/// Returns a plan's warnings, one a line and without remedies: a run goes on in spite of them.
pub fn warnings(checked: &Checked) -> String {
    let name = show::safe(&checked.path);
    let found = checked.verification.diagnostics.iter().filter(|found| found.level == Severity::Warning);
    let lines = groups(found).into_iter().map(|group| {
        let one = group.as_one(&checked.source);
        let place = one.spans.first().map(|label| Range::of(&checked.source, label.span));
        let message = match group.count() {
            1 => one.message.clone(),
            count => format!("{}, and {} more of this kind", one.message, count - 1),
        };
        line(&name, &Diagnostic { help: None, message, ..one }, place)
    });
    lines.collect()
}

fn line(name: &str, found: &Diagnostic, place: Option<Range>) -> String {
    let place = place.map_or(String::new(), |place| format!("{}:{}:", place.line, place.column));
    let level = match found.level {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let help = found.help.as_ref().map_or(String::new(), |help| format!("; help: {help}"));
    format!("{name}:{place} {level}[{}]: {}\n", found.code, show::safe(&format!("{}{help}", found.message)))
}
