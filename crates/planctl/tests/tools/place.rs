//! A workspace with a server of tools in its trusted planctl.toml.

use crate::fixture::{Fixture, Said};

/// One test's place.
pub struct Place {
    pub fixture: Fixture,
}

impl Place {
    /// A place whose server declares these effects (lines of TOML below `[servers.issues]`).
    pub fn new(effects: &str) -> Place {
        let place = Place { fixture: Fixture::new() };
        place.serve("usual", effects);
        place
    }

    /// Writes the configuration anew, and trusts it.
    pub fn serve(&self, manner: &str, effects: &str) {
        let program = std::env::current_exe().unwrap();
        let log = self.fixture.home().join("asked");
        let toml = format!(
            "[servers.issues]\ncommand = [{program:?}, \"serve-tools\", {manner:?}, {log:?}]\n{effects}\n",
            program = program.display().to_string(),
            log = log.display().to_string(),
        );
        self.fixture.write("planctl.toml", &toml);
        let said = self.fixture.planctl(&["trust", "."]);
        assert_eq!(said.code, 0, "{said:?}");
    }

    /// Returns what the server was asked so far.
    pub fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.fixture.home().join("asked")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    pub fn planctl(&self, words: &[&str]) -> Said {
        self.fixture.planctl(words)
    }

    /// Uses a tool at the command line.
    pub fn call(&self, tool: &str, arguments: &str) -> Said {
        self.planctl(&["tool", "call", "issues", tool, arguments])
    }
}
