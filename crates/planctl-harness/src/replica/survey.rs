//! Surveys the entries of a copy before anything is copied, and turns links back to the original around.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::{Kind, Piece, ReplicaError, ReplicaLimits, Stop, io_error};
use crate::beneath::{Root, open_anywhere, read_capped};
use crate::stamp::Stamp;

/// The folder of the copy that is the checkout.
pub(super) const WORK: &str = "work";
/// Files of git that name other places are smaller than this.
const GIT_TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// The most bytes of a file that git reaches through a link.
const GIT_LINKED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often an object store may borrow from another one.
const ALTERNATES_MAX: usize = 16;
/// Nothing that is tried may push: a remote is no part of the copy.
const NEVER_PUSH: &str = "\n[url \"planctl-trial-never-pushes:\"]\n\tpushInsteadOf = \"\"\n";

pub(super) struct Survey<'a> {
    checkout: &'a Path,
    tree: &'a Path,
    limits: ReplicaLimits,
    is_stopped: &'a Stop,
    roots: Vec<PathBuf>,
    pub pieces: BTreeMap<PathBuf, Piece>,
    pub weights: Weights,
    pub bytes: u64,
    git_folders: usize,
    alternates: usize,
    /// Folders outside that were entered through links of a git folder.
    entered: BTreeSet<PathBuf>,
}

/// The sizes of the entries at the top of the checkout.
#[derive(Default)]
pub(super) struct Weights(BTreeMap<String, (u64, usize)>);

impl Weights {
    pub(super) fn largest_bytes(&self) -> (String, u64) {
        let largest = self.0.iter().max_by_key(|(_, weight)| weight.0);
        largest.map_or_else(Default::default, |(name, weight)| (name.clone(), weight.0))
    }

    fn most_entries(&self) -> String {
        self.0.iter().max_by_key(|(_, weight)| weight.1).map_or_else(String::new, |(name, _)| name.clone())
    }
}

/// A folder to look through.
struct Visit {
    root: usize,
    /// Beneath the root.
    path: PathBuf,
    /// In the copy.
    to: PathBuf,
    /// Where the git folder begins that this one is or lies in: beneath the root.
    git: Option<PathBuf>,
    /// The entry at the top that it counts for.
    top: Option<String>,
}

