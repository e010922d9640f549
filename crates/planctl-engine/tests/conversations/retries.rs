//! Attempts: events that spend one, events that grant one, and the route after the last (DESIGN 6, P-19 and following).

use super::script::talk;

#[test]
fn a_step_passes_by_its_gate_and_the_next_begins() {
    talk(
        "
        plan  a: task  b: task
        -> human submits            start held: plan submitted
        -> human approve            queued
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn p46_a_failed_gate_is_retried_with_the_failure_in_the_prompt_and_then_a_person_is_asked() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#1       refused: that attempt is over
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a held: escalation exhausted
        ",
    );
}

#[test]
fn p47_retry_and_abort_ends_the_run_as_failed() {
    talk(
        "
        plan  a: task retry 1 abort
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 2  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 2  a#2 failed; a settled failed; FAILED
        ",
    );
}

#[test]
fn retry_and_skip_goes_on_and_shows_the_step_as_skipped() {
    talk(
        "
        plan  a: task retry 1 skip  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a settled skipped; b#1 to coder
        ",
    );
}

#[test]
fn retry_and_warn_goes_on_and_shows_the_step_as_warned() {
    talk(
        "
        plan  a: task retry 1 warn  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a settled warned; b#1 to coder
        ",
    );
}

#[test]
fn death_by_signal_never_passes_and_spends_an_attempt() {
    talk(
        "
        plan  a: task retry 1 abort
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 signal 9  a#1 failed; a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn x20_a_gate_that_times_out_spends_an_attempt() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 timeout  a#1 timed out; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 timeout  a#2 timed out; a held: escalation exhausted
        ",
    );
}

#[test]
fn p51_work_past_its_deadline_spends_an_attempt_and_gets_no_gate() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> clock overran a#2        a held: escalation exhausted
        -> agent reported a#2       refused: the step is not in a state for this
        ",
    );
}

#[test]
fn a_worker_that_gives_up_gets_its_gate_and_no_retry() {
    talk(
        "
        plan  a: task retry 5 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 gave up  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation exhausted
        ",
    );
}

#[test]
fn a_worker_that_gives_up_passes_all_the_same_where_the_contract_does() {
    talk(
        "
        plan  a: task retry 5 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 gave up  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a_run_makes_no_more_attempts_than_its_limit() {
    talk(
        "
        plan  a: task retry 9 escalate  limit attempts 2
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent overran a#2        a held: escalation attempts_limit
        -> human retry              a held: escalation attempts_limit
        -> human skip \"enough\"    a settled skipped by the owner; DONE
        ",
    );
}
