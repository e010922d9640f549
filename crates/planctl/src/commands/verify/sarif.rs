//! Findings as SARIF 2.1.0, which code hosts and editors read.

use std::collections::BTreeMap;
use std::path::Path;

use planctl_lang::{Allowed, Code, Diagnostic, Edit, Label, Range, Severity, Source, Span, digest_of_text};
use serde_json::{Map, Value, json};

use super::place::{from_root, root, uri};
use super::{Looked, unreadable};
use crate::show;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The base of relative URIs.
const BASE: &str = "%SRCROOT%";

/// Returns the log of one run over all files.
pub fn log(workspace: &Path, looked: &[Looked]) -> Value {
    let root = root(workspace);
    let mut results = Vec::new();
    for one in looked {
        let file = File { artifact: artifact(&from_root(&root, &one.file)) };
        let mut seen = Seen::default();
        match &one.found {
            Err(failure) => {
                results.push(file.result(&Source::new("", ""), &unreadable(failure), &mut seen, false));
            }
            Ok(checked) => {
                let found = checked.verification.diagnostics.iter().filter(|found| found.code != Code::P020);
                results.extend(found.map(|found| file.result(&checked.source, found, &mut seen, true)));
                let allowed = checked.verification.allowed.iter();
                results.extend(allowed.map(|allowed| file.suppressed(&checked.source, allowed, &mut seen)));
            }
        }
    }
    let is_directory = |uri: String| if uri.ends_with('/') { uri } else { uri + "/" };
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "planctl",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": Code::ALL.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { BASE: { "uri": is_directory(uri(&root)) } },
            "invocations": [{ "executionSuccessful": true }],
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    let explanation = code.explain();
    let text = explanation.text.trim();
    let first = text.split("\n\n").next().unwrap_or(text);
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.title() },
        "fullDescription": { "text": first },
        "help": { "text": text, "markdown": explanation.markdown.trim() },
        "defaultConfiguration": { "level": level(code.default_level()) },
    })
}

fn level(level: Severity) -> &'static str {
    match level {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn artifact(path: &Path) -> Value {
    if path.is_absolute() {
        json!({ "uri": uri(path) })
    } else {
        json!({ "uri": uri(path), "uriBaseId": BASE })
    }
}

/// How often a fingerprint came up before, so that equal findings stay apart.
type Seen = BTreeMap<String, u32>;

struct File {
    artifact: Value,
}

impl File {
    fn result(&self, source: &Source, found: &Diagnostic, seen: &mut Seen, is_read: bool) -> Value {
        let mut text = found.message.clone();
        for note in &found.notes {
            text.push_str(&format!("\nnote: {note}"));
        }
        if let Some(help) = &found.help {
            text.push_str(&format!("\nhelp: {help}"));
        }
        let primary = found.spans.first();
        let mut location = json!({ "physicalLocation": { "artifactLocation": self.artifact } });
        if let Some(label) = primary.filter(|_| is_read) {
            location = self.location(source, label);
        }
        if let Some(step) = &found.step {
            let place = format!("step {}", step.number);
            location["logicalLocations"] = json!([{
                "name": show::safe(&step.title),
                "fullyQualifiedName": show::safe(&place),
                "kind": "step",
            }]);
        }
        let index = Code::ALL.iter().position(|code| *code == found.code).unwrap_or(0);
        let mut result = Map::from_iter([
            ("ruleId".to_owned(), json!(found.code.as_str())),
            ("ruleIndex".to_owned(), json!(index)),
            ("level".to_owned(), json!(level(found.level))),
            ("message".to_owned(), json!({ "text": show::safe_block(&text) })),
            ("locations".to_owned(), json!([location])),
            (
                "partialFingerprints".to_owned(),
                json!({ "planctlFinding/v1": fingerprint(source, found, seen) }),
            ),
            // Where one result has the list, all have it; one that is empty suppresses nothing.
            ("suppressions".to_owned(), json!([])),
        ]);
        let related: Vec<Value> = found
            .spans
            .iter()
            .skip(1)
            .enumerate()
            .map(|(at, label)| {
                let mut location = self.location(source, label);
                location["id"] = json!(at + 1);
                location
            })
            .collect();
        if !related.is_empty() {
            result.insert("relatedLocations".to_owned(), Value::from(related));
        }
        if let Some(fix) = &found.fix {
            let replacements: Vec<Value> = fix.edits.iter().map(|edit| replacement(source, edit)).collect();
            let words = found.help.as_deref().unwrap_or("mend it");
            let change = json!([{ "artifactLocation": self.artifact, "replacements": replacements }]);
            result.insert(
                "fixes".to_owned(),
                json!([{ "description": { "text": show::safe_block(words) }, "artifactChanges": change }]),
            );
        }
        Value::Object(result)
    }

    /// Returns a finding that the plan allows: its result, suppressed in the source.
    fn suppressed(&self, source: &Source, allowed: &Allowed, seen: &mut Seen) -> Value {
        let mut result = self.result(source, &allowed.finding, seen, true);
        let comment = Label { span: allowed.comment, text: String::new() };
        result["suppressions"] = json!([{
            "kind": "inSource",
            "justification": show::safe(&allowed.reason),
            "location": self.location(source, &comment),
        }]);
        result
    }

    fn location(&self, source: &Source, label: &Label) -> Value {
        let mut location = json!({ "physicalLocation": {
            "artifactLocation": self.artifact,
            "region": region(source, label.span),
        }});
        if !label.text.is_empty() {
            location["message"] = json!({ "text": show::safe_block(&label.text) });
        }
        location
    }
}

fn region(source: &Source, span: Span) -> Value {
    let place = Range::of(source, span);
    json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    })
}

fn replacement(source: &Source, edit: &Edit) -> Value {
    json!({
        "deletedRegion": region(source, edit.span),
        "insertedContent": { "text": edit.replacement },
    })
}

// The text it points to and the step's title, never a line number: the finding stays the same one where text is added
// above it.
fn fingerprint(source: &Source, found: &Diagnostic, seen: &mut Seen) -> String {
    let place = found.spans.first().map_or(Span::at(0), |label| label.span);
    let line = source.slice(source.line_span(source.line_of(place.start))).trim();
    let title = found.step.as_ref().map_or("", |step| step.title.as_str());
    let digest = digest_of_text(&format!("{}\0{title}\0{line}", found.code));
    let digest = digest.as_str();
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest).get(..32).unwrap_or(digest).to_owned();
    let count = seen.entry(digest.clone()).or_insert(0);
    *count += 1;
    format!("{digest}:{count}")
}
