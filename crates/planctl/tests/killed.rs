//! Straight through, and with a `kill -9` of the real process after every transition: path and result are the same.
//!
//! Transitions are rationed. A trigger in the test's database lets one be stored for each ticket that the test gives and
//! holds every other until there is one, so a process makes one transition and is then killed, wherever it was by that
//! time: the next process finds what the dead one left. Each life adds one transition, so the lives come to an end.
//!
//! Where branches are under way at once, a life that does no more than end the lease of one of them ends with what it has
//! claimed of another, and no branch may ever come to its report. So only every third of these lives ends there.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    dead_code,
    reason = "a test that meets what it does not expect has failed; the fixture is shared"
)]

#[path = "killed/plans.rs"]
mod plans;
#[path = "killed/tickets.rs"]
mod tickets;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::fixture::{self, Fixture, Going, Said};
use rustix::process::Signal;
use serde_json::Value;
use tickets::Tickets;

/// Longer than one transition takes; a wait this long has found a hang.
const WAIT_MAX: Duration = Duration::from_secs(180);

/// Lives within which a run must have ended.
const LIVES_MAX: usize = 300;

/// A plan, and how everybody behaves in it.
pub struct Script {
    /// The plan's file.
    plan: &'static str,
    /// Says that the workspace is the one of the starter plans, whose worker is told this.
    scenario: Option<&'static str>,
    /// The files of the workspace before.
    files: &'static [(&'static str, &'static str)],
    /// The worker's command; it does the same each time for the same prompt.
    worker: &'static str,
    /// The answers of people, one ask after another.
    answers: &'static [&'static [&'static str]],
    /// A plan that waits for a declared answer does not leave the run to people.
    waits_for_time: bool,
    /// Branches are under way at once, so that what they do has no one order.
    at_once: bool,
    /// How the run ends.
    end: &'static str,
    /// Words that its path must have, so that the test is about what it says it is about.
    met: &'static [&'static str],
}

/// The part that must be the same both ways.
#[derive(PartialEq, Debug)]
struct Story {
    /// Events and their facts, run by run.
    path: BTreeMap<String, Vec<String>>,
    /// Where each step stands in the end.
    steps: BTreeMap<String, Vec<Value>>,
    files: BTreeMap<String, String>,
}

/// Plays a script both ways.
fn both_ways(script: &Script) {
    let straight = place(script);
    let mut said = start(&straight, script).end();
    for answer in script.answers {
        assert_eq!(said.code, 3, "{said:?}");
        give(&straight, answer);
        said = start(&straight, script).end();
    }
    let straight = story(&straight, script);
    for words in script.met {
        let is_met = straight.path.values().flatten().any(|line| line.contains(words));
        assert!(is_met, "{words}: {:#?}", straight.path);
    }

    let begun = Instant::now();
    let fixture = place(script);
    let lives = live_and_die(&fixture, script);
    let killed = story(&fixture, script);
    eprintln!("{}: {lives} lives in {:.1?}", script.plan, begun.elapsed());
    assert_eq!(straight.path, killed.path, "the path");
    assert_eq!(straight, killed, "the result");
}

fn place(script: &Script) -> Fixture {
    let fixture = Fixture::new();
    if script.scenario.is_some() {
        std::fs::remove_dir(fixture.path("")).unwrap();
        let setup = starters().join("setup.sh");
        let made = Command::new("bash").arg(setup).arg(fixture.path("")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        return fixture;
    }
    for (name, text) in script.files {
        fixture.write(name, text);
    }
    fixture::git(&fixture.path(""), &["init", "--quiet"]);
    fixture::git(&fixture.path(""), &["add", "--all"]);
    fixture::git(&fixture.path(""), &["commit", "--quiet", "--message", "all"]);
    fixture
}

fn starters() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/starters")
}

/// The command that begins the run, or takes it up.
fn start(fixture: &Fixture, script: &Script) -> Going {
    let worker = match script.scenario {
        Some(scenario) => format!("bash {} {scenario}", starters().join("worker.sh").display()),
        None => script.worker.to_owned(),
    };
    let mut words = vec!["plan", "run", script.plan, "--approve", "--exec", &worker];
    if !script.waits_for_time {
        words.push("--no-wait");
    }
    fixture.start(&words)
}

/// Answers the one ask that is open; `ID` stands for its number.
fn give(fixture: &Fixture, answer: &[&str]) {
    let ask = fixture.ask();
    let answer: Vec<&str> =
        ["approvals", answer[0], &ask].into_iter().chain(answer[1..].iter().copied()).collect();
    let said = fixture.planctl(&answer);
    assert_eq!(said.code, 0, "{said:?}");
}

/// Has one process after another make one transition each, until the run is over; returns how many there were.
fn live_and_die(fixture: &Fixture, script: &Script) -> usize {
    // The tables are there from the first command on.
    assert_eq!(fixture.planctl(&["ls"]).code, 0);
    let mut tickets = Tickets::install(fixture);
    let mut answers = script.answers.iter();
    for life in 1..LIVES_MAX {
        tickets.give();
        let killed = one_life(start(fixture, script), &mut tickets, life % 3 == 0);
        tickets.reap();
        if tickets.is_over() {
            return life;
        }
        let Err(said) = killed else { continue };
        assert_eq!(said.code, 3, "{}: life {life} ended by itself: {said:?}", script.plan);
        let answer = answers.next().unwrap_or_else(|| {
            let asked = fixture.planctl(&["approvals", "show", &fixture.ask()]);
            panic!("{}: nobody has an answer: {said:?}\n{}", script.plan, asked.out)
        });
        tickets.give();
        give(fixture, answer);
        assert!(tickets.is_used(), "an answer is a transition");
        if tickets.is_over() {
            return life;
        }
    }
    panic!("{}: the run does not end: {}", script.plan, fixture.status());
}

