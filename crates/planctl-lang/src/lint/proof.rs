//! P104, P110, P113: contracts that can't fail or can't pass, and failures that do not count.

use std::cell::LazyCell;

use serde_json::Value as Json;

use super::{Context, Lint, Needs, ReadContract};
use crate::analysis::PACKAGE;
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::FileFact;
use crate::syntax::shell::{
    self, Command, Doubt, FileUse, Item, Join, Lost, Masked, PackageScripts, Reading, Script, Simple, Status,
    Trait,
};
use crate::text::{Span, escape};
use crate::tree::ContractTree;
use crate::tree::workflow::{Kind, NodeTree};

/// The variable that names the folder of reports to a contract.
const REPORTS: &str = "PLANCTL_REPORTS";

pub(super) const LINT: Lint = Lint { codes: &[Code::P104, Code::P113], needs: Needs::Text, check };

pub(super) const MASKED: Lint =
    Lint { codes: &[Code::P110], needs: Needs::Surroundings, check: check_masked };

fn check_masked(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let package = LazyCell::new(|| {
        let text = context.facts.texts.get(PACKAGE);
        text.and_then(|text| serde_json::from_str::<Json>(text).ok()).unwrap_or_default()
    });
    let script_of_package = |name: &str| package["scripts"][name].as_str().map(str::to_owned);
    context.each_script(found, |read, found| lint_masked(context, &read, &script_of_package, found));
}

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    context.each_script(found, |ReadContract { step, contract, script, .. }, found| {
        let before = found.len();
        unclosed(contract, script, found);
        if found.len() == before {
            outcome(contract, script, found);
        }
        if found.len() == before {
            let is_told = |doubt: &&Doubt| match doubt {
                Doubt::ThisPlan { .. } => {
                    contract.expected() == 0 && context.facts.plan_is_inside != Some(false)
                }
                Doubt::AnyLine(_)
                | Doubt::EitherVerdict { .. }
                | Doubt::Unset(..)
                | Doubt::Refused { .. }
                | Doubt::Unasserted(_) => true,
            };
            let doubts = shell::doubtful_checks(script);
            found.extend(doubts.iter().filter(is_told).map(|doubt| doubt_finding(contract, doubt)));
            // A call is run for what it prints.
            if step.kind.value != Kind::Call {
                count(contract, script, found);
            }
        }
        lint_reports(step, contract, found);
    });
}

// Tests are counted by reports alone. A program that the contract runs may know the folder, so this is no certainty.
fn lint_reports(step: &NodeTree, contract: &ContractTree, found: &mut Vec<Diagnostic>) {
    let least = step.attributes.min_tests.spanned();
    let Some(least) = least.filter(|_| !contract.command.contains(REPORTS)) else { return };
    let message = format!(
        "the contract hardly can pass: it writes no report of the {} tests that have to pass",
        least.value
    );
    let without = Diagnostic::new(Code::P113, message)
        .at(least.span, "counted by the reports in `$PLANCTL_REPORTS`")
        .at(contract.span, "names no such report");
    found.push(without.help(
        "have the tests write one: `pytest --junitxml=\"$PLANCTL_REPORTS/tests.xml\"`, `go test -json ./... > \
         \"$PLANCTL_REPORTS/go.json\"`, `cargo test > \"$PLANCTL_REPORTS/cargo.txt\"`",
    ));
}

// `[ -f x`: bash says that the bracket is missing, and the test fails whatever is there.
fn unclosed(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    shell::each_simple(script, &mut |simple| {
        let is_closed = simple.words.last().is_some_and(|last| last.raw == "]");
        if simple.name() != Some("[") || is_closed {
            return;
        }
        let end = simple.words.last().map_or(simple.span.end, |last| last.span.end);
        let unclosed = Diagnostic::new(Code::P113, "`[` has no `]`, so this test fails whatever is there");
        let unclosed = unclosed.at(contract.in_plan(simple.span), "`]` is missing at its end");
        found.push(unclosed.help("write ` ]` behind it").fix(contract.in_plan(Span::at(end)), " ]", false));
    });
}

