//! A run goes on while its reader does nothing: at `parallel` 64, with nobody who reads.

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::Fixture;

/// How many steps the plan has, none of which waits for another.
const STEPS: usize = 200;
/// The size of the pipe that nobody reads.
const PIPE_BYTES: usize = 4096;
/// More than that pipe and a terminal hold: a process that has written this much has waited for a reader.
const HELD_BYTES_MAX: usize = 24 * 1024;
/// How long a pager stays open at least before somebody reads on.
const PAGER_STAYS_OPEN: Duration = Duration::from_secs(120);

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let mut plan =
        "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Many\n\n**Parallel:** 64\n\n## Steps\n"
            .to_owned();
    for step in 1..=STEPS {
        write!(
            plan,
            "\n### {step}. Make {step}\n\n**target:** coder\n**needs:** none\n\n**task:**\nWrite `out-{step}`.\n\n\
             **contract:**\n```shell\ntest -e out-{step}\n```\nexit_code == 0\n**on_fail:** escalate\n"
        )
        .unwrap();
    }
    fixture.write("p.md", &plan);
    fixture.write("work.sh", "name=$(grep -o 'out-[0-9]*' | head -n 1); sleep 0.3; touch \"$name\"\n");
    fixture
}

const LINE: [&str; 6] = ["plan", "run", "p.md", "--approve", "--exec", "bash work.sh"];

/// Waits until the run is done, while the command that works on it still wants to say so, and until nobody has read for at least
/// this long; returns all that it said.
fn done_before_anybody_reads(fixture: &Fixture, mut child: Child, unread_for: Duration) -> Vec<u8> {
    rustix::pipe::fcntl_setpipe_size(child.stdout.as_ref().unwrap(), PIPE_BYTES).unwrap();
    let began = Instant::now();
    let until = began + Duration::from_secs(240);
    loop {
        let runs = fixture.json(&["ls", "--json"]);
        if runs["runs"].as_array().is_some_and(|runs| runs.iter().any(|run| run["state"] == "done")) {
            break;
        }
        assert!(Instant::now() < until, "the run is not done: {runs}");
        assert!(child.try_wait().unwrap().is_none(), "the command has ended before the run: {runs}");
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(unread_for.saturating_sub(began.elapsed()));
    assert!(child.try_wait().unwrap().is_none(), "it waits for as long as its reader does");
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(said.len() > HELD_BYTES_MAX, "{} bytes", said.len());
    said
}

#[test]
fn edge_b1_b2_sixty_four_at_once_come_to_their_end_while_a_pager_is_left_open_for_two_minutes() {
    let fixture = fixture();
    let mut command = fixture.command(&LINE);
    command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let said = done_before_anybody_reads(&fixture, command.spawn().unwrap(), PAGER_STAYS_OPEN);
    let lines: Vec<Value> =
        said.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let passed = lines.iter().filter(|line| line["event"] == "agent.reported").count();
    assert_eq!(passed, STEPS, "all of it is told in the end");
}

#[test]
fn edge_b2_a_stopped_terminal_stops_no_run() {
    let fixture = fixture();
    let planctl = fixture.command(&[]);
    let mut command = Command::new("script");
    let line = LINE.map(|word| format!("'{word}'")).join(" ");
    command.args(["--quiet", "--return", "--command"]);
    // A high one, so that much is drawn.
    let line = format!("stty rows 200 cols 120; {} {line}", env!("CARGO_BIN_EXE_planctl"));
    command.arg(line).arg("/dev/null");
    command.current_dir(fixture.path("")).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    command.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    // The reader of the terminal stopped, as after Ctrl-S.
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let said = done_before_anybody_reads(&fixture, child, Duration::ZERO);
    assert!(String::from_utf8_lossy(&said).contains('✔'));
}
