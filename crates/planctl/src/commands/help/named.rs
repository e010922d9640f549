//! Finds commands and flags that a page names and planctl does not have.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use crate::args::Cli;

#[test]
fn each_command_and_flag_that_a_page_names_is_there() {
    let mut root = Cli::command();
    root.build();
    let mut unknown = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (number, line) in command_lines(&text) {
            count += 1;
            let found = unknown_word(&root, &line)
                .map(|word| format!("{}:{number}: {word} in `{line}`", page.display()));
            unknown.extend(found);
        }
    }
    assert!(count > 500, "{count}");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn a_command_that_is_not_there_or_has_another_name_is_found() {
    let mut root = Cli::command();
    root.build();
    let strange = |line: &str| unknown_word(&root, line);
    assert_eq!(strange("planctl item release"), None);
    assert_eq!(strange("planctl -C DIR run FILE --exec 'a --b' --no-wait"), None);
    assert_eq!(strange("item claim --shell"), None);
    assert_eq!(strange("planctl work release").as_deref(), Some("work"));
    assert_eq!(strange("work release").as_deref(), Some("work"));
    assert_eq!(strange("planctl approvals abort 3").as_deref(), Some("abort"));
    assert_eq!(strange("planctl verify FILE --via coder").as_deref(), Some("--via"));
    let lines = command_lines(
        "Say `planctl ls` or\n```bash\n$ planctl why   # b\nplanctl logs\n```\n```text\nplanctl 0.1\n```\n",
    );
    assert_eq!(
        lines,
        [(1, "planctl ls".to_owned()), (3, "planctl why   # b".to_owned()), (4, "planctl logs".to_owned())]
    );
}

/// Returns the pages that people read, but for the record of what was.
fn pages() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![repository.join("README.md")];
    for folder in ["docs", "docs/diagnostics"] {
        let entries = std::fs::read_dir(repository.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("CHANGELOG.md")
        }));
    }
    pages
}

/// Returns what a page says to type, by line: code within a sentence, and lines of scripts and consoles.
fn command_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<bool> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let is_script = ["bash", "sh", "shell"].iter().any(|shell| info.split(' ').next() == Some(shell));
            fence = if fence.is_some() { None } else { Some(is_script) };
            continue;
        }
        let typed = line.trim_start();
        let found: Vec<&str> = match fence {
            None => line.split('`').skip(1).step_by(2).collect(),
            Some(is_script) => typed
                .strip_prefix("$ ")
                .or(is_script.then_some(typed))
                .into_iter()
                .filter(|line| line.starts_with("planctl "))
                .collect(),
        };
        lines.extend(found.into_iter().map(|line| (number, line.to_owned())));
    }
    lines
}

/// Returns the first word of a line that stands where a command or a flag of planctl does and is none.
fn unknown_word(root: &Command, line: &str) -> Option<String> {
    let mut typed = line.split_whitespace().map(|word| word.trim_matches(['[', ']'])).peekable();
    let is_named = typed.next_if_eq(&"planctl").is_some();
    let mut at = root;
    let mut quoted = None;
    while let Some(word) = typed.next() {
        // Words of others begin: in quotes, behind a pipe, in a comment.
        if let Some(quote) = quoted {
            quoted = Some(quote).filter(|quote| !word.ends_with(*quote));
            continue;
        }
        if word.starts_with(['|', '&', ';', '#', '<', '>', '(', '…', '→']) || word == "--" {
            return None;
        }
        if let Some(quote) = word.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            quoted = Some(quote).filter(|_| word.len() == 1 || !word.ends_with(quote));
            continue;
        }
        if let Some(flag) = word.strip_prefix('-') {
            let flag = flag.split('=').next().unwrap_or_default();
            let known = at.get_arguments().find(|arg| match flag.strip_prefix('-') {
                Some(long) => {
                    arg.get_all_aliases().unwrap_or_default().contains(&long) || arg.get_long() == Some(long)
                }
                None => arg.get_short().is_some_and(|short| flag.starts_with(short)),
            });
            let Some(known) = known else {
                return is_named.then(|| word.to_owned()).filter(|_| flag.len() > 1);
            };
            if known.get_action().takes_values() && !word.contains('=') {
                typed.next_if(|value| !value.starts_with(['\'', '"']));
            }
            continue;
        }
        let is_word = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        match at.find_subcommand(word) {
            Some(below)
                if below.get_name() == word || below.get_visible_aliases().any(|alias| alias == word) =>
            {
                at = below
            }
            // A sentence may have any word in this place; only a noun of planctl makes it a command.
            Some(_)
                if is_named
                    || typed.peek().is_some_and(|verb| {
                        at.find_subcommand(word).is_some_and(|noun| noun.find_subcommand(verb).is_some())
                    }) =>
            {
                return Some(word.to_owned());
            }
            Some(_) => return None,
            None if is_word && at.has_subcommands() && at.get_positionals().next().is_none() => {
                let is_command = is_named || !std::ptr::eq(at, root);
                return is_command.then(|| word.to_owned());
            }
            None if !is_named && std::ptr::eq(at, root) => return None,
            None => {}
        }
    }
    None
}
