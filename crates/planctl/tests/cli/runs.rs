//! Runs from the first command to the last: worked, failed, stopped, taken up, cancelled.

use serde_json::Value;

use crate::fixture::{Fixture, Said, plan};

/// Does the work of each step of these plans, by its number.
const GOOD_WORKER: &str = "touch done-$PLANCTL_STEP";

fn good_plan() -> String {
    plan(
        "Two files",
        "5 minutes",
        &[("One", "test -e done-1", "retry(1), then escalate"), ("Two", "test -e done-2", "escalate")],
    )
}

#[test]
fn a_plan_runs_to_its_end_and_the_file_says_so() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", GOOD_WORKER]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("✓ p-1 done in ") && said.out.contains(" · 2 steps, "), "{said:?}");
    assert!(said.err.contains("step=1 attempt=1 contract=passed exit=0"), "{said:?}");

    let status = fixture.status();
    assert_eq!((status["state"].as_str(), status["run"].as_str()), (Some("done"), Some("p-1")));
    assert_eq!(status["waiting_on"], Value::Null);
    let steps: Vec<(&str, u64, &str)> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (
                step["state"].as_str().unwrap(),
                step["attempts"].as_u64().unwrap(),
                step["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(steps, [("passed", 1, "passed"), ("passed", 1, "passed")]);
    let text = fixture.read("p.md");
    assert!(
        text.contains("status: done") && text.contains("### 1. ✅ One") && text.contains("### 2. ✅ Two"),
        "{text}"
    );
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
}

#[test]
fn a_plan_that_is_not_verified_has_the_same_next_step_by_run_approve_and_verify() {
    let fixture = Fixture::new();
    let plan = good_plan();
    fixture.write("p.md", plan.split_once("---\n\n").map_or("", |(_, text)| text));
    let next = |words: &[&str]| {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 1, "{said:?}");
        let next = said.out.lines().chain(said.err.lines()).find_map(|line| line.strip_prefix("next: "));
        next.map(|next| next.split("     (").next().unwrap_or_default().to_owned())
    };
    for words in [&["verify", "p.md"][..], &["approve", "p.md"], &["run", "p.md", "--exec", "true"]] {
        assert_eq!(next(words).as_deref(), Some("planctl verify --fix p.md"), "{words:?}");
    }
}

#[test]
fn a_worker_that_lies_gets_its_retries_and_then_a_person_is_asked() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Lies", "5 minutes", &[("Fix", "test -e fixed", "retry(2), then escalate")]));
    let said = fixture.run("echo all tests pass; exit 0");
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(said.err.matches("contract=failed exit=1").count(), 3, "{said:?}");
    assert_eq!(said.err.matches("work=reported exit=0 \"all tests pass\"").count(), 3, "{said:?}");
    assert!(said.err.contains("next: planctl approvals show"), "{said:?}");
    let status = fixture.status();
    assert_eq!(status["state"], "waiting");
    assert_eq!(status["waiting_on"]["kind"], "escalation");
    assert_eq!(status["steps"][0]["attempts"], 3);
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 3);
}

#[test]
fn a_worker_that_fails_while_the_contract_passes_has_passed() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let worker = format!("{GOOD_WORKER}; echo I broke everything >&2; exit 1");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", &worker]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.status()["steps"][1]["attempts"], 1);
}

#[test]
fn a_retry_knows_what_failed() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Learn",
            "5 minutes",
            &[(
                "Say",
                "grep -q please word || { echo the magic word is missing; exit 4; }",
                "retry(1), then abort",
            )],
        ),
    );
    let worker = "prompt=$(cat); case $prompt in *'the magic word is missing'*) echo please > word;; *) echo now > word;; esac";
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("attempt=1 contract=failed exit=4 \"the magic word is missing\""), "{said:?}");
    assert_eq!(fixture.status()["steps"][0]["attempts"], 2);
}

#[test]
fn without_a_terminal_an_unapproved_plan_opens_an_ask_and_waits_for_its_answer() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let run = ["plan", "run", "p.md", "--exec", GOOD_WORKER];
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!fixture.path("done-1").exists());
    assert_eq!(fixture.status()["state"], "awaiting_approval");
    assert_eq!(fixture.planctl(&run).code, 3, "asking again opens no second ask");

    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]);
    assert!(page.out.contains("test -e done-2"), "the contracts are on the page: {}", page.out);
    assert!(page.out.contains(&format!("coder: {GOOD_WORKER}")), "and who will work: {}", page.out);
    let said = fixture.planctl(&["approvals", "approve", &ask, "--note", "read it"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("taken up"), "{said:?}");
}

