//! A defect of planctl itself in the work of one run: the daemon and the other runs go on, and the run says what happened.

use rustix::process::Signal;

use crate::support::history::History;
use crate::support::{Place, wait_until};

#[test]
fn a_panic_in_the_work_of_one_run_leaves_the_daemon_and_other_runs_alone() {
    let place = Place::new();
    place.plan(1, "");
    let other = place.other("q.md");
    let mut daemon = place.start_with(&["daemon", "run"], &[("PLANCTL_PLANTED_DEFECT", "p-1".as_ref())]);
    daemon.hear("ready");
    let exec = place.exec();
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--exec", &exec]);
    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    let state = |run: &str| place.json(&["plan", "status", run, "--json"])["state"].clone();
    wait_until("the other run is done", || state("q-1") == "done");
    wait_until("a person is asked about the one that can't go on", || state("p-1") == "waiting");

    let page = place.must(&["approvals", "show", "3"]).out;
    assert!(page.contains("planctl itself (a defect: planted for a test)"), "{page}");
    let history = History::of(&place, "p-1");
    history.must_be_whole();
    assert_eq!(history.count("retry_triggered"), 0, "no attempt was spent: {:?}", history.names());
    assert!(daemon.heard().contains("a defect of planctl: planted for a test"), "{}", daemon.heard());
    assert!(!daemon.is_over());
    assert_eq!(place.noted("work begin"), 1, "only the other run's work was done: {:#?}", place.journal());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    place.await_quiet();
}
