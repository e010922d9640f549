//! The writer's answer: read within bounds from whatever stands around it, and every fault of its form named at once.

use std::collections::BTreeMap;

use planctl_lang::escape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The most steps of a draft; a person is to read it whole.
const STEPS_MAX: usize = 50;
/// The most questions of a draft.
const QUESTIONS_MAX: usize = 10;
const TITLE_CHARACTERS_MAX: usize = 120;
const TASK_BYTES_MAX: usize = 16 * 1024;
const CONTRACT_BYTES_MAX: usize = 4 * 1024;
const NAMES_MAX: usize = 40;

/// A plan as the writer proposes it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// The plan's purpose.
    pub title: String,
    /// The background for a reader.
    #[serde(default)]
    pub context: String,
    /// How sure the writer is, from 0 to 1.
    #[serde(default = "full_confidence")]
    pub confidence: f64,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Which steps prove each requirement.
    #[serde(default)]
    pub requirements: Vec<Trace>,
    /// The questions that a person has to decide.
    #[serde(default)]
    pub questions: Vec<Question>,
}

fn full_confidence() -> f64 {
    1.0
}

/// One step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Step {
    /// Its title.
    pub title: String,
    /// The role that does it.
    #[serde(default = "coder")]
    pub role: String,
    /// The work, in words.
    pub task: String,
    /// The command that decides.
    pub contract: String,
    /// The exit code that passes.
    #[serde(default)]
    pub exit_code: u8,
    /// Files and globs that its worker may change.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Files that its worker is given.
    #[serde(default)]
    pub reads: Vec<String>,
    /// The steps that come first; the one before where nothing is said.
    #[serde(default)]
    pub needs: Option<Vec<u32>>,
}

fn coder() -> String {
    "coder".to_owned()
}

/// A requirement and the steps whose contracts prove it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trace {
    /// `R1`
    pub id: String,
    /// The numbers of the steps.
    #[serde(default)]
    pub steps: Vec<u32>,
    /// The words of the goal, where the writer found a requirement that has no id yet.
    #[serde(default)]
    pub quote: Option<String>,
}

/// A question to the person.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Answers to choose from, where there are such.
    #[serde(default)]
    pub options: Vec<String>,
}

/// Why an answer is no proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    /// Each fault, in one line.
    pub faults: Vec<String>,
}

impl Unreadable {
    fn from_fault(fault: impl Into<String>) -> Unreadable {
        Unreadable { faults: vec![fault.into()] }
    }
}

impl Proposal {
    /// Reads an answer: JSON alone, JSON in a fence, or the first object in prose.
    ///
    /// # Errors
    ///
    /// [`Unreadable`], with every fault of the form.
    pub fn read(answer: &str) -> Result<Proposal, Unreadable> {
        let value = object_in(answer)?;
        let proposal: Proposal = serde_path_to_error::deserialize(value).map_err(|error| {
            let (path, what) = (error.path().to_string(), escape(&error.inner().to_string()));
            let at = if path == "." { String::new() } else { format!("{}: ", escape(&path)) };
            Unreadable::from_fault(format!("{at}{what}"))
        })?;
        let faults = proposal.faults();
        match faults.is_empty() {
            true => Ok(proposal),
            false => Err(Unreadable { faults }),
        }
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut over = |what: &str, size: usize, most: usize| {
            if size > most {
                faults.push(format!("{what} is too long: {size}, and at most {most} are read"));
            }
        };
        over("title", self.title.chars().count(), TITLE_CHARACTERS_MAX);
        over("context", self.context.len(), TASK_BYTES_MAX);
        over("steps", self.steps.len(), STEPS_MAX);
        over("questions", self.questions.len(), QUESTIONS_MAX);
        over("requirements", self.requirements.len(), 4 * NAMES_MAX);
        for (at, step) in self.steps.iter().enumerate().take(STEPS_MAX) {
            let of = |field: &str| format!("steps[{at}].{field}");
            over(&of("title"), step.title.chars().count(), TITLE_CHARACTERS_MAX);
            over(&of("task"), step.task.len(), TASK_BYTES_MAX);
            over(&of("contract"), step.contract.len(), CONTRACT_BYTES_MAX);
            over(&of("changes"), step.changes.len(), NAMES_MAX);
            over(&of("reads"), step.reads.len(), NAMES_MAX);
            over(&of("needs"), step.needs.as_ref().map_or(0, Vec::len), STEPS_MAX);
        }
        let texts = [("title", self.title.as_str())];
        let mut empty: Vec<String> = texts
            .iter()
            .filter(|(_, text)| text.trim().is_empty())
            .map(|(name, _)| format!("{name} is empty"))
            .collect();
        if self.steps.is_empty() {
            empty.push("steps is empty".to_owned());
        }
        for (at, step) in self.steps.iter().enumerate() {
            let fields = [("title", &step.title), ("task", &step.task), ("contract", &step.contract)];
            let blank = fields.iter().filter(|(_, text)| text.trim().is_empty());
            empty.extend(blank.map(|(name, _)| format!("steps[{at}].{name} is empty")));
        }
        if !(0.0..=1.0).contains(&self.confidence) {
            empty.push("confidence is a number from 0 to 1".to_owned());
        }
        faults.extend(empty);
        faults
    }

