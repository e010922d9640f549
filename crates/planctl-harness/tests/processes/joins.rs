//! Joins and commits believe nothing that a worker writes into git's folder, and write nowhere else by way of it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use planctl_harness::{BranchWorktrees, Joined, WorktreeError, commit_all};

use crate::processes::support::{block_on, spawner};
use crate::processes::worktrees::{Place, git};

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials![
        references_that_a_worker_moves_decide_nothing_of_a_join,
        a_base_that_a_worker_names_before_the_fork_is_none,
        no_reference_of_a_worker_leads_to_a_branch_of_the_user,
        a_branch_that_says_it_merged_another_takes_nothing_of_it_away,
        a_branch_that_has_something_else_checked_out_is_joined_by_its_files,
        changes_of_the_workspace_that_are_hidden_from_git_come_into_branches,
        no_link_in_the_git_folder_leads_a_join_to_a_file_outside,
        no_link_in_the_git_folder_leads_a_commit_to_a_file_outside,
        a_commit_moves_the_branch_of_its_worktree_and_no_other,
        a_worktree_that_names_another_repository_is_not_committed,
        a_worktree_is_made_on_a_branch_of_its_own,
        branches_of_a_repository_with_other_names_of_objects_are_joined,
        what_a_clumsy_worker_leaves_in_a_branch_is_joined_as_it_is,
    ]
}

const FIRST: &str = "ONE\ntwo\nthree\nfour\nfive\n";
const BOTH: &str = "ONE\ntwo\nthree\nfour\nFIVE\n";

fn branch_of(place: &Place, number: u16) -> PathBuf {
    BranchWorktrees::place(&place.apart(), Path::new(""), number)
}

/// Two branches that change one file each at another place, and one makes a file.
fn forked() -> (Place, String) {
    let place = Place::new();
    git(&place.top(), &["branch", "other"]);
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    place.in_branch(0, "a.txt", FIRST);
    place.in_branch(1, "a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    place.in_branch(1, "b.txt", "b\n");
    (place, base)
}

fn assert_joined(place: &Place, base: &str) {
    assert_eq!(block_on(place.branches().merge(base, &[0, 1])).unwrap(), Joined::Merged { files: 2 });
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), (BOTH, "b\n"));
}

/// A commit whose files are others than those of HEAD, which a worker makes on no branch.
fn evil_commit(folder: &Path, parent: &str) -> String {
    let file = folder.with_file_name("evil");
    std::fs::write(&file, "evil\n").unwrap();
    let object = git(folder, &["hash-object", "-w", &file.to_string_lossy()]);
    let tree = format!("100644 blob {object}\\ta.txt\\n100644 blob {object}\\tevil.txt");
    let script = format!("printf '{tree}\\n' | git mktree");
    let made =
        std::process::Command::new("bash").args(["-ec", &script]).current_dir(folder).env_clear().output();
    let tree = String::from_utf8(made.unwrap().stdout).unwrap();
    git(folder, &["commit-tree", tree.trim(), "-p", parent, "-m", "evil"])
}

fn references_that_a_worker_moves_decide_nothing_of_a_join() {
    let every = ["merged", "before", "seen", "so-far", "base", "open-0", "open-workspace", "tip-0", "tip-1"];
    for moved in [&every[..2], &every[..]] {
        let (place, base) = forked();
        let evil = evil_commit(&branch_of(&place, 0), &base);
        for name in moved {
            git(&place.top(), &["update-ref", &format!("refs/planctl/run-1/{name}"), &evil]);
        }
        assert_joined(&place, &base);
        assert!(!place.top().join("evil.txt").exists(), "{moved:?}");
        block_on(place.branches().remove()).unwrap();
        assert_eq!(git(&place.top(), &["for-each-ref", "refs/heads/planctl-branch"]), "");
    }
}

fn a_base_that_a_worker_names_before_the_fork_is_none() {
    let place = Place::new();
    let evil = evil_commit(&place.top(), "HEAD");
    git(&place.top(), &["update-ref", "refs/planctl/run-1/base", &evil]);
    assert_eq!(block_on(place.branches().create_worktrees(1)).unwrap(), place.head());
    assert!(!branch_of(&place, 0).join("evil.txt").exists());
}

