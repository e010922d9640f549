//! Attribute lists: keys, values and strings.

use super::super::lexemes::{self, is_bare_value, is_name};
use super::super::syntax::Attribute;
use super::{Lost, Reader, ends_where_another_begins, shortened};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, Spanned, escape};

impl<'s> Reader<'s> {
    // One or more `[…]`; a mistake in one attribute does not lose the others.
    pub(super) fn attribute_lists(&mut self) -> Vec<Attribute> {
        let mut attributes: Vec<Attribute> = Vec::new();
        while !self.is_over && self.rest().starts_with('[') {
            let opening = Span::new(self.at, self.at + 1);
            self.at += 1;
            self.attribute_list(opening, &mut attributes);
            let end = self.at;
            self.skip();
            if !self.rest().starts_with('[') {
                self.at = end;
            }
        }
        attributes
    }

    fn attribute_list(&mut self, opening: Span, attributes: &mut Vec<Attribute>) {
        let mut is_separated = true;
        while !self.is_over {
            let end = self.at;
            self.skip();
            let separator = Span::new(self.at, self.at + 1);
            if self.take("]") {
                return;
            }
            if self.take(",") {
                is_separated = true;
                continue;
            }
            if self.take(";") {
                self.lenient.semicolons.push(separator);
                is_separated = true;
                continue;
            }
            if self.at >= self.text.len()
                || self.rest().starts_with(['}', '{'])
                || self.rest().starts_with("->")
            {
                return self.unclosed_list(opening, end);
            }
            let start = self.at;
            match self.attribute() {
                Ok(attribute) => {
                    if !is_separated {
                        self.lenient.spaces.push(Span::at(end));
                    }
                    attributes.push(attribute);
                    is_separated = false;
                }
                Err(Some(Lost)) => {
                    self.recover_in_list(start);
                    is_separated = true;
                }
                // The next word begins another statement.
                Err(None) => {
                    self.at = start;
                    return self.unclosed_list(opening, end);
                }
            }
        }
    }

    fn unclosed_list(&mut self, opening: Span, end: usize) {
        let message = format!("expected `]`, found {}", self.next_as_people_see_it());
        let unclosed = Diagnostic::new(Code::P302, message).at(Span::at(end), "it is missing here");
        self.report(unclosed.at(opening, "opened here").help("close the list with `]`").fix(
            Span::at(end),
            "]",
            false,
        ));
        self.at = end;
    }

    // `Err(None)` where it looks like a statement, not like an attribute.
    fn attribute(&mut self) -> Result<Attribute, Option<Lost>> {
        let start = self.at;
        let key = if self.rest().starts_with('"') { self.string()? } else { self.key()? };
        let end = self.at;
        self.skip();
        if !self.take("=") {
            let is_on_next_line = self.text[..start].trim_end_matches([' ', '\t']).ends_with('\n');
            if is_on_next_line && (self.rest().starts_with('[') || self.rest().starts_with("->")) {
                return Err(None);
            }
            let message = format!(
                "expected `=` after `{}`, found {}",
                escape(&shortened(&key.value)),
                self.next_as_people_see_it()
            );
            let refused =
                Diagnostic::new(Code::P302, message).at(Span::new(start, end), "this attribute has no value");
            self.report(refused.help("write `key=value`"));
            return Err(Some(Lost));
        }
        self.skip();
        let value = self.value()?;
        Ok(Attribute { key, value })
    }

    pub(super) fn key(&mut self) -> Result<Spanned<String>, Lost> {
        match self.bare_key() {
            Some(key) => Ok(key),
            None => self.fail_expecting("an attribute, `,` or `]`"),
        }
    }

    // `a`, `a.b.c` (D12).
    pub(super) fn bare_key(&mut self) -> Option<Spanned<String>> {
        let start = self.at;
        self.at += lexemes::word(self.rest()).len();
        while self.at > start {
            let part = self.rest().strip_prefix('.').map(lexemes::word).filter(|part| !part.is_empty());
            let Some(part) = part else { break };
            self.at += 1 + part.len();
        }
        let key = &self.text[start..self.at];
        key.split('.').all(is_name).then(|| Spanned::new(key.to_owned(), Span::new(start, self.at)))
    }

    pub(super) fn value(&mut self) -> Result<Spanned<String>, Lost> {
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with('"') {
            let mut value = self.string()?;
            // "a" + "b" is one text.
            loop {
                let end = self.at;
                self.skip();
                if !self.take("+") {
                    self.at = end;
                    return Ok(value);
                }
                self.skip();
                if !self.rest().starts_with('"') {
                    return self.fail_expecting("a quoted text after `+`");
                }
                let more = self.string()?;
                value = Spanned::new(value.value + &more.value, value.span.to(more.span));
            }
        }
        if rest.starts_with('\\') {
            let message = "expected a value, found a backslash";
            let refused = Diagnostic::new(Code::P302, message).at(Span::new(start, start + 1), "");
            let help = "a text begins and ends with a plain `\"`; `\\\"` is for a quote inside it";
            self.report(refused.help(help));
            return Err(Lost);
        }
        if rest.starts_with('<') {
            let html = lexemes::html(rest);
            let end = start + html.map_or(1, str::len);
            let refused =
                Diagnostic::new(Code::P302, "labels in HTML are not read").at(Span::new(start, end), "");
            self.report(refused.help("write the text in quotes: `\"…\"`"));
            if html.is_none() {
                return Err(Lost);
            }
            self.at = end;
            return Ok(Spanned::new(String::new(), Span::new(start, end)));
        }
        let value = lexemes::bare(rest);
        if value.is_empty() {
            return self.fail_expecting("a value");
        }
        self.at += value.len();
        let span = Span::new(start, self.at);
        if !is_bare_value(value) {
            let message = format!("`{}` must stand in quotes", escape(&shortened(value)));
            let refused =
                Diagnostic::new(Code::P302, message).at(span, "neither a word, a number nor a duration");
            self.report(refused.help("write the value in quotes").fix(span, format!("\"{value}\""), true));
        }
        Ok(Spanned::new(value.to_owned(), span))
    }

    pub(super) fn string(&mut self) -> Result<Spanned<String>, Lost> {
        let start = self.at;
        match lexemes::quoted(self.rest()) {
            Some(quoted) => {
                self.at += quoted.bytes;
                let span = Span::new(start, self.at);
                if self.unclosed.is_none() && ends_where_another_begins(&quoted.text, self.rest()) {
                    self.unclosed = Some(span);
                }
                Ok(Spanned::new(quoted.text, span))
            }
            None => {
                let message = "expected `\"`, found the end of the file";
                let unclosed = Diagnostic::new(Code::P302, message)
                    .at(Span::new(start, start + 1), "this text is not closed")
                    .note("where a quote is missing before, another text is taken for what stands between");
                self.report(unclosed.help("close it with `\"`; a quote inside of a text is written `\\\"`"));
                self.at = self.text.len();
                self.is_over = true;
                Err(Lost)
            }
        }
    }
}
