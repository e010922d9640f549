//! Sentences that once misled people, each in the situation that brought it about.

use crate::fixture::{Fixture, plan};

/// A loop that never comes to its end: the step that is entered too often is another one than the step that fails.
const LOOP: &str = r#"---
type: plan
status: draft
owner: ann
---

# Lint

**Budget:** 5 minutes
**max_visits:** 2

## Steps

### 1. Fix

**target:** coder

**task:**
Fix what lint found.

**contract:**
```bash
ls f-*
```
exit_code == 0
**on_fail:** escalate

### 2. Lint

**type:** call
**contract:**
```bash
words=(alpha beta gamma); n=$(ls f-* | wc -l); echo "${words[$n]} is broken"; test -e clean
```
exit_code == 0
**on_fail:** escalate

### 3. Ask for help

**type:** escalate

**task:**
The lint does not come clean.

## Flow

- 1 -> 2
- 1 -> 3 on exhaust
- 2 -> 1 on fail
- 2 -> done
"#;

#[test]
fn the_ask_of_a_loop_names_its_step_and_its_visits_and_the_step_that_asks_is_entered() {
    let fixture = Fixture::new();
    fixture.write("plan.md", LOOP);
    let run = ["run", "plan.md", "--approve", "--no-wait", "--exec", "touch f-$PLANCTL_ATTEMPT"];
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("step 1 \"Fix\": its visits are used up"), "{said:?}");
    let ask = fixture.planctl(&["approvals", "show"]).out;
    assert!(ask.contains("step 1 \"Fix\": its visits are used up"), "{ask}");
    assert!(ask.contains("plan │ The lint does not come clean."), "its own plan says so, no worker: {ask}");
    assert!(ask.contains("ls f-*"), "its own contract: {ask}");
    for quote in ["its attempts are used up", "is broken", "worker │"] {
        assert!(!ask.contains(quote), "{quote}: {ask}");
    }
    let view = fixture.status();
    let steps = view["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["state"], &steps[0]["failure"]), (&"waiting".into(), &serde_json::Value::Null));
    assert!(steps[1]["failure"].as_str().unwrap().contains("gamma is broken"), "{view}");
    assert_eq!(steps[2]["state"], "waiting", "{view}");
    let picture = fixture.planctl(&["status", "@last"]).out;
    assert!(picture.lines().any(|row| row.contains("✋ 3  Ask for help")), "{picture}");
    let why = fixture.planctl(&["why", "@last", "3"]).out;
    assert!(!why.contains("not started") && why.contains("waiting for you"), "{why}");
}

#[test]
fn a_contract_that_passes_with_another_exit_code_has_no_reason_for_a_failure() {
    let fixture = Fixture::new();
    let text = plan("P", "5 minutes", &[("One", "echo error: as it should; exit 3", "escalate")]);
    fixture.write("p.md", &text.replace("exit_code == 0", "exit_code == 3"));
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]).code, 0);
    let events = fixture.planctl(&["events"]).out;
    let ended = events.lines().find(|line| line.contains("ended: exit 3"));
    let ended = ended.unwrap_or_else(|| panic!("{events}"));
    assert!(ended.trim_end().ends_with("ended: exit 3"), "it passed: {ended}");

    // And one that exits with 0 where another code was expected failed, for a reason.
    let text = plan("P", "5 minutes", &[("One", "echo error: too well", "escalate")]);
    fixture.write("q.md", &text.replace("exit_code == 0", "exit_code == 3"));
    assert_eq!(fixture.planctl(&["run", "q.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
    let events = fixture.planctl(&["events"]).out;
    assert!(events.contains("ended: exit 0 \"error: too well\""), "{events}");
}
