//! From a sentence to a call: a goal is resolved to the tools of a server, and its plan runs.

use super::place::Place;

type Test = (&'static str, fn());

pub fn trials() -> Vec<Test> {
    vec![
        ("m_16_m_25_a_goal_finds_the_tools_of_the_servers_and_its_plan_runs", a_goal_runs),
        ("m_16_a_server_that_can_not_be_asked_is_told_of_and_left_out", a_lost_server_is_left_out),
        ("m_40_a_call_that_failed_in_a_run_is_mended_as_a_revision_that_a_person_approves", a_call_is_mended),
        (
            "m_23_m_24_issues_are_asked_for_listed_filtered_sorted_and_shown_from_a_sentence",
            a_goal_of_five_parts,
        ),
        ("m_24_a_plan_of_the_library_in_the_middle_gives_what_the_next_call_takes", a_plan_in_the_middle),
        ("m_40_a_call_that_failed_for_a_reason_outside_of_the_plan_is_not_mended", a_limit_is_no_fault),
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

/// The second example of the seed: what a person says, a server lists, a command of the project filters, and the end shows.
fn a_goal_of_five_parts() {
    let place = Place::new("effects = [\"read\"]");
    let tools = r#"{"tools": [{"name": "list_issues", "description": "Lists the issues of a repository",
        "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object", "required": ["repo"], "properties": {
            "repo": {"type": "string"}, "state": {"enum": ["open", "closed", "all"]}, "perPage": {"type": "integer"}}}}]}"#;
    place.fixture.write("issues.json", tools);
    let own = r#"[{"name": "bugs_by_number", "about": "Keeps the bugs of issues, sorted by their numbers",
        "command": "python3 bugs.py {issues}", "parameters": ["issues"]}]"#;
    place.fixture.write("own.json", own);
    let filter = "import json, sys\n\
                  bugs = [one for one in json.loads(sys.argv[1])['issues'] if 'bug' in one['labels']]\n\
                  print(json.dumps(sorted(bugs, key=lambda one: one['number'])))\n";
    place.fixture.write("bugs.py", filter);
    let intents = r#"{"title": "x", "confidence": 0.9, "intents": [
        {"id": "a", "text": "ask for the page size", "kind": "ask", "topic": "page size"},
        {"id": "b", "text": "ask for the state", "kind": "ask", "topic": "state"},
        {"id": "c", "text": "list issues in acme/shop", "needs": ["a", "b"]},
        {"id": "d", "text": "keep the bugs, sorted by number", "kind": "transform", "needs": ["c"], "tool": "bugs_by_number"},
        {"id": "e", "text": "show them", "kind": "transform", "needs": ["d"]}]}"#;
    place.fixture.write("intents.json", intents);
    let goal = "list the bugs of acme/shop by number, with page size and state as I say, and show them";
    let tools = ["--tools", "issues=issues.json", "--tools", "own.json"];
    let by = ["goal", "resolve", goal, "--out", "plan.md", "--agent", "exec:cat intents.json"];
    let said = place.planctl(&[&by[..], &tools].concat());
    assert!(said.code == 0 && said.out.contains("next: planctl run plan.md"), "{said:?}");
    let said = place.planctl(&["verify", "plan.md"]);
    assert!(said.code == 0 && said.out.contains("no problems"), "{said:?}");
    assert_eq!(place.planctl(&["run", "plan.md", "--approve", "--no-wait"]).code, 3);
    let asks = place.fixture.json(&["approvals", "ls", "--json"]);
    for ask in asks["asks"].as_array().unwrap() {
        let is_page = ask.to_string().contains("items per page");
        let answer = if is_page { "10" } else { "all" };
        assert_eq!(
            place.planctl(&["approvals", "choose", &ask["id"].to_string(), answer]).code,
            0,
            "{ask:#}"
        );
    }
    let said = place.planctl(&["resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let call = "list_issues {\"perPage\":10,\"repo\":\"acme/shop\",\"state\":\"all\"}";
    assert_eq!(place.asked().last().map(String::as_str), Some(call));
    let shown = place.planctl(&["logs", "@last", "--step", "5"]).out;
    let places: Vec<Option<usize>> =
        ["Typo", "Crash at start", "Zoom is wrong"].iter().map(|title| shown.find(title)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{shown}");
    assert!(!shown.contains("Add a map"), "it is no bug: {shown}");
}

/// An intent that a plan of the library serves is a step, and the call after it takes its output.
fn a_plan_in_the_middle() {
    let place = Place::new("effects = [\"read\"]");
    let choosing = "---\ntype: plan\nowner: ann\ntriggers: [choose, repository]\n---\n\n# Choose a repository\n\n## Steps\n\n\
                    ### 1. Choose\n\n**type:** call\n\n**contract:**\n```bash\nprintf acme/shop\n```\nexit_code == 0\n";
    place.fixture.write("plans/choosing.md", choosing);
    let intents = r#"{"title": "x", "confidence": 0.9, "intents": [
        {"id": "a", "text": "choose the repository", "topic": "repository"},
        {"id": "b", "text": "list issues", "needs": ["a"]}]}"#;
    place.fixture.write("intents.json", intents);
    let goal = "list the issues of a repository that is chosen first";
    let resolve = ["goal", "resolve", goal, "--out", "plan.md", "--agent", "exec:cat intents.json"];
    let said = place.planctl(&resolve);
    assert_eq!(said.code, 0, "{said:?}");
    let text = place.fixture.read("plan.md");
    for part in ["**type:** sub-plan\n", "**plan:** plans/choosing.md\n", "\"repo\": \"${steps.1.output}\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = place.planctl(&["verify", "plan.md"]);
    assert!(said.code == 0 && said.out.contains("no problems"), "{said:?}");
    let said = place.planctl(&["run", "plan.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "the plan within waits for an approval of its own: {said:?}");
    assert!(!place.asked().iter().any(|call| call.starts_with("list_issues")), "{:?}", place.asked());
    assert_eq!(place.planctl(&["approvals", "approve", &place.fixture.ask()]).code, 0);
    let said = place.planctl(&["resume", "plan-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let asked = place.asked();
    assert!(asked.contains(&"list_issues {\"repo\":\"acme/shop\"}".to_owned()), "{asked:?}");
}

/// Resolves a goal and runs its plan until the call has failed for good.
fn failed(place: &Place, goal: &str) {
    let said = place.planctl(&["goal", "resolve", goal, "--out", "plan.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = place.planctl(&["run", "plan.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
}

fn a_call_is_mended() {
    let place = Place::new("effects = [\"read\"]");
    let goal = "list issues in acme/lost";
    failed(&place, goal);
    let repair = ["goal", "resolve", goal, "--out", "plan.md", "--repair", "plan-1"];
    let said = place.planctl(&repair);
    assert!(said.code == 1 && said.err.contains("none is named"), "{said:?}");
    let invented = "exec:echo '{\"capability\": \"issues.drop_all\", \"arguments\": {}}'";
    let by = |writer| place.planctl(&[&repair[..], &["--agent", writer]].concat());
    let said = by(invented);
    assert!(said.code == 1 && said.err.contains("no capability `issues.drop_all`"), "{said:?}");
    assert!(place.fixture.read("plan.md").contains("acme/lost"), "nothing of it became a plan");

    // Three answers were no use, so the goal is resolved from the beginning and fails again.
    let said = place.planctl(&["goal", "resolve", goal, "--out", "plan.md", "--again"]);
    assert_eq!(said.code, 0, "{said:?}");
    let mends = "exec:tee prompt >/dev/null; cp prompt \"$HOME/prompt\"; \
                 echo '{\"capability\": \"issues.list_issues\", \"arguments\": {\"repo\": \"acme/shop\"}}'";
    let said = by(mends);
    assert!(said.code == 0 && said.out.contains("waits for your approval of it"), "{said:?}");
    assert!(said.err.contains("acme/shop"), "what changes is shown: {said:?}");
    let asked = std::fs::read_to_string(place.fixture.home().join("prompt")).unwrap();
    for part in ["list issues in acme/lost", "there is no repository acme/lost", "issues.list_issues"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let calls = place.asked().iter().filter(|call| call.starts_with("list_issues")).count();
    let said = by("exec:false");
    assert_eq!(said.code, 0, "a failure is told once: {said:?}");
    assert_eq!(
        place.asked().iter().filter(|call| call.starts_with("list_issues")).count(),
        calls,
        "nothing ran"
    );
    let said = place.planctl(&[&repair[..], &["--approve"]].concat());
    assert!(said.code == 0 && said.out.contains("next: planctl resume plan-1"), "{said:?}");
    let said = place.planctl(&["resume", "plan-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.asked().last().map(String::as_str), Some("list_issues {\"repo\":\"acme/shop\"}"));
}

fn a_limit_is_no_fault() {
    let place = Place::new("effects = [\"read\"]");
    let goal = "list issues in acme/limited";
    failed(&place, goal);
    let repair = ["goal", "resolve", goal, "--out", "plan.md", "--repair", "plan-1", "--agent", "exec:false"];
    let said = place.planctl(&repair);
    assert!(said.code == 1 && said.err.contains("no change of the plan can fix"), "{said:?}");
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
