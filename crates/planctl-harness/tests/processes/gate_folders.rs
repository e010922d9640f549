//! A worker's files in a home, a cache or a repository's settings decide no contract; each with its honest twin.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{Ending, Evidence, HarnessResult};
use planctl_harness::{Baseline, ContractRunner, PATH_DEFAULT, find_program, sweep_scratch};

use super::support::{block_on, git, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        hole_13_home_and_temporary_folder_hold_nothing_of_another_contract_and_go_with_the_runner,
        hole_13_whatever_a_contract_leaves_in_its_folder_the_next_one_finds_it_as_the_first_did,
        hole_13_the_operator_may_name_another_home,
        cheat_41_a_start_up_file_in_the_home_is_not_read,
        hole_8_a_compiled_test_that_a_worker_left_is_not_run_and_none_is_left_behind,
        cheat_44_an_index_that_hides_a_change_hides_nothing_from_a_contract,
        cheat_44_what_is_staged_stays_staged,
        cheat_45_a_filter_of_the_repository_hides_no_change,
        cheat_46_a_remote_that_was_led_elsewhere_is_asked_where_it_was,
        cheat_47_a_signature_is_checked_by_the_real_program,
        a10_git_settings_that_a_worker_wrote_hide_nothing,
        a10_a_graph_of_commits_that_a_worker_wrote_is_not_believed,
        a10_commits_that_a_worker_marks_as_the_first_ones_hide_none_before_them,
        a10_a_contract_may_move_the_ends_of_a_shallow_clone,
        what_a_contract_does_to_a_repository_happens,
        repositories_of_a_contracts_own_are_left_alone,
        linked_worktrees_and_submodules_are_judged_with_an_index_of_their_own,
    ]
}

pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        for name in ["work", "scratch"] {
            std::fs::create_dir(place.at(name)).unwrap();
        }
        place
    }

    /// A repository with one commit of `a.txt` and `tests/check.sh`.
    pub fn repository() -> Place {
        let place = Place::new();
        place.write("a.txt", "one\n").write("tests/check.sh", "exit 1\n");
        place.git(&["init"]);
        place.git(&["add", "-A"]);
        place.git(&["commit", "-m", "one"]);
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn work(&self) -> PathBuf {
        self.at("work")
    }

    pub fn write(&self, name: &str, text: &str) -> &Place {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.work(), arguments)
    }

    pub fn runner(&self) -> ContractRunner {
        self.runner_with(&[])
    }

    fn runner_with(&self, configured: &[(&str, &str)]) -> ContractRunner {
        let configured = configured.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let spawner = spawner().with_scratch(self.at("scratch"));
        ContractRunner::new(spawner, self.work(), None, configured).unwrap()
    }

    /// Says whether a contract passes, prepared by a worker that is done by now.
    fn passes(&self, command: &str) -> bool {
        exit_code(&self.runner(), command) == 0
    }
}

fn evidence(runner: &ContractRunner, command: &str) -> Evidence {
    let contract = super::support::contract(command, Duration::from_secs(60));
    let baseline = Arc::new(Baseline::default());
    let gate = block_on(runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()));
    let HarnessResult::Evidence(evidence) = gate.found else { panic!("{command}: {:?}", gate.found) };
    *evidence
}

pub fn exit_code(runner: &ContractRunner, command: &str) -> i32 {
    let evidence = evidence(runner, command);
    let Ending::Exited { code } = evidence.ending else { panic!("{command}: {:?}", evidence.ending) };
    code
}

fn is_there(program: &str) -> bool {
    find_program(program.as_ref(), PATH_DEFAULT.as_ref()).is_some()
}

