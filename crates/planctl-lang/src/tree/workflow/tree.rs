//! A graph as its author wrote it, in any language: nodes, edges and their attributes, each with its place.

use std::collections::BTreeMap;

use planctl_engine::condition::{Clause, Condition, Key, Test};
use planctl_engine::{Budget, On, Priority, Subscription, WorkKind};
use planctl_glob::{Glob, is_glob};

use crate::diagnostic::StepName;
use crate::syntax::dot::{EdgeAttributes, GraphAttributes, NodeAttributes};
use crate::syntax::written::{ExitResult, RetryPolicy, VerifyType, Written};
use crate::text::paths::clean;
use crate::text::{Span, Spanned};
use crate::tree::ContractTree;

/// A graph as read; an unreadable part is absent here and named by a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Workflow {
    /// Its name among others: the plan's key in a library, the digraph's name.
    pub name: Option<Spanned<String>>,
    /// Its title, for people.
    pub title: Option<Spanned<String>>,
    /// The node where a run begins: its start node, or the node that the source names (G-03).
    pub start: Option<Spanned<String>>,
    /// Its attributes.
    pub attributes: GraphAttributes,
    /// The most that a run may use.
    pub budget: Option<Spanned<Budget>>,
    /// Which plan's steps go first.
    pub priority: Option<Spanned<Priority>>,
    /// Its place in a library.
    pub library: Library,
    /// The nodes, in the order of the text.
    pub nodes: Vec<NodeTree>,
    /// The steps that stand for several: they are judged as the others, and are no part of the graph until they are written out.
    pub templates: Vec<NodeTree>,
    /// The edges, in the order of the text.
    pub edges: Vec<EdgeTree>,
}

/// A plan's place in a library: when an entry is picked (rows H-01 to H-06), which one a plan was made of, what follows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Library {
    /// The entry that the plan was made of.
    pub id: Option<Spanned<String>>,
    /// The domains it is for.
    pub domains: Vec<Spanned<String>>,
    /// The words that a message must contain.
    pub triggers: Vec<Spanned<String>>,
    /// How many of them.
    pub trigger_threshold: Option<Spanned<u32>>,
    /// After how many turns without a transition it expires.
    pub stale_after_turns: Option<Spanned<u32>>,
    /// The plan that gets a run when this one's is done (H-50): an entry of the library, or a path.
    pub then: Option<Spanned<String>>,
}

/// How many turns an entry of a library of JSON may go on without getting further, where it does not say (H-17).
const TURNS_UNTIL_STALE: u32 = 10;

impl Library {
    /// Returns after how many turns without getting further a person is asked: an entry of JSON has a limit in any case.
    pub(crate) fn turns_until_stale(&self, is_markdown: bool) -> Option<u32> {
        let is_entry = !is_markdown && (!self.domains.is_empty() || !self.triggers.is_empty());
        let said = self.stale_after_turns.as_ref().map(|turns| turns.value);
        said.or(is_entry.then_some(TURNS_UNTIL_STALE))
    }

    /// Returns the place of a plan that was made of an entry.
    pub fn made_of(entry: &str) -> Library {
        Library { id: Some(Spanned::new(entry.to_owned(), Span::default())), ..Library::default() }
    }

    /// Returns the place of an entry that is found by these words.
    pub fn found_by(domains: &[String], triggers: &[String], threshold: Option<u32>) -> Library {
        let texts = |list: &[String]| {
            list.iter().map(|text| Spanned::new(text.clone(), Span::default())).collect::<Vec<_>>()
        };
        Library {
            domains: texts(domains),
            triggers: texts(triggers),
            trigger_threshold: threshold.map(|threshold| Spanned::new(threshold, Span::default())),
            ..Library::default()
        }
    }
}

