//! Red first: contracts that are evaluated before the work, and what people see of those that were green already.

use serde_json::Value;

use crate::fixture::{Fixture, plan};

const PROVES_NOTHING: &str = "its contract passed before the work too, so this proves nothing";

/// Does in the second step what that one wants.
const ITS_OWN: &str = "touch worked-$PLANCTL_STEP; test $PLANCTL_STEP = 1 || touch made";

/// Two steps: the first's contract is green before any work.
fn half_vacuous() -> String {
    plan(
        "Half vacuous",
        "5 minutes",
        &[("Readme", "test -f README.md", "escalate"), ("Made", "test -f made", "escalate")],
    )
}

fn with(policy: &str, text: &str) -> String {
    text.replace("**Budget:**", &format!("**red_first:** {policy}\n**Budget:**"))
}

#[test]
fn x19_warn_a_green_contract_is_worked_on_and_said_wherever_its_verdict_is() {
    let fixture = Fixture::new();
    fixture.write("README.md", "# Here\n").write("p.md", &with("warn", &half_vacuous()));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", ITS_OWN]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("worked-1").exists() && fixture.path("worked-2").exists());
    assert!(said.err.contains("step=1 before=green exit=0"), "{said:?}");
    assert!(said.err.contains("step=2 before=red exit=1"), "{said:?}");
    assert!(said.err.contains("step=1 attempt=1 contract=passed exit=0 vacuous=yes"), "{said:?}");
    assert!(said.err.contains("step=2 attempt=1 contract=passed exit=0\n"), "{said:?}");
    assert!(said.out.contains(&format!("step 1 Readme: passed, but {PROVES_NOTHING}")), "{said:?}");
    assert!(!said.out.contains("step 2"), "{said:?}");

    let status = fixture.status();
    let steps = status["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["vacuous"], &steps[1]["vacuous"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!((&steps[0]["state"], &steps[0]["verdict"]), (&"passed".into(), &"passed".into()));
    assert_eq!(steps[0]["before"]["showed"], "green");
    assert_eq!((&steps[1]["before"]["showed"], &steps[1]["before"]["exit_code"]), (&"red".into(), &1.into()));
    assert!(status["reason"].as_str().unwrap().contains("1 proves nothing"), "{status}");
    let page = fixture.planctl(&["plan", "status", "@last"]).out;
    assert_eq!(page.matches(PROVES_NOTHING).count(), 1, "{page}");

    let log = fixture.json(&["plan", "logs", "@last", "--json"]);
    let attempts = log["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "what was shown before the work stands with the first attempt: {log}");
    assert_eq!(
        (&attempts[0]["before"][0]["verdict"], &attempts[0]["gate"]["vacuous"]),
        (&"green".into(), &true.into())
    );
    assert_eq!(
        (&attempts[1]["before"][0]["verdict"], &attempts[1]["gate"]["vacuous"]),
        (&"red".into(), &false.into())
    );
    let log = fixture.planctl(&["plan", "logs", "@last"]).out;
    assert!(
        log.contains("contract before the work: green · exit 0") && log.contains(PROVES_NOTHING),
        "{log}"
    );

    let why = fixture.planctl(&["why", "@last", "1"]).out;
    assert!(why.contains("contract exit 0; its pass will prove nothing"), "{why}");
    assert!(why.contains(&format!("passed at attempt 1, but {PROVES_NOTHING}")), "{why}");
    let why = fixture.planctl(&["why", "@last", "2"]).out;
    assert!(why.contains("contract exit 1; it can fail, as it should") && !why.contains("nothing"), "{why}");

    let shown = fixture.events("@last");
    let rehearsed: Vec<&Value> = shown.iter().filter(|line| line["event"] == "node_rehearsed").collect();
    assert_eq!((&rehearsed[0]["showed"], &rehearsed[0]["ending"]["code"]), (&"green".into(), &0.into()));
    assert_eq!(rehearsed[1]["showed"], "red");
    assert_eq!(fixture.events_named("@last", "harness.rehearsed").len(), 2);
    assert_eq!(fixture.events_named("@last", "harness.evaluated").len(), 2, "one verdict for each attempt");

    let text = fixture.read("p.md");
    assert!(text.contains("### 1. ✅⚠ Readme") && text.contains("### 2. ✅ Made"), "{text}");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "run", "p.md"]).code, 0, "the marks leave it the same plan");
}

