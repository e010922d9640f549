//! Idioms of the DOT dialect with the real binary, real commands and a real database (DOT B4, B6, B7, B9, B13 to B17).

use serde_json::{Value, json};

use super::fixture::Fixture;

fn run(fixture: &Fixture, file: &str, more: &[&str]) -> (i32, String) {
    let words = [&["plan", "run", file, "--approve", "--no-wait", "--exec", "true"], more].concat();
    let said = fixture.planctl(&words);
    (said.code, format!("{}{}", said.out, said.err))
}

#[test]
fn dot_b13_a_person_reads_one_finding_of_a_kind_and_programs_read_all() {
    let fixture = Fixture::new();
    let boxes: String = (0..49).map(|at| format!("    n{at} [prompt=\"Do {at}.\"]\n")).collect();
    let chain: String = (0..49).map(|at| format!(" -> n{at}")).collect();
    fixture.write(
        "many.dot",
        &format!("digraph many {{\n    start\n{boxes}    exit\n    start{chain} -> exit\n}}\n"),
    );
    for words in [["graph", "check", "many.dot"], ["plan", "verify", "many.dot"]] {
        let said = fixture.planctl(&words);
        assert_eq!(said.code, 1, "{said:?}");
        assert_eq!(said.out.matches("error[P010]").count(), 1, "{}", said.out);
        assert!(said.out.contains("and 48 more: `n1` (4:5), `n2` (5:5)"), "{}", said.out);
        assert!(said.out.contains("all 49 at once: `node [contract=none]`"), "{}", said.out);
        assert!(said.out.contains("49 errors"), "{}", said.out);
        assert!(said.out.lines().count() < 25, "{} lines: {}", said.out.lines().count(), said.out);
        let report: Value =
            serde_json::from_str(&fixture.planctl(&[&words[..], &["--json"]].concat()).out).unwrap();
        let all = report["diagnostics"].as_array().unwrap();
        assert_eq!(all.iter().filter(|found| found["code"] == "P010").count(), 49);
    }
    let sarif = fixture.planctl(&["plan", "verify", "many.dot", "--format", "sarif"]).out;
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let all = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(all.iter().filter(|found| found["ruleId"] == "P010").count(), 49);
}

#[test]
fn dot_b9_a_file_in_dot_is_written_with_all_that_its_author_said() {
    let fixture = Fixture::new();
    fixture.write(
        "wild.dot",
        "// ours\ndigraph wild { rankdir=LR\n start subgraph cluster_a { label=\"A\" a [prompt=x, contract=true, timeout=900s, color=red, my.own=7] }\n exit start -> a -> exit [style=bold] }\n",
    );
    let written = fixture.planctl(&["graph", "render", "wild.dot", "--format", "dot"]);
    assert_eq!(written.code, 0, "{written:?}");
    for kept in [
        "// ours",
        "rankdir=LR",
        "subgraph cluster_a",
        "color=red",
        "\"my.own\"=7",
        "timeout=\"900s\"",
        "style=bold",
    ] {
        assert!(written.out.contains(kept), "{kept}: {}", written.out);
    }
    let json = fixture.planctl(&["graph", "render", "wild.dot", "--format", "json"]).out;
    assert!(json.lines().count() > 10, "each thing on a line of its own: {json}");
}

const ROUTED: &str = r#"digraph routed {
    start
    look [shape=parallelogram, tool_command="echo about to look; echo; cat verdict.txt"]
    mend [shape=parallelogram, tool_command="echo green > verdict.txt"]
    exit
    start -> look
    look -> exit [condition="context.tool.last_line=green"]
    look -> mend [condition="context.tool.last_line=red"]
    mend -> look
}
"#;

#[test]
fn dot_b4_the_last_line_of_a_command_chooses_the_way() {
    let fixture = Fixture::new();
    fixture.write("verdict.txt", "  red \n");
    fixture.write("routed.dot", ROUTED);
    let (code, said) = run(&fixture, "routed.dot", &[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fixture.read("verdict.txt"), "green\n");
    let all = ROUTED
        .replace("echo about to look; echo; cat", "cat")
        .replace("context.tool.last_line", "context.tool_stdout");
    fixture.write("verdict.txt", "red\n");
    fixture.write("printed.dot", &all);
    let (code, said) = run(&fixture, "printed.dot", &[]);
    assert_eq!((code, fixture.read("verdict.txt").as_str()), (0, "green\n"), "{said}");
}

const ASKS: &str = r#"digraph asks {
    start
    ship [shape=hexagon, label="Ship it?"]
    note [shape=hexagon, label="What shall the notes say?"]
    exit
    stop [shape=Msquare, result=failed]
    start -> ship
    ship -> note [label="[Y] Yes"]
    ship -> stop [label="[N] No"]
    note -> exit
}
"#;

