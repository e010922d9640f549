//! Writes a graph as a plan in markdown, and says what a plan has no words for.

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::condition::{Clause, Condition, Key, Test};
use planctl_engine::{On, WorkKind};

use super::resolve::ROLE;
use super::tree::{EdgeTree, Kind, Library, NodeTree, Workflow};
use super::{folders, sub_plans};
use crate::syntax::shell::joined;
use crate::syntax::source::Source;
use crate::syntax::written::Written;
use crate::text::{Span, Spanned, yaml_text};
use crate::tree::OnFail;
use crate::tree::parse::{kind_word, parse};

/// A graph as a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Markdown {
    /// The plan's text.
    pub text: String,
    /// The parts of the graph that the plan does not say, in sentences for people.
    pub lost: Vec<String>,
}

/// Attributes that are no fields of one line or lists: they are written elsewhere, or mean nothing outside of DOT.
const ELSEWHERE: [&str; 19] = [
    "label",
    "shape",
    "type",
    "class",
    "checkpoint",
    "prompt",
    "escalate",
    "tool_command",
    "command",
    "contract",
    "expect_exit",
    "judge",
    "guard",
    "work",
    "result",
    "verify.value",
    "stack.child_dotfile",
    "stack.child_workdir",
    "stack.child_approval",
];

/// Writes a graph as a plan in markdown.
pub fn to_markdown(workflow: &Workflow) -> Markdown {
    let mut lost = BTreeSet::new();
    let numbers = Numbers::of(workflow);
    let mut text = String::from("---\ntype: plan\nstatus: draft\nowner: orchestrator\n");
    text.push_str(&library_keys(&workflow.library));
    text.push_str("---\n\n");
    text.push_str(&format!("# {}\n", one_line(workflow.title(), "Plan")));
    let said = &workflow.attributes;
    let fields = [
        ("Context", "goal", said.goal.text()),
        ("Budget", "budget", said.budget.text()),
        ("Priority", "priority", said.priority.text()),
        ("max_visits", "max_visits", said.max_visits.text()),
        ("stale_after", "stale_after", said.stale_after.text()),
        ("ask_deadline", "ask_deadline", said.ask_deadline.text()),
        ("parallel", "max_parallel", said.max_parallel.text()),
        ("red_first", "red_first", said.red_first.text()),
    ];
    for (field, _, said) in fields {
        if let Some(said) = said {
            text.push_str(&format!("\n**{field}:** {}\n", one_line(&said.value, "")));
        }
    }
    let is_written = |key: &str| {
        matches!(key, "label" | "parallel_edges" | "stack.child_dotfile" | "stack.child_workdir")
            || fields.iter().any(|(_, written, _)| *written == key)
    };
    for (key, _) in said.iter().filter(|(key, _)| !is_written(key)) {
        lost.insert(format!("`{key}` of the graph"));
    }
    // A fork is no step: its branches follow from where a step leads.
    for fork in workflow.nodes.iter().filter(|node| node.kind.value == Kind::Fork) {
        let said = fork.attributes.iter().filter(|(key, _)| !ELSEWHERE.contains(key) && *key != "workspace");
        lost.extend(said.map(|(key, _)| format!("`{key}` of `{}`", fork.id.value)));
    }
    text.push_str("\n## Steps\n");
    for node in workflow.nodes.iter().filter(|node| numbers.0.contains_key(node.id.value.as_str())) {
        step(workflow, node, &numbers, &mut text, &mut lost);
    }
    let flow = flow(workflow, &numbers, &mut lost);
    if !flow.is_empty() {
        text.push_str(&format!("\n## Flow\n\n{}\n", flow.join("\n")));
    }
    add_unsaid_edges(workflow, &numbers, &text, &mut lost);
    Markdown { text, lost: lost.into_iter().collect() }
}

