//! The tools of servers as they were listed, kept in the state directory, so that only a first look asks a server (M-46).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use planctl_lang::tools::ToolList;
use sha2::{Digest as _, Sha256};

use crate::request::Server;

/// The largest list that is read.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Where the lists are kept.
#[derive(Clone, Debug)]
pub struct KeptLists {
    folder: PathBuf,
}

/// A list that can't be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("the kept tools in {}: {source}", path.display())]
pub struct KeptListsError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl KeptLists {
    /// Takes the state directory.
    pub fn new(state_dir: &Path) -> KeptLists {
        KeptLists { folder: state_dir.join("tools") }
    }

    /// Returns the list of a server that is reached so; one that can't be read counts as none.
    pub fn get(&self, server: &Server) -> Option<ToolList> {
        let path = self.path(server);
        let is_small = fs::metadata(&path).ok()?.len() <= LIST_BYTES_MAX;
        let text = is_small.then(|| fs::read(&path).ok()).flatten()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps the list of a server.
    ///
    /// # Errors
    ///
    /// [`KeptListsError`] where it can't be written.
    pub fn put(&self, server: &Server, list: &ToolList) -> Result<(), KeptListsError> {
        let path = self.path(server);
        let failed = |source| KeptListsError { path: path.clone(), source };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let text = serde_json::to_vec(list).map_err(|error| failed(io::Error::other(error)))?;
        let made = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&made, text).map_err(failed)?;
        fs::rename(&made, &path).map_err(failed)
    }

    /// Names the file by how the server is reached, without what it is trusted with.
    fn path(&self, server: &Server) -> PathBuf {
        let words: Vec<&str> = match server {
            Server::Command { command, environment } => {
                let names = environment.iter().map(|(name, _)| name.as_str());
                command.iter().map(String::as_str).chain(["\0"]).chain(names).collect()
            }
            Server::Url { url, .. } => vec![url],
        };
        let mut digest = Sha256::new();
        for word in words {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word.as_bytes());
        }
        let name: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name + ".json")
    }
}
