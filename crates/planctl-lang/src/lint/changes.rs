//! P105, P112: contracts that change files, as their text tells or as a trial has shown.

use super::before_work::script as script_span;
use super::proof::name_of_command;
use super::safety::{Located, first_destructive};
use super::{Context, Lint, Needs, ReadContract};
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::{Trial, Tried};
use crate::syntax::shell::{self, Script, Simple, Trait, Use};
use crate::text::paths::leaves_workspace;
use crate::text::{Span, escape};
use crate::tree::ContractTree;
use crate::tree::workflow::Kind;

/// The most changes that are reported of one contract.
const CHANGES_MAX: usize = 5;
/// How many files are named that a trial has changed.
const CHANGED_NAMED_MAX: usize = 4;

pub(super) const LINT: Lint = Lint { codes: &[Code::P105, Code::P112], needs: Needs::Trials, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    context.each_script(found, |ReadContract { step, contract, script, .. }, found| {
        let before = found.len();
        writes(contract, script, found);
        // A call is there to change things, and a trial knows better than the text what changes in the workspace.
        if step.kind.value == Kind::Call || matches!(context.trial_of(step), Some(Trial::Tried(_))) {
            let told = found.split_off(before);
            found.extend(told.into_iter().filter(|finding| finding.code != Code::P105));
        }
    });
    for (_, step, contract, trial) in context.trials() {
        let Trial::Tried(tried) = trial else { continue };
        if step.kind.value == Kind::Call {
            continue;
        }
        let before = found.len();
        tried_changes(contract, tried, found);
        found[before..].iter_mut().for_each(|finding| finding.step = Some(step.step_name()));
    }
}

fn writes(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let moves = moves_away(script);
    // A destructive command is reported already (P602).
    let destroyed = first_destructive(script).map(|(_, span)| span);
    let is_said = |span: Span| destroyed.is_some_and(|said| said.contains(span));
    let mut changed: Vec<String> = Vec::new();
    for file in shell::files(script).into_iter().filter(|file| file.how == Use::Writes && file.is_certain) {
        let why = leaves_workspace(&file.path);
        let is_relative = !file.path.starts_with(['/', '~']);
        if is_scratch(&file.path) || (moves && is_relative) || changed.contains(&file.path) {
            continue;
        }
        changed.push(file.path.clone());
        let path = escape(&file.path);
        let span = contract.in_plan(file.span);
        if let Some(why) = why {
            let message = format!("the contract writes to `{path}`, which {why}");
            let outside = Diagnostic::new(Code::P112, message).at(span, "outside the workspace");
            found.push(outside.help(
                "a contract only looks: write to `/dev/null`, or let the task write inside the workspace",
            ));
        } else if changed.len() <= CHANGES_MAX && !is_said(file.span) {
            let message = format!("the contract changes `{path}` in the workspace");
            let inside = Diagnostic::new(Code::P105, message).at(span, "written here");
            found.push(inside.help(
                "a contract only looks: let the task make the change, or write to `/dev/null` or `$(mktemp)`",
            ));
        }
    }
    if !moves {
        tools(contract, script, found);
    }
}

/// Returns the first file or command by which a contract changes files, scratch files aside, and where it stands.
pub(super) fn first_change(script: &Script) -> Located {
    let written = shell::files(script)
        .into_iter()
        .find(|file| file.how == Use::Writes && file.is_certain && !is_scratch(&file.path));
    if let Some(file) = written {
        return Some((file.path, file.span));
    }
    let mut first = None;
    shell::each_simple(script, &mut |simple| {
        if first.is_none() && changed_by(simple).is_some() {
            first = Some((name_of_command(simple), simple.span));
        }
    });
    first
}

fn is_scratch(path: &str) -> bool {
    path == "/tmp" || ["/dev/", "/tmp/", "/var/tmp/", "/proc/self/"].iter().any(|at| path.starts_with(at))
}

// Says whether the script goes to a place that is none of the workspace or that we can't tell.
fn moves_away(script: &Script) -> bool {
    let mut moves = false;
    shell::each_simple(script, &mut |simple| {
        if matches!(simple.name(), Some("cd" | "pushd")) {
            let to = simple.words.iter().skip(1).find(|word| !word.raw.starts_with('-'));
            let to = to.map(|word| word.literal.as_deref());
            moves |= to.is_none_or(|to| to.is_none_or(|path| leaves_workspace(path).is_some()));
        }
    });
    moves
}

// Programs that change files which their words do not name.
fn tools(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let mut reported = 0;
    shell::each_simple(script, &mut |simple| {
        if let Some(what) = changed_by(simple).filter(|_| reported < CHANGES_MAX) {
            reported += 1;
            let message = format!("the contract changes the workspace: `{}` {what}", name_of_command(simple));
            let changes = Diagnostic::new(Code::P105, message).at(contract.in_plan(simple.span), "");
            found.push(
                changes.help("a contract only looks: let the task make the change, and look at its result"),
            );
        }
    });
}

fn changed_by(simple: &Simple) -> Option<&'static str> {
    shell::calls(simple).find_map(|call| {
        call.traits().find_map(|what| if let Trait::Changes(how) = what { Some(how) } else { None })
    })
}

fn tried_changes(contract: &ContractTree, tried: &Tried, found: &mut Vec<Diagnostic>) {
    if tried.changed_count == 0 {
        return;
    }
    let named: Vec<String> =
        tried.changed.iter().take(CHANGED_NAMED_MAX).map(|path| format!("`{}`", escape(path))).collect();
    let more = match tried.changed_count - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let changes = Diagnostic::new(Code::P105, "the contract changes the workspace")
        .at(script_span(contract), format!("changed {}{more}", named.join(", ")))
        .note("it ran in a copy, which is discarded; files that git ignores do not count");
    found.push(changes.help("a contract should look, not do: let the task write, and the contract check"));
}
