//! The dialect's idioms that pipelines in the wild use: aliases, keys, diamonds that work, one finding for one kind
//! (DOT B4, B6, B7, B9, B12, B13, B18).

use std::io::Write as _;
use std::process::{Command, Stdio};

use planctl_engine::{NodeId, NodeKind};
use planctl_lang::workflow::{
    Kind, Language, Workflow, check, dot_text, of_plan, to_dot, to_graph, to_json, to_markdown,
};
use planctl_lang::{Code, Diagnostic, Facts, Levels, Severity, Source, groups, verify};

fn checked(text: &str) -> (Vec<Workflow>, Vec<Diagnostic>) {
    check(&Source::new("plan.dot", text), Language::Dot)
}

fn dot(statements: &str) -> String {
    format!("digraph G {{\n{statements}\n}}\n")
}

fn told(found: &[Diagnostic]) -> Vec<Code> {
    found.iter().filter(|found| found.level != Severity::Note).map(|found| found.code).collect()
}

fn graph(statements: &str) -> planctl_engine::Graph {
    let text = dot(statements);
    let source = Source::new("plan.dot", &text);
    let (workflows, found) = check(&source, Language::Dot);
    assert!(found.iter().all(|found| !found.is_error()), "{found:#?}");
    to_graph(&source, &workflows[0]).expect("a graph")
}

const STEP: &str = "prompt=\"Do it.\", contract=\"make test\"";

#[test]
fn dot_b13_findings_of_one_kind_are_told_once_with_a_count_their_places_and_the_line_that_mends_them() {
    let boxes: String = (0..49).map(|at| format!("n{at} [prompt=\"Do {at}.\"]\n")).collect();
    let chain = (0..49).map(|at| format!(" -> n{at}")).collect::<String>();
    let text = dot(&format!("start\n{boxes}exit\nstart{chain} -> exit"));
    let source = Source::new("plan.dot", &text);
    let (_, found) = check(&source, Language::Dot);
    assert_eq!(found.len(), 49, "each finding is there for programs");
    let groups = groups(&found);
    assert_eq!((groups.len(), groups[0].count()), (1, 49));
    let drawn = groups[0].as_one(&source).render(&source, false);
    assert!(drawn.contains("node `n0` has no contract"), "{drawn}");
    assert!(drawn.contains("and 48 more: `n1` (4:1), `n2` (5:1)"), "{drawn}");
    assert!(drawn.contains("and 36 others"), "{drawn}");
    assert!(drawn.contains("all 49 at once: `node [contract=none]`"), "{drawn}");
    assert!(drawn.lines().count() < 20, "{drawn}");
    // The line does what it says.
    let mended = text.replace("start\n", "node [contract=none]\nstart\n");
    assert_eq!(told(&checked(&mended).1), []);
}

#[test]
fn dot_b13_what_is_mended_by_different_words_is_told_apart() {
    let text = dot(&format!(
        "start a [{STEP}, max_retrys=1] b [{STEP}, goal_gat=true] exit start -> a -> b -> exit"
    ));
    let (_, found) = checked(&text);
    assert_eq!(groups(&found).len(), 2);
    let one = groups(&found)[0].as_one(&Source::new("plan.dot", &text));
    assert_eq!(one, found[0], "one of a kind stays as it is");
}

#[test]
fn dot_b4_other_readers_names_of_what_a_command_printed_are_read() {
    let text = dot(
        "start t [shape=parallelogram, tool_command=\"echo ok\"] exit bad [shape=Msquare, result=failed]\n\
        start -> t\n t -> exit [condition=\"context.tool_stdout=ok\"]\n\
        t -> exit [condition=\"context.tool.last_line=ok\"]\n\
        t -> bad [on=always]",
    );
    let (workflows, found) = checked(&text);
    assert!(!told(&found).contains(&Code::P313), "{found:#?}");
    let conditions: Vec<String> = workflows[0]
        .edges
        .iter()
        .filter_map(|edge| Some(edge.condition.as_ref()?.value.to_string()))
        .collect();
    assert_eq!(conditions, ["context.tool.output=ok", "context.tool.last_line=ok"]);
    let (_, found) = checked(&dot("start t [shape=parallelogram, tool_command=\"true\"] exit\n\
        start -> t t -> exit [condition=\"context.stdout_of_tool=ok\"] t -> exit"));
    let unknown = found.iter().find(|found| found.code == Code::P313).expect("a finding");
    assert!(unknown.help.as_ref().unwrap().contains("`tool.output`"), "{unknown:?}");
}

