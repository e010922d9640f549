//! The files that programs read by themselves, a part of the table of programs.
//!
//! Each entry is a choice between two mistakes. A protected file can't be weakened by the worker that it judges; it can't be
//! changed by an honest one either, unless the step says so. So sources are never protected here, and neither are lock files
//! that tools write themselves; a file that is only read where it is there is protected only where it is there.

pub(super) mod sources;

use super::has_sign;
use sources::STRICTNESS;

/// The files that calls of a program read besides those that their words name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reads {
    /// The words behind the program's name in a call for which nothing but `kept`, `also` and `why` is said, for people.
    pub call: &'static str,
    /// The first arguments for which this holds; none for all.
    pub verbs: &'static [&'static str],
    /// And one of these signs is among the words; none where that is no matter.
    pub with: &'static [&'static str],
    /// And none of these.
    pub(in crate::syntax::shell) without: &'static [&'static str],
    /// Names and patterns, relative to the folder it works in: protected where they are there at approval.
    pub kept: &'static [&'static str],
    /// Protected too, and a new one is a change.
    pub fixed: &'static [&'static str],
    /// As `fixed`, in the folders above as well.
    pub above: &'static [&'static str],
    /// As `fixed`, in the folders that it is given (the one it works in, where none is given), below these, and around the files that it
    /// is given.
    pub below: &'static [&'static str],
    /// Options that name the folder it works in.
    pub(in crate::syntax::shell) folder: &'static [&'static str],
    /// Options that name a file in the place of its own.
    pub(in crate::syntax::shell) file: &'static [&'static str],
    /// The further files that its command line and its files name, for people.
    pub also: &'static str,
    /// Why just these.
    pub why: &'static str,
}

impl Reads {
    /// Says whether this holds for a call with such words, of which one is the verb.
    pub(super) fn fit(&self, verb: &str, words: &[&str]) -> bool {
        self.call.is_empty()
            && (self.verbs.is_empty() || self.verbs.contains(&verb))
            && (self.with.is_empty() || self.with.iter().any(|sign| has_sign(words, sign)))
            && !self.without.iter().any(|sign| has_sign(words, sign))
    }
}

const READS: Reads = Reads {
    call: "",
    verbs: &[],
    with: &[],
    without: &[],
    kept: &[],
    fixed: &[],
    above: &[],
    below: &[],
    folder: &[],
    file: &[],
    also: "",
    why: "",
};

pub(super) const SCRIPT: &[Reads] = &[Reads {
    also: "the script, also on standard input; of a shell script also what it runs and sources from its own folder (but for the top of \
           the workspace) and below, if it is there, and what its tools read",
    why: "a new script that would be run is a change; a script whose output is only compared is the work; a file of elsewhere that a \
          script runs may be the code under test",
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
        also: "the modules that it names and their packages, and no new ones of their names that Python takes first \
               (`tests/test_cart/__init__.py`); for `discover`, the tests of the start folder",
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
    kept: &["package.json", "pnpm-workspace.yaml", ".yarn/{releases,plugins}/**"],
    above: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
    folder: &["--prefix", "-C", "--dir", "--cwd"],
    also: "what the script in `package.json` runs, with its `pre` and `post` scripts, and `node_modules/.bin` of its \
               programs: a new `sh`, `node` or other program of the host there is a change; no nearer `package.json`; those of \
               `workspaces`, where the call is for these, and what their scripts run, of the packages that it names; for `npm ci`, \
               the lock file",
    why: "a lock file decides nothing unless it is installed from, and an honest worker's tools write it",
    ..READS
}];

pub(super) const BUN: &[Reads] = &[
    Reads {
        verbs: &["test"],
        kept: &["package.json", "**/*{.test,_test,.spec,_spec}.*"],
        folder: &["--cwd"],
        also: "",
        why: "it runs no script of `package.json`; a new test is not counted as a change",
        ..NPM[0]
    },
    NPM[0],
];

