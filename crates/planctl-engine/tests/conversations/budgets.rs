//! Budgets: tokens, money, time; the notice, the ask, the raise (DESIGN 9).

use super::script::talk;

#[test]
fn p54_a_budget_that_does_not_suffice_for_the_next_step_asks_before_it() {
    talk(
        "
        plan  a: task  b: task  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 600 tokens  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b held: budget budget, 100 short
        -> human retry              refused: this ask takes one of: raise, abort
        -> human raise 0 tokens     refused: the raise must add to a part of the budget that has a limit
        -> human raise 50 tokens    b held: budget budget, 50 short
        -> human raise 200 tokens   b#1 to coder
        ",
    );
}

#[test]
fn the_estimate_of_a_retry_is_the_mean_of_the_attempts_before() {
    talk(
        "
        plan  a: task retry 9 escalate  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 400 tokens  a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        -> agent reported a#2 400 tokens  80 % used; a#2 to harness
        -> harness found a#2 exit 1  a#2 failed; a held: budget budget, 200 short
        ",
    );
}

#[test]
fn what_a_worker_does_not_report_is_shown_and_not_charged() {
    talk(
        "
        plan  a: task retry 1 escalate  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a#2 to coder, told #1 failed
        ",
    );
}

#[test]
fn p73_money_is_counted_as_tokens_are() {
    talk(
        "
        plan  a: task  b: task  budget $4
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 $3    a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b held: budget budget, 1000000 short
        -> human raise $1           b#1 to coder
        ",
    );
}

#[test]
fn time_stands_still_while_a_person_is_asked() {
    talk(
        "
        plan  a: task  b: task  budget 100 seconds
        approved
        -> clock admitted           a#1 to coder; wake at 100 s
        wait 20 seconds
        -> agent asked a#1 \"which?\"  a held: question asked; no wake
        wait 5000 seconds
        -> human answer \"this\"    a#2 to coder, told “this”; wake at 5100 s
        wait 20 seconds
        -> agent reported a#2       a#2 to harness
        -> harness found a#2 exit 0  a#2 passed; a settled passed; b#1 to coder
        wait 70 seconds
        -> agent reported b#1       110 % used; b#1 to harness
        -> harness found b#1 exit 0  b#1 passed; b settled passed; no wake; DONE
        ",
    );
}

#[test]
fn what_comes_before_the_first_work_does_not_keep_it_from_its_share() {
    talk(
        "
        plan  a: task retry 1 abort red-first deny  budget 600 seconds
        approved
        -> clock admitted               a rehearsed, time 1; wake at 600 s
        wait 5 seconds
        -> harness rehearsed a#0 exit 1  a red before the work; a#1 to coder
        wait 20 seconds
        -> agent reported a#1           a#1 to harness
        wait 5 seconds
        -> harness found a#1 exit 1     a#1 failed; a#2 to coder, told #1 failed
        wait 20 seconds
        -> agent reported a#2           a#2 to harness
        -> harness found a#2 exit 0     a#2 passed; a settled passed; no wake; DONE
        ",
    );
    // Where nothing is left, nothing begins; and once somebody worked, each step needs its share.
    talk(
        "
        plan  a: task red-first deny  budget 10 seconds
        approved
        -> clock admitted               a rehearsed, time 1; wake at 10 s
        wait 10 seconds
        -> harness rehearsed a#0 exit 1  a red before the work; 100 % used; a held: budget budget, 0.1 s short; no wake
        -> human raise 10 seconds       a#1 to coder; wake at 20 s
        ",
    );
    talk(
        "
        plan  a: task  b: task  budget 100 seconds
        approved
        -> clock admitted           a#1 to coder; wake at 100 s
        wait 60 seconds
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b held: budget budget, 10 s short; no wake
        ",
    );
}

#[test]
fn an_abort_answers_a_budget_ask() {
    talk(
        "
        plan  a: task  b: task  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1 900 tokens  90 % used; a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b held: budget budget, 400 short
        -> human abort              b settled failed by the owner; ABORTED
        ",
    );
}

#[test]
fn what_deliveries_used_that_came_to_nothing_is_charged() {
    talk(
        "
        plan  a: task  b: task  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> agent faulted a#1 300 tokens      a#1 to coder later
        -> clock lease lost a#1 200 tokens   a#1 to coder later
        -> agent faulted a#1        a#1 to coder later
        -> agent reported a#1 400 tokens     90 % used; a#1 to harness
        -> harness found a#1 exit 0          a#1 passed; a settled passed; b held: budget budget, 400 short
        ",
    );
}

const BRANCHES: &str = "x: task  f: fork j  a: task  b: task  j: join  x -on_success-> f  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2";

/// Plays on from where the step before the branches has used 600 of 1,000 tokens, and one branch waits.
fn after_x_used_600(then: &str) {
    talk(&format!(
        "
        plan  {BRANCHES}  budget 1000 tokens
        approved
        -> clock admitted           x#1 to coder
        -> agent reported x#1 600 tokens  x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; b queued; a#1 to coder
        {then}
        "
    ));
}

/// Finding B5: each of three steps is expected to use 333 tokens, and 400 are left for two of them.
#[test]
fn p15_b5_a_branch_waits_for_what_another_one_is_expected_to_use() {
    after_x_used_600(
        "
        -> agent reported a#1 50 tokens  a#1 to harness; b#1 to coder
        -> agent reported b#1 50 tokens  b#1 to harness
        ",
    );
}

#[test]
fn p15_b5_a_branch_that_waited_asks_a_person_where_the_other_one_used_it_up() {
    after_x_used_600(
        "
        -> agent reported a#1 300 tokens  90 % used; a#1 to harness; b held: budget budget, 233 short
        -> human raise 300 tokens   b#1 to coder
        ",
    );
}

