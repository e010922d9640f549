//! The screens of people are quiet by default, true, and free of the colour codes of tools; a list has one line per entry.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Fixture, Said, plan};

/// Prints as tools do: colours, a progress bar, the reason, and a trailer after it.
const COLOURFUL: &str = "printf '10%%\\r\\033[32m99%%\\033[0m\\rcollected 2 items\\n\\033[31mFAILED\\033[0m \
    tests/test_a.py::\\033[1mtest_b\\033[0m - assert 1 == 2\\n# duration_ms 12.3\\n'\n";

fn run_to_the_ask(fixture: &Fixture) {
    fixture.write("check.sh", COLOURFUL);
    let contract = "bash check.sh; test -e done";
    fixture.write("p.md", &plan("Fix", "5 minutes", &[("Fix it", contract, "retry(1), then escalate")]));
    let worker = "cat >told-$PLANCTL_ATTEMPT; printf '\\033[1mAll tests pass now!\\033[0m\\n'";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("\"FAILED tests/test_a.py::test_b - assert 1 == 2\""), "{said:?}");
}

fn has_no_sequence(text: &str) -> bool {
    !text.contains('\u{1b}') && !text.contains("u{1b}") && !text.contains("99%")
}

#[test]
fn colours_of_tools_reach_no_person_and_no_prompt_and_the_reason_is_the_line_that_says_why() {
    let fixture = Fixture::new();
    run_to_the_ask(&fixture);
    let ask = fixture.ask();
    for words in [
        &["plan", "status", "@last"][..],
        &["approvals"],
        &["approvals", "show", &ask],
        &["why", "@last", "1"],
        &["events", "--run", "@last"],
        &["plan", "logs", "@last"],
        &["plan", "logs", "@last", "--prompt"],
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 0 && has_no_sequence(&said.out), "{words:?}: {said:?}");
        assert!(said.out.contains("FAILED tests/test_a.py::test_b - assert 1 == 2"), "{words:?}: {said:?}");
    }
    let logs = fixture.json(&["plan", "logs", "@last", "--json"]);
    let raw = logs["attempts"][0]["gate"]["stdout"].as_str().unwrap();
    assert!(raw.contains("\u{1b}[31mFAILED") && raw.contains("99%"), "{raw:?}");
}

#[test]
fn a_prompt_is_shown_byte_for_byte_as_its_worker_got_it_and_is_exported() {
    let fixture = Fixture::new();
    run_to_the_ask(&fixture);
    let list = fixture.json(&["plan", "logs", "@last", "--prompt", "--json"]);
    let prompts = list["prompts"].as_array().unwrap();
    assert_eq!(prompts.len(), 2, "{list}");
    for (prompt, attempt) in prompts.iter().zip(1..) {
        assert_eq!((&prompt["step"], &prompt["attempt"]), (&1.into(), &attempt.into()), "{prompt}");
        let told = fixture.read(&format!("told-{attempt}"));
        assert!(!told.is_empty());
        assert_eq!(prompt["prompt"].as_str(), Some(told.as_str()), "attempt {attempt}");
    }
    let second = fixture.planctl(&["plan", "logs", "@last", "--prompt", "--attempt", "2"]).out;
    assert!(second.starts_with("step 1 Fix it · attempt 2 · coder\n"), "{second}");
    assert!(second.contains("Previous attempt failed (attempt 1)."), "{second}");
    assert_eq!(fixture.planctl(&["plan", "export", "@last", "--to", "out"]).code, 0);
    assert!(fixture.read("out/artifacts/1-2-prompt.md").contains("Previous attempt failed"));
}