#[test]
fn approving_first_and_running_later_is_the_same() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md", "--exec", GOOD_WORKER]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--exec", GOOD_WORKER]).code, 0);
}

#[test]
fn a_plan_that_changed_after_its_approval_does_not_run_and_shows_the_difference() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    fixture.write("p.md", &good_plan().replace("test -e done-2", "test -e done-2 || test -e done-1"));
    let said = fixture.planctl(&["plan", "run", "p.md", "--exec", GOOD_WORKER]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains("-test -e done-2\n+test -e done-2 || test -e done-1\n"), "{said:?}");
    assert!(!fixture.path("done-1").exists());
}

#[test]
fn a_rejected_plan_needs_another_approval() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "reject", "p.md", "--note", "not like this"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--exec", GOOD_WORKER]).code, 3);
    let ask = fixture.ask();
    assert_eq!(fixture.planctl(&["approvals", "reject", &ask]).code, 0);
    assert_eq!(fixture.status()["state"], "cancelled");
}

#[test]
fn a_done_plan_says_so_and_runs_again_only_when_asked_to() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let run = ["plan", "run", "p.md", "--approve", "--exec", GOOD_WORKER];
    assert_eq!(fixture.planctl(&run).code, 0);
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 0);
    assert!(said.err.contains("is done already: p-1"), "{said:?}");
    assert!(said.err.contains("next: planctl run --again p.md --exec 'touch done-"), "{said:?}");
    let other = fixture.planctl(&["plan", "run", "p.md", "--exec", "./other.sh"]);
    assert!(other.err.contains("next: planctl run --again p.md --exec ./other.sh\n"), "{other:?}");
    let again = fixture.planctl(&["plan", "run", "p.md", "--again", "--exec", GOOD_WORKER]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(fixture.status()["run"], "p-2");
    assert_eq!(fixture.json(&["ls", "--json"])["runs"].as_array().unwrap().len(), 2);
    assert_eq!(fixture.json(&["ls", "--state", "failed", "--json"])["runs"].as_array().unwrap().len(), 0);
    assert_eq!(fixture.planctl(&["ls", "--state", "finished"]).code, 2);
}

#[test]
fn abort_ends_the_run_as_failed_and_resume_takes_it_up() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Stops",
            "5 minutes",
            &[("One", "test -e done-1", "abort"), ("Two", "test -e done-2", "abort")],
        ),
    );
    let said = fixture.planctl(&[
        "plan",
        "run",
        "p.md",
        "--approve",
        "--exec",
        "test $PLANCTL_STEP = 2 || touch done-1",
    ]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.starts_with("p-1 failed"), "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 1);
    assert!(fixture.read("p.md").contains("status: failed"));

    let said = fixture.planctl(&["plan", "resume", "@last", "--exec", GOOD_WORKER]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!(status["steps"][0]["attempts"], 1, "a passed step is not run again");
}

#[test]
fn p_27_a_decision_is_seen_in_the_plan_s_file_without_a_daemon_too() {
    let fixture = Fixture::new();
    let held = || {
        fixture.write("p.md", &plan("Asks", "5 minutes", &[("One", "test -e done-1", "escalate")]));
        let words = ["plan", "run", "p.md", "--again", "--approve", "--no-wait", "--exec", "true"];
        let said = fixture.planctl(&words);
        assert_eq!(said.code, 3, "{said:?}");
        let file = fixture.read("p.md");
        assert!(file.contains("status: in-progress") && file.contains("### 1. ⏳ "), "{file}");
        fixture.json(&["approvals", "--json"])["asks"][0]["id"].to_string()
    };
    let ask = held();
    assert_eq!(fixture.planctl(&["approvals", "cancel", &ask, "--note", "no"]).code, 0);
    let file = fixture.read("p.md");
    assert!(file.contains("status: failed") && !file.contains("⏳"), "{file}");

    let ask = held();
    assert_eq!(fixture.planctl(&["approvals", "waive", &ask, "--note", "looked at it"]).code, 0);
    let file = fixture.read("p.md");
    assert!(file.contains("status: done") && !file.contains("⏳"), "{file}");

    held();
    assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
    let file = fixture.read("p.md");
    assert!(file.contains("status: failed") && !file.contains("⏳"), "{file}");
}

#[test]
fn a_cancelled_run_is_over_for_good() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--exec", GOOD_WORKER]).code, 3);
    assert_eq!(fixture.planctl(&["plan", "cancel", "p-1", "--note", "another day"]).code, 0);
    let again = fixture.json(&["plan", "cancel", "p-1", "--json"]);
    assert_eq!(again["repeated"], true);
    assert_eq!(fixture.planctl(&["plan", "status", "p-1", "--exit-code"]).code, 7);
    assert_eq!(fixture.planctl(&["plan", "resume", "p-1"]).code, 5);
    assert_eq!(fixture.planctl(&["approvals"]).out, "nothing waits for you, in any folder\n");
}

