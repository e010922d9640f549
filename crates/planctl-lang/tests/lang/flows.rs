//! Steps of markdown as a graph: order, `**needs:**`, `**when:**`, `**type:**`, `## Flow` (DESIGN 3).

use planctl_lang::workflow::{Kind, Language, Origin, Workflow, check, of_plan, to_dot, to_markdown};
use planctl_lang::{Code, Diagnostic, Source, parse};

fn plan(steps: &[&str], flow: &str) -> String {
    let mut text = "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Fix it\n\n## Steps\n".to_owned();
    for (at, said) in steps.iter().enumerate() {
        let number = at + 1;
        text += &format!(
            "\n### {number}. Step {number}\n\n**target:** coder\n{said}\n**task:**\nDo {number}.\n\n**contract:**\n```shell\ntest -f {number}\n```\nexit_code == 0\n"
        );
    }
    if flow.is_empty() { text } else { format!("{text}\n## Flow\n\n{flow}\n") }
}

fn read(text: &str) -> (Workflow, Vec<Diagnostic>) {
    let source = Source::new("plan.md", text);
    of_plan(&source, &parse(&source).0)
}

fn ways(steps: &[&str], flow: &str) -> Vec<String> {
    let text = plan(steps, flow);
    let (workflow, found) = read(&text);
    let errors: Vec<_> = found.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    shown(&workflow)
}

fn shown(workflow: &Workflow) -> Vec<String> {
    let edges = workflow.edges.iter().map(|edge| {
        let condition =
            edge.condition.as_ref().map(|condition| format!(" if {}", condition.value)).unwrap_or_default();
        format!("{}>{} {:?}{condition}", edge.from.value, edge.to.value, edge.on.value)
    });
    edges.collect()
}

fn refused(steps: &[&str], flow: &str) -> Vec<(Code, String, String)> {
    let text = plan(steps, flow);
    let (_, found) = read(&text);
    found
        .into_iter()
        .map(|found| {
            let span = found.spans[0].span;
            (found.code, text[span.start..span.end].to_owned(), found.message)
        })
        .collect()
}

#[test]
fn steps_without_a_word_run_in_order() {
    assert_eq!(ways(&["", "", ""], ""), ["start>1 Success", "1>2 Success", "2>3 Success", "3>done Success"]);
}

#[test]
fn needs_take_the_place_of_the_order() {
    assert_eq!(
        ways(&["", "**needs:** 1\n", "**needs:** 1\n", "**needs:** 2, 3\n"], ""),
        ["start>1 Success", "1>2 Success", "1>3 Success", "2>4 Success", "3>4 Success", "4>done Success"]
    );
    assert_eq!(
        ways(&["", "**needs:** 1\n", "**needs:** 1\n", ""], ""),
        ["start>1 Success", "1>2 Success", "1>3 Success", "2>done Success", "3>4 Success", "4>done Success"]
    );
    let unknown = refused(&["", "**needs:** 7\n"], "");
    assert!(
        unknown.contains(&(Code::P304, "7".into(), "step 2 needs step 7, which is not there".into())),
        "{unknown:?}"
    );
}

#[test]
fn the_lines_of_flow_are_edges() {
    let flow = "- 2 -> 4 on fail\n- 4 -> 2 on fail if steps.4.exit_code != 2\n- 3 -> 5, 6\n- 5 -> done\n* 6 → done\n";
    assert_eq!(
        ways(&["", "", "", "", "", ""], flow),
        [
            "start>1 Success",
            "1>2 Success",
            "2>3 Success",
            "4>5 Success",
            "2>4 Fail",
            "4>2 Fail if steps.4.exit_code!=2",
            "3>5 Success",
            "3>6 Success",
            "5>done Success",
            "6>done Success"
        ]
    );
    assert_eq!(
        ways(&["", ""], "- step 1 -> 2 if context.ready\n- 1 -> failed on exhaust\n- 1 -> done on always"),
        [
            "start>1 Success",
            "2>done Success",
            "1>2 Always if context.ready",
            "1>failed Exhaust",
            "1>done Always"
        ]
    );
}

#[test]
fn a_line_of_flow_that_cannot_be_read_is_refused_at_its_place() {
    let wrong = [
        ("- 2 to 3", Code::P015, "- 2 to 3"),
        ("- 1 -> 2 on failure", Code::P303, "failure"),
        ("- 1 -> 2 if", Code::P015, "- 1 -> 2 if"),
        ("- 1 -> 2 if x > 3", Code::P303, ">"),
        ("- 1 -> two", Code::P015, "two"),
        ("- -> 2", Code::P015, ""),
        ("- 1 -> 9 on fail", Code::P304, "9"),
        ("- 1 -> ", Code::P015, ""),
    ];
    for (line, code, marked) in wrong {
        let found = refused(&["", ""], line);
        assert!(found.iter().any(|(found, text, _)| *found == code && text == marked), "{line}: {found:?}");
    }
}

