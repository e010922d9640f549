//! From a sentence to a call: a goal is resolved to the tools of a server, and its plan runs.

use crate::place::Place;

type Test = (&'static str, fn());

pub fn trials() -> Vec<Test> {
    vec![
        ("m_16_m_25_a_goal_finds_the_tools_of_the_servers_and_its_plan_runs", a_goal_runs),
        ("m_16_a_server_that_can_not_be_asked_is_told_of_and_left_out", a_lost_server_is_left_out),
    ]
}

/// The first example of the seed: a person says the page size, and the issues are listed.
const GOAL: &str = "list issues in acme/shop but ask me for the page size";

fn a_goal_runs() {
    let place = Place::new("effects = [\"read\"]");
    let said = place.planctl(&["goal", "resolve", GOAL, "--out", "plan.md"]);
    assert!(said.code == 0 && said.out.contains("perPage = the result of step 1"), "{said:?}");
    assert_eq!(place.asked(), ["initialize", "notifications/initialized", "tools/list"]);
    let said = place.planctl(&["goal", "verify", GOAL]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.asked().len(), 3, "the list is kept");
    let said = place.planctl(&["verify", "plan.md"]);
    assert!(said.code == 0 && said.out.contains("no problems"), "{said:?}");
    let said = place.planctl(&["run", "plan.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    let ask = place.fixture.ask();
    let shown = place.planctl(&["approvals", "show", &ask]).out;
    assert!(shown.contains("How many items per page? (e.g., 10, 25, 50)"), "{shown}");
    assert!(
        shown.contains("'YOUR ANSWER'"),
        "a call is given the answer, so it is in a person's own words: {shown}"
    );
    assert_eq!(place.planctl(&["approvals", "choose", &ask, "10"]).code, 0);
    let said = place.planctl(&["resume", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let calls = place.asked();
    assert_eq!(calls.last().map(String::as_str), Some("list_issues {\"perPage\":10,\"repo\":\"acme/shop\"}"));
    let why = place.planctl(&["why", "@last", "2"]).out;
    assert!(why.contains("serves I2: list issues in acme/shop"), "{why}");
    let again = place.planctl(&["goal", "resolve", GOAL, "--again", "--out", "again.md", "--explain"]);
    assert!(again.out.contains("history"), "what served the intent before is found first: {again:?}");
}

fn a_lost_server_is_left_out() {
    let place = Place::new("effects = [\"read\"]");
    let toml = place.fixture.read("planctl.toml");
    place
        .fixture
        .write("planctl.toml", &format!("{toml}\n[servers.lost]\ncommand = [\"/nowhere/at/all\"]\n"));
    assert_eq!(place.planctl(&["trust", "."]).code, 0);
    let said = place.planctl(&["goal", "resolve", GOAL, "--out", "plan.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("warning: could not use lost"), "{said:?}");
}