fn hole_13_home_and_temporary_folder_hold_nothing_of_another_contract_and_go_with_the_runner() {
    let place = Place::new();
    let runner = place.runner();
    let real = std::env::var("HOME").unwrap();
    let look = "echo $HOME; [ -z \"$(find $HOME -type f)\" ] && [ -z \"$(ls -A $TMPDIR)\" ] && touch $HOME/x $TMPDIR/x \
                && mkdir $TMPDIR/closed && chmod 0 $TMPDIR/closed && [ \"$(stat -c %a $HOME/..)\" = 700 ]";
    let mut homes = Vec::new();
    for _ in 0..3 {
        let evidence = evidence(&runner, look);
        assert_eq!(evidence.ending, Ending::Exited { code: 0 }, "{}", evidence.stderr.tail);
        homes.push(evidence.stdout.tail.trim().to_owned());
    }
    assert_eq!(exit_code(&runner, "kill -0 $$; mkdir -p $HOME/a/b; exit 7"), 7);
    drop(runner);
    for home in homes {
        assert!(Path::new(&home).starts_with(place.at("scratch")) && home != real, "{home}");
        assert!(!Path::new(&home).exists(), "{home}");
    }
    assert_eq!(sweep_scratch(&place.at("scratch")).unwrap(), 0, "nothing is left to be swept");
}

fn hole_13_whatever_a_contract_leaves_in_its_folder_the_next_one_finds_it_as_the_first_did() {
    let place = Place::repository();
    place.write("precious/kept.txt", "kept");
    // Everything about the folder: kinds, modes, link targets, other names of a file, sizes, and what files hold.
    let look = "echo \"$HOME\"; cd \"$HOME/..\" && find . -name lock -o -printf '%P %y %m %l %s\\n' | sed 's/ d \\([0-9]*\\) .*/ d \\1/' | sort && \
                find . -type f -not -name lock -print0 | sort -z | xargs -0 cat | sed s#$PWD#FOLDER#g | sha256sum && find . -type f -links +1";
    let seen = |runner: &ContractRunner| {
        let evidence = evidence(runner, look);
        assert_eq!(evidence.ending, Ending::Exited { code: 0 }, "{}", evidence.stderr.tail);
        // A folder that was given up has another name.
        let (home, rest) = evidence.stdout.tail.split_once('\n').unwrap();
        rest.replace(home.trim_end_matches("/home"), "FOLDER")
    };
    let first = seen(&place.runner());
    assert!(first.contains("gitconfig") && first.contains("bin/git f 700"), "{first}");
    let left = [
        "touch ../more; mkdir -p a/b ../c; ln -s / d; mkfifo e",
        "printf '[user]\\nname = me\\n' >> ../gitconfig",
        "rm ../gitconfig",
        "ln ../gitconfig $W/precious/gitconfig",
        "rm ../gitconfig; mkfifo ../gitconfig",
        "rm ../gitconfig; ln -s /dev/null ../gitconfig",
        "rm ../gitconfig; mkdir ../gitconfig",
        "chmod 644 ../gitconfig",
        "printf '#!/bin/bash\\nexit 0\\n' > ../bin/git",
        "printf '[core]\\nfsmonitor = /bin/true\\n' >> ../git/0/config",
        "rm -r ../git; ln -s $W/.git ../git",
        "chmod 777 .; chmod 755 ../tmp",
        "chmod 777 ..",
        "rm -r .cache; ln -s /tmp .cache",
        "rm -r ../tmp; echo x > ../tmp",
        "rm -r ../tmp; ln -s $W/precious ../tmp",
        "for link in $(find . -type l); do ln -sfn /elsewhere $link; done",
        "find . -type l -delete",
        "rm ../lock; touch ../lock",
        "rm ../lock",
        "rm -rf ../* ../.[a-z]*",
        "setfacl -d -m u:nobody:rwx . 2> /dev/null; true",
        "mkdir x; touch x/y; chmod 0 x",
    ];
    // The next contract removes what a brief one left; a longer one's folder is cleared as soon as it has ended.
    for (left, seconds) in left.into_iter().flat_map(|left| [(left, "0"), (left, "0.03")]) {
        let runner = place.runner();
        // One that ends as it should is not judged where it changed the programs of its folder.
        let left_and_failed = format!("W=$PWD; sleep {seconds}; cd $HOME && {{ {left}; }} && exit 7");
        assert_eq!(exit_code(&runner, &left_and_failed), 7, "{left}");
        assert_eq!(seen(&runner), first, "after: {left}");
        assert_eq!(seen(&runner), first, "and again after: {left}");
        assert_eq!(
            std::fs::read_to_string(place.work().join("precious/kept.txt")).unwrap(),
            "kept",
            "{left}"
        );
        assert_eq!(sweep_scratch(&place.at("scratch")).unwrap(), 0, "it is still in use after: {left}");
        std::fs::remove_file(place.work().join("precious/gitconfig")).ok();
    }
}

