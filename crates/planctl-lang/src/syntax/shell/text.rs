//! A piece of script that knows, for each of its characters, which byte of the whole script it stands for.

use crate::text::Span;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Text {
    text: String,
    /// Where each character begins in `text`, and where the text ends.
    starts: Vec<usize>,
    /// The bytes of the whole script that each character stands for.
    places: Vec<Span>,
    /// Where a `select` of the script stands here as `for` and blanks.
    selects: Vec<usize>,
}

impl Text {
    /// Takes a whole script.
    pub(super) fn of(script: &str) -> Text {
        let mut text = Text {
            text: String::with_capacity(script.len()),
            starts: Vec::with_capacity(script.len()),
            places: Vec::with_capacity(script.len()),
            selects: Vec::new(),
        };
        for (at, character) in script.char_indices() {
            text.push(character, Span::new(at, at + character.len_utf8()));
        }
        text
    }

    pub(super) fn push(&mut self, character: char, place: Span) {
        self.starts.push(self.text.len());
        self.text.push(character);
        self.places.push(place);
    }

    pub(super) fn push_select(&mut self, places: &[Span]) {
        self.selects.push(places.first().map_or(0, |place| place.start));
        "for   ".chars().zip(places).for_each(|(character, place)| self.push(character, *place));
    }

    pub(super) fn was_select(&self, index: usize) -> bool {
        self.selects.contains(&self.span(index, index).start)
    }

    pub(super) fn extend(&mut self, other: &Text) {
        for (character, place) in other.text.chars().zip(&other.places) {
            self.push(character, *place);
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn chars(&self) -> impl Iterator<Item = (char, Span)> + '_ {
        self.text.chars().zip(self.places.iter().copied())
    }

    /// Returns the place of a range of characters; of none, the place where they would stand.
    pub(super) fn span(&self, from: usize, to: usize) -> Span {
        let end = self.places.last().map_or(0, |last| last.end);
        let start = self.places.get(from).map_or(end, |place| place.start);
        if to <= from {
            return Span::at(start);
        }
        let last = self.places.get((to - 1).min(self.places.len().saturating_sub(1)));
        Span::new(start, last.map_or(end, |place| place.end))
    }

    pub(super) fn whole(&self) -> Span {
        self.span(0, self.places.len())
    }

    /// Returns where a keyword stands that comes next after a place, but for blanks, `;` and comments.
    pub(super) fn keyword_after(&self, place: usize, keyword: &str) -> Option<Span> {
        let mut at = self.places.partition_point(|known| known.start < place);
        loop {
            let rest = &self.text[*self.starts.get(at)?..];
            if rest.starts_with(keyword) {
                return Some(self.span(at, at + keyword.chars().count()));
            }
            match rest.chars().next()? {
                '#' => at += rest.chars().take_while(|character| *character != '\n').count(),
                ';' => at += 1,
                blank if blank.is_whitespace() => at += 1,
                _ => return None,
            }
        }
    }

    /// Returns a range of characters.
    pub(super) fn slice(&self, from: usize, to: usize) -> Text {
        let to = to.min(self.places.len());
        let from = from.min(to);
        let byte = |index: usize| self.starts.get(index).copied().unwrap_or(self.text.len());
        let begin = byte(from);
        Text {
            text: self.text[begin..byte(to)].to_owned(),
            starts: self.starts[from..to].iter().map(|start| start - begin).collect(),
            places: self.places[from..to].to_vec(),
            selects: self.selects.clone(),
        }
    }

    /// Returns a range of its own bytes.
    pub(super) fn bytes(&self, from: usize, to: usize) -> Text {
        let index = |byte: usize| self.starts.partition_point(|start| *start < byte);
        self.slice(index(from), index(to))
    }

    /// Finds the places of a text that was made from this one by leaving something out: continuations of lines, tabs
    /// before a heredoc's lines, backslashes, comments, or blanks beyond the first.
    pub(super) fn map_to_source(&self, made: &str) -> Text {
        if made == self.text {
            return self.clone();
        }
        let from: Vec<char> = self.text.chars().collect();
        let mut placed = Text { selects: self.selects.clone(), ..Text::default() };
        let mut at = 0;
        for character in made.chars() {
            at = seek(&from, at, character);
            let index = at.min(from.len().saturating_sub(1));
            placed.push(character, self.places.get(index).copied().unwrap_or_default());
            if from.get(at) == Some(&character) {
                at += 1;
            }
        }
        placed
    }
}

// The next place of a character, over what may have been left out; where it is not found, the place stays.
fn seek(from: &[char], start: usize, character: char) -> usize {
    let mut at = start;
    while let Some(found) = from.get(at) {
        match *found {
            same if same == character && !(same == '\\' && from.get(at + 1) == Some(&'\n')) => return at,
            '#' => at += from[at..].iter().take_while(|other| **other != '\n').count(),
            '\\' | '\n' | '\t' | ' ' => at += 1,
            _ => return start,
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_does_not_move_the_places_after_it() {
        let script = "é a\\\nb \tc # x\n  d";
        let text = Text::of(script);
        let placed = text.map_to_source("é ab c d");
        for (character, place) in placed.chars() {
            if character != ' ' {
                assert_eq!(script.get(place.start..place.end), Some(character.to_string().as_str()));
            }
        }
    }
}
