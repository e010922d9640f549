//! The drafts of the page in the state directory: a file for each, with which the next daemon shows where it stood.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use planctl_api::wire::drafting::DraftingView;
use planctl_harness::blocking_in_place;

use crate::state_folders::private_folder;

/// The folder of the state directory.
const FOLDER: &str = "page-drafts";

/// Where the drafts of the page are kept. One daemon has it at a time.
pub struct KeptDrafts {
    state_dir: PathBuf,
}

impl KeptDrafts {
    /// Reads and makes nothing yet.
    pub fn of(state_dir: PathBuf) -> KeptDrafts {
        KeptDrafts { state_dir }
    }

    /// Returns the drafts that are kept, oldest first. One that this planctl can't read is left out.
    pub fn all(&self) -> Vec<DraftingView> {
        let found = blocking_in_place(|| read_all(&self.state_dir.join(FOLDER)));
        let mut drafts = found.unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "the drafts of the page could not be read");
            }
            Vec::new()
        });
        // Ids are in the order of time.
        drafts.sort_by(|one, other| one.id.cmp(&other.id));
        drafts
    }

    /// Keeps a draft as it stands: whole, or as it was. Where that fails it is known to this daemon alone.
    pub fn put(&self, draft: &DraftingView) {
        let put = || -> io::Result<()> {
            let file = private_folder(&self.state_dir, FOLDER)?.join(format!("{}.json", draft.id));
            let next = file.with_extension("next");
            let mut written =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
            written.write_all(&serde_json::to_vec(draft)?)?;
            fs::rename(&next, &file)
        };
        if let Err(error) = blocking_in_place(put) {
            tracing::warn!(draft = draft.id, %error, "a draft of the page could not be kept");
        }
    }

    /// Forgets a draft.
    pub fn remove(&self, id: &str) {
        let file = self.state_dir.join(FOLDER).join(format!("{id}.json"));
        if let Err(error) = blocking_in_place(|| fs::remove_file(file)) {
            tracing::debug!(draft = id, %error, "an old draft of the page stays");
        }
    }
}

fn read_all(folder: &Path) -> io::Result<Vec<DraftingView>> {
    let mut drafts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        match serde_json::from_slice(&fs::read(&path)?) {
            Ok(draft) => drafts.push(draft),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "a draft of the page can't be read")
            }
        }
    }
    Ok(drafts)
}
