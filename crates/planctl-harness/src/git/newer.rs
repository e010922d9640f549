//! Objects of a repository that came since a point in time, found by times that nobody who works there can set.
//!
//! Git compares an object with its name when it is sent one, and not when it reads its own. So a worker that can write the
//! repository can put a file with other content where an object belongs, or a pack in which it is, and `git diff HEAD` and `git
//! show` in a contract tell what nobody committed. A file that is new, or was written, moved or linked since, has a later
//! status change time than all that were there; a folder that was exchanged is another one. The rest is as it was.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::bytes_of;

/// How many folders of objects may borrow from one another.
const BORROWED_MAX: usize = 16;

/// Which folder or file this is: it has another number, or is on another device, where it was exchanged.
type Identity = (u64, u64);

/// The objects of a repository at a point in time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ObjectsBefore {
    /// When the newest of them was changed, in nanoseconds since 1970, by the clock of their file system.
    since: i64,
    tops: Vec<PathBuf>,
    folders: BTreeMap<PathBuf, Identity>,
}

/// The objects that came since.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct NewerObjects {
    /// Those in files of their own, by name.
    pub(crate) loose: BTreeMap<String, PathBuf>,
    /// The indexes of packs.
    pub(crate) packs: Vec<PathBuf>,
    /// The folders from which the repository borrows objects by now, and did not.
    pub(crate) borrowed: Vec<PathBuf>,
    /// Their files, and when each was changed. Where a pack is gone, git reads what it passed over before.
    stamps: Vec<(PathBuf, Identity, i64)>,
}

impl ObjectsBefore {
    /// Notes what a repository has, by its common folder.
    pub(crate) fn snapshot(common: &Path) -> ObjectsBefore {
        let mut before =
            ObjectsBefore { since: i64::MIN, tops: object_folders(common), folders: BTreeMap::new() };
        for top in before.tops.clone() {
            let within = names(&top).into_iter().map(|name| top.join(name)).collect::<Vec<_>>();
            for folder in within.into_iter().chain([top]) {
                let Ok(found) = folder.metadata() else { continue };
                if !found.is_dir() {
                    continue;
                }
                let files = names(&folder).into_iter().filter_map(|name| folder.join(name).metadata().ok());
                let newest = files.filter(Metadata::is_file).map(|found| changed_at(&found)).max();
                before.since = before.since.max(newest.unwrap_or(i64::MIN));
                before.folders.insert(folder, identity(&found));
            }
        }
        before
    }

    /// Lists what came since.
    pub(crate) fn newer(&self, common: &Path) -> NewerObjects {
        let mut newer = NewerObjects::default();
        for top in object_folders(common) {
            let is_same_top = self.is_known(&top);
            if !self.tops.contains(&top) {
                newer.borrowed.push(top.clone());
            }
            for name in names(&top) {
                let Some(start) = name.to_str().filter(|name| *name == "pack" || is_hexadecimal(name, 2))
                else {
                    continue;
                };
                let folder = top.join(start);
                self.add_newer(&mut newer, &folder, start, is_same_top && self.is_known(&folder));
            }
        }
        newer
    }

    fn add_newer(&self, newer: &mut NewerObjects, folder: &Path, start: &str, is_known: bool) {
        for name in names(folder) {
            let path = folder.join(&name);
            let Ok(found) = path.metadata() else { continue };
            let changed = changed_at(&found);
            let is_new = !is_known || changed > self.since;
            let extension = path.extension().and_then(OsStr::to_str);
            if start == "pack" {
                if matches!(extension, Some("idx" | "pack")) {
                    newer.stamps.push((path.clone(), identity(&found), changed));
                    let index = path.with_extension("idx");
                    if is_new && !newer.packs.contains(&index) {
                        newer.packs.push(index);
                    }
                }
            } else if is_new
                && let Some(rest) =
                    name.to_str().filter(|rest| is_hexadecimal(rest, 38) || is_hexadecimal(rest, 62))
            {
                newer.stamps.push((path.clone(), identity(&found), changed));
                newer.loose.insert(format!("{start}{rest}"), path);
            }
        }
    }

    fn is_known(&self, folder: &Path) -> bool {
        let found = folder.metadata();
        found.is_ok_and(|found| self.folders.get(folder) == Some(&identity(&found)))
    }
}

impl NewerObjects {
    /// Says whether there is nothing to be verified.
    pub(crate) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.packs.is_empty() && self.borrowed.is_empty()
    }
}

/// Says whether a path is that of an object's file, of a pack or of a pack's index.
pub(crate) fn is_object_file(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match path.parent().and_then(Path::file_name).and_then(OsStr::to_str) {
        Some("pack") => {
            matches!(path.extension().and_then(OsStr::to_str), Some("idx" | "pack"))
                && name.starts_with("pack-")
        }
        Some(start) => is_hexadecimal(start, 2) && (is_hexadecimal(name, 38) || is_hexadecimal(name, 62)),
        None => false,
    }
}

/// Says whether a path is that of a folder of objects, which git removes when it is empty.
pub(crate) fn is_folder_of_objects(path: &Path) -> bool {
    let is_within = path.parent().and_then(Path::file_name).is_some_and(|name| name == "objects");
    is_within && path.file_name().and_then(OsStr::to_str).is_some_and(|name| is_hexadecimal(name, 2))
}

/// Lists the folders of files of objects and of packs.
pub(crate) fn object_folders_of(objects: &Path) -> Vec<PathBuf> {
    let mut names = names(objects);
    names.retain(|name| name.to_str().is_some_and(|name| name == "pack" || is_hexadecimal(name, 2)));
    names.into_iter().map(|name| objects.join(name)).collect()
}

/// Lists the files of objects and of packs, packs first.
pub(crate) fn object_files_of(objects: &Path) -> impl Iterator<Item = PathBuf> {
    let mut folders = object_folders_of(objects);
    folders.sort_by_key(|folder| !folder.ends_with("pack"));
    let files = |folder: PathBuf| names(&folder).into_iter().map(move |name| folder.join(name));
    folders.into_iter().flat_map(files).filter(|path| is_object_file(path))
}

/// Returns the folders in which git looks for the objects of a repository: its own, and those that it borrows from.
fn object_folders(common: &Path) -> Vec<PathBuf> {
    let mut folders = vec![common.join("objects")];
    let mut next = 0;
    while let Some(folder) = folders.get(next).filter(|_| next < BORROWED_MAX).cloned() {
        next += 1;
        let listed = bytes_of(&folder.join("info/alternates"));
        for line in listed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            let borrowed = folder.join(OsStr::from_bytes(line));
            if !folders.contains(&borrowed) {
                folders.push(borrowed);
            }
        }
    }
    folders
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name()).collect()
}

/// Returns when the content, the name or the rights of a file last changed, in nanoseconds since 1970.
fn changed_at(found: &Metadata) -> i64 {
    found.ctime().saturating_mul(1_000_000_000).saturating_add(found.ctime_nsec())
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

fn is_hexadecimal(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
