//! People: every answer to every kind of ask, and the ones that do not fit (DESIGN 6, INTERFACE 2).

use super::script::talk;

#[test]
fn p52_a_retry_grants_one_attempt_with_the_note_in_its_prompt() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a#2 to coder, told #1 failed
        -> agent overran a#2        a held: escalation exhausted
        -> human retry \"read the log\"  a#3 to coder, told #2 failed and “read the log”
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a held: escalation exhausted
        ",
    );
}

#[test]
fn a_skip_needs_a_reason_and_shows_who_skipped() {
    talk(
        "
        plan  a: task escalate  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human skip               refused: this answer needs a note that says why
        -> human skip \" \"       refused: this answer needs a note that says why
        -> human skip \"not needed\"  a settled skipped by the owner; b#1 to coder
        ",
    );
}

#[test]
fn a_waiver_needs_a_reason_and_never_shows_as_passed() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human waive              refused: this answer needs a note that says why
        -> human waive \"seen it work\"  a settled waived by the owner; DONE
        ",
    );
}

#[test]
fn a_reassigned_step_goes_to_the_other_role_and_stays_there() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 gave up  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation exhausted
        -> human reassign senior    a#2 to senior, told #1 failed
        -> agent overran a#2        a#3 to senior, told #2 failed
        ",
    );
}

#[test]
fn an_abort_ends_the_run() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human abort              a settled failed by the owner; ABORTED
        -> human retry to ask 2     refused: the step is not in a state for this
        ",
    );
}

#[test]
fn p77_a_revision_pauses_the_run_and_goes_on_with_the_unchanged_settled_steps() {
    talk(
        "
        plan  a: task  b: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b held: escalation exhausted
        -> human revise             paused
        -> agent reported b#1       refused: the run is not in a state for this
        -> human revises a          refused: the revision changes step `a`, which is settled
        -> human revises b          queued
        -> clock admitted           goes on; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn a_question_is_answered_without_spending_the_allowance() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent asked a#1 \"tabs or blanks?\"  a held: question asked
        -> human retry              refused: this ask takes one of: answer, skip, waive, reassign, revise, abort
        -> human answer             refused: this answer needs a note that says why
        -> human answer \"blanks\"  a#2 to coder, told “blanks”
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a held: escalation exhausted
        ",
    );
}

#[test]
fn an_ask_takes_its_own_answers_and_one_of_them_once() {
    talk(
        "
        plan  a: task escalate
        approved
        -> human approve            refused: the step is not in a state for this
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human approve            refused: this ask takes one of: retry, skip, waive, reassign, revise, abort
        -> human raise 100 tokens   refused: this ask takes one of: retry, skip, waive, reassign, revise, abort
        -> human retry              a#2 to coder, told #1 failed
        -> human retry              refused: the step is not in a state for this
        ",
    );
}

#[test]
fn a_plan_is_submitted_and_approved_once() {
    talk(
        "
        plan  a: task
        -> human approve            refused: the step is not in a state for this
        -> clock admitted           refused: the run is not in a state for this
        -> human submits            start held: plan submitted
        -> human submits            refused: the run is not in a state for this
        -> human skip \"no\"        refused: this ask takes one of: approve, reject
        -> human approve            queued
        -> clock admitted           a#1 to coder
        -> clock admitted           refused: the run is not in a state for this
        ",
    );
}
