//! The same over the daemon's port: each request alone, with the caller's own token and no more than that.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::{NEWER, OLDER, forms, newer_meta, newer_meta_of};
use crate::support::{Going, Place};

/// A daemon with a port.
struct Port {
    place: Place,
    daemon: Option<Going>,
    address: String,
}

/// An answer.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Port {
    fn new() -> Port {
        let place = Place::new();
        let mut daemon = place.start(&["daemon", "run", "--listen", "127.0.0.1:0"]);
        daemon.hear("ready");
        let info: Value =
            serde_json::from_str(&std::fs::read_to_string(place.path("state/daemon.json")).unwrap()).unwrap();
        let address = info["tcp"].as_str().unwrap_or_else(|| panic!("{info}")).to_owned();
        Port { place, daemon: Some(daemon), address }
    }

    fn token(&self, scope: &str) -> String {
        self.place.must(&["token", "create", scope, "--name", scope]).out.trim().to_owned()
    }

    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request =
            format!("{method} /mcp HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: {}\r\n", self.address));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut whole = String::new();
        stream.read_to_string(&mut whole).unwrap();
        let (head, body) = whole.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{whole}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Reply { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Sends a request of the newer revision, which stands alone.
    fn ask(&self, token: &str, method: &str, params: Value) -> Reply {
        self.ask_as(&newer_meta(), token, method, params)
    }

    /// The same, of a client that describes itself in this way.
    fn ask_as(&self, meta: &Value, token: &str, method: &str, mut params: Value) -> Reply {
        params["_meta"] = meta.clone();
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let bearer = format!("Bearer {token}");
        let mut headers = vec![
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", NEWER),
            ("mcp-method", method),
        ];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send("POST", &headers, &body.to_string())
    }

    /// Calls a tool; returns whether it was refused, and its content.
    fn call(&self, token: &str, tool: &str, arguments: Value) -> (bool, Value) {
        let reply = self.ask(token, "tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply.status, 200, "{tool}: {reply:?}");
        let result = reply.json()["result"].clone();
        (result["isError"] == true, result["structuredContent"].clone())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.signal(rustix::process::Signal::TERM);
            daemon.end();
        }
    }
}

#[test]
fn a_request_stands_alone_and_a_tool_reaches_what_its_token_does() {
    let port = Port::new();
    let (read, approve, worker) = (port.token("read"), port.token("approve"), port.token("worker"));
    let found = port.ask(&read, "server/discover", json!({})).json();
    assert_eq!(found["result"]["supportedVersions"], json!([OLDER, NEWER]), "{found}");
    let listed = port.ask(&read, "tools/list", json!({})).json();
    let tools: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(!tools.contains(&"plan_submit") && !tools.contains(&"plan_draft"), "{tools:?}");
    assert_eq!(tools.len(), 14);
    let (is_refused, runs) = port.call(&read, "run_status", json!({}));
    assert_eq!((is_refused, runs), (false, json!({ "runs": [] })));
    let refused =
        |token: &str, tool: &str, arguments: Value| port.call(token, tool, arguments).1["code"].clone();
    assert_eq!(refused(&worker, "run_status", json!({})), "scope", "a worker's token looks at nothing");
    assert_eq!(refused(&read, "item_claim", json!({ "roles": ["coder"] })), "scope");
    assert_eq!(refused(&approve, "item_claim", json!({ "roles": ["coder"] })), "scope");
    let (is_refused, claimed) = port.call(&worker, "item_claim", json!({ "roles": ["coder"] }));
    assert_eq!((is_refused, claimed), (false, json!({ "claimed": null })));
    let work = port.place.path("work").to_string_lossy().into_owned();
    let plan = json!({ "workspace": work, "path": "p.md", "text": "# no plan" });
    assert_eq!(refused(&read, "plan_verify", plan.clone()), "scope");
    let (is_refused, report) = port.call(&approve, "plan_verify", plan);
    assert!(!is_refused && report["verified"] == false, "{report}");
    assert_eq!(refused(&approve, "plan_verify", json!({ "path": "p.md" })), "bad_request");
    let lease = format!("planctl_item_1_{}", "0".repeat(64));
    let made_up = json!({ "item": "nothing", "token": lease });
    assert_eq!(refused(&worker, "item_heartbeat", made_up), "not_found");
    assert_eq!(
        port.ask(&approve, "tools/call", json!({ "name": "plan_submit", "arguments": { "path": "p.md" } }))
            .json()["error"]["code"],
        -32602
    );
}

