//! Findings one a line, for editors and for `grep`.

use planctl_lang::workflow::{Kind, NodeTree};
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

/// Returns a plan's warnings, one a line and without remedies: a run goes on in spite of them. A worker is not missed for a role
/// that somebody serves.
pub fn warnings(checked: &Checked, served: &[String]) -> String {
    let name = show::safe(&checked.path);
    let found = checked.verification.diagnostics.iter().filter(|found| found.level == Severity::Warning);
    let found = found.filter(|found| !misses_served(checked, found, served));
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

/// Says that a finding misses a worker, and one is there for each role that it is about.
fn misses_served(checked: &Checked, found: &Diagnostic, served: &[String]) -> bool {
    let is_of = |step: &NodeTree| found.step.as_ref().is_some_and(|named| named.number == step.id.value);
    let is_about = |step: &NodeTree| found.code == Code::P402 || (found.code == Code::P401 && is_of(step));
    let steps = checked.verification.workflow.steps();
    let mut roles = steps
        .into_iter()
        .filter(|step| step.kind.value == Kind::Task && is_about(step))
        .filter_map(|step| step.role.as_ref())
        .peekable();
    roles.peek().is_some() && roles.all(|role| served.contains(&role.value))
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
