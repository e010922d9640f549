//! Trouble that is nobody's fault: lost workers, our own stops, inconclusive gates, runs that stand still.

use super::script::{scene_after, talk};

#[test]
fn x40_a_lost_worker_spends_a_delivery_and_never_an_attempt() {
    talk(
        "
        plan  a: task escalate  limit deliveries 3
        approved
        -> clock admitted           a#1 to coder
        -> clock lease lost a#1     a#1 to coder later
        -> agent faulted a#1        a#1 to coder later
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation exhausted
        ",
    );
}

#[test]
fn deliveries_lost_time_after_time_ask_a_person() {
    talk(
        "
        plan  a: task escalate  limit deliveries 2
        approved
        -> clock admitted           a#1 to coder
        -> clock lease lost a#1     a#1 to coder later
        -> clock lease lost a#1     a held: escalation undelivered
        -> human retry              a#2 to coder, told #1 failed
        -> clock lease lost a#2     a#2 to coder later, told #1 failed
        ",
    );
}

#[test]
fn work_that_the_service_cut_off_is_judged_once_and_then_goes_out_again_without_a_retry() {
    talk(
        "
        plan  a: task retry 1 escalate  limit deliveries 3
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 cut   a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder later
        -> agent reported a#2 cut   a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a#3 to coder later
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a#4 to coder, told #3 failed
        -> agent reported a#4 cut   a#4 to harness
        -> harness found a#4 exit 0  a#4 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn work_that_is_cut_off_time_after_time_asks_a_person() {
    talk(
        "
        plan  a: task escalate  limit deliveries 2
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 cut   a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder later
        -> agent reported a#2 cut   a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a held: escalation undelivered
        -> human retry              a#3 to coder, told #2 failed
        ",
    );
}

#[test]
fn a_login_that_ran_out_during_the_work_is_judged_once_and_asked_for() {
    talk(
        "
        plan  a: task retry 3 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 unauthorized  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation permission
        ",
    );
}

#[test]
fn d9_what_a_worker_was_denied_is_told_with_the_failure_after_it() {
    let (_, run, _) = scene_after(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 denied make  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        ",
    );
    let failure = run.record(&"a".into()).unwrap().failure.as_deref().unwrap();
    assert_eq!(failure.describe(), "contract exit 1 (denied: make)");
}

#[test]
fn protected_files_that_differ_are_no_trouble_of_the_service() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 cut   a#1 to harness
        -> harness found a#1 tampered tests/a.sh  a#1 tampered; a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_program_that_is_not_there_asks_a_person_at_once() {
    talk(
        "
        plan  a: task retry 3 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent can not start a#1 \"claude: not found\"  a held: escalation undelivered
        -> human retry              a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_missing_permission_asks_a_person_at_once() {
    talk(
        "
        plan  a: task retry 3 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent lacks permission a#1 \"log in\"  a held: escalation permission
        -> human retry              a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn x40_our_own_stops_are_counted_apart_and_repeat_at_once() {
    talk(
        "
        plan  a: task escalate  limit interruptions 3  limit deliveries 1
        approved
        -> clock admitted           a#1 to coder
        -> clock own lease lost a#1  a#1 to coder
        -> agent released a#1       a#1 to coder
        -> clock own lease lost a#1  a held: escalation interrupted
        ",
    );
}

#[test]
fn a_gate_that_was_interrupted_runs_again_and_spends_nothing() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> clock own lease lost a#1  a#1 to harness
        -> clock lease lost a#1     a#1 to harness
        -> harness found a#1 nothing: interrupted  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a_gate_that_tells_nothing_time_after_time_asks_a_person() {
    talk(
        "
        plan  a: task escalate  limit repeats 3
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 nothing: no bash  a#1 to harness later
        -> harness found a#1 nothing: unstable src/lib.rs  a#1 to harness later
        -> harness found a#1 nothing: no bash  a held: escalation inconclusive
        -> harness found a#1 exit 0  refused: the step is not in a state for this
        ",
    );
}

#[test]
fn x31_a_run_that_stands_still_is_taken_back_and_a_person_is_asked() {
    talk(
        "
        plan  a: task escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        wait 40 seconds
        -> agent reported a#1       a#1 to harness
        wait 20 seconds
        -> clock stale              wake at 100 s
        wait 40 seconds
        -> clock stale              expired after 60 s; a#1 taken back from gate; a held: escalation stale; wake at 160 s
        wait 60 seconds
        -> clock stale              wake at 220 s
        -> human retry              a#2 to coder
        -> harness found a#1 exit 0  refused: the step is not in a state for this
        ",
    );
}

#[test]
fn trouble_of_our_own_is_no_progress() {
    talk(
        "
        plan  a: task escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        wait 59 seconds
        -> agent faulted a#1        a#1 to coder later
        wait 1 seconds
        -> clock stale              expired after 60 s; a#1 taken back from agent; a held: escalation stale; wake at 120 s
        ",
    );
}
