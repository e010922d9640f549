//! The context of an agent that drives itself: three forms, each a pure function of graph, run and history (rows H-40 to
//! H-43, G-33).

use std::collections::BTreeMap;

use planctl_engine::{
    Edge, Fact, Graph, Node, NodeId, NodeKind, NodeState, On, Outcome, Record, Run, RunStatus, Signal,
};

use crate::words::contract_words;

/// The inputs of the three forms.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The name of the plan.
    pub plan: &'a str,
    /// The graph that it compiles to.
    pub graph: &'a Graph,
    /// Where the run stands; wholly loaded.
    pub run: &'a Run,
    /// The newest facts, in order.
    pub history: &'a [Fact],
    /// Says that older facts are left out of them.
    pub is_cut: bool,
    /// The texts that the source gives for steps beside those that the engine runs.
    pub manual: &'a BTreeMap<NodeId, Manual>,
}

/// A library's instructions for the agent that does a step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manual {
    /// The action; the step's prompt where it is absent.
    pub action: Option<String>,
    /// With which tool.
    pub tool: Option<String>,
    /// How.
    pub hint: Option<String>,
    /// The check that shows that it is done; the step's contract where it is absent.
    pub verify: Option<Verify>,
}

/// A check that shows that a step is done, in the words of a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verify {
    /// `output_contains`, `exit_code_zero`, …
    pub kind: String,
    /// The value that is looked for.
    pub value: String,
}

/// Which form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Steps as sentences (H-40).
    Long,
    /// One short line for each step (H-41).
    Compact,
    /// The path so far, and what follows from here (G-33).
    Workflow,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 3] = [Form::Long, Form::Compact, Form::Workflow];

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Form::Long => "long",
            Form::Compact => "compact",
            Form::Workflow => "workflow",
        }
    }
}

/// The most nodes of a path that are told.
const PATH_MAX: usize = 20;
/// The most characters of one line.
const LINE_CHARS_MAX: usize = 2_000;

/// Writes what the agent is told; nothing where no plan is under way (H-43).
pub fn context(scene: &Scene<'_>, form: Form) -> String {
    match scene.run.head.status {
        RunStatus::Queued { .. } | RunStatus::Active | RunStatus::Paused => {}
        RunStatus::New | RunStatus::Awaiting | RunStatus::Ended { .. } => return String::new(),
    }
    match form {
        Form::Long => long_context(scene),
        Form::Compact => compact(scene),
        Form::Workflow => workflow(scene),
    }
}

fn long_context(scene: &Scene<'_>) -> String {
    let steps = scene.graph.numbered_steps();
    let mut text = format!("[ACTIVE PLAN: {}]\n", one_line(scene.plan));
    for (number, node) in &steps {
        let title = one_line(&node.title);
        text.push_str(&format!("Step {number} of {}: {title} ", steps.len()));
        match scene.node_position(&node.id) {
            NodePosition::Here { is_held: false } => text.push_str("← YOU ARE HERE\n"),
            NodePosition::Here { is_held: true } => text.push_str("← YOU ARE HERE (a person is asked)\n"),
            NodePosition::Done => text.push_str("[COMPLETED]\n"),
            NodePosition::Failed => text.push_str("[FAILED]\n"),
            NodePosition::Ahead => text.push_str("[PENDING]\n"),
        }
        if let NodePosition::Here { .. } = scene.node_position(&node.id) {
            scene.write_instructions(&mut text, node, ("  ", "Command hint"), &scene.verify_words(node));
        }
    }
    let (own, held) = scene.steps_here();
    if !own.is_empty() {
        let words = step_words(&own);
        text.push_str(&format!(
            "\nINSTRUCTION: Execute {words} now. Do not skip ahead. Verify the result before proceeding.\n"
        ));
    } else if !held.is_empty() {
        text.push_str(&format!("\nINSTRUCTION: {}\n", wait_words(&held)));
    }
    text
}

