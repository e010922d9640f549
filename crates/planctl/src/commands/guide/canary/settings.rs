//! The settings of a canary: of an agent's own, those that decide whether planctl's hooks are called, and no others.

use std::fs;
use std::io;
use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value, json};

use crate::session_agent::SessionAgent;

/// Keys of settings in JSON that decide about hooks.
const KEYS: [&str; 6] =
    ["hooks", "disableAllHooks", "allowManagedHooksOnly", "enabledPlugins", "hooksConfig", "security"];
/// Tables of settings in TOML that do.
const TABLES: [&str; 3] = ["projects", "hooks", "features"];

/// The files of an agent: in a project, and in a home.
fn files(agent: SessionAgent) -> &'static [&'static str] {
    match agent {
        SessionAgent::Claude => &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/skills/planctl/hooks/hooks.json",
            ".claude/skills/planctl/.claude-plugin/plugin.json",
            ".claude.json",
        ],
        SessionAgent::Codex => &[".codex/hooks.json", ".codex/config.toml"],
        SessionAgent::Gemini => &[".gemini/settings.json", ".gemini/trustedFolders.json"],
        SessionAgent::OpenCode => &[".opencode/plugins/planctl.js", ".config/opencode/plugins/planctl.js"],
    }
}

/// Copies the settings that decide about an agent's hooks from a project and from the person's home. In the copy, the path of the
/// copy stands for that of the project.
pub fn copy(agent: SessionAgent, (project, work): (&Path, &Path), home: &Path) -> io::Result<()> {
    let own_home = crate::commands::settings::home().ok();
    let places = [Some((project, work)), own_home.as_deref().map(|own| (own, home))];
    for (from, to) in places.into_iter().flatten() {
        for file in files(agent) {
            let Ok(text) = fs::read_to_string(from.join(file)) else { continue };
            let (path, copy) = (project.to_string_lossy(), work.to_string_lossy());
            write_file(&to.join(file), &hook_settings_of(file, &text, agent).replace(&*path, &copy))?;
        }
    }
    if agent == SessionAgent::Gemini {
        // It asks for a way to sign in where no settings name one.
        let file = home.join(".gemini/settings.json");
        let mut settings = value_of(&fs::read_to_string(&file).unwrap_or_default());
        settings["security"]["auth"] = json!({ "selectedType": "gemini-api-key" });
        write_file(&file, &settings.to_string())?;
    }
    Ok(())
}

fn write_file(file: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    fs::write(file, text)
}

/// Leaves of a settings file what decides about planctl's hooks.
fn hook_settings_of(file: &str, text: &str, agent: SessionAgent) -> String {
    if file.ends_with(".js") || file.ends_with("plugin.json") || file.ends_with("trustedFolders.json") {
        return text.to_owned();
    }
    if file.ends_with(".toml") {
        let mut table: toml::Table = text.parse().unwrap_or_default();
        table.retain(|key, _| TABLES.contains(&key));
        return table.to_string();
    }
    let settings = value_of(text);
    if file == ".claude.json" {
        let trust = |(path, known): (&String, &Value)| {
            (path.clone(), json!({ "hasTrustDialogAccepted": known["hasTrustDialogAccepted"] }))
        };
        let projects: Map<String, Value> =
            settings["projects"].as_object().into_iter().flatten().map(trust).collect();
        return json!({ "projects": projects, "hasCompletedOnboarding": true }).to_string();
    }
    let mut kept: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
    kept.retain(|key, _| KEYS.contains(&key.as_str()));
    for groups in kept.get_mut("hooks").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        for group in groups.as_array_mut().into_iter().flatten() {
            if let Some(hooks) = group["hooks"].as_array_mut() {
                hooks.retain(|hook| is_own(hook, agent));
            }
        }
    }
    Value::Object(kept).to_string()
}

fn is_own(hook: &Value, agent: SessionAgent) -> bool {
    hook["command"].as_str().is_some_and(|command| command.contains(&format!(" hook {} ", agent.as_str())))
}

fn value_of(text: &str) -> Value {
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let value: Option<Value> = root.ok().and_then(|root| root.to_serde_value());
    value.filter(Value::is_object).unwrap_or_else(|| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_settings_a_canary_gets_planctls_hooks_and_what_switches_them_off_alone() {
        let mine = json!({
            "env": { "ANTHROPIC_BASE_URL": "https://example.org" },
            "apiKeyHelper": "secret",
            "disableAllHooks": true,
            "hooks": { "Stop": [{ "hooks": [{ "command": "mine" }, { "command": "planctl hook claude stop" }] }] },
        });
        let kept =
            value_of(&hook_settings_of(".claude/settings.json", &mine.to_string(), SessionAgent::Claude));
        let own = json!({ "Stop": [{ "hooks": [{ "command": "planctl hook claude stop" }] }] });
        assert_eq!(kept, json!({ "disableAllHooks": true, "hooks": own }));
        let known = json!({ "oauthAccount": { "name": "ann" }, "projects": { "/p": { "hasTrustDialogAccepted": true, "history": [1] } } });
        let kept = value_of(&hook_settings_of(".claude.json", &known.to_string(), SessionAgent::Claude));
        assert_eq!(kept["projects"], json!({ "/p": { "hasTrustDialogAccepted": true } }));
        assert_eq!(kept["oauthAccount"], Value::Null);
        let kept = hook_settings_of(
            ".codex/config.toml",
            "model = \"x\"\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n[mcp_servers.x]\ncommand = \"x\"\n",
            SessionAgent::Codex,
        );
        assert!(
            kept.contains("trust_level") && !kept.contains("mcp_servers") && !kept.contains("model"),
            "{kept}"
        );
    }
}
