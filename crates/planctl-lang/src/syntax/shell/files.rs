//! Finds the files that a contract or a task names.

use super::deciding::Unseen;
use super::following::{At, Follower};
use super::programs::{Files, Program};
use super::values::{TOP, normalise};
use super::{Arguments, Call, Script, Test, Word, arguments};
use crate::text::Span;

/// The use that a script makes of a file that it names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// It looks into it, or runs it.
    Reads,
    /// It tests that the file exists: the step makes it.
    Tests,
    /// It tests that the file is absent: the step removes it.
    TestsAbsence,
    /// It makes, changes or removes it.
    Writes,
}

/// A file that a script names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileUse {
    /// The path as written, without a leading `./`.
    pub path: String,
    /// Where it stands in the script.
    pub span: Span,
    /// The use.
    pub how: Use,
    /// Says that its place tells it is a file; else only its look does.
    pub is_certain: bool,
}

/// Returns the files that a script names, in order; relative to the workspace, also after `cd`, and absolute ones.
pub fn files(script: &Script) -> Vec<FileUse> {
    Follower::follow(script, &Unseen).found
}

impl Follower<'_> {
    pub(super) fn test(&mut self, test: &Test, is_wanted: bool) {
        match test {
            Test::And(a, b) | Test::Or(a, b) => {
                self.test(a, is_wanted);
                self.test(b, is_wanted);
            }
            Test::Not(inner) => self.test(inner, !is_wanted),
            Test::Unary(operator, word) => {
                let is_file = operator
                    .strip_prefix('-')
                    .is_some_and(|letter| letter.len() == 1 && "abcdefghkprsuwxLSOGN".contains(letter));
                let how = if is_wanted { Use::Tests } else { Use::TestsAbsence };
                self.add(word, if is_file { how } else { Use::Reads }, is_file);
            }
            Test::Binary(left, operator, right) => {
                let is_file = matches!(operator.as_str(), "-nt" | "-ot" | "-ef");
                for word in [left, right] {
                    self.add(word, if is_file { Use::Tests } else { Use::Reads }, is_file);
                }
            }
        }
    }

    /// Takes note of the files that a command names.
    pub(super) fn operands(&mut self, words: &[Word], at: At) {
        let Some(name) = words.first().and_then(|word| word.literal.as_deref()) else { return };
        if name.contains('/') {
            self.add(&words[0], Use::Reads, true);
        }
        let rest = &words[1..];
        match Program::named(name).map_or(Files::ByLook, |known| known.files) {
            Files::ByLook => rest.iter().for_each(|word| self.add(word, Use::Reads, false)),
            Files::None => {}
            Files::All(how) => self.all(rest, how),
            Files::Behind(count, how) => {
                let read = arguments(words);
                read.positional.into_iter().skip(count).for_each(|word| self.add(word, how, true));
            }
            Files::BehindPattern => self.behind_pattern(words, Use::Reads),
            Files::Script if name == "perl" && flags(rest, 'i', "in-place") => {
                let read = Arguments::read(rest, "eE", &[]);
                read.positional.into_iter().for_each(|word| self.add(word, Use::Writes, true));
            }
            Files::Script => self.program_arguments(rest),
            Files::Own => self.own_operands(name, words),
        }
        self.tools(words, at);
    }

    // Programs whose words name files in a way that no other's do.
    fn own_operands(&mut self, name: &str, words: &[Word]) {
        let rest = &words[1..];
        match name {
            "sed" => {
                let how = if flags(rest, 'i', "in-place") { Use::Writes } else { Use::Reads };
                self.behind_pattern(words, how);
            }
            "jq" | "yq" => self.jq(rest),
            "sort" => {
                let read = arguments(words);
                read.values("o", "output").for_each(|word| self.add(word, Use::Writes, true));
                read.positional.into_iter().for_each(|word| self.add(word, Use::Reads, true));
            }
            "cp" | "mv" | "ln" | "install" => self.copy(name, words),
            "dd" => {
                let to = rest.iter().filter(|word| word.raw.starts_with("of="));
                to.for_each(|word| self.add_text(word, "of=", Use::Writes));
                let from = rest.iter().filter(|word| word.raw.starts_with("if="));
                from.for_each(|word| self.add_text(word, "if=", Use::Reads));
            }
            "curl" => {
                arguments(words).values("o", "output").for_each(|word| self.add(word, Use::Writes, true));
            }
            "wget" => {
                let read = arguments(words);
                read.values("O", "output-document").for_each(|word| self.add(word, Use::Writes, true));
            }
            "make" | "gmake" => {
                let read = arguments(words);
                let folder = self.shell.folder.clone();
                for word in read.values("C", "directory") {
                    self.add(word, Use::Reads, true);
                    self.change_folder(word);
                }
                read.values("f", "file").for_each(|word| self.add(word, Use::Reads, true));
                self.shell.folder = folder;
            }
            "find" => {
                let places = rest.iter().take_while(|word| !word.raw.starts_with(['-', '(', '!', '\\']));
                places.for_each(|word| self.add(word, Use::Reads, true));
            }
            "pytest" | "py.test" => self.pytest(words),
            "git" => self.git(words),
            _ => {}
        }
    }

    fn all(&mut self, words: &[Word], how: Use) {
        for word in words.iter().filter(|word| !word.raw.starts_with('-')) {
            self.add(word, how, true);
        }
    }

    // The first word is a pattern or a program, unless an option gives it.
    fn behind_pattern(&mut self, words: &[Word], how: Use) {
        let read = arguments(words);
        let gives = |name: &str| matches!(name, "e" | "f" | "expression" | "file" | "regexp");
        let is_given = read.valued.iter().any(|(name, _)| gives(name));
        read.values("f", "file").for_each(|word| self.add(word, Use::Reads, true));
        for word in read.positional.into_iter().skip(usize::from(!is_given)) {
            self.add(word, how, true);
        }
    }

    fn jq(&mut self, words: &[Word]) {
        let mut left = Vec::new();
        let mut words = words.iter();
        let mut is_given = false;
        while let Some(word) = words.next() {
            match word.raw.as_str() {
                "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => {
                    words.by_ref().take(2).for_each(drop);
                }
                "--indent" | "--tab" | "-L" => drop(words.next()),
                "-f" | "--from-file" => {
                    is_given = true;
                    if let Some(file) = words.next() {
                        self.add(file, Use::Reads, true);
                    }
                }
                text if text.starts_with('-') => {}
                _ => left.push(word),
            }
        }
        left.into_iter().skip(usize::from(!is_given)).for_each(|word| self.add(word, Use::Reads, true));
    }

    fn program_arguments(&mut self, words: &[Word]) {
        let module = words.iter().position(|word| word.raw == "-m");
        if let Some(at) = module
            && words.get(at + 1).is_some_and(|word| word.raw == "pytest")
        {
            return self.pytest(&words[at + 1..]);
        }
        let is_inline = |word: &Word| matches!(word.raw.as_str(), "-c" | "-e" | "-m" | "-lc" | "-p");
        let inline = words.iter().any(is_inline);
        let mut is_first = true;
        for word in words.iter().filter(|word| !word.raw.starts_with('-')) {
            self.add(word, Use::Reads, std::mem::take(&mut is_first) && !inline);
        }
    }

    fn copy(&mut self, name: &str, words: &[Word]) {
        let read = arguments(words);
        let into: Vec<&Word> = read.values("t", "target-directory").collect();
        let count = read.positional.len();
        for (at, word) in read.positional.iter().enumerate() {
            let is_target = into.is_empty() && at + 1 == count;
            let how = if is_target || name == "mv" { Use::Writes } else { Use::Reads };
            self.add(word, how, true);
        }
        for target in into.iter().copied().chain(read.positional.last().copied().filter(|_| into.is_empty()))
        {
            self.copy_into(target, &read.positional);
        }
        into.into_iter().for_each(|word| self.add(word, Use::Writes, true));
    }

    fn copy_into(&mut self, target: &Word, sources: &[&Word]) {
        let place = |word: &Word| self.shell.located(&self.shell.resolved(word)?.first()?.text);
        let placed = match place(target).map(|folder| normalise(&folder)) {
            Some(folder) if folder.is_empty() => {
                let names =
                    sources.iter().filter_map(|source| Some(place(source)?.rsplit('/').next()?.to_owned()));
                names.filter(|name| !name.is_empty()).collect()
            }
            Some(folder) => vec![folder],
            None => return,
        };
        self.copied.extend(placed);
    }

    fn pytest(&mut self, words: &[Word]) {
        let read = arguments(words);
        read.values("c", "config-file").for_each(|word| self.add(word, Use::Reads, true));
        read.positional.into_iter().for_each(|word| self.add(word, Use::Reads, true));
    }

    fn git(&mut self, words: &[Word]) {
        let Some(at) = Call::of(words).verb_at() else { return };
        let folder = self.shell.folder.clone();
        let before = words[..at].iter().zip(&words[1..]);
        before.filter(|(word, _)| word.raw == "-C").for_each(|(_, folder)| self.change_folder(folder));
        let read = Arguments::read(&words[at + 1..], "", &[]);
        let (how, is_certain) = match words[at].raw.as_str() {
            "rm" | "mv" | "restore" => (Use::Writes, true),
            "checkout" => (Use::Writes, false),
            "ls-files" if read.long.iter().any(|long| long == "error-unmatch") => (Use::Tests, true),
            _ => (Use::Reads, false),
        };
        for word in &read.positional {
            let is_path = read.after_dashes.iter().any(|after| std::ptr::eq(*after, *word));
            self.add(word, if is_path || is_certain { how } else { Use::Reads }, is_path || is_certain);
        }
        self.shell.folder = folder;
    }

    pub(super) fn add(&mut self, word: &Word, how: Use, is_certain: bool) {
        let values = self.shell.resolved(word);
        if self.feeds_program && is_certain && how == Use::Reads && values.is_some() {
            self.run_code(word, At { wanted: true, decides: true });
        }
        for value in values.into_iter().flatten().filter(|value| !value.is_pattern) {
            self.add_path(&value.text, value.span, how, is_certain);
        }
        if self.feeds_program && is_certain && self.shell.resolved(word).is_none() && word.nested.is_empty() {
            self.deciding.untold(word.span);
        }
    }

    fn add_text(&mut self, word: &Word, prefix: &str, how: Use) {
        if let Some(path) = word.literal.as_deref().and_then(|text| text.strip_prefix(prefix)) {
            self.add_path(path, Span::new(word.span.start + prefix.len(), word.span.end), how, true);
        }
    }

    fn add_path(&mut self, text: &str, span: Span, how: Use, is_certain: bool) {
        // `--config=path` and pytest's `path::test` name a path too.
        let is_option = text.starts_with('-');
        let text = if is_option { text.split_once('=').map_or("", |(_, value)| value) } else { text };
        let text = text.split_once("::").map_or(text, |(path, _)| path);
        let is_certain = is_certain && !is_option && !text.is_empty();
        if !is_certain
            && !looks_like_path(text.strip_prefix(TOP).map_or(text, |path| path.trim_start_matches('/')))
        {
            return;
        }
        // At the top of the workspace a name stays as it is written, for messages.
        let path = match self.shell.folder.as_deref() {
            Some("") if !text.starts_with(TOP) => normal(text).to_owned(),
            Some(_) | None => match self.shell.located(text) {
                Some(path) => path,
                None => return,
            },
        };
        if !path.is_empty() && path != "." && !path.contains('\n') {
            self.found.push(FileUse { path, span, how, is_certain });
        }
    }
}

