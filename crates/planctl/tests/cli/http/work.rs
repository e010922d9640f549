//! Items over HTTP: claimed, minded, reported, refused (rows 68 to 71; P4, P5, P6).

use std::time::{Duration, Instant};

use serde_json::Value;

use super::house::{Ask, House, Reply};

fn at<'a>(claimed: &'a Value, token: &'a str) -> (String, &'a str) {
    (claimed["item"].as_str().unwrap().to_owned(), token)
}

pub(super) fn say(house: &House, claimed: &Value, verb: &str, body: &str) -> Reply {
    let (item, token) = at(claimed, claimed["token"].as_str().unwrap());
    let ask = Ask { token: Some(token), body: Some(body.to_owned()), ..Ask::default() };
    house.network("POST", &format!("/v1/items/{item}/{verb}"), &ask)
}

#[test]
fn a_worker_with_a_token_does_a_step_and_the_contract_passes_it() {
    let house = House::new();
    let worker = house.token("worker");
    let run = house.run("hello", "hello");
    let ask =
        Ask { token: Some(&worker), body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
    let claimed = house.network("POST", "/v1/items/claim?wait=30", &ask).json();
    assert_eq!((&claimed["role"], &claimed["attempt"]), (&Value::from("coder"), &Value::from(1)));
    assert!(claimed["prompt"].as_str().unwrap().contains("Write hello"), "{claimed}");
    assert!(!claimed["prompt"].as_str().unwrap().contains("grep -qx"), "the first prompt names no contract");

    let beat = say(&house, &claimed, "heartbeat", "{}");
    assert_eq!((beat.status, &beat.json()["cancel"]), (200, &Value::from(false)));
    assert_eq!(say(&house, &claimed, "log", r#"{"text": "at it\n"}"#).status, 204);
    assert_eq!(
        say(&house, &claimed, "usage", r#"{"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5}"#)
            .status,
        204
    );
    let workers = house.local("GET", "/v1/workers", &Ask::default()).json();
    assert_eq!(workers["workers"][0]["items"][0]["log"], "at it\n", "{workers}");

    // It says that it is done and is not: the contract says so, and the next attempt is told.
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    let again = house.claim();
    assert_eq!(again["attempt"], 2, "{again}");
    assert!(again["prompt"].as_str().unwrap().contains("exit"), "{again}");
    house.fixture.write("out.txt", "hello\n");
    assert_eq!(say(&house, &again, "complete", r#"{"text": "now it is"}"#).status, 200);
    let view = house.until(&run, "done");
    assert_eq!(view["spent"]["tokens"], 120, "{view}");
}

#[test]
fn a_page_of_a_run_that_a_daemon_works_on_says_how_to_follow_it() {
    let house = House::new();
    let run = house.run("hello", "hello");
    house.claim();
    let page = house.fixture.planctl(&["plan", "status", &run]).out;
    let (_, time) = page.split_once(" working ").unwrap();
    assert!(!time.split_whitespace().next().unwrap().contains('h'), "it was begun just now: {page}");
    assert!(
        page.starts_with("hello-1 running · ") && page.ends_with("\nnext: planctl watch hello-1\n"),
        "{page}"
    );
}

#[test]
fn rows_69_and_70_another_item_is_not_there_and_a_lost_lease_is_lost() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let (item, token) = at(&claimed, claimed["token"].as_str().unwrap());
    // Row 69: the token of one item says nothing of another.
    // A workspace has one run at a time, so the other item is of another one.
    house.fixture.write("elsewhere/other.md", &super::house::plan("other", "other"));
    let elsewhere = house.fixture.path("elsewhere").display().to_string();
    let said = house.fixture.planctl(&["-C", &elsewhere, "plan", "run", "other.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let other = house.claim();
    let other = other["item"].as_str().unwrap();
    assert_ne!(other, item);
    for verb in ["heartbeat", "release"] {
        let ask = Ask { token: Some(token), ..Ask::default() };
        let reply = house.network("POST", &format!("/v1/items/{other}/{verb}"), &ask);
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{verb}: {reply:?}");
    }
    let forged = format!("planctl_item_1_{}", "1".repeat(64));
    for verb in ["heartbeat", "complete", "release", "log"] {
        let ask = Ask { token: Some(&forged), body: Some(r#"{"text": "x"}"#.to_owned()), ..Ask::default() };
        let body =
            if verb == "heartbeat" || verb == "release" { Some("{}".to_owned()) } else { ask.body.clone() };
        let reply = house.network("POST", &format!("/v1/items/{item}/{verb}"), &Ask { body, ..ask });
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{verb}");
    }
    // Row 70: given back and claimed by another, the first one's word changes nothing.
    assert_eq!(say(&house, &claimed, "release", "{}").status, 200);
    let next = house.claim();
    assert!(next["generation"].as_i64() > claimed["generation"].as_i64(), "{next}");
    assert_eq!(next["attempt"], 1, "a release spends no attempt");
    for (verb, body) in
        [("heartbeat", "{}"), ("complete", r#"{"text": "x"}"#), ("fail", r#"{"reason": "x"}"#)]
    {
        let reply = say(&house, &claimed, verb, body);
        assert_eq!((reply.status, reply.code().as_str()), (409, "lease_lost"), "{verb}");
        assert!(!reply.body.contains("generation"), "nothing is told of the next holder: {reply:?}");
    }
    let view = house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json();
    assert_eq!(view["steps"][0]["state"], "working", "{view}");
}

#[test]
fn p5_what_a_worker_says_too_late_is_kept_as_a_note_on_its_attempt() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    assert_eq!(say(&house, &claimed, "release", "{}").status, 200);
    let reply = say(&house, &claimed, "complete", r#"{"text": "I had it all along"}"#);
    assert_eq!((reply.status, reply.code().as_str()), (409, "lease_lost"));
    let logs = house.local("GET", &format!("/v1/runs/{run}/logs"), &Ask::default()).json();
    let attempt = &logs["attempts"][0];
    assert_eq!((&attempt["attempt"], &attempt["work"]), (&Value::from(1), &Value::Null), "{logs}");
    assert_eq!(attempt["late"][0]["text"], "I had it all along", "{logs}");
    let shown = house.fixture.planctl(&["plan", "logs", &run]).out;
    assert!(shown.contains("after its lease was over; it changed nothing"), "{shown}");
    assert!(shown.contains("I had it all along"), "{shown}");
}

#[test]
fn who_does_not_say_how_long_it_worked_worked_since_its_claim() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let reply = say(&house, &claimed, "complete", r#"{"text": "x", "usage": {"cost_usd": 1e10}}"#);
    assert!(reply.body.contains("`cost_usd` is from 0 to 1000000000, found 10000000000"), "{reply:?}");
    for (verb, body) in [
        ("usage", r#"{"output_tokens": 1000000000000001}"#),
        ("complete", r#"{"usage": {"input_tokens": 18446744073709551615}}"#),
    ] {
        let reply = say(&house, &claimed, verb, body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{reply:?}");
        assert!(reply.body.contains("_tokens` is from 0 to 1000000000000000, found 1"), "{reply:?}");
    }
    house.fixture.write("out.txt", "hello\n");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    let again = say(&house, &claimed, "complete", r#"{"text": "done"}"#);
    assert_eq!((again.status, &again.json()["repeated"]), (200, &Value::from(true)), "{again:?}");
    house.until(&run, "done");
    let logs = house.local("GET", &format!("/v1/runs/{run}/logs"), &Ask::default()).json();
    assert!(logs["attempts"][0]["work"]["seconds"].as_f64().unwrap() > 0.0, "{logs}");
}

#[test]
fn row_71_a_report_is_repeated_or_refused() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    house.fixture.write("out.txt", "hello\n");
    let first = say(&house, &claimed, "complete", r#"{"text": "done"}"#);
    assert_eq!((first.status, &first.json()["repeated"]), (200, &Value::from(false)));
    let again = say(&house, &claimed, "complete", r#"{"text": "done"}"#);
    assert_eq!((again.status, &again.json()["repeated"]), (200, &Value::from(true)));
    let other = say(&house, &claimed, "complete", r#"{"text": "something else"}"#);
    assert_eq!((other.status, other.code().as_str()), (409, "idempotency_mismatch"));
    house.until(&run, "done");
    let again = say(&house, &claimed, "complete", r#"{"text": "done"}"#);
    assert_eq!(again.status, 200, "{again:?}");
    let lines = house.fixture.planctl(&["events", "--run", &run, "--json"]).out;
    assert_eq!(lines.matches("\"event\":\"agent.reported\"").count(), 1, "{lines}");
}

#[test]
fn a_lease_is_renewed_for_as_long_as_its_claim_asked() {
    let house = House::new();
    house.run("hello", "hello");
    let body = r#"{"roles": ["coder"], "lease_seconds": 300}"#.to_owned();
    let ask = Ask { body: Some(body), ..Ask::default() };
    let claimed = house.local("POST", "/v1/items/claim?wait=30", &ask).json();
    assert_eq!(claimed["heartbeat_seconds"], 100, "{claimed}");
    let beat = say(&house, &claimed, "heartbeat", "{}").json();
    // Times are written alike, so their order is that of the letters.
    let ends = |view: &Value| view["lease_until"].as_str().unwrap().to_owned();
    assert!(ends(&beat) >= ends(&claimed), "{beat} {claimed}");
    // Nobody makes a lease longer than a claim could ask for.
    let token = claimed["token"].as_str().unwrap().replacen(".300_", ".86400_", 1);
    let longer = Value::Object(
        [("item".into(), claimed["item"].clone()), ("token".into(), token.into())].into_iter().collect(),
    );
    assert_eq!(say(&house, &longer, "heartbeat", "{}").status, 404);
}

#[test]
fn a_claim_that_is_repeated_under_its_key_finds_the_same_lease() {
    let house = House::new();
    let worker = house.token("worker");
    house.run("hello", "hello");
    let ask = Ask {
        token: Some(&worker),
        key: Some("claim-1"),
        body: Some(r#"{"roles": ["coder"]}"#.to_owned()),
        ..Ask::default()
    };
    let first = house.network("POST", "/v1/items/claim?wait=30", &ask).json();
    let again = house.network("POST", "/v1/items/claim", &ask).json();
    assert_eq!((&first["item"], &first["token"]), (&again["item"], &again["token"]));
    assert_eq!(again["generation"], 1);
    let other = house.network("POST", "/v1/items/claim", &Ask { key: Some("claim-2"), ..ask });
    assert_eq!(other.status, 204, "{other:?}");
}

#[test]
fn a_claim_on_the_socket_is_repeated_under_a_key_that_nobody_guesses() {
    let house = House::new();
    house.run("hello", "hello");
    let claim = |key: &str| {
        let body = Some(r#"{"roles": ["coder"]}"#.to_owned());
        house.local("POST", "/v1/items/claim?wait=5", &Ask { key: Some(key), body, ..Ask::default() })
    };
    let first = claim("018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e42").json();
    let again = claim("018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e42").json();
    assert_eq!((&first["item"], &first["token"]), (&again["item"], &again["token"]));
    assert_eq!(say(&house, &first, "release", "{}").status, 200);
    // A short key is a name and no secret: the lease is its first holder's alone.
    assert_eq!(claim("1").json()["item"], first["item"]);
    let stranger = house.local(
        "POST",
        "/v1/items/claim",
        &Ask { key: Some("1"), body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() },
    );
    assert_eq!(stranger.status, 204, "{stranger:?}");
}

#[test]
fn a_claim_is_repeated_past_those_who_wait_in_front() {
    let house = House::new();
    house.run("hello", "hello");
    let claim = |key: &str, wait: u8| {
        let body = Some(format!(r#"{{"roles": ["coder"], "worker": "{key}"}}"#));
        let path = format!("/v1/items/claim?wait={wait}");
        house.local("POST", &path, &Ask { key: Some(key), body, ..Ask::default() })
    };
    let (lost, other) = ("018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e42", "018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e43");
    let first = claim(lost, 30).json();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| claim(other, 5));
        while !house.local("GET", "/v1/workers", &Ask::default()).body.contains(other) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let again = claim(lost, 0);
        assert_eq!((again.status, &again.json()["token"]), (200, &first["token"]), "{again:?}");
        assert_eq!(waits.join().unwrap().status, 204);
    });
}

#[test]
fn p4_of_those_who_wait_in_line_each_gets_an_item_of_its_own() {
    const WORKERS: usize = 6;
    let house = House::new();
    let branches = ["a", "b", "c", "d"];
    let steps: String = branches
        .iter()
        .map(|name| format!("{name} [prompt=x, target=coder, contract=\"true\"] fork -> {name} -> join "))
        .collect();
    let graph = format!(
        "digraph line {{ start [shape=Mdiamond] exit [shape=Msquare] fork [shape=component] \
         join [shape=tripleoctagon] start -> fork {steps} join -> exit }}"
    );
    std::thread::scope(|scope| {
        let claim = |number: usize| {
            let body = format!(r#"{{"roles": ["coder"], "worker": "w{number}"}}"#);
            let ask = Ask { body: Some(body), ..Ask::default() };
            house.local("POST", "/v1/items/claim?wait=10", &ask)
        };
        let waiting: Vec<_> = (0..WORKERS).map(|number| scope.spawn(move || claim(number))).collect();
        let is_seen = |number: &usize| {
            house.local("GET", "/v1/workers", &Ask::default()).body.contains(&format!("w{number}"))
        };
        while !(0..WORKERS).all(|number| is_seen(&number)) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        house.fixture.write("line.dot", &graph);
        let said = house.fixture.planctl(&["plan", "run", "line.dot", "--approve", "-d"]);
        assert_eq!(said.code, 0, "{said:?}");
        let replies: Vec<_> = waiting.into_iter().map(|worker| worker.join().unwrap()).collect();
        let claimed: Vec<Value> =
            replies.iter().filter(|reply| reply.status == 200).map(Reply::json).collect();
        let items: std::collections::BTreeSet<&str> =
            claimed.iter().filter_map(|claimed| claimed["item"].as_str()).collect();
        assert_eq!((claimed.len(), items.len()), (branches.len(), branches.len()), "{replies:?}");
        assert_eq!(replies.iter().filter(|reply| reply.status == 204).count(), WORKERS - branches.len());
        for claimed in &claimed {
            assert_eq!(say(&house, claimed, "complete", r#"{"text": "done"}"#).status, 200);
        }
        house.until(said.out.trim(), "done");
    });
}

#[test]
fn a_worker_s_token_is_for_its_roles() {
    let house = House::new();
    let body = r#"{"name": "w", "scope": "worker", "roles": ["reviewer"]}"#.to_owned();
    let made =
        house.local("POST", "/v1/tokens", &Ask { key: Some("w"), body: Some(body), ..Ask::default() }).json();
    let token = made["secret"].as_str().unwrap().to_owned();
    house.run("hello", "hello");
    let claim = |body: &str| {
        let ask = Ask { token: Some(&token), body: Some(body.to_owned()), ..Ask::default() };
        house.network("POST", "/v1/items/claim", &ask)
    };
    assert_eq!(claim(r#"{"roles": ["coder"]}"#).code(), "scope");
    assert_eq!(claim("{}").status, 204, "its own roles, and there is no work for them");
}

#[test]
fn a_question_frees_the_worker_and_its_answer_is_in_the_next_prompt() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let asked = say(&house, &claimed, "ask", r#"{"question": "which word?"}"#);
    assert_eq!(asked.status, 200, "{asked:?}");
    house.until(&run, "waiting");
    let asks = house.local("GET", "/v1/approvals", &Ask::default()).json();
    let ask = asks["asks"][0]["id"].to_string();
    let body = r#"{"answer": {"answer": "reply"}, "note": "the word hello"}"#.to_owned();
    let path = format!("/v1/approvals/{ask}/answer");
    let answered = house.local("POST", &path, &Ask { key: Some("a"), body: Some(body), ..Ask::default() });
    assert_eq!(answered.status, 200, "{answered:?}");
    let next = house.claim();
    assert!(next["prompt"].as_str().unwrap().contains("the word hello"), "{next}");
}

#[test]
fn a_cancelled_run_tells_its_worker_at_the_next_heartbeat() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let path = format!("/v1/runs/{run}/cancel");
    assert_eq!(house.local("POST", &path, &Ask { key: Some("c"), ..Ask::default() }).status, 200);
    let beat = say(&house, &claimed, "heartbeat", "{}");
    assert_eq!((beat.status, &beat.json()["cancel"]), (200, &Value::from(true)), "{beat:?}");
    let late = say(&house, &claimed, "complete", r#"{"text": "done"}"#);
    assert_eq!(late.code(), "lease_lost");
}

#[test]
fn p73_a_worker_that_uses_the_budget_up_is_told_to_stop_and_its_lease_is_over() {
    let house = House::new();
    let text = super::house::plan("hello", "hello");
    let text = text.replace("**Context:** a test\n", "**Context:** a test\n\n**Budget:** 1000 tokens\n");
    house.fixture.write("hello.md", &text);
    let said = house.fixture.planctl(&["plan", "run", "hello.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let claimed = house.claim();
    assert_eq!(say(&house, &claimed, "usage", r#"{"input_tokens": 900}"#).status, 204);
    assert_eq!(say(&house, &claimed, "heartbeat", "{}").json()["cancel"], false);
    say(&house, &claimed, "usage", r#"{"input_tokens": 900, "output_tokens": 200}"#);
    let beat = say(&house, &claimed, "heartbeat", "{}");
    assert_eq!((beat.status, &beat.json()["cancel"]), (200, &Value::from(true)), "{beat:?}");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).code(), "lease_lost");
    let view = house.until("hello-1", "waiting");
    assert_eq!(
        (&view["waiting_on"]["kind"], &view["spent"]["tokens"]),
        (&"budget".into(), &1100.into()),
        "{view}"
    );
}

#[test]
fn a_paused_run_takes_its_work_back_leaves_the_workspace_and_goes_on_when_it_is_resumed() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let decide = |verb: &str, key: &str| {
        let ask = Ask { key: Some(key), body: Some(r#"{}"#.to_owned()), ..Ask::default() };
        house.local("POST", &format!("/v1/runs/{run}/{verb}"), &ask)
    };
    let claimed = house.claim();
    assert_eq!(say(&house, &claimed, "usage", r#"{"input_tokens": 100, "output_tokens": 20}"#).status, 204);
    let (paused, again, repeated) = (decide("pause", "p"), decide("pause", "p"), decide("pause", "q"));
    assert_eq!((paused.status, &paused.json()["decision"]), (200, &Value::from("pause")), "{paused:?}");
    assert_eq!(paused.json()["next"]["do"], "resume_run", "{paused:?}");
    assert_eq!(
        (again.status, repeated.json()["repeated"].as_bool()),
        (200, Some(true)),
        "{again:?} {repeated:?}"
    );
    let beat = say(&house, &claimed, "heartbeat", "{}");
    assert_eq!((beat.status, &beat.json()["cancel"]), (200, &Value::from(true)), "{beat:?}");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).code(), "lease_lost");
    let view = house.until(&run, "paused");
    assert_eq!(
        (&view["spent"]["tokens"], &view["steps"][0]["state"]),
        (&Value::from(120), &Value::from("pending"))
    );

    // Another run has the workspace meanwhile.
    let other = house.run("other", "other");
    let claimed = house.claim();
    house.fixture.write("out.txt", "other\n");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    house.until(&other, "done");

    let resumed = decide("resume", "r");
    assert_eq!((resumed.status, &resumed.json()["repeated"]), (200, &Value::from(false)), "{resumed:?}");
    let claimed = house.claim();
    assert_eq!(claimed["attempt"], 2, "{claimed}");
    house.fixture.write("out.txt", "hello\n");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    house.until(&run, "done");
    let late = decide("pause", "late");
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"), "{late:?}");
    let audit = house.local("GET", &format!("/v1/runs/{run}/audit"), &Ask::default());
    assert_eq!(audit.json()["runs"][0]["problems"], serde_json::json!([]), "{audit:?}");
}

#[test]
fn p73_a_run_is_told_when_its_sub_plan_waits_for_a_person_and_when_it_goes_on() {
    let house = House::new();
    house.fixture.write("hello.md", &super::house::plan("hello", "hello"));
    house.fixture.write(
        "outer.dot",
        "digraph outer { start exit inner [shape=house, stack.child_dotfile=\"hello.md\", \
         stack.child_approval=inherit] start -> inner -> exit }",
    );
    let said = house.fixture.planctl(&["plan", "run", "outer.dot", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let clocks = "select count(*) from runs where head ->> 'clock_since' is not null";
    let claimed = house.claim();
    house.until_sql(clocks, "2");
    assert_eq!(say(&house, &claimed, "ask", r#"{"question": "which word?"}"#).status, 200);
    house.until_sql(clocks, "0");
    let asks = house.local("GET", "/v1/approvals", &Ask::default()).json();
    let body = r#"{"answer": {"answer": "reply"}, "note": "the word hello"}"#.to_owned();
    let path = format!("/v1/approvals/{}/answer", asks["asks"][0]["id"]);
    assert_eq!(
        house.local("POST", &path, &Ask { key: Some("a"), body: Some(body), ..Ask::default() }).status,
        200
    );
    house.until_sql(clocks, "2");
    let ask = Ask { key: Some("p"), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/runs/hello-1/pause", &ask).status, 200);
    house.until_sql(clocks, "0");
    let ask = Ask { key: Some("r"), body: Some("{}".to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/runs/hello-1/resume", &ask).status, 200);
    let claimed = house.claim();
    house.until_sql(clocks, "2");
    house.fixture.write("out.txt", "hello\n");
    assert_eq!(say(&house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
    house.until("outer-1", "done");
}

#[test]
fn a_heartbeat_that_waits_is_answered_when_the_run_is_cancelled() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let path = format!("/v1/items/{}/heartbeat", claimed["item"].as_str().unwrap());
    let ask = Ask {
        token: Some(claimed["token"].as_str().unwrap()),
        body: Some("{}".to_owned()),
        ..Ask::default()
    };
    for (wait, status) in [("0", 200), ("1", 200), ("61", 400), ("x", 400)] {
        let beat = house.local("POST", &format!("{path}?wait={wait}"), &ask);
        assert_eq!(beat.status, status, "{wait}: {beat:?}");
        assert!(status != 200 || !beat.json()["cancel"].as_bool().unwrap(), "{beat:?}");
    }
    std::thread::scope(|scope| {
        // It would say that the lease is held, had it waited to its end.
        let beat = scope.spawn(|| house.local("POST", &format!("{path}?wait=45"), &ask));
        let cancel = Ask { key: Some("c"), ..Ask::default() };
        assert_eq!(house.local("POST", &format!("/v1/runs/{run}/cancel"), &cancel).status, 200);
        assert_eq!(beat.join().unwrap().json()["cancel"], true);
    });
}

#[test]
fn a_worker_that_is_paused_while_it_waits_gets_nothing_and_is_in_nobody_s_way() {
    let house = House::new();
    let claim = |worker: &str, wait: u8| {
        let body = format!(r#"{{"roles": ["coder"], "worker": "{worker}"}}"#);
        let ask = Ask { body: Some(body), ..Ask::default() };
        house.local("POST", &format!("/v1/items/claim?wait={wait}"), &ask)
    };
    std::thread::scope(|scope| {
        let mole = scope.spawn(|| claim("mole", 10));
        while !house.local("GET", "/v1/workers", &Ask::default()).body.contains("mole") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let paused = house.local("POST", "/v1/workers/mole/pause", &Ask { key: Some("p"), ..Ask::default() });
        assert_eq!(paused.status, 200, "{paused:?}");
        house.run("hello", "hello");
        assert_eq!(claim("hare", 30).status, 200);
        assert_eq!(mole.join().unwrap().status, 204);
    });
}

#[test]
fn a41_claims_that_wait_end_once_their_token_is_revoked_also_where_there_is_no_work() {
    let house = House::new();
    let secret = house.token("worker");
    let ask = |worker: &str| {
        let body = Some(format!(r#"{{"roles": ["coder"], "worker": "{worker}"}}"#));
        house.network(
            "POST",
            "/v1/items/claim?wait=60",
            &Ask { token: Some(&secret), body, ..Ask::default() },
        )
    };
    std::thread::scope(|scope| {
        // One of them looks for both.
        let waiting = [scope.spawn(|| ask("w1")), scope.spawn(|| ask("w2"))];
        let workers = || house.local("GET", "/v1/workers", &Ask::default()).body;
        while !["\"w1\"", "\"w2\""].iter().all(|worker| workers().contains(worker)) {
            assert!(!waiting.iter().any(|claim| claim.is_finished()), "they wait");
        }
        let since = Instant::now();
        house.revoke("worker");
        for claim in waiting {
            let reply = claim.join().unwrap();
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthenticated"), "{reply:?}");
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    });
    house.run("hello", "hello");
    assert_eq!(house.claim()["attempt"], 1, "the queue goes on");
}

#[test]
fn a41_a_claim_that_waits_gets_nothing_once_its_token_is_revoked() {
    let house = House::new();
    let secret = house.token("worker");
    let ask = Ask {
        token: Some(&secret),
        body: Some(r#"{"roles": ["coder"], "worker": "w1"}"#.to_owned()),
        ..Ask::default()
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| house.network("POST", "/v1/items/claim?wait=60", &ask));
        let seen = || house.local("GET", "/v1/workers", &Ask::default()).body.contains("\"w1\"");
        while !seen() {
            assert!(!waiting.is_finished(), "it waits");
        }
        // A token that was looked at within a second counts as valid.
        let since = Instant::now();
        house.revoke("worker");
        std::thread::sleep(Duration::from_secs(1).saturating_sub(since.elapsed()));
        house.run("hello", "hello");
        let reply = waiting.join().unwrap();
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthenticated"), "{reply:?}");
    });
    let claimed = house.claim();
    assert_eq!(claimed["attempt"], 1, "nobody has worked at it: {claimed}");
}

#[test]
fn a_paused_worker_gets_nothing() {
    let house = House::new();
    house.run("hello", "hello");
    let ask = Ask { body: Some(r#"{"roles": ["other"], "worker": "mole"}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &ask).status, 204);
    let paused = house.local("POST", "/v1/workers/mole/pause", &Ask { key: Some("p"), ..Ask::default() });
    assert_eq!(paused.json()["paused"], true, "{paused:?}");
    let ask = Ask { body: Some(r#"{"roles": ["coder"], "worker": "mole"}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &ask).status, 204);
    let resumed = house.local("POST", "/v1/workers/mole/resume", &Ask { key: Some("r"), ..Ask::default() });
    assert_eq!(resumed.json()["paused"], false);
    assert_eq!(house.local("POST", "/v1/items/claim?wait=30", &ask).status, 200);
}

#[test]
fn planctl_in_a_worker_finds_the_daemon_that_it_works_for_and_its_contract_is_told_nothing() {
    let house = House::new();
    let text = super::house::plan("hello", "hello")
        .replace("grep -qx hello out.txt", "env > contract.env && grep -qx hello out.txt");
    house.fixture.write("hello.md", &text);
    let planctl = env!("CARGO_BIN_EXE_planctl");
    let worker =
        format!("echo hello > out.txt; {planctl} plan status hello-1 --json > seen.json 2> seen.err");
    let said = house.fixture.planctl(&["plan", "run", "hello.md", "--approve", "-d", "--exec", &worker]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until("hello-1", "done");
    let seen: Value = serde_json::from_str(&house.fixture.read("seen.json"))
        .unwrap_or_else(|error| panic!("{error}: {}", house.fixture.read("seen.err")));
    assert_eq!((&seen["run"], &seen["state"]), (&Value::from("hello-1"), &Value::from("running")));
    let contract = house.fixture.read("contract.env");
    assert!(contract.contains("HOME=") && !contract.contains("STATE_DIR"), "{contract}");
}
