//! Approval policies: plans that run without a person's word because a trusted file says which, and within what bounds (P-78).

use serde_json::json;

use crate::fixture::{Fixture, Said, git, plan};

const CODER: &str = "[roles.coder]\nagent = \"exec:touch one two\"\n";

fn chores(bounds: &str) -> String {
    format!(
        "{CODER}[approval.chores]\nplans = [\"chores/*.md\"]\nbudget = \"100k tokens, 10 minutes\"\n{bounds}"
    )
}

fn text(budget: &str) -> String {
    plan("Chores", budget, &[("One", "test -e one", "escalate")])
}

/// A fixture with a trusted file and one plan that its policy is for.
fn fixture(bounds: &str, budget: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("chores/a.md", &text(budget));
    trusted(&fixture, &chores(bounds));
    fixture
}

fn trusted(fixture: &Fixture, configuration: &str) {
    fixture.write("planctl.toml", configuration);
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
}

fn run(fixture: &Fixture, words: &[&str]) -> Said {
    fixture.planctl(&[&["plan", "run", "chores/a.md", "--no-wait"], words].concat())
}

/// Says that a person is asked, and why no policy approved it.
fn asks_a_person(said: &Said, why: &str) {
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("waits for approval"), "{said:?}");
    assert!(said.err.contains(why), "{why}: {said:?}");
}

#[test]
fn p_78_p_19_a_policy_of_a_trusted_file_approves_what_it_allows_and_every_screen_names_it() {
    let fixture =
        fixture("steps = 1\nroles = [\"coder\"]\ncontracts = [\"test -e one\"]\n", "50k tokens, 5 minutes");
    let said = fixture.planctl(&["plan", "show", "chores/a.md"]);
    assert!(said.out.contains("the policy chores allows it"), "{said:?}");

    let said = run(&fixture, &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("approved by the policy chores"), "{said:?}");
    let status = fixture.status();
    assert_eq!((&status["state"], &status["approved_by"]), (&json!("done"), &json!("policy:chores")));
    let said = fixture.planctl(&["plan", "status", "@last"]);
    assert!(said.out.contains("approved by the policy chores"), "{said:?}");
    let said = fixture.planctl(&["events", "--run", "@last"]);
    assert!(said.out.contains("policy:chores approved the plan"), "{said:?}");
    let said = fixture.planctl(&["approvals", "show", "1"]);
    assert!(said.out.contains("policy:chores"), "{said:?}");

    let stored = fixture.sql(
        "select by || '|' || note || '|' || (config -> 'approval' -> 'chores' ->> 'plans') from approvals",
    );
    assert!(stored.starts_with("policy:chores|handed in by ann"), "{stored}");
    assert!(stored.contains("100k tokens, 10 min") && stored.ends_with("|[\"chores/*.md\"]"), "{stored}");

    let said = fixture.planctl(&["audit"]);
    assert!(said.code == 0 && said.out.contains("approved by the policy chores"), "{said:?}");
    let audit = fixture.json(&["audit", "--json"]);
    assert_eq!(audit["runs"][0]["approved_by"], "policy:chores", "{audit}");
}

