//! The programs that planctl knows: how their words are read, what they start, and what a call of one brings about.

mod building;
mod machines;
mod reads;
mod shells;
mod starting;
mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Arguments, Simple, Use, Word};
pub use reads::Reads;
pub(super) use starting::started_by_runner;
pub(crate) use starting::{all_commands, wrapped_commands};
use table::PROGRAMS;

/// A program, or several of one kind.
pub(crate) struct Program {
    /// Their names.
    names: &'static [&'static str],
    /// The letters of options with a value.
    short: &'static str,
    /// The names of options with a value.
    long: &'static [&'static str],
    /// Where its words name files.
    pub(super) files: Files,
    /// How it starts another program.
    wraps: Option<Wraps>,
    /// The files that it reads by itself, by its calls.
    reads: &'static [Reads],
    /// Its calls, and what they bring about.
    does: &'static [Does],
}

/// Where the words of a program name files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Files {
    /// Nowhere that is known: a word is one by its look alone.
    ByLook,
    /// Nowhere.
    None,
    /// Each word that is no option.
    All(Use),
    /// Each word that is no option, behind the first so many.
    Behind(usize, Use),
    /// All behind the first, which is a pattern or a program unless an option gives it.
    BehindPattern,
    /// The first is a script that it runs; the others are its arguments.
    Script,
    /// In a way of its own, which is code.
    Own,
}

/// How a program starts another.
#[derive(Clone, Copy)]
struct Wraps {
    /// The verbs with which it does; none where it has no verbs.
    verbs: &'static [&'static str],
    /// The option behind which the other stands, as in `python -m`; else it stands behind all options.
    behind: &'static str,
    /// How many words of its own come first.
    positionals: usize,
    /// Says that `NAME=value` may come first.
    takes_assignments: bool,
    /// Says that it looks the other up in places of its own, not on the PATH.
    has_own_path: bool,
    /// Says that the name of the other may stand in the place of a verb.
    takes_names: bool,
}

/// Something that calls of a program bring about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trait {
    /// They reach other machines.
    Network,
    /// They destroy.
    Destroys,
    /// They wait for a person.
    Asks,
    /// They read their standard input where nothing else feeds it.
    AsksUnlessFed,
    /// They change files or a repository that their words don't name; how, in words.
    Changes(&'static str),
    /// They leave a process behind.
    Stays,
    /// They end processes, or wait for them.
    Ends,
    /// They change the system.
    System,
    /// They end with 0 whatever they find: their name, and what says it by its exit code.
    Tells(&'static str, &'static str),
    /// They run tests by a name, or a script, and end with 0 where there is none.
    Selects,
    /// They end with 0.
    Succeeds,
    /// They are run for their exit code, also where another program runs them.
    Checks,
    /// They prepare a check.
    Prepares,
    /// They are run for what a person reads in the log, or to clear away.
    Shows,
    /// They end with 0 on any input, or on some other one.
    Filters,
    /// They end with 0 where nothing comes in, and else as what comes in says.
    Idles,
    /// They say something, or nothing, and end with 0.
    Says,
    /// They print what is there.
    Prints,
    /// They print a text, or what a file has.
    PrintsText,
    /// Their result depends on nothing but their words and the files that these name.
    OnlyReads,
    /// They look at the files that their words name, and run none of them.
    Examines,
    /// They make programs.
    Builds,
    /// They make files that a later command may run.
    Makes,
    /// They run tests or recipes of the workspace.
    RunsWorkspace,
    /// They run tests, and fail where one of them does.
    Tests,
}

/// Calls of a program, by their words, and what they bring about.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Does {
    what: Trait,
    /// The first word that is no option; none for any.
    verbs: &'static [&'static str],
    /// The same, of which it is none.
    other_than: &'static [&'static str],
    /// One of these signs is among the words; none where that is no matter.
    with: &'static [&'static str],
    /// And one of these.
    and: &'static [&'static str],
    /// None of these is.
    without: &'static [&'static str],
    operands: Operands,
}

