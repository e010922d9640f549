//! P111, P114: contracts that wait for a person, or leave a process behind.

use super::proof::name_of_command;
use super::{Context, Lint, Needs, ReadContract};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::shell::{self, Command, CompoundKind, Script, Simple, Word};
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
            let waits =
                shell::wrapped_commands(&simple.words).into_iter().find(|words| asks_a_person(words, is_fed));
            if let Some(words) = waits {
                report(simple.span, words.first().map_or("", Word::text));
            }
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Select => {
            report(compound.span, "select")
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => {}
    });
}

fn asks_a_person(words: &[Word], is_fed: bool) -> bool {
    let words: Vec<&str> = words.iter().map(Word::text).collect();
    let has = |flag: &str| words.contains(&flag);
    let short = |letter: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    match words.as_slice() {
        [
            "vim" | "vi" | "nvim" | "nano" | "emacs" | "less" | "more" | "top" | "htop" | "man" | "watch"
            | "fzf" | "dialog" | "whiptail",
            ..,
        ] => true,
        ["passwd" | "su" | "ftp" | "telnet" | "visudo", ..] => true,
        ["python" | "python3" | "node" | "psql" | "mysql" | "irb" | "sqlite3" | "ghci" | "lua"] => !is_fed,
        ["read", ..] => short('p') && !is_fed,
        ["git", "rebase", ..] => has("-i") || has("--interactive"),
        ["git", "add" | "checkout" | "stash" | "restore" | "reset", ..] => has("-p") || has("--patch"),
        ["git", "mergetool" | "difftool", ..] => true,
        ["git", "commit", ..] => !words.iter().any(|word| {
            ["-m", "--message", "-am", "--fixup", "--squash"].iter().any(|flag| word.starts_with(flag))
                || matches!(*word, "-F" | "--no-edit" | "-C")
        }),
        ["sudo", ..] => !has("-n") && !has("--non-interactive"),
        ["ssh", ..] => !words.iter().any(|word| word.contains("BatchMode")),
        ["docker" | "podman", "run" | "exec", ..] => {
            has("-it") || has("-ti") || has("--interactive") && has("--tty")
        }
        ["npm" | "yarn" | "pnpm", "init", ..] => !short('y') && !has("--yes"),
        ["gh", "auth", "login", ..] | ["npm" | "docker" | "aws" | "gcloud", "login", ..] => true,
        ["apt" | "apt-get" | "dnf" | "yum", "install" | "remove" | "upgrade", ..] => {
            !short('y') && !has("--yes")
        }
        _ => false,
    }
}

fn lint_left_behind(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let (mut is_ended, mut starts) = (false, Vec::new());
    shell::each(script, &mut |command| match command {
        Command::Simple(simple) => {
            is_ended |= ends_others(simple);
            for words in shell::wrapped_commands(&simple.words) {
                let words: Vec<&str> = words.iter().map(Word::text).collect();
                if stays(&words) {
                    starts.push((
                        simple.span,
                        format!("`{}` goes on after the contract", name_of_command(simple)),
                    ));
                    break;
                }
            }
        }
        Command::Compound(compound) if compound.kind == CompoundKind::Coprocess => {
            starts.push((compound.span, "`coproc` goes on after the contract".to_owned()));
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => {}
    });
    shell::each_list(script, &mut |list| {
        for item in list.items.iter().filter(|item| item.is_background) {
            if !starts.iter().any(|(span, _)| item.span.start <= span.start && span.end <= item.span.end) {
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

fn ends_others(simple: &Simple) -> bool {
    let texts = simple.texts();
    let has = |word: &str| texts.contains(&word);
    match texts.as_slice() {
        ["kill", rest @ ..] => !matches!(rest.first(), Some(&"-0" | &"-l")),
        ["wait" | "fg" | "pkill" | "killall", ..] => true,
        ["docker" | "podman", ..] => has("stop") || has("rm") || has("kill") || has("down"),
        ["docker-compose", ..] => has("down") || has("stop"),
        ["pg_ctl" | "systemctl" | "service", ..] => has("stop"),
        ["redis-cli", ..] => has("shutdown"),
        _ => false,
    }
}

fn stays(words: &[&str]) -> bool {
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(word));
    match words {
        ["nohup" | "setsid" | "disown" | "daemonize", ..] => true,
        ["docker" | "podman", "run", ..] => has(&["-d", "--detach", "-itd", "-dit", "-td"]),
        ["docker", "compose", rest @ ..] | ["docker-compose", rest @ ..] => {
            rest.contains(&"up") && has(&["-d", "--detach"]) || rest.contains(&"start")
        }
        ["systemctl" | "service" | "pg_ctl", ..] => has(&["start", "restart"]),
        ["redis-server", ..] => has(&["--daemonize"]),
        ["tmux", "new" | "new-session", ..] => has(&["-d"]),
        ["screen", ..] => has(&["-dm", "-dmS", "-d"]),
        _ => false,
    }
}
