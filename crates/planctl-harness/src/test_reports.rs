//! Counts the tests that passed by the reports that a contract wrote (PROMISES A6).
//!
//! The reports lie in a folder that is made empty for this one evaluation, so none of them is older. No name of a file is trusted:
//! the content decides the format, and a file that is not a report counts nothing.

use std::collections::BTreeSet;
use std::path::Path;

use quick_xml::events::{BytesStart, Event};
use serde::Deserialize;

use crate::beneath::{LastLink, Root};
use crate::walk::expand;

/// The most bytes of one report.
const REPORT_BYTES_MAX: u64 = 64 << 20;
/// The most reports that are read.
const REPORTS_MAX: usize = 10_000;

/// Returns how many tests passed by the reports in a folder and in the folders below it.
pub(crate) fn passed_tests(folder: &Path) -> u32 {
    let Ok(root) = Root::open(folder) else { return 0 };
    let mut passed = 0_u32;
    for name in expand(folder, "**", REPORTS_MAX).unwrap_or_default().files {
        match root.read(Path::new(&name), LastLink::Refuse, REPORT_BYTES_MAX) {
            Ok(bytes) => passed = passed.saturating_add(passed_in(&String::from_utf8_lossy(&bytes))),
            Err(error) => tracing::warn!(%error, report = name, "a test report can't be read"),
        }
    }
    passed
}

/// Returns how many tests passed by one report: JUnit XML, TAP, `go test -json`, or what `cargo test` or `cargo nextest` prints.
fn passed_in(report: &str) -> u32 {
    let count = match report.trim_start_matches('\u{feff}').trim_start().chars().next() {
        Some('<') => of_junit(report),
        Some('{') => of_go(report),
        Some(_) if report.lines().any(|line| cargo_result(line).is_some()) => of_cargo(report),
        Some(_) => of_tap(report),
        None => 0,
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Counts the cases of JUnit XML that neither failed nor were left out. A fault of the XML ends the count.
fn of_junit(report: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(report);
    let mut passed = 0;
    // Whether the case that is open has passed so far.
    let mut case: Option<bool> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if tag.name().as_ref() == "testcase" => case = Some(was_run(&tag)),
            Ok(Event::Empty(tag)) if tag.name().as_ref() == "testcase" => {
                passed += usize::from(was_run(&tag))
            }
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                if matches!(tag.name().as_ref(), "failure" | "error" | "skipped") {
                    case = case.map(|_| false);
                }
            }
            Ok(Event::End(tag)) if tag.name().as_ref() == "testcase" => {
                passed += usize::from(case.take() == Some(true));
            }
            Ok(Event::Eof) | Err(_) => return passed,
            Ok(_) => {}
        }
    }
}

/// Says whether a case was run, as far as its attributes tell: Google Test and others say there that it was not.
fn was_run(case: &BytesStart<'_>) -> bool {
    let not_run = |value: &str| matches!(value, "notrun" | "skipped" | "suppressed" | "disabled");
    !case
        .attributes()
        .flatten()
        .any(|attribute| matches!(attribute.key.as_ref(), "status" | "result") && not_run(&attribute.value))
}

/// A line of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
}

/// Counts the tests of Go that passed; one with tests of its own is not counted beside them.
fn of_go(report: &str) -> usize {
    let events = report.lines().filter_map(|line| serde_json::from_str::<GoEvent>(line).ok());
    let (mut passed, mut parents) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        let Some(test) = event.test else { continue };
        if let Some((parent, _)) = test.rsplit_once('/') {
            parents.insert((event.package.clone(), parent.to_owned()));
        }
        match event.action.as_str() {
            "pass" => drop(passed.insert((event.package, test))),
            "fail" | "skip" => drop(passed.remove(&(event.package, test))),
            _ => {}
        }
    }
    passed.difference(&parents).count()
}

/// Counts by the lines in which `cargo test` says for each binary, and `cargo nextest run` for all, how many passed.
fn of_cargo(report: &str) -> usize {
    report.lines().filter_map(cargo_result).fold(0, usize::saturating_add)
}

/// Reads `test result: ok. 12 passed; 0 failed; …` and `Summary [   1.591s] 12 tests run: 12 passed, 3 skipped`.
fn cargo_result(line: &str) -> Option<usize> {
    let counts = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1,
        None => line.trim_start().strip_prefix("Summary [")?.split_once(" run: ")?.1,
    };
    counts.split_once(" passed")?.0.parse().ok()
}

