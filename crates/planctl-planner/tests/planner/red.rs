//! Right and wrong reasons for a contract to be red, by what real tools print.

use std::time::Duration;

use planctl_engine::{Ending, Verdict};
use planctl_lang::{TrialRun, Tried};
use planctl_planner::wrong_reason;

fn wrong(command: &str, output: &str) -> Option<String> {
    ended(command, output, Ending::Exited { code: 1 })
}

fn ended(command: &str, output: &str, ending: Ending) -> Option<String> {
    let run = TrialRun { verdict: Verdict::Failed, ending, duration: Duration::from_millis(1) };
    let tried = Tried {
        runs: vec![run],
        printed: String::new(),
        output: output.into(),
        timeout: Duration::from_secs(1),
        changed: Vec::new(),
        changed_count: 0,
    };
    let made = |name: &str| {
        ["docs/new.md", "tests/test_new.py", "app/new.py", "run.sh", "Makefile"]
            .contains(&name.trim_start_matches("./"))
    };
    let own = |name: &str| made(name) || ["tool.py", "app", "tool"].contains(&name);
    wrong_reason(command, &tried, &own, &made).map(|wrong| wrong.why)
}

#[test]
fn missing_work_is_the_right_reason() {
    for (command, output) in [
        ("grep -q x README.md", ""),
        ("grep -q x docs/new.md", "grep: docs/new.md: No such file or directory"),
        ("bash run.sh", "bash: run.sh: No such file or directory"),
        ("./run.sh", "bash: line 1: ./run.sh: No such file or directory"),
        ("pytest tests/test_new.py", "ERROR: file or directory not found: tests/test_new.py"),
        ("python3 -c 'import app.new'", "ModuleNotFoundError: No module named 'app.new'"),
        ("python3 tool.py --json", "usage: tool.py [-h]\ntool.py: error: unrecognized arguments: --json"),
        ("python3 -m app --json", "usage: app [-h]\napp: error: unrecognized arguments: --json"),
        (
            "python3 -c 'assert 1 == 2'",
            "Traceback:\n  File \"<string>\", line 1, in <module>\nAssertionError",
        ),
        ("python3 -m unittest tests.test_a", "FAIL: test_a\nAssertionError: 1 != 2"),
        ("make check", "make: *** No rule to make target 'check'.  Stop."),
        ("cargo test", "error[E0425]: cannot find function `f` in this scope"),
        ("node --test a.js", "✖ it works (2ms)\nAssertionError [ERR_ASSERTION]"),
        ("jq -e .a x.json", "jq: error (at x.json:1): Cannot index number with \"a\""),
    ] {
        assert_eq!(wrong(command, output), None, "{command}: {output}");
    }
}

#[test]
fn a_contract_that_is_wrong_itself_is_named() {
    for (command, output, says) in [
        ("frobnicate", "bash: line 1: frobnicate: command not found", "no command `frobnicate`"),
        ("sh -c frob", "sh: 1: frob: not found", "no command `frob`"),
        ("grep -q x none.md", "grep: none.md: No such file or directory", "no step makes"),
        ("bash tests/none.sh", "bash: tests/none.sh: No such file or directory", "no step makes"),
        (
            "python3 none.py",
            "python3: can't open file '/w/none.py': [Errno 2] No such file or directory",
            "no step makes",
        ),
        ("pytest x.py", "ERROR: file or directory not found: x.py", "no step makes"),
        ("python3 -m pytest", "/usr/bin/python3: No module named pytest", "no module `pytest`"),
        ("grep --frob x README.md", "grep: unrecognized option '--frob'", "`grep` is called wrongly"),
        ("[ a b c ]", "bash: line 1: [: too many arguments", "`[` is called wrongly"),
        (
            "sed s/x README.md",
            "sed: -e expression #1, char 3: unterminated `s' command",
            "`sed` is called wrongly",
        ),
        ("git frob", "git: 'frob' is not a git command. See 'git --help'.", "`git` is called wrongly"),
        (
            "cargo test --frob",
            "error: unexpected argument '--frob' found\n\nUsage: cargo test [OPTIONS]",
            "`cargo` is called wrongly",
        ),
        ("npm run frob", "npm error Missing script: \"frob\"", "no such script"),
        ("cargo test --test none", "error: no test target named `none`.", "no such test target"),
        ("curl -s http://x", "curl: (6) Could not resolve host: x", "needs the network"),
        ("git diff --quiet", "fatal: not a git repository (or any parent)", "needs a git repository"),
        ("python3 -c 'if'", "  File \"<string>\", line 1\nSyntaxError: invalid syntax", "can't be read"),
        ("./tool", "bash: line 1: ./tool: Permission denied", "can't be run"),
    ] {
        let why = wrong(command, output).unwrap_or_else(|| panic!("{command}: nothing was found wrong"));
        assert!(why.contains(says), "{command}: {why}");
    }
}

#[test]
fn a_contract_that_was_ended_says_nothing_of_the_work() {
    for ending in [Ending::TimedOut, Ending::Signalled { signal: 9 }, Ending::NotRun] {
        assert!(ended("sleep 100", "", ending).is_some(), "{ending:?}");
    }
}
