//! Rows of graphs that are told nowhere else: waits, epochs, profiles, what agents are told, and the lints of seed 2.

use planctl_engine::condition::Condition;
use planctl_engine::{
    Backoff, Carry, Edge, Fidelity, Graph, NodeId, NodeKind, On, Outcome, Profile, Restart, SubPlan,
};
use planctl_lang::workflow::{Language, check, to_graph, to_json, to_markdown};
use planctl_lang::{Code, Diagnostic, Facts, FileFact, Levels, Severity, Source, verify};

fn found(text: &str, language: Language) -> Vec<Diagnostic> {
    check(&Source::new("plan", text), language).1
}

fn graph(text: &str, language: Language) -> Graph {
    let source = Source::new("plan", text);
    let (workflows, found) = check(&source, language);
    assert!(found.iter().all(|found| !found.is_error()), "{text}\n{found:?}");
    to_graph(&source, &workflows[0]).expect("a graph")
}

fn dot(statements: &str) -> Graph {
    graph(&format!("digraph G {{ {statements} }}"), Language::Dot)
}

fn edge<'g>(graph: &'g Graph, from: &str, to: &str) -> &'g Edge {
    graph.edges_from(&NodeId::new(from)).iter().find(|edge| edge.to.as_str() == to).expect("an edge")
}

const STEP: &str = "prompt=\"Do it.\", contract=\"make test\"";

