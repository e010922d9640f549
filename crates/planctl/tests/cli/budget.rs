//! Budgets: spent as workers report, held before they are over, raised by a person.

use crate::fixture::{Fixture, plan};

const WORKER: &str = r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","text":"ok","usage":{"input_tokens":900,"output_tokens":100,"cost_usd":0.25}}' > $PLANCTL_RESULT_FILE"#;

fn three_steps(budget: &str) -> String {
    let step = |number: u32| format!("test -e done-{number}");
    plan(
        "Spend",
        budget,
        &[("One", &step(1), "escalate"), ("Two", &step(2), "escalate"), ("Three", &step(3), "escalate")],
    )
}

#[test]
fn a_run_that_would_go_over_its_budget_holds_with_exit_6_and_goes_on_when_raised() {
    let fixture = Fixture::new();
    fixture.write("p.md", &three_steps("max 2500 tokens, $10, 5 minutes"));
    let said = fixture.run(WORKER);
    assert_eq!(said.code, 6, "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (status["spent"]["tokens"].as_u64(), status["spent"]["usd"].as_f64()),
        (Some(2000), Some(0.5))
    );
    assert_eq!(status["waiting_on"]["kind"], "budget");
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 6);
    assert!(!fixture.path("done-3").exists());

    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    assert_eq!(
        (page["shortfall"]["part"].as_str(), page["shortfall"]["limit"].as_f64()),
        (Some("tokens"), Some(2500.0)),
        "{page}"
    );
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 5, "a budget is raised, not retried");
    assert_eq!(fixture.planctl(&["approvals", "raise", &ask]).code, 2, "by something");
    assert_eq!(
        fixture.planctl(&["approvals", "raise", &ask, "--tokens", "2k", "--note", "worth it"]).code,
        0
    );
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["budget"]["tokens"], 4500);
}

#[test]
fn usage_that_is_not_reported_is_shown_as_unmetered_and_not_charged() {
    let fixture = Fixture::new();
    fixture.write("p.md", &three_steps("max 10 tokens, $10, 5 minutes"));
    let said = fixture.run("touch done-$PLANCTL_STEP");
    assert_eq!(said.code, 0, "{said:?}");
    let spent = &fixture.status()["spent"];
    assert_eq!((spent["tokens"].as_u64(), spent["unmetered"].as_u64()), (Some(0), Some(3)));
    assert!(!said.out.contains("unmetered"), "{said:?}");
    let said = fixture.planctl(&["-v", "ls"]);
    assert!(said.out.contains("3 unmetered"), "{said:?}");
}

