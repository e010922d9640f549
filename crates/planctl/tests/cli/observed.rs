//! Guided steps without a contract: they pass by the output that the session's own program reports, where their plan checks
//! one (DESIGN 10), and say so for ever. The rows are those of seed 3.

use serde_json::{Value, json};

use super::guide::{
    Does::{Runs, Says, Writes},
    Session, claude, state,
};
use crate::fixture::Fixture;

/// A library's entry of steps that are checked by the output of a tool.
fn entry(steps: &Value) -> String {
    json!({
        "name": "Branch", "domains": ["git_ops"], "triggers": ["new branch"], "trigger_threshold": 1, "steps": steps
    })
    .to_string()
}

fn step(name: &str, verify: &Value) -> Value {
    json!({ "name": name, "action": format!("Do {name}."), "verify": verify, "on_fail": "warn", "required": true })
}

/// A workspace whose session is held to such steps, and has read the first.
fn held(steps: &Value) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("plans/branch.json", &entry(steps));
    let on = fixture.planctl(&["guide", "on", "plans/branch.json", "--approve"]);
    assert_eq!(on.code, 0, "{on:?}");
    claude(&fixture).hook("start", &json!({}));
    fixture
}

fn json_of(fixture: &Fixture, words: &[&str]) -> Value {
    let said = fixture.planctl(words);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

fn guide_state(fixture: &Fixture) -> Value {
    json_of(fixture, &["guide", "status", "--json"])["state"].clone()
}

fn grades(fixture: &Fixture) -> Vec<Option<String>> {
    let view = json_of(fixture, &["status", "@last", "--json"]);
    let steps = view["steps"].as_array().unwrap().iter();
    steps.map(|step| step["grade"].as_str().map(str::to_owned)).collect()
}

#[test]
fn h_21_h_25_an_output_passes_each_step_and_the_last_one_ends_the_plan_at_once() {
    let fixture = held(&json!([
        step("first", &json!({ "type": "output_contains", "value": "On branch" })),
        step("second", &json!({ "type": "any_output" })),
    ]));
    let session = claude(&fixture);
    let played = session.play(&[Runs("echo on BRANCH main"), Says("It is shown.")]);
    assert!(played.sent_back[0].contains("Do second."), "{played:?}");
    assert_eq!(grades(&fixture), [Some("observed".to_owned()), None]);
    let played = session.play(&[Runs("echo something"), Says("Done.")]);
    assert_eq!(played.sent_back.len(), 0, "{played:?}");
    let note = &played.notes[0];
    assert!(
        note.contains("is done; 2 steps passed, 2 of them as observed by the agent's own program"),
        "{note}"
    );
    assert_eq!(state(&fixture), "done");
    assert_eq!(guide_state(&fixture), Value::Null, "nothing holds the session any more");
}

#[test]
fn what_was_observed_says_so_in_status_history_logs_and_audit() {
    let fixture = held(&json!([
        step("first", &json!({ "type": "output_contains", "value": "fine" })),
        json!({ "name": "second", "action": "Write it.", "contract": "test -s it.txt", "on_fail": "block" }),
        step("third", &json!({ "type": "manual" })),
    ]));
    let session = claude(&fixture);
    session.play(&[
        Runs("echo all is fine"),
        Says("first"),
        Writes("it.txt", "x\n"),
        Says("second"),
        Says("third"),
    ]);
    assert_eq!(
        grades(&fixture),
        ["observed", "proved", "claimed"].map(|grade| Some(grade.to_owned())),
        "a claim waits for a person and passes nothing"
    );
    assert_eq!(state(&fixture), "waiting");
    let chosen = fixture.planctl(&["approvals", "choose", "done"]);
    assert_eq!(chosen.code, 0, "{chosen:?}");
    session.hook("prompt", &json!({ "prompt": "and now?" }));
    let status = fixture.planctl(&["status", "@last"]);
    assert!(
        status.out.contains("observed, not proved: the agent's own program reported the output"),
        "{status:?}"
    );
    let audit = fixture.planctl(&["audit", "@last"]);
    assert!(audit.out.contains("step 1 first: observed, not proved"), "{audit:?}");
    assert!(audit.out.contains("step 3 third: confirmed, not proved"), "{audit:?}");
    assert!(!audit.out.contains("step 2"), "{audit:?}");
    let events = fixture.planctl(&["events", "@last"]);
    assert!(events.out.contains("as observed, not proved"), "{events:?}");
    let logs = fixture.planctl(&["logs", "@last"]);
    assert!(
        logs.out.contains("observed passed: the output contains \"fine\" of echo all is fine"),
        "{logs:?}"
    );
    assert!(logs.out.contains("all is fine"), "{logs:?}");
    let view = json_of(&fixture, &["status", "@last", "--json"]);
    assert_eq!(view["state"], "done");
    assert!(
        view["reason"].as_str().unwrap().contains("of which 1 by what was observed, not proved"),
        "{view}"
    );
}

#[test]
fn h_22_without_an_output_nothing_is_checked_and_the_session_reads_its_step_again() {
    let fixture = held(&json!([step("first", &json!({ "type": "any_output" }))]));
    let session = claude(&fixture);
    let played = session.play(&[Says("I did it.")]);
    assert!(
        played.sent_back[0].contains("has reported the output of no tool since this step began"),
        "{played:?}"
    );
    assert!(played.sent_back[0].contains("Do first."), "{played:?}");
    let now = guide_state(&fixture);
    assert_eq!(
        (&now["verification_failures"], &now["turns_since_progress"]),
        (&json!(0), &json!(0)),
        "{now}"
    );
    assert_eq!(session.play(&[Runs("echo x"), Says("Now.")]).sent_back.len(), 0);
    assert_eq!(state(&fixture), "done");
}

#[test]
fn h_26_x02_an_output_that_must_not_contain_a_word_fails_by_it_and_by_a_silent_crash() {
    let fixture = held(&json!([step("test", &json!({ "type": "output_not_contains", "value": "error" }))]));
    let session = claude(&fixture);
    let played = session.play(&[Runs("echo 0 Errors"), Says("Tested.")]);
    assert!(played.sent_back[0].contains("the output contains: error"), "{played:?}");
    let played = session.play(&[Runs("exit 3"), Says("Tested.")]);
    assert!(played.sent_back[0].contains("the command exited with 3"), "{played:?}");
    assert_eq!(session.play(&[Runs("echo all is well"), Says("Tested.")]).sent_back.len(), 0);
    assert_eq!(state(&fixture), "done");
}

#[test]
fn h_27_x01_an_exit_code_is_the_real_one() {
    let fixture = held(&json!([step("test", &json!({ "type": "exit_code_zero" }))]));
    let session = claude(&fixture);
    let played = session.play(&[Runs("echo exit code 0; exit 1"), Says("It exited with 0.")]);
    assert!(played.sent_back[0].contains("the command exited with 1"), "{played:?}");
    assert_eq!(session.play(&[Runs("echo no error found"), Says("Again.")]).sent_back.len(), 0);
    assert_eq!(state(&fixture), "done");
}

#[test]
fn h_28_a_file_is_looked_for_by_the_harness_whatever_was_printed() {
    let fixture = held(&json!([step("write", &json!({ "type": "file_exists", "value": "made.txt" }))]));
    let session = claude(&fixture);
    let played = session.play(&[Runs("echo made.txt exists"), Says("It is there.")]);
    assert!(played.sent_back[0].contains("the contract failed"), "{played:?}");
    assert_eq!(session.play(&[Writes("made.txt", "x"), Says("Now.")]).sent_back.len(), 0);
    assert_eq!(grades(&fixture), [Some("proved".to_owned())]);
}

#[test]
fn h_29_space_is_no_output() {
    let fixture = held(&json!([step("look", &json!({ "type": "any_output" }))]));
    let played = claude(&fixture).play(&[Runs("printf '  \\n'"), Says("I looked.")]);
    assert!(played.sent_back[0].contains("printed nothing but space"), "{played:?}");
}

#[test]
fn h_30_x05_a_manual_step_is_a_persons_to_confirm_whatever_a_tool_printed() {
    let fixture = held(&json!([step("look", &json!({ "type": "manual" }))]));
    let played = claude(&fixture).play(&[Runs("echo confirmed"), Says("Confirmed.")]);
    assert_eq!(played.sent_back.len(), 0, "{played:?}");
    assert!(played.notes[0].contains("is not done; waiting for you"), "{played:?}");
    assert_eq!(grades(&fixture), [Some("claimed".to_owned())]);
    assert_eq!(fixture.planctl(&["approvals", "choose", "done"]).code, 0);
    claude(&fixture).hook("prompt", &json!({ "prompt": "on" }));
    assert_eq!((state(&fixture).as_str(), grades(&fixture)), ("done", vec![Some("confirmed".to_owned())]));
}

#[test]
fn h_32_h_36_a_failed_check_stays_at_its_step_which_is_also_what_holds_where_nothing_is_said() {
    let steps = json!([
        { "name": "first", "action": "Do it.", "verify": { "type": "output_contains", "value": "yes" } },
        { "name": "second", "action": "Do more.", "verify": { "type": "any_output" }, "on_fail": "warn" },
    ]);
    let fixture = held(&steps);
    let session = claude(&fixture);
    let played = session.play(&[Runs("echo no"), Says("Done.")]);
    assert!(
        played.sent_back[0].contains("Do it.") && !played.sent_back[0].contains("Do more."),
        "{played:?}"
    );
    assert_eq!(guide_state(&fixture)["current_step"], 0);
    let events = fixture.planctl(&["events", "@last"]);
    assert!(events.out.contains("did not pass by the output of `echo no` that was observed"), "{events:?}");
}

#[test]
fn h_37_a_step_that_is_not_required_may_fail_and_the_plan_is_done_with_a_warning() {
    let mut optional = step("optional", &json!({ "type": "output_contains", "value": "yes" }));
    optional["required"] = json!(false);
    let fixture = held(&json!([step("first", &json!({ "type": "any_output" })), optional]));
    let session = claude(&fixture);
    session.play(&[Runs("echo x"), Says("first")]);
    let mut notes = Vec::new();
    for _ in 0..3 {
        notes.extend(session.play(&[Runs("echo no"), Says("It may fail.")]).notes);
    }
    assert_eq!(state(&fixture), "done", "{notes:?}");
    let view = json_of(&fixture, &["status", "@last", "--json"]);
    assert_eq!((&view["steps"][1]["state"], &view["steps"][1]["grade"]), (&json!("warned"), &Value::Null));
}

#[test]
fn x04_one_output_is_evidence_for_one_step_once() {
    let fixture = held(&json!([
        step("first", &json!({ "type": "any_output" })),
        step("second", &json!({ "type": "any_output" })),
        step("third", &json!({ "type": "any_output" })),
    ]));
    let session = claude(&fixture);
    let played =
        session.play(&[Runs("echo one output"), Says("All three are done."), Says("Really."), Says("Yes.")]);
    assert!(played.sent_back[0].contains("Do second."), "{played:?}");
    for told in &played.sent_back[1..] {
        assert!(told.contains("the output of no tool since this step began"), "{played:?}");
    }
    assert_eq!(grades(&fixture), [Some("observed".to_owned()), None, None]);
    let other = Session { id: "s2", ..claude(&fixture) };
    let played = other.play(&[Says("The other session saw it.")]);
    assert!(played.sent_back[0].contains("the output of no tool"), "an output is its session's: {played:?}");
}

#[test]
fn a_run_without_a_session_has_a_person_confirm_what_only_an_agent_could_observe() {
    let fixture = Fixture::new();
    fixture.write("plans/branch.json", &entry(&json!([step("first", &json!({ "type": "any_output" }))])));
    let said =
        fixture.planctl(&["run", "plans/branch.json", "--approve", "--no-wait", "--exec", "echo output"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(grades(&fixture), [Some("claimed".to_owned())], "a worker's words are a claim");
}

#[test]
fn h_15_h_16_h_18_h_39_the_state_of_a_plan_has_the_names_of_the_seed() {
    let mut first = step("first", &json!({ "type": "output_contains", "value": "yes" }));
    first["max_retries"] = json!(9);
    let fixture = held(&json!([first, step("second", &json!({ "type": "any_output" }))]));
    let session = claude(&fixture);
    let now = guide_state(&fixture);
    assert_eq!(
        now,
        json!({
            "plan_id": "branch", "plan_name": "Branch", "domain": "git_ops", "current_step": 0,
            "steps_completed": [], "steps_failed": [], "total_steps": 2, "stale_after_turns": 10,
            "turns_since_progress": 0, "started_turn": now["started_turn"], "last_tool_output": "",
            "verification_failures": 0, "tool_failures": 0,
        })
    );
    assert!(now["started_turn"].as_u64() > Some(0), "{now}");

    session.play(&[Runs("exit 4"), Runs("echo no"), Says("Done.")]);
    session.play(&[Runs("echo no"), Says("Done.")]);
    session.play(&[Runs("echo still no")]);
    let now = guide_state(&fixture);
    assert_eq!(now["turns_since_progress"], 2, "H-16: a turn that does not get further counts");
    assert_eq!(
        (&now["verification_failures"], &now["tool_failures"]),
        (&json!(2), &json!(1)),
        "two counters: {now}"
    );
    assert_eq!(now["last_tool_output"], "still no\n");

    session.play(&[Runs("echo yes"), Says("Done.")]);
    let now = guide_state(&fixture);
    assert_eq!((&now["current_step"], &now["steps_completed"]), (&json!(1), &json!([0])));
    assert_eq!(now["turns_since_progress"], 0, "H-18: progress begins the count anew");
}

#[test]
fn h_17_h_19_g_40_a_plan_that_gets_no_further_for_ten_turns_asks_a_person_and_says_why() {
    let mut first = step("first", &json!({ "type": "output_contains", "value": "yes" }));
    first["max_retries"] = json!(20);
    let fixture = held(&json!([first]));
    let session = claude(&fixture);
    let fails = |number: usize| session.play(&vec![[Runs("echo no"), Says("Done.")]; number].concat());
    for _ in 0..2 {
        assert_eq!(fails(5).sent_back.len(), 5);
        session.hook("prompt", &json!({ "prompt": "go on" }));
    }
    assert_eq!(guide_state(&fixture)["turns_since_progress"], 10, "the tenth turn is alive");
    let played = fails(1);
    assert!(played.notes[0].contains("is not done; waiting for you"), "the eleventh is not: {played:?}");
    let events = json_lines(&fixture.planctl(&["events", "@last", "--json"]).out);
    let stall = events.iter().find(|event| event["event"] == "plan_expired").expect("a stall is an event");
    assert_eq!(stall["turns"], 11, "{stall}");
    assert!(stall["sentence"].as_str().unwrap().contains("11 turns"), "{stall}");
    let asked = fixture.planctl(&["approvals", "show"]);
    assert!(asked.out.contains("first"), "the person is told about which step: {asked:?}");
    assert_eq!(state(&fixture), "waiting", "a stale plan never vanishes (X-31)");
}

#[test]
fn h_14_the_beginning_of_a_plan_is_told_with_its_name_and_its_steps() {
    let fixture = held(&json!([
        step("first", &json!({ "type": "any_output" })),
        step("second", &json!({ "type": "any_output" })),
    ]));
    let events = fixture.planctl(&["events", "@last"]);
    assert!(events.out.contains("the run began: Branch (2 steps)"), "{events:?}");
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn h_23_h_31_x06_a_step_without_a_check_and_one_of_an_unknown_kind_are_errors() {
    let fixture = Fixture::new();
    let steps = json!([{ "name": "one", "action": "Do it." }, step("two", &json!({ "type": "vibes", "value": "x" }))]);
    fixture.write("plans/branch.json", &entry(&steps));
    let said = fixture.planctl(&["verify", "plans/branch.json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("nothing could say that its work is done"), "H-23: {said:?}");
    assert!(said.out.contains("`vibes` is not a value of `verify.type`"), "H-31: {said:?}");
}
