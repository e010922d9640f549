//! Steps that workers propose are put into a plan, and the steps after them are numbered anew.

use planctl_lang::{Source, insert_step, parse};

const PLAN: &str = "---\ntype: plan\nstatus: in-progress\nowner: ann\n---\n\n# Two\n\n## Steps\n\n### 1. ✅ One\n\n**target:** coder\n**task:** do\n\
    **contract:**\n```shell\ntest -f a\n```\n\n### 2. Two\n\n**target:** coder\n**needs:** 1\n**task:** do\n**contract:**\n```shell\ntest -f b\n```\n\n\
    ### 3. Three\n\n**target:** coder\n**needs:** 2\n**task:** do\n**contract:**\n```shell\ntest -f c\n```\n";

const STEP: &str = "### 9. Between\n\n**target:** coder\n**task:** do\n**contract:**\n```shell\n# a comment\ntest -f x\n```\n";

fn inserted(plan: &str, after: u32, step: &str) -> Result<String, String> {
    insert_step(&Source::new("p.md", plan), after, step)
        .map_err(|found| found.into_iter().map(|found| found.message).collect::<Vec<_>>().join("; "))
}

fn titles(text: &str) -> Vec<String> {
    let (tree, found) = parse(&Source::new("p.md", text));
    assert!(found.iter().all(|found| found.level != planctl_lang::Severity::Error), "{found:?}");
    let needs = |step: &planctl_lang::StepTree| step.needs().map(|needs| needs.value);
    tree.steps
        .iter()
        .map(|step| {
            format!("{} {} {:?}", step.node.id.value, step.node.step_title(), needs(step).unwrap_or_default())
        })
        .collect()
}

#[test]
fn h51_a_step_comes_after_the_one_that_proposed_it_and_references_follow() {
    let text = inserted(PLAN, 1, STEP).unwrap();
    assert_eq!(titles(&text), ["1 One []", "2 Between []", "3 Two [2]", "4 Three [3]"]);
    assert!(text.contains("# a comment\ntest -f x"), "{text}");
    let last = inserted(PLAN, 3, STEP).unwrap();
    assert_eq!(titles(&last), ["1 One []", "2 Two [1]", "3 Three [2]", "4 Between []"]);
    let windows = inserted(&PLAN.replace('\n', "\r\n"), 1, STEP).unwrap();
    assert!(!windows.replace("\r\n", "").contains('\n'), "{windows:?}");
}

#[test]
fn h51_what_is_no_step_or_would_change_what_is_meant_is_refused() {
    assert_eq!(inserted(PLAN, 7, STEP).unwrap_err(), "the plan has no step 7");
    assert!(inserted(PLAN, 1, "please add a step").unwrap_err().contains("is the text of a step"));
    assert!(inserted(PLAN, 1, "").is_err());
    for unclear in
        ["1 -> 3 if steps.1.exit_code = 0", "1 -> 3 on always", "1, 2 -> 3 on success if outcome=success"]
    {
        let flow = format!("{PLAN}\n## Flow\n\n- {unclear}\n");
        let refused = inserted(&flow, 1, STEP).unwrap_err();
        assert_eq!(refused, "where the run goes from step 1 depends on more than its success", "{unclear}");
    }
}

/// Proposals that reach beyond their own step, and the words with which they are refused.
fn reaching() -> Vec<(String, &'static str)> {
    let contract = "**contract:**\n```shell\n";
    vec![
        (format!("{STEP}\n<!--"), "leaves a comment or a fence open"),
        (format!("{STEP}\n<!-- planctl -->\n\n<!-- and\n"), "leaves a comment or a fence open"),
        (
            format!("{STEP}\n{}", STEP.replace("### 9. Between", "## Again")),
            "exactly one step, and this is 2",
        ),
        (STEP.replace("**task:** do", "**for_each:** a, b\n**task:** do"), "exactly one step"),
        (format!("{STEP}\n## Flow\n\n- 1 -> 3\n"), "exactly one step, and this is 2"),
        (format!("{STEP}\n## Steps\n\n### 9. Again\n"), "exactly one step"),
        (STEP.replace(contract, "**contract:**\n~~~~~shell\n"), ""),
        (STEP.replace("# a comment\ntest -f x\n```\n", "test -f x\n"), ""),
        (format!("{STEP}\n<pre>\n"), ""),
        (format!("{STEP}\n- \n    - \n"), ""),
    ]
}

