//! Worktrees of real repositories: made, cut off and made again, committed, merged, removed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use planctl_harness::{
    BranchWorktrees, Checkout, Intact, Joined, Merged, NewWorktree, WorktreeError, commit_all, merge_branch,
    uncommitted, worktree_intact,
};

use crate::processes::support::{block_on, eventually, spawner};

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials![
        a_worktree_is_made_beside_a_checkout_that_stays_as_it_is,
        what_an_interrupted_making_left_is_made_anew_and_other_work_never,
        no_hook_and_no_file_watcher_of_the_repository_runs,
        hole_11_no_program_that_a_repository_names_is_started,
        hole_10_what_is_committed_is_what_the_files_are_whatever_the_index_says,
        what_is_not_committed_is_told_by_name,
        repositories_of_which_no_worktree_can_be_made_are_refused,
        everything_is_committed_without_ignored_files,
        two_branches_that_fit_are_merged,
        a_conflict_shows_its_hunks,
        a_worktree_goes_only_when_nothing_is_lost,
        a_worktree_that_somebody_broke_is_told_from_a_whole_one,
        branches_begin_with_the_workspace_as_it_is_and_what_they_did_comes_into_it,
        a_merge_that_is_cut_off_anywhere_comes_to_the_same,
        p10_whoever_comes_after_one_that_was_killed_parts_and_merges_branches,
        p10_what_git_leaves_behind_of_branches_where_it_is_killed_is_in_nobody_s_way,
        git_and_planctl_mean_the_same_folder_behind_a_link,
        branches_that_do_not_fit_are_made_to_fit_by_a_person,
        what_changed_in_the_workspace_meanwhile_is_kept,
        what_changed_in_the_second_in_which_git_looked_last_is_kept,
        what_was_removed_and_made_in_branches_is_so_in_the_workspace,
        names_of_files_are_bytes,
        a_conflict_at_a_name_that_is_no_text_is_made_to_fit_by_a_person,
    ]
}

pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    /// A repository with `a.txt` and `.gitignore`, committed once.
    pub fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.top()).unwrap();
        git(&place.top(), &["init", "--quiet"]);
        place.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
        place.write(".gitignore", "target/\n");
        git(&place.top(), &["add", "-A"]);
        git(&place.top(), &["commit", "--quiet", "-m", "first"]);
        place
    }

    pub fn top(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repository")
    }

    pub fn tree(&self, name: &str) -> PathBuf {
        self.top().with_file_name("trees").join(name)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.top().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn checkout(&self) -> Checkout {
        block_on(Checkout::find(&spawner(), &self.top())).unwrap()
    }

    pub fn head(&self) -> String {
        planctl_harness::git_head(&self.top()).unwrap_or_default()
    }

    pub fn made(&self, name: &str) -> PathBuf {
        self.add(name).unwrap()
    }

    pub fn add(&self, name: &str) -> Result<PathBuf, WorktreeError> {
        let path = self.tree(name);
        let branch = format!("planctl/{name}");
        let new = NewWorktree { path: &path, branch: &branch, commit: &self.head(), reason: "a run" };
        block_on(self.checkout().add(&new)).map(|()| path)
    }
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let (is_well, printed) = try_git(folder, arguments);
    assert!(is_well, "git {arguments:?}: {printed}");
    printed
}

fn try_git(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success(), format!("{printed}{}", if output.status.success() { "" } else { "(failed)" }))
}

