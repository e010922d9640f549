//! Walks a script: every command in it, wherever it is nested, and the programs they start.

use std::collections::BTreeSet;

use super::programs::is_shell;
use super::{Command, Compound, CompoundKind, Item, Join, Pipeline, Script, Simple, Word, wrapped_commands};
use crate::text::Span;

/// Calls a function with every simple command of a script, substitutions, functions and scripts in words included.
pub fn each_simple<'a>(script: &'a Script, visit: &mut dyn FnMut(&'a Simple)) {
    each(script, &mut |command| {
        if let Command::Simple(simple) = command {
            visit(simple);
        }
    });
}

/// Calls a function with every command of a script, in order.
pub(crate) fn each<'a>(script: &'a Script, visit: &mut dyn FnMut(&'a Command)) {
    each_with_expectation(script, true, &mut |command, _| visit(command));
}

/// Calls a function with every list of commands in a script, the script itself first.
pub(crate) fn each_list<'a>(script: &'a Script, visit: &mut dyn FnMut(&'a Script)) {
    visit(script);
    each(script, &mut |command| match command {
        Command::Compound(compound) => {
            compound.conditions.iter().chain(&compound.bodies).for_each(&mut *visit)
        }
        Command::Function { body, .. } => visit(body),
        Command::Simple(simple) => {
            let redirected = simple.redirects.iter().map(|redirect| &redirect.target);
            let words = simple.assignments.iter().chain(&simple.words).chain(redirected);
            words.flat_map(|word| &word.nested).chain(&simple.inline).for_each(&mut *visit);
        }
        Command::Test { test, .. } => {
            test.words().into_iter().flat_map(|word| &word.nested).for_each(&mut *visit)
        }
    });
}

/// Calls a function with every command, and with whether the script goes well where that command succeeds: not after
/// `!`, before `&& exit 1`, or as the condition of `if … then exit 1`.
pub(super) fn each_with_expectation<'a>(
    script: &'a Script,
    is_wanted: bool,
    visit: &mut dyn FnMut(&'a Command, bool),
) {
    for item in &script.items {
        of_item(item, is_wanted, visit);
    }
}

fn of_item<'a>(item: &'a Item, is_wanted: bool, visit: &mut dyn FnMut(&'a Command, bool)) {
    let flips = item.rest.first().is_some_and(|(how, next)| *how == Join::And && pipeline_fails(next));
    of_pipeline(&item.first, is_wanted != flips, visit);
    for (_, pipeline) in &item.rest {
        of_pipeline(pipeline, is_wanted, visit);
    }
}

fn of_pipeline<'a>(pipeline: &'a Pipeline, is_wanted: bool, visit: &mut dyn FnMut(&'a Command, bool)) {
    let is_wanted = is_wanted != pipeline.is_negated;
    for command in &pipeline.commands {
        visit(command, is_wanted);
        match command {
            Command::Simple(simple) => {
                let redirected = simple.redirects.iter().map(|redirect| &redirect.target);
                of_words(simple.assignments.iter().chain(&simple.words).chain(redirected), visit);
                simple.inline.iter().for_each(|script| each_with_expectation(script, is_wanted, visit));
            }
            Command::Compound(compound) => of_compound(compound, is_wanted, visit),
            Command::Function { body, .. } => each_with_expectation(body, is_wanted, visit),
            Command::Test { test, redirects, .. } => {
                let redirected = redirects.iter().map(|redirect| &redirect.target);
                of_words(test.words().into_iter().chain(redirected), visit);
            }
        }
    }
}

fn of_compound<'a>(compound: &'a Compound, is_wanted: bool, visit: &mut dyn FnMut(&'a Command, bool)) {
    let redirected = compound.redirects.iter().map(|redirect| &redirect.target);
    of_words(compound.words.iter().chain(redirected), visit);
    let flips = compound.kind == CompoundKind::If && compound.bodies.first().is_some_and(fails);
    for condition in &compound.conditions {
        each_with_expectation(condition, is_wanted != flips, visit);
    }
    for body in &compound.bodies {
        each_with_expectation(body, is_wanted, visit);
    }
}

fn of_words<'a>(words: impl Iterator<Item = &'a Word>, visit: &mut dyn FnMut(&'a Command, bool)) {
    for script in words.flat_map(|word| &word.nested) {
        each_with_expectation(script, true, visit);
    }
}

pub(super) fn last_of(item: &Item) -> &Pipeline {
    item.rest.last().map_or(&item.first, |(_, last)| last)
}

/// Returns the plain command with which a script ends.
pub(super) fn last_simple(script: &Script) -> Option<&Simple> {
    script.items.last().and_then(|item| last_of(item).commands.last()).and_then(Command::as_simple)
}

// Says whether a list ends with `exit 1`, `return 1` or `false`.
pub(super) fn fails(script: &Script) -> bool {
    script.items.last().is_some_and(|item| pipeline_fails(last_of(item)) && !item.is_background)
}

pub(super) fn pipeline_fails(pipeline: &Pipeline) -> bool {
    match pipeline.commands.as_slice() {
        [Command::Simple(simple)] => match (simple.words.first().map(Word::text), simple.words.len()) {
            (Some("false"), 1) => !pipeline.is_negated,
            (Some("exit" | "return"), 2) => simple.words[1].text() != "0",
            _ => false,
        },
        [Command::Compound(compound)] => {
            compound.kind == CompoundKind::Group && compound.bodies.iter().all(fails)
        }
        _ => false,
    }
}

