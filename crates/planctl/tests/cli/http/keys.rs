//! Mutations under their keys where a client or the daemon is gone in mid-request (P14), and secrets that nobody keeps.

use std::io::Write;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::house::{Ask, House, Reply, plan, written};

/// Holds statements up that a test names, for as long as `held` has a row.
const HOLD: &str = "create table held (); insert into held default values; \
    create function hold() returns trigger language plpgsql as $$ begin \
      while exists (select from held) loop perform pg_sleep(0.01); end loop; return new; end $$";

/// A mutation, and what counts how often it was done.
struct Mutation {
    path: String,
    body: Value,
    count: String,
}

impl Mutation {
    fn ask<'a>(&self, key: &'a str) -> Ask<'a> {
        Ask { key: Some(key), body: Some(self.body.to_string()), ..Ask::default() }
    }

    /// Sends it and waits for no answer.
    fn send(&self, house: &House, key: &str) -> UnixStream {
        let mut socket = UnixStream::connect(house.fixture.state().join("daemon.sock")).unwrap();
        socket.write_all(&written("POST", &self.path, "localhost", &self.ask(key))).unwrap();
        socket
    }

    fn times(&self, house: &House) -> String {
        house.fixture.sql(&self.count)
    }
}

fn start(house: &House, name: &str, start: &Value) -> Value {
    let text = plan(name, "hello");
    house.fixture.write(&format!("{name}.md"), &text);
    let path = format!("{name}.md");
    json!({
        "plan": { "workspace": house.fixture.path(""), "path": path, "text": text, "config": {} },
        "start": start,
    })
}

fn note(text: &str) -> Mutation {
    let count = format!("select count(*) from notes where body = '{text}'");
    Mutation { path: "/v1/topics/news".to_owned(), body: json!({ "text": text }), count }
}

#[test]
fn p14_what_was_done_before_the_daemon_was_killed_is_not_done_again() {
    let mut house = House::new();
    let waits = json!({ "waits_for_workers": true });
    let body = start(&house, "asked", &waits).to_string();
    let asked = house.local("POST", "/v1/runs", &Ask { key: Some("a"), body: Some(body), ..Ask::default() });
    let asked = asked.json();
    assert_eq!(asked["started"], "needs_approval", "{asked}");
    let again = json!({ "waits_for_workers": true, "again": true, "approve": {} });
    let mutations = [
        Mutation {
            path: "/v1/runs".to_owned(),
            body: start(&house, "made", &again),
            count: "select count(*) from runs where stem = 'made'".to_owned(),
        },
        note("once"),
        Mutation {
            path: "/v1/tokens".to_owned(),
            body: json!({ "name": "ci", "scope": "read" }),
            count: "select count(*) from tokens where name = 'ci'".to_owned(),
        },
        Mutation {
            path: format!("/v1/approvals/{}/answer", asked["ask"]),
            body: json!({ "answer": { "answer": "approve" }, "place": { "workspace": house.fixture.path("") } }),
            count: "select count(*) from history where name = 'human.answered' and kind = 'input' \
                and run in (select id from runs where stem = 'asked')"
                .to_owned(),
        },
    ];
    house.fixture.sql(&format!(
        "{HOLD}; create trigger hold before update of status on requests for each row execute function hold()"
    ));
    let sent: Vec<_> =
        mutations.iter().enumerate().map(|(at, it)| it.send(&house, &format!("k{at}"))).collect();
    // Their work is done, and nobody was answered.
    house.until_sql(
        "select count(*) from pg_stat_activity where datname = current_database() and query like 'update requests %' \
         and state = 'active'",
        "4",
    );
    house.kill();
    drop(sent);
    house.fixture.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
         and query like 'update requests %'",
    );
    house.fixture.sql("delete from held; update requests set at = at - interval '2 minutes'");
    house.start_again();
    for (at, mutation) in mutations.iter().enumerate() {
        assert_eq!(mutation.times(&house), "1", "{}", mutation.path);
        let key = format!("k{at}");
        let [first, second] = [(), ()].map(|()| house.local("POST", &mutation.path, &mutation.ask(&key)));
        assert_eq!(mutation.times(&house), "1", "{}: {first:?}", mutation.path);
        assert_eq!((first.status, &first.body), (second.status, &second.body), "{}", mutation.path);
        if mutation.path == "/v1/tokens" {
            // Its secret is gone with the answer, and nothing can bring it back.
            let id = house.fixture.sql("select id from tokens where name = 'ci'");
            assert_eq!(first.code(), "conflict", "{first:?}");
            assert_eq!(first.json()["next"], json!({"do": "revoke_token", "token": id}), "{first:?}");
        } else {
            assert_eq!(first.status, 200, "{first:?}");
        }
    }
    let run = house.local("POST", "/v1/runs", &mutations[0].ask("k0")).json();
    assert_eq!((&run["started"], &run["is_taken_up"]), (&json!("ready"), &json!(false)), "{run}");
}

