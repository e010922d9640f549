//! The README's console blocks typed at a terminal, one after the other in one fresh home.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::page::{Page, Piece};
use super::terminal::Terminal;
use super::{likeness, repository, scene};

/// Wide enough for every line that is looked for.
const COLUMNS: u16 = 120;

/// A home in which a daemon may have been started, which ends with it.
struct Home(tempfile::TempDir);

impl Drop for Home {
    fn drop(&mut self) {
        scene::stop_daemon(self.0.path(), &self.0.path().join("state"));
    }
}

impl Home {
    /// Makes a home with planctl on the path and a checkout in it, as the README asks for.
    fn new() -> Home {
        let home = Home(super::hour::home());
        let at = |name: &str| home.0.path().join(name);
        for folder in ["bin", "tmp", "planctl"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        for name in ["examples", "plans"] {
            symlink(repository().join(name), at("planctl").join(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_planctl"), at("bin/planctl")).unwrap();
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns a line in which the folders below `/tmp` are those of this home.
    fn places_in(&self, line: &str) -> String {
        line.replace("/tmp/", &format!("{}/", self.path().join("tmp").display()))
    }
}

/// Says whether a line is one of the log that a pipe gets in place of the live view.
fn is_log(line: &str) -> bool {
    ["step=", "run=", "ask=", "answered="].iter().any(|word| line.contains(word))
}

#[test]
fn the_console_blocks_of_the_readme_end_at_a_terminal_as_they_are_shown() {
    let home = Home::new();
    let page = Page::read(&std::fs::read_to_string(repository().join("README.md")).unwrap());
    let page = page.unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let mut terminal = Terminal::open(home.path(), COLUMNS, &home.path().join("bin"));
    terminal.run("cd planctl");
    let mut typed = 0;
    for piece in &page.pieces {
        let Piece::Transcript { turns, .. } = piece else { continue };
        for turn in turns {
            let screen = terminal.run(&home.places_in(&turn.command));
            typed += 1;
            // A person sees another picture while it goes on, and the same end.
            let Some(last) = turn.shown.lines().rfind(|line| !line.is_empty() && !is_log(line)) else {
                continue;
            };
            let wanted = likeness::line(&home.places_in(last));
            assert!(
                screen.lines().any(|line| likeness::line(line) == wanted),
                "{}--- ends with\n{last}\n--- the screen is\n{screen}",
                turn.typed
            );
        }
    }
    assert!(typed > 15, "{typed}");
}
