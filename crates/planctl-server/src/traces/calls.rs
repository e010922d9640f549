//! Calls of the API that name a trace of their caller: each is a span of that trace, kept until it is sent.

use std::collections::VecDeque;
use std::sync::Mutex;

use opentelemetry::{SpanId, TraceId};
use planctl_engine::Timestamp;
use uuid::Uuid;

use super::ids;
use super::span::{Kind, Span};
use crate::clock;
use crate::mutex::lock;

/// How many calls wait at most; further ones are left out.
const WAITING_MAX: usize = 2048;

/// Calls that are over and were not sent.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<VecDeque<Span>>);

/// One call under way, of a caller that names its trace.
pub(crate) struct CallSpan {
    trace: TraceId,
    parent: SpanId,
    began: Timestamp,
}

impl CallSpan {
    /// Begins a call whose head names this parent; `None` where it names none.
    pub(crate) fn begin(traceparent: &str) -> Option<CallSpan> {
        let (trace, parent) = ids::read_traceparent(traceparent)?;
        Some(CallSpan { trace, parent, began: clock::now() })
    }
}

impl Calls {
    /// Keeps a call that is over.
    pub(crate) fn end(&self, call: CallSpan, method: &str, route: &str, status: u16) {
        let drawn = Uuid::now_v7().into_bytes();
        let mut id = [0; 8];
        id.copy_from_slice(&drawn[8..]);
        let mut span = Span {
            trace: call.trace,
            id: SpanId::from_bytes(id),
            parent: Some(call.parent),
            name: format!("{method} {route}"),
            kind: Kind::Server,
            began: call.began,
            ended: clock::now().max(call.began),
            attributes: Vec::new(),
            links: Vec::new(),
            failed: (status >= 500).then(|| status.to_string()),
        };
        span.text("http.request.method", method);
        span.text("http.route", route);
        span.number("http.response.status_code", status);
        let mut waiting = lock(&self.0);
        if waiting.len() < WAITING_MAX {
            waiting.push_back(span);
        }
    }

    /// Takes out calls that wait, at most so many.
    pub(crate) fn take(&self, most: usize) -> Vec<Span> {
        let mut waiting = lock(&self.0);
        let count = waiting.len().min(most);
        waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_nobody_takes_are_bounded() {
        let calls = Calls::default();
        for _ in 0..WAITING_MAX + 10 {
            let call = CallSpan::begin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
            calls.end(call, "GET", "/v1/runs", 200);
        }
        assert_eq!(calls.take(usize::MAX).len(), WAITING_MAX);
        assert!(calls.take(1).is_empty());
    }
}