impl<'a> Survey<'a> {
    pub(super) fn take(
        checkout: &'a Path,
        tree: &'a Path,
        limits: ReplicaLimits,
        is_stopped: &'a Stop,
    ) -> Result<Survey<'a>, ReplicaError> {
        let mut survey = Survey {
            checkout,
            tree,
            limits,
            is_stopped,
            roots: Vec::new(),
            pieces: BTreeMap::new(),
            weights: Weights::default(),
            bytes: 0,
            git_folders: 0,
            alternates: 0,
            entered: BTreeSet::new(),
        };
        survey.folder(Path::new(""), 0o700, (0, 0));
        survey.whole(checkout, Path::new(WORK), None, &[])?;
        Ok(survey)
    }

    pub(super) fn open_roots(&self) -> Result<Vec<Root>, ReplicaError> {
        let open = |path: &PathBuf| Root::open(path).map_err(io_error(format!("open {}", path.display())));
        self.roots.iter().map(open).collect()
    }

    /// Looks through a folder of its own; `git` says for which entry at the top it counts, as a git folder.
    fn whole(
        &mut self,
        folder: &Path,
        to: &Path,
        git: Option<&str>,
        skipped: &[&str],
    ) -> Result<(), ReplicaError> {
        let found = folder.metadata().map_err(io_error(format!("look at {}", folder.display())))?;
        self.folder(to, found.mode() & 0o777, modified(&found));
        self.roots.push(folder.to_owned());
        let root = self.roots.len() - 1;
        let mut visits = vec![Visit {
            root,
            path: PathBuf::new(),
            to: to.to_owned(),
            git: git.map(|_| PathBuf::new()),
            top: git.map(ToOwned::to_owned),
        }];
        while let Some(visit) = visits.pop() {
            let place = folder.join(&visit.path);
            let Ok(entries) = std::fs::read_dir(&place) else { continue };
            for entry in entries {
                let Ok(entry) = entry else { continue };
                if visit.path == Path::new("") && skipped.iter().any(|name| entry.file_name() == *name) {
                    continue;
                }
                self.add_entry(&visit, &entry.path(), &mut visits)?;
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        visit: &Visit,
        place: &Path,
        visits: &mut Vec<Visit>,
    ) -> Result<(), ReplicaError> {
        if (self.is_stopped)() {
            return Err(ReplicaError::Interrupted);
        }
        let (Some(name), Ok(found)) = (place.file_name(), place.symlink_metadata()) else { return Ok(()) };
        let (path, to) = (visit.path.join(name), visit.to.join(name));
        let top = visit.top.clone().unwrap_or_else(|| name.to_string_lossy().into_owned());
        let kind = found.file_type();
        self.count_entry(&top, if kind.is_file() { found.len() } else { 0 })?;
        if kind.is_dir() {
            let is_git = name == ".git" && place.join("HEAD").symlink_metadata().is_ok();
            let git = if is_git { Some(path.clone()) } else { visit.git.clone() };
            if self.is_foreign_worktree(git.as_deref(), &path, place) {
                return Ok(());
            }
            self.folder(&to, found.mode() & 0o777, modified(&found));
            visits.push(Visit { root: visit.root, path, to, git, top: Some(top) });
        } else if kind.is_file() {
            let within = visit.git.as_ref().and_then(|git| path.strip_prefix(git).ok()).map(Path::to_owned);
            match within {
                Some(within) => self.git_file(&within, visit.root, path, &to, place, &found)?,
                None if name == ".git" => self.add_git_pointer(visit.root, path, &to, place, &found)?,
                None => self.add_copied(visit.root, path, &to, &found),
            }
        } else if kind.is_symlink() {
            self.link(visit, &path, &to, place, &found, &top)?;
        }
        Ok(())
    }

    fn count_entry(&mut self, top: &str, bytes: u64) -> Result<(), ReplicaError> {
        let weight = self.weights.0.entry(top.to_owned()).or_default();
        *weight = (weight.0 + bytes, weight.1 + 1);
        self.bytes += bytes;
        if self.pieces.len() >= self.limits.entries_max {
            let limit = self.limits.entries_max;
            return Err(ReplicaError::TooMany { limit, largest: self.weights.most_entries() });
        }
        Ok(())
    }

    fn folder(&mut self, to: &Path, mode: u32, modified: (i64, i64)) {
        self.add_piece(to, Kind::Folder, mode, modified);
    }

    fn add_copied(&mut self, root: usize, path: PathBuf, to: &Path, found: &Metadata) {
        let kind = Kind::Copied { root, path, source: Stamp::of(found) };
        self.add_piece(to, kind, found.mode() & 0o777, modified(found));
    }

    fn add_written(&mut self, to: &Path, text: impl Into<Vec<u8>>, found: &Metadata) {
        self.add_piece(to, Kind::Written(text.into()), found.mode() & 0o777, modified(found));
    }

    fn add_piece(&mut self, to: &Path, kind: Kind, mode: u32, modified: (i64, i64)) {
        self.pieces.entry(to.to_owned()).or_insert(Piece { kind, mode, modified, made: Stamp::default() });
    }

    /// Takes a file of a git folder; those that name places get the copy's.
    fn git_file(
        &mut self,
        within: &Path,
        root: usize,
        path: PathBuf,
        to: &Path,
        place: &Path,
        found: &Metadata,
    ) -> Result<(), ReplicaError> {
        let name = within.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if within == Path::new("objects/info/alternates") {
            return self.add_alternates(place, to);
        }
        if !matches!(name, "config" | "config.worktree" | "gitdir" | "commondir") {
            self.add_copied(root, path, to, found);
            return Ok(());
        }
        let Some(text) = read_text(place) else {
            self.add_copied(root, path, to, found);
            return Ok(());
        };
        let mut text = replace_paths(&text, self.checkout, &self.tree.join(WORK));
        if name == "config" {
            text.push_str(NEVER_PUSH);
        }
        self.add_written(to, text, found);
        Ok(())
    }

    /// Says whether a folder of git keeps the records of a worktree outside the checkout: a change to it in the copy would
    /// change the original.
    fn is_foreign_worktree(&self, git: Option<&Path>, path: &Path, place: &Path) -> bool {
        let Some(within) = git.and_then(|git| path.strip_prefix(git).ok()) else { return false };
        if within.parent() != Some(Path::new("worktrees")) {
            return false;
        }
        !read_text(&place.join("gitdir"))
            .is_some_and(|text| Path::new(text.trim()).starts_with(self.checkout))
    }

    /// Takes the objects that a repository borrows, so that nobody has to touch the lender's.
    fn add_alternates(&mut self, alternates: &Path, to: &Path) -> Result<(), ReplicaError> {
        let (Some(text), Some(info)) = (read_text(alternates), alternates.parent()) else { return Ok(()) };
        let Some(objects) = to.parent().and_then(Path::parent).map(Path::to_owned) else { return Ok(()) };
        let store = info.parent().unwrap_or(info);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.alternates += 1;
            let Ok(lender) = store.join(line).canonicalize() else { continue };
            if self.alternates > ALTERNATES_MAX || !lender.is_dir() {
                continue;
            }
            // Further lenders are named relative to the lender.
            let further = lender.join("info/alternates");
            self.whole(&lender, &objects, Some(".git"), &["info"])?;
            if further.is_file() {
                self.add_alternates(&further, &objects.join("info/alternates"))?;
            }
        }
        Ok(())
    }

    /// Takes a `.git` file: where it points out of the checkout, what it points to becomes part of the copy.
    fn add_git_pointer(
        &mut self,
        root: usize,
        path: PathBuf,
        to: &Path,
        place: &Path,
        found: &Metadata,
    ) -> Result<(), ReplicaError> {
        let named =
            read_text(place).and_then(|text| Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim())));
        let target = named.as_ref().and_then(|named| place.parent()?.join(named).canonicalize().ok());
        match (named, target) {
            (Some(named), Some(target)) if target.starts_with(self.checkout) => {
                if named.is_absolute() {
                    let inside = target.strip_prefix(self.checkout).unwrap_or(Path::new(""));
                    self.add_written(to, pointer_text(&self.tree.join(WORK).join(inside)), found);
                } else {
                    self.add_copied(root, path, to, found);
                }
                Ok(())
            }
            (Some(_), Some(target)) if target.join("HEAD").symlink_metadata().is_ok() => {
                self.add_git_folder(&target, to, found)
            }
            _ => {
                self.add_copied(root, path, to, found);
                Ok(())
            }
        }
    }

    /// Makes a copy of a git folder that lies elsewhere, for the one worktree that is copied.
    fn add_git_folder(&mut self, git: &Path, to: &Path, found: &Metadata) -> Result<(), ReplicaError> {
        let base = PathBuf::from(format!("git-{}", self.git_folders));
        self.git_folders += 1;
        let common = read_text(&git.join("commondir"))
            .and_then(|text| git.join(text.trim()).canonicalize().ok())
            .filter(|common| common != git);
        let pointed = match &common {
            Some(common) => {
                // A linked worktree: HEAD, index and more are its own, objects and refs are shared.
                let name = Path::new("worktrees").join(git.file_name().unwrap_or_default());
                self.folder(&base.join("worktrees"), 0o755, modified(found));
                let own = base.join(&name);
                let dot_git = self.tree.join(to);
                self.add_written(&own.join("commondir"), "../..\n", found);
                self.add_written(&own.join("gitdir"), format!("{}\n", dot_git.display()), found);
                self.whole(common, &base, Some(".git"), &["worktrees", "modules"])?;
                self.whole(git, &own, Some(".git"), &[])?;
                own
            }
            None => {
                // A submodule, or a git folder kept apart: its configuration names its worktree.
                let worktree = self.tree.join(to.parent().unwrap_or(Path::new("")));
                let quoted = worktree.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
                let text = read_text(&git.join("config")).unwrap_or_default();
                let text = format!("{text}\n[core]\n\tworktree = \"{quoted}\"\n{NEVER_PUSH}");
                self.add_written(&base.join("config"), text, found);
                self.whole(git, &base, Some(".git"), &["worktrees"])?;
                base
            }
        };
        self.add_written(to, pointer_text(&self.tree.join(pointed)), found);
        Ok(())
    }

    fn link(
        &mut self,
        visit: &Visit,
        path: &Path,
        to: &Path,
        place: &Path,
        found: &Metadata,
        top: &str,
    ) -> Result<(), ReplicaError> {
        let Ok(target) = std::fs::read_link(place) else { return Ok(()) };
        let real = place.canonicalize().ok();
        if let Some(real) = real.as_ref().filter(|real| !real.starts_with(self.checkout)) {
            if place.file_name().is_some_and(|name| name == ".git") && real.join("HEAD").is_file() {
                return self.add_git_folder(real, to, found);
            }
            // Git would write through a link in its own folder.
            if visit.git.is_some() && real.is_dir() && self.entered.insert(real.clone()) {
                return self.whole(real, to, Some(top), &[]);
            }
            if visit.git.is_some()
                && let Some(text) =
                    open_anywhere(real).ok().and_then(|file| read_capped(file, GIT_LINKED_BYTES_MAX).ok())
            {
                self.add_written(to, text, found);
                return Ok(());
            }
        }
        let target =
            self.rewritten_target(&self.roots[visit.root].join(path), &target, real.as_deref(), visit.root);
        self.add_piece(to, Kind::Link(target), 0o777, modified(found));
        Ok(())
    }

    /// Returns the target of a link as the copy has it: a link into the checkout leads into the copy, and a link out of it
    /// leads to the same place as before.
    fn rewritten_target(&self, place: &Path, target: &Path, real: Option<&Path>, root: usize) -> PathBuf {
        let parent = place.parent().unwrap_or(place);
        let lexical = normalised(&parent.join(target));
        if target.is_relative() && stays_beneath(&self.roots[root], parent, target) {
            return target.to_owned();
        }
        let inside = real
            .and_then(|real| real.strip_prefix(self.checkout).ok())
            .or_else(|| lexical.strip_prefix(self.checkout).ok());
        match inside {
            Some(inside) => self.tree.join(WORK).join(inside),
            None if target.is_absolute() => target.to_owned(),
            None => lexical,
        }
    }
}

