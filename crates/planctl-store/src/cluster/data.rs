//! Makes a data directory, whole or not at all.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::ClusterError;
use super::binaries::Binaries;
use super::error::At as _;
use super::identity::Identity;
use super::layout::{Layout, make_private_dir, remove_tree, sync, sync_tree};

/// The superuser and the database of the private cluster.
pub(crate) const NAME: &str = "planctl";

/// The role as which planctl works: it reads and writes rows, and changes no history.
pub(crate) const APP: &str = "planctl_app";

/// The role that reads.
pub(crate) const READ: &str = "planctl_read";

/// Makes the data directory of a major version; the caller holds the cluster's lock.
///
/// It is made under a temporary name, written to the disk and renamed, so an interrupted first run leaves nothing that
/// looks like data.
pub(crate) fn create(layout: &Layout, binaries: &Binaries, identity: &Identity) -> Result<(), ClusterError> {
    let data = layout.data_dir(binaries.major);
    let half = data.with_extension("tmp");
    match initdb(&half, binaries, identity, "C.UTF-8") {
        // Not every system knows C.UTF-8; C sorts the same and stores UTF-8 as well.
        Err(error) if error.to_string().contains("invalid locale") => initdb(&half, binaries, identity, "C")?,
        result => result?,
    }
    sync_tree(&half)?;
    fs::rename(&half, &data).at("move", &half)?;
    sync(&layout.pg_dir)
}

/// Removes what an interrupted first run or reset left; the caller holds the cluster's lock.
pub(crate) fn remove_leftovers(layout: &Layout) -> Result<(), ClusterError> {
    for entry in fs::read_dir(&layout.pg_dir).at("read", &layout.pg_dir)? {
        let path = entry.at("read", &layout.pg_dir)?.path();
        let left = path.extension().is_some_and(|extension| extension == "tmp" || extension == "gone");
        if left {
            remove_tree(&path)?;
        }
    }
    Ok(())
}

fn initdb(half: &Path, binaries: &Binaries, identity: &Identity, locale: &str) -> Result<(), ClusterError> {
    remove_tree(half)?;
    make_private_dir(half, identity)?;
    let mut command = Command::new(binaries.program("initdb"));
    command.arg("--pgdata").arg(half).args([
        "--username",
        NAME,
        "--auth=trust",
        "--encoding=UTF8",
        "--no-sync",
    ]);
    command.arg(format!("--locale={locale}")).arg("--no-instructions");
    identity.prepare(&mut command, Some(Signal::KILL));
    let failed = |reason: String| ClusterError::Program { program: "initdb".into(), reason };
    let output = command.output().map_err(|error| identity.spawn_error("initdb", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(failed(super::server::tail(&said)))
}