#[test]
fn a_plan_whose_run_was_cancelled_begins_again_by_its_approval_and_says_whose_until_it_is_taken_back() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let worker = "test -e go && touch done-$PLANCTL_STEP";
    assert_eq!(fixture.planctl(&["approve", "p.md", "--exec", worker]).code, 0);
    let approved = " ago; to take that back: planctl reject p.md --note WHY";
    let says_whose = |said: &Said, run: &str| {
        let mut lines = said.err.lines().skip_while(|line| !line.starts_with(&format!("run {run} · ")));
        lines.nth(1).is_some_and(|line| line.starts_with("approved by ann ") && line.ends_with(approved))
    };
    let first = fixture.planctl(&["run", "p.md", "--no-wait", "--exec", worker]);
    assert!(first.code == 3 && says_whose(&first, "p-1"), "{first:?}");
    assert_eq!(fixture.planctl(&["cancel", "p-1"]).code, 0);
    fixture.write("go", "");
    let second = fixture.planctl(&["run", "p.md", "--exec", worker]);
    assert!(second.code == 0 && says_whose(&second, "p-2"), "{second:?}");

    // A person who approves at the command knows that they did.
    let third = fixture.planctl(&["run", "p.md", "--again", "--approve", "--exec", worker]);
    assert!(third.code == 0 && !third.err.contains(approved), "{third:?}");
    assert_eq!(fixture.planctl(&["reject", "p.md", "--note", "another way"]).code, 0);
    let fourth = fixture.planctl(&["run", "p.md", "--again", "--exec", worker]);
    assert!(fourth.code == 3 && fourth.err.contains("p-4 waits for approval"), "{fourth:?}");
}

#[test]
fn row_99_ctrl_c_stops_the_run_says_how_to_go_on_and_loses_nothing() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    // The second step waits for a pipe that nobody writes to, so that the signal meets a worker.
    let worker = "test $PLANCTL_STEP = 1 || test -e go-on || { mkfifo pipe; echo waiting; cat pipe; }; touch done-$PLANCTL_STEP";
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let mut going = fixture.start(&["plan", "run", "p.md", "--approve", "--exec", worker]);
        going.hear(if code == 130 { "step=2 attempt=1 work=out" } else { "taken up" });
        going.signal(signal);
        let said = going.end();
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains("stopped; planctl resume p-1"), "{said:?}");
        std::fs::remove_file(fixture.path("pipe")).ok();
    }
    fixture.write("go-on", "");
    let said = fixture.planctl(&["plan", "resume", "p-1"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!(status["steps"][1]["attempts"], 1, "a stop of ours spends no attempt");
}

#[test]
fn the_events_of_a_run_are_gap_free_json_lines_and_nothing_else_is_on_standard_output() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let said =
        fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", GOOD_WORKER, "--format", "jsonl"]);
    assert_eq!(said.code, 0, "{said:?}");
    let seen: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = seen.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    for key in ["run", "at", "event", "cause"] {
        assert!(seen.iter().all(|line| line[key].is_string()), "{key}");
    }
    assert_eq!(seen.last().unwrap()["event"], "plan_completed");
    let events = fixture.planctl(&["events", "--run", "@last", "--json"]);
    assert!(events.out.starts_with(&said.out), "the history is what was told");
    let later = fixture.planctl(&["events", "--run", "p-1", "--since", "3", "--json"]);
    assert!(later.out.starts_with("{\"run\":\"p-1\",\"seq\":4,"), "{}", later.out.lines().next().unwrap());
}

#[test]
fn runs_are_found_by_name_beginning_last_and_path() {
    let fixture = Fixture::new();
    fixture.write("plans/fix.md", &good_plan());
    assert_eq!(fixture.planctl(&["plan", "run", "plans/fix.md", "--approve", "--exec", GOOD_WORKER]).code, 0);
    for name in ["fix-1", "fix", "@last", "plans/fix.md"] {
        assert_eq!(fixture.json(&["plan", "status", name, "--json"])["run"], "fix-1", "{name}");
    }
}

