//! Reads the plan of a conversation: `a: task retry 1 escalate`, `a -on_fail-> b`, `budget 900 tokens`.

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_engine::{
    Budget, Contract, Digest, Edge, Graph, GraphParts, Level, Limits, Node, NodeKind, On, Outcome, Priority,
    RedFirst, Responder, Role, Rung, Task, WorkKind,
};

/// Reads the parts of a plan. Steps run in the order in which they stand, unless an edge says otherwise.
pub fn read(parts: &[&str]) -> Graph {
    let mut plan = Drawn::default();
    for part in parts {
        plan.read(part);
    }
    Graph::new(plan.finished()).unwrap_or_else(|defect| panic!("no plan: {defect}"))
}

/// Returns the digest of a step's contract; a revision changes it.
pub fn digest(step: &str, revision: u32) -> Digest {
    Digest::new(format!("sha256:{step}.{revision}"))
}

/// Returns the plan with other contracts for some steps.
pub fn revised(graph: &Graph, changed: &[&str], revision: u32) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind
            && changed.contains(&node.id.as_str())
        {
            task.contract.digest = digest(node.id.as_str(), revision);
        }
    }
    Graph::new(parts).unwrap()
}

#[derive(Default)]
struct Drawn {
    steps: Vec<Node>,
    policies: Vec<(String, String)>,
    edges: Vec<Edge>,
    budget: Budget,
    limits: Limits,
    asks_at: Option<Level>,
}

impl Drawn {
    fn read(&mut self, part: &str) {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            [name, "task", fields @ ..] => self.step(name.trim_end_matches(':'), fields),
            [from, arrow, to] if arrow.ends_with("->") => {
                let on = on(arrow.trim_start_matches('-').trim_end_matches("->"));
                self.edges.push(Edge { from: (*from).into(), to: (*to).into(), on });
            }
            ["budget", amount, "tokens"] => self.budget.tokens = Some(number(amount)),
            ["budget", amount, "seconds"] => self.budget.time = Some(Duration::from_secs(number(amount))),
            ["budget", amount] => {
                self.budget.micro_usd = Some(number(amount.trim_start_matches('$')) * 1_000_000)
            }
            ["stale", "after", amount, "seconds"] => {
                self.limits.stale_after = Some(Duration::from_secs(number(amount)));
            }
            ["ask", "at", word] => self.asks_at = Some(level(word)),
            ["limit", "attempts", amount] => self.limits.attempts = number(amount) as u32,
            ["limit", "deliveries", amount] => self.limits.deliveries = number(amount) as u16,
            ["limit", "interruptions", amount] => self.limits.interruptions = number(amount) as u16,
            ["limit", "repeats", amount] => self.limits.repeats = number(amount) as u16,
            _ => panic!("what is “{part}” in a plan?"),
        }
    }

    fn step(&mut self, name: &str, fields: &[&str]) {
        let mut max_retries = 0;
        let mut max_visits = 10;
        let mut lapse = Outcome::Failed;
        let mut red_first = RedFirst::Off;
        let mut guard = false;
        let mut pace = Vec::new();
        let mut fields = fields.iter();
        while let Some(field) = fields.next() {
            match *field {
                "retry" => max_retries = number(fields.next().unwrap()) as u16,
                "visits" => max_visits = number(fields.next().unwrap()) as u16,
                "red-first" => {
                    let word = fields.next().unwrap();
                    red_first = RedFirst::ALL.into_iter().find(|policy| policy.word() == *word).unwrap();
                }
                "guard" => guard = true,
                word @ ("alternate" | "contingent" | "emergency") => {
                    let responder = Responder::from((*fields.next().unwrap()).to_owned());
                    pace.push(Rung { level: level(word), responder, timeout: None });
                }
                policy @ ("escalate" | "abort" | "skip" | "warn") => {
                    self.policies.push((name.to_owned(), policy.to_owned()));
                    lapse = match policy {
                        "skip" => Outcome::Skipped,
                        "warn" => Outcome::Warned,
                        _ => Outcome::Failed,
                    };
                }
                other => panic!("what is “{other}” in a step?"),
            }
        }
        let mut task = Task { lapse, pace, ..task(name, self.steps.len() as u32 + 1, max_retries) };
        (task.contract.red_first, task.contract.guard) = (red_first, guard);
        let kind = NodeKind::Task(Box::new(task));
        self.steps.push(Node { id: name.into(), title: name.to_owned(), kind, max_visits });
    }

    /// Adds what goes without saying: the way from step to step, and the nodes that edges lead to.
    fn finished(mut self) -> GraphParts {
        let names: Vec<String> = self.steps.iter().map(|step| step.id.to_string()).collect();
        let next = |at: usize| names.get(at + 1).map_or("done", String::as_str).to_owned();
        let mut nodes =
            vec![plain("start", NodeKind::Start), plain("done", NodeKind::Exit { success: true })];
        let mut edges = vec![Edge { from: "start".into(), to: names[0].as_str().into(), on: On::Success }];
        for (at, name) in names.iter().enumerate() {
            let from = name.as_str();
            if !self
                .edges
                .iter()
                .any(|edge| edge.from.as_str() == from && matches!(edge.on, On::Success | On::Always))
            {
                edges.push(Edge { from: from.into(), to: next(at).as_str().into(), on: On::Success });
            }
            for (_, policy) in self.policies.iter().filter(|(step, _)| step == name) {
                let to = match policy.as_str() {
                    "escalate" => "ask".to_owned(),
                    "abort" => "failed".to_owned(),
                    _ => next(at),
                };
                edges.push(Edge { from: from.into(), to: to.as_str().into(), on: On::Exhaust });
            }
        }
        edges.append(&mut self.edges);
        let leads_to = |name: &str| edges.iter().any(|edge| edge.to.as_str() == name);
        if leads_to("ask") {
            nodes.push(plain("ask", NodeKind::Escalate { reason: None, pace_level: self.asks_at }));
        }
        if leads_to("failed") {
            nodes.push(plain("failed", NodeKind::Exit { success: false }));
        }
        nodes.append(&mut self.steps);
        GraphParts {
            title: "a conversation".to_owned(),
            start: "start".into(),
            nodes,
            edges,
            budget: self.budget,
            limits: self.limits,
            priority: Priority::Normal,
        }
    }
}

