//! Turns plan text into a graph, and a graph into text.
//!
//! [`Source`] takes a file's bytes; [`verify`] reads it, compares it with the [`Facts`] that the caller gathered for its
//! [`wants`], and returns every [`Diagnostic`] together with the graph. [`annotate`] draws a run's progress back into the
//! text without changing its [`digest`].

mod alike;
mod annotate;
mod changes;
mod characters;
pub mod condition;
mod content;
mod diagnostic;
mod digest;
pub mod dot;
mod draw;
mod entry;
mod expand;
mod explain;
mod facts;
pub mod fields;
mod fix;
mod format;
mod group;
mod insert;
mod levels;
mod lint;
mod lower;
mod markdown;
mod near;
mod parse;
mod render;
mod report;
mod secrets;
mod shell;
mod source;
mod template;
mod tree;
mod trial;
mod verify;
pub mod workflow;

pub use annotate::{Mark, annotate};
pub use changes::{Change, changes};
pub use characters::{escape, has_hidden, is_hidden, json_escaped, printable};
pub use diagnostic::{Code, Diagnostic, Edit, Fix, Label, Severity, StepName, did_you_mean};
pub use digest::{canonical, digest, digest_of_text};
pub use draw::render_all;
pub use expand::{Expanded, expand};
pub use explain::{Example, Explanation, unescape};
pub use facts::{Facts, FileFact, Recorded, SpecialKind, SubPlanFact, Wants, protected_candidates, wants};
pub use fix::{Reach, apply_fixes, fixing_edits};
pub use format::format;
pub use group::{Group, groups};
pub use insert::{Insertion, insert_step, insertion};
pub use levels::{Levels, UnknownWish, Wish};
pub use lint::{SUBSCRIPTION_BYTES_MAX, lint, unknown_topics};
pub use lower::{CONTRACT_TIMEOUT, MAX_VISITS, RETRIES, WORK_TIMEOUT, red_first};
pub use parse::{RETRIES_MAX, STATUSES, STEPS_MAX, parse};
pub use render::{Setting, Shown, ShownStep, budget_words, duration_words, priority_word, show};
pub use report::{
    EditView, ExplainedCode, ExplainedCodes, Finding, FixView, Place, ProbeReport, REPORT_SCHEMA, Range,
    Report, StepRef,
};
pub use secrets::{is_secret_name, masked};
pub use shell::{Deciding, Look, TOOLS, Tool, Unseen, deciding, is_reading_contract, scripts_of_command};
pub use source::{PLAN_BYTES_MAX, Position, Source, Span, Spanned, Unreadable};
pub use template::{TEMPLATES, Template, instantiate, slug};
pub use tree::{
    ContractTree, Field, Frontmatter, OnFail, PlanTree, StepKind, StepNumber, StepTree, Then, WorkspaceMode,
};
pub use trial::{Candidate, Obstacle, Trial, TrialRun, Tried, candidates};
pub use verify::{ReadPlan, Verification, read, verify};
