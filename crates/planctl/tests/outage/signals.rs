//! SIGTERM and Ctrl-C: items under way go back to their lanes, and nothing stays alive (P22).

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::history::{History, must_be_done, must_be_in_order};
use crate::support::{Place, wait_until};

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
    assert!(said.err.contains("stopped; planctl resume p-1\n"), "{said:?}");
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
    let place = Place::untouched();
    place.plan(1, "");
    let mut going = place.start_run();
    // The cluster is being made.
    wait_until("the cluster's folder", || place.path("state/pg").exists() || going.is_over());
    going.signal(Signal::TERM);
    let said = going.end();
    assert!([-1, 143].contains(&said.code), "{said:?}");
    place.await_quiet();
    assert_eq!(place.start_run().end().code, 0);
    must_be_done(&place, &[1]);
    place.await_quiet();
}

#[test]
fn b5_ctrl_c_ends_a_start_that_waits_for_another_planctl() {
    let place = Place::new();
    place.plan(1, "");
    assert_eq!(place.start_run().end().code, 0);
    let others = place.lock_starts();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let going = place.start(&["plan", "run", "p.md", "--again", "--approve", "--exec", &place.exec()]);
        going.await_open("state/starting/");
        let asked = Instant::now();
        going.signal(signal);
        let said = going.end();
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains("stopped; the run may have begun"), "{said:?}");
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    }
    drop(others);
    place.await_quiet();
}

#[test]
fn a_start_that_waits_says_which_process_starts_another_and_that_it_was_stopped() {
    let place = Place::new();
    place.plan(1, "");
    // Nobody can store a plan while this file exists, so the first start stands in its middle. A second program that looked for
    // the lock could end the server beside the first.
    let held = place.path("held");
    let lock = "begin; lock table plans in exclusive mode";
    let hold = format!(r"\! touch '{0}'; while [ -e '{0}' ]; do sleep 0.05; done", held.display());
    let locking = place.start(&["db", "psql", "--owner", "--", "-c", lock, "-c", &hold]);
    wait_until("the lock", || held.exists());
    let first = place.start_run();
    let pid = first.pid().as_raw_nonzero().to_string();
    wait_until("the first is starting", || {
        let locks = std::fs::read_dir(place.path("state/starting")).into_iter().flatten().flatten();
        locks.map(|lock| std::fs::read_to_string(lock.path()).unwrap()).any(|noted| noted == pid)
    });
    first.signal(Signal::STOP);
    let mut second = place.start_run();
    second.hear("waits for another start in ");
    let heard = second.heard();
    assert!(heard.contains(&format!("process {pid} (planctl plan run, stopped), for ")), "{heard}");
    drop(second.kill());
    first.signal(Signal::CONT);
    std::fs::remove_file(&held).unwrap();
    assert_eq!(locking.end().code, 0);
    assert_eq!(first.end().code, 0);
}

#[test]
fn b5_a_daemon_in_which_a_start_waits_for_another_planctl_is_gone_within_ten_seconds() {
    let place = Place::new();
    place.plan(1, "");
    let daemon = place.daemon();
    assert_eq!(place.start_run().end().code, 0);
    let others = place.lock_starts();
    let starting =
        place.start(&["plan", "run", "p.md", "--again", "--approve", "-d", "--exec", &place.exec()]);
    daemon.await_open("state/starting/");
    let asked = Instant::now();
    place.must(&["daemon", "stop"]);
    assert_eq!(daemon.end().code, 0);
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    starting.kill().unwrap();
    drop(others);
    place.await_quiet();
}

#[test]
fn b10_3_starts_in_two_workspaces_do_not_wait_for_one_another() {
    let place = Place::new();
    place.plan(1, "");
    assert_eq!(place.start_run().end().code, 0);
    let _others = place.lock_starts();
    let other = place.other("p.md");
    let said = place.planctl(&[
        "plan",
        "run",
        "p.md",
        "--workspace",
        &other,
        "-C",
        &other,
        "--approve",
        "--exec",
        &place.exec(),
    ]);
    assert_eq!(said.code, 0, "{said:?}");
}
