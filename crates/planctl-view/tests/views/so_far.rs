//! The run so far, as agents are told it (DOT F2).

use planctl_engine::{Fact, Fidelity, SoFar};
use planctl_view::{so_far, so_far_facts};

use super::script::facts_after;

/// A run through a loop, with a question and notes, and what an agent is told of it.
fn told(fidelity: Fidelity) -> String {
    let (graph, facts) = facts_after(
        "plan  a: task retry 1  b: task  h: human ship mend  c: task  a -on_success-> b  b -on_success-> h  h -on_success@mend-> a  h -on_success@ship-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b held: escalation no_edge
        -> human skip \"it does not apply\"  b settled skipped by the owner; h held: choice planned
        -> human choose ship        h settled passed by the owner; c#1 to coder",
    );
    let context = [("human.gate.selected".to_owned(), "ship".to_owned())].into();
    so_far(&graph, "fix-3", &SoFar { fidelity, thread: "a".to_owned(), context }, &facts)
}

#[test]
fn f2_what_an_agent_is_told_of_the_run() {
    let known = "Known:\n- human.gate.selected: ship\n";
    assert_eq!(told(Fidelity::Truncate), "Run: fix-3\n");
    assert_eq!(
        told(Fidelity::Compact),
        format!("Over so far:\n- a: passed\n- b: skipped\n- h: passed\n{known}")
    );
    assert_eq!(
        told(Fidelity::SummaryMedium),
        format!(
            "Over so far:\n- step 1 \"a\": passed, 2 attempts\n- step 2 \"b\": skipped\n- step 3 \"h\": passed\n{known}"
        )
    );
    assert_eq!(
        told(Fidelity::SummaryHigh),
        format!(
            "Over so far:\n- step 1 \"a\": passed, 2 attempts\n- step 2 \"b\": skipped: it does not apply\n- step 3 \"h\": passed, went on by \"ship\"\n{known}"
        )
    );
    assert_eq!(told(Fidelity::Full), told(Fidelity::SummaryHigh));
}

#[test]
fn g26_what_a_decision_is_about_is_told_to_the_next_agent_and_to_people() {
    let (graph, facts) = facts_after(
        "plan  a: task  d: decision says deep-or-simple  b: task  a -always-> d  d -on_success-> b  d -on_fail-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder",
    );
    let asked = SoFar {
        fidelity: Fidelity::Compact,
        thread: "a".to_owned(),
        context: std::collections::BTreeMap::new(),
    };
    let told = so_far(&graph, "fix-3", &asked, &facts);
    assert!(told.contains("- a: passed\n- d: deep-or-simple: went on to b\n"), "{told}");
    let said: Vec<String> = facts.iter().map(|fact| planctl_view::sentence(&graph, fact)).collect();
    assert!(
        said.iter().any(|line| line.contains("(deep-or-simple)") && line.contains("so the run went to")),
        "{said:?}"
    );
}

#[test]
fn f2_of_a_long_run_the_newest_is_told() {
    let (graph, facts) = facts_after(
        "plan  a: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE",
    );
    let many: Vec<Fact> =
        facts.iter().cycle().take(usize::from(so_far_facts(Fidelity::SummaryLow))).cloned().collect();
    let context = (0..200).map(|n| (format!("name{n}"), "x".repeat(10_000))).collect();
    let told = SoFar { fidelity: Fidelity::SummaryLow, thread: String::new(), context };
    let text = so_far(&graph, "fix-3", &told, &many);
    assert!(text.lines().all(|line| line.chars().count() < 300), "{text}");
    let told = SoFar { fidelity: Fidelity::SummaryLow, thread: String::new(), context: Default::default() };
    let text = so_far(&graph, "fix-3", &told, &many);
    assert_eq!(text, "Over so far, the newest last, older ones left out:\n- step 1 \"a\": passed\n");
}
