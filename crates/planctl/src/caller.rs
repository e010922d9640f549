//! Which commands only a person may give: one closed table, so that a command that is not in it is refused to workers.
//!
//! A worker reads plans, runs and asks, and works on items. Everything that decides, starts runs or processes of planctl's
//! own, stops the daemon, or opens the database is a person's (A34). The daemon refuses the same on its routes.

use clap::{ArgMatches, Subcommand as _};

use crate::args::{PlanVerb, RunVerb};
use crate::failure::Failure;
use crate::person::must_be_human;

/// The callers that may give a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Workers, contracts and people.
    Anyone,
    /// People only.
    Person,
}

use Caller::{Anyone, Person};

/// Every command, by its noun and verb; [`path_of`] returns these words, whichever way it was typed.
const COMMANDS: &[(&str, Caller)] = &[
    ("init", Person),
    ("plan new", Anyone),
    ("plan edit", Person),
    ("plan expand", Anyone),
    ("plan import", Anyone),
    ("plan draft", Person),
    ("goal decompose", Person),
    ("goal graph", Person),
    ("goal resolve", Person),
    ("goal verify", Person),
    ("goal stats", Person),
    ("tool ls", Person),
    ("tool show", Person),
    ("tool refresh", Person),
    ("tool call", Person),
    ("plan fmt", Anyone),
    ("plan verify", Anyone),
    ("plan explain", Anyone),
    ("plan show", Anyone),
    ("plan diff", Anyone),
    ("plan review", Person),
    ("plan approve", Person),
    ("plan reject", Person),
    ("plan run", Person),
    ("run watch", Anyone),
    ("run status", Anyone),
    ("plan ls", Anyone),
    ("run ls", Anyone),
    ("run show", Anyone),
    ("run context", Anyone),
    ("run logs", Anyone),
    ("run export", Anyone),
    ("run pause", Person),
    ("run resume", Person),
    ("run cancel", Person),
    ("run acknowledge", Person),
    ("approvals", Anyone),
    ("approvals ls", Anyone),
    ("approvals show", Anyone),
    ("approvals edit", Person),
    ("approvals approve", Person),
    ("approvals reject", Person),
    ("approvals retry", Person),
    ("approvals allow", Person),
    ("approvals restore", Person),
    ("approvals skip", Person),
    ("approvals waive", Person),
    ("approvals answer", Person),
    ("approvals choose", Person),
    ("approvals reassign", Person),
    ("approvals raise", Person),
    ("approvals cancel", Person),
    ("approvals revise", Person),
    ("run events", Anyone),
    ("run why", Anyone),
    ("run audit", Anyone),
    ("topic post", Anyone),
    ("topic ls", Anyone),
    ("topic show", Anyone),
    ("notify ls", Anyone),
    ("notify test", Person),
    ("notify deliveries", Anyone),
    ("notify replay", Person),
    ("guide on", Person),
    ("guide activate", Person),
    ("guide off", Person),
    ("guide status", Anyone),
    ("guide install", Person),
    ("guide doctor", Anyone),
    ("guard", Person),
    ("guard ls", Anyone),
    ("guard rm", Person),
    ("hook", Anyone),
    ("worker run", Anyone),
    ("worker test", Anyone),
    ("worker ls", Anyone),
    ("worker pause", Person),
    ("worker resume", Person),
    ("item claim", Anyone),
    ("item show", Anyone),
    ("item heartbeat", Anyone),
    ("item log", Anyone),
    ("item usage", Anyone),
    ("item complete", Anyone),
    ("item fail", Anyone),
    ("item ask", Anyone),
    ("item release", Anyone),
    ("roles ls", Anyone),
    ("token create", Person),
    ("token ls", Person),
    ("token revoke", Person),
    ("db status", Anyone),
    ("db url", Person),
    ("db psql", Person),
    ("db dump", Person),
    ("db backup", Person),
    ("db restore", Person),
    ("db prune", Person),
    ("db stop", Person),
    ("db reset", Person),
    ("db install", Person),
    ("daemon run", Person),
    ("daemon start", Person),
    ("daemon restart", Person),
    ("daemon stop", Person),
    ("daemon status", Anyone),
    ("daemon logs", Anyone),
    ("daemon migrate", Person),
    ("daemon install-service", Person),
    ("dev", Person),
    ("open", Person),
    ("demo", Person),
    ("doctor", Anyone),
    ("clean", Person),
    ("lsp", Anyone),
    ("mcp", Anyone),
    ("mcp install", Person),
    ("session prompt", Anyone),
    ("completions", Anyone),
    ("man", Anyone),
    ("config show", Anyone),
    ("config path", Anyone),
    ("trust", Person),
    ("library ls", Anyone),
    ("library show", Anyone),
    ("library match", Anyone),
    ("library new", Anyone),
    ("library edit", Person),
    ("library import", Person),
    ("library export", Anyone),
    ("library stats", Anyone),
    ("graph check", Anyone),
    ("graph parallel", Anyone),
    ("graph render", Anyone),
    ("schema", Anyone),
    ("help", Anyone),
    ("version", Anyone),
];

