//! Masks secret values in what processes print, in the forms in which they are usually printed (A50).
//!
//! Of each value these are found: as it is, each long line of it, within base64 (of both alphabets, wherever it stands in
//! what was encoded), in hexadecimal, in URLs and forms, and within JSON strings. Values that a process transforms in other
//! ways (halved, reversed, encrypted) are not found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use planctl_engine::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::capture::Captured;
use crate::digest::digest_of;
use crate::excerpt::Output;

/// The text that the masks put in place of a secret.
const MASK: &str = "****";

/// Values that are shorter are masked only where their name says that they are secret; they are words, numbers and flags.
const VALUE_BYTES_MIN: usize = 6;

/// Ends of names whose values are secret.
const SECRET_NAMES: [&str; 7] = ["password", "passwd", "secret", "token", "key", "pass", "pin"];

/// Shorter ones are never masked: they stand in every output.
const SECRET_BYTES_MIN: usize = 4;

/// From this length on, a part of a value at the end of the kept output is masked.
const PART_BYTES_MIN: usize = 4;

/// Finds secret values in texts.
#[derive(Clone, Default)]
pub struct Masks {
    found: Option<Arc<(AhoCorasick, Vec<Vec<u8>>)>>,
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.found.as_ref().map_or(0, |found| found.1.len()))
    }
}