/// Counts the points of TAP that are ok and no directive leaves out. A point that sums up the points indented before it is
/// not counted beside them.
fn of_tap(report: &str) -> usize {
    let (mut passed, mut depth_before) = (0, 0);
    for line in report.lines() {
        let point = line.trim_start();
        let depth = line.len() - point.len();
        let is_failed = point.strip_prefix("not ok");
        let Some(rest) = is_failed.or_else(|| point.strip_prefix("ok")) else { continue };
        if rest.starts_with(|c: char| !c.is_whitespace()) {
            continue;
        }
        let is_sum = std::mem::replace(&mut depth_before, depth) > depth;
        let directive = rest.rsplit_once(" # ").map_or("", |(_, directive)| directive).to_ascii_lowercase();
        let is_left_out = directive.starts_with("skip") || directive.starts_with("todo");
        passed += usize::from(is_failed.is_none() && !is_sum && !is_left_out);
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a06_junit_counts_the_cases_that_were_run_and_passed() {
        let report = r#"<?xml version="1.0"?><testsuites tests="6"><testsuite name="a">
            <testcase name="plain"/>
            <testcase name="talks"><system-out>it failed &lt;failure/&gt;</system-out></testcase>
            <testcase name="fails"><failure message="x">at 1</failure></testcase>
            <testcase name="breaks"><error/></testcase>
            <testcase name="left out"><skipped/></testcase>
            <testcase name="of gtest" status="notrun"/>
        </testsuite></testsuites>"#;
        assert_eq!(passed_in(report), 2);
        assert_eq!(passed_in(r#"<testsuite tests="12"></testsuite>"#), 0, "a number is no test");
        assert_eq!(passed_in(r#"<testsuite><testcase name="a"/><testcase name="#), 1, "it breaks off");
    }

    #[test]
    fn a06_tap_counts_points_and_no_sums_of_them() {
        let flat = "TAP version 13\n1..4\nok 1 - a\nnot ok 2 - b\nok 3 # skip no network\nok 4 - c # TODO later\nokay\n";
        assert_eq!(passed_in(flat), 1);
        let nested = "TAP version 13\n# Subtest: suite\n    # Subtest: a\n    ok 1 - a\n    ok 2 - b\n    1..2\nok 1 - suite\n\
                      ok 2 - alone\n1..2\n";
        assert_eq!(passed_in(nested), 3);
    }

    #[test]
    fn a06_go_counts_tests_and_not_those_around_them() {
        let lines = [
            r#"{"Action":"run","Package":"p","Test":"TestA"}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestA/one"}"#,
            r#"{"Action":"fail","Package":"p","Test":"TestA/two"}"#,
            r#"{"Action":"fail","Package":"p","Test":"TestA"}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestB/one"}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestB"}"#,
            r#"{"Action":"skip","Package":"p","Test":"TestC"}"#,
            r#"{"Action":"pass","Package":"p"}"#,
        ];
        assert_eq!(passed_in(&lines.join("\n")), 2);
    }

    #[test]
    fn a06_cargo_counts_the_passed_ones_of_all_binaries() {
        let text = "\nrunning 2 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n\
                    test result: FAILED. 3 passed; 1 failed; 0 ignored\n";
        assert_eq!(passed_in(text), 5);
        let nextest = "    Starting 2 tests\n        PASS [0.1s] a\n     Summary [   1.591s] 2 tests run: 2 passed, 28 skipped\n";
        assert_eq!(passed_in(nextest), 2);
    }

    #[test]
    fn a06_what_is_no_report_counts_nothing_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "ok 1\n").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link.tap")).unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(folder.path().join("notes.txt"), "12 passed\n\u{0}").unwrap();
        assert_eq!(passed_tests(folder.path()), 0);
        std::fs::create_dir(folder.path().join("unit")).unwrap();
        std::fs::write(folder.path().join("unit/a.tap"), "ok 1\nok 2\n").unwrap();
        std::fs::write(folder.path().join("b.xml"), "<testsuite><testcase/></testsuite>").unwrap();
        assert_eq!(passed_tests(folder.path()), 3);
        assert_eq!(passed_tests(&folder.path().join("absent")), 0);
    }
}
