//! Reads a proposal by itself: exactly one step, and nothing that reaches beyond it.

use super::refused;
use crate::diagnostic::Diagnostic;
use crate::edit::placeless::{strip_head, strip_step};
use crate::syntax::source::Source;
use crate::syntax::written::Written;
use crate::text::{Span, Spanned};
use crate::tree::parse::parse;
use crate::tree::{PlanTree, StepTree};

/// Stands before a proposal that is read by itself.
pub(super) const HEAD: &str =
    "---\ntype: plan\nstatus: draft\nowner: worker\n---\n\n# Proposal\n\n## Steps\n\n";

/// A step that is put after the proposal; a comment, a fence or a heading that is left open would change how it is read.
const PROBE: &str = "\n\n### 2. Probe\n\n**target:** probe\n**task:** Nothing.\n**contract:**\n```shell\ntest -e probe\n```\n\n\
    ## Flow\n\n- 2 -> done\n";

/// Returns a proposal that is exactly one step, with the number of a step that is still to be numbered.
pub(super) fn one_step(proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let titled = with_open_number(proposal)?;
    let (tree, _) = parse(&Source::new("proposal", format!("{HEAD}{titled}{PROBE}")));
    let (bare, _) = parse(&Source::new("proposal", format!("{HEAD}{}", PROBE.trim_start())));
    let help = "propose one step: `### Title`, then its fields";
    let [step, probe] = tree.steps.as_slice() else {
        let count = tree.steps.len().saturating_sub(1);
        return match count {
            0 => refused(Span::at(0), "the proposal leaves a comment or a fence open".to_owned(), help),
            _ => refused(Span::at(0), format!("a proposal is exactly one step, and this is {count}"), help),
        };
    };
    if step.for_each.is_some() {
        let message = "a proposal is exactly one step, and `**for_each:**` makes several".to_owned();
        return refused(Span::at(0), message, help);
    }
    if !tree.allows.is_empty() {
        let message = "a proposal can't allow what is found in it".to_owned();
        return refused(Span::at(0), message, "take the comment out");
    }
    let is_read_alike =
        bare.steps.first().is_some_and(|bare| meaning_of_step(bare) == meaning_of_step(probe));
    if is_read_alike && meaning_of_plan(bare) == meaning_of_plan(tree) {
        Ok(titled)
    } else {
        let message = "the proposal would change how the text after it is read".to_owned();
        refused(Span::at(0), message, help)
    }
}

/// Returns everything that a step says, blind to its place in the text and to the numbers of steps.
pub(super) fn meaning_of_step(step: &StepTree) -> StepTree {
    let mut step = strip_step(step.clone());
    step.node.id.value.clear();
    step.node.number = None;
    let said = &mut step.node.attributes;
    let blind = |text: String| Spanned::new(text, Span::default());
    if let Some(needs) = said.needs.value() {
        said.needs = Written::with_words(blind(needs.len().to_string()), None);
    }
    if let Some(when) = said.when.raw() {
        said.when = Written::with_words(blind(without_numbers(&when.value)), None);
    }
    step
}

/// Returns everything that a plan says besides its steps, as [`meaning_of_step`] does.
pub(super) fn meaning_of_plan(tree: PlanTree) -> PlanTree {
    let mut head = strip_head(tree);
    for line in head.flow.iter_mut().flat_map(|flow| &mut flow.value) {
        line.value = without_numbers(&line.value);
    }
    head
}

fn without_numbers(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_ascii_digit() {
            true if left.ends_with('#') => {}
            true => left.push('#'),
            false => left.push(character),
        }
    }
    left.replace("step #", "#")
}

/// Returns a proposal whose headings have the number of a step that is still to be numbered.
fn with_open_number(proposal: &str) -> Result<String, Vec<Diagnostic>> {
    let lines: Vec<&str> = proposal.trim().lines().collect();
    if !lines.first().is_some_and(|first| first.trim_start().starts_with("##")) {
        let message = "a proposal is the text of a step: `### Title`, then its fields".to_owned();
        return refused(Span::at(0), message, "begin it with a heading");
    }
    let mut fence: Option<&str> = None;
    let mut written = Vec::with_capacity(lines.len());
    for line in lines {
        let bare = line.trim_start();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = match fence {
                None => Some(mark),
                Some(open) if open == mark => None,
                Some(open) => Some(open),
            };
        }
        if fence.is_none() && bare.starts_with('#') {
            let title = bare.trim_start_matches('#').trim();
            let number: usize = title.bytes().take_while(u8::is_ascii_digit).count();
            let rest = title[number..].trim_start();
            let title = match rest.strip_prefix(['.', ')', ':']) {
                Some(rest) if number > 0 => rest.trim_start(),
                _ => title,
            };
            written.push(format!("### N+1. {title}"));
        } else {
            written.push(line.to_owned());
        }
    }
    Ok(written.join("\n"))
}
