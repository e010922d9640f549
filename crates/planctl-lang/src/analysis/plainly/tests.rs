//! Each phrasing of the closed list, with those beside it that give no right.

use super::*;
use Right::{May, MayNot, Reads, Unclear};

fn said(text: &str) -> Vec<(String, Right)> {
    let mut paths = crate::syntax::shell::paths_in_text(text);
    paths.sort_by_key(|(_, span)| span.start);
    let spans: Vec<Span> = paths.iter().map(|(_, span)| *span).collect();
    let names = paths.into_iter().map(|(path, _)| path);
    names.zip(rights(text, &spans)).collect()
}

fn check(texts: &[(&str, &[(&str, Right)])]) {
    let mut wrong = Vec::new();
    for (text, expected) in texts {
        let expected: Vec<_> = expected.iter().map(|(path, right)| ((*path).to_owned(), *right)).collect();
        let said = said(text);
        if said != expected {
            wrong.push(format!("{text}\n   said {said:?}\n   not  {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_plainly_made_may_be_changed() {
    check(&[
        ("Write `docs/a.md`.", &[("docs/a.md", May)]),
        ("Write the report to `docs/a.md`.", &[("docs/a.md", May)]),
        ("Write a root cause analysis with the call path to `docs/a.md`.", &[("docs/a.md", May)]),
        ("Write what causes it to `docs/cause.md`.", &[("docs/cause.md", May)]),
        ("Write a file called `x.md`.", &[("x.md", May)]),
        ("Create `a.txt`, `b.txt` and `c.txt`.", &[("a.txt", May), ("b.txt", May), ("c.txt", May)]),
        (
            "Create these files:\n- `a.md`\n- `b.md`: see `c.md`\n",
            &[("a.md", May), ("b.md", May), ("c.md", Reads)],
        ),
        ("1. Create:\n\n1. `a.md`\n2) `b.md`\n", &[("a.md", May), ("b.md", May)]),
        ("Save the list as `out.json`.", &[("out.json", May)]),
        ("Put the answer into `x.txt`, one line.", &[("x.txt", May)]),
        ("Output to `x.txt`.", &[("x.txt", May)]),
        ("Read `a.txt`, then write `b.txt`.", &[("a.txt", Reads), ("b.txt", May)]),
        (
            "Use `a.txt` and `b.txt` to produce `c.txt`.",
            &[("a.txt", Reads), ("b.txt", Reads), ("c.txt", May)],
        ),
        ("Make `two.txt` from `one.txt`.", &[("two.txt", May), ("one.txt", Reads)]),
        ("When that is done, write `x.md`.", &[("x.md", May)]),
        ("Write a text without jargon to `x.md`.", &[("x.md", May)]),
        ("Keep it short and write it to `x.md`.", &[("x.md", May)]),
        (
            "List every function of `r.sh` in `docs/f.md`, one per line.",
            &[("r.sh", Reads), ("docs/f.md", May)],
        ),
        ("Summarize src/a.py in docs/s.md.", &[("src/a.py", Reads), ("docs/s.md", May)]),
        ("Copy `a.txt` to `b.txt`.", &[("a.txt", Reads), ("b.txt", May)]),
        ("Describe in `docs/x.md` how it works.", &[("docs/x.md", May)]),
        ("`docs/x.md` must exist with one line.", &[("docs/x.md", May)]),
        ("`docs/x.md` must have one line per flag.", &[("docs/x.md", May)]),
        ("`docs/x.md` should be written first.", &[("docs/x.md", May)]),
        ("Make sure `docs/x.md` exists.", &[("docs/x.md", May)]),
    ]);
}

#[test]
fn what_is_plainly_changed_may_be_changed() {
    check(&[
        ("Fix `slug.sh`.", &[("slug.sh", May)]),
        ("Raise the timeout in `slug.sh` to 60 seconds.", &[("slug.sh", May)]),
        ("Fix the exit code in `slug.sh`.", &[("slug.sh", May)]),
        ("Update all imports in `src/app.py`.", &[("src/app.py", May)]),
        ("Implement `slugify` in `src/slug.py`.", &[("src/slug.py", May)]),
        ("Please edit the script `run.sh`.", &[("run.sh", May)]),
        ("You may change `run.sh`.", &[("run.sh", May)]),
        ("Fix the bug by editing `slug.sh`.", &[("slug.sh", May)]),
        ("In `src/a.py`, rename `foo` to `bar`.", &[("src/a.py", May)]),
        ("In `src/a.py` set the timeout to 60.", &[("src/a.py", May)]),
        ("Add a unit test to `tests/x.py`.", &[("tests/x.py", May)]),
        ("Configure mypy in `pyproject.toml`.", &[("pyproject.toml", May)]),
        (
            "Use strict types: configure them in `mypy.ini` and mend `a.py`.",
            &[("mypy.ini", May), ("a.py", May)],
        ),
        ("Declare the dependency in `pyproject.toml`.", &[("pyproject.toml", May)]),
        ("Do not configure it in `setup.cfg`.", &[("setup.cfg", MayNot)]),
        ("Append a line to `log.txt`.", &[("log.txt", May)]),
        ("Remove the flag from `cli.py`.", &[("cli.py", May)]),
        ("Delete `old.sh`.", &[("old.sh", May)]),
        ("Move `a.c` to `b.c`.", &[("a.c", May), ("b.c", May)]),
        (
            "Move the functions from `report.sh` to `lib/format.sh`, unchanged.",
            &[("report.sh", May), ("lib/format.sh", May)],
        ),
        ("Rename `a.txt` to `b.txt`.", &[("a.txt", May), ("b.txt", May)]),
        ("Replace `a.txt` with `b.txt`.", &[("a.txt", May), ("b.txt", Reads)]),
        ("`cli.py` must be changed.", &[("cli.py", May)]),
        ("Make `slug.sh` print lower case.", &[("slug.sh", May)]),
        ("Fix `slug.sh` so that `check.sh` passes.", &[("slug.sh", May), ("check.sh", Reads)]),
        (
            "Fix `slug.sh` (see `notes.md`) and `lib.sh`.",
            &[("slug.sh", May), ("notes.md", Reads), ("lib.sh", Unclear)],
        ),
    ]);
}

#[test]
fn what_is_plainly_withheld_may_not_be_changed() {
    check(&[
        ("Do not change `check.sh`.", &[("check.sh", MayNot)]),
        ("Don't touch `check.sh`.", &[("check.sh", MayNot)]),
        ("Never edit `check.sh` or `b.sh`.", &[("check.sh", MayNot), ("b.sh", MayNot)]),
        ("Do not change or remove `check.sh`.", &[("check.sh", MayNot)]),
        ("Do not change:\n- `a.sh`\n- `b.sh`\n", &[("a.sh", MayNot), ("b.sh", MayNot)]),
        ("Fix `slug.sh` without changing `check.sh`.", &[("slug.sh", May), ("check.sh", MayNot)]),
        ("Fix `slug.sh`, but do not edit `check.sh`.", &[("slug.sh", May), ("check.sh", MayNot)]),
        ("Fix the code, not `tests/x.py`.", &[("tests/x.py", MayNot)]),
        ("Change everything except `check.sh`.", &[("check.sh", MayNot)]),
        ("Leave `check.sh` alone.", &[("check.sh", MayNot)]),
        ("Keep `check.sh` as it is.", &[("check.sh", MayNot)]),
        ("`check.sh` stays as it is.", &[("check.sh", MayNot)]),
        ("`check.sh` must not be changed.", &[("check.sh", MayNot)]),
        ("`a.sh` and `b.sh` may not be edited.", &[("a.sh", MayNot), ("b.sh", MayNot)]),
        ("Make no changes to `check.sh`.", &[("check.sh", MayNot)]),
        ("Nobody has the right to change `check.sh`.", &[("check.sh", MayNot)]),
        ("In `check.sh`, do not change anything.", &[("check.sh", MayNot)]),
    ]);
}

#[test]
fn what_is_only_read_run_or_judged_by_gives_no_right() {
    check(&[
        ("Add handlers in `src/api/`.", &[("src/api", Reads)]),
        ("See `check.sh`.", &[("check.sh", Reads)]),
        ("Read `a.md` and follow `b.md`.", &[("a.md", Reads), ("b.md", Reads)]),
        ("Run `check.sh`.", &[("check.sh", Reads)]),
        ("Run `bash check.sh`.", &[("check.sh", Reads)]),
        ("Make `tests/login.sh` pass.", &[("tests/login.sh", Reads)]),
        ("Make `a.sh` and `b.sh` pass.", &[("a.sh", Reads), ("b.sh", Reads)]),
        ("Make the tests in `t/a.py` pass.", &[("t/a.py", Reads)]),
        ("Fix the bug so that `check.sh` passes.", &[("check.sh", Reads)]),
        ("Fix it until `repro.sh` passes.", &[("repro.sh", Reads)]),
        ("Fix the parser, `check.sh` must pass.", &[("check.sh", Reads)]),
        ("Fix what `check.sh` complains about.", &[("check.sh", Reads)]),
        ("Fix the bug that `check.sh` shows.", &[("check.sh", Reads)]),
        ("Make sure that `check.sh` is green.", &[("check.sh", Reads)]),
        ("Update the code to match `spec.md`.", &[("spec.md", Reads)]),
        ("Change the parser as described in `docs/x.md`.", &[("docs/x.md", Reads)]),
        ("Change the parser as `docs/x.md` says.", &[("docs/x.md", Reads)]),
        ("Based on `docs/a.md`, implement the fix.", &[("docs/a.md", Reads)]),
        ("Write tests for `slug.sh`.", &[("slug.sh", Reads)]),
        ("Write a test against `spec.md`.", &[("spec.md", Reads)]),
        ("Change it with `sed.sh`, like `old.sh`.", &[("sed.sh", Reads), ("old.sh", Reads)]),
        ("Commit `slug.sh` and `reproduce.sh`.", &[("slug.sh", Reads), ("reproduce.sh", Reads)]),
        ("Trace the timeout in `src/auth.py`.", &[("src/auth.py", Reads)]),
        ("Such as:\n```\n./slug.sh x\n```\n", &[("slug.sh", Reads)]),
    ]);
}

#[test]
fn everything_else_is_unclear_and_gives_no_right() {
    check(&[
        ("`check.sh`", &[("check.sh", Unclear)]),
        ("Größe: schreibe größe.txt", &[("größe.txt", Unclear)]),
        ("Look after things; `slug.sh` should be lower case.", &[("slug.sh", Unclear)]),
        ("The file `docs/x.md` is written by hand.", &[("docs/x.md", Unclear)]),
        ("Fix the failing test in `tests/x.py`.", &[("tests/x.py", Unclear)]),
        ("Fix the failing test: `tests/x.py`.", &[("tests/x.py", Unclear)]),
        ("Change the link to `docs/y.md`.", &[("docs/y.md", Unclear)]),
        ("Fix the exit code of `slug.sh`.", &[("slug.sh", Unclear)]),
        ("Collect the scripts that write `x.txt`.", &[("x.txt", Unclear)]),
        ("Write `gen.sh`, which creates `out.txt`.", &[("gen.sh", May), ("out.txt", Unclear)]),
        ("If you change `x.sh`, say why.", &[("x.sh", Unclear)]),
        ("Write nothing to `x.txt`.", &[("x.txt", Unclear)]),
        ("Do not guess, write `x.txt`.", &[("x.txt", Unclear)]),
        ("Keep the tests in `x.py` green.", &[("x.py", Unclear)]),
        ("Rewrite the tests in `tests/`.", &[("tests", Unclear)]),
        ("Write `r.sh`, a script: it calls `slug.sh`.", &[("r.sh", May), ("slug.sh", Unclear)]),
        ("Run `sort -o -i x.txt`.", &[("x.txt", Unclear)]),
        ("Convert `a.js` to TypeScript.", &[("a.js", Unclear)]),
        ("Fix it, tests, `x.sh`.", &[("x.sh", Unclear)]),
    ]);
}

#[test]
fn a_task_that_says_both_says_nothing() {
    assert_eq!(Right::of_all([May, MayNot, Reads]), Some(Unclear));
    assert_eq!(Right::of_all([Unclear, May, Reads]), Some(May));
    assert_eq!(Right::of_all([Reads, MayNot]), Some(MayNot));
    assert_eq!(Right::of_all([Reads, Unclear]), Some(Unclear));
    assert_eq!(Right::of_all([Reads]), Some(Reads));
    assert_eq!(Right::of_all([]), None);
}

#[test]
fn any_text_is_read() {
    for text in [
        "",
        "`",
        "``",
        "- ",
        "1.",
        ":",
        "- `a.md",
        "in",
        "In `a.md`",
        "what `a.md`",
        "but",
        "\n\n- x:\n- ",
        "é`é.md`",
    ] {
        said(text);
    }
}
