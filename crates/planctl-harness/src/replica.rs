//! A throw-away copy of a workspace in exactly its present state, which can be brought back to that state.
//!
//! The whole git checkout that the workspace lies in is copied, with what git ignores and its own `.git`, so that nothing
//! that runs in the copy can write into the original's objects, refs, index or other worktrees:
//!
//! ```text
//! SCRATCH/planctl-trial-…/       0700, locked as long as anything uses it, removed with the replica
//!   tree/work/                   the checkout
//!   tree/git-0/                  the git folder of a `.git` file that points out of the checkout
//! ```

mod restore;
mod survey;
mod transfer;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::survey::Survey;
use self::transfer::Transfer;
use crate::beneath::Root;
use crate::git::{git_head, git_top_level};
use crate::scratch::{ScratchFolder, TRIAL_PREFIX};
use crate::stamp::Stamp;

pub use self::restore::Differences;

/// How much a replica may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaLimits {
    /// The most bytes that are copied; files that the file system can share are not counted.
    pub bytes_max: u64,
    /// The most files, folders and links.
    pub entries_max: usize,
}

impl Default for ReplicaLimits {
    fn default() -> ReplicaLimits {
        ReplicaLimits { bytes_max: 4 << 30, entries_max: 500_000 }
    }
}

/// Why there is no replica.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The workspace has more bytes than may be copied.
    #[error("it has {bytes} bytes, and at most {limit} are copied")]
    TooLarge {
        /// How many it has.
        bytes: u64,
        /// How many there may be.
        limit: u64,
        /// The entry at its top that has the most.
        largest: String,
        /// How many that has.
        largest_bytes: u64,
    },
    /// The workspace has more files, folders and links than may be copied.
    #[error("it has more than {limit} files and folders")]
    TooMany {
        /// How many there may be.
        limit: usize,
        /// The entry at its top that has the most.
        largest: String,
    },
    /// The file system of the copy has not enough room.
    #[error("a copy takes {bytes} bytes, and {} has {free} free", folder.display())]
    NoRoom {
        /// How many bytes a copy takes.
        bytes: u64,
        /// How many are free.
        free: u64,
        /// Where the copy would be.
        folder: PathBuf,
    },
    /// There is no folder for a copy that lies outside the workspace.
    #[error("{} lies in the workspace itself", folder.display())]
    Inside {
        /// The folder.
        folder: PathBuf,
    },
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// The action.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("it was interrupted")]
    Interrupted,
}

/// A throw-away copy; it goes when it is dropped, and with the next sweep where planctl was killed before.
pub struct Replica {
    folder: ScratchFolder,
    checkout: PathBuf,
    workspace: PathBuf,
    roots: Vec<Root>,
    pieces: BTreeMap<PathBuf, Piece>,
    bytes: u64,
    head: Option<String>,
    shares: bool,
    is_stopped: Stop,
}

/// Says whether to stop; asked between any two files.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// One entry of the copy.
pub(crate) struct Piece {
    kind: Kind,
    /// Mode bits for what is no link.
    mode: u32,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// The stamp of the entry when it was made; an entry with another stamp was touched since.
    made: Stamp,
}

pub(crate) enum Kind {
    Folder,
    /// A regular file of the original: under which root, where, and what it was when it was copied.
    Copied {
        root: usize,
        path: PathBuf,
        source: Stamp,
    },
    /// A file of our own making.
    Written(Vec<u8>),
    Link(PathBuf),
}

impl Replica {
    /// Copies the git checkout that `workspace` (a canonical path) lies in, else the workspace alone, into `scratch`.
    ///
    /// # Errors
    ///
    /// [`ReplicaError`]; nothing of the copy is left then.
    pub fn make(
        scratch: &Path,
        workspace: &Path,
        limits: ReplicaLimits,
        is_stopped: Stop,
    ) -> Result<Replica, ReplicaError> {
        let checkout = git_top_level(workspace).unwrap_or(workspace).to_owned();
        let scratch = scratch.canonicalize().map_err(io_error("use the folder for copies"))?;
        if scratch.starts_with(&checkout) {
            return Err(ReplicaError::Inside { folder: scratch });
        }
        let folder = ScratchFolder::make(&scratch, TRIAL_PREFIX).map_err(io_error("make a folder"))?;
        let tree = folder.path().join("tree");
        let survey = Survey::take(&checkout, &tree, limits, &is_stopped)?;
        let roots = survey.open_roots()?;
        let Survey { pieces, weights, bytes, .. } = survey;
        let beneath = workspace.strip_prefix(&checkout).unwrap_or(Path::new("")).to_owned();
        let head = git_head(workspace);
        let mut replica = Replica {
            workspace: tree.join(survey::WORK).join(beneath),
            folder,
            checkout,
            roots,
            bytes,
            pieces,
            head,
            shares: false,
            is_stopped,
        };
        replica.shares = replica.check_room(limits, &weights)?;
        replica.create_pieces()?;
        Ok(replica)
    }

