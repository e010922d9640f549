//! Checks the pages as texts: links, fences, pages of codes, and prose by a small list of words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use planctl_lang::Code;

use super::{pages, repository};

fn texts() -> BTreeMap<PathBuf, String> {
    let read = |page: PathBuf| (page.clone(), std::fs::read_to_string(page).unwrap());
    pages(repository()).into_iter().map(read).collect()
}

fn name(page: &Path) -> String {
    page.strip_prefix(repository()).unwrap().display().to_string()
}

/// Returns the lines outside fences, each with its number; and the line of a fence that never ends.
fn prose(text: &str) -> (Vec<(usize, &str)>, Option<usize>) {
    let (mut lines, mut fence) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        // Deeper than three spaces, a fence is text.
        let marks = line.strip_prefix("    ").map_or(line.trim_start(), |_| "");
        let marks = &marks[..marks.len() - marks.trim_start_matches('`').len()];
        fence = match fence {
            None if marks.len() >= 3 => Some((number, marks.len())),
            None => {
                lines.push((number, line));
                None
            }
            Some((_, length)) if marks.len() >= length && line.trim() == marks => None,
            open => open,
        };
    }
    (lines, fence.map(|(number, _)| number))
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the anchors of a page; a heading that stands twice has a number the second time.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let named = text.split("<a name=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
    let headings = prose(text).0.into_iter().filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len() && heading.starts_with(' ')).then(|| anchor(heading))
    });
    let numbered = headings.map(|heading| {
        let count = seen.entry(heading.clone()).or_default();
        *count += 1;
        if *count == 1 { heading } else { format!("{heading}-{}", *count - 1) }
    });
    named.chain(numbered).collect()
}

