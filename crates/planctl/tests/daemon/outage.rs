//! The database goes away and comes back: the daemon stays, and goes on by itself (P12).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{Going, Place, is_alive, wait_until};

/// A run in mid-work under a daemon.
fn in_mid_work(place: &Place) -> Going {
    place.plan(4, "");
    place.set("hold-work-2");
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.start_and_leave("work begin 2");
    daemon
}

fn ends_well(place: &Place, daemon: Going) {
    place.await_state("done");
    must_be_done(place, &[1, 1, 1, 1]);
    must_be_in_order(&place.journal());
    assert_eq!(place.noted("work begin"), 4, "no work was done twice: {:#?}", place.journal());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}

#[test]
fn p12_a_postgres_killed_in_mid_work_is_brought_back_and_the_run_goes_on() {
    let place = Place::new();
    let daemon = in_mid_work(&place);
    for _ in 0..3 {
        let server = place.postmaster().unwrap();
        kill_process(server, Signal::KILL).unwrap();
        wait_until("another server", || place.postmaster().is_some_and(|now| now != server && is_alive(now)));
    }
    place.unset("hold-work-2");
    ends_well(&place, daemon);
}

/// Reads are refused at once and never as a defect; whether the daemon is alive is another question.
fn the_doors_say_so(place: &Place) {
    let ask = |path: &str| {
        let mut socket = UnixStream::connect(place.path("state/daemon.sock")).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.to_lowercase()
    };
    let refused = ask("/v1/runs");
    assert!(refused.starts_with("http/1.1 503"), "{refused}");
    assert!(
        refused.contains("retry-after: 1") && refused.contains("/problems/database_unavailable"),
        "{refused}"
    );
    assert!(refused.contains("show_database"), "it does not say where the cause is to be seen: {refused}");
    assert!(ask("/healthz").starts_with("http/1.1 200"));
    assert!(ask("/readyz").starts_with("http/1.1 503"));
}

#[test]
fn p12_row_91_while_the_database_does_not_answer_the_daemon_stays_and_says_so() {
    away_for(Duration::ZERO);
}

/// The same for as long as an outage lasts: `just outage`.
#[test]
#[ignore = "ten minutes; just outage"]
fn p12_after_a_long_outage_the_run_goes_on_by_itself() {
    let minutes = std::env::var("OUTAGE_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    away_for(Duration::from_secs(60 * minutes));
}

/// Lists the server's processes.
fn family(server: Pid) -> Vec<Pid> {
    let number = server.as_raw_nonzero().to_string();
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1) == Some(&number)
    };
    let children = crate::support::processes().filter(is_child).filter_map(Pid::from_raw);
    children.chain([server]).collect()
}

/// Has the server stand still: connections are accepted by the kernel, and nothing answers.
fn stand_still(place: &Place) -> Pid {
    let server = place.postmaster().unwrap();
    kill_process(server, Signal::STOP).unwrap();
    // Until it stands it may still start one more.
    let stat = format!("/proc/{}/stat", server.as_raw_nonzero());
    wait_until("the server stands still", || {
        let text = std::fs::read_to_string(&stat).unwrap();
        text.rsplit(')').next().unwrap().trim_start().starts_with('T')
    });
    for process in family(server) {
        kill_process(process, Signal::STOP).ok();
    }
    server
}

#[test]
fn row_91_how_the_daemon_is_is_told_at_once_while_its_database_does_not_answer() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    stand_still(&place);
    let said = place.must(&["daemon", "status"]);
    assert!(said.out.contains("does not answer") || said.out.contains("away for"), "{said:?}");
}

#[test]
fn p22_a_daemon_whose_postgres_hangs_leaves_in_time_and_leaves_nothing_of_it() {
    let place = Place::new();
    let mut daemon = place.daemon();
    daemon.hear("ready");
    let server = stand_still(&place);
    let of_it = family(server);
    let asked = Instant::now();
    daemon.signal(Signal::TERM);
    daemon.hear("stopping");
    let said = place.must(&["daemon", "status"]);
    assert!(
        said.out.lines().any(|line| line.starts_with("state:") && line.ends_with("stopping")),
        "{said:?}"
    );
    let said = daemon.end();
    let within = asked.elapsed();
    eprintln!("with a Postgres that hangs left within {within:.2?}");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!of_it.into_iter().any(is_alive), "{:#?}", place.alive());
    assert!(said.err.trim_end().lines().next_back().unwrap().contains("stopped within "), "{said:?}");
    // Of 10 s, on a machine that may be busy; each of the two alone takes as long.
    assert!(within < Duration::from_secs(20), "it took {within:?}");
    place.await_quiet();
    place.must(&["plan", "status"]);
}

/// Takes the database away from a run in mid-work, for this long and until the daemon has noticed.
fn away_for(span: Duration) {
    let place = Place::with_leases_of(4);
    let mut daemon = in_mid_work(&place);
    let server = stand_still(&place);
    daemon.hear("the database is away");
    the_doors_say_so(&place);
    // The work ends meanwhile; its report waits.
    place.unset("hold-work-2");
    place.await_note("work end 2", 1);
    let until = Instant::now() + span;
    while Instant::now() < until {
        the_doors_say_so(&place);
        assert!(!daemon.is_over(), "it stays: {}", daemon.heard());
        std::thread::sleep(Duration::from_secs(1).min(until.saturating_duration_since(Instant::now())));
    }
    let back = Instant::now();
    for process in family(server) {
        kill_process(process, Signal::CONT).ok();
    }
    daemon.hear("the database is back");
    eprintln!("after {span:.0?} away, back within {:.2?}", back.elapsed());
    ends_well(&place, daemon);
}
