//! Which files the worker of a step may not change, and against which state of them its gate compares (DESIGN 8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planctl_engine::{Digest, Gated, Graph, Node};
use planctl_glob::{Glob, is_glob};
use planctl_harness::{
    Baseline, ENTRIES_MAX, EntryKind, FileState, PROTECTED_FILES_MAX, ProtectError, expand_glob, list_files,
};
use planctl_lang::{Look, NamedFiles};

/// Takes the baseline of a plan: the files that decide its contracts and that its workers may not change, and the files that
/// a step `protects`.
///
/// A contract's judges are found in its text and in files of the workspace that its tools read (a list of tests, the
/// script in `package.json`), so it is settled here, where an approval binds it. Among them may be the plan's own file, and
/// those of the plans that it carries out, into which planctl draws marks.
///
/// # Errors
///
/// Those of the harness, where a glob can't be expanded.
pub fn baseline_of_plan(graph: &Graph, workspace: &Path, plan_file: &Path) -> Result<Baseline, ProtectError> {
    let look = Workspace(workspace);
    let mut kept = BTreeSet::new();
    let mut fixed: BTreeMap<String, BTreeSet<Digest>> = BTreeMap::new();
    for gated in graph.nodes().iter().filter_map(Node::gated) {
        let own = change_rights(&gated);
        let deciding = planctl_lang::deciding(&gated.contract.command, &look);
        let named = gated.contract_files.iter().filter(|path| !is_glob(path)).cloned();
        kept.extend(look.expanded(&own, named.chain(deciding.kept)));
        for path in deciding.fixed.into_iter().filter(|path| !own.may_change(path)) {
            fixed.entry(path).or_default().insert(gated.contract.digest.clone());
        }
    }
    let mut baseline = Baseline::take(workspace, kept.iter().map(String::as_str), globs_of(graph))?;
    baseline.add_deciding(workspace, fixed)?;
    if let Some(plan) = plan_file.strip_prefix(workspace).ok().and_then(Path::to_str) {
        baseline.note_plan(plan);
    }
    for (_, plan) in graph.sub_plans() {
        baseline.note_plan(&plan.path);
    }
    Ok(baseline)
}

/// Returns the files of a workspace that a command names, by what it does with them.
pub fn named_files(command: &str, workspace: &Path) -> NamedFiles {
    planctl_lang::named_files(command, &Workspace(workspace))
}

/// The largest file of a tool that is read to see what it runs.
const READ_BYTES_MAX: usize = 256 * 1024;

/// The workspace as the tools of contracts see it.
struct Workspace<'a>(&'a Path);

impl Workspace<'_> {
    /// Returns names, and what patterns match, less what a step may change itself.
    fn expanded(&self, own: &Baseline, names: impl Iterator<Item = String>) -> BTreeSet<String> {
        let (patterns, mut found) = names.partition::<BTreeSet<_>, _>(|name| is_glob(name));
        let patterns: Vec<Glob> = patterns.iter().filter_map(|pattern| Glob::parse(pattern).ok()).collect();
        if !patterns.is_empty() {
            let listed = list_files(self.0, ENTRIES_MAX);
            if listed.is_cut {
                tracing::warn!(workspace = %self.0.display(), "too many files to find all that decide the contracts");
            }
            let decides = |path: &String| patterns.iter().any(|pattern| pattern.matches(path));
            found.extend(listed.files.into_iter().filter(decides).take(PROTECTED_FILES_MAX));
        }
        found.retain(|path| !own.may_change(path));
        found
    }
}

impl Look for Workspace<'_> {
    fn read(&self, path: &str) -> Option<String> {
        let bytes = planctl_harness::read_entry(self.0, path).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.len() <= READ_BYTES_MAX)
    }

    fn has(&self, path: &str) -> Option<bool> {
        Some(self.0.join(path).symlink_metadata().is_ok())
    }

    fn inside(&self, absolute: &str) -> Option<String> {
        Path::new(absolute).strip_prefix(self.0).ok()?.to_str().map(str::to_owned)
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        // One that names a file needs no walk.
        if !is_glob(pattern) {
            return Vec::from_iter(self.0.join(pattern).is_file().then(|| pattern.to_owned()));
        }
        expand_glob(self.0, pattern, PROTECTED_FILES_MAX).unwrap_or_default().files
    }
}

