//! P012, P013, P014: the numbers of the steps, and how to number them anew.

use std::collections::BTreeMap;

use super::Context;
use crate::diagnostic::{Code, Diagnostic, Edit, Fix, Severity};
use crate::text::{Span, escape, shell_word};
use crate::tree::{PlanTree, StepTree};

/// How many edits all findings together may carry; a plan that is all wrong has its fix at the first one only.
const EDITS_MAX: usize = 10_000;

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut of_numbers = Vec::new();
    numbering(context, &mut of_numbers);
    let faults = of_numbers.iter().filter(|found| found.code != Code::P012).count();
    if faults > 0
        && let Some(fix) = renumber_fix(context.tree)
    {
        let most = if faults * fix.edits.len() <= EDITS_MAX { faults } else { 1 };
        let carriers = of_numbers.iter_mut().filter(|found| found.code != Code::P012).take(most);
        carriers.for_each(|finding| finding.fix = Some(fix.clone()));
    }
    found.append(&mut of_numbers);
}

fn numbering(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut first_use: BTreeMap<u32, Span> = BTreeMap::new();
    let mut expected = 1_u32;
    for step in &context.tree.steps {
        let span = step.node.id.span;
        let name = step.node.step_name();
        let number = match step.node.number {
            Some(u32::MAX) => continue,
            Some(number) => number,
            None => {
                found.push(template(&step.node.id.value, span, context.source.path()).step(name));
                continue;
            }
        };
        if let Some(first) = first_use.get(&number) {
            let line = context.source.position(first.start).line;
            let twice =
                Diagnostic::new(Code::P013, format!("step {number} is there twice")).at(span, "again here");
            let twice = twice.at(*first, format!("first on line {line}"));
            found.push(twice.help(format!("make this step {expected}")).step(name));
            continue;
        }
        first_use.insert(number, span);
        if number == 0 {
            let zero = Diagnostic::new(Code::P014, "the first step must be 1").level(Severity::Error);
            found.push(zero.at(span, "step 0").help("number the steps 1, 2, 3 …").step(name));
            continue;
        }
        if number != expected {
            let message = if expected == 1 {
                format!("the first step must be 1, and is {number}")
            } else if number < expected {
                format!("step {number} stands after step {}", expected - 1)
            } else {
                format!("expected step {expected}, found {number}")
            };
            let gap = Diagnostic::new(Code::P014, message).at(span, "");
            let gap = gap.help(format!("make this step {expected}, or add what is missing"));
            found.push(if number < expected { gap.level(Severity::Error) } else { gap }.step(name));
        }
        expected = number.max(expected).saturating_add(1);
    }
}

fn template(text: &str, span: Span, path: &str) -> Diagnostic {
    let message = format!("`{}` is a template of steps, not a step number", escape(text));
    Diagnostic::new(Code::P012, message)
        .at(span, "how many steps this makes is not known")
        .note("a plan that is approved must say exactly what will run")
        .help(expand_help(path))
}

/// Says how a template becomes steps.
pub(super) fn expand_help(path: &str) -> String {
    format!(
        "write the steps out, one heading each, or let planctl do it: `planctl expand {} --items FILE`",
        escape(&shell_word(path))
    )
}

/// Returns the fix that numbers all steps 1, 2, 3 …, with what refers to them; templates have no number yet.
fn renumber_fix(tree: &PlanTree) -> Option<Fix> {
    let mut meant: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    let mut edits = Vec::new();
    for (number, step) in (1_u32..).zip(&tree.steps) {
        let old = step.node.number?;
        meant.entry(old).and_modify(|known| *known = None).or_insert(Some(number));
        if old != number {
            edits.push(Edit { span: step.node.id.span, replacement: number.to_string() });
        }
    }
    if tree.steps.iter().any(|step| !step.needed_templates.is_empty()) {
        return None;
    }
    let moves = |old: &u32| meant.get(old).is_some_and(|new| *new != Some(*old));
    let mut safe = tree.flow.is_none();
    for needs in tree.steps.iter().filter_map(StepTree::needs) {
        if !needs.value.iter().any(moves) {
            continue;
        }
        let new: Option<Vec<String>> =
            needs.value.iter().map(|old| Some((*meant.get(old)?)?.to_string())).collect();
        match new {
            Some(new) => edits.push(Edit { span: needs.span, replacement: new.join(", ") }),
            None => safe = false,
        }
    }
    let tasks = tree.steps.iter().filter_map(|step| step.node.task.as_ref());
    let texts = tasks.chain(tree.head.attributes.goal.raw());
    safe &= !texts.flat_map(|text| numbers_named(&text.value)).any(|number| moves(&number));
    edits.sort();
    Some(Fix { edits, safe })
}

/// Returns the numbers of the steps that a text speaks of: `as step 3 did`.
pub(crate) fn numbers_named(text: &str) -> Vec<u32> {
    let lower = text.to_ascii_lowercase();
    let after = lower.match_indices("step").map(|(at, word)| &lower[at + word.len()..]);
    let number = |rest: &str| {
        let rest = rest.strip_prefix('s').unwrap_or(rest).trim_start_matches([' ', '#', '\n']);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    };
    after.filter_map(number).collect()
}