/// The words of a call behind its verb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    /// There is no word at all.
    Absent,
    /// One is no option.
    Present,
}

impl Does {
    const fn any(what: Trait) -> Does {
        Does::on(&[], what)
    }

    const fn on(verbs: &'static [&'static str], what: Trait) -> Does {
        Does { what, verbs, other_than: &[], with: &[], and: &[], without: &[], operands: Operands::Any }
    }

    const fn other_than(what: Trait, verbs: &'static [&'static str]) -> Does {
        Does { other_than: verbs, ..Does::any(what) }
    }

    const fn with(self, signs: &'static [&'static str]) -> Does {
        Does { with: signs, ..self }
    }

    const fn and(self, signs: &'static [&'static str]) -> Does {
        Does { and: signs, ..self }
    }

    const fn without(self, signs: &'static [&'static str]) -> Does {
        Does { without: signs, ..self }
    }

    const fn alone(self) -> Does {
        Does { operands: Operands::Absent, ..self }
    }

    const fn of_something(self) -> Does {
        Does { operands: Operands::Present, ..self }
    }

    fn is_by(&self, call: &Call<'_>) -> bool {
        let verb = call.verb();
        let has_one = |signs: &[&str]| signs.is_empty() || signs.iter().any(|sign| call.has(sign));
        (self.verbs.is_empty() || self.verbs.contains(&verb))
            && !self.other_than.contains(&verb)
            && has_one(self.with)
            && has_one(self.and)
            && !self.without.iter().any(|sign| call.has(sign))
            && match self.operands {
                Operands::Any => true,
                Operands::Absent => call.words.len() == 1,
                Operands::Present => {
                    call.verb.is_some_and(|at| verb_at(&call.words[at..], call.known).is_some())
                }
            }
    }
}

/// A call of a program that planctl knows, or of another.
pub(crate) struct Call<'a> {
    /// The words as bash expands them, or else as written.
    words: Vec<&'a str>,
    known: Option<&'static Program>,
    /// The place of the first word that is no option.
    verb: Option<usize>,
}

impl<'a> Call<'a> {
    /// Reads a command.
    pub(crate) fn of(words: &'a [Word]) -> Call<'a> {
        let words: Vec<&str> = words.iter().map(Word::text).collect();
        let known = words.first().and_then(|name| Program::named(name));
        let verb = verb_at(&words, known);
        Call { words, known, verb }
    }

    /// Returns the program's name as it is written.
    pub(crate) fn name(&self) -> &'a str {
        self.words.first().copied().unwrap_or_default()
    }

    /// Returns the first word that is no option and no value of one; may be empty.
    pub(crate) fn verb(&self) -> &'a str {
        self.verb.map(|at| self.words[at]).unwrap_or_default()
    }

    /// Returns the place of its verb among all words.
    pub(super) fn verb_at(&self) -> Option<usize> {
        self.verb
    }

    /// Returns the place of the first word behind another that is no option and no value of one.
    pub(super) fn operand_behind(&self, at: usize) -> Option<usize> {
        verb_at(&self.words[at..], self.known).map(|behind| at + behind)
    }

    /// Says whether a sign is among its first words.
    pub(super) fn has_within(&self, end: usize, sign: &str) -> bool {
        has_sign(self.words.get(1..end).unwrap_or_default(), sign)
    }

    /// Returns all words.
    pub(crate) fn words(&self) -> &[&'a str] {
        &self.words
    }

    /// Says whether a call is one of a known program.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.known.is_some_and(|known| known.names.contains(&name)) && Program::plain(self.name()) == name
    }

    /// Says whether it brings something about.
    pub(crate) fn does(&self, what: Trait) -> bool {
        self.traits().any(|one| one == what)
    }

    /// Returns all that it brings about.
    pub(crate) fn traits(&self) -> impl Iterator<Item = Trait> + '_ {
        let rows = self.known.map_or(&[][..], |known| known.does);
        rows.iter().filter(|row| row.is_by(self)).map(|row| row.what)
    }

    /// Says whether a sign is among its words.
    fn has(&self, sign: &str) -> bool {
        has_sign(self.words.get(1..).unwrap_or_default(), sign)
    }
}

