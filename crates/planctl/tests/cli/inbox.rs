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

/// Says of an ask what its page tells, and types one of the commands that it lists, with these words in place of the dots.
fn answered_from_its_page(fixture: &Fixture, verb: &str, words: &str, tells: &[&str]) {
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    for tell in tells.iter().chain(&["  blocks "]) {
        assert!(page.contains(tell), "{tell:?} is not in\n{page}");
    }
    let listed = format!("planctl approvals {verb} {ask}");
    let (_, commands) =
        page.split_once("\nnext:\n").unwrap_or_else(|| panic!("it lists no command:\n{page}"));
    let line = commands.lines().map(str::trim).find(|line| line.starts_with(&listed));
    let line = line.unwrap_or_else(|| panic!("{listed:?} is not in\n{page}"));
    let command =
        line.split("  ").next().unwrap().replace("--tokens N | --cost USD | --time DUR", "--tokens 2k");
    let typed: Vec<&str> =
        command.split_whitespace().skip(1).map(|word| if word == "'…'" { words } else { word }).collect();
    let said = fixture.planctl(&typed);
    assert_eq!(said.code, 0, "{typed:?}: {said:?}");
    let page = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(page.contains(&format!("\nanswered {verb} by ann after ")), "{page}");
    assert!(!page.contains("\nnext:\n") && !page.contains("  blocks "), "{page}");
}

/// A run of one step that stops at an ask.
fn stopped(steps: &[(&str, &str, &str)], budget: &str, worker: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("check.sh", "test -e fixed\n");
    fixture.write("p.md", &plan("Stopped", budget, steps));
    let said = fixture.run(worker);
    assert!(matches!(said.code, 3 | 6), "{said:?}");
    fixture
}

/// Goes on with the run of an answered ask, which ends well.
fn ends_well(fixture: &Fixture) {
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn a_plan_is_understood_and_approved_from_its_page_alone() {
    let fixture = Fixture::new();
    handed_in(&fixture, "p", 1);
    let tells = ["approve 1 step of \"p\"", "### 1. Step", "test -e nowhere"];
    answered_from_its_page(&fixture, "approve", "", &tells);
}

#[test]
fn an_escalation_is_understood_and_answered_from_its_page_alone() {
    let worker = "case $(cat) in *force*) touch done-1;; esac";
    let fixture =
        stopped(&[("One", "test -e done-1 || { echo no done-1; false; }", "escalate")], "5 minutes", worker);
    let tells = [
        "step 1 \"One\"",
        "its attempts are used up",
        "contract, which passes with exit code 0",
        "contract │ no done-1",
        "attempt 1",
    ];
    answered_from_its_page(&fixture, "retry", "force", &tells);
    ends_well(&fixture);
}

#[test]
fn a_changed_protected_file_is_understood_and_accepted_from_its_page_alone() {
    let worker = "touch fixed; echo '# formatted' >>check.sh";
    let fixture = stopped(&[("Mend", "bash check.sh", "escalate")], "5 minutes", worker);
    let tells = ["protected file check.sh changed", "+# formatted", "name check.sh in the step's task"];
    answered_from_its_page(&fixture, "allow", "", &tells);
    ends_well(&fixture);
}

#[test]
fn a_budget_is_understood_and_raised_from_its_page_alone() {
    let worker = r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","usage":{"input_tokens":900,"output_tokens":100}}' > $PLANCTL_RESULT_FILE"#;
    let steps = [("One", "test -e done-1", "escalate"), ("Two", "test -e done-2", "escalate")];
    let fixture = stopped(&steps, "max 1500 tokens, 5 minutes", worker);
    let tells =
        ["step 2 \"Two\"", "1000 tokens used of 1500 tokens, at least 250 tokens more needed; 1 step left"];
    answered_from_its_page(&fixture, "raise", "", &tells);
    ends_well(&fixture);
}

#[test]
fn the_budget_of_a_day_is_understood_and_raised_from_its_page_alone() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[budget]\nper_day = \"900 tokens\"\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let worker = r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","usage":{"input_tokens":900,"output_tokens":100}}' > $PLANCTL_RESULT_FILE"#;
    let steps = [("One", "test -e done-1", "escalate"), ("Two", "test -e done-2", "escalate")];
    fixture.write("p.md", &plan("Spend", "max 50k tokens, 5 minutes", &steps));
    let said = fixture.run(worker);
    assert_eq!(said.code, 6, "{said:?}");
    let tells = [
        "today's budget of this project is used up (1000 tokens of 900 tokens)",
        "raise adds to today's budget alone; it goes on by itself at ",
    ];
    answered_from_its_page(&fixture, "raise", "", &tells);
    ends_well(&fixture);
}

#[test]
fn a_workers_question_is_understood_and_answered_from_its_page_alone() {
    let worker = r#"case $(cat) in *blue*) echo blue > colour;; *) echo '{"planctl":"result/1","outcome":"needs_input","question":"Which colour?"}' > $PLANCTL_RESULT_FILE;; esac"#;
    let fixture = stopped(&[("Paint", "grep -q blue colour", "escalate")], "5 minutes", worker);
    let tells = ["step 1 \"Paint\" asks:", "coder │ Which colour?"];
    answered_from_its_page(&fixture, "answer", "blue", &tells);
    ends_well(&fixture);
}

#[test]
fn a_choice_of_the_plan_is_understood_and_made_from_its_page_alone() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Choose\n\n**Budget:** 5 minutes\n\n## Steps\n\n### 1. Old names\n\n\
         **type:** human\n**task:**\nShall they stay?\n\n### 2. Add aliases\n\n**type:** call\n**contract:**\n```bash\ntouch \
         kept\n```\nexit_code == 0\n\n### 3. Rename\n\n**type:** call\n**contract:**\n```bash\ntouch renamed\n```\nexit_code == 0\n\n\
         ## Flow\n\n- 1 -> 2 \"Keep\"\n- 1 -> 3 \"Rename\"\n- 2 -> done\n- 3 -> done\n",
    );
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    let tells = ["step 1 \"Old names\": Shall they stay?", "→ step 2 \"Add aliases\"", "→ step 3 \"Rename\""];
    answered_from_its_page(&fixture, "choose", "", &tells);
    ends_well(&fixture);
}

#[test]
fn a_proposed_step_is_understood_and_rejected_from_its_page_alone() {
    let worker = r####"touch done-$PLANCTL_STEP; [ -e said ] && exit 0; touch said
echo '{"planctl": "result/1", "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0"}' > $PLANCTL_RESULT_FILE"####;
    let fixture = stopped(&[("One", "test -e done-1", "escalate")], "5 minutes", worker);
    let tells = ["proposes a further step", "what it would change of the plan", "coder │ +### 2. Between"];
    answered_from_its_page(&fixture, "reject", "", &tells);
    ends_well(&fixture);
}
