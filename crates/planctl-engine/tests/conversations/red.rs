//! Red never turns green by itself: which edges are open after a failure, an exhaustion or a cap (DESIGN 6; DOT A1 to A5).

use super::script::talk;

#[test]
fn dot_a1_the_label_of_a_worker_opens_no_way_from_a_failed_step() {
    talk(
        "
        plan  review: task  fix: task  review -always?preferred_label=approve-> done  review -always?preferred_label=reject-> fix  fix -on_success-> review
        approved
        -> clock admitted             review#1 to coder
        -> agent reported review#1 prefers approve  review#1 to harness
        -> harness found review#1 exit 1  review#1 failed; review held: escalation no_edge
        ",
    );
}

#[test]
fn dot_a1_nor_does_a_custom_outcome_a_context_value_or_an_outcome_that_it_is_not() {
    for condition in ["outcome=yes", "outcome!=reject", "context.verdict=approved", "context.x!=1"] {
        talk(&format!(
            "
            plan  review: task  fix: task  review -always?{condition}-> done  review -on_success-> fix
            approved
            -> clock admitted             review#1 to coder
            -> agent reported review#1 prefers yes notes verdict=approved  review#1 to harness
            -> harness found review#1 exit 1  review#1 failed; review held: escalation no_edge
            "
        ));
    }
}

#[test]
fn dot_a1_conditions_that_require_the_failure_stay_open_whatever_else_they_ask() {
    let named = [
        "outcome=fail",
        "outcome!=success",
        "outcome=fail&&preferred_label=yes",
        "context.verdict=approved&&outcome!=success",
        "context.outcome=fail",
        "steps.a.outcome=fail",
        "steps.a.exit_code=1",
        "steps.a.exit_code!=0",
    ];
    for condition in named {
        talk(&format!(
            "
            plan  a: task  b: task  c: task  a -always?{condition}-> c  a -on_success-> b
            approved
            -> clock admitted             a#1 to coder
            -> agent reported a#1 prefers yes notes verdict=approved  a#1 to harness
            -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed
            "
        ));
    }
}

#[test]
fn dot_a1_a_failure_of_another_step_names_not_this_one() {
    talk(
        "
        plan  b: task  a: task  c: task  b -on_fail-> a  b -on_success-> a  a -always?steps.b.outcome=fail-> c  a -on_success-> c
        approved
        -> clock admitted             b#1 to coder
        -> agent overran b#1          b settled failed; a#1 to coder, told #1 failed
        -> agent overran a#1          a held: escalation no_edge
        ",
    );
}

#[test]
fn dot_a1_labels_and_suggestions_choose_among_the_ways_of_a_pass_only() {
    for hint in ["prefers good", "suggests b"] {
        talk(&format!(
            "
            plan  a: task  b: task  c: task  a -on_fail@good-> b  a -on_fail@bad*1-> c
            approved
            -> clock admitted           a#1 to coder
            -> agent reported a#1 {hint}  a#1 to harness
            -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed
            "
        ));
    }
}

#[test]
fn dot_a1_a_decision_that_a_failure_passes_through_opens_only_ways_that_name_it() {
    talk(
        "
        plan  a: task  d: decision  b: task  c: task  a -always-> d  d -always?preferred_label=ship-> b  d -always?context.x=1*9-> b  d -always?outcome!=success-> c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 prefers ship notes x=1  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled failed; c#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn dot_a2_partial_success_follows_only_an_edge_whose_condition_holds() {
    talk(
        "
        plan  test: call warn  ship: task  fix: task  test -always?outcome=success-> ship  test -always?outcome=fail-> fix
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test held: escalation no_edge
        ",
    );
    talk(
        "
        plan  test: call warn  ship: task  fix: task  test -always?outcome=partial_success-> ship  test -always?outcome=fail-> fix
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled warned; ship#1 to coder
        ",
    );
}

#[test]
fn dot_a4_a_goal_gate_on_a_decision_takes_the_status_that_passes_through_it() {
    let plan = "plan  test: call  gate: decision  test -always-> gate  gate -always-> done  goal gate";
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; goal gate unmet; FAILED
        "
    ));
    talk(&format!(
        "
        {plan}
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 0  test#1 passed; test settled passed; DONE
        "
    ));
}

#[test]
fn dot_a4_a_waiver_meets_the_gate_and_a_warning_does_not() {
    talk(
        "
        plan  test: call  gate: decision  test -on_success-> gate  gate -always-> done  goal gate
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test held: escalation no_edge
        -> human waive \"known\"    test settled waived by the owner; DONE
        ",
    );
    talk(
        "
        plan  test: call warn  gate: decision  test -on_success-> gate  test -on_exhaust-> gate  gate -always-> done  goal gate
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled warned; goal gate unmet; FAILED
        ",
    );
}

#[test]
fn dot_a5_a_node_over_its_cap_leaves_its_loop_or_asks() {
    talk(
        "
        plan  pick: call visits 1  work: call  pick -always?context.tool.output!=all-> work  pick -always?context.tool.output=all-> done  work -on_success-> pick
        approved
        -> clock admitted           pick#1 to harness
        -> harness found pick#1 exit 0  pick#1 passed; pick settled passed; work#1 to harness
        -> harness found work#1 exit 0  work#1 passed; work settled passed; pick held: escalation visits_limit
        ",
    );
    talk(
        "
        plan  test: call visits 1  fix: call  test -always?outcome=fail-> fix  fix -on_success-> test  test -on_success-> done
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test held: escalation visits_limit
        ",
    );
    talk(
        "
        plan  test: call visits 1  fix: call  report: call  test -always?outcome=fail*9-> fix  test -on_fail-> report  fix -on_success-> test  test -on_success-> done
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test settled failed; report#1 to harness
        ",
    );
}

#[test]
fn dot_a5_a_person_in_the_loop_may_be_asked_at_the_cap() {
    talk(
        "
        plan  test: call visits 1  h: human again ship  test -on_fail-> h  h -on_success@again-> test  h -on_success@ship-> done  test -on_success-> done
        approved
        -> clock admitted           test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; h held: choice planned
        -> human choose again       h settled passed by the owner; test settled failed; h held: choice planned
        ",
    );
}

#[test]
fn hole_9_a_worker_forges_no_name_that_the_engine_reads() {
    for name in ["tool.exit_code", "context.tool.exit_code"] {
        talk(&format!(
            "
            plan  audit: call  note: task  review: task  audit -on_fail-> note  audit -on_success-> note  note -always?context.tool.exit_code=3*1-> review  note -on_success-> done
            approved
            -> clock admitted           audit#1 to harness
            -> harness found audit#1 exit 3  audit#1 failed; audit settled failed; note#1 to coder, told #1 failed
            -> agent reported note#1 notes {name}=0  note may not note {name}; note#1 to harness
            -> harness found note#1 exit 0  note#1 passed; note settled passed; review#1 to coder
            "
        ));
    }
}

#[test]
fn dot_b3_two_bare_edges_are_chosen_between_by_suggestion_and_then_by_name() {
    let plan = "plan  a: task  c: task  b: task  a -on_success-> c  a -on_success-> b";
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
        -> agent reported a#1 suggests c  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        "
    ));
}

#[test]
fn a_decision_that_is_tried_again_goes_on_with_what_it_was_entered_with() {
    talk(
        "
        plan  d: decision  a: call  d -on_success-> done  d -always?context.x=1-> a  a -on_success-> done  goal a else d
        approved
        -> clock admitted             goal a unmet; d held: escalation no_edge
        -> human retry                d held: escalation no_edge
        ",
    );
}