#[test]
fn a_condition_of_a_step_is_read() {
    assert!(refused(&["", "**when:** steps.1.exit_code != 2\n"], "").is_empty());
    let wrong = refused(&["", "**when:** steps.1.exit_code > 2\n"], "");
    assert_eq!(wrong[0].0, Code::P303);
    assert_eq!(wrong[0].1, ">");
}

#[test]
fn types_are_kinds_of_nodes() {
    let types = ["decision", "human", "call", "checkpoint", "join", "escalate", "review"];
    let kinds =
        [Kind::Decision, Kind::Human, Kind::Call, Kind::Checkpoint, Kind::Join, Kind::Escalate, Kind::Task];
    for (word, kind) in types.into_iter().zip(kinds) {
        let (workflow, _) = read(&plan(&[&format!("**type:** {word}\n")], ""));
        assert_eq!(workflow.nodes[1].kind.value, kind, "{word}");
    }
    let (call, _) = read(&plan(&["**type:** call\n"], ""));
    assert_eq!(call.nodes[1].attributes.tool_command.text().unwrap().value, "test -f 1");
    assert!(call.nodes[1].contracts.is_empty());
}

#[test]
fn a_loop_of_steps_that_nothing_bounds_is_found() {
    let found = refused(&["", ""], "- 2 -> 1 on fail");
    assert_eq!(
        found,
        [(Code::P309, "- 2 -> 1 on fail".into(), "nothing bounds the loop of steps 1 → 2 → 1".into())]
    );
    assert!(refused(&["", "**max_visits:** 3\n"], "- 2 -> 1 on fail").is_empty());
}

#[test]
fn a_plan_is_printed_as_dot_and_read_again() {
    let text = plan(
        &["", "**needs:** 1\n**when:** context.a=1\n", "**type:** call\n"],
        "- 3 -> 1 on fail if steps.1.exit_code=2",
    );
    let (workflow, _) = read(&text);
    let written = to_dot(&workflow);
    let source = Source::new("plan.dot", &written);
    let (again, found) = planctl_lang::workflow::read(&source, planctl_lang::workflow::Language::Dot);
    assert!(found.is_empty(), "{written}\n{found:?}");
    assert_eq!(to_dot(&again[0]), written);
    assert!(
        written
            .contains("step_3 -> step_1 [on=fail, condition=\"outcome=fail && steps.step_1.exit_code=2\"]"),
        "{written}"
    );
}

#[test]
fn what_escalates_is_no_part_of_the_order() {
    assert_eq!(
        ways(&["", "**type:** escalate\n", ""], "- 1 -> 2 on exhaust"),
        ["start>1 Success", "1>3 Success", "3>done Success", "1>2 Exhaust"]
    );
}

#[test]
fn a_condition_that_may_not_hold_leaves_the_order_as_it_is_but_for_decisions() {
    assert_eq!(
        ways(&["", ""], "- 1 -> done if context.ready"),
        ["start>1 Success", "1>2 Success", "2>done Success", "1>done Always if context.ready"]
    );
    assert_eq!(
        ways(&["**type:** decision\n", "", ""], "- 1 -> 2 if context.ready\n- 1 -> 3 on always"),
        ["start>1 Success", "2>3 Success", "3>done Success", "1>2 Always if context.ready", "1>3 Always"]
    );
}

#[test]
fn a_plan_is_written_as_markdown_and_read_as_the_same_graph() {
    let plans: [(&[&str], &str); 5] = [
        (&["", "", ""], ""),
        (&["", "**needs:** 1\n", "**needs:** 1\n", "**needs:** 2, 3\n"], ""),
        (&["", "", "", ""], "- 2 -> 4 on fail\n- 4 -> 2 on fail if steps.4.exit_code != 2\n- 3 -> done"),
        (
            &["", "**when:** context.a=\"b c\"\n", "**type:** escalate\n"],
            "- 1 -> 3 on exhaust\n- 2 -> 1 if context.again\n- 2 -> done",
        ),
        (
            &["**type:** call\n", "**type:** checkpoint\n", "**type:** human\n", "**max_visits:** 3\n"],
            "- 4 -> 2 on fail",
        ),
    ];
    for (steps, flow) in plans {
        let (workflow, _) = read(&plan(steps, flow));
        let written = to_markdown(&workflow);
        assert!(written.lost.is_empty(), "{:?}", written.lost);
        let (again, _) = read(&written.text);
        let mut both = [shown(&workflow), shown(&again)];
        both.iter_mut().for_each(|ways| ways.sort());
        assert_eq!(both[0], both[1], "{}", written.text);
        let told = |workflow: &Workflow| -> Vec<String> {
            let said = |node: &planctl_lang::workflow::NodeTree| {
                let said: Vec<_> =
                    node.attributes.iter().map(|(key, value)| format!("{key}={:?}", value.value)).collect();
                let contracts: Vec<_> =
                    node.contracts.iter().map(|contract| contract.command.value.clone()).collect();
                format!("{} {:?} {said:?} {contracts:?}", node.id.value, node.kind.value)
            };
            workflow.nodes.iter().map(said).collect()
        };
        assert_eq!(told(&workflow), told(&again), "{}", written.text);
        assert_eq!(to_markdown(&again).text, written.text);
    }
}

