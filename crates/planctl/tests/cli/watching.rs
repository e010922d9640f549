//! `plan verify --watch`: a real process, real files, and an editor that saves by renaming.

use rustix::process::Signal;

use crate::fixture::{Fixture, plan};

fn good() -> String {
    plan("One", "5 minutes", &[("First", "test -s one.txt", "abort")])
}

#[test]
fn a_change_is_verified_however_it_was_saved_and_ctrl_c_ends_it() {
    let fixture = Fixture::new();
    fixture.write("plans/p.md", &good());
    let mut going = fixture.start(&["plan", "verify", "plans/p.md", "--watch", "--format", "plain"]);
    going.hear("watching 1 plan");
    // Written in place.
    fixture.write("plans/p.md", &good().replace("exit_code == 0", "exit_code == zero"));
    going.hear("p.md changed").hear("watching 1 plan");
    // Saved under another name and renamed over it.
    fixture.write("plans/.p.md.new", &good());
    std::fs::rename(fixture.path("plans/.p.md.new"), fixture.path("plans/p.md")).unwrap();
    going.hear("p.md changed").hear("watching 1 plan");
    // Deleted and made anew, folder and all.
    std::fs::remove_dir_all(fixture.path("plans")).unwrap();
    going.hear("watching 1 plan");
    fixture.write("plans/p.md", &good().replace("**on_fail:** abort", "**on_fail:** ignore"));
    going.hear("changed").hear("watching 1 plan");
    going.signal(Signal::INT);
    let said = going.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert!(!said.out.contains('\u{1b}'), "a pipe is not cleared");
    let rounds: Vec<&str> = said.out.lines().filter(|line| line.starts_with("plans/p.md:")).collect();
    let verdicts =
        ["verified, 1 warning", "not verified, 1 error, 1 warning", "verified, 1 warning", "error[P003]"];
    let mut rest = rounds.iter();
    for verdict in verdicts {
        assert!(rest.any(|line| line.contains(verdict)), "{verdict} in order in {rounds:#?}");
    }
}

#[test]
fn what_the_plan_reads_and_the_configuration_are_watched_too() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good().replace("**task:**", "**subscriptions:**\n- file:docs/in.md\n\n**task:**"));
    let mut going = fixture.start(&["plan", "verify", "p.md", "--watch", "--format", "jsonl"]);
    going.hear("watching 1 plan");
    std::fs::create_dir(fixture.path("docs")).unwrap();
    fixture.write("docs/in.md", "x\n");
    going.hear("changed").hear("watching 1 plan");
    fixture.write("planctl.toml", "[verify]\ndeny = [\"P999\"]\n");
    going.hear("planctl.toml").hear("is neither a code nor").hear("watching 1 plan");
    fixture.write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n");
    going.hear("planctl.toml changed").hear("watching 1 plan");
    going.signal(Signal::TERM);
    let said = going.end();
    assert_eq!(said.code, 143, "{said:?}");
    crate::fixture::schema::check(&["plan", "verify", "--json"], &said.out);
    let lines: Vec<serde_json::Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["verified"], false, "the file is not there yet");
    assert_eq!(lines.last().unwrap()["verified"], true);
    assert_eq!(lines.last().unwrap()["diagnostics"].as_array().unwrap().len(), 0, "{lines:#?}");
}

#[test]
fn answers_that_cannot_follow_one_another_are_refused() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["plan", "verify", "p.md", "--watch", "--format", "sarif"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("human, plain, jsonl"), "{said:?}");
}
