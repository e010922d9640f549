//! The options that a seed expands to: faults, their frequency, and the size of the world.

use std::collections::BTreeMap;
use std::fmt;

use crate::dice::{Dice, truth};
use crate::faults::Trouble;

/// The expanded options of one seed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Turns of the phase with faults.
    pub turns: u64,
    /// Workers that claim items.
    pub workers: usize,
    /// How often in a thousand an attempt's contract passes.
    pub passes: u64,
    /// How often in a thousand chances each trouble strikes; absent ones never do.
    pub rates: BTreeMap<Trouble, u64>,
    /// Runs in the database: the seed's own, and others beside it.
    pub runs: usize,
    /// Has what not every seed has: pauses, sub-plans whose runs wait for a person, workers that tell of much use.
    pub has_pauses: bool,
}

/// The seeds with pauses, by their rest: none of those in `seeds.txt` at first, so that each of these shows what it showed before
/// there were pauses.
const WITH_PAUSES: [u64; 11] = [3, 8, 11, 15, 17, 18, 19, 25, 26, 29, 30];

impl Options {
    /// Expands a seed. Each world has some troubles only, so that rare ones meet undisturbed runs too.
    pub fn expand(dice: &mut Dice, seed: u64) -> Options {
        let calm = dice.happens(80);
        let mut rates = BTreeMap::new();
        // From a sequence of its own, so that a seed's world is otherwise what it would be without.
        let mut apart = dice.clone().fork(13);
        for trouble in Trouble::ALL.into_iter().filter(|trouble| *trouble != Trouble::RunPaused) {
            let dice = if trouble == Trouble::RevocationIgnored { &mut apart } else { &mut *dice };
            if dice.happens(400) && !calm {
                rates.insert(trouble, dice.between(1, trouble.per_mille_max()));
            }
        }
        let has_pauses = WITH_PAUSES.contains(&(seed % 32));
        if has_pauses && !calm {
            rates.insert(
                Trouble::RunPaused,
                1 + truth(seed, &["pauses"], 0) % Trouble::RunPaused.per_mille_max(),
            );
        }
        Options {
            seed,
            has_pauses,
            turns: dice.between(20, 220),
            workers: *dice.pick(&[0, 1, 1, 2, 4]),
            passes: *dice.pick(&[0, 250, 500, 500, 750, 900]),
            rates,
            runs: if apart.happens(100) { *apart.pick(&[2, 2, 3]) } else { 1 },
        }
        .crowded(&mut apart)
    }

    /// Has several runs get into each other's way: work is taken back more often, and goes on meanwhile.
    fn crowded(mut self, dice: &mut Dice) -> Options {
        if self.runs > 1 {
            self.workers = self.workers.max(2);
            self.turns = self.turns.min(120);
            for (trouble, least) in [(Trouble::RunCancelled, 50), (Trouble::RevocationIgnored, 500)] {
                if dice.happens(800) {
                    self.rates.insert(trouble, dice.between(least, least + 300));
                }
            }
        }
        self
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turns {}, workers {}, contracts pass {} ‰", self.turns, self.workers, self.passes)?;
        if self.runs > 1 {
            write!(f, ", {} runs", self.runs)?;
        }
        for (trouble, rate) in &self.rates {
            write!(f, ", {trouble:?} {rate} ‰")?;
        }
        Ok(())
    }
}
