//! Rows of graphs as a person meets them, with real workers, contracts and a real database: prompts and profiles of agents,
//! epochs, waits, questions that answer themselves, views of the way, exports.

use serde_json::{Value, json};

use super::fixture::{Fixture, plan};
use super::http::{Ask, House};

/// Runs a graph to its end, or until a person is needed.
fn run(fixture: &Fixture, file: &str, worker: &str, more: &[&str]) -> (i32, String) {
    let words = [&["plan", "run", file, "--approve", "--no-wait", "--exec", worker], more].concat();
    let said = fixture.planctl(&words);
    (said.code, format!("{}{}", said.out, said.err))
}

#[test]
fn e1_what_is_wrong_is_found_before_anything_is_begun() {
    let fixture = Fixture::new();
    // It can be read, its goal is put in, and it is judged: only the last of the three finds the flaw.
    fixture.write(
        "bad.dot",
        "digraph bad { goal=\"ship\" start a [prompt=\"$goal\", contract=\"true\"] b [prompt=\"$goal\", contract=\"true\"] exit start -> a -> exit b -> exit }",
    );
    let (code, said) = run(&fixture, "bad.dot", "touch ran", &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing leads to node `b`"), "{said}");
    assert_eq!(fixture.read("ran"), "");
    assert_eq!(fixture.json(&["ls", "--all", "--json"])["runs"], json!([]));
    // An unreadable file is reported alone, and nothing of it is judged.
    fixture.write("worse.dot", "digraph worse { start -> ");
    let (code, said) = run(&fixture, "worse.dot", "touch ran", &[]);
    assert_eq!((code, fixture.read("ran").as_str()), (1, ""), "{said}");
}

/// Counts a file up until it is 3, and begins anew while it is not.
const COUNTED: &str = r#"digraph counted {
    loop_restart_persist_keys="n"
    start
    count [prompt="Count, and report `n`.", contract="test -s n.txt", max_visits=1]
    enough [shape=diamond]
    exit
    start -> count -> enough
    enough -> exit [condition="context.n=3"]
    enough -> count [on=always, loop_restart=true]
}
"#;

#[test]
fn e12_a_graph_begins_anew_until_it_has_enough() {
    let fixture = Fixture::new();
    fixture.write("counted.dot", COUNTED);
    let worker = r#"n=$(($(cat n.txt 2>/dev/null || echo 0) + 1)); echo $n > n.txt; printf '{"context_updates": {"n": %s}}' $n > "$PLANCTL_RESULT_FILE""#;
    let (code, said) = run(&fixture, "counted.dot", worker, &[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fixture.read("n.txt"), "3\n");
    let epochs = fixture.events_named("@last", "epoch_began");
    let told: Vec<_> = epochs.iter().map(|line| (&line["epoch"], &line["kept"])).collect();
    assert_eq!(told, [(&json!(1), &json!(["n"])), (&json!(2), &json!(["n"]))]);
    let checkpoint = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(checkpoint["visited"]["count"]["visits"], 1, "{checkpoint}");
    assert_eq!(checkpoint["visited"]["count"]["attempts"], 3, "{checkpoint}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn g07_an_exit_ends_the_run_as_done_and_one_of_a_failure_as_failed() {
    let fixture = Fixture::new();
    fixture.write(
        "ends.json",
        r#"{"graph": {"start": "a", "nodes": {
            "a": {"type": "task", "action": "Write it", "contract": "test -s it.txt"},
            "out": {"type": "exit"},
            "bad": {"type": "exit", "result": "failed"}},
            "edges": [{"from": "a", "to": "out", "condition": "on_success"}, {"from": "a", "to": "bad", "condition": "on_fail"}]}}"#,
    );
    for (worker, code, status, last) in
        [("true", 1, "failed", "plan_failed"), ("echo x > it.txt", 0, "done", "plan_completed")]
    {
        let (ended, said) = run(&fixture, "ends.json", worker, &[]);
        assert_eq!(ended, code, "{said}");
        assert_eq!(fixture.json(&["plan", "status", "@last", "--json"])["state"], status, "{said}");
        assert_eq!(fixture.events_named("@last", last).len(), 1, "{said}");
        assert_eq!(fixture.planctl(&["audit"]).code, 0);
    }
    // Where no way leads to success, the graph is refused.
    let hopeless =
        fixture.read("ends.json").replace(r#""type": "exit"}"#, r#""type": "exit", "result": "failed"}"#);
    fixture.write("hopeless.json", &hopeless);
    let (code, said) = run(&fixture, "hopeless.json", "touch ran", &[]);
    assert_eq!((code, fixture.read("ran").as_str()), (1, ""), "{said}");
    assert!(said.contains("P306"), "{said}");
}

