//! The part that each line of a plan's body belongs to.

use crate::syntax::markdown::Outline;
use crate::text::Span;
use crate::tree::Field;

/// The body of a plan, part after part; a part goes up to where the next one begins.
pub(crate) struct Layout {
    /// The line where the body begins, from 0.
    pub body: usize,
    /// The parts, in order; the first begins with the body.
    pub parts: Vec<Part>,
    /// Which lines are text, and which lie in a fence.
    pub outline: Outline,
}

/// Some lines that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The first of them, from 0.
    pub line: usize,
    /// Their kind.
    pub kind: PartKind,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartKind {
    /// The plan's title, and text below it.
    Title,
    /// The heading above the steps.
    Steps,
    /// A step's heading, and text below it that belongs to no field.
    Step { level: usize },
    /// A field that was read, or whose value could not be.
    Field { field: Field, value: Span, in_step: bool },
    /// A field that is unknown, or given twice.
    Refused,
    /// A comment that allows a finding.
    Allow,
    /// Anything else: other headings, and text.
    Other,
}
