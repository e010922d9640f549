//! Rows of graphs (seed G, DOT 1.4, 1.7, 1.8) that are told nowhere else, each by a conversation named after it.

use super::script::{facts_after, talk};

const BEGUN: &str = "approved
    -> clock admitted           a#1 to coder";

#[test]
fn g13_g14_a_contract_that_passes_takes_on_success_and_one_that_fails_on_fail() {
    let plan = "plan  a: task  b: task  c: task  a -on_success-> b  a -on_fail-> c";
    talk(&format!(
        "{plan}
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder"
    ));
    talk(&format!(
        "{plan}
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed"
    ));
}

#[test]
fn g16_g20_without_retries_the_first_failure_is_exhaustion() {
    talk(&format!(
        "plan  a: task  b: task  c: task  a -on_success-> b  a -on_exhaust-> c
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed"
    ));
}

#[test]
fn g17_an_always_edge_is_taken_whatever_came_of_it() {
    for (exit, settled) in [
        ("0", "passed; a settled passed; b#1 to coder"),
        ("1", "failed; a settled failed; b#1 to coder, told #1 failed"),
    ] {
        talk(&format!(
            "plan  a: task  b: task  a -always-> b
            {BEGUN}
            -> agent reported a#1       a#1 to harness
            -> harness found a#1 exit {exit}  a#1 {settled}"
        ));
    }
}

#[test]
fn g21_g23_r3_a_failed_contract_is_tried_again_at_the_same_node_and_n_retries_are_n_and_one_attempts() {
    talk(&format!(
        "plan  a: task retry 2  b: task  a -on_success-> done  a -on_exhaust-> b
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a#3 to coder, told #2 failed
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a settled failed; b#1 to coder, told #3 failed"
    ));
}

#[test]
fn g24_g25_a_loop_back_is_another_visit_and_attempts_are_counted_on() {
    talk(&format!(
        "plan  a: task retry 1  b: task  a -on_success-> b  a -on_exhaust-> done  b -on_success-> done  b -on_fail-> a
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b settled failed; a#3 to coder, told #1 failed"
    ));
}

#[test]
fn e7_exactly_one_edge_is_followed_where_no_fork_is() {
    let (_, facts) = facts_after(&format!(
        "plan  a: task  b: task  c: task  a -on_success@one-> b  a -on_success@two-> c  parallel 3
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder"
    ));
    let followed = facts.iter().filter(|fact| {
        fact.name() == "edge_followed" && fact.node().is_some_and(|node| node.as_str() == "a")
    });
    assert_eq!(followed.count(), 1);
}

#[test]
fn e8_what_a_worker_notes_is_there_before_the_edges_are_weighed_and_so_are_outcome_and_label() {
    talk(&format!(
        "plan  a: task  b: task  c: task  a -on_success-> b  a -always?context.ready=yes&&context.outcome=success&&context.preferred_label=go-> c
        {BEGUN}
        -> agent reported a#1 notes ready=yes prefers go  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder"
    ));
}

#[test]
fn e11_no_edge_that_fits_is_a_stall_and_never_a_success() {
    talk(&format!(
        "plan  a: task  b: task  a -always?context.x=1-> b
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; a held: escalation no_edge"
    ));
}

#[test]
fn r5_how_often_a_node_was_retried_is_known_to_conditions() {
    talk(&format!(
        "plan  a: task retry 1  b: task  c: task  a -on_success-> done  a -on_exhaust-> b  a -on_exhaust?context.internal.retry_count.a=2-> c
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a settled failed; c#1 to coder, told #2 failed"
    ));
}

#[test]
fn r6_x3_an_exhausted_node_that_may_be_partial_is_warned_and_the_way_on_knows_it() {
    talk(&format!(
        "plan  a: task warn  d: decision  b: task  c: task  d -on_success-> b  d -always?outcome=partial_success-> c
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled warned; c#1 to coder"
    ));
}

#[test]
fn r4_trouble_of_the_infrastructure_spends_no_attempt_and_a_missing_right_asks_at_once() {
    talk(&format!(
        "plan  a: task  b: task
        {BEGUN}
        -> agent faulted a#1        a#1 to coder later
        -> agent lacks permission a#1  a held: escalation permission"
    ));
}

