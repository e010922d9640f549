//! The cases that a batch must have met at least once: a simulator that never meets a case proves nothing about it.

use std::collections::BTreeSet;

use crate::faults::Trouble;

/// The cases met, in words.
pub type Coverage = BTreeSet<String>;

/// Lists all that a large batch must meet.
pub fn expected() -> Coverage {
    let mut words: Coverage = Trouble::ALL.iter().map(|trouble| format!("trouble {trouble:?}")).collect();
    let mut add = |kind: &str, list: &str| {
        words.extend(list.split_whitespace().map(|word| format!("{kind} {word}")));
    };
    add(
        "event",
        "agent.reported agent.asked agent.overran agent.faulted agent.released harness.evaluated harness.rehearsed \
         harness.inconclusive harness.recorded harness.restored \
         harness.parted harness.merged harness.conflicted harness.begun harness.ended human.submitted human.answered human.voted human.cancelled human.paused human.resumed human.revised \
         clock.admitted clock.due clock.lease_lost clock.overran clock.metered \
         clock.unattended clock.day_spent clock.day_allows",
    );
    add(
        "fact",
        "plan_activated node_entered node_rehearsed node_verified retry_triggered edge_followed node_settled node_resting \
         node_interrupted gate_repeated ask_opened ask_answered plan_escalated budget_noticed plan_expired \
         plan_paused node_reopened plan_completed plan_failed plan_cancelled pace_changed \
         node_queued context_refused node_decided checkpoint_saved checkpoint_restored branches_joined goal_unmet \
         epoch_began branches_parted branches_merged merge_conflicted sub_plan_began sub_plan_ended",
    );
    add("level", "primary alternate contingent emergency");
    add("answer", "approve reject retry skip waive abort revise reassign raise answer choose");
    add("decider", "condition outcome label suggestion weight");
    add(
        "reason",
        "submitted exhausted no_edge undelivered permission interrupted inconclusive not_red stale attempts_limit visits_limit \
         budget asked planned same_failure conflict proposed effect day",
    );
    add("showing", "red green tampered");
    add("verdict", "passed failed timed_out tampered");
    add("outcome", "passed failed skipped waived warned");
    add(
        "refusal",
        "NotActive NoSuchNode StaleAttempt WrongState WrongAnswer NoteMissing ForeignEvidence \
         SettledStepChanged NeverBegun NothingRaised NotLeft NoSuchOption",
    );
    add("answered", "Accepted Duplicate NoLease Busy");
    add("revoked", "acknowledged reported lost");
    add("child", "waits goes");
    add("end", "Done Failed Aborted Cancelled");
    add("at the limit after", "retry loop fork kill withdrawal restart");
    words
}