fn no_reference_of_a_worker_leads_to_a_branch_of_the_user() {
    let (place, base) = forked();
    let of = |name: &str| git(&place.top(), &["rev-parse", name]);
    let (main, other) = (of("main"), of("other"));
    let lead = |name: &str, to: &str| git(&place.top(), &["symbolic-ref", name, &format!("refs/heads/{to}")]);
    for name in ["base", "seen", "so-far", "before", "merged"] {
        lead(&format!("refs/planctl/run-1/{name}"), "other");
    }
    lead("refs/heads/planctl-branch/run-1/1", "main");
    lead("refs/heads/planctl-branch/run-1/2", "other");
    assert_joined(&place, &base);
    assert_eq!((of("main"), of("other")), (main.clone(), other.clone()));
    lead("refs/planctl/run-1/more", "other");
    block_on(place.branches().remove()).unwrap();
    assert_eq!((of("main"), of("other")), (main, other));
    assert_eq!(git(&place.top(), &["for-each-ref", "refs/heads/planctl-branch"]), "");
}

fn a_branch_that_says_it_merged_another_takes_nothing_of_it_away() {
    let (place, base) = forked();
    let (first, second) = (branch_of(&place, 0), branch_of(&place, 1));
    for tree in [&first, &second] {
        git(tree, &["add", "-A"]);
        git(tree, &["commit", "--quiet", "-m", "a worker commits"]);
    }
    git(&first, &["merge", "--quiet", "-s", "ours", "-m", "all of it", "planctl-branch/run-1/2"]);
    assert_joined(&place, &base);
}

fn a_branch_that_has_something_else_checked_out_is_joined_by_its_files() {
    for checked_out in
        ["symbolic-ref HEAD refs/heads/main", "checkout --quiet --detach", "checkout --quiet -b x"]
    {
        let (place, base) = forked();
        let main = git(&place.top(), &["rev-parse", "main"]);
        git(&branch_of(&place, 0), &checked_out.split(' ').collect::<Vec<_>>());
        assert_joined(&place, &base);
        assert_eq!(git(&place.top(), &["rev-parse", "main"]), main, "{checked_out}");
        block_on(place.branches().remove()).unwrap();
        assert_eq!(git(&place.top(), &["worktree", "list"]).lines().count(), 1);
    }
}

fn changes_of_the_workspace_that_are_hidden_from_git_come_into_branches() {
    for hides in ["--assume-unchanged", "--skip-worktree"] {
        let place = Place::new();
        git(&place.top(), &["update-index", hides, "a.txt"]);
        place.write("a.txt", FIRST);
        let base = block_on(place.branches().create_worktrees(1)).unwrap();
        assert_eq!(std::fs::read_to_string(branch_of(&place, 0).join("a.txt")).unwrap(), FIRST, "{hides}");
        place.in_branch(0, "a.txt", BOTH);
        place.write("a.txt", "ONE\ntwo\nTHREE\nfour\nfive\n");
        block_on(place.branches().merge(&base, &[0])).unwrap();
        assert_eq!(place.read("a.txt"), "ONE\ntwo\nTHREE\nfour\nFIVE\n", "{hides}");
    }
}

/// Puts links to files of a user in place of what git writes in the folder of a worktree; returns the files.
fn lead_out(place: &Place, record: &str) -> Vec<PathBuf> {
    let own = place.top().join(".git/worktrees").join(record);
    std::fs::create_dir_all(own.join("logs")).unwrap();
    let names = ["logs/HEAD", "COMMIT_EDITMSG", "index", "ORIG_HEAD", "MERGE_MSG"];
    let lead = |name: &&str| {
        let victim = place.folder.path().join(format!("mine-{}", name.replace('/', "-")));
        std::fs::write(&victim, "mine\n").unwrap();
        if let Some(index) = std::fs::read(own.join(name)).ok().filter(|_| *name == "index") {
            std::fs::write(&victim, index).unwrap();
        }
        std::fs::remove_file(own.join(name)).ok();
        symlink(&victim, own.join(name)).unwrap();
        victim
    };
    names.iter().map(lead).collect()
}

