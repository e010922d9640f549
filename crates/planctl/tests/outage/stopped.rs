//! Processes that stand still: a worker that stops itself, a planctl that sleeps while another takes its run (P4, P5).

use rustix::process::Signal;

use crate::support::Place;
use crate::support::history::{History, must_be_done};

/// Short, since these tests wait until leases are over; long enough for a busy machine to renew one in time.
const LEASE_SECONDS: u64 = 4;

#[test]
fn p5_a_worker_that_stopped_itself_is_ended_at_its_deadline_and_tried_again() {
    let place = Place::new();
    place.plan(2, "**timeout:** 1s\n");
    std::fs::write(
        place.path("worker.sh"),
        "if [ $PLANCTL_STEP$PLANCTL_ATTEMPT = 11 ]; then kill -STOP $$; fi; echo good >out-$PLANCTL_STEP\n",
    )
    .unwrap();
    let said = place.start_run().end();
    assert_eq!(said.code, 0, "{said:?}");
    let status = place.json(&["plan", "status", "@last", "--json"]);
    assert_eq!((status["state"].as_str(), status["steps"][0]["attempts"].as_u64()), (Some("done"), Some(2)));
    let history = History::of(&place, "@last");
    history.must_be_whole();
    assert!(history.count("retry_triggered") == 1, "{:?}", history.names());
    assert!(place.must(&["audit"]).out.starts_with("sound "));
    place.await_quiet();
}

#[test]
fn p12_a_planctl_that_slept_past_its_lease_alone_keeps_what_its_worker_did() {
    let place = Place::with_leases_of(LEASE_SECONDS);
    place.plan(2, "");
    place.set("hold-work-1");
    let going = place.start_run();
    place.await_note("work begin 1", 1);
    // Another process keeps the time, and only looks on.
    going.signal(Signal::STOP);
    let over = "select count(*) from items where state = 'leased' and lease_until < clock_timestamp()";
    crate::support::wait_until("the lease is over", || {
        place.must(&["db", "psql", "--owner", "--", "-Atc", over]).out.trim() == "1"
    });
    place.unset("hold-work-1");
    place.await_note("work end 1", 1);
    going.signal(Signal::CONT);
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    let history = must_be_done(&place, &[1, 1]);
    assert_eq!(place.noted("work begin 1"), 1, "the work was lost: {:?}", history.names());
    place.await_quiet();
}

#[test]
fn p4_p5_a_planctl_that_slept_past_its_lease_changes_nothing() {
    let place = Place::with_leases_of(LEASE_SECONDS);
    place.plan(2, "");
    place.set("hold-work-1");
    let words = ["plan", "run", "p.md", "--approve", "--exec", &place.exec()];
    let sleeper = place.start_with(&words, &[("PLANCTL_LOG", "planctl_server=info".as_ref())]);
    place.await_note("work begin 1", 1);
    sleeper.signal(Signal::STOP);
    let other = place.start_run();
    let within = place.await_note("work begin 1", 2);
    eprintln!("taken over from a planctl that sleeps within {within:.2?}");
    // The sleeper's worker was ended before the other's began.
    assert_eq!(place.noted("overlap"), 0, "two workers in one workspace");
    place.set("hold-work-2");
    place.unset("hold-work-1");
    place.await_note("work begin 2", 1);
    assert_eq!(place.noted("work end 1"), 1);
    sleeper.signal(Signal::CONT);
    // Awake, it may look at its lease first, and then reports nothing.
    let refused = "select count(*) from refusals";
    crate::support::wait_until("the late report is refused and kept", || {
        sleeper.heard().contains("the lease is over")
            || place.must(&["db", "psql", "--owner", "--", "-Atc", refused]).out.trim() != "0"
    });
    assert_eq!(place.noted("gate begin 1"), 1);
    place.unset("hold-work-2");
    assert_eq!(other.end().code, 0);
    let said = sleeper.end();
    assert_eq!(said.code, 0, "the sleeper sees the run end: {said:?}");
    must_be_done(&place, &[1, 1]);
    assert_eq!(place.noted("gate begin"), 2, "no gate ran twice: {:#?}", place.journal());
    place.await_quiet();
}

#[test]
fn p9_a_gate_of_a_planctl_that_sleeps_is_not_joined_by_another() {
    let place = Place::with_leases_of(LEASE_SECONDS);
    place.plan(1, "");
    place.set("hold-gate-1");
    let sleeper = place.start_run();
    place.await_note("gate begin 1", 1);
    sleeper.signal(Signal::STOP);
    let other = place.start_run();
    // The lease runs out, and the other has the gate: but the workspace is not free.
    let taken = "select count(*) from items where state = 'leased' and generation > 2";
    crate::support::wait_until("the other has the gate", || {
        place.must(&["db", "psql", "--owner", "--", "-Atc", taken]).out.trim() == "1"
    });
    assert_eq!(place.noted("gate begin"), 1, "two gates in one workspace");
    // Waiting for the workspace it still hears a signal.
    other.signal(Signal::INT);
    let said = other.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert_eq!(place.noted("gate begin"), 1, "two gates in one workspace");
    place.unset("hold-gate-1");
    sleeper.signal(Signal::CONT);
    let said = sleeper.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1]);
    assert_eq!(place.noted("overlap"), 0);
    place.await_quiet();
}
