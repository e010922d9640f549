//! The first hour at a terminal, by the README alone: the demo, a first plan, a contract that fails, and its mending.

use std::path::Path;
use std::time::{Duration, Instant};

use super::terminal::Terminal;

/// How fast a person types.
const KEYS_PER_SECOND: f64 = 3.0;

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    // As root, Postgres runs as another user, who must be able to pass through.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).unwrap();
    home
}

/// Plays the first hour; returns how long the machine took, and how long the person.
fn play(home: &Path, columns: u16) -> (Duration, Duration) {
    let began = Instant::now();
    let mut terminal = Terminal::open(home, columns);
    let demo = Instant::now();
    let shown = terminal.run("planctl demo");
    assert!(shown.contains("no step passed because somebody said so"), "{shown}");
    let demo = demo.elapsed();

    terminal.run("mkdir greet && cd greet && git init --quiet");
    let shown = terminal.run("planctl new plans/greet.md --title 'Say hello'");
    assert!(shown.contains("wrote plans/greet.md"), "{shown}");
    let shown = terminal.run("planctl verify plans/greet.md");
    assert!(shown.contains("verified"), "{shown}");

    terminal.begin(
        "planctl run plans/greet.md --exec 'grep -q properly && echo Hello > hello.txt || echo Bye > hello.txt'",
    );
    terminal.see("run this?");
    terminal.enter("y");
    // Its attempts are used up, and the run asks where the person is.
    let shown = terminal.see("your answer?");
    assert!(shown.contains("contract exit 1"), "{shown}");
    terminal.enter("r");
    terminal.see("a note for the worker?");
    terminal.enter("do it properly");
    let shown = terminal.end();
    assert!(shown.contains("greet-1") && shown.contains("done"), "{shown}");
    let rows = shown.lines().filter(|row| row.contains("Write the greeting")).count();
    assert!(rows <= 2, "the live view leaves one picture before the ask and one after it: {shown}");
    let shown = terminal.run("planctl why");
    assert!(shown.contains("do it properly") || shown.contains("retry"), "{shown}");
    assert!(demo < Duration::from_secs(10) || is_busy(), "the demo took {demo:?}");
    let typing = Duration::from_secs_f64(terminal.keys() as f64 / KEYS_PER_SECOND);
    (began.elapsed(), typing)
}

/// Says whether others use this machine, so that times say nothing.
fn is_busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).is_none_or(|load| load > 1.0)
}

#[test]
fn the_first_hour_takes_less_than_five_minutes_at_80_columns() {
    let home = home();
    let (machine, person) = play(home.path(), 80);
    assert!(person < Duration::from_secs(300), "typing takes {person:?}, and the machine {machine:?}");
}

#[test]
fn the_first_hour_takes_less_than_five_minutes_at_100_columns() {
    let home = home();
    let (machine, person) = play(home.path(), 100);
    assert!(person < Duration::from_secs(300), "typing takes {person:?}, and the machine {machine:?}");
}
