//! The files of plans within plans: `stack.child_dotfile` of a node, else of its graph (DOT S8).

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Kind, NodeTree, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::{Facts, SubPlanFact};
use crate::text::near::{Existing, ask_or_say};
use crate::text::{Spanned, escape};

/// Returns the file of the plan that a sub-plan carries out; nothing where none is named.
pub(crate) fn file<'w>(workflow: &'w Workflow, node: &'w NodeTree) -> Option<&'w Spanned<String>> {
    node.attributes.child_dotfile.text().or(workflow.attributes.child_dotfile.text())
}

/// Returns each place that names a file: those of nodes, and the graph's where a node goes by it.
fn said(workflow: &Workflow) -> impl Iterator<Item = &Spanned<String>> {
    let of_kind = workflow.nodes.iter().filter(|node| node.kind.value == Kind::SubPlan);
    let said: BTreeMap<_, _> =
        of_kind.filter_map(|node| file(workflow, node)).map(|said| (said.span, said)).collect();
    said.into_values()
}

/// Returns the files of which the lints want to know whether they are plans.
pub(crate) fn asked(workflow: &Workflow) -> BTreeSet<String> {
    said(workflow).map(|said| said.value.clone()).collect()
}

/// Finds plans that are not there, or are none.
pub(crate) fn lint_there(workflow: &Workflow, facts: &Facts, found: &mut Vec<Diagnostic>) {
    let mut existing = None;
    for said in said(workflow) {
        let shown = escape(&said.value);
        let finding = match facts.sub_plans.get(&said.value) {
            None | Some(SubPlanFact::Readable) => continue,
            Some(SubPlanFact::Missing) => {
                let around = || Existing::read(facts.existing_around.iter().map(String::as_str));
                let near = existing.get_or_insert_with(around).near(&said.value);
                let otherwise = "write it first, or mend its path: it is kept when a run of this plan begins";
                let help = ask_or_say(near.first().copied(), otherwise);
                Diagnostic::new(Code::P214, format!("the plan `{shown}` is not there")).help(help)
            }
            Some(SubPlanFact::Refused { why }) => {
                let message = format!("`{shown}` can't be read as a plan: {}", escape(why));
                Diagnostic::new(Code::P214, message).help("name the file of a plan: markdown, DOT or JSON")
            }
        };
        found.push(finding.at(said.span, "a sub-plan carries it out; the path is relative to the workspace"));
    }
}
