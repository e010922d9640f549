//! Decisions over the API, and tricks that don't lead to one (rows 68 and 84 to 92, A13, A14, A31, A35, A36, A46).

use serde_json::{Value, json};

use super::house::{Ask, House, Reply, plan};
use crate::fixture::Said;

/// Starts a run of a text; `start` says how.
fn start(house: &House, key: &str, name: &str, text: &str, config: &Value, start: &Value) -> Reply {
    house.fixture.write(name, text);
    let call = json!({
        "plan": { "workspace": house.fixture.path(""), "path": name, "text": text, "config": config },
        "start": start,
    });
    house.local("POST", "/v1/runs", &Ask { key: Some(key), body: Some(call.to_string()), ..Ask::default() })
}

fn answer(house: &House, key: &str, ask: &Value, word: &str) -> Reply {
    let body = json!({ "answer": { "answer": word }, "place": { "workspace": house.fixture.path("") } });
    let path = format!("/v1/approvals/{ask}/answer");
    house.local("POST", &path, &Ask { key: Some(key), body: Some(body.to_string()), ..Ask::default() })
}

fn waiting(house: &House, name: &str) -> (String, Value) {
    let waits = json!({ "waits_for_workers": true });
    let reply = start(house, name, &format!("{name}.md"), &plan(name, "hello"), &json!({}), &waits);
    let view = reply.json();
    assert_eq!(view["started"], "needs_approval", "{reply:?}");
    (view["run"].as_str().unwrap().to_owned(), view["ask"].clone())
}

