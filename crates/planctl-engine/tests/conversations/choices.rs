//! Which way a run goes where conditions, labels, weights and decisions have a say (DOT 1.4, 1.5; G-05, G-26).

use planctl_engine::{Fact, On};

use super::script::{facts_after, talk};

#[test]
fn e6_a_condition_that_holds_beats_any_weight_and_the_table() {
    talk(
        "
        plan  a: task  b: task  c: task  a -on_success*9-> b  a -always?outcome=success-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn e6_a_condition_that_does_not_hold_is_never_taken() {
    talk(
        "
        plan  a: task  b: task  a -always?context.x=1-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; a held: escalation no_edge
        ",
    );
}

#[test]
fn e2_of_conditions_that_hold_the_heaviest_wins_and_then_the_smallest_target() {
    talk(
        "
        plan  a: task  d: task  c: task  b: task  a -always?outcome=success*2-> d  a -always?outcome!=fail*2-> c  a -always?outcome!=retry*1-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn e3_the_label_that_the_worker_prefers_decides_between_edges_without_condition() {
    talk(
        "
        plan  a: task  b: task  c: task  a -on_success@[S]_Ship-> b  a -on_success@Mend-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 prefers mend  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn e4_a_suggested_node_is_taken_where_an_edge_reaches_it() {
    talk(
        "
        plan  a: task  b: task  c: task  a -on_success@x-> b  a -on_success@y-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 suggests c  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn e5_without_anything_else_weight_decides_and_then_the_name() {
    talk(
        "
        plan  a: task  c: task  b: task  a -on_success@x-> c  a -on_success@y-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        ",
    );
    talk(
        "
        plan  a: task  b: task  c: task  a -on_success*1-> b  a -on_success*2-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn e10_a_failed_step_never_walks_on_along_an_edge_that_is_for_success() {
    talk(
        "
        plan  a: task  b: task  a -on_success*1-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation no_edge
        ",
    );
}

#[test]
fn e15_the_choice_is_a_fact_that_says_what_was_tried_and_why_one_won() {
    let (_, facts) = facts_after(
        "
        plan  a: task  b: task  c: task  a -always?steps.a.exit_code=3-> b  a -on_success-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        ",
    );
    let chosen = facts.iter().find_map(|fact| {
        let Fact::EdgeFollowed { from, choosing, .. } = fact else { return None };
        (from.as_str() == "a").then_some(choosing.as_deref())
    });
    let choosing = chosen.flatten().unwrap();
    let tried: Vec<_> = choosing
        .tried
        .iter()
        .map(|tried| {
            let found = tried.trail.as_ref().map(|trail| {
                (trail.clauses[0].clause.as_str(), trail.clauses[0].found.as_deref(), trail.holds)
            });
            (tried.to.as_str(), tried.on, found)
        })
        .collect();
    assert_eq!(
        tried,
        [("b", On::Always, Some(("steps.a.exit_code=3", Some("0"), false))), ("c", On::Success, None)]
    );
}

#[test]
fn a_choice_between_plain_edges_is_not_spelt_out() {
    let (_, facts) = facts_after(
        "
        plan  a: task  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        ",
    );
    assert!(facts.iter().all(|fact| !matches!(fact, Fact::EdgeFollowed { choosing: Some(_), .. })));
}

#[test]
fn g_05_g26_s5_a_decision_passes_on_what_came_and_nobody_works_at_it() {
    let plan = "plan  a: task  d: decision  b: task  c: task  a -on_success-> d  a -on_exhaust-> d  d -always?outcome=success-> b  d -always?outcome=fail-> c";
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        "
    ));
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; c#1 to coder, told #1 failed
        "
    ));
}

#[test]
fn s5_the_failing_branch_of_a_decision_is_taken_by_the_edges_of_the_table_too() {
    talk(
        "
        plan  a: task  d: decision  b: task  c: task  a -on_success-> d  a -on_exhaust-> d  d -on_success-> b  d -on_fail-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; c#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_step_that_was_skipped_by_its_policy_counts_as_met_behind_a_decision() {
    talk(
        "
        plan  a: task  d: decision  b: task  c: task  a -on_success-> d  a -on_exhaust-> d  d -on_success-> b  d -on_fail-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; c#1 to coder, told #1 failed
        ",
    );
    talk(
        "
        plan  a: task skip  d: decision  b: task  c: task  a -on_success-> d  d -on_success-> b  d -on_fail-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled skipped; b#1 to coder
        ",
    );
}

#[test]
fn no_edge_of_a_decision_is_a_stall_about_the_step_before_it() {
    talk(
        "
        plan  a: task  d: decision  b: task  d -always?context.ready=yes-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; a held: escalation no_edge
        -> human retry              a#2 to coder
        -> agent reported a#2 notes ready=yes  a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        ",
    );
}

#[test]
fn x5_a_worker_writes_no_name_of_ours() {
    talk(
        "
        plan  a: task  d: decision  b: task  d -always?context.human.gate.selected=yes-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 notes human.gate.selected=yes  a may not note human.gate.selected; a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; a held: escalation no_edge
        ",
    );
}

#[test]
fn x4_what_a_worker_says_of_the_way_on_passes_no_gate() {
    talk(
        "
        plan  a: task  b: task  c: task  a -on_success@good-> b  a -on_fail@bad-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 prefers good  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_command_decides_by_its_exit_code_and_anything_else_is_asked_about() {
    let plan = "plan  d: decision by command  b: task  c: task  d -on_success-> b  d -on_fail-> c";
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           d#1 to harness
        -> harness found d#1 exit 0  d says yes; b#1 to coder
        "
    ));
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           d#1 to harness
        -> harness found d#1 exit 3  d says no; c#1 to coder
        "
    ));
}

#[test]
fn s7_s10_a_call_is_its_own_contract_and_is_retried() {
    talk(
        "
        plan  a: call retry 1  b: task
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 2  a#1 failed; a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        ",
    );
    talk(
        "
        plan  a: call  b: task
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 2  a#1 failed; a held: escalation no_edge
        -> human reassign senior    refused: this ask takes one of: retry, skip, waive, revise, abort
        -> human retry              a#2 to harness
        ",
    );
}

#[test]
fn m_36_a_call_with_effects_waits_for_a_persons_word_before_each_attempt() {
    talk(
        "
        plan  a: call retry 1 asks writes  b: task
        approved
        -> clock admitted           a held: effect effect
        -> human approve            a#1 to harness
        -> harness found a#1 exit 2  a#1 failed; a held: effect effect
        -> human approve            a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        ",
    );
}

#[test]
fn m_36_a_call_that_is_not_allowed_has_failed_and_never_ran() {
    talk(
        "
        plan  a: call retry 1 asks writes  b: task  a -on_exhaust-> b
        approved
        -> clock admitted           a held: effect effect
        -> human reject             a settled failed by the owner; b#1 to coder
        ",
    );
}

#[test]
fn m_36_what_a_person_allowed_ends_with_the_entering_that_they_allowed_it_for() {
    talk(
        "
        plan  f: fork j  b: task  a: call asks writes  j: join  f -always-> b  f -always-> a  b -on_success-> j  a -on_success-> j
        approved
        -> clock admitted           b#1 to coder; a held: effect effect
        -> human approve            a queued
        -> human pauses             b#1 taken back from agent; paused
        -> human resumes            queued
        -> clock admitted           goes on; a held: effect effect; b#2 to coder
        ",
    );
}

#[test]
fn an_exit_code_of_any_step_can_decide_later() {
    talk(
        "
        plan  a: call  b: task  d: decision  c: task  e: task  a -on_exhaust-> b  d -always?steps.a.exit_code=2-> c  d -on_success-> e
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 2  a#1 failed; a settled failed; b#1 to coder, told #1 failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder
        ",
    );
}

#[test]
fn x08_decisions_in_a_circle_end_with_a_question() {
    talk(
        "
        plan  a: task  d: decision visits 3  e: decision  b: task  d -on_success-> e  e -on_success-> d  e -always?context.x=1-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; d held: escalation visits_limit
        ",
    );
}

#[test]
fn e14_the_same_failure_for_the_third_time_is_asked_about() {
    talk(
        "
        plan  fix: task  test: call  test -on_exhaust-> fix
        approved
        -> clock admitted             fix#1 to coder
        -> agent reported fix#1       fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test#1 to harness
        -> harness found test#1 exit 1 printing failed_in_31_s  test#1 failed; test settled failed; fix#2 to coder, told #1 failed
        -> agent reported fix#2       fix#2 to harness
        -> harness found fix#2 exit 0  fix#2 passed; fix settled passed; test#2 to harness
        -> harness found test#2 exit 1 printing failed_in_29_s  test#2 failed; test settled failed; fix#3 to coder, told #2 failed
        -> agent reported fix#3       fix#3 to harness
        -> harness found fix#3 exit 0  fix#3 passed; fix settled passed; test#3 to harness
        -> harness found test#3 exit 1 printing failed_in_30_s  test#3 failed; test held: escalation same_failure
        ",
    );
}

#[test]
fn e14_other_failures_are_no_recurrence() {
    talk(
        "
        plan  fix: call  test: call  test -on_exhaust-> fix  limit same 2
        approved
        -> clock admitted             fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test#1 to harness
        -> harness found test#1 exit 1 printing one  test#1 failed; test settled failed; fix#2 to harness
        -> harness found fix#2 exit 0  fix#2 passed; fix settled passed; test#2 to harness
        -> harness found test#2 exit 1 printing two  test#2 failed; test settled failed; fix#3 to harness
        ",
    );
}