/// Writes a plan's place in a library as lines of a frontmatter.
pub(crate) fn library_keys(library: &Library) -> String {
    let Library { id, domains, triggers, trigger_threshold, stale_after_turns, then } = library;
    let list = |list: &[Spanned<String>]| {
        let entries: Vec<String> = list.iter().map(|entry| yaml_text(&entry.value)).collect();
        (!entries.is_empty()).then(|| format!("[{}]", entries.join(", ")))
    };
    let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| yaml_text(&text.value));
    let number = |number: &Option<Spanned<u32>>| number.as_ref().map(|number| number.value.to_string());
    let keys = [
        ("library", text(id)),
        ("domains", list(domains)),
        ("triggers", list(triggers)),
        ("trigger_threshold", number(trigger_threshold)),
        ("stale_after_turns", number(stale_after_turns)),
        ("then", text(then)),
    ];
    keys.into_iter().filter_map(|(key, value)| Some(format!("{key}: {}\n", value?))).collect()
}

/// Returns the number of each node that is a step in markdown.
pub(crate) fn step_numbers(workflow: &Workflow) -> BTreeMap<String, String> {
    Numbers::of(workflow).0.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

/// The numbers of the nodes that are steps; forks are none, since every way that is open is taken.
struct Numbers<'w>(BTreeMap<&'w str, String>);

impl<'w> Numbers<'w> {
    fn of(workflow: &'w Workflow) -> Numbers<'w> {
        let is_step = |node: &&NodeTree| !matches!(node.kind.value, Kind::Start | Kind::Exit | Kind::Fork);
        let steps: Vec<&NodeTree> = workflow.nodes.iter().filter(is_step).collect();
        let own: Vec<Option<u32>> = steps.iter().map(|node| node.id.value.parse().ok()).collect();
        let is_numbered = own.iter().all(Option::is_some) && own.windows(2).all(|pair| pair[0] < pair[1]);
        let number = |at: usize, node: &NodeTree| {
            if is_numbered { node.id.value.clone() } else { (at + 1).to_string() }
        };
        Numbers(
            steps.iter().enumerate().map(|(at, node)| (node.id.value.as_str(), number(at, node))).collect(),
        )
    }

    // Returns how the prose names a node.
    fn name(&self, workflow: &Workflow, name: &str) -> Option<String> {
        if let Some(number) = self.0.get(name) {
            return Some(number.clone());
        }
        let node = workflow.nodes.iter().find(|node| node.id.value == name)?;
        let end = if node.is_failed_exit() { "failed" } else { "done" };
        match node.kind.value == Kind::Start {
            true => Some("start".to_owned()),
            false => (node.kind.value == Kind::Exit).then(|| end.to_owned()),
        }
    }

    fn condition(&self, condition: &Condition) -> Condition {
        let mut condition = condition.clone();
        for clause in &mut condition.clauses {
            if let Key::Step { node, .. } = &mut clause.key
                && let Some(number) = self.0.get(node.as_str())
            {
                node.clone_from(number);
            }
        }
        condition
    }
}

fn step(
    workflow: &Workflow,
    node: &NodeTree,
    numbers: &Numbers<'_>,
    text: &mut String,
    lost: &mut BTreeSet<String>,
) {
    let number = numbers.0.get(node.id.value.as_str()).map_or("", String::as_str);
    text.push_str(&format!("\n### {number}. {}\n\n", one_line(node.title(), "Step")));
    let kind = node.kind.value;
    let said = &node.attributes;
    if let Some(word) = type_word(node) {
        text.push_str(&format!("**type:** {word}\n"));
    }
    // A plan names the role; a graph may leave it out.
    if kind == Kind::Task && !said.target.is_said() {
        text.push_str(&format!("**target:** {ROLE}\n"));
    }
    // In the order of planctl's form.
    let fields = [
        ("target", said.target.text()),
        ("needs", said.needs.text()),
        ("when", said.when.text()),
        ("workspace", said.workspace.text()),
        ("timeout", said.timeout.text()),
    ];
    // `block` of a library (H-33) stands for the policy of a plan that says none.
    let on_fail = said.on_fail.text().filter(|_| !said.on_fail.is(&OnFail::default()));
    // A decision of DOT and JSON describes itself.
    let prompt =
        if kind == Kind::Decision && !said.prompt.is_said() { &said.description } else { &said.prompt };
    let own_words = said.type_name.text().filter(|word| Kind::from_word(&word.value).is_none());
    lost.extend(own_words.map(|_| format!("`type` of `{}`", node.id.value)));
    let fields_after = [
        ("judge_by", said.judge_by.text()),
        ("on_fail", on_fail),
        ("max_retries", said.max_retries.text()),
        ("max_visits", said.max_visits.text()),
        ("contract_timeout", said.contract_timeout.text()),
        ("red_first", said.red_first.text()),
        ("min_tests", said.min_tests.text()),
        ("ask_deadline", said.ask_deadline.text()),
    ];
    let lists = [
        ("subscriptions", said.subscriptions.entry_words()),
        ("changes", said.changes.entry_words()),
        ("protects", said.protects.entry_words()),
        ("locks", said.locks.entry_words()),
    ];
    write_fields(&fields, text);
    for (key, entries) in lists.iter().filter(|(_, entries)| !entries.is_empty()) {
        text.push_str(&format!("**{key}:**\n"));
        entries.iter().for_each(|entry| text.push_str(&format!("- {entry}\n")));
    }
    if kind == Kind::SubPlan {
        sub_plan_fields(workflow, node, text);
    }
    let told = if kind == Kind::Escalate { &said.escalate } else { prompt };
    let task = node.task.as_ref().filter(|_| matches!(kind, Kind::Task | Kind::Human)).or(told.text());
    if let Some(task) = task {
        text.push_str(&format!("\n**task:**\n{}\n", set_apart(task.value.trim())));
    }
    script(node, text, lost);
    if let Some(judge) = said.judge.text() {
        text.push_str(&format!("\n**judge:**\n{}\n\n", set_apart(judge.value.trim())));
    }
    if let Some(guard) = said.guard.value() {
        text.push_str(&format!("**guard:** {}\n", if *guard { "yes" } else { "no" }));
    }
    write_fields(&fields_after, text);
    let is_written = |key: &str| {
        ELSEWHERE.contains(&key)
            || fields.iter().chain(&fields_after).any(|(written, _)| *written == key)
            || lists.iter().any(|(written, _)| *written == key)
    };
    for (key, _) in said.iter().filter(|(key, _)| !is_written(key)) {
        lost.insert(format!("`{key}` of `{}`", node.id.value));
    }
}

/// Returns the type of a step, where it is not the usual one.
fn type_word(node: &NodeTree) -> Option<&'static str> {
    let work = node.attributes.work.value().copied();
    // A reviewer's work is a review where nothing else is said.
    let is_usual = node.kind.value == Kind::Task
        && work.is_none_or(|work| work == WorkKind::Code && !node.attributes.target.is_said());
    (!is_usual).then(|| kind_word(node.kind.value, work.unwrap_or(WorkKind::Code)))
}

