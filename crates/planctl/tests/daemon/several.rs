//! Two daemons with state directories of their own on one database: none leads, and what one leaves the other takes up.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

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

#[test]
fn a_run_says_for_the_end_of_which_earlier_agent_its_step_waits() {
    let (place, _, daemons, keeper) = two();
    place.set("hold-work-1");
    place.start_and_leave("work begin 1");
    let sleeper = holder(&place);
    let kept = place.path(["one", "two"][sleeper]).join("instances").display().to_string();
    // Nobody is left who could end the agent: the daemon stands still, and so do those that it had start processes.
    let stopped: Vec<Pid> = place.those_that_have_open(&kept);
    stopped.iter().for_each(|process| kill_process(*process, Signal::STOP).unwrap());
    let other = place.path(["one", "two"][1 - sleeper]);
    let said = |words: &[&str]| place.start_with(words, &[("PLANCTL_STATE_DIR", other.as_os_str())]).end();
    let step = || {
        let said = said(&["plan", "status", "@last", "--json"]);
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap()["steps"][0].clone()
    };
    wait_until("the step says what it waits for", || step()["trouble"] != serde_json::Value::Null);
    let words = step()["trouble"].as_str().unwrap().to_owned();
    assert!(words.starts_with("waits for the end of an earlier agent: process "), "{words}");
    let number = words.split(' ').nth(9).unwrap();
    assert!(stopped.iter().any(|process| process.as_raw_nonzero().to_string() == number), "{words}");
    let human = said(&["plan", "status", "@last"]);
    assert!(
        human.out.contains(&format!("waits for the end of an earlier agent: process {number} ")),
        "{human:?}"
    );
    let why = said(&["why", "@last", "1"]);
    assert!(why.out.contains("waits for the end of an earlier agent"), "{why:?}");
    // Those that go on first may end others of them.
    for process in stopped {
        kill_process(process, Signal::CONT).ok();
    }
    place.await_note("work begin 1", 2);
    assert_eq!(step()["trouble"], serde_json::Value::Null);
    place.unset("hold-work-1");
    place.await_state("done");
    end(daemons, keeper);
}

#[test]
fn p4_p9_the_agent_of_a_worker_that_sleeps_past_its_lease_ends_before_that_of_another_begins() {
    let place = Place::with_leases_of(LEASE_SECONDS);
    place.plan(1, "");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    place.set("hold-work-1");
    let start = || place.start(&["worker", "run", "--role", "coder", "--exec", &place.exec(), "--once"]);
    let first = start();
    place.await_note("work begin 1", 1);
    first.signal(Signal::STOP);
    let second = start();
    place.await_note("work begin 1", 2);
    assert_eq!(place.noted("overlap"), 0, "two workers in one workspace: {:#?}", place.journal());
    place.unset("hold-work-1");
    place.await_state("done");
    first.signal(Signal::CONT);
    assert_eq!((first.end().code, second.end().code), (0, 0));
    assert_eq!(place.noted("work end 1"), 1, "{:#?}", place.journal());
    must_be_done(&place, &[1]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
}
