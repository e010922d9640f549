//! Remembers which directories' planctl.toml a person has read and trusts, by its digest.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use planctl_engine::Digest;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, read_small, sha256};
use crate::origin::FILE_NAME;
use crate::read;

/// The name of the record within the state directory.
pub const TRUST_FILE: &str = "trust.json";

/// The record of trusted directories.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trust {
    /// One entry for each directory.
    pub trusted: Vec<TrustEntry>,
}

/// One trusted directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrustEntry {
    /// Its canonical path.
    pub dir: PathBuf,
    /// The digest of its planctl.toml when it was trusted; another text is not trusted.
    pub digest: Digest,
}

/// The record's entry for one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// A person trusts it as it stands.
    Trusted,
    /// A person trusted another text.
    Changed,
    /// Nobody trusted it.
    Unknown,
}

impl Trust {
    /// Reads the record; where there is none, nothing is trusted.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] where it can't be read or is damaged.
    pub fn load(state_dir: &Path) -> Result<Trust, ConfigError> {
        let path = state_dir.join(TRUST_FILE);
        let Some(text) = read_small(&path)? else {
            return Ok(Trust::default());
        };
        serde_json::from_str(&text)
            .map_err(|error| ConfigError::TrustDamaged { path, what: error.to_string() })
    }

    pub(crate) fn trust_of(&self, dir: &Path, digest: &Digest) -> Standing {
        match self.trusted.iter().find(|entry| entry.dir == dir) {
            Some(entry) if entry.digest == *digest => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    fn save(&self, state_dir: &Path) -> Result<(), ConfigError> {
        let path = state_dir.join(TRUST_FILE);
        let draft = state_dir.join(format!("{TRUST_FILE}.{}", std::process::id()));
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| ConfigError::TrustDamaged { path: path.clone(), what: error.to_string() })?;
        let written = write_whole(state_dir, &draft, &text).and_then(|()| std::fs::rename(&draft, &path));
        written.map_err(|source| ConfigError::Unwritable { path, source })
    }
}

/// Trusts the planctl.toml of a directory as it stands, and returns its path.
///
/// # Errors
///
/// [`ConfigError::Missing`] where the directory has none; its findings where it can't be used.
pub fn trust(state_dir: &Path, dir: &Path) -> Result<PathBuf, ConfigError> {
    let dir =
        dir.canonicalize().map_err(|source| ConfigError::Unreadable { path: dir.to_owned(), source })?;
    let path = dir.join(FILE_NAME);
    let text = read_small(&path)?.ok_or_else(|| ConfigError::Missing { path: path.clone() })?;
    read::layer(&path, &text)?;
    let mut trust = Trust::load(state_dir)?;
    trust.trusted.retain(|entry| entry.dir != dir);
    trust.trusted.push(TrustEntry { dir, digest: sha256(text.as_bytes()) });
    trust.save(state_dir)?;
    Ok(path)
}

// Only the owner reads and writes it: a user who can write it decides which processes planctl starts.
fn write_whole(state_dir: &Path, draft: &Path, text: &str) -> std::io::Result<()> {
    // The private Postgres runs as another user where we are root, and has to pass through.
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(state_dir)?;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
