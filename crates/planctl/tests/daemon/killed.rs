//! `kill -9` of the daemon at bad moments: the next one goes on (P10).

use std::time::Instant;

use rustix::process::Signal;

use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{Place, goes_on_within, wait_until};

/// Kills a daemon while `note` is the newest line of the journal, and starts another.
fn kill(hold: &str, note: &str) {
    let place = Place::new();
    place.plan(2, "");
    place.set(hold);
    let began = Instant::now();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave(note);
    let first = began.elapsed();
    daemon.kill().unwrap();
    let next = place.daemon();
    let within = place.await_note(note, 2);
    eprintln!("killed at {note:?}, went on within {within:.2?}");
    assert!(within < goes_on_within(first), "{within:?}, and {first:?} the first time");
    place.unset(hold);
    place.await_state("done");
    let history = must_be_done(&place, &[1, 1]);
    assert_eq!(history.count("retry_triggered"), 0);
    must_be_in_order(&place.journal());
    next.signal(Signal::TERM);
    assert_eq!(next.end().code, 0);
    place.await_quiet();
}

#[test]
fn p10_killed_in_mid_work() {
    kill("hold-work-1", "work begin 1");
}

#[test]
fn p10_p11_killed_in_mid_gate() {
    kill("hold-gate-1", "gate begin 1");
}

#[test]
fn p10_killed_between_the_end_of_a_run_and_its_last_marks() {
    let place = Place::new();
    place.plan(1, "");
    let unmarked = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    let marked = || std::fs::read_to_string(place.path("work/p.md")).unwrap().contains("status: done");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &place.exec()]);
    wait_until("the marks", marked);
    let run = place.must(&["db", "psql", "--owner", "--", "-Atc", "select id from runs"]).out;
    daemon.kill().unwrap();
    // The state before the interrupted write: the text less the marks, and the checkpoint's file.
    std::fs::write(place.path("work/p.md"), unmarked).unwrap();
    let kept = place.path("state/checkpoints").join(run.trim());
    std::fs::create_dir_all(&kept).unwrap();

    let mut next = place.daemon();
    next.hear("ready");
    wait_until("the marks again", marked);
    wait_until("nothing is kept", || !kept.exists());
    next.signal(Signal::TERM);
    assert_eq!(next.end().code, 0);
    place.await_quiet();
}

/// Writes the plan `p.md`, which `q.md` is to follow.
fn write_chain(place: &Place) {
    place.plan(1, "");
    let text = std::fs::read_to_string(place.path("work/p.md")).unwrap();
    std::fs::write(place.path("work/q.md"), &text).unwrap();
    let chained = text.replacen("---\n\n", "then: q.md\n---\n\n", 1);
    assert_ne!(chained, text);
    std::fs::write(place.path("work/p.md"), chained).unwrap();
}

#[test]
fn h_50_a_plan_follows_once_another_start_that_stood_still_is_over() {
    let place = Place::new();
    write_chain(&place);
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.set("hold-gate-1");
    place.start_and_leave("gate begin 1");
    let others = place.lock_starts();
    place.unset("hold-gate-1");
    let is_starting = || place.those_that_have_open("state/starting/").contains(&daemon.pid());
    wait_until("the plan that follows waits", is_starting);
    wait_until("it waits no more", || !is_starting());
    let sql = |text: &str| place.must(&["db", "psql", "--owner", "--", "-Atc", text]).out.trim().to_owned();
    assert_eq!(sql("select count(*) from follow_ups"), "0", "what may pass is no verdict");
    assert_eq!(place.json(&["daemon", "status", "--json"])["health"]["is_alive"], true);
    drop(others);
    wait_until("the run that follows", || {
        sql("select name || ' ' || status from runs where name like 'q-%'") == "q-1 awaiting"
    });
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}

#[test]
fn h_50_killed_between_the_end_of_a_run_and_the_beginning_of_the_one_that_follows() {
    let place = Place::new();
    write_chain(&place);
    let sql = |text: &str| place.must(&["db", "psql", "--owner", "--", "-Atc", text]).out.trim().to_owned();
    let followers = || sql("select string_agg(name || ' ' || status, ',') from runs where name like 'q-%'");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &place.exec()]);
    wait_until("the end of the first", || sql("select count(*) from runs where ended_at is not null") == "1");
    daemon.kill().unwrap();
    let mut next = place.daemon();
    next.hear("ready");
    wait_until("the run that follows", || followers() == "q-1 awaiting");
    // Killed once more, where it was made and nobody knows that it was.
    next.kill().unwrap();
    sql("delete from follow_ups");
    let mut last = place.daemon();
    last.hear("ready");
    wait_until("the record", || sql("select count(*) from follow_ups where made is not null") == "1");
    assert_eq!(followers(), "q-1 awaiting", "it was made once");
    last.signal(Signal::TERM);
    assert_eq!(last.end().code, 0);
}
