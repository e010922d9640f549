//! Commits, joins and the commit that a person is told to merge hold the files that were judged, also where a worker changes
//! the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use planctl_harness::{
    BranchWorktrees, Joined, WorktreeError, commit_all, merge_branch, uncommitted, verify_result,
};

use crate::processes::support::{block_on, spawner};
use crate::processes::worktrees::{Place, git, uncommitted_of};

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials![
        the_files_of_repositories_within_a_worktree_are_committed,
        a_worktree_stays_whose_commit_only_names_a_repository_within,
        the_files_of_repositories_within_come_into_branches_and_out_of_them,
        files_that_a_worker_hides_from_git_are_committed_and_joined,
        a_forged_object_is_found_before_a_person_is_told_to_merge,
        a_forged_object_comes_into_no_workspace,
        an_object_that_another_replaces_is_found,
        code_that_an_attribute_keeps_out_of_the_commit_is_found,
    ]
}

/// Makes a repository with one file within a folder, as `npx create-…` does.
fn nest(folder: &Path, name: &str, commits: bool) -> PathBuf {
    let nested = folder.join(name);
    std::fs::create_dir_all(&nested).unwrap();
    git(&nested, &["init", "--quiet"]);
    std::fs::write(nested.join("lib.sh"), "echo hi\n").unwrap();
    if commits {
        git(&nested, &["add", "-A"]);
        git(&nested, &["commit", "--quiet", "-m", "x"]);
    }
    nested
}

fn files_of(folder: &Path, commit: &str) -> String {
    git(folder, &["ls-tree", "-r", "--format=%(objectmode) %(path)", commit])
}

fn the_files_of_repositories_within_a_worktree_are_committed() {
    let place = Place::new();
    let tree = place.made("one");
    nest(&tree, "sub", true);
    nest(&tree, "sub/deep/er", true);
    nest(&tree, "new/none", false);
    std::fs::create_dir_all(tree.join("sub/target")).unwrap();
    std::fs::write(tree.join("sub/target/built"), "ignored\n").unwrap();
    // A worker may have committed what git makes of one.
    nest(&tree, "named", true);
    git(&tree, &["add", "named"]);
    git(&tree, &["commit", "--quiet", "-m", "named"]);
    std::fs::write(tree.join("named/later.sh"), "echo later\n").unwrap();
    let commit = block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
    let files = "100644 .gitignore\n100644 a.txt\n100644 named/later.sh\n100644 named/lib.sh\n100644 new/none/lib.sh\n\
                 100644 sub/deep/er/lib.sh\n100644 sub/lib.sh";
    assert_eq!(files_of(&place.top(), &commit), files);
    assert_eq!(uncommitted_of(&tree), [""; 0]);
    assert_eq!(git(&tree, &["status", "--porcelain"]), "", "the worktree's own index follows");
    block_on(verify_result(&spawner(), &tree, &place.head())).unwrap();
    git(&place.top(), &["merge", "--quiet", &commit]);
    assert_eq!(place.read("sub/lib.sh"), "echo hi\n");
    assert!(block_on(place.checkout().remove(&tree, "planctl/one", false)).unwrap());
}

fn a_worktree_stays_whose_commit_only_names_a_repository_within() {
    let place = Place::new();
    let tree = place.made("one");
    nest(&tree, "sub", true);
    let result = || block_on(verify_result(&spawner(), &tree, &place.head())).unwrap_err();
    let is_nested =
        |error: &WorktreeError| matches!(error, WorktreeError::Nested { path, .. } if path == "sub");
    assert!(is_nested(&result()), "a person's `git add` takes nothing of it: {}", result());
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "--quiet", "-m", "a name of a commit"]);
    assert!(is_nested(&result()), "{}", result());
    let remove = || block_on(place.checkout().remove(&tree, "planctl/one", false));
    let kept = remove().unwrap_err();
    assert!(is_nested(&kept), "{kept}");
    assert!(tree.join("sub/lib.sh").exists());
    // The commands that it names do it.
    let help = kept.help().unwrap();
    std::fs::rename(tree.join("sub/.git"), place.folder.path().join("away")).unwrap();
    let (_, commands) = help.split_once("then ").unwrap();
    let commands = commands.replace(" commit", " -c user.name=t -c user.email=t@x commit -qm m");
    assert!(Command::new("bash").args(["-ec", &commands]).env_clear().status().unwrap().success(), "{help}");
    assert!(files_of(&tree, "HEAD").contains("100644 sub/lib.sh"));
    block_on(verify_result(&spawner(), &tree, &place.head())).unwrap();
    assert!(!remove().unwrap());
}

fn branch_of(place: &Place, number: u16) -> PathBuf {
    BranchWorktrees::place(&place.apart(), Path::new(""), number)
}

