//! Agents by name: stand-ins on a `PATH` of the test record what they are given and replay captured outputs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{AgentSaid, Ending, FaultKind, Overrun};
use planctl_harness::{Agent, Assignment, NamedAgent, PermissionMode, Program, Spawner, Worked};

use super::support::{alive, block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a_known_agent_gets_its_line_its_prompt_and_its_own_variables,
        d11_no_task_is_read_by_aider_as_a_command,
        what_agents_answer_is_read_whatever_they_exit_with,
        an_error_of_the_service_is_infrastructure_whatever_they_exit_with,
        a_missing_login_asks_a_person,
        d1_a_refused_login_is_told_with_the_way_to_sign_in_at_once,
        d3_d4_work_that_the_service_cut_off_goes_to_its_contract_with_the_trouble,
        d8_an_agent_that_does_not_begin_is_told_at_once_and_by_its_own_words,
        d8_a_killed_agent_leaves_no_json_as_its_words,
        a_last_message_stands_in_for_a_text,
        what_was_denied_becomes_a_question_where_a_person_is_to_be_asked,
        past_the_deadline_the_whole_tree_is_ended_and_no_status_counts,
        past_the_idle_timeout_the_whole_tree_is_ended,
        a_cancel_ends_the_whole_tree_and_gives_the_work_back,
        d12_an_agent_that_is_not_installed_is_not_tried_again,
        permissions_that_an_agent_cannot_keep_start_nothing,
    ]
}

const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "aider"];

