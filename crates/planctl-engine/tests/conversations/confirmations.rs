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