fn the_files_of_repositories_within_come_into_branches_and_out_of_them() {
    let place = Place::new();
    nest(&place.top(), "vendored", true);
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    let own = branch_of(&place, 0);
    assert_eq!(std::fs::read_to_string(own.join("vendored/lib.sh")).unwrap(), "echo hi\n");
    nest(&own, "sub", true);
    nest(&branch_of(&place, 1), "none", false);
    std::fs::write(own.join("vendored/lib.sh"), "echo changed\n").unwrap();
    assert_eq!(block_on(place.branches().merge(&base, &[0, 1])).unwrap(), Joined::Merged { files: 3 });
    assert_eq!(place.read("sub/lib.sh"), "echo hi\n");
    assert_eq!(place.read("none/lib.sh"), "echo hi\n");
    assert_eq!(place.read("vendored/lib.sh"), "echo changed\n");
    assert_eq!(git(&place.top().join("vendored"), &["log", "--format=%s"]), "x", "its own repository stays");
    block_on(place.branches().remove()).unwrap();
}

fn files_that_a_worker_hides_from_git_are_committed_and_joined() {
    let place = Place::new();
    let exclude = place.top().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(&exclude, "/own-notes\n").unwrap();
    place.write("mine.txt", "mine\n");
    let tree = place.made("one");
    let base = block_on(place.branches().create_worktrees(1)).unwrap();
    std::fs::write(&exclude, "lib.sh\nmine.txt\n").unwrap();
    for folder in [&tree, &branch_of(&place, 0)] {
        std::fs::write(folder.join("lib.sh"), "echo hi\n").unwrap();
        std::fs::write(folder.join("own-notes"), "ignored\n").unwrap();
    }
    assert_eq!(uncommitted_of(&tree), ["lib.sh"]);
    let kept = block_on(place.checkout().remove(&tree, "planctl/one", false)).unwrap_err();
    assert!(matches!(kept, WorktreeError::Uncommitted { uncommitted: 1, .. }), "{kept}");
    let commit = block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
    assert_eq!(files_of(&tree, &commit), "100644 .gitignore\n100644 a.txt\n100644 lib.sh");
    assert_eq!(block_on(place.branches().merge(&base, &[0])).unwrap(), Joined::Merged { files: 1 });
    assert_eq!((place.read("lib.sh").as_str(), place.read("mine.txt").as_str()), ("echo hi\n", "mine\n"));
    // In a checkout of the user's own, git's own words count.
    let seen = block_on(uncommitted(&spawner(), &place.top())).unwrap();
    assert_eq!(seen, [""; 0]);
    block_on(place.checkout().remove(&tree, "planctl/one", true)).unwrap();
    assert_eq!(std::fs::read_dir(place.tree("")).unwrap().count(), 0, "nothing of it stays");
}

/// Puts an object with other content where the one of some content belongs.
fn forge(top: &Path, content: &str, other: &str) -> String {
    let told = place_of_content(top, content);
    let object = git(top, &["hash-object", "-w", &place_of_content(top, other)]);
    let name = git(top, &["hash-object", &told]);
    let file = |name: &str| top.join(".git/objects").join(&name[..2]).join(&name[2..]);
    std::fs::create_dir_all(file(&name).parent().unwrap()).unwrap();
    std::fs::copy(file(&object), file(&name)).unwrap();
    name
}

/// Writes a content into a file outside of the repository.
fn place_of_content(top: &Path, content: &str) -> String {
    let file = top.with_file_name(format!("content-{}", content.trim()));
    std::fs::write(&file, content).unwrap();
    file.to_string_lossy().into_owned()
}

fn assert_forged(error: &WorktreeError, of: &str, object: &str) {
    let is_it =
        matches!(error, WorktreeError::Forged { of: named, how, .. } if named == of && how.contains(object));
    assert!(is_it, "{error}");
}

fn a_forged_object_is_found_before_a_person_is_told_to_merge() {
    for commits in [true, false] {
        let place = Place::new();
        let tree = place.made("one");
        let object = forge(&place.top(), "good\n", "evil\n");
        std::fs::write(tree.join("out.txt"), "good\n").unwrap();
        std::fs::write(tree.join("more.txt"), "more\n").unwrap();
        if commits {
            block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
            assert_eq!(git(&tree, &["show", "HEAD:out.txt"]), "evil", "git itself says nothing");
        }
        let verify = || block_on(verify_result(&spawner(), &tree, &place.head()));
        assert_forged(&verify().unwrap_err(), "out.txt", &object);
        std::fs::remove_file(place.top().join(".git/objects").join(&object[..2]).join(&object[2..])).unwrap();
        verify().unwrap();
    }
    // An object that the checkout has itself, in another file, and a folder.
    let place = Place::new();
    place.write("deep/b.txt", "b\n");
    git(&place.top(), &["add", "-A"]);
    git(&place.top(), &["commit", "--quiet", "-m", "b"]);
    let tree = place.made("one");
    std::fs::write(tree.join("out.txt"), "b\n").unwrap();
    let object = git(&tree, &["hash-object", "out.txt"]);
    std::fs::remove_file(place.top().join(".git/objects").join(&object[..2]).join(&object[2..])).unwrap();
    assert_eq!(forge(&place.top(), "b\n", "evil\n"), object);
    let verified = block_on(verify_result(&spawner(), &tree, &place.head()));
    assert_forged(&verified.unwrap_err(), "out.txt", &object);
}

