//! One route, and how it is declared.

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use super::super::parameters::{Parameter, WAIT};
use super::super::{Answer, Call, Scope};
use super::PLAN_BODY_BYTES_MAX;

/// The methods that routes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Looks.
    Get,
    /// Changes something.
    Post,
    /// Takes something away.
    Delete,
}

impl Verb {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        }
    }
}

/// Makes the schema of a route's request or answer.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The body that a route takes.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// Its schema.
    pub shape: Shape,
    /// Says whether it can be left out: none at all is an empty object.
    pub may_be_left_out: fn() -> bool,
}

impl Body {
    pub(super) const fn of<T: JsonSchema + DeserializeOwned>() -> Body {
        Body { shape: shape_of::<T>, may_be_left_out: || serde_json::from_str::<T>("{}").is_ok() }
    }
}

/// The answer of a route where the request is right.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// One JSON value.
    Json(Shape),
    /// One JSON value, or nothing where there is none.
    JsonOrNothing(Shape),
    /// One JSON value, with a status that says whether all is well.
    Health(Shape),
    /// Nothing but that it is done.
    Nothing,
    /// Text of this media type.
    Text(&'static str),
    /// Text of this media type, or nothing where no more will come.
    TextOrNothing(&'static str),
}

impl Answers {
    pub(super) const fn json<T: JsonSchema>() -> Answers {
        Answers::Json(shape_of::<T>)
    }

    pub(super) const fn json_or_nothing<T: JsonSchema>() -> Answers {
        Answers::JsonOrNothing(shape_of::<T>)
    }

    pub(super) const fn health<T: JsonSchema>() -> Answers {
        Answers::Health(shape_of::<T>)
    }
}

/// One route.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// Which scope it needs.
    pub needs: Scope,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The parameters of the query that it knows.
    pub query: &'static [Parameter],
    /// The headers that it reads in addition to those of all routes.
    pub headers: &'static [Parameter],
    /// Its body.
    pub takes: Option<Body>,
    /// Its answer.
    pub answers: Answers,
    /// Says that it needs an `Idempotency-Key`.
    pub is_keyed: bool,
    /// Says that a person decides by it, so that no worker's process may call it.
    pub is_decision: bool,
    /// Says that the hooks of a session may call it all the same; its handler refuses a session what is a person's.
    pub is_of_sessions: bool,
    /// How large its body may be.
    pub body_bytes_max: usize,
    /// Its handler.
    pub(in crate::http) handler: fn(Call) -> BoxFuture<'static, Answer>,
}

/// The shape of a type.
fn shape_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    /// By which a person decides.
    pub(super) const fn decision(self) -> Route {
        Route { is_decision: true, ..self }
    }

    /// By which the hooks of a session begin what was approved before.
    pub(super) const fn of_sessions(self) -> Route {
        Route { is_of_sessions: true, ..self }
    }

    /// Marks a route whose body brings a plan's text.
    pub(super) const fn of_a_plan(self) -> Route {
        Route { body_bytes_max: PLAN_BODY_BYTES_MAX, ..self }
    }

    /// That needs no key: it changes nothing, or the lease itself makes it safe to repeat.
    pub(super) const fn unkeyed(self) -> Route {
        Route { is_keyed: false, ..self }
    }

    /// Returns true if a call of this route runs to its end even after its caller disconnects. Otherwise a change could be
    /// committed without the process that has to act on it. Calls that read or wait are dropped at once.
    pub(in crate::http) fn runs_to_completion(&self) -> bool {
        let waits = self.query.iter().any(|parameter| parameter.name == WAIT.name);
        self.is_keyed || (self.needs == Scope::Item && self.verb != Verb::Get && !waits)
    }

    pub(super) const fn with_query(self, query: &'static [Parameter]) -> Route {
        Route { query, ..self }
    }

    pub(super) const fn with_headers(self, headers: &'static [Parameter]) -> Route {
        Route { headers, ..self }
    }

    pub(super) const fn delete(self) -> Route {
        Route { verb: Verb::Delete, ..self }
    }
}
