//! Lists what came of each cheat in each tier: printed after the scenarios, kept in `outcomes.txt`, and drawn as a table in
//! docs/security.md beside the outcomes of the sandbox's own attacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::place::Part;
use crate::scenario::{Kit, Scenario};
use crate::tier::{self, Tier};

const OPENING: &str = "<!-- attacks: written by crates/planctl/tests/cheats.rs -->\n";
const CLOSING: &str = "<!-- end of attacks -->";
const HEAD: &str = "# What came of each cheat in each isolation tier, written by\n\
                    # PLANCTL_DOCS=write cargo test -p planctl --test cheats -- --include-ignored\n";

/// The effect of an attack in a tier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effect {
    /// Nothing: it was refused, or the work was judged as if it had not been tried.
    Held,
    /// Nothing, and the record names what it did.
    Named,
    /// The effect that it wanted.
    Through,
    /// It was not tried here.
    NotRun,
}

impl Effect {
    const ALL: [Effect; 4] = [Effect::Held, Effect::Named, Effect::Through, Effect::NotRun];

    fn as_str(self) -> &'static str {
        match self {
            Effect::Held => "held",
            Effect::Named => "named",
            Effect::Through => "through",
            Effect::NotRun => "not run",
        }
    }

    fn parse(word: &str) -> Option<Effect> {
        Effect::ALL.into_iter().find(|effect| effect.as_str() == word)
    }
}

/// Says how one performance ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// As it has to.
    Right,
    /// Otherwise.
    Wrong,
    /// This machine lacks a program for it.
    NotRun,
}

/// Counts how all performances ended.
#[derive(Default)]
pub struct Table {
    /// By tier, part and id.
    outcomes: BTreeMap<(&'static str, &'static str, String), (Came, Effect)>,
}

impl Table {
    /// Takes note of the result of a performance.
    pub fn add(&mut self, scenario: &Scenario, part: Part, tier: &Tier, came: Came, effect: Effect) {
        self.outcomes.insert((tier.name, part.name(), scenario.id.clone()), (came, effect));
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
                    .filter(|(key, (found, _))| (key.0, key.1) == (tier, part) && *found == came);
                found.map(|(key, _)| key.2.as_str()).collect()
            };
            let wrong = of(Came::Wrong);
            let word = if part == "cheat" { "not caught" } else { "refused" };
            writeln!(
                text,
                "tier {tier}: {}s: {} as they should be, {} {word}, {} not run",
                part,
                of(Came::Right).len(),
                wrong.len(),
                of(Came::NotRun).len()
            )
            .unwrap();
            if !wrong.is_empty() {
                writeln!(text, "    wrong: {}", wrong.join(" ")).unwrap();
            }
        }
        text
    }

    /// Compares the table of docs/security.md with the outcomes on record, or writes both with what was found here. A
    /// run of some scenarios changes the outcomes of those alone.
    ///
    /// # Errors
    ///
    /// The difference.
    pub fn page(&self, kit: &Kit) -> Result<(), String> {
        let is_written = std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write");
        let own = folder().join("outcomes.txt");
        let mut record = Record::read(&own);
        if is_written {
            for ((tier, part, id), (_, effect)) in &self.outcomes {
                if *part == Part::Cheat.name() {
                    record.0.entry(id.clone()).or_default().insert(tier, *effect);
                }
            }
            record.0.retain(|id, _| kit.cheats().any(|cheat| cheat.id == *id));
            std::fs::write(&own, record.text()).unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(OPENING).ok_or("docs/security.md has no table of attacks")?;
        let (shown, after) = rest.split_once(CLOSING).ok_or("the table of attacks has no end")?;
        let drawn = draw(kit, &record, &SandboxAttack::all());
        if drawn == shown {
            return Ok(());
        }
        if is_written {
            std::fs::write(path, format!("{before}{OPENING}{drawn}{CLOSING}{after}")).unwrap();
            return Ok(());
        }
        let differing = |one: &str, other: &str| -> String {
            let lines = one.lines().filter(|line| !other.lines().any(|same| same == *line));
            lines.map(|line| format!("{line}\n")).collect()
        };
        Err(format!(
            "docs/security.md differs from the outcomes on record. It shows\n{}and they are\n{}\
             to write it: PLANCTL_DOCS=write cargo test -p planctl --test cheats -- --include-ignored",
            differing(shown, &drawn),
            differing(&drawn, shown)
        ))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheats")
}

/// The outcomes of the cheats as they were found last, by id and tier.
struct Record(BTreeMap<String, BTreeMap<&'static str, Effect>>);

impl Record {
    fn read(path: &Path) -> Record {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Record(
            lines.filter_map(|line| line.split_once(": ")).map(|(id, of)| (id.into(), by_tier(of))).collect(),
        )
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (id, effects) in &self.0 {
            let effects: Vec<String> =
                effects.iter().map(|(tier, effect)| format!("{tier} {}", effect.as_str())).collect();
            writeln!(text, "{id}: {}", effects.join(", ")).unwrap();
        }
        text
    }

    fn effect(&self, id: &str, tier: &str) -> Effect {
        self.0.get(id).and_then(|effects| effects.get(tier)).copied().unwrap_or(Effect::NotRun)
    }
}

/// Reads `0 through, 1a held`.
fn by_tier(text: &str) -> BTreeMap<&'static str, Effect> {
    let found = text.split(", ").filter_map(|one| one.split_once(' '));
    found
        .filter_map(|(tier, word)| {
            Some((*tier::ALL.iter().find(|known| **known == tier)?, Effect::parse(word)?))
        })
        .collect()
}

/// One attack of the harness' own tests, with what came of it.
struct SandboxAttack {
    name: String,
    rows: String,
    effects: BTreeMap<&'static str, Effect>,
}

impl SandboxAttack {
    /// Reads what the harness' tests found: `name (rows): 0 through, 1a held`.
    fn all() -> Vec<SandboxAttack> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../planctl-harness/tests/processes/sandbox/outcomes.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (attack, effects) = line.split_once("): ").unwrap();
                let (name, rows) = attack.split_once(" (").unwrap();
                SandboxAttack { name: name.into(), rows: rows.into(), effects: by_tier(effects) }
            })
            .collect()
    }

    fn is_of(&self, row: &str) -> bool {
        self.rows.split(", ").any(|own| own == row)
    }

    fn effect(&self, tier: &str) -> Effect {
        self.effects.get(tier).copied().unwrap_or(Effect::NotRun)
    }
}

