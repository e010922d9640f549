//! Ways on after a failure, as the review wrote them: the real binary, real commands, a real database (DOT A1 to A5, B1 to B3, B5,
//! B8, B11).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fixture::Fixture;

/// Runs a graph with workers that do what they like; returns the exit code, the path and the run's state.
fn run(fixture: &Fixture, graph: &str, worker: &str) -> (i32, Vec<String>, String) {
    fixture.write("graph.dot", graph);
    let said = fixture.planctl(&["plan", "run", "graph.dot", "--approve", "--no-wait", "--exec", worker]);
    let way = fixture.json(&["plan", "status", "@last", "--traversal", "--json"]);
    let path = way["path"].as_array().unwrap_or_else(|| panic!("{way}\n{said:?}"));
    let path = path.iter().map(|node| node.as_str().unwrap().to_owned()).collect();
    (said.code, path, fixture.status()["state"].as_str().unwrap().to_owned())
}

/// Says why the person is asked who is asked last.
fn reason(fixture: &Fixture) -> (String, String) {
    let asked = fixture.events_named("@last", "plan_escalated").pop().unwrap_or_default();
    let word = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    (word("node"), word("reason"))
}

#[test]
fn dot_a1_the_word_of_a_worker_leads_no_failed_step_to_the_exit() {
    let lies = r#"echo '{"planctl":"result/1","preferred_label":"LABEL","suggested_next_ids":["done"],"context_updates":{"verdict":"approved"}}' > "$PLANCTL_RESULT_FILE""#;
    for (condition, label) in [
        ("preferred_label=approve", "approve"),
        ("outcome=yes", "yes"),
        ("context.verdict=approved", "approve"),
        ("outcome!=reject", "approve"),
    ] {
        let fixture = Fixture::new();
        let graph = format!(
            "digraph g {{ start [shape=Mdiamond] done [shape=Msquare]
              review [prompt=\"Review.\", contract=\"test -f approved.txt\"]
              fix [prompt=\"Fix.\", contract=\"test -f fixed.txt\"]
              start -> review
              review -> done [condition=\"{condition}\"]
              review -> fix [condition=\"preferred_label=reject\"]
              fix -> review }}"
        );
        let (code, path, state) = run(&fixture, &graph, &lies.replace("LABEL", label));
        assert_eq!((code, state.as_str()), (3, "waiting"), "{condition}: {path:?}");
        assert_eq!(reason(&fixture), ("review".to_owned(), "no_edge".to_owned()), "{condition}");
    }
}

#[test]
fn dot_a2_a_partial_success_takes_no_edge_that_is_guarded_by_success() {
    let fixture = Fixture::new();
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        test [shape=parallelogram, tool_command=\"exit 1\", allow_partial=true]
        ship [shape=parallelogram, tool_command=\"touch shipped\"]
        fix [shape=parallelogram, tool_command=\"touch fixed\"]
        start -> test
        test -> ship [label=\"pass\", condition=\"outcome=success\"]
        test -> fix [label=\"fail\", condition=\"outcome=fail\"]
        ship -> done
        fix -> done }";
    let (code, path, state) = run(&fixture, graph, "true");
    assert_eq!((code, state.as_str()), (3, "waiting"), "{path:?}");
    assert!(!fixture.path("shipped").exists());
}

#[test]
fn dot_a3_branches_that_meet_in_a_box_are_waited_for() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare] f [shape=component]
        a [shape=parallelogram, tool_command=\"touch a\"]
        b [shape=parallelogram, tool_command=\"until test -e a; do sleep 0.01; done; touch b; exit CODE\"]
        c [shape=parallelogram, tool_command=\"test -e b && touch c\"]
        start -> f; f -> a -> c; f -> b -> c; c -> done }";
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, &graph.replace("CODE", "1"), "true");
    assert_eq!((code, state.as_str()), (3, "waiting"), "{path:?}");
    assert!(!fixture.path("c").exists(), "{path:?}");
    assert_eq!(reason(&fixture).0, "b");
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, &graph.replace("CODE", "0"), "true");
    assert_eq!((code, state.as_str()), (0, "done"), "{path:?}");
    assert!(fixture.path("c").exists());
}

#[test]
fn dot_a4_a_goal_gate_on_a_diamond_is_not_met_by_the_failure_that_passes_through_it() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        test [shape=parallelogram, tool_command=\"exit CODE\"]
        gate [shape=diamond, goal_gate=true]
        start -> test
        test -> gate [on=always]
        gate -> done [on=always] }";
    for (exit, code, end) in [("1", 1, "failed"), ("0", 0, "done")] {
        let fixture = Fixture::new();
        let (said, path, state) = run(&fixture, &graph.replace("CODE", exit), "true");
        assert_eq!((said, state.as_str()), (code, end), "{path:?}");
    }
}

const CAPPED: &str = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
    pick [shape=parallelogram, tool_command=\"echo one_left\", max_visits=3]
    agent [shape=parallelogram, tool_command=\"echo . >> rounds\"]
    start -> pick
    pick -> agent [condition=\"context.tool.output!=all_complete\"]
    pick -> done [condition=\"context.tool.output=all_complete\"]
    agent -> pick }";

#[test]
fn dot_a5_b11_a_node_over_its_cap_ends_its_loop_and_the_cap_is_the_reason_told() {
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, CAPPED, "true");
    assert_eq!((code, state.as_str()), (3, "waiting"));
    assert_eq!(path, ["pick", "agent", "pick", "agent", "pick", "agent"]);
    assert_eq!(fixture.read("rounds").lines().count(), 3);
    assert_eq!(reason(&fixture), ("pick".to_owned(), "visits_limit".to_owned()));
    let said = fixture.planctl(&["approvals"]);
    assert!(said.out.contains("its visits are used up") && !said.out.contains("no edge"), "{said:?}");
}

/// The specification's own example, 2.13.
const IDIOM: &str = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
    implement [prompt=\"Implement it.\", contract=\"test -e made\"]
    validate [shape=parallelogram, tool_command=\"test -e right\"]
    gate [shape=diamond]
    start -> implement -> validate -> gate
    gate -> done [condition=\"outcome=success\"]
    gate -> implement [condition=\"outcome!=success\"] }";

#[test]
fn dot_b1_a_diamond_sees_the_failure_before_it() {
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, IDIOM, "test -e made && touch right; touch made");
    assert_eq!((code, state.as_str()), (0, "done"), "{path:?}");
    assert_eq!(path, ["implement", "validate", "gate", "implement", "validate", "gate"]);
}

#[test]
fn dot_b2_an_edge_for_a_retry_is_followed_while_attempts_are_left() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        plan [shape=parallelogram, tool_command=\"echo . >> plans\"]
        work [shape=parallelogram, tool_command=\"test $(wc -l < plans) -eq 2\", max_retries=2]
        start -> plan -> work
        work -> done [condition=\"outcome=success\"]
        work -> plan [condition=\"outcome=retry\"] }";
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, graph, "true");
    assert_eq!((code, state.as_str()), (0, "done"), "{path:?}");
    assert_eq!(path, ["plan", "work", "plan", "work"]);
    let none = graph.replace(", max_retries=2", "");
    fixture.write("none.dot", &none);
    let found = fixture.planctl(&["graph", "check", "none.dot"]);
    assert!(found.out.contains("P317"), "an edge that is never followed is told: {found:?}");
}

#[test]
fn dot_b5_the_policy_of_a_join_stands_on_the_fork() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        f [shape=component, join_policy=first_success]
        a [shape=parallelogram, tool_command=\"exit 1\"]
        b [shape=parallelogram, tool_command=\"touch b\"]
        j [shape=tripleoctagon]
        start -> f; f -> a -> j; f -> b -> j; a -> j [on=fail]; j -> done }";
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, graph, "true");
    assert_eq!((code, state.as_str()), (0, "done"), "{path:?}");
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, &graph.replace(", join_policy=first_success", ""), "true");
    assert_eq!((code, state.as_str()), (3, "waiting"), "one of two failed: {path:?}");
}

#[test]
fn dot_b8_a_command_waits_between_its_attempts_as_its_policy_says() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        call [shape=parallelogram, tool_command=\"date +%s%N >> times; test $(wc -l < times) -eq 2\", max_retries=2, retry_policy=standard]
        start -> call -> done }";
    let fixture = Fixture::new();
    let (code, path, state) = run(&fixture, graph, "true");
    assert_eq!((code, state.as_str()), (0, "done"), "{path:?}");
    let times: Vec<u64> = fixture.read("times").lines().map(|line| line.parse().unwrap()).collect();
    // `standard` waits 200 ms, less the half of it that is left to chance.
    assert!(times[1] - times[0] >= 100_000_000, "{times:?}");
}

#[test]
fn dot_b3_two_bare_edges_are_a_warning_to_both_commands_and_a_suggestion_chooses() {
    let graph = "digraph g { start [shape=Mdiamond] done [shape=Msquare]
        a [prompt=\"Which?\", contract=\"test -e work\"]
        b [shape=parallelogram, tool_command=\"touch b\"]
        c [shape=parallelogram, tool_command=\"touch c\"]
        start -> a; a -> c; a -> b; b -> done; c -> done }";
    let worker = r#"touch work; echo '{"suggested_next_ids": ["c"]}' > "$PLANCTL_RESULT_FILE""#;
    for (worker, way) in [("touch work", "b"), (worker, "c")] {
        let fixture = Fixture::new();
        let (code, path, _) = run(&fixture, graph, worker);
        assert_eq!((code, path), (0, vec!["a".to_owned(), way.to_owned()]));
        for command in [["graph", "check"], ["plan", "verify"]] {
            let said = fixture.planctl(&[command[0], command[1], "graph.dot"]);
            assert!(said.code == 0 && said.out.contains("P311"), "{said:?}");
        }
    }
}

/// How many graphs are judged by both commands; `PLANCTL_SAME_JUDGEMENTS=N` judges more.
const GRAPHS: u64 = 40;

#[test]
fn dot_b3_random_graphs_are_sound_to_graph_check_where_they_are_verified_in_every_language() {
    let count = std::env::var("PLANCTL_SAME_JUDGEMENTS").ok().map_or(GRAPHS, |count| count.parse().unwrap());
    let fixture = Fixture::new();
    let mut names = Vec::new();
    for seed in 0..count {
        let drawn = super::drawn::Drawn::wild(seed);
        for (end, text) in [("dot", drawn.dot()), ("json", drawn.json()), ("md", drawn.markdown())] {
            let name = format!("g{seed}.{end}");
            fixture.write(&name, &text);
            names.push(name);
        }
    }
    let told = |command: [&str; 2]| -> Vec<BTreeSet<String>> {
        let words: Vec<&str> = command.into_iter().chain(names.iter().map(String::as_str)).collect();
        let said = fixture.planctl(&[&words[..], &["--format", "json"]].concat());
        assert_eq!(said.code, 1, "some are not sound: {said:?}");
        let reports: Vec<Value> =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let errors = |report: &Value| {
            let found = report["diagnostics"].as_array().unwrap().iter();
            let errors = found.filter(|found| found["level"] == json!("error"));
            errors.map(|found| found["code"].as_str().unwrap().to_owned()).collect()
        };
        reports.iter().map(errors).collect()
    };
    let (checked, verified) = (told(["graph", "check"]), told(["plan", "verify"]));
    assert_eq!((checked.len(), verified.len()), (names.len(), names.len()));
    for (name, (checked, verified)) in names.iter().zip(checked.iter().zip(&verified)) {
        assert_eq!(checked, verified, "{name}\n{}", fixture.read(name));
    }
    let sound = checked.iter().filter(|codes| codes.is_empty()).count();
    let codes: BTreeSet<&String> = checked.iter().flatten().collect();
    assert!(
        sound * 5 > names.len() && sound < names.len(),
        "{sound} of {} are sound: {codes:?}",
        names.len()
    );
    assert!(codes.len() >= 6, "the graphs are wrong in many ways: {codes:?}");
}
