//! Plans within plans: a run of its own, for whose end the node waits (DOT S8, N1).

use planctl_engine::NodeId;

use super::script::{scene_after, talk};

#[test]
fn s8_a_sub_plan_runs_as_a_run_of_its_own_and_its_end_is_the_nodes() {
    talk(
        "
        plan  a: plan child.md  b: task
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 exit 0  refused: the step is not in a state for this
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        -> clock own lease lost a#1  a#1 to its plan
        -> harness found a#1 begun  a#1 to its plan later
        -> harness found a#1 ended done  a ended Done; a settled passed; b#1 to coder
        -> harness found a#1 ended done  refused: the step is not in a state for this
        ",
    );
}

#[test]
fn n1_a_sub_plan_that_fails_is_asked_about_and_a_retry_is_another_run() {
    talk(
        "
        plan  a: plan child.md  b: task
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        -> harness found a#1 ended failed  a ended Failed; a held: escalation no_edge
        -> human retry              a#2 to its plan
        -> harness found a#2 ended done  a ended Done; a settled passed; b#1 to coder
        ",
    );
    talk(
        "
        plan  a: plan child.md  b: task  c: task  a -on_fail-> c  a -on_success-> b  b -on_success-> done  c -on_success-> done
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 ended failed  a ended Failed; a settled failed; c#1 to coder, told #1 failed
        ",
    );
}

#[test]
fn what_a_sub_plan_spends_counts_for_the_plan_around_it() {
    talk(
        "
        plan  a: plan child.md  b: task  budget 300 tokens
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 ended done  a ended Done; a settled passed; 100 % used; b held: budget budget, 300 short
        ",
    );
}

#[test]
fn a_run_that_is_cancelled_takes_its_sub_plan_back() {
    talk(
        "
        plan  a: plan child.md  b: task
        approved
        -> clock admitted           a#1 to its plan
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        -> human cancels            a#1 taken back from plan; CANCELLED
        ",
    );
}

#[test]
fn p11_a_run_whose_sub_plan_is_under_way_does_not_stand_still() {
    talk(
        "
        plan  a: plan child.md  b: task  stale after 60 seconds
        approved
        -> clock admitted           wake at 60 s; a#1 to its plan
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        wait 100 seconds
        -> clock stale              wake at 160 s
        ",
    );
}

/// A branch beside a sub-plan goes out only with what the sub-plan's run may not use.
#[test]
fn p15_what_the_run_of_a_sub_plan_may_use_is_set_aside() {
    let branches = "f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2";
    talk(&format!(
        "
        plan  {branches}  budget 1000 tokens
        approved
        -> clock admitted           b queued; a#1 to its plan
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        -> harness found a#1 ended done  a ended Done; a settled passed; b#1 to coder
        "
    ));
    talk(&format!(
        "
        plan  {branches}  budget 1000 tokens
        approved
        -> clock admitted           b queued; a#1 to its plan
        -> harness found a#1 begun 500 tokens  a has a run; a#1 to its plan later; b#1 to coder
        "
    ));
}

/// Until the run around it hears what a sub-plan's run may use, a branch may have used less than was expected, and go out again.
#[test]
fn p15_the_run_of_a_sub_plan_begins_with_no_more_than_was_set_aside() {
    let (_, run, _) = scene_after(
        "
        plan  f: fork j  a: plan child.md  b: task retry 1  j: join  c: task  f -always-> b  f -always-> a  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2  budget 1000 tokens
        approved
        -> clock admitted           b#1 to coder; a#1 to its plan
        -> agent reported b#1 100 tokens  b#1 to harness
        -> harness found b#1 exit 1  b#1 failed; b#2 to coder, told #1 failed
        ",
    );
    let tokens = |of: &str| run.head.budget_set_aside_for(&NodeId::from(of)).tokens;
    assert_eq!((run.head.spent.tokens, tokens("a"), tokens("b")), (100, Some(500), Some(100)));
}

/// A raise and a branch beside it can't both have what is left: whichever comes first, the other is refused or waits.
#[test]
fn p15_what_a_raise_lets_the_run_of_a_sub_plan_use_is_set_aside_before_it_may() {
    let branches = "f: fork j  a: plan child.md  b: task  j: join  c: task  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> c  c -on_success-> done  parallel 2";
    talk(&format!(
        "
        plan  {branches}  budget 1000 tokens
        approved
        -> clock sets aside a 600 tokens  refused: the run is not in a state for this
        -> clock admitted           b queued; a#1 to its plan
        -> clock sets aside a 600 tokens  refused: the step is not in a state for this
        -> harness found a#1 begun 800 tokens  a has a run; a#1 to its plan later
        -> clock sets aside a 1001 tokens  refused: less than that is left of the budget around it
        -> clock sets aside a 1000 tokens  nothing
        -> harness found a#1 begun 800 tokens  a#1 to its plan later
        "
    ));
    talk(&format!(
        "
        plan  {branches}  budget 1000 tokens
        approved
        -> clock admitted           b queued; a#1 to its plan
        -> harness found a#1 begun 400 tokens  a has a run; a#1 to its plan later; b#1 to coder
        -> clock sets aside a 501 tokens  refused: less than that is left of the budget around it
        -> clock sets aside a 500 tokens  nothing
        "
    ));
}

#[test]
fn p73_the_clock_stands_still_while_a_sub_plan_s_run_waits_for_a_person() {
    talk(
        "
        plan  a: plan child.md  budget 100 seconds
        approved
        -> clock admitted           a#1 to its plan; wake at 100 s
        wait 20 seconds
        -> harness found a#1 begun  a has a run; a#1 to its plan later
        wait 20 seconds
        -> harness found a#1 begun waiting  a#1 to its plan later; no wake
        wait 5000 seconds
        -> clock own lease lost a#1  a#1 to its plan
        -> harness found a#1 begun  a#1 to its plan later; wake at 5100 s
        wait 30 seconds
        -> harness found a#1 begun waiting  a#1 to its plan later; no wake
        wait 5000 seconds
        -> harness found a#1 ended done  a ended Done; a settled passed; DONE
        ",
    );
}

#[test]
fn p73_the_clock_goes_on_while_one_of_two_branches_is_worked_on() {
    talk(
        "
        plan  f: fork j  a: plan child.md  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2  budget 100 seconds
        approved
        -> clock admitted           a#1 to its plan; b#1 to coder; wake at 100 s
        -> harness found a#1 begun waiting  a has a run; a#1 to its plan later
        wait 40 seconds
        -> agent reported b#1       b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; no wake
        wait 5000 seconds
        -> harness found a#1 begun  a#1 to its plan later; wake at 5100 s
        ",
    );
}