fn compact(scene: &Scene<'_>) -> String {
    let steps = scene.graph.numbered_steps();
    let mut text = format!("[ACTIVE PLAN: {}]\n", one_line(scene.plan));
    for (number, node) in &steps {
        let title = one_line(&node.title);
        text.push_str(&format!("  Step {number}/{}: {title} ", steps.len()));
        match scene.node_position(&node.id) {
            NodePosition::Here { is_held: false } => text.push_str("<< CURRENT\n"),
            NodePosition::Here { is_held: true } => text.push_str("<< CURRENT (a person is asked)\n"),
            NodePosition::Done => text.push_str("[DONE]\n"),
            NodePosition::Failed => text.push_str("[FAILED]\n"),
            NodePosition::Ahead => text.push_str("[PENDING]\n"),
        }
        if let NodePosition::Here { .. } = scene.node_position(&node.id) {
            let verify = match scene.manual.get(&node.id).and_then(|manual| manual.verify.as_ref()) {
                // A person does this check; the agent is shown nothing to check.
                Some(verify) if verify.kind == "manual" => String::new(),
                Some(verify) => format!("{}: {}", one_line(&verify.kind), one_line(&verify.value)),
                None => scene.verify_words(node),
            };
            scene.write_instructions(&mut text, node, ("    ", "Hint"), &verify);
        }
    }
    let (own, held) = scene.steps_here();
    if !own.is_empty() {
        let words = step_words(&own);
        text.push_str(&format!("\nExecute {words} now. Do not skip ahead. Verify before proceeding.\n"));
    } else if !held.is_empty() {
        text.push_str(&format!("\n{}\n", wait_words(&held)));
    }
    text
}

fn workflow(scene: &Scene<'_>) -> String {
    let mut text = format!("[WORKFLOW: {}]\n", one_line(scene.plan));
    let live: Vec<&Node> = scene.graph.nodes().iter().filter(|node| scene.is_here(&node.id)).collect();
    let mut path = scene.path();
    // Old steps are left out; steps under way are not.
    let skipped = path.len().saturating_sub(PATH_MAX);
    path.drain(..skipped);
    if skipped > 0 || scene.is_cut {
        path.insert(0, "…".to_owned());
    }
    match live.as_slice() {
        [only] => {
            path.push(scene.node_status(only));
            text.push_str(&format!("  {}\n", path.join(" → ")));
            scene.write_node(&mut text, only);
        }
        several => {
            if !path.is_empty() {
                text.push_str(&format!("  {}\n", path.join(" → ")));
            }
            for node in several {
                text.push_str(&format!("  {}\n", scene.node_status(node)));
                scene.write_node(&mut text, node);
            }
        }
    }
    let is_own =
        |node: &&&Node| !matches!(scene.node_position(&node.id), NodePosition::Here { is_held: true });
    match live.iter().filter(is_own).count() {
        0 if live.is_empty() => {}
        0 => text.push_str("\nA person is asked. Wait for the answer.\n"),
        1 => text.push_str("\nExecute the current step. Do not skip ahead.\n"),
        _ => text.push_str("\nExecute the current steps. Do not skip ahead.\n"),
    }
    text
}

/// Where a node stands, as far as the agent is concerned.
enum NodePosition {
    Ahead,
    Here { is_held: bool },
    Done,
    Failed,
}

