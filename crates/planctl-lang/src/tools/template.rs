//! References in the arguments of calls: `${steps.2.output.items[0].id}` stands for what step 2 gave.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The outputs of nodes by name, as they were printed.
pub type Outputs = BTreeMap<String, String>;

/// A reference to the output of a node, or to the item of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The node; `None` is the item that `for_each` is at.
    pub node: Option<String>,
    /// The way into its value.
    pub path: Vec<Segment>,
}

/// One part of the way into a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An entry of a list, counted from 0.
    Entry(usize),
}

/// Why a template can't be filled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Unfilled {
    /// A reference that can't be read.
    #[error("`${{{text}}}` can't be read: {why}")]
    Unreadable {
        /// The text between the braces.
        text: String,
        /// Why.
        why: String,
    },
    /// A node that gave nothing.
    #[error("`${{{reference}}}`: {node} has given no output")]
    NoOutput {
        /// The reference.
        reference: String,
        /// The node.
        node: String,
    },
    /// A value without that part.
    #[error("`${{{reference}}}`: the output has no such part")]
    NoPart {
        /// The reference.
        reference: String,
    },
    /// A loop over something that is no list.
    #[error("`for_each` needs a list, and `{template}` is not a list")]
    NoList {
        /// The template.
        template: String,
    },
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "steps.{node}.output")?,
            None => f.write_str("item")?,
        }
        self.path.iter().try_for_each(|segment| match segment {
            Segment::Field(name) => write!(f, ".{name}"),
            Segment::Entry(at) => write!(f, "[{at}]"),
        })
    }
}

impl Reference {
    /// Reads what stands between the braces.
    fn read(text: &str) -> Result<Reference, Unfilled> {
        let unreadable = |why: &str| Unfilled::Unreadable { text: text.to_owned(), why: why.to_owned() };
        let plain = text.trim();
        let (node, rest) = if let Some(rest) = plain.strip_prefix("steps.") {
            // A node's name may hold dots; the first `.output` ends it.
            let (node, rest) = rest
                .split_once(".output")
                .ok_or_else(|| unreadable("write steps.N.output and the way into it"))?;
            if node.is_empty() {
                return Err(unreadable("it names no step"));
            }
            (Some(node.to_owned()), rest)
        } else if let Some(rest) = plain.strip_prefix("item") {
            (None, rest)
        } else {
            return Err(unreadable("a reference begins with steps.N.output or, in a loop, with item"));
        };
        Ok(Reference { node, path: path(rest).map_err(unreadable)? })
    }

    fn value(&self, outputs: &Outputs, item: Option<&Value>) -> Result<Value, Unfilled> {
        let whole = match (&self.node, item) {
            (Some(node), _) => {
                let missing = || Unfilled::NoOutput { reference: self.to_string(), node: node.clone() };
                value_of(outputs.get(node).ok_or_else(missing)?, self.path.is_empty())
            }
            (None, Some(item)) => item.clone(),
            (None, None) => {
                let node = "a step without `for_each`".to_owned();
                return Err(Unfilled::NoOutput { reference: self.to_string(), node });
            }
        };
        let part = self.path.iter().try_fold(&whole, |value, segment| match segment {
            Segment::Field(name) => value.get(name),
            Segment::Entry(at) => value.get(at),
        });
        part.cloned().ok_or_else(|| Unfilled::NoPart { reference: self.to_string() })
    }
}

/// Reads what a node printed: objects and lists as JSON, everything else as the text that it is, whose type the schema decides.
fn value_of(printed: &str, is_whole: bool) -> Value {
    let text = printed.trim();
    let may_be_read = !is_whole || text.starts_with(['{', '[']);
    let read = may_be_read.then(|| serde_json::from_str(text).ok()).flatten();
    read.unwrap_or_else(|| Value::from(text))
}

fn path(mut rest: &str) -> Result<Vec<Segment>, &'static str> {
    let mut path = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return Err("a field has no name");
            }
            path.push(Segment::Field(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (number, after) = after.split_once(']').ok_or("a `[` is not closed")?;
            let at = number.trim().parse().map_err(|_| "an entry is a number, counted from 0")?;
            path.push(Segment::Entry(at));
            rest = after;
        } else {
            return Err("after the output come `.field` and `[0]`");
        }
    }
    Ok(path)
}

/// A part of a text with references.
enum Part<'t> {
    Text(&'t str),
    Reference(Result<Reference, Unfilled>),
}

/// Takes a text apart. `$${` is the text `${`.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if at > 0 && rest.as_bytes()[at - 1] == b'$' {
            parts.push(Part::Text(&rest[..at - 1]));
            parts.push(Part::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        parts.push(Part::Text(&rest[..at]));
        let after = &rest[at + 2..];
        let Some(end) = after.find('}') else {
            let why = "a `${` is not closed".to_owned();
            parts.push(Part::Reference(Err(Unfilled::Unreadable { text: after.to_owned(), why })));
            return parts;
        };
        parts.push(Part::Reference(Reference::read(&after[..end])));
        rest = &after[end + 1..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| !matches!(part, Part::Text("")));
    parts
}

