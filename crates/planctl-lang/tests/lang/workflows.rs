//! Graphs of DOT and JSON as one tree: rows S1–S13, L1–L6, G-01–G-12, the seeds' examples, and round trips.

use planctl_engine::On;
use planctl_lang::workflow::{
    EdgeTree, Kind, Language, NodeTree, Origin, Workflow, check, to_ascii, to_dot, to_json, to_markdown,
    to_mermaid,
};
use planctl_lang::{Code, Diagnostic, Severity, Source};
use proptest::prelude::*;

struct Checked {
    text: String,
    workflows: Vec<Workflow>,
    found: Vec<Diagnostic>,
}

fn checked(text: &str, language: Language) -> Checked {
    let (workflows, found) = check(&Source::new("plan", text), language);
    Checked { text: text.to_owned(), workflows, found }
}

fn dot(statements: &str) -> Checked {
    checked(&format!("digraph G {{ {statements} }}"), Language::Dot)
}

fn json(text: &str) -> Checked {
    checked(text, Language::Json)
}

impl Checked {
    fn codes(&self) -> Vec<Code> {
        self.found.iter().filter(|found| found.level != Severity::Note).map(|found| found.code).collect()
    }

    fn of(&self, code: Code) -> Vec<(&str, &str)> {
        let own = self.found.iter().filter(|found| found.code == code);
        own.map(|found| {
            (&self.text[found.spans[0].span.start..found.spans[0].span.end], found.message.as_str())
        })
        .collect()
    }

    fn kind(&self, name: &str) -> Kind {
        self.node(name).kind.value
    }

    fn node(&self, name: &str) -> &NodeTree {
        self.workflows[0].nodes.iter().find(|node| node.id.value == name).expect("a node of this name")
    }

    fn edge(&self, at: usize) -> &EdgeTree {
        &self.workflows[0].edges[at]
    }
}

const STEP: &str = "prompt=\"Do it.\", contract=\"make test\"";

#[test]
fn s1_s2_starts_and_exits_are_known_by_shape_or_name() {
    let read = dot(&format!("start a [{STEP}] End start -> a -> End"));
    assert!(read.found.is_empty(), "{:?}", read.found);
    assert_eq!((read.kind("start"), read.kind("a"), read.kind("End")), (Kind::Start, Kind::Task, Kind::Exit));
    let shaped = dot(&format!("go [shape=Mdiamond] a [{STEP}] stop [shape=Msquare] go -> a -> stop"));
    assert_eq!((shaped.kind("go"), shaped.kind("stop")), (Kind::Start, Kind::Exit));
    let boxed = dot("node [shape=box] start exit start -> exit");
    assert_eq!((boxed.kind("start"), boxed.kind("exit")), (Kind::Start, Kind::Exit));
    let failed = dot(&format!(
        "start a [{STEP}] exit bad [shape=Msquare, result=failed] start -> a -> exit a -> bad [on=exhaust]"
    ));
    assert!(failed.found.is_empty(), "{:?}", failed.found);
    assert!(failed.node("bad").is_failed_exit());
}

#[test]
fn s3_to_s8_each_shape_is_a_kind_of_node() {
    let kinds = [
        ("box", Kind::Task),
        ("hexagon", Kind::Human),
        ("diamond", Kind::Decision),
        ("component", Kind::Fork),
        ("tripleoctagon", Kind::Join),
        ("parallelogram", Kind::Call),
        ("house", Kind::SubPlan),
    ];
    for (shape, kind) in kinds {
        assert_eq!(dot(&format!("a [shape={shape}]")).kind("a"), kind, "{shape}");
    }
    assert_eq!(dot("a [shape=hexagon, escalate=\"stuck\"]").kind("a"), Kind::Escalate);
    assert_eq!(dot("a [checkpoint=true]").kind("a"), Kind::Checkpoint);
    let call = dot("start a [shape=parallelogram] exit start -> a -> exit");
    assert_eq!(call.of(Code::P009), [("a", "node `a` has no command to call")]);
    let child = dot("start a [shape=house] exit start -> a -> exit");
    assert_eq!(child.of(Code::P009), [("a", "node `a` has no plan to run")]);
}

