//! Two daemons with state directories of their own on one database: none leads, and what one leaves the other takes up.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{Going, Place, wait_until};

/// Short enough to wait for, long enough for three heartbeats under load.
const LEASE_SECONDS: u64 = 6;
/// Work lost on one state directory goes on under another within a lease and a sweep (P10).
const GOES_ON_WITHIN: Duration = Duration::from_secs(20);

/// Two daemons on one database; the place's own state directory has the database, and is no daemon's.
fn two() -> (Place, String, [Going; 2], Going) {
    two_with_leases_of(LEASE_SECONDS)
}

fn two_with_leases_of(seconds: u64) -> (Place, String, [Going; 2], Going) {
    let place = Place::with_leases_of(seconds);
    place.plan(2, "");
    // It keeps the private cluster up and works on nothing.
    let mut keeper = place.start(&["db", "psql", "--owner", "--", "-c", "select pg_sleep(600)"]);
    wait_until("the server", || place.postmaster().is_some() || keeper.is_over());
    place.must(&["plan", "status"]);
    let url = place.must(&["db", "url"]).out.trim().to_owned();
    let daemons = ["one", "two"].map(|name| {
        assert!(!keeper.is_over(), "nothing keeps the server up: {}", keeper.heard());
        let state = place.path(name);
        let mut daemon = place.start_with(
            &["daemon", "run", "--database-url", &url],
            &[("PLANCTL_STATE_DIR", state.as_os_str())],
        );
        daemon.hear("ready");
        daemon
    });
    (place, url, daemons, keeper)
}

fn end(daemons: [Going; 2], keeper: Going) {
    for daemon in daemons {
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.end().code, 0);
    }
    drop(keeper.kill());
}

/// Which of the two holds what is leased now, by the state directory that its helper's lock lies in.
fn holder(place: &Place) -> usize {
    let instance = "select instance from items where state = 'leased'";
    let mut found = None;
    wait_until("a holder", || {
        let said = place.must(&["db", "psql", "--owner", "--", "-Atc", instance]);
        let lock = format!("instances/{}.lock", said.out.trim());
        found = ["one", "two"].iter().position(|name| place.path(name).join(&lock).exists());
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn p10_what_one_daemon_leaves_when_it_is_killed_the_other_takes_up() {
    let (place, _, daemons, keeper) = two();
    place.set("hold-gate-1");
    place.start_and_leave("gate begin 1");
    let victim = holder(&place);
    let [one, two] = daemons;
    let (killed, other) = if victim == 0 { (one, two) } else { (two, one) };
    killed.kill().unwrap();
    let within = place.await_note("gate begin 1", 2);
    eprintln!("taken over within {within:.2?}");
    assert!(within < GOES_ON_WITHIN, "{within:?}");
    place.unset("hold-gate-1");
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    must_be_in_order(&place.journal());
    other.signal(Signal::TERM);
    assert_eq!(other.end().code, 0);
    drop(keeper.kill());
}

#[test]
fn b8_a_clone_of_the_machine_has_its_leases_ended_by_nobody_here() {
    // So long that no lease runs out by itself here, however busy the machine is.
    let (place, _, daemons, keeper) = two_with_leases_of(20);
    place.set("hold-work-1");
    place.start_and_leave("work begin 1");
    let ask =
        |words: &str| place.must(&["db", "psql", "--owner", "--", "-qAtc", words]).out.trim().to_owned();
    // A clone has the id of this host, was booted by itself, and has a state directory that is none of these two.
    let seen =
        ask("update items set boot = 'of the clone', instance = 'of-the-clone' where state = 'leased' \
         returning generation || ' ' || lease_until");
    let lease = || ask("select generation || ' ' || lease_until from items where state = 'leased'");
    let generation = seen.split(' ').next().unwrap().to_owned();
    // Between two renewals everybody looks many times for leases of the dead.
    wait_until("a renewal", || {
        let now = lease();
        assert!(now.starts_with(&format!("{generation} ")), "the lease was ended: {now:?}");
        now != seen
    });
    place.unset("hold-work-1");
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    end(daemons, keeper);
}

#[test]
fn p4_p8_p9_a_daemon_that_slept_past_its_lease_doubles_nothing() {
    let (place, _, daemons, keeper) = two();
    place.set("hold-gate-1");
    place.start_and_leave("gate begin 1");
    let sleeper = holder(&place);
    daemons[sleeper].signal(Signal::STOP);
    // The other has the gate once its lease is over, and waits for the workspace, in which the sleeper's still runs.
    let taken = "select count(*) from items where state = 'leased' and generation > 2";
    wait_until("the other has the gate", || {
        place.must(&["db", "psql", "--owner", "--", "-Atc", taken]).out.trim() == "1"
    });
    assert_eq!(place.noted("gate begin 1"), 1, "two gates in one workspace");
    place.unset("hold-gate-1");
    daemons[sleeper].signal(Signal::CONT);
    place.await_state("done");
    must_be_done(&place, &[1, 1]);
    must_be_in_order(&place.journal());
    end(daemons, keeper);
}

#[test]
fn p4_p9_agents_of_a_daemon_that_sleeps_past_its_lease_end_before_those_of_another_begin() {
    let (place, _, daemons, keeper) = two();
    place.set("hold-work-1");
    place.start_and_leave("work begin 1");
    let sleeper = holder(&place);
    daemons[sleeper].signal(Signal::STOP);
    let within = place.await_note("work begin 1", 2);
    eprintln!("taken over from a daemon that sleeps within {within:.2?}");
    assert_eq!(place.noted("overlap"), 0, "two workers in one workspace: {:#?}", place.journal());
    place.unset("hold-work-1");
    place.await_state("done");
    daemons[sleeper].signal(Signal::CONT);
    must_be_done(&place, &[1, 1]);
    assert_eq!(place.noted("work end 1"), 1, "{:#?}", place.journal());
    end(daemons, keeper);
}