#[test]
fn logs_and_why_tell_what_happened() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Logs",
            "5 minutes",
            &[("One", "test -e done-1 || { echo not there >&2; exit 9; }", "retry(1), then abort")],
        ),
    );
    let worker = "echo attempt $PLANCTL_ATTEMPT; test $PLANCTL_ATTEMPT = 1 || touch done-1";
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", worker]).code, 0);
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    let first = &logs["attempts"][0];
    assert_eq!(first["work"]["text"].as_str().unwrap().trim(), "attempt 1");
    assert_eq!(
        (first["gate"]["verdict"].as_str(), first["gate"]["exit_code"].as_i64()),
        (Some("failed"), Some(9))
    );
    assert_eq!(first["gate"]["stderr"].as_str().unwrap().trim(), "not there");
    assert_eq!(logs["attempts"][1]["gate"]["verdict"], "passed");
    let told = fixture.planctl(&["plan", "logs", "@last", "--attempt", "1", "--contract"]);
    assert!(told.out.contains("not there") && !told.out.contains("attempt 1\n    "), "{}", told.out);
    let why = fixture.planctl(&["why", "@last", "1"]);
    assert!(
        why.out.contains("failed at attempt 1") && why.out.contains("passed at attempt 2"),
        "{}",
        why.out
    );
    assert_eq!(fixture.planctl(&["why", "@last", "7"]).code, 4);
}

#[test]
fn why_says_what_to_type_for_a_step_that_waits_whatever_it_waits_for() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("A", "5 minutes", &[("One", "test -e never", "escalate")]));
    fixture.write(
        "b.md",
        &plan("B", "5 minutes", &[("One", "true", "abort"), ("Two", "test -e done-2", "abort")]),
    );
    assert_eq!(fixture.planctl(&["run", "a.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
    let asked = fixture.planctl(&["why", "1"]).out;
    assert!(asked.contains(&format!("\nnext: planctl approvals show {}\n", fixture.ask())), "{asked}");
    assert_eq!(fixture.planctl(&["approvals", "retry", "--note", "again"]).code, 0);
    let left_alone = fixture.planctl(&["why", "a-1"]).out;
    assert!(left_alone.ends_with("\nnext: planctl resume a-1\n"), "{left_alone}");
    assert_eq!(fixture.planctl(&["cancel", "a-1"]).code, 0);

    // Nothing is to be typed about a step that is over, unless it is why the run ended.
    assert_eq!(fixture.planctl(&["run", "b.md", "--approve", "--no-wait", "--exec", "true"]).code, 1);
    let passed = fixture.planctl(&["why", "b-1", "1"]).out;
    assert!(passed.contains("passed") && !passed.contains("next:"), "{passed}");
    for words in [&["why"][..], &["why", "b-1"], &["why", "2"]] {
        let failed = fixture.planctl(words).out;
        assert!(
            failed.contains("Two") && failed.contains("\nnext: planctl logs b-1\n"),
            "{words:?}: {failed}"
        );
    }
}

#[test]
fn a_protected_file_that_a_worker_changes_fails_the_attempt_and_is_named() {
    let fixture = Fixture::new();
    fixture.write("check.sh", "test -e fixed\n");
    fixture.write("p.md", &plan("Cheat", "5 minutes", &[("Fix", "bash check.sh", "escalate")]));
    let worker = "echo true > check.sh; echo all tests pass";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("contract=tampered"), "{said:?}");
    let page = fixture.json(&["approvals", "show", &fixture.ask(), "--json"]);
    assert_eq!(page["failure"]["tampered"][0]["path"], "check.sh", "{page}");
    assert_eq!(page["failure"]["tampered"][0]["change"], "changed");
}

#[test]
fn a_role_that_nothing_serves_is_said_before_anything_starts() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("coder") && said.err.contains("--exec"), "{said:?}");
}

#[test]
fn a_second_run_in_one_workspace_waits_and_says_for_whom() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("First", "5 minutes", &[("One", "test -e done-a", "escalate")]));
    fixture.write("b.md", &plan("Second", "5 minutes", &[("One", "test -e done-b", "escalate")]));
    let mut first =
        fixture.start(&["plan", "run", "a.md", "--approve", "--exec", "mkfifo pipe; cat pipe; touch done-a"]);
    first.hear("step=1 attempt=1 work=out");
    let mut second = fixture.start(&["plan", "run", "b.md", "--approve", "--exec", "touch done-b"]);
    second.hear("waiting for run a-1, which has the workspace");
    assert_eq!(fixture.json(&["plan", "status", "b-1", "--json"])["waiting_on"]["run"], "a-1");
    assert_eq!(fixture.planctl(&["plan", "status", "b-1", "--exit-code"]).code, 8);
    fixture.write("pipe", "");
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.code, second.code), (0, 0), "{first:?} {second:?}");
}

