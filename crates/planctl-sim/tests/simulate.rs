//! A thousand random conversations, checked against the reference model and the invariants.

use std::collections::BTreeSet;

use planctl_sim::{Coverage, expected, play, shrink};

/// Seeds played by default; `PLANCTL_SIM_SEEDS=N` plays more, `PLANCTL_SIM_SEED=K` that one alone and shows it.
const SEEDS: u64 = 1_000;

#[test]
fn random_conversations_keep_every_promise() {
    if let Some(seed) = number_in("PLANCTL_SIM_SEED") {
        match play(seed) {
            Ok(tale) => println!("{}\nseed {seed}: {} events, no breach", tale.lines.join("\n"), tale.events),
            Err(breach) => panic!("{}", shrink(breach, None)),
        }
        return;
    }
    let seeds = number_in("PLANCTL_SIM_SEEDS").unwrap_or(SEEDS);
    let (met, events) = play_all(seeds);
    let missed: BTreeSet<String> = expected().difference(&met).cloned().collect();
    assert!(seeds < SEEDS || missed.is_empty(), "{seeds} seeds and {events} events never met: {missed:#?}");
    println!("{seeds} seeds, {events} events, {} things met", met.len());
}

/// Plays the seeds on every core, and fails with the first breach.
fn play_all(seeds: u64) -> (Coverage, usize) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let players: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || {
                let (mut met, mut events) = (Coverage::new(), 0);
                for seed in (0..seeds).filter(|seed| seed % threads == thread) {
                    let tale = play(seed).unwrap_or_else(|breach| panic!("{}", shrink(breach, None)));
                    met.extend(tale.coverage);
                    events += tale.events;
                }
                (met, events)
            })
        })
        .collect();
    let mut all = (Coverage::new(), 0);
    for player in players {
        let (met, events) = player.join().expect("no promise is broken; the breach is told above");
        all.0.extend(met);
        all.1 += events;
    }
    all
}

fn number_in(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number, found {text:?}")))
}
