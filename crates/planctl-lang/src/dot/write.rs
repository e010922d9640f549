//! Writes DOT: the statements that were read, so that reading them again gives the same (D21).

use super::lexemes::{is_bare_value, is_name};
use super::read::is_keyword;
use super::syntax::{Attribute, Digraph, Statement};
use crate::source::Spanned;

/// Writes a graph; comments and the places of things are not kept.
pub fn write(digraph: &Digraph) -> String {
    let mut text = String::from("digraph ");
    if let Some(name) = &digraph.name {
        text.push_str(&value_text(&name.value));
        text.push(' ');
    }
    text.push_str("{\n");
    block(&digraph.statements, 1, &mut text);
    text.push_str("}\n");
    text
}

fn block(statements: &[Statement], depth: usize, text: &mut String) {
    for statement in statements {
        text.push_str(&"    ".repeat(depth));
        match statement {
            Statement::Defaults { of, attributes, .. } => {
                text.push_str(of.word());
                list(attributes, true, text);
            }
            Statement::Assignment(attribute) => pair(attribute, text),
            Statement::Node { name, attributes, .. } => {
                text.push_str(&name_text(&name.value));
                list(attributes, false, text);
            }
            Statement::Edges { ends, attributes, .. } => {
                let ends: Vec<String> = ends.iter().map(|end| end_text(end)).collect();
                text.push_str(&ends.join(" -> "));
                list(attributes, false, text);
            }
            Statement::Subgraph { name, statements, .. } => {
                text.push_str("subgraph ");
                if let Some(name) = name {
                    text.push_str(&value_text(&name.value));
                    text.push(' ');
                }
                text.push_str("{\n");
                block(statements, depth + 1, text);
                text.push_str(&"    ".repeat(depth));
                text.push('}');
            }
        }
        text.push('\n');
    }
}

fn end_text(names: &[Spanned<String>]) -> String {
    match names {
        [name] => name_text(&name.value),
        names => {
            let names: Vec<String> = names.iter().map(|name| name_text(&name.value)).collect();
            format!("{{ {} }}", names.join(" "))
        }
    }
}

fn list(attributes: &[Attribute], is_always: bool, text: &mut String) {
    if attributes.is_empty() && !is_always {
        return;
    }
    text.push_str(" [");
    for (at, attribute) in attributes.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        pair(attribute, text);
    }
    text.push(']');
}

fn pair(attribute: &Attribute, text: &mut String) {
    let key = &attribute.key.value;
    let is_plain = key.split('.').all(is_name);
    text.push_str(&if is_plain { key.clone() } else { quoted(key) });
    text.push('=');
    text.push_str(&value_text(&attribute.value.value));
}

fn name_text(name: &str) -> String {
    if is_plain_name(name) { name.to_owned() } else { quoted(name) }
}

/// Says whether a text can name a node.
pub(crate) fn is_plain_name(name: &str) -> bool {
    is_name(name) && !is_keyword(name)
}

/// Writes a value: bare where every reader of the dialect takes it so, else in quotes.
pub(crate) fn value_text(value: &str) -> String {
    // Dots, colons and dashes in bare words came late to the grammar (D11).
    let is_simple = is_bare_value(value)
        && (is_name(value) || value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')));
    if is_simple && !is_keyword(value) { value.to_owned() } else { quoted(value) }
}

fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}
