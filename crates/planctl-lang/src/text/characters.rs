//! Characters that nobody sees, or that change how a line is shown: which they are, what they are called, and how a
//! text is printed without them.

use std::fmt::Write as _;

/// Says whether a character is a control, an invisible or a bidirectional one, or no character at all.
///
/// Some of them belong to a script or to an emoji: [`hidden`] knows where.
pub fn is_hidden(character: char) -> bool {
    let code = u32::from(character);
    match character {
        '\t' | '\n' | '\r' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control() || code & 0xfffe == 0xfffe,
    }
}

/// Writes the hidden characters of a JSON text as `\u` escapes, which stand for the same text.
///
/// They can only be within strings: JSON has none of them elsewhere.
pub fn json_escaped(json: String) -> String {
    if json.is_ascii() || !json.chars().any(is_hidden_in_json) {
        return json;
    }
    let mut shown = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if is_hidden_in_json(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").unwrap_or(());
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_hidden_in_json(character: char) -> bool {
    !character.is_ascii() && is_hidden(character)
}

/// Returns the characters of a text that [`is_hidden`] and that nothing beside them calls for, with their offsets.
///
/// Joiners between emoji or between letters of a script that joins them, variation selectors after what they vary, and
/// the tags of a flag are how people write; they are passed over.
pub(crate) fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut characters = text.char_indices().peekable();
    let mut before = None;
    let mut is_flag = false;
    std::iter::from_fn(move || {
        while let Some((at, character)) = characters.next() {
            let after = characters.peek().map(|(_, next)| *next);
            let is_tag = matches!(character, '\u{e0020}'..='\u{e007f}');
            is_flag = character == '\u{1f3f4}' || (is_flag && is_tag);
            let is_refused =
                is_hidden(character) && !(is_flag && is_tag) && !is_called_for(before, character, after);
            before = Some(character);
            if is_refused {
                return Some((at, character));
            }
        }
        None
    })
}

/// Says whether a text holds characters that nobody sees and nothing beside them calls for, as no path should.
pub fn has_hidden(text: &str) -> bool {
    hidden(text).next().is_some()
}

fn is_called_for(before: Option<char>, character: char, after: Option<char>) -> bool {
    let (Some(before), after) = (before, after.unwrap_or(' ')) else { return false };
    let joins = |near: char| matches!(near, '\u{600}'..='\u{1cff}' | '\u{a800}'..='\u{abff}');
    match character {
        '\u{200d}' => (is_symbol(before) && is_symbol(after)) || (joins(before) && joins(after)),
        '\u{200c}' => joins(before) && joins(after),
        '\u{fe0e}' | '\u{fe0f}' => is_symbol(before) || after == '\u{20e3}',
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => is_ideograph(before) || is_symbol(before),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1800}'..='\u{18af}'),
        _ => false,
    }
}

// Emoji, arrows and other signs; after one of them a variation selector may already stand.
fn is_symbol(character: char) -> bool {
    match character {
        '©' | '®' | '‼' | '⁉' | '\u{fe0f}' => true,
        '\u{2100}'..='\u{2bff}' | '\u{3000}'..='\u{303f}' | '\u{3200}'..='\u{32ff}' => true,
        other => matches!(u32::from(other), 0x1f000..=0x1ffff),
    }
}

fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character), 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Names a character by its code point and its name, so that it is never printed raw.
pub(crate) fn name(character: char) -> String {
    let code = u32::from(character);
    match title(character) {
        Some(title) => format!("U+{code:04X} {title}"),
        None => format!("U+{code:04X}"),
    }
}

/// Says what a hidden character does to a line, for a label.
pub(crate) fn effect(character: char) -> &'static str {
    match character {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            "an invisible character that changes the order in which the line is shown"
        }
        '\u{2028}' | '\u{2029}' => "an invisible character that some programs show as a new line",
        other if other.is_control() => "a control character",
        _ => "a character that can't be seen",
    }
}

/// Says whether a text reads the same without the character, so that it can go without a second look.
pub(crate) fn has_no_effect(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{180e}' | '\u{34f}')
}