/// Replaces each mention of a path by another one; a longer name that only begins alike stays.
pub(super) fn replace_paths(text: &str, from: &Path, to: &Path) -> String {
    let (Some(from), Some(to)) = (from.to_str().filter(|from| from.len() > 1), to.to_str()) else {
        return text.to_owned();
    };
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let goes_on = |character: Option<char>| {
            character.is_some_and(|next| next.is_alphanumeric() || matches!(next, '_' | '-' | '.'))
        };
        let is_whole = !goes_on(after.chars().next()) && !goes_on(before.chars().next_back());
        translated.push_str(before);
        translated.push_str(if is_whole { to } else { from });
        rest = after;
    }
    translated.push_str(rest);
    translated
}

fn pointer_text(git: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    [b"gitdir: ", git.as_os_str().as_bytes(), b"\n"].concat()
}

fn read_text(path: &Path) -> Option<String> {
    let bytes = read_capped(open_anywhere(path).ok()?, GIT_TEXT_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

fn modified(found: &Metadata) -> (i64, i64) {
    (found.mtime(), found.mtime_nsec())
}

/// Removes `.` and `..` without asking the file system.
fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// Says whether a relative target never leaves the root on its way, so that it means the same in the copy.
fn stays_beneath(root: &Path, parent: &Path, target: &Path) -> bool {
    let Ok(beneath) = parent.strip_prefix(root) else { return false };
    let mut depth = beneath.components().count();
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir | Component::Prefix(_) | Component::RootDir => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_the_copys_path_where_it_names_the_original_and_nowhere_else() {
        let text = "worktree = /w/shop\nother = /w/shop2 /a/w/shopping\nurl = /w/shop/x";
        assert_eq!(
            replace_paths(text, Path::new("/w/shop"), Path::new("/c")),
            "worktree = /c\nother = /w/shop2 /a/w/shopping\nurl = /c/x"
        );
        assert_eq!(replace_paths("/ /x", Path::new("/"), Path::new("/c")), "/ /x");
    }

    #[test]
    fn a_link_that_leaves_on_its_way_does_not_stay() {
        let stays = |target| stays_beneath(Path::new("/w"), Path::new("/w/a"), Path::new(target));
        assert!(stays("b") && stays("../b") && stays("./../a/./b"));
        assert!(!stays("../../w/b") && !stays("../.."));
    }

    #[test]
    fn io_errors_keep_their_words() {
        let error = io_error("copy x")(std::io::Error::from(std::io::ErrorKind::NotFound));
        assert!(error.to_string().starts_with("copy x: "), "{error}");
    }
}
