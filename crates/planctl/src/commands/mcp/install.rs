//! `planctl mcp install`: planctl's server in the settings of an agent. All else in the file stays as it is, comments too.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;

use crate::args::{McpClient, McpInstall};
use crate::commands::settings::{self, Change, ended};
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;

/// The name by which agents know the server.
const NAME: &str = "planctl";
/// The head of its table in Codex's settings.
const TABLE: &str = "[mcp_servers.planctl]";

/// The variables that say where planctl is at work; Codex hands on only those that it is told of.
const VARIABLES: [&str; 4] =
    ["PLANCTL_STATE_DIR", "PLANCTL_SERVER", "PLANCTL_DATABASE_URL", "PLANCTL_TOKEN_FILE"];

/// Adds the server, or takes it away.
pub fn run(context: &Context, wanted: &McpInstall) -> Answer {
    context.format(&[Format::Human])?;
    let file = file_of(context, wanted.client, wanted.user)?;
    let before = settings::text_of(&file)?;
    let old = before.as_deref().unwrap_or_default();
    let program = settings::own_program()?;
    let after = match (wanted.client, wanted.remove) {
        (McpClient::Codex, false) => with_table(old, &file, &program)?,
        (McpClient::Codex, true) => without_table(old, &file)?,
        (client, false) => with_member(client, old, &file, &program)?,
        (client, true) => without_member(client, old, &file)?,
    };
    let unchanged = if wanted.remove { "has no server of planctl" } else { "has the server of planctl" };
    let change =
        Change { file: &file, before: before.as_deref(), after: &after, unchanged, dry_run: wanted.dry_run };
    if settings::change(context, &change)? && !wanted.remove {
        let next = "start the agent here; it asks you once whether it may use the server";
        context.say(&next::line(next));
    }
    Ok(Exit::Yes)
}

/// Returns the settings of a client: the project's, or the person's own.
fn file_of(context: &Context, client: McpClient, is_user: bool) -> Result<PathBuf, Failure> {
    let folder = if is_user { settings::home()? } else { context.workspace().to_owned() };
    Ok(folder.join(match (client, is_user) {
        (McpClient::Claude, false) => ".mcp.json",
        (McpClient::Claude, true) => ".claude.json",
        (McpClient::Codex, _) => ".codex/config.toml",
        (McpClient::Gemini, _) => ".gemini/settings.json",
        (McpClient::OpenCode, false) => "opencode.json",
        (McpClient::OpenCode, true) => ".config/opencode/opencode.json",
        (McpClient::VsCode, false) => ".vscode/mcp.json",
        (McpClient::VsCode, true) => ".config/Code/User/mcp.json",
    }))
}

/// Returns the member of a client's settings that holds its servers.
fn member_of(client: McpClient) -> &'static str {
    match client {
        McpClient::Claude | McpClient::Gemini => "mcpServers",
        McpClient::Codex => "mcp_servers",
        McpClient::OpenCode => "mcp",
        McpClient::VsCode => "servers",
    }
}

fn server(client: McpClient, program: &str) -> CstInputValue {
    match client {
        McpClient::OpenCode => json!({ "type": "local", "command": [program, "mcp"], "enabled": true }),
        McpClient::VsCode => json!({ "type": "stdio", "command": program, "args": ["mcp"] }),
        McpClient::Claude | McpClient::Codex | McpClient::Gemini => {
            json!({ "command": program, "args": ["mcp"] })
        }
    }
}

/// Adds the server to settings that are JSON; one that is there already is replaced.
fn with_member(client: McpClient, text: &str, file: &Path, program: &str) -> Result<String, Failure> {
    let member = member_of(client);
    let root = settings::parsed(text, file)?;
    let wrong = || settings::unreadable(&file.display().to_string(), &format!("`{member}` is not an object"));
    let object = root.object_value_or_create().ok_or_else(wrong)?;
    let servers = object.object_value_or_create(member).ok_or_else(wrong)?;
    match servers.get(NAME) {
        Some(found) => found.set_value(server(client, program)),
        None => {
            servers.append(NAME, server(client, program));
        }
    }
    // A file that has the server keeps the form that its person gave it.
    let is_same = settings::parsed(text, file)?.to_serde_value() == root.to_serde_value();
    Ok(if is_same { text.to_owned() } else { ended(root.to_string()) })
}

/// Takes the server out of settings that are JSON, and what is empty without it.
fn without_member(client: McpClient, text: &str, file: &Path) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let member = member_of(client);
    let root = settings::parsed(text, file)?;
    let servers = root.object_value().and_then(|object| object.object_value(member));
    let Some(found) = servers.as_ref().and_then(|servers| servers.get(NAME)) else {
        return Ok(text.to_owned());
    };
    found.remove();
    if servers.is_some_and(|servers| servers.properties().is_empty())
        && let Some(property) = root.object_value().and_then(|object| object.get(member))
    {
        property.remove();
    }
    let is_empty = root.object_value().is_some_and(|object| object.properties().is_empty());
    Ok(if is_empty && !text.contains("//") { String::new() } else { ended(root.to_string()) })
}

/// Adds the server to settings that are TOML, as their last table; one that is there already is replaced.
fn with_table(text: &str, file: &Path, program: &str) -> Result<String, Failure> {
    let program = toml::Value::from(program);
    let table = format!(
        "{TABLE}\ncommand = {program}\nargs = [\"mcp\"]\nenv_vars = {}\n",
        toml::Value::from(VARIABLES.to_vec())
    );
    if text.contains(&table) {
        return Ok(text.to_owned());
    }
    let rest = without_table(text, file)?;
    let gap = if rest.is_empty() { "" } else { "\n" };
    let after = format!("{rest}{gap}{table}");
    readable(&after, file)?;
    Ok(after)
}

/// Takes the server's table out of settings that are TOML.
fn without_table(text: &str, file: &Path) -> Result<String, Failure> {
    readable(text, file)?;
    let (mut kept, mut is_inside) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            is_inside = line.trim() == TABLE;
        }
        if !is_inside {
            kept.push_str(line);
        }
    }
    if kept == text {
        return Ok(kept);
    }
    let kept = kept.trim_end();
    let after = if kept.is_empty() { String::new() } else { format!("{kept}\n") };
    readable(&after, file)?;
    Ok(after)
}

fn readable(text: &str, file: &Path) -> Result<(), Failure> {
    let read: Result<toml::Table, _> = toml::from_str(text);
    read.map(drop).map_err(|error| settings::unreadable(&file.display().to_string(), error.message()))
}
