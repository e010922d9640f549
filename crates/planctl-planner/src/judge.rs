//! The rules that a draft is held to before a person reads it: form, contracts that are red for the right reason, every
//! requirement traced, questions that can be answered (M-28, M-29).

use std::collections::{BTreeMap, BTreeSet};

use planctl_engine::{NodeKind, Verdict};
use planctl_glob::{Glob, is_glob};
use planctl_lang::workflow::Kind;
use planctl_lang::{Code, Severity, Trial, Tried, Verification, escape};
use serde::{Deserialize, Serialize};

use crate::goal::{Goal, suspicion};
use crate::proposal::Proposal;
use crate::red::wrong_reason;
use crate::write::differences;

/// The facts that were found out about a draft's text.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// Its verification, the trials' findings included.
    pub verification: &'a Verification,
    /// The trials of its contracts, by step.
    pub trials: &'a BTreeMap<u32, Trial>,
    /// The files of [`named_files`] that are not there.
    pub missing: &'a BTreeSet<String>,
}

/// The verdict on a draft (M-28).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing to say.
    Ok,
    /// A person should read the findings.
    Warning,
    /// It has to be written again.
    Invalid,
}

/// The rule that a finding comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The answer could be read, and the text says what the answer meant.
    Form,
    /// The plan verifies.
    Verified,
    /// Each contract fails today, and for the right reason.
    Red,
    /// Steps depend on each other and on files as they can (M-29).
    DataFlow,
    /// Each requirement has a contract (M-29).
    GoalCoverage,
    /// Questions and tasks can be understood (M-29).
    Clarity,
    /// Nothing in it approves, runs or repeats what the goal's text smuggled in.
    Injection,
    /// A second reader's word (M-30).
    Review,
}

/// One thing that is wrong with a draft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The code of `plan verify`, where it is one of its findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Says that the draft has to be written again.
    pub is_error: bool,
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The problem.
    pub message: String,
    /// How to mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Finding {
    pub(crate) fn error(rule: Rule, message: impl Into<String>) -> Finding {
        Finding { rule, code: None, is_error: true, step: None, message: message.into(), help: None }
    }

    fn warning(rule: Rule, message: impl Into<String>) -> Finding {
        Finding { is_error: false, ..Finding::error(rule, message) }
    }

    fn at(mut self, step: u32) -> Finding {
        self.step = Some(step);
        self
    }

    fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }
}

/// A requirement, and what proves it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Traced {
    /// `R1`
    pub id: String,
    /// The author's words.
    pub text: String,
    /// The steps.
    pub steps: Vec<u32>,
    /// Their contracts.
    pub contracts: Vec<String>,
}

/// The judgement of the rules on a draft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub outcome: Outcome,
    /// The findings, errors first.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// Sums findings up.
    pub(crate) fn from_findings(mut findings: Vec<Finding>) -> Judgement {
        findings.sort_by_key(|finding| (!finding.is_error, finding.step.unwrap_or(0)));
        findings.dedup();
        let outcome = match findings.first() {
            Some(first) if first.is_error => Outcome::Invalid,
            Some(_) => Outcome::Warning,
            None => Outcome::Ok,
        };
        Judgement { outcome, findings }
    }

    /// Leaves out that a contract is green where its step passed in a run before: the work is done.
    pub(crate) fn without_green(self, proposal: &Proposal, passed: &BTreeSet<&str>) -> Judgement {
        let is_done =
            |number: u32| step_of(proposal, number).is_some_and(|step| passed.contains(step.contract.trim()));
        let is_green = |finding: &Finding| {
            let is_of_trial = finding.rule == Rule::Red || finding.code == Some(Code::P103.to_string());
            is_of_trial && finding.step.is_some_and(is_done)
        };
        Judgement::from_findings(self.findings.into_iter().filter(|finding| !is_green(finding)).collect())
    }
}

/// Returns the files that the contracts of a plan name in their text.
pub fn named_files(verification: &Verification) -> BTreeSet<String> {
    let nodes = verification.graph.iter().flat_map(|graph| graph.nodes());
    let gated = nodes.filter_map(planctl_engine::Node::gated);
    let named = gated.flat_map(|gated| {
        let command = gated.contract.command.clone();
        gated.contract_files.iter().filter(move |path| !is_glob(path) && command.contains(path.as_str()))
    });
    named.cloned().collect()
}

