//! The end of a run that worked in a worktree, as people are told of it.

use std::fs::{self, File};

use serde_json::Value;

use super::receiver::{Got, Receiver, WEBHOOK, configure, daemon};
use crate::support::{Place, wait_until};

#[test]
fn a_run_is_told_to_be_done_once_it_is_known_whether_its_result_is_to_be_merged() {
    let place = Place::new();
    place.plan(1, "");
    let (other, exec) = (place.other("q.md"), place.exec());
    let plan = fs::read_to_string(place.path("work/p.md")).unwrap();
    fs::write(place.path("work/p.md"), plan.replace("retry(1), then abort", "escalate")).unwrap();
    place.commit();
    place.set("flaky-1");
    let receiver = Receiver::new();
    configure(&place, WEBHOOK);
    let _daemon = daemon(&place, &receiver);
    place.must(&["plan", "run", "p.md", "--approve", "-d", "--workspace", "worktree", "--exec", &exec]);
    let ask = receiver.await_ask("escalation").json()["data"]["ask"]["id"].to_string();
    let view = place.json(&["plan", "status", "p-1", "--json"]);
    let tree = view["worktree"]["path"].as_str().unwrap();
    let moved = place.foreign("git").args(["-C", tree, "checkout", "--quiet", "--detach"]).status();
    assert!(moved.unwrap().success());

    // The look at the worktree takes long, as where git does.
    let slow = File::create(place.path("state/worktrees.lock")).unwrap();
    slow.lock().unwrap();
    place.must(&["approvals", "waive", &ask, "--note", "good enough"]);
    place.must(&["-C", &other, "plan", "run", "q.md", "--approve", "-d", "--exec", &exec]);
    let end_of = |run: &str| -> Option<Value> {
        let mut got = receiver.got().into_iter().map(|got: Got| got.json());
        got.find(|said| said["type"] == "run.done" && said["data"]["run"] == run)
    };
    wait_until("the end of the other run is told", || end_of("q-1").is_some());
    assert_eq!(end_of("p-1"), None);

    drop(slow);
    wait_until("the end of the run is told", || end_of("p-1").is_some());
    let sentence = end_of("p-1").unwrap()["data"]["sentence"].to_string();
    assert!(sentence.contains("; not to be merged: could not commit what was judged in "), "{sentence}");
}
