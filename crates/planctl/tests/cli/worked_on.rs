//! Views of a run name those that work on it: a daemon, a process, a worker, or nobody.

use rustix::process::Signal;
use serde_json::Value;

use crate::fixture::{Fixture, plan};
use crate::http::house::{Ask, House};

const FOREVER: &str = "touch begun; sleep 600";

/// Lets time pass by the clock that decides.
fn later(fixture: &Fixture, span: &str) {
    fixture.sql(&format!(
        "create function clock_timestamp() returns timestamptz language sql volatile as \
         $now$ select pg_catalog.clock_timestamp() + interval '{span}' $now$; \
         do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$"
    ));
}

fn one_step(fixture: &Fixture) {
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", "test -e done-1", "escalate")]));
}

/// Waits until the newest run is worked on by this.
fn until(fixture: &Fixture, by: &Value) -> Value {
    for _ in 0..600 {
        let view = fixture.status();
        if view["worked_on_by"] == *by {
            return view;
        }
    }
    panic!("never worked on by {by}: {}", fixture.status())
}

fn said(fixture: &Fixture, words: &[&str]) -> String {
    let said = fixture.planctl(words);
    assert_eq!(said.code, 0, "{said:?}");
    said.out + &said.err
}

#[test]
fn a_run_that_nobody_works_on_says_so_everywhere() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let mut going = fixture.start(&["run", "p.md", "--approve", "--exec", FOREVER]);
    going.hear("work=out");
    until(&fixture, &Value::from("run"));
    for words in [&["status"][..], &["ls"], &["status", "p-1"], &["run", "show", "p-1"]] {
        let out = said(&fixture, words);
        assert!(!out.contains("nobody works on it"), "{words:?}: {out}");
    }
    assert!(said(&fixture, &["status", "p-1"]).contains("next: planctl watch p-1"));

    going.signal(Signal::KILL);
    going.hear_the_end();
    let view = until(&fixture, &Value::Null);
    assert_eq!(view["state"], "running", "{view}");
    assert_eq!(fixture.json(&["ls", "--json"])["runs"][0]["worked_on_by"], Value::Null);
    for words in [&["status"][..], &["ls"], &["status", "p-1"], &["run", "show", "p-1"]] {
        let out = said(&fixture, words);
        assert!(out.contains("nobody works on it"), "{words:?}: {out}");
        assert!(!out.contains("working"), "{words:?}: {out}");
    }
    assert!(said(&fixture, &["status", "p-1"]).contains("next: planctl resume p-1"));
    let mut watching = fixture.start(&["watch", "p-1"]);
    watching.hear("nobody works on it: planctl resume p-1").signal(Signal::INT);
    let said = watching.end();
    assert!(said.err.contains("detached from p-1: nobody works on it"), "{said:?}");
}

#[test]
fn a_run_whose_state_directory_is_moved_away_ends_and_goes_on_once_it_is_back() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let going =
        fixture.start(&["run", "p.md", "--approve", "--exec", "touch begun; test -e done-1 || sleep 600"]);
    while !fixture.path("begun").exists() {
        std::thread::yield_now();
    }
    let state = fixture.state();
    let moved = state.with_extension("moved");
    std::fs::rename(&state, &moved).unwrap();
    let said = going.end();
    let words = format!("the state directory {} was moved or deleted", state.display());
    assert!(said.code == 75 && said.err.contains(&words), "{said:?}");
    std::fs::remove_dir_all(&state).ok();
    std::fs::rename(&moved, &state).unwrap();
    fixture.write("done-1", "");
    let said = fixture.planctl(&["resume", "p-1"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["state"], "done", "{}", fixture.status());
}

#[test]
fn a_process_that_stops_says_whether_others_go_on_and_the_clock_stands_still_once_nobody_does() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let mut going = fixture.start(&["run", "p.md", "--approve", "--exec", FOREVER]);
    going.hear("work=out");
    let id = until(&fixture, &Value::from("run"))["id"].as_str().unwrap().to_owned();
    let beside = fixture.start(&["resume", "p-1"]);
    let workers = || {
        let locks = std::fs::read_dir(fixture.state().join("instances")).unwrap();
        let notes = locks.filter_map(|lock| std::fs::read_to_string(lock.ok()?.path()).ok());
        notes.filter(|note| note.contains(&id)).count()
    };
    while workers() < 2 {
        std::thread::yield_now();
    }
    beside.signal(Signal::INT);
    let said = beside.end();
    assert!(said.code == 130 && said.err.contains("stopped here; p-1 goes on"), "{said:?}");
    assert!(said.err.trim_end().ends_with("planctl watch p-1"), "{said:?}");
    assert_eq!(fixture.status()["worked_on_by"], "run");

    going.signal(Signal::INT);
    let said = going.end();
    assert!(said.err.contains("stopped; planctl resume p-1\n"), "{said:?}");
    let seconds = || fixture.status()["spent"]["seconds"].as_f64().unwrap();
    let stopped = seconds();
    later(&fixture, "10 seconds");
    assert_eq!(seconds(), stopped, "p73: nobody works on it");
    assert_eq!(fixture.planctl(&["pause", "p-1"]).code, 0);
    assert!(seconds() < stopped + 9.0, "p73: nobody worked on it: {} after {stopped}", seconds());
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a_daemon_that_takes_up_a_run_counts_no_time_between_the_one_before_and_itself() {
    let mut house = House::new();
    one_step(&house.fixture);
    said(&house.fixture, &["run", "p.md", "--approve", "-d", "--exec", FOREVER]);
    house.until("p-1", "running");
    house.until_sql("select count(*) from items where state = 'leased'", "1");
    said(&house.fixture, &["daemon", "stop"]);
    let seconds = |house: &House| house.fixture.status()["spent"]["seconds"].as_f64().unwrap();
    let stopped = seconds(&house);
    later(&house.fixture, "1 hour");
    assert_eq!(seconds(&house), stopped, "p73: nobody works on it");
    house.start_again();
    house.until_sql("select count(*) from items where state = 'leased'", "1");
    let counted = seconds(&house);
    assert!(counted < stopped + 600.0, "p73: nobody worked on it: {counted} after {stopped}");
}

