//! P105, P111, P112, P114: contracts that change something, wait for a person, or leave a process behind.

use super::proof::name_of_command;
use super::safety::{Located, first_destructive};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::shell::{self, Command, CompoundKind, Script, Simple, Use, Word};
use crate::text::paths::leaves_workspace;
use crate::text::{Span, escape};
use crate::tree::ContractTree;

/// The most changes that are reported of one contract.
const CHANGES_MAX: usize = 5;

pub(super) fn lint(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    interactive(contract, script, found);
    writes(contract, script, found);
    lint_left_behind(contract, script, found);
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

fn writes(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let moves = moves_away(script);
    // A destructive command is reported already (P602).
    let destroyed = first_destructive(script).map(|(_, span)| span);
    let is_said = |span: Span| destroyed.is_some_and(|said| said.start <= span.start && span.end <= said.end);
    let mut changed: Vec<String> = Vec::new();
    for file in shell::files(script).into_iter().filter(|file| file.how == Use::Writes && file.is_certain) {
        let why = leaves_workspace(&file.path);
        let is_relative = !file.path.starts_with(['/', '~']);
        if is_scratch(&file.path) || (moves && is_relative) || changed.contains(&file.path) {
            continue;
        }
        changed.push(file.path.clone());
        let path = escape(&file.path);
        let span = contract.in_plan(file.span);
        if let Some(why) = why {
            let message = format!("the contract writes to `{path}`, which {why}");
            let outside = Diagnostic::new(Code::P112, message).at(span, "outside the workspace");
            found.push(outside.help(
                "a contract only looks: write to `/dev/null`, or let the task write inside the workspace",
            ));
        } else if changed.len() <= CHANGES_MAX && !is_said(file.span) {
            let message = format!("the contract changes `{path}` in the workspace");
            let inside = Diagnostic::new(Code::P105, message).at(span, "written here");
            found.push(inside.help(
                "a contract only looks: let the task make the change, or write to `/dev/null` or `$(mktemp)`",
            ));
        }
    }
    if !moves {
        tools(contract, script, found);
    }
}

/// Returns the first file or command by which a contract changes files, scratch files aside, and where it stands.
pub(super) fn first_change(script: &Script) -> Located {
    let written = shell::files(script)
        .into_iter()
        .find(|file| file.how == Use::Writes && file.is_certain && !is_scratch(&file.path));
    if let Some(file) = written {
        return Some((file.path, file.span));
    }
    let mut first = None;
    shell::each_simple(script, &mut |simple| {
        let changes = || {
            shell::wrapped_commands(&simple.words).into_iter().any(|words| {
                let words: Vec<&str> = words.iter().map(Word::text).collect();
                changed_by(&words).is_some()
            })
        };
        if first.is_none() && changes() {
            first = Some((name_of_command(simple), simple.span));
        }
    });
    first
}

fn is_scratch(path: &str) -> bool {
    path == "/tmp" || ["/dev/", "/tmp/", "/var/tmp/", "/proc/self/"].iter().any(|at| path.starts_with(at))
}

// Says whether the script goes to a place that is none of the workspace or that we can't tell.
fn moves_away(script: &Script) -> bool {
    let mut moves = false;
    shell::each_simple(script, &mut |simple| {
        if matches!(simple.name(), Some("cd" | "pushd")) {
            let to = simple.words.iter().skip(1).find(|word| !word.raw.starts_with('-'));
            let to = to.map(|word| word.literal.as_deref());
            moves |= to.is_none_or(|to| to.is_none_or(|path| leaves_workspace(path).is_some()));
        }
    });
    moves
}

// Programs that change files which their words do not name.
fn tools(contract: &ContractTree, script: &Script, found: &mut Vec<Diagnostic>) {
    let mut reported = 0;
    shell::each_simple(script, &mut |simple| {
        let changes = shell::wrapped_commands(&simple.words).into_iter().find_map(|words| {
            let words: Vec<&str> = words.iter().map(Word::text).collect();
            changed_by(&words)
        });
        if let Some(what) = changes.filter(|_| reported < CHANGES_MAX) {
            reported += 1;
            let message = format!("the contract changes the workspace: `{}` {what}", name_of_command(simple));
            let changes = Diagnostic::new(Code::P105, message).at(contract.in_plan(simple.span), "");
            found.push(
                changes.help("a contract only looks: let the task make the change, and look at its result"),
            );
        }
    });
}

fn changed_by(words: &[&str]) -> Option<&'static str> {
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(word));
    match words {
        ["git", ..] => {
            let at = shell::git_verb(words)?;
            let (verb, rest) = (words[at], &words[at + 1..]);
            let is_list =
                rest.is_empty() || has(&["-l", "--list", "--show-current", "-v", "-a", "-r", "--contains"]);
            match verb {
                "commit" | "merge" | "rebase" | "cherry-pick" | "revert" | "am" => {
                    Some("changes the repository")
                }
                "add" if !has(&["-n", "--dry-run"]) => Some("changes the index"),
                "reset" if !has(&["--hard"]) => Some("changes the index"),
                "checkout" | "switch" if !has(&["--", "."]) => Some("changes the files"),
                "stash" if !matches!(rest.first(), Some(&"list" | &"show")) => Some("changes the files"),
                "apply" if !has(&["--check", "--stat", "--numstat"]) => Some("changes the files"),
                "tag" | "branch" if !is_list && !rest.iter().all(|word| word.starts_with('-')) => {
                    Some("changes the repository")
                }
                "init" => Some("makes a repository"),
                _ => None,
            }
        }
        ["cargo", "fmt", ..] | ["rustfmt", ..] if !has(&["--check"]) => Some("rewrites files"),
        ["cargo", "fix" | "add" | "remove", ..] => Some("rewrites files"),
        ["cargo", "clippy", ..] if has(&["--fix"]) => Some("rewrites files"),
        ["black" | "isort", ..] | ["ruff", "format", ..]
            if !has(&["--check", "--diff", "--check-only", "--version"]) =>
        {
            Some("rewrites files")
        }
        ["ruff", "check", ..] | ["eslint" | "stylelint", ..] | ["npx", "eslint", ..] if has(&["--fix"]) => {
            Some("rewrites files")
        }
        ["prettier", ..] | ["npx", "prettier", ..] if has(&["--write", "-w"]) => Some("rewrites files"),
        ["gofmt" | "goimports", ..] if has(&["-w"]) => Some("rewrites files"),
        ["go", "fmt" | "generate", ..] | ["go", "mod", "tidy", ..] => Some("rewrites files"),
        ["patch", ..] if !has(&["--dry-run"]) => Some("rewrites files"),
        _ => None,
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
