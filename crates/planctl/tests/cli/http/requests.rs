//! Requests that are not what a route takes (rows 72 to 92), and repeated ones (P14).

use std::io::{Read, Write};
use std::net::TcpStream;

use planctl_api::Code;
use planctl_server::http::ROUTES;
use serde_json::Value;

use super::house::{Ask, House, Reply, plan, wait_until, written};

fn cancel(house: &House, ask: &Ask<'_>) -> Reply {
    house.local("POST", "/v1/runs/nothing-1/cancel", ask)
}

#[test]
fn rows_72_and_73_a_mutation_needs_a_fit_key() {
    let house = House::new();
    let reply = cancel(&house, &Ask::default());
    assert_eq!((reply.status, reply.code().as_str()), (400, "idempotency_key_missing"));
    assert!(reply.body.contains("Idempotency-Key"), "{reply:?}");
    for key in ["k".repeat(10_000), "a b".to_owned(), "é".to_owned(), String::new()] {
        let reply = cancel(&house, &Ask { key: Some(&key), ..Ask::default() });
        assert_eq!(reply.status, 400, "{reply:?}");
    }
    let reply = cancel(&house, &Ask { key: Some("fit"), ..Ask::default() });
    assert_eq!(reply.code(), "not_found");
}

#[test]
fn p14_a_repeated_mutation_gets_the_stored_answer_and_another_body_is_refused() {
    let house = House::new();
    let body = Some(r#"{"name": "one", "scope": "read"}"#.to_owned());
    let ask = Ask { key: Some("once"), body: body.clone(), ..Ask::default() };
    let first = house.local("POST", "/v1/tokens", &ask);
    let again = house.local("POST", "/v1/tokens", &ask);
    assert_eq!((first.status, again.code().as_str()), (200, "conflict"));
    assert!(again.body.contains("shown once"), "{again:?}");
    assert_eq!(again.json()["next"]["do"], "revoke_token", "{again:?}");
    assert_eq!(house.local("POST", "/v1/tokens", &ask).body, again.body);
    let note = Ask { key: Some("note"), body: Some(r#"{"text": "x"}"#.to_owned()), ..Ask::default() };
    let first = house.local("POST", "/v1/topics/t", &note);
    let again = house.local("POST", "/v1/topics/t", &note);
    assert_eq!((first.status, &first.body), (200, &again.body));
    let list = house.local("GET", "/v1/tokens", &Ask::default()).json();
    assert_eq!(list["tokens"].as_array().unwrap().len(), 1, "{list}");
    let other = Ask { body: Some(r#"{"name": "two", "scope": "read"}"#.to_owned()), ..ask };
    assert_eq!(house.local("POST", "/v1/tokens", &other).code(), "idempotency_mismatch");
    // Another principal's keys are its own.
    let admin = house.token("admin");
    let ask = Ask { key: Some("once"), token: Some(&admin), body, ..Ask::default() };
    assert_eq!(house.network("POST", "/v1/tokens", &ask).status, 200);
}

#[test]
fn rows_74_to_80_bodies_that_are_no_body() {
    let house = House::new();
    let deep = format!("{}{}", r#"{"roles": "#, "[".repeat(10_000));
    let long = |name: &str, count: usize| format!(r#"{{"roles": ["a"], "{name}": "{}"}}"#, "x".repeat(count));
    let (agent, host, version) = (long("agent", 201), long("host", 1 << 19), long("version", 201));
    let worker = long("worker", 101);
    let role = format!(r#"{{"roles": ["{}"]}}"#, "a".repeat(65));
    let names: Vec<String> = (0..101).map(|at| format!("role-{at}")).collect();
    let many = serde_json::json!({ "roles": names }).to_string();
    for (body, code, words) in [
        ("nonsense", "bad_request", "at byte"),
        (r#"{"roles": ["a"]"#, "bad_request", "at byte"),
        (r#"{"roles": ["a"]} {}"#, "bad_request", "trailing"),
        (r#"{"role": ["a"]}"#, "bad_request", "unknown field `role`"),
        (r#"{"roles": ["a"], "roles": ["b"]}"#, "bad_request", "duplicate field"),
        (r#"[["a"]]"#, "bad_request", "expected an object"),
        (r#"{"roles": null}"#, "bad_request", "invalid type: null"),
        (r#"{"roles": [1]}"#, "bad_request", "invalid type: integer"),
        (r#"{"roles": ["a"], "lease_seconds": 1e999}"#, "bad_request", "out of range"),
        (r#"{"roles": ["a"], "lease_seconds": -1}"#, "bad_request", "invalid value"),
        (r#"{"roles": ["a"], "capacity": 9223372036854775808}"#, "bad_request", "i32"),
        (r#"{"roles": ["a\u0000"]}"#, "nul_character", "U+0000"),
        (r#"{"roles": ["\ud800"]}"#, "bad_request", "at byte"),
        (deep.as_str(), "bad_request", "deeper than 64"),
        (r#"{"roles": []}"#, "bad_request", "roles"),
        (r#"{"roles": ["a"], "lease_seconds": 0}"#, "bad_request", "5 to 600"),
        (r#"{"roles": ["a"], "lease_seconds": 864000}"#, "bad_request", "5 to 600"),
        (agent.as_str(), "bad_request", "`agent` has at most 200 characters"),
        (host.as_str(), "bad_request", "`host` has at most 200 characters"),
        (version.as_str(), "bad_request", "`version` has at most 200 characters"),
        (worker.as_str(), "bad_request", "at most 100 characters"),
        (role.as_str(), "bad_request", "at most 64 characters"),
        (many.as_str(), "bad_request", "`roles` are at most 100"),
    ] {
        let ask = Ask { body: Some(body.to_owned()), ..Ask::default() };
        let reply = house.local("POST", "/v1/items/claim", &ask);
        let shown = &body[..body.len().min(80)];
        assert_eq!((reply.status, reply.code().as_str()), (400, code), "{shown}: {reply:?}");
        assert!(reply.body.contains(words), "{shown}: {reply:?}");
    }
}

#[test]
fn row_75_another_media_type_is_refused() {
    let house = House::new();
    for media in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonp"]
    {
        let headers = vec![("content-type", media)];
        let ask = Ask { headers, body: Some(r#"{"roles": ["a"]}"#.to_owned()), ..Ask::default() };
        let reply = house.local("POST", "/v1/items/claim", &ask);
        assert_eq!((reply.status, reply.code().as_str()), (415, "media_type"), "{media:?}");
    }
    let headers = vec![("content-type", "Application/JSON; charset=utf-8")];
    let ask = Ask { headers, body: Some(r#"{"roles": ["a"]}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &ask).status, 204);
}

#[test]
fn row_81_a_body_that_is_too_large_is_refused_early() {
    let house = House::new();
    // Only its head is sent: nobody waits for the 50 MiB.
    let head = format!(
        "POST /v1/items/claim HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        50 << 20
    );
    let mut request = head.into_bytes();
    request.extend(std::iter::repeat_n(b' ', 2 << 20));
    let reply = house.local_raw(&request);
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"));
    let mut chunked = b"POST /v1/items/claim HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..40 {
        chunked.extend(format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16)).into_bytes());
    }
    let reply = house.local_raw(&chunked);
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"));
}

#[test]
fn row_78_a_nul_in_the_path_is_refused_whoever_asks() {
    let house = House::new();
    let made_up = format!("planctl_item_1_{}", "1".repeat(64));
    for (token, method, path) in [
        (None, "GET", "/v1/runs/%00"),
        (None, "GET", "/v1/runs/a%00b/name"),
        (None, "GET", "/v1/runs/@last/why/%00"),
        (None, "GET", "/v1/topics/%00"),
        (None, "POST", "/v1/workers/%00/pause"),
        (None, "DELETE", "/v1/tokens/%00"),
        (Some(made_up.as_str()), "GET", "/v1/items/%00"),
        (Some(made_up.as_str()), "POST", "/v1/items/%00/heartbeat"),
    ] {
        let ask = Ask { token, key: Some("k"), ..Ask::default() };
        let reply = match token {
            Some(_) => house.network(method, path, &ask),
            None => house.local(method, path, &ask),
        };
        assert_eq!((reply.status, reply.code().as_str()), (400, "nul_character"), "{path}: {reply:?}");
    }
}

#[test]
fn rows_82_and_83_parts_of_the_address() {
    let house = House::new();
    assert_eq!(house.local("GET", "/v1/runs/nothing-1", &Ask::default()).code(), "not_found");
    assert_eq!(house.local("GET", "/v1/approvals/seven", &Ask::default()).code(), "bad_request");
    assert_eq!(house.local("GET", "/v1/approvals/7", &Ask::default()).code(), "not_found");
    for query in
        ["limit=-1", "limit=0", "limit=99999", "limit=abc", "cursor=broken", "cursor=asks:1", "frob=1"]
    {
        let reply = house.local("GET", &format!("/v1/runs?{query}"), &Ask::default());
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{query}");
    }
    let reply = house.local("GET", "/v1/runs?limit=1&limit=2", &Ask::default());
    assert!(reply.body.contains("given twice"), "{reply:?}");
    for path in ["relative/path", "/no/such/folder", "/etc/passwd"] {
        let reply = house.local("GET", &format!("/v1/runs?workspace={path}"), &Ask::default());
        assert_eq!(reply.code(), "bad_request", "{path}: {reply:?}");
    }
}

#[test]
fn lists_come_in_pages() {
    let house = House::new();
    for name in ["one", "two", "three"] {
        house.run(name, name);
    }
    let first = house.local("GET", "/v1/runs?limit=2", &Ask::default()).json();
    let next = first["next"].as_str().unwrap();
    let second = house.local("GET", &format!("/v1/runs?limit=2&cursor={next}"), &Ask::default()).json();
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&first), names(&second)),
        (vec!["three-1".into(), "two-1".into()], vec!["one-1".into()])
    );
    assert!(second.get("next").is_none(), "{second}");
}

#[test]
fn row_84_what_the_state_does_not_allow_is_a_conflict() {
    let house = House::new();
    let run = house.run("hello", "hello");
    house.fixture.write("hello.md", &plan("hello", "other"));
    let call = serde_json::json!({
        "plan": { "workspace": house.fixture.path(""), "path": "hello.md", "text": plan("hello", "other") },
    });
    let ask = Ask { key: Some("start"), body: Some(call.to_string()), ..Ask::default() };
    let reply = house.local("POST", "/v1/runs", &ask);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json()["started"], "changed_since_approval");
    // Row 85: cancelled twice is the same; cancelled when it is done is a conflict.
    let cancel = |key: &str| {
        let path = format!("/v1/runs/{run}/cancel");
        house.local("POST", &path, &Ask { key: Some(key), ..Ask::default() })
    };
    assert_eq!(cancel("one").json()["repeated"], false);
    assert_eq!(cancel("two").json()["repeated"], true);
}

#[test]
fn row_88_two_lengths_are_no_length() {
    let house = House::new();
    let request = b"POST /v1/items/claim HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
        content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/tokens HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let reply = house.local_raw(request);
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(reply.body.matches("HTTP/1.1").count(), 0, "one request, one answer: {reply:?}");
}

#[test]
fn row_89_odd_paths_lead_nowhere() {
    let house = House::new();
    for path in
        ["/api/../admin", "/v1/%2e%2e/tokens", "//v1/runs", "/v1/runs/../tokens", "/V1/RUNS", "/v1/runs/"]
    {
        let reply = house.local("GET", path, &Ask::default());
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}");
        assert!(!reply.headers.contains("location:"), "{path}");
    }
    let long = format!("/v1/runs/{}", "a".repeat(10_000));
    assert_eq!(house.local("GET", &long, &Ask::default()).status, 414);
}

#[test]
fn row_90_other_methods_are_named() {
    let house = House::new();
    for method in ["TRACE", "PUT", "PATCH", "OPTIONS", "DELETE"] {
        let reply = house.local(method, "/v1/runs", &Ask::default());
        assert_eq!(reply.status, 405, "{method}: {reply:?}");
        let allow = reply.headers.lines().find(|line| line.starts_with("allow:")).unwrap_or_default();
        assert!(allow.contains("get") && allow.contains("post"), "{method}: {reply:?}");
    }
}

#[test]
fn a44_a_slow_client_holds_nobody_up() {
    let house = House::new();
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..1000 {
        let mut stream = TcpStream::connect(&house.port).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").unwrap();
        slow.push(stream);
    }
    let reply = house.network("GET", "/healthz", &Ask::default());
    assert_eq!(reply.status, 200, "{reply:?}");
    // A head without end is refused and not kept.
    let mut endless = TcpStream::connect(&house.port).unwrap();
    endless.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    let mut said = Vec::new();
    let line = format!("x-{}: y\r\n", "a".repeat(1000));
    for _ in 0..64 {
        if endless.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    // The answer is read as far as the closed connection lets it.
    let read = endless.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 431") || read.is_err(), "{said}");
}

#[test]
fn the_openapi_document_tells_of_every_route_and_every_problem_has_its_code() {
    let house = House::new();
    let document = house.network("GET", "/v1/openapi.json", &Ask::default()).json();
    assert_eq!(document["openapi"], "3.1.0");
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.verb.as_str().to_lowercase()];
        assert_eq!(operation["x-planctl-scope"], route.needs.as_str(), "{}", route.path);
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let problems = house.network("GET", "/v1/problems", &Ask::default()).json();
    assert_eq!(problems.as_array().unwrap().len(), Code::ALL.len());
}

#[test]
fn health_says_that_the_daemon_is_well() {
    let house = House::new();
    let health = house.network("GET", "/healthz", &Ask::default());
    assert_eq!(health.status, 200, "{health:?}");
    let ready = house.network("GET", "/readyz", &Ask::default());
    assert_eq!(ready.json()["state"], "running");
}

#[test]
fn health_tells_nobody_in_particular_what_went_wrong_last() {
    let house = House::new();
    house.run("hello", "hello");
    house.fixture.sql("update runs set head = '{}' where name = 'hello-1'");
    let own = || house.local("GET", "/healthz", &Ask::default()).json();
    wait_until(|| {
        own()["last_error"]["what"].as_str().map(|what| assert!(what.contains("of run"), "{what}"))
    });
    let token = house.token("read");
    let known = house.network("GET", "/healthz", &Ask { token: Some(&token), ..Ask::default() }).json();
    assert!(known["last_error"]["what"].is_string(), "{known}");
    for path in ["/healthz", "/readyz"] {
        let health = house.network("GET", path, &Ask::default());
        assert_eq!(health.status, 200, "{health:?}");
        assert!(health.json().get("last_error").is_none_or(Value::is_null), "{health:?}");
        assert!(!health.body.contains("hello"), "{health:?}");
    }
}

#[test]
fn events_are_streamed_and_taken_up_where_they_broke_off() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    house.fixture.write("out.txt", "hello\n");
    let item = claimed["item"].as_str().unwrap();
    let token = claimed["token"].as_str().unwrap();
    let done = Ask { token: Some(token), body: Some(r#"{"text": "done"}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", &format!("/v1/items/{item}/complete"), &done).status, 200);
    house.until(&run, "done");
    // A run that is over has an end, and its stream too.
    let all = house.local("GET", &format!("/v1/events?run={run}"), &Ask::default());
    let ids = |reply: &Reply| -> Vec<u64> {
        reply.body.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
    };
    let seen = ids(&all);
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "{}", all.body);
    assert!(all.body.contains("event: plan_completed"), "{}", all.body);
    let headers = vec![("last-event-id", "3")];
    let rest = house.local("GET", &format!("/v1/events?run={run}"), &Ask { headers, ..Ask::default() });
    assert_eq!(ids(&rest), seen[3..], "{}", rest.body);
    // A browser connects again until it is told that nothing comes any more.
    let last = seen.len().to_string();
    let headers = vec![("last-event-id", last.as_str())];
    let over = house.local("GET", &format!("/v1/events?run={run}"), &Ask { headers, ..Ask::default() });
    assert_eq!((over.status, over.body.as_str()), (204, ""), "{over:?}");
    let headers = vec![("last-event-id", "three")];
    let reply = house.local("GET", &format!("/v1/events?run={run}"), &Ask { headers, ..Ask::default() });
    assert_eq!(reply.code(), "bad_request");
}

#[test]
fn a41_a_stream_of_events_ends_with_its_token() {
    let house = House::new();
    let secret = house.token("read");
    let run = house.run("hello", "hello");
    let path = format!("/v1/events?run={run}");
    std::thread::scope(|scope| {
        let stream =
            scope.spawn(|| house.network("GET", &path, &Ask { token: Some(&secret), ..Ask::default() }));
        // Somebody who looked is a token that was used.
        let is_used = || {
            let list = house.local("GET", "/v1/tokens", &Ask::default()).json();
            list["tokens"][0]["last_used_at"].is_string()
        };
        while !is_used() {
            assert!(!stream.is_finished(), "the run goes on");
        }
        house.revoke("read");
        let told = stream.join().unwrap();
        assert_eq!(told.status, 200, "{told:?}");
        assert!(told.body.contains("id: 1"), "{told:?}");
    });
    assert_ne!(house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json()["state"], "done");
}

#[test]
fn history_waits_for_its_next_line_and_answers_as_soon_as_it_is_there() {
    let house = House::new();
    let run = house.run("hello", "hello");
    // From here on the run stands until its worker says something.
    let claimed = house.claim();
    let get = |query: &str| house.local("GET", &format!("/v1/runs/{run}/history?{query}"), &Ask::default());
    let lines = |reply: &Reply| reply.json().as_array().unwrap().clone();
    let newest = lines(&get("newest=1"))[0]["seq"].as_u64().unwrap();
    assert_eq!(lines(&get("since=0&limit=1&wait=60")).len(), 1, "what is there is answered at once");
    assert_eq!(lines(&get(&format!("since={newest}&wait=1"))).len(), 0, "the time is over");
    let released = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| get(&format!("since={newest}&wait=60")));
        let path = format!("/v1/items/{}/release", claimed["item"].as_str().unwrap());
        let released =
            house.network("POST", &path, &Ask { token: claimed["token"].as_str(), ..Ask::default() });
        let next = lines(&waiting.join().unwrap());
        assert_eq!(next[0]["seq"], newest + 1, "{next:?}");
        released
    });
    assert_eq!(released.status, 200, "{released:?}");
    let reply = get("newest=1&wait=1");
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{reply:?}");
}

#[test]
fn requests_can_share_a_connection() {
    let house = House::new();
    let one = written("GET", "/healthz", "localhost", &Ask::default());
    let one = String::from_utf8(one).unwrap();
    let two = one.replace("connection: close\r\n", "") + &one;
    let reply = house.local_raw(two.as_bytes());
    assert_eq!(reply.body.matches("HTTP/1.1 200").count(), 1, "{reply:?}");
}
