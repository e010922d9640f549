//! A18, A19, A22: the limit that ends a contract stands in its evidence, at every tier that the host offers.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{Ending, Evidence, HarnessResult, Resource, Tier, Verdict};
use planctl_harness::{Baseline, ContractRunner, Isolation, ResourceLimits};

use super::sandbox::offered;
use super::support::{alive, block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a19_memory_of_the_whole_tree_is_limited,
        a18_processes_are_limited,
        cpu_time_of_the_whole_tree_is_limited,
        a22_the_size_of_a_file_is_limited,
        open_files_are_limited,
        what_stays_within_its_limits_passes,
    ]
}

const MARK: &str = "TEST_LIMITS";

/// Runs a contract within limits at each tier, and looks for processes that are left.
fn at_each_tier(name: &str, limits: ResourceLimits, command: &str, check: impl Fn(Tier, &Evidence, Verdict)) {
    for tier in [Tier::SameUser].into_iter().chain(offered()) {
        let folder = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        let mark = format!("{name}-{tier}-{}", std::process::id());
        let configured = [(MARK.to_owned(), mark.clone())];
        let spawner = spawner().with_scratch(scratch.path());
        let isolation = Isolation { tier, ..Isolation::default() };
        let runner = ContractRunner::new(spawner, &workspace, None, configured).unwrap();
        let runner = runner.with_isolation(isolation).with_limits(limits);
        let contract = super::support::contract(command, Duration::from_secs(60));
        let baseline = Arc::new(Baseline::default());
        let found = block_on(async {
            runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()).await.found
        });
        let HarnessResult::Evidence(evidence) = found else { panic!("{tier}: {found:?}") };
        check(tier, &evidence, contract.judge(&evidence).unwrap());
        assert_eq!(alive(&format!("{MARK}={mark}")), [0_i32; 0], "{tier}");
    }
}

fn ends_over(name: &str, limits: ResourceLimits, command: &str, resource: Resource, words: &str) {
    at_each_tier(name, limits, command, |tier, evidence, verdict| {
        let max = limits.limit_of(resource).unwrap();
        assert_eq!(evidence.ending, Ending::OverLimit { resource, max }, "{tier}: {evidence:?}");
        assert_eq!(verdict, Verdict::Failed, "{tier}");
        let said = resource.exceeded(max);
        assert!(said.contains(words) && said.contains(resource.key()), "{tier}: {said}");
    });
}

fn a19_memory_of_the_whole_tree_is_limited() {
    let limits = ResourceLimits { memory: Some(64 << 20), ..ResourceLimits::default() };
    // None of the two alone is over it.
    let command = "hog() { x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 30; }; hog & hog & wait";
    ends_over("memory", limits, command, Resource::Memory, "more than 64 MiB of memory");
}

fn a18_processes_are_limited() {
    let limits = ResourceLimits { processes: Some(20), ..ResourceLimits::default() };
    let command = "for i in {1..40}; do setsid sleep 30 & done; wait";
    ends_over("processes", limits, command, Resource::Processes, "more than 20 processes");
}

fn cpu_time_of_the_whole_tree_is_limited() {
    let limits = ResourceLimits { cpu: Some(Duration::from_secs(1)), ..ResourceLimits::default() };
    // Each process alone uses little.
    let command = "while :; do ( for i in {1..20000}; do :; done ); done";
    ends_over("cpu", limits, command, Resource::Cpu, "more than 1 s of CPU time");
}

fn a22_the_size_of_a_file_is_limited() {
    let limits = ResourceLimits { file_size: Some(1 << 20), ..ResourceLimits::default() };
    let command = "head -c 3000000 /dev/zero > large";
    ends_over("file", limits, command, Resource::FileSize, "more than 1 MiB into one file");
}

/// No signal tells of it: the program meets an error of its own, and the hint beside its words names the limit.
fn open_files_are_limited() {
    let limits = ResourceLimits { open_files: Some(32), ..ResourceLimits::default() };
    let command = "python3 -c 'files = [open(\"/dev/null\") for _ in range(60)]'";
    at_each_tier("open", limits, command, |tier, evidence, verdict| {
        assert_eq!((evidence.ending, verdict), (Ending::Exited { code: 1 }, Verdict::Failed), "{tier}");
        let hint = "maybe a process had more than 32 files open (raise open_files in [contracts.limits]";
        assert!(evidence.stderr.tail.contains(hint), "{tier}: {}", evidence.stderr.tail);
    });
}

fn what_stays_within_its_limits_passes() {
    let limits = ResourceLimits {
        cpu: Some(Duration::from_secs(20)),
        memory: Some(512 << 20),
        processes: Some(64),
        file_size: Some(1 << 20),
        open_files: Some(64),
    };
    let command = "for i in {1..8}; do sleep 0.3 & done; head -c 1000000 /dev/zero > file; wait";
    at_each_tier("within", limits, command, |tier, evidence, verdict| {
        assert_eq!(verdict, Verdict::Passed, "{tier}: {evidence:?}");
    });
}
