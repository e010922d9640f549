//! The threshold of an entry as its runs teach it (H-52).

/// How many runs must have ended before anything is learned from them.
pub const RUNS_MIN: u32 = 5;
/// How many runs are looked at, the newest first, so that a plan that was mended is forgiven.
pub const RUNS_NEWEST: u32 = 20;

/// How the newest runs of a plan ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Success {
    /// How many ended.
    pub ended: u32,
    /// How many of these were done.
    pub done: u32,
}

impl Success {
    /// Says whether the plan must be asked for by one trigger more: where most of enough runs did not end well.
    pub fn raises_threshold(self) -> bool {
        self.ended >= RUNS_MIN && u64::from(self.done) * 2 < u64::from(self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_52_a_threshold_rises_by_one_where_most_of_five_runs_or_more_failed() {
        let raises = |done, ended| Success { ended, done }.raises_threshold();
        assert!(!raises(0, 0) && !raises(0, 4), "four runs teach nothing");
        assert!(raises(0, 5) && raises(2, 5), "less than half");
        assert!(!raises(3, 5) && !raises(3, 6), "half is enough");
        assert!(!raises(u32::MAX, u32::MAX));
    }
}
