//! The demo shows the whole main job, by itself.

use crate::console::Console;
use crate::fixture::Fixture;

#[test]
fn the_demo_shows_every_part_of_the_main_job() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["demo"]);
    assert_eq!(said.code, 0, "{said:?}");
    for in_vain in ["next: planctl run till.md", "watch till-1"] {
        assert!(!said.out.contains(in_vain), "till.md is gone when the demo is over: {said:?}");
    }
    let mut rest = said.out.as_str();
    for words in [
        "── verify ──",
        "verified · 4 steps",
        "── approve ──",
        "bash tests/till.sh",
        "── run ──",
        "step=2 attempt=1 work=reported exit=0 \"Refunds are taken off. All tests pass.\"",
        "step=2 attempt=1 contract=failed exit=1 \"FAIL: an empty receipt",
        "step=2 attempt=2 contract=passed exit=0",
        "ask=escalation",
        "── retry ──",
        "FAIL: an empty receipt: expected 0, found",
        "── escalation ──",
        "planctl approvals retry",
        "── go on ──",
        "step=4 attempt=1 work=reported exit=1",
        "step=4 attempt=1 contract=passed exit=0",
        "run=done",
        "── done ──",
        "sound: gap-free",
        "next:",
    ] {
        let at =
            rest.find(words).unwrap_or_else(|| panic!("{words:?} is not in the rest:\n{rest}\n{}", said.err));
        rest = &rest[at + words.len()..];
    }
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
    let logs = fixture.planctl(&["plan", "logs", "till-1", "--step", "2"]);
    assert_eq!(logs.code, 0, "what it says to type next works: {logs:?}");
    let (_, next) = said.out.rsplit_once("next:").unwrap();
    let commands = next.lines().filter_map(|line| line.trim().strip_prefix("planctl "));
    for command in commands.map(|line| line.split("  ").next().unwrap()) {
        let line = format!("planctl {command}").replace("--exec", "--approve --exec");
        let said = fixture.shell(&line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named() {
    let fixture = Fixture::new();
    let said = fixture.command(&["demo"]).env("TMPDIR", "/nowhere").output().unwrap();
    let said = crate::fixture::Said::from(said);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("make the demo's project in /nowhere: "), "{said:?}");
    assert!(said.err.contains("help: TMPDIR names another folder"), "{said:?}");
}

#[test]
fn the_demo_can_leave_its_project() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["demo", "--keep"]);
    let line = said.err.lines().find(|line| line.starts_with("the project is kept in ")).unwrap();
    let place = std::path::Path::new(line.trim_start_matches("the project is kept in "));
    assert!(place.join("till/repro.sh").exists(), "{said:?}");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn the_demo_waits_for_nobody_at_a_terminal_and_asks_whoever_wants_to_try() {
    let fixture = Fixture::new();
    let (code, printed) = Console::new(&fixture, 80, "planctl demo").end();
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed.matches("planctl demo --try asks you").count(), 2, "{printed}");

    let mut console = Console::new(&fixture, 80, "planctl demo --try");
    console.hear("run this?").keys("a\n").hear("your answer?").keys("r\n").hear("note [").keys("\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("recorded: retry") && printed.contains("── done ──"), "{printed}");
    assert!(!printed.contains("--try"), "the person answered: {printed}");

    let mut console = Console::new(&fixture, 80, "planctl demo --try");
    console.hear("run this?").keys("n\n");
    let (code, printed) = console.end();
    assert!(code == 7 && printed.contains("not approved; nothing ran"), "{printed}");
}