fn a_worktree_is_made_beside_a_checkout_that_stays_as_it_is() {
    let place = Place::new();
    place.write("a.txt", "changed here\n");
    place.write("new/b.txt", "new here\n");
    let index = std::fs::read(place.top().join(".git/index")).unwrap();
    let survey = block_on(place.checkout().survey()).unwrap();
    assert_eq!(survey.commit, place.head());
    assert_eq!(survey.uncommitted, ["a.txt", "new/"]);
    let tree = place.add("fix-1").unwrap();
    assert_eq!(std::fs::read_to_string(tree.join("a.txt")).unwrap().lines().count(), 5, "as committed");
    assert!(!tree.join("new").exists());
    assert_eq!(git(&tree, &["symbolic-ref", "HEAD"]), "refs/heads/planctl/fix-1");
    assert_eq!(git(&place.top(), &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(std::fs::read(place.top().join(".git/index")).unwrap(), index);
    assert_eq!(std::fs::read_to_string(place.top().join("a.txt")).unwrap(), "changed here\n");
    assert_eq!(worktree_intact(&tree), Intact::Yes);
    // The record of a worktree whose folder is not there for a while is not pruned.
    std::fs::rename(&tree, tree.with_extension("away")).unwrap();
    git(&place.top(), &["worktree", "prune", "--expire=now"]);
    std::fs::rename(tree.with_extension("away"), &tree).unwrap();
    assert_eq!(worktree_intact(&tree), Intact::Yes);
    assert_eq!(uncommitted_of(&tree), [""; 0]);
}

pub fn uncommitted_of(folder: &Path) -> Vec<String> {
    block_on(uncommitted(&spawner(), folder)).unwrap()
}

fn what_an_interrupted_making_left_is_made_anew_and_other_work_never() {
    let place = Place::new();
    // Only the branch was made.
    git(&place.top(), &["branch", "planctl/one"]);
    assert!(place.add("one").unwrap().join("a.txt").exists());
    // Half of the files were made, and the record is locked as git leaves it.
    let half = place.add("two").unwrap();
    std::fs::remove_file(half.join("a.txt")).unwrap();
    std::fs::write(half.join("half.txt"), "half").unwrap();
    let again = place.add("two").unwrap();
    assert!(again.join("a.txt").exists() && !again.join("half.txt").exists());
    // The folder was made and nothing else.
    std::fs::create_dir_all(place.tree("three")).unwrap();
    std::fs::write(place.tree("three").join("half.txt"), "half").unwrap();
    assert!(!place.add("three").unwrap().join("half.txt").exists());
    // The record is there, the folder is not.
    std::fs::remove_dir_all(place.tree("two")).unwrap();
    assert!(place.add("two").unwrap().join("a.txt").exists());
    // Somebody's own work on a branch of that name.
    git(&place.top(), &["checkout", "--quiet", "-b", "planctl/four"]);
    git(&place.top(), &["commit", "--quiet", "--allow-empty", "-m", "work"]);
    git(&place.top(), &["checkout", "--quiet", "main"]);
    let refused = place.add("four").unwrap_err();
    assert!(
        matches!(&refused, WorktreeError::BranchTaken { branch } if branch == "planctl/four"),
        "{refused}"
    );
    assert!(refused.help().unwrap().contains("git branch -m planctl/four"));
    assert!(!place.tree("four").exists());
}

fn no_hook_and_no_file_watcher_of_the_repository_runs() {
    let place = Place::new();
    let told = place.folder.path().join("told");
    let script = format!("#!/bin/sh\necho ran >> {}\n", told.display());
    for hook in
        ["post-checkout", "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-merge"]
    {
        let path = place.top().join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let watcher = place.top().join(".git/hooks/post-checkout").to_string_lossy().into_owned();
    git(&place.top(), &["config", "core.fsmonitor", &watcher]);
    std::fs::remove_file(&told).ok();
    block_on(place.checkout().survey()).unwrap();
    let tree = place.add("one").unwrap();
    std::fs::write(tree.join("b.txt"), "b").unwrap();
    block_on(commit_all(&spawner(), &tree, "b")).unwrap().unwrap();
    let other = place.add("two").unwrap();
    assert!(matches!(
        block_on(merge_branch(&spawner(), &other, "planctl/one", "m")),
        Ok(Merged::Done { .. })
    ));
    assert!(!told.exists(), "a hook ran");
}

/// Lets everything that a repository can name lead to a program that leaves a mark, for all files and both sides.
fn name_programs(common: &Path, canary: &str) {
    let text = format!(
        r#"
[core]
	fsmonitor = {canary}
	hooksPath = {canary}-hooks
	sshCommand = {canary}
	pager = {canary}
	editor = {canary}
	askPass = {canary}
	gitProxy = {canary}
	alternateRefsCommand = {canary}
	attributesFile = {canary}-attributes
[sequence]
	editor = {canary}
[filter "x"]
	clean = {canary}
	smudge = {canary}
	required = true
[filter "y"]
	process = {canary}
[filter "lfs"]
	clean = {canary}
	smudge = {canary}
	process = {canary}
[merge "x"]
	driver = {canary} %A
	recursive = binary
[merge]
	default = x
	verifySignatures = false
[diff]
	external = {canary}
[diff "x"]
	textconv = {canary}
	command = {canary}
[gpg]
	program = {canary}
[commit]
	gpgSign = true
	template = {canary}
[credential]
	helper = !{canary}
[alias]
	status = !{canary}
	merge = !{canary}
	add = !{canary}
[pager]
	status = {canary}
[interactive]
	diffFilter = {canary}
[attr]
	tree = HEAD
[trailer "x"]
	command = {canary}
[remote "origin"]
	url = ext::{canary}
	uploadpack = {canary}
	promisor = true
[protocol "ext"]
	allow = always
[rerere]
	enabled = true
	autoUpdate = true
"#
    );
    let config = common.join("config");
    let own = std::fs::read_to_string(&config).unwrap();
    std::fs::write(common.join("more"), &text).unwrap();
    std::fs::write(&config, format!("{own}{text}[include]\n\tpath = more\n")).unwrap();
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "post-merge",
        "reference-transaction",
        "post-index-change",
    ] {
        let folder = PathBuf::from(format!("{canary}-hooks"));
        std::fs::create_dir_all(&folder).unwrap();
        for folder in [folder, common.join("hooks")] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(canary, folder.join(hook)).unwrap();
        }
    }
    let attributes = "*.txt filter=x diff=x merge=x\n*.y filter=y\n*.bin filter=lfs\n";
    std::fs::write(format!("{canary}-attributes"), attributes).unwrap();
    std::fs::create_dir_all(common.join("info")).unwrap();
    std::fs::write(common.join("info/attributes"), attributes).unwrap();
}

fn hole_11_no_program_that_a_repository_names_is_started() {
    let place = Place::new();
    let marks = place.folder.path().join("marks");
    let canary = place.folder.path().canonicalize().unwrap().join("canary");
    std::fs::write(&canary, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", marks.display())).unwrap();
    std::fs::set_permissions(&canary, PermissionsExt::from_mode(0o755)).unwrap();
    place.write("b.y", "b\n");
    place.write(".gitattributes", "*.txt filter=x diff=x merge=x\n*.y filter=y\n");
    git(&place.top(), &["add", "-A"]);
    git(&place.top(), &["commit", "--quiet", "-m", "second"]);
    let honest = place.add("before").unwrap();
    name_programs(&place.top().join(".git"), &canary.to_string_lossy());
    place.write("a.txt", "changed\n");
    block_on(place.checkout().survey()).unwrap();
    let (one, two) = (place.made("one"), place.made("two"));
    std::fs::write(one.join("a.txt"), "ONE\ntwo\nthree\nfour\nfive\n").unwrap();
    std::fs::write(two.join("a.txt"), "one\ntwo\nthree\nfour\nFIVE\n").unwrap();
    for tree in [&one, &two] {
        std::fs::write(tree.join("b.y"), "bb\n").unwrap();
        block_on(commit_all(&spawner(), tree, "change")).unwrap().unwrap();
    }
    let merged = block_on(merge_branch(&spawner(), &two, "planctl/one", "m"));
    assert!(matches!(merged, Ok(Merged::Done { .. })), "{merged:?}");
    assert_eq!(std::fs::read_to_string(two.join("a.txt")).unwrap(), "ONE\ntwo\nthree\nfour\nFIVE\n");
    std::fs::write(honest.join("a.txt"), "other\n").unwrap();
    block_on(commit_all(&spawner(), &honest, "change")).unwrap().unwrap();
    let conflict = block_on(merge_branch(&spawner(), &honest, "planctl/one", "m")).unwrap();
    assert!(matches!(conflict, Merged::Conflicts(_)), "{conflict:?}");
    let branches = place.branches();
    block_on(branches.create_worktrees(2)).unwrap();
    block_on(branches.remove()).unwrap();
    block_on(place.checkout().remove(&one, "planctl/one", true)).unwrap();
    let checkpoints = planctl_harness::Checkpoints::new(spawner(), place.folder.path().join("kept"));
    let kept = block_on(checkpoints.record(&place.top())).unwrap();
    place.write("a.txt", "later\r\n");
    block_on(checkpoints.restore(&place.top(), &kept)).unwrap();
    let marks = std::fs::read_to_string(&marks).unwrap_or_default();
    assert_eq!(marks, "", "these were started");
}

fn hole_10_what_is_committed_is_what_the_files_are_whatever_the_index_says() {
    for hides in ["--assume-unchanged", "--skip-worktree"] {
        let place = Place::new();
        let tree = place.add("one").unwrap();
        git(&tree, &["update-index", hides, "a.txt"]);
        std::fs::write(tree.join("a.txt"), "what was judged\n").unwrap();
        assert_eq!(uncommitted_of(&tree), ["a.txt"], "{hides}");
        block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
        assert_eq!(git(&place.top(), &["show", "planctl/one:a.txt"]), "what was judged");
        assert_eq!(git(&tree, &["status", "--porcelain"]), "", "the worktree's own index follows");
    }
}

fn what_is_not_committed_is_told_by_name() {
    let place = Place::new();
    place.write("plans/fix.md", "# Fix\n");
    place.write("target/ignored.md", "# Ignored\n");
    place.write("deep/er/note.txt", "note\n");
    git(&place.top(), &["add", "deep"]);
    git(&place.top(), &["commit", "--quiet", "-m", "deep"]);
    let checkout = place.checkout();
    let not = |paths: &[&str]| {
        let survey = block_on(checkout.survey()).unwrap();
        block_on(checkout.uncommitted_among(&survey, paths.iter().copied())).unwrap()
    };
    let all = ["a.txt", "plans/fix.md", "target/ignored.md", "deep/er/note.txt", "nowhere.txt", "deep/er"];
    assert_eq!(not(&all), ["plans/fix.md", "target/ignored.md"]);
    place.write("deep/er/note.txt", "other\n");
    assert_eq!(not(&all), ["deep/er/note.txt", "plans/fix.md", "target/ignored.md"]);
    git(&place.top(), &["add", "-A"]);
    assert_eq!(
        not(&all),
        ["deep/er/note.txt", "plans/fix.md", "target/ignored.md"],
        "staged is not committed"
    );
    git(&place.top(), &["commit", "--quiet", "-m", "all"]);
    assert_eq!(not(&all), ["target/ignored.md"]);
}

fn repositories_of_which_no_worktree_can_be_made_are_refused() {
    let place = Place::new();
    let outer = place.folder.path().canonicalize().unwrap();
    let find = |folder: &Path| block_on(Checkout::find(&spawner(), folder));
    let refused = |folder: &Path| match find(folder) {
        Err(error) => error,
        Ok(checkout) => block_on(checkout.survey()).unwrap_err(),
    };
    std::fs::create_dir(outer.join("plain")).unwrap();
    assert!(matches!(refused(&outer.join("plain")), WorktreeError::NotARepository { .. }));
    git(&outer, &["init", "--quiet", "--bare", "bare.git"]);
    assert!(matches!(refused(&outer.join("bare.git")), WorktreeError::Bare { .. }));
    git(&outer, &["init", "--quiet", "empty"]);
    assert!(matches!(refused(&outer.join("empty")), WorktreeError::NoCommit { .. }));

    git(&place.top(), &["checkout", "--quiet", "-b", "other"]);
    place.write("a.txt", "other\n");
    git(&place.top(), &["commit", "--quiet", "-am", "other"]);
    git(&place.top(), &["checkout", "--quiet", "main"]);
    place.write("a.txt", "mine\n");
    git(&place.top(), &["commit", "--quiet", "-am", "mine"]);
    assert!(!try_git(&place.top(), &["merge", "--quiet", "other"]).0);
    assert!(matches!(refused(&place.top()), WorktreeError::Unfinished { of: "merge", .. }));
    git(&place.top(), &["merge", "--abort"]);
    assert!(!try_git(&place.top(), &["rebase", "--quiet", "other"]).0);
    assert!(matches!(refused(&place.top()), WorktreeError::Unfinished { of: "rebase", .. }));
    git(&place.top(), &["rebase", "--abort"]);

    let what = || {
        let refused = refused(&place.top());
        assert!(matches!(refused, WorktreeError::Unsupported { .. }), "{refused}");
        refused.to_string()
    };
    git(&place.top(), &["config", "core.sparseCheckout", "true"]);
    assert!(what().contains("sparse"), "{}", what());
    git(&place.top(), &["config", "core.sparseCheckout", "false"]);
    let inner = Place::new();
    git(&place.top(), &["submodule", "--quiet", "add", &inner.top().to_string_lossy(), "vendored"]);
    assert!(what().contains("submodule, vendored"), "{}", what());
    git(&place.top(), &["rm", "--quiet", "-f", "vendored"]);
    place.write(".gitattributes", "*.bin filter=lfs\n");
    place.write("large.bin", "pointer\n");
    git(&place.top(), &["-c", "filter.lfs.clean=cat", "add", "-A"]);
    let has_lfs = try_git(&place.top(), &["config", "--get", "filter.lfs.process"]).0;
    if !has_lfs {
        assert!(what().contains("Git LFS keeps large.bin"), "{}", what());
        git(&place.top(), &["config", "filter.lfs.smudge", "cat"]);
        assert!(what().contains("not set up"), "another program is no Git LFS: {}", what());
        git(&place.top(), &["config", "filter.lfs.smudge", "git-lfs smudge -- %f"]);
    }
    block_on(place.checkout().survey()).unwrap();
}

fn everything_is_committed_without_ignored_files() {
    let place = Place::new();
    let tree = place.add("one").unwrap();
    assert_eq!(block_on(commit_all(&spawner(), &tree, "nothing")).unwrap(), None);
    std::fs::write(tree.join("a.txt"), "changed\n").unwrap();
    std::fs::write(tree.join("naïve name.txt"), "new\n").unwrap();
    std::fs::create_dir(tree.join("target")).unwrap();
    std::fs::write(tree.join("target/x"), "built\n").unwrap();
    assert_eq!(uncommitted_of(&tree), ["a.txt", "naïve name.txt"]);
    let commit = block_on(commit_all(&spawner(), &tree, "fix-1: all steps passed")).unwrap().unwrap();
    assert_eq!(commit, git(&place.top(), &["rev-parse", "planctl/one"]));
    assert_eq!(git(&tree, &["log", "-1", "--format=%s"]), "fix-1: all steps passed");
    assert_eq!(uncommitted_of(&tree), [""; 0]);
    assert!(!git(&tree, &["ls-files"]).contains("target"));
    assert_eq!(place.head(), git(&place.top(), &["rev-parse", "planctl/one~1"]), "the checkout stays");
}

fn change(tree: &Path, path: &str, text: &str) {
    std::fs::write(tree.join(path), text).unwrap();
    block_on(commit_all(&spawner(), tree, "change")).unwrap().unwrap();
}

fn two_branches_that_fit_are_merged() {
    let place = Place::new();
    let (one, two) = (place.add("one").unwrap(), place.add("two").unwrap());
    change(&one, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    change(&two, "a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    let merged = block_on(merge_branch(&spawner(), &one, "planctl/two", "join: two")).unwrap();
    let Merged::Done { commit } = merged else { panic!("{merged:?}") };
    assert_eq!(commit, git(&one, &["rev-parse", "HEAD"]));
    assert_eq!(std::fs::read_to_string(one.join("a.txt")).unwrap(), "ONE\ntwo\nthree\nfour\nFIVE\n");
    let again = block_on(merge_branch(&spawner(), &one, "planctl/two", "join: two")).unwrap();
    assert_eq!(again, Merged::UpToDate);
    let unknown = block_on(merge_branch(&spawner(), &one, "planctl/none", "x")).unwrap_err();
    assert!(matches!(unknown, WorktreeError::Git { .. }), "{unknown}");
}

fn a_conflict_shows_its_hunks() {
    let place = Place::new();
    place.write("gone.txt", "here\n");
    git(&place.top(), &["add", "-A"]);
    git(&place.top(), &["commit", "--quiet", "-m", "gone"]);
    let (one, two) = (place.add("one").unwrap(), place.add("two").unwrap());
    std::fs::remove_file(one.join("gone.txt")).unwrap();
    change(&one, "a.txt", "one\nTWO of one\nthree\nfour\nfive\n");
    std::fs::write(two.join("gone.txt"), "changed\n").unwrap();
    change(&two, "a.txt", "one\nTWO of two\nthree\nfour\nfive\n");
    let before = git(&one, &["rev-parse", "HEAD"]);
    let merged = block_on(merge_branch(&spawner(), &one, "planctl/two", "join")).unwrap();
    let Merged::Conflicts(conflicts) = merged else { panic!("{merged:?}") };
    assert_eq!(conflicts.len(), 2);
    assert_eq!(conflicts[0].path, Path::new("a.txt"));
    assert!(conflicts[0].hunks.starts_with("@@@"), "{}", conflicts[0].hunks);
    for line in ["TWO of one", "TWO of two", "<<<<<<<", ">>>>>>>"] {
        assert!(conflicts[0].hunks.contains(line), "{line}: {}", conflicts[0].hunks);
    }
    assert_eq!(conflicts[1].path, Path::new("gone.txt"));
    assert_eq!(conflicts[1].what.as_deref(), Some("deleted by us, changed by them"));
    assert_eq!(git(&one, &["rev-parse", "HEAD"]), before);
}

fn a_worktree_goes_only_when_nothing_is_lost() {
    let place = Place::new();
    let checkout = place.checkout();
    let remove = |name: &str, discards| {
        block_on(checkout.remove(&place.tree(name), &format!("planctl/{name}"), discards))
    };
    let exists = |name: &str| {
        try_git(&place.top(), &["rev-parse", "--verify", "--quiet", &format!("planctl/{name}")]).0
    };
    let tree = place.add("one").unwrap();
    std::fs::write(tree.join("b.txt"), "b").unwrap();
    let kept = remove("one", false).unwrap_err();
    assert!(matches!(kept, WorktreeError::Uncommitted { uncommitted: 1, .. }), "{kept}");
    assert!(tree.join("b.txt").exists());
    block_on(commit_all(&spawner(), &tree, "b")).unwrap();
    assert!(!remove("one", false).unwrap(), "its commit is on no other branch");
    assert!(!tree.exists() && exists("one"));
    git(&place.top(), &["merge", "--quiet", "planctl/one"]);
    assert!(remove("one", false).unwrap(), "all of it is in the checkout");
    assert!(!exists("one"));
    std::fs::write(place.add("two").unwrap().join("b.txt"), "other").unwrap();
    assert!(remove("two", true).unwrap(), "told to");
    place.add("three").unwrap();
    std::fs::remove_dir_all(place.tree("three")).unwrap();
    assert!(remove("three", false).unwrap(), "somebody removed the folder");
    assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
}

fn a_worktree_that_somebody_broke_is_told_from_a_whole_one() {
    let place = Place::new();
    let tree = place.add("one").unwrap();
    assert_eq!(worktree_intact(&tree), Intact::Yes);
    git(&place.top(), &["update-ref", "-d", "refs/heads/planctl/one"]);
    assert_eq!(worktree_intact(&tree), Intact::NoBranch);
    std::fs::remove_dir_all(place.top().join(".git/worktrees/one")).unwrap();
    assert_eq!(worktree_intact(&tree), Intact::Detached);
    std::fs::remove_dir_all(&tree).unwrap();
    assert_eq!(worktree_intact(&tree), Intact::NoFolder);
}

/// The name of a file that is no UTF-8.
fn latin(name: &str) -> PathBuf {
    OsString::from_vec([name.as_bytes(), b"-\xe9t\xe9"].concat()).into()
}

fn names_of_files_are_bytes() {
    let place = Place::new();
    std::fs::write(place.top().join(latin("changed")), "old\n").unwrap();
    std::fs::create_dir(place.top().join(latin("folder"))).unwrap();
    let gone = place.top().join(latin("folder")).join(latin("gone"));
    std::fs::write(&gone, "old\n").unwrap();
    git(&place.top(), &["add", "-A"]);
    git(&place.top(), &["commit", "--quiet", "-m", "names"]);
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    let branch = |number| BranchWorktrees::place(&place.apart(), Path::new(""), number);
    std::fs::write(branch(0).join(latin("changed")), "new\n").unwrap();
    std::fs::remove_dir_all(branch(0).join(latin("folder"))).unwrap();
    std::fs::write(branch(1).join(latin("added")), "added\n").unwrap();
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1])).unwrap(), Joined::Merged { files: 3 });
    let read = |name| std::fs::read_to_string(place.top().join(latin(name))).unwrap();
    assert_eq!((read("changed").as_str(), read("added").as_str()), ("new\n", "added\n"));
    assert!(!gone.exists() && !place.top().join(latin("folder")).exists());
}

