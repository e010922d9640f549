//! Graphs of DOT and JSON as the engine runs them: kinds of nodes, edges, retries, goals, and what is not run yet.

use planctl_engine::{ChildApproval, Graph, JoinPolicy, Level, NodeId, NodeKind, On, Outcome};
use planctl_lang::workflow::{Language, check, of_graph, to_dot, to_graph, to_json, to_markdown};
use planctl_lang::{Code, Facts, FileFact, Levels, Severity, Source, SubPlanFact, verify};

fn dot(statements: &str) -> Result<Graph, Vec<(Code, String)>> {
    graph(&format!("digraph G {{ {statements} }}"), Language::Dot)
}

fn graph(text: &str, language: Language) -> Result<Graph, Vec<(Code, String)>> {
    let source = Source::new(if language == Language::Dot { "plan.dot" } else { "plan.json" }, text);
    let (workflows, found) = check(&source, language);
    assert!(found.iter().all(|found| !found.is_error()), "{text}\n{found:?}");
    to_graph(&source, &workflows[0])
        .map_err(|refused| refused.into_iter().map(|found| (found.code, found.message)).collect())
}

fn kind<'g>(graph: &'g Graph, name: &str) -> &'g NodeKind {
    &graph.node(&NodeId::new(name)).expect("a node of this name").kind
}

fn ways(graph: &Graph, from: &str) -> Vec<String> {
    let shown = graph.edges_from(&NodeId::new(from)).iter().map(|edge| {
        let when = edge.when.as_ref().map(|when| format!(" if {when}")).unwrap_or_default();
        format!("{} {:?}{when}", edge.to, edge.on)
    });
    shown.collect()
}

const STEP: &str = "prompt=\"Do it.\", contract=\"make test\"";

#[test]
fn every_kind_of_node_is_lowered() {
    let graph = dot(&format!(
        "goal=\"Ship\" start a [prompt=\"Do: $goal\", contract=\"make\", contract.two=\"make two\", target=reviewer, max_retries=2, timeout=60s, \
         subscriptions=\"file:a.md, topic:t\", expect_exit=3] d [shape=diamond] c [shape=parallelogram, tool_command=\"ls\"] \
         h [shape=hexagon, label=\"Go?\", human.default_choice=c, timeout=5m] p [checkpoint=true] f [shape=component] \
         x [{STEP}] y [{STEP}] j [shape=tripleoctagon, join_policy=first_success] e [shape=hexagon, escalate=stuck, pace_level=emergency] \
         exit bad [shape=Msquare, result=failed] \
         start -> a -> d d -> h [condition=\"outcome=success\"] d -> e [on=always] h -> c [label=\"[G] Go\"] h -> bad c -> p -> f \
         f -> x -> j f -> y -> j j -> exit"
    ))
    .expect("a graph");
    let task = graph.task(&NodeId::new("a")).expect("a task");
    assert_eq!(task.prompt, "Do: Ship");
    assert_eq!(task.contract.command, "(\nmake\n)\n[ $? -eq 3 ] || exit 1\n(\nmake two\n)");
    assert_eq!((task.contract.expect, task.max_retries, task.role.as_str()), (3, 2, "reviewer"));
    assert_eq!(task.subscriptions.len(), 2);
    assert_eq!(task.work_timeout.as_secs(), 60);
    let NodeKind::Human(question) = kind(&graph, "h") else { panic!("a question") };
    assert_eq!(question.options, ["[G] Go", "bad"]);
    assert_eq!(question.default.as_ref().map(|default| default.answer.as_str()), Some("[G] Go"));
    let NodeKind::Fork(fork) = kind(&graph, "f") else { panic!("a fork") };
    assert_eq!(fork.join, Some(NodeId::new("j")));
    let NodeKind::Join(join) = kind(&graph, "j") else { panic!("a join") };
    assert_eq!(join.policy, JoinPolicy::Any);
    let NodeKind::Escalate { pace_level, .. } = kind(&graph, "e") else { panic!("an escalation") };
    assert_eq!(*pace_level, Some(Level::Emergency));
    assert!(matches!(kind(&graph, "c"), NodeKind::Call(_)));
    assert!(matches!(kind(&graph, "p"), NodeKind::Checkpoint));
    assert!(matches!(kind(&graph, "bad"), NodeKind::Exit { success: false }));
    assert_eq!(ways(&graph, "d"), ["h Always if outcome=success", "e Always"]);
    assert_eq!(graph.limits().parallel, 4);
    assert_eq!(graph.context().get("graph.goal").map(String::as_str), Some("Ship"));
    let steps: Vec<u32> = graph.numbered_steps().into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, (1..=8).collect::<Vec<_>>());
}

