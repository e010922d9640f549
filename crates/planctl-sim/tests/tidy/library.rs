//! Rows of the plan library and of guided mode (rows H of the seeds, and two of their rows G): each has a test named after it.
//!
//! `h_12_…` and `h41_h42_…` name rows; the list is `library.txt`. Rows of DOT.md that begin with the same letter have one digit.

use std::collections::BTreeSet;

use super::graphs::{row_of, tags_of};
use super::sources::all;

const LIST: &str = include_str!("library.txt");

#[test]
fn every_row_of_the_library_and_of_guided_mode_has_a_test_named_after_it() {
    let tags = |code: &str| -> Vec<String> {
        let names = code.lines().filter_map(|line| line.trim().split_once("fn "));
        names.flat_map(|(_, rest)| tags_of(rest.split(['(', '<']).next().unwrap_or_default())).collect()
    };
    let named: BTreeSet<String> = all().iter().flat_map(|source| tags(&source.code)).collect();
    let missing: Vec<&str> = LIST.lines().filter(|line| !named.contains(&row_of(line))).collect();
    assert!(missing.is_empty(), "no test is named after these (h_12_…, g_40_…):\n{}", missing.join("\n"));
}

#[test]
fn the_list_of_rows_of_the_library_is_whole() {
    let listed: Vec<String> = LIST.lines().map(row_of).collect();
    let rows = (1..=43).chain(50..=54).map(|row| format!("h{row:02}"));
    let whole: Vec<String> = rows.chain(["g40".to_owned(), "g43".to_owned()]).collect();
    assert_eq!(listed, whole);
    assert!(LIST.lines().all(|line| line.len() > 9), "each says what it is");
}
