//! One random graph, written in DOT, JSON and markdown, read back and played: the three take one path, whatever workers say.

use std::collections::BTreeMap;

use planctl_engine::{Graph, Hints, NodeId};
use planctl_lang::{Facts, Levels, Source, verify};

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

/// Plays a graph: where each step has a number, whatever the language calls it. Workers lie as they like.
fn played(graph: &Graph, seed: u64) -> String {
    let number = |node: &NodeId| node.as_str().trim_start_matches('a').parse::<u64>().unwrap_or(0);
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
    let name = |name: &str| name.trim_start_matches('a').to_owned();
    let path: Vec<String> = walk.path.iter().map(|node| name(node)).collect();
    // Why a person is asked differs: a step in markdown escalates where it says nothing else.
    let end = walk.end.split(':').next().unwrap_or_default().replace("asks a", "asks ");
    format!("{} {}", path.join(" "), end.replace("asks ", "asks-"))
}

/// One graph: steps in a row, each with ways off it.
struct Drawn {
    steps: Vec<Step>,
}

struct Step {
    kind: Kind,
    retries: u16,
    visits: u16,
    /// Ways that have conditions, or are for a failure: where they lead, by step, and when.
    ways: Vec<(usize, String)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Task,
    Call,
    Decision,
}

/// A generator that gives the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

impl Drawn {
    fn of(seed: u64) -> Drawn {
        let mut dice = Dice(seed.wrapping_mul(0x1000_0000_01b3));
        let count = dice.below(6) as usize + 2;
        let mut steps: Vec<Step> = Vec::new();
        for at in 0..count {
            let kind = match dice.below(10) {
                0..4 if at > 0 => Kind::Decision,
                0..7 => Kind::Call,
                _ => Kind::Task,
            };
            let any = |dice: &mut Dice| dice.below(count as u64 + 1) as usize;
            let mut ways = Vec::new();
            if kind == Kind::Decision {
                let target = any(&mut dice);
                let failing = ["outcome!=success", "outcome=fail"][dice.below(2) as usize];
                ways.push((target, failing.to_owned()));
            } else if dice.below(2) == 0 {
                let failing = ["outcome=fail", "outcome!=success", "outcome=fail && preferred_label=red"]
                    [dice.below(3) as usize];
                ways.push((any(&mut dice), failing.to_owned()));
            }
            // The words of workers, on every node.
            let words = [
                "preferred_label=red",
                "outcome=blue",
                "context.x=1",
                "preferred_label!=blue",
                "outcome!=red",
            ];
            if dice.below(3) == 0 {
                ways.push((any(&mut dice), words[dice.below(5) as usize].to_owned()));
            }
            ways.retain(|(to, _)| *to != at);
            if kind == Kind::Decision
                && !ways.iter().any(|(_, when)| when.starts_with("outcome!=s") || when.ends_with("fail"))
            {
                ways.insert(0, (count, "outcome!=success".to_owned()));
            }
            let retries = dice.below(3) as u16;
            steps.push(Step { kind, retries, visits: dice.below(4) as u16 + 1, ways });
        }
        Drawn { steps }
    }

    fn name(&self, at: usize) -> String {
        if at == self.steps.len() { "done".to_owned() } else { format!("a{}", at + 1) }
    }

    fn dot(&self) -> String {
        let mut text =
            "digraph g {\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n  start -> a1\n".to_owned();
        for (at, step) in self.steps.iter().enumerate() {
            let name = self.name(at);
            let visits = step.visits;
            let said = match step.kind {
                Kind::Task => {
                    format!("prompt=\"Do it.\", contract=\"make n{at}\", max_retries={}", step.retries)
                }
                Kind::Call => {
                    format!("shape=parallelogram, tool_command=\"make n{at}\", max_retries={}", step.retries)
                }
                Kind::Decision => "shape=diamond".to_owned(),
            };
            text.push_str(&format!("  {name} [{said}, max_visits={visits}]\n"));
            let next = self.name(at + 1);
            let on = if step.kind == Kind::Decision { " [condition=\"outcome=success\"]" } else { "" };
            text.push_str(&format!("  {name} -> {next}{on}\n"));
            for (to, when) in &step.ways {
                text.push_str(&format!("  {name} -> {} [condition=\"{when}\"]\n", self.name(*to)));
            }
        }
        text + "}\n"
    }

    fn json(&self) -> String {
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for (at, step) in self.steps.iter().enumerate() {
            let name = self.name(at);
            let said = match step.kind {
                Kind::Task => format!(
                    "\"type\": \"task\", \"action\": \"Do it.\", \"contract\": \"make n{at}\", \"max_retries\": {}",
                    step.retries
                ),
                Kind::Call => format!(
                    "\"type\": \"call\", \"tool_command\": \"make n{at}\", \"max_retries\": {}",
                    step.retries
                ),
                Kind::Decision => "\"type\": \"decision\"".to_owned(),
            };
            nodes.push(format!("\"{name}\": {{{said}, \"max_visits\": {}}}", step.visits));
            let (next, is_next_decision) =
                (self.name(at + 1), self.steps.get(at + 1).is_some_and(|next| next.kind == Kind::Decision));
            // Without a condition an edge of JSON is for every outcome, as a bare one into a decision is in DOT.
            let on = match (step.kind, is_next_decision) {
                (Kind::Decision, _) => ", \"when\": \"outcome=success\"",
                (_, true) => "",
                (_, false) => ", \"condition\": \"on_success\"",
            };
            edges.push(format!("{{\"from\": \"{name}\", \"to\": \"{next}\"{on}}}"));
            for (to, when) in &step.ways {
                edges.push(format!(
                    "{{\"from\": \"{name}\", \"to\": \"{}\", \"when\": \"{when}\"}}",
                    self.name(*to)
                ));
            }
        }
        nodes.push("\"done\": {\"type\": \"exit\"}".to_owned());
        let (nodes, edges) = (nodes.join(",\n"), edges.join(",\n"));
        format!(
            "{{\"name\": \"g\", \"graph\": {{\"start\": \"a1\", \"nodes\": {{{nodes}}},\n\"edges\": [{edges}]}}}}\n"
        )
    }

    fn markdown(&self) -> String {
        let mut text = "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# g\n\n## Steps\n".to_owned();
        let mut flow = String::new();
        let number = |at: usize| self.name(at).trim_start_matches('a').to_owned();
        for (at, step) in self.steps.iter().enumerate() {
            let name = at + 1;
            let kind = match step.kind {
                Kind::Task => "**target:** coder\n",
                Kind::Call => "**type:** call\n",
                Kind::Decision => "**type:** decision\n",
            };
            text.push_str(&format!(
                "\n### {name}. Part {name}\n\n{kind}**max_visits:** {}\n**task:** Do it.\n",
                step.visits
            ));
            if step.kind == Kind::Decision {
                flow.push_str(&format!("- {name} -> {} if outcome=success\n", number(at + 1)));
            } else {
                text.push_str(&format!(
                    "**max_retries:** {}\n\n**contract:**\n```bash\nmake n{at}\n```\n",
                    step.retries
                ));
            }
            for (to, when) in &step.ways {
                flow.push_str(&format!("- {name} -> {} if {when}\n", number(*to)));
            }
        }
        if flow.is_empty() { text } else { format!("{text}\n## Flow\n\n{flow}") }
    }
}