/// Returns the files that a step may change, as a baseline that frees them; the step's own protected files stay protected.
pub(crate) fn change_rights(step: &Gated<'_>) -> Baseline {
    Baseline {
        globs: step.protects.iter().cloned().collect(),
        free: step.may_change.clone(),
        ..Baseline::default()
    }
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
/// Globs of other steps, and what was not there and decides their contracts, guard those steps; the files that were there
/// at approval are kept here too, unless this step may change them. `moved` holds files that an earlier step rightfully
/// changed, as its passing gate found them.
pub(crate) fn baseline_of_step(
    approved: &Baseline,
    step: &Gated<'_>,
    moved: &BTreeMap<String, Option<Digest>>,
    workspace: &Path,
) -> Result<Baseline, ProtectError> {
    let deciding =
        approved.deciding.iter().filter(|(_, contracts)| contracts.contains(&step.contract.digest));
    let deciding = deciding.map(|(path, contracts)| (path.clone(), contracts.clone())).collect();
    let (files, marked) = (approved.files.clone(), approved.marked.clone());
    let baseline = Baseline { files, deciding, marked, ..change_rights(step) };
    let moved = moved.iter().filter(|(path, _)| !baseline.may_change(path));
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
        let is_covered = baseline.covers(path);
        match (digest, baseline.files.get_mut(path)) {
            (Some(digest), Some(state)) => state.digest = digest.clone(),
            (None, Some(_)) => {
                baseline.files.remove(path);
            }
            // The file that passed is gone, or something else stands in its place.
            (Some(digest), None) if is_covered => {
                let state = FileState {
                    digest: digest.clone(),
                    executable: false,
                    link: None,
                    at: None,
                    kind: EntryKind::File,
                };
                baseline.files.insert(path.clone(), state);
            }
            (Some(_) | None, None) => {}
        }
    }
    Ok(baseline)
}