/// Traces the requirements to the contracts of a proposal; those that a person took out are left out.
pub(crate) fn traced(goal: &Goal, proposal: &Proposal, without: &BTreeSet<String>) -> Vec<Traced> {
    let traces = proposal.traces();
    let known = goal.requirements.iter().map(|own| (own.id.clone(), own.text.clone()));
    let added = proposal
        .requirements
        .iter()
        .filter(|trace| goal.requirements.iter().all(|own| own.id != trace.id.trim()));
    let added = added.filter_map(|trace| Some((trace.id.trim().to_owned(), trace.quote.clone()?)));
    let all = known.chain(added).filter(|(id, _)| !without.contains(id));
    all.map(|(id, text)| {
        let steps: BTreeSet<u32> =
            traces.get(id.as_str()).into_iter().flat_map(|trace| trace.steps.clone()).collect();
        let contracts = steps
            .iter()
            .filter_map(|step| step_of(proposal, *step))
            .map(|step| step.contract.trim().to_owned());
        let contracts = contracts.collect();
        Traced { id, text, steps: steps.into_iter().collect(), contracts }
    })
    .collect()
}

fn step_of(proposal: &Proposal, number: u32) -> Option<&crate::proposal::Step> {
    proposal.steps.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Holds a draft to the rules.
pub(crate) fn judge(
    goal: &Goal,
    proposal: &Proposal,
    text: &str,
    looked: Looked<'_>,
    without: &BTreeSet<String>,
) -> Judgement {
    let mut findings = Vec::new();
    for (step, what) in differences(proposal, text) {
        let finding = Finding::error(Rule::Form, what)
            .help("write plain text in tasks, and one script in each contract");
        findings.push(Finding { step, ..finding });
    }
    check_verified(looked.verification, &mut findings);
    red(looked, &mut findings);
    check_coverage(goal, proposal, without, &mut findings);
    check_clarity(proposal, &mut findings);
    check_injection(goal, proposal, &mut findings);
    Judgement::from_findings(findings)
}

/// Findings that are warnings elsewhere: with one of these a contract proves nothing, or not what it should.
const REFUSED: [Code; 10] = [
    Code::P103,
    Code::P104,
    Code::P105,
    Code::P106,
    Code::P107,
    Code::P110,
    Code::P111,
    Code::P112,
    Code::P113,
    Code::P116,
];
/// Notes of what planctl chooses, and of the draft's own place.
const UNSAID: [Code; 4] = [Code::P020, Code::P122, Code::P402, Code::P603];

fn check_verified(verification: &Verification, findings: &mut Vec<Finding>) {
    // A draft does not allow what is found in it.
    for found in verification.with_allowed() {
        if UNSAID.contains(&found.code) {
            continue;
        }
        let is_refused = REFUSED.contains(&found.code);
        if found.level == Severity::Note && !is_refused {
            continue;
        }
        let label = found.spans.iter().map(|span| span.text.as_str()).find(|label| !label.is_empty());
        let label = label.map(|label| format!(": {label}")).unwrap_or_default();
        findings.push(Finding {
            rule: rule_of(found.code),
            code: Some(found.code.to_string()),
            is_error: found.is_error() || is_refused,
            step: found.step.as_ref().and_then(|step| step.number.parse().ok()),
            message: format!("{}{label}", found.message),
            help: found.help.clone(),
        });
    }
    for step in verification.tree.steps.iter() {
        let Some(number) = step.node.number else { continue };
        if step.node.is_guard() && step.node.kind.value == Kind::Task {
            let finding =
                Finding::error(Rule::Red, "a guard is green before the work, and proves none of it")
                    .at(number);
            findings.push(
                finding.help("put what must be new beside it: `! grep -q old src/app && bash test.sh`"),
            );
        }
    }
}

/// The language finds circles, files that nobody makes, and steps that are not there.
fn rule_of(code: Code) -> Rule {
    let is_order = code.to_string().starts_with("P2") || matches!(code, Code::P301 | Code::P304);
    if is_order { Rule::DataFlow } else { Rule::Verified }
}

fn red(looked: Looked<'_>, findings: &mut Vec<Finding>) {
    for step in &looked.verification.tree.steps {
        let (Some(number), Some(contract)) = (step.node.number, &step.node.contract) else { continue };
        let has_error =
            |findings: &[Finding]| findings.iter().any(|own| own.is_error && own.step == Some(number));
        match looked.trials.get(&number) {
            Some(Trial::Tried(tried)) if !tried.runs.is_empty() => {
                findings.extend(check_trial(looked, number, &contract.command, tried, has_error(findings)));
            }
            // A level of the configuration may hide why.
            Some(Trial::Tried(_) | Trial::Skipped { .. }) | None if !has_error(findings) => {
                let message = "the contract was not tried, so nobody knows whether it fails today";
                findings.push(Finding::error(Rule::Red, message).at(number));
            }
            Some(Trial::Tried(_) | Trial::Skipped { .. }) | None => {}
        }
    }
}

fn check_trial(
    looked: Looked<'_>,
    number: u32,
    command: &str,
    tried: &Tried,
    has_error: bool,
) -> Option<Finding> {
    if tried.runs.iter().any(|run| run.verdict == Verdict::Passed) {
        // One that passes has its own finding, unless a level of the configuration hides it.
        let passes = Finding::error(Rule::Red, "the contract passes before any work is done").at(number);
        return (!has_error).then_some(passes);
    }
    let made = |name: &str| is_made(looked.verification, number, name);
    let own = |name: &str| made(name) || is_own(looked.verification, name);
    if let Some(wrong) = wrong_reason(command, tried, &own, &made) {
        let shown = wrong.shown.map(|line| format!(" (it printed: {line})")).unwrap_or_default();
        let message = format!("the contract fails for the wrong reason: {}{shown}", wrong.why);
        let help = "it has to fail since the task is not done; name files that the step makes in `changes`, and use \
                    what is there";
        return Some(Finding::error(Rule::Red, message).at(number).help(help));
    }
    let path = missing(looked, number)?;
    let message = format!(
        "the contract looks at `{}`, which is not there and which no step up to it makes",
        escape(path)
    );
    let help = "name an existing file, or the step that makes it: its `changes` list it";
    Some(Finding::error(Rule::Red, message).at(number).help(help))
}

fn missing<'a>(looked: Looked<'a>, number: u32) -> Option<&'a String> {
    let graph = looked.verification.graph.as_ref()?;
    let node = graph.nodes().iter().find(|node| step_number(node) == Some(number))?;
    let gated = node.gated()?;
    let named = gated.contract_files.iter().filter(|path| gated.contract.command.contains(path.as_str()));
    let mut named = named.filter_map(|path| looked.missing.get(path));
    named.find(|path| !is_made(looked.verification, number, path))
}