#[test]
fn hole_1_a_proposal_is_exactly_one_step_and_leaves_the_plan_around_it_as_it_was() {
    let own = titles(PLAN);
    for (proposal, why) in reaching() {
        match inserted(PLAN, 1, &proposal) {
            Err(refused) => assert!(refused.contains(why), "{proposal}: {refused}"),
            Ok(text) => {
                assert_eq!(why, "", "{proposal}: {text}");
                let (tree, _) = parse(&Source::new("p.md", text.as_str()));
                assert_eq!(tree.steps.len(), own.len() + 1, "{proposal}: {text}");
                let contract =
                    |at: usize| tree.steps[at].node.contract.as_ref().unwrap().command.trim().to_owned();
                assert_eq!(
                    [contract(0), contract(2), contract(3)],
                    ["test -f a", "test -f b", "test -f c"],
                    "{proposal}: {text}"
                );
            }
        }
        for (path, plan) in
            [("p.dot", DOT.replace("WAYS", "start -> one -> two -> done")), ("p.json", LIST.to_owned())]
        {
            let put = insert_step(&Source::new(path, plan), 1, &proposal);
            assert!(why.is_empty() || put.is_err(), "{path} {proposal}: {put:?}");
        }
    }
}

/// The lines of a plan's flow, and the conditions of its steps.
fn ways(text: &str) -> Vec<&str> {
    let flow = text.split("## Flow").skip(1).flat_map(str::lines);
    let whens = text.lines().filter(|line| line.starts_with("**when:**"));
    whens.chain(flow).filter(|line| !line.is_empty()).collect()
}

#[test]
fn h51_ways_and_conditions_follow_and_what_led_on_leads_on_from_the_new_step() {
    let plan =
        PLAN.replace("**needs:** 1\n", "").replace("**needs:** 2\n", "**when:** steps.2.exit_code=0\n");
    let flow = format!(
        "{plan}\n## Flow\n\n- 3 -> 2 on fail if steps.3.exit_code = 7 && steps.1.outcome=success\n- 2 -> 3\n- step 1, 2 -> done, 3\n"
    );
    let lost = format!("{flow}- 9 -> 1\n");
    assert_eq!(inserted(&lost, 1, STEP).unwrap_err(), "step 9 is named, and is not there");
    let first = inserted(&flow, 1, STEP).unwrap();
    assert_eq!(
        ways(&first),
        [
            "**when:** steps.3.exit_code=0",
            "- 4 -> 3 on fail if steps.4.exit_code = 7 && steps.1.outcome=success",
            "- 3 -> 4",
            "- 2, 3 -> done, 4",
        ]
    );
    let second = inserted(&flow, 2, STEP).unwrap();
    assert_eq!(
        ways(&second),
        [
            "**when:** steps.2.exit_code=0",
            "- 4 -> 2 on fail if steps.4.exit_code = 7 && steps.1.outcome=success",
            "- 3 -> 4",
            "- step 1, 3 -> done, 4"
        ]
    );
}

#[test]
fn h51_what_needed_the_step_needs_the_one_that_was_put_in() {
    let plan = PLAN.replace("**needs:** 2", "**needs:** 2, 1");
    let text = inserted(&plan, 1, STEP).unwrap();
    assert_eq!(
        titles(&text),
        ["1 One []", "2 Between []", "3 Two [2]", "4 Three [3, 2]"],
        "what follows waits for the new step"
    );
    let said = inserted(&plan, 1, &STEP.replace("**task:**", "**needs:** 1\n**task:**")).unwrap();
    assert_eq!(titles(&said), ["1 One []", "2 Between [1]", "3 Two [2]", "4 Three [3, 2]"]);
    let beside = inserted(&plan, 1, &STEP.replace("**task:**", "**needs:** none\n**task:**")).unwrap();
    assert_eq!(titles(&beside), ["1 One []", "2 Between []", "3 Two [1]", "4 Three [3, 1]"]);
}

const DOT: &str = "// The way of a fix.\ndigraph fix {\n    goal=\"a fix\"\n    start\n    one [contract=\"test -f a\"] // the cause\n    two [contract=\"test -f b\"]\n    done [shape=Msquare]\n    failed [shape=Msquare, result=failed]\n\n    WAYS\n}\n";

const WORK: &str =
    "### Clean up\n\n**target:** fixer\n**task:** tidy \"it\"\n**contract:**\n```shell\ntest -f x\n```\n";

