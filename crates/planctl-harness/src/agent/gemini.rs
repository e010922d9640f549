//! Gemini CLI: `gemini`.

use super::known::{Adapter, CommandLine, LoginFile, Logins, Order, PermissionMode, Permissions, Tool};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "gemini",
    reports_money: false,
    reports_denials: false,
    // Not signed in, and a folder that is not trusted (INTERFACE 3.3).
    permission_exits: &[41, 55],
    speaks_json: true,
    usual: "edit, git",
    sign_in: "sign in: run `gemini` and choose a login, or set GEMINI_API_KEY",
    variables: &[
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_VERTEX_BASE_URL",
        "GEMINI_MODEL",
        "GEMINI_CLI_CUSTOM_HEADERS",
    ],
    logins: Logins {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
        files: &[
            LoginFile { folder_variable: "", folder: ".gemini", name: "oauth_creds.json" },
            LoginFile { folder_variable: "", folder: ".gemini", name: ".env" },
        ],
    },
    line: command_line,
};

fn command_line(order: &Order<'_>) -> Result<CommandLine, String> {
    let line = CommandLine::new(["gemini", "--skip-trust", "-o", "stream-json", "--approval-mode"]);
    let line = match (order.permissions.mode, order.permissions.tools()?) {
        (PermissionMode::Deny, _) => line.with(["plan"]),
        (PermissionMode::List | PermissionMode::Ask, None) => allowed(line, &Permissions::default_tools()),
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) if tools.contains(&Tool::Every) => {
            line.with(["yolo"])
        }
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) => allowed(line, &tools),
    };
    let has = |name| (order.given.variable)(name).is_some();
    let mut line = line.with(order.arguments);
    // Without a choice in its settings it takes a gateway's address for a login of another kind, and refuses it. The defaults
    // of the system are what all other settings go before.
    if has("GOOGLE_GEMINI_BASE_URL") && has("GEMINI_API_KEY") && !has(DEFAULTS_PATH) {
        let path = order.given.folder.join(DEFAULTS).display().to_string();
        line = line.with_variable(DEFAULTS_PATH, path);
        line.files.push((DEFAULTS, r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#.to_owned()));
    }
    Ok(line)
}

const DEFAULTS_PATH: &str = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
const DEFAULTS: &str = "gemini-defaults.json";

/// Allows what is listed.
fn allowed(line: CommandLine, tools: &[Tool<'_>]) -> CommandLine {
    let mode = if tools.contains(&Tool::Edit) { "auto_edit" } else { "default" };
    tools
        .iter()
        .filter_map(gemini_tool_name)
        .fold(line.with([mode]), |line, name| line.with(["--allowed-tools".to_owned(), name]))
}

/// Returns its own name for a tool; the mode itself allows edits. Its patterns are beginnings.
fn gemini_tool_name(tool: &Tool<'_>) -> Option<String> {
    match tool {
        Tool::Every | Tool::Edit => None,
        Tool::Bash(None) => Some("run_shell_command".to_owned()),
        Tool::Bash(Some(pattern)) => {
            Some(format!("run_shell_command({})", pattern.trim_end_matches(['*', ' ', ':'])))
        }
        Tool::Named(name) => Some((*name).to_owned()),
    }
}