/// Draws one row per attack, and lists what got through.
fn draw(kit: &Kit, record: &Record, sandbox: &[SandboxAttack]) -> String {
    let mut text = format!("| | Attack | Tried by | {} |\n|---|---|---|", tier::ALL.join(" | "));
    text.push_str(&"---|".repeat(tier::ALL.len()));
    text.push('\n');
    for (row, says) in &kit.attacks {
        let cheats: Vec<&Scenario> =
            kit.cheats().filter(|cheat| cheat.sources().contains(&row.as_str())).collect();
        let attacks: Vec<&SandboxAttack> = sandbox.iter().filter(|attack| attack.is_of(row)).collect();
        let cells = tier::ALL.iter().map(|tier| {
            let of_cheats = cheats.iter().map(|cheat| record.effect(&cheat.id, tier));
            cell(&of_cheats.chain(attacks.iter().map(|attack| attack.effect(tier))).collect::<Vec<_>>())
        });
        let cells: Vec<String> = cells.collect();
        let tried = cheats.len() + attacks.len();
        writeln!(text, "| {row} | {says} | {tried} | {} |", cells.join(" | ")).unwrap();
    }
    let tiers_through = |effect: &dyn Fn(&str) -> Effect| -> Vec<&str> {
        tier::ALL.iter().copied().filter(|tier| effect(tier) == Effect::Through).collect()
    };
    text.push_str("\nWorkers of the kit that get through:\n\n| Worker | What it does | Tiers | Why |\n|---|---|---|---|\n");
    for cheat in kit.cheats() {
        let tiers = tiers_through(&|tier| record.effect(&cheat.id, tier));
        if !tiers.is_empty() {
            let why = cheat.why_open().unwrap_or("an open hole");
            writeln!(text, "| `{}` | {} | {} | {why} |", cheat.id, cheat.says, tiers.join(", ")).unwrap();
        }
    }
    text.push_str("\nWays out of the sandbox itself that are open, as a program inside tries them:\n\n| Way out | Tiers |\n|---|---|\n");
    for attack in sandbox {
        let tiers = tiers_through(&|tier| attack.effect(tier));
        if !tiers.is_empty() {
            writeln!(text, "| {} | {} |", attack.name.replace('_', " "), tiers.join(", ")).unwrap();
        }
    }
    text.push('\n');
    text
}

/// Says what came of all attempts of a row in one tier.
fn cell(effects: &[Effect]) -> String {
    let counts = Effect::ALL.map(|effect| (effect, effects.iter().filter(|found| **found == effect).count()));
    let some: Vec<(Effect, usize)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    match some.as_slice() {
        [] => Effect::NotRun.as_str().to_owned(),
        [(effect, _)] => effect.as_str().to_owned(),
        some => {
            let parts: Vec<String> =
                some.iter().map(|(effect, count)| format!("{count} {}", effect.as_str())).collect();
            parts.join(", ")
        }
    }
}
