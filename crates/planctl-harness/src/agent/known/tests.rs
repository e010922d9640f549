//! The command lines of known agents, word for word (INTERFACE 3.2), and how permissions become flags.

use super::*;

fn given<'a>(workspace: &'a Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Given<'a> {
    Given {
        workspace,
        folder: Path::new("/room"),
        session: "UUID",
        title: "-- Fix\nit",
        budget_micro_usd: Some(1_500_000),
        variable,
    }
}

fn words(text: &str, mode: PermissionMode, allow: Option<&[&str]>) -> Result<(String, CommandLine), String> {
    let mut known = NamedAgent::parse(text).unwrap();
    let allow = allow.map(|list| list.iter().map(|tool| (*tool).to_owned()).collect());
    known.permissions = Permissions { mode, allow };
    let line = known.command_line(&given(Path::new("/work"), &|_| None))?;
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
             --allowedTools 'Edit Write Bash(git *)' --setting-sources '' --strict-mcp-config --add-dir . \
             --max-budget-usd 1.500000 --session-id UUID",
        ),
        (
            "codex",
            "codex exec --json --ephemeral --skip-git-repo-check -s workspace-write -o /room/last-message.txt -",
        ),
        (
            "gemini",
            "gemini --skip-trust -o stream-json --approval-mode auto_edit --allowed-tools 'run_shell_command(git)'",
        ),
        (
            "opencode:-m provider/model",
            "opencode run --format json '--title=-- Fixit' --pure -m provider/model",
        ),
        (
            "aider",
            "aider --message-file /room/message.md --yes-always --no-auto-commits --no-dirty-commits --no-gitignore \
             --no-analytics --no-check-update --no-pretty --no-stream --no-detect-urls --no-suggest-shell-commands \
             --no-auto-lint --no-auto-test --lint-cmd true --test-cmd true --no-notifications --load '' --no-gui \
             --no-show-release-notes --chat-history-file /room/chat-history.md \
             --input-history-file /room/input-history --no-git",
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
    assert!(
        line.ends_with("-o /room/last-message.txt -m 'gpt x' -c 'model_reasoning_effort=high' -"),
        "{line}"
    );
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
        ("aider", List, Some(&["Edit"]), "--no-git"),
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
    assert_eq!(rules(List, None), rules(List, git), "d5: the usual is a list");
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

#[test]
fn d5_the_usual_of_all_is_one_list_and_is_told_in_words() {
    let may = |text: &str, mode, allow: Option<&[&str]>| {
        let mut known = NamedAgent::parse(text).unwrap();
        let allow = allow.map(|list| list.iter().map(|tool| (*tool).to_owned()).collect());
        known.permissions = Permissions { mode, allow };
        known.may()
    };
    for agent in ["claude", "gemini", "opencode"] {
        assert_eq!(may(agent, PermissionMode::List, None), "edit, git");
    }
    assert!(may("codex", PermissionMode::List, None).starts_with("edit, any command in its own sandbox"));
    assert!(may("aider", PermissionMode::List, None).contains("no commits"));
    assert_eq!(may("claude", PermissionMode::Deny, None), "read");
    assert_eq!(may("claude", PermissionMode::Ask, Some(&["Edit", "Bash(make)"])), "Edit, Bash(make)");
    assert_eq!(may("claude", PermissionMode::List, Some(&["*"])), "everything");
}

#[test]
fn d5_codex_may_write_to_the_repository_that_it_commits_to() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    std::fs::create_dir(&git).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let known = NamedAgent::parse("codex").unwrap();
    let line = known.command_line(&given(folder.path(), &|_| None)).unwrap();
    let pair = line.arguments.windows(2).find(|pair| pair[0] == "--add-dir").unwrap();
    assert_eq!(pair[1], git.as_os_str());
    let aider = NamedAgent::parse("aider").unwrap().command_line(&given(folder.path(), &|_| None)).unwrap();
    assert!(!aider.arguments.contains(&"--no-git".into()), "it works with the checkout that is there");
}