#[test]
fn r2_r7_a_retry_waits_as_its_policy_says_and_a_run_that_is_taken_up_waits_on() {
    let fixture = Fixture::new();
    fixture.write(
        "waits.dot",
        "digraph waits { start a [prompt=x, contract=\"test -e twice\", retry_policy=standard] exit start -> a -> exit }",
    );
    let (code, said) = run(&fixture, "waits.dot", "[ -e once ] && touch twice; touch once", &[]);
    assert_eq!(code, 0, "{said}");
    let retries = fixture.events_named("@last", "retry_triggered");
    assert_eq!(retries.len(), 1);
    assert_eq!(retries[0]["left"], 3, "four retries where no number says otherwise: {retries:?}");
    let at = |line: &Value| line["at"].as_str().unwrap().to_owned();
    let begun = fixture.events_named("@last", "agent.reported");
    assert!(at(&begun[1]) > at(&retries[0]), "{begun:?}");
}

#[test]
fn f2_f3_g52_an_agent_is_told_the_run_so_far_and_what_it_is_to_be() {
    let fixture = Fixture::new();
    fixture.write(
        "told.dot",
        "digraph told { goal=\"No more timeouts\" start a [prompt=\"First.\", contract=\"true\", llm_model=\"large-2\", llm_provider=acme, reasoning_effort=high, profile=browser, thread_id=one] b [prompt=\"Second.\", contract=\"true\"] c [prompt=\"Third.\", contract=\"true\", fidelity=truncate] exit start -> a -> b -> c -> exit }",
    );
    let worker = "cat > prompt-$PLANCTL_STEP; env | grep -E '^PLANCTL_(MODEL|PROVIDER|EFFORT|PROFILE|THREAD)=' | sort > env-$PLANCTL_STEP";
    let (code, said) = run(&fixture, "told.dot", worker, &[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        fixture.read("env-1"),
        "PLANCTL_EFFORT=high\nPLANCTL_MODEL=large-2\nPLANCTL_PROFILE=browser\nPLANCTL_PROVIDER=acme\nPLANCTL_THREAD=one\n"
    );
    assert_eq!(fixture.read("env-2"), "PLANCTL_THREAD=a\n");
    let second = fixture.read("prompt-2");
    assert!(
        second.contains("# The run so far") && second.contains("Over so far:\n- a: passed\n"),
        "{second}"
    );
    assert!(second.contains("Goal: No more timeouts\n"), "{second}");
    let third = fixture.read("prompt-3");
    assert!(third.contains("Run: told-1\n") && !third.contains("a: passed"), "{third}");
}

#[test]
fn g52_the_profile_of_a_node_lands_in_the_payload_of_its_work_item() {
    let house = House::new();
    house.fixture.write(
        "told.dot",
        "digraph told { start a [prompt=\"First.\", contract=\"true\", llm_model=\"large-2\", profile=browser] exit start -> a -> exit }",
    );
    let said = house.fixture.planctl(&["plan", "run", "told.dot", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let claimed = house.claim();
    let profile = &claimed["work"]["payload"]["profile"];
    assert_eq!(
        (&profile["model"], &profile["name"], &profile["thread"]),
        (&json!("large-2"), &json!("browser"), &json!("start")),
        "{claimed}"
    );
}

#[test]
fn x4_what_a_worker_says_in_its_result_file_chooses_among_the_ways_of_a_pass() {
    let fixture = Fixture::new();
    fixture.write(
        "label.dot",
        "digraph label { start a [prompt=\"Which?\", contract=\"true\"] left [prompt=x, contract=\"true\"] right [prompt=x, contract=\"true\"] exit start -> a a -> left [label=Left] a -> right [label=Right] left -> exit right -> exit }",
    );
    let worker = r#"[ $PLANCTL_STEP != 1 ] || echo '{"preferred_label": "right", "notes": "the right one"}' > "$PLANCTL_RESULT_FILE""#;
    let (code, said) = run(&fixture, "label.dot", worker, &[]);
    assert_eq!(code, 0, "{said}");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(way["path"], json!(["a", "right"]), "{way}");
}

/// Two questions, one of which takes any text.
const ASKS: &str = r#"digraph asks {
    start
    ship [shape=hexagon, label="Ship it?"]
    when [shape=hexagon, label="When?", human.free_text=true, human.default_choice="tonight"]
    note [shape=parallelogram, tool_command="touch asked"]
    exit
    start -> ship
    ship -> when [label="[Y] Yes"]
    ship -> exit [label="[N] No"]
    when -> note [label="then"]
    note -> exit
}
"#;

#[test]
fn h7_h9_questions_of_a_plan_may_answer_themselves_on_record_and_nothing_else_does() {
    let fixture = Fixture::new();
    fixture.write("asks.dot", ASKS);
    let (code, said) = run(&fixture, "asks.dot", "true", &[]);
    assert_eq!(code, 3, "without the flag a person is waited for: {said}");
    let asks = fixture.json(&["approvals", "--json"]);
    assert_eq!(asks["asks"][0]["answers"], json!(["choose", "skip", "revise", "abort"]), "{asks}");
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--auto-answer"]);
    assert_eq!(done.code, 0, "{done:?}");
    let answered = fixture.events_named("@last", "ask_answered");
    let told: Vec<_> = answered
        .iter()
        .filter(|line| line["kind"] == "choice")
        .map(|line| {
            (line["option"].as_str().unwrap(), line["by"].as_str().unwrap(), line["note"].is_string())
        })
        .collect();
    assert_eq!(told, [("[Y] Yes", "ann", true), ("tonight", "ann", true)]);
    // A step that failed is nobody's choice.
    fixture.write("p.md", &plan("Fails", "5 minutes", &[("One", "test -e never", "escalate")]));
    let (code, said) = run(&fixture, "p.md", "true", &["--auto-answer"]);
    assert_eq!(code, 3, "{said}");
}

#[test]
fn h5_a_question_that_is_skipped_goes_the_way_of_failures() {
    let fixture = Fixture::new();
    fixture.write(
        "asks.dot",
        &ASKS.replace("when -> note", "ship -> note [on=fail, label=\"[L] Later\"]\n    when -> note"),
    );
    let (code, said) = run(&fixture, "asks.dot", "true", &[]);
    assert_eq!(code, 3, "{said}");
    let skipped = fixture.planctl(&["approvals", "skip", &fixture.ask(), "--note", "nobody knows"]);
    assert_eq!(skipped.code, 0, "{skipped:?}");
    let done = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fixture.path("asked").exists(), "{done:?}");
}

#[test]
fn s12_a_type_of_nodes_may_be_served_by_a_role() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:touch coded\"\n\n[roles.ops]\nagent = \"exec:touch deployed\"\ntypes = [\"deploy\"]\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture.write(
        "ship.dot",
        "digraph ship { start a [type=deploy, prompt=\"Ship.\", contract=\"test -e deployed\"] b [type=delpoy, prompt=\"Code.\", contract=\"test -e coded\"] exit start -> a -> b -> exit }",
    );
    let verified = fixture.planctl(&["plan", "verify", "ship.dot"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(!verified.out.contains("`deploy` is not a known type"), "{}", verified.out);
    assert!(verified.out.contains("`delpoy` is not a known type"), "{}", verified.out);
    let said = fixture.planctl(&["plan", "run", "ship.dot", "--approve", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let roles: Vec<Value> =
        fixture.status()["steps"].as_array().unwrap().iter().map(|step| step["role"].clone()).collect();
    assert_eq!(roles, ["ops", "coder"]);
}

#[test]
fn s13_a_run_is_simulated_only_where_that_is_asked_for_and_contracts_decide_even_then() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan("Two", "5 minutes", &[("One", "true", "abort"), ("Two", "test -e made", "abort")]),
    );
    let unserved = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_ne!(unserved.code, 0, "nobody works, and nothing is made up: {unserved:?}");
    let begun = fixture.json(&["ls", "--json"]);
    assert!(begun["runs"].as_array().unwrap().iter().all(|run| run["steps_settled"] == 0), "{begun}");
    let simulated =
        fixture.planctl(&["plan", "run", "p.md", "--again", "--approve", "--no-wait", "--simulate"]);
    assert_eq!(simulated.code, 1, "{simulated:?}");
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    assert_eq!(logs["attempts"][0]["work"]["text"], "[Simulated] Response for stage: One\n", "{logs}");
    let states: Vec<Value> =
        fixture.status()["steps"].as_array().unwrap().iter().map(|step| step["state"].clone()).collect();
    assert_eq!(states, ["passed", "failed"]);
}

#[test]
fn s11_a_worker_and_a_command_that_crash_are_failures_of_theirs_alone() {
    let fixture = Fixture::new();
    fixture.write(
        "crash.dot",
        "digraph crash { start a [prompt=x, contract=\"test -e made\", max_retries=1] b [shape=parallelogram, tool_command=\"kill -SEGV $$\"] c [shape=parallelogram, tool_command=\"true\"] exit start -> a -> b b -> c [on=fail] b -> exit c -> exit }",
    );
    let (code, said) =
        run(&fixture, "crash.dot", "[ -e once ] && touch made; touch once; kill -ABRT $$", &[]);
    assert_eq!(code, 0, "{said}");
    let status = fixture.status();
    let states: Vec<&Value> = status["steps"].as_array().unwrap().iter().map(|step| &step["state"]).collect();
    assert_eq!(states, ["passed", "failed", "passed"], "{status}");
    assert!(status["steps"][1]["failure"].as_str().unwrap().contains("signal 11"), "{status}");
}

/// Two branches, a loop, and an end.
const BRANCHED: &str = r#"digraph branched {
    goal="Two files"
    start
    apart [shape=component]
    one [shape=parallelogram, tool_command="echo 1 > one.txt"]
    two [shape=parallelogram, tool_command="echo 2 > two.txt"]
    three [shape=parallelogram, tool_command="echo 3 > three.txt"]
    meet [shape=tripleoctagon]
    check [shape=parallelogram, tool_command="test -e ready || { touch ready; false; }", max_visits=3]
    exit
    start -> apart
    apart -> one -> meet
    apart -> two -> three -> meet
    meet -> check -> exit
    check -> apart [on=fail]
}
"#;

