//! The planning tools over a real server: T-13, T-16, T-19 to T-23, X-24 and X-25.

use std::fs;

use serde_json::json;

use super::client::Client;
use crate::support::Place;

const PLANNING: [&str; 6] = [
    "planning_setup_plan",
    "planning_add_step",
    "planning_update_step",
    "planning_mark_step",
    "planning_clear_plan",
    "planning_read_plan",
];

#[test]
fn t_01_t_13_t_21_six_tools_keep_one_list_and_read_says_how_many_steps_it_has() {
    let place = Place::untouched();
    let mut client = Client::new(&place);
    let tools = client.tools();
    assert!(PLANNING.iter().all(|name| tools.iter().any(|tool| tool == name)), "{tools:?}");
    let none = ("not_found".to_owned(), "No plan is currently initialised.".to_owned());
    for (tool, given) in [
        ("planning_read_plan", json!({})),
        ("planning_clear_plan", json!({})),
        ("planning_add_step", json!({ "steps": [{ "title": "x" }] })),
        ("planning_update_step", json!({ "step_id": "S001", "title": "x" })),
        ("planning_mark_step", json!({ "step_id": "S001", "status": "done" })),
    ] {
        assert_eq!(client.refused(tool, given), none, "{tool}");
    }
    let said = client.must("planning_setup_plan", json!({ "objective": "triage open bug reports" }));
    assert_eq!(said["message"], "Plan initialised with 0 steps.");
    let read = client.must("planning_read_plan", json!({}));
    assert_eq!(read["message"], "Retrieved the current plan (no steps recorded).");
    let said = client.must("planning_add_step", json!({ "steps": [{ "title": "collect" }] }));
    assert_eq!(said["message"], "Added 1 step.");
    let read = client.must("planning_read_plan", json!({}));
    assert_eq!(read["message"], "Retrieved the current plan with 1 step.");
    client.must("planning_update_step", json!({ "step_id": "S001", "details": "from the inbox" }));
    let marked = json!({ "step_id": "S001", "status": "in_progress", "note": "begun" });
    assert_eq!(client.must("planning_mark_step", marked)["message"], "Step S001 marked as in_progress.");
    client.must(
        "planning_setup_plan",
        json!({ "objective": "another", "initial_steps": [{ "title": "a" }, { "title": "b" }] }),
    );
    let read = client.must("planning_read_plan", json!({}));
    assert_eq!(read["message"], "Retrieved the current plan with 2 steps.");
    assert_eq!((&read["plan"]["objective"], &read["plan"]["version"]), (&json!("another"), &json!(5)));
    assert_eq!(client.must("planning_clear_plan", json!({}))["plan"]["status"], "abandoned");
    let again = client.refused("planning_clear_plan", json!({}));
    assert_eq!(again, ("conflict".to_owned(), "Plan already abandoned.".to_owned()));
    assert!(client.end().success());
}

#[test]
fn t_07_t_15_what_is_wrong_with_a_call_is_said_to_the_model_in_fixed_words() {
    let place = Place::untouched();
    let mut client = Client::new(&place);
    let refused = client.refused("planning_setup_plan", json!({ "objective": "caf\u{e9}" }));
    assert_eq!(refused, ("bad_request".to_owned(), "Objective must be ASCII.".to_owned()));
    client.must("planning_setup_plan", json!({ "objective": "x", "initial_steps": [{ "title": "a" }] }));
    let refused = client.refused("planning_mark_step", json!({ "step_id": "S009", "status": "done" }));
    assert_eq!(refused, ("not_found".to_owned(), "Step S009 does not exist.".to_owned()));
    for odd in [
        json!({ "step_id": "S001", "status": "finished" }),
        json!({ "step_id": 1, "status": "done" }),
        json!({}),
    ] {
        assert_eq!(client.refused("planning_mark_step", odd).0, "bad_request");
    }
    let unknown = json!({ "objective": "x", "deadline": "tomorrow" });
    assert_eq!(client.refused("planning_setup_plan", unknown).0, "bad_request", "there is no scheduling");
}

