//! Codex: `codex exec`. Its sandbox holds it, not a list of tools.

use std::ffi::OsStr;

use super::known::{Adapter, CommandLine, Order, PermissionMode, Tool, no_list};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "codex",
    reports_money: false,
    reports_denials: false,
    permission_exits: &[],
    speaks_json: true,
    sign_in: "sign in: `codex login`, or set CODEX_API_KEY",
    variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"],
    line,
};

fn line(order: &Order<'_>) -> Result<CommandLine, String> {
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
    let line =
        CommandLine::new(["codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "-s", sandbox]);
    Ok(line.with([OsStr::new("-o"), order.last_file.as_os_str()]).with(order.arguments).with(["-"]))
}
