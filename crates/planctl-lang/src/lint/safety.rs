//! P6xx: contracts that reach out of the machine or destroy what is in it.

use super::Lint;
use crate::diagnostic::{Code, Diagnostic};
use crate::parse::name_of;
use crate::shell::{self, Simple};
use crate::source::escape;

pub(super) fn lint(lint: &Lint<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in lint.tree.steps.iter().enumerate() {
        let (Some(contract), Some(script)) = (&step.contract, lint.scripts.read_of(at)) else { continue };
        let (mut network, mut destroys) = (None, None);
        shell::each_simple(script, &mut |simple| {
            let words = literal_words(simple);
            if network.is_none() && needs_network(&words) {
                network = Some((words[0].to_owned(), simple.span));
            }
            if destroys.is_none() && is_destructive(&words) {
                destroys = Some((words[..words.len().min(2)].join(" "), simple.span));
            }
        });
        if let Some((name, span)) = network {
            let message = format!("the contract needs the network: `{}`", escape(&name));
            let reaches =
                Diagnostic::new(Code::P601, message).at(contract.in_plan(span), "").step(name_of(step));
            found.push(
                reaches.help(
                    "look at what is here, such as a file or the local repository: when the network fails, no worker can mend it",
                ),
            );
        }
        if let Some((name, span)) = destroys {
            let message = format!("the contract runs a destructive command: `{}`", escape(&name));
            let destroys =
                Diagnostic::new(Code::P602, message).at(contract.in_plan(span), "").step(name_of(step));
            found.push(
                destroys.help(
                    "let the task delete it, and the contract look whether it is gone: `test ! -e PATH`",
                ),
            );
        }
    }
}

// Wrappers are looked through, so that `sudo rm -rf` is seen.
fn literal_words(simple: &Simple) -> Vec<&str> {
    let words: Vec<&str> =
        simple.words.iter().map(|word| word.literal.as_deref().unwrap_or(&word.raw)).collect();
    let begin = words.iter().position(|word| {
        !matches!(*word, "sudo" | "env" | "nohup" | "command" | "exec" | "time" | "timeout")
            && !word.contains('=')
            && !word.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    });
    words[begin.unwrap_or(0)..].to_vec()
}

fn needs_network(words: &[&str]) -> bool {
    match words {
        ["curl" | "wget", rest @ ..] => {
            !rest.iter().any(|word| word.contains("localhost") || word.contains("127.0.0.1"))
        }
        [
            "ssh" | "scp" | "sftp" | "gh" | "glab" | "aws" | "gcloud" | "az" | "kubectl" | "ping" | "nc"
            | "dig" | "host",
            ..,
        ] => true,
        ["git", "push" | "pull" | "fetch" | "clone" | "ls-remote", ..] => true,
        ["npm" | "pnpm" | "yarn", "install" | "ci" | "add" | "publish" | "audit", ..] => true,
        ["pip" | "pip3", "install" | "download", ..]
        | ["cargo", "install" | "publish" | "update" | "search", ..] => true,
        ["docker" | "podman", "pull" | "push" | "login", ..] => true,
        ["apt" | "apt-get" | "dnf" | "apk" | "brew", ..] => true,
        _ => false,
    }
}

fn is_destructive(words: &[&str]) -> bool {
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(word));
    let short = |letter: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    match words {
        ["rm", ..] => short('r') || short('R') || has(&["--recursive"]),
        ["git", "reset", ..] => has(&["--hard"]),
        ["git", "clean", ..] => short('f') || has(&["--force"]),
        ["git", "checkout" | "restore", ..] => has(&["--", "."]),
        ["git", "push", ..] => short('f') || has(&["--force", "--delete", "--mirror"]),
        ["git", "branch", ..] => has(&["-D"]),
        ["find", ..] => has(&["-delete"]),
        ["chmod" | "chown", ..] => short('R') || has(&["--recursive"]),
        [
            "dd" | "shred" | "truncate" | "shutdown" | "reboot" | "halt" | "pkill" | "killall" | "dropdb",
            ..,
        ] => true,
        ["docker" | "podman", "system" | "volume", "prune", ..] => true,
        [name, ..] => name.starts_with("mkfs"),
        [] => false,
    }
}
