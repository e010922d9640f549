//! Whether a plan's file is the text that a run executes: a file that changed is never run and never overwritten.

use std::path::{Path, PathBuf};
use std::{fs, io};

use planctl_engine::Digest;
use planctl_harness::{Unreadable, read_plan, write_plan};
use planctl_lang::{Source, digest};
use planctl_store::RunRow;

use crate::clock;
use crate::node::ServerNode;
use crate::node::runtime::blocking;
use crate::node::services::ServiceError;

impl ServerNode {
    /// Says whether the plan's file is the text that a run of this host executes.
    ///
    /// # Errors
    ///
    /// Those of a thread that could not be had.
    pub(crate) async fn look_at_plan_file(&self, run: &RunRow) -> Result<PlanFile, ServiceError> {
        if run.host != self.host() {
            return Ok(PlanFile::Unseen);
        }
        let (file, revision) = (plan_file(run), run.revision.clone());
        let (digests, now) = (self.plan_digests().clone(), clock::now());
        let looked = move || match digests.of(&file, now, read_digest) {
            Some(digest) if digest == revision => PlanFile::Runs,
            Some(_) => PlanFile::Changed,
            None => PlanFile::Unseen,
        };
        blocking(looked).await
    }

    /// Reads the plan's file of a run of this host; nothing where it is not there or can't be read.
    ///
    /// # Errors
    ///
    /// Those of a thread that could not be had.
    pub(crate) async fn read_plan_file(&self, run: &RunRow) -> Result<Option<ReadPlanFile>, ServiceError> {
        if run.host != self.host() {
            return Ok(None);
        }
        let (file, revision) = (plan_file(run), run.revision.clone());
        let read = move || {
            let bytes = bytes_of(&file).ok()??;
            let text = std::str::from_utf8(&bytes).ok().map(str::to_owned);
            Some(ReadPlanFile { is_executed: digest_of(&file, bytes) == revision, text })
        };
        blocking(read).await
    }
}

/// Reads the digest of a plan's file.
fn read_digest(file: &Path) -> Option<Digest> {
    Some(digest_of(file, bytes_of(file).ok()??))
}

/// Returns the digest of a plan's file; that of no plan where it is no text.
fn digest_of(file: &Path, bytes: Vec<u8>) -> Digest {
    let source = Source::from_bytes(file.to_string_lossy().into_owned(), bytes);
    source.map_or_else(|_| Digest::new(""), |source| digest(&source))
}

/// A plan's file as it was read.
pub(crate) struct ReadPlanFile {
    /// Says that it is the text that its run executes, except for the marks.
    pub(crate) is_executed: bool,
    /// Its text, where it is one.
    pub(crate) text: Option<String>,
}

/// Whether a plan's file is the text that a run executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlanFile {
    /// It is, except for the marks.
    Runs,
    /// It is another text: the run goes on with the one that was approved.
    Changed,
    /// It is not there, can't be read, or is on another host.
    Unseen,
    /// A gate that compares it is under way, so no marks were drawn.
    Held,
}

/// Returns where the plan's file of a run is.
pub(crate) fn plan_file(run: &RunRow) -> PathBuf {
    PathBuf::from(&run.workspace_path).join(&run.plan_path)
}

/// Returns a path of the workspace as a run names it that works in a folder of it; `None` where it lies elsewhere.
pub(crate) fn within_folder<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    Path::new(path).strip_prefix(folder).ok()?.to_str()
}

/// Replaces a plan's text, keeping the file's mode; says whether it held the old text, since nothing is written where it did not.
///
/// # Errors
///
/// Where the file may not be written, or is a link that leads out of the workspace.
pub(crate) fn replace(file: &Path, workspace: &Path, old: &str, new: &str) -> io::Result<bool> {
    if fs::metadata(file)?.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    let is_link = fs::symlink_metadata(file)?.is_symlink();
    if is_link && !file.canonicalize()?.starts_with(workspace) {
        return Err(io::Error::other("it is a link that leads out of the workspace"));
    }
    write_plan(file, old.as_bytes(), new.as_bytes())
}

/// Reads a plan's file; nothing where there is none.
pub(crate) fn bytes_of(file: &Path) -> Result<Option<Vec<u8>>, String> {
    match read_plan(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Unreadable::Missing) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