fn hole_13_the_operator_may_name_another_home() {
    let place = Place::new();
    let runner = place.runner_with(&[("HOME", "/somewhere"), ("PYTHONPYCACHEPREFIX", "")]);
    let asks = "[ \"$HOME\" = /somewhere ] && [ -z \"$PYTHONPYCACHEPREFIX\" ] && [ -d \"$TMPDIR\" ]";
    assert_eq!(exit_code(&runner, asks), 0);
}

fn cheat_41_a_start_up_file_in_the_home_is_not_read() {
    let real = std::env::var("HOME").unwrap();
    assert!(Path::new(&real).join(".npmrc").exists(), "this program's home has one");
    let place = Place::new();
    assert!(place.passes("[ ! -e ~/.npmrc ] && [ ! -e ~/.gitconfig ]"));
    assert!(
        place.passes("[ \"$(git config user.email)\" = user@example.org ] && ! git yes"),
        "who the user is stays"
    );
    place.write("package.json", r#"{"name":"x","version":"1.0.0","scripts":{"test":"exit 3"}}"#);
    if is_there("npm") {
        assert!(!place.passes("npm test"));
        place.write("package.json", r#"{"name":"x","version":"1.0.0","scripts":{"test":"exit 0"}}"#);
        assert!(place.passes("npm test"), "the honest twin");
    }
}

fn hole_8_a_compiled_test_that_a_worker_left_is_not_run_and_none_is_left_behind() {
    if !is_there("python3") {
        return;
    }
    let place = Place::new();
    let test = |body: &str| {
        format!("import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.{body}\n")
    };
    place.write("tests/__init__.py", "").write("tests/test_it.py", &test("assertTrue(False)"));
    // The worker compiles a test that passes, of the same size, and gives it the time of the real one.
    let poison = format!(
        "import os, py_compile, shutil\nreal = open('tests/test_it.py').read()\nfound = os.stat('tests/test_it.py')\n\
         open('tests/test_it.py', 'w').write({:?}.ljust(len(real)))\n\
         os.utime('tests/test_it.py', ns=(found.st_atime_ns, found.st_mtime_ns))\n\
         py_compile.compile('tests/test_it.py')\nopen('tests/test_it.py', 'w').write(real)\n\
         os.utime('tests/test_it.py', ns=(found.st_atime_ns, found.st_mtime_ns))\n",
        test("assertTrue(True)")
    );
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new("/usr/bin/python3");
        command.args(arguments).current_dir(place.work()).env_clear().env("PATH", PATH_DEFAULT);
        command.stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(run(&["-c", &poison]));
    assert!(run(&["-m", "unittest", "-q", "tests.test_it"]), "python itself is taken in");
    assert!(place.passes(
        "test ! -e \"${MYPY_CACHE_DIR:?}\" && mkdir \"$MYPY_CACHE_DIR\" && test ! -e \"${RUFF_CACHE_DIR:?}\""
    ));
    assert!(place.passes("test ! -e \"$MYPY_CACHE_DIR\""), "nothing of another contract is in it");
    assert!(
        place.passes("test \"$TURBO_FORCE $NX_SKIP_NX_CACHE\" = 'true true'"),
        "no task's result is taken from a cache"
    );
    assert!(!place.passes("python3 -m unittest -q tests.test_it"));
    std::fs::remove_dir_all(place.work().join("tests/__pycache__")).unwrap();
    place.write("tests/test_it.py", &test("assertTrue(1 + 1 == 2)"));
    assert!(place.passes("python3 -m unittest -q tests.test_it"), "the honest twin");
    assert!(!place.work().join("tests/__pycache__").exists());
}

fn cheat_44_an_index_that_hides_a_change_hides_nothing_from_a_contract() {
    let asks = [
        "git diff --quiet HEAD",
        "git diff --quiet",
        "git diff-index --quiet HEAD -- tests",
        "test -z \"$(git status --porcelain)\"",
        "cd tests && git diff --quiet HEAD -- check.sh",
        "! git ls-files -m | grep -q check",
    ];
    for hides in ["--assume-unchanged", "--skip-worktree"] {
        let place = Place::repository();
        for ask in asks {
            assert!(place.passes(ask), "the honest twin of {hides}: {ask}");
        }
        place.git(&["update-index", hides, "tests/check.sh"]);
        place.write("tests/check.sh", "exit 0\n");
        assert_eq!(place.git(&["status", "--porcelain"]), "", "git itself is taken in");
        for ask in asks {
            assert!(!place.passes(ask), "{hides}: {ask}");
        }
    }
    // A time and a size that are as before say nothing either.
    let place = Place::repository();
    let file = place.work().join("tests/check.sh");
    let time = std::fs::metadata(&file).unwrap().modified().unwrap();
    place.git(&["config", "core.trustctime", "false"]);
    place.git(&["config", "core.checkStat", "minimal"]);
    let old = time - Duration::from_secs(60);
    std::fs::File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
    place.git(&["update-index", "--refresh"]);
    place.write("tests/check.sh", "exit 0\n");
    std::fs::File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
    assert_eq!(place.git(&["status", "--porcelain"]), "", "git itself is taken in");
    assert!(!place.passes("git diff --quiet HEAD"));
}

fn cheat_44_what_is_staged_stays_staged() {
    let place = Place::repository();
    place.write("a.txt", "two\n").write("new.txt", "new\n");
    place.git(&["add", "a.txt", "new.txt"]);
    place.write("a.txt", "three\n");
    assert!(place.passes(
        "[ \"$(git diff --cached --name-only | tr '\\n' ' ')\" = 'a.txt new.txt ' ] && git show :a.txt | grep -qx two \
         && [ \"$(git diff --name-only)\" = a.txt ] && git status --porcelain | grep -qx 'MM a.txt'"
    ));
    place.git(&["rm", "--cached", "--quiet", "tests/check.sh"]);
    assert!(place.passes("git status --porcelain | grep -qx 'D  tests/check.sh'"));
}

fn cheat_45_a_filter_of_the_repository_hides_no_change() {
    let place = Place::repository();
    place.git(&["config", "filter.same.clean", "echo 'exit 1'"]);
    std::fs::write(place.work().join(".git/info/attributes"), "tests/* filter=same\n").unwrap();
    assert!(place.passes("git diff --quiet HEAD"), "the honest twin");
    place.write("tests/check.sh", "exit 0\n");
    assert_eq!(place.git(&["diff", "HEAD"]), "", "git itself is taken in");
    assert!(!place.passes("git diff --quiet HEAD"));
}

fn cheat_46_a_remote_that_was_led_elsewhere_is_asked_where_it_was() {
    let place = Place::repository();
    for name in ["origin.git", "own.git"] {
        git(&place.at(""), &["init", "--bare", name]);
    }
    let url = |name: &str| place.at(name).to_string_lossy().into_owned();
    place.git(&["remote", "add", "origin", &url("origin.git")]);
    let runner = place.runner();
    let is_pushed = "[ \"$(git ls-remote origin refs/heads/main | cut -f1)\" = \"$(git rev-parse HEAD)\" ]";
    assert_eq!(exit_code(&runner, is_pushed), 1);
    place.git(&["remote", "set-url", "origin", &url("own.git")]);
    place.git(&["push", "origin", "main"]);
    assert_eq!(exit_code(&runner, is_pushed), 1, "it was pushed elsewhere");
    place.git(&["remote", "set-url", "origin", &url("origin.git")]);
    place.git(&["push", "origin", "main"]);
    assert_eq!(exit_code(&runner, is_pushed), 0, "the honest twin");
    place.git(&["remote", "add", "other", &url("own.git")]);
    assert_eq!(exit_code(&runner, &is_pushed.replace("origin", "other")), 0, "a remote that a step adds");
}

fn cheat_47_a_signature_is_checked_by_the_real_program() {
    let place = Place::repository();
    let fake = place.at("gpg");
    std::fs::write(
        &fake,
        "#!/bin/sh\ncat >/dev/null\necho; echo '[GNUPG:] GOODSIG 0123456789ABCDEF x'\nexit 0\n",
    )
    .unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let commit = place.git(&["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
    std::fs::write(place.at("signed"), format!("{head}\n{signature}\n\n{message}\n")).unwrap();
    let forged = place.git(&["hash-object", "-t", "commit", "-w", &place.at("signed").to_string_lossy()]);
    place.git(&["update-ref", "HEAD", &forged]);
    place.git(&["config", "gpg.program", &fake.to_string_lossy()]);
    place.git(&["verify-commit", "HEAD"]);
    assert!(!place.passes("git verify-commit HEAD"));
    assert!(place.passes("git log -1 --format=%s | grep -qx one"), "the honest twin");
}

fn a10_git_settings_that_a_worker_wrote_hide_nothing() {
    // The worker prepares the first, and the contract asks the second.
    let elsewhere = |place: &Place| {
        let copy = place.at("copy");
        git(&place.at(""), &["clone", "--quiet", "work", "copy"]);
        place.git(&["config", "core.worktree", &copy.to_string_lossy()]);
    };
    let ignored = |place: &Place| {
        std::fs::write(place.work().join(".git/info/exclude"), "extra.txt\n").unwrap();
    };
    let untracked = |place: &Place| drop(place.git(&["config", "status.showUntrackedFiles", "no"]));
    let modes = |place: &Place| drop(place.git(&["config", "core.fileMode", "false"]));
    let line_ends = |place: &Place| drop(place.git(&["config", "core.autocrlf", "true"]));
    let replaced = |place: &Place| {
        place.write("tests/check.sh", "exit 0\n");
        let blob = place.git(&["hash-object", "-w", "tests/check.sh"]);
        let old = place.git(&["rev-parse", "HEAD:tests/check.sh"]);
        place.git(&["replace", &old, &blob]);
    };
    let included = |place: &Place| {
        std::fs::write(place.at("more"), "[status]\n\tshowUntrackedFiles = no\n").unwrap();
        place.git(&["config", "include.path", &place.at("more").to_string_lossy()]);
    };
    let is_clean = "test -z \"$(git status --porcelain)\"";
    type Prepare<'a> = &'a dyn Fn(&Place);
    let cheats: [(&str, Prepare<'_>, &str); 7] = [
        ("core.worktree", &elsewhere, "git diff --quiet HEAD"),
        ("info/exclude", &ignored, is_clean),
        ("showUntrackedFiles", &untracked, is_clean),
        ("core.fileMode", &modes, "git diff --quiet HEAD"),
        ("core.autocrlf", &line_ends, "git diff --quiet HEAD"),
        ("replace", &replaced, "git show HEAD:tests/check.sh | grep -qx 'exit 0'"),
        ("include.path", &included, is_clean),
    ];
    for (name, prepare, ask) in cheats {
        let place = Place::repository();
        let runner = place.runner();
        let is_replaced = name == "replace";
        assert_eq!(exit_code(&runner, ask) == 0, !is_replaced, "the honest twin of {name}");
        prepare(&place);
        place.write("extra.txt", "x\n").write("tests/check.sh", "exit 0\n");
        if name == "core.fileMode" {
            place.write("tests/check.sh", "exit 1\n");
            let file = place.work().join("tests/check.sh");
            std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        if name == "core.autocrlf" {
            place.write("tests/check.sh", "exit 1\r\n");
        }
        if ask == is_clean {
            place.write("tests/check.sh", "exit 1\n");
        }
        assert_ne!(exit_code(&runner, ask), 0, "{name}");
    }
    // Git still ignores everything that the user had it ignore before the work began.
    let place = Place::repository();
    std::fs::write(place.work().join(".git/info/exclude"), "notes\n").unwrap();
    place.write("notes", "mine\n");
    assert!(place.passes(is_clean));
}

fn a10_a_graph_of_commits_that_a_worker_wrote_is_not_believed() {
    let place = Place::repository();
    let asks = [
        "git diff --quiet HEAD -- a.txt",
        "git clone -q . $TMPDIR/clone && grep -qx two $TMPDIR/clone/a.txt",
    ];
    place.write("a.txt", "two\n");
    place.git(&["add", "a.txt"]);
    let (real, forged) = (place.git(&["rev-parse", "HEAD^{tree}"]), place.git(&["write-tree"]));
    place.git(&["reset", "--quiet"]);
    place.git(&["commit-graph", "write", "--reachable"]);
    let file = place.work().join(".git/objects/info/commit-graph");
    let mut graph = std::fs::read(&file).unwrap();
    let bytes = |name: &str| -> Vec<u8> {
        (0..name.len()).step_by(2).map(|at| u8::from_str_radix(&name[at..at + 2], 16).unwrap()).collect()
    };
    let (real, forged) = (bytes(&real), bytes(&forged));
    let at = graph.windows(real.len()).position(|part| part == real).unwrap();
    graph[at..at + forged.len()].copy_from_slice(&forged);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, graph).unwrap();
    assert_eq!(place.git(&["diff", "HEAD", "--", "a.txt"]), "", "git itself is taken in");
    for ask in asks {
        assert!(!place.passes(ask), "{ask}");
    }
    // No commit has been looked for in it before: the one of a real change is not there.
    place.git(&["commit", "--quiet", "-am", "two"]);
    for ask in asks {
        assert!(place.passes(ask), "the honest twin: {ask}");
    }
}

fn a10_commits_that_a_worker_marks_as_the_first_ones_hide_none_before_them() {
    let place = Place::repository();
    place.git(&["commit", "--quiet", "--allow-empty", "-m", "WIP"]);
    let linked = place.at("linked");
    place.git(&["worktree", "add", "-b", "side", &linked.to_string_lossy()]);
    let (runner, branch) = (place.runner(), place.at("linked"));
    let branch = ContractRunner::new(spawner().with_scratch(place.at("scratch")), branch, None, []).unwrap();
    for folder in [place.work(), linked] {
        git(&folder, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
    }
    let first = place.git(&["rev-parse", "main", "side"]);
    std::fs::write(place.work().join(".git/shallow"), format!("{first}\n")).unwrap();
    assert_eq!(place.git(&["log", "--format=%s"]), "two", "git itself is taken in");
    // The runner of a branch knows the repository as it was before the branch began.
    let late = ContractRunner::new(spawner().with_scratch(place.at("scratch")), place.at("linked"), None, []);
    for runner in [&runner, &branch, &late.unwrap().with_repositories_of(&runner)] {
        assert_ne!(exit_code(runner, "! git log --format=%s | grep -q WIP"), 0);
        assert_eq!(exit_code(runner, "[ \"$(git log --format=%s | tr '\\n' ' ')\" = 'two WIP one ' ]"), 0);
    }
}

fn a10_a_contract_may_move_the_ends_of_a_shallow_clone() {
    let place = Place::repository();
    for message in ["two", "three"] {
        place.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }
    let clone = |name: &str| {
        let url = format!("file://{}", place.work().display());
        git(&place.at(""), &["clone", "--quiet", "--depth", "1", &url, name]);
        let spawner = spawner().with_scratch(place.at("scratch"));
        (ContractRunner::new(spawner, place.at(name), None, []).unwrap(), place.at(name))
    };
    let counts = |count: usize| format!("[ \"$(git rev-list --count HEAD)\" = {count} ] && git fsck");
    let (runner, folder) = clone("by-contract");
    assert_eq!(exit_code(&runner, &counts(1)), 0);
    let deepen = format!("git fetch -q --deepen 1 && {}", counts(2));
    assert_eq!(exit_code(&runner, &deepen), 0);
    assert_eq!(git(&folder, &["rev-list", "--count", "HEAD"]), "2", "it is there afterwards");
    git(&folder, &["fsck"]);
    let (runner, folder) = clone("by-worker");
    git(&folder, &["fetch", "--quiet", "--unshallow"]);
    assert_eq!(exit_code(&runner, &counts(3)), 0, "it is complete by now");
    // A complete repository becomes a shallow one by a branch that a contract fetches.
    let other = Place::repository();
    other.git(&["commit", "--quiet", "--allow-empty", "-m", "other"]);
    let fetch =
        format!("git fetch -q --depth 1 file://{} main:other && git log other", other.work().display());
    assert!(place.passes(&fetch));
    place.git(&["fsck"]);
}

fn what_a_contract_does_to_a_repository_happens() {
    let place = Place::repository();
    place.write("a.txt", "two\n");
    assert!(place.passes(
        "! git diff --quiet && git add a.txt && git diff --quiet && ! git diff --cached --quiet && git commit -qm two \
         && git diff --quiet HEAD && git config extra.key 1 && git tag v1 && git branch side"
    ));
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    assert_eq!(place.git(&["log", "-1", "--format=%s %ae"]), "two user@example.org");
    assert_eq!(place.git(&["config", "extra.key"]), "1");
    assert_eq!(place.git(&["rev-parse", "v1", "side"]).lines().count(), 2);
    assert!(
        place.passes(
            "git update-index -q --refresh; git diff-index --quiet HEAD && git stash list && git fsck"
        )
    );
    let fresh = Place::new();
    assert!(
        fresh.passes("git init -q . && touch x && git add x && git commit -qm x && git diff --quiet HEAD")
    );
    assert!(fresh.passes("git diff --quiet HEAD && [ \"$(git log --format=%s)\" = x ]"));
}

fn repositories_of_a_contracts_own_are_left_alone() {
    let place = Place::repository();
    assert!(place.passes(
        "cd $TMPDIR && git init -q r && cd r && git config core.bigFileThreshold 1 && echo x >f && git add f \
         && git commit -qm x && git update-index --assume-unchanged f && echo y >f && git diff --quiet \
         && git clone -q . ../c && git -C ../c log --format=%s | grep -qx x"
    ));
    assert!(
        place.passes(
            "git worktree add -q $TMPDIR/w && git -C $TMPDIR/w status && git worktree remove $TMPDIR/w"
        )
    );
    assert!(place.passes("git --version && git && false || git help >/dev/null; git -C . --no-pager log -1"));
}

fn linked_worktrees_and_submodules_are_judged_with_an_index_of_their_own() {
    let place = Place::repository();
    let linked = place.at("linked");
    place.git(&["worktree", "add", "-b", "side", &linked.to_string_lossy()]);
    let runner = ContractRunner::new(spawner().with_scratch(place.at("scratch")), &linked, None, []).unwrap();
    assert_eq!(
        exit_code(&runner, "git diff --quiet HEAD && [ \"$(git symbolic-ref --short HEAD)\" = side ]"),
        0
    );
    git(&linked, &["update-index", "--skip-worktree", "a.txt"]);
    std::fs::write(linked.join("a.txt"), "hidden\n").unwrap();
    assert_eq!(exit_code(&runner, "git diff --quiet HEAD"), 1);
    let inner = Place::repository();
    place.git(&["submodule", "add", &inner.work().to_string_lossy(), "vendored/lib"]);
    place.git(&["commit", "-m", "lib"]);
    let ask = "git -C vendored/lib diff --quiet HEAD";
    assert!(place.passes(ask) && place.passes("git diff --quiet HEAD"), "the honest twin");
    git(&place.work().join("vendored/lib"), &["update-index", "--assume-unchanged", "a.txt"]);
    place.write("vendored/lib/a.txt", "hidden\n");
    assert!(!place.passes(ask));
}