#[test]
fn work_is_done_over_http_with_a_workers_token() {
    let port = Port::new();
    let worker = port.token("worker");
    std::fs::write(
        port.place.path("work/hello.md"),
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Hello\n\n**Budget:** 60 minutes\n\n## Steps\n\n### 1. Greet\n\n\
         **target:** coder\n\n**task:**\nWrite `hello.txt`.\n\n**contract:**\n```bash\ngrep -q Hello hello.txt\n```\nexit_code == 0\n\
         **on_fail:** retry(1), then abort\n",
    )
    .unwrap();
    port.place.must(&["run", "hello.md", "--approve", "-d"]);
    let (_, claimed) = port.call(&worker, "item_claim", json!({ "roles": ["coder"], "wait_seconds": 30 }));
    let held =
        json!({ "item": claimed["claimed"]["item"], "token": claimed["claimed"]["token"], "text": "done" });
    std::fs::write(port.place.path("work/hello.txt"), "Hello\n").unwrap();
    let (is_refused, said) = port.call(&worker, "item_complete", held);
    assert!(!is_refused, "{said}");
    port.place.await_state("done");
}

#[test]
fn input_is_required_over_http_only_of_a_caller_who_may_decide_and_the_answer_decides_nothing() {
    let port = Port::new();
    let (worker, admin) = (port.token("worker"), port.token("admin"));
    std::fs::write(port.place.path("work/hello.md"), super::persons::PLAN).unwrap();
    port.place.must(&["run", "hello.md", "--approve", "-d"]);
    let (_, claimed) = port.call(&worker, "item_claim", json!({ "roles": ["coder"], "wait_seconds": 30 }));
    let question = json!({
        "item": claimed["claimed"]["item"], "token": claimed["claimed"]["token"], "question": "In which language?",
    });
    let call = |token: &str, meta: &Value, more: &Value| {
        let mut params = json!({ "name": "person_ask", "arguments": question });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        port.ask_as(meta, token, "tools/call", params).json()["result"].clone()
    };
    let shows = newer_meta_of(&forms());
    let asked = call(&admin, &shows, &json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let message = asked["inputRequests"]["answer"]["params"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("> In which language?"), "{message}");
    let brought = json!({ "inputResponses": { "answer": { "action": "accept", "content": { "answer": "In English." } } } });
    let answered = call(&admin, &shows, &brought);
    assert_eq!(answered["structuredContent"]["answer"], "In English.", "{answered}");
    assert_eq!(port.place.json(&["approvals", "--json"])["asks"], json!([]), "nobody is asked in the inbox");
    // A worker's token is an agent's: its client's word that a person is there counts for nothing.
    let refused = call(&worker, &shows, &brought);
    assert_eq!(refused["structuredContent"]["answer"], Value::Null, "{refused}");
    assert_eq!(port.place.json(&["approvals", "--json"])["asks"].as_array().unwrap().len(), 1);
}

#[test]
fn t_19_t_20_over_http_a_list_is_its_callers_and_named_by_its_session() {
    let port = Port::new();
    let (mine, other) = (port.token("read"), port.token("worker"));
    let (_, begun) = port.call(
        &mine,
        "planning_setup_plan",
        json!({ "objective": "mine", "initial_steps": [{ "title": "a" }] }),
    );
    let session = begun["session"].as_str().unwrap().to_owned();
    let read =
        |token: &str, session: &str| port.call(token, "planning_read_plan", json!({ "session": session }));
    let (is_refused, list) = read(&mine, &session);
    assert!(!is_refused && list["plan"]["objective"] == "mine", "{list}");
    let foreign = "This session does not exist, is over, or is another caller's.";
    assert_eq!(read(&other, &session).1["error"], foreign);
    assert_eq!(read(&mine, "made-up").1["error"], foreign);
    let (is_refused, none) = port.call(&mine, "planning_read_plan", json!({}));
    assert!(is_refused && none["code"] == "bad_request", "{none}");
    let mark = json!({ "step_id": "S001", "status": "done", "session": session });
    assert_eq!(port.call(&mine, "planning_mark_step", mark).1["plan"]["status"], "completed");
    let (_, replaced) =
        port.call(&mine, "planning_setup_plan", json!({ "objective": "again", "session": session }));
    assert_eq!((&replaced["session"], &replaced["plan"]["version"]), (&json!(session), &json!(3)));
}

/// The headers of a client of MCP that has this authorization.
fn usual_headers(bearer: &str) -> [(&str, &str); 3] {
    [
        ("authorization", bearer),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
}

#[test]
fn the_older_revision_is_answered_without_a_session() {
    let port = Port::new();
    let bearer = format!("Bearer {}", port.token("read"));
    let headers = usual_headers(&bearer);
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": OLDER, "capabilities": {}, "clientInfo": { "name": "script", "version": "1" } },
    });
    let reply = port.send("POST", &headers, &hello.to_string());
    assert_eq!(reply.json()["result"]["protocolVersion"], OLDER, "{reply:?}");
    assert!(!reply.head.contains("mcp-session-id"), "{reply:?}");
    let headers = [&headers[..], &[("mcp-protocol-version", OLDER)]].concat();
    let said = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(port.send("POST", &headers, &said.to_string()).status, 202);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let reply = port.send("POST", &headers, &list.to_string());
    assert_eq!(reply.json()["result"]["tools"].as_array().unwrap().len(), 14, "{reply:?}");
    assert_eq!(port.send("GET", &headers, "").status, 405);
    assert_eq!(port.send("DELETE", &headers, "").status, 405);
}

