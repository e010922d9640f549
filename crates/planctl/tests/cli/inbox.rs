//! The inbox: its order, and what it says of each ask.

use serde_json::{Value, json};

use crate::fixture::{Fixture, plan};

/// A plan of this many steps, of which the first fails.
fn failing(title: &str, steps: usize) -> String {
    let steps: Vec<_> = (0..steps).map(|_| ("Step", "test -e nowhere", "escalate")).collect();
    plan(title, "5 minutes", &steps)
}

/// Hands a plan in; its ask waits.
fn handed_in(fixture: &Fixture, name: &str, steps: usize) {
    fixture.write(&format!("{name}.md"), &failing(name, steps));
    let said = fixture.planctl(&["plan", "run", &format!("{name}.md"), "--no-wait", "--simulate"]);
    assert_eq!(said.code, 3, "{said:?}");
}

/// Returns the open asks in their order: run, and what it blocks.
fn inbox(fixture: &Fixture) -> Vec<(String, Value)> {
    let list = fixture.json(&["approvals", "--json"]);
    let asks = list["asks"].as_array().unwrap().iter();
    asks.map(|ask| (ask["run"].as_str().unwrap().to_owned(), ask["blocks"].clone())).collect()
}

fn blocks(runs: u64, steps: u64) -> Value {
    json!({ "runs": runs, "steps": steps })
}

#[test]
fn the_inbox_lists_first_what_blocks_most_runs_then_most_steps_then_what_is_oldest() {
    let fixture = Fixture::new();
    fixture.write("one.md", &failing("one", 1));
    let said = fixture.planctl(&["plan", "run", "one.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    handed_in(&fixture, "two", 2);
    handed_in(&fixture, "three", 3);
    handed_in(&fixture, "pair", 2);
    let (one, two, three) = (blocks(1, 1), blocks(1, 2), blocks(1, 3));
    let in_order = [("three-1", &three), ("two-1", &two), ("pair-1", &two), ("one-1", &one)];
    let in_order = in_order.map(|(run, blocks)| (run.to_owned(), blocks.clone()));
    assert_eq!(inbox(&fixture), in_order);

    // Two runs wait until the first one leaves the workspace.
    assert_eq!(fixture.planctl(&["approve", "--all", "--run", "two-1"]).code, 0);
    assert_eq!(fixture.planctl(&["approve", "--all", "--run", "pair-1"]).code, 0);
    assert_eq!(inbox(&fixture), [("one-1".to_owned(), blocks(3, 1)), ("three-1".to_owned(), three)]);
    let shown = fixture.planctl(&["approvals"]).out;
    let first = shown.lines().nth(1).unwrap_or_default();
    assert!(first.contains("one-1") && first.contains("  1 step and 2 other runs  "), "{shown}");
    let shown = fixture.planctl(&["approvals", "show", "1"]).out;
    assert!(!shown.contains("blocks"), "an ask that is answered blocks nothing: {shown}");
    let shown = fixture.planctl(&["approvals", "show", "2"]).out;
    assert!(shown.contains("  blocks 1 step and 2 other runs\n"), "{shown}");
}

#[test]
fn an_ask_blocks_the_steps_behind_it_those_of_the_plan_around_it_and_none_beside_it() {
    let fixture = Fixture::new();
    let text = plan(
        "Apart",
        "5 minutes",
        &[
            ("Left", "test -e nowhere", "escalate"),
            ("Right", "true", "escalate"),
            ("After", "true", "escalate"),
        ],
    );
    let text = text
        .replace("## Steps", "**parallel:** 2\n\n## Steps")
        .replace("### 2. Right\n", "### 2. Right\n\n**needs:** none\n")
        .replace("### 3. After\n", "### 3. After\n\n**needs:** 1\n");
    fixture.write("apart.md", &text);
    let said = fixture.planctl(&["plan", "run", "apart.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(inbox(&fixture), [("apart-1".to_owned(), blocks(1, 2))], "the second step waits for nobody");
    assert_eq!(fixture.planctl(&["cancel", "apart-1"]).code, 0);

    fixture.write("inner.md", &failing("inner", 2));
    fixture.write(
        "outer.dot",
        "digraph outer { start [shape=Mdiamond]; done [shape=Msquare]; \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit]; \
         work [prompt=\"Work.\", target=coder, contract=\"true\"]; start -> inner -> work -> done }",
    );
    let said = fixture.planctl(&["plan", "run", "outer.dot", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(inbox(&fixture), [("inner-1".to_owned(), blocks(2, 4))]);
}
