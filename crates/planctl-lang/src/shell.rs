//! Contracts as planctl sees them: our own small tree of commands, words and redirects, so that the bash parser behind
//! it can be changed in a day.

mod arguments;
mod condition;
mod convert;
mod files;
mod gaps;
mod judges;
mod limits;
mod patterns;
mod status;
mod text;
mod walk;

pub(crate) use arguments::Arguments;
pub(crate) use condition::Test;
pub use convert::is_reading_contract;
pub use files::{FileUse, Use, files, paths_in_text};
pub use judges::judges;
pub(crate) use patterns::{Doubt, doubtful};
pub(crate) use status::{Status, masked, status};

pub(crate) use walk::{chain, each, each_list, git_verb};
pub use walk::{commands, each_simple};

use crate::source::Span;

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
    /// What `&&` and `||` join to it.
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
        /// What it runs.
        body: Script,
        /// Where it stands.
        span: Span,
    },
    /// `[[ … ]]`
    Test {
        /// What it asks.
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
    /// Where it stands.
    pub span: Span,
}

impl Simple {
    /// Returns the command's name, where it needs no expansion.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal.as_deref()
    }

    /// Returns its words: what bash makes of them, or else as written.
    pub fn texts(&self) -> Vec<&str> {
        self.words.iter().map(Word::text).collect()
    }
}

/// A command made of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compound {
    /// What it is.
    pub kind: CompoundKind,
    /// The conditions of `if`, `elif`, `while` and `until`.
    pub conditions: Vec<Script>,
    /// What it runs: branches, or one body.
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

/// What a compound command is.
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
    /// What bash makes of it, where that needs no expansion.
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
    /// `$NAME` or `${NAME}`
    Variable(String),
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

/// What became of reading a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// It was read whole.
    Read(Script),
    /// It is no valid bash, as far as we can tell.
    Refused {
        /// What is wrong.
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
