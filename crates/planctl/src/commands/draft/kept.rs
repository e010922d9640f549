//! The record of a draft in the state directory: every answer is stored before it is looked at, so none is paid for twice.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use planctl_lang::digest_of_text;
use planctl_planner::Conversation;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};

/// The folder of the state directory.
const FOLDER: &str = "drafts";
/// How many drafts are kept.
const KEPT: usize = 200;
const RECORD: &str = "draft.json";
/// The folder of what resolved intents, and how that went.
const HISTORY: &str = "goals";

/// A draft as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The conversation.
    pub conversation: Conversation,
    /// The file that was written last, and its text.
    pub written: Option<(PathBuf, String)>,
}

/// The place of one draft; no other process has it meanwhile.
pub struct Kept {
    folder: PathBuf,
    _lock: File,
}

impl Kept {
    /// Takes the place of a draft: the same goal, source and writer in the same workspace have the same one.
    pub fn lock(state_dir: &Path, parts: &[&str]) -> Result<Kept, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(
                Exit::Temporary,
                format!("could not keep the draft in {}: {error}", state_dir.display()),
            )
        };
        let digest = digest_of_text(&parts.join("\0"));
        let name: String = digest.as_str().trim_start_matches("sha256:").chars().take(32).collect();
        let all = state_dir.join(FOLDER);
        let folder = all.join(name);
        let lock = lock_file(&folder).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let failure = Failure::new(Exit::Conflict, "another process is drafting this plan");
                return Err(failure.help("wait until it is done; the same command then shows the draft"));
            }
            Err(error) => return Err(failed(error.into())),
        }
        forget_oldest(&all, &folder);
        Ok(Kept { folder, _lock: lock })
    }

    /// Takes the place of what resolved intents; it is kept for ever, and waits for another process that has it.
    pub fn lock_history(state_dir: &Path) -> Result<Kept, Failure> {
        let folder = state_dir.join(HISTORY);
        let taken = || -> std::io::Result<File> {
            let lock = lock_file(&folder)?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(lock)
        };
        let lock = taken().map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not use {}: {error}", folder.display()))
        })?;
        Ok(Kept { folder, _lock: lock })
    }

    /// Returns the record, where there is one that this planctl can read.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let path = self.folder.join(RECORD);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Failure::new(
                    Exit::Temporary,
                    format!("could not read {}: {error}", path.display()),
                ));
            }
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not read {}: {error}", path.display()))
                .help("begin from nothing: --again")
        })
    }

    /// Stores the record: whole, or as it was.
    pub fn write(&self, record: &impl Serialize) -> Result<(), Failure> {
        let path = self.folder.join(RECORD);
        let stored = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer(&mut file, record)?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        stored().map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not write {}: {error}", path.display()))
        })
    }

    /// Stores the text of an answer that became no draft, for a person to read.
    pub fn write_refused(&self, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("refused.md");
        std::fs::write(&path, text).map_err(|error| {
            Failure::new(Exit::Temporary, format!("could not write {}: {error}", path.display()))
        })?;
        Ok(path)
    }
}

fn lock_file(folder: &Path) -> std::io::Result<File> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::create(folder.join("lock"))
}

/// Removes the oldest drafts beyond those that are kept; where that fails they stay.
fn forget_oldest(all: &Path, own: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    if found.len() <= KEPT {
        return;
    }
    found.sort();
    let surplus = found.len() - KEPT;
    for (_, path) in found.iter().take(surplus).filter(|(_, path)| path != own) {
        if let Err(error) = std::fs::remove_dir_all(path) {
            tracing::debug!(path = %path.display(), %error, "an old draft stays");
        }
    }
}
