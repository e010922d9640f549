//! The files that the tools of a contract run and read by themselves: a table, and readers of command lines.
//!
//! Each entry is a choice between two mistakes. A protected file can't be weakened by the worker that it judges; it can't be
//! changed by an honest one either, unless the step says so. So sources are never protected here, and neither are lock files
//! that tools write themselves; a file that is only read where it is there is protected only where it is there.

mod go_and_node;
mod just;
mod make;
mod npm;
mod python;

use super::deciding::FileLocation;
use super::following::{At, Follower, program};
use super::programs::started_by_runner;
use super::values::{Value, joined, parent};
use super::{Arguments, Call, Trait, Word};

/// The files that a tool reads besides those that its command line names.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The programs.
    pub programs: &'static [&'static str],
    /// The first arguments for which this holds; none for all.
    pub verbs: &'static [&'static str],
    /// Names and patterns, relative to the folder it works in: protected where they are there at approval.
    pub kept: &'static [&'static str],
    /// Protected too, and a new one is a change.
    pub fixed: &'static [&'static str],
    /// As `fixed`, in the folders above as well.
    pub above: &'static [&'static str],
    /// Options that name the folder it works in.
    folder: &'static [&'static str],
    /// Options that name a file in the place of its own.
    file: &'static [&'static str],
    /// The further files that its command line and its files name, for people.
    pub also: &'static str,
    /// Why just these.
    pub why: &'static str,
}

const PLAIN: Tool = Tool {
    programs: &[],
    verbs: &[],
    kept: &[],
    fixed: &[],
    above: &[],
    folder: &[],
    file: &[],
    also: "",
    why: "",
};

