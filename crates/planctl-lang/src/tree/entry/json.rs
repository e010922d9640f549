//! JSON with places: the values of a file, or the reason that it can't be read.

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::DEPTH_MAX;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::source::Source;
use crate::text::Span;

/// Parses a file; comments are told, all else that is no JSON is an error at its place.
///
/// `text` is the file's, with spaces in place of a byte order mark.
pub(crate) fn parse<'t>(source: &Source, text: &'t str, found: &mut Vec<Diagnostic>) -> Option<Value<'t>> {
    if let Some(at) = too_deep(text) {
        let message = format!("the values are nested more than {DEPTH_MAX} deep");
        let deep = Diagnostic::new(Code::P302, message).at(Span::at(at), "");
        found.push(deep.help("a plan needs no more than six levels"));
        return None;
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: false };
    match parse_to_ast(text, &collect, &options) {
        Ok(read) => {
            let comments =
                read.comments.iter().flat_map(|comments| comments.values()).flat_map(|list| list.iter());
            if let Some(start) = comments.map(|comment| comment.range().start).min() {
                let at = Span::new(start, start + 2);
                let hint = Diagnostic::new(Code::P005, "JSON has no comments").at(at, "this one is skipped");
                found.push(hint.level(Severity::Warning).help("other readers refuse them: delete them"));
            }
            if read.value.is_none() {
                let empty = Diagnostic::new(Code::P302, "expected an object, found the end of the file");
                found.push(empty.at(Span::at(text.len()), ""));
            }
            read.value
        }
        Err(error) => {
            let range = error.range();
            let span = source.clamp(Span::new(range.start, range.end));
            let end = source.line_span(source.line_of(span.start)).end.max(span.start);
            let mut message = error.kind().to_string();
            if let Some(first) = message.get(..1) {
                message = first.to_lowercase() + &message[1..];
            }
            let refused = Diagnostic::new(Code::P302, format!("the JSON can't be read: {message}"));
            found.push(
                refused
                    .at(Span::new(span.start, span.end.min(end)), "")
                    .help("mend it here; what follows was not read"),
            );
            None
        }
    }
}

// The parser bounds its own depth, and ours is smaller.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut is_text = false;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Some(at);
        }
    }
    None
}

/// Returns where a value stands.
pub(crate) fn span_of(value: &Value<'_>) -> Span {
    Span::new(value.range().start, value.range().end)
}

/// Returns where the key of a property stands.
pub(super) fn name_of(property: &ObjectProp<'_>) -> Span {
    Span::new(property.name.range().start, property.name.range().end)
}

/// Names the type of a value.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "`true` or `false`",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "`null`",
    }
}

/// Returns a value of one word or number as text.
pub(crate) fn scalar(value: &Value<'_>) -> Option<String> {
    match value {
        Value::StringLit(text) => Some(text.value.to_string()),
        Value::NumberLit(number) => Some(number.value.to_owned()),
        Value::BooleanLit(flag) => Some(flag.value.to_string()),
        Value::Object(_) | Value::Array(_) | Value::NullKeyword(_) => None,
    }
}