fn a_conflict_at_a_name_that_is_no_text_is_made_to_fit_by_a_person() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    for branch in [0, 1] {
        let own = BranchWorktrees::place(&place.apart(), Path::new(""), branch);
        std::fs::write(own.join(latin("both")), format!("branch {branch}\n")).unwrap();
    }
    let merge = || block_on(place.branches().merge(&base, &[0, 1])).unwrap();
    let Joined::Conflicts { folder, conflicts, .. } = merge() else { panic!("a conflict") };
    assert_eq!(conflicts[0].path, latin("both"));
    assert!(conflicts[0].hunks.contains("branch 1"), "{conflicts:?}");
    std::fs::write(folder.join(latin("both")), "both\n").unwrap();
    assert_eq!(merge(), Joined::Merged { files: 1 });
    assert_eq!(std::fs::read_to_string(place.top().join(latin("both"))).unwrap(), "both\n");
}

impl Place {
    pub fn branches(&self) -> BranchWorktrees {
        block_on(BranchWorktrees::find(&spawner(), &self.top(), self.apart(), "run-1".to_owned())).unwrap()
    }

    pub fn apart(&self) -> PathBuf {
        self.top().with_file_name("branches")
    }

    /// Takes the lock that a process of planctl's holds while it is at the branches.
    fn lock(&self) -> std::fs::File {
        let path = self.top().with_file_name("lock");
        std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap()
    }

