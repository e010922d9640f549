//! The workspaces of other plans, of which confined workers and contracts see nothing (from tier 1a).

use std::path::{Path, PathBuf};

/// The most workspaces that are hidden; each costs a mount or a rule whenever a command is started.
pub(crate) const NEIGHBOURS_MAX: i64 = 200;

/// Returns those of the known workspaces that are there, with their links followed, but for those that hold what a run works
/// on or lie in it, and those of which a command names something.
pub(crate) fn neighbours(known: Vec<String>, own: &[&Path], commands: &str) -> Vec<PathBuf> {
    let own: Vec<PathBuf> = own.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_needed = |path: &PathBuf| own.iter().any(|own| own.starts_with(path) || path.starts_with(own));
    let is_named = |path: &str| commands.contains(&format!("{}/", path.trim_end_matches('/')));
    let others = known.into_iter().filter(|path| Path::new(path).is_absolute() && !is_named(path));
    let others = others.filter_map(|path| Path::new(&path).canonicalize().ok());
    others.filter(|path| path.is_dir() && !is_needed(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_hidden_unless_the_run_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["shop/api", "blog", "tools"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let known = ["", "shop", "shop/api", "blog", "tools", "gone"];
        let known = known.map(|name| at(name).to_string_lossy().into_owned());
        let shop = at("shop");
        let commands = format!("bash {}/check.sh", at("tools").display());
        assert_eq!(neighbours(known.to_vec(), &[&shop], &commands), [at("blog")]);
        let linked = at("link");
        std::os::unix::fs::symlink(at("blog"), &linked).unwrap();
        assert_eq!(neighbours(known.to_vec(), &[&linked], "true"), [shop, at("shop/api"), at("tools")]);
    }
}
