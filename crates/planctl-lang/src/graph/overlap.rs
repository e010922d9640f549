//! Steps of different branches that touch one file: in one workspace they never run at once (DESIGN 6).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{GraphParts, NodeKind};

use super::Plan;
use super::meet::Net;
use crate::analysis::mentions::Role;
use crate::analysis::order::Part;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::escape;
use crate::tree::workflow::Kind;

/// The most findings; all steps are kept apart, told or not.
const FINDINGS_MAX: usize = 20;
/// The most forks of which the branches are told apart, each at the cost of some walks; with more, all steps that name a
/// file that some step changes are kept apart.
const FORKS_MAX: usize = 100;

/// Keeps steps apart that may be under way at once and of which one changes what the other names, and says which they are.
pub(super) fn keep_apart(parts: &mut GraphParts, plan: &Plan<'_>, net: &Net) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    if parts.limits.parallel <= 1 {
        return findings;
    }
    let order =
        if plan.is_markdown { "let one need the other" } else { "lead an edge from one to the other" };
    let help = format!("{order} where the order matters, or give each a file of its own");
    let branches = branches(parts, plan, net);
    if branches.is_empty() {
        return findings;
    }
    let mut excludes: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    let are_many = branches.len() >= FORKS_MAX;
    for (path, named) in plan.order.shared_files() {
        let found = pair(named, &branches, plan);
        if found.is_none() && !(are_many && named.iter().any(|part| changes(part, plan))) {
            continue;
        }
        let is_on_branch = |part: &&Part| are_many || branches.iter().any(|of| of.contains_key(&part.step));
        for part in named.iter().filter(is_on_branch) {
            excludes.entry(plan.steps[part.step].number.unwrap_or(0)).or_default().insert(path);
        }
        if let Some((one, other)) = found.filter(|_| findings.len() < FINDINGS_MAX) {
            let (one_step, other_step) = (plan.steps[one.step], plan.steps[other.step]);
            let (first, second) = (escape(&one_step.id.value), escape(&other_step.id.value));
            let message =
                format!("steps {first} and {second} may run at once, and both touch `{}`", escape(path));
            let finding = Diagnostic::new(Code::P316, message)
                .at(other.span, format!("step {second} names it"))
                .at(one.span, format!("step {first} changes it"))
                .note("they run one after the other, in either order")
                .help(help.clone());
            findings.push(finding.step(other_step.step_name()));
        }
    }
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind {
            task.excludes =
                excludes.get(&task.step).into_iter().flatten().map(|path| (*path).to_owned()).collect();
        }
    }
    findings
}

/// Returns, for each fork, the branch of every step that lies on one branch only.
fn branches(parts: &GraphParts, plan: &Plan<'_>, net: &Net) -> Vec<BTreeMap<usize, usize>> {
    // Nodes that lowering adds come after those of the plan, and are no steps.
    let step_of = |node: usize| plan.workflow.nodes.get(node)?.step;
    let of_fork = |fork: &usize| {
        let own = net.branches(*fork).into_iter();
        own.filter_map(|(node, branch)| Some((step_of(node)?, branch))).collect()
    };
    // A step that works in a worktree of its own touches nobody's files.
    let is_shared =
        |fork: &&usize| !matches!(&parts.nodes[**fork].kind, NodeKind::Fork(fork) if fork.in_worktree);
    net.forks.iter().filter(is_shared).take(FORKS_MAX).map(of_fork).collect()
}

/// Returns two steps of different branches, of which the first changes the file.
fn pair<'o>(
    named: &'o [Part],
    branches: &[BTreeMap<usize, usize>],
    plan: &Plan<'_>,
) -> Option<(&'o Part, &'o Part)> {
    branches.iter().find_map(|of| {
        let on_branch: Vec<(&Part, usize)> =
            named.iter().filter_map(|part| Some((part, *of.get(&part.step)?))).collect();
        on_branch.iter().filter(|(part, _)| changes(part, plan)).take(PARTS_MAX).find_map(|(one, branch)| {
            let other = on_branch.iter().find(|(_, beside)| beside != branch)?;
            Some((*one, other.0))
        })
    })
}

// The contract of a worker's step tests what the worker makes; a call that tests something looks at what is there.
fn changes(part: &Part, plan: &Plan<'_>) -> bool {
    match part.role {
        Role::Makes | Role::Changes => true,
        Role::Proves => plan.steps[part.step].kind.value == Kind::Task,
        Role::Names | Role::Reads | Role::Judges => false,
    }
}

/// The most steps that change a file of which it is asked who else names it.
const PARTS_MAX: usize = 100;
