//! Red first: the contract is evaluated before the work, and what it shows there is never a verdict.

use planctl_engine::NodeId;

use super::script::{scene_after, talk};

#[test]
fn x19_a_contract_that_is_red_before_the_work_lets_the_work_begin() {
    talk(
        "
        plan  a: task red-first deny  b: task
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0     a#1 passed; a settled passed; b#1 to coder
        ",
    );
}

#[test]
fn x19_warn_a_contract_that_is_green_before_the_work_is_worked_on_and_its_pass_proves_nothing() {
    talk(
        "
        plan  a: task retry 1 abort red-first warn
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 1     a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0     a#2 passed and proves nothing; a settled passed; DONE
        ",
    );
}

#[test]
fn x19_deny_a_person_decides_about_a_contract_that_is_green_before_the_work() {
    talk(
        "
        plan  a: task red-first deny  b: task red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a held: escalation not_red
        -> human retry \"moved it away\"  a rehearsed, time 2
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder, told “moved it away”
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0     a#1 passed; a settled passed; b rehearsed, time 1
        -> harness rehearsed b#0 exit 0  b green before the work; b held: escalation not_red
        -> human waive \"it is there\"   b settled waived by the owner; DONE
        ",
    );
}

#[test]
fn a_person_who_has_it_rehearsed_again_grants_no_attempt() {
    talk(
        "
        plan  a: task abort red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a held: escalation not_red
        -> human reassign reviewer      a rehearsed, time 2
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to reviewer
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 1     a#1 failed; a settled failed; FAILED
        ",
    );
}

#[test]
fn a_person_may_skip_or_abort_or_revise_a_step_that_is_green_already() {
    let begins = "
        plan  a: task red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a held: escalation not_red
        ";
    for answer in [
        "-> human skip \"done\"   a settled skipped by the owner; DONE",
        "-> human abort         a settled failed by the owner; ABORTED",
        "-> human revise        paused
         -> human revises a     queued
         -> clock admitted      goes on; a rehearsed, time 2",
    ] {
        talk(&format!("{begins}\n{answer}"));
    }
}

#[test]
fn a_rehearsal_is_no_verdict_and_a_verdict_no_rehearsal() {
    talk(
        "
        plan  a: task red-first warn
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness found a#0 exit 0     refused: the step is not in a state for this
        -> harness found a#1 exit 0     refused: that attempt is over
        -> agent reported a#0           refused: the step is not in a state for this
        -> harness rehearsed a#0 another contract  refused: the evidence is of another contract
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        -> harness rehearsed a#0 exit 0  refused: the step is not in a state for this
        -> agent reported a#1           a#1 to harness
        -> harness rehearsed a#1 exit 0  refused: the step is not in a state for this
        -> harness rehearsed a#0 exit 0  refused: that attempt is over
        -> harness found a#1 exit 0     a#1 passed; a settled passed; DONE
        ",
    );
}

#[test]
fn a_step_that_guards_is_not_rehearsed() {
    talk(
        "
        plan  a: task guard red-first deny
        approved
        -> clock admitted               a#1 to coder
        ",
    );
}

#[test]
fn a_contract_that_times_out_before_the_work_is_red_and_tampering_tells_nothing() {
    talk(
        "
        plan  a: task red-first deny  b: task red-first warn  c: task red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 timeout  a red before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 0     a#1 passed; a settled passed; b rehearsed, time 1
        -> harness rehearsed b#0 tampered tests.sh  b tampered before the work; b#1 to coder
        -> agent reported b#1           b#1 to harness
        -> harness found b#1 exit 0     b#1 passed; b settled passed; c rehearsed, time 1
        -> harness rehearsed c#0 tampered tests.sh  c tampered before the work; c held: escalation not_red
        ",
    );
}

#[test]
fn a_person_may_have_files_put_back_that_were_changed_before_the_work_and_accepts_none() {
    talk(
        "
        plan  a: task red-first deny
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 tampered tests.sh  a tampered before the work; a held: escalation not_red
        -> human allow tests.sh         refused: this ask takes one of: restore, retry, skip, waive, reassign, revise, abort
        -> human restore                a rehearsed, time 2
        -> harness rehearsed a#0 exit 0  a green before the work; a held: escalation not_red
        -> human restore                refused: this ask takes one of: retry, skip, waive, reassign, revise, abort
        -> human retry                  a rehearsed, time 3
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 tampered tests.sh  a#1 tampered; a held: escalation no_edge
        -> human allow tests.sh         a#2 to harness
        ",
    );
}

#[test]
fn a_rehearsal_that_told_nothing_is_repeated_and_then_a_person_is_asked() {
    talk(
        "
        plan  a: task red-first warn  limit repeats 2  limit interruptions 3
        approved
        -> clock admitted               a rehearsed, time 1
        -> clock own lease lost a#0     a rehearsed, time 1
        -> harness rehearsed a#0 nothing: interrupted  a rehearsed, time 1
        -> harness rehearsed a#0 nothing: no bash  a rehearsed later, time 1
        -> harness rehearsed a#0 nothing: no bash  a held: escalation inconclusive
        -> human retry                  a rehearsed, time 2
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        ",
    );
}

#[test]
fn what_was_red_once_is_not_rehearsed_again_and_a_changed_contract_is() {
    talk(
        "
        plan  a: task abort red-first warn
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        -> agent overran a#1            a settled failed; FAILED
        -> human resumes                queued
        -> clock admitted               goes on; a#2 to coder
        -> agent asked a#2              a held: question asked
        -> human revise                 paused
        -> human revises a              queued
        -> clock admitted               goes on; a rehearsed, time 2
        -> harness rehearsed a#2 exit 0  a green before the work; a#3 to coder
        -> agent reported a#3           a#3 to harness
        -> harness found a#3 exit 0     a#3 passed and proves nothing; a settled passed; DONE
        ",
    );
}

#[test]
fn cancelling_takes_a_rehearsal_back() {
    talk(
        "
        plan  a: task red-first warn
        approved
        -> clock admitted               a rehearsed, time 1
        -> human cancels                a#0 taken back from rehearsal; CANCELLED
        -> harness rehearsed a#0 exit 1  refused: the run is not in a state for this
        ",
    );
}

#[test]
fn nothing_is_rehearsed_that_could_not_be_worked_on() {
    talk(
        "
        plan  a: task  b: task red-first warn  budget 20 tokens
        approved
        -> clock admitted               a#1 to coder
        -> agent reported a#1 15 tokens  a#1 to harness
        -> harness found a#1 exit 0     a#1 passed; a settled passed; b held: budget budget, 5 short
        -> human raise 100 tokens       b rehearsed, time 1
        -> harness rehearsed b#0 exit 1  b red before the work; b#1 to coder
        ",
    );
}

#[test]
fn a_person_who_has_it_rehearsed_again_with_no_attempt_left_grants_one() {
    let (_, run, _) = scene_after(
        "
        plan  a: task escalate red-first warn visits 1
        approved
        -> clock admitted               a rehearsed, time 1
        -> harness rehearsed a#0 exit 0  a green before the work; a#1 to coder
        -> agent reported a#1           a#1 to harness
        -> harness found a#1 exit 1     a#1 failed; a held: escalation exhausted
        -> human revise                 paused
        -> human resumes                queued
        -> clock admitted               goes on; a held: escalation visits_limit
        -> human retry \"once more\"      a rehearsed, time 2
        -> harness rehearsed a#1 exit 1  a red before the work; a#2 to coder, told #1 failed and “once more”
        ",
    );
    let tally = run.records()[&NodeId::from("a")].tally;
    assert_eq!((tally.failed, tally.granted), (1, 1));
}
