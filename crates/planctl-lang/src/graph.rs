//! Turns a plan of any language into the graph that the engine runs.
//!
//! The nodes say what is done, and the edges how they follow each other. Edges that nobody wrote, such as those
//! to a person after the last attempt, are added here (`ways`), and forks find their joins (`meet`).

mod edges;
mod meet;
mod meetings;
mod output_check;
mod overlap;
mod part;
mod questions;

use std::collections::BTreeSet;

use planctl_engine::{
    Backoff, Budget, Call, Choice, Confirmation, Contract, Fidelity, Fork, Goal, Graph, GraphParts, Join,
    JoinPolicy, Judge, Limits, Node, NodeId, NodeKind, Outcome, Priority, Profile, Question, RedFirst, Role,
    SubPlan, Task, WorkKind,
};

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::analysis::{judging_files, may_change};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::Source;
use crate::syntax::shell::{self, FileUse, Use};
use crate::syntax::written::{Text, Written};
use crate::text::Span;
use crate::text::limits::{MAX_VISITS, RETRIES};
use crate::text::paths::clean;
use crate::tree::digest::digest_of_text;
use crate::tree::workflow::{Kind, NodeTree, Workflow, folders, is_confirmed, resolve, sub_plans};
use crate::tree::{OnFail, Then};
use edges::LoweredEdges;
pub(crate) use edges::with_labels;
use meet::Net;
use output_check::{check_of, with_output_check};

pub use crate::text::limits::{CONTRACT_TIMEOUT, WORK_TIMEOUT};
/// Branches that are under way at once, where a graph of DOT or JSON with forks says nothing (DOT P2).
pub(crate) const PARALLEL: u16 = 4;

/// How many runs of a sub-plan may follow each other until its condition holds, where the graph says nothing (DOT N1).
const CYCLES: u16 = 10;

/// A step's policy with its defaults filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Policy {
    pub retries: u16,
    pub then: Then,
}

impl From<Policy> for OnFail {
    fn from(Policy { retries, then }: Policy) -> OnFail {
        OnFail { retries: Some(retries), then: Some(then) }
    }
}

pub(crate) fn policy(step: &NodeTree) -> Policy {
    let said = step.attributes.on_fail.value();
    let max = step.attributes.max_retries.value().copied();
    let retries = said.and_then(|policy| policy.retries).or(max);
    let fallback = if said.is_some() { 0 } else { RETRIES };
    let then = said.and_then(|policy| policy.then);
    Policy { retries: retries.unwrap_or(fallback), then: then.unwrap_or(Then::Escalate) }
}

/// A plan as read, with what its lowering needs to know.
pub(crate) struct Plan<'p> {
    /// Its graph, in which forks, joins and decisions are explicit.
    pub workflow: &'p Workflow,
    /// The nodes that are steps, in their order.
    pub steps: &'p [&'p NodeTree],
    pub scripts: &'p Scripts,
    pub order: &'p Order,
    /// Says that the plan is one in markdown.
    pub is_markdown: bool,
}

/// Makes the graph of a plan whose findings have no error, and says which steps run one after the other though they need not.
///
/// # Errors
///
/// Returns what the engine does not run yet, usual answers that mean no option, branches that can't meet, or why the nodes make
/// no graph.
pub(crate) fn lower(plan: &Plan<'_>) -> Result<(Graph, Vec<Diagnostic>), Vec<Diagnostic>> {
    let later = unsupported(plan);
    if !later.is_empty() {
        return Err(later);
    }
    let joined = (!plan.is_markdown).then(|| meetings::insert_joins(plan.workflow)).flatten();
    let plan = &Plan { workflow: joined.as_ref().unwrap_or(plan.workflow), ..*plan };
    let lowering = Lowering::of(plan);
    let unmeant = lowering.unmeant_choices();
    if !unmeant.is_empty() {
        return Err(unmeant);
    }
    let mut parts = lowering.parts();
    let mut net = Net::of(&parts);
    let mut found = net.assign_joins(&mut parts, plan.workflow)?;
    part::part_forks(&mut parts, plan.workflow, &net)?;
    found.extend(overlap::keep_apart(&mut parts, plan, &net));
    let defect = |defect: planctl_engine::GraphDefect| {
        vec![Diagnostic::new(Code::P301, defect.to_string()).at(Span::at(0), "")]
    };
    Ok((Graph::new(parts).map_err(defect)?, found))
}

