//! Types of nodes that the configuration gives to roles (DOT S12): a name, and who works at nodes of that type.

use std::collections::BTreeMap;

use super::tree::{Kind, NodeTree, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::Spanned;
use crate::tree::PlanTree;

/// Gives the steps of nodes whose type a role serves to that role, unless they name their own, and takes back what was said of
/// types that nobody knows.
pub(crate) fn serve(
    tree: &mut PlanTree,
    workflow: &Workflow,
    types: &BTreeMap<String, String>,
    found: &mut Vec<Diagnostic>,
) {
    if types.is_empty() {
        return;
    }
    let served: Vec<(&NodeTree, &Spanned<String>, &String)> = workflow
        .nodes
        .iter()
        .filter(|node| node.kind.value == Kind::Task)
        .filter_map(|node| {
            let name = node.attributes.type_name.text()?;
            let is_own = Kind::from_word(&name.value).is_none();
            Some((node, name, types.get(&name.value).filter(|_| is_own)?))
        })
        .collect();
    found.retain(|found| {
        let place = found.spans.first().map(|label| label.span);
        found.code != Code::P314 || !served.iter().any(|(_, name, _)| Some(name.span) == place)
    });
    for (node, name, role) in served {
        if let Some(step) = node.step.and_then(|at| tree.steps.get_mut(at))
            && !node.attributes.target.is_said()
        {
            step.target = Some(Spanned::new(role.clone(), name.span));
        }
    }
}