#[test]
fn why_is_grouped_by_attempt_and_events_read_as_sentences() {
    let fixture = Fixture::new();
    run_to_the_ask(&fixture);
    let why = fixture.planctl(&["why", "@last", "1"]).out;
    let reason = "contract exit 1 \"FAILED tests/test_a.py::test_b - assert 1 == 2\"";
    for attempt in [1, 2] {
        let heading = format!("  attempt {attempt}  worker said \"All tests pass now!\"  → {reason}\n");
        assert_eq!(why.matches(&heading).count(), 1, "{why}");
    }
    assert_eq!(why.matches("Fix it").count(), 1, "the step is named once: {why}");
    let is_date = |word: &str| {
        word.as_bytes()
            .first_chunk::<5>()
            .is_some_and(|start| start[4] == b'-' && start[..4].iter().all(u8::is_ascii_digit))
    };
    assert!(!why.split_whitespace().any(is_date), "no date: {why}");

    let events = fixture.planctl(&["events", "--run", "@last"]).out;
    let sentences: Vec<&str> = events.lines().collect();
    for wanted in [
        "ann approved the plan",
        "the worker of step 1 \"Fix it\" said (exit 0): \"All tests pass now!\"",
        "the contract of step 1 \"Fix it\" failed at attempt 1",
    ] {
        assert_eq!(
            sentences.iter().filter(|line| line.ends_with(wanted)).count(),
            1 + usize::from(wanted.contains("said")),
            "{wanted}: {events}"
        );
    }
    assert!(!events.contains('{') && !events.contains("agent.reported"), "{events}");
    let all = fixture.planctl(&["-v", "events", "--run", "@last"]).out;
    assert!(all.lines().count() > sentences.len() && all.contains("human.answered"), "{all}");
    let json = fixture.planctl(&["events", "--run", "@last", "--json"]).out;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["event"].is_string() && first["seq"] == 1, "{first}");
}

#[test]
fn lists_have_one_line_for_each_thing_whatever_the_width() {
    let fixture = Fixture::new();
    run_to_the_ask(&fixture);
    let list = fixture.planctl(&["ls"]).out;
    let lines: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect())
        .collect();
    assert_eq!(lines[0], ["RUN", "STATE", "PROGRESS", "WAITING ON", "AGE", "PLAN"], "{list}");
    assert_eq!(lines[1][..4], ["p-1", "waiting for you", "0/1", "you: escalation 2"], "{list}");
    assert_eq!(lines.len(), 2, "{list}");
    let asks = fixture.planctl(&["approvals"]).out;
    let head: Vec<&str> = asks.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["ID", "KIND", "RUN", "STEP", "REASON", "BLOCKS", "AGE"], "{asks}");
    assert!(asks.contains("1 Fix it  contract exit 1 \"FAILED tests/test_a.py::test_b"), "{asks}");

    for (words, columns) in [("approvals", 60), ("ls --all -v", 80), ("plan status", 40)] {
        let line = format!("sh -c 'stty cols {columns}; exec {} {words}'", env!("CARGO_BIN_EXE_planctl"));
        let shown = at_a_terminal(&fixture, &line);
        let rows: Vec<String> = shown.lines().map(without_colours).collect();
        let rows: Vec<String> =
            rows.into_iter().filter(|line| !line.is_empty() && !line.starts_with("using ")).collect();
        assert_eq!(rows.len(), 2, "{words}: {shown}");
        for row in rows {
            assert!(row.chars().count() <= columns, "{words}: {row}");
        }
    }
}

#[test]
fn an_empty_list_says_where_it_looked_and_what_else_there_is() {
    let fixture = Fixture::new();
    run_to_the_ask(&fixture);
    fixture.write("other/.keep", "");
    let in_other = |words: &[&str]| {
        Said::from(fixture.command(words).current_dir(fixture.path("other")).output().unwrap()).out
    };
    for words in [&["ls"][..], &["plan", "status"]] {
        let said = in_other(words);
        assert!(
            said.starts_with("no runs in ")
                && said.ends_with("/other; 1 in other folders: planctl ls --all\n"),
            "{said}"
        );
    }
    assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
    let said = fixture.planctl(&["plan", "status"]).out;
    assert!(
        said.starts_with("no active runs in ") && said.ends_with("; 1 run ended: planctl ls\n"),
        "{said}"
    );
    let said = fixture.planctl(&["ls", "--state", "running"]).out;
    assert_eq!(said, "no run is running; 1 run in other states\n");
    assert!(fixture.planctl(&["ls"]).out.contains("ENDED"));
}