#[test]
fn p_78_the_audit_finds_an_approval_that_its_policy_does_not_allow() {
    let fixture = fixture("", "50k tokens, 5 minutes");
    assert_eq!(run(&fixture, &[]).code, 0);
    fixture.sql(
        "update approvals set config = jsonb_set(config::jsonb, '{approval,chores,budget,tokens}', '9')::json",
    );
    let said = fixture.planctl(&["audit"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("I18") && said.out.contains("50k tokens"), "{said:?}");
}

#[test]
fn p_78_beyond_each_bound_a_person_is_asked_and_told_which_bound_it_was() {
    for (bounds, budget, why) in [
        (
            "",
            "200k tokens, 5 minutes",
            "the policy chores does not approve it: its budget is 200k tokens, and the policy allows 100k tokens",
        ),
        ("", "50k tokens", "the plan does not limit time"),
        ("steps = 1\nroles = [\"writer\"]\n", "50k tokens, 5 minutes", "the role coder works on it"),
        (
            "contracts = [\"cargo test\"]\n",
            "50k tokens, 5 minutes",
            "`test -e one` is not one of its contracts",
        ),
    ] {
        let fixture = fixture(bounds, budget);
        asks_a_person(&run(&fixture, &[]), why);
        assert!(!fixture.path("one").exists());
        // Nothing else gives the policy's word in its place.
        asks_a_person(&run(&fixture, &["--yes"]), why);
        assert_eq!(fixture.sql("select count(*) from approvals"), "0");
    }
    let fixture = Fixture::new();
    trusted(&fixture, &chores("steps = 1\n"));
    let two = [("One", "test -e one", "escalate"), ("Two", "test -e two", "escalate")];
    fixture.write("chores/a.md", &plan("Chores", "50k tokens, 5 minutes", &two));
    asks_a_person(&run(&fixture, &[]), "it has 2 steps, and 1 is allowed");
    fixture.write("a.md", &text("50k tokens, 5 minutes"));
    let said = fixture.planctl(&["plan", "run", "a.md", "--no-wait"]);
    asks_a_person(&said, "it is for chores/*.md");
}

#[test]
fn p_78_a_policy_that_nobody_trusts_counts_for_nothing() {
    let fixture = Fixture::new();
    fixture.write("chores/a.md", &text("50k tokens, 5 minutes"));
    fixture.write("planctl.toml", &chores(""));
    let said = run(&fixture, &["--exec", "touch one"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("approval.chores") && !fixture.path("one").exists(), "{said:?}");
}

#[test]
fn p_78_a_policy_approves_nothing_that_a_person_has_to_look_at() {
    let fixture = fixture("", "50k tokens, 5 minutes");
    // A worker that no file names is the word of whoever typed it.
    let why = "a worker was named with the run";
    asks_a_person(&run(&fixture, &["--exec", "touch one"]), why);
    asks_a_person(&run(&fixture, &[]), why);
    // A plan that a person rejected stays so until its text is another one.
    assert_eq!(fixture.planctl(&["plan", "reject", "chores/a.md", "--note", "no"]).code, 0);
    asks_a_person(&run(&fixture, &[]), "ann made this text a draft again");
    assert_eq!(fixture.planctl(&["approvals", "reject", &fixture.ask(), "--note", "again"]).code, 0);
    asks_a_person(&run(&fixture, &[]), "ann made this text a draft again");
    assert_eq!(fixture.sql("select count(*) from approvals"), "0");

    fixture.write("chores/a.md", &text("60k tokens, 5 minutes"));
    assert_eq!(run(&fixture, &[]).code, 0);
    // A text that is another one than what was approved is a person's to read.
    fixture.write("chores/a.md", &text("61k tokens, 5 minutes"));
    let said = run(&fixture, &["--again"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("it changed after its approval"), "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "approve", "chores/a.md"]).code, 0);
    assert_eq!(run(&fixture, &["--again"]).code, 0);
    assert_eq!(fixture.status()["approved_by"], "ann");
}

#[test]
fn p_78_warnings_are_a_person_s_to_read() {
    let fixture = Fixture::new();
    trusted(&fixture, &chores(""));
    let warned = plan("Chores", "50k tokens, 5 minutes", &[("One", "test -e one; ls", "escalate")]);
    fixture.write("chores/a.md", &warned);
    let verified = fixture.planctl(&["plan", "verify", "chores/a.md"]);
    assert!(verified.out.contains("warning"), "{verified:?}");
    asks_a_person(&run(&fixture, &[]), "warning");
}

#[test]
fn p_78_protected_files_that_moved_are_a_person_s_to_look_at() {
    let fixture = Fixture::new();
    let judged = plan("Chores", "50k tokens, 5 minutes", &[("One", "bash check.sh", "escalate")]);
    fixture.write("chores/a.md", &judged).write("check.sh", "test -e one\n");
    trusted(&fixture, &chores(""));
    assert_eq!(run(&fixture, &[]).code, 0);
    // Another configuration, so that the approval that was given serves no more.
    trusted(&fixture, &chores("steps = 3\n"));
    fixture.write("check.sh", "true\n");
    asks_a_person(
        &run(&fixture, &["--again"]),
        "protected files differ from what was approved last: check.sh",
    );

    let fixture = Fixture::new();
    fixture.write("chores/a.md", &judged).write("check.sh", "test -e one\n");
    trusted(&fixture, &chores(""));
    git(&fixture.path(""), &["init"]);
    git(&fixture.path(""), &["add", "."]);
    git(&fixture.path(""), &["commit", "-m", "all"]);
    fixture.write("check.sh", "true\n");
    asks_a_person(&run(&fixture, &[]), "protected files are not as they were committed: check.sh");
}

#[test]
fn p_78_an_approval_by_a_policy_is_of_no_worker_that_is_named_later() {
    let fixture = fixture("", "50k tokens, 5 minutes");
    assert_eq!(run(&fixture, &[]).code, 0);
    let said = run(&fixture, &["--again", "--exec", "touch three"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("it was approved by the policy chores"), "{said:?}");
    let said = run(&fixture, &["--again", "--approve", "--exec", "touch one three"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("three").exists());
    assert_eq!(fixture.status()["approved_by"], "ann", "a person's word is no repetition of the policy's");
}

#[test]
fn p_78_nobody_goes_by_the_name_of_a_policy() {
    let fixture = fixture("", "200k tokens, 5 minutes");
    for words in [
        &["--as", "policy:chores", "plan", "run", "chores/a.md", "--approve", "--no-wait"][..],
        &["--as", " policy:chores", "plan", "approve", "chores/a.md"],
        &["token", "create", "approve", "--name", "policy:chores"],
    ] {
        let said = fixture.planctl(words);
        assert_ne!(said.code, 0, "{said:?}");
        assert!(said.err.contains("policy:"), "{said:?}");
    }
    assert_eq!(fixture.sql("select count(*) from approvals"), "0");
}

#[test]
fn p_78_a_plan_that_carries_out_others_is_a_person_s_to_approve() {
    let fixture = Fixture::new();
    trusted(&fixture, &chores(""));
    fixture.write("inner.md", &text("50k tokens, 5 minutes"));
    fixture.write(
        "chores/a.dot",
        "digraph A { graph [budget=\"50k tokens, 5 minutes\"]; start [shape=Mdiamond]; done [shape=Msquare]; \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit]; start -> inner -> done }",
    );
    trusted(&fixture, &chores("").replace("chores/*.md", "chores/*"));
    let said = fixture.planctl(&["plan", "run", "chores/a.dot", "--no-wait"]);
    asks_a_person(&said, "it carries out other plans");
}
