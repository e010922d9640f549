//! DOT as rows D1–D23, A1–A20 and T1–T2 say it: accepted and refused texts with their places, and the second pass.

use planctl_lang::dot::{Digraph, NodeAttributes, Pipeline, Statement, read, resolve, write};
use planctl_lang::{Code, Diagnostic, Severity, Source};
use proptest::prelude::*;

use crate::properties::worked;

struct Read {
    text: String,
    digraph: Digraph,
    pipeline: Pipeline,
    /// Of each node.
    attributes: Vec<NodeAttributes>,
    found: Vec<Diagnostic>,
}

fn dot(text: &str) -> Read {
    let source = Source::new("plan.dot", text);
    let (digraph, mut found) = read(&source);
    let (pipeline, more) = resolve(&digraph);
    found.extend(more);
    let attributes = pipeline.nodes.iter().map(|node| node.attributes()).collect();
    Read { text: text.to_owned(), digraph, pipeline, attributes, found }
}

impl Read {
    // Each finding as its code and the text it marks.
    fn marked(&self) -> Vec<(Code, &str)> {
        self.found
            .iter()
            .map(|found| (found.code, &self.text[found.spans[0].span.start..found.spans[0].span.end]))
            .collect()
    }

    fn errors(&self) -> Vec<String> {
        let errors = self.found.iter().filter(|found| found.is_error());
        errors
            .map(|found| {
                let source = Source::new("plan.dot", &self.text);
                let place = source.position(found.spans[0].span.start);
                format!("{}:{} {}", place.line, place.column, found.message)
            })
            .collect()
    }

    fn clean(self) -> Read {
        assert!(self.found.is_empty(), "{:#?}", self.found);
        self
    }

    fn node(&self, name: &str, key: &str) -> Option<&str> {
        let at = self.pipeline.nodes.iter().position(|node| node.name.value == name)?;
        let (_, said) = self.attributes[at].iter().find(|(name, _)| *name == key)?;
        Some(&said.value)
    }

    fn names(&self) -> Vec<&str> {
        self.pipeline.nodes.iter().map(|node| node.name.value.as_str()).collect()
    }

    fn ways(&self) -> Vec<String> {
        self.pipeline.edges.iter().map(|edge| format!("{}>{}", edge.from.value, edge.to.value)).collect()
    }

    fn graph(&self, key: &str) -> Option<&str> {
        let (_, said) = self.pipeline.graph.iter().find(|(name, _)| *name == key)?;
        Some(&said.value)
    }

    fn classes(&self, name: &str) -> Vec<&str> {
        let node = self.pipeline.nodes.iter().find(|node| node.name.value == name);
        node.into_iter().flat_map(|node| &node.classes).map(String::as_str).collect()
    }
}

#[test]
fn d1_a_file_holds_one_digraph() {
    assert_eq!(dot("digraph Fix { a }").clean().digraph.name.unwrap().value, "Fix");
    dot("digraph { a }").clean();
    let two = dot("digraph A { a }\ndigraph B { b }");
    assert_eq!(two.errors(), ["2:1 expected the end of the file, found a second graph"]);
    assert_eq!(two.names(), ["a"]);
    assert_eq!(
        dot("digraph A { a\ndigraph B { b }").errors(),
        ["2:1 expected a statement, found the start of a graph"]
    );
    assert_eq!(dot("digraph A { a } x").errors(), ["1:17 expected the end of the file, found `x`"]);
}

#[test]
fn d2_undirected_and_strict_graphs_are_refused_at_their_place() {
    assert_eq!(dot("graph G { a }").errors(), ["1:1 expected `digraph`, found `graph`"]);
    assert_eq!(dot("\n strict digraph G { a }").errors(), ["2:2 `strict` graphs are not read"]);
    let undirected = dot("digraph G {\n  a\n  b\n  a -- b\n}");
    assert_eq!(undirected.errors(), ["4:5 expected `->`, found `--`"]);
    assert_eq!(undirected.ways(), ["a>b"]);
    assert_eq!(dot("a -> b").errors(), ["1:1 expected `digraph`, found `a`"]);
    assert_eq!(dot("").errors(), ["1:1 expected `digraph`, found the end of the file"]);
}

