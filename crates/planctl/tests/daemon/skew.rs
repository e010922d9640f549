//! A host clock that is wrong by an hour: nothing but what logs say changes (P13).

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::support::Place;
use crate::support::history::{must_be_done, must_be_in_order};

/// The library that lies about the time, where it is installed.
fn faketime() -> Option<PathBuf> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    places
        .into_iter()
        .map(|place| PathBuf::from(place).join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
}

/// Lets a daemon whose clock is off finish a run that another process began.
fn skewed(by: &str) {
    let Some(library) = faketime() else {
        eprintln!("SKIPPED: libfaketime is not installed, so no clock was wrong");
        return;
    };
    let place = Place::with_leases_of(4);
    place.plan(3, "");
    place.set("flaky-2");
    place.set("hold-work-1");
    // The server keeps the true time: it is not the daemon that starts it.
    let keeper = place.start(&["db", "psql", "--owner", "--", "-c", "select pg_sleep(600)"]);
    crate::support::wait_until("the server", || place.postmaster().is_some());
    place.must(&["plan", "status"]);
    let variables = [
        ("LD_PRELOAD", library.as_os_str()),
        ("FAKETIME", OsStr::new(by)),
        ("DONT_FAKE_MONOTONIC", OsStr::new("1")),
    ];
    let mut daemon = place.start_with(&["daemon", "run"], &variables);
    daemon.hear("ready");
    place.start_and_leave("work begin 1");
    // It keeps its lease through several of its lengths.
    let lease = "select lease_until from items where state = 'leased'";
    let first = place.must(&["db", "psql", "--owner", "--", "-Atc", lease]).out;
    let renewed = format!(
        "select count(*) from items where state = 'leased' and lease_until > timestamptz '{}' + interval '8 s'",
        first.trim()
    );
    crate::support::wait_until("some renewals", || {
        place.must(&["db", "psql", "--owner", "--", "-Atc", &renewed]).out.trim() == "1"
    });
    place.unset("hold-work-1");
    place.await_state("done");
    let history = must_be_done(&place, &[1, 2, 1]);
    assert_eq!(history.count("clock.lease_lost"), 0, "{:?}", history.names());
    must_be_in_order(&place.journal());
    assert_eq!(place.noted("work begin 1"), 1);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    drop(keeper.kill());
}

#[test]
fn p13_a_daemon_an_hour_ahead() {
    skewed("+1h");
}

#[test]
fn p13_a_daemon_an_hour_behind() {
    skewed("-1h");
}