#[test]
fn s9_a_type_beats_the_shape_and_what_is_unknown_is_told() {
    assert_eq!(dot("a [shape=box, type=\"wait.human\"]").kind("a"), Kind::Human);
    assert_eq!(dot("a [type=codergen, shape=diamond]").kind("a"), Kind::Task);
    let unknown = dot(&format!("start a [shape=circle, {STEP}] exit start -> a -> exit"));
    assert_eq!(unknown.kind("a"), Kind::Task);
    assert_eq!(unknown.codes(), [Code::P314]);
    let near = dot(&format!("start a [type=escalat, {STEP}] exit start -> a -> exit"));
    assert_eq!(near.found[0].help.as_deref(), Some("did you mean `escalate`?"));
}

#[test]
fn the_first_pipelines_of_the_dialect_are_read() {
    let read = dot("Start [node_type=\"start\", shape=\"circle\", timeout=\"300\"]; \
         Check [shape=\"box\", contract=none, llm_prompt=\"Say outcome=done or outcome=skip.\"]; \
         Exit [node_type=\"exit\", shape=\"doublecircle\"]; Start -> Check; Check -> Exit [condition=\"outcome=done\", label=\"done\"]; \
         Check -> Exit [condition=\"outcome=skip\"];");
    assert_eq!((read.kind("Start"), read.kind("Exit")), (Kind::Start, Kind::Exit));
    assert_eq!(read.node("Check").prompt(), "Say outcome=done or outcome=skip.");
    assert_eq!(read.codes(), [Code::P310], "{:?}", read.found);
}

#[test]
fn ruling_2_an_edge_for_the_rest_is_no_way_on_from_a_failure() {
    let ways = |rest: &str| {
        dot(&format!(
            "start a [{STEP}] b [{STEP}] exit start -> a a -> b [condition=\"outcome=success\"] a -> exit {rest} b -> exit"
        ))
    };
    assert_eq!(ways("").of(Code::P310), [("a -> exit", "the edge from `a` to `exit` is never followed")]);
    assert!(ways("[on=fail]").found.is_empty());
    assert!(ways("[condition=\"outcome=fail\"]").found.is_empty());
}

#[test]
fn a8_a_label_is_the_prompt_where_there_is_none() {
    let read = dot("a [label=\"Fix it\"] b");
    assert_eq!((read.node("a").prompt(), read.node("b").prompt()), ("Fix it", "b"));
    assert_eq!(read.node("b").title(), "b");
}

#[test]
fn edges_say_for_which_outcomes_they_are() {
    let read = dot(
        "a b a -> b a -> b [condition=\"outcome=fail\"] a -> b [on=always] a -> b [on=exhaust, condition=\"outcome=fail && context.x=1\"]",
    );
    let on: Vec<On> = (0..4).map(|at| read.edge(at).on.value).collect();
    assert_eq!(on, [On::Success, On::Always, On::Always, On::Exhaust]);
    assert_eq!(read.edge(1).condition.as_ref().unwrap().value.to_string(), "outcome=fail");
    assert_eq!(read.edge(3).condition.as_ref().unwrap().value.to_string(), "context.x=1");
    assert!(read.edge(2).condition.is_none());
}

#[test]
fn d23_l2_an_edge_to_an_undeclared_node_is_an_error() {
    let read = dot(&format!("start repair [{STEP}] exit start -> repair -> exit repair -> repai"));
    assert_eq!(read.of(Code::P304), [("repai", "an edge names `repai`, but there is no such node")]);
    let target =
        dot(&format!("retry_target=x start a [{STEP}, fallback_retry_target=y] exit start -> a -> exit"));
    assert_eq!(target.of(Code::P304).len(), 2);
    let step = dot(&format!(
        "start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"steps.b.exit_code=2\"]"
    ));
    assert_eq!(step.of(Code::P304)[0].1, "a condition names `b`, but there is no such node");
}

#[test]
fn l1_a_graph_has_one_start_and_one_exit() {
    assert_eq!(dot(&format!("a [{STEP}] exit a -> exit")).of(Code::P306)[0].1, "the graph has no start node");
    assert_eq!(
        dot(&format!("start a [{STEP}] start -> a")).of(Code::P306)[0].1,
        "the graph has no exit node"
    );
    let failed = dot(&format!("start a [{STEP}] exit [result=failed] start -> a -> exit"));
    assert_eq!(failed.of(Code::P306), [("exit", "each exit of the graph is for runs that failed")]);
    let two = dot(&format!("start Start a [{STEP}] exit end start -> a -> exit Start -> a -> end"));
    assert_eq!(two.of(Code::P306).len(), 2);
}

