//! Contracts as planctl sees them: our own small tree of commands, words and redirects, so that the bash parser behind
//! it can be changed in a day.

mod arguments;
mod condition;
mod convert;
mod deciding;
mod files;
mod following;
mod gaps;
mod joined;
mod judges;
mod led;
mod limits;
mod masked;
mod named;
mod needed;
mod nothing;
mod packages;
mod patterns;
mod programs;
mod revisions;
mod selecting;
mod status;
mod text;
mod tools;
mod values;
mod walk;

pub(crate) use arguments::Arguments;
pub(crate) use condition::Test;
pub use convert::is_reading_contract;
pub(crate) use deciding::files_and_deciding;
pub use deciding::{Deciding, Look, Unseen, deciding};
pub use files::{FileUse, Use, files, paths_in_text};
pub(crate) use joined::{Expecting, joined};
pub use judges::judges;
pub(crate) use masked::{Lost, Masked, masked, only_looks};
pub use named::{NamedFiles, named_files};
pub(crate) use needed::{Need, needed};
pub(crate) use patterns::{Doubt, doubtful_checks, goes_elsewhere};
pub(crate) use selecting::{PackageScripts, asks_package};
pub(crate) use status::{Status, status};

use programs::Program;
pub(crate) use programs::{Call, Trait, all_commands, arguments, brings, calls, is_here, wrapped_commands};
pub use programs::{Reads, reading_programs};
pub use walk::{commands, each_simple};
pub(crate) use walk::{each, each_list};

use std::collections::BTreeSet;

use crate::text::Span;

/// A list of commands: a script, or the body of a compound command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// The commands, in order.
    pub items: Vec<Item>,
}

/// One command of a list, up to its `;`, `&` or line end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The first pipeline.
    pub first: Pipeline,
    /// The pipelines that `&&` and `||` join to it.
    pub rest: Vec<(Join, Pipeline)>,
    /// Says that it ends with `&`.
    pub is_background: bool,
    /// Where it stands in the script, in bytes.
    pub span: Span,
}

/// How two pipelines are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands joined by `|`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// Says that `!` stands before it.
    pub is_negated: bool,
    /// The commands.
    pub commands: Vec<Command>,
    /// Where it stands.
    pub span: Span,
}

/// One command of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A program, builtin or function with its arguments.
    Simple(Simple),
    /// A command made of others.
    Compound(Compound),
    /// The definition of a function.
    Function {
        /// Its name.
        name: String,
        /// Its body.
        body: Script,
        /// Where it stands.
        span: Span,
    },
    /// `[[ … ]]`
    Test {
        /// The test.
        test: Test,
        /// Redirects.
        redirects: Vec<Redirect>,
        /// Where it stands.
        span: Span,
    },
}

impl Command {
    /// Returns where it stands in the script.
    pub fn span(&self) -> Span {
        match self {
            Command::Simple(simple) => simple.span,
            Command::Compound(compound) => compound.span,
            Command::Function { span, .. } | Command::Test { span, .. } => *span,
        }
    }

    /// Returns what it is, where it is a simple command.
    pub fn as_simple(&self) -> Option<&Simple> {
        match self {
            Command::Simple(simple) => Some(simple),
            Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => None,
        }
    }
}

/// A program, builtin or function with its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simple {
    /// `NAME=value` before the command, with the value.
    pub assignments: Vec<Word>,
    /// The command's name and arguments.
    pub words: Vec<Word>,
    /// Redirects.
    pub redirects: Vec<Redirect>,
    /// The scripts among its arguments: `bash -c '…'`, `eval '…'`, `trap '…' EXIT`.
    pub inline: Vec<Script>,
    /// The arrays that it assigns: `NAME=(…)`.
    pub arrays: Vec<(String, Vec<Word>)>,
    /// Where it stands.
    pub span: Span,
}

impl Simple {
    /// Returns the command's name, where it needs no expansion.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal.as_deref()
    }

    /// Returns its words as bash expands them, or else as written.
    pub fn texts(&self) -> Vec<&str> {
        self.words.iter().map(Word::text).collect()
    }
}

/// A command made of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compound {
    /// Its kind.
    pub kind: CompoundKind,
    /// The conditions of `if`, `elif`, `while` and `until`.
    pub conditions: Vec<Script>,
    /// Its bodies: branches, or one body.
    pub bodies: Vec<Script>,
    /// Says that some branch always runs (`else`, or the only body of a group).
    pub is_exhaustive: bool,
    /// Words it names: the values of `for`, the subject of `case`, the expressions of `((…))`.
    pub words: Vec<Word>,
    /// The variable of `for` and `select`.
    pub variable: Option<String>,
    /// Redirects.
    pub redirects: Vec<Redirect>,
    /// Where it stands.
    pub span: Span,
}

/// The kind of a compound command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompoundKind {
    /// `{ … }`
    Group,
    /// `( … )`
    Subshell,
    /// `if`
    If,
    /// `for`
    For,
    /// `select`
    Select,
    /// `while`, `until`
    While,
    /// `case`
    Case,
    /// `(( … ))`
    Arithmetic,
    /// `coproc`
    Coprocess,
}

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Word {
    /// The text as written.
    pub raw: String,
    /// The value that bash makes of it, where that needs no expansion.
    pub literal: Option<String>,
    /// Its parts, with the names of plain variables.
    pub parts: Vec<Part>,
    /// The scripts inside it: command substitutions.
    pub nested: Vec<Script>,
    /// Where it stands in the script, in bytes.
    pub span: Span,
}

