//! Codex: `codex exec`. Its sandbox holds it, not a list of tools.

use std::ffi::OsStr;

use super::known::{Adapter, CommandLine, LoginFile, Logins, Order, PermissionMode, Tool, no_list};
use crate::git::{git_common, git_folder};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "codex",
    reports_money: false,
    reports_denials: false,
    permission_exits: &[],
    speaks_json: true,
    usual: "edit, any command in its own sandbox: it writes to the workspace alone and reaches no network",
    sign_in: "sign in: `codex login`, or set CODEX_API_KEY",
    variables: &["CODEX_API_KEY", "CODEX_HOME", "CODEX_CA_CERTIFICATE", BASE_URL],
    logins: Logins {
        variables: &["CODEX_API_KEY"],
        files: &[LoginFile { folder_variable: "CODEX_HOME", folder: ".codex", name: "auth.json" }],
    },
    line: command_line,
};

/// The address of a gateway in place of OpenAI's service.
const BASE_URL: &str = "OPENAI_BASE_URL";

fn command_line(order: &Order<'_>) -> Result<CommandLine, String> {
    let sandbox = match (order.permissions.mode, order.permissions.tools()?) {
        (PermissionMode::Deny, _) => "read-only",
        (PermissionMode::List | PermissionMode::Ask, None) => "workspace-write",
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) if tools == [Tool::Every] => {
            "danger-full-access"
        }
        (PermissionMode::List | PermissionMode::Ask, Some(_)) => {
            return Err(no_list("codex", "which leaves its sandbox"));
        }
    };
    let mut line =
        CommandLine::new(["codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "-s", sandbox]);
    // Its sandbox keeps the repository's own folder from being written to, and so commits from being made.
    if sandbox == "workspace-write"
        && let Some(own) = git_folder(order.given.workspace)
    {
        line = line.with([OsStr::new("--add-dir"), git_common(&own).as_os_str()]);
        if own != git_common(&own) {
            line = line.with([OsStr::new("--add-dir"), own.as_os_str()]);
        }
    }
    // It reads the address of its service from its settings alone.
    if let Some(url) = (order.given.variable)(BASE_URL) {
        line = line.with(["-c".to_owned(), format!("openai_base_url={}", serde_json::Value::from(url))]);
    }
    Ok(line.with([OsStr::new("-o"), order.given.last_file().as_os_str()]).with(order.arguments).with(["-"]))
}
