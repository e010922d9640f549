//! P101, P102, P109: contracts that bash refuses, that can't be read, or that lack their tools.

use std::cell::LazyCell;
use std::collections::HashMap;

use super::{Context, Lint, Needs};
use crate::analysis::named_files;
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::facts::FileFact;
use crate::syntax::shell::{self, Reading, Script, Trait};
use crate::text::{Span, escape};
use crate::tree::ContractTree;

pub(super) const LINT: Lint =
    Lint { codes: &[Code::P101, Code::P102, Code::P109], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let named = LazyCell::new(|| first_steps_naming(context));
    for (at, step) in context.each_step() {
        let (Some(contract), Some(reading)) = (&step.contract, context.scripts.reading(at)) else { continue };
        let mut of_step = Vec::new();
        syntax(context, contract, reading, &mut of_step);
        if let Reading::Read(script) = reading {
            tools(context, contract, script, &mut of_step);
            let is_named = |path: &str| named.get(path).is_some_and(|first| *first <= at);
            scripts(context, is_named, contract, script, &mut of_step);
            handed_scripts(context, (at, is_named), contract, script, &mut of_step);
        }
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
}

// Our reader goes first; where it refuses, bash decides; where only bash accepts, we say that we could not look.
fn syntax(context: &Context<'_>, contract: &ContractTree, reading: &Reading, found: &mut Vec<Diagnostic>) {
    let bash = context.facts.syntax.get(&contract.command);
    if let Some(Some(said)) = bash
        && !is_patterns_only(reading)
    {
        return found.push(refused_by_bash(context, contract, reading, said));
    }
    let accepted = matches!(bash, Some(None));
    match reading {
        Reading::Read(_) => {}
        Reading::Refused { is_uncertain, .. } if accepted || *is_uncertain => {
            let message = "the contract could not be checked: bash accepts what planctl can't read";
            found.push(unchecked(
                contract,
                if accepted { message } else { "the contract could not be checked" },
            ));
        }
        Reading::TooDeep => found.push(unchecked(
            contract,
            "the contract could not be checked: it nests too deeply or is too long",
        )),
        Reading::Refused { why, offset, .. } => {
            let span = contract.in_plan(word_at(&contract.command, *offset));
            let invalid =
                Diagnostic::new(Code::P101, "the contract is not valid shell").at(span, why.clone());
            found.push(invalid.help(syntax_help(&contract.command, *offset)));
        }
    }
}

// `bash -n` does not run `shopt -s extglob`, and refuses the patterns that are fine after it.
fn is_patterns_only(reading: &Reading) -> bool {
    let Reading::Read(script) = reading else { return false };
    let mut sets = false;
    shell::each_simple(script, &mut |simple| sets |= simple.texts() == ["shopt", "-s", "extglob"]);
    sets && script.items.len() > 1
}

fn unchecked(contract: &ContractTree, message: &str) -> Diagnostic {
    let unchecked = Diagnostic::new(Code::P109, message).at(contract.fence, "this contract");
    unchecked.note("its commands, files and exit codes were not looked at")
}

fn refused_by_bash(
    context: &Context<'_>,
    contract: &ContractTree,
    reading: &Reading,
    said: &str,
) -> Diagnostic {
    let (line, message) = bash_message(said);
    let span = match (reading, line) {
        (Reading::Refused { offset, .. }, _) => contract.in_plan(word_at(&contract.command, *offset)),
        (_, Some(line)) => contract.line_in_plan(line, context.source),
        (_, None) => contract.span,
    };
    let label = match reading {
        Reading::Refused { why, .. } => why.clone(),
        Reading::Read(_) | Reading::TooDeep => "bash stops here".to_owned(),
    };
    let help = match reading {
        Reading::Refused { offset, .. } => syntax_help(&contract.command, *offset),
        Reading::Read(_) | Reading::TooDeep => syntax_help(&contract.command, 0),
    };
    // A word that bash does not expect is the place, wherever our reader gave up.
    let unexpected = line.and_then(|line| unexpected_word(&contract.command, line, &message));
    let (span, label, help) = match unexpected {
        Some(word) => (
            contract.in_plan(word),
            "bash does not expect this here".to_owned(),
            "delete it, or write what it belongs to before it: `if` before `fi`, `do` before `done`, `{` before `}`",
        ),
        None => (span, label, help),
    };
    let plan_line =
        line.map(|line| context.source.position(contract.line_in_plan(line, context.source).start).line);
    let where_found = plan_line.map_or(String::new(), |line| format!("line {line}: "));
    Diagnostic::new(Code::P101, "the contract is not valid shell")
        .at(span, label)
        .note(format!("bash -n: {where_found}{}", escape(&message)))
        .help(help)
}

fn syntax_help(command: &str, offset: usize) -> &'static str {
    if offset < command.trim_end().len() {
        return "finish or remove the command at this place";
    }
    "write what is missing at the end: a command after `&&`, the other quote or bracket, `fi` after `if`, `done` after `do`"
}

// `bash: -c: line 2: syntax error near …`: its line counts within the contract.
fn bash_message(said: &str) -> (Option<usize>, String) {
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let Some((_, rest)) = first.split_once("line ") else { return (None, first.trim().to_owned()) };
    let Some((number, message)) = rest.split_once(':') else { return (None, first.trim().to_owned()) };
    (number.trim().parse().ok(), message.trim().to_owned())
}