    pub fn in_branch(&self, branch: u16, path: &str, text: &str) {
        std::fs::write(BranchWorktrees::place(&self.apart(), Path::new(""), branch).join(path), text)
            .unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.top().join(path)).unwrap()
    }

    fn status(&self) -> String {
        git(&self.top(), &["status", "--porcelain"])
    }
}

fn branches_begin_with_the_workspace_as_it_is_and_what_they_did_comes_into_it() {
    let place = Place::new();
    place.write("new.txt", "not committed\n");
    place.write("target/built", "ignored\n");
    let (head, index) = (place.head(), std::fs::read(place.top().join(".git/index")).unwrap());
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    assert_eq!(block_on(place.branches().create_worktrees(2)).unwrap(), base, "forked once, however often");
    for branch in [0, 1] {
        let own = BranchWorktrees::place(&place.apart(), Path::new(""), branch);
        assert_eq!(std::fs::read_to_string(own.join("new.txt")).unwrap(), "not committed\n");
        assert!(!own.join("target").exists());
    }
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.in_branch(1, "a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    place.in_branch(1, "b.txt", "b\n");
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1])).unwrap(), Joined::Merged { files: 2 });
    assert_eq!(place.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(place.read("b.txt"), "b\n");
    assert_eq!(place.read("new.txt"), "not committed\n");
    assert_eq!(place.read("target/built"), "ignored\n");
    assert_eq!(place.head(), head, "the user's branch stays where it was");
    assert_eq!(std::fs::read(place.top().join(".git/index")).unwrap(), index, "and so does the index");
    block_on(place.branches().remove()).unwrap();
    assert!(!place.apart().exists());
    assert_eq!(git(&place.top(), &["for-each-ref", "refs/planctl", "refs/heads/planctl-branch"]), "");
    assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
    block_on(place.branches().remove()).unwrap();
}

