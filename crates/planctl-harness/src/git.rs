//! Reads where a git workspace stands, without starting git (A10).

pub(crate) mod clean;
pub(crate) mod config;
pub(crate) mod front;
pub(crate) mod index;
pub(crate) mod newer;

use std::path::{Path, PathBuf};

use crate::beneath::{open_anywhere, read_capped};

/// The most bytes of a packed list of refs that are read.
const PACKED_REFS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often a ref may name another one.
const REF_DEPTH_MAX: usize = 5;

/// Returns the folder that holds `.git`, upward from a folder.
pub fn git_top_level(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|ancestor| git_folder(ancestor).is_some())
}

/// Returns the commit that HEAD names, where the folder lies in a git checkout that has one.
pub fn git_head(folder: &Path) -> Option<String> {
    let own = git_folder(git_top_level(folder)?)?;
    let common = git_common(&own);
    let mut target = read_line(&own.join("HEAD"))?;
    for _ in 0..REF_DEPTH_MAX {
        let Some(name) = target.strip_prefix("ref:").map(str::trim) else {
            return is_commit(&target).then_some(target);
        };
        if !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
            return None;
        }
        target = read_line(&own.join(name))
            .or_else(|| read_line(&common.join(name)))
            .or_else(|| packed(&common.join("packed-refs"), name))?;
    }
    None
}

/// Returns the branch that HEAD names; `None` where HEAD is a commit itself, or the folder lies in no checkout.
pub fn git_branch(folder: &Path) -> Option<String> {
    let own = git_folder(git_top_level(folder)?)?;
    let head = read_line(&own.join("HEAD"))?;
    head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/").map(str::to_owned)
}

/// Returns what `.git` in this folder is or points to.
pub(crate) fn git_folder(folder: &Path) -> Option<PathBuf> {
    let dot_git = folder.join(".git");
    let found = std::fs::metadata(&dot_git).ok()?;
    if found.is_dir() {
        return Some(dot_git);
    }
    let line = read_line(&dot_git)?;
    Some(folder.join(line.strip_prefix("gitdir:")?.trim()))
}

/// Returns the folder that a checkout shares with its worktrees, of that checkout's own: references and objects are there.
pub(crate) fn git_common(own: &Path) -> PathBuf {
    match read_line(&own.join("commondir")) {
        Some(path) => own.join(path),
        None => own.to_owned(),
    }
}

fn read_line(path: &Path) -> Option<String> {
    let content = read_capped(open_anywhere(path).ok()?, 4096).ok()?;
    Some(String::from_utf8(content).ok()?.lines().next()?.trim().to_owned())
}

fn packed(path: &Path, name: &str) -> Option<String> {
    let content = read_capped(open_anywhere(path).ok()?, PACKED_REFS_BYTES_MAX).ok()?;
    let content = String::from_utf8_lossy(&content);
    let mut entries = content.lines().filter_map(|line| line.split_once(' '));
    entries.find(|(_, entry)| entry.trim() == name).map(|(commit, _)| commit.to_owned())
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stderr(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn head_is_what_git_says_it_is() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("repository");
        std::fs::create_dir_all(folder.join("deep/er")).unwrap();
        assert_eq!(git_head(&folder), None);
        git(&folder, &["init"]);
        assert_eq!(git_head(&folder), None, "no commit yet");
        git(&folder, &["commit", "--allow-empty", "-m", "one"]);
        let commit = git(&folder, &["rev-parse", "HEAD"]);
        assert_eq!(git_head(&folder.join("deep/er")).as_ref(), Some(&commit));
        assert_eq!(git_top_level(&folder.join("deep/er")), Some(folder.as_path()));
        git(&folder, &["pack-refs", "--all"]);
        assert_eq!(git_head(&folder).as_ref(), Some(&commit), "packed");
        git(&folder, &["worktree", "add", "-b", "other", "../linked"]);
        git(&outer.path().join("linked"), &["commit", "--allow-empty", "-m", "two"]);
        let other = git(&outer.path().join("linked"), &["rev-parse", "HEAD"]);
        assert_eq!(git_head(&outer.path().join("linked")), Some(other), "a linked worktree");
        git(&folder, &["checkout", "--detach"]);
        assert_eq!(git_head(&folder), Some(commit), "detached");
        assert_eq!(git_branch(&folder), None, "detached");
        assert_eq!(git_branch(&outer.path().join("linked")).as_deref(), Some("other"));
    }

    #[test]
    fn a_head_that_points_anywhere_reads_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        for head in
            ["ref: refs/../../../etc/passwd", "ref: /etc/passwd", "nonsense", "ref: refs/heads/none", ""]
        {
            std::fs::write(folder.path().join(".git/HEAD"), head).unwrap();
            assert_eq!(git_head(folder.path()), None, "{head}");
        }
    }
}