/// Returns the protected files that decide a step's contract, and the globs of such files.
pub fn judges_of(baseline: &Baseline, step: &Gated<'_>) -> Vec<String> {
    let rights = change_rights(step);
    let is_there = |path: &String| match Glob::parse(path).ok().filter(|_| is_glob(path)) {
        Some(glob) => baseline.files.keys().any(|file| glob.matches(file) && !rights.may_change(file)),
        None => {
            (baseline.files.contains_key(path) || baseline.deciding.contains_key(path))
                && !rights.may_change(path)
        }
    };
    let decides = step.contract_files.iter().filter(|path| is_there(path));
    decides.chain(step.protects).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Says whether a step may change any file that is protected from others: its passing gate moves the baseline of those.
pub(crate) fn is_mover(approved: &Baseline, step: &Gated<'_>) -> bool {
    let has_patterns = !approved.globs.is_empty() || !approved.deciding.is_empty();
    let may_match = |path: &String| is_glob(path) && has_patterns;
    let rights = change_rights(step);
    step.may_change.iter().any(|path| approved.covers(path) || may_match(path))
        || !step.may_change.is_empty() && approved.files.keys().any(|path| rights.may_change(path))
}

/// Says whether a file is protected from others and this step may change it.
pub(crate) fn may_move(approved: &Baseline, step: &Gated<'_>, path: &str) -> bool {
    approved.covers(path) && change_rights(step).may_change(path)
}

/// Returns the state of the protected files that a step may change or make, which its passing gate records; `None` where a
/// file is gone. `known` holds those that earlier steps made.
///
/// # Errors
///
/// Those of the harness, where the workspace can't be looked at.
pub(crate) fn changes_by_step(
    approved: &Baseline,
    step: &Gated<'_>,
    known: &BTreeMap<String, Option<Digest>>,
    workspace: &Path,
) -> Result<BTreeMap<String, Option<Digest>>, ProtectError> {
    let rights = change_rights(step);
    let named = step.may_change.iter().filter(|path| !is_glob(path) && approved.covers(path));
    let covered = approved.files.keys().chain(approved.deciding.keys()).chain(known.keys());
    let covered = covered.filter(|path| !is_glob(path) && rights.may_change(path));
    let files: BTreeSet<&str> = named.chain(covered).map(String::as_str).collect();
    let has_glob = step.may_change.iter().any(|path| is_glob(path));
    let globs = approved.globs.iter().chain(approved.deciding.keys().filter(|path| is_glob(path)));
    let globs = globs.filter(|_| has_glob).map(String::as_str);
    let states = Baseline::take(workspace, files.iter().copied(), globs)?;
    let mut moved: BTreeMap<String, Option<Digest>> =
        files.into_iter().map(|path| (path.to_owned(), None)).collect();
    for (path, state) in states.files {
        if moved.contains_key(&path) || rights.may_change(&path) {
            moved.insert(path, Some(state.digest));
        }
    }
    Ok(moved)
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
                min_tests: None,
                judge: None,
            },
            max_retries: 0,
            on_exhausted: Outcome::Failed,
            work_timeout: Duration::from_secs(1),
            protects: protects.iter().map(|glob| (*glob).to_owned()).collect(),
            locks: Vec::new(),
            excludes: Vec::new(),
            contract_files: BTreeSet::new(),
            may_change: own.iter().map(|path| (*path).to_owned()).collect(),
        };
        Node::new(step.to_string().as_str(), "", NodeKind::Task(Box::new(task)))
    }

    #[test]
    fn a_step_with_a_glob_moves_what_it_makes_and_takes_away_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("tests")).unwrap();
        write("tests/old.sh", "exit 1");
        write("tests/kept.sh", "exit 1");
        let maker = task(1, &["tests/*.sh"], &["tests/kept.sh"]);
        let guard = task(2, &[], &["tests/**"]);
        let (maker, guard) = (maker.gated().unwrap(), guard.gated().unwrap());
        let approved = Baseline::take(folder.path(), [], ["tests/**", "tests/kept.sh"]).unwrap();
        assert!(is_mover(&approved, &maker) && !is_mover(&approved, &guard));
        std::fs::remove_file(folder.path().join("tests/old.sh")).unwrap();
        write("tests/new.sh", "exit 1");
        write("tests/kept.sh", "exit 0");
        let known = BTreeMap::from([("tests/once.sh".to_owned(), Some(Digest::new("sha256:1")))]);
        let moved = changes_by_step(&approved, &maker, &known, folder.path()).unwrap();
        let names: Vec<(&str, bool)> =
            moved.iter().map(|(path, digest)| (path.as_str(), digest.is_some())).collect();
        assert_eq!(names, [("tests/new.sh", true), ("tests/old.sh", false), ("tests/once.sh", false)]);
        let changes = || {
            let baseline = baseline_of_step(&approved, &guard, &moved, folder.path()).unwrap();
            let compared = baseline.compare(folder.path()).unwrap();
            compared.tampered.into_iter().map(|file| (file.path, file.change)).collect::<Vec<_>>()
        };
        assert_eq!(changes(), [("tests/kept.sh".to_owned(), FileChange::Changed)]);
        write("tests/kept.sh", "exit 1");
        std::fs::remove_file(folder.path().join("tests/new.sh")).unwrap();
        assert_eq!(changes(), [("tests/new.sh".to_owned(), FileChange::Deleted)], "what passed is gone");
    }

    #[test]
    fn a_file_that_an_earlier_step_made_is_no_surprise_to_a_glob_of_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let (maker, guard) = (task(1, &["repro.sh"], &[]), task(2, &[], &["repro.sh"]));
        let (maker, guard) = (maker.gated().unwrap(), guard.gated().unwrap());
        let approved = Baseline::take(folder.path(), [], ["repro.sh"]).unwrap();
        std::fs::write(folder.path().join("repro.sh"), "exit 1").unwrap();
        let moved = changes_by_step(&approved, &maker, &BTreeMap::new(), folder.path()).unwrap();
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