/// Returns a step that fails where its attempts are used up.
pub fn task(name: &str, step: u32, max_retries: u16) -> Task {
    Task {
        step,
        role: Role::from("coder"),
        pace: Vec::new(),
        work: WorkKind::Code,
        prompt: format!("do {name}"),
        subscriptions: Vec::new(),
        contract: Contract {
            command: format!("./check {name}"),
            digest: digest(name, 1),
            expect: 0,
            timeout: Duration::from_secs(600),
            guard: false,
            red_first: RedFirst::Off,
        },
        max_retries,
        lapse: Outcome::Failed,
        work_timeout: Duration::from_secs(600),
        protects: Vec::new(),
        locks: Vec::new(),
        contract_files: BTreeSet::new(),
        own_files: BTreeSet::new(),
    }
}

fn level(word: &str) -> Level {
    let known = Level::ALL.into_iter().find(|level| level.word() == word);
    known.unwrap_or_else(|| panic!("what is a level “{word}”?"))
}

fn on(word: &str) -> On {
    match word {
        "on_success" => On::Success,
        "on_fail" => On::Fail,
        "on_retry" => On::Retry,
        "on_exhaust" => On::Exhaust,
        "always" => On::Always,
        other => panic!("what is an edge “{other}”?"),
    }
}

pub fn plain(name: &str, kind: NodeKind) -> Node {
    Node { id: name.into(), title: name.to_owned(), kind, max_visits: 10 }
}

pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("“{word}” is no number"))
}
