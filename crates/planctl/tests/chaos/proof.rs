//! Checks for the time when the faults have stopped and everything is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::workers::{WorkerPool, workspace_of};
use super::{Scale, is_flaky};
use crate::support::Place;
use crate::support::history::History;

/// Every history is sound, each attempt has its one verdict, and what was accepted is on record once (I10, I22).
pub fn histories_hold(place: &Place, pool: &WorkerPool, runs: &BTreeMap<u32, String>) {
    let audit = place.planctl(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
    assert_eq!(audit.out.matches("sound  ").count(), runs.len(), "{audit:?}");
    let accepted = pool.accepted.lock().unwrap();
    for (plan, run) in runs {
        let history = History::of(place, run);
        history.must_be_whole();
        let verdicts: Vec<(u32, u64)> = history.verdicts().into_keys().collect();
        assert_eq!(verdicts, attempts(pool.seed, &pool.scale, *plan), "attempts of {run}");
        assert_eq!(history.names().last(), Some(&"plan_completed"), "{run}");
        let reports = history.reports();
        for told in accepted.iter().filter(|told| told.run == *run) {
            let times = reports.iter().filter(|text| **text == told.text).count();
            assert_eq!(times, 1, "{run}: {told:?} was accepted and is on record {times} times");
        }
        let unique: BTreeSet<&str> = reports.iter().copied().collect();
        assert_eq!(unique.len(), reports.len(), "{run} has a report twice: {reports:?}");
    }
}

/// The attempts that each step must have: two where the first one failed, and no other is ever spent.
fn attempts(seed: u64, scale: &Scale, plan: u32) -> Vec<(u32, u64)> {
    let of = |step| if is_flaky(seed, plan, step) { 2 } else { 1 };
    (1..=scale.steps).flat_map(|step| (1..=of(step)).map(move |attempt| (step, attempt))).collect()
}

/// No two gates of a workspace ran at once (P9), and no step's gate ran once a later one had. It may pass twice: where its
/// daemon died before the verdict was stored, it runs again.
pub(super) fn gates_never_overlapped(plans: &Path, scale: &Scale) -> usize {
    let mut gates = 0;
    for plan in 1..=scale.plans {
        let log = std::fs::read_to_string(workspace_of(plans, plan).join("gates.log")).unwrap();
        let mut open: Option<(u32, &str)> = None;
        let mut latest = 0;
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_ne!(words[0], "overlap", "plan {plan}: {log}");
            let step = words[1].parse().unwrap();
            match words[0] {
                // One that was begun and not ended was killed.
                "begin" => {
                    assert!(
                        step >= latest,
                        "plan {plan}: step {step} was checked after step {latest}: {log}"
                    );
                    latest = step;
                    open = Some((step, words[2]));
                    gates += 1;
                }
                _ => assert_eq!(open.take(), Some((step, words[2])), "plan {plan}: {log}"),
            }
        }
    }
    gates
}
