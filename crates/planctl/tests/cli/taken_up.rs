//! Runs that can't be taken up: the refusal says what helps, and its next command does what it says.

use crate::fixture::{Fixture, plan};

fn one_step(fixture: &Fixture, contract: &str) {
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", contract, "abort")]));
}

#[test]
fn a_run_of_another_text_than_the_approved_one_is_begun_anew() {
    let fixture = Fixture::new();
    one_step(&fixture, "test -e never");
    let said = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    one_step(&fixture, "test -e p.md");
    assert_eq!(fixture.planctl(&["approve", "p.md"]).code, 0);
    let said = fixture.planctl(&["resume", "p-1"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("p.md is not the text any more that it runs"), "{said:?}");
    assert!(said.err.contains("next: planctl run p.md --exec true\n"), "{said:?}");
    let said = fixture.planctl(&["run", "p.md", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn another_run_is_begun_with_the_worker_of_the_run_before() {
    let fixture = Fixture::new();
    one_step(&fixture, "test -e p.md");
    let exec = ["run", "p.md", "--approve", "--no-wait", "--exec", "touch 'a b'"];
    assert_eq!(fixture.planctl(&exec).code, 0);
    let again = "planctl run --again p.md --exec \"touch 'a b'\"";
    let refused = |words: &[&str], code: i32| {
        let said = fixture.planctl(words);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(&format!("next: {again}\n")), "{words:?}: {said:?}");
    };
    refused(&["run", "p.md"], 0);
    refused(&["resume", "p-1"], 5);
    refused(&["resume", "p-1", "--recheck"], 5);
    let said = fixture.shell(&format!("{again} --no-wait"));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["run"], "p-2");
}

#[test]
fn a_list_of_asks_that_leaves_some_out_does_not_say_that_nothing_waits() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", "test -e never", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
    let said = fixture.planctl(&["approvals", "--kind", "budget"]);
    assert_eq!(said.out, "no budget waits for you; 1 of other kinds: planctl approvals\n");
    fixture.write("q.md", &plan("Other", "5 minutes", &[("One", "test -e p.md", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "q.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
    assert_eq!(fixture.planctl(&["approvals", "--run", "q-1"]).out, "nothing of q-1 waits for you\n");
}

#[test]
fn a_run_that_is_taken_up_with_the_worker_it_began_with_is_not_said_to_lack_one() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", "test -e never", "escalate")]));
    let said = fixture.planctl(&["run", "p.md", "--no-wait"]);
    assert!(said.err.contains("warning[P402]"), "nobody is known yet: {said:?}");
    let said = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let said = fixture.planctl(&["run", "p.md", "--no-wait"]);
    assert!(said.err.contains("taken up p-1") && !said.err.contains("P402"), "{said:?}");
    // planctl.toml has roles, and this one is not among them.
    fixture.write("planctl.toml", "[roles.reviewer]\nagent = \"exec:true\"\n");
    fixture.planctl(&["trust", "."]);
    let said = fixture.planctl(&["run", "p.md", "--no-wait"]);
    assert!(said.err.contains("taken up p-1") && !said.err.contains("P401"), "{said:?}");
}
