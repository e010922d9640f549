//! Every planted bug is caught: a simulator that cannot find one proves nothing.

use planctl_engine::mutant::{Mutant, plant};
use planctl_sim::play;

/// Seeds within which each planted bug must be found.
const SEEDS: u64 = 1_000;
/// Seeds that show most of them.
const COMMON: u64 = 40;

#[test]
fn each_planted_bug_is_found_within_a_thousand_seeds() {
    assert!(every().count() >= 30, "there are enough bugs to plant");
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let chunks: Vec<Vec<Mutant>> =
        (0..threads).map(|thread| every().skip(thread).step_by(threads).collect()).collect();
    let hunts: Vec<_> = chunks
        .into_iter()
        .map(|mutants| std::thread::spawn(move || mutants.into_iter().map(hunt).collect::<Vec<_>>()))
        .collect();
    let mut survivors = Vec::new();
    for hunt in hunts {
        for (mutant, found) in hunt.join().expect("a hunt reports what it found") {
            match found {
                Some((seed, what)) => println!("{mutant:?}: seed {seed}: {what}"),
                None => survivors.push(mutant),
            }
        }
    }
    assert!(
        survivors.is_empty(),
        "these bugs were not found within {SEEDS} seeds and those of seeds.txt: {survivors:?}"
    );
}

/// Every planted bug, of lists of steps and of graphs.
fn every() -> impl Iterator<Item = Mutant> {
    Mutant::ALL.into_iter().chain(Mutant::OF_GRAPHS)
}

/// Plants a bug in this thread and plays until it shows: the first seeds, which show what is common, those that once failed
/// or show something rare, and the others of a thousand.
fn hunt(mutant: Mutant) -> (Mutant, Option<(u64, String)>) {
    plant(Some(mutant));
    let rare = include_str!("../../planctl-sim/tests/seeds.txt")
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let found = (0..COMMON)
        .chain(rare)
        .chain(COMMON..SEEDS)
        .find_map(|seed| play(seed).err().map(|breach| (seed, breach.headline())));
    plant(None);
    (mutant, found)
}
