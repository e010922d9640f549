//! The content of a private folder at the moment when a contract gets it; a folder that was used before is brought back to it.
//!
//! A contract's folder has some twenty entries. Making and removing them for each contract costs as much as three commits,
//! and many times that on ext4 without a journal, which searches for inodes that were not deleted in the last minute. So a
//! folder is used again. Nothing that somebody left there stays: each entry is compared with what it should be.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, mkdirat, openat, readlinkat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use crate::removal::remove_tree;

/// How many links to a file of a private folder there are: its own name.
const ONE_NAME: nix::libc::nlink_t = 1;

/// The entries of a folder.
#[derive(Clone, Default, Debug)]
pub(crate) struct FolderContent {
    entries: BTreeMap<OsString, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Folder(FolderContent),
    Link(PathBuf),
    File { bytes: Vec<u8>, mode: u32 },
}

/// The treatment of files that are as they should be already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OldFiles {
    /// They stay.
    Keep,
    /// They are made anew, since somebody may have them open for writing.
    Replace,
}

impl FolderContent {
    /// Adds a folder with those above it.
    pub(crate) fn folder(&mut self, path: impl AsRef<Path>) -> &mut FolderContent {
        let names = path.as_ref().components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        });
        names.fold(self, |folder, name| {
            let entry = folder.entries.entry(name).or_insert_with(|| Entry::Folder(FolderContent::default()));
            if !matches!(entry, Entry::Folder(_)) {
                *entry = Entry::Folder(FolderContent::default());
            }
            match entry {
                Entry::Folder(inner) => inner,
                Entry::Link(_) | Entry::File { .. } => unreachable!("it was made a folder above"),
            }
        })
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.insert(path.as_ref(), Entry::Link(target.into()));
    }

    /// Adds a file that its owner alone can read and write.
    pub(crate) fn file(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.insert(path.as_ref(), Entry::File { bytes: bytes.into(), mode: 0o600 });
    }

    /// Adds a program that its owner alone can read, write and execute.
    pub(crate) fn program(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.insert(path.as_ref(), Entry::File { bytes: bytes.into(), mode: 0o700 });
    }

    fn insert(&mut self, path: &Path, entry: Entry) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            self.folder(parent).entries.insert(name.to_owned(), entry);
        }
    }

    /// Makes a folder's content exactly this, whatever is there; follows no link. The entry `except` stays as it is.
    ///
    /// # Errors
    ///
    /// Those of the disk, and where somebody else owns the folder or has rights in it.
    pub(crate) fn restore(&self, folder: &Path, except: &OsStr, old: OldFiles) -> io::Result<()> {
        let opened = rustix::fs::open(folder, FOLDER, Mode::empty())?;
        let restorer = Restorer { us: rustix::process::geteuid().as_raw(), old };
        if !restorer.is_private_folder(&opened)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not private any more"));
        }
        restorer.restore(self, &opened, folder, except)
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Entry {
    /// Makes the entry where nothing is, a folder empty; returns the folder.
    fn create(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
        match self {
            Entry::Folder(_) => {
                mkdirat(folder, name, Mode::RWXU)?;
                return Ok(Some(openat(folder, name, FOLDER, Mode::empty())?));
            }
            Entry::Link(target) => symlinkat(target, folder, name)?,
            Entry::File { bytes, mode } => write_new(folder, name, bytes, *mode)?,
        }
        Ok(None)
    }
}

/// The result of a comparison of an entry with what the disk holds under its name.
enum Comparison {
    /// It is the entry; a folder is open, and what it holds was not looked at.
    Same(Option<OwnedFd>),
    /// It is something else.
    Other,
    /// It is nothing.
    Missing,
}

struct Restorer {
    us: u32,
    old: OldFiles,
}

impl Restorer {
    fn restore(
        &self,
        content: &FolderContent,
        folder: &OwnedFd,
        path: &Path,
        except: &OsStr,
    ) -> io::Result<()> {
        for name in names_in(folder)? {
            if !content.entries.contains_key(&name) && name != except {
                remove(folder, &name, path)?;
            }
        }
        for (name, entry) in &content.entries {
            let inner = match self.compare(entry, folder, name)? {
                Comparison::Same(inner) => inner,
                Comparison::Other => {
                    remove(folder, name, path)?;
                    entry.create(folder, name)?
                }
                Comparison::Missing => entry.create(folder, name)?,
            };
            if let (Entry::Folder(content), Some(inner)) = (entry, inner) {
                self.restore(content, &inner, &path.join(name), OsStr::new(""))?;
            }
        }
        Ok(())
    }

    fn compare(&self, entry: &Entry, folder: &OwnedFd, name: &OsStr) -> io::Result<Comparison> {
        let compared = match entry {
            Entry::Folder(_) => match openat(folder, name, FOLDER, Mode::empty()) {
                Ok(found) if self.is_private_folder(&found)? => Ok(Comparison::Same(Some(found))),
                Ok(_) | Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(Comparison::Other),
                Err(error) => Err(error),
            },
            Entry::Link(target) => match readlinkat(folder, name, Vec::new()) {
                Ok(found) if found.as_bytes() == target.as_os_str().as_bytes() => Ok(Comparison::Same(None)),
                Ok(_) | Err(Errno::INVAL) => Ok(Comparison::Other),
                Err(error) => Err(error),
            },
            Entry::File { bytes, mode } => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found)
                    if self.old == OldFiles::Keep
                        && self.is_private(&found, FileType::RegularFile, *mode)
                        && found.st_nlink == ONE_NAME
                        && has_bytes(folder, name, bytes)? =>
                {
                    Ok(Comparison::Same(None))
                }
                Ok(_) => Ok(Comparison::Other),
                Err(error) => Err(error),
            },
        };
        match compared {
            Err(Errno::NOENT) => Ok(Comparison::Missing),
            compared => Ok(compared?),
        }
    }

    fn is_private(&self, found: &Stat, kind: FileType, mode: u32) -> bool {
        FileType::from_raw_mode(found.st_mode) == kind
            && found.st_mode & 0o7777 == mode
            && found.st_uid == self.us
    }

    /// Says whether a folder is its owner's alone: also by its access control list, and by the one that new entries inherit.
    fn is_private_folder(&self, folder: &OwnedFd) -> io::Result<bool> {
        if !self.is_private(&fstat(folder)?, FileType::Directory, 0o700) {
            return Ok(false);
        }
        let mut names = [0_u8; 1024];
        match rustix::fs::flistxattr(folder, &mut names[..]) {
            Ok(length) => Ok(!names[..length]
                .split(|byte| *byte == 0)
                .any(|name| name.starts_with(b"system.posix_acl"))),
            Err(Errno::OPNOTSUPP) => Ok(true),
            // More names than a security module gives: somebody has added some.
            Err(Errno::RANGE) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn names_in(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Says whether a file, which the caller has found to be a regular one, holds exactly this.
fn has_bytes(folder: &OwnedFd, name: &OsStr, bytes: &[u8]) -> io::Result<bool> {
    // Without a wait, should a pipe have taken the file's place.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(folder, name, flags, Mode::empty())?);
    let mut held = Vec::with_capacity(bytes.len() + 1);
    io::Read::read_to_end(&mut io::Read::take(file, bytes.len() as u64 + 1), &mut held)?;
    Ok(held == bytes)
}

fn remove(folder: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => remove_tree(&path.join(name)),
        removed => Ok(removed?),
    }
}

fn write_new(folder: &OwnedFd, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(openat(folder, name, flags, Mode::from_raw_mode(mode))?);
    io::Write::write_all(&mut file, bytes)
}