fn question(statements: &str) -> planctl_engine::Question {
    let graph = graph(statements);
    let Some(NodeKind::Human(question)) = graph.node(&NodeId::new("ask")).map(|node| &node.kind) else {
        panic!("`ask` asks a person")
    };
    question.as_ref().clone()
}

#[test]
fn dot_b6_a_question_with_one_way_that_has_no_name_takes_any_text() {
    let ask = "ask [shape=hexagon, label=\"Say something.\"]";
    assert!(question(&format!("start {ask} exit start -> ask -> exit")).options.is_empty());
    let named = format!("start {ask} exit start -> ask ask -> exit [label=\"[G] Go on\"]");
    assert_eq!(question(&named).options, ["[G] Go on"]);
    let free = "start ask [shape=hexagon, mode=freeform] a [contract=make, prompt=x] exit start -> ask\n\
                ask -> a [label=a] ask -> exit [label=b] a -> exit";
    assert!(question(free).options.is_empty());
    let unfree = format!("start {} exit start -> ask -> exit", ask.replace(']', ", human.free_text=false]"));
    assert_eq!(question(&unfree).options, ["exit"]);
}

#[test]
fn dot_b6_two_options_with_one_key_are_told() {
    let text = |second: &str| {
        dot(&format!(
            "start ask [shape=hexagon, label=\"Ship?\"] exit bad [shape=Msquare, result=failed] start -> ask\n\
             ask -> exit [label=\"[Y] Yes\"] ask -> bad [label=\"{second}\"]"
        ))
    };
    assert_eq!(told(&checked(&text("Y) Yet another")).1), [Code::P320]);
    assert_eq!(told(&checked(&text("[N] No")).1), []);
    assert_eq!(told(&checked(&text("Yonder")).1), [], "the first letter is no key where another has it");
}

#[test]
fn dot_b7_a_diamond_with_a_prompt_is_work_whose_contract_its_edges_route() {
    let ways = "start -> check check -> exit [condition=\"outcome=success\"] check -> bad [on=fail]";
    let text = |said: &str| {
        dot(&format!("start check [shape=diamond, {said}] exit bad [shape=Msquare, result=failed] {ways}"))
    };
    let (workflows, found) = checked(&text("prompt=\"Is it good?\", contract=\"test -f good\", llm_model=m"));
    assert_eq!(told(&found), []);
    assert_eq!(workflows[0].nodes[1].kind.value, Kind::Task);
    // Nobody passes by saying so: as a box, it needs a contract.
    assert_eq!(told(&checked(&text("prompt=\"Is it good?\"")).1), [Code::P010]);
    // Without a prompt it decides, and what says how work is done is told.
    let (workflows, found) = checked(&text("max_retries=2, contract=\"test -f good\""));
    assert_eq!(workflows[0].nodes[1].kind.value, Kind::Decision);
    assert_eq!(told(&found), [Code::P321, Code::P321]);
    assert!(found[0].help.as_ref().unwrap().contains("`prompt`"));
    // Defaults of all nodes are meant for those that work.
    let (_, found) = checked(&dot(&format!(
        "node [contract=none] start check [shape=diamond] exit bad [shape=Msquare, result=failed] {ways}"
    )));
    assert_eq!(told(&found), []);
}

#[test]
fn dot_b12_after_a_text_that_can_t_be_read_nothing_is_told_that_may_follow_from_it() {
    let text = dot(&format!(
        "start [shape=Mdiamond]\na [label=\"First, {STEP}]\nb [label=\"Second\", prompt=\"x\"]\nexit\nstart -> a -> b -> exit"
    ));
    let (_, found) = checked(&text);
    assert_eq!(told(&found), [Code::P302], "{found:#?}");
    let lost = dot("start [shape=Mdiamond]\na [prompt \"x\"]\nexit\nstart -> a -> exit");
    assert_eq!(told(&checked(&lost).1), [Code::P302]);
}

#[test]
fn dot_b12_a_missing_quote_is_named_where_its_text_begins() {
    let text = dot(
        "start\na [label=\"Fix it, contract=none]\nb [label=\"Test it\", contract=none]\nexit\nstart -> a -> b -> exit",
    );
    let (_, found) = checked(&text);
    let [missing] = &found[..] else { panic!("{found:#?}") };
    let place = Source::new("plan.dot", &text).position(missing.spans[0].span.start);
    assert_eq!((place.line, place.column), (3, 10), "{missing:?}");
    assert!(missing.message.contains("`\"` is missing"), "{missing:?}");
    // A text that ends so on purpose stays one.
    let meant = dot("start a [label=\"x =\", contract=none, prompt=\"a\nb =\"] exit start -> a -> exit");
    assert_eq!(told(&checked(&meant).1), []);
}

