//! Rows of graphs (DOT.md 1.1 to 1.13 but those left out, rows G of the seeds but three): each has a test named after it.
//!
//! `e7_…`, `g13_g14_…`, `s3_to_s8_…` and `g_01_to_g_09_…` name rows; the list is `graphs.txt`. Rows G of the seeds have two
//! digits (`g08_…`), rows of DOT.md have as many as they need (`g7_…`). Letters that mean other rows elsewhere (`a`, `p`, `r`)
//! count in the tests of graphs only.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::all;

const LIST: &str = include_str!("graphs.txt");

/// Where letters mean rows of graphs that mean others elsewhere.
const OWN: [&str; 5] = [
    "crates/planctl-lang/",
    "crates/planctl-engine/",
    "crates/planctl-sim/",
    "crates/planctl/tests/branching.rs",
    "crates/planctl/tests/cli/graph",
];

#[test]
fn every_row_of_graphs_has_a_test_named_after_it() {
    let mut named = BTreeSet::new();
    for source in all() {
        let is_own = OWN.iter().any(|own| source.path.starts_with(own));
        let tags = source
            .code
            .lines()
            .filter_map(|line| line.trim().split_once("fn "))
            .flat_map(|(_, rest)| tags_of(rest.split(['(', '<']).next().unwrap_or_default()));
        named.extend(tags.filter(|tag| is_own || !tag.starts_with(['a', 'p', 'r'])));
    }
    let missing: Vec<&str> = LIST.lines().filter(|line| !named.contains(&row_of(line))).collect();
    assert!(missing.is_empty(), "no test is named after these (e7_…, g13_…):\n{}", missing.join("\n"));
}

/// The rows that planctl adopts, as they are or modified, by their letters: how many there are, less those left out.
#[test]
fn the_list_of_rows_is_whole() {
    let left_out = ["a7", "a15", "c7", "k8", "p5"];
    let left_to_others = ["g39", "g40", "g43"];
    let of_dot = [
        ('d', 23),
        ('a', 20),
        ('s', 13),
        ('e', 16),
        ('c', 8),
        ('g', 7),
        ('r', 8),
        ('x', 7),
        ('k', 9),
        ('f', 4),
        ('p', 12),
        ('h', 9),
        ('l', 6),
        ('t', 2),
        ('v', 3),
        ('w', 1),
    ];
    let numbered =
        of_dot.iter().flat_map(|(letter, last)| (1..=*last).map(move |row| format!("{letter}{row}")));
    let seeds = (1..=43).chain(50..=54).map(|row| format!("g{row:02}"));
    let whole: BTreeSet<String> = numbered
        .filter(|row| !left_out.contains(&row.as_str()))
        .chain(["n1".to_owned(), "n3".to_owned()])
        .chain(seeds.filter(|row| !left_to_others.contains(&row.as_str())))
        .collect();
    let listed: Vec<String> = LIST.lines().map(row_of).collect();
    let mut times: BTreeMap<&String, usize> = BTreeMap::new();
    for row in &listed {
        *times.entry(row).or_default() += 1;
    }
    assert!(times.values().all(|count| *count == 1), "{times:?}");
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), whole);
    assert_eq!(whole.len(), 190);
    assert!(LIST.lines().all(|line| line.len() > 9), "each says what it is");
}

/// Reads `E7`, `G-08`.
pub(super) fn row_of(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_lowercase().replace('-', "")
}

pub(super) fn tags_of(name: &str) -> Vec<String> {
    let mut tags: Vec<(char, u8, usize)> = Vec::new();
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
                let before = tags.last().filter(|(other, ..)| is_range && *other == letter).copied();
                let (first, width) = match before {
                    Some((_, last, width)) => (last + 1, width),
                    None => (number, digits.len()),
                };
                tags.extend((first..=number).map(|number| (letter, number, width)));
                is_range = false;
            }
            _ => is_range = part == "to" && !tags.is_empty(),
        }
    }
    tags.into_iter().map(|(letter, number, width)| format!("{letter}{number:0width$}")).collect()
}

#[test]
fn names_of_rows_are_read() {
    assert_eq!(tags_of("g_01_to_g_03_a_graph"), ["g01", "g02", "g03"]);
    assert_eq!(tags_of("g13_g14_x"), ["g13", "g14"]);
    assert_eq!(tags_of("a8_to_a11_x"), ["a8", "a9", "a10", "a11"]);
    assert_eq!(tags_of("a_graph_leads_to_x1"), ["x1"]);
    assert_eq!(row_of("G-08  checkpoint"), "g08");
    assert_eq!(row_of("E7    one edge"), "e7");
}
