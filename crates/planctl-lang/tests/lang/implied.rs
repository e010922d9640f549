//! Plans in markdown that branch, as the engine runs them: forks, joins and decisions that their steps imply.

use std::collections::BTreeSet;

use planctl_engine::{Graph, NodeId, NodeKind};
use planctl_lang::{Code, Facts, Levels, Source, verify};

/// A plan whose steps have these fields, in place of a task and a contract of no interest.
fn plan(steps: &[&str], flow: &str) -> String {
    let mut text =
        "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# T\n\n**parallel:** 3\n\n## Steps\n".to_owned();
    for (number, fields) in (1..).zip(steps) {
        let kind = fields.contains("**type:**");
        text.push_str(&format!("\n### {number}. Part {number}\n\n"));
        if !kind {
            text.push_str("**target:** coder\n");
        }
        text.push_str(fields);
        text.push_str("\n**task:**\nDo it.\n\n");
        if !kind || fields.contains("call") {
            text.push_str(&format!("**contract:**\n```bash\ntest -f out/{number}\n```\nexit_code == 0\n"));
        }
    }
    if !flow.is_empty() {
        text.push_str(&format!("\n## Flow\n\n{flow}\n"));
    }
    text
}

fn one_at_a_time(steps: &[&str]) -> String {
    plan(steps, "").replace("**parallel:** 3\n\n", "")
}

fn findings(text: &str) -> Vec<(Code, String)> {
    let found = verify(&Source::new("plan.md", text), &Facts::default(), &Levels::default());
    let found =
        found.diagnostics.into_iter().filter(|finding| !matches!(finding.code, Code::P020 | Code::P402));
    found.map(|finding| (finding.code, finding.message)).collect()
}

fn graph(steps: &[&str], flow: &str) -> Graph {
    let text = plan(steps, flow);
    let found = verify(&Source::new("plan.md", &text), &Facts::default(), &Levels::default());
    found.graph.unwrap_or_else(|| panic!("{text}\n{:?}", found.diagnostics))
}

/// The edges of a graph, less those to the person who is asked.
fn ways(graph: &Graph) -> BTreeSet<String> {
    let shown = graph.edges().iter().filter(|edge| edge.to.as_str() != "ask").map(|edge| {
        let when = edge.when.as_ref().map(|when| format!(" if {when}")).unwrap_or_default();
        let label = edge.label.as_ref().map(|label| format!(" [{label}]")).unwrap_or_default();
        format!("{} -> {} {:?}{label}{when}", edge.from, edge.to, edge.on)
    });
    shown.collect()
}

fn set(ways: &[&str]) -> BTreeSet<String> {
    ways.iter().map(|way| (*way).to_owned()).collect()
}

fn fork_join(graph: &Graph, fork: &str) -> Option<String> {
    let NodeKind::Fork(fork) = &graph.node(&NodeId::new(fork)).expect("a fork").kind else {
        panic!("a fork")
    };
    fork.join.as_ref().map(|join| join.as_str().to_owned())
}

#[test]
fn h_54_p_70_steps_that_need_the_same_one_run_side_by_side_and_meet_where_both_are_needed() {
    let graph = graph(&["", "**needs:** 1", "**needs:** 1", "**needs:** 2, 3"], "");
    assert_eq!(
        ways(&graph),
        set(&[
            "start -> 1 Always",
            "1 -> fork-1 Success",
            "fork-1 -> 2 Success",
            "fork-1 -> 3 Success",
            "2 -> join-4 Success",
            "3 -> join-4 Success",
            "join-4 -> 4 Success",
            "4 -> done Success",
        ])
    );
    assert_eq!(fork_join(&graph, "fork-1").as_deref(), Some("join-4"));
    assert_eq!(graph.limits().parallel, 3);
}

#[test]
fn parallel_in_a_plan_whose_steps_follow_one_another_is_told_to_change_nothing() {
    let idle = |text: &str| findings(text).into_iter().any(|(_, message)| message.contains("**parallel:**"));
    assert!(idle(&plan(&["", ""], "")));
    for steps in [&["", "**needs:** none"][..], &["", "**needs:** 1", "**needs:** 1"], &[""]] {
        assert!(!idle(&plan(steps, "")), "{steps:?}");
    }
    assert!(!idle(&plan(&["", ""], "- 1 -> 2")));
}

