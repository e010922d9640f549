//! Rows of graphs (DOT.md 1.1 to 1.13, rows G of the seeds) that have a test named after them: none of them gets lost.
//!
//! `e7_…`, `g13_g14_…`, `s3_to_s8_…` and `g_01_to_g_09_…` name rows; the list is `graphs.txt`. Letters that mean other
//! rows elsewhere (`a`, `p`, `r`) count in the tests of the language and of the engine only.

use std::collections::BTreeSet;

use super::sources::all;

const LIST: &str = include_str!("graphs.txt");

#[test]
fn every_row_of_graphs_in_the_list_has_a_test_named_after_it() {
    let mut named = BTreeSet::new();
    for source in all() {
        let is_own =
            ["crates/planctl-lang/", "crates/planctl-engine/"].iter().any(|own| source.path.starts_with(own));
        let tags = source
            .code
            .lines()
            .filter_map(|line| line.trim().split_once("fn "))
            .flat_map(|(_, rest)| tags_of(rest.split(['(', '<']).next().unwrap_or_default()));
        named.extend(tags.filter(|(letter, _)| is_own || !['a', 'p', 'r'].contains(letter)));
    }
    let missing: Vec<&str> = LIST.lines().filter(|line| !named.contains(&row_of(line))).collect();
    assert!(missing.is_empty(), "no test is named after these (e7_…, g13_…):\n{}", missing.join("\n"));
}

/// Reads `E7`, `G-13`.
fn row_of(line: &str) -> (char, u8) {
    let word = line.split_whitespace().next().unwrap_or_default().to_lowercase();
    let letter = word.chars().next().unwrap_or(' ');
    (letter, word.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0))
}

fn tags_of(name: &str) -> Vec<(char, u8)> {
    let mut tags: Vec<(char, u8)> = Vec::new();
    let (mut is_range, mut parts) = (false, name.split('_').peekable());
    while let Some(part) = parts.next() {
        let mut letters = part.chars();
        let letter = letters.next().unwrap_or(' ');
        let digits = match letters.as_str() {
            "" => parts.next_if(|next| next.parse::<u8>().is_ok()).unwrap_or_default(),
            digits => digits,
        };
        match digits.parse::<u8>() {
            Ok(number) if letter.is_ascii_lowercase() && digits.len() <= 2 => {
                let before =
                    tags.last().filter(|(other, _)| is_range && *other == letter).map(|(_, last)| *last);
                tags.extend((before.map_or(number, |last| last + 1)..=number).map(|number| (letter, number)));
                is_range = false;
            }
            _ => is_range = part == "to" && !tags.is_empty(),
        }
    }
    tags
}

#[test]
fn names_of_rows_are_read() {
    assert_eq!(tags_of("g_01_to_g_03_a_graph"), [('g', 1), ('g', 2), ('g', 3)]);
    assert_eq!(tags_of("g13_g14_x"), [('g', 13), ('g', 14)]);
    assert_eq!(tags_of("a_graph_leads_to_x1"), [('x', 1)]);
    assert_eq!(row_of("G-08  checkpoint"), ('g', 8));
    assert_eq!(row_of("E7    one edge"), ('e', 7));
}
