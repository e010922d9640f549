//! Lists the protected entries that exist: named ones, and all that match a pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use planctl_engine::Digest;
use planctl_glob::{Glob, is_glob};
use rustix::fs::{Access, AtFlags, Dir, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{ENTRIES_MAX, EntryKind, FileState, PROTECTED_BYTES_MAX, PROTECTED_FILES_MAX, ProtectError};
use crate::beneath::{LastLink, Root, Unreadable};
use crate::digest::{digest_of, digest_within};
use crate::stamp::Stamp;
use crate::walk::{holds_packages, is_leftover};

/// Folders that tests fill by running, and that say nothing about them; a pattern that names one sees it.
const CACHES: [&str; 2] = ["__pycache__", ".pytest_cache"];

/// The section of a Python distribution that names plugins of pytest.
const PYTEST_PLUGINS: &[u8] = b"pytest11";
/// Text without blanks and quotes by which a `pyproject.toml` has settings of a tool that judges, or another such tool in its place; text
/// with an escape counts.
const JUDGES_OF_PYTHON: [&str; 27] = [
    "tool.bandit",
    "tool.basedpyright",
    "tool.behave",
    "tool.black",
    "tool.codespell",
    "tool.coverage",
    "tool.djlint",
    "tool.flake8",
    "tool.interrogate",
    "tool.isort",
    "tool.mypy",
    "tool.nose2",
    "tool.pydocstyle",
    "tool.pylint",
    "tool.pyright",
    "tool.pytest",
    "tool.ruff",
    "tool.sqlfluff",
    "tool.tox",
    "tool.typos",
    "tool.uv",
    "tool.vulture",
    "[tool]",
    "tool={",
    "@file:",
    "\\u",
    "\\U",
];
/// How much of a file is read to see that it decides nothing; a longer one counts.
const HARMLESS_BYTES_MAX: u64 = 1 << 20;

/// Lists the entries that existed at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) entries: BTreeMap<String, Seen>,
    /// Those of them in which the programs that read files of their names find nothing that decides what they do.
    pub(super) harmless: BTreeSet<String>,
    /// By pattern, the folders in which an entry that matches it was looked for.
    pub(super) folders: BTreeMap<String, Vec<PathBuf>>,
    /// The first file that was not read, since it and those before it have more than [`PROTECTED_BYTES_MAX`].
    too_large: Option<String>,
}

/// One entry, and what tells that nobody touched it meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) state: FileState,
    pub(crate) stamp: Stamp,
}

impl Survey {
    /// Looks at named entries, and at all that match a pattern.
    pub(super) fn take<'a>(
        root: &Root,
        named: impl IntoIterator<Item = &'a String>,
        globs: impl IntoIterator<Item = &'a String>,
        before: Option<&Survey>,
    ) -> Result<Survey, ProtectError> {
        let mut surveyor = Surveyor { root, before, survey: Survey::default(), left: PROTECTED_BYTES_MAX };
        for path in named {
            surveyor.survey_entry(path.clone());
        }
        for glob in globs {
            surveyor.walk(glob)?;
        }
        Ok(surveyor.survey)
    }

    /// Looks at named entries, and at all that match a pattern; refuses where one is not read.
    pub(super) fn whole<'a>(
        root: &Root,
        named: impl IntoIterator<Item = &'a String>,
        globs: impl IntoIterator<Item = &'a String>,
    ) -> Result<Survey, ProtectError> {
        let survey = Survey::take(root, named, globs, None)?;
        match survey.too_large {
            Some(path) => Err(ProtectError::TooLarge { path }),
            None => Ok(survey),
        }
    }

    /// Returns what is here and was not there before, with its digest.
    pub(crate) fn new_since<'a>(&'a self, before: &'a Survey) -> impl Iterator<Item = (String, Digest)> + 'a {
        let is_there = |seen: &Seen| seen.state.kind != EntryKind::Absent;
        let is_new = move |(path, seen): &(&String, &Seen)| {
            is_there(seen) && !before.entries.get(*path).is_some_and(is_there)
        };
        let new = self.entries.iter().filter(is_new);
        new.map(|(path, seen)| (path.clone(), seen.state.digest.clone()))
    }

    /// Names the entries that were touched since an earlier survey, changed or not.
    pub(crate) fn touched_since<'a>(&'a self, before: &'a Survey) -> impl Iterator<Item = &'a str> {
        let is_touched = |(path, seen): &(&String, &Seen)| {
            before.entries.get(*path).is_some_and(|before| before.stamp != seen.stamp)
        };
        self.entries.iter().filter(is_touched).map(|(path, _)| path.as_str())
    }
}

