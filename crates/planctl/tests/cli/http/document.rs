//! The OpenAPI document is what the routes are: every answer that a test gets is held against it, and every route is
//! called once in earnest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use planctl_api::PROBLEM_MEDIA_TYPE;
use planctl_server::http::ROUTES;
use serde_json::{Value, json};

use super::house::{Ask, House, Reply, plan};

static DOCUMENT: LazyLock<Value> = LazyLock::new(planctl_server::http::openapi);

/// Holds a request and its answer against the document; returns the route, `GET /v1/runs/{run}`, where it has one.
pub fn check(method: &str, path: &str, ask: &Ask<'_>, reply: &Reply) -> Option<String> {
    let (bare, query) = path.split_once('?').unwrap_or((path, ""));
    let route = ROUTES.iter().find(|route| route.verb.as_str() == method && fits(route.path, bare))?;
    let name = format!("{method} {}", route.path);
    let operation = &DOCUMENT["paths"][route.path][method.to_lowercase()];
    let is_good = reply.status < 300;
    let responses = &operation["responses"];
    let response = &responses[reply.status.to_string()];
    let response = if response.is_null() && !is_good { &responses["default"] } else { response };
    assert!(!response.is_null(), "{name} has no answer {} in the document: {reply:?}", reply.status);
    match response["content"].as_object().and_then(|content| content.iter().next()) {
        None => assert_eq!(reply.body, "", "{name}: {reply:?}"),
        Some((media, content)) => {
            let is_told = reply.headers.contains(&format!("\r\ncontent-type: {media}"));
            assert!(is_told, "{name} answers no {media}: {reply:?}");
            if media == "application/json" || media == PROBLEM_MEDIA_TYPE {
                // A library writes the answers of /mcp, which no person reads.
                let is_line = reply.body.ends_with('\n') || route.path == "/mcp";
                assert!(is_line, "{name} answers a line: {reply:?}");
                let whose = format!("{name}: answer {}", reply.status);
                hold(&whose, &content["schema"], &reply.json());
            }
        }
    }
    if is_good {
        check_request(&name, operation, ask, query);
    }
    is_good.then_some(name)
}

