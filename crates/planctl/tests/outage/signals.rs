//! SIGTERM and Ctrl-C: what was under way goes back to its lane, and nothing stays alive (P22).

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::Place;
use crate::support::history::{History, must_be_done, must_be_in_order};

/// Stops a run while `note` is the newest line of its journal, and takes it up again.
fn stop_and_resume(signal: Signal, code: i32, hold: &str, note: &str, is_stubborn: bool) {
    let place = Place::new();
    place.plan(3, "");
    place.set(hold);
    if is_stubborn {
        place.set("stubborn");
    }
    let going = place.start_run();
    place.await_note(note, 1);
    let asked = Instant::now();
    going.signal(signal);
    let said = going.end();
    let within = asked.elapsed();
    eprintln!("{signal:?} in {note:?}: ended within {within:.2?}");
    assert_eq!(said.code, code, "{said:?}");
    assert!(said.err.contains("stopped; planctl plan resume p-1\n"), "{said:?}");
    assert!(within < Duration::from_secs(10), "{within:?}");
    place.await_quiet();

    let leased = "select count(*) from items where state = 'leased'";
    assert_eq!(
        place.must(&["db", "psql", "--owner", "--", "-Atc", leased]).out,
        "0\n",
        "the lease was given back"
    );
    let history = History::of(&place, "@last");
    history.must_be_whole();
    assert_eq!(history.count("clock.lease_lost"), 0, "it was given back, not lost: {:?}", history.names());

    place.unset(hold);
    let said = place.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p22_row_99_ctrl_c_in_mid_work() {
    stop_and_resume(Signal::INT, 130, "hold-work-2", "work begin 2", false);
}

#[test]
fn p22_row_99_ctrl_c_in_mid_gate() {
    stop_and_resume(Signal::INT, 130, "hold-gate-2", "gate begin 2", false);
}

#[test]
fn p22_terminated_in_mid_work_that_does_not_listen() {
    stop_and_resume(Signal::TERM, 143, "hold-work-2", "work begin 2", true);
}

#[test]
fn p22_terminated_in_mid_gate_that_does_not_listen() {
    stop_and_resume(Signal::TERM, 143, "hold-gate-2", "gate begin 2", true);
}

#[test]
fn p22_terminated_before_there_is_a_run() {
    let place = Place::new();
    place.plan(1, "");
    let mut going = place.start_run();
    // The cluster is being made.
    crate::support::wait_until("the cluster's folder", || place.path("state/pg").exists() || going.is_over());
    going.signal(Signal::TERM);
    let said = going.end();
    assert!([-1, 143].contains(&said.code), "{said:?}");
    place.await_quiet();
    assert_eq!(place.start_run().end().code, 0);
    must_be_done(&place, &[1]);
    place.await_quiet();
}