fn title(character: char) -> Option<String> {
    let fixed = match character {
        '\u{ad}' => "SOFT HYPHEN",
        '\u{34f}' => "COMBINING GRAPHEME JOINER",
        '\u{61c}' => "ARABIC LETTER MARK",
        '\u{115f}' => "HANGUL CHOSEONG FILLER",
        '\u{1160}' => "HANGUL JUNGSEONG FILLER",
        '\u{17b4}' => "KHMER VOWEL INHERENT AQ",
        '\u{17b5}' => "KHMER VOWEL INHERENT AA",
        '\u{180e}' => "MONGOLIAN VOWEL SEPARATOR",
        '\u{200b}' => "ZERO WIDTH SPACE",
        '\u{200c}' => "ZERO WIDTH NON-JOINER",
        '\u{200d}' => "ZERO WIDTH JOINER",
        '\u{200e}' => "LEFT-TO-RIGHT MARK",
        '\u{200f}' => "RIGHT-TO-LEFT MARK",
        '\u{2028}' => "LINE SEPARATOR",
        '\u{2029}' => "PARAGRAPH SEPARATOR",
        '\u{202a}' => "LEFT-TO-RIGHT EMBEDDING",
        '\u{202b}' => "RIGHT-TO-LEFT EMBEDDING",
        '\u{202c}' => "POP DIRECTIONAL FORMATTING",
        '\u{202d}' => "LEFT-TO-RIGHT OVERRIDE",
        '\u{202e}' => "RIGHT-TO-LEFT OVERRIDE",
        '\u{2060}' => "WORD JOINER",
        '\u{2061}' => "FUNCTION APPLICATION",
        '\u{2062}' => "INVISIBLE TIMES",
        '\u{2063}' => "INVISIBLE SEPARATOR",
        '\u{2064}' => "INVISIBLE PLUS",
        '\u{2066}' => "LEFT-TO-RIGHT ISOLATE",
        '\u{2067}' => "RIGHT-TO-LEFT ISOLATE",
        '\u{2068}' => "FIRST STRONG ISOLATE",
        '\u{2069}' => "POP DIRECTIONAL ISOLATE",
        '\u{206a}' => "INHIBIT SYMMETRIC SWAPPING",
        '\u{206b}' => "ACTIVATE SYMMETRIC SWAPPING",
        '\u{206c}' => "INHIBIT ARABIC FORM SHAPING",
        '\u{206d}' => "ACTIVATE ARABIC FORM SHAPING",
        '\u{206e}' => "NATIONAL DIGIT SHAPES",
        '\u{206f}' => "NOMINAL DIGIT SHAPES",
        '\u{3164}' => "HANGUL FILLER",
        '\u{feff}' => "ZERO WIDTH NO-BREAK SPACE (byte order mark)",
        '\u{ffa0}' => "HALFWIDTH HANGUL FILLER",
        '\u{fff9}' => "INTERLINEAR ANNOTATION ANCHOR",
        '\u{fffa}' => "INTERLINEAR ANNOTATION SEPARATOR",
        '\u{fffb}' => "INTERLINEAR ANNOTATION TERMINATOR",
        '\u{e0001}' => "LANGUAGE TAG",
        '\u{e007f}' => "CANCEL TAG",
        '\u{7f}' => "DELETE",
        _ => return computed_title(character),
    };
    Some(fixed.to_owned())
}

const CONTROLS: [&str; 32] = [
    "NULL",
    "START OF HEADING",
    "START OF TEXT",
    "END OF TEXT",
    "END OF TRANSMISSION",
    "ENQUIRY",
    "ACKNOWLEDGE",
    "BELL",
    "BACKSPACE",
    "TAB",
    "LINE FEED",
    "VERTICAL TAB",
    "FORM FEED",
    "CARRIAGE RETURN",
    "SHIFT OUT",
    "SHIFT IN",
    "DATA LINK ESCAPE",
    "DEVICE CONTROL ONE",
    "DEVICE CONTROL TWO",
    "DEVICE CONTROL THREE",
    "DEVICE CONTROL FOUR",
    "NEGATIVE ACKNOWLEDGE",
    "SYNCHRONOUS IDLE",
    "END OF TRANSMISSION BLOCK",
    "CANCEL",
    "END OF MEDIUM",
    "SUBSTITUTE",
    "ESCAPE",
    "INFORMATION SEPARATOR FOUR",
    "INFORMATION SEPARATOR THREE",
    "INFORMATION SEPARATOR TWO",
    "INFORMATION SEPARATOR ONE",
];

