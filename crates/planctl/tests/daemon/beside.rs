//! Work that takes long for one run, or makes it wait, keeps no other run of the host waiting.

use std::fs::File;

use rustix::process::Signal;

use crate::support::history::History;
use crate::support::{Place, wait_until};

/// Keeps everybody of this place from its worktrees, as a git that takes long does.
fn slow_worktrees(place: &Place) -> File {
    let lock = File::create(place.path("state/worktrees.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn a_worktree_that_takes_long_to_make_keeps_no_other_run_from_its_turn() {
    let place = Place::new();
    place.plan(1, "");
    place.commit();
    let (other, exec) = (place.other("q.md"), place.exec());
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let slow = slow_worktrees(&place);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--workspace", "worktree", "--exec", &exec]);
    let health = || place.json(&["daemon", "status", "--json"])["health"].clone();
    wait_until("the worktree is being made", || health()["worktrees_at_work"] == 1);

    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    let state = |run: &str| place.json(&["plan", "status", run, "--json"])["state"].clone();
    wait_until("the other run is done", || state("q-1") == "done");
    assert_eq!(state("p-1"), "queued");
    // Once for the run that waits; the checkpoints of the run that just ended are cleared away meanwhile.
    wait_until("one worktree is at work", || health()["worktrees_at_work"] == 1);
    assert_eq!(health()["last_error"], serde_json::Value::Null);

    drop(slow);
    wait_until("the run in the worktree is done", || state("p-1") == "done");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_worktree_that_takes_long_to_look_at_keeps_no_marks_from_other_files() {
    let place = Place::new();
    place.plan(1, "");
    place.commit();
    let (other, exec) = (place.other("q.md"), place.exec());
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.set("hold-gate-1");
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--workspace", "worktree", "--exec", &exec]);
    place.await_note("gate begin 1", 1);
    let slow = slow_worktrees(&place);
    place.unset("hold-gate-1");
    let status = |run: &str| place.json(&["plan", "status", run, "--json"]);
    wait_until("the run in the worktree is done", || status("p-1")["state"] == "done");
    let health = || place.json(&["daemon", "status", "--json"])["health"].clone();
    wait_until("its worktree is looked at", || health()["worktrees_at_work"] == 1);

    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    let text = || std::fs::read_to_string(place.path("other/q.md")).unwrap();
    wait_until("the marks of the other run", || text().contains("status: done"));

    drop(slow);
    wait_until("the worktree was looked at", || status("p-1")["worktree"]["uncommitted"] == 1);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn gates_that_wait_for_one_workspace_take_no_room_from_others() {
    const STEPS: u32 = 10;
    let place = Place::new();
    place.plan(1, "");
    let (other, exec) = (place.other("q.md"), place.exec());
    place.plan(STEPS, "**needs:** none\n");
    let plan = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    let parallel = plan.replace("\n## Steps", &format!("\n**parallel:** {STEPS}\n\n## Steps"));
    std::fs::write(place.path("work/p.md"), parallel).unwrap();
    let held = (2..=STEPS).map(|step| format!("hold-gate-{step}"));
    held.clone().for_each(|held| place.set(&held));
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &exec]);
    // No worker keeps its room for a gate that waits, either.
    place.await_note("work end", STEPS as usize);
    wait_until("a gate that is held up", || {
        (2..=STEPS).any(|step| place.noted(&format!("gate begin {step}")) > 0)
    });

    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    let state = |run: &str| place.json(&["plan", "status", run, "--json"])["state"].clone();
    wait_until("the other run is done", || state("q-1") == "done");
    assert_eq!(state("p-1"), "running");

    held.for_each(|held| place.unset(&held));
    wait_until("all steps are done", || state("p-1") == "done");
    let history = History::of(&place, "p-1");
    history.must_be_whole();
    assert_eq!(history.count("retry_triggered"), 0, "{:?}", history.names());
    assert_eq!(place.noted("gate begin"), STEPS as usize + 1, "each once: {:#?}", place.journal());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn a_gate_that_follows_another_keeps_its_lease_while_it_waits_for_a_slot() {
    let place = Place::with_leases_of(2);
    let (red_first, exec) = ("**red_first:** warn\n", place.exec());
    place.plan(1, red_first);
    let other = place.other("q.md");
    let in_other = |name: &str| place.path("other").join(name);
    let plan = std::fs::read_to_string(in_other("q.md")).unwrap();
    std::fs::write(in_other("q.md"), plan.replace("check.sh 1", "check.sh 9")).unwrap();
    std::fs::write(in_other("out-9"), "good").unwrap();
    place.plan(2, "");
    let plan = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    let (first, second) = plan.split_once("### 2.").unwrap();
    let second = second.replace("**task:**", &format!("{red_first}**task:**"));
    std::fs::write(place.path("work/p.md"), format!("{first}### 2.{second}")).unwrap();

    let mut daemon = place.start(&["daemon", "run", "--gates", "1"]);
    daemon.hear("ready");
    place.set("hold-gate-9");
    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    place.await_note("gate begin 9", 1);
    // The first step's gate follows its work; the second one's rehearsal is claimed with the verdict.
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &exec]);
    let lease = || {
        let of_rehearsal = "select lease_until from items i join runs r on r.id = i.run \
            where r.name = 'p-1' and i.state = 'leased' and i.id like '%.rehearsal%'";
        place.must(&["db", "psql", "--owner", "--", "-qAtc", of_rehearsal]).out.trim().to_owned()
    };
    let mut seen = String::new();
    wait_until("the rehearsal is claimed", || {
        seen = lease();
        !seen.is_empty()
    });
    wait_until("a renewal", || lease() != seen);

    place.unset("hold-gate-9");
    let state = |run: &str| place.json(&["plan", "status", run, "--json"])["state"].clone();
    wait_until("both runs are done", || state("p-1") == "done" && state("q-1") == "done");
    History::of(&place, "p-1").must_be_whole();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}
