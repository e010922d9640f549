//! The files that programs read by themselves, a part of the table of programs.
//!
//! Each entry is a choice between two mistakes. A protected file can't be weakened by the worker that it judges; it can't be
//! changed by an honest one either, unless the step says so. So sources are never protected here, and neither are lock files
//! that tools write themselves; a file that is only read where it is there is protected only where it is there.

/// The files that calls of a program read besides those that their words name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reads {
    /// The words behind the program's name in a call for which nothing but `kept`, `also` and `why` is said, for people.
    pub call: &'static str,
    /// The first arguments for which this holds; none for all.
    pub verbs: &'static [&'static str],
    /// Names and patterns, relative to the folder it works in: protected where they are there at approval.
    pub kept: &'static [&'static str],
    /// Protected too, and a new one is a change.
    pub fixed: &'static [&'static str],
    /// As `fixed`, in the folders above as well.
    pub above: &'static [&'static str],
    /// Options that name the folder it works in.
    pub(in crate::syntax::shell) folder: &'static [&'static str],
    /// Options that name a file in the place of its own.
    pub(in crate::syntax::shell) file: &'static [&'static str],
    /// The further files that its command line and its files name, for people.
    pub also: &'static str,
    /// Why just these.
    pub why: &'static str,
}

const READS: Reads = Reads {
    call: "",
    verbs: &[],
    kept: &[],
    fixed: &[],
    above: &[],
    folder: &[],
    file: &[],
    also: "",
    why: "",
};

pub(super) const SCRIPT: &[Reads] = &[Reads {
    also: "the script, also on standard input",
    why: "a new script that would be run is a change; a script whose output is only compared is the work",
    ..READS
}];

pub(super) const PYTHON: &[Reads] = &[
    Reads {
        also: "the script, or the file of `-m MODULE` and its packages; beside it and in `PYTHONPATH`, no new file takes \
               precedence over a module of the library (`unittest.py`, `json/__init__.py`, `sitecustomize.py`)",
        why: "Python looks beside the script, or in the current folder, before it looks into its library",
        ..READS
    },
    Reads {
        call: "-m unittest",
        also: "the modules that it names and their packages; for `discover`, the tests of the start folder",
        why: "a test that is added proves more, so it is not counted as a change",
        ..READS
    },
];

pub(super) const CODE: &[Reads] = &[Reads {
    also: "the script, and what `--require` and `--import` name",
    why: "what the script loads is the code under test",
    ..READS
}];

pub(super) const NODE: &[Reads] = &[
    CODE[0],
    Reads {
        call: "--test",
        kept: &["package.json", "its targets, or the tests that it finds by itself"],
        why: "a new test is not counted as a change",
        ..READS
    },
];

pub(super) const NPM: &[Reads] = &[Reads {
    kept: &["package.json", "pnpm-workspace.yaml"],
    above: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
    folder: &["--prefix", "-C", "--dir", "--cwd"],
    also: "what the script in `package.json` runs, with its `pre` and `post` scripts, and `node_modules/.bin` of its \
               programs: a new `sh`, `node` or other program of the host there is a change; no nearer `package.json`; those of \
               `workspaces`, where the call is for these; for `npm ci`, the lock file",
    why: "a lock file decides nothing unless it is installed from, and an honest worker's tools write it",
    ..READS
}];

pub(super) const PYTEST: &[Reads] = &[Reads {
    kept: &["test_*.py, *_test.py, conftest.py and __init__.py below its targets"],
    file: &["-c", "--config-file"],
    also: "files that it names; `conftest.py` below its targets and on the way up; `pytest.toml`, `.pytest.toml`, \
               `pytest.ini`, `.pytest.ini`, `pyproject.toml`, `tox.ini` and `setup.cfg` on the way up; for `python -m pytest` and \
               `PYTHONPATH`, no new `entry_points.txt` of a `.dist-info` or `.egg-info` there, and no `pytest_*.py`",
    why: "a new `conftest.py`, configuration or plugin is loaded before every test; a new test is not counted as a change",
    ..READS
}];

pub(super) const JEST: &[Reads] = &[Reads {
    kept: &["package.json", "babel.config.*", ".babelrc", "**/*.{test,spec}.*", "**/__tests__/**"],
    fixed: &[
        "jest.config.{js,ts,mjs,cjs,mts,cts,json}",
        "babel.config.{js,mjs,cjs,cts,json}",
        ".babelrc",
        ".babelrc.{js,mjs,cjs,json}",
    ],
    file: &["-c", "--config"],
    why: "a new test is not counted as a change; snapshots below `__tests__` are kept as they are",
    ..READS
}];

pub(super) const VITEST: &[Reads] = &[Reads {
    kept: &["package.json", "vite.config.*", "**/*.{test,spec}.*", "**/__tests__/**"],
    fixed: &["{vitest,vite}.config.{js,ts,mjs,cjs,mts,cts}", "vitest.workspace.{js,ts,json}"],
    file: &["-c", "--config"],
    why: "as for jest",
    ..READS
}];

pub(super) const MOCHA: &[Reads] = &[Reads {
    kept: &["package.json", "test/**"],
    fixed: &[".mocharc.{js,cjs,yaml,yml,json,jsonc}", "ava.config.{js,cjs,mjs}"],
    file: &["--config"],
    why: "as for jest",
    ..READS
}];

pub(super) const TSC: &[Reads] = &[Reads {
    kept: &["tsconfig.json", "package.json"],
    file: &["-p", "--project"],
    why: "which files are checked, and how strictly, stands there",
    ..READS
}];

