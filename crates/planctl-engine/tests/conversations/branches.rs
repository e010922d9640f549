//! Branches: nodes that run side by side, nodes that wait, and joins (DOT 1.11, DESIGN 6).

use super::script::talk;

const FORK: &str = "f: fork j  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j";

#[test]
fn p9_branches_run_side_by_side_and_the_join_goes_on_once() {
    talk(&format!(
        "
        plan  {FORK}  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn no_more_nodes_are_under_way_at_once_than_the_plan_allows() {
    talk(&format!(
        "
        plan  {FORK}
        approved
        -> clock admitted           b queued; a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation no_edge; b#1 to coder
        -> human retry              a queued
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder, told #1 failed
        "
    ));
}

#[test]
fn p2_a_fork_begins_its_branches_one_after_another_where_it_is_told_to() {
    talk(
        "
        plan  f: fork j max 1  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 9
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn p3_a_join_of_all_fails_where_a_branch_did() {
    let plan = "f: fork j  a: task  b: task  c: task  d: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_success-> c  j -on_fail-> d  c -on_success-> done  d -on_success-> done  parallel 2";
    talk(&format!(
        "
        plan  {plan}  j: join
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 1 failed; j settled failed; d#1 to coder, told #1 failed
        "
    ));
    talk(&format!(
        "
        plan  {plan}  j: join partial
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 1 failed; j settled warned; c#1 to coder
        "
    ));
}

#[test]
fn p4_a_join_of_any_is_done_at_the_first_success_and_the_others_are_taken_back() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join any  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 0 failed; j settled passed; a#1 taken back from agent; c#1 to coder
        -> agent reported a#1       refused: the step is not in a state for this
        ",
    );
}

#[test]
fn p8_a_join_of_any_fails_where_all_branches_did() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join any  c: task  d: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_success-> c  j -on_fail-> d  c -on_success-> done  d -on_success-> done  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent overran b#1        b settled failed; j joined 0 met, 2 failed; j settled failed; d#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_branch_that_can_go_two_ways_counts_as_one() {
    talk(
        "
        plan  f: fork j  a: task  d: decision  b: task  c: task  e: task  j: join  f -always-> a  f -always-> e  a -on_success-> d  d -always?context.x=1-> b  d -on_success-> c  b -on_success-> j  c -on_success-> j  e -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to coder; e#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; c#1 to coder
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed
        -> agent reported e#1       e#1 to harness
        -> harness found e#1 exit 0  e#1 passed; e settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn p1_what_a_branch_notes_stays_its_own() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  d: decision  c: task  e: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  d -always?context.x=1-> c  d -always?context.parallel.results=success,success-> e  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1 notes x=1  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; e#1 to coder
        ",
    );
}

#[test]
fn a_fork_that_is_entered_again_begins_its_join_anew() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  c: call  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  c -on_fail-> f  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to harness
        -> harness found c#1 exit 1  c#1 failed; c settled failed; a#2 to coder; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; c#2 to harness
        ",
    );
}

#[test]
fn needs_are_a_join_of_the_nodes_that_lead_into_it() {
    // 1; 2 needs 1; 3 needs 1; 4 needs 2 and 3
    talk(
        "
        plan  1: task  f: fork  3: task  2: task skip  j: join  4: task  1 -on_success-> f  f -always-> 2  f -always-> 3  2 -on_success-> j  3 -on_success-> j  parallel 2
        approved
        -> clock admitted           1#1 to coder
        -> agent reported 1#1       1#1 to harness
        -> harness found 1#1 exit 0  1#1 passed; 1 settled passed; 2#1 to coder; 3#1 to coder
        -> agent overran 2#1        2 settled skipped
        -> agent reported 3#1       3#1 to harness
        -> harness found 3#1 exit 0  3#1 passed; 3 settled passed; j joined 2 met, 0 failed; j settled passed; 4#1 to coder
        ",
    );
}

#[test]
fn entering_a_failed_exit_withdraws_the_rest_and_a_resume_takes_all_of_it_up() {
    talk(
        "
        plan  f: fork j  a: task abort  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed; b#1 taken back from agent; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn a_failed_join_that_ended_the_run_is_taken_up_at_the_branches_that_failed() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_fail-> failed  j -on_success-> done  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 1 failed; j settled failed; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn a_failed_join_that_asks_is_about_one_branch_after_another() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_fail-> ask  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent overran b#1        b settled failed; j joined 0 met, 2 failed; j settled failed; b held: escalation exhausted
        -> human retry              b#2 to coder, told #1 failed
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; j joined 1 met, 1 failed; j settled failed; a held: escalation exhausted
        -> human skip \"not needed\"  a settled skipped by the owner; j joined 2 met, 0 failed; j settled passed; DONE
        ",
    );
}