#[test]
fn g29_nodes_that_may_be_worked_on_at_once_are_named() {
    let fixture = Fixture::new();
    fixture.write("branched.dot", BRANCHED);
    let view = fixture.json(&["graph", "parallel", "branched.dot", "--json"]);
    assert_eq!(
        view["forks"],
        json!([{"fork": "apart", "join": "meet", "branches": [["one"], ["three", "two"]]}])
    );
    let drawn = fixture.planctl(&["graph", "parallel", "branched.dot"]);
    assert_eq!(drawn.out, "after apart, until meet:\n  one\n  three, two\n");
    fixture.write("p.md", &plan("One after another", "5 minutes", &[("One", "true", "abort")]));
    let none = fixture.planctl(&["graph", "parallel", "p.md"]);
    assert!(none.out.contains("nothing is done side by side"), "{none:?}");
}

#[test]
fn g27_the_reason_that_an_escalation_gives_is_told_where_the_run_went_to_it() {
    let fixture = Fixture::new();
    fixture.write(
        "bug.json",
        r#"{"name": "Bug", "graph": {"start": "fix", "nodes": {
    "fix": {"type": "task", "name": "Fix", "action": "Mend it", "contract": "test -e fixed", "max_retries": 1},
    "stuck": {"type": "escalate", "reason": "Tried twice, and still red", "pace_level": "contingent"},
    "over": {"type": "exit"}
  }, "edges": [
    {"from": "fix", "to": "over", "condition": "on_success"},
    {"from": "fix", "to": "stuck", "condition": "on_exhaust"}
  ]}}"#,
    );
    let (code, said) = run(&fixture, "bug.json", "true", &[]);
    assert_eq!(code, 3, "{said}");
    let why = fixture.planctl(&["why", "@last", "fix"]).out;
    assert!(why.contains(": \"Tried twice, and still red\""), "{why}");
    let escalated = &fixture.events_named("@last", "plan_escalated")[0];
    assert_eq!(escalated["message"], "Tried twice, and still red", "{escalated}");
}

