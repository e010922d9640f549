//! P118, P119, P120: the files that decide a contract, held against the files that its step may change.

use std::collections::BTreeSet;

use planctl_glob::is_glob;

use super::{Context, Lint, Needs};
use crate::analysis::looks::{FileLook, Today, file_looks};
use crate::analysis::plainly::Right;
use crate::analysis::{Protected, judging_files, matches_any, may_change, rights_of_task};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::FileFact;
use crate::syntax::shell::{self, Command, FileUse, Item, Pipeline, Script, Simple, Trait, Use};
use crate::text::Span;
use crate::text::characters::escape;
use crate::text::paths::{clean, leaves_workspace};
use crate::tree::ContractTree;
use crate::tree::workflow::{Kind, NodeTree};

pub(super) const LINT: Lint =
    Lint { codes: &[Code::P118, Code::P119, Code::P120], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in context.each_step() {
        changed_and_protected(context, step, found);
        let (Some(contract), Some(script)) = (&step.contract, context.scripts.read_of(at)) else { continue };
        // A call's command makes what it makes; nobody is judged by it. A template is no step yet.
        let is_call = step.kind.value == Kind::Call;
        if is_call || step.task.is_none() || step.role.as_ref().is_none() || step.number.is_none() {
            continue;
        }
        let (looks, looks_only) = file_looks(script, context.scripts.files(at), contract.expected());
        let rights = Rights {
            context,
            at,
            step,
            contract,
            script,
            looks,
            looks_only,
            may_change: may_change(context.order, at, step),
            protected: Protected::of_step(step),
        };
        let mut of_step = Vec::new();
        let needed = rights.needs_a_change(&mut of_step);
        rights.unclear(needed.as_deref(), &mut of_step);
        rights.nothing_protected(&mut of_step);
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
}

/// P119 where a step names one file in both lists.
fn changed_and_protected(context: &Context<'_>, step: &NodeTree, found: &mut Vec<Diagnostic>) {
    let protected = Protected::of_step(step);
    for entry in step.declared_changes() {
        let path = clean(&entry.value);
        let is_folder = path.ends_with('/') || context.facts.files.get(&path) == Some(&FileFact::Directory);
        if leaves_workspace(&path).is_some() || is_glob(&path) || is_folder || !protected.covers(&path) {
            continue;
        }
        let message = format!("the step both changes and protects `{}`; it stays protected", escape(&path));
        let both = Diagnostic::new(Code::P119, message).at(entry.span, "").step(step.step_name());
        found.push(both.help("take it out of `**changes:**`, or out of `**protects:**`"));
    }
}

struct Rights<'a, 'b> {
    context: &'a Context<'b>,
    at: usize,
    step: &'a NodeTree,
    contract: &'a ContractTree,
    script: &'a Script,
    looks: Vec<FileLook<'a>>,
    looks_only: bool,
    may_change: BTreeSet<String>,
    protected: Protected,
}

/// A file that has to change so that the contract can pass, or may have to.
#[derive(Clone, Copy)]
struct Needed<'f> {
    file: &'f FileUse,
    is_certain: bool,
}

impl Rights<'_, '_> {
    // A file that is there, that this step may not change and that no step before it makes or changes.
    fn is_fixed(&self, path: &str) -> bool {
        matches!(self.context.facts.files.get(path), Some(FileFact::Regular { .. }))
            && (!matches_any(&self.may_change, path) || self.protected.covers(path))
            && !self.context.order.is_made_before(path, self.at)
    }