/// Why a node or an edge is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    /// The author wrote it.
    #[default]
    Written,
    /// Steps follow each other as they stand in the text, from its beginning to its end.
    Order,
    /// Steps need others: where branches begin, and where they meet.
    Needs,
    /// A step may not apply.
    When,
    /// Branches of a graph meet at a node that is no join.
    Meeting,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeTree {
    /// Its name, unique in the graph.
    pub id: Spanned<String>,
    /// All of it.
    pub span: Span,
    /// Why it is there.
    pub origin: Origin,
    /// The kind of node, and the place that says so; the name's place where nothing does.
    pub kind: Spanned<Kind>,
    /// Its attributes.
    pub attributes: NodeAttributes,
    /// Its classes (D18, D19).
    pub classes: Vec<String>,
    /// The place of its step among those of the plan, if it is one.
    pub step: Option<usize>,
    /// The number of its step; a template of several has none.
    pub number: Option<u32>,
    /// The role that does its step, or whose rights its command has.
    pub role: Option<Spanned<String>>,
    /// The task of its step, as the worker or the person reads it.
    pub task: Option<Spanned<String>>,
    /// The script that the harness runs at its step.
    pub contract: Option<ContractTree>,
    /// The kind of an agent's work at its step, where the plan says it.
    pub work: Option<WorkKind>,
    /// Its contracts: `contract`, then `contract.NAME` by name; empty where none is said, and `none` where that is said.
    pub contracts: Vec<NamedContract>,
}

/// One of a node's contracts (DOT.md 2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedContract {
    /// The name, where there are several.
    pub name: Option<String>,
    /// The command.
    pub command: Spanned<String>,
}

/// The work of a node when it is entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Where a run begins (S1).
    Start,
    /// Work for an agent, then a gate (S3).
    Task,
    /// Routes by conditions, or by a command that the harness runs (S5).
    Decision,
    /// A person chooses one of its edges (S4, H1).
    Human,
    /// A command without an agent; its exit code decides (S7).
    Call,
    /// Records the state of the workspace.
    Checkpoint,
    /// Starts all its branches at once (S6).
    Fork,
    /// Waits for the branches of its fork (S6).
    Join,
    /// Raises the PACE level and asks that level's responder.
    Escalate,
    /// A run of another plan (S8).
    SubPlan,
    /// Ends the run (S2).
    Exit,
}

impl Kind {
    /// The kinds in the order that people are told them, each with its word in JSON, and those of the dialect of DOT (1.3).
    const WORDS: [(Kind, &'static str, &'static [&'static str]); 11] = [
        (Kind::Start, "start", &[]),
        (Kind::Task, "task", &["codergen", "code", "review", "box"]),
        (Kind::Decision, "decision", &["conditional"]),
        (Kind::Human, "human", &["wait.human"]),
        (Kind::Call, "call", &["tool"]),
        (Kind::Checkpoint, "checkpoint", &[]),
        (Kind::Fork, "fork", &["parallel"]),
        (Kind::Join, "join", &["parallel.fan_in"]),
        (Kind::Escalate, "escalate", &[]),
        (Kind::SubPlan, "sub_plan", &["stack.manager_loop", "sub-plan", "subplan", "plan"]),
        (Kind::Exit, "exit", &["end"]),
    ];

    /// Returns the words of all kinds as JSON has them.
    pub fn words() -> [&'static str; 11] {
        Kind::WORDS.map(|(_, word, _)| word)
    }

    /// Returns the word as JSON has it.
    pub fn as_str(self) -> &'static str {
        Kind::WORDS.into_iter().find(|(kind, ..)| *kind == self).map_or("", |(_, word, _)| word)
    }

    /// Returns the kind of this name, as JSON or as the dialect of DOT has it.
    pub fn from_word(word: &str) -> Option<Kind> {
        let is_word = |(_, own, others): &(Kind, &str, &[&str])| *own == word || others.contains(&word);
        Kind::WORDS.into_iter().find(is_word).map(|(kind, ..)| kind)
    }
}

/// A way from one node to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeTree {
    /// Where it leaves.
    pub from: Spanned<String>,
    /// Where it leads.
    pub to: Spanned<String>,
    /// All of it.
    pub span: Span,
    /// Why it is there.
    pub origin: Origin,
    /// For which outcomes it may be taken: success where a DOT edge says nothing, always where it has a condition.
    pub on: Spanned<On>,
    /// A further condition that must hold.
    pub condition: Option<Spanned<Condition>>,
    /// Its label, for people and workers.
    pub label: Option<Spanned<String>>,
    /// Which of several that fit is taken: the heaviest.
    pub weight: i64,
    /// Says that taking it begins a new epoch of the run (A19).
    pub loop_restart: bool,
    /// Its other attributes.
    pub attributes: EdgeAttributes,
}