#[test]
fn t_16_t_17_session_prompt_prints_a_strategy_and_react_is_the_default() {
    let place = Place::untouched();
    let prompt = |words: &[&str]| place.must(&[&["session", "prompt"], words].concat()).out;
    let react = prompt(&[]);
    assert_eq!(react, prompt(&["--strategy", "react"]), "byte for byte");
    for strategy in ["plan-act-reflect", "goal-decompose-route-synthesise"] {
        assert_ne!(prompt(&["--strategy", strategy]), react);
    }
    assert!(PLANNING.iter().all(|name| react.contains(&format!("`{name}`"))));
    assert_eq!(place.planctl(&["session", "prompt", "--strategy", "guess"]).code, 2);
}

#[test]
fn t_19_t_20_a_list_is_its_sessions_alone_and_ends_with_it() {
    let place = Place::untouched();
    let (mut first, mut second) = (Client::new(&place), Client::new(&place));
    first.must("planning_setup_plan", json!({ "objective": "mine" }));
    assert_eq!(second.refused("planning_read_plan", json!({})).0, "not_found", "another session's");
    let refused = first.refused("planning_read_plan", json!({ "session": "made-up" }));
    assert_eq!(refused.1, "planning_read_plan has no argument \"session\"; it takes none");
    assert!(first.end().success());
    let mut third = Client::new(&place);
    assert_eq!(third.refused("planning_read_plan", json!({})).1, "No plan is currently initialised.");
}

#[test]
fn t_20_x_24_x_25_a_list_is_kept_nowhere_and_moves_nothing() {
    let place = Place::untouched();
    let mut client = Client::new(&place);
    client.must("planning_setup_plan", json!({ "objective": "x", "initial_steps": [{ "title": "only" }] }));
    let done = client.must("planning_mark_step", json!({ "step_id": "S001", "status": "done" }));
    assert_eq!(done["plan"]["status"], "completed", "by the agent's own word, and of its own list");
    assert!(client.end().success());
    let state = place.path("state");
    let kept = fs::read_dir(&state).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "no database, and no file in {}", state.display());
    let work = fs::read_dir(place.path("work"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name() != ".git");
    assert_eq!(work.count(), 0, "and none in the workspace");
}

#[test]
fn x_24_a_completed_list_leaves_a_run_that_waits_as_it_was() {
    let place = Place::new();
    place.plan(1, "");
    assert_eq!(place.planctl(&["run", "p.md", "--no-wait", "--exec", &place.exec()]).code, 3);
    let before = place.json(&["status", "@last", "--json"]);
    let mut client = Client::new(&place);
    client.must(
        "planning_setup_plan",
        json!({ "objective": "p.md", "initial_steps": [{ "title": "Step 1" }] }),
    );
    client.must("planning_mark_step", json!({ "step_id": "S001", "status": "done" }));
    let seen = client.must("run_status", json!({ "run": "@last" }));
    assert!(client.end().success());
    assert_eq!(seen["state"], before["state"]);
    let after = place.json(&["status", "@last", "--json"]);
    assert_eq!((&after["state"], &after["steps"]), (&before["state"], &before["steps"]));
    place.await_quiet();
}

#[test]
fn t_22_each_call_is_the_one_event_that_every_tool_has() {
    let place = Place::untouched();
    let log = place.path("mcp.log");
    let mut client = Client::logging(&place, &log);
    client.shake_hands();
    client.must("planning_setup_plan", json!({ "objective": "a secret objective" }));
    client.must("planning_read_plan", json!({}));
    client.must("code_explain", json!({ "code": "P104" }));
    assert!(client.end().success());
    let log = fs::read_to_string(log).unwrap();
    let events: Vec<&str> = log.lines().filter(|line| line.contains("a tool was invoked")).collect();
    assert_eq!(events.len(), 3, "{log}");
    assert!(events[0].contains("planning_setup_plan") && events[2].contains("code_explain"), "{log}");
    assert!(!log.contains("a secret objective"), "no argument is logged: {log}");
    assert!(!log.lines().any(|line| line.contains("planctl_mcp::planning")), "nothing of their own: {log}");
}

#[test]
fn t_23_the_tools_are_left_out_where_a_flow_wants_none() {
    let place = Place::untouched();
    let mut client = Client::silent(&place, &["--no-planning"]);
    client.shake_hands();
    let tools = client.tools();
    assert!(!tools.iter().any(|tool| tool.starts_with("planning_")), "{tools:?}");
    assert_eq!(tools.len(), 10);
    let call = json!({ "name": "planning_read_plan", "arguments": {} });
    assert_eq!(client.ask("tools/call", call)["error"]["code"], -32602);
}
