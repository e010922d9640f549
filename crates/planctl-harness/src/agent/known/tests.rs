//! The command lines of known agents, word for word (INTERFACE 3.2), and how permissions become flags.

use super::*;

fn words(text: &str, mode: PermissionMode, allow: Option<&[&str]>) -> Result<(String, CommandLine), String> {
    let mut known = NamedAgent::parse(text).unwrap();
    let allow = allow.map(|list| list.iter().map(|tool| (*tool).to_owned()).collect());
    known.permissions = Permissions { mode, allow };
    let line = known.line(Path::new("/room/prompt.md"), Path::new("/room/last"), "UUID", Some(1_500_000))?;
    let words: Vec<_> = line.arguments.iter().map(|word| word.to_str().unwrap()).collect();
    Ok((shlex::try_join(words).unwrap(), line))
}

fn line(text: &str, mode: PermissionMode, allow: Option<&[&str]>) -> String {
    words(text, mode, allow).unwrap().0
}

#[test]
fn the_usual_lines_are_those_that_were_measured() {
    for (text, expected) in [
        (
            "claude",
            "claude -p --output-format stream-json --verbose --permission-mode acceptEdits \
             --allowedTools 'Edit Write Bash(git *)' --max-budget-usd 1.500000 --session-id UUID",
        ),
        ("codex", "codex exec --json --ephemeral --skip-git-repo-check -s workspace-write -o /room/last -"),
        ("gemini", "gemini --skip-trust -o stream-json --approval-mode auto_edit"),
        ("opencode:-m provider/model", "opencode run --format json --auto -m provider/model"),
        (
            "aider",
            "aider --message-file /room/prompt.md --yes-always --no-auto-commits --no-gitignore --no-analytics \
             --no-check-update --no-pretty --no-stream",
        ),
    ] {
        assert_eq!(line(text, PermissionMode::List, None), expected);
    }
    assert!(words("aider", PermissionMode::List, None).unwrap().1.reads_file);
}

#[test]
fn words_after_the_name_are_split_as_a_shell_would_and_come_last() {
    let text = "codex:-m 'gpt x' -c model_reasoning_effort=\"high\"";
    let line = line(text, PermissionMode::List, None);
    assert!(line.ends_with("-o /room/last -m 'gpt x' -c 'model_reasoning_effort=high' -"), "{line}");
    let known = NamedAgent::parse(text).unwrap();
    assert_eq!(known.model(), Some("gpt x"));
    assert_eq!(known.to_string(), "codex:-m 'gpt x' -c 'model_reasoning_effort=high'");
    assert_eq!(NamedAgent::parse(&known.to_string()).unwrap(), known);
    assert_eq!(NamedAgent::parse("claude:--model=opus --model sonnet").unwrap().model(), Some("sonnet"));
    assert_eq!(NamedAgent::parse("claud"), Err(NotKnown::Name { name: "claud".into() }));
    assert!(matches!(NamedAgent::parse("claude:'x"), Err(NotKnown::Arguments { .. })));
}

#[test]
fn permissions_become_each_agents_own_flags() {
    use PermissionMode::{Ask, Deny, List};
    let git: Option<&[&str]> = Some(&["Edit", "Bash(git *)"]);
    let run: Option<&[&str]> = Some(&["Bash(cargo test *)"]);
    let every: Option<&[&str]> = Some(&["*"]);
    for (agent, mode, allow, expected) in [
        ("claude", Deny, None, "--permission-mode default --disallowedTools 'Edit Write NotebookEdit Bash'"),
        ("claude", List, git, "--permission-mode acceptEdits --allowedTools 'Edit Bash(git *)'"),
        ("claude", Ask, run, "--permission-mode default --allowedTools 'Bash(cargo test *)'"),
        ("claude", List, every, "--permission-mode bypassPermissions"),
        ("codex", Deny, None, "-s read-only"),
        ("codex", List, every, "-s danger-full-access"),
        ("gemini", Deny, None, "--approval-mode plan"),
        ("gemini", List, git, "--approval-mode auto_edit --allowed-tools 'run_shell_command(git)'"),
        ("gemini", List, run, "--approval-mode default --allowed-tools 'run_shell_command(cargo test)'"),
        ("gemini", List, every, "--approval-mode yolo"),
        ("opencode", List, every, "--auto"),
        ("aider", Deny, None, "--dry-run"),
        ("aider", List, Some(&["Edit"]), "--no-stream"),
    ] {
        let line = line(agent, mode, allow);
        assert!(line.contains(expected), "{agent} {mode:?}: {line}");
    }
    let rules = |mode, allow| words("opencode", mode, allow).unwrap().1.environment[0].1.clone();
    assert_eq!(
        rules(Deny, None),
        r#"{"*":"deny","glob":"allow","grep":"allow","list":"allow","read":"allow"}"#
    );
    assert_eq!(
        rules(List, git),
        r#"{"*":"deny","bash":{"*":"deny","git *":"allow"},"edit":"allow","glob":"allow","grep":"allow","list":"allow","read":"allow"}"#
    );
    assert!(!line("opencode", Deny, None).contains("--auto"));
}

#[test]
fn what_an_agent_cannot_be_held_to_is_refused() {
    use PermissionMode::{Ask, Deny, List};
    for (agent, mode, allow, expected) in [
        ("codex", List, Some(&["Bash(git *)"][..]), "list of tools"),
        ("aider", List, Some(&["Bash"][..]), "list of tools"),
        ("gemini", Ask, None, "nobody can be asked"),
        ("claude", Deny, Some(&["Edit"][..]), "nothing is allowed"),
        ("claude", List, Some(&["Bash(git *"][..]), "can't be a tool"),
        ("claude", List, Some(&["Edit Bash(rm *)"][..]), "can't be a tool"),
        ("claude", List, Some(&["--dangerously-skip-permissions"][..]), ""),
        ("claude", List, Some(&[""][..]), "can't be a tool"),
        ("claude", List, Some(&["Bash(git) Bash(rm)"][..]), "can't be a tool"),
    ] {
        match words(agent, mode, allow) {
            Err(what) => assert!(what.contains(expected), "{agent}: {what}"),
            Ok((line, _)) => panic!("{agent} {allow:?}: {line}"),
        }
    }
}
