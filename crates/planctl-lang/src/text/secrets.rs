//! Finds what looks like a credential, so that nothing that is printed ever holds one.

use std::borrow::Cow;

use crate::text::Span;

/// Text that looks like a credential.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Secret {
    /// Where the secret part stands, without the name before it.
    pub span: Span,
    /// The kind of credential.
    pub kind: &'static str,
}

/// Known beginnings, with how many characters must follow at least.
const PREFIXES: &[(&str, usize, &str)] = &[
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("ghp_", 20, "a GitHub token"),
    ("gho_", 20, "a GitHub token"),
    ("ghu_", 20, "a GitHub token"),
    ("ghs_", 20, "a GitHub token"),
    ("ghr_", 20, "a GitHub token"),
    ("github_pat_", 20, "a GitHub token"),
    ("glpat-", 16, "a GitLab token"),
    ("sk-", 20, "an API key"),
    ("sk_live_", 16, "an API key"),
    ("rk_live_", 16, "an API key"),
    ("xoxb-", 10, "a Slack token"),
    ("xoxp-", 10, "a Slack token"),
    ("xoxa-", 10, "a Slack token"),
    ("xoxr-", 10, "a Slack token"),
    ("xoxs-", 10, "a Slack token"),
    ("AIza", 30, "a Google API key"),
    ("ya29.", 20, "a Google access token"),
    ("npm_", 30, "an npm token"),
    ("pypi-", 30, "a PyPI token"),
    ("dckr_pat_", 16, "a Docker token"),
    ("hf_", 30, "an access token"),
    ("eyJ", 40, "a JSON web token"),
];

/// No known token is shorter, its beginning included.
const TOKEN_BYTES_MIN: usize = 15;

/// How far the first line of a key is looked at, and a value.
const HEAD_BYTES_MAX: usize = 100;
const VALUE_BYTES_MAX: usize = 500;

/// Ends of names whose values are secret.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "secret_key",
];

/// Returns what looks like a credential in a text, in order and without overlaps; linear in the text.
pub(crate) fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    keys(text, &mut found);
    tokens(text, &mut found);
    found.sort_by_key(|secret| (secret.span.start, std::cmp::Reverse(secret.span.end)));
    let mut kept: Vec<Secret> = Vec::new();
    for secret in found {
        if kept.last().is_none_or(|last| last.span.end <= secret.span.start) {
            kept.push(secret);
        }
    }
    kept
}

/// Says that what is called so is a credential, as far as a name tells: `API_TOKEN`, `db_password`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.iter().any(|known| name.ends_with(known))
}

/// Returns a text in which every character of a credential is a `*`.
pub fn masked(text: &str) -> Cow<'_, str> {
    let found = secrets(text);
    if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(stars(text, &found, 0)) }
}

/// Replaces the bytes of secrets by `*`, byte for byte, so that every other place stays; `start` is where the text
/// begins in what the secrets were found in.
pub(crate) fn stars(text: &str, secrets: &[Secret], start: usize) -> String {
    let first = secrets.partition_point(|secret| secret.span.end <= start);
    let mut secrets = secrets[first..].iter().peekable();
    let mut made = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let at = start + at;
        while secrets.peek().is_some_and(|secret| secret.span.end <= at) {
            secrets.next();
        }
        if character != '\n' && secrets.peek().is_some_and(|secret| secret.span.start <= at) {
            made.extend(std::iter::repeat_n('*', character.len_utf8()));
        } else {
            made.push(character);
        }
    }
    made
}

// `-----BEGIN … PRIVATE KEY-----` up to its end.
fn keys(text: &str, found: &mut Vec<Secret>) {
    let mut from = 0;
    let mut may_end = true;
    while let Some(at) = text[from..].find("-----BEGIN ").map(|at| from + at) {
        from = at + 11;
        let near = &text[at..char_boundary_before(text, (at + HEAD_BYTES_MAX).min(text.len()))];
        let Some(head) = near.lines().next().filter(|line| line.contains("PRIVATE KEY-----")) else {
            continue;
        };
        let body = at + head.len();
        let end = if may_end { text[body..].find("-----END ").map(|end| body + end) } else { None };
        may_end = end.is_some();
        let span = end.map_or(Span::new(at, body), |end| Span::new(body, end));
        found.push(Secret { span, kind: "a private key" });
        from = span.end;
    }
}

/// The bytes that tokens are made of.
const PARTS: [bool; 256] = {
    let mut parts = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_mark = matches!(byte as u8, b'_' | b'-' | b'.' | b'+' | b'/' | b'~');
        parts[byte] = is_mark || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    parts
};

// Tokens are ASCII, so bytes are looked at: every text is read here, and most of it is prose.
fn tokens(text: &str, found: &mut Vec<Secret>) {
    let is_part = |byte: u8| PARTS[usize::from(byte)];
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut before = b' ';
    let mut is_bearer_due = false;
    while let Some(&byte) = bytes.get(at) {
        if !is_part(byte) {
            if matches!(byte, b'=' | b':') {
                value(text, at, found);
            }
            is_bearer_due &= byte == b' ';
            before = byte;
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().position(|byte| !is_part(*byte)).unwrap_or(bytes.len() - at);
        let word = &text[at..at + length];
        if let Some(secret) = known_token(word, at) {
            found.push(secret);
        } else if is_bearer_due && word.len() >= 16 && looks_random(word) {
            found.push(Secret { span: Span::new(at, at + length), kind: "an authorization header" });
        }
        is_bearer_due = matches!(word, "Bearer" | "Basic");
        if word.starts_with("//") && before == b':' {
            address(text, at + 2, found);
        }
        before = b' ';
        at += length;
    }
}

fn known_token(word: &str, at: usize) -> Option<Secret> {
    // Most words of a text are shorter than any token.
    if word.len() < TOKEN_BYTES_MIN {
        return None;
    }
    let end = word.trim_end_matches(['.', '/']).len();
    let starts = word.match_indices(['/', '.', '+', '~']).map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).find_map(|from| {
        let part = word.get(from..end).filter(|part| part.len() >= TOKEN_BYTES_MIN)?;
        let (_, _, kind) = PREFIXES.iter().find(|(prefix, more, _)| {
            part.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *more && looks_random(rest))
        })?;
        Some(Secret { span: Span::new(at + from, at + end), kind })
    })
}

