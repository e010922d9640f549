//! The JSON of a verification for programs: the answer of `plan verify --format json` (DESIGN 11).

use planctl_engine::Digest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::diagnostic::{Code, Diagnostic, Label, Severity};
use crate::lint::allowed::Allowed;
use crate::syntax::source::Source;
use crate::text::Span;
use crate::text::characters::printable;
use crate::verify::Verification;

/// The name of the shape below; another number where a program has to read it differently.
pub const REPORT_SCHEMA: &str = "planctl.verify/1";

/// The name of the shape that explains codes.
const EXPLAIN_SCHEMA: &str = "planctl.explain/1";

/// One plan, verified: the answer of `plan verify --json` for one file.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Report {
    /// The name and version of this shape: `planctl.verify/1`.
    #[schemars(extend("const" = REPORT_SCHEMA))]
    pub schema: String,
    /// The file as it was named.
    pub file: String,
    /// The digest of the canonical text; `null` where the file could not be read, or not as text.
    pub digest: Option<String>,
    /// Says that there is no error among the findings, and that the file holds one plan and no more.
    pub verified: bool,
    /// Every finding, in the order of the text.
    pub diagnostics: Vec<Finding>,
    /// The findings that the plan allows by comments, which are none of the others.
    pub allowed: Vec<AllowedView>,
    /// How many findings were mended; with `--fix` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<usize>,
    /// How many contracts were tried before any work; with `--probe` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeReport>,
}

/// How many contracts were tried before any work.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProbeReport {
    /// How many contracts the plan has.
    pub contracts: usize,
    /// How many of them were tried.
    pub tried: usize,
    /// How long that took, in seconds.
    pub seconds: f64,
}

/// A finding that the plan allows.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AllowedView {
    /// The finding.
    pub finding: Finding,
    /// Why the plan's author allows it.
    pub reason: String,
    /// The comment that says so.
    pub comment: Range,
}

/// One finding.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finding {
    /// The stable code: `P104`.
    #[schemars(schema_with = "code_schema")]
    pub code: Code,
    /// How much it weighs.
    pub level: Severity,
    /// The problem, in one line.
    pub message: String,
    /// Where, the primary place first.
    pub spans: Vec<LabelledRange>,
    /// The step it is about: its number, or its template as written.
    pub step: Option<StepRef>,
    /// Further notes.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
    /// How replacing text mends it.
    pub fix: Option<FixView>,
}

/// A place in the file and what is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LabelledRange {
    /// Where it begins and ends.
    #[serde(flatten)]
    pub at: Range,
    /// The note on the place; may be empty.
    pub label: String,
}

/// Where something begins and ends. All count from 1; columns count characters, not display width.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Range {
    /// The line of the first character.
    #[schemars(range(min = 1))]
    pub line: usize,
    /// The column of the first character.
    #[schemars(range(min = 1))]
    pub column: usize,
    /// The line where it ends.
    #[schemars(range(min = 1))]
    pub end_line: usize,
    /// The column after the last character.
    #[schemars(range(min = 1))]
    pub end_column: usize,
}

/// A step: its number, or its template as written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StepRef {
    /// Its number.
    Number(u32),
    /// The template's placeholder in place of the number.
    Template(String),
}

/// Replacements that only make sense together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FixView {
    /// Says that the meaning stays the same, so that no person needs to look.
    pub safe: bool,
    /// The replacements, in the order of the text; they do not overlap.
    pub edits: Vec<EditView>,
}

/// One replacement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EditView {
    /// The text that is replaced; empty where text is inserted.
    #[serde(flatten)]
    pub at: Range,
    /// The new text.
    pub replacement: String,
}

/// Codes explained: the answer of `plan verify --explain --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExplainedCodes {
    /// The name and version of this shape: `planctl.explain/1`.
    #[schemars(extend("const" = EXPLAIN_SCHEMA))]
    pub schema: String,
    /// The codes.
    pub codes: Vec<ExplainedCode>,
}

/// One code explained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExplainedCode {
    /// The stable code: `P104`.
    #[schemars(schema_with = "code_schema")]
    pub code: Code,
    /// How much a finding of it weighs where nobody says otherwise.
    pub level: Severity,
    /// Says that a plan may allow findings of it, with a reason.
    pub may_be_allowed: bool,
    /// The subject of its findings.
    pub title: String,
    /// The family it belongs to.
    pub family: String,
    /// The meaning and the remedy, as markdown.
    pub text: String,
    /// A plan, or a part of one, that has the finding.
    pub bad: Option<String>,
    /// The same without it.
    pub good: Option<String>,
}

