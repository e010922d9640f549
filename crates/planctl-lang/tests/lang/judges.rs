//! Judges in plans: read in every language, held to the configuration, and never alone unless that is allowed (P-71).

use planctl_engine::{Contract, Judge};
use planctl_lang::workflow::{of_graph, to_json};
use planctl_lang::{Code, Facts, Judges, Levels, Severity, Source, digest_of_text, format, verify};

use crate::sample::{Expected, expect_with, facts, found_with, with};

const QUESTION: &str = "Is it short?\n\nDoes every line say something?";

fn judged() -> String {
    with(
        "exit_code == 0\n**on_fail:** retry(2)",
        &format!("exit_code == 0\n\n**judge:**\n{QUESTION}\n\n**judge_by:** strict\n\n**on_fail:** retry(2)"),
    )
}

fn alone() -> String {
    let contract = "**contract:**\n```shell\ntest -f one.txt\n```\nexit_code == 0\n";
    judged().replacen(contract, "", 1)
}

fn told(names: &[&str], alone: bool) -> Facts {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Facts { judges: Some(Judges { names, alone }), ..facts() }
}

fn contract(file: &str, text: &str, facts: &Facts, node: &str) -> Contract {
    let verified = verify(&Source::new(file, text), facts, &Levels::default());
    let graph = verified.graph.unwrap_or_else(|| panic!("{:#?}", verified.diagnostics));
    graph.task(&node.into()).expect("it is a task").contract.clone()
}

fn judge() -> Option<Box<Judge>> {
    let (question, by) = (QUESTION.to_owned(), "strict".to_owned());
    Some(Box::new(Judge { digest: digest_of_text(QUESTION), question, by, approval: false }))
}

#[test]
fn p_71_a_judge_is_read_beside_the_contract_in_markdown_json_and_dot() {
    let facts = told(&["strict"], false);
    let of_markdown = contract("plan.md", &judged(), &facts, "1");
    assert_eq!((of_markdown.command.as_str(), of_markdown.judge), ("test -f one.txt", judge()));
    assert!(found_with(&judged(), &facts).is_empty(), "{:?}", found_with(&judged(), &facts));
    let dot = format!(
        "digraph g {{ s [shape=Mdiamond]; e [shape=Msquare]; a [prompt=\"Do it\", contract=\"test -f one.txt\", \
         judge=\"{}\", judge_by=strict]; s -> a -> e; }}",
        QUESTION.replace('\n', "\\n")
    );
    assert_eq!(contract("plan.dot", &dot, &facts, "a").judge, judge());
    let json = serde_json::json!({"name": "g", "graph": {
        "start": "s",
        "nodes": {
            "s": {"type": "start"},
            "a": {"type": "task", "prompt": "Do it", "contract": "test -f one.txt", "judge": QUESTION, "judge_by": "strict"},
            "e": {"type": "exit"},
        },
        "edges": [
            {"from": "s", "to": "a", "condition": "on_success"},
            {"from": "a", "to": "e", "condition": "on_success"},
        ],
    }});
    assert_eq!(contract("plan.json", &json.to_string(), &facts, "a").judge, judge());
}

#[test]
fn p_71_a_judge_alone_is_an_error_with_the_way_out_and_a_warning_where_it_is_allowed() {
    let guarded = judged().replacen("**judge:**", "**guard:** yes\n\n**judge:**", 1);
    for (text, line) in [(alone(), 23), (guarded, 30)] {
        let expected =
            Expected { code: Code::P123, level: Severity::Error, says: "no check but a judge", line };
        let finding = expect_with(&text, &told(&["strict"], false), &expected);
        assert!(finding.help.expect("a way out").contains("[judges] alone = true"));
    }
    let allowed =
        Expected { code: Code::P123, level: Severity::Warning, says: "a judge alone decides", line: 23 };
    expect_with(&alone(), &told(&["strict"], true), &allowed);
    let contract = contract("plan.md", &alone(), &told(&["strict"], true), "1");
    assert!(contract.is_judged_alone());
}

#[test]
fn p_71_a_judge_that_nobody_configured_is_refused_and_a_near_name_is_proposed() {
    let says = |names: &[&str]| {
        let expected =
            Expected { code: Code::P124, level: Severity::Error, says: "no judge `strict`", line: 32 };
        expect_with(&judged(), &told(names, false), &expected).help.expect("a way out")
    };
    assert!(says(&["strickt"]).contains("did you mean `strickt`?"));
    assert!(says(&[]).contains("[judges] by = [\"strict\"]"));
    let unnamed = judged().replacen("**judge_by:** strict\n\n", "", 1);
    assert!(found_with(&unnamed, &told(&["strict"], false)).is_empty());
    let expected = Expected { code: Code::P124, level: Severity::Error, says: "nobody is named", line: 28 };
    expect_with(&unnamed, &told(&[], false), &expected);
    let idle = with("**on_fail:** escalate", "**judge_by:** strict\n**on_fail:** escalate");
    let found = found_with(&idle, &told(&["strict"], false));
    assert_eq!(found.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::P015]);
}

#[test]
fn p_71_the_form_of_a_plan_keeps_the_question_and_who_is_asked() {
    let text = format(&Source::new("plan.md", &*judged()));
    let facts = told(&["strict"], false);
    assert_eq!(contract("plan.md", &text, &facts, "1").judge, judge());
    let graph =
        verify(&Source::new("plan.md", &*text), &facts, &Levels::default()).graph.expect("it is a plan");
    let lifted = to_json(&of_graph(&graph)).to_string();
    assert_eq!(contract("plan.json", &lifted, &facts, "1").judge, judge(), "{lifted}");
}
