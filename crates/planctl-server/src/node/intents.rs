//! The pieces of a goal that steps serve, by the digests of their plans: a text of 5,000 steps is parsed once, and not for each
//! page of a step.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use planctl_engine::Digest;

use crate::mutex::lock;

/// The most bytes of what is kept; then it begins anew.
const BYTES_MAX: usize = 4 << 20;
/// The bytes that a plan or a step takes in addition to its words.
const PLAN_BYTES: usize = 200;

/// Intents by the numbers of their steps.
type OfPlan = Arc<BTreeMap<u32, String>>;

/// Intents by plan.
#[derive(Default)]
pub(crate) struct Intents {
    kept: Mutex<(HashMap<Digest, OfPlan>, usize)>,
}

impl Intents {
    /// Returns those of a plan, where they are kept.
    pub(crate) fn of(&self, plan: &Digest) -> Option<OfPlan> {
        lock(&self.kept).0.get(plan).cloned()
    }

    /// Keeps those of a plan.
    pub(crate) fn keep(&self, plan: &Digest, intents: &OfPlan) {
        let bytes = PLAN_BYTES + intents.values().map(|intent| intent.len() + PLAN_BYTES).sum::<usize>();
        let mut kept = lock(&self.kept);
        if kept.1 + bytes > BYTES_MAX {
            *kept = Default::default();
        }
        if kept.0.insert(plan.clone(), intents.clone()).is_none() {
            kept.1 += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_are_kept_within_their_bytes() {
        let intents = Intents::default();
        let plan = |number: usize| Digest::new(format!("sha256:{number}"));
        let large: OfPlan = Arc::new([(1, "x".repeat(BYTES_MAX / 3))].into());
        for number in 0..3 {
            intents.keep(&plan(number), &large);
        }
        assert_eq!([0, 1, 2].map(|number| intents.of(&plan(number)).is_some()), [false, false, true]);
        intents.keep(&plan(2), &large);
        intents.keep(&plan(4), &Arc::default());
        assert!(intents.of(&plan(2)).is_some() && intents.of(&plan(4)).is_some());
    }
}