impl EdgeTree {
    /// Makes an edge of which only the ends are known.
    pub fn new(from: Spanned<String>, to: Spanned<String>, span: Span, on: Spanned<On>) -> EdgeTree {
        EdgeTree {
            from,
            to,
            span,
            origin: Origin::Written,
            on,
            condition: None,
            label: None,
            weight: 0,
            loop_restart: false,
            attributes: EdgeAttributes::default(),
        }
    }

    /// Takes the attributes that mean the same in each language.
    pub(crate) fn say(&mut self, said: &EdgeAttributes) {
        self.weight = said.weight.value().copied().unwrap_or(0);
        self.loop_restart = said.loop_restart.is(&true);
        let (fidelity, thread_id) = (said.fidelity.clone(), said.thread_id.clone());
        self.attributes = EdgeAttributes { fidelity, thread_id, ..EdgeAttributes::default() };
    }

    /// Says whether it is for what failed: by its word, or by a condition that names the failure.
    pub fn is_for_failure(&self) -> bool {
        let clauses = self.condition.as_ref().map_or(&[][..], |condition| &condition.value.clauses);
        let names_failure = |clause: &Clause| {
            clause.key == Key::Outcome
                && match &clause.test {
                    Test::Is(word) => matches!(word.as_str(), "fail" | "retry"),
                    Test::IsNot(word) => word == "success",
                    Test::Truthy => false,
                }
        };
        match self.on.value {
            On::Fail | On::Retry | On::Exhaust => true,
            On::Success => false,
            On::Always => clauses.iter().any(names_failure),
        }
    }

    /// Says whether nothing but the outcome decides whether it is taken.
    pub fn is_plain(&self) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.value.is_always())
    }

    /// Says whether its author wrote neither an outcome nor a condition: then the outcome has no place of its own.
    pub fn is_bare(&self) -> bool {
        self.is_plain() && self.on.span == self.span
    }
}

impl NodeTree {
    /// Makes a node of which nothing is said yet.
    pub fn new(id: Spanned<String>, span: Span, kind: Spanned<Kind>) -> NodeTree {
        NodeTree {
            id,
            span,
            origin: Origin::Written,
            kind,
            attributes: NodeAttributes::default(),
            classes: Vec::new(),
            step: None,
            number: None,
            role: None,
            task: None,
            contract: None,
            work: None,
            contracts: Vec::new(),
        }
    }

    /// Returns the title of its step, which authors of markdown may leave empty.
    pub fn step_title(&self) -> &str {
        &self.attributes.label.raw().unwrap_or(&self.id).value
    }

    /// Names its step for a finding.
    pub(crate) fn step_name(&self) -> StepName {
        StepName { number: self.id.value.clone(), title: self.step_title().to_owned() }
    }

    /// Says whether its contract is meant to pass before the work, too.
    pub fn is_guard(&self) -> bool {
        self.attributes.guard.is(&true)
    }

    /// Returns the entries of `changes`, of which `none` is none.
    pub(crate) fn declared_changes(&self) -> impl Iterator<Item = &Spanned<String>> {
        let entries = self.attributes.changes.entries();
        let is_none = matches!(entries, [only] if only.value.eq_ignore_ascii_case("none"));
        entries.iter().filter(move |_| !is_none)
    }

    /// Returns the globs among the entries of `changes`; one that is none is a finding of its own.
    pub(crate) fn changed_globs(&self) -> impl Iterator<Item = Glob> {
        let globs = self.declared_changes().filter(|entry| is_glob(&entry.value));
        globs.filter_map(|entry| Glob::parse(&clean(&entry.value)).ok())
    }

    /// Returns the paths and globs of the `file:` subscriptions.
    pub fn subscribed_files(&self) -> impl Iterator<Item = (&str, Span)> {
        self.attributes.subscriptions.entries().iter().filter_map(|subscription| match &subscription.value {
            Subscription::File { path } => Some((path.as_str(), subscription.span)),
            Subscription::Topic { .. } => None,
        })
    }

    /// Returns its title: `label`, else its name (A8).
    pub fn title(&self) -> &str {
        self.attributes.label.text().map_or(self.id.value.as_str(), |label| label.value.as_str())
    }

    /// Returns what the worker is told: `prompt`, else the title (A8).
    pub fn prompt(&self) -> &str {
        self.attributes.prompt.text().map_or_else(|| self.title(), |prompt| prompt.value.as_str())
    }

