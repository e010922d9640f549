//! The errors of the private Postgres, each with the next command to type.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the private Postgres could not be used; each text fits after "could not" and ends with the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No home directory is known, so there is no place for the state.
    #[error("find a place for planctl's state: no home directory is known; set PLANCTL_STATE_DIR")]
    NoStateDir,

    /// The state directory that was named is another one in each folder, and children work in others.
    #[error(
        "use the state directory `{}`: PLANCTL_STATE_DIR has to be an absolute path\nhelp: export PLANCTL_STATE_DIR={}",
        named.display(), absolute.display()
    )]
    RelativeStateDir {
        /// The path that was named.
        named: PathBuf,
        /// The same, from the current directory.
        absolute: PathBuf,
    },

    /// A file or directory of the cluster could not be used.
    #[error("{action} {}: {source}{}", path.display(), ownership_hint(source))]
    File {
        /// The action, as a verb: "create", "open", "remove".
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// A directory above the data does not let the database's user through (DESIGN 9).
    #[error(
        "put the private Postgres in {}: its user \"{user}\" can't pass through {} (mode {mode:03o})\n\
         help: set PLANCTL_STATE_DIR to a directory it can reach, such as /var/lib/planctl, or type: chmod o+x {}",
        data.display(), parent.display(), parent.display()
    )]
    ParentNotTraversable {
        /// Where the data would be.
        data: PathBuf,
        /// The first directory that is closed.
        parent: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The database's user.
        user: String,
    },

    /// The state directory can't be made.
    #[error("create {}: {source}\nhelp: set PLANCTL_STATE_DIR to a directory that this user may write to", path.display())]
    StateDir {
        /// The file or directory that was to be made.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// The data belong to someone else.
    #[error(
        "use the private Postgres in {}: it belongs to {owner}, and this process runs as {me}\n\
         help: run planctl as that user, or set PLANCTL_STATE_DIR to another directory",
        path.display()
    )]
    ForeignOwner {
        /// The data directory.
        path: PathBuf,
        /// Its owner.
        owner: String,
        /// The user of this process.
        me: String,
    },

    /// Postgres refuses to run as root, and there is nobody else to run it as.
    #[error(
        "find a user to run Postgres as: {reason}\n\
         help: run planctl as a normal user, or pass --database-url postgres://…"
    )]
    NoUser {
        /// The obstacle.
        reason: String,
    },

    /// There is no Postgres on this machine, and none was fetched: one screen with the three ways out.
    #[error(
        "find a Postgres to run: {reason}\n\
         help: any one of these helps\n  \
           apt install postgresql                  your system's own (version 14 or newer)\n  \
           planctl --database-url postgres://…     a server that you run yourself\n  \
           planctl db install --from FILE          a package fetched on another machine"
    )]
    NoPostgres {
        /// Where was looked and why nothing was fetched.
        reason: String,
    },

    /// The directory named in the configuration holds no usable Postgres.
    #[error(
        "use the Postgres in {}: {reason}\nhelp: correct `postgres.bin_dir`, or remove it to let planctl look for itself",
        dir.display()
    )]
    BadBinDir {
        /// The directory.
        dir: PathBuf,
        /// The problem with it.
        reason: String,
    },

    /// The data were written by a major version that is not here.
    #[error(
        "start the private Postgres in {}: its data are of Postgres {major}, and this machine has {found}\n\
         help: install Postgres {major} (apt install postgresql-{major}), or start afresh, without these data: planctl db reset",
        data.display()
    )]
    MajorMissing {
        /// The data directory.
        data: PathBuf,
        /// The major version it needs.
        major: u32,
        /// The value found instead.
        found: String,
    },

    /// The data were here and are gone: a new cluster in their place would look as if there had never been a run.
    #[error(
        "find the data of the private Postgres, which were in {}\n\
         help: put them back, or mount their disk; or begin anew, without them: planctl db reset",
        data.display()
    )]
    DataGone {
        /// The data directory.
        data: PathBuf,
    },

    /// A package to install is broken or not what it says.
    #[error("install Postgres from {}: {reason}", path.display())]
    BadPackage {
        /// The package.
        path: PathBuf,
        /// The problem with it.
        reason: String,
    },

    /// A child program failed.
    #[error("run {program}: {reason}")]
    Program {
        /// Which program.
        program: String,
        /// Its last words, or what the system said.
        reason: String,
    },

    /// The data could not be made.
    #[error("make the private Postgres in {}: {program} says: {reason}{}", data.display(), making_hint(reason, log.as_deref()))]
    NotMade {
        /// Where the data would be.
        data: PathBuf,
        /// The program that makes them.
        program: String,
        /// The line that says why it ended.
        reason: String,
        /// The log that has all that it said; none where that could not be written either.
        log: Option<PathBuf>,
    },

    /// Postgres did not come up.
    #[error(
        "start the private Postgres in {}: {reason}; its last words in {}:\n{tail}\nhelp: planctl db status",
        data.display(), log.display()
    )]
    StartFailed {
        /// The data directory.
        data: PathBuf,
        /// The observation.
        reason: String,
        /// The server's log.
        log: PathBuf,
        /// Its last 20 lines.
        tail: String,
    },

    /// Another planctl process owns the cluster, and its Postgres does not answer.
    #[error(
        "reach the private Postgres in {} within {} s: planctl process {owner} owns it; its last words in {}:\n{tail}\n\
         help: planctl db status, or end that process (this one takes over at once)",
        pg_dir.display(), waited.as_secs(), log.display()
    )]
    OwnerSilent {
        /// The folder of the cluster.
        pg_dir: PathBuf,
        /// The owner's process id, or "unknown".
        owner: String,
        /// How long we waited.
        waited: Duration,
        /// The server's log.
        log: PathBuf,
        /// Its last 20 lines.
        tail: String,
    },

    /// The data can't be removed while others work with them.
    #[error(
        "reset the private Postgres in {}: other planctl processes use it (owner: {owner})\nhelp: end them first, then type: planctl db reset",
        pg_dir.display()
    )]
    InUse {
        /// The folder of the cluster.
        pg_dir: PathBuf,
        /// The owner's process id, or "unknown".
        owner: String,
    },

    /// The database answered, but not as it should.
    #[error("prepare the database planctl: {0}")]
    Database(#[from] sqlx::Error),

    /// The handle was dropped while the cluster was coming up.
    #[error("wait for the private Postgres: it was given up")]
    Abandoned,
}

