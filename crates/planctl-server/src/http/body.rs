//! Reads the bodies of requests: one JSON value, strictly what the route takes, and says where one is wrong.

use axum::body::Bytes;
use serde::de::DeserializeOwned;

use planctl_api::{Code, Problem};

/// How deeply arrays and objects may nest.
const DEPTH_MAX: usize = 64;

/// Reads a body as one JSON value of a type; an empty one is an empty object.
///
/// # Errors
///
/// Says where it is wrong: the byte, and the field as a JSON pointer (rows 74, 76–80).
pub fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Problem> {
    let text: &[u8] = if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { bytes };
    refuse_unsupported_json(text)?;
    // Else an array would be taken for the fields in their order.
    if let Some(at) = text.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|at| text[*at] == b'[')
    {
        let detail = format!("the body is wrong at byte {at}: expected an object, found an array");
        return Err(Problem::new(Code::BadRequest, detail));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let value = T::deserialize(serde_path_to_error::Deserializer::new(&mut reader, &mut track));
    match value {
        Ok(value) => {
            reader.end().map_err(|error| parse_problem(text, &error, None))?;
            Ok(value)
        }
        Err(error) => Err(parse_problem(text, &error, Some(pointer(&track.path())))),
    }
}

fn parse_problem(text: &[u8], error: &serde_json::Error, pointer: Option<String>) -> Problem {
    let at = offset(text, error.line(), error.column());
    let message = error.to_string();
    // The position is a byte offset, since bodies are seldom read by line.
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let mut problem = Problem::new(Code::BadRequest, format!("the body is wrong at byte {at}: {what}"));
    problem.pointer = pointer.map(String::into_boxed_str);
    problem
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                format!("/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Unknown => "/?".to_owned(),
        })
        .collect()
}

fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        text.split(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(|line| line.len() + 1).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// Refuses what JSON allows and nothing here can take: depth, and U+0000.
fn refuse_unsupported_json(text: &[u8]) -> Result<(), Problem> {
    let (mut depth, mut is_text) = (0usize, false);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, is_text) {
            (b'\\', true) => {
                if text[at..].starts_with(b"\\u0000") {
                    let detail = format!("a string holds U+0000 at byte {at}");
                    return Err(Problem::new(Code::NulCharacter, detail));
                }
                at += 1;
            }
            (b'"', _) => is_text = !is_text,
            (b'[' | b'{', false) => {
                depth += 1;
                if depth > DEPTH_MAX {
                    let detail = format!("the body nests deeper than {DEPTH_MAX} at byte {at}");
                    return Err(Problem::new(Code::BadRequest, detail));
                }
            }
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            (_, _) => {}
        }
        at += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Call {
        #[serde(default)]
        name: String,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        count: u32,
    }

    fn call(text: &str) -> Result<Call, Problem> {
        read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_body_is_one_value_of_its_type() {
        assert_eq!(call("").unwrap().name, "");
        let read = call(r#" {"name": "a\\u0000 { [", "inner": [{"count": 3}]} "#).unwrap();
        assert_eq!((read.name.as_str(), read.inner[0].count), ("a\\u0000 { [", 3));
    }

    #[test]
    fn rows_74_76_77_what_is_wrong_is_said_with_its_place() {
        for (text, detail, pointer) in [
            ("{", "at byte", Some("")),
            ("nonsense", "byte 1", Some("")),
            (r#" ["a"]"#, "byte 1: expected an object", None),
            ("[]", "byte 0: expected an object", None),
            (r#"{"name": "a"} {"name": "b"}"#, "byte 14: trailing characters", None),
            (r#"{"nam": "a"}"#, "unknown field `nam`, expected `name` or `inner`", Some("/nam")),
            (r#"{"name": "a", "name": "b"}"#, "duplicate field `name`", None),
            (r#"{"name": null}"#, "invalid type: null, expected a string", Some("/name")),
            (r#"{"inner": [{"count": 1}, {"count": -1}]}"#, "invalid value", Some("/inner/1/count")),
            (r#"{"inner": [{"count": 9223372036854775808}]}"#, "u32", Some("/inner/0/count")),
            (r#"{"inner": [{"count": 1e999}]}"#, "out of range", Some("/inner/0/count")),
            (r#"{"name": "\ud800"}"#, "byte", Some("/name")),
        ] {
            let problem = call(text).unwrap_err();
            assert!(problem.detail.contains(detail), "{text}: {}", problem.detail);
            assert_eq!(problem.code(), Some(Code::BadRequest), "{text}");
            if let Some(pointer) = pointer.filter(|pointer| !pointer.is_empty()) {
                assert_eq!(problem.pointer.as_deref(), Some(pointer), "{text}");
            }
        }
    }

    #[test]
    fn rows_78_80_a_nul_and_depth_are_refused() {
        let nul = call(r#"{"name": "a\u0000"}"#).unwrap_err();
        assert_eq!(nul.code(), Some(Code::NulCharacter));
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(call(&deep).unwrap_err().detail.contains("deeper than 64"));
    }
}