#[test]
fn a06_each_language_says_how_many_tests_have_to_pass_and_keeps_it_in_the_others() {
    let text = format!("digraph G {{ start a [{STEP}, min_tests=12] exit start -> a -> exit }}");
    let source = Source::new("plan.dot", text);
    let (workflows, _) = check(&source, Language::Dot);
    let (json, markdown) = (to_json(&workflows[0]).to_string(), to_markdown(&workflows[0]).text);
    for (name, text) in [("plan.dot", source.text()), ("plan.json", &json), ("plan.md", &markdown)] {
        let graph = verify(&Source::new(name, text), &Facts::default(), &Levels::default()).graph;
        let graph = graph.unwrap_or_else(|| panic!("{name}:\n{text}"));
        let counted: Vec<u32> =
            graph.nodes().iter().filter_map(|node| node.task()?.contract.min_tests).collect();
        assert_eq!(counted, [12], "{name}:\n{text}");
    }
    let refused = check(
        &Source::new("plan.dot", "digraph G { start a [min_tests=0] exit start -> a -> exit }"),
        Language::Dot,
    )
    .1;
    assert!(
        refused.iter().any(|found| found.is_error() && found.message.contains("min_tests")),
        "{refused:?}"
    );
}

#[test]
fn r1_a10_retries_are_the_nodes_own_else_the_graphs_else_none() {
    let graph = dot(&format!(
        "default_max_retry=3 start a [{STEP}] b [{STEP}, max_retries=0] c [{STEP}, on_fail=\"retry(1), then abort\"] exit start -> a -> b -> c -> exit"
    ))
    .expect("a graph");
    let retries = |name| graph.task(&NodeId::new(name)).expect("a task").max_retries;
    assert_eq!((retries("a"), retries("b"), retries("c")), (3, 0, 1));
    assert_eq!(ways(&graph, "c"), ["exit Success", "-failed Exhaust"]);
}

#[test]
fn e9_what_follows_the_last_attempt_is_an_edge_a_policy_or_a_target() {
    let graph = dot(&format!(
        "start a [{STEP}, retry_target=b] b [{STEP}, on_fail=skip] c [{STEP}, allow_partial=true] d [{STEP}, on_fail=escalate, max_visits=2] exit \
         start -> a -> b -> c -> d -> exit d -> a [on=exhaust]"
    ))
    .expect("a graph");
    assert_eq!(ways(&graph, "a"), ["b Success", "b Exhaust"]);
    assert_eq!(ways(&graph, "b"), ["c Success", "c Exhaust"]);
    assert_eq!(ways(&graph, "c"), ["d Success", "d Exhaust"]);
    assert_eq!(ways(&graph, "d"), ["exit Success", "a Exhaust"]);
    let on_exhausted = |name| graph.task(&NodeId::new(name)).expect("a task").on_exhausted;
    assert_eq!(
        (on_exhausted("a"), on_exhausted("b"), on_exhausted("c")),
        (Outcome::Failed, Outcome::Skipped, Outcome::Warned)
    );
}

