//! The state of a workspace's files, told from any other without reading them: by it a guard that held is not tried again.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use planctl_glob::Glob;
use planctl_harness::digest_of;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};

/// The file that says what git does not track.
const RULES: &str = ".gitignore";

/// Returns what tells one state of a workspace from another, from the names, kinds, sizes and times of its files: those that no
/// `.gitignore` of the repository names, or, of these, those that match. Returns nothing where some can't be looked at: then no two
/// states are the same.
pub(super) fn state_of_files(workspace: &Path, wanted: &[Glob]) -> Option<String> {
    let rules = rules_around(workspace);
    let mut walk = Walk { wanted, path: workspace.to_owned(), workspace, rules, listing: Vec::new() };
    walk.list(CWD, workspace)?;
    Some(digest_of(&walk.listing).as_str().to_owned())
}

/// Returns the rules of the folders between the root of the repository and a workspace within it, the outermost first.
fn rules_around(workspace: &Path) -> Vec<Gitignore> {
    let Some(root) = workspace.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Vec::new();
    };
    let around = workspace.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let mut rules: Vec<Gitignore> =
        around.filter(|folder| folder.join(RULES).is_file()).map(rules_in).collect();
    rules.reverse();
    rules
}

/// Reads the rules of a folder. A file that can't be read leaves nothing out.
fn rules_in(folder: &Path) -> Gitignore {
    let mut rules = GitignoreBuilder::new(folder);
    drop(rules.add(folder.join(RULES)));
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

/// A walk through a workspace, each folder opened from the one around it.
struct Walk<'a> {
    wanted: &'a [Glob],
    workspace: &'a Path,
    /// Where the walk is.
    path: PathBuf,
    /// The rules that hold there, the nearest last.
    rules: Vec<Gitignore>,
    listing: Vec<u8>,
}

