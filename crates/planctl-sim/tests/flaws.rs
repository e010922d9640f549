//! Every flaw of a store is caught, and what a breach tells is short enough to be read.

use planctl_sim::{Flaw, play_on, shrink};

/// Seeds within which each flaw must be found.
const SEEDS: u64 = 1_000;

#[test]
fn each_flaw_of_the_store_is_found_within_a_thousand_seeds() {
    let survivors: Vec<Flaw> = Flaw::ALL
        .into_iter()
        .filter(|flaw| {
            let found =
                (0..SEEDS).find_map(|seed| play_on(seed, Some(*flaw)).err().map(|breach| (seed, breach)));
            if let Some((seed, breach)) = &found {
                println!("{flaw:?}: seed {seed}: {}", breach.headline());
            }
            found.is_none()
        })
        .collect();
    assert!(survivors.is_empty(), "these flaws were not found within {SEEDS} seeds: {survivors:?}");
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
