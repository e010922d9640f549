//! Compares the protected entries before and after one contract, and tells apart who made what.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use planctl_engine::{Digest, FileChange};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};

use super::{Baseline, Comparison, Survey, Watch, bytes_of_name};
use crate::beneath::{LastLink, Root, Unreadable};

/// The most names that one message lists.
const NAMES_MAX: usize = 5;

/// The protected entries as they were before a contract, and what watches them.
pub(crate) struct Comparing(Option<Begun>);

struct Begun {
    baseline: Arc<Baseline>,
    workspace: PathBuf,
    before: Survey,
    watch: Watch,
}

/// Describes the protected entries after a contract ran.
#[derive(Default)]
pub(crate) struct Compared {
    /// How they compare with what was approved. A file that the contract itself created is no tampering, unless contracts are
    /// decided by files of its name: then code under test has made its own judge.
    pub(crate) found: Comparison,
    /// Entries below protected patterns that were created while it ran.
    pub(crate) made: BTreeMap<String, Digest>,
    /// A few of those that were changed while it ran and are again what was approved (cheat 48).
    pub(crate) put_back: Vec<String>,
}

impl Comparing {
    /// Compares before the contract, when nothing of the worker is alive any more, and begins to watch. Nothing is done
    /// where nothing is protected.
    pub(crate) async fn begin(
        baseline: &Arc<Baseline>,
        workspace: &Path,
    ) -> Result<(Comparison, Comparing), String> {
        if baseline.is_empty() {
            return Ok((Comparison::default(), Comparing(None)));
        }
        let (baseline, workspace) = (baseline.clone(), workspace.to_owned());
        blocking(move || {
            let text = |error: super::ProtectError| error.to_string();
            // The watch comes first, so that nothing falls between it and the survey.
            let mut watch = Watch::start(&workspace, &baseline);
            let mut before = baseline.survey(&workspace, None).map_err(text)?;
            remove_by_products(&baseline, &workspace, &mut before);
            watch.add_absent(&workspace, &baseline, &before);
            watch.require_room()?;
            let found = baseline.compare_survey(&before);
            Ok((found, Comparing(Some(Begun { baseline, workspace, before, watch }))))
        })
        .await
    }

    /// Compares after the contract, when nothing of it is alive any more.
    pub(crate) async fn finish(self) -> Result<Compared, String> {
        let Some(Begun { baseline, workspace, before, watch }) = self.0 else {
            return Ok(Compared::default());
        };
        blocking(move || {
            let after = baseline.survey(&workspace, Some(&before)).map_err(|error| error.to_string())?;
            let mut found = baseline.compare_survey(&after);
            let is_by_product = |path: &String| !baseline.may_change(path) && !baseline.decides(path);
            let made: BTreeMap<String, Digest> =
                after.new_since(&before).filter(|(path, _)| is_by_product(path)).collect();
            found.tampered.retain(|file| file.change != FileChange::Created || baseline.decides(&file.path));
            found.digests.retain(|path, _| !made.contains_key(path));
            let is_compared = |path: &String| !baseline.may_change(path) && baseline.covers(path);
            let put_back = watch.finish(&before, &after).into_iter().filter(is_compared);
            let put_back = put_back.take(NAMES_MAX).collect();
            Ok(Compared { found, made, put_back })
        })
        .await
    }
}

/// Removes what an earlier contract of the run left below protected patterns, so that each contract begins with exactly
/// the approved entries. A removal never follows a link.
fn remove_by_products(baseline: &Baseline, workspace: &Path, survey: &mut Survey) {
    let Ok(root) = Root::open(workspace) else { return };
    for (name, digest) in &baseline.by_products {
        let is_left = survey.entries.get(name).is_some_and(|seen| seen.state.digest == *digest);
        if !is_left || baseline.files.contains_key(name) || baseline.may_change(name) {
            continue;
        }
        let path = PathBuf::from(bytes_of_name(name));
        let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else { continue };
        let removed = open_without_links(&root, parent)
            .and_then(|folder| rustix::fs::unlinkat(&folder, file, AtFlags::empty()));
        if removed.is_ok() {
            survey.entries.remove(name);
        }
    }
}

/// Reads a protected entry of a workspace, at most 1 MiB.
///
/// # Errors
///
/// Says what is there in place of a regular file.
pub fn read_entry(workspace: &Path, name: &str) -> Result<Vec<u8>, Unreadable> {
    let root = Root::open(workspace).map_err(Unreadable::Refused)?;
    root.read(Path::new(&bytes_of_name(name)), LastLink::Follow, super::COPY_BYTES_MAX)
}

/// Puts a protected entry back as it was approved, or removes one that was not there; no link is followed.
///
/// # Errors
///
/// When a folder on the way is gone or is a link, a folder stands in its place, or the system refuses.
pub fn put_entry(workspace: &Path, name: &str, approved: Option<(&[u8], bool)>) -> io::Result<()> {
    let root = Root::open(workspace)?;
    let path = PathBuf::from(bytes_of_name(name));
    let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let folder = open_without_links(&root, parent)?;
    match rustix::fs::unlinkat(&folder, file, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let Some((bytes, is_executable)) = approved else { return Ok(()) };
    let mode = Mode::from_raw_mode(if is_executable { 0o755 } else { 0o644 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut written = File::from(rustix::fs::openat(&folder, file, flags, mode)?);
    written.write_all(bytes)?;
    written.sync_all()
}

/// Opens a folder to which no link leads.
fn open_without_links(root: &Root, folder: &Path) -> Result<File, rustix::io::Errno> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    root.resolve(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, resolve)
}

/// Does work with files off the runtime's threads.
///
/// # Errors
///
/// Those of the work, and a panic of it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(error.to_string()),
    }
}
