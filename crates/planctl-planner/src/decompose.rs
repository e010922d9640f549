//! Breaks a goal into intents: by its form, or by a writer who sees the tools or does not, until each is one piece of work.

use std::collections::{BTreeMap, BTreeSet};

use planctl_lang::escape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::amount::{Spending, Unanswered};
use crate::conversation::Answer;
use crate::fence::Fence;
use crate::intents::{Intent, IntentKind, singular, topic, words_of};
use crate::pattern::PATTERN_CONFIDENCE;
use crate::prompt::Prompt;
use crate::proposal::{Unreadable, object_in};
use crate::signals::{Signal, signals};

/// How often an intent may be broken up further.
pub const DEPTH_MAX: usize = 2;
/// The most intents of one answer.
const INTENTS_MAX: usize = 40;
/// How often an answer that can't be read is asked for again.
const TRIES: usize = 3;

/// A strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// By the form of the goal, without anybody (M-01).
    Pattern,
    /// By a writer who knows no tools, and so invents none (M-05).
    IntentFirst,
    /// By a writer who is shown the tools that there are (M-06).
    Grounded,
    /// A pattern first, then grounded where tools are known, else intents first (M-07).
    Hybrid,
}

/// A tool, as a writer is shown it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// Its name: `github.list_issues`.
    pub name: String,
    /// Its purpose, in one line.
    #[serde(default)]
    pub about: String,
    /// The names of its parameters, as its schema has them.
    #[serde(default)]
    pub parameters: Vec<String>,
}

/// A strategy that was considered, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Considered {
    /// The strategy.
    pub strategy: Strategy,
    /// Why it was taken, or was not.
    pub why: String,
}

/// A goal in pieces.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decomposition {
    /// The strategy that served.
    pub strategy: Strategy,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// The pieces.
    pub intents: Vec<Intent>,
}

/// The next thing to do.
#[derive(Clone, PartialEq, Debug)]
pub enum NextPiece {
    /// Ask the writer, and say the answer to [`Breakdown::answered`].
    Ask(Prompt),
    /// The goal is in pieces.
    Done(Decomposition),
    /// No strategy that needs nobody handles it: a writer has to.
    Deferred(Vec<Signal>, Vec<Considered>),
    /// A piece is still several after the most levels.
    TooDeep(Intent),
    /// The writer's answers can't be read.
    Unreadable(Vec<String>),
}

/// A goal that is being broken up. The tools are those that were known at its beginning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Breakdown {
    goal: String,
    strategy: Strategy,
    tools: Vec<Tool>,
    key: String,
    has_writer: bool,
    answers: Vec<Answer>,
    #[serde(default)]
    unanswered: Unanswered,
}

impl Breakdown {
    /// Begins one.
    pub fn new(goal: &str, strategy: Strategy, tools: &[Tool], has_writer: bool, key: &str) -> Breakdown {
        Breakdown {
            goal: goal.trim().to_owned(),
            strategy,
            tools: tools.to_vec(),
            key: key.to_owned(),
            has_writer,
            answers: Vec::new(),
            unanswered: Unanswered::default(),
        }
    }

    /// Returns the calls without an answer, to be changed.
    pub fn unanswered_mut(&mut self) -> &mut Unanswered {
        &mut self.unanswered
    }

    /// Adds up what the answers have used, and what calls without one may have used.
    pub fn spent(&self) -> Spending {
        let mut spent = Spending::default();
        for answer in &self.answers {
            spent.add(answer.tokens, answer.micro_usd);
        }
        spent.plus_unanswered(&self.unanswered)
    }

    /// Hears the writer's answer.
    pub fn take_answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// Says which strategies were considered, and why (M-07).
    pub fn considered(&self) -> Vec<Considered> {
        self.chain().0
    }

