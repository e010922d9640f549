//! The files that a command names, by what it does with them: it looks at some, and runs others.

use std::collections::BTreeSet;

use planctl_glob::{Glob, is_glob};

use super::following::Follower;
use super::programs::is_shell;
use super::values::{escape_glob, normalise};
use super::{
    Call, Command, FileUse, Look, Pipeline, Reading, Redirect, Script, Simple, Trait, Use, Word,
    all_commands, arguments, each_simple, read,
};
use crate::text::Span;
use crate::text::paths::leaves_workspace;

/// The files of the workspace that a command names, each in one of these sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamedFiles {
    /// It looks at them by programs that run nothing of what they read.
    pub examined: BTreeSet<String>,
    /// It runs them, or its tools run them or are set up by them.
    pub deciding: BTreeSet<String>,
    /// Nobody can tell: words of a script, or of a program that planctl does not know.
    pub unclear: BTreeSet<String>,
}

/// Returns the files that a command names. Where it can't be read as bash, nothing is known.
pub fn named_files(command: &str, look: &dyn Look) -> NamedFiles {
    let Reading::Read(script) = read(command) else { return NamedFiles::default() };
    let mut follower = Follower::follow(&script, look);
    let decided = follower.decided();
    let patterns: Vec<Glob> = decided
        .paths_and_patterns()
        .filter(|name| is_glob(name))
        .filter_map(|name| Glob::parse(name).ok())
        .collect();
    let mut looking = Looking { found: Vec::new(), runs_product: false };
    each_simple(&script, &mut |simple| looking.runs_product |= runs_file(simple));
    looking.script(&script, true);
    let examined = looking.examined(&follower.found);
    let mut named = NamedFiles::default();
    for file in follower.found.iter().filter(|file| file.how != Use::Writes) {
        let path = normalise(file.path.trim_end_matches('/'));
        if is_glob(&path) || path.is_empty() || leaves_workspace(&path).is_some() {
            continue;
        }
        let is_decided = decided.paths_and_patterns().any(|name| name == escape_glob(&path))
            || patterns.iter().any(|pattern| pattern.matches(&path));
        if is_decided {
            named.deciding.insert(path);
        } else if examined.contains(&file.span) {
            named.examined.insert(path);
        } else {
            named.unclear.insert(path);
        }
    }
    named.examined.retain(|path| !named.unclear.contains(path));
    named
}

/// Gathers the words that are files which a script looks at. A file with which the output of something else is compared decides, and
/// is not one of them.
struct Looking {
    /// The words of each command that only looks.
    found: Vec<Vec<Span>>,
    /// Says that the script starts a program that lies in the workspace, which an earlier command may have made.
    runs_product: bool,
}

impl Looking {
    /// Returns the places of the files, less those beside one that the script itself writes.
    fn examined(self, files: &[FileUse]) -> BTreeSet<Span> {
        let written: BTreeSet<&str> =
            files.iter().filter(|file| file.how == Use::Writes).map(|file| file.path.as_str()).collect();
        let is_written =
            |span: &Span| files.iter().any(|file| file.span == *span && written.contains(file.path.as_str()));
        self.found.into_iter().filter(|words| !words.iter().any(is_written)).flatten().collect()
    }

    /// Goes through a script; its output is looked at, too, or may be run.
    fn script(&mut self, script: &Script, is_looked_at: bool) {
        pipelines(script).for_each(|pipeline| {
            let all_look =
                pipeline.commands.len() == 1 || pipeline.commands.iter().all(|next| self.looks(next));
            pipeline.commands.iter().for_each(|command| self.command(command, is_looked_at && all_look));
        });
    }

    fn command(&mut self, command: &Command, is_looked_at: bool) {
        match command {
            Command::Simple(simple) => self.simple(simple, is_looked_at),
            Command::Compound(compound) => {
                let is_looked_at = is_looked_at && !writes_file(&compound.redirects);
                let scripts = compound.conditions.iter().chain(&compound.bodies);
                scripts.for_each(|script| self.script(script, is_looked_at));
            }
            Command::Test { test, .. } => self.words(&test.words(), is_looked_at),
            // Where it is called, and what becomes of its output, is not followed.
            Command::Function { .. } => {}
        }
    }

    fn simple(&mut self, simple: &Simple, is_looked_at: bool) {
        simple.inline.iter().for_each(|script| self.script(script, is_looked_at));
        if !is_looked_at || !self.looks_by(simple) {
            return;
        }
        let commands = all_commands(&simple.words);
        let read = commands.last().map(|words| arguments(words)).unwrap_or_default();
        let fed = simple.redirects.iter().filter(|redirect| redirect.feeds_input && !redirect.is_document);
        let words: Vec<&Word> =
            read.positional.into_iter().chain(fed.map(|redirect| &redirect.target)).collect();
        self.words(&words, true);
    }

    fn words(&mut self, words: &[&Word], is_looked_at: bool) {
        let looks = |script: &Script| {
            pipelines(script).flat_map(|pipeline| &pipeline.commands).all(|one| self.looks(one))
        };
        if !is_looked_at || !words.iter().flat_map(|word| &word.nested).all(looks) {
            return;
        }
        words.iter().flat_map(|word| &word.nested).for_each(|script| self.script(script, true));
        self.found.push(words.iter().filter(|word| word.nested.is_empty()).map(|word| word.span).collect());
    }

    fn looks(&self, command: &Command) -> bool {
        match command {
            Command::Simple(simple) => self.looks_by(simple),
            Command::Test { .. } => true,
            Command::Compound(_) | Command::Function { .. } => false,
        }
    }

    /// Says whether a command runs nothing of what it reads, and hands it to nobody who might.
    fn looks_by(&self, simple: &Simple) -> bool {
        let commands = all_commands(&simple.words);
        // Those before are wrappers; behind `find` stands each command that it starts.
        let is_find = |words: &&[Word]| Call::of(words).is_of("find");
        let Some(first) = commands.iter().position(is_find).or(commands.len().checked_sub(1)) else {
            return false;
        };
        commands[first..].iter().all(|words| self.looks_with(words)) && !writes_file(&simple.redirects)
    }

    fn looks_with(&self, words: &[Word]) -> bool {
        let call = Call::of(words);
        let examines = call.does(Trait::Examines) || call.does(Trait::OnlyReads) || only_parses(words);
        examines && !(self.runs_product && call.does(Trait::Makes))
    }
}

fn pipelines(script: &Script) -> impl Iterator<Item = &Pipeline> {
    script
        .items
        .iter()
        .flat_map(|item| std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next)))
}

/// Says whether an interpreter only reads its script: `bash -n`, `node --check`.
fn only_parses(words: &[Word]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let signs: &[&str] = match program.text() {
        shell if is_shell(shell) => &["-n"],
        "node" => &["-c", "--check"],
        "php" => &["-l"],
        "perl" | "ruby" => &["-c", "-wc"],
        _ => return false,
    };
    rest.iter().map(Word::text).take_while(|text| text.starts_with('-')).any(|text| signs.contains(&text))
}

fn runs_file(simple: &Simple) -> bool {
    match all_commands(&simple.words).last() {
        Some(words) => words[0].text().contains('/') && !words[0].text().starts_with('/'),
        // Nobody can tell the name.
        None => !simple.words.is_empty(),
    }
}

fn writes_file(redirects: &[Redirect]) -> bool {
    redirects.iter().any(|redirect| redirect.writes && redirect.target.text() != "/dev/null")
}
