//! The OpenAPI document, made from the table of routes and the schemas of its types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Scope;
use super::parameters::{self, KEY, Parameter};
use super::routes::{Answers, ROUTES, Route};
use planctl_api::{PROBLEM_MEDIA_TYPE, Problem};

const JSON: &str = "application/json";

/// Returns the OpenAPI 3.1 document of all routes.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        path[route.verb.as_str().to_ascii_lowercase()] = operation(route, &mut schemas);
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
            "schemas": schemas.all(),
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token, or of an item's routes the token of its claim; on the socket in the state \
                                directory the kernel says who asks",
            } },
        },
    })
}

/// The schemas of both directions: those of requests say which fields may be left out, those of answers which are always
/// there.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings
        };
        Schemas { read: settings().into_generator(), written: settings().for_serialize().into_generator() }
    }

    fn all(mut self) -> Map<String, Value> {
        let mut all = self.written.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            let before = all.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == schema), "{name} is read and written in two forms");
        }
        all
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let in_path = parameters::of_path(route.path).map(|known| parameter(known, "path", true));
    let in_query = route.query.iter().map(|known| parameter(known, "query", known.is_required));
    let in_head = route.headers.iter().map(|known| parameter(known, "header", false));
    let key = route.is_keyed.then(|| parameter(&KEY, "header", true));
    let parameters: Vec<Value> = in_path.chain(in_query).chain(in_head).chain(key).collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route.answers, schemas),
        "x-planctl-scope": route.needs.as_str(),
        "security": if route.needs == Scope::Nobody { json!([]) } else { json!([{ "bearer": [] }]) },
    });
    if let Some(body) = route.takes {
        let schema = (body.shape)(&mut schemas.read).to_value();
        let is_required = !(body.may_be_left_out)();
        operation["requestBody"] =
            json!({ "required": is_required, "content": { JSON: { "schema": schema } } });
    }
    operation
}

fn responses(answers: Answers, schemas: &mut Schemas) -> Value {
    let problem = schemas.written.subschema_for::<Problem>().to_value();
    let problem =
        json!({ "description": "a problem", "content": { PROBLEM_MEDIA_TYPE: { "schema": problem } } });
    let json_of = |what: &str, schema: &Value| json!({ "description": what, "content": { JSON: { "schema": schema } } });
    let mut responses = match answers {
        Answers::Json(shape) => json!({ "200": json_of("done", &shape(&mut schemas.written).to_value()) }),
        Answers::JsonOrNothing(shape) => json!({
            "200": json_of("done", &shape(&mut schemas.written).to_value()),
            "204": { "description": "there is none" },
        }),
        Answers::Health(shape) => {
            let schema = shape(&mut schemas.written).to_value();
            json!({ "200": json_of("it is well", &schema), "503": json_of("it is not well", &schema) })
        }
        Answers::Nothing => json!({ "204": { "description": "done" } }),
        Answers::Text(media) => json!({ "200": text_of(media) }),
        Answers::TextOrNothing(media) => {
            json!({ "200": text_of(media), "204": { "description": "no more will come" } })
        }
    };
    responses["default"] = problem;
    responses
}

fn text_of(media: &str) -> Value {
    json!({ "description": "done", "content": { media: { "schema": { "type": "string" } } } })
}

fn parameter(known: &Parameter, place: &str, is_required: bool) -> Value {
    json!({
        "name": known.name,
        "in": place,
        "required": is_required,
        "description": known.summary,
        "schema": known.schema(),
    })
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|word| !word.is_empty() && *word != "v1");
    let words: Vec<&str> = words.map(|word| word.trim_matches(['{', '}'])).collect();
    format!("{}_{}", route.verb.as_str().to_ascii_lowercase(), words.join("_"))
}