#[test]
fn every_link_leads_to_a_page_and_a_heading_that_are_there() {
    let mut broken = Vec::new();
    let texts = texts();
    for (page, text) in &texts {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            let is_there = target.exists();
            let target = target.canonicalize().unwrap_or_default();
            let target = std::fs::read_to_string(&target).unwrap_or_default();
            if !is_there || (!heading.is_empty() && !anchors(&target).contains(heading)) {
                broken.push(format!("{}: {link}", name(page)));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_fence_is_closed() {
    let open =
        texts().into_iter().filter_map(|(page, text)| Some(format!("{}:{}", name(&page), prose(&text).1?)));
    assert_eq!(open.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn every_code_has_its_page() {
    let missing: Vec<&Code> = Code::ALL
        .iter()
        .filter(|code| !repository().join(format!("docs/diagnostics/{code}.md")).exists())
        .collect();
    assert_eq!(missing, Vec::<&Code>::new());
}

/// A word or phrase that the pages do not use, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("accross", "across"),
    ("adress", "address"),
    ("behavior", "behaviour"),
    ("borne", "tolerated"),
    ("canceled", "cancelled"),
    ("come well", "succeed"),
    ("dependancy", "dependency"),
    ("enviroment", "environment"),
    ("existant", "existent"),
    ("explicitely", "explicitly"),
    ("go before", "take precedence over"),
    ("goes before", "takes precedence over"),
    ("it's own", "its own"),
    ("letter by letter", "exactly"),
    ("neccessary", "necessary"),
    ("none of theirs", "of others"),
    ("occured", "occurred"),
    ("recieve", "receive"),
    ("seperate", "separate"),
    ("somebody's", "a person's"),
    ("succesful", "successful"),
    ("teh", "the"),
    ("time after time", "repeatedly"),
    ("untill", "until"),
    ("whatever name it bends", "even with DNS rebinding"),
    ("whosoever", "each client"),
    ("wich", "which"),
];

/// The page that records what was, in the words of its time.
const RECORD: &str = "docs/CHANGELOG.md";

#[test]
fn the_prose_has_no_word_of_the_list_no_word_twice_and_a_subject_in_each_sentence() {
    let mut wrong = Vec::new();
    for (page, text) in texts() {
        let name = name(&page);
        let is_record = name == RECORD;
        for (number, line) in prose(&text).0 {
            let line = without_code(line);
            let mut report = |what: String| wrong.push(format!("{name}:{number}: {what}"));
            if !is_record {
                listed(&line).into_iter().for_each(&mut report);
            }
            if let Some(sentence) = without_subject(&line).filter(|_| !is_record) {
                report(format!("name the subject in place of `what` or `who`: {sentence}"));
            }
            if let Some(twice) = twice(&line) {
                report(format!("`{twice}` stands twice"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sentences that a reader who did not know planctl had to read twice, or that were not true; the words that tell them apart.
const READ_TWICE: &[&str] = &[
    "They need nothing but the programs below",
    "one by its name the variables of its own login",
    "and holds no worker meanwhile",
    "found upward from the workspace",
    "flags go before it",
    "planctl does not care",
    "The budget's hour runs while there is work to do",
    "says `**parallel:** 3`; without it they take turns",
    "A line adds ways",
    "where branches come together, the run waits for all, and so does its end",
    "Values are compared letter by letter",
    "takes the node's way for failures",
    "A gate that told nothing",
    "any silence is borne",
    "and a person's at once",
    "what rests after a failure is due",
    "what is none of theirs",
    "whatever name it bends",
    "is part of what a person approves",
    "where it does not come well",
    "Ctrl-C drains",
    "minds 0",
    "took up 0 runs",
    "one of these letters, please",
    "could not choose ask",
    "Begins a project:",
    "claimed, minded, reported",
    "no run goes on here",
    "it was before, too",
    "runs one step of a plan at a time",
    "planctl does not read such plans yet",
    "share one build",
    "` is no ",
    "are no evidence",
    "fewer plans around",
    "contract, exit code",
    "    then    planctl",
];

#[test]
fn no_sentence_that_had_to_be_read_twice_is_in_a_page_a_message_or_a_plan() {
    let mut texts = texts();
    let mut folders: Vec<PathBuf> = ["plans", "crates/planctl-lang/explain", "crates/planctl-lang/templates"]
        .map(|folder| repository().join(folder))
        .to_vec();
    let crates = std::fs::read_dir(repository().join("crates")).unwrap();
    folders.extend(crates.map(|one| one.unwrap().path().join("src")));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                texts.insert(path, text);
            }
        }
    }
    assert!(texts.len() > 300, "{}", texts.len());
    let there = texts.iter().flat_map(|(page, text)| {
        READ_TWICE
            .iter()
            .filter(|sentence| text.contains(**sentence))
            .map(|sentence| format!("{}: {sentence}", name(page)))
    });
    assert_eq!(there.collect::<Vec<_>>(), Vec::<String>::new());
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty())
}

/// Takes out inline code and the addresses of links.
fn without_code(line: &str) -> String {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let mut kept = String::new();
    let mut rest = outside.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        kept.push_str(before);
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    kept + rest
}

fn listed(line: &str) -> Vec<String> {
    let line = format!(" {} ", words(&line.to_lowercase()).collect::<Vec<_>>().join(" "));
    let found = WORDS.iter().filter(|(word, _)| line.contains(&format!(" {word} ")));
    found.map(|(word, instead)| format!("`{instead}` in place of `{word}`")).collect()
}

/// Finds a sentence whose subject is a relative clause: "What it prints is stored".
fn without_subject(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(['-', ' ']);
    if text.starts_with(['#', '|']) {
        return None;
    }
    let starts = std::iter::once(0).chain(text.match_indices(". ").map(|(at, _)| at + 2));
    let mut sentences = starts.map(|at| text[at..].split(". ").next().unwrap_or_default());
    let relative = ["What ", "Who ", "Whoever ", "Whatever "];
    sentences.find(|sentence| {
        relative.iter().any(|word| sentence.starts_with(word))
            && !sentence.contains('?')
            && !sentence.ends_with(':')
    })
}

/// Finds a word that stands twice in a row.
fn twice(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split(' ').collect();
    let is_word = |word: &str| word.len() > 1 && word.chars().all(char::is_alphabetic);
    let pair = parts.windows(2).find(|pair| {
        is_word(pair[0]) && pair[0].eq_ignore_ascii_case(pair[1]) && !matches!(pair[0], "that" | "had")
    });
    pair.map(|pair| pair[0].to_owned())
}

#[test]
fn cargo_binstall_asks_for_the_tarball_that_is_made_and_looks_into_it_where_the_binary_is() {
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).unwrap();
    let (manifest, make) = (read("crates/planctl/Cargo.toml"), read("packaging/make"));
    let value = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}"));
        line.trim_start_matches([' ', '=']).trim_matches('"').to_owned()
    };
    let rendered = |template: String| {
        let words = [("{ name }", "planctl"), ("{ version }", "$version"), ("{ bin }", "planctl")];
        let target = [("{ target }", "$machine-unknown-linux-gnu"), ("{ binary-ext }", "")];
        words.iter().chain(&target).fold(template, |text, (word, value)| text.replace(word, value))
    };
    let (name, url) = (value(&make, "name"), rendered(value(&manifest, "pkg-url")));
    assert!(make.contains("\"$out/$name.tar.gz\""), "the tarball is called so");
    assert!(url.ends_with(&format!("/v$version/{name}.tar.gz")), "{url}");
    assert!(make.contains("\"$stage/planctl\"") && make.contains("stage=$work/$name"));
    assert_eq!(rendered(value(&manifest, "bin-dir")), format!("{name}/planctl"));
    assert_eq!(value(&manifest, "pkg-fmt"), "tgz");
}

#[test]
fn the_checks_find_what_they_look_for() {
    assert_eq!(anchor("What the agent was `told`, twice!"), "what-the-agent-was-told-twice");
    assert!(anchors("# A b\n```\n# no\n```\n## A b\n").iter().eq(["a-b", "a-b-1"]));
    assert_eq!(prose("a\n````\n```\n````\nb\n").0, [(1, "a"), (5, "b")]);
    assert_eq!(prose("a\n```\nb```\n").1, Some(2));
    assert_eq!(
        listed("A flag goes before it, seperate"),
        ["`takes precedence over` in place of `goes before`", "`separate` in place of `seperate`",]
    );
    assert_eq!(without_subject("- It runs. What it prints is stored."), Some("What it prints is stored."));
    assert_eq!(without_subject("What is it?"), None);
    assert_eq!(twice("it is is so").as_deref(), Some("is"));
    assert_eq!(without_code("a `goes before` b [c](d.md) e"), "a ` b [c e");
}