fn outcome(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let expected = contract.expected();
    let Status::Fixed(code) = shell::status(script) else { return };
    let last = script.items.last().map_or(Span::at(0), |item| item.span);
    let span = if last.end > last.start { contract.in_plan(last) } else { contract.span };
    if code != expected {
        let message = format!("the contract can't pass: its exit code is {code}, and {expected} is expected");
        let never = Diagnostic::new(Code::P113, message).at(span, format!("always ends with {code}"));
        return found.push(never.help(
            "delete the part that always ends so, or write the exit code that is meant after `exit_code ==`",
        ));
    }
    let vacuous = Diagnostic::new(Code::P104, "the contract can't fail");
    let vacuous = vacuous.at(span, format!("the exit code is {code} whatever happens before"));
    let remedy = remedy(contract, script);
    let help = match &remedy {
        Some(dropped) => {
            format!("leave out `{}`", escape(contract.command[dropped.start..dropped.end].trim()))
        }
        None => "end with a command that fails when the step is not done, such as `test -f PATH`".to_owned(),
    };
    let vacuous = vacuous.help(help);
    found.push(match remedy {
        // Another command decides then, so a person should look.
        Some(dropped) => vacuous.fix(contract.in_plan(dropped), "", false),
        None => vacuous,
    });
}

// Returns the part that can be dropped from the end, so that the status of the command before it counts.
fn remedy(contract: &ContractTree, script: &Script) -> Option<Span> {
    let last = script.items.last()?;
    let mut dropped = Vec::new();
    let after = contract.command.get(last.span.end..)?;
    let blanks = after.len() - after.trim_start().len();
    if last.is_background && after[blanks..].starts_with('&') {
        dropped.push(Span::new(last.span.end, last.span.end + blanks + 1));
    }
    if let [.., (Join::Or, _)] = last.rest.as_slice() {
        let kept = last.rest.len().checked_sub(2).and_then(|at| last.rest.get(at));
        let kept = kept.map_or(last.first.span, |(_, pipeline)| pipeline.span);
        dropped.push(Span::new(kept.end, last.span.end));
    }
    if let [.., before, _] = script.items.as_slice() {
        dropped.push(Span::new(before.span.end, last.span.end));
    }
    if let Some([.., before, _]) = is_single(last).then_some(last.first.commands.as_slice()) {
        dropped.push(Span::new(before.span().end, last.span.end));
    }
    dropped.into_iter().find(|span| {
        let (Some(before), Some(after)) =
            (contract.command.get(..span.start), contract.command.get(span.end..))
        else {
            return false;
        };
        match shell::read(&format!("{before}{after}")) {
            Reading::Read(left) => !left.items.is_empty() && shell::status(&left) == Status::Varies,
            Reading::Refused { .. } | Reading::TooDeep => false,
        }
    })
}

fn is_single(item: &Item) -> bool {
    item.rest.is_empty() && item.first.commands.len() > 1
}

fn doubt_finding(contract: &ContractTree, doubt: &Doubt) -> Diagnostic {
    match doubt {
        Doubt::AnyLine(span) => Diagnostic::new(Code::P104, "the contract hardly can fail: its search finds any line")
            .at(contract.in_plan(*span), "every line matches")
            .help("search for a text that is there only when the step is done; for a file with content, `test -s FILE`"),
        Doubt::Unasserted(span) => Diagnostic::new(Code::P104, "the contract hardly can fail: python leaves out each `assert`")
            .at(contract.in_plan(*span), "asks for code without its asserts")
            .help("take it out, or let Python fail by `sys.exit(…)`"),
        Doubt::Unset(span, name) => {
            let name = escape(name);
            let message = format!("the contract hardly can fail: nothing sets `{name}`, so it is empty");
            Diagnostic::new(Code::P104, message)
                .at(contract.in_plan(*span), "set nowhere in the contract")
                .help("mend the name, or keep in it what is to be empty")
        }
        Doubt::ThisPlan { span, is_wanted } => {
            let (code, can) = if *is_wanted { (Code::P104, "fail") } else { (Code::P113, "pass") };
            let message = format!("the contract hardly can {can}: its search finds this plan, which has the text, too");
            Diagnostic::new(code, message)
                .at(contract.in_plan(*span), "the plan has it here")
                .help("name the folders that are meant, or leave the plan out: `--exclude-dir=plans`")
        }
        Doubt::Refused { span, is_wanted } => {
            let (code, can) = if *is_wanted { (Code::P113, "pass") } else { (Code::P104, "fail") };
            let message = format!("the contract hardly can {can}: its pattern is refused, so nothing is found");
            Diagnostic::new(code, message)
                .at(contract.in_plan(*span), "a bracket of it has no end")
                .help("write `\\(` or `\\[` for the character itself, or search for a text: `grep -F`")
        }
        Doubt::EitherVerdict { span, good, bad } => {
            let message = "the contract hardly can fail: its search finds one verdict as well as the other";
            let label = format!("finds `{}` and `{}`", escape(good), escape(bad));
            let doubted = Diagnostic::new(Code::P104, message).at(contract.in_plan(*span), label);
            doubted.help(format!("search for the verdict that lets the plan go on: `{}`", escape(good)))
        }
    }
}

