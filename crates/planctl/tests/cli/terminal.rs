//! Questions and output for a person at a terminal; `script` lends the terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::editing::at_work;
use crate::fixture::{Fixture, Said, plan};

/// Runs a command line at a terminal and types these lines.
fn at_a_terminal(fixture: &Fixture, line: &str, typed: &str) -> Said {
    lent(fixture, &format!("{} {line}", env!("CARGO_BIN_EXE_planctl")), typed)
}

fn lent(fixture: &Fixture, line: &str, typed: &str) -> Said {
    let planctl = fixture.command(&[]);
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command"]);
    command.arg(line).arg("/dev/null");
    command.current_dir(fixture.path("")).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    command.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    Said::from(child.wait_with_output().unwrap())
}

fn one_step() -> String {
    plan("One step", "5 minutes", &[("One", "test -e done-1", "escalate")])
}

#[test]
fn a_draft_is_shown_and_runs_when_the_person_says_so() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let said = at_a_terminal(&fixture, "plan run p.md --exec 'touch done-1'", "s\nx\na\n");
    assert_eq!(said.code, 0, "{said:?}");
    let asked = said.out.matches("run this?").count();
    assert_eq!(asked, 3, "shown, not understood, approved: {said:?}");
    for words in ["test -e done-1", "touch done-1", "type: plan", "Please type a, s or n.", "One", "done"] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    assert_eq!(fixture.status()["state"], "done");
}

#[test]
fn a_person_who_says_no_starts_nothing() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    for typed in ["n\n", ""] {
        let said = at_a_terminal(&fixture, "plan run p.md --exec 'touch done-1'", typed);
        assert_eq!(said.code, 7, "the end of the input is a no, too: {said:?}");
    }
    assert!(!fixture.path("done-1").exists());
    assert_eq!(fixture.json(&["ls", "--json"])["runs"].as_array().unwrap().len(), 0);
    assert_eq!(fixture.planctl(&["approvals"]).out, "nothing waits for you, in any folder\n");
}

#[test]
fn a_changed_plan_shows_what_changed_before_it_is_approved_again() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    fixture.write("p.md", &one_step().replace("test -e done-1", "test -s done-1"));
    let said = at_a_terminal(&fixture, "plan run p.md --exec 'echo 1 > done-1'", "d\na\n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("-test -e done-1") && said.out.contains("+test -s done-1"), "{said:?}");
}

#[test]
fn a_run_that_is_worked_on_is_paused_for_an_edit_when_the_person_says_so() {
    let fixture = Fixture::new();
    let going = at_work(&fixture);
    let edit = |typed: &str| {
        let planctl = env!("CARGO_BIN_EXE_planctl");
        lent(&fixture, &format!("env EDITOR='sed -i s/wrong-1/done-1/' {planctl} plan edit p-1"), typed)
    };
    let no = edit("n\n");
    assert!(no.code == 7 && no.out.contains("Pause p-1 and edit its plan?"), "{no:?}");
    assert_eq!(fixture.status()["state"], "running");
    fixture.write("go", "");
    let yes = edit("y\ny\n");
    assert!(yes.code == 0 && yes.out.contains("Approve this, and go on with p-1?"), "{yes:?}");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn nothing_is_asked_inside_a_worker_or_where_input_is_forbidden() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let said = at_a_terminal(&fixture, "--no-input plan run p.md --exec 'touch done-1'", "a\n");
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!said.out.contains("run this?") && !fixture.path("done-1").exists(), "{said:?}");
}

#[test]
fn a_terminal_sees_the_steps_drawn_in_place() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let said = at_a_terminal(&fixture, "plan run p.md --approve --exec 'touch done-1'", "");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains('✔') && said.out.contains("\u{1b}[") && !said.out.contains("contract=passed"),
        "{said:?}"
    );
}

#[test]
fn a_terminal_without_cursor_movements_gets_a_line_for_each_event() {
    let fixture = Fixture::new();
    fixture.write("p.md", &one_step());
    let line =
        format!("TERM=dumb {} run p.md --approve --exec 'touch done-1'", env!("CARGO_BIN_EXE_planctl"));
    let said = lent(&fixture, &line, "");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("contract=passed") && !said.out.contains('\u{1b}'), "{said:?}");
}

#[test]
fn findings_fit_the_terminal() {
    let fixture = Fixture::new();
    let long = format!("true || test -e {}", "x".repeat(200));
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", &long, "escalate")]));
    let verify = format!("stty cols 60; {} --color never plan verify p.md", env!("CARGO_BIN_EXE_planctl"));
    let said = lent(&fixture, &verify, "");
    let is_of_plan = |line: &&str| line.trim_start().starts_with(|first: char| first.is_ascii_digit());
    let drawn: Vec<&str> = said.out.lines().map(str::trim_end).filter(is_of_plan).collect();
    assert!(drawn.iter().any(|line| line.contains("true || ")), "{said:?}");
    for line in drawn {
        assert!(line.chars().count() <= 60, "{line}");
    }
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(said.out.lines().any(|line| line.chars().count() > 60), "{said:?}");
}

#[test]
fn who_starts_a_server_for_agents_or_editors_by_hand_reads_what_talks_to_it() {
    let fixture = Fixture::new();
    let said = at_a_terminal(&fixture, "mcp", "\u{4}");
    assert!(
        said.out.contains("an agent starts this") && said.out.contains("planctl mcp install"),
        "{said:?}"
    );
    let said = at_a_terminal(&fixture, "lsp", "\u{4}");
    assert!(said.out.contains("your editor starts this") && said.out.contains("docs/editors.md"), "{said:?}");
}