#[test]
fn l2_what_is_never_entered_and_what_leads_nowhere_are_errors() {
    let read = dot(&format!(
        "start a [{STEP}] b [{STEP}] c [{STEP}] exit start -> a -> exit b -> exit a -> c [on=fail]"
    ));
    assert_eq!(read.of(Code::P305), [("b", "nothing leads to node `b`: it is unreachable")]);
    assert_eq!(read.of(Code::P307), [("c", "no edge leaves node `c`")]);
    let round = dot(&format!("start a [{STEP}, max_visits=2] exit start -> a -> a"));
    assert_eq!(round.of(Code::P307)[0].1, "no path leads from node `start` to an end");
    let jump = dot(&format!("retry_target=b start a [{STEP}] b [{STEP}] exit start -> a -> exit b -> a"));
    assert!(jump.of(Code::P305).is_empty(), "a retry target is entered by its jump");
    let misplaced = dot(&format!("start a [{STEP}] exit start -> a -> exit exit -> a a -> start [on=fail]"));
    assert_eq!(misplaced.of(Code::P308).len(), 2);
}

#[test]
fn l3_a_condition_that_cannot_be_read_is_an_error_at_its_place() {
    let read =
        dot(&format!("start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"outcome>fail\"]"));
    assert_eq!(read.of(Code::P303), [(">", "`>` is not in the language of conditions")]);
    let escaped =
        dot(&format!("start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"context.x=\\\"1\"]"));
    assert_eq!(escaped.of(Code::P303)[0].0, "\"context.x=\\\"1\"");
    let drift =
        dot(&format!("start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"outcome==skipped\"]"));
    assert_eq!(drift.of(Code::P005), [("==", "conditions compare with `=`")]);
}

#[test]
fn l4_gates_need_a_way_back_and_work_needs_words() {
    let read = dot(&format!("start a [{STEP}, goal_gate=true] exit start -> a -> exit"));
    assert_eq!(read.of(Code::P312)[0].1, "nothing says where to go when the goal gate `a` is not met");
    let words = dot("start a [contract=\"make\"] exit start -> a -> exit");
    assert_eq!(words.of(Code::P009), [("a", "node `a` has no prompt")]);
    assert_eq!(words.found[0].level, Severity::Warning);
}

#[test]
fn l6_what_else_is_worth_a_look() {
    let past = dot(&format!(
        "retry_target=a start a [{STEP}] b [{STEP}, goal_gate=true] exit start -> a -> b -> exit a -> exit [condition=\"outcome=skipped\"]"
    ));
    assert_eq!(past.of(Code::P312), [("b", "a path leads to the exit past the goal gate `b`")]);
    let bare = dot("start a [prompt=x] exit start -> a -> exit");
    assert_eq!(bare.of(Code::P010).len(), 1);
    let asked = dot("start a [prompt=x, contract=none] exit start -> a -> exit");
    assert!(asked.found.is_empty());
    let open = dot(&format!("start a [{STEP}] exit start -> a a -> exit [condition=\"outcome=success\"]"));
    assert!(open.of(Code::P310).is_empty(), "a step that fails is held for a person");
    let narrow =
        dot(&format!("start a [{STEP}] exit start -> a a -> exit [condition=\"preferred_label=Go\"]"));
    assert_eq!(narrow.of(Code::P310)[0].1, "a run may find no path to follow from `a`");
    let both = dot(&format!(
        "start a [{STEP}] d [shape=diamond] exit start -> a -> d d -> exit [condition=\"outcome=success\"] d -> exit [condition=\"outcome!=success\"]"
    ));
    assert!(both.found.is_empty(), "{:?}", both.found);
    let nothing_written = dot(&format!(
        "start a [{STEP}] exit start -> a -> exit a -> exit [condition=\"context.ready!=yes\"] a -> exit [condition=\"context.tool.ouput=1\"]"
    ));
    let told = nothing_written.of(Code::P313);
    assert_eq!(told[0].1, "nothing in the graph writes `ready`, so it is empty");
    assert_eq!(
        nothing_written.found.iter().rfind(|found| found.code == Code::P313).unwrap().help.as_deref(),
        Some("did you mean `tool.output`?")
    );
    let named = dot(
        "start a [prompt=\"Report `ready`.\", contract=x] exit start -> a -> exit a -> exit [condition=\"context.ready=yes\"]",
    );
    assert!(named.of(Code::P313).is_empty());
    let clash =
        dot(&format!("start a [{STEP}, on_fail=\"retry(2)\", max_retries=3] exit start -> a -> exit"));
    assert_eq!(clash.of(Code::P009)[0].1, "`on_fail` and `max_retries` of `a` both say how often");
}

