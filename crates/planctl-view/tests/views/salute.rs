//! The SALUTE report of a run, for a supervisor (G-38).

use planctl_view::{Salute, Who, salute};

use super::script::played;

/// Draws a report in a line for each of its parts.
fn drawn(salute: &Salute) -> String {
    let (size, time, equipment) = (&salute.size, &salute.time, &salute.equipment);
    let seconds = |at: planctl_engine::Timestamp| at.as_micros() / 1_000_000;
    let mut lines =
        vec![format!("size {} steps, {} over, {} live", size.steps, size.settled.total(), size.live)];
    lines.extend(salute.activity.now.iter().map(|says| format!("now {says}")));
    lines.extend(salute.activity.events.iter().map(|past| format!("{} s: {}", seconds(past.at), past.text)));
    lines.extend(salute.location.at.iter().map(|place| {
        format!("at {} “{}” visit {} attempt {}", place.step, place.title, place.visit, place.attempt)
    }));
    lines.push(format!("path {:?}", salute.location.path));
    lines.extend(salute.unit.iter().map(|duty| {
        let what = duty.step.map_or_else(|| "the run".to_owned(), |step| format!("step {step}"));
        match &duty.who {
            Who::Role(role) => format!("{what} is the {role}'s"),
            Who::Harness => format!("{what} is the harness's"),
            Who::Person => format!("{what} is a person's"),
        }
    }));
    let began = time.began.map(|at| format!("{} s", seconds(at)));
    lines.push(format!(
        "began {}, moved {} s, active {} s",
        began.as_deref().unwrap_or("never"),
        seconds(time.moved),
        time.active.as_secs()
    ));
    lines.push(format!("{} attempts, {} tokens", equipment.attempts, equipment.spent.tokens));
    lines.join("\n")
}

#[track_caller]
fn reports(conversation: &str, expected: &str) {
    let stage = played(conversation);
    let drawn = drawn(&salute(&stage.graph, &stage.run, &stage.facts, stage.now));
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(drawn, expected.join("\n"), "\n{drawn}");
}

#[test]
fn g38_a_retried_step_is_told_with_the_last_five_events_and_the_way_there() {
    reports(
        "
        plan  a: task  b: task retry 2 escalate
        approved
        wait 10 seconds
        -> clock admitted           a#1 to coder
        wait 20 seconds
        -> agent reported a#1 500 tokens  a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; b#1 to coder
        -> agent reported b#1       b#1 to harness
        wait 5 seconds
        -> harness found b#1 exit 1  b#1 failed; b#2 to coder, told #1 failed
        ",
        "
        size 2 steps, 1 over, 1 live
        now attempt 2 of step 2 \"b\" is the coder's
        30 s: step 1 \"a\" passed
        30 s: step 1 \"a\" counts as met, so the run went to step 2 \"b\"
        30 s: step 2 \"b\" began with attempt 1
        35 s: the contract of step 2 \"b\" failed at attempt 1
        35 s: step 2 \"b\" is tried again: attempt 2, 1 left after it
        at 2 “b” visit 1 attempt 2
        path [1, 2, 2]
        step 2 is the coder's
        began 10 s, moved 35 s, active 25 s
        3 attempts, 500 tokens
        ",
    );
}

#[test]
fn a_step_that_is_judged_is_the_harnesss() {
    reports(
        "
        plan  a: task retry 0 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        ",
        "
        size 1 steps, 0 over, 1 live
        now the contract of step 1 \"a\" judges attempt 1
        0 s: the owner approved the plan
        0 s: the run began: a conversation (1 step)
        0 s: the plan is approved
        0 s: the plan is approved, so the run went to step 1 \"a\"
        0 s: step 1 \"a\" began with attempt 1
        at 1 “a” visit 1 attempt 1
        path [1]
        step 1 is the harness's
        began 0 s, moved 0 s, active 0 s
        1 attempts, 0 tokens
        ",
    );
}

#[test]
fn a_held_step_is_a_persons() {
    reports(
        "
        plan  a: task retry 0 escalate
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 1  a#1 failed; a held: escalation exhausted
        ",
        "
        size 1 steps, 0 over, 1 live
        now step 1 \"a\" waits for a person: an escalation
        0 s: step 1 \"a\" began with attempt 1
        0 s: the contract of step 1 \"a\" failed at attempt 1
        0 s: step 1 \"a\" has no attempt left, so the run went to a person
        0 s: step 1 \"a\" was escalated: its attempts are used up
        0 s: step 1 \"a\" waits for a person: its attempts are used up
        at 1 “a” visit 1 attempt 1
        path [1]
        step 1 is a person's
        began 0 s, moved 0 s, active 0 s
        1 attempts, 0 tokens
        ",
    );
}

#[test]
fn a_run_that_waits_for_its_approval_says_so() {
    reports(
        "
        plan  a: task
        -> human submits            start held: plan submitted
        ",
        "
        size 1 steps, 0 over, 0 live
        now the run waits for a person: a plan approval
        0 s: the plan waits for approval
        path []
        the run is a person's
        began never, moved 0 s, active 0 s
        0 attempts, 0 tokens
        ",
    );
}

#[test]
fn a_run_that_is_over_says_how_it_ended() {
    reports(
        "
        plan  a: task
        approved
        -> clock admitted           a#1 to coder
        -> agent reported a#1       a#1 to harness
        -> harness found a#1 exit 0  a#1 passed; a settled passed; DONE
        ",
        "
        size 1 steps, 1 over, 0 live
        now the run is done: 1 passed
        0 s: step 1 \"a\" began with attempt 1
        0 s: the contract of step 1 \"a\" passed at attempt 1
        0 s: step 1 \"a\" passed
        0 s: step 1 \"a\" counts as met, so the run went to done
        0 s: the run is done: 1 passed
        path [1]
        began 0 s, moved 0 s, active 0 s
        1 attempts, 0 tokens
        ",
    );
}
