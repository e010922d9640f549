//! Red never turns green by itself, in every language: the routes of failing steps, partial successes and branches (DOT A,
//! B).

use planctl_engine::{Graph, Hints, NodeId};
use planctl_lang::{Code, Facts, Levels, Severity, Source, verify};

use super::walk::{Walk, walk};

const STEP: &str = "prompt=\"Do it.\", contract=\"make test\"";
const HEAD: &str = "start [shape=Mdiamond] done [shape=Msquare]";

fn judged(name: &str, text: &str) -> (Option<Graph>, Vec<(Code, String)>) {
    let found = verify(&Source::new(name, text), &Facts::default(), &Levels::default());
    let told = found.diagnostics.iter().filter(|found| found.level != Severity::Note);
    let told = told.map(|found| (found.code, found.message.clone())).collect();
    (found.graph, told)
}

fn dot(statements: &str) -> Graph {
    let text = format!("digraph g {{ {HEAD} {statements} }}");
    let (graph, found) = judged("plan.dot", &text);
    graph.unwrap_or_else(|| panic!("{text}\n{found:?}"))
}

fn codes(statements: &str) -> Vec<(Code, String)> {
    judged("plan.dot", &format!("digraph g {{ {HEAD} {statements} }}")).1
}

/// Plays a graph in which the contracts of some nodes fail, always.
fn played(graph: &Graph, failing: &[&str]) -> Walk {
    let exit = |node: &NodeId, _: u16| i32::from(failing.contains(&node.as_str()));
    walk(graph, &exit, &|_, _| None)
}

fn ends(graph: &Graph, failing: &[&str]) -> (String, String) {
    let walk = played(graph, failing);
    (walk.path.join(" "), walk.end)
}

#[test]
fn dot_a1_no_word_of_a_worker_leads_a_failed_step_to_the_exit() {
    for condition in ["preferred_label=approve", "outcome=yes", "outcome!=reject", "context.verdict=approved"]
    {
        let graph = dot(&format!(
            "review [{STEP}] fix [{STEP}] start -> review review -> done [condition=\"{condition}\"] \
             review -> fix [condition=\"preferred_label=reject\"] fix -> review"
        ));
        let lies = |_: &NodeId, _: u16| {
            Some(Hints {
                label: Some(if condition == "outcome=yes" { "yes" } else { "approve" }.to_owned()),
                suggested: vec![NodeId::new("done")],
                context: [("verdict".to_owned(), "approved".to_owned())].into(),
                insert_step: None,
            })
        };
        let walk = walk(&graph, &|_, _| 1, &lies);
        assert_eq!(walk.end, "asks review: no_edge", "{condition}");
    }
}

#[test]
fn dot_a2_a_partial_success_takes_no_edge_that_is_guarded_by_success() {
    let test = "test [shape=parallelogram, tool_command=\"make test\", allow_partial=true]";
    let rest = format!("ship [{STEP}] fix [{STEP}] start -> test ship -> done fix -> test");
    let guarded = dot(&format!(
        "{test} {rest} test -> ship [condition=\"outcome=success\"] test -> fix [condition=\"outcome=fail\"]"
    ));
    assert_eq!(ends(&guarded, &["test"]).1, "asks test: no_edge");
    let bare = dot(&format!("{test} ship [{STEP}] start -> test -> ship -> done"));
    assert_eq!(ends(&bare, &["test"]), ("test ship".to_owned(), "done".to_owned()));
    let said = dot(&format!(
        "{test} {rest} test -> ship [condition=\"outcome=success\"] test -> fix [condition=\"outcome=partial_success\"]"
    ));
    assert!(ends(&said, &["test"]).0.starts_with("test fix test"));
    let found = codes(&format!("{test} {rest} test -> ship test -> fix [condition=\"outcome=fail\"]"));
    assert!(found.iter().any(|(code, _)| *code == Code::P317), "{found:?}");
}

#[test]
fn dot_a3_branches_that_meet_in_a_box_are_joined() {
    for meeting in ["c", "done"] {
        let on = if meeting == "c" { "c -> done" } else { "" };
        let c = if meeting == "c" { format!("c [{STEP}]") } else { String::new() };
        let graph = dot(&format!(
            "f [shape=component] a [{STEP}] b [{STEP}] {c} start -> f f -> a -> {meeting} f -> b -> {meeting} {on}"
        ));
        assert_eq!(ends(&graph, &[]).1, "done", "{meeting}");
        assert_eq!(ends(&graph, &["b"]).1, "asks b: no_edge", "{meeting}");
    }
    let json = r#"{"name": "t", "graph": {"start": "f", "nodes": {"f": {"type": "fork"}, "a": {"type": "call", "tool_command": "make a"},
        "b": {"type": "call", "tool_command": "make b"}, "c": {"type": "call", "tool_command": "make c"}, "done": {"type": "exit"}},
        "edges": [{"from": "f", "to": "a"}, {"from": "f", "to": "b"}, {"from": "a", "to": "c", "condition": "on_success"},
        {"from": "b", "to": "c", "condition": "on_success"}, {"from": "c", "to": "done", "condition": "on_success"}]}}"#;
    let graph = judged("plan.json", json).0.expect("a graph");
    assert_eq!(ends(&graph, &["b"]).1, "asks b: no_edge");
}