#[test]
fn g12_each_flaw_of_a_graph_is_found() {
    let text = |nodes: &str, edges: &str| {
        format!(
            r#"{{"graph": {{"start": "a", "nodes": {{"a": {{"action": "Do it", "contract": "make"}}, {nodes} "end": {{"type": "exit"}}}},
            "edges": [{edges} {{"from": "a", "to": "end", "condition": "on_success"}}]}}}}"#
        )
    };
    let task = |name: &str| format!(r#""{name}": {{"action": "Do it", "contract": "make"}},"#);
    let way = |from: &str, to: &str, on: &str| {
        format!(r#"{{"from": "{from}", "to": "{to}", "condition": "{on}"}},"#)
    };
    let flaws = [
        (
            "a dangling target",
            String::new(),
            way("a", "nowhere", "on_fail"),
            Code::P304,
            "names `nowhere`, but there is no such node",
        ),
        (
            "an unreachable node",
            task("b"),
            way("b", "end", "on_success"),
            Code::P305,
            "nothing leads to node `b`",
        ),
        ("a dead end", task("b"), way("a", "b", "on_fail"), Code::P307, "no edge leaves node `b`"),
        (
            "no exit within reach",
            task("b") + &task("c"),
            way("a", "b", "on_fail") + &way("b", "c", "on_success") + &way("c", "b", "on_success"),
            Code::P307,
            "no path leads from node `b` to an end",
        ),
        (
            "a loop without bound",
            String::new(),
            way("a", "a", "on_fail"),
            Code::P309,
            "nothing bounds the loop `a` → `a`",
        ),
        (
            "a decision without a way",
            r#""d": {"type": "decision", "description": "Which?"},"#.to_owned(),
            way("a", "d", "on_fail"),
            Code::P307,
            "no edge leaves node `d`",
        ),
        (
            "two edges for one outcome",
            task("b"),
            way("a", "b", "on_fail") + &way("a", "end", "on_fail") + &way("b", "end", "on_success"),
            Code::P308,
            "two edges of `a` are for one outcome",
        ),
    ];
    let twice = text("", &way("a", "end", "on_success"));
    let is_twice =
        |found: &Diagnostic| found.code == Code::P308 && found.message == "one edge of `a` is there twice";
    assert!(found(&twice, Language::Json).iter().any(is_twice), "two edges for success, as in DOT");
    let twice = format!("digraph g {{ start a [{STEP}] exit start -> a -> exit a -> exit }}");
    assert!(found(&twice, Language::Dot).iter().any(is_twice));
    for (flaw, nodes, edges, code, words) in flaws {
        let found = found(&text(&nodes, &edges), Language::Json);
        // A loop without a bound ends after ten entries.
        let level = if code == Code::P309 { Severity::Warning } else { Severity::Error };
        let is_told = found
            .iter()
            .any(|found| found.code == code && found.level == level && found.message.contains(words));
        assert!(is_told, "{flaw}: {:?}", found.iter().map(|found| &found.message).collect::<Vec<_>>());
    }
    assert!(found(&text("", ""), Language::Json).is_empty());
}

#[test]
fn g50_a_graph_of_dot_and_the_same_in_json_are_one_graph() {
    let text = format!(
        "digraph fix {{ goal=\"No more timeouts\" start a [{STEP}, max_retries=2, max_visits=3] d [shape=diamond] h [shape=hexagon, label=\"Ship?\"] \
         f [shape=component] x [{STEP}] y [shape=parallelogram, tool_command=\"make lint\"] j [shape=tripleoctagon] exit \
         start -> a -> d d -> h [condition=\"outcome=success\"] d -> a [on=always] h -> f [label=Yes] h -> a [label=No] f -> x -> j f -> y -> j j -> exit }}"
    );
    let of_dot = graph(&text, Language::Dot);
    let (workflows, _) = check(&Source::new("plan", &*text), Language::Dot);
    let json = to_json(&workflows[0]).to_string();
    assert_eq!(graph(&json, Language::Json), of_dot);
}

#[test]
fn g52_a13_what_a_node_asks_of_its_agent_is_part_of_its_work() {
    let graph = dot(&format!(
        "model_stylesheet=\"* {{ llm_model: small; reasoning_effort: low; }}\" start a [{STEP}, llm_model=\"large\", llm_provider=acme, profile=\"browser\"] b [{STEP}] exit start -> a -> b -> exit"
    ));
    let profile = |name: &str| graph.node(&NodeId::new(name)).unwrap().profile.as_deref().unwrap().clone();
    let text = |text: &str| Some(text.to_owned());
    let common = Profile { fidelity: Some(Fidelity::Compact), effort: text("low"), ..Profile::default() };
    assert_eq!(
        profile("a"),
        Profile { name: text("browser"), model: text("large"), provider: text("acme"), ..common.clone() }
    );
    assert_eq!(profile("b"), Profile { model: text("small"), ..common });
}

#[test]
fn f1_a14_a18_an_edge_beats_the_node_the_node_the_graph_and_compact_is_the_rest() {
    let statements = |graph: &str| {
        format!(
            "{graph} start a [{STEP}] b [{STEP}, fidelity=truncate] c [{STEP}] exit start -> a -> b a -> c [on=fail] b -> c [fidelity=\"summary:low\", thread_id=t] c -> exit"
        )
    };
    let fidelity = |graph: &Graph, name: &str| {
        graph.node(&NodeId::new(name)).unwrap().profile.as_ref().unwrap().fidelity.unwrap()
    };
    let plain = dot(&statements(""));
    assert_eq!((fidelity(&plain, "a"), fidelity(&plain, "b")), (Fidelity::Compact, Fidelity::Truncate));
    let of_graph = dot(&statements("default_fidelity=\"summary:high\""));
    assert_eq!(
        (fidelity(&of_graph, "a"), fidelity(&of_graph, "b")),
        (Fidelity::SummaryHigh, Fidelity::Truncate)
    );
    let carry = Carry { fidelity: Some(Fidelity::SummaryLow), thread: Some("t".to_owned()) };
    assert_eq!(edge(&plain, "b", "c").carry.as_deref(), Some(&carry));
    assert_eq!(edge(&plain, "a", "b").carry, None);
}

#[test]
fn f3_a_thread_is_said_by_the_node_the_graph_or_the_subgraph() {
    let graph = dot(&format!(
        "start subgraph cluster_one {{ label=\"Loop A\" a [{STEP}, thread_id=own] b [{STEP}] }} c [{STEP}] exit start -> a -> b -> c -> exit"
    ));
    let profile = |name: &str| graph.node(&NodeId::new(name)).unwrap().profile.as_deref().unwrap().clone();
    assert_eq!(
        (profile("a").thread.as_deref(), profile("a").common_thread.as_deref()),
        (Some("own"), Some("loop-a"))
    );
    assert_eq!((profile("b").thread, profile("b").common_thread.as_deref()), (None, Some("loop-a")));
    assert_eq!(profile("c").common_thread, None);
    let named = dot(&format!("thread_id=all start a [{STEP}, class=x] exit start -> a -> exit"));
    let profile = named.node(&NodeId::new("a")).unwrap().profile.as_deref().unwrap();
    assert_eq!(profile.common_thread.as_deref(), Some("all"));
}

#[test]
fn r2_a_preset_says_how_long_to_wait_and_how_often_where_no_number_does() {
    let graph = dot(&format!(
        "default_max_retries=1 retry_policy=standard start a [{STEP}] b [{STEP}, retry_policy=patient] c [{STEP}, retry_policy=none, max_retries=3] d [shape=parallelogram, tool_command=ls, retry_policy=linear] exit \
         start -> a -> b -> c -> d -> exit"
    ));
    let retried = |name: &str| {
        let node = graph.node(&NodeId::new(name)).unwrap();
        (node.gated().unwrap().max_retries, node.backoff)
    };
    let waits = |initial_ms, factor| Some(Backoff { initial_ms, factor });
    assert_eq!(retried("a"), (1, waits(200, 2)));
    assert_eq!(retried("b"), (2, waits(2_000, 3)));
    assert_eq!(retried("c"), (3, None));
    assert_eq!(retried("d"), (2, waits(500, 1)));
    let wrong = found(
        &format!("digraph G {{ start a [{STEP}, retry_policy=hasty] exit start -> a -> exit }}"),
        Language::Dot,
    );
    assert_eq!(wrong[0].code, Code::P015);
    assert_eq!(wrong[0].message, "`hasty` is not a value of `retry_policy`");
}

#[test]
fn r5_the_words_of_other_readers_for_a_retry_are_a_way_for_retries() {
    let graph = dot(&format!(
        "start a [{STEP}, max_retries=2] b [{STEP}] exit start -> a -> exit a -> b [condition=\"context.retry.remaining!=0 && outcome=fail && context.x=1\", label=mend] b -> exit"
    ));
    let way = edge(&graph, "a", "b");
    assert_eq!(way.on, On::Retry);
    assert_eq!(way.when.as_ref().map(Condition::to_string).as_deref(), Some("context.x=1"));
}

#[test]
fn e12_a19_a_restart_is_an_edge_that_keeps_what_the_graph_says() {
    let statements = "loop_restart_persist_keys=\"n, note\" max_restarts=3 start a [prompt=\"Report `n`.\", contract=x] d [shape=diamond] exit start -> a -> d d -> a [loop_restart=\"true\", condition=\"context.n!=2\"] d -> exit";
    let graph = dot(statements);
    let restart = Restart { keeps: vec!["n".to_owned(), "note".to_owned()] };
    assert_eq!(edge(&graph, "d", "a").restart.as_deref(), Some(&restart));
    assert_eq!(edge(&graph, "d", "exit").restart, None);
    assert_eq!(graph.limits().restarts, 3);
    let all = found(&format!("digraph G {{ {statements} }}"), Language::Dot);
    assert!(all.iter().all(|found| found.code != Code::P309), "it is bounded: {all:?}");
    // It may lead out of a branch to what was before: nothing of the branches is awaited then.
    let forked = dot(&format!(
        "start a [{STEP}] f [shape=component] x [{STEP}] y [{STEP}] j [shape=tripleoctagon] exit start -> a -> f f -> x -> j f -> y -> j x -> a [on=fail, loop_restart=true] j -> exit"
    ));
    assert!(edge(&forked, "x", "a").restart.is_some());
    let NodeKind::Fork(fork) = &forked.node(&NodeId::new("f")).unwrap().kind else { panic!("a fork") };
    assert_eq!(fork.join, Some(NodeId::new("j")));
    let nowhere = found(
        &format!("digraph G {{ start a [{STEP}] exit start -> a -> exit [loop_restart=true] }}"),
        Language::Dot,
    );
    assert_eq!(nowhere[0].message, "the run would begin anew at `exit`, where nothing is done");
}

#[test]
fn n1_a_manager_has_a_condition_and_so_many_runs() {
    let house = |said: &str| {
        format!("start p [shape=house, stack.child_dotfile=\"c.dot\"{said}] exit start -> p -> exit")
    };
    let plan = |graph: &Graph| -> SubPlan {
        let NodeKind::SubPlan(plan) = &graph.node(&NodeId::new("p")).unwrap().kind else { panic!("a plan") };
        plan.as_ref().clone()
    };
    let managed = plan(&dot(&house(
        ", manager.stop_condition=\"context.stack.child.outcome=success\", manager.max_cycles=4",
    )));
    assert_eq!(
        managed.until.map(|until| until.to_string()).as_deref(),
        Some("context.stack.child.outcome=success")
    );
    assert_eq!(managed.cycles, 4);
    assert_eq!(plan(&dot(&house(""))).until, None);
    let wrong =
        found(&format!("digraph G {{ {} }}", house(", manager.stop_condition=\"outcome>x\"")), Language::Dot);
    assert_eq!(wrong[0].code, Code::P303);
}

#[test]
fn h5_a_way_for_failures_is_also_that_of_a_question_nobody_answers() {
    let graph = dot(&format!(
        "start h [shape=hexagon, label=\"Ship?\"] a [{STEP}] exit start -> h h -> exit [label=Yes] h -> a [label=No, on=fail] a -> exit"
    ));
    let ways: Vec<(&str, On)> =
        graph.edges_from(&NodeId::new("h")).iter().map(|edge| (edge.to.as_str(), edge.on)).collect();
    assert_eq!(ways, [("exit", On::Success), ("a", On::Success), ("a", On::Exhaust)]);
    let dead =
        found("digraph G { start h [shape=hexagon] exit start -> h start -> exit [on=fail] }", Language::Dot);
    let is_told =
        dead.iter().any(|found| found.code == Code::P307 && found.message == "no edge leaves node `h`");
    assert!(is_told, "{dead:?}");
}

#[test]
fn p7_a_join_with_a_prompt_is_told_that_nobody_works_there() {
    let read = found(
        &format!(
            "digraph G {{ start f [shape=component] x [{STEP}] y [{STEP}] j [shape=tripleoctagon, prompt=\"Which is best?\"] exit start -> f f -> x -> j f -> y -> j j -> exit }}"
        ),
        Language::Dot,
    );
    assert_eq!(read.len(), 1);
    assert_eq!(
        (read[0].code, read[0].message.as_str()),
        (Code::P314, "nobody works at the join `j`, so its prompt has no effect")
    );
}

#[test]
fn x2_what_every_context_has_is_no_slip() {
    let names = [
        "outcome=success",
        "preferred_label=x",
        "context.graph.goal=x",
        "context.current_node=x",
        "context.last_stage=x",
        "context.last_response=x",
        "context.internal.retry_count.a=1",
        "context.tool.output=x",
        "context.parallel.results.0.output=x",
        "context.stack.child.status=completed",
    ];
    for name in names {
        let read = found(
            &format!(
                "digraph G {{ start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"{name}\"] }}"
            ),
            Language::Dot,
        );
        assert!(read.iter().all(|found| found.code != Code::P313), "{name}: {read:?}");
    }
}

#[test]
fn g10_h32_a_required_step_with_warn_is_tried_again_and_never_passed_over() {
    let steps = |last: &str| {
        format!(
            r#"{{"name": "P", "steps": [
                {{"name": "One", "action": "Do it", "contract": "make one", "on_fail": "warn", {last}}},
                {{"name": "Two", "action": "Do it", "contract": "make two", "required": true}}]}}"#
        )
    };
    let read = |last: &str| {
        let graph = graph(&steps(last), Language::Json);
        let id = NodeId::new("step_1");
        let task = graph.task(&id).unwrap();
        let after = graph.edges_from(&id).iter().find(|edge| edge.on == On::Exhaust).unwrap();
        let asks = matches!(graph.node(&after.to).unwrap().kind, NodeKind::Escalate { .. });
        (task.max_retries, task.on_exhausted, asks)
    };
    assert_eq!(read("\"required\": true"), (2, Outcome::Failed, true));
    assert_eq!(read("\"max_retries\": 4"), (4, Outcome::Failed, true));
    assert_eq!(read("\"required\": false"), (0, Outcome::Warned, false));
    assert_eq!(read("\"allow_partial\": true"), (0, Outcome::Warned, false));
}

