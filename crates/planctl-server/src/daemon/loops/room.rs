//! Says when the disk of the state directory is full, and when there is room again: what meets that says so late, each in other words.

use std::fs::{File, remove_file};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use super::{Scope, Shared};
use crate::node::runtime::blocking;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);
/// Where there is less room than this, it tries to write.
const ROOM_BYTES_LEAST: u64 = 1024 * 1024;
/// So much has to find room.
const TRIED_BYTES: usize = 64 * 1024;

/// Looks until nothing is taken on any more.
pub(crate) async fn watch_room(shared: &Shared) {
    let state_dir = shared.server_node.state_dir().to_owned();
    let mut was_full = false;
    while !shared.is_stopping() {
        let looked = state_dir.clone();
        let is_full = blocking(move || is_full(&looked)).await.unwrap_or(was_full);
        if is_full != was_full {
            was_full = is_full;
            shared.say_room(&state_dir, is_full);
        }
        shared.pause(EVERY).await;
    }
}

impl Shared {
    fn say_room(&self, state_dir: &Path, is_full: bool) {
        let disk = format!("the disk of {}", state_dir.display());
        let words = match is_full {
            true => format!("{disk} is full: what is under way waits until there is room"),
            false => format!("{disk} has room again; going on"),
        };
        match self.scope {
            Scope::Run(_) => self.server_node.say(&words),
            Scope::Host if is_full => {
                tracing::warn!("{words}");
                self.health.set_last_error(words);
            }
            Scope::Host => tracing::info!("{words}"),
        }
    }
}

/// Returns the bytes that may still be written in a folder, or in what it will be made in; none where the file system does not say.
pub fn room_in(folder: &Path) -> Option<u64> {
    let folder = folder.ancestors().find(|folder| folder.is_dir())?;
    let found = rustix::fs::statvfs(folder).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Says whether nothing more can be written in a folder. Blocks that the system keeps for root count as room for root.
pub fn is_full(folder: &Path) -> bool {
    if room_in(folder).is_some_and(|room| room >= ROOM_BYTES_LEAST) {
        return false;
    }
    let trial = folder.join(format!("room.{}", std::process::id()));
    let tried = File::create(&trial).and_then(|mut file| file.write_all(&[0; TRIED_BYTES]));
    // Where it could not be made, there is nothing to remove.
    remove_file(&trial).ok();
    tried.is_err_and(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}