/// Returns what lowering finds in a plan that has errors already, so that all findings are reported at once (P-63).
///
/// The graph is lowered only where its nodes and edges are sound: otherwise a finding would repeat a flaw that is reported already.
pub(crate) fn findings(plan: &Plan<'_>, errors: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_of_step = |code: Code| matches!(code.as_str().as_bytes(), [b'P', b'1' | b'4' | b'5' | b'6', ..]);
    let are_nodes_sound = errors
        .iter()
        .filter(|found| found.is_error())
        .all(|found| found.code == Code::P010 || is_of_step(found.code));
    let found = match are_nodes_sound {
        false => unsupported(plan),
        true => match lower(plan) {
            Ok((_, found)) | Err(found) => found,
        },
    };
    // A task without a contract is reported as that, not as an unsupported check as well.
    let place = |found: &Diagnostic| found.spans.first().map(|label| label.span);
    let reported: BTreeSet<_> = errors.iter().filter(|error| error.is_error()).filter_map(place).collect();
    let is_reported = |found: &Diagnostic| place(found).is_some_and(|place| reported.contains(&place));
    found.into_iter().filter(|found| found.code != Code::P301 && !is_reported(found)).collect()
}

fn unsupported(plan: &Plan<'_>) -> Vec<Diagnostic> {
    let mut later = Vec::new();
    let mut tell = |what: &str, span: Span, help: &str| {
        let message = format!("{what} is not supported yet");
        later.push(Diagnostic::new(Code::P017, message).at(span, "").help(help));
    };
    for node in &plan.workflow.nodes {
        let said = [("needs", node.attributes.needs.text()), ("when", node.attributes.when.text())];
        for (key, said) in said {
            if let Some(said) = said.filter(|_| !plan.is_markdown) {
                tell(&format!("`{key}` of a node"), said.span, "say it by edges");
            }
        }
    }
    later
}

struct Lowering<'p> {
    plan: &'p Plan<'p>,
    edges: LoweredEdges<'p>,
}

