//! Plans of the library's form whose steps say how they are verified, run as they are printed (rows G-04, H-11, H-30): with a
//! worker, and answered by a person where a person confirms.

use serde_json::{Value, json};

use super::fixture::Fixture;

const GRAPH: &str = include_str!("../../../planctl-lang/tests/fixtures/bugfix-graph.json");
const STEPS: &str = include_str!("../../../planctl-lang/tests/fixtures/bugfix-steps.json");
const LIBRARY: &str = include_str!("../../../planctl-lang/tests/fixtures/library-schema.json");

/// Counts its calls, and says something.
const WORKER: &str = "cat > prompt-$PLANCTL_NODE-$PLANCTL_ATTEMPT; echo $PLANCTL_NODE >> worked; echo looked";

fn verified(fixture: &Fixture, file: &str) {
    let said = fixture.planctl(&["plan", "verify", file]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

fn begin(fixture: &Fixture, file: &str) {
    let said = fixture.planctl(&["plan", "run", file, "--approve", "--no-wait", "--exec", WORKER]);
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
}

/// Gives an answer to the one ask that is open, and has the run go on unless that ended it.
fn answer(fixture: &Fixture, option: &str) {
    let ask = fixture.ask();
    let said = fixture.planctl(&["approvals", "choose", &ask, option]);
    assert_eq!(said.code, 0, "{option}: {}{}", said.out, said.err);
    // A run that is over can't be resumed.
    let is_over = fixture.status()["state"] == "done";
    assert_eq!(said.err.contains(" is done") && !said.err.contains("plan resume"), is_over, "{}", said.err);
    if fixture.status()["state"] == "running" {
        let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
        assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    }
}

/// Confirms every ask until the run is over.
fn confirm_all(fixture: &Fixture) -> Vec<Value> {
    let mut asked = Vec::new();
    while fixture.status()["state"] == "waiting" {
        asked.push(fixture.json(&["approvals", "--json"])["asks"][0]["asks"].clone());
        assert!(asked.len() < 20, "{asked:?}");
        answer(fixture, "done");
    }
    asked
}

#[test]
fn g04_the_graph_of_seed_2_verifies_and_runs_as_printed() {
    let fixture = Fixture::new();
    fixture.write("bugfix.json", GRAPH);
    verified(&fixture, "bugfix.json");
    begin(&fixture, "bugfix.json");
    let step = &fixture.status()["steps"][0];
    assert_eq!((&step["state"], &step["verdict"]), (&json!("waiting"), &Value::Null), "{step}");
    // G-14: a refused result takes the way for a failure, and comes back.
    answer(&fixture, "not done");
    let asked = confirm_all(&fixture);
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(
        asked[4].as_str().unwrap().contains("The plan asks: the output does not contain \"error\"."),
        "{asked:?}"
    );
    assert_eq!(fixture.status()["state"], "done");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    let path = ["reproduce", "gather_context", "reproduce", "isolate", "fix", "test", "verify_no_regression"];
    assert_eq!(way["path"], json!(path), "{way}");
    assert_eq!(
        fixture.read("worked"),
        "reproduce\ngather_context\nreproduce\nisolate\nfix\ntest\nverify_no_regression\n"
    );
    let step = &fixture.status()["steps"][0];
    assert_eq!((&step["state"], &step["verdict"]), (&json!("passed"), &Value::Null), "{step}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn g04_g22_the_fix_of_seed_2_is_tried_three_times_and_then_escalated() {
    let fixture = Fixture::new();
    fixture.write("bugfix.json", GRAPH);
    begin(&fixture, "bugfix.json");
    for _ in 0..2 {
        answer(&fixture, "done");
    }
    let ask = fixture.ask();
    let said = fixture.planctl(&["approvals", "choose", &ask, "not done", "--note", "the login still fails"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    let prompt = fixture.read("prompt-fix-2");
    assert!(prompt.contains("ann looked at the work and says that it is not done."), "{prompt}");
    assert!(prompt.contains("the login still fails"), "{prompt}");
    answer(&fixture, "not done");
    answer(&fixture, "not done");
    let status = fixture.status();
    assert_eq!(status["waiting_on"]["kind"], "escalation", "{status}");
    assert_eq!(fixture.read("worked").lines().filter(|node| *node == "fix").count(), 3);
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(shown.out.contains("ann says that it is not done"), "{}", shown.out);
}

#[test]
fn h11_the_steps_of_seed_3_verify_and_run_as_printed() {
    let fixture = Fixture::new();
    fixture.write("bugfix.json", STEPS);
    verified(&fixture, "bugfix.json");
    let shown = fixture.planctl(&["plan", "show", "bugfix.json"]);
    assert!(
        shown.out.contains("a person confirms the work") && !shown.out.contains("contract, which passes"),
        "{}",
        shown.out
    );
    begin(&fixture, "bugfix.json");
    let asked = confirm_all(&fixture);
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert_eq!(fixture.status()["state"], "done");
    assert_eq!(fixture.read("worked").lines().count(), 5);
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn h02_the_library_of_seed_3_verifies_and_runs_as_printed() {
    let fixture = Fixture::new();
    fixture.write("library.json", LIBRARY);
    verified(&fixture, "library.json");
    begin(&fixture, "library.json");
    // H-32: `warn` stays at the step, which is tried again.
    answer(&fixture, "not done");
    assert_eq!(fixture.read("worked").lines().count(), 2);
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    for words in [
        "Is this done? Run git status",
        "The plan asks: the output contains \"On branch\".",
        "the worker's last words (they are not evidence)\n  worker │ looked\n",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    answer(&fixture, "done");
    assert_eq!(fixture.status()["state"], "done");
}

#[test]
fn h30_where_no_contract_decides_the_agent_works_first() {
    let fixture = Fixture::new();
    fixture.write(
        "poem.dot",
        "digraph poem { start a [prompt=\"Write a poem.\", contract=none] exit start -> a -> exit }",
    );
    let said = fixture.planctl(&[
        "plan",
        "run",
        "poem.dot",
        "--approve",
        "--no-wait",
        "--exec",
        "echo roses > poem.txt",
    ]);
    assert_eq!((said.code, fixture.read("poem.txt").as_str()), (3, "roses\n"), "{said:?}");
    answer(&fixture, "done");
    assert_eq!(fixture.status()["state"], "done");
}

#[test]
fn x02_a_check_of_an_output_is_made_by_the_harness_where_there_is_a_command() {
    let fixture = Fixture::new();
    fixture.write(
        "p.json",
        r#"{"steps": [{"name": "One", "action": "Do it", "contract": "cat said", "verify": {"type": "output_contains", "value": "ALL well"}, "on_fail": "retry(1), then abort"}]}"#,
    );
    verified(&fixture, "p.json");
    let worker =
        "[ $PLANCTL_ATTEMPT = 1 ] && echo bad > said || echo all Well > said; cat > prompt-$PLANCTL_ATTEMPT";
    let said = fixture.planctl(&["plan", "run", "p.json", "--approve", "--no-wait", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    let prompt = fixture.read("prompt-2");
    assert!(prompt.contains("the output does not contain: ALL well"), "{prompt}");
}