#[test]
fn p12_several_edges_at_once_are_no_branches() {
    let read = dot(&format!("start a [{STEP}] b [{STEP}] exit start -> a start -> b a -> exit b -> exit"));
    assert_eq!(
        read.of(Code::P311),
        [("start -> b", "several edges leave `start` at once, and only one is followed")]
    );
    for told_apart in ["start -> a [label=x] start -> b [label=y]", "start -> a [weight=1] start -> b"] {
        let read = dot(&format!("start a [{STEP}] b [{STEP}] exit {told_apart} a -> exit b -> exit"));
        assert!(read.of(Code::P311).is_empty(), "{told_apart}");
    }
    let same = dot(&format!(
        "start a [{STEP}] b [{STEP}] exit start -> a -> exit a -> b [condition=\"preferred_label=x\"] a -> exit [condition=\"preferred_label=x\"] b -> exit"
    ));
    assert_eq!(same.of(Code::P311)[0].1, "several edges leave `a` at once, and only one is followed");
    let fork = dot(&format!(
        "start f [shape=component] j [shape=tripleoctagon] a [{STEP}] b [{STEP}] exit start -> f f -> a -> j f -> b -> j j -> exit"
    ));
    assert!(fork.found.is_empty(), "{:?}", fork.found);
}

#[test]
fn a_loop_that_nothing_bounds_is_shown_with_its_way_round() {
    let loops = |said: &str| {
        dot(&format!(
            "start a [{STEP}] b [{STEP}{said}] exit start -> a -> b -> exit b -> a [condition=\"outcome=fail\"]"
        ))
    };
    let free = loops("");
    assert_eq!(free.of(Code::P309)[0].1, "nothing bounds the loop `a` → `b` → `a`");
    assert_eq!(free.found[0].spans.len(), 2);
    assert!(loops(", max_visits=3").found.is_empty());
    let asked = dot(&format!(
        "start a [{STEP}] h [shape=hexagon] exit start -> a -> h h -> a [label=Again] h -> exit [label=Done]"
    ));
    assert!(asked.found.is_empty(), "{:?}", asked.found);
    let own = dot(&format!("start a [{STEP}] exit start -> a -> exit a -> a [on=fail]"));
    assert_eq!(own.of(Code::P309)[0].1, "nothing bounds the loop `a` → `a`");
    let two = dot(&format!(
        "start a [{STEP}] b [{STEP}] exit start -> a -> b -> exit a -> a [on=fail] b -> b [on=fail]"
    ));
    assert_eq!(two.of(Code::P309).len(), 2);
}

#[test]
fn a_large_graph_is_checked_in_little_time() {
    use std::fmt::Write as _;
    let mut text = String::from("digraph G { start exit ");
    for at in 0..4_900 {
        write!(text, "n{at} [prompt=\"Do it.\", contract=\"make\"] ").unwrap();
    }
    text.push_str("start -> n0 ");
    for at in 0..4_899 {
        write!(text, "n{at} -> n{} n{} -> n{at} [condition=\"outcome=fail\"] ", at + 1, at + 1).unwrap();
    }
    text.push_str("n4899 -> exit }");
    let read = checked(&text, Language::Dot);
    assert_eq!(read.codes(), [Code::P309]);
    assert_eq!(read.workflows[0].nodes.len(), 4_902);
}

// JSON

const BUGFIX: &str = include_str!("../fixtures/bugfix-graph.json");
const STEPS: &str = include_str!("../fixtures/bugfix-steps.json");
const LIBRARY: &str = include_str!("../fixtures/library-schema.json");

