//! The OpenAPI document, made from the table of routes and the schemas of its types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Scope;
use super::problem::{MEDIA_TYPE, Problem};
use super::routes::{ROUTES, Route};

/// Returns the OpenAPI 3.1 document of all routes.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let takes = route.takes.map(|shape| shape(&mut generator).to_value());
        let answers = route.answers.map(|shape| shape(&mut generator).to_value());
        let operation = operation(route, takes, answers, &problem);
        let path = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        path[route.verb.word().to_ascii_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "planctl",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Plans with AI agents; no step passes until a shell contract says so.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, takes: Option<Value>, answers: Option<Value>, problem: &Value) -> Value {
    let in_path = route.path.split(['{', '}']).skip(1).step_by(2).map(|name| parameter(name, "path", true));
    let in_query = route.query.iter().map(|name| parameter(name, "query", false));
    let key = route.is_keyed.then(|| parameter("Idempotency-Key", "header", true));
    let parameters: Vec<Value> = in_path.chain(in_query).chain(key).collect();
    let good = match answers {
        Some(schema) => json!({ "description": "done", "content": { route.media: { "schema": schema } } }),
        None if route.media == "application/json" => json!({ "description": "done" }),
        None => {
            json!({ "description": "done", "content": { route.media: { "schema": { "type": "string" } } } })
        }
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": good,
            "default": { "description": "a problem", "content": { MEDIA_TYPE: { "schema": problem } } },
        },
        "x-planctl-scope": route.needs.word(),
        "security": if route.needs == Scope::Nobody { json!([]) } else { json!([{ "bearer": [] }]) },
    });
    if let Some(schema) = takes {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameter(name: &str, place: &str, is_required: bool) -> Value {
    json!({ "name": name, "in": place, "required": is_required, "schema": { "type": "string" } })
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|word| !word.is_empty() && *word != "v1");
    let words: Vec<&str> = words.map(|word| word.trim_matches(['{', '}'])).collect();
    format!("{}_{}", route.verb.word().to_ascii_lowercase(), words.join("_"))
}