#[test]
fn d7_opencode_is_given_a_title_so_that_no_model_is_asked_for_one() {
    let line = line("opencode", PermissionMode::List, None);
    assert!(line.contains("'--title=-- Fixit'"), "{line}");
}

#[test]
fn d11_aider_fetches_installs_suggests_and_begins_nothing_by_itself() {
    use PermissionMode::{Deny, List};
    for mode in [Deny, List] {
        let line = line("aider", mode, None);
        for flag in [
            "--no-detect-urls",
            "--no-suggest-shell-commands",
            "--no-auto-lint",
            "--no-auto-test",
            "--lint-cmd true",
            "--test-cmd true",
            "--no-gitignore",
            "--no-git",
        ] {
            assert!(line.split_once("--message-file").unwrap().1.contains(flag), "{flag}: {line}");
        }
    }
}

#[test]
fn d10_neither_the_users_nor_the_repositorys_settings_start_programs() {
    use PermissionMode::{Deny, List};
    for mode in [Deny, List] {
        let (line, command) = words("claude", mode, None).unwrap();
        assert!(line.contains("--setting-sources '' --strict-mcp-config"), "{line}");
        assert!(command.environment.iter().any(|(name, value)| *name == CLAUDE_MD && value == "1"));
        let (line, command) = words("opencode", mode, None).unwrap();
        assert!(line.contains("--pure"), "{line}");
        let names: Vec<&str> = command.environment.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"OPENCODE_DISABLE_PROJECT_CONFIG"), "{names:?}");
    }
    let every: Option<&[&str]> = Some(&["*"]);
    assert!(!line("claude", List, every).contains("--setting-sources"), "who allows all allows that too");
}

const CLAUDE_MD: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";

#[test]
fn d13_a_gateways_address_reaches_the_agents_that_read_it_from_elsewhere() {
    let has = |name: &str| match name {
        "OPENAI_BASE_URL" | "GOOGLE_GEMINI_BASE_URL" => Some("https://gateway.example/v1".to_owned()),
        "GEMINI_API_KEY" => Some("k".to_owned()),
        _ => None,
    };
    let line =
        |name: &str| NamedAgent::parse(name).unwrap().command_line(&given(Path::new("/work"), &has)).unwrap();
    assert!(line("codex").arguments.contains(&"openai_base_url=\"https://gateway.example/v1\"".into()));
    let gemini = line("gemini");
    assert!(gemini.files[0].1.contains("gemini-api-key"), "{:?}", gemini.files);
    assert!(
        gemini
            .environment
            .contains(&("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "/room/gemini-defaults.json".to_owned()))
    );
    let claude: Vec<&str> = KnownAgent::from_word("claude").unwrap().variables().collect();
    for name in ["ANTHROPIC_CUSTOM_HEADERS", "AWS_REGION", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "HTTPS_PROXY"] {
        assert!(claude.contains(&name), "{name}");
    }
}

#[test]
fn d10_opencode_is_refused_where_the_repository_has_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("app/inner");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir_all(folder.path().join("app/.git")).unwrap();
    let may_start = |permissions: Permissions| {
        let known = NamedAgent { permissions, ..NamedAgent::parse("opencode").unwrap() };
        known.command_line(&given(&inner, &|_| None)).map(drop)
    };
    let plugin = |name: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    };
    plugin(".opencode/plugins/outside.js");
    plugin("app/.opencode/plugins/words.md");
    assert_eq!(may_start(Permissions::default()), Ok(()), "neither is the repository's, or a plugin");
    plugin("app/.opencode/plugin/starts.ts");
    let refused = may_start(Permissions::default()).unwrap_err();
    assert!(refused.contains("app/.opencode/plugin/starts.ts"), "{refused}");
    let everything = Permissions { allow: Some(vec!["*".to_owned()]), ..Permissions::default() };
    assert_eq!(may_start(everything), Ok(()));
}
