//! Files that change while a contract runs: no verdict is of a mixture, and no contract's own products are in its way (A5).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::{Contract, HarnessResult, Inconclusive};
use planctl_harness::{Baseline, ContractRunner, Stability, Written, digest_of};

use super::support::{block_on, git, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a5_a_file_that_somebody_else_changes_meanwhile_repeats_the_gate,
        a5_an_index_that_does_not_name_a_committed_file_hides_no_change_of_it,
        a5_files_that_nobody_tracks_or_subscribes_to_may_change,
        a5_what_a_contract_itself_writes_takes_one_more_gate_and_no_other_after_that,
        a5_a_background_writer_at_10_hz_gets_no_verdict_in_any_gate,
    ]
}

struct Place {
    folder: tempfile::TempDir,
    runner: ContractRunner,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place =
            Place { runner: ContractRunner::new(spawner(), folder.path(), None, []).unwrap(), folder };
        place.write("src/greet.sh", "Helo");
        place.write("src/deep/other.sh", "other");
        place.write("spare/greet.sh", "Hello");
        git(place.path(), &["init", "--quiet"]);
        git(place.path(), &["add", "-A"]);
        place.write("notes.txt", "subscribed, not tracked");
        place.write("out.log", "neither");
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs a contract while somebody else does something in the workspace, as soon as it runs; returns what was found.
    fn gate(&self, command: &str, written: &mut Written, meanwhile: impl FnOnce() + Send) -> HarnessResult {
        let contract = Contract {
            command: format!("touch out.log running; until [ -e done ]; do sleep 0.005; done; {command}"),
            digest: digest_of(b"x"),
            expect: 0,
            timeout: Duration::from_secs(20),
            guard: false,
            red_first: planctl_engine::RedFirst::Off,
            min_tests: None,
            judge: None,
        };
        for mark in ["running", "done"] {
            std::fs::remove_file(self.path().join(mark)).ok();
        }
        let stability = Stability {
            tracked: true,
            subscribed: ["notes.txt".to_owned(), "docs/*.md".to_owned()].into(),
            except: ["spare/plan.md".to_owned()].into(),
            written: written.clone(),
        };
        let runner = self.runner.clone().with_stability(stability);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let until = Instant::now() + Duration::from_secs(20);
                while !self.path().join("running").exists() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
                meanwhile();
                std::fs::write(self.path().join("done"), "").unwrap();
            });
            let gate = block_on(runner.evaluate(
                &contract,
                &Arc::new(Baseline::default()),
                &mut |_, _| (),
                std::future::pending(),
            ));
            if !gate.written.is_empty() {
                *written = gate.written;
            }
            gate.found
        })
    }

    /// Returns what is said of a gate that tells nothing, else nothing.
    fn unstable(&self, meanwhile: impl FnOnce(&Path) + Send) -> Option<String> {
        let found = self.gate("true", &mut Written::new(), || meanwhile(self.path()));
        what_of(&found)
    }
}

fn what_of(found: &HarnessResult) -> Option<String> {
    match found {
        HarnessResult::Nothing(Inconclusive::Unstable { what }) => Some(what.clone()),
        HarnessResult::Evidence(_) => None,
        other @ (HarnessResult::Nothing(_)
        | HarnessResult::Rehearsed(_)
        | HarnessResult::Recorded { .. }
        | HarnessResult::Restored
        | HarnessResult::Forked { .. }
        | HarnessResult::Merged { .. }
        | HarnessResult::Conflicted(_)
        | HarnessResult::Begun { .. }
        | HarnessResult::Ended(_)) => panic!("{other:?}"),
    }
}

