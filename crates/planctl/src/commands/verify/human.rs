//! Findings for people: each drawn, then in a few lines what it comes to and what to type next.

use std::collections::BTreeSet;
use std::path::Path;

use planctl_engine::{Graph, Role};
use planctl_lang::{Allowed, Code, Diagnostic, Range, Severity, Source, Verification, groups};
use planctl_server::check::Checked;
use planctl_server::probe::Probed;

use super::picture::{is_linear, plan_view, unserved_roles};
use super::{Looked, is_input};
use crate::context::Context;
use crate::failure::Failure;
use crate::next;
use crate::show::{self, BAD, BOLD, FAINT, GOOD, styled};

/// Prints each file's findings and what they come to; where there are several files, the total too.
pub fn print(context: &Context, looked: &[Looked]) -> Result<(), Failure> {
    let mut gap = "";
    for one in looked {
        match &one.found {
            Ok(checked) => {
                show::print(gap)?;
                show::print(&findings(checked, context.is_quiet()))?;
                if context.verbosity() > 0 {
                    show::print(&allowed(checked))?;
                    show::print(&defaults(checked))?;
                }
                show::print(&show::folded(&summary(checked, &one.file, &without_agent(context, checked)?)))?;
                gap = "\n";
            }
            Err(failure) => next::say_failure(failure),
        }
    }
    if looked.len() > 1 {
        show::print(&format!("{gap}{}\n", total(looked)))?;
    }
    let read = looked.iter().filter_map(|one| one.found.as_ref().ok());
    match read.filter_map(gravest_finding).min_by_key(|grave| grave.0).filter(|_| !context.is_quiet()) {
        Some((_, code)) => show::print(&format!("{} planctl explain {code}\n", styled(BOLD, "for more:"))),
        None => Ok(()),
    }
}

// Returns the first of the gravest findings, which a person mends first.
fn gravest_finding(checked: &Checked) -> Option<(Severity, Code)> {
    let found = checked.verification.diagnostics.iter().filter(|found| found.level != Severity::Note);
    found.map(|found| (found.level, found.code)).min_by_key(|grave| grave.0)
}

