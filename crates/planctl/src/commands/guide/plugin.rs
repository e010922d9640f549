//! The hooks as a plugin of Claude Code: a folder of planctl's own that the agent loads by itself, so that no settings change.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The folder, in a project or a home.
const FOLDER: &str = ".claude/skills/planctl";
/// The name by which Claude Code switches it on and off.
pub const NAME: &str = "planctl@skills-dir";
/// The file that makes a plugin of the folder, and the file that has the hooks.
const FILES: [&str; 2] = [".claude-plugin/plugin.json", "hooks/hooks.json"];

/// The folder of the plugin in a project or a home.
pub struct Plugin {
    folder: PathBuf,
}

impl Plugin {
    /// Returns the plugin of a project or a home.
    pub fn of(root: &Path) -> Plugin {
        Plugin { folder: root.join(FOLDER) }
    }

    /// Returns the file that has the hooks.
    pub fn hooks(&self) -> PathBuf {
        self.folder.join(FILES[1])
    }

    /// Returns the file that says what the folder is, and its text.
    pub fn manifest(&self) -> (PathBuf, String) {
        let text = json!({
            "name": "planctl",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Holds the sessions to their plan: no turn ends as done while a contract fails",
        });
        (self.folder.join(FILES[0]), format!("{text:#}\n"))
    }

    /// Removes the folders that are empty without the plugin.
    pub fn remove_folders(&self) {
        let within = FILES.iter().filter_map(|file| self.folder.join(file).parent().map(Path::to_owned));
        for folder in within.chain([self.folder.clone()]) {
            // A folder in which there is something else stays.
            drop(std::fs::remove_dir(folder));
        }
    }
}

/// Says whether a file is one of the plugin.
pub fn is_of_plugin(file: &Path) -> bool {
    FILES.iter().any(|name| file.ends_with(Path::new(FOLDER).join(name)))
}

/// Says whether settings switch the plugin off.
pub fn is_switched_off(settings: &Value) -> bool {
    settings["enabledPlugins"][NAME] == false
}

/// Says whether Claude Code trusts a folder, or one around it: a plugin of a project is loaded there only.
pub fn is_trusted(home: &Path, folder: &Path) -> bool {
    let text = std::fs::read_to_string(home.join(".claude.json")).unwrap_or_default();
    let known: Value = serde_json::from_str(&text).unwrap_or_default();
    let trusts =
        |folder: &Path| known["projects"][&*folder.to_string_lossy()]["hasTrustDialogAccepted"] == true;
    folder.ancestors().any(trusts)
}