impl<'p> Lowering<'p> {
    fn of(plan: &'p Plan<'p>) -> Lowering<'p> {
        Lowering { plan, edges: LoweredEdges::of(plan.workflow, plan.is_markdown) }
    }

    fn node(&self, at: usize, node: &NodeTree) -> Node {
        let most = node.attributes.max_visits.value().or(self.plan.workflow.attributes.max_visits.value());
        let kind = self.kind(at, node);
        let is_task = matches!(kind, NodeKind::Task(_));
        Node {
            max_visits: most.copied().unwrap_or(MAX_VISITS),
            step: node.number.filter(|_| !is_task),
            backoff: self.backoff(node),
            profile: self.profile(node).filter(|_| is_task).map(Box::new),
            confirmation: self.confirmation(at, node).map(Box::new),
            ask_deadline: node.attributes.ask_deadline.value().copied(),
            ..Node::new(node.id.value.as_str(), node.title(), kind)
        }
    }

    // R2: the node's own preset, else the graph's.
    fn backoff(&self, node: &NodeTree) -> Option<Backoff> {
        let policy = &node.attributes.retry_policy;
        let policy = if policy.is_said() { policy } else { &self.plan.workflow.attributes.retry_policy };
        policy.value()?.backoff
    }

    // A13, A14, F1, F3: the node's profile, else its graph's; a plan in markdown has none.
    fn profile(&self, node: &NodeTree) -> Option<Profile> {
        if self.plan.is_markdown {
            return None;
        }
        let (said, of_graph) = (&node.attributes, &self.plan.workflow.attributes);
        let fidelity = if said.fidelity.is_said() { &said.fidelity } else { &of_graph.default_fidelity };
        Some(Profile {
            name: text(&said.profile),
            model: text(&said.llm_model),
            provider: text(&said.llm_provider),
            effort: text(&said.reasoning_effort),
            fidelity: fidelity.value().copied().or(Some(Fidelity::Compact)),
            thread: text(&said.thread_id),
            common_thread: text(&of_graph.thread_id).or_else(|| node.classes.first().cloned()),
        })
    }

    fn kind(&self, at: usize, node: &NodeTree) -> NodeKind {
        let said = &node.attributes;
        match (node.kind.value, node.step) {
            (Kind::Start, _) => NodeKind::Start,
            (Kind::Task, Some(place)) => {
                let mut task = self.task(place, node);
                task.contract = with_output_check(node, task.contract);
                NodeKind::Task(Box::new(task))
            }
            (Kind::Call, Some(place)) => NodeKind::Call(Box::new(self.call(place, node))),
            (Kind::Decision, _) => NodeKind::Decision(Choice {
                description: text(&said.description)
                    .or_else(|| text(&said.prompt))
                    .or_else(|| text(&said.label).filter(|label| *label != node.id.value)),
                command: node.contract.as_ref().map(|_| Box::new(contract_of(node))),
            }),
            (Kind::Human, _) => NodeKind::Human(Box::new(self.question(at, node))),
            (Kind::Checkpoint, _) => NodeKind::Checkpoint,
            (Kind::Fork, _) => {
                let max = said.max_parallel.value().copied();
                NodeKind::Fork(Fork { join: None, max, in_worktree: false })
            }
            (Kind::Join, _) => NodeKind::Join(Join {
                policy: said.join_policy.value().copied().unwrap_or(JoinPolicy::All),
                partial: said.allow_partial.is(&true),
            }),
            (Kind::Escalate, _) => NodeKind::Escalate {
                reason: text(&said.escalate),
                pace_level: said.pace_level.value().copied(),
            },
            (Kind::SubPlan, _) => NodeKind::SubPlan(Box::new(self.sub_plan(node))),
            // Tasks and calls are steps; a run that came here all the same would fail.
            (Kind::Task | Kind::Call, None) => NodeKind::Exit { success: false },
            (Kind::Exit, _) => NodeKind::Exit { success: !node.is_failed_exit() },
        }
    }

    fn task(&self, at: usize, step: &NodeTree) -> Task {
        let said = &step.attributes;
        let red_first = red_first(self.plan.workflow, step).unwrap_or_default();
        let locks: BTreeSet<String> = said.locks.entries().iter().map(|lock| lock.value.clone()).collect();
        Task {
            step: step.number.unwrap_or(0),
            role: Role::new(step.role.as_ref().map_or("", |role| role.value.as_str())),
            pace: Vec::new(),
            work: work(step),
            prompt: step.task.as_ref().map_or(String::new(), |task| task.value.clone()),
            subscriptions: said.subscriptions.entries().iter().map(|entry| entry.value.clone()).collect(),
            contract: Contract { red_first, ..contract_of(step) },
            max_retries: policy(step).retries,
            on_exhausted: on_exhausted(step),
            work_timeout: said.timeout.value().copied().unwrap_or(WORK_TIMEOUT),
            protects: said.protects.entries().iter().map(|glob| glob.value.clone()).collect(),
            locks: locks.into_iter().collect(),
            excludes: Vec::new(),
            contract_files: judging_files(self.plan.scripts, at),
            may_change: may_change(self.plan.order, at, step),
        }
    }

    // S8, N3, A6: the node's own plan, folder and approval, or the graph's.
    fn sub_plan(&self, node: &NodeTree) -> SubPlan {
        let path = sub_plans::file(self.plan.workflow, node);
        SubPlan {
            path: path.map_or(String::new(), |path| path.value.clone()),
            folder: folders::folder(self.plan.workflow, node),
            approval: node.attributes.child_approval.value().copied().unwrap_or_default(),
            on_exhausted: on_exhausted(node),
            // N1: an unreadable condition was reported when the graph was judged.
            until: node.attributes.stop_condition.condition().map(|read| read.value.condition),
            cycles: node.attributes.max_cycles.value().copied().unwrap_or(CYCLES),
        }
    }

    fn call(&self, at: usize, step: &NodeTree) -> Call {
        let judges: BTreeSet<String> = self
            .plan
            .scripts
            .read_of(at)
            .map(shell::judges)
            .into_iter()
            .flatten()
            .map(|judge| judge.path)
            .collect();
        // A call may change what it names, unless it only reads it for sure, or runs it.
        let is_own = |file: &&FileUse| {
            let may_change = file.how == Use::Writes || (file.how == Use::Reads && !file.is_certain);
            may_change && !judges.contains(&file.path)
        };
        let written = self.plan.scripts.files(at).iter().filter(is_own);
        let written = written.map(|file| file.path.trim_end_matches('/').to_owned()).collect();
        let declared = step.declared_changes().map(|entry| clean(&entry.value)).collect();
        Call {
            contract: contract_of(step),
            max_retries: policy(step).retries,
            on_exhausted: on_exhausted(step),
            may_change: if step.attributes.changes.entries().is_empty() { written } else { declared },
            contract_files: judging_files(self.plan.scripts, at),
            role: step.role.as_ref().map(|role| Role::new(role.value.as_str())),
            approval: None,
        }
    }

    // H-30: the person confirms the task, as the plan says that it is to be checked.
    fn confirmation(&self, at: usize, node: &NodeTree) -> Option<Confirmation> {
        if !is_confirmed(node) {
            return None;
        }
        let check = check_of(node);
        let asks = check.as_ref().map(|check| format!("\n\nThe plan asks: {}.", check.describe()));
        let mut options = self.edges.confirmations(at);
        let refusal = self.edges.refusal(at, &options);
        let usual = options.first().cloned();
        options.push(refusal.clone());
        let text = format!("Is this done? {}{}", self.text_of(node), asks.unwrap_or_default());
        let question = Question { text, options, default: None, usual };
        // A check beside a contract is a part of that.
        let has_command = node.contract.as_ref().is_some_and(|contract| !contract.command.is_empty());
        Some(Confirmation { question, refusal, check: check.filter(|_| !has_command) })
    }

    fn text_of(&self, node: &NodeTree) -> String {
        node.task.as_ref().map_or(node.prompt().to_owned(), |task| task.value.clone())
    }

    fn parts(mut self) -> GraphParts {
        let workflow = self.plan.workflow;
        let mut nodes = Vec::with_capacity(workflow.nodes.len() + 2);
        for (at, node) in workflow.nodes.iter().enumerate() {
            nodes.push(self.node(at, node));
            self.edges.add_outgoing(at, node);
        }
        let start = self.edges.ensure_start(&mut nodes);
        let (edges, helpers) = self.edges.into_parts();
        nodes.extend(helpers);
        let has_forks = workflow.nodes.iter().any(|node| node.kind.value == Kind::Fork);
        let parallel = if has_forks && !self.plan.is_markdown { PARALLEL } else { 1 };
        let goal = workflow.attributes.goal.text().filter(|_| !self.plan.is_markdown);
        GraphParts {
            title: workflow.title().to_owned(),
            start,
            nodes,
            edges,
            goals: goals(workflow),
            context: goal.into_iter().map(|goal| ("graph.goal".to_owned(), goal.value.clone())).collect(),
            budget: workflow.budget.as_ref().map_or(Budget::default(), |budget| budget.value),
            limits: Limits {
                stale_after: workflow.attributes.stale_after.value().copied(),
                stale_after_turns: workflow.library.turns_until_stale(self.plan.is_markdown),
                parallel: workflow.attributes.max_parallel.value().copied().unwrap_or(parallel),
                restarts: workflow
                    .attributes
                    .max_restarts
                    .value()
                    .copied()
                    .unwrap_or(Limits::default().restarts),
                ask_deadline: workflow.attributes.ask_deadline.value().copied(),
                ..Limits::default()
            },
            priority: workflow.priority.as_ref().map_or(Priority::default(), |priority| priority.value),
        }
    }
}