#[test]
fn d3_names_of_nodes_are_ascii() {
    dot("digraph G { _a1 B }").clean();
    for (name, plain) in [("größe", "gr__e"), ("1a", "n_1a"), ("fix-tests", "fix_tests"), ("\"a b\"", "a_b")]
    {
        let read = dot(&format!("digraph G {{ {name} }}"));
        assert_eq!(read.errors().len(), 1, "{name}: {:?}", read.found);
        assert!(read.found[0].help.as_deref().unwrap().contains(&format!("write `{plain}`")), "{name}");
    }
    assert_eq!(dot("digraph G { a -> node }").errors().len(), 1);
    let quoted = dot("digraph G { \"a\" -> \"b\" a b }");
    assert_eq!(quoted.marked(), [(Code::P005, "\"a\"")]);
    assert_eq!(quoted.ways(), ["a>b"]);
}

#[test]
fn d4_comments_are_skipped_but_not_inside_texts() {
    let read =
        dot("// one\ndigraph G { /* two\n */ a [prompt=\"see https://x.org/*.rs /* kept */\"] // three\n }")
            .clean();
    assert_eq!(read.node("a", "prompt"), Some("see https://x.org/*.rs /* kept */"));
    assert_eq!(dot("digraph G { a } /* open").errors(), ["1:17 expected `*/`, found the end of the file"]);
    let hash = dot("# made by hand\ndigraph G { a }");
    assert_eq!(hash.marked(), [(Code::P005, "#")]);
}

#[test]
fn d5_semicolons_are_optional() {
    assert_eq!(dot("digraph G { a; b; a -> b; rankdir=LR; }").clean().ways(), ["a>b"]);
    assert_eq!(dot("digraph G { a b a -> b rankdir=LR }").clean().ways(), ["a>b"]);
}

#[test]
fn d6_commas_between_attributes_may_be_missing_with_one_warning() {
    let strict = dot("digraph G { a [label=x, prompt=y,] }").clean();
    assert_eq!(strict.node("a", "prompt"), Some("y"));
    let lenient = dot("digraph G { a [label=x prompt=y\n class=z] b [label=x prompt=y] }");
    assert_eq!(lenient.found.len(), 1);
    assert_eq!((lenient.found[0].code, lenient.found[0].level), (Code::P005, Severity::Warning));
    assert_eq!(lenient.found[0].spans.len(), 3);
    assert_eq!(lenient.node("a", "class"), Some("z"));
    let fix = lenient.found[0].fix.as_ref().unwrap();
    assert!(fix.safe);
    let mut mended = lenient.text.clone();
    for edit in fix.edits.iter().rev() {
        mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
    }
    assert_eq!(dot(&mended).clean().node("b", "prompt"), Some("y"));
    let semicolons = dot("digraph G { a [label=x; prompt=y] }");
    assert_eq!(semicolons.marked(), [(Code::P005, ";")]);
}

#[test]
fn d7_texts_have_escapes_and_line_breaks() {
    let read = dot("digraph G { a [prompt=\"a \\\"b\\\"\\n\\tc\\\\d \\d\n e\"] }").clean();
    assert_eq!(read.node("a", "prompt"), Some("a \"b\"\n\tc\\d \\d\n e"));
    assert_eq!(dot("digraph G { a [prompt=\"x\" + \"y\"] }").clean().node("a", "prompt"), Some("xy"));
    let open = dot("digraph G {\n a [prompt=\"x]\n}");
    assert_eq!(open.errors(), ["2:12 expected `\"`, found the end of the file"]);
}

#[test]
fn d8_an_escaped_quote_begins_no_text() {
    let read = dot("digraph G { a b a -> b [condition=\\\"outcome=success\\\", weight=2] }");
    assert_eq!(read.errors(), ["1:35 expected a value, found a backslash"]);
    assert_eq!(read.pipeline.edges[0].attributes.condition.text(), None);
    assert_eq!(read.pipeline.edges[0].attributes.weight.text().unwrap().value, "2");
}