struct Surveyor<'a> {
    root: &'a Root,
    before: Option<&'a Survey>,
    survey: Survey,
    /// How many bytes of files may still be read.
    left: u64,
}

impl Surveyor<'_> {
    fn survey_entry(&mut self, name: String) {
        if !self.survey.entries.contains_key(&name) {
            let before = self.before.and_then(|before| before.entries.get(&name));
            let mut reading = Reading { left: self.left, is_cut: false };
            let seen = survey_path(self.root, Path::new(&bytes_of_name(&name)), before, &mut reading);
            if self.decides_nothing(&name) {
                self.survey.harmless.insert(name.clone());
            }
            self.left = reading.left;
            if reading.is_cut {
                self.survey.too_large.get_or_insert_with(|| name.clone());
            }
            self.survey.entries.insert(name, seen);
        }
    }

    /// Says whether a file is an empty `__init__.py`, is of a Python distribution that has no plugin for pytest (installing any
    /// project with a command writes one), describes a package within the project without settings of a tool that judges, or is a stub
    /// that stands for no module beside it.
    fn decides_nothing(&self, name: &str) -> bool {
        if let Some(module) = name.strip_suffix(".pyi") {
            return self.root.find(Path::new(&format!("{module}.py")), LastLink::Follow).is_err();
        }
        let is_harmless: fn(&[u8]) -> bool = match name.rsplit('/').next() {
            Some("__init__.py") => |text| text.trim_ascii().is_empty(),
            Some("entry_points.txt") => {
                |text| !text.windows(PYTEST_PLUGINS.len()).any(|part| part == PYTEST_PLUGINS)
            }
            Some("pyproject.toml") if name.contains('/') => |text| {
                let text: String =
                    String::from_utf8_lossy(text).chars().filter(|c| !" \t\"'".contains(*c)).collect();
                !JUDGES_OF_PYTHON.iter().any(|sign| text.contains(sign))
            },
            Some(_) | None => return false,
        };
        self.root
            .read(Path::new(name), LastLink::Follow, HARMLESS_BYTES_MAX)
            .is_ok_and(|text| is_harmless(&text))
    }

    fn record_kind(&mut self, path: &Path, kind: EntryKind) {
        let seen = Seen { state: state_of_kind(kind), stamp: Stamp::default() };
        self.survey.entries.insert(name_of(path), seen);
    }

    /// Goes through every folder below which a pattern could match, but for those of packages and of what was built that it does not
    /// name. A link to a folder counts as an entry, and is followed where it stays in the workspace.
    fn walk(&mut self, glob: &str) -> Result<(), ProtectError> {
        let pattern = Pattern::read(glob)?;
        if !crate::walk::stays_inside(Path::new(&pattern.text)) {
            return Ok(());
        }
        let (mut matched, mut looked_at) = (0, 0);
        let mut visited: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let open = match self.root.open_folder(&folder) {
                Ok(open) => open,
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                Err(_) => {
                    self.record_kind(&folder, EntryKind::Unreadable);
                    continue;
                }
            };
            let found = open.metadata().map_err(ProtectError::Workspace)?;
            if !visited.insert((found.dev(), found.ino())) {
                continue;
            }
            self.survey.folders.entry(glob.to_owned()).or_default().push(folder.clone());
            let Ok(entries) = Dir::read_from(&open) else {
                self.record_kind(&folder, EntryKind::Unreadable);
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    self.record_kind(&folder, EntryKind::Unreadable);
                    break;
                };
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                looked_at += 1;
                let path = folder.join(name);
                let is_match = pattern.matches(&path);
                let has =
                    |sign: &str| rustix::fs::accessat(&open, sign, Access::EXISTS, AtFlags::empty()).is_ok();
                let leads_on =
                    pattern.may_match_below(&path) && (pattern.names(name) || !holds_packages(name, has));
                if !is_match && !leads_on {
                    continue;
                }
                let Ok(found) = rustix::fs::statat(&open, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
                let is_entry = if kind.is_dir() {
                    if leads_on {
                        folders.push(path.clone());
                    }
                    is_match && pattern.names_its_last_part
                } else if kind.is_symlink() {
                    let leads_to_file = self.root.open_file(&path, LastLink::Follow).is_ok();
                    if leads_on && self.root.open_folder(&path).is_ok() {
                        folders.push(path.clone());
                    }
                    is_match || !leads_to_file
                } else {
                    is_match
                };
                if is_entry {
                    matched += 1;
                    self.survey_entry(name_of(&path));
                }
            }
            if matched > PROTECTED_FILES_MAX || looked_at > ENTRIES_MAX {
                return Err(ProtectError::TooMany { glob: glob.to_owned() });
            }
        }
        Ok(())
    }
}