impl Scene<'_> {
    fn record(&self, id: &NodeId) -> Option<&Record> {
        self.run.records().get(id)
    }

    fn node_position(&self, id: &NodeId) -> NodePosition {
        match self.record(id).map(|record| &record.state) {
            None | Some(NodeState::Pending) => NodePosition::Ahead,
            Some(NodeState::Held { .. }) => NodePosition::Here { is_held: true },
            Some(
                NodeState::Ready
                | NodeState::Saving { .. }
                | NodeState::Branching
                | NodeState::Nested { .. }
                | NodeState::Rehearsing
                | NodeState::Working { .. }
                | NodeState::Resting { .. }
                | NodeState::Checking { .. },
            ) => NodePosition::Here { is_held: false },
            Some(NodeState::Settled { outcome }) => match outcome {
                Outcome::Passed | Outcome::Waived | Outcome::Warned => NodePosition::Done,
                // A step that was left out did not succeed (H-34).
                Outcome::Failed | Outcome::Skipped => NodePosition::Failed,
            },
        }
    }

    fn is_here(&self, id: &NodeId) -> bool {
        matches!(self.node_position(id), NodePosition::Here { .. })
    }

    /// Returns the numbers of the steps that are the agent's now, and of those that wait for a person.
    fn steps_here(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut own, mut held) = (Vec::new(), Vec::new());
        for (number, node) in self.graph.numbered_steps() {
            match self.node_position(&node.id) {
                NodePosition::Here { is_held: false } => own.push(number),
                NodePosition::Here { is_held: true } => held.push(number),
                NodePosition::Ahead | NodePosition::Done | NodePosition::Failed => {}
            }
        }
        (own, held)
    }

    /// Writes what is to be done at a node; lines of which nothing is known are left out (H-42).
    fn write_instructions(&self, text: &mut String, node: &Node, (indent, hint): (&str, &str), verify: &str) {
        let manual = self.manual.get(&node.id);
        let own = |field: fn(&Manual) -> &Option<String>| manual.and_then(|manual| field(manual).as_deref());
        let action = own(|manual| &manual.action).or_else(|| prompt(node)).unwrap_or_default();
        let tool = own(|manual| &manual.tool).unwrap_or_default();
        let words = own(|manual| &manual.hint).unwrap_or_default();
        for (name, value) in [("Action", action), ("Tool", tool), (hint, words), ("Verify", verify)] {
            let value = one_line(value);
            if !value.is_empty() {
                text.push_str(&format!("{indent}{name}: {value}\n"));
            }
        }
    }

    /// Returns the check that shows that a node is done: its source's, else its contract.
    fn verify_words(&self, node: &Node) -> String {
        match self.manual.get(&node.id).and_then(|manual| manual.verify.as_ref()) {
            Some(verify) => match verify.kind.as_str() {
                "any_output" => "any non-empty output".to_owned(),
                "exit_code_zero" => "exit code 0".to_owned(),
                "manual" => "a person confirms it".to_owned(),
                "output_contains" => format!("the output contains \"{}\"", verify.value),
                "output_not_contains" => format!("the output does not contain \"{}\"", verify.value),
                "file_exists" => format!("the file {} exists", verify.value),
                other => format!("{other}: {}", verify.value),
            },
            None => node.gated().map(|gated| contract_words(gated.contract)).unwrap_or_default(),
        }
    }

    /// Returns the nodes that were entered and are over, in the order of the run, each with how that went.
    fn path(&self) -> Vec<String> {
        let mut path: Vec<(&NodeId, Option<Outcome>)> = Vec::new();
        let mut newest: BTreeMap<&NodeId, usize> = BTreeMap::new();
        for fact in self.history {
            if let Fact::NodeEntered { node, .. } = fact {
                newest.insert(node, path.len());
                path.push((node, None));
            }
            if let Fact::NodeSettled { node, outcome, .. } = fact
                && let Some((_, last)) = newest.get(node).and_then(|at| path.get_mut(*at))
            {
                *last = Some(*outcome);
            }
        }
        let mut told: Vec<String> = Vec::new();
        for (at, (node, outcome)) in path.into_iter().enumerate() {
            // Where it is now stands at the end.
            if newest.get(node) == Some(&at) && self.is_here(node) {
                continue;
            }
            let is_quiet = self.graph.node(node).is_none_or(Node::is_routing);
            let mark = match outcome {
                Some(Outcome::Passed | Outcome::Waived | Outcome::Warned) => "[DONE]",
                Some(Outcome::Skipped) => "[SKIPPED]",
                Some(Outcome::Failed) => "[FAILED]",
                None if is_quiet => "[DONE]",
                None => "[LEFT]",
            };
            told.push(format!("{} {mark}", self.name(node)));
        }
        told
    }

    fn node_status(&self, node: &Node) -> String {
        let name = self.name(&node.id);
        let held = if matches!(self.node_position(&node.id), NodePosition::Here { is_held: true }) {
            ", a person is asked"
        } else {
            ""
        };
        match (self.record(&node.id), node.gated()) {
            (Some(record), Some(gated)) => {
                let tally = record.tally;
                let all = u32::from(gated.max_retries) + u32::from(tally.granted) + 1;
                let at = (u32::from(tally.failed) + 1).min(all);
                format!("{name} << CURRENT (attempt {at}/{all}{held})")
            }
            _ if held.is_empty() => format!("{name} << CURRENT"),
            _ => format!("{name} << CURRENT (a person is asked)"),
        }
    }

    /// Writes what is to be done at a node, and what follows from it.
    fn write_node(&self, text: &mut String, node: &Node) {
        self.write_instructions(text, node, ("    ", "Hint"), &self.verify_words(node));
        let edges = self.graph.edges_from(&node.id);
        let is_choice = matches!(node.kind, NodeKind::Human(_));
        for edge in edges.iter().filter(|edge| matches!(edge.on, On::Success | On::Always)) {
            let occasion = match (&edge.label, &edge.when) {
                (Some(label), None) if is_choice => format!("On \"{}\"", one_line(label)),
                (_, Some(when)) => format!("On success, if {}", one_line(&when.to_string())),
                (_, None) => "On success".to_owned(),
            };
            text.push_str(&format!("    {occasion} → {}\n", self.target(&edge.to)));
        }
        let Some(gated) = node.gated() else { return };
        let retry = edges.iter().find(|edge| edge.on == On::Retry);
        if gated.max_retries > 0 {
            let target =
                retry.map_or_else(|| format!("retry {}", self.name(&node.id)), |edge| self.target(&edge.to));
            text.push_str(&format!("    On fail (retries left) → {target}\n"));
        }
        let failing = Signal::Exhausted.conditions_in_order();
        let exhausted: Vec<&Edge> = failing
            .iter()
            .flat_map(|on| edges.iter().filter(move |edge| edge.on == *on && *on != On::Always))
            .collect();
        for edge in &exhausted {
            let when = edge.when.as_ref().map(|when| format!(", if {}", one_line(&when.to_string())));
            text.push_str(&format!(
                "    On fail (exhausted{}) → {}\n",
                when.unwrap_or_default(),
                self.target(&edge.to)
            ));
        }
        if exhausted.is_empty() && !edges.iter().any(|edge| edge.on == On::Always) {
            text.push_str("    On fail (exhausted) → a person is asked\n");
        }
    }

    /// Names where an edge leads.
    fn target(&self, id: &NodeId) -> String {
        match self.graph.node(id).map(|node| &node.kind) {
            Some(NodeKind::Escalate { reason: Some(reason), .. }) => {
                format!("escalate: {}", one_line(reason))
            }
            Some(NodeKind::Escalate { reason: None, .. }) => "escalate".to_owned(),
            Some(_) | None => self.name(id),
        }
    }

    /// Names a node: as it is named in its source, where that says something; the number and title of a step in markdown.
    fn name(&self, id: &NodeId) -> String {
        match self.graph.node(id) {
            Some(node) if node.step().is_some_and(|step| step.to_string() == id.as_str()) => {
                format!("{id}. {}", one_line(&node.title))
            }
            Some(_) | None => one_line(id.as_str()),
        }
    }
}

fn prompt(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Task(task) => Some(&task.prompt),
        NodeKind::Human(question) => Some(&question.text),
        NodeKind::Call(call) => Some(&call.contract.command),
        NodeKind::Decision(choice) => choice.description.as_deref(),
        NodeKind::Escalate { reason, .. } => reason.as_deref(),
        NodeKind::SubPlan(plan) => Some(&plan.path),
        NodeKind::Start
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::Join(_)
        | NodeKind::Exit { .. } => None,
    }
}

fn step_words(numbers: &[u32]) -> String {
    match numbers {
        [] => String::new(),
        [only] => format!("Step {only}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("Steps {} and {last}", first.join(", "))
        }
    }
}

fn wait_words(held: &[u32]) -> String {
    let verb = if held.len() == 1 { "waits" } else { "wait" };
    format!("{} {verb} for a person. Do nothing until they answer.", step_words(held))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