impl Walk<'_> {
    /// Lists the files below a folder, in the order of their names; returns nothing where it can't look at some.
    fn list(&mut self, around: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Option<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(around, name, flags, Mode::empty()).ok()?;
        let mut entries: Vec<(CString, FileType)> = Vec::new();
        for entry in Dir::read_from(&folder).ok()? {
            let entry = entry.ok()?;
            if ![&b"."[..], b"..", b".git"].contains(&entry.file_name().to_bytes()) {
                entries.push((entry.file_name().to_owned(), entry.file_type()));
            }
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let rules = self.rules.len();
        if entries.iter().any(|(name, _)| name.to_bytes() == RULES.as_bytes()) {
            self.rules.push(rules_in(&self.path));
        }
        for (name, kind) in &entries {
            self.path.push(OsStr::from_bytes(name.to_bytes()));
            self.look(folder.as_fd(), name, *kind)?;
            self.path.pop();
        }
        self.rules.truncate(rules);
        Some(())
    }

    fn look(&mut self, folder: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Option<()> {
        let stat = || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        // Some file systems tell no kinds when they list.
        let kind = if kind == FileType::Unknown { FileType::from_raw_mode(stat()?.st_mode) } else { kind };
        if self.leaves_out(kind.is_dir()) {
            return Some(());
        }
        if kind.is_dir() {
            return self.list(folder, name);
        }
        let path = self.path.strip_prefix(self.workspace).ok()?;
        if !self.wanted.is_empty() && !self.wanted.iter().any(|glob| glob.matches(&*path.to_string_lossy())) {
            return Some(());
        }
        self.listing.extend_from_slice(path.as_os_str().as_bytes());
        self.listing.push(0);
        for number in record_of(&stat()?) {
            self.listing.extend_from_slice(&number.to_le_bytes());
        }
        Some(())
    }

    /// Says whether git tracks nothing by this name; the nearest rules decide.
    fn leaves_out(&self, is_folder: bool) -> bool {
        let says = self.rules.iter().rev().map(|rules| rules.matched(&self.path, is_folder));
        says.into_iter().find(|says| !says.is_none()).is_some_and(|says| says.is_ignore())
    }
}

/// Returns the kernel's record of a file. The time of the last change can't be set back without the right to set the clock.
fn record_of(found: &Stat) -> [u64; 7] {
    [
        found.st_ino,
        found.st_mode.into(),
        found.st_size.cast_unsigned(),
        found.st_mtime.cast_unsigned(),
        found.st_mtime_nsec,
        found.st_ctime.cast_unsigned(),
        found.st_ctime_nsec,
    ]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A repository with files, of which git ignores one.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            let place = Place(tempfile::tempdir().unwrap());
            for file in ["src/a.rs", "src/b.rs", "docs/c.md", "built/d.o", ".git/index"] {
                place.write(file, "one");
            }
            place.write(".gitignore", "built/\n");
            symlink("a.rs", place.path("src/link")).unwrap();
            place
        }

        fn path(&self, file: &str) -> PathBuf {
            self.0.path().join(file)
        }

        fn write(&self, file: &str, text: &str) {
            fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
            fs::write(self.path(file), text).unwrap();
        }

        fn state(&self) -> String {
            state_of_files(self.0.path(), &[]).unwrap()
        }

        fn sources(&self) -> String {
            state_of_files(self.0.path(), &[Glob::parse("src/**").unwrap()]).unwrap()
        }
    }

    #[test]
    fn a_change_of_as_many_bytes_within_the_same_second_is_seen() {
        let place = Place::new();
        let times = || {
            let found = fs::metadata(place.path("src/a.rs")).unwrap();
            (found.mtime(), found.mtime_nsec())
        };
        // One in which the kernel's clock moves while the second stays.
        let (before, after) = loop {
            place.write("src/a.rs", "one");
            let (first, before) = (times(), place.state());
            place.write("src/a.rs", "two");
            while times() == first {
                place.write("src/a.rs", "two");
            }
            if times().0 == first.0 {
                break (before, place.state());
            }
        };
        assert_ne!(before, after);
    }

    #[test]
    fn a_change_whose_time_was_set_back_is_seen() {
        let place = Place::new();
        let file = place.path("src/a.rs");
        let (before, modified) = (place.state(), fs::metadata(&file).unwrap().modified().unwrap());
        place.write("src/a.rs", "two");
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), modified);
        assert_ne!(place.state(), before);
    }

    #[test]
    fn each_other_change_is_seen_and_nothing_else() {
        type Change = fn(&Place);
        let changes: [(&str, Change); 9] = [
            ("another mode", |place| {
                fs::set_permissions(place.path("src/a.rs"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("a file more", |place| place.write("src/deep/er/e.rs", "")),
            ("a hidden file more", |place| place.write("src/.hidden", "")),
            ("a file less", |place| fs::remove_file(place.path("src/b.rs")).unwrap()),
            ("another name", |place| fs::rename(place.path("src/b.rs"), place.path("src/e.rs")).unwrap()),
            ("another file of this name", |place| {
                place.write("built/new", "one");
                fs::rename(place.path("built/new"), place.path("src/a.rs")).unwrap();
            }),
            ("another target of a link", |place| {
                fs::remove_file(place.path("src/link")).unwrap();
                symlink("b.rs", place.path("src/link")).unwrap();
            }),
            ("a folder in place of a file", |place| {
                fs::remove_file(place.path("src/b.rs")).unwrap();
                place.write("src/b.rs/e.rs", "");
            }),
            ("what git ignores no more", |place| fs::remove_file(place.path(".gitignore")).unwrap()),
        ];
        for (what, change) in changes {
            let place = Place::new();
            let before = place.state();
            assert_eq!(place.state(), before, "{what}");
            change(&place);
            assert_ne!(place.state(), before, "{what}");
        }
    }

    #[test]
    fn what_git_ignores_and_gits_own_files_do_not_count_nor_do_those_that_do_not_match() {
        let place = Place::new();
        let (before, sources) = (place.state(), place.sources());
        place.write("built/d.o", "more");
        place.write(".git/index", "more");
        assert_eq!(place.state(), before);
        place.write("docs/c.md", "more");
        assert_eq!(place.sources(), sources);
        assert_ne!(place.state(), before);
        place.write("src/a.rs", "more");
        assert_ne!(place.sources(), sources);
    }

    #[test]
    fn the_nearest_rules_decide_and_those_around_the_workspace_count_up_to_the_repositorys_root() {
        let place = Place::new();
        place.write(".gitignore", "*.log\nbuilt/\n");
        place.write("src/.gitignore", "!kept.log\n/only-here\n");
        let counts = |file: &str| {
            let workspace = place.path("src");
            let (all, within) = (place.state(), state_of_files(&workspace, &[]));
            place.write(file, "one");
            let seen = (place.state() != all, state_of_files(&workspace, &[]) != within);
            assert!(!file.starts_with("src/") || seen.0 == seen.1, "{file}: the same from within");
            seen.0
        };
        for file in ["src/deep/kept.log", "src/deep/only-here", "src/.ignore"] {
            assert!(counts(file), "{file}");
        }
        for file in ["a.log", "src/deep/a.log", "src/only-here", "src/built/a", "built/.gitignore"] {
            assert!(!counts(file), "{file}");
        }
        // Rules of other programs and of this machine hide nothing.
        place.write("src/.ignore", "*\n");
        place.write(".git/info/exclude", "*\n");
        assert!(counts("src/new.rs"));
    }

    #[test]
    fn a_workspace_that_is_gone_has_no_state() {
        let place = Place::new();
        assert_eq!(state_of_files(&place.path("none"), &[]), None);
    }
}
