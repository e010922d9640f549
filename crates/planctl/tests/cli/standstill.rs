//! A machine that sleeps, as a laptop that is closed: the database's clock goes on, and no process does.

use serde_json::Value;

use crate::fixture::{Fixture, plan};
use crate::http::house::House;

/// Works until it may end.
const WORKER: &str = "touch begun; until [ -e go ]; do sleep 0.02; done; touch done-1";

/// Leases that are over neither by their time nor by that of their work.
const HELD: &str = "select count(*) from items where state = 'leased' and lease_until > clock_timestamp() \
    and hard_deadline > clock_timestamp()";

/// Has the clock that decides go by what a table says, for all sessions that begin from here on.
fn prepare_clock(fixture: &Fixture) {
    fixture.sql(
        "create table slept (span interval); insert into slept values ('0'); \
         create function clock_timestamp() returns timestamptz language sql volatile as \
         $now$ select pg_catalog.clock_timestamp() + (select span from public.slept) $now$; \
         do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$",
    );
}

/// Sleeps for eight hours: of this machine's steady clock nothing passes.
fn sleep(fixture: &Fixture) {
    fixture.sql("update slept set span = span + interval '8 hours'");
}

fn one_step(fixture: &Fixture) {
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", "test -e done-1", "escalate")]));
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut rounds = 0..3000;
    while !is_so() {
        assert!(rounds.next().is_some(), "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The first attempt passed, nobody took it for lost, and the sleep counts for nothing.
fn must_be_done_at_once(fixture: &Fixture) {
    let view = fixture.status();
    assert_eq!(view["state"], "done", "{view}");
    assert!(view["spent"]["seconds"].as_f64().unwrap() < 300.0, "{view}");
    let mut names = fixture.event_names("p-1");
    // The first event after the sleep takes it off, and two events may do so at once.
    names.dedup();
    let since = names.iter().position(|name| name == "node_entered").unwrap();
    let expected = [
        "node_entered",
        "clock.unattended",
        "agent.reported",
        "harness.evaluated",
        "node_verified",
        "node_settled",
        "edge_followed",
        "plan_completed",
    ];
    assert_eq!(names[since..], expected, "{names:?}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p73_a_run_goes_on_with_its_agent_after_the_machine_slept() {
    let fixture = Fixture::new();
    prepare_clock(&fixture);
    one_step(&fixture);
    let mut going = fixture.start(&["run", "p.md", "--approve", "--exec", WORKER]);
    until("it works", || fixture.path("begun").exists());
    sleep(&fixture);
    until("its lease is extended", || going.is_over() || fixture.sql(HELD) == "1");
    fixture.write("go", "");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done_at_once(&fixture);
}

#[test]
fn p73_a_contract_goes_on_after_the_machine_slept() {
    let fixture = Fixture::new();
    prepare_clock(&fixture);
    let contract = "touch judged; until test -e go; do sleep 0.02; done; test -e done-1";
    fixture.write("p.md", &plan("One step", "5 minutes", &[("One", contract, "escalate")]));
    let mut going = fixture.start(&["run", "p.md", "--approve", "--exec", "touch done-1"]);
    until("it is judged", || fixture.path("judged").exists());
    sleep(&fixture);
    until("its lease is extended", || going.is_over() || fixture.sql(HELD) == "1");
    fixture.write("go", "");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    let view = fixture.status();
    assert!(view["state"] == "done" && view["spent"]["seconds"].as_f64().unwrap() < 300.0, "{view}");
    assert_eq!(fixture.events_named("p-1", "harness.evaluated").len(), 1);
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p73_work_that_is_reported_as_the_machine_wakes_up_counts() {
    let fixture = Fixture::new();
    prepare_clock(&fixture);
    one_step(&fixture);
    let going = fixture.start(&["run", "p.md", "--approve", "--exec", WORKER]);
    until("it works", || fixture.path("begun").exists());
    sleep(&fixture);
    fixture.write("go", "");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    must_be_done_at_once(&fixture);
}

#[test]
fn p73_a_worker_over_http_keeps_its_work_after_the_machine_slept() {
    let mut house = House::closed();
    prepare_clock(&house.fixture);
    house.start_again();
    let fixture = &house.fixture;
    one_step(fixture);
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "-d"]).code, 0);
    let worker = fixture.start(&["worker", "run", "--role", "coder", "--once", "--exec", WORKER]);
    until("it works", || fixture.path("begun").exists());
    sleep(fixture);
    until("its lease is extended", || fixture.sql(HELD) == "1");
    fixture.write("go", "");
    let said = worker.end();
    assert_eq!(said.code, 0, "{said:?}");
    house.until("p-1", "done");
    must_be_done_at_once(&house.fixture);
}

#[test]
fn p73_the_work_of_a_process_that_was_killed_is_taken_up_after_the_machine_slept() {
    let fixture = Fixture::new();
    prepare_clock(&fixture);
    one_step(&fixture);
    let going = fixture.start(&["run", "p.md", "--approve", "--exec", WORKER]);
    until("it works", || fixture.path("begun").exists());
    going.signal(rustix::process::Signal::KILL);
    going.hear_the_end();
    sleep(&fixture);
    fixture.write("go", "");
    let said = fixture.planctl(&["resume", "p-1"]);
    assert_eq!(said.code, 0, "{said:?}");
    let view = fixture.status();
    assert_eq!(view["state"], Value::from("done"), "{view}");
    assert!(view["spent"]["seconds"].as_f64().unwrap() < 300.0, "{view}");
}
