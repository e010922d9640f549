//! `--workspace worktree`: each run in a git worktree of its own, and the checkout stays as it is.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::fixture::{Fixture, git, plan};

/// Longer than any wait here; a wait this long has found a hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A fixture whose workspace is a repository with a plan of one step, committed.
fn repository() -> Fixture {
    let fixture = Fixture::new();
    git(&fixture.path(""), &["init", "--quiet"]);
    fixture
        .write("fix.md", &plan("Fix", "10k tokens", &[("Write `out.txt`", "grep -q good out.txt", "abort")]));
    commit(&fixture);
    fixture
}

fn commit(fixture: &Fixture) {
    git(&fixture.path(""), &["add", "-A"]);
    git(&fixture.path(""), &["commit", "--quiet", "-m", "all"]);
}

fn run<'a>(plan: &'a str, exec: &'a str) -> Vec<&'a str> {
    vec!["plan", "run", plan, "--approve", "--no-wait", "--workspace", "worktree", "--exec", exec]
}

fn tree_of(status: &Value) -> PathBuf {
    status["worktree"]["path"].as_str().unwrap_or_else(|| panic!("{status}")).into()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT_MAX, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn p_72_a_run_in_a_worktree_leaves_the_checkout_alone_and_says_what_takes_its_work_over() {
    let fixture = repository();
    fixture.write("draft.txt", "not committed\n");
    let said = fixture.planctl(&run("fix.md", "pwd > where.txt; echo good > out.txt"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("1 change of this checkout is not committed, and not there"), "{said:?}");
    assert!(!fixture.path("out.txt").exists());
    assert!(fixture.read("fix.md").contains("### 1. ✅ Write `out.txt`"), "marks go to the plan's own file");
    let status = fixture.status();
    let tree = tree_of(&status);
    let branch = status["worktree"]["branch"].as_str().unwrap();
    assert!(branch.starts_with("planctl/fix-1-"), "{status}");
    assert!(tree.starts_with(fixture.state().canonicalize().unwrap()), "{status}");
    assert_eq!(status["workspace"].as_str(), fixture.path("").canonicalize().unwrap().to_str());
    assert_eq!(status["worktree"]["uncommitted"], 2, "{status}");
    assert_eq!(status["worktree"]["left_behind"], 1, "{status}");
    let seen = std::fs::read_to_string(tree.join("where.txt")).unwrap();
    assert_eq!(PathBuf::from(seen.trim()), tree);
    assert!(!tree.join("draft.txt").exists());
    assert!(said.out.contains("2 changes not committed"), "{said:?}");
    let kept = fixture.planctl(&["clean"]);
    assert!(kept.out.contains("2 changes are committed nowhere; --discard removes them too"), "{kept:?}");
    assert!(tree.exists());
    // The command that it names does it. The marks in the plan's file stay where they are.
    let (_, next) = said.err.split_once("next: ").unwrap();
    let (merge, clean) = next.trim_end().split_once("\n      ").unwrap();
    let typed = Command::new("bash")
        .args(["-ec", merge])
        .current_dir(fixture.path(""))
        .envs([
            ("GIT_AUTHOR_NAME", "t"),
            ("GIT_AUTHOR_EMAIL", "t@x"),
            ("GIT_COMMITTER_NAME", "t"),
            ("GIT_COMMITTER_EMAIL", "t@x"),
        ])
        .output()
        .unwrap();
    assert!(typed.status.success(), "{merge}: {typed:?}");
    assert_eq!(fixture.read("out.txt"), "good\n");
    assert_eq!(clean, "planctl clean");
    assert_eq!(fixture.json(&["clean", "--dry-run", "--json"])["worktrees"][0]["removed"], true);
    assert!(tree.exists());
    let cleaned = fixture.planctl(&["clean"]);
    assert!(cleaned.out.contains("and its branch planctl/fix-1-"), "{cleaned:?}");
    assert!(!tree.exists());
    assert_eq!(git(&fixture.path(""), &["branch", "--list", "planctl/*"]), "");
    assert_eq!(fixture.status()["worktree"]["is_removed"], true);
    // The marks alone are no change of the plan.
    let again = fixture.planctl(&[&run("fix.md", "echo good > out2.txt")[..], &["--again"]].concat());
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn runs_in_worktrees_wait_neither_for_each_other_nor_for_the_run_in_the_workspace() {
    let fixture = repository();
    for name in ["a.md", "b.md", "c.md"] {
        fixture.write(name, &plan("Meet", "10k tokens", &[("Meet", "test -e met.txt", "abort")]));
    }
    commit(&fixture);
    let meet = fixture.home().display().to_string();
    // Each worker goes on only when all three have begun.
    let exec = |name: &str| {
        format!(
            "touch {meet}/{name}; until [ -e {meet}/a ] && [ -e {meet}/b ] && [ -e {meet}/c ]; do sleep 0.02; done; touch met.txt"
        )
    };
    let (a, b, c) = (exec("a"), exec("b"), exec("c"));
    let going = [
        fixture.start(&run("a.md", &a)),
        fixture.start(&run("b.md", &b)),
        fixture.start(&["plan", "run", "c.md", "--approve", "--no-wait", "--exec", &c]),
    ];
    for one in going {
        let said = one.end();
        assert_eq!(said.code, 0, "{said:?}");
    }
    let audit = fixture.planctl(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn what_a_worktree_would_lack_is_refused_with_what_to_type() {
    let fixture = Fixture::new();
    let text = plan("Fix", "10k tokens", &[("Write", "bash check.sh", "abort")]);
    let text = text.replace("**task:**", "**subscriptions:**\n- file:notes/*.md\n\n**task:**");
    fixture.write("fix.md", &text).write("check.sh", "true\n").write("notes/one.md", "note\n");
    let refused = |code: i32, what: &str, next: &str| {
        let said = fixture.planctl(&run("fix.md", "true"));
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(what) && said.err.contains(next), "{what}; {next}: {said:?}");
        assert_eq!(fixture.json(&["ls", "--json"])["runs"].as_array().unwrap().len(), 0, "no run was made");
    };
    refused(5, "it is not a git repository", " init && git -C");
    git(&fixture.path(""), &["init", "--quiet"]);
    refused(5, "it has no commit yet", "git -C");
    git(&fixture.path(""), &["commit", "--quiet", "--allow-empty", "-m", "none"]);
    refused(
        5,
        "this plan needs fix.md, check.sh, notes/one.md as they are here",
        "add -- fix.md check.sh notes/one.md && git",
    );
    git(&fixture.path(""), &["add", "fix.md", "check.sh"]);
    git(&fixture.path(""), &["commit", "--quiet", "-m", "some"]);
    refused(5, "this plan needs notes/one.md as it is here", "add -- notes/one.md && git");
    commit(&fixture);
    fixture.write("check.sh", "exit 0\n");
    refused(5, "this plan needs check.sh as it is here", "add -- check.sh && git");
    commit(&fixture);
    // A file that git is told to leave out is added by force, as the named command says.
    fixture.write(".gitignore", "notes/two.md\n");
    commit(&fixture);
    fixture.write("notes/two.md", "note\n");
    refused(5, "this plan needs notes/two.md as it is here", "add --force -- notes/two.md && git");
    git(&fixture.path(""), &["add", "--force", "--", "notes/two.md"]);
    commit(&fixture);
    std::fs::write(fixture.path(".git/MERGE_HEAD"), git(&fixture.path(""), &["rev-parse", "HEAD"])).unwrap();
    refused(5, "it is in the middle of a merge", "git merge --abort");
    std::fs::remove_file(fixture.path(".git/MERGE_HEAD")).unwrap();
    assert_eq!(fixture.planctl(&run("fix.md", "true")).code, 0);
}

#[test]
fn the_approval_covers_in_which_kind_of_place_a_run_works() {
    let fixture = repository();
    assert_eq!(fixture.planctl(&["plan", "approve", "fix.md"]).code, 0);
    let words = ["plan", "run", "fix.md", "--no-wait", "--exec", "echo good > out.txt"];
    let asked = fixture.planctl(&[&words[..], &["--workspace", "worktree"]].concat());
    assert_eq!(asked.code, 3, "{asked:?}");
    // Commits until the run begins come along.
    fixture.write("late.txt", "late\n");
    commit(&fixture);
    let approved = fixture.planctl(&["plan", "approve", "fix.md", "--workspace", "worktree"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = fixture.planctl(&[&words[..], &["--workspace", "worktree"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!fixture.path("out.txt").exists());
    assert!(tree_of(&fixture.status()).join("late.txt").exists());
}

#[test]
fn the_configuration_says_it_too_and_that_the_result_is_committed_and_no_worker_changes_that() {
    let fixture = repository();
    let settings =
        "[workspace]\nmode = \"worktree\"\ngit = \"commit\"\n[roles.coder]\nagent = \"exec:bash work.sh\"\n";
    let work = "echo good > out.txt\n\
        printf '[workspace]\\nmode = \"shared\"\\ngit = \"none\"\\n[contracts]\\nenv = { A = \"evil\" }\\n' > planctl.toml\n";
    fixture.write("planctl.toml", settings).write("work.sh", work);
    let contract = "test -z \"$A\" && grep -q good out.txt";
    fixture.write(
        "fix.md",
        &plan("Fix", "10k tokens", &[("One", contract, "abort"), ("Two", contract, "abort")]),
    );
    commit(&fixture);
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let said = fixture.planctl(&["plan", "run", "fix.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!(status["worktree"]["uncommitted"], 0, "{status}");
    let branch = status["worktree"]["branch"].as_str().unwrap();
    assert_eq!(git(&fixture.path(""), &["show", &format!("{branch}:out.txt")]), "good");
    let commit = git(&fixture.path(""), &["rev-parse", branch]);
    let next = format!("next: git --no-replace-objects merge {commit}\n      planctl clean\n");
    assert!(said.err.contains(&next), "{said:?}");
    assert!(said.out.contains(&format!("all committed as {}\n", &commit[..12])), "{said:?}");
    // The branch holds what nothing else does, so it outlives its worktree.
    let cleaned = fixture.planctl(&["clean"]);
    assert!(cleaned.out.contains("stays, since it holds commits of its own"), "{cleaned:?}");
    assert!(git(&fixture.path(""), &["branch", "--list", "planctl/*"]).contains(branch));
    let shared = fixture.planctl(&[
        "plan",
        "run",
        "fix.md",
        "--again",
        "--approve",
        "--no-wait",
        "--workspace",
        "shared",
    ]);
    assert_eq!(shared.code, 0, "{shared:?}");
    assert_eq!(fixture.status()["worktree"], Value::Null);
}

#[test]
fn hole_10_what_is_merged_is_what_was_judged_whatever_a_worker_does_to_branches() {
    let fixture = repository();
    // The worker works beside its branch, which it leads to something that nobody judged.
    let evil = "b=$(git symbolic-ref --short HEAD); git checkout -q --detach; echo evil > evil.txt; git add evil.txt; \
                git -c user.name=t -c user.email=t@x commit -qm evil; git branch -f $b HEAD; git reset -q --hard HEAD~1; \
                echo good > out.txt; git add out.txt; git -c user.name=t -c user.email=t@x commit -qm good";
    let said = fixture.planctl(&run("fix.md", evil));
    assert_eq!(said.code, 3, "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains("checked out and not its branch planctl/fix-1-"), "{page:?}");
    // The command that it names lets the run go on, and then the branch has the judged files.
    let tree = tree_of(&fixture.status());
    let branch = fixture.status()["worktree"]["branch"].as_str().unwrap().to_owned();
    git(&tree, &["checkout", "--quiet", "-B", &branch]);
    let answered = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "mended"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let exec = "git symbolic-ref -q HEAD; echo good > out.txt";
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", exec]);
    assert_eq!(done.code, 0, "{done:?}");
    let judged = git(&tree, &["rev-parse", "HEAD"]);
    assert_eq!(git(&fixture.path(""), &["rev-parse", &branch]), judged);
    let next = format!("git --no-replace-objects merge {judged}");
    assert!(done.err.contains(&next), "{done:?}");
    // A branch that is moved later is not what is said to be typed, nor one that is named like a commit.
    git(&fixture.path(""), &["branch", &judged[..12], "HEAD"]);
    git(&fixture.path(""), &["update-ref", &format!("refs/heads/{branch}"), "HEAD"]);
    let page = fixture.planctl(&["plan", "status", "@last"]);
    assert!(format!("{page:?}").contains(&next), "{page:?}");
}

#[test]
fn code_under_test_leads_the_worktree_to_no_other_branch() {
    let fixture = repository();
    let text = plan("Fix", "10k tokens", &[("Write", "bash work.sh && grep -q good out.txt", "abort")]);
    fixture.write("fix.md", &text.replace("**contract:**", "**changes:** work.sh\n\n**contract:**"));
    commit(&fixture);
    let before = git(&fixture.path(""), &["rev-parse", "HEAD"]);
    let branch = git(&fixture.path(""), &["symbolic-ref", "HEAD"]);
    let evil = format!(
        "echo good > out.txt; echo 'git symbolic-ref HEAD {branch}' > work.sh; echo 'exit 0' >> work.sh"
    );
    let said = fixture.planctl(&run("fix.md", &evil));
    assert_eq!(said.code, 3, "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains("checked out and not its branch planctl/fix-1-"), "{page:?}");
    assert_eq!(git(&fixture.path(""), &["rev-parse", "HEAD"]), before);
}

#[test]
fn a_result_that_is_not_on_its_branch_is_told_where_the_run_ends_with_what_to_type() {
    // Moves that come once nothing is judged any more: a person's answer ends the run.
    for (moved, told) in [
        ("git checkout -q --detach", "it has a commit checked out and not its branch planctl/fix-1-"),
        ("git reset -q --soft HEAD~1", "does not go on from the commit that it began with"),
        ("rm .git", "no longer belongs to its repository"),
    ] {
        let fixture = repository();
        fixture.write("planctl.toml", "[workspace]\nmode = \"worktree\"\ngit = \"commit\"\n");
        commit(&fixture);
        assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
        fixture.write("later.txt", "later\n");
        commit(&fixture);
        let text = plan("Fix", "10k tokens", &[("Write", "grep -q good out.txt", "abort")]);
        fixture.write("fix.md", &text.replace("**on_fail:** abort", "**on_fail:** escalate"));
        commit(&fixture);
        let held = fixture.planctl(&run("fix.md", "echo bad > out.txt"));
        assert_eq!(held.code, 3, "{held:?}");
        let tree = tree_of(&fixture.status());
        let typed = Command::new("bash").args(["-ec", moved]).current_dir(&tree).output().unwrap();
        assert!(typed.status.success(), "{moved}: {typed:?}");
        let waived = fixture.planctl(&["approvals", "waive", &fixture.ask(), "--note", "good enough"]);
        assert_eq!(waived.code, 0, "{waived:?}");
        let page = fixture.planctl(&["plan", "status", "@last"]);
        assert!(page.out.contains("not to be merged: ") && page.out.contains(told), "{moved}: {page:?}");
        assert!(!format!("{page:?}").contains("next: git"), "{moved}: {page:?}");
        assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 1, "{moved}");
        let history = fixture.planctl(&["events", "@last"]);
        assert!(history.err.contains("not to be merged: ") && history.err.contains(told), "{history:?}");
        let trouble = fixture.status()["worktree"]["trouble"].as_str().unwrap_or_default().to_owned();
        assert!(trouble.contains(told), "{moved}: {trouble}");
        // The commands that it names bring the files that were judged.
        let Some((_, mend)) = trouble.split_once("on its branch: ") else { continue };
        let (mend, branch) = mend.split_once("; then merge ").unwrap();
        let mend = format!("{mend} -qm mended");
        let typed = Command::new("bash")
            .args(["-ec", &mend])
            .current_dir(fixture.path(""))
            .envs([("GIT_AUTHOR_NAME", "t"), ("GIT_AUTHOR_EMAIL", "t@x")])
            .envs([("GIT_COMMITTER_NAME", "t"), ("GIT_COMMITTER_EMAIL", "t@x")])
            .output()
            .unwrap();
        assert!(typed.status.success(), "{mend}: {typed:?}");
        assert_eq!(git(&fixture.path(""), &["diff", "--name-only", "HEAD", branch]), "out.txt");
        git(&fixture.path(""), &["merge-base", "--is-ancestor", "HEAD", branch]);
    }
}

/// Runs a plan in a worktree whose result is committed, and returns what was said and the worktree.
fn committed(fixture: &Fixture, exec: &str) -> (crate::fixture::Said, PathBuf) {
    fixture.write("planctl.toml", "[workspace]\nmode = \"worktree\"\ngit = \"commit\"\n");
    commit(fixture);
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let said = fixture.planctl(&run("fix.md", exec));
    let status = fixture.status();
    assert_eq!(said.code, i32::from(status["worktree"]["trouble"].is_string()), "{said:?}");
    (said, tree_of(&status))
}

#[test]
fn a_commit_of_other_content_than_was_judged_is_not_told_to_be_merged() {
    let fixture = repository();
    // A file of the worker's stands where git keeps what was judged, and git believes it.
    let evil = "b=$(git rev-parse --git-common-dir)/objects; g=$(echo good | git hash-object --stdin); \
                e=$(echo evil | git hash-object -w --stdin); mkdir -p $b/${g:0:2}; cp $b/${e:0:2}/${e:2} $b/${g:0:2}/${g:2}; \
                echo good > out.txt";
    let (said, tree) = committed(&fixture, evil);
    assert_eq!(git(&tree, &["show", "HEAD:out.txt"]), "evil");
    let why = "not to be merged: could not rely on out.txt: git would give other content for it";
    assert!(said.out.contains(why) && !said.err.contains("merge"), "{said:?}");
    let page = fixture.planctl(&["plan", "status", "@last"]);
    assert!(page.out.contains(why) && !format!("{page:?}").contains("git merge"), "{page:?}");
    assert!(fixture.status()["worktree"]["trouble"].is_string(), "{}", fixture.status());
    // A reference that comes later leads the command that was said nowhere.
    let fixture = repository();
    let (said, _) = committed(&fixture, "echo good > out.txt");
    let folder = fixture.path("");
    let commit = fixture.status()["worktree"]["commit"].as_str().unwrap().to_owned();
    std::fs::write(fixture.home().join("evil"), "evil\n").unwrap();
    let evil = git(&folder, &["hash-object", "-w", &fixture.home().join("evil").to_string_lossy()]);
    git(&folder, &["replace", &git(&folder, &["rev-parse", &format!("{commit}:out.txt")]), &evil]);
    let (_, next) = said.err.split_once("next: ").unwrap();
    let merge: Vec<&str> = next.lines().next().unwrap().split(' ').skip(1).collect();
    // The marks in the plan's file are in no commit.
    git(&folder, &["checkout", "--quiet", "fix.md"]);
    git(&folder, &merge);
    assert_eq!(fixture.read("out.txt"), "good\n");
}

#[test]
fn the_files_of_a_repository_that_a_worker_makes_are_not_lost() {
    let nest = "git init -q sub; cd sub; echo 'echo good' > lib.sh; git add -A; git -c user.name=t -c user.email=t@x commit -qm x; \
                cd ..; bash sub/lib.sh > out.txt; echo lib.sh >> $(git rev-parse --git-common-dir)/info/exclude";
    let fixture = repository();
    let (_, tree) = committed(&fixture, nest);
    assert!(git(&tree, &["ls-tree", "-r", "HEAD"]).contains("sub/lib.sh"));
    assert!(fixture.planctl(&["clean"]).out.contains("stays, since it holds commits of its own"));
    // Where the result is not committed, a person is told that git would take none of its files.
    let fixture = repository();
    let said = fixture.planctl(&run("fix.md", nest));
    assert_eq!(said.code, 1, "{said:?}");
    let why = "it is a git repository of its own, and none of its files";
    assert!(said.out.contains(why) && said.out.contains("move sub/.git away"), "{said:?}");
    assert!(!said.err.contains("merge"), "{said:?}");
    let tree = tree_of(&fixture.status());
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "--quiet", "-m", "a name of a commit"]);
    for words in [&["clean", "--dry-run"][..], &["clean"]] {
        let kept = fixture.planctl(words);
        assert!(kept.out.contains(why) && kept.out.contains("--discard removes them too"), "{kept:?}");
    }
    assert!(tree.join("sub/lib.sh").exists());
}

#[test]
fn a_run_whose_worktree_is_gone_is_held_and_goes_on_when_it_is_back() {
    let fixture = repository();
    let steps = [("One", "test -e one.txt", "abort"), ("Two", "test -e two.txt", "abort")];
    fixture.write("fix.md", &plan("Fix", "10k tokens", &steps));
    commit(&fixture);
    let away = fixture.home().join("away").display().to_string();
    // In step 1 its folder goes right after the contract passed: the contract waits for a child that takes it away.
    let exec = "if [ \"$PLANCTL_STEP\" = 1 ]; then touch one.txt; else touch two.txt; fi";
    let going =
        fixture.start(&run("fix.md", &format!("{exec}; until [ -e {away}-now ]; do sleep 0.02; done")));
    until("the worktree", || {
        std::fs::read_dir(fixture.state().join("worktrees"))
            .is_ok_and(|mut some| some.any(|tree| tree.unwrap().path().join("one.txt").exists()))
    });
    going.signal(Signal::KILL);
    going.hear_the_end();
    let tree = tree_of(&fixture.status());
    std::fs::rename(&tree, &away).unwrap();
    std::fs::write(format!("{away}-now"), "").unwrap();
    let held = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(held.code, 3, "{held:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains("is not there any more"), "{page:?}");
    assert!(page.out.contains("worktree add --force"), "{page:?}");
    assert!(!tree.exists(), "it was never made again");
    std::fs::rename(&away, &tree).unwrap();
    let answered = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "it is back"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(tree.join("two.txt").exists() && tree.join("one.txt").exists());
}

#[test]
fn a_worktree_that_can_t_be_made_holds_its_run_until_it_is_resumed() {
    let fixture = repository();
    std::fs::write(fixture.state().join("worktrees"), "in the way").unwrap();
    let said = fixture.planctl(&run("fix.md", "echo good > out.txt"));
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("could not make"), "{said:?}");
    let status = fixture.status();
    assert_eq!(status["state"], "waiting", "{status}");
    assert_eq!(status["waiting_on"]["kind"], "worktree", "{status}");
    assert!(status["reason"].as_str().unwrap().starts_with("could not make"), "{status}");
    let page = fixture.planctl(&["plan", "status", "@last"]);
    assert!(page.out.contains("planctl resume fix-1"), "{page:?}");
    std::fs::remove_file(fixture.state().join("worktrees")).unwrap();
    let done = fixture.planctl(&["plan", "resume", "fix-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn planctl_killed_while_the_worktree_is_made_makes_it_anew() {
    let fixture = repository();
    let (hold, seen) = (fixture.home().join("hold"), fixture.home().join("seen"));
    std::fs::write(&hold, "").unwrap();
    fixture.write(".gitattributes", "*.slow filter=lfs\n").write("a.slow", "slow\n").write("z.txt", "last\n");
    // The one program that planctl's git starts for a repository.
    let programs = fixture.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let filter = format!(
        "#!/bin/sh\ntouch {}; while [ -e {} ]; do sleep 0.02; done; cat\n",
        seen.display(),
        hold.display()
    );
    std::fs::write(programs.join("git-lfs"), filter).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.join("git-lfs"), mode).unwrap();
    git(&fixture.path(""), &["config", "filter.lfs.smudge", "git-lfs smudge -- %f"]);
    commit(&fixture);
    let words = run("fix.md", "cat z.txt a.slow > /dev/null && echo good > out.txt");
    let going = fixture.start_on(&words, &[programs]);
    until("the checkout of files", || seen.exists());
    going.signal(Signal::KILL);
    going.hear_the_end();
    std::fs::remove_file(&hold).unwrap();
    assert_eq!(fixture.status()["worktree"]["is_made"], false);
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let tree = tree_of(&fixture.status());
    assert_eq!(std::fs::read_to_string(tree.join("a.slow")).unwrap(), "slow\n");
    assert_eq!(git(&fixture.path(""), &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_workspace_deeper_in_its_repository_is_as_deep_in_the_worktree() {
    let fixture = Fixture::new();
    git(&fixture.path(""), &["init", "--quiet"]);
    fixture
        .write("deep/er/fix.md", &plan("Fix", "10k tokens", &[("Write", "grep -q good out.txt", "abort")]));
    fixture.write("deep/er/planctl.toml", "[workspace]\nmode = \"worktree\"\n");
    commit(&fixture);
    let words =
        ["plan", "run", "deep/er/fix.md", "--workspace", "deep/er", "--approve", "--no-wait", "--exec"];
    let said = fixture.planctl(&[&words[..], &["pwd > out.txt; echo good >> out.txt"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.json(&["plan", "status", "@last", "--json", "--workspace", "deep/er"]);
    let tree = tree_of(&status);
    assert!(tree.ends_with("deep/er") && tree.join("out.txt").exists(), "{status}");
    assert!(!fixture.path("deep/er/out.txt").exists());
}
