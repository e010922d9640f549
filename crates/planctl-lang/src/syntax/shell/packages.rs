//! Reads the command lines of npm, pnpm, yarn and bun: where each works, whose scripts it runs, and which one.

use super::tools::values_of;
use super::values::normalise;
use super::{Arguments, Call, Program, Word};

/// A command line of a package manager of Node.
pub(super) struct PackageCall<'a> {
    /// The folders that it changes to.
    pub(super) folders: Vec<Word>,
    pub(super) packages: Packages,
    /// The packages below that it names, by their names, folders or patterns; none where it takes all.
    named: Vec<String>,
    /// The script of `package.json` that it runs, if there is one of that name.
    pub(super) script: Option<&'a str>,
    /// The words that the script is given.
    pub(super) given: Vec<&'a Word>,
}

/// The packages whose scripts run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packages {
    /// The one of the folder.
    Here,
    /// The one at the top of the workspace of packages.
    Top,
    /// Some of those below.
    Below,
}

struct Manager {
    name: &'static str,
    /// Options that name a folder.
    folder: &'static [&'static str],
    /// Options for all packages below.
    below: &'static [&'static str],
    /// Options that name some of them.
    named: &'static [&'static str],
    /// Options for the one at the top.
    top: &'static [&'static str],
    /// The scripts that are verbs, behind whose names its own options may stand.
    verbs: &'static [&'static str],
    /// Says that the name of any other script is a verb as well.
    takes_names: bool,
}

// As npm 11, pnpm 9, yarn 1 and 4, and bun 1 read them.
const MANAGERS: [Manager; 4] = [
    Manager {
        name: "npm",
        folder: &["-C", "--prefix"],
        below: &["-ws", "--workspaces"],
        named: &["-w", "--workspace"],
        top: &[],
        verbs: SCRIPTS,
        takes_names: false,
    },
    Manager {
        name: "pnpm",
        folder: &["-C", "--dir", "--prefix"],
        below: &["-r", "--recursive"],
        named: &["-F", "--filter", "--filter-prod"],
        top: &["-w", "--workspace-root"],
        verbs: SCRIPTS,
        takes_names: true,
    },
    Manager {
        name: "yarn",
        folder: &["--cwd"],
        below: &[],
        named: &[],
        top: &[],
        verbs: &[],
        takes_names: true,
    },
    Manager {
        name: "bun",
        folder: &["--cwd"],
        below: &["--workspaces"],
        named: &["-F", "--filter"],
        top: &[],
        verbs: &[],
        takes_names: true,
    },
];
const SCRIPTS: &[&str] = &["test", "t", "tst", "start", "stop", "restart"];

impl<'a> PackageCall<'a> {
    /// Reads a command, where it is one of a package manager.
    pub(super) fn read(words: &'a [Word]) -> Option<PackageCall<'a>> {
        let call = Call::of(words);
        let manager = MANAGERS.iter().find(|manager| call.is_of(manager.name))?;
        let at = manager.script_at(&call);
        let is_verb = at.is_some_and(|at| call.verb_at() == Some(at) && manager.verbs.contains(&call.verb()));
        let takes_options = manager.name == "npm" || is_verb;
        let dashes = words.iter().position(|word| word.raw == "--").unwrap_or(words.len());
        let own = if takes_options { dashes } else { at.unwrap_or(dashes) };
        let has = |signs: &[&str]| signs.iter().any(|sign| call.has_within(own, sign));
        let behind = at.map_or(&[][..], |at| &words[at + 1..]);
        // `yarn workspace NAME test`
        let of_yarn =
            call.verb_at().filter(|_| call.verb() == "workspace").and_then(|at| call.operand_behind(at));
        let named = values_of(&words[1..own], manager.named).into_iter().map(|word| word.text().to_owned());
        Some(PackageCall {
            folders: values_of(&words[1..own], manager.folder),
            packages: match () {
                () if has(manager.below)
                    || has(manager.named)
                    || matches!(call.verb(), "workspace" | "workspaces") =>
                {
                    Packages::Below
                }
                () if has(manager.top) => Packages::Top,
                () => Packages::Here,
            },
            named: named.chain(of_yarn.map(|at| call.words()[at].to_owned())).collect(),
            script: at.map(|at| match call.words()[at] {
                "t" | "tst" if is_verb => "test",
                name => name,
            }),
            given: match takes_options {
                true => manager.operands(behind),
                false => behind.iter().filter(|word| word.raw != "--").collect(),
            },
        })
    }
}

impl PackageCall<'_> {
    /// Says whether it works in a package of this name below, which lies in this folder.
    pub(super) fn takes(&self, name: &str, folder: &str) -> bool {
        let is_pattern =
            |named: &String| named.contains(['*', '{', '[', '!', '^', '$']) || named.contains("...");
        let is_meant = |named: &String| {
            let of_scope = name.rsplit_once('/').map_or(name, |(_, name)| name);
            is_pattern(named) || named == name || named == of_scope || normalise(named) == folder
        };
        self.named.is_empty() || self.named.iter().any(is_meant)
    }
}

impl Manager {
    // The place of the name of the script that a call runs.
    fn script_at(&self, call: &Call<'_>) -> Option<usize> {
        let at = call.verb_at()?;
        match call.verb() {
            "run" | "run-script" => call.operand_behind(at),
            // `yarn workspace NAME test`, `yarn workspace NAME run test`
            "workspace" if self.name == "yarn" => {
                let verb = call.operand_behind(call.operand_behind(at)?)?;
                if call.words()[verb] == "run" { call.operand_behind(verb) } else { Some(verb) }
            }
            // `yarn workspaces run test`, `yarn workspaces foreach -A run test`
            "workspaces" if self.name == "yarn" => {
                let run = call.words().iter().position(|word| *word == "run")?;
                call.operand_behind(run)
            }
            // Its own runner of tests.
            "test" if self.name == "bun" => None,
            verb if self.verbs.contains(&verb) => Some(at),
            "exec" | "x" | "dlx" => None,
            _ => self.takes_names.then_some(at),
        }
    }

    // The words that are no options, and all behind `--`.
    fn operands<'a>(&self, words: &'a [Word]) -> Vec<&'a Word> {
        Program::named(self.name).map_or_else(Arguments::default, |known| known.read(words)).positional
    }
}
