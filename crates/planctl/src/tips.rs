//! Says what to type in place of a word that is no command or flag of planctl.
//!
//! Two sources, and no other: a table of words that people know from other tools, and slips of the hand, one letter
//! away. A command that destroys or trusts something is never proposed, whatever it looks like.

use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use planctl_lang::workflow::Language;

use crate::failure::Failure;
use crate::show::{self, shell_word};

/// Words of other tools, and what is typed here. A word with a noun before it is looked up first.
const HABITS: [(&str, &str); 80] = [
    ("validate", "planctl verify FILE"),
    ("lint", "planctl verify FILE"),
    ("check", "planctl verify FILE"),
    ("test", "planctl verify FILE"),
    ("create", "planctl new"),
    ("add", "planctl new"),
    ("apply", "planctl run FILE"),
    ("exec", "planctl run FILE"),
    ("execute", "planctl run FILE"),
    ("plan apply", "planctl run FILE"),
    ("plan start", "planctl run FILE"),
    ("stop", "planctl cancel RUN"),
    ("kill", "planctl cancel RUN"),
    ("abort", "planctl cancel RUN"),
    ("rm", "planctl cancel RUN"),
    ("delete", "planctl cancel RUN"),
    ("remove", "planctl cancel RUN"),
    ("approvals abort", "planctl approvals cancel ASK"),
    ("approvals choice", "planctl approvals choose ASK OPTION"),
    ("approvals deny", "planctl approvals reject ASK"),
    ("approvals rm", "planctl approvals reject ASK"),
    ("retry", "planctl approvals retry, where a step waits for you; planctl resume RUN after a failure"),
    ("rerun", "planctl run FILE --again"),
    ("restart", "planctl run FILE --again"),
    ("redo", "planctl run FILE --again"),
    ("continue", "planctl resume RUN"),
    ("unpause", "planctl resume RUN"),
    ("hold", "planctl pause RUN"),
    ("get", "planctl ls"),
    ("info", "planctl status RUN"),
    ("describe", "planctl status RUN"),
    ("inspect", "planctl status RUN"),
    ("view", "planctl show FILE"),
    ("cat", "planctl show FILE"),
    ("tail", "planctl logs"),
    ("output", "planctl logs"),
    ("follow", "planctl watch RUN"),
    ("attach", "planctl watch RUN"),
    ("top", "planctl watch RUN"),
    ("ask", "planctl approvals"),
    ("asks", "planctl approvals"),
    ("answer", "planctl approvals"),
    ("deny", "planctl reject FILE"),
    ("up", "planctl daemon start"),
    ("serve", "planctl daemon start"),
    ("start", "planctl daemon start; planctl run FILE for a plan"),
    ("down", "planctl daemon stop"),
    ("logout", "planctl needs no login; tokens are made with planctl token create"),
    ("login", "planctl needs no login; tokens are made with planctl token create"),
    ("auth", "planctl needs no login; tokens are made with planctl token create"),
    ("update", "planctl is updated the way it was installed; the README lists these ways"),
    ("upgrade", "planctl is updated the way it was installed; the README lists these ways"),
    ("self", "planctl is updated the way it was installed; the README lists these ways"),
    ("config get", "planctl config show"),
    ("config list", "planctl config show"),
    ("config view", "planctl config show"),
    ("config set", "edit the file that planctl config path names"),
    ("config edit", "edit the file that planctl config path names"),
    ("generate", "planctl plan draft GOAL"),
    ("convert", "planctl plan import FILE"),
    ("approvals accept", "planctl approvals approve ASK"),
    ("approvals view", "planctl approvals show ASK"),
    ("worker stop", "planctl worker pause NAME"),
    ("daemon kill", "planctl daemon stop"),
    ("token delete", "planctl token revoke ID"),
    ("token rm", "planctl token revoke ID"),
    ("guide start", "planctl guide on FILE"),
    ("guide stop", "planctl guide off"),
    ("graph draw", "planctl graph render FILE"),
    ("graph validate", "planctl graph check FILE"),
    ("library search", "planctl library match MESSAGE"),
    ("library find", "planctl library match MESSAGE"),
    ("topic add", "planctl topic post NAME"),
    ("accept", "planctl approve FILE"),
    ("setup", "planctl init"),
    ("health", "planctl doctor"),
    ("templates", "planctl new --list"),
    ("ui", "planctl open"),
    ("web", "planctl open"),
    ("dashboard", "planctl open"),
];