fn flags(words: &[Word], letter: char, name: &str) -> bool {
    words.iter().any(|word| {
        let text = word.raw.as_str();
        match text.strip_prefix("--") {
            Some(long) => long.split('=').next() == Some(name),
            // Up to a letter that ends the options: `-i.bak`, `-ni`, `-pi`.
            None => text.strip_prefix('-').is_some_and(|letters| {
                letters.chars().take_while(|c| c.is_ascii_alphabetic()).any(|c| c == letter)
            }),
        }
    })
}

fn normal(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path
}

/// Says whether a word looks like a relative path: it has a slash or an extension, and nothing that paths rarely have.
pub fn looks_like_path(text: &str) -> bool {
    // Most words of a text have neither, and every word is asked.
    if !text.contains(['/', '.']) {
        return false;
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+');
    let is_plain = !text.is_empty() && text.chars().all(plain) && !text.starts_with(['-', '/', '@', '+']);
    let inside = !text.split('/').any(|part| part == "..");
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        (1..=8).contains(&extension.len())
            && extension.chars().all(char::is_alphanumeric)
            && extension.chars().any(char::is_alphabetic)
            && (!stem.is_empty() || extension.len() > 2)
    });
    is_plain && inside && (text.trim_end_matches('/').contains('/') || has_extension)
}

