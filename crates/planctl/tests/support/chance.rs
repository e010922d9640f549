//! Chance from a seed, so that what failed once can be played again.

use std::time::Duration;

/// A stream of numbers that depends on its seed alone (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// A span from nothing to this many milliseconds, to the microsecond.
    pub fn within_ms(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000 + 1))
    }
}
