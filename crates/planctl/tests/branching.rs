//! Branches in git worktrees, and plans within plans: the real binary, a real Postgres, real repositories.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that meets what it does not expect has failed; the fixture is shared"
)]

#[path = "branching/folders.rs"]
mod folders;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::fixture::{Fixture, git, plan};
use rustix::process::Signal;

/// Longer than any wait here, also on a machine that is busy with other things; a wait this long has found a hang.
const WAIT_MAX: Duration = Duration::from_secs(180);

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT_MAX, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A step before a fork, two branches in worktrees, and a step after their join.
const APART: &str = r#"digraph apart {
    start   [shape=Mdiamond]
    prepare [prompt="Prepare.", contract="test -s base.txt", target=coder]
    fork    [shape=component, workspace=worktree]
    one     [prompt="One.", contract="test -f one.txt && ! test -f two.txt", target=coder]
    two     [prompt="Two.", contract="test -f two.txt && ! test -f one.txt", target=coder]
    join    [shape=tripleoctagon]
    after   [prompt="After.", contract="test -f one.txt && test -f two.txt", target=coder]
    done    [shape=Msquare]
    start -> prepare -> fork
    fork -> one -> join
    fork -> two -> join
    join -> after -> done
}
"#;

/// The work of each step: 2 and 3 are the branches.
const WORK: &str = "case $PLANCTL_STEP in 1) echo base > base.txt;; 2) pwd > where-one; cat base.txt > one.txt; \
                    sed -i s/five/FIVE/ a.txt;; 3) cat base.txt > two.txt; sed -i s/one/ONE/ a.txt;; esac";

fn repository() -> Fixture {
    let fixture = Fixture::new();
    git(&fixture.path(""), &["init", "--quiet"]);
    fixture.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    fixture.write("plan.dot", APART);
    git(&fixture.path(""), &["add", "-A"]);
    git(&fixture.path(""), &["commit", "--quiet", "-m", "all"]);
    fixture
}

fn run(exec: &str) -> Vec<&str> {
    vec!["plan", "run", "plan.dot", "--approve", "--no-wait", "--exec", exec]
}

fn refs(fixture: &Fixture) -> String {
    git(&fixture.path(""), &["for-each-ref", "refs/planctl", "refs/heads/planctl-branch"])
}

fn is_clear(fixture: &Fixture) {
    assert_eq!(refs(fixture), "", "nothing is left of the branches");
    assert_eq!(git(&fixture.path(""), &["worktree", "list"]).lines().count(), 1);
    let left = std::fs::read_dir(fixture.state().join("branches")).map_or(0, |entries| entries.count());
    assert_eq!(left, 0);
}

