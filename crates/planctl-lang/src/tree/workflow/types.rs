//! Types of nodes that the configuration gives to roles (DOT S12): a name, and who works at nodes of that type.

use std::collections::BTreeMap;

use super::tree::{Kind, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::Spanned;

/// Gives the tasks whose type a role serves to that role, unless they name their own, and takes back what was said of types
/// that nobody knows.
pub(crate) fn serve(workflow: &mut Workflow, types: &BTreeMap<String, String>, found: &mut Vec<Diagnostic>) {
    for node in workflow.nodes.iter_mut().filter(|node| node.kind.value == Kind::Task) {
        let Some(name) = node.attributes.type_name.text() else { continue };
        let Some(role) = types.get(&name.value).filter(|_| Kind::from_word(&name.value).is_none()) else {
            continue;
        };
        found.retain(|found| {
            let place = found.spans.first().map(|label| label.span);
            found.code != Code::P314 || place != Some(name.span)
        });
        if !node.attributes.target.is_said() {
            node.role = Some(Spanned::new(role.clone(), name.span));
        }
    }
}
