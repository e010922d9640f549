//! The files that must stay as they are while a contract runs: those by which its git goes, and the workspace's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::comparing::blocking;
use super::exchanges::{Exchanged, Exchanges};
use super::stability::{Stability, Steady, Unsteady};
use crate::git::front::GitFiles;

/// Watches those files from the beginning of a contract to its end, off the runtime's threads.
#[derive(Default)]
pub(crate) struct Guarded {
    exchanges: Option<Exchanges>,
    steady: Option<Steady>,
}

impl Guarded {
    /// Begins to watch, where there is something to be watched: a contract's git, or files that must be stable. `committed` are the
    /// files of the newest commit.
    ///
    /// # Errors
    ///
    /// Says what is missing for that.
    pub(crate) async fn begin(
        git: Option<GitFiles>,
        stability: Option<Stability>,
        committed: Arc<[PathBuf]>,
        workspace: &Path,
    ) -> Result<Guarded, String> {
        if git.is_none() && stability.is_none() {
            return Ok(Guarded::default());
        }
        let workspace = workspace.to_owned();
        let begin = move || {
            let exchanges = git.as_ref().map(Exchanges::begin).transpose()?;
            let steady = stability.and_then(|stability| Steady::begin(stability, &committed, &workspace));
            Ok(Guarded { exchanges, steady })
        };
        blocking(begin).await
    }

    /// Says what happened to them since.
    ///
    /// # Errors
    ///
    /// Where nobody can say.
    pub(crate) async fn finish(self) -> Result<(Exchanged, Unsteady), String> {
        let Guarded { exchanges, steady } = self;
        if exchanges.is_none() && steady.is_none() {
            return Ok(Default::default());
        }
        let finish = move || {
            let exchanged = exchanges.map(Exchanges::finish).unwrap_or_default();
            Ok((exchanged, steady.map(Steady::finish).unwrap_or_default()))
        };
        blocking(finish).await
    }
}