#[test]
fn dot_a3_branches_that_meet_where_a_run_may_go_past_are_refused_by_their_real_cause() {
    let found = codes(&format!(
        "f [shape=component] a [{STEP}] b [{STEP}] c [{STEP}] r [{STEP}] start -> f f -> a -> c f -> b -> c c -> done \
         a -> r [condition=\"outcome=fail\"] b -> r [condition=\"outcome=fail\"] r -> done"
    ));
    let told: Vec<&String> =
        found.iter().filter(|(code, _)| *code == Code::P315).map(|(_, told)| told).collect();
    assert!(
        told.iter()
            .any(|told| told.starts_with("branches meet at `") && told.contains("which is not a join")),
        "{found:?}"
    );
}

#[test]
fn dot_a4_a_goal_gate_on_a_diamond_is_not_met_by_what_fails_through_it() {
    let graph = dot(
        "test [shape=parallelogram, tool_command=\"make test\"] gate [shape=diamond, goal_gate=true] start -> test \
         test -> gate [on=always] gate -> done [on=always]",
    );
    assert_eq!(ends(&graph, &["test"]).1, "failed");
    assert_eq!(ends(&graph, &[]).1, "done");
}

#[test]
fn dot_a5_a_node_over_its_cap_ends_its_loop_and_says_so() {
    let graph = dot(&format!(
        "pick [shape=parallelogram, tool_command=\"make pick\", max_visits=3] agent [{STEP}] start -> pick \
         pick -> agent [condition=\"context.tool.output!=all_complete\"] pick -> done [condition=\"context.tool.output=all_complete\"] \
         agent -> pick"
    ));
    let (path, end) = ends(&graph, &[]);
    assert_eq!(
        (path.as_str(), end.as_str()),
        ("pick agent pick agent pick agent", "asks pick: visits_limit")
    );
}

/// The example of the specification, 2.13, and the idiom of the corpus.
const IDIOM: &str = "gate [shape=diamond] test -> gate gate -> done [condition=\"outcome=success\"] \
                     gate -> fix [condition=\"outcome!=success\"] fix -> test";

#[test]
fn dot_b1_a_bare_edge_into_a_decision_carries_the_failure() {
    let test = "test [shape=parallelogram, tool_command=\"make test\", max_visits=4]";
    let graph = dot(&format!("{test} fix [{STEP}] start -> test {IDIOM}"));
    let third = |node: &NodeId, attempt: u16| i32::from(node.as_str() == "test" && attempt < 3);
    let walk = walk(&graph, &third, &|_, _| None);
    assert_eq!(
        (walk.path.join(" ").as_str(), walk.end.as_str()),
        ("test gate fix test gate fix test gate", "done")
    );
    let found = codes(&format!("{test} fix [{STEP}] start -> test {IDIOM}"));
    assert!(found.iter().all(|(code, _)| *code != Code::P310), "{found:?}");
}

#[test]
fn dot_b1_an_edge_for_success_a_policy_and_a_decision_without_a_way_for_it_keep_the_failure() {
    let test = "test [shape=parallelogram, tool_command=\"make test\", max_visits=4";
    let said = dot(&format!(
        "{test}] fix [{STEP}] start -> test {}",
        IDIOM.replace("test -> gate", "test -> gate [on=success]")
    ));
    assert_eq!(ends(&said, &["test"]), ("test".to_owned(), "asks test: no_edge".to_owned()));
    let policy =
        dot(&format!("{test}, on_fail=\"retry(1), then abort\"] fix [{STEP}] start -> test {IDIOM}"));
    assert_eq!(ends(&policy, &["test"]), ("test".to_owned(), "failed".to_owned()));
    let none = format!(
        "{test}] fix [{STEP}] gate [shape=diamond] start -> test -> gate gate -> done [condition=\"outcome=success\"] \
         gate -> fix [condition=\"preferred_label=fix\"] fix -> test"
    );
    assert_eq!(ends(&dot(&none), &["test"]), ("test".to_owned(), "asks test: no_edge".to_owned()));
    assert!(codes(&none).iter().any(|(code, _)| *code == Code::P310), "{:?}", codes(&none));
}

