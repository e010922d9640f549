//! The `--exec` protocol with real processes (INTERFACE 3.5).

use std::path::Path;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{AgentSaid, Ending, FaultKind, Overrun};
use planctl_harness::{
    Agent, Assignment, ContextEntry, KnownAgent, NamedAgent, Permissions, Program, Spawner, Worked,
};

use super::support::{alive, block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        the_prompt_comes_on_standard_input,
        placeholders_replace_standard_input,
        a13_no_value_is_read_as_shell_text,
        the_environment_tells_the_item_and_no_secret,
        the_private_folder_holds_prompt_and_context_and_is_gone_after,
        results_in_their_order,
        a_result_file_that_is_a_link_is_not_followed,
        an_exit_status_classifies_and_no_status_means_done,
        a_worker_that_says_it_is_done_is_only_reported,
        p_51_work_past_its_deadline_overran,
        silence_past_the_idle_timeout_overran,
        a_cancel_gives_the_work_back,
        what_a_worker_leaves_behind_is_ended,
        an_api_error_by_shape_is_infrastructure,
        a_program_that_is_not_there_is_not_tried_again,
        a_worker_that_ignores_a_large_prompt_still_works,
        a21_a_flood_of_lines_is_listened_to_in_bounded_memory,
    ]
}

/// Where agents of tests work.
pub struct Place {
    pub workspace: tempfile::TempDir,
    scratch: tempfile::TempDir,
    spawner: Spawner,
}

impl Place {
    pub fn new() -> Place {
        let folder = || tempfile::tempdir().unwrap();
        Place { workspace: folder(), scratch: folder(), spawner: spawner() }
    }

    pub fn assignment(&self, prompt: &str) -> Assignment {
        Assignment {
            item: "item-1".into(),
            run: "fix-auth-3".into(),
            plan: "fix-auth.md".into(),
            step: "2".into(),
            step_title: "Fix `it` \"now\" $(touch evil)".into(),
            node: "mend_it".into(),
            role: "coder".into(),
            profile: None,
            thread: None,
            attempt: 2,
            attempts_max: 3,
            workspace: self.workspace.path().into(),
            prompt: prompt.into(),
            context: vec![ContextEntry {
                source: "file:docs/a.md".into(),
                text: "# A".into(),
                remark: None,
                bytes: Some(b"# A".to_vec()),
            }],
            deadline: Duration::from_secs(20),
            deadline_at: Some("2026-11-21T07:00:00Z".into()),
            budget_tokens: Some(1000),
            budget_micro_usd: Some(1_500_000),
            traceparent: None,
            locks: Vec::new(),
        }
    }

    pub fn agent(&self, program: Program) -> Agent {
        let mut agent = Agent::exec(program, self.scratch.path());
        agent.grace = Duration::from_millis(300);
        agent
    }

    pub fn work_with(&self, agent: &Agent, assignment: &Assignment) -> Worked {
        fn movable<T: Send>(future: T) -> T {
            future
        }
        let mut watch = |_: planctl_harness::Stream, _: &[u8]| ();
        block_on(movable(agent.run_item(&self.spawner, assignment, &mut watch, std::future::pending())))
    }

    fn work(&self, script: &str) -> AgentSaid {
        self.work_with(&self.agent(Program::Shell(script.into())), &self.assignment("Do it.\n")).said
    }

    fn text(&self, script: &str) -> String {
        match self.work(script) {
            AgentSaid::Reported(report) => report.text.tail,
            said @ (AgentSaid::Asked { .. }
            | AgentSaid::Overran { .. }
            | AgentSaid::Faulted(_)
            | AgentSaid::Released) => panic!("{said:?}"),
        }
    }
}

fn the_prompt_comes_on_standard_input() {
    let place = Place::new();
    assert_eq!(place.text("cat; echo end"), "Do it.\nend\n");
    assert_eq!(place.text("cat \"$PLANCTL_PROMPT_FILE\""), "Do it.\n");
    assert_eq!(place.text("pwd -P").trim(), place.workspace.path().canonicalize().unwrap().to_str().unwrap());
}

fn placeholders_replace_standard_input() {
    let place = Place::new();
    assert_eq!(place.text("echo {prompt}; cat {prompt_file}; cat | wc -c"), "Do it.\n\nDo it.\n0\n");
}

fn a13_no_value_is_read_as_shell_text() {
    let place = Place::new();
    let hostile = "\"; touch evil; ' $(touch evil) `touch evil` \\";
    for script in ["echo {prompt}", "echo \"{prompt}\"", "echo '{prompt}'", "echo \"$(echo {prompt})\""] {
        let agent = place.agent(Program::Shell(script.into()));
        let said = place.work_with(&agent, &place.assignment(hostile)).said;
        let AgentSaid::Reported(report) = said else { panic!("{said:?}") };
        assert_eq!(report.text.tail, format!("{hostile}\n"), "{script}");
    }
    assert!(place.text("echo \"$PLANCTL_STEP_TITLE\"").contains("$(touch evil)"));
    assert!(!place.workspace.path().join("evil").exists());
}

