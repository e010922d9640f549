//! Claude Code: `claude -p`.

use super::known::{Adapter, CommandLine, LoginFile, Logins, Order, PermissionMode, Tool, USUAL};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "claude",
    reports_money: true,
    reports_denials: true,
    permission_exits: &[],
    speaks_json: true,
    usual: "edit, git",
    sign_in: "sign in: run `claude` and type /login, or set ANTHROPIC_API_KEY",
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_BETAS",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_SUBAGENT_MODEL",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "MAX_THINKING_TOKENS",
        "API_TIMEOUT_MS",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "ANTHROPIC_VERTEX_BASE_URL",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    ],
    logins: Logins {
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ],
        files: &[LoginFile {
            folder_variable: "CLAUDE_CONFIG_DIR",
            folder: ".claude",
            name: ".credentials.json",
        }],
    },
    line: command_line,
};

/// Neither the user's settings nor the repository's count: they allow more than the role, and start programs (hooks, MCP
/// servers). The repository's CLAUDE.md, which goes with its settings, comes by another way.
const OWN_ALONE: [&str; 5] = ["--setting-sources", "", "--strict-mcp-config", "--add-dir", "."];
const CLAUDE_MD: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";

fn command_line(order: &Order<'_>) -> Result<CommandLine, String> {
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
            line.with(["acceptEdits", "--allowedTools"]).with([USUAL.join(" ")])
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
    if !order.permissions.is_everything() {
        line = line.with(OWN_ALONE).with_variable(CLAUDE_MD, "1");
    }
    if let Some(money) = order.given.budget_micro_usd {
        line = line
            .with(["--max-budget-usd".to_owned(), format!("{}.{:06}", money / 1_000_000, money % 1_000_000)]);
    }
    Ok(line.with(["--session-id", order.given.session]).with(order.arguments))
}