// A number that is only printed proves nothing.
fn count(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let Some(item) = script.items.last() else { return };
    if let [only] = script.items.as_slice()
        && let ([], [Command::Simple(simple)]) = (only.rest.as_slice(), only.first.commands.as_slice())
        && let Some((what, help)) = command_that_only_tells(simple)
    {
        let message = format!("the contract hardly can fail: `{what}` succeeds whatever it finds");
        let finding = Diagnostic::new(Code::P104, message);
        return found.push(finding.at(contract.in_plan(simple.span), "succeeds with any answer").help(help));
    }
    let last = item.rest.last().map_or(&item.first, |(_, pipeline)| pipeline);
    let [Command::Simple(simple)] = last.commands.as_slice() else { return };
    let is_count = shell::calls(simple).last().is_some_and(|call| call.is_of("wc"));
    if is_count && simple.redirects.iter().all(|redirect| redirect.feeds_input) {
        let printed =
            Diagnostic::new(Code::P104, "the contract hardly can fail: its count is printed, not compared");
        let printed = printed.at(contract.in_plan(simple.span), "succeeds with any count");
        found.push(printed.help("compare it: `test \"$(wc -l < FILE)\" -ge 10`"));
    }
}

// Programs that say what they find, and end with 0 all the same.
fn command_that_only_tells(simple: &Simple) -> Option<(&'static str, &'static str)> {
    let call = shell::calls(simple).last()?;
    let only_prints = |code: &str, print: &str, fails: &[&str]| {
        let last = code.trim().rsplit([';', '\n']).find(|part| !part.trim().is_empty())?;
        let is_print = last.trim_start().starts_with(print);
        let compares = ["==", "!=", " < ", " > ", "<=", ">="].iter().any(|sign| last.contains(sign));
        let is_alone = last.len() == code.trim().len();
        (is_print && (is_alone || compares) && !fails.iter().any(|word| code.contains(word))).then_some(())
    };
    match call.words() {
        [_, "-c", code, ..] if call.is_of("python") || call.is_of("python3") => {
            let help = "let Python fail where it does not hold: `assert …`";
            return only_prints(code, "print(", &["assert", "exit", "raise"]).map(|()| ("print", help));
        }
        [_, "-e", code, ..] if call.is_of("node") => {
            let help = "let Node fail where it does not hold: `require(\"assert\")(…)`";
            let fails = ["assert", "exit", "throw"];
            return only_prints(code, "console.log(", &fails).map(|()| ("console.log", help));
        }
        _ => {}
    }
    call.traits().find_map(|what| if let Trait::Tells(name, help) = what { Some((name, help)) } else { None })
}

fn lint_masked(
    context: &Context<'_>,
    read: &ReadContract<'_>,
    package: PackageScripts<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let ReadContract { at, contract, script, .. } = *read;
    let expected = contract.expected();
    // The `package.json` of another folder counts there.
    let package = |name: &str| if shell::goes_elsewhere(script) { None } else { package(name) };
    // Tests that a report counts are missed there.
    let is_counted = contract.command.contains(REPORTS);
    for masked in shell::masked(script, expected, &package) {
        if is_counted && masked.how == Lost::Unselected || prints_something(context, at, &masked) {
            continue;
        }
        let (message, label, help) = words_of(&masked.how);
        let label = if let Lost::Unread(name) = &masked.how {
            format!("nothing reads `{}`", escape(name))
        } else {
            label.to_owned()
        };
        found.push(Diagnostic::new(Code::P110, message).at(contract.in_plan(masked.span), label).help(help));
    }
}

