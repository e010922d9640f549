//! Reads the plan of a conversation: `a: task retry 1 escalate`, `a -on_fail-> b`, `budget 900 tokens`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use planctl_engine::condition::{Clause, Condition, Key, StepField, Test};
use planctl_engine::{
    Backoff, Budget, Call, Carry, ChildApproval, Choice, Confirmation, Contract, DefaultAnswer, Digest, Edge,
    Fidelity, Fork, Goal, Graph, GraphParts, Join, JoinPolicy, Judge, Level, Limits, Node, NodeKind, On,
    Outcome, OutputCheck, PaceLevel, Priority, Profile, Question, RedFirst, Responder, Restart, Role,
    SubPlan, Task, WorkKind,
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

/// Returns the plan with other contracts for some steps. A word `-b` takes the step `b` out of it, `b>n` puts a step `n` behind it, and
/// `f=b,n` says with which steps the branches of a fork begin; one that was not there leads to the fork's join.
pub fn revised(graph: &Graph, changed: &[&str], revision: u32) -> Graph {
    let mut parts = GraphParts::from(graph.clone());
    for node in &mut parts.nodes {
        if let NodeKind::Task(task) = &mut node.kind
            && changed.contains(&node.id.as_str())
        {
            task.contract.digest = digest(node.id.as_str(), revision);
        }
    }
    for gone in changed.iter().filter_map(|word| word.strip_prefix('-')) {
        let next = parts.edges.iter().find(|edge| edge.from.as_str() == gone).unwrap().to.clone();
        parts.nodes.retain(|node| node.id.as_str() != gone);
        parts.edges.retain(|edge| edge.from.as_str() != gone);
        for edge in parts.edges.iter_mut().filter(|edge| edge.to.as_str() == gone) {
            edge.to = next.clone();
        }
    }
    for word in changed {
        if let Some((before, added)) = word.split_once('>') {
            for edge in parts.edges.iter_mut().filter(|edge| edge.from.as_str() == before) {
                edge.from = added.into();
            }
            parts.edges.push(Edge::new(before, added, On::Success));
            parts.nodes.push(plain(added, NodeKind::Task(Box::new(task(added, 90, 0)))));
        }
        if let Some((fork, heads)) = word.split_once('=') {
            branch_anew(&mut parts, fork, &heads.split(',').collect::<Vec<_>>());
        }
    }
    Graph::new(parts).unwrap()
}

fn branch_anew(parts: &mut GraphParts, fork: &str, heads: &[&str]) {
    let gone: Vec<Edge> = parts.edges.extract_if(.., |edge| edge.from.as_str() == fork).collect();
    parts.edges.extend(heads.iter().map(|head| Edge::new(fork, *head, On::Always)));
    for gone in gone.iter().filter(|edge| !heads.contains(&edge.to.as_str())) {
        parts.nodes.retain(|node| node.id != gone.to);
        parts.edges.retain(|edge| edge.from != gone.to);
    }
    let forks = parts.nodes.iter().find(|node| node.id.as_str() == fork).map(|node| &node.kind);
    let join = if let Some(NodeKind::Fork(fork)) = forks { fork.join.clone() } else { None };
    for head in heads {
        if parts.nodes.iter().all(|node| node.id.as_str() != *head) {
            parts.nodes.push(plain(head, NodeKind::Task(Box::new(task(head, 90, 0)))));
            parts.edges.push(Edge::new(*head, join.clone().unwrap(), On::Success));
        }
    }
}

#[derive(Default)]
struct Drawn {
    steps: Vec<Node>,
    policies: Vec<(String, String)>,
    edges: Vec<Edge>,
    budget: Budget,
    limits: Limits,
    asks_at: Option<Level>,
    goals: Vec<Goal>,
}

impl Drawn {
    fn read(&mut self, part: &str) {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            [name, "task", fields @ ..] => self.step(name.trim_end_matches(':'), fields),
            [name, kind, fields @ ..] if name.ends_with(':') => {
                self.place(name.trim_end_matches(':'), kind, fields);
            }
            [from, arrow, to] if arrow.ends_with("->") => self.edges.push(edge(from, arrow, to)),
            ["goal", node] => self.goals.push(Goal { node: (*node).into(), retry: None }),
            ["goal", node, "else", retry] => {
                self.goals.push(Goal { node: (*node).into(), retry: Some((*retry).into()) });
            }
            ["parallel", amount] => self.limits.parallel = number(amount) as u16,
            ["limit", "restarts", amount] => self.limits.restarts = number(amount) as u16,
            ["limit", "same", amount] => self.limits.same_failures = number(amount) as u16,
            ["budget", amount, "tokens"] => self.budget.tokens = Some(number(amount)),
            ["budget", amount, "seconds"] => self.budget.time = Some(Duration::from_secs(number(amount))),
            ["budget", amount] => {
                self.budget.micro_usd = Some(number(amount.trim_start_matches('$')) * 1_000_000)
            }
            ["stale", "after", amount, "seconds"] => {
                self.limits.stale_after = Some(Duration::from_secs(number(amount)));
            }
            ["stale", "after", amount, "turns"] => {
                self.limits.stale_after_turns = Some(number(amount) as u32)
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
        let mut on_exhausted = Outcome::Failed;
        let mut red_first = RedFirst::Off;
        let mut guard = false;
        let (mut judge, mut min_tests) = (None, None);
        let (mut is_confirmed, mut has_command) = (false, true);
        let mut check = None;
        let mut pace = Vec::new();
        let mut excludes = Vec::new();
        let mut backoff = None;
        let mut profile = Profile::default();
        let mut fields = fields.iter();
        while let Some(field) = fields.next() {
            match *field {
                "retry" => max_retries = number(fields.next().unwrap()) as u16,
                "visits" => max_visits = number(fields.next().unwrap()) as u16,
                "red-first" => {
                    let word = fields.next().unwrap();
                    red_first = RedFirst::ALL.into_iter().find(|policy| policy.as_str() == *word).unwrap();
                }
                "guard" => guard = true,
                "tests" => min_tests = Some(number(fields.next().unwrap()) as u32),
                "judged" => judge = Some(Box::new(judge_of_all())),
                "judged-once-approved" => judge = Some(Box::new(Judge { approval: true, ..judge_of_all() })),
                "judged-alone" => (judge, has_command) = (Some(Box::new(judge_of_all())), false),
                "confirmed" => (is_confirmed, has_command) = (true, false),
                "signed" => is_confirmed = true,
                "observed" => {
                    (is_confirmed, has_command) = (true, false);
                    check = Some(match *fields.next().unwrap() {
                        "exit" => OutputCheck::ExitCodeZero,
                        text => OutputCheck::OutputContains(text.to_owned()),
                    });
                }
                word @ ("alternate" | "contingent" | "emergency") => {
                    let responder = Responder::from((*fields.next().unwrap()).to_owned());
                    pace.push(PaceLevel { level: level(word), responder, timeout: None });
                }
                "waits" => backoff = Backoff::from_word(fields.next().unwrap()).unwrap().0,
                "told" => profile.fidelity = Fidelity::from_word(fields.next().unwrap()),
                "thread" => profile.thread = fields.next().map(|thread| (*thread).to_owned()),
                "class" => profile.common_thread = fields.next().map(|thread| (*thread).to_owned()),
                "apart" => excludes.push((*fields.next().unwrap()).to_owned()),
                policy @ ("escalate" | "abort" | "skip" | "warn") => {
                    self.policies.push((name.to_owned(), policy.to_owned()));
                    on_exhausted = match policy {
                        "skip" => Outcome::Skipped,
                        "warn" => Outcome::Warned,
                        _ => Outcome::Failed,
                    };
                }
                other => panic!("what is “{other}” in a step?"),
            }
        }
        let mut task =
            Task { on_exhausted, pace, excludes, ..task(name, self.steps.len() as u32 + 1, max_retries) };
        (task.contract.red_first, task.contract.guard) = (red_first, guard);
        (task.contract.judge, task.contract.min_tests) = (judge, min_tests);
        if !has_command {
            task.contract.command.clear();
        }
        let kind = NodeKind::Task(Box::new(task));
        let confirmation = is_confirmed.then(|| {
            let options = vec!["done".to_owned(), "no".to_owned()];
            let question = Question { text: format!("{name}?"), options, default: None, usual: None };
            Box::new(Confirmation { question, refusal: "no".to_owned(), check })
        });
        let profile = (profile != Profile::default()).then(|| Box::new(profile));
        self.steps.push(Node { max_visits, backoff, profile, confirmation, ..plain(name, kind) });
    }

    /// Reads what is no task: `d: decision`, `d: decision by command`, `h: human yes no`, `f: fork j max 2`.
    fn place(&mut self, name: &str, kind: &str, fields: &[&str]) {
        let value = |field: &str| fields.windows(2).find(|pair| pair[0] == field).map(|pair| pair[1]);
        let count = |field: &str| value(field).map(|value| number(value) as u16);
        let kind = match kind {
            "call" => NodeKind::Call(Box::new(Call {
                contract: contract(name),
                max_retries: count("retry").unwrap_or(0),
                on_exhausted: if fields.contains(&"warn") { Outcome::Warned } else { Outcome::Failed },
                contract_files: BTreeSet::new(),
                may_change: BTreeSet::new(),
                role: None,
                approval: value("asks").map(str::to_owned),
            })),
            "decision" => NodeKind::Decision(Choice {
                description: value("says").map(str::to_owned),
                command: fields.contains(&"command").then(|| Box::new(contract(name))),
            }),
            "human" => {
                let default = value("default").map(|answer| DefaultAnswer {
                    after: Duration::from_secs(60),
                    answer: answer.to_owned(),
                });
                let words = fields.iter().take_while(|word| **word != "default" && **word != "visits");
                let options = words.map(|word| (*word).to_owned()).collect();
                NodeKind::Human(Box::new(Question {
                    text: format!("{name}?"),
                    options,
                    default,
                    usual: None,
                }))
            }
            "checkpoint" => NodeKind::Checkpoint,
            "fork" => {
                let join = fields
                    .first()
                    .filter(|word| **word != "max" && **word != "visits")
                    .map(|join| (*join).into());
                NodeKind::Fork(Fork { join, max: count("max"), in_worktree: fields.contains(&"apart") })
            }
            "plan" => NodeKind::SubPlan(Box::new(SubPlan {
                path: fields.first().map_or("child.md", |path| path).to_owned(),
                folder: None,
                approval: ChildApproval::Ask,
                on_exhausted: Outcome::Failed,
                until: value("until").map(condition),
                cycles: count("cycles").unwrap_or(1),
            })),
            "join" => NodeKind::Join(Join {
                policy: if fields.contains(&"any") { JoinPolicy::Any } else { JoinPolicy::All },
                partial: fields.contains(&"partial"),
            }),
            "escalate" => NodeKind::Escalate { reason: Some(format!("{name} says why")), pace_level: None },
            other => panic!("what is a “{other}”?"),
        };
        let step =
            matches!(kind, NodeKind::Call(_) | NodeKind::Human(_)).then(|| self.steps.len() as u32 + 1);
        let max_visits = count("visits").unwrap_or(10);
        let backoff = value("waits").and_then(|word| Backoff::from_word(word).unwrap().0);
        self.steps.push(Node { max_visits, step, backoff, ..plain(name, kind) });
    }

    /// Adds what goes without saying: the way from step to step, and the nodes that edges lead to.
    fn finished(mut self) -> GraphParts {
        let names: Vec<String> = self.steps.iter().map(|step| step.id.to_string()).collect();
        let next = |at: usize| names.get(at + 1).map_or("done", String::as_str).to_owned();
        let mut nodes =
            vec![plain("start", NodeKind::Start), plain("done", NodeKind::Exit { success: true })];
        let mut edges = vec![Edge::new("start", names[0].as_str(), On::Success)];
        for (at, name) in names.iter().enumerate() {
            let from = name.as_str();
            let is_escalation = matches!(self.steps[at].kind, NodeKind::Escalate { .. });
            if !is_escalation
                && !self
                    .edges
                    .iter()
                    .any(|edge| edge.from.as_str() == from && matches!(edge.on, On::Success | On::Always))
            {
                edges.push(Edge::new(from, next(at).as_str(), On::Success));
            }
            for (_, policy) in self.policies.iter().filter(|(step, _)| step == name) {
                let to = match policy.as_str() {
                    "escalate" => "ask".to_owned(),
                    "abort" => "failed".to_owned(),
                    _ => next(at),
                };
                edges.push(Edge::new(from, to.as_str(), On::Exhaust));
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
            goals: self.goals,
            context: BTreeMap::new(),
        }
    }
}

/// Reads an edge: `-on_fail->`, `-always?outcome=fail&&context.x!=1->`, `-on_success@yes->`, `-on_success*3->`,
/// `-always#x,y->` (begins anew and keeps x and y), `-always~truncate~thread->`.
fn edge(from: &str, arrow: &str, to: &str) -> Edge {
    let word = arrow.trim_start_matches('-').trim_end_matches("->");
    let mut parts = word.split('~');
    let word = parts.next().unwrap_or_default();
    let carry = parts.next().map(|fidelity| {
        Box::new(Carry { fidelity: Fidelity::from_word(fidelity), thread: parts.next().map(str::to_owned) })
    });
    let (word, keeps) = word.split_once('#').map_or((word, None), |(word, keeps)| (word, Some(keeps)));
    let restart = keeps.map(|keeps| {
        let keeps = keeps.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
        Box::new(Restart { keeps: keeps.collect() })
    });
    let (word, weight) =
        word.split_once('*').map_or((word, 0), |(word, weight)| (word, number(weight) as i32));
    let (word, label) =
        word.split_once('@').map_or((word, None), |(word, label)| (word, Some(label.to_owned())));
    let (word, when) =
        word.split_once('?').map_or((word, None), |(word, when)| (word, Some(condition(when))));
    Edge { when, label, weight, restart, carry, ..Edge::new(from, to, on(word)) }
}

fn condition(text: &str) -> Condition {
    let clause = |text: &str| {
        let (key, test) = match (text.split_once("!="), text.split_once('=')) {
            (Some((key, value)), _) => (key, Test::IsNot(value.to_owned())),
            (None, Some((key, value))) => (key, Test::Is(value.to_owned())),
            (None, None) => (text, Test::Truthy),
        };
        let key = match key.split('.').collect::<Vec<_>>().as_slice() {
            ["outcome"] => Key::Outcome,
            ["preferred_label"] => Key::PreferredLabel,
            ["context", name @ ..] => Key::Context(name.join(".")),
            ["steps", node, field] => {
                let field = StepField::ALL.into_iter().find(|known| known.as_str() == *field).unwrap();
                Key::Step { node: (*node).to_owned(), field }
            }
            other => panic!("what is {other:?} in a condition?"),
        };
        Clause { key, test }
    };
    Condition { clauses: text.split("&&").map(clause).collect() }
}

fn judge_of_all() -> Judge {
    Judge {
        question: "Is it good?".to_owned(),
        digest: Digest::from("sha256:judge"),
        by: "strict".to_owned(),
        approval: false,
    }
}

fn contract(name: &str) -> Contract {
    Contract {
        command: format!("./check {name}"),
        digest: digest(name, 1),
        expect: 0,
        timeout: Duration::from_secs(600),
        guard: false,
        red_first: RedFirst::Off,
        min_tests: None,
        judge: None,
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
        contract: contract(name),
        max_retries,
        on_exhausted: Outcome::Failed,
        work_timeout: Duration::from_secs(600),
        protects: Vec::new(),
        locks: Vec::new(),
        excludes: Vec::new(),
        contract_files: BTreeSet::new(),
        may_change: BTreeSet::new(),
    }
}

fn level(word: &str) -> Level {
    let known = Level::ALL.into_iter().find(|level| level.as_str() == word);
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
    Node::new(name, name, kind)
}

pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("“{word}” is no number"))
}
