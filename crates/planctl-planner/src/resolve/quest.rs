//! The search for a capability that is missing: discovery first, then one of four ways that a person chooses (M-38, M-39).
//!
//! A [`Quest`] is a fold of what it heard, as a conversation is: it says what happens next and does nothing itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bind::subject;
use super::planned::Decision;
use super::{Candidate, Open};
use crate::conversation::Answer;
use crate::fence::Fence;
use crate::intents::Intent;
use crate::prompt::Prompt;
use crate::proposal::any_object_in;

/// So often is a quest asked before it ends without a result.
const EVENTS_MAX: usize = 24;
/// How often a model is asked for an answer that can be read.
const MODEL_TRIES: u32 = 2;
/// The answer that takes none of the candidates.
const NONE: &str = "None of the above";

/// The search for a capability.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Quest {
    intent: Intent,
    is_unclear: bool,
    candidates: Vec<Candidate>,
    events: Vec<QuestEvent>,
}

/// Something that a quest heard.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestEvent {
    /// Discovery looked, and found these.
    Discovered(Vec<Candidate>),
    /// A person answered.
    Answered(String),
    /// A model answered.
    Said(Answer),
}

/// The next thing to do.
#[derive(Clone, PartialEq, Debug)]
pub enum QuestNext {
    /// Look for capabilities: in all lists, or where names match one of these words.
    Discover(Vec<String>),
    /// Ask a person.
    Ask(QuestAsk),
    /// Ask a model.
    AskModel(Prompt),
    /// It is decided how the intent is served.
    Decided(Decision),
    /// Nobody found a way.
    GivenUp,
}

/// A question to a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuestAsk {
    /// Its id; an answer names it, so that an answer which is given twice counts once.
    pub id: String,
    /// Its kind.
    pub kind: QuestAskKind,
    /// The question.
    pub text: String,
    /// The answers to choose from, by number; without any, words are the answer.
    pub options: Vec<String>,
}

/// The kind of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuestAskKind {
    /// Which candidate is meant (M-39b).
    Alternatives,
    /// How it should be done (M-39b).
    Implementation,
    /// Where to look (M-39d).
    Discovery,
    /// The command that does it.
    Command,
    /// Whether to follow a model's proposal (M-39c).
    Hint,
    /// Whether an agent may write it (M-39a).
    SynthesisApproval,
}

impl QuestAskKind {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            QuestAskKind::Alternatives => "alternatives",
            QuestAskKind::Implementation => "implementation",
            QuestAskKind::Discovery => "discovery",
            QuestAskKind::Command => "command",
            QuestAskKind::Hint => "hint",
            QuestAskKind::SynthesisApproval => "synthesis_approval",
        }
    }
}

/// Where a quest is.
enum At {
    Discovering(Vec<String>),
    Choosing(Vec<Candidate>),
    Implementation,
    Naming,
    Command,
    Modelling(u32),
    Hinted(Box<ModelHint>),
    Approving(String),
    Decided(Decision),
    GivenUp,
}

/// A model's proposal (M-39c).
#[derive(Clone, PartialEq, Debug, Deserialize)]
struct ModelHint {
    #[serde(default)]
    server: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    implementation: String,
    #[serde(default)]
    input_schema: Value,
    #[serde(default)]
    output_schema: Value,
    #[serde(default)]
    permissions: Vec<String>,
}

impl Quest {
    /// Begins one for an intent that no strategy resolved.
    pub fn new(open: &Open) -> Quest {
        Quest {
            intent: open.intent.clone(),
            is_unclear: open.is_unclear,
            candidates: open.candidates.clone(),
            events: Vec::new(),
        }
    }

    /// Returns the intent.
    pub fn intent(&self) -> &Intent {
        &self.intent
    }

    /// Hears something.
    pub fn apply_event(&mut self, event: QuestEvent) {
        self.events.push(event);
    }

    /// Hears an answer to the question of this id. An answer that was heard already changes nothing.
    ///
    /// # Errors
    ///
    /// The id of the question that is open, where the answer is to another one.
    pub fn take_answer(&mut self, id: &str, text: &str) -> Result<(), String> {
        let before = self.events.iter().filter_map(|event| match event {
            QuestEvent::Answered(text) => Some(text.as_str()),
            QuestEvent::Discovered(_) | QuestEvent::Said(_) => None,
        });
        let is_known = before.enumerate().any(|(at, own)| self.ask_id(at + 1) == id && own == text.trim());
        if is_known {
            return Ok(());
        }
        match self.next() {
            QuestNext::Ask(ask) if ask.id == id => {
                self.events.push(QuestEvent::Answered(text.trim().to_owned()));
                Ok(())
            }
            QuestNext::Ask(ask) => Err(ask.id),
            QuestNext::Discover(_) | QuestNext::AskModel(_) | QuestNext::Decided(_) | QuestNext::GivenUp => {
                Err(String::new())
            }
        }
    }

