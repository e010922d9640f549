//! Lists the files of a checkout's newest commit: an index names what somebody who worked there left in it (A5).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::blocking::blocking_in_place;
use crate::git::git_head;
use crate::spawn::Spawner;
use crate::worktree::call::call_checked;

/// The files of the newest commit of one checkout; git is started again only once there is a newer one.
#[derive(Clone, Default, Debug)]
pub(crate) struct CommittedFiles {
    last: Arc<Mutex<Last>>,
}

/// The commit that was read last, and its files.
#[derive(Clone, Default, Debug)]
struct Last {
    commit: Option<String>,
    files: Arc<[PathBuf]>,
}

impl CommittedFiles {
    /// Lists the files and links below a folder, relative to it: `most` of them, those of the last commit that could be read,
    /// and none before there is one.
    pub(crate) async fn below(&self, spawner: &Spawner, folder: &Path, most: usize) -> Arc<[PathBuf]> {
        let last = { self.last.lock().unwrap_or_else(PoisonError::into_inner).clone() };
        let head = blocking_in_place(|| git_head(folder));
        if let Some(commit) = head.filter(|head| last.commit.as_ref() != Some(head))
            && let Ok(listed) = call_checked(spawner, folder, ["ls-tree", "-r", "-z", &commit]).await
        {
            let files = listed.records().filter_map(file_of).take(most).collect::<Arc<[PathBuf]>>();
            let newer = Last { commit: Some(commit), files: files.clone() };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = newer;
            return files;
        }
        last.files
    }
}

/// Reads `MODE TYPE OBJECT`, a tab and a path; a submodule is a repository of its own.
fn file_of(entry: &[u8]) -> Option<PathBuf> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let is_file = entry[..tab].split(|byte| *byte == b' ').nth(1) == Some(b"blob");
    is_file.then(|| PathBuf::from(OsStr::from_bytes(&entry[tab + 1..])))
}
