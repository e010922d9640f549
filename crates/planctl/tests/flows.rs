//! Plans on their way through decisions: rejected, approved anew, revised, kept waiting; by the real binary on a real Postgres.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that meets what it does not expect has failed; the fixture is shared"
)]

use crate::fixture::Fixture;

/// A plan with one step per contract, and what happens where it fails.
fn plan(title: &str, steps: &[(&str, &str)]) -> String {
    let mut text = format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# {title}\n\n## Steps\n");
    for (at, (contract, on_fail)) in steps.iter().enumerate() {
        let number = at + 1;
        text.push_str(&format!(
            "\n### {number}. Step {number}\n\n**target:** coder\n\n**task:**\nDo part {number}.\n\n**contract:**\n\
             ```bash\n{contract}\n```\nexit_code == 0\n\n**on_fail:** {on_fail}\n"
        ));
    }
    text
}

#[test]
fn p16_a_plan_that_is_rejected_while_it_waits_for_its_workspace_never_runs() {
    let fixture = Fixture::new();
    fixture.write("one.md", &plan("One", &[("test -f one", "escalate")]));
    fixture.write("two.md", &plan("Two", &[("test -f two", "escalate")]));
    assert_eq!(
        fixture.planctl(&["plan", "run", "one.md", "--approve", "--no-wait", "--exec", "true"]).code,
        3
    );
    let mut second = fixture.start(&["plan", "run", "two.md", "--approve", "--exec", "touch two"]);
    second.hear("answered=approve");
    assert_eq!(fixture.planctl(&["plan", "reject", "two.md", "--note", "not now"]).code, 0);
    assert_eq!(second.end().code, 7);
    assert_eq!(fixture.planctl(&["plan", "cancel", "one.md"]).code, 0);
    assert!(!fixture.path("two").exists());
    let said = fixture.planctl(&["plan", "run", "two.md", "--exec", "touch two"]);
    assert_eq!(said.code, 3, "it has to be approved again: {said:?}");
}

#[test]
fn a_failed_run_whose_plan_was_rejected_is_taken_up_only_after_a_new_approval() {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("Abort", &[("test -f done", "abort")]));
    assert_eq!(fixture.planctl(&["plan", "run", "plan.md", "--approve", "--exec", "true"]).code, 1);
    assert_eq!(fixture.planctl(&["plan", "reject", "plan.md", "--note", "wrong"]).code, 0);
    assert!(fixture.read("plan.md").contains("status: draft"), "{}", fixture.read("plan.md"));
    for words in [&["plan", "run", "plan.md", "--exec", "touch done"][..], &["plan", "resume", "plan-1"]] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 5, "{said:?}");
        assert!(said.err.contains("approval no longer holds"), "{said:?}");
    }
    assert!(!fixture.path("done").exists());
    assert_eq!(fixture.planctl(&["plan", "approve", "plan.md"]).code, 0);
    let said = fixture.planctl(&["plan", "run", "plan.md", "--exec", "touch done"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["run"], "plan-1");
}

#[test]
fn a_plan_under_way_is_cancelled_and_not_rejected() {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("Held", &[("test -f done", "escalate")]));
    assert_eq!(
        fixture.planctl(&["plan", "run", "plan.md", "--approve", "--no-wait", "--exec", "true"]).code,
        3
    );
    let said = fixture.planctl(&["plan", "reject", "plan.md", "--note", "wrong"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("planctl cancel plan-1"), "{said:?}");
}

