//! Branches in git worktrees, and plans within plans: the real binary, a real Postgres, real repositories.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that meets what it does not expect has failed; the room is shared"
)]

#[path = "branching/folders.rs"]
mod folders;
#[path = "cli/room.rs"]
mod room;

use std::path::Path;
use std::time::{Duration, Instant};

use room::{Room, git};
use rustix::process::Signal;

/// Longer than any wait here, also on a machine that is busy with other things; a wait this long has found a hang.
const PATIENCE: Duration = Duration::from_secs(180);

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
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

fn repository() -> Room {
    let room = Room::new();
    git(&room.path(""), &["init", "--quiet"]);
    room.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    room.write("plan.dot", APART);
    git(&room.path(""), &["add", "-A"]);
    git(&room.path(""), &["commit", "--quiet", "-m", "all"]);
    room
}

fn run(exec: &str) -> Vec<&str> {
    vec!["plan", "run", "plan.dot", "--approve", "--no-wait", "--exec", exec]
}

fn refs(room: &Room) -> String {
    git(&room.path(""), &["for-each-ref", "refs/planctl", "refs/heads/planctl-branch"])
}

fn is_clear(room: &Room) {
    assert_eq!(refs(room), "", "nothing is left of the branches");
    assert_eq!(git(&room.path(""), &["worktree", "list"]).lines().count(), 1);
    let left = std::fs::read_dir(room.state().join("branches")).map_or(0, |entries| entries.count());
    assert_eq!(left, 0);
}

#[test]
fn branches_in_worktrees_begin_with_the_workspace_and_are_merged_into_it() {
    let room = repository();
    let head = git(&room.path(""), &["rev-parse", "HEAD"]);
    let said = room.planctl(&run(WORK));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!((room.read("one.txt").as_str(), room.read("two.txt").as_str()), ("base\n", "base\n"));
    let place = room.read("where-one");
    assert!(Path::new(place.trim()).starts_with(room.state().canonicalize().unwrap()), "{place}");
    assert_eq!(git(&room.path(""), &["rev-parse", "HEAD"]), head, "nothing is committed");
    is_clear(&room);
    let events = room.planctl(&["events", "--run", "@last", "--json"]).out;
    assert!(events.contains("branches_parted") && events.contains("branches_merged"), "{events}");
    assert_eq!(room.planctl(&["audit"]).code, 0);
}

#[test]
fn branches_that_do_not_fit_are_an_escalation_that_shows_the_hunks_and_where_to_mend_them() {
    let room = repository();
    let work = "case $PLANCTL_STEP in 1) echo base > base.txt;; 2) echo 1 > one.txt; sed -i s/one/red/ a.txt;; \
                3) echo 2 > two.txt; sed -i s/one/blue/ a.txt;; esac";
    let said = room.planctl(&run(work));
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(room.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n", "the workspace is as it was");
    let ask = room.ask();
    let page = room.json(&["approvals", "show", &ask, "--json"]);
    let shown = page.to_string();
    assert!(shown.contains("red") && shown.contains("blue"), "{page}");
    let shown = room.planctl(&["approvals", "show", &ask]);
    for word in ["a.txt", "red", "blue", "answer retry", "branch 2"] {
        assert!(shown.out.contains(word), "{word}: {shown:?}");
    }
    // A retry before anybody mended it asks again.
    assert_eq!(room.planctl(&["approvals", "retry", &ask]).code, 0);
    assert_eq!(room.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    let message = page["message"].as_str().unwrap();
    let folder = message.split("edit the files in ").nth(1).unwrap().split(" until").next().unwrap();
    std::fs::write(Path::new(folder).join("a.txt"), "purple\ntwo\nthree\nfour\nfive\n").unwrap();
    assert_eq!(room.planctl(&["approvals", "retry", &room.ask()]).code, 0);
    let said = room.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.read("a.txt"), "purple\ntwo\nthree\nfour\nfive\n");
    assert_eq!((room.read("one.txt").as_str(), room.read("two.txt").as_str()), ("1\n", "2\n"));
    is_clear(&room);
}

#[test]
fn branches_in_worktrees_need_a_repository_and_say_so_before_anything_runs() {
    let room = Room::new();
    room.write("plan.dot", APART);
    let said = room.planctl(&run(WORK));
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("in worktrees of their own") && said.err.contains("git -C"), "{said:?}");
    assert!(!room.path("base.txt").exists());
}