fn a5_a_file_that_somebody_else_changes_meanwhile_repeats_the_gate() {
    type Change = fn(&Path);
    let put_back: Change = |work| {
        std::fs::write(work.join("src/greet.sh"), "Hello").unwrap();
        std::fs::write(work.join("src/greet.sh"), "Helo").unwrap();
    };
    let swapped: Change = |work| {
        for (from, to) in [("src", "away"), ("spare", "src"), ("src", "spare"), ("away", "src")] {
            std::fs::rename(work.join(from), work.join(to)).unwrap();
        }
    };
    let changes: [(&str, Change); 7] = [
        ("src/greet.sh", |work| std::fs::write(work.join("src/greet.sh"), "Hello").unwrap()),
        ("src/greet.sh", put_back),
        ("src/greet.sh", |work| std::fs::remove_file(work.join("src/greet.sh")).unwrap()),
        ("src/greet.sh", |work| {
            std::fs::rename(work.join("out.log"), work.join("src/greet.sh")).unwrap();
        }),
        ("notes.txt", |work| std::fs::write(work.join("notes.txt"), "other").unwrap()),
        ("src", swapped),
        ("src/deep", |work| {
            std::fs::rename(work.join("src/deep"), work.join("deep")).unwrap();
            std::fs::rename(work.join("deep"), work.join("src/deep")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let place = Place::new();
        let what = place.unstable(change).unwrap_or_else(|| panic!("{name}: a verdict"));
        assert!(what.contains(name) && what.contains("end the program that writes there"), "{name}: {what}");
        assert_eq!(place.unstable(|_| ()), None, "the next gate is of a workspace that rests");
    }
}

fn a5_an_index_that_does_not_name_a_committed_file_hides_no_change_of_it() {
    type Hide = fn(&Path);
    let hides: [(&str, Hide); 5] = [
        ("split", |work| drop(git(work, &["update-index", "--split-index"]))),
        ("broken", |work| std::fs::write(work.join(".git/index"), "DIRCxxxxxxxx").unwrap()),
        ("gone", |work| std::fs::remove_file(work.join(".git/index")).unwrap()),
        ("partial", |work| drop(git(work, &["rm", "-r", "--cached", "--quiet", "src"]))),
        ("of another branch", |work| {
            git(work, &["checkout", "--quiet", "--orphan", "other"]);
            git(work, &["rm", "-r", "--cached", "--quiet", "src"]);
        }),
    ];
    for (name, hide) in hides {
        let place = Place::new();
        git(place.path(), &["commit", "--quiet", "-m", "first"]);
        assert_eq!(place.unstable(|_| ()), None);
        hide(place.path());
        let what = place.unstable(|work| std::fs::write(work.join("src/greet.sh"), "Hello").unwrap());
        assert!(what.is_some_and(|what| what.contains("src/greet.sh")), "{name}");
    }
    // A file that a commit no longer has is nobody's business.
    let place = Place::new();
    git(place.path(), &["commit", "--quiet", "-m", "first"]);
    assert_eq!(place.unstable(|_| ()), None);
    git(place.path(), &["rm", "--cached", "--quiet", "src/greet.sh"]);
    git(place.path(), &["commit", "--quiet", "-m", "second"]);
    assert_eq!(place.unstable(|work| std::fs::write(work.join("src/greet.sh"), "Hello").unwrap()), None);
}

fn a5_files_that_nobody_tracks_or_subscribes_to_may_change() {
    let place = Place::new();
    place.write("spare/plan.md", "");
    git(place.path(), &["add", "-A"]);
    git(place.path(), &["rm", "--cached", "--quiet", "out.log"]);
    let what = place.unstable(|work| {
        for (name, text) in [("out.log", "more"), ("src/new.o", ""), ("spare/plan.md", "✅"), ("src/x/y", "")]
        {
            let path = work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    });
    assert_eq!(what, None);
}

fn a5_what_a_contract_itself_writes_takes_one_more_gate_and_no_other_after_that() {
    let writes: [(&str, usize); 5] = [
        // A formatter that finds nothing to do any more.
        ("grep -q Hello src/greet.sh || sed -i s/Helo/Hello/ src/greet.sh", 1),
        // One that writes the same each time, and a snapshot.
        ("sed -i s/Helo/Hello/ src/greet.sh", 1),
        ("echo snapshot > src/greet.sh", 1),
        ("mv src away; mv away src", 2),
        // A file with other content each time.
        ("date +%N%s$RANDOM > src/greet.sh", 2),
    ];
    for (command, repeats) in writes {
        let place = Place::new();
        let mut written = Written::new();
        for gate in 0..5 {
            let what = what_of(&place.gate(command, &mut written, || ()));
            assert_eq!(what.is_some(), gate < repeats, "{command}, gate {gate}: {what:?}");
            let kept = serde_json::to_string(&written).unwrap();
            written = serde_json::from_str(&kept).unwrap();
        }
    }
}

fn a5_a_background_writer_at_10_hz_gets_no_verdict_in_any_gate() {
    let place = Place::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_good = false;
            while !stop.load(Ordering::Relaxed) {
                is_good = !is_good;
                place.write("src/greet.sh", if is_good { "Hello" } else { "Helo" });
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let mut written = Written::new();
        for gate in 0..5 {
            let what = what_of(&place.gate("sleep 0.15; grep -q Hello src/greet.sh", &mut written, || ()));
            assert!(what.as_ref().is_some_and(|what| what.contains("src/greet.sh")), "gate {gate}: {what:?}");
            // Half of a second is the shortest wait before a repeated gate.
            std::thread::sleep(Duration::from_millis(500));
        }
        stop.store(true, Ordering::Relaxed);
    });
}
