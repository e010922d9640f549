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
    let served: BTreeMap<&str, (&NodeTree, &String)> = workflow
        .nodes
        .iter()
        .filter(|node| node.kind.value == Kind::Task)
        .filter_map(|node| {
            let name = node.said.text("type").filter(|name| Kind::from_word(&name.value).is_none())?;
            Some((node.id.value.as_str(), (node, types.get(&name.value)?)))
        })
        .collect();
    found.retain(|found| {
        let is_of_type = |node: &NodeTree| {
            let span = node.said.text("type").map(|name| name.span);
            span.is_some() && span == found.spans.first().map(|label| label.span)
        };
        found.code != Code::P314 || !served.values().any(|(node, _)| is_of_type(node))
    });
    for step in &mut tree.steps {
        let node = step.node.as_deref().and_then(|id| served.get(id));
        if let Some((node, role)) = node
            && node.said.text("target").is_none()
        {
            let place = node.said.text("type").map_or(node.id.span, |name| name.span);
            step.target = Some(Spanned::new((*role).clone(), place));
        }
    }
}
