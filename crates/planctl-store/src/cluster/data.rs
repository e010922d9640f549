//! Makes a data directory, whole or not at all.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::binaries::Binaries;
use super::error::At as _;
use super::identity::Identity;
use super::layout::{Layout, make_private_dir, remove_tree, sync, sync_tree};
use super::{ClusterError, server};

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
    let making = Making { half: data.with_extension("tmp"), layout, binaries, identity };
    match making.initdb("C.UTF-8") {
        // Not every system knows C.UTF-8; C sorts the same and stores UTF-8 as well.
        Err(error) if error.to_string().contains("invalid locale") => making.initdb("C")?,
        result => result?,
    }
    making.create_database()?;
    sync_tree(&making.half)?;
    fs::rename(&making.half, &data).at("move", &making.half)?;
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

/// A data directory that is being made.
struct Making<'a> {
    half: PathBuf,
    layout: &'a Layout,
    binaries: &'a Binaries,
    identity: &'a Identity,
}

impl Making<'_> {
    fn initdb(&self, locale: &str) -> Result<(), ClusterError> {
        remove_tree(&self.half)?;
        make_private_dir(&self.half, self.identity)?;
        let mut command = Command::new(self.binaries.program("initdb"));
        command.arg("--pgdata").arg(&self.half).args([
            "--username",
            NAME,
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
        ]);
        command.arg(format!("--locale={locale}")).arg("--no-instructions");
        self.finish(command, "initdb", "")
    }

    /// Creates database and roles in data that no server works on yet.
    fn create_database(&self) -> Result<(), ClusterError> {
        let mut command = Command::new(self.binaries.program("postgres"));
        command.arg("--single").arg("-F").arg("-D").arg(&self.half);
        command.args(["-c", "exit_on_error=true", "-c", "log_checkpoints=off", "postgres"]);
        self.finish(command, "postgres", CREATE)
    }

    /// Runs a program as the database's user to its end, with this input.
    fn finish(&self, mut command: Command, program: &str, input: &str) -> Result<(), ClusterError> {
        self.identity.prepare(&mut command, Some(Signal::KILL));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.identity.spawn_error(program, &error))?;
        // A program that ends before it has read everything says why.
        if let Some(mut stdin) = child.stdin.take()
            && let Err(error) = stdin.write_all(input.as_bytes())
        {
            tracing::debug!(%error, program, "the program read no further");
        }
        let output = child
            .wait_with_output()
            .map_err(|error| ClusterError::Program { program: program.into(), reason: error.to_string() })?;
        if output.status.success() {
            return Ok(());
        }
        let said =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let log = self.layout.log();
        let is_logged =
            server::open_log(&log).and_then(|mut file| file.write_all(said.as_bytes()).at("write", &log));
        Err(ClusterError::NotMade {
            data: self.layout.data_dir(self.binaries.major),
            program: program.into(),
            reason: reason_in(&said).to_owned(),
            log: is_logged.is_ok().then_some(log),
        })
    }
}

/// Returns what a program of Postgres said was wrong: its first error, else its last line.
fn reason_in(said: &str) -> &str {
    const MARKS: [&str; 3] = ["PANIC:", "FATAL:", "error:"];
    let error = |line| MARKS.iter().find_map(|mark| str::split_once(line, mark)).map(|(_, words)| words);
    let last = || said.lines().rev().find(|line| !line.trim().is_empty());
    said.lines().find_map(error).or_else(last).unwrap_or("it said nothing").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_error_of_many_lines_else_the_last_line() {
        let full = "creating configuration files ... ok\n\
            running bootstrap script ... 2026-11-28 23:03:35.529 UTC [24528] FATAL:  could not write: No space left on device\n\
            child process exited with exit code 1\n\
            initdb: removing contents of data directory \"/s/pg/15.tmp\"\n";
        assert_eq!(reason_in(full), "could not write: No space left on device");
        assert_eq!(
            reason_in("initdb: error: invalid locale name \"C.UTF-8\"\n"),
            "invalid locale name \"C.UTF-8\""
        );
        assert_eq!(reason_in("one\ntwo\n\n"), "two");
        assert_eq!(reason_in(""), "it said nothing");
    }
}