#[test]
fn row_68_a_worker_s_token_may_not_decide_and_is_told_which_scope_may() {
    let house = House::new();
    let (_, ask) = waiting(&house, "hello");
    let worker = house.token("worker");
    for path in [format!("/v1/approvals/{ask}/answer"), "/v1/plans/approve".to_owned(), "/v1/runs".to_owned()]
    {
        let body = Some(r#"{"answer": {"answer": "approve"}}"#.to_owned());
        let reply = house.network(
            "POST",
            &path,
            &Ask { token: Some(&worker), key: Some("k"), body, ..Ask::default() },
        );
        assert_eq!((reply.status, reply.code().as_str()), (403, "scope"), "{path}");
        assert!(reply.body.contains("approve") && !reply.body.contains(&worker), "{path}: {reply:?}");
    }
    assert_eq!(
        house.local("GET", "/v1/approvals", &Ask::default()).json()["asks"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn row_76_an_answer_holds_what_it_needs_and_nothing_else() {
    let house = House::new();
    let answer = |key: &str, word: &str| {
        let body = Some(format!(r#"{{"answer": {word}}}"#));
        house.local("POST", "/v1/approvals/7/answer", &Ask { key: Some(key), body, ..Ask::default() })
    };
    for (at, (word, words)) in [
        (r#"{"answer": "raise", "by": {"usd": 1, "tokns": 5}}"#, "unknown field `tokns`"),
        (r#"{"answer": "raise", "by": {"usd": 1}, "bogus": [1]}"#, "unknown field `bogus`"),
        (r#"{"answer": "raise", "by": {"usd": 1, "usd": 2}}"#, "duplicate field `usd`"),
        (r#"{"answer": "raise", "by": {"usd": -1}}"#, "`usd` is from 0 to 1000000000, found -1"),
        (
            r#"{"answer": "raise", "by": {"tokens": 18446744073709551615}}"#,
            "`tokens` is from 0 to 1000000000000000, found",
        ),
        (r#"{"answer": "raise", "by": {"seconds": 1e10}}"#, "`seconds` is from 0 to 3153600000"),
        (r#"{"answer": "approve", "note": "x"}"#, "unknown field `note`"),
        (r#"{"answer": "retry", "role": "x"}"#, "unknown field `role`"),
        (r#"{"answer": "reassign", "role": "x", "by": "y"}"#, "unknown field `by`"),
        (r#"{"answer": "pass"}"#, "unknown variant `pass`"),
        (r#"{}"#, "missing field `answer`"),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = answer(&format!("wrong-{at}"), word);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{word}: {reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(words), "{word}: {reply:?}");
    }
    let raise = r#"{"answer": "raise", "by": {"usd": 1.5, "tokens": 5, "seconds": 60}}"#;
    for (key, word) in [("raise", raise), ("retry", r#"{"answer": "retry"}"#)] {
        assert_eq!(answer(key, word).code(), "not_found", "{word}");
    }
}

#[test]
fn a_plan_is_not_approved_under_a_name_that_nobody_sees() {
    let house = House::new();
    for (path, words) in [
        ("", "`path` is empty"),
        ("a\u{202e}.md", "nobody sees"),
        ("a\nb.md", "nobody sees"),
        ("\u{200b}c", "nobody sees"),
    ] {
        let plan =
            json!({ "workspace": house.fixture.path(""), "path": path, "text": plan("hello", "hello") });
        for (route, call) in [("verify", plan.clone()), ("approve", json!({ "plan": plan }))] {
            let key = format!("{route}-{}", path.len());
            let ask = Ask { key: Some(&key), body: Some(call.to_string()), ..Ask::default() };
            let reply = house.local("POST", &format!("/v1/plans/{route}"), &ask);
            assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{path:?}: {reply:?}");
            assert!(reply.body.contains(words) && !reply.body.contains('\u{202e}'), "{path:?}: {reply:?}");
        }
    }
}

#[test]
fn row_84_a_decision_about_what_is_over_or_changed_is_a_conflict_that_says_so() {
    let house = House::new();
    let (run, ask) = waiting(&house, "hello");
    assert_eq!(answer(&house, "reject", &ask, "reject").status, 200);
    let late = answer(&house, "late", &ask, "approve");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    assert_eq!(house.fixture.event_names(&run).iter().filter(|event| *event == "human.answered").count(), 1);
    // The approval is of one text: another one is shown beside it and does not run.
    let waits = json!({ "waits_for_workers": true, "approve": {} });
    let (first, other) = (plan("two", "hello"), plan("two", "other"));
    assert_eq!(start(&house, "two", "two.md", &first, &json!({}), &waits).json()["started"], "ready");
    let changed =
        start(&house, "other", "two.md", &other, &json!({}), &json!({ "waits_for_workers": true })).json();
    assert_eq!(changed["started"], "changed_since_approval", "{changed}");
    assert!(changed["approved_text"].as_str().unwrap().contains("grep -qx hello out.txt"), "{changed}");
    // A draft with errors is nobody's to approve.
    let broken = plan("three", "hello").replace("**target:** coder\n", "");
    let refused = start(&house, "three", "three.md", &broken, &json!({}), &waits);
    assert_eq!((refused.status, refused.code().as_str()), (422, "not_verified"), "{refused:?}");
}

#[test]
fn row_85_cancelled_twice_is_cancelled_once_and_what_is_done_stays_done() {
    let house = House::new();
    let cancel = |run: &str, key: &str| {
        house.local("POST", &format!("/v1/runs/{run}/cancel"), &Ask { key: Some(key), ..Ask::default() })
    };
    let first = house.run("hello", "hello");
    let (one, two) = (cancel(&first, "one"), cancel(&first, "two"));
    assert_eq!((one.status, &one.json()["repeated"]), (200, &Value::from(false)));
    assert_eq!((two.status, &two.json()["repeated"]), (200, &Value::from(true)));
    let done = house.run("done", "done");
    house.fixture.write("out.txt", "done\n");
    let claimed = house.claim();
    let report = Ask {
        token: claimed["token"].as_str(),
        body: Some(r#"{"text": "done"}"#.to_owned()),
        ..Ask::default()
    };
    let item = claimed["item"].as_str().unwrap();
    assert_eq!(house.network("POST", &format!("/v1/items/{item}/complete"), &report).status, 200);
    house.until(&done, "done");
    let late = cancel(&done, "three");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    assert_eq!(house.until(&done, "done")["state"], "done");
}

#[test]
fn a_run_that_is_not_there_is_named_as_it_was_typed_wherever_the_daemon_was_started() {
    let house = House::new();
    let other = house.fixture.path("../other");
    std::fs::create_dir(&other).unwrap();
    let said = house.fixture.planctl(&["--workspace", other.to_str().unwrap(), "plan", "cancel", "nope-1"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("could not find run `nope-1`"), "{said:?}");
}

#[test]
fn row_86_a_claim_is_for_one_item_and_its_numbers_have_ranges() {
    let house = House::new();
    house.run("hello", "hello");
    for (body, words) in [
        (r#"{"roles": ["coder"], "items": 1001}"#, "unknown field `items`"),
        (r#"{"roles": ["coder"], "limit": 1001}"#, "unknown field `limit`"),
        (r#"{"roles": ["coder"], "capacity": 1001}"#, "from 1 to 1000"),
        (r#"{"roles": ["coder"], "capacity": 0}"#, "from 1 to 1000"),
        (r#"{"roles": ["coder"], "lease_seconds": 0}"#, "5 to 600"),
        (r#"{"roles": ["coder"], "lease_seconds": 864000}"#, "5 to 600"),
    ] {
        let ask = Ask { body: Some(body.to_owned()), ..Ask::default() };
        let reply = house.local("POST", "/v1/items/claim", &ask);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{body}: {reply:?}");
        assert!(reply.body.contains(words), "{body}: {reply:?}");
    }
    // A thousand and one roles are no claim either.
    let roles: Vec<String> = (0..1001).map(|number| format!("r{number}")).collect();
    let ask = Ask { body: Some(json!({ "roles": roles }).to_string()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &ask).code(), "bad_request");
    assert_eq!(house.claim()["attempt"], 1, "nothing was taken by any of them");
}

#[test]
fn row_87_other_hosts_and_origins_are_not_let_in() {
    let house = House::new();
    let token = house.token("read");
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "localhost.evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
    ] {
        let ask = Ask { token: Some(&token), headers: vec![(name, value)], ..Ask::default() };
        let reply = house.network("GET", "/v1/runs", &ask);
        assert_eq!((reply.status, reply.code().as_str()), (403, "origin"), "{name}: {value}");
    }
}

#[test]
fn a14_p18_an_answer_approves_the_configuration_that_the_ask_shows_and_no_other() {
    let house = House::new();
    let config = json!({
        "contracts": { "env": { "CI": "1" } },
        "roles": { "coder": { "agent": { "exec": "printf 'hello\\n' >out.txt" }, "effects": { "deny": ["network"] } } },
    });
    let reply = start(&house, "start", "hello.md", &plan("hello", "hello"), &config, &json!({}));
    let (run, ask) = (reply.json()["run"].as_str().unwrap().to_owned(), reply.json()["ask"].clone());
    let settings = || house.fixture.sql("select settings::text from runs");
    let before = settings();
    let path = format!("/v1/approvals/{ask}/answer");
    let workspace = house.fixture.path("");
    let answered = |key: &str, place: Value| {
        let body = json!({ "answer": { "answer": "approve" }, "place": place }).to_string();
        house.local("POST", &path, &Ask { key: Some(key), body: Some(body), ..Ask::default() })
    };
    let other = json!({ "workspace": workspace, "config": { "contracts": { "env": { "CI": "2" } } } });
    let refused = answered("other", other);
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"), "{refused:?}");
    assert!(refused.body.contains("(contracts.env.CI, roles.coder)"), "{refused:?}");
    assert_eq!(settings(), before);
    let approved = answered("shown", json!({}));
    assert_eq!(approved.status, 200, "{approved:?}");
    assert_eq!(settings(), before, "what was shown is what runs");
    house.until(&run, "done");
    let sealed = house.fixture.sql("select config->'contracts'->'env'->>'CI' from approvals");
    assert!(sealed.starts_with("hmac-sha256:") && sealed.len() == 76, "{sealed}");
    // It holds for what it was given for: the same plan under the same configuration needs no other.
    let again = json!({ "again": true });
    let again = start(&house, "again", "hello.md", &plan("hello", "hello"), &config, &again);
    assert_eq!(again.json()["started"], "ready", "{again:?}");
}

#[test]
fn row_92_over_a_cap_further_runs_are_refused_for_now_and_what_is_there_goes_on() {
    let house = House::with_words(&["--max-open-runs", "2"]);
    let one = house.run("one", "one");
    let (two, ask) = waiting(&house, "two");
    let over = start(
        &house,
        "three",
        "three.md",
        &plan("three", "x"),
        &json!({}),
        &json!({ "waits_for_workers": true }),
    );
    assert_eq!((over.status, over.code().as_str()), (429, "too_many"), "{over:?}");
    assert!(over.headers.contains("retry-after: "), "{over:?}");
    assert!(over.body.contains("2 runs are open, and 2 may be at once"), "{over:?}");
    // An open request is resumed, approved and done as ever.
    assert_eq!(answer(&house, "approve", &ask, "approve").status, 200);
    let cancelled =
        house.local("POST", &format!("/v1/runs/{one}/cancel"), &Ask { key: Some("c"), ..Ask::default() });
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let again = start(
        &house,
        "three-again",
        "three.md",
        &plan("three", "x"),
        &json!({}),
        &json!({ "waits_for_workers": true }),
    );
    assert_eq!(again.json()["started"], "needs_approval", "{again:?}");
    assert!(house.fixture.planctl(&["plan", "status", &two]).out.contains("two"));
}

#[test]
fn row_92_too_many_asks_hold_back_further_runs() {
    let house = House::with_words(&["--max-open-asks", "1"]);
    let (_, ask) = waiting(&house, "one");
    let further = || {
        start(&house, "two", "two.md", &plan("two", "x"), &json!({}), &json!({ "waits_for_workers": true }))
    };
    let over = further();
    assert_eq!((over.status, over.code().as_str()), (429, "too_many"), "{over:?}");
    assert_eq!(over.json()["next"], json!({ "do": "show_asks" }), "{over:?}");
    assert_eq!(answer(&house, "reject", &ask, "reject").status, 200);
    assert_eq!(further().status, 200, "a refusal for now is not kept under its key");
}

#[test]
fn a13_values_that_look_like_code_reach_workers_and_contracts_as_values() {
    let house = House::new();
    let title = "Write `touch evil` \"; touch evil; ' $(touch evil) {{ 1 + 1 }} ${IFS}";
    let text = plan("hello", "hello")
        .replace("Write the word", title)
        .replace("grep -qx hello out.txt", "grep -qxF '{{ step.title }} ${title}' out.txt");
    let worker =
        "printf '%s' \"$PLANCTL_STEP_TITLE\" >title.txt; printf '%s\\n' '{{ step.title }} ${title}' >out.txt";
    let begun = json!({ "approve": {}, "worker": { "exec": worker } });
    let reply = start(&house, "start", "hello.md", &text, &json!({}), &begun);
    assert_eq!(reply.json()["started"], "ready", "{reply:?}");
    house.until(reply.json()["run"].as_str().unwrap(), "done");
    assert_eq!(house.fixture.read("title.txt"), title);
    assert!(!house.fixture.path("evil").exists());
}

#[test]
fn a14_what_was_approved_can_not_be_changed_by_what_is_sent_with_a_start() {
    let house = House::new();
    let text = plan("hello", "hello");
    let plan_of = json!({ "workspace": house.fixture.path(""), "path": "hello.md", "text": text });
    let calls = [
        json!({ "plan": plan_of, "target": "root" }),
        json!({ "plan": plan_of, "start": { "timeout": 1 } }),
        json!({ "plan": plan_of, "start": { "env": { "BASH_ENV": "x" } } }),
        json!({ "plan": { "workspace": house.fixture.path(""), "path": "hello.md", "text": text, "contract": "true" } }),
        json!({ "plan": { "workspace": house.fixture.path(""), "path": "hello.md", "text": text,
                          "config": { "contracts": { "shell": "sh" } } } }),
    ];
    for (number, call) in calls.iter().enumerate() {
        let key = format!("override-{number}");
        let ask = Ask { key: Some(&key), body: Some(call.to_string()), ..Ask::default() };
        let reply = house.local("POST", "/v1/runs", &ask);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{call}: {reply:?}");
        assert!(reply.body.contains("unknown field"), "{call}: {reply:?}");
    }
    // The approval is of one configuration: under any other one a person is asked again.
    let approved = json!({ "plan": plan_of });
    let ask = Ask { key: Some("approve"), body: Some(approved.to_string()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/plans/approve", &ask).status, 200);
    let waits = json!({ "waits_for_workers": true });
    for (key, config) in [
        ("env", json!({ "contracts": { "env": { "PATH_TO": "evil" } } })),
        ("path", json!({ "contracts": { "path": ["/tmp"] } })),
        ("agent", json!({ "roles": { "coder": { "agent": { "exec": "touch evil" } } } })),
    ] {
        let reply = start(&house, key, "hello.md", &text, &config, &waits);
        assert_eq!(reply.status, 200, "{config}: {reply:?}");
        assert_eq!(reply.json()["started"], "needs_approval", "{config}: {reply:?}");
        let ask = reply.json()["ask"].clone();
        assert_eq!(answer(&house, &format!("no-{key}"), &ask, "reject").status, 200);
    }
    assert!(!house.fixture.path("evil").exists());
}

#[test]
fn a31_a46_control_characters_of_strangers_reach_neither_terminals_nor_logs() {
    let house = House::new();
    let evil =
        "ok\u{1b}[2K\rAPPROVED\u{9b}31m\u{7f}\u{202e}\u{200b}\n2026-11-22T00:00:00Z ERROR forged: line";
    let quoted = serde_json::to_string(evil).unwrap();
    house.run("hello", "hello");
    let claimed = house.claim();
    let (item, token) = (claimed["item"].as_str().unwrap().to_owned(), claimed["token"].as_str());
    for (verb, body) in
        [("log", format!(r#"{{"text": {quoted}}}"#)), ("ask", format!(r#"{{"question": {quoted}}}"#))]
    {
        let ask = Ask { token, body: Some(body), ..Ask::default() };
        let reply = house.local("POST", &format!("/v1/items/{item}/{verb}"), &ask);
        assert!([200, 204].contains(&reply.status), "{verb}: {reply:?}");
    }
    for (path, body) in [
        ("/v1/topics/news", format!(r#"{{"text": {quoted}}}"#)),
        (
            "/v1/items/claim",
            format!(r#"{{"roles": ["x"], "worker": "w", "agent": {quoted}, "host": {quoted}}}"#),
        ),
    ] {
        drop(house.local("POST", path, &Ask { key: Some(path), body: Some(body), ..Ask::default() }));
    }
    // Addresses, names of things that are not there, and headers are as much a stranger's.
    let odd: String = evil.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for path in [format!("/v1/runs/{odd}"), format!("/v1/{odd}"), format!("/v1/approvals?run={odd}")] {
        let reply = house.local(
            "GET",
            &path,
            &Ask { headers: vec![("user-agent", "x\t\u{9b}31m")], ..Ask::default() },
        );
        assert!(!has_control(&reply.body), "{path}: {reply:?}");
    }
    let shown: Vec<(String, Said)> = [
        &["plan", "status"][..],
        &["plan", "logs", "@last"],
        &["plan", "status", "@last", "--salute"],
        &["plan", "watch", "@last", "--no-wait"],
        &["why", "@last", "1"],
        &["approvals"],
        &["approvals", "show", "2"],
        &["events", "--run", "@last"],
        &["topic", "show", "news"],
        &["worker", "ls"],
        &["daemon", "logs"],
        &["daemon", "status"],
    ]
    .into_iter()
    .map(|words| (words.join(" "), house.fixture.planctl(words)))
    .collect();
    for (words, said) in &shown {
        assert!(!has_control(&said.out) && !has_control(&said.err), "{words}: {said:?}");
    }
    assert!(shown.iter().any(|(_, said)| said.out.contains("APPROVED")), "it is shown, as text: {shown:?}");
    let log = std::fs::read_to_string(house.fixture.state().join("daemon.log")).unwrap();
    assert!(!has_control(&log) && !log.lines().any(|line| line.contains("ERROR forged")), "{log}");
}

/// Says whether a text holds what acts on a terminal: controls but line ends and tabs, and what turns or hides text.
fn has_control(text: &str) -> bool {
    text.chars().any(|c| {
        let acts = c.is_control() && c != '\n' && c != '\t';
        acts || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

#[test]
fn a35_a_decision_counts_once_however_often_and_whenever_it_is_sent() {
    let house = House::new();
    let (run, ask) = waiting(&house, "hello");
    let first = answer(&house, "first", &ask, "approve");
    assert_eq!(first.status, 200, "{first:?}");
    let decided = |house: &House| {
        house.fixture.event_names(&run).iter().filter(|event| *event == "human.answered").count()
    };
    let replayed = |state: &str| {
        let again = answer(&house, "first", &ask, "approve");
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "{state}: the same answer under the same key"
        );
        for word in ["approve", "reject", "abort"] {
            let late = answer(&house, &format!("{state}-{word}"), &ask, word);
            assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{state} {word}: {late:?}");
        }
        assert_eq!(decided(&house), 1, "{state}");
    };
    replayed("approved");
    let claimed = house.claim();
    replayed("working");
    house.fixture.write("out.txt", "hello\n");
    let item = claimed["item"].as_str().unwrap();
    let report =
        Ask { token: claimed["token"].as_str(), body: Some(r#"{"text": "x"}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.network("POST", &format!("/v1/items/{item}/complete"), &report).status, 200);
    house.until(&run, "done");
    replayed("done");
    // Nor does it count for another ask, of another plan or of a later run of the same one.
    let (_, other) = waiting(&house, "other");
    assert_ne!(other, ask);
    replayed("another");
    let asks = house.local("GET", "/v1/approvals", &Ask::default()).json();
    assert_eq!(asks["asks"][0]["id"], other, "{asks}");
}

#[test]
fn a36_of_an_approval_and_a_cancellation_at_once_the_cancellation_holds() {
    let house = House::new();
    for round in 0..5 {
        let (run, ask) = waiting(&house, &format!("race{round}"));
        let (approvals, cancels) = std::thread::scope(|scope| {
            let approve = (0..3)
                .map(|number| (&house, &ask, format!("a{round}-{number}")))
                .map(|(house, ask, key)| scope.spawn(move || answer(house, &key, ask, "approve")))
                .collect::<Vec<_>>();
            let cancel = (0..3)
                .map(|number| (&house, format!("/v1/runs/{run}/cancel"), format!("c{round}-{number}")))
                .map(|(house, path, key)| {
                    scope
                        .spawn(move || house.local("POST", &path, &Ask { key: Some(&key), ..Ask::default() }))
                })
                .collect::<Vec<_>>();
            let ends = |threads: Vec<std::thread::ScopedJoinHandle<'_, Reply>>| {
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            };
            (ends(approve), ends(cancel))
        });
        let approved = approvals.iter().filter(|reply| reply.status == 200).count();
        assert!(approved <= 1, "one decision per ask: {approvals:?}");
        assert!(approvals.iter().all(|reply| [200, 409].contains(&reply.status)), "{approvals:?}");
        assert!(cancels.iter().all(|reply| reply.status == 200), "{cancels:?}");
        let fresh = cancels.iter().filter(|reply| reply.json()["repeated"] == false).count();
        assert_eq!(fresh, 1, "{cancels:?}");
        house.until(&run, "cancelled");
        let claim = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
        assert_eq!(house.local("POST", "/v1/items/claim", &claim).status, 204, "nothing of it is handed out");
    }
}

#[test]
fn who_only_looks_at_a_workspace_leaves_no_trace_of_it() {
    let house = House::new();
    house.run("hello", "hello");
    let folder = house.fixture.path("never-seen");
    std::fs::create_dir(&folder).unwrap();
    let count = || house.fixture.sql("select count(*) from workspaces");
    let before = count();
    for path in ["/v1/runs", "/v1/approvals", "/v1/runs/hello.md", "/v1/events?run=hello.md"] {
        let mark = if path.contains('?') { '&' } else { '?' };
        let reply =
            house.local("GET", &format!("{path}{mark}workspace={}", folder.display()), &Ask::default());
        match path {
            "/v1/runs" => assert_eq!(reply.json()["runs"], json!([]), "{reply:?}"),
            "/v1/approvals" => assert_eq!(reply.json()["asks"], json!([]), "{reply:?}"),
            _ => assert_eq!(reply.code(), "not_found", "{path}: another workspace's runs are not its own"),
        }
    }
    assert_eq!(count(), before);
}

#[test]
fn a_tampered_file_is_allowed_or_restored_over_http_and_only_one_that_the_ask_names() {
    let house = House::new();
    // The worker changes its judge once, and does what was asked.
    let worker = "[ -e turns ] || echo '# more' >> check.sh; echo x >> turns; touch fixed";
    let begun = json!({ "approve": {}, "worker": { "exec": worker } });
    let decide = |key: &str, ask: &Value, answer: Value| {
        let body = json!({ "answer": answer, "place": { "workspace": house.fixture.path("") } });
        let path = format!("/v1/approvals/{ask}/answer");
        house.local("POST", &path, &Ask { key: Some(key), body: Some(body.to_string()), ..Ask::default() })
    };
    for (name, answer, turns) in [
        ("kept", json!({ "answer": "allow", "files": ["check.sh"] }), "x\n"),
        ("whole", json!({ "answer": "allow" }), "x\n"),
        ("back", json!({ "answer": "restore" }), "x\nx\n"),
    ] {
        for file in ["turns", "fixed"] {
            std::fs::remove_file(house.fixture.path(file)).ok();
        }
        house.fixture.write("check.sh", "test -e fixed\n");
        let text = crate::fixture::plan(name, "5 minutes", &[("Mend", "bash check.sh", "escalate")]);
        let reply = start(&house, name, &format!("{name}.md"), &text, &json!({}), &begun);
        assert_eq!(reply.json()["started"], "ready", "{reply:?}");
        let run = format!("{name}-1");
        let view = house.until(&run, "waiting");
        let ask = view["waiting_on"]["id"].clone();
        let page = house.local("GET", &format!("/v1/approvals/{ask}"), &Ask::default()).json();
        assert_eq!(page["failure"]["tampered"][0]["path"], "check.sh", "{page}");
        let wrong = decide(&format!("{name}-w"), &ask, json!({ "answer": "allow", "files": ["other.sh"] }));
        assert_eq!(wrong.status, 409, "{wrong:?}");
        let said = decide(&format!("{name}-a"), &ask, answer.clone());
        assert_eq!(said.status, 200, "{said:?}");
        assert_eq!(decide(&format!("{name}-a"), &ask, answer.clone()).body, said.body, "the stored answer");
        house.until(&run, "done");
        assert_eq!(house.fixture.read("turns"), turns, "{name}");
        let is_restored = answer["answer"] == "restore";
        assert_eq!(house.fixture.read("check.sh") == "test -e fixed\n", is_restored, "{name}");
    }
}

#[test]
fn p_78_a_policy_decides_in_its_own_name_and_nobody_else_does() {
    let house = House::new();
    let text = plan("hello", "hello")
        .replace("**Context:** a test", "**Context:** a test\n\n**Budget:** 10k tokens");
    let policy =
        json!({ "plans": ["*.md"], "budget": { "tokens": 10_000, "micro_usd": null, "time": null } });
    let roles = json!({ "coder": { "agent": { "exec": "true" } } });
    let config = json!({ "approval": { "small": policy }, "roles": roles });
    let waits = json!({ "waits_for_workers": true });
    let reply = start(&house, "policy", "hello.md", &text, &config, &waits);
    assert_eq!(reply.json()["started"], "ready", "{reply:?}");
    let run = reply.json()["run"].as_str().unwrap().to_owned();
    let status = house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json();
    assert_eq!(status["approved_by"], "policy:small", "{status}");

    let headers = vec![("planctl-actor", "policy:small")];
    let reply = house.local("GET", "/v1/approvals", &Ask { headers, ..Ask::default() });
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{reply:?}");
    // Beyond its bounds a person is asked, and told why.
    let reply = start(&house, "beyond", "more.md", &text.replace("10k", "11k"), &config, &waits);
    assert_eq!(reply.json()["started"], "needs_approval", "{reply:?}");
    assert!(reply.json()["no_policy"][0].as_str().unwrap().contains("11k tokens"), "{reply:?}");
}
