//! Turns what a stream held into what is stored: a short tail beside a large text under its digest.

use planctl_engine::{Digest, Excerpt};

use crate::capture::Captured;
use crate::digest::digest_of;

/// A large text that must be stored, by its digest, before what names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Of `bytes`.
    pub digest: Digest,
    /// Head and tail of a stream, with a line between them that says what was not kept.
    pub bytes: Vec<u8>,
}

/// Shortens a stream; one longer than the excerpt's tail is also added to `outputs`.
pub(crate) fn excerpt(captured: &Captured, outputs: &mut Vec<Output>) -> Excerpt {
    let tail = text(&captured.last(Excerpt::TAIL_BYTES_MAX));
    if captured.bytes <= Excerpt::TAIL_BYTES_MAX as u64 {
        return Excerpt { bytes: captured.bytes, tail, stored: None };
    }
    let bytes = captured.joined();
    let digest = digest_of(&bytes);
    outputs.push(Output { digest: digest.clone(), bytes });
    Excerpt { bytes: captured.bytes, tail, stored: Some(digest) }
}

/// Shortens a text.
pub(crate) fn excerpt_of_text(whole: &str, outputs: &mut Vec<Output>) -> Excerpt {
    excerpt(
        &Captured { head: whole.as_bytes().to_vec(), tail: Vec::new(), bytes: whole.len() as u64 },
        outputs,
    )
}

/// Shortens what somebody says; returns what says more than the excerpt's tail, to be stored.
pub fn excerpt_of(whole: &str) -> (Excerpt, Vec<Output>) {
    let mut outputs = Vec::new();
    (excerpt_of_text(whole, &mut outputs), outputs)
}

/// Reads bytes as text of at most the tail's size that Postgres can hold: lossy, and without NUL.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    // Replacement characters are longer than the bytes that they replace.
    let surplus = text.len().saturating_sub(Excerpt::TAIL_BYTES_MAX);
    let start = (surplus..text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_whole_and_stored_nowhere() {
        let mut outputs = Vec::new();
        let excerpt = excerpt_of_text("three\nlines\n", &mut outputs);
        assert_eq!(excerpt, Excerpt { bytes: 12, tail: "three\nlines\n".into(), stored: None });
        assert_eq!(outputs, []);
    }

    #[test]
    fn a27_a_long_binary_text_keeps_a_readable_end_within_the_cap() {
        let mut outputs = Vec::new();
        let mut bytes = vec![0xff; 10_000];
        bytes.extend_from_slice("\0end ä".as_bytes());
        let captured = Captured { bytes: bytes.len() as u64, head: bytes.clone(), tail: Vec::new() };
        let excerpt = excerpt(&captured, &mut outputs);
        assert!(excerpt.tail.ends_with("\u{fffd}end ä") && excerpt.tail.len() <= Excerpt::TAIL_BYTES_MAX);
        assert_eq!(excerpt.stored, Some(digest_of(&bytes)));
        assert_eq!(outputs[0].bytes, bytes);
    }
}
