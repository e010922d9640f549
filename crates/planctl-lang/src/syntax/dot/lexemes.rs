//! The words of DOT, by combinators: names, bare values, quoted strings, and what is between them.

use winnow::combinator::{alt, delimited, opt};
use winnow::prelude::*;
use winnow::token::{one_of, take_till, take_until, take_while};

use crate::syntax::condition::string;

type Lexed<O> = winnow::Result<O, ()>;

/// The text between two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Trivia {
    /// How many bytes it takes.
    pub bytes: usize,
    /// Says that a `/*` has no `*/`; the rest of the text is taken then.
    pub is_unclosed: bool,
    /// Where a line that begins with `#` stands, as a preprocessor's do.
    pub hash: Option<usize>,
}

/// Skips spaces, line breaks and comments (D4); `at_line` says that only spaces stand before on the line.
pub(super) fn trivia(text: &str, at_line: bool) -> Trivia {
    let mut rest = text;
    let mut found = Trivia::default();
    let mut at_line = at_line;
    loop {
        let space = spaces(&mut rest).unwrap_or_default();
        at_line |= space.contains('\n');
        let at = text.len() - rest.len();
        if at_line && rest.starts_with('#') {
            found.hash.get_or_insert(at);
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(after) = after_comment(rest) {
            rest = after;
        } else if rest.starts_with("/*") {
            found.is_unclosed = true;
            found.bytes = text.len();
            return found;
        } else {
            found.bytes = text.len() - rest.len();
            return found;
        }
    }
}

fn spaces<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(0.., |c: char| c.is_whitespace() || c == '\u{feff}').parse_next(input)
}

fn after_comment(text: &str) -> Option<&str> {
    let mut rest = text;
    alt((line_comment, block_comment)).parse_next(&mut rest).ok().map(|_| rest)
}

fn line_comment<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    ("//", take_till(0.., '\n')).take().parse_next(input)
}

fn block_comment<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    delimited("/*", take_until(0.., "*/"), "*/").take().parse_next(input)
}

/// Takes the letters, digits and underscores of any script that a text begins with.
pub(super) fn word(text: &str) -> &str {
    fn lexeme<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        take_while(1.., |c: char| c.is_alphanumeric() || c == '_').parse_next(input)
    }
    let mut rest = text;
    lexeme(&mut rest).unwrap_or_default()
}

/// Says whether a word can name a node (D3).
pub(crate) fn is_name(word: &str) -> bool {
    fn lexeme<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        let first = one_of(|c: char| c.is_ascii_alphabetic() || c == '_');
        (first, take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_')).take().parse_next(input)
    }
    lexeme.parse(word).is_ok()
}

/// Takes what stands in the place of a bare value: up to a space, a bracket, a separator or an arrow.
pub(super) fn bare(text: &str) -> &str {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_arrow = letter == '-' && matches!(letters.peek(), Some((_, '>')));
        let fits =
            letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-' | '+' | '%' | '$' | '@');
        if is_arrow || !fits {
            break;
        }
        end = at + letter.len_utf8();
    }
    &text[..end]
}

/// Says whether a bare value is one: a number (D9), a duration (D10) or a word (D11).
pub(crate) fn is_bare_value(text: &str) -> bool {
    fn digits<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        take_while(1.., |c: char| c.is_ascii_digit()).parse_next(input)
    }
    fn number<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        let fraction = (digits, opt(('.', opt(digits)))).take();
        (opt('-'), alt((fraction, ('.', digits).take()))).take().parse_next(input)
    }
    fn duration<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        (digits, alt(("ms", "s", "m", "h", "d"))).take().parse_next(input)
    }
    fn word<'s>(input: &mut &'s str) -> Lexed<&'s str> {
        let first = one_of(|c: char| c.is_ascii_alphabetic() || c == '_');
        let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        (first, take_while(0.., rest)).take().parse_next(input)
    }
    number.parse(text).is_ok() || duration.parse(text).is_ok() || word.parse(text).is_ok()
}

/// A quoted string: its text with escapes resolved, and its length in bytes with both quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Quoted {
    pub text: String,
    pub bytes: usize,
}

/// Reads a string that begins with a quote (D7); nothing where it is not closed.
///
/// Line breaks belong to it. A backslash before any other letter than `"`, `n`, `t` and `\` is kept, as Graphviz does.
pub(super) fn quoted(text: &str) -> Option<Quoted> {
    let mut rest = text;
    let read = string(&mut rest).ok()?;
    Some(Quoted { text: read, bytes: text.len() - rest.len() })
}

/// Takes an HTML label with its brackets; nothing where they are not closed.
pub(super) fn html(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut rest = text;
    let mut next = || -> Lexed<char> {
        take_while(0.., |c: char| c != '<' && c != '>').parse_next(&mut rest)?;
        one_of(['<', '>']).parse_next(&mut rest)
    };
    loop {
        depth = if next().ok()? == '<' { depth + 1 } else { depth.checked_sub(1)? };
        if depth == 0 {
            return Some(&text[..text.len() - rest.len()]);
        }
    }
}
