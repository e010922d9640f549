//! Arguments by their schema: values become what it asks for where they can, and what does not fit is named.

use jsonschema::PatternOptions;
use serde_json::{Number, Value};

/// How deep a schema is followed.
const DEPTH_MAX: usize = 32;
/// The most misfits of one call that are named.
const MISFITS_MAX: usize = 10;
/// The most characters of a foreign message.
const MESSAGE_CHARS_MAX: usize = 300;

/// One thing that does not fit a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The argument, and the way into it; empty for the arguments as a whole.
    pub at: Vec<String>,
    /// The complaint.
    pub message: String,
}

/// Returns a value that fits its schema where it can be made to (M-26).
///
/// A text becomes the number, the truth value (`true`, `yes`, `false`, `no`), the list or the object that is asked for, where
/// text itself is none of what is. A list is written as JSON or with commas. A choice is found whatever its case, a number where
/// text is asked for becomes text, and a value where a list is asked for becomes a list of one.
#[must_use]
pub fn coerced(value: Value, schema: &Value) -> Value {
    coerce(value, schema, schema, 0)
}

fn coerce(value: Value, schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return value;
    }
    let types = types(schema, root, depth);
    let schema = schema_of_value(schema, root);
    let asks = |name: &str| types.iter().any(|kind| kind == name);
    let entry = |entry: Value| match schema.get("items") {
        Some(of_entry) => coerce(entry, of_entry, root, depth + 1),
        None => entry,
    };
    let is_list_of_one = asks("array") && !types.iter().any(|kind| is_of(&value, kind));
    match value {
        Value::Null => Value::Null,
        Value::Array(entries) => Value::Array(entries.into_iter().map(entry).collect()),
        Value::String(text) => match read_as(&text, &types) {
            Some(Value::Array(entries)) => Value::Array(entries.into_iter().map(entry).collect()),
            Some(read @ Value::Object(_)) => coerce(read, schema, root, depth + 1),
            Some(read) => read,
            None => Value::String(choice(&text, schema).unwrap_or(text)),
        },
        one @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) if is_list_of_one => {
            Value::Array(vec![entry(one)])
        }
        Value::Object(fields) => {
            let properties = schema.get("properties");
            let fields = fields.into_iter().map(|(name, field)| {
                let of_field = properties.and_then(|properties| properties.get(&name));
                let field = match of_field {
                    Some(of_field) => coerce(field, of_field, root, depth + 1),
                    None => field,
                };
                (name, field)
            });
            Value::Object(fields.collect())
        }
        Value::Bool(_) | Value::Number(_) => {
            let is_text = types.iter().all(|kind| kind == "string" || kind == "null");
            if is_text && !types.is_empty() { Value::String(value.to_string()) } else { value }
        }
    }
}

/// Says whether a value is of a type, by its name in schemas.
fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(_) => kind == "number" || kind == "integer",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

/// Finds the choice that a text means, whatever its case.
fn choice(text: &str, schema: &Value) -> Option<String> {
    let choices =
        || schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if choices().any(|choice| choice == text) {
        return None;
    }
    choices().find(|choice| choice.eq_ignore_ascii_case(text.trim())).map(str::to_owned)
}

/// Follows a schema to the one that says what a value is like: its reference, or its only way beside null.
fn schema_of_value<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let schema = followed(schema, root);
    let ways = ["anyOf", "oneOf"].iter().find_map(|word| schema.get(*word)?.as_array());
    let is_null = |way: &&Value| way.get("type").and_then(Value::as_str) == Some("null");
    let mut ways = ways.into_iter().flatten().filter(|way| !is_null(way));
    match (ways.next(), ways.next()) {
        (Some(only), None) => followed(only, root),
        (Some(_) | None, _) => schema,
    }
}

/// Follows a reference within the schema itself.
fn followed<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..DEPTH_MAX {
        let Some(pointer) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let Some(target) = pointer.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else {
            return schema;
        };
        schema = target;
    }
    schema
}

/// Returns the types that a schema allows, where it names any.
fn types(schema: &Value, root: &Value, depth: usize) -> Vec<String> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    let schema = followed(schema, root);
    let mut found = Vec::new();
    match schema.get("type") {
        Some(Value::String(one)) => found.push(one.clone()),
        Some(Value::Array(several)) => {
            found.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        Some(_) | None => {}
    }
    for word in ["anyOf", "oneOf"] {
        let ways = schema.get(word).and_then(Value::as_array).into_iter().flatten();
        found.extend(ways.flat_map(|way| types(way, root, depth + 1)));
    }
    found
}

