//! Ends, and what may follow them: cancel, reject, resume (P16, X-31).

use super::script::talk;

#[test]
fn a_cancel_takes_everything_back_and_is_final() {
    talk(
        "
        plan  a: task escalate  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to coder
        -> human cancels            a#1 taken back from agent; no wake; CANCELLED
        -> agent reported a#1       refused: the run is not in a state for this
        -> human cancels            refused: the run is not in a state for this
        -> human resumes            refused: the run is not in a state for this
        -> clock stale              refused: the run is not in a state for this
        ",
    );
}

#[test]
fn a_cancel_while_a_gate_runs_records_no_verdict() {
    talk(
        "
        plan  a: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> human cancels            a#1 taken back from gate; CANCELLED
        -> harness found a#1 exit 0  refused: the run is not in a state for this
        ",
    );
}

#[test]
fn a_rejected_plan_never_runs() {
    talk(
        "
        plan  a: task
        -> human submits            start held: plan submitted
        -> human reject \"too broad\"  CANCELLED
        -> clock admitted           refused: the run is not in a state for this
        ",
    );
}

#[test]
fn a_plan_that_waits_for_its_workspace_can_be_cancelled() {
    talk(
        "
        plan  a: task
        approved
        -> human cancels            CANCELLED
        -> clock admitted           refused: the run is not in a state for this
        ",
    );
}

#[test]
fn p24_a_failed_run_resumes_where_it_ended_and_runs_no_passed_step_again() {
    talk(
        "
        plan  a: task  b: task retry 1 abort
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b#2 to coder, told #1 failed
        -> agent overran b#2        b settled failed; FAILED
        -> agent reported b#2       refused: the run is not in a state for this
        -> human resumes            queued
        -> human resumes            refused: the run is not in a state for this
        -> clock admitted           goes on; b#3 to coder
        -> agent overran b#3        b#4 to coder, told #3 failed
        -> agent reported b#4       b#4 to harness
        -> harness found b#4 exit 0  b#4 passed; b settled passed; DONE
        -> human resumes            refused: the run is not in a state for this
        ",
    );
}

#[test]
fn an_aborted_run_can_be_resumed() {
    talk(
        "
        plan  a: task escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human abort              a settled failed by the owner; ABORTED
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        ",
    );
}

#[test]
fn a_run_may_be_resumed_from_a_step_that_passed_and_passes_no_longer() {
    talk(
        "
        plan  a: task retry 1 abort  b: task abort  c: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent overran b#1        b settled failed; FAILED
        -> human resumes from b     refused: step `b` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others
        -> human resumes from c     refused: step `c` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others
        -> human resumes from none  refused: step `none` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others
        -> human resumes from a     queued
        -> human resumes from a     refused: the run is not in a state for this
        -> clock admitted           goes on; a#2 to coder
        -> agent overran a#2        a#3 to coder, told #2 failed
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 0  a#3 passed; a settled passed; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; c#1 to coder
        ",
    );
}

/// The run would end with a step that its contract has not passed since.
#[test]
fn a_run_that_does_a_step_anew_is_not_resumed_from_a_later_one_before_it_has_passed() {
    talk(
        "
        plan  a: task retry 1 abort  b: task  c: task abort
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; c#1 to coder
        -> agent overran c#1        c settled failed; FAILED
        -> human resumes from a     queued
        -> human pauses             paused
        -> human resumes from b     queued
        -> human pauses             paused
        -> human resumes from a     queued
        -> clock admitted           goes on; a#2 to coder
        -> human pauses             a#2 taken back from agent; paused
        -> human resumes from b     refused: step `b` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others
        -> human resumes            queued
        -> clock admitted           goes on; a#3 to coder
        -> agent reported a#3       a#3 to harness
        -> harness found a#3 exit 0  a#3 passed; a settled passed; b#2 to coder
        ",
    );
}

#[test]
fn a_step_on_a_branch_is_not_done_anew_by_itself_and_one_before_the_fork_is_with_all_branches() {
    talk(
        "
        plan  z: task  f: fork j  a: task  b: task abort  j: join  z -on_success-> f  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2
        approved
        -> clock admitted           z#1 to coder
        -> agent reported z#1       z#1 to harness
        -> harness found z#1 exit 0  z#1 passed; z settled passed; a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent overran b#1        b settled failed; FAILED
        -> human resumes from a     refused: step `a` can't be done anew: it must have a contract, have passed like all before it, and lie on no branch that runs beside others
        -> human resumes from z     queued
        -> clock admitted           goes on; z#2 to coder
        -> agent reported z#2       z#2 to harness
        -> harness found z#2 exit 0  z#2 passed; z settled passed; a#2 to coder; b#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}