/// Returns a plan of DOT with a step put in: the added text, and the lines of its ways.
fn dot(ways: &str, step: &str) -> Result<(String, Vec<String>), String> {
    let plan = DOT.replace("WAYS", ways);
    let before: Vec<&str> = plan.lines().collect();
    let text = insert_step(&Source::new("p.dot", plan.as_str()), 1, step)
        .map_err(|found| found.into_iter().map(|found| found.message).collect::<Vec<_>>().join("; "))?;
    for line in before.iter().take_while(|line| !line.is_empty()) {
        assert!(text.lines().any(|own| own == *line), "{line}: {text}");
    }
    let nodes = text.lines().filter(|line| line.contains("clean_up") && line.contains("shape"));
    let lines = text.lines().skip_while(|line| !line.is_empty()).filter(|line| line.contains("->"));
    Ok((nodes.collect::<Vec<_>>().join("\n"), lines.map(|line| line.trim().to_owned()).collect()))
}

#[test]
fn h51_a_plan_in_dot_gets_a_node_and_its_ways_lead_on_from_it() {
    let (node, ways) = dot("start -> one -> two -> done // all", WORK).unwrap();
    assert_eq!(
        node,
        "    clean_up [shape=box, label=\"Clean up\", on_fail=\"retry(2), then escalate\", prompt=\"tidy \\\"it\\\"\", target=fixer, contract=\"test -f x\"]"
    );
    assert_eq!(ways, ["start -> one -> clean_up -> two -> done // all"]);
    let refused = dot("start -> one -> two -> done", &format!("{WORK}\n{WORK}")).unwrap_err();
    assert_eq!(refused, "a proposal is exactly one step, and this is 2");
    for (said, becomes) in [
        // A condition and a label stay where they are asked; an edge for a failure stays.
        (
            "start -> one; one -> two [condition=\"outcome=success\", label=ok]; // on\n    one -> failed [condition=\"outcome=fail\"]; two -> done",
            &[
                "start -> one; one -> clean_up [condition=\"outcome=success\", label=ok]; // on",
                "clean_up -> two;",
                "one -> failed [condition=\"outcome=fail\"]; two -> done",
            ][..],
        ),
        // Of several ways the choice is made after the new node.
        (
            "start -> one\n    one -> two [weight=2]\n    one -> done\n    two -> done",
            &[
                "start -> one",
                "clean_up -> two [weight=2]",
                "one -> clean_up",
                "clean_up -> done",
                "two -> done",
            ],
        ),
        ("start -> one -> {two done}; two -> done", &["start -> one -> clean_up -> {two done}; two -> done"]),
        (
            "start -> one -> two -> done [weight=3]",
            &[
                "start -> one [weight=3]",
                "one -> clean_up [weight=3]",
                "two -> done [weight=3]",
                "clean_up -> two",
            ],
        ),
        (
            "start -> one; one -> two [on=always]\n    two -> done",
            &["start -> one; one -> clean_up [on=always]", "clean_up -> two [on=always]", "two -> done"],
        ),
        (
            "start -> one; one -> two; two -> done; two -> one [on=exhaust, loop_restart=true]",
            &[
                "start -> one; one -> clean_up -> two; two -> done; two -> one [on=exhaust, loop_restart=true]",
            ],
        ),
        (
            "start -> one\n    one -> two [loop_restart=true]\n    two -> done",
            &["start -> one", "clean_up -> two [loop_restart=true]", "one -> clean_up", "two -> done"],
        ),
    ] {
        assert_eq!(dot(said, WORK).unwrap().1, becomes, "{said}");
    }
    let short = insert_step(
        &Source::new("p.gv", "digraph { start a [contract=\"test -f a\"] exit start -> a -> exit }"),
        1,
        &WORK.replace("Clean up", "a"),
    );
    assert_eq!(
        short.unwrap(),
        "digraph { start a [contract=\"test -f a\"] exit\n    a_2 [shape=box, label=a, on_fail=\"retry(2), then escalate\", prompt=\"tidy \\\"it\\\"\", target=fixer, contract=\"test -f x\"] start -> a -> a_2 -> exit }"
    );
}

#[test]
fn h51_what_would_change_the_meaning_of_a_graph_is_refused() {
    for (said, why) in [
        (
            "start -> one; one -> two [condition=\"context.x=1\"]; one -> done; two -> done",
            "where the run goes from `one` depends on more than its success",
        ),
        (
            "start -> one; one -> two [label=a]; one -> done [label=b]; two -> done",
            "where the run goes from `one` depends on more than its success",
        ),
        ("start -> one; one -> two [on=fail]; two -> done", "no edge leads on from `one` when it passes"),
        (
            "start -> one; edge [label=x]; one -> two; two -> done",
            "what follows `one` is written so that no step can be put in without changing more",
        ),
    ] {
        assert_eq!(dot(said, WORK).unwrap_err(), why, "{said}");
    }
    let plain = "start -> one -> two -> done";
    assert!(dot(plain, "please").unwrap_err().contains("is the text of a step"));
    for own in ["**needs:** 1\n", "**type:** decision\n", "**when:** outcome=success\n"] {
        let step = WORK.replace("**task:**", &format!("{own}**task:**"));
        assert!(dot(plain, &step).unwrap_err().contains("has edges of its own"), "{own}");
    }
    let none = insert_step(&Source::new("p.dot", DOT.replace("WAYS", plain)), 9, WORK).unwrap_err();
    assert_eq!(none[0].message, "the plan has no step 9");
}

