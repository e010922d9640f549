//! A run that a person pauses: it goes on where it stopped, or with another revision.

use planctl_engine::Outcomes;

use super::script::{scene_after, talk};

#[test]
fn a_paused_run_takes_its_work_back_and_goes_on_where_it_stopped() {
    talk(
        "
        plan  a: task  b: task escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> human pauses \"later\"   b#1 taken back from agent; no wake; paused
        -> human pauses             refused: the run is not in a state for this
        -> agent reported b#1       refused: the run is not in a state for this
        -> clock stale              refused: the run is not in a state for this
        -> clock admitted           refused: the run is not in a state for this
        -> human resumes            queued
        -> clock admitted           goes on; wake at 60 s; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 1  b#2 failed; b held: escalation exhausted
        -> human retry              b#3 to coder, told #2 failed
        -> agent reported b#3       b#3 to harness
        -> harness found b#3 exit 0  b#3 passed; b settled passed; no wake; DONE
        ",
    );
}

#[test]
fn an_attempt_that_a_pause_ends_does_not_count_as_failed() {
    talk(
        "
        plan  a: task retry 1 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> human pauses             a#1 taken back from gate; paused
        -> harness found a#1 exit 1  refused: the run is not in a state for this
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a#3 to coder, told #2 failed
        ",
    );
}

#[test]
fn what_a_worker_has_used_is_charged_when_its_run_is_paused() {
    talk(
        "
        plan  a: task  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        noted a 990 tokens
        -> human pauses             a#1 taken back from agent; paused
        -> human resumes            queued
        -> clock admitted           goes on; 99 % used; a held: budget budget, 980 short
        ",
    );
}

#[test]
fn a_run_that_waits_for_a_person_is_paused_with_its_ask() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human pauses             a#1 taken back from ask; paused
        -> human retry              refused: the step is not in a state for this
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        ",
    );
    talk(
        "
        plan  h: human ship mend  a: task  b: task  h -on_success@Ship-> a  h -on_success@Mend-> b
        approved
        -> clock admitted           h held: choice planned
        -> human pauses             h#0 taken back from ask; paused
        -> human resumes            queued
        -> clock admitted           goes on; h held: choice planned
        ",
    );
}

#[test]
fn a_queued_run_is_paused_before_it_begins_and_begins_when_it_is_resumed() {
    talk(
        "
        plan  a: task
        approved
        -> human pauses             paused
        -> clock admitted           refused: the run is not in a state for this
        -> human resumes            queued
        -> clock admitted           a#1 to coder
        -> human cancels            a#1 taken back from agent; CANCELLED
        -> human pauses             refused: the run is not in a state for this
        -> human resumes            refused: the run is not in a state for this
        ",
    );
}

#[test]
fn a_failed_run_that_is_queued_again_is_paused_and_goes_on_where_it_failed() {
    talk(
        "
        plan  a: task  b: task abort
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; FAILED
        -> human resumes            queued
        -> human pauses             paused
        -> human resumes            queued
        -> clock admitted           goes on; b#2 to coder
        ",
    );
}

#[test]
fn a_plan_that_is_not_approved_is_not_paused() {
    talk(
        "
        plan  a: task
        -> human pauses             refused: the run is not in a state for this
        -> human submits            start held: plan submitted
        -> human pauses             refused: the run is not in a state for this
        ",
    );
}

#[test]
fn p77_a_paused_run_goes_on_with_another_revision_of_what_has_not_passed() {
    talk(
        "
        plan  a: task  b: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> human pauses             b#1 taken back from agent; paused
        -> human revises a          refused: the revision changes step `a`, which is settled
        -> human revises b          queued
        -> human pauses             paused
        -> human resumes            queued
        -> clock admitted           goes on; b#2 to coder
        ",
    );
}

#[test]
fn a_failed_step_that_a_revision_leaves_out_is_counted_no_more() {
    let (_, run, _) = scene_after(
        "
        plan  a: task  b: task  c: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b held: escalation no_edge
        -> human abort              b settled failed by the owner; ABORTED
        -> human resumes            queued
        -> human pauses             paused
        -> human revises -b         queued
        ",
    );
    assert_eq!(run.head.settled, Outcomes { passed: 1, ..Outcomes::default() });
}

#[test]
fn a_run_that_was_to_be_revised_goes_on_as_it_was() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human revise             paused
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        ",
    );
}

#[test]
fn a_paused_run_takes_its_sub_plan_back_and_begins_another_when_it_goes_on() {
    talk(
        "
        plan  a: plan child.md
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        -> human pauses             a#1 taken back from plan; paused
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to its plan
        ",
    );
}

#[test]
fn a_run_that_is_paused_at_two_branches_goes_on_at_both() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> human pauses             a#1 taken back from agent; b#1 taken back from agent; paused
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder; b#2 to coder
        ",
    );
}
