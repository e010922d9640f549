//! Goals, questions that the plan asks, escalations on purpose, checkpoints (DOT 1.6, 1.12; G-08, G-27, G-51).

use super::script::talk;

#[test]
fn g1_g2_g6_an_unmet_goal_leads_back_and_must_pass_before_the_end() {
    talk(
        "
        plan  fix: task  test: call  doc: call  test -on_fail-> doc  goal test else fix
        approved
        -> clock admitted             fix#1 to coder
        -> agent reported fix#1       fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; doc#1 to harness
        -> harness found doc#1 exit 0  doc#1 passed; doc settled passed; goal test unmet; fix#2 to coder, told #1 failed
        -> agent reported fix#2       fix#2 to harness
        -> harness found fix#2 exit 0  fix#2 passed; fix settled passed; test#2 to harness
        -> harness found test#2 exit 0  test#2 passed; test settled passed; doc#2 to harness
        -> harness found doc#2 exit 0  doc#2 passed; doc settled passed; DONE
        ",
    );
}

#[test]
fn g3_without_a_way_back_an_unmet_goal_fails_the_run() {
    talk(
        "
        plan  test: call  doc: call  test -on_fail-> doc  goal test
        approved
        -> clock admitted             test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; doc#1 to harness
        -> harness found doc#1 exit 0  doc#1 passed; doc settled passed; goal test unmet; FAILED
        ",
    );
}

#[test]
fn g4_a_goal_that_was_never_visited_is_unmet() {
    talk(
        "
        plan  a: call  test: call  a -on_success-> done  a -on_fail-> test  goal test
        approved
        -> clock admitted             a#1 to harness
        -> harness found a#1 exit 0   a#1 passed; a settled passed; goal test unmet; FAILED
        ",
    );
}

#[test]
fn g5_the_way_back_of_a_goal_is_bounded_by_visits() {
    talk(
        "
        plan  fix: call visits 2  test: call  test -on_fail-> done  test -on_success-> done  goal test else fix  limit same 9
        approved
        -> clock admitted             fix#1 to harness
        -> harness found fix#1 exit 0  fix#1 passed; fix settled passed; test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; goal test unmet; fix#2 to harness
        -> harness found fix#2 exit 0  fix#2 passed; fix settled passed; test#2 to harness
        -> harness found test#2 exit 1  test#2 failed; test settled failed; goal test unmet; fix held: escalation visits_limit
        ",
    );
}

#[test]
fn g7_a_waived_goal_is_met_and_shows_as_waived() {
    talk(
        "
        plan  test: call  test -on_exhaust-> ask  goal test
        approved
        -> clock admitted             test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test held: escalation exhausted
        -> human waive \"looked at it\"  test settled waived by the owner; DONE
        ",
    );
}

#[test]
fn a_warned_goal_is_unmet() {
    talk(
        "
        plan  test: call warn  test -on_fail-> done  goal test
        approved
        -> clock admitted             test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled warned; goal test unmet; FAILED
        ",
    );
}

const QUESTION: &str = "h: human yes no  a: task  b: task  h -on_success@[Y]_Yes-> a  h -on_success@no-> b";

#[test]
fn h2_an_answer_takes_the_edge_of_its_name() {
    talk(
        "
        plan  h: human ship mend  a: task  b: task  h -on_success@Ship-> a  h -on_success@Mend-> b
        approved
        -> clock admitted           h held: choice planned
        -> human choose mend        h settled passed by the owner; b#1 to coder
        ",
    );
}

#[test]
fn h3_an_answer_that_matches_nothing_is_refused_and_the_question_stays() {
    talk(&format!(
        "
        plan  {QUESTION}
        approved
        -> clock admitted           h held: choice planned
        -> human choose maybe       refused: `maybe` is not an option; the options are: yes, no
        -> human retry              refused: this ask takes one of: choose, skip, revise, abort
        -> human choose NO          h settled passed by the owner; b#1 to coder
        -> human choose no          refused: the step is not in a state for this
        "
    ));
}

#[test]
fn h3_an_empty_answer_is_refused_where_any_words_answer() {
    let refusal = planctl_engine::Refusal::NoSuchOption { option: " ".to_owned(), options: Vec::new() };
    assert_eq!(refusal.to_string(), "the answer is empty; say it in your own words");
}

#[test]
fn h4_the_declared_answer_counts_where_nobody_gave_one() {
    talk(
        "
        plan  h: human yes no default no  a: task  b: task  h -on_success@yes-> a  h -on_success@no-> b
        approved
        -> clock admitted           h held: choice planned; wake at 60 s
        wait 60 seconds
        -> clock unanswered h       h settled passed by the plan; h#0 taken back from ask; no wake; b#1 to coder
        ",
    );
}

#[test]
fn a_question_that_nobody_waits_for_any_more_wakes_nobody() {
    talk(
        "
        plan  h: human yes no default no  a: task  b: task  h -on_success@yes-> a  h -on_success@no-> b
        approved
        -> clock admitted           h held: choice planned; wake at 60 s
        -> human cancels            h#0 taken back from ask; no wake; CANCELLED
        -> clock unanswered h       refused: the run is not in a state for this
        ",
    );
}

#[test]
fn x35_without_a_declared_answer_a_question_waits_for_ever() {
    talk(&format!(
        "
        plan  {QUESTION}
        approved
        -> clock admitted           h held: choice planned
        -> clock unanswered h       refused: the step is not in a state for this
        "
    ));
}

#[test]
fn h6_free_text_is_an_answer_where_there_are_no_options_and_conditions_can_look_at_it() {
    talk(
        "
        plan  h: human  d: decision  a: task  b: task  d -always?steps.h.output=blue-> b  d -on_success-> a
        approved
        -> clock admitted           h held: choice planned
        -> human choose blue        h settled passed by the owner; b#1 to coder
        ",
    );
}

#[test]
fn g27_an_escalation_on_purpose_waits_for_a_person_and_keeps_the_path() {
    talk(
        "
        plan  test: call  revert: call  e: escalate  test -on_success-> done  test -on_fail-> revert  revert -on_success-> e
        approved
        -> clock admitted               test#1 to harness
        -> harness found test#1 exit 1  test#1 failed; test settled failed; revert#1 to harness
        -> harness found revert#1 exit 0  revert#1 passed; revert settled passed; e held: escalation planned
        -> human retry                  revert#2 to harness
        -> harness found revert#2 exit 0  revert#2 passed; revert settled passed; e held: escalation planned
        -> human skip \"seen\"          e settled skipped by the owner; FAILED
        ",
    );
}

#[test]
fn g08_a_failing_path_back_to_a_checkpoint_restores_it_and_a_success_records_anew() {
    talk(
        "
        plan  c: checkpoint  a: call  b: call  a -on_fail-> c  b -on_fail-> a
        approved
        -> clock admitted           c to be recorded
        -> harness found c#0 recorded s1  c saved as s1; a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a settled failed; c to be restored
        -> harness found c#0 recorded s2  refused: the step is not in a state for this
        -> harness found c#0 restored  c restored; a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to harness
        ",
    );
}

#[test]
fn g08_a_checkpoint_whose_record_was_interrupted_is_recorded_again() {
    talk(
        "
        plan  c: checkpoint  a: call
        approved
        -> clock admitted           c to be recorded
        -> clock own lease lost c#0  c to be recorded
        -> harness found c#0 nothing: no git  c to be recorded
        -> harness found c#0 recorded s1  c saved as s1; a#1 to harness
        ",
    );
}