    /// Says what has to happen next. It changes nothing.
    pub fn next(&self) -> QuestNext {
        let at = self.at();
        let ask = |kind, text: String, options: Vec<String>| {
            QuestNext::Ask(QuestAsk { id: self.ask_id(self.answers() + 1), kind, text, options })
        };
        match at {
            At::Discovering(patterns) => QuestNext::Discover(patterns),
            At::Choosing(candidates) => {
                let text = match self.is_unclear {
                    true => format!("Several capabilities serve \"{}\". Which is meant?", self.intent.text),
                    false => {
                        format!("I couldn't find a capability for \"{}\". Did you mean:", self.intent.text)
                    }
                };
                let options = candidates.into_iter().map(|one| one.capability).chain([NONE.to_owned()]);
                ask(QuestAskKind::Alternatives, text, options.collect())
            }
            At::Implementation => {
                let text = format!("How would you like \"{}\" to be done?", self.intent.text);
                ask(QuestAskKind::Implementation, text, WAYS.map(str::to_owned).to_vec())
            }
            At::Naming => {
                let text = format!(
                    "I couldn't discover a capability for \"{}\". Which servers should I check? (Enter server names, \
                     domains, or patterns)",
                    self.intent.text
                );
                ask(QuestAskKind::Discovery, text, Vec::new())
            }
            At::Command => {
                let text = format!(
                    "Which command does \"{}\"? Its exit code says whether it was done.",
                    self.intent.text
                );
                ask(QuestAskKind::Command, text, Vec::new())
            }
            At::Modelling(_) => QuestNext::AskModel(self.prompt()),
            At::Hinted(hint) => {
                let (text, options) = self.hint_ask(&hint);
                ask(QuestAskKind::Hint, text, options)
            }
            At::Approving(task) => {
                let text = format!("May an agent write this, as a step of the plan?\n\n{task}");
                ask(QuestAskKind::SynthesisApproval, text, vec!["Yes".to_owned(), "No".to_owned()])
            }
            At::Decided(decision) => QuestNext::Decided(decision),
            At::GivenUp => QuestNext::GivenUp,
        }
    }

    fn ask_id(&self, number: usize) -> String {
        format!("{}-{number}", self.intent.id)
    }

