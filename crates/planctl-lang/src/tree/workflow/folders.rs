//! The folders in which sub-plans work: `stack.child_workdir` of a node, else of its graph (DOT A6).

use std::collections::BTreeSet;

use super::tree::{Kind, NodeTree, Workflow};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::{Facts, FileFact};
use crate::text::paths::leaves_workspace;
use crate::text::{Spanned, escape};

/// Returns the folder in which a sub-plan works, as it is kept; nothing where that is the one around it.
pub(crate) fn folder(workflow: &Workflow, node: &NodeTree) -> Option<String> {
    kept(&said_for(workflow, node)?.value)
}

/// Returns the folder of a sub-plan as it is written: its own, or its graph's.
pub(crate) fn said_for<'w>(workflow: &'w Workflow, node: &'w NodeTree) -> Option<&'w Spanned<String>> {
    node.attributes.child_workdir.text().or(workflow.attributes.child_workdir.text())
}

/// Returns a folder in its shortest form; nothing where that is the one it is relative to.
fn kept(said: &str) -> Option<String> {
    if said.starts_with('/') {
        return Some(said.to_owned());
    }
    let parts: Vec<&str> = said.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Returns each place that names a folder of a sub-plan: those of nodes, and the graph's where a node goes by it.
fn said(workflow: &Workflow) -> Vec<&Spanned<String>> {
    let of_kind = || workflow.nodes.iter().filter(|node| node.kind.value == Kind::SubPlan);
    let mut said: Vec<&Spanned<String>> =
        of_kind().filter_map(|node| node.attributes.child_workdir.raw()).collect();
    if of_kind().any(|node| node.attributes.child_workdir.raw().is_none()) {
        said.extend(workflow.attributes.child_workdir.raw());
    }
    said
}

/// Returns the folders of which the lints want to know what is there.
pub(crate) fn asked(workflow: &Workflow) -> BTreeSet<String> {
    let sound = said(workflow).into_iter().filter(|said| refused(said).is_none());
    sound.filter_map(|said| kept(&said.value)).collect()
}

/// Finds folders that can be none of any workspace.
pub(super) fn lint(workflow: &Workflow, found: &mut Vec<Diagnostic>) {
    found.extend(said(workflow).into_iter().filter_map(refused));
}

fn refused(said: &Spanned<String>) -> Option<Diagnostic> {
    let shown = escape(&said.value);
    let help = "name a folder of the workspace, as `services/api`, or leave it out";
    if said.value.trim().is_empty() || said.value.contains(char::is_control) {
        let what =
            if said.value.trim().is_empty() { "is empty" } else { "has a character that none can have" };
        let message = format!("the folder `{shown}` of a sub-plan {what}");
        return Some(Diagnostic::new(Code::P015, message).at(said.span, "").help(help));
    }
    let why = leaves_workspace(&said.value)?;
    let message = format!("the folder `{shown}` of a sub-plan {why}");
    let outside = Diagnostic::new(Code::P205, message);
    Some(outside.at(said.span, "it is relative to the folder where the plan around it works").help(help))
}

/// Finds folders that are not there, or are none.
pub(crate) fn lint_there(workflow: &Workflow, facts: &Facts, found: &mut Vec<Diagnostic>) {
    for said in said(workflow).into_iter().filter(|said| refused(said).is_none()) {
        let Some(folder) = kept(&said.value) else { continue };
        let Some(fact) = facts.files.get(&folder) else { continue };
        found.extend(
            folder_finding(&folder, fact).map(|finding| finding.at(said.span, "a sub-plan works there")),
        );
    }
}

fn folder_finding(folder: &str, fact: &FileFact) -> Option<Diagnostic> {
    let shown = escape(folder);
    let no_folder = |what: &str| {
        let message = format!("`{shown}` is {what}, not a folder");
        Diagnostic::new(Code::P213, message).level(Severity::Error).help("name a folder of the workspace")
    };
    Some(match fact {
        FileFact::Directory => return None,
        FileFact::Missing => Diagnostic::new(Code::P213, format!("the folder `{shown}` is not there"))
            .note("until it is, the plan within is verified as if it were empty")
            .help("make it, mend its name, or let an earlier step make it"),
        FileFact::Outside { target } => {
            let message = format!("the folder `{shown}` is behind a link that leaves the workspace");
            let outside = Diagnostic::new(Code::P205, message).help("name a folder of the workspace itself");
            match target.as_str() {
                "" => outside,
                target => outside.note(format!("it leads to `{}`", escape(target))),
            }
        }
        FileFact::Regular { .. } => no_folder("a file"),
        FileFact::Special { special } => no_folder(special.as_str()),
        FileFact::Unreadable { reason } => {
            let message = format!("the folder `{shown}` can't be looked at: {}", escape(reason));
            Diagnostic::new(Code::P213, message)
                .level(Severity::Error)
                .help("let the user that runs planctl read it")
        }
    })
}
