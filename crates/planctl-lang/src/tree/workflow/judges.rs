//! Judges of steps: whom they may be, and that their word does not stand alone (P-71).

use super::tree::{Kind, NodeTree, is_confirmed};
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::facts::{Facts, Judges};
use crate::text::near::ask_or_say;
use crate::text::{Span, escape};

/// Holds the judges of a plan to the configuration.
pub(crate) fn lint_there(steps: &[&NodeTree], facts: &Facts, found: &mut Vec<Diagnostic>) {
    for step in steps {
        let mut of_step = Vec::new();
        lint_step(step, facts, &mut of_step);
        found.extend(of_step.into_iter().map(|finding| finding.step(step.step_name())));
    }
}

fn lint_step(step: &NodeTree, facts: &Facts, found: &mut Vec<Diagnostic>) {
    let Some(judge) = step.attributes.judge.text() else {
        if let Some(by) = step.attributes.judge_by.text() {
            let idle = Diagnostic::new(Code::P015, "the step names a judge and asks it nothing");
            found.push(idle.at(by.span, "").help("say what it is asked: `**judge:** Is every … ?`"));
        }
        return;
    };
    if step.kind.value != Kind::Task {
        let idle = Diagnostic::new(Code::P015, "only the work of an agent is judged");
        let idle =
            idle.at(judge.span, "nobody would be asked this").at(step.kind.span, "because of this type");
        found.push(idle.help("make it a field of the step whose work it is about"));
        return;
    }
    let guard = step.attributes.guard.spanned().filter(|guard| guard.value);
    if !is_confirmed(step) && (step.contract.is_none() || guard.is_some()) {
        lint_alone(step, judge.span, guard.map(|guard| guard.span), facts, found);
    }
    if let Some(judges) = &facts.judges {
        lint_asked(step, judge.span, judges, found);
    }
}

/// Refuses a judge that stands alone, unless the configuration lets it.
fn lint_alone(step: &NodeTree, judge: Span, guard: Option<Span>, facts: &Facts, found: &mut Vec<Diagnostic>) {
    let name = &step.id.value;
    let is_let = facts.judges.as_ref().is_some_and(|judges| judges.alone);
    let message = match is_let {
        true => format!("a judge alone decides step {name}, as planctl.toml allows"),
        false => format!("step {name} has no check but a judge"),
    };
    let finding =
        Diagnostic::new(Code::P123, message).at(judge, "a model can be wrong, and talked into things");
    let finding = match guard {
        Some(guard) => finding.at(guard, "a contract that passes before the work proves none of it"),
        None => finding,
    };
    found.push(match is_let {
        true => finding.level(Severity::Warning),
        false => finding.help(
            "add a contract whose exit code shows a part of it; or let judges suffice: `[judges] alone = true` in a \
             planctl.toml that you trust",
        ),
    });
}

/// Refuses a judge that the configuration does not have.
fn lint_asked(step: &NodeTree, judge: Span, judges: &Judges, found: &mut Vec<Diagnostic>) {
    let Some(by) = step.attributes.judge_by.text() else {
        if judges.names.is_empty() {
            let nobody =
                Diagnostic::new(Code::P124, "nobody is named who judges").at(judge, "who is asked this?");
            found.push(nobody.help(
                "name a model of `[models.NAME]`, or a role with an agent, in a planctl.toml that you trust: `[judges] by = [\"NAME\"]`",
            ));
        }
        return;
    };
    if judges.names.contains(&by.value) {
        return;
    }
    let near = did_you_mean(&by.value, judges.names.iter().map(String::as_str));
    let shown = escape(&by.value);
    let otherwise = format!(
        "`[judges] by = [\"{shown}\"]` in a planctl.toml that you trust lets it judge; it is the name of a model that answers, \
         or of a role with an agent, and not of both"
    );
    let message = format!("planctl.toml has no judge `{shown}`");
    found.push(Diagnostic::new(Code::P124, message).at(by.span, "").help(ask_or_say(near, otherwise)));
}