// G1, G2: the node where a run goes while a gate is unmet: the gate's own, else the graph's.
fn goals(workflow: &Workflow) -> Vec<Goal> {
    let is_gate = |node: &&NodeTree| node.attributes.goal_gate.is(&true);
    let gates = workflow.nodes.iter().filter(is_gate);
    gates
        .map(|node| {
            let mut targets = node.attributes.retry_targets().chain(workflow.attributes.retry_targets());
            let retry = targets.next().map(|target| NodeId::new(target.value.as_str()));
            Goal { node: NodeId::new(node.id.value.as_str()), retry }
        })
        .collect()
}

/// Returns how a step settles when its attempts are exhausted.
fn on_exhausted(step: &NodeTree) -> Outcome {
    match policy(step).then {
        Then::Skip => Outcome::Skipped,
        Then::Warn => Outcome::Warned,
        Then::Escalate | Then::Abort => Outcome::Failed,
    }
}

fn text(field: &Written<Text>) -> Option<String> {
    field.text().map(|text| text.value.clone())
}

/// Makes the graph that the engine runs of one that was read.
///
/// # Errors
///
/// Returns what the engine does not run yet, or why the nodes make no graph.
pub fn to_graph(source: &Source, workflow: &Workflow) -> Result<Graph, Vec<Diagnostic>> {
    let mut workflow = workflow.clone();
    resolve(source, &mut workflow);
    let (workflow, steps) = (&workflow, workflow.steps());
    let scripts = Scripts::read(&steps);
    let order = Order::read(source, &steps, &scripts).ordered_by_graph(&steps, workflow);
    let plan = Plan { workflow, steps: &steps, scripts: &scripts, order: &order, is_markdown: false };
    Ok(lower(&plan)?.0)
}

