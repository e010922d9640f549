//! Makes one entry of a copy: shares the file's content where the file system can, else copies it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps};

use super::{Kind, Piece};
use crate::beneath::{LastLink, Root, Unreadable};
use crate::stamp::Stamp;

pub(super) struct Transfer<'a> {
    pub roots: &'a [Root],
    pub tree: &'a Path,
}

impl Transfer<'_> {
    /// Makes an entry where nothing is; a folder gets its mode and time once it is full.
    ///
    /// Not found means that the original is no readable regular file any more.
    pub(super) fn make(&self, path: &Path, piece: &mut Piece, shares: bool) -> io::Result<()> {
        let place = self.tree.join(path);
        match &mut piece.kind {
            Kind::Folder => return std::fs::DirBuilder::new().mode(0o700).recursive(true).create(place),
            Kind::Copied { root, path, source } => {
                let original = self.open(*root, path)?;
                let found = original.metadata()?;
                let mut copy = create(&place)?;
                if !(shares && rustix::fs::ioctl_ficlone(&copy, &original).is_ok()) {
                    // Bytes appended meanwhile are not of this state.
                    io::copy(&mut (&original).take(found.len()), &mut copy)?;
                }
                *source = Stamp::of(&found);
                piece.mode = found.mode() & 0o777;
                piece.modified = (found.mtime(), found.mtime_nsec());
            }
            Kind::Written(bytes) => create(&place)?.write_all(bytes)?,
            Kind::Link(target) => std::os::unix::fs::symlink(target, &place)?,
        }
        attributes(&place, piece)
    }

    /// Opens a file of the original, which never leads out of it and never hangs.
    pub(super) fn open(&self, root: usize, path: &Path) -> io::Result<File> {
        let root = self.roots.get(root).ok_or(io::ErrorKind::NotFound)?;
        match root.open_file(path, LastLink::Refuse) {
            Ok(file) => Ok(file),
            Err(Unreadable::Refused(error)) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
            Err(error) => Err(io::Error::new(io::ErrorKind::NotFound, error)),
        }
    }

    /// Tries whether the file system can share the content of a file between the original and the copy.
    pub(super) fn supports_reflink(&self, pieces: &BTreeMap<PathBuf, Piece>, folder: &Path) -> bool {
        let of_some_size = pieces.values().find_map(|piece| match &piece.kind {
            Kind::Copied { root, path, source } if source.bytes > 0 => self.open(*root, path).ok(),
            Kind::Copied { .. } | Kind::Folder | Kind::Written(_) | Kind::Link(_) => None,
        });
        let Some(original) = of_some_size else { return false };
        let place = folder.join("shared");
        let shares = create(&place).is_ok_and(|copy| rustix::fs::ioctl_ficlone(&copy, &original).is_ok());
        std::fs::remove_file(place).ok();
        shares
    }
}

fn create(place: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)
}

/// Gives an entry its mode, unless it is a link, and its time.
pub(super) fn attributes(place: &Path, piece: &Piece) -> io::Result<()> {
    if !matches!(piece.kind, Kind::Link(_)) {
        rustix::fs::chmodat(CWD, place, Mode::from_raw_mode(piece.mode), AtFlags::empty())?;
    }
    let time = Timespec { tv_sec: piece.modified.0, tv_nsec: piece.modified.1 as _ };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
