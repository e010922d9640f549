//! Filters, orders and pages that a call does by itself: the piece becomes an argument of the call before it (M-23).

use serde_json::Value;

use super::bind::{Argument, ArgumentValue, fits, parameter_named, quoted, subject};
use super::parameter::{Parameter, ParameterKind, coerced};
use super::planned::Call;
use super::words::topic_words;
use crate::intents::{Intent, singular, words_of};

/// Words by which a piece says that it filters, orders or pages.
const FILTERS: [&str; 6] = ["filter", "only", "keep", "restrict", "narrow", "where"];
const ORDERS: [&str; 3] = ["sort", "order", "rank"];
const PAGES: [&str; 5] = ["limit", "paginate", "page", "first", "top"];

/// Returns the arguments that a piece becomes; nothing where the call can't do all of it.
pub(super) fn collapsed(intent: &Intent, asked: &[&Intent], call: &Call) -> Option<Vec<Argument>> {
    let free =
        |parameter: &&Parameter| call.arguments.iter().all(|argument| argument.parameter != parameter.name);
    let parameters: Vec<&Parameter> = call.capability.parameters.iter().filter(free).collect();
    if !intent.parameters.is_empty() {
        let given = intent.parameters.iter().map(|(name, value)| {
            let parameter = parameter_named(&call.capability, name).filter(|own| parameters.contains(own))?;
            Some(argument(parameter, ArgumentValue::Given(coerced(parameter, value).ok()?), intent))
        });
        return given.collect();
    }
    if !asked.is_empty() {
        let wired = asked.iter().map(|need| {
            let topic = subject(need);
            let ranked = parameters.iter().map(|parameter| (fits(&topic, parameter), *parameter));
            let (fit, parameter) = ranked.max_by(|one, other| one.0.total_cmp(&other.0))?;
            let value = ArgumentValue::ResultOf(need.id.clone(), parameter.kind.clone());
            (fit >= 0.4).then(|| argument(parameter, value, intent))
        });
        return wired.collect();
    }
    let words = words_of(&intent.text);
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let (parameter, value) = if says(&ORDERS) {
        order(&words, &parameters)?
    } else if let (true, Some(number)) = (says(&PAGES), only_number(&words)) {
        (page(&parameters)?, Value::from(number))
    } else if says(&FILTERS) || !intent.text.is_empty() {
        filter(intent, &words, &parameters)?
    } else {
        return None;
    };
    let value = ArgumentValue::Given(coerced(parameter, &value).ok()?);
    Some(vec![argument(parameter, value, intent)])
}

fn argument(parameter: &Parameter, value: ArgumentValue, intent: &Intent) -> Argument {
    Argument { parameter: parameter.name.clone(), value, why: format!("{} is part of the call", intent.id) }
}

/// Finds how to order: a parameter for it, with the choice that the words name, or the word after "by" where any text will do.
fn order<'a>(words: &[String], parameters: &[&'a Parameter]) -> Option<(&'a Parameter, Value)> {
    let is_order = |own: &&&Parameter| words_of(&own.name).iter().any(|word| ORDERS.contains(&word.as_str()));
    let parameter = parameters.iter().find(is_order)?;
    let by = words.iter().position(|word| word == "by").and_then(|at| words.get(at + 1))?;
    let value = match parameter.choices.is_empty() {
        true => by.clone(),
        false => parameter.choices.iter().find(|choice| words_of(choice).first() == Some(by))?.clone(),
    };
    Some((parameter, Value::from(value)))
}

fn page<'a>(parameters: &[&'a Parameter]) -> Option<&'a Parameter> {
    let is_size = |own: &&&Parameter| {
        let is_number =
            matches!(own.kind, ParameterKind::Integer | ParameterKind::Number | ParameterKind::Any);
        is_number && topic_words(&own.name).contains("size")
    };
    let mut sizes = parameters.iter().filter(is_size);
    sizes.next().copied().filter(|_| sizes.next().is_none())
}

fn only_number(words: &[String]) -> Option<i64> {
    let mut numbers = words.iter().filter_map(|word| word.parse().ok());
    numbers.next().filter(|_| numbers.next().is_none())
}

/// Finds what to filter by: a choice that the words name, or a parameter that they name with the value beside it.
fn filter<'a>(
    intent: &Intent,
    words: &[String],
    parameters: &[&'a Parameter],
) -> Option<(&'a Parameter, Value)> {
    let named = parameters.iter().flat_map(|parameter| {
        let said = parameter.choices.iter().filter(|choice| words.contains(&choice.to_lowercase()));
        said.map(|choice| (*parameter, Value::from(choice.as_str())))
    });
    let mut named = named.collect::<Vec<_>>().into_iter();
    if let Some(only) = named.next() {
        return named.next().is_none().then_some(only);
    }
    for (at, word) in words.iter().enumerate() {
        let topic = topic_words(word);
        let same = |own: &&&Parameter| !topic.is_empty() && topic_words(&own.name) == topic;
        let Some(parameter) = parameters.iter().find(same) else { continue };
        let quoted = quoted(&intent.text);
        let after = words.get(at + 1).filter(|next| !["and", "or", "of", "in"].contains(&next.as_str()));
        let value = match (quoted.as_slice(), after) {
            ([only], _) => only.clone(),
            ([], Some(after)) if at + 2 == words.len() => after.clone(),
            // "with the bug label": the value stands before it.
            ([], None) => words.get(at.checked_sub(1)?).filter(|before| is_value(before))?.clone(),
            ([] | [..], _) => return None,
        };
        return Some((parameter, Value::from(value)));
    }
    None
}

fn is_value(word: &str) -> bool {
    let says_nothing = ["by", "the", "a", "with", "its", "their", "for", "on"];
    !says_nothing.contains(&word) && !FILTERS.contains(&singular(word).as_str())
}