    fn answers(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, QuestEvent::Answered(_))).count()
    }

    fn at(&self) -> At {
        let mut at = match self.is_unclear {
            true => At::Choosing(self.candidates.clone()),
            false => At::Discovering(Vec::new()),
        };
        for event in &self.events {
            at = self.next_state(at, event);
        }
        let is_over = matches!(at, At::Decided(_));
        if self.events.len() >= EVENTS_MAX && !is_over { At::GivenUp } else { at }
    }

    /// Returns where it is after one more event; what does not fit the state changes nothing.
    fn next_state(&self, at: At, event: &QuestEvent) -> At {
        match (at, event) {
            (At::Discovering(patterns), QuestEvent::Discovered(found)) => {
                self.state_after_discovery(&patterns, found)
            }
            (At::Choosing(candidates), QuestEvent::Answered(text)) => {
                let names: Vec<&str> =
                    candidates.iter().map(|one| one.capability.as_str()).chain([NONE]).collect();
                match chosen(&names, text) {
                    Some(at) if at < candidates.len() => {
                        At::Decided(Decision::Use(candidates[at].capability.clone()))
                    }
                    Some(_) => At::Implementation,
                    None => At::Choosing(candidates),
                }
            }
            (At::Implementation, QuestEvent::Answered(text)) => match chosen(&WAYS, text) {
                Some(0) => At::Approving(self.pure_task(None)),
                Some(1) => At::Naming,
                Some(2) => At::Modelling(0),
                Some(3) => At::Command,
                Some(_) | None => At::Implementation,
            },
            (At::Naming, QuestEvent::Answered(text)) => {
                let words = text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
                let patterns: Vec<String> = words.map(str::to_owned).collect();
                if patterns.is_empty() { At::Naming } else { At::Discovering(patterns) }
            }
            (At::Command, QuestEvent::Answered(text)) if !text.is_empty() => {
                At::Decided(Decision::Run(text.clone()))
            }
            (At::Modelling(tries), QuestEvent::Said(answer)) => match hint_in(&answer.text) {
                Some(hint) => At::Hinted(Box::new(hint)),
                None if tries + 1 < MODEL_TRIES => At::Modelling(tries + 1),
                None => At::Implementation,
            },
            (At::Hinted(hint), QuestEvent::Answered(text)) => {
                let (_, options) = self.hint_ask(&hint);
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                match chosen(&options, text).and_then(|at| options.get(at)) {
                    Some(taken) if taken.starts_with(LOOK) => At::Discovering(vec![hint.server, hint.tool]),
                    Some(taken) if taken.starts_with(WRITE) => At::Approving(self.pure_task(Some(&hint))),
                    Some(_) => At::Implementation,
                    None => At::Hinted(hint),
                }
            }
            (At::Approving(task), QuestEvent::Answered(text)) => match chosen(&["Yes", "No"], text) {
                Some(0) => At::Decided(Decision::Write(task)),
                Some(_) => At::Implementation,
                None => At::Approving(task),
            },
            (at, QuestEvent::Discovered(_) | QuestEvent::Answered(_) | QuestEvent::Said(_)) => at,
        }
    }

    fn state_after_discovery(&self, patterns: &[String], found: &[Candidate]) -> At {
        match (found, patterns.is_empty()) {
            ([only], _) => At::Decided(Decision::Use(only.capability.clone())),
            ([], true) if self.candidates.is_empty() => At::Implementation,
            ([], true) => At::Choosing(self.candidates.clone()),
            ([], false) => At::Implementation,
            (several, _) => At::Choosing(several.to_vec()),
        }
    }

    /// Writes the task of an agent that makes the capability out of nothing but a language's own library (M-39a).
    fn pure_task(&self, hint: Option<&ModelHint>) -> String {
        let words = subject(&self.intent);
        let name = super::words::slug(&self.intent.text);
        let properties: serde_json::Map<String, Value> =
            words.iter().map(|word| (word.clone(), json!({}))).collect();
        let or =
            |own: Option<&Value>, other: Value| own.filter(|own| own.is_object()).cloned().unwrap_or(other);
        let input =
            or(hint.map(|hint| &hint.input_schema), json!({ "type": "object", "properties": properties }));
        let output = or(hint.map(|hint| &hint.output_schema), json!({ "type": "object" }));
        let proposed = match hint.map(|hint| hint.implementation.trim()).filter(|text| !text.is_empty()) {
            Some(text) => format!("\n\nA model proposes this, which may be wrong:\n\n{text}"),
            None => String::new(),
        };
        format!(
            "Write the program `tools/{name}` for: {}\n\nIt uses the standard library of its language alone: no network, no \
             services, no packages. It reads one JSON value from standard input and prints one JSON value. It refuses input \
             that does not fit the input schema with exit code 2, and checks its output against the output schema.\n\n\
             Input schema: {input}\n\nOutput schema: {output}{proposed}",
            self.intent.text
        )
    }

    fn hint_ask(&self, hint: &ModelHint) -> (String, Vec<String>) {
        let permissions = match hint.permissions.as_slice() {
            [] => "no permissions".to_owned(),
            some => format!("the permissions {}", some.join(", ")),
        };
        let mut options = Vec::new();
        if !hint.server.trim().is_empty() && !hint.tool.trim().is_empty() {
            options.push(format!("{LOOK} for {} at {}", hint.tool, hint.server));
        }
        if !hint.implementation.trim().is_empty() {
            options.push(format!("{WRITE} it as the model proposes"));
        }
        options.push("Neither".to_owned());
        let text = format!(
            "A model proposes how to do \"{}\"; it says that this needs {permissions}.",
            self.intent.text
        );
        (text, options)
    }

    fn prompt(&self) -> Prompt {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["server", "tool", "implementation", "input_schema", "output_schema", "permissions"],
            "properties": {
                "server": { "type": "string", "description": "the MCP server that has it; empty where you know none" },
                "tool": { "type": "string", "description": "the tool's name there" },
                "implementation": { "type": "string", "description": "code that does it" },
                "input_schema": { "type": "object" },
                "output_schema": { "type": "object" },
                "permissions": { "type": "array", "items": { "type": "string" } },
            },
        });
        let fence = Fence::for_texts(&[&self.intent.text]);
        let text = format!(
            "How would you implement a capability that does this?\n\n{}\nProvide:\n1. the recommended MCP server and tool \
             name\n2. code that implements it\n3. input and output schemas\n4. the required permissions",
            fence.enclose("the intent", &self.intent.text)
        );
        let system = format!(
            "You propose how a missing capability can be had. A person decides; nothing that you write is run as it is.\n\n{}\n\n\
             Answer with one JSON object of this form and nothing else:\n{schema}",
            fence.rule()
        );
        Prompt { system, text, schema, name: "hint" }
    }
}

/// The four ways to have it done (M-39b).
const WAYS: [&str; 4] = [
    "Have an agent write it, with nothing but a standard library",
    "Use an existing server",
    "Ask a model for alternatives",
    "Provide a command of your own",
];
const LOOK: &str = "Look";
const WRITE: &str = "Write";

/// Reads which option an answer means: by its number, or by its words.
fn chosen(options: &[&str], answer: &str) -> Option<usize> {
    if let Ok(number) = answer.parse::<usize>() {
        return number.checked_sub(1).filter(|at| *at < options.len());
    }
    let answer = answer.to_lowercase();
    let mut alike =
        options.iter().enumerate().filter(|(_, option)| option.to_lowercase().starts_with(&answer));
    alike.next().filter(|_| !answer.is_empty() && alike.next().is_none()).map(|(at, _)| at)
}

fn hint_in(answer: &str) -> Option<ModelHint> {
    let value = any_object_in(answer, &["server", "tool", "implementation"]).ok()?;
    let hint: ModelHint = serde_json::from_value(value).ok()?;
    let says = |text: &str| !text.trim().is_empty();
    (says(&hint.implementation) || says(&hint.server) && says(&hint.tool)).then_some(hint)
}
