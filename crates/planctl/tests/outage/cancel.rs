//! A cancellation from another process: the tree dies soon, and nothing is said any more (P16).

use std::time::{Duration, Instant};

use crate::support::history::History;
use crate::support::{Place, look_again};

/// A process that does not listen has five seconds from when it is told; without notifications that is at its next
/// heartbeat.
fn dead_within() -> Duration {
    Duration::from_secs(if std::env::var_os("PLANCTL_NOTIFY").is_some_and(|set| set == "off") {
        20
    } else {
        10
    })
}

/// Cancels a run while `note` is the newest line of its journal.
fn cancel(hold: &str, note: &str, verdicts: usize, is_stubborn: bool) {
    let place = Place::new();
    place.plan(3, "");
    place.set(hold);
    if is_stubborn {
        place.set("stubborn");
    }
    let going = place.start_run();
    place.await_note(note, 1);
    let asked = Instant::now();
    place.must(&["plan", "cancel", "@last", "--note", "enough"]);
    while !place.trees_alive().is_empty() {
        assert!(asked.elapsed() < dead_within(), "still alive: {:#?}", place.trees_alive());
        look_again(asked);
    }
    eprintln!("cancelled in {note:?}: dead within {:.2?}", asked.elapsed());
    let said = going.end();
    assert_eq!(said.code, 7, "{said:?}");
    place.unset(hold);
    let history = History::of(&place, "@last");
    history.must_be_whole();
    assert_eq!(history.verdicts().len(), verdicts, "{:?}", history.names());
    assert_eq!(history.names().last(), Some(&"plan_cancelled"), "{:?}", history.names());
    assert_eq!(place.json(&["plan", "status", "@last", "--json"])["state"], "cancelled");
    assert!(place.must(&["audit"]).out.starts_with("sound "));
    assert_eq!(place.planctl(&["plan", "resume", "@last"]).code, 5);
    place.await_quiet();
}

#[test]
fn p16_cancelled_in_mid_work() {
    cancel("hold-work-2", "work begin 2", 1, false);
}

#[test]
fn p16_cancelled_in_mid_gate() {
    cancel("hold-gate-2", "gate begin 2", 1, false);
}

#[test]
fn p16_cancelled_in_mid_work_that_does_not_listen() {
    cancel("hold-work-2", "work begin 2", 1, true);
}