    /// Says what has to happen next. It changes nothing.
    pub fn next(&self) -> NextPiece {
        let (considered, taken) = self.chain();
        let strategy = match taken {
            Taken::Pattern(intents) => {
                return NextPiece::Done(Decomposition {
                    strategy: Strategy::Pattern,
                    confidence: PATTERN_CONFIDENCE,
                    intents,
                });
            }
            Taken::Nobody => return NextPiece::Deferred(signals(&self.goal), considered),
            Taken::Writer(strategy) => strategy,
        };
        let mut intents: Vec<Intent> = Vec::new();
        let (mut confidence, mut refused, mut faults) = (1.0_f64, 0, Vec::new());
        for answer in &self.answers {
            let part_of = intents_to_break(&intents, &self.tools).next().cloned();
            match read(&answer.text, part_of.as_ref(), &self.tools, strategy) {
                Ok((more, sure)) => {
                    confidence = confidence.min(sure);
                    intents = with_parts(intents, part_of.as_ref(), more);
                    (refused, faults) = (0, Vec::new());
                }
                Err(unreadable) => {
                    refused += 1;
                    faults = unreadable.faults;
                }
            }
        }
        if refused >= TRIES {
            return NextPiece::Unreadable(faults);
        }
        let coarse = intents_to_break(&intents, &self.tools).next();
        match coarse {
            None if !intents.is_empty() => NextPiece::Done(Decomposition { strategy, confidence, intents }),
            Some(intent) if depth(intent) >= DEPTH_MAX => NextPiece::TooDeep(Intent {
                text: without_coarse_mark(&intent.text).to_owned(),
                ..intent.clone()
            }),
            coarse => NextPiece::Ask(self.prompt(strategy, coarse, &faults)),
        }
    }

    fn chain(&self) -> (Vec<Considered>, Taken) {
        let mut considered = Vec::new();
        let mut say = |strategy, why: String| considered.push(Considered { strategy, why });
        if matches!(self.strategy, Strategy::Pattern | Strategy::Hybrid) {
            match by_pattern(&self.goal) {
                Ok(intents) => {
                    say(Strategy::Pattern, "the goal has a form that is handled whole".to_owned());
                    return (considered, Taken::Pattern(intents));
                }
                Err(why) => say(Strategy::Pattern, why),
            }
        }
        let strategy = match self.strategy {
            Strategy::Pattern => return (considered, Taken::Nobody),
            Strategy::Hybrid if !self.tools.is_empty() => Strategy::Grounded,
            Strategy::Hybrid => {
                say(Strategy::Grounded, "no tools are known".to_owned());
                Strategy::IntentFirst
            }
            named @ (Strategy::IntentFirst | Strategy::Grounded) => named,
        };
        if !self.has_writer {
            say(strategy, "no writer is named".to_owned());
            return (considered, Taken::Nobody);
        }
        say(strategy, "a writer is asked".to_owned());
        (considered, Taken::Writer(strategy))
    }

    fn prompt(&self, strategy: Strategy, coarse: Option<&Intent>, faults: &[String]) -> Prompt {
        let fence = Fence::for_texts(&[&self.key, &self.goal]);
        let fenced = |name: &str, text: &str| fence.enclose(name, text);
        let schema = schema();
        let mut text = format!("# The goal\n\n{}", fenced("the goal", &self.goal));
        if let Some(intent) = coarse {
            text.push_str(&format!(
                "\n# Break up this piece of it\n\nIt is more than one piece of work. Answer with its parts alone.\n\n{}",
                fenced("the piece", without_coarse_mark(&intent.text))
            ));
        }
        if strategy == Strategy::Grounded {
            let rows: Vec<String> = self.tools.iter().map(row).collect();
            text.push_str(&format!("\n# The tools that there are\n\n{}", fenced("tools", &rows.join("\n"))));
        }
        if !faults.is_empty() {
            text.push_str(&format!(
                "\n# What was wrong with your answer\n\n{}",
                fenced("faults", &faults.join("\n"))
            ));
        }
        let rules = match strategy {
            Strategy::Grounded => GROUNDED,
            Strategy::Pattern | Strategy::IntentFirst | Strategy::Hybrid => "",
        };
        let system = format!(
            "{RULES}{rules}\n\n{}\n\nThe form of the answer, as a JSON Schema:\n{schema}",
            fence.rule()
        );
        Prompt { system, text, schema, name: "intents" }
    }
}

/// The strategy that serves.
enum Taken {
    Pattern(Vec<Intent>),
    Writer(Strategy),
    Nobody,
}

const RULES: &str = "\
You break a goal into intents: pieces that say what is wanted and not how. Each is one piece of work, or one question to the
person. A piece that filters, sorts or shows results is a `transform`. `needs` has the ids of earlier pieces whose results a
piece needs. `parameters` has what the goal itself says of a piece, such as a name or a number. Say `coarse: true` of a piece that you can't make smaller without knowing more. Answer with one JSON object.";
const GROUNDED: &str = "
The tools that there are stand below, with their parameters. Use their words: ask for `perPage` and not for pagination. A
filter or a page is a parameter of a tool, and no piece of its own. Name a tool in `tool` only where it is on the list.";