pub(super) const MAKE: &[Reads] = &[Reads {
    kept: &["Makefile"],
    fixed: &["GNUmakefile", "makefile"],
    folder: &["-C", "--directory"],
    also: "what `-f` and `include` name; the scripts and tests that the recipes of its goals run, if they are there",
    why: "a `GNUmakefile` takes precedence over the `Makefile`; what a rule makes is a product",
    ..READS
}];

pub(super) const JUST: &[Reads] = &[Reads {
    kept: &["justfile", "Justfile"],
    fixed: &[".justfile"],
    folder: &["-d", "--working-directory"],
    file: &["-f", "--justfile"],
    also: "what `import` and `mod` name, and what its recipes run",
    why: "a hidden one takes precedence over that of the folder above",
    ..READS
}];

const CARGO_READS: Reads = Reads {
    above: &[".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain"],
    folder: &["-C"],
    ..READS
};

pub(super) const CARGO: &[Reads] = &[
    Reads {
        verbs: &["test", "t", "bench", "clippy", "fmt"],
        kept: &[
            "Cargo.toml",
            "**/Cargo.toml",
            "**/build.rs",
            "tests/**",
            "**/tests/**",
            "clippy.toml",
            "rustfmt.toml",
        ],
        fixed: &["**/build.rs"],
        file: &["--manifest-path"],
        also: "with `--locked` or `--frozen`, `Cargo.lock`; the file of `--test NAME`",
        why: "`Cargo.toml` can leave a test out; `Cargo.lock` is written by cargo itself; tests within `src` are the work",
        ..CARGO_READS
    },
    Reads {
        verbs: &["nextest"],
        kept: &["Cargo.toml", "**/Cargo.toml", "**/build.rs", "tests/**", "**/tests/**"],
        fixed: &["**/build.rs"],
        above: &[
            ".config/nextest.toml",
            ".cargo/config.toml",
            ".cargo/config",
            "rust-toolchain.toml",
            "rust-toolchain",
        ],
        file: &["--manifest-path", "--config-file"],
        also: "as for `test`",
        why: "its configuration can leave tests out",
        ..CARGO_READS
    },
    Reads {
        verbs: &["build", "b", "check", "c", "run", "r", "doc"],
        why: "a step that builds may add a dependency",
        ..CARGO_READS
    },
];

pub(super) const GO: &[Reads] = &[Reads {
    verbs: &["test", "vet"],
    kept: &["go.mod", "vendor/modules.txt"],
    fixed: &["**/go.mod", "vendor/modules.txt"],
    above: &["go.work"],
    folder: &["-C"],
    also: "`*_test.go` of its packages, new ones too",
    why: "Go links all tests of a package into one program, so a new file with a `TestMain` can end all of them; the packages of a \
          folder with a `go.mod` of its own are left out, and those of `vendor` take precedence over others",
    ..READS
}];

pub(super) const MAVEN: &[Reads] = &[Reads {
    kept: &["pom.xml", "**/pom.xml", "**/src/test/**", ".mvn/wrapper/**"],
    fixed: &[".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml"],
    file: &["-f", "--file"],
    why: "a new test is not counted as a change",
    ..READS
}];

pub(super) const GRADLE: &[Reads] = &[Reads {
    kept: &[
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
        "**/build.gradle*",
        "gradle/**",
        "**/src/test/**",
    ],
    fixed: &[
        "gradle.properties",
        "settings.gradle",
        "**/build.gradle",
        "buildSrc/*.{gradle,kts}",
        "buildSrc/src/**",
    ],
    folder: &["-p", "--project-dir"],
    why: "a `build.gradle` takes precedence over a `build.gradle.kts`, and `buildSrc` is built and run first; a new test is \
          not counted as a change",
    ..READS
}];

pub(super) const RSPEC: &[Reads] = &[Reads {
    kept: &["spec/**"],
    fixed: &[".rspec", ".rspec-local"],
    why: "a new test is not counted as a change",
    ..READS
}];

pub(super) const PHPUNIT: &[Reads] = &[Reads {
    kept: &["tests/**", "phpunit.xml.dist"],
    fixed: &["phpunit.xml", "phpunit.dist.xml"],
    file: &["-c", "--configuration"],
    why: "a new test is not counted as a change",
    ..READS
}];

const TARGETS: Reads =
    Reads { kept: &["its targets"], why: "a new test is not counted as a change", ..READS };

pub(super) const BATS: &[Reads] = &[TARGETS];

pub(super) const PROVE: &[Reads] = &[Reads { fixed: &[".proverc"], ..TARGETS }];

pub(super) const SHELLSPEC: &[Reads] =
    &[Reads { fixed: &[".shellspec", ".shellspec-local", ".shellspec-basedir"], ..TARGETS }];

pub(super) const BUSTED: &[Reads] = &[Reads { fixed: &[".busted"], ..TARGETS }];

pub(super) const TOX: &[Reads] = &[Reads {
    kept: &["tox.ini", "noxfile.py", "pyproject.toml", "setup.cfg", "setup.py", "tests/**"],
    fixed: &["tox.ini", "setup.cfg"],
    file: &["-c", "-f"],
    why: "which tests run stands there; a `tox.ini` takes precedence over a `pyproject.toml`",
    ..READS
}];

pub(super) const GIT: &[Reads] = &[Reads {
    also: "nothing: it judges the state of the work, from a [clean configuration](#contracts-that-ask-git)",
    why: "`.gitignore` and `.gitattributes` are an honest worker's to change, and a change of them shows in `git status`",
    ..READS
}];
