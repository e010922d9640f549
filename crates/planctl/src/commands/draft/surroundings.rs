//! The facts of the workspace that a writer and the patterns are given.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use planctl_config::Config;
use planctl_harness::{list_files, probe_commands};
use planctl_planner::{PatternFacts, WorkspaceFacts};
use planctl_server::check;

/// The most files that a prompt lists.
const FILES_MAX: usize = 400;
/// The most files that are looked at.
const FILES_SEEN_MAX: usize = 20_000;
/// The most bytes of a file's beginning.
const EXCERPT_BYTES_MAX: usize = 2048;
/// Files that say how a project is built and tested.
const TELLING: [&str; 12] = [
    "README.md",
    "README",
    "Makefile",
    "justfile",
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.cfg",
    "go.mod",
    "Gemfile",
    "CONTRIBUTING.md",
    "AGENTS.md",
];
/// Programs that contracts often use.
const PROGRAMS: [&str; 38] = [
    "awk", "bash", "bats", "bundle", "cargo", "cmake", "cmp", "diff", "dotnet", "find", "gcc", "git", "go",
    "gradle", "grep", "java", "jq", "just", "make", "mvn", "node", "npm", "npx", "perl", "php", "pip",
    "pnpm", "pytest", "python3", "ruby", "rustc", "sed", "sh", "sqlite3", "test", "tox", "uv", "yarn",
];

/// Looks at the workspace.
pub fn survey_workspace(workspace: &Path, config: &Config) -> (WorkspaceFacts, PatternFacts) {
    let found = list_files(workspace, FILES_SEEN_MAX);
    let path = check::search_path(config);
    let commands = probe_commands(workspace, OsStr::new(&path), PROGRAMS);
    let there = |is_there: bool| {
        let named = commands.iter().filter(move |(_, found)| **found == is_there);
        named.map(|(name, _)| name.clone()).collect::<Vec<String>>()
    };
    let excerpts =
        TELLING.iter().filter_map(|name| Some(((*name).to_owned(), file_beginning(&workspace.join(name))?)));
    let facts = WorkspaceFacts {
        files: found.files.iter().take(FILES_MAX).map(|path| planctl_lang::escape(path)).collect(),
        has_more_files: found.is_cut || found.files.len() > FILES_MAX,
        commands: there(true),
        absent: there(false),
        roles: config.roles.keys().map(|role| role.as_str().to_owned()).collect(),
        excerpts: excerpts.collect(),
    };
    let commands: BTreeSet<String> = there(true).into_iter().collect();
    (facts, PatternFacts { files: found.files.into_iter().collect(), commands })
}

/// Returns the beginning of a text file of the workspace; what looks like a credential is masked.
fn file_beginning(path: &Path) -> Option<String> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8(text).ok()?;
    let end = text.floor_char_boundary(EXCERPT_BYTES_MAX);
    Some(planctl_lang::masked(&text[..end]).into_owned())
}
