//! Go's packages and node's own runner of tests.

use super::super::deciding::FileLocation;
use super::super::following::{At, Follower};
use super::super::values::joined;
use super::super::{Arguments, Word};
use super::values_of;

/// The files that `node --test` runs without arguments.
const NODE_TESTS: [&str; 3] = [
    "**/{*.test,*-test,*_test,test-*,test}.{js,mjs,cjs,ts,mts,cts}",
    "test/**/*.{js,mjs,cjs,ts,mts,cts}",
    "**/test/**/*.{js,mjs,cjs,ts,mts,cts}",
];

impl Follower<'_> {
    /// `go test PACKAGES`
    pub(super) fn go(&mut self, rest: &[Word]) {
        if !rest.iter().any(|word| matches!(word.raw.as_str(), "test" | "vet")) {
            return;
        }
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, &["-C"]) {
            self.change_folder(&folder);
        }
        let Some(here) = self.folder_here() else { return };
        let mut packages: Vec<&str> =
            rest.iter().map(Word::text).filter(|text| text.starts_with("./") || *text == ".").collect();
        if packages.is_empty() {
            packages.push(".");
        }
        for package in packages {
            let (folder, deep) = match package.strip_suffix("...") {
                Some(folder) => (folder.trim_end_matches('/'), "**/"),
                None => (package, ""),
            };
            let folder = match self.place(folder, false) {
                FileLocation::Inside(path) => path,
                FileLocation::Outside | FileLocation::Unknown => here.clone(),
            };
            self.keep(joined(&folder, &format!("{deep}testdata/**")));
            let tests = joined(&folder, &format!("{deep}*_test.go"));
            // Where the module has yet to be made, so have its tests.
            let is_made =
                super::upward(&here).any(|above| self.look.has(&joined(above, "go.mod")) != Some(false));
            if is_made { self.fix(tests) } else { self.keep(tests) }
        }
        self.shell.folder = outside;
    }

    /// `node FILE`, `node --test TARGETS`
    pub(super) fn node(&mut self, rest: &[Word], at: At) {
        for file in values_of(rest, &["-r", "--require", "--import", "--loader", "--experimental-loader"]) {
            if file.text().starts_with('.') {
                self.run_file(&file, at);
            }
        }
        let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(&word.raw.as_str()));
        let valued = ["require", "import", "loader", "test-name-pattern", "test-reporter", "env-file"];
        let read = Arguments::read(rest, "rC", &valued);
        if !has(&["--test"]) {
            if !has(&["-c", "-e", "-p", "-pe", "--check", "--eval", "--print"])
                && let Some(word) = read.positional.first()
            {
                self.run_code(word, at);
            }
            return;
        }
        let Some(here) = self.folder_here() else { return };
        self.keep(joined(&here, "package.json"));
        if read.positional.is_empty() {
            NODE_TESTS.iter().for_each(|tests| self.keep(joined(&here, tests)));
        }
        for word in read.positional {
            for value in self.shell.resolved(word).unwrap_or_default() {
                let is_pattern = value.is_pattern || value.text.contains('*');
                if let FileLocation::Inside(path) = self.place(&value.text, is_pattern) {
                    self.keep(format!("{path}/**/*.{{js,mjs,cjs,ts,mts,cts}}"));
                    self.keep(path);
                }
            }
        }
    }
}