fn step_number(node: &planctl_engine::Node) -> Option<u32> {
    if let NodeKind::Task(task) = &node.kind { Some(task.step) } else { None }
}

/// Says whether a step up to this one may make a file. Output names it as it stands in a copy of the workspace.
fn is_made(verification: &Verification, number: u32, name: &str) -> bool {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    if name.is_empty() {
        return false;
    }
    let steps =
        verification.tree.steps.iter().filter(|step| step.node.number.is_some_and(|own| own <= number));
    let listed = steps.flat_map(|step| step.node.attributes.changes.entries());
    let listed = listed.map(|path| path.value.as_str());
    let nodes = verification.graph.iter().flat_map(|graph| graph.nodes());
    let nodes = nodes.filter(|node| step_number(node).is_some_and(|own| own <= number));
    let free = nodes
        .filter_map(planctl_engine::Node::gated)
        .flat_map(|gated| gated.may_change.iter().map(String::as_str));
    listed.chain(free).any(|path| covers(path, name))
}

fn covers(path: &str, name: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path.is_empty() || path == "none" {
        return false;
    }
    if is_glob(path) {
        let Ok(glob) = Glob::parse(path) else { return false };
        let mut tails = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
        return glob.matches(name) || tails.any(|tail| glob.matches(tail));
    }
    let is_whole = name == path || name.ends_with(&format!("/{path}"));
    // A folder on the way to it is made with it.
    is_whole || path.starts_with(&format!("{name}/"))
}

