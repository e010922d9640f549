//! Work that a person confirms (DESIGN 10, row H-30): after the agent, and after the contract where there is one.

use super::script::talk;

#[test]
fn h30_an_agent_works_first_and_then_a_person_confirms() {
    talk(
        "plan  a: task confirmed  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a held: choice planned
        -> human choose done       a settled passed by the owner; b#1 to coder",
    );
}

#[test]
fn h30_work_that_a_person_refuses_spends_an_attempt_and_is_tried_again() {
    talk(
        "plan  a: task confirmed retry 1  b: task  a -on_success-> b  a -on_exhaust-> c  c: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a held: choice planned
        -> human choose no        a#2 to coder, told #1 failed
        -> agent reported a#2       a held: choice planned
        -> human choose no        a settled failed; c#1 to coder, told #2 failed",
    );
}

#[test]
fn h30_a_contract_runs_before_a_person_is_asked() {
    talk(
        "plan  a: task signed retry 1
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a held: choice planned
        -> human choose done       a settled passed by the owner; DONE",
    );
}

#[test]
fn h25_x03_an_observation_passes_where_the_plan_checks_one_and_is_graded_so() {
    talk(
        "plan  a: task observed branch retry 1  b: task
        approved
        -> clock admitted                       a#1 to coder
        -> agent reported a#1 saw \"On BRANCH\"  a#1 observed passed; a settled passed; b#1 to coder",
    );
}

#[test]
fn h32_an_observation_that_does_not_hold_spends_an_attempt() {
    talk(
        "plan  a: task observed branch retry 1
        approved
        -> clock admitted                     a#1 to coder
        -> agent reported a#1 saw \"nothing\"  a#1 observed failed; a#2 to coder, told #1 failed
        -> agent reported a#2 saw \"branch\"   a#2 observed passed; a settled passed; DONE",
    );
}

#[test]
fn x03_a_claim_without_an_observation_is_for_a_person_to_confirm() {
    talk(
        "plan  a: task observed branch
        approved
        -> clock admitted       a#1 to coder
        -> agent reported a#1   a held: choice planned
        -> human choose done    a settled passed by the owner; DONE",
    );
}

#[test]
fn x03_an_observation_never_passes_a_step_that_has_a_contract() {
    talk(
        "plan  a: task  b: task signed
        approved
        -> clock admitted                     a#1 to coder
        -> agent reported a#1 saw \"branch\"   a#1 to harness
        -> harness found a#1 exit 0           a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1 saw \"branch\"   b#1 to harness",
    );
}

#[test]
fn h27_an_exit_code_that_the_agent_does_not_tell_is_for_a_person_to_confirm() {
    talk(
        "plan  a: task observed exit  b: task observed exit
        approved
        -> clock admitted                         a#1 to coder
        -> agent reported a#1 saw \"fine\"         a#1 observed passed; a settled passed; b#1 to coder
        -> agent reported b#1 saw uncoded \"fine\"  b held: choice planned",
    );
}
