//! A task as sentences of words and paths.

use std::ops::Range;

use super::TOKENS_MAX;
use crate::text::Span;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// In lower case.
    Word(String),
    /// A file, by its place among the paths.
    Path {
        index: usize,
        place: PathContext,
    },
    /// Code that is no path: a name.
    Code,
    Comma,
    Colon,
    /// Ends a clause: a semicolon, a bracket, a dash.
    Break,
}

/// Where a path stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathContext {
    /// In a sentence.
    Plain,
    /// In a command that is quoted, or in a block of code.
    Quoted,
    /// In a command that may change it; or it is the beginning of a glob.
    Vague,
    /// In a sentence, as a folder.
    Folder,
}

impl Token {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Path { .. } | Token::Code | Token::Comma | Token::Colon | Token::Break => "",
        }
    }

    pub(super) fn is_path(&self) -> bool {
        matches!(self, Token::Path { .. })
    }
}

// Each item of a list is a sentence that begins with the words that introduce the list.
pub(super) fn sentences(text: &str, paths: &[Span]) -> Vec<Vec<Token>> {
    let mut reader = Reader::default();
    let mut next = 0;
    let mut offset = 0;
    let (mut in_fence, mut in_code) = (false, false);
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        let is_fence = body.starts_with("```") || body.starts_with("~~~");
        in_fence ^= is_fence;
        if body.trim().is_empty() {
            reader.end();
            reader.is_after_blank = true;
            in_code = false;
        } else if let Some(marker) = item_marker(body) {
            reader.end();
            reader.begin_item();
            offset += line.len() - body.len() + marker;
            let rest = &body[marker..];
            read_line(rest, offset, paths, &mut next, (in_fence || is_fence, &mut in_code), &mut reader);
            offset += rest.len();
            continue;
        } else if reader.is_after_blank {
            reader.intro.clear();
        }
        reader.is_after_blank &= body.trim().is_empty();
        read_line(line, offset, paths, &mut next, (in_fence || is_fence, &mut in_code), &mut reader);
        offset += line.len();
    }
    reader.end();
    reader.done
}

#[derive(Default)]
struct Reader {
    done: Vec<Vec<Token>>,
    tokens: Vec<Token>,
    /// The words that introduce a list.
    intro: Vec<Token>,
    is_after_blank: bool,
}

impl Reader {
    pub(super) fn end(&mut self) {
        if self.tokens.last() == Some(&Token::Colon) {
            self.intro = std::mem::take(&mut self.tokens);
            self.done.push(self.intro.clone());
            self.intro.truncate(TOKENS_MAX);
        } else if !self.tokens.is_empty() {
            self.done.push(std::mem::take(&mut self.tokens));
        }
    }

    fn begin_item(&mut self) {
        self.is_after_blank = false;
        self.tokens = self.intro.clone();
    }
}

fn item_marker(body: &str) -> Option<usize> {
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let marked = match body.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if digits > 0 => digits + 1,
        _ => return None,
    };
    body[marked..].starts_with([' ', '\t']).then_some(marked + 1)
}

fn read_line(
    line: &str,
    offset: usize,
    paths: &[Span],
    next: &mut usize,
    (is_fenced, in_code): (bool, &mut bool),
    reader: &mut Reader,
) {
    let mut at = 0;
    while at < line.len() {
        while paths.get(*next).is_some_and(|path| path.start < offset + at) {
            *next += 1;
        }
        if let Some(path) = paths.get(*next).filter(|path| path.start == offset + at) {
            let end = (path.end - offset).min(line.len());
            let place = path_context(line, at..end, is_fenced, *in_code);
            reader.tokens.push(Token::Path { index: *next, place });
            *next += 1;
            at = end;
            continue;
        }
        let rest = &line[at..];
        let Some(first) = rest.chars().next() else { break };
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_');
        if is_of_word(first) {
            let until =
                paths.get(*next).map_or(line.len(), |path| path.start.saturating_sub(offset).min(line.len()));
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let length = if until > at { length.min(until - at) } else { length };
            if *in_code {
                reader.tokens.push(Token::Code);
            } else {
                reader.tokens.push(Token::Word(rest[..length].to_lowercase().replace('’', "'")));
            }
            at += length;
            continue;
        }
        let after = &rest[first.len_utf8()..];
        let is_end = after.is_empty()
            || after.starts_with(|c: char| c.is_whitespace() || matches!(c, '"' | '*' | ')'));
        match first {
            '`' => *in_code = !*in_code,
            _ if *in_code => {}
            '.' | '!' | '?' if is_end => reader.end(),
            ',' => reader.tokens.push(Token::Comma),
            ':' if is_end => reader.tokens.push(Token::Colon),
            ';' | '(' | ')' | '—' | '–' => reader.tokens.push(Token::Break),
            _ => {}
        }
        at += first.len_utf8();
    }
}

pub(super) fn path_context(line: &str, path: Range<usize>, is_fenced: bool, in_code: bool) -> PathContext {
    let (before, after) = (&line[..path.start], &line[path.end..]);
    let is_whole = !in_code || before.ends_with('`') && after.starts_with('`');
    if is_fenced {
        PathContext::Quoted
    } else if after.starts_with(['*', '{', '?', '[']) {
        PathContext::Vague
    } else if line[path].ends_with('/') {
        PathContext::Folder
    } else if is_whole {
        PathContext::Plain
    } else {
        let code = &before[before.rfind('`').map_or(0, |at| at + 1)..];
        let may_write = code.contains('>') || code.contains(" -i") || code.starts_with("tee ");
        if may_write { PathContext::Vague } else { PathContext::Quoted }
    }
}
