//! Splits a command's words into options, their values, and what is left.

use super::Word;

/// The words after a command's name.
#[derive(Default)]
pub(crate) struct Arguments<'a> {
    /// The words that are no options.
    pub positional: Vec<&'a Word>,
    /// Options with their values, without dashes.
    pub valued: Vec<(String, &'a Word)>,
    /// The letters of short options without a value.
    pub letters: String,
    /// Long options without a value, without dashes.
    pub long: Vec<String>,
    /// The words after `--`; also among the positional ones.
    pub after_dashes: Vec<&'a Word>,
}

impl<'a> Arguments<'a> {
    /// Reads the words of a command whose options in `short` and `long` take the next word as their value.
    pub(crate) fn read(words: &'a [Word], short: &str, long: &[&str]) -> Arguments<'a> {
        let mut made = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.text();
            if text == "--" {
                made.after_dashes = words.by_ref().collect();
                made.positional.extend(&made.after_dashes);
            } else if let Some(name) = text.strip_prefix("--") {
                let (name, value) = name.split_once('=').map_or((name, None), |(name, _)| (name, Some(word)));
                let value = value.or_else(|| long.contains(&name).then(|| words.next()).flatten());
                match value {
                    Some(value) => made.valued.push((name.to_owned(), value)),
                    None => made.long.push(name.to_owned()),
                }
            } else if text.len() > 1 && text.starts_with('-') {
                made.cluster(&text[1..], word, short, &mut words);
            } else {
                made.positional.push(word);
            }
        }
        made
    }

    fn cluster(
        &mut self,
        letters: &str,
        word: &'a Word,
        short: &str,
        words: &mut std::slice::Iter<'a, Word>,
    ) {
        for (at, letter) in letters.char_indices() {
            if !short.contains(letter) {
                self.letters.push(letter);
                continue;
            }
            let is_last = at + letter.len_utf8() == letters.len();
            // A value that is joined to its letter (`-A3`) is no word of its own.
            if let Some(value) = if is_last { words.next() } else { Some(word) } {
                self.valued.push((letter.to_string(), value));
            }
            return;
        }
    }

    /// Says whether an option is given, by letter or by name.
    pub(crate) fn has(&self, letter: char, name: &str) -> bool {
        self.letters.contains(letter) || self.long.iter().any(|long| long == name)
    }

    /// Returns the values of an option, by letter or by name.
    pub(crate) fn values(&self, letter: &str, name: &str) -> impl Iterator<Item = &'a Word> + '_ {
        let (letter, name) = (letter.to_owned(), name.to_owned());
        self.valued
            .iter()
            .filter(move |(option, _)| *option == letter || *option == name)
            .map(|(_, word)| *word)
    }

    /// Returns the texts of the values of an option, also of those that are joined to it: `-Ilib`, `--require=a`.
    pub(crate) fn value_texts<'n>(
        &'n self,
        letter: &'n str,
        name: &'n str,
    ) -> impl Iterator<Item = (&'a str, &'a Word)> + 'n {
        self.values(letter, name).map(move |word| {
            let joined = match word.text().strip_prefix("--") {
                Some(long) => long.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')),
                None => word.text().strip_prefix('-').and_then(|short| short.strip_prefix(letter)),
            };
            (joined.unwrap_or(word.text()), word)
        })
    }
}
