//! Asks of drafts at every door: listed, shown and answered as those of runs are, by the page and by several people (M-35, M-39a).

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use super::house::{Ask, House, Reply};
use super::page::{Browser, has};

const GOAL: &str = "Add a --json flag to <src/app.sh>";

/// Hands in the asks of a draft, as its command does.
pub(super) fn asked(house: &House, key: &str, asks: &Value) -> Value {
    let place = json!({ "workspace": house.fixture.path(""), "config": null });
    let body = json!({ "place": place, "key": "draft-1", "begun": "b", "goal": GOAL, "asks": asks });
    let how = Ask { key: Some(key), body: Some(body.to_string()), ..Ask::default() };
    let reply = house.local("POST", "/v1/drafts/asks", &how);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["asks"].clone()
}

fn prompt(digest: &str) -> Value {
    let question = json!({ "kind": "prompt", "digest": digest, "name": "writer", "model": "m-1", "url": "https://models.example/v1/messages",
        "tokens": 4100, "text": "Write a plan for <b>this</b>.\nR1: add the flag" });
    json!({ "slot": "prompt", "question": question })
}

fn answer(house: &House, token: &str, key: &str, ask: u64, answer: &str) -> Reply {
    let body = json!({ "answer": { "answer": answer }, "note": key }).to_string();
    let how = Ask { token: Some(token), key: Some(key), body: Some(body), ..Ask::default() };
    house.network("POST", &format!("/v1/approvals/{ask}/answer"), &how)
}

