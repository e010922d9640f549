//! The environment of contracts and agents: the listed variables, and nothing else (A7–A10).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where contracts look for commands unless the configuration adds folders.
pub const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Settings that a repository's own git configuration must not have: each starts programs (A10).
const GIT_SETTINGS: [(&str, &str); 4] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.sshCommand", "ssh"),
    ("core.pager", "cat"),
];

/// A variable that may not be set for a contract, since it changes how its shell or any program starts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the variable `{name}` may not be set for a contract")]
pub struct RefusedVariable {
    /// Its name.
    pub name: String,
}

/// Joins the folders that are absolute and outside the workspace; contracts find commands there only (A8).
///
/// An element that leads into the workspace through a symlink is left out too.
pub fn safe_path(folders: &OsStr, workspace: &Path) -> OsString {
    let real_workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let is_within = |folder: &Path| folder.starts_with(workspace) || folder.starts_with(&real_workspace);
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(folders) {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if folder.is_absolute() && !is_within(&folder) && !is_within(&real) && !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    // Only a folder with a colon in its name can't be joined, and splitting makes none.
    std::env::join_paths(kept).unwrap_or_default()
}

/// Makes the environment of a command of the operator's: `path` (checked), a few of planctl's own variables, and
/// `configured` ones. A contract gets a private home and folder for temporary files in place of the operator's
/// ([`ContractRunner`](crate::ContractRunner)).
///
/// # Errors
///
/// When a configured variable is not a name, or would change how the shell or every program starts.
pub fn contract_environment(
    workspace: &Path,
    path: &OsStr,
    configured: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<(OsString, OsString)>, RefusedVariable> {
    let mut environment: Vec<(OsString, OsString)> = vec![("PATH".into(), safe_path(path, workspace))];
    environment.extend(own_variables(&["HOME", "USER", "LOGNAME", "TZ", "TMPDIR"]));
    environment.push(("LANG".into(), std::env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into())));
    environment.push(("TERM".into(), "dumb".into()));
    environment.push(("SHELL".into(), "/bin/bash".into()));
    environment.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
    environment.push(("GIT_CONFIG_COUNT".into(), GIT_SETTINGS.len().to_string().into()));
    for (number, (key, value)) in GIT_SETTINGS.iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{number}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
    }
    for (name, value) in configured {
        if !may_be_configured(&name) || value.contains('\0') {
            return Err(RefusedVariable { name });
        }
        set(&mut environment, name.into(), value.into());
    }
    Ok(environment)
}

/// Makes an agent's environment: planctl's own `PATH` and identity, and the inherited variables of planctl by their names (`--env`).
///
/// planctl's own variables (`PLANCTL_…`) are never passed: among them are the database's address and tokens.
pub fn agent_environment<'a>(inherited: impl IntoIterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = own_variables(&[
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "SHELL",
    ])
    .collect();
    if !environment.iter().any(|(name, _)| name == "PATH") {
        environment.push(("PATH".into(), PATH_DEFAULT.into()));
    }
    for name in inherited {
        if let Some(value) = std::env::var_os(name).filter(|_| !name.starts_with("PLANCTL_")) {
            set(&mut environment, name.into(), value);
        }
    }
    environment
}

/// Sets a variable, in place of an earlier value.
pub(crate) fn set(environment: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    environment.retain(|(key, _)| *key != name);
    environment.push((name, value));
}

fn own_variables<'a>(names: &'a [&str]) -> impl Iterator<Item = (OsString, OsString)> + 'a {
    names.iter().filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)))
}

fn may_be_configured(name: &str) -> bool {
    let is_name = !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_startup = matches!(
        name,
        "PATH"
            | "BASH_ENV"
            | "ENV"
            | "SHELLOPTS"
            | "BASHOPTS"
            | "IFS"
            | "PS4"
            | "PROMPT_COMMAND"
            | "GIT_CONFIG_COUNT"
    );
    let is_loader =
        name.starts_with("LD_") || name.starts_with("BASH_FUNC_") || name.starts_with("GIT_CONFIG_");
    is_name && !is_startup && !is_loader && !name.starts_with("PLANCTL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_the_path_has_no_relative_empty_or_workspace_folder() {
        let outer = tempfile::tempdir().unwrap();
        let workspace = outer.path().join("workspace");
        std::fs::create_dir_all(workspace.join("bin")).unwrap();
        std::os::unix::fs::symlink(workspace.join("bin"), outer.path().join("link")).unwrap();
        let folders = format!(
            ":.:bin:{}:{}:{}:/usr/bin:/bin:/usr/bin",
            workspace.display(),
            workspace.join("bin").display(),
            outer.path().join("link").display()
        );
        assert_eq!(safe_path(OsStr::new(&folders), &workspace), "/usr/bin:/bin");
    }

    #[test]
    fn a7_variables_that_change_how_programs_start_are_refused() {
        let make = |name: &str| {
            contract_environment(
                Path::new("/w"),
                OsStr::new(PATH_DEFAULT),
                [(name.to_owned(), "x".to_owned())],
            )
        };
        for name in
            ["PATH", "BASH_ENV", "ENV", "SHELLOPTS", "LD_PRELOAD", "BASH_FUNC_test%%", "", "1A", "A B", "A=B"]
        {
            assert_eq!(make(name), Err(RefusedVariable { name: name.into() }));
        }
        let environment = make("CI").unwrap();
        assert!(environment.contains(&("CI".into(), "x".into())));
    }

    #[test]
    fn an_agent_never_gets_planctls_own_variables() {
        let environment = agent_environment(["PLANCTL_DATABASE_URL", "CARGO_PKG_NAME"]);
        let listed: Vec<_> = environment.iter().map(|(name, _)| name.to_string_lossy()).collect();
        assert!(!listed.iter().any(|name| name.starts_with("PLANCTL_")));
        assert!(listed.contains(&"PATH".into()) && listed.contains(&"CARGO_PKG_NAME".into()), "{listed:?}");
        assert!(!listed.contains(&"CARGO_PKG_VERSION".into()));
    }
}