fn a_forged_object_comes_into_no_workspace() {
    let place = Place::new();
    let base = block_on(place.branches().create_worktrees(2)).unwrap();
    place.in_branch(0, "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    place.in_branch(1, "a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    place.in_branch(1, "out.txt", "good\n");
    let merge = || block_on(place.branches().merge(&base, &[0, 1]));
    let is_untouched = || place.read("a.txt").starts_with("one\n") && !place.top().join("out.txt").exists();
    let remove = |object: &str| {
        std::fs::remove_file(place.top().join(".git/objects").join(&object[..2]).join(&object[2..])).unwrap();
    };
    let of_branch = forge(&place.top(), "good\n", "evil\n");
    let of_merge = forge(&place.top(), "ONE\ntwo\nthree\nfour\nFIVE\n", "evil\n");
    assert_forged(&merge().unwrap_err(), "out.txt", &of_branch);
    assert!(is_untouched());
    // Once it is gone, the file that was judged is committed.
    remove(&of_branch);
    assert_forged(&merge().unwrap_err(), "a.txt", &of_merge);
    assert!(is_untouched());
}

fn an_object_that_another_replaces_is_found() {
    let place = Place::new();
    let tree = place.made("one");
    std::fs::write(tree.join("out.txt"), "good\n").unwrap();
    let commit = block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
    let verify = || block_on(verify_result(&spawner(), &tree, &place.head()));
    let evil = git(&place.top(), &["hash-object", "-w", &place_of_content(&place.top(), "evil\n")]);
    let good = git(&tree, &["hash-object", "out.txt"]);
    git(&tree, &["replace", &good, &evil]);
    assert_forged(&verify().unwrap_err(), "out.txt", &format!("refs/replace/{good}"));
    assert_eq!(verify().unwrap_err().help().unwrap(), format!("git replace -d {good}"));
    git(&tree, &["replace", "-d", &good]);
    git(&tree, &["replace", &commit, &place.head()]);
    assert_forged(&verify().unwrap_err(), &format!("the commit {commit}"), "refs/replace/");
    // Another object that a person replaced is their own affair.
    git(&tree, &["replace", "-d", &commit]);
    let older = git(&place.top(), &["rev-parse", "HEAD:a.txt"]);
    place.write("a.txt", "later\n");
    git(&place.top(), &["commit", "--quiet", "-am", "later"]);
    let two = place.made("two");
    git(&place.top(), &["replace", &older, &evil]);
    std::fs::write(two.join("b.txt"), "b\n").unwrap();
    block_on(verify_result(&spawner(), &two, &place.head())).unwrap();
    block_on(merge_branch(&spawner(), &two, "planctl/one", "m")).unwrap();
}

fn code_that_an_attribute_keeps_out_of_the_commit_is_found() {
    let name = "0123456789012345678901234567890123456789";
    let honest = format!("# $Id: {name} $\r\necho hi\r\n");
    for (attribute, text, is_kept) in [
        ("ident", "true $Id: ; echo good; $\n", false),
        ("working-tree-encoding=UTF-7", "echo hi +ADs- echo good\n", false),
        ("working-tree-encoding=UTF-8", "echo hi\n", true),
        ("ident eol=lf", &honest, true),
        ("eol=crlf", "echo hi\n", true),
    ] {
        let place = Place::new();
        let tree = place.made("one");
        let attributes = format!("*.sh {attribute}\n");
        std::fs::write(tree.join(".gitattributes"), &attributes).unwrap();
        std::fs::write(tree.join("run.sh"), text).unwrap();
        block_on(commit_all(&spawner(), &tree, "m")).unwrap().unwrap();
        let verified = block_on(verify_result(&spawner(), &tree, &place.head()));
        let base = block_on(place.branches().create_worktrees(1)).unwrap();
        place.in_branch(0, ".gitattributes", &attributes);
        place.in_branch(0, "run.sh", text);
        let joined = block_on(place.branches().merge(&base, &[0]));
        match is_kept {
            true => {
                verified.unwrap();
                assert_eq!(joined.unwrap(), Joined::Merged { files: 2 }, "{attribute}");
            }
            false => {
                let named = attribute.split('=').next().unwrap();
                assert_forged(&verified.unwrap_err(), "run.sh", named);
                assert_forged(&joined.unwrap_err(), "run.sh", named);
                assert!(!place.top().join("run.sh").exists());
            }
        }
    }
}
