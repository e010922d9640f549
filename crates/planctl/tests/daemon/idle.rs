//! A daemon that has nothing to do leaves its database alone, and hears of work all the same.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Place, wait_until};

/// A minute of a daemon whose runs wait, or that has none, in seconds that a test can wait for.
const SPAN: Duration = Duration::from_secs(10);

/// The most statements of such a span: one each second feels whether the database answers.
const STATEMENTS_MAX: usize = 40;

/// Counts the statements that the private Postgres has logged.
fn statements(place: &Place) -> usize {
    let log = std::fs::read_to_string(place.path("state/pg/postgres.log")).unwrap();
    log.lines().filter(|line| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ")).count()
}

fn becomes_silent(place: &Place) {
    wait_until("it leaves the database alone", || {
        let before = statements(place);
        // A rate is measured over time.
        std::thread::sleep(SPAN);
        let counted = statements(place) - before;
        eprintln!("{counted} statements in {SPAN:?}");
        counted <= STATEMENTS_MAX
    });
}

#[test]
fn a_daemon_without_work_is_nearly_silent_and_begins_what_comes_at_once() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["db", "psql", "--owner", "--", "-qc", "alter system set log_statement = 'all'"]);
    place.must(&["db", "psql", "--owner", "--", "-qc", "select pg_reload_conf()"]);
    becomes_silent(&place);

    place.plan(2, "");
    place.set("hold-work-1");
    let asked = Instant::now();
    place.start_and_leave("work begin 1");
    eprintln!("the work began {:.2?} after it was asked for", asked.elapsed());
    place.must(&["pause", "p-1"]);
    place.unset("hold-work-1");
    place.await_state("paused");
    becomes_silent(&place);
    place.must(&["resume", "p-1"]);
    place.await_state("done");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}
