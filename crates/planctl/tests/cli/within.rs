//! Plans within plans, as commands tell of them.

use crate::fixture::{Fixture, plan};

/// Writes a plan whose first step carries out another, which has one step with this contract.
fn one_within(fixture: &Fixture, contract: &str) {
    let sub = "### 1. Sub\n\n**type:** sub-plan\n**plan:** in.md\n**approval:** inherit\n\n### 2. After";
    let outer = plan("Outer", "5 minutes", &[("After", "test -e after", "escalate")]);
    fixture.write("in.md", &plan("Inner", "5 minutes", &[("In", contract, "escalate")]));
    fixture.write("p.md", &outer.replace("### 1. After", sub));
}

#[test]
fn plain_lines_tell_of_the_steps_of_a_plan_within_and_the_end_says_which_one_waits() {
    let fixture = Fixture::new();
    one_within(&fixture, "test -e after");
    let run = ["run", "p.md", "--approve", "--no-wait", "--exec", "touch after"];
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 0, "{said:?}");
    let mut lines = said.err.lines();
    for told in [
        " step=1 attempt=1 work=out",
        " of=in-1 run=started",
        " of=in-1 step=1 attempt=1 work=out",
        " of=in-1 step=1 attempt=1 contract=passed",
        " of=in-1 run=done",
        " step=1 attempt=1 settled=passed",
        " step=2 attempt=1 work=out",
        " run=done",
    ] {
        assert!(
            lines.any(|line| line.get(8..).is_some_and(|line| line.starts_with(told))),
            "{told}: {said:?}"
        );
    }
    let fixture = Fixture::new();
    one_within(&fixture, "test -e never");
    let said = fixture.planctl(&run);
    assert!(said.code == 3 && said.err.contains(" of=in-1 step=1 attempt=1 ask=escalation"), "{said:?}");
    assert!(
        said.out.contains("\n  in-1: step 1 \"In\": its attempts are used up; contract exit 1\n"),
        "{said:?}"
    );
    let view = fixture.status();
    let year = |time: &serde_json::Value| time.as_str().unwrap()[..4].to_owned();
    assert_eq!(year(&view["steps"][0]["since"]), year(&view["started_at"]), "{view}");
}
