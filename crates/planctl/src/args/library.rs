//! The arguments of `planctl library`: plans that are found by what a message says.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::completing;

/// The commands of the library.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl library ls
  planctl library match 'I need to fix a bug in the login module' --explain
  planctl new plans/login.md --from bugfix_workflow      a plan to run
  planctl library new fix_login --trigger 'fix login'    an entry of your own")]
pub enum LibraryCommand {
    /// Lists the entries, and where each comes from: the project, your configuration, planctl; the nearest wins
    #[command(visible_alias = "list")]
    Ls {
        /// Only entries for this domain
        #[arg(long)]
        domain: Option<String>,
    },
    /// Shows an entry as it is written
    Show {
        /// Its name in the library
        #[arg(value_name = "NAME", add = completing::entry())]
        id: String,
    },
    /// Names the entry that fits a message, if any
    #[command(before_help = "Examples:
  planctl library match 'fix the bug in /tmp/test.py'
  planctl library match 'create a new branch' --domain git_ops --explain
  echo 'the build is broken' | planctl library match - --json")]
    Match(Matching),
    /// Writes a new entry: a plan that the words of a message find
    New(NewEntry),
    /// Opens an entry of the project or of yours in your editor ($VISUAL, $EDITOR) and verifies it
    Edit {
        /// Its name in the library
        #[arg(value_name = "NAME", add = completing::entry())]
        id: String,
    },
    /// Imports a library in JSON into the project's plans
    #[command(before_help = "Examples:
  planctl library import htn_plan_library.json
  planctl library import htn_plan_library.json --replace    keeps the former one beside it")]
    Import {
        /// The file: `{"plans": {NAME: …}}`, or one entry
        file: PathBuf,
        /// Replace a library of the same name; it is kept as NAME.json.bak
        #[arg(long)]
        replace: bool,
        /// Into your own configuration instead of the project
        #[arg(long)]
        user: bool,
    },
    /// Writes entries as one library in JSON
    Export {
        /// The entries [default: all]
        #[arg(value_name = "NAME", add = completing::entry())]
        ids: Vec<String>,
        /// The file to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Shows how often plans of each entry succeeded in this workspace, and the thresholds learned from that
    Stats,
}

/// A message, and what is known about it.
#[derive(Args, Clone, Debug)]
pub struct Matching {
    /// The message; `-` is standard input
    #[arg(allow_hyphen_values = true)]
    pub message: String,
    /// Its domain; an empty one fits only entries without domains [default: every domain fits]
    #[arg(long)]
    pub domain: Option<String>,
    /// Only entries that this role of planctl.toml may take (`plans`)
    #[arg(long, add = completing::role())]
    pub role: Option<String>,
    /// Show the score of each entry, and why the others were not chosen
    #[arg(long)]
    pub explain: bool,
    /// How triggers are looked for
    #[arg(long, value_enum, default_value_t)]
    pub matcher: MatcherWord,
}

/// How triggers are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum MatcherWord {
    /// Whole words in order, with up to two others between
    #[default]
    Words,
    /// The trigger's characters, anywhere
    Substring,
}

/// The beginning of a new entry, and the words that find it.
#[derive(Args, Clone, Debug)]
pub struct NewEntry {
    /// Its name in the library: letters, digits, `-` and `_`
    #[arg(value_name = "NAME")]
    pub id: String,
    /// The entry, template or plan to start from
    #[arg(long, value_name = "NAME|FILE", add = completing::template())]
    pub from: Option<String>,
    /// Words by which a message finds it; may be repeated [default: the words of its name]
    #[arg(long = "trigger", value_name = "WORDS")]
    pub triggers: Vec<String>,
    /// How many of them a message must have
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threshold: u32,
    /// A domain that it is for; may be repeated
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub domains: Vec<String>,
    /// In your own configuration instead of the project
    #[arg(long)]
    pub user: bool,
    /// Overwrite an existing entry
    #[arg(long)]
    pub force: bool,
}
