//! A plan in another language is judged, and goes on, as the one that was read; what it does not say is told.

use std::collections::BTreeMap;
use std::path::Path;

use planctl_engine::Graph;
use planctl_lang::workflow::{Converted, Language, Workflow, check, convert, of_plan};
use planctl_lang::{Facts, Levels, Source, Verification, parse, verify};

use super::drawn::Drawn;
use super::same_path::played;

const LANGUAGES: [(&str, Option<Language>); 3] =
    [("plan.md", None), ("plan.dot", Some(Language::Dot)), ("plan.json", Some(Language::Json))];

/// Graphs that are drawn.
const GRAPHS: u64 = 120;

fn verified(name: &str, text: &str) -> Verification {
    verify(&Source::new(name, text), &Facts::default(), &Levels::default())
}

fn graph(name: &str, text: &str) -> Graph {
    let found = verified(name, text);
    found.graph.unwrap_or_else(|| panic!("{name} is refused\n{text}\n{:#?}", found.diagnostics))
}

fn converted(name: &str, text: &str, to: Option<Language>) -> Converted {
    let source = Source::new(name, text);
    convert(&source, &workflow(&source), to)
}

fn workflow(source: &Source) -> Workflow {
    match Language::of(source.path()) {
        Some(language) => check(source, language).0.remove(0),
        None => of_plan(source, &parse(source).0).0,
    }
}

#[test]
fn drawn_graphs_take_the_same_path_in_the_language_that_they_are_converted_to() {
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    let mut played_alike = 0;
    for seed in 0..GRAPHS {
        let drawn = Drawn::of(seed);
        let texts = [drawn.markdown(), drawn.dot(), drawn.json()];
        for ((name, _), text) in LANGUAGES.iter().zip(&texts) {
            let own = played(&graph(name, text), seed);
            for (other, to) in LANGUAGES.iter().filter(|(other, _)| other != name) {
                let written = converted(name, text, *to);
                let told = format!("seed {seed}: {name} to {other}\n{text}\n{}", written.text);
                assert_eq!(written.changed, Vec::<String>::new(), "{told}");
                // The owner of a plan leads it nowhere else.
                let is_on_path = |words: &&String| !words.starts_with("`owner`");
                for words in written.lost.iter().filter(is_on_path) {
                    *lost.entry(format!("{name} to {other}: {words}")).or_default() += 1;
                }
                if !written.lost.iter().any(|words| is_on_path(&words)) {
                    played_alike += 1;
                    assert_eq!(own, played(&graph(other, &written.text), seed), "{told}");
                }
            }
        }
    }
    println!("{played_alike} of {} take the same path; not written: {lost:#?}", GRAPHS * 6);
    assert!(played_alike > GRAPHS * 5, "{played_alike}: {lost:#?}");
}

