//! OpenCode: `opencode run`. Its permissions are passed in a variable of its own.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::known::{Adapter, CommandLine, LoginFile, Logins, Order, PermissionMode, Permissions, Tool};

pub(super) const ADAPTER: Adapter = Adapter {
    name: "opencode",
    reports_money: true,
    reports_denials: false,
    permission_exits: &[],
    speaks_json: true,
    usual: "edit, git",
    sign_in: "sign in: `opencode auth login`, or set the key of its model's provider",
    variables: &[
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_API_KEY",
        "OPENCODE_MODELS_URL",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "OPENROUTER_API_KEY",
    ],
    logins: Logins {
        variables: &[
            "OPENCODE_API_KEY",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        files: &[LoginFile {
            folder_variable: "XDG_DATA_HOME",
            folder: ".local/share",
            name: "opencode/auth.json",
        }],
    },
    line: command_line,
};

/// The variable that goes before its configuration files.
const PERMISSION: &str = "OPENCODE_PERMISSION";
/// Tools that read and change nothing.
const READING: [&str; 4] = ["read", "glob", "grep", "list"];

/// The folders of plugins, whose files it runs as it starts.
const PLUGINS: [&str; 2] = [".opencode/plugin", ".opencode/plugins"];

/// Returns a plugin that the repository has. OpenCode 1.18 starts such whatever its options and variables say.
fn plugin_of_repository(workspace: &Path) -> Option<PathBuf> {
    let is_plugin = |file: &PathBuf| file.extension().is_some_and(|kind| kind == "js" || kind == "ts");
    for folder in workspace.ancestors() {
        for plugins in PLUGINS {
            let files = std::fs::read_dir(folder.join(plugins)).into_iter().flatten().filter_map(Result::ok);
            if let Some(file) = files.map(|file| file.path()).find(is_plugin) {
                return Some(file);
            }
        }
        // It looks no further than the repository.
        if folder.join(".git").exists() {
            break;
        }
    }
    None
}

fn command_line(order: &Order<'_>) -> Result<CommandLine, String> {
    if !order.permissions.is_everything()
        && let Some(plugin) = plugin_of_repository(order.given.workspace)
    {
        return Err(format!(
            "opencode starts the programs of the repository's plugins, and has no option against it: {}; move it to \
             ~/.config/opencode/plugins, or write allow = [\"*\"]",
            plugin.display()
        ));
    }
    // Without a title it has its model make one, which nobody counts.
    let title: String = order.given.title.chars().filter(|letter| !letter.is_control()).take(80).collect();
    let title = if title.trim_start_matches('-').is_empty() { "step".to_owned() } else { title };
    let line = CommandLine::new(["opencode", "run", "--format", "json"]).with([format!("--title={title}")]);
    let line = match (order.permissions.mode, order.permissions.tools()?) {
        (PermissionMode::Deny, _) => with_permissions(line, &[]),
        (PermissionMode::List | PermissionMode::Ask, None) => {
            with_permissions(line, &Permissions::default_tools())
        }
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) if tools.contains(&Tool::Every) => {
            line.with(["--auto"])
        }
        (PermissionMode::List | PermissionMode::Ask, Some(tools)) => with_permissions(line, &tools),
    };
    Ok(line.with(order.arguments))
}

/// Denies everything, allows reading, and then what is listed: of its rules the last that matches counts.
fn with_permissions(line: CommandLine, tools: &[Tool<'_>]) -> CommandLine {
    let mut rules = Map::new();
    rules.insert("*".to_owned(), json!("deny"));
    for name in READING {
        rules.insert(name.to_owned(), json!("allow"));
    }
    let mut commands = Map::new();
    commands.insert("*".to_owned(), json!("deny"));
    for tool in tools {
        match tool {
            Tool::Every => {}
            Tool::Edit => drop(rules.insert("edit".to_owned(), json!("allow"))),
            Tool::Bash(pattern) => {
                drop(commands.insert(pattern.unwrap_or("*").to_owned(), json!("allow")));
                rules.insert("bash".to_owned(), Value::Object(commands.clone()));
            }
            Tool::Named(name) => drop(rules.insert(name.to_lowercase(), json!("allow"))),
        }
    }
    // The repository's settings and plugins start programs.
    line.with(["--pure"])
        .with_variable(PERMISSION, Value::Object(rules).to_string())
        .with_variable("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
}