#[test]
fn s4_h1_a_question_offers_the_labels_of_its_edges_and_keys_before_them_do_not_count() {
    talk(
        "plan  h: human [Y]_Ship Mend  a: task  b: task  h -on_success@[Y]_Ship-> a  h -on_success@Mend-> b
        approved
        -> clock admitted           h held: choice planned
        -> human choose Mend        h settled passed by the owner; b#1 to coder",
    );
}

#[test]
fn h8_a_question_that_was_answered_takes_no_second_answer() {
    talk(
        "plan  h: human yes no  a: task  b: task  h -on_success@yes-> a  h -on_success@no-> b
        approved
        -> clock admitted           h held: choice planned
        -> human choose yes         h settled passed by the owner; a#1 to coder
        -> human choose no          refused: the step is not in a state for this",
    );
}

#[test]
fn k3_k4_g53_outcomes_and_visits_are_part_of_what_is_resumed() {
    talk(&format!(
        "plan  a: task  b: task abort  c: task  a -on_success-> b  b -on_success-> c
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; c#1 to coder"
    ));
}

#[test]
fn k6_a_run_that_is_done_is_not_resumed() {
    talk(&format!(
        "plan  a: task
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE
        -> human resumes            refused: the run is not in a state for this"
    ));
}

#[test]
fn v2_g28_every_run_that_is_over_says_so_once_and_last() {
    let plan = "plan  a: task abort";
    let ends = [
        (
            "-> agent reported a#1  a#1 to harness\n -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE",
            "plan_completed",
        ),
        ("-> agent overran a#1  a settled failed; FAILED", "plan_failed"),
        ("-> human cancels  a#1 taken back from agent; CANCELLED", "plan_cancelled"),
    ];
    for (lines, end) in ends {
        let (_, facts) = facts_after(&format!("{plan}\n{BEGUN}\n{lines}"));
        let terminal = ["plan_completed", "plan_failed", "plan_cancelled"];
        let told: Vec<&str> =
            facts.iter().map(planctl_engine::Fact::name).filter(|name| terminal.contains(name)).collect();
        assert_eq!(told, [end]);
        assert_eq!(facts.last().map(planctl_engine::Fact::name), Some(end));
    }
}

#[test]
fn e16_the_same_graph_and_the_same_outcomes_give_the_same_path() {
    let conversation = format!(
        "plan  a: task retry 1  b: task  c: task  a -on_success@x*2-> c  a -on_success@y*2-> b  a -on_exhaust-> b
        {BEGUN}
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder"
    );
    assert_eq!(facts_after(&conversation).1, facts_after(&conversation).1);
}

#[test]
fn e13_a_node_is_entered_as_often_as_it_may_and_then_a_person_is_asked_about_it() {
    talk(
        "plan  a: task visits 1 escalate  b: task  b -on_fail-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; a held: escalation visits_limit",
    );
}

#[test]
fn g32_x31_a_loop_that_gets_no_further_is_stale_after_so_many_turns() {
    // Each report and each gate is a turn; that `a` passes again is no progress.
    talk(
        "plan  a: task visits 9  b: task visits 9  a -on_success-> b  b -on_fail-> a  b -on_success-> done  limit same 9  stale after 5 turns
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b settled failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 1  b#2 failed; b settled failed; expired after 6 turns; a held: escalation stale
        -> human retry              a#4 to coder, told #2 failed",
    );
    // With progress the count begins anew.
    talk(
        "plan  a: task  b: task  stale after 1 turns
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; DONE",
    );
}

#[test]
fn g32_staleness_is_measured_from_the_last_step_of_the_run_and_ends_with_a_question() {
    talk(
        "plan  a: task escalate  b: task  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        wait 70 seconds
        -> clock stale              expired after 70 s; a#1 taken back from agent; a held: escalation stale; wake at 130 s"
    );
}

#[test]
fn g34_the_eight_kinds_of_events_have_the_names_of_the_seed() {
    let begun = "plan  a: task retry 1 escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder";
    let passed = facts_after(&format!(
        "{begun}
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; no wake; DONE"
    ));
    let stale = facts_after(&format!(
        "{begun}
        wait 70 seconds
        -> clock stale              expired after 70 s; a#1 taken back from agent; a held: escalation stale; wake at 130 s"
    ));
    let names: Vec<&str> = passed.1.iter().chain(&stale.1).map(planctl_engine::Fact::name).collect();
    for name in [
        "plan_activated",
        "node_entered",
        "node_verified",
        "retry_triggered",
        "edge_followed",
        "plan_completed",
        "plan_escalated",
        "plan_expired",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}
