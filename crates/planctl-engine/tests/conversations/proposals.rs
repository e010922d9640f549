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
