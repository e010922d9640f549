//! The live view of a run, at a terminal that people use meanwhile.

use crate::console::{Console, screen};
use crate::fixture::{Fixture, plan};
use crate::http::house::House;

const RUN: &str = "planctl run p.md --approve --exec 'while [ ! -e go ]; do sleep 0.02; done; touch done-1'";

fn one_step(fixture: &Fixture) {
    let title = "Write the greeting, in words that are known to be well understood";
    fixture.write("p.md", &plan("One step", "5 minutes", &[(title, "test -e done-1", "escalate")]));
}

fn rows_with<'r>(rows: &'r [String], words: &str) -> Vec<&'r String> {
    rows.iter().filter(|row| row.contains(words)).collect()
}

#[test]
fn enter_leaves_no_row_behind_and_what_is_typed_stays_for_the_shell() {
    for columns in [100, 70] {
        let fixture = Fixture::new();
        one_step(&fixture);
        let line = format!("{RUN}; read first; read second; echo \"[$first,$second]\"; stty -a");
        let mut console = Console::new(&fixture, columns, &line);
        console.hear("working").keys("\nkept\n").hear("working").hear("working");
        fixture.write("go", "");
        let (_, printed) = console.end();
        let rows = screen(columns.into(), &printed);
        assert_eq!(rows_with(&rows, "Write the gr").len(), 1, "{rows:#?}");
        assert_eq!(rows_with(&rows, "working").len(), 0, "{rows:#?}");
        assert!(rows.iter().all(|row| row != "kept"), "nothing is echoed: {rows:#?}");
        assert_eq!(rows_with(&rows, "[,kept]").len(), 1, "{rows:#?}");
        assert_eq!(rows_with(&rows, " echo ").len(), 1, "the echo is back: {rows:#?}");
    }
}

#[test]
fn a_terminal_that_becomes_narrower_or_wider_keeps_one_picture() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let mut console = Console::new(&fixture, 100, RUN);
    console.hear("working").resize(30);
    // The second picture after that is drawn in place of one of the same width.
    for _ in 0..3 {
        console.hear("\u{1b}[J");
    }
    let before = console.heard.len();
    console.hear("\u{1b}[J").hear("\u{1b}[J");
    fixture.write("go", "");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    let rows = screen(1_000, &printed[before..]);
    let end = rows.iter().position(|row| row.starts_with("✓ p-1 done")).unwrap();
    assert!(end > 0, "{rows:#?}");
    for row in &rows[..end] {
        assert!(row.chars().count() <= 30, "cut, not wrapped: {row:?}");
    }
}

#[test]
fn ctrl_c_and_ctrl_z_leave_the_picture_and_a_terminal_that_echoes() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let mut console = Console::new(&fixture, 100, &format!("trap : INT; {RUN}; echo code=$?; stty -a"));
    console.hear("working").keys("\u{3}").hear("code=130");
    let (_, printed) = console.end();
    let rows = screen(100, &printed);
    assert_eq!(rows_with(&rows, "Write the gr").len(), 1, "{rows:#?}");
    assert_eq!(rows_with(&rows, " echo ").len(), 1, "{rows:#?}");

    let line = "set -m; planctl resume @last; stty -a; fg; stty -a";
    let mut console = Console::new(&fixture, 100, line);
    console.hear("working").keys("\u{1a}").hear(" echo ").hear("working");
    fixture.write("go", "");
    let (_, printed) = console.end();
    assert_eq!(printed.matches(" echo ").count(), 2, "{printed}");
    assert_eq!(fixture.status()["state"], "done");
}

#[test]
fn a_daemon_that_dies_leaves_the_last_picture_and_the_way_on() {
    let house = House::new();
    let fixture = &house.fixture;
    one_step(fixture);
    let mut console = Console::new(fixture, 100, RUN);
    console.hear("working");
    house.kill();
    let (code, printed) = console.end();
    assert_eq!(code, 69, "{printed}");
    let rows = screen(100, &printed);
    assert_eq!(rows_with(&rows, "Write the gr").len(), 1, "{rows:#?}");
    assert_eq!(rows_with(&rows, "is gone; p-1 is stored").len(), 1, "{rows:#?}");
    assert_eq!(rows_with(&rows, "planctl resume p-1").len(), 1, "{rows:#?}");
    fixture.write("go", "");
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}
