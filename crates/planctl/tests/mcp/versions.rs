//! Both revisions of the protocol, as a table: the published kit has no scenario of the newer one yet.

use serde_json::{Value, json};

use super::client::{Client, NEWER, OLDER, newer_meta};
use crate::support::Place;

#[test]
fn the_newer_revision_needs_no_handshake_and_each_answer_says_that_it_is_whole() {
    let place = Place::untouched();
    let mut client = Client::newer(&place);
    let found = client.ask("server/discover", json!({}))["result"].clone();
    assert_eq!(found["supportedVersions"], json!([OLDER, NEWER]), "{found}");
    assert_eq!(found["resultType"], "complete", "{found}");
    let requests = [
        ("tools/list", json!({}), "tools"),
        ("resources/list", json!({}), "resources"),
        ("resources/templates/list", json!({}), "resourceTemplates"),
        ("prompts/list", json!({}), "prompts"),
        ("resources/read", json!({ "uri": "planctl://diagnostics/P104" }), "contents"),
        ("prompts/get", json!({ "name": "write_contract", "arguments": { "task": "x" } }), "messages"),
        ("tools/call", json!({ "name": "code_explain", "arguments": { "code": "P104" } }), "content"),
    ];
    for (method, params, field) in requests {
        let result = client.ask(method, params)["result"].clone();
        assert_eq!(result["resultType"], "complete", "{method}: {result}");
        assert!(result[field].as_array().is_some_and(|list| !list.is_empty()), "{method}: {result}");
        let is_cacheable = !matches!(method, "prompts/get" | "tools/call");
        assert_eq!(result["ttlMs"].is_u64(), is_cacheable, "{method}: {result}");
    }
    client.must("planning_setup_plan", json!({ "objective": "x" }));
    assert_eq!(
        client.must("planning_read_plan", json!({}))["plan"]["objective"],
        "x",
        "the process is the session"
    );
    assert!(client.end().success());
}

#[test]
fn the_newer_revision_refuses_what_it_does_not_have() {
    let place = Place::untouched();
    let mut client = Client::newer(&place);
    client.ask("tools/list", json!({}));
    let mut code = |method: &str, params: Value| client.ask(method, params)["error"]["code"].clone();
    assert_eq!(code("ping", json!({})), -32601);
    assert_eq!(code("resources/subscribe", json!({ "uri": "planctl://runs" })), -32601);
    assert_eq!(code("subscriptions/listen", json!({ "notifications": {} })), -32601);
    assert_eq!(code("tasks/get", json!({ "taskId": "x" })), -32601);
    assert_eq!(code("logging/setLevel", json!({ "level": "debug" })), -32601);
    assert_eq!(code("planctl/approve", json!({})), -32601);
    assert_eq!(code("tools/call", json!({ "name": "approve", "arguments": {} })), -32602);
    assert_eq!(code("prompts/get", json!({ "name": "none" })), -32602);
    let bare = json!({ "jsonrpc": "2.0", "id": "bare", "method": "tools/list", "params": {} });
    client.send(&bare);
    assert_eq!(client.answer_to("bare")["error"]["code"], -32602, "a request describes itself");
    let mut meta = newer_meta();
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    client.send(
        &json!({ "jsonrpc": "2.0", "id": "future", "method": "tools/list", "params": { "_meta": meta } }),
    );
    let refused = client.answer_to("future")["error"].clone();
    assert_eq!(refused["data"]["supported"], json!([OLDER, NEWER]), "{refused}");
    assert!(client.end().success());
}

#[test]
fn the_older_revision_shakes_hands_and_knows_nothing_of_the_newer_ones_fields() {
    let place = Place::untouched();
    let mut client = Client::silent(&place, &[]);
    let hello = client.shake_hands();
    assert_eq!(hello["protocolVersion"], OLDER);
    assert_eq!(hello["serverInfo"]["name"], "planctl");
    assert_eq!(hello["capabilities"], json!({ "tools": {}, "resources": {}, "prompts": {} }));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let listed = client.ask("tools/list", json!({}))["result"].clone();
    assert!(listed["resultType"].is_null() && listed["ttlMs"].is_null(), "{listed}");
}

#[test]
fn a_handshake_that_names_any_other_revision_is_answered_with_the_older_one() {
    let place = Place::untouched();
    for named in [NEWER, "2024-11-05", "1.0", "2031-01-01"] {
        let mut client = Client::silent(&place, &[]);
        let hello = json!({
            "protocolVersion": named, "capabilities": {}, "clientInfo": { "name": "script", "version": "1" },
        });
        assert_eq!(client.ask("initialize", hello)["result"]["protocolVersion"], OLDER, "{named}");
    }
}
