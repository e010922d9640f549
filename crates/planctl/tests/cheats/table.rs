//! What held: printed after the scenarios, and kept as a table in docs/security.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::place::Part;
use crate::scenario::{Kit, Scenario};
use crate::tier::{self, Tier};

const OPENING: &str = "<!-- attacks: written by crates/planctl/tests/cheats.rs -->\n";
const CLOSING: &str = "<!-- end of attacks -->";

/// What came of one performance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// As it has to.
    Right,
    /// Otherwise, and it is listed as an open hole.
    Known,
    /// Otherwise.
    Wrong,
    /// This machine lacks a program for it.
    NotRun,
}

/// What came of all performances.
#[derive(Default)]
pub struct Table {
    /// By tier, part and id.
    outcomes: BTreeMap<(&'static str, &'static str, String), Came>,
}

impl Table {
    /// Takes note of what came of a performance.
    pub fn add(&mut self, scenario: &Scenario, part: Part, tier: &Tier, came: Came) {
        self.outcomes.insert((tier.name, part.name(), scenario.id.clone()), came);
    }

    /// Returns the counts, and the scenarios that are not as they should be.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let parts: BTreeSet<(&str, &str)> =
            self.outcomes.keys().map(|(tier, part, _)| (*tier, *part)).collect();
        for (tier, part) in parts {
            let of = |came: Came| -> Vec<&str> {
                let found = self
                    .outcomes
                    .iter()
                    .filter(|(key, found)| (key.0, key.1) == (tier, part) && **found == came);
                found.map(|(key, _)| key.2.as_str()).collect()
            };
            let (wrong, known) = (of(Came::Wrong), of(Came::Known));
            let word = if part == "cheat" { "not caught" } else { "refused" };
            writeln!(
                text,
                "tier {tier}: {}s: {} as they should be, {} {word}, {} known to be {word}, {} not run",
                part,
                of(Came::Right).len(),
                wrong.len(),
                known.len(),
                of(Came::NotRun).len()
            )
            .unwrap();
            for (what, ids) in [("wrong", wrong), ("known", known)] {
                if !ids.is_empty() {
                    writeln!(text, "    {what}: {}", ids.join(" ")).unwrap();
                }
            }
        }
        text
    }

    /// Compares the table of docs/security.md with what was found here, or writes it.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn page(&self, kit: &Kit) -> Result<(), String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(OPENING).ok_or("docs/security.md has no table of attacks")?;
        let (shown, after) = rest.split_once(CLOSING).ok_or("the table of attacks has no end")?;
        let found = self.drawn(kit, &Shown::read(shown));
        if found == shown {
            return Ok(());
        }
        if std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write") {
            std::fs::write(path, format!("{before}{OPENING}{found}{CLOSING}{after}")).unwrap();
            return Ok(());
        }
        let differing = |one: &str, other: &str| -> String {
            let lines = one.lines().filter(|line| !other.lines().any(|same| same == *line));
            lines.map(|line| format!("{line}\n")).collect()
        };
        Err(format!(
            "docs/security.md differs from what was found here. It shows\n{}and here it is\n{}\
             to write it: PLANCTL_DOCS=write cargo test -p planctl --test cheats -- --include-ignored",
            differing(shown, &found),
            differing(&found, shown)
        ))
    }

    /// Draws one row per attack. A cell of which not all was tried in this run stays as the page has it.
    fn drawn(&self, kit: &Kit, shown: &Shown) -> String {
        let mut text = format!("| | Attack | Workers | {} |\n|---|---|---|", tier::ALL.join(" | "));
        text.push_str(&"---|".repeat(tier::ALL.len()));
        text.push('\n');
        for (row, says) in &kit.attacks {
            let of_row: Vec<&Scenario> =
                kit.cheats().filter(|cheat| cheat.sources().contains(&row.as_str())).collect();
            let cells = tier::ALL
                .iter()
                .map(|tier| self.cell(&of_row, tier).unwrap_or_else(|| shown.cell(row, tier)));
            let cells: Vec<String> = cells.collect();
            writeln!(text, "| {row} | {says} | {} | {} |", of_row.len(), cells.join(" | ")).unwrap();
        }
        text.push_str("\nNot held:\n\n| Worker | What it does | Tiers | Why |\n|---|---|---|---|\n");
        for cheat in kit.cheats().filter(|cheat| cheat.why_open().is_some()) {
            let why = cheat.why_open().unwrap_or_default();
            writeln!(text, "| `{}` | {} | {} | {why} |", cheat.id, cheat.says, cheat.open_tiers()).unwrap();
        }
        text.push('\n');
        text
    }

    /// Returns what held of these in a tier; nothing where some were not tried.
    fn cell(&self, cheats: &[&Scenario], tier: &'static str) -> Option<String> {
        let mut tried = 0;
        let mut not_held = Vec::new();
        for cheat in cheats {
            let came = self.outcomes.get(&(tier, Part::Cheat.name(), cheat.id.clone()))?;
            let is_open = cheat.is_open_in(tier);
            tried += usize::from(*came != Came::NotRun);
            if matches!((came, is_open), (Came::Right, true) | (Came::Known | Came::Wrong, false)) {
                not_held.push(format!("`{}`", cheat.id));
            }
        }
        Some(match (tried, not_held.len()) {
            (0, _) => "not run".to_owned(),
            (_, 0) => "held".to_owned(),
            (_, all) if all == cheats.len() => "not held".to_owned(),
            (_, 1..=3) => format!("held but for {}", not_held.join(", ")),
            (_, some) => format!("held but for {some}"),
        })
    }
}

/// The cells that the page has.
struct Shown(BTreeMap<(String, &'static str), String>);

impl Shown {
    fn read(table: &str) -> Shown {
        let mut cells = BTreeMap::new();
        let mut tiers: Vec<Option<&'static str>> = Vec::new();
        for line in table.lines().take_while(|line| !line.is_empty()) {
            let found: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if tiers.is_empty() {
                tiers =
                    found.iter().map(|name| tier::ALL.iter().find(|tier| *tier == name).copied()).collect();
            }
            for (tier, cell) in tiers.iter().zip(&found) {
                if let Some(tier) = tier {
                    cells.insert((found[0].to_owned(), *tier), (*cell).to_owned());
                }
            }
        }
        Shown(cells)
    }

    fn cell(&self, row: &str, tier: &'static str) -> String {
        self.0.get(&(row.to_owned(), tier)).cloned().unwrap_or_else(|| "not run".to_owned())
    }
}
