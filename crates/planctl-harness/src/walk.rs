//! Walks a workspace within limits, and expands globs over it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use planctl_glob::{Glob, NotAGlob, is_glob};

/// The most directory entries one walk looks at.
pub const ENTRIES_MAX: usize = 200_000;
/// Folders of packages and of what was built, each with the entry around it, or in it, by which it is one: a folder of that name
/// may be the project's own.
const OF_OTHERS: [(&str, &str); 6] = [
    ("node_modules", "."),
    (".venv", "."),
    ("venv", "venv/pyvenv.cfg"),
    ("target", "Cargo.toml"),
    ("target", "pom.xml"),
    ("target", "build.sbt"),
];

/// Files that an agent leaves in every folder it works in: no work of anybody's (INTERFACE 3.3).
const LEFTOVERS: [&str; 4] =
    [".aider.chat.history.md", ".aider.input.history", ".aider.llm.history", ".aider.tags.cache"];

/// The result of a walk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FoundFiles {
    /// Regular files, relative to the root, sorted.
    pub files: Vec<String>,
    /// Says that there were more than the cap.
    pub is_cut: bool,
}

/// Lists the regular files that match, at most `most`; links are not followed, `.git` is not entered.
///
/// # Errors
///
/// When the text is not a glob.
pub fn expand(root: &Path, glob: &str, most: usize) -> Result<FoundFiles, NotAGlob> {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let matcher = Glob::parse(glob)?;
    let start = literal_folder(glob);
    let leads_through_link =
        start.ancestors().any(|folder| root.join(folder).is_symlink() && folder != Path::new(""));
    if !stays_inside(&start) || leads_through_link {
        return Ok(FoundFiles::default());
    }
    let mut files = BTreeSet::new();
    let names_leftovers = glob.contains(".aider");
    let is_cut = visit_entries(root, &start, false, |path, is_file| {
        if is_file && matcher.matches(path) && (names_leftovers || !is_leftover(path)) {
            files.insert(path.to_owned());
        }
        files.len() <= most
    });
    let is_cut = is_cut || files.len() > most;
    Ok(FoundFiles { files: files.into_iter().take(most).collect(), is_cut })
}

/// Lists the regular files of a workspace, without those of builds and dependencies.
pub fn list_files(root: &Path, most: usize) -> FoundFiles {
    let mut files = Vec::new();
    let is_cut = visit_entries(root, Path::new(""), true, |path, is_file| {
        if is_file && !is_leftover(path) {
            files.push(path.to_owned());
        }
        files.len() < most
    });
    files.sort();
    FoundFiles { files, is_cut }
}

/// Says whether a folder holds packages, or what was built, in any number; `has` says whether its parent has an entry.
pub(crate) fn holds_packages(name: &OsStr, has: impl Fn(&str) -> bool) -> bool {
    OF_OTHERS.iter().any(|(folder, sign)| name == *folder && has(sign))
}

/// Says whether a relative path has no way up or out.
pub(crate) fn stays_inside(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir))
}

pub(crate) fn is_leftover(path: &str) -> bool {
    LEFTOVERS.iter().any(|name| path.starts_with(name))
}

/// The folders before the first part that is a pattern.
fn literal_folder(glob: &str) -> PathBuf {
    let parts: Vec<&str> = glob.split('/').collect();
    let literal =
        parts.iter().take(parts.len() - 1).take_while(|part| !is_glob(part) && !part.contains('\\'));
    literal.collect()
}

/// Calls `see` for each entry until it returns false; says whether anything was left out. `.git` is not entered.
fn visit_entries(
    root: &Path,
    start: &Path,
    skips_packages: bool,
    mut see: impl FnMut(&str, bool) -> bool,
) -> bool {
    let mut seen = 0;
    let mut folders = vec![start.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return true;
            }
            // The kind of the entry itself: a link is neither a file nor a folder.
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let path = folder.join(&name);
            if kind.is_dir() {
                let has = |sign: &str| root.join(&folder).join(sign).exists();
                if name != ".git" && !(skips_packages && holds_packages(&name, has)) {
                    folders.push(path);
                }
                continue;
            }
            let Some(path) = path.to_str() else { continue };
            if !see(path, kind.is_file()) {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in
            ["src/main.rs", "src/deep/er/lib.rs", "tests/one.rs", ".git/config", "target/x.rs", "a.md"]
        {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", folder.path().join("src/etc")).unwrap();
        folder
    }

    #[test]
    fn a_star_stays_in_its_folder_and_two_do_not() {
        let folder = workspace();
        let expand = |glob| expand(folder.path(), glob, 100).unwrap().files;
        assert_eq!(expand("src/*.rs"), ["src/main.rs"]);
        assert_eq!(expand("src/**/*.rs"), ["src/deep/er/lib.rs", "src/main.rs"]);
        assert_eq!(expand("./*.md"), ["a.md"]);
        assert_eq!(expand("src/etc/*"), [""; 0], "a link is not entered");
        assert_eq!(expand("../*"), [""; 0]);
        assert_eq!(expand("/etc/*"), [""; 0]);
        assert_eq!(expand(".git/*"), [".git/config"; 1], "named by the plan itself");
    }

    #[test]
    fn what_aider_leaves_behind_is_no_file_of_the_workspace() {
        let folder = workspace();
        for path in [".aider.chat.history.md", ".aider.tags.cache.v4/1.db", ".aider.conf.yml"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let expand = |glob| expand(folder.path(), glob, 100).unwrap().files;
        assert_eq!(expand("*"), [".aider.conf.yml", "a.md"]);
        assert_eq!(expand("**/*.db"), [""; 0]);
        assert_eq!(expand(".aider.*.md"), [".aider.chat.history.md"], "named by the plan itself");
        assert_eq!(list_files(folder.path(), 100).files[..2], [".aider.conf.yml", "a.md"]);
    }

    #[test]
    fn a_cap_is_said() {
        let folder = workspace();
        let found = expand(folder.path(), "**/*.rs", 2).unwrap();
        assert_eq!((found.files.len(), found.is_cut), (2, true));
        assert!(!expand(folder.path(), "**/*.rs", 4).unwrap().is_cut);
        assert!(super::expand(folder.path(), "[", 2).is_err());
    }

    #[test]
    fn a_listing_leaves_out_builds_and_dependencies() {
        let folder = workspace();
        std::fs::create_dir_all(folder.path().join("src/target/node_modules")).unwrap();
        std::fs::write(folder.path().join("src/target/of_a_build.rs"), "").unwrap();
        std::fs::write(folder.path().join("src/target/node_modules/a.js"), "").unwrap();
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(
            list_files(folder.path(), 100).files,
            [
                "Cargo.toml",
                "a.md",
                "src/deep/er/lib.rs",
                "src/main.rs",
                "src/target/of_a_build.rs",
                "tests/one.rs"
            ]
        );
        assert!(list_files(folder.path(), 2).is_cut);
    }
}
