//! A worker proposes a further step, and a person says what becomes of it (H-51).

use super::script::talk;

const PROPOSED: &str = "plan  a: task retry 1 escalate  b: task
    approved
    -> clock admitted           a#1 to coder
    -> agent reported a#1 proposes more  a held: insertion proposed";

#[test]
fn h51_a_rejected_proposal_leaves_the_report_as_it_stands_and_the_gate_decides() {
    talk(&format!(
        "{PROPOSED}
        -> human reject             a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder"
    ));
    talk(&format!(
        "{PROPOSED}
        -> human reject             a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed"
    ));
}

#[test]
fn h51_another_revision_goes_on_with_the_gate_of_what_was_reported() {
    talk(&format!(
        "{PROPOSED}
        -> human revise             paused
        -> human revises b          queued
        -> clock admitted           goes on; a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder"
    ));
}

#[test]
fn h51_a_revision_of_the_very_step_has_it_done_anew() {
    talk(&format!(
        "{PROPOSED}
        -> human revise             paused
        -> human revises a          queued
        -> clock admitted           goes on; a#2 to coder"
    ));
}

#[test]
fn h51_only_these_answers_fit_and_a_worker_that_gave_up_has_no_retry() {
    talk(&format!("{PROPOSED}\n -> human approve  refused: this ask takes one of: revise, reject, abort"));
    talk(
        "plan  a: task retry 1 escalate  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 gave up proposes more  a held: insertion proposed
        -> human reject             a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation exhausted",
    );
}

#[test]
fn a_report_whose_proposal_was_rejected_is_judged_once_there_is_room_for_its_gate() {
    talk(
        "plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j
        approved
        -> clock admitted           b queued; a#1 to coder
        -> agent reported a#1 proposes more  a held: insertion proposed; b#1 to coder
        -> human reject             a queued
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; DONE",
    );
}

#[test]
fn a_proposal_of_an_entering_before_is_forgotten() {
    talk(
        "plan  f: fork j  a: task abort  b: task  j: join any  c: call  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  c -on_fail-> f  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1 proposes more  a held: insertion proposed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 0 failed; j settled passed; a#1 taken back from ask; c#1 to harness
        -> harness found c#1 exit 1  c#1 failed; c settled failed; a#2 to coder; b#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a settled failed; b#2 taken back from agent; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; a#3 to coder; b#3 to coder",
    );
}
