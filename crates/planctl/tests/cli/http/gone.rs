//! Clients that go away in the middle of a request: nothing waits for them, and their reports are carried out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::house::{Ask, House, plan, written};
use super::work::say;

/// Words in the text of a statement that claims, and of one that writes a worker's report.
const CLAIM: &str = "planctl_claim_1";
const REPORT: &str = "planctl_commit_1";

/// A table that nobody writes, or reads either, until this is dropped.
pub(super) struct Locked<'a> {
    house: &'a House,
    table: &'a str,
    session: Child,
    asks: ChildStdin,
}

impl<'a> Locked<'a> {
    fn lock(house: &'a House, table: &'a str) -> Locked<'a> {
        Locked::in_mode(house, table, "exclusive")
    }

    /// Keeps everybody from reading it, too.
    pub(super) fn hide(house: &'a House, table: &'a str) -> Locked<'a> {
        Locked::in_mode(house, table, "access exclusive")
    }

    fn in_mode(house: &'a House, table: &'a str, mode: &str) -> Locked<'a> {
        let mut session = house.fixture.psql().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut asks = session.stdin.take().unwrap();
        writeln!(asks, "begin; lock table {table} in {mode} mode; select 'locked';").unwrap();
        let mut line = String::new();
        BufReader::new(session.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "locked");
        Locked { house, table, session, asks }
    }

    /// Waits until a statement of the daemon waits for the table.
    pub(super) fn await_waiting(&self, statement: &str) {
        let waiting = format!(
            "select count(*) from pg_locks l join pg_stat_activity a using (pid) where not l.granted \
             and l.relation = '{}'::regclass and strpos(a.query, '{statement}') > 0",
            self.table
        );
        let mut rounds = 0..1000;
        while self.house.fixture.sql(&waiting) == "0" {
            assert!(rounds.next().is_some(), "nobody waits for {}", self.table);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Where the test panics, the session's end is the lock's, too.
        writeln!(self.asks, "rollback; \\q").ok();
        self.session.wait().ok();
    }
}

/// A client that has asked for something and not been answered.
pub(super) struct Asking(UnixStream);

