//! Finds what was touched in a copy since it was made, and brings that back to the copy's first state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::survey::WORK;
use super::transfer::Transfer;
use super::{Kind, Piece, Replica, ReplicaError, io_error};
use crate::beneath::open_anywhere;
use crate::git::git_head;
use crate::removal::remove_tree;
use crate::stamp::Stamp;
use crate::walk::ENTRIES_MAX;

/// How many differences are listed.
const LISTED_MAX: usize = 10_000;
/// The bits of a mode that say what an entry is.
const KIND_BITS: u32 = 0o170_000;
const KIND_FOLDER: u32 = 0o040_000;

/// The differences between a copy and its first state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Differences {
    /// Files, relative to the workspace where they lie in it; git's own are left out, but for a HEAD that moved.
    pub paths: Vec<String>,
    /// Says that there are more than are listed.
    pub is_cut: bool,
    /// Says that the original changed since it was copied, so that the copy is not of one state any more.
    pub has_original_changed: bool,
}

/// The entries in the tree of the copy.
#[derive(Default)]
struct Present {
    entries: BTreeMap<PathBuf, Stamp>,
    /// Folders that had to be made readable.
    opened: Vec<PathBuf>,
    is_cut: bool,
}

impl Replica {
    /// Brings the copy back to its first state and tells what differed; nothing may run in it.
    ///
    /// # Errors
    ///
    /// When the file system refuses; the copy is of no use then.
    pub fn restore(&mut self) -> Result<Differences, ReplicaError> {
        let present = self.list_present();
        let touched: BTreeSet<PathBuf> = self
            .pieces
            .iter()
            .filter(|(path, piece)| present.entries.get(*path) != Some(&piece.made))
            .map(|(path, _)| path.clone())
            .collect();
        let mut differences = self.differences(&present, &touched);
        if present.is_cut {
            // Rather all of it anew than a search for what is surplus.
            remove_tree(&self.tree()).map_err(io_error("remove the copy"))?;
            self.create_pieces()?;
        } else {
            let restored = self.restore_entries(&present, touched, &mut differences);
            restored.map_err(io_error("restore the copy"))?;
        }
        Ok(differences)
    }

