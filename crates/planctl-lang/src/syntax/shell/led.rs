//! Finds where code that a script runs can lead the script's own shell: by taking the rest of what the shell reads, or by what it
//! prints, where the shell reads that as more than text.

use std::collections::BTreeSet;

use super::masked::{Lost, Masked, names, pipelines};
use super::status::reads_lines;
use super::walk::{last_simple, runs_input};
use super::{
    Call, Command, CompoundKind, Part, Script, Simple, Test, Trait, Word, all_commands, each, each_list,
    each_simple, is_run_by_path,
};
use crate::text::Span;

/// Programs whose last word is their own, whatever they read.
const COUNT: [&str; 4] = ["wc", "awk", "jq", "grep"];

/// Returns the places where code of the workspace can do so.
pub(super) fn led(script: &Script) -> Vec<Masked> {
    let mut found = Vec::new();
    let mut add = |span: Span, how: Lost| found.push(Masked { span, how });
    let said = names_said(script);
    let is_said = |word: &Word| {
        let is_of = |part: &Part| matches!(part, Part::Variable(name) if said.contains(name));
        says(word) || word.parts.iter().any(is_of)
    };
    each(script, &mut |command| match command {
        Command::Compound(compound) if compound.kind == CompoundKind::While && reads_lines(compound) => {
            compound.bodies.iter().flat_map(readers).for_each(|span| add(span, Lost::Input));
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Arithmetic => {
            let is_named = |word: &&Word| said.iter().any(|name| names(word, name));
            let named = compound.words.iter().find(is_named);
            named.into_iter().for_each(|word| add(word.span, Lost::Said));
        }
        // `bash < FILE`, `cat FILE | bash -e`, `bash <<'EOF'`
        Command::Simple(simple) if simple.name() != Some("xargs") && runs_input(&simple.words) => {
            match simple.inline.as_slice() {
                [] if simple.redirects.iter().any(|redirect| redirect.is_document) => {}
                [] => add(simple.span, Lost::Input),
                scripts => scripts.iter().flat_map(readers).for_each(|span| add(span, Lost::Input)),
            }
        }
        Command::Simple(simple) if matches!(simple.name(), Some("test" | "[")) => {
            let is_split = |word: &&Word| !word.raw.starts_with('"') && is_said(word);
            simple.words.iter().filter(is_split).for_each(|word| add(word.span, Lost::Said));
        }
        Command::Test { test, .. } => {
            evaluated(test)
                .into_iter()
                .filter(|word| is_said(word))
                .for_each(|word| add(word.span, Lost::Said));
        }
        Command::Compound(_) | Command::Simple(_) | Command::Function { .. } => {}
    });
    found
}

// Says whether a command runs code of the workspace, which may do more than it is asked for.
pub(super) fn runs_code(simple: &Simple) -> bool {
    simple.inline.is_empty()
        && all_commands(&simple.words)
            .into_iter()
            .any(|words| is_run_by_path(words) || Call::of(words).does(Trait::RunsWorkspace))
}

// The commands that run such code with the standard input of the list.
fn readers(script: &Script) -> Vec<Span> {
    let (mut found, mut fed) = (Vec::new(), Vec::new());
    let has_own = |simple: &Simple| simple.redirects.iter().any(|redirect| redirect.feeds_input);
    each_simple(script, &mut |simple| fed.extend(Some(simple.span).filter(|_| has_own(simple))));
    each_list(script, &mut |list| {
        for command in list.items.iter().flat_map(pipelines).filter_map(|pipeline| pipeline.commands.first())
        {
            let Command::Simple(simple) = command else { continue };
            if runs_code(simple) && !fed.iter().any(|own: &Span| own.contains(simple.span)) {
                found.push(simple.span);
            }
        }
    });
    found
}

// The words that `[[` evaluates as numbers: a name of a variable there is its value, and `a=1` assigns.
fn evaluated(test: &Test) -> Vec<&Word> {
    match test {
        Test::And(a, b) | Test::Or(a, b) => evaluated(a).into_iter().chain(evaluated(b)).collect(),
        Test::Not(inner) => evaluated(inner),
        Test::Binary(left, operator, right)
            if matches!(operator.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") =>
        {
            vec![left, right]
        }
        Test::Unary(..) | Test::Binary(..) => Vec::new(),
    }
}

// Says whether a word is what code of the workspace prints.
fn says(word: &Word) -> bool {
    word.nested.iter().any(|script| {
        let mut runs = false;
        each_simple(script, &mut |simple| runs |= runs_code(simple));
        runs && !last_simple(script).and_then(Simple::name).is_some_and(|name| COUNT.contains(&name))
    })
}

// The variables that hold it.
fn names_said(script: &Script) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    each_simple(script, &mut |simple| {
        let all = simple.assignments.iter().chain(&simple.words);
        let assigned = all.filter(|word| says(word)).filter_map(|word| word.raw.split_once('='));
        let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        said.extend(assigned.map(|(name, _)| name).filter(is_name).map(str::to_owned));
    });
    said
}
