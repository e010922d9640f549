//! Walks a script: every simple command in it, wherever it is nested, and the programs they start.

use std::collections::BTreeSet;

use super::{Command, Compound, Item, Reading, Script, Simple, Word, read};
use crate::source::Span;

/// Calls a function with every simple command of a script, substitutions and functions included.
pub fn each_simple<'a>(script: &'a Script, visit: &mut dyn FnMut(&'a Simple)) {
    each(script, &mut |command| {
        if let Command::Simple(simple) = command {
            visit(simple);
        }
    });
}

/// Calls a function with every command of a script, in order.
pub(crate) fn each<'a>(script: &'a Script, visit: &mut dyn FnMut(&'a Command)) {
    for item in &script.items {
        each_of_item(item, visit);
    }
}

fn each_of_item<'a>(item: &'a Item, visit: &mut dyn FnMut(&'a Command)) {
    let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
    for command in pipelines.flat_map(|pipeline| &pipeline.commands) {
        visit(command);
        match command {
            Command::Simple(simple) => {
                let redirected = simple.redirects.iter().map(|redirect| &redirect.target);
                each_of_words(simple.assignments.iter().chain(&simple.words).chain(redirected), visit);
            }
            Command::Compound(compound) => each_of_compound(compound, visit),
            Command::Function { body, .. } => each(body, visit),
            Command::Test { files, words } => each_of_words(files.iter().chain(words), visit),
        }
    }
}

fn each_of_compound<'a>(compound: &'a Compound, visit: &mut dyn FnMut(&'a Command)) {
    each_of_words(
        compound.words.iter().chain(compound.redirects.iter().map(|redirect| &redirect.target)),
        visit,
    );
    for script in compound.conditions.iter().chain(&compound.bodies) {
        each(script, visit);
    }
}

fn each_of_words<'a>(words: impl Iterator<Item = &'a Word>, visit: &mut dyn FnMut(&'a Command)) {
    for script in words.flat_map(|word| &word.nested) {
        each(script, visit);
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

/// Returns the programs that a script starts by name: no builtins, no functions of its own, and, behind wrappers like
/// `timeout`, the program they start.
pub fn commands(script: &Script) -> Vec<Started> {
    let mut functions = BTreeSet::new();
    each(script, &mut |command| {
        if let Command::Function { name, .. } = command {
            functions.insert(name.clone());
        }
    });
    let mut started = Vec::new();
    let mut guarded = BTreeSet::new();
    each_simple(script, &mut |simple| {
        guarded.extend(looked_up(simple));
        started_by(&simple.words, &mut started);
        for nested in inline_scripts(simple) {
            started.extend(commands(&nested).into_iter().map(|inner| Started { span: simple.span, ..inner }));
        }
    });
    started.retain(|program| !functions.contains(&program.name) && !is_builtin(&program.name));
    // A script that asks whether a program is there copes with its absence.
    started.retain(|program| !guarded.contains(&program.name));
    started
}

fn started_by(words: &[Word], started: &mut Vec<Started>) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(name) = word.literal.as_deref().filter(|name| !name.is_empty()) else { return };
        started.push(Started { name: name.to_owned(), span: word.span });
        let takes_value: &[&str] = match name {
            "command"
                if words.clone().next().is_some_and(|next| matches!(next.raw.as_str(), "-v" | "-V")) =>
            {
                return;
            }
            "exec" | "command" | "builtin" | "time" | "nohup" | "setsid" | "then" => &[],
            "env" => &["-u", "-C"],
            "nice" => &["-n"],
            "timeout" => &["-s", "-k", "--signal", "--kill-after"],
            "sudo" => &["-u", "-g"],
            "xargs" => &["-I", "-n", "-P", "-L", "-d", "-a", "-s"],
            "stdbuf" => &["-i", "-o", "-e"],
            _ => return,
        };
        let mut rest = words.clone().peekable();
        let mut is_duration_due = name == "timeout";
        while let Some(next) = rest.peek() {
            let text = next.raw.as_str();
            let is_option = text.starts_with('-') && text.len() > 1;
            let is_assignment = name == "env" && text.contains('=');
            if is_option {
                let takes = takes_value.contains(&text);
                rest.next();
                if takes {
                    rest.next();
                }
            } else if is_assignment || std::mem::take(&mut is_duration_due) {
                rest.next();
            } else {
                break;
            }
        }
        let left = rest.count();
        let skip = words.len() - left;
        if skip > 0 {
            words.nth(skip - 1);
        }
    }
}

// `command -v X`, `which X`, `type X`, `hash X`.
fn looked_up(simple: &Simple) -> Vec<String> {
    let name = simple.words.first().and_then(|word| word.literal.as_deref()).unwrap_or("");
    if !matches!(name, "command" | "which" | "type" | "hash") {
        return Vec::new();
    }
    let asks =
        name != "command" || simple.words.get(1).is_some_and(|word| word.raw == "-v" || word.raw == "-V");
    let words = simple.words.iter().skip(1).filter_map(|word| word.literal.clone());
    words.filter(|word| asks && !word.starts_with('-')).collect()
}

/// Returns the scripts that a command is given as text: `bash -c '…'`, `eval '…'`.
pub(crate) fn inline_scripts(simple: &Simple) -> Vec<Script> {
    let name = simple.words.first().and_then(|word| word.literal.as_deref()).unwrap_or("");
    let text = match name {
        "bash" | "sh" => {
            let at = simple.words.iter().position(|word| {
                word.raw.starts_with('-') && !word.raw.starts_with("--") && word.raw.ends_with('c')
            });
            at.and_then(|at| simple.words.get(at + 1))
        }
        "eval" if simple.words.len() == 2 => simple.words.get(1),
        _ => None,
    };
    let text = text.and_then(|word| word.literal.as_deref());
    match text.map(read) {
        Some(Reading::Read(script)) => vec![script],
        Some(Reading::Refused { .. } | Reading::TooDeep) | None => Vec::new(),
    }
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