/// Says whether a name is a program of the workspace that contracts name.
fn is_own(verification: &Verification, name: &str) -> bool {
    let nodes = verification.graph.iter().flat_map(|graph| graph.nodes());
    let files = nodes.filter_map(planctl_engine::Node::gated).flat_map(|gated| gated.contract_files.iter());
    files.into_iter().any(|path| {
        path.split('/')
            .any(|part| part == name || part.rsplit_once('.').is_some_and(|(stem, _)| stem == name))
    })
}

fn check_coverage(goal: &Goal, proposal: &Proposal, without: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    for trace in &proposal.requirements {
        let id = trace.id.trim();
        let is_listed = goal.requirements.iter().any(|own| own.id == id);
        match &trace.quote {
            None if !is_listed && !without.contains(id) => {
                let message = format!("there is no requirement `{}`", escape(id));
                findings.push(
                    Finding::error(Rule::GoalCoverage, message)
                        .help("add one by its words in the goal, as `quote`"),
                );
            }
            Some(quote) if !is_listed && !goal.says(quote) => {
                let message = format!(
                    "the goal does not say \"{}\"",
                    escape(&quote.chars().take(120).collect::<String>())
                );
                findings.push(Finding::error(Rule::GoalCoverage, message).help("quote the goal's own words"));
            }
            None | Some(_) => {}
        }
    }
    for traced in traced(goal, proposal, without) {
        let text = escape(&traced.text.chars().take(120).collect::<String>());
        if traced.steps.is_empty() {
            let message = format!("{} has no contract: \"{text}\"", traced.id);
            findings.push(
                Finding::error(Rule::GoalCoverage, message)
                    .help("name the steps whose contracts prove it, or add one"),
            );
        }
        for step in traced.steps.iter().filter(|step| step_of(proposal, **step).is_none()) {
            let message = format!("{} names step {step}, which is not there", traced.id);
            findings.push(Finding::error(Rule::GoalCoverage, message));
        }
    }
}

/// Tasks with fewer words than this leave the worker to guess.
const TASK_WORDS_MIN: usize = 3;

fn check_clarity(proposal: &Proposal, findings: &mut Vec<Finding>) {
    for question in &proposal.questions {
        let text = question.text.trim();
        let words = text.split_whitespace().count();
        if words < 2 {
            let message = format!("nobody can answer the question \"{}\"", escape(text));
            findings.push(
                Finding::error(Rule::Clarity, message).help("ask a whole question, in words of the goal"),
            );
        }
    }
    for (at, step) in proposal.steps.iter().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        if step.task.split_whitespace().count() < TASK_WORDS_MIN {
            let message = "the task says too little for a worker that knows nothing else".to_owned();
            findings.push(Finding::error(Rule::Clarity, message).at(number));
        }
        let same =
            proposal.steps[..at].iter().position(|other| other.contract.trim() == step.contract.trim());
        if let Some(same) = same {
            let message = format!("its contract is that of step {}", same + 1);
            findings.push(Finding::warning(Rule::Clarity, message).at(number));
        }
    }
}

fn check_injection(goal: &Goal, proposal: &Proposal, findings: &mut Vec<Finding>) {
    let smuggled: Vec<String> = goal.suspicions.iter().map(|one| one.text.to_lowercase()).collect();
    for (at, step) in proposal.steps.iter().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        for (field, text) in [("title", &step.title), ("task", &step.task), ("contract", &step.contract)] {
            let lower = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            let why = match smuggled.iter().find(|words| words.len() > 12 && lower.contains(words.as_str())) {
                Some(_) => Some("it repeats a sentence of the goal that speaks to a program".to_owned()),
                None if lower.contains("planctl") && field == "contract" => {
                    Some("a contract gives no commands to planctl".to_owned())
                }
                None => text.lines().find_map(suspicion),
            };
            if let Some(why) = why {
                let message = format!("the step's {field} is refused: {why}");
                findings.push(Finding::error(Rule::Injection, message).at(number));
            }
        }
    }
}