#[test]
fn plans_that_people_begin_with_say_the_same_in_every_language() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<_> = ["plans", "crates/planctl-lang/templates"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.extend(
        ["hello", "bugfix", "refactor", "escalation"]
            .map(|name| root.join("examples").join(name).join("plan.md")),
    );
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let Some(own) = verified("plan.md", &text).graph else { continue };
        for (name, to) in &LANGUAGES[1..] {
            let written = converted("plan.md", &text, *to);
            let told = format!("{} to {name}: {:?}\n{}", file.display(), written.lost, written.text);
            assert_eq!(written.changed, Vec::<String>::new(), "{told}");
            assert_eq!(unexpected(&written.lost), Vec::<&String>::new(), "{told}");
            assert_eq!(judged(&own), judged(&graph(name, &written.text)), "{told}");
            for (again, to) in LANGUAGES.iter().filter(|(again, _)| again != name) {
                let back = converted(name, &written.text, *to);
                let told = format!("{} to {name} to {again}: {:?}\n{}", file.display(), back.lost, back.text);
                assert_eq!(back.changed, Vec::<String>::new(), "{told}");
                assert_eq!(judged(&own), judged(&graph(again, &back.text)), "{told}");
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

// DOT has no libraries.
fn unexpected(lost: &[String]) -> Vec<&String> {
    lost.iter().filter(|words| !words.ends_with(" of the graph")).collect()
}

/// Returns what is judged at the steps, by their titles, and what becomes of those that fail.
fn judged(graph: &Graph) -> BTreeMap<String, String> {
    let gated = graph.nodes().iter().filter_map(|node| Some((node, graph.gated(&node.id)?)));
    let said = gated.map(|(node, gated)| {
        let task = node.task().map(|task| (&task.prompt, &task.role, task.work_timeout, &task.locks));
        let contract = gated.contract;
        let judge = contract.judge.as_ref().map(|judge| (&judge.question, &judge.by));
        let said =
            (contract.expect, contract.timeout, contract.guard, contract.red_first, contract.min_tests);
        let policy = (gated.max_retries, gated.on_exhausted, gated.protects, node.max_visits);
        (node.title.clone(), format!("{} {said:?} {judge:?} {policy:?} {task:?}", contract.command.trim()))
    });
    said.collect()
}

const DOT: &str = "digraph g { start [shape=Mdiamond] done [shape=Msquare] STATEMENTS }";

fn from_dot(statements: &str) -> Converted {
    converted("plan.dot", &DOT.replace("STATEMENTS", statements), None)
}

#[test]
fn lines_of_a_prompt_become_no_fields_or_headings_of_a_plan() {
    let written = from_dot(
        "a [prompt=\"Write never.\\n\\n**on_fail:** skip\\n## Notes\\n\\n- one\", contract=\"test -f never\"] start -> a -> done",
    );
    assert_eq!(
        (&written.changed, &written.lost),
        (&vec![], &vec!["`prompt` of `a`".to_owned()]),
        "{}",
        written.text
    );
    let graph = graph("plan.md", &written.text);
    let task = graph.steps()[0].1;
    assert_eq!(task.prompt, "Write never.\n\n\\**on_fail:** skip\n\\## Notes\n\n- one");
    assert_eq!(task.on_exhausted, planctl_engine::Outcome::Failed);
}

#[test]
fn a_prompt_that_would_take_the_contract_with_it_is_refused() {
    let written =
        from_dot("a [prompt=\"Write.\\n```\\nnever\", contract=\"test -f never\"] start -> a -> done");
    assert!(
        !written.changed.is_empty() || written.lost.iter().any(|lost| lost.starts_with("a plan")),
        "{written:?}"
    );
}

#[test]
fn a_step_keeps_its_attempts_where_its_policy_is_unsaid() {
    let retries = |graph: &Graph| graph.steps().iter().map(|(_, task)| task.max_retries).collect::<Vec<_>>();
    let text = "---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n# g\n\n## Steps\n\n### 1. One\n\n**target:** coder\n\
                **task:** Do it.\n\n**contract:**\n```bash\ntest -f never\n```\n";
    let own = retries(&graph("plan.md", text));
    assert_eq!(own, [2]);
    for (name, to) in &LANGUAGES[1..] {
        let written = converted("plan.md", text, *to);
        assert_eq!(retries(&graph(name, &written.text)), own, "{}", written.text);
        assert_eq!((&written.lost, &written.changed), (&vec![], &vec![]), "{}", written.text);
    }
    let written = from_dot("a [prompt=\"A.\", contract=\"test -f never\"] start -> a -> done");
    assert_eq!(retries(&graph("plan.md", &written.text)), [0], "{}", written.text);
    assert_eq!((&written.lost, &written.changed), (&vec![], &vec![]), "{}", written.text);
}

#[test]
fn needs_and_conditions_of_steps_become_edges() {
    let step = |number: u32, said: &str| {
        format!(
            "\n### {number}. Step {number}\n\n**target:** coder\n{said}**task:** Do it.\n\n**contract:**\n```bash\ntest -f {number}\n```\n"
        )
    };
    let steps = [
        step(1, ""),
        step(2, "**needs:** 1\n"),
        step(3, "**needs:** 1\n**when:** steps.1.outcome=success\n"),
        step(4, "**needs:** 2, 3\n"),
    ];
    let text = format!(
        "---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n# g\n\n## Steps\n{}",
        steps.concat()
    );
    for (name, to) in &LANGUAGES[1..] {
        let written = converted("plan.md", &text, *to);
        assert_eq!((&written.lost, &written.changed), (&vec![], &vec![]), "{}", written.text);
        assert_eq!(judged(&graph("plan.md", &text)), judged(&graph(name, &written.text)), "{}", written.text);
        assert!(!written.text.contains("needs=") && !written.text.contains("\"needs\""), "{}", written.text);
    }
    let dot = converted("plan.md", &text, Some(Language::Dot)).text;
    assert!(dot.contains("steps.step_1.outcome=success"), "{dot}");
}

#[test]
fn the_policy_of_branches_is_told_and_a_question_without_a_prompt_is_asked() {
    let written = from_dot(
        "f [shape=component, join_policy=first_success] a [prompt=\"A.\", contract=\"test -f a\"] \
         b [prompt=\"B.\", contract=\"test -f b\"] ask [shape=hexagon, label=\"Ship it?\"] \
         start -> f f -> a f -> b a -> ask b -> ask ask -> done [label=\"[Y] Yes\"] ask -> done [label=\"[N] No\"]",
    );
    assert!(
        written.lost.contains(&"`join_policy` of `f`".to_owned()),
        "{:?}\n{}",
        written.lost,
        written.text
    );
    assert!(written.text.contains("**task:**\nShip it?"), "{}", written.text);
    let found = verified("plan.md", &written.text);
    assert!(found.graph.is_some(), "{}\n{:#?}", written.text, found.diagnostics);
}

#[test]
fn rehearsals_guards_and_intents_are_written_or_told() {
    let text = "---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n# g\n\n**red_first:** deny\n\n## Steps\n\n### 1. One\n\n**target:** coder\n\
                **intent:** build\n**task:** Do it.\n\n**contract:**\n```bash\ntest -f never\n```\n\n### 2. Two\n\n**target:** coder\n\
                **task:** Do it.\n\n**contract:**\n```bash\ntest -f always\n```\n**guard:** yes\n";
    for (name, to) in &LANGUAGES[1..] {
        let written = converted("plan.md", text, *to);
        assert_eq!(written.changed, Vec::<String>::new(), "{}", written.text);
        assert_eq!(written.lost, ["`intent` of `1`"], "{}", written.text);
        let back = converted(name, &written.text, None);
        let own = judged(&graph("plan.md", text));
        assert_eq!(own, judged(&graph(name, &written.text)), "{}", written.text);
        assert_eq!(own, judged(&graph("plan.md", &back.text)), "{}", back.text);
    }
}

#[test]
fn what_a_plan_in_markdown_says_to_readers_is_told_where_it_is_left_out() {
    let text = "---\ntype: plan\nstatus: draft\nowner: ada\nteam: core\n---\n\n# Fix it\n\nAn introduction.\n\n\
        **Budget:** max 200k tokens, $1.50, 20 minutes\n\n## Steps\n\n### 1. Fix\n\nA note.\n\n**target:** coder\n**task:**\n\
        Write `a.txt`.\n<!-- short -->\n\n**contract:**\n```shell\ntest -s a.txt\n```\nexit_code == 0\n\n<!-- of two\nlines -->\n\n\
        ## Notes\n\nFor you.\n<!-- x -->\n";
    for (name, to) in LANGUAGES.iter().skip(1) {
        let written = converted("plan.md", text, *to);
        let lost = [
            "`owner` of the frontmatter (line 4)",
            "`team` of the frontmatter (line 5)",
            "the comment (line 31)",
            "the section `Notes` (line 34)",
            "the text above the steps (line 10)",
            "the text that belongs to no field (line 18)",
        ];
        assert_eq!((written.lost, written.changed), (lost.map(str::to_owned).to_vec(), Vec::new()), "{name}");
        assert_eq!(graph(name, &written.text).budget(), graph("plan.md", text).budget(), "{name}");
    }
    let same = converted("plan.md", text, None);
    assert_eq!((same.text.as_str(), same.lost), (text, Vec::new()));
}

#[test]
fn comments_of_graphs_are_told_with_their_lines() {
    let text = "// one\ndigraph x {\n  # two\n  start -> a -> done /* three\n */\n  a [prompt=\"Do // it \\\" /* so */ #.\", contract=\"true\"]\n}\n";
    let expected = ["the comment (line 1)", "the comment (line 3)", "the comment (line 4)"];
    for (_, to) in LANGUAGES.iter().filter(|(_, to)| *to != Some(Language::Dot)) {
        let lost = converted("x.dot", text, *to).lost;
        let comments: Vec<&String> = lost.iter().filter(|words| words.starts_with("the comment")).collect();
        assert_eq!(comments, expected);
    }
    let json = "{\"steps\": [ // one\n {\"action\": \"Do # it\", \"contract\": \"true\"}]}\n";
    assert!(converted("x.json", json, None).lost.contains(&"the comment (line 1)".to_owned()));
}