impl Masks {
    /// Masks the values of these variables.
    pub fn new<'v>(variables: impl IntoIterator<Item = (&'v str, &'v str)>) -> Masks {
        let mut forms = BTreeSet::new();
        for (name, value) in variables {
            let name = name.to_lowercase();
            let is_secret = SECRET_NAMES.iter().any(|end| name.ends_with(end));
            let bytes_min = if is_secret { SECRET_BYTES_MIN } else { VALUE_BYTES_MIN };
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= 2 * VALUE_BYTES_MIN);
            for part in [value.trim()].into_iter().chain(lines).filter(|part| part.len() >= bytes_min) {
                forms.extend(encodings_of(part));
            }
        }
        let forms: Vec<Vec<u8>> = forms.into_iter().filter(|form| form.len() >= SECRET_BYTES_MIN).collect();
        if forms.is_empty() {
            return Masks::default();
        }
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        // Values of some mebibytes in all would be too many, which a configuration can't hold.
        Masks { found: built.ok().map(|finder| Arc::new((finder, forms))) }
    }

    /// Says whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.found.is_none()
    }

    /// Masks what stands in bytes.
    pub fn mask_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(found) = &self.found else { return Cow::Borrowed(bytes) };
        let (finder, _) = &**found;
        if finder.find(bytes).is_none() {
            return Cow::Borrowed(bytes);
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for hit in finder.find_iter(bytes) {
            masked.extend_from_slice(&bytes[from..hit.start()]);
            masked.extend_from_slice(MASK.as_bytes());
            from = hit.end();
        }
        masked.extend_from_slice(&bytes[from..]);
        Cow::Owned(masked)
    }

    /// Masks what stands in a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Masks what a stream held, also a value of which only a part was kept.
    pub(crate) fn mask_captured(&self, captured: &mut Captured) {
        if self.is_empty() {
            return;
        }
        if !captured.is_cut() {
            let whole = self.mask_bytes(&captured.joined()).into_owned();
            *captured = Captured { bytes: whole.len() as u64, head: whole, tail: Vec::new() };
            return;
        }
        let gone = captured.bytes - (captured.head.len() + captured.tail.len()) as u64;
        captured.head = self.mask_partial_end(self.mask_bytes(&captured.head).into_owned());
        captured.tail = self.mask_partial_start(self.mask_bytes(&captured.tail).into_owned());
        captured.bytes = gone + (captured.head.len() + captured.tail.len()) as u64;
    }

    /// Masks all texts of a value that is stored as JSON, and the outputs that it names by their digests.
    ///
    /// # Errors
    ///
    /// When the value is none that JSON keeps.
    pub fn mask_stored<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
        outputs: &mut [Output],
    ) -> serde_json::Result<T> {
        if self.is_empty() {
            return Ok(value);
        }
        let mut renamed = Vec::new();
        for output in outputs {
            if let Cow::Owned(bytes) = self.mask_bytes(&output.bytes) {
                let digest = digest_of(&bytes);
                renamed.push((std::mem::replace(&mut output.digest, digest.clone()), digest));
                output.bytes = bytes;
            }
        }
        let mut json = serde_json::to_value(value)?;
        self.mask_json(&mut json, &renamed);
        serde_json::from_value(json)
    }

    fn mask_json(&self, json: &mut Value, renamed: &[(Digest, Digest)]) {
        match json {
            Value::String(text) => {
                if let Some((_, digest)) = renamed.iter().find(|(before, _)| before.as_str() == text) {
                    *text = digest.as_str().to_owned();
                } else if let Cow::Owned(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask_json(value, renamed)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.mask_json(value, renamed));
                self.mask_cut_tail(fields);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Masks a part of a value with which the tail of a longer text begins.
    fn mask_cut_tail(&self, fields: &mut serde_json::Map<String, Value>) {
        let bytes = fields.get("bytes").and_then(Value::as_u64);
        if let (Some(bytes), Some(Value::String(tail))) = (bytes, fields.get_mut("tail"))
            && bytes > tail.len() as u64
        {
            let whole = self.mask_partial_start(tail.as_bytes().to_vec());
            *tail = String::from_utf8_lossy(&whole).into_owned();
        }
    }

    fn mask_partial_end(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(length) = self.longest_part(|form, length| bytes.ends_with(&form[..length])) {
            bytes.truncate(bytes.len() - length);
            bytes.extend_from_slice(MASK.as_bytes());
        }
        bytes
    }

    fn mask_partial_start(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.longest_part(|form, length| bytes.starts_with(&form[form.len() - length..])) {
            Some(length) => [MASK.as_bytes(), &bytes[length..]].concat(),
            None => bytes,
        }
    }

    fn longest_part(&self, is_there: impl Fn(&[u8], usize) -> bool) -> Option<usize> {
        let forms = self.found.iter().flat_map(|found| &found.1);
        forms
            .filter_map(|form| (PART_BYTES_MIN..form.len()).rev().find(|length| is_there(form, *length)))
            .max()
    }
}

/// Returns a value in each form that is looked for.
fn encodings_of(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let json = serde_json::Value::from(value).to_string();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    let ascii: String = json
        .chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        })
        .collect();
    let hex = planctl_engine::hex(bytes);
    let mut forms = vec![value.to_owned(), json.replace('/', "\\/"), json, ascii, hex.to_uppercase(), hex];
    for is_kept in [is_unreserved as fn(u8) -> bool, is_kept_in_uri] {
        let percent: String = bytes.iter().map(|byte| percent(*byte, is_kept)).collect();
        forms.extend([percent.replace("%20", "+"), lower_escapes(&percent), percent]);
    }
    for before in 0..3 {
        let encoded = base64_within(bytes, before);
        forms.extend([encoded.replace('+', "-").replace('/', "_"), encoded]);
    }
    // A short piece of base64 stands in every text.
    forms
        .into_iter()
        .filter(|form| form.len() >= value.len().min(VALUE_BYTES_MIN))
        .map(String::into_bytes)
        .collect()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

fn is_kept_in_uri(byte: u8) -> bool {
    is_unreserved(byte) || b"!*'();:@&=+$,/?#[]".contains(&byte)
}

fn percent(byte: u8, is_kept: fn(u8) -> bool) -> String {
    if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

fn lower_escapes(percent: &str) -> String {
    let mut parts = percent.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(part.len().min(2));
        text.push('%');
        text.push_str(&code.to_lowercase());
        text.push_str(rest);
    }
    text
}

/// Returns the digits of base64 that depend on these bytes alone where so many bytes (0 to 2) stand before them.
fn base64_within(bytes: &[u8], before: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    // The first digit that begins within the bytes.
    let first = (6 - before * 8 % 6) % 6;
    let count = (bytes.len() * 8).saturating_sub(first) / 6;
    let digit = |number: usize| {
        let value = (0..6).fold(0_u8, |value, at| value << 1 | bit(first + number * 6 + at));
        char::from(DIGITS[usize::from(value)])
    };
    (0..count).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use planctl_engine::Excerpt;

    use super::*;

    const VALUE: &str = "s3cr€t/\"canary\"+ 4711?";

    fn masks() -> Masks {
        Masks::new([("VALUE", VALUE)])
    }

    #[test]
    fn a50_a_value_is_masked_in_every_form() {
        let masks = masks();
        let json = serde_json::json!({ "a": VALUE }).to_string();
        let forms = [
            VALUE.to_owned(),
            json,
            r#"s3cr\u20act/\"canary\"+ 4711?"#.to_owned(),
            "s3cr%E2%82%ACt%2F%22canary%22%2B%204711%3F".to_owned(),
            "s3cr%e2%82%act%2f%22canary%22%2b%204711%3f".to_owned(),
            "s3cr%E2%82%ACt%2F%22canary%22%2B+4711%3F".to_owned(),
            "s3cr%E2%82%ACt/%22canary%22+%204711?".to_owned(),
            "733363 72e282ac742f2263616e617279222b20343731313f".replace(' ', ""),
        ];
        for form in forms {
            let masked = masks.text(&form).into_owned();
            assert!(
                masked.contains("****") && !masked.contains("canary") && masked.len() < 30,
                "{form}: {masked}"
            );
        }
        // As of `printf '%s' "user:$VALUE" | base64`, at each of three places.
        for before in ["", "u", "us", "user:"] {
            let whole = base64_within(format!("{before}{VALUE}").as_bytes(), 0);
            let masked = masks.text(&whole).into_owned();
            assert!(
                masked.contains("****") && masked.len() <= before.len() * 2 + 8,
                "{before}: {whole}: {masked}"
            );
        }
        assert_eq!(base64_within(b"Many hands", 0), "TWFueSBoYW5kc");
        assert_eq!(masks.text("nothing of it"), "nothing of it");
    }

    #[test]
    fn a50_words_and_flags_are_left_alone_and_short_secrets_are_not() {
        assert!(
            Masks::new([("A_KEY", "1"), ("CI", "true"), ("B_KEY", ""), ("RUST_BACKTRACE", "full")])
                .is_empty()
        );
        assert_eq!(Masks::new([("CARD_PIN", "1234")]).text("pin 1234"), "pin ****");
        assert_eq!(
            Masks::new([("CERT", "one line\nhidden-hidden-hidden\n")]).text("> hidden-hidden-hidden"),
            "> ****"
        );
    }

    #[test]
    fn a50_a_value_that_was_cut_is_masked_too() {
        let masks = Masks::new([("A", "canary-canary")]);
        let mut captured =
            Captured { head: b"a canary-c".to_vec(), tail: b"nary-canary z".to_vec(), bytes: 100 };
        masks.mask_captured(&mut captured);
        assert_eq!((captured.head.as_slice(), captured.tail.as_slice()), (&b"a ****"[..], &b"**** z"[..]));
        assert!(captured.is_cut());
        let mut whole = Captured { head: b"a canary".to_vec(), tail: b"-canary z".to_vec(), bytes: 17 };
        masks.mask_captured(&mut whole);
        assert_eq!((whole.joined().as_slice(), whole.is_cut()), (&b"a **** z"[..], false));
    }

    #[test]
    fn a50_what_is_stored_has_no_value_and_names_the_masked_output() {
        let masks = Masks::new([("A", "canary-canary")]);
        let bytes = b"long canary-canary".to_vec();
        let mut outputs = [Output { digest: digest_of(&bytes), bytes }];
        let excerpt =
            Excerpt { bytes: 18, tail: "nary-canary".into(), stored: Some(outputs[0].digest.clone()) };
        let stored = masks.mask_stored(excerpt, &mut outputs).unwrap();
        assert_eq!((stored.tail.as_str(), outputs[0].bytes.as_slice()), ("****", &b"long ****"[..]));
        assert_eq!(stored.stored, Some(digest_of(b"long ****")));
    }
}
