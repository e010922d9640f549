//! Approval policies: plans that run without a person's word because a trusted file says which, and within what bounds (P-78).

use serde_json::json;

use crate::room::{Room, Said, git, plan};

const CODER: &str = "[roles.coder]\nagent = \"exec:touch one two\"\n";

fn chores(bounds: &str) -> String {
    format!(
        "{CODER}[approval.chores]\nplans = [\"chores/*.md\"]\nbudget = \"100k tokens, 10 minutes\"\n{bounds}"
    )
}

fn text(budget: &str) -> String {
    plan("Chores", budget, &[("One", "test -e one", "escalate")])
}

/// A room with a trusted file and one plan that its policy is for.
fn room(bounds: &str, budget: &str) -> Room {
    let room = Room::new();
    room.write("chores/a.md", &text(budget));
    trusted(&room, &chores(bounds));
    room
}

fn trusted(room: &Room, configuration: &str) {
    room.write("planctl.toml", configuration);
    assert_eq!(room.planctl(&["trust", "."]).code, 0);
}

fn run(room: &Room, words: &[&str]) -> Said {
    room.planctl(&[&["plan", "run", "chores/a.md", "--no-wait"], words].concat())
}

/// Says that a person is asked, and why no policy approved it.
fn asks_a_person(said: &Said, why: &str) {
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("waits for approval"), "{said:?}");
    assert!(said.err.contains(why), "{why}: {said:?}");
}

#[test]
fn p_78_p_19_a_policy_of_a_trusted_file_approves_what_it_allows_and_every_screen_names_it() {
    let room =
        room("steps = 1\nroles = [\"coder\"]\ncontracts = [\"test -e one\"]\n", "50k tokens, 5 minutes");
    let said = room.planctl(&["plan", "show", "chores/a.md"]);
    assert!(said.out.contains("the policy chores allows it"), "{said:?}");

    let said = run(&room, &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("approved by the policy chores"), "{said:?}");
    let status = room.status();
    assert_eq!((&status["state"], &status["approved_by"]), (&json!("done"), &json!("policy:chores")));
    let said = room.planctl(&["plan", "status", "@last"]);
    assert!(said.out.contains("approved by the policy chores"), "{said:?}");
    let said = room.planctl(&["events", "--run", "@last"]);
    assert!(said.out.contains("\"by\":\"policy:chores\""), "{said:?}");
    let said = room.planctl(&["approvals", "show", "1"]);
    assert!(said.out.contains("policy:chores"), "{said:?}");

    let stored = room.sql(
        "select by || '|' || note || '|' || (config -> 'approval' -> 'chores' ->> 'plans') from approvals",
    );
    assert!(stored.starts_with("policy:chores|handed in by ann"), "{stored}");
    assert!(stored.contains("100k tokens, 10 min") && stored.ends_with("|[\"chores/*.md\"]"), "{stored}");

    let said = room.planctl(&["audit"]);
    assert!(said.code == 0 && said.out.contains("approved by the policy chores"), "{said:?}");
    let audit = room.json(&["audit", "--json"]);
    assert_eq!(audit["runs"][0]["approved_by"], "policy:chores", "{audit}");
}

