//! Reads the files that a step subscribes to, within caps and within the workspace (A24–A27, P-53, P-55).

use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use planctl_glob::is_glob;

use crate::beneath::{LastLink, Root, Unreadable};
use crate::walk::{expand, stays_inside};

/// The most bytes that are read of one file.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// The most bytes that are read of all files.
pub const CONTEXT_BYTES_MAX: usize = 1024 * 1024;
/// The most files that one glob brings.
pub const GLOB_FILES_MAX: usize = 50;
/// Names of files that hold secrets wherever they lie (A28); copies to fill in are none.
const SECRET_NAMES: [&str; 9] = [
    ".env",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "id_rsa",
    "id_ed25519",
];
/// How the names of other such files end.
const SECRET_ENDINGS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
/// How the paths of other such files end.
const SECRET_PLACES: [&str; 2] = [".aws/credentials", ".docker/config.json"];
/// How the names of those end that hold no secret after all.
const SAMPLE_ENDINGS: [&str; 5] = [".example", ".sample", ".template", ".dist", ".pub"];
/// How many bytes of a binary file are shown.
const BINARY_BYTES_SHOWN: usize = 256;

/// One piece of context: a file, or a topic's notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextEntry {
    /// Where it comes from, as the plan writes it: `file:src/auth.rs`.
    pub source: String,
    /// The text for the prompt; without NUL.
    pub text: String,
    /// A remark for the reader: it was cut, it is not text, it is missing.
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

/// Reads the subscribed files in order. A file that cannot be read becomes an entry that says why, and the step still runs
/// (P-53). Each file comes once.
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
        Ok((bytes, size, target)) => {
            match withheld_reason(path).or(target).or_else(|| holds_secret(&bytes)) {
                Some(why) => ContextEntry::absent(path, why.to_owned()),
                None => {
                    *left -= bytes.len();
                    text_entry(path, bytes, size)
                }
            }
        }
    });
}

/// Reads the file's first bytes and tells its size, or a greater one where it grew meanwhile; with it why the file that was
/// really opened is withheld, where links led to one that is.
fn read(root: &Root, path: &str, left: usize) -> Result<(Vec<u8>, u64, Option<&'static str>), Unreadable> {
    if !stays_inside(Path::new(path)) {
        return Err(Unreadable::Outside);
    }
    let file = root.open_file(Path::new(path), LastLink::Follow)?;
    let size = file.metadata().map_err(Unreadable::Refused)?.len();
    // The kernel names the opened file, even where links lead to it or change meanwhile.
    let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let target = opened.map_err(Unreadable::Refused)?;
    let target = withheld_reason(&target.to_string_lossy());
    let most = FILE_BYTES_MAX.min(left);
    let mut bytes = Vec::new();
    // One more than is kept: the size that was told says nothing of a file that grows, or of one that tells none.
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(Unreadable::Refused)?;
    let size = size.max(bytes.len() as u64);
    bytes.truncate(most);
    Ok((bytes, size, target))
}

/// Says why a file of this name is given to no agent (A28).
pub fn withheld_reason(path: &str) -> Option<&'static str> {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_sample = SAMPLE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_secret = SECRET_NAMES.contains(&name)
        || name.starts_with(".env.")
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || SECRET_PLACES.iter().any(|place| path.ends_with(place));
    (is_secret && !is_sample).then_some("not given: files of this name hold secrets")
}

/// Says why what was read is not given to an agent.
fn holds_secret(bytes: &[u8]) -> Option<&'static str> {
    let is_key = |line: &[u8]| {
        line.starts_with(b"-----BEGIN ") && line.trim_ascii_end().ends_with(b"PRIVATE KEY-----")
    };
    bytes.split(|byte| *byte == b'\n').any(is_key).then_some("not given: it holds a private key")
}

/// Shows characters that nobody sees and that change how text reads, or carry text of their own, as `\u{…}`.
///
/// Joiners and marks of single letters stay: languages need them.
/// `None` where there is nothing of it (A27).
pub fn escape_hidden(text: &str) -> Option<String> {
    let is_hidden = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{206a}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}' | '\u{1b}');
    text.contains(is_hidden).then(|| {
        text.chars()
            .map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() })
            .collect()
    })
}

