//! The sessions that a command opens at Postgres: each costs the server a process, and most of the time of a short command.

use std::time::{Duration, Instant};

use crate::fixture::{Fixture, plan};

/// Longer than a session takes to end, also on a machine that is busy with other things.
const WAIT_MAX: Duration = Duration::from_secs(180);

/// Counts the sessions that the fixture's database has had.
fn sessions(fixture: &Fixture) -> u64 {
    let mut server = url::Url::parse(&fixture.database_url()).unwrap();
    let database = server.path().trim_start_matches('/').to_owned();
    server.set_path("postgres");
    let count = |text: String| Fixture::sql_of(server.as_str(), &text).parse::<u64>().unwrap();
    let open = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' and backend_type = 'client backend'"
    );
    let began = Instant::now();
    // A session is counted at its end at the latest.
    while count(open.clone()) > 0 {
        assert!(began.elapsed() < WAIT_MAX, "a session of a command that is over goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    count(format!("select sessions from pg_stat_database where datname = '{database}'"))
}

/// Runs a command that must succeed, and returns how many sessions it opened.
fn opened_by(fixture: &Fixture, words: &[&str]) -> u64 {
    let before = sessions(fixture);
    let said = fixture.planctl(words);
    assert_eq!(said.code, 0, "{said:?}");
    sessions(fixture) - before
}

fn one_step() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("plan.md", &plan("One", "5 minutes", &[("Make it", "test -f done", "escalate")]));
    fixture
}

const RUN: &[&str] = &["plan", "run", "plan.md", "--approve", "--exec", "touch done"];

#[test]
fn a_command_that_reads_opens_one_session_and_one_that_needs_no_database_none() {
    let fixture = one_step();
    fixture.planctl(RUN);
    for words in [
        &["run", "ls"][..],
        &["run", "status", "@last"],
        &["run", "events", "@last"],
        &["run", "logs", "@last"],
        &["approvals"],
        &["plan", "ls"],
        &["plan", "show", "plan.md"],
    ] {
        assert_eq!(opened_by(&fixture, words), 1, "{words:?}");
    }
    for words in [&["plan", "verify", "plan.md"][..], &["help"]] {
        assert_eq!(opened_by(&fixture, words), 0, "{words:?}");
    }
}

#[test]
fn a_run_of_one_step_opens_few_sessions() {
    let opened = opened_by(&one_step(), RUN);
    // One for the loops, which take turns at it, more where they wait for long, and one that hears of other processes.
    assert!((1..10).contains(&opened), "{opened} sessions");
}