/// Says whether a sign is among words: an option (`-f` in `-rf`, `--force`, `--force=x`), a word, the beginning of one
/// (`+*`), a text within one in any case (`*drop table*`), or an address of this machine (`HERE`).
fn has_sign(words: &[&str], sign: &str) -> bool {
    let mut words = words.iter();
    if sign == HERE {
        return words.any(|word| is_here(word));
    }
    if let Some(inner) = sign.strip_prefix('*').and_then(|sign| sign.strip_suffix('*')) {
        return words.any(|word| word.to_lowercase().contains(inner));
    }
    if let Some(beginning) = sign.strip_suffix('*') {
        return words.any(|word| word.starts_with(beginning));
    }
    match sign.as_bytes() {
        [b'-', letter] if letter.is_ascii_alphabetic() => {
            let letter = char::from(*letter);
            words.any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
        }
        [b'-', b'-', ..] => words
            .any(|word| word.strip_prefix(sign).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))),
        _ => words.any(|word| *word == sign),
    }
}

/// The sign of an address of this machine.
const HERE: &str = "HERE";

/// Says whether a word names this machine.
pub(crate) fn is_here(word: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].iter().any(|here| word.contains(here))
}

fn verb_at(words: &[&str], known: Option<&Program>) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        // `cargo +nightly test`
        if !word.starts_with(['-', '+']) {
            return Some(at);
        }
        at += 1 + usize::from(known.is_some_and(|known| known.takes_next(word)));
    }
    None
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static Program>> = LazyLock::new(|| {
    let named = |program: &'static Program| program.names.iter().map(move |name| (*name, program));
    PROGRAMS.into_iter().flatten().flat_map(named).collect()
});

/// Returns the name of the program that a word starts, wherever it lies and whatever its version: `.venv/bin/python3.11` is
/// `python3`.
pub(super) fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".phar").unwrap_or(name);
    match name.split_once('.') {
        Some((stem, version))
            if (stem.starts_with("python") || stem.starts_with("pypy"))
                && version.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            stem
        }
        Some(_) | None => name,
    }
}

/// Returns the files that calls of programs read by themselves, each with the calls for which that holds.
pub fn reading_programs() -> Vec<(Vec<String>, &'static Reads)> {
    let mut found: Vec<(Vec<String>, &'static Reads)> = Vec::new();
    for program in PROGRAMS.into_iter().flatten() {
        for reads in program.reads {
            let calls: Vec<String> = match reads.call {
                "" => program.names.iter().map(|name| (*name).to_owned()).collect(),
                call => vec![format!("{} {call}", program.names[0])],
            };
            match found.iter_mut().find(|(_, other)| *other == reads) {
                Some((others, _)) => others.extend(calls),
                None => found.push((calls, reads)),
            }
        }
    }
    found
}

/// Says whether a word starts a shell.
pub(super) fn is_shell(word: &str) -> bool {
    Program::shares_row(word, "bash")
}

/// Says whether a word starts Python.
pub(super) fn is_python(word: &str) -> bool {
    Program::shares_row(word, "python3")
}

impl Program {
    /// Returns what is known of a program, wherever it is installed.
    pub(super) fn named(name: &str) -> Option<&'static Program> {
        BY_NAME.get(Program::plain(name)).copied()
    }

    /// Says whether a word starts a program that stands in one row of the table with another.
    fn shares_row(word: &str, other: &str) -> bool {
        Program::named(word).is_some_and(|known| known.names.contains(&other))
    }

    // `/bin/rm` and `.venv/bin/pytest` are programs; `./make` is a file of the workspace.
    fn plain(name: &str) -> &str {
        let is_installed = !name.contains('/') || name.starts_with('/') || name.contains("bin/");
        let plain = if is_installed { program(name) } else { name };
        if plain.starts_with("mkfs.") { "mkfs" } else { plain }
    }

    /// Returns the files that a call of a program reads by itself, by the first of its words that is no option and no value of one.
    pub(super) fn reads(name: &str, rest: &[Word]) -> Option<&'static Reads> {
        let known = Program::named(name)?;
        let words: Vec<&str> = std::iter::once(name).chain(rest.iter().map(Word::text)).collect();
        let verb = verb_at(&words, Some(known)).map_or("", |at| words[at]);
        known.reads.iter().find(|reads| reads.fit(verb, &words[1..]))
    }

    /// Reads the words behind a program's name, known or not.
    pub(super) fn arguments<'a>(name: &str, rest: &'a [Word]) -> Arguments<'a> {
        match Program::named(name) {
            Some(known) => known.read(rest),
            None => Arguments::read(rest, "", &[]),
        }
    }

    /// Reads the words behind its name.
    pub(super) fn read<'a>(&self, words: &'a [Word]) -> Arguments<'a> {
        Arguments::read(words, self.short, self.long)
    }

    /// Says whether the word after an option is its value.
    fn takes_next(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(name) => self.long.contains(&name),
            // The last of several letters has the value.
            None => option.chars().skip(1).last().is_some_and(|letter| self.short.contains(letter)),
        }
    }

    /// Says whether a program of this name runs the script that it is given.
    pub(super) fn is_interpreter(name: &str) -> bool {
        Program::named(name).is_some_and(|known| known.files == Files::Script)
    }
}