impl Word {
    /// Returns what bash makes of it, or else the text as written.
    pub fn text(&self) -> &str {
        self.literal.as_deref().unwrap_or(&self.raw)
    }
}

/// A part of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Text that stays as it is.
    Text(String),
    /// Text outside of quotes that has `*`, `?`, `[` or `{`.
    Pattern(String),
    /// `$NAME` or `${NAME}`, of an array or the arguments (`$1`, `$@`) too.
    Variable(String),
    /// `${NAME:-default}`
    Default {
        /// The variable.
        name: String,
        /// The value where it is not set.
        default: Vec<Part>,
    },
    /// `$(command)`, with the command's text.
    Output(String),
    /// Anything else.
    Unknown,
}

/// A redirect to or from a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// Says that the file is written.
    pub writes: bool,
    /// The file.
    pub target: Word,
    /// Says that it feeds standard input.
    pub feeds_input: bool,
    /// Says that the target is text of the script itself (`<<`, `<<<`), no file.
    pub is_document: bool,
    /// Where it ends in the command's line: the target, or the word that ends a heredoc.
    pub span: Span,
}

/// The result of reading a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// It was read whole.
    Read(Script),
    /// It is no valid bash, as far as we can tell.
    Refused {
        /// The reason.
        why: String,
        /// Where, as a byte in the script; its end where nothing nearer is known.
        offset: usize,
        /// Says that it uses what our reader is known not to read though bash does.
        is_uncertain: bool,
    },
    /// It is nested deeper, or is larger, than our reader is given.
    TooDeep,
}

/// Reads a script as bash; never panics.
pub fn read(script: &str) -> Reading {
    convert::read(script)
}

/// Returns the relative paths of the programs and scripts that a command runs, as it is written for a shell; none where it
/// can't be read.
pub fn scripts_of_command(command: &str) -> BTreeSet<String> {
    let Reading::Read(script) = read(command) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    each_simple(&script, &mut |simple| {
        found.extend(wrapped_commands(&simple.words).into_iter().filter_map(script_of));
    });
    found.retain(|path| !path.starts_with(['/', '~']));
    found
}

/// Returns the file that a command hands to an interpreter, with its place.
pub(crate) fn handed_script(simple: &Simple) -> Option<(String, Span)> {
    let words = wrapped_commands(&simple.words).pop()?;
    let path = script_of(words).filter(|_| !words[0].text().contains('/'))?;
    let is_it = |word: &&Word| word.text().strip_prefix("./").unwrap_or(word.text()) == path;
    let span = words.iter().find(is_it)?.span;
    Some((path, span))
}

/// Says whether a command runs a file by its path, or gives one to an interpreter.
fn is_run_by_path(words: &[Word]) -> bool {
    let name = words[0].text();
    let is_file = |word: &Word| !word.raw.starts_with('-');
    let is_of_workspace = name.contains('/') && !name.starts_with('/');
    is_of_workspace || Program::is_interpreter(name) && words[1..].iter().any(is_file)
}

fn script_of(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let program = program.literal.as_deref()?;
    if program.contains('/') && !program.starts_with('/') {
        return Some(program.strip_prefix("./").unwrap_or(program).to_owned());
    }
    if !Program::is_interpreter(program) && !matches!(program, "deno" | "bun") {
        return None;
    }
    // A text or a module in place of a file.
    let file = arguments.iter().find(|word| !word.text().starts_with('-'))?.literal.as_deref()?;
    let is_text = arguments
        .iter()
        .take_while(|word| word.text().starts_with('-'))
        .any(|word| matches!(word.text(), "-c" | "-e" | "-m" | "--eval"));
    (!is_text).then(|| file.strip_prefix("./").unwrap_or(file).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheat_50_the_scripts_of_a_command_are_what_it_runs_and_not_what_it_reads() {
        let scripts = |command: &str| scripts_of_command(command).into_iter().collect::<Vec<_>>().join(" ");
        for (command, expected) in [
            ("bash agent.sh", "agent.sh"),
            ("./tools/agent --quiet", "tools/agent"),
            ("tools/agent", "tools/agent"),
            ("python3 -u agent.py {prompt}", "agent.py"),
            ("python3.11 ./a/agent.py < notes.md", "a/agent.py"),
            ("timeout 5 env A=1 bash agent.sh", "agent.sh"),
            (". ./lib.sh; node agent.mjs notes.md", "agent.mjs lib.sh"),
            ("cp a.log seen; echo behind > out.txt", ""),
            ("touch worked; cat notes.md", ""),
            ("bash -c 'x' agent.sh", ""),
            ("python3 -m tools.agent", ""),
            ("/usr/bin/agent x", ""),
            ("claude -p", ""),
            ("if then", ""),
        ] {
            assert_eq!(scripts(command), expected, "{command}");
        }
    }
}
