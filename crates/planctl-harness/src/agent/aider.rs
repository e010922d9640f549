//! Aider: `aider`. It reads its prompt from a file, edits, and never runs a command by itself.

use std::ffi::{OsStr, OsString};

use super::known::{Adapter, CommandLine, LoginFile, Logins, Order, PermissionMode, Tool, no_list};
use crate::git::git_folder;

pub(super) const ADAPTER: Adapter = Adapter {
    name: "aider",
    reports_money: true,
    reports_denials: false,
    permission_exits: &[],
    speaks_json: false,
    usual: "edit (it runs no commands, so it makes no commits)",
    sign_in: "set the key of its model's provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY",
    variables: &[
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_API_BASE",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "DEEPSEEK_API_KEY",
        "AIDER_MODEL",
        "AIDER_WEAK_MODEL",
        "AIDER_EDITOR_MODEL",
        "AIDER_OPENAI_API_BASE",
        "ANTHROPIC_API_BASE",
        "OLLAMA_API_BASE",
    ],
    logins: Logins {
        variables: &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "OPENROUTER_API_KEY",
            "DEEPSEEK_API_KEY",
        ],
        files: &[LoginFile { folder_variable: "", folder: ".aider", name: "oauth-keys.env" }],
    },
    line: command_line,
};

/// It says yes to all its own questions, so what it must not do may be no question: fetching addresses, which would install
/// software, and running what the model, or the repository's `.aider.conf.yml` and `.env`, propose.
const ARGUMENTS: [&str; 21] = [
    "--yes-always",
    "--no-auto-commits",
    "--no-dirty-commits",
    "--no-gitignore",
    "--no-analytics",
    "--no-check-update",
    "--no-pretty",
    "--no-stream",
    "--no-detect-urls",
    "--no-suggest-shell-commands",
    "--no-auto-lint",
    "--no-auto-test",
    "--lint-cmd",
    "true",
    "--test-cmd",
    "true",
    "--no-notifications",
    "--load",
    "",
    "--no-gui",
    "--no-show-release-notes",
];

/// Its records of the conversation, each with the name of the file in the folder of its attempt.
const HISTORIES: [(&str, &str); 2] =
    [("--chat-history-file", "chat-history.md"), ("--input-history-file", "input-history")];

fn command_line(order: &Order<'_>) -> Result<CommandLine, String> {
    let is_held = match (order.permissions.mode, order.permissions.tools()?) {
        (PermissionMode::Deny, _) => true,
        (PermissionMode::List | PermissionMode::Ask, None) => false,
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) => {
            if !tools.iter().all(|tool| matches!(tool, Tool::Every | Tool::Edit)) {
                return Err(no_list("aider", "it edits files and runs no command by itself"));
            }
            tools.is_empty()
        }
    };
    let line = CommandLine::new(["aider", "--message-file"])
        .with([order.given.message_file().as_os_str()])
        .with(ARGUMENTS);
    // Its own place for them is the top of the repository around the workspace, or where the repository's `.aider.conf.yml` says.
    let line = HISTORIES.into_iter().fold(line, |line, (flag, name)| {
        line.with([OsString::from(flag), order.given.folder.join(name).into()])
    });
    // In a folder without a repository it would make one.
    let is_checkout = git_folder(order.given.workspace).is_some();
    let line = if is_checkout { line } else { line.with(["--no-git"]) };
    let line = if is_held { line.with([OsStr::new("--dry-run")]) } else { line };
    // Its error is one line, and it cuts lines at the width of a terminal.
    let line = line.with_variable("COLUMNS", "1000");
    Ok(CommandLine { reads_file: true, ..line.with(order.arguments) })
}