#[test]
fn d9_numbers_and_flags_are_values() {
    let read = dot("digraph G { a [x1=1, x2=-1, x3=.5, x4=-3.14, x5=true, x6=false, x7=5.] }");
    let [Statement::Node { attributes, .. }] = read.digraph.statements.as_slice() else { panic!() };
    let values: Vec<&str> = attributes.iter().map(|attribute| attribute.value.value.as_str()).collect();
    assert_eq!(values, ["1", "-1", ".5", "-3.14", "true", "false", "5."]);
    assert!(read.errors().is_empty());
    assert_eq!(dot("digraph G { a [x=2xl] }").errors(), ["1:18 `2xl` must stand in quotes"]);
}

#[test]
fn d10_durations_stand_bare_or_quoted() {
    for value in ["250ms", "900s", "15m", "2h", "1d", "\"15m\""] {
        dot(&format!("digraph G {{ a [timeout={value}] }}")).clean();
    }
    let wrong = dot("digraph G { a [timeout=\"15 parsecs\"] }");
    assert_eq!(wrong.marked(), [(Code::P015, "\"15 parsecs\"")]);
}

#[test]
fn d11_bare_words_have_dots_colons_and_dashes() {
    let read = dot("digraph G { a [llm_model=gpt-5.4] b [llm_model=claude-opus-4-6, fidelity=summary:low] }")
        .clean();
    assert_eq!(read.node("a", "llm_model"), Some("gpt-5.4"));
    assert_eq!(read.node("b", "llm_model"), Some("claude-opus-4-6"));
}

#[test]
fn d12_keys_are_qualified_or_quoted() {
    let read =
        dot("digraph G { a [human.default_choice=yes, \"prompt\"=\"x\"] stack.child_dotfile=\"c.dot\" }")
            .clean();
    assert_eq!(read.node("a", "human.default_choice"), Some("yes"));
    assert_eq!(read.node("a", "prompt"), Some("x"));
    assert_eq!(read.graph("stack.child_dotfile"), Some("c.dot"));
}

#[test]
fn d13_a_chain_is_one_edge_for_each_arrow() {
    let read = dot("digraph G { a b c a -> b -> c [label=next] }").clean();
    assert_eq!(read.ways(), ["a>b", "b>c"]);
    assert!(read.pipeline.edges.iter().all(|edge| edge.attributes.label.text().unwrap().value == "next"));
    let group = dot("digraph G { a b c a -> {b; c} }");
    assert_eq!(group.ways(), ["a>b", "a>c"]);
    assert_eq!(group.marked(), [(Code::P005, "{b; c}")]);
}

#[test]
fn d14_defaults_hold_for_what_is_declared_later_in_their_block() {
    let read =
        dot("digraph G { a node [timeout=1s] b subgraph s { node [timeout=2s] c } d edge [weight=3] a -> b \
         subgraph t { edge [weight=4] b -> c } c -> d }")
        .clean();
    assert_eq!(read.node("a", "timeout"), None);
    assert_eq!(read.node("b", "timeout"), Some("1s"));
    assert_eq!(read.node("c", "timeout"), Some("2s"));
    assert_eq!(read.node("d", "timeout"), Some("1s"));
    let weights: Vec<_> =
        read.pipeline.edges.iter().map(|edge| &edge.attributes.weight.text().unwrap().value).collect();
    assert_eq!(weights, ["3", "4", "3"]);
}

#[test]
fn d15_what_is_said_beats_what_is_a_default() {
    let read = dot("digraph G { default_max_retries=3 node [max_retries=2] a [max_retries=0] b }").clean();
    assert_eq!(read.node("a", "max_retries"), Some("0"));
    assert_eq!(read.node("b", "max_retries"), Some("2"));
}

