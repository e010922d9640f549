//! P118, P119, P120: the files that decide a contract, held against the files that its step may change.

use std::collections::BTreeSet;

use planctl_glob::is_glob;

use super::Lint;
use crate::analysis::plainly::Right;
use crate::analysis::{Protected, judging_files, matches_any, may_change, rights_of_task};
use crate::diagnostic::{Code, Diagnostic};
use crate::facts::FileFact;
use crate::syntax::shell::{self, Command, FileUse, Item, Join, Pipeline, Script, Simple, Use};
use crate::text::characters::escape;
use crate::tree::parse::name_of;
use crate::tree::{ContractTree, StepTree};

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in lint.tree.steps.iter().enumerate() {
        let (Some(contract), Some(script)) = (&step.contract, lint.scripts.read_of(at)) else { continue };
        // A call's command makes what it makes; nobody is judged by it. A template is no step yet.
        if step.task.is_none() || step.target.is_none() || step.fixed_number().is_none() {
            continue;
        }
        let rights = Rights {
            lint,
            at,
            step,
            contract,
            script,
            may_change: may_change(lint.order, at, step),
            protected: Protected::by(step),
        };
        let mut of_step = Vec::new();
        let needed = rights.needs_a_change(&mut of_step);
        rights.unclear(needed.as_deref(), &mut of_step);
        rights.nothing_protected(&mut of_step);
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(name_of(step))));
    }
}

struct Rights<'a, 'b> {
    lint: &'a Lint<'b>,
    at: usize,
    step: &'a StepTree,
    contract: &'a ContractTree,
    script: &'a Script,
    may_change: BTreeSet<String>,
    protected: Protected,
}

impl Rights<'_, '_> {
    // A file that is there, that this step may not change and that no step before it makes or changes.
    fn is_fixed(&self, path: &str) -> bool {
        matches!(self.lint.facts.files.get(path), Some(FileFact::Regular { .. }))
            && (!matches_any(&self.may_change, path) || self.protected.holds(path))
            && !self.lint.order.is_made_before(path, self.at)
    }

    /// P118; returns the file.
    fn needs_a_change(&self, found: &mut Vec<Diagnostic>) -> Option<String> {
        if self.step.guard.as_ref().is_some_and(|guard| guard.value) {
            return None;
        }
        let files = self.lint.scripts.files(self.at);
        let needed =
            self.denied().or_else(|| self.constant(files)).or_else(|| self.under_test(self.script, files));
        let file = needed?;
        let path = file.path.trim_end_matches('/');
        let shown = escape(path);
        let number = self.step.number_text();
        let message =
            format!("the contract can only pass if `{shown}` changes, and step {number} may not change it");
        let label = "protected: the task does not plainly say that it is changed";
        let needs = Diagnostic::new(Code::P118, message).at(self.contract.in_plan(file.span), label);
        found.push(needs.help(format!(
            "add `**changes:** {shown}` where the worker is meant to change it, or have the contract ask something else"
        )));
        Some(path.to_owned())
    }