#[test]
fn x_35_the_deadline_of_asks_is_the_nodes_own_else_the_graphs_in_every_language() {
    let step = |number: u32, field: &str| {
        format!(
            "\n### {number}. Do it\n\n**target:** coder\n{field}**task:** Do it.\n\n**contract:**\n```bash\nmake\n```\n"
        )
    };
    let markdown = format!(
        "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# g\n\n**ask_deadline:** 1 day, then reject\n\n## Steps\n{}{}",
        step(1, ""),
        step(2, "**ask_deadline:** 90 min, then abort\n")
    );
    let dot_text = format!(
        "digraph g {{ ask_deadline=\"24h, then reject\" start a [{STEP}] b [{STEP}, ask_deadline=\"1h30m, then abort\"] exit \
         start -> a -> b -> exit }}"
    );
    let json = r#"{"ask_deadline": "24h, then reject", "graph": {"start": "a", "nodes": {"a": {"action": "Do it", "contract": "make"},
        "b": {"action": "Do it", "contract": "make", "ask_deadline": "90 min, then abort"}, "exit": {"type": "exit"}},
        "edges": [{"from": "a", "to": "b", "condition": "on_success"}, {"from": "b", "to": "exit", "condition": "on_success"}]}}"#;
    let verified = verify(&Source::new("p.md", &*markdown), &crate::sample::facts(), &Levels::default());
    let graphs = [
        verified.graph.expect("a graph"),
        graph(&dot_text, Language::Dot).expect("a graph"),
        graph(json, Language::Json).expect("a graph"),
    ];
    for (graph, [first, second]) in graphs.into_iter().zip([["1", "2"], ["a", "b"], ["a", "b"]]) {
        let deadline = |node: &str| {
            let deadline = graph.ask_deadline(&NodeId::new(node)).expect("a deadline");
            (deadline.after.as_secs(), deadline.answer.as_str())
        };
        assert_eq!(deadline(graph.start().as_str()), (86_400, "reject"));
        assert_eq!((deadline(first), deadline(second)), ((86_400, "reject"), (5_400, "abort")));
    }
}

#[test]
fn x_35_a_usual_answer_that_would_count_after_the_deadline_of_its_ask_is_told() {
    let found = |deadline: &str| {
        let text = format!(
            "digraph g {{ start q [shape=hexagon, label=\"Ship?\", \"human.default_choice\"=exit, timeout=1h, ask_deadline=\"{deadline}\"] \
             exit start -> q -> exit }}"
        );
        let (_, found) = check(&Source::new("p.dot", &*text), Language::Dot);
        found.into_iter().map(|found| (found.code, found.message)).collect::<Vec<_>>()
    };
    assert_eq!(found("2h, then abort"), []);
    let told = (Code::P314, "the answer `exit` never counts: the ask is over before".to_owned());
    assert_eq!(found("1h, then abort"), [told]);
}

#[test]
fn h1_h9_a_usual_answer_means_an_option_as_a_persons_answer_does_or_is_refused() {
    let text = |said: &str| {
        format!(
            "digraph g {{ start q [shape=hexagon, label=\"Ship?\"{said}] a [{STEP}] exit \
             start -> q q -> exit [label=\"[Y] Yes\"] q -> a [label=\"N) Not yet\"] a -> q }}"
        )
    };
    let choice = |choice: &str| text(&format!(", \"human.default_choice\"=\"{choice}\", timeout=1h"));
    for (said, means) in [
        ("[Y] Yes", "[Y] Yes"),
        ("exit", "[Y] Yes"),
        ("a", "N) Not yet"),
        ("yes", "[Y] Yes"),
        ("Y", "[Y] Yes"),
        ("n", "N) Not yet"),
        ("Not Yet", "N) Not yet"),
        ("2", "N) Not yet"),
    ] {
        let graph = graph(&choice(said), Language::Dot).expect(said);
        let NodeKind::Human(question) = kind(&graph, "q") else { panic!("a question") };
        let default = question.default.as_ref().expect(said);
        assert_eq!((default.answer.as_str(), question.usual.as_deref()), (means, Some(means)), "{said}");
    }
    let found = |text: &str| {
        let verification = verify(&Source::new("p.dot", text), &crate::sample::facts(), &Levels::default());
        let found = verification.diagnostics.into_iter().filter(|found| found.level != Severity::Note);
        found.map(|found| (found.code, found.level, found.message)).collect::<Vec<_>>()
    };
    let refused = |said: &str| {
        (Code::P304, Severity::Error, format!("the usual answer `{said}` means none of the options of `q`"))
    };
    for said in ["Maybe", "3", "nowhere"] {
        assert_eq!(found(&choice(said)), [refused(said)]);
    }
    assert_eq!(
        found(&text(", \"human.default_choice\"=\"Maybe\"")),
        [refused("Maybe")],
        "`--auto-answer` takes it"
    );
    assert_eq!(
        found(&text(", \"human.default_choice\"=\"Maybe\", \"human.free_text\"=true, timeout=1h")),
        []
    );
    let idle = "the question `q` waits for ever: nothing says which answer counts after its timeout";
    assert_eq!(found(&text(", timeout=1h")), [(Code::P314, Severity::Warning, idle.to_owned())]);
    let by_default = text("").replace("start q", "node [timeout=1h] start q");
    assert_eq!(found(&by_default), [], "a time for work");
}

