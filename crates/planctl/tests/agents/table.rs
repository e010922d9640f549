//! The tables of the scenarios: played, kept beside the agents, and written into the documentation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::guided;
use super::scenarios::{self, Scenario, Stage};
use super::served;
use super::session::DID_NOT_BEGIN;

/// One kind of trials.
struct Kind {
    heading: &'static str,
    agents: &'static [&'static str],
    scenarios: &'static [(&'static str, Scenario)],
}

const KINDS: [Kind; 3] = [
    Kind {
        heading: "## As workers",
        agents: &["claude", "codex", "gemini", "opencode", "aider"],
        scenarios: &scenarios::SCENARIOS,
    },
    Kind {
        heading: "## As guided sessions",
        agents: &["claude", "codex", "gemini", "opencode"],
        scenarios: &guided::SCENARIOS,
    },
    Kind {
        heading: "## With planctl's MCP server",
        agents: &["claude", "codex"],
        scenarios: &served::SCENARIOS,
    },
];

/// The cells, by heading, scenario, and agent with its version; they outlast a run, so that one may run a part again.
type Cells = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

const NOT_RUN: &str = "not run";

/// Plays all scenarios with all agents that are installed, each agent beside the others, prints the tables, and names what
/// failed. `PLANCTL_AGENTS_ONLY` has words, all of which an agent's name, a scenario or a heading has to hold, and commas
/// between alternatives; `PLANCTL_DOCS=write` puts the tables into the documentation.
pub fn play(agents: &Path) -> Result<(), String> {
    let mut all = KINDS.iter().flat_map(|kind| {
        let of_agent = move |agent| kind.scenarios.iter().map(move |(name, _)| [agent, *name, kind.heading]);
        kind.agents.iter().copied().flat_map(of_agent)
    });
    if !all.any(|names| is_wanted(&names)) {
        return Err("PLANCTL_AGENTS_ONLY leaves nothing to play".to_owned());
    }
    // Gemini reads no settings below a folder that others can write to.
    let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let stage = Stage { agents, state: state.path() };
    let kept = agents.join("results.json");
    let text = std::fs::read_to_string(&kept).unwrap_or_default();
    let cells: Mutex<Cells> = Mutex::new(serde_json::from_str(&text).unwrap_or_default());
    let failed = Mutex::new(Vec::new());
    let versions: BTreeMap<&str, String> =
        KINDS[0].agents.iter().map(|agent| (*agent, version(agents, agent))).collect();
    std::thread::scope(|scope| {
        for agent in KINDS[0].agents {
            let (stage, cells, failed, named, kept) = (&stage, &cells, &failed, &versions[agent], &kept);
            scope.spawn(move || {
                for kind in KINDS.iter().filter(|kind| kind.agents.contains(agent)) {
                    let wanted =
                        kind.scenarios.iter().filter(|(name, _)| is_wanted(&[agent, name, kind.heading]));
                    for (name, play) in wanted {
                        let cell = play(stage, agent).unwrap_or_else(|why| {
                            let why = format!("{agent}, {name}:\n{why}");
                            println!("{why}");
                            let cell = if why.contains(DID_NOT_BEGIN) { NOT_RUN } else { "**fails**" };
                            failed.lock().unwrap().push(why);
                            cell.to_owned()
                        });
                        println!("{named}, {name}: {cell}");
                        let mut cells = cells.lock().unwrap();
                        let rows = cells.entry(kind.heading.to_owned()).or_default();
                        rows.entry((*name).to_owned()).or_default().insert(named.clone(), cell);
                        std::fs::write(kept, serde_json::to_string_pretty(&*cells).unwrap()).unwrap();
                    }
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap();
    for kind in &KINDS {
        let table = drawn(kind, &versions, &cells);
        println!("\n{}\n\n{table}", kind.heading);
        if std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write") {
            write(kind.heading, &table);
        }
    }
    let failed = failed.into_inner().unwrap();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n\n")) }
}

fn is_wanted(names: &[&str]) -> bool {
    let only = std::env::var("PLANCTL_AGENTS_ONLY").unwrap_or_default();
    let holds = |word: &str| names.iter().any(|name| name.contains(word));
    only.split(',').any(|words| words.split('+').all(|word| holds(word.trim())))
}

fn version(agents: &Path, agent: &str) -> String {
    let found = ["npm/node_modules/.bin", "venv/bin"].map(|bin| agents.join(bin).join(agent));
    let program = found.into_iter().find(|program| program.exists());
    // One of them writes a history of its chats where it stands.
    let said =
        program.and_then(|program| Command::new(program).arg("--version").current_dir(agents).output().ok());
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let number =
        said.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    format!("{agent} {}", number.unwrap_or("?"))
}

fn drawn(kind: &Kind, versions: &BTreeMap<&str, String>, cells: &Cells) -> String {
    let heads: Vec<&str> = kind.agents.iter().map(|agent| versions[agent].as_str()).collect();
    let mut text = format!("| Scenario | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for (name, _) in kind.scenarios {
        let cell = |head: &&str| {
            let cell = cells.get(kind.heading).and_then(|rows| rows.get(*name)?.get(*head));
            cell.map_or(NOT_RUN, String::as_str).to_owned()
        };
        let row: Vec<String> = heads.iter().map(cell).collect();
        text.push_str(&format!("| {name} | {} |\n", row.join(" | ")));
    }
    text
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md")
}

/// Puts a table in the place of the first one after its heading.
fn write(heading: &str, table: &str) {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(&format!("{heading}\n")).unwrap();
    let begin = rest.find("\n|").unwrap() + 1;
    let end = begin + rest[begin..].find("\n\n").unwrap() + 1;
    let text = format!("{before}{heading}\n{}{table}{}", &rest[..begin], &rest[end..]);
    std::fs::write(page(), text).unwrap();
}

/// Compares the rows of the documentation with the scenarios that there are.
pub fn documentation_has_each_scenario() {
    let text = std::fs::read_to_string(page()).unwrap();
    for kind in &KINDS {
        let (_, rest) = text.split_once(&format!("{}\n", kind.heading)).unwrap();
        let table = &rest[rest.find("\n|").unwrap() + 1..];
        let table = &table[..table.find("\n\n").unwrap()];
        let names: Vec<&str> =
            table.lines().skip(2).map(|row| row[2..].split(" | ").next().unwrap()).collect();
        let expected: Vec<&str> = kind.scenarios.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected, "PLANCTL_DOCS=write just agents writes the tables of {}", kind.heading);
    }
}