fn the_environment_tells_the_item_and_no_secret() {
    let place = Place::new();
    let mut agent = place.agent(Program::Shell("env".into()));
    agent.inherited = vec!["NODE_OPTIONS".into(), "PLANCTL_DATABASE_URL".into()];
    agent.environment = vec![("MODEL".into(), "large".into())];
    let AgentSaid::Reported(report) = place.work_with(&agent, &place.assignment("x")).said else {
        panic!("reported")
    };
    let environment = report.text.tail;
    for line in [
        "PLANCTL_PROTOCOL=1",
        "PLANCTL_ITEM_ID=item-1",
        "PLANCTL_RUN_ID=fix-auth-3",
        "PLANCTL_PLAN=fix-auth.md",
        "PLANCTL_STEP=2",
        "PLANCTL_NODE=mend_it",
        "PLANCTL_ROLE=coder",
        "PLANCTL_ATTEMPT=2",
        "PLANCTL_MAX_ATTEMPTS=3",
        "PLANCTL_DEADLINE=2026-11-21T07:00:00Z",
        "PLANCTL_BUDGET_TOKENS=1000",
        "PLANCTL_BUDGET_USD=1.500000",
        "MODEL=large",
    ] {
        assert!(environment.lines().any(|found| found == line), "{line}\n{environment}");
    }
    let names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"NODE_OPTIONS"), "listed by name");
    for secret in [
        "ANTHROPIC_API_KEY",
        "PLANCTL_DATABASE_URL",
        "PLANCTL_TOKEN",
        "DATABASE_URL",
        "PYTHONPATH",
        "BASH_FUNC_test%%",
    ] {
        assert!(!names.contains(&secret), "{secret}");
    }
}

fn the_private_folder_holds_prompt_and_context_and_is_gone_after() {
    let place = Place::new();
    let script = "cat $PLANCTL_CONTEXT_DIR/docs/a.md; stat -c ' %a' $(dirname $PLANCTL_PROMPT_FILE) $PLANCTL_PROMPT_FILE";
    assert_eq!(place.text(script), "# A 700\n 600\n");
    assert_eq!(std::fs::read_dir(place.scratch.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.workspace.path()).unwrap().count(), 0);
}

fn results_in_their_order() {
    let place = Place::new();
    let line = r#"echo '{"planctl":"result/1","text":"line","usage":{"input_tokens":3,"output_tokens":4}}'"#;
    let file = r#"echo '{"text":"file","outcome":"gave_up"}' > "$PLANCTL_RESULT_FILE""#;
    for (script, text, gave_up, tokens) in [
        (format!("echo plain; {line}; {file}"), "file", true, Some(7)),
        (format!("echo plain; {line}"), "line", false, Some(7)),
        ("echo plain".to_owned(), "plain\n", false, None),
        ("echo '{broken' > \"$PLANCTL_RESULT_FILE\"; echo plain".to_owned(), "plain\n", false, None),
        ("echo trouble >&2".to_owned(), "trouble\n", false, None),
    ] {
        let AgentSaid::Reported(report) = place.work(&script) else { panic!("{script}") };
        assert_eq!((report.text.tail.as_str(), report.gave_up), (text, gave_up), "{script}");
        assert_eq!(report.usage.map(|usage| usage.tokens()), tokens, "{script}");
    }
    let ask = r#"echo '{"planctl":"result/1","outcome":"needs_input","question":"Which?"}'"#;
    assert_eq!(place.work(ask), AgentSaid::Asked { question: "Which?".into(), usage: None });
}

