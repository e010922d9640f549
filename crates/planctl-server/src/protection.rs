//! Which files the worker of a step may not change, and against which state of them its gate compares (DESIGN 8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planctl_engine::{Digest, Gated, Graph, Node};
use planctl_harness::{Baseline, ProtectError};

/// Takes the baseline of a plan: files that a contract names and that neither its step's task nor its subscriptions
/// name, and files that match a step's `protects`.
///
/// # Errors
///
/// Those of the harness, where a glob can't be expanded.
pub fn baseline_of_plan(graph: &Graph, workspace: &Path) -> Result<Baseline, ProtectError> {
    let gated = graph.nodes().iter().filter_map(Node::gated);
    let files: BTreeSet<&str> = gated
        .flat_map(|gated| gated.contract_files.difference(gated.own_files))
        .map(String::as_str)
        .collect();
    Baseline::take(workspace, files, globs_of(graph))
}

/// Takes the baseline of a plan whose folder is not there yet.
pub(crate) fn baseline_of_nothing(graph: &Graph) -> Baseline {
    Baseline { globs: globs_of(graph).into_iter().map(str::to_owned).collect(), ..Baseline::default() }
}

fn globs_of(graph: &Graph) -> BTreeSet<&str> {
    let gated = graph.nodes().iter().filter_map(Node::gated);
    gated.flat_map(|gated| gated.protects.iter()).map(String::as_str).collect()
}

/// Returns what the gate of a step compares: everything approved, less what the step itself may change.
///
/// Globs of other steps guard those steps; the files they matched at approval are kept here too, unless this step names
/// them. `moved` holds files that an earlier step rightfully changed, as its passing gate found them.
pub(crate) fn baseline_of_step(
    approved: &Baseline,
    step: &Gated<'_>,
    moved: &BTreeMap<String, Option<Digest>>,
    workspace: &Path,
) -> Result<Baseline, ProtectError> {
    let baseline = Baseline {
        files: approved.files.clone(),
        globs: step.protects.iter().cloned().collect(),
        free: step.own_files.clone(),
        ..Baseline::default()
    };
    let moved = moved.iter().filter(|(path, _)| !baseline.frees(path));
    let moved = moved.map(|(path, digest)| (path.clone(), digest.clone())).collect();
    with_moved(baseline, &moved, workspace)
}

/// Moves the state of files that passed steps rightfully changed.
pub(crate) fn with_moved(
    mut baseline: Baseline,
    moved: &BTreeMap<String, Option<Digest>>,
    workspace: &Path,
) -> Result<Baseline, ProtectError> {
    if moved.is_empty() {
        return Ok(baseline);
    }
    // The state on disk gives the mode, the evidence gives the content that passed.
    baseline.move_files(workspace, moved.keys().map(String::as_str))?;
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

/// Returns the protected files that a step may change or make, whose state its passing gate has to record.
pub(crate) fn files_of_own<'a>(approved: &Baseline, step: &Gated<'a>) -> Vec<&'a str> {
    step.own_files.iter().map(String::as_str).filter(|path| approved.covers(path)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use planctl_engine::{Contract, FileChange, NodeKind, Outcome, Role, Task, WorkKind};

    use super::*;

    fn task(step: u32, own: &[&str], protects: &[&str]) -> Node {
        let task = Task {
            step,
            role: Role::new("coder"),
            pace: Vec::new(),
            work: WorkKind::Code,
            prompt: String::new(),
            subscriptions: Vec::new(),
            contract: Contract {
                command: "true".to_owned(),
                digest: Digest::new("sha256:0"),
                expect: 0,
                timeout: Duration::from_secs(1),
                guard: false,
                red_first: planctl_engine::RedFirst::Off,
            },
            max_retries: 0,
            lapse: Outcome::Failed,
            work_timeout: Duration::from_secs(1),
            protects: protects.iter().map(|glob| (*glob).to_owned()).collect(),
            locks: Vec::new(),
            apart: Vec::new(),
            contract_files: BTreeSet::new(),
            own_files: own.iter().map(|path| (*path).to_owned()).collect(),
        };
        Node::new(step.to_string().as_str(), "", NodeKind::Task(Box::new(task)))
    }

    #[test]
    fn a_file_that_an_earlier_step_made_is_no_surprise_to_a_glob_of_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let (maker, guard) = (task(1, &["repro.sh"], &[]), task(2, &[], &["repro.sh"]));
        let (maker, guard) = (maker.gated().unwrap(), guard.gated().unwrap());
        let approved = Baseline::take(folder.path(), [], ["repro.sh"]).unwrap();
        std::fs::write(folder.path().join("repro.sh"), "exit 1").unwrap();
        let made = Baseline::take(folder.path(), files_of_own(&approved, &maker), []).unwrap();
        let moved: BTreeMap<String, Option<Digest>> =
            made.files.iter().map(|(path, state)| (path.clone(), Some(state.digest.clone()))).collect();
        assert_eq!(moved.len(), 1);
        let changes = || {
            let baseline = baseline_of_step(&approved, &guard, &moved, folder.path()).unwrap();
            let compared = baseline.compare(folder.path()).unwrap();
            compared.tampered.into_iter().map(|file| file.change).collect::<Vec<_>>()
        };
        assert_eq!(changes(), []);
        std::fs::write(folder.path().join("repro.sh"), "exit 0").unwrap();
        assert_eq!(changes(), [FileChange::Changed]);
    }
}