#[test]
fn the_database_is_named_when_it_is_asked_for_and_zero_budgets_are_not_shown() {
    let fixture = Fixture::new();
    fixture
        .write("p.md", &plan("Quiet", "max 100k tokens, $1, 5 minutes", &[("One", "test -e done", "abort")]));
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", "touch done"]);
    assert_eq!(said.code, 0, "{said:?}");
    for noise in ["using ", "unmetered", "$0.00", "0 tok"] {
        assert!(!said.out.contains(noise) && !said.err.contains(noise), "{noise}: {said:?}");
    }
    assert!(!fixture.planctl(&["plan", "logs"]).out.contains("tier 0"));
    let said = fixture.planctl(&["-v", "ls"]);
    assert!(said.err.contains("using postgres"), "{said:?}");
    for detail in ["0 tok of 100k", "$0.00 of $1.00", "1 unmetered"] {
        assert!(said.out.contains(detail), "{detail}: {said:?}");
    }
}

#[test]
fn logs_that_are_followed_show_a_worker_while_it_works_and_end_with_the_run() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Slow", "5 minutes", &[("One", "echo judged; test -e done", "abort")]));
    let worker = "echo first; while ! test -e go; do sleep 0.05; done; echo second; touch done";
    let going = fixture.start(&["plan", "run", "p.md", "--approve", "--exec", worker]);
    let until = Instant::now() + Duration::from_secs(60);
    while fixture.planctl(&["plan", "status", "@last"]).code != 0 {
        assert!(Instant::now() < until, "no run begins");
    }
    let mut follower = fixture.command(&["plan", "logs", "-f"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("  1.1 worker │ first"), "while it works");
    fixture.write("go", "");
    let rest: Vec<String> = lines.collect();
    let place = |words: &str| {
        rest.iter().position(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {rest:?}"))
    };
    let order = [place("1.1 worker │ second"), place("1.1 contract │ judged"), place("passed at attempt 1")];
    assert!(order.is_sorted(), "{rest:?}");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    assert_eq!(going.end().code, 0);

    let again = fixture.planctl(&["plan", "logs", "-f", "--contract", "--json"]);
    let line: Value = serde_json::from_str(again.out.trim()).unwrap();
    assert_eq!((&line["from"], &line["text"]), (&"contract".into(), &"judged\n".into()), "{again:?}");
}

#[test]
fn p27_a_cancelled_run_is_marked_in_its_file_without_a_daemon() {
    let fixture = Fixture::new();
    fixture
        .write("p.md", &plan("Cancel", "5 minutes", &[("One", "false", "abort"), ("Two", "true", "abort")]));
    let worker = "echo working >&2; while ! test -e go; do sleep 0.05; done";
    for (at, is_killed) in [false, true].into_iter().enumerate() {
        let again = if at == 0 { "--no-wait" } else { "--again" };
        let mut going = fixture.start(&["plan", "run", "p.md", "--approve", again, "--exec", worker]);
        going.hear("work=out");
        let until = Instant::now() + Duration::from_secs(60);
        while !fixture.read("p.md").contains('⏳') {
            assert!(Instant::now() < until, "the step is not marked: {}", fixture.read("p.md"));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(fixture.read("p.md").contains("status: in-progress"), "{}", fixture.read("p.md"));
        if is_killed {
            going.signal(rustix::process::Signal::KILL);
        }
        assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
        going.hear_the_end();
        let text = fixture.read("p.md");
        assert!(text.contains("\nstatus: failed\n") && !text.contains('⏳'), "killed: {is_killed}: {text}");
    }
}

fn without_colours(line: &str) -> String {
    planctl_view::strip_terminal_sequences(line).trim().to_owned()
}

/// Runs a command line at a terminal, and returns what stands there.
fn at_a_terminal(fixture: &Fixture, line: &str) -> String {
    let planctl = fixture.command(&[]);
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    command.current_dir(fixture.path("")).env_clear().stdin(Stdio::null());
    command.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    Said::from(command.stderr(Stdio::null()).output().unwrap()).out
}

#[test]
fn the_approval_prompt_is_quiet_and_offers_a_difference_only_where_there_is_one() {
    use crate::console::Console;

    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    let prompt = |command: &str| {
        let mut console = Console::new(&fixture, 100, command);
        console.hear("run this?").keys("n\n");
        console.end().1
    };
    let first = prompt("planctl run p.md --exec true");
    for words in ["[d]iff", "iff since last approval", "tier 0", "isolation", "defaults", "priority"] {
        assert!(!first.contains(words), "{words}: {first}");
    }
    for words in ["workspace", "budget", "protected", "contract, exit code 0", "test -e one"] {
        assert!(first.contains(words), "{words}: {first}");
    }
    let all = prompt("planctl run -v p.md --exec true");
    for words in ["isolation  auto", "defaults:", "priority   normal"] {
        assert!(all.contains(words), "{words}: {all}");
    }
    let said = fixture.planctl(&["run", "p.md", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let id = fixture.ask();
    assert!(!fixture.planctl(&["approvals", "show", &id]).out.contains("isolation"));
    assert!(fixture.planctl(&["approvals", "show", &id, "-v"]).out.contains("isolation  tier 0"));

    let approved = fixture.planctl(&["approve", "p.md"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(fixture.planctl(&["cancel", "p-1"]).code, 0);
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e two", "escalate")]));
    assert!(prompt("planctl run p.md --exec true").contains("iff since last approval"));
}

#[test]
fn the_end_of_a_run_is_said_once_with_its_steps_and_attempts() {
    use crate::console::{Console, screen};

    let fixture = Fixture::new();
    let steps = [("One", "test -e one", "retry(2)"), ("Two", "test -e two", "retry(2)")];
    fixture.write("p.md", &plan("P", "5 minutes", &steps));
    let worker = "test $PLANCTL_ATTEMPT = 1 && test $PLANCTL_STEP = 1 || touch one two";
    let mut console = Console::new(&fixture, 100, &format!("planctl run p.md --approve --exec '{worker}'"));
    console.hear("p-1");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    let rows = screen(100, &printed);
    let spent: Vec<&String> = rows.iter().filter(|row| row.contains(" of 5m00s")).collect();
    assert_eq!(spent.len(), 1, "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("✓ p-1 done in ")), "{rows:#?}");
    assert!(spent[0].ends_with("· 2 steps, 3 attempts"), "{rows:#?}");

    // A step that the run went past is no loss.
    let flow = format!("{}\n## Flow\n\n- 1 -> done\n- 1 -> 2 on exhaust\n", plan("P", "5 minutes", &steps));
    fixture.write("q.md", &flow);
    let said = fixture.planctl(&["run", "q.md", "--approve", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    let end = said.out.lines().next().unwrap();
    assert!(end.starts_with("✓ q-1 done in ") && end.contains("· 1 step, 1 not needed"), "{said:?}");
    assert!(!said.out.contains("passed of"), "{said:?}");

    fixture.write("r.md", &plan("R", "5 minutes", &[steps[0], ("Never", "test -e never", "abort")]));
    let said = fixture.planctl(&["run", "r.md", "--approve", "--exec", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.out.matches("contract exit 1").count(), 1, "{said:?}");
    assert!(said.out.starts_with("r-1 failed · 1 passed, 1 failed of 2 steps · "), "{said:?}");
}
