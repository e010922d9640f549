//! Notes on a workspace in the state directory of its host: small lists that may get lost at the cost of
//! another look.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use planctl_harness::digest_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a list that are read; a longer one counts as lost.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// One kind of list, named as its folder in the state directory.
#[derive(Clone, Copy)]
pub(crate) struct Notes(pub(crate) &'static str);

impl Notes {
    /// Returns what is noted of a workspace; nothing where there is no list or it can't be read.
    pub(crate) fn read<T: DeserializeOwned + Default>(self, state_dir: &Path, workspace: &Path) -> T {
        let path = self.list(state_dir, workspace);
        let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= LIST_BYTES_MAX);
        let text = if is_small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Replaces what is noted of a workspace.
    pub(crate) fn write<T: Serialize>(self, state_dir: &Path, workspace: &Path, list: &T) -> io::Result<()> {
        let path = self.list(state_dir, workspace);
        let next = path.with_extension("next");
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        std::fs::write(&next, serde_json::to_vec(list).map_err(io::Error::other)?)?;
        std::fs::rename(next, path)
    }

    fn list(self, state_dir: &Path, workspace: &Path) -> PathBuf {
        state_dir.join(self.0).join(format!("{}.json", name_of(workspace)))
    }
}

/// Returns a name for the files about a workspace.
pub(crate) fn name_of(workspace: &Path) -> String {
    let name = digest_of(workspace.as_os_str().as_encoded_bytes());
    name.as_str().trim_start_matches("sha256:").chars().take(32).collect()
}