#[test]
fn a37_a38_no_token_no_answer_and_no_other_host_or_page() {
    let port = Port::new();
    let token = port.token("read");
    let bearer = format!("Bearer {token}");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let send = |more: &[(&str, &str)]| port.send("POST", &[&usual[..], more].concat(), &list);
    assert_eq!(send(&[("authorization", &bearer)]).status, 200);
    assert_eq!(send(&[]).status, 401, "also to look");
    for wrong in ["Bearer nonsense", "Bearer planctl_read_0", "Basic YTpi"] {
        assert_eq!(send(&[("authorization", wrong)]).status, 401, "{wrong}");
    }
    let lease = format!("Bearer planctl_item_1_{}", "0".repeat(64));
    assert_eq!(send(&[("authorization", &lease)]).status, 404, "an item's holder has the item's routes");
    for host in [
        "evil.example",
        "localhost.evil.example",
        "evil.example:7420",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "[::]",
        "10.0.0.1",
        "169.254.169.254",
        "localhost@evil.example",
        "",
        "127.1",
        "2130706433",
        "localhost.",
        "localhost:evil",
        "[::1",
    ] {
        let reply = send(&[("authorization", &bearer), ("host", host)]);
        assert!([400, 403].contains(&reply.status), "{host:?}: {reply:?}");
    }
    for origin in [
        "null",
        "http://evil.example",
        "https://evil.example",
        "http://localhost.evil.example",
        "file://",
        "http://localhost:1",
        "http://127.0.0.1",
        "chrome-extension://abc",
        "http://[::1]:1",
        "https://127.0.0.1:1",
        "http://0.0.0.0:7420",
        "ftp://localhost",
        "http://evil.example:80@localhost",
        "vscode-webview://x",
        "about:blank",
    ] {
        let reply = send(&[("authorization", &bearer), ("origin", origin)]);
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
    }
}

#[test]
fn hostile_bodies_over_http_are_refused_and_the_daemon_goes_on() {
    let port = Port::new();
    let bearer = format!("Bearer {}", port.token("read"));
    let headers = usual_headers(&bearer);
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}"#, r#"{"a":"#.repeat(20_000));
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(8 << 20));
    for body in
        ["", "{", "[]", "null", "1", "\"x\"", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, &deep, &long]
    {
        let reply = port.send("POST", &headers, body);
        assert!((400..500).contains(&reply.status), "{:.60}: {reply:?}", body);
    }
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert_eq!(port.send("POST", &headers, &list).status, 200);
}
