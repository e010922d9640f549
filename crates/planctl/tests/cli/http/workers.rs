//! `worker run`, `worker ls`, `work …`: workers that are no part of the daemon (P4, P5, P6; rows 68 to 71).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::house::{Ask, House, plan as one_step, wait_until};
use crate::fixture::{Fixture, Going, Said, plan, schema};

/// Starts a run of a plan without waiting for it; returns its name.
fn begin(fixture: &Fixture, file: &str, text: &str) -> String {
    fixture.write(file, text);
    let said = fixture.planctl(&["plan", "run", file, "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.trim().to_owned()
}

fn worker(house: &House, exec: &str, more: &[&str]) -> Going {
    house.fixture.start(&words(exec, more))
}

fn words<'a>(exec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["worker", "run", "--role", "coder", "--exec", exec][..], more].concat()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_until(|| is_so().then_some(())).unwrap_or_else(|| panic!("in vain: {what} is not so"));
}

fn lives(pid: &str) -> bool {
    // A process that ended and was not waited for yet is dead.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn a_worker_does_three_steps_and_learns_from_what_failed() {
    let house = House::new();
    let exec = "p=$(cat); echo \"said $PLANCTL_STEP.$PLANCTL_ATTEMPT\"; \
                case $PLANCTL_STEP.$PLANCTL_ATTEMPT in 2.1) ;; *) touch done$PLANCTL_STEP;; esac; \
                case $PLANCTL_ATTEMPT in 2) grep -q 'exit' <<< \"$p\" || rm done2;; esac";
    let steps: Vec<(String, String)> =
        (1..=3).map(|at| (format!("Step {at}"), format!("test -e done{at}"))).collect();
    let steps: Vec<(&str, &str, &str)> =
        steps.iter().map(|(name, test)| (name.as_str(), test.as_str(), "retry(2), then escalate")).collect();
    let run = begin(&house.fixture, "p.md", &plan("Three", "5 minutes", &steps));
    let said = house.fixture.planctl(&words(exec, &["--max-items", "4", "--json"]));
    assert_eq!(said.code, 0, "{said:?}");
    let view = house.until(&run, "done");
    let attempts: Vec<u64> =
        view["steps"].as_array().unwrap().iter().map(|step| step["attempts"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [1, 2, 1], "{view}");
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let pair = ["started", "worked"];
    assert_eq!(told, [&["ready"][..], &pair, &pair, &pair, &pair, &["ended"]].concat(), "{said:?}");
    assert!(lines.iter().all(|line| line["event"] != "worked" || line["exit_code"] == 0), "{said:?}");
    let logs = house.fixture.planctl(&["plan", "logs", &run]);
    assert!(logs.out.contains("said 2.2"), "{logs:?}");
    let audit = house.fixture.planctl(&["audit", &run]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn a_step_is_worked_on_since_its_worker_claimed_it_and_not_since_it_waits_for_one() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Late", "late"));
    let step = || house.fixture.json(&["status", &run, "--json"])["steps"][0].clone();
    until("the step waits for a worker", || step()["state"] == "ready");
    let waits = step();
    let claimed = house.fixture.planctl(&["item", "claim", "--role", "coder", "--json"]);
    assert_eq!(claimed.code, 0, "{claimed:?}");
    let works = step();
    assert_eq!(works["state"], "working", "{works}");
    assert_ne!(works["since"], waits["since"], "{works}");
}

#[test]
fn two_items_at_once_and_a_worker_that_is_paused() {
    let house = House::new();
    let other = house.fixture.path("../other");
    std::fs::create_dir(&other).unwrap();
    let first = begin(&house.fixture, "first.md", &one_step("First", "first"));
    std::fs::write(other.join("second.md"), one_step("Second", "second")).unwrap();
    let said = house.fixture.planctl(&[
        "--workspace",
        other.to_str().unwrap(),
        "plan",
        "run",
        other.join("second.md").to_str().unwrap(),
        "--approve",
        "-d",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    let second = said.out.trim().to_owned();
    // Each waits for the other: one after the other they would never end.
    let meeting = house.fixture.home();
    let exec = format!(
        "touch {0}/$PLANCTL_RUN_ID; until [ $(ls {0} | grep -c -e '^first-' -e '^second-') = 2 ]; do sleep 0.05; done; \
         case $PLANCTL_RUN_ID in first*) echo first > out.txt;; *) echo second > out.txt;; esac",
        meeting.display()
    );
    let mut going = worker(&house, &exec, &["-j", "2", "--name", "mole"]);
    house.until(&first, "done");
    house.until(&second, "done");
    let workers = house.fixture.json(&["worker", "ls", "--json"]);
    let mole = workers["workers"].as_array().unwrap().iter().find(|worker| worker["id"] == "mole").unwrap();
    assert_eq!((&mole["capacity"], &mole["roles"][0]), (&Value::from(2), &Value::from("coder")), "{mole}");
    assert_eq!(house.fixture.json(&["worker", "pause", "mole", "--json"])["paused"], true);
    assert!(house.fixture.planctl(&["worker", "ls"]).out.contains("paused"));
    let paused = house.fixture.planctl(&["item", "claim", "--role", "coder", "--name", "mole", "--no-wait"]);
    assert_eq!(paused.code, 10, "{paused:?}");
    assert_eq!(house.fixture.json(&["worker", "resume", "mole", "--json"])["paused"], false);
    let nobody = house.fixture.planctl(&["worker", "pause", "nobody"]);
    assert!(nobody.code == 4 && nobody.err.contains("next: planctl worker ls"), "{nobody:?}");
    // Ctrl-C ends a worker that has nothing, and that is no failure.
    going.signal(Signal::INT);
    going.hear("finishing");
    assert_eq!(going.end().code, 0);
}

#[test]
fn a_worker_that_is_resumed_claims_in_the_same_call() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let body = r#"{"roles": ["writer"], "worker": "mole"}"#;
    let known = Ask { body: Some(body.to_owned()), ..Ask::default() };
    assert_eq!(house.local("POST", "/v1/items/claim", &known).status, 204);
    assert_eq!(house.fixture.planctl(&["worker", "pause", "mole"]).code, 0);
    let wanted = Ask { body: Some(body.replace("writer", "coder")), ..Ask::default() };
    let claimed = std::thread::scope(|scope| {
        let claimed = scope.spawn(|| house.local("POST", "/v1/items/claim?wait=50", &wanted));
        // It asks, and is held back though there is work.
        until("it asks for the other role", || {
            house.fixture.json(&["worker", "ls", "--json"])["workers"][0]["roles"][0] == "coder"
        });
        assert_eq!(house.fixture.planctl(&["worker", "resume", "mole"]).code, 0);
        claimed.join().unwrap()
    });
    assert_eq!(claimed.status, 200, "{claimed:?}");
    assert_eq!(claimed.json()["run"], run.as_str());
}

/// Starts a run of one step in a workspace of its own beside the house's; returns its name.
fn begin_beside(house: &House, folder: &str, file: &str, word: &str) -> String {
    let folder = house.fixture.path(&format!("../{folder}"));
    let file = folder.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, one_step(word, word)).unwrap();
    let (folder, file) = (folder.to_str().unwrap(), file.to_str().unwrap());
    let said = house.fixture.planctl(&["--workspace", folder, "plan", "run", file, "--approve", "-d"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.trim().to_owned()
}

#[test]
fn g_39_a_worker_holds_to_what_its_own_configuration_says_of_its_role() {
    let house = House::new();
    let first = begin_beside(&house, "first", "plans/first.md", "first");
    let second = begin_beside(&house, "second", "other/second.md", "second");
    let own = house.fixture.path("../own");
    std::fs::create_dir(&own).unwrap();
    let role =
        "[roles.coder]\ntimeout = \"2s\"\nplans = [\"other/*.md\"]\neffects = { deny = [\"write\"] }\n";
    std::fs::write(own.join("planctl.toml"), role).unwrap();
    let own = own.to_str().unwrap();
    assert_eq!(house.fixture.planctl(&["trust", own]).code, 0);
    let exec =
        "cat > prompt; [[ $PLANCTL_DEADLINE < $(date -u -d '+5 minutes' +%FT%T) ]] && touch soon; sleep 600";
    let said = house.fixture.planctl(&[&["--workspace", own][..], &words(exec, &["--once"])].concat());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains(&format!("{second} step 1 attempt 1 · could not work")), "{said:?}");
    let prompt = std::fs::read_to_string(house.fixture.path("../second/prompt")).unwrap();
    assert!(prompt.contains("Do nothing that has one of these effects: write."), "{prompt}");
    assert!(house.fixture.path("../second/soon").exists(), "its deadline is the role's");
    // An item that it may not take was never claimed, and is not looked at again and again where nothing else is left.
    let said = house.fixture.planctl(&[&["--workspace", own][..], &words("true", &["--drain"])].concat());
    assert!(!said.err.contains(&first), "{said:?}");
    let told = house.fixture.events(&first);
    assert!(told.iter().all(|line| !line["event"].as_str().unwrap().starts_with("agent.")), "{told:?}");
    house.fixture.planctl(&words("echo first > out.txt", &["--once"]));
    house.until(&first, "done");
}

#[test]
fn a_cancelled_run_ends_the_whole_tree_of_its_worker() {
    let house = House::with(&[("PLANCTL_LEASE_SECONDS", "1")]);
    let run = begin(&house.fixture, "p.md", &one_step("Long", "long"));
    let exec = "sleep 600 & echo $! > child; echo $$ > parent; wait";
    let mut going = worker(&house, exec, &["--once"]);
    until("the worker works", || {
        lives(&house.fixture.read("child")) && !house.fixture.read("parent").is_empty()
    });
    assert_eq!(house.fixture.planctl(&["plan", "cancel", &run]).code, 0);
    going.hear("the run is over");
    assert_eq!(going.end().code, 0);
    assert!(!lives(&house.fixture.read("child")) && !lives(&house.fixture.read("parent")));
}

/// Writes a line again and again, and does not listen.
const WRITES_ON: &str = "trap '' TERM; while :; do echo a >> a.log; sleep 0.1; done";

/// Starts a run in the workspace of another one; its agent, whom the daemon serves, keeps the other's file as it finds it.
fn begin_behind(fixture: &Fixture) -> String {
    fixture.write("b.md", &one_step("Behind", "behind"));
    let exec = "cp a.log seen; echo behind > out.txt";
    let said = fixture.planctl(&["plan", "run", "b.md", "--approve", "-d", "--exec", exec]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.trim().to_owned()
}

fn is_ended_before(house: &House, behind: &str) {
    house.until(behind, "done");
    assert!(!house.fixture.read("seen").is_empty());
    assert_eq!(house.fixture.read("a.log"), house.fixture.read("seen"), "the agent before it wrote on");
    let audit = house.fixture.planctl(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn the_next_run_in_a_workspace_begins_when_the_worker_of_a_cancelled_one_has_ended() {
    let house = House::new();
    let run = begin(&house.fixture, "a.md", &one_step("Long", "long"));
    let mut going = worker(&house, WRITES_ON, &["--once"]);
    until("the worker writes", || house.fixture.path("a.log").exists());
    let behind = begin_behind(&house.fixture);
    assert_eq!(house.fixture.planctl(&["plan", "cancel", &run]).code, 0);
    going.hear("the run is over");
    assert_eq!(going.end().code, 0);
    is_ended_before(&house, &behind);
}

#[test]
fn the_next_run_in_a_workspace_begins_when_the_daemon_s_own_agent_of_a_cancelled_one_has_ended() {
    let house = House::new();
    house.fixture.write("a.md", &one_step("Long", "long"));
    let said = house.fixture.planctl(&["plan", "run", "a.md", "--approve", "-d", "--exec", WRITES_ON]);
    assert_eq!(said.code, 0, "{said:?}");
    until("the agent writes", || house.fixture.path("a.log").exists());
    let behind = begin_behind(&house.fixture);
    assert_eq!(house.fixture.planctl(&["plan", "cancel", said.out.trim()]).code, 0);
    is_ended_before(&house, &behind);
}

#[test]
fn a_run_says_whose_agent_it_waits_for_and_begins_when_that_gives_its_item_back() {
    let house = House::new();
    let run = begin(&house.fixture, "a.md", &one_step("Long", "long"));
    let claimed = house.fixture.json(&["item", "claim", "--role", "coder", "--json"]);
    house.fixture.write("a.log", "a\n");
    let behind = begin_behind(&house.fixture);
    assert_eq!(house.fixture.planctl(&["plan", "cancel", &run]).code, 0);
    let view = house.fixture.json(&["plan", "status", &behind, "--json"]);
    assert_eq!((&view["state"], &view["waiting_on"]["kind"]), (&"queued".into(), &"ending".into()), "{view}");
    assert_eq!(view["waiting_on"]["run"], run, "{view}");
    let page = house.fixture.planctl(&["plan", "status", &behind]);
    assert!(page.out.contains(&format!("waiting for run {run}, whose agent is being ended")), "{page:?}");
    let list = house.fixture.planctl(&["ls"]);
    assert!(list.out.contains(&format!("the end of run {run}'s agent")), "{list:?}");
    let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
    assert_eq!(
        house.fixture.planctl(&["item", "heartbeat", item, "--token", token, "--wait", "60s"]).code,
        7
    );
    assert_eq!(
        house.fixture.planctl(&["item", "release", item, "--token", token]).code,
        5,
        "it came too late"
    );
    is_ended_before(&house, &behind);
}

#[test]
fn a_worker_that_vanished_keeps_a_workspace_as_long_as_its_lease_lasts() {
    let house = House::new();
    let run = begin(&house.fixture, "a.md", &one_step("Long", "long"));
    let claimed = house.fixture.json(&["item", "claim", "--role", "coder", "--lease", "5s", "--json"]);
    house.fixture.write("a.log", "a\n");
    let behind = begin_behind(&house.fixture);
    assert_eq!(house.fixture.planctl(&["plan", "cancel", &run]).code, 0);
    is_ended_before(&house, &behind);
    let view = house.fixture.json(&["plan", "status", &behind, "--json"]);
    let (began, over) = (view["started_at"].as_str().unwrap(), claimed["lease_until"].as_str().unwrap());
    assert!(instant_of(began) >= instant_of(over), "{began} is before {over}");
}

fn instant_of(moment: &str) -> time::OffsetDateTime {
    time::OffsetDateTime::parse(moment, &time::format_description::well_known::Rfc3339).unwrap()
}

#[test]
fn a_worker_that_is_silent_for_too_long_is_ended_and_told_apart_from_a_slow_one() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let said = house.fixture.planctl(&words("sleep 600", &["--once", "--idle-timeout", "1s"]));
    assert!(said.code == 0 && said.err.contains("it was silent for too long and was ended"), "{said:?}");
    let logs = house.fixture.planctl(&["plan", "logs", &run]);
    assert!(logs.out.contains("ended after too long a silence"), "{logs:?}");
}

#[test]
fn p5_a_worker_that_is_killed_loses_its_lease_and_another_one_finishes() {
    let house = House::with(&[("PLANCTL_LEASE_SECONDS", "1")]);
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let first = worker(&house, "echo $$ > first; sleep 600", &[]);
    until("the first works", || lives(&house.fixture.read("first")));
    first.signal(Signal::KILL);
    until("nothing outlives it", || !lives(&house.fixture.read("first")));
    let said = house.fixture.planctl(&words("echo hello > out.txt", &["--once"]));
    assert_eq!(said.code, 0, "{said:?}");
    let view = house.until(&run, "done");
    assert_eq!(view["steps"][0]["attempts"], 1, "no attempt was spent: {view}");
    // The guardian of the killed one may have held its folder yet when the second one began.
    let is_swept = || std::fs::read_dir(house.fixture.state().join("work")).unwrap().next().is_none();
    until("what it left is swept", || {
        is_swept() || house.fixture.planctl(&words("true", &["--drain"])).code != 0
    });
    assert!(is_swept());
}

#[test]
fn a_worker_that_is_cut_off_for_longer_than_its_lease_ends_its_work() {
    let house = House::with(&[("PLANCTL_LEASE_SECONDS", "1")]);
    begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let mut going = worker(&house, "echo $$ > pid; sleep 600", &["--once"]);
    until("it works", || lives(&house.fixture.read("pid")));
    kill_daemon(&house);
    going.hear("was away for longer");
    assert!(!lives(&house.fixture.read("pid")));
    assert_eq!(going.end().code, 0);
}

#[test]
fn a_worker_goes_on_whose_daemon_stood_still_until_shortly_before_the_end_of_the_lease() {
    // Its lease lasts for four times as long, and a heartbeat waits for news for a third of that.
    let house = House::with(&[("PLANCTL_LEASE_SECONDS", "5")]);
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let exec = "echo $$ > pid; until test -e go; do sleep 0.1; done; echo hello > out.txt";
    let going = worker(&house, exec, &["--once"]);
    until("it works", || lives(&house.fixture.read("pid")));
    house.signal(Signal::STOP);
    let left =
        "select lease_until < clock_timestamp() + interval '5 seconds' from items where state = 'leased'";
    house.until_sql(left, "t");
    let over = house.fixture.sql("select lease_until from items where state = 'leased'");
    house.signal(Signal::CONT);
    house.until_sql(&format!("select clock_timestamp() > '{over}'"), "t");
    house.fixture.write("go", "");
    let said = going.end();
    assert!(said.code == 0 && !said.err.contains("was away"), "{said:?}");
    house.until(&run, "done");
}

fn kill_daemon(house: &House) {
    let daemon = house.local("GET", "/v1/daemon", &Ask::default()).json();
    let pid = daemon["daemon"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    until("the daemon is gone", || !lives(&pid.as_raw_nonzero().to_string()));
}

#[test]
fn p4_a_daemon_that_is_killed_and_started_again_hears_the_report() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let mut going = worker(
        &house,
        "touch begun; until [ -e go ]; do sleep 0.05; done; echo hello > out.txt",
        &["--once"],
    );
    until("it works", || house.fixture.path("begun").exists());
    kill_daemon(&house);
    // It ends while nobody is there to hear it.
    house.fixture.write("go", "");
    going.hear("could not reach");
    let said = house.fixture.planctl(&["daemon", "start"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("worked"), "{said:?}");
    let view = house.until(&run, "done");
    assert_eq!(view["steps"][0]["attempts"], 1, "{view}");
    let reports = house.fixture.events(&run).iter().filter(|line| line["event"] == "agent.reported").count();
    assert_eq!(reports, 1);
}

#[test]
fn a_question_frees_the_worker_and_two_interrupts_give_an_item_back() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let exec = r#"cat > prompt; if grep -q 'the word hello' prompt; then echo $PLANCTL_ATTEMPT > attempt; echo $$ > long; sleep 600; else
                  echo '{"planctl":"result/1","outcome":"needs_input","question":"Which word?"}'; fi"#;
    let mut going = worker(&house, exec, &[]);
    going.hear("Which word?");
    house.until(&run, "waiting");
    let ask = house.fixture.ask();
    let answered = house.fixture.planctl(&["approvals", "answer", &ask, "--note", "the word hello"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    until("it works again", || lives(&house.fixture.read("long")));
    going.signal(Signal::INT);
    going.hear("finishing");
    going.signal(Signal::INT);
    let said = going.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert!(!lives(&house.fixture.read("long")));
    // An item given back is there at once for the next worker, and no attempt was spent.
    let claimed = house.claim();
    assert_eq!(claimed["attempt"].to_string(), house.fixture.read("attempt").trim(), "{claimed}");
}

#[test]
fn a_worker_over_the_network_needs_a_token_and_gives_back_what_is_not_here() {
    let house = House::new();
    let server = format!("http://{}", house.port);
    let secret = house.token("worker");
    let over = |token: &str, words: &[&str]| {
        let mut command = house.fixture.command(words);
        command.env("PLANCTL_SERVER", &server).env("PLANCTL_TOKEN", token);
        let said = Said::from(command.output().unwrap());
        schema::check(words, &said.out);
        said
    };
    let refused = over("planctl_wrong", &words("true", &["--once"]));
    assert_eq!(refused.code, 77, "{refused:?}");
    let idle = over(&secret, &["item", "claim", "--role", "coder", "--no-wait"]);
    assert_eq!(idle.code, 10, "{idle:?}");
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let said = over(&secret, &words("env > env; echo hello > out.txt", &["--once", "--env", "WORD=x y"]));
    assert_eq!(said.code, 0, "{said:?}");
    house.until(&run, "done");
    let env = house.fixture.read("env");
    assert!(env.contains("WORD=x y") && env.contains("PLANCTL_STEP=1"), "{env}");
    assert!(!env.contains(&secret) && !env.contains("PLANCTL_SERVER"), "{env}");

    let gone = house.fixture.path("../gone");
    std::fs::create_dir(&gone).unwrap();
    std::fs::write(gone.join("q.md"), one_step("Gone", "gone")).unwrap();
    let (folder, file) = (gone.to_str().unwrap(), gone.join("q.md"));
    let said = house.fixture.planctl(&[
        "--workspace",
        folder,
        "plan",
        "run",
        file.to_str().unwrap(),
        "--approve",
        "-d",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    std::fs::rename(&gone, house.fixture.path("../away")).unwrap();
    let mut going = worker(&house, "true", &[]);
    going.hear("is not on this machine");
    going.signal(Signal::INT);
    assert_eq!(going.end().code, 0);
}

#[test]
fn a_script_claims_minds_and_completes_an_item() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("it's a `test` $(x)", "hello"));
    let script = r#"set -eu
        eval "$("$PLANCTL" work claim --role coder --wait 30s --lease 2m --shell)"
        printf '%s' "$PLANCTL_STEP_TITLE" > title
        "$PLANCTL" work show --json > shown.json
        "$PLANCTL" work heartbeat > beat
        echo 'at it' | "$PLANCTL" work log
        "$PLANCTL" work usage --input 100 --output 20 --cost 0.5
        grep -q 'Write hello' "$PLANCTL_PROMPT_FILE"
        cp "$PLANCTL_PROMPT_FILE" prompt.md
        cd "$PLANCTL_WORKSPACE"; echo hello > out.txt
        echo 'my last words' > said.txt
        "$PLANCTL" work complete "$PLANCTL_ITEM" --result said.txt
        test ! -e "$PLANCTL_PROMPT_FILE"
        "$PLANCTL" work complete "$PLANCTL_ITEM" --result said.txt
        echo "$PLANCTL_ITEM $PLANCTL_ITEM_TOKEN" > held"#;
    let template = house.fixture.command(&[]);
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(house.fixture.path("")).env_clear();
    bash.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bash.env("PLANCTL", env!("CARGO_BIN_EXE_planctl"));
    let said = Said::from(bash.output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "the contract is checked\nthe contract is checked (heard before)\n");
    assert_eq!(house.fixture.read("title"), "Write the word");
    let view = house.until(&run, "done");
    assert_eq!(view["spent"]["tokens"], 120, "{view}");
    assert!(house.fixture.planctl(&["plan", "logs", &run]).out.contains("my last words"));
    let followed = house.fixture.planctl(&["plan", "logs", &run, "-f"]);
    assert!(followed.out.contains("  1.1 worker │ at it\n"), "{followed:?}");
    let told = house.fixture.json(&["plan", "logs", &run, "--prompt", "--json"]);
    assert_eq!(
        told["prompts"][0]["prompt"].as_str(),
        Some(house.fixture.read("prompt.md").as_str()),
        "{told}"
    );
    // A worker that holds nothing any more is told to stop.
    let held = house.fixture.read("held");
    let (item, token) = held.trim().split_once(' ').unwrap();
    let late = house.fixture.planctl(&["item", "heartbeat", item, "--token", token]);
    assert_eq!(late.code, 7, "the run is over: {late:?}");
    let other = house.fixture.planctl(&["item", "heartbeat", item, "--token", "other"]);
    assert!(other.code == 77 && other.err.contains("is claimed anew: eval"), "{other:?}");
    let nameless = house.fixture.planctl(&["item", "heartbeat"]);
    assert_eq!(nameless.code, 2, "{nameless:?}");
}

#[test]
fn work_can_be_failed_asked_about_released_and_cancelled() {
    let house = House::new();
    let run = begin(&house.fixture, "p.md", &one_step("Hello", "hello"));
    let claim = || house.fixture.json(&["item", "claim", "--role", "coder", "--json"]);
    let tell = |claimed: &Value, verb: &str, more: &[&str]| {
        let (item, token) = (claimed["item"].as_str().unwrap(), claimed["token"].as_str().unwrap());
        house.fixture.planctl(&[&["work", verb, item, "--token", token, "--json"][..], more].concat())
    };
    let claimed = claim();
    assert_eq!(tell(&claimed, "release", &[]).code, 0);
    assert_eq!(tell(&claimed, "heartbeat", &[]).code, 5, "released is lost");
    let claimed = claim();
    assert_eq!(tell(&claimed, "show", &[]).code, 0);
    assert_eq!(tell(&claimed, "ask", &["--question", "Which word?"]).code, 0);
    house.until(&run, "waiting");
    assert_eq!(
        house.fixture.planctl(&["approvals", "answer", &house.fixture.ask(), "--note", "hello"]).code,
        0
    );
    let claimed = house.fixture.json(&["item", "claim", "--role", "coder", "--agent-id", "mole", "--json"]);
    let list = || house.fixture.planctl(&["worker", "ls"]);
    assert!(list().out.contains("mole") && list().out.contains("ago"), "{:?}", list());
    let transient = tell(&claimed, "fail", &["--reason", "no network", "--transient"]);
    assert!(transient.out.contains("it is tried again later"), "{transient:?}");
    let claimed = claim();
    assert_eq!(tell(&claimed, "fail", &["--reason", "no login", "--kind", "permission"]).code, 0);
    house.until(&run, "waiting");
    assert_eq!(house.fixture.planctl(&["approvals", "retry", &house.fixture.ask()]).code, 0);
    let claimed = claim();
    assert_eq!(house.fixture.planctl(&["plan", "cancel", &run]).code, 0);
    assert_eq!(tell(&claimed, "heartbeat", &[]).code, 7);
    assert_eq!(tell(&claimed, "complete", &[]).code, 5);

    let seen_before = |time: &str| {
        let seen = format!("last_seen_at = clock_timestamp() - interval '{time}'");
        house.fixture.sql(&format!("update workers set {seen} where id = 'mole'"));
        house.fixture.planctl(&["worker", "ls"])
    };
    let gone = seen_before("5 minutes").out;
    let mole = gone.lines().find(|line| line.starts_with("mole ")).unwrap_or_else(|| panic!("{gone}"));
    assert!(mole.contains("  gone  ") && mole.ends_with(" ago"), "{gone}");
    let old = seen_before("2 hours");
    assert!(!old.out.contains("mole") && old.err.contains("1 more, last seen over an hour ago"), "{old:?}");
    assert!(house.fixture.planctl(&["-v", "worker", "ls"]).out.contains("mole"));
}

#[test]
fn the_examples_of_workers_in_bash_and_python_do_a_step_over_the_network_and_keep_their_leases() {
    // A lease of 8 s, renewed every 2 s; the work takes longer than a lease.
    let house = House::with(&[("PLANCTL_LEASE_SECONDS", "2")]);
    let secret = house.token("worker");
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers");
    let script = "sleep 10; word=$(grep -o 'Write [a-z]* into' | cut -d ' ' -f 2); echo \"$word\" > out.txt";
    let mut working = Vec::new();
    for (program, name) in [("curl.sh", "bash"), ("worker.py", "python")] {
        let run = begin_beside(&house, name, &format!("{name}.md"), name);
        let mut command = Command::new(examples.join(program));
        command.args(["coder", "bash", "-c", script]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ONCE", "1");
        command.env("PLANCTL_SERVER", format!("http://{}", house.port)).env("PLANCTL_TOKEN", &secret);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        working.push((run, command.spawn().unwrap()));
    }
    for (run, worker) in working {
        let said = Said::from(worker.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains("the contract is checked"), "{said:?}");
        let view = house.until(&run, "done");
        assert_eq!(view["steps"][0]["attempts"], 1, "{view}");
    }
}

#[test]
fn the_examples_of_workers_outlive_a_cancelled_run_and_a_killed_daemon_and_tell_their_agents_no_secret() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers");
    let script = "env > env; touch begun; until [ -e go ]; do sleep 0.05; done; \
                  word=$(grep -o 'Write [a-z]* into' | cut -d ' ' -f 2); echo \"$word\" > out.txt";
    for program in ["curl.sh", "worker.py"] {
        let house = House::new();
        let secret = house.token("worker");
        let cancelled = begin(&house.fixture, "p.md", &one_step("Late", "late"));
        let mut command = Command::new(examples.join(program));
        command.args(["coder", "bash", "-c", script]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ONCE", "1");
        command.env("PLANCTL_SERVER", format!("http://{}", house.port)).env("PLANCTL_TOKEN", &secret);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let working = command.spawn().unwrap();
        until("it works", || house.fixture.path("begun").exists());
        // Long before a heartbeat could tell: its report comes too late, and is refused.
        assert_eq!(house.fixture.planctl(&["plan", "cancel", &cancelled]).code, 0);
        house.fixture.write("go", "");
        until("it came to its end", || house.fixture.path("out.txt").exists());
        let env = house.fixture.read("env");
        assert!(
            env.contains("PLANCTL_SERVER") && !env.contains(&secret) && !env.contains("PLANCTL_TOKEN"),
            "{env}"
        );
        kill_daemon(&house);
        let said = house.fixture.planctl(&["daemon", "start", "--listen", &house.port]);
        assert_eq!(said.code, 0, "{said:?}");
        let run = begin(&house.fixture, "q.md", &one_step("Hello", "hello"));
        let said = Said::from(working.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{program}: {said:?}");
        assert!(said.out.contains("the contract is checked"), "{program}: {said:?}");
        assert!(said.err.contains("409"), "{program}: {said:?}");
        house.until(&run, "done");
    }
}

#[test]
fn b10_12_a_claim_may_wait_for_longer_than_a_clock_can_add() {
    let house = House::new();
    let run = house.run("a", "word");
    let words = ["item", "claim", "--role", "coder", "--wait", "9300000000000000000s"];
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
    house.fixture.planctl(&["plan", "cancel", &run]);
}

#[test]
fn b10_5_a_run_is_found_by_its_name_where_a_file_has_the_same() {
    let house = House::new();
    let run = house.run("a", "word");
    let sub = house.fixture.path("sub");
    house.fixture.write(&format!("sub/{run}"), "a file of somebody");
    let asked = |what: &str| {
        let mut command = house.fixture.command(&["plan", "status", what, "--workspace"]);
        Said::from(command.arg(house.fixture.path("")).current_dir(&sub).output().unwrap())
    };
    let by_name = asked(&run);
    assert!(by_name.code == 0 && by_name.out.contains(&run), "{by_name:?}");
    let by_path = asked("../a.md");
    assert!(by_path.code == 0 && by_path.out.contains(&run), "{by_path:?}");
    assert_eq!(asked("none").code, 4);
    house.fixture.planctl(&["plan", "cancel", &run]);
}

/// Passes on what is sent to a port, but no call that shows what was printed: that one is never answered.
fn without_logs(port: &str) -> String {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, port) = (door.local_addr().unwrap().to_string(), port.to_owned());
    std::thread::spawn(move || {
        for client in door.incoming().map_while(Result::ok) {
            let daemon = TcpStream::connect(&port).unwrap();
            let (mut answers, mut asker) = (daemon.try_clone().unwrap(), client.try_clone().unwrap());
            // A client that leaves ends both ways.
            std::thread::spawn(move || std::io::copy(&mut answers, &mut asker).ok());
            std::thread::spawn(move || pass_on(client, daemon));
        }
    });
    address
}

fn pass_on(mut client: TcpStream, mut daemon: TcpStream) {
    let mut bytes = [0; 8192];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let is_log = bytes[..count].windows(9).any(|window| window == b"/log HTTP");
        if !is_log && daemon.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

#[test]
fn b10_13_a_report_does_not_wait_until_the_last_output_is_shown() {
    let house = House::new();
    let token = house.token("worker");
    let run = house.run("a", "word");
    let server = format!("http://{}", without_logs(&house.port));
    let mut worker =
        house.fixture.command(&words("echo words; echo word >out.txt", &["--once", "--server", &server]));
    let began = Instant::now();
    let said = Said::from(worker.env("PLANCTL_TOKEN", &token).output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    house.until(&run, "done");
}

#[test]
fn b10_6_ctrl_c_ends_who_looks_on_while_the_daemon_does_not_answer() {
    let house = House::new();
    let run = house.run("a", "word");
    for words in [&["plan", "watch", &run][..], &["events", "--follow", "--run", &run]] {
        let looking = house.fixture.start(words);
        looking.until_it_listens();
        house.signal(Signal::STOP);
        let asked = Instant::now();
        looking.signal(Signal::INT);
        let said = looking.end();
        house.signal(Signal::CONT);
        assert_eq!(said.code, 130, "{words:?}: {said:?}");
        assert!(asked.elapsed() < Duration::from_secs(10), "{words:?}: {:?}", asked.elapsed());
    }
    house.fixture.planctl(&["plan", "cancel", &run]);
}
