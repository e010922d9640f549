//! Places in a text: ranges of bytes, and values with the range they were read from.

/// A range of bytes in a plan's text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// Makes a span; an end before the start is taken as an empty span.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end: end.max(start) }
    }

    /// Returns the empty span at an offset.
    pub fn at(offset: usize) -> Span {
        Span { start: offset, end: offset }
    }

    /// Says whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Says whether another span lies within it.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value with the place it was read from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands in the plan.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value and its place.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}
