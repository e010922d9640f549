//! The workers in each place, as a look into the workspaces would show them: the store is not asked.
//!
//! A holder is at work from its claim until it ends what it does: it reports, dies, acknowledges that its lease was
//! revoked, or its lease runs out.

use planctl_engine::{ItemId, RunId, Timestamp};

use crate::database::Workspace;

/// A process that works on an item.
#[derive(Clone, Debug)]
pub struct Holder {
    pub run: RunId,
    pub workspace: Workspace,
    pub item: ItemId,
    pub generation: u64,
    /// The locks that its step names.
    pub locks: Vec<String>,
    pub until: Timestamp,
    pub hard_deadline: Timestamp,
    /// Its lease was revoked; it may go on until it notices.
    pub is_revoked: bool,
}

/// Everybody who is at work.
#[derive(Default)]
pub struct AtWork {
    holders: Vec<Holder>,
}

impl AtWork {
    /// Lets a holder begin.
    ///
    /// # Errors
    ///
    /// Tells who is at work already where two must not be (P4, P9).
    pub fn begin(&mut self, new: Holder) -> Result<(), String> {
        for other in &self.holders {
            let is_same_place = other.workspace == new.workspace;
            let why = if other.item == new.item {
                "both work on one item"
            } else if is_same_place && other.is_revoked {
                "the lease of the other was revoked, and it is still at work in that workspace"
            } else if is_same_place && other.run != new.run {
                "two runs work in one workspace"
            } else if other.locks.iter().any(|lock| new.locks.contains(lock)) {
                "both steps name one lock"
            } else {
                continue;
            };
            return Err(format!("P4 {} is worked on while {} is: {why}", of(&new), of(other)));
        }
        self.holders.push(new);
        Ok(())
    }

    /// Lets the holder of a lease end.
    pub fn end(&mut self, item: &ItemId, generation: u64) {
        self.holders.retain(|holder| holder.item != *item || holder.generation != generation);
    }

    /// Notes that the lease of an item was revoked.
    pub fn revoke(&mut self, item: &ItemId) {
        for holder in self.holders.iter_mut().filter(|holder| holder.item == *item) {
            holder.is_revoked = true;
        }
    }

    /// Says whether somebody is at work under a lease that was revoked.
    pub fn is_revoked(&self, item: &ItemId, generation: u64) -> bool {
        self.holders
            .iter()
            .any(|holder| holder.is_revoked && holder.item == *item && holder.generation == generation)
    }

    /// Notes that a lease was extended.
    pub fn extend(&mut self, item: &ItemId, generation: u64, until: Timestamp) {
        let is_it = |holder: &&mut Holder| holder.item == *item && holder.generation == generation;
        for holder in self.holders.iter_mut().filter(is_it) {
            holder.until = holder.until.max(until);
        }
    }

    /// Ends everybody whose lease has run out; nobody begins again where the clock goes back.
    pub fn pass(&mut self, now: Timestamp) {
        self.holders.retain(|holder| holder.until > now && holder.hard_deadline > now);
    }
}

fn of(holder: &Holder) -> String {
    format!("{} (generation {})", holder.item, holder.generation)
}