#[test]
fn p15_b5_what_a_held_step_was_expected_to_use_is_free_for_others() {
    after_x_used_600(
        "
        -> agent asked a#1 \"which?\"  a held: question asked; b#1 to coder
        ",
    );
}

/// Each delivery may use what a whole attempt does: a worker that is lost again and again spends no more than is allowed.
#[test]
fn p15_an_attempt_whose_worker_was_lost_goes_out_again_only_where_the_budget_suffices() {
    for news in ["agent faulted a#1 600 tokens", "clock lease lost a#1 600 tokens"] {
        talk(&format!(
            "
            plan  a: task  budget 1000 tokens
            approved
            -> clock admitted           a#1 to coder
            -> {news}                   a held: budget budget, 200 short
            -> human raise 100 tokens   a held: budget budget, 100 short
            -> human raise 100 tokens   a#2 to coder
            "
        ));
    }
}

#[test]
fn p15_an_attempt_whose_worker_was_lost_waits_for_what_another_one_is_expected_to_use() {
    talk(&format!(
        "
        plan  {BRANCHES}  budget 1000 tokens
        approved
        -> clock admitted           x#1 to coder
        -> agent reported x#1 100 tokens  x#1 to harness
        -> harness found x#1 exit 0  x#1 passed; x settled passed; a#1 to coder; b#1 to coder
        -> agent faulted a#1 300 tokens  a queued
        -> agent reported b#1 50 tokens  b#1 to harness; a#2 to coder
        "
    ));
}

#[test]
fn p73_a_worker_that_uses_the_budget_up_in_mid_attempt_is_stopped_and_a_person_asked() {
    for (budget, used, more, short) in
        [("1000 tokens", "1200 tokens", "2000 tokens", "1400 short"), ("$10", "$12", "$14", "14000000 short")]
    {
        talk(&format!(
            "
            plan  a: task retry 1  budget {budget}
            approved
            -> clock admitted           a#1 to coder
            noted a {used}
            -> clock metered            120 % used; a#1 taken back from agent; a held: budget budget, {short}
            -> agent reported a#1       refused: the step is not in a state for this
            -> human raise {more}       a#2 to coder
            "
        ));
    }
}

#[test]
fn p73_two_workers_that_use_the_budget_up_together_are_both_stopped() {
    talk(
        "
        plan  f: fork j  a: task  b: task  j: join  f -always-> a  f -always-> b  a -on_success-> j  b -on_success-> j  j -on_success-> done  parallel 2  budget 10000 tokens
        approved
        -> clock admitted           a#1 to coder; b#1 to coder
        noted a 6000 tokens
        noted b 5000 tokens
        -> clock metered            110 % used; a#1 taken back from agent; b#1 taken back from agent; a held: budget budget, 7000 short; b held: budget budget, 6000 short
        ",
    );
}

#[test]
fn p73_what_the_budget_allows_stops_nobody() {
    talk(
        "
        plan  a: task  budget 1000 tokens
        approved
        -> clock admitted           a#1 to coder
        noted a 1000 tokens
        -> clock metered            refused: the step is not in a state for this
        -> agent reported a#1 1000 tokens  100 % used; a#1 to harness
        -> clock metered            refused: the step is not in a state for this
        ",
    );
}

#[test]
fn p73_work_that_the_day_has_no_budget_for_waits_for_a_person_or_for_the_next_day() {
    talk(
        "
        plan  a: task retry 1  b: task  budget 100000 tokens
        approved
        -> clock admitted           a#1 to coder
        -> clock day spent a#1      a#1 taken back from agent; a held: day_budget day, 101000 short
        -> clock day spent a#1      refused: the step is not in a state for this
        -> clock day allows b       refused: the step is not in a state for this
        -> clock day allows a       a#1 taken back from ask; a#2 to coder
        -> clock day spent a#2      a#2 taken back from agent; a held: day_budget day, 101000 short
        -> human raise 5 tokens     a#3 to coder
        -> clock day allows a       refused: the step is not in a state for this
        -> agent reported a#3 20000 tokens  a#3 to harness
        -> harness found a#3 exit 1  a#3 failed; a#4 to coder, told #3 failed
        ",
    );
}

#[test]
fn p73_the_time_in_which_nobody_worked_on_the_run_does_not_count() {
    talk(
        "
        plan  a: task retry 1  budget 100 seconds
        approved
        -> clock unattended 5 seconds   refused: the run is not in a state for this
        -> clock admitted           a#1 to coder; wake at 100 s
        wait 3660 seconds
        -> clock unattended 3600 seconds  wake at 3700 s
        -> clock unattended 3600 seconds  refused: the step is not in a state for this
        wait 39 seconds
        -> clock unattended 9000 seconds  wake at 3739 s
        wait 41 seconds
        -> clock budget             101 % used; a#1 taken back from agent; a held: budget budget, 101 s short; no wake
        wait 60 seconds
        -> clock unattended 60 seconds  refused: the step is not in a state for this
        ",
    );
}

#[test]
fn p73_a_worker_is_stopped_when_the_time_of_the_budget_is_over() {
    talk(
        "
        plan  a: task retry 1  budget 100 seconds
        approved
        -> clock admitted           a#1 to coder; wake at 100 s
        wait 60 seconds
        -> clock budget             wake at 100 s
        wait 41 seconds
        -> clock budget             101 % used; a#1 taken back from agent; a held: budget budget, 101 s short; no wake
        wait 5000 seconds
        -> human raise 200 seconds  a#2 to coder; wake at 5300 s
        -> agent reported a#2       a#2 to harness
        wait 300 seconds
        -> clock budget             133 % used
        -> harness found a#2 exit 0  a#2 passed; a settled passed; no wake; DONE
        ",
    );
}