#[test]
fn steps_without_needs_begin_at_once_and_the_end_waits_for_all() {
    let graph = graph(&["**needs:** none", "**needs:** none", "**needs:** none"], "");
    assert_eq!(
        ways(&graph),
        set(&[
            "start -> fork-start Always",
            "fork-start -> 1 Success",
            "fork-start -> 2 Success",
            "fork-start -> 3 Success",
            "1 -> join-done Success",
            "2 -> join-done Success",
            "3 -> join-done Success",
            "join-done -> done Success",
        ])
    );
}

#[test]
fn needs_that_cross_are_awaited_each_by_itself() {
    // 3 needs 1 and 2, 4 needs 2 alone: no fork has all of a join.
    let graph = graph(&["**needs:** none", "**needs:** none", "**needs:** 1, 2", "**needs:** 2"], "");
    assert_eq!(fork_join(&graph, "fork-start"), None);
    assert_eq!(fork_join(&graph, "fork-2"), None);
    assert_eq!(graph.branches_into(&NodeId::new("join-3")), 2);
    assert_eq!(graph.branches_into(&NodeId::new("join-done")), 2);
}

#[test]
fn a_long_ladder_of_needs_is_sound_and_verified_in_little_time() {
    let rungs: Vec<String> = (1..=600)
        .map(|at| if at > 2 { format!("**needs:** {}, {}", at - 1, at - 2) } else { String::new() })
        .collect();
    let steps: Vec<&str> = rungs.iter().map(String::as_str).collect();
    let graph = graph(&steps, "");
    assert_eq!(graph.branches_into(&NodeId::new("join-600")), 2);
}

#[test]
fn a_step_that_needs_two_of_a_row_waits_for_both() {
    let graph = graph(&["", "", "**needs:** 1, 2"], "");
    assert!(ways(&graph).contains("fork-1 -> join-3 Success"), "{:?}", ways(&graph));
    assert!(ways(&graph).contains("2 -> join-3 Success"));
}

#[test]
fn a_condition_leads_to_its_step_or_past_it() {
    let graph = graph(&["", "**when:** steps.1.exit_code != 0", ""], "");
    assert_eq!(
        ways(&graph),
        set(&[
            "start -> 1 Always",
            "1 -> when-2 Success",
            "when-2 -> 2 Success if steps.1.exit_code!=0",
            "when-2 -> 2 Fail if steps.1.exit_code!=0",
            "when-2 -> past-2 Always",
            "2 -> past-2 Success",
            "past-2 -> 3 Always",
            "3 -> done Success",
        ])
    );
}

#[test]
fn a_conditional_branch_still_comes_to_its_join() {
    let steps = ["", "**needs:** 1\n**when:** steps.1.output = \"yes\"", "**needs:** 1", "**needs:** 2, 3"];
    let graph = graph(&steps, "");
    assert_eq!(fork_join(&graph, "fork-1").as_deref(), Some("join-4"));
}

#[test]
fn lines_of_flow_say_what_follows_a_failure_in_place_of_the_default() {
    let graph = graph(
        &["", "", "**on_fail:** retry(1), then escalate"],
        "- 2 -> 1 on fail\n- 3 -> failed on fail if steps.3.exit_code = 7",
    );
    let ways = ways(&graph);
    assert!(ways.contains("2 -> 1 Fail"), "{ways:?}");
    assert!(ways.contains("3 -> failed Fail if steps.3.exit_code=7"));
    let asks: Vec<&str> = graph
        .edges()
        .iter()
        .filter(|edge| edge.to.as_str() == "ask")
        .map(|edge| edge.from.as_str())
        .collect();
    assert_eq!(asks, ["1", "3"], "2 has a way of its own");
}

#[test]
fn a_person_is_asked_whether_it_is_done_or_which_way_to_go() {
    let graph = graph(&["", "**type:** human", "", ""], "- 2 -> 3, 4\n- 2 -> 1 on fail\n- 3 -> done");
    let NodeKind::Human(question) = &graph.node(&NodeId::new("2")).expect("it").kind else {
        panic!("a question")
    };
    assert_eq!(question.options, ["3", "4", "not done"]);
    let labelled = self::graph(
        &["", "**type:** human", "", ""],
        "- 2 -> 3 \"Keep them\"\n- 2 -> 4\n- 2 -> 1 \"Ask again\" on fail\n- 3 -> done",
    );
    let NodeKind::Human(question) = &labelled.node(&NodeId::new("2")).expect("it").kind else {
        panic!("a question")
    };
    assert_eq!(question.options, ["Keep them", "4", "Ask again"]);
    let alone = self::graph(&["", "**type:** human", ""], "");
    let NodeKind::Human(question) = &alone.node(&NodeId::new("2")).expect("it").kind else {
        panic!("a question")
    };
    assert_eq!((question.text.as_str(), question.options.as_slice()), ("Do it.", &["done".to_owned()][..]));
    assert_eq!(alone.node(&NodeId::new("2")).and_then(|node| node.step()), Some(2));
}

