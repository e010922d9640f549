//! Agents as writers: they read, answer, and change nothing.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::home::{GOAL, app, good};

#[test]
fn a_command_writes_a_draft_and_what_it_changes_is_gone_with_its_copy() {
    let home = app();
    let answer = home.path("answer.json");
    std::fs::write(&answer, good().to_string()).unwrap();
    let script = home.path("writer.sh");
    let does = "cat > \"$0.prompt\"\npwd > WHERE\necho broken > src/app.sh\necho 'My plan:'\ncat ";
    std::fs::write(&script, format!("{does}{}\n", answer.display())).unwrap();
    let agent = format!("exec:bash {}", script.display());
    let said = home.planctl(&["plan", "draft", GOAL, "--agent", &agent]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("1 unmetered"), "{said:?}");
    assert_eq!(home.read("src/app.sh"), "#!/bin/bash\necho hello\n");
    assert!(!home.has("WHERE") && home.has("plans/a-json-flag.md"));
    let prompt = std::fs::read_to_string(home.path("writer.sh.prompt")).unwrap();
    assert!(prompt.contains("R1: Add a --json flag") && prompt.contains("JSON Schema"), "{prompt}");
}

#[test]
fn an_agent_that_was_lost_with_planctl_counts_with_all_that_it_was_allowed() {
    let home = app();
    let (begun, script) = (home.path("begun"), home.path("writer.sh"));
    let made = home.command("mkfifo").arg(&begun).status().unwrap();
    assert!(made.success());
    let answer = home.path("answer.json");
    std::fs::write(&answer, good().to_string()).unwrap();
    let text = "[ -e \"$0.again\" ] || { : >\"$0.again\"; echo >\"${0%/*}/begun\"; read -r _ <\"${0%/*}/begun\"; }\ncat ";
    std::fs::write(&script, format!("{text}{}\n", answer.display())).unwrap();
    let agent = format!("exec:bash {}", script.display());
    let words = ["plan", "draft", GOAL, "--agent", &agent, "--budget", "200k tokens"];
    let mut going = home.start(&words);
    std::fs::read(&begun).unwrap();
    going.kill().unwrap();
    going.wait().unwrap();
    let said = home.planctl(&words);
    assert!(
        said.code == 6 && said.err.contains("200k tokens are used (1 call without an answer"),
        "{said:?}"
    );
    let said = home.planctl(&["plan", "draft", GOAL, "--agent", &agent, "--budget", "300k tokens"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("200k tokens, 1 unmetered, 1 call without an answer"), "{said:?}");
}

#[test]
fn an_agent_that_is_known_by_name_is_held_to_reading() {
    let home = app();
    let bin = home.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let answer = home.path("answer.json");
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": good().to_string(), "session_id": "s",
        "total_cost_usd": 0.01, "usage": { "input_tokens": 10, "output_tokens": 5 },
    });
    std::fs::write(&answer, format!("{result}\n")).unwrap();
    let script = format!(
        "#!/bin/bash\nprintf '%s\\n' \"$@\" > {0}/arguments\ncat > /dev/null\ncat {1}\n",
        bin.display(),
        answer.display()
    );
    std::fs::write(bin.join("claude"), script).unwrap();
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let said = home.planctl_with(&["plan", "draft", GOAL, "--agent", "claude"], &[("PATH", &path)]);
    assert_eq!(said.code, 0, "{said:?}");
    let arguments = std::fs::read_to_string(bin.join("arguments")).unwrap();
    assert!(arguments.contains("--permission-mode\ndefault\n"), "{arguments}");
    assert!(!arguments.contains("acceptEdits"), "{arguments}");
    assert!(said.out.contains("15 tokens, $0.01"), "{said:?}");
}

#[test]
fn an_agent_that_is_not_installed_is_named_with_what_installs_it() {
    let home = app();
    let said = home.planctl(&["plan", "draft", GOAL, "--agent", "codex"]);
    assert!(said.code == 4 && said.err.contains("npm install -g @openai/codex"), "{said:?}");
}

#[test]
fn an_agent_that_fails_without_an_answer_is_told_with_what_it_printed_and_asked_once() {
    let home = app();
    let counts = home.path("calls");
    for (does, code, printed) in [
        ("nosuchprogram --plan", 127, "it printed: "),
        ("echo no quota >&2; exit 3", 3, "it printed: no quota\n"),
        ("exit 4", 4, "it printed nothing\n"),
    ] {
        let agent = format!("exec:echo x >> {}; {does}", counts.display());
        let said = home.planctl(&["plan", "draft", GOAL, "--agent", &agent]);
        let shown = format!("it ended with exit code {code}; {printed}");
        assert!(said.code == 75 && said.err.contains(&shown), "{shown}: {said:?}");
    }
    assert_eq!(std::fs::read_to_string(&counts).unwrap().lines().count(), 3);
    // A status alone says nothing of an answer.
    std::fs::write(home.path("answer.json"), good().to_string()).unwrap();
    let agent = format!("exec:cat {}; exit 1", home.path("answer.json").display());
    let said = home.planctl(&["plan", "draft", GOAL, "--agent", &agent]);
    assert_eq!(said.code, 0, "{said:?}");
}
