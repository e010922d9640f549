//! P111, P114: contracts that wait for a person, or leave a process behind.

use super::proof::name_of_command;
use super::{Context, Lint, Needs, ReadContract};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::shell::{self, Call, Command, CompoundKind, Script, Trait};
use crate::text::{Span, escape};
use crate::tree::ContractTree;

pub(super) const LINT: Lint = Lint { codes: &[Code::P111, Code::P114], needs: Needs::Text, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    context.each_script(found, |ReadContract { contract, script, .. }, found| {
        interactive(contract, script, found);
        lint_left_behind(contract, script, found);
    });
}

fn interactive(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let mut report = |span: Span, name: &str| {
        let message = format!("`{}` may wait for a person, and a contract has no input", escape(name));
        let waiting = Diagnostic::new(Code::P111, message).at(contract.in_plan(span), "");
        found.push(waiting.help("use a command that ends by itself: `grep` in place of a pager or an editor, a flag such as `--yes` where it asks"));
    };
    shell::each(script, &mut |command| match command {
        Command::Simple(simple) => {
            let is_fed = simple.redirects.iter().any(|redirect| redirect.feeds_input);
            let asks = |call: &Call<'_>| call.does(Trait::Asks) || !is_fed && call.does(Trait::AsksUnlessFed);
            if let Some(call) = shell::calls(simple).find(asks) {
                report(simple.span, call.name());
            }
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Select => {
            report(compound.span, "select")
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => {}
    });
}

fn lint_left_behind(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let (mut is_ended, mut starts) = (false, Vec::new());
    shell::each(script, &mut |command| match command {
        Command::Simple(simple) => {
            is_ended |= Call::of(&simple.words).does(Trait::Ends);
            if shell::calls(simple).any(|call| call.does(Trait::Stays)) {
                let why = format!("`{}` goes on after the contract", name_of_command(simple));
                starts.push((simple.span, why));
            }
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Coprocess => {
            starts.push((compound.span, "`coproc` goes on after the contract".to_owned()));
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => {}
    });
    shell::each_list(script, &mut |list| {
        for item in list.items.iter().filter(|item| item.is_background) {
            if !starts.iter().any(|(span, _)| item.span.contains(*span)) {
                starts.push((with_mark(contract, item.span), "`&`, and nothing waits for it".to_owned()));
            }
        }
    });
    if is_ended {
        return;
    }
    for (span, why) in starts {
        let left = Diagnostic::new(Code::P114, "the contract leaves a process behind");
        found.push(left.at(contract.in_plan(span), why).help(
            "what a contract starts is killed before its verdict counts: `wait` for it, or end it with \
             `trap 'kill $!' EXIT`",
        ));
    }
}

// The `&` stands after the commands that it sends away.
fn with_mark(contract: &ContractTree, span: Span) -> Span {
    let after = contract.command.get(span.end..).unwrap_or("");
    let blanks = after.len() - after.trim_start().len();
    Span::new(span.start, span.end + if after[blanks..].starts_with('&') { blanks + 1 } else { 0 })
}