/// Says what it was given, replays a fixture, and exits as told.
const REPLAY: &str = r#"#!/bin/bash
printf '%s\n' "$@" > "$RECORD/argv"
cat > "$RECORD/stdin"
env > "$RECORD/env"
while [ $# -gt 0 ]; do
  [ "$1" = --message-file ] && cp "$2" "$RECORD/message"
  [ "$1" = -o ] && [ -n "$LAST" ] && printf '%s' "$LAST" > "$2"
  shift
done
cat "$REPLAY"
exit "$STATUS"
"#;

/// Starts a tree that ignores TERM, prints as if it were done, and hangs.
const HANG: &str = r#"#!/bin/bash
trap 'cat "$REPLAY"; exit 0' TERM
(trap '' TERM; sleep 999 & sleep 999) &
setsid bash -c 'trap "" TERM; while :; do sleep 999; done' &
echo working
touch "$RECORD/started"
wait
"#;

struct Place {
    folder: tempfile::TempDir,
    spawner: Spawner,
}

impl Place {
    fn new(script: &str) -> Place {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "workspace", "scratch", "record"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for agent in AGENTS {
            let path = folder.path().join("bin").join(agent);
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Place { folder, spawner: spawner() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn recorded(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("record").join(name)).unwrap()
    }

    fn agent(&self, agent: &str, fixture: &str, status: i32) -> Agent {
        let program = Program::Known(NamedAgent::parse(agent).unwrap());
        let mut agent = Agent::exec(program, self.path("scratch"));
        agent.grace = Duration::from_millis(300);
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        agent.environment = vec![
            ("PATH".into(), format!("{}:/usr/bin:/bin", self.path("bin").display()).into()),
            ("RECORD".into(), self.path("record").into()),
            ("REPLAY".into(), fixture.into()),
            ("STATUS".into(), status.to_string().into()),
        ];
        agent
    }

    fn assignment(&self) -> Assignment {
        Assignment {
            item: "item-1".into(),
            run: "fix-auth-3".into(),
            plan: "fix-auth.md".into(),
            step: "2".into(),
            step_title: "Fix".into(),
            node: "2".into(),
            role: "coder".into(),
            profile: None,
            thread: None,
            attempt: 1,
            attempts_max: 3,
            workspace: self.path("workspace"),
            prompt: "Do it.\nAll of it.\n".into(),
            context: Vec::new(),
            deadline: Duration::from_secs(60),
            deadline_at: None,
            budget_tokens: None,
            budget_micro_usd: Some(250_000),
            traceparent: None,
            locks: Vec::new(),
        }
    }

    fn work(&self, agent: &Agent) -> Worked {
        let cancel = std::future::pending();
        block_on(agent.run_item(&self.spawner, &self.assignment(), &mut |_, _| (), cancel))
    }

    fn assert_all_dead(&self) {
        let mark = format!("PLANCTL_WORKSPACE={}", self.path("workspace").display());
        assert_eq!(alive(&mark), [0_i32; 0]);
    }
}

fn fixture(agent: &str, which: &str) -> String {
    format!("{agent}-{which}.{}", if agent == "aider" { "txt" } else { "jsonl" })
}

fn a_known_agent_gets_its_line_its_prompt_and_its_own_variables() {
    for agent in AGENTS {
        let place = Place::new(REPLAY);
        let mut known = place.agent(&format!("{agent}:-m 'a model'"), &fixture(agent, "ok"), 0);
        known.environment.push(("LAST".into(), "".into()));
        let said = place.work(&known).said;
        let AgentSaid::Reported(report) = said else { panic!("{agent}: {said:?}") };
        let argv: Vec<String> = place.recorded("argv").lines().map(str::to_owned).collect();
        assert!(argv.windows(2).any(|pair| pair == ["-m", "a model"]), "{agent}: {argv:?}");
        if agent == "aider" {
            // A message that begins with `/` or `!` would be a command.
            assert_eq!(place.recorded("message"), "This is the task.\n\nDo it.\nAll of it.\n");
            assert_eq!(place.recorded("stdin"), "");
        } else {
            assert_eq!(place.recorded("stdin"), "Do it.\nAll of it.\n", "{agent}");
        }
        let names: Vec<String> = place
            .recorded("env")
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
            .collect();
        assert!(names.iter().any(|name| name == "PLANCTL_ITEM_ID"));
        for secret in ["PLANCTL_DATABASE_URL", "DATABASE_URL", "NODE_OPTIONS", "PYTHONPATH"] {
            assert!(!names.iter().any(|name| name == secret), "{agent}: {secret}");
        }
        let has_key = ["claude", "opencode", "aider"].contains(&agent);
        assert_eq!(names.iter().any(|name| name == "ANTHROPIC_API_KEY"), has_key, "{agent}: its own login");
        if agent == "claude" {
            assert!(argv.windows(2).any(|pair| pair == ["--max-budget-usd", "0.250000"]), "{argv:?}");
            assert_eq!(report.circumstances.unwrap().session.as_deref(), Some("ID"));
        }
    }
}

fn d11_no_task_is_read_by_aider_as_a_command() {
    for task in ["/api/users answers 500.\n", "!touch it\n", "/exit\n"] {
        let place = Place::new(REPLAY);
        let assignment = Assignment { prompt: task.into(), ..place.assignment() };
        let agent = place.agent("aider", "aider-ok.txt", 0);
        let cancel = std::future::pending();
        block_on(agent.run_item(&place.spawner, &assignment, &mut |_, _| (), cancel));
        assert_eq!(place.recorded("message"), format!("This is the task.\n\n{task}"));
    }
}

fn what_agents_answer_is_read_whatever_they_exit_with() {
    for (agent, tokens, money, model) in [
        ("claude", 142, Some(840), Some("claude-opus-4-8[1m]")),
        ("codex:-m gpt-x", 127, None, Some("gpt-x")),
        ("gemini", 127, None, Some("gemini-x")),
        ("opencode:--model=p/m", 127, Some(129), Some("p/m")),
        ("aider", 127, Some(360), None),
    ] {
        let name = agent.split(':').next().unwrap();
        for status in [0, 1] {
            let place = Place::new(REPLAY);
            let said = place.work(&place.agent(agent, &fixture(name, "ok"), status)).said;
            let AgentSaid::Reported(report) = said else { panic!("{agent}: {said:?}") };
            assert_eq!(report.text.tail, "Done: wrote docs/analysis.md", "{agent}");
            assert_eq!(report.ending, Some(Ending::Exited { code: status }), "{agent}");
            let usage = report.usage.unwrap();
            assert_eq!((usage.tokens(), usage.micro_usd), (tokens, money), "{agent}");
            assert_eq!(usage.model.as_deref(), model, "{agent}");
        }
    }
}

fn an_error_of_the_service_is_infrastructure_whatever_they_exit_with() {
    for (agent, status) in [("claude", 1), ("codex", 1), ("gemini", 144), ("opencode", 1), ("aider", 0)] {
        for status in [status, 0] {
            let place = Place::new(REPLAY);
            let said = place.work(&place.agent(agent, &fixture(agent, "400"), status)).said;
            let AgentSaid::Faulted(fault) = said else { panic!("{agent}: {said:?}") };
            assert_eq!(fault.kind, FaultKind::Transient, "{agent}");
            assert!(fault.message.contains("fake failure"), "{agent}: {}", fault.message);
        }
    }
}

const SIGN_IN: &str = "Please sign in (sign in: run `gemini` and choose a login, or set GEMINI_API_KEY)";

fn a_missing_login_asks_a_person() {
    for status in [41, 55] {
        let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", "echo 'Please sign in' >&2"));
        let said = place.work(&place.agent("gemini", "gemini-ok.jsonl", status)).said;
        let AgentSaid::Faulted(fault) = said else { panic!("{said:?}") };
        assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::Permission, SIGN_IN));
        // With any other agent the number means nothing.
        let said = place.work(&place.agent("codex", "codex-ok.jsonl", status)).said;
        let AgentSaid::Faulted(fault) = said else { panic!("{said:?}") };
        assert_eq!(fault.kind, FaultKind::Permanent, "{fault:?}");
    }
}

fn d1_a_refused_login_is_told_with_the_way_to_sign_in_at_once() {
    let slow = "while read -r line; do echo \"$line\"; sleep 0.05; done < \"$REPLAY\"; sleep 60";
    for agent in ["claude", "codex"] {
        let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", slow));
        let said = place.work(&place.agent(agent, &fixture(agent, "401"), 0)).said;
        let AgentSaid::Faulted(fault) = said else { panic!("{agent}: {said:?}") };
        assert_eq!(fault.kind, FaultKind::Permission, "{agent}: {fault:?}");
        assert!(fault.message.contains("sign in: "), "{agent}: {fault:?}");
        assert!(fault.message.contains("401"), "{agent}: {fault:?}");
        place.assert_all_dead();
    }
}

fn d3_d4_work_that_the_service_cut_off_goes_to_its_contract_with_the_trouble() {
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let place = Place::new(REPLAY);
        let said = place.work(&place.agent(agent, &fixture(agent, "cut-off"), 1)).said;
        let AgentSaid::Reported(report) = said else { panic!("{agent}: {said:?}") };
        let cut_off = report.circumstances.unwrap().cut_off.unwrap();
        assert_eq!(cut_off.kind, FaultKind::Transient, "{agent}");
        assert!(cut_off.message.contains("fake failure"), "{agent}: {cut_off:?}");
        assert_eq!(report.usage.is_some(), agent != "codex", "{agent}: what is not told is unmetered");
        assert!(report.text.tail.contains("fake failure") && !report.text.tail.contains('{'), "{agent}");
    }
}

