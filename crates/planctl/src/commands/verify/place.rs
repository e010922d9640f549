//! The path of a file from the root of its repository, as code hosts want it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the root of the repository that a workspace lies in; the workspace where it lies in none.
pub fn root(workspace: &Path) -> PathBuf {
    planctl_harness::git_top_level(workspace).unwrap_or(workspace).to_owned()
}

/// Returns a file's path from the root; an absolute one where it lies outside.
pub fn from_root(root: &Path, file: &Path) -> PathBuf {
    planctl_server::check::plan_path(file, root).into()
}

/// Writes a path as a URI reference: bytes that may not stand in one are percent-encoded.
pub fn uri(path: &Path) -> String {
    let mut text = if path.is_absolute() { "file://".to_owned() } else { String::new() };
    for &byte in path.as_os_str().as_bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/');
        if is_plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri_byte_for_byte() {
        assert_eq!(uri(Path::new("plans/a b#1%.md")), "plans/a%20b%231%25.md");
        assert_eq!(uri(Path::new("/tmp/ü:x.md")), "file:///tmp/%C3%BC%3Ax.md");
    }
}
