//! `plan fmt`: the files it writes, those it names, and that the plans of this repository need nothing.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::fixture::{Fixture, Said, plan};

fn formatted() -> String {
    plan("One step", "10k tokens, $0.10, 5 minutes", &[("First", "test -s one.txt", "abort")])
        .replace("```bash", "```shell")
}

fn drifted() -> String {
    formatted().replace("### 1. First", "## Step 1: First").replace("**target:**", "**Target**:")
}

#[test]
fn plans_are_formatted_and_then_need_nothing_more() {
    let fixture = Fixture::new();
    fixture.write("a.md", &drifted()).write("b.md", &formatted());
    let said = fixture.planctl(&["plan", "fmt", "a.md", "b.md"]);
    assert_eq!((said.code, said.out.as_str()), (0, "a.md\n"), "{said:?}");
    assert!(said.err.contains("1 of 2 plans formatted"), "{said:?}");
    assert_eq!((fixture.read("a.md"), fixture.read("b.md")), (formatted(), formatted()));
    let again = fixture.planctl(&["plan", "fmt", "a.md", "b.md"]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");
    assert!(again.err.contains("2 plans in planctl's form already"), "{again:?}");
}

#[test]
fn a_check_names_what_differs_and_writes_nothing() {
    let fixture = Fixture::new();
    fixture.write("a.md", &drifted()).write("b.md", &formatted());
    let said = fixture.planctl(&["plan", "fmt", "--check", "a.md", "b.md"]);
    assert_eq!((said.code, said.out.as_str()), (1, "a.md\n"), "{said:?}");
    let said = fixture.planctl(&["plan", "fmt", "--check", "-v", "a.md"]);
    assert!(said.out.contains("-## Step 1: First\n+### 1. First\n"), "{said:?}");
    let view = fixture.json(&["plan", "fmt", "--check", "--json", "b.md"]);
    assert_eq!((&view["check"], &view["files"][0]["changed"]), (&true.into(), &false.into()));
    assert_eq!(fixture.read("a.md"), drifted());
    assert_eq!(fixture.planctl(&["plan", "fmt", "--check", "b.md"]).code, 0);
    let said = fixture.planctl(&["plan", "fmt", "--check", "missing.md", "b.md"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("missing.md"), "{said:?}");
}

#[test]
fn standard_input_is_written_to_standard_output() {
    let fixture = Fixture::new();
    let mut command = fixture.command(&["plan", "fmt", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(drifted().as_bytes()).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.out), (0, formatted()));
}

#[test]
fn an_approved_plan_is_told_that_its_approval_is_gone() {
    let fixture = Fixture::new();
    fixture.write("a.md", &drifted().replace("status: draft", "status: approved"));
    let said = fixture.planctl(&["plan", "fmt", "a.md"]);
    assert!(said.err.contains("an approval of the earlier one no longer holds"), "{said:?}");
}

#[test]
fn the_plans_of_this_repository_are_formatted() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let plans = ["examples/hello", "examples/bugfix", "examples/refactor", "examples/escalation"];
    let mut files: Vec<_> = plans.iter().map(|folder| top.join(folder).join("plan.md")).collect();
    files.push(top.join("plans/hello.md"));
    let fixture = Fixture::new();
    let mut words = vec!["plan", "fmt", "--check", "-v"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    let said = fixture.planctl(&words);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    for template in ["hello", "bugfix", "refactor", "review"] {
        let file = format!("{template}.md");
        assert_eq!(fixture.planctl(&["plan", "new", &file, "--from", template]).code, 0);
        let said = fixture.planctl(&["plan", "fmt", "--check", &file]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    }
}
