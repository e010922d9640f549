//! A source's instructions to the agent that works on a node, beside those that the engine runs.

use std::collections::BTreeMap;

use planctl_engine::NodeId;
use planctl_view::{Manual, Verify};

use super::tree::Workflow;
use crate::syntax::dot::NodeAttributes;
use crate::syntax::written::{Text, Written};

/// Returns what is said of each node that has a tool, a hint or a way of its own to be verified.
pub fn manual(workflow: &Workflow) -> BTreeMap<NodeId, Manual> {
    let of_node = workflow.nodes.iter().filter_map(|node| {
        let text = |field: &Written<Text>| field.text().map(|text| text.value.clone());
        let NodeAttributes { prompt, tool, tool_hint, verify_type, verify_value, .. } = &node.attributes;
        let verify = verify_type
            .text()
            .map(|kind| Verify { kind: kind.value.clone(), value: text(verify_value).unwrap_or_default() });
        let (tool, hint) = (text(tool), text(tool_hint));
        if tool.is_none() && hint.is_none() && verify.is_none() {
            return None;
        }
        let manual = Manual { action: text(prompt), tool, hint, verify };
        Some((NodeId::new(node.id.value.as_str()), manual))
    });
    of_node.collect()
}
