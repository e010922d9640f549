//! Compares two graphs of one plan, whose nodes have other names in each: node by node, and way by way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::condition::{Clause, Condition, Key, Test};
use planctl_engine::{
    Contract, Edge, Fidelity, Graph, JoinPolicy, Node, NodeId, NodeKind, On, Profile, Question,
};

use crate::text::one_line;

use super::renamed_outputs;

/// A thing that the one says and the other doesn't.
pub(super) struct Difference {
    pub words: String,
    /// Says that it is a contract or a policy.
    pub is_judged: bool,
}

/// The most forks and joins that a way leads through.
const DEPTH_MAX: usize = 20;
/// The most ways from one node that are compared with each other.
const WAYS_MAX: usize = 60;
const START: &str = "start";
const DONE: &str = "done";
const FAILED: &str = "failed";

/// Returns the differences of a graph that was written from the one that was read.
pub(super) fn differences(
    read: &Graph,
    written: &Graph,
    names: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let own = Side { graph: read, names: names.clone() };
    let same = names.values().map(|name| (name.clone(), name.clone()));
    let other = Side { graph: written, names: same.collect() };
    let own_names = names.iter().rev().map(|(own, name)| (format!("`{name}`"), format!("`{own}`"))).collect();
    let mut found = Comparison { own_names, list: Vec::new() };
    found.nodes(&own, &other);
    let (ways, again) = (own.ways(), other.ways());
    found.ways(&ways, &again);
    found.compare_priorities(&ways, &again);
    found.graphs(&own, &other);
    found.list
}

/// One of the graphs, and how its nodes are named in the other.
struct Side<'g> {
    graph: &'g Graph,
    names: BTreeMap<String, String>,
}

/// A way between two nodes that both graphs have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Route {
    from: String,
    to: String,
    on: On,
    when: Condition,
    label: Option<String>,
    /// Says that others are followed beside it.
    is_branch: bool,
    in_worktree: bool,
}

/// The rest that is said of an edge beside when it is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Manner {
    /// Its place among others that could be taken: the heaviest comes first, then the one with the smallest target.
    place: (Reverse<i32>, String),
    restarts: Option<Vec<String>>,
    carries: String,
    /// Which branches are waited for where it leads.
    awaits: String,
}

/// The same of all ways that are taken alike.
struct Manners<'m> {
    restarts: BTreeSet<&'m Option<Vec<String>>>,
    carries: BTreeSet<&'m str>,
    awaits: BTreeSet<&'m str>,
}

impl<'m> Manners<'m> {
    fn of(manners: &'m BTreeSet<Manner>) -> Manners<'m> {
        Manners {
            restarts: manners.iter().map(|manner| &manner.restarts).collect(),
            carries: manners.iter().map(|manner| manner.carries.as_str()).collect(),
            awaits: manners.iter().map(|manner| manner.awaits.as_str()).collect(),
        }
    }
}

impl Side<'_> {
    fn name(&self, id: &NodeId) -> Option<String> {
        match &self.graph.node(id)?.kind {
            NodeKind::Start => Some(START.to_owned()),
            NodeKind::Exit { success: true } => Some(DONE.to_owned()),
            NodeKind::Exit { success: false } => Some(FAILED.to_owned()),
            NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::Fork(_)
            | NodeKind::Join(_)
            | NodeKind::SubPlan(_)
            | NodeKind::Escalate { .. } => self.names.get(id.as_str()).map(|name| format!("`{name}`")),
        }
    }

    fn nodes(&self) -> BTreeMap<String, &Node> {
        let named = |node: &'_ &Node| !matches!(node.kind, NodeKind::Start | NodeKind::Exit { .. });
        let nodes = self.graph.nodes().iter().filter(named);
        nodes.filter_map(|node| Some((self.name(&node.id)?, node))).collect()
    }

