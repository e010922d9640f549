//! Programs for the work on a program: version control, tests, builds, packages.

use super::Trait::{
    Asks, Builds, Changes, Checks, Destroys, Examines, Makes, Network, Prints, RunsWorkspace, Shows, Tells,
};
use super::table::{ASKS_FOR_ITSELF, FILES, INDEX, OFFLINE, PLAIN, REPOSITORY, TREE};
use super::{Does, Files, Program, reads};

pub(super) const PROGRAMS: &[Program] = &[
    // Version control.
    Program {
        names: &["git"],
        reads: reads::GIT,
        short: "Cc",
        long: &["git-dir", "work-tree", "namespace"],
        files: Files::Own,
        does: GIT,
        ..PLAIN
    },
    Program {
        names: &["gh"],
        does: &[
            Does::any(Network).without(ASKS_FOR_ITSELF),
            Does::any(Destroys).with(&["delete"]),
            Does::on(&["auth"], Asks).with(&["login"]),
        ],
        ..PLAIN
    },
    Program { names: &["glab"], does: &[Does::any(Network).without(ASKS_FOR_ITSELF)], ..PLAIN },
    // Tests, builds and what they use.
    Program {
        names: &["pytest", "py.test"],
        reads: reads::PYTEST,
        short: "kmnpcoW",
        long: &["maxfail", "deselect", "ignore", "rootdir", "tb", "durations", "config-file"],
        files: Files::Own,
        does: &[
            Does::any(Checks),
            Does::any(RunsWorkspace),
            Does::any(Tells("pytest --collect-only", "let it run the tests: without `--collect-only`"))
                .with(&["--collect-only", "--co"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["make", "gmake"],
        reads: reads::MAKE,
        short: "Cfj",
        long: &["directory", "file"],
        files: Files::Own,
        does: &[
            Does::any(Builds),
            Does::any(Makes),
            Does::any(RunsWorkspace),
            Does::any(Tells("make -n", "let it make: without `-n`")).with(&[
                "-n",
                "--dry-run",
                "--just-print",
            ]),
        ],
        ..PLAIN
    },
    Program {
        names: &["cargo"],
        reads: reads::CARGO,
        does: &[
            Does::on(&["install", "publish", "update", "search", "fetch", "login", "yank", "audit"], Network)
                .without(OFFLINE),
            Does::on(&["fmt"], Changes(FILES)).without(&["--check"]),
            Does::on(&["fix", "add", "remove"], Changes(FILES)),
            Does::on(&["clippy"], Changes(FILES)).with(&["--fix"]),
            Does::any(Builds),
            Does::on(&["build", "b", "install", "run", "r", "xtask"], Makes),
            Does::any(RunsWorkspace),
        ],
        ..PLAIN
    },
    Program {
        names: &["go"],
        reads: reads::GO,
        short: "C",
        does: &[
            Does::on(&["get", "install"], Network),
            Does::on(&["fmt", "generate"], Changes(FILES)),
            Does::on(&["mod"], Changes(FILES)).with(&["tidy"]),
            Does::any(Builds),
            Does::on(&["build", "install", "generate"], Makes),
            Does::any(RunsWorkspace),
        ],
        ..PLAIN
    },
    Program { names: &["just"], reads: reads::JUST, does: BUILD, ..PLAIN },
    Program { names: &["mvn"], reads: reads::MAVEN, does: BUILD, ..PLAIN },
    Program { names: &["mvnw"], reads: reads::MAVEN, does: &[Does::any(Makes)], ..PLAIN },
    Program { names: &["gradle"], reads: reads::GRADLE, does: BUILD, ..PLAIN },
    Program { names: &["gradlew"], reads: reads::GRADLE, does: &[Does::any(Makes)], ..PLAIN },
    Program { names: &["bazel", "ninja"], does: BUILD, ..PLAIN },
    Program {
        names: &[
            "ant",
            "javac",
            "esbuild",
            "webpack",
            "rollup",
            "vite",
            "parcel",
            "nix",
            "nix-build",
            "venv",
            "virtualenv",
        ],
        does: &[Does::any(Makes)],
        ..PLAIN
    },
    Program { names: &["rake", "sbt"], does: &[Does::any(Makes), Does::any(RunsWorkspace)], ..PLAIN },
    Program { names: &["tsc"], reads: reads::TSC, does: COMPILE, ..PLAIN },
    Program { names: &["cc", "gcc", "g++", "clang", "rustc"], does: COMPILE, ..PLAIN },
    Program {
        names: &["c++", "clang++"],
        does: &[Does::any(Makes).without(ONLY_CHECKS), Does::any(Examines)],
        ..PLAIN
    },
    Program { names: &["cmake", "meson"], does: CONFIGURE, ..PLAIN },
    Program {
        names: &["dotnet", "swift"],
        does: &[Does::other_than(Makes, &["test"]), Does::any(RunsWorkspace)],
        ..PLAIN
    },
    Program {
        names: &["zig", "stack", "cabal", "mix"],
        does: &[Does::other_than(Makes, &["test"])],
        ..PLAIN
    },
    Program { names: &["jest"], reads: reads::JEST, does: TEST, ..PLAIN },
    Program { names: &["vitest"], reads: reads::VITEST, does: TEST, ..PLAIN },
    Program { names: &["mocha", "ava"], reads: reads::MOCHA, does: TEST, ..PLAIN },
    Program { names: &["rspec"], reads: reads::RSPEC, does: TEST, ..PLAIN },
    Program { names: &["phpunit"], reads: reads::PHPUNIT, does: TEST, ..PLAIN },
    Program { names: &["bats"], reads: reads::BATS, does: TEST, ..PLAIN },
    Program { names: &["prove"], reads: reads::PROVE, does: TEST, ..PLAIN },
    Program { names: &["shellspec"], reads: reads::SHELLSPEC, does: TEST, ..PLAIN },
    Program { names: &["busted"], reads: reads::BUSTED, does: TEST, ..PLAIN },
    Program { names: &["tox", "nox"], reads: reads::TOX, does: TEST, ..PLAIN },
    Program { names: &["ctest", "deno", "task", "nose2"], does: TEST, ..PLAIN },
    // Readers of sources.
    Program {
        names: &["shellcheck"],
        long: SETTINGS,
        does: &[Does::any(Checks), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["rustfmt"],
        long: SETTINGS,
        does: &[Does::any(Changes(FILES)).without(&["--check"]), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["black", "isort"],
        long: SETTINGS,
        does: &[
            Does::any(Changes(FILES)).without(&["--check", "--diff", "--check-only", "--version"]),
            Does::any(Examines),
        ],
        ..PLAIN
    },
    Program {
        names: &["ruff"],
        long: SETTINGS,
        does: &[
            Does::on(&["format"], Changes(FILES)).without(&["--check", "--diff", "--version"]),
            Does::on(&["check"], Changes(FILES)).with(&["--fix"]),
            Does::any(Examines),
        ],
        ..PLAIN
    },
    Program {
        names: &["eslint", "stylelint"],
        short: "c",
        long: SETTINGS,
        does: &[Does::any(Changes(FILES)).with(&["--fix"]), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["prettier"],
        long: SETTINGS,
        does: &[Does::any(Changes(FILES)).with(&["--write", "-w"]), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["gofmt", "goimports"],
        does: &[Does::any(Changes(FILES)).with(&["-w"]), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &[
            "actionlint",
            "codespell",
            "compileall",
            "cppcheck",
            "cpplint",
            "flake8",
            "hadolint",
            "htmlhint",
            "json.tool",
            "jsonlint",
            "luacheck",
            "markdownlint",
            "markdownlint-cli2",
            "mypy",
            "pycodestyle",
            "pyflakes",
            "py_compile",
            "pylint",
            "pyright",
            "rubocop",
            "tidy",
            "typos",
            "xmllint",
            "yamllint",
        ],
        short: "c",
        long: SETTINGS,
        does: &[Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["pip", "pip3"],
        does: &[Does::on(&["install", "download", "search"], Network).without(OFFLINE), Does::any(Makes)],
        ..PLAIN
    },
    Program { names: &["gem"], does: &[Does::on(&["install", "update", "push"], Network)], ..PLAIN },
    Program {
        names: &["composer"],
        does: &[
            Does::on(&["install", "update", "push"], Network),
            Does::on(&["install", "update"], Makes),
            Does::any(RunsWorkspace),
        ],
        ..PLAIN
    },
];

const BUILD: &[Does] = &[Does::any(Builds), Does::any(Makes), Does::any(RunsWorkspace)];
const CONFIGURE: &[Does] = &[Does::any(Builds), Does::any(Makes), Does::any(Checks)];
const COMPILE: &[Does] =
    &[Does::any(Builds), Does::any(Makes).without(ONLY_CHECKS), Does::any(Checks), Does::any(Examines)];
/// Options with which a compiler makes nothing.
const ONLY_CHECKS: &[&str] = &["-fsyntax-only", "--noEmit"];
/// Options that name the file which says how strictly sources are read.
const SETTINGS: &[&str] =
    &["config", "config-file", "config-path", "rcfile", "rulesdir", "settings-path", "schema"];
const TEST: &[Does] = &[Does::any(RunsWorkspace)];

const GIT: &[Does] = &[
    Does::on(&["diff", "grep", "log", "ls-files", "show", "status"], Examines),
    Does::on(&["push", "pull", "fetch", "clone", "ls-remote"], Network),
    Does::on(&["submodule"], Network).with(&["update"]),
    Does::on(&["remote"], Network).with(&["update", "show"]),
    Does::on(&["reset"], Destroys).with(&["--hard", "--merge"]),
    Does::on(&["clean"], Destroys).with(&["-f", "--force"]).without(&["-n", "--dry-run"]),
    Does::on(&["checkout"], Destroys).with(&["--", "."]),
    Does::on(&["restore"], Destroys).without(&["--staged"]),
    Does::on(&["restore"], Destroys).with(&["--worktree"]),
    Does::on(&["push"], Destroys).with(&["-f", "--force", "--delete", "--mirror", "--prune", "+*"]),
    Does::on(&["branch"], Destroys).with(&["-D"]),
    Does::on(&["stash"], Destroys).with(&["drop", "clear"]),
    Does::on(&["filter-branch", "filter-repo"], Destroys),
    Does::on(&["rebase"], Asks).with(&["-i", "--interactive"]),
    Does::on(&["add", "checkout", "stash", "restore", "reset"], Asks).with(&["-p", "--patch"]),
    Does::on(&["mergetool", "difftool"], Asks),
    Does::on(&["commit"], Asks).without(&[
        "-m*",
        "--message*",
        "-am*",
        "--fixup*",
        "--squash*",
        "-F",
        "--no-edit",
        "-C",
    ]),
    Does::on(&["commit", "merge", "rebase", "cherry-pick", "revert", "am"], Changes(REPOSITORY)),
    Does::on(&["add"], Changes(INDEX)).without(&["-n", "--dry-run"]),
    Does::on(&["reset"], Changes(INDEX)).without(&["--hard"]),
    Does::on(&["checkout", "switch"], Changes(TREE)).without(&["--", "."]),
    Does::on(&["stash"], Changes(TREE)).without(&["list", "show"]),
    Does::on(&["apply"], Changes(TREE)).without(&["--check", "--stat", "--numstat"]),
    Does::on(&["tag", "branch"], Changes(REPOSITORY)).of_something().without(&[
        "-l",
        "--list",
        "--show-current",
        "-v",
        "-a",
        "-r",
        "--contains",
    ]),
    Does::on(&["init"], Changes("makes a repository")),
    Does::on(&["diff"], Tells("git diff", "let it say by its exit code: `git diff --quiet`")).without(&[
        "--quiet",
        "--exit-code",
        "--check",
        "--no-index",
    ]),
    Does::on(
        &["status"],
        Tells("git status", "compare what it prints: `test -z \"$(git status --porcelain)\"`"),
    ),
    Does::on(&["log"], Tells("git log", "compare what it prints: `test -n \"$(git log …)\"`")),
    Does::on(&["status", "log", "show", "branch", "stash", "config", "fetch", "add"], Shows),
    Does::on(&["diff"], Shows).without(&["--quiet", "--exit-code", "--check"]),
    Does::any(Prints),
    Does::on(&["clone", "checkout", "submodule", "worktree", "restore", "apply"], Makes),
];
