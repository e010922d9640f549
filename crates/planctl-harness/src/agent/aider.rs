//! Aider: `aider`. It reads its prompt from a file, edits, and never runs a command by itself.

use std::ffi::OsStr;

use super::known::{Adapter, CommandLine, Order, PermissionMode, Tool, no_list};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "aider",
    reports_money: true,
    reports_denials: false,
    permission_exits: &[],
    speaks_json: false,
    sign_in: "set the key of its model's provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY",
    variables: &[
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_API_BASE",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "DEEPSEEK_API_KEY",
        "AIDER_MODEL",
    ],
    line,
};

const ARGUMENTS: [&str; 7] = [
    "--yes-always",
    "--no-auto-commits",
    "--no-gitignore",
    "--no-analytics",
    "--no-check-update",
    "--no-pretty",
    "--no-stream",
];

fn line(order: &Order<'_>) -> Result<CommandLine, String> {
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
    let line =
        CommandLine::new(["aider", "--message-file"]).with([order.prompt_file.as_os_str()]).with(ARGUMENTS);
    let line = if is_held { line.with([OsStr::new("--dry-run")]) } else { line };
    Ok(CommandLine { reads_file: true, ..line.with(order.arguments) })
}
