//! Plans of the library's form whose steps say how they are verified, run as they are printed (rows G-04, H-11, H-30): with a
//! worker, and answered by a person where a person confirms.

use serde_json::{Value, json};

use super::room::Room;

const GRAPH: &str = include_str!("../../../planctl-lang/tests/fixtures/bugfix-graph.json");
const STEPS: &str = include_str!("../../../planctl-lang/tests/fixtures/bugfix-steps.json");
const LIBRARY: &str = include_str!("../../../planctl-lang/tests/fixtures/library-schema.json");

/// Counts its calls, and says something.
const WORKER: &str = "cat > prompt-$PLANCTL_NODE-$PLANCTL_ATTEMPT; echo $PLANCTL_NODE >> worked; echo looked";

fn verified(room: &Room, file: &str) {
    let said = room.planctl(&["plan", "verify", file]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

fn begin(room: &Room, file: &str) {
    let said = room.planctl(&["plan", "run", file, "--approve", "--no-wait", "--exec", WORKER]);
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
}

/// Gives an answer to the one ask that is open, and has the run go on unless that ended it.
fn answer(room: &Room, option: &str) {
    let ask = room.ask();
    let said = room.planctl(&["approvals", "choose", &ask, option]);
    assert_eq!(said.code, 0, "{option}: {}{}", said.out, said.err);
    // A run that is over can't be resumed.
    let is_over = room.status()["state"] == "done";
    assert_eq!(said.err.contains(" is done") && !said.err.contains("plan resume"), is_over, "{}", said.err);
    if room.status()["state"] == "running" {
        assert_eq!(room.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    }
}

/// Confirms every ask until the run is over.
fn confirm_all(room: &Room) -> Vec<Value> {
    let mut asked = Vec::new();
    while room.status()["state"] == "waiting" {
        asked.push(room.json(&["approvals", "--json"])["asks"][0]["asks"].clone());
        assert!(asked.len() < 20, "{asked:?}");
        answer(room, "done");
    }
    asked
}

#[test]
fn g04_the_graph_of_seed_2_verifies_and_runs_as_printed() {
    let room = Room::new();
    room.write("bugfix.json", GRAPH);
    verified(&room, "bugfix.json");
    begin(&room, "bugfix.json");
    let step = &room.status()["steps"][0];
    assert_eq!((&step["state"], &step["verdict"]), (&json!("waiting"), &Value::Null), "{step}");
    // G-14: a refused result takes the way for a failure, and comes back.
    answer(&room, "not done");
    let asked = confirm_all(&room);
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(
        asked[4].as_str().unwrap().contains("The plan asks: the output does not contain \"error\"."),
        "{asked:?}"
    );
    assert_eq!(room.status()["state"], "done");
    let way = room.json(&["plan", "status", "@last", "--traversal", "--json"]);
    let path = ["reproduce", "gather_context", "reproduce", "isolate", "fix", "test", "verify_no_regression"];
    assert_eq!(way["path"], json!(path), "{way}");
    assert_eq!(
        room.read("worked"),
        "reproduce\ngather_context\nreproduce\nisolate\nfix\ntest\nverify_no_regression\n"
    );
    let step = &room.status()["steps"][0];
    assert_eq!((&step["state"], &step["verdict"]), (&json!("passed"), &Value::Null), "{step}");
    assert_eq!(room.planctl(&["audit"]).code, 0);
}

#[test]
fn g04_g22_the_fix_of_seed_2_is_tried_three_times_and_then_escalated() {
    let room = Room::new();
    room.write("bugfix.json", GRAPH);
    begin(&room, "bugfix.json");
    for _ in 0..2 {
        answer(&room, "done");
    }
    let ask = room.ask();
    let said = room.planctl(&["approvals", "choose", &ask, "not done", "--note", "the login still fails"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(room.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    let prompt = room.read("prompt-fix-2");
    assert!(prompt.contains("ann looked at the work and says that it is not done."), "{prompt}");
    assert!(prompt.contains("the login still fails"), "{prompt}");
    answer(&room, "not done");
    answer(&room, "not done");
    let status = room.status();
    assert_eq!(status["waiting_on"]["kind"], "escalation", "{status}");
    assert_eq!(room.read("worked").lines().filter(|node| *node == "fix").count(), 3);
    let shown = room.planctl(&["approvals", "show", &room.ask()]);
    assert!(shown.out.contains("ann says that it is not done"), "{}", shown.out);
}

#[test]
fn h11_the_steps_of_seed_3_verify_and_run_as_printed() {
    let room = Room::new();
    room.write("bugfix.json", STEPS);
    verified(&room, "bugfix.json");
    let shown = room.planctl(&["plan", "show", "bugfix.json"]);
    assert!(
        shown.out.contains("a person confirms the work") && !shown.out.contains("contract, exit code"),
        "{}",
        shown.out
    );
    begin(&room, "bugfix.json");
    let asked = confirm_all(&room);
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert_eq!(room.status()["state"], "done");
    assert_eq!(room.read("worked").lines().count(), 5);
    assert_eq!(room.planctl(&["audit"]).code, 0);
}

#[test]
fn h02_the_library_of_seed_3_verifies_and_runs_as_printed() {
    let room = Room::new();
    room.write("library.json", LIBRARY);
    verified(&room, "library.json");
    begin(&room, "library.json");
    // H-32: `warn` stays at the step, which is tried again.
    answer(&room, "not done");
    assert_eq!(room.read("worked").lines().count(), 2);
    let shown = room.planctl(&["approvals", "show", &room.ask()]);
    for words in [
        "Is this done? Run git status",
        "The plan asks: the output contains \"On branch\".",
        "what the worker said: planctl plan logs library-1",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    answer(&room, "done");
    assert_eq!(room.status()["state"], "done");
}

#[test]
fn h30_where_no_contract_decides_the_agent_works_first() {
    let room = Room::new();
    room.write(
        "poem.dot",
        "digraph poem { start a [prompt=\"Write a poem.\", contract=none] exit start -> a -> exit }",
    );
    let said = room.planctl(&[
        "plan",
        "run",
        "poem.dot",
        "--approve",
        "--no-wait",
        "--exec",
        "echo roses > poem.txt",
    ]);
    assert_eq!((said.code, room.read("poem.txt").as_str()), (3, "roses\n"), "{said:?}");
    answer(&room, "done");
    assert_eq!(room.status()["state"], "done");
}

#[test]
fn x02_a_check_of_an_output_is_made_by_the_harness_where_there_is_a_command() {
    let room = Room::new();
    room.write(
        "p.json",
        r#"{"steps": [{"name": "One", "action": "Do it", "contract": "cat said", "verify": {"type": "output_contains", "value": "ALL well"}, "on_fail": "retry(1), then abort"}]}"#,
    );
    verified(&room, "p.json");
    let worker =
        "[ $PLANCTL_ATTEMPT = 1 ] && echo bad > said || echo all Well > said; cat > prompt-$PLANCTL_ATTEMPT";
    let said = room.planctl(&["plan", "run", "p.json", "--approve", "--no-wait", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    let prompt = room.read("prompt-2");
    assert!(prompt.contains("the output does not contain: ALL well"), "{prompt}");
}