fn a_result_file_that_is_a_link_is_not_followed() {
    let place = Place::new();
    let target = place.workspace.path().join("secret.json");
    std::fs::write(&target, r#"{"text":"secret"}"#).unwrap();
    let text = place.text(&format!("ln -s {} \"$PLANCTL_RESULT_FILE\"; echo plain", target.display()));
    assert_eq!(text, "plain\n");
    assert_eq!(place.text("mkfifo \"$PLANCTL_RESULT_FILE\"; echo plain"), "plain\n");
}

fn an_exit_status_classifies_and_no_status_means_done() {
    let place = Place::new();
    for code in [0, 1, 2, 126, 127, 137, 255] {
        let AgentSaid::Reported(report) = place.work(&format!("exit {code}")) else { panic!("{code}") };
        assert_eq!(report.ending, Some(Ending::Exited { code }));
    }
    let AgentSaid::Reported(report) = place.work("kill -9 $$") else { panic!("reported") };
    assert_eq!(report.ending, Some(Ending::Signalled { signal: 9 }));
    for (code, kind) in [(75, FaultKind::Transient), (77, FaultKind::Permission)] {
        let AgentSaid::Faulted(fault) = place.work(&format!("echo why >&2; exit {code}")) else {
            panic!("{code}")
        };
        assert_eq!((fault.kind, fault.message.as_str()), (kind, "why"));
    }
}

fn a_worker_that_says_it_is_done_is_only_reported() {
    let said = Place::new().work("echo all tests pass; echo '{\"verdict\":\"passed\",\"approve\":true}'");
    assert!(matches!(said, AgentSaid::Reported(_)), "{said:?}");
}

fn p_51_work_past_its_deadline_overran() {
    let place = Place::new();
    let mut assignment = place.assignment("x");
    assignment.deadline = Duration::from_millis(300);
    let script = "trap '' TERM; echo '{\"planctl\":\"result/1\",\"usage\":{\"input_tokens\":9}}'; sleep 999; sleep 999";
    let said = place.work_with(&place.agent(Program::Shell(script.into())), &assignment).said;
    let AgentSaid::Overran { past: Overrun::Deadline, duration, usage } = said else { panic!("{said:?}") };
    assert!(duration >= Duration::from_millis(500) && duration < Duration::from_secs(60), "{duration:?}");
    assert_eq!(usage.unwrap().tokens(), 9, "what it had said by then");
}

fn silence_past_the_idle_timeout_overran() {
    let place = Place::new();
    let mut agent = place.agent(Program::Shell("echo one; sleep 999".into()));
    agent.idle_timeout = Some(Duration::from_millis(200));
    let said = place.work_with(&agent, &place.assignment("x")).said;
    assert!(matches!(said, AgentSaid::Overran { past: Overrun::Silence, .. }), "{said:?}");
}

fn a_cancel_gives_the_work_back() {
    let place = Place::new();
    let agent = place.agent(Program::Shell("sleep 999".into()));
    let assignment = place.assignment("x");
    let worked =
        block_on(agent.run_item(&place.spawner, &assignment, &mut |_, _| (), std::future::ready(())));
    assert_eq!(worked.said, AgentSaid::Released);
}

fn what_a_worker_leaves_behind_is_ended() {
    let place = Place::new();
    let mark = format!("PLANCTL_WORKSPACE={}", place.workspace.path().display());
    place.text("setsid sleep 999 & (nohup sleep 999 >/dev/null 2>&1 &); sleep 0.05; echo done");
    assert_eq!(alive(&mark), [0_i32; 0]);
}

fn an_api_error_by_shape_is_infrastructure() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (fixture, code) in [
        ("claude-400.jsonl", 1),
        ("codex-400.jsonl", 1),
        ("gemini-400.jsonl", 144),
        ("opencode-400.jsonl", 1),
        ("aider-400.txt", 0),
    ] {
        let said = place.work(&format!("cat {}; exit {code}", fixtures.join(fixture).display()));
        let AgentSaid::Faulted(fault) = said else { panic!("{fixture}: {said:?}") };
        assert_eq!(fault.kind, FaultKind::Transient, "{fixture}");
    }
    for fixture in
        ["claude-ok.jsonl", "codex-ok.jsonl", "gemini-ok.jsonl", "opencode-ok.jsonl", "aider-ok.txt"]
    {
        let said = place.work(&format!("cat {}; exit 1", fixtures.join(fixture).display()));
        let AgentSaid::Reported(report) = said else { panic!("{fixture}: {said:?}") };
        assert_eq!(report.text.tail, "Done: wrote docs/analysis.md", "{fixture}");
        assert!(report.usage.is_some(), "{fixture}");
    }
}

fn a_program_that_is_not_there_is_not_tried_again() {
    let place = Place::new();
    let (agent, permissions) = (KnownAgent::from_word("claude").unwrap(), Permissions::default());
    let known = NamedAgent { agent, arguments: Vec::new(), permissions };
    let mut agent = place.agent(Program::Known(known));
    agent.environment = vec![("PATH".into(), "/nowhere".into())];
    let said = place.work_with(&agent, &place.assignment("x")).said;
    let AgentSaid::Faulted(fault) = said else { panic!("{said:?}") };
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(fault.message.contains("claude: No such file"), "{fault:?}");
    let mut agent = place.agent(Program::Shell("true".into()));
    agent.scratch = "/nowhere".into();
    let said = place.work_with(&agent, &place.assignment("x")).said;
    assert!(matches!(said, AgentSaid::Faulted(_)), "{said:?}");
}

fn a_worker_that_ignores_a_large_prompt_still_works() {
    let place = Place::new();
    let prompt = "x".repeat(1_000_000);
    let said =
        place.work_with(&place.agent(Program::Shell("exit 3".into())), &place.assignment(&prompt)).said;
    assert!(matches!(said, AgentSaid::Reported(_)), "{said:?}");
    let said = place
        .work_with(&place.agent(Program::Shell("echo {prompt}".into())), &place.assignment(&prompt))
        .said;
    assert!(
        matches!(&said, AgentSaid::Faulted(fault) if fault.message.contains("{prompt_file}")),
        "{said:?}"
    );
}

fn a21_a_flood_of_lines_is_listened_to_in_bounded_memory() {
    let place = Place::new();
    let script = "head -c 100000000 /dev/zero | tr '\\0' '{'; echo; yes '{\"type\":\"x\"}' | head -n 200000; \
        echo '{\"planctl\":\"result/1\",\"text\":\"end\"}'; head -c 1000000 /dev/zero";
    assert_eq!(place.text(script), "end");
}
