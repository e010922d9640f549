//! Makes a data directory, whole or not at all.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// The database and the roles that are no superusers, one statement on a line.
const CREATE: &str =
    "create database planctl\ncreate role planctl_app login\ncreate role planctl_read login\n";

/// Makes the data directory of a major version, with database and roles; the caller holds the cluster's lock.
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
    create_database(&half, binaries, identity)?;
    sync_tree(&half)?;
    fs::rename(&half, &data).at("move", &half)?;
    sync(&layout.pg_dir)
}

/// Notes that there are data, so that they are missed.
pub(crate) fn note_made(layout: &Layout, major: u32) -> Result<(), ClusterError> {
    let path = layout.made();
    if made(layout) == Some(major) {
        Ok(())
    } else {
        fs::write(&path, format!("{major}\n")).at("write", &path)
    }
}

/// Returns the major version of the data that were noted.
pub(crate) fn made(layout: &Layout) -> Option<u32> {
    fs::read_to_string(layout.made()).ok()?.trim().parse().ok()
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
    finish(command, "initdb", "", identity)
}

/// Creates database and roles in data that no server works on yet.
fn create_database(half: &Path, binaries: &Binaries, identity: &Identity) -> Result<(), ClusterError> {
    let mut command = Command::new(binaries.program("postgres"));
    command.arg("--single").arg("-F").arg("-D").arg(half);
    command.args(["-c", "exit_on_error=true", "-c", "log_checkpoints=off", "postgres"]);
    finish(command, "postgres", CREATE, identity)
}

/// Runs a program as the database's user to its end, with this input.
fn finish(mut command: Command, program: &str, input: &str, identity: &Identity) -> Result<(), ClusterError> {
    identity.prepare(&mut command, Some(Signal::KILL));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| identity.spawn_error(program, &error))?;
    let failed = |reason: String| ClusterError::Program { program: program.into(), reason };
    // A program that ends before it has read everything says why.
    if let Some(mut stdin) = child.stdin.take()
        && let Err(error) = stdin.write_all(input.as_bytes())
    {
        tracing::debug!(%error, program, "the program read no further");
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(failed(super::server::tail(&said)))
}