/// A pattern, also part by part, so that folders below which nothing can match are left alone.
pub(super) struct Pattern {
    text: String,
    whole: Glob,
    /// One matcher per folder; `None` from the first part on that may stand for several.
    parts: Vec<Option<Glob>>,
    /// Says that the last part is a plain name: then a folder of that name is an entry as well.
    names_its_last_part: bool,
    sees_caches: bool,
    sees_leftovers: bool,
    sees_git: bool,
}

impl Pattern {
    pub(super) fn read(glob: &str) -> Result<Pattern, ProtectError> {
        let text = glob.strip_prefix("./").unwrap_or(glob).to_owned();
        let whole = Glob::parse(&text)?;
        let mut parts = Vec::new();
        for part in text.split('/') {
            // A brace that is closed in another part may stand for several.
            let is_open = part.matches('{').count() != part.matches('}').count();
            let is_several = part.contains("**") || part.contains('\\') || is_open;
            let part = if is_several { None } else { Glob::parse(part).ok() };
            let is_end = part.is_none();
            parts.push(part);
            if is_end {
                break;
            }
        }
        let last = text.rsplit('/').next().unwrap_or(&text);
        Ok(Pattern {
            whole,
            parts,
            names_its_last_part: !is_glob(&without_escapes(last)),
            sees_caches: CACHES.iter().any(|cache| text.contains(cache)),
            sees_leftovers: text.contains(".aider"),
            sees_git: text.starts_with(".git"),
            text,
        })
    }

    pub(super) fn matches(&self, path: &Path) -> bool {
        self.is_seen(path) && self.whole.matches(path)
    }

    fn names(&self, folder: &OsStr) -> bool {
        folder.to_str().is_some_and(|folder| self.text.contains(folder))
    }

    fn may_match_below(&self, folder: &Path) -> bool {
        if !self.is_seen(folder) {
            return false;
        }
        for (at, name) in folder.iter().enumerate() {
            match self.parts.get(at) {
                Some(Some(part)) if part.matches(name) => {}
                Some(Some(_)) => return false,
                Some(None) => return true,
                None => return !matches!(self.parts.last(), Some(Some(_))),
            }
        }
        folder.iter().count() < self.parts.len()
    }

    fn is_seen(&self, path: &Path) -> bool {
        let is_cache = || path.iter().any(|part| CACHES.iter().any(|cache| part == *cache));
        let is_git = || path.iter().next().is_some_and(|first| first == ".git");
        let is_left = || path.to_str().is_some_and(is_leftover);
        (self.sees_caches || !is_cache())
            && (self.sees_git || !is_git())
            && (self.sees_leftovers || !is_left())
    }
}

/// Takes out the characters that a pattern escapes as `[*]`.
fn without_escapes(part: &str) -> String {
    ["[*]", "[?]", "[[]", "[]]", "[{]", "[}]", "[!]"]
        .iter()
        .fold(part.to_owned(), |part, escape| part.replace(escape, ""))
}

fn state_of_kind(kind: EntryKind) -> FileState {
    FileState { digest: digest_of(b""), executable: false, link: None, at: None, kind }
}

