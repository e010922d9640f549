//! The person at the client's screen: asked there where a trusted file says that it is theirs, and decides nothing there.

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use crate::support::Place;

pub const PLAN: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Hello\n\n**Budget:** 60 minutes\n\n## Steps\n\n\
    ### 1. Greet\n\n**target:** coder\n\n**task:**\nWrite `hello.txt`.\n\n**contract:**\n```bash\ngrep -q Hello hello.txt\n```\n\
    exit_code == 0\n**on_fail:** retry(1), then abort\n";

const TRUSTED: &str = "[mcp]\nasks_at_client = true\n";

/// A workspace with a run whose step waits for a worker, and a daemon.
fn place(toml: Option<&str>) -> (Place, crate::support::Going) {
    let place = Place::new();
    fs::write(place.path("work/hello.md"), PLAN).unwrap();
    if let Some(toml) = toml {
        fs::write(place.path("work/planctl.toml"), toml).unwrap();
        place.must(&["trust", "."]);
    }
    let mut daemon = place.daemon();
    daemon.hear("ready");
    place.must(&["run", "hello.md", "--approve", "-d"]);
    (place, daemon)
}

/// Claims the step, and returns the arguments of a question about it.
fn question(client: &mut Client) -> Value {
    let claimed =
        client.must("item_claim", json!({ "roles": ["coder"], "wait_seconds": 30 }))["claimed"].clone();
    json!({ "item": claimed["item"], "token": claimed["token"], "question": "In which language?\n> approve everything" })
}

fn asks(place: &Place) -> usize {
    place.json(&["approvals", "--json"])["asks"].as_array().unwrap().len()
}

#[test]
fn a_person_at_the_clients_screen_answers_while_the_call_waits_and_the_item_stays_held() {
    let (place, _daemon) = place(Some(TRUSTED));
    let mut client = Client::silent(&place, &[]).with_forms();
    client.shake_hands();
    let question = question(&mut client);
    let call = client.begin("tools/call", json!({ "name": "person_ask", "arguments": question }));
    let asked = client.asked("elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("> In which language?\n> > approve everything\n"), "{message}");
    assert!(message.contains("It approves and decides nothing"), "{message}");
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["answer"]), "{asked}");
    let answer = json!({ "action": "accept", "content": { "answer": "In English." } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let answered = client.answer_to(call)["result"]["structuredContent"].clone();
    assert_eq!(
        (&answered["answer"], &answered["decides"]),
        (&json!("In English."), &json!(false)),
        "{answered}"
    );
    assert_eq!(asks(&place), 0, "nothing is in the inbox, and nothing was decided");
    let held = json!({ "item": question["item"], "token": question["token"] });
    assert_eq!(client.must("item_heartbeat", held)["cancel"], false, "the item is held still");
}

#[test]
fn whoever_declines_at_the_client_is_asked_in_the_inbox() {
    let (place, _daemon) = place(Some(TRUSTED));
    let mut client = Client::silent(&place, &[]).with_forms();
    client.shake_hands();
    let question = question(&mut client);
    let call = client.begin("tools/call", json!({ "name": "person_ask", "arguments": question }));
    let asked = client.asked("elicitation/create");
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }));
    let answered = client.answer_to(call)["result"].clone();
    assert_eq!(answered["structuredContent"]["answer"], Value::Null, "{answered}");
    assert_eq!(asks(&place), 1);
}

#[test]
fn by_the_newer_revision_the_call_is_made_again_with_the_answer() {
    let (place, _daemon) = place(Some(TRUSTED));
    let mut client = Client::newer(&place).with_forms();
    let question = question(&mut client);
    let asked =
        client.ask("tools/call", json!({ "name": "person_ask", "arguments": question }))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["answer"]["method"], "elicitation/create", "{asked}");
    let brought = json!({ "answer": { "action": "accept", "content": { "answer": "In English." } } });
    let again = json!({ "name": "person_ask", "arguments": question, "inputResponses": brought });
    let answered = client.ask("tools/call", again)["result"].clone();
    assert_eq!(answered["resultType"], "complete", "{answered}");
    assert_eq!(answered["structuredContent"]["answer"], "In English.", "{answered}");
    let foreign = json!({ "item": "nothing", "token": question["token"], "question": "Who?" });
    let refused =
        client.ask("tools/call", json!({ "name": "person_ask", "arguments": foreign }))["result"].clone();
    assert_eq!(refused["isError"], true, "who holds no item has nobody asked: {refused}");
}

#[test]
fn a_client_that_says_it_has_a_screen_is_not_believed_and_a_project_that_nobody_trusts_neither() {
    for is_written in [false, true] {
        let (place, _daemon) = place(None);
        if is_written {
            fs::write(place.path("work/planctl.toml"), TRUSTED).unwrap();
        }
        let mut client = Client::silent(&place, &[]).with_forms();
        client.shake_hands();
        let question = question(&mut client);
        let asked = client.must("person_ask", question);
        assert_eq!(asked["answer"], Value::Null, "{asked}");
        assert_eq!(asks(&place), 1);
    }
}

#[test]
fn a_client_without_forms_has_its_questions_in_the_inbox() {
    let (place, _daemon) = place(Some(TRUSTED));
    let mut client = Client::new(&place);
    let question = question(&mut client);
    client.must("person_ask", question);
    assert_eq!(asks(&place), 1);
}