fn computed_title(character: char) -> Option<String> {
    let code = u32::from(character);
    let selector = |first: u32, number: u32| format!("VARIATION SELECTOR-{}", code - first + number);
    match code {
        0..=0x1f => usize::try_from(code).ok().and_then(|at| CONTROLS.get(at)).map(|name| (*name).to_owned()),
        0x80..=0x9f => Some("(a C1 control character)".to_owned()),
        0xfe00..=0xfe0f => Some(selector(0xfe00, 1)),
        0xe0100..=0xe01ef => Some(selector(0xe0100, 17)),
        0xe0020..=0xe007e => {
            char::from_u32(code - 0xe0000).map(|tag| format!("TAG of `{tag}`").replace("` `", "a space"))
        }
        _ if is_hidden(character) && code & 0xfffe == 0xfffe => Some("(not a character)".to_owned()),
        _ if is_hidden(character) => Some("(an invisible character)".to_owned()),
        _ => None,
    }
}

/// Returns a text safe to print on one line: hidden characters escaped, at most 80 characters.
pub fn escape(text: &str) -> String {
    let mut shown = String::new();
    let mut hidden = hidden(text).peekable();
    for (count, (at, character)) in text.char_indices().enumerate() {
        if count == 80 {
            shown.push('…');
            break;
        }
        let is_refused = hidden.next_if(|(place, _)| *place == at).is_some();
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            other if is_refused => push_escaped(&mut shown, other),
            other => shown.push(other),
        }
    }
    shown
}

/// Returns a text of any length and of several lines with its hidden characters escaped and what looks like a
/// credential masked.
pub fn printable(text: &str) -> String {
    let text = &*crate::text::secrets::masked(text);
    let mut shown = String::with_capacity(text.len());
    let mut start = 0;
    let mut from = text;
    // The text after a cut has lost its context, so the whole text is looked at once.
    for (at, character) in hidden(text) {
        shown.push_str(&from[..at - start]);
        push_escaped(&mut shown, character);
        start = at + character.len_utf8();
        from = &text[start..];
    }
    shown.push_str(from);
    shown
}

fn push_escaped(shown: &mut String, character: char) {
    write!(shown, "\\u{{{:x}}}", u32::from(character)).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_escaped_and_short() {
        assert_eq!(escape("a\u{202e}b\0"), "a\\u{202e}b\\u{0}");
        assert_eq!(escape(&"x".repeat(100)).chars().count(), 81);
        assert_eq!(printable("a\u{202e}b\nc\u{200b}"), "a\\u{202e}b\nc\\u{200b}");
    }

    #[test]
    fn what_people_write_with_hidden_characters_is_left_alone() {
        let flag = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        for text in [
            "👩\u{200d}💻 ships",
            "❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            flag,
        ] {
            assert_eq!(hidden(text).next(), None, "{text}");
            assert_eq!(escape(text), text);
        }
        for text in [
            "te\u{200d}st",
            "te\u{200c}st",
            "a\u{fe0f}",
            "a\u{e0061}b",
            "a\u{fe00}",
            "👩\u{200d}",
            "\u{200d}",
        ] {
            assert_eq!(hidden(text).count(), 1, "{text:?}");
        }
    }

    #[test]
    fn each_hidden_character_has_a_name() {
        assert_eq!(name('\u{202e}'), "U+202E RIGHT-TO-LEFT OVERRIDE");
        assert_eq!(name('\0'), "U+0000 NULL");
        assert_eq!(name('\u{fe0f}'), "U+FE0F VARIATION SELECTOR-16");
        assert_eq!(name('\u{e0041}'), "U+E0041 TAG of `A`");
        for character in ('\0'..=char::MAX).filter(|character| is_hidden(*character)) {
            assert!(title(character).is_some(), "{}", name(character));
        }
    }
}
