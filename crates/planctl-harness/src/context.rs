//! Reads the files that a step subscribes to, within caps and within the workspace (A24–A27, P-53, P-55).

use std::io::{self, Read};
use std::path::Path;

use crate::beneath::{LastLink, Root, Unreadable};
use crate::walk::{expand, is_glob, stays_inside};

/// The most bytes that are read of one file.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// The most bytes that are read of all files.
pub const CONTEXT_BYTES_MAX: usize = 1024 * 1024;
/// The most files that one glob brings.
pub const GLOB_FILES_MAX: usize = 50;
/// How many bytes of a binary file are shown.
const BINARY_BYTES_SHOWN: usize = 256;

/// One piece of context: a file, or a topic's notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextEntry {
    /// Where it comes from, as the plan writes it: `file:src/auth.rs`.
    pub source: String,
    /// The text for the prompt; without NUL.
    pub text: String,
    /// What the reader should know: it was cut, it is not text, it is missing.
    pub remark: Option<String>,
    /// The bytes as they were read, for the context folder; `None` where there was nothing to read.
    pub bytes: Option<Vec<u8>>,
}

impl ContextEntry {
    /// Returns the path of a file entry, relative to the workspace.
    pub fn path(&self) -> Option<&str> {
        self.source.strip_prefix("file:")
    }

    fn absent(path: &str, remark: String) -> ContextEntry {
        ContextEntry {
            source: format!("file:{path}"),
            text: String::new(),
            remark: Some(remark),
            bytes: None,
        }
    }
}

/// Reads the subscribed files in order; whatever cannot be read becomes an entry that says why, and the step still
/// runs (P-53). Each file comes once.
///
/// # Errors
///
/// When the workspace cannot be opened.
pub fn read_context<'a>(
    workspace: &Path,
    paths: impl IntoIterator<Item = &'a str>,
) -> io::Result<Vec<ContextEntry>> {
    let root = Root::open(workspace)?;
    let mut entries: Vec<ContextEntry> = Vec::new();
    let mut left = CONTEXT_BYTES_MAX;
    for path in paths {
        if !is_glob(path) || root.open_file(Path::new(path), LastLink::Follow).is_ok() {
            push(&mut entries, &root, path, &mut left);
            continue;
        }
        match expand(workspace, path, GLOB_FILES_MAX) {
            Err(error) => entries.push(ContextEntry::absent(path, error.to_string())),
            Ok(found) => {
                if found.files.is_empty() {
                    entries.push(ContextEntry::absent(path, "no file matches".into()));
                }
                for file in &found.files {
                    push(&mut entries, &root, file, &mut left);
                }
                if found.is_cut {
                    let remark = format!("more than {GLOB_FILES_MAX} files match; the rest is left out");
                    entries.push(ContextEntry::absent(path, remark));
                }
            }
        }
    }
    Ok(entries)
}

fn push(entries: &mut Vec<ContextEntry>, root: &Root, path: &str, left: &mut usize) {
    let path = path.strip_prefix("./").unwrap_or(path);
    if entries.iter().any(|entry| entry.path() == Some(path)) {
        return;
    }
    entries.push(match read(root, path, *left) {
        Err(error) => ContextEntry::absent(path, format!("not available: {error}")),
        Ok((bytes, size)) => {
            *left -= bytes.len();
            entry(path, bytes, size)
        }
    });
}

/// Reads the file's first bytes and tells its size.
fn read(root: &Root, path: &str, left: usize) -> Result<(Vec<u8>, u64), Unreadable> {
    if !stays_inside(Path::new(path)) {
        return Err(Unreadable::Outside);
    }
    let file = root.open_file(Path::new(path), LastLink::Follow)?;
    let size = file.metadata().map_err(Unreadable::Refused)?.len();
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX.min(left) as u64).read_to_end(&mut bytes).map_err(Unreadable::Refused)?;
    Ok((bytes, size))
}