    fn ways(&self) -> BTreeMap<Route, BTreeSet<Manner>> {
        let mut ways: BTreeMap<Route, BTreeSet<Manner>> = BTreeMap::new();
        for node in self.graph.nodes() {
            let Some(from) = self.name(&node.id) else { continue };
            let competes = self.competes(node);
            for edge in self.graph.edges_from(&node.id) {
                let when = edge.when.as_ref().map(|when| self.condition(when)).unwrap_or_default();
                let outcome = outcome_alone(edge).filter(|_| !competes);
                let (on, when) = outcome.map_or((edge.on, when), |on| (on, Condition::always()));
                let way = Route {
                    from: from.clone(),
                    to: String::new(),
                    on: if matches!(node.kind, NodeKind::Fork(_)) { On::Always } else { on },
                    when,
                    label: edge.label.clone(),
                    is_branch: false,
                    in_worktree: false,
                };
                let manner = Manner {
                    place: (Reverse(edge.weight), edge.to.as_str().to_owned()),
                    restarts: edge.restart.as_ref().map(|restart| restart.keeps.clone()),
                    carries: edge.carry.as_ref().map(|carry| format!("{carry:?}")).unwrap_or_default(),
                    awaits: String::new(),
                };
                self.follow(&edge.to, way, manner, DEPTH_MAX, &mut ways);
            }
        }
        ways
    }

    /// Leads a way through the forks and joins that the other graph need not have.
    fn follow(
        &self,
        to: &NodeId,
        mut way: Route,
        mut manner: Manner,
        depth: usize,
        ways: &mut BTreeMap<Route, BTreeSet<Manner>>,
    ) {
        if let Some(name) = self.name(to) {
            way.to = name;
            ways.entry(way).or_default().insert(manner);
            return;
        }
        let Some(node) = self.graph.node(to) else { return };
        let onward = self.graph.edges_from(to);
        match &node.kind {
            NodeKind::Fork(fork) => {
                way.is_branch |= onward.len() > 1;
                way.in_worktree |= fork.in_worktree;
                // One label for several ways would be one option.
                way.label = way.label.filter(|_| onward.len() < 2);
            }
            NodeKind::Join(join) => {
                let policy = if join.policy == JoinPolicy::Any { "any" } else { "all" };
                manner.awaits = format!("{policy} {}", join.partial);
            }
            NodeKind::Escalate { .. } if way.on == On::Exhaust => return,
            NodeKind::Start
            | NodeKind::Task(_)
            | NodeKind::Call(_)
            | NodeKind::Decision(_)
            | NodeKind::Human(_)
            | NodeKind::Checkpoint
            | NodeKind::SubPlan(_)
            | NodeKind::Escalate { .. }
            | NodeKind::Exit { .. } => {
                way.to = format!("another {}", node.kind.as_str());
                ways.entry(way).or_default().insert(manner);
                return;
            }
        }
        for edge in onward.iter().filter(|_| depth > 0) {
            self.follow(&edge.to, way.clone(), manner.clone(), depth - 1, ways);
        }
    }

    /// Says whether edges of a node compete with those that ask for an outcome alone: with a condition they go before those
    /// that say the outcome.
    fn competes(&self, node: &Node) -> bool {
        let mut seen = BTreeSet::new();
        self.graph.edges_from(&node.id).iter().filter(|edge| !self.is_asked_anyway(edge)).any(|edge| {
            let on = outcome_alone(edge).unwrap_or(edge.on);
            let on = if on == On::Exhaust { On::Fail } else { on };
            let is_known = !seen.insert(on) && !matches!(on, On::Always | On::Retry);
            is_known || (outcome_alone(edge).is_none() && edge.when.is_some())
        })
    }

    /// Says whether an edge that nobody wrote leads to a person, who is asked where no edge is open, too.
    fn is_asked_anyway(&self, edge: &Edge) -> bool {
        let kind = self.graph.node(&edge.to).map(|node| &node.kind);
        edge.on == On::Exhaust
            && self.name(&edge.to).is_none()
            && matches!(kind, Some(NodeKind::Escalate { .. }))
    }

    fn condition(&self, condition: &Condition) -> Condition {
        const RETRIES: &str = "internal.retry_count.";
        let mut condition = condition.clone();
        for clause in &mut condition.clauses {
            match &mut clause.key {
                Key::Step { node, .. } => {
                    if let Some(name) = self.names.get(node) {
                        node.clone_from(name);
                    }
                }
                Key::Context(key) | Key::Variable(key) => {
                    if let Some(name) = key.strip_prefix(RETRIES).and_then(|node| self.names.get(node)) {
                        *key = format!("{RETRIES}{name}");
                    }
                }
                Key::Outcome | Key::PreferredLabel => {}
            }
        }
        condition
    }

