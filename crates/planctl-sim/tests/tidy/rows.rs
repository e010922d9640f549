//! Rows of bad input and attacks: each has a test that is named after it, so that nobody has to search.
//!
//! `row_86_…`, `rows_74_to_80_…` and `rows_72_and_73_…` name rows, `a38_a39_…` attacks; the list is `rows.txt`.

use std::collections::BTreeMap;

use super::sources::{Source, all};

const LIST: &str = include_str!("rows.txt");

#[test]
fn every_row_and_every_attack_of_the_list_has_a_test_named_after_it() {
    let named = named();
    let missing: Vec<&str> = LIST.lines().filter(|line| !named.contains_key(&tag(line))).collect();
    assert!(missing.is_empty(), "no test is named after these (row_86_…, a13_…):\n{}", missing.join("\n"));
}

#[test]
fn the_list_is_whole_and_in_order() {
    let tags: Vec<String> = LIST.lines().map(tag).collect();
    let rows: Vec<String> = (67..=113).map(|row| format!("row {row}")).collect();
    assert_eq!(tags[..rows.len()], rows);
    let attacks = &tags[rows.len()..];
    assert!(attacks.len() == 23 && attacks.is_sorted(), "{attacks:?}");
    assert!(LIST.lines().all(|line| line.len() > 9), "each says what it is");
}

/// Returns what a line of the list is about: `row 86`, `a13`.
fn tag(line: &str) -> String {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("row"), Some(number)) => format!("row {number}"),
        (Some(attack), _) => attack.to_lowercase(),
        (None, _) => String::new(),
    }
}

/// Returns the names of tests by what they are named after.
fn named() -> BTreeMap<String, Vec<String>> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in all() {
        for name in tests_of(source) {
            for tag in tags_of(&name) {
                named.entry(tag).or_default().push(name.clone());
            }
        }
    }
    named
}

/// Returns the names of a file's test functions: marked as such, or handed to a harness of the file's own.
fn tests_of(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.code.lines().map(str::trim).collect();
    let is_own_harness = source.path.starts_with("crates/planctl-harness/tests/processes/");
    let functions = lines.iter().enumerate().filter_map(|(at, line)| {
        let rest = line.split_once("fn ").filter(|(before, _)| ["", "async ", "pub "].contains(before))?.1;
        let name = rest.split(['(', '<']).next()?.to_owned();
        let is_marked = lines[..at]
            .iter()
            .rev()
            .take_while(|above| above.starts_with("#[") || above.is_empty())
            .any(|above| above.starts_with("#[test]") || above.starts_with("#[tokio::test"));
        let is_handed = is_own_harness && source.code.matches(name.as_str()).count() > 1;
        (is_marked || is_handed).then_some(name)
    });
    functions.collect()
}

fn tags_of(name: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut parts = name.split('_').peekable();
    while let Some(part) = parts.next() {
        let attack = part.strip_prefix('a').filter(|digits| digits.len() == 2);
        if attack.is_some_and(|digits| digits.parse::<u8>().is_ok()) {
            tags.push(part.to_owned());
        }
        if part != "row" && part != "rows" {
            continue;
        }
        let mut last: Option<u32> = None;
        let mut is_range = false;
        while let Some(next) = parts.peek() {
            match (next.parse::<u32>(), *next) {
                (Ok(number), _) => {
                    let from = last.filter(|_| is_range).map_or(number, |last| last + 1);
                    tags.extend((from..=number).map(|row| format!("row {row}")));
                    (last, is_range) = (Some(number), false);
                }
                (Err(_), "to") => is_range = true,
                (Err(_), "and") => {}
                (Err(_), _) => break,
            }
            parts.next();
        }
    }
    tags
}

#[test]
fn names_are_read() {
    assert_eq!(tags_of("rows_74_to_76_bodies"), ["row 74", "row 75", "row 76"]);
    assert_eq!(tags_of("rows_72_and_73_a_key"), ["row 72", "row 73"]);
    assert_eq!(tags_of("p22_row_99_ctrl_c"), ["row 99"]);
    assert_eq!(tags_of("row_95_a45_as_they_are"), ["row 95", "a45"]);
    assert_eq!(tags_of("a_row_of_ants_abc"), [""; 0]);
    let text =
        "//! Says.\n#[tokio::test]\nasync fn row_1_x() {}\nfn row_2_helper() {}\n#[test]\nfn row_3() {}\n";
    let source = Source::new("crates/a/tests/b.rs".to_owned(), text.to_owned());
    assert_eq!(tests_of(&source), ["row_1_x", "row_3"]);
}
