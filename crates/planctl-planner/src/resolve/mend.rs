//! Mending: a call of a run failed, and a writer says which capability serves its intent instead, or with which arguments (M-40).
//!
//! A writer chooses among the capabilities that it is shown, and changes arguments that were known. A
//! result that the call takes from another step stays, and so does every other step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Candidate;
use super::bind::ArgumentValue;
use super::capability::Capability;
use super::catalog::Catalog;
use super::parameter::coerced;
use super::planned::{Action, Call, Decision, Planned, PlannedStep};
use crate::conversation::Answer;
use crate::fence::Fence;
use crate::prompt::Prompt;
use crate::proposal::any_object_in;
use crate::repair::{FailedRun, REPAIRS_MAX};

/// How often a writer is asked about one failure until its answer can be used.
const TRIES: usize = 3;
/// The most capabilities that a writer is shown beside the one that failed.
const OTHERS_MAX: usize = 5;

/// The failed calls of a goal, and how each was mended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Mending {
    mends: Vec<Mend>,
}

/// One failed call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Mend {
    failed: FailedRun,
    intent: String,
    /// The reasons why answers were not used.
    refused: Vec<String>,
    change: Option<Change>,
}

/// A writer's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    capability: String,
    #[serde(default)]
    arguments: BTreeMap<String, Value>,
}

/// The next thing to happen to a failed call.
#[derive(Clone, PartialEq, Debug)]
pub enum MendNext {
    /// A writer is asked.
    Ask(Prompt),
    /// Nothing: each failed call is mended.
    Nothing,
    /// A person has to say what should be different: no answer could be used, for these reasons.
    GivenUp(Vec<String>),
}

impl Mending {
    /// Takes a failed call; says whether it was not known yet.
    ///
    /// # Errors
    ///
    /// How often the goal was mended already, where that is as often as it may be.
    pub fn failed(&mut self, failed: FailedRun, intent: &str) -> Result<bool, usize> {
        let is_same = |mend: &Mend| mend.failed.run == failed.run && mend.failed.digest == failed.digest;
        if self.mends.iter().any(is_same) {
            return Ok(false);
        }
        if self.mends.len() >= REPAIRS_MAX {
            return Err(self.mends.len());
        }
        self.mends.push(Mend { failed, intent: intent.to_owned(), refused: Vec::new(), change: None });
        Ok(true)
    }

    /// Says whether one of the failures is this one.
    pub fn knows(&self, is_it: impl Fn(&FailedRun) -> bool) -> bool {
        self.mends.iter().any(|mend| is_it(&mend.failed))
    }

    /// Says what has to happen next; `near` are the capabilities that come nearest to the intent. It changes nothing.
    pub fn next(&self, planned: &Planned, catalog: &Catalog, near: &[Candidate]) -> MendNext {
        let Some(open) = self.open() else { return MendNext::Nothing };
        if open.refused.len() >= TRIES {
            return MendNext::GivenUp(open.refused.clone());
        }
        match failed_call(planned, &open.intent) {
            Some((step, call)) => MendNext::Ask(open.prompt(step, call, &offered(call, catalog, near))),
            None => MendNext::GivenUp(vec![format!("{} is not a call of a capability", open.intent)]),
        }
    }

    /// Hears a writer's answer.
    pub fn take_answer(&mut self, answer: &Answer, planned: &Planned, catalog: &Catalog, near: &[Candidate]) {
        let Some(open) = self.mends.iter_mut().find(|mend| mend.change.is_none()) else { return };
        let Some((_, call)) = failed_call(planned, &open.intent) else { return };
        match change_in(&answer.text, call, &offered(call, catalog, near)) {
            Ok(change) => open.change = Some(change),
            Err(why) => open.refused.push(why),
        }
    }

    /// Returns the intent of the call that is still to be mended.
    pub fn intent(&self) -> Option<&str> {
        self.open().map(|open| open.intent.as_str())
    }

    /// Returns what was decided for each intent whose call was mended.
    pub fn decisions(&self) -> BTreeMap<String, Decision> {
        let mut all: BTreeMap<&str, Change> = BTreeMap::new();
        for (intent, change) in
            self.mends.iter().filter_map(|mend| Some((&mend.intent, mend.change.as_ref()?)))
        {
            match all.get_mut(intent.as_str()).filter(|before| before.capability == change.capability) {
                Some(before) => before.arguments.extend(change.arguments.clone()),
                None => drop(all.insert(intent, change.clone())),
            }
        }
        let decided = |(intent, Change { capability, arguments }): (&str, Change)| {
            (intent.to_owned(), Decision::Mend { capability, arguments })
        };
        all.into_iter().map(decided).collect()
    }

    fn open(&self) -> Option<&Mend> {
        self.mends.iter().find(|mend| mend.change.is_none())
    }
}

