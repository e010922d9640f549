//! The processor time and the memory of planctl itself in a round of drafting: the answer of a writer with 20 steps is read,
//! written as a plan, verified, and each contract is tried. Models and contracts are other processes and are not counted.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a bench that meets what it does not expect has failed")]

#[path = "../tests/drafting/home.rs"]
#[allow(dead_code, reason = "the tests of drafting need more of it")]
mod home;
#[path = "../tests/support/schema.rs"]
mod schema;
#[path = "../tests/drafting/service.rs"]
#[allow(dead_code, reason = "the tests of drafting need more of it")]
mod service;

use std::process::Stdio;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};

use home::Home;
use service::{Form, Reply, Service};

/// How often the draft is written from nothing.
const ROUNDS: u32 = 20;
/// How many steps it has.
const STEPS: u32 = 20;
/// Linux shows times to programs in hundredths of a second, whatever its own clock does.
const MILLISECONDS_PER_TICK: u64 = 10;
const GOAL: &str = "Write the twenty parts of the handbook";

fn main() {
    // `cargo test --benches` asks for tests, of which there are none here.
    if std::env::args().any(|word| word == "--test" || word == "--list") {
        return;
    }
    let home = Home::with(&[("README.md", "# Handbook\n")]);
    let replies = (0..ROUNDS).map(|_| Reply::Structured(answer())).collect();
    let service = Service::start(Form::Messages, replies);
    home.models(&[("writer", &service)]);
    let times: Vec<Duration> = (0..ROUNDS).map(|_| drafted(&home)).collect();
    assert_eq!(service.calls().len(), ROUNDS as usize, "each draft took one round");
    let mean = times.iter().sum::<Duration>() / ROUNDS;
    let most = times.iter().max().copied().unwrap_or_default();
    // The most of any process that ended: planctl, its helper, or a contract.
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() / 1024;
    let profile = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    println!("a round of {STEPS} steps, {ROUNDS} times, {profile}:");
    println!("  processor time of planctl: {mean:?} in the mean, {most:?} at most (asked for: 100 ms)");
    println!("  memory of the largest process: {memory} MB (asked for: 100 MB)");
}

/// Drafts once from nothing, and returns the processor time of planctl without that of the processes that it started.
fn drafted(home: &Home) -> Duration {
    let mut command = home.command(env!("CARGO_BIN_EXE_planctl"));
    command.args(["plan", "draft", GOAL, "--model", "writer", "--again", "--out", "plans/handbook.md"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Left unreaped, it can still be asked what it used.
    let pid = Pid::from_child(&child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // Fields 14 and 15 of the whole line: user and system time of the process itself, in ticks.
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    let status = child.wait().unwrap();
    assert!(status.success(), "{}", std::io::read_to_string(child.stderr.take().unwrap()).unwrap());
    std::fs::remove_file(home.path("work/plans/handbook.md")).unwrap();
    Duration::from_millis(ticks * MILLISECONDS_PER_TICK)
}

fn answer() -> Value {
    let step = |number: u32| {
        let file = format!("parts/part_{number}.md");
        json!({
            "title": format!("Write part {number}"), "role": "coder",
            "task": format!("Write part {number} of the handbook to `{file}`; its heading is \"Part {number}\"."),
            "contract": format!("grep -q '^# Part {number}$' {file}"), "exit_code": 0, "changes": [file], "reads": [],
            "needs": if number == 1 { json!([]) } else { json!([number - 1]) },
        })
    };
    let steps: Vec<u32> = (1..=STEPS).collect();
    json!({
        "title": "The handbook", "context": "", "confidence": 0.9,
        "steps": steps.iter().map(|number| step(*number)).collect::<Vec<_>>(),
        "requirements": [{ "id": "R1", "steps": steps, "quote": null }],
        "questions": [],
    })
}