#[test]
fn p10_a_kill_in_mid_fan_out_runs_only_unfinished_branches_again() {
    let room = repository();
    // The second branch, the first time, tells that it works, and waits to be killed.
    let journal = room.home().join("journal");
    let work = format!(
        "echo $PLANCTL_STEP >> {0}; {WORK}; if [ $PLANCTL_STEP = 3 ] && ! [ -e {1} ]; then touch {1}; sleep 600; fi",
        journal.display(),
        room.home().join("killed").display(),
    );
    let going = room.start(&run(&work));
    until("the second branch", || room.home().join("killed").exists());
    let is_over = |step: &serde_json::Value| step["number"] == 2 && step["state"] == "passed";
    until("the end of the first branch", || {
        room.json(&["plan", "status", "@last", "--json"])["steps"].as_array().unwrap().iter().any(is_over)
    });
    going.signal(Signal::KILL);
    going.hear_the_end();
    let said = room.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.read("a.txt"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    let worked = std::fs::read_to_string(&journal).unwrap();
    let mut worked: Vec<&str> = worked.lines().collect();
    worked.sort_unstable();
    assert_eq!(worked, ["1", "2", "3", "3", "4"], "each once, but what was cut off");
    is_clear(&room);
}

#[test]
fn worktrees_of_branches_that_were_left_are_swept() {
    let room = repository();
    let said = room.planctl(&run("case $PLANCTL_STEP in 1) echo base > base.txt;; 2) echo > one.txt;; esac"));
    assert_eq!(said.code, 3, "{said:?}");
    assert_ne!(refs(&room), "");
    assert_eq!(room.planctl(&["plan", "cancel", "@last"]).code, 0);
    assert_eq!(room.planctl(&["clean"]).code, 0);
    is_clear(&room);
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

fn nested(approval: &str) -> Room {
    let room = Room::new();
    room.write("outer.dot", &around(approval));
    room.write("inner.md", INNER);
    room
}

const NESTED_WORK: &str = "if [ $PLANCTL_PLAN = inner.md ]; then touch inner; else touch first; fi";

fn outer(exec: &str) -> Vec<&str> {
    vec!["plan", "run", "outer.dot", "--approve", "--no-wait", "--exec", exec]
}

#[test]
fn n3_a_sub_plan_approved_with_the_plan_around_it_runs_under_its_claim() {
    let room = nested(", stack.child_approval=inherit");
    let said = room.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(room.path("inner").exists());
    let child = room.json(&["plan", "status", "inner-1", "--json"]);
    assert_eq!(child["state"], "done", "{child}");
    let events = room.planctl(&["events", "--run", "outer-1", "--json"]).out;
    assert!(events.contains("sub_plan_began") && events.contains("sub_plan_ended"), "{events}");
    assert_eq!(room.planctl(&["audit"]).code, 0);
}

#[test]
fn n3_a_sub_plan_asks_for_its_own_approval_and_the_run_around_it_waits() {
    let room = nested("");
    let said = room.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!room.path("inner").exists());
    let status = room.json(&["plan", "status", "outer-1", "--json"]);
    assert_eq!(status["state"], "waiting", "{status}");
    assert_eq!(status["waiting_on"]["kind"], "plan", "{status}");
    assert_eq!(status["waiting_on"]["run"], "inner-1", "{status}");
    assert_eq!(status["steps"][1]["run"], "inner-1", "{status}");
    assert_eq!(room.planctl(&["approvals", "approve", &room.ask()]).code, 0);
    let said = room.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(room.path("inner").exists());
}

#[test]
fn hole_2_the_ask_of_a_plan_within_binds_the_files_that_it_showed() {
    let room = nested("");
    room.write("check.sh", "test -f inner\n");
    room.write("inner.md", &INNER.replace("test -f inner", "bash check.sh"));
    assert_eq!(room.planctl(&outer(NESTED_WORK)).code, 3);
    let page = room.json(&["approvals", "show", &room.ask(), "--json"]);
    assert!(page["will_run"]["digests"]["check.sh"].is_string(), "{page}");
    room.write("check.sh", "true\n");
    let said = room.planctl(&["approvals", "approve", &room.ask()]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("protected files changed since its ask was opened: check.sh"), "{said:?}");
    room.write("check.sh", "test -f inner\n");
    assert_eq!(room.planctl(&["approvals", "approve", &room.ask()]).code, 0);
    let said = room.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn n3_whoever_approves_a_plan_sees_the_plans_within_it_and_the_text_of_those_approved_with_it() {
    for (approval, is_approved_too) in [("", false), (", stack.child_approval=inherit", true)] {
        let room = nested(approval);
        assert_eq!(room.planctl(&["plan", "run", "outer.dot", "--no-wait", "--exec", NESTED_WORK]).code, 3);
        let ask = room.ask();
        let page = room.json(&["approvals", "show", &ask, "--json"]);
        let within = &page["will_run"]["plans"];
        assert_eq!(within.as_array().map(Vec::len), Some(1), "{page}");
        assert_eq!((&within[0]["plan"], &within[0]["within"]), (&"inner.md".into(), &"outer.dot".into()));
        assert_eq!((&within[0]["title"], &within[0]["steps"]), (&"Inner".into(), &1.into()));
        assert_eq!(within[0]["is_approved_too"], is_approved_too, "{page}");
        assert_eq!(within[0]["text"].as_str(), is_approved_too.then_some(INNER));
        let shown = room.planctl(&["approvals", "show", &ask]).out;
        assert!(shown.contains("inner.md \"Inner\""), "{shown}");
        assert_eq!(shown.contains("Do the inner part."), is_approved_too, "{shown}");
    }
}

#[test]
fn checkpoints_go_with_the_run_and_those_of_a_failed_run_when_it_is_given_up() {
    let room = Room::new();
    let plan = |contract: &str, on_fail: &str| {
        format!(
            "digraph keep {{ start keep [checkpoint=true] work [prompt=\"Work.\", contract=\"{contract}\", target=coder]\n\
             failed [shape=Msquare, result=failed] exit start -> keep -> work -> exit work -> {on_fail} [on=exhaust] }}\n"
        )
    };
    room.write("keep.dot", &plan("test -f work", "failed"));
    let kept = || std::fs::read_dir(room.state().join("checkpoints")).map_or(0, |entries| entries.count());
    let run = |exec| room.planctl(&["plan", "run", "keep.dot", "--approve", "--no-wait", "--exec", exec]);
    let said = run("true");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(kept(), 1, "a failed run may be taken up, and return to it");
    assert_eq!(room.planctl(&["clean"]).code, 0);
    assert_eq!(kept(), 1);
    let said = run("touch work");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(kept(), 0);
    // Of a failed run that nobody takes up.
    std::fs::remove_file(room.path("work")).unwrap();
    let again = ["plan", "run", "keep.dot", "--approve", "--again", "--no-wait", "--exec", "true"];
    assert_eq!(room.planctl(&again).code, 1);
    std::fs::create_dir(room.state().join("checkpoints/7b0c7a52-0000-7000-8000-000000000000")).unwrap();
    assert_eq!(kept(), 2, "one of them is of another database");
    assert_eq!(room.planctl(&["clean", "--failed"]).code, 0);
    assert_eq!(kept(), 1);
}

#[test]
fn n1_a_sub_plan_that_fails_fails_its_node_and_a_cancelled_run_takes_it_along() {
    let room = nested(", stack.child_approval=inherit");
    let said = room.planctl(&outer("test $PLANCTL_PLAN = inner.md || touch first"));
    assert_eq!(said.code, 3, "{said:?}");
    let page = room.planctl(&["approvals", "show", &room.ask()]);
    assert!(page.out.contains("its run inner-1 failed"), "{page:?}");
    let refused = room.planctl(&["plan", "resume", "inner-1"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("it is a part of outer-1"), "{refused:?}");
    assert_eq!(room.planctl(&["approvals", "retry", &room.ask()]).code, 0);
    let said = room.planctl(&["plan", "resume", "outer-1", "--no-wait", "--exec", NESTED_WORK]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.json(&["plan", "status", "inner-2", "--json"])["state"], "done");
    // Cancelled while the plan within waits for its approval.
    let room = nested("");
    assert_eq!(room.planctl(&outer(NESTED_WORK)).code, 3);
    assert_eq!(room.planctl(&["plan", "cancel", "outer-1"]).code, 0);
    assert_eq!(room.json(&["plan", "status", "inner-1", "--json"])["state"], "cancelled");
}

#[test]
fn a_kill_while_a_sub_plan_is_under_way_neither_loses_nor_repeats_it() {
    let room = nested(", stack.child_approval=inherit");
    let (journal, killed) = (room.home().join("journal"), room.home().join("killed"));
    let work = format!(
        "echo $PLANCTL_PLAN >> {0}; {NESTED_WORK}; if [ $PLANCTL_PLAN = inner.md ] && ! [ -e {1} ]; then touch {1}; sleep 600; fi",
        journal.display(),
        killed.display(),
    );
    let going = room.start(&outer(&work));
    until("the plan within", || killed.exists());
    going.signal(Signal::KILL);
    going.hear_the_end();
    let said = room.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let worked = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(worked.lines().collect::<Vec<_>>(), ["outer.dot", "inner.md", "inner.md", "outer.dot"]);
    let list = room.json(&["plan", "ls", "--json"]);
    assert_eq!(list["runs"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(room.planctl(&["audit"]).code, 0);
}

#[test]
fn a_plan_that_contains_itself_is_refused_with_the_way_round() {
    let room = nested("");
    room.write("inner.md", "");
    room.write("outer.dot", &around("").replace("inner.md", "second.dot"));
    room.write("second.dot", &around("").replace("inner.md", "outer.dot"));
    let said = room.planctl(&outer(NESTED_WORK));
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("outer.dot → second.dot → outer.dot"), "{said:?}");
}
