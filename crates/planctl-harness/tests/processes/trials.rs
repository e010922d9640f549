//! Contracts tried in a copy: the copy is the workspace as it is, and the workspace stays byte for byte what it was.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libtest_mimic::Trial as Test;
use planctl_engine::{Contract, Ending};
use planctl_harness::{
    PATH_DEFAULT, Replica, ReplicaError, ReplicaLimits, Trial, TrialPlace, TrialRunner, digest_of,
    sweep_scratch,
};

use super::support::{alive, block_on, eventually, git, spawner};
use crate::trials;

pub fn tests() -> Vec<Test> {
    trials![
        the_copy_is_the_workspace_as_it_is_with_modes_times_and_links,
        the_workspace_stays_byte_identical_whatever_contracts_do,
        each_contract_meets_the_first_state_and_its_second_run_what_the_first_left,
        what_a_contract_changed_is_named_and_what_git_ignores_is_not,
        a_linked_worktree_is_copied_with_a_repository_of_its_own,
        a_submodule_is_copied_with_a_repository_of_its_own,
        a_nested_worktree_and_a_submodule_belong_to_the_copy,
        borrowed_objects_are_copied_too,
        nothing_is_pushed_from_a_copy,
        a_workspace_below_the_top_of_its_checkout_has_all_of_it,
        what_is_no_file_is_left_out_and_nothing_hangs,
        folders_that_nobody_may_write_are_restored_and_removed,
        too_many_bytes_or_files_are_refused_and_the_largest_is_named,
        a_copy_inside_the_workspace_is_refused,
        a_trial_has_an_empty_home_and_no_secrets,
        a_daemon_that_a_trial_leaves_is_dead_before_the_copy_is_restored,
        a_trial_that_takes_too_long_runs_once,
        an_interrupted_trial_says_so_and_the_copy_goes,
        a_workspace_that_changes_meanwhile_makes_the_trial_void,
        a_copy_whose_owner_is_gone_is_swept,
    ]
}

/// A workspace, and a folder for copies beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "scratch"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Place { folder }
    }

    /// A repository with two commits, something staged, something changed, something untracked and something ignored.
    fn repository() -> Place {
        let place = Place::new();
        place.write("src/main.c", "int main() { return 0; }\n").write(".gitignore", "build/\n*.log\n");
        place.write("kept.txt", "kept\n").write("gone.txt", "gone\n");
        let work = place.work();
        git(&work, &["init"]);
        git(&work, &["add", "."]);
        git(&work, &["commit", "-m", "one"]);
        place.write("src/main.c", "int main() { return 1; }\n");
        git(&work, &["commit", "-am", "two"]);
        place.write("staged.txt", "staged\n").write("src/main.c", "int main() { return 2; }\n");
        git(&work, &["add", "staged.txt"]);
        std::fs::remove_file(work.join("gone.txt")).unwrap();
        place.write("untracked.txt", "untracked\n").write("build/out.o", "object\n").write("a.log", "log\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    fn write(&self, name: &str, text: &str) -> &Place {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn replica_of(&self, workspace: &Path) -> Replica {
        Replica::make(&self.scratch(), workspace, ReplicaLimits::default(), Arc::new(|| false)).unwrap()
    }

    fn runner_of(&self, workspace: &Path, environment: &[(&str, &str)]) -> TrialRunner {
        let place = TrialPlace {
            scratch: self.scratch(),
            workspace: workspace.to_owned(),
            path: PATH_DEFAULT.into(),
            environment: environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            limits: ReplicaLimits::default(),
            isolation: planctl_harness::Isolation::default(),
        };
        block_on(TrialRunner::prepare(spawner(), place, Arc::new(|| false))).unwrap()
    }

    fn runner(&self) -> TrialRunner {
        self.runner_of(&self.work(), &[])
    }

    fn copies(&self) -> usize {
        let names = std::fs::read_dir(self.scratch()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("planctl-")).count()
    }
}

