//! Programs of every shell: those that start others, builtins, searches, and tools for files.

use super::super::Use;
use super::Trait::{
    Asks, AsksUnlessFed, Builds, Changes, Checks, Destroys, Ends, Examines, Filters, Idles, Makes, Network,
    OnlyReads, Prepares, Prints, PrintsText, RunsWorkspace, Says, Selects, Shows, Stays, Succeeds, System,
    Tells, Tests,
};
use super::reads::sources;
use super::table::{FILES, OFFLINE, ONLY_BY_NAME, PLAIN, RUNS, WRAPS};
use super::{Does, Files, Program, Wraps, reads};

pub(super) const PROGRAMS: &[Program] = &[
    // Wrappers.
    Program { names: &["exec"], short: "a", wraps: Some(WRAPS), does: &[Does::any(Prepares)], ..PLAIN },
    Program { names: &["command", "builtin"], wraps: Some(WRAPS), files: Files::None, ..PLAIN },
    Program { names: &["nohup", "setsid"], wraps: Some(WRAPS), does: &[Does::any(Stays)], ..PLAIN },
    Program { names: &["unbuffer"], wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["time"], short: "fo", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["nice"], short: "n", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["ionice"], short: "cn", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["watch"], short: "n", wraps: Some(WRAPS), does: &[Does::any(Asks)], ..PLAIN },
    Program { names: &["strace"], short: "eos", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["xvfb-run"], short: "nsefp", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["stdbuf"], short: "ioe", wraps: Some(WRAPS), ..PLAIN },
    Program { names: &["xargs"], short: "InPLdasE", wraps: Some(WRAPS), ..PLAIN },
    Program {
        names: &["env"],
        short: "uC",
        wraps: Some(Wraps { takes_assignments: true, ..WRAPS }),
        does: &[Does::any(Shows)],
        ..PLAIN
    },
    Program {
        names: &["sudo", "doas"],
        short: "ughpCD",
        wraps: Some(Wraps { takes_assignments: true, ..WRAPS }),
        does: &[Does::any(System), Does::any(Asks).without(&["-n", "--non-interactive"])],
        ..PLAIN
    },
    Program {
        names: &["timeout"],
        short: "sk",
        long: &["signal", "kill-after"],
        wraps: Some(Wraps { positionals: 1, ..WRAPS }),
        ..PLAIN
    },
    Program { names: &["flock"], short: "wE", wraps: Some(Wraps { positionals: 1, ..WRAPS }), ..PLAIN },
    Program {
        names: &["poetry", "pipenv", "pdm", "rye", "hatch"],
        short: "C",
        long: &["directory", "project"],
        wraps: Some(Wraps { verbs: &["run"], ..RUNS }),
        does: &[
            Does::on(&["sync", "add", "publish", "install"], Network).without(OFFLINE),
            Does::on(&["sync", "install", "build"], Makes),
        ],
        ..PLAIN
    },
    Program {
        names: &["uv"],
        short: "p",
        long: &[
            "python",
            "with",
            "with-requirements",
            "with-editable",
            "extra",
            "group",
            "project",
            "directory",
            "env-file",
            "package",
            "from",
            "index-url",
            "cache-dir",
            "config-file",
        ],
        wraps: Some(Wraps { verbs: &["run"], ..RUNS }),
        does: &[
            Does::on(&["sync", "add", "publish", "install"], Network).without(OFFLINE),
            Does::on(&["pip", "tool", "python"], Network).with(&["install"]).without(OFFLINE),
            Does::any(Builds),
            Does::on(&["venv", "sync", "pip", "build"], Makes),
        ],
        ..PLAIN
    },
    Program { names: &["uvx"], short: "p", long: &["from", "with", "python"], wraps: Some(RUNS), ..PLAIN },
    Program {
        names: &["pipx"],
        long: &["spec", "python"],
        wraps: Some(Wraps { verbs: &["run"], ..RUNS }),
        does: &[Does::on(&["install"], Network).without(OFFLINE)],
        ..PLAIN
    },
    Program {
        names: &["npx", "bunx", "pnpx"],
        reads: reads::NPX,
        short: "p",
        long: &["package"],
        wraps: Some(RUNS),
        does: &[Does::any(Builds), Does::any(RunsWorkspace)],
        ..PLAIN
    },
    Program {
        names: &["coverage"],
        reads: reads::COVERAGE,
        long: &["source", "rcfile"],
        wraps: Some(Wraps { verbs: &["run"], behind: "-m", ..RUNS }),
        ..PLAIN
    },
    Program {
        names: &["c8", "nyc"],
        reads: reads::C8,
        short: "rnxo",
        long: &[
            "lines",
            "branches",
            "functions",
            "statements",
            "reporter",
            "include",
            "exclude",
            "report-dir",
            "src",
        ],
        wraps: Some(RUNS),
        ..PLAIN
    },
    Program {
        names: &["cross-env", "dotenv"],
        short: "e",
        wraps: Some(Wraps { takes_assignments: true, ..RUNS }),
        ..PLAIN
    },
    Program {
        names: &["bundle"],
        reads: reads::BUNDLE,
        wraps: Some(Wraps { verbs: &["exec"], ..RUNS }),
        does: &[Does::on(&["install", "update", "push"], Network), Does::on(&["install", "binstubs"], Makes)],
        ..PLAIN
    },
    Program { names: &["npm"], short: "Cw", long: &["prefix", "workspace", "loglevel"], ..PACKAGES },
    Program {
        names: &["pnpm"],
        short: "CF",
        long: &["dir", "prefix", "filter", "filter-prod", "loglevel", "reporter", "workspace-concurrency"],
        wraps: Some(Wraps { takes_names: true, ..EXECUTES }),
        ..PACKAGES
    },
    Program {
        names: &["yarn"],
        short: "j",
        long: &["cwd", "from", "include", "exclude", "jobs"],
        wraps: Some(Wraps { takes_names: true, ..EXECUTES }),
        ..PACKAGES
    },
    Program {
        names: &["bun"],
        reads: reads::BUN,
        short: "F",
        long: &["cwd", "filter", "config", "env-file", "preload"],
        wraps: Some(Wraps { takes_names: true, ..EXECUTES }),
        // `bun test` fails where no test has the name.
        does: &packages(IF_PRESENT),
        ..PACKAGES
    },
    // Shells, and programs that run scripts.
    Program {
        names: &["bash", "sh", "dash", "zsh", "ksh"],
        reads: reads::SCRIPT,
        files: Files::Script,
        does: &[Does::any(Checks)],
        ..PLAIN
    },
    Program {
        names: &["source", "."],
        reads: reads::SCRIPT,
        files: Files::Script,
        does: &[Does::any(Prepares)],
        ..PLAIN
    },
    Program {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        reads: reads::PYTHON,
        short: "XW",
        files: Files::Script,
        wraps: Some(Wraps { behind: "-m", ..RUNS }),
        does: &[Does::any(Checks), Does::any(AsksUnlessFed).alone()],
        ..PLAIN
    },
    Program {
        names: &["node"],
        reads: reads::NODE,
        files: Files::Script,
        does: &[
            Does::any(Checks),
            Does::any(AsksUnlessFed).alone(),
            Does::any(Selects).with(&["--test-name-pattern"]),
            Does::any(Tests).with(&["--test"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["ruby"],
        reads: reads::sources::RUBY,
        short: "CEIer",
        long: &["encoding", "require"],
        files: Files::Script,
        does: &[Does::any(Checks)],
        ..PLAIN
    },
    Program {
        names: &["php"],
        reads: reads::sources::PHP,
        short: "BEFRScdfrtz",
        long: &["php-ini", "define"],
        files: Files::Script,
        does: &[Does::any(Checks)],
        ..PLAIN
    },
    Program {
        names: &["perl"],
        reads: reads::PERL,
        short: "EIMemx",
        files: Files::Script,
        does: &[Does::any(Checks), Does::any(Idles).with(&["-n", "-p"])],
        ..PLAIN
    },
    Program {
        names: &["lua"],
        reads: reads::CODE,
        short: "el",
        files: Files::Script,
        does: &[Does::any(AsksUnlessFed).alone()],
        ..PLAIN
    },
    Program { names: &["Rscript"], reads: reads::CODE, short: "e", files: Files::Script, ..PLAIN },
    Program {
        names: &["tsx", "ts-node"],
        reads: reads::CODE,
        short: "OPr",
        long: &["project", "tsconfig"],
        ..PLAIN
    },
    Program { names: &["irb", "ghci"], does: &[Does::any(AsksUnlessFed).alone()], ..PLAIN },
    // Builtins.
    Program { names: &["true", ":"], does: &[Does::any(Succeeds), Does::any(Says)], ..PLAIN },
    Program {
        names: &["echo", "printf"],
        files: Files::None,
        does: &[
            Does::any(Succeeds),
            Does::any(Says),
            Does::any(Prints),
            Does::any(PrintsText),
            Does::any(OnlyReads),
        ],
        ..PLAIN
    },
    Program { names: &["pwd", "sleep", "alias"], does: &[Does::any(Succeeds)], ..PLAIN },
    Program { names: &["disown"], does: &[Does::any(Succeeds), Does::any(Stays)], ..PLAIN },
    Program {
        names: &["export", "set", "trap"],
        files: Files::None,
        does: &[Does::any(Succeeds), Does::any(Prepares)],
        ..PLAIN
    },
    Program { names: &["unset", "shopt"], does: &[Does::any(Succeeds), Does::any(Prepares)], ..PLAIN },
    Program {
        names: &["local", "declare", "readonly"],
        files: Files::None,
        does: &[Does::any(Prepares)],
        ..PLAIN
    },
    Program { names: &["cd"], files: Files::None, ..PLAIN },
    Program {
        names: &[
            "bind",
            "break",
            "continue",
            "eval",
            "getopts",
            "hash",
            "mapfile",
            "readarray",
            "shift",
            "type",
            "typeset",
            "ulimit",
            "umask",
        ],
        does: &[Does::any(Prepares)],
        ..PLAIN
    },
    Program {
        names: &["read"],
        short: "adinNptu",
        does: &[Does::any(Prepares), Does::any(AsksUnlessFed).with(&["-p"])],
        ..PLAIN
    },
    Program {
        names: &["kill"],
        does: &[
            Does::any(Prepares),
            Does::any(Ends).without(&["-0", "-l"]),
            Does::any(Destroys).with(&["-1"]).and(&["-9", "-15", "-KILL", "-TERM", "-s", "--"]),
        ],
        ..PLAIN
    },
    Program { names: &["wait"], does: &[Does::any(Prepares), Does::any(Ends)], ..PLAIN },
    Program { names: &["fg"], does: &[Does::any(Ends)], ..PLAIN },
    Program { names: &["test", "["], does: &[Does::any(Checks), Does::any(OnlyReads)], ..PLAIN },
    Program { names: &["false"], does: &[Does::any(Checks)], ..PLAIN },
    // Searches and filters.
    Program {
        names: &["grep", "egrep", "fgrep", "zgrep"],
        short: "efmABCDd",
        long: &["regexp", "file", "max-count", "include", "exclude", "after-context", "before-context"],
        files: Files::BehindPattern,
        does: &[
            Does::any(Checks),
            Does::any(Filters).with(&["-v", "--invert-match"]).without(&["-q", "--quiet"]),
            Does::any(Prints),
            Does::any(OnlyReads),
        ],
        ..PLAIN
    },
    Program {
        names: &["rg", "ag"],
        reads: sources::SEARCH,
        short: "efmABCgtT",
        long: &["regexp", "file", "glob", "type", "max-count"],
        files: Files::BehindPattern,
        does: &[Does::any(Examines)],
        ..PLAIN
    },
    Program {
        names: &["sed"],
        short: "ef",
        long: &["expression", "file"],
        files: Files::Own,
        does: &[Does::any(Shows), Does::any(Filters), Does::any(Prints), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["awk", "gawk"],
        short: "vFf",
        files: Files::BehindPattern,
        does: &[Does::any(Idles).without(&["*end*", "-f"]), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["jq"],
        short: "fL",
        long: &["from-file"],
        files: Files::Own,
        does: &[
            Does::any(Checks),
            Does::any(Tells("jq", "let it say by its exit code: `jq -e`")).without(&[
                "-e",
                "--exit-status",
                ".",
                "empty",
                "*error*",
                "*halt*",
            ]),
            // With `-e`, jq 1.6 ends with 0 where nothing comes in.
            Does::any(Idles).without(&["-n", "--null-input", "-s", "--slurp"]),
            Does::any(OnlyReads),
        ],
        ..PLAIN
    },
    Program { names: &["yq"], files: Files::Own, does: &[Does::any(OnlyReads)], ..PLAIN },
    Program {
        names: &["cat"],
        files: Files::All(Use::Reads),
        does: &[
            Does::any(Shows),
            Does::any(Filters),
            Does::any(Prints),
            Does::any(PrintsText),
            Does::any(OnlyReads),
        ],
        ..PLAIN
    },
    Program {
        names: &["head", "tail"],
        short: "nc",
        long: &["lines", "bytes"],
        files: Files::Behind(0, Use::Reads),
        does: &[Does::any(Shows), Does::any(Filters), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["sort"],
        short: "oktST",
        long: &["output", "key"],
        files: Files::Own,
        does: &[Does::any(Shows), Does::any(Filters), Does::any(Prints), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["wc"],
        files: Files::All(Use::Reads),
        does: &[Does::any(Shows), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["nl", "tac"],
        files: Files::All(Use::Reads),
        does: &[Does::any(Filters), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["uniq", "tr", "cut", "column", "rev", "paste", "fold"],
        does: &[Does::any(Filters), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program { names: &["less", "more"], does: &[Does::any(Filters), Does::any(Asks)], ..PLAIN },
    Program {
        names: &["diff", "cmp"],
        files: Files::All(Use::Reads),
        does: &[Does::any(Checks), Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["comm", "sha256sum", "sha1sum", "md5sum", "file", "readlink", "realpath"],
        files: Files::All(Use::Reads),
        does: &[Does::any(OnlyReads)],
        ..PLAIN
    },
    Program {
        names: &["ls"],
        files: Files::All(Use::Tests),
        does: &[Does::any(Shows), Does::any(Prints), Does::any(PrintsText), Does::any(Examines)],
        ..PLAIN
    },
    Program { names: &["stat"], files: Files::All(Use::Tests), does: &[Does::any(OnlyReads)], ..PLAIN },
    Program { names: &["cksum", "od", "xxd"], does: &[Does::any(OnlyReads)], ..PLAIN },
    Program {
        names: &["find"],
        files: Files::Own,
        does: &[
            Does::any(Shows),
            Does::any(Prints),
            Does::any(Destroys).with(&["-delete"]),
            Does::any(Tells("find", "compare what it prints: `test -n \"$(find …)\"`"))
                .without(&["-exec", "-execdir", "-ok", "-okdir", "-delete"]),
            Does::any(Examines).without(&["-delete"]),
        ],
        ..PLAIN
    },
    Program { names: &["ps", "df", "du", "uname"], does: &[Does::any(Shows)], ..PLAIN },
    Program {
        names: &["date", "seq"],
        does: &[Does::any(Shows), Does::any(Prints), Does::any(PrintsText)],
        ..PLAIN
    },
    // Files.
    Program {
        names: &["touch", "mkdir", "rmdir"],
        files: Files::All(Use::Writes),
        does: &[Does::any(Prepares)],
        ..PLAIN
    },
    Program { names: &["tee"], files: Files::All(Use::Writes), does: &[Does::any(Filters)], ..PLAIN },
    Program { names: &["unlink"], files: Files::All(Use::Writes), ..PLAIN },
    Program { names: &["shred"], files: Files::All(Use::Writes), does: &[Does::any(Destroys)], ..PLAIN },
    Program {
        names: &["rm"],
        files: Files::All(Use::Writes),
        does: &[Does::any(Prepares), Does::any(Destroys).with(&["-r", "-R", "--recursive"])],
        ..PLAIN
    },
    Program {
        names: &["truncate"],
        short: "s",
        long: &["size"],
        files: Files::Behind(0, Use::Writes),
        does: &[Does::any(Prepares), Does::any(Destroys)],
        ..PLAIN
    },
    Program {
        names: &["chmod"],
        files: Files::Behind(1, Use::Writes),
        does: &[Does::any(Prepares), Does::any(Destroys).with(&["-R", "--recursive"])],
        ..PLAIN
    },
    Program {
        names: &["chown"],
        files: Files::Behind(1, Use::Writes),
        does: &[Does::any(Destroys).with(&["-R", "--recursive"])],
        ..PLAIN
    },
    Program {
        names: &["cp", "mv", "ln", "install"],
        short: "tmog",
        long: &["target-directory", "mode", "owner", "group"],
        files: Files::Own,
        does: &[Does::any(Prepares)],
        ..PLAIN
    },
    Program { names: &["dd"], files: Files::Own, does: &[Does::any(Destroys)], ..PLAIN },
    Program { names: &["tar", "unzip"], does: &[Does::any(Prepares), Does::any(Makes)], ..PLAIN },
    Program {
        names: &["patch"],
        does: &[Does::any(Changes(FILES)).without(&["--dry-run"]), Does::any(Makes)],
        ..PLAIN
    },
];

const EXECUTES: Wraps = Wraps { verbs: &["exec", "x", "dlx"], ..RUNS };
/// Package managers of Node.
const PACKAGES: Program =
    Program { reads: reads::NPM, wraps: Some(EXECUTES), does: &packages(ONLY_BY_NAME), ..PLAIN };
const IF_PRESENT: &[&str] = &["--if-present"];

/// Installs packages and runs scripts; with these flags `test` runs tests by a name, and ends with 0 where none has it.
const fn packages(by_name: &'static [&'static str]) -> [Does; 12] {
    [
        Does::on(
            &["install", "i", "ci", "add", "publish", "audit", "outdated", "update", "upgrade"],
            Network,
        )
        .without(OFFLINE),
        Does::on(&["unpublish"], Destroys),
        Does::on(&["init"], Asks).without(&["-y", "--yes"]),
        Does::on(&["login"], Asks),
        Does::any(Builds),
        Does::other_than(Makes, &["test", "t"]),
        Does::any(RunsWorkspace),
        Does::on(&["test", "t"], Tests),
        Does::on(&["run", "run-script"], Tests).with(&["test*"]),
        Does::on(&["test", "t"], Selects).with(by_name),
        Does::on(&["run", "run-script"], Selects).with(ONLY_BY_NAME).and(&["test*"]),
        Does::any(Selects).with(IF_PRESENT),
    ]
}
