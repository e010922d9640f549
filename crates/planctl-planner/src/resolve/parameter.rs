//! Parameters as a JSON Schema has them, and values that are made to fit them or are refused (M-26, M-27).

use planctl_lang::tools;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A parameter of a capability.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name, as the schema spells it.
    pub name: String,
    /// The values that it takes.
    pub kind: ParameterKind,
    /// Its meaning, in words.
    pub about: String,
    /// Says that a call without it is refused.
    pub is_required: bool,
    /// The only texts that it takes, where there are such.
    pub choices: Vec<String>,
}

/// The values that a parameter takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    /// Texts.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// True and false.
    Boolean,
    /// Lists.
    List(Box<ParameterKind>),
    /// Objects.
    Object,
    /// Values that its schema does not say plainly.
    Any,
}

impl ParameterKind {
    /// Returns it with its article, for people.
    pub fn describe(&self) -> &'static str {
        match self {
            ParameterKind::Text => "a text",
            ParameterKind::Integer => "an integer",
            ParameterKind::Number => "a number",
            ParameterKind::Boolean => "true or false",
            ParameterKind::List(_) => "a list",
            ParameterKind::Object => "an object",
            ParameterKind::Any => "any value",
        }
    }
}

impl ParameterKind {
    fn schema(&self) -> Value {
        match self {
            ParameterKind::Text => json!({ "type": "string" }),
            ParameterKind::Integer => json!({ "type": "integer" }),
            ParameterKind::Number => json!({ "type": "number" }),
            ParameterKind::Boolean => json!({ "type": "boolean" }),
            ParameterKind::List(of) => json!({ "type": "array", "items": of.schema() }),
            ParameterKind::Object => json!({ "type": "object" }),
            ParameterKind::Any => json!({}),
        }
    }
}

impl Parameter {
    /// Returns what is known of it as a schema again.
    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if !self.choices.is_empty() && self.kind == ParameterKind::Text {
            schema["enum"] = json!(self.choices);
        }
        schema
    }
}

/// Reads the parameters of a schema, or a list of their names; and whether others are taken, too.
pub(super) fn parameters_of(schema: Option<&Value>) -> (Vec<Parameter>, bool) {
    let Some(schema) = schema else { return (Vec::new(), false) };
    if let Value::Array(names) = schema {
        let named = names.iter().filter_map(Value::as_str).map(|name| Parameter {
            name: name.to_owned(),
            kind: ParameterKind::Any,
            about: String::new(),
            is_required: false,
            choices: Vec::new(),
        });
        return (named.collect(), false);
    }
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameters = properties.into_iter().flatten().map(|(name, property)| Parameter {
        name: name.clone(),
        kind: kind_of(property),
        about: property.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        is_required: required.contains(&name.as_str()),
        choices: choices_of(property),
    });
    let is_described = |name: &&&str| properties.is_some_and(|properties| properties.contains_key(**name));
    // A call needs them all the same.
    let undescribed = required.iter().filter(|name| !is_described(name)).map(|name| Parameter {
        name: (*name).to_owned(),
        kind: ParameterKind::Any,
        about: String::new(),
        is_required: true,
        choices: Vec::new(),
    });
    let takes_others = !matches!(schema.get("additionalProperties"), Some(Value::Bool(false)) | None);
    (parameters.chain(undescribed).collect(), takes_others)
}

fn kind_of(property: &Value) -> ParameterKind {
    let named = match property.get("type") {
        Some(Value::String(named)) => Some(named.as_str()),
        // One of several types is plain where the other is null.
        Some(Value::Array(several)) => {
            let mut named = several.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            named.next().filter(|_| named.next().is_none())
        }
        Some(_) | None => None,
    };
    match named {
        Some("string") => ParameterKind::Text,
        Some("integer") => ParameterKind::Integer,
        Some("number") => ParameterKind::Number,
        Some("boolean") => ParameterKind::Boolean,
        Some("array") => {
            ParameterKind::List(Box::new(property.get("items").map_or(ParameterKind::Any, kind_of)))
        }
        Some("object") => ParameterKind::Object,
        Some(_) => ParameterKind::Any,
        None => kind_of_forms(property),
    }
}

fn kind_of_forms(property: &Value) -> ParameterKind {
    if !choices_of(property).is_empty() {
        return ParameterKind::Text;
    }
    let forms = ["anyOf", "oneOf"].iter().find_map(|key| property.get(*key)?.as_array());
    let is_null = |form: &&Value| form.get("type").and_then(Value::as_str) == Some("null");
    let mut plain = forms.into_iter().flatten().filter(|form| !is_null(form));
    match (plain.next(), plain.next()) {
        (Some(form), None) => kind_of(form),
        (Some(_) | None, _) => ParameterKind::Any,
    }
}

fn choices_of(property: &Value) -> Vec<String> {
    let listed = property.get("enum").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|choice| choice.as_str().map(str::to_owned)).collect()
}

/// Makes a value fit a parameter, by the rule that holds for every call of a tool.
///
/// # Errors
///
/// Why it does not fit, as the end of a sentence.
pub fn coerced(parameter: &Parameter, value: &Value) -> Result<Value, String> {
    let schema = parameter.schema();
    let fitted = tools::coerced(value.clone(), &schema);
    if tools::misfits(&fitted, &schema).is_empty() {
        return Ok(fitted);
    }
    let name = &parameter.name;
    Err(match parameter.choices.is_empty() {
        true => format!("`{name}` takes {}, not {value}", parameter.kind.describe()),
        false => format!("`{name}` takes one of {}, not {value}", parameter.choices.join(", ")),
    })
}
