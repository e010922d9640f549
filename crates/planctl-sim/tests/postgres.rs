//! Random conversations on the real store: several hands at once on each run, then audit and reference model.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[path = "postgres/ground.rs"]
mod ground;
#[path = "postgres/hands.rs"]
mod hands;
#[path = "postgres/stage.rs"]
mod stage;

use std::collections::BTreeSet;

use stage::Stage;

/// Runs played at once.
const RUNS: u64 = 40;
/// How often as many more are played where some case was not met: which turn out that way is up to the machine.
const ROUNDS_MAX: u64 = 5;

/// The cases that the hands must have met: a test that is never late proves nothing about late events.
const MET: [&str; 20] = [
    "agent.asked",
    "agent.faulted",
    "agent.overran",
    "agent.released",
    "agent.reported",
    "applied",
    "clock.admitted",
    "clock.lease_lost",
    "duplicate",
    "harness.evaluated",
    "harness.inconclusive",
    "human.answered",
    "human.revised",
    "human.submitted",
    "refused",
    "stale lease",
    "done",
    "failed",
    "skipped",
    "waived",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hands_do_at_once_is_what_the_model_makes_of_their_history() {
    let stage = Stage::set().await;
    let (mut runs, mut events, mut met) = (0, 0, BTreeSet::new());
    loop {
        let mut players = tokio::task::JoinSet::new();
        for seed in runs..runs + RUNS {
            let stage = stage.clone();
            players.spawn(async move { stage.play(seed).await });
        }
        while let Some(played) = players.join_next().await {
            let (more, words) = played.expect("no promise is broken; the breach is printed above");
            events += more;
            met.extend(words);
        }
        runs += RUNS;
        let missed: Vec<&str> = MET.into_iter().filter(|word| !met.contains(word)).collect();
        if missed.is_empty() {
            break;
        }
        assert!(runs < ROUNDS_MAX * RUNS, "{runs} runs and {events} events never met {missed:?}");
    }
    println!("{runs} runs, {events} events");
}