fn total(looked: &[Looked]) -> String {
    let read: Vec<&Checked> = looked.iter().filter_map(|one| one.found.as_ref().ok()).collect();
    let verified = read.iter().filter(|checked| checked.verification.is_verified()).count();
    let parts = [
        (verified, "verified"),
        (read.len() - verified, "not verified"),
        (looked.len() - read.len(), "not read"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let count = |level| read.iter().map(|checked| count_of(&checked.verification, level)).sum();
    let counts = counts_in_words(count(Severity::Error), count(Severity::Warning));
    format!("{} plans: {} · {counts}", looked.len(), parts.join(", "))
}

/// Draws the findings; notes only where more is wanted.
pub fn findings(checked: &Checked, is_quiet: bool) -> String {
    let found = checked.verification.diagnostics.iter().filter(|found| is_shown(found, is_quiet));
    grouped(found, &checked.source)
}

/// Says whether a finding is drawn.
pub fn is_shown(found: &Diagnostic, is_quiet: bool) -> bool {
    found.level != Severity::Note || !(is_quiet || found.code == Code::P020)
}

/// Draws findings one below the other; findings of one kind are drawn once (DOT B13).
pub fn grouped<'d>(found: impl IntoIterator<Item = &'d Diagnostic>, source: &Source) -> String {
    let columns = show::columns();
    let mut text = String::new();
    for group in groups(found) {
        let mut one = group.as_one(source);
        for words in one.help.iter_mut().chain(&mut one.notes) {
            *words = next::commands_here(words);
        }
        text.push_str(&match columns {
            Some(columns) => one.render_within(source, true, columns),
            None => one.render(source, true),
        });
        text.push_str("\n\n");
    }
    text
}

/// Returns the roles of a plan's steps for which planctl.toml names no agent.
pub fn without_agent(context: &Context, checked: &Checked) -> Result<Vec<Role>, Failure> {
    let Some(graph) = checked.verification.graph.as_ref() else { return Ok(Vec::new()) };
    Ok(unserved_roles(&plan_view(context, checked, graph)?, None))
}

/// Says in two lines what was found, and whether the plan is verified.
pub fn outcome(checked: &Checked, file: &Path) -> String {
    let name = show::safe(&file.display().to_string());
    let counts = format!("{}{}", trial_words(checked), counted(&checked.verification));
    let Some(graph) = checked.verification.graph.as_ref() else {
        return format!("{name}: {counts}\n{}", refused(checked));
    };
    let steps = graph.steps();
    let roles: BTreeSet<&str> = steps.iter().map(|(_, task)| task.role.as_str()).collect();
    format!(
        "{name}: {counts}\n{} · {}{} · {} · {}\n",
        styled(GOOD, "verified"),
        ordered(graph),
        role_words(&roles),
        show::budget(&graph.budget().into()),
        short_digest(checked.verification.digest.as_str()),
    )
}

/// Says in a few lines what was verified, and what to type next, also where no agent is named for some roles.
pub fn summary(checked: &Checked, file: &Path, without_agent: &[Role]) -> String {
    let mut text = outcome(checked, file);
    if checked.verification.graph.is_none() {
        if let Some(fixing) = fixing_line(&checked.verification, file) {
            text.push_str(&format!("{}\n", next::line(&fixing)));
        }
        return text;
    }
    // Only a file can be run or mended.
    if !is_input(file) {
        let lacks_workers = checked
            .verification
            .diagnostics
            .iter()
            .any(|found| matches!(found.code, Code::P401 | Code::P402));
        let worker = match (lacks_workers, without_agent.first()) {
            (true, _) => " --exec CMD",
            (false, None) => "",
            (false, Some(role)) => {
                let role = show::safe(role.as_str());
                text.push_str(&format!(
                    "no agent is named for the role {role}: name one here, or in planctl.toml below [roles.{role}]\n"
                ));
                " --agent NAME"
            }
        };
        text.push_str(&format!(
            "{}\n",
            next::line(&format!("planctl run {}{worker}", show::file_word(file)))
        ));
    }
    if let Some(fixing) = fixing_line(&checked.verification, file) {
        text.push_str(&format!("{} {}\n", styled(BOLD, "  or:"), next::commands_here(&fixing)));
    }
    text
}

// The values that apply where the plan says none, a line each.
fn defaults(checked: &Checked) -> String {
    let mut text = String::new();
    let found = checked.verification.diagnostics.iter().filter(|found| found.code == Code::P020);
    for default in found {
        let step = default.step.as_ref().map_or(String::new(), |step| format!("step {}: ", step.number));
        let said = show::safe(&format!("{step}{}", default.message));
        text.push_str(&styled(FAINT, &format!("default: {said}")));
        text.push('\n');
    }
    text
}

/// Names the findings that a plan allows, a line each, with the reasons.
pub fn allowed(checked: &Checked) -> String {
    let mut text = String::new();
    for Allowed { finding, reason, .. } in &checked.verification.allowed {
        let place = finding.spans.first().map_or(0, |label| Range::of(&checked.source, label.span).line);
        let said = format!("{}:{place}: {}; the plan says: {reason}", checked.path, finding.message);
        text.push_str(&format!("allowed[{}]: {}\n", finding.code, show::safe(&said)));
    }
    text
}

// The roles as a part of a line; nothing where there are none, as in a graph of calls and questions.
fn role_words(roles: &BTreeSet<&str>) -> String {
    let names: Vec<String> = roles.iter().map(|role| show::safe(role)).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => format!(" · role {only}"),
        several => format!(" · roles {}", several.join(", ")),
    }
}