/// Reads a text as one of the types, where text itself is none of them.
fn read_as(text: &str, types: &[String]) -> Option<Value> {
    let allows = |name: &str| types.iter().any(|kind| kind == name);
    if types.is_empty() || allows("string") {
        return None;
    }
    let plain = text.trim();
    if allows("integer")
        && let Ok(number) = plain.parse::<i64>()
    {
        return Some(Value::from(number));
    }
    if allows("number") {
        if let Ok(number) = plain.parse::<i64>() {
            return Some(Value::from(number));
        }
        if let Some(number) = plain.parse::<f64>().ok().and_then(Number::from_f64) {
            return Some(Value::Number(number));
        }
    }
    if allows("boolean") {
        match plain.to_ascii_lowercase().as_str() {
            "true" | "yes" => return Some(Value::Bool(true)),
            "false" | "no" => return Some(Value::Bool(false)),
            _ => {}
        }
    }
    if allows("null") && plain == "null" {
        return Some(Value::Null);
    }
    if allows("object")
        && let Ok(object @ Value::Object(_)) = serde_json::from_str(plain)
    {
        return Some(object);
    }
    if !allows("array") {
        return None;
    }
    if let Ok(list @ Value::Array(_)) = serde_json::from_str(plain) {
        return Some(list);
    }
    let entries = plain.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    Some(Value::Array(entries.map(Value::from).collect()))
}

/// Returns what of the arguments does not fit the schema; a schema that can't be used is a misfit too. Patterns are matched in
/// linear time and nothing is fetched, since a schema is foreign text.
pub fn misfits(arguments: &Value, schema: &Value) -> Vec<Misfit> {
    let checked = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
    let validator = match checked {
        Ok(validator) => validator,
        Err(error) => {
            let message =
                format!("the tool's own schema can't be used: {}", shortened_message(&error.to_string()));
            return vec![Misfit { at: Vec::new(), message }];
        }
    };
    let errors = validator.iter_errors(arguments).take(MISFITS_MAX);
    errors
        .map(|error| {
            let at = error.instance_path().as_str().split('/').skip(1).map(unescaped).collect();
            Misfit { at, message: shortened_message(&error.to_string()) }
        })
        .collect()
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

fn shortened_message(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "perPage": {"type": "integer", "maximum": 100},
                "ratio": {"type": ["number", "null"]},
                "draft": {"type": "boolean"},
                "title": {"type": "string"},
                "page": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "labels": {"type": "array", "items": {"type": "string"}},
                "ids": {"type": "array", "items": {"$ref": "#/$defs/id"}},
            },
            "required": ["perPage"],
            "additionalProperties": false,
            "$defs": {"id": {"type": "integer"}},
        })
    }

    #[test]
    fn m_26_texts_become_what_the_schema_asks_for_parameter_by_parameter() {
        let arguments = json!({
            "perPage": "10", "ratio": "0.5", "draft": "true", "title": "10", "page": "2",
            "labels": ["7"], "ids": ["1", 2],
        });
        let coerced = coerced(arguments, &schema());
        let expected = json!({
            "perPage": 10, "ratio": 0.5, "draft": true, "title": "10", "page": 2, "labels": ["7"], "ids": [1, 2],
        });
        assert_eq!(coerced, expected);
        assert_eq!(misfits(&coerced, &schema()), []);
    }

    #[test]
    fn m_26_a_list_is_written_with_commas_and_one_value_is_a_list_of_one() {
        let made = |arguments: Value| coerced(arguments, &schema());
        assert_eq!(made(json!({"labels": "bug, help wanted,"})), json!({"labels": ["bug", "help wanted"]}));
        assert_eq!(
            made(json!({"labels": "[\"a, b\"]", "ids": "1, 2"})),
            json!({"labels": ["a, b"], "ids": [1, 2]})
        );
        assert_eq!(made(json!({"labels": 7, "ids": 3})), json!({"labels": ["7"], "ids": [3]}));
        assert_eq!(made(json!({"title": "a, b"})), json!({"title": "a, b"}), "text is asked for");
    }

    #[test]
    fn m_26_choices_and_truth_values_are_known_in_any_case() {
        let schema = json!({"properties": {
            "state": {"enum": ["open", "OPEN_ALL"]}, "draft": {"type": "boolean"},
            "tags": {"anyOf": [{"type": "array", "items": {"enum": ["bug"]}}, {"type": "null"}]},
        }});
        let made = coerced(json!({"state": "Open", "draft": "Yes", "tags": "BUG"}), &schema);
        assert_eq!(made, json!({"state": "open", "draft": true, "tags": ["bug"]}));
        let kept = json!({"state": "opened", "draft": "maybe"});
        assert_eq!(coerced(kept.clone(), &schema), kept);
    }

    #[test]
    fn m_26_a_number_where_text_is_asked_for_becomes_text() {
        assert_eq!(coerced(json!({"title": 10}), &schema()), json!({"title": "10"}));
    }

    #[test]
    fn m_27_a_text_that_is_no_number_is_a_misfit_at_its_argument() {
        let found = misfits(&coerced(json!({"perPage": "ten"}), &schema()), &schema());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, ["perPage"]);
        assert!(found[0].message.contains("integer"), "{found:?}");
        let found = misfits(&json!({"per_page": 1}), &schema());
        assert!(found.iter().any(|misfit| misfit.message.contains("perPage")), "{found:?}");
    }

    #[test]
    fn a_hostile_schema_ends_in_a_misfit_or_in_nothing() {
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/x.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": 7}),
            json!([]),
            json!({"properties": {"a": {"pattern": "(a+)+$"}}}),
            json!({"properties": {"a": {"pattern": "(?<=x)"}}}),
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}}),
        ] {
            let arguments = coerced(json!({"a": format!("{}!", "a".repeat(5_000))}), &schema);
            let _found = misfits(&arguments, &schema);
        }
    }
}
