//! Pictures of graphs: the same text each time, nothing lies on anything, nothing in them can do anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use planctl_engine::{Graph, Node, NodeId};
use planctl_lang::workflow::{self, Language, Phase, Stage, Stages, Workflow};
use planctl_lang::{Facts, Levels, Source, verify};

use super::*;

fn graph(text: &str) -> Workflow {
    let (mut workflows, found) = workflow::read(&Source::new("a.dot", text), Language::Dot);
    assert!(!workflows.is_empty(), "{found:?}");
    workflows.remove(0)
}

const SMALL_GRAPH: &str = r#"digraph fix {
    label="Fix <the> login & \"more\""
    start  [shape=Mdiamond]
    repair [label="Mend the timeout", prompt="Mend it.", contract="test -f done.txt", target=coder, max_retries=2]
    test   [shape=diamond, label="Do the tests pass?", command="pytest -q"]
    ask    [shape=hexagon, escalate="The tests still fail.", pace_level=contingent]
    done   [shape=Msquare]
    start -> repair -> test
    test -> done
    test -> repair [on=fail, label="mend again"]
    repair -> ask [on=exhaust]
}
"#;

fn elements<'a>(svg: &'a str, opening: &str) -> Vec<&'a str> {
    svg.match_indices(opening).map(|(at, _)| svg[at..].split('>').next().unwrap_or_default()).collect()
}