/// The tools that planctl knows.
pub const TOOLS: &[Tool] = &[
    Tool {
        programs: &["bash", "sh", "dash", "zsh", "ksh", "source"],
        also: "the script, also on standard input",
        why: "a new script that would be run is a change; a script whose output is only compared is the work",
        ..PLAIN
    },
    Tool {
        programs: &["python", "python3"],
        also: "the script, or the file of `-m MODULE` and its packages; beside it and in `PYTHONPATH`, no new file takes \
               precedence over a module of the library (`unittest.py`, `json/__init__.py`, `sitecustomize.py`)",
        why: "Python looks beside the script, or in the current folder, before it looks into its library",
        ..PLAIN
    },
    Tool {
        programs: &["python -m unittest"],
        also: "the modules that it names and their packages; for `discover`, the tests of the start folder",
        why: "a test that is added proves more, so it is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["pytest", "py.test"],
        kept: &["test_*.py, *_test.py, conftest.py and __init__.py below its targets"],
        fixed: &[],
        file: &["-c", "--config-file"],
        also: "files that it names; `conftest.py` below its targets and on the way up; `pytest.ini`, `.pytest.ini`, \
               `pyproject.toml`, `tox.ini` and `setup.cfg` on the way up",
        why: "a new `conftest.py` or configuration is loaded before every test; a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["node", "ruby", "perl", "php", "lua", "Rscript", "tsx", "ts-node"],
        also: "the script, and what `--require` and `--import` name",
        why: "what the script loads is the code under test",
        ..PLAIN
    },
    Tool {
        programs: &["node --test"],
        kept: &["package.json", "its targets, or the tests that it finds by itself"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["npm", "pnpm", "yarn", "bun"],
        kept: &["package.json", "pnpm-workspace.yaml"],
        above: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
        folder: &["--prefix", "-C", "--dir", "--cwd"],
        also: "what the script in `package.json` runs, with its `pre` and `post` scripts, and `node_modules/.bin` of its \
               programs; for `npm ci`, the lock file",
        why: "a lock file decides nothing unless it is installed from, and an honest worker's tools write it",
        ..PLAIN
    },
    Tool {
        programs: &["jest"],
        kept: &["package.json", "babel.config.*", ".babelrc", "**/*.{test,spec}.*", "**/__tests__/**"],
        fixed: &["jest.config.{js,ts,mjs,cjs,json}"],
        file: &["-c", "--config"],
        why: "a new test is not counted as a change; snapshots below `__tests__` are kept as they are",
        ..PLAIN
    },
    Tool {
        programs: &["vitest"],
        kept: &["package.json", "vite.config.*", "**/*.{test,spec}.*", "**/__tests__/**"],
        fixed: &["vitest.config.{js,ts,mjs,cjs,mts,cts}", "vitest.workspace.{js,ts,json}"],
        file: &["-c", "--config"],
        why: "as for jest",
        ..PLAIN
    },
    Tool {
        programs: &["mocha", "ava"],
        kept: &["package.json", "test/**"],
        fixed: &[".mocharc.{js,cjs,yaml,yml,json,jsonc}", "ava.config.{js,cjs,mjs}"],
        file: &["--config"],
        why: "as for jest",
        ..PLAIN
    },
    Tool {
        programs: &["tsc"],
        kept: &["tsconfig.json", "package.json"],
        file: &["-p", "--project"],
        why: "which files are checked, and how strictly, stands there",
        ..PLAIN
    },
    Tool {
        programs: &["make", "gmake"],
        kept: &["Makefile"],
        fixed: &["GNUmakefile", "makefile"],
        folder: &["-C", "--directory"],
        also: "what `-f` and `include` name; the scripts and tests that the recipes of its goals run, if they are there",
        why: "a `GNUmakefile` takes precedence over the `Makefile`; what a rule makes is a product",
        ..PLAIN
    },
    Tool {
        programs: &["just"],
        kept: &["justfile", "Justfile"],
        fixed: &[".justfile"],
        folder: &["-d", "--working-directory"],
        file: &["-f", "--justfile"],
        also: "what `import` and `mod` name, and what its recipes run",
        why: "a hidden one takes precedence over that of the folder above",
        ..PLAIN
    },
    Tool {
        programs: &["cargo"],
        verbs: &["test", "t", "nextest", "bench", "clippy", "fmt"],
        kept: &[
            "Cargo.toml",
            "**/Cargo.toml",
            "**/build.rs",
            "tests/**",
            "**/tests/**",
            "clippy.toml",
            "rustfmt.toml",
        ],
        fixed: &["build.rs"],
        above: &[".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain"],
        folder: &["-C"],
        file: &["--manifest-path"],
        also: "with `--locked` or `--frozen`, `Cargo.lock`; the file of `--test NAME`",
        why: "`Cargo.toml` can leave a test out; `Cargo.lock` is written by cargo itself; tests within `src` are the work",
    },
    Tool {
        programs: &["cargo"],
        verbs: &["build", "b", "check", "c", "run", "r", "doc"],
        above: &[".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain"],
        folder: &["-C"],
        why: "a step that builds may add a dependency",
        ..PLAIN
    },
    Tool {
        programs: &["go"],
        verbs: &["test", "vet"],
        kept: &["go.mod", "vendor/modules.txt"],
        above: &["go.work"],
        folder: &["-C"],
        also: "`*_test.go` of its packages, new ones too",
        why: "Go links all tests of a package into one program, so a new file with a `TestMain` can end all of them",
        ..PLAIN
    },
    Tool {
        programs: &["mvn", "mvnw"],
        kept: &["pom.xml", "**/pom.xml", "**/src/test/**", ".mvn/wrapper/**"],
        fixed: &[".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml"],
        file: &["-f", "--file"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["gradle", "gradlew"],
        kept: &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "**/build.gradle*",
            "gradle/**",
            "**/src/test/**",
        ],
        fixed: &["gradle.properties"],
        folder: &["-p", "--project-dir"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["rspec"],
        kept: &["spec/**"],
        fixed: &[".rspec"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["phpunit"],
        kept: &["tests/**", "phpunit.xml.dist"],
        fixed: &["phpunit.xml"],
        file: &["-c", "--configuration"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["bats", "prove", "shellspec", "busted"],
        kept: &["its targets"],
        why: "a new test is not counted as a change",
        ..PLAIN
    },
    Tool {
        programs: &["tox", "nox"],
        kept: &["tox.ini", "noxfile.py", "pyproject.toml", "setup.cfg", "setup.py", "tests/**"],
        file: &["-c", "-f"],
        why: "which tests run stands there",
        ..PLAIN
    },
    Tool {
        programs: &["git"],
        also: "nothing: it judges the state of the work, from a [clean configuration](#contracts-that-ask-git)",
        why: "`.gitignore` and `.gitattributes` are an honest worker's to change, and a change of them shows in `git status`",
        ..PLAIN
    },
];

impl Follower<'_> {
    /// Takes note of the files that decide a command: the script that it runs, and those that its program reads.
    pub(super) fn tools(&mut self, words: &[Word], at: At) {
        let (name, rest) = (words[0].text(), &words[1..]);
        if name.contains('/') {
            self.run_file(&words[0], at);
        }
        let program = program(name);
        let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(&word.raw.as_str()));
        let next = rest.first().map_or("", |word| word.text());
        match program {
            "bash" | "sh" | "dash" | "zsh" | "ksh" if !has(&["-c", "-lc", "-ec", "-n"]) => {
                self.script_of(rest, at)
            }
            "source" | "." => self.script_of(rest, at),
            "python" | "python3" | "pypy3" => self.python(rest, at),
            "pytest" | "py.test" => self.pytest_run(rest, at),
            "coverage" if next == "run" => self.python(&rest[1..], at),
            "node" => self.node(rest, at),
            "ruby" | "perl" | "php" | "lua" | "Rscript" | "tsx" | "ts-node"
                if !has(&["-c", "-e", "-p", "-n", "-pe", "-ne", "-l"]) =>
            {
                self.script_of(rest, at);
            }
            "npx" | "bunx" | "pnpx" => self.npx(rest, at),
            "npm" | "pnpm" | "yarn" | "bun" => self.npm(program, rest, at),
            "make" | "gmake" => self.make(rest, at),
            "just" => self.just(rest, at),
            "bats" | "prove" | "shellspec" | "busted" | "jest" | "vitest" | "mocha" | "ava" | "rspec"
            | "phpunit" | "tap" => self.test_files(rest),
            "go" => self.go(rest),
            _ => {
                if let Some(inner) = started_by_runner(words) {
                    self.run(inner, at);
                }
            }
        }
        self.read_by(program, rest, at);
        self.has_built |= Call::of(words).does(Trait::Makes);
    }

    fn script_of(&mut self, rest: &[Word], at: At) {
        if let Some(word) = rest.iter().find(|word| !word.raw.starts_with('-') && word.raw != "-") {
            self.run_file(word, at);
        }
    }

    /// Protects what the table says of a program.
    fn read_by(&mut self, program: &str, rest: &[Word], at: At) {
        let verb = rest.iter().map(Word::text).find(|text| !text.starts_with(['-', '+'])).unwrap_or("");
        let fits = |tool: &&Tool| {
            tool.programs.contains(&program) && (tool.verbs.is_empty() || tool.verbs.contains(&verb))
        };
        let Some(tool) = TOOLS.iter().find(fits) else { return };
        let outside = self.shell.folder.clone();
        for folder in values_of(rest, tool.folder) {
            self.change_folder(&folder);
        }
        let files = values_of(rest, tool.file);
        for file in &files {
            self.run_file(file, at);
        }
        if program == "cargo" {
            self.cargo(rest, &files);
        }
        if program != "pytest" && program != "py.test" {
            self.read_in_folder(tool, !files.is_empty());
        }
        self.shell.folder = outside;
    }

    fn read_in_folder(&mut self, tool: &Tool, names_its_own: bool) {
        let mut names =
            tool.kept.iter().chain(tool.fixed).chain(tool.above).filter(|name| !name.contains(' '));
        if names.next().is_none() {
            return;
        }
        let Some(folder) = self.folder_here() else { return };
        for name in tool.kept.iter().filter(|name| !name.contains(' ')) {
            self.keep(joined(&folder, name));
        }
        // Where the project has yet to be made, all of it is the work.
        let main: Vec<&&str> = tool.kept.iter().filter(|name| !name.contains(['*', ' '])).collect();
        let is_there =
            |name: &&&str| upward(&folder).any(|folder| self.look.has(&joined(folder, name)) != Some(false));
        if !names_its_own
            && !main.is_empty()
            && !main.iter().any(is_there)
            && !self.has_any(&folder, tool.fixed)
        {
            return;
        }
        for name in tool.fixed.iter().filter(|_| !names_its_own) {
            self.fix(joined(&folder, name));
        }
        for (name, folder) in
            tool.above.iter().flat_map(|name| upward(&folder).map(move |folder| (name, folder)))
        {
            self.fix(joined(folder, name));
        }
    }

    fn has_any(&self, folder: &str, names: &[&str]) -> bool {
        names.iter().any(|name| self.look.has(&joined(folder, name)) == Some(true))
    }

    fn cargo(&mut self, rest: &[Word], manifests: &[Word]) {
        if let [manifest] = manifests
            && let Some(text) = manifest.literal.as_deref()
        {
            self.change_folder(&Value::plain(parent(text), manifest.span).word());
        }
        let Some(folder) = self.folder_here() else { return };
        if rest.iter().any(|word| matches!(word.raw.as_str(), "--locked" | "--frozen")) {
            self.keep(joined(&folder, "Cargo.lock"));
        }
        for name in values_of(rest, &["--test"]) {
            // One that is not there has yet to be written, by this step or an earlier one.
            self.keep(joined(&folder, &format!("tests/{}.rs", name.text())));
        }
    }

    /// Protects files that a runner of tests is given, and all that is there in folders.
    fn test_files(&mut self, rest: &[Word]) {
        for word in Arguments::read(rest, "ctkgpr", &["config", "reporter", "grep"]).positional {
            for value in self.shell.resolved(word).unwrap_or_default() {
                let FileLocation::Inside(path) = self.place(&value.text, value.is_pattern) else { continue };
                if path.contains(['/', '.']) || self.look.has(&path) == Some(true) {
                    self.keep(format!("{path}/**"));
                    self.keep(path);
                }
            }
        }
    }

    /// Returns the folder of now as a path of the workspace, for patterns below it.
    fn folder_here(&self) -> Option<String> {
        let folder = self.shell.folder.as_deref()?;
        match folder {
            "" => Some(String::new()),
            folder => match self.place(folder_from_top(folder).as_str(), false) {
                FileLocation::Inside(path) => Some(path),
                FileLocation::Outside | FileLocation::Unknown => None,
            },
        }
    }
}

fn folder_from_top(folder: &str) -> String {
    if folder.starts_with(['/', '~']) {
        folder.to_owned()
    } else {
        format!("{}/{folder}", super::values::TOP)
    }
}

/// Returns a folder and all above it, to the top of the workspace.
fn upward(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| (!folder.is_empty()).then(|| parent(folder)))
}

/// Returns the values of options: `-f X`, `--file X`, `--file=X`.
fn values_of(rest: &[Word], names: &[&str]) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        if word.raw == "--" {
            break;
        }
        if names.contains(&word.raw.as_str()) {
            found.extend(rest.get(at + 1).cloned());
        } else if let Some((name, value)) = word.text().split_once('=')
            && names.contains(&name)
            && name.starts_with("--")
        {
            found.push(Value::plain(value, word.span).word());
        }
    }
    found
}

// Returns the command that `uv run --frozen pytest` starts.
fn behind(words: &[Word]) -> &[Word] {
    let options = words.iter().take_while(|word| word.raw.starts_with('-')).count();
    &words[options..]
}