    /// Returns the steps that prove each requirement, by its id.
    pub(crate) fn traces(&self) -> BTreeMap<&str, &Trace> {
        self.requirements.iter().map(|trace| (trace.id.trim(), trace)).collect()
    }
}

/// Finds the object in an answer.
pub(crate) fn object_in(answer: &str) -> Result<Value, Unreadable> {
    any_object_in(answer, &["steps", "verdict", "title"])
}

/// Finds the object in an answer that has one of these fields.
pub(crate) fn any_object_in(answer: &str, keys: &[&str]) -> Result<Value, Unreadable> {
    if answer.len() > ANSWER_BYTES_MAX {
        let size = answer.len();
        return Err(Unreadable::from_fault(format!(
            "the answer has {size} bytes, and at most {ANSWER_BYTES_MAX} are read"
        )));
    }
    let trimmed = answer.trim();
    if trimmed.is_empty() {
        return Err(Unreadable::from_fault("the answer is empty"));
    }
    let mut reason = None;
    // An object that holds others is found before them, since it begins before them.
    let mut from = 0;
    while let Some(at) = trimmed[from..].find('{').map(|at| at + from) {
        let mut values = serde_json::Deserializer::from_str(&trimmed[at..]).into_iter::<Value>();
        match values.next() {
            // Other objects may stand in the prose before it: an example, a file's content.
            Some(Ok(value @ Value::Object(_))) if keys.iter().any(|key| value.get(key).is_some()) => {
                return Ok(value);
            }
            Some(Ok(_)) => from = at + values.byte_offset().max(1),
            Some(Err(error)) => {
                reason.get_or_insert_with(|| escape(&error.to_string()));
                // One attempt a line is enough: an answer of opening braces would cost its square.
                from = trimmed[at..].find('\n').map_or(trimmed.len(), |end| at + end + 1);
            }
            None => break,
        }
    }
    Err(Unreadable::from_fault(match reason {
        Some(reason) => format!("the answer is not JSON: {reason}"),
        None => "the answer has no JSON object with the fields that were asked for".to_owned(),
    }))
}

/// Returns the JSON Schema of an answer, as endpoints take it for structured output.
pub fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let list = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let closed = |properties: Value| {
        let required: Vec<&String> = properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
        let required = json!(required);
        json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
    };
    let numbers =
        |about: &str| json!({ "type": "array", "items": { "type": "integer" }, "description": about });
    closed(json!({
        "title": text("what the plan is for, in a few words"),
        "context": text("what a reader has to know; may be empty"),
        "confidence": { "type": "number", "description": "how sure you are that the plan reaches the goal, 0 to 1" },
        "steps": { "type": "array", "items": closed(json!({
            "title": text("what is done, in a few words"),
            "role": text("the role that does it, usually coder"),
            "task": text("what the worker is told to do; it knows nothing but this"),
            "contract": text("a bash command that fails today and passes once the task is done"),
            "exit_code": { "type": "integer", "description": "the exit code that passes, usually 0" },
            "changes": list("files and globs that the worker may change or make"),
            "reads": list("existing files that the worker is given; may be empty"),
            "needs": numbers("the numbers of the steps that must pass first; empty for none"),
        })) },
        "requirements": { "type": "array", "items": closed(json!({
            "id": text("R1, R2 … as listed"),
            "steps": numbers("the steps whose contracts prove it"),
            "quote": { "type": ["string", "null"], "description": "null; for a requirement that is not listed, its words in the goal" },
        })) },
        "questions": { "type": "array", "items": closed(json!({
            "text": text("what a person has to decide"),
            "options": list("answers to choose from; may be empty"),
        })) },
    }))
}