#[test]
fn d16_attributes_of_the_graph_are_said_in_two_ways_and_make_no_node() {
    for text in
        ["digraph G { graph [goal=\"g\", rankdir=LR] a }", "digraph G { goal=\"g\" rankdir=LR label=x a }"]
    {
        let read = dot(text).clean();
        assert_eq!(read.graph("goal"), Some("g"));
        assert_eq!(read.names(), ["a"]);
    }
}

#[test]
fn d17_subgraphs_are_flattened() {
    let read = dot("digraph G { subgraph cluster_x { a { b } } c a -> c b -> a }").clean();
    assert_eq!(read.names(), ["a", "b", "c"]);
    assert_eq!(read.ways(), ["a>c", "b>a"]);
    let deep = format!("digraph G {{ {} a {} }}", "{".repeat(17), "}".repeat(17));
    assert_eq!(dot(&deep).errors(), ["1:29 subgraphs are nested more than 16 deep"]);
}

#[test]
fn d18_the_label_of_a_subgraph_is_a_class_of_its_nodes() {
    let read =
        dot("digraph G { subgraph c { a label=\"Loop A!\" subgraph d { graph [label=In] b } } e }").clean();
    assert_eq!(read.classes("a"), ["loop-a"]);
    assert_eq!(read.classes("b"), ["loop-a", "in"]);
    assert!(read.classes("e").is_empty());
    assert_eq!(read.graph("label"), None);
}

#[test]
fn d19_classes_are_separated_by_commas() {
    assert_eq!(dot("digraph G { a [class=\"code, critical\"] }").clean().classes("a"), ["code", "critical"]);
}

#[test]
fn d20_edges_between_the_same_nodes_are_kept_apart() {
    let read = dot("digraph G { a b a -> b [label=x] a -> b [label=y] }").clean();
    let labels: Vec<_> =
        read.pipeline.edges.iter().map(|edge| &edge.attributes.label.text().unwrap().value).collect();
    assert_eq!(labels, ["x", "y"]);
}

#[test]
fn d21_what_nobody_knows_is_kept_and_written_again() {
    let text = "digraph G { zebra=7 a [stripes=\"a\\\"b\", x.y=1] a -> a [\"odd key\"=z] }";
    let read = dot(text);
    assert!(read.found.iter().all(|found| found.level == Severity::Note), "{:?}", read.found);
    let written = write(&Source::new("plan.dot", text), &read.digraph);
    assert!(
        written.contains("zebra=7")
            && written.contains("stripes=\"a\\\"b\"")
            && written.contains("\"x.y\"=1")
    );
    assert!(written.contains("\"odd key\"=z"));
    assert_eq!(shape(&dot(&written).digraph), shape(&read.digraph));
}

#[test]
fn d22_every_error_is_told_at_its_place_with_what_was_expected() {
    let read = dot(
        "digraph G {\n a [label=]\n b [prompt \"x\"]\n c -> ;\n d [shape=box\n e [shape=box]\n ] \n f\n}",
    );
    assert_eq!(
        read.errors(),
        [
            "2:11 expected a value, found `]`",
            "3:5 expected `=` after `prompt`, found a quoted text",
            "4:7 expected the name of a node, found `;`",
            "5:14 expected `]`, found `e`",
            "7:2 expected the name of a node, `subgraph` or `}`, found `]`",
        ]
    );
    assert_eq!(read.names(), ["a", "b", "d", "e", "f"]);
    assert_eq!(dot("digraph G {\n a").errors(), ["2:3 expected `}`, found the end of the file"]);
    assert_eq!(dot("digraph G").errors(), ["1:10 expected `{`, found the end of the file"]);
    assert_eq!(dot("digraph G { a [label=<<b>x</b>>] }").errors(), ["1:22 labels in HTML are not read"]);
}

#[test]
fn a1_a3_to_a6_what_is_said_of_the_graph_is_read() {
    let said = [
        ("goal", "\"Mend it\""),
        ("label", "Fix"),
        ("retry_target", "a"),
        ("fallback_retry_target", "b"),
        ("default_fidelity", "summary:low"),
        ("model_stylesheet", "\"* { llm_model: x }\""),
        ("stack.child_dotfile", "\"c.dot\""),
        ("stack.child_workdir", "\"sub\""),
    ];
    for (key, value) in said {
        let read = dot(&format!("digraph G {{ {key}={value} a b }}")).clean();
        assert_eq!(read.graph(key), Some(value.trim_matches('"')), "{key}");
        assert_eq!(read.names(), ["a", "b"], "{key}");
    }
}

