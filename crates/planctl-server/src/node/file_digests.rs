//! Digests of plans' files, kept as long as a file is what it was: a plan of 5,000 steps is read once, and not for each page.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use planctl_engine::{Digest, Timestamp};

use crate::mutex::lock;

/// File systems count time in ticks: a file that changed this recently may change again without another time.
const SETTLED_AFTER_MICROS: i64 = 2_000_000;
/// The most files whose digests are kept.
const FILES_MAX: usize = 1_000;

/// Tells a file's content from an earlier one, without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        Stamp {
            place: (file.dev(), file.ino()),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    fn is_settled(&self, now: Timestamp) -> bool {
        let changed = self.changed.0.saturating_mul(1_000_000).saturating_add(self.changed.1 / 1_000);
        changed.saturating_add(SETTLED_AFTER_MICROS) < now.as_micros()
    }
}

/// Digests by file.
#[derive(Default)]
pub(crate) struct FileDigests {
    kept: Mutex<BTreeMap<PathBuf, (Stamp, Digest)>>,
}

impl FileDigests {
    /// Returns the digest of a file, which is read where it may have changed; nothing where it can't be read.
    pub(crate) fn of(
        &self,
        file: &Path,
        now: Timestamp,
        read: impl FnOnce(&Path) -> Option<Digest>,
    ) -> Option<Digest> {
        // Taken before the file is read: a later change gives another stamp.
        let stamp = Stamp::of(&fs::metadata(file).ok()?);
        let kept = lock(&self.kept).get(file).cloned();
        if let Some((_, digest)) = kept.filter(|(kept, _)| *kept == stamp) {
            return Some(digest);
        }
        let digest = read(file)?;
        if stamp.is_settled(now) {
            let mut kept = lock(&self.kept);
            if kept.len() >= FILES_MAX {
                kept.clear();
            }
            kept.insert(file.to_owned(), (stamp, digest.clone()));
        }
        Some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_where_it_may_have_changed_and_only_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.md");
        let digests = FileDigests::default();
        let mut reads = 0;
        let mut look = |now: i64| {
            let read = |file: &Path| {
                reads += 1;
                Some(Digest::new(fs::read_to_string(file).ok()?))
            };
            let found = digests.of(&file, Timestamp::from_micros(now), read);
            (found.map(|digest| digest.as_str().to_owned()), reads)
        };
        assert_eq!(look(i64::MAX), (None, 0), "it is not there");
        fs::write(&file, "one").unwrap();
        assert_eq!(look(0), (Some("one".to_owned()), 1));
        assert_eq!(look(0), (Some("one".to_owned()), 2), "it changed a moment ago");
        assert_eq!(look(i64::MAX), (Some("one".to_owned()), 3));
        assert_eq!(look(i64::MAX), (Some("one".to_owned()), 3), "it is what it was");
        fs::write(&file, "three").unwrap();
        assert_eq!(look(i64::MAX), (Some("three".to_owned()), 4));
        fs::remove_file(&file).unwrap();
        assert_eq!(look(i64::MAX), (None, 4));
    }
}