#[test]
fn p15_a_person_raises_the_budget_of_a_sub_plan_up_to_what_is_left_around_it() {
    let fixture = Fixture::new();
    fixture.write("inner.md", &three_steps("max 1500 tokens, 5 minutes"));
    fixture.write(
        "around.dot",
        "digraph around { graph [budget=\"4000 tokens, 10 minutes\"] start exit \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit] start -> inner -> exit }",
    );
    let said = fixture.planctl(&["plan", "run", "around.dot", "--approve", "--no-wait", "--exec", WORKER]);
    assert_eq!(said.code, 6, "{said:?}");
    let ask = fixture.ask();
    let raise = |by: &[&str]| fixture.planctl(&[&["approvals", "raise", &ask], by].concat());
    for (by, words) in [
        ("--tokens=2501", "to 4001 tokens: 4k tokens is the most that inner-1 may use"),
        ("--time=1h", "to 1 h"),
    ] {
        let said = raise(&[by]);
        assert_eq!(said.code, 5, "{by}: {said:?}");
        assert!(said.err.contains(words), "{by}: {said:?}");
        assert!(said.err.contains("what is left of the budget of around-1"), "{by}: {said:?}");
    }
    let reserved =
        || fixture.sql("select head -> 'reserved' -> 'inner' ->> 'tokens' from runs where name = 'around-1'");
    assert_eq!(reserved(), "1500");
    assert_eq!(raise(&["--tokens=2500"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "around-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.json(&["plan", "status", "around-1", "--json"]);
    assert_eq!(status["spent"]["tokens"], 3000, "{status}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
    // The raise by a person was set aside around it, before anything else could count on it.
    let aside = "select (select min(at) from history where name = 'clock.set_aside' and body::text like '%\"tokens\":4000%') \
                 < (select min(h.at) from history h where h.name = 'human.answered' and h.body::text like '%raise%')";
    assert_eq!(fixture.sql(aside), "t");
}

#[test]
fn p15_a_sub_plan_that_is_revised_to_a_larger_budget_or_to_none_uses_no_more_than_is_left_around_it() {
    let fixture = Fixture::new();
    let inner = |budget: &str, contract: &str| {
        plan("Inner", budget, &[("One", contract, "escalate"), ("Two", "test -e done-2", "escalate")])
    };
    fixture.write("inner.md", &inner("max 3k tokens, 5 minutes", "test -e never"));
    fixture.write(
        "around.dot",
        "digraph around { graph [budget=\"8k tokens, 10 minutes\"] start exit \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit] start -> inner -> exit }",
    );
    let said = fixture.planctl(&["plan", "run", "around.dot", "--approve", "--no-wait", "--exec", WORKER]);
    assert_eq!(said.code, 3, "{said:?}");
    let tokens = |sql: &str| fixture.sql(&format!("select {sql} from runs where name = 'inner-1'"));
    let limit = "head -> 'budget' ->> 'tokens'";
    assert_eq!(tokens(limit), "3000");
    let revised = |text: &str| {
        fixture.write("inner.md", text);
        let said = fixture.planctl(&["approve", "inner.md"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(tokens(limit), "8000", "as much as the plan around it has");
    };
    assert_eq!(fixture.planctl(&["approvals", "revise", "--note", "it needs more"]).code, 0);
    revised(&inner("max 9k tokens, 5 minutes", "test -e never"));
    let aside = "select head -> 'reserved' -> 'inner' ->> 'tokens' from runs where name = 'around-1'";
    assert_eq!(fixture.sql(aside), "8000", "no branch beside it counts on the same rest");
    let said = fixture.planctl(&["plan", "resume", "around-1", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["approvals", "revise", "--note", "without a limit of its own"]).code, 0);
    revised(&inner("5 minutes", "test -e done-1"));
    let said = fixture.planctl(&["plan", "resume", "around-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

const CLOCKS: &str = "select count(*) from runs where head ->> 'clock_since' is not null";

#[test]
fn p73_the_clock_of_a_run_stands_still_while_its_sub_plan_waits_for_a_person() {
    let fixture = Fixture::new();
    fixture.write("inner.md", &plan("Inner", "5 minutes", &[("One", "test -e never", "escalate")]));
    fixture.write(
        "middle.dot",
        "digraph middle { graph [budget=\"10 minutes\"] start exit \
         inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_approval=inherit] start -> inner -> exit }",
    );
    fixture.write(
        "around.dot",
        "digraph around { graph [budget=\"10 minutes\"] start exit \
         middle [shape=house, stack.child_dotfile=\"middle.dot\", stack.child_approval=inherit] start -> middle -> exit }",
    );
    let said = fixture.planctl(&["plan", "run", "around.dot", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.sql("select count(*) from runs where status = 'active'"), "3");
    assert_eq!(fixture.sql(CLOCKS), "0", "nobody works, in any of the three");
    let timers = "select count(*) from timers where timer = 'budget'";
    assert_eq!(fixture.sql(timers), "0");
    assert_eq!(fixture.planctl(&["approvals", "skip", "--note", "not needed"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "around-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p15_runs_share_the_budget_of_a_day_and_wait_until_it_is_raised_for_that_day() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[budget]\nper_day = \"1500 tokens\"\ntime_zone = \"Europe/Berlin\"\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture.write("p.md", &three_steps("max 50k tokens, $10, 5 minutes"));
    fixture.write("q.md", &three_steps("max 50k tokens, $10, 5 minutes"));
    let run =
        |plan: &str| fixture.planctl(&["plan", "run", plan, "--approve", "--no-wait", "--exec", WORKER]);
    let said = run("p.md");
    assert_eq!(said.code, 6, "{said:?}");
    let status = fixture.status();
    assert_eq!(
        (&status["waiting_on"]["kind"], &status["spent"]["tokens"]),
        (&"day_budget".into(), &2000.into())
    );
    // Where a run is shown, so is the budget that it shares.
    let of_day = "today's budget of this project: 2000 tok of 1500 · renews in ";
    for command in [["status", "p-1"].as_slice(), &["run", "show", "p-1"], &["status"]] {
        let said = fixture.planctl(command);
        assert!(said.out.contains(of_day), "{command:?}: {said:?}");
    }
    let day = &status["day_budgets"][0];
    assert_eq!(
        (&day["of"], &day["tokens"], &day["limit"]["tokens"]),
        (&"project".into(), &2000.into(), &1500.into())
    );
    assert_eq!(fixture.json(&["status", "--json"])["day_budgets"][0], *day);

    let ask = fixture.ask();
    let shown = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(
        shown.contains(
            "today's budget of this project is used up (2000 tokens of 1500 tokens); the rest of the plan, 1 step, needs about"
        ),
        "{shown}"
    );
    assert!(shown.contains("raise adds to today's budget alone; it goes on by itself at "), "{shown}");
    let said = fixture.planctl(&["approvals", "raise", &ask, "--cost", "1"]);
    assert_eq!(said.code, 5, "money is not what is short: {said:?}");
    assert_eq!(fixture.planctl(&["approvals", "raise", &ask, "--tokens", "1000"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["budget"]["tokens"], 50_000, "the run's own budget is what it was");

    // 3000 of 2500 tokens are used: another run of the project begins no step.
    let said = run("q.md");
    assert_eq!((said.code, &fixture.status()["spent"]["tokens"]), (6, &0.into()), "{said:?}");
    // A day later nothing of that counts.
    fixture.sql("update used set quarter = quarter - interval '1 day'; update day_raises set at = at - interval '1 day'");
    let said = fixture.planctl(&["plan", "resume", "q-1", "--no-wait"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert_eq!(fixture.status()["spent"]["tokens"], 2000, "of a day in which 1500 may be used");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p73_the_clock_of_a_run_stands_still_from_when_its_process_was_killed() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Long", "5 minutes", &[("One", "test -e never", "escalate")]));
    let mut going =
        fixture.start(&["plan", "run", "p.md", "--approve", "--exec", "touch begun; exec sleep 600"]);
    while !fixture.path("begun").exists() {
        assert!(!going.is_over(), "it ended before the work began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    going.signal(rustix::process::Signal::KILL);
    going.end();
    // An hour later, by the clock that decides.
    fixture.sql(
        "create function clock_timestamp() returns timestamptz language sql volatile as \
         $now$ select pg_catalog.clock_timestamp() + interval '1 hour' $now$; \
         do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$",
    );
    let seconds = || fixture.status()["spent"]["seconds"].as_f64().unwrap();
    assert!(seconds() < 120.0, "{}", seconds());
    assert_eq!(fixture.planctl(&["pause", "p-1"]).code, 0);
    assert!(seconds() < 120.0, "{}", seconds());
    let taken_off = "select count(*) from history where name = 'clock.unattended'";
    assert_eq!(fixture.sql(taken_off), "1");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}