#[test]
fn branches_in_worktrees_begin_with_the_workspace_and_are_merged_into_it() {
    let fixture = repository();
    let head = git(&fixture.path(""), &["rev-parse", "HEAD"]);
    let said = fixture.planctl(&run(WORK));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!((fixture.read("one.txt").as_str(), fixture.read("two.txt").as_str()), ("base\n", "base\n"));
    let place = fixture.read("where-one");
    assert!(Path::new(place.trim()).starts_with(fixture.state().canonicalize().unwrap()), "{place}");
    assert_eq!(git(&fixture.path(""), &["rev-parse", "HEAD"]), head, "nothing is committed");
    is_clear(&fixture);
    let events = fixture.planctl(&["events", "--run", "@last", "--json"]).out;
    assert!(events.contains("branches_parted") && events.contains("branches_merged"), "{events}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

/// `/tmp` and the home lie on different ones on many machines. Git can't move what it wrote from one to another.
#[test]
fn a_workspace_on_another_file_system_than_planctls_state_is_judged_and_joined_alike() {
    let fixture = repository();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).unwrap());
    assert_ne!(device(elsewhere.path()), device(&fixture.path("")), "the tests' folder is not on /dev/shm");
    fixture.write("plan.dot", &APART.replace("test -s base.txt", "git log -1 --format=%s | grep -q base"));
    git(&fixture.path(""), &["commit", "--quiet", "-a", "-m", "plan"]);
    let work = format!(
        "{WORK}; if [ $PLANCTL_STEP = 1 ]; then git add base.txt; git -c user.name=a -c user.email=a@a commit --quiet -m base; fi"
    );
    let said = fixture.command(&run(&work)).env("PLANCTL_STATE_DIR", elsewhere.path()).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(fixture.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
}

#[test]
fn branches_that_do_not_fit_are_an_escalation_that_shows_the_hunks_and_where_to_mend_them() {
    let fixture = repository();
    let work = "case $PLANCTL_STEP in 1) echo base > base.txt;; 2) echo 1 > one.txt; sed -i s/one/red/ a.txt;; \
                3) echo 2 > two.txt; sed -i s/one/blue/ a.txt;; esac";
    let said = fixture.planctl(&run(work));
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n", "the workspace is as it was");
    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    let shown = page.to_string();
    assert!(shown.contains("red") && shown.contains("blue"), "{page}");
    let shown = fixture.planctl(&["approvals", "show", &ask]);
    for word in ["a.txt", "red", "blue", "answer retry", "branch 2"] {
        assert!(shown.out.contains(word), "{word}: {shown:?}");
    }
    // A retry before anybody mended it asks again.
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    let message = page["message"].as_str().unwrap();
    let folder = message.split("edit the files in ").nth(1).unwrap().split(" until").next().unwrap();
    std::fs::write(Path::new(folder).join("a.txt"), "purple\ntwo\nthree\nfour\nfive\n").unwrap();
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("a.txt"), "purple\ntwo\nthree\nfour\nfive\n");
    assert_eq!((fixture.read("one.txt").as_str(), fixture.read("two.txt").as_str()), ("1\n", "2\n"));
    is_clear(&fixture);
}