/// Everything that can be told of a tree: each path with its mode, its time and what it holds.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut picture = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let found = path.symlink_metadata().unwrap();
            let holds = if found.is_symlink() {
                std::fs::read_link(&path).unwrap().display().to_string()
            } else if found.is_file() {
                digest_of(&std::fs::read(&path).unwrap()).as_str().to_owned()
            } else {
                String::new()
            };
            let told = format!("{:o} {}.{} {holds}", found.mode(), found.mtime(), found.mtime_nsec());
            if found.is_dir() {
                folders.push(path.clone());
            }
            picture.insert(path.strip_prefix(root).unwrap().to_owned(), told);
        }
    }
    let found = root.metadata().unwrap();
    picture.insert(PathBuf::new(), format!("{:o} {}.{}", found.mode(), found.mtime(), found.mtime_nsec()));
    picture
}

/// Returns the differences between two pictures.
fn changed(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let paths: std::collections::BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differing = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    differing
        .map(|path| format!("{}: {:?} -> {:?}", path.display(), before.get(path), after.get(path)))
        .collect()
}

fn contract(command: &str) -> Contract {
    super::support::contract(command, Duration::from_secs(60))
}

fn try_it(runner: &TrialRunner, command: &str) -> (Vec<Ending>, Vec<String>) {
    match block_on(runner.try_contract(&contract(command), std::future::pending())).unwrap() {
        Trial::Tried { runs, changed } => (runs.iter().map(|run| run.ending).collect(), changed),
        other @ (Trial::NotTried { .. } | Trial::Interrupted) => panic!("{command}: {other:?}"),
    }
}

/// Both runs exit with 0, and nothing is said to have changed.
fn must_pass(runner: &TrialRunner, command: &str) {
    let (endings, changed) = try_it(runner, command);
    assert_eq!((endings, changed), (vec![Ending::Exited { code: 0 }; 2], vec![]), "{command}");
}

fn exits(codes: [i32; 2]) -> Vec<Ending> {
    codes.map(|code| Ending::Exited { code }).to_vec()
}

fn the_copy_is_the_workspace_as_it_is_with_modes_times_and_links() {
    let place = Place::repository();
    let work = place.work();
    place.write("run.sh", "true\n").write("deep/er/x", "x");
    std::fs::set_permissions(work.join("run.sh"), Permissions::from_mode(0o751)).unwrap();
    std::fs::set_permissions(work.join("deep"), Permissions::from_mode(0o2750)).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = std::fs::File::options().write(true).open(work.join("run.sh")).unwrap();
    file.set_modified(old).unwrap();
    symlink("kept.txt", work.join("link")).unwrap();
    symlink("none", work.join("dangling")).unwrap();
    let replica = place.replica_of(&work);
    let (mut original, mut copy) = (picture(&work), picture(replica.workspace()));
    // Only git's configuration differs: nothing is pushed from a copy. Set-id bits are not for copies.
    for picture in [&mut original, &mut copy] {
        assert!(picture.remove(Path::new(".git/config")).is_some());
        let deep = picture.remove(Path::new("deep")).unwrap();
        assert!(deep.starts_with("42750") || deep.starts_with("40750"), "{deep}");
    }
    assert_eq!(changed(&original, &copy), [""; 0]);
    assert_eq!(git(replica.workspace(), &["status", "--porcelain"]), git(&work, &["status", "--porcelain"]));
    assert_eq!(git(replica.workspace(), &["diff"]), git(&work, &["diff"]));
    assert_eq!(git(replica.workspace(), &["log"]), git(&work, &["log"]));
    let mode = std::fs::metadata(replica.workspace().ancestors().nth(2).unwrap()).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);

    // A link into the workspace by a way around leads into the copy; a link out of it leads to the same place.
    symlink(work.join("kept.txt"), work.join("absolute")).unwrap();
    symlink("../work/kept.txt", work.join("around")).unwrap();
    symlink("../outside", work.join("out")).unwrap();
    symlink("/etc/hostname", work.join("far")).unwrap();
    std::fs::write(place.path("outside"), "outside").unwrap();
    let replica = place.replica_of(&work);
    let target = |name: &str| std::fs::read_link(replica.workspace().join(name)).unwrap();
    assert_eq!(target("absolute"), replica.workspace().join("kept.txt"));
    assert_eq!(target("around"), replica.workspace().join("kept.txt"));
    assert_eq!(target("out"), place.path("outside"));
    assert_eq!(target("far"), Path::new("/etc/hostname"));
    assert_eq!(target("link"), Path::new("kept.txt"));
}

