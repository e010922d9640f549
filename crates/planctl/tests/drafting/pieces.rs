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
fn a_goal_without_a_word_is_refused_by_each_command() {
    let home = app();
    for verb in ["decompose", "graph", "resolve", "verify"] {
        let said = home.planctl(&["goal", verb, " "]);
        assert!(said.code == 2 && said.err.contains("the goal is empty"), "{verb}: {said:?}");
    }
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

#[test]
fn m_13_a_budget_holds_a_goal_as_it_holds_a_draft() {
    let home = app();
    let answer = |intents| Reply::Structured(json!({ "title": "x", "confidence": 0.9, "intents": intents }));
    let coarse = json!([{ "id": "a", "text": "close the stale ones", "coarse": true }]);
    let parts = json!([{ "id": "a", "text": "find stale ones" }, { "id": "b", "text": "close them", "needs": ["a"] }]);
    let service = Service::start(Form::Messages, vec![answer(coarse), answer(parts)]);
    home.models(&[("writer", &service)]);
    let words = |verb, budget| {
        ["goal", verb, "close stale issues", "--model", "writer", "--json", "--budget", budget]
    };
    let said = home.planctl(&words("decompose", "100 tokens"));
    assert!(said.code == 6 && said.err.contains("100 are allowed"), "{said:?}");
    let said = home.planctl(&words("decompose", "$0.0001"));
    assert!(said.code == 6 && service.calls().is_empty(), "{said:?}");
    for (budget, exit) in [("much", 2), ("10 minutes", 2)] {
        let said = home.planctl(&words("resolve", budget));
        assert!(said.code == exit && service.calls().is_empty(), "{said:?}");
    }
    // The first answer is used and counted; what is left does not suffice for a second.
    let said = home.planctl(&words("decompose", "6000 tokens"));
    assert_eq!((said.code, service.calls().len()), (6, 1), "{said:?}");
    assert!(said.err.contains("1200 tokens are used"), "{said:?}");
    let view = home.json(&words("decompose", "1M tokens, $5"), 0);
    assert_eq!((&view["spent"]["answers"], service.calls().len()), (&json!(2), 2), "{view:#}");
    let graph = home.json(&words("graph", "100 tokens"), 0);
    assert_eq!((&graph["spent"], service.calls().len()), (&view["spent"], 2), "nobody is asked again");
    let told = home.planctl(&["goal", "decompose", "close stale issues", "--model", "writer"]);
    assert!(told.out.contains("the goal took 2 answers, 2400 tokens, $0.00"), "{told:?}");
}