/// Flags of other tools, and what is typed here.
const FLAGS: [(&str, &str); 25] = [
    ("--parallel", "the plan says it: **parallel:** 3, and **needs:** in its steps"),
    ("--jobs", "the plan says it: **parallel:** 3, and **needs:** in its steps"),
    ("--via", "planctl plan review FILE --role ROLE"),
    ("--template", "planctl new FILE --from TEMPLATE; planctl new --list lists the templates"),
    ("--name", "--title TITLE names a new plan; a run is named after its file"),
    ("-m", "--note TEXT"),
    ("--message", "--note TEXT"),
    ("--reason", "--note TEXT"),
    ("--comment", "--note TEXT"),
    ("-y", "--yes answers a confirmation; --approve approves a plan"),
    ("--auto-approve", "--approve"),
    ("--non-interactive", "--no-input"),
    ("--background", "--detach"),
    ("--cmd", "--exec CMD"),
    ("--command", "--exec CMD"),
    ("--worker", "--exec CMD or --agent NAME"),
    ("-n", "--tail N prints the newest"),
    ("--limit", "--tail N prints the newest"),
    ("-w", "planctl watch RUN follows a run"),
    ("--watch", "planctl watch RUN follows a run"),
    ("--debug", "PLANCTL_LOG=debug logs everything; -v prints more"),
    ("--force", "planctl asks instead; --yes answers a confirmation, and nothing overrules a contract"),
    ("--no-verify", "no step passes without its contract"),
    ("--dry-run", "planctl show FILE shows what would run"),
    ("--repair", "planctl goal resolve GOAL --repair RUN; planctl plan draft GOAL --repair RUN"),
];

/// Commands that no tip proposes.
const NEVER: [&str; 4] = ["trust", "clean", "reset", "rm"];

/// Adds a tip to a misused command line, where one is known.
pub fn add(error: &mut clap::Error, root: &Command, typed: &[String]) {
    let plain = of_bytes(error, root, typed)
        .or_else(|| without_jargon(error, reached(root, typed).0))
        .or_else(|| of_second_plan(error, root, typed));
    if let Some(plain) = plain {
        *error = plain;
        return;
    }
    // Nobody reads a list of all commands in one line.
    for looks_alike in
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::ValidSubcommand]
    {
        error.remove(looks_alike);
    }
    let value = |kind| text_of(error, kind);
    if let (Some(given), Some(alike)) = (value(ContextKind::InvalidValue), value(ContextKind::SuggestedValue))
        && !is_slip(&given, &alike)
    {
        error.remove(ContextKind::SuggestedValue);
    }
    let advice = error.remove(ContextKind::Suggested).and_then(|_| dashed_value(error, root, typed));
    let tip = match (
        error.kind(),
        text_of(error, ContextKind::InvalidSubcommand),
        text_of(error, ContextKind::InvalidArg),
    ) {
        (ErrorKind::InvalidSubcommand, Some(word), _) => command_tip(root, typed, &word),
        (ErrorKind::UnknownArgument, _, Some(flag)) => flag_tip(root, typed, &flag),
        _ => None,
    };
    let dashed = typed.iter().find(|word| word.starts_with('-') && Path::new(word).is_file());
    let tip = dashed.map(|file| format!("a file whose name begins with a dash: ./{file}")).or(tip);
    let tip =
        quoted_command(error, root, typed).or(tip).map(|tip| ContextValue::StyledStrs(vec![tip.into()]));
    if let Some(tip) = tip.or(advice) {
        error.insert(ContextKind::Suggested, tip);
    }
}