#[test]
fn without_notifications_an_answer_from_another_process_is_found_by_looking() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Quiet", "5 minutes", &[("Fix", "test -e fixed", "escalate")]));
    let words = ["plan", "run", "p.md", "--approve", "--exec", "true"];
    let child = fixture.command(&words).env("PLANCTL_NOTIFY", "off").spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while fixture.json(&["approvals", "--json"])["asks"][0]["kind"] != "escalation" {
        assert!(std::time::Instant::now() < until, "nobody was asked");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    fixture.write("fixed", "");
    let ask = fixture.ask();
    let answer =
        fixture.command(&["approvals", "retry", &ask, "--note", "now"]).env("PLANCTL_NOTIFY", "off").output();
    assert!(answer.unwrap().status.success());
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert_eq!(fixture.status()["state"], "done");
}

#[test]
fn p_75_two_plans_that_want_one_lock_go_one_after_the_other_and_say_so() {
    let fixture = Fixture::new();
    let locked = |title: &str| {
        plan(title, "5 minutes", &[("Use", "test -e done-1", "abort")])
            .replace("**task:**", "**locks:** staging-db\n\n**task:**")
    };
    fixture.write("p.md", &locked("One")).write("other/q.md", &locked("Two"));
    let hold = format!(
        "touch begun; while [ ! -e {} ]; do sleep 0.02; done; touch done-1",
        fixture.path("go").display()
    );
    let first = fixture.start(&["plan", "run", "p.md", "--approve", "--exec", &hold]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let look_again = |what: &str| {
        assert!(std::time::Instant::now() < until, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    while !fixture.path("begun").exists() {
        look_again("the first does not begin");
    }
    let other = ["--workspace", "other", "plan"];
    let words = [&other[..], &["run", "other/q.md", "--approve", "--exec", GOOD_WORKER]].concat();
    let second = fixture.start(&words);
    let waiting = loop {
        let list = fixture.json(&["ls", "--all", "--json"]);
        let run = list["runs"].as_array().unwrap().iter().find(|run| run["run"] == "q-1").cloned();
        match run.filter(|run| run["waiting_on"]["kind"] == "lock") {
            Some(run) => break run,
            None => look_again("the second does not wait"),
        }
    };
    assert_eq!(waiting["waiting_on"]["lock"], "staging-db", "{waiting}");
    assert_eq!(waiting["waiting_on"]["run"], "p-1", "{waiting}");
    let said = fixture.planctl(&["ls", "--all"]);
    assert!(said.out.contains("lock staging-db of run p-1"), "{said:?}");
    let lock = "waiting for the lock staging-db, which run p-1 has";
    let said = fixture.planctl(&["why", "q-1", "1"]);
    assert!(said.out.contains(lock) && !said.out.contains("waiting for a worker"), "{said:?}");
    let said = fixture.planctl(&["plan", "status", "q-1"]);
    assert!(said.out.contains(lock) && !said.out.contains("waiting for a worker"), "{said:?}");
    assert!(!fixture.path("other/done-1").exists());
    fixture.write("go", "");
    assert_eq!(first.end().code, 0);
    let said = second.end();
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_step_that_rests_between_two_tries_says_what_kept_its_worker_from_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("Use", "test -e done", "abort")]));
    let words = ["plan", "run", "p.md", "--approve", "--exec", "echo 'quota gone' >&2; exit 75"];
    let mut going = fixture.start(&words);
    going.hear("quota gone");
    // Each rest is longer than the one before, so one of them is long enough for two looks.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let step = fixture.json(&["plan", "status", "p-1", "--json"])["steps"][0].clone();
        let said = fixture.planctl(&["plan", "status", "p-1"]);
        let why = fixture.planctl(&["why", "p-1", "1"]);
        let told = |text: &str| text.contains("retrying ") && text.contains(": quota gone");
        if step["state"] == "resting" && told(&said.out) && told(&why.out) {
            assert_eq!(step["trouble"], "quota gone");
            assert!(step["since"].is_string(), "{step}");
            break;
        }
        assert!(std::time::Instant::now() < until, "{step} {said:?} {why:?}");
    }
    assert_eq!(fixture.planctl(&["plan", "cancel", "p-1"]).code, 0);
    assert_eq!(going.end().code, 7);
}

