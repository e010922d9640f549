//! JSON that another program wrote.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};

/// The length of an escape such as `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Reads JSON that an agent or another program of strangers wrote. Half of a surrogate pair, which JavaScript writes and reads
/// (`\ud83d`), and bytes that are not UTF-8 are read as U+FFFD.
///
/// # Errors
///
/// Says why it can't be read even so.
pub fn read_foreign_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(bytes))))
}

/// Returns a JSON text as every reader takes it: as it is, or as [`read_foreign_json`] reads it; nothing where it is not JSON.
pub fn mended_json(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text = String::from_utf8_lossy(bytes);
    let text = match text.contains("\\ud") || text.contains("\\uD") {
        true => Cow::Owned(without_lone_surrogates(&text)),
        false => text,
    };
    serde_json::from_str::<IgnoredAny>(&text).ok()?;
    Some(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

fn without_lone_surrogates(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let (written, length) = match (surrogate(rest), rest.get(ESCAPE_BYTES..).and_then(surrogate)) {
            (Some(Half::High), Some(Half::Low)) => (rest, 2 * ESCAPE_BYTES),
            (Some(_), _) => ("\\ufffd", ESCAPE_BYTES),
            // The character behind it may be a second backslash, which begins nothing.
            (None, _) => (rest, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
        };
        mended.push_str(&written[..length]);
        rest = &rest[length..];
    }
    mended + rest
}

enum Half {
    High,
    Low,
}

/// Returns which half of a pair a text begins with.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u32::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (json, meant) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\udc00b""#, "\u{fffd}b"),
            (r#""\udc00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""\\\uD83D\\u\n\u00e9""#, "\\\u{fffd}\\u\né"),
            (r#""\ud83dé\ud83d\u""#, ""),
        ] {
            let read: Option<String> = read_foreign_json(json.as_bytes()).ok();
            assert_eq!(read.unwrap_or_default(), meant, "{json}");
        }
        assert_eq!(read_foreign_json::<String>(b"\"a\xff\"").unwrap(), "a\u{fffd}");
        assert_eq!(mended_json(br#"["a\ud83d"]"#).unwrap(), br#"["a\ufffd"]"#.as_slice());
        assert_eq!(
            (mended_json(b" {} ").unwrap(), mended_json(b"{")),
            (Cow::Borrowed(b" {} ".as_slice()), None)
        );
        for broken in ["", "{", "\"\\", "\"\\ud83d", "\\u+123", "\"\\é"] {
            assert!(read_foreign_json::<String>(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