#[test]
fn x19_deny_a_green_contract_is_not_worked_on_until_a_person_decides() {
    let fixture = Fixture::new();
    // The task names the file, so it is not protected.
    let text = with("deny", &half_vacuous()).replace("Readme, please", "Write README.md, please");
    fixture.write("README.md", "# Here\n").write("p.md", &text);
    let run = [
        "plan",
        "run",
        "p.md",
        "--approve",
        "--no-wait",
        "--exec",
        "touch made README.md worked-$PLANCTL_STEP",
    ];
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!fixture.path("worked-1").exists(), "nobody worked");
    assert!(said.err.contains("step=1 before=green exit=0"), "{said:?}");
    assert!(said.err.contains("ask=escalation reason=not_red"), "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (&status["steps"][0]["state"], &status["steps"][0]["attempts"]),
        (&"waiting".into(), &0.into())
    );
    assert_eq!(status["steps"][0]["vacuous"], true);
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains("its contract was not red before the work"), "{page}");
    assert!(page.contains("before the work: contract exit 0") && !page.contains("attempt 0"), "{page}");
    assert!(page.contains("run the contract once more before the work"), "{page}");
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    assert_eq!((&page["reason"], &page["vacuous"]), (&"not_red".into(), &true.into()));

    // Looked at again it is green still; once the file is away it is red, and the work begins.
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
    assert_eq!(fixture.events_named("@last", "harness.rehearsed").len(), 2);
    std::fs::remove_file(fixture.path("README.md")).unwrap();
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "moved it"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 3, "the worker makes what the second step wants, so that one is green: {said:?}");
    assert!(fixture.path("worked-1").exists() && !fixture.path("worked-2").exists());
    assert_eq!(fixture.planctl(&["approvals", "waive", &fixture.ask(), "--note", "it is there"]).code, 0);
    let status = fixture.status();
    assert_eq!(
        (&status["steps"][0]["state"], &status["steps"][1]["state"]),
        (&"passed".into(), &"waived".into())
    );
    assert_eq!(
        (&status["steps"][0]["vacuous"], &status["steps"][0]["attempts_allowed"]),
        (&false.into(), &1.into())
    );
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn a_step_that_guards_and_one_that_says_off_are_left_alone() {
    let fixture = Fixture::new();
    let text = with("deny", &half_vacuous());
    let text = text.replace("**task:**\nReadme", "**guard:** yes\n\n**task:**\nReadme");
    let text = text.replace("**task:**\nMade", "**red_first:** off\n\n**task:**\nMade");
    fixture.write("README.md", "# Here\n").write("p.md", &text);
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", "touch made"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.events_named("@last", "harness.rehearsed").len(), 0);
    let status = fixture.status();
    assert_eq!(
        (&status["steps"][0]["vacuous"], &status["steps"][0]["before"]),
        (&false.into(), &Value::Null)
    );
}

#[test]
fn the_configuration_asks_where_the_plan_does_not_and_is_approved_with_it() {
    let fixture = Fixture::new();
    fixture.write("README.md", "# Here\n").write("p.md", &half_vacuous());
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    fixture.write("planctl.toml", "[contracts]\nred_first = \"deny\"\n");
    let shown = fixture.json(&["plan", "show", "p.md", "--json"]);
    assert_eq!(shown["steps"][0]["red_first"], "deny");
    let run = ["plan", "run", "p.md", "--no-wait", "--exec", "touch made"];
    assert_eq!(fixture.planctl(&run).code, 3, "the approval was of another configuration");
    assert_eq!(fixture.status()["state"], "awaiting_approval");
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.json(&["approvals", "--json"])["asks"][0]["reason"], "not_red");

    // The approved setting holds, even when the file changes later; the plan's own word goes before it.
    let other = Fixture::new();
    other.write("README.md", "# Here\n").write("p.md", &with("off", &half_vacuous()));
    other.write("planctl.toml", "[contracts]\nred_first = \"deny\"\n");
    let said = other.planctl(&["plan", "run", "p.md", "--approve", "--exec", "touch made"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(other.events_named("@last", "harness.rehearsed").len(), 0);
}

#[test]
fn a_revision_may_ask_for_less_although_steps_are_settled() {
    let fixture = Fixture::new();
    let text = with("deny", &half_vacuous());
    fixture.write("p.md", &text);
    let run = ["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "touch README.md made"];
    assert_eq!(fixture.planctl(&run).code, 3, "the first step's worker made what the second wants");
    assert_eq!(fixture.status()["steps"][0]["state"], "passed");
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    let text = fixture.read("p.md").replace("**red_first:** deny", "**red_first:** warn");
    fixture.write("p.md", &text);
    let said = fixture.planctl(&["plan", "approve", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (&status["steps"][0]["vacuous"], &status["steps"][1]["vacuous"]),
        (&false.into(), &true.into())
    );
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn what_changes_protected_files_before_the_work_is_told() {
    let fixture = Fixture::new();
    let text = plan("Changes", "5 minutes", &[("Try", "echo x >> test.sh; bash test.sh", "abort")]);
    fixture.write("test.sh", "test -f made\n").write("p.md", &with("deny", &text));
    let said = fixture.run("touch made");
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("before=tampered"), "{said:?}");
    assert!(!fixture.path("made").exists());
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(page.contains("protected file test.sh changed"), "{page}");
    assert_eq!(fixture.status()["steps"][0]["vacuous"], false);
}

#[test]
fn files_that_an_earlier_step_changed_are_put_back_before_the_work_and_the_run_goes_on() {
    let fixture = Fixture::new();
    let text = plan(
        "Two",
        "5 minutes",
        &[("Try", "test -f one", "skip"), ("Made", "grep -q kept conf.txt && test -f two", "escalate")],
    );
    let text = text.replacen("**target:** coder", "**target:** coder\n**protects:** conf.txt", 1);
    let text =
        text.replace("**task:**\nMade", "**protects:** conf.txt\n**red_first:** deny\n\n**task:**\nMade");
    fixture.write("conf.txt", "kept\n").write("p.md", &text);
    let worker = "[ $PLANCTL_STEP = 2 ] || echo other >conf.txt; touch one two-$PLANCTL_STEP; [ $PLANCTL_STEP = 1 ] || touch two";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("step=2 before=tampered"), "{said:?}");
    let line = "step 2 \"Made\": its contract was not red before the work; before the work: protected files were touched: conf.txt";
    assert!(said.out.contains(line) && !said.out.contains("step 1 Try: "), "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(
        page.contains(&format!("planctl approvals restore {ask}")) && !page.contains("approvals allow"),
        "{page}"
    );
    assert_ne!(fixture.planctl(&["approvals", "allow", &ask]).code, 0);
    let said = fixture.planctl(&["approvals", "restore", &ask]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("conf.txt"), "kept\n");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("two-2").exists());
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}
