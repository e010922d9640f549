//! Letters that look like ASCII ones and are none: which ASCII letter they look like, and whose letters they are.

use unicode_normalization::UnicodeNormalization as _;
use unicode_script::UnicodeScript as _;

use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, escape};

/// Returns the ASCII letter, digit or sign that a character is taken for, by Unicode's tables.
///
/// Accented Latin letters are what they look like.
pub(crate) fn ascii_of(character: char) -> Option<char> {
    if character.is_ascii() || matches!(character, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}') {
        return None;
    }
    if matches!(character, '\u{ff01}'..='\u{ff5e}') {
        return character.nfkc().next();
    }
    let mut letters = [0; 4];
    let mut skeleton = unicode_security::skeleton(character.encode_utf8(&mut letters));
    let like = skeleton.next().filter(char::is_ascii_alphanumeric)?;
    skeleton.next().is_none().then_some(like)
}

/// Names a character: `U+0430 (a Cyrillic letter)`.
pub(crate) fn described(character: char) -> String {
    let script = character.script().full_name().replace('_', " ");
    let kind = match (script.as_str(), character) {
        (_, '\u{ff01}'..='\u{ff5e}') => " (a full-width character)".to_owned(),
        ("Common" | "Inherited" | "Unknown", _) => String::new(),
        (script, _) => {
            let article = if script.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
            format!(" ({article} {script} letter)")
        }
    };
    format!("U+{:04X}{kind}", u32::from(character))
}

/// Returns a text with ASCII in place of letters that look like it, where that makes it ASCII; nothing where it is already.
pub(crate) fn in_ascii(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let plain: String = text.chars().map(|character| ascii_of(character).unwrap_or(character)).collect();
    plain.is_ascii().then_some(plain)
}

/// P004: says that a word at this place only looks like the one that was meant, and mends it.
pub(crate) fn report(written: &str, meant: &str, span: Span) -> Diagnostic {
    let others: Vec<(char, char)> = written.chars().filter_map(|c| Some((c, ascii_of(c)?))).collect();
    let shown: String = written
        .chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() })
        .collect();
    let message = match others.first() {
        Some((first, like)) => {
            format!(
                "`{shown}` looks like `{}` and is not: {} looks like `{like}`",
                escape(meant),
                described(*first)
            )
        }
        None => format!("`{shown}` looks like `{}` and is not", escape(meant)),
    };
    let help = format!("type `{}` anew with plain letters", escape(meant));
    Diagnostic::new(Code::P004, message).at(span, "").help(help).fix(span, meant, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_named_with_what_they_look_like() {
        assert_eq!(
            (ascii_of('\u{430}'), described('\u{430}').as_str()),
            (Some('a'), "U+0430 (a Cyrillic letter)")
        );
        assert_eq!(
            (ascii_of('\u{ff54}'), described('\u{ff54}').as_str()),
            (Some('t'), "U+FF54 (a full-width character)")
        );
        for character in ['é', 'ß', 'ж', '仕', '–', 'x'] {
            assert_eq!(ascii_of(character), None, "{character}");
        }
        assert_eq!(in_ascii("t\u{430}rget").as_deref(), Some("target"));
        assert_eq!((in_ascii("target"), in_ascii("größe")), (None, None));
    }
}
