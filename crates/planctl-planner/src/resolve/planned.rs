//! The steps of a goal: questions and calls in an order in which each result is there when it is needed, filters merged into the
//! calls that can filter by themselves, and what is still to be decided.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bind::{Argument, ArgumentValue, Binding, bind, subject};
use super::capability::{ASK_PERSON, Capability};
use super::collapse::collapsed;
use super::parameter::{Parameter, coerced};
use super::words::Wording;
use super::{Candidate, Resolution, Resolver, Served, Source, entry_of, needs_capability};
use crate::intents::{Intent, IntentKind, own_question, question_of};

/// Verbs of intents that show a result.
const SHOWING: [&str; 5] = ["show", "display", "print", "present", "output"];
/// Words for results, whatever they are about.
const RESULTS: [&str; 6] = ["result", "outcome", "answer", "item", "list", "output"];

/// A goal whose intents were resolved.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Planned {
    /// The steps, each after those whose results it needs.
    pub steps: Vec<PlannedStep>,
    /// Intents for which a capability is still to be decided.
    pub open: Vec<Open>,
    /// Reasons why a call can't be made.
    pub faults: Vec<Remark>,
    /// Remarks that a person should know.
    pub warnings: Vec<Remark>,
    /// How each capability was found, by intent.
    pub found: BTreeMap<String, Resolution>,
}

/// One step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The intent; that of a question which nobody wrote is `I2/owner`.
    pub id: String,
    /// Further intents that it serves: filters that were merged into it.
    pub merged: Vec<String>,
    /// The intent in words.
    pub text: String,
    /// Its work.
    pub action: Action,
    /// The steps whose results it needs, by their intents.
    pub needs: Vec<String>,
}

/// The work of a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A person is asked.
    Ask {
        /// The question.
        question: String,
    },
    /// A capability is called.
    Call(Call),
    /// An agent writes it, since no capability does it; a person approved that (M-39a).
    Write {
        /// The task of the agent.
        task: String,
    },
    /// A command of a person's own does it.
    Run {
        /// The command.
        command: String,
    },
    /// A result that is there is shown.
    Show {
        /// The step whose result it is, by its intent.
        of: String,
    },
    /// A plan of the library does it, in a run of its own that waits for an approval of its own; its output is the result.
    SubPlan {
        /// The entry.
        entry: String,
        /// How well it serves, from 0 to 1.
        score: f64,
    },
}

/// A call of a capability.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The capability as it was when the goal was resolved.
    pub capability: Capability,
    /// How well it serves, from 0 to 1.
    pub score: f64,
    /// The strategy that found it.
    pub source: Source,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// An intent for which a person has to decide.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Open {
    /// The intent.
    pub intent: Intent,
    /// Says that several serve it equally well; otherwise none serves it, and these are the nearest.
    pub is_unclear: bool,
    /// The candidates.
    pub candidates: Vec<Candidate>,
}

/// A remark about an intent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Remark {
    /// The intent.
    pub intent: String,
    /// The remark, a sentence.
    pub message: String,
}

/// A person's decision for an intent that no strategy resolved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This capability serves it.
    Use(String),
    /// An agent writes it, with this task.
    Write(String),
    /// This command does it.
    Run(String),
    /// A call of a run failed: this capability serves it, with these arguments in place of those that it would be given (M-40).
    Mend {
        /// The capability.
        capability: String,
        /// The arguments that are different.
        arguments: BTreeMap<String, Value>,
    },
}

impl Decision {
    /// Returns the capability that it names.
    fn capability(&self) -> Option<&str> {
        match self {
            Decision::Use(capability) | Decision::Mend { capability, .. } => Some(capability),
            Decision::Write(_) | Decision::Run(_) => None,
        }
    }
}