fn row(tool: &Tool) -> String {
    format!("{}({}): {}", tool.name, tool.parameters.join(", "), tool.about)
}

/// Returns the JSON Schema of an answer.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["title", "confidence", "intents"],
        "properties": {
            "title": { "type": "string" },
            "confidence": { "type": "number" },
            "intents": { "type": "array", "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["id", "text", "kind", "topic", "needs", "tool", "parameters", "coarse"],
                "properties": {
                    "id": { "type": "string" },
                    "text": { "type": "string" },
                    "kind": { "type": "string", "enum": ["ask", "act", "transform"] },
                    "topic": { "type": ["string", "null"] },
                    "needs": { "type": "array", "items": { "type": "string" } },
                    "tool": { "type": ["string", "null"] },
                    "parameters": { "type": "array", "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["name", "value"],
                        "properties": { "name": { "type": "string" }, "value": { "type": "string" } },
                    } },
                    "coarse": { "type": "boolean" },
                },
            } },
        },
    })
}

#[derive(Deserialize)]
struct Said {
    #[serde(default = "full_confidence")]
    confidence: f64,
    intents: Vec<SaidIntent>,
}

fn full_confidence() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct SaidIntent {
    id: String,
    text: String,
    #[serde(default)]
    kind: IntentKind,
    #[serde(default)]
    topic: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    parameters: Vec<SaidParameter>,
    #[serde(default)]
    coarse: bool,
}

#[derive(Deserialize)]
struct SaidParameter {
    name: String,
    value: Value,
}

/// The mark of a piece that its writer could not make smaller, at the end of its text in the record.
const COARSE: &str = "\u{0}coarse";

fn read(
    answer: &str,
    part_of: Option<&Intent>,
    tools: &[Tool],
    strategy: Strategy,
) -> Result<(Vec<Intent>, f64), Unreadable> {
    let said: Said = serde_path_to_error::deserialize(object_in(answer)?)
        .map_err(|error| Unreadable { faults: vec![escape(&error.to_string())] })?;
    let mut faults = Vec::new();
    if said.intents.is_empty() || said.intents.len() > INTENTS_MAX {
        faults.push(format!("there are {} intents; 1 to {INTENTS_MAX} are read", said.intents.len()));
    }
    if !(0.0..=1.0).contains(&said.confidence) {
        faults.push("confidence is a number from 0 to 1".to_owned());
    }
    let prefix = part_of.map_or("I".to_owned(), |intent| format!("{}.", intent.id));
    let own = |id: &str| said.intents.iter().position(|intent| intent.id == id);
    let mut intents = Vec::new();
    for (at, one) in said.intents.iter().enumerate().take(INTENTS_MAX) {
        if one.text.trim().is_empty() {
            faults.push(format!("intent {} says nothing", escape(&one.id)));
        }
        let mut needs = Vec::new();
        for need in &one.needs {
            match own(need) {
                Some(before) if before < at => needs.push(format!("{prefix}{}", before + 1)),
                Some(_) => {
                    faults.push(format!("{} needs {}, which is not before it", escape(&one.id), escape(need)))
                }
                None => {
                    faults.push(format!("{} needs {}, which is not there", escape(&one.id), escape(need)))
                }
            }
        }
        // A writer that knows no tools can't name one that is there.
        let tool = one.tool.clone().filter(|_| strategy == Strategy::Grounded);
        if let Some(tool) = tool.as_ref().filter(|tool| tools.iter().all(|known| known.name != **tool)) {
            faults.push(format!("there is no tool `{}`", escape(tool)));
        }
        let text = one.text.trim().replace('\0', "");
        intents.push(Intent {
            id: format!("{prefix}{}", at + 1),
            text: if one.coarse { format!("{text}{COARSE}") } else { text },
            kind: one.kind,
            topic: one.topic.as_deref().map(topic),
            needs,
            part_of: part_of.map(|intent| intent.id.clone()),
            tool,
            parameters: one.parameters.iter().map(|own| (own.name.clone(), own.value.clone())).collect(),
        });
    }
    match faults.is_empty() {
        true => Ok((intents, said.confidence)),
        false => Err(Unreadable { faults }),
    }
}