/// Returns every reference in a value, in the order of its parts.
pub fn references(value: &Value) -> Vec<Result<Reference, Unfilled>> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<Result<Reference, Unfilled>>) {
    match value {
        Value::String(text) => found.extend(parts(text).into_iter().filter_map(|part| match part {
            Part::Reference(reference) => Some(reference),
            Part::Text(_) => None,
        })),
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts the referenced values in. A text that is one reference and nothing else becomes the value itself.
///
/// # Errors
///
/// [`Unfilled`] at the first reference without a value.
pub fn filled(template: &Value, outputs: &Outputs, item: Option<&Value>) -> Result<Value, Unfilled> {
    Ok(match template {
        Value::String(text) => filled_text(text, outputs, item)?,
        Value::Array(entries) => {
            let entries: Result<_, _> = entries.iter().map(|entry| filled(entry, outputs, item)).collect();
            Value::Array(entries?)
        }
        Value::Object(fields) => {
            let fields: Result<_, _> = fields
                .iter()
                .map(|(name, field)| Ok((name.clone(), filled(field, outputs, item)?)))
                .collect();
            Value::Object(fields?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    })
}

fn filled_text(text: &str, outputs: &Outputs, item: Option<&Value>) -> Result<Value, Unfilled> {
    let mut parts = parts(text);
    if let [Part::Reference(_)] = parts.as_slice()
        && let Some(Part::Reference(reference)) = parts.pop()
    {
        return reference?.value(outputs, item);
    }
    let mut whole = String::new();
    for part in parts {
        match part {
            Part::Text(text) => whole.push_str(text),
            Part::Reference(reference) => whole.push_str(&printed(&reference?.value(outputs, item)?)),
        }
    }
    Ok(Value::String(whole))
}

/// Returns the entries of a loop.
///
/// # Errors
///
/// [`Unfilled`] where a reference has no value, or the value is no list.
pub fn items(template: &str, outputs: &Outputs) -> Result<Vec<Value>, Unfilled> {
    let value = filled_text(template, outputs, None)?;
    let read = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let Value::Array(entries) = read.unwrap_or(value) else {
        return Err(Unfilled::NoList { template: template.to_owned() });
    };
    Ok(entries)
}

/// Prints a value as a step's output: text as it is, everything else as JSON.
pub fn printed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outputs() -> Outputs {
        let of = [
            ("1", "10\n"),
            ("2", r#"{"a": [{"b": 7, "c": "x"}], "total": 3}"#),
            ("ask-state", "open"),
            ("3", r#"[{"n": 1}, {"n": 2}]"#),
        ];
        of.into_iter().map(|(node, printed)| (node.to_owned(), printed.to_owned())).collect()
    }

    #[test]
    fn m_48_a_reference_leads_into_nested_results_and_keeps_their_type() {
        let template = json!({
            "id": "${steps.2.output.a[0].b}",
            "line": "issue ${steps.2.output.a[0].c} is ${steps.ask-state.output}",
            "whole": "${steps.2.output}",
            "literal": "$${steps.2.output}",
            "deep": [["${steps.1.output}"]],
        });
        let filled = filled(&template, &outputs(), None).unwrap();
        assert_eq!(filled["id"], json!(7));
        assert_eq!(filled["line"], json!("issue x is open"));
        assert_eq!(filled["whole"]["total"], json!(3));
        assert_eq!(filled["literal"], json!("${steps.2.output}"));
        assert_eq!(filled["deep"], json!([["10"]]), "a scalar stays text until a schema wants a number");
    }

    #[test]
    fn m_48_a_reference_without_a_value_says_which_and_why() {
        let why = |text: &str| filled(&json!(text), &outputs(), None).unwrap_err().to_string();
        assert_eq!(why("${steps.9.output}"), "`${steps.9.output}`: 9 has given no output");
        assert_eq!(
            why("${steps.2.output.a[4].b}"),
            "`${steps.2.output.a[4].b}`: the output has no such part"
        );
        assert!(why("${item.x}").contains("without `for_each`"));
        assert!(why("${steps.2}").contains("write steps.N.output"));
        assert!(why("${steps.2.output[x]}").contains("counted from 0"));
        assert!(why("${env.HOME}").contains("begins with steps.N.output"));
        assert!(why("${steps.2.output").contains("not closed"));
    }

    #[test]
    fn m_45_a_loop_goes_over_a_list_and_over_nothing_else() {
        let entries = items("${steps.3.output}", &outputs()).unwrap();
        let each: Vec<Value> =
            entries.iter().map(|item| filled(&json!("${item.n}"), &outputs(), Some(item)).unwrap()).collect();
        assert_eq!(each, [json!(1), json!(2)]);
        assert!(items("${steps.2.output.total}", &outputs()).is_err());
        assert_eq!(items("[1, 2]", &Outputs::new()).unwrap().len(), 2);
    }
}