impl Asking {
    pub(super) fn begin(house: &House, path: &str, ask: &Ask<'_>) -> Asking {
        let mut stream = UnixStream::connect(house.fixture.state().join("daemon.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream.write_all(&written("POST", path, "localhost", ask)).unwrap();
        Asking(stream)
    }

    /// Claims for a worker that waits for so many seconds, and waits until it was seen.
    pub(super) fn claim(house: &House, worker: &str, key: Option<&str>, wait: u8) -> Asking {
        let body = Some(format!(r#"{{"roles": ["coder", "tester"], "worker": "{worker}"}}"#));
        let path = format!("/v1/items/claim?wait={wait}");
        let asking = Asking::begin(house, &path, &Ask { key, body, ..Ask::default() });
        while !house.local("GET", "/v1/workers", &Ask::default()).body.contains(worker) {
            std::thread::sleep(Duration::from_millis(10));
        }
        asking
    }

    /// Goes away, and returns when the daemon has noticed.
    fn go(mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        self.0.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"", "{}", String::from_utf8_lossy(&answer));
    }

    /// Waits for the answer; none has no body.
    pub(super) fn answer(mut self) -> Option<Value> {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if head.starts_with("HTTP/1.1 204 ") {
            return None;
        }
        Some(serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }
}

/// Has the daemon prepare its statements: one that it only prepares when a client goes is never done.
fn prepare(house: &House) {
    for _ in 0..5 {
        assert!(Asking::claim(house, "first", None, 0).answer().is_none());
    }
}

#[test]
fn a_worker_says_that_it_polls_once_a_daemon_has_answered() {
    let house = House::new();
    let polls = |server: &str| {
        let words = ["worker", "run", "--server", server, "--role", "coder", "--exec", "true", "--drain"];
        let said = house.fixture.planctl(&words);
        (said.code, said.err.contains("polling"))
    };
    assert_eq!(polls("/nowhere/daemon.sock"), (69, false));
    assert_eq!(polls(house.fixture.state().join("daemon.sock").to_str().unwrap()), (0, true));
}

#[test]
fn a_worker_whose_state_directory_was_moved_away_gives_back_what_it_claimed_and_ends() {
    let house = House::new();
    let own = house.fixture.path("../of_worker");
    let mut command = house.fixture.command(&["worker", "run", "--role", "coder", "--exec", "true"]);
    command.env("PLANCTL_STATE_DIR", &own).env("PLANCTL_SERVER", house.fixture.state().join("daemon.sock"));
    let mut worker = command.spawn().unwrap();
    let mut talk = BufReader::new(worker.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("polling") {
        assert!(talk.read_line(&mut heard).unwrap() > 0, "it ended: {heard}");
    }
    std::fs::rename(&own, house.fixture.path("../moved")).unwrap();
    house.fixture.write("p.md", &plan("Hello", "hello"));
    let run = house.fixture.planctl(&["run", "p.md", "--approve", "-d"]);
    assert_eq!(run.code, 0, "{run:?}");
    talk.read_to_string(&mut heard).unwrap();
    assert_eq!(worker.wait().unwrap().code(), Some(75), "a service manager starts it again: {heard}");
    let words = format!("the state directory {} was moved or deleted", own.display());
    assert!(heard.contains(&words) && !heard.contains("started"), "{heard}");
    let said = house.fixture.planctl(&[
        "worker",
        "run",
        "--role",
        "coder",
        "--exec",
        "echo hello > out.txt",
        "--once",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until(run.out.trim(), "done");
}

#[test]
fn a_worker_that_goes_while_others_are_claimed_for_is_out_of_the_line() {
    let house = House::new();
    let first = Asking::claim(&house, "first", None, 5);
    let (second, third) =
        (Asking::claim(&house, "second", None, 60), Asking::claim(&house, "third", None, 60));
    let last = Asking::claim(&house, "last", None, 60);
    let locked = Locked::lock(&house, "items");
    locked.await_waiting(CLAIM);
    second.go();
    third.go();
    drop(locked);
    assert!(first.answer().is_none());
    house.run("hello", "hello");
    let claimed = last.answer().expect("who is there gets what there is");
    assert_eq!(claimed["generation"], 1, "nobody had it before: {claimed}");
}

#[test]
fn what_was_claimed_for_a_worker_that_has_gone_is_given_back_at_once() {
    let house = House::new();
    prepare(&house);
    let run = house.run("hello", "hello");
    let locked = Locked::lock(&house, "items");
    let claiming = Asking::claim(&house, "mole", None, 60);
    locked.await_waiting(CLAIM);
    claiming.go();
    drop(locked);
    let claimed = house.claim();
    assert_eq!((&claimed["attempt"], &claimed["run"]), (&Value::from(1), &Value::from(run)), "{claimed}");
}

#[test]
fn what_was_claimed_under_a_key_of_a_worker_that_has_gone_is_there_when_it_asks_again() {
    const KEY: &str = "018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e44";
    let house = House::new();
    prepare(&house);
    house.run("hello", "hello");
    let locked = Locked::lock(&house, "items");
    let claiming = Asking::claim(&house, "mole", Some(KEY), 60);
    locked.await_waiting(CLAIM);
    claiming.go();
    drop(locked);
    let claimed = Asking::claim(&house, "mole", Some(KEY), 60).answer().unwrap();
    assert_eq!(claimed["generation"], 1, "nobody had it since: {claimed}");
}

#[test]
fn a_report_whose_sender_has_gone_is_heard_and_its_contract_runs_at_once() {
    let house = House::new();
    let run = house.run("hello", "hello");
    let claimed = house.claim();
    house.fixture.write("out.txt", "hello\n");
    let locked = Locked::lock(&house, "history");
    let path = format!("/v1/items/{}/complete", claimed["item"].as_str().unwrap());
    let body = Some(r#"{"text": "done"}"#.to_owned());
    let reporting =
        Asking::begin(&house, &path, &Ask { token: claimed["token"].as_str(), body, ..Ask::default() });
    locked.await_waiting(REPORT);
    reporting.go();
    drop(locked);
    house.until(&run, "done");
    let events = house.fixture.event_names(&run);
    assert_eq!(events.iter().filter(|event| *event == "agent.reported").count(), 1, "{events:?}");
    assert!(!events.iter().any(|event| event == "clock.lease_lost"), "{events:?}");
}

/// Begins a run whose first step was done and reported, and whose verdict comes once go.txt is there.
fn await_verdict(house: &House) {
    let second = plan("two", "hello").split("## Steps\n").nth(1).unwrap().replace("### 1.", "### 2.");
    let first = plan("two", "hello")
        .replace("grep -qx hello out.txt", "until test -e go.txt; do sleep 0.02; done; test -e go.txt");
    house.fixture.write("two.md", &format!("{first}{second}"));
    let said = house.fixture.planctl(&["plan", "run", "two.md", "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    let claimed = house.claim();
    assert_eq!(say(house, &claimed, "complete", r#"{"text": "done"}"#).status, 200);
}

/// The verdict is about to lease the next step to a worker that waits, which goes at that moment.
#[test]
fn work_that_a_verdict_leases_to_a_worker_that_has_gone_is_for_the_next_one() {
    let house = House::new();
    await_verdict(&house);
    let waiting = Asking::claim(&house, "mole", None, 60);
    let locked = Locked::lock(&house, "history");
    house.fixture.write("go.txt", "");
    locked.await_waiting(REPORT);
    waiting.go();
    drop(locked);
    let next = house.claim();
    assert_eq!((&next["step"], &next["attempt"]), (&Value::from(2), &Value::from(1)), "{next}");
}

/// The database commits what a daemon had sent it, and nobody is there to hear of it.
#[test]
fn work_that_a_verdict_leases_while_the_daemon_is_killed_is_there_when_its_worker_asks_again() {
    const KEY: &str = "018f3f5e-8a3c-7cc2-9d8e-3b1f0c5a7e45";
    let mut house = House::new();
    await_verdict(&house);
    let waiting = Asking::claim(&house, "mole", Some(KEY), 60);
    let locked = Locked::lock(&house, "history");
    house.fixture.write("go.txt", "");
    locked.await_waiting(REPORT);
    house.kill();
    drop(locked);
    drop(waiting);
    house.start_again();
    let next = Asking::claim(&house, "mole", Some(KEY), 60).answer().unwrap();
    assert_eq!((&next["step"], &next["generation"]), (&Value::from(2), &Value::from(1)), "{next}");
    house.fixture.write("out.txt", "hello\n");
    assert_eq!(say(&house, &next, "complete", r#"{"text": "done"}"#).status, 200);
}
