//! Arguments: what an intent says, and the results it needs, as the parameters that a capability's schema has.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::capability::Capability;
use super::parameter::{Parameter, ParameterKind, coerced};
use super::words::{Wording, likeness, topic_words};
use crate::intents::{Intent, IntentKind, singular, words_of};

/// A parameter that is less like a topic is not meant by it.
const LIKE_MIN: f64 = 0.4;
/// Parameters that take an intent's own words, where nothing else is given (M-19).
const PROSE: [&str; 5] = ["prompt", "question", "query", "instruction", "message"];

/// An argument of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// The parameter, as the schema spells it.
    pub parameter: String,
    /// Its value.
    pub value: ArgumentValue,
    /// Where it comes from, in words.
    pub why: String,
}

/// The value of an argument.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentValue {
    /// It is known.
    Given(Value),
    /// It is the result of another intent, made to be of this kind when it is there.
    ResultOf(String, ParameterKind),
}

/// The arguments of a capability for an intent, and what is wrong with them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Binding {
    /// The arguments.
    pub arguments: Vec<Argument>,
    /// Reasons why the call can't be made, each a sentence (M-27).
    pub faults: Vec<String>,
    /// Needed results that no parameter takes.
    pub unwired: Vec<String>,
    /// Required parameters that nothing gives: a person is asked for them.
    pub unsaid: Vec<String>,
}

impl Binding {
    fn is_free(&self, parameter: &Parameter) -> bool {
        self.arguments.iter().all(|argument| argument.parameter != parameter.name)
    }

    /// Gives a parameter a value that is known, made to fit.
    pub(super) fn give(&mut self, parameter: &Parameter, value: &Value, why: &str) {
        match coerced(parameter, value) {
            Ok(value) => self.put(parameter, ArgumentValue::Given(value), why.to_owned()),
            Err(fault) => self.faults.push(fault),
        }
    }

    pub(super) fn put(&mut self, parameter: &Parameter, value: ArgumentValue, why: String) {
        self.arguments.push(Argument { parameter: parameter.name.clone(), value, why });
    }
}

/// Binds the arguments of a call.
pub fn bind(intent: &Intent, capability: &Capability, needs: &[&Intent]) -> Binding {
    let mut binding = Binding::default();
    bind_named_values(intent, capability, &mut binding);
    read_from_text(&intent.text, capability, &mut binding);
    bind_results(needs, capability, &mut binding);
    for parameter in &capability.parameters {
        if !parameter.is_required || !binding.is_free(parameter) {
            continue;
        }
        let words = words_of(&parameter.name);
        match PROSE.iter().any(|prose| words.iter().any(|word| word == prose)) {
            true => binding.give(parameter, &Value::from(intent.text.as_str()), "the intent's own words"),
            false => binding.unsaid.push(parameter.name.clone()),
        }
    }
    binding
}

/// Finds the parameter that a name of a writer's own means: `per_page` is `perPage` (M-20).
pub(super) fn parameter_named<'a>(capability: &'a Capability, name: &str) -> Option<&'a Parameter> {
    let words = |name: &str| words_of(name).iter().map(|word| singular(word)).collect::<Vec<_>>();
    let own = words(name);
    let by_words = || {
        let mut same = capability.parameters.iter().filter(|parameter| words(&parameter.name) == own);
        same.next().filter(|_| same.next().is_none())
    };
    let by_topic = || {
        let topic = topic_words(name);
        let mut same = capability.parameters.iter().filter(|own| topic_words(&own.name) == topic);
        same.next().filter(|_| same.next().is_none())
    };
    capability.parameter(name).or_else(by_words).or_else(by_topic)
}

fn bind_named_values(intent: &Intent, capability: &Capability, binding: &mut Binding) {
    for (name, value) in intent.parameters.iter().filter(|(name, _)| !name.starts_with('_')) {
        match parameter_named(capability, name) {
            Some(parameter) if binding.is_free(parameter) => {
                let why =
                    if parameter.name == *name { "given".to_owned() } else { format!("given as {name}") };
                binding.give(parameter, value, &why);
            }
            Some(parameter) => {
                binding.faults.push(format!("`{}` is given twice, once as `{name}`", parameter.name));
            }
            None if capability.takes_others => {}
            None => {
                let own: Vec<&str> = capability.parameters.iter().map(|own| own.name.as_str()).collect();
                let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
                binding.faults.push(format!("{} has no parameter `{name}`; it has {own}", capability.id()));
            }
        }
    }
}

/// Reads what stands in the intent in a form that leaves no doubt: `owner/repo`, `#12`, a choice that the schema has, a text in quotes.
fn read_from_text(text: &str, capability: &Capability, binding: &mut Binding) {
    let plain = crate::signals::without_quoted(text);
    bind_repository(&plain, capability, binding);
    number(&plain, capability, binding);
    choice(&plain, capability, binding);
    let mut quoted = quoted(text).into_iter();
    let (Some(only), None) = (quoted.next(), quoted.next()) else { return };
    let mut takers = capability.parameters.iter().filter(|own| {
        own.is_required && own.kind == ParameterKind::Text && own.choices.is_empty() && binding.is_free(own)
    });
    if let (Some(parameter), None) = (takers.next(), takers.next()) {
        binding.give(parameter, &Value::from(only), "in quotes");
    }
}

