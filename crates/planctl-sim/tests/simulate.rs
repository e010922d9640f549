//! A thousand random conversations, checked against the reference model and the invariants.

#[path = "simulate/newer.rs"]
mod newer;

use std::collections::BTreeSet;
use std::ops::Range;

use planctl_sim::{Breach, Coverage, expected, play, shrink};

/// Seeds played by default; `PLANCTL_SIM_SEEDS=N` plays more, `PLANCTL_SIM_FROM=N` begins later, `PLANCTL_SIM_SEED=K` plays that
/// one alone and shows it.
const SEEDS: u64 = 1_000;

/// The results of many seeds.
#[derive(Default)]
struct Played {
    met: Coverage,
    events: usize,
    breaches: Vec<Breach>,
}

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
    let from = number_in("PLANCTL_SIM_FROM").unwrap_or(0);
    let Played { met, events, mut breaches } = play_all(from..from + seeds);
    breaches.sort_by_key(|breach| breach.seed);
    for breach in &breaches {
        println!("seed {} broke: {}", breach.seed, breach.what.lines().next().unwrap_or_default());
    }
    let broken = breaches.len();
    if let Some(first) = breaches.into_iter().next() {
        panic!("{broken} of {seeds} seeds break a promise; the first:\n{}", shrink(Box::new(first), None));
    }
    let missed: BTreeSet<String> = expected().difference(&met).cloned().collect();
    assert!(
        from > 0 || seeds < SEEDS || missed.is_empty(),
        "{seeds} seeds and {events} events never met: {missed:#?}"
    );
    println!("{seeds} seeds from {from}, {events} events, {} things met", met.len());
}

/// Plays the seeds on every core.
fn play_all(seeds: Range<u64>) -> Played {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let players: Vec<_> = (0..threads)
        .map(|thread| {
            let seeds = seeds.clone();
            std::thread::spawn(move || {
                let mut played = Played::default();
                for seed in seeds.filter(|seed| seed % threads == thread) {
                    match play(seed) {
                        Ok(tale) => {
                            played.met.extend(tale.coverage);
                            played.events += tale.events;
                        }
                        Err(breach) => played.breaches.push(*breach),
                    }
                }
                played
            })
        })
        .collect();
    let mut all = Played::default();
    for player in players {
        let played = player.join().expect("a breach is returned, panics of the engine included");
        all.met.extend(played.met);
        all.events += played.events;
        all.breaches.extend(played.breaches);
    }
    all
}

fn number_in(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number, found {text:?}")))
}