#[test]
fn g02_a_start_with_an_action_is_warned_about() {
    let start = |said: &str| {
        format!(
            r#"{{"graph": {{"nodes": {{"s": {{"type": "start"{said}}}, "a": {{"action": "Do it", "contract": "make"}}, "end": {{"type": "exit"}}}},
            "edges": [{{"from": "s", "to": "a"}}, {{"from": "a", "to": "end", "condition": "on_success"}}]}}}}"#
        )
    };
    assert!(found(&start(""), Language::Json).is_empty());
    let found = found(&start(r#", "action": "Tidy up""#), Language::Json);
    assert!(
        found.iter().any(|found| found.code == Code::P314 && found.message.contains("the start `s`")),
        "{found:?}"
    );
}

#[test]
fn hints_about_a_file_of_json_are_written_as_json() {
    let text = r#"{"graph": {"start": "a", "nodes": {
        "a": {"action": "x", "contract": "make", "goal_gate": true}, "c": {"type": "call"}, "p": {"type": "sub_plan"},
        "h": {"action": "x"}, "i": {"action": "x", "contract": "make"}, "dead": {"action": "x", "contract": "make"},
        "done": {"type": "exit"}, "bad": {"type": "exit", "result": "failed"}, "worse": {"type": "exit", "result": "failed"}},
        "edges": [{"from": "a", "to": "c", "condition": "on_success"}, {"from": "a", "to": "c", "condition": "on_retry"},
        {"from": "c", "to": "p"}, {"from": "p", "to": "h"}, {"from": "h", "to": "i", "condition": "on_success"},
        {"from": "i", "to": "h", "condition": "on_fail"}, {"from": "i", "to": "done", "condition": "on_success"},
        {"from": "h", "to": "bad", "condition": "on_fail"}, {"from": "c", "to": "worse", "condition": "on_fail"},
        {"from": "p", "to": "dead", "condition": "on_fail"}]}}"#;
    let found = found(text, Language::Json);
    let of = |code: Code| found.iter().any(|found| found.code == code);
    for code in [Code::P009, Code::P010, Code::P306, Code::P307, Code::P309, Code::P312, Code::P317] {
        assert!(of(code), "{code:?}: {found:?}");
    }
    let helps: Vec<&str> = found.iter().filter_map(|found| found.help.as_deref()).collect();
    let as_dot = |help: &&&str| {
        let mut pairs = help.split('=').map(|part| part.ends_with(|end: char| end.is_ascii_lowercase()));
        help.contains('=') && pairs.any(|names| names)
    };
    assert_eq!(helps.iter().find(as_dot), None);
}