    fn command(&self, command: &str) -> String {
        renamed_outputs(command.trim(), &self.names)
    }

    /// Returns what a node says by the name of its attribute, and whether that is a contract or a policy.
    fn facets(&self, node: &Node) -> Vec<(&'static str, bool, String)> {
        let mut said = Vec::new();
        let mut say = |key: &'static str, is_judged: bool, value: String| said.push((key, is_judged, value));
        say("type", true, node.kind.as_str().to_owned());
        say("label", false, one_line(&node.title));
        say("max_visits", false, node.max_visits.to_string());
        say("retry_policy", false, format!("{:?}", node.backoff));
        say("ask_deadline", false, format!("{:?}", node.ask_deadline));
        say("profile", false, format!("{:?}", node.profile.as_deref().and_then(asked_of_agent)));
        let confirmed = node.confirmation.as_ref();
        let confirmed =
            confirmed.map(|confirmed| (&confirmed.question.options, &confirmed.refusal, &confirmed.check));
        say("contract", true, format!("{confirmed:?}"));
        if let Some(gated) = node.gated() {
            self.contract(gated.contract, &mut say);
            say("max_retries", true, gated.max_retries.to_string());
            say("on_fail", true, format!("{:?}", gated.on_exhausted));
            say("protects", true, format!("{:?}", gated.protects));
            say("changes", false, format!("{:?}", gated.may_change));
        }
        match &node.kind {
            NodeKind::Task(task) => {
                say("prompt", false, lines(&task.prompt));
                say("target", false, task.role.to_string());
                say("work", false, format!("{:?}", task.work));
                say("timeout", false, format!("{:?}", task.work_timeout));
                say("subscriptions", false, format!("{:?}", sorted(&task.subscriptions)));
                say("locks", false, format!("{:?}", sorted(&task.locks)));
            }
            NodeKind::Call(call) => say("target", false, format!("{:?}", call.role)),
            NodeKind::Human(question) => self.question(question, &mut say),
            NodeKind::Fork(fork) => {
                say("max_parallel", false, format!("{:?}", fork.max));
                say("workspace", false, fork.in_worktree.to_string());
            }
            NodeKind::Join(join) => {
                say("join_policy", false, format!("{:?}", join.policy));
                say("allow_partial", false, join.partial.to_string());
            }
            NodeKind::SubPlan(plan) => {
                say("stack.child_dotfile", true, plan.path.clone());
                say("stack.child_workdir", true, format!("{:?}", plan.folder));
                say("stack.child_approval", true, plan.approval.as_str().to_owned());
                say("on_fail", true, format!("{:?}", plan.on_exhausted));
                let until = plan.until.as_ref().map(|until| self.condition(until));
                say("manager.stop_condition", true, format!("{until:?}"));
                say("manager.max_cycles", false, plan.cycles.to_string());
            }
            NodeKind::Escalate { reason, pace_level } => {
                say("escalate", false, lines(reason.as_deref().unwrap_or(&node.title)));
                say("pace_level", false, format!("{pace_level:?}"));
            }
            // People read the words of a decision, and its conditions decide.
            NodeKind::Decision(_) | NodeKind::Start | NodeKind::Checkpoint | NodeKind::Exit { .. } => {}
        }
        said
    }

