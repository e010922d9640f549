//! Stamps: the kernel's record of an entry, by which a later look tells without reading whether somebody touched it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// The kernel's record of an inode. Its change time can't be set back without the right to set the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) mode: u32,
    pub(crate) bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(found: &Metadata) -> Stamp {
        Stamp {
            device: found.dev(),
            inode: found.ino(),
            mode: found.mode(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    pub(crate) fn of_stat(found: &rustix::fs::Stat) -> Stamp {
        Stamp {
            device: found.st_dev,
            inode: found.st_ino,
            mode: found.st_mode,
            bytes: found.st_size.unsigned_abs(),
            modified: (found.st_mtime, found.st_mtime_nsec.cast_signed()),
            changed: (found.st_ctime, found.st_ctime_nsec.cast_signed()),
        }
    }
}