#[test]
fn p_78_the_audit_finds_an_approval_that_its_policy_does_not_allow() {
    let room = room("", "50k tokens, 5 minutes");
    assert_eq!(run(&room, &[]).code, 0);
    room.sql(
        "update approvals set config = jsonb_set(config::jsonb, '{approval,chores,budget,tokens}', '9')::json",
    );
    let said = room.planctl(&["audit"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("I18") && said.out.contains("50k tokens"), "{said:?}");
}

#[test]
fn p_78_beyond_each_bound_a_person_is_asked_and_told_which_bound_it_was() {
    for (bounds, budget, why) in [
        (
            "",
            "200k tokens, 5 minutes",
            "the policy chores does not approve it: its budget is 200k tokens, and 100k tokens is the most",
        ),
        ("", "50k tokens", "the plan does not limit time"),
        ("steps = 1\nroles = [\"writer\"]\n", "50k tokens, 5 minutes", "the role coder works on it"),
        ("contracts = [\"cargo test\"]\n", "50k tokens, 5 minutes", "`test -e one` is none of its contracts"),
    ] {
        let room = room(bounds, budget);
        asks_a_person(&run(&room, &[]), why);
        assert!(!room.path("one").exists());
        // Nothing else gives the policy's word in its place.
        asks_a_person(&run(&room, &["--yes"]), why);
        assert_eq!(room.sql("select count(*) from approvals"), "0");
    }
    let room = Room::new();
    trusted(&room, &chores("steps = 1\n"));
    let two = [("One", "test -e one", "escalate"), ("Two", "test -e two", "escalate")];
    room.write("chores/a.md", &plan("Chores", "50k tokens, 5 minutes", &two));
    asks_a_person(&run(&room, &[]), "it has 2 steps, and 1 is allowed");
    room.write("a.md", &text("50k tokens, 5 minutes"));
    let said = room.planctl(&["plan", "run", "a.md", "--no-wait"]);
    asks_a_person(&said, "it is for chores/*.md");
}

#[test]
fn p_78_a_policy_that_nobody_trusts_counts_for_nothing() {
    let room = Room::new();
    room.write("chores/a.md", &text("50k tokens, 5 minutes"));
    room.write("planctl.toml", &chores(""));
    let said = run(&room, &["--exec", "touch one"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("approval.chores") && !room.path("one").exists(), "{said:?}");
}

#[test]
fn p_78_a_policy_approves_nothing_that_a_person_has_to_look_at() {
    let room = room("", "50k tokens, 5 minutes");
    // A worker that no file names is the word of whoever typed it.
    let why = "a worker was named with the run";
    asks_a_person(&run(&room, &["--exec", "touch one"]), why);
    asks_a_person(&run(&room, &[]), why);
    // What a person rejected stays so until its text is another one.
    assert_eq!(room.planctl(&["plan", "reject", "chores/a.md", "--note", "no"]).code, 0);
    asks_a_person(&run(&room, &[]), "ann made this text a draft again");
    assert_eq!(room.planctl(&["approvals", "reject", &room.ask(), "--note", "again"]).code, 0);
    asks_a_person(&run(&room, &[]), "ann made this text a draft again");
    assert_eq!(room.sql("select count(*) from approvals"), "0");

    room.write("chores/a.md", &text("60k tokens, 5 minutes"));
    assert_eq!(run(&room, &[]).code, 0);
    // A text that is another one than what was approved is a person's to read.
    room.write("chores/a.md", &text("61k tokens, 5 minutes"));
    let said = run(&room, &["--again"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("it changed after its approval"), "{said:?}");
    assert_eq!(room.planctl(&["plan", "approve", "chores/a.md"]).code, 0);
    assert_eq!(run(&room, &["--again"]).code, 0);
    assert_eq!(room.status()["approved_by"], "ann");
}

#[test]
fn p_78_warnings_are_a_person_s_to_read() {
    let room = Room::new();
    trusted(&room, &chores(""));
    let warned = plan("Chores", "50k tokens, 5 minutes", &[("One", "test -e one; ls", "escalate")]);
    room.write("chores/a.md", &warned);
    let verified = room.planctl(&["plan", "verify", "chores/a.md"]);
    assert!(verified.out.contains("warning"), "{verified:?}");
    asks_a_person(&run(&room, &[]), "warning");
}

#[test]
fn p_78_protected_files_that_moved_are_a_person_s_to_look_at() {
    let room = Room::new();
    let judged = plan("Chores", "50k tokens, 5 minutes", &[("One", "bash check.sh", "escalate")]);
    room.write("chores/a.md", &judged).write("check.sh", "test -e one\n");
    trusted(&room, &chores(""));
    assert_eq!(run(&room, &[]).code, 0);
    // Another configuration, so that the approval that was given serves no more.
    trusted(&room, &chores("steps = 3\n"));
    room.write("check.sh", "true\n");
    asks_a_person(&run(&room, &["--again"]), "protected files differ from what was approved last: check.sh");

    let room = Room::new();
    room.write("chores/a.md", &judged).write("check.sh", "test -e one\n");
    trusted(&room, &chores(""));
    git(&room.path(""), &["init"]);
    git(&room.path(""), &["add", "."]);
    git(&room.path(""), &["commit", "-m", "all"]);
    room.write("check.sh", "true\n");
    asks_a_person(&run(&room, &[]), "protected files are not as they were committed: check.sh");
}

#[test]
fn p_78_an_approval_by_a_policy_is_of_no_worker_that_is_named_later() {
    let room = room("", "50k tokens, 5 minutes");
    assert_eq!(run(&room, &[]).code, 0);
    let said = run(&room, &["--again", "--exec", "touch three"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("it was approved by the policy chores"), "{said:?}");
    let said = run(&room, &["--again", "--approve", "--exec", "touch one three"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(room.path("three").exists());
    assert_eq!(room.status()["approved_by"], "ann", "a person's word is no repetition of the policy's");
}

#[test]
fn p_78_nobody_goes_by_the_name_of_a_policy() {
    let room = room("", "200k tokens, 5 minutes");
    for words in [
        &["--as", "policy:chores", "plan", "run", "chores/a.md", "--approve", "--no-wait"][..],
        &["--as", " policy:chores", "plan", "approve", "chores/a.md"],
        &["token", "create", "approve", "--name", "policy:chores"],
    ] {
        let said = room.planctl(words);
        assert_ne!(said.code, 0, "{said:?}");
        assert!(said.err.contains("policy:"), "{said:?}");
    }
    assert_eq!(room.sql("select count(*) from approvals"), "0");
}

#[test]
fn p_78_a_plan_that_carries_out_others_is_a_person_s_to_approve() {
    let room = Room::new();
    trusted(&room, &chores(""));
    room.write("inner.md", &text("50k tokens, 5 minutes"));
    room.write(
        "chores/a.dot",
        "digraph A { graph [budget=\"50k tokens, 5 minutes\"]; start [shape=Mdiamond]; done [shape=Msquare]; \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit]; start -> inner -> done }",
    );
    trusted(&room, &chores("").replace("chores/*.md", "chores/*"));
    let said = room.planctl(&["plan", "run", "chores/a.dot", "--no-wait"]);
    asks_a_person(&said, "it carries out other plans");
}