/// Resolves the intents of a goal and arranges them as steps. Intents that became parts are served by their parts.
pub fn planned(
    intents: &[Intent],
    resolver: &Resolver<'_>,
    decisions: &BTreeMap<String, Decision>,
) -> Planned {
    let mut planning = Planning { resolver, decisions, served: BTreeMap::new(), planned: Planned::default() };
    let leaves = leaves(intents);
    for intent in &leaves {
        planning.add_intent(intent, &leaves);
    }
    planning.ask_for_the_unsaid();
    planning.name_questions(&leaves);
    planning.planned.steps = sort_by_needs(std::mem::take(&mut planning.planned.steps));
    planning.planned
}

/// Returns the intents without parts, each with the needs that its whole had, and needs of a whole as those of its last part.
fn leaves(intents: &[Intent]) -> Vec<Intent> {
    let whole = |id: &Option<String>| intents.iter().find(|own| Some(&own.id) == id.as_ref());
    let childless = intents.iter().filter(|own| last_part(intents, &own.id).is_none());
    childless
        .map(|own| {
            let mut needs = own.needs.clone();
            let mut above = whole(&own.part_of);
            while let (true, Some(intent)) = (needs.is_empty(), above) {
                needs.clone_from(&intent.needs);
                above = whole(&intent.part_of);
            }
            let mut needs: Vec<String> = needs.iter().map(|need| last_leaf(intents, need)).collect();
            needs.dedup();
            Intent { needs, ..own.clone() }
        })
        .collect()
}

fn last_part<'a>(intents: &'a [Intent], id: &str) -> Option<&'a Intent> {
    intents.iter().rfind(|own| own.part_of.as_deref() == Some(id))
}

fn last_leaf(intents: &[Intent], id: &str) -> String {
    let mut at = id;
    while let Some(part) = last_part(intents, at) {
        at = &part.id;
    }
    at.to_owned()
}

struct Planning<'a> {
    resolver: &'a Resolver<'a>,
    decisions: &'a BTreeMap<String, Decision>,
    /// The step that serves each intent, by its own intent.
    served: BTreeMap<String, String>,
    planned: Planned,
}

