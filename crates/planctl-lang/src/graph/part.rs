//! Branches with git worktrees of their own: a fork parts where it says so, or a node on one of its branches does.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{GraphParts, NodeKind};

use super::meet::Net;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, escape};
use crate::tree::WorkspaceMode;
use crate::tree::workflow::{EdgeTree, Workflow};

/// The most forks whose branches are looked at; each costs a walk over them.
const FORKS_MAX: usize = 500;

/// Parts the forks of which a node says `worktree`: the innermost around it.
///
/// # Errors
///
/// Names the nodes that are on no branch, and the forks whose branches don't meet, since nothing could merge them.
pub(super) fn part_forks(
    parts: &mut GraphParts,
    workflow: &Workflow,
    net: &Net,
) -> Result<(), Vec<Diagnostic>> {
    let wanted: BTreeMap<&str, Span> = workflow
        .nodes
        .iter()
        .filter_map(|node| {
            let mode =
                node.attributes.workspace.spanned().filter(|mode| mode.value == WorkspaceMode::Worktree)?;
            Some((node.id.value.as_str(), mode.span))
        })
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut forks: Vec<(usize, BTreeMap<usize, usize>)> =
        net.forks.iter().take(FORKS_MAX).map(|fork| (*fork, net.branches(*fork))).collect();
    forks.sort_by_key(|(_, branches)| branches.len());
    let (mut in_worktrees, mut findings) = (BTreeSet::new(), Vec::new());
    for (at, node) in parts.nodes.iter().enumerate() {
        let Some(span) = wanted.get(node.id.as_str()) else { continue };
        let name = escape(node.id.as_str());
        let around = forks.iter().find(|(fork, branches)| *fork == at || branches.contains_key(&at));
        match around.map(|(fork, _)| (*fork, &parts.nodes[*fork].kind)) {
            Some((fork, NodeKind::Fork(of))) if of.join.is_some() => {
                in_worktrees.insert(fork);
            }
            Some(_) => findings.push(
                Diagnostic::new(
                    Code::P315,
                    format!("`{name}` works in a worktree of its own, and its branch meets no other"),
                )
                .at(*span, "nothing would merge what it does")
                .help("let the branches lead to a join, or write `shared`"),
            ),
            None => findings.push(
                Diagnostic::new(
                    Code::P017,
                    format!("a worktree for `{name}`, which is on no branch, is not supported yet"),
                )
                .at(*span, "")
                .help("delete it; a whole run works in a worktree with `planctl run --workspace worktree`"),
            ),
        }
    }
    let forked: Vec<_> = forks.iter().filter(|(fork, _)| in_worktrees.contains(fork)).collect();
    let is_forked = |edge: &&EdgeTree| {
        let to = parts.nodes.iter().position(|node| node.id.as_str() == edge.to.value);
        to.is_some_and(|to| forked.iter().any(|(_, branches)| branches.contains_key(&to)))
    };
    for edge in workflow.edges.iter().filter(|edge| edge.loop_restart).filter(is_forked) {
        let name = escape(&edge.to.value);
        findings.push(
            Diagnostic::new(
                Code::P315,
                format!("the run would begin anew at `{name}`, on a branch that has a worktree of its own"),
            )
            .at(edge.span, "its fork makes the worktree, and would not be entered")
            .help("lead it to the fork or to a node before it"),
        );
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    for at in in_worktrees {
        if let NodeKind::Fork(fork) = &mut parts.nodes[at].kind {
            fork.in_worktree = true;
        }
    }
    Ok(())
}