#[test]
fn calls_checkpoints_decisions_and_escalations_are_nodes() {
    let graph = graph(
        &["**type:** checkpoint", "", "**type:** decision", "**type:** call", "**type:** escalate"],
        "- 2 -> 1 on fail\n- 3 -> 4 if steps.2.output = \"ok\"\n- 3 -> 5 on always",
    );
    let kind = |id: &str| graph.node(&NodeId::new(id)).map(|node| node.kind.clone());
    assert!(matches!(kind("1"), Some(NodeKind::Checkpoint)));
    assert!(matches!(kind("3"), Some(NodeKind::Decision(_))));
    assert!(matches!(kind("4"), Some(NodeKind::Call(_))));
    assert!(matches!(kind("5"), Some(NodeKind::Escalate { .. })));
}

#[test]
fn a_join_that_a_run_may_go_past_is_refused_with_the_way() {
    let text = plan(&["", "**needs:** 1", "**needs:** 1", "**needs:** 2, 3"], "- 2 -> done on fail");
    let found = findings(&text);
    assert!(found.iter().any(|(code, _)| *code == Code::P315), "{found:?}");
}

#[test]
fn a_way_out_of_a_branch_back_to_before_it_is_refused() {
    let text = plan(&["", "**needs:** 1", "**needs:** 1", "**needs:** 2, 3"], "- 2 -> 1 on fail");
    let found = findings(&text);
    assert!(found.iter().any(|(code, _)| *code == Code::P315), "{found:?}");
    let within =
        plan(&["", "**needs:** 1", "**needs:** 1", "**needs:** 2, 3"], "- 2 -> 2 on fail\n- 4 -> 1 on fail");
    assert!(!findings(&within).iter().any(|(code, _)| *code == Code::P315), "{:?}", findings(&within));
}

#[test]
fn steps_of_two_branches_that_touch_one_file_are_kept_apart_and_told() {
    let text = plan(&["", "**needs:** 1", "**needs:** 1"], "")
        .replacen("### 2. Part 2\n", "### 2. Part 2\n**locks:** a\n", 1)
        .replace("test -f out/3", "test -f out/3 && grep -q x notes.md")
        .replace("test -f out/2", "grep -q y notes.md");
    let touching = text.replacen(
        "Do it.\n\n**contract:**\n```bash\ngrep -q y",
        "Write y to notes.md.\n\n**contract:**\n```bash\ngrep -q y",
        1,
    );
    let found = verify(&Source::new("plan.md", &touching), &Facts::default(), &Levels::default());
    let messages: Vec<&str> = found
        .diagnostics
        .iter()
        .filter(|finding| finding.code == Code::P316)
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(messages, ["steps 2 and 3 may run at once, and both touch `notes.md`"]);
    let graph = found.graph.expect("a warning");
    for step in ["2", "3"] {
        assert_eq!(graph.task(&NodeId::new(step)).expect("a task").excludes, ["notes.md"]);
    }
    assert!(graph.task(&NodeId::new("1")).expect("a task").excludes.is_empty());
    let one_at_a_time = touching.replace("**parallel:** 3\n", "");
    assert!(!findings(&one_at_a_time).iter().any(|(code, _)| *code == Code::P316));
}

#[test]
fn row_48_files_are_made_along_the_ways_of_the_graph() {
    // 2 makes what 3 reads, and both begin after 1.
    let text = plan(&["", "**needs:** 1", "**needs:** 1\n**subscriptions:** file:docs/two.md"], "").replacen(
        "### 2. Part 2\n\n**target:** coder\n**needs:** 1\n**task:**\nDo it.",
        "### 2. Part 2\n\n**target:** coder\n**needs:** 1\n**task:**\nWrite docs/two.md.",
        1,
    );
    let mut facts = Facts::default();
    facts.files.insert("docs/two.md".to_owned(), planctl_lang::FileFact::Missing);
    let found = |text: &str| {
        let found = verify(&Source::new("plan.md", text), &facts, &Levels::default());
        found.diagnostics.into_iter().map(|finding| finding.code).collect::<Vec<Code>>()
    };
    assert!(found(&text).contains(&Code::P203), "{:?}", found(&text));
    let after = text.replacen("**needs:** 1\n**subscriptions:**", "**needs:** 2\n**subscriptions:**", 1);
    assert!(!found(&after).contains(&Code::P203));
}

