//! Budgets: spent as workers report, held before they are over, raised by a person.

use crate::fixture::{Fixture, plan};

const WORKER: &str = r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","text":"ok","usage":{"input_tokens":900,"output_tokens":100,"cost_usd":0.25}}' > $PLANCTL_RESULT_FILE"#;

fn three_steps(budget: &str) -> String {
    let step = |number: u32| format!("test -e done-{number}");
    plan(
        "Spend",
        budget,
        &[("One", &step(1), "escalate"), ("Two", &step(2), "escalate"), ("Three", &step(3), "escalate")],
    )
}

#[test]
fn a_run_that_would_go_over_its_budget_holds_with_exit_6_and_goes_on_when_raised() {
    let fixture = Fixture::new();
    fixture.write("p.md", &three_steps("max 2500 tokens, $10, 5 minutes"));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", WORKER]);
    assert_eq!(said.code, 6, "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (status["spent"]["tokens"].as_u64(), status["spent"]["usd"].as_f64()),
        (Some(2000), Some(0.5))
    );
    assert_eq!(status["waiting_on"]["kind"], "budget");
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 6);
    assert!(!fixture.path("done-3").exists());

    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    assert_eq!(
        (page["shortfall"]["part"].as_str(), page["shortfall"]["limit"].as_f64()),
        (Some("tokens"), Some(2500.0)),
        "{page}"
    );
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 5, "a budget is raised, not retried");
    assert_eq!(fixture.planctl(&["approvals", "raise", &ask]).code, 2, "by something");
    assert_eq!(
        fixture.planctl(&["approvals", "raise", &ask, "--tokens", "2k", "--note", "worth it"]).code,
        0
    );
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["budget"]["tokens"], 4500);
}

#[test]
fn usage_that_is_not_reported_is_shown_as_unmetered_and_not_charged() {
    let fixture = Fixture::new();
    fixture.write("p.md", &three_steps("max 10 tokens, $10, 5 minutes"));
    let said = fixture.planctl(&[
        "plan",
        "run",
        "p.md",
        "--approve",
        "--no-wait",
        "--exec",
        "touch done-$PLANCTL_STEP",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    let spent = &fixture.status()["spent"];
    assert_eq!((spent["tokens"].as_u64(), spent["unmetered"].as_u64()), (Some(0), Some(3)));
    assert!(said.out.contains("3 unmetered"), "{said:?}");
}
