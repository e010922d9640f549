//! The cost of finding the capability of an intent among 10,000 tools: less than 50 ms, the index built once.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use planctl_planner::{Capability, Catalog, History, Intent, IntentKind, Resolver, Source};
use serde_json::{Value, json};

const VERBS: [&str; 10] =
    ["list", "get", "create", "update", "delete", "search", "close", "send", "run", "merge"];
const THINGS: [&str; 10] =
    ["issue", "pull", "branch", "commit", "page", "invoice", "customer", "ticket", "device", "report"];

/// Makes tools that share their words as those of real servers do: each verb and thing stands in a thousand of them.
fn tools(count: usize) -> Vec<Capability> {
    let tools: Vec<Value> = (0..count)
        .map(|at| {
            let (verb, thing, group) = (VERBS[at % 10], THINGS[at / 10 % 10], at / 100);
            json!({
                "name": format!("{verb}_{thing}_g{group}"),
                "description": format!("Does {verb} for each {thing} of a group, and says what came of it."),
                "inputSchema": { "type": "object", "required": ["group"], "properties": {
                    "group": { "type": "integer" }, "perPage": { "type": "integer" }, "state": { "type": "string" },
                } },
            })
        })
        .collect();
    let list = json!({ "tools": tools }).to_string();
    Capability::read_all(&list, "big").unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn intent(text: &str) -> Intent {
    Intent {
        id: "I1".to_owned(),
        text: text.to_owned(),
        kind: IntentKind::Act,
        topic: None,
        needs: Vec::new(),
        part_of: None,
        tool: None,
        parameters: std::collections::BTreeMap::new(),
    }
}

fn resolve(criterion: &mut Criterion) {
    let (catalog, history) = (Catalog::new(tools(10_000)), History::default());
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries: &[] };
    for (name, text) in [
        ("common words", "list each issue of a group and report what came of it"),
        ("a misspelt word", "list the invocies of customers"),
        ("nothing like it", "fold the paper swan"),
    ] {
        let intent = intent(text);
        criterion.bench_function(name, |bench| bench.iter(|| black_box(resolver.find(black_box(&intent)))));
    }
    let capabilities = tools(10_000);
    criterion.bench_function("the index itself", |bench| {
        bench.iter(|| black_box(Catalog::new(black_box(capabilities.clone()))));
    });
}

criterion_group!(benches, resolve);
criterion_main!(benches);