#[test]
fn the_hint_after_an_answer_knows_whether_somebody_works_on_the_run() {
    let fixture = Fixture::new();
    one_step(&fixture);
    let stuck = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(stuck.code, 3, "{stuck:?}");
    assert_eq!(until(&fixture, &Value::Null)["state"], "waiting");
    let alone = said(&fixture, &["approvals", "retry", &fixture.ask()]);
    assert!(alone.trim_end().ends_with("next: planctl resume p-1"), "{alone}");

    let mut going = fixture.start(&["resume", "p-1"]);
    going.hear("waiting for you");
    let beside = said(&fixture, &["approvals", "retry", &fixture.ask()]);
    assert!(beside.trim_end().ends_with("next: planctl watch p-1"), "{beside}");
    going.hear("waiting for you").signal(Signal::INT);
    going.end();
}

#[test]
fn beside_a_daemon_somebody_works_on_a_run_where_a_worker_of_its_role_is_there() {
    let house = House::new();
    let run = house.run("p", "word");
    let view = house.until(&run, "running");
    assert_eq!(view["worked_on_by"], Value::Null, "nothing serves coder: {view}");
    let out = said(&house.fixture, &["status", &run]);
    assert!(out.contains("waiting for a worker of role coder"), "{out}");
    assert!(said(&house.fixture, &["status"]).contains("nobody works on it"));

    // A worker that asks for another role, and one that has the work.
    let ask = |roles: &str| Ask { body: Some(format!(r#"{{"roles": ["{roles}"]}}"#)), ..Ask::default() };
    house.local("POST", "/v1/items/claim", &ask("tester"));
    assert_eq!(house.until(&run, "running")["worked_on_by"], Value::Null);
    house.claim();
    assert_eq!(house.until(&run, "running")["worked_on_by"], "worker");
    assert!(!said(&house.fixture, &["status"]).contains("nobody works on it"));
}

#[test]
fn a_run_whose_only_worker_is_paused_says_how_it_is_resumed() {
    let house = House::new();
    let fixture = &house.fixture;
    let claim = ["item", "claim", "--role", "coder", "--name", "pod 7", "--no-wait"];
    assert_eq!(fixture.planctl(&claim).code, 10);
    said(fixture, &["worker", "pause", "pod 7"]);
    one_step(fixture);
    said(fixture, &["run", "p.md", "--approve", "-d"]);
    house.until("p-1", "running");
    let resume = "next: planctl worker resume 'pod 7'";
    let out = said(fixture, &["status", "p-1"]);
    assert!(
        out.contains("waiting for a worker of role coder; pod 7 is paused") && out.contains(resume),
        "{out}"
    );
    let out = said(fixture, &["why", "p-1"]);
    assert!(out.contains(resume), "{out}");
    let why = fixture.json(&["why", "p-1", "--json"]);
    assert_eq!(why["next"], serde_json::json!({"do": "resume_worker", "worker": "pod 7"}), "{why}");
    assert_eq!(fixture.status()["waiting_on"]["paused"], "pod 7");
    assert!(said(fixture, &["ls"]).contains("worker pod 7, paused"));
    // Another one asks for the role's work.
    assert_eq!(fixture.planctl(&["item", "claim", "--role", "coder", "--name", "b", "--no-wait"]).code, 0);
    assert_eq!(fixture.status()["waiting_on"], Value::Null);
}

#[test]
fn a_daemon_works_on_the_runs_whose_roles_it_serves() {
    let house = House::new();
    one_step(&house.fixture);
    said(&house.fixture, &["run", "p.md", "--approve", "-d", "--exec", FOREVER]);
    house.until("p-1", "running");
    until(&house.fixture, &Value::from("daemon"));
    house.kill();
    until(&house.fixture, &Value::Null);
    assert!(said(&house.fixture, &["ls"]).contains("nobody works on it"));
}

#[test]
fn the_approval_prompt_misses_no_worker_that_is_there() {
    use crate::console::Console;

    let missing = "no worker serves coder: ";
    let prompt = |fixture: &Fixture| {
        let mut console = Console::new(fixture, 100, "planctl run p.md");
        console.hear("run this?").keys("n\n");
        console.end().1
    };
    let house = House::new();
    one_step(&house.fixture);
    let printed = prompt(&house.fixture);
    assert!(printed.contains(missing), "{printed}");
    let ask = Ask { body: Some(r#"{"roles": ["coder"]}"#.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &ask).status, 204);
    let printed = prompt(&house.fixture);
    assert!(!printed.contains(missing), "a worker of coder was there a moment ago: {printed}");
    assert!(!printed.contains("no worker configured"), "{printed}");

    let serving = Fixture::new();
    one_step(&serving);
    let mut dev = serving.start(&["dev", "--exec", "true"]);
    dev.hear("Ctrl-C stops all of it");
    let printed = prompt(&serving);
    assert!(!printed.contains(missing), "this daemon serves what nothing else does: {printed}");
    dev.signal(Signal::INT);
    dev.end();
}
