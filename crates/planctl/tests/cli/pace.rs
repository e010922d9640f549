//! PACE and denied effects of roles, with agents in bash: the order of responders, their prompts, the output.

use serde_json::Value;

use crate::fixture::{Fixture, plan};

/// A coder that gets nowhere, and one that takes over from it.
fn fixture(strong: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Fix", "5 minutes", &[("Fix", "test -e fixed", "retry(1), then escalate")]));
    fixture.write(
        "planctl.toml",
        &format!(
            "[roles.coder]\nagent = \"exec:echo coder >> who\"\n[roles.coder.pace]\nalternate = \"strong\"\n\
             [roles.strong]\nagent = \"exec:{strong}\"\n"
        ),
    );
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture
}

/// The facts that say how the step went from hand to hand, in order, with what they add.
fn passing_on(fixture: &Fixture) -> Vec<String> {
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or("?").to_owned();
    let events = fixture.events("@last").into_iter();
    events
        .filter_map(|line| match line["event"].as_str().unwrap() {
            "pace_changed" => Some(format!(
                "{} to {}: {} ({})",
                word(&line, "from"),
                word(&line, "to"),
                word(&line, "responder"),
                word(&line, "reason")
            )),
            "node_verified" => Some(word(&line, "verdict")),
            "ask_opened" if line["kind"] == "plan" => None,
            event @ ("plan_escalated" | "ask_opened" | "plan_completed") => Some(event.to_owned()),
            _ => None,
        })
        .collect()
}

#[test]
fn g_27_the_alternate_gets_the_step_with_the_failure_told_and_its_gate_passes_the_run() {
    let fixture = fixture("cat > told; echo strong >> who; touch fixed");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("pace=alternate responder=strong reason=exhausted"), "{said:?}");
    assert_eq!(fixture.read("who"), "coder\ncoder\nstrong\n");
    let told = fixture.read("told");
    for words in [
        "You take over as the alternate (PACE): the coder before you had made 2 attempts",
        "its attempts are used up",
        "Previous attempt failed (attempt 2).",
        "Contract returned exit code 1.",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(
        passing_on(&fixture),
        [
            "failed",
            "failed",
            "primary to alternate: strong (exhausted)",
            "plan_escalated",
            "passed",
            "plan_completed"
        ]
    );
    let status = fixture.status();
    assert_eq!(status["pace_level"], "primary", "nothing is open any more");
    assert_eq!(status["steps"][0]["pace"]["level"], "alternate");
    assert_eq!(status["steps"][0]["role"], "strong");
    let why = fixture.planctl(&["why", "@last", "1"]);
    assert!(
        why.out.contains("went to the strong, at PACE level alternate: its attempts are used up"),
        "{why:?}"
    );
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn after_the_last_level_a_person_is_asked_and_what_they_let_be_tried_again_is_the_last_agents() {
    let fixture = fixture("echo strong >> who; test ! -e hint || touch fixed");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.read("who"), "coder\ncoder\nstrong\n");
    let status = fixture.status();
    assert_eq!(
        (status["state"].as_str(), status["pace_level"].as_str()),
        (Some("waiting"), Some("emergency"))
    );
    let level = &status["steps"][0]["pace"];
    assert_eq!((level["responder"].as_str(), level["from"].as_str()), (Some("human"), Some("strong")));
    let shown = fixture.planctl(&["plan", "status", "@last"]);
    assert!(shown.out.contains("PACE emergency: a person answers; the strong had it before"), "{shown:?}");
    let report = fixture.planctl(&["plan", "status", "@last", "--salute"]);
    assert!(report.out.contains("step 1 (PACE emergency): a person"), "{report:?}");
    assert_eq!(
        fixture.json(&["plan", "status", "@last", "--salute", "--json"])["unit"][0]["level"],
        "emergency"
    );
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]);
    assert!(page.out.contains("PACE emergency"), "{page:?}");
    assert_eq!(fixture.json(&["approvals", "show", &ask, "--json"])["pace"]["level"], "emergency");

    fixture.write("hint", "");
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask, "--note", "there is a hint"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("who"), "coder\ncoder\nstrong\nstrong\n");
    assert_eq!(
        passing_on(&fixture),
        [
            "failed",
            "failed",
            "primary to alternate: strong (exhausted)",
            "plan_escalated",
            "failed",
            "alternate to emergency: human (exhausted)",
            "plan_escalated",
            "ask_opened",
            "passed",
            "plan_completed"
        ]
    );
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn what_the_one_that_takes_over_asks_is_told_and_not_the_failure_before() {
    let question =
        r#"echo '{\"planctl\":\"result/1\",\"outcome\":\"needs_input\",\"question\":\"Which port?\"}'"#;
    let fixture = fixture(question);
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("asks: \"Which port?\"") && !said.out.contains("contract exit"), "{said:?}");
}

#[test]
fn the_level_outlives_a_kill() {
    let fixture = fixture("echo strong >> who; test -e again || exec sleep 999; touch fixed");
    let mut going = fixture.start(&["plan", "run", "p.md", "--approve"]);
    going.hear("pace=alternate");
    let began = std::time::Instant::now();
    while !fixture.read("who").contains("strong") {
        assert!(began.elapsed().as_secs() < 60, "{}", going.heard);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    going.signal(rustix::process::Signal::KILL);
    going.end();
    assert_eq!(fixture.status()["pace_level"], "alternate");
    fixture.write("again", "");
    let said = fixture.planctl(&["plan", "resume", "@last"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("who"), "coder\ncoder\nstrong\nstrong\n");
    assert_eq!(
        passing_on(&fixture),
        [
            "failed",
            "failed",
            "primary to alternate: strong (exhausted)",
            "plan_escalated",
            "passed",
            "plan_completed"
        ]
    );
}

#[test]
fn who_takes_over_is_shown_before_anybody_works() {
    let fixture = fixture("true");
    let said = fixture.planctl(&["plan", "show", "p.md"]);
    assert!(said.out.contains("when the coder can't go on: alternate strong"), "{said:?}");
    let view = fixture.json(&["plan", "show", "p.md", "--json"]);
    assert_eq!(
        view["steps"][0]["pace"],
        serde_json::json!([{ "level": "alternate", "responder": "strong" }])
    );
}

#[test]
fn m_34_a_step_that_needs_what_its_role_is_denied_is_refused_and_agents_are_told() {
    let fixture = Fixture::new();
    let config = "[roles.coder]\nagent = \"exec:cat > told; touch one\"\neffects = { deny = [\"network\", \"write\"] }\n";
    fixture.write("planctl.toml", config);
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    for (contract, effect) in [
        ("curl -fsS https://example.org/ok", "network"),
        ("git ls-remote --exit-code origin", "network"),
        ("echo x > one && test -e one", "write"),
    ] {
        fixture.write("p.md", &plan("P", "5 minutes", &[("One", contract, "escalate")]));
        let said = fixture.planctl(&["plan", "verify", "p.md"]);
        let expected = format!("error[P404]: the role `coder` is denied `{effect}`");
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.out.contains(&expected) || said.err.contains(&expected), "{said:?}");
        assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--approve"]).code, 1);
    }
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.read("told").contains("Do nothing that has one of these effects: network, write."));
}