impl Mend {
    fn prompt(&self, step: &PlannedStep, call: &Call, offered: &[&Capability]) -> Prompt {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["capability", "arguments"],
            "properties": {
                "capability": { "type": "string", "enum": offered.iter().map(|one| one.id()).collect::<Vec<_>>() },
                "arguments": { "type": "object", "description": "the arguments that are to be different, by name" },
            },
        });
        let arguments: Vec<String> = call
            .arguments
            .iter()
            .map(|argument| match &argument.value {
                ArgumentValue::Given(value) => format!("{}: {value}", argument.parameter),
                ArgumentValue::ResultOf(id, _) => {
                    format!("{}: the result of {id}, which stays", argument.parameter)
                }
            })
            .collect();
        let (capabilities, arguments) = (listed(offered), arguments.join("\n"));
        let fence = Fence::for_texts(&[&step.text, self.failed.failure_text(), &capabilities, &arguments]);
        let mut text = fence.enclose("the intent", &step.text);
        text.push_str(
            &fence.enclose(&format!("the arguments that {} was given", call.capability.id()), &arguments),
        );
        text.push_str(&fence.enclose("the failure", self.failed.failure_text()));
        text.push_str(&fence.enclose("the capabilities that there are", &capabilities));
        for why in &self.refused {
            text.push_str(&format!("An answer of yours was not used: {}.\n", fence.enclose("why", why)));
        }
        let system = format!(
            "You mend a call that failed. Say which of the capabilities that there are serves the intent, and which arguments \
             have to be different so that it does not fail again. Name no capability and no parameter that is not there. A \
             person decides whether the call is made.\n\n{}\n\nAnswer with one JSON object of this form and nothing else:\n{schema}",
            fence.rule()
        );
        Prompt { system, text, schema, name: "mend" }
    }
}

/// Finds the call that serves an intent.
fn failed_call<'a>(planned: &'a Planned, intent: &str) -> Option<(&'a PlannedStep, &'a Call)> {
    planned.steps.iter().find_map(|step| match &step.action {
        Action::Call(call) if step.id == intent => Some((step, call)),
        Action::Call(_)
        | Action::Ask { .. }
        | Action::Write { .. }
        | Action::Run { .. }
        | Action::Show { .. }
        | Action::SubPlan { .. } => None,
    })
}

/// Returns the capability that failed, as it is by now, and the nearest others.
fn offered<'a>(call: &Call, catalog: &'a Catalog, near: &[Candidate]) -> Vec<&'a Capability> {
    let own = call.capability.id();
    let others = near.iter().map(|one| &one.capability).filter(|name| **name != own).take(OTHERS_MAX);
    [&own].into_iter().chain(others).filter_map(|name| catalog.named(name)).collect()
}

fn listed(offered: &[&Capability]) -> String {
    let mut text = String::new();
    for capability in offered {
        text.push_str(&format!("{}: {}\n", capability.id(), capability.description));
        for parameter in &capability.parameters {
            let required = if parameter.is_required { ", required" } else { "" };
            let choices = match parameter.choices.as_slice() {
                [] => String::new(),
                some => format!(", one of {}", some.join(", ")),
            };
            let (name, kind, about) = (&parameter.name, parameter.kind.describe(), &parameter.about);
            text.push_str(&format!("  {name}: {kind}{required}{choices}. {about}\n"));
        }
    }
    text
}

/// Reads an answer; says why it can't be used, as the end of a sentence.
fn change_in(text: &str, call: &Call, offered: &[&Capability]) -> Result<Change, String> {
    let value = any_object_in(text, &["capability"]).map_err(|unread| unread.faults.join("; "))?;
    let change: Change =
        serde_json::from_value(value).map_err(|error| format!("it is not of the form ({error})"))?;
    let Some(capability) = offered.iter().find(|one| one.id() == change.capability) else {
        return Err(format!("there is no capability `{}`", change.capability));
    };
    let is_same = capability.id() == call.capability.id();
    let is_changed = |(name, value): (&String, &Value)| {
        call.arguments
            .iter()
            .all(|own| own.parameter != *name || own.value != ArgumentValue::Given(value.clone()))
    };
    if is_same && !change.arguments.iter().any(is_changed) {
        return Err("nothing of the call would be different".to_owned());
    }
    for (name, value) in &change.arguments {
        let wired = call.arguments.iter().find_map(|own| match &own.value {
            ArgumentValue::ResultOf(id, _) if is_same && own.parameter == *name => Some(id),
            ArgumentValue::ResultOf(..) | ArgumentValue::Given(_) => None,
        });
        if let Some(id) = wired {
            return Err(format!("`{name}` takes the result of {id}, which stays"));
        }
        match capability.parameter(name) {
            Some(parameter) => drop(coerced(parameter, value)?),
            None if capability.takes_others => {}
            None => return Err(format!("{} has no parameter `{name}`", capability.id())),
        }
    }
    Ok(change)
}
