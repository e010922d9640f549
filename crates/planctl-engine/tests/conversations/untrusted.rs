//! Workers are untrusted: nothing they say passes a step, and evidence counts for its own attempt alone (P-28, X-04).

use super::script::talk;

#[test]
fn p28_a_report_is_accepted_once_and_never_late() {
    talk(
        "
        plan  a: task retry 1 escalate  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#2       refused: that attempt is over
        -> agent reported a#1       a#1 to harness
        -> agent reported a#1       refused: the step is not in a state for this
        -> agent overran a#1        refused: the step is not in a state for this
        -> agent asked a#1 \"?\"    refused: the step is not in a state for this
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported a#1       refused: the step is not in a state for this
        ",
    );
}

#[test]
fn a_verdict_is_drawn_once_for_each_attempt() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> harness found a#1 exit 0  refused: the step is not in a state for this
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> harness found a#1 exit 0  refused: the step is not in a state for this
        -> agent reported a#2       a#2 to harness
        -> harness found a#1 exit 0  refused: that attempt is over
        -> harness found a#2 exit 0  a#2 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn x04_evidence_of_another_visit_is_refused() {
    talk(
        "
        plan  a: task  b: task  b -on_fail-> a
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; a#2 to coder, told #1 failed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0 visit 1  refused: that attempt is over
        -> harness found a#2 exit 0 visit 2  a#2 passed; a settled passed; b#2 to coder
        ",
    );
}

#[test]
fn evidence_of_another_contract_is_refused() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 another contract  refused: the evidence is of another contract
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a_protected_file_that_changed_spends_an_attempt_though_the_contract_exits_zero() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 tampered tests/it.rs  a#1 tampered; a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn news_of_no_step_is_refused() {
    talk(
        "
        plan  a: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported z#1       refused: there is no node `z`
        -> harness found done#1 exit 0  refused: there is no node `done`
        -> clock lease lost start#0  refused: there is no node `start`
        ",
    );
}
