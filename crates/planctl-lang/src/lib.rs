//! Turns plan text into a graph, and a graph into text.
//!
//! [`Source`] takes a file's bytes; [`verify`] reads it, compares it with the [`Facts`] that the caller gathered for what the
//! plan asks ([`ReadPlan::wants`]), and returns every [`Diagnostic`] together with the graph. [`annotate`] draws a run's
//! progress back into the text without changing its [`digest`].

mod analysis;
mod convert;
mod diagnostic;
mod edit;
mod facts;
mod graph;
mod import;
pub mod library;
mod lint;
mod report;
mod syntax;
mod text;
pub mod tools;
mod tree;
mod verify;

pub use diagnostic::explain::{Example, Explanation, unescape};
pub use diagnostic::levels::{Levels, UnknownWish, Wish};
pub use diagnostic::{Code, Diagnostic, Edit, Fix, Label, Severity, StepName, did_you_mean};
pub use edit::annotate::{annotate, is_same_but_for_marks};
pub use edit::expand::{Expanded, expand, expand_in_batches};
pub use edit::fix::{Reach, apply_fixes, fixing_edits};
pub use edit::format::format;
pub use edit::insert::{Insertion, insert_step, insertion};
pub use edit::template::{TEMPLATES, Template, instantiate, slug};
pub use facts::{Facts, FileFact, Judges, NextFact, SpecialKind, SubPlanFact, Trial, TrialRun, Tried, Wants};
pub use graph::{CONTRACT_TIMEOUT, WORK_TIMEOUT, red_first};
pub use import::{Imported, Origin, import, import_findings, tags};
pub use lint::allowed::{Allowed, allowing_edit};
pub use lint::candidates::{Candidate, Obstacle, candidates};
pub use lint::{SUBSCRIPTION_BYTES_MAX, lint, unknown_topics};
pub use report::changes::{Change, changes};
pub use report::draw::render_all;
pub use report::findings::{
    AllowedView, EditView, ExplainedCode, ExplainedCodes, Finding, FixView, LabelledRange, ProbeReport,
    REPORT_SCHEMA, Range, Report, StepRef,
};
pub use report::group::{Group, groups};
pub use report::render::{Setting, Shown, ShownStep, budget_words, priority_word, show};
pub use report::requirements::{REQUIREMENTS, Requirement, requirements};
pub use syntax::shell::{
    Deciding, Look, NamedFiles, Reads, Unseen, deciding, is_reading_contract, named_files, reading_programs,
    scripts_of_command,
};
pub use syntax::values::ask_deadline_words;
pub use syntax::{Position, Source, Unreadable, condition, dot};
pub use text::characters::{escape, has_hidden, is_hidden, json_escaped, printable};
pub use text::limits::{MAX_VISITS, PLAN_BYTES_MAX, RETRIES, RETRIES_MAX, STEPS_MAX};
pub use text::secrets::{is_secret_name, masked};
pub use text::{Span, Spanned, duration_words, one_line, shell_quoted, shell_word};
pub use tree::digest::{canonical, digest, digest_of_text};
pub use tree::parse::{STATUSES, budget_of, draft_frontmatter, parse};
pub use tree::{
    Allow, ContractTree, Field, Frontmatter, Mark, OnFail, PlanTree, StepTree, Then, WorkspaceMode, fields,
};

pub use verify::{ReadPlan, Verification, read, verify};

/// Graphs from any source: one tree with the place of every node and edge, and every finding about it.
pub mod workflow {
    pub use crate::convert::{Converted, convert, convert_graph};
    pub use crate::graph::to_graph;
    pub use crate::syntax::Language;
    pub use crate::tree::workflow::*;
}