    fn contract(&self, contract: &Contract, say: &mut impl FnMut(&'static str, bool, String)) {
        say("contract", true, self.command(&contract.command));
        say("expect_exit", true, contract.expect.to_string());
        say("contract_timeout", true, format!("{:?}", contract.timeout));
        say("guard", true, contract.guard.to_string());
        say("red_first", true, contract.red_first.as_str().to_owned());
        say("min_tests", true, format!("{:?}", contract.min_tests));
        let judge = contract.judge.as_ref();
        say("judge", true, format!("{:?}", judge.map(|judge| (lines(&judge.question), &judge.by))));
    }

    fn question(&self, question: &Question, say: &mut impl FnMut(&'static str, bool, String)) {
        say("prompt", false, lines(&question.text));
        say("options", false, format!("{:?}", question.options));
        say("human.default_choice", false, format!("{:?} {:?}", question.usual, question.default));
    }
}

fn lines(text: &str) -> String {
    text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn sorted<T: Ord + Clone>(list: &[T]) -> Vec<T> {
    let mut list = list.to_vec();
    list.sort();
    list
}

/// Returns what a profile asks beside what is asked where nothing is said; a plan in markdown asks nothing.
fn asked_of_agent(profile: &Profile) -> Option<Profile> {
    let fidelity = profile.fidelity.filter(|fidelity| *fidelity != Fidelity::Compact);
    let own = Profile { fidelity, ..profile.clone() };
    (own != Profile::default()).then_some(own)
}

struct Comparison {
    /// The names of nodes in the graph that was read, by those that were written.
    own_names: BTreeMap<String, String>,
    list: Vec<Difference>,
}

impl Comparison {
    fn add(&mut self, words: String, is_judged: bool) {
        self.list.push(Difference { words, is_judged });
    }

    /// Returns the name of a node in the graph that was read.
    fn own_name(&self, name: &str) -> String {
        self.own_names.get(name).cloned().unwrap_or_else(|| format!("`{}`", name.trim_matches('`')))
    }

    fn nodes(&mut self, own: &Side<'_>, other: &Side<'_>) {
        let (read, written) = (own.nodes(), other.nodes());
        for (name, node) in &read {
            let own_name = self.own_name(name);
            let Some(again) = written.get(name) else {
                self.add(format!("the node {own_name}"), true);
                continue;
            };
            // A step without a contract is refused, so nothing is judged by it.
            let is_judging = again.confirmation.is_some()
                || again.gated().is_none_or(|gated| !gated.contract.command.is_empty());
            let mut again = other.facets(again).into_iter();
            for (key, is_judged, value) in own.facets(node) {
                let said = again.next().filter(|(said, ..)| *said == key).map(|(_, _, value)| value);
                if said.as_ref() != Some(&value) {
                    self.add(format!("`{key}` of {own_name}"), is_judged && is_judging);
                }
            }
        }
    }

    fn ways(&mut self, own: &BTreeMap<Route, BTreeSet<Manner>>, other: &BTreeMap<Route, BTreeSet<Manner>>) {
        for (way, manners) in own {
            let ends = (self.own_name(&way.from), self.own_name(&way.to));
            let edge = format!("the edge from {} to {}", ends.0, ends.1);
            // Where all open ways are taken, the label by which a worker chooses one is its condition.
            let again = other.get(way).or_else(|| other.get(&chosen(way)?));
            let Some(again) = again else {
                self.add(edge, way.on == On::Exhaust);
                continue;
            };
            let (read, written) = (Manners::of(manners), Manners::of(again));
            let parts = [
                ("restart", read.restarts == written.restarts),
                ("fidelity", read.carries == written.carries),
                ("join", read.awaits == written.awaits),
            ];
            for (word, _) in parts.into_iter().filter(|(_, is_same)| !is_same) {
                self.add(format!("the {word} of {edge}"), false);
            }
        }
        let chosen: BTreeSet<Route> = own.keys().filter_map(chosen).collect();
        for way in other.keys().filter(|way| !own.contains_key(way) && !chosen.contains(way)) {
            let ends = (self.own_name(&way.from), self.own_name(&way.to));
            self.add(format!("that no such edge leads from {} to {}", ends.0, ends.1), way.on == On::Exhaust);
        }
    }

    /// Compares which of two ways is taken where both could be: it may depend on the names of the nodes.
    fn compare_priorities(
        &mut self,
        own: &BTreeMap<Route, BTreeSet<Manner>>,
        other: &BTreeMap<Route, BTreeSet<Manner>>,
    ) {
        let place = |ways: &BTreeMap<Route, BTreeSet<Manner>>, way: &Route| {
            let manners = ways.get(way).or_else(|| ways.get(&chosen(way)?))?;
            manners.first().map(|manner| manner.place.clone())
        };
        let mut leaving: BTreeMap<&str, Vec<&Route>> = BTreeMap::new();
        for way in own.keys().filter(|way| !way.is_branch) {
            leaving.entry(&way.from).or_default().push(way);
        }
        for (from, ways) in leaving {
            let ways = &ways[..ways.len().min(WAYS_MAX)];
            let pairs = ways
                .iter()
                .enumerate()
                .flat_map(|(at, one)| ways[at + 1..].iter().map(move |two| (one, two)));
            for (one, two) in pairs.filter(|(one, two)| is_choice(one, two)) {
                let order = |ways| Some(place(ways, one)?.cmp(&place(ways, two)?));
                if order(other).is_some_and(|again| order(own) != Some(again)) {
                    let (from, ends) =
                        (self.own_name(from), [self.own_name(&one.to), self.own_name(&two.to)]);
                    let words =
                        format!("which edge from {from} goes first, to {} or to {}", ends[0], ends[1]);
                    self.add(words, false);
                }
            }
        }
    }

    fn graphs(&mut self, own: &Side<'_>, other: &Side<'_>) {
        let said = |side: &Side<'_>| {
            let graph = side.graph;
            let limits = graph.limits();
            let parts = [
                ("label", one_line(graph.title())),
                ("budget", format!("{:?}", graph.budget())),
                ("priority", format!("{:?}", graph.priority())),
                ("max_parallel", limits.parallel.to_string()),
                ("stale_after", format!("{:?}", limits.stale_after)),
                ("stale_after_turns", format!("{:?}", limits.stale_after_turns)),
                ("max_restarts", limits.restarts.to_string()),
                ("ask_deadline", format!("{:?}", limits.ask_deadline)),
            ];
            let goals: BTreeMap<String, Option<String>> = graph
                .goals()
                .iter()
                .filter_map(|goal| {
                    let retry = goal.retry.as_ref().and_then(|retry| side.name(retry));
                    Some((side.name(&goal.node)?, retry))
                })
                .collect();
            (parts, goals)
        };
        let ((parts, goals), (again, goals_again)) = (said(own), said(other));
        for ((key, value), (_, again)) in parts.iter().zip(&again) {
            if value != again {
                self.add(format!("`{key}` of the graph"), false);
            }
        }
        for (name, retry) in &goals {
            let key = match goals_again.get(name) {
                Some(again) if again == retry => continue,
                Some(_) => "retry_target",
                None => "goal_gate",
            };
            let name = self.own_name(name);
            self.add(format!("`{key}` of {name}"), false);
        }
    }
}

/// Returns the outcome for which an edge is taken by its condition alone.
fn outcome_alone(edge: &Edge) -> Option<On> {
    let clauses = edge.when.as_ref().map(|when| when.clauses.as_slice());
    match (edge.on, clauses) {
        (On::Always, Some([Clause { key: Key::Outcome, test: Test::Is(word) }])) => {
            [On::Success, On::Fail].into_iter().find(|on| on.as_str() == *word)
        }
        (_, _) => None,
    }
}

/// Says whether two ways from one node can both be open, so that one of them has to go first.
fn is_choice(one: &Route, two: &Route) -> bool {
    let is_other = |a: &Test, b: &Test| match (a, b) {
        (Test::Is(a), Test::Is(b)) => a != b,
        (Test::Is(a), Test::IsNot(b)) | (Test::IsNot(b), Test::Is(a)) => a == b,
        (Test::Is(_) | Test::IsNot(_) | Test::Truthy, _) => false,
    };
    let is_exclusive = one
        .when
        .clauses
        .iter()
        .any(|a| two.when.clauses.iter().any(|b| a.key == b.key && is_other(&a.test, &b.test)));
    let is_told = one.label != two.label && (one.label.is_some() && two.label.is_some());
    one.on == two.on
        && one.to != two.to
        && one.when.is_always() == two.when.is_always()
        && !is_exclusive
        && !is_told
}

/// Returns the way with the label of a worker's choice as its condition.
fn chosen(way: &Route) -> Option<Route> {
    let label = way.label.clone().filter(|_| way.on == On::Success && way.when.is_always())?;
    let clause = Clause { key: Key::PreferredLabel, test: Test::Is(label) };
    Some(Route { on: On::Always, when: Condition { clauses: vec![clause] }, label: None, ..way.clone() })
}