#[test]
fn a8_to_a18_what_is_said_of_nodes_and_edges_is_read() {
    let said = [
        ("label", "Fix"),
        ("prompt", "Do"),
        ("shape", "box"),
        ("type", "codergen"),
        ("max_retries", "3"),
        ("goal_gate", "true"),
        ("retry_target", "a"),
        ("fallback_retry_target", "a"),
        ("timeout", "900s"),
        ("llm_model", "gpt-5.4"),
        ("llm_provider", "x"),
        ("reasoning_effort", "low"),
        ("fidelity", "full"),
        ("thread_id", "t"),
        ("allow_partial", "true"),
    ];
    for (key, value) in said {
        let read = dot(&format!("digraph G {{ a [{key}={value}] }}")).clean();
        assert_eq!(read.node("a", key), Some(value), "{key}");
    }
    for (key, value) in
        [("label", "x"), ("condition", "x"), ("weight", "-3"), ("fidelity", "full"), ("thread_id", "t")]
    {
        let read = dot(&format!("digraph G {{ a a -> a [{key}={value}] }}")).clean();
        let said = read.pipeline.edges[0].attributes.iter().find(|(name, _)| *name == key);
        assert_eq!(said.unwrap().1.value, value, "{key}");
    }
}

#[test]
fn a2_the_old_name_of_the_default_for_retries_is_known() {
    assert_eq!(
        dot("digraph G { graph [default_max_retry=2] a }").clean().graph("default_max_retries"),
        Some("2")
    );
    assert_eq!(dot("digraph G { default_max_retries=3 a }").clean().graph("default_max_retries"), Some("3"));
}

#[test]
fn a7_a15_what_would_let_a_worker_judge_itself_is_told() {
    let read = dot("digraph G { tool_hooks.pre=\"x\" a [auto_status=true] }");
    assert_eq!(read.marked(), [(Code::P314, "tool_hooks.pre=\"x\""), (Code::P314, "auto_status=true")]);
    assert!(read.found.iter().all(|found| found.level == Severity::Warning));
}

#[test]
fn a10_to_a19_values_are_typed() {
    let wrong = [
        ("a [max_retries=two]", "two"),
        ("a [max_retries=21]", "21"),
        ("a [goal_gate=maybe]", "maybe"),
        ("a [allow_partial=1]", "1"),
        ("a [timeout=soon]", "soon"),
        ("a [fidelity=compactt]", "compactt"),
        ("a [join_policy=k_of_n]", "k_of_n"),
        ("a [max_parallel=0]", "0"),
        ("a [on_fail=esclate]", "esclate"),
        ("a [on_fail=\"retry(0)\"]", "\"retry(0)\""),
        ("a [contract_timeout=0s]", "0s"),
        ("a [ask_deadline=\"1h, then approve\"]", "\"1h, then approve\""),
        ("ask_deadline=4h", "4h"),
        ("a [expect_exit=256]", "256"),
        ("a -> a [weight=heavy]", "heavy"),
        ("a -> a [loop_restart=again]", "again"),
        ("default_fidelity=fulll", "fulll"),
    ];
    for (statement, marked) in wrong {
        let read = dot(&format!("digraph G {{ {statement} }}"));
        assert_eq!(read.marked(), [(Code::P015, marked)], "{statement}");
    }
    dot("digraph G { a [on_fail=\"retry(2), then abort\", subscriptions=\"file:a.md, topic:x\"] b [on_fail=block] }").clean();
    let unknown = dot("digraph G { a [subscriptions=\"file:a.md, b.md\"] }");
    assert_eq!(unknown.found[0].message, "`b.md` has no kind");
    let near = dot("digraph G { a [fidelity=compactt] }");
    assert_eq!(near.found[0].help.as_deref(), Some("did you mean `compact`?"));
    dot("digraph G { a -> a [loop_restart=\"true\"] }").clean();
}