    /// Lists what is there, links as links; the tree is nobody else's, so paths lead where they say.
    fn list_present(&self) -> Present {
        let tree = self.tree();
        let most = self.pieces.len() + ENTRIES_MAX;
        let mut present = Present::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let place = tree.join(&folder);
            let Ok(found) = place.symlink_metadata() else { continue };
            present.entries.insert(folder.clone(), Stamp::of(&found));
            let entries = std::fs::read_dir(&place).or_else(|_| {
                present.opened.push(folder.clone());
                std::fs::set_permissions(&place, Permissions::from_mode(0o700))?;
                std::fs::read_dir(&place)
            });
            for entry in entries.into_iter().flatten().flatten() {
                let path = folder.join(entry.file_name());
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(path),
                    Ok(found) => drop(present.entries.insert(path, Stamp::of(&found))),
                    Err(_) => {}
                }
            }
            if present.entries.len() > most {
                present.is_cut = true;
                break;
            }
        }
        present
    }

    fn differences(&self, present: &Present, touched: &BTreeSet<PathBuf>) -> Differences {
        let mut differences = Differences { is_cut: present.is_cut, ..Differences::default() };
        if git_head(&self.workspace) != self.head {
            differences.paths.push(".git/HEAD".to_owned());
        }
        let is_told =
            |path: &Path| path.starts_with(WORK) && !path.components().any(|part| part.as_os_str() == ".git");
        let is_extra = |path: &PathBuf, stamp: &Stamp| {
            // A folder with something in it shows by that.
            let is_empty = || {
                let next = present
                    .entries
                    .range::<PathBuf, _>((std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded));
                !next.into_iter().next().is_some_and(|(next, _)| next.starts_with(path))
            };
            !self.pieces.contains_key(path) && (stamp.mode & KIND_BITS != KIND_FOLDER || is_empty())
        };
        let extra =
            present.entries.iter().filter(|(path, stamp)| is_extra(path, stamp)).map(|(path, _)| path);
        let changed = touched.iter().filter(|path| {
            self.pieces.get(*path).is_some_and(|piece| self.differs(path, piece, present.entries.get(*path)))
        });
        let paths: BTreeSet<&PathBuf> = extra.chain(changed).filter(|path| is_told(path)).collect();
        differences.is_cut |= paths.len() > LISTED_MAX;
        differences.paths.extend(paths.into_iter().take(LISTED_MAX).map(|path| self.shown_path(path)));
        differences
    }

    /// Returns how a person names a path of the copy.
    fn shown_path(&self, path: &Path) -> String {
        let place = self.tree().join(path);
        let told = place.strip_prefix(&self.workspace).or_else(|_| path.strip_prefix(WORK)).unwrap_or(path);
        told.to_string_lossy().into_owned()
    }

    /// Says whether an entry that was touched is another one than it was, its times aside.
    fn differs(&self, path: &Path, piece: &Piece, present: Option<&Stamp>) -> bool {
        let Some(present) = present else { return true };
        let place = self.tree().join(path);
        if present.mode != piece.made.mode {
            return true;
        }
        match &piece.kind {
            Kind::Folder => false,
            Kind::Link(target) => std::fs::read_link(place).ok().as_ref() != Some(target),
            Kind::Written(bytes) => std::fs::read(place).ok().as_ref() != Some(bytes),
            Kind::Copied { root, path, .. } => {
                let transfer = Transfer { roots: &self.roots, tree: &self.tree() };
                let same = present.bytes == piece.made.bytes
                    && transfer.open(*root, path).is_ok_and(|original| {
                        open_anywhere(&place).is_ok_and(|copy| same_content(original, copy).unwrap_or(false))
                    });
                !same
            }
        }
    }

    fn restore_entries(
        &mut self,
        present: &Present,
        touched: BTreeSet<PathBuf>,
        differences: &mut Differences,
    ) -> io::Result<()> {
        let tree = self.tree();
        let mut dirty: BTreeSet<PathBuf> = present.opened.iter().cloned().collect();
        let mut removed: Option<&Path> = None;
        for path in present.entries.keys().filter(|path| !self.pieces.contains_key(*path)) {
            if removed.is_none_or(|removed| !path.starts_with(removed)) {
                open_parent(&tree, path, &mut dirty)?;
                remove(&tree.join(path))?;
                removed = Some(path);
            }
        }
        let mut gone = Vec::new();
        for path in &touched {
            let Some(piece) = self.pieces.get_mut(path) else { continue };
            let present = tree.join(path).symlink_metadata().ok();
            let is_folder = matches!(piece.kind, Kind::Folder);
            if !(is_folder && present.as_ref().is_some_and(|found| found.is_dir())) {
                open_parent(&tree, path, &mut dirty)?;
                if present.is_some() {
                    remove(&tree.join(path))?;
                }
                let before = source_stamp(piece);
                match (Transfer { roots: &self.roots, tree: &tree }).make(path, piece, self.shares) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(path.clone()),
                    Err(error) => return Err(error),
                }
                differences.has_original_changed |= before != source_stamp(piece);
            }
        }
        differences.has_original_changed |= !gone.is_empty();
        for path in gone {
            self.pieces.remove(&path);
        }
        dirty.extend(touched);
        self.settle(|path| dirty.contains(path))
    }
}

/// Returns what the original of a piece was when it was copied.
fn source_stamp(piece: &Piece) -> Option<Stamp> {
    match &piece.kind {
        Kind::Copied { source, .. } => Some(*source),
        Kind::Folder | Kind::Written(_) | Kind::Link(_) => None,
    }
}

/// Notes that the folder of an entry changes, and lets it be written.
fn open_parent(tree: &Path, path: &Path, dirty: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if dirty.insert(parent.to_owned()) {
        std::fs::set_permissions(tree.join(parent), Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn remove(place: &Path) -> io::Result<()> {
    if place.symlink_metadata()?.is_dir() { remove_tree(place) } else { std::fs::remove_file(place) }
}

fn same_content(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut ours, mut theirs) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let count = one.read(&mut ours)?;
        if count == 0 {
            return Ok(other.read(&mut theirs[..1])? == 0);
        }
        match other.read_exact(&mut theirs[..count]) {
            Ok(()) if ours[..count] == theirs[..count] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
