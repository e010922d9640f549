//! Values of configured variables: stored in files, while the database holds keyed digests of them only (A50).
//!
//! A value that is set in `planctl.toml`, for contracts or for a role, is replaced by its *seal* before anything is stored:
//! an HMAC of the value under a key that only this state directory has. Approvals compare seals, runs name them. The value
//! itself lies in a file of the state directory, named after the seal, from which it is read when a command is started.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use planctl_harness::blocking_in_place;
use sha2::Sha256;

use crate::state_folders::private_folder;
use planctl_config::Config;

/// The folder of the state directory in which they lie.
const FOLDER: &str = "secrets";

/// How a seal begins.
const SEAL: &str = "hmac-sha256:";

/// The values that this state directory keeps.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    state_dir: PathBuf,
    folder: PathBuf,
}

impl Secrets {
    pub(crate) fn in_state(state_dir: &Path) -> Secrets {
        Secrets { state_dir: state_dir.to_owned(), folder: state_dir.join(FOLDER) }
    }

    /// Says whether no value was ever kept here.
    pub(crate) fn is_empty(&self) -> bool {
        !self.folder.join("key").exists()
    }

    /// Replaces the values of variables in a configuration by their seals, and keeps the values.
    ///
    /// # Errors
    ///
    /// When the state directory can't be written.
    pub(crate) fn seal_config(&self, config: &mut Config) -> io::Result<()> {
        let roles = config.roles.values_mut().flat_map(|role| role.env.set.values_mut());
        let mut values = config.contracts.env.values_mut().chain(roles).peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        blocking_in_place(|| {
            for value in values {
                *value = self.seal(value)?;
            }
            Ok(())
        })
    }

    fn seal(&self, value: &str) -> io::Result<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key()?).map_err(io::Error::other)?;
        mac.update(value.as_bytes());
        let hex = planctl_engine::hex(&mac.finalize().into_bytes());
        let file = self.folder.join(&hex);
        if !file.exists() {
            self.write_once(&file, value.as_bytes())?;
        }
        Ok(format!("{SEAL}{hex}"))
    }

    /// Returns the values of sealed variables, by their names. A value that is no seal is its own: runs that were started
    /// before there were seals hold some.
    ///
    /// # Errors
    ///
    /// Says which value is not kept here, and what to type.
    pub(crate) fn open(&self, sealed: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
        let value = |(name, value): (&String, &String)| {
            let Some(hex) = value.strip_prefix(SEAL).filter(|hex| is_digest(hex)) else {
                return Ok((name.clone(), value.clone()));
            };
            let kept = blocking_in_place(|| fs::read_to_string(self.folder.join(hex))).map_err(|error| {
                format!(
                    "the value of the variable {name}, which this state directory does not keep ({error}): approve the plan \
                     anew here"
                )
            })?;
            Ok((name.clone(), kept))
        };
        sealed.iter().map(value).collect()
    }

    fn key(&self) -> io::Result<[u8; 32]> {
        let file = self.folder.join("key");
        if !file.exists() {
            let mut key = [0_u8; 32];
            io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut key)?;
            self.write_once(&file, &key)?;
        }
        let key = fs::read(&file)?;
        key.try_into().map_err(|_| io::Error::other(format!("{} holds no key of 32 bytes", file.display())))
    }

    /// Writes a file whole or not at all; one that is there by then stays.
    fn write_once(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        private_folder(&self.state_dir, FOLDER)?;
        let mut draft = tempfile::Builder::new().prefix(".draft-").tempfile_in(&self.folder)?;
        draft.write_all(bytes)?;
        draft.as_file().sync_all()?;
        match draft.persist_noclobber(file) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error.error),
        }
    }
}

fn is_digest(hex: &str) -> bool {
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}
