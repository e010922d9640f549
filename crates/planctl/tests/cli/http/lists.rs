//! Lists of the API: their entries, and that each comes in pages.

use serde_json::{Value, json};

use super::house::{Ask, House, plan};

fn get(house: &House, path: &str) -> Value {
    let reply = house.local("GET", path, &Ask::default());
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.json()
}

fn post(house: &House, path: &str, key: &str, body: &Value) -> Value {
    let ask = Ask { key: Some(key), body: Some(body.to_string()), ..Ask::default() };
    let reply = house.local("POST", path, &ask);
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.json()
}

/// Says what a list shows, each entry by one of its fields.
fn listed(list: &Value, name: &str, field: &str) -> Vec<Value> {
    list[name].as_array().unwrap().iter().map(|entry| entry[field].clone()).collect()
}

/// Reads a list one entry at a time, and holds that this is what it shows at once.
fn read_in_pages(house: &House, path: &str, name: &str, field: &str) {
    let mark = if path.contains('?') { '&' } else { '?' };
    let whole = get(house, path);
    assert!(whole.get("next").is_none(), "{path}: {whole}");
    let whole = listed(&whole, name, field);
    assert!(whole.len() > 1, "{path} shows too little to come in pages: {whole:?}");
    let (mut read, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(house, &format!("{path}{mark}limit=1{cursor}"));
        read.extend(listed(&page, name, field));
        let Some(next) = page["next"].as_str() else { break };
        assert!(read.len() <= whole.len(), "{path} has no end: {read:?}");
        cursor = format!("&cursor={next}");
    }
    assert_eq!(read, whole, "{path}");
    for cursor in ["things:1", name] {
        let reply = house.local("GET", &format!("{path}{mark}cursor={cursor}"), &Ask::default());
        assert_eq!(reply.code(), "bad_request", "{path}: {cursor}");
    }
}

fn approve(house: &House, key: &str, text: &str) {
    let plan = json!({ "workspace": house.fixture.path(""), "path": "docs/much.md", "text": text });
    post(house, "/v1/plans/approve", key, &json!({ "plan": plan }));
}

#[test]
fn a_query_without_what_the_route_needs_or_with_a_word_that_it_does_not_know_is_refused() {
    let house = House::new();
    for (path, words) in [
        ("/v1/channels", "`workspace` is missing: the absolute path of a workspace"),
        ("/v1/library?message=x", "`workspace` is missing"),
        ("/v1/library/runs", "`workspace` is missing"),
        ("/v1/deliveries?failed=maybe", "`failed` must be true, false, found \\\"maybe\\\""),
    ] {
        let reply = house.local("GET", path, &Ask::default());
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{path}: {reply:?}");
        assert!(reply.body.contains(words), "{path}: {reply:?}");
    }
    let document = get(&house, "/v1/openapi.json");
    let parameters = &document["paths"]["/v1/channels"]["get"]["parameters"];
    assert_eq!(parameters[0]["required"], true, "{parameters}");
}

#[test]
fn every_list_comes_in_pages() {
    let house = House::new();
    std::fs::create_dir_all(house.fixture.path("docs")).unwrap();
    house.fixture.write("docs/much.md", &plan("much", "a"));
    for word in ["a", "b", "c"] {
        approve(&house, &format!("approve-{word}"), &plan("much", word));
        house.token(if word == "a" {
            "read"
        } else if word == "b" {
            "worker"
        } else {
            "approve"
        });
        post(&house, &format!("/v1/topics/{word}"), &format!("note-{word}"), &json!({ "text": word }));
        let claim = json!({ "roles": [format!("role-{word}")], "worker": format!("the worker/{word} é") });
        let ask = Ask { body: Some(claim.to_string()), ..Ask::default() };
        assert_eq!(house.local("POST", "/v1/items/claim", &ask).status, 204);
        let how = json!({ "plan": { "workspace": house.fixture.path(""), "path": format!("{word}.md"), "text": plan(word, word) },
            "start": { "waits_for_workers": true } });
        house.fixture.write(&format!("{word}.md"), &plan(word, word));
        let started = post(&house, "/v1/runs", &format!("start-{word}"), &how);
        assert_eq!(started["started"], "needs_approval", "{started}");
    }
    let run = house.run("tries", "right");
    for _ in 0..2 {
        let claimed = house.claim();
        let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str());
        let ask = Ask { token, body: Some("{}".to_owned()), ..Ask::default() };
        assert_eq!(house.local("POST", &format!("/v1/items/{item}/complete"), &ask).status, 200);
    }
    // The third try waits once the second has failed.
    house.claim();
    read_in_pages(&house, &format!("/v1/runs/{run}/logs"), "attempts", "attempt");
    read_in_pages(&house, "/v1/runs", "runs", "run");
    read_in_pages(&house, "/v1/audit", "runs", "run");
    read_in_pages(&house, "/v1/approvals", "asks", "id");
    read_in_pages(&house, "/v1/tokens", "tokens", "id");
    read_in_pages(&house, "/v1/topics", "topics", "topic");
    read_in_pages(&house, "/v1/workers", "workers", "id");
    read_in_pages(&house, "/v1/roles", "roles", "role");
    read_in_pages(&house, "/v1/plans", "plans", "id");
    let workspace = house.fixture.path("").display().to_string();
    read_in_pages(
        &house,
        &format!("/v1/plans/docs%2Fmuch.md/revisions?workspace={workspace}"),
        "revisions",
        "digest",
    );
    // Of another workspace there is nothing.
    let other = std::env::temp_dir().canonicalize().unwrap().display().to_string();
    for (path, name) in [("/v1/plans", "plans"), ("/v1/approvals", "asks"), ("/v1/runs", "runs")] {
        let list = get(&house, &format!("{path}?workspace={other}"));
        assert_eq!(list[name], json!([]), "{path}");
        let here = get(&house, &format!("{path}?workspace={workspace}"));
        assert!(here[name].as_array().unwrap().len() > 2, "{path}: {here}");
    }
}