#[test]
fn g38_a_run_is_reported_in_the_six_parts_that_a_supervisor_asks_for() {
    let fixture = Fixture::new();
    let steps = [("Write one", "test -e one", "escalate"), ("Write two", "test -e two", "escalate")];
    fixture.write("p.md", &plan("Two files", "5 minutes", &steps));
    let said = fixture.run("touch one");
    assert_eq!(said.code, 3, "{said:?}");

    let report = fixture.json(&["plan", "status", "@last", "--salute", "--json"]);
    assert_eq!((&report["size"]["total_steps"], &report["size"]["passed"]), (&2.into(), &1.into()));
    assert_eq!((&report["size"]["live"], &report["activity"]["state"]), (&1.into(), &"waiting".into()));
    assert_eq!(report["activity"]["events"].as_array().map(Vec::len), Some(5), "{report}");
    assert_eq!(report["location"]["run"], "p-1");
    assert_eq!(report["location"]["steps"][0]["title"], "Write two");
    assert_eq!((&report["unit"][0]["step"], &report["unit"][0]["who"]), (&2.into(), &"person".into()));
    assert_eq!(report["equipment"]["exec"], "touch one");

    let said = fixture.planctl(&["plan", "status", "@last", "--salute", "--exit-code"]);
    assert_eq!(said.code, 3, "{said:?}");
    for part in ["size", "activity", "location", "unit", "time", "equipment"] {
        assert!(said.out.lines().any(|line| line.starts_with(part)), "{part}\n{}", said.out);
    }
    assert!(said.out.contains("1 of 2 steps are over, 1 passed, 1 under way"), "{}", said.out);
    assert!(said.out.contains("step 2: a person") && said.out.contains("every role is served by touch one"));
    assert_eq!(fixture.planctl(&["plan", "status", "--salute"]).code, 2, "a report is of one run");
}

#[test]
fn p20_reports_and_briefs_read_the_newest_lines_of_a_long_history_alone() {
    let fixture = Fixture::new();
    let steps = [("Write one", "test -e one", "escalate"), ("Write two", "test -e two", "escalate")];
    fixture.write("p.md", &plan("Two files", "5 minutes", &steps));
    let said = fixture.run("touch one");
    assert_eq!(said.code, 3, "{said:?}");
    let began = fixture.json(&["plan", "status", "@last", "--salute", "--json"])["time"].clone();
    // Lines that nobody can read, below more lines than are read at once.
    fixture.sql(
        "insert into history (run, seq, at, kind, name, cause, body, hash) \
         select h.run, l.seq + n, h.at, h.kind, h.name, h.cause, case when n < 9 then '{}' else h.body end, h.hash \
         from (select max(seq) as seq from history) l, generate_series(1, 1200) n, \
         lateral (select * from history where name = 'node_entered' limit 1) h",
    );
    let report = fixture.json(&["plan", "status", "@last", "--salute", "--json"]);
    assert_eq!(report["activity"]["events"].as_array().map(Vec::len), Some(5), "{report}");
    assert_eq!(report["time"]["began_at"], began["began_at"]);
    let brief = fixture.planctl(&["plan", "context", "@last", "--format", "workflow"]);
    assert!(brief.code == 0 && brief.out.contains("…"), "{brief:?}");
}

#[test]
fn x16_a_plan_file_that_changes_during_its_run_is_left_alone_and_that_is_said() {
    let fixture = Fixture::new();
    fixture.write("p.md", &good_plan());
    let worker =
        "touch done-$PLANCTL_STEP; sed -i 's/test -e done-2/true/' p.md; [ $PLANCTL_STEP = 1 ] || rm done-2";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let line = "p.md was changed during the run: it runs as approved, and the file is left as it is";
    assert!(said.out.contains(line), "{said:?}");
    let status = fixture.planctl(&["plan", "status", "@last"]);
    assert!(status.out.contains(line), "{status:?}");
    assert_eq!(fixture.status()["is_plan_file_changed"], true);
    assert!(!fixture.read("p.md").contains("test -e done-2"), "the change stays");
    // The approved contract decides, and the step does not pass by the changed one.
    assert_eq!(fixture.status()["steps"][1]["state"], "waiting");
    fixture.write("p.md", &good_plan());
    assert_eq!(fixture.status()["is_plan_file_changed"], Value::Null);
}
