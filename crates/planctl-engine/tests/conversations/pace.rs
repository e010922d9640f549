//! PACE: the order in which responders take over, and the ask that ends it (DESIGN 6, G-27).

use super::script::talk;

#[test]
fn g27_each_level_gets_the_step_once_with_the_failure_told_and_then_a_person_is_asked() {
    talk(
        "
        plan  a: task retry 1 alternate strong contingent chief escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a from primary to alternate, strong; a#3 to strong, told #2 failed and coder could not (exhausted)
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a from alternate to contingent, chief; a#4 to chief, told #3 failed and strong could not (exhausted)
        -> agent reported a#4       a#4 to harness
        -> harness found a#4 exit 1  a#4 failed; a from contingent to emergency, human; a held: escalation exhausted
        ",
    );
}

#[test]
fn a_responders_report_passes_nothing_and_its_gate_does() {
    talk(
        "
        plan  a: task alternate strong escalate  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to alternate, strong; a#2 to strong, told #1 failed and coder could not (exhausted)
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        ",
    );
}

#[test]
fn a_person_may_answer_at_a_level_and_the_one_above_takes_over_where_the_answer_did_not_help() {
    talk(
        "
        plan  a: task alternate human emergency strong escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to alternate, human; a held: escalation exhausted
        -> human retry \"look again\"  a#2 to coder, told #1 failed and “look again”
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a from alternate to emergency, strong; a#3 to strong, told #2 failed and coder could not (exhausted) and “look again”
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a held: escalation exhausted
        -> human retry              a#4 to strong, told #3 failed and coder could not (exhausted)
        ",
    );
}

#[test]
fn a_level_whose_worker_cannot_run_or_lacks_a_permission_is_left_and_no_attempt_is_spent() {
    talk(
        "
        plan  a: task retry 1 alternate strong contingent chief abort  limit deliveries 1
        approved
        -> clock admitted           a#1 to coder
        -> clock lease lost a#1  a from primary to alternate, strong; a#2 to strong, told #1 failed and coder could not (undelivered)
        -> agent lacks permission a#2  a from alternate to contingent, chief; a#3 to chief, told #2 failed and strong could not (permission)
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a#4 to chief, told #3 failed and strong could not (permission)
        -> agent reported a#4       a#4 to harness
        -> harness found a#4 exit 1  a#4 failed; a settled failed; FAILED
        ",
    );
}

#[test]
fn a_run_that_stands_still_goes_to_the_next_level_and_a_gate_nobody_runs_to_a_person() {
    talk(
        "
        plan  a: task alternate strong escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        wait 60 seconds
        -> clock stale              expired after 60 s; a from primary to alternate, strong; a#1 taken back from agent; a#2 to strong, told coder could not (stale); wake at 120 s
        -> agent reported a#1       refused: that attempt is over
        -> agent reported a#2       a#2 to harness
        wait 60 seconds
        -> clock stale              expired after 60 s; a#2 taken back from gate; a held: escalation stale; wake at 180 s
        ",
    );
}

#[test]
fn an_escalation_may_name_the_level_to_which_it_raises_the_step() {
    talk(
        "
        plan  a: task alternate strong contingent chief escalate  ask at contingent
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to contingent, chief; a#2 to chief, told #1 failed and coder could not (exhausted)
        ",
    );
    talk(
        "
        plan  a: task escalate  ask at contingent
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to contingent, human; a held: escalation exhausted
        ",
    );
}

#[test]
fn the_level_survives_the_end_of_the_run_and_a_step_entered_anew_begins_with_its_own_role() {
    talk(
        "
        plan  a: task alternate strong escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to alternate, strong; a#2 to strong, told #1 failed and coder could not (exhausted)
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a from alternate to emergency, human; a held: escalation exhausted
        -> human abort              a settled failed by the owner; ABORTED
        -> human resumes            queued
        -> clock admitted           goes on; a#3 to strong
        ",
    );
    talk(
        "
        plan  a: task alternate strong escalate  b: task  b -on_success-> a  b -on_fail-> done
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a from primary to alternate, strong; a#2 to strong, told #1 failed and coder could not (exhausted)
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a from alternate to primary, coder; a#3 to coder
        ",
    );
}

#[test]
fn a_person_who_chooses_a_role_goes_before_the_level() {
    talk(
        "
        plan  a: task alternate strong contingent chief escalate  limit deliveries 1
        approved
        -> clock admitted           a#1 to coder
        -> agent asked a#1 \"who?\"   a held: question asked
        -> human reassign senior \"you\"  a#2 to senior, told “you”
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a#3 to senior, told #2 failed and “you”
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a from primary to alternate, strong; a#4 to strong, told #3 failed and senior could not (exhausted) and “you”
        ",
    );
}
