//! Plans and steps without the places of their words, so that two texts can be compared by what they say.

use crate::syntax::written::{Placed as _, Written};
use crate::text::{Span, Spanned};
use crate::tree::workflow::{Library, NodeTree, Workflow};
use crate::tree::{Allow, ContractTree, Frontmatter, PlanTree, StepTree};

fn clear_span<T>(value: &mut Spanned<T>) {
    value.span = Span::default();
}

fn strip_library(library: &mut Library) {
    let Library { id, domains, triggers, trigger_threshold, stale_after_turns, then } = library;
    [id, then].into_iter().flatten().for_each(clear_span);
    domains.iter_mut().chain(triggers).for_each(clear_span);
    [trigger_threshold, stale_after_turns].into_iter().flatten().for_each(clear_span);
}

/// Returns what a plan says besides its steps.
pub(super) fn strip_head(mut tree: PlanTree) -> PlanTree {
    tree.steps.clear();
    let PlanTree { frontmatter, head, steps_heading, steps_meant, steps: _, flow, allows, prose } = &mut tree;
    let Frontmatter { span, kind, status, owner, library, unknown } = frontmatter;
    strip_library(library);
    *span = span.map(|_| Span::default());
    [kind, status, owner].into_iter().flatten().for_each(clear_span);
    unknown.iter_mut().for_each(clear_span);
    let Workflow { title, attributes, budget, priority, .. } = head;
    title.iter_mut().for_each(clear_span);
    attributes.forget_places();
    budget.iter_mut().for_each(clear_span);
    priority.iter_mut().for_each(clear_span);
    *steps_heading = steps_heading.map(|_| Span::default());
    *steps_meant = steps_meant.map(|_| Span::default());
    for Allow { code, reason, span } in allows.iter_mut() {
        clear_span(code);
        clear_span(reason);
        *span = Span::default();
    }
    prose.iter_mut().for_each(clear_span);
    for flow in flow.iter_mut() {
        clear_span(flow);
        flow.value.iter_mut().for_each(clear_span);
    }
    tree
}

/// Returns what a step says.
pub(super) fn strip_step(mut step: StepTree) -> StepTree {
    let StepTree { node, heading, mark, status, intent, needed_templates, for_each, gate, unread } =
        &mut step;
    strip_node(node);
    *heading = Span::default();
    [mark, status, intent, for_each, gate].into_iter().flatten().for_each(clear_span);
    needed_templates.iter_mut().for_each(clear_span);
    unread.sort_unstable();
    step
}

fn strip_node(node: &mut NodeTree) {
    let NodeTree {
        id,
        span,
        origin: _,
        kind,
        attributes,
        classes: _,
        step,
        number: _,
        role,
        task,
        contract,
        work: _,
        contracts,
    } = node;
    clear_span(id);
    (*span, *step) = (Span::default(), None);
    clear_span(kind);
    attributes.forget_places();
    // The contract says it, and so does one that leaves it out.
    attributes.expect_exit = Written::default();
    [role, task].into_iter().flatten().for_each(clear_span);
    contract.iter_mut().for_each(strip_contract);
    contracts.iter_mut().for_each(|contract| clear_span(&mut contract.command));
}

// An exit code that is left out means 0.
fn strip_contract(contract: &mut ContractTree) {
    let ContractTree { command: _, line_starts, span, fence, exit_code } = contract;
    line_starts.clear();
    (*span, *fence) = (Span::default(), Span::default());
    let code = exit_code.as_ref().map_or(0, |code| code.value);
    *exit_code = Some(Spanned::new(code, Span::default()));
}
