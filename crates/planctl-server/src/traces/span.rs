//! One span that is over.

use opentelemetry::{SpanId, TraceId};
use planctl_engine::Timestamp;

/// The most characters of a text that a span holds.
const CHARACTERS_MAX: usize = 200;

/// One span that is over.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) began: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// Spans of other traces that belong to it.
    pub(super) links: Vec<(TraceId, SpanId)>,
    /// Why it failed, in a word or two of planctl's own.
    pub(super) failed: Option<String>,
}

/// Says on which side of a call the span is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Internal,
    /// A call that came in.
    Server,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    Amount(f64),
    Truth(bool),
}

impl Span {
    /// Adds a text; credentials in it are masked, and no more of it is kept than fits into a line.
    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        self.attributes.push((name, Value::Text(short(text))));
    }

    pub(super) fn number(&mut self, name: &'static str, number: impl TryInto<i64>) {
        self.attributes.push((name, Value::Number(number.try_into().unwrap_or(i64::MAX))));
    }
}

/// Makes of a text what may leave this machine: visible characters, no credentials, no more than a line.
pub(super) fn short(text: &str) -> String {
    planctl_lang::printable(text).chars().take(CHARACTERS_MAX).collect()
}