#[test]
fn dot_b12_several_nodes_in_braces_begin_edges_as_they_end_them() {
    let text = dot(&format!(
        "start f [shape=component] j [shape=tripleoctagon] b [{STEP}] c [{STEP}] exit\n\
         start -> f -> {{b c}}\n{{b; c}} -> j -> exit"
    ));
    let (workflows, found) = checked(&text);
    assert!(found.iter().all(|found| !found.is_error()), "{found:#?}");
    let edges: Vec<String> =
        workflows[0].edges.iter().map(|edge| format!("{}>{}", edge.from.value, edge.to.value)).collect();
    assert_eq!(edges, ["start>f", "f>b", "f>c", "b>j", "c>j", "j>exit"]);
}

#[test]
fn dot_b12_a_weight_of_two_and_nothing_is_two() {
    let weighed = |weight: &str| {
        checked(&dot(&format!("start a [{STEP}] exit start -> a a -> exit [weight={weight}]")))
    };
    let (workflows, found) = weighed("2.0");
    assert_eq!((workflows[0].edges[1].weight, told(&found)), (2, vec![]));
    assert_eq!(told(&weighed("2.5").1), [Code::P015]);
}

#[test]
fn dot_b12_a_goal_gate_in_a_branch_that_always_runs_is_not_passed_by() {
    let forked = |join: &str, gate: &str| {
        dot(&format!(
            "retry_target=f start f [shape=component] a [{STEP}, goal_gate=true] b [{STEP}] j [shape=tripleoctagon{join}] exit\n\
             start -> f f -> a f -> b {gate} b -> j j -> exit"
        ))
    };
    assert_eq!(told(&checked(&forked("", "a -> j")).1), []);
    // One branch is enough there, so the other may not have run.
    assert_eq!(told(&checked(&forked(", join_policy=first_success", "a -> j")).1), [Code::P312]);
    // A way round it within its branch.
    let around = format!(
        "g [shape=diamond] c [{STEP}] f -> g g -> c [condition=\"context.x=1\"] g -> d [on=always] d [{STEP}, goal_gate=true] c -> j d -> j a -> j"
    );
    let (_, found) = checked(&forked("", &around));
    let past: Vec<&str> =
        found.iter().filter(|found| found.code == Code::P312).map(|found| found.message.as_str()).collect();
    assert_eq!(past, ["a path leads to the exit past the goal gate `d`"], "{found:#?}");
}

#[test]
fn dot_b12_a_way_back_out_of_branches_is_told_of_the_node_that_names_it() {
    let text = dot(
        "start exit plan [prompt=x, contract=\"test -f p\"] f [shape=component] j [shape=tripleoctagon] a [prompt=x, contract=\"test -f a\", retry_target=plan] \
         b [prompt=x, contract=\"test -f b\"] start -> plan -> f; f -> a -> j; f -> b -> j; j -> exit",
    );
    let found = verify(&Source::new("plan.dot", &text), &Facts::default(), &Levels::default()).diagnostics;
    let told = found.iter().find(|found| found.code == Code::P315).unwrap_or_else(|| panic!("{found:?}"));
    assert!(
        told.message.starts_with("a path leads from `a` back to `plan`, before where branches begin (`f`)"),
        "{told:?}"
    );
    let span = told.spans[0].span;
    assert_eq!(&text[span.start..span.end], "plan");
}

#[test]
fn dot_b18_a_condition_may_compare_with_nothing() {
    let (workflows, found) = checked(&dot(&format!(
        "start a [{STEP}] exit bad [shape=Msquare, result=failed] start -> a\n\
         a -> exit [condition=\"context.failure_reason= && outcome=success\"] a -> exit [condition=\"context.exit_code=\"] a -> bad [on=always]"
    )));
    assert!(!told(&found).contains(&Code::P303), "{found:#?}");
    let condition = workflows[0].edges[1].condition.as_ref().unwrap().value.to_string();
    assert_eq!(condition, "context.failure_reason=\"\" && outcome=success");
}

#[test]
fn a8_a_label_is_the_prompt_where_there_is_none() {
    let (_, found) = checked(&dot("start a [label=\"Mend it\", contract=make] exit start -> a -> exit"));
    assert_eq!(told(&found), []);
    let (_, found) = checked(&dot("start a [contract=make] exit start -> a -> exit"));
    assert_eq!(told(&found), [Code::P009]);
}