fn the_workspace_stays_byte_identical_whatever_contracts_do() {
    let place = Place::repository();
    symlink(place.work().join("kept.txt"), place.work().join("absolute")).unwrap();
    let before = picture(&place.work());
    let runner = place.runner();
    let first = picture(&copy_of(&place));
    let me = "git config user.name t && git config user.email t@example.org";
    for command in [
        "echo more >>kept.txt",
        "echo more >>absolute",
        "rm -rf src .gitignore && mkdir kept && touch kept/x",
        "rm kept.txt && mkdir kept.txt && touch kept.txt/x && ln -s / root",
        "chmod -R a-w . && chmod 000 kept.txt && chmod 0700 src",
        "find . -exec touch -d 2001-01-01 {} +",
        &format!("{me} && git add -A && git commit -qm three && git tag t && git branch b"),
        &format!("{me} && git stash -u && git stash pop"),
        &format!("{me} && git reset -q --hard HEAD~1 && git clean -qfdx"),
        "git gc -q --prune=now --aggressive && git pack-refs --all && git repack -adq",
        "git worktree add ../elsewhere && git worktree prune",
        "git update-ref -d HEAD; git symbolic-ref HEAD refs/heads/none; rm -rf .git/objects",
        "find . -mindepth 1 -delete",
        "for i in $(seq 2000); do echo $i >new-$i; done; mkdir -p a/b/c/d",
        "printf 'int main() { return 3; }\\n' >src/main.c",
    ] {
        let (endings, _) = try_it(&runner, command);
        assert_eq!(endings[0], Ending::Exited { code: 0 }, "{command}");
        assert_eq!(changed(&before, &picture(&place.work())), [""; 0], "{command}");
        assert_eq!(changed(&first, &picture(&copy_of(&place))), [""; 0], "{command}: not restored");
    }
    drop(runner);
    assert_eq!(place.copies(), 0);
    assert_eq!(changed(&before, &picture(&place.work())), [""; 0]);
}