    // `! grep -q old FILE`, `! git diff --quiet FILE`, `git diff FILE | grep …`.
    fn denied(&self) -> Option<&FileUse> {
        let wants_change = |pipeline: &&Pipeline| {
            let first = pipeline.commands.first().and_then(Command::as_simple);
            let is_diff = first.is_some_and(is_git_diff);
            let is_read = pipeline.commands.iter().all(|command| command.as_simple().is_some_and(only_reads));
            (is_read && pipeline.is_negated)
                || is_diff && (pipeline.is_negated || pipeline.commands.len() > 1)
        };
        self.script.items.iter().filter(|item| is_plain(item)).find_map(|item| {
            let mut pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next));
            pipelines.find_map(|pipeline| {
                Some(pipeline).filter(wants_change).and_then(|pipeline| self.only_fixed(pipeline))
            })
        })
    }

    // The first file that a pipeline reads, where all that it reads is fixed.
    fn only_fixed(&self, pipeline: &Pipeline) -> Option<&FileUse> {
        let is_within =
            |file: &&FileUse| file.span.start >= pipeline.span.start && file.span.end <= pipeline.span.end;
        let read: Vec<&FileUse> = self.lint.scripts.files(self.at).iter().filter(is_within).collect();
        let are_fixed = read.iter().all(|file| file.how == Use::Reads && self.is_fixed(&file.path));
        read.first().copied().filter(|_| are_fixed && !has_variables(self.text_of(pipeline)))
    }

    fn text_of(&self, pipeline: &Pipeline) -> &str {
        self.contract.command.get(pipeline.span.start..pipeline.span.end).unwrap_or("$?")
    }

    // Where all that a contract does is to look at files that nobody may change, it says today what it always will.
    fn constant<'f>(&self, files: &'f [FileUse]) -> Option<&'f FileUse> {
        let mut only_looks = true;
        shell::each_simple(self.script, &mut |simple| only_looks &= only_reads(simple));
        let are_fixed = files.iter().all(|file| file.how != Use::Writes && self.is_fixed(&file.path));
        let is_known = only_looks && are_fixed && !has_variables(&self.contract.command);
        files.iter().find(|file| file.how == Use::Reads && file.is_certain).filter(|_| is_known)
    }

    // `./slug.sh "A B" | grep -q a-b`, where the contract alone names the program and nothing else may be changed.
    fn under_test<'f>(&self, script: &Script, files: &'f [FileUse]) -> Option<&'f FileUse> {
        if !self.step.changes.is_empty() || !self.may_change.is_empty() {
            return None;
        }
        let mut looked_at = Vec::new();
        programs_looked_at(script, false, &mut looked_at);
        let is_program = |file: &&FileUse| {
            let path = file.path.trim_end_matches('/');
            let name = path.to_lowercase();
            let is_judge = ["test", "spec", "check", "verif", "lint"].iter().any(|word| name.contains(word));
            let is_it =
                looked_at.iter().any(|span| file.span.start >= span.start && file.span.end <= span.end);
            is_it && !is_judge && self.is_fixed(path) && !self.protected.holds(path)
        };
        files.iter().find(is_program)
    }

    /// P119.
    fn unclear(&self, needed: Option<&str>, found: &mut Vec<Diagnostic>) {
        if !self.step.changes.is_empty() {
            return;
        }
        let judged_by = judging_files(self.lint.scripts, self.at);
        for (path, right) in rights_of_task(self.lint.order, self.at) {
            let is_there = matches!(self.lint.facts.files.get(path), Some(FileFact::Regular { .. }));
            let is_meant =
                right == Right::Unclear && needed != Some(path) && is_there && !self.protected.holds(path);
            if !is_meant || !judged_by.iter().any(|judge| covers(judge, path)) {
                continue;
            }
            let mentions = self.lint.order.of_task(self.at);
            let Some(mention) = mentions.iter().find(|mention| mention.path == path) else { continue };
            let (shown, number) = (escape(path), self.step.number_text());
            let message = format!("step {number} does not say whether its worker may change `{shown}`");
            let unclear = Diagnostic::new(Code::P119, message)
                .at(mention.span, "its contract is judged by this file, so it stays protected")
                .help(format!(
                    "add `**changes:** {shown}` where the worker may change it, else `**protects:** {shown}`"
                ));
            found.push(unclear);
        }
    }

    /// P120.
    fn nothing_protected(&self, found: &mut Vec<Diagnostic>) {
        if !self.step.protects.is_empty() {
            return;
        }
        let judged_by = judging_files(self.lint.scripts, self.at);
        let is_protected = |path: &String| {
            let fact = self.lint.facts.files.get(path);
            let is_file = is_glob(path) || matches!(fact, None | Some(FileFact::Regular { .. }));
            is_file && !matches_any(&self.may_change, path)
        };
        if judged_by.iter().any(is_protected) {
            return;
        }
        let tool =
            shell::commands(self.script).into_iter().find(|started| TOOLS.contains(&started.name.as_str()));
        let Some(tool) = tool else { return };
        let message =
            format!("nothing that decides step {}'s contract is protected", self.step.number_text());
        let bare = Diagnostic::new(Code::P120, message)
            .at(self.contract.in_plan(tool.span), "runs what it finds in the workspace, whoever wrote it");
        found.push(
            bare.help("add the tests and the settings that it reads, such as `**protects:** tests/**`"),
        );
    }
}