const WILD: &str = "// How the pipeline ends is at the bottom.
digraph wild-one {
    rankdir=LR; bgcolor=\"#fafafa\"  /* seen by people only */
    node [fontname=Helvetica, timeout=900s]
    start [shape=Mdiamond]
    subgraph cluster_work {
        label=\"Work\"; style=dashed
        a [shape=box, prompt=\"Do it.\", contract=\"make\", llm_model=gpt-5.4, x.stripes=odd, fillcolor=lightblue]
        ask [shape=hexagon, human.default_choice=done, timeout=2h, label=\"Say \\\"yes\\\".\"]
    }
    done [shape=Msquare]
    start -> a -> ask
    ask -> done [label=\"[Y] Yes\", color=green, weight=2.0]
    ask -> a:w [label=\"[N] No\", style=dotted]
}
";

#[test]
fn dot_b9_what_planctl_does_not_know_is_kept_to_the_letter() {
    let source = Source::new("plan.dot", WILD);
    let written = dot_text(&source).expect("it reads");
    for kept in [
        "// How the pipeline ends is at the bottom.",
        "rankdir=LR; bgcolor=\"#fafafa\"  /* seen by people only */",
        "subgraph cluster_work {",
        "fillcolor=lightblue",
        "ask -> a:w [label=\"[N] No\", style=dotted]",
        "digraph \"wild-one\" {",
        "timeout=\"900s\"",
        "\"x.stripes\"=odd",
        "\"human.default_choice\"=done",
        "llm_model=\"gpt-5.4\"",
    ] {
        assert!(written.contains(kept), "{kept} is not in\n{written}");
    }
    let again = Source::new("plan.dot", &written);
    assert_eq!(dot_text(&again).as_ref(), Some(&written));
    let (before, after) = (check(&source, Language::Dot).0, check(&again, Language::Dot).0);
    assert_eq!(to_json(&before[0]), to_json(&after[0]));
    assert_eq!(dot_text(&Source::new("plan.dot", "digraph { a [b] }")), None);
}

// Says what Graphviz makes of a text; nothing where it is not installed, which the test's output says.
#[allow(clippy::print_stdout, reason = "people who read the test's output see that a part of it was not run")]
fn graphviz(text: &str) -> Option<Result<(), String>> {
    let started = Command::new("dot")
        .arg("-Tcanon")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(missing) => {
            println!("NOT RUN: Graphviz is not installed ({missing}): apt-get install graphviz");
            return None;
        }
    };
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("Graphviz reads");
    let ended = child.wait_with_output().expect("Graphviz ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Some(if ended.status.success() && !said.contains("syntax") { Ok(()) } else { Err(said) })
}

#[test]
fn dot_b9_graphviz_reads_what_planctl_writes() {
    let source = Source::new("plan.dot", WILD);
    let json = r#"{"name": "a-b", "graph": {"start": "fix", "nodes": {
        "fix": {"type": "task", "action": "Mend it", "contract": "make", "timeout": "900s", "contract_timeout": "2m"},
        "ask": {"type": "human", "name": "Ship?", "human.default_choice": "end", "timeout": "15m"},
        "Graph": {"type": "checkpoint"},
        "end": {"type": "exit"}},
        "edges": [{"from": "fix", "to": "ask"}, {"from": "ask", "to": "Graph"}, {"from": "Graph", "to": "end"}]}}"#;
    let (workflows, _) = check(&Source::new("plan.json", json), Language::Json);
    let of_json = to_dot(&workflows[0]);
    for text in [dot_text(&source).unwrap(), to_dot(&checked(WILD).0[0]), of_json] {
        match graphviz(&text) {
            None => return,
            Some(read) => assert_eq!(read, Ok(()), "{text}"),
        }
    }
    assert!(graphviz(WILD).is_some_and(|read| read.is_err()), "as it was written, Graphviz does not read it");
}

#[test]
fn dot_b9_a_graph_whose_start_is_a_task_has_a_start_in_dot() {
    let json = r#"{"name": "fix", "graph": {"start": "fix", "nodes": {
        "fix": {"type": "task", "action": "Mend it", "contract": "make"}, "start": {"type": "checkpoint"}, "done": {"type": "exit"}},
        "edges": [{"from": "fix", "to": "start", "condition": "on_success"}, {"from": "start", "to": "done"}]}}"#;
    let (workflows, found) = check(&Source::new("plan.json", json), Language::Json);
    assert_eq!(told(&found), []);
    let written = to_dot(&workflows[0]);
    let (again, found) = checked(&written);
    assert_eq!(told(&found), [], "{written}");
    let entry = again[0].entry().expect("a start");
    assert_eq!(again[0].nodes[entry].kind.value, Kind::Start);
    assert_eq!(again[0].edges.iter().filter(|edge| edge.to.value == "fix").count(), 1, "{written}");
}

