//! The time that it adds to a contract that the files which git tracks are looked at before and after it: `true`, in repositories
//! of 10 to 20,000 files, with and without that.

use std::future::pending;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use planctl_engine::{Contract, HarnessResult, RedFirst, Verdict};
use planctl_harness::{Baseline, ContractRunner, Spawner, Stability, digest_of};

/// How often each contract is run.
const ROUNDS: usize = 40;

pub async fn measure(spawner: &Spawner) {
    println!("{:>12} {:>16} {:>16} {:>8}", "files", "not looked at ms", "looked at ms", "added");
    for files in [10, 1_000, 20_000] {
        measure_files(spawner, files).await;
    }
}

async fn measure_files(spawner: &Spawner, files: usize) {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), files);
    let runner = ContractRunner::new(spawner.clone(), place.path(), None, []).unwrap();
    let mut spans = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (tracked, spans) in [false, true].into_iter().zip(&mut spans) {
            let runner = runner.clone().with_stability(Stability { tracked, ..Stability::default() });
            let begun = Instant::now();
            let baseline = Arc::new(Baseline::default());
            let gate = runner.evaluate(&contract(), &baseline, &mut |_, _| (), pending()).await;
            let HarnessResult::Evidence(evidence) = &gate.found else { panic!("{:?}", gate.found) };
            assert_eq!(contract().judge(evidence), Some(Verdict::Passed));
            spans.push(begun.elapsed());
        }
    }
    let [without, with] = spans.map(|mut spans| {
        spans.sort_unstable();
        spans[ROUNDS / 2].as_secs_f64() * 1e3
    });
    println!("{files:>12} {without:>16.2} {with:>16.2} {:>+8.2}", with - without);
}

fn fill(repository: &Path, files: usize) {
    for number in 0..files {
        let folder = repository.join(format!("src/{}", number / 20));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{number}.rs")), "text").unwrap();
    }
    for arguments in [["init", "--quiet"], ["add", "--all"]] {
        let ended = Command::new("git").args(arguments).current_dir(repository).status().unwrap();
        assert!(ended.success());
    }
}

fn contract() -> Contract {
    Contract {
        command: "true".to_owned(),
        digest: digest_of(b"true"),
        expect: 0,
        timeout: Duration::from_secs(60),
        guard: false,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
    }
}