#[test]
fn a20_a_slip_in_a_name_is_told_with_the_name_that_is_near() {
    let read = dot(
        "digraph G { a [max_retrys=2] b [max_visits=3, tool_command=\"x\"] c [script=\"y\", max_node_visits=2] }",
    );
    assert_eq!(read.marked(), [(Code::P314, "max_retrys")]);
    assert_eq!(read.found[0].help.as_deref(), Some("did you mean `max_retries`?"));
    assert_eq!(read.node("c", "tool_command"), Some("y"));
    assert_eq!(read.node("c", "max_visits"), Some("2"));
    let twice = dot("digraph G { a [label=x, label=y] }");
    assert_eq!(twice.marked(), [(Code::P009, "label=y")]);
    assert_eq!(twice.node("a", "label"), Some("y"));
}

#[test]
fn t1_t2_the_stylesheet_weighs_names_above_classes_above_shapes() {
    let read = dot(
        "digraph G { model_stylesheet=\"* { llm_model: base; reasoning_effort: low } box { llm_model: boxed } \
         .fast { llm_model: quick } .slow { llm_model: deep; llm_provider: 'x y' } #d { llm_model: \\\"named\\\" }\"
         a [shape=diamond] b c [class=\"slow,fast\"] d [class=fast] e [class=fast, llm_model=own] }",
    )
    .clean();
    let models: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|name| read.node(name, "llm_model")).collect();
    assert_eq!(models, [Some("base"), Some("boxed"), Some("deep"), Some("named"), Some("own")]);
    assert_eq!(read.node("c", "llm_provider"), Some("x y"));
    assert_eq!(read.node("e", "reasoning_effort"), Some("low"));
}

#[test]
fn l3_a_stylesheet_that_cannot_be_read_is_an_error() {
    for wrong in ["* llm_model: x", ".a { llm_model }", ".a { llm_model: x", "} {", "# { }"] {
        let read = dot(&format!("digraph G {{ model_stylesheet=\"{wrong}\" a }}"));
        assert_eq!(read.found.len(), 1, "{wrong}");
        assert_eq!(read.found[0].code, Code::P015, "{wrong}");
    }
    let near = dot("digraph G { model_stylesheet=\"* { llm_modell: x }\" a }");
    assert_eq!(near.found[0].help.as_deref(), Some("did you mean `llm_model`?"));
}

#[test]
fn many_findings_nodes_and_edges_are_cut() {
    let many = dot(&format!("digraph G {{ {} }}", "? ;".repeat(1_000)));
    assert_eq!(many.found.len(), 51);
    let nodes: String = (0..5_001).map(|n| format!("n{n};")).collect();
    assert_eq!(dot(&format!("digraph G {{ {nodes} }}")).errors().len(), 1);
    let group: String = (0..200).map(|n| format!("n{n} ")).collect();
    let product = dot(&format!("digraph G {{ a -> {{{group}}} -> {{{group}}} }}"));
    assert_eq!(product.errors().len(), 1);
}

