//! The time that a hook of an interactive agent takes: without a plan, with a plan beside a daemon, and at a guard whose files did
//! not change. Each is a process of its own, as agents start it; the time of `true` is the floor of the machine.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a bench that meets what it does not expect has failed")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

const ROUNDS: u32 = 100;
/// How many files the workspace has in which a guard looks for changes.
const FILES: u32 = 1000;
const PLAN: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# One file\n\n## Steps\n\n### 1. Write one\n\n\
**target:** coder\n\n**task:**\nWrite one.txt.\n\n**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == \
0\n**on_fail:** retry(3), then escalate\n";

/// A workspace with an agent's session, and a state directory with a private Postgres.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        for name in ["home", "state", "work"] {
            std::fs::create_dir(place.folder.path().join(name)).unwrap();
        }
        for at in 0..FILES {
            let folder = place.work().join(format!("src/{}", at % 20));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{at}.rs")), "fn main() {}\n").unwrap();
        }
        place
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(program);
        command.args(words).current_dir(at("work")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", at("home")).env("PLANCTL_STATE_DIR", at("state")).env("PLANCTL_ACTOR", "ann");
        command
    }

    fn planctl(&self, words: &[&str]) {
        let said = self.command(env!("CARGO_BIN_EXE_planctl"), words).output().unwrap();
        assert!(said.status.success(), "{words:?}: {said:?}");
    }

    /// Runs a program as an agent does its hook; prints how long it took.
    fn measure(&self, what: &str, program: &str, words: &[&str], told: &Value) {
        let processor_before = processor_time();
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                let mut hook = self.command(program, words);
                let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
                // `true` may be gone before it is told anything.
                drop(hook.stdin.take().unwrap().write_all(told.to_string().as_bytes()));
                let said = hook.wait_with_output().unwrap();
                assert!(said.status.success(), "{said:?}");
                began.elapsed()
            })
            .collect();
        let processor = (processor_time() - processor_before) / ROUNDS;
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1000.0;
        let processor = processor.as_secs_f64() * 1000.0;
        println!("  {what:<34} {:>7.1} {:>7.1} {:>7.1} {processor:>9.1}", at(50), at(95), at(99));
    }

    fn measure_hook(&self, what: &str, event: &str) {
        let words = ["hook", "claude", event];
        self.measure(what, env!("CARGO_BIN_EXE_planctl"), &words, &told(&self.work(), event));
    }
}

/// The processor time of processes that ended.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let times = [usage.user_time(), usage.system_time()];
    times.iter().map(|time| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)).sum()
}

fn told(work: &Path, event: &str) -> Value {
    json!({
        "session_id": "s",
        "cwd": work,
        "hook_event_name": event,
        "prompt": "go on",
        "tool_name": "Bash",
        "tool_input": { "command": "ls" },
        "tool_response": { "stdout": "src", "stderr": "", "interrupted": false },
    })
}

fn main() {
    // `cargo test --benches` asks for tests, of which there are none here.
    if std::env::args().any(|word| word == "--test" || word == "--list") {
        return;
    }
    let profile = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{ROUNDS} hooks each, {profile}, load {}", load.split(' ').next().unwrap_or_default());
    println!("  {:<34} {:>7} {:>7} {:>7} {:>9}", "ms", "50 %", "95 %", "99 %", "processor");
    let place = Place::new();
    place.measure("true", "true", &[], &told(&place.work(), "stop"));
    for event in ["start", "prompt", "tool", "tool-done", "stop"] {
        place.measure_hook(&format!("without a plan: {event}"), event);
    }
    place.planctl(&["daemon", "start"]);
    place.planctl(&["guard", "true"]);
    // The first of them runs the command; it is the one in a hundred that the last column leaves out.
    place.measure_hook(&format!("a guard of {FILES} files: stop"), "stop");
    place.planctl(&["guard", "rm", "1"]);
    std::fs::write(place.work().join("plan.md"), PLAN).unwrap();
    place.planctl(&["guide", "on", "plan.md", "--approve"]);
    for event in ["start", "prompt", "tool", "tool-done"] {
        place.measure_hook(&format!("a plan beside a daemon: {event}"), event);
    }
    place.planctl(&["guide", "off"]);
    place.planctl(&["daemon", "stop"]);
}
