//! Plans and steps without the places of their words, so that two texts can be compared by what they say.

use crate::text::{Span, Spanned};
use crate::tree::workflow::Library;
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
    let PlanTree {
        frontmatter,
        title,
        context,
        budget,
        priority,
        max_visits,
        stale_after,
        ask_deadline,
        parallel,
        red_first,
        steps_heading,
        steps_meant,
        steps: _,
        flow,
        allows,
    } = &mut tree;
    let Frontmatter { span, kind, status, owner, library, unknown } = frontmatter;
    strip_library(library);
    *span = span.map(|_| Span::default());
    [kind, status, owner, title, context].into_iter().flatten().for_each(clear_span);
    unknown.iter_mut().for_each(clear_span);
    budget.iter_mut().for_each(clear_span);
    priority.iter_mut().for_each(clear_span);
    max_visits.iter_mut().for_each(clear_span);
    stale_after.iter_mut().for_each(clear_span);
    ask_deadline.iter_mut().for_each(clear_span);
    parallel.iter_mut().for_each(clear_span);
    red_first.iter_mut().for_each(clear_span);
    *steps_heading = steps_heading.map(|_| Span::default());
    *steps_meant = steps_meant.map(|_| Span::default());
    for Allow { code, reason, span } in allows.iter_mut() {
        clear_span(code);
        clear_span(reason);
        *span = Span::default();
    }
    for flow in flow.iter_mut() {
        clear_span(flow);
        flow.value.iter_mut().for_each(clear_span);
    }
    tree
}

/// Returns what a step says.
pub(super) fn strip_step(mut step: StepTree) -> StepTree {
    let StepTree {
        number,
        heading,
        end,
        title,
        mark,
        status,
        target,
        kind,
        work: _,
        intent,
        subscriptions,
        task,
        contract,
        on_fail,
        timeout,
        contract_timeout,
        changes,
        protects,
        guard,
        red_first,
        judge,
        judge_by,
        max_retries,
        max_visits,
        ask_deadline,
        needs,
        needed_templates,
        when,
        for_each,
        gate,
        min_tests,
        locks,
        workspace,
        plan,
        folder,
        approval,
        unread,
    } = &mut step;
    clear_span(number);
    (*heading, *end) = (Span::default(), 0);
    clear_span(title);
    [mark, status, target, intent, task, judge, judge_by, when, for_each, gate, plan, folder]
        .into_iter()
        .flatten()
        .for_each(clear_span);
    kind.iter_mut().for_each(clear_span);
    subscriptions.iter_mut().for_each(clear_span);
    contract.iter_mut().for_each(strip_contract);
    on_fail.iter_mut().for_each(clear_span);
    [timeout, contract_timeout].into_iter().flatten().for_each(clear_span);
    changes.iter_mut().chain(protects).chain(locks).for_each(clear_span);
    guard.iter_mut().for_each(clear_span);
    red_first.iter_mut().for_each(clear_span);
    [max_retries, max_visits].into_iter().flatten().for_each(clear_span);
    ask_deadline.iter_mut().for_each(clear_span);
    needs.iter_mut().for_each(clear_span);
    needed_templates.iter_mut().for_each(clear_span);
    min_tests.iter_mut().for_each(clear_span);
    workspace.iter_mut().for_each(clear_span);
    approval.iter_mut().for_each(clear_span);
    unread.sort_unstable();
    step
}

// An exit code that is left out means 0.
fn strip_contract(contract: &mut ContractTree) {
    let ContractTree { command: _, line_starts, span, fence, exit_code } = contract;
    line_starts.clear();
    (*span, *fence) = (Span::default(), Span::default());
    let code = exit_code.as_ref().map_or(0, |code| code.value);
    *exit_code = Some(Spanned::new(code, Span::default()));
}
