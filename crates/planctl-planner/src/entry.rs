//! An entry of the library as a proposal: steps one after another, each with its contract, for the goal that found it.

use planctl_engine::Subscription;
use planctl_lang::workflow::Kind;
use planctl_lang::{PlanTree, StepTree};

use crate::goal::Goal;
use crate::pattern::PATTERN_CONFIDENCE;
use crate::proposal::{Proposal, Step, Trace};

/// Fills an entry in for a goal; nothing where the entry says more than a proposal can.
pub fn draft_of_entry(name: &str, entry: &PlanTree, goal: &Goal) -> Option<Proposal> {
    let has_more = entry.flow.is_some() || entry.parallel.is_some() || entry.steps.is_empty();
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
    let is_work = tree.node_kind() == Kind::Task;
    let has_more = tree.when.is_some()
        || tree.for_each.is_some()
        || tree.guard.is_some()
        || tree.workspace.is_some()
        || !tree.protects.is_empty()
        || !tree.locks.is_empty()
        || !tree.needed_templates.is_empty();
    if !is_work || has_more {
        return None;
    }
    let contract = tree.contract.as_ref()?;
    let reads = tree.subscriptions.iter().map(|subscription| match &subscription.value {
        Subscription::File { path } => Some(path.clone()),
        Subscription::Topic { .. } => None,
    });
    Some(Step {
        title: tree.title.value.clone(),
        role: tree.target.as_ref()?.value.clone(),
        task: tree.task.as_ref()?.value.clone(),
        contract: contract.command.clone(),
        exit_code: contract.exit_code.as_ref().map_or(0, |code| code.value),
        changes: tree.changes.iter().map(|path| path.value.clone()).collect(),
        reads: reads.collect::<Option<_>>()?,
        needs: tree.needs.as_ref().map(|needs| needs.value.clone()),
    })
}