#[test]
fn g_01_to_g_09_the_graph_of_seed_2_loads_and_its_flaws_are_found() {
    let read = json(BUGFIX);
    let workflow = &read.workflows[0];
    assert_eq!(workflow.title(), "Bug Fix Workflow");
    assert_eq!(workflow.start.as_ref().unwrap().value, "reproduce");
    assert_eq!((workflow.nodes.len(), workflow.edges.len()), (9, 10));
    assert_eq!(read.kind("decide_approach"), Kind::Decision);
    assert_eq!(read.kind("escalate_stuck"), Kind::Escalate);
    assert_eq!(read.node("fix").attributes.max_retries.spanned().unwrap().value, 2);
    assert_eq!(read.node("test").attributes.verify_value.text().unwrap().value, "error");
    assert_eq!(read.node("fix").attributes.tool_hint.text().unwrap().value, "Edit the file(s) with the fix");
    assert_eq!(read.node("escalate_stuck").attributes.pace_level.text().unwrap().value, "contingent");
    assert_eq!(workflow.library.stale_after_turns.as_ref().unwrap().value, 15);
    assert_eq!(workflow.library.triggers.len(), 5);
    let on: Vec<On> = workflow.edges.iter().map(|edge| edge.on.value).collect();
    assert_eq!(
        on,
        [
            On::Success,
            On::Fail,
            On::Success,
            On::Fail,
            On::Always,
            On::Success,
            On::Exhaust,
            On::Success,
            On::Fail,
            On::Always
        ]
    );
    assert_eq!(
        read.of(Code::P305),
        [(
            "\"decide_approach\"",
            "no edge leads to the decision `decide_approach` or leaves it, so nothing is decided there"
        )]
    );
    let loops: Vec<&str> = read.of(Code::P309).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        loops,
        [
            "nothing bounds the loop `reproduce` → `gather_context` → `reproduce`",
            "nothing bounds the loop `fix` → `test` → `fix`"
        ]
    );
    assert_eq!(read.codes().len(), 3, "{:?}", read.codes());
}

#[test]
fn g_10_steps_are_a_graph_of_their_own() {
    let read = json(STEPS);
    assert!(read.found.is_empty(), "{:?}", read.found);
    let workflow = &read.workflows[0];
    assert_eq!((workflow.nodes.len(), workflow.edges.len()), (6, 5));
    assert_eq!(workflow.start.as_ref().unwrap().value, "step_1");
    assert_eq!(read.node("step_3").attributes.on_fail.text().unwrap().value, "block");
    assert!(!read.node("step_5").attributes.required.spanned().unwrap().value);
    assert_eq!(read.node("step_1").title(), "Reproduce the issue");
}

#[test]
fn h_01_a_library_is_a_file_of_plans() {
    let read = json(LIBRARY);
    assert!(read.found.is_empty(), "{:?}", read.found);
    assert_eq!(read.workflows[0].name.as_ref().unwrap().value, "<plan_id>");
    assert_eq!(read.workflows[0].title(), "Human-readable plan name");
    let two = json(&format!("{{\"plans\": {{\"a\": {BUGFIX}, \"b\": {STEPS}}}}}"));
    assert_eq!(two.workflows.len(), 2);
    assert_eq!(two.workflows[1].name.as_ref().unwrap().value, "b");
}

#[test]
fn g_09_an_edge_without_a_condition_is_always_followed() {
    let read = json(
        r#"{"graph": {"start": "a", "nodes": {"a": {"type": "call", "command": "true"}, "b": {"type": "exit"}}, "edges": [{"from": "a", "to": "b"}]}}"#,
    );
    assert!(read.found.is_empty(), "{:?}", read.found);
    assert_eq!(read.edge(0).on.value, On::Always);
    let twice = json(
        r#"{"nodes": {"a": {"type": "start"}, "b": {"type": "exit"}}, "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]}"#,
    );
    assert_eq!(twice.of(Code::P308)[0].1, "two edges of `a` are for one outcome");
}