    /// P118; returns the file.
    fn needs_a_change(&self, found: &mut Vec<Diagnostic>) -> Option<String> {
        if self.step.is_guard() {
            return None;
        }
        let files = self.context.scripts.files(self.at);
        let unsure = |file| Needed { file, is_certain: false };
        let needed = self
            .denied()
            .or_else(|| self.constant(files).map(unsure))
            .or_else(|| self.under_test(self.script, files).map(unsure))?;
        let path = needed.file.path.trim_end_matches('/');
        let shown = escape(path);
        let number = &self.step.id.value;
        let (level, message) = if needed.is_certain {
            let message =
                format!("the contract wants `{shown}` to change, but step {number} may not change it");
            (Severity::Error, message)
        } else {
            let message =
                format!("the contract asks something of `{shown}`, which step {number} may not change");
            (Severity::Warning, message)
        };
        let label = "protected: the task does not plainly say that it is changed";
        let needs = Diagnostic::new(Code::P118, message).level(level);
        found.push(needs.at(self.contract.in_plan(needed.file.span), label).help(format!(
            "add `**changes:** {shown}`, or name it in the task: \"Change `{shown}`\"; if it is to stay as it is, have the \
             contract ask something else"
        )));
        Some(path.to_owned())
    }

    // The first look that ends badly at files that nobody may change; else the first that may.
    fn denied(&self) -> Option<Needed<'_>> {
        let all: Vec<Needed<'_>> = self.looks.iter().filter_map(|look| self.needed_by(look)).collect();
        all.iter().find(|needed| needed.is_certain).or(all.first()).copied()
    }

    fn needed_by<'f>(&self, look: &FileLook<'f>) -> Option<Needed<'f>> {
        if has_variables(self.text_of(look.span)) {
            return None;
        }
        let is_fixed = |file: &&FileUse| self.is_fixed(&file.path) && !self.is_written(&file.path);
        let first = || look.files.first().copied().filter(|_| look.files.iter().all(is_fixed));
        let (file, is_certain) = match look.today(self.context.facts) {
            Today::Well | Today::Unknown { wants_change: false } => return None,
            Today::Present(at) => (look.files.get(at).copied().filter(|file| is_fixed(file)), true),
            Today::Absent => (first(), true),
            Today::Unknown { wants_change: true } => (first(), false),
        };
        Some(Needed { file: file?, is_certain })
    }

    fn is_written(&self, path: &str) -> bool {
        self.context.scripts.files(self.at).iter().any(|file| file.path == path && file.how == Use::Writes)
    }

    fn text_of(&self, span: Span) -> &str {
        self.contract.command.get(span.start..span.end).unwrap_or("$?")
    }

    // A step that protects some files of a folder has said which of them may not be changed.
    fn protects(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let globs = self.step.attributes.protects.entries();
        self.protected.covers(path) || globs.iter().any(|glob| glob.value.starts_with(&folder))
    }

    // All that the contract needs is so already.
    fn passes_today(&self) -> bool {
        let ends_well = |look: &FileLook<'_>| look.today(self.context.facts) == Today::Well;
        self.looks_only && self.looks.iter().all(ends_well)
    }

    // Where all that a contract does is to look at files that nobody may change, it says today what it always will.
    fn constant<'f>(&self, files: &'f [FileUse]) -> Option<&'f FileUse> {
        if self.passes_today() {
            return None;
        }
        let mut only_looks = true;
        shell::each_simple(self.script, &mut |simple| only_looks &= only_reads(simple));
        let are_fixed = files.iter().all(|file| file.how != Use::Writes && self.is_fixed(&file.path));
        let is_known = only_looks && are_fixed && !has_variables(&self.contract.command);
        files.iter().find(|file| file.how == Use::Reads && file.is_certain).filter(|_| is_known)
    }

    // `./slug.sh "A B" | grep -q a-b`, where the contract alone names the program and nothing else may be changed.
    fn under_test<'f>(&self, script: &Script, files: &'f [FileUse]) -> Option<&'f FileUse> {
        if !self.step.attributes.changes.entries().is_empty() || !self.may_change.is_empty() {
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
            is_it && !is_judge && self.is_fixed(path) && !self.protected.covers(path)
        };
        files.iter().find(is_program)
    }

    /// P119.
    fn unclear(&self, needed: Option<&str>, found: &mut Vec<Diagnostic>) {
        if !self.step.attributes.changes.entries().is_empty() {
            return;
        }
        let judged_by = judging_files(self.context.scripts, self.at);
        for (path, right) in rights_of_task(self.context.order, self.at) {
            let is_folder = self.context.facts.files.get(path) == Some(&FileFact::Directory);
            let is_file =
                |path: &str| matches!(self.context.facts.files.get(path), Some(FileFact::Regular { .. }));
            let is_there = is_folder || is_file(path);
            let is_meant =
                right == Right::Unclear && needed != Some(path) && is_there && !self.protects(path);
            // A file that is not there has yet to be made, and that takes no right.
            let judges = |judge: &String| match is_folder {
                true => (is_glob(judge) || is_file(judge)) && lies_in(judge, path),
                false => covers(judge, path),
            };
            if !is_meant || !judged_by.iter().any(judges) {
                continue;
            }
            let mentions = self.context.order.mentions_in_task(self.at);
            let Some(mention) = mentions.iter().find(|mention| mention.path == path) else { continue };
            let (mut shown, number) = (escape(path.trim_end_matches('/')).to_string(), &self.step.id.value);
            let message = format!("step {number} does not say whether its worker may change `{shown}`");
            let label = if is_folder {
                shown.push_str("/**");
                "its contract is judged by files in it, so they stay protected"
            } else {
                "its contract is judged by this file, so it stays protected"
            };
            let unclear = Diagnostic::new(Code::P119, message).at(mention.span, label).help(format!(
                "add `**changes:** {shown}` where the worker may change it, else `**protects:** {shown}`"
            ));
            found.push(unclear);
        }
    }

    /// P120.
    fn nothing_protected(&self, found: &mut Vec<Diagnostic>) {
        if !self.step.attributes.protects.entries().is_empty() {
            return;
        }
        let judged_by = judging_files(self.context.scripts, self.at);
        let is_protected = |path: &String| {
            let fact = self.context.facts.files.get(path);
            let is_file = is_glob(path) || matches!(fact, None | Some(FileFact::Regular { .. }));
            is_file && !matches_any(&self.may_change, path)
        };
        if judged_by.iter().any(is_protected) {
            return;
        }
        let tool = shell::commands(self.script)
            .into_iter()
            .find(|started| shell::brings(&started.name, Trait::RunsWorkspace));
        let Some(tool) = tool else { return };
        let message = format!("nothing that decides step {}'s contract is protected", self.step.id.value);
        let bare = Diagnostic::new(Code::P120, message)
            .at(self.contract.in_plan(tool.span), "runs what it finds in the workspace, whoever wrote it");
        found.push(
            bare.help("add the tests and the settings that it reads, such as `**protects:** tests/**`"),
        );
    }
}

fn only_reads(simple: &Simple) -> bool {
    simple.name().is_some_and(|name| shell::brings(name, Trait::OnlyReads)) && simple.inline.is_empty()
}

// A variable may stand for anything; `$(…)` is read as the commands that it holds.
fn has_variables(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| !text[at + 1..].starts_with(['(', '\'', '"', ' ']))
}

/// Says whether a file that judges, or some that a pattern of such files matches, lie in a folder.
fn lies_in(judge: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    let name = folder.rsplit('/').next().unwrap_or_default();
    let is_of_tests = matches!(name, "test" | "tests" | "spec" | "specs" | "__tests__");
    let is_beneath = judge.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    is_beneath || judge == folder || is_of_tests && judge.starts_with("**/") && judge.contains(['_', '.'])
}

fn covers(judge: &str, path: &str) -> bool {
    judge == path
        || path.strip_prefix(judge).is_some_and(|rest| rest.starts_with('/'))
        || is_glob(judge) && matches_any([judge], path)
}

// The words that start a program of the workspace whose output something else looks at: in a pipe, or in `$(…)`.
fn programs_looked_at(script: &Script, is_inner: bool, found: &mut Vec<Span>) {
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