#[test]
fn dot_b1_one_decision_leaves_a_failure_to_the_next() {
    let graph = dot(&format!(
        "test [shape=parallelogram, tool_command=\"make test\"] fix [{STEP}] one [shape=diamond] two [shape=diamond] \
         start -> test -> one -> two two -> done [condition=\"outcome=success\"] two -> fix [condition=\"outcome=fail\"] fix -> done"
    ));
    assert_eq!(ends(&graph, &["test"]), ("test one two fix".to_owned(), "done".to_owned()));
}

#[test]
fn dot_b1_so_it_is_in_markdown_unless_the_step_says_what_follows_its_last_attempt() {
    let plan = |policy: &str| {
        format!(
            "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# T\n\n## Steps\n\n### 1. Test\n\n**type:** call\n**task:** Test it.\n\
             {policy}\n**contract:**\n```bash\nmake test\n```\n\n### 2. Which way\n\n**type:** decision\n**task:** Is it good?\n\n\
             ### 3. Mend\n\n**target:** coder\n**task:** Mend it.\n\n**contract:**\n```bash\nmake mend\n```\n\n## Flow\n\n\
             - 2 -> done if outcome=success\n- 2 -> 3 if outcome!=success\n- 3 -> done\n"
        )
    };
    let graph = |policy: &str| {
        let (graph, found) = judged("plan.md", &plan(policy));
        graph.unwrap_or_else(|| panic!("{found:?}"))
    };
    assert_eq!(ends(&graph("**on_fail:** retry(1)"), &["1"]), ("1 2 3".to_owned(), "done".to_owned()));
    let said = ends(&graph("**on_fail:** retry(1), then escalate"), &["1"]);
    assert_eq!(said, ("1".to_owned(), "asks 1: exhausted".to_owned()));
}

#[test]
fn dot_b2_retry_is_followed_while_attempts_are_left_and_told_where_there_are_none() {
    let ways = "plan [prompt=\"Do it.\", contract=\"make plan\"] start -> plan -> work work -> done [condition=\"outcome=success\"] \
                work -> plan [condition=\"outcome=retry\"]";
    let graph = dot(&format!("work [{STEP}, max_retries=2] {ways}"));
    let second = |node: &NodeId, attempt: u16| i32::from(node.as_str() == "work" && attempt < 2);
    let walk = walk(&graph, &second, &|_, _| None);
    assert_eq!((walk.path.join(" ").as_str(), walk.end.as_str()), ("plan work plan work", "done"));
    let found = codes(&format!("work [{STEP}] {ways}"));
    assert!(found.iter().any(|(code, _)| *code == Code::P317), "{found:?}");
}

#[test]
fn dot_b3_two_bare_edges_are_a_warning_and_no_defect() {
    let two = format!("a [{STEP}] b [{STEP}] c [{STEP}] start -> a a -> c a -> b b -> done c -> done");
    assert_eq!(ends(&dot(&two), &[]), ("a b".to_owned(), "done".to_owned()));
    let found = codes(&two);
    assert!(found.iter().any(|(code, _)| *code == Code::P311), "{found:?}");
    let suggests = |_: &NodeId, _: u16| {
        Some(Hints {
            suggested: vec![NodeId::new("c")],
            ..Hints { label: None, suggested: Vec::new(), context: [].into(), insert_step: None }
        })
    };
    assert_eq!(walk(&dot(&two), &|_, _| 0, &suggests).path, ["a", "c"]);
}

#[test]
fn dot_b5_the_fork_says_how_many_branches_are_waited_for() {
    let both = |fork: &str, join: &str| {
        format!(
            "f [shape=component{fork}] j [shape=tripleoctagon{join}] a [{STEP}] b [{STEP}] start -> f f -> a -> j f -> b -> j j -> done"
        )
    };
    let first = dot(&both(", join_policy=first_success", ""));
    // `a` is asked about only where all are waited for.
    let lazy = |node: &NodeId, _: u16| i32::from(node.as_str() == "b");
    assert_eq!(walk(&first, &lazy, &|_, _| None).end, "done");
    assert_eq!(walk(&dot(&both("", "")), &lazy, &|_, _| None).end, "asks b: no_edge");
    let clash = codes(&both(", join_policy=first_success", ", join_policy=wait_all"));
    assert!(clash.iter().any(|(code, _)| *code == Code::P318), "{clash:?}");
}