#[test]
fn g06_an_escalation_of_a_library_says_its_reason_and_its_pace_level() {
    let escalation = |said: &str| {
        format!(
            r#"{{"graph": {{"start": "a", "nodes": {{"a": {{"action": "Do it", "contract": "make"}}, "x": {{{said}}}, "end": {{"type": "exit"}}}},
            "edges": [{{"from": "a", "to": "end", "condition": "on_success"}}, {{"from": "a", "to": "x", "condition": "on_fail"}}]}}}}"#
        )
    };
    let errors = |said: &str| {
        let found = found(&escalation(said), Language::Json).into_iter().filter(Diagnostic::is_error);
        found.map(|found| found.message).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(errors(r#""type": "escalate", "reason": "Stuck", "pace_level": "contingent""#), none);
    assert_eq!(errors(r#""type": "escalate", "reason": "Stuck""#), ["node `x` has no PACE level"]);
    assert_eq!(errors(r#""type": "escalate""#), ["node `x` has no reason", "node `x` has no PACE level"]);
    assert_eq!(errors(r#""kind": "escalate", "reason": "Stuck""#), none);
}

#[test]
fn p63_what_lowering_finds_is_told_with_the_other_findings() {
    let text = r#"{"graph": {"start": "a", "nodes": {
        "a": {"action": "Do it", "contract": "make", "when": "x"},
        "b": {"action": "Do it", "contract": "make"},
        "end": {"type": "exit"}}, "edges": [{"from": "a", "to": "end", "condition": "on_success"}, {"from": "b", "to": "end", "condition": "on_success"}]}}"#;
    let source = Source::new("plan.json", text);
    let verified =
        planctl_lang::verify(&source, &planctl_lang::Facts::default(), &planctl_lang::Levels::default());
    let codes: Vec<Code> =
        verified.diagnostics.iter().filter(|found| found.is_error()).map(|found| found.code).collect();
    assert_eq!(codes, [Code::P017, Code::P305]);
}

/// A plan must say some things that a graph may leave out; they are written as they are taken.
#[test]
fn a_graph_without_roles_is_written_as_a_plan_that_verifies() {
    let text = r#"{"steps": [{"name": "Build it", "action": "Build it", "contract": "test -f built"}]}"#;
    let (workflows, _) = check(&Source::new("plan", text), Language::Json);
    let written = to_markdown(&workflows[0]).text;
    assert!(
        written.contains("\nowner: orchestrator\n") && written.contains("\n**target:** coder\n"),
        "{written}"
    );
    let verified = verify(&Source::new("plan.md", &*written), &crate::sample::facts(), &Levels::default());
    assert!(verified.is_verified(), "{:?}\n{written}", verified.diagnostics);
}

#[test]
fn a_role_that_nobody_named_is_missed_at_the_name_of_the_step() {
    let text = r#"{"steps": [{"name": "Build it", "action": "Build it", "contract": "test -f built"}]}"#;
    let nobody = Facts { roles: None, ..crate::sample::facts() };
    let found = verify(&Source::new("plan.json", text), &nobody, &Levels::default()).diagnostics;
    let missed = found.iter().find(|found| found.code == Code::P402).expect("no roles are configured");
    let span = missed.spans[0].span;
    assert!(text[span.start..span.end].contains("Build it"), "{}", &text[span.start..span.end]);
}

#[test]
fn g12_a_way_may_lead_to_the_exit_of_runs_that_failed_alone() {
    let call = "shape=parallelogram, tool_command=make";
    let dot = format!(
        "digraph G {{ start exit a [{STEP}] cleanup [{call}] bad [shape=Msquare, result=failed]
        start -> a -> exit a -> cleanup [on=fail] cleanup -> bad }}"
    );
    let nodes =
        r#""clean": {"type": "tool", "tool_command": "make"}, "bad": {"type": "exit", "result": "failed"},"#;
    let json = format!(
        r#"{{"graph": {{"start": "a", "nodes": {{{nodes} "a": {{"action": "Do it", "contract": "make"}}, "end": {{"type": "exit"}}}},
        "edges": [{{"from": "a", "to": "end", "condition": "on_success"}}, {{"from": "a", "to": "clean", "condition": "on_fail"}},
        {{"from": "clean", "to": "bad", "condition": "on_success"}}]}}}}"#
    );
    let step = |number: u8| {
        format!(
            "### {number}. Do it\n\n**target:** coder\n**task:** Do it.\n\n**contract:**\n```bash\nmake\n```\nexit_code == 0\n\n"
        )
    };
    let markdown = format!(
        "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Do it\n\n## Steps\n\n{}{}## Flow\n\n- 1 -> done\n- 1 -> 2 on fail\n- 2 -> failed\n",
        step(1),
        step(2)
    );
    let errors = |name: &str, text: &str| {
        let found = verify(&Source::new(name, text), &Facts::default(), &Levels::default()).diagnostics;
        found
            .into_iter()
            .filter(|found| found.is_error())
            .map(|found| (found.code, found.message))
            .collect::<Vec<_>>()
    };
    for (name, text) in [("plan.dot", &dot), ("plan.json", &json), ("plan.md", &markdown)] {
        assert_eq!(errors(name, text), [], "{text}");
    }
    // It leads nowhere where it leads on after a failure alone, even to a person.
    let asked = dot.replace("cleanup -> bad", "e [shape=hexagon, escalate=\"x\", pace_level=contingent] cleanup -> e [on=fail] a -> bad [on=exhaust]");
    assert_eq!(
        errors("plan.dot", &asked),
        [(Code::P307, "no path leads from node `cleanup` to an end".to_owned())]
    );
    assert_eq!(errors("plan.dot", &asked.replace("cleanup -> e [on=fail]", "cleanup -> e")), []);
}

