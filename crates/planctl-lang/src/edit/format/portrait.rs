//! The meaning of a text, section by section, so that two texts can be compared wherever their words stand.

use crate::diagnostic::{Code, Severity};
use crate::facts::Facts;
use crate::lint::lint;
use crate::syntax::source::Source;
use crate::text::{Span, Spanned};
use crate::tree::parse::layout::{Layout, PartKind};
use crate::tree::parse::parse_with_layout;
use crate::tree::workflow::Library;
use crate::tree::{ContractTree, Frontmatter, PlanTree, StepTree};

use super::write;

/// A text's meaning. Section 0 is the plan's head; section N goes from the Nth step's heading to the next one.
pub(super) struct Portrait {
    pub layout: Layout,
    pub tree: PlanTree,
    /// The tree without places and steps.
    head: PlanTree,
    sections: Vec<Section>,
}

#[derive(PartialEq, Eq)]
struct Section {
    step: Option<StepTree>,
    codes: Vec<(Code, Severity)>,
    lines: Vec<String>,
}

/// Where two texts mean something else.
pub(super) enum Difference {
    Nothing,
    Sections(Vec<usize>),
}

impl Portrait {
    /// Reads a text; nothing where it is no plan at all.
    pub fn of(source: &Source) -> Option<Portrait> {
        if source.no_plan().is_some() {
            return None;
        }
        let (tree, mut found, layout) = parse_with_layout(source);
        let layout = layout?;
        found.extend(lint(source, &tree, &Facts::default()));
        let begins: Vec<usize> = tree.steps.iter().map(|step| step.heading.start).collect();
        let mut sections: Vec<Section> = std::iter::once(None)
            .chain(tree.steps.iter().map(|step| Some(strip_step(step.clone()))))
            .map(|step| Section { step, codes: Vec::new(), lines: Vec::new() })
            .collect();
        // A default that is written out, and a form that is planctl's own, leave no finding.
        for diagnostic in found.iter().filter(|found| !matches!(found.code, Code::P005 | Code::P020)) {
            let at = diagnostic.spans.first().map_or(0, |label| label.span.start);
            let section = begins.partition_point(|begin| *begin <= at);
            sections[section].codes.push((diagnostic.code, diagnostic.level));
        }
        for (section, line) in write::kept_lines(source, &layout, &tree) {
            if let Some(section) = sections.get_mut(section) {
                section.lines.push(line);
            }
        }
        for section in &mut sections {
            section.codes.sort_unstable();
            section.lines.sort_unstable();
        }
        let head = strip_head(tree.clone());
        Some(Portrait { layout, tree, head, sections })
    }

    /// Returns how many sections the text has.
    pub fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Compares two texts.
    pub fn difference(&self, other: &Portrait) -> Difference {
        let mut sections: Vec<usize> = if self.sections.len() == other.sections.len() {
            let pairs = self.sections.iter().zip(&other.sections).enumerate();
            pairs.filter(|(_, (before, after))| before != after).map(|(at, _)| at).collect()
        } else {
            // One step has become two or none, so that what follows can't be compared.
            let same =
                self.sections.iter().zip(&other.sections).take_while(|(before, after)| before == after);
            let at = same.count().min(self.sections.len() - 1);
            vec![at.saturating_sub(1), at]
        };
        if self.head != other.head {
            sections.push(0);
        }
        sections.sort_unstable();
        sections.dedup();
        if sections.is_empty() { Difference::Nothing } else { Difference::Sections(sections) }
    }
}

/// Returns the number of steps that begin up to a part, which is the part's section.
pub(super) fn steps_before_part(kind: PartKind, section: usize) -> usize {
    match kind {
        PartKind::Step { .. } => section + 1,
        PartKind::Title | PartKind::Steps | PartKind::Field { .. } | PartKind::Refused | PartKind::Other => {
            section
        }
    }
}

fn clear_span<T>(value: &mut Spanned<T>) {
    value.span = Span::default();
}

fn strip_library(library: &mut Library) {
    let Library { id, domains, triggers, trigger_threshold, stale_after_turns, then } = library;
    [id, then].into_iter().flatten().for_each(clear_span);
    domains.iter_mut().chain(triggers).for_each(clear_span);
    [trigger_threshold, stale_after_turns].into_iter().flatten().for_each(clear_span);
}

fn strip_head(mut tree: PlanTree) -> PlanTree {
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
    for flow in flow.iter_mut() {
        clear_span(flow);
        flow.value.iter_mut().for_each(clear_span);
    }
    tree
}

fn strip_step(mut step: StepTree) -> StepTree {
    let StepTree {
        number,
        heading,
        end,
        title,
        mark,
        status,
        target,
        kind,
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
        ask_deadline,
        max_retries,
        max_visits,
        needs,
        needed_templates,
        when,
        for_each,
        gate,
        min_tests,
        locks,
        workspace,
        node: _,
        unread,
    } = &mut step;
    clear_span(number);
    (*heading, *end) = (Span::default(), 0);
    clear_span(title);
    [mark, status, target, intent, task, judge, judge_by, when, for_each, gate]
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
    ask_deadline.iter_mut().for_each(clear_span);
    [max_retries, max_visits].into_iter().flatten().for_each(clear_span);
    needs.iter_mut().for_each(clear_span);
    needed_templates.iter_mut().for_each(clear_span);
    min_tests.iter_mut().for_each(clear_span);
    workspace.iter_mut().for_each(clear_span);
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