/// Returns what a path names, without following a link that stands there.
fn survey_path(root: &Root, path: &Path, before: Option<&Seen>, reading: &mut Reading) -> Seen {
    let only = |kind| Seen { state: state_of_kind(kind), stamp: Stamp::default() };
    let (found, at) = match root.find_without_links(path) {
        Ok(found) => (found, None),
        Err(Errno::NOENT | Errno::NOTDIR) => return only(EntryKind::Absent),
        // A link stands on the way.
        Err(Errno::LOOP) => match root.find(path, LastLink::Refuse) {
            Ok(found) => {
                let at = root.place_of(&found);
                (found, at)
            }
            Err(Unreadable::Missing) => return only(EntryKind::Absent),
            Err(Unreadable::Outside | Unreadable::Symlink) => return only(EntryKind::Link),
            Err(_) => return only(EntryKind::Unreadable),
        },
        Err(_) => return only(EntryKind::Unreadable),
    };
    let Ok(itself) = found.metadata() else { return only(EntryKind::Unreadable) };
    let stamp = Stamp::of(&itself);
    let mut state = state_of_kind(EntryKind::File);
    state.at = at;
    if itself.is_dir() {
        state.kind = EntryKind::Folder;
        return Seen { state, stamp };
    }
    if itself.file_type().is_symlink() {
        let Ok(text) = rustix::fs::readlinkat(&found, "", Vec::new()) else {
            return only(EntryKind::Unreadable);
        };
        let text = OsString::from_vec(text.into_bytes());
        state.digest = digest_of(text.as_bytes());
        state.link = Some(name_of(Path::new(&text)));
        let target = root.find(path, LastLink::Follow).ok();
        state.at = target.as_ref().and_then(|target| root.place_of(target)).or(state.at);
        match root.open_file(path, LastLink::Follow).map(|file| reading.digest_file(&file)) {
            Ok(Ok((digest, executable))) => (state.digest, state.executable) = (digest, executable),
            Ok(Err(_)) | Err(_) => state.kind = EntryKind::Link,
        }
        return Seen { state, stamp };
    }
    if let Some(before) = before.filter(|before| before.stamp == stamp && before.state.at == state.at) {
        return before.clone();
    }
    match root.open_found(&found).map(|file| reading.digest_file(&file)) {
        Ok(Ok((digest, executable))) => (state.digest, state.executable) = (digest, executable),
        Err(Unreadable::NotRegular(_) | Unreadable::ForeignHardLink) => state.kind = EntryKind::Other,
        Ok(Err(_)) | Err(_) => state.kind = EntryKind::Unreadable,
    }
    // The stamp was taken before the bytes were read, so that a write meanwhile shows as touched, never as unchanged.
    Seen { state, stamp }
}

/// How much may still be read.
struct Reading {
    left: u64,
    /// Says that a file had more.
    is_cut: bool,
}

impl Reading {
    /// Returns the digest of a file, and whether it may be executed.
    fn digest_file(&mut self, file: &File) -> std::io::Result<(Digest, bool)> {
        let found = file.metadata()?;
        let digest = match digest_within(file, &mut self.left)? {
            Some(digest) => digest,
            None => {
                self.is_cut = true;
                digest_of(format!("a file of {} bytes", found.len()).as_bytes())
            }
        };
        Ok((digest, found.mode() & 0o111 != 0))
    }
}

/// Writes a path as text without loss: bytes that are not UTF-8 as `\xNN`.
pub(crate) fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        name.push_str(&chunk.valid().replace("\\x", "\\x5cx"));
        for byte in chunk.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

/// Returns the path that [`name_of`] wrote.
pub(crate) fn bytes_of_name(name: &str) -> OsString {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let digits = rest.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[at + 4..];
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = &rest[at + 2..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes)
}

impl Root {
    /// Opens the entry of a path that leads through no link.
    fn find_without_links(&self, path: &Path) -> Result<File, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, resolve)
    }

    /// Opens a folder for reading, through links that stay in the workspace.
    fn open_folder(&self, path: &Path) -> Result<File, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.resolve(path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }

    /// Returns where in the workspace something that was found lies.
    fn place_of(&self, found: &File) -> Option<String> {
        let link = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
        let (own, place) = (link(self.as_raw_fd())?, link(found.as_raw_fd())?);
        Some(name_of(place.strip_prefix(own).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hole_6_a_name_is_kept_byte_for_byte() {
        for bytes in
            [&b"tests/a.sh"[..], b"a\xffb", b"a\\xffb", b"\\x5cx", b"\\x", b"\xf0\x9f", "\u{e4}".as_bytes()]
        {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(bytes_of_name(&name_of(path)).as_bytes(), bytes, "{path:?}");
        }
        assert_eq!(name_of(Path::new(OsStr::from_bytes(b"a\xffb"))), "a\\xffb");
    }

    #[test]
    fn a_walk_enters_only_folders_below_which_a_pattern_can_match() {
        let below =
            |glob: &str, folder: &str| Pattern::read(glob).unwrap().may_match_below(Path::new(folder));
        assert!(below("tests/**", "tests") && below("tests/**", "tests/deep/er"));
        assert!(
            !below("tests/**", "src") && !below("conftest.py", "src") && !below("conftest.py", "conftest.py")
        );
        assert!(below("*/conftest.py", "src") && !below("*/conftest.py", "src/deep"));
        assert!(below("**/conftest.py", "src/deep") && below("{a,b/c}/x", "b/c"));
        assert!(!below("**", ".git") && below("**", "a/.git") && below(".git/hooks/*", ".git"));
        assert!(!below("**", "a/__pycache__") && below("**/__pycache__/*", "a/__pycache__"));
    }
}