fn attribute(element: &str, name: &str) -> f64 {
    let from = element.find(&format!(" {name}=\"")).map(|at| at + name.len() + 3).unwrap_or_default();
    element[from..].split('"').next().and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[test]
fn the_same_graph_is_the_same_text_and_nothing_in_it_can_do_anything() {
    let workflow = graph(SMALL_GRAPH);
    let once = svg(&workflow, &Stages::new()).unwrap_or_default();
    assert_eq!(once, svg(&workflow, &Stages::new()).unwrap_or_default());
    assert!(once.contains("Fix &lt;the&gt; login &amp; &quot;more&quot;"), "{once}");
    for banned in ["<script", "onload", "href", "javascript", "<foreignObject", "&nbsp;"] {
        assert!(!once.contains(banned), "{banned}: {once}");
    }
    // A title for screen readers: of the picture, of each node, of each edge.
    assert_eq!(once.matches("<title>").count(), 1 + workflow.nodes.len() + workflow.edges.len());
    insta::assert_snapshot!("small", once);
}

#[test]
fn dot_b14_ways_whose_condition_names_the_failure_are_dashed() {
    let drawn = |said: &str| {
        let text = format!("digraph g {{ a [shape=diamond] b a -> b [condition=\"{said}\"] }}");
        let picture = svg(&graph(&text), &Stages::new()).unwrap_or_default();
        picture.contains("class=\"edge trouble")
    };
    for failing in ["outcome=fail", "outcome!=success", "context.x=1 && outcome=fail", "outcome=retry"] {
        assert!(drawn(failing), "{failing}");
    }
    for other in ["outcome=success", "outcome!=fail", "context.outcome=fail", "preferred_label=fail"] {
        assert!(!drawn(other), "{other}");
    }
}

#[test]
fn dot_b14_captions_and_labels_are_whole_and_words_break_where_their_parts_meet() {
    let label = "The tests of the payment service pass and nobody has touched the ledger since the last release \
                 was tagged, so that it may be shipped to everybody";
    let long = "context.failure_class=transient_infra_of_the_runner";
    let text = format!(
        "digraph g {{ check_build_of_everything [shape=parallelogram, label=\"{label}\"] b [shape=hexagon, label=\"Go?\"]\n\
         check_build_of_everything -> b [condition=\"{long}\"] }}"
    );
    let picture = svg(&graph(&text), &Stages::new()).unwrap_or_default();
    assert!(!picture.contains('…'), "{picture}");
    let words: Vec<&str> = picture
        .split("<text")
        .skip(1)
        .filter_map(|text| text.split_once('>')?.1.split("</text>").next())
        .collect();
    let all = words.join(" ");
    assert!(all.contains(label), "{words:?}");
    assert!(all.contains("a person chooses"), "{words:?}");
    assert!(
        words.iter().any(|line| line.ends_with("failure_class=") || line.ends_with("class=")),
        "{words:?}"
    );
    assert!(words.iter().any(|line| line.starts_with("transient_infra")), "{words:?}");
}

#[test]
fn labels_do_not_lie_on_nodes_or_on_each_other() {
    let loops = "digraph g { a [label=\"Work until it holds\"] b\n a -> a [on=fail, label=\"once more\"]\n a -> a [on=retry]\n \
                 a -> b [label=\"a way on\"]\n b -> a [on=fail] }";
    for (text, labels_min) in [(sixty(), 20), (SMALL_GRAPH.to_owned(), 2), (loops.to_owned(), 4)] {
        let picture = svg(&graph(&text), &Stages::new()).unwrap_or_default();
        let from = picture.find("<g class=\"label").unwrap_or_default();
        let labels = rectangles(&picture[from..], "<rect class=\"paper\"");
        assert!(labels.len() >= labels_min, "{}", labels.len());
        let boxes = rectangles(&picture[..from], "<rect class=\"shape\"");
        let width = attribute(&picture, "width") - 2.0 * MARGIN;
        for (index, one) in labels.iter().enumerate() {
            assert!(-MARGIN / 2.0 <= one.0 && one.2 <= width + MARGIN / 2.0, "{one:?} of {width}");
            for other in boxes.iter().chain(&labels[index + 1..]) {
                let is_disjoint =
                    one.2 <= other.0 || other.2 <= one.0 || one.3 <= other.1 || other.3 <= one.1;
                assert!(is_disjoint, "{one:?} {other:?}");
            }
        }
    }
}

/// Returns the left, upper, right and lower edges of all rectangles of a kind.
fn rectangles(svg: &str, opening: &str) -> Vec<(f64, f64, f64, f64)> {
    let rectangle = |rect: &str| {
        let (x, y) = (attribute(rect, "x"), attribute(rect, "y"));
        (x, y, x + attribute(rect, "width"), y + attribute(rect, "height"))
    };
    elements(svg, opening).into_iter().map(rectangle).collect()
}

#[test]
fn where_a_run_stands_is_told_in_words_and_signs_and_not_by_colour_alone() {
    let workflow = graph(SMALL_GRAPH);
    let stage = |phase, words: &str| Stage { phase, words: words.to_owned() };
    let stages: Stages = [
        ("start".to_owned(), stage(Phase::Done, "passed")),
        ("repair".to_owned(), stage(Phase::Current, "working, attempt 2")),
        ("test".to_owned(), stage(Phase::Ahead, "")),
        ("ask".to_owned(), stage(Phase::Waiting, "waiting for you")),
        ("done".to_owned(), stage(Phase::Failed, "failed")),
    ]
    .into();
    let picture = svg(&workflow, &stages).unwrap_or_default();
    for words in ["✓ passed", "▶ working, attempt 2", "‖ waiting for you", "✗ failed"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    let classes: BTreeSet<&str> = ["done", "current", "ahead", "waiting", "failed"]
        .into_iter()
        .filter(|word| picture.contains(&format!(" {word}\"")))
        .collect();
    assert_eq!(classes.len(), 5, "{classes:?}");
}

/// A graph as runs have it.
fn compiled(name: &str, text: &str) -> Arc<Graph> {
    let verified = verify(&Source::new(name, text), &Facts::default(), &Levels::default());
    Arc::new(verified.graph.unwrap_or_else(|| panic!("{:?}", verified.diagnostics)))
}

/// A plan of steps that follow one another; each escalates, so each has a way to the same node.
fn chain(steps: usize) -> Arc<Graph> {
    let step = |step| {
        format!(
            "\n### {step}. Do part {step}\n\n**target:** coder\n\n**task:** Do it.\n\n**contract:**\n```bash\n\
             test -e part-{step}\n```\nexit_code == 0\n\n**on_fail:** retry(1), then escalate\n"
        )
    };
    let steps: String = (1..=steps).map(step).collect();
    compiled(
        "a.md",
        &format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Many\n\n## Steps\n{steps}"),
    )
}

/// Returns the node of a step.
fn node_of(graph: &Graph, number: u32) -> NodeId {
    graph.nodes().iter().find(|node| node.step() == Some(number)).unwrap().id.clone()
}

/// Draws a graph around some nodes, all of whose steps up to a number are done.
fn fitted(graph: &Arc<Graph>, wanted: &[NodeId], done: u32, layouts: &Layouts) -> Fitted {
    let sketch = Sketch::new(graph.clone(), wanted, layouts);
    let is_done = |node: &NodeId| graph.node(node).and_then(Node::step).is_some_and(|step| step <= done);
    let phase = |node: &NodeId| if is_done(node) { Phase::Done } else { Phase::Ahead };
    let told = |phase: Phase| if phase == Phase::Done { "passed".to_owned() } else { String::new() };
    let stage = |node: NodeId| {
        let phase = phase(&node);
        (node.as_str().to_owned(), Stage { phase, words: told(phase) })
    };
    let stages: Stages = sketch.nodes().into_iter().map(stage).collect();
    let addresses = Addresses { query: "?workspace=%2Fwork".to_owned() };
    sketch.fitted(&stages, phase, &addresses, layouts).unwrap()
}

/// Returns the nodes to which the boxes of several lead, and those that have a box of their own.
fn leads_to(picture: &str) -> (Vec<String>, Vec<String>) {
    let links = elements(picture, "<a href=\"");
    let after = |mark: &str| {
        let found = links.iter().filter_map(|link| link.split_once(mark));
        found.map(|(_, rest)| rest.split(['"', '?']).next().unwrap().to_owned()).collect()
    };
    (after("&amp;at="), after("steps/"))
}

#[test]
fn a_page_s_picture_keeps_its_places_while_the_run_goes_through_a_block() {
    let (graph, layouts) = (chain(600), Layouts::default());
    let around = |step: u32| fitted(&graph, &[node_of(&graph, step)], step - 1, &layouts).svg;
    let begun = around(302);
    let later = around(305);
    assert_eq!(elements(&begun, "<path "), elements(&later, "<path "));
    let passed = |picture: &str| picture.matches("✓ passed").count();
    assert_eq!(passed(&begun) + 3, passed(&later), "{later}");
    assert_eq!(layouts.count(), 1, "it was laid out once");
}

#[test]
fn a_picture_of_a_large_plan_shows_a_part_whole_and_folds_the_rest() {
    for steps in [49, 500, 5_000] {
        let (graph, layouts) = (chain(steps), Layouts::default());
        let half = u32::try_from(steps / 2).unwrap();
        let Fitted { svg, shown } = fitted(&graph, &[node_of(&graph, half)], half - 1, &layouts);
        assert!(svg.len() <= 50 << 10, "{steps}: {}", svg.len());
        let boxes = elements(&svg, "<g class=\"node ").len();
        assert!((24..=50).contains(&shown) && boxes - shown <= 12, "{steps}: {shown} of {boxes}");
        assert!(svg.contains(&format!("Do part {half}<")), "{svg}");
        // One line stands for those of the steps that did not fail.
        assert_eq!(svg.matches(" others").count(), 2, "in the title and beside the line: {svg}");
    }
}

#[test]
fn every_node_of_a_large_graph_is_reached_by_the_boxes_that_stand_for_several() {
    let work = "target=coder, prompt=\"Do it.\", contract=\"test -e it\"";
    let phases = (0..60).map(|phase| {
        format!(
            "fork{phase} [shape=component] join{phase} [shape=tripleoctagon]
             a{phase} [{work}] b{phase} [{work}] c{phase} [{work}]
             fork{phase} -> a{phase} -> c{phase} -> join{phase}  fork{phase} -> b{phase} -> join{phase}  join{phase} -> fork{}\n",
            phase + 1
        )
    });
    let phases: String = phases.collect();
    let text = format!(
        "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] start -> fork0\n{phases} fork60 [{work}] fork60 -> done }}"
    );
    let (graph, layouts) = (compiled("a.dot", &text), Layouts::default());
    let mut open = vec![graph.start().as_str().to_owned()];
    let (mut seen, mut drawn) = (BTreeSet::new(), 0);
    let mut asked = BTreeSet::new();
    while let Some(node) = open.pop() {
        if asked.insert(node.clone()) {
            let picture = fitted(&graph, &[NodeId::new(node)], 0, &layouts).svg;
            drawn += 1;
            let (folds, own) = leads_to(&picture);
            open.extend(folds);
            seen.extend(own);
        }
    }
    assert_eq!(seen.len(), graph.nodes().len(), "after {drawn} pictures: {seen:?}");
}

#[test]
fn a_line_of_trouble_is_drawn_from_a_step_that_failed_and_one_stands_for_the_others() {
    let step = |at| format!("n{at} [label=\"Part {at}\"] n{at} -> ask [on=fail] n{at} -> n{}\n", at + 1);
    let steps: String = (0..20).map(step).collect();
    let workflow =
        graph(&format!("digraph g {{ ask [shape=hexagon, label=\"Help?\"] n20 [shape=Msquare]\n{steps} }}"));
    let lines = |stages: &Stages| svg(&workflow, stages).unwrap().matches("class=\"edge trouble").count();
    assert_eq!(lines(&Stages::new()), 1);
    let failed = Stage { phase: Phase::Failed, words: "failed".to_owned() };
    assert_eq!(lines(&Stages::from([("n3".to_owned(), failed)])), 2);
}

#[test]
fn what_nobody_could_read_is_refused_and_hostile_names_stay_text() {
    let many: String = (0..=NODES_MAX).map(|at| format!("n{at} [label=x]\n")).collect();
    let refused = svg(&graph(&format!("digraph g {{ {many} }}")), &Stages::new());
    assert!(matches!(refused, Err(Undrawable::TooLarge { .. })), "{refused:?}");
    let way = |at| format!("n{at} [label=x]\n n{at} -> n{}\n n0 -> n{}\n", at + 1, at + 2);
    let ways: String = (0..NODES_MAX).map(way).collect();
    let refused = svg(&graph(&format!("digraph g {{ {ways} }}")), &Stages::new());
    assert!(matches!(refused, Err(Undrawable::Layout(_))), "{:?}", refused.map(|picture| picture.len()));
    let hostile = graph(
        "digraph g { a [label=\"</text><script>alert(1)</script>\u{202e}x\"]\n a -> a [label=\"]]>\"] }",
    );
    let picture = svg(&hostile, &Stages::new()).unwrap_or_default();
    assert!(!picture.contains("<script") && !picture.contains('\u{202e}'), "{picture}");
    let empty = Workflow::default();
    assert!(svg(&empty, &Stages::new()).is_ok());
}

/// Sixty nodes: a chain of phases, each with a fork of three, a decision that loops back, and escalations.
pub(super) fn sixty() -> String {
    let mut text =
        String::from("digraph release { label=\"Release, in seven phases\"\n start [shape=Mdiamond]\n");
    let mut before = "start".to_owned();
    for phase in 0..7 {
        text.push_str(&format!(
            "fork{phase} [shape=component, label=\"Phase {phase}\"]
             join{phase} [shape=tripleoctagon, label=\"All of phase {phase}\"]
             check{phase} [shape=diamond, label=\"Is phase {phase} good?\", command=\"just check\"]
             save{phase} [checkpoint=true, label=\"Keep phase {phase}\"]
             {before} -> fork{phase}
             join{phase} -> check{phase}
             check{phase} -> save{phase}
             check{phase} -> fork{phase} [on=fail, label=\"once more\", condition=\"context.tries!=3\"]
             check{phase} -> ask [on=fail, label=\"give up\"]\n"
        ));
        for branch in 0..4 {
            text.push_str(&format!(
                "work{phase}_{branch} [label=\"Write part {branch} of the {phase}th module\", target=coder, contract=\"pytest -q\"]
                 fork{phase} -> work{phase}_{branch} -> join{phase}
                 work{phase}_{branch} -> join{phase} [on=exhaust]\n"
            ));
        }
        before = format!("save{phase}");
    }
    text.push_str(&format!(
        "ask [shape=hexagon, escalate=\"It does not get better.\"]\n ship [shape=hexagon, label=\"Ship it?\"]
         {before} -> ship\n ship -> done [label=\"[Y] Yes\"]\n ship -> fork6 [label=\"[N] Not yet\"]\n done [shape=Msquare]\n}}\n"
    ));
    text
}

/// Returns what a sheet says of a property, by selector: `(".done .shape", "#dff5e5")`.
fn colours<'s>(sheet: &'s str, property: &str) -> Vec<(&'s str, &'s str)> {
    let rules = sheet.lines().filter_map(|line| line.trim_end_matches('}').split_once('{'));
    let said = rules.filter_map(|(selectors, said)| {
        let mut pairs = said.split(';').filter_map(|pair| pair.split_once(':'));
        let (_, value) = pairs.rfind(|(name, value)| *name == property && value.starts_with('#'))?;
        Some(selectors.split(',').map(move |selector| (selector, value)))
    });
    said.flatten().collect()
}

/// The contrast of two colours, as WCAG counts it: from 1 to 21.
fn contrast(one: &str, other: &str) -> f64 {
    let brightness = |colour: &str| {
        let digits: String = match colour.trim_start_matches('#') {
            short if short.len() == 3 => short.chars().flat_map(|digit| [digit, digit]).collect(),
            long => long.to_owned(),
        };
        let part = |at: usize| {
            let part = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4) + 0.05
    };
    let (one, other) = (brightness(one), brightness(other));
    one.max(other) / one.min(other)
}

#[test]
fn words_and_lines_stand_out_from_what_is_beneath_them_in_light_and_in_dark() {
    let (light, dark) = STYLE.split_once("@media (prefers-color-scheme:dark){").unwrap();
    for sheet in [light, dark] {
        let fills = colours(sheet, "fill");
        let is_ground = |selector: &str| selector.ends_with(".shape") || selector == ".paper";
        let grounds: Vec<_> = fills.iter().filter(|(selector, _)| is_ground(selector)).collect();
        let words: Vec<_> = fills
            .iter()
            .filter(|(selector, _)| selector.ends_with("text") || *selector == ".small")
            .collect();
        assert!(grounds.len() >= 14 && words.len() >= 3, "{grounds:?} {words:?}");
        for (words, colour) in words {
            let own = grounds.iter().filter(|(ground, _)| !words.contains("label") || *ground == ".paper");
            for (ground, beneath) in own {
                let ratio = contrast(colour, beneath);
                assert!(ratio >= 4.5, "{words} on {ground}: {ratio:.1}");
            }
        }
        let paper = fills.iter().find(|(selector, _)| *selector == ".paper").unwrap().1;
        for (line, colour) in colours(sheet, "stroke") {
            let ratio = contrast(colour, paper);
            assert!(ratio >= 3.0, "{line}: {ratio:.1}");
        }
    }
}
