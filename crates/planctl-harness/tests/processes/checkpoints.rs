//! Checkpoints of real workspaces: recorded, restored, with nothing of the user's repository changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use planctl_harness::{Checkpoints, WorktreeError, changes_since_head};

use crate::processes::support::{block_on, spawner};

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials![
        g08_files_that_changed_went_or_came_are_as_they_were,
        g08_the_users_repository_stays_as_it_is,
        g08_a_workspace_without_a_repository_is_recorded_too,
        g08_what_was_never_recorded_is_refused,
        g08_a_plan_that_is_being_written_is_no_change_of_the_workspace,
        p71_text_that_a_worker_marks_as_binary_is_shown,
        p71_an_object_that_a_worker_forged_is_neither_shown_nor_restored,
        p71_files_of_a_repository_within_the_workspace_are_shown_and_restored,
        p10_what_git_leaves_behind_where_it_is_killed_is_in_nobody_s_way,
    ]
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.workspace()).unwrap();
        place.write("a.txt", "one\n");
        place.write("src/b.txt", "two\n");
        place.write(".gitignore", "target/\n");
        place.write("target/built", "big\n");
        place
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(path)).ok()
    }

    fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(spawner(), self.folder.path().join("kept/run"))
    }

    fn spoil(&self) {
        self.write("a.txt", "spoilt\n");
        std::fs::remove_file(self.workspace().join("src/b.txt")).unwrap();
        self.write("new/c.txt", "three\n");
        self.write("target/built", "bigger\n");
    }

    fn assert_as_recorded(&self) {
        assert_eq!(self.read("a.txt").as_deref(), Some("one\n"));
        assert_eq!(self.read("src/b.txt").as_deref(), Some("two\n"));
        assert_eq!(self.read("new/c.txt"), None);
        assert_eq!(self.read("target/built").as_deref(), Some("bigger\n"), "ignored files stay");
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(folder)
        .env_remove("GIT_DIR")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn g08_files_that_changed_went_or_came_are_as_they_were() {
    let place = Place::new();
    git(&place.workspace(), &["init", "--quiet"]);
    git(&place.workspace(), &["add", "-A"]);
    git(&place.workspace(), &["commit", "--quiet", "-m", "first"]);
    let checkpoints = place.checkpoints();
    let name = block_on(checkpoints.record(&place.workspace())).unwrap();
    place.spoil();
    let spoilt = block_on(checkpoints.record(&place.workspace())).unwrap();
    assert_ne!(name, spoilt);
    block_on(checkpoints.restore(&place.workspace(), &name)).unwrap();
    place.assert_as_recorded();
    // A second time nothing is left to do, and a later record can be restored as well.
    block_on(checkpoints.restore(&place.workspace(), &name)).unwrap();
    block_on(checkpoints.restore(&place.workspace(), &spoilt)).unwrap();
    assert_eq!(place.read("new/c.txt").as_deref(), Some("three\n"));
}

fn g08_the_users_repository_stays_as_it_is() {
    let place = Place::new();
    let top = place.workspace();
    git(&top, &["init", "--quiet"]);
    git(&top, &["add", "-A"]);
    git(&top, &["commit", "--quiet", "-m", "first"]);
    place.write("a.txt", "staged\n");
    git(&top, &["add", "a.txt"]);
    let before = (git(&top, &["status", "--porcelain"]), git(&top, &["for-each-ref"]));
    let checkpoints = place.checkpoints();
    let name = block_on(checkpoints.record(&top)).unwrap();
    place.spoil();
    block_on(checkpoints.restore(&top, &name)).unwrap();
    assert_eq!((git(&top, &["status", "--porcelain"]), git(&top, &["for-each-ref"])), before);
    assert_eq!(place.read("a.txt").as_deref(), Some("staged\n"));
}

fn g08_a_workspace_without_a_repository_is_recorded_too() {
    let place = Place::new();
    let checkpoints = place.checkpoints();
    let name = block_on(checkpoints.record(&place.workspace())).unwrap();
    place.spoil();
    block_on(checkpoints.restore(&place.workspace(), &name)).unwrap();
    place.assert_as_recorded();
}

fn g08_what_was_never_recorded_is_refused() {
    let place = Place::new();
    let refused = block_on(place.checkpoints().restore(&place.workspace(), &"0".repeat(40))).unwrap_err();
    assert!(refused.to_string().contains("git rev-parse"), "{refused}");
    assert_eq!(place.read("a.txt").as_deref(), Some("one\n"));
}

/// Git removes its locks where it fails and where it is asked to end, and not where it is killed.
fn g08_a_plan_that_is_being_written_is_no_change_of_the_workspace() {
    let place = Place::new();
    let checkpoints = place.checkpoints();
    place.write("plans/.planctl-a1b2c3.tmp", "half a plan\n");
    block_on(checkpoints.record_as(&place.workspace(), "begin")).unwrap();
    std::fs::remove_file(place.workspace().join("plans/.planctl-a1b2c3.tmp")).unwrap();
    place.write(".planctl-d4e5f6.tmp", "half another\n");
    let changes = block_on(checkpoints.changes_since(&place.workspace(), "begin", "plan.md", 1024));
    let changes = changes.unwrap().unwrap();
    assert!(changes.files.is_empty(), "{:?}", changes.files);
}

fn p71_text_that_a_worker_marks_as_binary_is_shown() {
    let place = Place::new();
    let (top, checkpoints) = (place.workspace(), place.checkpoints());
    git(&top, &["init", "--quiet"]);
    git(&top, &["add", "-A"]);
    git(&top, &["commit", "--quiet", "-m", "first"]);
    block_on(checkpoints.record_as(&top, "begin")).unwrap();
    place.write("new.py", "EVIL\n");
    place.write("a.txt", "more\n");
    place.write(".gitattributes", "*.py -diff\n*.txt binary\n");
    place.write("within/app.py", "within\n");
    git(&top.join("within"), &["init", "--quiet"]);
    let since_begin = block_on(checkpoints.changes_since(&top, "begin", "plan.md", 4096)).unwrap();
    let since_head = block_on(changes_since_head(&spawner(), &top, "plan.md", 4096)).unwrap();
    for changes in [since_begin.unwrap(), since_head.unwrap()] {
        for line in ["+EVIL", "+more", "+within"] {
            assert!(changes.diff.contains(line), "{}", changes.diff);
        }
        assert_eq!(changes.files["new.py"].lines, Some((1, 0)));
        let names = [".gitattributes", "a.txt", "new.py", "within/app.py"];
        assert_eq!(changes.files.keys().collect::<Vec<_>>(), names);
    }
}

fn p71_an_object_that_a_worker_forged_is_neither_shown_nor_restored() {
    let place = Place::new();
    let (top, checkpoints) = (place.workspace(), place.checkpoints());
    git(&top, &["init", "--quiet"]);
    block_on(checkpoints.record_as(&top, "begin")).unwrap();
    place.write("new.py", "good\n");
    let file = |name: &str| top.join(".git/objects").join(&name[..2]).join(&name[2..]);
    let good = file(git(&top, &["hash-object", "-w", "new.py"]).trim());
    place.write("new.py", "EVIL\n");
    let evil = file(git(&top, &["hash-object", "new.py"]).trim());
    std::fs::create_dir_all(evil.parent().unwrap()).unwrap();
    std::fs::copy(good, &evil).unwrap();
    let recorded = block_on(checkpoints.record(&top)).unwrap();
    let since_begin = || block_on(checkpoints.changes_since(&top, "begin", "plan.md", 4096));
    let is_forged =
        |error: &WorktreeError| matches!(error, WorktreeError::Forged { of, .. } if of == "new.py");
    assert!(since_begin().is_err_and(|error| is_forged(&error)));
    place.write("new.py", "later\n");
    assert!(block_on(checkpoints.restore(&top, &recorded)).is_err_and(|error| is_forged(&error)));
    assert_eq!(place.read("new.py").as_deref(), Some("later\n"));
    // The help for a person is true.
    place.write("new.py", "EVIL\n");
    assert!(since_begin().is_err());
    std::fs::remove_file(&evil).unwrap();
    assert!(since_begin().unwrap().unwrap().diff.contains("+EVIL"));
}

fn p71_files_of_a_repository_within_the_workspace_are_shown_and_restored() {
    let place = Place::new();
    for name in ["old", "old/within"] {
        place.write(&format!("{name}/app.py"), "one\n");
        git(&place.workspace().join(name), &["init", "--quiet"]);
    }
    let checkpoints = place.checkpoints();
    let name = block_on(checkpoints.record(&place.workspace())).unwrap();
    block_on(checkpoints.record_as(&place.workspace(), "begin")).unwrap();
    place.write("old/within/app.py", "two\n");
    place.write("new/app.py", "EVIL\n");
    let new = place.workspace().join("new");
    git(&new, &["init", "--quiet"]);
    git(&new, &["add", "-A"]);
    git(&new, &["commit", "--quiet", "-m", "first"]);
    for _ in 0..2 {
        let changes = block_on(checkpoints.changes_since(&place.workspace(), "begin", "plan.md", 4096));
        let changes = changes.unwrap().unwrap();
        assert!(changes.diff.contains("+EVIL") && changes.diff.contains("+two"), "{}", changes.diff);
        assert_eq!(changes.files.keys().collect::<Vec<_>>(), ["new/app.py", "old/within/app.py"]);
    }
    block_on(checkpoints.restore(&place.workspace(), &name)).unwrap();
    assert_eq!(place.read("old/within/app.py").as_deref(), Some("one\n"));
    assert_eq!(place.read("new/app.py"), None);
    assert_eq!(git(&new, &["show", "HEAD:app.py"]), "EVIL\n", "the repository itself stays");
}

fn p10_what_git_leaves_behind_where_it_is_killed_is_in_nobody_s_way() {
    let place = Place::new();
    let kept = place.folder.path().join("kept/run");
    // In the middle of the first call, and of the later ones.
    std::fs::create_dir_all(kept.join("refs")).unwrap();
    std::fs::write(kept.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(kept.join("config.lock"), "").unwrap();
    let checkpoints = place.checkpoints();
    let name = block_on(checkpoints.record(&place.workspace())).unwrap();
    std::fs::write(kept.join("index.lock"), "").unwrap();
    place.spoil();
    std::fs::write(kept.join(format!("refs/checkpoints/{name}.lock")), "").unwrap();
    block_on(checkpoints.restore(&place.workspace(), &name)).unwrap();
    place.assert_as_recorded();
    std::fs::write(kept.join(format!("refs/checkpoints/{name}.lock")), "").unwrap();
    assert_eq!(block_on(checkpoints.record(&place.workspace())).unwrap(), name);
}