fn text_entry(path: &str, bytes: Vec<u8>, size: u64) -> ContextEntry {
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
    let text = match escape_hidden(&text) {
        Some(shown) => {
            remarks.push("it holds hidden characters, shown as \\u{…}".into());
            shown
        }
        None => text,
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
    fn a25_a_file_that_grows_while_it_is_read_is_cut_and_marked() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let folder = workspace();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                let mut written = 0;
                while !stop.load(Ordering::Relaxed) && written < 64 * FILE_BYTES_MAX {
                    std::io::Write::write_all(&mut log, &[b'x'; 4096]).unwrap();
                    written += 4096;
                }
            });
            for _ in 0..200 {
                let entry = context(&folder, &["log"]).remove(0);
                let bytes = entry.bytes.unwrap().len();
                assert!(bytes <= FILE_BYTES_MAX);
                assert_eq!(entry.text.len(), bytes);
            }
            stop.store(true, Ordering::Relaxed);
        });
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX + 1]).unwrap();
        let entry = context(&folder, &["log"]).remove(0);
        assert_eq!(
            entry.remark.unwrap(),
            format!("cut: the first {FILE_BYTES_MAX} of {} bytes", FILE_BYTES_MAX + 1)
        );
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX]).unwrap();
        assert_eq!(context(&folder, &["log"]).remove(0).remark, None);
    }

    /// A link, and a folder on the way, that change a thousand times a second between inside and out.
    #[test]
    fn a24_what_flips_while_it_is_read_never_leaks_into_a_prompt() {
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("workspace");
        for folder in ["workspace/real", "outside"] {
            std::fs::create_dir_all(outer.path().join(folder)).unwrap();
        }
        std::fs::write(inner.join("real/a.md"), "inside").unwrap();
        std::fs::write(outer.path().join("outside/a.md"), "SECRET").unwrap();
        let flip = |name: &str, target: &str| {
            symlink(target, inner.join("new")).unwrap();
            std::fs::rename(inner.join("new"), inner.join(name)).unwrap();
        };
        flip("file", "real/a.md");
        flip("way", "real");
        let stop = AtomicBool::new(false);
        let (mut seen, mut refused) = (0_u32, 0_u32);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut tick = std::time::Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    flip("file", "../outside/a.md");
                    flip("way", "../outside");
                    flip("file", "real/a.md");
                    flip("way", "real");
                    tick += std::time::Duration::from_millis(1);
                    std::thread::sleep(tick.saturating_duration_since(std::time::Instant::now()));
                }
            });
            let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
            while std::time::Instant::now() < until && seen + refused < 100_000 {
                for entry in read_context(&inner, ["file", "way/a.md", "way/*.md"]).unwrap() {
                    assert!(!entry.text.contains("SECRET"), "{entry:?}");
                    assert!(entry.bytes.as_deref().is_none_or(|bytes| bytes == b"inside"), "{entry:?}");
                    match entry.bytes {
                        Some(_) => seen += 1,
                        None => refused += 1,
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(seen > 0 && refused > 0, "{seen} read, {refused} refused");
    }

    #[test]
    fn a26_a_hard_link_to_somebody_elses_file_becomes_a_remark() {
        let outer = tempfile::tempdir().unwrap();
        let (inner, secret) = (outer.path().join("workspace"), outer.path().join("secret"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(&secret, "SECRET").unwrap();
        std::fs::hard_link(&secret, inner.join("link")).unwrap();
        // Only root can give files away.
        if std::os::unix::fs::chown(&secret, Some(12_345), None).is_ok() {
            let entry = read_context(&inner, ["link"]).unwrap().remove(0);
            assert!(entry.remark.unwrap().contains("hard link to a file of another user"));
            assert_eq!(entry.bytes, None);
        }
    }

    #[test]
    fn a27_hidden_characters_are_shown_and_bytes_stay_as_they_are() {
        let folder = workspace();
        let text = "if admin\u{202e} }\u{2066}//\u{e0061}\u{e0070} \u{1b}[2K ok \u{1f469}\u{200d}\u{1f4bb}\n";
        std::fs::write(folder.path().join("trojan"), text).unwrap();
        let entry = context(&folder, &["trojan"]).remove(0);
        assert_eq!(
            entry.text,
            "if admin\\u{202e} }\\u{2066}//\\u{e0061}\\u{e0070} \\u{1b}[2K ok \u{1f469}\u{200d}\u{1f4bb}\n"
        );
        assert!(entry.remark.unwrap().contains("hidden characters"));
        assert_eq!(entry.bytes.unwrap(), text.as_bytes());
        std::fs::write(folder.path().join("utf16"), b"\xff\xfeh\0i\0").unwrap();
        assert_eq!(context(&folder, &["utf16"])[0].text, "ff fe 68 00 69 00");
    }

    #[test]
    fn a28_files_that_hold_secrets_are_not_given_to_an_agent() {
        let folder = workspace();
        std::fs::create_dir_all(folder.path().join("deep/.aws")).unwrap();
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----\n";
        let secrets =
            [".env", ".env.production", "deep/server.PEM", "deep/.aws/credentials", "id_rsa", "notes.txt"];
        for name in secrets {
            let text = if name == "notes.txt" { key } else { "TOKEN=CANARY\n" };
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        for name in secrets {
            let entry = context(&folder, &[name]).remove(0);
            assert!(entry.remark.as_ref().is_some_and(|remark| remark.starts_with("not given")), "{entry:?}");
            assert_eq!((entry.text.as_str(), &entry.bytes), ("", &None), "{name}");
        }
        // A link of another name leads to the same file.
        std::os::unix::fs::symlink(".env", folder.path().join("innocent.md")).unwrap();
        std::os::unix::fs::symlink("innocent.md", folder.path().join("twice.md")).unwrap();
        for name in ["innocent.md", "twice.md"] {
            let entry = context(&folder, &[name]).remove(0);
            assert!(entry.remark.as_ref().is_some_and(|remark| remark.starts_with("not given")), "{entry:?}");
            assert_eq!((entry.text.as_str(), &entry.bytes), ("", &None), "{name}");
        }
        let all = context(&folder, &["**/*", ".*"]);
        assert!(!format!("{all:?}").contains("CANARY"));
        for (name, text) in
            [(".env.example", "TOKEN=\n"), ("id_rsa.pub", "ssh-rsa A\n"), ("monkey.md", "key\n")]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
            assert_eq!(context(&folder, &[name])[0].text, text, "{name}");
        }
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
