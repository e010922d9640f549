//! Which files the worker of a step may not change, and against which state of them its gate compares (DESIGN 8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planctl_engine::{Digest, Graph, Task};
use planctl_harness::{Baseline, ProtectError};

/// Takes the baseline of a plan: files that a contract names and that neither its step's task nor its subscriptions
/// name, and files that match a step's `protects`.
///
/// # Errors
///
/// Those of the harness, where a glob can't be expanded.
pub fn baseline_of_plan(graph: &Graph, workspace: &Path) -> Result<Baseline, ProtectError> {
    let steps = graph.steps();
    let files: BTreeSet<&str> = steps
        .iter()
        .flat_map(|(_, task)| task.contract_files.difference(&task.own_files))
        .map(String::as_str)
        .collect();
    let globs: BTreeSet<&str> =
        steps.iter().flat_map(|(_, task)| task.protects.iter()).map(String::as_str).collect();
    Baseline::take(workspace, files, globs)
}

/// Returns what the gate of a step compares: everything approved, less what the step itself may change.
///
/// Globs of other steps guard those steps; the files they matched at approval are kept here too, unless this step names
/// them. `moved` holds files that an earlier step rightfully changed, as its passing gate found them.
pub(crate) fn baseline_of_step(
    approved: &Baseline,
    task: &Task,
    moved: &BTreeMap<String, Option<Digest>>,
    workspace: &Path,
) -> Result<Baseline, ProtectError> {
    let mut baseline = Baseline {
        files: approved
            .files
            .iter()
            .filter(|(path, _)| !task.own_files.contains(*path))
            .map(|(path, state)| (path.clone(), state.clone()))
            .collect(),
        globs: task.protects.iter().cloned().collect(),
    };
    let moved: BTreeMap<&String, &Option<Digest>> =
        moved.iter().filter(|(path, _)| !task.own_files.contains(*path)).collect();
    if moved.is_empty() {
        return Ok(baseline);
    }
    // The state on disk gives the mode, the evidence gives the content that passed.
    baseline.move_files(workspace, moved.keys().map(|path| path.as_str()))?;
    for (path, digest) in moved {
        match (digest, baseline.files.get_mut(path)) {
            (Some(digest), Some(state)) => state.digest = digest.clone(),
            (None, Some(_)) => {
                baseline.files.remove(path);
            }
            (Some(_) | None, None) => {}
        }
    }
    Ok(baseline)
}

/// Returns the approved files that a step may change, whose state its passing gate has to record.
pub(crate) fn files_of_own<'a>(approved: &'a Baseline, task: &'a Task) -> Vec<&'a str> {
    task.own_files.iter().filter(|path| approved.files.contains_key(*path)).map(String::as_str).collect()
}