#[test]
fn g1_g2_goal_gates_name_where_to_go_back_to() {
    let graph = dot(&format!(
        "fallback_retry_target=a start a [{STEP}, goal_gate=true] b [{STEP}, goal_gate=true, retry_target=b] exit start -> a -> b -> exit"
    ))
    .expect("a graph");
    let goals: Vec<_> = graph
        .goals()
        .iter()
        .map(|goal| (goal.node.as_str(), goal.retry.as_ref().map(NodeId::as_str)))
        .collect();
    assert_eq!(goals, [("a", Some("a")), ("b", Some("b"))]);
}

#[test]
fn g_03_a_graph_of_json_may_begin_at_a_task() {
    let text = r#"{"graph": {"start": "start", "nodes": {"start": {"action": "Do it", "contract": "make", "max_visits": 2}, "end": {"type": "exit"}},
        "edges": [{"from": "start", "to": "end", "condition": "on_success"}, {"from": "start", "to": "start", "condition": "on_fail"}]}}"#;
    let graph = graph(text, Language::Json).expect("a graph");
    assert_eq!(graph.start().as_str(), "_start");
    assert_eq!(ways(&graph, "_start"), ["start Always"]);
    assert_eq!(ways(&graph, "start"), ["end Success", "start Fail"]);
    assert!(graph.edges().iter().any(|edge| edge.on == On::Fail));
}

#[test]
fn what_the_engine_does_not_run_yet_is_refused_by_name() {
    let text = r#"{"steps": [{"action": "Do it", "contract": "make", "needs": "x"}, {"action": "Do it", "contract": "make", "when": "x"}]}"#;
    assert_eq!(graph(text, Language::Json).expect_err("edges say it").len(), 2);
}

const CHECKED: &str = r#"{"graph": {"start": "a", "nodes": {"a": {"action": "Do it", SAID}, "end": {"type": "exit"}},
    "edges": [{"from": "a", "to": "end", "condition": "on_success"}]}}"#;

fn checked(said: &str) -> planctl_engine::Node {
    let graph = graph(&CHECKED.replace("SAID", said), Language::Json).expect("a graph");
    graph.node(&NodeId::new("a")).expect("it").clone()
}