/// Returns the noun and verb of the command that was typed.
pub fn path_of(matches: &ArgMatches) -> String {
    let mut words = Vec::new();
    let mut at = matches;
    while let Some((word, below)) = at.subcommand() {
        words.push(word);
        at = below;
    }
    named(&words)
}

/// Names a command by its noun and verb: `planctl resume` and `planctl resume` are `run resume`.
fn named(words: &[&str]) -> String {
    match words {
        ["run"] => "plan run".to_owned(),
        ["ls"] => "run ls".to_owned(),
        [verb] if PlanVerb::has_subcommand(verb) => format!("plan {verb}"),
        [verb] | ["plan", verb] if RunVerb::has_subcommand(verb) => format!("run {verb}"),
        words => words.join(" "),
    }
}

/// Says whether only a person may give a command; [`path_of`] names it.
pub fn is_persons(command: &str) -> bool {
    !COMMANDS.iter().any(|(words, caller)| *words == command && *caller == Anyone)
}

/// Says whether words that do not parse as a command begin as one that only a person may give.
pub fn begins_as_persons(words: &[&str]) -> bool {
    let known = (1..=words.len().min(2)).rev().find_map(|count| {
        let path = named(&words[..count]);
        COMMANDS.iter().find(|(words, _)| *words == path).map(|(_, caller)| *caller)
    });
    known == Some(Person)
}

/// Refuses a command that is a person's to a process that a worker or a contract started (A34).
///
/// # Errors
///
/// Exit 77, with the command's name.
pub fn refuse_worker(command: &str) -> Result<(), Failure> {
    let known = COMMANDS.iter().find(|(words, _)| *words == command).map(|(_, caller)| *caller);
    match known {
        Some(Anyone) => Ok(()),
        Some(Person) | None => must_be_human(&format!("run `planctl {command}`")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    fn leaves<'a>(command: &'a Command, words: &[&'a str], found: &mut BTreeSet<String>) {
        let is_command = !command.has_subcommands() || !command.is_subcommand_required_set();
        if is_command && !words.is_empty() {
            found.insert(named(words));
        }
        for below in command.get_subcommands() {
            leaves(below, &[words, &[below.get_name()]].concat(), found);
        }
    }

    #[test]
    fn hole_5_every_command_says_whether_a_worker_may_give_it() {
        let mut typed = BTreeSet::new();
        leaves(&crate::args::command(), &[], &mut typed);
        let classified: BTreeSet<String> = COMMANDS.iter().map(|(words, _)| (*words).to_owned()).collect();
        assert_eq!(typed, classified, "crates/planctl/src/caller.rs lists every command");
        assert_eq!(classified.len(), COMMANDS.len(), "each stands there once");
    }

    #[test]
    fn hole_5_the_page_on_security_names_every_command_that_is_a_persons() {
        let page = include_str!("../../../docs/security.md");
        let (_, from) = page.split_once("<!-- person: begin -->").unwrap();
        let (listed, _) = from.split_once("<!-- person: end -->").unwrap();
        let listed: BTreeSet<&str> = listed.split('`').skip(1).step_by(2).collect();
        let of_people: BTreeSet<&str> =
            COMMANDS.iter().filter(|(_, caller)| *caller == Person).map(|(words, _)| *words).collect();
        assert_eq!(listed, of_people);
    }
}
