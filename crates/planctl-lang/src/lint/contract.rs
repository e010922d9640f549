//! P1xx: contracts that bash refuses, that lack their tools, that can't fail, or that wait for a person.

use super::Lint;
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::facts::{FileFact, leaves_workspace, named_files};
use crate::parse::name_of;
use crate::shell::{self, Reading, Script, Simple, Status};
use crate::source::{Span, escape};
use crate::tree::ContractTree;

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in lint.tree.steps.iter().enumerate() {
        let (Some(contract), Some(reading)) = (&step.contract, lint.scripts.reading(at)) else { continue };
        let mut of_step = Vec::new();
        syntax(lint, contract, reading, &mut of_step);
        if let Reading::Read(script) = reading {
            tools(lint, contract, script, &mut of_step);
            scripts(lint, at, contract, script, &mut of_step);
            outcome(contract, script, &mut of_step);
            masked(contract, script, &mut of_step);
            shell::each_simple(script, &mut |simple| interactive(contract, simple, &mut of_step));
            writes(contract, script, &mut of_step);
        }
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(name_of(step))));
    }
}

// Our reader goes first; where it refuses, bash decides; where only bash accepts, we say that we could not look.
fn syntax(lint: &Lint<'_>, contract: &ContractTree, reading: &Reading, found: &mut Vec<Diagnostic>) {
    let bash = lint.facts.syntax.get(&contract.command);
    if let Some(Some(said)) = bash {
        return found.push(refused_by_bash(lint, contract, reading, said));
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

fn unchecked(contract: &ContractTree, message: &str) -> Diagnostic {
    let unchecked = Diagnostic::new(Code::P109, message).at(contract.fence, "this contract");
    unchecked.note("its commands, files and exit codes were not looked at")
}

fn refused_by_bash(lint: &Lint<'_>, contract: &ContractTree, reading: &Reading, said: &str) -> Diagnostic {
    let (line, message) = bash_message(said);
    let span = match (reading, line) {
        (Reading::Refused { offset, .. }, _) => contract.in_plan(word_at(&contract.command, *offset)),
        (_, Some(line)) => contract.line_in_plan(line, lint.source),
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
    let plan_line =
        line.map(|line| lint.source.position(contract.line_in_plan(line, lint.source).start).line);
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

fn tools(lint: &Lint<'_>, contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let mut reported: Vec<String> = Vec::new();
    for started in shell::commands(script) {
        let is_missing = lint.facts.commands.get(&started.name) == Some(&false);
        // A blank that is none makes one name of two words; P004 says so.
        let is_misread = started.name.chars().any(|c| c.is_whitespace() && !c.is_ascii());
        if !is_missing || is_misread || reported.contains(&started.name) {
            continue;
        }
        let name = escape(&started.name);
        let missing = Diagnostic::new(Code::P102, format!("`{name}` is not on the PATH"));
        let mut missing = missing.at(contract.in_plan(started.span), "no such program");
        missing = missing.note(format!("contracts run with PATH={}", lint.facts.path));
        let known =
            lint.facts.commands.iter().filter(|(_, is_there)| **is_there).map(|(name, _)| name.as_str());
        let near = did_you_mean(&started.name, known.chain(["test", "grep", "echo", "true", "false"]));
        let help = near.map_or(format!("install `{name}`, or write another command"), |near| {
            format!("did you mean `{near}`?")
        });
        found.push(missing.help(help));
        reported.push(started.name);
    }
}

// A script of the workspace may be made by a step up to this one; then its task names it.
fn scripts(
    lint: &Lint<'_>,
    at: usize,
    contract: &ContractTree,
    script: &Script,
    found: &mut Vec<Diagnostic>,
) {
    for started in shell::commands(script).into_iter().filter(|started| started.name.contains('/')) {
        let path = started.name.trim_start_matches("./");
        let is_named = || lint.tree.steps[..=at].iter().any(|step| named_files(step).contains(path));
        if lint.facts.files.get(path) == Some(&FileFact::Missing) && !is_named() {
            let absent = Diagnostic::new(Code::P102, format!("`{}` is not there", escape(&started.name)));
            let absent = absent.level(Severity::Warning).at(contract.in_plan(started.span), "no such file");
            found.push(absent.help("mend the path, or let the task that makes it name it"));
        }
    }
}

fn outcome(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let expected = contract.exit_code.as_ref().map_or(0, |code| code.value);
    let Status::Fixed(code) = shell::status(script) else { return };
    let last = script.items.last().map_or(Span::at(0), |item| item.span);
    let span = if last.end > last.start { contract.in_plan(last) } else { contract.span };
    if code == expected {
        let vacuous = Diagnostic::new(Code::P104, "the contract can't fail");
        let vacuous = vacuous.at(span, format!("the exit code is {code} whatever happens before"));
        found.push(
            vacuous.help("end with a command that fails when the step is not done, such as `test -f PATH`"),
        );
    } else {
        let never = Diagnostic::new(
            Code::P113,
            format!("the contract can't pass: its exit code is {code}, and {expected} is expected"),
        );
        found.push(never.at(span, format!("always ends with {code}")).help(
            "delete the part that always ends so, or write the exit code that is meant after `exit_code ==`",
        ));
    }
}

fn masked(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    for masked in shell::masked(script) {
        let (message, label, help) = if masked.in_pipe {
            (
                "a failure is lost in a pipe",
                "only the last command of a pipe counts",
                "begin the contract with `set -o pipefail`, or leave the pipe out",
            )
        } else {
            (
                "a failure before the last command does not count",
                "its exit code is not looked at",
                "join the commands with `&&`, or begin with `set -e`",
            )
        };
        found.push(Diagnostic::new(Code::P110, message).at(contract.in_plan(masked.span), label).help(help));
    }
}

fn interactive(contract: &ContractTree, simple: &Simple, found: &mut Vec<Diagnostic>) {
    let words: Vec<&str> =
        simple.words.iter().map(|word| word.literal.as_deref().unwrap_or(&word.raw)).collect();
    let is_fed = simple.redirects.iter().any(|redirect| redirect.feeds_input);
    let has = |flag: &str| words.contains(&flag);
    let waits = match words.as_slice() {
        [
            "vim" | "vi" | "nvim" | "nano" | "emacs" | "less" | "more" | "top" | "htop" | "man" | "watch",
            ..,
        ] => true,
        ["passwd" | "su" | "ftp" | "telnet", ..] => true,
        ["python" | "python3" | "node" | "psql" | "mysql" | "irb" | "sqlite3"] => !is_fed,
        ["git", "rebase", ..] => has("-i") || has("--interactive"),
        ["git", "add" | "checkout" | "stash", ..] => has("-p") || has("--patch"),
        ["git", "commit", ..] => !words.iter().any(|word| {
            word.starts_with("-m")
                || word.starts_with("--message")
                || *word == "-F"
                || word.starts_with("-am")
                || *word == "--no-edit"
                || *word == "-C"
        }),
        ["sudo", ..] => !has("-n"),
        ["ssh", ..] => !words.iter().any(|word| word.contains("BatchMode")),
        ["gh", "auth", "login", ..] => true,
        _ => false,
    };
    if waits {
        let command = words.first().copied().unwrap_or("");
        let message = format!("`{}` may wait for a person, and a contract has no input", escape(command));
        let waiting = Diagnostic::new(Code::P111, message).at(contract.in_plan(simple.span), "");
        found.push(waiting.help("use a command that ends by itself: `grep` in place of a pager or an editor, a flag such as `--yes` where it asks"));
    }
}

fn writes(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    for file in
        shell::files(script).into_iter().filter(|file| file.how == shell::Use::Writes && file.is_certain)
    {
        let scratch = ["/dev/", "/tmp/", "/proc/self/"].iter().any(|place| file.path.starts_with(place));
        let Some(why) = leaves_workspace(&file.path).filter(|_| !scratch) else { continue };
        let message = format!("the contract writes to `{}`, which {why}", escape(&file.path));
        let outside =
            Diagnostic::new(Code::P112, message).at(contract.in_plan(file.span), "outside the workspace");
        found.push(
            outside.help(
                "a contract only looks: write to `/dev/null`, or let the task write inside the workspace",
            ),
        );
    }
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
