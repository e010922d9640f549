//! The ids of spans, derived from what they are about, so that every process gives one thing the same id.

use opentelemetry::{SpanId, TraceId};
use planctl_engine::{At, Attempt, ItemId, NodeId, RunId};
use sha2::{Digest as _, Sha256};

/// Returns the id of a run's trace: the run's own, whose lower half is random, as collectors that take samples expect.
pub(super) fn trace(run: RunId) -> TraceId {
    TraceId::from_bytes(run.as_u128().to_be_bytes())
}

/// Returns the id of the span of a run, from one beginning to the next end; a run that is taken up again has another.
pub(super) fn run(run: RunId, stage: u32) -> SpanId {
    derived(run, &[b"run", &stage.to_be_bytes()])
}

/// Returns the id of the span of one entering of a node.
pub(super) fn step(run: RunId, node: &NodeId, visit: u16) -> SpanId {
    derived(run, &[b"step", node.as_str().as_bytes(), &visit.to_be_bytes()])
}

/// Returns the id of the span of a try. A rehearsal is of no try, and belongs to the entering.
pub(super) fn attempt(run: RunId, at: &At) -> SpanId {
    if at.attempt == Attempt::NONE {
        return step(run, &at.node, at.visit);
    }
    let number = at.attempt.number().to_be_bytes();
    derived(run, &[b"attempt", at.node.as_str().as_bytes(), &at.visit.to_be_bytes(), &number])
}

/// Returns the id of a span that ends with a line of history.
pub(super) fn of_line(run: RunId, kind: &str, seq: i64) -> SpanId {
    derived(run, &[b"line", kind.as_bytes(), &seq.to_be_bytes()])
}

/// Returns the id of the span of an item that has one alone.
pub(super) fn of_item(run: RunId, kind: &str, item: &ItemId) -> SpanId {
    derived(run, &[b"item", kind.as_bytes(), item.as_str().as_bytes()])
}

/// Returns the form in which a program is told of its parent, by W3C Trace Context; the span is recorded, so it is sampled.
pub(super) fn traceparent(run: RunId, at: &At) -> String {
    format!("00-{}-{}-01", trace(run), attempt(run, at))
}

/// Reads the parent that a caller names. One that is not sampled, or that can't be read, is none.
pub(super) fn read_traceparent(text: &str) -> Option<(TraceId, SpanId)> {
    let mut parts = text.split('-');
    let mut hexadecimal = |length: usize| {
        parts.next().filter(|part| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.len() == length && part.bytes().all(is_digit)
        })
    };
    let (version, trace, span, flags) =
        (hexadecimal(2)?, hexadecimal(32)?, hexadecimal(16)?, hexadecimal(2)?);
    let is_known = version != "ff" && (version != "00" || parts.next().is_none());
    let trace = TraceId::from_hex(trace).ok().filter(|trace| *trace != TraceId::INVALID)?;
    let span = SpanId::from_hex(span).ok().filter(|span| *span != SpanId::INVALID)?;
    let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    (is_known && is_sampled).then_some((trace, span))
}

fn derived(run: RunId, parts: &[&[u8]]) -> SpanId {
    let mut hasher = Sha256::new();
    hasher.update(b"planctl span ");
    hasher.update(run.as_u128().to_be_bytes());
    for part in parts {
        // Each part carries its length, so that no two spans have the same bytes.
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    // Zero stands for no span.
    if bytes == [0; 8] { SpanId::from_bytes([1; 8]) } else { SpanId::from_bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_by_the_rules_of_trace_context() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let (trace, span) = read_traceparent(good).unwrap();
        assert_eq!(format!("00-{trace}-{span}-01"), good);
        assert!(
            read_traceparent(&good.replace("00-0a", "cc-0a").replace("-01", "-03-more")).is_some(),
            "a later version"
        );
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(read_traceparent(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_run_s_trace_is_the_run_s_id_and_its_spans_differ() {
        let id = RunId::from_u128(0x0199_c0de_0000_7000_8000_0000_0000_0001);
        assert_eq!(trace(id).to_string(), "0199c0de000070008000000000000001");
        let at = |node: &str, attempt| At {
            node: NodeId::new(node),
            visit: 1,
            attempt: Attempt::from_number(attempt),
        };
        let spans = [
            run(id, 0),
            run(id, 1),
            step(id, &NodeId::new("a"), 1),
            attempt(id, &at("a", 1)),
            attempt(id, &at("a", 2)),
            attempt(id, &at("b", 1)),
            of_line(id, "work", 1),
            of_line(id, "claim", 1),
        ];
        assert_eq!(
            spans.iter().map(ToString::to_string).collect::<std::collections::BTreeSet<_>>().len(),
            spans.len()
        );
        assert_eq!(attempt(id, &at("a", 0)), step(id, &NodeId::new("a"), 1));
        let parent = traceparent(id, &at("a", 1));
        assert_eq!(read_traceparent(&parent), Some((trace(id), attempt(id, &at("a", 1)))));
    }
}
