//! One random graph, written in DOT, JSON and markdown, read back and played: the three take one path under any answers of
//! workers.

use std::collections::BTreeMap;

use planctl_engine::{Graph, Hints, NodeId};
use planctl_lang::{Facts, Levels, Source, verify};

use super::drawn::{Dice, Drawn};
use super::walk::walk;

/// Graphs that are played by default; `PLANCTL_SAME_PATHS=N` plays more.
const GRAPHS: u64 = 120;

#[test]
fn one_graph_takes_one_path_in_every_language() {
    let graphs =
        std::env::var("PLANCTL_SAME_PATHS").ok().map_or(GRAPHS, |count| count.parse().expect("a number"));
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..graphs {
        let drawn = Drawn::of(seed);
        let texts = [("plan.dot", drawn.dot()), ("plan.json", drawn.json()), ("plan.md", drawn.markdown())];
        let walks: Vec<String> =
            texts.iter().map(|(name, text)| played(&graph(seed, name, text), seed)).collect();
        for ((name, text), walk) in texts.iter().zip(&walks) {
            let first = &texts[0].1;
            assert_eq!(walk, &walks[0], "seed {seed}: {name}\n{text}\n{first}");
        }
        let end = walks[0].rsplit(' ').next().unwrap_or_default().to_owned();
        *ends.entry(end).or_default() += 1;
    }
    println!("{graphs} graphs in three languages: {ends:?}");
    let is_asked = ends.keys().any(|end| end.starts_with("asks-"));
    assert!(graphs < GRAPHS || (is_asked && ends.contains_key("done")), "{ends:?}");
}

fn graph(seed: u64, name: &str, text: &str) -> Graph {
    let found = verify(&Source::new(name, text), &Facts::default(), &Levels::default());
    found.graph.unwrap_or_else(|| {
        let errors: Vec<_> = found.diagnostics.iter().filter(|found| found.is_error()).collect();
        panic!("seed {seed}: {name} is refused\n{text}\n{errors:#?}")
    })
}

/// Returns the number of a node by its name in each language: `2`, `a2`, and `step_2` where markdown becomes DOT.
fn plain(name: &str) -> &str {
    name.trim_start_matches("step_").trim_start_matches('a')
}

/// Plays a graph: where each step has a number, regardless of its name in the language. Workers lie as they like.
pub fn played(graph: &Graph, seed: u64) -> String {
    let number = |node: &NodeId| plain(node.as_str()).parse::<u64>().unwrap_or(0);
    let truth = |node: &NodeId, attempt: u16, about: u64| {
        Dice(seed ^ number(node) << 8 ^ u64::from(attempt) << 20 ^ about << 40).next()
    };
    let exit = |node: &NodeId, attempt: u16| [0, 0, 1, 2][(truth(node, attempt, 1) % 4) as usize];
    let hints = |node: &NodeId, attempt: u16| {
        let luck = truth(node, attempt, 2);
        let mut context = BTreeMap::new();
        for (at, (name, value)) in
            [("x", "1"), ("outcome", "success"), ("context.outcome", "success"), ("exit_code", "0")]
                .iter()
                .enumerate()
        {
            if luck >> at & 1 == 1 {
                context.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        Some(Hints {
            label: [None, Some("red"), Some("blue"), Some("success")][(luck >> 8 & 3) as usize]
                .map(str::to_owned),
            suggested: vec![NodeId::new("done")],
            context,
            insert_step: None,
        })
    };
    let walk = walk(graph, &exit, &hints);
    let path: Vec<&str> = walk.path.iter().map(|node| plain(node)).collect();
    // Why a person is asked differs: a step in markdown escalates where it says nothing else.
    let end = walk
        .end
        .split(':')
        .next()
        .unwrap_or_default()
        .replace("asks step_", "asks ")
        .replace("asks a", "asks ");
    format!("{} {}", path.join(" "), end.replace("asks ", "asks-"))
}
