//! Keeps the head and the tail of a stream and counts the rest (A21).

use std::collections::VecDeque;

/// How much of each end is kept unless asked otherwise.
pub const KEPT_BYTES: usize = 64 * 1024;

/// The output of a process on one stream: both ends, and its length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes after `head`; together they are everything unless it was cut.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub bytes: u64,
}

impl Captured {
    /// Says whether bytes between head and tail are gone.
    pub fn is_cut(&self) -> bool {
        self.bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the last `count` bytes that were kept.
    pub fn last(&self, count: usize) -> Vec<u8> {
        let from_tail = &self.tail[self.tail.len().saturating_sub(count)..];
        // A cut lies between head and tail, so the head's end is not next to a tail that was cut.
        if from_tail.len() < self.tail.len() || self.is_cut() {
            return from_tail.to_vec();
        }
        let missing = count - from_tail.len();
        let mut last = self.head[self.head.len().saturating_sub(missing)..].to_vec();
        last.extend_from_slice(from_tail);
        last
    }

    /// Returns all that was kept, with a line that says what was cut.
    pub fn joined(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.is_cut() {
            let gone = self.bytes - (self.head.len() + self.tail.len()) as u64;
            all.extend_from_slice(format!("\n[… {gone} bytes not kept …]\n").as_bytes());
        }
        all.extend_from_slice(&self.tail);
        all
    }
}

/// Collects one stream as it comes; holds at most twice the kept bytes.
#[derive(Debug)]
pub(crate) struct Capture {
    kept: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl Capture {
    pub(crate) fn new(kept: usize) -> Capture {
        Capture { kept, head: Vec::new(), tail: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let (to_head, rest) = chunk.split_at(chunk.len().min(self.kept - self.head.len()));
        self.head.extend_from_slice(to_head);
        let rest = &rest[rest.len().saturating_sub(self.kept)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.kept);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(kept: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(kept);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn a_short_text_is_kept_whole() {
        let captured = capture(4, &[b"ab", b"cdef"]);
        assert_eq!(
            (captured.head.as_slice(), captured.tail.as_slice()),
            (b"abcd".as_slice(), b"ef".as_slice())
        );
        assert!(!captured.is_cut());
        assert_eq!(captured.last(3), b"def");
        assert_eq!(captured.last(100), b"abcdef");
        assert_eq!(captured.joined(), b"abcdef");
    }

    #[test]
    fn a21_a_long_text_keeps_both_ends_and_the_count() {
        for chunks in [vec![b"0123456789abcdef".as_slice()], b"0123456789abcdef".chunks(1).collect()] {
            let captured = capture(4, &chunks);
            assert_eq!(
                (captured.head.as_slice(), captured.tail.as_slice()),
                (b"0123".as_slice(), b"cdef".as_slice())
            );
            assert_eq!(captured.bytes, 16);
            assert!(captured.is_cut());
            assert_eq!(captured.last(6), b"cdef");
            assert!(String::from_utf8_lossy(&captured.joined()).contains("8 bytes not kept"));
        }
    }
}