// Of two outputs that are compared, one is not empty where its file is there today; and a file for which the contract asks elsewhere
// is missed there.
fn prints_something(context: &Context<'_>, at: usize, masked: &Masked) -> bool {
    let Lost::Alike(only_read) = &masked.how else { return false };
    let files = context.scripts.files(at);
    let is_asked =
        |path: &str| files.iter().any(|other| other.path == path && !masked.span.contains(other.span));
    let is_there = |file: &FileUse| match context.facts.files.get(file.path.trim_end_matches('/')) {
        Some(FileFact::Regular { size }) => *size > 0,
        Some(FileFact::Directory) => true,
        Some(
            FileFact::Missing
            | FileFact::Outside { .. }
            | FileFact::Unreadable { .. }
            | FileFact::Special { .. },
        )
        | None => is_asked(&file.path),
    };
    only_read.iter().any(|place| files.iter().filter(|file| place.contains(file.span)).any(is_there))
}

// Returns the message, the label and the help of a finding.
fn words_of(how: &Lost) -> (&'static str, &'static str, &'static str) {
    match how {
        Lost::Piped => (
            "a failure is lost in a pipe",
            "only the last command of a pipe counts",
            "begin the contract with `set -o pipefail`, or leave the pipe out",
        ),
        Lost::Unfound => (
            "where the first command fails, nothing is found, and the contract passes",
            "its exit code is not looked at",
            "run it first, and search what it printed: `make > \"$TMPDIR/log\" 2>&1 && ! grep -q warning \"$TMPDIR/log\"`",
        ),
        Lost::Dropped => (
            "a failure before the last command does not count",
            "its exit code is not looked at",
            "join the commands with `&&`, or begin with `set -e`",
        ),
        Lost::Round => (
            "a failure in any round of the loop but the last does not count",
            "its exit code is not looked at",
            "end the contract at the first failure: `… || exit 1`",
        ),
        Lost::Found => (
            "`find` succeeds whatever the command behind `-exec` ends with",
            "its exit code is not looked at",
            "end it with `+` in place of `\\;`, or hand the names to `xargs`",
        ),
        Lost::Local => (
            "a failure of the command in `$(…)` does not count",
            "`$?` is that of this word, which succeeds",
            "declare the variable on a line of its own, and assign to it on the next",
        ),
        Lost::Unread(_) => (
            "a failure is kept where nothing reads it",
            "",
            "look at the variable at the end, in the same shell: a part of a pipe is one of its own",
        ),
        Lost::Empty => (
            "where nothing comes in, nothing is checked, and the contract passes",
            "`-r` runs nothing on empty input",
            "leave `-r` out, or check first that there is something: `test -n \"$(…)\"`",
        ),
        Lost::Nothing => (
            "where the command fails, it prints nothing, and the contract passes",
            "passes where nothing is printed",
            "look at its exit code first: `out=$(…) && test -z \"$out\"`; `[` takes an empty text for no number, as `[[` does not",
        ),
        Lost::Alike(_) => (
            "where both commands fail, their outputs are alike, and the contract passes",
            "their exit codes are not looked at",
            "ask first that there is something: `test -s a.txt && diff …`; or compare with what is known, by a file or a text",
        ),
        Lost::Unselected => (
            "where it chooses no test or script, none is run, and the contract passes",
            "its exit code is 0 then",
            "say how many tests have to pass: `**min_tests:** 1`, with a report in `$PLANCTL_REPORTS`; or search the tests for the name first",
        ),
        Lost::Untracked => (
            "where the commands before make a new file, the contract passes",
            "compares the files that git tracks, and no others",
            "ask for all that is new or changed: `test -z \"$(git status --porcelain)\"`",
        ),
        Lost::Skipped => (
            "where this fails, the contract passes without another check",
            "decides whether anything is checked",
            "say what is to be there in that case, or let its failure count: `… || exit 1`",
        ),
        Lost::Input => (
            "code that is run here may take the rest of the input, and nothing of that is checked then",
            "has the standard input from which the shell reads on",
            "give it one of its own, `… < /dev/null`, and hand a shell its script as a file",
        ),
        Lost::Said => (
            "code that is run may decide this check by what it prints",
            "the shell reads that as more than text: `1 = 1 -o x`, `n=9`",
            "write `test` with the value in double quotes: `test \"$n\" -gt 5`",
        ),
    }
}

/// Returns the name of a command as people read it.
pub(super) fn name_of_command(simple: &Simple) -> String {
    escape(simple.texts().first().copied().unwrap_or(""))
}