    /// Says whether it ends the run as failed (ruling 8).
    pub fn is_failed_exit(&self) -> bool {
        self.kind.value == Kind::Exit && self.attributes.result.is(&ExitResult::Failed)
    }
}

impl NamedContract {
    /// Returns the name of its attribute.
    pub(super) fn key(&self) -> String {
        self.name.as_ref().map_or("contract".to_owned(), |name| format!("contract.{name}"))
    }

    /// Says whether it says that no command judges the work.
    pub(crate) fn is_none(&self) -> bool {
        self.command.value.trim() == "none"
    }
}

/// Says whether a person confirms the work of a task (DESIGN 10, row H-30): where the node asks for that, and where it has a
/// check of an output that no command of the harness prints.
pub(crate) fn is_confirmed(node: &NodeTree) -> bool {
    let check = &node.attributes.verify_type;
    let is_asked_for = check.is(&VerifyType::Manual)
        || !node.contracts.is_empty() && node.contracts.iter().all(NamedContract::is_none);
    let is_unproved = node.contracts.is_empty() && check.is_said() && !check.is(&VerifyType::FileExists);
    node.kind.value == Kind::Task && (is_asked_for || is_unproved)
}

impl Workflow {
    /// Says whether an edge is open after a failure: by its word, or by a condition that can't hold on a pass (ruling 2).
    pub fn names_failure(&self, edge: &EdgeTree) -> bool {
        match edge.on.value {
            On::Success => false,
            On::Fail | On::Retry | On::Exhaust => true,
            On::Always if edge.is_plain() => true,
            On::Always => {
                let exit_code = |name: &str| {
                    let node = self.nodes.iter().find(|node| node.id.value == name);
                    node.and_then(|node| node.attributes.expect_exit.value().copied()).unwrap_or(0)
                };
                // A decision may pass on the failure of any node before it.
                let expected = |named: Option<&str>| Some(Some(exit_code(named.unwrap_or(&edge.from.value))));
                edge.condition.as_ref().is_some_and(|condition| condition.value.names_failure(&expected))
            }
        }
    }

    /// Has the bare edges into decisions without a command carry every outcome (ruling 1), where the decision has a way for a
    /// failure. A node whose policy says what follows its last attempt keeps to that.
    pub(crate) fn carry_outcomes(&mut self) {
        let routes =
            |node: &NodeTree| node.kind.value == Kind::Decision && !node.attributes.command.is_said();
        let places = self.places();
        let out_edges = self.out_edges();
        let mut takes: Vec<bool> = (0..self.nodes.len())
            .map(|at| {
                routes(&self.nodes[at]) && out_edges[at].iter().any(|(_, edge)| self.names_failure(edge))
            })
            .collect();
        // A decision may leave it to the next one.
        let mut open: Vec<usize> = (0..takes.len()).filter(|at| takes[*at]).collect();
        while let Some(at) = open.pop() {
            for (from, out_edges) in out_edges.iter().enumerate() {
                let hands_on = |(to, edge): &(usize, &EdgeTree)| *to == at && edge.is_bare();
                if !takes[from] && routes(&self.nodes[from]) && out_edges.iter().any(hands_on) {
                    takes[from] = true;
                    open.push(from);
                }
            }
        }
        let may_fail = |at: usize| {
            let node = &self.nodes[at];
            let works = matches!(
                node.kind.value,
                Kind::Task | Kind::Call | Kind::Decision | Kind::SubPlan | Kind::Join
            );
            works && node.attributes.on_fail.value().is_none_or(|policy| policy.then.is_none())
        };
        let carried: Vec<usize> = (0..self.edges.len())
            .filter(|at| {
                let edge = &self.edges[*at];
                let place = |name: &Spanned<String>| places.get(name.value.as_str()).copied();
                edge.on.value == On::Success
                    && edge.is_bare()
                    && place(&edge.to).is_some_and(|to| takes[to])
                    && place(&edge.from).is_some_and(may_fail)
            })
            .collect();
        for at in carried {
            self.edges[at].on.value = On::Always;
        }
    }