fn d8_an_agent_that_does_not_begin_is_told_at_once_and_by_its_own_words() {
    for (agent, words) in [
        ("claude", "error: unknown option '--foo'"),
        ("codex", "error: unexpected argument '--foo' found"),
        ("gemini", "Unknown argument: foo"),
        ("aider", "aider: error: unrecognized arguments: --foo"),
    ] {
        let usage = format!("echo 'Usage: x' >&2; echo \"{words}\" >&2; echo '-h, --help  Show help' >&2");
        let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", &usage));
        let said = place.work(&place.agent(agent, &fixture(agent, "ok"), 2)).said;
        let AgentSaid::Faulted(fault) = said else { panic!("{agent}: {said:?}") };
        assert_eq!(fault.kind, FaultKind::Permanent, "{agent}");
        assert_eq!(fault.message, format!("{agent} did not begin: exit 2, {words}"));
    }
}

fn d8_a_killed_agent_leaves_no_json_as_its_words() {
    let killed = "head -3 \"$REPLAY\"; kill -9 $$";
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", killed));
        let said = place.work(&place.agent(agent, &fixture(agent, "cut-off"), 0)).said;
        let AgentSaid::Reported(report) = said else { panic!("{agent}: {said:?}") };
        assert_eq!(report.text.tail, "", "{agent}");
        assert_eq!(report.ending, Some(Ending::Signalled { signal: 9 }), "{agent}");
        assert!(report.circumstances.unwrap().session.is_some(), "{agent}: its session can be taken up");
    }
}

