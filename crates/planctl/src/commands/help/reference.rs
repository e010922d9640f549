//! Keeps docs/commands.md: every command and every flag, made from the arguments themselves.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

/// How wide help is at most.
const WIDTH: usize = 100;
const HEAD: &str = "# Commands\n\n\
    Every command and every flag, made from the program: `PLANCTL_DOCS=write cargo test -p planctl --bin planctl reference`\n\
    writes this page. `planctl COMMAND --help` shows the same.\n";

#[test]
fn the_reference_has_every_command_and_every_flag() {
    let mut root = Cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    let globals: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    page.push_str("\n## Options of every command\n\n");
    page.push_str(&table(&globals));
    described(&root, &mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write") {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/commands.md is not what the arguments are: PLANCTL_DOCS=write cargo test -p planctl --bin planctl reference"
    );
}

/// An example that help folds is no command to copy any more.
#[test]
fn no_example_is_wider_than_help_is() {
    let wide = wide_examples(&Cli::command());
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

fn wide_examples(command: &Command) -> Vec<String> {
    let helps = [command.get_before_help(), command.get_before_long_help()];
    let text: String = helps.into_iter().flatten().map(|help| format!("{help}\n")).collect();
    let wide = text.lines().filter(|line| line.starts_with("  ") && line.chars().count() > WIDTH);
    let own = wide.map(|line| format!("{}: {line}", command.get_name()));
    own.chain(command.get_subcommands().flat_map(wide_examples)).collect()
}

/// Adds a command and those below it.
fn described(command: &Command, page: &mut String) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let mut sub = sub.clone();
        let name = sub.get_bin_name().unwrap_or(sub.get_name()).to_owned();
        page.push_str(&format!("\n## {name}\n\n"));
        let about = sub.get_long_about().or(sub.get_about()).map(ToString::to_string).unwrap_or_default();
        page.push_str(&sentence(&about));
        let aliases: Vec<String> = sub.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
        if !aliases.is_empty() {
            page.push_str(&format!(" Also: {}.", aliases.join(", ")));
        }
        let usage = sub.render_usage().to_string();
        // A command that is also a noun has a line for each.
        let usage =
            usage.trim_start_matches("Usage:").lines().map(single_spaced).filter(|line| !line.is_empty());
        let usage = usage.collect::<Vec<_>>().join("\n");
        page.push_str(&format!("\n\n```text\n{usage}\n```\n"));
        let own: Vec<&Arg> = sub.get_arguments().filter(|arg| is_own(arg)).collect();
        if !own.is_empty() {
            page.push_str(&format!("\n{}", table(&own)));
        }
        if let Some(examples) = sub.get_before_help().map(ToString::to_string) {
            page.push_str(&format!("\n```text\n{}\n```\n", examples.trim_end()));
        }
        described(&sub, page);
    }
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn table(arguments: &[&Arg]) -> String {
    let mut table = "| Argument | Meaning |\n|---|---|\n".to_owned();
    for arg in arguments {
        let names = [
            arg.get_short().map(|short| format!("-{short}")),
            arg.get_long().map(|long| format!("--{long}")),
        ];
        let names: Vec<String> = names.into_iter().flatten().collect();
        let takes = arg.get_action().takes_values();
        let values: Vec<String> = arg
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .filter(|_| takes)
            .map(ToString::to_string)
            .collect();
        let values =
            if takes && values.is_empty() { arg.get_id().as_str().to_uppercase() } else { values.join(" ") };
        let shown = [names.join(", "), values].join(" ");
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let paragraphs = help.split("\n\n").map(|paragraph| sentence(&single_spaced(paragraph)));
        let mut help = paragraphs.collect::<Vec<_>>().join(" ");
        let possible = arg.get_possible_values();
        let words: Vec<String> =
            possible.iter().filter(|_| takes).map(|value| format!("`{}`", value.get_name())).collect();
        if !words.is_empty() {
            help.push_str(&format!(" One of {}.", words.join(", ")));
        }
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        if takes && !defaults.is_empty() {
            help.push_str(&format!(" Default: `{}`.", defaults.join(" ")));
        }
        table.push_str(&format!("| `{}` | {} |\n", cell(shown.trim()), cell(&help)));
    }
    table
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
