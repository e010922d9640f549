//! Every flaw of a store is caught, and what a breach tells is short enough to be read.

use planctl_sim::{Flaw, play_on, shrink};

/// Seeds within which each flaw must be found.
const SEEDS: u64 = 1_000;

#[test]
fn each_flaw_of_the_store_is_found_within_a_thousand_seeds() {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let hunts: Vec<_> = (0..threads)
        .map(|thread| {
            let flaws = Flaw::ALL.into_iter().skip(thread).step_by(threads);
            std::thread::spawn(move || flaws.map(|flaw| (flaw, hunt(flaw))).collect::<Vec<_>>())
        })
        .collect();
    let mut survivors = Vec::new();
    for (flaw, found) in hunts.into_iter().flat_map(|hunt| hunt.join().expect("a hunt reports what it found"))
    {
        match found {
            Some((seed, what)) => println!("{flaw:?}: seed {seed}: {what}"),
            None => survivors.push(flaw),
        }
    }
    assert!(
        survivors.is_empty(),
        "these flaws were not found within {SEEDS} seeds and those of seeds.txt: {survivors:?}"
    );
}

/// Plays until a flaw shows: the seeds that once failed or show something rare, and a thousand.
fn hunt(flaw: Flaw) -> Option<(u64, String)> {
    let rare = include_str!("seeds.txt")
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    rare.chain(0..SEEDS)
        .find_map(|seed| play_on(seed, Some(flaw)).err().map(|breach| (seed, breach.headline())))
}

#[test]
fn a_breach_shrinks_to_a_shorter_story_that_still_shows_it() {
    let flaw = Some(Flaw::WithdrawalIgnored);
    let breach = (0..SEEDS)
        .filter_map(|seed| play_on(seed, flaw).err())
        .take(20)
        .max_by_key(|breach| (breach.options.rates.len(), breach.lines.len()))
        .expect("the flaw is found");
    let (seed, long, troubles) = (breach.seed, breach.lines.len(), breach.options.rates.len());
    let small = shrink(breach, flaw);
    assert_eq!(small.seed, seed);
    assert!(small.lines.len() <= long && small.options.rates.len() < troubles, "{small}");
    assert!(small.to_string().contains("PLANCTL_SIM_SEED="), "it says how to see it again: {small}");
}