pub(super) const PYTEST: &[Reads] = &[Reads {
    kept: &["test_*.py, *_test.py, conftest.py and __init__.py below its targets"],
    file: &["-c", "--config-file"],
    also: "files that it names; `conftest.py` below its targets, and `__init__.py` there unless it is empty (below the workspace itself, in `test` and \
               `tests`), and both on the way up; `pytest.toml`, `.pytest.toml`, \
               `pytest.ini`, `.pytest.ini`, `pyproject.toml`, `tox.ini` and `setup.cfg` on the way up; `.coveragerc` where `--cov` is asked; for `python -m pytest` and \
               `PYTHONPATH`, no new `entry_points.txt` of a `.dist-info` or `.egg-info` there with a plugin for pytest, and no `pytest_*.py`",
    why: "a new `conftest.py`, configuration or plugin is loaded before every test; a new test is not counted as a change",
    ..READS
}];

pub(super) const JEST: &[Reads] = &[Reads {
    kept: &["package.json", "babel.config.*", ".babelrc", "**/*.{test,spec}.*", "**/__tests__/**"],
    fixed: &[
        "jest.config.{js,ts,mjs,cjs,mts,cts,json}",
        "babel.config.{js,mjs,cjs,cts,json}",
        "**/.babelrc",
        "**/.babelrc.{js,mjs,cjs,json}",
        "__mocks__/**",
    ],
    file: &["-c", "--config"],
    why: "a package's mock at the top is taken in its place by itself; a new test is not counted as a change; snapshots below \
          `__tests__` are kept as they are",
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

const TSC_READS: Reads = Reads {
    kept: &["tsconfig.json", "tsconfig.*.json", "package.json"],
    fixed: &["tsconfig.json"],
    file: &["-p", "--project"],
    why: STRICTNESS,
    ..READS
};

pub(super) const TSC: &[Reads] = &[
    Reads { with: &["-b", "--build"], kept: &["**/tsconfig*.json", "package.json"], ..TSC_READS },
    TSC_READS,
];

pub(super) const MAKE: &[Reads] = &[Reads {
    kept: &["Makefile"],
    fixed: &["GNUmakefile", "makefile"],
    folder: &["-C", "--directory"],
    also: "what `-f` and `include` name; the scripts and tests that the recipes of its goals run, if they are there; no new file \
               with the name of a goal such as `test`, `check-style` or `unit` that is not `.PHONY`",
    why: "a `GNUmakefile` takes precedence over the `Makefile`; make runs nothing for a goal whose file is there; what a rule makes \
          is a product",
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
        verbs: &["test", "t", "bench", "llvm-cov", "tarpaulin"],
        kept: &["Cargo.toml", "**/Cargo.toml", "**/build.rs", "tests/**", "**/tests/**"],
        fixed: &["**/build.rs", "{tarpaulin,.tarpaulin}.toml"],
        file: &["--manifest-path"],
        also: "with `--locked` or `--frozen`, `Cargo.lock`; the file of `--test NAME`; what `[[test]]` and `build` of its \
               manifest name, and of those of the workspace's members; what its configuration includes, and the programs in it",
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
        verbs: &["clippy", "fmt"],
        kept: &["Cargo.toml", "**/Cargo.toml", "**/build.rs", "tests/**", "**/tests/**"],
        fixed: &["**/build.rs", "**/{clippy,.clippy,rustfmt,.rustfmt}.toml"],
        file: &["--manifest-path"],
        why: STRICTNESS,
        ..CARGO_READS
    },
    Reads { verbs: &["deny"], fixed: &["deny.toml", ".deny.toml"], why: STRICTNESS, ..CARGO_READS },
    Reads {
        verbs: &["xtask"],
        kept: &["xtask/**"],
        why: "an alias, and what it runs, say what is checked",
        ..CARGO_READS
    },
    Reads { why: "a step that builds may add a dependency; an alias says what is run", ..CARGO_READS },
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
    also: "what `-r` names; in `lib`, `spec` and the folders of `-I`, no new file takes precedence over Ruby's library or its own \
           (`rspec/**`, `optparse.rb`)",
    why: "a new test is not counted as a change",
    ..READS
}];

pub(super) const PHPUNIT: &[Reads] = &[Reads {
    kept: &["tests", "test", "tests/**", "test/**", "**/*Test.php"],
    fixed: &["{phpunit.xml,phpunit.dist.xml,phpunit.xml.dist}", "tests/Pest.php"],
    file: &["-c", "--configuration"],
    why: "its configuration says which tests run, and names code that is loaded before them; a new test is not counted as a change",
    ..READS
}];
pub(super) const ARTISAN: &[Reads] = &[Reads { verbs: &["test"], ..PHPUNIT[0] }];

const TARGETS: Reads =
    Reads { kept: &["its targets"], why: "a new test is not counted as a change", ..READS };

pub(super) const BATS: &[Reads] = &[Reads {
    fixed: &["**/setup_suite.bash"],
    why: "a `setup_suite.bash` is run before all tests; a new test is not counted as a change",
    ..TARGETS
}];

pub(super) const PERL: &[Reads] = &[Reads {
    fixed: &["lib/Test/{More,Simple,Builder,Harness}.pm", "lib/{strict,warnings,utf8,Carp,Exporter}.pm"],
    why: "with `-Ilib` a module of the library is looked for in `lib` first; what the script loads is the code under test",
    ..CODE[0]
}];

pub(super) const CC: &[Reads] = &[Reads {
    also: "in the folders of `-I`, no new header of the name of one of the C library (`assert.h`)",
    why: "a compiler looks there before it looks into the library",
    ..READS
}];

pub(super) const PROVE: &[Reads] = &[Reads {
    fixed: &[
        ".proverc",
        "lib/Test/{More,Simple,Builder,Harness}.pm",
        "lib/{strict,warnings,utf8,Carp,Exporter}.pm",
    ],
    why: "with `-l` and `-Ilib` a module of the library is looked for in `lib` first; a new test is not counted as a change",
    ..TARGETS
}];

pub(super) const SHELLSPEC: &[Reads] =
    &[Reads { fixed: &[".shellspec", ".shellspec-local", ".shellspec-basedir"], ..TARGETS }];

pub(super) const BUSTED: &[Reads] = &[Reads { fixed: &[".busted"], ..TARGETS }];

pub(super) const TOX: &[Reads] = &[Reads {
    kept: &["tox.ini", "tox.toml", "noxfile.py", "pyproject.toml", "setup.cfg", "setup.py", "tests/**"],
    fixed: &["tox.ini", "setup.cfg"],
    file: &["-c", "-f"],
    why: "which tests run stands there; a `tox.ini` takes precedence over a `pyproject.toml`",
    ..READS
}];

pub(super) const COVERAGE: &[Reads] = &[Reads {
    fixed: &[".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml"],
    file: &["--rcfile"],
    why: "how much must be covered, and of what, stands there",
    ..READS
}];

pub(super) const C8: &[Reads] = &[Reads {
    kept: &["package.json"],
    fixed: &[".{c8,nyc}rc", ".{c8,nyc}rc.{json,yml,yaml}", "{c8,nyc}.config.{js,cjs,mjs}"],
    also: "what the program that it runs reads",
    ..COVERAGE[0]
}];

/// Of files that list sources, those in the folders of tests alone: an honest worker adds sources.
const TESTS: Reads =
    Reads { why: "which tests run stands there; a new test is not counted as a change", ..READS };

pub(super) const CTEST: &[Reads] = &[Reads {
    kept: &["CMakeLists.txt", "tests/**", "test/**"],
    fixed: &["CMakePresets.json", "CMakeUserPresets.json", "CTestCustom.cmake"],
    ..TESTS
}];

pub(super) const MESON: &[Reads] = &[Reads {
    verbs: &["test"],
    kept: &["meson.build", "tests/**", "test/**"],
    fixed: &["meson.options", "meson_options.txt"],
    ..TESTS
}];

pub(super) const RAKE: &[Reads] = &[Reads {
    kept: &["Rakefile", "test/**", "spec/**"],
    fixed: &["{rakefile,Rakefile,rakefile.rb,Rakefile.rb}", "rakelib/*.rake", ".rspec", ".rspec-local"],
    folder: &["-C", "--directory"],
    file: &["-f", "--rakefile"],
    also: "the `.rake` files that its file names; in `lib`, `test` and `spec`, no new file takes precedence over Ruby's library or a runner's \
           (`minitest/**`, `optparse.rb`)",
    ..TESTS
}];

pub(super) const TASK: &[Reads] = &[Reads {
    fixed: &["{Taskfile,taskfile,Taskfile.dist,taskfile.dist}.{yml,yaml}", ".taskrc.{yml,yaml}"],
    why: "what it runs stands there",
    ..READS
}];

pub(super) const DENO: &[Reads] = &[Reads {
    verbs: &["test", "task", "check", "lint", "fmt", "bench"],
    above: &["deno.{json,jsonc}"],
    ..TESTS
}];

pub(super) const NOSE2: &[Reads] = &[Reads {
    kept: &["tests/**"],
    fixed: &["unittest.cfg", "nose2.cfg", "setup.cfg", "pyproject.toml"],
    ..TESTS
}];

pub(super) const COMPOSE: &[Reads] = &[Reads {
    kept: &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
    fixed: &["{compose,docker-compose}.override.{yml,yaml}"],
    file: &["-f", "--file"],
    why: "what is run stands there",
    ..READS
}];
pub(super) const DOCKER: &[Reads] = &[Reads { verbs: &["compose"], ..COMPOSE[0] }];

pub(super) const BAZEL: &[Reads] = &[Reads {
    kept: &["MODULE.bazel", "WORKSPACE"],
    fixed: &["{.bazelrc,user.bazelrc}", ".bazelversion", ".bazelignore", "WORKSPACE.bazel", "tools/bazel"],
    ..TESTS
}];

pub(super) const SBT: &[Reads] = &[Reads {
    kept: &["build.sbt", "project/**", "**/src/test/**"],
    fixed: &["*.sbt", "project/*.{sbt,scala,properties}", ".sbtopts", ".jvmopts"],
    ..TESTS
}];

pub(super) const ANT: &[Reads] = &[Reads { kept: &["build.xml"], ..TESTS }];

pub(super) const DOTNET: &[Reads] = &[Reads {
    verbs: &["test"],
    kept: &["**/*.{sln,slnx,csproj,vbproj}", "tests/**", "test/**"],
    above: &[
        "Directory.Build.{props,targets,rsp}",
        "Directory.Packages.props",
        "global.json",
        ".runsettings",
    ],
    ..TESTS
}];

pub(super) const SWIFT: &[Reads] = &[Reads {
    verbs: &["test"],
    kept: &["Package.swift", "Tests/**"],
    fixed: &["Package@swift-*.swift"],
    ..TESTS
}];

pub(super) const MIX: &[Reads] = &[
    Reads {
        verbs: &["test"],
        kept: &["mix.exs", "test/**"],
        fixed: &["config/test.exs", "test/test_helper.exs"],
        ..TESTS
    },
    Reads { verbs: &["credo"], ..sources::CREDO },
];

pub(super) const HASKELL: &[Reads] = &[Reads {
    verbs: &["test"],
    kept: &["test/**", "tests/**"],
    fixed: &["stack.yaml", "cabal.project", "cabal.project.{local,freeze}"],
    ..TESTS
}];

pub(super) const PLAYWRIGHT: &[Reads] = &[Reads {
    kept: &["package.json", "**/*.{test,spec,cy}.*"],
    fixed: &["{playwright,cypress}.config.{js,ts,mjs,cjs,mts,cts}", "**/{tsconfig,jsconfig}.json"],
    why: "which tests run stands there, and by `paths` of a `tsconfig.json` what they import; a new test is not counted as a change",
    ..READS
}];

pub(super) const BROWSERS: &[Reads] = &[Reads {
    kept: &["package.json", "**/*.{test,spec}.*", "test/**", "tests/**"],
    fixed: &["{karma,wdio}.conf.{js,ts,mjs,cjs}", ".testcaferc.{json,js,cjs}"],
    ..TESTS
}];

pub(super) const TAP: &[Reads] =
    &[Reads { kept: &["package.json", "test/**"], fixed: &[".taprc"], ..MOCHA[0] }];

pub(super) const CUCUMBER: &[Reads] = &[Reads {
    kept: &["features/**"],
    fixed: &[
        "{cucumber,.config/cucumber,config/cucumber}.{yml,yaml}",
        "cucumber.{json,js,cjs,mjs}",
        "features/support/**",
    ],
    why: "what is in `features/support` is loaded before every scenario; a new scenario is not counted as a change",
    ..READS
}];

pub(super) const BEHAVE: &[Reads] = &[Reads {
    kept: &["features/**"],
    fixed: &[
        "behave.ini",
        ".behaverc",
        "setup.cfg",
        "tox.ini",
        "pyproject.toml",
        "features/**/environment.py",
    ],
    why: "an `environment.py` is loaded before every scenario; a new scenario is not counted as a change",
    ..READS
}];

pub(super) const ROBOT: &[Reads] =
    &[Reads { kept: &["**/*.{robot,resource}"], fixed: &["**/__init__.robot"], ..TESTS }];

pub(super) const DART: &[Reads] = &[
    Reads { verbs: &["test"], kept: &["pubspec.yaml", "test/**"], fixed: &["dart_test.yaml"], ..TESTS },
    Reads { verbs: &["analyze"], ..sources::DART_ANALYZER },
];

pub(super) const BUNDLE: &[Reads] = &[Reads {
    verbs: &["exec"],
    kept: &["Gemfile", "gems.rb", "*.gemspec"],
    above: &["{Gemfile,gems.rb}", ".bundle/config"],
    why: "a `Gemfile`, and the `.gemspec` that it names, is code that runs before the program, and says which program that is; a `gems.rb`, \
          or one that is nearer, takes precedence",
    ..READS
}];

pub(super) const COMPOSER: &[Reads] = &[
    Reads {
        verbs: &["install", "i", "update", "u", "require", "validate", "audit", "dump-autoload", "show"],
        why: "a step that builds may add a dependency",
        ..READS
    },
    Reads {
        kept: &["composer.json"],
        folder: &["-d", "--working-dir"],
        also: "what the script in `composer.json` runs, with the scripts that it names (`@unit`), and `vendor/bin` of its programs: a new \
               `php`, `sh` or other program of the host there is a change",
        why: "which tests run stands there",
        ..READS
    },
];

pub(super) const NPX: &[Reads] = &[Reads {
    above: &[".npmrc", "bunfig.toml"],
    also: "what the program that it runs reads, and `node_modules/.bin` of it",
    why: "a setting there says by which shell the program is run, and what is loaded before it",
    ..READS
}];

pub(super) const PRE_COMMIT: &[Reads] =
    &[Reads { fixed: &[".pre-commit-config.yaml"], why: "which checks run stands there", ..READS }];

/// Attributes that say of files that they are no text, how their spaces are judged, or that they are not exported.
const ATTRIBUTES: Reads = Reads {
    above: &[".gitattributes"],
    below: &[".gitattributes"],
    folder: &["-C"],
    also: "none in the folders that it is given (the one it works in, where none is given), and below these",
    why: "a file that is `binary`, `-diff`, `-whitespace` or `export-ignore` there is passed over",
    ..READS
};

pub(super) const GIT: &[Reads] = &[
    Reads {
        verbs: &["diff", "show"],
        without: &[
            "--quiet",
            "--exit-code",
            "--name-only",
            "--name-status",
            "--raw",
            "--no-patch",
            "-s",
            "*:*",
        ],
        also: "the same; nothing where only its exit code or the names count (`--quiet`, `--exit-code`, `--name-only`), or a file of a \
               commit is shown",
        ..ATTRIBUTES
    },
    Reads { verbs: &["log"], with: &["-p", "--patch", "-G"], ..ATTRIBUTES },
    Reads { verbs: &["grep"], with: &["-I"], ..ATTRIBUTES },
    Reads { verbs: &["archive"], ..ATTRIBUTES },
    Reads {
        also: "nothing: it judges the state of the work, from a [clean configuration](#contracts-that-ask-git)",
        why: "`.gitignore` and `.gitattributes` are an honest worker's to change, and a change of one that git tracks shows in `git status`",
        ..READS
    },
];