#[test]
fn who_skips_a_conflict_is_told_what_is_dropped_and_the_run_says_so_at_its_end() {
    let fixture = repository();
    let work = "case $PLANCTL_STEP in 1) echo base > base.txt;; 2) echo 1 > one.txt; sed -i s/one/red/ a.txt;; \
                3) echo 2 > two.txt; sed -i s/one/blue/ a.txt;; 4) touch one.txt two.txt;; esac";
    let said = fixture.planctl(&run(work));
    assert_eq!(said.code, 3, "{said:?}");
    let why =
        "join \"join\": the changes of its branches conflict; branch 2 conflicts with those before it: a.txt";
    assert!(said.out.contains(why), "{said:?}");
    let ask = fixture.ask();
    let view = &fixture.json(&["approvals", "--json"])["asks"][0];
    assert_eq!(view["answers"], serde_json::json!(["retry", "skip", "revise", "abort"]), "{view}");
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains("go on without anything that the branches did: none of it is merged"), "{page}");
    assert!(page.contains("merge once more") && !page.contains("approvals waive"), "{page}");
    for refused in [&["waive", &ask, "--note", "ok"][..], &["reassign", &ask, "senior"]] {
        let said = fixture.planctl(&[&["approvals"], refused].concat());
        assert_eq!(said.code, 5, "{said:?}");
    }
    assert_eq!(fixture.planctl(&["approvals", "skip", &ask, "--note", "neither"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let dropped = "nothing that the branches did is in the workspace: no merge at the join \"join\"";
    assert!(said.out.contains("done in") && said.out.contains("4 steps, 1 join not merged"), "{said:?}");
    assert!(said.out.contains(dropped), "{said:?}");
    assert!(fixture.planctl(&["plan", "status", "@last"]).out.contains(dropped));
    let status = fixture.status();
    assert_eq!(status["reason"], "4 passed; without what the branches of a join did");
    assert_eq!(fixture.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn a_repository_that_was_moved_away_is_named_as_missing_and_the_run_goes_on_once_it_is_back() {
    let fixture = repository();
    fixture.write("p.md", &plan("Moves", "5 minutes", &[("Write", "test -e base.txt", "escalate")]));
    let gone = fixture.home().join("gone");
    let worker = format!("echo base > base.txt; mv \"$PWD\" {}", gone.display());
    let mut command = fixture.command(&["run", "p.md", "--approve", "--no-wait", "--exec", &worker]);
    let mut run = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.find(|line| line.contains("contract=inconclusive")).unwrap();
    assert!(said.contains("work: No such file or directory"), "{said}");
    std::fs::rename(&gone, fixture.path("")).unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(rest.last().is_some_and(|line| line.ends_with("run=done")), "{rest:?}");
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

#[test]
fn a_workspace_that_is_led_to_another_repository_is_not_worked_in() {
    let fixture = repository();
    let other = fixture.home().join("other");
    git(&fixture.path(""), &["clone", "--quiet", ".", &other.to_string_lossy()]);
    let before = git(&other, &["for-each-ref"]);
    let kept = fixture.home().join("kept").display().to_string();
    let evil =
        format!("echo base > base.txt; mv .git {kept}; echo \"gitdir: {}/.git\" > .git", other.display());
    let said = fixture.planctl(&run(&evil));
    assert_eq!(said.code, 3, "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains("other/.git, which was not so when plan-1 was approved"), "{page:?}");
    assert_eq!(git(&other, &["for-each-ref"]), before, "nothing of planctl is written there");
    // Nor is one whose parts lead elsewhere.
    std::fs::remove_file(fixture.path(".git")).unwrap();
    std::fs::rename(&kept, fixture.path(".git")).unwrap();
    let outside = fixture.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, fixture.path(".git/worktrees")).unwrap();
    let answered = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "put back"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let held = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", WORK]);
    assert_eq!(held.code, 3, "{held:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains(".git/worktrees that leads to"), "{page:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    // Once it is back, the run goes on.
    std::fs::remove_file(fixture.path(".git/worktrees")).unwrap();
    let answered = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "put back"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", WORK]);
    assert_eq!(done.code, 0, "{done:?}");
    is_clear(&fixture);
}

#[test]
fn branches_in_worktrees_need_a_repository_and_say_so_before_anything_runs() {
    let fixture = Fixture::new();
    fixture.write("plan.dot", APART);
    let said = fixture.planctl(&run(WORK));
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("in worktrees of their own") && said.err.contains("git -C"), "{said:?}");
    assert!(!fixture.path("base.txt").exists());
}

#[test]
fn p10_a_kill_in_mid_fan_out_runs_only_unfinished_branches_again() {
    let fixture = repository();
    // The second branch, the first time, tells that it works, and waits to be killed.
    let journal = fixture.home().join("journal");
    let work = format!(
        "echo $PLANCTL_STEP >> {0}; {WORK}; if [ $PLANCTL_STEP = 3 ] && ! [ -e {1} ]; then touch {1}; sleep 600; fi",
        journal.display(),
        fixture.home().join("killed").display(),
    );
    let going = fixture.start(&run(&work));
    until("the second branch", || fixture.home().join("killed").exists());
    let is_over = |step: &serde_json::Value| step["number"] == 2 && step["state"] == "passed";
    until("the end of the first branch", || {
        fixture.json(&["plan", "status", "@last", "--json"])["steps"].as_array().unwrap().iter().any(is_over)
    });
    going.signal(Signal::KILL);
    going.hear_the_end();
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    let worked = std::fs::read_to_string(&journal).unwrap();
    let mut worked: Vec<&str> = worked.lines().collect();
    worked.sort_unstable();
    assert_eq!(worked, ["1", "2", "3", "3", "4"], "each once, but what was cut off");
    is_clear(&fixture);
}

#[test]
fn worktrees_of_branches_that_were_left_are_swept() {
    let fixture = repository();
    let said =
        fixture.planctl(&run("case $PLANCTL_STEP in 1) echo base > base.txt;; 2) echo > one.txt;; esac"));
    assert_eq!(said.code, 3, "{said:?}");
    assert_ne!(refs(&fixture), "");
    assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
    assert_eq!(fixture.planctl(&["clean"]).code, 0);
    is_clear(&fixture);
}

/// A plan whose second node is another plan.
fn around(approval: &str) -> String {
    format!(
        "digraph around {{ start first [prompt=\"First.\", contract=\"test -f first\", target=coder]\n\
         inner [shape=house, stack.child_dotfile=\"inner.md\"{approval}]\n\
         last [prompt=\"Last.\", contract=\"test -f inner\", target=coder]\n\
         exit start -> first -> inner -> last -> exit }}\n"
    )
}

const INNER: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Inner\n\n## Steps\n\n### 1. Inner step\n\n\
                     **target:** coder\n\n**task:**\nDo the inner part.\n\n**contract:**\n```bash\ntest -f inner\n```\n\
                     exit_code == 0\n\n**on_fail:** abort\n";

fn nested(approval: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("outer.dot", &around(approval));
    fixture.write("inner.md", INNER);
    fixture
}

const NESTED_WORK: &str = "if [ $PLANCTL_PLAN = inner.md ]; then touch inner; else touch first; fi";

fn outer(exec: &str) -> Vec<&str> {
    vec!["plan", "run", "outer.dot", "--approve", "--no-wait", "--exec", exec]
}

#[test]
fn n3_a_sub_plan_approved_with_the_plan_around_it_runs_under_its_claim() {
    let fixture = nested(", stack.child_approval=inherit");
    let said = fixture.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("inner").exists());
    let child = fixture.json(&["plan", "status", "inner-1", "--json"]);
    assert_eq!(child["state"], "done", "{child}");
    let events = fixture.planctl(&["events", "--run", "outer-1", "--json"]).out;
    assert!(events.contains("sub_plan_began") && events.contains("sub_plan_ended"), "{events}");
    let told = fixture.planctl(&["events", "outer-1"]).out;
    assert!(told.contains(" runs as inner-1"), "{told}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn n3_a_sub_plan_asks_for_its_own_approval_and_the_run_around_it_waits() {
    let fixture = nested("");
    let said = fixture.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!fixture.path("inner").exists());
    let status = fixture.json(&["plan", "status", "outer-1", "--json"]);
    assert_eq!(status["state"], "waiting", "{status}");
    assert_eq!(status["waiting_on"]["kind"], "plan", "{status}");
    assert_eq!(status["waiting_on"]["run"], "inner-1", "{status}");
    assert_eq!(status["steps"][1]["run"], "inner-1", "{status}");
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("inner").exists());
}

#[test]
fn a_sub_plan_that_changed_while_it_asked_is_rejected_and_the_refusal_says_so() {
    let fixture = nested("");
    assert_eq!(fixture.planctl(&outer(NESTED_WORK)).code, 3);
    fixture.write("inner.md", &INNER.replace("Do the inner part", "Do it all"));
    assert_eq!(fixture.planctl(&["approve", "inner.md"]).code, 0);
    let ask = fixture.ask();
    let said = fixture.planctl(&["approvals", "approve", &ask]);
    assert_eq!(said.code, 5, "{said:?}");
    let how = "reject it, then answer what outer-1 asks with `revise`, approve outer.dot anew";
    assert!(
        said.err.contains(how) && said.err.contains(&format!("planctl approvals reject {ask}")),
        "{said:?}"
    );
    assert_eq!(fixture.planctl(&["approvals", "reject", &ask]).code, 0);
    assert_eq!(fixture.planctl(&["resume", "outer-1", "--no-wait"]).code, 3);
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    assert_eq!(fixture.planctl(&["approve", "outer.dot"]).code, 0);
    assert_eq!(fixture.planctl(&["resume", "outer-1", "--no-wait"]).code, 3);
    assert_eq!(
        fixture.planctl(&["approvals", "approve", &fixture.ask()]).code,
        0,
        "it is asked about as it is now"
    );
    let said = fixture.planctl(&["resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_sub_plan_that_is_not_needed_ends_with_the_run_around_it() {
    let fixture = Fixture::new();
    let asks = |question: &str| {
        format!(
            "digraph kid {{ start [shape=Mdiamond]; done [shape=Msquare]; q [shape=hexagon, label=\"{question}?\"]\n\
             start -> q; q -> done [label=\"[Y] Yes\"] }}\n"
        )
    };
    fixture.write("one.dot", &asks("One")).write("two.dot", &asks("Two"));
    fixture.write(
        "par.dot",
        "digraph par { start [shape=Mdiamond]; done [shape=Msquare]\n\
         both [shape=component, join_policy=first_success]; meet [shape=tripleoctagon]\n\
         a [shape=house, stack.child_dotfile=\"one.dot\", stack.child_approval=inherit]\n\
         b [shape=house, stack.child_dotfile=\"two.dot\", stack.child_approval=inherit]\n\
         start -> both; both -> a -> meet; both -> b -> meet; meet -> done }\n",
    );
    assert_eq!(fixture.planctl(&["run", "par.dot", "--approve", "--no-wait"]).code, 3);
    let asks = fixture.json(&["approvals", "ls", "--run", "one-1", "--json"]);
    let ask = asks["asks"][0]["id"].to_string();
    assert_eq!(fixture.planctl(&["approvals", "choose", &ask, "Yes"]).code, 0);
    let said = fixture.planctl(&["resume", "par-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.json(&["status", "two-1", "--json"])["state"], "cancelled");
}

#[test]
fn last_is_the_run_that_a_person_began_and_none_within_it() {
    let fixture = nested("");
    assert_eq!(fixture.planctl(&outer(NESTED_WORK)).code, 3);
    let last = || fixture.json(&["status", "@last", "--json"])["run"].clone();
    assert_eq!(last(), "outer-1", "the run within it began later");
    let within = fixture.json(&["status", "inner-1", "--json"]);
    assert_eq!(within["run"], "inner-1", "it is named by its own name");
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    assert_eq!(fixture.planctl(&["resume", "@last", "--no-wait"]).code, 0);
    let fixture = nested("");
    assert_eq!(fixture.planctl(&outer(NESTED_WORK)).code, 3);
    assert_eq!(fixture.planctl(&["cancel", "@last"]).code, 0);
    assert_eq!(fixture.json(&["status", "outer-1", "--json"])["state"], "cancelled");
}

#[test]
fn hole_2_the_ask_of_a_plan_within_binds_the_files_that_it_showed() {
    let fixture = nested("");
    fixture.write("check.sh", "test -f inner\n");
    fixture.write("inner.md", &INNER.replace("test -f inner", "bash check.sh"));
    assert_eq!(fixture.planctl(&outer(NESTED_WORK)).code, 3);
    let page = fixture.json(&["approvals", "show", &fixture.ask(), "--json"]);
    assert!(page["will_run"]["digests"]["check.sh"].is_string(), "{page}");
    fixture.write("check.sh", "true\n");
    let said = fixture.planctl(&["approvals", "approve", &fixture.ask()]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("protected files changed since its ask was opened: check.sh"), "{said:?}");
    fixture.write("check.sh", "test -f inner\n");
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn n3_whoever_approves_a_plan_sees_the_plans_within_it_and_the_text_of_those_approved_with_it() {
    for (approval, is_approved_too) in [("", false), (", stack.child_approval=inherit", true)] {
        let fixture = nested(approval);
        assert_eq!(
            fixture.planctl(&["plan", "run", "outer.dot", "--no-wait", "--exec", NESTED_WORK]).code,
            3
        );
        let ask = fixture.ask();
        let page = fixture.json(&["approvals", "show", &ask, "--json"]);
        let within = &page["will_run"]["plans"];
        assert_eq!(within.as_array().map(Vec::len), Some(1), "{page}");
        assert_eq!((&within[0]["plan"], &within[0]["within"]), (&"inner.md".into(), &"outer.dot".into()));
        assert_eq!((&within[0]["title"], &within[0]["steps"]), (&"Inner".into(), &1.into()));
        assert_eq!(within[0]["is_approved_too"], is_approved_too, "{page}");
        assert_eq!(within[0]["text"].as_str(), is_approved_too.then_some(INNER));
        let shown = fixture.planctl(&["approvals", "show", &ask]).out;
        assert!(shown.contains("inner.md \"Inner\""), "{shown}");
        assert_eq!(shown.contains("Do the inner part."), is_approved_too, "{shown}");
    }
}

#[test]
fn checkpoints_go_with_the_run_and_those_of_a_failed_run_when_it_is_given_up() {
    let fixture = Fixture::new();
    let plan = |contract: &str, on_fail: &str| {
        format!(
            "digraph keep {{ start keep [checkpoint=true] work [prompt=\"Work.\", contract=\"{contract}\", target=coder]\n\
             failed [shape=Msquare, result=failed] exit start -> keep -> work -> exit work -> {on_fail} [on=exhaust] }}\n"
        )
    };
    fixture.write("keep.dot", &plan("test -f work", "failed"));
    let kept = || std::fs::read_dir(fixture.state().join("checkpoints")).map_or(0, |entries| entries.count());
    let run = |exec| fixture.planctl(&["plan", "run", "keep.dot", "--approve", "--no-wait", "--exec", exec]);
    let said = run("true");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(kept(), 1, "a failed run may be taken up, and return to it");
    assert_eq!(fixture.planctl(&["clean"]).code, 0);
    assert_eq!(kept(), 1);
    let said = run("touch work");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(kept(), 0);
    // Of a failed run that nobody takes up.
    std::fs::remove_file(fixture.path("work")).unwrap();
    let again = ["plan", "run", "keep.dot", "--approve", "--again", "--no-wait", "--exec", "true"];
    assert_eq!(fixture.planctl(&again).code, 1);
    std::fs::create_dir(fixture.state().join("checkpoints/7b0c7a52-0000-7000-8000-000000000000")).unwrap();
    assert_eq!(kept(), 2, "one of them is of another database");
    assert_eq!(fixture.planctl(&["clean", "--failed"]).code, 0);
    assert_eq!(kept(), 1);
}

#[test]
fn n1_a_sub_plan_that_fails_fails_its_node_and_a_cancelled_run_takes_it_along() {
    let fixture = nested(", stack.child_approval=inherit");
    let said = fixture.planctl(&outer("test $PLANCTL_PLAN = inner.md || touch first"));
    assert_eq!(said.code, 3, "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(page.out.contains("its run inner-1 failed"), "{page:?}");
    let refused = fixture.planctl(&["plan", "resume", "inner-1"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("it is a part of outer-1"), "{refused:?}");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait", "--exec", NESTED_WORK]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.json(&["plan", "status", "inner-2", "--json"])["state"], "done");
    // Cancelled while the plan within waits for its approval.
    let fixture = nested("");
    assert_eq!(fixture.planctl(&outer(NESTED_WORK)).code, 3);
    assert_eq!(fixture.planctl(&["plan", "cancel", "outer-1"]).code, 0);
    assert_eq!(fixture.json(&["plan", "status", "inner-1", "--json"])["state"], "cancelled");
}

#[test]
fn a_kill_while_a_sub_plan_is_under_way_neither_loses_nor_repeats_it() {
    let fixture = nested(", stack.child_approval=inherit");
    let (journal, killed) = (fixture.home().join("journal"), fixture.home().join("killed"));
    let work = format!(
        "echo $PLANCTL_PLAN >> {0}; {NESTED_WORK}; if [ $PLANCTL_PLAN = inner.md ] && ! [ -e {1} ]; then touch {1}; sleep 600; fi",
        journal.display(),
        killed.display(),
    );
    let going = fixture.start(&outer(&work));
    until("the plan within", || killed.exists());
    going.signal(Signal::KILL);
    going.hear_the_end();
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let worked = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(worked.lines().collect::<Vec<_>>(), ["outer.dot", "inner.md", "inner.md", "outer.dot"]);
    let list = fixture.json(&["ls", "--json"]);
    assert_eq!(list["runs"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a_plan_that_contains_itself_is_refused_with_the_way_round() {
    let fixture = nested("");
    fixture.write("inner.md", "");
    fixture.write("outer.dot", &around("").replace("inner.md", "second.dot"));
    fixture.write("second.dot", &around("").replace("inner.md", "outer.dot"));
    let said = fixture.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("outer.dot → second.dot → outer.dot"), "{said:?}");
}
