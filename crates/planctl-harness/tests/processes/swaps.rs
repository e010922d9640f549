//! Protected entries are swapped a thousand times a second while a baseline is taken and a contract runs: no verdict is
//! of another text than the one that was approved, and none of a mixture.
//!
//! `SWAP_TRIALS` says how many trials there are; `just swaps` makes a thousand.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::{Contract, HarnessResult, Inconclusive, Verdict};
use planctl_harness::{Baseline, ContractRunner, digest_of};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::support::{block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![no_verdict_is_of_a_text_that_was_not_approved_while_entries_are_swapped_at_1_khz]
}

/// Names the two entries that are swapped, of which contracts see the first.
const SWAPS: [(&str, &str); 3] =
    [("tests/check.sh", "spare/check.sh"), ("run.sh", "other.sh"), ("tests", "spare")];

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("tests", "exit 1"), ("spare", "exit 0")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("check.sh"), text).unwrap();
        // Both files of a folder say the same, so a contract that sees them differ saw a mixture.
        std::fs::write(folder.path().join(name).join("twin.sh"), text).unwrap();
    }
    std::os::unix::fs::symlink("tests/check.sh", folder.path().join("run.sh")).unwrap();
    std::os::unix::fs::symlink("spare/check.sh", folder.path().join("other.sh")).unwrap();
    folder
}

/// Swaps two entries every millisecond until the time is over or a flag stops it; returns how often it did.
fn swapper(folder: &Path, (one, two): (&str, &str), until: Instant, stop: &AtomicBool) -> u32 {
    let mut swapped = 0;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, folder.join(one), CWD, folder.join(two), RenameFlags::EXCHANGE).unwrap();
        swapped += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    swapped
}

fn no_verdict_is_of_a_text_that_was_not_approved_while_entries_are_swapped_at_1_khz() {
    let count: u32 = std::env::var("SWAP_TRIALS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let spawner = spawner();
    let (mut judged, mut tampered, mut repeated, mut swapped) = (0, 0, 0, 0);
    for trial in 0..count {
        let folder = workspace();
        let swap = SWAPS[trial as usize % SWAPS.len()];
        let judge = if swap.0 == "run.sh" { "run.sh" } else { "tests/check.sh" };
        // The file is read twice, with a pause; a mixture passes, and so does the text that says so.
        let command = format!(
            "one=$(cat {judge}); sleep 0.00{}; two=$(cat {judge}); [ \"$one\" != \"$two\" ] || bash {judge}",
            trial % 7
        );
        let contract = Contract {
            digest: digest_of(command.as_bytes()),
            command,
            expect: 0,
            timeout: Duration::from_secs(20),
            guard: false,
            red_first: planctl_engine::RedFirst::Off,
            min_tests: None,
            judge: None,
        };
        let runner = ContractRunner::new(spawner.clone(), folder.path(), None, []).unwrap();
        let stop = AtomicBool::new(false);
        // Some stop before the gate, some while it runs, some never.
        let until = Instant::now() + Duration::from_millis(u64::from(trial * 7 % 40));
        let (baseline, found) = std::thread::scope(|scope| {
            let swapping = scope.spawn(|| swapper(folder.path(), swap, until, &stop));
            let baseline = Baseline::take(folder.path(), [judge], ["tests/**"]).unwrap();
            let gate = block_on(runner.evaluate(
                &contract,
                &Arc::new(baseline.clone()),
                &mut |_, _| (),
                std::future::pending(),
            ));
            stop.store(true, Ordering::Relaxed);
            swapped += swapping.join().unwrap();
            (baseline, gate.found)
        });
        let approved = baseline.files.get(judge).map(|state| state.digest.clone());
        if matches!(found, HarnessResult::Nothing(Inconclusive::Unstable { .. })) {
            repeated += 1;
            continue;
        }
        let HarnessResult::Evidence(evidence) = &found else { panic!("trial {trial}: {found:?}") };
        match contract.judge(evidence).unwrap() {
            Verdict::Tampered => tampered += 1,
            verdict @ (Verdict::Passed | Verdict::Failed) => {
                judged += 1;
                let meant = if verdict == Verdict::Passed { "exit 0" } else { "exit 1" };
                assert_eq!(
                    approved,
                    Some(digest_of(meant.as_bytes())),
                    "trial {trial}, {swap:?}: {verdict:?}"
                );
            }
            Verdict::TimedOut => panic!("trial {trial} timed out"),
        }
    }
    eprintln!(
        "{count} trials, {swapped} swaps: {judged} judged, {tampered} tampered, {repeated} told nothing"
    );
    assert!(
        judged > 0 && repeated + tampered > 0,
        "{judged} judged, {tampered} tampered, {repeated} told nothing"
    );
}