#[test]
fn g30_a_node_that_is_tried_again_stands_twice_in_the_path_as_in_the_seed() {
    let fixture = Fixture::new();
    fixture.write(
        "bug.json",
        r#"{"name": "Bug", "domains": ["bugfix"], "triggers": ["fix bug"], "stale_after_turns": 15, "graph": {
  "start": "isolate", "nodes": {
    "isolate": {"type": "task", "name": "Isolate", "action": "Find it", "contract": "true"},
    "fix": {"type": "task", "name": "Fix", "action": "Mend it", "contract": "test -e fixed", "max_retries": 2},
    "over": {"type": "exit"}
  }, "edges": [
    {"from": "isolate", "to": "fix", "condition": "on_success"},
    {"from": "fix", "to": "over", "condition": "on_success"}
  ]}}"#,
    );
    // It waits for a person after its last attempt.
    let (code, said) = run(&fixture, "bug.json", "true", &[]);
    assert_eq!(code, 3, "{said}");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(way["path"], json!(["isolate", "fix", "fix", "fix"]), "{way}");
    assert_eq!(
        (&way["current_node"], &way["visited"]["fix"]["outcome"], &way["completed_nodes"]),
        (&json!("fix"), &json!("pending"), &json!(1)),
        "{way}"
    );
    assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
    let worker = "case $PLANCTL_NODE-$PLANCTL_ATTEMPT in fix-2) touch fixed;; esac";
    let (code, said) = run(&fixture, "bug.json", worker, &["--again"]);
    assert_eq!(code, 0, "{said}");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(way["path"], json!(["isolate", "fix", "fix"]), "{way}");
    assert_eq!((&way["stale_after_turns"], &way["plan_name"]), (&json!(15), &json!("Bug")));
}

#[test]
fn g30_g31_the_way_of_a_run_is_told_with_the_names_of_the_seed() {
    let fixture = Fixture::new();
    fixture.write("branched.dot", BRANCHED);
    let (code, said) = run(&fixture, "branched.dot", "true", &[]);
    assert_eq!(code, 0, "{said}");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(
        (&way["plan_id"], &way["plan_name"], &way["mode"]),
        (&json!("branched.dot"), &json!("branched"), &json!("graph"))
    );
    assert_eq!(way["current_node"], Value::Null);
    assert_eq!(way["visited"]["check"], json!({"outcome": "success", "attempts": 2, "visits": 2}));
    assert_eq!((&way["total_nodes"], &way["total_steps"]), (&json!(8), &json!(4)));
    assert_eq!(way["completed_nodes"], 6, "all but the start and the exit: {way}");
    assert_eq!(way["started_turn"], 3, "submitted, approved, admitted");
    assert_eq!((&way["turns_since_transition"], &way["turns_since_progress"]), (&json!(0), &json!(0)));
    assert_eq!((&way["stale_after_turns"], &way["current_step"]), (&Value::Null, &Value::Null));
    let path: Vec<&str> = way["path"].as_array().unwrap().iter().map(|node| node.as_str().unwrap()).collect();
    assert_eq!(path.iter().filter(|node| **node == "check").count(), 2, "{path:?}");
    assert_eq!(path.first(), Some(&"apart"));
    // A run that waits says where.
    fixture.write(
        "p.md",
        &plan("Waits", "5 minutes", &[("One", "true", "abort"), ("Two", "test -e never", "escalate")]),
    );
    let (code, said) = run(&fixture, "p.md", "true", &[]);
    assert_eq!(code, 3, "{said}");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(
        (&way["mode"], &way["current_node"], &way["current_step"]),
        (&json!("linear"), &json!("2"), &json!(1))
    );
    assert_eq!(
        (&way["visited"]["1"]["outcome"], &way["visited"]["2"]["outcome"]),
        (&json!("success"), &json!("pending"))
    );
    assert_eq!(way["completed_nodes"], 1, "{way}");
    let page = fixture.planctl(&["plan", "status", "@last", "--traversal"]).out;
    assert!(page.contains("at 2") && page.contains("path: 1 → 2"), "{page}");
}