impl Planning<'_> {
    fn add_intent(&mut self, intent: &Intent, all: &[Intent]) {
        if !needs_capability(intent) {
            let question = question_of(intent.topic.as_deref().unwrap_or(&intent.text));
            self.push(intent, Action::Ask { question });
            return;
        }
        if let Some(of) = self.find_shown_step(intent, all) {
            return self.push(intent, Action::Show { of });
        }
        if intent.kind == IntentKind::Transform && self.merge(intent, all) {
            return;
        }
        let decision = self.decisions.get(&intent.id);
        if let Some(name) = decision.and_then(Decision::capability)
            && let Some(entry) = entry_of(name)
        {
            return self.add_sub_plan(intent, entry, 1.0);
        }
        match decision {
            Some(Decision::Write(task)) => return self.push(intent, Action::Write { task: task.clone() }),
            Some(Decision::Run(command)) => {
                return self.push(intent, Action::Run { command: command.clone() });
            }
            Some(Decision::Use(_) | Decision::Mend { .. }) | None => {}
        }
        let named = decision.and_then(Decision::capability);
        if let Some(name) = named.filter(|name| self.resolver.catalog.named(name).is_none()) {
            return self.add_remark(intent, format!("there is no capability `{name}`"));
        }
        let chosen = match named {
            Some(name) => Intent { tool: Some(name.to_owned()), ..intent.clone() },
            None => intent.clone(),
        };
        let found = self.resolver.find(&chosen);
        let served = found.served.clone();
        self.planned.found.insert(intent.id.clone(), found);
        let (best, source) = match served {
            Served::By(best, source) => (best, source),
            Served::Unclear(candidates) => return self.leave_open(intent, true, candidates),
            Served::Missing(candidates) => return self.leave_open(intent, false, candidates),
        };
        if let Some(entry) = entry_of(&best.capability) {
            return self.add_sub_plan(intent, entry, best.score);
        }
        let Some(capability) = self.resolver.catalog.named(&best.capability).cloned() else { return };
        let needs: Vec<Intent> = intent.needs.iter().filter_map(|need| self.result_of(need, all)).collect();
        let needs: Vec<&Intent> = needs.iter().collect();
        let binding = bind(intent, &capability, &needs);
        self.call(
            intent,
            Call { capability, score: best.score, source, arguments: Vec::new() },
            binding,
            &needs,
        );
    }

    /// Returns an intent as what it gives: results that were filtered or sorted are still about what they were about.
    fn result_of(&self, need: &str, all: &[Intent]) -> Option<Intent> {
        let find = |id: &str| all.iter().find(|own| own.id == id);
        let own = find(need)?;
        let mut source = own;
        while source.kind == IntentKind::Transform {
            let mut results = source.needs.iter().filter_map(|need| find(need));
            let Some(before) = results.find(|before| before.kind != IntentKind::Ask) else { break };
            source = before;
        }
        Some(Intent { id: own.id.clone(), ..source.clone() })
    }

    /// Finds the step whose result an intent shows, where it does nothing else: no capability is looked for then.
    fn find_shown_step(&self, intent: &Intent, all: &[Intent]) -> Option<String> {
        let is_free = intent.tool.is_none() && intent.parameters.is_empty();
        let text = intent.text.trim();
        let (verb, about) = text.split_once(' ').unwrap_or((text, ""));
        let is_shown = SHOWING.contains(&verb.to_lowercase().as_str());
        if !is_free || !is_shown || self.decisions.contains_key(&intent.id) {
            return None;
        }
        let mut results = intent.needs.iter().rev().filter_map(|need| self.result_of(need, all));
        let last = results.find(|need| need.kind != IntentKind::Ask)?;
        let known = subject(&last);
        let is_about = |noun: &String| known.contains(noun) || RESULTS.contains(&noun.as_str());
        Wording::read_intent(about).nouns.iter().all(is_about).then(|| self.step_of(&last.id))
    }

    fn add_sub_plan(&mut self, intent: &Intent, entry: &str, score: f64) {
        if !intent.needs.is_empty() {
            let needs = intent.needs.join(", ");
            let message =
                format!("the plan {entry} of the library comes after {needs}, and is given no result");
            self.planned.warnings.push(Remark { intent: intent.id.clone(), message });
        }
        self.push(intent, Action::SubPlan { entry: entry.to_owned(), score });
    }

    fn call(&mut self, intent: &Intent, mut call: Call, binding: Binding, needs: &[&Intent]) {
        for fault in binding.faults {
            self.add_remark(intent, fault);
        }
        for id in &binding.unwired {
            let is_answer = needs.iter().any(|need| need.id == *id && need.kind == IntentKind::Ask);
            let what = if is_answer { "the answer to" } else { "the result of" };
            let message = format!("no parameter of {} takes {what} {id}", call.capability.id());
            match is_answer {
                true => self.add_remark(intent, message),
                false => self.planned.warnings.push(Remark { intent: intent.id.clone(), message }),
            }
        }
        call.arguments = binding.arguments;
        if let Some(Decision::Mend { arguments, .. }) = self.decisions.get(&intent.id) {
            self.mend(intent, &mut call, arguments);
        }
        // A question to a person is a step of its own kind.
        if call.capability.server.is_none() && call.capability.name == ASK_PERSON {
            let asked = call.arguments.iter().find_map(|argument| match &argument.value {
                ArgumentValue::Given(Value::String(question)) => Some(question.clone()),
                ArgumentValue::Given(_) | ArgumentValue::ResultOf(..) => None,
            });
            return self.push(intent, Action::Ask { question: asked.unwrap_or_else(|| intent.text.clone()) });
        }
        if call.capability.server.is_none() && call.capability.command.is_none() {
            let message =
                format!("{} has no server and no command, so nothing can call it", call.capability.id());
            self.add_remark(intent, message);
        }
        self.push(intent, Action::Call(call));
    }

    /// Gives a call that failed the arguments that are to be different.
    fn mend(&mut self, intent: &Intent, call: &mut Call, arguments: &BTreeMap<String, Value>) {
        for (name, value) in arguments {
            let fitted = match call.capability.parameter(name) {
                Some(parameter) => coerced(parameter, value),
                None => Ok(value.clone()),
            };
            match fitted {
                Ok(value) => {
                    call.arguments.retain(|own| own.parameter != *name);
                    call.arguments.push(Argument {
                        parameter: name.clone(),
                        value: ArgumentValue::Given(value),
                        why: "a call with another value failed".to_owned(),
                    });
                }
                Err(fault) => self.add_remark(intent, fault),
            }
        }
    }

    /// Merges a filter into the call whose results it filters, where that call has a parameter for it (M-23).
    fn merge(&mut self, intent: &Intent, all: &[Intent]) -> bool {
        let needs: Vec<String> = intent.needs.iter().map(|need| self.step_of(need)).collect();
        let target =
            needs.iter().find(|id| self.step(id).is_some_and(|step| matches!(step.action, Action::Call(_))));
        let Some(target) = target.cloned() else { return false };
        let others: Vec<&String> = needs.iter().filter(|id| **id != target).collect();
        // A filter that is asked for after the results were seen can't be part of the call that gives them.
        if others.iter().any(|other| self.depends(other, &target)) {
            return false;
        }
        let asked: Vec<&Intent> =
            others.iter().filter_map(|other| all.iter().find(|own| own.id == **other)).collect();
        let Some(step) = self.planned.steps.iter_mut().find(|step| step.id == target) else { return false };
        let Action::Call(call) = &mut step.action else { return false };
        // A writer that names another tool does not mean this one.
        let is_meant = |tool: &String| *tool == call.capability.id() || *tool == call.capability.name;
        if !intent.tool.iter().all(is_meant) {
            return false;
        }
        let Some(arguments) = collapsed(intent, &asked, call) else { return false };
        call.arguments.extend(arguments);
        step.merged.push(intent.id.clone());
        let more: Vec<String> =
            others.into_iter().filter(|other| !step.needs.contains(other)).cloned().collect();
        step.needs.extend(more);
        self.served.insert(intent.id.clone(), target);
        true
    }

    /// Adds a question for each required parameter that nothing gives; one question serves all calls that ask the same.
    fn ask_for_the_unsaid(&mut self) {
        let mut questions: BTreeMap<String, PlannedStep> = BTreeMap::new();
        for step in &mut self.planned.steps {
            let Action::Call(call) = &mut step.action else { continue };
            let has = |call: &Call, name: &str| call.arguments.iter().any(|own| own.parameter == name);
            let parameters = call.capability.parameters.clone();
            for parameter in parameters.iter().filter(|own| own.is_required) {
                if has(call, &parameter.name) || call.capability.server.is_none() {
                    continue;
                }
                let question = questions.entry(parameter.name.clone()).or_insert_with(|| PlannedStep {
                    id: format!("{}/{}", step.id, parameter.name),
                    merged: Vec::new(),
                    text: format!("ask for {}", parameter.name),
                    action: Action::Ask { question: question(parameter) },
                    needs: Vec::new(),
                });
                call.arguments.push(Argument {
                    parameter: parameter.name.clone(),
                    value: ArgumentValue::ResultOf(question.id.clone(), parameter.kind.clone()),
                    why: "a person is asked".to_owned(),
                });
                step.needs.push(question.id.clone());
            }
        }
        self.planned.steps.splice(0..0, questions.into_values());
    }

    /// Words questions by the parameter that takes their answer, where it has a question of its own (M-31).
    fn name_questions(&mut self, all: &[Intent]) {
        let steps = self.planned.steps.clone();
        for step in &mut self.planned.steps {
            let is_written = all.iter().any(|intent| intent.id == step.id && intent.kind == IntentKind::Ask);
            let Action::Ask { question } = &mut step.action else { continue };
            let takes = |argument: &&Argument| matches!(&argument.value, ArgumentValue::ResultOf(id, _) if *id == step.id);
            let arguments = steps.iter().filter_map(|other| match &other.action {
                Action::Call(call) => Some(&call.arguments),
                Action::Ask { .. }
                | Action::Write { .. }
                | Action::Run { .. }
                | Action::Show { .. }
                | Action::SubPlan { .. } => None,
            });
            let takers: BTreeSet<&str> =
                arguments.flatten().filter(takes).map(|argument| argument.parameter.as_str()).collect();
            if let (Some(own), 1, true) =
                (takers.first().and_then(|name| own_question(name)), takers.len(), is_written)
            {
                own.clone_into(question);
            }
        }
    }

    fn leave_open(&mut self, intent: &Intent, is_unclear: bool, candidates: Vec<Candidate>) {
        self.planned.open.push(Open { intent: intent.clone(), is_unclear, candidates });
    }

    fn add_remark(&mut self, intent: &Intent, message: String) {
        self.planned.faults.push(Remark { intent: intent.id.clone(), message });
    }

    fn push(&mut self, intent: &Intent, action: Action) {
        let mut needs: Vec<String> = Vec::new();
        for need in intent.needs.iter().map(|need| self.step_of(need)) {
            if !needs.contains(&need) && self.step(&need).is_some() {
                needs.push(need);
            }
        }
        let mut step = PlannedStep {
            id: intent.id.clone(),
            merged: Vec::new(),
            text: intent.text.clone(),
            action,
            needs,
        };
        if let Action::Call(call) = &mut step.action {
            for argument in &mut call.arguments {
                if let ArgumentValue::ResultOf(id, _) = &mut argument.value {
                    *id = self.step_of(id);
                }
            }
        }
        self.planned.steps.push(step);
    }

    fn step_of(&self, intent: &str) -> String {
        self.served.get(intent).cloned().unwrap_or_else(|| intent.to_owned())
    }

    fn step(&self, id: &str) -> Option<&PlannedStep> {
        self.planned.steps.iter().find(|step| step.id == id)
    }

    fn depends(&self, id: &str, on: &str) -> bool {
        let mut open = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            if at == on {
                return true;
            }
            if seen.insert(at) {
                open.extend(self.step(at).into_iter().flat_map(|step| step.needs.iter().map(String::as_str)));
            }
        }
        false
    }
}

fn question(parameter: &Parameter) -> String {
    let about = parameter.about.trim().trim_end_matches('.');
    let choices = parameter.choices.join(", ");
    match (own_question(&parameter.name), about.is_empty(), choices.is_empty()) {
        (Some(own), _, _) => own.to_owned(),
        (None, true, true) => question_of(&parameter.name),
        (None, false, true) => format!("{} ({about})", question_of(&parameter.name)),
        (None, _, false) => format!("{} One of {choices}.", question_of(&parameter.name)),
    }
}

/// Puts each step behind those that it needs, and otherwise leaves them as they stand.
fn sort_by_needs(mut steps: Vec<PlannedStep>) -> Vec<PlannedStep> {
    let mut ordered: Vec<PlannedStep> = Vec::with_capacity(steps.len());
    while !steps.is_empty() {
        let is_ready = |step: &PlannedStep| {
            let others = steps.iter().filter(|other| other.id != step.id);
            others.clone().all(|other| !step.needs.contains(&other.id))
        };
        // Intents need earlier ones alone, and a filter is merged only where that makes no circle.
        let at = steps.iter().position(is_ready).unwrap_or(0);
        ordered.push(steps.remove(at));
    }
    ordered
}
