//! `planctl goal`: a goal in pieces, by its form or by a model.

use serde_json::json;

use super::home::app;
use super::service::{Form, Reply, Service};

#[test]
fn m_03_a_listing_that_asks_is_two_intents_without_a_model() {
    let home = app();
    let goal = "list issues in owner/repo but ask me for perPage";
    let view = home.json(&["goal", "decompose", goal, "--strategy", "pattern", "--json"], 0);
    assert_eq!((&view["strategy"], &view["confidence"]), (&json!("pattern"), &json!(0.9)));
    assert_eq!(view["intents"][0]["question"], "How many items per page? (e.g., 10, 25, 50)");
    assert_eq!(view["intents"][1]["needs"], json!(["I1"]));
    let said = home.planctl(&["goal", "decompose", "list issues then show them", "--strategy", "pattern"]);
    assert!(said.code == 1 && said.err.contains("before or after"), "{said:?}");
}

#[test]
fn m_07_m_11_hybrid_says_what_it_considered_and_the_graph_leads_back_to_the_goal() {
    let home = app();
    home.write(
        "tools.json",
        "[{\"name\": \"github.list_issues\", \"about\": \"Lists.\", \"parameters\": [\"perPage\"]},\
                {\"name\": \"github.close_issue\"}]",
    );
    let answer = |intents| Reply::Structured(json!({ "title": "x", "confidence": 0.4, "intents": intents }));
    let service = Service::start(
        Form::Chat,
        vec![
            answer(
                json!([{ "id": "a", "text": "list and close issues" }, { "id": "b", "text": "report it", "needs": ["a"] }]),
            ),
            answer(
                json!([{ "id": "x", "text": "list issues" }, { "id": "y", "text": "close issue", "needs": ["x"] }]),
            ),
        ],
    );
    home.models(&[("writer", &service)]);
    let words =
        |verb| ["goal", verb, "close stale issues", "--model", "writer", "--tools", "tools.json", "--json"];
    // Less than half sure: a person should look.
    let view = home.json(&words("decompose"), 3);
    assert_eq!(view["strategy"], "grounded");
    assert_eq!(view["considered"].as_array().unwrap().len(), 2, "{view:#}");
    assert_eq!(view["intents"][1]["tools"], json!(["github.list_issues"]), "{view:#}");
    assert!(service.calls()[0].prompt().contains("github.list_issues(perPage)"));
    let graph = home.json(&words("graph"), 0);
    assert_eq!(service.calls().len(), 2, "what was answered is not asked again");
    let edges: Vec<String> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            format!(
                "{} {} {}",
                edge["from"].as_str().unwrap(),
                edge["kind"].as_str().unwrap(),
                edge["to"].as_str().unwrap()
            )
        })
        .collect();
    assert!(
        edges.contains(&"I1.2 depends_on I1.1".to_owned())
            && edges.contains(&"I1 is_subgoal_of G".to_owned()),
        "{edges:?}"
    );
}
