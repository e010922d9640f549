//! Tries on the binary itself each command line, variable, port, path and query that the manifests of `packaging/` name. `just manifests`
//! has them validated by the schemas of their own tools besides.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Place, wait_until};

fn packaging(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Adds the values of a key, wherever it stands.
fn all<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                if name == key {
                    found.push(value);
                }
                all(value, key, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| all(value, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn found<'v>(documents: &'v [Value], key: &str) -> Vec<&'v Value> {
    let mut values = Vec::new();
    documents.iter().for_each(|document| all(document, key, &mut values));
    values
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Asks the binary for the help of a command line, which it gives where it understands all that stands before.
fn must_be_understood(place: &Place, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let said = place.planctl(&words);
    assert!(said.code == 0 && said.out.contains("Usage"), "{words:?}: {said:?}");
    let wrong: Vec<&str> = words.iter().copied().take(2).chain(["--no-such-flag", "--help"]).collect();
    assert_ne!(place.planctl(&wrong).code, 0, "help hides what is wrong before it");
}

/// Adds the text of every source below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// Checks that planctl reads each of its variables that a text names.
fn must_be_read(text: &str) {
    let (mut read, crates) = (String::new(), Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    for name in ["planctl", "planctl-config", "planctl-server", "planctl-store"] {
        sources(&crates.join(name).join("src"), &mut read);
    }
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let named = text.split(|c| !is_name(c)).filter(|word| word.starts_with("PLANCTL_"));
    for name in named {
        assert!(read.contains(&format!("\"{name}\"")), "{name} is no variable of planctl");
    }
}

#[test]
fn the_command_lines_and_variables_of_the_manifests_are_those_of_planctl() {
    let place = Place::untouched();
    let kubernetes = [packaging("kubernetes/daemon.yaml"), packaging("kubernetes/workers.yaml")];
    let documents: Vec<Value> = kubernetes.iter().flat_map(|text| documents(text)).collect();
    let compose = [serde_saphyr::from_str::<Value>(&packaging("compose/compose.yaml")).unwrap()];
    let lines = found(&documents, "args").into_iter().chain(found(&compose, "command")).map(words);
    let own: Vec<Vec<String>> =
        lines.filter(|line| ["daemon", "worker"].contains(&line[0].as_str())).collect();
    assert_eq!(own.len(), 4, "{own:?}");
    own.iter().for_each(|line| must_be_understood(&place, line));

    let unit = packaging("systemd/planctl-worker@.service");
    let starts = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=/usr/bin/planctl "));
    let starts: Vec<Vec<String>> =
        starts.map(|line| line.replace("%i", "coder").split(' ').map(str::to_owned).collect()).collect();
    assert_eq!(starts.len(), 1);
    must_be_understood(&place, &starts[0]);
    for text in kubernetes.iter().chain([&packaging("compose/compose.yaml"), &unit]) {
        must_be_read(text);
        let tokens = text.lines().filter_map(|line| line.split_once("`planctl token create"));
        for (_, line) in tokens {
            assert!(line.starts_with(" worker --name") && line.contains("--role"), "{line}");
        }
    }
    must_be_understood(
        &place,
        &["token", "create", "worker", "--name", "coder", "--role", "coder"].map(str::to_owned),
    );
}

#[test]
fn the_ports_paths_and_names_of_the_manifests_fit_together_and_the_daemon_answers_there() {
    let kubernetes = documents(&packaging("kubernetes/daemon.yaml"));
    let text = packaging("kubernetes/daemon.yaml");
    let daemon = found(&kubernetes, "args").into_iter().map(words).find(|line| line[0] == "daemon").unwrap();
    let after = |flag: &str| daemon[daemon.iter().position(|word| word == flag).unwrap() + 1].clone();
    assert!(
        text.contains(&format!("reverse_proxy {}\n", after("--listen"))),
        "the proxy leads to the daemon"
    );
    let gets = found(&kubernetes, "httpGet");
    assert_eq!(gets.len(), 3);
    let paths: BTreeSet<&str> = gets.iter().map(|get| get["path"].as_str().unwrap()).collect();
    for get in gets {
        assert_eq!((&get["scheme"], &get["port"]), (&"HTTPS".into(), &8443.into()));
        assert_eq!(
            get["httpHeaders"][0]["value"].as_str().unwrap(),
            after("--host"),
            "the daemon answers to this name"
        );
    }
    let served: BTreeSet<i64> =
        found(&kubernetes, "containerPort").iter().filter_map(|port| port.as_i64()).collect();
    assert_eq!(served, BTreeSet::from([8443]));
    let server = "https://planctl:8443";
    for name in ["kubernetes/workers.yaml", "compose/compose.yaml"] {
        assert!(packaging(name).contains(server), "{name}: workers call {server}");
    }
    let compose = packaging("compose/compose.yaml");
    assert!(compose.contains("\n  daemon:\n") && compose.contains("\"0.0.0.0:7420\""), "{compose}");
    assert!(packaging("compose/Caddyfile").contains("reverse_proxy daemon:7420\n"));

    let place = Place::new();
    let mut line: Vec<&str> = daemon.iter().map(String::as_str).collect();
    let at = line.iter().position(|word| *word == "--listen").unwrap() + 1;
    line[at] = "127.0.0.1:0";
    let mut started = place.start(&line);
    started.hear("ready");
    let info: Value =
        serde_json::from_str(&fs::read_to_string(place.path("state/daemon.json")).unwrap()).unwrap();
    let port = info["tcp"].as_str().unwrap().to_owned();
    for path in paths {
        let host = format!("Host: {}", after("--host"));
        wait_until(path, || {
            let said = Command::new("curl")
                .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--header", &host])
                .arg(format!("http://{port}{path}"))
                .output()
                .unwrap();
            said.stdout == b"200"
        });
    }
    // The line is JSON, as collectors of logs want it.
    let heard = started.heard();
    let ready: Value = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["fields"]["message"] == "ready")
        .unwrap();
    assert!(ready["fields"]["pid"].is_number(), "{ready}");

    // KEDA's query counts the items that wait and those that are worked on.
    let workers = documents(&packaging("kubernetes/workers.yaml"));
    let query = found(&workers, "query")[0].as_str().unwrap().to_owned();
    let counted = || place.must(&["db", "psql", "--owner", "--", "-qAtc", &query]).out.trim().to_owned();
    place.plan(2, "");
    assert_eq!(counted(), "0");
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    wait_until("work", || counted() == "1");
    place.must(&["item", "claim", "--role", "coder", "--shell"]);
    assert_eq!(counted(), "1", "work that is claimed has its worker");
}
