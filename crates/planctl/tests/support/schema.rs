//! Holds what planctl prints as JSON against the schema that planctl prints for it: every command of every test.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::Value;

/// Checks the answer of a command, where it is JSON; an answer that does not fit fails the test.
pub fn check(words: &[&str], out: &str) {
    let wants_json = words.contains(&"--json")
        || words.windows(2).any(|pair| pair[0] == "--format" && ["json", "jsonl"].contains(&pair[1]));
    if !wants_json || out.is_empty() {
        return;
    }
    let name = name(words).unwrap_or_else(|| panic!("no schema is known for planctl {}", words.join(" ")));
    let validator = validator(name);
    for value in serde_json::Deserializer::from_str(out).into_iter::<Value>() {
        let value = value.unwrap_or_else(|error| panic!("planctl {}: {error}\n{out}", words.join(" ")));
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "planctl {} against {name}: {wrong:#?}\n{value:#}", words.join(" "));
    }
}

/// Returns a schema as planctl prints it.
pub fn schema(name: &str) -> Value {
    let said = Command::new(env!("CARGO_BIN_EXE_planctl")).args(["schema", name]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    serde_json::from_slice(&said.stdout).unwrap()
}

fn validator(name: &str) -> Arc<Validator> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let made = || Arc::new(jsonschema::draft202012::new(&schema(name)).unwrap());
    known.entry(name.to_owned()).or_insert_with(made).clone()
}

fn name(words: &[&str]) -> Option<&'static str> {
    const WITH_VALUE: [&str; 7] = ["--to", "-C", "--format", "--note", "--workspace", "--config", "--as"];
    let takes = |at: usize| at > 0 && WITH_VALUE.contains(&words[at - 1]);
    let plain: Vec<&str> = (0..words.len())
        .filter(|at| !words[*at].starts_with('-') && !takes(*at))
        .map(|at| words[at])
        .collect();
    Some(match (plain.first().copied()?, plain.get(1).copied()) {
        ("plan", Some("verify")) if words.contains(&"--explain") => "plan-verify-explain",
        ("plan", Some("verify")) => "plan-verify",
        ("plan", Some("show")) => "plan-show",
        ("plan", Some("fmt")) => "plan-fmt",
        ("plan", Some("diff")) => "plan-diff",
        ("plan", Some("status")) if words.contains(&"--salute") => "plan-salute",
        ("plan", Some("status")) if words.contains(&"--traversal") => "plan-traversal",
        ("plan", Some("status")) => "plan-status",
        ("plan", Some("context")) => "plan-context",
        ("plan", Some("ls")) => "plan-ls",
        ("plan", Some("logs")) if words.contains(&"--prompt") => "plan-prompts",
        ("plan", Some("logs")) if words.contains(&"-f") => "plan-output",
        ("plan", Some("logs")) => "plan-logs",
        ("plan", Some("run" | "resume" | "watch")) | ("events", _) => "event",
        ("plan", Some("approve" | "reject" | "cancel")) => "decision",
        ("graph", Some("check")) => "graph-check",
        ("graph", Some("parallel")) => "graph-parallel",
        ("graph", Some("render")) => "graph-render",
        ("why", _) => "why",
        ("audit", _) => "audit",
        ("approvals", None | Some("ls")) => "approvals",
        ("approvals", Some("show")) => "approvals-show",
        ("approvals", Some(_)) => "decision",
        ("clean", _) => "clean",
        ("topic", Some("ls")) => "topics",
        ("topic", Some("show" | "post")) => "topic",
        ("token", Some("create")) => "token-made",
        ("token", Some("ls")) => "tokens",
        ("token", Some("revoke")) => "token",
        ("doctor", _) => "doctor",
        ("roles", Some("ls")) => "roles",
        ("worker", Some("test")) => "worker-test",
        ("worker", Some("run")) => "worker-run",
        ("worker", Some("ls")) => "workers",
        ("worker", Some("pause" | "resume")) => "worker",
        ("work", Some("claim" | "show")) => "work-claim",
        ("work", Some("heartbeat")) => "work-heartbeat",
        ("work", Some("complete" | "fail" | "ask" | "release")) => "work-report",
        ("config", Some("show")) => "config-show",
        ("config", Some("path")) => "config-path",
        ("db", Some("status")) => "db-status",
        ("daemon", Some("status")) => "daemon-status",
        ("version", _) => "version",
        ("schema", None) => "schema",
        _ => return None,
    })
}