#[test]
fn dot_b6_a_key_a_number_or_the_words_answer_and_one_way_without_a_name_takes_any_text() {
    for answer in ["Y", "y", "1", "yes", "[Y] Yes"] {
        let fixture = Fixture::new();
        fixture.write("asks.dot", ASKS);
        let (code, said) = run(&fixture, "asks.dot", &[]);
        assert_eq!(code, 3, "{said}");
        let wrong = fixture.planctl(&["approvals", "choose", &fixture.ask(), "ja"]);
        assert_ne!(wrong.code, 0, "a typo approves nothing: {wrong:?}");
        assert_eq!(fixture.planctl(&["approvals", "choose", &fixture.ask(), answer]).code, 0);
        assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
        let said = fixture.planctl(&["approvals", "choose", &fixture.ask(), "All is new & shiny."]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(fixture.json(&["plan", "status", "@last", "--json"])["state"], "done", "{answer}");
        let options: Vec<Value> =
            fixture.events_named("@last", "ask_answered").iter().map(|line| line["option"].clone()).collect();
        assert_eq!(options.last(), Some(&json!("All is new & shiny.")), "{answer}: {options:?}");
    }
    let fixture = Fixture::new();
    fixture.write("asks.dot", ASKS);
    let (code, said) = run(&fixture, "asks.dot", &["--auto-answer"]);
    assert_eq!(code, 0, "{said}");
}

const JUDGED: &str = r#"digraph judged {
    start
    check [shape=diamond, prompt="Say whether it is good, in good.txt.", contract="grep -q yes good.txt"]
    exit
    stop [shape=Msquare, result=failed]
    start -> check
    check -> exit [condition="outcome=success"]
    check -> stop [condition="outcome=fail"]
}
"#;

#[test]
fn dot_b7_a_diamond_with_a_prompt_is_worked_at_and_its_contract_routes() {
    for (word, code) in [("yes", 0), ("no", 1)] {
        let fixture = Fixture::new();
        fixture.write("judged.dot", JUDGED);
        let worker = format!("echo {word} > good.txt");
        let said =
            fixture.planctl(&["plan", "run", "judged.dot", "--approve", "--no-wait", "--exec", &worker]);
        assert_eq!(said.code, code, "{said:?}");
    }
}

const NAMED: &str = r#"digraph named {
    goal="Names are known"
    label="Named nodes"
    start
    write [prompt="Write.", contract="grep -qx write worker.txt"]
    route [shape=diamond]
    tell  [shape=parallelogram, tool_command="printf %s $PLANCTL_NODE > tool.txt"]
    exit
    start -> write -> route
    route -> tell [condition="outcome=success"]
    route -> exit [on=always]
    tell -> exit
}
"#;

#[test]
fn dot_b15_b16_nodes_are_named_to_workers_and_commands_and_the_goal_is_exported() {
    let fixture = Fixture::new();
    fixture.write("named.dot", NAMED);
    let worker = "echo $PLANCTL_NODE > worker.txt";
    let said = fixture.planctl(&["plan", "run", "named.dot", "--approve", "--no-wait", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("tool.txt"), "tell");
    let view = fixture.json(&["plan", "status", "@last", "--json"]);
    let roles: Vec<(&str, &str)> = view["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["node"].as_str().unwrap(), step["role"].as_str().unwrap()))
        .collect();
    assert_eq!(roles, [("write", "coder"), ("route", "harness"), ("tell", "harness")]);
    assert_eq!(fixture.planctl(&["plan", "export", "@last", "--to", "out"]).code, 0);
    let manifest: Value = serde_json::from_str(&fixture.read("out/manifest.json")).unwrap();
    assert_eq!((&manifest["name"], &manifest["goal"]), (&json!("Named nodes"), &json!("Names are known")));
    assert_eq!(manifest["run"], view["run"]);
}

const AROUND: &str = r#"digraph around {
    start
    inner [shape=house, stack.child_dotfile="inner.dot", stack.child_approval=inherit]
    exit
    start -> inner -> exit
}
"#;

const INNER: &str = r#"digraph inner {
    start
    ask [shape=hexagon, label="Ship it?"]
    exit
    stop [shape=Msquare, result=failed]
    start -> ask
    ask -> exit [label="[Y] Yes"]
    ask -> stop [label="[N] No"]
}
"#;

#[test]
fn dot_b17_questions_of_plans_within_a_plan_answer_themselves_too() {
    let fixture = Fixture::new();
    fixture.write("around.dot", AROUND);
    fixture.write("inner.dot", INNER);
    let (code, said) = run(&fixture, "around.dot", &[]);
    assert_eq!(code, 3, "without the flag a person is waited for: {said}");
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--auto-answer"]).code, 0);
    let (code, said) = run(&fixture, "around.dot", &["--again", "--auto-answer"]);
    assert_eq!(code, 0, "{said}");
    // The same where it waits for what comes.
    let waited = fixture.planctl(&[
        "plan",
        "run",
        "around.dot",
        "--approve",
        "--again",
        "--auto-answer",
        "--exec",
        "true",
    ]);
    assert_eq!(waited.code, 0, "{waited:?}");
}

#[test]
fn dot_b17_a_run_that_answers_itself_does_so_when_it_is_taken_up() {
    let text = INNER.replace(
        "start -> ask",
        "first [shape=parallelogram, tool_command=\"test -e ok\"]\n    start -> first -> ask",
    );
    let stopped = |flag: &[&str]| {
        let fixture = Fixture::new();
        fixture.write("inner.dot", &text);
        let (code, said) = run(&fixture, "inner.dot", flag);
        assert_eq!(code, 3, "a call that failed is nobody's choice: {said}");
        fixture.write("ok", "");
        assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
        fixture
    };
    let fixture = stopped(&["--auto-answer"]);
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--auto-answer=false"]).code, 3);
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 0);
    assert_eq!(stopped(&[]).planctl(&["plan", "resume", "@last", "--no-wait"]).code, 3);
}

#[test]
fn dot_b17_what_nobody_looks_at_is_named_where_questions_answer_themselves() {
    let fixture = Fixture::new();
    fixture.write(
        "trust.dot",
        "digraph trust { node [contract=none] start a [label=\"Mend it\"] b [label=\"Test it\"] exit start -> a -> b -> exit }",
    );
    let (code, said) = run(&fixture, "trust.dot", &["--auto-answer"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nobody is asked at step a \"Mend it\" and 1 more"), "{said}");
}