#[test]
fn g_11_a_plan_has_steps_or_a_graph_and_not_both() {
    let both = json(r#"{"steps": [], "graph": {}}"#);
    assert_eq!(both.of(Code::P009), [("\"steps\"", "the plan has both `steps` and `graph`")]);
    assert_eq!(both.of(Code::P306), [], "what a graph lacks is no matter until one of them is kept");
    assert_eq!(json("{}").of(Code::P009), [("{", "the plan has neither `steps` nor `graph`")]);
}

#[test]
fn a_graph_is_taken_from_bytes_as_text_of_any_language() {
    let source = Source::of_text("plan.json", STEPS.as_bytes().to_vec()).expect("text");
    assert!(check(&source, Language::of(source.path()).expect("JSON")).1.is_empty());
    assert!(Source::from_bytes("plan.json", STEPS.as_bytes().to_vec()).is_ok());
    assert!(Source::from_bytes("plan.md", STEPS.as_bytes().to_vec()).is_err(), "JSON is no plan in markdown");
    let refused = Source::of_text("plan.dot", b"digraph { \xff }".to_vec()).expect_err("not UTF-8");
    assert_eq!(refused.diagnostic.code, Code::P003);
    assert!(Source::of_text("plan.dot", vec![b' '; 2 * 1024 * 1024]).is_err());
}

#[test]
fn json_that_cannot_be_read_is_an_error_at_its_place() {
    let wrong = [
        ("{\"steps\": [}", Code::P302),
        ("{\"steps\": [] ", Code::P302),
        ("", Code::P302),
        ("[]", Code::P015),
        ("7", Code::P015),
        ("{\"steps\": 7}", Code::P015),
        ("{\"steps\": [7]}", Code::P015),
        ("{\"steps\": [{\"name\": {}}]}", Code::P015),
        (
            "{\"steps\": [{\"name\": \"a\", \"action\": \"b\", \"verify\": {\"type\": \"any_ouput\"}}]}",
            Code::P015,
        ),
        (
            "{\"steps\": [{\"name\": \"a\", \"action\": \"b\", \"verify\": {\"type\": \"file_exists\"}}]}",
            Code::P009,
        ),
        ("{\"steps\": [{\"name\": \"a\", \"action\": \"b\"}]}", Code::P010),
        ("{\"graph\": {\"nodes\": {\"a\": {\"type\": \"tsk\"}}, \"edges\": []}}", Code::P015),
        ("{\"graph\": {\"edges\": []}}", Code::P009),
        ("{\"plans\": {\"a\": 1}}", Code::P015),
        ("{\"trigger_threshold\": -1, \"steps\": []}", Code::P015),
    ];
    for (text, code) in wrong {
        let read = json(text);
        assert!(
            read.found.iter().any(|found| found.code == code && found.is_error()),
            "{text}: {:?}",
            read.found
        );
    }
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(json(&deep).found[0].message, "the values are nested more than 32 deep");
}

#[test]
fn drift_in_json_is_told_and_read() {
    let read = json(&format!("\u{feff}{}", STEPS.replacen("{\n", "{ // by hand\n", 1)));
    assert_eq!(read.codes(), [Code::P005]);
    assert_eq!(read.of(Code::P005)[0].0, "//");
    assert_eq!(read.workflows[0].nodes.len(), 6);
    let twice = json(&STEPS.replacen("{\n", "{ \"name\": \"x\",\n", 1));
    assert_eq!(twice.of(Code::P009), [("\"name\"", "`name` is given twice")]);
    assert_eq!(twice.workflows[0].title(), "Bug Fix Workflow");
    let slip = json(&STEPS.replacen("\"domains\"", "\"domain\"", 1));
    assert_eq!(slip.of(Code::P314)[0].0, "\"domain\"");
    assert_eq!(slip.found[0].help.as_deref(), Some("did you mean `domains`?"));
    let edge = json(&BUGFIX.replacen("on_exhaust", "on_exhausted", 1));
    assert_eq!(edge.of(Code::P303), [("\"on_exhausted\"", "`on_exhausted` is not a condition of an edge")]);
}

#[test]
fn what_the_docs_show_has_no_findings() {
    let page = include_str!("../../../../docs/graphs.md");
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("an example");
        rest.split_once("```").expect("a closed fence").0.to_owned()
    };
    let example = checked(&block("dot"), Language::Dot);
    assert!(example.found.is_empty(), "{:?}", example.found);
    let entry = json(&block("json"));
    assert!(entry.found.is_empty(), "{:?}", entry.found);
}

// Round trips

// A graph without the places of things.
fn bare(workflow: &Workflow) -> String {
    let drawn = format!("{workflow:?}");
    let mut pieces = drawn.split("Span { start: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |told, piece| told + piece.split_once(" }").map_or(piece, |(_, rest)| rest))
}

fn again(text: &str, language: Language) -> Workflow {
    let (mut workflows, found) = planctl_lang::workflow::read(&Source::new("plan", text), language);
    let is_refused = |found: &Diagnostic| found.is_error() && found.code != Code::P004;
    assert!(!found.iter().any(is_refused), "{text}\n{found:?}");
    workflows.pop().expect("a graph")
}