#[test]
fn the_command_line_shows_all_pages() {
    let house = House::new();
    for number in 0..201 {
        let topic = format!("/v1/topics/topic-{number:03}");
        post(&house, &topic, &format!("note-{number}"), &json!({ "text": "x" }));
    }
    let page = get(&house, "/v1/topics");
    assert_eq!((page["topics"].as_array().unwrap().len(), &page["next"]), (200, &json!("topics:topic-199")));
    let shown = house.fixture.planctl(&["topic", "ls", "--json"]).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["topics"].as_array().unwrap().len(), 201);
    assert!(shown.get("next").is_none());
}

#[test]
fn plans_and_their_texts_are_found_by_number_and_by_path() {
    let house = House::new();
    std::fs::create_dir_all(house.fixture.path("docs")).unwrap();
    let texts = [plan("much", "first"), plan("much", "second")];
    house.fixture.write("docs/much.md", &texts[1]);
    for (number, text) in texts.iter().enumerate() {
        approve(&house, &format!("approve-{number}"), text);
    }
    let workspace = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let list = get(&house, "/v1/plans");
    let known = &list["plans"][0];
    assert_eq!((&known["plan"], &known["status"]), (&json!("docs/much.md"), &json!("approved")));
    assert_eq!(known["workspace"], workspace);
    assert_eq!(known["title"], "much");
    let by_number = format!("/v1/plans/{}", known["id"]);
    assert_eq!(&get(&house, &by_number), known);
    assert_eq!(&get(&house, &format!("/v1/plans/docs%2Fmuch.md?workspace={workspace}")), known);

    let kept = get(&house, &format!("{by_number}/revisions"));
    let digests = listed(&kept, "revisions", "digest");
    assert_eq!((digests.len(), &digests[0]), (2, &known["digest"]), "the newest first");
    for (digest, text) in digests.iter().rev().zip(&texts) {
        let digest = digest.as_str().unwrap();
        for name in [digest, &digest["sha256:".len()..][..12]] {
            let page = get(&house, &format!("{by_number}/revisions/{name}"));
            assert_eq!(
                (page["source"].as_str(), page["digest"].as_str()),
                (Some(text.as_str()), Some(digest))
            );
        }
    }

    for (path, code) in [
        ("/v1/plans/999".to_owned(), "not_found"),
        (format!("/v1/plans/none.md?workspace={workspace}"), "not_found"),
        ("/v1/plans/docs%2Fmuch.md".to_owned(), "conflict"),
        (format!("{by_number}/revisions/ffffffff"), "not_found"),
    ] {
        let reply = house.local("GET", &path, &Ask::default());
        assert_eq!(reply.code(), code, "{path}: {reply:?}");
    }
}

#[test]
fn roles_tell_what_waits_and_who_does_it() {
    let house = House::new();
    assert_eq!(get(&house, "/v1/roles"), json!({ "roles": [] }));
    // The daemon gives the run its turn in its own time.
    let run = house.run("hello", "hello");
    house.until(&run, "running");
    let coder = get(&house, "/v1/roles")["roles"][0].clone();
    assert_eq!(
        (&coder["role"], &coder["queued"], &coder["working"]),
        (&json!("coder"), &json!(1), &json!(0))
    );
    assert_eq!((&coder["workers"], &coder["served"]), (&json!([]), &json!(0)));
    assert!(coder["oldest_queued_seconds"].is_u64(), "{coder}");
    let claim = json!({ "roles": ["coder", "reviewer"], "worker": "ada" });
    let ask = Ask { body: Some(claim.to_string()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim?wait=30", &ask).status, 200);
    let roles = get(&house, "/v1/roles")["roles"].clone();
    let expected = |role: &str, working: u32| json!({ "role": role, "queued": 0, "served": 0, "working": working, "oldest_queued_seconds": null, "workers": ["ada"] });
    assert_eq!(roles, json!([expected("coder", 1), expected("reviewer", 0)]));
    post(&house, "/v1/workers/ada/pause", "pause", &json!({}));
    let roles = get(&house, "/v1/roles")["roles"].clone();
    assert_eq!(
        (listed(&json!({ "roles": roles }), "roles", "role"), &roles[0]["workers"]),
        (vec![json!("coder")], &json!([]))
    );
}

#[test]
fn hole_17_answers_escape_what_changes_how_a_line_is_shown() {
    let house = House::new();
    let said = "ok \u{202e}desrever\u{2066}\u{9b}2J\u{200b}, caf\u{e9}";
    post(&house, "/v1/topics/news", "note-1", &json!({ "text": said }));
    let shown = house.local("GET", "/v1/topics/news", &Ask::default());
    assert!(shown.body.contains("\\u202edesrever\\u2066\\u009b2J\\u200b, caf\u{e9}"), "{shown:?}");
    assert_eq!(shown.json()["notes"][0]["text"], said, "the same text for who parses it");
    let refused = house.local("GET", "/v1/runs/no\u{202e}run", &Ask::default());
    assert!(!refused.body.contains('\u{202e}'), "{refused:?}");
}
