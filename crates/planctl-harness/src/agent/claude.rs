//! Claude Code: `claude -p`.

use super::known::{Adapter, CommandLine, Order, PermissionMode, Tool};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "claude",
    reports_money: true,
    reports_denials: true,
    permission_exits: &[],
    speaks_json: true,
    sign_in: "sign in: run `claude` and type /login, or set ANTHROPIC_API_KEY",
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ],
    line,
};

const USUAL: &str = "Edit Write Bash(git *)";

fn line(order: &Order<'_>) -> Result<CommandLine, String> {
    let mut line = CommandLine::new([
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
    ]);
    line = match (order.permissions.mode, order.permissions.tools()?) {
        // These options take away the permissions that a user's own settings grant.
        (PermissionMode::Deny, _) => {
            line.with(["default", "--disallowedTools", "Edit Write NotebookEdit Bash"])
        }
        (PermissionMode::List | PermissionMode::Ask, None) => {
            line.with(["acceptEdits", "--allowedTools", USUAL])
        }
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) if tools.contains(&Tool::Every) => {
            line.with(["bypassPermissions"])
        }
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) => {
            let list = order.permissions.allow.as_deref().unwrap_or_default().join(" ");
            // This mode allows every edit, listed or not.
            let mode = if tools.contains(&Tool::Edit) { "acceptEdits" } else { "default" };
            let line = line.with([mode]);
            if list.is_empty() { line } else { line.with(["--allowedTools", &list]) }
        }
    };
    if let Some(money) = order.budget_micro_usd {
        line = line
            .with(["--max-budget-usd".to_owned(), format!("{}.{:06}", money / 1_000_000, money % 1_000_000)]);
    }
    Ok(line.with(["--session-id", order.session]).with(order.arguments))
}
