//! cargo: its manifests and configuration, and the files that these name.

use super::super::Word;
use super::super::following::Follower;
use super::super::values::{Value, escape_glob, joined, normalise, parent};
use super::settings::values_of_key;
use super::values_of;

impl Follower<'_> {
    /// Takes note of the files that a command of cargo reads besides those of the table.
    pub(super) fn cargo(&mut self, rest: &[Word], manifests: &[Word]) {
        if let [manifest] = manifests
            && let Some(text) = manifest.literal.as_deref()
        {
            self.change_folder(&Value::plain(parent(text), manifest.span).to_word());
        }
        let Some(folder) = self.folder_here() else { return };
        self.fix_nearer(&folder, "Cargo.toml");
        if rest.iter().any(|word| matches!(word.raw.as_str(), "--locked" | "--frozen")) {
            self.keep(joined(&folder, "Cargo.lock"));
        }
        for file in values_of(rest, &["--config"]) {
            // `--config build.jobs=1` names no file.
            if let Some(path) = self.within(file.text()).filter(|path| self.look.read(path).is_some()) {
                self.settings_of_cargo(&path);
                self.keep(escape_glob(&path));
            }
        }
        for name in values_of(rest, &["--test"]) {
            // One that is not there has yet to be written, by this step or an earlier one.
            self.keep(joined(&folder, &format!("tests/{}.rs", name.text())));
        }
        self.targets_of_manifest(&folder, true);
    }

    /// Protects tests that lie where their manifest says, and build scripts; also those of a workspace's members.
    fn targets_of_manifest(&mut self, folder: &str, is_root: bool) {
        let Some(text) = self.look.read(&joined(folder, "Cargo.toml")) else { return };
        for section in text.split("\n[") {
            let key = match section.trim_start_matches('[').split(']').next() {
                Some("test" | "bench") => "path",
                Some("package") => "build",
                Some("workspace") if is_root => {
                    for member in values_of_key(section, "members") {
                        let manifests = normalise(&joined(folder, &format!("{member}/Cargo.toml")));
                        for manifest in self.look.matching(&manifests) {
                            self.targets_of_manifest(parent(&manifest), false);
                        }
                    }
                    continue;
                }
                Some(_) | None => continue,
            };
            for path in values_of_key(section, key) {
                self.keep(escape_glob(&normalise(&joined(folder, path))));
            }
        }
    }
}
