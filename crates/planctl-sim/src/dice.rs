//! The simulator's only source of chance: one seed, one sequence, the same on every machine.

/// Draws numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice { state: seed ^ 0x5851_f42d_4c95_7f2d }
    }

    /// Starts another sequence for one purpose, so that a draw more here moves no draw there.
    pub fn fork(&mut self, purpose: u64) -> Dice {
        Dice::new(self.draw() ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Draws 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `bound`; zero where the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    /// Draws a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Says yes this often in a thousand.
    pub fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// Picks one of several; the list is not empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).expect("an index below a length fits")]
    }

    /// Picks by weight: the index of the entry drawn.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut drawn = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if drawn < *weight {
                return index;
            }
            drawn -= weight;
        }
        weights.len().saturating_sub(1)
    }
}

/// Draws the hidden truth of one thing: the same words give the same number, whenever they are asked for.
pub fn truth(seed: u64, words: &[&str], number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed;
    for word in words {
        for byte in word.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Dice::new(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).draw()
}
