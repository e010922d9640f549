//! `resume --recheck`: of the steps that passed, the first that passes no longer is done anew; `resume --from`: the one that is named.

use crate::fixture::{Fixture, git, plan};

const WORKER: &str = "touch done-$PLANCTL_STEP; echo $PLANCTL_STEP >> worked";

/// A run that failed at its third step.
fn failed() -> Fixture {
    let fixture = Fixture::new();
    let steps = [
        ("One", "test -e done-1", "abort"),
        ("Two", "test -e done-2", "abort"),
        ("Three", "test -e done-3 && test -e given", "abort"),
    ];
    fixture.write("p.md", &plan("Three files", "5 minutes", &steps));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", WORKER]);
    assert_eq!(said.code, 1, "{said:?}");
    fixture.write("given", "");
    fixture
}

#[test]
fn the_first_step_that_passes_no_longer_is_done_anew_with_all_that_follows() {
    let fixture = failed();
    std::fs::remove_file(fixture.path("done-2")).unwrap();
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("step 2 \"Two\" passes no longer: contract exit 1\n"), "{said:?}");
    assert!(said.err.contains("goes on with step 2, and with all that follows it"), "{said:?}");
    assert_eq!(fixture.read("worked"), "1\n2\n3\n2\n3\n", "step 1 passes and is not done again");
    let why = fixture.planctl(&["why", "@last", "2"]);
    assert!(
        why.out.contains("ann has step 2 \"Two\" done again: \"recheck: contract exit 1\""),
        "{}",
        why.out
    );
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn where_all_still_pass_the_run_goes_on_where_it_stopped_and_the_check_leaves_nothing_behind() {
    let fixture = failed();
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("2 steps that passed still pass\n"), "{said:?}");
    assert_eq!(fixture.read("worked"), "1\n2\n3\n3\n");
}

#[test]
fn the_step_that_is_named_is_done_anew_with_all_that_follows_and_one_that_did_not_pass_is_refused() {
    let fixture = failed();
    for (step, why) in [("3", "can't be done anew"), ("9", "step 9 in p-1"), ("Nine", "step Nine in p-1")] {
        let said = fixture.planctl(&["resume", "@last", "--from", step]);
        assert!(said.code != 0 && said.err.contains(why), "{said:?}");
    }
    assert_eq!(fixture.read("worked"), "1\n2\n3\n", "what is refused does nothing");
    let said = fixture.planctl(&["resume", "@last", "--from", "One"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("worked"), "1\n2\n3\n1\n2\n3\n");
    let why = fixture.planctl(&["why", "@last", "1"]);
    assert!(why.out.contains("ann has step 1 \"One\" done again"), "{}", why.out);
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
    let over = fixture.planctl(&["resume", "@last", "--from", "1"]);
    assert!(over.code == 5 && over.err.contains("it is over"), "{over:?}");
}

#[test]
fn a_run_that_is_done_or_waits_is_not_rechecked() {
    let fixture = failed();
    assert_eq!(fixture.planctl(&["resume", "@last"]).code, 0);
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(
        said.err.contains(
            "p-1 is done: only a run that failed or is paused is rechecked\nnext: planctl run --again p.md --exec '"
        ),
        "{said:?}"
    );
}

/// A run of a step, two branches and a step after their join, which failed at the last.
fn failed_behind_branches(fork: &str) -> Fixture {
    let fixture = Fixture::new();
    git(&fixture.path(""), &["init", "--quiet"]);
    let text = format!(
        "digraph apart {{ start [shape=Mdiamond] done [shape=Msquare]
         prepare [prompt=\"Prepare.\", contract=\"test -e done-1\", target=coder]
         fork [shape=component{fork}] join [shape=tripleoctagon]
         one [prompt=\"One.\", contract=\"test -e done-2\", target=coder]
         two [prompt=\"Two.\", contract=\"test -e done-3\", target=coder]
         after [prompt=\"After.\", contract=\"test -e given\", target=coder]
         start -> prepare -> fork  fork -> one -> join  fork -> two -> join  join -> after -> done }}"
    );
    fixture.write("p.dot", &text);
    git(&fixture.path(""), &["add", "-A"]);
    git(&fixture.path(""), &["commit", "--quiet", "-m", "all"]);
    let worked = fixture.path("worked").display().to_string();
    let worker = format!("touch done-$PLANCTL_STEP; echo $PLANCTL_STEP >> {worked}");
    let said = fixture.planctl(&["run", "p.dot", "--approve", "--no-wait", "--exec", &worker]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["pause", "@last"]).code, 0);
    fixture.write("given", "");
    fixture
}

#[test]
fn a_step_of_a_branch_that_passes_no_longer_has_the_run_go_on_before_the_branches() {
    let fixture = failed_behind_branches("");
    std::fs::remove_file(fixture.path("done-3")).unwrap();
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("step 3 \"two\" passes no longer: contract exit 1\n"), "{said:?}");
    assert!(said.err.contains("goes on with step 1, before the branches"), "{said:?}");
    let worked = fixture.read("worked");
    let mut anew: Vec<&str> = worked.lines().skip(4).collect();
    anew[1..3].sort_unstable();
    assert_eq!(anew, ["1", "2", "3", "4"], "{worked}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a_step_that_worked_in_the_worktree_of_its_branch_is_not_tried_elsewhere() {
    let fixture = failed_behind_branches(", workspace=worktree");
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 0, "{said:?}");
    for step in ["2 \"one\"", "3 \"two\""] {
        let told = format!("step {step} was not tried: it worked in the worktree of its branch\n");
        assert!(said.err.contains(&told), "{said:?}");
    }
    assert!(said.err.contains("1 step that passed still passes\n"), "{said:?}");
}

#[test]
fn a_contract_that_must_not_run_in_a_copy_is_named_and_the_next_one_is_tried() {
    let fixture = Fixture::new();
    let outside = format!("test -e {}", fixture.path("done-1").display());
    let steps = [
        ("One", outside.as_str(), "abort"),
        ("Two", "test -e done-2", "abort"),
        ("Three", "test -e given", "abort"),
    ];
    fixture.write("p.md", &plan("Three files", "5 minutes", &steps));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", WORKER]);
    assert_eq!(said.code, 1, "{said:?}");
    fixture.write("given", "");
    std::fs::remove_file(fixture.path("done-2")).unwrap();
    let said = fixture.planctl(&["resume", "@last", "--recheck"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("step 1 \"One\" was not tried: "), "{said:?}");
    assert!(said.err.contains("step 2 \"Two\" passes no longer"), "{said:?}");
}