/// Puts the parts of a piece behind it; those that needed the piece need what its last part gives.
fn with_parts(mut intents: Vec<Intent>, part_of: Option<&Intent>, parts: Vec<Intent>) -> Vec<Intent> {
    let Some(whole) = part_of else { return parts };
    if let Some(at) = intents.iter().position(|intent| intent.id == whole.id) {
        intents[at].text = without_coarse_mark(&intents[at].text).to_owned();
        let rest = intents.split_off(at + 1);
        intents.extend(parts);
        intents.extend(rest);
    }
    intents
}

fn without_coarse_mark(text: &str) -> &str {
    text.strip_suffix(COARSE).unwrap_or(text)
}

/// Returns the pieces that are more than one piece of work and have no parts yet (M-08).
fn intents_to_break<'a>(intents: &'a [Intent], tools: &'a [Tool]) -> impl Iterator<Item = &'a Intent> {
    let whole: BTreeSet<&String> = intents.iter().filter_map(|intent| intent.part_of.as_ref()).collect();
    intents.iter().filter(move |intent| {
        let serve = if intent.tool.is_some() { 1 } else { serving(&intent.text, tools).count() };
        let is_coarse = intent.kind == IntentKind::Act && (serve > 1 || intent.text.ends_with(COARSE));
        is_coarse && !whole.contains(&intent.id)
    })
}

/// Returns the tools that a piece calls for: each word of a tool's own name stands in it.
pub fn serving<'a>(text: &str, tools: &'a [Tool]) -> impl Iterator<Item = &'a Tool> {
    let words: BTreeSet<String> = words_of(text).iter().map(|word| singular(word)).collect();
    tools.iter().filter(move |tool| {
        let name = tool.name.rsplit('.').next().unwrap_or(&tool.name);
        let own = words_of(name);
        !own.is_empty() && own.iter().all(|word| words.contains(&singular(word)))
    })
}

fn depth(intent: &Intent) -> usize {
    intent.id.matches('.').count()
}

/// Breaks up a goal of a known form, whole or not at all (M-01, M-03, M-04).
fn by_pattern(goal: &str) -> Result<Vec<Intent>, String> {
    let goal = goal.trim().trim_end_matches(['.', '!']);
    let (act, asked) = match goal.split_once(" but ask me for ") {
        Some((act, asked)) => (act, Some(asked)),
        None => (goal, None),
    };
    for part in [Some(act), asked].into_iter().flatten() {
        if let Some(signal) = signals(part).first() {
            return Err(format!("{}: {}", escape(part), signal.describe()));
        }
        if part.split_whitespace().any(|word| ["and", "or", "but"].contains(&word.to_lowercase().as_str())) {
            return Err(format!("\"{}\" is more than one thing", escape(part)));
        }
    }
    if !is_listing(act) {
        return Err(
            "it has no form that is known: list THINGS in OWNER/REPO, list THINGS but ask me for THAT"
                .to_owned(),
        );
    }
    let Some(asked) = asked else { return Ok(vec![new_intent("I1", act, IntentKind::Act, &[])]) };
    let about = topic(asked);
    if about.is_empty() || about.split_whitespace().count() > 4 {
        return Err("it is not clear what to ask for".to_owned());
    }
    let question = Intent {
        topic: Some(about.clone()),
        ..new_intent("I1", &format!("ask for {about}"), IntentKind::Ask, &[])
    };
    Ok(vec![question, new_intent("I2", act, IntentKind::Act, &["I1"])])
}

fn new_intent(id: &str, text: &str, kind: IntentKind, needs: &[&str]) -> Intent {
    Intent {
        id: id.to_owned(),
        text: text.to_owned(),
        kind,
        topic: None,
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        part_of: None,
        tool: None,
        parameters: BTreeMap::new(),
    }
}

/// Says whether a text is `list THINGS`, with `in OWNER/REPO` or without, and nothing beside.
fn is_listing(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let (things, place) = match words.iter().position(|word| ["in", "of", "from"].contains(word)) {
        Some(at) => (&words[..at], Some(&words[at + 1..])),
        None => (&words[..], None),
    };
    let is_place = |place: &&[&str]| match place {
        [one] => {
            one.split('/').count() == 2
                && one.split('/').all(|part| {
                    !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
                })
        }
        _ => false,
    };
    let verb = things.first().map(|verb| verb.to_lowercase());
    let is_verb = verb.is_some_and(|verb| ["list", "show", "get", "count"].contains(&verb.as_str()));
    is_verb
        && (2..=4).contains(&things.len())
        && things.iter().all(|word| is_name(word))
        && place.as_ref().is_none_or(is_place)
}