// Words of people are of one case and without digits.
fn looks_random(text: &str) -> bool {
    let text = &text[..char_boundary_before(text, text.len().min(HEAD_BYTES_MAX))];
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let upper = text.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = text.bytes().filter(u8::is_ascii_lowercase).count();
    (digits > 0 || (upper > 2 && lower > 2)) && !is_placeholder(text)
}

fn is_placeholder(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["xxxx", "example", "placeholder", "your", "changeme", "dummy", "redacted", "....", "****"]
        .iter()
        .any(|word| lower.contains(word))
}

// `PASSWORD=literal`, `"api_key": "literal"`; not `PASSWORD=$X`, not prose.
fn value(text: &str, at: usize, found: &mut Vec<Secret>) {
    let window = text.get(char_boundary_before(text, at.saturating_sub(40))..at).unwrap_or("");
    let name = window.trim_end_matches(['"', '\'', ' ']);
    let name_start = name
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map_or(0, |before| before + name[before..].chars().next().map_or(1, char::len_utf8));
    let name = name[name_start..].to_lowercase();
    if !NAMES.iter().any(|known| name.ends_with(known)) {
        return;
    }
    let is_assignment = text[at..].starts_with('=');
    let mut start = at + 1;
    let rest = &text[start..];
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    if is_assignment && blanks > 0 {
        return;
    }
    start += blanks;
    let quote = text[start..].chars().next().filter(|c| matches!(c, '"' | '\''));
    start += usize::from(quote.is_some());
    let ends = |c: char| match quote {
        Some(quote) => c == quote || c == '\n',
        None => c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')' | '"' | '\'' | '`' | ','),
    };
    let limit = char_boundary_before(text, (start + VALUE_BYTES_MAX).min(text.len()));
    let length = text[start..limit].find(ends).unwrap_or(limit - start);
    let literal = &text[start..start + length];
    // After a colon only what is quoted or looks random is a value; the rest is prose.
    let is_value = is_assignment || quote.is_some() || (literal.len() >= 12 && looks_random(literal));
    let is_plain =
        !literal.contains(['$', '<', '{', '`', '*', '(', ' ']) && !literal.starts_with(['=', '/', '~', '.']);
    let is_word = ["true", "false", "none", "null", "secret", "password", "token", "test"].contains(&literal);
    if is_value && is_plain && literal.len() >= 4 && !is_word && !is_placeholder(literal) {
        found.push(Secret { span: Span::new(start, start + length), kind: "a password or key" });
    }
}

// `https://user:password@host`
fn address(text: &str, at: usize, found: &mut Vec<Secret>) {
    let rest = &text[at..];
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | ')' | '`'))
        .unwrap_or(rest.len());
    let authority = &rest[..end.min(rest.len())];
    let Some((login, _)) = authority.rsplit_once('@') else { return };
    let Some((user, password)) = login.split_once(':') else { return };
    if !password.is_empty() && !password.contains(['$', '{', '<', '*']) && !is_placeholder(password) {
        let start = at + user.len() + 1;
        found.push(Secret {
            span: Span::new(start, start + password.len()),
            kind: "a password in an address",
        });
    }
}

fn char_boundary_before(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        masked(text).into_owned()
    }

    #[test]
    fn credentials_are_masked_and_the_rest_is_not() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(shown(&format!("é {token}!")), format!("é {}!", "*".repeat(token.len())));
        assert_eq!(shown("PASSWORD=hunter2x curl"), "PASSWORD=******** curl");
        assert_eq!(shown("\"api_key\": \"k9d8f7\""), "\"api_key\": \"******\"");
        assert_eq!(shown("psql postgres://me:geh3im@db/x"), "psql postgres://me:******@db/x");
        assert_eq!(
            shown("Authorization: Bearer abcdef0123456789x"),
            "Authorization: Bearer *****************"
        );
        assert_eq!(shown("AKIAABCDEFGHIJKLMN12"), "*".repeat(20));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz\n-----END RSA PRIVATE KEY-----";
        assert_eq!(shown(key), key.replace("MIIE", "****").replace("xyz", "***"));
    }

    #[test]
    fn names_prose_and_variables_are_no_credentials() {
        for text in [
            "PASSWORD=$PGPASSWORD",
            "export API_KEY=${API_KEY:?}",
            "the password: ask Anna for it",
            "TOKEN=\"$(cat token)\"",
            "a sk-learn-like-interface-for-everything here",
            "https://example.org/a:b@c",
            "git@github.com:x/y.git",
            "PASSWORD=<your password>",
            "the ghp_ prefix",
            "tokens: 200000",
            "secret=",
            "max_token=12",
            "docs/eyJust.md",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
