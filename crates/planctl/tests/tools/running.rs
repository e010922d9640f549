//! Plans whose calls use tools: arguments from earlier steps, loops, conditions, faults, and the asks before effects.

use serde_json::Value;

use super::place::Place;
use crate::fixture::Said;

type Test = (&'static str, fn());

pub fn trials() -> Vec<Test> {
    vec![
        ("m_48_m_26_issues_are_listed_as_a_person_asks_filtered_sorted_and_shown", issues_end_to_end),
        ("m_45_a_call_goes_through_a_list_and_gives_a_list", loops),
        ("m_48_a_sub_plan_between_two_calls_gives_its_last_output_to_the_next", sub_plans_give),
        ("m_44_a_decision_looks_at_a_result_and_a_fault_has_a_way_of_its_own", decisions_and_faults),
        ("m_36_an_effect_waits_for_a_person_and_each_attempt_asks_anew", effects_ask),
        ("m_34_what_a_role_is_denied_asks_and_what_it_is_allowed_does_not_in_its_calls", effects_of_roles),
        ("m_35_m_36_a_rejected_effect_never_happens", rejected_effects),
        ("m_42_m_27_a_plan_is_verified_against_the_tools_that_are_known", verified),
        ("m_43_calls_of_branches_in_worktrees_run_side_by_side", side_by_side),
        ("an_effect_is_never_answered_by_auto_answer_or_by_an_approved_plan", never_automatic),
    ]
}

const HEAD: &str =
    "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Issues\n\n**Budget:** max 10k tokens\n\n## Steps\n";

pub fn call(number: u32, tool: &str, arguments: &str, more: &str) -> String {
    format!(
        "\n### {number}. Use {tool} {number}\n\n**type:** call\n**task:**\nUse it.\n**server:** issues\n**tool:** {tool}\n\
         **arguments:**\n{arguments}\n{more}\n"
    )
}

pub fn plan(steps: &[String]) -> String {
    format!("{HEAD}{}", steps.concat())
}

/// Runs a plan that is approved, as far as it goes by itself.
fn run(place: &Place, name: &str, text: &str) -> Said {
    place.fixture.write(name, text);
    place.planctl(&["run", name, "--approve", "--no-wait"])
}

fn answer(place: &Place, word: &str, more: &[&str]) -> Said {
    let ask = place.fixture.ask();
    let words: Vec<&str> =
        ["approvals", word, ask.as_str()].into_iter().chain(more.iter().copied()).collect();
    let said = place.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
    place.planctl(&["resume", "@last", "--no-wait"])
}

fn printed(place: &Place) -> String {
    place.planctl(&["logs", "@last", "--json"]).out
}

/// The calls that reached the server.
fn calls(place: &Place) -> Vec<String> {
    let methods = ["initialize", "notifications/initialized", "tools/list"];
    place.asked().into_iter().filter(|asked| !methods.contains(&asked.as_str())).collect()
}

/// A call, a plan within the plan that filters, and a call that takes what it gave.
fn sub_plans_give() {
    let place = Place::new("effects = [\"read\", \"network\"]");
    let first = r#"import json,sys; print(json.dumps({"repo": "acme/shop", "first": "note"}))"#;
    let inner = serde_json::json!({"name": "Inner", "graph": {
        "start": "look",
        "nodes": {
            "look": {"type": "call", "command": format!("python3 -c '{first}'")},
            "done": {"type": "exit"},
        },
        "edges": [{"from": "look", "to": "done", "condition": "on_success"}],
    }});
    // A plan within the plan within: what it gives is what the innermost gave.
    let middle = serde_json::json!({"name": "Middle", "graph": {
        "start": "before",
        "nodes": {
            "before": {"type": "call", "command": "echo not this"},
            "inner": {"type": "sub_plan", "stack.child_dotfile": "inner.json", "stack.child_approval": "inherit"},
            "done": {"type": "exit"},
        },
        "edges": [
            {"from": "before", "to": "inner", "condition": "on_success"},
            {"from": "inner", "to": "done", "condition": "on_success"},
        ],
    }});
    let outer = serde_json::json!({"name": "Outer", "graph": {
        "start": "within",
        "nodes": {
            "within": {"type": "sub_plan", "stack.child_dotfile": "middle.json", "stack.child_approval": "inherit"},
            "list": {"type": "call", "server": "issues", "tool": "list_issues", "arguments":
                {"repo": "${steps.within.output.repo}"}},
            "read": {"type": "call", "command": "grep -q acme/shop \"$PLANCTL_OUTPUTS/within\""},
            "done": {"type": "exit"},
        },
        "edges": [
            {"from": "within", "to": "list", "condition": "on_success"},
            {"from": "list", "to": "read", "condition": "on_success"},
            {"from": "read", "to": "done", "condition": "on_success"},
        ],
    }});
    for (name, graph) in [("inner.json", &inner), ("middle.json", &middle)] {
        place.fixture.write(name, &graph.to_string());
    }
    let done = run(&place, "outer.json", &outer.to_string());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(calls(&place), ["list_issues {\"repo\":\"acme/shop\"}"], "{done:?}");
    assert!(printed(&place).contains("acme/shop"), "{}", printed(&place));
}

fn issues_end_to_end() {
    let place = Place::new("effects = [\"read\", \"network\"]");
    let filter = r#"import json,sys; found=json.load(open(sys.argv[1]))["issues"]; bugs=[i for i in found if "bug" in i["labels"]]; print(json.dumps(sorted(bugs,key=lambda i:i["number"])))"#;
    let show = r##"import json,sys; [print("#%d %s" % (i["number"], i["title"])) for i in json.load(open(sys.argv[1]))]"##;
    let graph = serde_json::json!({"name": "Bugs of a repository", "graph": {
        "start": "page",
        "nodes": {
            "page": {"type": "human", "prompt": "How many items per page? (e.g., 10, 25, 50)"},
            "state": {"type": "human", "prompt": "Issue state: open, closed, or all?"},
            "list": {"type": "call", "server": "issues", "tool": "list_issues", "arguments":
                {"repo": "acme/shop", "state": "${steps.state.output}", "perPage": "${steps.page.output}"}},
            "bugs": {"type": "call", "command": format!("python3 -c '{filter}' \"$PLANCTL_OUTPUTS/list\"")},
            "show": {"type": "call", "command": format!("python3 -c '{show}' \"$PLANCTL_OUTPUTS/bugs\"")},
            "done": {"type": "exit"},
        },
        "edges": [
            {"from": "page", "to": "state", "condition": "on_success"},
            {"from": "state", "to": "list", "condition": "on_success"},
            {"from": "list", "to": "bugs", "condition": "on_success"},
            {"from": "bugs", "to": "show", "condition": "on_success"},
            {"from": "show", "to": "done", "condition": "on_success"},
        ],
    }});
    let waits = run(&place, "bugs.json", &graph.to_string());
    assert_eq!(waits.code, 3, "{waits:?}");
    let waits = answer(&place, "choose", &["10"]);
    assert_eq!(waits.code, 3, "{waits:?}");
    let done = answer(&place, "choose", &["open"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(calls(&place), ["list_issues {\"perPage\":10,\"repo\":\"acme/shop\",\"state\":\"open\"}"]);
    let shown = printed(&place);
    assert!(shown.contains("#5 Crash at start\\n#7 Zoom is wrong"), "{shown}");
}

fn loops() {
    let place = Place::new("effects = [\"read\"]\ntools.close_issue = []");
    let list = call(1, "list_issues", "- repo: acme/shop\n- state: all", "");
    let close = call(2, "close_issue", "- number: ${item.number}", "**for_each:** ${steps.1.output.issues}");
    let last = call(3, "close_issue", "- number: ${steps.1.output.issues[1].number}", "");
    let done = run(&place, "loop.md", &plan(&[list, close, last]));
    assert_eq!(done.code, 0, "{done:?}");
    let closed: Vec<String> =
        calls(&place).into_iter().filter(|call| call.starts_with("close_issue")).collect();
    let numbers = [7, 3, 5, 2, 3].map(|number| format!("close_issue {{\"number\":{number}}}"));
    assert_eq!(closed, numbers);
    let printed = printed(&place);
    assert!(printed.contains("closed 7") && printed.contains("closed 2"), "{printed}");
}

fn decisions_and_faults() {
    let place = Place::new("effects = []");
    let list = call(1, "list_issues", "- repo: acme/shop", "");
    let many = "\n### 2. Are there many?\n\n**type:** decision\n**contract:**\n```shell\n\
                grep -q '\"total\":3' \"$PLANCTL_OUTPUTS/1\"\n```\nexit_code == 0\n";
    let limited = call(3, "fail", "- words: rate limit exceeded", "**on_fail:** abort");
    let never = call(4, "close_issue", "- number: 1", "");
    let wait = call(5, "close_issue", "- number: 2", "");
    let flow = "\n## Flow\n\n- 2 -> 3\n- 2 -> 4 on fail\n- 3 -> 5 on fail if steps.3.exit_code=75\n- 3 -> done\n- 4 -> done\n- 5 -> done\n";
    let text = plan(&[list, many.to_owned(), limited, never, wait, flow.to_owned()]);
    let done = run(&place, "ways.md", &text);
    assert_eq!(done.code, 0, "{done:?}\n{}", printed(&place));
    let calls = calls(&place);
    assert_eq!(calls.last().map(String::as_str), Some("close_issue {\"number\":2}"), "{calls:?}");
    assert!(!calls.iter().any(|call| call.contains("\"number\":1")), "{calls:?}");
}

fn effects_ask() {
    let place = Place::new("effects = [\"write\"]");
    let step = call(1, "fail", "- words: not now", "**on_fail:** retry(1), then abort");
    let waits = run(&place, "write.md", &plan(&[step]));
    assert_eq!(waits.code, 3, "{waits:?}");
    assert_eq!(calls(&place), Vec::<String>::new(), "it happened before a person allowed it");
    let list = place.fixture.json(&["approvals", "--json"]);
    let ask = &list["asks"][0];
    assert_eq!(ask["kind"], "effect");
    assert!(ask["asks"].as_str().unwrap_or_default().contains("it may write"), "{ask}");
    let page = place.planctl(&["approvals", "show", &ask["id"].to_string()]);
    assert!(page.out.contains("planctl tool call issues fail") && page.out.contains("not now"), "{page:?}");
    // Nobody can claim what was not allowed.
    let again = place.planctl(&["resume", "@last", "--no-wait"]);
    assert!(again.code != 0 && calls(&place).is_empty(), "{again:?}");
    let waits = answer(&place, "approve", &[]);
    assert_eq!(waits.code, 3, "the second attempt asks anew: {waits:?}");
    assert_eq!(calls(&place).len(), 1);
    let failed = answer(&place, "approve", &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(calls(&place).len(), 2);
}

fn effects_of_roles() {
    let roles =
        "[roles.blind]\neffects = { deny = [\"read\"] }\n[roles.closer]\neffects = { allow = [\"write\"] }\n";
    let place = Place::new(&format!("effects = [\"read\"]\ntools.close_issue = [\"write\"]\n\n{roles}"));
    let of = |number, tool, arguments, role| call(number, tool, arguments, &format!("**target:** {role}"));
    let list = "- repo: acme/shop";
    let steps = [
        call(1, "list_issues", list, ""),
        of(2, "close_issue", "- number: 2", "closer"),
        of(3, "list_issues", list, "blind"),
        of(4, "list_issues", list, "closer"),
        call(5, "close_issue", "- number: 5", ""),
    ];
    let waits = run(&place, "roles.md", &plan(&steps));
    let why = |place: &Place| place.fixture.json(&["approvals", "--json"])["asks"][0]["asks"].to_string();
    // Step 2 asked nobody: its role is allowed to write.
    for (step, words) in [(3, "read is denied without a person"), (4, "it may read"), (5, "it may write")] {
        assert_eq!(calls(&place).len(), step - 1, "{waits:?} {:?}", calls(&place));
        assert!(why(&place).contains(words), "step {step}: {}", why(&place));
        answer(&place, "approve", &[]);
    }
    assert_eq!(place.fixture.status()["state"], "done");
    let asks = |words: &[&str]| place.fixture.json(words)["asks"].clone();
    assert_eq!(asks(&["tool", "show", "issues", "close_issue", "--role", "closer", "--json"]), Value::Null);
    assert_eq!(asks(&["tool", "show", "issues", "list_issues", "--json"]), Value::Null);
    let denied = asks(&["tool", "show", "issues", "list_issues", "--role", "blind", "--json"]);
    assert_eq!(denied, "read is denied without a person");
    let missing = place.planctl(&["tool", "ls", "--role", "closr"]);
    assert!(missing.code == 4 && missing.err.contains("did you mean closer?"), "{missing:?}");
    place.fixture.write("v.md", &plan(&[of(1, "close_issue", "- number: 1", "closr")]));
    let near = place.planctl(&["verify", "v.md"]);
    assert!(near.code == 1 && near.out.contains("error[P401]"), "{near:?}");
}

fn rejected_effects() {
    let place = Place::new("effects = [\"delete\"]");
    let step = call(1, "close_issue", "- number: 1", "**on_fail:** retry(2), then abort");
    run(&place, "delete.md", &plan(&[step]));
    let said = place.planctl(&["approvals", "reject", &place.fixture.ask(), "--note", "never"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.fixture.status()["state"], "failed");
    assert_eq!(calls(&place), Vec::<String>::new());
}

fn verified() {
    let place = Place::new("effects = []");
    place.planctl(&["tool", "ls"]);
    let found = |step: String| {
        place.fixture.write("v.md", &plan(&[step]));
        let said = place.planctl(&["verify", "v.md"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains("error[P215]"), "{said:?}");
        said.out
    };
    let ten = found(call(1, "list_issues", "- repo: a/b\n- perPage: ten", ""));
    assert!(ten.contains("\"ten\" is not of type \"integer\"") && ten.contains("v.md:22:3"), "{ten}");
    assert!(found(call(1, "list_issues", "- perPage: 10", "")).contains("\"repo\" is a required property"));
    assert!(found(call(1, "list_issue", "- repo: a/b", "")).contains("did you mean `list_issues`?"));
    let other = call(1, "fail", "- words: x", "").replace("**server:** issues", "**server:** isues");
    assert!(found(other).contains("did you mean `issues`?"));
    assert!(found(call(1, "fail", "- words: ${steps.2.output}", "")).contains("there is no step `2`"));
    let later = plan(&[call(1, "fail", "- words: ${steps.2.output}", ""), call(2, "fail", "- words: x", "")]);
    place.fixture.write("v.md", &later);
    assert!(place.planctl(&["verify", "v.md"]).out.contains("step `2` does not come before it"));
    let fine = [
        call(1, "list_issues", "- repo: a/b\n- perPage: \"10\"", ""),
        call(2, "fail", "- words: ${steps.1.output.total}", ""),
    ];
    place.fixture.write("v.md", &plan(&fine));
    let said = place.planctl(&["verify", "v.md"]);
    assert!(said.code == 0 && !said.out.contains("warning"), "{said:?}");
}

fn side_by_side() {
    let place = Place::new("effects = []");
    crate::fixture::git(&place.fixture.path(""), &["init", "-q"]);
    crate::fixture::git(&place.fixture.path(""), &["add", "."]);
    crate::fixture::git(&place.fixture.path(""), &["commit", "-q", "-m", "Begin"]);
    let step = |number: u32, other: u32| {
        let more = "**needs:** none\n**workspace:** worktree\n**contract_timeout:** 60 s\n**on_fail:** abort";
        call(number, "meet", &format!("- own: \"{number}\"\n- other: \"{other}\""), more)
    };
    let text = plan(&[step(1, 2), step(2, 1)]).replace("**Budget:**", "**parallel:** 2\n**Budget:**");
    let done = run(&place, "meet.md", &text);
    assert_eq!(done.code, 0, "each waits for the other: {done:?}");
}

fn never_automatic() {
    let place = Place::new("");
    let step = call(1, "close_issue", "- number: 1", "");
    place.fixture.write("auto.md", &plan(&[step]));
    let waits = place.planctl(&["run", "auto.md", "--approve", "--auto-answer", "--no-wait"]);
    assert_eq!(waits.code, 3, "{waits:?}");
    assert_eq!(calls(&place), Vec::<String>::new());
}
