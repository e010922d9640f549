//! Attacks on the API (PROMISES 3.4).

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::house::{Ask, House};

#[test]
fn a37_names_that_are_bent_to_this_address_are_not_let_in() {
    let house = House::new();
    let token = house.token("read");
    let port = house.port.rsplit(':').next().unwrap().to_owned();
    for host in [
        "evil.example",
        "localhost.evil.example",
        "evil.example:7420",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "[::]",
        "169.254.169.254",
        "10.0.0.1",
        "localhost@evil.example",
        "planctl",
        "",
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f000001",
        "localhost.",
        "xn--lcalhost-b1a",
        "evil.example#localhost",
        "localhost:evil",
        "localhost:",
        "localhost:7420:7420",
        "127.0.0.1:99999",
        "[::1]evil",
        "[::1",
        "[localhost]:evil",
    ] {
        let headers = vec![("host", host)];
        let reply = house.network("GET", "/v1/runs", &Ask { token: Some(&token), headers, ..Ask::default() });
        assert!([400, 403].contains(&reply.status), "{host:?}: {reply:?}");
    }
    for host in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "localhost".to_owned(),
        "LOCALHOST".to_owned(),
        format!("LocalHost:{port}"),
    ] {
        let headers = vec![("host", host.as_str())];
        let reply = house.network("GET", "/v1/runs", &Ask { token: Some(&token), headers, ..Ask::default() });
        assert_eq!(reply.status, 200, "{host:?}: {reply:?}");
    }
}

#[test]
fn a37_a_request_has_one_host() {
    let house = House::new();
    let token = house.token("read");
    let headers = vec![("host", "localhost"), ("host", "evil.example")];
    let reply = house.network("GET", "/v1/runs", &Ask { token: Some(&token), headers, ..Ask::default() });
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{reply:?}");
}