impl ExplainedCodes {
    /// Explains codes.
    pub fn new(codes: &[Code]) -> ExplainedCodes {
        let explained = |code: &Code| {
            let explanation = code.explain();
            ExplainedCode {
                code: *code,
                level: code.default_level(),
                may_be_allowed: code.may_be_allowed(),
                title: code.title().to_owned(),
                family: code.family().to_owned(),
                text: explanation.text.to_owned(),
                bad: explanation.bad.map(|example| example.shown.to_owned()),
                good: explanation.good.map(|example| example.shown.to_owned()),
            }
        };
        ExplainedCodes { schema: EXPLAIN_SCHEMA.to_owned(), codes: codes.iter().map(explained).collect() }
    }
}

fn code_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    schemars::json_schema!({ "type": "string", "enum": codes })
}

impl Verification {
    /// Returns what programs read of it.
    pub fn report(&self, source: &Source) -> Report {
        Report {
            schema: REPORT_SCHEMA.to_owned(),
            file: printable(source.path()),
            digest: self.is_text.then(|| Digest::as_str(&self.digest).to_owned()),
            verified: self.is_verified(),
            diagnostics: self.diagnostics.iter().map(|diagnostic| diagnostic.report(source)).collect(),
            allowed: self.allowed.iter().map(|allowed| allowed.report(source)).collect(),
            fixed: None,
            probe: None,
        }
    }
}

impl Report {
    /// Returns what programs read of a file that could not be read at all.
    pub fn unreadable(file: impl Into<String>, what: &Diagnostic) -> Report {
        let source = Source::new(file, "");
        Report {
            schema: REPORT_SCHEMA.to_owned(),
            file: printable(source.path()),
            digest: None,
            verified: false,
            diagnostics: vec![what.report(&source)],
            allowed: Vec::new(),
            fixed: None,
            probe: None,
        }
    }
}

impl Report {
    /// Reports findings about a text that is no plan, and so has no digest of one.
    pub fn of_findings(source: &Source, found: &[Diagnostic]) -> Report {
        Report {
            schema: REPORT_SCHEMA.to_owned(),
            file: printable(source.path()),
            digest: None,
            verified: found.iter().all(|found| found.level != Severity::Error),
            diagnostics: found.iter().map(|found| found.report(source)).collect(),
            allowed: Vec::new(),
            fixed: None,
            probe: None,
        }
    }
}

impl Allowed {
    fn report(&self, source: &Source) -> AllowedView {
        AllowedView {
            finding: self.finding.report(source),
            reason: printable(&self.reason),
            comment: Range::of(source, self.comment),
        }
    }
}

impl Diagnostic {
    /// Returns what programs read of it.
    pub fn report(&self, source: &Source) -> Finding {
        let edits = |fix: &crate::diagnostic::Fix| {
            let edits = fix.edits.iter().map(|edit| EditView {
                at: Range::of(source, edit.span),
                replacement: edit.replacement.clone(),
            });
            FixView { safe: fix.safe, edits: edits.collect() }
        };
        Finding {
            code: self.code,
            level: self.level,
            message: printable(&self.message),
            spans: self.spans.iter().map(|label| LabelledRange::of(source, label)).collect(),
            step: self.step.as_ref().map(|step| match step.number.parse() {
                Ok(number) => StepRef::Number(number),
                Err(_) => StepRef::Template(step.number.clone()),
            }),
            notes: self.notes.iter().map(|note| printable(note)).collect(),
            help: self.help.as_deref().map(printable),
            fix: self.fix.as_ref().map(edits),
        }
    }
}

impl LabelledRange {
    fn of(source: &Source, label: &Label) -> LabelledRange {
        LabelledRange { at: Range::of(source, label.span), label: printable(&label.text) }
    }
}

impl Range {
    /// Returns where a span stands.
    pub fn of(source: &Source, span: Span) -> Range {
        let span = source.clamp(span);
        let (start, end) = (source.position(span.start), source.position(span.end));
        Range { line: start.line, column: start.column, end_line: end.line, end_column: end.column }
    }
}