#[test]
fn g35_g37_events_have_the_fields_of_the_seed_in_order_and_turns_that_never_fall() {
    let fixture = Fixture::new();
    fixture.write("branched.dot", BRANCHED);
    assert_eq!(run(&fixture, "branched.dot", "true", &[]).0, 0);
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    let events = way["events"].as_array().unwrap();
    let of = |kind: &str| {
        events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {way}"))
    };
    assert_eq!(
        (&of("plan_activated")["plan"], &of("plan_activated")["node"]),
        (&json!("branched.dot"), &json!("start"))
    );
    assert!(of("node_entered")["node"].is_string());
    // Two branches are under way at once.
    assert!(["one", "two"].contains(&of("node_verified")["node"].as_str().unwrap()), "{way}");
    assert_eq!(of("node_verified")["outcome"], "success");
    let back =
        events.iter().find(|event| event["type"] == "edge_followed" && event["from"] == "check").unwrap();
    assert_eq!((&back["to"], &back["condition"]), (&json!("apart"), &json!("on_fail")));
    assert_eq!(of("plan_completed")["turn"], way["turn"]);
    let turns: Vec<u64> = events.iter().map(|event| event["turn"].as_u64().unwrap()).collect();
    assert!(turns.is_sorted(), "{turns:?}");
    // The whole history is chronological and gap-free.
    let lines = fixture.events("@last");
    let seqs: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(lines.iter().map(|line| line["at"].as_str().unwrap()).is_sorted());
}

#[test]
fn g36_the_newest_fifty_events_are_a_view_and_the_history_keeps_all() {
    let fixture = Fixture::new();
    let steps: Vec<(String, &str, &str)> = (1..=20).map(|n| (format!("Step {n}"), "true", "abort")).collect();
    let steps: Vec<(&str, &str, &str)> =
        steps.iter().map(|(name, check, then)| (name.as_str(), *check, *then)).collect();
    fixture.write("p.md", &plan("Many", "60 minutes", &steps));
    assert_eq!(run(&fixture, "p.md", "true", &[]).0, 0);
    let all = fixture.planctl(&["events", "--run", "@last", "--json"]).out;
    let recent = fixture.planctl(&["events", "--run", "@last", "--recent", "--json"]).out;
    assert!(all.lines().count() > 60, "{}", all.lines().count());
    assert_eq!(recent.lines().count(), 50);
    assert!(all.ends_with(&recent));
    // Of those that have a sentence, where sentences are printed.
    let sentences = fixture.planctl(&["events", "@last"]).out;
    let recent = fixture.planctl(&["events", "@last", "-n", "30"]).out;
    assert_eq!(recent.lines().count(), 30, "{recent}");
    assert!(sentences.ends_with(&recent));
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(way["events"].as_array().map(Vec::len), Some(50));
}

#[test]
fn v3_events_are_numbered_for_each_run_and_told_again_from_any_number() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "true", "abort")]));
    assert_eq!(run(&fixture, "p.md", "true", &[]).0, 0);
    let all = fixture.planctl(&["events", "--run", "@last", "--json"]).out;
    let lines: Vec<&str> = all.lines().collect();
    for since in [0, 1, lines.len() / 2, lines.len()] {
        let again =
            fixture.planctl(&["events", "--run", "@last", "--since", &since.to_string(), "--json"]).out;
        assert_eq!(again.lines().collect::<Vec<_>>(), lines[since..], "after {since}");
    }
    // Another run counts from 1 again.
    assert_eq!(run(&fixture, "p.md", "true", &["--again"]).0, 0);
    let other = fixture.planctl(&["events", "--run", "@last", "--json"]).out;
    let first: Value = serde_json::from_str(other.lines().next().unwrap()).unwrap();
    assert_eq!((&first["seq"], &first["run"]), (&json!(1), &json!("p-2")));
}

