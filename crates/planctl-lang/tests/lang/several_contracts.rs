//! A node with several contracts passes where each of them does, whatever is written in them.

use std::process::Command;

use planctl_engine::{Graph, NodeId};
use planctl_lang::{Code, Facts, FileFact, Levels, Source, Verification, verify};

/// Writes a graph of one task with contracts, as DOT writes them in quotes.
fn task(contracts: &[&str]) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let contracts = contracts.iter().enumerate().map(|(at, contract)| match at {
        0 => format!("contract=\"{}\"", quoted(contract)),
        _ => format!("contract.c{at}=\"{}\"", quoted(contract)),
    });
    let contracts: Vec<String> = contracts.collect();
    format!(
        "digraph G {{ start exit a [prompt=\"Change `a.txt`.\", {}]\nstart -> a -> exit }}",
        contracts.join(", ")
    )
}

fn verified(name: &str, text: &str) -> Verification {
    verify(&Source::new(name, text), &Facts::default(), &Levels::default())
}

fn ends_as_expected(graph: &Graph) -> bool {
    let contract = &graph.node(&NodeId::new("a")).and_then(|node| node.task()).expect("a task").contract;
    let bash = Command::new("bash").args(["--noprofile", "--norc", "-p", "-c", &contract.command]).output();
    bash.expect("bash").status.code() == Some(contract.expect.into())
}

fn passes(contracts: &[&str]) -> bool {
    let verification = verified("plan.dot", &task(contracts));
    ends_as_expected(
        &verification.graph.unwrap_or_else(|| panic!("{contracts:?}\n{:?}", verification.diagnostics)),
    )
}

#[test]
fn one_red_contract_of_several_is_enough() {
    for red in [
        &["test -f never", "grep -q foo x || test -d /"][..],
        &["test -f never # must be there", "true"],
        &["test -f never; true", "test -f never", "true"],
        &["true", "test -f never", "true"],
        &["set -e\ntest -f never\ntrue", "true"],
        &["cat <<EOF\nx\nEOF\ntest -f never", "true"],
        &["exit 0", "test -f never"],
        &["if test -f never; then exit 0; fi; exit 3", "true"],
        &["cd /usr", "test -d bin"],
        &["true || \\\n false", "false"],
        &["trap 'exit 0' EXIT; false", "test -f never"],
    ] {
        assert!(!passes(red), "{red:?}");
    }
    for green in [
        &["true", "true"][..],
        &["false || true", "true || false"],
        &["test -d / # is there", "cat <<EOF\nx\nEOF", "true"],
        &["set -e\ntrue\nfalse || true", "cat <<EOF >/dev/null\nx\nEOF", "exit 0"],
        &["cd /usr; test -d bin", "test -d \"$PWD\""],
    ] {
        assert!(passes(green), "{green:?}");
    }
}

#[test]
fn each_of_several_contracts_ends_with_the_code_that_its_node_expects() {
    for expected in [1, 3] {
        let expecting = |contracts: &[&str]| {
            let text = task(contracts).replace("contract=", &format!("expect_exit={expected}, contract="));
            ends_as_expected(&verified("plan.dot", &text).graph.expect("a graph"))
        };
        let ends = &*format!("exit {expected}");
        assert!(expecting(&[ends, ends]));
        assert!(!expecting(&["exit 2", ends]) && !expecting(&[ends, "exit 2"]));
        assert!(!expecting(&["exit 0", ends]) && !expecting(&[ends, "true"]));
        for (file, is_there) in [("/", true), ("never", false)] {
            let json = format!(
                r#"{{"graph": {{"start": "a", "nodes": {{"a": {{"action": "Do it", "contract": "exit {expected}", "expect_exit": {expected},
                    "verify": {{"type": "file_exists", "value": "{file}"}}}}, "end": {{"type": "exit"}}}},
                    "edges": [{{"from": "a", "to": "end", "condition": "on_success"}}]}}}}"#
            );
            let graph = verified("plan.json", &json).graph.expect("a graph");
            assert_eq!(ends_as_expected(&graph), is_there, "{expected} {file}");
        }
    }
}

#[test]
fn a_finding_stands_in_the_contract_that_it_is_about() {
    for (contracts, code, place) in [
        (&["pytest -q", "ruff check | tail -3"][..], Code::P110, "ruff check | tail -3"),
        (&["ruff check | tail -3", "pytest -q"], Code::P110, "ruff check | tail -3"),
        (&["test -f x", "false"], Code::P113, "false"),
        (&["test -f x", "touch y; test -f x"], Code::P105, "y; test"),
    ] {
        let text = task(contracts);
        let found = verified("plan.dot", &text).diagnostics;
        let of_code: Vec<_> = found.iter().filter(|found| found.code == code).collect();
        let [finding] = of_code.as_slice() else { panic!("{contracts:?}\n{found:?}") };
        assert!(text[finding.spans[0].span.start..].starts_with(place), "{contracts:?}\n{finding:?}");
    }
    for sound in [
        &["pytest -q", "ruff check"][..],
        &["set -e\npytest -q\nruff check", "test -f x"],
        &["cat <<EOF\nx\nEOF", "make"],
    ] {
        let found = verified("plan.dot", &task(sound)).diagnostics;
        let about_contracts = |code: Code| code.as_str().starts_with("P1");
        assert!(found.iter().all(|found| !about_contracts(found.code)), "{sound:?}\n{found:?}");
    }
}

#[test]
fn a_contract_among_several_that_wants_a_protected_file_to_change_is_told() {
    let facts = Facts {
        files: [("fixed.txt".to_owned(), FileFact::Regular { size: 4 })].into(),
        texts: [("fixed.txt".to_owned(), "old\n".to_owned())].into(),
        ..Facts::default()
    };
    for contracts in [&["grep -q new fixed.txt", "make"][..], &["make", "grep -q new fixed.txt"]] {
        let source = Source::new("plan.dot", task(contracts));
        let found = verify(&source, &facts, &Levels::default()).diagnostics;
        assert!(
            found.iter().any(|found| found.code == Code::P118 && found.is_error()),
            "{contracts:?}\n{found:?}"
        );
    }
}
