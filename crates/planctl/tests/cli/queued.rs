//! Runs that wait for the workspace: they know where the run stands that has it, and say what to type for that one.

use rustix::process::Signal;

use crate::fixture::{Fixture, plan};
use crate::http::house::House;

fn two_plans(fixture: &Fixture) {
    for name in ["a", "b"] {
        let step = ("One", &*format!("test -e done-{name}"), "escalate");
        fixture.write(&format!("{name}.md"), &plan("One step", "5 minutes", &[step]));
    }
}

fn run(file: &'static str) -> [&'static str; 6] {
    ["run", file, "--approve", "--no-wait", "--exec", "true"]
}

#[test]
fn behind_a_run_that_nobody_works_on_no_wait_ends_and_every_hint_names_that_run() {
    let fixture = Fixture::new();
    two_plans(&fixture);
    let mut first =
        fixture.start(&["run", "a.md", "--approve", "--exec", "test -e go || sleep 600; touch done-a"]);
    first.hear("work=out").signal(Signal::KILL);
    first.hear_the_end();

    let waits =
        "run a-1 has the workspace, and nobody works on it: planctl resume a-1, or planctl cancel a-1";
    let next = "next: planctl resume a-1\n      planctl cancel a-1";
    let said =
        fixture.planctl(&["run", "b.md", "--approve", "--no-wait", "--exec", "test -e go && touch done-b"]);
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.out.contains(waits) && said.err.contains(next), "{said:?}");
    for (words, line) in [(["why", "b-1"], waits), (["status", "b-1"], "waiting for run a-1")] {
        let said = fixture.planctl(&words);
        assert!(said.out.contains(line) && said.out.contains(next), "{words:?}: {said:?}");
    }
    let holder = &fixture.json(&["status", "b-1", "--json"])["holder"];
    assert_eq!((&holder["run"], &holder["state"]), (&"a-1".into(), &"running".into()), "{holder}");
    let mut waiting = fixture.start(&["resume", "b-1"]);
    waiting.hear(waits).signal(Signal::INT);
    waiting.end();

    fixture.write("go", "");
    let said = fixture.planctl(&["resume", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("a-1 has the workspace for which b-1 waits, and is taken up"), "{said:?}");
    assert_eq!(fixture.json(&["status", "a-1", "--json"])["state"], "done");
    assert_eq!(fixture.planctl(&["resume", "--no-wait"]).code, 0);
    assert_eq!(fixture.status()["run"], "b-1");
    assert_eq!(fixture.status()["state"], "done");
}

fn behind_a_question(fixture: &Fixture) {
    two_plans(fixture);
    let said = fixture.planctl(&run("a.md"));
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let said = fixture.planctl(&run("b.md"));
    assert_eq!(said.code, 3, "{said:?}");
    let waits = format!("run a-1 has the workspace, and waits for you: planctl approvals show {ask}");
    let next = format!("next: planctl approvals show {ask}");
    assert!(said.out.contains(&waits) && said.err.contains(&next), "{said:?}");
    let why = fixture.planctl(&["why", "b-1"]);
    assert!(why.out.contains(&waits) && why.out.contains(&next), "{why:?}");
    let status = fixture.planctl(&["status", "b-1", "--exit-code"]);
    assert_eq!(status.code, 3);
    assert!(status.out.contains(&next), "{status:?}");
}

#[test]
fn behind_a_run_that_waits_for_a_person_no_wait_ends_with_that_person_s_ask() {
    behind_a_question(&Fixture::new());
}

#[test]
fn behind_a_run_that_waits_for_a_person_no_wait_ends_beside_a_daemon_too() {
    behind_a_question(&House::new().fixture);
}

#[test]
fn beside_a_daemon_no_wait_ends_only_where_nothing_moves() {
    let house = House::new();
    house.fixture.write(
        "two.dot",
        "digraph two { start [shape=Mdiamond]; done [shape=Msquare]; both [shape=component]; meet [shape=tripleoctagon]\n\
         work [prompt=\"Work.\", contract=\"test -e worked\", target=coder]\n\
         q [shape=hexagon, label=\"Go on?\"]\n\
         start -> both; both -> work -> meet; both -> q; q -> meet [label=\"[Y] Yes\"]; meet -> done }\n",
    );
    let exec = "until test -e go; do sleep 0.05; done; touch worked";
    let mut going = house.fixture.start(&["run", "two.dot", "--approve", "--no-wait", "--exec", exec]);
    going.hear("ask=choice");
    house.fixture.write("go", "");
    let said = going.end();
    assert_eq!(said.code, 3, "{said:?}");
    assert!(house.fixture.path("worked").exists());
}

#[test]
fn no_wait_waits_for_what_follows_from_a_timer_that_is_due() {
    let fixture = Fixture::new();
    fixture.write(
        "due.dot",
        "digraph due { start [shape=Mdiamond]; done [shape=Msquare]\n\
         q [shape=hexagon, label=\"Ship it?\", human.default_choice=\"[N] Not yet\", timeout=1h]\n\
         work [prompt=\"Work.\", contract=\"test -e worked\", target=coder]\n\
         start -> q; q -> done [label=\"[Y] Yes\"]; q -> work [label=\"[N] Not yet\"]; work -> done }\n",
    );
    let said = fixture.planctl(&["run", "due.dot", "--approve", "--no-wait", "--exec", "touch worked"]);
    assert_eq!(said.code, 3, "{said:?}");
    fixture.sql("update timers set at = clock_timestamp() - interval '1 second'");
    let said = fixture.planctl(&["resume", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    // The nodes of a graph are named by a process that did not see them begin.
    assert!(said.err.contains("node=work attempt=1 settled=passed"), "{said:?}");
}