#[test]
fn steps_that_may_change_one_file_are_not_under_way_at_once() {
    talk(
        "
        plan  f: fork j  a: task apart x.rs  b: task apart x.rs  c: task  j: join  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  parallel 3
        approved
        -> clock admitted           b queued; a#1 to coder; c#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        ",
    );
}

#[test]
fn what_one_event_sends_out_and_takes_back_never_goes_out() {
    talk(
        "
        plan  f: fork j  a: task  d: decision  j: join  f -always-> a  f -always-> d  d -always?outcome=success-> failed  d -on_success-> j  a -on_success-> j  j -on_success-> done  parallel 2
        approved
        -> clock admitted           FAILED
        ",
    );
}

#[test]
fn cancelling_takes_back_what_waits_as_well() {
    talk(&format!(
        "
        plan  {FORK}
        approved
        -> clock admitted           b queued; a#1 to coder
        -> human cancels            a#1 taken back from agent; CANCELLED
        "
    ));
}

const APART: &str = "f: fork j apart  a: task  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  parallel 2";

#[test]
fn branches_that_work_apart_begin_once_they_have_worktrees_and_are_merged_at_the_join() {
    talk(&format!(
        "
        plan  {APART}
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j#1 to merge
        -> harness found j#1 merged  j merged 2 files; j settled passed; c#1 to coder
        -> harness found j#1 merged  refused: the step is not in a state for this
        "
    ));
}

#[test]
fn a_fork_that_is_entered_again_takes_back_what_works_in_the_worktrees_before() {
    talk(
        "
        plan  f: fork j apart visits 3  g: fork  e: escalate  a: task  k: join any  b: task  j: join  c: task  f -always-> g  f -always-> b  g -always-> e  g -always-> a  e -on_success-> k  a -on_success-> k  k -on_success-> j  b -on_success-> j  parallel 3
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; e held: escalation planned; a#1 to coder; b#1 to coder
        -> human retry              a#1 taken back from agent; b#1 taken back from agent; f#2 to part
        -> agent reported b#1       refused: the step is not in a state for this
        -> harness found f#2 forked  f forked at base; e held: escalation planned; a#2 to coder; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed
        -> human skip \"as it is\"   e settled skipped by the owner; k joined 1 met, 0 failed; k settled passed; j joined 2 met, 0 failed; a#2 taken back from agent; j#1 to merge
        -> harness found j#1 merged  j merged 2 files; j settled passed; c#1 to coder
        ",
    );
}

#[test]
fn dot_a3_a_branch_that_comes_to_the_exit_waits_for_what_is_asked_elsewhere() {
    talk(
        "
        plan  f: fork j visits 5  d: decision visits 1  a: task  b: task  j: join  f -always-> d  f -always-> b  d -always-> a  a -on_success-> j  b -on_success-> j  b -on_exhaust-> done  j -on_success-> f  j -on_fail-> done  x: call  j -on_exhaust-> x  goal x else f  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j settled passed; d held: escalation visits_limit; b#2 to coder
        -> agent overran b#2        b settled failed
        ",
    );
}

#[test]
fn making_worktrees_and_merging_them_survive_our_own_stops() {
    talk(&format!(
        "
        plan  {APART}
        approved
        -> clock admitted           f#1 to part
        -> clock own lease lost f#1  f#1 to part
        -> harness found f#1 merged  refused: the step is not in a state for this
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j#1 to merge
        -> harness found j#1 nothing: interrupted  j#1 to merge
        -> clock own lease lost j#1  j#1 to merge
        -> harness found j#1 merged  j merged 2 files; j settled passed; c#1 to coder
        "
    ));
}

#[test]
fn a_conflict_is_an_escalation_that_a_retry_merges_again_and_a_skip_leaves_out() {
    let until_conflict = format!(
        "
        plan  {APART}
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j#1 to merge
        -> harness found j#1 conflict a.txt  j conflicts in a.txt; j held: escalation conflict
        "
    );
    talk(&format!(
        "{until_conflict}
        -> human retry              j#2 to merge
        -> harness found j#1 merged  refused: that attempt is over
        -> harness found j#2 merged  j merged 2 files; j settled passed; c#1 to coder
        "
    ));
    talk(&format!(
        "{until_conflict}
        -> human skip \"by hand\"   j settled skipped by the owner; c#1 to coder
        "
    ));
    // Nothing is met by what nobody merged, and no role works at a join.
    talk(&format!(
        "{until_conflict}
        -> human waive \"fine\"     refused: this ask takes one of: retry, skip, revise, abort
        -> human reassign senior    refused: this ask takes one of: retry, skip, revise, abort
        "
    ));
    talk(&format!(
        "{until_conflict}
        -> human abort              j settled failed by the owner; ABORTED
        -> human resumes            queued
        -> clock admitted           goes on; j#2 to merge
        "
    ));
}

