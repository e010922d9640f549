//! Workers that wait in this process: a transition that sends out work leases it to one of them in the same transaction, so that
//! nobody waits for the commit of a claim.

use std::sync::{Mutex, Weak};

use planctl_engine::Role;

use crate::claimed::Claimed;
use crate::holder::ClaimRequest;
use crate::mutex::lock;

/// The workers that wait in this process for work in the workspaces of a host.
pub trait WaitingWorkers: Send + Sync {
    /// Takes the one that has waited longest of those for whom there was no work, and who take work of this role in this plan.
    fn take(&self, role: &Role, plan: &str) -> Option<Box<dyn WaitingWorker>>;
}

/// A worker that was taken from those that wait. Unless it is served it waits on once this is dropped, and looks for work that
/// was sent out meanwhile.
pub trait WaitingWorker: Send + Sync {
    /// The claim for which it waits.
    fn request(&self) -> &ClaimRequest;

    /// Gives it the item that was leased to it.
    fn serve(&self, claimed: Claimed);
}

/// Those that wait, by the host for whose workspaces they wait.
#[derive(Default)]
pub(crate) struct WaitingByHost {
    groups: Mutex<Vec<(String, Weak<dyn WaitingWorkers>)>>,
}

impl WaitingByHost {
    /// Adds workers, for as long as they are kept elsewhere.
    pub(crate) fn add(&self, host: &str, workers: Weak<dyn WaitingWorkers>) {
        let mut groups = lock(&self.groups);
        groups.retain(|(_, group)| group.strong_count() > 0);
        groups.push((host.to_owned(), workers));
    }

    /// Takes one who waits for work of this role in this plan, in workspaces on a host.
    pub(crate) fn take(&self, host: &str, role: &Role, plan: &str) -> Option<Box<dyn WaitingWorker>> {
        let groups = lock(&self.groups);
        let of_host = groups.iter().filter(|(of, _)| of == host);
        of_host.filter_map(|(_, workers)| workers.upgrade()).find_map(|workers| workers.take(role, plan))
    }
}