fn entry(path: &str, bytes: Vec<u8>, size: u64) -> ContextEntry {
    let mut remarks = Vec::new();
    if (bytes.len() as u64) < size {
        remarks.push(format!("cut: the first {} of {size} bytes", bytes.len()));
    }
    let is_binary = bytes.contains(&0);
    let text = if is_binary {
        let shown = &bytes[..bytes.len().min(BINARY_BYTES_SHOWN)];
        remarks.push(format!("not text; the first {} bytes in hexadecimal", shown.len()));
        shown.chunks(16).map(hex_line).collect::<Vec<_>>().join("\n")
    } else {
        // The last character may have been cut in two.
        let end = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && (bytes.len() as u64) < size => error.valid_up_to(),
            Ok(_) | Err(_) => bytes.len(),
        };
        match String::from_utf8_lossy(&bytes[..end]) {
            std::borrow::Cow::Borrowed(text) => text.trim_start_matches('\u{feff}').to_owned(),
            std::borrow::Cow::Owned(text) => {
                remarks.push("not all of it is UTF-8; what is not shows as \u{fffd}".into());
                text
            }
        }
    };
    let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
    ContextEntry { source: format!("file:{path}"), text, remark, bytes: Some(bytes) }
}

fn hex_line(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        std::fs::write(folder.path().join("docs/a.md"), "# A\n").unwrap();
        std::fs::write(folder.path().join("docs/b.md"), "\u{feff}# B\n").unwrap();
        folder
    }

    fn context(folder: &tempfile::TempDir, paths: &[&str]) -> Vec<ContextEntry> {
        read_context(folder.path(), paths.iter().copied()).unwrap()
    }

    #[test]
    fn p_55_files_and_globs_come_once_each_in_order() {
        let folder = workspace();
        let entries = context(&folder, &["docs/b.md", "docs/*.md", "./docs/a.md"]);
        let texts: Vec<_> =
            entries.iter().map(|entry| (entry.source.as_str(), entry.text.as_str())).collect();
        assert_eq!(texts, [("file:docs/b.md", "# B\n"), ("file:docs/a.md", "# A\n")]);
    }

    #[test]
    fn p_53_what_is_missing_or_outside_degrades_to_a_remark() {
        let folder = workspace();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("out")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
        for (path, remark) in [
            ("none.md", "does not exist"),
            ("none*.md", "no file matches"),
            ("/etc/passwd", "leads out"),
            ("../x", "leads out"),
            ("docs/../../x", "leads out"),
            ("out", "leads out"),
            ("fifo", "named pipe"),
            ("docs", "directory"),
            ("[", "not a glob"),
        ] {
            let entries = context(&folder, &[path]);
            assert!(
                entries[0].remark.as_ref().is_some_and(|text| text.contains(remark)),
                "{path}: {entries:?}"
            );
            assert_eq!((entries[0].text.as_str(), &entries[0].bytes), ("", &None), "{path}");
        }
    }

    #[test]
    fn a25_caps_hold_for_one_file_and_for_all() {
        let folder = workspace();
        std::fs::File::create(folder.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        for number in 0..6 {
            std::fs::write(folder.path().join(format!("large{number}")), "ä".repeat(FILE_BYTES_MAX)).unwrap();
        }
        let entries = context(&folder, &["sparse", "large*"]);
        let read: usize = entries.iter().filter_map(|entry| entry.bytes.as_ref()).map(Vec::len).sum();
        assert_eq!(read, CONTEXT_BYTES_MAX);
        assert!(entries.iter().all(|entry| entry.remark.is_some()));
        assert!(entries[1].text.chars().all(|character| character == 'ä'));
    }

    #[test]
    fn a27_binary_and_broken_text_are_marked_and_hold_no_nul() {
        let folder = workspace();
        std::fs::write(folder.path().join("binary"), b"\x7fELF\0\x01").unwrap();
        std::fs::write(folder.path().join("latin"), b"caf\xe9").unwrap();
        let entries = context(&folder, &["binary", "latin"]);
        assert_eq!(entries[0].text, "7f 45 4c 46 00 01");
        assert_eq!(entries[1].text, "caf\u{fffd}");
        assert!(entries.iter().all(|entry| entry.remark.is_some() && !entry.text.contains('\0')));
    }
}
