//! Turns plan text into a graph, and a graph into text.

mod annotate;
mod diagnostic;
mod digest;
mod markdown;
mod parse;
mod source;
mod tree;

pub use diagnostic::{
    Code, Diagnostic, Fix, Label, Severity, StepName, deny_warnings, did_you_mean, render_all,
};
pub use parse::{RETRIES_MAX, STATUSES, STEPS_MAX, parse};
pub use source::{PLAN_BYTES_MAX, Position, Source, Span, Spanned, Unreadable, escape};
pub use tree::{
    ContractTree, Field, Frontmatter, OnFail, PlanTree, StepKind, StepNumber, StepTree, Then, WorkspaceMode,
};
pub use annotate::{Mark, annotate};
pub use digest::{canonical, digest, digest_of_text};