// "syntax error near unexpected token `fi'"
fn unexpected_word(script: &str, line: usize, message: &str) -> Option<Span> {
    const BEFORE: &str = "unexpected token `";
    let rest = &message[message.find(BEFORE)? + BEFORE.len()..];
    let word = &rest[..rest.rfind('\'')?];
    let is_keyword = matches!(word, "fi" | "else" | "elif" | "then" | "done" | "do" | "esac" | "}" | ")");
    let start: usize = script.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let text = script.get(start..)?.lines().next()?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = text
        .match_indices(word)
        .filter(|(at, _)| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part));
    let at = start + places.next().filter(|_| is_keyword)?.0;
    Some(Span::new(at, at + word.len()))
}

// The word at an offset; at the end of the script, its last word.
fn word_at(script: &str, offset: usize) -> Span {
    let mut start = offset.min(script.len());
    while !script.is_char_boundary(start) {
        start -= 1;
    }
    if script[start..].trim().is_empty() {
        let end = script.trim_end().len();
        let begin = script[..end].split(char::is_whitespace).next_back().map_or(0, |word| end - word.len());
        return Span::new(begin, end);
    }
    let word = script[start..].find(char::is_whitespace).unwrap_or(script.len() - start);
    let one = script[start..].chars().next().map_or(0, char::len_utf8);
    Span::new(start, start + word.max(one))
}

fn tools(context: &Context<'_>, contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let mut reported: Vec<String> = Vec::new();
    for started in shell::commands(script) {
        let is_missing = context.facts.commands.get(&started.name) == Some(&false);
        // A blank that is none makes one name of two words; P004 says so.
        let is_misread = started.name.chars().any(|c| c.is_whitespace() && !c.is_ascii());
        if !is_missing || is_misread || reported.contains(&started.name) {
            continue;
        }
        let name = escape(&started.name);
        let missing = Diagnostic::new(Code::P102, format!("`{name}` is not on the PATH"));
        let mut missing = missing.at(contract.in_plan(started.span), "no such program");
        missing = missing
            .note(format!("contracts run with this PATH, not with your shell's: {}", context.facts.path));
        let known =
            context.facts.commands.iter().filter(|(_, is_there)| **is_there).map(|(name, _)| name.as_str());
        // A slip of the finger rarely hits the first letter: `pytest` is not `test`.
        let is_like = |name: &&str| name.as_bytes().first() == started.name.as_bytes().first();
        let near = did_you_mean(
            &started.name,
            known.chain(["test", "grep", "echo", "true", "false"]).filter(is_like),
        );
        let install =
            || format!("install `{name}`, or add its directory to `[contracts] path` in planctl.toml");
        found.push(missing.help(near.map_or_else(install, |near| format!("did you mean `{near}`?"))));
        reported.push(started.name);
    }
}

/// Returns the place of the first step that names each file.
fn first_steps_naming<'a>(context: &Context<'a>) -> HashMap<&'a str, usize> {
    let mut named = HashMap::new();
    for (at, step) in context.each_step() {
        for path in named_files(context.order, at, step) {
            named.entry(path).or_insert(at);
        }
    }
    named
}

// A script of the workspace may be made by a step up to this one; then its task names it.
fn scripts(
    context: &Context<'_>,
    is_named: impl Fn(&str) -> bool,
    contract: &ContractTree,
    script: &Script,
    found: &mut Vec<Diagnostic>,
) {
    let mut is_built = false;
    for started in shell::commands(script) {
        // A program that is built first is not there yet: `cargo build && ./target/debug/app`.
        is_built |= shell::brings(&started.name, Trait::Builds);
        if is_built || !started.name.contains('/') {
            continue;
        }
        let path = started.name.trim_start_matches("./");
        if context.facts.files.get(path) == Some(&FileFact::Missing) && !is_named(path) {
            found.push(absent(&started.name, contract.in_plan(started.span)));
        }
    }
}

// A script that a worker makes unasked is a change of what decides the contract, so its gate would say `tampered`.
fn handed_scripts(
    context: &Context<'_>,
    (at, is_named): (usize, impl Fn(&str) -> bool),
    contract: &ContractTree,
    script: &Script,
    found: &mut Vec<Diagnostic>,
) {
    let Some(deciding) = context.scripts.deciding(at) else { return };
    shell::each_simple(script, &mut |simple| {
        let Some((path, span)) = shell::handed_script(simple) else { return };
        let is_allowed = context.steps[at].changed_globs().any(|glob| glob.matches(&path));
        let is_made = is_named(&path) || is_allowed || context.order.is_made_before(&path, at);
        // That a later step makes it is a finding of its own.
        let is_made = is_made || context.order.made_after(&path, at).is_some();
        let is_missing = context.facts.files.get(&path) == Some(&FileFact::Missing);
        if is_missing && !is_made && deciding.fixed.contains(&path) {
            found.push(absent(&path, contract.in_plan(span)));
        }
    });
}

fn absent(name: &str, span: Span) -> Diagnostic {
    let absent = Diagnostic::new(Code::P102, format!("`{}` is not there", escape(name)));
    let absent = absent.level(Severity::Warning).at(span, "no such file");
    absent.help("mend the path, or let the task that makes it name it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_a_place_keeps_characters_whole() {
        for script in ["a\u{a0}é", "é \u{2003}", "\u{2028}", "", "é"] {
            for offset in 0..=script.len() + 1 {
                let span = word_at(script, offset);
                assert!(script.get(span.start..span.end).is_some(), "{script:?} {offset} {span:?}");
            }
        }
    }
}