#[test]
fn who_skips_a_fork_without_worktrees_goes_on_behind_its_branches() {
    let held = format!(
        "
        plan  {APART}
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 nothing: no git  f#1 to part later
        -> harness found f#1 nothing: no git  f#1 to part later
        -> harness found f#1 nothing: no git  f#1 to part later
        -> harness found f#1 nothing: no git  f#1 to part later
        -> harness found f#1 nothing: no git  f held: escalation inconclusive
        "
    );
    talk(&format!(
        "{held}
        -> human waive \"not here\"  refused: this ask takes one of: retry, skip, revise, abort
        -> human skip \"not here\"  f settled skipped by the owner; j settled skipped by the owner; c#1 to coder
        "
    ));
    // An event that makes the fork possible lets its branches begin.
    talk(&format!(
        "{held}
        -> human retry              f#2 to part
        -> harness found f#2 forked  f forked at base; a#1 to coder; b#1 to coder
        "
    ));
}

#[test]
fn branches_of_a_join_that_failed_are_not_merged() {
    talk(
        "
        plan  f: fork j apart  a: task  b: task  j: join  c: task  d: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  j -on_success-> c  j -on_fail-> d  c -on_success-> done  d -on_success-> done  parallel 2
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> agent overran a#1        a settled failed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 1 met, 1 failed; j settled failed; d#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn making_worktrees_waits_for_room_as_any_work_does() {
    talk(
        "
        plan  o: fork p  f: fork j apart  x: task  a: task  b: task  j: join  p: join  o -always-> x  o -always-> f  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  x -on_success-> p  j -on_success-> p  p -on_success-> done
        approved
        -> clock admitted           f queued; x#1 to coder
        -> agent reported x#1       x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; f#1 to part
        -> harness found f#1 forked  f forked at base; b queued; a#1 to coder
        ",
    );
}

#[test]
fn a_branch_that_is_entered_too_often_asks_about_itself_and_not_about_another_branch() {
    talk(
        "
        plan  f: fork j max 1  a: call warn  d: decision visits 1  b: call  j: join  f -always-> a  f -always-> d  a -always-> j  d -on_success-> b  b -on_success-> j  b -on_fail-> j  j -on_fail-> f  j -on_success-> done
        approved
        -> clock admitted           a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b settled failed; j joined 1 met, 1 failed; j settled failed; a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; d held: escalation visits_limit
        ",
    );
}

#[test]
fn a_run_that_ended_at_a_goal_within_branches_goes_on_with_worktrees_for_them() {
    talk(
        "
        plan  a: task  f: fork j apart  b: task  c: task  j: join  a -on_success-> done  a -on_fail-> f  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  j -on_success-> done  parallel 2  goal b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; goal b unmet; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; f#1 to part
        ",
    );
}

#[test]
fn a_node_that_waits_for_a_person_is_left_by_the_answer_alone() {
    // The way that ended at `a`, and the one that the fork begins once more, both lead to `a`, which may be entered once.
    talk(
        "
        plan  x: task  f: fork  a: task visits 1  d: decision  j: join  x -on_success#-> f  f -always-> a  f -always-> d  a -on_exhaust-> ask  a -on_success-> j  d -always?context.x=1-> j  j -on_success-> done  parallel 2
        approved
        -> clock admitted           x#1 to coder
        -> agent reported x#1       x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; epoch 1 at f; a#1 to coder; f held: escalation no_edge
        -> agent overran a#1        a held: escalation exhausted
        -> human revise             f#0 taken back from ask; paused
        -> human revises            queued
        -> clock admitted           goes on; a held: escalation visits_limit; f held: escalation no_edge
        ",
    );
}

#[test]
fn a_join_that_needs_no_more_branches_has_none_of_them_begun() {
    talk(
        "
        plan  f: fork j max 1  a: task  g: fork  d: decision  b: task  k: join any  j: join  c: task  f -always-> a  f -always-> g  a -on_success-> j  g -always-> d  g -always-> b  d -on_success-> k  b -on_success-> k  k -on_success-> j  parallel 2
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; k joined 1 met, 0 failed; k settled passed; j joined 2 met, 0 failed; j settled passed; c#1 to coder
        ",
    );
}

#[test]
fn a_fork_that_a_person_has_tried_again_takes_back_what_works_in_the_worktrees_before() {
    talk(
        "
        plan  f: fork j apart visits 2  d: decision  a: task  j: join  g: fork  s: checkpoint  f -always-> d  f -always-> a  d -on_success-> j  a -on_success-> j  j -on_success-> g  j -on_fail-> done  g -always-> f  g -always-> s  s -on_success-> f  parallel 3
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 2 met, 0 failed; j#1 to merge
        -> harness found j#1 merged  j merged 2 files; j settled passed; f#2 to part; s to be recorded
        -> harness found f#2 forked  f forked at base; a#2 to coder
        -> harness found s#0 recorded s1  s saved as s1; f held: escalation visits_limit
        -> human retry              a#2 taken back from agent; f#3 to part
        ",
    );
}

#[test]
fn a_failure_is_asked_about_where_the_plan_escalates_for_another_branch_as_well() {
    talk(
        "
        plan  f: fork  a: task  e: escalate  j: join  f -always-> e  f -always-> a  a -on_exhaust-> e  a -on_success-> j  e -on_success-> j  parallel 2
        approved
        -> clock admitted           e held: escalation planned; a#1 to coder
        -> agent overran a#1        a held: escalation exhausted
        -> human retry              a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn a_branch_that_came_before_its_turn_is_not_begun_again() {
    talk(
        "
        plan  o: fork p  x: task  f: fork j max 1  a: task  b: task  c: task  j: join  p: join any  o -always-> x  o -always-> f  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  j -on_success-> p  x -on_success-> p  p -on_success-> done  goal b  parallel 2
        approved
        -> clock admitted           x#1 to coder; a#1 to coder
        -> agent reported x#1       x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; p joined 1 met, 0 failed; p settled passed; goal b unmet; a#1 taken back from agent; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; b#1 to coder
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; a#2 to coder
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; c#1 to coder
        ",
    );
}

#[test]
fn a_run_that_a_person_ended_at_a_fork_with_worktrees_goes_on_with_new_ones() {
    talk(
        "
        plan  f: fork j apart  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  x: call  j -on_exhaust-> x  goal x else f  parallel 2  limit interruptions 1
        approved
        -> clock admitted           f#1 to part
        -> harness found f#1 forked  f forked at base; a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; j joined 2 met, 0 failed; j#1 to merge
        -> harness found j#1 merged  j merged 2 files; j settled passed; goal x unmet; f#2 to part
        -> harness found f#2 nothing: interrupted  f held: escalation interrupted
        -> human abort              f settled failed by the owner; ABORTED
        -> human resumes            queued
        -> clock admitted           goes on; f#3 to part
        ",
    );
}

#[test]
fn a_fork_that_is_entered_again_takes_back_what_its_branches_had_under_way() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  d: decision  e: escalate  f -always-> a  f -always-> b  a -on_success-> d  d -always?context.x=1-> e  d -on_success-> j  e -on_success-> f  b -on_success-> j  j -on_success-> done  parallel 2
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1 notes x=1  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; e held: escalation planned
        -> human skip \"once more\"  e settled skipped by the owner; b#1 taken back from agent; a#2 to coder; b#2 to coder
        ",
    );
}

#[test]
fn p2_branches_that_failed_are_taken_up_one_after_another_where_their_fork_is_told_so() {
    talk(
        "
        plan  f: fork j max 1  a: task  b: task  c: task  j: join  f -always-> a  f -always-> b  f -always-> c  a -on_success-> j  b -on_success-> j  c -on_success-> j  a -on_exhaust-> j  b -on_exhaust-> j  c -on_exhaust-> j  j -on_fail-> failed  j -on_success-> done  parallel 3
        approved
        -> clock admitted           a#1 to coder
        -> agent overran a#1        a settled failed; b#1 to coder
        -> agent overran b#1        b settled failed; c#1 to coder
        -> agent overran c#1        c settled failed; j joined 0 met, 3 failed; j settled failed; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; a#2 to coder
        -> human pauses             a#2 taken back from agent; paused
        -> human resumes            queued
        -> clock admitted           goes on; a#3 to coder
        -> agent overran a#3        a settled failed; b#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed; c#2 to coder
        -> agent reported c#2       c#2 to harness
        -> harness found c#2 exit 0  c#2 passed; c settled passed; j joined 2 met, 1 failed; j settled failed; FAILED
        ",
    );
}

#[test]
fn p4_p9_a_join_of_any_that_no_fork_begins_goes_on_once_and_takes_back_what_leads_nowhere_else() {
    talk(
        "
        plan  f: fork  a: task  b: task  j: join any  c: task  d: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  c -on_fail-> d  d -on_success-> j  c -on_success-> done  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 1 met, 0 failed; j settled passed; b#1 taken back from agent; c#1 to coder
        -> agent overran c#1        c settled failed; d#1 to coder, told #1 failed
        -> agent reported d#1       d#1 to harness
        -> harness found d#1 exit 0  d#1 passed; d settled passed; j joined 2 met, 0 failed; j settled passed; c#2 to coder
        ",
    );
}

#[test]
fn p9_a_branch_that_comes_late_to_a_join_of_any_ends_there() {
    talk(
        "
        plan  f: fork  a: task  b: task  j: join any  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  b -on_exhaust-> done  j -on_success-> c  c -on_success-> done  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; j joined 1 met, 0 failed; j settled passed; c#1 to coder
        -> agent reported c#1       c#1 to harness
        -> harness found c#1 exit 0  c#1 passed; c settled passed
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; DONE
        ",
    );
}

#[test]
fn p2_branches_of_a_fork_that_meet_nowhere_all_begin() {
    talk(
        "
        plan  f: fork max 1  a: task  b: task  c: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  a -on_exhaust-> c  c -on_success-> done  j -on_success-> done  parallel 3
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        ",
    );
}

#[test]
fn a_run_that_was_paused_where_the_plan_asks_is_asked_there_again() {
    talk(
        "
        plan  a: task  e: escalate  b: task  e -on_success-> b
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; e held: escalation planned
        -> human pauses             e#0 taken back from ask; paused
        -> human resumes            queued
        -> clock admitted           goes on; e held: escalation planned
        -> human abort              e settled failed by the owner; ABORTED
        -> human resumes            queued
        -> clock admitted           goes on; e held: escalation planned
        -> human skip \"go on\"     e settled skipped by the owner; b#1 to coder
        ",
    );
}

#[test]
fn branches_that_a_join_around_them_took_back_go_on_with_the_one_at_which_a_run_is_taken_up() {
    talk(
        "
        plan  o: fork p  x: task  f: fork j  a: task  b: task  j: join  p: join any  o -always-> x  o -always-> f  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> p  x -on_success-> p  p -on_success-> done  goal b  parallel 3
        approved
        -> clock admitted           x#1 to coder; a#1 to coder; b#1 to coder
        -> agent reported x#1       x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; p joined 1 met, 0 failed; p settled passed; goal b unmet; a#1 taken back from agent; b#1 taken back from agent; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; b#2 to coder; a#2 to coder
        -> agent reported b#2       b#2 to harness
        -> harness found b#2 exit 0  b#2 passed; b settled passed
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; j joined 2 met, 0 failed; j settled passed; p joined 2 met, 0 failed; p settled passed; DONE
        ",
    );
}

#[test]
fn where_the_plan_asks_within_a_branch_that_was_taken_back_it_asks_again_beside_the_one_that_is_taken_up() {
    talk(
        "
        plan  o: fork p  x: task  f: fork j  a: task  d: decision  e: escalate  b: task  j: join  p: join any  o -always-> x  o -always-> f  f -always-> a  f -always-> b  a -on_success-> d  d -always?context.x=1-> e  d -on_success-> j  e -on_success-> a  b -on_success-> j  j -on_success-> p  x -on_success-> p  p -on_success-> done  goal b  parallel 3
        approved
        -> clock admitted           x#1 to coder; a#1 to coder; b#1 to coder
        -> agent reported a#1 notes x=1  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; e held: escalation planned
        -> agent reported x#1       x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; p joined 1 met, 0 failed; p settled passed; goal b unmet; b#1 taken back from agent; e#0 taken back from ask; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; b#2 to coder; e held: escalation planned
        ",
    );
}

#[test]
fn a_goal_on_a_branch_of_a_fork_that_was_never_entered_is_worked_on_with_the_branches_beside_it() {
    talk(
        "
        plan  a: task  f: fork j  b: task  c: task  j: join  a -on_success-> done  a -on_fail-> f  f -always-> b  f -always-> c  b -on_success-> j  c -on_success-> j  j -on_success-> done  parallel 2  goal c
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; goal c unmet; FAILED
        -> human resumes            queued
        -> clock admitted           goes on; b#1 to coder; c#1 to coder
        ",
    );
}