    /// Says whether an edge into a decision says that it is for success: a bare one may carry every outcome.
    pub(super) fn is_meant_for_success(&self, edge: &EdgeTree, places: &BTreeMap<&str, usize>) -> bool {
        let is_decision = |at: &usize| self.nodes[*at].kind.value == Kind::Decision;
        let is_said = edge.on.value == On::Success && edge.is_plain() && !edge.is_bare();
        is_said && places.get(edge.to.value.as_str()).is_some_and(is_decision)
    }

    /// Says whether a node is a decision without a command that no edge leads to or leaves: the graph runs without it.
    pub(crate) fn is_alone(&self, node: &NodeTree) -> bool {
        let is_at = |edge: &EdgeTree| edge.from.value == node.id.value || edge.to.value == node.id.value;
        let is_named = self.start.as_ref().is_some_and(|start| start.value == node.id.value);
        node.kind.value == Kind::Decision
            && !node.attributes.command.is_said()
            && !is_named
            && !self.edges.iter().any(is_at)
    }

    /// Leaves out the decisions that stand alone.
    pub(crate) fn leave_out_lone_decisions(&mut self) {
        let lone: Vec<bool> = self.nodes.iter().map(|node| self.is_alone(node)).collect();
        let mut lone = lone.into_iter();
        self.nodes.retain(|_| lone.next() != Some(true));
    }

    /// Returns how often a node is tried again (R1, R2): its own number or preset, else that of the graph.
    pub(crate) fn retries(&self, node: &NodeTree) -> Option<Spanned<u16>> {
        let preset = |policy: &Written<RetryPolicy>| {
            let policy = policy.spanned()?;
            Some(Spanned::new(policy.value.retries, policy.span))
        };
        let own = node.attributes.max_retries.spanned().or_else(|| preset(&node.attributes.retry_policy));
        own.or_else(|| self.attributes.default_max_retries.spanned())
            .or_else(|| preset(&self.attributes.retry_policy))
    }

    /// Returns the nodes that the graph, and then its nodes, name to go back to.
    pub(crate) fn retry_targets(&self) -> impl Iterator<Item = &Spanned<String>> {
        let of_nodes = self.nodes.iter().flat_map(|node| node.attributes.retry_targets());
        self.attributes.retry_targets().chain(of_nodes)
    }

    /// Returns the nodes that are steps of the plan, in the order of the steps.
    pub fn steps(&self) -> Vec<&NodeTree> {
        let mut steps: Vec<&NodeTree> =
            self.nodes.iter().chain(&self.templates).filter(|node| node.step.is_some()).collect();
        steps.sort_by_key(|node| node.step);
        steps
    }

    /// Returns the title: its own, else its name.
    pub fn title(&self) -> &str {
        let title = self.title.as_ref().or(self.name.as_ref());
        title.map_or("", |title| title.value.as_str())
    }

    /// Returns the places of the nodes by their names; of two with one name the first.
    pub fn places(&self) -> BTreeMap<&str, usize> {
        let mut places = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            places.entry(node.id.value.as_str()).or_insert(at);
        }
        places
    }

    /// Returns the edges that leave each node, by the nodes' places; edges that lead nowhere are left out.
    pub fn out_edges(&self) -> Vec<Vec<(usize, &EdgeTree)>> {
        let places = self.places();
        let mut out_edges = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            let ends = (places.get(edge.from.value.as_str()), places.get(edge.to.value.as_str()));
            if let (Some(from), Some(to)) = ends {
                out_edges[*from].push((*to, edge));
            }
        }
        out_edges
    }

    /// Returns the places of all nodes in the order of a walk from the start on; those that nothing leads to come last.
    pub fn walk(&self) -> Vec<usize> {
        let out_edges = self.out_edges();
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for root in self.entry().into_iter().chain(0..self.nodes.len()) {
            let mut open = vec![root];
            while let Some(at) = open.pop() {
                if !std::mem::replace(&mut seen[at], true) {
                    order.push(at);
                    open.extend(out_edges[at].iter().rev().map(|(to, _)| *to).filter(|to| !seen[*to]));
                }
            }
        }
        order
    }

    /// Returns the place of the node where a run begins.
    pub fn entry(&self) -> Option<usize> {
        let named = self
            .start
            .as_ref()
            .and_then(|start| self.nodes.iter().position(|node| node.id.value == start.value));
        named.or_else(|| self.nodes.iter().position(|node| node.kind.value == Kind::Start))
    }
}