const LIST: &str = "{\n  \"name\": \"Fix\", // kept\n  \"steps\": [\n    {\n      \"title\": \"One\",\n      \"prompt\": \"do\",\n      \"contract\": \"test -f a\"\n    },\n    {\"title\": \"Two\", \"prompt\": \"do\", \"contract\": \"test -f b\", \"retry_target\": \"step_2\"}\n  ]\n}\n";

#[test]
fn h51_a_list_of_steps_in_json_gets_an_entry_and_names_of_later_ones_follow() {
    let text = insert_step(&Source::new("p.json", LIST), 1, WORK).unwrap();
    let entry = "    {\n      \"contract\": \"test -f x\",\n      \"on_fail\": \"retry(2), then escalate\",\n      \"prompt\": \"tidy \\\"it\\\"\",\n      \"target\": \"fixer\",\n      \"title\": \"Clean up\"\n    }";
    let expected = LIST
        .replace(
            "\n    },\n    {\"title\": \"Two\"",
            &format!("\n    }},\n{entry},\n    {{\"title\": \"Two\""),
        )
        .replace("step_2", "step_3");
    assert_eq!(text, expected);
    let last = insert_step(&Source::new("p.json", LIST), 2, WORK).unwrap();
    assert!(last.contains("\"step_2\"},\n    {\"contract\""), "{last}");
    let call = WORK.replace("**target:** fixer\n", "**type:** call\n");
    let refused = insert_step(&Source::new("p.json", LIST), 1, &call).unwrap_err();
    assert!(refused[0].message.contains("is not a task for an agent"), "{refused:?}");
}

#[test]
fn h51_a_graph_in_json_gets_a_node_and_its_edges_follow() {
    let plan = r#"{"graph": {
  "start": "one",
  "nodes": {
    "one": {"name": "One", "contract": "test -f a"},
    "two": {"name": "Two", "contract": "test -f b"},
    "done": {"type": "exit"}
  },
  "edges": [
    {"from": "one", "to": "two", "condition": "on_success"}, // on
    {"from": "one", "to": "one", "condition": "on_retry"},
    {"from": "two", "to": "done"}
  ]
}}"#;
    let node = r#"{"contract": "test -f x", "kind": "task", "on_fail": "retry(2), then escalate", "prompt": "tidy \"it\"", "target": "fixer", "title": "Clean up"}"#;
    let text = insert_step(&Source::new("p.json", plan), 1, WORK).unwrap();
    let expected = plan
        .replace("{\"type\": \"exit\"}", &format!("{{\"type\": \"exit\"}},\n    \"clean_up\": {node}"))
        .replace(
            "\"to\": \"two\", \"condition\": \"on_success\"}",
            "\"to\": \"clean_up\", \"condition\": \"on_success\"},\n    {\"condition\": \"on_success\", \"from\": \"clean_up\", \"to\": \"two\"}",
        );
    assert_eq!(text, expected);
    // An edge without a condition is always followed, and so are those that it becomes.
    let second = insert_step(&Source::new("p.json", plan), 2, WORK).unwrap();
    assert!(
        second.contains(
            "{\"from\": \"two\", \"to\": \"clean_up\"},\n    {\"condition\": \"always\", \"from\": \"clean_up\", \"to\": \"done\"}"
        ),
        "{second}"
    );
    let listed = r#"{"start": "a", "nodes": [{"id": "a", "contract": "test -f a"}, {"id": "z", "kind": "exit"}], "edges": [{"from": "a", "to": "z", "on": "success"}]}"#;
    let text = insert_step(&Source::new("p.json", listed), 1, WORK).unwrap();
    for words in [
        r#"{"id": "z", "kind": "exit"}, {"contract": "test -f x", "id": "clean_up""#,
        r#"{"from": "a", "to": "clean_up", "on": "success"}, {"from": "clean_up", "on": "success", "to": "z"}]"#,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
