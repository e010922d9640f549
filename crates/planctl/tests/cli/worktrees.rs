//! `--workspace worktree`: each run in a git worktree of its own, and the checkout stays as it is.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::room::{Room, git, plan};

/// Longer than any wait here; a wait this long has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A room whose workspace is a repository with a plan of one step, committed.
fn repository() -> Room {
    let room = Room::new();
    git(&room.path(""), &["init", "--quiet"]);
    room.write("fix.md", &plan("Fix", "10k tokens", &[("Write `out.txt`", "grep -q good out.txt", "abort")]));
    commit(&room);
    room
}

fn commit(room: &Room) {
    git(&room.path(""), &["add", "-A"]);
    git(&room.path(""), &["commit", "--quiet", "-m", "all"]);
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
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_in_a_worktree_leaves_the_checkout_alone_and_says_what_takes_its_work_over() {
    let room = repository();
    room.write("draft.txt", "not committed\n");
    let said = room.planctl(&run("fix.md", "pwd > where.txt; echo good > out.txt"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("1 change of this checkout is not committed, and not there"), "{said:?}");
    assert!(!room.path("out.txt").exists());
    assert!(room.read("fix.md").contains("### 1. ✅ Write `out.txt`"), "marks go to the plan's own file");
    let status = room.status();
    let tree = tree_of(&status);
    let branch = status["worktree"]["branch"].as_str().unwrap();
    assert!(branch.starts_with("planctl/fix-1-"), "{status}");
    assert!(tree.starts_with(room.state().canonicalize().unwrap()), "{status}");
    assert_eq!(status["workspace"].as_str(), room.path("").canonicalize().unwrap().to_str());
    assert_eq!(status["worktree"]["uncommitted"], 2, "{status}");
    assert_eq!(status["worktree"]["left_behind"], 1, "{status}");
    let seen = std::fs::read_to_string(tree.join("where.txt")).unwrap();
    assert_eq!(PathBuf::from(seen.trim()), tree);
    assert!(!tree.join("draft.txt").exists());
    assert!(said.out.contains("2 changes not committed"), "{said:?}");
    let kept = room.planctl(&["clean"]);
    assert!(kept.out.contains("2 changes are committed nowhere; --discard removes them too"), "{kept:?}");
    assert!(tree.exists());
    // The command that it names does it. The marks in the plan's file stay where they are.
    let next = said.err.lines().find_map(|line| line.strip_prefix("next: ")).unwrap();
    let (merge, clean) = next.split_once("    then    ").unwrap();
    let typed = Command::new("bash")
        .args(["-ec", merge])
        .current_dir(room.path(""))
        .envs([
            ("GIT_AUTHOR_NAME", "t"),
            ("GIT_AUTHOR_EMAIL", "t@x"),
            ("GIT_COMMITTER_NAME", "t"),
            ("GIT_COMMITTER_EMAIL", "t@x"),
        ])
        .output()
        .unwrap();
    assert!(typed.status.success(), "{merge}: {typed:?}");
    assert_eq!(room.read("out.txt"), "good\n");
    assert_eq!(clean, "planctl clean");
    assert_eq!(room.json(&["clean", "--dry-run", "--json"])["worktrees"][0]["removed"], true);
    assert!(tree.exists());
    let cleaned = room.planctl(&["clean"]);
    assert!(cleaned.out.contains("and its branch planctl/fix-1-"), "{cleaned:?}");
    assert!(!tree.exists());
    assert_eq!(git(&room.path(""), &["branch", "--list", "planctl/*"]), "");
    assert_eq!(room.status()["worktree"]["is_removed"], true);
    // The marks alone are no change of the plan.
    let again = room.planctl(&[&run("fix.md", "echo good > out2.txt")[..], &["--again"]].concat());
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn runs_in_worktrees_wait_neither_for_each_other_nor_for_the_run_in_the_workspace() {
    let room = repository();
    for name in ["a.md", "b.md", "c.md"] {
        room.write(name, &plan("Meet", "10k tokens", &[("Meet", "test -e met.txt", "abort")]));
    }
    commit(&room);
    let meet = room.home().display().to_string();
    // Each worker goes on only when all three have begun.
    let exec = |name: &str| {
        format!(
            "touch {meet}/{name}; until [ -e {meet}/a ] && [ -e {meet}/b ] && [ -e {meet}/c ]; do sleep 0.02; done; touch met.txt"
        )
    };
    let (a, b, c) = (exec("a"), exec("b"), exec("c"));
    let going = [
        room.start(&run("a.md", &a)),
        room.start(&run("b.md", &b)),
        room.start(&["plan", "run", "c.md", "--approve", "--no-wait", "--exec", &c]),
    ];
    for one in going {
        let said = one.end();
        assert_eq!(said.code, 0, "{said:?}");
    }
    let audit = room.planctl(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn what_a_worktree_would_lack_is_refused_with_what_to_type() {
    let room = Room::new();
    let text = plan("Fix", "10k tokens", &[("Write", "bash check.sh", "abort")]);
    let text = text.replace("**task:**", "**subscriptions:**\n- file:notes/*.md\n\n**task:**");
    room.write("fix.md", &text).write("check.sh", "true\n").write("notes/one.md", "note\n");
    let refused = |code: i32, what: &str, next: &str| {
        let said = room.planctl(&run("fix.md", "true"));
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(what) && said.err.contains(next), "{what}; {next}: {said:?}");
        assert_eq!(
            room.json(&["plan", "ls", "--json"])["runs"].as_array().unwrap().len(),
            0,
            "no run was made"
        );
    };
    refused(5, "it is no git repository", " init && git -C");
    git(&room.path(""), &["init", "--quiet"]);
    refused(5, "it has no commit yet", "git -C");
    git(&room.path(""), &["commit", "--quiet", "--allow-empty", "-m", "none"]);
    refused(
        5,
        "this plan needs fix.md, check.sh, notes/one.md as they are here",
        "add -- fix.md check.sh notes/one.md && git",
    );
    git(&room.path(""), &["add", "fix.md", "check.sh"]);
    git(&room.path(""), &["commit", "--quiet", "-m", "some"]);
    refused(5, "this plan needs notes/one.md as it is here", "add -- notes/one.md && git");
    commit(&room);
    room.write("check.sh", "exit 0\n");
    refused(5, "this plan needs check.sh as it is here", "add -- check.sh && git");
    commit(&room);
    // A file that git is told to leave out is added by force, as the named command says.
    room.write(".gitignore", "notes/two.md\n");
    commit(&room);
    room.write("notes/two.md", "note\n");
    refused(5, "this plan needs notes/two.md as it is here", "add --force -- notes/two.md && git");
    git(&room.path(""), &["add", "--force", "--", "notes/two.md"]);
    commit(&room);
    std::fs::write(room.path(".git/MERGE_HEAD"), git(&room.path(""), &["rev-parse", "HEAD"])).unwrap();
    refused(5, "it is in the middle of a merge", "git merge --abort");
    std::fs::remove_file(room.path(".git/MERGE_HEAD")).unwrap();
    assert_eq!(room.planctl(&run("fix.md", "true")).code, 0);
}

#[test]
fn the_approval_covers_in_which_kind_of_place_a_run_works() {
    let room = repository();
    assert_eq!(room.planctl(&["plan", "approve", "fix.md"]).code, 0);
    let words = ["plan", "run", "fix.md", "--no-wait", "--exec", "echo good > out.txt"];
    let asked = room.planctl(&[&words[..], &["--workspace", "worktree"]].concat());
    assert_eq!(asked.code, 3, "{asked:?}");
    // Commits until the run begins come along.
    room.write("late.txt", "late\n");
    commit(&room);
    let approved = room.planctl(&["plan", "approve", "fix.md", "--workspace", "worktree"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = room.planctl(&[&words[..], &["--workspace", "worktree"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!room.path("out.txt").exists());
    assert!(tree_of(&room.status()).join("late.txt").exists());
}

#[test]
fn the_configuration_says_it_too_and_that_the_result_is_committed_and_no_worker_changes_that() {
    let room = repository();
    let settings =
        "[workspace]\nmode = \"worktree\"\ngit = \"commit\"\n[roles.coder]\nagent = \"exec:bash work.sh\"\n";
    let work = "echo good > out.txt\n\
        printf '[workspace]\\nmode = \"shared\"\\ngit = \"none\"\\n[contracts]\\nenv = { A = \"evil\" }\\n' > planctl.toml\n";
    room.write("planctl.toml", settings).write("work.sh", work);
    let contract = "test -z \"$A\" && grep -q good out.txt";
    room.write(
        "fix.md",
        &plan("Fix", "10k tokens", &[("One", contract, "abort"), ("Two", contract, "abort")]),
    );
    commit(&room);
    assert_eq!(room.planctl(&["trust", "."]).code, 0);
    let said = room.planctl(&["plan", "run", "fix.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = room.status();
    assert_eq!(status["worktree"]["uncommitted"], 0, "{status}");
    let branch = status["worktree"]["branch"].as_str().unwrap();
    assert_eq!(git(&room.path(""), &["show", &format!("{branch}:out.txt")]), "good");
    let commit = &git(&room.path(""), &["rev-parse", branch])[..12];
    assert!(said.err.contains(&format!("next: git merge {commit}    then    planctl clean")), "{said:?}");
    assert!(said.out.contains(&format!("all committed as {commit}")), "{said:?}");
    // The branch holds what nothing else does, so it outlives its worktree.
    let cleaned = room.planctl(&["clean"]);
    assert!(cleaned.out.contains("stays, since it holds commits of its own"), "{cleaned:?}");
    assert!(git(&room.path(""), &["branch", "--list", "planctl/*"]).contains(branch));
    let shared = room.planctl(&[
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
    assert_eq!(room.status()["worktree"], Value::Null);
}

#[test]
fn hole_10_what_is_merged_is_what_was_judged_whatever_a_worker_does_to_branches() {
    let room = repository();
    // The worker works beside its branch, which it leads to something that nobody judged.
    let evil = "b=$(git symbolic-ref --short HEAD); git checkout -q --detach; echo evil > evil.txt; git add evil.txt; \
                git -c user.name=t -c user.email=t@x commit -qm evil; git branch -f $b HEAD; git reset -q --hard HEAD~1; \
                echo good > out.txt; git add out.txt; git -c user.name=t -c user.email=t@x commit -qm good";
    let said = room.planctl(&run("fix.md", evil));
    assert_eq!(said.code, 3, "{said:?}");
    let page = room.planctl(&["approvals", "show", &room.ask()]);
    assert!(page.out.contains("checked out and not its branch planctl/fix-1-"), "{page:?}");
    // The command that it names lets the run go on, and then the branch has the judged files.
    let tree = tree_of(&room.status());
    let branch = room.status()["worktree"]["branch"].as_str().unwrap().to_owned();
    git(&tree, &["checkout", "--quiet", "-B", &branch]);
    let answered = room.planctl(&["approvals", "retry", &room.ask(), "--note", "mended"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let exec = "git symbolic-ref -q HEAD; echo good > out.txt";
    let done = room.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", exec]);
    assert_eq!(done.code, 0, "{done:?}");
    let judged = git(&tree, &["rev-parse", "HEAD"]);
    assert_eq!(git(&room.path(""), &["rev-parse", &branch]), judged);
    assert!(done.err.contains(&format!("git merge {}", &judged[..12])), "{done:?}");
    // A branch that is moved later is not what is said to be typed.
    git(&room.path(""), &["update-ref", &format!("refs/heads/{branch}"), "HEAD"]);
    let page = room.planctl(&["plan", "status", "@last"]);
    assert!(format!("{page:?}").contains(&format!("git merge {}", &judged[..12])), "{page:?}");
}

#[test]
fn a_run_whose_worktree_is_gone_is_held_and_goes_on_when_it_is_back() {
    let room = repository();
    let steps = [("One", "test -e one.txt", "abort"), ("Two", "test -e two.txt", "abort")];
    room.write("fix.md", &plan("Fix", "10k tokens", &steps));
    commit(&room);
    let away = room.home().join("away").display().to_string();
    // In step 1 its folder goes right after the contract passed: the contract waits for a child that takes it away.
    let exec = "if [ \"$PLANCTL_STEP\" = 1 ]; then touch one.txt; else touch two.txt; fi";
    let going = room.start(&run("fix.md", &format!("{exec}; until [ -e {away}-now ]; do sleep 0.02; done")));
    until("the worktree", || {
        std::fs::read_dir(room.state().join("worktrees"))
            .is_ok_and(|mut some| some.any(|tree| tree.unwrap().path().join("one.txt").exists()))
    });
    going.signal(Signal::KILL);
    going.hear_the_end();
    let tree = tree_of(&room.status());
    std::fs::rename(&tree, &away).unwrap();
    std::fs::write(format!("{away}-now"), "").unwrap();
    let held = room.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(held.code, 3, "{held:?}");
    let page = room.planctl(&["approvals", "show", &room.ask()]);
    assert!(page.out.contains("is not there any more"), "{page:?}");
    assert!(page.out.contains("worktree add --force"), "{page:?}");
    assert!(!tree.exists(), "it was never made again");
    std::fs::rename(&away, &tree).unwrap();
    let answered = room.planctl(&["approvals", "retry", &room.ask(), "--note", "it is back"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let done = room.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(tree.join("two.txt").exists() && tree.join("one.txt").exists());
}

#[test]
fn a_worktree_that_can_t_be_made_holds_its_run_until_it_is_resumed() {
    let room = repository();
    std::fs::write(room.state().join("worktrees"), "in the way").unwrap();
    let said = room.planctl(&run("fix.md", "echo good > out.txt"));
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("could not make"), "{said:?}");
    let status = room.status();
    assert_eq!(status["state"], "waiting", "{status}");
    assert_eq!(status["waiting_on"]["kind"], "worktree", "{status}");
    assert!(status["reason"].as_str().unwrap().starts_with("could not make"), "{status}");
    let page = room.planctl(&["plan", "status", "@last"]);
    assert!(page.out.contains("planctl plan resume fix-1"), "{page:?}");
    std::fs::remove_file(room.state().join("worktrees")).unwrap();
    let done = room.planctl(&["plan", "resume", "fix-1", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn planctl_killed_while_the_worktree_is_made_makes_it_anew() {
    let room = repository();
    let (hold, seen) = (room.home().join("hold"), room.home().join("seen"));
    std::fs::write(&hold, "").unwrap();
    room.write(".gitattributes", "*.slow filter=lfs\n").write("a.slow", "slow\n").write("z.txt", "last\n");
    // The one program that planctl's git starts for a repository.
    let programs = room.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let filter = format!(
        "#!/bin/sh\ntouch {}; while [ -e {} ]; do sleep 0.02; done; cat\n",
        seen.display(),
        hold.display()
    );
    std::fs::write(programs.join("git-lfs"), filter).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.join("git-lfs"), mode).unwrap();
    git(&room.path(""), &["config", "filter.lfs.smudge", "git-lfs smudge -- %f"]);
    commit(&room);
    let words = run("fix.md", "cat z.txt a.slow > /dev/null && echo good > out.txt");
    let going = room.start_on(&words, &[programs]);
    until("the checkout of files", || seen.exists());
    going.signal(Signal::KILL);
    going.hear_the_end();
    std::fs::remove_file(&hold).unwrap();
    assert_eq!(room.status()["worktree"]["is_made"], false);
    let done = room.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let tree = tree_of(&room.status());
    assert_eq!(std::fs::read_to_string(tree.join("a.slow")).unwrap(), "slow\n");
    assert_eq!(git(&room.path(""), &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_workspace_deeper_in_its_repository_is_as_deep_in_the_worktree() {
    let room = Room::new();
    git(&room.path(""), &["init", "--quiet"]);
    room.write("deep/er/fix.md", &plan("Fix", "10k tokens", &[("Write", "grep -q good out.txt", "abort")]));
    room.write("deep/er/planctl.toml", "[workspace]\nmode = \"worktree\"\n");
    commit(&room);
    let words =
        ["plan", "run", "deep/er/fix.md", "--workspace", "deep/er", "--approve", "--no-wait", "--exec"];
    let said = room.planctl(&[&words[..], &["pwd > out.txt; echo good >> out.txt"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let status = room.json(&["plan", "status", "@last", "--json", "--workspace", "deep/er"]);
    let tree = tree_of(&status);
    assert!(tree.ends_with("deep/er") && tree.join("out.txt").exists(), "{status}");
    assert!(!room.path("deep/er/out.txt").exists());
}
