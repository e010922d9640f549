//! The cost of a whole `planctl verify` but for its start and its output: the file read, the workspace looked at, the
//! text judged, protected files digested. `just bench-verify`.
//!
//! Plans of about a kibibyte a step in four shapes, and small steps up to the most that a plan may have. Time per byte
//! must stay flat, and each plan of 1,000 steps take less than 100 ms.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where it cannot go on"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use planctl_config::Config;
use planctl_harness::Spawner;
use planctl_lang::Levels;
use planctl_server::check::{Checking, check};

/// How often each plan is verified.
const ROUNDS: usize = 31;
/// How many files the workspace has that plans subscribe to.
const FILES: usize = 300;

const PROSE: &str = "The reviewer wants every module to say what it owns before anyone adds to it. ";

/// A step's task, contract and more fields, of a plan in some shape.
type Shape = fn(step: usize) -> (String, String, String);
/// The allocator of the program that is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn small(step: usize) -> (String, String, String) {
    (format!("Write `out/part{step}.txt`."), done(step), String::new())
}

/// Many files in the task.
fn dense(step: usize) -> (String, String, String) {
    let task = (0..10).fold(String::new(), |mut task, nth| {
        let file = (step * 7 + nth) % FILES;
        write!(task, "See `src/file{file}.rs` and change what the reviewer asked for; keep tests green. ")
            .unwrap();
        task
    });
    (task, format!("test -f out/part{step}.txt && {}", done(step)), String::new())
}

fn pipes(step: usize) -> (String, String, String) {
    let pipe = format!(
        "sort out/part{step}.txt | uniq -c | sort -rn | head -n 3 | awk '{{print $2}}' | grep -q 'item{step}'"
    );
    (format!("Write `out/part{step}.txt`. {}", PROSE.repeat(8)), format!("{pipe} && {pipe}"), String::new())
}

fn subscriptions(step: usize) -> (String, String, String) {
    let fields = (0..24).fold("**subscriptions:**\n".to_owned(), |mut fields, nth| {
        writeln!(fields, "- file: src/file{}.rs", (step * 7 + nth) % FILES).unwrap();
        fields
    });
    (format!("Write `out/part{step}.txt`. {}", PROSE.repeat(4)), done(step), fields)
}

fn prose(step: usize) -> (String, String, String) {
    (format!("Write `out/part{step}.txt`. {}", PROSE.repeat(11)), done(step), String::new())
}

fn done(step: usize) -> String {
    format!("grep -q done out/part{step}.txt")
}

fn plan(steps: usize, shape: Shape) -> String {
    let mut text = "---\ntype: plan\nstatus: draft\nowner: bench\n---\n\n# Bench\n\n## Steps\n".to_owned();
    for step in 1..=steps {
        let (task, contract, fields) = shape(step);
        writeln!(
            text,
            "\n### {step}. Part {step}\n**target:** coder\n{fields}**task:**\n{task}\n**contract:**\n```shell\n\
             {contract}\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate",
        )
        .unwrap();
    }
    text
}

fn main() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__spawn") {
        std::process::exit(planctl_harness::helper_main());
    }
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    std::fs::create_dir(workspace.join("src")).unwrap();
    for file in 0..FILES {
        std::fs::write(workspace.join(format!("src/file{file}.rs")), "fn main() {}\n").unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(&workspace));
}

async fn measure(workspace: &Path) {
    let spawner = Spawner::start_self(None).unwrap();
    println!("{:<40} {:>10} {:>9} {:>9} {:>9}", "plan", "bytes", "least ms", "p50 ms", "ns/byte");
    let shapes: [(&str, Shape); 5] = [
        ("small steps", small),
        ("many files in the task", dense),
        ("long pipes", pipes),
        ("many subscriptions", subscriptions),
        ("prose", prose),
    ];
    for (name, shape) in shapes {
        for steps in [10, 100, 1000, 5000] {
            let text = plan(steps, shape);
            if text.len() > planctl_lang::PLAN_BYTES_MAX {
                continue;
            }
            let file = workspace.join("plan.md");
            std::fs::write(&file, &text).unwrap();
            let mut spans = Vec::with_capacity(ROUNDS);
            for _ in 0..ROUNDS {
                spans.push(verified(&file, workspace, &spawner).await);
            }
            spans.sort();
            let ms = |span: Duration| span.as_secs_f64() * 1e3;
            println!(
                "{:<40} {:>10} {:>9.2} {:>9.2} {:>9.1}",
                format!("{steps} steps, {name}"),
                text.len(),
                ms(spans[0]),
                ms(spans[ROUNDS / 2]),
                ms(spans[ROUNDS / 2]) * 1e6 / text.len() as f64,
            );
        }
    }
    spawner.shutdown();
}

async fn verified(file: &Path, workspace: &Path, spawner: &Spawner) -> Duration {
    let (config, levels) = (Config::default(), Levels::default());
    let checking = Checking {
        workspace,
        folder: "",
        config: &config,
        state_dir: None,
        worker: None,
        levels: &levels,
        probe: None,
    };
    let began = Instant::now();
    let checked = check(file, checking, spawner).await.unwrap();
    let took = began.elapsed();
    assert!(checked.verification.is_verified(), "{:?}", checked.verification.diagnostics.first());
    took
}
