//! The stylesheet: which model, provider and effort a node is given that does not say so itself (T2).

use std::collections::BTreeMap;

use winnow::combinator::{alt, preceded};
use winnow::prelude::*;
use winnow::token::take_while;

use super::attributes::NodeAttributes;
use crate::diagnostic::{Code, Diagnostic, did_you_mean};
use crate::syntax::written::{Text, Written};
use crate::text::near::ask_or_say;
use crate::text::{Span, Spanned, escape};

/// The properties that a rule can set.
pub(super) const PROPERTIES: [&str; 3] = ["llm_model", "llm_provider", "reasoning_effort"];

/// The attributes, by the selector that sets them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Stylesheet {
    rules: BTreeMap<Selector, BTreeMap<&'static str, (usize, String)>>,
}

/// The selector of a rule; the order is that of its weight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Selector {
    All,
    Shape(String),
    Class(String),
    Name(String),
}

impl Stylesheet {
    /// Returns what the rules set for a node: a name beats a class, a class a shape, and all of them `*`; later wins ties.
    pub(super) fn of(&self, name: &Spanned<String>, shape: &str, classes: &[String]) -> NodeAttributes {
        let mut set: BTreeMap<&'static str, &String> = BTreeMap::new();
        let mut apply = |selectors: Vec<Selector>| {
            let mut latest: BTreeMap<&'static str, &(usize, String)> = BTreeMap::new();
            for rule in selectors.iter().filter_map(|selector| self.rules.get(selector)) {
                for (property, value) in rule {
                    let best = latest.entry(property).or_insert(value);
                    if value.0 > best.0 {
                        *best = value;
                    }
                }
            }
            set.extend(latest.into_iter().map(|(property, (_, value))| (property, value)));
        };
        apply(vec![Selector::All]);
        apply(vec![Selector::Shape(shape.to_owned())]);
        apply(classes.iter().cloned().map(Selector::Class).collect());
        apply(vec![Selector::Name(name.value.clone())]);
        let said = |property| -> Written<Text> {
            set.get(property).map(|value| Spanned::new((*value).clone(), name.span)).into()
        };
        NodeAttributes {
            llm_model: said("llm_model"),
            llm_provider: said("llm_provider"),
            reasoning_effort: said("reasoning_effort"),
            ..NodeAttributes::default()
        }
    }
}

type Lexed<O> = winnow::Result<O, ()>;

fn name<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).parse_next(input)
}

fn selector(input: &mut &str) -> Lexed<Selector> {
    alt((
        '*'.value(Selector::All),
        preceded('.', name).map(|class: &str| Selector::Class(class.to_owned())),
        preceded('#', name).map(|name: &str| Selector::Name(name.to_owned())),
        name.map(|shape: &str| Selector::Shape(shape.to_owned())),
    ))
    .parse_next(input)
}

// A value in quotes, or all up to the end of the declaration.
fn value<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    alt((
        ('"', take_while(0.., |c: char| c != '"'), '"').map(|(_, value, _): (char, &str, char)| value),
        ('\'', take_while(0.., |c: char| c != '\''), '\'').map(|(_, value, _): (char, &str, char)| value),
        take_while(1.., |c: char| !matches!(c, ';' | '}' | '{' | '"' | '\'')).map(str::trim),
    ))
    .parse_next(input)
}

/// Reads a stylesheet; a rule that can't be read is named and left out (L3).
pub(super) fn read(text: &Spanned<String>, found: &mut Vec<Diagnostic>) -> Stylesheet {
    let mut sheet = Stylesheet::default();
    let mut rest = text.value.as_str();
    let mut order = 0;
    loop {
        skip(&mut rest);
        if rest.is_empty() {
            return sheet;
        }
        let Some(selector) = rule_head(&mut rest) else {
            return refuse(
                sheet,
                "a selector and `{`: `*`, a shape, `.class` or `#name`",
                rest,
                text.span,
                found,
            );
        };
        let rule = sheet.rules.entry(selector).or_default();
        loop {
            skip(&mut rest);
            if take(&mut rest, "}") {
                break;
            }
            if take(&mut rest, ";") {
                continue;
            }
            let Some((property, set)) = declaration(&mut rest) else {
                return refuse(sheet, "`property: value;` or `}`", rest, text.span, found);
            };
            let known = match property {
                "model" => Some("llm_model"),
                "provider" => Some("llm_provider"),
                property => PROPERTIES.into_iter().find(|known| *known == property),
            };
            match known {
                Some(known) => {
                    order += 1;
                    rule.insert(known, (order, set.to_owned()));
                }
                None => unknown(property, text.span, found),
            }
        }
    }
}

fn rule_head(rest: &mut &str) -> Option<Selector> {
    let selector = selector.parse_next(rest).ok()?;
    skip(rest);
    take(rest, "{").then_some(selector)
}

fn declaration<'s>(rest: &mut &'s str) -> Option<(&'s str, &'s str)> {
    let property = name.parse_next(rest).ok()?;
    skip(rest);
    if !take(rest, ":") && !take(rest, "=") {
        return None;
    }
    skip(rest);
    Some((property, value.parse_next(rest).ok()?))
}

fn skip(rest: &mut &str) {
    loop {
        *rest = rest.trim_start();
        if !rest.starts_with("/*") {
            return;
        }
        *rest = rest.find("*/").map_or("", |at| &rest[at + 2..]);
    }
}

fn take(rest: &mut &str, token: &str) -> bool {
    let after = rest.strip_prefix(token);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

fn refuse(
    sheet: Stylesheet,
    expected: &str,
    rest: &str,
    span: Span,
    found: &mut Vec<Diagnostic>,
) -> Stylesheet {
    let next: String = rest.chars().take(20).take_while(|c| *c != '\n').collect();
    let next =
        if rest.is_empty() { "the end of the text".to_owned() } else { format!("`{}`", escape(&next)) };
    let message = format!("the stylesheet can't be read: expected {expected}, found {next}");
    let help = "write rules such as `.fast { llm_model: gpt-5.4; reasoning_effort: low; }`";
    found.push(Diagnostic::new(Code::P015, message).at(span, "").help(help));
    sheet
}

fn unknown(property: &str, span: Span, found: &mut Vec<Diagnostic>) {
    let message = format!("`{}` is not a property of a stylesheet", escape(property));
    let properties = format!("the properties are `{}`", PROPERTIES.join("`, `"));
    let help = ask_or_say(did_you_mean(property, PROPERTIES), properties);
    found.push(Diagnostic::new(Code::P314, message).at(span, "").help(help));
}
