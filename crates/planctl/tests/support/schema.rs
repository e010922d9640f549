//! Holds what planctl prints as JSON against the schema that planctl prints for it: every command of every test.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;
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

/// Returns the schema that planctl prints under this name.
pub fn schema(name: &str) -> Value {
    planctl_api::schema::schema(name).unwrap_or_else(|| panic!("there is no schema {name}"))
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
    let mut plain: Vec<&str> = (0..words.len())
        .filter(|at| !words[*at].starts_with('-') && !takes(*at))
        .map(|at| words[at])
        .collect();
    // The verbs of plans and runs are also typed without a noun.
    const OF_PLAN: [&str; 6] = ["verify", "show", "fmt", "diff", "approve", "reject"];
    const OF_RUN: [&str; 10] =
        ["status", "watch", "logs", "events", "why", "resume", "cancel", "audit", "export", "context"];
    match plain.first().copied()? {
        verb if OF_PLAN.contains(&verb) => plain.insert(0, "plan"),
        verb if OF_RUN.contains(&verb) || verb == "ls" => plain.insert(0, "run"),
        "plan" if plain.get(1).is_some_and(|verb| OF_RUN.contains(verb)) => plain[0] = "run",
        "run" if plain.get(1).is_none_or(|verb| !OF_RUN.contains(verb) && *verb != "ls") => {
            plain.insert(0, "plan");
        }
        _ => {}
    }
    Some(match (plain.first().copied()?, plain.get(1).copied()) {
        ("plan", Some("verify")) if words.contains(&"--explain") => "plan-verify-explain",
        ("plan", Some("verify")) => "plan-verify",
        ("plan", Some("show")) => "plan-show",
        ("plan", Some("fmt")) => "plan-fmt",
        ("plan", Some("diff")) => "plan-diff",
        ("plan", Some("draft")) => "plan-draft",
        ("goal", Some("decompose")) => "goal",
        ("goal", Some("graph")) => "goal-graph",
        ("goal", Some("resolve")) => "goal-resolve",
        ("goal", Some("verify")) => "goal-verify",
        ("goal", Some("stats")) => "goal-stats",
        ("tool", Some("ls" | "refresh")) => "tools",
        ("tool", Some("show")) => "tool",
        ("plan", Some("ls")) => "plan-ls",
        ("plan", Some("run")) | ("run", Some("resume" | "watch" | "events")) => "event",
        ("plan", Some("approve" | "reject")) | ("run", Some("cancel")) => "decision",
        ("run", Some("status")) if words.contains(&"--salute") => "plan-salute",
        ("run", Some("status")) if words.contains(&"--traversal") => "plan-traversal",
        ("run", Some("status")) => "plan-status",
        ("run", Some("context")) => "plan-context",
        ("library", Some("ls")) => "library",
        ("library", Some("show")) => "library-entry",
        ("library", Some("match")) => "library-match",
        ("library", Some("stats")) => "library-stats",
        ("run", Some("ls")) => "run-ls",
        ("run", Some("logs")) if words.contains(&"--prompt") => "plan-prompts",
        ("run", Some("logs")) if words.contains(&"-f") => "plan-output",
        ("run", Some("logs")) => "plan-logs",
        ("run", Some("why")) => "why",
        ("run", Some("audit")) => "audit",
        ("graph", Some("check")) => "graph-check",
        ("graph", Some("parallel")) => "graph-parallel",
        ("graph", Some("render")) => "graph-render",
        ("approvals" | "inbox", None | Some("ls")) => "approvals",
        ("approvals", Some("show")) => "approvals-show",
        ("approvals", Some(_)) => "decision",
        ("clean", _) => "clean",
        ("notify", Some("ls")) => "notify-channels",
        ("notify", Some("test")) => "notify-test",
        ("notify", Some("deliveries")) => "notify-deliveries",
        ("notify", Some("replay")) => "notify-delivery",
        ("topic", Some("ls")) => "topics",
        ("topic", Some("show" | "post")) => "topic",
        ("open", _) => "page-link",
        ("token", Some("create")) => "token-made",
        ("token", Some("ls")) => "tokens",
        ("token", Some("revoke")) => "token",
        ("doctor", _) | ("guide", Some("doctor")) => "doctor",
        ("guide", Some("status")) => "guide-status",
        ("guard", Some("ls")) => "guards",
        ("roles", Some("ls")) => "roles",
        ("worker", Some("test")) => "worker-test",
        ("worker", Some("run")) => "worker-run",
        ("worker", Some("ls")) => "workers",
        ("worker", Some("pause" | "resume")) => "worker",
        ("work" | "item", Some("claim" | "show")) => "work-claim",
        ("work" | "item", Some("heartbeat")) => "work-heartbeat",
        ("work" | "item", Some("complete" | "fail" | "ask" | "release")) => "work-report",
        ("config", Some("show")) => "config-show",
        ("config", Some("path")) => "config-path",
        ("db", Some("status")) => "db-status",
        ("daemon", Some("status")) => "daemon-status",
        ("version", _) => "version",
        ("schema", None) => "schema",
        _ => return None,
    })
}