#[test]
fn a_linear_plan_has_the_graph_it_always_had() {
    let graph = graph(&["", "**on_fail:** skip", "**on_fail:** abort"], "");
    assert_eq!(
        ways(&graph),
        set(&[
            "start -> 1 Always",
            "1 -> 2 Success",
            "2 -> 3 Success",
            "2 -> 3 Exhaust",
            "3 -> done Success",
            "3 -> failed Exhaust",
        ])
    );
}

/// The findings with the text that each marks first, and what it says of the way out.
fn marked_findings(text: &str) -> Vec<(Code, String, String, String)> {
    let found = verify(&Source::new("plan.md", text), &Facts::default(), &Levels::default());
    let found =
        found.diagnostics.into_iter().filter(|finding| !matches!(finding.code, Code::P020 | Code::P402));
    found
        .map(|finding| {
            let span = finding.spans[0].span;
            (
                finding.code,
                text[span.start..span.end].to_owned(),
                finding.message,
                finding.help.unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn d3_the_names_in_a_condition_of_a_step_are_checked() {
    for (when, code, marked, says) in [
        (
            "steps.9.outcome=success",
            Code::P304,
            "steps.9.outcome=success",
            "a condition names step 9, which is not there",
        ),
        ("outcome=success && steps.9.outcome", Code::P304, "steps.9.outcome", "names step 9"),
        (
            "steps.3.outcome=success",
            Code::P313,
            "steps.3.outcome=success",
            "step 2 asks for step 3, which never comes before it",
        ),
        (
            "steps.2.outcome=success",
            Code::P313,
            "steps.2.outcome=success",
            "step 2 asks for its own outcome before it has one",
        ),
        ("context.colour=red", Code::P313, "context.colour=red", "nothing in the plan writes `colour`"),
        ("outcome=sucess", Code::P313, "outcome=sucess", "no outcome is called `sucess`"),
        (
            "steps.1.outcome=sucess",
            Code::P313,
            "steps.1.outcome=sucess",
            "no outcome is called `sucess`, so step 1 never has it",
        ),
    ] {
        let found = marked_findings(&plan(&["", &format!("**when:** {when}"), ""], ""));
        let [(found_code, text, message, _)] = found.as_slice() else { panic!("{when}: {found:?}") };
        assert_eq!((*found_code, text.as_str()), (code, marked), "{when}: {found:?}");
        assert!(message.contains(says), "{when}: {message}");
    }
    let named =
        plan(&["", "**when:** context.colour=red", ""], "").replacen("Do it.", "Report the colour.", 1);
    assert_eq!(marked_findings(&named), []);
    assert_eq!(
        marked_findings(&plan(
            &["", "**when:** steps.1.outcome=success", ""],
            "- 3 -> 1 if steps.3.exit_code=2"
        ))
        .len(),
        1
    );
    let beside =
        marked_findings(&plan(&["", "**needs:** 1", "**needs:** 1\n**when:** steps.2.outcome=success"], ""));
    assert!(beside[0].2.contains("step 3 asks for step 2, which never comes before it"), "{beside:?}");
}

#[test]
fn p_60_d4_steps_that_need_each_other_are_told_once_and_as_steps() {
    let ring = marked_findings(&plan(&["**needs:** 2", "**needs:** 1"], ""));
    let [(Code::P204, marked, message, help)] = ring.as_slice() else { panic!("{ring:?}") };
    assert_eq!(
        (marked.as_str(), message.as_str()),
        ("2", "steps depend on each other in a circle: 1 → 2 → 1")
    );
    assert!(help.contains("delete one of the needs"), "{help}");
    let own = marked_findings(&plan(&["", "**needs:** 2", ""], ""));
    let [(Code::P204, _, message, _)] = own.as_slice() else { panic!("{own:?}") };
    assert_eq!(message, "steps depend on each other in a circle: 2 → 2");
    let order = marked_findings(&plan(&["**needs:** 3", "", "**needs:** 2", "**needs:** 3"], ""));
    let [(Code::P204, _, message, help)] = order.as_slice() else { panic!("{order:?}") };
    assert_eq!(message, "steps depend on each other in a circle: 1 → 3 → 2 → 1");
    assert!(help.contains("say `**needs:**` at step 2, too"), "{help}");
    let two = marked_findings(&plan(&["**needs:** 2", "**needs:** 1", "**needs:** 4", "**needs:** 3"], ""));
    assert_eq!(two.iter().map(|finding| finding.0).collect::<Vec<_>>(), [Code::P204, Code::P204], "{two:?}");
}

#[test]
fn d4_what_is_needed_and_is_not_there_is_told_once_and_as_a_step() {
    let found = marked_findings(&plan(&["", "**needs:** 1, 7", ""], ""));
    let [(Code::P304, marked, message, _)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((marked.as_str(), message.as_str()), ("1, 7", "step 2 needs step 7, which is not there"));
    let found = marked_findings(&plan(&["", "", ""], "- 2 -> 9 on fail"));
    let [(Code::P304, marked, message, _)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (marked.as_str(), message.as_str()),
        ("9", "a line of `## Flow` names step 9, which is not there")
    );
}

#[test]
fn d4_findings_about_the_graph_of_a_plan_in_markdown_are_in_its_words() {
    for (steps, flow, code, says) in [
        (&["", "", ""][..], "- 1 -> 3", Code::P305, "nothing leads to step 2"),
        (&["", "**type:** escalate", ""], "", Code::P305, "nothing leads to step 2"),
        (&["", "", ""], "- 2 -> 1\n- 1 -> 2", Code::P307, "no path leads from step 1 to the end of the plan"),
        (&["", "", ""], "- 2 -> 1 on fail", Code::P309, "nothing bounds the loop of steps 1 → 2 → 1"),
        (
            &["", "**type:** decision", ""],
            "- 2 -> 3 if steps.1.output=x",
            Code::P310,
            "a run may find no path to follow from step 2",
        ),
        (
            &["", "", ""],
            "- 1 -> 3 on fail\n- 1 -> 2 on fail",
            Code::P308,
            "two paths lead on from step 1 for one outcome",
        ),
    ] {
        let found = marked_findings(&plan(steps, flow));
        assert!(
            found.iter().any(|finding| finding.0 == code && finding.2.contains(says)),
            "{flow}: {found:?}"
        );
        for (_, _, message, help) in found {
            for word in ["node", "edge", "`[", "JSON", "DOT", "max_visits=", "graph"] {
                assert!(!message.contains(word) && !help.contains(word), "`{word}` in {message}: {help}");
            }
        }
    }
}

#[test]
fn d4_two_ways_of_which_one_always_holds_leave_nothing_open() {
    let both = "- 2 -> 3 if steps.1.exit_code=0\n- 2 -> 1 if steps.1.exit_code!=0";
    let found = marked_findings(&plan(&["**max_visits:** 3", "**type:** decision", ""], both));
    assert!(found.iter().all(|finding| finding.0 != Code::P310), "{found:?}");
    let short = "- 2 -> 3 if exit_code=0\n- 2 -> 1 if exit_code!=0";
    let found = marked_findings(&plan(&["**max_visits:** 3", "**type:** decision", ""], short));
    assert!(found.iter().all(|finding| finding.0 != Code::P310), "{found:?}");
}

#[test]
fn d2_fields_that_a_step_of_its_type_has_no_use_for_are_told() {
    let contract = "\n**contract:**\n```bash\ntest -f x\n```\nexit_code == 0\n";
    for word in ["human", "checkpoint", "join", "escalate"] {
        let fields = format!("**type:** {word}{contract}");
        let flow = if word == "escalate" { "- 1 -> 2 on exhaust" } else { "" };
        let found = marked_findings(&plan(&["", &fields, ""], flow));
        let says = format!("no contract runs at a step of `type: {word}`");
        assert!(
            found.iter().any(|finding| finding.0 == Code::P015 && finding.2 == says),
            "{word}: {found:?}"
        );
        assert!(!crate::sample::is_verified(&plan(&["", &fields, ""], flow)), "{word}");
    }
    let found = marked_findings(&plan(&["", "**type:** join", ""], ""));
    let says = "nobody is given the task of a step of `type: join`";
    assert!(found.iter().any(|finding| finding.2 == says), "{found:?}");
    let found = marked_findings(&one_at_a_time(&["", "**type:** human\n**on_fail:** abort", ""]));
    let [(Code::P015, marked, message, _)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (marked.as_str(), message.as_str()),
        ("abort", "`on_fail` has no effect at a step of `type: human`")
    );
    let found = marked_findings(&one_at_a_time(&["", "**type:** human\n**timeout:** 1h", ""]));
    let [(Code::P015, marked, message, _)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((marked.as_str(), message.as_str()), ("1h", "no timeout acts at a step of `type: human`"));
}