fn a_merge_that_is_cut_off_anywhere_comes_to_the_same() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(3)).unwrap();
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.in_branch(1, "a.txt", "one\ntwo\nthree\nFOUR\nfive\n");
    place.in_branch(2, "c.txt", "c\n");
    // Cut off after the first branch was merged, and with a worktree for merging that is half done.
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1 });
    git(&place.top(), &["--git-dir=../branches/join.git", "update-ref", "-d", "refs/planctl/merged"]);
    std::fs::write(place.apart().join("merge/a.txt"), "half written").unwrap();
    std::fs::write(place.apart().join("index.lock"), "").unwrap();
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1, 2])).unwrap(), Joined::Merged { files: 2 });
    let whole = "ONE\ntwo\nthree\nFOUR\nfive\n";
    assert_eq!(place.read("a.txt"), whole);
    // Cut off while the workspace is written: the missing files are written, and the rest is left alone.
    place.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    std::fs::remove_file(place.top().join("c.txt")).unwrap();
    block_on(place.branches().merge(&base, &[0, 1, 2])).unwrap();
    assert_eq!((place.read("a.txt"), place.read("c.txt")), (whole.to_owned(), "c\n".to_owned()));
}

/// Kills a process of planctl's at many moments of each; the next one finds nothing in its way.
fn p10_whoever_comes_after_one_that_was_killed_parts_and_merges_branches() {
    if let Some(top) = std::env::var_os("PLANCTL_TEST_TOP") {
        return at_branches_until_killed(Path::new(&top));
    }
    const KILLS: u64 = 24;
    let place = Place::new();
    place.write("new.txt", "not committed\n");
    let kill_at = |moment: u64, base: &str| {
        let mut planctl = Command::new("/proc/self/exe")
            .args([
                "--exact",
                "worktrees::p10_whoever_comes_after_one_that_was_killed_parts_and_merges_branches",
            ])
            .env("PLANCTL_TEST_TOP", place.top())
            // Killed, it leaves its own temporary files.
            .env("TMPDIR", place.top().parent().unwrap())
            .env("PLANCTL_TEST_BASE", base)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        eventually("it has begun", Duration::from_secs(10), || place.lock().try_lock().is_err());
        // Which moment it is decides what is tested, and not how it ends.
        std::thread::sleep(Duration::from_millis(moment * 100 / KILLS));
        planctl.kill().unwrap();
        planctl.wait().unwrap();
        place.lock().lock().unwrap();
    };
    (0..KILLS).for_each(|moment| kill_at(moment, ""));
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.in_branch(1, "a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    (0..KILLS).for_each(|moment| kill_at(moment, &base));
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1])).unwrap(), Joined::Merged { files: 1 });
    assert_eq!(place.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    (0..KILLS).for_each(|moment| kill_at(moment, "none"));
    block_on(place.branches().remove()).unwrap();
    assert_eq!(git(&place.top(), &["for-each-ref", "refs/planctl", "refs/heads/planctl-branch"]), "");
    assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
}