#[test]
fn m_35_a_prompt_of_a_draft_is_read_and_answered_on_the_page_and_another_one_asks_anew() {
    let house = House::new();
    let first = asked(&house, "one", &json!([prompt("sha256:1")]));
    let id = first[0]["id"].as_u64().unwrap();
    assert_eq!(asked(&house, "same", &json!([prompt("sha256:1")])), first, "the same prompt asks once");
    assert_eq!(
        (&first[0]["kind"], &first[0]["draft"]),
        (&json!("prompt"), &json!("add-a-json-flag-to-src-a"))
    );
    assert!(first[0].get("run").is_none(), "{first}");

    let browser = Browser::with_token(&house, "approve");
    let path = format!("/asks/{id}");
    let home = browser.get("/");
    has(&home, "draft add-a-json-flag-to-src-a: may this prompt be sent?");
    let page = browser.get(&path);
    for words in [
        "Nothing was sent yet. An approval is for this prompt alone.",
        "writer (m-1)",
        "https://models.example/v1/messages",
        "up to 4100 with one answer",
        "sha256:1",
        "Write a plan for &#60;b&#62;this&#60;/b&#62;.\nR1: add the flag",
        "let this prompt be sent, and no other",
        "send nothing; the draft stops here",
    ] {
        has(&page, words);
    }
    assert!(!page.body.contains("href=\"/runs/"), "a draft has no run: {}", page.body);
    let decided = browser.decide(&page, &path, &[("answer", "approve")]);
    assert_eq!(decided.status, 303, "{decided:?}");
    has(&browser.get(&path), "Answered <strong>approve</strong> by approve-test");
    let heard = asked(&house, "heard", &json!([prompt("sha256:1")]));
    assert_eq!((&heard[0]["id"], &heard[0]["answer"]["answer"]), (&json!(id), &json!("approve")));

    let second = asked(&house, "two", &json!([prompt("sha256:2")]));
    assert_ne!(second[0]["id"], first[0]["id"]);
    assert_eq!(second[0]["answer"], Value::Null, "an approval is for one prompt");
    let third = asked(&house, "three", &json!([prompt("sha256:3")]));
    let late = answer(&house, &house.token("admin"), "late", second[0]["id"].as_u64().unwrap(), "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    assert!(late.body.contains("it was taken back"), "{late:?}");
    let open = house.local("GET", "/v1/approvals", &Ask::default()).json();
    assert_eq!(open["asks"].as_array().unwrap().len(), 1);
    assert_eq!(open["asks"][0]["id"], third[0]["id"]);
}

#[test]
fn m_35_of_people_who_answer_a_draft_at_once_one_decides_and_a_reader_or_a_worker_never() {
    let house = House::new();
    let id = asked(&house, "one", &json!([prompt("sha256:1")]))[0]["id"].as_u64().unwrap();
    for scope in ["read", "worker"] {
        let refused = answer(&house, &house.token(scope), scope, id, "approve");
        assert_eq!(refused.status, 403, "{scope}: {refused:?}");
    }
    let token = house.token("approve");
    let wrong = answer(&house, &token, "wrong", id, "abort");
    assert_eq!(wrong.status, 409, "a draft has no run that could be ended: {wrong:?}");
    let start = Arc::new(Barrier::new(8));
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|at| {
                let (start, house, token) = (start.clone(), &house, &token);
                scope.spawn(move || {
                    start.wait();
                    let word = if at % 2 == 0 { "approve" } else { "reject" };
                    answer(house, token, &format!("at-once-{at}"), id, word)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(won, 1, "{replies:?}");
    assert!(replies.iter().filter(|reply| reply.status != 200).all(|reply| reply.status == 409));
    assert_eq!(house.fixture.sql("select count(*) from draft_answers"), "1");
    let winner = replies.iter().find(|reply| reply.status == 200).unwrap().json();
    let kept = house.fixture.sql("select answer || ' ' || by from draft_answers");
    assert!(kept.contains(winner["decision"].as_str().unwrap()) && kept.ends_with("approve-test"), "{kept}");
}

#[test]
fn m_39a_a_synthesis_of_a_goal_waits_in_the_inbox_and_its_command_lists_it() {
    let house = House::new();
    let ask =
        json!({ "slot": "I1", "question": { "kind": "synthesis", "text": "Write the program `tools/x`" } });
    let id = asked(&house, "one", &json!([ask]))[0]["id"].as_u64().unwrap();
    let listed = house.fixture.planctl(&["approvals", "--category", "SynthesisApproval"]);
    assert!(listed.out.contains("synthesis") && listed.out.contains("draft add-a-json-flag"), "{listed:?}");
    let none = house.fixture.planctl(&["approvals", "--category", "LlmPromptApproval"]);
    assert!(none.out.contains("no prompt waits"), "{none:?}");
    let shown = house.fixture.planctl(&["approvals", "show"]);
    for words in ["draft │ Write the program `tools/x`", "let an agent write it", "look for another way"] {
        assert!(shown.out.contains(words), "{words}: {shown:?}");
    }
    let cancelled = house.fixture.planctl(&["approvals", "cancel", &id.to_string(), "--note", "x"]);
    assert!(cancelled.code == 5 && cancelled.err.contains("of a draft, not of a run"), "{cancelled:?}");
    let rejected = house.fixture.planctl(&["approvals", "reject", "--note", "too much"]);
    assert_eq!(rejected.code, 0, "{rejected:?}");
    let heard = asked(&house, "heard", &json!([ask]));
    assert_eq!(heard[0]["answer"]["answer"], "reject");
    assert_eq!(heard[0]["answer"]["note"], "too much");
}

#[test]
fn x_35_a_rule_rejects_a_prompt_of_a_draft_that_nobody_answered_in_time_and_leaves_questions_open() {
    let house = House::new();
    let rule = json!({ "approvals": 1, "self_approval": true, "deadline": { "secs": 3600, "nanos": 0 }, "on_deadline": "abort" });
    let config = json!({ "asks": { "soon": rule } });
    let place = json!({ "workspace": house.fixture.path(""), "config": config });
    let question = json!({ "slot": "Q1", "question": { "kind": "question", "text": "Which flag?" } });
    let open = |key: &str| {
        let body = json!({ "place": place, "key": "draft-1", "begun": "b", "goal": GOAL, "asks": [prompt("sha256:1"), question] });
        let how = Ask { key: Some(key), body: Some(body.to_string()), ..Ask::default() };
        let reply = house.local("POST", "/v1/drafts/asks", &how);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["asks"].clone()
    };
    let opened = open("one");
    assert_eq!(
        (&opened[0]["deadline"]["answer"], &opened[0]["deadline"]["rule"]),
        (&json!("reject"), &json!("soon"))
    );
    assert!(opened[1].get("deadline").is_none(), "a question takes no answer that stops: {opened}");
    let shown = house.fixture.planctl(&["approvals", "show", &opened[0]["id"].to_string()]).out;
    assert!(shown.contains("the rule soon answers reject"), "{shown}");
    house.fixture.sql(
        "update asks set created_at = created_at - interval '1 hour', deadline_at = deadline_at - interval '1 hour'",
    );
    house
        .until_sql("select by || ': ' || note from draft_answers", "policy:soon: nobody answered within 1 h");
    let heard = open("heard");
    assert_eq!(heard[0]["answer"]["answer"], "reject", "{heard}");
    assert!(heard[1]["answer"].is_null(), "{heard}");
}

#[test]
fn p_19_a_rule_leaves_a_prompt_of_a_draft_to_two_people() {
    let house = House::new();
    let rule = json!({ "kinds": ["prompt", "synthesis"], "approvals": 2, "self_approval": true, "on_deadline": "wait" });
    let config = json!({ "asks": { "prompts": rule } });
    let place = json!({ "workspace": house.fixture.path(""), "config": config });
    let body =
        json!({ "place": place, "key": "draft-1", "begun": "b", "goal": GOAL, "asks": [prompt("sha256:1")] });
    let how = Ask { key: Some("one"), body: Some(body.to_string()), ..Ask::default() };
    let opened = house.local("POST", "/v1/drafts/asks", &how).json();
    let id = opened["asks"][0]["id"].as_u64().unwrap();
    let (first, second) = (house.token("approve"), house.token("admin"));
    let counted = answer(&house, &first, "first", id, "approve").json();
    assert_eq!(counted["voted"], json!({ "rule": "prompts", "have": 1, "needed": 2 }), "{counted}");
    assert_eq!(house.fixture.sql("select count(*) from draft_answers"), "0", "one vote decides nothing");
    let again = answer(&house, &first, "again", id, "approve").json();
    assert_eq!((&again["voted"]["have"], &again["repeated"]), (&json!(1), &json!(true)));
    let decided = answer(&house, &second, "second", id, "approve");
    assert!(decided.status == 200 && decided.json().get("voted").is_none(), "{decided:?}");
    let kept = house.fixture.sql("select note from draft_answers");
    assert!(kept.contains("agreed before: approve-test ("), "{kept}");
}