fn contents(files: &[PathBuf]) -> Vec<Vec<u8>> {
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn no_link_in_the_git_folder_leads_a_join_to_a_file_outside() {
    let (place, base) = forked();
    let mut victims: Vec<PathBuf> = ["0", "1"].iter().flat_map(|record| lead_out(&place, record)).collect();
    let yours = place.folder.path().join("yours");
    std::fs::create_dir(&yours).unwrap();
    for name in ["Cargo.lock", "run.lock"] {
        std::fs::write(yours.join(name), "mine\n").unwrap();
        victims.push(yours.join(name));
    }
    let common = place.top().join(".git");
    symlink(&yours, common.join("worktrees/elsewhere")).unwrap();
    let pointer = branch_of(&place, 0).join(".git");
    std::fs::write(yours.join("gitdir"), pointer.to_string_lossy().as_bytes()).unwrap();
    victims.push(yours.join("gitdir"));
    let before = contents(&victims);
    assert_joined(&place, &base);
    assert_eq!(contents(&victims), before);
    // In place of the references of branches.
    symlink(".", yours.join("run-1")).unwrap();
    std::fs::remove_dir_all(common.join("refs/heads/planctl-branch")).unwrap();
    symlink(&yours, common.join("refs/heads/planctl-branch")).unwrap();
    block_on(place.branches().remove()).unwrap();
    assert_eq!(contents(&victims), before);
}

fn no_link_in_the_git_folder_leads_a_commit_to_a_file_outside() {
    let place = Place::new();
    let tree = place.made("one");
    let victims = lead_out(&place, "one");
    let before = contents(&victims);
    std::fs::write(tree.join("b.txt"), "b\n").unwrap();
    let commit = block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
    assert_eq!(git(&place.top(), &["rev-parse", "planctl/one"]), commit);
    assert_eq!(contents(&victims), before);
}

fn a_commit_moves_the_branch_of_its_worktree_and_no_other() {
    let place = Place::new();
    let tree = place.made("one");
    git(&place.top(), &["symbolic-ref", "refs/heads/planctl/one", "refs/heads/main"]);
    std::fs::write(tree.join("b.txt"), "b\n").unwrap();
    let main = git(&place.top(), &["rev-parse", "main"]);
    let commit = block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
    assert_eq!(git(&place.top(), &["rev-parse", "main"]), main);
    assert_eq!(git(&place.top(), &["rev-parse", "planctl/one"]), commit);
}

fn a_worktree_that_names_another_repository_is_not_committed() {
    let (place, yours) = (Place::new(), Place::new());
    let tree = place.made("one");
    let own = yours.made("one");
    std::fs::write(tree.join("b.txt"), "b\n").unwrap();
    std::fs::copy(own.join(".git"), tree.join(".git")).unwrap();
    let committed = block_on(commit_all(&spawner(), &tree, "m"));
    assert!(matches!(committed, Err(WorktreeError::Git { .. })), "{committed:?}");
    assert_eq!(git(&yours.top(), &["rev-parse", "planctl/one"]), yours.head());
}

fn a_worktree_is_made_on_a_branch_of_its_own() {
    let place = Place::new();
    git(&place.top(), &["symbolic-ref", "refs/heads/planctl/one", "refs/heads/main"]);
    let tree = place.made("one");
    git(&tree, &["commit", "--quiet", "--allow-empty", "-m", "a worker commits"]);
    assert_ne!(git(&place.top(), &["rev-parse", "planctl/one"]), place.head());
}

fn branches_of_a_repository_with_other_names_of_objects_are_joined() {
    let place = Place::new();
    std::fs::remove_dir_all(place.top().join(".git")).unwrap();
    git(&place.top(), &["init", "--quiet", "--object-format=sha256"]);
    git(&place.top(), &["add", "-A"]);
    git(&place.top(), &["commit", "--quiet", "-m", "first"]);
    place.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    let base = block_on(place.branches().create_worktrees(1)).unwrap();
    place.in_branch(0, "b.txt", "b\n");
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1 });
    assert_eq!(place.read("b.txt"), "b\n");
}

fn what_a_clumsy_worker_leaves_in_a_branch_is_joined_as_it_is() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(1)).unwrap();
    let tree = branch_of(&place, 0);
    let write = |name: &str, text: &str| std::fs::write(tree.join(name), text).unwrap();
    git(&tree, &["checkout", "--quiet", "--detach"]);
    for settings in [["core.fileMode", "false"], ["core.autocrlf", "true"], ["core.sparseCheckout", "true"]] {
        git(&tree, &[&["config"], &settings[..]].concat());
    }
    write("a name\nof two lines", "x\n");
    write("ends.txt", "one\r\ntwo\r\n");
    write("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(tree.join("tool.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    std::fs::create_dir_all(tree.join("many/empty")).unwrap();
    (0..1_200).for_each(|number| write(&format!("many/{number}"), &number.to_string()));
    write("added.txt", "added\n");
    git(&tree, &["add", "--intent-to-add", "added.txt"]);
    git(&tree, &["update-index", "--skip-worktree", "a.txt"]);
    write("a.txt", FIRST);
    let own = place.top().join(".git/worktrees/0");
    std::fs::create_dir(own.join("rebase-merge")).unwrap();
    std::fs::write(own.join("index.lock"), "").unwrap();
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1_206 });
    assert_eq!(place.read("a name\nof two lines"), "x\n");
    assert_eq!((place.read("ends.txt").as_str(), place.read("a.txt").as_str()), ("one\r\ntwo\r\n", FIRST));
    assert_eq!(place.read("added.txt"), "added\n");
    assert_eq!(place.top().join("tool.sh").metadata().unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(std::fs::read_link(place.top().join("link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(std::fs::read_dir(place.top().join("many")).unwrap().count(), 1_200);
}
