//! The record of a draft in the state directory: every answer is stored before it is looked at, so none is paid for twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use planctl_lang::digest_of_text;
use planctl_planner::Conversation;
use planctl_server::private_folder;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::database::DraftDatabase;
use crate::failure::{Exit, Failure};

/// The folder of the state directory.
const FOLDER: &str = "drafts";
/// How many drafts are kept.
const KEPT: usize = 200;
const RECORD: &str = "draft.json";
/// Begins the names of records that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Begins the line with the version.
const VERSION: &str = "version ";
/// The folder of what resolved intents, and how that went.
const HISTORY: &str = "goals";

/// A draft as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The conversation.
    pub conversation: Conversation,
    /// The file that was written last, and its text.
    pub written: Option<(PathBuf, String)>,
    /// The numbers of the questions that are in the inbox.
    #[serde(default)]
    pub asked: BTreeMap<String, u64>,
}

/// The place of one draft; no other process has it meanwhile.
pub struct Kept<'a> {
    /// Where its copy is, and what it asks people.
    pub(in crate::commands) database: &'a DraftDatabase<'a>,
    key: String,
    folder: PathBuf,
    /// Where it stands against its copy in the database.
    pub(super) copy: Mutex<CopyState>,
    _lock: File,
}

/// Where a draft stands against its copy in the database.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CopyState {
    /// The version that the database has, as far as this process knows.
    pub known: u64,
    /// Says that the database gave no answer.
    pub is_alone: bool,
}

/// The text of a record, and how often it was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Text {
    pub version: u64,
    pub record: String,
}

impl Text {
    /// Reads a file: a line with the version, and the record.
    fn read_record(text: &str) -> Text {
        let split = text.strip_prefix(VERSION).and_then(|rest| rest.split_once('\n'));
        let split = split.and_then(|(version, record)| Some((version.parse().ok()?, record)));
        let (version, record) = split.unwrap_or((0, text));
        Text { version, record: record.to_owned() }
    }

    fn to_file(&self) -> String {
        format!("{VERSION}{}\n{}", self.version, self.record)
    }
}

impl<'a> Kept<'a> {
    /// Takes the place of a draft: the same goal, source and writer in the same workspace have the same one.
    pub fn lock(database: &'a DraftDatabase<'a>, parts: &[&str]) -> Result<Kept<'a>, Failure> {
        let state_dir = database.context().state_dir()?;
        let failed = |error: std::io::Error| {
            Failure::of_state(format!("keep the draft in {}", state_dir.display()), &error)
        };
        let digest = digest_of_text(&parts.join("\0"));
        let name: String = digest.as_str().trim_start_matches("sha256:").chars().take(32).collect();
        let all = private_folder(&state_dir, FOLDER).map_err(failed)?;
        let folder = all.join(&name);
        let lock = lock_file(&folder).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let failure = Failure::new(Exit::Conflict, "another process is drafting this plan");
                return Err(failure.help("wait until it is done; the same goal then shows the draft"));
            }
            Err(error) => return Err(failed(error.into())),
        }
        forget_oldest(&all, &folder);
        forget_unfinished(&folder);
        Ok(Kept { database, key: name, folder, copy: Mutex::default(), _lock: lock })
    }

    /// Returns the key that tells the draft from others of its workspace.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Takes the place of what resolved intents; it is kept for ever. It waits for another process that has it, which reads or
    /// writes: nobody else is waited for under this lock.
    pub fn lock_history(database: &'a DraftDatabase<'a>) -> Result<Kept<'a>, Failure> {
        let state_dir = database.context().state_dir()?;
        let folder = state_dir.join(HISTORY);
        let taken = || -> std::io::Result<File> {
            private_folder(&state_dir, HISTORY)?;
            let lock = lock_file(&folder)?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(lock)
        };
        let lock = taken().map_err(|error| Failure::of_state(format!("use {}", folder.display()), &error))?;
        forget_unfinished(&folder);
        Ok(Kept { database, key: HISTORY.to_owned(), folder, copy: Mutex::default(), _lock: lock })
    }

    /// Returns the record, where there is one that this planctl can read.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let Some(text) = self.text()? else { return Ok(None) };
        serde_json::from_str(&text.record)
            .map(Some)
            .map_err(|error| self.failure("read", &error).help("begin from nothing: --again"))
            .map_err(|failure| failure.page_help("start from scratch"))
    }

    /// Returns the text of the record.
    pub(super) fn text(&self) -> Result<Option<Text>, Failure> {
        match std::fs::read_to_string(self.folder.join(RECORD)) {
            Ok(text) => Ok(Some(Text::read_record(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure("read", &error)),
        }
    }

    /// Stores the record: whole, or as it was. One that did not change keeps its version.
    pub fn write(&self, record: &impl Serialize) -> Result<(), Failure> {
        let record = serde_json::to_string(record).map_err(|error| self.failure("write", &error))?;
        // A text that can't be read is written over.
        let before = self.text().ok().flatten();
        let version = before.as_ref().map_or(0, |before| before.version) + 1;
        match before {
            Some(before) if before.record == record => Ok(()),
            Some(_) | None => self.put(&Text { version, record }),
        }
    }

    /// Stores the text of a record: whole, or as it was.
    pub(super) fn put(&self, text: &Text) -> Result<(), Failure> {
        let stored = || -> std::io::Result<()> {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
            file.write_all(text.to_file().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(self.folder.join(RECORD))?;
            Ok(())
        };
        stored().map_err(|error| self.failure("write", &error))
    }

    fn failure(&self, verb: &str, error: &dyn std::fmt::Display) -> Failure {
        let path = self.folder.join(RECORD);
        Failure::new(Exit::Temporary, format!("could not {verb} {}: {error}", path.display()))
    }

    /// Stores the text of an answer that became no draft, for a person to read.
    pub fn write_refused(&self, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("refused.md");
        std::fs::write(&path, text)
            .map_err(|error| Failure::of_state(format!("write {}", path.display()), &error))?;
        Ok(path)
    }
}

fn lock_file(folder: &Path) -> std::io::Result<File> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::create(folder.join("lock"))
}

/// Removes what a process that was killed left half written. The caller has the place, so nobody writes there.
fn forget_unfinished(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let is_unfinished =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(UNFINISHED);
    for entry in entries.flatten().filter(is_unfinished) {
        if let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::debug!(path = %entry.path().display(), %error, "a record that was not finished stays");
        }
    }
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