/// Makes the contract of a step by itself; an empty one where the step has none.
pub(crate) fn contract_of(step: &NodeTree) -> Contract {
    let command = step.contract.as_ref().map_or(String::new(), |contract| contract.command.clone());
    let exit_code = step.contract.as_ref().and_then(|contract| contract.exit_code.as_ref());
    Contract {
        digest: digest_of_text(&command),
        command,
        expect: exit_code.map_or(0, |code| code.value),
        timeout: step.attributes.contract_timeout.value().copied().unwrap_or(CONTRACT_TIMEOUT),
        guard: step.is_guard(),
        red_first: RedFirst::Off,
        min_tests: step.attributes.min_tests.value().copied(),
        judge: step.attributes.judge.text().map(|question| {
            Box::new(Judge {
                question: question.value.clone(),
                digest: digest_of_text(&question.value),
                by: text(&step.attributes.judge_by).unwrap_or_default(),
                approval: false,
            })
        }),
    }
}

/// Returns what a step, or else its plan, asks of the contract before the work; the configuration asks where neither does.
pub fn red_first(workflow: &Workflow, step: &NodeTree) -> Option<RedFirst> {
    step.attributes.red_first.value().or(workflow.attributes.red_first.value()).copied()
}

// A reviewer's step is a review unless the plan says otherwise (P-31).
pub(crate) fn work(step: &NodeTree) -> WorkKind {
    step.work.unwrap_or_else(|| {
        let is_reviewer = step.role.as_ref().is_some_and(|role| role.value.starts_with("review"));
        if is_reviewer { WorkKind::Review } else { WorkKind::Code }
    })
}