/// Writes what a sub-plan carries out; a plan in markdown has no such settings for all of its sub-plans.
fn sub_plan_fields(workflow: &Workflow, node: &NodeTree, text: &mut String) {
    let fields = [
        ("plan", sub_plans::file(workflow, node).map(|file| file.value.clone())),
        ("folder", folders::folder(workflow, node)),
        ("approval", node.attributes.child_approval.text().map(|approval| approval.value.clone())),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            text.push_str(&format!("**{name}:** {}\n", one_line(&value, "")));
        }
    }
}

/// Returns a text for people in which a plan finds no fields, headings or comments of its own.
fn set_apart(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let inner = line.trim_start();
        let mark = inner.trim_start_matches(['`', '~']);
        let mark = &inner[..inner.len() - mark.len()];
        let is_taken = fence.is_none()
            && (inner.starts_with(['#', '=']) || inner.starts_with("**") || inner.starts_with("<!--"));
        match fence {
            None if mark.len() >= 3 => fence = Some(mark),
            Some(open) if mark.starts_with(open) && inner.len() == mark.len() => fence = None,
            _ => {}
        }
        lines.push(if is_taken { format!("\\{line}") } else { line.to_owned() });
    }
    lines.join("\n")
}

fn write_fields(fields: &[(&str, Option<&Spanned<String>>)], text: &mut String) {
    for (key, said) in fields {
        if let Some(said) = said {
            text.push_str(&format!("**{key}:** {}\n", one_line(&said.value, "")));
        }
    }
}

