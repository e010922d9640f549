//! Random graphs, each written in DOT, JSON and markdown.

/// One graph: steps in a row, each with ways off it.
pub struct Drawn {
    steps: Vec<Step>,
}

struct Step {
    kind: Kind,
    retries: u16,
    visits: u16,
    /// Ways that have conditions, or are for a failure: where they lead, by step, and when.
    ways: Vec<(usize, String)>,
    /// Where it leads when it passes; nowhere in a graph that is not sound.
    next: Option<usize>,
    /// Another way for the same.
    other: Option<usize>,
    has_contract: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Task,
    Call,
    Decision,
}

/// A generator that gives the same numbers everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
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
    /// Draws a graph that is sound.
    pub fn of(seed: u64) -> Drawn {
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
            let visits = dice.below(4) as u16 + 1;
            steps.push(Step {
                kind,
                retries,
                visits,
                ways,
                next: Some(at + 1),
                other: None,
                has_contract: true,
            });
        }
        Drawn { steps }
    }

    /// Draws a graph that is wrong in some way more often than not.
    #[allow(dead_code, reason = "the tests of the command line draw these from this file, too")]
    pub fn wild(seed: u64) -> Drawn {
        let mut drawn = Drawn::of(seed);
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9));
        let count = drawn.steps.len() as u64;
        for _ in 0..dice.below(3) {
            let at = dice.below(count) as usize;
            let target = dice.below(count + 1) as usize;
            let step = &mut drawn.steps[at];
            match dice.below(9) {
                0 => step.ways.clear(),
                1 => step.next = None,
                2 => step.next = Some(target),
                3 => step.other = Some(target),
                4 => step.ways.push((count as usize + 90, "outcome=fail".to_owned())),
                5 => step.ways.push((target, "outcome ~ fail".to_owned())),
                6 => step.ways.push((target, "steps.a77.outcome=fail".to_owned())),
                7 => step.has_contract = false,
                _ => step.ways.extend(step.ways.first().cloned()),
            }
        }
        drawn
    }

    fn name(&self, at: usize) -> String {
        if at == self.steps.len() { "done".to_owned() } else { format!("a{}", at + 1) }
    }

    /// Writes it as DOT.
    pub fn dot(&self) -> String {
        let mut text =
            "digraph g {\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n  start -> a1\n".to_owned();
        for (at, step) in self.steps.iter().enumerate() {
            let name = self.name(at);
            let visits = step.visits;
            let said = match step.kind {
                Kind::Task if !step.has_contract => "prompt=\"Do it.\"".to_owned(),
                Kind::Task => {
                    format!("prompt=\"Do it.\", contract=\"make n{at}\", max_retries={}", step.retries)
                }
                Kind::Call => {
                    format!("shape=parallelogram, tool_command=\"make n{at}\", max_retries={}", step.retries)
                }
                Kind::Decision => "shape=diamond".to_owned(),
            };
            text.push_str(&format!("  {name} [{said}, max_visits={visits}]\n"));
            let on = if step.kind == Kind::Decision { " [condition=\"outcome=success\"]" } else { "" };
            for next in step.next.iter().chain(&step.other) {
                text.push_str(&format!("  {name} -> {}{on}\n", self.name(*next)));
            }
            for (to, when) in &step.ways {
                text.push_str(&format!("  {name} -> {} [condition=\"{when}\"]\n", self.name(*to)));
            }
        }
        text + "}\n"
    }

    /// Writes it as JSON.
    pub fn json(&self) -> String {
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for (at, step) in self.steps.iter().enumerate() {
            let name = self.name(at);
            let said = match step.kind {
                Kind::Task if !step.has_contract => "\"type\": \"task\", \"action\": \"Do it.\"".to_owned(),
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
            for next in step.next.iter().chain(&step.other) {
                let is_next_decision = self.steps.get(*next).is_some_and(|next| next.kind == Kind::Decision);
                // Without a condition an edge of JSON is for every outcome, as a bare one into a decision is in DOT.
                let on = match (step.kind, is_next_decision) {
                    (Kind::Decision, _) => ", \"when\": \"outcome=success\"",
                    (_, true) => "",
                    (_, false) => ", \"condition\": \"on_success\"",
                };
                edges.push(format!("{{\"from\": \"{name}\", \"to\": \"{}\"{on}}}", self.name(*next)));
            }
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

    /// Writes it as markdown.
    pub fn markdown(&self) -> String {
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
            let on = if step.kind == Kind::Decision { " if outcome=success" } else { "" };
            // A step goes on to the one after it by itself.
            let is_said = step.kind == Kind::Decision || step.next != Some(at + 1);
            for next in step.next.iter().filter(|_| is_said).chain(&step.other) {
                flow.push_str(&format!("- {name} -> {}{on}\n", number(*next)));
            }
            if step.kind != Kind::Decision && step.has_contract {
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