#[test]
fn a38_a39_pages_of_other_sites_are_not_let_in() {
    let house = House::new();
    let token = house.token("admin");
    for origin in [
        "null",
        "http://evil.example",
        "https://evil.example",
        "http://localhost.evil.example",
        "file://",
        "http://localhost:1",
        "http://127.0.0.1",
        "chrome-extension://abc",
    ] {
        for (method, path) in [("GET", "/v1/events?run=x"), ("POST", "/v1/tokens"), ("GET", "/v1/runs")] {
            let headers = vec![("origin", origin)];
            let ask = Ask { token: Some(&token), key: Some("k"), headers, ..Ask::default() };
            let reply = house.network(method, path, &ask);
            assert_eq!((reply.status, reply.code().as_str()), (403, "origin"), "{origin} {path}");
        }
    }
    // A form can send no token, no JSON, and no method that a header changes.
    for headers in [
        vec![("content-type", "text/plain")],
        vec![("content-type", "application/x-www-form-urlencoded")],
        vec![("content-type", "multipart/form-data; boundary=x")],
        vec![("x-http-method-override", "DELETE")],
        vec![("sec-fetch-site", "cross-site")],
    ] {
        let body = Some(r#"{"name": "x", "scope": "admin"}"#.to_owned());
        let reply =
            house.network("POST", "/v1/tokens", &Ask { headers: headers.clone(), body, ..Ask::default() });
        assert!([401, 403, 415].contains(&reply.status), "{headers:?}: {reply:?}");
    }
    let list = house.local("GET", "/v1/tokens", &Ask::default()).json();
    assert_eq!(list["tokens"].as_array().unwrap().len(), 1, "{list}");
    let reply = house.network("GET", "/v1/runs", &Ask { token: Some(&token), ..Ask::default() });
    assert!(!reply.headers.contains("access-control-"), "no CORS: {reply:?}");
    assert!(reply.headers.contains("x-content-type-options: nosniff"), "{reply:?}");
}

#[test]
fn a40_secrets_are_in_no_log_and_no_address() {
    let house = House::new();
    let token = house.token("read");
    let reply = house.network("GET", &format!("/v1/runs?token={token}"), &Ask::default());
    assert_eq!(reply.status, 401, "{reply:?}");
    house.network("GET", "/v1/runs", &Ask { token: Some(&token), ..Ask::default() });
    house.network("GET", "/v1/runs", &Ask { token: Some(&format!("{token}0")), ..Ask::default() });
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let lease = claimed["token"].as_str().unwrap();
    let log = std::fs::read_to_string(house.fixture.state().join("daemon.log")).unwrap();
    let events = house.fixture.planctl(&["events", "--run", &run, "--json"]).out;
    for (what, text) in [("log", log), ("events", events)] {
        for secret in [&token, lease] {
            let digits = secret.rsplit('_').next().unwrap();
            assert!(!text.contains(digits), "a secret is in the {what}");
        }
    }
    let socket = std::fs::metadata(house.fixture.state().join("daemon.sock")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a43_text_that_looks_like_sql_is_text() {
    let house = House::new();
    for payload in
        ["'; drop table runs; --", "\" or 1=1 --", "%27%3B", "$1", "\\'; select 1", "x') or ('1'='1"]
    {
        let quoted = serde_json::to_string(payload).unwrap();
        let body = format!(r#"{{"name": {quoted}, "scope": "worker", "roles": [{quoted}]}}"#);
        let made =
            house.local("POST", "/v1/tokens", &Ask { key: Some("x"), body: Some(body), ..Ask::default() });
        assert!([200, 409].contains(&made.status), "{payload}: {made:?}");
        let body = format!(r#"{{"roles": [{quoted}], "worker": {quoted}, "agent": {quoted}}}"#);
        let claimed = house.local("POST", "/v1/items/claim", &Ask { body: Some(body), ..Ask::default() });
        assert_eq!(claimed.status, 204, "{payload}: {claimed:?}");
        let part: String = payload.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let reply = house.local("GET", &format!("/v1/runs/{part}"), &Ask::default());
        assert_eq!(reply.code(), "not_found", "{payload}");
    }
    assert_eq!(house.local("GET", "/v1/runs", &Ask::default()).status, 200);
}

#[test]
fn a34_an_agent_can_not_decide_by_any_door() {
    let house = House::new();
    // The token that it got hold of does not make it a person.
    let (admin, port) = (house.token("admin"), house.port.rsplit(':').next().unwrap().to_owned());
    // The agent is served by the daemon itself, so everything it starts hangs below the daemon's helper.
    let program = env!("CARGO_BIN_EXE_planctl");
    let state = house.fixture.state();
    let attempts = format!(
        "unset PLANCTL_ITEM_ID\nexport PLANCTL_STATE_DIR={state}\n\
         curl -s --unix-socket {state}/daemon.sock -X POST http://x/v1/tokens -H 'idempotency-key: k' \
           -H 'content-type: application/json' -d '{{\"name\":\"me\",\"scope\":\"admin\"}}' >curl.txt 2>&1\n\
         curl -s --unix-socket {state}/daemon.sock -X POST http://x/v1/approvals/1/answer -H 'idempotency-key: k' \
           -H 'content-type: application/json' -d '{{\"answer\":{{\"answer\":\"approve\"}}}}' >answer.txt 2>&1\n\
         curl -s -X POST http://127.0.0.1:{port}/v1/tokens -H 'authorization: Bearer {admin}' -H 'idempotency-key: p' \
           -H 'content-type: application/json' -d '{{\"name\":\"port\",\"scope\":\"admin\"}}' >port.txt 2>&1\n\
         body='{{\"name\":\"gone\",\"scope\":\"admin\"}}'\n\
         exec 3<>/dev/tcp/127.0.0.1/{port}\n\
         printf 'POST /v1/tokens HTTP/1.1\\r\\nhost: localhost\\r\\nauthorization: Bearer {admin}\\r\\n\
           idempotency-key: g\\r\\ncontent-type: application/json\\r\\ncontent-length: %s\\r\\n\\r\\n%s' \
           ${{#body}} \"$body\" >&3\n\
         exec 3>&-\n\
         {program} approvals approve 1 >cli.txt 2>&1\n\
         (setsid bash -c '{program} plan approve other.md >orphan.txt 2>&1; touch orphan.done' &)\n\
         for i in $(seq 600); do [ -e orphan.done ] && break; sleep 0.1; done\n\
         echo hello >out.txt\n",
        state = state.display(),
    );
    house.fixture.write("agent.sh", &attempts).write("other.md", &super::house::plan("other", "x"));
    house.fixture.write("hello.md", &super::house::plan("hello", "hello"));
    let said =
        house.fixture.planctl(&["plan", "run", "hello.md", "--approve", "-d", "--exec", "bash agent.sh"]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until(said.out.trim(), "done");
    for (file, words) in [
        ("curl.txt", "inside_worker"),
        ("answer.txt", "inside_worker"),
        ("port.txt", "inside_worker"),
        ("cli.txt", "worker's process"),
        ("orphan.txt", "worker's process"),
    ] {
        assert!(house.fixture.read(file).contains(words), "{file}: {}", house.fixture.read(file));
    }
    let tokens = house.local("GET", "/v1/tokens", &Ask::default()).json();
    let names: Vec<&Value> =
        tokens["tokens"].as_array().unwrap().iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["admin-test"], "the one that the agent was lent");
}