#[test]
fn p18_approving_again_approves_the_protected_files_as_they_are_now() {
    let fixture = Fixture::new();
    fixture.write("check.sh", "test -f done\n");
    fixture.write("plan.md", &plan("Protected", &[("bash check.sh", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "approve", "plan.md"]).code, 0);
    // A person changes what the contract runs, after the approval.
    fixture.write("check.sh", "test -e done\n");
    let said = fixture.planctl(&["plan", "run", "plan.md", "--no-wait", "--exec", "touch done"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.status()["steps"][0]["verdict"], "tampered");
    // Approving again names each protected file that differs from what was approved.
    let said = fixture.planctl(&["plan", "approve", "plan.md"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("check.sh"), "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "approve", "plan.md", "--accept-changed", "check.sh"]).code, 0);
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "plan-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_revised_run_waits_for_its_workspace_where_another_has_it_by_now() {
    let fixture = Fixture::new();
    fixture.write("one.md", &plan("One", &[("test -f one", "escalate")]));
    fixture.write("two.md", &plan("Two", &[("test -f two", "escalate")]));
    assert_eq!(
        fixture.planctl(&["plan", "run", "one.md", "--approve", "--no-wait", "--exec", "true"]).code,
        3
    );
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    assert_eq!(
        fixture.planctl(&["plan", "run", "two.md", "--approve", "--no-wait", "--exec", "true"]).code,
        3
    );
    fixture.write("one.md", &fixture.read("one.md").replace("test -f one", "test -f other"));
    let said = fixture.planctl(&["plan", "run", "one.md", "--no-wait"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("planctl approve one.md"), "{said:?}");
    assert!(!said.out.contains("status"), "only what people changed is shown: {said:?}");
    assert_eq!(fixture.planctl(&["plan", "approve", "one.md"]).code, 0);
    let status = fixture.json(&["plan", "status", "one-1", "--json"]);
    assert_eq!(status["state"], "queued");
    assert_eq!(status["waiting_on"]["run"], "two-1");
    // A command that does not wait for people does not wait behind a run that does.
    let said = fixture.planctl(&["plan", "resume", "one-1", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("next: planctl approvals show"), "what two-1 waits for: {said:?}");
    assert_eq!(fixture.planctl(&["plan", "cancel", "two-1"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "one-1", "--no-wait", "--exec", "touch other"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_plan_that_two_start_at_the_same_moment_has_one_run() {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("Once", &[("test -f done", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "approve", "plan.md"]).code, 0);
    let words = ["plan", "run", "plan.md", "--exec", "sleep 0.3; touch done"];
    let both = [fixture.start(&words), fixture.start(&words)];
    for going in both {
        assert_eq!(going.end().code, 0);
    }
    let list = fixture.json(&["ls", "--json"]);
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn work_for_a_role_that_nobody_serves_is_said_to_wait() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:true\"\n\n[roles.expert]\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture.write("plan.md", &plan("Roles", &[("test -f done", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "run", "plan.md", "--approve", "--no-wait"]).code, 3);
    assert_eq!(fixture.planctl(&["approvals", "reassign", &fixture.ask(), "expert"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "plan-1", "--no-wait"]);
    assert_eq!(said.code, 8, "{said:?}");
    assert_eq!(fixture.status()["waiting_on"]["role"], "expert");
    let said = fixture.planctl(&["plan", "resume", "plan-1", "--exec", "touch done"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_worker_is_not_told_of_the_step_that_was_skipped_before_its_own() {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("Skip", &[("test -f one", "skip"), ("test -f two", "escalate")]));
    let exec = "cat > prompt.$PLANCTL_STEP; test $PLANCTL_STEP = 1 || touch two";
    let said = fixture.planctl(&["plan", "run", "plan.md", "--approve", "--exec", exec]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("prompt.2").trim(), "Do part 2.");
}

#[test]
fn a_workspace_that_is_gone_is_named() {
    let fixture = Fixture::new();
    fixture.write("site/plan.md", &plan("Gone", &[("test -f done", "escalate")]));
    let site = fixture.path("site").to_string_lossy().into_owned();
    let run =
        ["plan", "run", "site/plan.md", "--workspace", &site, "--approve", "--no-wait", "--exec", "true"];
    assert_eq!(fixture.planctl(&run).code, 3);
    std::fs::remove_dir_all(fixture.path("site")).unwrap();
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "plan-1", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    let status = fixture.json(&["plan", "status", "plan-1", "--json"]);
    let failure = status["steps"][0]["failure"].as_str().unwrap().to_owned();
    assert!(failure.contains(&format!("the workspace {site} is not there")), "{failure}");
}

#[test]
fn the_worker_after_a_question_is_told_the_question_and_the_answer() {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("Ask", &[("test -f done", "escalate")]));
    let exec = "cat > prompt.$PLANCTL_ATTEMPT; if test $PLANCTL_ATTEMPT = 2; then touch done; else \
                echo '{\"planctl\":\"result/1\",\"outcome\":\"needs_input\",\"question\":\"which colour?\"}' > \
                $PLANCTL_RESULT_FILE; fi";
    assert_eq!(
        fixture.planctl(&["plan", "run", "plan.md", "--approve", "--no-wait", "--exec", exec]).code,
        3
    );
    assert_eq!(fixture.planctl(&["approvals", "answer", &fixture.ask(), "--note", "blue"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "resume", "plan-1"]).code, 0);
    let prompt = fixture.read("prompt.2");
    assert!(prompt.contains("which colour?") && prompt.contains("# A note from ann\n\nblue"), "{prompt}");
}

#[test]
fn a_worker_that_holds_out_past_its_deadline_is_ended_by_its_own_process() {
    let fixture = Fixture::new();
    let text = plan("Slow", &[("test -f done", "warn")]);
    fixture.write("plan.md", &text.replace("**task:**", "**timeout:** 1s\n\n**task:**"));
    let exec = "trap '' TERM; while :; do sleep 0.1; done";
    assert_eq!(fixture.planctl(&["plan", "run", "plan.md", "--approve", "--exec", exec]).code, 0);
    let said = fixture.planctl(&["events", "--run", "plan-1", "--json"]);
    assert!(
        said.out.contains("\"agent.overran\"") && !said.out.contains("\"clock.overran\""),
        "{}",
        said.out
    );
}

#[test]
fn a_worker_is_told_what_is_left_of_the_budget() {
    let fixture = Fixture::new();
    let text = plan("Budget", &[("test -f done", "escalate"), ("test -f done", "escalate")]);
    fixture.write(
        "plan.md",
        &text.replace("## Steps", "**Budget:** max 2k tokens, $1.00, 20 minutes\n\n## Steps"),
    );
    let usage =
        "{\"planctl\":\"result/1\",\"usage\":{\"input_tokens\":700,\"output_tokens\":7,\"cost_usd\":0.25}}";
    let exec = format!(
        "touch done; echo $PLANCTL_BUDGET_TOKENS $PLANCTL_BUDGET_USD >> left; echo '{usage}' > $PLANCTL_RESULT_FILE"
    );
    let said = fixture.planctl(&["plan", "run", "plan.md", "--approve", "--exec", &exec]);
    assert_eq!(said.code, 0, "{said:?}");
    let left = fixture.read("left");
    let tokens: Vec<&str> = left.split_whitespace().step_by(2).collect();
    assert_eq!(tokens, ["2000", "1293"], "{left}");
}
