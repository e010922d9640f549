//! Branches of a run whose plan is revised: they are known by the steps in them, and not by their numbers.

use super::script::talk;

/// Two branches, of which the second has come, and the first is under way.
const SECOND_HAS_COME: &str = "
        plan  f: fork j  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> human pauses             a#1 taken back from agent; paused";

#[test]
fn branches_in_another_order_are_the_same_branches() {
    talk(&format!(
        "{SECOND_HAS_COME}
        -> human revises f=b,a      queued
        -> clock admitted           goes on; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn a_branch_that_is_added_to_a_fork_is_begun_and_waited_for() {
    talk(&format!(
        "{SECOND_HAS_COME}
        -> human revises f=n,a,b    queued
        -> clock admitted           goes on; a#2 to coder; n#1 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed
        -> agent reported n#1       n#1 to harness
        -> harness found n#1 exit 0  n#1 passed; n settled passed; j joined 3 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn a_branch_that_is_taken_out_is_not_waited_for() {
    talk(&format!(
        "{SECOND_HAS_COME}
        -> human revises f=b        queued
        -> clock admitted           goes on; j joined 1 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
    talk(&format!(
        "{SECOND_HAS_COME}
        -> human revises f=b,n      queued
        -> clock admitted           goes on; n#1 to coder
        -> agent reported n#1       n#1 to harness
        -> harness found n#1 exit 0  n#1 passed; n settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn a_branch_whose_last_step_is_taken_out_goes_on_behind_the_step_before_it() {
    talk(
        "
        plan  f: fork j  a: task  b: task  x: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> x  x -on_success-> j  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; x#1 to coder
        -> human pauses             a#1 taken back from agent; x#1 taken back from agent; paused
        -> human revises -x         queued
        -> clock admitted           goes on; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn a_step_that_failed_into_a_join_and_is_taken_out_is_not_looked_for() {
    talk(
        "
        plan  f: fork j  a: task  b: task  x: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> x  x -on_success-> j  x -on_exhaust-> j  j -on_fail-> failed  j -on_success-> done  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; x#1 to coder
        -> agent overran x#1        x settled failed
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 1 met, 1 failed; j settled failed; FAILED
        -> human resumes            queued
        -> human pauses             paused
        -> human revises -x         queued
        -> clock admitted           goes on; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn a_fork_that_begins_its_branches_one_after_another_begins_each_once() {
    talk(
        "
        plan  f: fork j max 1  a: task  b: task  c: task  j: join  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  parallel 3
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> human pauses             b#1 taken back from agent; paused
        -> human revises f=c,n,b,a  queued
        -> clock admitted           goes on; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; c#1 to coder
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed; n#1 to coder
        -> agent reported n#1       n#1 to harness
        -> harness found n#1 exit 0  n#1 passed; n settled passed; j joined 4 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn a_revision_that_adds_a_step_where_the_run_has_passed_is_refused() {
    talk(&format!(
        "{SECOND_HAS_COME}
        -> human revises b>n        refused: the revision adds step `n` where the run has passed, so nothing would begin it: have it follow a step that has not passed
        -> human revises a>n        queued
        -> clock admitted           goes on; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; n#1 to coder
        -> agent reported n#1       n#1 to harness
        -> harness found n#1 exit 0  n#1 passed; n settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn worktrees_are_made_for_the_branches_that_a_fork_had() {
    talk(
        "
        plan  f: fork j apart  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> human pauses             a#1 taken back from agent; b#1 taken back from agent; paused
        -> human revises f=b,a      refused: the revision changes step `f`, which is settled
        -> human revises a          queued
        -> clock admitted           goes on; a#2 to coder; b#2 to coder
        ",
    );
}

#[test]
fn a_branch_that_is_added_to_a_fork_which_comes_again_is_begun_with_the_others() {
    talk(
        "
        plan  s: task  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 3
        approved
        -> clock admitted           s#1 to coder
        -> agent reported s#1       s#1 to harness
        -> harness found s#1 exit 0  s#1 passed; s settled passed; a#1 to coder; b#1 to coder
        -> human pauses             a#1 taken back from agent; b#1 taken back from agent; paused
        -> human resumes from s     queued
        -> clock admitted           goes on; s#2 to coder
        -> human pauses             s#2 taken back from agent; paused
        -> human revises f=n,a,b    queued
        -> clock admitted           goes on; s#3 to coder
        -> agent reported s#3       s#3 to harness
        -> harness found s#3 exit 0  s#3 passed; s settled passed; n#1 to coder; a#2 to coder; b#2 to coder
        ",
    );
}

#[test]
fn a_branch_that_is_added_while_worktrees_are_made_anew_has_one_as_well() {
    talk(
        "
        plan  s: task  f: fork j apart  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 3
        approved
        -> clock admitted           s#1 to coder
        -> agent reported s#1       s#1 to harness
        -> harness found s#1 exit 0  s#1 passed; s settled passed; f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> human pauses             a#1 taken back from agent; b#1 taken back from agent; paused
        -> human resumes from s     queued
        -> clock admitted           goes on; s#2 to coder
        -> agent reported s#2       s#2 to harness
        -> harness found s#2 exit 0  s#2 passed; s settled passed; f#2 to part
        -> human pauses             f#2 taken back from branches; paused
        -> human revises f=a,b,n    queued
        -> clock admitted           goes on; f#3 to part
        -> harness found f#3 forked  f forked at base; a#2 to coder; b#2 to coder; n#1 to coder
        ",
    );
}

#[test]
fn branches_that_an_outer_join_needs_no_more_stay_taken_back() {
    const OUTER_JOIN_WENT_ON: &str = "
        plan  f: fork j  g: fork k  x: task  y: task  k: join  b: task  j: join any  c: task  f -always-> g  f -always-> b  g -always-> x  g -always-> y  x -on_success-> k  y -on_success-> k  k -on_success-> j  b -on_success-> j  parallel 4
        approved
        -> clock admitted           x#1 to coder; y#1 to coder; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 0 failed; j settled passed; x#1 taken back from agent; y#1 taken back from agent; c#1 to coder
        -> human pauses             c#1 taken back from agent; paused";
    talk(&format!(
        "{OUTER_JOIN_WENT_ON}
        -> human revises g=x,y,n    refused: the revision adds step `n` where the run has passed, so nothing would begin it: have it follow a step that has not passed
        -> human revises g=y,x      queued
        -> clock admitted           goes on; c#2 to coder
        "
    ));
}

#[test]
fn a_branch_whose_turn_has_not_come_begins_once_where_another_ones_place_is_taken_out() {
    talk(
        "
        plan  f: fork j max 2  a: task  b: task  c: task  d: task  x: task  j: join  f -always-> a  f -always-> b  f -always-> c  a -on_success-> x  x -on_success-> j  b -on_success-> j  c -on_success-> d  d -on_success-> j  parallel 4
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; x#1 to coder
        -> human pauses             b#1 taken back from agent; x#1 taken back from agent; paused
        -> human revises -x         queued
        -> clock admitted           goes on; b#2 to coder; c#1 to coder
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed; d#1 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed
        -> agent reported d#1       d#1 to harness
        -> harness found d#1 exit 0  d#1 passed; d settled passed; j joined 3 met, 0 failed; j settled passed; DONE
        ",
    );
}
