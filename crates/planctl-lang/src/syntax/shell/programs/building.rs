//! Programs for the work on a program: version control, tests, builds, packages.

use super::Trait::{
    Asks, Builds, Changes, Checks, Destroys, Examines, Makes, Network, Prints, RunsWorkspace, Selects, Shows,
    Tells, Tests,
};
use super::reads::sources;
use super::table::{ASKS_FOR_ITSELF, BY_NAME, FILES, INDEX, OFFLINE, PLAIN, REPOSITORY, TREE};
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
            Does::any(Tests),
            Does::any(Selects).with(&["--lf", "--last-failed"]),
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
            Does::any(Tests).with(&["test*", "check*"]),
            Does::any(Tells("make -n", "let it make: without `-n`")).with(&[
                "-n",
                "--dry-run",
                "--just-print",
            ]),
            Does::any(Tells("make -i", "let a failure end it: without `-i`"))
                .with(&["-i", "--ignore-errors"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["cargo"],
        reads: reads::CARGO,
        short: "FZjp",
        long: CARGO_OPTIONS,
        does: &[
            Does::on(&["test", "t", "nextest"], Tests),
            Does::on(&["test", "t"], Selects).of_something(),
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
            Does::on(&["test"], Tests),
            Does::on(&["test"], Selects).with(&["-run", "-run=*"]),
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
    Program { names: &["bazel", "bazelisk"], reads: reads::BAZEL, does: BUILD, ..PLAIN },
    Program { names: &["ninja"], does: BUILD, ..PLAIN },
    Program { names: &["ant"], reads: reads::ANT, does: &[Does::any(Makes)], ..PLAIN },
    Program {
        names: &[
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
    Program {
        names: &["rake"],
        reads: reads::RAKE,
        does: &[Does::any(Makes), Does::any(RunsWorkspace)],
        ..PLAIN
    },
    Program {
        names: &["sbt"],
        reads: reads::SBT,
        does: &[Does::any(Makes), Does::any(RunsWorkspace)],
        ..PLAIN
    },
    Program { names: &["tsc"], reads: reads::TSC, does: COMPILE, ..PLAIN },
    Program { names: &["cc", "gcc", "g++", "clang"], reads: reads::CC, does: COMPILE, ..PLAIN },
    Program { names: &["rustc"], does: COMPILE, ..PLAIN },
    Program {
        names: &["c++", "clang++"],
        reads: reads::CC,
        does: &[Does::any(Makes).without(ONLY_CHECKS), Does::any(Examines)],
        ..PLAIN
    },
    Program { names: &["cmake"], does: CONFIGURE, ..PLAIN },
    Program { names: &["meson"], reads: reads::MESON, does: CONFIGURE, ..PLAIN },
    Program { names: &["dotnet"], reads: reads::DOTNET, does: SDK, ..PLAIN },
    Program { names: &["swift"], reads: reads::SWIFT, does: SDK, ..PLAIN },
    Program { names: &["zig"], does: &[Does::other_than(Makes, &["test"])], ..PLAIN },
    Program {
        names: &["stack", "cabal"],
        reads: reads::HASKELL,
        does: &[Does::other_than(Makes, &["test"])],
        ..PLAIN
    },
    Program { names: &["mix"], reads: reads::MIX, does: &[Does::other_than(Makes, &["test"])], ..PLAIN },
    Program { names: &["jest"], reads: reads::JEST, does: TEST_BY_NAME, ..PLAIN },
    Program { names: &["vitest"], reads: reads::VITEST, does: TEST_BY_NAME, ..PLAIN },
    Program {
        names: &["mocha"],
        reads: reads::MOCHA,
        does: &test_by(&["-g", "-f", "--grep", "--fgrep"]),
        ..PLAIN
    },
    Program { names: &["ava"], reads: reads::MOCHA, does: TEST, ..PLAIN },
    Program { names: &["unittest"], does: &[Does::any(Tests), Does::any(Selects).with(&["-k"])], ..PLAIN },
    Program {
        names: &["rspec"],
        reads: reads::RSPEC,
        does: &test_by(&["-e", "--example", "-t", "--tag"]),
        ..PLAIN
    },
    Program {
        names: &["phpunit", "pest"],
        reads: reads::PHPUNIT,
        does: &test_by(&["--filter", "--group"]),
        ..PLAIN
    },
    Program { names: &["artisan"], reads: reads::ARTISAN, does: &[Does::on(&["test"], Tests)], ..PLAIN },
    Program { names: &["bats"], reads: reads::BATS, does: &test_by(&["-f", "--filter"]), ..PLAIN },
    Program { names: &["tap"], reads: reads::TAP, does: TEST, ..PLAIN },
    Program { names: &["karma", "wdio", "testcafe"], reads: reads::BROWSERS, does: TEST, ..PLAIN },
    Program { names: &["cucumber", "cucumber-js"], reads: reads::CUCUMBER, does: TEST, ..PLAIN },
    Program { names: &["behave"], reads: reads::BEHAVE, does: TEST, ..PLAIN },
    Program { names: &["robot"], reads: reads::ROBOT, does: TEST, ..PLAIN },
    Program { names: &["dart", "flutter"], reads: reads::DART, does: RUN, ..PLAIN },
    Program { names: &["prove"], reads: reads::PROVE, does: TEST, ..PLAIN },
    Program { names: &["shellspec"], reads: reads::SHELLSPEC, does: TEST, ..PLAIN },
    Program { names: &["busted"], reads: reads::BUSTED, does: TEST, ..PLAIN },
    Program { names: &["tox", "nox"], reads: reads::TOX, does: TEST, ..PLAIN },
    Program { names: &["ctest"], reads: reads::CTEST, does: TEST, ..PLAIN },
    Program { names: &["deno"], reads: reads::DENO, does: RUN, ..PLAIN },
    Program { names: &["task"], reads: reads::TASK, does: RUN, ..PLAIN },
    Program { names: &["nose2"], reads: reads::NOSE2, does: TEST, ..PLAIN },
    Program { names: &["playwright", "cypress"], reads: reads::PLAYWRIGHT, does: TEST, ..PLAIN },
    Program {
        names: &["pre-commit"],
        reads: reads::PRE_COMMIT,
        does: &[
            Does::any(RunsWorkspace),
            Does::on(&["run"], Selects).without(&["-a", "--all-files", "--files", "--from-ref"]),
        ],
        ..PLAIN
    },
    Program { names: &["lint-staged"], does: &[Does::any(RunsWorkspace), Does::any(Selects)], ..PLAIN },
    Program { names: &["nx"], does: &[Does::any(RunsWorkspace), Does::on(&["affected"], Selects)], ..PLAIN },
    // Readers of sources.
    Program {
        names: &["shellcheck"],
        reads: sources::SHELLCHECK,
        long: SETTINGS,
        does: &[Does::any(Checks), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["rustfmt"],
        reads: sources::RUSTFMT,
        long: SETTINGS,
        does: &[Does::any(Changes(FILES)).without(&["--check"]), Does::any(Examines)],
        ..PLAIN
    },
    Program { names: &["black"], reads: sources::BLACK, ..FORMATS },
    Program { names: &["isort"], reads: sources::ISORT, ..FORMATS },
    Program {
        names: &["ruff"],
        reads: sources::RUFF,
        long: SETTINGS,
        does: &[
            Does::on(&["format"], Changes(FILES)).without(&["--check", "--diff", "--version"]),
            Does::on(&["check"], Changes(FILES)).with(&["--fix"]),
            Does::any(Examines),
            EXIT_ZERO,
        ],
        ..PLAIN
    },
    Program { names: &["eslint"], reads: sources::ESLINT, ..LINTS_AND_FIXES },
    Program { names: &["stylelint"], reads: sources::STYLELINT, ..LINTS_AND_FIXES },
    Program { names: &["biome", "oxlint"], reads: sources::BIOME, ..LINTS_AND_FIXES },
    Program { names: &["golangci-lint"], reads: sources::GOLANGCI, ..LINTS_AND_FIXES },
    Program { names: &["rubocop"], reads: sources::RUBOCOP, ..LINTS },
    Program { names: &["clang-tidy", "clang-format"], reads: sources::CLANG, ..LINTS_AND_FIXES },
    Program {
        names: &["prettier"],
        reads: sources::PRETTIER,
        long: SETTINGS,
        does: &[Does::any(Changes(FILES)).with(&["--write", "-w"]), Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["gofmt", "goimports"],
        does: &[Does::any(Changes(FILES)).with(&["-w"]), Does::any(Examines)],
        ..PLAIN
    },
    Program { names: &["mypy"], reads: sources::MYPY, ..LINTS },
    Program { names: &["pyright", "basedpyright"], reads: sources::PYRIGHT, ..LINTS },
    Program { names: &["pylint"], reads: sources::PYLINT, ..LINTS },
    Program { names: &["flake8", "pycodestyle"], reads: sources::FLAKE8, ..LINTS },
    Program { names: &["codespell"], reads: sources::CODESPELL, ..LINTS },
    Program { names: &["typos"], reads: sources::TYPOS, ..LINTS },
    Program { names: &["yamllint"], reads: sources::YAMLLINT, ..LINTS },
    Program { names: &["hadolint"], reads: sources::HADOLINT, ..LINTS },
    Program { names: &["luacheck"], reads: sources::LUACHECK, ..LINTS },
    Program { names: &["markdownlint", "markdownlint-cli2"], reads: sources::MARKDOWNLINT, ..LINTS },
    Program { names: &["semgrep"], reads: sources::SEMGREP, ..LINTS },
    Program { names: &["sqlfluff", "sqruff"], reads: sources::SQLFLUFF, ..LINTS },
    Program { names: &["bandit"], reads: sources::BANDIT, ..LINTS },
    Program { names: &["trivy"], reads: sources::TRIVY, ..LINTS },
    Program { names: &["gitleaks"], reads: sources::GITLEAKS, ..LINTS },
    Program { names: &["tflint"], reads: sources::TFLINT, ..LINTS },
    Program { names: &["checkov"], reads: sources::CHECKOV, ..LINTS },
    Program { names: &["kube-linter"], reads: sources::KUBE_LINTER, ..LINTS },
    Program { names: &["ansible-lint"], reads: sources::ANSIBLE_LINT, ..LINTS },
    Program { names: &["spectral"], reads: sources::SPECTRAL, ..LINTS },
    Program { names: &["redocly"], reads: sources::REDOCLY, ..LINTS },
    Program { names: &["buf"], reads: sources::BUF, ..LINTS },
    Program { names: &["vale"], reads: sources::VALE, ..LINTS },
    Program { names: &["cspell"], reads: sources::CSPELL, ..LINTS },
    Program { names: &["lychee"], reads: sources::LYCHEE, ..LINTS },
    Program { names: &["dprint"], reads: sources::DPRINT, ..LINTS },
    Program { names: &["taplo"], reads: sources::TAPLO, ..LINTS },
    Program { names: &["reuse"], reads: sources::REUSE, ..LINTS },
    Program { names: &["actionlint"], reads: sources::ACTIONLINT, ..LINTS },
    Program { names: &["vulture"], reads: sources::VULTURE, ..LINTS },
    Program { names: &["interrogate"], reads: sources::INTERROGATE, ..LINTS },
    Program { names: &["pydocstyle"], reads: sources::PYDOCSTYLE, ..LINTS },
    Program { names: &["djlint"], reads: sources::DJLINT, ..LINTS },
    Program { names: &["htmlhint"], reads: sources::HTMLHINT, ..LINTS },
    Program { names: &["phpstan"], reads: sources::PHPSTAN, ..LINTS },
    Program { names: &["psalm"], reads: sources::PSALM, ..LINTS },
    Program { names: &["phpcs"], reads: sources::PHPCS, ..LINTS },
    Program { names: &["php-cs-fixer"], reads: sources::PHP_CS_FIXER, ..LINTS },
    Program { names: &["cpplint"], reads: sources::CPPLINT, ..LINTS },
    Program { names: &["staticcheck"], reads: sources::STATICCHECK, ..LINTS },
    Program { names: &["revive"], reads: sources::REVIVE, ..LINTS },
    Program { names: &["ktlint"], reads: sources::KTLINT, ..LINTS },
    Program { names: &["swiftlint", "swiftformat"], reads: sources::SWIFTLINT, ..LINTS },
    Program { names: &["perlcritic"], reads: sources::PERLCRITIC, ..LINTS },
    Program { names: &["reek"], reads: sources::REEK, ..LINTS },
    Program { names: &["standardrb"], reads: sources::STANDARD_RB, ..LINTS },
    Program {
        names: &[
            "compileall",
            "cppcheck",
            "json.tool",
            "jsonlint",
            "pyflakes",
            "py_compile",
            "tidy",
            "xmllint",
        ],
        ..LINTS
    },
    Program {
        names: &["pip", "pip3"],
        does: &[Does::on(&["install", "download", "search"], Network).without(OFFLINE), Does::any(Makes)],
        ..PLAIN
    },
    Program { names: &["gem"], does: &[Does::on(&["install", "update", "push"], Network)], ..PLAIN },
    Program {
        names: &["composer"],
        reads: reads::COMPOSER,
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
const RUN: &[Does] = &[Does::any(RunsWorkspace)];
const TEST: &[Does] = &[Does::any(RunsWorkspace), Does::any(Tests)];
const TEST_BY_NAME: &[Does] = &test_by(BY_NAME);

/// Runs tests, with these flags those of a name.
const fn test_by(flags: &'static [&'static str]) -> [Does; 3] {
    [Does::any(RunsWorkspace), Does::any(Tests), Does::any(Selects).with(flags)]
}

/// Options of cargo, and of the tests that it runs, with a value.
const CARGO_OPTIONS: &[&str] = &[
    "bench",
    "bin",
    "color",
    "config",
    "example",
    "exclude",
    "features",
    "jobs",
    "manifest-path",
    "message-format",
    "package",
    "profile",
    "skip",
    "target",
    "target-dir",
    "test",
    "test-threads",
];
const SDK: &[Does] = &[Does::other_than(Makes, &["test"]), Does::any(RunsWorkspace)];
const EXIT_ZERO: Does = Does::any(Tells("--exit-zero", "let it say by its exit code: without `--exit-zero`"))
    .with(&["--exit-zero"]);
const LINTS: Program =
    Program { short: "c", long: SETTINGS, does: &[Does::any(Examines), EXIT_ZERO], ..PLAIN };
const LINTS_AND_FIXES: Program =
    Program { does: &[Does::any(Changes(FILES)).with(&["--fix"]), Does::any(Examines)], ..LINTS };
const FORMATS: Program =
    Program {
        long: SETTINGS,
        does: &[
            Does::any(Changes(FILES)).without(&["--check", "--diff", "--check-only", "--version"]),
            Does::any(Examines),
            Does::any(Tells("--diff", "let it say by its exit code: `--check`"))
                .with(&["--diff"])
                .without(&["--check", "--check-only", "-c"]),
        ],
        ..PLAIN
    };

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