fn script(node: &NodeTree, text: &mut String, lost: &mut BTreeSet<String>) {
    let own = [&node.attributes.tool_command, &node.attributes.command].into_iter().filter_map(Written::text);
    let contracts = node.contracts.iter().map(|contract| &contract.command);
    let commands: Vec<&str> = match &node.contract {
        Some(contract) => vec![contract.command.trim()],
        None => contracts.chain(own).map(|command| command.value.trim()).collect(),
    };
    if commands == ["none"] {
        lost.insert(format!("`{}` is confirmed by a person, not by a contract", node.id.value));
        return;
    }
    if commands.is_empty() {
        return;
    }
    let expected = node.attributes.expect_exit.value().copied().unwrap_or(0);
    let script = joined(&commands.iter().map(|command| (*command, expected)).collect::<Vec<_>>());
    let mut fence = "```".to_owned();
    while script.contains(&fence) {
        fence.push('`');
    }
    let exit = node.attributes.expect_exit.text().map_or("0", |code| code.value.as_str());
    text.push_str(&format!("\n**contract:**\n{fence}bash\n{script}\n{fence}\nexit_code == {exit}\n"));
}

fn flow(workflow: &Workflow, numbers: &Numbers<'_>, lost: &mut BTreeSet<String>) -> Vec<String> {
    let workflow = &one_edge_each(&say_outcomes(workflow), lost);
    let flat_edges = through_forks(workflow);
    let is_fork =
        |name: &str| workflow.nodes.iter().any(|node| node.id.value == name && node.kind.value == Kind::Fork);
    for edge in workflow.edges.iter().filter(|edge| edge.label.is_some() && is_fork(&edge.to.value)) {
        lost.insert(format!("the label of the edge from `{}` to `{}`", edge.from.value, edge.to.value));
    }
    let leads_onward = |edge: &EdgeTree| matches!(edge.on.value, On::Success | On::Always) && edge.is_plain();
    let mut leading: BTreeMap<&str, usize> = BTreeMap::new();
    for (from, _, edge) in &flat_edges {
        *leading.entry(from).or_default() += usize::from(leads_onward(edge));
    }
    for node in &workflow.nodes {
        let is_told = matches!(
            node.kind.value,
            Kind::Decision | Kind::Escalate | Kind::Exit | Kind::Fork | Kind::Start
        );
        if !is_told && leading.get(node.id.value.as_str()) == Some(&0) {
            lost.insert(format!("that nothing follows `{}` where no condition holds", node.id.value));
        }
    }
    let order: Vec<&NodeTree> = workflow
        .nodes
        .iter()
        .filter(|node| numbers.0.contains_key(node.id.value.as_str()) && node.kind.value != Kind::Escalate)
        .collect();
    let mut implied: BTreeSet<(String, String)> = BTreeSet::new();
    let names: Vec<String> = order.iter().filter_map(|node| numbers.name(workflow, &node.id.value)).collect();
    let chain =
        std::iter::once("start".to_owned()).chain(names).chain(["done".to_owned()]).collect::<Vec<_>>();
    implied.extend(chain.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    let needs: BTreeSet<(String, String)> = order
        .iter()
        .flat_map(|node| {
            let needs = node.attributes.needs.value().into_iter().flatten();
            needs.map(|need| (need.clone(), node.id.value.clone()))
        })
        .collect();
    let has_needs = !needs.is_empty();
    let is_decision = |node: &&NodeTree| node.kind.value == Kind::Decision;
    let decisions: BTreeSet<&str> =
        workflow.nodes.iter().filter(is_decision).map(|node| node.id.value.as_str()).collect();
    let mut leaving: BTreeMap<&str, usize> = BTreeMap::new();
    for (from, ..) in &flat_edges {
        *leaving.entry(from).or_default() += 1;
    }
    let mut lines = Vec::new();
    let places = workflow.places();
    for (from, to, edge) in &flat_edges {
        let ends = (numbers.name(workflow, from), numbers.name(workflow, to));
        let (Some(first), Some(last)) = ends else {
            lost.insert(format!("the edge from `{from}` to `{to}`"));
            continue;
        };
        for (what, is_there) in [("weight", edge.weight != 0), ("restart", edge.loop_restart)] {
            if is_there {
                lost.insert(format!("the {what} of the edge from `{from}` to `{to}`"));
            }
        }
        let is_plain_success = edge.on.value == On::Success && edge.is_plain();
        let is_only = leading.get(from.as_str()).copied().unwrap_or(0) == 1;
        let is_implied = implied.contains(&(first.clone(), last.clone())) && is_only;
        let is_needed =
            needs.contains(&(from.clone(), to.clone())) || (has_needs && last == "done" && is_only);
        // A decision of which the prose tells has no other ways than its lines.
        let says_all =
            decisions.contains(from.as_str()) && leaving.get(from.as_str()).is_some_and(|count| *count > 1);
        let is_success_meant = workflow.is_meant_for_success(edge, &places);
        let is_unsaid = (is_implied || is_needed) && !says_all && !is_success_meant;
        if is_plain_success && is_unsaid && edge.label.is_none() {
            continue;
        }
        let on = match (edge.on.value, edge.is_plain()) {
            (On::Success, true) if !is_success_meant => String::new(),
            (On::Always, false) => String::new(),
            (on, _) => format!(" on {}", on.as_str()),
        };
        let label = edge.label.as_ref().map(|label| quoted(&label.value)).unwrap_or_default();
        let condition = edge.condition.as_ref().filter(|_| !edge.is_plain());
        let condition = condition
            .map(|condition| format!(" if {}", numbers.condition(&condition.value)))
            .unwrap_or_default();
        lines.push(format!(
            "- {first} -> {last}{label}{on}{}",
            one_line(&condition, "").replacen("if", " if", 1)
        ));
    }
    lines
}

// Of several ways without a condition one is followed in DOT and JSON, and all of them in a plan. The one that is followed
// where nobody says another stays; one with a label is followed where the worker names it; others have no words.
fn one_edge_each(workflow: &Workflow, lost: &mut BTreeSet<String>) -> Workflow {
    let mut one = workflow.clone();
    if workflow.attributes.parallel_edges.is(&true) {
        return one;
    }
    let is_asked = |kind: Kind| matches!(kind, Kind::Fork | Kind::Human | Kind::Escalate);
    let mut groups: BTreeMap<&str, Vec<&EdgeTree>> = BTreeMap::new();
    for node in workflow.nodes.iter().filter(|node| !is_asked(node.kind.value)) {
        groups.insert(&node.id.value, Vec::new());
    }
    for edge in &workflow.edges {
        if edge.on.value == On::Success
            && edge.is_plain()
            && let Some(group) = groups.get_mut(edge.from.value.as_str())
        {
            group.push(edge);
        }
    }
    let mut dropped: Vec<EdgeTree> = Vec::new();
    for group in groups.values().filter(|group| group.len() > 1) {
        let weighed = |edge: &&&EdgeTree| (std::cmp::Reverse(edge.weight), edge.to.value.clone());
        let Some(first) = group.iter().min_by_key(weighed) else { continue };
        for edge in group.iter().filter(|edge| !std::ptr::eq(**edge, *first)) {
            dropped.push((*edge).clone());
        }
    }
    one.edges.retain_mut(|edge| {
        if !dropped.contains(edge) {
            return true;
        }
        let Some(label) = &edge.label else {
            lost.insert(format!("the edge from `{}` to `{}`", edge.from.value, edge.to.value));
            return false;
        };
        let test = Test::Is(label.value.clone());
        let condition = Condition { clauses: vec![Clause { key: Key::PreferredLabel, test }] };
        edge.condition = Some(Spanned::new(condition, label.span));
        edge.on.value = On::Always;
        edge.label = None;
        true
    });
    one
}

// Finds the ways that the plan's text lost: it is read again and compared.
fn add_unsaid_edges(workflow: &Workflow, numbers: &Numbers<'_>, text: &str, lost: &mut BTreeSet<String>) {
    let source = Source::new("plan.md", text);
    let (tree, _) = parse(&source);
    let read = super::plan::workflow(&source, &tree, &mut Vec::new());
    let there: BTreeSet<(&str, &str)> =
        read.edges.iter().map(|edge| (edge.from.value.as_str(), edge.to.value.as_str())).collect();
    for (from, to, _) in through_forks(workflow) {
        let ends = (numbers.name(workflow, &from), numbers.name(workflow, &to));
        if let (Some(first), Some(last)) = ends
            && !there.contains(&(first.as_str(), last.as_str()))
        {
            lost.insert(format!("the edge from `{from}` to `{to}`"));
        }
    }
}

// Says a condition on the outcome alone as the outcome, where no other edge of its node competes: one with a condition goes
// before those without.
fn say_outcomes(workflow: &Workflow) -> Workflow {
    let mut said = workflow.clone();
    let mut competing: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeSet<(&str, On)> = BTreeSet::new();
    for edge in &workflow.edges {
        let on = outcome_alone(edge).unwrap_or(edge.on.value);
        let on = if on == On::Exhaust { On::Fail } else { on };
        let is_known = !seen.insert((&edge.from.value, on)) && !matches!(on, On::Always | On::Retry);
        if is_known || (outcome_alone(edge).is_none() && !edge.is_plain()) {
            competing.insert(&edge.from.value);
        }
    }
    let has_then =
        |node: &&NodeTree| node.attributes.on_fail.value().is_some_and(|policy| policy.then.is_some());
    competing.extend(workflow.nodes.iter().filter(has_then).map(|node| node.id.value.as_str()));
    for edge in said.edges.iter_mut().filter(|edge| !competing.contains(edge.from.value.as_str())) {
        if let Some(on) = outcome_alone(edge) {
            // Its condition says the outcome, so it is no bare edge.
            edge.on = Spanned::new(on, Span::new(edge.span.end, edge.span.end + 1));
            edge.condition = None;
        }
    }
    said
}

fn outcome_alone(edge: &EdgeTree) -> Option<On> {
    let clauses = edge.condition.as_ref().map(|condition| condition.value.clauses.as_slice());
    match (edge.on.value, clauses) {
        (On::Always, Some([Clause { key: Key::Outcome, test: Test::Is(word) }])) => {
            [On::Success, On::Fail].into_iter().find(|on| on.as_str() == *word)
        }
        (_, _) => None,
    }
}

// Returns the edges with forks taken out: an edge to a fork leads to each of its branches.
fn through_forks(workflow: &Workflow) -> Vec<(String, String, EdgeTree)> {
    let forks: BTreeSet<&str> = workflow
        .nodes
        .iter()
        .filter(|node| node.kind.value == Kind::Fork)
        .map(|node| node.id.value.as_str())
        .collect();
    let mut branches: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in workflow.edges.iter().filter(|edge| forks.contains(edge.from.value.as_str())) {
        branches.entry(edge.from.value.as_str()).or_default().push(edge.to.value.as_str());
    }
    let mut flat_edges = Vec::new();
    for edge in workflow.edges.iter().filter(|edge| !forks.contains(edge.from.value.as_str())) {
        match branches.get(edge.to.value.as_str()) {
            Some(branches) => {
                // One label for several edges would be one option.
                let edge = EdgeTree { label: None, ..edge.clone() };
                flat_edges.extend(
                    branches
                        .iter()
                        .take(100)
                        .map(|to| (edge.from.value.clone(), (*to).to_owned(), edge.clone())),
                );
            }
            None => flat_edges.push((edge.from.value.clone(), edge.to.value.clone(), edge.clone())),
        }
    }
    flat_edges
}

fn quoted(label: &str) -> String {
    format!(" \"{}\"", one_line(label, "").replace('\\', "\\\\").replace('"', "\\\""))
}

fn one_line(text: &str, otherwise: &str) -> String {
    let line = crate::text::one_line(text);
    if line.is_empty() { otherwise.to_owned() } else { line }
}