impl ClusterError {
    /// Returns its first line.
    pub(crate) fn first_line(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_owned()
    }

    /// Returns it in one line, with what a server that did not come up said of it.
    pub(crate) fn in_short(&self) -> String {
        let first = self.first_line();
        let ClusterError::StartFailed { tail, .. } = self else { return first };
        let cause =
            tail.lines().rev().find_map(|line| line.split_once("FATAL:").or(line.split_once("PANIC:")));
        match cause {
            Some((_, cause)) => format!("{first} {}", cause.trim()),
            None => first,
        }
    }
}

/// Says what to do where the files are somebody else's.
fn ownership_hint(source: &io::Error) -> &'static str {
    // The errors that planctl raises itself say what to do.
    if source.raw_os_error().is_some() && source.kind() == io::ErrorKind::PermissionDenied {
        "\nhelp: it may be another user's; set PLANCTL_STATE_DIR to a directory of your own, or ask as that user"
    } else {
        ""
    }
}

/// Says what to do where data could not be made, and where all is that was said.
fn making_hint(reason: &str, log: Option<&Path>) -> String {
    let room = "make room there, or set PLANCTL_STATE_DIR to a directory on another disk";
    let room = reason.contains("No space left on device").then(|| room.to_owned());
    let said = log.map(|log| format!("all that it said is in {}", log.display()));
    let words: Vec<String> = room.into_iter().chain(said).collect();
    if words.is_empty() { String::new() } else { format!("\nhelp: {}", words.join("; ")) }
}

/// Gives an input/output error its place.
pub(crate) trait At<T> {
    /// Names the action and the path.
    fn at(self, action: &'static str, path: &Path) -> Result<T, ClusterError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ClusterError> {
        self.map_err(|source| ClusterError::File { action, path: path.to_owned(), source })
    }
}

impl<T> At<T> for rustix::io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ClusterError> {
        self.map_err(io::Error::from).at(action, path)
    }
}