#[test]
fn the_time_grows_with_the_text_and_no_faster() {
    type Text = fn(usize) -> String;
    let texts: [(&str, Text); 9] = [
        ("nodes", |n| format!("digraph G {{ {} }}", "a [x=1, yy=\"z\"]\n".repeat(n))),
        ("chain", |n| format!("digraph G {{ a {} }}", "-> a ".repeat(n))),
        ("defaults", |n| format!("digraph G {{ {} }}", "node [max_retries=2] edge [weight=2]\n".repeat(n))),
        ("unknown", |n| {
            format!(
                "digraph G {{ a [{}] }}",
                (0..n).map(|at| format!("max_retri{at}=1,")).collect::<String>()
            )
        }),
        ("quotes", |n| format!("digraph G {{ a [x=\"{} }}", "\\\"".repeat(n))),
        ("open", |n| format!("digraph G {{ {} }}", "a [ \n".repeat(n))),
        ("comments", |n| format!("digraph G {{ {}", "/* x */ // y\n /".repeat(n))),
        ("braces", |n| format!("digraph G {{ {} }}", "{ } [ ] < > ; ".repeat(n))),
        ("groups", |n| format!("digraph G {{ a -> {{ {} }} -> {{ {} }} }}", "a ".repeat(n), "b ".repeat(n))),
    ];
    for (name, text) in texts {
        let time = |n: usize| {
            let text = text(n);
            let began = worked();
            dot(&text);
            worked().saturating_sub(began)
        };
        // The best of three, since other work on the machine only ever adds.
        let best = |n: usize| (0..3).map(|_| time(n)).min().unwrap_or_default();
        let (small, large) = (best(1_000), best(10_000));
        let floor = std::time::Duration::from_millis(2);
        assert!(large < small.max(floor) * 30, "{name}: {small:?}, then {large:?}");
    }
}

// Statements without their places.
fn shape(digraph: &Digraph) -> String {
    fn text(statement: &Statement) -> String {
        let pairs = |attributes: &[planctl_lang::dot::Attribute]| {
            attributes.iter().map(|a| format!("{:?}={:?},", a.key.value, a.value.value)).collect::<String>()
        };
        match statement {
            Statement::Defaults { of, attributes, .. } => format!("{of:?}[{}]", pairs(attributes)),
            Statement::Assignment(attribute) => pairs(std::slice::from_ref(attribute)),
            Statement::Node { name, attributes, .. } => format!("{:?}[{}]", name.value, pairs(attributes)),
            Statement::Edges { ends, attributes, .. } => {
                let ends: Vec<Vec<&String>> =
                    ends.iter().map(|end| end.iter().map(|name| &name.value).collect()).collect();
                format!("{ends:?}[{}]", pairs(attributes))
            }
            Statement::Subgraph { name, statements, .. } => {
                format!(
                    "{:?}{{{}}}",
                    name.as_ref().map(|name| &name.value),
                    statements.iter().map(text).collect::<String>()
                )
            }
        }
    }
    digraph.statements.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Checks that hold for every text: places inside of it, and that a written file reads as the same.
pub fn sound_dot(text: &str) {
    let source = Source::new("plan.dot", text);
    let (digraph, mut found) = read(&source);
    let (_, more) = resolve(&digraph);
    found.extend(more);
    for finding in &found {
        let labels = finding.spans.iter().map(|label| label.span);
        for span in labels.chain(finding.fix.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span)) {
            assert!(text.get(span.start..span.end).is_some(), "{finding:?}");
        }
    }
    if found.iter().all(|finding| !finding.is_error()) {
        let written = write(&source, &digraph);
        let (again, left) = read(&Source::new("plan.dot", &written));
        assert!(left.iter().all(|finding| !finding.is_error()), "{written}\n{left:?}");
        assert_eq!(shape(&digraph), shape(&again), "{written}");
        assert_eq!(write(&Source::new("plan.dot", &written), &again), written);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "digraph G {",
        "}",
        "{",
        "[",
        "]",
        "a",
        "b",
        " -> ",
        "--",
        "=",
        ",",
        ";",
        "\n",
        "\"",
        "\\\"",
        "\"x\"",
        "label",
        "node [",
        "edge [",
        "graph [",
        "subgraph s {",
        "condition=",
        "\"outcome=success\"",
        "#",
        "//",
        "/*",
        "*/",
        "1",
        "2xl",
        ".5",
        "15m",
        "gpt-5.4",
        "<b>",
        ":",
        "+",
        "é",
        "strict",
        "\\",
        "model_stylesheet=\"* { x: y }\"",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dot_is_read(pieces in proptest::collection::vec(pieces(), 0..60)) {
        sound_dot(&pieces.concat());
        sound_dot(&format!("digraph G {{ {}", pieces.concat()));
        sound_dot(&format!("digraph G {{ a b a -> b [{}] }}", pieces.join(" ")));
    }
}
