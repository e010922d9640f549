//! How reading goes on after something that is no DOT.

use super::super::lexemes;
use super::Reader;

impl<'s> Reader<'s> {
    // Goes on at the next statement: after a `;`, before a `}`, on the next line.
    pub(super) fn recover(&mut self) {
        self.is_torn = true;
        while !self.is_over && self.at < self.text.len() {
            match self.rest().chars().next() {
                Some(';' | '\n') => {
                    self.at += 1;
                    return;
                }
                Some('}') | None => return,
                Some('"') => self.skip_string(),
                Some('[') => {
                    self.attribute_lists();
                    return;
                }
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }

    // Goes on at the next attribute: after a `,` or `;`, before the `]`, on the next line.
    pub(super) fn recover_in_list(&mut self, start: usize) {
        self.is_torn = true;
        while !self.is_over && self.at < self.text.len() {
            match self.rest().chars().next() {
                Some(',' | ';' | '\n') if self.at > start => return,
                Some(']' | '}') | None => return,
                // `\"` begins no text.
                Some('\\') => self.at += 1 + self.rest()[1..].chars().next().map_or(0, char::len_utf8),
                Some('"') => self.skip_string(),
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }

    fn skip_string(&mut self) {
        // Nothing closes it, so nothing after it can be told from its text.
        self.at += lexemes::quoted(self.rest()).map_or(self.rest().len(), |quoted| quoted.bytes);
    }

    pub(super) fn skip(&mut self) {
        let at_line = self.text[..self.at].ends_with('\n');
        self.skip_trivia(at_line);
    }

    pub(super) fn skip_from_line_start(&mut self) {
        self.skip_trivia(true);
    }
}