/// A program that a script starts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Started {
    /// The program's name, as written.
    pub name: String,
    /// Where the name stands in the script.
    pub span: Span,
}

/// Returns the programs that a script starts by name: no builtins, no functions or aliases of its own, and, behind
/// wrappers like `timeout`, the program they start. Those that the script looks up itself are left out.
pub fn commands(script: &Script) -> Vec<Started> {
    let mut known = BTreeSet::new();
    let mut started = Vec::new();
    let mut is_open = false;
    each(script, &mut |command| match command {
        Command::Function { name, .. } => {
            known.insert(name.clone());
        }
        Command::Simple(simple) => {
            known.extend(looked_up(simple));
            is_open |= brings_names(simple);
            for words in wrapped_commands(&simple.words) {
                if let Some(word) = words.first()
                    && let Some(name) = word.literal.as_deref().filter(|name| !name.is_empty())
                {
                    started.push(Started { name: name.to_owned(), span: word.span });
                }
            }
        }
        Command::Compound(_) | Command::Test { .. } => {}
    });
    started.retain(|program| !known.contains(&program.name) && !is_builtin(&program.name));
    // Where the script reads other scripts or sets the PATH, a name may mean anything.
    started.retain(|program| !is_open || program.name.contains('/'));
    started
}

// `command -v X`, `which X`, `type X`, `hash X`: a script that asks copes with the absence; `alias X=…` defines.
fn looked_up(simple: &Simple) -> Vec<String> {
    let texts = simple.texts();
    match texts.as_slice() {
        ["command", "-v" | "-V", names @ ..] | ["which" | "type" | "hash", names @ ..] => {
            names.iter().filter(|name| !name.starts_with('-')).map(|name| (*name).to_owned()).collect()
        }
        ["alias", names @ ..] => {
            names.iter().filter_map(|name| Some(name.split_once('=')?.0.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

fn brings_names(simple: &Simple) -> bool {
    let sets_path = |word: &Word| word.raw.starts_with("PATH=") || word.raw.starts_with("PATH+=");
    match simple.name() {
        Some("source" | ".") => true,
        Some("eval") => simple.inline.is_empty(),
        Some("export" | "declare") => simple.words.iter().any(sets_path),
        None => simple.words.is_empty() && simple.assignments.iter().any(sets_path),
        Some(_) => false,
    }
}

/// Returns which words of a command are scripts themselves: `bash -c '…'`, `eval '…'`, `trap '…' EXIT`.
pub(super) fn inline_at(words: &[Word]) -> Vec<usize> {
    match words.first().and_then(|word| word.literal.as_deref()) {
        Some("eval") if words.len() == 2 => return vec![1],
        Some("trap") if words.len() > 2 && words[1].raw != "-" && !words[1].raw.starts_with("--") => {
            return vec![1];
        }
        _ => {}
    }
    let mut found = Vec::new();
    for inner in wrapped_commands(words) {
        let name = inner.first().and_then(|word| word.literal.as_deref()).unwrap_or("");
        if !is_shell(name) {
            continue;
        }
        let is_command =
            |word: &Word| word.raw.starts_with('-') && !word.raw.starts_with("--") && word.raw.ends_with('c');
        let options = inner.iter().skip(1).take_while(|word| word.raw.starts_with('-'));
        let Some(option) = options.clone().position(is_command) else { continue };
        // The slices are parts of one list, so a place is told by its span.
        if let Some(script) = inner.get(option + 2) {
            found.extend(words.iter().position(|word| std::ptr::eq(word, script)));
        }
    }
    found
}

/// Says whether a command is a shell that runs what it is fed: no script stands among its words.
pub(super) fn runs_input(words: &[Word]) -> bool {
    let Some(inner) = wrapped_commands(words).pop() else { return false };
    // `-c` is followed by a script, and `-o` by a word that is none.
    let mut rest = inner[1..].iter().map(|word| word.raw.as_str());
    is_shell(inner[0].text())
        && rest
            .all(|word| word.starts_with('-') && !word.starts_with("--") && !word.ends_with(['c', 'o', 'n']))
}

fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        "." | ":"
            | "["
            | "[["
            | "alias"
            | "bg"
            | "bind"
            | "break"
            | "builtin"
            | "caller"
            | "cd"
            | "command"
            | "compgen"
            | "complete"
            | "compopt"
            | "continue"
            | "declare"
            | "dirs"
            | "disown"
            | "echo"
            | "enable"
            | "eval"
            | "exec"
            | "exit"
            | "export"
            | "false"
            | "fc"
            | "fg"
            | "getopts"
            | "hash"
            | "help"
            | "history"
            | "jobs"
            | "kill"
            | "let"
            | "local"
            | "logout"
            | "mapfile"
            | "popd"
            | "printf"
            | "pushd"
            | "pwd"
            | "read"
            | "readarray"
            | "readonly"
            | "return"
            | "set"
            | "shift"
            | "shopt"
            | "source"
            | "suspend"
            | "test"
            | "time"
            | "times"
            | "trap"
            | "true"
            | "type"
            | "typeset"
            | "ulimit"
            | "umask"
            | "unalias"
            | "unset"
            | "wait"
    )
}
