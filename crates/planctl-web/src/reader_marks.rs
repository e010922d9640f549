//! Pages that are drawn once for all readers of a scope: marks stand where a page says something of its one reader.

use planctl_api::words;

use crate::frame::Reader;

/// The marks of this process. Nobody can guess them, so no text of a plan or a worker holds one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReaderMarks {
    mark: String,
    name: String,
    form: String,
    key: String,
}

impl ReaderMarks {
    /// Makes marks of a secret: letters and digits that a page shows as they are.
    pub fn of(secret: &str) -> ReaderMarks {
        let mark = format!("reader-{secret}-");
        let with = |letter: char| format!("{mark}{letter}");
        ReaderMarks { name: with('n'), form: with('f'), key: with('k'), mark }
    }

    /// Returns the mark for the reader's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the mark for what proves that a form comes from a page of the reader's session.
    pub fn form(&self) -> &str {
        &self.form
    }

    /// Returns the mark for the key of a page's forms.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Puts one reader in the place of the marks.
    pub fn fill(&self, page: &str, reader: Reader<'_>, key: &str) -> String {
        let name = escaped(&words::safe(reader.name));
        let mut filled = String::with_capacity(page.len() + 1024);
        let mut pieces = page.split(self.mark.as_str());
        filled.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let mut letters = piece.chars();
            filled.push_str(match letters.next() {
                Some('n') => &name,
                Some('f') => reader.form,
                Some('k') => key,
                Some(_) | None => "",
            });
            filled.push_str(letters.as_str());
        }
        filled
    }
}

/// Writes a text as templates do.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&#38;"),
            '<' => out.push_str("&#60;"),
            '>' => out.push_str("&#62;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Screen as _;
    use crate::frame::{Frame, Tab};
    use crate::plain::SignInScreen;

    fn page(reader: Reader<'_>) -> String {
        let frame = Frame { reader: Some(reader), ..Frame::at("2026-01-01T00:00:00Z", "/", Tab::Home) };
        SignInScreen { frame, refused: None }.html()
    }

    #[test]
    fn a_page_that_is_filled_in_is_the_page_that_is_drawn_for_its_reader_alone() {
        let marks = ReaderMarks::of("0123");
        let reader = Reader { name: "ann <b>&\"'", scope: "admin", form: "f00d" };
        let shared = page(Reader { name: marks.name(), form: marks.form(), ..reader });
        assert!(!shared.contains("f00d") && !shared.contains("ann"), "{shared}");
        assert_eq!(marks.fill(&shared, reader, "key"), page(reader));
        assert_eq!(marks.fill(&format!("a{}.x", marks.key()), reader, "key"), "akey.x");
    }
}
