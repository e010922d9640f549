//! P601, P602, P604: contracts that reach out of the machine or destroy what is in it, and credentials in the plan.

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::shell::{self, Call, Command, Part, Script, Simple, Trait, Word, is_here};
use crate::text::{Span, escape};

pub(super) const LINT: Lint =
    Lint { codes: &[Code::P601, Code::P602, Code::P604], needs: Needs::Text, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (at, step) in context.each_step() {
        let (Some(contract), Some(script)) = (&step.contract, context.scripts.read_of(at)) else { continue };
        if let Some((name, span)) = first_network(script) {
            let message = format!("the contract needs the network: `{}`", escape(&name));
            let reaches =
                Diagnostic::new(Code::P601, message).at(contract.in_plan(span), "").step(step.step_name());
            found.push(
                reaches.help(
                    "look at what is here, such as a file or the local repository: when the network fails, no worker can mend it",
                ),
            );
        }
        if let Some((name, span)) = first_destructive(script) {
            let message = format!("the contract runs a destructive command: `{}`", escape(&name));
            let destroys =
                Diagnostic::new(Code::P602, message).at(contract.in_plan(span), "").step(step.step_name());
            found.push(
                destroys.help(
                    "let the task delete it, and the contract look whether it is gone: `test ! -e PATH`",
                ),
            );
        }
    }
    credentials(context, found);
}

// The message names the kind and the place, never the text.
fn credentials(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for secret in context.source.secrets() {
        let holder = context.steps.iter().rfind(|step| step.span.start <= secret.span.start);
        let message = format!("the plan holds what looks like {}", secret.kind);
        let mut holds = Diagnostic::new(Code::P604, message).at(secret.span, "masked here");
        if let Some(step) = holder {
            holds = holds.step(step.step_name());
        }
        holds = holds.note("plans are stored, shown, sent to agents and kept in git");
        found.push(holds.help(
            "take it out and change it where it is valid; let the command read it from its environment \
             (`[contracts] env` in planctl.toml)",
        ));
    }
}

pub(super) type Located = Option<(String, Span)>;

/// Returns the first command that reaches another machine, and where it stands.
pub(super) fn first_network(script: &Script) -> Located {
    let mut first = None;
    let local = local_variables(script);
    shell::each(script, &mut |command| {
        let redirects = match command {
            Command::Simple(simple) => {
                let is_local = |word: &Word| {
                    let begins = |part: &Part| matches!(part, Part::Variable(name) if local.contains(name));
                    word.parts.first().is_some_and(begins)
                };
                if first.is_none() && !simple.words.iter().any(is_local) {
                    let reaches = shell::calls(simple).find(|call| call.does(Trait::Network));
                    first = reaches.map(|call| (call.name().to_owned(), simple.span));
                }
                &simple.redirects
            }
            Command::Compound(compound) => &compound.redirects,
            Command::Test { redirects, .. } => redirects,
            Command::Function { .. } => return,
        };
        let socket = redirects.iter().find(|redirect| {
            let target = redirect.target.text();
            let is_socket = target.starts_with("/dev/tcp/") || target.starts_with("/dev/udp/");
            is_socket && !redirect.is_document && !is_here(target)
        });
        if let Some(redirect) = socket.filter(|_| first.is_none()) {
            first = Some(("/dev/tcp".to_owned(), redirect.target.span));
        }
    });
    first
}

/// Returns the first command that destroys, and where it stands.
pub(super) fn first_destructive(script: &Script) -> Located {
    let mut first: Located = None;
    let scratch = scratch_variables(script);
    shell::each(script, &mut |command| match command {
        Command::Simple(simple) if first.is_none() => {
            let destroys =
                |words: &&[Word]| Call::of(words).does(Trait::Destroys) && !only_scratch(words, &scratch);
            first = shell::all_commands(&simple.words).into_iter().find(destroys).map(|words| {
                let texts: Vec<&str> = words.iter().take(2).map(Word::text).collect();
                (texts.join(" "), simple.span)
            });
        }
        Command::Function { name, body, span } if first.is_none() && is_fork_bomb(name, body) => {
            first = Some((format!("{name}()"), *span));
        }
        Command::Simple(_) | Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => {}
    });
    first
}

// `:(){ :|:& };:`
fn is_fork_bomb(name: &str, body: &Script) -> bool {
    let mut is_bomb = false;
    shell::each_list(body, &mut |list| {
        for item in &list.items {
            let calls = item.first.commands.iter().filter_map(Command::as_simple);
            is_bomb |= item.is_background && calls.filter(|simple| simple.name() == Some(name)).count() > 1;
        }
    });
    is_bomb
}

// Variables that hold an address of this machine.
fn local_variables(script: &Script) -> Vec<String> {
    let mut names = Vec::new();
    shell::each_simple(script, &mut |simple| {
        let values = simple.assignments.iter().filter_map(|word| word.raw.split_once('='));
        names.extend(values.filter(|(_, value)| is_here(value)).map(|(name, _)| name.to_owned()));
    });
    names
}

// Variables that hold what `mktemp` made.
fn scratch_variables(script: &Script) -> Vec<String> {
    let mut names = vec!["TMPDIR".to_owned()];
    shell::each_simple(script, &mut |simple| {
        for word in &simple.assignments {
            let mut is_made = word.raw.contains("=/tmp/");
            word.nested.iter().for_each(|nested| {
                shell::each_simple(nested, &mut |inner: &Simple| is_made |= inner.name() == Some("mktemp"));
            });
            names.extend(word.raw.split_once('=').filter(|_| is_made).map(|(name, _)| name.to_owned()));
        }
    });
    names
}

// A contract may clear what it made itself in a place of its own.
fn only_scratch(words: &[Word], scratch: &[String]) -> bool {
    let is_scratch = |word: &Word| match word.parts.first() {
        Some(Part::Variable(name)) => scratch.contains(name),
        Some(Part::Text(text) | Part::Pattern(text)) => text.starts_with("/tmp/") && text.len() > 5,
        Some(Part::Default { .. } | Part::Output(_) | Part::Unknown) | None => false,
    };
    let name = words.first().map(Word::text);
    if name == Some("dd") {
        let written = words.iter().filter_map(|word| word.text().strip_prefix("of="));
        return written
            .fold(true, |is_scratch, path| is_scratch && path.starts_with("/tmp/") && path.len() > 5);
    }
    let is_size =
        |at: usize| name == Some("truncate") && matches!(words[at - 1].text(), "-s" | "--size" | "-r");
    let targets = (1..words.len()).filter(|at| !words[*at].raw.starts_with('-') && !is_size(*at));
    let mut targets = targets.map(|at| &words[at]).peekable();
    matches!(name, Some("rm" | "truncate" | "chmod")) && targets.peek().is_some() && targets.all(is_scratch)
}