/// The body that a route takes is in the document too.
fn check_request(name: &str, operation: &Value, ask: &Ask<'_>, query: &str) {
    let parameters = operation["parameters"].as_array().unwrap();
    let known = |place: &str, name: &str| {
        let is_it = |parameter: &&Value| {
            parameter["in"] == place && parameter["name"].as_str().unwrap().eq_ignore_ascii_case(name)
        };
        parameters.iter().find(is_it)
    };
    for (parameter, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let schema = known("query", &parameter).unwrap_or_else(|| panic!("{name} knows no {parameter}"));
        let is_number = schema["schema"]["type"] == "integer";
        let value = if is_number { json!(value.parse::<u64>().unwrap()) } else { json!(value) };
        hold(&format!("{name}: {parameter}"), &schema["schema"], &value);
    }
    let is_key_needed =
        parameters.iter().any(|one| one["name"] == "Idempotency-Key" && one["required"] == true);
    assert!(ask.key.is_some() || !is_key_needed, "{name} was answered without a key");
    let body = &operation["requestBody"];
    match &ask.body {
        Some(text) if !body.is_null() => {
            let schema = &body["content"]["application/json"]["schema"];
            hold(&format!("{name}: body"), schema, &serde_json::from_str(text).unwrap());
        }
        Some(_) => {}
        None => assert_ne!(body["required"], true, "{name} was answered without a body"),
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (parts, given) = (template.split('/'), path.split('/'));
    parts.clone().count() == given.clone().count()
        && parts.zip(given).all(|(part, given)| part.starts_with('{') || part == given)
}

/// Fails where a value is not what its schema in the document says.
fn hold(whose: &str, schema: &Value, value: &Value) {
    static KNOWN: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Many routes answer alike: a refusal most of all.
    let validator = known.entry(schema.to_string()).or_insert_with(|| {
        let whole = json!({ "allOf": [schema], "components": DOCUMENT["components"] });
        Arc::new(jsonschema::draft202012::new(&whole).unwrap_or_else(|error| panic!("{whose}: {error}")))
    });
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{whose}: {wrong:#?}\n{value:#}");
}

/// One who calls every route of a daemon.
struct Walk {
    house: House,
    keys: std::cell::Cell<u32>,
}

impl Walk {
    fn get(&self, path: &str) -> Value {
        let reply = self.house.local("GET", path, &Ask::default());
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        serde_json::from_str(&reply.body).unwrap_or(Value::String(reply.body))
    }

    fn send(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        self.keys.set(self.keys.get() + 1);
        let key = format!("walk-{}", self.keys.get());
        let body = body.map(|body| body.to_string());
        let reply = self.house.local(method, path, &Ask { key: Some(&key), body, ..Ask::default() });
        assert_eq!(reply.status, 200, "{method} {path}: {reply:?}");
        reply.json()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.send("POST", path, Some(body))
    }

    /// Says something of a claimed item.
    fn say(&self, claimed: &Value, verb: &str, body: Value) {
        let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
        let ask = Ask { token: Some(token), body: Some(body.to_string()), ..Ask::default() };
        let reply = self.house.local("POST", &format!("/v1/items/{item}/{verb}"), &ask);
        assert!(reply.status < 300, "{verb}: {reply:?}");
    }

    /// Waits until something is asked, looks at it, and answers.
    fn answer(&self, run: &str, answer: Value) {
        self.house.until(run, "waiting");
        let asks = self.get(&format!("/v1/approvals?run={run}"));
        let path = format!("/v1/approvals/{}", asks["asks"][0]["id"]);
        self.get(&path);
        self.post(&format!("{path}/answer"), json!({ "answer": answer, "note": "so be it" }));
    }

    fn plan(&self, name: &str) -> Value {
        let text = plan(name, name);
        self.house.fixture.write(&format!("{name}.md"), &text);
        json!({ "workspace": self.house.fixture.path(""), "path": format!("{name}.md"), "text": text })
    }

    fn start(&self, plan: &Value) -> String {
        let how = json!({ "approve": { "note": "go" }, "waits_for_workers": true });
        let started = self.post("/v1/runs", json!({ "plan": plan, "start": how }));
        assert_eq!(started["started"], "ready", "{started}");
        started["run"].as_str().unwrap().to_owned()
    }

    fn plans(&self) {
        let first = self.plan("first");
        self.post("/v1/plans/verify", first.clone());
        self.post("/v1/plans/standing", json!({ "plan": first }));
        self.post("/v1/plans/approve", json!({ "plan": first, "note": "good" }));
        let worse = json!({ "plan": self.plan("worse") });
        self.post("/v1/plans/approve", worse.clone());
        self.post("/v1/plans/reject", worse);
        self.post("/v1/plans/diff", json!({ "plan": first, "since": "approved" }));
        let known = self.get("/v1/plans?limit=2")["plans"][1].clone();
        let path = format!("/v1/plans/{}", known["id"]);
        assert_eq!(self.get(&path), known);
        let kept = self.get(&format!("{path}/revisions?limit=10"))["revisions"][0].clone();
        let digest = kept["digest"].as_str().unwrap();
        assert_eq!(self.get(&format!("{path}/revisions/{digest}"))["source"], first["text"]);
        self.get(&format!("{path}/revisions/{digest}/findings"));
    }

    /// Works on a run with every event of an item, and decides every ask.
    fn work(&self) -> String {
        let run = self.start(&self.plan("first"));
        let claimed = self.house.claim();
        let item = claimed["item"].as_str().unwrap();
        let shown = Ask { token: claimed["token"].as_str(), ..Ask::default() };
        assert_eq!(self.house.local("GET", &format!("/v1/items/{item}"), &shown).status, 200);
        self.say(&claimed, "heartbeat", json!({}));
        self.say(&claimed, "log", json!({ "text": "reading\n" }));
        self.say(&claimed, "usage", json!({ "input_tokens": 10, "output_tokens": 2, "model": "m" }));
        self.get("/v1/workers");
        self.say(&claimed, "ask", json!({ "question": "which word?" }));
        self.answer(&run, json!({ "answer": "reply" }));
        self.say(&self.house.claim(), "release", json!({}));
        self.say(&self.house.claim(), "fail", json!({ "reason": "no idea", "kind": "gave_up" }));
        self.answer(&run, json!({ "answer": "abort" }));
        self.house.until(&run, "failed");
        self.post(
            &format!("/v1/runs/{run}/resume"),
            json!({ "place": { "workspace": self.house.fixture.path("") } }),
        );
        let claimed = self.house.claim();
        self.house.fixture.write("out.txt", "first\n");
        self.say(&claimed, "complete", json!({ "text": "done", "seconds": 0.5, "exit_code": 0 }));
        self.house.until(&run, "done");
        let none = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
        assert_eq!(self.house.local("POST", "/v1/items/claim?wait=0", &none).status, 204);
        run
    }

    /// Has a draft ask, and answers it.
    fn draft(&self) {
        let ask = json!({ "slot": "I1", "question": { "kind": "synthesis", "text": "Write it" } });
        let call = json!({ "place": { "workspace": self.house.fixture.path("") }, "key": "d", "begun": "b", "goal": "List it",
            "asks": [ask] });
        let asks = self.post("/v1/drafts/asks", call);
        let path = format!("/v1/approvals/{}", asks["asks"][0]["id"]);
        self.get(&path);
        self.post(&format!("{path}/answer"), json!({ "answer": { "answer": "approve" } }));
        let kept = json!({ "place": { "workspace": self.house.fixture.path("") }, "goal": "List it", "record": "{}",
            "version": 1, "known": 0 });
        self.post("/v1/drafts/d", kept);
        self.post("/v1/drafts/d/take", json!({ "place": { "workspace": self.house.fixture.path("") } }));
        let workspace = self.house.fixture.path("").display().to_string();
        self.get(&format!("/v1/drafts/d?workspace={}", workspace.trim_end_matches('/')));
        let goal = json!({ "workspace": workspace, "goal": "remove hello.txt" });
        let draft = self.post("/v1/drafting", goal)["id"].as_str().unwrap().to_owned();
        self.get(&format!("/v1/drafting/{draft}"));
        self.post(&format!("/v1/drafting/{draft}/stop"), json!({}));
        self.get(&format!("/v1/drafting?workspace={workspace}"));
    }

    /// Ends the turn of a session that is held to a plan.
    fn guide(&self) {
        let how = json!({ "approve": { "note": "go" }, "worker": "session" });
        let started = self.post("/v1/runs", json!({ "plan": self.plan("guided"), "start": how }));
        let run = started["run"].as_str().unwrap();
        let session = self.get(&format!("/v1/runs/{run}/session?wait=60"));
        let item = session["steps"][0]["item"].as_str().unwrap_or_else(|| panic!("{session}"));
        self.house.fixture.write("out.txt", "guided\n");
        self.post(&format!("/v1/runs/{run}/session/turn"), json!({ "item": item, "last_words": "done" }));
        self.house.until(run, "done");
    }

    /// Changes the plan of a run that an ask holds.
    fn edit(&self) {
        let run = self.start(&self.plan("edited"));
        self.say(&self.house.claim(), "fail", json!({ "reason": "no idea", "kind": "gave_up" }));
        self.house.until(&run, "waiting");
        let asks = self.get(&format!("/v1/approvals?run={run}"));
        let path = format!("/v1/approvals/{}/edit", asks["asks"][0]["id"]);
        let edit = self.get(&path);
        let text = edit["text"].as_str().unwrap().replace("Write edited", "Please write edited");
        let checked = self.post(&format!("{path}/check"), json!({ "text": text }));
        assert_eq!(checked["refused"], Value::Null, "{checked}");
        self.post(&path, json!({ "text": text, "file": edit["file"], "note": "clearer" }));
        let claimed = self.house.claim();
        self.house.fixture.write("out.txt", "edited\n");
        self.say(&claimed, "complete", json!({ "text": "done", "seconds": 0.5, "exit_code": 0 }));
        self.house.until(&run, "done");
    }

    fn look(&self, run: &str) {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let headers = vec![("accept", "application/json, text/event-stream")];
        let reply = self.house.local("POST", "/mcp", &Ask { headers, body: Some(list), ..Ask::default() });
        assert_eq!(reply.status, 200, "{reply:?}");
        for part in [
            "",
            "/page",
            "/page?from=1",
            "/picture",
            "/picture?at=1",
            "/timeline",
            "/name",
            "/plan",
            "/history",
            "/history?newest=3",
            "/logs?step=1&attempt=1",
            "/output",
            "/prompts",
            "/salute",
        ] {
            self.get(&format!("/v1/runs/{run}{part}"));
        }
        for part in [
            "/traversal",
            "/checkpoint",
            "/follow-up",
            "/why/1",
            "/context",
            "/context?form=workflow",
            "/audit",
            "/bundle",
            "/bundle?since=1",
        ] {
            self.get(&format!("/v1/runs/{run}{part}"));
        }
        self.get("/v1/runs?limit=10");
        self.get("/v1/spent-today");
        self.get("/v1/decisions?limit=5");
        self.get("/v1/doctor");
        self.get("/v1/audit");
        self.get(&format!("/v1/events?run={run}&since=1"));
    }

    /// A run fails, and a person has seen it.
    fn acknowledge(&self) {
        let fixture = &self.house.fixture;
        fixture.write(
            "red.md",
            &crate::fixture::plan("red", "5 minutes", &[("Fail", "test -e never", "abort")]),
        );
        fixture.planctl(&["run", "red.md", "--approve", "-d", "--exec", "true"]);
        self.house.until("red-1", "failed");
        self.post("/v1/runs/red-1/acknowledge", json!({ "note": "seen" }));
    }

    fn house_keeping(&self) {
        for path in ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/problems", "/v1/daemon"] {
            self.get(path);
        }
        self.get("/v1/database");
        self.post("/v1/page/link", json!({}));
        self.get("/v1/roles");
        let workspace = self.house.fixture.path("");
        self.get(&format!("/v1/library/runs?workspace={}", workspace.display()));
        self.get(&format!("/v1/library?workspace={}&message=fix+the+bug", workspace.display()));
        self.post("/v1/topics/login%2Fproxy", json!({ "text": "the proxy is slow" }));
        self.get("/v1/topics");
        self.get("/v1/topics/login%2Fproxy?since=0&limit=1");
        self.get(&format!("/v1/channels?workspace={}", workspace.display()));
        self.post("/v1/channels/test", json!({ "workspace": workspace }));
        self.house.fixture.sql(
            "with m as (insert into messages (id, workspace, event, key, body) \
             select gen_random_uuid(), min(id), 'run.done', 'k', '{}' from workspaces returning id) \
             insert into deliveries (message, channel, state) select id, 'gone', 'failed' from m",
        );
        self.get("/v1/deliveries?failed=true&limit=1");
        self.post("/v1/deliveries/1/replay", json!({}));
        self.post("/v1/worktrees/clean", json!({ "dry_run": true }));
        let worker = self.get("/v1/workers")["workers"][0]["id"].as_str().unwrap().to_owned();
        let worker =
            url::form_urlencoded::byte_serialize(worker.as_bytes()).collect::<String>().replace('+', "%20");
        self.post(&format!("/v1/workers/{worker}/pause"), json!({}));
        self.send("POST", &format!("/v1/workers/{worker}/resume"), None);
        let made = self.post("/v1/tokens", json!({ "name": "me", "scope": "read", "seconds": 60 }));
        self.get("/v1/tokens");
        self.send("DELETE", &format!("/v1/tokens/{}", made["token"]["id"].as_str().unwrap()), None);
    }
}

#[test]
fn every_route_called_in_earnest_takes_and_answers_what_the_document_says() {
    let walk = Walk { house: House::new(), keys: std::cell::Cell::default() };
    walk.plans();
    let run = walk.work();
    walk.look(&run);
    walk.draft();
    walk.guide();
    walk.edit();
    let other = walk.start(&walk.plan("other"));
    walk.post(&format!("/v1/runs/{other}/pause"), json!({ "note": "later" }));
    walk.post(&format!("/v1/runs/{other}/cancel"), json!({ "note": "enough" }));
    walk.acknowledge();
    walk.house_keeping();
    let plans = walk.get("/v1/plans?limit=50");
    let known = plans["plans"].as_array().unwrap().iter().find(|plan| plan["plan"] == "other.md").unwrap();
    let again = json!({ "digest": known["digest"], "again": true });
    walk.post(&format!("/v1/plans/{}/run", known["id"]), again);

    let routes = ROUTES.iter().map(|route| format!("{} {}", route.verb.as_str(), route.path));
    let missing: BTreeSet<String> = routes.filter(|route| !walk.house.has_called(route)).collect();
    assert!(missing.is_empty(), "nobody called {missing:#?}");
}

#[test]
fn what_the_document_says_of_requests_is_what_the_routes_read() {
    let operation = |method: &str, path: &str| DOCUMENT["paths"][path][method].clone();
    let parameter = |operation: &Value, name: &str| {
        let all = operation["parameters"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let history = operation("get", "/v1/runs/{run}/history");
    assert_eq!(
        parameter(&history, "limit")["schema"],
        json!({ "type": "integer", "minimum": 1, "maximum": 1000 })
    );
    let ask = parameter(&operation("get", "/v1/approvals/{ask}"), "ask");
    assert_eq!((&ask["schema"]["type"], &ask["required"]), (&json!("integer"), &json!(true)));
    let claim = operation("post", "/v1/items/claim");
    assert_eq!(parameter(&claim, "Idempotency-Key")["required"], false);
    assert_eq!(parameter(&operation("post", "/v1/runs"), "Idempotency-Key")["required"], true);
    parameter(&operation("get", "/v1/events"), "Last-Event-ID");
    // A body that has nothing it must say can be left out.
    for (path, is_required) in
        [("/v1/runs", true), ("/v1/runs/{run}/cancel", false), ("/v1/items/claim", false)]
    {
        assert_eq!(operation("post", path)["requestBody"]["required"], is_required, "{path}");
    }
    let names = DOCUMENT["components"]["schemas"].as_object().unwrap().keys();
    let doubled: Vec<&String> = names.filter(|name| name.ends_with(char::is_numeric)).collect();
    assert!(doubled.is_empty(), "two types have one name: {doubled:?}");
}
