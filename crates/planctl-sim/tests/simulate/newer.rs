//! P23: planctl refuses a graph in which a newer version wrote something that this one does not know. To pass over it could pass
//! a step that the newer one would not.

use std::collections::BTreeSet;

use planctl_engine::Graph;
use planctl_sim::{Dice, draw};
use serde_json::Value;

/// Objects whose keys are names that an author chose, and the conditions of edges, whose tests are told apart by name.
const OPEN: [&str; 3] = ["context", "when", "until"];
const GRAPHS: u64 = 200;

#[test]
fn p23_a_graph_with_a_field_of_a_newer_version_is_refused_wherever_the_field_is() {
    let mut seen = BTreeSet::new();
    for seed in 0..GRAPHS {
        let stored = serde_json::to_value(&draw(&mut Dice::new(seed)).graph).expect("a graph is JSON");
        for place in objects(&stored, String::new()) {
            let mut newer = stored.clone();
            newer.pointer_mut(&place).expect("it is there")["of_a_newer_version"] = Value::from("anything");
            let read = serde_json::from_value::<Graph>(newer);
            assert!(read.is_err(), "seed {seed}: passed over at `{place}` of {stored:#}");
            let names = place.split('/').filter(|part| part.parse::<u32>().is_err());
            seen.insert(names.collect::<Vec<_>>().join("/"));
        }
    }
    for place in [
        "",
        "/nodes",
        "/nodes/kind",
        "/nodes/kind/contract",
        "/nodes/kind/contract/judge",
        "/edges",
        "/limits",
        "/goals",
    ] {
        assert!(seen.contains(place), "no graph has {place}: {seen:?}");
    }
}

/// Returns where objects stand in a stored graph, as pointers.
fn objects(value: &Value, place: String) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(values) => {
            values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    // Of a kind without fields, nothing is read but its name.
    let is_kind_alone = value.as_object().is_some_and(|fields| fields.keys().eq(["kind"]));
    let own = (value.is_object() && !is_kind_alone).then(|| place.clone());
    let below = below.into_iter().filter(|(name, _)| !OPEN.contains(&name.as_str()));
    own.into_iter().chain(below.flat_map(|(name, value)| objects(value, format!("{place}/{name}")))).collect()
}
