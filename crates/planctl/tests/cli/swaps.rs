//! Files, links and folders are swapped a thousand times a second while planctl verifies, approves and judges: no verdict is
//! of a text that was not approved, and none of a mixture (A3, A5).
//!
//! `SWAP_TRIALS` says how many trials there are; `just swaps` makes a thousand.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use planctl_harness::digest_of;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

use crate::fixture::{Fixture, git, plan};

/// How many trials run at once.
const AT_ONCE: u32 = 3;

/// The paths that are swapped, relative to the folder around the workspace.
const SWAPS: [(&str, &str); 6] = [
    ("work/tests/check.sh", "work/spare/check.sh"),
    ("work/run.sh", "work/other.sh"),
    ("work/tests", "work/spare"),
    ("work/src", "work/changed"),
    ("work/PLAN", "work/other.md"),
    ("work", "decoy"),
];

/// Passes where the two files differ, as they never do in one folder.
const RED: &str = "one=$(cat src/one); sleep 0.004; [ \"$one\" != \"$(cat src/two)\" ] || exit 1\n";
const GREEN: &str = "exit 0\n";

fn lay_out(around: &Path, name: &str, judge: &str) {
    for (folder, check) in [("work", RED), ("decoy", GREEN)] {
        let folder = around.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        let write = |path: &str, text: &str| {
            let path: PathBuf = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (path, text) in [
            ("tests/check.sh", check),
            ("spare/check.sh", GREEN),
            ("src/one", "a"),
            ("src/two", "a"),
            ("changed/one", "b"),
            ("changed/two", "b"),
        ] {
            write(path, text);
        }
        std::os::unix::fs::symlink("tests/check.sh", folder.join("run.sh")).unwrap();
        std::os::unix::fs::symlink("spare/check.sh", folder.join("other.sh")).unwrap();
        write(name, &plan("Mend it", "5 minutes", &[("Mend", &format!("bash {judge}"), "abort")]));
        write("other.md", &plan("Mend it", "5 minutes", &[("Mend", "bash spare/check.sh", "abort")]));
        git(&folder, &["init", "--quiet"]);
        git(&folder, &["add", "-A"]);
    }
}

fn swap_until(one: &Path, two: &Path, until: Instant, stop: &AtomicBool) -> u32 {
    let mut swapped = 0;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        // planctl may be writing its marks into a plan at this very moment: then there is nothing to swap.
        if renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).is_ok() {
            swapped += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    swapped
}

/// The results of the trials.
#[derive(Default)]
struct Counts {
    swaps: AtomicU32,
    passed: AtomicU32,
    failed: AtomicU32,
    tampered: AtomicU32,
    repeated: AtomicU32,
    refused: AtomicU32,
}

fn trial(fixture: &Fixture, number: u32, counts: &Counts) {
    let around = fixture.state().parent().unwrap().to_owned();
    let (name, run) = (format!("p{number}.md"), format!("p{number}-1"));
    let (one, two) = SWAPS[number as usize % SWAPS.len()];
    let judge = if one == "work/run.sh" { "run.sh" } else { "tests/check.sh" };
    lay_out(&around, &name, judge);
    let stop = AtomicBool::new(false);
    // Some stop before anything is approved, some while it is judged, some never.
    let until = Instant::now() + Duration::from_millis(u64::from(number * 53 % 1_500));
    let said = std::thread::scope(|scope| {
        let (one, two, stop) = (around.join(one.replace("PLAN", &name)), around.join(two), &stop);
        let swapping = scope.spawn(move || swap_until(&one, &two, until, stop));
        let mut command =
            fixture.command(&["plan", "run", &name, "--approve", "--no-wait", "--exec", "true"]);
        let said = command.output().unwrap();
        stop.store(true, Ordering::Relaxed);
        counts.swaps.fetch_add(swapping.join().unwrap(), Ordering::Relaxed);
        said
    });
    let said = format!("trial {number}, {one}: {}", String::from_utf8_lossy(&said.stderr));
    let kept = fixture.sql(&format!(
        "select json_build_object('ran', r.revision, 'approved', a.digest, 'protected', a.protected, 'source', v.source)
         from runs r join approvals a on a.id = r.approval
         join revisions v on v.plan = r.plan and v.digest = r.revision where r.name = '{run}'"
    ));
    let Ok(kept) = serde_json::from_str::<Value>(&kept) else {
        counts.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    assert_eq!(kept["ran"], kept["approved"], "{said}");
    let status = fixture.json(&["plan", "status", &run, "--json"]);
    let events = fixture.planctl(&["events", "--run", &run, "--json"]).out;
    counts.repeated.fetch_add(u32::from(events.contains("gate_repeated")), Ordering::Relaxed);
    // The plan that runs says what judges, and the approval which text of that.
    let judge =
        if kept["source"].as_str().unwrap().contains("spare/check.sh") { "spare/check.sh" } else { judge };
    let approved = kept["protected"]["files"][judge]["digest"].as_str().unwrap_or_default();
    let meant = match approved {
        approved if approved == digest_of(RED.as_bytes()).as_str() => Some("failed"),
        approved if approved == digest_of(GREEN.as_bytes()).as_str() => Some("passed"),
        _ => None,
    };
    match status["steps"][0]["verdict"].as_str() {
        Some(verdict @ ("passed" | "failed")) => {
            assert_eq!(Some(verdict), meant, "{said}\n{kept}");
            let count = if verdict == "passed" { &counts.passed } else { &counts.failed };
            count.fetch_add(1, Ordering::Relaxed);
        }
        Some("tampered") => drop(counts.tampered.fetch_add(1, Ordering::Relaxed)),
        None => drop(counts.refused.fetch_add(1, Ordering::Relaxed)),
        Some(other) => panic!("{other}: {said}"),
    }
}

#[test]
fn no_verdict_is_of_a_text_that_was_not_approved_while_all_is_swapped_at_1_khz() {
    let count: u32 = std::env::var("SWAP_TRIALS").ok().and_then(|count| count.parse().ok()).unwrap_or(18);
    let (counts, next, started) = (Counts::default(), AtomicU32::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let fixture = Fixture::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    trial(&fixture, number, &counts);
                }
            });
        }
    });
    let of = |count: &AtomicU32| count.load(Ordering::Relaxed);
    println!(
        "{count} trials, {} swaps, {:?}: {} passed, {} failed, {} tampered, {} without a verdict; in {} a gate was repeated",
        of(&counts.swaps),
        started.elapsed(),
        of(&counts.passed),
        of(&counts.failed),
        of(&counts.tampered),
        of(&counts.refused),
        of(&counts.repeated),
    );
    assert!(of(&counts.passed) + of(&counts.failed) > 0, "no trial came to a verdict");
}