#[test]
fn k2_a_run_that_is_taken_up_has_its_context_and_counters_and_does_nothing_twice() {
    let fixture = Fixture::new();
    fixture.write(
        "k.dot",
        "digraph k { start a [prompt=\"Report `n`.\", contract=\"true\"] b [prompt=x, contract=\"test -e ready\", on_fail=abort, max_visits=5] d [shape=diamond] c [prompt=x, contract=\"true\"] e [prompt=x, contract=\"false\", on_fail=abort] exit start -> a -> b -> d d -> c [condition=\"context.n=7\"] d -> e [on=always] c -> exit e -> exit }",
    );
    let worker = r#"echo $PLANCTL_STEP >> worked; [ $PLANCTL_STEP != 1 ] || echo '{"context_updates": {"n": "7"}}' > "$PLANCTL_RESULT_FILE""#;
    let (code, said) = run(&fixture, "k.dot", worker, &[]);
    assert_eq!(code, 1, "{said}");
    fixture.write("ready", "");
    let resumed = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(fixture.read("worked"), "1\n2\n2\n4\n", "what had passed was not done again");
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    assert_eq!(way["visited"]["b"], json!({"outcome": "success", "attempts": 2, "visits": 2}));
}

#[test]
fn k5_a_graph_that_was_edited_is_refused_with_both_digests() {
    let fixture = Fixture::new();
    let text = "digraph k { start a [prompt=x, contract=\"test -e ready\", on_fail=escalate] exit start -> a -> exit }";
    fixture.write("k.dot", text);
    assert_eq!(run(&fixture, "k.dot", "true", &[]).0, 3);
    let before = fixture.status()["digest"].as_str().unwrap().to_owned();
    fixture.write("k.dot", &text.replace("prompt=x", "prompt=y"));
    let refused = fixture.planctl(&["plan", "run", "k.dot", "--no-wait", "--exec", "true"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains(&before), "{refused:?}");
    assert_eq!(refused.err.matches("sha256:").count(), 2, "{refused:?}");
    assert!(refused.err.contains("planctl resume k-1"), "{refused:?}");
    // The run itself goes on with the text that was approved.
    assert_eq!(fixture.status()["digest"], before.as_str());
}

#[test]
fn k1_k9_a_run_is_exported_as_a_folder_that_other_tools_read() {
    let fixture = Fixture::new();
    fixture.write(
        "k.dot",
        "digraph k { start a [prompt=\"Do it, and report `n`.\", contract=\"echo checked; test -e ready\", on_fail=\"retry(1), then abort\"] exit start -> a -> exit }",
    );
    let worker = r#"echo working; [ -e once ] && touch ready; touch once; echo '{"text": "I did it.", "context_updates": {"n": 1}}' > "$PLANCTL_RESULT_FILE""#;
    let (code, said) = run(&fixture, "k.dot", worker, &[]);
    assert_eq!(code, 0, "{said}");
    let out = fixture.planctl(&["plan", "export", "@last", "--to", "folder"]);
    assert_eq!(out.code, 0, "{out:?}");
    let json =
        |name: &str| -> Value { serde_json::from_str(&fixture.read(&format!("folder/{name}"))).unwrap() };
    let manifest = json("manifest.json");
    assert_eq!((&manifest["run"], &manifest["state"]), (&json!("k-1"), &json!("done")), "{manifest}");
    let checkpoint = json("checkpoint.json");
    assert_eq!(checkpoint["current_node"], "a", "{checkpoint}");
    assert!(checkpoint["completed_nodes"].as_array().unwrap().contains(&json!("a")), "{checkpoint}");
    assert_eq!(checkpoint["node_outcomes"]["a"], "success");
    assert_eq!(checkpoint["node_retries"]["a"], 1);
    assert_eq!(checkpoint["graph"], manifest["graph"]);
    assert_eq!(checkpoint["context"]["n"], "1");
    assert!(!checkpoint["logs"].as_array().unwrap().is_empty());
    assert_eq!(fixture.read("folder/a/prompt.md"), "Do it, and report `n`.");
    assert!(fixture.read("folder/a/response.md").contains("I did it."));
    assert_eq!(json("a/status.json")["attempts"], 2);
    for attempt in ["1", "2"] {
        assert_eq!(fixture.read(&format!("folder/artifacts/a-{attempt}-stdout.txt")), "checked\n");
    }
    let again = fixture.planctl(&["plan", "export", "@last", "--to", "folder"]);
    assert_eq!(again.code, 2, "nothing is written over: {again:?}");
}

#[test]
fn k9_steps_whose_names_differ_in_signs_alone_are_exported_into_folders_of_their_own() {
    let fixture = Fixture::new();
    let names = ["a.b", "a b", "a_b", "a_b-2", "artifacts"];
    let node = |name: &str| format!(r#""{name}": {{"prompt": "Do <{name}>.", "contract": "true"}}"#);
    let nodes: Vec<String> = names.iter().map(|name| node(name)).collect();
    let ends: Vec<&str> = names.into_iter().chain(["exit"]).collect();
    let edges: Vec<String> = ends
        .windows(2)
        .map(|pair| format!(r#"{{"from": "{}", "to": "{}", "on": "success"}}"#, pair[0], pair[1]))
        .collect();
    fixture.write(
        "k.json",
        &format!(
            r#"{{"title": "k", "start": "a.b", "nodes": {{{}, "exit": {{"type": "exit"}}}}, "edges": [{}]}}"#,
            nodes.join(", "),
            edges.join(", ")
        ),
    );
    let (code, said) = run(&fixture, "k.json", "true", &[]);
    assert_eq!(code, 0, "{said}");
    let out = fixture.planctl(&["plan", "export", "@last", "--to", "folder"]);
    assert_eq!(out.code, 0, "{out:?}");
    let places = ["a_b-3", "a_b-4", "a_b", "a_b-2", "node-artifacts"];
    for (name, place) in names.into_iter().zip(places) {
        assert_eq!(fixture.read(&format!("folder/{place}/prompt.md")), format!("Do <{name}>."), "{place}");
        let status: Value =
            serde_json::from_str(&fixture.read(&format!("folder/{place}/status.json"))).unwrap();
        assert_eq!(status["node"], name);
    }
}

#[test]
fn x6_why_a_run_failed_stands_in_its_final_record() {
    let fixture = Fixture::new();
    let words = "E42: no such table `users` — ünïcode";
    fixture
        .write("p.md", &plan("Fails", "5 minutes", &[("One", &format!("echo '{words}'; exit 7"), "abort")]));
    assert_eq!(run(&fixture, "p.md", "true", &[]).0, 1);
    let status = fixture.status();
    assert_eq!((&status["state"], &status["end"]), (&json!("failed"), &json!("failed")));
    assert!(status["steps"][0]["failure"].as_str().unwrap().contains("contract exit 7"), "{status}");
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    assert_eq!(logs["attempts"][0]["gate"]["stdout"], format!("{words}\n"), "{logs}");
}

#[test]
fn f4_what_was_printed_is_kept_whole_found_again_and_shared_where_it_is_the_same() {
    let fixture = Fixture::new();
    // More than 100 KB: far more than stands in the history itself.
    let script = "for n in $(seq 1 11000); do echo line $n; done; exit 1";
    fixture.write("p.md", &plan("Prints", "5 minutes", &[("One", script, "retry(1), then abort")]));
    assert_eq!(run(&fixture, "p.md", "true", &[]).0, 1);
    let expected: String = (1..=11_000).map(|n| format!("line {n}\n")).collect();
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    for attempt in 0..2 {
        let gate = &logs["attempts"][attempt]["gate"];
        assert_eq!(gate["stdout_bytes"], expected.len(), "attempt {attempt}");
        assert!(gate["stdout"].as_str() == Some(expected.as_str()), "attempt {attempt} is not kept whole");
    }
    assert_eq!(fixture.sql("select count(*) from outputs where octet_length(bytes) > 100000"), "1");
    let told = fixture.planctl(&["plan", "logs", "@last", "--contract", "--tail", "1"]);
    assert!(told.out.contains("line 11000") && !told.out.contains("line 10999"), "{}", told.out);
}

#[test]
fn g54_branches_run_at_once_and_meet_as_their_join_says() {
    let fixture = Fixture::new();
    let text = |policy: &str| {
        format!(
            "digraph g {{ start f [shape=component] quick [shape=parallelogram, tool_command=\"touch quick\"] slow [shape=parallelogram, tool_command=\"for n in $(seq 600); do [ -e end ] && exit 1; sleep 0.1; done; touch slow\"] j [shape=tripleoctagon{policy}] after [shape=parallelogram, tool_command=\"touch end\"] exit start -> f f -> quick -> j f -> slow -> j slow -> j [on=fail] j -> after -> exit j -> exit [on=fail] }}"
        )
    };
    // The first success is enough: the slow one is taken back, and nobody waits a minute for it.
    fixture.write("any.dot", &text(", join_policy=first_success"));
    let (code, said) = run(&fixture, "any.dot", "true", &[]);
    assert_eq!(code, 0, "{said}");
    assert!(fixture.path("end").exists() && !fixture.path("slow").exists(), "{said}");
    let joined = fixture.events_named("@last", "branches_joined");
    assert_eq!((&joined[0]["met"], &joined[0]["failed"]), (&json!(1), &json!(0)));
    // All are waited for otherwise; the end of the other plan ends the slow one as failed.
    fixture.write("all.dot", &text(""));
    let (code, said) = run(&fixture, "all.dot", "true", &[]);
    assert_eq!(code, 0, "{said}");
    let joined = fixture.events_named("@last", "branches_joined");
    assert_eq!((&joined[0]["met"], &joined[0]["failed"]), (&json!(1), &json!(1)));
}

#[test]
fn w1_each_door_of_the_dialects_pipelines_has_its_route() {
    let house = House::new();
    let run = house.run("hello", "hello");
    house.until(&run, "running");
    let get = |path: &str| {
        let reply = house.local("GET", path, &Ask::default());
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply
    };
    // The run has begun once its first step can be claimed.
    let claimed = house.claim();
    // GET /pipelines/{id}, /graph, /checkpoint, /context, /questions, /events.
    assert_eq!(get(&format!("/v1/runs/{run}")).json()["run"], run.as_str());
    assert!(get(&format!("/v1/runs/{run}/plan")).json()["graph"]["nodes"].is_array());
    let checkpoint = get(&format!("/v1/runs/{run}/checkpoint")).json();
    assert_eq!(checkpoint["completed_nodes"], json!(["start"]), "{checkpoint}");
    assert!(checkpoint["context"].is_object());
    assert_eq!(get(&format!("/v1/runs/{run}/traversal")).json()["current_node"], "1");
    assert_eq!(get("/v1/approvals").json()["asks"], json!([]));
    let history = get(&format!("/v1/runs/{run}/history")).json();
    let all = history.as_array().unwrap();
    let newest = get(&format!("/v1/runs/{run}/history?newest=3")).json();
    assert_eq!(newest.as_array().unwrap().as_slice(), &all[all.len() - 3..]);
    for wrong in ["newest=0", "newest=x", "newest=3&since=2"] {
        let path = format!("/v1/runs/{run}/history?{wrong}");
        let refused = house.local("GET", &path, &Ask::default());
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.json());
    }
    assert_eq!(history[0]["seq"], 1, "{history}");
    // POST /cancel.
    let ask = Ask { key: Some("cancel-1"), body: Some("{}".to_owned()), ..Ask::default() };
    let cancelled = house.local("POST", &format!("/v1/runs/{run}/cancel"), &ask);
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    // Its events as they come, from any number on: the stream ends with the run.
    let stream = get(&format!("/v1/events?run={run}&since=2"));
    assert!(stream.headers.contains("text/event-stream"), "{stream:?}");
    assert!(stream.body.contains("plan_cancelled") && !stream.body.contains("id: 2\n"), "{}", stream.body);
    // Its worker lets go; until then, or the end of the lease, the workspace is its own.
    let ask = Ask { token: claimed["token"].as_str(), body: Some("{}".to_owned()), ..Ask::default() };
    let path = format!("/v1/items/{}/release", claimed["item"].as_str().unwrap());
    assert_eq!(house.network("POST", &path, &ask).code(), "lease_lost");
    // POST /questions/{qid}/answer.
    house.fixture.write("asks.dot", ASKS);
    let said = house.fixture.planctl(&["plan", "run", "asks.dot", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let asked = house.until("asks-1", "waiting");
    let id = asked["waiting_on"]["id"].to_string();
    let body = json!({"answer": {"answer": "choose", "option": "[N] No"}}).to_string();
    let ask = Ask { key: Some("answer-1"), body: Some(body), ..Ask::default() };
    let answered = house.local("POST", &format!("/v1/approvals/{id}/answer"), &ask);
    assert_eq!(answered.status, 200, "{answered:?}");
    house.until("asks-1", "done");
}

#[test]
fn v1_each_event_of_the_dialect_is_an_event_of_the_history() {
    let fixture = Fixture::new();
    fixture.write(
        "branched.dot",
        &BRANCHED
            .replace(
                "exit\n    start",
                "gate [shape=hexagon, label=\"Ship?\"]\n    save [checkpoint=true]\n    exit\n    start",
            )
            .replace(
                "check -> exit",
                "check -> save -> gate\n    gate -> exit [label=Yes]\n    gate -> apart [label=No]",
            ),
    );
    assert_eq!(run(&fixture, "branched.dot", "true", &["--auto-answer"]).0, 0);
    fixture.write("p.md", &plan("Fails", "5 minutes", &[("One", "test -e never", "retry(1), then abort")]));
    let done = fixture.event_names("@last");
    assert_eq!(run(&fixture, "p.md", "true", &[]).0, 1);
    let failed = fixture.event_names("@last");
    // The dialect's name, and the name here.
    let pairs = [
        ("PipelineStarted", "plan_activated"),
        ("PipelineCompleted", "plan_completed"),
        ("PipelineFailed", "plan_failed"),
        ("StageStarted", "node_entered"),
        ("StageCompleted", "node_settled"),
        ("StageFailed", "node_verified"),
        ("StageRetrying", "retry_triggered"),
        ("ParallelStarted", "edge_followed"),
        ("ParallelBranchStarted", "node_entered"),
        ("ParallelBranchCompleted", "node_settled"),
        ("ParallelCompleted", "branches_joined"),
        ("InterviewStarted", "ask_opened"),
        ("InterviewCompleted", "ask_answered"),
        ("InterviewTimeout", "ask_answered"),
        ("CheckpointSaved", "checkpoint_saved"),
    ];
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/graphs.md")).unwrap();
    for (theirs, ours) in pairs {
        assert!(
            done.iter().chain(&failed).any(|name| name == ours),
            "{theirs}: {ours} in {done:?} {failed:?}"
        );
        let is_told = page
            .lines()
            .any(|line| line.contains(&format!("`{theirs}`")) && line.contains(&format!("`{ours}`")));
        assert!(is_told, "docs/graphs.md says what `{theirs}` is here: `{ours}`");
    }
}
