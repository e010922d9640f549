//! Published servers, installed by `just tools` into the folder that PLANCTL_TOOL_SERVERS names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::Fixture;

/// Runs a plan with a call of each server.
pub fn published_servers() {
    let folder =
        PathBuf::from(std::env::var_os("PLANCTL_TOOL_SERVERS").expect("PLANCTL_TOOL_SERVERS names a folder"));
    let fixture = Fixture::new();
    let work = fixture.path("");
    for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "Begin here"]] {
        let config = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"];
        assert!(Command::new("git").current_dir(&work).args(config).args(words).status().unwrap().success());
    }
    fixture.write("notes.txt", "remember the milk\n");
    let node = |name: &str| folder.join("npm/node_modules/.bin").join(name).display().to_string();
    let git = folder.join("venv/bin/mcp-server-git").display().to_string();
    let toml = format!(
        "[contracts]\npath = [{path:?}]\n\n[servers.everything]\ncommand = [{everything:?}]\neffects = [\"compute\"]\n\n\
         [servers.files]\ncommand = [{files:?}, {work:?}]\neffects = [\"read\"]\n\n\
         [servers.git]\ncommand = [{git:?}, \"--repository\", {work:?}]\neffects = [\"read\"]\n",
        path = node_folder().display().to_string(),
        everything = node("mcp-server-everything"),
        files = node("mcp-server-filesystem"),
        work = work.display().to_string(),
    );
    fixture.write("planctl.toml", &toml);
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let list = fixture.json(&["tool", "ls", "--json"]);
    for server in list["servers"].as_array().unwrap() {
        assert!(server["problem"].is_null(), "{server}");
    }
    let file = work.join("notes.txt").display().to_string();
    let call = |number: u32, server: &str, tool: &str, arguments: serde_json::Value| {
        format!(
            "\n### {number}. Use {tool}\n\n**type:** call\n**task:**\nUse it.\n**server:** {server}\n**tool:** {tool}\n\
             **arguments:**\n```json\n{arguments}\n```\n"
        )
    };
    let steps = [
        call(1, "everything", "echo", serde_json::json!({"message": "hello"})),
        call(2, "files", "read_text_file", serde_json::json!({"path": file})),
        call(
            3,
            "git",
            "git_log",
            serde_json::json!({"repo_path": work.display().to_string(), "max_count": "1"}),
        ),
        call(4, "everything", "echo", serde_json::json!({"message": "${steps.3.output}"})),
    ];
    let head = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Servers\n\n**Budget:** max 1k tokens\n\n## Steps\n";
    fixture.write("servers.md", &format!("{head}{}", steps.concat()));
    let done = fixture.planctl(&["run", "servers.md", "--approve", "--no-wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let logs = fixture.planctl(&["logs", "@last", "--json"]);
    for words in ["Echo: hello", "remember the milk", "Begin here"] {
        assert!(logs.out.contains(words), "{words}: {logs:?}");
    }
}

/// Returns the folder of node, which the servers from npm are started by.
fn node_folder() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|folder| folder.join("node").exists());
    found.unwrap_or_else(|| Path::new("/usr/bin").to_owned())
}