/// Returns the tree of the one copy there is.
fn copy_of(place: &Place) -> PathBuf {
    let copies: Vec<PathBuf> =
        std::fs::read_dir(place.scratch()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_copy = |path: &PathBuf| path.to_string_lossy().contains("planctl-trial-");
    let copies: Vec<PathBuf> = copies.into_iter().filter(is_copy).collect();
    assert_eq!(copies.len(), 1);
    copies[0].join("tree")
}

fn each_contract_meets_the_first_state_and_its_second_run_what_the_first_left() {
    let place = Place::repository();
    let runner = place.runner();
    assert_eq!(try_it(&runner, "mkdir made").0, exits([0, 1]));
    assert_eq!(try_it(&runner, "mkdir made").0, exits([0, 1]), "restored in between");
    assert_eq!(try_it(&runner, "test ! -e $HOME/x && touch $HOME/x $TMPDIR/x").0, exits([0, 0]));
    assert_eq!(try_it(&runner, "ls -A $HOME $TMPDIR | grep -x x").0, exits([1, 1]));
    must_pass(&runner, "git diff --quiet --cached -- kept.txt && test -s staged.txt && test ! -e gone.txt");
    must_pass(&runner, "test -s build/out.o && test -s a.log");
}

fn what_a_contract_changed_is_named_and_what_git_ignores_is_not() {
    let place = Place::repository();
    let runner = place.runner();
    let changes = |command: &str| try_it(&runner, command).1;
    assert_eq!(
        changes("echo x >>kept.txt; echo x >new.txt; rm -f untracked.txt"),
        ["kept.txt", "new.txt", "untracked.txt"]
    );
    assert_eq!(changes("mkdir -p empty full; touch full/x"), ["empty", "full/x"]);
    assert_eq!(changes("chmod +x kept.txt"), ["kept.txt"]);
    assert_eq!(
        changes(
            "echo x >>a.log; mkdir -p build target/debug sub/__pycache__; touch build/y target/debug/z sub/b.log"
        ),
        [""; 0]
    );
    assert_eq!(changes("echo '*' >.gitignore; touch hidden"), [".gitignore", "hidden"]);
    assert_eq!(changes("touch kept.txt; cat kept.txt >t && cat t >kept.txt && rm t"), [""; 0]);
    assert_eq!(changes("git status && git gc -q"), [""; 0]);
    let commit = "git -c user.name=t -c user.email=t@example.org commit -qm three --allow-empty";
    assert_eq!(changes(commit), [".git/HEAD"]);

    let plain = Place::new();
    plain.write("a", "a");
    let runner = plain.runner();
    assert_eq!(
        try_it(&runner, "echo b >>a; mkdir -p node_modules/x; touch node_modules/x/y b").1,
        ["a", "b"]
    );
    must_pass(&runner, "! git rev-parse --git-dir");
}

fn a_linked_worktree_is_copied_with_a_repository_of_its_own() {
    let place = Place::repository();
    git(&place.work(), &["worktree", "add", "-b", "side", "../linked"]);
    git(&place.work(), &["worktree", "add", "-b", "other", "../other"]);
    let linked = place.path("linked");
    std::fs::write(linked.join("kept.txt"), "changed\n").unwrap();
    git(&linked, &["add", "kept.txt"]);
    let before = [picture(&place.work()), picture(&linked), picture(&place.path("other"))];
    let runner = place.runner_of(&linked, &[]);
    let me = "git config user.name t && git config user.email t@example.org";
    must_pass(
        &runner,
        "test \"$(git status --porcelain)\" = 'M  kept.txt' && git diff --cached --quiet -- src",
    );
    must_pass(&runner, "test $(git rev-parse --abbrev-ref HEAD) = side && git log main | grep -q two");
    must_pass(&runner, "test -f .git && test $(git worktree list | wc -l) -le 2");
    for command in [
        &format!("{me} && git commit -qam mine && git branch -D main; git gc -q --prune=now"),
        "git worktree prune --expire=now; git worktree repair; git worktree remove --force ../other; true",
    ] {
        assert_eq!(try_it(&runner, command).0[0], Ending::Exited { code: 0 }, "{command}");
    }
    must_pass(&runner, "test \"$(git status --porcelain)\" = 'M  kept.txt'");
    drop(runner);

    // The main checkout must not reach its linked worktrees either.
    let runner = place.runner();
    let command =
        "git worktree repair; git worktree remove --force ../linked; git worktree prune --expire=now; true";
    try_it(&runner, command);
    drop(runner);
    for (folder, before) in [place.work(), linked, place.path("other")].iter().zip(before) {
        assert_eq!(changed(&before, &picture(folder)), [""; 0], "{}", folder.display());
    }
    git(&place.work(), &["fsck", "--strict"]);
}

fn a_submodule_is_copied_with_a_repository_of_its_own() {
    let place = Place::repository();
    let outer = place.path("outer");
    std::fs::create_dir(&outer).unwrap();
    git(&outer, &["init"]);
    git(&outer, &["submodule", "add", place.work().to_str().unwrap(), "sub"]);
    git(&outer, &["commit", "-m", "with a submodule"]);
    let sub = outer.join("sub");
    std::fs::write(sub.join("kept.txt"), "changed\n").unwrap();
    let before = picture(&outer);
    let runner = place.runner_of(&sub, &[]);
    must_pass(&runner, "test \"$(git status --porcelain)\" = ' M kept.txt' && git log | grep -q two");
    let commit = "git -c user.name=t -c user.email=t@example.org commit -qam three && git checkout -q HEAD~1";
    assert_eq!(try_it(&runner, commit).0[0], Ending::Exited { code: 0 });
    must_pass(&runner, "test \"$(git status --porcelain)\" = ' M kept.txt'");
    drop(runner);
    assert_eq!(changed(&before, &picture(&outer)), [""; 0]);
}

fn a_nested_worktree_and_a_submodule_belong_to_the_copy() {
    let place = Place::repository();
    let outer = place.path("outer");
    std::fs::create_dir(&outer).unwrap();
    git(&outer, &["init"]);
    git(&outer, &["submodule", "add", place.work().to_str().unwrap(), "sub"]);
    git(&outer, &["commit", "-m", "with a submodule"]);
    git(&outer, &["worktree", "add", "-b", "inner", ".worktrees/inner"]);
    // A submodule of old names its git folder by an absolute path.
    let absolute = format!("gitdir: {}\n", outer.join(".git/modules/sub").display());
    std::fs::write(outer.join("sub/.git"), absolute).unwrap();
    let before = picture(&outer);
    let runner = place.runner_of(&outer, &[]);
    for folder in ["sub", ".worktrees/inner"] {
        let here =
            format!("cd {folder} && test \"$(git rev-parse --show-toplevel)\" = \"$PWD\" && git status");
        must_pass(&runner, &here);
        let command = format!(
            "cd {folder} && git -c user.name=t -c user.email=t@example.org commit -qm more --allow-empty && touch x && git add x"
        );
        assert_eq!(try_it(&runner, &command).0[0], Ending::Exited { code: 0 }, "{command}");
    }
    drop(runner);
    assert_eq!(changed(&before, &picture(&outer)), [""; 0]);
}

fn borrowed_objects_are_copied_too() {
    let place = Place::repository();
    git(&place.path(""), &["clone", "--shared", "work", "borrower"]);
    let (lender, borrower) = (picture(&place.work()), picture(&place.path("borrower")));
    let runner = place.runner_of(&place.path("borrower"), &[]);
    must_pass(&runner, "git fsck && test ! -e .git/objects/info/alternates && git log | grep -q two");
    // Writing an object that exists already freshens it where it is found.
    let freshen = "git -c user.name=t -c user.email=t@example.org commit -qm three --allow-empty && git hash-object -w kept.txt && git repack -adq";
    assert_eq!(try_it(&runner, freshen).0[0], Ending::Exited { code: 0 });
    drop(runner);
    assert_eq!(changed(&lender, &picture(&place.work())), [""; 0]);
    assert_eq!(changed(&borrower, &picture(&place.path("borrower"))), [""; 0]);
}

fn nothing_is_pushed_from_a_copy() {
    let place = Place::repository();
    git(&place.path(""), &["clone", "--bare", "work", "remote.git"]);
    let remote = place.path("remote.git");
    git(&place.work(), &["remote", "add", "origin", remote.to_str().unwrap()]);
    let before = picture(&remote);
    let runner = place.runner();
    must_pass(&runner, "git ls-remote origin | grep -q refs/heads/main");
    let (endings, _) = try_it(&runner, "git push -q origin HEAD:refs/heads/pushed");
    assert!(
        endings.iter().all(|ending| matches!(ending, Ending::Exited { code } if *code != 0)),
        "{endings:?}"
    );
    assert_eq!(changed(&before, &picture(&remote)), [""; 0]);
}

fn a_workspace_below_the_top_of_its_checkout_has_all_of_it() {
    let place = Place::repository();
    let runner = place.runner_of(&place.work().join("src"), &[("ROOT", place.work().to_str().unwrap())]);
    must_pass(&runner, "test \"${PWD##*/}\" = src && test -s main.c && test -s ../kept.txt");
    must_pass(&runner, "test \"$(git status --porcelain -- .)\" = ' M src/main.c'");
    must_pass(
        &runner,
        "cd \"$ROOT\" && test \"$PWD\" = \"$(git rev-parse --show-toplevel)\" && test -s kept.txt",
    );
    assert_eq!(try_it(&runner, "echo x >>main.c; echo x >>../kept.txt").1, ["kept.txt", "main.c"]);
}

fn what_is_no_file_is_left_out_and_nothing_hangs() {
    let place = Place::new();
    place.write("a", "a");
    let work = place.work();
    let made = std::process::Command::new("mkfifo").arg(work.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    let replica = place.replica_of(&work);
    let names: Vec<String> =
        picture(replica.workspace()).keys().map(|path| path.display().to_string()).collect();
    assert_eq!(names, ["", "a"]);
}

fn folders_that_nobody_may_write_are_restored_and_removed() {
    let place = Place::new();
    place.write("closed/in/x", "x").write("open/y", "y");
    for folder in ["closed/in", "closed"] {
        std::fs::set_permissions(place.work().join(folder), Permissions::from_mode(0o555)).unwrap();
    }
    let before = picture(&place.work());
    let runner = place.runner();
    let first = picture(&copy_of(&place));
    for command in
        ["chmod -R u+w closed && rm -rf closed", "chmod u+w closed/in && rm closed/in/x", "chmod 000 open"]
    {
        assert_eq!(try_it(&runner, command).0[0], Ending::Exited { code: 0 }, "{command}");
        assert_eq!(changed(&first, &picture(&copy_of(&place))), [""; 0], "{command}");
    }
    drop(runner);
    assert_eq!(place.copies(), 0);
    assert_eq!(changed(&before, &picture(&place.work())), [""; 0]);
    for folder in ["closed", "closed/in"] {
        std::fs::set_permissions(place.work().join(folder), Permissions::from_mode(0o755)).unwrap();
    }
}

fn too_many_bytes_or_files_are_refused_and_the_largest_is_named() {
    let place = Place::new();
    place.write("small", "small").write("build/large/x", "x");
    let large = std::fs::File::create(place.work().join("build/large/file")).unwrap();
    large.set_len(1 << 40).unwrap();
    let limits = ReplicaLimits { bytes_max: 1 << 20, entries_max: 100 };
    let made = Replica::make(&place.scratch(), &place.work(), limits, Arc::new(|| false));
    match made.err() {
        Some(ReplicaError::TooLarge { largest, limit, largest_bytes, .. }) => {
            assert_eq!((largest.as_str(), limit), ("build", 1 << 20));
            assert_eq!(largest_bytes, (1 << 40) + 1);
        }
        other => panic!("{other:?}"),
    }
    let limits = ReplicaLimits { bytes_max: u64::MAX, entries_max: 100 };
    let made = Replica::make(&place.scratch(), &place.work(), limits, Arc::new(|| false));
    assert!(matches!(made.err(), Some(ReplicaError::NoRoom { .. })), "a terabyte is not there");
    std::fs::remove_file(place.work().join("build/large/file")).unwrap();
    for number in 0..100 {
        place.write(&format!("node_modules/{number}"), "");
    }
    let made = Replica::make(&place.scratch(), &place.work(), limits, Arc::new(|| false));
    assert!(matches!(made.err(), Some(ReplicaError::TooMany { largest, .. }) if largest == "node_modules"),);
    assert_eq!(place.copies(), 0);
}

fn a_copy_inside_the_workspace_is_refused() {
    let place = Place::repository();
    let inside = place.work().join("state");
    std::fs::create_dir(&inside).unwrap();
    for workspace in [place.work(), place.work().join("src")] {
        let made = Replica::make(&inside, &workspace, ReplicaLimits::default(), Arc::new(|| false));
        assert!(matches!(made.err(), Some(ReplicaError::Inside { .. })));
    }
}

fn a_trial_has_an_empty_home_and_no_secrets() {
    let place = Place::new();
    place.write("bin/grep", "#!/bin/sh\nexit 0\n");
    std::fs::set_permissions(place.work().join("bin/grep"), Permissions::from_mode(0o755)).unwrap();
    let runner = place.runner_of(&place.work(), &[("EXTRA", "1")]);
    must_pass(
        &runner,
        "test -z \"$(find $HOME -type f)\" && test -z \"$(ls -A $TMPDIR)\" && test \"$EXTRA\" = 1",
    );
    must_pass(&runner, "case $XDG_CACHE_HOME$XDG_CONFIG_HOME in \"$HOME\"*\"$HOME\"*) ;; *) false ;; esac");
    must_pass(&runner, "! env | grep -E 'PLANCTL_|DATABASE_URL|evil'");
    must_pass(&runner, "! echo a | grep -q b");
}

fn a_daemon_that_a_trial_leaves_is_dead_before_the_copy_is_restored() {
    let place = Place::new();
    place.write("a", "a");
    let mark = format!("planctl-trial-mark-{}", std::process::id());
    let runner = place.runner_of(&place.work(), &[("MARK", &mark)]);
    let command =
        "setsid bash -c 'while :; do echo x >>a; sleep 0.01; done' & (setsid sleep 300 &) ; echo x >>a";
    let (endings, changed) = try_it(&runner, command);
    assert_eq!((endings, changed), (exits([0, 0]), vec!["a".to_owned()]));
    assert_eq!(alive(&mark), [0; 0]);
    must_pass(&runner, "test \"$(cat a)\" = a");
}

fn a_trial_that_takes_too_long_runs_once() {
    let place = Place::new();
    let runner = place.runner();
    let contract = Contract { timeout: Duration::from_millis(300), ..contract("sleep 300 & sleep 300") };
    match block_on(runner.try_contract(&contract, std::future::pending())).unwrap() {
        Trial::Tried { runs, .. } => {
            assert_eq!(runs.iter().map(|run| run.ending).collect::<Vec<_>>(), [Ending::TimedOut]);
        }
        other @ (Trial::NotTried { .. } | Trial::Interrupted) => panic!("{other:?}"),
    }
}

fn an_interrupted_trial_says_so_and_the_copy_goes() {
    let place = Place::repository();
    let runner = place.runner();
    let trial = block_on(runner.try_contract(&contract("sleep 300"), std::future::ready(()))).unwrap();
    assert!(matches!(trial, Trial::Interrupted), "{trial:?}");
    drop(runner);
    let asked = Arc::new(AtomicBool::new(false));
    let stop = asked.clone();
    // The first question is answered with no, every other one with yes.
    let is_stopped = Arc::new(move || stop.swap(true, Ordering::Relaxed));
    let made = Replica::make(&place.scratch(), &place.work(), ReplicaLimits::default(), is_stopped);
    assert!(matches!(made.err(), Some(ReplicaError::Interrupted)) && asked.load(Ordering::Relaxed));
    assert_eq!(place.copies(), 0);
}

fn a_workspace_that_changes_meanwhile_makes_the_trial_void() {
    let place = Place::repository();
    let runner = place.runner();
    place.write("kept.txt", "somebody typed\n");
    let trial =
        block_on(runner.try_contract(&contract("echo x >>kept.txt"), std::future::pending())).unwrap();
    assert!(matches!(&trial, Trial::NotTried { reason } if reason.contains("changed while")), "{trial:?}");
    must_pass(&runner, "grep -q typed kept.txt");
}

fn a_copy_whose_owner_is_gone_is_swept() {
    let place = Place::new();
    place.write("closed/x", "x");
    std::fs::set_permissions(place.work().join("closed"), Permissions::from_mode(0o500)).unwrap();
    let runner = place.runner();
    assert_eq!((sweep_scratch(&place.scratch()).unwrap(), place.copies()), (0, 1), "it is in use");
    // A planctl that is killed closes its lock and removes nothing; that its trees are dead first is shown elsewhere.
    let copy = copy_of(&place).parent().unwrap().to_owned();
    std::fs::rename(&copy, place.path("kept")).unwrap();
    drop(runner);
    std::fs::rename(place.path("kept"), &copy).unwrap();
    eventually("the sweep", Duration::from_secs(5), || sweep_scratch(&place.scratch()).unwrap() == 1);
    assert_eq!(place.copies(), 0);
    std::fs::set_permissions(place.work().join("closed"), Permissions::from_mode(0o700)).unwrap();
}