/// The child program of the test above, under a lock that it shares with its own children.
fn at_branches_until_killed(top: &Path) {
    let lock = std::fs::File::create(top.with_file_name("lock")).unwrap();
    lock.lock().unwrap();
    let base = std::env::var("PLANCTL_TEST_BASE").unwrap();
    block_on(async {
        let spawner = spawner().with_locks([Arc::new(lock.into())]);
        let (apart, name) = (top.with_file_name("branches"), "run-1".to_owned());
        let branches = BranchWorktrees::find(&spawner, top, apart, name).await.unwrap();
        match base.as_str() {
            "" => drop(branches.create_worktrees(2).await.unwrap()),
            "none" => branches.remove().await.unwrap(),
            base => drop(branches.merge(base, &[0, 1]).await.unwrap()),
        }
        std::future::pending().await
    })
}

/// Where the machine itself stops, git removes nothing.
fn p10_what_git_leaves_behind_of_branches_where_it_is_killed_is_in_nobody_s_way() {
    let place = Place::new();
    let own = place.top().join(".git");
    let leave = |name: &str| {
        std::fs::create_dir_all(own.join(name).parent().unwrap()).unwrap();
        std::fs::write(own.join(name), "").unwrap();
    };
    leave("../../branches/join.new/HEAD");
    leave("refs/heads/planctl-branch/run-1/1.lock");
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    // A worktree that git has a record of, and that is not one yet.
    std::fs::remove_file(place.apart().join("1/.git")).unwrap();
    leave("refs/heads/planctl-branch/run-1/2.lock");
    leave("worktrees/0/index.lock");
    assert_eq!(block_on(place.branches().create_worktrees(2)).unwrap(), base);
    place.in_branch(0, "b.txt", "b\n");
    place.in_branch(1, "c.txt", "c\n");
    leave("worktrees/0/index.lock");
    leave("worktrees/1/HEAD.lock");
    leave("refs/heads/planctl-branch/run-1/2.lock");
    leave("../../branches/join.git/refs/planctl/so-far.lock");
    leave("../../branches/join.git/packed-refs.lock");
    // The locks of others are none of ours.
    leave("refs/heads/main.lock");
    leave("index.lock");
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1])).unwrap(), Joined::Merged { files: 2 });
    leave("../../branches/join.git/refs/planctl/merged.lock");
    block_on(place.branches().remove()).unwrap();
    assert!(own.join("refs/heads/main.lock").exists() && own.join("index.lock").exists());
    std::fs::remove_file(own.join("refs/heads/main.lock")).unwrap();
    std::fs::remove_file(own.join("index.lock")).unwrap();
    assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
}

