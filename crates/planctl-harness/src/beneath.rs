//! Opens files of a workspace that cannot lead out of it, hang or surprise (A24–A26, PROMISES 3.3).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::stamp::Stamp;

/// Kernels ask for another try when a folder moves while `..` is resolved.
const TRIES: u32 = 8;

/// A folder that everything opened through it stays beneath.
pub(crate) struct Root {
    folder: OwnedFd,
    /// The owner of the workspace.
    owner: u32,
}

/// The reason that a path is no readable regular file.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// There is nothing.
    #[error("it does not exist")]
    Missing,
    /// A `..`, an absolute path or a symlink leads out.
    #[error("it leads out of the workspace")]
    Outside,
    /// It is a symlink where none is followed.
    #[error("it is a symlink")]
    Symlink,
    /// It is something else than a regular file.
    #[error("it is a {0}")]
    NotRegular(&'static str),
    /// Another name of a file that belongs to somebody else (A26).
    #[error("it is a hard link to a file of another user")]
    ForeignHardLink,
    /// It is larger than the cap.
    #[error("it has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        limit: u64,
    },
    /// The system refused.
    #[error("{0}")]
    Refused(#[source] io::Error),
}

/// Whether a symlink as the last part of the path is followed (within the root).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Refuse,
}

impl Root {
    pub(crate) fn open(folder: &Path) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let owner = rustix::fs::fstat(&folder)?.st_uid;
        Ok(Root { folder, owner })
    }

    /// Opens a regular file for reading; never blocks, even on a pipe or a device.
    ///
    /// Its type is looked up before it is opened, since opening a device or a pipe has effects already.
    pub(crate) fn open_file(&self, path: &Path, last: LastLink) -> Result<File, Unreadable> {
        let found = self.find(path, last)?;
        self.open_found(&found)
    }

    /// Opens a regular file that was found.
    pub(crate) fn open_found(&self, found: &File) -> Result<File, Unreadable> {
        self.check_regular(found)?;
        // Opens the very file that was looked at, even where its name leads elsewhere by now.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file = rustix::fs::open(itself, flags, Mode::empty());
        Ok(File::from(file.map_err(|error| Unreadable::Refused(error.into()))?))
    }

    /// Returns what a path names, without opening it.
    pub(crate) fn find(&self, path: &Path, last: LastLink) -> Result<File, Unreadable> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if last == LastLink::Refuse {
            flags |= OFlags::NOFOLLOW;
        }
        self.resolve(path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS).map_err(|error| {
            match error {
                Errno::NOENT | Errno::NOTDIR => Unreadable::Missing,
                Errno::XDEV => Unreadable::Outside,
                Errno::LOOP => Unreadable::Symlink,
                error => Unreadable::Refused(error.into()),
            }
        })
    }

    pub(crate) fn resolve(&self, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<File, Errno> {
        let mut tries = 0;
        loop {
            match openat2(&self.folder, path, flags, Mode::empty(), resolve) {
                Ok(descriptor) => return Ok(File::from(descriptor)),
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the stamp of a path without following a link at its end; the stamp of an absent file where there is none.
    pub(crate) fn stamp(&self, path: &Path) -> Stamp {
        let found = rustix::fs::statat(&self.folder, path, AtFlags::SYMLINK_NOFOLLOW);
        found.map_or(Stamp::default(), |found| Stamp::of_stat(&found))
    }

    pub(crate) fn as_raw_fd(&self) -> i32 {
        self.folder.as_raw_fd()
    }

    /// Refuses what is no regular file, and a foreign file under another name.
    fn check_regular(&self, file: &File) -> Result<(), Unreadable> {
        let found = file.metadata().map_err(Unreadable::Refused)?;
        if found.file_type().is_symlink() {
            return Err(Unreadable::Symlink);
        }
        if !found.is_file() {
            return Err(Unreadable::NotRegular(kind_word(found.file_type())));
        }
        // To root every file is readable, so that for root only the workspace's owner counts.
        let us = rustix::process::geteuid().as_raw();
        let is_own = found.uid() == self.owner || (us != 0 && found.uid() == us);
        if found.nlink() > 1 && !is_own {
            return Err(Unreadable::ForeignHardLink);
        }
        Ok(())
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &Path, last: LastLink, limit: u64) -> Result<Vec<u8>, Unreadable> {
        read_capped(self.open_file(path, last)?, limit)
    }
}

/// Returns where a folder of a workspace is; nothing on the way to it may lead out of the workspace.
///
/// # Errors
///
/// Says what is there in its place.
pub fn folder_in(workspace: &Path, folder: &str) -> Result<PathBuf, Unreadable> {
    let missing = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound { Unreadable::Missing } else { Unreadable::Refused(error) }
    };
    let root = Root::open(workspace).map_err(missing)?;
    let found = root.find(Path::new(folder), LastLink::Follow)?.metadata().map_err(Unreadable::Refused)?;
    match found.is_dir() {
        true => Ok(workspace.join(folder)),
        false => Err(Unreadable::NotRegular(kind_word(found.file_type()))),
    }
}

/// Reads at most `limit` bytes; a file that grows meanwhile is caught too (A25).
pub(crate) fn read_capped(file: File, limit: u64) -> Result<Vec<u8>, Unreadable> {
    let bytes = file.metadata().map_err(Unreadable::Refused)?.len();
    if bytes > limit {
        return Err(Unreadable::TooLarge { bytes, limit });
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    file.take(limit + 1).read_to_end(&mut content).map_err(Unreadable::Refused)?;
    if content.len() as u64 > limit {
        return Err(Unreadable::TooLarge { bytes: content.len() as u64, limit });
    }
    Ok(content)
}

/// Opens a regular file by an ordinary path, wherever it leads; never blocks.
pub(crate) fn open_anywhere(path: &Path) -> Result<File, Unreadable> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(Unreadable::Missing),
        Err(Errno::NXIO) => return Err(Unreadable::NotRegular("socket")),
        Err(error) => return Err(Unreadable::Refused(error.into())),
    };
    let found = file.metadata().map_err(Unreadable::Refused)?;
    if !found.is_file() {
        return Err(Unreadable::NotRegular(kind_word(found.file_type())));
    }
    Ok(file)
}

/// Returns the word for what a path names.
pub(crate) fn kind_word(kind: std::fs::FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_fifo() {
        "named pipe"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "device"
    } else if kind.is_symlink() {
        "symlink"
    } else {
        "regular file"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    use super::*;

    /// A workspace with one of each, beside a secret.
    fn workspace() -> (tempfile::TempDir, Root) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("workspace");
        std::fs::create_dir_all(inner.join("folder")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        std::fs::write(inner.join("plain"), "plain").unwrap();
        symlink("plain", inner.join("inner-link")).unwrap();
        symlink("../secret", inner.join("relative-out")).unwrap();
        symlink(outer.path().join("secret"), inner.join("absolute-out")).unwrap();
        symlink("loop", inner.join("loop")).unwrap();
        symlink("/proc/self/root/etc/passwd", inner.join("magic")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, inner.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::net::UnixListener::bind(inner.join("socket")).unwrap();
        File::create(inner.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let root = Root::open(&inner).unwrap();
        (outer, root)
    }

    #[test]
    fn a24_a25_only_regular_files_inside_open_and_nothing_hangs() {
        let (outer, root) = workspace();
        let limit = 1024;
        let started = Instant::now();
        for path in ["plain", "inner-link", "folder/../plain"] {
            assert_eq!(root.read(Path::new(path), LastLink::Follow, limit).unwrap(), b"plain", "{path}");
        }
        let absolute = outer.path().join("workspace/plain");
        for path in ["../secret", "relative-out", "absolute-out", "magic", "folder/../../secret"]
            .map(Path::new)
            .into_iter()
            .chain([absolute.as_path()])
        {
            let refused = root.read(path, LastLink::Follow, limit).unwrap_err();
            assert!(matches!(refused, Unreadable::Outside | Unreadable::Symlink), "{path:?}: {refused}");
        }
        for (path, kind) in [("fifo", "named pipe"), ("folder", "directory"), ("socket", "socket")] {
            let refused = root.read(Path::new(path), LastLink::Follow, limit).unwrap_err();
            assert!(matches!(refused, Unreadable::NotRegular(word) if word == kind), "{path}: {refused}");
        }
        assert!(matches!(root.read(Path::new("loop"), LastLink::Follow, limit), Err(Unreadable::Symlink)));
        assert!(matches!(root.read(Path::new("none"), LastLink::Follow, limit), Err(Unreadable::Missing)));
        assert!(matches!(
            root.read(Path::new("sparse"), LastLink::Follow, limit),
            Err(Unreadable::TooLarge { .. })
        ));
        assert!(matches!(
            root.read(Path::new("inner-link"), LastLink::Refuse, limit),
            Err(Unreadable::Symlink)
        ));
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a6_a_folder_is_found_only_inside_the_workspace() {
        let (outer, _) = workspace();
        let inner = outer.path().join("workspace");
        symlink("folder", inner.join("inner-folder")).unwrap();
        symlink("..", inner.join("outer-folder")).unwrap();
        symlink(outer.path(), inner.join("absolute-folder")).unwrap();
        std::fs::create_dir(inner.join("folder/deep")).unwrap();
        for folder in ["folder", "folder/deep", "inner-folder", "inner-folder/deep"] {
            assert_eq!(folder_in(&inner, folder).unwrap(), inner.join(folder));
        }
        let refused = |folder: &str| folder_in(&inner, folder).unwrap_err().to_string();
        for folder in
            ["..", "outer-folder", "absolute-folder", "absolute-folder/workspace", "folder/../..", "/"]
        {
            assert_eq!(refused(folder), "it leads out of the workspace", "{folder}");
        }
        assert_eq!(refused("none"), "it does not exist");
        assert_eq!(refused("plain/folder"), "it does not exist");
        assert_eq!(refused("plain"), "it is a regular file");
        assert_eq!(refused("fifo"), "it is a named pipe");
        assert!(!refused("a\0b").is_empty());
        assert!(matches!(folder_in(&inner.join("gone"), "folder"), Err(Unreadable::Missing)));
    }

    #[test]
    fn a25_what_is_no_regular_file_is_not_even_opened() {
        let (outer, root) = workspace();
        let fifo = outer.path().join("workspace/fifo");
        let refused = root.open_file(Path::new("fifo"), LastLink::Follow).unwrap_err();
        assert!(matches!(refused, Unreadable::NotRegular("named pipe")));
        // Nobody has it open, so that a writer would still find no reader.
        let writer = rustix::fs::open(&fifo, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
        assert_eq!(writer.unwrap_err(), Errno::NXIO);
        let device = outer.path().join("workspace/device");
        let kind = rustix::fs::FileType::CharacterDevice;
        let made = rustix::fs::mknodat(rustix::fs::CWD, &device, kind, Mode::RUSR, rustix::fs::makedev(1, 5));
        // Only root may make one.
        if made.is_ok() {
            let refused = root.open_file(Path::new("device"), LastLink::Follow).unwrap_err();
            assert!(matches!(refused, Unreadable::NotRegular("device")), "{refused}");
        }
    }

    #[test]
    fn a26_another_name_of_somebody_elses_file_is_refused_also_for_root() {
        let (outer, root) = workspace();
        let (secret, link) = (outer.path().join("secret"), outer.path().join("workspace/link"));
        std::fs::hard_link(&secret, &link).unwrap();
        let read = |root: &Root| root.read(Path::new("link"), LastLink::Follow, 1024);
        assert_eq!(read(&root).unwrap(), b"secret", "one's own file may have two names");
        // Only root can give files away.
        if std::os::unix::fs::chown(&secret, Some(12_345), None).is_ok() {
            assert!(matches!(read(&root), Err(Unreadable::ForeignHardLink)));
            std::os::unix::fs::chown(&secret, Some(0), None).unwrap();
            std::os::unix::fs::chown(outer.path().join("workspace"), Some(12_345), None).unwrap();
            let theirs = Root::open(&outer.path().join("workspace")).unwrap();
            assert!(
                matches!(read(&theirs), Err(Unreadable::ForeignHardLink)),
                "root's file in their workspace"
            );
            assert_eq!(theirs.read(Path::new("plain"), LastLink::Follow, 1024).unwrap(), b"plain");
        }
    }

    #[test]
    fn a24_a_link_that_flips_while_we_read_never_leaks() {
        let (outer, root) = workspace();
        let inner = outer.path().join("workspace");
        // It is readable also where the other thread comes late.
        symlink("plain", inner.join("flip")).unwrap();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flipper = {
            let (stop, inner) = (stop.clone(), inner.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    for target in ["plain", "../secret"] {
                        symlink(target, inner.join("flip.new")).unwrap();
                        std::fs::rename(inner.join("flip.new"), inner.join("flip")).unwrap();
                    }
                }
            })
        };
        let (mut tries, mut read) = (0, 0);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        // On a busy machine the other thread may rest for all these tries while the link leads outside.
        while tries < 20_000 || read == 0 && std::time::Instant::now() < until {
            tries += 1;
            if let Ok(content) = root.read(Path::new("flip"), LastLink::Follow, 1024) {
                assert_eq!(content, b"plain");
                read += 1;
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        flipper.join().unwrap();
        assert!(read > 0, "the link was readable at times");
    }
}