fn bind_repository(text: &str, capability: &Capability, binding: &mut Binding) {
    let mut places = text.split_whitespace().filter_map(|word| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let (owner, repo) = word.split_once('/')?;
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        (is_name(owner) && is_name(repo)).then_some((word, owner, repo))
    });
    let (Some((whole, owner, repo)), None) = (places.next(), places.next()) else { return };
    let of = |name: &str| {
        capability.parameters.iter().find(|own| topic_words(&own.name).iter().eq([&name.to_owned()]))
    };
    let why = "in the intent";
    match (of("owner"), of("repo")) {
        (Some(owner_parameter), Some(repo_parameter)) => {
            if binding.is_free(owner_parameter) {
                binding.give(owner_parameter, &Value::from(owner), why);
            }
            if binding.is_free(repo_parameter) {
                binding.give(repo_parameter, &Value::from(repo), why);
            }
        }
        (None, Some(parameter)) if binding.is_free(parameter) => {
            binding.give(parameter, &Value::from(whole), why);
        }
        (None | Some(_), Some(_) | None) => {}
    }
}

fn number(text: &str, capability: &Capability, binding: &mut Binding) {
    let mut numbers = text.split_whitespace().filter_map(|word| {
        let word = word.trim_end_matches(['.', ',', ';', '!', '?']);
        word.strip_prefix('#').unwrap_or(word).parse::<i64>().ok()
    });
    let (Some(number), None) = (numbers.next(), numbers.next()) else { return };
    let is_name = |own: &Parameter| {
        words_of(&own.name).iter().any(|word| matches!(word.as_str(), "number" | "id" | "index"))
    };
    let mut takers = capability.parameters.iter().filter(|own| {
        let is_number = matches!(own.kind, ParameterKind::Integer | ParameterKind::Number);
        own.is_required && is_number && is_name(own) && binding.is_free(own)
    });
    if let (Some(parameter), None) = (takers.next(), takers.next()) {
        binding.give(parameter, &Value::from(number), "in the intent");
    }
}

fn choice(text: &str, capability: &Capability, binding: &mut Binding) {
    let words: BTreeSet<String> = words_of(text).into_iter().collect();
    let name = Wording::of(&capability.name);
    for parameter in &capability.parameters {
        let is_said = |choice: &&String| {
            let choice = choice.to_lowercase();
            words.contains(&choice)
                && !name.nouns.contains(&singular(&choice))
                && name.verb.as_ref() != Some(&choice)
        };
        let mut said = parameter.choices.iter().filter(is_said);
        if let (Some(choice), None, true) = (said.next(), said.next(), binding.is_free(parameter)) {
            binding.give(parameter, &Value::from(choice.as_str()), "in the intent");
        }
    }
}

/// Returns the texts in quotes.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = text;
    while let Some((at, quote)) = rest.char_indices().find(|(_, c)| matches!(c, '"' | '`')) {
        let after = &rest[at + 1..];
        let Some(end) = after.find(quote) else { break };
        texts.push(after[..end].to_owned());
        rest = &after[end + 1..];
    }
    texts
}

/// Returns the words that say what an intent gives.
pub(super) fn subject(intent: &Intent) -> BTreeSet<String> {
    match (&intent.topic, intent.kind) {
        (Some(topic), _) => topic_words(topic),
        (None, IntentKind::Ask) => {
            topic_words(&intent.text).into_iter().filter(|word| word != "ask").collect()
        }
        (None, IntentKind::Act | IntentKind::Transform) => Wording::read_intent(&intent.text).nouns,
    }
}

/// Says how well a parameter takes what a topic is about, from 0 to 1 (M-25).
pub(super) fn fits(topic: &BTreeSet<String>, parameter: &Parameter) -> f64 {
    let name = likeness(topic, &topic_words(&parameter.name));
    let about = topic_words(&parameter.about);
    let said = topic.intersection(&about).count() as f64 / topic.len().max(1) as f64;
    let favour = if parameter.is_required { 0.01 } else { 0.0 };
    name.max(0.5 * said) + if name > 0.0 { 0.1 * said } else { 0.0 } + favour
}

/// Wires every needed result to a parameter, those that fit best first (M-24).
fn bind_results(needs: &[&Intent], capability: &Capability, binding: &mut Binding) {
    let mut open: Vec<&Intent> = needs.to_vec();
    loop {
        let free: Vec<&Parameter> =
            capability.parameters.iter().filter(|parameter| binding.is_free(parameter)).collect();
        let pairs = open.iter().enumerate().flat_map(|(at, need)| {
            let topic = subject(need);
            free.iter().map(move |parameter| (at, *parameter, fits(&topic, parameter)))
        });
        // Of two that fit equally well the first is taken: the order of needs, then that of the schema.
        let best = pairs.filter(|(_, _, fit)| *fit >= LIKE_MIN).fold(None, |best, pair| match best {
            Some((_, _, fit)) if fit >= pair.2 => best,
            Some(_) | None => Some(pair),
        });
        let Some((at, parameter, _)) = best else { break };
        let need = open.remove(at);
        result(need, parameter, binding);
    }
    let mut required =
        capability.parameters.iter().filter(|parameter| parameter.is_required && binding.is_free(parameter));
    if let ([need], Some(parameter), None) = (open.as_slice(), required.next(), required.next()) {
        let need = *need;
        result(need, parameter, binding);
        open.clear();
    }
    binding.unwired.extend(open.iter().map(|need| need.id.clone()));
}

fn result(need: &Intent, parameter: &Parameter, binding: &mut Binding) {
    let why = format!("the result of {}", need.id);
    binding.put(parameter, ArgumentValue::ResultOf(need.id.clone(), parameter.kind.clone()), why);
}