    /// Returns the folder of the copy that stands for the workspace, where contracts run.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns what was copied: the git checkout, else the workspace.
    pub fn copied_root(&self) -> &Path {
        &self.checkout
    }

    /// Returns the lock that everything which runs in the copy has to hold.
    pub fn lock(&self) -> Arc<OwnedFd> {
        self.folder.lock()
    }

    /// Returns the variables that keep what runs in the copy out of other checkouts and of the original's caches.
    pub fn variables(&self) -> Vec<(String, String)> {
        vec![
            ("GIT_CEILING_DIRECTORIES".to_owned(), self.folder.path().to_string_lossy().into_owned()),
            // A virtual environment names its interpreter by the original's path, where nothing may be written.
            ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
        ]
    }

    /// Returns a text with the original's path replaced by the copy's.
    pub fn with_paths_of_copy(&self, text: &str) -> String {
        survey::replace_paths(text, &self.checkout, &self.tree().join(survey::WORK))
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Says whether the file system shares the files' content; where it doesn't, their size counts.
    fn check_room(&self, limits: ReplicaLimits, weights: &survey::Weights) -> Result<bool, ReplicaError> {
        let transfer = Transfer { roots: &self.roots, tree: &self.tree() };
        if transfer.supports_reflink(&self.pieces, self.folder.path()) {
            return Ok(true);
        }
        if self.bytes > limits.bytes_max {
            let (largest, largest_bytes) = weights.largest_bytes();
            return Err(ReplicaError::TooLarge {
                bytes: self.bytes,
                limit: limits.bytes_max,
                largest,
                largest_bytes,
            });
        }
        let room = rustix::fs::statvfs(self.folder.path())
            .map_err(|error| io_error("ask for free space")(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        // Small files take a block each, and the contracts need some room as well.
        let needed = self.bytes + 4096 * self.pieces.len() as u64 + (64 << 20);
        if free < needed {
            let folder = self.folder.path().parent().unwrap_or(Path::new("/")).to_owned();
            return Err(ReplicaError::NoRoom { bytes: needed, free, folder });
        }
        Ok(false)
    }

    /// Makes all pieces, then gives the folders their modes and times, and stamps everything.
    fn create_pieces(&mut self) -> Result<(), ReplicaError> {
        let tree = self.tree();
        let mut gone = Vec::new();
        for (path, piece) in &mut self.pieces {
            if (self.is_stopped)() {
                return Err(ReplicaError::Interrupted);
            }
            let transfer = Transfer { roots: &self.roots, tree: &tree };
            match transfer.make(path, piece, self.shares) {
                Ok(()) => {}
                // It went or changed its kind since the survey, or may not be read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(path.clone()),
                Err(error) => return Err(io_error(format!("copy {}", path.display()))(error)),
            }
        }
        for path in gone {
            self.pieces.remove(&path);
        }
        self.settle(|_| true).map_err(io_error("finish the copy"))
    }

    /// Gives folders their modes and times, the inner ones first, and stamps what is chosen.
    fn settle(&mut self, is_chosen: impl Fn(&Path) -> bool) -> io::Result<()> {
        let tree = self.tree();
        for (path, piece) in self.pieces.iter_mut().rev().filter(|(path, _)| is_chosen(path)) {
            let place = tree.join(path);
            if matches!(piece.kind, Kind::Folder) {
                transfer::attributes(&place, piece)?;
            }
            piece.made = Stamp::of(&place.symlink_metadata()?);
        }
        Ok(())
    }
}

pub(crate) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> ReplicaError {
    let what = what.into();
    |source| ReplicaError::Io { what, source }
}