#[test]
fn dot_b9_numbers_and_flags_are_such_in_json() {
    let (workflows, _) = checked(&dot(&format!(
        "max_visits=5 start a [{STEP}, max_retries=2, goal_gate=true, timeout=900s] exit start -> a -> exit"
    )));
    let json = to_json(&workflows[0]);
    assert_eq!(json["max_visits"], 5);
    assert_eq!(json["nodes"][1]["max_retries"], 2);
    assert_eq!(json["nodes"][1]["goal_gate"], true);
    assert_eq!(json["nodes"][1]["timeout"], "900s");
    let text = format!("{json:#}");
    let (again, found) = check(&Source::new("plan.json", &text), Language::Json);
    assert!(found.iter().all(|found| !found.is_error()), "{found:#?}");
    assert_eq!(to_json(&again[0]), json);
}

// The edges of a graph written as a plan and read again.
fn through_markdown(statements: &str) -> (Vec<String>, Vec<String>) {
    let written = to_markdown(&checked(&dot(statements)).0[0]);
    let source = Source::new("plan.md", &written.text);
    let (tree, _) = planctl_lang::parse(&source);
    let (workflow, _) = of_plan(&source, &tree);
    let edges = workflow.edges.iter().map(|edge| {
        let condition = edge.condition.as_ref().map(|condition| format!(" if {}", condition.value));
        let on = if condition.is_some() { String::new() } else { format!(" {}", edge.on.value.as_str()) };
        format!("{}>{}{on}{}", edge.from.value, edge.to.value, condition.unwrap_or_default())
    });
    let mut edges: Vec<String> = edges.collect();
    edges.sort();
    (edges, written.lost)
}

#[test]
fn h_33_block_of_a_library_leaves_the_field_out_in_markdown() {
    let step = format!("{STEP}, on_fail=block");
    let written = to_markdown(&checked(&dot(&format!("start a [{step}] exit start -> a -> exit"))).0[0]);
    assert!(!written.text.contains("on_fail"), "{}", written.text);
    let (_, found) = planctl_lang::parse(&Source::new("plan.md", &written.text));
    assert_eq!(found, Vec::new());
}

#[test]
fn dot_b10_the_success_of_the_last_decision_is_kept_in_markdown() {
    let (edges, lost) = through_markdown(&format!(
        "start a [{STEP}] d [shape=diamond] exit start -> a -> d [on=always]\n\
         d -> exit [condition=\"outcome=success\"] d -> a [condition=\"outcome=fail\"]"
    ));
    assert!(edges.contains(&"2>done success".to_owned()), "{edges:?}");
    assert!(edges.contains(&"2>1 fail".to_owned()), "{edges:?}");
    assert_eq!(lost, Vec::<String>::new());
}

#[test]
fn dot_b10_a_choice_without_conditions_becomes_no_fork_in_markdown() {
    let (edges, lost) = through_markdown(&format!(
        "start a [{STEP}] b [{STEP}] c [{STEP}] d [{STEP}] exit start -> a a -> c [label=\"Fix it\"] a -> b [weight=2] a -> d\n\
         b -> exit c -> exit d -> exit"
    ));
    let of_a: Vec<&str> = edges.iter().filter(|edge| edge.starts_with("1>")).map(String::as_str).collect();
    assert_eq!(of_a, ["1>2 success", "1>3 if preferred_label=\"Fix it\""], "{edges:?}");
    assert!(lost.contains(&"the edge from `a` to `d`".to_owned()), "{lost:?}");
}

#[test]
fn a_node_of_json_without_a_name_is_told_once() {
    for (node, told) in [("{}", "`id` is missing"), (r#"{"id": 1}"#, "`id` is a number, not a text")] {
        let text = format!(r#"{{"nodes": [{node}], "edges": []}}"#);
        let found = check(&Source::new("g.json", text), Language::Json).1;
        let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        assert!(
            messages.contains(&told) && !messages.iter().any(|said| said.contains("an object with")),
            "{messages:?}"
        );
    }
}