#[test]
fn g04_x03_a_check_without_a_command_of_its_own_is_confirmed_by_a_person_after_the_work() {
    for (said, asks) in [
        (
            r#""verify": {"type": "output_contains", "value": "On branch"}"#,
            "\n\nThe plan asks: the output contains \"On branch\".",
        ),
        (
            r#""verify": {"type": "output_not_contains", "value": "error"}"#,
            "\n\nThe plan asks: the output does not contain \"error\".",
        ),
        (r#""verify": {"type": "exit_code_zero"}"#, "\n\nThe plan asks: the command exits with 0."),
        (r#""verify": {"type": "any_output"}"#, "\n\nThe plan asks: the command prints something."),
        (r#""verify": {"type": "manual"}"#, ""),
        (r#""contract": "none""#, ""),
        (
            r#""contract": "none", "verify": {"type": "output_contains", "value": "x"}"#,
            "\n\nThe plan asks: the output contains \"x\".",
        ),
    ] {
        let node = checked(said);
        let task = node.task().expect("an agent works");
        assert_eq!((task.contract.command.as_str(), task.role.as_str()), ("", "coder"), "{said}");
        let confirmation = node.confirmation.as_deref().expect("a person confirms");
        assert_eq!(confirmation.question.text, format!("Is this done? Do it{asks}"), "{said}");
        assert_eq!(confirmation.question.options, ["done", "not done"]);
    }
}

#[test]
fn g04_x02_a_check_of_an_output_is_part_of_the_contract_whose_output_it_is() {
    let passes = |command: &str, check: &str| {
        let node = checked(&format!(r#""contract": "{command}", "verify": {check}"#));
        assert_eq!(node.confirmation, None);
        let contract = &node.task().expect("an agent works").contract;
        let ended = std::process::Command::new("bash")
            .args(["--noprofile", "--norc", "-p", "-c", &contract.command])
            .output();
        let ended = ended.expect("bash");
        (
            ended.status.code() == Some(contract.expect.into()),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    };
    let says = |kind: &str, value: &str| format!(r#"{{"type": "{kind}", "value": "{value}"}}"#);
    assert!(passes("echo on BRANCH main", &says("output_contains", "On branch")).0);
    assert!(passes("echo on branch >&2", &says("output_contains", "On branch")).0, "both streams");
    let (passed, why) = passes("echo main", &says("output_contains", "it's *"));
    assert!(!passed && why.contains("the output does not contain: it's *"), "{why}");
    assert!(!passes("echo 2 Errors", &says("output_not_contains", "error")).0);
    assert!(passes("echo fine", &says("output_not_contains", "error")).0);
    let (passed, why) = passes("echo fine; exit 3", &says("output_not_contains", "error"));
    assert!(!passed && why.contains("the command exited with 3"), "{why}");
    assert!(!passes("echo '  '", r#"{"type": "any_output"}"#).0);
    assert!(passes("echo x # said", r#"{"type": "any_output"}"#).0);
    assert!(passes("test -d /", r#"{"type": "exit_code_zero"}"#).0);
}

#[test]
fn h28_h30_a_file_and_a_person_are_asked_for_beside_a_contract() {
    let both = checked(r#""contract": "make", "verify": {"type": "file_exists", "value": "a b"}"#);
    assert_eq!(
        both.task().expect("an agent works").contract.command,
        "(\ntest -e 'a b'\n)\n[ $? -eq 0 ] || exit 1\n(\nmake\n)"
    );
    assert_eq!(both.confirmation, None);
    let signed = checked(r#""contract": "make", "verify": {"type": "manual"}"#);
    assert_eq!(signed.task().expect("an agent works").contract.command, "make");
    assert!(signed.confirmation.is_some());
    let confirmed = checked(r#""contract": "none", "verify": {"type": "file_exists", "value": "x"}"#);
    assert_eq!(confirmed.task().expect("an agent works").contract.command, "test -e 'x'");
    assert!(confirmed.confirmation.is_some());
}

#[test]
fn s8_n3_a_house_runs_another_plan_which_a_person_approves_unless_it_says_otherwise() {
    let graph = dot(
        "start s [shape=house, stack.child_dotfile=\"c.dot\"] t [shape=house, stack.child_dotfile=\"d.md\", \
         stack.child_approval=inherit, on_fail=warn] exit start -> s -> t -> exit t -> exit [on=exhaust]",
    )
    .expect("a graph");
    let plans: Vec<_> = graph
        .sub_plans()
        .map(|(node, plan)| {
            (node.id.as_str(), plan.path.as_str(), plan.approval, plan.on_exhausted, node.step())
        })
        .collect();
    assert_eq!(
        plans,
        [
            ("s", "c.dot", ChildApproval::Ask, Outcome::Failed, Some(1)),
            ("t", "d.md", ChildApproval::Inherit, Outcome::Warned, Some(2)),
        ]
    );
    let json = r#"{"graph": {"start": "s", "nodes": {"s": {"type": "start"}, "p": {"type": "sub_plan", "stack.child_dotfile": "c.md"}, "end": {"type": "exit"}},
        "edges": [{"from": "s", "to": "p"}, {"from": "p", "to": "end", "condition": "on_success"}]}}"#;
    assert_eq!(graph_paths(&self::graph(json, Language::Json).expect("a graph")), ["c.md"]);
}

const A6: &str = "start a [shape=house, stack.child_dotfile=\"c.md\"SAID] exit start -> a -> exit";

fn folders(graph: &Graph) -> Vec<Option<&str>> {
    graph.sub_plans().map(|(_, plan)| plan.folder.as_deref()).collect()
}

#[test]
fn a6_a_sub_plan_has_a_folder_of_its_own_or_the_graphs() {
    let own = |said: &str| {
        let graph = dot(&A6.replace("SAID", &format!(", stack.child_workdir=\"{said}\""))).expect("a graph");
        folders(&graph)[0].map(str::to_owned)
    };
    assert_eq!(own("sub").as_deref(), Some("sub"));
    assert_eq!(own("./services//api/").as_deref(), Some("services/api"));
    assert_eq!(own("with space").as_deref(), Some("with space"));
    assert_eq!(own("./"), None, "where the plan around it works");
    let graph = dot(
        "stack.child_workdir=all stack.child_dotfile=\"c.md\" start a [shape=house] b [shape=house, stack.child_workdir=\"own\"] \
         c [shape=house, stack.child_workdir=\".\"] exit start -> a -> b -> c -> exit",
    )
    .expect("a graph");
    assert_eq!(folders(&graph), [Some("all"), Some("own"), None]);
    let plain = dot(&A6.replace("SAID", "")).expect("a graph");
    assert_eq!(folders(&plain), [None]);
    assert!(
        !serde_json::to_string(&plain).unwrap().contains("folder"),
        "as it was kept before there were any"
    );
    assert_eq!(serde_json::from_str::<Graph>(&serde_json::to_string(&graph).unwrap()).unwrap(), graph);
}

#[test]
fn a6_every_form_that_loses_nothing_keeps_the_folder() {
    let json = r#"{"graph": {"start": "s", "stack.child_workdir": "all", "nodes": {"s": {"type": "start"},
        "p": {"type": "sub_plan", "stack.child_dotfile": "c.md", "stack.child_workdir": "services/api"},
        "q": {"type": "sub_plan", "stack.child_dotfile": "c.md"}, "end": {"type": "exit"}},
        "edges": [{"from": "s", "to": "p"}, {"from": "p", "to": "q", "condition": "on_success"},
        {"from": "q", "to": "end", "condition": "on_success"}]}}"#;
    let read = |text: &str, language| check(&Source::new("plan", text), language).0.remove(0);
    let (workflow, graph) = (read(json, Language::Json), graph(json, Language::Json).expect("a graph"));
    let wanted = [Some("services/api"), Some("all")];
    assert_eq!(folders(&graph), wanted);
    for workflow in [workflow, of_graph(&graph)] {
        let written = [(to_dot(&workflow), Language::Dot), (to_json(&workflow).to_string(), Language::Json)];
        for (text, language) in written {
            assert_eq!(folders(&self::graph(&text, language).expect("a graph")), wanted, "{text}");
        }
    }
    let markdown = to_markdown(&of_graph(&graph)).text;
    let source = Source::new("plan.md", markdown.as_str());
    let read = planctl_lang::verify(&source, &Facts::default(), &Levels::default());
    assert_eq!(folders(&read.graph.expect("a graph")), wanted, "{markdown}");
}

#[test]
fn a6_a_folder_that_can_be_none_of_the_workspace_is_refused_where_it_stands() {
    let found = |said: &str| {
        let text =
            format!("digraph G {{ {} }}", A6.replace("SAID", &format!(", stack.child_workdir={said}")));
        let found = check(&Source::new("plan.dot", text.as_str()), Language::Dot).1;
        let errors: Vec<_> = found.into_iter().filter(planctl_lang::Diagnostic::is_error).collect();
        assert_eq!(errors.len(), 1, "{said}: {errors:?}");
        let at = errors[0].spans[0].span;
        (errors[0].code, errors[0].message.clone(), text[at.start..at.end].to_owned())
    };
    for (said, code, why) in [
        ("\"/etc\"", Code::P205, "the folder `/etc` of a sub-plan is absolute"),
        ("\"../other\"", Code::P205, "the folder `../other` of a sub-plan leaves the workspace"),
        ("\"a/../b\"", Code::P205, "the folder `a/../b` of a sub-plan has `..` in it"),
        ("\"~/b\"", Code::P205, "the folder `~/b` of a sub-plan is in a home directory"),
        ("\"\"", Code::P015, "the folder `` of a sub-plan is empty"),
        ("\"  \"", Code::P015, "the folder `  ` of a sub-plan is empty"),
        ("\"a\\nb\"", Code::P015, "the folder `a\\nb` of a sub-plan has a character that none can have"),
    ] {
        assert_eq!(found(said), (code, why.to_owned(), said.to_owned()));
    }
    // A part that stands once is reported once, and one without effect is not.
    let of_graph = |nodes: &str| {
        let text = format!(
            "digraph G {{ stack.child_workdir=\"../x\" start {nodes} exit start -> a -> b -> exit }}"
        );
        let found = check(&Source::new("plan.dot", text), Language::Dot).1;
        found.into_iter().filter(|found| found.code == Code::P205).count()
    };
    let house = "shape=house, stack.child_dotfile=\"c.md\"";
    assert_eq!(of_graph(&format!("a [{house}] b [{house}]")), 1);
    assert_eq!(
        of_graph(&format!("a [{house}, stack.child_workdir=x] b [{house}, stack.child_workdir=y]")),
        0
    );
    assert_eq!(of_graph(&format!("a [{STEP}] b [{STEP}]")), 0);
    let nul = r#"{"graph": {"start": "p", "nodes": {"p": {"type": "sub_plan", "stack.child_dotfile": "c.md", "stack.child_workdir": "a\u0000b"},
        "end": {"type": "exit"}}, "edges": [{"from": "p", "to": "end", "condition": "on_success"}]}}"#;
    let found = check(&Source::new("plan.json", nul), Language::Json).1;
    assert!(found.iter().any(|found| found.code == Code::P015), "{found:?}");
}

#[test]
fn a6_what_is_there_in_place_of_the_folder_is_said() {
    let text = format!("digraph G {{ {} }}", A6.replace("SAID", ", stack.child_workdir=\"sub/\""));
    let source = Source::new("plan.dot", text.as_str());
    assert!(planctl_lang::read(&source).wants().files.contains("sub"));
    let found = |fact: FileFact| {
        let facts = Facts { files: [("sub".to_owned(), fact)].into(), ..Facts::default() };
        let found = planctl_lang::verify(&source, &facts, &Levels::default()).diagnostics;
        let found = found.into_iter().filter(|found| found.level != Severity::Note);
        found.map(|found| (found.code, found.level, found.message)).collect::<Vec<_>>()
    };
    let said = |code, level, message: &str| vec![(code, level, message.to_owned())];
    assert_eq!(found(FileFact::Directory), []);
    let missing = said(Code::P213, Severity::Warning, "the folder `sub` is not there");
    assert_eq!(found(FileFact::Missing), missing);
    let file = said(Code::P213, Severity::Error, "`sub` is a file, not a folder");
    assert_eq!(found(FileFact::Regular { size: 3 }), file);
    let pipe = said(Code::P213, Severity::Error, "`sub` is a named pipe, not a folder");
    assert_eq!(found(FileFact::Special { special: planctl_lang::SpecialKind::Fifo }), pipe);
    let outside =
        said(Code::P205, Severity::Error, "the folder `sub` is behind a link that leaves the workspace");
    assert_eq!(found(FileFact::Outside { target: "/etc".to_owned() }), outside);
}

#[test]
fn a_sub_plan_whose_file_is_missing_or_no_plan_is_told_at_its_place() {
    let judged = |text: &str, fact: SubPlanFact| {
        let source = Source::new("plan.dot", text);
        assert!(planctl_lang::read(&source).wants().sub_plans.contains("c.md"));
        let facts = Facts { sub_plans: [("c.md".to_owned(), fact)].into(), ..Facts::default() };
        let found = planctl_lang::verify(&source, &facts, &Levels::default()).diagnostics;
        let found = found.into_iter().filter(|found| found.code == Code::P214);
        let told = |found: planctl_lang::Diagnostic| {
            assert_eq!(found.level, Severity::Error);
            (found.message, source.slice(found.spans[0].span).to_owned())
        };
        found.map(told).collect::<Vec<_>>()
    };
    let of_node = format!("digraph G {{ {} }}", A6.replace("SAID", ", stack.child_workdir=\"sub\""));
    let of_graph = "digraph G { stack.child_dotfile=\"c.md\" start a [shape=house] b [shape=house] exit start -> a -> b -> exit }";
    for text in [of_node.as_str(), of_graph] {
        let at = |message: &str| vec![(message.to_owned(), "\"c.md\"".to_owned())];
        assert_eq!(judged(text, SubPlanFact::Readable), []);
        assert_eq!(judged(text, SubPlanFact::Missing), at("the plan `c.md` is not there"));
        let why = SubPlanFact::Refused { why: "it is a directory".to_owned() };
        assert_eq!(judged(text, why), at("`c.md` can't be read as a plan: it is a directory"));
    }
    // Sub-plans without use are not asked for.
    let own = of_graph.replace("[shape=house]", "[shape=house, stack.child_dotfile=\"d.md\"]");
    let wants = planctl_lang::read(&Source::new("plan.dot", own.as_str())).wants();
    assert_eq!(wants.sub_plans, ["d.md".to_owned()].into());
    let facts = Facts {
        sub_plans: [("d.md".to_owned(), SubPlanFact::Missing)].into(),
        existing_around: vec!["plans/d.md".to_owned()],
        ..Facts::default()
    };
    let found = planctl_lang::verify(&Source::new("plan.dot", own.as_str()), &facts, &Levels::default());
    let helps: Vec<_> = found.diagnostics.iter().filter_map(|found| found.help.as_deref()).collect();
    assert_eq!(helps, ["did you mean `plans/d.md`?"; 2], "{found:?}");
}

fn graph_paths(graph: &Graph) -> Vec<&str> {
    graph.sub_plans().map(|(_, plan)| plan.path.as_str()).collect()
}

fn is_in_worktree(graph: &Graph, fork: &str) -> bool {
    matches!(kind(graph, fork), NodeKind::Fork(fork) if fork.in_worktree)
}

#[test]
fn a_fork_parts_where_it_or_a_node_on_its_branches_says_so() {
    let forked = |fork: &str, one: &str, inner: &str| {
        dot(&format!(
            "start f [shape=component{fork}] x [{STEP}{one}] g [shape=component] y [{STEP}{inner}] z [{STEP}] \
             k [shape=tripleoctagon] j [shape=tripleoctagon] exit \
             start -> f -> x -> j f -> g -> y -> k g -> z -> k k -> j j -> exit"
        ))
        .expect("a graph")
    };
    let says = ", workspace=worktree";
    let both = |graph: &Graph| (is_in_worktree(graph, "f"), is_in_worktree(graph, "g"));
    assert_eq!(both(&forked("", "", "")), (false, false));
    assert_eq!(both(&forked(says, "", "")), (true, false));
    assert_eq!(both(&forked("", says, "")), (true, false));
    let inner = forked("", "", says);
    assert_eq!(both(&inner), (false, true), "the innermost fork around it");
    let branch = inner.worktree_branch(&NodeId::new("y")).expect("a branch");
    assert_eq!((branch.fork.as_str(), branch.join.as_str(), branch.branch), ("g", "k", 0));
    assert_eq!(inner.worktree_branch(&NodeId::new("x")), None);
    let restart = |to: &str| {
        dot(&format!(
            "start a [{STEP}] f [shape=component{says}] x [{STEP}] y [{STEP}] j [shape=tripleoctagon] exit \
             start -> a -> f -> x -> j f -> y -> j j -> exit j -> {to} [on=fail, loop_restart=true]"
        ))
    };
    assert!(restart("f").is_ok() && restart("a").is_ok());
    assert_eq!(
        restart("x").expect_err("nothing makes its worktree"),
        [(
            Code::P315,
            "the run would begin anew at `x`, on a branch that has a worktree of its own".to_owned()
        )]
    );
    let refused = dot(&format!("start a [{STEP}{says}] exit start -> a -> exit")).expect_err("no branch");
    assert_eq!(
        refused,
        [(Code::P017, "a worktree for `a`, which is on no branch, is not supported yet".to_owned())]
    );
}

#[test]
fn a4_a_contract_is_not_judged_by_its_own_products() {
    let node = "a [prompt=\"Mend it.\", contract=\"chmod +x check.sh && ./check.sh; test -e log || true; touch log\"]";
    let graph =
        dot(&format!("start [shape=Mdiamond] done [shape=Msquare] {node} start -> a -> done")).unwrap();
    let files = &graph.task(&NodeId::new("a")).unwrap().contract_files;
    assert_eq!(files.iter().map(String::as_str).collect::<Vec<_>>(), ["check.sh"]);
}
