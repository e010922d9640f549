//! The database goes away in mid-run and comes back: the run goes on by itself (P12).

use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::support::chance::Chance;
use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{Place, is_alive, wait_until};

/// Takes the database away again and again while a run goes on, each time once the run has got a little further.
fn survive(seed: u64, rounds: u32, mut take_away: impl FnMut(&Place)) {
    let place = Place::new();
    place.plan(8, "");
    place.set("flaky-2");
    place.set("flaky-6");
    place.set("hold-work-8");
    let going = place.start_run();
    place.await_note("", 1);
    let mut chance = Chance::new(seed);
    let mut slowest = Duration::ZERO;
    for _ in 0..rounds {
        let lines = place.noted("");
        std::thread::sleep(chance.within_ms(30));
        take_away(&place);
        if place.noted("work begin 8") == 0 {
            slowest = slowest.max(place.await_note("", lines + 2));
        }
    }
    place.unset("hold-work-8");
    let said = going.end();
    eprintln!("went on within {slowest:.2?} at the latest");
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 2, 1, 1, 1, 2, 1, 1]);
    must_be_in_order(&place.journal());
    assert_eq!(place.noted("work begin"), 10, "no work was done twice: {:#?}", place.journal());
    place.await_quiet();
}

#[test]
fn p12_a_postgres_killed_again_and_again_is_brought_back_and_the_run_goes_on() {
    survive(1, 6, |place| {
        let server = place.postmaster().unwrap();
        kill_process(server, Signal::KILL).unwrap();
        wait_until("another server", || place.postmaster().is_some_and(|now| now != server && is_alive(now)));
    });
}

#[test]
fn p12_a_postgres_stopped_by_db_stop_is_started_again_and_the_run_goes_on() {
    survive(2, 4, |place| {
        place.must(&["db", "stop"]);
    });
}

/// Ends every session but its own, again and again for two seconds.
const STORM: &str = "do $$ begin for round in 1..50 loop perform pg_stat_clear_snapshot(); \
     perform pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = 'planctl'; \
     perform pg_sleep(0.04); end loop; end $$";

#[test]
fn p2_p12_backends_that_are_terminated_again_and_again_lose_nothing() {
    survive(3, 2, |place| {
        place.must(&["db", "psql", "--owner", "--", "-Atc", STORM]);
    });
}

#[test]
fn p12_others_go_on_when_the_owner_of_the_cluster_is_killed() {
    let place = Place::new();
    place.plan(3, "");
    place.set("hold-work-2");
    let owner = place.start_run();
    place.await_note("work begin 2", 1);
    let mut watching = place.start(&["-v", "plan", "watch", "@last"]);
    watching.hear("using private Postgres");
    place.must(&["plan", "status", "@last"]);
    owner.kill().unwrap();
    let status = place.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["state"], "running", "{status}");
    let again = place.start_run();
    place.await_note("work begin 2", 2);
    assert!(!watching.is_over(), "{}", watching.heard());
    place.unset("hold-work-2");
    assert_eq!(again.end().code, 0);
    let watched = watching.end();
    assert_eq!(watched.code, 0, "{watched:?}");
    assert!(watched.err.contains("run=done"), "{watched:?}");
    must_be_done(&place, &[1, 1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p12_a_run_goes_on_when_a_watcher_that_owns_the_cluster_is_killed() {
    let place = Place::new();
    place.plan(3, "");
    place.set("hold-work-1");
    let first = place.start_run();
    place.await_note("work begin 1", 1);
    let mut owner = place.start(&["-v", "plan", "watch", "@last"]);
    owner.hear("using private Postgres");
    // The watcher takes the cluster over from the run that ends, and the next run is its guest.
    first.kill().unwrap();
    let lock = place.path("state/pg/supervisor.lock");
    let pid = owner.pid().as_raw_nonzero().to_string();
    wait_until("the watcher owns the cluster", || {
        std::fs::read_to_string(&lock).is_ok_and(|text| text.trim() == pid)
    });
    let going = place.start_run();
    place.await_note("work begin 1", 2);
    owner.kill().unwrap();
    place.unset("hold-work-1");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p12_psql_speaks_to_one_server_from_beginning_to_end() {
    let place = Place::new();
    assert_eq!(
        place.must(&["db", "psql", "--owner", "--", "-Atc", "select count(*) from runs"]).out.trim(),
        "0"
    );
    let log = std::fs::read_to_string(place.path("state/pg/postgres.log")).unwrap();
    assert_eq!(log.matches("ready to accept connections").count(), 1, "{log}");
}