#[test]
fn n4_a_call_changes_what_it_changes_and_looks_at_what_is_there() {
    let found = |one: &str, other: &str| {
        let text = format!(
            "digraph G {{ start f [shape=component] a [shape=parallelogram, tool_command=\"{one}\"] b [shape=parallelogram, tool_command=\"{other}\"]
            j [shape=tripleoctagon] exit start -> f f -> a -> j f -> b -> j j -> exit }}"
        );
        let found = verify(&Source::new("plan.dot", text), &Facts::default(), &Levels::default()).diagnostics;
        found.into_iter().map(|found| found.code).collect::<Vec<_>>()
    };
    assert_eq!(found("git commit -m x", "touch y"), []);
    assert_eq!(found("test -f y", "test -f y"), []);
    assert_eq!(found("touch y", "test -f y"), [Code::P316]);
    assert_eq!(found("touch ../y", "true"), [Code::P112, Code::P104]);
}

#[test]
fn hints_about_a_graph_are_in_the_words_of_its_file() {
    let call = "contract=\"grep -q new fixed.txt\"";
    let dot = format!(
        "digraph G {{ start a [prompt=\"Do it.\", {call}] b [prompt=\"Do it.\", contract=false] exit start -> a -> b -> exit }}"
    );
    let json = r#"{"graph": {"start": "a", "nodes": {"a": {"action": "Do it", "contract": "grep -q new fixed.txt"},
        "b": {"action": "Do it", "contract": "false"}, "end": {"type": "exit"}},
        "edges": [{"from": "a", "to": "b", "condition": "on_success"}, {"from": "b", "to": "end", "condition": "on_success"}]}}"#;
    let facts = Facts {
        files: [("fixed.txt".to_owned(), FileFact::Regular { size: 4 })].into(),
        texts: [("fixed.txt".to_owned(), "old\n".to_owned())].into(),
        ..Facts::default()
    };
    for (name, text, changes, exit) in [
        ("plan.dot", &*dot, "add `changes=\"fixed.txt\"`, or name it", "is meant after `expect_exit`"),
        ("plan.json", json, "add `\"changes\": \"fixed.txt\"`, or name it", "is meant after `expect_exit`"),
    ] {
        let found = verify(&Source::new(name, text), &facts, &Levels::default()).diagnostics;
        let help = |code: Code| {
            let found =
                found.iter().find(|found| found.code == code).unwrap_or_else(|| panic!("{code}: {found:?}"));
            found.help.clone().expect("help")
        };
        assert!(help(Code::P118).starts_with(changes), "{}", help(Code::P118));
        assert!(help(Code::P113).ends_with(exit), "{}", help(Code::P113));
        let is_markdown = |text: &str| text.contains("`**");
        assert!(!found.iter().any(|found| is_markdown(&format!("{found:?}"))), "{found:?}");
    }
}

