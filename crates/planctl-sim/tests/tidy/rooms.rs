//! Which room of a crate may know which: no circle spans two of them, and the map lists them from the ground up.
//!
//! A room is a folder at the top of the crate's sources with the file beside it, or a file without a folder. The rooms of
//! `planctl-lang` are its layers.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Source, all, top};

/// The most rooms of a crate of which docs/ARCHITECTURE.md needs no table.
const HANDFUL: usize = 6;

/// A crate, and the rooms that its sources have.
struct House {
    name: String,
    rooms: Rooms,
}

/// Rooms, and of each the rooms that it names, with a place where it does.
type Rooms = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn no_import_circle_spans_rooms_of_a_crate() {
    let circles_of = |house: &House| -> Vec<String> {
        circles(&house.rooms).iter().map(|circle| drawn(&house.rooms, circle)).collect()
    };
    let wrong: Vec<String> = houses().iter().flat_map(circles_of).collect();
    assert!(
        wrong.is_empty(),
        "these rooms import one another, so move what both need to the lower one:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_map_lists_the_rooms_of_a_crate_from_the_ground_up() {
    for House { name, rooms } in houses().iter().filter(|house| house.rooms.len() > HANDFUL) {
        let mapped = mapped(name);
        let (named, real): (BTreeSet<&String>, BTreeSet<&String>) =
            (mapped.iter().collect(), rooms.keys().collect());
        assert_eq!(named, real, "the table of {name} in docs/ARCHITECTURE.md and its sources differ");
        assert_eq!(mapped.len(), named.len(), "the table of {name} in docs/ARCHITECTURE.md has a row twice");
        let height = |room: &String| mapped.iter().position(|other| other == room);
        let mut upwards = Vec::new();
        for (room, named) in rooms {
            let higher = named.iter().filter(|(other, _)| height(other) > height(room));
            upwards.extend(
                higher.map(|(other, at)| format!("{at}: {room} imports {other}, which stands below it")),
            );
        }
        assert!(
            upwards.is_empty(),
            "a room imports those above it in the table of {name} in docs/ARCHITECTURE.md only:\n{}",
            upwards.join("\n")
        );
    }
}

#[test]
fn every_crate_with_rooms_is_looked_at() {
    let houses = houses();
    let of = |name: &str| houses.iter().find(|house| house.name == name).map(|house| house.rooms.len());
    for name in ["planctl", "planctl-engine", "planctl-store", "planctl-harness", "planctl-lang"] {
        assert!(of(name).is_some_and(|rooms| rooms > HANDFUL), "{name}: {:?} rooms", of(name));
    }
}

/// Reads the rooms of all crates off their sources.
fn houses() -> Vec<House> {
    let mut crates: BTreeMap<&str, Vec<(&Source, Vec<&str>)>> = BTreeMap::new();
    for source in all() {
        let Some((name, path)) =
            source.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let path = path.strip_suffix(".rs").unwrap_or(path);
        if !["lib", "main"].contains(&path) {
            crates.entry(name).or_default().push((source, path.split('/').collect()));
        }
    }
    crates.into_iter().map(|(name, sources)| House::new(name, &sources)).collect()
}

impl House {
    fn new(name: &str, sources: &[(&Source, Vec<&str>)]) -> House {
        let mut rooms: Rooms =
            sources.iter().map(|(_, path)| (path[0].to_owned(), BTreeMap::new())).collect();
        let names: BTreeSet<String> = rooms.keys().cloned().collect();
        let mut wrong = Vec::new();
        for (source, path) in sources {
            for (line, name) in named(&source.shipped, path.len()) {
                let at = format!("{}:{line}", source.path);
                if !names.contains(&name) {
                    wrong.push(format!("{at}: `{name}` is no room"));
                } else if let Some(room) = rooms.get_mut(path[0]).filter(|_| name != path[0]) {
                    room.entry(name).or_insert(at);
                }
            }
        }
        assert!(wrong.is_empty(), "name the room and not what lib.rs makes of it:\n{}", wrong.join("\n"));
        House { name: name.to_owned(), rooms }
    }
}

/// Reads the table of a crate's rooms: the first cells of the table that follows the crate's name.
fn mapped(name: &str) -> Vec<String> {
    let path = top().join("docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("the map is there");
    let start = format!("**{name}**:");
    let table = text.lines().skip_while(|line| !line.starts_with(&start)).skip(1);
    let table = table.take_while(|line| line.is_empty() || line.starts_with('|'));
    let rows = table.filter(|line| !line.is_empty()).skip(2);
    let name_of = |row: &str| row.split('`').nth(1).unwrap_or_default().trim_end_matches('/').to_owned();
    let rooms: Vec<String> = rows.map(name_of).collect();
    assert!(!rooms.is_empty(), "docs/ARCHITECTURE.md has no table of rooms after “{start}”");
    rooms
}

/// Returns the names that follow `crate::`, and `super::` where that leads as far, each with its line.
fn named(code: &str, depth: usize) -> Vec<(usize, String)> {
    let far = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", far.as_str()] {
        for (at, _) in code.match_indices(root) {
            let is_word = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
            let after = &code[at + root.len()..];
            if is_word || code[..at].ends_with("super::") || after.starts_with("super::") {
                continue;
            }
            let line = code[..at].lines().count().max(1);
            found.extend(first_words(after).into_iter().map(|word| (line, word)));
        }
    }
    found
}

/// Returns the word that a path goes on with; of a group in braces those of all its paths.
fn first_words(path: &str) -> Vec<String> {
    let word = |text: &str| {
        let text = text.trim_start();
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path)];
    };
    let (mut depth, mut words) = (0, vec![word(group)]);
    for (at, next) in group.char_indices() {
        match next {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => words.push(word(&group[at + 1..])),
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the shortest circle through each room that is on one; each begins with the first of its rooms by name.
fn circles(rooms: &Rooms) -> BTreeSet<Vec<String>> {
    rooms.keys().filter_map(|room| shortest_circle(rooms, room)).collect()
}

fn shortest_circle(rooms: &Rooms, from: &String) -> Option<Vec<String>> {
    let (mut seen, mut ways) = (BTreeSet::new(), vec![vec![from.clone()]]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().and_then(|last| rooms.get(last))?;
            if last.contains_key(from) {
                let first = (0..way.len()).min_by_key(|at| &way[*at])?;
                return Some([&way[first..], &way[..first]].concat());
            }
            let next = last.keys().filter(|next| seen.insert((*next).clone()));
            longer.extend(next.map(|next| [way.as_slice(), std::slice::from_ref(next)].concat()));
        }
        ways = longer;
    }
    None
}

/// Shows a circle with a place for each of its arrows.
fn drawn(rooms: &Rooms, circle: &[String]) -> String {
    let next = circle.iter().cycle().skip(1);
    let arrows =
        circle.iter().zip(next).map(|(room, other)| format!("  {room} -> {other}: {}", rooms[room][other]));
    format!("{}\n{}", circle.join(" -> "), arrows.collect::<Vec<_>>().join("\n"))
}

#[test]
fn rooms_that_are_named_are_found() {
    let code = "use crate::node::Clock;\nuse crate::{runs::{self, x}, wire};\nlet a = super::super::plans::b();\n\
                let c = super::d();\nlet e = mycrate::f;";
    let words: Vec<(usize, String)> = named(code, 2);
    let words: Vec<(usize, &str)> = words.iter().map(|(line, word)| (*line, word.as_str())).collect();
    assert_eq!(words, [(1, "node"), (2, "runs"), (2, "wire"), (3, "plans")]);
}

#[test]
fn circles_are_found() {
    let graph = |arrows: &[(&str, &str)]| -> Rooms {
        let mut rooms = Rooms::new();
        for (from, to) in arrows {
            rooms.entry((*to).to_owned()).or_default();
            rooms.entry((*from).to_owned()).or_default().insert((*to).to_owned(), "a.rs:1".to_owned());
        }
        rooms
    };
    assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circles(&graph(&[("c", "b"), ("b", "a"), ("a", "c"), ("d", "a")]));
    assert_eq!(found, BTreeSet::from([vec!["a".to_owned(), "c".to_owned(), "b".to_owned()]]));
}