/// Kills a process as soon as it has made its transition; one that has none to make ends by itself. The end of a dead one's
/// lease is one only where `leases_count`.
fn one_life(mut going: Going, tickets: &mut Tickets, leases_count: bool) -> Result<(), Said> {
    let begun = Instant::now();
    loop {
        // In this order, since its last transition precedes its end.
        let is_over = going.is_over();
        if tickets.is_used() {
            if !is_over && !leases_count && tickets.was_a_lease() {
                tickets.give();
                continue;
            }
            if !is_over {
                going.signal(Signal::KILL);
            }
            going.hear_the_end();
            return Ok(());
        }
        if is_over {
            return Err(going.end());
        }
        assert!(begun.elapsed() < WAIT_MAX, "it neither goes on nor ends");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads what became of the runs: each is whole, and its history sound.
fn story(fixture: &Fixture, script: &Script) -> Story {
    let audit = fixture.planctl(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
    let list = fixture.json(&["ls", "--json"]);
    let runs: Vec<&str> =
        list["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    let (mut path, mut steps) = (BTreeMap::new(), BTreeMap::new());
    for run in runs {
        path.insert(run.to_owned(), path_of(fixture, run, script.at_once));
        let status = fixture.json(&["plan", "status", run, "--json"]);
        let stem = Path::new(script.plan).file_stem().unwrap().to_str().unwrap();
        if run.starts_with(stem) {
            assert_eq!(status["state"], script.end, "{status:#}");
        }
        let stand = |step: &Value| {
            let kept = ["node", "state", "attempts", "visits", "verdict"];
            kept.iter().map(|key| step[key].clone()).collect::<Value>()
        };
        steps.insert(run.to_owned(), status["steps"].as_array().unwrap().iter().map(stand).collect());
    }
    Story { path, steps, files: files(&fixture.path(""), Path::new("")) }
}

/// Lists what followed in a run, without what our own deaths added.
fn path_of(fixture: &Fixture, run: &str, at_once: bool) -> Vec<String> {
    let said = fixture.planctl(&["events", "--run", run, "--json"]);
    let events: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{run}: the history has gaps");
    let kept = [
        "node", "visit", "attempt", "from", "to", "signal", "on", "label", "outcome", "verdict", "met",
        "failed", "kind", "reason", "answer", "option", "end", "files", "retry", "left",
    ];
    let line = |event: &Value| {
        let name = event["event"].as_str().unwrap();
        let is_fact =
            !name.contains('.') && !["node_interrupted", "gate_repeated", "node_queued"].contains(&name);
        is_fact.then(|| {
            let of =
                kept.iter().filter(|key| !event[key].is_null()).map(|key| format!(" {key}={}", event[key]));
            format!("{name}{}", of.collect::<String>())
        })
    };
    let mut lines: Vec<String> = events.iter().filter_map(line).collect();
    let mut judged = BTreeSet::new();
    let verdicts = events.iter().filter(|event| event["event"] == "node_verified");
    for verdict in verdicts {
        let attempt = (verdict["node"].to_string(), verdict["attempt"].to_string());
        assert!(judged.insert(attempt), "{run}: an attempt has one verdict: {lines:#?}");
    }
    if at_once {
        lines.sort();
    }
    lines
}

/// Reads the files of a workspace, without plans, in which marks are drawn off the path of the run, and without drafts of
/// them, of which a killed process may leave one to the next that draws.
fn files(folder: &Path, named: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder.join(named)).unwrap().flatten() {
        let name = named.join(entry.file_name());
        let (is_folder, shown) = (entry.file_type().unwrap().is_dir(), name.display().to_string());
        if is_folder && shown != ".git" {
            found.extend(files(folder, &name));
        } else if !is_folder && !shown.ends_with(".md") && !shown.starts_with(".planctl-") {
            found.insert(shown, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
    found
}

macro_rules! scripts {
    ($($test:ident $script:ident)*) => {
        $(#[test]
        fn $test() {
            both_ways(&plans::$script);
        })*
    };
}

scripts! {
    k7_p10_a_loop_with_counted_visits LOOP
    k7_p10_decisions_by_conditions_and_by_a_command DECISIONS
    k7_p10_a_fork_and_a_join_of_all ALL
    k7_p10_a_fork_and_a_join_of_any ANY
    k7_p10_branches_in_worktrees APART
    k7_p10_a_checkpoint_that_is_returned_to CHECKPOINT
    k7_p10_a_goal_gate GOAL
    k7_p10_an_answer_that_is_given_by_time DEFAULT
    k7_p10_an_escalation_and_a_choice_of_a_person PEOPLE
    k7_p10_a_plan_within_a_plan NESTED
    k7_p10_a_plan_within_a_plan_that_asks_and_fails NESTED_FAILS
    k7_p10_h_10_the_starter_plan_for_a_bug BUGFIX
    k7_p10_h_10_the_starter_plan_for_an_api API
}
