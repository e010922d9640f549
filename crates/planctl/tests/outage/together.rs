//! Several planctl processes on one run, and the helper that minds their child processes.

use crate::support::history::{must_be_done, must_be_in_order};
use crate::support::{Place, kill_line, wait_until};

#[test]
fn p8_three_that_begin_at_the_same_moment_work_on_one_run() {
    let place = Place::untouched();
    place.plan(6, "");
    place.set("flaky-3");
    let all = [place.start_run(), place.start_run(), place.start_run()];
    for going in all {
        let said = going.end();
        assert_eq!(said.code, 0, "{said:?}");
    }
    assert_eq!(place.json(&["ls", "--json"])["runs"].as_array().unwrap().len(), 1);
    must_be_done(&place, &[1, 1, 2, 1, 1, 1]);
    must_be_in_order(&place.journal());
    assert_eq!((place.noted("work begin"), place.noted("gate begin")), (7, 7), "nothing was done twice");
    place.await_quiet();
}

#[test]
fn p8_when_one_of_two_is_killed_the_other_goes_on() {
    let place = Place::new();
    place.plan(4, "");
    place.set("hold-work-2");
    let first = place.start_run();
    place.await_note("work begin 2", 1);
    let mut second = place.start_run();
    second.hear("taken up");
    first.kill().unwrap();
    let within = place.await_note("work begin 2", 2);
    eprintln!("the other went on within {within:.2?}");
    place.unset("hold-work-2");
    let said = second.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 1, 1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

/// Kills the processes of the helper in mid-item; planctl itself lives.
fn lose_helper(hold: &str, note: &str, is_only_guardian: bool) {
    let place = Place::new();
    place.plan(2, "");
    place.set(hold);
    let going = place.start_run();
    place.await_note(note, 1);
    let helpers: Vec<String> = place.alive().into_iter().filter(|line| line.contains("__spawn")).collect();
    assert!(helpers.len() >= 2, "the helper and the tree's guardian: {helpers:#?}");
    // The helper was there before its guardians.
    let victims = if is_only_guardian { &helpers[1..] } else { &helpers[..1] };
    victims.iter().for_each(|line| kill_line(line));
    wait_until("another try", || place.noted(note) > 1);
    place.unset(hold);
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done(&place, &[1, 1]);
    must_be_in_order(&place.journal());
    place.await_quiet();
}

#[test]
fn p11_a_guardian_that_is_killed_in_mid_work_costs_no_attempt() {
    lose_helper("hold-work-1", "work begin 1", true);
}

#[test]
fn p11_a_guardian_that_is_killed_in_mid_gate_costs_no_attempt() {
    lose_helper("hold-gate-1", "gate begin 1", true);
}

#[test]
fn p11_a_helper_that_is_killed_in_mid_work_costs_no_attempt() {
    lose_helper("hold-work-1", "work begin 1", false);
}

#[test]
fn p11_a_helper_that_is_killed_in_mid_gate_costs_no_attempt() {
    lose_helper("hold-gate-1", "gate begin 1", false);
}
