//! Reads contracts: the fence with the script, and the exit code it must give.

use super::Reader;
use super::field::{self, RawField, is_separator};
use super::heading;
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::syntax::markdown::{Fence, LineKind};
use crate::syntax::values;
use crate::text::{Span, Spanned, escape};
use crate::tree::{ContractTree, Field};

/// The most bytes a contract may have (DESIGN 12).
const CONTRACT_BYTES_MAX: usize = 16 * 1024;
/// A contract that fails until somebody writes what proves the step.
pub(crate) const CONTRACT_STUB: &str =
    "```shell\nfalse  # write a check that passes only when the step is done\n```\nexit_code == 0";
const FENCE_FORM: &str = "write the command between two lines of three backticks:\n```shell\ntest -f docs/analysis.md\n```\nexit_code == 0";

// Reads the mark of a contract that nobody has written yet, and the words after it: the proof that is wanted.
fn to_be_written(inline: &str) -> Option<&str> {
    let rest = inline.strip_prefix("TODO")?.trim_start();
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':').map(str::trim) }
}

impl Reader<'_> {
    pub(super) fn take_contract(&mut self, field: &RawField, end: usize) {
        let mut fences: Vec<usize> = Vec::new();
        let mut expectation: Option<Span> = None;
        let inline = self.source.slice(field.value).trim().to_owned();
        let mut loose = Vec::new();
        for line in field.line + 1..end {
            match self.outline.kind(line) {
                LineKind::Fence(index) if !fences.contains(&index) => fences.push(index),
                LineKind::Fence(_) | LineKind::Comment | LineKind::Indented => {}
                LineKind::Text => {
                    let span = self.source.line_span(line);
                    let text = self.source.slice(span).trim();
                    if is_expectation(text) {
                        let at = span.start + self.source.slice(span).len()
                            - self.source.slice(span).trim_start().len();
                        let found = Span::new(at, at + text.len());
                        match expectation {
                            None => expectation = Some(found),
                            Some(first) => self.report_twice("`exit_code`", found, first),
                        }
                    } else if !is_separator(text) {
                        loose.push((line, span));
                    }
                }
            }
        }
        for index in &fences {
            self.used_fences[*index] = true;
        }
        let Some((first, others)) = fences.split_first() else {
            return self.report_no_fence(field, &inline, !loose.is_empty());
        };
        for (line, span) in loose {
            self.report_stray(line, span);
        }
        let outline = self.outline;
        for other in others {
            self.report_twice("the contract", outline.fences[*other].opener, outline.fences[*first].opener);
        }
        let Some((mut contract, inside)) = self.contract(&outline.fences[*first]) else { return };
        if let Some(inside) = inside {
            match expectation {
                Some(below) => self.report_twice("`exit_code`", below, inside),
                None => {
                    self.report_inside(inside, &contract);
                    expectation = Some(inside);
                }
            }
        }
        contract.exit_code = expectation.and_then(|span| self.exit_code(span));
        let steps = self.tree.steps.len();
        if let Some((_, ahead)) = self.exit_code_ahead.take().filter(|(step, _)| *step == steps) {
            match &contract.exit_code {
                Some(after) => self.report_twice("`exit_code`", after.span, ahead.span),
                None => contract.exit_code = Some(ahead),
            }
        }
        self.on_step(|step| step.node.contract = Some(contract));
    }

    fn report_twice(&mut self, what: &str, again: Span, first: Span) {
        let line = self.source.position(first.start).line;
        let twice = Diagnostic::new(Code::P009, format!("{what} is given twice")).at(again, "again here");
        self.push_in_step(twice.at(first, format!("first on line {line}")).help("keep one of the two"));
    }

    fn report_no_fence(&mut self, field: &RawField, inline: &str, has_text: bool) {
        self.mark_unread(Field::Contract);
        let diagnostic = if inline.to_lowercase().starts_with("none") {
            Diagnostic::new(Code::P010, "`contract: none` is for imports only")
                .at(field.name.span, "a step in a plan proves itself")
                .help("write a contract, or make it a step for a person: `**type:** human`")
        } else if let Some(said) = to_be_written(inline) {
            let gap = Diagnostic::new(Code::P010, "the contract is still to be written")
                .at(
                    Span::new(field.value.end - inline.len(), field.value.end),
                    "a gap: nothing says yet what proves the step",
                )
                .help(FENCE_FORM);
            if said.is_empty() { gap } else { gap.note(format!("to be proved: {}", escape(said))) }
        } else if inline.is_empty() && !has_text {
            let end = self.source.line_span(field.line).end;
            Diagnostic::new(Code::P010, "the step has no contract")
                .at(field.name.span, "no code fence follows")
                .help(FENCE_FORM)
                .fix(Span::at(end), format!("\n{CONTRACT_STUB}"), false)
        } else {
            let bare = Diagnostic::new(Code::P011, "the contract is not in a code fence")
                .at(field.name.span, "a fence was expected after this")
                .help(FENCE_FORM);
            let code = inline.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            let command = code.filter(|code| !code.contains('`')).unwrap_or(inline);
            let at = Span::new(field.value.start, field.value.start + self.source.slice(field.value).len());
            match has_text {
                true => bare,
                // Words in backticks are a command; others may be prose.
                false => bare.fix(at, format!("\n```shell\n{command}\n```"), command.len() < inline.len()),
            }
        };
        self.push_in_step(diagnostic);
    }

    // `exit_code == 0` as the last line of the fence is no command.
    fn report_inside(&mut self, inside: Span, contract: &ContractTree) {
        let message = "`exit_code` stands inside the fence, where commands stand";
        let drift = Diagnostic::new(Code::P005, message).level(Severity::Warning);
        let mut drift = drift.at(inside, "read as the exit code");
        if let Some(end) = self.fence_end(contract.fence) {
            let said = self.source.slice(inside).trim().to_owned();
            drift = drift.fix(self.source.whole_line(inside.start), "", true).fix(
                Span::at(end),
                format!("\n{said}"),
                true,
            );
        }
        self.push_in_step(drift);
    }

    // A field as the last line of the fence is no command; further up it may be text that a command writes.
    fn report_field_inside(&mut self, fence: &Fence, last: usize) {
        let Some(span) = fence.content.get(last).copied() else { return };
        let text = self.source.slice(span);
        let Some(known) = field::line(text, span.start).and_then(|line| Field::of_step(&line.name.value))
        else {
            return;
        };
        let message = format!("`**{}:**` stands inside the fence, where commands stand", known.as_str());
        let mut inside = Diagnostic::new(Code::P015, message).at(span, "a field stands below the fence");
        if let Some(end) = self.fence_end(fence.opener).filter(|_| !self.is_seen(known)) {
            let moved = inside.fix(self.source.whole_line(span.start), "", true);
            inside = moved.fix(Span::at(end), format!("\n{}", text.trim()), true);
        }
        self.mark_unread(known);
        self.push_in_step(inside.help("move it below the fence"));
    }

    /// Returns the contract of a fence, and the exit code that stands inside as its last line.
    fn contract(&mut self, fence: &Fence) -> Option<(ContractTree, Option<Span>)> {
        if !matches!(fence.language.as_str(), "" | "shell" | "sh" | "bash") {
            let message = format!("a contract can't be written in `{}`", escape(&fence.language));
            let refused = Diagnostic::new(Code::P011, message).at(fence.opener, "contracts are run by bash");
            let help = "mark the fence `shell`, `sh` or `bash`, or leave the mark out; \
                        another language is called from bash: `python3 checks/step.py`";
            let refused = match meant_language(&fence.language) {
                Some(near) => {
                    let text = self.source.slice(fence.opener);
                    let word = text.trim_start_matches(['`', '~', ' ']);
                    let at = fence.opener.start + text.len() - word.len();
                    let refused = refused.help(format!("did you mean `{near}`?"));
                    let written = word.get(..fence.language.len()).unwrap_or_default();
                    match written.eq_ignore_ascii_case(&fence.language) {
                        // All of these are run by bash.
                        true => refused.fix(Span::new(at, at + fence.language.len()), near, true),
                        false => refused,
                    }
                }
                None => refused.help(help),
            };
            self.report_value(Field::Contract, refused);
            return None;
        }
        let lines: Vec<&str> = fence.content.iter().map(|span| self.source.slice(*span)).collect();
        let is_comment = |line: &&str| line.trim_start().starts_with('#');
        let is_blank = |line: &&str| line.trim().is_empty();
        if lines.iter().all(|line| is_blank(line) || is_comment(line)) {
            let why = if lines.iter().any(is_comment) { "has only comments" } else { "is empty" };
            let empty = Diagnostic::new(Code::P010, format!("the contract {why}"))
                .at(fence.opener, "no command follows");
            self.report_value(
                Field::Contract,
                empty.help("write a command whose exit code shows that the step is done, such as `test -s docs/analysis.md`"),
            );
            return None;
        }
        let first = lines.iter().position(|line| !is_blank(line))?;
        let mut last = lines.iter().rposition(|line| !is_blank(line))?;
        let mut inside = None;
        if is_exit_code(lines[last]) && last > first {
            inside = fence.content.get(last).copied();
            last = lines[..last].iter().rposition(|line| !is_blank(line))?;
        }
        self.report_field_inside(fence, last);
        let command = lines[first..=last].join("\n");
        let kept = &fence.content[first..=last];
        let span = Span::new(kept.first()?.start, kept.last()?.end);
        if command.len() > CONTRACT_BYTES_MAX {
            let message =
                format!("the contract has {} bytes, and the limit is 16384 (16 KiB)", command.len());
            let large = Diagnostic::new(Code::P008, message).at(fence.opener, "this contract");
            self.push_in_step(large.help("put the script into a file and run it: `bash checks/step.sh`"));
        }
        let line_starts = kept.iter().map(|span| span.start).collect();
        Some((ContractTree { command, line_starts, span, fence: fence.opener, exit_code: None }, inside))
    }

    fn exit_code(&mut self, span: Span) -> Option<Spanned<u8>> {
        match values::exit_code(self.source.slice(span)) {
            Ok(code) => Some(Spanned::new(code, span)),
            Err(unread) => {
                let message = format!("the exit code can't be read: {}", unread.why);
                let mut refused = Diagnostic::new(Code::P015, message).at(span, "").help(unread.help);
                if let Some(meant) = values::meant_exit_code(self.source.slice(span)) {
                    refused = refused.fix(span, format!("exit_code == {meant}"), true);
                }
                self.report_value(Field::ExitCode, refused);
                None
            }
        }
    }

    pub(super) fn take_exit_code_field(&mut self, value: Spanned<String>) {
        let text =
            if value.value.starts_with("==") { value.value.clone() } else { format!("== {}", value.value) };
        let Ok(code) = values::exit_code(&text) else {
            self.exit_code(value.span);
            return;
        };
        let contract = self.tree.steps.last().and_then(|step| step.node.contract.as_ref());
        if let Some(first) = contract.and_then(|contract| contract.exit_code.as_ref()).map(|code| code.span) {
            return self.report_twice("`exit_code`", value.span, first);
        }
        let drift = Diagnostic::new(Code::P005, "the exit code is written `exit_code == N` after the fence");
        let mut drift = drift.level(Severity::Warning).at(value.span, "read as the exit code");
        if let Some(contract) = contract
            && let Some(end) = self.fence_end(contract.fence)
            && self.is_of_the_fence(end, value.span.start)
        {
            drift = drift.fix(Span::at(end), format!("\nexit_code == {code}"), true).fix(
                self.source.whole_line(value.span.start),
                "",
                true,
            );
        }
        self.push_in_step(drift);
        let code = Spanned::new(code, value.span);
        match self.tree.steps.last_mut().and_then(|step| step.node.contract.as_mut()) {
            Some(contract) => contract.exit_code = Some(code),
            None => self.exit_code_ahead = Some((self.tree.steps.len(), code)),
        }
    }

    // An exit code right after the fence that can't be read has a fix of its own, and a heading between the two may
    // be that of another step.
    fn is_of_the_fence(&self, end: usize, field: usize) -> bool {
        let between = &self.source.text()[end..field];
        !is_expectation(between.trim_start())
            && !between.lines().any(|line| heading::heading(line, 0).is_some())
    }
}

impl Reader<'_> {
    // Returns where the closing line of a fence ends.
    fn fence_end(&self, opener: Span) -> Option<usize> {
        let fences = &self.outline.fences;
        let at = fences.partition_point(|fence| fence.opener.start < opener.start);
        let fence = fences.get(at).filter(|fence| fence.opener == opener && fence.is_closed)?;
        Some(self.source.line_span(fence.last_line).end)
    }
}

// Other shells are no slip of the pen: bash may not run their scripts.
fn meant_language(language: &str) -> Option<&'static str> {
    let is_other = ["zsh", "ksh", "csh", "tcsh", "fish", "ash", "dash", "mksh", "xonsh"].contains(&language);
    did_you_mean(language, ["shell", "bash", "sh"]).filter(|_| !is_other)
}

// `exit_code = 0` in a script may be somebody's variable.
fn is_exit_code(line: &str) -> bool {
    let text = line.trim();
    is_expectation(text) && text.contains("==") && values::exit_code(text).is_ok()
}

pub(crate) fn is_expectation(text: &str) -> bool {
    let lower = text.trim_matches('`').to_lowercase();
    lower.starts_with("exit_code") || lower.starts_with("exit code") || lower.starts_with("exitcode")
}