/// Programs that run tests or recipes of the workspace.
const TOOLS: [&str; 35] = [
    "ava", "bats", "bazel", "bun", "busted", "cargo", "composer", "ctest", "deno", "dotnet", "go", "gradle",
    "jest", "just", "make", "mocha", "mvn", "ninja", "nox", "npm", "npx", "phpunit", "pnpm", "prove",
    "py.test", "pytest", "rake", "rspec", "sbt", "swift", "task", "tox", "vitest", "yarn", "nose2",
];

/// Programs whose result depends on nothing but their words and the files that they name.
const READERS: [&str; 33] = [
    "[",
    "awk",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "diff",
    "echo",
    "egrep",
    "fgrep",
    "file",
    "fold",
    "grep",
    "head",
    "jq",
    "md5sum",
    "nl",
    "od",
    "paste",
    "printf",
    "sed",
    "sha1sum",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "test",
    "tr",
    "uniq",
    "wc",
    "xxd",
    "yq",
];

fn only_reads(simple: &Simple) -> bool {
    simple.name().is_some_and(|name| READERS.contains(&name)) && simple.inline.is_empty()
}

fn is_git_diff(simple: &Simple) -> bool {
    simple.name() == Some("git") && simple.words.iter().skip(1).any(|word| word.text() == "diff")
}

fn is_plain(item: &Item) -> bool {
    !item.is_background && item.rest.iter().all(|(join, _)| *join == Join::And)
}

// A variable may stand for anything; `$(…)` is read as the commands that it holds.
fn has_variables(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| !text[at + 1..].starts_with(['(', '\'', '"', ' ']))
}

fn covers(judge: &str, path: &str) -> bool {
    judge == path
        || path.strip_prefix(judge).is_some_and(|rest| rest.starts_with('/'))
        || is_glob(judge) && matches_any([judge], path)
}

// The words that start a program of the workspace whose output something else looks at: in a pipe, or in `$(…)`.
fn programs_looked_at(script: &Script, is_inner: bool, found: &mut Vec<crate::text::Span>) {
    let pipelines = |item: &Item| -> Vec<Pipeline> {
        std::iter::once(item.first.clone()).chain(item.rest.iter().map(|(_, next)| next.clone())).collect()
    };
    for pipeline in script.items.iter().flat_map(pipelines) {
        let last = pipeline.commands.len().saturating_sub(1);
        for (place, command) in pipeline.commands.iter().enumerate() {
            let Some(simple) = command.as_simple() else { continue };
            if place < last || is_inner {
                let is_interpreter = matches!(
                    simple.name(),
                    Some("bash" | "sh" | "python" | "python3" | "node" | "ruby" | "perl" | "php")
                );
                let program = simple.words.iter().skip(usize::from(is_interpreter));
                let program = program.filter(|word| !word.raw.starts_with('-')).map(|word| word.span).next();
                found.extend(
                    program
                        .filter(|_| is_interpreter || simple.name().is_some_and(|name| name.contains('/'))),
                );
            }
        }
        for command in &pipeline.commands {
            let words: &[shell::Word] = match command {
                Command::Simple(simple) => &simple.words,
                Command::Compound(compound) => &compound.words,
                Command::Function { .. } | Command::Test { .. } => &[],
            };
            words
                .iter()
                .flat_map(|word| &word.nested)
                .for_each(|inner| programs_looked_at(inner, true, found));
        }
    }
}