fn a_last_message_stands_in_for_a_text() {
    let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", "echo '{\"type\":\"turn.started\"}'"));
    let mut agent = place.agent("codex", "codex-ok.jsonl", 0);
    agent.environment.push(("LAST".into(), "From the file.\n".into()));
    let said = place.work(&agent).said;
    let AgentSaid::Reported(report) = said else { panic!("{said:?}") };
    assert_eq!(report.text.tail, "From the file.");
}

fn what_was_denied_becomes_a_question_where_a_person_is_to_be_asked() {
    let denied = r#"sed 's/"permission_denials":\[\]/"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"make"}}]/' "$REPLAY""#;
    for mode in PermissionMode::ALL {
        let place = Place::new(&REPLAY.replace("cat \"$REPLAY\"", denied));
        let mut agent = place.agent("claude", "claude-ok.jsonl", 0);
        let mut known = NamedAgent::parse("claude").unwrap();
        known.permissions.mode = mode;
        agent.program = Program::Known(known);
        match (mode, place.work(&agent).said) {
            (PermissionMode::Ask, AgentSaid::Asked { question, usage }) => {
                assert!(question.contains("Bash(make)"), "{question}");
                assert!(usage.is_some());
            }
            (PermissionMode::Deny | PermissionMode::List, AgentSaid::Reported(_)) => {}
            (mode, said) => panic!("{mode:?}: {said:?}"),
        }
    }
}

fn past_the_deadline_the_whole_tree_is_ended_and_no_status_counts() {
    for agent in AGENTS {
        let place = Place::new(HANG);
        let known = place.agent(agent, &fixture(agent, "ok"), 0);
        let mut assignment = place.assignment();
        assignment.deadline = Duration::from_millis(500);
        let pending = std::future::pending();
        let said = block_on(known.run_item(&place.spawner, &assignment, &mut |_, _| (), pending)).said;
        assert!(matches!(said, AgentSaid::Overran { past: Overrun::Deadline, .. }), "{agent}: {said:?}");
        place.assert_all_dead();
    }
}

fn past_the_idle_timeout_the_whole_tree_is_ended() {
    for agent in AGENTS {
        let place = Place::new(HANG);
        let mut known = place.agent(agent, &fixture(agent, "ok"), 0);
        known.idle_timeout = Some(Duration::from_millis(300));
        let said = place.work(&known).said;
        assert!(matches!(said, AgentSaid::Overran { past: Overrun::Silence, .. }), "{agent}: {said:?}");
        place.assert_all_dead();
    }
}

fn a_cancel_ends_the_whole_tree_and_gives_the_work_back() {
    for agent in AGENTS {
        let place = Place::new(HANG);
        let known = place.agent(agent, &fixture(agent, "400"), 0);
        let started = place.path("record").join("started");
        let cancel = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let said = block_on(known.run_item(&place.spawner, &place.assignment(), &mut |_, _| (), cancel)).said;
        assert_eq!(said, AgentSaid::Released, "{agent}");
        place.assert_all_dead();
    }
}

fn d12_an_agent_that_is_not_installed_is_not_tried_again() {
    let place = Place::new(REPLAY);
    let mut agent = place.agent("claude", "claude-ok.jsonl", 0);
    agent.environment[0].1 = "/nowhere".into();
    let said = place.work(&agent).said;
    assert!(matches!(&said, AgentSaid::Faulted(fault) if fault.kind == FaultKind::Permanent), "{said:?}");
}

fn permissions_that_an_agent_cannot_keep_start_nothing() {
    let place = Place::new(REPLAY);
    let mut agent = place.agent("codex", "codex-ok.jsonl", 0);
    let mut known = NamedAgent::parse("codex").unwrap();
    known.permissions.allow = Some(vec!["Bash(git *)".into()]);
    agent.program = Program::Known(known);
    let said = place.work(&agent).said;
    assert!(
        matches!(&said, AgentSaid::Faulted(fault) if fault.message.contains("list of tools")),
        "{said:?}"
    );
    assert!(!place.path("record").join("argv").exists());
}
