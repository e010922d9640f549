//! Keeps the README and the pages of docs/ true: types what they type, and compares what they show.
//!
//! Every `console` fence is run. Lines that begin with `$ ` are commands for bash (a backslash at the end of a line, or `>
//! `, goes on), the lines that follow are what the command prints, standard output and standard error together. The fences
//! of one page share a scene, in order: one shell, one home, one state directory. Times, digests and ids may differ, and `…`
//! stands for anything. Fences of `sh` and `bash`, and transcripts that can't be run here, say why after `no-run:`; one that
//! doesn't fails. `PLANCTL_README=write` replaces the outputs on the page by the real ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "readme/checks.rs"]
mod checks;
#[path = "readme/hour.rs"]
mod hour;
#[path = "readme/likeness.rs"]
mod likeness;
#[path = "readme/page.rs"]
mod page;
#[path = "readme/picture.rs"]
mod picture;
#[path = "readme/scene.rs"]
mod scene;
#[path = "readme/terminal.rs"]
mod terminal;
#[path = "readme/typed.rs"]
mod typed;
use page::{Page, Piece};
use scene::Scene;

/// How many pages are played at once.
const AT_ONCE: usize = 2;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Plays a page; returns it as it should be, with what is shown kept where it is true, and what differs.
fn renewed(name: &str, page: &Page) -> (String, String) {
    let (mut text, mut differences) = (String::new(), String::new());
    let mut scene = None;
    for piece in &page.pieces {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Transcript { line, opening, turns, closing } => {
                let scene = scene.get_or_insert_with(|| Scene::new(repository()));
                text.push_str(opening);
                for turn in turns {
                    let (printed, _) = scene.run(&turn.command);
                    let is_true = likeness::is_shown(&turn.shown, &printed);
                    text.push_str(&turn.typed);
                    text.push_str(if is_true { &turn.shown } else { &printed });
                    if !is_true {
                        let (typed, shown) = (&turn.typed, &turn.shown);
                        differences.push_str(&format!(
                            "\n{name}, transcript at line {line}: {typed}--- shown\n{shown}--- printed\n{printed}"
                        ));
                    }
                }
                text.push_str(closing);
            }
        }
    }
    (text, differences)
}

/// The pages that people read; those of docs/diagnostics are written and run by tests/catalogue.
fn read_pages() -> Vec<PathBuf> {
    let written = repository().join("docs/diagnostics");
    let others = repository().join("examples");
    pages(repository())
        .into_iter()
        .filter(|page| !page.starts_with(&written) && !page.starts_with(&others))
        .collect()
}

#[test]
fn every_transcript_shows_what_its_commands_print() {
    // A page by itself, while it is written: PLANCTL_PAGE=tutorial.
    let wanted = std::env::var("PLANCTL_PAGE").unwrap_or_default();
    let paths: Vec<PathBuf> =
        read_pages().into_iter().filter(|page| page.to_string_lossy().contains(&wanted)).collect();
    let is_wished = std::env::var_os("PLANCTL_README").is_some_and(|wish| wish == "write");
    let next = AtomicUsize::new(0);
    let play = || {
        let mut wrong = String::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = path.strip_prefix(repository()).unwrap().display().to_string();
            let source = std::fs::read_to_string(path).unwrap();
            match Page::read(&source) {
                Err(found) => found.iter().for_each(|what| wrong.push_str(&format!("\n{name}, {what}"))),
                Ok(page) => {
                    let (text, differences) = renewed(&name, &page);
                    match is_wished {
                        true => std::fs::write(path, text).unwrap(),
                        false => wrong.push_str(&differences),
                    }
                }
            }
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let players: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(play)).collect();
        players.into_iter().map(|player| player.join().unwrap()).collect()
    });
    let help = "to show what is printed: PLANCTL_README=write cargo test -p planctl --test cli readme::";
    assert!(wrong.is_empty(), "{wrong}\n{help}");
}

#[test]
fn the_pages_show_planctl_at_work() {
    let transcripts = |name: &str| {
        let text = std::fs::read_to_string(repository().join(name)).unwrap();
        Page::read(&text).map_err(|wrong| wrong.join("\n")).unwrap().transcripts()
    };
    for (name, least) in
        [("README.md", 5), ("docs/tutorial.md", 5), ("docs/api.md", 2), ("docs/workers.md", 3)]
    {
        assert!(transcripts(name) >= least, "{name} has {}", transcripts(name));
    }
}

#[test]
fn the_demo_ends_as_it_is_shown() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let shown =
        page.split("<!-- the end of the demo -->\n```\n").nth(1).unwrap().split("```").next().unwrap();
    let (printed, status) = Scene::new(repository()).run("planctl demo");
    assert_eq!(status, 0, "{printed}");
    let end = printed.rfind("── done ──").unwrap_or_else(|| panic!("{printed}"));
    // How many events there are depends on whether a lease had to be renewed.
    let uncounted = |text: &str| {
        let lines = text.lines().map(likeness::line).filter(|line| !line.is_empty());
        lines.map(|line| line.replace(|c: char| c.is_ascii_digit(), "")).collect::<Vec<_>>()
    };
    assert_eq!(uncounted(&printed[end..]), uncounted(shown));
}

#[test]
fn the_table_of_exit_codes_is_whole() {
    let page = std::fs::read_to_string(repository().join("docs/contracts.md")).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_planctl")).args(["help", "exit-codes"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let told: Vec<&str> = help.split_whitespace().filter(|word| word.parse::<u8>().is_ok()).collect();
    assert!(told.contains(&"143"), "{help}");
    let table = page.split("## Exit codes of planctl").nth(1).unwrap();
    for code in told {
        let is_there = table.split(|c: char| !c.is_ascii_digit()).any(|number| number == code);
        assert!(is_there, "docs/contracts.md lacks exit code {code}");
    }
}

fn pages(repository: &Path) -> Vec<PathBuf> {
    let mut pages = vec![repository.join("README.md")];
    let mut folders = vec![repository.join("docs"), repository.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => pages.push(path),
                false => {}
            }
        }
    }
    assert!(pages.len() > 10);
    pages
}