/// Git knows worktrees by their real paths, and a state directory may be behind a link.
fn git_and_planctl_mean_the_same_folder_behind_a_link() {
    let place = Place::new();
    let (real, link) = (place.top().with_file_name("real"), place.top().with_file_name("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let apart = link.join("state/branches");
    let branches = || {
        block_on(BranchWorktrees::find(&spawner(), &place.top(), apart.clone(), "run-1".to_owned())).unwrap()
    };
    let base = block_on(branches().create_worktrees(1)).unwrap();
    // Cut off while it was made, and while what was done in it was committed.
    std::fs::remove_file(apart.join("0/.git")).unwrap();
    assert_eq!(block_on(branches().create_worktrees(1)).unwrap(), base);
    std::fs::write(apart.join("0/b.txt"), "b\n").unwrap();
    std::fs::write(place.top().join(".git/worktrees/0/index.lock"), "").unwrap();
    assert_eq!(block_on(branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1 });
    block_on(branches().remove()).unwrap();
    assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
}

fn branches_that_do_not_fit_are_made_to_fit_by_a_person() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(3)).unwrap();
    place.in_branch(0, "a.txt", "red\ntwo\nthree\nfour\nfive\n");
    place.in_branch(1, "a.txt", "blue\ntwo\nthree\nfour\nfive\n");
    place.in_branch(2, "c.txt", "c\n");
    let merge = || block_on(place.branches().merge(&base, &[0, 1, 2])).unwrap();
    for _ in 0..2 {
        let Joined::Conflicts { branch, folder, conflicts } = merge() else { panic!("a conflict") };
        assert_eq!((branch, folder.as_path()), (Some(1), place.apart().join("merge").as_path()));
        assert_eq!(conflicts[0].path, Path::new("a.txt"));
        assert!(conflicts[0].hunks.contains("red") && conflicts[0].hunks.contains("blue"), "{conflicts:?}");
        assert_eq!(place.status(), "", "the workspace is as it was");
    }
    // Given up: the merge is made anew.
    git(&place.apart().join("merge"), &["merge", "--abort"]);
    assert!(matches!(merge(), Joined::Conflicts { branch: Some(1), .. }));
    std::fs::write(place.apart().join("merge/a.txt"), "purple\ntwo\nthree\nfour\nfive\n").unwrap();
    assert_eq!(merge(), Joined::Merged { files: 2 });
    assert_eq!(place.read("a.txt"), "purple\ntwo\nthree\nfour\nfive\n");
    assert_eq!(place.read("c.txt"), "c\n");
}