#[test]
fn p14_a_client_that_goes_away_in_mid_request_does_not_cut_it() {
    let house = House::new();
    let mutation = note("unheard");
    house.fixture.sql(&format!(
        "{HOLD}; create trigger hold before insert on notes for each row execute function hold()"
    ));
    let socket = mutation.send(&house, "k");
    house.until_sql(
        "select count(*) from pg_stat_activity where datname = current_database() and query like '%into notes %' \
         and state = 'active' and pid <> pg_backend_pid()",
        "1",
    );
    drop(socket);
    // An answered request came after the end of that connection.
    assert_eq!(house.local("GET", "/v1/daemon", &Ask::default()).status, 200);
    house.fixture.sql("delete from held");
    house.until_sql("select status from requests where route = 'POST /v1/topics/news'", "200");
    let again = house.local("POST", &mutation.path, &mutation.ask("k"));
    assert_eq!((again.status, mutation.times(&house).as_str()), (200, "1"), "{again:?}");
    assert_eq!(again.json()["notes"][0]["text"], "unheard");
}

#[test]
fn no_table_holds_a_secret() {
    let house = House::new();
    let mut secrets: Vec<String> =
        ["read", "approve", "worker", "admin"].map(|scope| house.token(scope)).into();
    house.run("hello", "hello");
    let ask = Ask {
        token: Some(&secrets[2]),
        key: Some("claim"),
        body: Some(r#"{"roles": ["coder"]}"#.to_owned()),
        ..Ask::default()
    };
    let claimed = house.network("POST", "/v1/items/claim?wait=30", &ask).json();
    let item = claimed["item"].as_str().unwrap();
    let lease = claimed["token"].as_str().unwrap();
    for (verb, body) in [("usage", r#"{"input_tokens": 1}"#), ("complete", r#"{"text": "done"}"#)] {
        let ask = Ask { token: Some(lease), body: Some(body.to_owned()), ..Ask::default() };
        let said = house.network("POST", &format!("/v1/items/{item}/{verb}"), &ask);
        assert!(said.status < 300, "{said:?}");
    }
    secrets.push(lease.to_owned());
    let tables = house
        .fixture
        .sql("select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace");
    assert!(tables.lines().count() > 15, "{tables}");
    for table in tables.lines() {
        let text = house.fixture.sql(&format!("select t::text from \"{table}\" t"));
        for secret in &secrets {
            // Bytes are shown as their digits: of the secret itself, and of its text.
            let (_, digits) = secret.rsplit_once('_').unwrap();
            let as_text: String = digits.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert!(!text.contains(digits) && !text.contains(&as_text), "{table} holds {secret}: {text}");
        }
    }
}

fn say(house: &House, claimed: &Value, verb: &str, body: &Value) -> Reply {
    let item = claimed["item"].as_str().unwrap();
    let ask = Ask { token: claimed["token"].as_str(), body: Some(body.to_string()), ..Ask::default() };
    house.local("POST", &format!("/v1/items/{item}/{verb}"), &ask)
}

fn spent(house: &House, run: &str) -> (u64, u64) {
    let view = house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json();
    (view["spent"]["tokens"].as_u64().unwrap(), view["spent"]["unmetered"].as_u64().unwrap())
}

#[test]
fn row_71_usage_that_was_acknowledged_outlives_the_daemon_and_a_report_is_repeated_all_the_same() {
    let mut house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    let usage = json!({ "input_tokens": 100, "output_tokens": 20 });
    assert_eq!(say(&house, &claimed, "usage", &usage).status, 204);
    house.kill();
    house.start_again();
    let failed = json!({ "reason": "rate limited", "kind": "transient" });
    assert_eq!(say(&house, &claimed, "fail", &failed).status, 200);
    assert_eq!(spent(&house, &run), (120, 0));
    // Usage that comes with a failure counts in place of the usage noted before it.
    let claimed = house.claim();
    assert_eq!(say(&house, &claimed, "usage", &usage).status, 204);
    let failed = json!({ "reason": "rate limited", "kind": "transient", "usage": { "output_tokens": 200 } });
    for repeated in [false, true] {
        let reply = say(&house, &claimed, "fail", &failed);
        assert_eq!((reply.status, &reply.json()["repeated"]), (200, &json!(repeated)), "{reply:?}");
    }
    assert_eq!(spent(&house, &run), (320, 0));
    let claimed = house.claim();
    assert_eq!(say(&house, &claimed, "usage", &usage).status, 204);
    let done = json!({ "text": "done" });
    assert_eq!(say(&house, &claimed, "complete", &done).status, 200);
    house.kill();
    house.start_again();
    let again = say(&house, &claimed, "complete", &done);
    assert_eq!((again.status, &again.json()["repeated"]), (200, &json!(true)), "{again:?}");
    let other = json!({ "text": "done", "usage": { "output_tokens": 1 } });
    assert_eq!(say(&house, &claimed, "complete", &other).code(), "idempotency_mismatch");
    assert_eq!(spent(&house, &run), (440, 0));
    assert_eq!(say(&house, &claimed, "usage", &usage).code(), "lease_lost");
}
