//! Reads which files a git checkout tracks out of its index, without starting git (A5).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{git_folder, git_top_level};
use crate::beneath::{open_anywhere, read_capped};

/// The most bytes of an index that are read.
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Times, device, inode, mode, owner and size of an entry.
const STAT_BYTES: usize = 40;
const MODE_AT: usize = 24;
/// How long an object's name may be: SHA-1 or SHA-256.
const NAME_BYTES: [usize; 2] = [20, 32];

/// Lists the files and links below a folder that git tracks, relative to the folder; none where it lies in no checkout or
/// the index can't be read. Submodules are repositories of their own.
pub(crate) fn tracked_files(folder: &Path) -> Vec<PathBuf> {
    let listed = || {
        let top = git_top_level(folder)?;
        let mut within = folder.strip_prefix(top).ok()?.as_os_str().as_bytes().to_vec();
        if !within.is_empty() {
            within.push(b'/');
        }
        let file = open_anywhere(&git_folder(top)?.join("index")).ok()?;
        let index = read_capped(file, INDEX_BYTES_MAX).ok()?;
        NAME_BYTES.iter().find_map(|bytes| entries(&index, *bytes, &within))
    };
    listed().unwrap_or_default()
}

/// Returns `None` where the index is not of this format.
fn entries(index: &[u8], name_bytes: usize, within: &[u8]) -> Option<Vec<PathBuf>> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut found, mut path) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let fixed = STAT_BYTES + name_bytes + 2;
        let head = rest.get(..fixed)?;
        let mode = u32::from_be_bytes(head[MODE_AT..MODE_AT + 4].try_into().ok()?);
        let flags = u16::from_be_bytes(head[fixed - 2..].try_into().ok()?);
        let is_extended = version >= 3 && flags & 0x4000 != 0;
        let at = if is_extended { fixed + 2 } else { fixed };
        let mut name = rest.get(at..)?;
        if version == 4 {
            // The name begins as the one before it, less some of that one's end.
            let cut = shortened_by(&mut name)?;
            path.truncate(path.len().checked_sub(cut)?);
        } else {
            path.clear();
        }
        let end = name.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&name[..end]);
        let said = usize::from(flags & 0x0fff);
        if said != path.len().min(0x0fff) {
            return None;
        }
        rest = if version == 4 {
            name.get(end + 1..)?
        } else {
            // An entry is filled up to a multiple of eight bytes, with one at least.
            rest.get((at + end + 8) & !7..)?
        };
        let is_file = matches!(mode >> 12, 0o10 | 0o12);
        // Git writes no name with a way up; a worker can.
        let is_plain = || path.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
        if let Some(file) = path.strip_prefix(within)
            && is_file
            && is_plain()
        {
            found.push(PathBuf::from(OsStr::from_bytes(file)));
        }
    }
    Some(found)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*bytes))
}

/// Reads a number of seven bits per byte, as version 4 writes how much of a name differs.
fn shortened_by(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tests::git;

    #[test]
    fn a5_the_index_is_read_as_git_does_in_every_version() {
        for (format, version) in [("sha1", "2"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            git(root, &["init", "--object-format", format]);
            assert_eq!(tracked_files(root), Vec::<PathBuf>::new(), "no index yet");
            let long = format!("src/{}", "deep/".repeat(30).trim_end_matches('/'));
            for name in ["a", "src/one.rs", "src/only.rs", "src/\u{e4}.rs", &format!("{long}/x"), "z z"] {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, name).unwrap();
            }
            std::os::unix::fs::symlink("a", root.join("link")).unwrap();
            std::fs::write(root.join("untracked"), "").unwrap();
            let names = ["a", "link", "src", "z z"];
            git(root, &[&["add"], &names[..]].concat());
            git(root, &["update-index", "--index-version", version]);
            git(root, &["update-index", "--skip-worktree", "src/one.rs"]);
            let listed = |folder: &Path| -> Vec<String> {
                tracked_files(folder).iter().map(|path| path.to_string_lossy().into_owned()).collect()
            };
            let deep = format!("{long}/x");
            let expected = ["a", "link", &deep, "src/one.rs", "src/only.rs", "src/\u{e4}.rs", "z z"];
            assert_eq!(listed(root), expected, "{format} {version}");
            let below: Vec<&str> = expected.iter().filter_map(|name| name.strip_prefix("src/")).collect();
            assert_eq!(listed(&root.join("src")), below);
        }
    }

    #[test]
    fn a_broken_index_lists_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        for bytes in [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"DIRC\0\0\0\x09\0\0\0\0"] {
            std::fs::write(folder.path().join(".git/index"), bytes).unwrap();
            assert_eq!(tracked_files(folder.path()), Vec::<PathBuf>::new());
        }
    }
}