/// Returns how a command is passed that the shell split into words: as one.
fn quoted_command(error: &clap::Error, root: &Command, typed: &[String]) -> Option<String> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let refused = kinds.into_iter().find_map(|kind| text_of(error, kind))?;
    let flag = typed.iter().position(|word| word == "--exec");
    let noun = || typed.iter().position(|word| word == "guard" && reached(root, typed).1 == ["guard"]);
    let at = flag.or_else(noun)?;
    let words: Vec<&str> =
        typed[at + 1..].iter().map(String::as_str).take_while(|word| !word.starts_with("--")).collect();
    let is_of_it = words.iter().skip(1).any(|word| *word == refused);
    is_of_it.then(|| format!("one command is one word: {} {}", typed[at], shell_word(&words.join(" "))))
}

/// Returns how a word is passed that begins with a dash and was taken for a flag: a value may begin with one, and hardly with
/// two.
fn dashed_value(error: &clap::Error, root: &Command, typed: &[String]) -> Option<ContextValue> {
    let flag = text_of(error, ContextKind::InvalidArg).filter(|flag| !flag.starts_with("--"))?;
    let at = typed.iter().position(|word| word.starts_with(&flag))?;
    let word = shell_word(&typed[at]);
    let before = at.checked_sub(1).map_or("", |before| &typed[before]);
    let takes_value =
        |arg: &clap::Arg| arg.get_action().takes_values() && arg.get_long() == before.strip_prefix("--");
    let is_value = before.starts_with("--") && reached(root, typed).0.get_arguments().any(takes_value);
    let way = if is_value { format!("{before}={word}") } else { format!("-- {word}") };
    Some(ContextValue::StyledStrs(vec![format!("a value that begins with a dash: {way}").into()]))
}

/// Returns an error about a number in words that a person knows; clap repeats those of the standard library.
fn without_jargon(error: &clap::Error, typed: &Command) -> Option<clap::Error> {
    let source = std::error::Error::source(error)?;
    let kind = source.downcast_ref::<ParseIntError>()?.kind();
    let is_too_large = matches!(kind, IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
    let wanted = if is_too_large { "a smaller number" } else { "a whole number" };
    let argument = text_of(error, ContextKind::InvalidArg)?;
    let value = text_of(error, ContextKind::InvalidValue)?;
    let message = format!("invalid value '{value}' for '{argument}': {wanted} is expected");
    Some(typed.clone().error(ErrorKind::ValueValidation, message))
}

/// Returns an error about a word that is no text, which names it.
fn of_bytes(error: &clap::Error, root: &Command, typed: &[String]) -> Option<clap::Error> {
    let word = typed.iter().find(|word| word.contains(char::REPLACEMENT_CHARACTER));
    let word = word.filter(|_| error.kind() == ErrorKind::InvalidUtf8)?;
    Some(root.clone().error(ErrorKind::InvalidUtf8, Failure::not_text(&show::safe(word)).message))
}

/// Returns an error about a second plan where a command takes one, which clap takes for a command or for anything else.
fn of_second_plan(error: &clap::Error, root: &Command, typed: &[String]) -> Option<clap::Error> {
    let kind = match error.kind() == ErrorKind::ArgumentConflict {
        true => ContextKind::InvalidSubcommand,
        false => ContextKind::InvalidArg,
    };
    let word = text_of(error, kind)?;
    if word.starts_with('-') || !is_plan(&word) {
        return None;
    }
    let command = reached(root, typed).1.join(" ");
    let message = format!("one plan at a time: `planctl {command}` takes no second one, and '{word}' is one");
    Some(root.clone().error(error.kind(), message))
}

/// Says whether a word is the name of a plan's file.
fn is_plan(word: &str) -> bool {
    word.ends_with(".md") || Language::of(word).is_some()
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    }
}

/// Follows the words that were typed as far as they are commands, and returns the last of these and its words.
fn reached<'a>(root: &'a Command, typed: &[String]) -> (&'a Command, Vec<&'a str>) {
    let mut at = root;
    let mut words = Vec::new();
    for word in typed {
        if let Some(below) = at.find_subcommand(word) {
            words.push(below.get_name());
            at = below;
        }
    }
    (at, words)
}

