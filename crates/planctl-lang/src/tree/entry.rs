//! JSON → trees: libraries of plans, single entries with `steps` or `graph`, and graphs as planctl writes them.

pub(crate) mod json;
mod reader;

use std::borrow::Cow;

use jsonc_parser::ast::{Object, Value};

use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned, escape};
use crate::tree::workflow::Workflow;
use json::{name_of, span_of};
use reader::Reader;

/// How deep JSON may be nested.
const DEPTH_MAX: usize = 32;
/// The most plans that a library may have.
const PLANS_MAX: usize = 1_000;

/// Reads a file of JSON; an unreadable part is absent in the result and named by a finding.
pub fn read(source: &Source) -> (Vec<Workflow>, Vec<Diagnostic>) {
    let mut reader = Reader { source, found: Vec::new(), is_told: false };
    let mut workflows = Vec::new();
    let bom = source.bom_bytes();
    let text = match bom {
        0 => Cow::Borrowed(source.text()),
        bom => Cow::Owned(" ".repeat(bom) + &source.text()[bom..]),
    };
    if let Some(value) = json::parse(source, &text, &mut reader.found) {
        match value.as_object() {
            Some(object) => workflows = reader.file(object),
            None => reader.wrong_type("the file", &value, "an object"),
        }
    }
    (workflows, reader.found)
}

impl Reader<'_> {
    fn file(&mut self, object: &Object<'_>) -> Vec<Workflow> {
        let has = |key: &str| object.properties.iter().any(|property| property.name.as_str() == key);
        if !has("plans") {
            return vec![self.entry(None, object)];
        }
        self.keys("a library", object, &["_meta", "plans"]);
        let mut workflows = Vec::new();
        let Some(plans) = self.object(object, "plans") else { return workflows };
        self.twice(plans);
        for property in &plans.properties {
            let name = Spanned::new(property.name.as_str().to_owned(), name_of(property));
            if workflows.len() >= PLANS_MAX {
                let message = format!("the library has more than {PLANS_MAX} plans");
                self.found
                    .push(Diagnostic::new(Code::P008, message).at(name.span, "the first that is too many"));
                break;
            }
            match property.value.as_object() {
                Some(entry) => workflows.push(self.entry(Some(name), entry)),
                None => {
                    let what = format!("the plan `{}`", escape(&name.value));
                    self.wrong_type(&what, &property.value, "an object");
                }
            }
        }
        workflows
    }

    // Keys given twice, and keys that nobody knows.
    fn keys(&mut self, what: &str, object: &Object<'_>, known: &[&str]) {
        self.twice(object);
        for property in &object.properties {
            let key = property.name.as_str();
            if known.contains(&key) || key.starts_with('_') {
                continue;
            }
            self.unknown_key(what, key, name_of(property), known);
        }
    }

    fn twice(&mut self, object: &Object<'_>) {
        let mut seen = std::collections::BTreeMap::new();
        for property in &object.properties {
            if let Some(first) = seen.insert(property.name.as_str(), name_of(property)) {
                let message = format!("`{}` is given twice", escape(property.name.as_str()));
                let twice = Diagnostic::new(Code::P009, message).at(name_of(property), "this one counts");
                self.found.push(twice.at(first, "given here first").help("keep one of them"));
            }
        }
    }

    fn wrong_type(&mut self, what: &str, found: &Value<'_>, expected: &str) {
        let message = format!("{what} is {}, not {expected}", json::kind(found));
        let at = span_of(found);
        // Of a long value its beginning is enough.
        let at = Span::new(at.start, at.end.min(self.source.line_span(self.source.line_of(at.start)).end));
        let finding = Diagnostic::new(Code::P015, message).at(at, format!("{expected} was expected"));
        self.found.push(finding.help(format!("write {expected}")));
    }
}