/// Says whether every call of a program brings something about.
pub(crate) fn brings(name: &str, what: Trait) -> bool {
    let is_always = |row: &Does| *row == Does::any(what);
    Program::named(name).is_some_and(|known| known.does.iter().any(is_always))
}

/// Returns the calls of a command: its own, and those of all that it starts.
pub(crate) fn calls(simple: &Simple) -> impl Iterator<Item = Call<'_>> {
    all_commands(&simple.words).into_iter().map(Call::of)
}

/// Returns a command's options and operands as its program reads them.
pub(crate) fn arguments(words: &[Word]) -> Arguments<'_> {
    let Some((name, rest)) = words.split_first() else { return Arguments::default() };
    Program::arguments(name.text(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::shell::{Command, Reading, read};

    pub(super) fn words_of(command: &str) -> Vec<Word> {
        let Reading::Read(script) = read(command) else { panic!("{command} is bash") };
        let [Command::Simple(simple)] = &script.items[0].first.commands[..] else { panic!("{command}") };
        simple.words.clone()
    }

    #[test]
    fn each_program_stands_once() {
        let names: Vec<&str> =
            PROGRAMS.into_iter().flatten().flat_map(|program| program.names).copied().collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(names.len(), once.len(), "{names:?}");
    }

    #[test]
    fn a_sign_is_an_option_in_any_of_its_forms_a_word_or_a_part_of_one() {
        let has = |command: &str, sign: &str| Call::of(&words_of(command)).has(sign);
        for (command, sign) in [
            ("rm -rf x", "-r"),
            ("git push --force=x", "--force"),
            ("git push origin +main", "+*"),
            ("psql -c 'DROP TABLE a'", "*drop table*"),
            ("curl http://localhost:80", HERE),
            ("git checkout .", "."),
        ] {
            assert!(has(command, sign), "{command} {sign}");
        }
        for (command, sign) in [
            ("rm --recursive x", "-r"),
            ("git push --forced", "--force"),
            ("rm r", "-r"),
            ("kill -15 3", "-1"),
        ] {
            assert!(!has(command, sign), "{command} {sign}");
        }
    }

    #[test]
    fn the_verb_stands_behind_options_and_their_values() {
        for (command, verb) in [
            ("git -C a --git-dir b status -s", "status"),
            ("kubectl -n web get pods", "get"),
            ("docker --context x rm y", "rm"),
            ("apt-get -y install x", "install"),
            ("cargo +nightly -Z a test b", "test"),
            ("git", ""),
        ] {
            assert_eq!(Call::of(&words_of(command)).verb(), verb, "{command}");
        }
    }
}
