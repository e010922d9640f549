//! An entry of the library as a proposal: steps one after another, each with its contract, for the goal that found it.

use planctl_engine::Subscription;
use planctl_lang::workflow::Kind;
use planctl_lang::{PlanTree, StepTree};

use crate::goal::Goal;
use crate::pattern::PATTERN_CONFIDENCE;
use crate::proposal::{Proposal, Step, Trace};

/// Fills an entry in for a goal; nothing where the entry says more than a proposal can.
pub fn draft_of_entry(name: &str, entry: &PlanTree, goal: &Goal) -> Option<Proposal> {
    let has_more =
        entry.flow.is_some() || entry.head.attributes.max_parallel.is_said() || entry.steps.is_empty();
    if has_more || goal.requirements.len() > 1 || !goal.suspicions.is_empty() {
        return None;
    }
    let steps: Vec<Step> = entry.steps.iter().map(step).collect::<Option<_>>()?;
    let numbers = (1..=u32::try_from(steps.len()).ok()?).collect();
    let mut title: String = goal.text.chars().take(100).collect();
    if let Some(first) = title.get(..1) {
        title = format!("{}{}", first.to_uppercase(), &title[1..]);
    }
    Some(Proposal {
        title,
        context: format!("By the entry {name} of the library."),
        confidence: PATTERN_CONFIDENCE,
        steps,
        requirements: vec![Trace { id: "R1".to_owned(), steps: numbers, quote: None }],
        questions: Vec::new(),
    })
}

fn step(tree: &StepTree) -> Option<Step> {
    let (node, said) = (&tree.node, &tree.node.attributes);
    let has_more = said.when.is_said()
        || tree.for_each.is_some()
        || said.guard.is_said()
        || said.workspace.is_said()
        || said.protects.is_said()
        || said.locks.is_said()
        || !tree.needed_templates.is_empty();
    if node.kind.value != Kind::Task || has_more {
        return None;
    }
    let contract = node.contract.as_ref()?;
    let reads = said.subscriptions.entries().iter().map(|subscription| match &subscription.value {
        Subscription::File { path } => Some(path.clone()),
        Subscription::Topic { .. } => None,
    });
    Some(Step {
        title: node.step_title().to_owned(),
        role: node.role.as_ref()?.value.clone(),
        task: node.task.as_ref()?.value.clone(),
        contract: contract.command.clone(),
        exit_code: contract.expected(),
        changes: said.changes.entries().iter().map(|path| path.value.clone()).collect(),
        reads: reads.collect::<Option<_>>()?,
        needs: tree.needs().map(|needs| needs.value),
    })
}
