//! Finds the files that a contract or a task names.

use super::walk::{each, inline_scripts};
use super::{Command, Redirect, Script, Simple, Word};
use crate::source::Span;

/// What a script does with a file that it names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// It looks into it, or runs it.
    Reads,
    /// It asks whether it is there: what a step makes.
    Tests,
    /// It asks whether it is not there: what a step takes away.
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
    /// What the script does with it.
    pub how: Use,
    /// Says that its place tells it is a file; else only its look does.
    pub is_certain: bool,
}

/// Returns the files that a script names, in order; relative ones and absolute ones.
pub fn files(script: &Script) -> Vec<FileUse> {
    let mut found = Vec::new();
    each(script, &mut |command| match command {
        Command::Simple(simple) => of_simple(simple, &mut found),
        Command::Test { files, words } => {
            files.iter().for_each(|word| add(word, Use::Tests, true, &mut found));
            words.iter().for_each(|word| add(word, Use::Reads, false, &mut found));
        }
        Command::Compound(compound) => {
            compound
                .redirects
                .iter()
                .for_each(|redirect| add(&redirect.target, of_redirect(redirect), true, &mut found));
            compound.words.iter().for_each(|word| add(word, Use::Reads, false, &mut found));
        }
        Command::Function { .. } => {}
    });
    found
}

fn of_simple(simple: &Simple, found: &mut Vec<FileUse>) {
    for redirect in &simple.redirects {
        add(&redirect.target, of_redirect(redirect), true, found);
    }
    for script in inline_scripts(simple) {
        found.extend(files(&script).into_iter().map(|file| FileUse { span: simple.span, ..file }));
    }
    let Some(name) = simple.words.first().and_then(|word| word.literal.as_deref()) else { return };
    if name.contains('/') {
        add(&simple.words[0], Use::Reads, true, found);
    }
    let arguments = &simple.words[1..];
    match name {
        "test" | "[" => of_test(arguments, found),
        "echo" | "printf" | "export" | "cd" | "set" => {}
        "grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk" | "jq" => {
            let mut is_pattern_due = !arguments.iter().any(|word| matches!(word.raw.as_str(), "-e" | "-f"));
            let how = if name == "sed" && has_flag(arguments, "-i") { Use::Writes } else { Use::Reads };
            for word in arguments {
                if word.raw.starts_with('-') {
                    continue;
                }
                if !std::mem::take(&mut is_pattern_due) {
                    add(word, how, true, found);
                }
            }
        }
        "bash" | "sh" | "source" | "." | "python" | "python3" | "node" | "ruby" | "perl" => {
            let inline = arguments.iter().any(|word| matches!(word.raw.as_str(), "-c" | "-e" | "-m"));
            let mut is_first = true;
            for word in arguments.iter().filter(|word| !word.raw.starts_with('-')) {
                add(word, Use::Reads, std::mem::take(&mut is_first) && !inline, found);
            }
        }
        "ls" | "stat" => {
            for word in arguments.iter().filter(|word| !word.raw.starts_with('-')) {
                add(word, Use::Tests, true, found);
            }
        }
        "cat" | "head" | "tail" | "wc" | "diff" | "cmp" | "sort" | "sha256sum" => {
            for word in arguments.iter().filter(|word| !word.raw.starts_with('-')) {
                let is_count = word.raw.bytes().all(|byte| byte.is_ascii_digit());
                add(word, Use::Reads, !is_count, found);
            }
        }
        "touch" | "tee" | "rm" | "mkdir" | "rmdir" | "truncate" | "chmod" | "chown" | "ln" | "install" => {
            for word in arguments.iter().filter(|word| !word.raw.starts_with('-')) {
                add(word, Use::Writes, true, found);
            }
        }
        "cp" | "mv" => {
            let words: Vec<_> = arguments.iter().filter(|word| !word.raw.starts_with('-')).collect();
            for (at, word) in words.iter().enumerate() {
                let is_target = name == "mv" || at + 1 == words.len();
                add(word, if is_target { Use::Writes } else { Use::Reads }, true, found);
            }
        }
        _ => arguments.iter().for_each(|word| add(word, Use::Reads, false, found)),
    }
}

fn has_flag(words: &[Word], flag: &str) -> bool {
    words.iter().any(|word| word.raw.starts_with(flag))
}

fn of_test(words: &[Word], found: &mut Vec<FileUse>) {
    let mut is_file_due = false;
    let mut how = Use::Tests;
    for word in words {
        if word.raw == "!" {
            how = Use::TestsAbsence;
            continue;
        }
        let is_operator = matches!(
            word.raw.as_str(),
            "-a" | "-b"
                | "-c"
                | "-d"
                | "-e"
                | "-f"
                | "-g"
                | "-h"
                | "-k"
                | "-p"
                | "-r"
                | "-s"
                | "-u"
                | "-w"
                | "-x"
                | "-L"
                | "-S"
                | "-O"
                | "-G"
                | "-N"
        );
        if is_operator {
            is_file_due = true;
            continue;
        }
        if std::mem::take(&mut is_file_due) {
            add(word, how, true, found);
            how = Use::Tests;
        }
    }
}

fn of_redirect(redirect: &Redirect) -> Use {
    if redirect.writes { Use::Writes } else { Use::Reads }
}

fn add(word: &Word, how: Use, is_certain: bool, found: &mut Vec<FileUse>) {
    let Some(text) = word.literal.as_deref() else { return };
    // `--config=path` and pytest's `path::test` name a path too.
    let is_option = text.starts_with('-');
    let text = if is_option { text.split_once('=').map_or("", |(_, value)| value) } else { text };
    let text = text.split_once("::").map_or(text, |(path, _)| path);
    let is_certain = is_certain && !is_option && !text.is_empty();
    if !is_certain && !looks_like_path(text) {
        return;
    }
    let path = normal(text);
    if !path.is_empty() && path != "." && !path.contains('\n') {
        found.push(FileUse { path, span: word.span, how, is_certain });
    }
}

fn normal(path: &str) -> String {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path.to_owned()
}

/// Says whether a word looks like a relative path: it has a slash or an extension, and nothing that paths rarely have.
pub fn looks_like_path(text: &str) -> bool {
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

/// Returns the paths that a text for people names, with their places in it.
pub fn paths_in_text(text: &str) -> Vec<(String, Span)> {
    let is_edge = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+'));
    let mut found = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive(is_edge) {
        let word = part.trim_end_matches(is_edge);
        let body = word.trim_end_matches(['.', ',']);
        if looks_like_path(body) && !matches!(body, "e.g" | "i.e") {
            let path = normal(body).trim_end_matches('/').to_owned();
            found.push((path, Span::new(at, at + body.len())));
        }
        at += part.len();
    }
    // In backticks even a name without slash or extension is a path (`Makefile`).
    let mut offset = 0;
    for (index, part) in text.split('`').enumerate() {
        let is_name = part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let starts = part.starts_with(char::is_uppercase) || part.starts_with('.');
        if index % 2 == 1 && is_name && starts && !looks_like_path(part) {
            found.push((part.to_owned(), Span::new(offset, offset + part.len())));
        }
        offset += part.len() + 1;
    }
    found
}
