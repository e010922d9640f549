//! Transitions that wait to be written together, in one transaction.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use planctl_engine::RunId;
use sqlx::postgres::PgRow;
use tokio::sync::oneshot;

use crate::mutex::lock;

/// The most transitions of one commit: it locks the rows of all until all are written.
const BATCH_MAX: usize = 16;

/// The reason why a transition was not written.
pub(crate) enum CommitError {
    /// It was tried alone.
    Failed(sqlx::Error),
    /// It was tried with others, or its batcher was lost: it may have been written.
    Unknown,
    /// Another transition of its run was written first, or is being written.
    Conflict,
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> CommitError {
        CommitError::Failed(error)
    }
}

/// A transition in the queue.
pub(crate) struct Queued {
    pub(crate) run: RunId,
    pub(crate) transition: String,
    pub(crate) answer: oneshot::Sender<Result<PgRow, CommitError>>,
}

impl Queued {
    pub(crate) fn answer(self, answer: Result<PgRow, CommitError>) {
        // The receiver is dropped if the caller has stopped waiting.
        drop(self.answer.send(answer));
    }
}

/// The transitions that wait to be written.
#[derive(Default)]
pub(crate) struct CommitQueue {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    queued: VecDeque<Queued>,
    has_batcher: bool,
}

impl CommitQueue {
    /// Returns how many transitions wait while others are being written.
    pub(crate) fn len(&self) -> usize {
        lock(&self.queue).queued.len()
    }

    /// Drops the transitions that wait.
    pub(crate) fn clear(&self) {
        *lock(&self.queue) = Queue::default();
    }

    /// Adds a transition; says whether the caller must start a batcher.
    pub(crate) fn push(&self, queued: Queued) -> bool {
        let mut queue = lock(&self.queue);
        queue.queued.push_back(queued);
        !std::mem::replace(&mut queue.has_batcher, true)
    }

    /// Takes the next batch, one transition of a run. Other transitions of these runs come out beside it: they were decided
    /// on a state that the batch is about to change.
    pub(crate) fn take_batch(&self) -> Option<(Vec<Queued>, Vec<Queued>)> {
        let mut queue = lock(&self.queue);
        let mut batch = BTreeMap::new();
        let mut conflicting = Vec::new();
        while batch.len() < BATCH_MAX
            && let Some(queued) = queue.queued.pop_front()
        {
            match batch.entry(queued.run) {
                Entry::Vacant(free) => {
                    free.insert(queued);
                }
                Entry::Occupied(_) => conflicting.push(queued),
            }
        }
        queue.has_batcher = !batch.is_empty();
        queue.has_batcher.then(|| (batch.into_values().collect(), conflicting))
    }
}
