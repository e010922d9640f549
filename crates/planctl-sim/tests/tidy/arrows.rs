//! Which crate may know which: the map in docs/ARCHITECTURE.md and `cargo metadata` say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::sources::top;

/// Crates, and the crates each may import.
type Arrows = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_crate_imports_what_the_map_does_not_allow() {
    let map = mapped();
    let mut wrong = Vec::new();
    for (name, imports) in arrows() {
        let Some(allowed) = map.get(&name) else {
            wrong.push(format!("{name} is not on the map"));
            continue;
        };
        let beyond =
            imports.iter().filter(|import| import.starts_with("planctl") && !allowed.contains(*import));
        wrong.extend(beyond.map(|import| format!("{name} imports {import}, which the map does not allow")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}\nthe map is the table of crates in docs/ARCHITECTURE.md");
}

#[test]
fn the_map_names_the_crates_that_there_are() {
    let mapped: BTreeSet<String> = mapped().into_keys().collect();
    let real: BTreeSet<String> = arrows().into_keys().collect();
    assert_eq!(mapped, real, "the table of crates in docs/ARCHITECTURE.md and crates/ differ");
}

#[test]
fn the_engine_stays_small_enough_to_hold_in_the_head() {
    let imports = packages().remove("planctl-engine").expect("there is an engine");
    let shipped: BTreeSet<String> =
        imports.into_iter().filter(|(_, kind)| kind != "dev").map(|(name, _)| name).collect();
    assert_eq!(shipped, BTreeSet::from(["serde".to_owned(), "thiserror".to_owned()]));
}

#[test]
fn nothing_shipped_imports_the_simulator() {
    for (name, imports) in arrows() {
        let is_test_only = |import: &String| import == "planctl-sim" || import.starts_with("planctl-mut");
        let wrong = imports.iter().find(|import| name != "planctl-mutants" && is_test_only(import));
        assert_eq!(wrong, None, "{name} imports what is for tests only");
    }
}

#[test]
fn each_library_is_justified_where_it_is_named() {
    let text = std::fs::read_to_string(top().join("Cargo.toml")).expect("the workspace has a manifest");
    let mut is_inside = false;
    let mut is_justified = false;
    let mut bare = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            is_inside = line == "[workspace.dependencies]";
            is_justified = false;
        } else if is_inside && line.starts_with('#') {
            is_justified = true;
        } else if is_inside && line.contains('=') && !line.starts_with("planctl-") && !is_justified {
            bare.push(line.to_owned());
        } else if is_inside && line.trim().is_empty() {
            is_justified = false;
        }
    }
    assert!(bare.is_empty(), "a line above says why we need it: {bare:#?}");
}

#[test]
fn every_crate_takes_versions_and_lints_from_the_workspace() {
    for name in arrows().keys() {
        let path = top().join("crates").join(name).join("Cargo.toml");
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains("[lints]\nworkspace = true"), "{name} sets its own lints");
        let own = text.lines().find(|line| line.contains("version = \"") || line.contains("{ path"));
        assert_eq!(own, None, "{name} names a version or a path of its own");
    }
}

/// Reads the table: rows whose first cell is a crate, and the crates in the column “May import”.
fn mapped() -> Arrows {
    let path = top().join("docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("the map is there");
    let mut column = None;
    let mut map = Arrows::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let Some(found) = cells.iter().position(|cell| *cell == "May import") {
            column = Some(found);
        }
        let name = in_backticks(cells[0]).into_iter().next().filter(|name| name.starts_with("planctl"));
        if let (Some(name), Some(column)) = (name, column) {
            let cell = cells.get(column).copied().unwrap_or_default();
            let before = map.insert(name.clone(), in_backticks(cell).into_iter().collect());
            assert!(before.is_none(), "{name} stands on the map twice");
        }
    }
    assert!(map.len() > 1, "docs/ARCHITECTURE.md has no table of crates with a column “May import”");
    map
}

fn in_backticks(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn arrows() -> Arrows {
    let without_kinds = |(name, imports): (String, Vec<(String, String)>)| {
        let others = imports.into_iter().map(|(import, _)| import).filter(|import| *import != name).collect();
        (name, others)
    };
    packages().into_iter().map(without_kinds).collect()
}

/// Asks cargo for each crate's imports and their kinds.
fn packages() -> BTreeMap<String, Vec<(String, String)>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(top())
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo speaks JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().expect("a workspace has packages");
    packages
        .iter()
        .map(|package| {
            let imports = package["dependencies"].as_array().expect("a package lists its imports");
            let imports =
                imports.iter().map(|import| (text(&import["name"]), text(&import["kind"]))).collect();
            (text(&package["name"]), imports)
        })
        .collect()
}