// How many steps there are, and in which order they run.
fn ordered(graph: &Graph) -> String {
    let steps = graph.numbered_steps();
    let is_one = steps.len() == 1;
    let word = if is_one { "step" } else { "steps" };
    if !is_linear(graph) {
        let way = if is_one { "that branches or waits" } else { "that branch or wait" };
        return format!("{} {word} {way} (planctl graph render shows how)", steps.len());
    }
    if is_one {
        return "1 step".to_owned();
    }
    let order: Vec<String> = steps.iter().take(12).map(|(step, _)| step.to_string()).collect();
    let more = if steps.len() > 12 { "→…" } else { "" };
    format!("{} steps in order {}{more}", steps.len(), order.join("→"))
}

/// Says what to type where findings can be mended.
pub fn fixing_line(verification: &Verification, file: &Path) -> Option<String> {
    if is_input(file) {
        return None;
    }
    let shown: Vec<_> =
        verification.diagnostics.iter().filter(|found| found.level != Severity::Note).collect();
    let fixes = |safe: bool| {
        shown.iter().filter(|found| found.fix.as_ref().is_some_and(|fix| fix.safe == safe)).count()
    };
    let (flags, count, more) = match (fixes(true), fixes(false)) {
        (0, 0) => return None,
        (0, unsafe_ones) => ("--fix --unsafe-fixes --diff", unsafe_ones, String::new()),
        (safe, 0) => ("--fix", safe, String::new()),
        (safe, unsafe_ones) => ("--fix", safe, format!(", {} with --unsafe-fixes", safe + unsafe_ones)),
    };
    let findings = if shown.len() == 1 { "finding" } else { "findings" };
    let file = show::file_word(file);
    let can = format!("{count} of {} {findings} can be fixed{more}", shown.len());
    Some(format!("planctl verify {flags} {file}     ({can})"))
}

fn refused(checked: &Checked) -> String {
    let mut text = styled(BAD, "not verified");
    if let Some(status) = &checked.verification.tree.frontmatter.status {
        text.push_str(&format!(" · status stays `{}`", show::safe(&status.value)));
    }
    text.push('\n');
    text
}

// Returns the number of steps, and of their contracts that were tried; nothing for a file that is no plan.
fn trial_words(checked: &Checked) -> String {
    let steps = match checked.verification.workflow.steps().len() {
        0 => return String::new(),
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    match checked.probed {
        None => format!("{steps}, contracts not tried · "),
        Some(Probed { contracts, tried: 0, .. }) => format!("{steps}, 0 of {contracts} contracts tried · "),
        Some(probed) => format!(
            "{steps}, {} of {} contracts tried in {:.1} s (copy discarded) · ",
            probed.tried,
            probed.contracts,
            probed.duration.as_secs_f64()
        ),
    }
}

/// Counts findings in words: `2 errors, 1 warning, 1 finding allowed in the plan`.
pub fn counted(verification: &Verification) -> String {
    let counts =
        counts_in_words(count_of(verification, Severity::Error), count_of(verification, Severity::Warning));
    match verification.allowed.len() {
        0 => counts,
        1 => format!("{counts}, 1 finding allowed in the plan"),
        allowed => format!("{counts}, {allowed} findings allowed in the plan"),
    }
}

fn count_of(verification: &Verification, level: Severity) -> usize {
    verification.diagnostics.iter().filter(|found| found.level == level).count()
}

fn counts_in_words(errors: usize, warnings: usize) -> String {
    let words = |count: usize, word: &str| {
        (count > 0).then(|| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    };
    let parts: Vec<String> =
        [words(errors, "error"), words(warnings, "warning")].into_iter().flatten().collect();
    if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") }
}

/// Shortens a digest to what people compare.
pub fn short_digest(digest: &str) -> String {
    digest
        .strip_prefix("sha256:")
        .map_or(digest.to_owned(), |hex| format!("sha256 {}", hex.get(..12).unwrap_or(hex)))
}