#[test]
fn hints_about_flow_name_steps_that_are_there() {
    let step = |number: u8| {
        format!(
            "### {number}. Do it\n\n**target:** coder\n**task:** Do it.\n\n**contract:**\n```bash\nmake\n```\nexit_code == 0\n\n"
        )
    };
    let hints = |flow: &str| {
        let text = format!(
            "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Do it\n\n## Steps\n\n{}{}## Flow\n\n{flow}\n",
            step(1),
            step(2)
        );
        let found = verify(&Source::new("plan.md", text), &Facts::default(), &Levels::default()).diagnostics;
        found
            .into_iter()
            .filter(|found| found.is_error())
            .map(|found| (found.code, found.help.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let to_it =
        |line: &str| (Code::P305, format!("let a line of `## Flow` lead to it: `{line}`, or delete it"));
    assert_eq!(hints("- start -> 2"), [to_it("- start -> 1")]);
    assert_eq!(hints("- 1 -> done"), [to_it("- 1 -> 2")]);
    let on = |lines: &str| (Code::P307, format!("let a line of `## Flow` lead on from there: {lines}"));
    assert_eq!(hints("- 2 -> 1\n- 1 -> 2"), [on("`- 1 -> 2`, `- 1 -> done`"), on("`- 2 -> done`")]);
}
