//! The cost of verifying a plan as it grows: time per byte must stay flat, and 1,000 steps in 1 MiB take less than 100 ms.
//!
//! Reading and judging are timed together, with the facts of a workspace where every file is there; the files that a
//! whole `planctl verify` looks at are not part of it.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planctl_lang::{FileFact, Levels, Source, read};

const CONTRACTS: [&str; 4] = [
    "test -f out/STEP.txt && grep -q 'ready: STEP' out/STEP.txt",
    "cargo test --quiet -p part-STEP",
    "cd parts/STEP\nmake check && ! git diff --quiet -- src",
    "diff <(sort out/STEP.txt) expected/STEP.txt",
];

const PROSE: &str =
    "Read the notes of the step before, then write what follows from them into `out/STEP.txt`. ";

/// The allocator of the program that is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A plan of so many steps, each about as long as asked.
fn plan(steps: usize, step_bytes: usize) -> String {
    let mut text = "---\ntype: plan\nstatus: draft\nowner: bench\n---\n\n# Grow\n\n## Steps\n".to_owned();
    for number in 1..=steps {
        let named = |template: &str| template.replace("STEP", &number.to_string());
        let contract = named(CONTRACTS[number % CONTRACTS.len()]);
        let begin = text.len();
        text.push_str(&named("\n### STEP. Write part STEP\n**target:** coder\n**task:**\nWrite it."));
        while text.len() - begin + 110 + contract.len() < step_bytes {
            text.push_str(&named(PROSE));
        }
        text.push_str("\n**contract:**\n```shell\n");
        text.push_str(&contract);
        text.push_str("\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n");
    }
    text
}

fn judged(text: &str) -> usize {
    judged_as("plan.md", text)
}

/// Verifies a text in the language of this name, which must be without errors.
fn judged_as(name: &str, text: &str) -> usize {
    let source = &Source::new(name, text);
    let plan = read(source);
    let wants = plan.wants();
    let there = |path| (path, FileFact::Regular { size: 10 });
    let facts = planctl_lang::Facts {
        files: wants.files.into_iter().map(there).collect(),
        commands: wants.commands.into_iter().map(|name| (name, true)).collect(),
        ..planctl_lang::Facts::default()
    };
    let judged = plan.judge(&facts, &Levels::default());
    assert!(judged.graph.is_some(), "{:?}", judged.diagnostics);
    judged.diagnostics.len()
}

fn growth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("verify, 200 bytes a step");
    for steps in [10, 100, 1_000, 5_000] {
        let text = plan(steps, 200);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(steps), &text, |bencher, text| {
            bencher.iter(|| black_box(judged(text)));
        });
    }
    group.finish();
}

/// A pipeline of so many nodes in DOT: groups of a step, a decision, two ways, a fork of two, its join and a check that
/// leads back.
fn pipeline(nodes: usize) -> String {
    let mut text = "digraph grow {\n  start [shape=Mdiamond]\n  exit [shape=Msquare]\n".to_owned();
    let mut last = "start".to_owned();
    for number in 0..(nodes / 9).max(1) {
        let group = "
  fixN [prompt=\"Fix N.\", contract=\"test -s fix/N\", target=coder, max_retries=1]
  whichN [shape=diamond]
  shortN [prompt=\"Short N.\", contract=\"test -s short/N\", target=coder]
  longN [prompt=\"Long N.\", contract=\"test -s long/N\", target=coder]
  forkN [shape=component]
  leftN [prompt=\"Left N.\", contract=\"test -s left/N\", target=coder]
  rightN [prompt=\"Right N.\", contract=\"test -s right/N\", target=coder]
  joinN [shape=tripleoctagon]
  checkN [shape=parallelogram, tool_command=\"test -s left/N && test -s right/N\"]
  LAST -> fixN -> whichN
  whichN -> shortN [condition=\"steps.fixN.attempts=1\"]
  whichN -> longN
  shortN -> forkN longN -> forkN
  forkN -> leftN -> joinN
  forkN -> rightN -> joinN
  joinN -> checkN
  checkN -> fixN [on=fail]
";
        text.push_str(&group.replace("LAST", &last).replace('N', &number.to_string()));
        last = format!("check{number}");
    }
    text.push_str(&format!("  {last} -> exit\n}}\n"));
    text
}

fn graphs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("verify a graph in DOT, by its nodes");
    group.sample_size(20);
    for nodes in [10, 1_000, 5_000] {
        let text = pipeline(nodes);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(nodes), &text, |bencher, text| {
            bencher.iter(|| black_box(judged_as("plan.dot", text)));
        });
    }
    group.finish();
}

fn largest(criterion: &mut Criterion) {
    let text = plan(1_000, 1_020);
    let mut group = criterion.benchmark_group("verify, 1,000 steps in 1 MiB");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("1000", |bencher| bencher.iter(|| black_box(judged(&text))));
    group.finish();
}

criterion_group!(benches, growth, graphs, largest);
criterion_main!(benches);