#[test]
fn a_graph_of_dot_is_written_as_a_plan_that_says_what_is_lost() {
    let text = "digraph fix { goal=\"Mend it\" start f [shape=component] a [prompt=\"A.\", contract=\"make a\", goal_gate=true] \
                b [prompt=\"B.\", contract=\"make b\"] j [shape=tripleoctagon] exit start -> f f -> a -> j f -> b -> j j -> exit \
                a -> a [on=retry, label=again] }";
    let (workflows, _) = check(&Source::new("fix.dot", text), Language::Dot);
    let written = to_markdown(&workflows[0]);
    assert_eq!(written.lost, ["`goal_gate` of `a`"]);
    let (again, found) = read(&written.text);
    assert!(found.iter().all(|found| !found.is_error()), "{}\n{found:?}", written.text);
    assert_eq!(
        shown(&again),
        ["2>3 Success", "3>done Success", "start>1 Success", "start>2 Success", "1>3 Success", "1>1 Retry"],
        "{}",
        written.text
    );
}

#[test]
fn the_label_of_an_edge_is_read_written_and_carried_to_dot_and_back() {
    let steps: &[&str] = &["", "**type:** human\n", "", ""];
    let flow = "- 2 -> 3 \"Keep the old names -> if you must\"\n- 2 -> 4 \"Say \\\"no\\\", on C:\\\\\"\n- 2 -> 1 \"Not yet\" on fail\n- 3 -> done";
    let text = plan(steps, flow);
    let (workflow, found) = read(&text);
    assert!(found.iter().all(|found| !found.is_error()), "{found:?}");
    let labels = |workflow: &Workflow| -> Vec<(String, String)> {
        let edges = workflow.edges.iter();
        edges.filter_map(|edge| Some((edge.to.value.clone(), edge.label.as_ref()?.value.clone()))).collect()
    };
    let said = [("3", "Keep the old names -> if you must"), ("4", "Say \"no\", on C:\\"), ("1", "Not yet")];
    let said: Vec<(String, String)> =
        said.iter().map(|(to, label)| ((*to).to_owned(), (*label).to_owned())).collect();
    assert_eq!(labels(&workflow), said);

    let written = to_markdown(&workflow);
    assert_eq!(written.lost, Vec::<String>::new());
    let (again, _) = read(&written.text);
    assert_eq!(labels(&again), said, "{}", written.text);

    let dot = to_dot(&workflow);
    let (graphs, found) = check(&Source::new("plan.dot", &dot), Language::Dot);
    assert!(found.iter().all(|found| !found.is_error()), "{found:?}\n{dot}");
    let back = to_markdown(&graphs[0]);
    assert_eq!(labels(&read(&back.text).0), said, "{dot}\n{}", back.text);
    assert_eq!(back.lost, Vec::<String>::new());
}

#[test]
fn a_label_that_is_no_label_of_one_edge_is_refused() {
    let steps: &[&str] = &["**type:** human\n", "", ""];
    for (line, why) in [
        ("- 1 -> 2, 3 \"Both\"", "a label names one edge, and the line leads to several steps"),
        ("- 1 -> 2 \"Open", "the label has no closing quote"),
        ("- 1 -> 2 \" \"", "the label is empty"),
        ("- 1 -> 2 \"One\" \"Two\"", "a step's number was expected"),
    ] {
        let found = refused(steps, line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].2.ends_with(why), "{line}: {found:?}");
    }
}

#[test]
fn a_glob_with_braces_is_one_entry_when_a_plan_is_written_again() {
    let (workflow, _) = read(&plan(&["**changes:**\n- src/{a,b}.rs\n- docs/**\n"], ""));
    let written = to_markdown(&workflow).text;
    assert!(written.contains("**changes:**\n- src/{a,b}.rs\n- docs/**\n"), "{written}");
}

#[test]
fn what_nobody_wrote_says_why_it_is_there() {
    let (workflow, _) = read(&plan(&["", "**needs:** 1\n", "**needs:** 1\n"], "- 3 -> 1 on fail"));
    let origins: Vec<_> = workflow
        .edges
        .iter()
        .map(|edge| (edge.from.value.as_str(), edge.to.value.as_str(), edge.origin))
        .collect();
    let expected = [
        ("start", "1", Origin::Order),
        ("1", "2", Origin::Needs),
        ("1", "3", Origin::Needs),
        ("2", "done", Origin::Order),
        ("3", "done", Origin::Order),
        ("3", "1", Origin::Written),
    ];
    assert_eq!(origins, expected);
    let implied: Vec<&str> = workflow
        .nodes
        .iter()
        .filter(|node| node.origin != Origin::Written)
        .map(|node| node.id.value.as_str())
        .collect();
    assert_eq!(implied, ["start", "done"]);
}