fn what_changed_in_the_workspace_meanwhile_is_kept() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(1)).unwrap();
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    place.write("mine.txt", "mine\n");
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1 });
    assert_eq!(place.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(place.read("mine.txt"), "mine\n");
    let other = Place::new();
    let base = block_on(other.branches().create_worktrees(1)).unwrap();
    other.in_branch(0, "a.txt", "branch\n");
    other.write("a.txt", "person\n");
    let merge = || block_on(other.branches().merge(&base, &[0])).unwrap();
    let Joined::Conflicts { branch: None, folder, .. } = merge() else { panic!("a conflict") };
    assert_eq!(other.read("a.txt"), "person\n");
    std::fs::write(folder.join("a.txt"), "both\n").unwrap();
    merge();
    assert_eq!(other.read("a.txt"), "both\n");
}

/// Git tells a file that changed by its size and time, to the second, and looks into those that are as new as its index. So
/// a reader of a copied index must see when the index was written, and not when it was copied.
fn what_changed_in_the_second_in_which_git_looked_last_is_kept() {
    let place = Place::new();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let set_time = |path: &str| {
        let file = std::fs::File::options().write(true).open(place.top().join(path)).unwrap();
        file.set_modified(long_ago).unwrap();
    };
    git(&place.top(), &["config", "core.trustCtime", "false"]);
    set_time("a.txt");
    git(&place.top(), &["add", "a.txt"]);
    set_time(".git/index");
    let base = block_on(place.branches().create_worktrees(1)).unwrap();
    place.in_branch(0, "b.txt", "b\n");
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    set_time("a.txt");
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 2 });
    assert_eq!(place.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
}

fn what_was_removed_and_made_in_branches_is_so_in_the_workspace() {
    let place = Place::new();
    place.write("old/deep/file.txt", "old\n");
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    let own = BranchWorktrees::place(&place.apart(), Path::new(""), 0);
    std::fs::remove_dir_all(own.join("old")).unwrap();
    std::fs::write(own.join("old"), "a file now\n").unwrap();
    let other = BranchWorktrees::place(&place.apart(), Path::new(""), 1);
    std::fs::write(other.join("tool.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(other.join("tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "--quiet", "-m", "a worker may commit"]);
    block_on(place.branches().merge(&base, &[0, 1])).unwrap();
    assert_eq!(place.read("old"), "a file now\n");
    let mode = place.top().join("tool.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}