// Removes the parts that each language has no word for: the triggers of guided mode, the shape that DOT draws, and that nobody
// wrote a part.
fn plain(mut workflow: Workflow) -> Workflow {
    workflow.library = planctl_lang::workflow::Library::default();
    for node in &mut workflow.nodes {
        let said = &mut node.attributes;
        for drawn in
            [&mut said.shape, &mut said.type_name, &mut said.class, &mut said.contract, &mut said.label]
        {
            *drawn = <_>::default();
        }
        said.checkpoint = <_>::default();
        node.origin = Origin::Written;
    }
    workflow.edges.iter_mut().for_each(|edge| edge.origin = Origin::Written);
    workflow.attributes.label = <_>::default();
    workflow
}

#[test]
fn every_example_survives_dot_and_json() {
    for text in [BUGFIX, STEPS] {
        let read = json(text).workflows.remove(0);
        let named =
            Workflow { name: Some(planctl_lang::Spanned::new("plan".into(), <_>::default())), ..read };
        let mut through_dot = again(&to_dot(&named), Language::Dot);
        // A task that begins the graph has a start node before it there.
        if named.nodes.iter().all(|node| node.kind.value != Kind::Start) {
            through_dot.nodes.remove(0);
            through_dot.edges.remove(0);
        }
        // DOT has no `start` of a graph beside its start node.
        let started = Workflow { start: through_dot.start.clone(), ..named.clone() };
        assert_eq!(bare(&plain(through_dot)), bare(&plain(started)));
        let through_json = again(&to_json(&named).to_string(), Language::Json);
        assert_eq!(bare(&plain(through_json)), bare(&plain(named.clone())));
        assert_eq!(to_dot(&again(&to_dot(&named), Language::Dot)), to_dot(&named));
    }
}

#[test]
fn a_graph_is_drawn_for_the_eye() {
    let read = dot(&format!(
        "start a [label=\"Say \\\"hi\\\"\", {STEP}] d [shape=diamond] exit start -> a -> d d -> exit d -> a [on=always, label=\"[A] Again\"]"
    ));
    assert_eq!(
        to_ascii(&read.workflows[0]),
        "start (start)\n  `-> a\na: Say \"hi\"\n  `-> d  (always)\nd (decision)\n  |-> exit\n  `-> a  ([A] Again, always)\nexit (exit)\n"
    );
    assert_eq!(
        to_mermaid(&read.workflows[0]),
        "flowchart TD\n    n0([\"start\"])\n    n1[\"Say #34;hi#34;\"]\n    n2{\"d\"}\n    n3([\"exit\"])\n    n0 --> n1\n    \
         n1 -->|\"always\"| n2\n    n2 --> n3\n    n2 -->|\"[A] Again, always\"| n1\n"
    );
}

fn names() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["a", "b", "start", "fix_it", "done", "Exit", "x1", "review"])
        .prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{1,20}", "[ -~\\n\\té]{1,12}"]
        .prop_filter("not blank", |text| !text.trim().is_empty())
}