// `tests/`; a pair of words such as `and/or` has more behind its slash.
fn is_folder(text: &str) -> bool {
    let name = text.strip_suffix('/').unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() > 1 && name.chars().all(is_plain) && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the paths that a text for people names, with their places in it.
pub fn paths_in_text(text: &str) -> Vec<(String, Span)> {
    let is_edge = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+'));
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut begin = 0;
    // Most words of a text have neither mark, so they are not even looked at.
    while let Some(mark) = memchr::memchr2(b'/', b'.', &bytes[begin..]).map(|mark| begin + mark) {
        let mut at =
            memchr::memrchr2(b' ', b'\n', &bytes[begin..mark]).map_or(begin, |blank| begin + blank + 1);
        begin = memchr::memchr2(b' ', b'\n', &bytes[mark..]).map_or(text.len(), |blank| mark + blank);
        for part in text[at..begin].split_inclusive(is_edge) {
            let word = part.trim_end_matches(is_edge);
            let body = word.trim_end_matches(['.', ',']);
            if (looks_like_path(body) || is_folder(body)) && !matches!(body, "e.g" | "i.e") {
                let path = normal(body).trim_end_matches('/').to_owned();
                found.push((path, Span::new(at, at + body.len())));
            }
            at += part.len();
        }
    }
    // In backticks even a name without slash or extension is a path (`Makefile`).
    let mut offset = 0;
    for (index, part) in text.split('`').enumerate() {
        let starts = index % 2 == 1 && (part.starts_with(char::is_uppercase) || part.starts_with('.'));
        let is_name = || part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if starts && is_name() && !looks_like_path(part) {
            found.push((part.to_owned(), Span::new(offset, offset + part.len())));
        }
        offset += part.len() + 1;
    }
    found
}
