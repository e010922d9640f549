//! Runs Postgres' own programs for people, psql and pg_dump, on the terminal of the caller.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use super::{Cluster, ClusterError, ClusterOptions};

/// A Postgres program that talks to a database, and how it gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name: "psql", "pg_dump".
    pub name: &'static str,
    /// The address, without a password: others can read the arguments of a process.
    pub url: String,
    /// The password, handed over in the environment.
    pub password: Option<String>,
    /// Whether its transactions only read, unless a statement sets otherwise.
    pub is_reading: bool,
    /// Further arguments.
    pub arguments: Vec<OsString>,
}

impl Client {
    /// Runs the program to its end: the one beside the server's programs where there is one, else the one on `PATH`.
    pub fn run(&self, options: &ClusterOptions) -> Result<ExitStatus, ClusterError> {
        let beside = Cluster::status(options).ok().and_then(|status| Some(status.bin_dir?.join(self.name)));
        let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(self.name));
        let mut command = Command::new(&program);
        command.arg("--dbname").arg(&self.url).args(&self.arguments);
        if let Some(password) = &self.password {
            command.env("PGPASSWORD", password);
        }
        if self.is_reading {
            command.env("PGOPTIONS", "-c default_transaction_read_only=on");
        }
        command.status().map_err(|error| ClusterError::Program {
            program: program.display().to_string(),
            reason: format!("{error}\nhelp: apt install postgresql-client"),
        })
    }
}