fn command_tip(root: &Command, typed: &[String], word: &str) -> Option<String> {
    let before = typed.iter().position(|typed| typed == word).unwrap_or(typed.len());
    let (parent, words) = reached(root, &typed[..before]);
    let noun = words.join(" ");
    let known = |key: &str| HABITS.iter().find(|(habit, _)| *habit == key).map(|(_, tip)| *tip);
    let of_run_or_plan = matches!(noun.as_str(), "" | "plan" | "run");
    if let Some(tip) =
        known(format!("{noun} {word}").trim()).or_else(|| known(word).filter(|_| of_run_or_plan))
    {
        return Some(tip.to_owned());
    }
    if noun == "approvals" && word.parse::<u64>().is_ok() {
        return Some(format!("planctl approvals show {word}"));
    }
    if noun.is_empty() && is_plan(word) {
        return Some(format!("planctl run {}", shell_word(word)));
    }
    let names = parent.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
    if let Some(near) = names.filter(|name| !NEVER.contains(name)).find(|name| is_slip(word, name)) {
        return Some(format!("did you mean `{}`?", format!("planctl {noun} {near}").replace("  ", " ")));
    }
    if noun == "goal" {
        let goal = typed[before..].iter().map(String::as_str).take_while(|word| !word.starts_with("--"));
        return Some(format!("planctl goal resolve {}", shell_word(&goal.collect::<Vec<_>>().join(" "))));
    }
    command_elsewhere(root, word).filter(|_| !NEVER.contains(&word))
}

/// Returns the command that a word is elsewhere: `planctl plan doctor`, `planctl import`. Where several nouns have it, that
/// of plans is meant, and of others none.
fn command_elsewhere(root: &Command, word: &str) -> Option<String> {
    if let Some(command) = root.find_subcommand(word) {
        return Some(format!("planctl {}", command.get_name()));
    }
    let below = |noun: &Command| {
        let verb = noun.find_subcommand(word).filter(|verb| !verb.is_hide_set())?;
        Some(format!("planctl {} {}", noun.get_name(), verb.get_name()))
    };
    let of_others = || {
        let mut found = root.get_subcommands().filter_map(below);
        found.next().filter(|_| found.next().is_none())
    };
    root.find_subcommand("plan").and_then(below).or_else(of_others)
}

fn flag_tip(root: &Command, typed: &[String], flag: &str) -> Option<String> {
    let (command, _) = reached(root, typed);
    let longs = || command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long);
    // A tip that is a flag is one of this command.
    let is_here = |tip: &str| {
        let long = tip.split_whitespace().next().and_then(|word| word.strip_prefix("--"));
        long.is_none_or(|named| longs().any(|long| long == named))
    };
    if let Some((_, tip)) = FLAGS.iter().find(|(known, tip)| *known == flag && is_here(tip)) {
        return Some((*tip).to_owned());
    }
    let typed = flag.strip_prefix("--")?;
    let near = longs().find(|long| is_slip(typed, long))?;
    Some(format!("did you mean `--{near}`?"))
}

/// Says whether a word is another one with a slip of the hand: one letter more, less, another, or two that changed places.
fn is_slip(typed: &str, meant: &str) -> bool {
    typed.len() >= 3 && strsim::osa_distance(typed, meant) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tip_is_a_command_that_destroys_or_trusts() {
        for (habit, tip) in HABITS.iter().chain(&FLAGS) {
            let words: Vec<&str> = tip.split_whitespace().collect();
            for never in ["trust", "clean", "reset", "discard"] {
                assert!(!words.contains(&never), "{habit}: {tip}");
            }
        }
    }

    #[test]
    fn every_habit_stands_there_once_and_is_no_command() {
        let root = crate::args::command();
        for (at, (habit, _)) in HABITS.iter().enumerate() {
            assert!(HABITS[at + 1..].iter().all(|(other, _)| other != habit), "{habit}");
            let mut command = Some(&root);
            for word in habit.split(' ') {
                command = command.and_then(|command| command.find_subcommand(word));
            }
            assert!(command.is_none(), "{habit} is a command");
        }
    }
}
