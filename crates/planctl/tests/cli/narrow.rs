//! Screens at terminals of several widths: no word is broken at the edge, and what matters is there.

use crate::console::{Console, screen};
use crate::fixture::{Fixture, plan};

/// Says whether a line may be wider than the terminal: what is quoted, and what is to be copied whole.
fn may_be_wider(line: &str) -> bool {
    let text = line.trim_start();
    let is_quoted = line.starts_with("    ") || line.contains('│') || line.contains(" | ");
    is_quoted || text.starts_with("planctl ") || !text.contains(' ')
}

#[test]
fn no_screen_breaks_a_word_at_the_edge_of_a_terminal_of_40_80_or_100_columns() {
    let fixture = Fixture::new();
    fixture
        .write("p.md", &plan("Greets", "5 minutes", &[("Write the greeting", "test -e done-1", "escalate")]));
    fixture
        .write("typo.md", &plan("Greets", "5 minutes", &[("Write the greeting", "tset -e done-1", "shrug")]));
    let said = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let mut wrong = Vec::new();
    for columns in [40_u16, 80, 100] {
        let commands = [
            "help",
            "plan -h",
            "run -h",
            "approvals -h",
            "verify p.md",
            "verify typo.md",
            "show p.md",
            "show",
            "approvals",
            "approvals show",
            "status",
            "status @last",
            "ls",
            "why",
            "logs",
            "events",
            "doctor",
            "resume nothing-1",
            "new --list",
            "library ls",
        ];
        for command in commands {
            let (_, printed) = Console::new(&fixture, columns, &format!("planctl {command}")).end();
            let printed = planctl_view::strip_terminal_sequences(&printed).replace('\r', "");
            let is_too_wide =
                |line: &&str| line.chars().count() > usize::from(columns) && !may_be_wider(line);
            let too_wide = printed.lines().skip(1).filter(is_too_wide);
            wrong.extend(too_wide.map(|line| format!("planctl {command} at {columns} columns: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_live_view_of_a_narrow_terminal_has_the_state_of_each_step_and_the_command_to_type() {
    let fixture = Fixture::new();
    fixture
        .write("p.md", &plan("Greets", "5 minutes", &[("Write the greeting", "test -e done-1", "escalate")]));
    let mut console = Console::new(&fixture, 40, "planctl run p.md --approve --exec true");
    console.hear("your answer?").keys("\n").hear("left open").hear("planctl approvals show").keys("\u{3}");
    let (_, printed) = console.end();
    let rows = screen(40, &printed);
    let last = rows.iter().rposition(|row| row.contains('✋')).unwrap_or_else(|| panic!("{rows:#?}"));
    assert!(rows[last].contains("waiting for you"), "{rows:#?}");
    assert!(
        printed.contains("waiting for you:\u{1b}") || printed.contains("planctl approvals show "),
        "{rows:#?}"
    );
}
