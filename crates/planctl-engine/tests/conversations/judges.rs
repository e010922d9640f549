//! Judges: a model's answer beside the exit code, weaker than that, and never instead of it (P-71).

use planctl_engine::{Grade, NodeState, Outcome, Record};

use super::script::{facts_after, talk};

#[test]
fn p_71_a_step_passes_when_its_command_and_its_judge_say_so_and_what_the_judge_used_is_charged() {
    talk(
        "
        plan  a: task judged  b: task  budget 1000 tokens
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1 100 tokens  a#1 to harness
        -> harness found a#1 exit 0 judged yes 500 tokens  a#1 passed; a settled passed; b held: budget budget, 100 short
        ",
    );
}

#[test]
fn p_71_a_judges_no_is_a_failed_attempt_that_the_next_worker_is_told_of() {
    talk(
        "
        plan  a: task judged retry 1 abort
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 judged no  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0 judged yes  a#2 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn p_71_a_command_that_fails_fails_without_a_judge_and_one_that_passes_does_not_pass_without_it() {
    talk(
        "
        plan  a: task judged retry 2 abort
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 1     a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0     refused: the evidence is of another contract
        -> harness found a#2 exit 0 judged another  refused: the evidence is of another contract
        -> harness found a#2 exit 0 judged yes  a#2 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn p_71_an_answer_that_is_none_is_no_verdict_and_its_tokens_count_all_the_same() {
    talk(
        "
        plan  a: task judged  budget 1000 tokens  limit repeats 2
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1 100 tokens  a#1 to harness
        -> harness found a#1 nothing: unjudged 750 tokens  85 % used; a#1 to harness later
        -> harness found a#1 nothing: unjudged  a held: escalation inconclusive
        ",
    );
}

#[test]
fn p_71_a_judge_whose_answer_is_lost_counts_the_most_that_it_may_have_used() {
    let begun = "
        plan  a: task judged  b: task  budget 1000 tokens
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1 100 tokens  a#1 to harness
        ";
    for lost in ["clock own lease lost a#1 750 tokens", "harness found a#1 nothing: unheard 750 tokens"] {
        talk(&format!(
            "{begun}
            -> {lost}  85 % used; a#1 to harness
            -> harness found a#1 exit 0 judged yes 100 tokens  a#1 passed; a settled passed; b held: budget budget, 450 short
            "
        ));
    }
    talk(&format!(
        "{begun}
        noted a 750 tokens
        -> human pauses                 a#1 taken back from gate; paused
        -> human resumes                queued
        -> clock admitted               goes on; 85 % used; a held: budget budget, 700 short
        "
    ));
}

#[test]
fn p_71_a_worker_that_reports_no_usage_is_expected_to_use_what_its_judge_did() {
    talk(
        "
        plan  a: task judged retry 2 abort  budget 1000 tokens
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 judged no 400 tokens  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0 judged no 400 tokens  a#2 failed; 80 % used; a held: budget budget, 200 short
        ",
    );
}

#[test]
fn p_71_red_first_and_a_judge_are_one_look_before_the_work_and_a_guard_is_only_recorded() {
    talk(
        "
        plan  a: task judged red-first deny  b: task judged guard
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  refused: the step is not in a state for this
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 judged yes  a#1 passed; a settled passed; b rehearsed, time 1
        -> harness found b#0 recorded t2  b#1 to coder
        -> agent reported b#1           b#1 to harness
        -> harness found b#1 exit 0 judged yes  b#1 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn p_71_what_a_judge_alone_says_is_graded_judged_for_ever() {
    let (graph, _) = facts_after(
        "
        plan  a: task judged-alone  b: task judged
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 judged yes  a#1 passed; a settled passed; b rehearsed, time 1
        -> harness found b#0 recorded t2  b#1 to coder
        -> agent reported b#1           b#1 to harness
        -> harness found b#1 exit 0 judged yes  b#1 passed; b settled passed; DONE
        ",
    );
    let passed = Record { state: NodeState::Settled { outcome: Outcome::Passed }, ..Record::default() };
    let grade = |node: &str| passed.grade(graph.node(&node.into()).unwrap()).unwrap();
    assert_eq!((grade("a"), grade("b")), (Grade::Judged, Grade::Proved));
    assert!(Grade::Judged < Grade::Confirmed, "a person's word is worth more than a model's");
}

#[test]
fn m_35_a_judge_that_asks_first_answers_the_prompt_that_a_person_approved_and_no_other() {
    talk(
        "
        plan  a: task judged-once-approved
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 judged yes  refused: the evidence is of another contract
        -> harness found a#1 nothing: unapproved p1  a held: prompt prompt
        -> human approve                a#1 to harness
        -> harness found a#1 exit 0 judged yes to p2  refused: the evidence is of another contract
        -> harness found a#1 nothing: unapproved p2  a held: prompt prompt
        -> human approve                a#1 to harness
        -> harness found a#1 exit 0 judged yes to p2  a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn m_35_an_approved_prompt_is_of_one_attempt() {
    talk(
        "
        plan  a: task judged-once-approved retry 1 abort
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 nothing: unapproved p1  a held: prompt prompt
        -> human approve                a#1 to harness
        -> harness found a#1 exit 0 judged no to p1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0 judged yes to p1  refused: the evidence is of another contract
        -> harness found a#2 nothing: unapproved p1  a held: prompt prompt
        ",
    );
}

#[test]
fn m_35_a_rejected_prompt_fails_the_step_and_a_judge_that_nobody_has_to_approve_asks_nobody() {
    talk(
        "
        plan  a: task judged-once-approved retry 1  b: task judged  a -on_exhaust-> b
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 nothing: unapproved p1  a held: prompt prompt
        -> human reject                 a settled failed by the owner; b rehearsed, time 1
        -> harness found b#0 recorded t1  b#1 to coder
        -> agent reported b#1           b#1 to harness
        -> harness found b#1 nothing: unapproved p1  refused: the step is not in a state for this
        -> harness found b#1 exit 0 judged yes  b#1 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn m_35_a_rejected_prompt_counts_as_the_plan_says_of_a_step_that_fails() {
    talk(
        "
        plan  a: task judged-once-approved warn  b: task
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 nothing: unapproved p1  a held: prompt prompt
        -> human reject                 a settled warned by the owner; b#1 to coder
        ",
    );
}

#[test]
fn p_71_a_judge_that_would_use_more_than_is_left_waits_for_more_budget_and_the_report_is_kept() {
    talk(
        "
        plan  a: task judged  budget 1000 tokens
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 recorded t1  a#1 to coder
        -> agent reported a#1 300 tokens  a#1 to harness
        -> harness found a#1 nothing: unfunded 900  a held: budget budget, 200 short
        -> human raise 200 tokens       a#1 to harness
        -> harness found a#1 nothing: unfunded 900  a#1 to harness later
        -> harness found a#1 exit 0 judged yes 900 tokens  a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a06_too_few_tests_fail_an_attempt_whose_command_gave_its_exit_code() {
    talk(
        "
        plan  a: task tests 12 retry 3 abort
        approved
        -> clock admitted               a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 tests 11 of 12  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0     a#2 failed; a#3 to coder, told #2 failed
        -> agent reported a#3           a#3 to harness
        -> harness found a#3 exit 1     a#3 failed; a#4 to coder, told #3 failed
        -> agent reported a#4           a#4 to harness
        -> harness found a#4 exit 0 tests 12 of 12  a#4 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a06_the_contract_says_how_many_tests_have_to_pass_and_not_the_evidence() {
    talk(
        "
        plan  a: task tests 12 retry 1 abort
        approved
        -> clock admitted               a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0 tests 3 of 2  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0 tests 12 of 2  a#2 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a06_a_contract_whose_tests_are_too_few_before_the_work_is_red() {
    talk(
        "
        plan  a: task tests 12 red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0 tests 11 of 12  a red before the work; a#1 to coder
        ",
    );
}