fn statements() -> impl Strategy<Value = String> {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let shape = proptest::sample::select(vec![
        "box",
        "hexagon",
        "diamond",
        "component",
        "tripleoctagon",
        "parallelogram",
        "house",
        "Mdiamond",
        "Msquare",
    ]);
    let condition = proptest::sample::select(vec![
        "",
        "outcome=fail",
        "outcome=success && context.x=\"a b\"",
        "preferred_label!=Fix",
        "steps.a.exit_code=2",
    ]);
    let on = proptest::sample::select(vec!["", "success", "fail", "retry", "exhaust", "always"]);
    prop_oneof![
        (names(), shape, values(), values()).prop_map(move |(name, shape, label, prompt)| format!(
            "{name} [shape={shape}, label={}, prompt={}, max_retries=2, class=\"x,y\", contract.unit=\"t\", goal_gate=true]\n",
            quote(&label),
            quote(&prompt)
        )),
        (names(), names(), condition, on, -3..3_i32).prop_map(|(from, to, condition, on, weight)| format!(
            "{from} -> {to} [condition={:?}, on=\"{on}\", weight={weight}, loop_restart={}]\n",
            condition,
            weight > 0
        )),
        values().prop_map(move |goal| format!("goal={}\n", quote(&goal))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_graph_survives_dot_and_json(statements in proptest::collection::vec(statements(), 1..12)) {
        let text = format!("digraph plan {{ {} }}", statements.concat());
        let workflow = again(&text, Language::Dot);
        let through_dot = again(&to_dot(&workflow), Language::Dot);
        prop_assert_eq!(bare(&plain(through_dot)), bare(&plain(workflow.clone())), "{}", to_dot(&workflow));
        let json = to_json(&workflow).to_string();
        let through_json = again(&json, Language::Json);
        prop_assert_eq!(bare(&plain(through_json)), bare(&plain(workflow.clone())), "{}", json);
        to_ascii(&workflow);
        to_mermaid(&workflow);
    }

    #[test]
    fn any_dot_is_judged_and_written(pieces in proptest::collection::vec(statements(), 0..10), junk in "[a-z\\[\\]{}=;, \"-]{0,8}", at in 0..10_usize) {
        let mut pieces = pieces;
        pieces.insert(at.min(pieces.len()), junk);
        let text = format!("digraph plan {{ {} }}", pieces.concat());
        let read = checked(&text, Language::Dot);
        for finding in &read.found {
            for label in &finding.spans {
                prop_assert!(text.get(label.span.start..label.span.end).is_some(), "{:?}", finding);
            }
        }
        for workflow in &read.workflows {
            let made = planctl_lang::workflow::to_graph(&Source::new("plan.dot", &text), workflow);
            prop_assert!(made.is_ok() || made.is_err_and(|refused| !refused.is_empty()));
            let plan = to_markdown(workflow).text;
            let source = Source::new("plan.md", &plan);
            let (again, _) = planctl_lang::workflow::of_plan(&source, &planctl_lang::parse(&source).0);
            to_ascii(&again);
            to_mermaid(workflow);
        }
    }

    #[test]
    fn any_mutated_json_is_read(at in any::<usize>(), length in 0..40_usize, piece in "[\\[\\]{}\",:a0 é\\\\-]{0,6}") {
        for seed in [BUGFIX, STEPS, LIBRARY] {
            let mut begin = at % seed.len();
            while !seed.is_char_boundary(begin) {
                begin -= 1;
            }
            let mut end = (begin + length).min(seed.len());
            while !seed.is_char_boundary(end) {
                end += 1;
            }
            let text = format!("{}{piece}{}", &seed[..begin], &seed[end..]);
            for finding in json(&text).found {
                for label in &finding.spans {
                    prop_assert!(text.get(label.span.start..label.span.end).is_some(), "{:?}", finding);
                }
                for edit in finding.fix.iter().flat_map(|fix| &fix.edits) {
                    prop_assert!(text.get(edit.span.start..edit.span.end).is_some(), "{:?}", finding);
                }
            }
        }
    }
}

#[test]
fn a_graph_that_is_too_large_is_told_once_and_nothing_that_follows_from_it() {
    let count = 5_100;
    let nodes: String = (0..count).map(|at| format!("n{at} [{STEP}]\n")).collect();
    let chain: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
    let dot = format!("digraph G {{ start\n{nodes}exit\nstart -> {} -> exit }}", chain.join(" -> "));
    let nodes: Vec<String> =
        (0..count).map(|at| format!(r#""n{at}": {{"prompt": "x", "contract": "make"}}"#)).collect();
    let edges: Vec<String> =
        (1..count).map(|at| format!(r#"{{"from": "n{}", "to": "n{at}"}}"#, at - 1)).collect();
    let json = format!(
        r#"{{"start": "n0", "nodes": {{{}, "exit": {{"type": "exit"}}}}, "edges": [{}, {{"from": "n{}", "to": "exit"}}]}}"#,
        nodes.join(",\n"),
        edges.join(",\n"),
        count - 1
    );
    let step = |at: i32| {
        format!(
            "\n### {at}. S\n\n**target:** coder\n**task:** do\n**needs:** none\n**contract:**\n```shell\nmake\n```\nexit_code == 0\n"
        )
    };
    let steps: String = (1..=count).map(step).collect();
    let markdown = format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# T\n\n## Steps\n{steps}\n## Flow\n\n- 5050 -> 5060 on fail\n- 1 -> 5070 on fail\n"
    );
    for (name, text) in [("p.dot", dot), ("p.json", json), ("p.md", markdown)] {
        let verification = planctl_lang::verify(
            &Source::new(name, text),
            &crate::sample::facts(),
            &planctl_lang::Levels::default(),
        );
        let errors: Vec<&Diagnostic> =
            verification.diagnostics.iter().filter(|found| found.is_error()).collect();
        assert!(
            matches!(errors.as_slice(), [only] if only.code == Code::P008 && only.message.contains("more than 5000")),
            "{name}: {} errors, {:?}",
            errors.len(),
            errors.iter().take(3).collect::<Vec<_>>()
        );
    }
}
